# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Kernels of linear predictions whose coefficients vary within a budget.

The predictions are eta_t = sum_k X[k, t] u[k, t]. A step minimises, exactly or for
some moves only, the model

    sum_t [ g_t (eta'_t - eta_t) + h_t (eta'_t - eta_t)^2 / 2 ] + alpha TV(u'),

|u'| <= bound, where TV adds up over the coefficients k. A piece is a longest run of
equal u[k]; a stationary point has Z[k] = cumsum(v X[k]) within [-alpha, alpha], and
at its ends where u[k] steps, v the model's derivative.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc


cdef extern from "_scan.h" nogil:
    int taut_solve(const double *y, const double *w, Py_ssize_t n, double alpha,
                   double *u, Py_ssize_t *visits)


# ---- one coefficient's whole sequence at a time ----

cdef void fit(const double *y, const double *w, Py_ssize_t n, double alpha, double *u,
              int *status) noexcept nogil:
    """The weighted sequence u nearest to y at `alpha`, which may be 0 or infinite."""
    cdef Py_ssize_t t, visits = 0
    cdef double mean, total = 0, mass = 0
    if alpha == 0:
        for t in range(n):
            u[t] = y[t]
    elif alpha == INFINITY:
        for t in range(n):
            mass += w[t]
            total += w[t] * (y[t] - y[0])
        mean = y[0] + total / mass
        for t in range(n):
            u[t] = mean
    elif taut_solve(y, w, n, alpha, u, &visits):
        status[0] = -1


cdef void block(const double *x, const double *h, double *r, double *u, Py_ssize_t n,
                double alpha, double bound, double *room, int *status) noexcept nogil:
    """Minimise the model over the sequence u; r = -v / h follows.

    Rows of weight h x^2 zero, also against the largest one, have no say: they keep
    the value of the last row before them that has one. `room` holds 3 n numbers.
    """
    cdef double *y = room
    cdef double *w = room + n
    cdef double *best = room + 2 * n
    cdef double weight, value, least = 0
    cdef Py_ssize_t t, m = 0
    for t in range(n):
        weight = h[t] * x[t] * x[t]
        if weight > least:
            least = weight
    least *= 1e-30
    for t in range(n):
        weight = h[t] * x[t] * x[t]
        if weight > least:
            y[m] = u[t] + r[t] / x[t]
            w[m] = weight
            m += 1
    if m == 0:
        return
    fit(y, w, m, alpha, best, status)
    if status[0]:
        return
    m = 0
    value = min(max(best[0], -bound), bound)
    for t in range(n):
        if h[t] * x[t] * x[t] > least:
            value = min(max(best[m], -bound), bound)
            m += 1
        r[t] -= x[t] * (value - u[t])
        u[t] = value


def sweep(const double[:, ::1] X, const double[::1] h, double[::1] r, double[:, ::1] u,
          double alpha, double bound, double[::1] room):
    """Minimise the model over each coefficient's sequence in turn, in O(n d).

    Each is a one-dimensional fused lasso with weights h x^2, clipped to the bound.
    `r` holds -v / h and is kept so; `u` is overwritten; `room` holds 3 n numbers.
    """
    cdef Py_ssize_t d = X.shape[0], n = X.shape[1], k
    cdef int status = 0
    with nogil:
        for k in range(d):
            block(&X[k, 0], &h[0], &r[0], &u[k, 0], n, alpha, bound, &room[0], &status)
            if status:
                break
    if status:
        raise MemoryError


def nearest(const double[:, ::1] y, const double[::1] alpha, double bound,
            double[:, ::1] u):
    """Minimise sum_t (y[k, t] - u[k, t])^2 / 2 + alpha[k] TV(u[k]), |u| <= bound."""
    cdef Py_ssize_t d = y.shape[0], n = y.shape[1], k, t, visits = 0
    cdef int status = 0
    with nogil:
        for k in range(d):
            if taut_solve(&y[k, 0], NULL, n, alpha[k], &u[k, 0], &visits):
                status = -1
                break
            for t in range(n):
                u[k, t] = min(max(u[k, t], -bound), bound)
    if status:
        raise MemoryError


# ---- all pieces at once ----

# At any time each coefficient has one piece, so the pieces' normal matrix couples at
# most d of them at a time: eliminated in the order of their ends they need no others
# (the graph of overlapping intervals is chordal). `S` holds the matrix of the pieces
# of the present row, in O(d^2) a row and a piece.
cdef struct Piece:
    Py_ssize_t start, end
    int k
    double move, rate       # its solution but for what `row` times the others adds


cdef void eliminate(double *S, double *b, double *c, Py_ssize_t d, int k, double whole,
                    bint held, Piece *piece, double *row) noexcept nogil:
    """Solve for the piece of k, in terms of the others, and take it out of S.

    A held piece doesn't move; nor does one that the others' columns span, whose
    pivot is rounding against its diagonal element `whole`.
    """
    cdef double pivot = S[k * d + k], factor
    cdef Py_ssize_t i, j
    piece.k = k
    piece.move = piece.rate = 0
    for j in range(d):
        row[j] = 0
    if not held and pivot > 1e-11 * whole:
        piece.move, piece.rate = b[k] / pivot, c[k] / pivot
        for j in range(d):
            if j != k:
                row[j] = S[k * d + j] / pivot
        for i in range(d):
            factor = S[k * d + i]
            if i != k and factor != 0:
                for j in range(d):
                    S[i * d + j] -= factor * row[j]
                b[i] -= factor * piece.move
                c[i] -= factor * piece.rate
    for j in range(d):
        S[k * d + j] = S[j * d + k] = 0
    b[k] = c[k] = 0


cdef void forward(const double[:, ::1] X, const double[::1] h, const double[::1] g,
                  const double[::1] ridge, const double[:, ::1] u, double alpha,
                  double bound, Piece *pieces, double *rows, double *S) noexcept nogil:
    """Eliminate all pieces; S holds d (d + 4) zeros."""
    cdef Py_ssize_t d = X.shape[0], n = X.shape[1], t, i, j, m = 0
    cdef double *b = S + d * d
    cdef double *c = b + d
    cdef double *whole = c + d
    cdef double *start = whole + d
    cdef double x, side = 0
    for t in range(n):
        for i in range(d):
            x = h[t] * X[i, t]
            whole[i] += x * X[i, t] + ridge[i]
            S[i * d + i] += ridge[i]
            b[i] -= g[t] * X[i, t]
            for j in range(d):
                S[i * d + j] += x * X[j, t]
        for i in range(d):
            if t < n - 1:
                if u[i, t] == u[i, t + 1]:
                    continue
                side = 1 if u[i, t + 1] > u[i, t] else -1
                b[i] += alpha * side
                c[i] += side
            pieces[m].start, pieces[m].end = <Py_ssize_t>start[i], t
            eliminate(S, b, c, d, <int>i, whole[i], fabs(u[i, t]) >= bound, &pieces[m],
                      rows + m * d)
            m += 1
            start[i] = t + 1
            whole[i] = 0
            if t < n - 1:
                b[i] = -alpha * side
                c[i] = -side


def joint(const double[:, ::1] X, const double[::1] h, const double[::1] g,
          const double[::1] ridge, const double[:, ::1] u, double alpha, double bound,
          double[:, ::1] move, double[:, ::1] rate):
    """Minimise the model over the values of all pieces, at the signs of their steps.

    The model has another term, the sum of ridge[k] move[k, t]^2 / 2. `move` receives
    the change of u, `rate` its derivative with respect to alpha. Pieces at the bound
    stay. In O(n d^2).
    """
    cdef Py_ssize_t d = X.shape[0], n = X.shape[1], m = d, i, j, t
    cdef Piece *pieces
    cdef double *rows
    cdef double *S
    cdef double *row
    cdef double a, b
    for i in range(d):
        for t in range(1, n):
            m += u[i, t] != u[i, t - 1]
    pieces = <Piece *>malloc(m * sizeof(Piece))
    rows = <double *>malloc((m * d + d * (d + 4)) * sizeof(double))
    if pieces == NULL or rows == NULL:
        free(pieces)
        free(rows)
        raise MemoryError
    S = rows + m * d
    with nogil:
        for i in range(d * (d + 4)):
            S[i] = 0
        forward(X, h, g, ridge, u, alpha, bound, pieces, rows, S)
        # S now holds the present pieces' solutions, from the last row to the first.
        for j in range(m - 1, -1, -1):
            row = rows + j * d
            a, b = pieces[j].move, pieces[j].rate
            for i in range(d):
                a -= row[i] * S[i]
                b -= row[i] * S[d + i]
            i = pieces[j].k
            S[i], S[d + i] = a, b
            for t in range(pieces[j].start, pieces[j].end + 1):
                move[i, t], rate[i, t] = a, b
    free(pieces)
    free(rows)


# ---- the certificate ----

def pulls(const double[:, ::1] X, const double[::1] v, const double[:, ::1] u):
    """max |Z[k, t]| over t < n - 1, and the sum of Z[k, t] (u[k, t+1] - u[k, t]).

    In O(n d).
    """
    cdef Py_ssize_t d = X.shape[0], n = X.shape[1], k, t
    cdef double z, largest = 0, product = 0
    with nogil:
        for k in range(d):
            z = 0
            for t in range(n - 1):
                z += v[t] * X[k, t]
                largest = max(largest, fabs(z))
                product += z * (u[k, t + 1] - u[k, t])
    return largest, product


def excess(const double[:, ::1] X, const double[::1] v, const double[:, ::1] u,
           double alpha, double bound):
    """sum_t v_t x_t.u_t + alpha TV(u) less its minimum over all |u| <= bound.

    By the coarea formula sequences of the two values -bound and bound are enough for
    the minimum. `above` and `below` are the least costs of one that has come to
    either value, less the cost of u, in O(n d).
    """
    cdef Py_ssize_t d = X.shape[0], n = X.shape[1], k, t
    cdef double above, below, pull, step, switch = 2 * alpha * bound, total = 0
    with nogil:
        for k in range(d):
            above = below = 0
            for t in range(n):
                if t:
                    above, below = min(above, below + switch), min(below, above + switch)
                    step = fabs(u[k, t] - u[k, t - 1])
                    if step:
                        above -= alpha * step
                        below -= alpha * step
                pull = v[t] * X[k, t]
                above += pull * (bound - u[k, t])
                below -= pull * (bound + u[k, t])
            total -= min(above, below)
    return total
