"""The best varying coefficients within a budget of variation, on validated arrays.

minimise sum_t w_t f(y_t, x_t.u_t)  subject to  sum_t |u_t - u_{t-1}|_1 <= C,
|u_t|_inf <= B, for a convex, differentiable loss f.

The multiplier alpha of the budget is a root of the variation, which never grows with
it. At one alpha three kinds of step take turns, on a quadratic model of the loss:

- a proximal step, by a semismooth Newton method on its dual (Li, Sun and Toh 2018):
  all coefficients together, whatever the correlation and scales of the covariates;
- a sweep over the coefficients, each one's whole sequence an exact one-dimensional
  fused lasso; sweeps alone converge (Tseng 2001), but slowly;
- Newton's step on the pieces found, which ends the rest.

Lower bound. For any v and alpha, by Fenchel's inequality, any u within the budget has

    sum_t w_t f(y_t, x_t.u_t)
        >= -sum_t (w f)*(v_t) + sum_t v_t x_t.u_t + alpha (TV(u) - C),

and the minimum of the right side over |u| <= B is known (see `excess`). Without the
bound it is finite, and that of u = 0, only if |cumsum(v x_k)| <= alpha and the whole
sums are 0. With v_t = w_t f'(y_t, x_t.u_t), brought there if need be, the optimum has
equality.
"""

from dataclasses import dataclass

import numpy as np

from sktvdenoise._oracle_steps import excess, joint, nearest, pulls, sweep
from sktvdenoise.losses import Squared

NEGLIGIBLE = 1e-15  # a loss, relative to that of u = 0
LITTLE = 1e-3  # a loss, relative to that of the best constant u
# Where a curvature is below the derivative by this factor, the model's curvature is
# that: otherwise its minimum may lie where the loss has left the range of numbers.
FLATTEST = 1e-4
ALONE = 20  # sweeps at a multiplier before proximal steps come in
MAX_INNER = 30  # Newton's steps in a proximal step


class _Rows:
    """Labels, weights > 0 and covariates, of shape (n_features, n_samples)."""

    def __init__(self, y, w, X, loss, bound):
        self.y, self.w, self.X, self.loss, self.bound = y, w, X, loss, bound
        self.quadratic = isinstance(loss, Squared)
        self.room = np.empty(3 * len(y))

    def predictions(self, u):
        return np.einsum("kt,kt->t", self.X, u)

    def total(self, eta):
        return float(np.dot(self.w, self.loss.value(self.y, eta)))

    def derivative(self, eta):
        with np.errstate(over="ignore"):
            return self.w * self.loss.derivative(self.y, eta)

    def curvature(self, eta, v):
        h = self.w * self.loss.curvature(eta)
        return h if self.quadratic else np.maximum(h, FLATTEST * np.abs(v))

    def clip(self, u):
        return u if np.isinf(self.bound) else np.clip(u, -self.bound, self.bound)


def _variation(u):
    return float(np.abs(np.diff(u, axis=1)).sum())


class _Point:
    """Coefficients u, of shape (n_features, n_samples), and what follows from them."""

    def __init__(self, rows, u):
        self.rows, self.u = rows, u
        self.eta = rows.predictions(u)
        self.v = rows.derivative(self.eta)
        self.h = rows.curvature(self.eta, self.v)
        self.tv = _variation(u)
        self.loss = rows.total(self.eta)

    @property
    def touches(self):
        return bool(np.any(np.abs(self.u) >= self.rows.bound))

    def certificate(self, alpha):
        """g, alpha': any u' has a loss of at least loss - g - alpha' (TV(u') - TV(u)).

        alpha' is the given alpha where the coefficients meet their bound, otherwise
        the least one that is possible.
        """
        rows, u = self.rows, self.u
        if self.touches:
            own = max(excess(rows.X, self.v, u, alpha, rows.bound), 0.0)
            return own, alpha
        v, cost = self.balanced()
        alpha, product = pulls(rows.X, v, u)
        return max(cost + alpha * self.tv - product, 0.0), alpha

    def balanced(self):
        """A v near to the derivative with sum_t v_t x_t = 0, and what it costs."""
        rows = self.rows
        weighted = rows.X * self.h
        normal = weighted @ rows.X.T
        scale = np.sqrt(np.diag(normal))
        scale[scale == 0] = 1.0
        normal /= scale * scale[:, None]
        left = rows.X @ self.v / scale
        move = np.linalg.lstsq(normal, left, rcond=1e-13)[0] / scale
        v = self.v - self.h * (move @ rows.X)
        mean = rows.loss.mean(self.eta) + (v - self.v) / rows.w
        other = rows.loss.link(mean, (1 - rows.y) - v / rows.w)
        if not np.all(np.isfinite(other)):
            return v, np.inf
        cost = rows.loss.divergence(self.eta, other)
        rounding = (rows.loss.mean(other) - mean) * (self.eta - other)
        return v, float(np.dot(rows.w, cost + np.maximum(rounding, 0.0)))

    def moved(self, move, alpha):
        """The point along `move`, at most at its end, that lowers the objective most.

        The objective is convex and its derivative known: the first point will do where
        that has fallen to a tenth.
        """
        rows = self.rows
        ahead = rows.predictions(move)
        turn = np.diff(move, axis=1).ravel()
        at = np.flatnonzero(turn)
        turn, step = turn[at], np.diff(self.u, axis=1).ravel()[at]

        def slope(share):
            left = step + share * turn
            sign = np.where(left != 0, np.sign(left), np.sign(turn))
            pull = alpha * float(np.dot(sign, turn)) if len(at) else 0.0
            return (
                float(np.dot(rows.derivative(self.eta + share * ahead), ahead)) + pull
            )

        first, low, high = slope(0.0), 0.0, 1.0
        if not first < 0:
            return self
        falling, rising = first, slope(1.0)
        if rising <= -0.01 * first:
            return _Point(rows, self.u + move)
        for _ in range(20):
            share = falling / (falling - rising) if np.isfinite(rising) else 0.0
            share = low + (high - low) * min(max(share, 0.1), 0.9)
            middle = slope(share)
            if middle < 0:
                low, falling = share, middle
            else:
                high, rising = share, middle
            if low > 0 and falling >= 0.1 * first:
                break
        return _Point(rows, rows.clip(self.u + low * move)) if low else self

    def swept(self, alpha):
        """After a sweep over the coefficients on the quadratic model of the loss."""
        rows, u = self.rows, self.u.copy()
        r = np.divide(-self.v, self.h, out=np.zeros_like(self.v), where=self.h > 0)
        sweep(rows.X, self.h, r, u, alpha, rows.bound, rows.room)
        return _Point(rows, u) if rows.quadratic else self.moved(u - self.u, alpha)

    def joined(self, alpha):
        """After Newton's step on all pieces, and d u / d alpha."""
        rows = self.rows
        move, rate = np.empty((2, *self.u.shape))
        none = np.zeros(len(rows.X))
        joint(rows.X, self.h, self.v, none, self.u, alpha, rows.bound, move, rate)
        if np.isfinite(rows.bound):
            move = rows.clip(self.u + move) - self.u
        return self.moved(move, alpha), rate

    def nearer(self, alpha, nearness):
        """After a proximal step, and how many of Newton's steps it took.

        Minimises the model + sum_k ridge_k |u_k - self.u_k|^2 / 2 over u by its dual

            max_v sum_t [v (x.u(v) - eta) - (v - g)^2 / (2 h)] + ...,

        concave with the derivative `off`: u(v) is, for each coefficient, a
        one-dimensional fused lasso with unit weights, of derivative -1 / ridge times
        the averaging over its pieces. Where the steps don't end nothing changes.
        """
        rows, g = self.rows, self.v
        X, h = rows.X, np.maximum(self.h, 1e-300)
        ridge = nearness * np.maximum(np.mean(h * X**2, axis=1), 1e-300)
        unused = np.empty_like(self.u)

        def at(v):
            u = np.empty_like(self.u)
            nearest(self.u - X * (v / ridge[:, None]), alpha / ridge, rows.bound, u)
            return u, rows.predictions(u) - self.eta - (v - g) / h

        v = g
        u, off = at(v)
        for n_inner in range(MAX_INNER):  # noqa: B007
            size = float(np.dot(h, off**2))
            change = float(ridge @ np.sum((u - self.u) ** 2, axis=1))
            if size <= max(1e-2 * change, 1e-14 * self.loss):
                break
            move = np.empty_like(u)
            joint(X, h, h * off, ridge, u, 0.0, rows.bound, move, unused)
            ahead = h * (off + rows.predictions(move))
            slope = float(np.dot(off, ahead))
            low, high, rising, falling = 0.0, 1.0, slope, None
            share = 1.0
            for _ in range(8):
                u, off = at(v + share * ahead)
                middle = float(np.dot(off, ahead))
                if abs(middle) <= 0.5 * slope or (middle > 0 and share == 1):
                    break
                if middle > 0:
                    low, rising = share, middle
                else:
                    high, falling = share, middle
                share = min(max(rising / (rising - falling), 0.1), 0.9)
                share = low + (high - low) * share
            v = v + share * ahead
        else:
            return self, MAX_INNER
        new = _Point(rows, u) if rows.quadratic else self.moved(u - self.u, alpha)
        if new.loss + alpha * new.tv > self.loss + alpha * self.tv:
            return self, MAX_INNER
        return new, n_inner

    def fall(self, rate):
        """-d TV / d alpha."""
        return -float(np.sum(np.sign(np.diff(self.u, axis=1)) * np.diff(rate, axis=1)))

    def steps_as(self, other):
        """Whether both step at the same times in the same directions."""
        one, two = np.diff(self.u, axis=1), np.diff(other.u, axis=1)
        return np.array_equal(np.sign(one), np.sign(two))


@dataclass
class Fit:
    """Coefficients within the budget, and how near they are to the best ones.

    Attributes
    ----------
    u : ndarray of shape (n_samples, n_features)
    loss, gap : float
        sum w f, at most `gap` above the least possible one.
    alpha : float
        The multiplier of the budget.
    n_iter : int
    converged : bool
        Whether `gap` is at most tol times `loss` (or a thousandth of that of the best
        constant u), or the loss itself negligible.
    """

    u: np.ndarray
    loss: float
    gap: float
    alpha: float
    n_iter: int
    converged: bool


class _Search:
    """The descent at one multiplier after another, and the best point found.

    `below` is the last point whose variation is less than the budget, `best` the
    point within the budget of the least gap, with that and its multiplier.
    """

    def __init__(self, rows, budget, tol, max_iter):
        self.rows, self.budget, self.tol, self.max_iter = rows, budget, tol, max_iter
        self.n_iter, self.nearness, self.done = 0, 0.1, False
        start = _Point(rows, np.zeros(rows.X.shape))
        self.negligible = NEGLIGIBLE * start.loss
        self.little = 0.0
        self.below = start
        self.best = (start, np.inf, np.inf)
        self._record(start, *start.certificate(np.inf))

    def run(self):
        if self.done:
            return
        point, _, _ = self._descend(self.below, np.inf)
        if self.done or self.budget == 0:
            return
        self.below, self.little = point, LITTLE * point.loss
        low, high = (0.0, np.inf), (self._largest(point), 0.0)
        alpha = 0.3 * high[0]
        while self.n_iter < self.max_iter:
            point, rate, fall = self._descend(point, alpha)
            if point.tv > self.budget:
                low = alpha, point.tv
                if not self.done:
                    self._record_within(point, alpha)
            else:
                high, self.below = (alpha, point.tv), point
            if self.done:
                return
            if high[0] <= 1.001 * low[0]:
                # A variation was not yet near enough to its limit: look again.
                low, high = (0.7 * alpha, point.tv), (1.4 * alpha, point.tv)
            new = self._next(point, alpha, fall, low, high)
            if fall and abs(new - alpha) < 0.5 * alpha:
                ahead = self.rows.clip(point.u + (new - alpha) * rate)
                ahead = _Point(self.rows, ahead)
                if ahead.loss + new * ahead.tv < point.loss + new * point.tv:
                    point = ahead
            alpha = new

    def _largest(self, constant):
        """A multiplier at which the best constant u is the solution."""
        v = constant.v if constant.touches else constant.balanced()[0]
        return pulls(self.rows.X, v, constant.u)[0]

    def _descend(self, point, alpha):
        """Minimise at `alpha` until the error of the budget is the larger one."""
        n_alone = 0
        while True:
            self.n_iter += 1
            if n_alone >= ALONE and np.isfinite(alpha):
                point, n_inner = point.nearer(alpha, self.nearness)
                if n_inner == MAX_INNER:
                    self.nearness = min(10 * self.nearness, 1.0)
                elif n_inner < 8:
                    self.nearness = max(0.2 * self.nearness, 1e-6)
            n_alone += 1
            swept = point.swept(alpha)
            point, rate = swept.joined(alpha)
            own, least = point.certificate(alpha)
            beyond = point.tv - self.budget
            if beyond <= 0:
                self._record(point, own, least)
            elif own + alpha * beyond <= 10 * self.tol * max(point.loss, self.little):
                self._record_within(point, alpha)
            enough = 0.1 * self.tol * max(point.loss, self.little)
            if np.isfinite(alpha):
                enough = max(enough, 0.1 * alpha * abs(beyond))
            near = own <= enough
            if beyond < 0:
                near = near or point.loss <= enough  # no loss is below 0
            if self.done or near or self.n_iter >= self.max_iter:
                # The rate is known where the pieces of `swept` are the solution's.
                known = own <= enough and swept.steps_as(point)
                fall = point.fall(rate) if known else 0.0
                return point, rate, fall

    def _next(self, point, alpha, fall, low, high):
        """The multiplier at which the variation would be the budget.

        With `fall`, -d TV / d alpha, where that is known, it is Newton's; otherwise the
        variation is taken for a power of the multiplier: -1, or that which goes
        through both ends of the interval. `low` and `high` are pairs of a multiplier
        and its variation.
        """
        least, most = low[0], high[0]
        power = 1.0
        if fall and point.tv > 0:
            new = alpha + (point.tv - self.budget) / fall
            if max(least, 0.5 * alpha) < new < min(most, 2 * alpha):
                return new
            power = alpha * fall / point.tv
        elif least and high[1] > 0:
            power = np.log(low[1] / high[1]) / np.log(most / least)
        step = np.log(max(point.tv, 0.1 * self.budget) / self.budget)
        new = alpha * np.exp(np.clip(step / max(power, 1e-3), -2.3, 2.3))
        if least:
            edge = 0.1 * np.log(most / least)
            return np.clip(new, least * np.exp(edge), most * np.exp(-edge))
        return new if new < most else 0.5 * most

    def _record(self, point, own, alpha):
        """Keep the point, which is within the budget, if its gap is the least."""
        left = self.budget - point.tv
        gap = own + (alpha * left if left > 0 else 0.0)
        gap = min(gap, point.loss)  # no loss is below 0
        if gap <= self.best[1]:
            self.best = (point, gap, alpha)
            negligible = point.loss <= self.negligible
            self.done = negligible or gap <= self.tol * max(point.loss, self.little)

    def _record_within(self, point, alpha):
        """The same for a point within the budget near to this one beyond it.

        Where the variation jumps at a multiplier, what lies between two of its
        minima is one, too.
        """
        if point.tv <= self.budget * (1 + 1e-12):
            u = point.u * (self.budget / point.tv * (1 - 1e-15))
        else:
            share = (self.budget - self.below.tv) / (point.tv - self.below.tv)
            share *= 1 - 1e-12
            u = share * point.u + (1 - share) * self.below.u
        near = _Point(self.rows, u)
        self._record(near, *near.certificate(alpha))


def fit(y, w, X, loss, *, budget, bound=None, tol=1e-8, max_iter=1000):
    """Find the best coefficients within `budget`.

    Parameters
    ----------
    y, w : ndarray of shape (n_samples,)
        Labels in the domain of the loss, and weights >= 0.
    X : ndarray of shape (n_samples, n_features)
    loss : ExponentialFamily
    budget : float >= 0
    bound : float > 0, default=None
    tol : float
    max_iter : int

    Returns
    -------
    Fit
    """
    # Rows without a weight or a covariate have no say. They keep the coefficients of
    # the last row before them that has one.
    keep = (w > 0) & X.any(axis=1)
    rest = (w > 0) & ~keep
    constant = float(np.dot(w[rest], loss.value(y[rest], np.zeros(rest.sum()))))
    if not keep.any():
        return Fit(np.zeros(X.shape), constant, 0.0, 0.0, 0, True)
    bound = np.inf if bound is None else float(bound)
    rows = _Rows(y[keep], w[keep], np.ascontiguousarray(X[keep].T), loss, bound)
    search = _Search(rows, budget, tol, max_iter)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        search.run()
    point, gap, alpha = search.best
    source = np.maximum(np.cumsum(keep) - 1, 0)
    if point.loss <= search.negligible:
        alpha = 0.0
    return Fit(
        point.u.T[source], point.loss + constant, gap, alpha, search.n_iter, search.done
    )
