# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Streaming kernel: Follow-the-Leading-History over experts with coefficients.

Legend: x a row (its last entry 1 where there is an intercept), p its length, theta the
coefficients of an expert, z = x'theta, P = U D U' the inverse of the expert's matrix.
The state is one array of bytes: a `Linear`, then blocks of eight experts.
"""
from libc.math cimport INFINITY, fabs, log, sqrt
from libc.string cimport memset

import numpy as np

from sktvdenoise._box cimport project

cdef extern from "_exp.h" nogil:
    double sktv_exp(double x)

cdef extern from "_linear.h" nogil:
    const int SKTV_LANES
    void sktv_lin_dot(Py_ssize_t p, const double* x, const double* theta, double* z)
    void sktv_lin_factor(Py_ssize_t p, const double* x, const double* d,
                         const double* u, double* f, double* leverage)
    void sktv_lin_mix(Py_ssize_t p, const double* share, const double* theta,
                      double* mean)
    void sktv_lin_update(Py_ssize_t p, double noise, const double* g, const double* f,
                         double* d, double* u, double* gain)
    void sktv_lin_step(Py_ssize_t p, const double* direction, const double* step,
                       double* theta)
    void sktv_lin_descend(Py_ssize_t p, double box, const double* x,
                          const double* step, double* theta)
    void sktv_lin_extent(Py_ssize_t p, const double* theta, double* extent)
    void sktv_lin_charge(double rate, const double* loss, double* log_weight,
                         double* weight)
    void sktv_lin_squared(double y, const double* z, double* value, double* slope)
    void sktv_lin_poisson(double y, const double* z, double* value, double* slope)
    void sktv_lin_logistic(double y, const double* z, double* value, double* slope)

LINEAR_DTYPE = np.dtype([
    *((name, "i8") for name in ("clock", "round", "n_alive", "newborn", "p",
                                "intercept", "base", "loss", "pruned",
                                "from_label")),
    *((name, "f8") for name in ("guess", "rate", "weight_unit", "prior", "newton",
                                "convexity", "box", "low", "high", "label_bound",
                                "row_bound", "weight_bound")),
])
LANES = SKTV_LANES

# As in the kernel without covariates.
cdef double SMALLEST_TOTAL = 1e-100
# Logarithm of the weight of a lane without an expert.
cdef double NOBODY = -1e300
# Rows of a smaller weight are passed over: its inverse has no square.
cdef double SMALLEST_WEIGHT = 1e-150

# A range is exceeded where rounding is not all that exceeds it.
cdef double SLACK = 1.0 + 1e-12

# Working memory of a call.
cdef struct Work:
    double* x         # the row
    double* mean      # coefficients of the mixture
    double* f         # U'x, by lanes
    double* gain
    double* z         # predictions, by lanes, as are the next five
    double* raw       # x'theta
    double* leverage
    double* value
    double* slope
    double* step
    double* matrix    # 2 p^2 + 6 p numbers, for projections


cdef Py_ssize_t work_size(Py_ssize_t p) noexcept nogil:
    return 8 * p + 2 * p * p + (2 * p + 6) * SKTV_LANES


cdef Work divide(double[::1] memory, Py_ssize_t p) noexcept nogil:
    cdef Work k
    k.f = &memory[0]
    k.gain = k.f + p * SKTV_LANES
    k.z = k.gain + p * SKTV_LANES
    k.raw = k.z + SKTV_LANES
    k.leverage = k.raw + SKTV_LANES
    k.value = k.leverage + SKTV_LANES
    k.slope = k.value + SKTV_LANES
    k.step = k.slope + SKTV_LANES
    k.x = k.step + SKTV_LANES
    k.mean = k.x + p
    k.matrix = k.mean + p
    return k


cdef inline Py_ssize_t block_size(Linear* s) noexcept nogil:
    cdef Py_ssize_t n = N_FIELDS + s.p
    if s.base != OGD:
        n += s.p * (s.p + 1) // 2
    return n * SKTV_LANES


cdef inline Py_ssize_t n_blocks(Linear* s) noexcept nogil:
    return (s.n_alive + SKTV_LANES - 1) // SKTV_LANES


cdef inline double lane_sum(const double* a) noexcept nogil:
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]))


cdef void read_row(Linear* s, const double[:, :] X, Py_ssize_t i,
                   double* x) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(X.shape[1]):
        x[j] = X[i, j]
    if s.intercept:
        x[s.p - 1] = 1.0


cdef void predict_block(Linear* s, const double* block, Py_ssize_t first,
                        Work* k) noexcept nogil:
    """z of a block's experts, the first of which has the place `first`."""
    cdef const double* theta = block + N_FIELDS * SKTV_LANES
    cdef const double* d = theta + s.p * SKTV_LANES
    cdef const double* origin = block + ORIGIN * SKTV_LANES
    cdef Py_ssize_t l
    sktv_lin_dot(s.p, k.x, theta, k.raw)
    for l in range(SKTV_LANES):
        k.z[l] = k.raw[l]
    if s.base == VAW:
        sktv_lin_factor(s.p, k.x, d, d + s.p * SKTV_LANES, k.f, k.leverage)
        for l in range(SKTV_LANES):
            k.z[l] = origin[l] + (k.raw[l] - origin[l]) / (1.0 + k.leverage[l])
    if s.base == VAW or s.base == RIDGE:
        if first <= s.newborn < first + SKTV_LANES:
            k.z[s.newborn - first] = s.guess
    for l in range(SKTV_LANES):
        k.z[l] = min(max(k.z[l], s.low), s.high)


cdef double predict_row(Linear* s, const double* blocks, Work* k) noexcept nogil:
    cdef double[8] total
    cdef double[8] dot
    cdef Py_ssize_t size = block_size(s), b, l
    cdef const double* share
    memset(total, 0, sizeof(total))
    memset(dot, 0, sizeof(dot))
    for b in range(n_blocks(s)):
        predict_block(s, blocks, b * SKTV_LANES, k)
        share = blocks + SHARE * SKTV_LANES
        for l in range(SKTV_LANES):
            total[l] += share[l]
            dot[l] += share[l] * k.z[l]
        blocks += size
    return lane_sum(dot) / lane_sum(total)


cdef void start_from(Linear* s, double* block, double y, Work* k) noexcept nogil:
    """Let the only expert, which has predicted, have started from its first label."""
    cdef double z = min(max(prediction_of(s, y), -s.box), s.box)
    block[(N_FIELDS + s.p - 1) * SKTV_LANES] = z
    block[ORIGIN * SKTV_LANES] = k.raw[0] = k.z[0] = z


cdef double prediction_of(Linear* s, double y) noexcept nogil:
    """`Loss.start` of squares and counts."""
    return log(max(y, 0.5)) if s.loss == POISSON else y


cdef void learn_block(Linear* s, double* block, double y, double w,
                      Work* k) noexcept nogil:
    """Charge the losses of a block's experts, then let them learn. w is in units."""
    cdef double* mass = block + MASS_SEEN * SKTV_LANES
    cdef double* theta = block + N_FIELDS * SKTV_LANES
    cdef double* d = theta + s.p * SKTV_LANES
    cdef double* u = d + s.p * SKTV_LANES
    cdef Py_ssize_t l
    if s.loss == SQUARED:
        sktv_lin_squared(y, k.z, k.value, k.slope)
    elif s.loss == POISSON:
        sktv_lin_poisson(y, k.z, k.value, k.slope)
    else:
        sktv_lin_logistic(y, k.z, k.value, k.slope)
    sktv_lin_charge(s.rate * w, k.value, block + LOG_SHARE * SKTV_LANES,
                    block + SHARE * SKTV_LANES)
    for l in range(SKTV_LANES):
        mass[l] += w
    if s.base == OGD:
        for l in range(SKTV_LANES):
            k.step[l] = -w * k.slope[l] / (s.convexity * mass[l])
        sktv_lin_descend(s.p, s.box, k.x, k.step, theta)
        return
    if s.base != VAW:
        sktv_lin_factor(s.p, k.x, d, u, k.f, k.leverage)
    if s.base == ONS:
        for l in range(SKTV_LANES):
            k.slope[l] *= w
            k.step[l] = -1.0 / s.newton
        sktv_lin_update(s.p, 1.0, k.slope, k.f, d, u, k.gain)
        sktv_lin_step(s.p, k.gain, k.step, theta)
        sktv_lin_extent(s.p, theta, k.value)
        for l in range(SKTV_LANES):
            if k.value[l] > s.box:
                project(s.p, SKTV_LANES, s.box, d + l, u + l, theta + l, k.matrix)
    else:
        for l in range(SKTV_LANES):
            k.step[l] = y - k.raw[l]
            k.slope[l] = 1.0
        sktv_lin_update(s.p, 1.0 / w, k.slope, k.f, d, u, k.gain)
        sktv_lin_step(s.p, k.gain, k.step, theta)


cdef void mix(Linear* s, const double* blocks, double* mean) noexcept nogil:
    """Coefficients of the mixture."""
    cdef Py_ssize_t size = block_size(s), b, i, l
    cdef double[8] total
    cdef const double* share
    memset(total, 0, sizeof(total))
    memset(mean, 0, s.p * sizeof(double))
    for b in range(n_blocks(s)):
        share = blocks + SHARE * SKTV_LANES
        for l in range(SKTV_LANES):
            total[l] += share[l]
        sktv_lin_mix(s.p, share, blocks + N_FIELDS * SKTV_LANES, mean)
        blocks += size
    for i in range(s.p):
        mean[i] /= lane_sum(total)


cdef void bear(Linear* s, double* blocks, Py_ssize_t place, long long row,
               double share, const double* start) noexcept nogil:
    """A newborn at a place that is free or the end."""
    cdef Py_ssize_t lane = place % SKTV_LANES, size = block_size(s), i
    cdef double* block = blocks + place // SKTV_LANES * size
    if place == s.n_alive:
        s.n_alive += 1
        if lane == 0:
            memset(block, 0, size * sizeof(double))
            for i in range(SKTV_LANES):
                block[LOG_SHARE * SKTV_LANES + i] = NOBODY
    s.newborn = place
    block += lane
    for i in range(size // SKTV_LANES):
        block[i * SKTV_LANES] = 0.0
    block[BIRTH_ROW * SKTV_LANES] = <double>row
    block[BIRTH_ROUND * SKTV_LANES] = <double>(s.round + 1)
    block[LOG_SHARE * SKTV_LANES] = log(share)
    block[SHARE * SKTV_LANES] = share
    if s.intercept and (s.base == VAW or s.base == RIDGE):
        block[ORIGIN * SKTV_LANES] = s.guess
        block[(N_FIELDS + s.p - 1) * SKTV_LANES] = s.guess
    block += N_FIELDS * SKTV_LANES
    if s.base == ONS or s.base == OGD:
        for i in range(s.p):
            block[i * SKTV_LANES] = min(max(start[i], -s.box), s.box)
    if s.base != OGD:
        for i in range(s.p):
            block[(s.p + i) * SKTV_LANES] = s.prior


cdef double rescale(Linear* s, double* blocks) noexcept nogil:
    """Make the largest weight 1; return the new total."""
    cdef Py_ssize_t size = block_size(s), b, l
    cdef double* block
    cdef double[8] total
    cdef double shift = -INFINITY
    memset(total, 0, sizeof(total))
    for b in range(n_blocks(s)):
        block = blocks + b * size + LOG_SHARE * SKTV_LANES
        for l in range(min(SKTV_LANES, s.n_alive - b * SKTV_LANES)):
            shift = max(shift, block[l])
    for b in range(n_blocks(s)):
        block = blocks + b * size + LOG_SHARE * SKTV_LANES
        for l in range(min(SKTV_LANES, s.n_alive - b * SKTV_LANES)):
            block[l] -= shift
            block[SKTV_LANES + l] = sktv_exp(block[l])
            total[l] += block[SKTV_LANES + l]
    return lane_sum(total)


cdef double learn_row(Linear* s, double* blocks, double y, double w,
                      Work* k) noexcept nogil:
    """One round. Returns the prediction made before y is seen."""
    cdef double[8] before
    cdef double[8] after
    cdef double[8] dot
    cdef Py_ssize_t size = block_size(s), place, b, i, l
    cdef double* block = blocks
    cdef double* share
    cdef double total, victim, prediction, move
    memset(before, 0, sizeof(before))
    memset(after, 0, sizeof(after))
    memset(dot, 0, sizeof(dot))
    w /= s.weight_unit
    for b in range(n_blocks(s)):
        share = block + SHARE * SKTV_LANES
        predict_block(s, block, b * SKTV_LANES, k)
        for l in range(SKTV_LANES):
            before[l] += share[l]
            dot[l] += share[l] * k.z[l]
        if s.round == 0 and s.from_label:
            start_from(s, block, y, k)
        learn_block(s, block, y, w, k)
        for l in range(SKTV_LANES):
            after[l] += share[l]
        block += size
    prediction = lane_sum(dot) / lane_sum(before)
    total = lane_sum(after)
    if total < SMALLEST_TOTAL:
        total = rescale(s, blocks)

    s.round += 1
    if s.base == ONS or s.base == OGD:
        mix(s, blocks, k.mean)
        if s.from_label:
            move = prediction_of(s, y)
            for i in range(s.p):
                move -= k.x[i] * k.mean[i]
            k.mean[s.p - 1] += move
    else:
        s.guess = y if s.intercept else 0.0
    place = s.n_alive
    if s.pruned and s.round > 1:
        # Expert i = r 2^k, r odd, dies after round i + 2^(k+2) + 1, so only
        # i = t - 1 - 2^(k+2) can die now, and k is the same for i and t - 1. The
        # newborn takes its place.
        victim = <double>(
            (s.round - 1) - 4 * ((s.round - 1) & -(s.round - 1)))
        if victim >= 1.0:
            place = place_of(s, blocks, victim)
    # 1/(t+1) of the new total for the newborn, t/(t+1) for the others.
    bear(s, blocks, place, s.clock + 1, total / s.round, k.mean)
    return prediction


cdef Py_ssize_t place_of(Linear* s, const double* blocks, double born) noexcept nogil:
    """Place of the expert born in a round, or n_alive."""
    cdef Py_ssize_t size = block_size(s), b, l
    for b in range(n_blocks(s)):
        for l in range(min(SKTV_LANES, s.n_alive - b * SKTV_LANES)):
            if blocks[BIRTH_ROUND * SKTV_LANES + l] == born:
                return b * SKTV_LANES + l
        blocks += size
    return s.n_alive


cdef Linear* header_of(unsigned char[::1] state) except NULL:
    if state.shape[0] < <Py_ssize_t>sizeof(Linear):
        raise ValueError(f"a state has {state.shape[0]} bytes, which is too few")
    return <Linear*>&state[0]


def state_size(Py_ssize_t p, int base, Py_ssize_t n_experts):
    """Bytes of a state with room for experts, a multiple of LANES."""
    cdef Linear s
    s.p, s.base = p, base
    return sizeof(Linear) + n_experts // SKTV_LANES * block_size(&s) * sizeof(double)


def restart(unsigned char[::1] state, double guess):
    """Leave one expert, born in the present row, that predicts as the mixture does.

    Descent and the Newton step start from the mixture's coefficients; the prediction of
    the others of the first row is `guess`.
    """
    cdef Linear* s = header_of(state)
    cdef double* blocks = <double*>(&state[0] + sizeof(Linear))
    cdef double[::1] mean = np.zeros(s.p)
    if s.n_alive > 0:
        mix(s, blocks, &mean[0])
    s.round = s.n_alive = 0
    s.guess = guess
    bear(s, blocks, 0, s.clock, 1.0, &mean[0])


def learn(const double[:, :] X, const double[:] y, const double[:] sample_weight,
          unsigned char[::1] state, double[:] out):
    """Learn rows; out[i] is what is predicted before y[i] is seen.

    Stops before a row that is beyond a bound, or for which the state has no room, and
    returns the number of rows done. Rows of weight 0 are not learned from.
    """
    cdef Linear* s = header_of(state)
    cdef double* blocks = <double*>(&state[0] + sizeof(Linear))
    cdef Py_ssize_t room = ((state.shape[0] - sizeof(Linear)) // sizeof(double)
                            // block_size(s) * SKTV_LANES)
    cdef double[::1] memory = np.empty(work_size(s.p))
    cdef Work k = divide(memory, s.p)
    cdef Py_ssize_t i, j, n = y.shape[0]
    cdef double norm
    with nogil:
        for i in range(n):
            read_row(s, X, i, k.x)
            if sample_weight[i] > SMALLEST_WEIGHT:
                norm = 0.0
                for j in range(s.p):
                    norm += k.x[j] * k.x[j]
                if (s.n_alive == room or fabs(y[i]) > s.label_bound * SLACK
                        or sqrt(norm) > s.row_bound * SLACK
                        or sample_weight[i] > s.weight_bound * SLACK):
                    n = i
                    break
                out[i] = learn_row(s, blocks, y[i], sample_weight[i], &k)
            else:
                out[i] = predict_row(s, blocks, &k)
                # The newborn has still to see its first label.
                blocks[s.newborn // SKTV_LANES * block_size(s) + BIRTH_ROW * SKTV_LANES
                       + s.newborn % SKTV_LANES] = <double>(s.clock + 1)
            s.clock += 1
    return n


def predict(unsigned char[::1] state, const double[:, :] X, double[:] out):
    """Predictions of rows, as that of the next one."""
    cdef Linear* s = header_of(state)
    cdef double* blocks = <double*>(&state[0] + sizeof(Linear))
    cdef double[::1] memory = np.empty(work_size(s.p))
    cdef Work k = divide(memory, s.p)
    cdef Py_ssize_t i
    with nogil:
        for i in range(X.shape[0]):
            read_row(s, X, i, k.x)
            out[i] = predict_row(s, blocks, &k)


def coefficients(unsigned char[::1] state):
    """Coefficients of the mixture, the intercept last if there is one."""
    cdef Linear* s = header_of(state)
    cdef double* blocks = <double*>(&state[0] + sizeof(Linear))
    mean = np.empty(s.p)
    cdef double[::1] view = mean
    mix(s, blocks, &view[0])
    return mean


def experts(unsigned char[::1] state):
    """Coefficients, births and weights of the living, by their places."""
    cdef Linear* s = header_of(state)
    cdef Py_ssize_t size = block_size(s)
    array = np.asarray(state[sizeof(Linear):]).view(np.float64)
    array = array[:n_blocks(s) * size].reshape(n_blocks(s), -1, SKTV_LANES)
    array = np.moveaxis(array, 1, 0).reshape(size // SKTV_LANES, -1)[:, :s.n_alive]
    weights = array[SHARE] / array[SHARE].sum()
    return (array[N_FIELDS:N_FIELDS + s.p].T.copy(),
            array[BIRTH_ROW].astype(np.int64), weights)


def project_box(const double[::1] d, const double[:, ::1] u, double[::1] point,
                double box):
    """Project a point in the norm of (U D U')^-1, as the Newton step does; for tests."""
    cdef Py_ssize_t p = d.shape[0], i, j
    cdef double[::1] memory = np.zeros(work_size(p))
    cdef double[::1] packed = np.zeros(p * (p - 1) // 2 + 1)
    for j in range(p):
        for i in range(j):
            packed[j * (j - 1) // 2 + i] = u[i, j]
    project(p, 1, box, &d[0], &packed[0], &point[0], &memory[0])
