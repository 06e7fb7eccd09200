"""The offline problem with jumps joined across channels, on validated arrays.

minimise 1/2 sum_i w_i |y_i - u_i|^2 + alpha sum_i |u_{i+1} - u_i|,

y_i and u_i rows of p channels, |.| the Euclidean norm: a jump of one channel makes
room for jumps of all the others (Bleakley and Vert 2011). The dual is

maximise -sum_i |z_i - z_{i-1}|^2 / (2 w_i) - sum_i y_i . (z_i - z_{i-1}),
|z_i| <= alpha, z_0 = z_n = 0;  then u_i = y_i + (z_i - z_{i-1}) / w_i,

n - 1 balls and a quadratic form that is tridiagonal in blocks. A primal-dual
interior-point method solves it in some tens of banded systems, each in O(n p^3).
It leaves open which steps are exactly zero: Newton's method on the jumps it found,
again banded, gives values that are equal within pieces, and exact to rounding.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded, solveh_banded
from sklearn.exceptions import ConvergenceWarning

from sktvdenoise import _signal
from sktvdenoise._signal import PLAIN, Signal


def inner(a, b):
    """Inner products of the rows."""
    return np.einsum("ij,ij->i", a, b)


def lengths(steps):
    """Euclidean norms of the rows."""
    return np.sqrt(inner(steps, steps))


def flow(z):
    """z_i - z_{i-1} with z zero at both ends."""
    return np.diff(np.pad(z, ((1, 1), (0, 0))), axis=0)


def group_variation(u):
    """sum_i |u_{i+1} - u_i|."""
    return float(lengths(np.diff(u, axis=0)).sum())


def tridiagonal(diagonal, below):
    """Lower band storage of a matrix that is tridiagonal in p x p blocks.

    Parameters
    ----------
    diagonal : ndarray of shape (m, p, p)
        Symmetric blocks.
    below : ndarray of shape (m - 1, p, p)
        Block (i + 1, i) for each i.
    """
    m, p, _ = diagonal.shape
    band = np.zeros((2 * p, m, p))
    for column in range(p):
        band[: p - column, :, column] = diagonal[:, column:, column].T
        band[p - column : 2 * p - column, :-1, column] = below[:, :, column].T
    return band.reshape(2 * p, m * p)


class _Rows:
    """The rows of positive weight, their dual and its certificate."""

    def __init__(self, signal):
        self.signal = signal
        self.mean = np.average(signal.y, axis=0, weights=signal.w)
        self.y = signal.y - self.mean  # all else is relative to the mean
        self.w = np.ones(len(self.y)) if signal.w is None else signal.w
        self.residual = self.cumulated(np.zeros_like(self.y))
        self.alpha_max = float(lengths(self.residual).max(initial=0.0))

    def cumulated(self, u):
        """z = cumsum(w (u - y)), closed: its end, left out, is 0."""
        e = u - self.y
        e -= np.average(e, axis=0, weights=self.w)
        return np.cumsum(self.w[:, None] * e, axis=0)[:-1]

    def loss(self, u):
        """sum w |y - u|^2, without the factor 1/2."""
        return float(np.sum(self.w * inner(u - self.y, u - self.y)))

    def objective(self, u, alpha):
        tv = group_variation(u)
        return 0.5 * self.loss(u) + (alpha * tv if tv else 0.0)

    def gap(self, u, alpha):
        """Objective at `u` minus the better of two dual values, >= 0.

        One takes z = cumulated(u). The other starts anew at every jump with what z is
        there at the optimum, alpha times the direction of the step, so that rounding
        does not add up; it serves where u has pieces.
        """
        z = self.cumulated(u)
        step = np.diff(u, axis=0)
        length = lengths(step)
        last = np.flatnonzero(length)
        gap = self._gap(u, z, step, alpha)
        if np.isinf(alpha) or not len(last):
            return gap
        ends = alpha * step[last] / length[last, None]
        sizes = np.diff(last, append=len(z))
        z[last[0] + 1 :] += np.repeat(ends - z[last], sizes, axis=0)[1:]
        z[last] = ends
        return min(gap, self._gap(u, z, step, alpha))

    def _gap(self, u, z, step, alpha):
        """Terms >= 0 for z scaled into the balls of radius alpha."""
        largest = lengths(z).max(initial=0.0)
        theta = min(1.0, alpha / largest) if largest else 1.0
        away = u - self.y - theta * flow(z) / self.w[:, None]
        penalty = min(alpha, largest) if np.isinf(alpha) else alpha
        slack = np.maximum(penalty * lengths(step) - theta * inner(z, step), 0.0)
        return float(0.5 * np.sum(self.w * inner(away, away)) + np.sum(slack))


def central_path(rows, alpha, max_iter):
    """Yield points (x, lam, u, gap) on the way to the optimum, z = alpha x.

    The conditions are alpha step_i = lam_i x_i and lam_i (1 - |x_i|^2) / 2 = mu with
    mu -> 0; a predictor step chooses mu and the second-order correction (Mehrotra
    1992). x stays inside the unit balls, so it is feasible throughout, and the gap
    of its own u is sum_i alpha (|step_i| - x_i . step_i).
    """
    n, p = rows.y.shape
    inverse = alpha**2 / rows.w
    laplacian = np.zeros((p + 1, n - 1, p))
    laplacian[0] = (inverse[:-1] + inverse[1:])[:, None]
    laplacian[p] = -np.append(inverse[1:-1], 0)[:, None]
    x = 0.5 * rows.residual / rows.alpha_max
    lam = np.full(n - 1, alpha * group_variation(rows.y) / n)
    for _ in range(max_iter):
        u = rows.y + alpha * flow(x) / rows.w[:, None]
        step = np.diff(u, axis=0)
        gap = alpha * np.sum(lengths(step) - inner(x, step))
        yield x, lam, u, max(float(gap), 0.0)
        slack = 0.5 * (1 - inner(x, x))
        matrix = laplacian.copy()
        for k in range(p):
            matrix[k, :, : p - k] += (lam / slack)[:, None] * x[:, : p - k] * x[:, k:]
        matrix[0] += lam[:, None]
        try:
            factor = cholesky_banded(
                matrix.reshape(p + 1, -1), lower=True, check_finite=False
            )
        except LinAlgError:
            return

        here = factor, x, lam, slack, alpha * step
        dx, dlam = _direction(*here, np.zeros(n - 1))
        size = _reach(x, lam, dx, dlam)
        aside = x + size * dx
        before = np.mean(lam * slack)
        after = np.mean((lam + size * dlam) * 0.5 * (1 - inner(aside, aside)))
        mu = before * np.clip(after / before, 1e-4, 1) ** 3
        curve = dlam * inner(x, dx) + 0.5 * lam * inner(dx, dx)
        dx, dlam = _direction(*here, mu + size**2 * curve)
        size = _reach(x, lam, dx, dlam)
        if size < 0.01:
            dx, dlam = _direction(*here, np.full(n - 1, 0.5 * before))
            size = _reach(x, lam, dx, dlam)
        x, lam = x + 0.99 * size * dx, lam + 0.99 * size * dlam
        if not (np.all(inner(x, x) < 1) and np.all(lam > 0) and size > 1e-10):
            return


def _direction(factor, x, lam, slack, pull, target):
    """The step to lam slack = target, to first order."""
    right = pull - x * (target / slack)[:, None]
    dx = cho_solve_banded((factor, True), right.ravel(), check_finite=False)
    dx = dx.reshape(x.shape)
    return dx, (target + lam * inner(x, dx)) / slack - lam


def _reach(x, lam, dx, dlam):
    """The largest step <= 1/0.99 that leaves x in the balls and lam >= 0."""
    a, b, c = inner(dx, dx), inner(x, dx), 1 - inner(x, x)
    root = np.sqrt(b * b + a * c)
    moving, falling = a > 0, dlam < 0
    # The positive root of a t^2 + 2 b t - c without cancellation
    ahead = np.where(b > 0, c, root - b)[moving] / np.where(b > 0, b + root, a)[moving]
    return min(
        1 / 0.99,
        float(np.min(ahead, initial=np.inf)),
        float(np.min(-lam[falling] / dlam[falling], initial=np.inf)),
    )


class _Jumps:
    """Values of pieces, moved by Newton's method while none of their steps is zero.

    On given pieces the objective is smooth: 1/2 sum_g W_g |v_g - m_g|^2 + alpha
    sum_g |v_{g+1} - v_g| with the pieces' weights W and means m.
    """

    def __init__(self, rows, last, sign, alpha):
        self.rows, self.last = rows, last
        starts = np.append(0, last + 1)
        self.sizes = np.diff(starts, append=len(rows.y))
        self.mass = rows.signal.masses(starts)[:, None]
        weighted = rows.w[:, None] * rows.y
        self.data = np.add.reduceat(weighted, starts, axis=0) / self.mass
        self.values = self.data + alpha * flow(sign) / self.mass

    @classmethod
    def on_path(cls, rows, x, lam, alpha):
        """The boundaries that become jumps at this point of the central path."""
        last = np.flatnonzero(lam / lam.max() > 0.5 * (1 - inner(x, x)))
        return cls(rows, last, x[last] / lengths(x[last])[:, None], alpha)

    def spread(self):
        return np.repeat(self.values, self.sizes, axis=0)

    def objective(self, values, alpha):
        loss = 0.5 * np.sum(self.mass * (values - self.data) ** 2)
        return loss + alpha * lengths(np.diff(values, axis=0)).sum()

    def newton(self, alpha):
        """Newton step, decrement, and d values / d alpha at the optimum."""
        step = np.diff(self.values, axis=0)
        length = lengths(step)
        sign = step / length[:, None]
        gradient = self.mass * (self.values - self.data) - alpha * flow(sign)
        bend = np.eye(step.shape[1]) - sign[:, :, None] * sign[:, None, :]
        bend *= (alpha / length)[:, None, None]
        diagonal = self.mass[:, :, None] * np.eye(step.shape[1])
        diagonal[:-1] += bend
        diagonal[1:] += bend
        right = np.stack([-gradient.ravel(), flow(sign).ravel()], axis=1)
        both = solveh_banded(
            tridiagonal(diagonal, -bend), right, lower=True, check_finite=False
        )
        move, rate = both.T.reshape(2, *self.values.shape)
        return move, -float(np.sum(gradient * move)), rate

    def settle(self, alpha, max_iter=12):
        """Damped Newton steps down to rounding.

        Returns
        -------
        slope : float or None
            d TV / d alpha, or None where the steps did not converge.
        crossing : ndarray of bool
            The jumps that Newton's method would turn round: those that vanish.
        """
        value, slope = self.objective(self.values, alpha), None
        crossing = np.zeros(len(self.last), dtype=bool)
        for _ in range(max_iter):
            step = np.diff(self.values, axis=0)
            crossing = lengths(step) == 0
            if crossing.any():
                break
            try:
                move, decrement, rate = self.newton(alpha)
            except LinAlgError:
                break
            if not decrement >= 0:
                break
            crossing = inner(step, step + np.diff(move, axis=0)) <= 0
            for size in 0.5 ** np.arange(10):
                trial = self.values + size * move
                lower = self.objective(trial, alpha)
                if lower <= value * (1 + 1e-15) - 1e-4 * size * decrement:
                    break
            else:
                break
            self.values, value = trial, lower
            if decrement <= 1e-20 * value and size == 1:
                slope = np.sum(inner(step, np.diff(rate, axis=0)) / lengths(step))
                break
        return slope, crossing

    def amended(self, alpha, slope, crossing):
        """Without the jumps that vanish, or with new ones where |z| > alpha.

        The latter if the steps have converged; each piece gets at most one. None if
        there is nothing to amend.
        """
        step = np.diff(self.values, axis=0)
        length = lengths(step)
        sign = step / np.where(length > 0, length, 1)[:, None]
        if slope is None:
            if not crossing.any():
                return None
            keep = ~crossing
            return _Jumps(self.rows, self.last[keep], sign[keep], alpha)
        z = self.rows.cumulated(self.spread())
        size = lengths(z)
        size[self.last] = 0.0
        starts = np.minimum(np.append(0, self.last + 1), len(z) - 1)
        worst = np.repeat(np.maximum.reduceat(size, starts), self.sizes)[: len(z)]
        new = np.flatnonzero((size == worst) & (size > alpha * (1 + 1e-13)))
        if not len(new):
            return None
        last = np.append(self.last, new)
        order = np.argsort(last)
        sign = np.append(sign, z[new] / size[new, None], axis=0)
        return _Jumps(self.rows, last[order], sign[order], alpha)


@dataclass(frozen=True)
class _Point:
    """A candidate solution at one alpha; `jumps` is None on the central path."""

    u: np.ndarray
    jumps: _Jumps | None
    slope: float | None  # d TV / d alpha; None if unknown
    gap: float  # relative to the objective
    n_iter: int  # interior-point steps


def penalised(rows, alpha, tol, max_iter, start=None):
    """The best point found at 0 < alpha < alpha_max.

    `start`, the jumps of a solution nearby, is tried first. Then, as soon as the
    central path is within `tol`, its jumps are settled and amended; where they do
    not become the right ones the path goes on.
    """
    best = None

    def keep(u, jumps, slope, n_iter):
        nonlocal best
        gap = rows.gap(u, alpha) / (rows.objective(u, alpha) or 1.0)
        if best is None or gap < best.gap:
            best = _Point(u, jumps, slope, gap, n_iter)
        return slope is not None and best.gap <= tol

    def settled(jumps, n_iter):
        for _ in range(10):
            slope, crossing = jumps.settle(alpha)
            if keep(jumps.spread(), jumps, slope, n_iter):
                return True
            jumps = jumps.amended(alpha, slope, crossing)
            if jumps is None:
                break
        return False

    if start is not None and settled(start, 0):
        return best
    path = enumerate(central_path(rows, alpha, max_iter), 1)
    for n_iter, (x, lam, u, gap) in path:
        if gap <= tol * rows.objective(u, alpha):
            if settled(_Jumps.on_path(rows, x, lam, alpha), n_iter):
                return best
    if best is None or best.gap > tol:
        if not settled(_Jumps.on_path(rows, x, lam, alpha), n_iter):
            keep(u, None, None, n_iter)
    return best


def constrained(rows, budget, tol, max_iter):
    """The point whose variation is `budget`, and its alpha, by Newton's method.

    The variation falls with alpha from that of the data to 0 at alpha_max. Steps are
    taken in the logarithms while the variation is far from the budget, and replaced
    by the geometric mean where they leave the bracket. The points are sharper than
    `tol`: the error of a variation is of the order of the root of its gap.
    """
    low, high = 0.0, rows.alpha_max
    alpha = min(_separate_multiplier(rows, budget), 0.9 * high)
    jumps = None
    for _ in range(100):
        point = penalised(rows, alpha, 1e-4 * tol, max_iter, jumps)
        tv = group_variation(point.u)
        if abs(tv - budget) <= 1e-14 * budget or high - low <= 1e-15 * high:
            break
        low, high = (alpha, high) if tv > budget else (low, alpha)
        trial = 0.0
        if point.slope is not None:
            if budget < tv < 2 * budget or tv <= budget < 2 * tv:
                trial = alpha + (budget - tv) / point.slope
            elif tv > 0:
                power = np.log(budget / tv) * tv / (alpha * point.slope)
                trial = alpha * np.exp(np.clip(power, -7, 7))
        if not low < trial < high:
            trial = np.sqrt(low * high) if low else 0.03 * high
        jumps = point.jumps if abs(trial - alpha) < 0.01 * alpha else None
        alpha = trial
    return point, alpha


def _separate_multiplier(rows, budget):
    """A guess of the multiplier, from channels that jump on their own."""
    variation = group_variation(rows.y)
    signals = [Signal(column, rows.signal.w) for column in rows.y.T]
    share = _signal.variation(rows.y) / variation * budget
    return np.sqrt(len(signals)) * _signal.constrained(signals, share, PLAIN)[1]


@dataclass(frozen=True)
class GroupSolution:
    """A solution with its certificate.

    Attributes
    ----------
    u, mean : ndarray of shape (n_samples, n_channels)
    alpha : float
        The penalty, or the multiplier of the budget.
    loss : float
        sum w |y - u|^2, without the factor 1/2.
    tv : float
        sum |u_{i+1} - u_i|.
    gap : float
        Objective minus a lower bound on its minimum at the same alpha, >= 0.
    n_iter : int
        Interior-point steps at this alpha, at least 1.
    """

    u: np.ndarray
    alpha: float
    n_iter: int
    _rows: _Rows
    _own: np.ndarray

    @property
    def mean(self):
        return self.u

    @cached_property
    def tv(self):
        return group_variation(self.u)

    @cached_property
    def loss(self):
        return self._rows.loss(self._own)

    @cached_property
    def gap(self):
        return self._rows.gap(self._own, self.alpha)


def solution(y, w=None, *, alpha=None, tv_budget=None, tol=1e-9, max_iter=100):
    """Solve the problem for given `alpha`, or with sum |u_{i+1} - u_i| <= `tv_budget`.

    Parameters
    ----------
    y : ndarray of shape (n_samples, n_channels)
        NaN only in rows of weight zero.
    w : ndarray of shape (n_samples,) or (n_samples, n_channels), default=None
        Weights >= 0, the same for all channels of a row.
    alpha, tv_budget : float >= 0
        Exactly one of them; both may be infinite.
    tol : float, default=1e-9
        Largest gap relative to the objective; beyond it a ConvergenceWarning says
        what was reached.
    max_iter : int, default=100
        Largest number of interior-point steps.

    Returns
    -------
    GroupSolution
    """
    if w is not None and w.ndim == 2:
        uneven = w.min(axis=1) != w.max(axis=1)
        if uneven.any():
            raise ValueError(
                f"penalty='group' needs all labels of a row or none, but row "
                f"{int(np.argmax(uneven))} misses some."
            )
        w = w[:, 0]
    rows, n_iter = _Rows(Signal(y, w)), 1
    variation = group_variation(rows.y)
    if tv_budget is not None:
        alpha = 0.0 if variation <= tv_budget else rows.alpha_max
    if alpha == 0 or variation == 0:
        u = rows.y.copy()
    elif alpha >= rows.alpha_max and not tv_budget:
        u = np.zeros_like(rows.y)
    else:
        if tv_budget:
            point, alpha = constrained(rows, tv_budget, tol, max_iter)
        else:
            point = penalised(rows, alpha, tol, max_iter)
        u, n_iter = point.u, max(point.n_iter, 1)
        if not point.gap <= tol:
            remedy = "max_iter or tol" if n_iter >= max_iter else "tol"
            warnings.warn(
                f"The joint jumps reached a relative gap of {point.gap:.1e}, above "
                f"tol={tol:g}. Increase {remedy}.",
                ConvergenceWarning,
                stacklevel=2,
            )
    return GroupSolution(
        rows.signal.spread(rows.mean + u), float(alpha), n_iter, rows, u
    )
