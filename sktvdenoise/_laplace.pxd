# State of adaptive logistic and Poisson regression, and what it keeps beside its
# members: the units of the features, the range of rates, the account with a guard.
# The references in numpy are in laplace.py.
#
# Legend: d features, p = d + 1 coefficients.
from libc.math cimport exp, exp2, log, sqrt

cdef extern from "_laplace.h" nogil:
    const Py_ssize_t LANES "SKTV_LANES"
    const double PROBABILITY "SKTV_PROBABILITY"
    const double SUREST "SKTV_SUREST"
    const double REACH "SKTV_REACH"
    const double WIDTH "SKTV_WIDTH"
    const double CREDIBLE "SKTV_CREDIBLE"
    const double GUARD "SKTV_GUARD"

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
    double events          # Poisson: sum of the labels learned, and of the exposure
    double exposure
    double least           # smallest log rate of a label and one event more
    double dispersion      # Poisson: variance of the labels over their mean
    double excess          # of the pool's loss over the guard's
    double steepness       # H: one over the rate, for weight 1, at which they mix
    double largest         # Y and W, the largest label and weight so far
    double largest_weight

# Where the parts of a state begin; all are rows of doubles.
cdef struct Parts:
    Head* head
    double* first          # features of the first row, [d]
    double* mean           # of the features less the first row, [d]
    double* square         # mean squared deviation, [d]
    double* moves          # rows since a feature first moved, [d]
    double* centre         # of the units, [d]
    double* unit           # square of the units, [d]
    double* late_mean      # as mean and square, from the third row on, [d]
    double* late_square
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
    double* late_mean
    double* late_square
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

cdef inline double* take(double** place, Py_ssize_t n) noexcept nogil:
    cdef double* here = place[0]
    place[0] += n
    return here


cdef inline Py_ssize_t lay_out(Parts* s, double* place) noexcept nogil:
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
    s.late_mean = take(&place, d)
    s.late_square = take(&place, d)
    s.drift = take(&place, 2 * n)
    s.keep = take(&place, 2 * n)
    s.share = take(&place, k)
    s.top = take(&place, k)
    s.weight = take(&place, k * n)
    s.theta = take(&place, (d + 1) * n)
    s.covariance = take(&place, (d + 1) * (d + 2) // 2 * n)
    return place - start


cdef inline Py_ssize_t lay_out_scratch(Scratch* r, const Head* head,
                                       double* place) noexcept nogil:
    cdef double* start = place
    cdef Py_ssize_t d = head.n_features, n = head.n_members
    r.mean = take(&place, d)
    r.square = take(&place, d)
    r.late_mean = take(&place, d)
    r.late_square = take(&place, d)
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



# ------------------------------------------------------------- units of features
cdef inline void standardise(const Parts* s, Scratch* r, const double[:] x) noexcept nogil:
    """Features in units of their standard deviation, this row included.

    The units of a feature follow until it has moved for 2 p rows, and again from when
    it is a thousand times as wide. Else they stand, and the drift of its coefficient
    follows instead: a trend would make moving units meaningless. A feature that never
    moved is 0. What is far off is drawn in; what comes once in t rows, at sqrt(t)
    standard deviations, isn't. The first two rows can't be: they are forgotten where
    the feature is far narrower in the 2 p rows thereafter.
    """
    cdef Py_ssize_t d = s.head.n_features
    cdef Py_ssize_t j
    cdef double n = <double>(s.head.round + 1)
    cdef double last = <double>(2 * d + 4)
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
        r.late_mean[j] = s.late_mean[j]
        r.late_square[j] = s.late_square[j]
        if n > 2.0 and n <= last:
            delta = value - r.late_mean[j]
            r.late_mean[j] += delta / (n - 2.0)
            r.late_square[j] += (delta * (value - r.late_mean[j])
                                 - r.late_square[j]) / (n - 2.0)
        r.moves[j] = s.moves[j] + (1.0 if r.square[j] > 0.0 else 0.0)
        if n == last and 0.0 < r.late_square[j] < 1e-3 * r.square[j]:
            r.mean[j] = r.late_mean[j]
            r.square[j] = r.late_square[j] * (n - 2.0) / n
            r.moves[j] = 1.0
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


# ------------------------------------------------------------- range and guard
cdef inline double guarded_mean(Head* head, double pool, double guard) noexcept nogil:
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


cdef inline void account(Head* head, double y, double w, double pool,
                  double guard) noexcept nogil:
    """What the pool has lost to its guard; y and w drawn in to what was known."""
    cdef double part = min(w, head.largest_weight)
    if head.loss == POISSON:
        head.excess += part * (pool - guard + min(y, head.largest) * log(guard / pool))
    else:
        head.excess += part * (y * log(guard / pool)
                               + (1.0 - y) * log((1.0 - guard) / (1.0 - pool)))
    head.excess = max(min(head.excess, 1e300), -1e300)
    head.largest = max(head.largest, y)
    head.largest_weight = max(head.largest_weight, w)


cdef inline double credible(const Head* head, double mean, double w) noexcept nogil:
    """The largest label that is believed, of a mean; surprises in succession are.

    Poisson's law exceeds mean + s / 3 + sqrt(s^2 / 9 + 2 mean s) with a probability of
    at most e^-s (Bernstein).
    """
    cdef double s = 0.5 * CREDIBLE * max(head.dispersion, 1.0) / w
    s *= exp2(4.0 * head.n_surprises)
    return mean + s / 3.0 + sqrt(s * (s / 9.0 + 2.0 * mean))


cdef inline double largest_label(const Head* head, double mean,
                                 double w) noexcept nogil:
    """What is learned of a count: no more than this, where `mean` was predicted.

    A label of no more events than all before it have together is learned as it is.
    """
    return max(credible(head, mean, w), (head.events + 1.0) / w)


cdef inline void learn_range(Head* head, double y, double w,
                             double offset, bint first) noexcept nogil:
    """Rates that may be predicted: neither far below nor above what was seen.

    The first label also sets the base, and what was before is forgotten.
    """
    cdef double rate = log(y + 1.0 / w) - offset
    if first:
        head.base = log((w * y + 1.0) / (w + 0.5)) - offset
        head.least = rate
        head.high = rate + log(WIDTH)
        head.events = head.exposure = 0.0
    head.events += w * y
    head.exposure += w * exp(offset + head.base)
    head.least = min(head.least, rate)
    head.low = min(head.least, log((head.events + 1.0) / head.exposure) + head.base)
    head.low -= REACH
    head.high = max(head.high, rate + log(WIDTH))
