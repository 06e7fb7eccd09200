# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Kernels on a known path.

Its knots in order; the errors of held-out labels along it; pieces joined under a price.
"""

from libc.math cimport INFINITY, copysign, fabs, sqrt
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy


# ---- knots ----

# The bits of a double >= 0, read as an integer, have the order of the doubles.
cdef struct Event:
    uint64_t key
    double drop


cdef int sort(Event *a, Event *b, Py_ssize_t m) noexcept nogil:
    """Sort a by key, with b as room of the same size. O(m); -1 without memory.

    Distribution by digits from the 44 (48) leading bits' lowest on, after which
    few pairs are out of order and insertion ends it. Where many are (keys that
    differ in their last bits only), all digits are used.
    """
    cdef int bits = 8 if m < 4096 else 11, digits = 8 if m < 4096 else 6
    cdef int size = 1 << bits, digit, first, shift
    cdef uint64_t mask = size - 1
    cdef uint32_t *count = <uint32_t *>calloc(digits * size, sizeof(uint32_t))
    cdef uint32_t *start = <uint32_t *>malloc(size * sizeof(uint32_t))
    cdef uint32_t total
    cdef Py_ssize_t i, j, inversions
    cdef Event *source = a
    cdef Event *target = b
    cdef Event event
    if count == NULL or start == NULL:
        free(count)
        free(start)
        return -1
    for i in range(m):
        for digit in range(digits):
            count[digit * size + ((a[i].key >> (bits * digit)) & mask)] += 1
    for first in range(2, -1, -2):
        for digit in range(first, digits):
            shift = bits * digit
            if count[digit * size + ((source[0].key >> shift) & mask)] == m:
                continue                        # all keys share this digit
            total = 0
            for j in range(size):
                start[j] = total
                total += count[digit * size + j]
            for i in range(m):
                j = (source[i].key >> shift) & mask
                target[start[j]] = source[i]
                start[j] += 1
            source, target = target, source
        inversions = 0
        for i in range(1, m):
            inversions += source[i].key < source[i - 1].key
        if inversions <= m // 64:
            break
    for i in range(1, m if inversions else 0):
        event = source[i]
        j = i
        while j > 0 and source[j - 1].key > event.key:
            source[j] = source[j - 1]
            j -= 1
        source[j] = event
    if source != a:
        memcpy(a, source, m * sizeof(Event))
    free(count)
    free(start)
    return 0


def knots(const double[::1] vanish, const double[::1] drop, double[:, ::1] tables,
          int[::1] later):
    """Tables of the path at its knots; return their number K <= m + 1.

    `vanish` and `drop` hold the m events of `erode`, of one or more channels. Of the
    outputs, m + 1 long, the first K entries are written. The rows of `tables` are
    the alphas in ascending order, from 0, without repetitions, and there the loss
    about the means of the pieces, the variation and the loss sum w (y - u)^2; `later`
    is the number of boundaries left.

    On (a, b) between two knots |dTV/d alpha| is the sum of the drops from b on, TV
    falls by (b - a) times this slope and the loss grows by (b^2 - a^2) times it. The
    pieces are their means moved by alpha times a rate, so the loss about the means
    is loss - alpha^2 slope, which grows by drop alpha^2 at a knot. All sums have
    positive terms, slope and TV being summed from the last knot back.
    """
    cdef Py_ssize_t m = vanish.shape[0], i, k = 0
    cdef double *alphas = &tables[0, 0]
    cdef double *refit = &tables[1, 0]          # the drops at first
    cdef double *tv = &tables[2, 0]
    cdef double *loss = &tables[3, 0]           # the slopes at first
    cdef Event *events = <Event *>tv            # sorted in the memory of the results
    cdef double at, slope = 0
    cdef int status = 0
    with nogil:
        for i in range(m):
            at = vanish[i] + 0.0                # no -0.0
            memcpy(&events[i].key, &at, sizeof(double))
            events[i].drop = drop[i]
        if m:
            status = sort(events, <Event *>alphas, m)
        alphas[0] = refit[0] = 0
        later[0] = <int>m
        for i in range(m if status == 0 else 0):
            memcpy(&at, &events[i].key, sizeof(double))
            if at > alphas[k]:
                k += 1
                alphas[k], refit[k], later[k] = at, 0, later[k - 1]
            refit[k] += events[i].drop
            later[k] -= 1
        tv[k] = 0
        for i in range(k, 0, -1):
            slope += refit[i]
            loss[i] = slope
            tv[i - 1] = tv[i] + slope * (alphas[i] - alphas[i - 1])
        loss[0] = refit[0] = 0
        for i in range(1, k + 1):
            loss[i] = loss[i - 1] + loss[i] * (alphas[i] - alphas[i - 1]) * (
                alphas[i] + alphas[i - 1])
            refit[i] = refit[i - 1] + refit[i] * alphas[i] * alphas[i]
    if status:
        raise MemoryError
    return k + 1


# ---- held-out labels ----

def held_out_errors(double[::1] vanish, double[::1] step, double[::1] mean,
                    double[::1] mass, double[::1] level, double[::1] held,
                    double[::1] rest, const double[::1] alphas, double sparsity,
                    double bound, double[::1] errors):
    """Sums of squared errors of held-out labels at ascending `alphas`.

    The pieces, at first the samples, have a mean and a mass, the held-out labels that
    fall in them a mean `level`, a mass `held` and a sum of squares `rest` about it;
    `step` holds the signs of the steps between them. All of these are overwritten:
    pieces only merge, so each alpha goes on from the pieces of the one before. A
    piece predicts its mean, moved by alpha (s_right - s_left) / mass, drawn in by
    `sparsity` and cut at `bound`.
    """
    cdef Py_ssize_t count = mean.shape[0], a, i, j
    cdef double alpha, total, left, right, u, both, d
    with nogil:
        for a in range(alphas.shape[0]):
            alpha = alphas[a]
            j = 0
            for i in range(1, count):
                if vanish[i - 1] > alpha:
                    j += 1
                    vanish[j - 1], step[j - 1] = vanish[i - 1], step[i - 1]
                    mean[j], mass[j] = mean[i], mass[i]
                    level[j], held[j], rest[j] = level[i], held[i], rest[i]
                    continue
                mass[j] += mass[i]
                mean[j] += (mean[i] - mean[j]) * (mass[i] / mass[j])
                if held[i] > 0:
                    both = held[j] + held[i]
                    d = level[i] - level[j]
                    rest[j] += rest[i] + d * d * held[j] * (held[i] / both)
                    level[j] += d * (held[i] / both)
                    held[j] = both
            count = j + 1
            total = left = 0
            for i in range(count):
                right = step[i] if i < count - 1 else 0
                u = mean[i] + alpha * ((right - left) / mass[i])
                u = copysign(min(max(fabs(u) - sparsity, 0), bound), u)
                total += rest[i] + held[i] * (level[i] - u) * (level[i] - u)
                left = right
            errors[a] = total


# ---- joining pieces ----

# On [low, high) the least cost of the items so far, as a function of the level x of
# the last piece, is a x^2 - 2 b x + c; that piece starts with item `start`.
cdef struct Stretch:
    double low, high, a, b, c
    int start


def join(const double[::1] mean, const double[::1] weight, double price, int[::1] start):
    """Join neighbouring items into pieces, at a `price` for every piece.

    Minimises sum w (mean - level)^2 + price (number of pieces) over all ways to cut
    the items into pieces, exactly. start[t] receives the first item of the last
    piece of the best cut of the items 0..t.

    The dynamic programme keeps the least cost as a function of the level of the
    last piece: a new item either stays in that piece or, where all else costs
    more than the minimum and the price, starts one. Few stretches survive, so
    the cost is about linear.
    """
    cdef Py_ssize_t n = mean.shape[0], t
    cdef int count = 1, more, j, room = 64
    cdef double best, value, x, limit, root, low, high, origin = mean[0], m, w
    cdef Stretch *now = <Stretch *>malloc(room * sizeof(Stretch))
    cdef Stretch *then = <Stretch *>malloc(room * sizeof(Stretch))
    cdef Stretch *larger
    cdef Stretch s
    cdef bint failed = now == NULL or then == NULL
    with nogil:
        if not failed:
            now[0].low, now[0].high, now[0].start = -INFINITY, INFINITY, 0
            now[0].a = now[0].b = now[0].c = 0
        for t in range(n if not failed else 0):
            m, w = mean[t] - origin, weight[t]
            best = INFINITY
            for j in range(count):
                now[j].a += w
                now[j].b += w * m
                now[j].c += w * m * m
                x = min(max(now[j].b / now[j].a, now[j].low), now[j].high)
                value = (now[j].a * x - 2 * now[j].b) * x + now[j].c
                if value < best:
                    best = value
                    start[t] = now[j].start
            if 3 * count + 1 > room:
                room = 6 * count + 2
                larger = <Stretch *>realloc(now, room * sizeof(Stretch))
                failed = larger == NULL
                if not failed:
                    now = larger
                    larger = <Stretch *>realloc(then, room * sizeof(Stretch))
                    failed = larger == NULL
                if failed:
                    break
                then = larger
            limit = best + price
            more = 0
            low = -INFINITY                     # up to here `then` is complete
            for j in range(count):
                s = now[j]
                root = s.b * s.b - s.a * (s.c - limit)
                if root <= 0:
                    continue
                root = sqrt(root)
                high = min(s.high, (s.b + root) / s.a)
                s.low = max(s.low, (s.b - root) / s.a)
                s.high = high
                if s.low >= s.high:
                    continue
                if s.low > low:
                    more = begin(then, more, low, s.low, limit, <int>t + 1)
                then[more] = s
                more += 1
                low = s.high
            if low < INFINITY:
                more = begin(then, more, low, INFINITY, limit, <int>t + 1)
            now, then = then, now
            count = more
        free(now)
        free(then)
    if failed:
        raise MemoryError


cdef int begin(Stretch *stretches, int count, double low, double high, double cost,
               int start) noexcept nogil:
    """Append the stretch on which a new piece begins; return the new number."""
    cdef Stretch *s = &stretches[count]
    s.low, s.high, s.start = low, high, start
    s.a = s.b = 0
    s.c = cost
    return count + 1
