# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Kernels of the one-dimensional fused lasso under a budget, TV(u) <= C.

Pieces of a solution are kept as arrays of the sample that each ends with, of their
values and of their masses. They lie on a stretch of the path on which TV falls
linearly with alpha, by sum_g (s_g - s_{g-1})^2 / W_g; s_g is the sign of the step after
piece g (0 after the last), W_g its mass.
"""

from libc.math cimport INFINITY, fabs, nextafter
from libc.string cimport memcpy

import numpy as np


cdef extern from "_scan.h" nogil:
    int taut_solve(const double *y, const double *w, Py_ssize_t n, double alpha,
                   double *u, Py_ssize_t *visits)


cdef const double *pointer(const double[::1] w) noexcept:
    """The first weight, or NULL for unit weights."""
    if w is None:
        return NULL
    return &w[0]


# ---- where the multiplier may be ----

def coarsen(const double[::1] y, const double[::1] w, Py_ssize_t size,
            double[::1] mean, double[::1] mass):
    """Means and masses of runs of `size` samples, the last one shorter."""
    cdef Py_ssize_t n = y.shape[0], i = 0, j, end
    cdef const double *weight = pointer(w)
    cdef double ref, total, m
    with nogil:
        for j in range(mean.shape[0]):
            end = min(i + size, n)
            ref, total, m = y[i], 0, end - i
            if weight == NULL:
                for i in range(i, end):
                    total += y[i] - ref
            else:
                m = 0
                for i in range(i, end):
                    total += weight[i] * (y[i] - ref)
                    m += weight[i]
            i = end
            mean[j], mass[j] = ref + total / m, m


def multiplier(const double[::1] vanish, const double[::1] drop, double budget):
    """The alpha >= 0 at which sum of drop (vanish - alpha)+ equals `budget`.

    Newton's method from the left: the sum is convex, so no step overshoots, and
    events left behind are dropped. The last step is exact because nothing was left
    behind. Of many events, one in 64 tell where to start; a start beyond the root
    shows.
    """
    cdef Py_ssize_t m = vanish.shape[0], kept = 0, j
    cdef double alpha = 0, tv = 0, slope, d
    cdef double[:, ::1] events
    cdef double *at
    cdef double *fall
    cdef bint stays
    if m > 20000:
        alpha = 0.8 * multiplier(
            np.array(vanish[::64]), np.array(drop[::64]), budget / 64)
    with nogil:
        for j in range(m if alpha > 0 else 0):
            tv += drop[j] * max(vanish[j] - alpha, 0)
            kept += vanish[j] > alpha
        if tv <= budget:
            alpha, kept = 0, m
    events = np.empty((2, kept + 1))            # one more is written, not kept
    at, fall = &events[0, 0], &events[1, 0]
    with nogil:
        kept = 0
        for j in range(m):
            at[kept], fall[kept] = vanish[j], drop[j]
            kept += vanish[j] > alpha
        while kept:
            m = kept
            tv = slope = 0
            for j in range(m):
                tv += fall[j] * (at[j] - alpha)
                slope += fall[j]
            if tv <= budget:
                break
            alpha += (tv - budget) / slope
            kept = 0
            for j in range(m):
                at[kept], fall[kept] = at[j], fall[j]
                kept += at[j] > alpha
            if kept == m:
                break
    return alpha


# ---- pieces ----

cdef (double, double) measure(const double *value, const double *mass,
                              Py_ssize_t m) noexcept nogil:
    """Variation of the pieces, and how fast it falls."""
    cdef double tv = 0, fall = 0, before = 0, after
    cdef Py_ssize_t j
    for j in range(m - 1):
        tv += fabs(value[j + 1] - value[j])
        after = 2 * (value[j + 1] > value[j]) - 1
        fall += (after - before) * (after - before) / mass[j]
        before = after
    return tv, fall + before * before / mass[m - 1]


def gather(const double[::1] y, const double[::1] w, const double[::1] u,
           Py_ssize_t[::1] last, double[::1] value, double[::1] mass):
    """Write the pieces of the solution `u`; return their number, TV and its fall.

    The arrays have the length of `y`. A step that `y` has not is none if it is tiny;
    else rounding has moved a boundary, and the number is 0.
    """
    cdef Py_ssize_t n = y.shape[0], steps = 0, m = 0, i, j, first = 0
    cdef const double *weight = pointer(w)
    cdef double tv, fall, k
    cdef int moved = 0, ends
    with nogil:
        for i in range(n - 1):
            last[steps] = i
            steps += u[i + 1] != u[i]
        last[steps] = n - 1
        for j in range(steps + 1):
            i = last[j]
            last[m], value[m], mass[m] = i, u[i], i + 1 - first
            ends = j == steps or ((u[i + 1] > u[i]) == (y[i + 1] > y[i])
                                  and y[i + 1] != y[i])
            if not ends:
                moved |= fabs(u[i + 1] - u[i]) > 1e-12 * (fabs(u[i + 1]) + fabs(u[i]))
                continue
            if weight != NULL:
                k = 0
                for i in range(first, last[m] + 1):
                    k += weight[i]
                mass[m] = k
            first = last[m] + 1
            m += 1
        tv, fall = measure(&value[0], &mass[0], m)
    return 0 if moved else m, tv, fall


cdef struct Move:
    double *v               # values of the m pieces
    double *c               # their masses
    double *u               # their values `delta` later
    unsigned char *stands   # boundaries with the piece before that are taken to stand
    Py_ssize_t m, work      # work: pieces that were solved for
    double delta


cdef inline double sign(const Move *p, Py_ssize_t j) noexcept nogil:
    """Sign of the step after piece j; 0 before the first and after the last."""
    if j < 0 or j >= p.m - 1:
        return 0
    return 2 * (p.v[j + 1] > p.v[j]) - 1


cdef int move_between(Move *p, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Solve for the pieces first..last, between two boundaries that stand.

    These pull at the pieces at its ends.
    """
    cdef double *v = p.v
    cdef double *c = p.c
    cdef double low = v[first], high = v[last]
    cdef Py_ssize_t visits
    cdef int status = 0
    p.work += last + 1 - first
    v[first] -= p.delta * sign(p, first - 1) / c[first]
    v[last] += p.delta * sign(p, last) / c[last]
    if first == last:
        p.u[first] = v[first]
    else:
        status = taut_solve(v + first, c + first, last + 1 - first, p.delta,
                            p.u + first, &visits)
    v[last] = high
    v[first] = low
    return status


cdef int move_all(Move *p) noexcept nogil:
    """Write all u; -1 without memory.

    Most boundaries stand, so each that would if all speeds were kept is taken to. The
    pieces between two such are a problem of their own, most often one piece. Where
    their solutions step as they should at all boundaries taken to stand, they are the
    solution, for its optimality conditions hold; where not, neighbours are joined.
    """
    cdef Py_ssize_t j, first = 0, start, visits
    cdef double after = 0, next = sign(p, 0), x, ahead
    p.stands[0] = 1
    ahead = p.v[0] + p.delta * next / p.c[0]
    for j in range(p.m):
        after, x, next = next, ahead, 0
        if j < p.m - 1:
            next = sign(p, j + 1)
            ahead = p.v[j + 1] + p.delta * (next - after) / p.c[j + 1]
            p.stands[j + 1] = after * (ahead - x) > 0
            if not p.stands[j + 1]:
                continue
        if first == j:
            p.u[j] = x
        elif move_between(p, first, j):
            return -1
        start = first
        while start and not sign(p, start - 1) * (p.u[start] - p.u[start - 1]) > 0:
            p.stands[start] = 0
            start -= 1
            while not p.stands[start]:
                start -= 1
            if p.work > 2 * p.m:
                return taut_solve(p.v, p.c, p.m, p.delta, p.u, &visits)
            if move_between(p, start, j):
                return -1
        first = j + 1
    return 0


def advance(Py_ssize_t[::1] last, double[::1] value, double[::1] mass,
            Py_ssize_t m, double tv, double fall, double delta, double[::1] room,
            unsigned char[::1] stands):
    """Move the `m` pieces of a solution on by `delta` > 0, in place.

    Takes and returns their number, TV and its fall. `room` and `stands` have at least
    the length of the pieces.
    """
    cdef Move p
    cdef Py_ssize_t j, k = 0
    cdef double *v = &value[0]
    cdef double *c = &mass[0]
    cdef double *u = &room[0]
    cdef double weight = 0
    cdef int status, step
    p.v, p.c, p.u, p.stands, p.m, p.work, p.delta = v, c, u, &stands[0], m, 0, delta
    with nogil:
        status = move_all(&p)
        if p.work == 0:                         # all boundaries stand
            k = m
            tv -= delta * fall
            memcpy(v, u, m * sizeof(double))
        else:
            for j in range(m):                  # k <= j, so what lies ahead is intact
                weight += c[j]
                step = j == m - 1 or ((u[j + 1] > u[j]) & (v[j + 1] > v[j])
                                      | (u[j + 1] < u[j]) & (v[j + 1] < v[j]))
                v[k], c[k], last[k] = u[j], weight, last[j]
                k += step
                weight *= 1 - step
            tv, fall = measure(v, c, k)
    if status:
        raise MemoryError
    return k, tv, fall


def average(const double[::1] y, const double[::1] w, const Py_ssize_t[::1] last,
            double[::1] mean, double[::1] rate):
    """Means of the pieces that end at `last` and at the end of `y`, and their speeds.

    At alpha a piece has the value mean + alpha rate. Returns how fast TV falls.
    """
    cdef Py_ssize_t n = y.shape[0], i = 0, j, end
    cdef const double *weight = pointer(w)
    cdef double ref, total, k, m, fall = 0, before = 0, after
    with nogil:
        for j in range(last.shape[0] + 1):
            end = last[j] + 1 if j < last.shape[0] else n
            after = 0 if end == n else (1 if y[end] > y[end - 1] else -1)
            ref, total, m = y[i], 0, 0
            for i in range(i, end):
                k = weight[i] if weight != NULL else 1
                total += k * (y[i] - ref)
                m += k
            i = end
            mean[j], rate[j] = ref + total / m, (after - before) / m
            fall += (after - before) * rate[j]
            before = after
    return fall


def place(const double[::1] mean, const double[::1] rate, double alpha,
          double[::1] value):
    """Write the values mean + alpha rate; return their TV, by compensated sums."""
    cdef Py_ssize_t j
    cdef double total = 0, rest = 0, step, sum, before
    with nogil:
        before = value[0] = mean[0] + alpha * rate[0]
        for j in range(1, mean.shape[0]):
            value[j] = mean[j] + alpha * rate[j]
            step = fabs(value[j] - before)
            before = value[j]
            sum = total + step
            rest += (total - sum) + step if total >= step else (step - sum) + total
            total = sum
    return total + rest


def settle(double[::1] value, const double[::1] rate, double excess):
    """Take what rounding left of TV - C from the values; return what remains.

    Each piece that follows alpha takes its share, or a unit in its last place until
    nothing is left. No step is lost.
    """
    cdef Py_ssize_t m = value.shape[0], j, sides = 0
    cdef double share, old, new, moved, least
    with nogil:
        for j in range(m):
            sides += ((j > 0) + (j < m - 1)) * (rate[j] != 0)
        share = excess / sides if sides else 0
        for j in range(m):
            if rate[j] == 0:
                continue
            old = value[j]
            new = old + (share if rate[j] > 0 else -share)
            if new == old:
                new = nextafter(old, INFINITY if (rate[j] > 0) == (excess > 0)
                                else -INFINITY)
            moved = fabs(new - old)
            least = INFINITY
            if j > 0:
                least = fabs(old - value[j - 1])
            if j < m - 1:
                least = min(least, fabs(value[j + 1] - old))
            moved *= (j > 0) + (j < m - 1)
            if moved < 2 * fabs(excess) and moved < least:
                value[j] = new
                excess -= moved if excess > 0 else -moved
    return excess


def spread(const double[::1] value, const Py_ssize_t[::1] last, double[::1] out):
    """Give the samples of the pieces that end at `last` (and at the end) their value."""
    cdef Py_ssize_t n = out.shape[0], i = 0, j, end
    cdef double v
    with nogil:
        for j in range(value.shape[0]):
            end = last[j] + 1 if j < last.shape[0] else n
            v = value[j]
            for i in range(i, end):
                out[i] = v
            i = end
