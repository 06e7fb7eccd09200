# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Kernels of the offline one-dimensional fused lasso.

minimise 1/2 sum_i w_i (y_i - u_i)^2 + alpha sum_i |u_{i+1} - u_i|

All take finite float64 data without copies; w is None for unit weights and
positive otherwise. Boundary i lies between the samples i and i + 1.

As alpha grows, groups of equal u only merge, and the sign of u_{i+1} - u_i never
changes before boundary i vanishes: it is the sign of y_{i+1} - y_i. So the alphas
at which the boundaries vanish are the whole path.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc, realloc

import numpy as np


cdef extern from "_scan.h" nogil:
    int taut_solve(const double *y, const double *w, Py_ssize_t n, double alpha,
                   double *u, Py_ssize_t *visits)


cdef const double *pointer(const double[::1] w) noexcept:
    """The first weight, or NULL for unit weights."""
    if w is None:
        return NULL
    return &w[0]


def solve(const double[::1] y, const double[::1] w, double alpha, double[::1] out):
    """Write the solution at `alpha` > 0 to `out`; return the number of visits.

    A visit is one sample read; there are O(n) whatever the data. `out` must not
    share memory with `y` or `w`.
    """
    cdef Py_ssize_t n = y.shape[0], visits = 0
    cdef const double *weight = pointer(w)
    cdef int status
    with nogil:
        status = taut_solve(&y[0], weight, n, alpha, &out[0], &visits)
    if status:
        raise MemoryError
    return visits


def denoise(y, alpha):
    """The solution of a plain one-dimensional `y`, or None where there is more to do.

    For calls by the million on short signals: it declines whatever is not a finite
    contiguous array of float64 and a finite alpha > 0.
    """
    cdef const double[::1] signal
    cdef double[::1] out
    cdef double largest = 0, penalty
    cdef Py_ssize_t i
    if type(y) is not np.ndarray or y.dtype.char != "d" or not y.dtype.isnative:
        return None
    if y.ndim != 1 or not y.size or not (y.flags.c_contiguous and y.flags.aligned):
        return None
    if not isinstance(alpha, (float, int)):
        return None
    penalty = alpha
    if not 0 < penalty < INFINITY:
        return None
    signal = y
    for i in range(signal.shape[0]):
        if not fabs(signal[i]) <= largest:      # also if it is NaN
            largest = fabs(signal[i])
            if not largest < 1e140:
                return None
    u = np.empty_like(y)
    out = u
    solve(signal, None, penalty, out)
    return u


# ---- the whole path ----

# A maximum falls and a minimum rises at speed 1/k, k half the weight of the group
# (the whole weight for the two end groups); all other groups stand still. At alpha
# = l the group was at height v. While it stays an extremum it cannot be at height
# h before l + k |v - h|, for absorbing others only makes k larger. A group that is
# past h already has reached it before l: the signed distance counts.
cdef struct Group:
    double v, l, k
    int p, n                # neighbouring groups, 0 for none
    int a, b                # neighbouring extrema, 0 for none; valid for extrema
    int s                   # first sample
    int g                   # 1 maximum, -1 minimum, 0 standing


cdef inline double reach(const Group *x, double sg, double h) noexcept nogil:
    """When x, a minimum once heights are multiplied by sg, would be at height h."""
    return x.l + x.k * (h - sg * x.v)


# Groups are made as the cursor comes near and their nodes used again once they have
# merged: on noise few are alive at a time, so that all stay in the nearest cache.
cdef struct Line:
    const double *y
    const double *w
    Py_ssize_t n, i         # number of samples, the first that is in no group yet
    double origin
    Group *node             # node[0] stands for "none" and is never reached
    Py_ssize_t room         # nodes allocated
    int used, spare         # nodes ever used, first one to use again
    int alive, last, crest  # number of groups, the last one, the last extremum


cdef int extend(Line *line, double *vanish, double *drop) noexcept nogil:
    """Append the next run of equal y as a group; -1 without memory.

    Heights are relative to the smallest (or largest) y when all have one sign, so
    that large offsets cost no digits. As they may round to ties, types are told
    from y.
    """
    cdef const double *y = line.y
    cdef const double *w = line.w
    cdef Py_ssize_t i = line.i, n = line.n
    cdef double value = y[i], k = w[i] if w != NULL else 1
    cdef int j = line.spare, left = 0, right = 0
    cdef Group *x
    if j:
        line.spare = line.node[j].n
    else:
        line.used += 1
        j = line.used
        if j == line.room:
            line.room *= 2
            x = <Group *>realloc(line.node, line.room * sizeof(Group))
            if x == NULL:
                return -1
            line.node = x
    x = &line.node[j]
    if i:
        left = 1 if value > y[i - 1] else -1
    x.s = <int>i
    i += 1
    while i < n and y[i] == value:
        vanish[i - 1] = drop[i - 1] = 0
        k += w[i] if w != NULL else 1
        i += 1
    if i < n:
        right = 1 if value > y[i] else -1
    x.v = value - line.origin
    x.l = 0
    x.k = k / 2 if left and right else k
    x.g = (left + right) / 2 if left and right else left + right
    x.p, x.n, x.b = line.last, 0, 0
    line.node[line.last].n = j
    if x.g:
        x.a = line.crest
        line.node[line.crest].b = j
        line.crest = j
    line.last = j
    line.i = i
    line.alive += 1
    return 0


cdef inline void merged(Line *line, int j) noexcept nogil:
    """The group j is part of another; its node may be used again."""
    line.node[j].n = line.spare
    line.spare = j
    line.alive -= 1


cdef void absorb(Line *line, int X, int S, double t, double *vanish,
                 double *drop) noexcept nogil:
    """The extremum X takes in its standing neighbour S at time t."""
    cdef Group *node = line.node
    cdef Group *x = &node[X]
    cdef bint end = x.p == 0 or x.n == 0
    cdef double gain = 2 * node[S].k if end else node[S].k
    cdef Py_ssize_t i
    if x.p == S:
        i = x.s - 1
        x.s, x.p = node[S].s, node[S].p
        node[x.p].n = X
    else:
        i = node[S].s - 1
        x.n = node[S].n
        node[x.n].p = X
    vanish[i] = t
    drop[i] = (1 if end else 2) * gain / (x.k * (x.k + gain))
    x.v, x.l = node[S].v, t
    x.k += gain
    merged(line, S)


cdef int unite(Line *line, int X, int Y, double h, double t, double *vanish,
               double *drop) noexcept nogil:
    """X and the adjacent extremum Y meet at height h and time t; X is the union.

    Returns the extremum to look at next: the leftmost whose neighbours changed.
    """
    cdef Group *node = line.node
    cdef Group *x = &node[X]
    cdef Group *y = &node[Y]
    cdef Group *left = y if x.p == Y else x
    cdef Group *right = x if x.p == Y else y
    cdef int a = left.a, b = right.b, side, S
    cdef bint ends = left.p == 0, ende = right.n == 0
    cdef double first = left.k, second = right.k
    cdef Py_ssize_t i = right.s - 1
    vanish[i] = t
    x.v, x.l = h, t
    if ends and ende:
        drop[i] = 1 / first + 1 / second
    elif ends or ende:
        if ende:
            first, second = second, first       # first: the end, second: interior
        x.g = right.g if ends else left.g
        x.k = first + 2 * second
        drop[i] = 2 / second + 2 * second / (first * x.k)
    else:
        x.g = 0
        x.k = first + second
        drop[i] = 2 * x.k / (first * second)
    x.s, x.p, x.n = left.s, left.p, right.n
    x.a, x.b = a, b
    node[x.p].n = X
    node[x.n].p = X
    merged(line, Y)
    if x.g:
        node[a].b = X
        node[b].a = X
        return a if a else X
    node[a].b = b
    node[b].a = a
    for side in range(2):                       # equal standing neighbours are tied
        S = x.n if side else x.p
        # Levels of decimal labels that are equal differ by their rounding, 4 ulp.
        if (S and node[S].g == 0
                and fabs(node[S].v - h) <= 9e-16 * (fabs(h) + fabs(line.origin))):
            i = (node[S].s if side else x.s) - 1
            vanish[i], drop[i] = t, 0
            if side:
                x.n = node[S].n
                node[x.n].p = X
            else:
                x.s, x.p = node[S].s, node[S].p
                node[x.p].n = X
            x.k += node[S].k
            merged(line, S)
    return a if a else b


cdef Py_ssize_t erosion(Line *line, double *vanish, double *drop) noexcept nogil:
    """Merge groups until one is left; return the number of checks, -1 without memory.

    Events are executed out of global order, each group with its own clock. An event
    of X at height h and time t is final once no adjacent extremum can be at h before
    t (reach is a lower bound). The earliest event of all always passes. A failed
    check can only come out differently after an adjacent extremum moved on, so the
    cursor goes one extremum back after progress and forward otherwise, and the
    number of checks is O(n). `slack` admits rounding; it grows if near-ties block
    every event.

    A check looks at most two extrema ahead; so far the groups are made before it.
    """
    cdef int X = 1, A, B, P, Q, S, Y, O, Z, N
    cdef bint progress = False
    cdef double slack = 8e-16, tol = 0, sg, v, h, q, t, meet
    cdef double low = line.y[0], high = line.y[0]
    cdef Group *node = line.node
    cdef Group *x
    cdef Py_ssize_t i, checks = 0
    for i in range(line.n):
        low = min(low, line.y[i])
        high = max(high, line.y[i])
    line.origin = low if low > 0 else (high if high < 0 else 0)
    node[0].v = node[0].k = 0
    node[0].l = INFINITY
    node[0].g = 0
    if extend(line, vanish, drop):
        return -1
    while True:
        while line.i < line.n and (node[X].b == 0 or node[node[X].b].b == 0):
            if extend(line, vanish, drop):
                return -1
            node = line.node
        if line.alive == 1:
            return checks
        checks += 1
        x = &node[X]
        A, B, P, Q, sg = x.a, x.b, x.p, x.n, x.g
        v = sg * x.v                            # sg turns minima into maxima
        h = -INFINITY                           # the nearest standing neighbour
        S = Y = 0
        if P != A:
            S, h = P, sg * node[P].v
        if Q != B and sg * node[Q].v > h:
            S, h = Q, sg * node[Q].v
        if S:
            t = x.l + x.k * (v - h)
            if min(reach(&node[A], sg, h), reach(&node[B], sg, h)) >= t * (1 - slack):
                absorb(line, X, S, t, vanish, drop)
                progress = True
                continue
        # X meets an adjacent extremum Y; Z, N: the extremum and the group behind Y,
        # O: the extremum on the other side of X
        meet = -INFINITY
        if A and P == A:
            Y, O, Z, N = A, B, node[A].a, node[A].p
            meet = ((x.l - node[A].l + x.k * v + node[A].k * sg * node[A].v)
                    / (x.k + node[A].k))
        if B and Q == B:
            q = ((x.l - node[B].l + x.k * v + node[B].k * sg * node[B].v)
                 / (x.k + node[B].k))
            if q > meet:
                Y, O, Z, N, meet = B, A, node[B].b, node[B].n, q
        if Y and meet >= h - tol:
            meet = max(max(min(meet, v), sg * node[Y].v), h)
            q = sg * node[N].v if N != Z else INFINITY
            if q >= meet - tol:
                meet = min(meet, q)
                t = max(x.l + x.k * (v - meet), node[Y].l)
                if min(reach(&node[O], sg, meet),
                       reach(&node[Z], -sg, -meet)) >= t * (1 - slack):
                    X = unite(line, X, Y, sg * meet, t, vanish, drop)
                    progress = False
                    continue
        X = A if progress and A else B
        progress = False
        if X == 0:
            slack *= 16
            tol = slack * max(high - line.origin, line.origin - low)
            X = node[0].n                       # the first group, always an extremum


def erode(const double[::1] y, const double[::1] w, double[::1] vanish,
          double[::1] drop):
    """Write the whole path to `vanish` and `drop`, each with n - 1 entries.

    vanish[i] is the alpha from which on u_i = u_{i+1}; drop[i] is the amount by
    which |d TV / d alpha| falls there, so that
    TV(alpha) = sum of drop (vanish - alpha) over vanish > alpha.
    Ties of the data give zeros. Returns the number of checks, O(n).
    """
    cdef Py_ssize_t n = y.shape[0], checks
    cdef const double *weight = pointer(w)
    cdef Line line
    if n < 2:
        return 0
    if n >= 2147483647:
        raise ValueError(f"The path is limited to 2147483646 samples, got {n}.")
    line.y, line.w, line.n, line.i = &y[0], weight, n, 0
    line.used = line.spare = line.alive = line.last = line.crest = 0
    line.room = 256
    line.node = <Group *>malloc(line.room * sizeof(Group))
    if line.node == NULL:
        raise MemoryError
    with nogil:
        checks = erosion(&line, &vanish[0], &drop[0])
    free(line.node)
    if checks < 0:
        raise MemoryError
    return checks


def form(const double[::1] y, const double[::1] w, const double[::1] vanish,
         double level, double alpha, double[::1] out):
    """Write to `out` the pieces that end where vanish > level, moved by `alpha`.

    A piece has the mean of its data plus alpha (s_right - s_left) / weight, s the
    signs of the steps at its ends. level = alpha gives the solution at alpha,
    alpha = 0 the means of its pieces.
    """
    cdef Py_ssize_t n = y.shape[0], i, j, start = 0
    cdef const double *weight = pointer(w)
    cdef double ref = y[0], total = 0, mass = 0, k, left = 0, right, value
    with nogil:
        for i in range(n):
            k = weight[i] if weight != NULL else 1
            total += k * (y[i] - ref)
            mass += k
            if i == n - 1 or vanish[i] > level:
                right = 0 if i == n - 1 else (1 if y[i + 1] > y[i] else -1)
                value = ref + (total + alpha * (right - left)) / mass
                for j in range(start, i + 1):
                    out[j] = value
                if i < n - 1:
                    start, ref, total, mass, left = i + 1, y[i + 1], 0, 0, right


def dual_point(const double[::1] y, const double[::1] w, const double[::1] u,
               double alpha, double[::1] e, double[::1] z):
    """Write the dual point of the pieces of `u`; return the largest |z|.

    z_i is alpha times the sign of the step of u after sample i, where there is one,
    and within a piece the sums of w e from there on; e is u - y, moved by what closes
    the piece. For a solution nothing but its rounding is moved, and rounding is not
    carried from piece to piece.
    """
    cdef Py_ssize_t n = y.shape[0], i, j, start = 0
    cdef const double *weight = pointer(w)
    cdef double total = 0, mass = 0, k, left = 0, right, move, sum, largest = 0
    with nogil:
        for i in range(n):
            k = weight[i] if weight != NULL else 1
            e[i] = u[i] - y[i]
            total += k * e[i]
            mass += k
            if i < n - 1 and u[i + 1] == u[i]:
                continue
            right = 0 if i == n - 1 else (alpha if u[i + 1] > u[i] else -alpha)
            move = (right - left - total) / mass
            sum = left
            for j in range(start, i + 1):
                e[j] += move
                sum += (weight[j] if weight != NULL else 1) * e[j]
                z[j] = sum
                largest = max(largest, fabs(sum))
            z[i] = right
            start, total, mass, left = i + 1, 0, 0, right
    return largest


def variation(const double[::1] u):
    """Sum of |u_{i+1} - u_i|, in blocks, so that rounding errors hardly add up."""
    cdef Py_ssize_t n = u.shape[0] - 1, i, end, first = 0
    cdef double total = 0, a, b, c, d
    with nogil:
        while first < n:
            end = min(first + 4096, n)
            a = b = c = d = 0
            i = first
            while i + 4 <= end:
                a += fabs(u[i + 1] - u[i])
                b += fabs(u[i + 2] - u[i + 1])
                c += fabs(u[i + 3] - u[i + 2])
                d += fabs(u[i + 4] - u[i + 3])
                i += 4
            while i < end:
                a += fabs(u[i + 1] - u[i])
                i += 1
            total += (a + b) + (c + d)
            first = end
    return total
