# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Streaming kernel of adaptive logistic and Poisson regression without parameters.

Members are iterated Kalman filters of coefficients that walk at random, trackers
(fixed share) follow the best of them, and trackers are weighed by their losses.
Nothing is allocated in a round. The reference in numpy, and the table of members, are
in `laplace.py`.

Legend: d features, p = d + 1 coefficients, z the features in their units after a 1,
u = z' theta the natural parameter, up to base and offset.
"""
from libc.math cimport exp, fabs, log, log1p, sqrt
from libc.string cimport memcpy

import numpy as np

cdef extern from "_laplace.h" nogil:
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

_INTEGERS = ("n_features", "loss", "n_members", "n_trackers", "round", "n_surprises")
_NUMBERS = ("base", "low", "high", "events", "exposure", "least", "dispersion",
            "excess", "steepness", "largest", "largest_weight")
HEAD_DTYPE = np.dtype([(name, "i8") for name in _INTEGERS]
                      + [(name, "f8") for name in _NUMBERS])


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
    cdef double square, label
    cdef bint first
    if head.round == 0:
        for j in range(d):
            s.first[j] = x[j]
    memcpy(s.mean, r.mean, d * sizeof(double))
    memcpy(s.square, r.square, d * sizeof(double))
    memcpy(s.late_mean, r.late_mean, d * sizeof(double))
    memcpy(s.late_square, r.late_square, d * sizeof(double))
    memcpy(s.moves, r.moves, d * sizeof(double))
    memcpy(s.centre, r.centre, d * sizeof(double))
    memcpy(s.unit, r.unit, d * sizeof(double))
    if head.loss == POISSON:
        first = head.round == 0 or (
            head.round == 1
            and head.base + offset > log(credible(head, y + 1.0 / w, w)))
        if not first:
            label = largest_label(head, mean, w)
            square = mean - y + (y * log(y / mean) if y > 0.0 else 0.0)
            sktv_winsorised(2.0 * w * square, max(0.005, 1.0 / (head.round + 10)),
                            &head.dispersion, &head.n_surprises)
            y = min(y, label)
        learn_range(head, y, w, offset, first)
        if first:
            head.round += 1
            return
        w /= max(head.dispersion, 1.0)
    if head.round > 0:
        aggregate(s, r, y, w)
    # What members can't believe in: rates that can't be predicted. Where classes are
    # separable, they may be surer than what is predicted.
    for j in range(head.n_members):
        if head.loss == POISSON:
            r.near[j] = min(max(r.u[j], head.low + offset), head.high + offset)
        else:
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
    """The parts of a state, which has as many bytes as its head says."""
    cdef Py_ssize_t size = sizeof(Head)
    cdef Head* head
    if state.shape[0] >= size:
        head = <Head*>&state[0]
        if min(head.n_features, head.n_members, head.n_trackers) >= 0:
            size = lay_out(s, <double*>head) * sizeof(double)
    if state.shape[0] != size:
        raise ValueError(f"a state has {state.shape[0]} bytes instead of {size}")
    return 0


cdef int check(const Parts* s, const double[:, :] X, Py_ssize_t least,
               Py_ssize_t most) except -1:
    """X fits the state, and columns that have from `least` to `most` rows fit X."""
    if X.shape[1] != s.head.n_features:
        raise ValueError(f"X has {X.shape[1]} features instead of {s.head.n_features}")
    if least != X.shape[0] or most != X.shape[0]:
        raise ValueError(f"columns have {least} to {most} rows, but X has {X.shape[0]}")
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
    check(&s, X, min(y.shape[0], sample_weight.shape[0], offset.shape[0],
                     predictions.shape[0]),
          max(y.shape[0], sample_weight.shape[0], offset.shape[0],
              predictions.shape[0]))
    if guard is not None:
        check(&s, X, guard.shape[0], guard.shape[0])
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
    check(&s, X, min(offset.shape[0], predictions.shape[0]),
          max(offset.shape[0], predictions.shape[0]))
    if guard is not None:
        check(&s, X, guard.shape[0], guard.shape[0])
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
