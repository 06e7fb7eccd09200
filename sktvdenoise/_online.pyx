# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Streaming kernels: Follow-the-Leading-History over running means.

Legend: t the round of the current epoch (from 1), B the bound of the labels,
S the total of the unnormalised weights.
"""
from libc.math cimport exp, fabs, log, sqrt
from libc.string cimport memmove

import numpy as np

cdef extern from "_exp.h" nogil:
    void sktv_round(Py_ssize_t n, double y, double sample_weight, double rate,
                    double inverse_unit, double* mean, double* mass, double* log_weight,
                    double* weight)
    void sktv_weights(Py_ssize_t n, const double* log_weight, double* weight)
    void sktv_sums(Py_ssize_t n, const double* a, const double* b,
                   double* total, double* dot)
    double sktv_mix(Py_ssize_t n, const double* a, const double* b,
                    double inverse_unit, double z)
    void sktv_winsorised(double square, double gain, double* variance,
                         long long* n_surprises)

STREAM_DTYPE = np.dtype([
    ("clock", "i8"), ("round", "i8"), ("n_alive", "i8"),
    ("last", "f8"), ("forecast", "f8"), ("bound", "f8"), ("weight_bound", "f8"),
])
SPREAD_DTYPE = np.dtype([
    ("n", "i8"), ("n_surprises", "i8"),
    ("variance", "f8"), ("log_stretch", "f8"), ("std", "f8"),
])

# Three experts per power of two live at any time, so that this is enough for
# 2^47 rounds.
PRUNED_CAPACITY = 144

# Weights are rescaled when their total falls below this; what is lost by then
# is smaller than the rounding of the total by 200 orders of magnitude.
cdef double SMALLEST_TOTAL = 1e-100

# Its inverse is a finite number.
cdef double SMALLEST_UNIT = 1e-300


cdef inline Py_ssize_t n_trailing_zeros(long long i) noexcept nogil:
    cdef Py_ssize_t k = 0
    while not i & 1:
        i >>= 1
        k += 1
    return k


cdef inline void restart(Stream* s, double* table,
                         Py_ssize_t capacity) noexcept nogil:
    """Leave one expert, born in the present row, as in the first round."""
    s.round = 0
    s.n_alive = 1
    table[BIRTH * capacity] = <double>s.clock
    table[ROUND * capacity] = 1.0
    table[MEAN * capacity] = s.forecast
    table[MASS * capacity] = 0.0
    table[LOG_WEIGHT * capacity] = 0.0
    table[WEIGHT * capacity] = 1.0


cdef void learn(Stream* s, double* table, Py_ssize_t capacity, double y, double w,
                int code, double rate, bint pruned) noexcept nogil:
    """One round: charge the losses, learn y, add the newborn, prune, forecast.

    At most one expert dies in a round, and it is found a few places from the
    end, so that the cost is that of one pass over the living.
    """
    cdef double* mean = table + MEAN * capacity
    cdef double* log_weight = table + LOG_WEIGHT * capacity
    cdef double* weight = table + WEIGHT * capacity
    cdef double* rounds = table + ROUND * capacity
    cdef double total, dot, newborn, shift, unit = 1.0
    cdef double victim
    cdef Py_ssize_t j, row, n

    if code == FIXED:
        s.bound = max(s.bound, fabs(y))
    else:
        if fabs(y) > s.bound or w > s.weight_bound:
            # The present round becomes the first of a new epoch.
            if fabs(y) > s.bound:
                s.bound = max(2.0 * s.bound, fabs(y))
            if w > s.weight_bound:
                s.weight_bound = max(2.0 * s.weight_bound, w)
            restart(s, table, capacity)
        unit = s.bound
        rate = (0.5 if code == MIXABLE else 0.125) / s.weight_bound
    unit = 1.0 / max(unit, SMALLEST_UNIT)

    s.round += 1
    s.last = y
    n = s.n_alive
    sktv_round(n, y, w, rate, unit, mean, table + MASS * capacity, log_weight,
               weight)
    sktv_sums(n, weight, mean, &total, &dot)
    if total < SMALLEST_TOTAL:
        shift = log_weight[0]
        for j in range(1, n):
            shift = max(shift, log_weight[j])
        for j in range(n):
            log_weight[j] -= shift
        sktv_weights(n, log_weight, weight)
        sktv_sums(n, weight, mean, &total, &dot)
    # 1/(t+1) of the new total for the newborn, t/(t+1) for the others.
    newborn = total / s.round

    if pruned and s.round > 1:
        # Expert i = r 2^k, r odd, dies after round i + 2^(k+2) + 1, so only
        # i = t - 1 - 2^(k+2) can die now, and k is the same for i and t - 1.
        victim = <double>(
            s.round - 1 - (4LL << n_trailing_zeros(s.round - 1)))
        if victim >= 1.0:
            j = n - 1
            while j > 0 and rounds[j] > victim:
                j -= 1
            if rounds[j] == victim:
                n -= 1
                for row in range(N_ROWS):
                    memmove(table + row * capacity + j,
                            table + row * capacity + j + 1,
                            (n - j) * sizeof(double))
                sktv_sums(n, weight, mean, &total, &dot)

    table[BIRTH * capacity + n] = <double>(s.clock + 1)
    rounds[n] = <double>(s.round + 1)
    mean[n] = y
    table[MASS * capacity + n] = 0.0
    log_weight[n] = log(newborn)
    weight[n] = newborn
    s.n_alive = n + 1
    if code == MIXABLE:
        # Vovk's substitution, in units of B. The rate for sample weight 1
        # serves the smaller ones, too.
        dot = log(sktv_mix(n + 1, weight, mean, unit, 1.0)
                  / sktv_mix(n + 1, weight, mean, unit, -1.0))
        s.forecast = s.bound * min(max(0.5 * dot, -1.0), 1.0)
    else:
        s.forecast = (dot + newborn * y) / (total + newborn)


cdef void* struct_of(unsigned char[::1] array, Py_ssize_t size) except NULL:
    """The struct kept in an array of bytes.

    Bytes are taken over at once, where a structured array would have all its fields
    compared in every call.
    """
    if array.shape[0] != size:
        raise ValueError(f"a state has {array.shape[0]} bytes instead of {size}")
    return &array[0]


def new_stream(Py_ssize_t capacity, double bound):
    """State of a stream before its first row: (stream, table of experts).

    The stream is an array of bytes, to be viewed as STREAM_DTYPE.
    """
    stream = np.zeros(1, dtype=STREAM_DTYPE)
    stream["bound"] = bound
    stream["weight_bound"] = 1.0
    stream = stream.view(np.uint8)
    table = np.zeros((N_ROWS, capacity))
    cdef double[:, ::1] t = table
    restart(<Stream*>struct_of(stream, sizeof(Stream)), &t[0, 0], capacity)
    return stream, table


def flh_pass(const double[:] y, const double[:] sample_weight, unsigned char[::1] stream,
             double[:, ::1] table, int code, double rate, bint pruned,
             double[:] predictions, double[:] estimates):
    """Run rows through a stream, in place.

    Row i gets predictions[i], made before y[i] is seen, and estimates[i], the
    forecast after it. A row whose label is NaN or whose weight is 0 is not
    learned from. The caller sees to it that the experts' table has room.
    """
    cdef Stream* s = <Stream*>struct_of(stream, sizeof(Stream))
    cdef double* experts = &table[0, 0]
    cdef Py_ssize_t capacity = table.shape[1]
    cdef Py_ssize_t i
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s.forecast
            if y[i] == y[i] and sample_weight[i] > 0.0:
                learn(s, experts, capacity, y[i], sample_weight[i], code, rate,
                      pruned)
            else:
                # The newborn has still to see its first label.
                experts[BIRTH * capacity + s.n_alive - 1] = <double>(s.clock + 1)
            s.clock += 1
            estimates[i] = s.forecast


def new_spread():
    """Account of the errors of a stream before its first row, as bytes."""
    spread = np.zeros(1, dtype=SPREAD_DTYPE)
    spread["std"] = np.inf
    return spread.view(np.uint8)


cdef void account(Spread* s, double y, double prediction) noexcept nogil:
    """Take the error of a label into account.

    The mean square of the errors is stretched so that nine in ten labels fall
    within 1.645 standard deviations of their prediction: after a miss it grows by a
    factor e^0.09, otherwise it shrinks by e^0.01. The mean has a memory of ten
    labels, so that it follows errors that grow or shrink by a few per cent a label,
    and forgets an enormous first label within a few hundred. The first error, whose
    prediction is arbitrary, is left out.
    """
    cdef double error = fabs(y - prediction)
    if s.n > 0:
        if s.variance > 0.0:
            s.log_stretch += 0.09 if error > 1.645 * s.std else -0.01
        sktv_winsorised(error * error, max(0.1, 1.0 / s.n), &s.variance,
                        &s.n_surprises)
        s.std = sqrt(s.variance) * exp(s.log_stretch)
    s.n += 1


def spread_pass(const double[:] y, const double[:] sample_weight,
                const double[:] predictions, unsigned char[::1] spread, double[:] before,
                double[:] after):
    """Standard deviations before and after each label, in place."""
    cdef Spread* s = <Spread*>struct_of(spread, sizeof(Spread))
    cdef Py_ssize_t i
    with nogil:
        for i in range(y.shape[0]):
            before[i] = s.std
            if y[i] == y[i] and sample_weight[i] > 0.0:
                account(s, y[i], predictions[i])
            after[i] = s.std


def forecast_of(unsigned char[::1] stream):
    """The forecast of a stream."""
    return (<Stream*>struct_of(stream, sizeof(Stream))).forecast


def std_of(unsigned char[::1] spread):
    """The standard deviation of the next label."""
    return (<Spread*>struct_of(spread, sizeof(Spread))).std


def learn_one(double y, unsigned char[::1] stream, double[:, ::1] table,
              unsigned char[::1] spread, int code, double rate, bint pruned):
    """One label of weight 1, as by flh_pass and spread_pass."""
    cdef Stream* s = <Stream*>struct_of(stream, sizeof(Stream))
    account(<Spread*>struct_of(spread, sizeof(Spread)), y, s.forecast)
    learn(s, &table[0, 0], table.shape[1], y, 1.0, code, rate, pruned)
    s.clock += 1
