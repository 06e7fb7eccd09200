# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Kernels of the breakpoints: clean and summarise a stream, segment the summary.

Legend: y a label, z a cleaned label, s the scale of y - median, M the most
pieces, rho the correlation of the noise with itself one label later.
"""
from libc.math cimport fabs
from libc.string cimport memmove

import numpy as np

cdef enum:
    _CAPACITY = 64   # M
    _WINDOW = 5      # labels in the window of the median
    _DELAY = 2       # labels in it after the middle one
    _SHORTEST = 2    # labels in a segment
CAPACITY, WINDOW, SHORTEST = _CAPACITY, _WINDOW, _SHORTEST

cdef double CLIP = 5.0         # of s: the furthest that z is from the median
cdef double TAIL = 3.0         # of s: the most that one deviation counts in s
cdef double FORGETTING = 0.01  # of s, once it rests on a hundred labels

# A run of cleaned labels. All fields take eight bytes.
cdef struct Piece:
    double row    # row of its first label
    double n      # labels
    double mean
    double m2     # sum of (z - mean)^2
    double tilt   # sum of (t - mean of t) (z - mean)
    double bow    # sum of (t - mean of t)^2 (z - mean)
    double d2     # sum of (z_t - z_{t-1})^2, both inside
    double first  # its first label
    double last   # its last label

PIECE_DTYPE = np.dtype([(name, "f8") for name in (
    "row", "n", "mean", "m2", "tilt", "bow", "d2", "first", "last")])

# The rest of the state of one stream. All fields take eight bytes.
cdef struct Tally:
    long long n_labels
    long long n_cleaned
    long long n_pieces
    double scale           # s
    double bend            # sum of (z_t - 2 z_{t-1} + z_{t-2})^2
    double label[_WINDOW]  # the last labels, the newest at the end
    double row[_WINDOW]    # their rows
    double before[2]       # the last two cleaned labels

TALLY_DTYPE = np.dtype([
    ("n_labels", "i8"), ("n_cleaned", "i8"), ("n_pieces", "i8"),
    ("scale", "f8"), ("bend", "f8"), ("label", "f8", _WINDOW),
    ("row", "f8", _WINDOW), ("before", "f8", 2)])


cdef double median(const double* a) noexcept nogil:
    """Median of five: of the two middle ones of the first four and the fifth."""
    cdef double low = max(min(a[0], a[1]), min(a[2], a[3]))
    cdef double high = min(max(a[0], a[1]), max(a[2], a[3]))
    return max(min(low, high), min(a[4], max(low, high)))


cdef double slope(const double* a) noexcept nogil:
    """Median of the four differences in a window: the mean of the middle two."""
    cdef double low = a[1] - a[0], high = low, d
    cdef Py_ssize_t i
    for i in range(1, _WINDOW - 1):
        d = a[i + 1] - a[i]
        low = min(low, d)
        high = max(high, d)
    return 0.5 * (a[_WINDOW - 1] - a[0] - low - high)


cdef inline double clean(double y, double m, double s) noexcept nogil:
    if s == 0.0 or fabs(y - m) <= CLIP * s:
        return y
    return m + CLIP * s if y > m else m - CLIP * s


cdef inline double spread(double n) noexcept nogil:
    """Sum of t^2 over n labels, t counted from their middle."""
    return n * (n * n - 1.0) / 12.0


cdef inline Piece join(const Piece* a, const Piece* b) noexcept nogil:
    """The piece of the labels of a and of those of b, which follow."""
    cdef Piece c
    cdef double gap = b.mean - a.mean
    cdef double step = b.first - a.last
    cdef double weight = a.n * b.n / (a.n + b.n)
    # From the middle of both to those of a and b: -b.n / 2 and a.n / 2.
    c.row = a.row
    c.n = a.n + b.n
    c.mean = a.mean + gap * (b.n / c.n)
    c.m2 = a.m2 + b.m2 + weight * gap * gap
    c.tilt = a.tilt + b.tilt + 0.5 * weight * c.n * gap
    c.bow = (a.bow - b.n * a.tilt + b.bow + a.n * b.tilt
             + weight * gap * (spread(b.n) / b.n - spread(a.n) / a.n
                               + 0.25 * (a.n * a.n - b.n * b.n)))
    c.d2 = a.d2 + b.d2 + step * step
    c.first = a.first
    c.last = b.last
    return c


cdef inline double joining_cost(const Piece* a, const Piece* b) noexcept nogil:
    """What joining a and b adds to the sum of squares about the means."""
    return a.n * b.n / (a.n + b.n) * (b.mean - a.mean) * (b.mean - a.mean)


cdef Py_ssize_t leftmost_minimum(const double* a, Py_ssize_t n) noexcept nogil:
    """The search for the value runs in four strands; that of the index is short."""
    cdef double w = a[0], x = a[0], y = a[0], z = a[0]
    cdef Py_ssize_t i = 0
    while i + 4 <= n:
        w = min(w, a[i])
        x = min(x, a[i + 1])
        y = min(y, a[i + 2])
        z = min(z, a[i + 3])
        i += 4
    while i < n:
        w = min(w, a[i])
        i += 1
    w = min(min(w, x), min(y, z))
    i = 0
    while a[i] != w:
        i += 1
    return i


cdef void append(Tally* tally, Piece* piece, long long* slot, double* cost,
                 double z, double row) noexcept nogil:
    """Add z as a piece of its own; above M the cheapest neighbours are joined.

    slot[:n_pieces] says where the pieces lie, in order of time, and cost[k] is
    that of joining piece k and the next; the free places follow in slot. Only
    these two short arrays are moved.
    """
    cdef Py_ssize_t n = tally.n_pieces, k
    cdef long long free = slot[n]
    cdef double bend = z - 2.0 * tally.before[1] + tally.before[0]
    if tally.n_cleaned >= 2:
        tally.bend += bend * bend
    tally.before[0] = tally.before[1]
    tally.before[1] = z
    tally.n_cleaned += 1

    piece[free] = Piece(row, 1.0, z, 0.0, 0.0, 0.0, 0.0, z, z)
    if n > 0:
        cost[n - 1] = joining_cost(&piece[slot[n - 1]], &piece[free])
    n += 1
    if n > _CAPACITY:
        k = leftmost_minimum(cost, n - 1)
        free = slot[k + 1]
        piece[slot[k]] = join(&piece[slot[k]], &piece[free])
        n -= 1
        memmove(slot + k + 1, slot + k + 2, (n - k - 1) * sizeof(long long))
        slot[n] = free
        if k > 0:
            cost[k - 1] = joining_cost(&piece[slot[k - 1]], &piece[slot[k]])
        if k < n - 1:
            memmove(cost + k + 1, cost + k + 2, (n - k - 2) * sizeof(double))
            cost[k] = joining_cost(&piece[slot[k]], &piece[slot[k + 1]])
    tally.n_pieces = n


cdef void learn(Tally* tally, Piece* piece, long long* slot, double* cost,
                double y, double row) noexcept nogil:
    """Append the label in the middle of the window that y completes, cleaned."""
    cdef double* label = tally.label
    cdef double deviation[_WINDOW]
    cdef double m, d, r, total = 0.0
    cdef Py_ssize_t i
    memmove(label, label + 1, (_WINDOW - 1) * sizeof(double))
    memmove(tally.row, tally.row + 1, (_WINDOW - 1) * sizeof(double))
    label[_WINDOW - 1] = y
    tally.row[_WINDOW - 1] = row
    tally.n_labels += 1
    if tally.n_labels < _WINDOW:
        return
    m = median(label)
    if tally.n_labels == _WINDOW:
        d = slope(label)
        for i in range(_WINDOW):
            deviation[i] = fabs(label[i] - m - d * (i - _DELAY))
            total += deviation[i]
        tally.scale = min(total / _WINDOW, 2.0 * median(deviation))
        for i in range(_DELAY):
            append(tally, piece, slot, cost, clean(label[i], m + d * (i - _DELAY),
                                                   tally.scale), tally.row[i])
    append(tally, piece, slot, cost, clean(label[_DELAY], m, tally.scale),
           tally.row[_DELAY])
    r = fabs(label[_DELAY] - m)
    if tally.scale == 0.0:
        tally.scale = r
    else:
        tally.scale += (max(FORGETTING, 1.0 / max(tally.n_cleaned, 4))
                        * (min(r, TAIL * tally.scale) - tally.scale))


def push(const double[:] y, const double[:] rows, Tally[::1] tally,
         Piece[::1] piece, long long[::1] slot, double[::1] cost):
    """Learn labels in order, in place: O(M) time each, no memory."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(y.shape[0]):
            learn(&tally[0], &piece[0], &slot[0], &cost[0], y[i], rows[i])


def close(Tally[::1] tally, Piece[::1] piece, long long[::1] slot,
          double[::1] cost):
    """Append the labels behind the middle of the last window, in place."""
    cdef double m, d
    cdef Py_ssize_t i
    if tally[0].n_labels >= _WINDOW:
        m = median(tally[0].label)
        d = slope(tally[0].label)
        for i in range(_DELAY + 1, _WINDOW):
            append(&tally[0], &piece[0], &slot[0], &cost[0],
                   clean(tally[0].label[i], m + d * (i - _DELAY), tally[0].scale),
                   tally[0].row[i])


def join_all(const Piece[::1] pieces):
    """spans[i, j]: pieces i, .., j as one. Entries with j < i are left as they are."""
    cdef Py_ssize_t m = pieces.shape[0], i, j
    table = np.zeros((m, m), dtype=PIECE_DTYPE)
    cdef Piece[:, ::1] spans = table
    with nogil:
        for i in range(m):
            spans[i, i] = pieces[i]
            for j in range(i + 1, m):
                spans[i, j] = join(&spans[i, j - 1], &pieces[j])
    return table


cdef double segment_cost(const Piece* p, double rho, int degree) noexcept nogil:
    """Least of (1 - rho^2) u_1^2 + sum of (u_t - rho u_{t-1})^2.

    u is z minus a polynomial of the degree, 0, 1 or 2. With r = 1 - rho this is
        r^2 sum of u^2 + rho r (u_1^2 + u_n^2) + rho sum of (u_t - u_{t-1})^2,
    of terms that are not negative. When t counts from the middle, the powers of
    t that are even are orthogonal in it to those that are odd.
    """
    cdef double r = 1.0 - rho, n = p.n
    cdef double inside = r * r, ends = 2.0 * rho * r
    cdef double half = 0.5 * (n - 1.0), h2 = half * half
    cdef double middle = 0.5 * (p.first + p.last) - p.mean
    cdef double rise = 0.5 * (p.last - p.first)
    cdef double cost = (inside * p.m2 + ends * (middle * middle + rise * rise)
                        + rho * p.d2)
    # Of 1 with itself, with z, with t^2; of t with itself and z; and so on.
    cdef double one_one = inside * n + ends, one_z = ends * middle
    cdef double t_t, t_z, one_t2, t2_t2, t2_z
    cost -= one_z * (one_z / one_one)
    if degree >= 1 and n > 1.0:
        t_t = inside * spread(n) + ends * h2 + rho * (n - 1.0)
        t_z = inside * p.tilt + ends * half * rise + 2.0 * rho * rise
        cost -= t_z * (t_z / t_t)
    if degree == 2 and n > 2.0:
        one_t2 = inside * spread(n) + ends * h2
        t2_t2 = (inside * spread(n) * (3.0 * n * n - 7.0) / 20.0
                 + ends * h2 * h2 + 4.0 * rho * spread(n - 1.0)
                 - one_t2 * (one_t2 / one_one))
        # Summation by parts turns the differences of t^2 into the labels.
        t2_z = (inside * p.bow + ends * h2 * middle
                + 2.0 * rho * n * middle
                - one_t2 * (one_z / one_one))
        cost -= t2_z * (t2_z / t2_t2)
    return max(cost, 0.0)


def segment_costs(const Piece[:, ::1] spans, double rho, int degree):
    """costs[i, j]: that of pieces i, .., j - 1 as one segment; infinite if none."""
    cdef Py_ssize_t m = spans.shape[0], i, j
    table = np.full((m, m + 1), np.inf)
    cdef double[:, ::1] costs = table
    with nogil:
        for i in range(m):
            for j in range(i, m):
                if spans[i, j].n >= _SHORTEST:
                    costs[i, j + 1] = segment_cost(&spans[i, j], rho, degree)
    return table


def least_costs(const double[:, ::1] costs, Py_ssize_t n_changes):
    """least[k, j]: of the first j pieces in k + 1 segments, for k <= n_changes."""
    cdef Py_ssize_t m = costs.shape[0], i, j, k
    table = np.full((n_changes + 1, m + 1), np.inf)
    cdef double[:, ::1] least = table
    cdef const double* cost
    cdef double* row
    cdef double before
    least[0, :] = costs[0, :]
    with nogil:
        for k in range(1, n_changes + 1):
            row = &least[k, 0]
            for i in range(k, m):
                before = least[k - 1, i]
                cost = &costs[i, 0]
                for j in range(i + 1, m + 1):
                    row[j] = before + cost[j] if before + cost[j] < row[j] else row[j]
    return table
