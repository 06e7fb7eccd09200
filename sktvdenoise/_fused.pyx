# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Kernels of the offline one-dimensional fused lasso.

minimise 1/2 sum_i w_i (y_i - u_i)^2 + alpha sum_i |u_{i+1} - u_i|

All take finite float64 data; w is None for unit weights, else positive.
"""

cdef extern from "_scan.h" nogil:
    int taut_solve(const double *y, const double *w, Py_ssize_t n, double alpha,
                   double *u, Py_ssize_t *visits)


def solve(const double[::1] y, const double[::1] w, double alpha, double[::1] out):
    """Write the solution at `alpha` > 0 to `out`; return the number of visits.

    A visit is one sample read by the scan or the funnel. `out` must not share
    memory with `y` or `w`.
    """
    cdef Py_ssize_t n = y.shape[0], visits = 0
    cdef const double *weight = NULL
    cdef int status
    if w is not None:
        weight = &w[0]
    with nogil:
        status = taut_solve(&y[0], weight, n, alpha, &out[0], &visits)
    if status:
        raise MemoryError
    return visits
