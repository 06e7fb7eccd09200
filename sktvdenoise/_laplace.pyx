# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Streaming kernel of adaptive logistic and Poisson regression without parameters.

Members are iterated Kalman filters of coefficients that walk at random, trackers
(fixed share) follow the best of them, BOA weighs the trackers. Nothing is allocated
in a round. The reference in numpy, and the table of members, are in `laplace.py`.

Legend: d features, p = d + 1 coefficients, z the features in their units after a 1,
u = z' theta the natural parameter, up to base and offset.
"""
from libc.math cimport exp, fabs, log, log1p, sqrt
from libc.string cimport memcpy

import numpy as np

cdef extern from "_laplace.h" nogil:
    const Py_ssize_t LANES "SKTV_LANES"
    void sktv_sums(Py_ssize_t n, const double* a, const double* b,
                   double* total, double* dot)
    void sktv_share(Py_ssize_t n, double share, const double* factor, double* weight)
    void sktv_dot(Py_ssize_t p, const double* z, const double* theta, double* m)
    void sktv_spread(Py_ssize_t p, const double* z, const double* covariance,
                     double* g, double* v)
    void sktv_logistic_mode(double y, double w, const double* m, const double* v,
                            double* e, double* h)
    void sktv_poisson_mode(double y, double w, const double* m, const double* v,
                           double* e, double* h)
    void sktv_condition(Py_ssize_t p, const double* g, const double* u,
                        const double* v, const double* e, const double* h,
                        const double* ratio, const double* keep, const double* drift,
                        double* theta, double* covariance)
    void sktv_logistic_means(Py_ssize_t n, double low, double high, const double* u,
                             double* near, double* mean)
    void sktv_poisson_means(Py_ssize_t n, double low, double high, const double* u,
                            double* near, double* mean)
    void sktv_winsorised(double square, double gain, double* variance,
                         long long* n_surprises)
    void sktv_factors(Py_ssize_t n, double rate, double least, const double* loss,
                      double* factor)

cpdef enum Code:
    LOGISTIC = 0
    POISSON = 1

# All fields have eight bytes.
cdef struct Head:
    long long n_features
    long long loss
    long long n_members    # a multiple of LANES
    long long n_trackers
    long long round        # rows learned
    long long n_surprises
    double base            # of the natural parameter
    double low             # range of the natural parameter less the offset: members
    double high            # don't predict beyond
    double events          # Poisson: sum of the labels, and of the exposure
    double exposure
    double least           # smallest log rate of a label and one event more
    double dispersion      # Poisson: variance of the labels over their mean
    double excess          # of the pool's loss over the guard's
    double steepness       # H: one over the rate, for weight 1, at which they mix
    double largest         # Y and W, the largest label and weight so far
    double largest_weight

_INTEGERS = ("n_features", "loss", "n_members", "n_trackers", "round", "n_surprises")
_NUMBERS = ("base", "low", "high", "events", "exposure", "least", "dispersion",
            "excess", "steepness", "largest", "largest_weight")
HEAD_DTYPE = np.dtype([(name, "i8") for name in _INTEGERS]
                      + [(name, "f8") for name in _NUMBERS])

# Where the parts of a state begin; all are rows of doubles.
cdef struct Parts:
    Head* head
    double* first          # features of the first row, [d]
    double* mean           # of the features less the first row, [d]
    double* square         # mean squared deviation, [d]
    double* moves          # rows since a feature first moved, [d]
    double* centre         # of the units, [d]
    double* unit           # square of the units, [d]
    double* drift          # [group][intercept, slopes][lane]
    double* keep
    double* share          # of the trackers, [trackers]
    double* top            # weights of the trackers, [trackers]
    double* weight         # of the members, [trackers][members]
    double* theta          # [group][p][lane]
    double* covariance     # [group][p (p + 1) / 2][lane]

# What is known of a row before its label; not kept.
cdef struct Scratch:
    double* mean           # as in Parts, with the row
    double* square
    double* moves
    double* centre
    double* unit
    double* z              # [p]
    double* ratio          # of drift, by which the unit has changed, [p]
    double* u              # [members]
    double* near           # drawn in
    double* prediction     # mean of the label
    double* loss
    double* factor
    double* tracked        # predictions of the trackers, [trackers]
    double* g              # [p][lane]

cdef double PROBABILITY = 1e-6     # logistic: no smaller one is predicted
cdef double SUREST = 100.0         # logistic: no larger logarithm of odds is learned
cdef double REACH = 5.0            # Poisson: log of how far below what was seen
cdef double GUARD = 0.01           # weight of the guard in the beginning

cdef inline double* take(double** place, Py_ssize_t n) noexcept nogil:
    cdef double* here = place[0]
    place[0] += n
    return here


cdef Py_ssize_t lay_out(Parts* s, double* place) noexcept nogil:
    """Set the parts of a state whose head is in place; how many doubles it has."""
    cdef double* start = place
    cdef Head* head = <Head*>take(&place, sizeof(Head) // sizeof(double))
    cdef Py_ssize_t d = head.n_features, n = head.n_members, k = head.n_trackers
    s.head = head
    s.first = take(&place, d)
    s.mean = take(&place, d)
    s.square = take(&place, d)
    s.moves = take(&place, d)
    s.centre = take(&place, d)
    s.unit = take(&place, d)
    s.drift = take(&place, 2 * n)
    s.keep = take(&place, 2 * n)
    s.share = take(&place, k)
    s.top = take(&place, k)
    s.weight = take(&place, k * n)
    s.theta = take(&place, (d + 1) * n)
    s.covariance = take(&place, (d + 1) * (d + 2) // 2 * n)
    return place - start


cdef Py_ssize_t lay_out_scratch(Scratch* r, const Head* head,
                                double* place) noexcept nogil:
    cdef double* start = place
    cdef Py_ssize_t d = head.n_features, n = head.n_members
    r.mean = take(&place, d)
    r.square = take(&place, d)
    r.moves = take(&place, d)
    r.centre = take(&place, d)
    r.unit = take(&place, d)
    r.z = take(&place, d + 1)
    r.ratio = take(&place, d + 1)
    r.u = take(&place, n)
    r.near = take(&place, n)
    r.prediction = take(&place, n)
    r.loss = take(&place, n)
    r.factor = take(&place, n)
    r.tracked = take(&place, head.n_trackers)
    r.g = take(&place, (d + 1) * LANES)
    return place - start


cdef void standardise(const Parts* s, Scratch* r, const double[:] x) noexcept nogil:
    """Features in units of their standard deviation, this row included.

    The units of a feature follow until it has moved for 2 p rows, and again from when
    it is a thousand times as wide. Else they stand, and the drift of its coefficient
    follows instead: a trend would make moving units meaningless. A feature that never
    moved is 0. What is far off is drawn in; what comes once in t rows, at sqrt(t)
    standard deviations, isn't.
    """
    cdef Py_ssize_t d = s.head.n_features
    cdef Py_ssize_t j
    cdef double n = <double>(s.head.round + 1)
    cdef double value, delta, reach
    r.z[0] = r.ratio[0] = 1.0
    for j in range(d):
        value = x[j] - s.first[j] if s.head.round > 0 else 0.0
        delta = value - s.mean[j]
        if s.square[j] > 0.0:
            reach = (20.0 + 2.0 * sqrt(n)) * sqrt(s.square[j])
            delta = min(max(delta, -reach), reach)
            value = s.mean[j] + delta
        r.mean[j] = s.mean[j] + delta / n
        r.square[j] = s.square[j] + (delta * (value - r.mean[j]) - s.square[j]) / n
        r.moves[j] = s.moves[j] + (1.0 if r.square[j] > 0.0 else 0.0)
        if r.square[j] > 1e6 * s.unit[j]:
            r.moves[j] = 1.0
        if r.moves[j] <= 2 * (d + 1):
            r.centre[j] = r.mean[j]
            r.unit[j] = r.square[j]
        else:
            r.centre[j] = s.centre[j]
            r.unit[j] = s.unit[j]
        r.z[j + 1] = 0.0
        r.ratio[j + 1] = 1.0
        if r.unit[j] > 0.0:
            r.z[j + 1] = (value - r.centre[j]) / sqrt(r.unit[j])
            r.ratio[j + 1] = r.unit[j] / r.square[j]


cdef double predict_row(const Parts* s, Scratch* r, const double[:] x,
                        double offset) noexcept nogil:
    """The mean of the label by all members, the trackers, and their mixture."""
    cdef Py_ssize_t n = s.head.n_members
    cdef Py_ssize_t p = s.head.n_features + 1
    cdef Py_ssize_t j, k
    cdef double total, dot, mean = 0.0
    standardise(s, r, x)
    for k in range(n // LANES):
        j = k * LANES
        sktv_dot(p, r.z, s.theta + j * p, r.u + j)
    dot = offset + s.head.base if s.head.round > 0 else 0.0
    for j in range(n):
        r.u[j] += dot
    if s.head.loss == POISSON:
        sktv_poisson_means(n, s.head.low + offset, s.head.high + offset, r.u, r.near,
                           r.prediction)
    else:
        sktv_logistic_means(n, s.head.low, s.head.high, r.u, r.near, r.prediction)
    for k in range(s.head.n_trackers):
        sktv_sums(n, s.weight + k * n, r.prediction, &total, &dot)
        r.tracked[k] = dot / total
        mean += s.top[k] * r.tracked[k]
    return mean


cdef inline double loss_of(long long loss, double y, double u,
                           double mean) noexcept nogil:
    """Log loss, or the Poisson deviance's half up to what depends on y alone."""
    if loss == POISSON:
        return mean - y * u
    return log1p(exp(-fabs(u))) + max(u, 0.0) - y * u


cdef void aggregate(Parts* s, Scratch* r, double y, double w) noexcept nogil:
    """Members in the trackers, and trackers, are weighed by exp(-loss)."""
    cdef long long loss = s.head.loss
    cdef Py_ssize_t n = s.head.n_members
    cdef Py_ssize_t j, k, n_trackers = s.head.n_trackers
    cdef double least, mean, total = 0.0
    for j in range(n):
        r.loss[j] = w * loss_of(loss, y, r.near[j], r.prediction[j])
    least = r.loss[0]
    for j in range(1, n):
        least = min(least, r.loss[j])
    sktv_factors(n, 1.0, least, r.loss, r.factor)
    for k in range(n_trackers):
        sktv_share(n, s.share[k], r.factor, s.weight + k * n)
    for k in range(n_trackers):
        mean = r.tracked[k]
        r.loss[k] = w * loss_of(loss, y, log(mean) if loss == POISSON
                                else log(mean / (1.0 - mean)), mean)
    least = r.loss[0]
    for k in range(1, n_trackers):
        least = min(least, r.loss[k])
    for k in range(n_trackers):
        # A weight below 1e-100 is no part of the prediction.
        s.top[k] = max(s.top[k] * exp(least - r.loss[k]), 1e-100)
        total += s.top[k]
    for k in range(n_trackers):
        s.top[k] /= total


cdef double guarded_mean(Head* head, double pool, double guard) noexcept nogil:
    """The pool's prediction mixed with its guard's: exponential weights.

    Probabilities are mixed themselves, rates as logarithms: there the loss is
    exp-concave, at rate 1 and at 1 / H.
    """
    cdef double share, low, high
    if head.loss == POISSON:
        low = min(pool, guard)
        high = max(pool, guard)
        head.steepness = max(head.steepness, max(high, head.largest * head.largest / low))
    share = head.excess / (head.steepness * head.largest_weight)
    share = GUARD / (GUARD + (1.0 - GUARD) * exp(max(min(-share, 700.0), -700.0)))
    if head.loss == POISSON:
        return pool * exp(share * log(guard / pool))
    return pool + share * (guard - pool)


cdef void account(Head* head, double y, double w, double pool,
                  double guard) noexcept nogil:
    """What the pool has lost to its guard; y and w drawn in to what was known."""
    cdef double part = min(w, head.largest_weight)
    if head.loss == POISSON:
        head.excess += part * (pool - guard + min(y, head.largest) * log(guard / pool))
        head.largest = max(head.largest, y)
    else:
        head.excess += part * (y * log(guard / pool)
                               + (1.0 - y) * log((1.0 - guard) / (1.0 - pool)))
    head.excess = max(min(head.excess, 1e300), -1e300)
    head.largest_weight = max(head.largest_weight, w)


cdef void learn_range(Head* head, double y, double offset) noexcept nogil:
    """Rates that may be predicted: neither far below nor above what was seen."""
    cdef double rate = log(y + 1.0) - offset
    if head.round == 0:
        # One event is expected in the first row, so the units of exposure are free.
        head.base = -offset
        head.least = rate
        head.high = rate + log(2.0)
    head.events += y
    head.exposure += exp(offset + head.base)
    head.least = min(head.least, rate)
    head.low = min(head.least, log((head.events + 1.0) / head.exposure) + head.base)
    head.low -= REACH
    head.high = max(head.high, rate + log(2.0))


cdef void learn_row(Parts* s, Scratch* r, const double[:] x, double y, double w,
                    double offset, double mean) noexcept nogil:
    """What predict_row has left of the row is kept; then the label is learned."""
    cdef Head* head = s.head
    cdef Py_ssize_t d = head.n_features
    cdef Py_ssize_t p = d + 1
    cdef Py_ssize_t i, j
    cdef double v[8]
    cdef double e[8]
    cdef double h[8]
    cdef double* theta
    cdef double* covariance
    if head.round == 0:
        for j in range(d):
            s.first[j] = x[j]
    memcpy(s.mean, r.mean, d * sizeof(double))
    memcpy(s.square, r.square, d * sizeof(double))
    memcpy(s.moves, r.moves, d * sizeof(double))
    memcpy(s.centre, r.centre, d * sizeof(double))
    memcpy(s.unit, r.unit, d * sizeof(double))
    if head.loss == POISSON:
        if head.round > 0:
            sktv_winsorised(2.0 * w * (mean - y + (y * log(y / mean) if y > 0.0 else 0.0)),
                            max(0.005, 1.0 / (head.round + 10)), &head.dispersion,
                            &head.n_surprises)
        w /= max(head.dispersion, 1.0)
    if head.round > 0:
        aggregate(s, r, y, w)
    if head.loss == POISSON:
        learn_range(head, y, offset)
    else:
        # Where classes are separable members may be surer than what is predicted.
        for j in range(head.n_members):
            r.near[j] = min(max(r.u[j], -SUREST), SUREST)
    for i in range(head.n_members // LANES):
        j = i * LANES
        theta = s.theta + j * p
        covariance = s.covariance + j * (p * (p + 1) // 2)
        sktv_spread(p, r.z, covariance, r.g, v)
        if head.loss == POISSON:
            sktv_poisson_mode(y, w, r.near + j, v, e, h)
        else:
            sktv_logistic_mode(y, w, r.near + j, v, e, h)
        sktv_condition(p, r.g, r.u + j, v, e, h, r.ratio, s.keep + 2 * j,
                       s.drift + 2 * j, theta, covariance)
    head.round += 1


cdef int open_state(Parts* s, unsigned char[::1] state) except -1:
    """The parts of a state, of any number of bytes."""
    if state.shape[0] < <Py_ssize_t>sizeof(Head):
        raise ValueError(f"a state has at least {sizeof(Head)} bytes")
    cdef Py_ssize_t size = lay_out(s, <double*>&state[0]) * sizeof(double)
    if state.shape[0] != size:
        raise ValueError(f"a state has {size} bytes instead of {state.shape[0]}")
    return 0


def allocate(Py_ssize_t n_features, int loss, members, shares):
    """State before the first row, an array of bytes.

    Parameters
    ----------
    n_features : int
    loss : Code
    members : sequence of (variance, drift, keep)
        Each a pair, of the intercept and of the slopes. Their number is a multiple of
        LANES.
    shares : sequence of float
        Of the trackers.
    """
    cdef Parts s
    cdef Py_ssize_t p = n_features + 1
    cdef Py_ssize_t n = len(members), i, j, place
    assert n % LANES == 0
    head = np.zeros(1, dtype=HEAD_DTYPE)
    head["n_features"], head["loss"] = n_features, loss
    head["n_members"], head["n_trackers"] = n, len(shares)
    head["high"] = np.log(1.0 / PROBABILITY - 1.0) if loss == LOGISTIC else 1e300
    head["low"] = -head["high"]
    head["dispersion"] = head["steepness"] = head["largest_weight"] = 1.0
    cdef unsigned char[::1] view = head.view(np.uint8)
    cdef Py_ssize_t size = lay_out(&s, <double*>&view[0])
    state = np.zeros(size * sizeof(double), dtype=np.uint8)
    state[: sizeof(Head)] = head.view(np.uint8)
    view = state
    lay_out(&s, <double*>&view[0])
    for j in range(n):
        variance, drift, keep = members[j]
        for i in range(2):
            place = (2 * (j // LANES) + i) * LANES + j % LANES
            s.drift[place] = drift[i]
            s.keep[place] = keep[i]
        place = j // LANES * LANES * (p * (p + 1) // 2) + j % LANES
        for i in range(p):
            s.covariance[place + i * (i + 3) // 2 * LANES] = variance[min(i, 1)]
    for i in range(len(shares)):
        s.share[i] = shares[i]
        s.top[i] = 1.0 / len(shares)
        for j in range(n):
            s.weight[i * n + j] = 1.0 / n
    return state


def new_scratch(unsigned char[::1] state):
    cdef Parts s
    cdef Scratch r
    open_state(&s, state)
    return np.empty(lay_out_scratch(&r, s.head, NULL))


def learn(unsigned char[::1] state, const double[:, :] X, const double[:] y,
          const double[:] sample_weight, const double[:] offset, double[:] predictions,
          const double[:] guard=None, double[:, :] parts=None):
    """Run rows through a state, in place: each is predicted, then learned.

    predictions[i] is the mean of y[i], known before y[i] is seen; guard[i] that of
    another forecaster, in (0, 1) or positive, to stay close to. A row of weight 0 is
    not learned. parts[i] are the predictions of members, trackers and pool.
    """
    cdef Parts s
    cdef Scratch r
    cdef Head ahead
    cdef Py_ssize_t i, j
    cdef double mean
    open_state(&s, state)
    cdef double[::1] scratch = new_scratch(state)
    lay_out_scratch(&r, s.head, &scratch[0])
    cdef Py_ssize_t n = s.head.n_members
    cdef Py_ssize_t n_trackers = s.head.n_trackers
    with nogil:
        for i in range(y.shape[0]):
            mean = predict_row(&s, &r, X[i], offset[i])
            if parts is not None:
                for j in range(n):
                    parts[i, j] = r.prediction[j]
                for j in range(n_trackers):
                    parts[i, n + j] = r.tracked[j]
                parts[i, n + n_trackers] = mean
            predictions[i] = mean
            if guard is not None:
                ahead = s.head[0]
                predictions[i] = guarded_mean(&ahead, mean, guard[i])
            if sample_weight[i] > 0.0:
                if guard is not None:
                    s.head.steepness = ahead.steepness
                    account(s.head, y[i], sample_weight[i], mean, guard[i])
                learn_row(&s, &r, X[i], y[i], sample_weight[i], offset[i], mean)


def predict(unsigned char[::1] state, const double[:, :] X, const double[:] offset,
            double[:] predictions, const double[:] guard=None):
    """The mean of the label of each row, if it were the next."""
    cdef Parts s
    cdef Scratch r
    cdef Head ahead
    cdef Py_ssize_t i
    open_state(&s, state)
    cdef double[::1] scratch = new_scratch(state)
    lay_out_scratch(&r, s.head, &scratch[0])
    with nogil:
        for i in range(X.shape[0]):
            predictions[i] = predict_row(&s, &r, X[i], offset[i])
            if guard is not None:
                ahead = s.head[0]
                predictions[i] = guarded_mean(&ahead, predictions[i], guard[i])


def weights(unsigned char[::1] state):
    """How much of the next prediction each member accounts for; the sum is 1."""
    cdef Parts s
    cdef Py_ssize_t j, k
    open_state(&s, state)
    cdef Py_ssize_t n = s.head.n_members
    result = np.zeros(n)
    cdef double[::1] w = result
    for k in range(s.head.n_trackers):
        for j in range(n):
            w[j] += s.top[k] * s.weight[k * n + j]
    return result


def coefficients(unsigned char[::1] state):
    """Weighted mean of the members' coefficients: (slopes, intercept)."""
    cdef Parts s
    cdef Py_ssize_t i, j
    cdef double[::1] w = weights(state)
    open_state(&s, state)
    cdef Py_ssize_t d = s.head.n_features
    slopes = np.zeros(d)
    cdef double intercept = s.head.base
    cdef double sum
    for i in range(d + 1):
        sum = 0.0
        for j in range(s.head.n_members):
            sum += w[j] * s.theta[(j // LANES * (d + 1) + i) * LANES + j % LANES]
        if i == 0:
            intercept += sum
        elif s.unit[i - 1] > 0.0:
            slopes[i - 1] = sum / sqrt(s.unit[i - 1])
            intercept -= slopes[i - 1] * (s.first[i - 1] + s.centre[i - 1])
    return slopes, intercept
