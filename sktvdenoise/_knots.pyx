# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Kernels on a known path.

Its knots in order; the errors of held-out labels along it; pieces joined under a price.
"""

from libc.math cimport INFINITY, copysign, fabs, sqrt
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset


# ---- knots ----

# The bits of a double >= 0, read as an integer, have the order of the doubles.
cdef struct Event:
    uint64_t key
    double drop


cdef int sort(Event *a, Event *b, Py_ssize_t m) noexcept nogil:
    """Sort a by key, with b as room of the same size. O(m); -1 without memory.

    Distribution by digits of 11 bits, from the lowest on.
    """
    cdef int digit
    cdef uint32_t *count = <uint32_t *>malloc(2048 * sizeof(uint32_t))
    cdef uint32_t total, size
    cdef Py_ssize_t i
    if count == NULL:
        return -1
    for digit in range(6):
        memset(count, 0, 2048 * sizeof(uint32_t))
        for i in range(m):
            count[(a[i].key >> (11 * digit)) & 2047] += 1
        total = 0
        for i in range(2048):
            size = count[i]
            count[i] = total
            total += size
        for i in range(m):
            b[count[(a[i].key >> (11 * digit)) & 2047]] = a[i]
            count[(a[i].key >> (11 * digit)) & 2047] += 1
        a, b = b, a
    free(count)
    return 0


cdef Py_ssize_t insert(Event *a, Py_ssize_t m) noexcept nogil:
    """Sort a by insertion, or give up; return the number of moves, at most 8 (m + 1)."""
    cdef Py_ssize_t i, j, moves = 0
    cdef Event event
    for i in range(1, m):
        if a[i].key >= a[i - 1].key:
            continue
        event = a[i]
        j = i
        while j > 0 and a[j - 1].key > event.key and moves < 8 * m + 8:
            a[j] = a[j - 1]
            j -= 1
            moves += 1
        a[j] = event
    return moves


# A histogram of the keys by their leading bits, joined to buckets of about equal size.
# One pass brings all events to their buckets, each of which fits in the cache.
cdef struct Buckets:
    uint64_t least          # smallest key but 0
    int shift               # a key is in bin (key - least) >> shift, 0 in the first
    int size                # number of buckets
    Py_ssize_t widest       # most events in a bucket
    uint16_t of_bin[16384]
    uint32_t bins[16384]    # number of events in each bin
    uint32_t start[1026]    # first event, and after distribution the end, of a bucket
    uint32_t first[1026]    # first bin of a bucket


cdef inline uint64_t above(uint64_t key, uint64_t least) noexcept nogil:
    return key - least if key > least else 0


cdef inline uint64_t bits_of(double at) noexcept nogil:
    cdef uint64_t key
    at += 0.0                                   # no -0.0
    memcpy(&key, &at, sizeof(double))
    return key


cdef void plan(Buckets *p, const double *vanish, Py_ssize_t m) noexcept nogil:
    """Choose the buckets."""
    cdef double low = INFINITY, high = 0
    cdef Py_ssize_t i, room = max(512, m // 512), filled = 0
    cdef int j
    for i in range(m):
        low = min(low, vanish[i] if vanish[i] > 0 else INFINITY)
        high = max(high, vanish[i])
    p.least, p.shift, p.size, p.widest = bits_of(min(low, high)), 0, 0, 0
    while above(bits_of(high), p.least) >> p.shift > 16383:
        p.shift += 1
    memset(p.bins, 0, sizeof(p.bins))
    for i in range(m):
        p.bins[above(bits_of(vanish[i]), p.least) >> p.shift] += 1
    p.start[0] = p.first[0] = 0
    for j in range(16384):
        if filled and filled + p.bins[j] > room:
            p.size += 1
            p.start[p.size] = p.start[p.size - 1] + <uint32_t>filled
            p.first[p.size] = j
            filled = 0
        filled += p.bins[j]
        p.widest = max(p.widest, filled)
        p.of_bin[j] = p.size
    p.size += 1
    p.first[p.size] = 16384


cdef int arrange(const Buckets *p, int bucket, const double *at, const double *drop,
                 Py_ssize_t m, Event *sorted, Event *room,
                 uint32_t *count) noexcept nogil:
    """Sort the m events of a bucket: by more bits, of which `count` takes 16, and
    insertion; where keys are too alike, by all bits.
    """
    cdef uint64_t least = p.least + (<uint64_t>p.first[bucket] << p.shift)
    cdef uint64_t span = <uint64_t>(p.first[bucket + 1] - p.first[bucket]) << p.shift
    cdef int shift = 0
    cdef Py_ssize_t i, bins = 16
    cdef uint32_t total = 0, size
    cdef Event *target
    while bins < m and bins < 65536:
        bins *= 2
    while (span - 1) >> shift >= <uint64_t>bins:
        shift += 1
    memset(count, 0, bins * sizeof(uint32_t))
    for i in range(m):
        room[i].key, room[i].drop = bits_of(at[i]), drop[i]
        count[above(room[i].key, least) >> shift] += 1
    for i in range(bins):
        size = count[i]
        count[i] = total
        total += size
    for i in range(m):
        size = <uint32_t>(above(room[i].key, least) >> shift)
        target = &sorted[count[size]]
        target.key, target.drop = room[i].key, room[i].drop
        count[size] += 1
    if insert(sorted, m) > 8 * m:
        return sort(sorted, room, m)
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
    cdef Py_ssize_t m = vanish.shape[0], i, k = m + 1, first, size = 0
    cdef double *alphas = &tables[0, 0]         # at first the events by buckets, where
    cdef double *refit = &tables[1, 0]          # their knots will be: alphas and drops
    cdef double *tv = &tables[2, 0]
    cdef double *loss = &tables[3, 0]           # the slopes at first
    cdef Buckets *p = <Buckets *>malloc(sizeof(Buckets))
    cdef uint32_t *count = <uint32_t *>malloc(65536 * sizeof(uint32_t))
    cdef Event *events = NULL
    cdef double at, a, b, now = INFINITY, slope = 0, variation = 0, cost, about
    cdef int j, status = -1
    with nogil:
        if p != NULL and count != NULL:
            plan(p, &vanish[0] if m else NULL, m)
            events = <Event *>malloc((2 * p.widest + 1) * sizeof(Event))
        if events != NULL:
            status = 0
            for i in range(m):
                j = p.of_bin[above(bits_of(vanish[i]), p.least) >> p.shift]
                p.start[j] += 1
                alphas[p.start[j]], refit[p.start[j]] = vanish[i], drop[i]
            for j in range(p.size - 1, -1, -1):
                first = p.start[j - 1] if j else 0
                size = p.start[j] - first
                if arrange(p, j, alphas + first + 1, refit + first + 1, size, events,
                           events + p.widest, count):
                    status = -1
                    break
                for i in range(size - 1, -1, -1):
                    memcpy(&at, &events[i].key, sizeof(double))
                    slope += events[i].drop
                    if at < now:
                        if k <= m:
                            variation += (slope - events[i].drop) * (now - at)
                        k -= 1
                        later[k] = <int>(m - 1 - first - i)
                        alphas[k], refit[k], tv[k] = at, events[i].drop, variation
                        now = at
                    else:
                        refit[k] += events[i].drop
                    loss[k] = slope
            if k > m or now > 0:
                if k <= m:
                    variation += slope * now
                k -= 1
                alphas[k], tv[k], later[k] = 0, variation, <int>m
        if status == 0:
            a = cost = about = 0
            for i in range(k, m + 1):
                b = alphas[i]
                if i > k:
                    cost += loss[i] * (b - a) * (b + a)
                    about += refit[i] * b * b
                alphas[i - k], refit[i - k], tv[i - k] = b, about, tv[i]
                loss[i - k], later[i - k] = cost, later[i]
                a = b
    free(events)
    free(count)
    free(p)
    if status:
        raise MemoryError
    return m + 1 - k


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
