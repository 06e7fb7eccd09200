# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""The ladder: linear regressions that never start again, and trackers over them.

Legend: d features, p = d + 1 coefficients, the intercept first; z = (1, x / scale) is
the row as a walk sees it, u = (1, x - first x) as a ridge does; K members, in blocks.
The state is one array of bytes: a `Ladder`, then the arrays of `View`.
"""
from libc.math cimport exp, fabs, frexp, ldexp, sqrt
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from "_ladder.h" nogil:
    const int SKTV_BLOCK
    void sktv_block_dot(Py_ssize_t n_blocks, Py_ssize_t p, const double* z,
                        const double* theta, double* prediction)
    void sktv_kalman(Py_ssize_t n_blocks, Py_ssize_t p, const double* z,
                     const double* drift, double y, double noise,
                     const double* intercept_q, const double* slope_q, double* theta,
                     double* covariance, double* gain, double* leverage)
    void sktv_cholesky(Py_ssize_t p, const double* diagonal, const double* u,
                       const double* ridge, const double* gram, const double* moment,
                       double* work, double* inverse, double* forward, double* solved,
                       double* leverage, double* prediction)
    void sktv_back(Py_ssize_t p, const double* work, const double* inverse,
                   const double* solved, double* theta)
    void sktv_forget(Py_ssize_t n_blocks, Py_ssize_t p, double w, double y,
                     const double* u, const double* forgetting, double* gram,
                     double* moment)
    void sktv_student_density(Py_ssize_t n, double y, double noise, double prior,
                              double nu, double count, double keep, double cap,
                              const double* prediction, const double* leverage,
                              double* squares, double* density)
    void sktv_gauss_density(Py_ssize_t n, double y, double rate,
                            const double* prediction, double* density)
    void sktv_clip(Py_ssize_t n, double low, double high, double* prediction)
    void sktv_share_prior(Py_ssize_t n, double share, double largest,
                          const double* density, const double* prior, double* weight)
    void sktv_sums(Py_ssize_t n, const double* a, const double* b, double* total,
                   double* dot)

BLOCK = SKTV_BLOCK
cdef double MARGIN = 2.0      # ranges of the labels, beyond which nothing is predicted
cdef double CAP = 5.0         # mean squares that one error counts for, at most
cdef double PRIOR = 0.01      # squares of the common size that a member starts with
cdef double DEGREES = 4.0     # of freedom of a member's errors, at most
cdef double HASTE = 0.5       # forgetting of a tracker's squares in the first p rows
cdef double PATIENCE = 4.0    # excess over the guard that trips it, for a coefficient
cdef double FLAT = 1e-6       # ridge of the intercept
cdef double LARGEST = 1e60    # label in units
cdef double FAR = 5.0        # ranges outside the range of the labels: held back once,
cdef double VERY_FAR = 25.0   # and up to three times if as many times farther
cdef double FAR_FEATURE = 1000.0  # root mean squares of a feature: held back, too
cdef double FADING = 1.0 - 1.0 / 64.0  # of the count of rows that are far off
cdef double DWARFED = 100.0   # times what is recent: start again

# Features so far. Scales follow the rows, the row to be predicted included, for 2 p
# rows; then they stand, but for features that are 0 so far. Walks drift on.
cdef struct Scales:
    double* mean       # (d,) of the differences to the first row
    double* variance   # (d,) mean squared deviation
    double* square     # (d,) mean square
    double* scale      # (d,) root of it, as it stands
    double* largest    # (1,) mean square of the feature with the largest
    double* common     # (1,) root of it, as it stands

cdef struct View:
    double* parameter   # (N_PARAMETERS, K)
    double* prior       # (K,) weights
    double* exists      # (K,) 1, or 0 where a block is filled up
    double* first       # (d,) the first row
    double* theta       # of walks
    double* covariance
    double* gram        # of ridges
    double* moment
    double* level       # of levels
    double* level_variance
    double* weight      # (n_trackers, K)
    double* squares     # (n_trackers, K) of the members' errors
    double* scales      # (4 d + 2,) of the rows learned
    double* with_row    # and with the row at hand
    double* recent      # (d,) largest absolute values since the ladder looked back
    double* prediction  # (K,)
    double* leverage    # (K,)
    double* density     # (K,)
    double* z           # (p,)
    double* z_common    # (p,)
    double* u           # (p,)
    double* drift       # (p,)
    double* drift_common  # (p,)
    double* diagonal    # (p,) of the ridges
    double* work        # p (p + 1) / 2 + 4 p, by blocks


cdef inline Py_ssize_t number(const Ladder* s, Kind kind) noexcept nogil:
    """Of members of a kind, in multiples of the block."""
    return s.n_members[<Py_ssize_t>kind]


cdef inline Py_ssize_t n_walks(const Ladder* s) noexcept nogil:
    return number(s, WALK) + number(s, COMMON_WALK)


cdef inline Py_ssize_t n_all(const Ladder* s) noexcept nogil:
    return n_walks(s) + number(s, RIDGE) + number(s, LEVEL)


cdef Py_ssize_t divide(double* a, const Ladder* s, View* v) noexcept nogil:
    """Places of the arrays from `a` on; their size."""
    cdef Py_ssize_t d = s.n_features, p = d + 1, m = p * (p + 1) // 2
    cdef Py_ssize_t k = n_all(s), walks = n_walks(s)
    v.parameter = a
    v.prior = v.parameter + N_PARAMETERS * k
    v.exists = v.prior + k
    v.first = v.exists + k
    v.theta = v.first + d
    v.covariance = v.theta + walks * p
    v.gram = v.covariance + walks * m
    v.moment = v.gram + number(s, RIDGE) * m
    v.level = v.moment + number(s, RIDGE) * p
    v.level_variance = v.level + number(s, LEVEL)
    v.weight = v.level_variance + number(s, LEVEL)
    v.squares = v.weight + s.n_trackers * k
    v.scales = v.squares + s.n_trackers * k
    v.with_row = v.scales + 4 * d + 2
    v.recent = v.with_row + 4 * d + 2
    v.prediction = v.recent + d
    v.leverage = v.prediction + k
    v.density = v.leverage + k
    v.z = v.density + k
    v.z_common = v.z + p
    v.u = v.z_common + p
    v.drift = v.u + p
    v.drift_common = v.drift + p
    v.diagonal = v.drift_common + p
    v.work = v.diagonal + p
    return v.work + SKTV_BLOCK * (m + 4 * p) - a


cdef inline Scales scales_at(double* a, Py_ssize_t d) noexcept nogil:
    cdef Scales c
    c.mean = a
    c.variance = c.mean + d
    c.square = c.variance + d
    c.scale = c.square + d
    c.largest = c.scale + d
    c.common = c.largest + 1
    return c


cdef Ladder* ladder_of(unsigned char[::1] state, View* v) except NULL:
    cdef Ladder* s = <Ladder*>&state[0]
    cdef Py_ssize_t size = sizeof(Ladder)
    if state.shape[0] >= size:
        size += sizeof(double) * divide(<double*>(s + 1), s, v)
    if state.shape[0] != size:
        raise ValueError(f"State has {state.shape[0]} bytes instead of {size}.")
    return s


def allocate(Py_ssize_t n_features, members, trackers):
    """State before the first row.

    Parameters
    ----------
    n_features : int
    members : sequence of (name, kind, parameters, prior)
    trackers : sequence of (noise, keep, share)

    Returns
    -------
    state : ndarray of uint8
    """
    cdef Ladder head
    cdef View v
    cdef Ladder* s
    cdef unsigned char[::1] view
    cdef Py_ssize_t i, j
    memset(&head, 0, sizeof(Ladder))
    head.n_features = n_features
    head.n_trackers = len(trackers)
    assert head.n_trackers <= MAX_TRACKERS
    groups = [[row for row in members if row[1] == kind] for kind in range(N_KINDS)]
    for i, group in enumerate(groups):
        head.n_members[i] = (len(group) + SKTV_BLOCK - 1) // SKTV_BLOCK * SKTV_BLOCK
    i = sizeof(Ladder) + sizeof(double) * divide(NULL, &head, &v)
    state = np.zeros(i, np.uint8)
    view = state
    (<Ladder*>&view[0])[0] = head
    s = ladder_of(view, &v)
    for i, (noise, keep, share) in enumerate(trackers):
        s.tracker[i].noise, s.tracker[i].keep, s.tracker[i].share = noise, keep, share
    total = sum(row[3] for row in members)
    j = 0
    for i, group in enumerate(groups):
        filled = group + group[:1] * (s.n_members[i] - len(group))
        for k, (_, _, parameters, prior) in enumerate(filled):
            for m, a in enumerate(parameters):
                v.parameter[<Py_ssize_t>m * n_all(s) + j] = a
            v.exists[j] = k < len(group)
            v.prior[j] = v.exists[j] * prior / total
            j += 1
    return state


cdef void start(Ladder* s, View* v, const double* x, Py_ssize_t stride) noexcept nogil:
    """Nothing is known but the features of the first row."""
    cdef Py_ssize_t d = s.n_features, p = d + 1, m = p * (p + 1) // 2, k = n_all(s)
    cdef Py_ssize_t i, j, lane
    cdef double* a
    memset(v.first, 0, (v.work - v.first) * sizeof(double))
    s.round = 0
    s.check = 8
    s.n_held = 0
    s.mean_weight = s.first_label = s.low = s.high = s.output = s.n_far = 0.0
    for i in range(d):
        v.first[i] = x[i * stride]
    for j in range(n_walks(s)):
        lane = j % SKTV_BLOCK
        a = v.covariance + (j - lane) * m + lane
        a[0] = v.parameter[3 * k + j]
        for i in range(1, p):
            a[(i * (i + 1) // 2 + i) * SKTV_BLOCK] = v.parameter[2 * k + j]
    for j in range(number(s, LEVEL)):
        v.level_variance[j] = 1.0
    for i in range(s.n_trackers):
        s.tracker[i].squares = s.tracker[i].count = s.tracker[i].prediction = 0.0
        memcpy(v.weight + i * k, v.prior, k * sizeof(double))


cdef inline double standing(double old, double new, bint follow) noexcept nogil:
    """What is known and doesn't follow any more stands."""
    return new if follow or old == 0.0 else old


cdef void look(Ladder* s, View* v, const double* x, Py_ssize_t stride) noexcept nogil:
    """The row x as the members see it, and the scales with it."""
    cdef Py_ssize_t d = s.n_features, i
    cdef double t = <double>s.round + 1.0
    cdef bint follow = t <= 2.0 * (d + 1)
    cdef Scales old = scales_at(v.scales, d), new = scales_at(v.with_row, d)
    cdef double difference, deviation, r
    new.largest[0] = 0.0
    for i in range(d):
        difference = x[i * stride] - v.first[i]
        deviation = difference - old.mean[i]
        new.mean[i] = old.mean[i] + deviation / t
        new.variance[i] = old.variance[i] + (deviation * deviation * ((t - 1.0) / t)
                                             - old.variance[i]) / t
        new.square[i] = old.square[i] + (x[i * stride] * x[i * stride]
                                         - old.square[i]) / t
        new.largest[0] = max(new.largest[0], new.square[i])
        new.scale[i] = standing(old.scale[i], sqrt(new.square[i]), follow)
        v.u[1 + i] = difference
        r = standing(old.variance[i], new.variance[i], follow)
        v.diagonal[1 + i] = r if r > 0.0 else 1.0
        r = new.scale[i]
        v.z[1 + i] = x[i * stride] / r if r > 0.0 else 0.0
        v.drift[1 + i] = r * r / new.square[i] if r > 0.0 else 1.0
    new.common[0] = standing(old.common[0], sqrt(new.largest[0]), follow)
    r = new.common[0]
    for i in range(d):
        v.z_common[1 + i] = x[i * stride] / r if r > 0.0 else 0.0
        v.drift_common[1 + i] = r * r / new.largest[0] if r > 0.0 else 1.0
    v.z[0] = v.z_common[0] = v.u[0] = 1.0
    v.diagonal[0] = FLAT


cdef double* solve_ridges(Ladder* s, View* v, Py_ssize_t i, bint back) noexcept nogil:
    """Predictions and leverages at u of the i-th block of ridges.

    Returns a place that holds their coefficients if they are asked for.
    """
    cdef Py_ssize_t p = s.n_features + 1, m = p * (p + 1) // 2
    cdef Py_ssize_t j = i * SKTV_BLOCK, first = n_walks(s) + j
    cdef double* inverse = v.work + SKTV_BLOCK * m
    cdef double* forward = inverse + SKTV_BLOCK * p
    cdef double* solved = forward + SKTV_BLOCK * p
    cdef double* theta = solved + SKTV_BLOCK * p
    sktv_cholesky(p, v.diagonal, v.u, v.parameter + n_all(s) + first, v.gram + j * m,
                  v.moment + j * p, v.work, inverse, forward, solved,
                  v.leverage + first, v.prediction + first)
    if back:
        sktv_back(p, v.work, inverse, solved, theta)
    return theta


cdef void predict_row(Ladder* s, View* v, const double* x,
                      Py_ssize_t stride) noexcept nogil:
    """Predictions of members and trackers, and their output."""
    cdef Py_ssize_t p = s.n_features + 1, k = n_all(s), n = number(s, WALK)
    cdef Py_ssize_t walks = n_walks(s), i, j
    cdef double margin = MARGIN * (s.high - s.low)
    cdef double total
    look(s, v, x, stride)
    sktv_block_dot(n // SKTV_BLOCK, p, v.z, v.theta, v.prediction)
    sktv_block_dot(number(s, COMMON_WALK) // SKTV_BLOCK, p, v.z_common,
                   v.theta + n * p, v.prediction + n)
    for i in range(number(s, RIDGE) // SKTV_BLOCK):
        solve_ridges(s, v, i, False)
    n = walks + number(s, RIDGE)
    memcpy(v.prediction + n, v.level, number(s, LEVEL) * sizeof(double))
    for j in range(walks, k):
        v.prediction[j] += s.first_label
    sktv_clip(k, s.low - margin, s.high + margin, v.prediction)
    s.output = 0.0
    for i in range(s.n_trackers):
        sktv_sums(k, v.weight + i * k, v.prediction, &total, &s.tracker[i].prediction)
        s.tracker[i].prediction /= total
        s.output += s.tracker[i].prediction / s.n_trackers


cdef void learn_weights(Ladder* s, View* v, double y, double noise) noexcept nogil:
    """The trackers learn a label whose noise has the given relative variance."""
    cdef Py_ssize_t p = s.n_features + 1, k = n_all(s), i, j
    cdef Tracker* a
    cdef double t = <double>s.round
    cdef double error, square, variance, count, largest, leverage, total, keep
    cdef double least = 1e-13 * max(-s.low, s.high) + 1e-100
    for i in range(s.n_trackers):
        a = &s.tracker[i]
        error = y - a.prediction
        square = error * error / noise
        variance = max(a.squares / a.count if a.count > 0.0 else square, least * least)
        leverage = 0.0
        if a.noise == <long long>OWN:
            sktv_sums(k, v.weight + i * k, v.leverage, &total, &leverage)
            leverage /= total
            square = error * error / (noise + leverage)
            count = PRIOR + a.count
            sktv_student_density(k, y, noise, PRIOR * variance, min(count, DEGREES),
                                 count, a.keep,
                                 CAP / a.count if a.count > 3.0 else 1e100,
                                 v.prediction, v.leverage, v.squares + i * k, v.density)
        else:
            sktv_gauss_density(k, y, 0.5 / (noise * variance), v.prediction, v.density)
        largest = -1e301
        for j in range(k):
            if v.exists[j] > 0.0:
                largest = max(largest, v.density[j])
        sktv_share_prior(k, max(a.share, 1.0 / t), largest, v.density, v.prior,
                         v.weight + i * k)
        if a.count > 3.0:
            square = min(square, CAP * variance)
        keep = min(a.keep, HASTE) if t <= p else a.keep
        a.squares = keep * a.squares + square
        a.count = keep * a.count + 1.0


cdef void learn_row(Ladder* s, View* v, const double* x, Py_ssize_t stride, double y,
                    double w) noexcept nogil:
    """Learn the label of the row that was predicted last."""
    cdef Py_ssize_t d = s.n_features, p = d + 1, m = p * (p + 1) // 2, k = n_all(s)
    cdef Py_ssize_t n = number(s, WALK), walks = n_walks(s), first, j
    cdef double noise, gain, size
    cdef bint new
    # Weights count relative to their mean: a constant weight changes nothing.
    s.mean_weight += (w - s.mean_weight) / (s.round + 1)
    noise = min(max(s.mean_weight / w, 1e-6), 1e6)
    if s.round == 0:
        s.first_label = y
    memcpy(v.scales, v.with_row, (4 * d + 2) * sizeof(double))
    sktv_kalman(n // SKTV_BLOCK, p, v.z, v.drift, y, noise, v.parameter + k,
                v.parameter, v.theta, v.covariance, v.work, v.leverage)
    sktv_kalman(number(s, COMMON_WALK) // SKTV_BLOCK, p, v.z_common, v.drift_common, y,
                noise, v.parameter + k + n, v.parameter + n, v.theta + n * p,
                v.covariance + n * m, v.work, v.leverage + n)
    sktv_forget(number(s, RIDGE) // SKTV_BLOCK, p, 1.0 / noise, y - s.first_label, v.u,
                v.parameter + walks, v.gram, v.moment)
    for j in range(walks):
        v.leverage[j] = max(v.leverage[j], 0.0)
    first = walks + number(s, RIDGE)
    for j in range(number(s, LEVEL)):
        v.level_variance[j] += v.parameter[first + j]
        v.leverage[first + j] = v.level_variance[j]
        gain = v.level_variance[j] / (v.level_variance[j] + noise)
        v.level[j] += gain * (y - s.first_label - v.level[j])
        v.level_variance[j] *= 1.0 - gain
    if s.round > 0:
        learn_weights(s, v, y, noise)
    s.low = min(s.low, y)
    s.high = max(s.high, y)
    new = 2 * s.round == s.check
    s.recent_label = fabs(y) if new else max(s.recent_label, fabs(y))
    for j in range(d):
        size = fabs(x[j * stride])
        v.recent[j] = size if new else max(v.recent[j], size)
    s.round += 1


cdef bint held_back(Ladder* s, View* v, const double* x, Py_ssize_t stride,
                    double y) noexcept nogil:
    """Whether a row is so far off that the next ones must confirm it.

    If they do, the ladder starts again. What keeps coming back is no outlier, either:
    more than five rows in the last 64 or so need no other to confirm them.
    """
    cdef double width = s.high - s.low, beyond = max(y - s.high, s.low - y)
    cdef double far = beyond / (FAR * width) if width > 0.0 else 0.0
    cdef Scales c = scales_at(v.scales, s.n_features)
    cdef Py_ssize_t i
    for i in range(s.n_features):
        if c.square[i] > 0.0:
            far = max(far, fabs(x[i * stride]) / (FAR_FEATURE * sqrt(c.square[i])))
    s.n_far *= FADING
    if s.round < 4 or far <= 1.0:
        s.n_held = 0
        return False
    s.n_far += 1.0
    s.n_held += 1
    return s.n_far <= 5.0 and s.n_held <= (3 if far > VERY_FAR else 1)


cdef bint dwarfed(Ladder* s, View* v) noexcept nogil:
    """Whether what is kept is far larger than all of the later half of the rows.

    Then an outlier came among the first rows, or a storm is over. The ladder looks
    back after 8 rows, 16, 32 and so on.
    """
    cdef double size = s.recent_label, limit = DWARFED * DWARFED
    cdef Scales c = scales_at(v.scales, s.n_features)
    cdef Tracker* a
    cdef Py_ssize_t i
    if s.round != s.check:
        return False
    s.check *= 2
    for i in range(s.n_trackers):
        a = &s.tracker[i]
        if size > 0.0 and a.squares > limit * size * size * a.count:
            return True
    for i in range(s.n_features):
        if v.recent[i] > 0.0 and c.square[i] > limit * v.recent[i] * v.recent[i]:
            return True
    return False


cdef inline double unit_of(const Ladder* s) noexcept nogil:
    return s.unit if s.unit > 0.0 else 1.0


cdef double share_of_guard(const Ladder* s) noexcept nogil:
    """How much of the output is the guard's: exponential weights."""
    if not s.tripped:
        return 0.0
    return 1.0 / (1.0 + exp(-max(s.excess / 13.0, -700.0)))


cdef inline double clip(double x, double bound) noexcept nogil:
    return min(max(x, -bound), bound)


cdef double forecast(Ladder* s, View* v, const double* x, Py_ssize_t stride,
                     double guarded) noexcept nogil:
    """Prediction with the guard's. On return s.output is that of the ladder alone."""
    cdef double reach = (1.5 if s.tripped else 5.0) * s.bound
    cdef double share = share_of_guard(s)
    s.output = 0.0
    if s.round > 0:
        predict_row(s, v, x, stride)
        s.output = clip(s.output * unit_of(s), reach)
    return (1.0 - share) * s.output + share * guarded


cdef void account(Ladder* s, double y, double w, double guarded) noexcept nogil:
    """The account of the output against the guard, as in `sktvdenoise.pool`."""
    cdef double x = s.output
    cdef double b = max(s.bound, fabs(y)), largest = max(s.weight_bound, w)
    if s.tripped:
        y = min(max(y, -s.bound), s.bound)
        w = min(w, s.weight_bound)
    if b > 0.0:
        s.excess *= (s.bound / b) * (s.bound / b) * (s.weight_bound / largest)
        s.excess += w / largest * ((guarded - x) / b) * ((y - x + y - guarded) / b)
    s.bound = b
    s.weight_bound = largest
    if not s.tripped and s.excess > PATIENCE * (s.n_features + 1):
        s.tripped = True
        s.excess = 0.0


def learn(unsigned char[::1] state, const double[:, :] X, const double[:] y,
          const double[:] sample_weight, const double[:] guard, double[:] out):
    """Run rows through a ladder, in place.

    guard[i] is the guard's prediction of y[i], out[i] becomes the output's, made before
    y[i] is seen. Rows of weight 0, or held back, are predicted, and not learned.
    """
    cdef View v
    cdef Ladder* s = ladder_of(state, &v)
    cdef Py_ssize_t stride = X.strides[1] // <Py_ssize_t>sizeof(double), i
    cdef int exponent
    cdef double guarded
    cdef const double* x
    with nogil:
        for i in range(X.shape[0]):
            x = &X[i, 0]
            guarded = clip(guard[i], s.bound)
            out[i] = forecast(s, &v, x, stride, guarded)
            if not sample_weight[i] > 0.0:
                continue
            account(s, y[i], sample_weight[i], guarded)
            if s.round > 0 and held_back(s, &v, x, stride, y[i] / unit_of(s)):
                continue
            if (s.round == 0 or fabs(y[i]) > LARGEST * unit_of(s) or s.n_held > 1
                    or dwarfed(s, &v)):
                # In other units, nothing of the past is of any size.
                start(s, &v, x, stride)
                s.unit = 0.0
                look(s, &v, x, stride)
            if y[i] != 0.0 and s.unit == 0.0:
                frexp(y[i], &exponent)
                s.unit = ldexp(1.0, max(exponent, -1020))
            learn_row(s, &v, x, stride, y[i] / unit_of(s), sample_weight[i])


def predict(const unsigned char[::1] state, const double[:, :] X,
            const double[:] guard, double[:] out):
    """Predict rows, each as the next one; guard[i] is the guard's prediction."""
    cdef View v
    cdef unsigned char[::1] copy = np.array(state)
    cdef Ladder* s = ladder_of(copy, &v)
    cdef Py_ssize_t stride = X.strides[1] // <Py_ssize_t>sizeof(double), i
    with nogil:
        for i in range(X.shape[0]):
            out[i] = forecast(s, &v, &X[i, 0], stride, clip(guard[i], s.bound))


cdef void member_weights(const Ladder* s, const View* v, double* w) noexcept nogil:
    cdef Py_ssize_t k = n_all(s), i, j
    for j in range(k):
        w[j] = 0.0
        for i in range(s.n_trackers):
            w[j] += v.weight[i * k + j] / s.n_trackers


def weights(const unsigned char[::1] state):
    """How much of the ladder's next output each member accounts for; the sum is 1."""
    cdef View v
    cdef unsigned char[::1] copy = np.array(state)
    cdef Ladder* s = ladder_of(copy, &v)
    result = np.empty(n_all(s))
    cdef double[::1] view = result
    member_weights(s, &v, &view[0])
    return result[np.asarray(<double[:n_all(s)]>v.exists) > 0.0]


def coefficients(const unsigned char[::1] state):
    """Coefficients and intercept of the ladder: weighted means of the members'."""
    cdef View v
    cdef unsigned char[::1] copy = np.array(state)
    cdef Ladder* s = ladder_of(copy, &v)
    cdef Py_ssize_t d = s.n_features, p = d + 1, n = number(s, WALK)
    cdef Py_ssize_t walks = n_walks(s), levels = walks + number(s, RIDGE), i, j, lane
    cdef Scales c = scales_at(v.scales, d)
    cdef double* w = v.density
    cdef double* theta = v.theta
    cdef double slope, intercept = 0.0
    coef = np.zeros(d)
    cdef double[::1] mean = coef
    if s.round == 0:
        return coef, 0.0
    member_weights(s, &v, w)
    v.diagonal[0] = FLAT
    for i in range(d):
        v.u[1 + i] = 0.0
        v.diagonal[1 + i] = c.variance[i] if c.variance[i] > 0.0 else 1.0
    for j in range(walks):
        lane = j % SKTV_BLOCK
        theta = v.theta + (j - lane) * p + lane
        intercept += w[j] * theta[0]
        for i in range(d):
            slope = c.scale[i] if j < n else c.common[0]
            if slope > 0.0:
                mean[i] += w[j] * theta[(1 + i) * SKTV_BLOCK] / slope
    for j in range(walks, levels):
        lane = (j - walks) % SKTV_BLOCK
        if lane == 0:
            theta = solve_ridges(s, &v, (j - walks) // SKTV_BLOCK, True)
        intercept += w[j] * (s.first_label + theta[lane])
        for i in range(d):
            slope = theta[(1 + i) * SKTV_BLOCK + lane]
            mean[i] += w[j] * slope
            intercept -= w[j] * slope * v.first[i]
    for j in range(number(s, LEVEL)):
        intercept += w[levels + j] * (s.first_label + v.level[j])
    return coef * s.unit, intercept * s.unit
