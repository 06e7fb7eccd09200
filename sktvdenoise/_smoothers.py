"""Offline baselines: wavelet shrinkage and trend filtering."""

import warnings
from numbers import Integral, Real

import numpy as np
from scipy.linalg import solveh_banded
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._fused_lasso import fused_lasso
from sktvdenoise._positions import (
    check_ordered,
    check_positions,
    step_predict,
)


class _Smoother(RegressorMixin, BaseEstimator):
    """Estimators of a curve from all labels at once, by position."""

    missing = "error"  # as a parameter that the subclasses don't have

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.multi_output = True
        return tags


def haar(x):
    """Orthonormal Haar coefficients of x along its first axis, of length 2^J.

    Returns
    -------
    mean : ndarray of length 1
        ``sum(x) / 2^(J/2)``.
    details : list of ndarray
        Coefficients of level 0 (one, over the whole of x) to J - 1 (2^(J-1), of
        neighbours): first halves less second halves, over the root of the size.
    """
    details = []
    while len(x) > 1:
        details.append((x[::2] - x[1::2]) / np.sqrt(2))
        x = (x[::2] + x[1::2]) / np.sqrt(2)
    return x, details[::-1]


def inverse_haar(mean, details):
    """The x whose coefficients these are."""
    for detail in details:
        halves = np.stack([mean + detail, mean - detail], axis=1) / np.sqrt(2)
        mean = halves.reshape(-1, *mean.shape[1:])
    return mean


class HaarThreshold(_Smoother):
    r"""Haar wavelet shrinkage at the universal threshold, offline.

    The coefficients are soft-thresholded at :math:`\sigma (2 \ln n)^{1/2}` [1]_. For a
    level of total variation `C` the squared error is
    :math:`\tilde O(n^{1/3} C^{2/3} \sigma^{4/3})`, with nothing to be told. O(n) time.

    Parameters
    ----------
    sigma : float >= 0, default=None
        Standard deviation of the noise, in units of the labels; None to tell it from
        the finest coefficients: their median absolute value over 0.6745.

    Attributes
    ----------
    positions_ : ndarray of shape (n_samples,)
        Positions in non-decreasing order.
    values_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The denoised labels there.
    sigma_ : float or ndarray of shape (n_outputs,)
        The standard deviation used.
    n_features_in_ : int
        Always 1.
    feature_names_in_ : ndarray of shape (1,)
        Name of the column of `X`, where it has one.

    Notes
    -----
    Where the number of labels is no power of two they are continued by their mirror
    image. Only the order of the positions counts.

    References
    ----------
    .. [1] D. L. Donoho and I. M. Johnstone (1994). Ideal spatial adaptation by wavelet
       shrinkage. Biometrika 81.

    Examples
    --------
    >>> from sktvdenoise.baselines import HaarThreshold
    >>> y = [0.1, -0.1, 0.1, -0.1, 8.1, 7.9, 8.1, 7.9]
    >>> HaarThreshold(sigma=0.1).fit(range(8), y).predict([0, 7]).round(2)
    array([0.07, 7.93])
    """

    _parameter_constraints = {"sigma": [None, Interval(Real, 0, None, closed="left")]}

    def __init__(self, sigma=None):
        self.sigma = sigma

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y):
        """Denoise `y` in the order of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order; rows with equal positions keep their order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.

        Returns
        -------
        self : HaarThreshold

        Raises
        ------
        ValueError
            If the data have a bad shape or a value that is not finite.
        """
        positions, rows, _, shape, _ = check_ordered(self, X, y, None)
        n = len(rows)
        size = 1 << (n - 1).bit_length()
        mean, details = haar(np.pad(rows, [(0, size - n), (0, 0)], mode="symmetric"))
        if self.sigma is not None:
            sigma = np.full(rows.shape[1], float(self.sigma))
        elif n > 1:
            sigma = np.median(np.abs(details[-1][: n // 2]), axis=0) / 0.6745
        else:
            sigma = np.zeros(rows.shape[1])
        threshold = sigma * np.sqrt(2 * np.log(n))
        kept = [np.sign(d) * np.maximum(np.abs(d) - threshold, 0) for d in details]
        self.positions_ = positions
        self.values_ = inverse_haar(mean, kept)[:n].reshape(shape)
        self.sigma_ = float(sigma[0]) if len(shape) == 1 else sigma
        return self

    def predict(self, X):
        """Evaluate the step function.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, in any order.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The value at the last fitted position at or before each query; the first
            value before all of them.
        """
        check_is_fitted(self)
        query = check_positions(self, X, reset=False)
        return step_predict(self.positions_, self.values_, query)


class LinearTrendFilter(_Smoother):
    r"""Linear trend filtering, offline: few changes of slope.

    Minimises

    .. math::

        \tfrac12 \sum_i w_i (y_i - u_i)^2 + \alpha \sum_i |s_{i+1} - s_i|, \qquad
        s_i = \frac{u_{i+1} - u_i}{x_{i+1} - x_i},

    by ADMM with the fused lasso of the slopes as its inner step [1]_. For signals whose
    slopes have a bounded total variation (on the unit interval) the squared error is of
    order :math:`n^{1/5}` with the best `alpha` [2]_, which must be told.

    Parameters
    ----------
    alpha : float >= 0, default=1.0
        Penalty on the variation of the slopes, in the units of
        ``sample_weight * y * X``.
    tol : float > 0, default=1e-6
        Largest certified gap, relative to the objective.
    max_iter : int >= 1, default=5000
        Largest number of iterations, each of which takes O(n) time.

    Attributes
    ----------
    positions_ : ndarray of shape (n_positions,)
        Distinct positions of positive weight, ascending.
    values_ : ndarray of shape (n_positions,) or (n_positions, n_outputs)
        The fitted values there.
    dual_gap_ : float
        (objective - lower bound on its minimum) / n_samples, summed over the outputs:
        the certificate of optimality.
    n_iter_ : int
        Iterations of the output that took most.
    n_features_in_ : int
        Always 1.
    feature_names_in_ : ndarray of shape (1,)
        Name of the column of `X`, where it has one.

    Notes
    -----
    Labels at the same position are taken together. With `D` the matrix of the slopes
    the iteration is

    .. math::

        u &= \arg\min \tfrac12 \lVert y - u \rVert_W^2
            + \tfrac\rho2 \lVert D u - z + v \rVert^2, \\
        z &= \arg\min \tfrac\rho2 \lVert D u + v - z \rVert^2 + \alpha\, TV(z), \qquad
        v \leftarrow v + D u - z,

    over-relaxed by 1.8. After each step :math:`\rho D^T v` is a dual point: with
    :math:`a = \rho D^T v` the minimum is at least
    :math:`a^T y - \tfrac12 a^T W^{-1} a`. :math:`\rho` begins at `alpha`, as in [1]_,
    and then follows the ratio of the residuals, each relative to its term: kept at
    `alpha` it can leave a gap of half the objective after 5000 iterations.

    References
    ----------
    .. [1] A. Ramdas and R. J. Tibshirani (2016). Fast and flexible ADMM algorithms for
       trend filtering. Journal of Computational and Graphical Statistics 25.
    .. [2] R. J. Tibshirani (2014). Adaptive piecewise polynomial estimation via trend
       filtering. Annals of Statistics 42.

    Examples
    --------
    >>> from sktvdenoise.baselines import LinearTrendFilter
    >>> y = [0.0, 1.1, 1.9, 3.0, 2.1, 0.9, 0.0]
    >>> LinearTrendFilter(alpha=0.1).fit(range(7), y).predict([1.5, 3]).round(1)
    array([1.5, 2.9])
    """

    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, alpha=1.0, *, tol=1e-6, max_iter=5000):
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the curve.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0; None for ones.

        Returns
        -------
        self : LinearTrendFilter

        Raises
        ------
        ValueError
            If the data have a bad shape, a value that is not finite or a negative
            weight.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations did not reach `tol`; the message tells the gap.
        """
        positions, rows, weights, shape, _ = check_ordered(self, X, y, sample_weight)
        if weights is None:
            weights = np.ones(len(rows))
        x, rows, w = _taken_together(positions, rows, weights)
        columns = [self._solve(x, column, w) for column in rows.T]
        values, gaps, n_iter = zip(*columns)
        self.positions_ = x
        self.values_ = np.stack(values, axis=1).reshape(len(x), *shape[1:])
        self.dual_gap_ = float(sum(gaps) / shape[0])
        self.n_iter_ = max(n_iter)
        return self

    def predict(self, X):
        """Evaluate the curve: linear between the fitted positions, and beyond them.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, in any order.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Beyond the ends the slope of the last piece goes on.
        """
        check_is_fitted(self)
        query = check_positions(self, X, reset=False)
        x, u = self.positions_, self.values_
        if len(x) == 1:
            return np.repeat(u, len(query), axis=0)
        left = np.clip(np.searchsorted(x, query, side="right") - 1, 0, len(x) - 2)
        share = (query - x[left]) / (x[left + 1] - x[left])
        share = share.reshape(-1, *[1] * (u.ndim - 1))
        return (1 - share) * u[left] + share * u[left + 1]

    def _solve(self, x, y, w):
        """Values at x, certified gap, number of iterations."""
        if len(x) < 3 or self.alpha == 0:
            return y.copy(), 0.0, 1
        # Positions in units of their mean spacing; labels about their line.
        spacing = np.diff(x) / np.diff(x).mean()
        alpha = self.alpha / np.diff(x).mean()
        line = np.polynomial.Polynomial.fit(x, y, 1, w=np.sqrt(w))(x)
        # The dual point of the line; from its largest value on, the line is optimal.
        point = np.cumsum(np.cumsum(w * (y - line))[:-1] * spacing)
        if alpha >= np.abs(point).max():
            return line, 0.0, 1
        u, gap, objective, n_iter = trend_filter(
            y - line, w, spacing, alpha, self.tol, self.max_iter
        )
        if gap > self.tol * objective:
            warnings.warn(
                f"The gap is {gap:g}, {gap / objective:.1e} of the objective, after "
                f"max_iter={self.max_iter} iterations. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return line + u, gap, n_iter


def trend_filter(y, w, spacing, alpha, tol, max_iter):
    """Solution, certified gap, objective and number of iterations."""
    inverse = 1.0 / spacing

    def slopes(u):
        return np.diff(u) * inverse

    def transposed(s):
        s = s * inverse
        return -np.diff(s, prepend=0.0, append=0.0)

    def objective_of(u, s):
        return 0.5 * np.sum(w * (y - u) ** 2) + alpha * np.abs(np.diff(s)).sum()

    # The matrix D^T D, whose lower diagonals are these.
    square = inverse**2
    diagonal = np.append(square, 0.0) + np.append(0.0, square)
    rho = alpha
    z = slopes(y)
    v = np.zeros_like(z)
    for n_iter in range(1, max_iter + 1):
        matrix = np.array([w + rho * diagonal, np.append(-rho * square, 0.0)])
        u = solveh_banded(matrix, w * y + rho * transposed(z - v), lower=True)
        s = slopes(u)
        target = 1.8 * s - 0.8 * z + v
        before, z = z, fused_lasso(target, alpha / rho)
        v = target - z
        if n_iter % 10 and n_iter < max_iter:
            continue
        # v is cumulated into [-alpha, alpha] but for rounding.
        a = rho * transposed(v)
        a *= min(1.0, alpha / max(np.abs(rho * np.cumsum(v)[:-1]).max(), 1e-300))
        bound = np.sum(a * y) - 0.5 * np.sum(a * a / w)
        # The curve with exactly the slopes z, and kinks where z steps.
        curve = np.append(0.0, np.cumsum(z * spacing))
        curve += np.average(y - curve, weights=w)
        candidates = [(objective_of(c, t), c) for c, t in ((curve, z), (u, s))]
        objective, best = min(candidates, key=lambda pair: pair[0])
        gap = max(objective - bound, 0.0)
        if gap <= tol * objective:
            break
        # Each residual relative to what it is the error of.
        primal = np.linalg.norm(s - z) * np.linalg.norm(v)
        dual = np.linalg.norm(z - before) * np.linalg.norm(z)
        if primal > 0 and dual > 0:
            factor = np.clip(np.sqrt(primal / dual), 0.5, 2.0)
            if not 0.8 < factor < 1.25:
                rho, v = rho * factor, v / factor
    return best, gap, objective, n_iter


def _taken_together(positions, rows, weights):
    """Distinct positions, the weighted means of their labels, their weights."""
    seen = weights > 0
    x, index = np.unique(positions[seen], return_inverse=True)
    w = np.bincount(index, weights=weights[seen])
    sums = [np.bincount(index, weights=weights[seen] * c) for c in rows[seen].T]
    return x, np.stack(sums, axis=1) / w[:, None], w
