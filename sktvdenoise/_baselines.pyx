# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Streaming kernels of the methods that the denoiser is compared with.

The state of each is a float64 array whose first entry is the forecast. A pass runs
rows through it, in place: row i gets predictions[i], made before y[i] is seen, and
estimates[i], the forecast after it. A row whose label is NaN or whose weight is 0 is
not learned from.
"""
from libc.math cimport exp, expm1, fabs, ldexp, log, log1p, sqrt

import numpy as np

cpdef enum Gain:
    EWMA = 0      # the given gain; the first label is the level
    CONSTANT = 1  # the given gain
    MEAN = 2      # 1 / t
    ROOT = 3      # 1 / sqrt(t)

# ---------------------------------------------------------------- one level
#
# State: level, mass (sum of the weights, or of their squares), rounds of the batch.


cdef inline double gain_of(double* s, double w, int code, double gain) noexcept nogil:
    s[2] += 1.0
    if code == EWMA:
        # Weight w is w labels in a row.
        if s[2] == 1.0:
            return 1.0
        return gain if w == 1.0 else -expm1(w * log1p(-gain))
    if code == CONSTANT:
        return min(gain * w, 1.0)
    if code == MEAN:
        s[1] += w
        return w / s[1]
    s[1] += w * w
    return w / sqrt(s[1])


def level_pass(const double[:] y, const double[:] sample_weight, double[::1] state,
               int code, double gain, long long batch, double[:] predictions,
               double[:] estimates):
    """level += gain (y - level), started anew after every `batch` labels (0: never)."""
    cdef double* s = &state[0]
    cdef Py_ssize_t i
    cdef double step
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s[0]
            if y[i] == y[i] and sample_weight[i] > 0.0:
                if batch and s[2] == <double>batch:
                    s[1] = s[2] = 0.0
                step = gain_of(s, sample_weight[i], code, gain)
                s[0] = y[i] if step >= 1.0 else s[0] + step * (y[i] - s[0])
            estimates[i] = s[0]


# ---------------------------------------------------------------- sliding mean
#
# Labels come in blocks of the window's size: a window is the end of one block and the
# beginning of the next, so that nothing is ever subtracted from a sum.
# State: mean, filled, sum and mass of the present block; then labels and weights of
# the present block, sums and masses of the ends of the one before.


def sliding_pass(const double[:] y, const double[:] sample_weight, double[::1] state,
                 double[:] predictions, double[:] estimates):
    """The weighted mean of the last labels, O(1) a row on average."""
    cdef Py_ssize_t window = (state.shape[0] - 6) // 4
    cdef double* s = &state[0]
    cdef double* label = s + 4
    cdef double* weight = label + window
    cdef double* sums = weight + window
    cdef double* masses = sums + window + 1
    cdef Py_ssize_t i, j, filled
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s[0]
            if y[i] == y[i] and sample_weight[i] > 0.0:
                filled = <Py_ssize_t>s[1]
                label[filled] = y[i]
                weight[filled] = sample_weight[i]
                s[2] += sample_weight[i] * y[i]
                s[3] += sample_weight[i]
                filled += 1
                if filled == window:
                    sums[window] = masses[window] = 0.0
                    for j in range(window - 1, -1, -1):
                        sums[j] = sums[j + 1] + weight[j] * label[j]
                        masses[j] = masses[j + 1] + weight[j]
                    filled = 0
                    s[2] = s[3] = 0.0
                s[1] = <double>filled
                s[0] = (sums[filled] + s[2]) / (masses[filled] + s[3])
            estimates[i] = s[0]


# ---------------------------------------------------------------- Ader
#
# State: forecast; then the predictions and the log weights of the experts.


def ader_pass(const double[:] y, const double[:] sample_weight, double[::1] state,
              const double[:] steps, double rate, double bound, double[:] predictions,
              double[:] estimates):
    """Gradient descent at each step, weighed by Hedge, on the losses' linear parts."""
    cdef Py_ssize_t n = steps.shape[0], i, j
    cdef double* s = &state[0]
    cdef double* level = s + 1
    cdef double* log_weight = level + n
    cdef double slope, largest, total, dot, weight
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s[0]
            if y[i] == y[i] and sample_weight[i] > 0.0:
                slope = 2.0 * sample_weight[i] * (s[0] - y[i])
                largest = -1e308
                for j in range(n):
                    log_weight[j] -= rate * slope * (level[j] - s[0])
                    largest = max(largest, log_weight[j])
                total = dot = 0.0
                for j in range(n):
                    level[j] = min(max(level[j] - steps[j] * slope, -bound), bound)
                    log_weight[j] -= largest
                    weight = exp(log_weight[j])
                    total += weight
                    dot += weight * level[j]
                s[0] = dot / total
            estimates[i] = s[0]


# ---------------------------------------------------------------- ARROWS
#
# State: forecast, labels in the bin, first label, sum of the labels (all labels less
# the first), sum over complete blocks; then, for each scale, the sums over the halves
# of the block that isn't complete.

cdef enum:
    SIZE = 5
    N_SCALES = 60


cdef inline double shrunken(double half, Py_ssize_t scale,
                            double threshold) noexcept nogil:
    """2^{-j/2} times the soft-thresholded Haar coefficient of a block of size 2^j whose
    halves' sums differ by `half`."""
    cdef double root = sqrt(ldexp(1.0, -<int>scale))
    return root * max(fabs(half) * root - threshold, 0.0)


def arrows_pass(const double[:] y, const double[:] sample_weight, double[::1] state,
                double sigma, double threshold, double[:] predictions,
                double[:] estimates):
    """The mean of a bin that ends where its Haar coefficients show variation.

    Of the coefficients of the centred bin, padded by zeros to length k, those of
    complete blocks don't depend on the centre, for a constant has none; on each of the
    log2 k scales at most one block isn't complete. A row costs O(log k).
    """
    cdef double* s = &state[0]
    cdef double* halves = s + SIZE
    cdef double d, mean, variation, difference, before
    cdef Py_ssize_t i, j
    cdef long long m, half, inside
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s[0]
            if y[i] == y[i] and sample_weight[i] > 0.0:
                if s[1] == 0.0:
                    s[2] = y[i]
                m = <long long>s[1]
                d = y[i] - s[2]
                before = s[3]
                s[3] += d
                mean = s[3] / <double>(m + 1)
                variation = 0.0
                j = 1
                while m >= 1LL << (j - 1):
                    half = 1LL << (j - 1)
                    if m == half:
                        # The first block of this scale: all so far is its left half.
                        halves[2 * j] = before
                        halves[2 * j + 1] = 0.0
                    inside = m & (2 * half - 1)
                    halves[2 * j + (inside >= half)] += d
                    inside += 1
                    difference = halves[2 * j] - halves[2 * j + 1]
                    if inside == 2 * half:
                        s[4] += shrunken(difference, j, threshold)
                        halves[2 * j] = halves[2 * j + 1] = 0.0
                    else:
                        # Less the mean: `inside` of the left half up to `half`, minus
                        # what is in the right one.
                        difference -= mean * <double>(half - llabs(inside - half))
                        variation += shrunken(difference, j, threshold)
                    j += 1
                if s[4] + variation > sigma_limit(sigma, j - 1):
                    s[1] = s[3] = s[4] = 0.0
                    s[0] = y[i]
                else:
                    s[1] += 1.0
                    s[0] = s[2] + mean
            estimates[i] = s[0]


cdef inline long long llabs(long long x) noexcept nogil:
    return -x if x < 0 else x


cdef inline double sigma_limit(double sigma, Py_ssize_t scale) noexcept nogil:
    """sigma / sqrt(k), k = 2^scale: the most that may be seen of the variation."""
    return sigma * sqrt(ldexp(1.0, -<int>scale))


# ---------------------------------------------------------------- isotonic
#
# State: forecast, labels seen; then for each of the levels 0, .., K the logarithm of
# the total weight, exp(- rate * loss), of the monotone sequences that end there.


cdef double isotonic_forecast(double* s, Py_ssize_t K, long long n,
                              double bound) noexcept nogil:
    """Mean of the next level over all monotone sequences of length n.

    C(m + K - k, m) of them go on from level k over the m rounds after the next; it is
    built from k = K down, by factors (m + K - k) / (K - k).
    """
    cdef double* log_weight = s + 2
    cdef double m = <double>max(n - <long long>s[1] - 1, 0)
    cdef double ways = 0.0, shift = log_weight[K], total = 0.0, dot = 0.0, weight
    cdef Py_ssize_t k
    for k in range(K, -1, -1):
        if k < K:
            ways += log((m + <double>(K - k)) / <double>(K - k))
        weight = log_weight[k] + ways
        if weight > shift:
            total *= exp(shift - weight)
            dot *= exp(shift - weight)
            shift = weight
        weight = exp(weight - shift)
        total += weight
        dot += weight * <double>(2 * k - K)
    return bound * (dot / total / <double>K)


def isotonic_start(double[::1] state, long long n, double bound):
    """State before the first row: every level has one beginning."""
    state[:] = 0.0
    state[0] = isotonic_forecast(&state[0], state.shape[0] - 3, n, bound)


def isotonic_pass(const double[:] y, const double[:] sample_weight, double[::1] state,
                  long long n, double bound, double rate, double[:] predictions,
                  double[:] estimates):
    """Exponential weights over the non-decreasing sequences of levels, O(K) a row."""
    cdef double* s = &state[0]
    cdef double* log_weight = s + 2
    cdef Py_ssize_t K = state.shape[0] - 3, i, k
    cdef double error, below, weight
    with nogil:
        for i in range(y.shape[0]):
            predictions[i] = s[0]
            if y[i] == y[i] and sample_weight[i] > 0.0:
                below = -1e308
                for k in range(K + 1):
                    error = y[i] - bound * (<double>(2 * k - K) / <double>K)
                    weight = log_weight[k] - rate * sample_weight[i] * (error * error)
                    # A sequence reaches level k from every level up to it.
                    if weight > below:
                        below = weight + log1p(exp(below - weight))
                    else:
                        below += log1p(exp(weight - below))
                    log_weight[k] = below
                below = log_weight[K]
                for k in range(K + 1):
                    log_weight[k] -= below
                s[1] += 1.0
                s[0] = isotonic_forecast(s, K, n, bound)
            estimates[i] = s[0]


def new_arrows():
    """State of `arrows_pass` before its first row."""
    return np.zeros(SIZE + 2 * (N_SCALES + 1))
