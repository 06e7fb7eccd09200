"""Adaptive logistic and Poisson regression without parameters, as a numpy reference.

The mean of a label y is A'(u), of the natural parameter u = z'theta, in the notation of
`sktvdenoise.losses`. Each member believes that the coefficients theta walk at random,
at its own pace, and follows them by a Gaussian approximation of what is known of them
(online Laplace approximation, or iterated Kalman filter). Trackers follow the best
member by fixed share, and the output is a mixture of the trackers, weighed by their
losses. The compiled kernel computes the same. What is promised is in ``doc/glm.md``.

References
----------
.. [1] M. West, P. J. Harrison and H. S. Migon, "Dynamic Generalized Linear Models and
   Bayesian Forecasting", Journal of the American Statistical Association 80 (1985).
.. [2] M. Herbster and M. K. Warmuth, "Tracking the Best Expert", Machine Learning 32
   (1998).
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from sktvdenoise import _laplace
from sktvdenoise.aggregation import fixed_share_update
from sktvdenoise.losses import LOSSES
from sktvdenoise.pool import winsorised_update

__all__ = [
    "SHARES",
    "Account",
    "CompiledPool",
    "LaplacePool",
    "Member",
    "Units",
    "laplace_update",
    "pool_members",
]

SHARES = (1e-4, 1e-3, 1e-2)  # of the trackers
_PROBABILITY = 1e-6  # logistic: no smaller one is predicted
_SUREST = 100.0  # logistic: no larger logarithm of odds is learned
_REACH = 5.0  # Poisson: logarithm of how far below what was seen
_WIDTH = 3.0  # Poisson: how many times above what was seen
_CREDIBLE = 25.0  # Poisson: unit deviance of a label that is learned as it is
_SPREAD = {"logistic": 10.0, "poisson": 3.0}  # of walks, in prior variances
_GUARD = 0.01  # weight of the guard in the beginning


class Member(NamedTuple):
    """How the coefficients of one member walk.

    In every round a coefficient becomes ``keep`` times itself plus noise of variance
    ``drift``; before the first its variance is ``variance``. All three are pairs: of
    the intercept, and of each slope.
    """

    variance: tuple
    drift: tuple
    keep: tuple


def pool_members(n_features, loss="logistic"):
    r"""The members of the pool.

    Parameters
    ----------
    n_features : int
        `d`.
    loss : {"logistic", "poisson"}, default="logistic"

    Returns
    -------
    members : list of Member
        28, all combinations of three choices: the prior variance of a slope, 0.3 or 3
        over `d`; its drift :math:`q`, 0 or :math:`0.2 \cdot 8^{-k} / d`, k = 0 to 5;
        the drift of the intercept, :math:`q` or :math:`10 q`, with prior variance 1.
        Each ``keep`` is :math:`\sqrt{1 - q / (c v)}` for a drift :math:`q` and a prior
        variance :math:`v`: what walks for ever has the variance :math:`c v`, with
        :math:`c = 10` for logistic loss and 3 for Poisson.

    Examples
    --------
    >>> from sktvdenoise.laplace import pool_members
    >>> len(pool_members(3)), pool_members(1)[0]
    (28, Member(variance=(1.0, 0.3), drift=(0.0, 0.0), keep=(1.0, 1.0)))
    """
    d, spread = max(n_features, 1), _SPREAD[loss]
    members = []
    for slope_variance in (0.3 / d, 3.0 / d):
        for slope_drift in [0.0, *(0.2 / d * 8.0**-k for k in range(6))]:
            for ratio in (1.0, 10.0):
                variance = 1.0, slope_variance
                drift = ratio * slope_drift, slope_drift
                keep = tuple(
                    (1 - q / (spread * v)) ** 0.5 for q, v in zip(drift, variance)
                )
                members.append(Member(variance, drift, keep))
    return members


def laplace_update(
    theta, covariance, z, y, weight, loss, offset=0.0, limits=(-np.inf, np.inf)
):
    r"""One label, learned by a Gaussian approximation of what is known.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Mean of the coefficients.
    covariance : ndarray of shape (p, p)
        :math:`P`.
    z : ndarray of shape (p,)
        Features of the row, a 1 for the intercept among them.
    y, weight : float
        Label and its weight :math:`w`.
    loss : Loss
        One of `sktvdenoise.losses.LOSSES`.
    offset : float, default=0.0
        Part of the natural parameter that isn't learned.
    limits : (float, float), default=(-inf, inf)
        What the natural parameter of the row can be at all.

    Returns
    -------
    theta, covariance : ndarray

    Notes
    -----
    Along the row :math:`u = z'\theta` has mean `m` and variance
    :math:`v = z' P z` before the label, and after it the mode

    .. math:: e = \arg\min_u \frac{(u - m)^2}{2 v} + w f_y(u).

    With :math:`h = w f_y''(e)`

    .. math::
        \theta \mathrel{+}= P z \frac{e - m}{v}, \quad
        P \mathrel{-}= \frac{h}{1 + h v} P z z' P,

    so that :math:`\theta` is the mode of all coefficients, and :math:`P` the inverse of
    the second derivative there. For squared loss this is the Kalman filter. Where
    :math:`z'\theta` is beyond the limits, it is first brought there by
    :math:`P z` too.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.laplace import laplace_update
    >>> from sktvdenoise.losses import LOSSES
    >>> laplace_update(np.zeros(1), np.eye(1), np.ones(1), 1.0, 1.0, LOSSES["squared"])
    (array([0.5]), array([[0.5]]))
    """
    g = covariance @ z
    u, v = z @ theta + offset, z @ g
    m = np.clip(u, *limits)
    # The mode is half of the way from m, at most, and not beyond the best u for y.
    other = m - 2 * v * weight * loss.derivative(y, m)
    other = np.clip(other, *sorted((m, loss.link(y))))
    e = m
    if other != m:
        e = brentq(
            lambda e: e - m + v * weight * loss.derivative(y, e), m, other, xtol=1e-13
        )
    h = weight * loss.curvature(e)
    theta = theta + g * (e - u) / v
    return theta, covariance - np.outer(g, g) * h / (1 + h * v)


class Units:
    r"""Features less their mean, in units of their standard deviation.

    Those of a feature follow for 2 p rows in which it has moved, of p coefficients, the
    present row included; and again from when it is a thousand times as wide. Else they
    stand, so that a feature with a trend doesn't lose its meaning, and the drift of its
    coefficient follows instead, by the ratio of the variance in the units to that of
    now. A feature that never moved is 0. What is more than :math:`20 + 2 \sqrt{t}`
    standard deviations off the mean is drawn in, in row `t`. The first two rows can't
    be; the mean takes their place where the variance of the 2 p rows thereafter is less
    than a thousandth of that with them.

    Units follow features that are shifted or multiplied, up to rounding.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features):
        self.first = None
        self.rows = np.empty((0, n_features))  # less the first, drawn in
        self.moves = np.zeros(n_features)
        self.centre = np.zeros(n_features)
        self.variance = np.zeros(n_features)

    def __call__(self, x):
        """The row with its 1, and the ratios of drift; then `keep` may be called."""
        first = x if self.first is None else self.first
        row, n = x - first, len(self.rows) + 1
        if n > 1:
            mean, std = self.rows.mean(axis=0), self.rows.std(axis=0)
            reach = np.where(std > 0, (20 + 2 * np.sqrt(n)) * std, np.inf)
            row = np.clip(row, mean - reach, mean + reach)
        rows = np.vstack([self.rows, row])
        now = rows.var(axis=0)
        again = now > 1e6 * self.variance
        if n == 2 * len(x) + 4:
            late = rows[2:].var(axis=0)
            narrower = (late > 0) & (late < 1e-3 * now)
            rows[:2, narrower] = rows[2:, narrower].mean(axis=0)
            now = rows.var(axis=0)
            again |= narrower
        moves = np.where(again, 1, self.moves + (now > 0))
        follows = moves <= 2 * (len(x) + 1)
        centre = np.where(follows, rows.mean(axis=0), self.centre)
        variance = np.where(follows, now, self.variance)
        z, ratio = np.zeros(len(x)), np.ones(len(x))
        moved = variance > 0
        z[moved] = (row - centre)[moved] / np.sqrt(variance[moved])
        ratio[moved] = variance[moved] / now[moved]
        self._next = first, rows, moves, centre, variance
        return np.r_[1.0, z], np.r_[1.0, ratio]

    def keep(self):
        """The row counts."""
        self.first, self.rows, self.moves, self.centre, self.variance = self._next


class Account(NamedTuple):
    r"""What a forecaster has lost to its guard, and how both are mixed.

    Attributes
    ----------
    excess : float
        :math:`D`, sum of the forecaster's losses less the guard's.
    steepness : float
        :math:`H`, 1 for the log loss. For Poisson deviances it is the largest
        :math:`\max(b, Y^2 / a)` so far, of the smaller prediction `a`, the larger `b`,
        and the largest label `Y` before.
    largest, largest_weight : float
        `Y` and `W`, largest label and sample weight so far; the latter at least 1.

    Notes
    -----
    The mixture is :math:`(1 - v) x + v g` for probabilities, and :math:`x^{1 - v} g^v`
    for rates, with :math:`v = 1 / (1 + 99 e^{-D / (H W)})`. With unit weights the log
    loss of it is never more than :math:`\ln 100` above the guard's, nor
    :math:`\ln(100/99)` above the forecaster's. See ``doc/glm.md``.

    Examples
    --------
    >>> from sktvdenoise.laplace import Account
    >>> account = Account().update("logistic", 1.0, 1.0, 1e-6, 0.9)
    >>> round(float(account.mix("logistic", 1e-6, 0.9)), 3)
    0.9
    """

    excess: float = 0.0
    steepness: float = 1.0
    largest: float = 0.0
    largest_weight: float = 1.0

    def ahead(self, loss, prediction, guard):
        """The account with the H that both predictions ask for."""
        if loss == "logistic":
            return self
        low, high = sorted((prediction, guard))
        steepness = max(self.steepness, high, self.largest**2 / low)
        return self._replace(steepness=steepness)

    def mix(self, loss, prediction, guard):
        """The mixture of a prediction and its guard's."""
        account = self.ahead(loss, prediction, guard)
        exponent = account.excess / (account.steepness * account.largest_weight)
        share = expit(exponent + np.log(_GUARD / (1 - _GUARD)))
        if loss == "logistic":
            return prediction + share * (guard - prediction)
        return prediction * (guard / prediction) ** share

    def update(self, loss, y, weight, prediction, guard):
        """Label and weight count up to the largest before."""
        account = self.ahead(loss, prediction, guard)
        part = min(weight, self.largest_weight)
        drawn_in = y if loss == "logistic" else min(y, self.largest)
        link, value = LOSSES[loss].link, LOSSES[loss].value
        lost = value(drawn_in, link(prediction)) - value(drawn_in, link(guard))
        return account._replace(
            excess=account.excess + part * float(lost),
            largest=max(self.largest, y),
            largest_weight=max(self.largest_weight, weight),
        )


class LaplacePool:
    r"""Members, trackers and their mixture, without a guard.

    Parameters
    ----------
    n_features : int
    loss : {"logistic", "poisson"}
    members : sequence of Member or None, default=None
        None means `pool_members`.
    shares : sequence of float, default=SHARES

    Attributes
    ----------
    theta : ndarray of shape (n_members, n_features + 1)
        Coefficients in the features' units, the intercept's first.
    weights : ndarray of shape (n_trackers, n_members)
    top : ndarray of shape (n_trackers,)
        Weights of the trackers in the output.

    Notes
    -----
    Members predict :math:`A'(u)` at their mean `u`, drawn in: to probabilities from
    1e-6 to 1 - 1e-6; and to rates (less the offset) up to three times the largest that
    was learned, counting one event more, and down to a factor :math:`e^{-5}` below the
    least and the mean rate. Neither do they believe in other rates, nor in logarithms
    of odds beyond 100.

    Trackers and members lose :math:`w f_y`; the weights are multiplied by
    :math:`e^{-w f_y}`, and those of members share, see
    `sktvdenoise.aggregation.fixed_share_update`.

    Counts vary more than Poisson's law says. Their weights are divided by the
    dispersion :math:`\phi`, the mean unit deviance of the output's errors so far
    (winsorised, with a memory of 200 rows), where that is above 1.

    A count is drawn in before it is learned, so that one that is absurd does no lasting
    harm: where :math:`\mu` was predicted, to

    .. math::
        \max\left(\mu + \frac s3 + \sqrt{\frac{s^2}{9} + 2 \mu s},
            \frac{1 + \sum_{i < t} w_i y_i}{w}\right), \quad
        s = \frac{25 \cdot 16^k}{2 w} \max(\phi, 1),

    after `k` surprises in succession, with the sum over what was learned. Poisson's law
    exceeds the first with a probability of at most :math:`e^{-s}`, by Bernstein's
    inequality. The second lets large counts be learned that come regularly, however
    rarely.

    The first prediction is a probability of 1/2, or one event. The intercept's prior
    mean is that of even odds; or of the first row's rate, one event and half a unit of
    weight counted in. That is all that the first count does; where it isn't credible,
    of the mean of one event more than the second, the second takes its place.

    `offset` is the logarithm of exposure. A row of exposure `E` may as well be given as
    one of weight `E` and label :math:`y / E`; then the first prediction is a rate of 1,
    as the exposure isn't known to be one, and may cost about `E`.

    Examples
    --------
    >>> from sktvdenoise.laplace import LaplacePool
    >>> pool = LaplacePool(1, "logistic")
    >>> for x, y in [(0, 0), (1, 1), (0, 0), (1, 1), (0, 0), (1, 1)]:
    ...     pool.learn([x], y)
    >>> pool.predict([0]) < 0.3, pool.predict([1]) > 0.7
    (True, True)
    """

    def __init__(self, n_features, loss, members=None, shares=SHARES):
        members = pool_members(n_features, loss) if members is None else members
        self.loss, self.shares = loss, shares
        slopes = np.r_[0, np.ones(n_features, dtype=int)]
        self.drift = np.array([m.drift for m in members])[:, slopes]
        self.keep = np.array([m.keep for m in members])[:, slopes]
        self.theta = np.zeros_like(self.drift)
        variance = np.array([m.variance for m in members])[:, slopes]
        self.covariance = variance[:, :, None] * np.eye(n_features + 1)
        self.weights = np.full((len(shares), len(members)), 1 / len(members))
        self.top = np.full(len(shares), 1 / len(shares))
        self.units = Units(n_features)
        self.rates = []  # of one event more than was learned
        self.events = self.exposure = self.base = 0.0
        self.dispersion, self.n_surprises, self.round = 1.0, 0, 0

    def _range(self):
        """Least and largest natural parameter, without offset."""
        if self.loss == "logistic":
            high = np.log(1 / _PROBABILITY - 1)
            return -high, high
        if not self.rates:
            return -np.inf, np.inf
        least = min(*self.rates, (self.events + 1) / self.exposure)
        return np.log(least) - _REACH, np.log(_WIDTH * max(self.rates))

    def _credible(self, mean, weight):
        """The largest count that is believed, of a mean."""
        deviance = _CREDIBLE * 16.0**self.n_surprises * max(self.dispersion, 1.0)
        s = deviance / (2 * weight)
        return mean + s / 3 + np.sqrt(s * (s / 9 + 2 * mean))

    def _look(self, x, offset):
        """What is known of a row before its label."""
        z, ratio = self.units(np.asarray(x, dtype=float))
        u = self.theta @ z + (self.base + offset if self.round else 0.0)
        u = np.clip(u, *np.add(self._range(), offset))
        means = LOSSES[self.loss].mean(u)
        tracked = self.weights @ means
        return z, ratio, u, tracked, self.top @ tracked

    def predict(self, x, offset=0.0):
        """The mean of the label of a row, if it were the next."""
        return float(self._look(x, offset)[-1])

    def learn(self, x, y, weight=1.0, offset=0.0):
        """Learn one row."""
        loss = LOSSES[self.loss]
        z, ratio, u, tracked, mean = self._look(x, offset)
        self.units.keep()
        limits = -_SUREST, _SUREST
        if self.loss == "poisson":
            first = not self.rates or (
                self.round == 1
                and np.exp(self.base + offset) > self._credible(y + 1 / weight, weight)
            )
            if first:
                self.base = np.log((weight * y + 1) / (weight + 0.5)) - offset
                self.rates, self.events, self.exposure = [], 0.0, 0.0
            else:
                largest = max(self._credible(mean, weight), (self.events + 1) / weight)
                deviance = 2 * weight * loss.value(y, loss.link(mean))
                gain = max(0.005, 1 / (self.round + 10))
                self.dispersion, self.n_surprises = winsorised_update(
                    self.dispersion, self.n_surprises, deviance, gain
                )
                y = min(y, largest)
            self.events += weight * y
            self.exposure += weight * np.exp(offset)
            self.rates.append((y + 1 / weight) / np.exp(offset))
            if first:
                self.round += 1
                return
            limits = np.add(self._range(), offset)
            weight = weight / max(self.dispersion, 1.0)
        if self.round:
            losses = weight * loss.value(y, u)
            for k, share in enumerate(self.shares):
                factors = np.exp(losses.min() - losses)
                self.weights[k] = fixed_share_update(self.weights[k], factors, share)
            losses = weight * loss.value(y, loss.link(tracked))
            top = np.maximum(self.top * np.exp(losses.min() - losses), 1e-100)
            self.top = top / top.sum()
        for j, (theta, covariance) in enumerate(zip(self.theta, self.covariance)):
            theta, covariance = laplace_update(
                theta, covariance, z, y, weight, loss, self.base + offset, limits
            )
            keep, drift = self.keep[j], self.drift[j] * ratio
            self.theta[j] = keep * theta
            self.covariance[j] = np.outer(keep, keep) * covariance + np.diag(drift)
        self.round += 1

    def coefficients(self):
        """Weighted mean of the members' coefficients: (slopes, intercept)."""
        theta = self.top @ self.weights @ self.theta
        moved = self.units.variance > 0
        slopes = np.zeros(len(moved))
        slopes[moved] = theta[1:][moved] / np.sqrt(self.units.variance[moved])
        centre = self.units.first + self.units.centre if self.round else slopes
        return slopes, float(theta[0] + self.base - slopes @ centre)


class CompiledPool:
    """The compiled pool of one loss, for rows of which each has a guard's prediction.

    Parameters
    ----------
    loss : {"logistic", "poisson"}

    Notes
    -----
    A state is an array of bytes, edited in place.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.laplace import CompiledPool
    >>> pool, X, y = CompiledPool("poisson"), np.zeros((50, 1)), np.full(50, 4.0)
    >>> state, out = pool.allocate(1), np.empty(50)
    >>> pool.learn(state, X, y, np.ones(50), None, out)
    >>> bool(abs(out[-1] - 4) < 0.1)
    True
    """

    def __init__(self, loss):
        self.loss = loss

    def allocate(self, n_features):
        """The state before the first row."""
        members = pool_members(n_features, self.loss)
        return _laplace.allocate(
            n_features, _laplace.Code[self.loss.upper()], members, SHARES
        )

    def learn(self, state, X, y, weights, guard, out, offset=None):
        """Learn rows; out[i] is the mean of y[i], known before y[i] is seen.

        Parameters
        ----------
        state : ndarray of uint8
        X : ndarray of shape (n, n_features)
        y, weights : ndarray of shape (n,)
            Rows of weight 0 are predicted only.
        guard : ndarray of shape (n,) or None
            Means by another forecaster, to stay close to. See `Account`.
        out : ndarray of shape (n,)
        offset : ndarray of shape (n,) or None, default=None
            Logarithm of exposure; None means zeros.
        """
        offset = np.zeros(len(y)) if offset is None else offset
        _laplace.learn(state, X, y, weights, offset, out, guard)

    def predict(self, state, X, guard, out, offset=None):
        """The mean of the label of each row, if it were the next."""
        offset = np.zeros(len(X)) if offset is None else offset
        _laplace.predict(state, X, offset, out, guard)

    def coefficients(self, state):
        """Weighted mean of the members' coefficients: (slopes, intercept)."""
        return _laplace.coefficients(state)

    def weights(self, state):
        """How much of the pool's next prediction each member accounts for."""
        return _laplace.weights(state)
