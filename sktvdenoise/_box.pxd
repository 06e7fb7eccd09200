# The projection onto a box in the norm of an expert's matrix.
#
# P = U D U' is the inverse of the matrix, as in _linear.h; entries of theta, D and U
# are `stride` numbers apart.
from libc.math cimport fabs, sqrt


cdef inline void row_of_inverse(Py_ssize_t p, Py_ssize_t stride, const double* d,
                                const double* u, Py_ssize_t i, double* row) noexcept nogil:
    """Row i of P = U D U', in O(p^2)."""
    cdef Py_ssize_t j, k
    cdef double v
    for j in range(p):
        row[j] = 0.0
    for k in range(i, p):
        v = d[k * stride]
        if k > i:
            v *= u[(k * (k - 1) // 2 + i) * stride]
        for j in range(k):
            row[j] += u[(k * (k - 1) // 2 + j) * stride] * v
        row[k] += v


cdef inline bint solve_with(Py_ssize_t n, double* a, double* b) noexcept nogil:
    """b = a^-1 b by Cholesky, a symmetric with rows of n; False where it fails."""
    cdef Py_ssize_t i, j, k
    cdef double v
    for j in range(n):
        for i in range(j, n):
            v = a[i * n + j]
            for k in range(j):
                v -= a[i * n + k] * a[j * n + k]
            if i > j:
                a[i * n + j] = v / a[j * n + j]
            elif v > 0.0:
                a[j * n + j] = sqrt(v)
            else:
                return False
    for i in range(n):
        for k in range(i):
            b[i] -= a[i * n + k] * b[k]
        b[i] /= a[i * n + i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= a[k * n + i] * b[k]
        b[i] /= a[i * n + i]
    return True


cdef inline void project(Py_ssize_t p, Py_ssize_t stride, double box, const double* d,
                         const double* u, double* theta, double* memory) noexcept nogil:
    """Nearest point of [-box, box]^p in the norm of P^-1, in place.

    With the multipliers m of the bounds the solution is x = theta - P m, where either
    m_i = 0, or x_i = +-box and m_i has its sign. Guess which are at a bound (N), solve
    P_NN m_N = theta_N - x_N, exchange what is infeasible, repeat: all of it as long as
    it gets less, else only the last of it, which is known to end (block principal
    pivoting, Portugal, Judice and Vicente 1994; Murty's rule). Should rounding keep it
    from ending, the last point is drawn in to the box.
    """
    cdef double* rows = memory     # rows of P
    cdef double* a = rows + p * p
    cdef double* x = a + p * p
    cdef double* m = x + p
    cdef double* side = m + p      # 0: free, +-1: at +-box
    cdef double* other = side + p  # the same once all that is infeasible is exchanged
    cdef double* known = other + p  # whether a row of P has been computed
    cdef Py_ssize_t* bound = <Py_ssize_t*>(known + p)  # N
    cdef double beyond = box * (1.0 + 1e-13)
    cdef Py_ssize_t i, j, n, n_infeasible, last = 0, fewest = p + 1
    cdef int tries = 10, step
    for i in range(p):
        x[i] = theta[i * stride]
        side[i] = (x[i] > box) - (x[i] < -box)
        known[i] = 0.0
    for step in range(100 + 20 * p):
        n = 0
        for i in range(p):
            x[i] = theta[i * stride]
            if side[i] != 0.0:
                if known[i] == 0.0:
                    row_of_inverse(p, stride, d, u, i, rows + i * p)
                    known[i] = 1.0
                m[n] = x[i] - side[i] * box
                bound[n] = i
                n += 1
        for i in range(n):
            for j in range(i + 1):
                a[i * n + j] = rows[bound[i] * p + bound[j]]
        if not solve_with(n, a, m):
            break
        for i in range(n):
            for j in range(p):
                x[j] -= rows[bound[i] * p + j] * m[i]
        for i in range(p):
            other[i] = (x[i] > beyond) - (x[i] < -beyond)
        for i in range(n):
            j = bound[i]
            x[j] = side[j] * box
            other[j] = side[j] if side[j] * m[i] >= 0.0 else 0.0
        n_infeasible = 0
        for i in range(p):
            if other[i] != side[i]:
                n_infeasible += 1
                last = i
        if n_infeasible == 0:
            break
        tries -= 1
        if n_infeasible < fewest:
            fewest, tries = n_infeasible, 10
        if tries > 0:
            for i in range(p):
                side[i] = other[i]
        else:
            side[last] = other[last]
    for i in range(p):
        theta[i * stride] = min(max(x[i], -box), box)
