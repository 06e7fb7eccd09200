# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Streaming kernels: sleeping experts over the geometric cover.

Legend: interval i of level k holds the cells i 2^k, .., (i + 1) 2^k - 1; cells count
from 1, i >= 1. Its expert predicts the mean of the labels in the interval and is
awake where the cell of the label is inside.

All experts begin with weight 1, so that no horizon is needed: to divide by the number
of experts changes no prediction.
"""
from libc.math cimport fabs, log, sqrt

import numpy as np

cdef extern from "_exp.h" nogil:
    double sktv_exp(double x)
    void sktv_winsorised(double square, double gain, double* variance,
                         long long* n_surprises)

cdef enum:
    MAX_LEVELS = 64  # of a cell below 2^53, and the newborn

cpdef enum Rate:
    FIXED = 0   # the given learning rate
    THEORY = 1  # 1 / (8 B^2)
    AUTO = 2    # 1 / (2 variance of the errors)

# Fields of the state, float64.
cdef enum:
    FORECAST = 0      # for the next round; of SleepingExperts only
    ROUND = 1         # that comes next, from 1; of SleepingExperts only
    BOUND = 2         # B in force
    WEIGHT_BOUND = 3  # largest sample weight in force
    LAST = 4          # last label learned
    N_NODES = 5       # in use
    N_ERRORS = 6      # labels accounted for in the variance
    VARIANCE = 7      # winsorised mean square of the errors
    N_SURPRISES = 8
    TABLE = 9         # of SleepingExperts: mean, mass, log weight of each level
    SIZE = 201        # TABLE + 3 MAX_LEVELS

# A node stands for the intervals around the cell CELL of the levels LOWEST to HIGHEST,
# which hold the same labels and so have the same expert. LEFT and RIGHT are the nodes
# of the halves of the lowest interval; both are there unless LOWEST is 0.
cdef enum:
    CELL = 0
    LOWEST = 1
    HIGHEST = 2
    LEFT = 3
    RIGHT = 4
    FIRST_CELL = 5  # the smallest and the largest cell with a label
    LAST_CELL = 6
    N_LINKS = 7

cdef enum:
    MEAN = 0
    MASS = 1
    LOG_WEIGHT = 2
    FIRST_LABEL = 3  # newest label of FIRST_CELL and of LAST_CELL
    LAST_LABEL = 4
    N_FIELDS = 5

# The awake experts of one cell, gathered; `count` intervals share an expert.
cdef struct Awake:
    Py_ssize_t n
    double mean[MAX_LEVELS]
    double mass[MAX_LEVELS]
    double log_weight[MAX_LEVELS]
    double count[MAX_LEVELS]
    double weight[MAX_LEVELS]
    double shift
    double total
    long long node[MAX_LEVELS]
    long long newborn    # levels 0, .., newborn - 1 have no label yet
    double neighbour     # label of the nearest cell that has one
    double distance      # of that cell; negative if there is none


cdef inline void weigh(Awake* a) noexcept nogil:
    """Weights, in units of exp(shift), and their total."""
    cdef Py_ssize_t j
    a.shift = a.log_weight[0]
    for j in range(1, a.n):
        a.shift = max(a.shift, a.log_weight[j])
    a.total = 0.0
    for j in range(a.n):
        a.weight[j] = a.count[j] * sktv_exp(a.log_weight[j] - a.shift)
        a.total += a.weight[j]


cdef inline double mixture(Awake* a) noexcept nogil:
    """Mean of the predictions, by weight."""
    cdef double dot = 0.0
    cdef Py_ssize_t j
    for j in range(a.n):
        dot += a.weight[j] * a.mean[j]
    return dot / a.total


cdef inline void learn(Awake* a, double y, double w, double rate,
                       double inverse_unit) noexcept nogil:
    """Charge the awake for their losses at unchanged total weight; take y into means.

    Losses are counted from the least one, (y - m)^2 - (y - best)^2 being the product
    (best - m) (2 y - m - best): what an outlier adds to all of them cancels exactly.
    """
    cdef double before = a.shift + log(a.total), best = a.mean[0], excess
    cdef Py_ssize_t j
    for j in range(1, a.n):
        if fabs(y - a.mean[j]) < fabs(y - best):
            best = a.mean[j]
    for j in range(a.n):
        excess = ((best - a.mean[j]) * inverse_unit
                  * ((2.0 * y - a.mean[j] - best) * inverse_unit))
        # Negative only by rounding.
        a.log_weight[j] -= min(rate * (w * max(excess, 0.0)), 1e300)
    weigh(a)
    before -= a.shift + log(a.total)
    for j in range(a.n):
        a.log_weight[j] += before
        a.mass[j] += w
        # The first label is the mean, whatever was predicted.
        a.mean[j] = y if a.mass[j] == w else a.mean[j] + w / a.mass[j] * (y - a.mean[j])


cdef inline bint outgrown(double* s, double y, double w, int code) noexcept nogil:
    """Raise the bounds as far as needed. True if the experts have to start again."""
    cdef bint grown = fabs(y) > s[BOUND] or w > s[WEIGHT_BOUND]
    if fabs(y) > s[BOUND]:
        s[BOUND] = max(2.0 * s[BOUND], fabs(y))
    if w > s[WEIGHT_BOUND]:
        s[WEIGHT_BOUND] = max(2.0 * s[WEIGHT_BOUND], w)
    return grown and code == THEORY


cdef inline void round_of(double* s, Awake* a, double y, double w, int code,
                          double rate, double prediction) noexcept nogil:
    """Learn y, at a rate that was known before."""
    cdef long long n_surprises = <long long>s[N_SURPRISES]
    cdef double error = y - prediction
    if code == THEORY:
        learn(a, y, w, 0.125 / s[WEIGHT_BOUND], 1.0 / max(s[BOUND], 1e-300))
    elif code == AUTO:
        # Before any error is known, and where there is none, all are alike.
        if s[VARIANCE] > 0.0:
            learn(a, y, w, 0.5, 1.0 / sqrt(s[VARIANCE]))
        else:
            learn(a, y, w, 0.0, 1.0)
        # The first prediction is arbitrary.
        if s[N_ERRORS] > 0.0:
            sktv_winsorised(error * error, max(0.01, 1.0 / s[N_ERRORS]), &s[VARIANCE],
                            &n_surprises)
            s[N_SURPRISES] = <double>n_surprises
        s[N_ERRORS] += 1.0
    else:
        learn(a, y, w, rate, 1.0)
    s[LAST] = y


# ---------------------------------------------------------------- in order of time


cdef inline void wake(Awake* a, double* table, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t k
    a.n = n
    for k in range(n):
        a.mean[k] = table[3 * k]
        a.mass[k] = table[3 * k + 1]
        a.log_weight[k] = table[3 * k + 2]
        a.count[k] = 1.0
    weigh(a)


cdef inline Py_ssize_t n_levels(long long t) noexcept nogil:
    """Number of intervals around cell t: the length of t in bits."""
    cdef Py_ssize_t n = 0
    while t:
        t >>= 1
        n += 1
    return n


cdef inline void give_birth(double* s, long long t, double prediction) noexcept nogil:
    """New experts for the intervals that begin in round t."""
    cdef double* table = s + TABLE
    cdef Py_ssize_t k = 0
    while True:
        table[3 * k] = prediction
        table[3 * k + 1] = 0.0
        table[3 * k + 2] = 0.0
        if t & 1:
            break
        t >>= 1
        k += 1


def sleeping_pass(const double[:] y, const double[:] sample_weight, double[::1] state,
                  int code, double rate, double[:] predictions,
                  double[:] estimates):
    """Run rows through the cover in order of time, in place: O(log t) a row.

    Row i gets predictions[i], made before y[i] is seen, and estimates[i], the forecast
    after it. A row whose label is NaN or whose weight is 0 is not a round.
    """
    cdef double* s = &state[0]
    cdef Awake awake
    cdef Py_ssize_t i
    cdef long long t
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s[FORECAST]
            if y[i] == y[i] and sample_weight[i] > 0.0:
                if outgrown(s, y[i], sample_weight[i], code):
                    s[ROUND] = 1.0
                    give_birth(s, 1, s[FORECAST])
                t = <long long>s[ROUND]
                wake(&awake, s + TABLE, n_levels(t))
                round_of(s, &awake, y[i], sample_weight[i], code, rate, s[FORECAST])
                put_back(&awake, s + TABLE)
                give_birth(s, t + 1, y[i])
                s[ROUND] = <double>(t + 1)
                wake(&awake, s + TABLE, n_levels(t + 1))
                s[FORECAST] = mixture(&awake)
            estimates[i] = s[FORECAST]


cdef inline void put_back(Awake* a, double* table) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(a.n):
        table[3 * k] = a.mean[k]
        table[3 * k + 1] = a.mass[k]
        table[3 * k + 2] = a.log_weight[k]


# ---------------------------------------------------------------- in any order
#
# The cells of one side of the origin with the same number of bits, k + 1, are interval
# 1 of level k: the root of a binary tree of intervals. Of this tree only the nodes that
# tell labels apart are kept, at most two for every cell that has a label.


cdef inline Py_ssize_t highest_bit(long long x) noexcept nogil:
    return n_levels(x) - 1


cdef inline void look(Awake* a, double label, double distance) noexcept nogil:
    """Take the nearer neighbour; the mean of two at the same distance."""
    if a.distance < 0.0 or distance < a.distance:
        a.distance = distance
        a.neighbour = label
    elif distance == a.distance:
        a.neighbour = 0.5 * (a.neighbour + label)


cdef inline void look_below(Awake* a, long long node, long long u,
                            const long long[:, ::1] links,
                            const double[:, ::1] experts) noexcept nogil:
    look(a, experts[node, LAST_LABEL], <double>(u - links[node, LAST_CELL]))


cdef inline void look_above(Awake* a, long long node, long long u,
                            const long long[:, ::1] links,
                            const double[:, ::1] experts) noexcept nogil:
    look(a, experts[node, FIRST_LABEL], <double>(links[node, FIRST_CELL] - u))


cdef void find_outside(Awake* a, long long u, int side, Py_ssize_t octave,
                       const long long[:, ::1] roots, const long long[:, ::1] links,
                       const double[:, ::1] experts) noexcept nogil:
    """Neighbours in the trees beside that of cell u: one below, one above."""
    cdef Py_ssize_t k
    cdef long long node = -1
    cdef bint crossed = False
    for k in range(octave - 1, -1, -1):
        if roots[side, k] >= 0:
            look_below(a, roots[side, k], u, links, experts)
            break
    else:
        # Cell 1 of the other side is next to cell 1 of this side.
        for k in range(roots.shape[1]):
            node = roots[1 - side, k]
            if node >= 0:
                look(a, experts[node, FIRST_LABEL],
                     <double>(links[node, FIRST_CELL] + u - 1))
                break
    for k in range(octave + 1, roots.shape[1]):
        if roots[side, k] >= 0:
            look_above(a, roots[side, k], u, links, experts)
            break


cdef inline void take(Awake* a, long long node, double count,
                      const double[:, ::1] experts) noexcept nogil:
    a.node[a.n] = node
    a.count[a.n] = count
    a.mean[a.n] = experts[node, MEAN]
    a.mass[a.n] = experts[node, MASS]
    a.log_weight[a.n] = experts[node, LOG_WEIGHT]
    a.n += 1


cdef void gather(Awake* a, long long u, int side, bint nearest, double last,
                 const long long[:, ::1] roots, const long long[:, ::1] links,
                 const double[:, ::1] experts) noexcept nogil:
    """The experts awake in cell u, those without labels last and as one."""
    cdef Py_ssize_t octave = highest_bit(u), d
    cdef long long node = roots[side, octave], other
    a.n = 0
    a.newborn = octave + 1
    a.distance = -1.0
    a.neighbour = last
    while node >= 0:
        if (u ^ links[node, CELL]) >> links[node, LOWEST]:
            # Above the highest bit in which they differ the intervals are the same.
            d = highest_bit(u ^ links[node, CELL])
            take(a, node, <double>(links[node, HIGHEST] - d), experts)
            a.newborn = d + 1
            if u > links[node, CELL]:
                look_below(a, node, u, links, experts)
            else:
                look_above(a, node, u, links, experts)
            break
        take(a, node, <double>(links[node, HIGHEST] - links[node, LOWEST] + 1), experts)
        if links[node, LOWEST] == 0:
            a.newborn = 0
            weigh(a)
            return
        if (u >> (links[node, LOWEST] - 1)) & 1:
            look_below(a, links[node, LEFT], u, links, experts)
            node = links[node, RIGHT]
        else:
            look_above(a, links[node, RIGHT], u, links, experts)
            node = links[node, LEFT]
    if nearest:
        find_outside(a, u, side, octave, roots, links, experts)
    else:
        a.neighbour = last
    a.node[a.n] = -1
    a.mean[a.n] = a.neighbour
    a.mass[a.n] = 0.0
    a.log_weight[a.n] = 0.0
    a.count[a.n] = <double>a.newborn
    a.n += 1
    weigh(a)


cdef inline long long add_node(double* s, long long u, long long highest,
                               long long[:, ::1] links) noexcept nogil:
    """A leaf of the levels 0 to `highest` around cell u."""
    cdef long long node = <long long>s[N_NODES]
    s[N_NODES] += 1.0
    links[node, CELL] = links[node, FIRST_CELL] = links[node, LAST_CELL] = u
    links[node, LOWEST] = 0
    links[node, HIGHEST] = highest
    links[node, LEFT] = links[node, RIGHT] = -1
    return node


cdef long long insert(double* s, Awake* a, long long u, int side,
                      long long[:, ::1] roots, long long[:, ::1] links,
                      double[:, ::1] experts) noexcept nogil:
    """A leaf for the levels without labels around cell u."""
    cdef long long d = a.newborn - 1, leaf = add_node(s, u, d, links)
    cdef long long node, low
    cdef Py_ssize_t field
    if a.n == 1:
        roots[side, d] = leaf
        return leaf
    # The node above is split: what lies below level d + 1 is a node of its own.
    node = a.node[a.n - 2]
    low = add_node(s, u, d, links)
    for field in range(N_LINKS):
        links[low, field] = links[node, field]
    links[low, HIGHEST] = d
    for field in range(N_FIELDS):
        experts[low, field] = experts[node, field]
    links[node, LOWEST] = d + 1
    if (u >> d) & 1:
        links[node, LEFT], links[node, RIGHT] = low, leaf
    else:
        links[node, LEFT], links[node, RIGHT] = leaf, low
    return leaf


cdef void store(double* s, Awake* a, long long u, int side, double y,
                long long[:, ::1] roots, long long[:, ::1] links,
                double[:, ::1] experts) noexcept nogil:
    cdef long long node
    cdef Py_ssize_t j
    if a.newborn:
        a.node[a.n - 1] = insert(s, a, u, side, roots, links, experts)
    for j in range(a.n):
        node = a.node[j]
        experts[node, MEAN] = a.mean[j]
        experts[node, MASS] = a.mass[j]
        experts[node, LOG_WEIGHT] = a.log_weight[j]
        if u <= links[node, FIRST_CELL]:
            links[node, FIRST_CELL] = u
            experts[node, FIRST_LABEL] = y
        if u >= links[node, LAST_CELL]:
            links[node, LAST_CELL] = u
            experts[node, LAST_LABEL] = y


cdef inline long long cell_of(long long offset, int* side) noexcept nogil:
    """Cell and side of an offset from the origin: 0, 1, .. and -1, -2, .. are 1, 2, ..
    """
    side[0] = offset < 0
    return -offset if offset < 0 else offset + 1


def cover_pass(const double[:] y, const double[:] sample_weight,
               const long long[:] offsets, double[::1] state, long long[:, ::1] roots,
               long long[:, ::1] links, double[:, ::1] experts, int code,
               double rate, bint nearest, double[:] predictions, double[:] estimates):
    """Run rows through the cover in any order, in place: O(log range) a row.

    Row i gets predictions[i], made for its offset before y[i] is seen, and
    estimates[i], the prediction for the same offset after it. A row whose label is NaN
    or whose weight is 0 is not learned from. The caller sees to it that there is room
    for two nodes a row.
    """
    cdef double* s = &state[0]
    cdef Awake awake
    cdef Py_ssize_t i
    cdef long long u
    cdef int side = 0
    with nogil:
        for i in range(y.shape[0]):
            u = cell_of(offsets[i], &side)
            gather(&awake, u, side, nearest, s[LAST], roots, links, experts)
            predictions[i] = mixture(&awake)
            if y[i] == y[i] and sample_weight[i] > 0.0:
                if outgrown(s, y[i], sample_weight[i], code):
                    roots[:, :] = -1
                    s[N_NODES] = 0.0
                    gather(&awake, u, side, nearest, s[LAST], roots, links, experts)
                round_of(s, &awake, y[i], sample_weight[i], code, rate, predictions[i])
                store(s, &awake, u, side, y[i], roots, links, experts)
                estimates[i] = mixture(&awake)
            else:
                estimates[i] = predictions[i]


def cover_predict(const long long[:] offsets, double[::1] state,
                  const long long[:, ::1] roots, const long long[:, ::1] links,
                  const double[:, ::1] experts, bint nearest, double[:] predictions):
    """Predictions at offsets, from what has been learned; nothing changes."""
    cdef Awake awake
    cdef Py_ssize_t i
    cdef int side = 0
    cdef long long u
    with nogil:
        for i in range(offsets.shape[0]):
            u = cell_of(offsets[i], &side)
            gather(&awake, u, side, nearest, state[LAST], roots, links, experts)
            predictions[i] = mixture(&awake)


def new_sleeping(double bound):
    """State of `sleeping_pass` before its first row."""
    state = np.zeros(SIZE)
    state[[ROUND, WEIGHT_BOUND]] = 1.0
    state[BOUND] = bound
    return state


def new_cover(double bound):
    """State of `cover_pass` before its first row: (state, roots, links, experts)."""
    state = np.zeros(TABLE)
    state[WEIGHT_BOUND] = 1.0
    state[BOUND] = bound
    roots = np.full((2, MAX_LEVELS), -1, dtype=np.int64)
    return state, roots, np.zeros((2, N_LINKS), dtype=np.int64), np.zeros((2, N_FIELDS))


def n_nodes(const double[::1] state):
    """Nodes in use."""
    return <Py_ssize_t>state[N_NODES]


def bound_of(const double[::1] state):
    """B in force."""
    return state[BOUND]


def sleeping_weights(double[::1] state):
    """Weights of the experts awake in the next round, in order of level."""
    cdef Py_ssize_t n = n_levels(<long long>state[ROUND])
    return np.exp(np.asarray(state)[TABLE + 2:TABLE + 3 * n:3])
