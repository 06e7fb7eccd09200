"""The pool behind the default rate, as a numpy reference for one stream.

Forecasters of many kinds (`sktvdenoise.experts`) are weighed by fixed share and
ML-Poly (`sktvdenoise.aggregation`). What is here puts them together: when labels are
held back, when the pool starts again, what it takes for the variance of the noise,
and the guard that keeps the guarantee of the theory's learner. The compiled kernels
compute the same, in units of a power of two near the first label that isn't 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sktvdenoise._pool import Kind
from sktvdenoise.aggregation import (
    MLPoly,
    fixed_share_update,
    flh_running_mean,
    ml_poly_update,
    ml_poly_weights,
    student_factor,
)
from sktvdenoise.experts import (
    POOL,
    find_period,
    holt_update,
    kalman_gain,
    mixture_start,
    mixture_update,
    profile_start,
    profile_update,
    ridge_forecast,
    ridge_update,
)

__all__ = ["Guard", "Pool", "guard_update", "pool_forecasts", "winsorised_update"]


def winsorised_update(variance, n_surprises, square, gain):
    r"""Running variance in which single outliers count for little.

    Parameters
    ----------
    variance : float
        :math:`s`; 0 before the first square that isn't.
    n_surprises : int
        Surprises of late.
    square : float
        :math:`q`, squared error of the label.
    gain : float
        Part of the way that the variance moves towards it.

    Returns
    -------
    variance : float
        :math:`s + a (\min(q, c) - s)` with the cap :math:`c = 9 s \cdot 4^k` after `k`
        surprises.
    n_surprises : int
        One more, up to 40, if the square was above the cap, or one less.

    Examples
    --------
    >>> from sktvdenoise.pool import winsorised_update
    >>> winsorised_update(1.0, 0, 1e6, 0.5), winsorised_update(1.0, 2, 100.0, 0.5)
    ((5.0, 1), (50.5, 1))
    """
    if variance == 0:
        return square, n_surprises
    cap = 9 * variance * 4.0**n_surprises
    variance += gain * (min(square, cap) - variance)
    surprised = square > cap
    n_surprises = min(n_surprises + 1, 40) if surprised else max(n_surprises - 1, 0)
    return variance, n_surprises


class Guard(NamedTuple):
    """Account of a forecaster's loss against its guard's.

    Attributes
    ----------
    excess : float
        In units of :math:`B^2 W`.
    bound, weight_bound : float
        `B` and `W`, the largest label in absolute value and sample weight so far.
    tripped : bool
        Whether the guard takes part.
    """

    excess: float = 0.0
    bound: float = 0.0
    weight_bound: float = 0.0
    tripped: bool = False

    @property
    def share(self):
        """Weight of the guard in the next output."""
        return float(self.tripped and expit(self.excess / 13))


def guard_update(guard, prediction, guarded, y, weight=1.0, patience=4.0):
    r"""One label on the account of a guard.

    Parameters
    ----------
    guard : Guard
    prediction, guarded : float
        Of the forecaster, within :math:`1.5 B`, and of its guard, within `B`.
    y, weight : float
        Label and its weight.
    patience : float, default=4.0
        Excess from which the guard takes part.

    Returns
    -------
    guard : Guard
        The next output is :math:`(1 - v) x + v g`, of the forecaster's `x` and the
        guard's `g`, where `v` is ``guard.share``.

    Notes
    -----
    The excess grows by :math:`w ((y - x)^2 - (y - g)^2)`. Until it exceeds
    `patience` times :math:`B^2 W` the share is 0. From then on it is counted anew, with
    labels drawn in to the :math:`[-B, B]`, and weights to the `W`, of the rounds
    before, and the share is :math:`1 / (1 + e^{-D / (13 B^2 W)})` for an excess `D`.
    With a patience of 4, the sum of the output's losses is in every round at most the
    guard's plus :math:`20 B^2 W`. The proof is in ``doc/auto.md``.

    Examples
    --------
    >>> from sktvdenoise.pool import Guard, guard_update
    >>> guard = guard_update(Guard(), 0.0, 0.0, 1.0)
    >>> guard = guard_update(guard, -1.5, 0.0, 1.0)
    >>> guard.tripped, guard.share, guard_update(guard, 0.0, 1.0, 1.0).share > 0.5
    (True, 0.5, True)
    """
    bound = max(guard.bound, abs(y))
    weight_bound = max(guard.weight_bound, weight)
    excess, tripped = guard.excess, guard.tripped
    if tripped:
        y = np.clip(y, -guard.bound, guard.bound)
        weight = min(weight, guard.weight_bound)
    if bound > 0:
        excess *= (guard.bound / bound) ** 2 * (guard.weight_bound / weight_bound)
        gap, sum_of_errors = guarded - prediction, 2 * y - prediction - guarded
        excess += weight / weight_bound * (gap / bound) * (sum_of_errors / bound)
    if not tripped and excess > patience:
        excess, tripped = 0.0, True
    return Guard(excess, bound, weight_bound, tripped)


_SHARES = (1e-4, 1e-3, 1e-2, 1e-1)  # of the trackers
_N_STEADY = 2  # trackers with a head start
_MIXTURES = {  # kind: whether it has trends, and heavy tails
    Kind.MEANS: (False, False),
    Kind.TRENDS: (True, False),
    Kind.ROBUST_MEANS: (False, True),
    Kind.ROBUST_TRENDS: (True, True),
}


class _Regression(NamedTuple):
    """Sums so far, and the regression behind the next prediction."""

    gram: np.ndarray
    moment: np.ndarray
    base: float
    x: np.ndarray
    profile: tuple | None = None  # level and deviations, of a season


class Pool:
    r"""Members, trackers and top of one stream, without the guard.

    Parameters
    ----------
    table : sequence of (name, kind, parameters, prior), default=POOL
        Members, as in `sktvdenoise.experts.POOL`.

    Attributes
    ----------
    unit : float
        Power of two, near the first label that isn't 0, that all else is in.
    output : float
        Prediction of the next label.
    predictions : ndarray of shape (n_members + 4,)
        Of the members, and of the trackers after them.
    weights : ndarray of shape (4, n_members)
        Of the members in each tracker.
    shares : ndarray of shape (n_members + 4,)
        Weights of all predictions in the output.
    variance : float
        Of the noise.

    Notes
    -----
    A tracker predicts the mean of the members by the weights of `fixed_share_update`,
    with shares from 1e-4 to 0.1; the output is the mean of members and trackers by
    those of `ml_poly_weights`. All are drawn in to the range of the labels, and a
    quarter of it on either side. The rest answers outliers and breaks:

    - A label more than 20 ranges outside the range so far is held back: the
      prediction is learned in its place. If the next is as far off it is accepted,
      and the pool starts again from it. Above 500 ranges, three are held back. What
      keeps coming back is no outlier: the third label that leaves a constant, and
      more than five in the last 64 or so, need no other to confirm them.
    - Robust members learn the prediction in place of a label more than 5 standard
      deviations off, unless the one before was replaced, too, on the same side.
    - In some of the first rounds, and in all multiples of 32, the pool looks back at
      the last labels, 64 at most. If the noise is ten times as large as their whole
      range something enormous came before, and the pool starts again.

    Sample weights count relative to their mean so far.

    Examples
    --------
    >>> from sktvdenoise.pool import Pool
    >>> pool = Pool()
    >>> for y in (1.0, 2.0, 3.0, 4.0, 1e9):
    ...     pool.learn(y)
    >>> round(pool.output * pool.unit)
    5
    """

    def __init__(self, table=POOL):
        self.table = table
        sizes = [_n_members(kind, a) for _, kind, a, _ in table]
        self.n_members = sum(sizes)
        prior = np.repeat([float(prior) for *_, prior in table], sizes)
        self._prior = prior / prior.sum()
        self.unit = self.output = self.variance = self.n_far = 0.0
        self.mean_weight = self.mass = 0.0
        self.row = self.round = self.age = self.n_held = self.n_surprises = 0

    def learn(self, y, weight=1.0):
        """Learn one label, not NaN, of positive weight."""
        if y != 0 and abs(y) > 1e60 * self.unit:
            # In other units, nothing of the past is of any size. Zeros have none.
            if self.unit > 0:
                self.age = self.n_held = self.n_surprises = 0
                self.output = self.variance = self.n_far = 0.0
            self.unit = 2.0 ** max(np.frexp(y)[1], -1020)
        y /= self.unit or 1.0
        self.round += 1
        self.mass *= self.mean_weight
        self.mean_weight += (weight - self.mean_weight) / self.round
        self.mass /= self.mean_weight
        weight = np.clip(weight / self.mean_weight, 1e-6, 1e6)
        if self.age == 0:
            self.low = self.high = self.near_low = self.near_high = y
            self._restart(y, weight)
        elif self._holds_back(y):
            self._learn(self.output, weight, held=True)
        elif self.n_held:
            self.n_held = self.n_far = 0
            self.low, self.high = min(self.low, y), max(self.high, y)
            self._restart(y, weight)
        else:
            self._learn(y, weight)
        self.row += 1

    def skip(self):
        """Pass over a row without a label: newborns have still to see their first."""
        self.row += 1
        for (_, kind, _, _), state in zip(self.table, self.states if self.age else ()):
            if kind in _MIXTURES:
                state.births[-1] = self.row

    @property
    def noise(self):
        """Variance of the noise, positive, and above that of rounding."""
        width = self.near_high - self.near_low
        return max(self.variance, 1e-10 * width**2, self.rounding**2, 1e-200)

    @property
    def rounding(self):
        """What is left of a difference of predictions where all labels are equal."""
        return 1e-13 * max(abs(self.low), abs(self.high))

    @property
    def member_weights(self):
        """How much of the output each member accounts for, itself and in trackers."""
        n = self.n_members
        return self.shares[:n] + self.shares[n:] @ self.weights

    def _holds_back(self, y):
        width = self.high - self.low
        beyond = max(y - self.high, self.low - y)
        if width > 0:
            self.n_far *= 1 - 1 / 64
        if self.round <= 4 or beyond <= 20 * width:
            self.n_held = 0
            return False
        self.n_far += 1
        self.n_held += 1
        if self.n_far > (5 if width > 0 else 2):
            return False
        return self.n_held <= (3 if width > 0 and beyond > 500 * width else 1)

    def _restart(self, y, weight):
        """All members know y, and nothing else. The noise and the range are kept."""
        self.age, self.side, self.mass, self.mean = 1, 0, weight, y
        self.labels, self.differences, self.period = [y], [], 0
        self.output, self.predictions = y, np.full(self.n_members + len(_SHARES), y)
        self.weights = np.tile(self._prior, (len(_SHARES), 1))
        self.shares = np.repeat([0, 1 / len(_SHARES)], [self.n_members, len(_SHARES)])
        zeros = np.zeros_like(self.predictions)
        self.top = MLPoly(zeros, zeros, 0.0)
        self.states = [self._start(kind, a, y, weight) for _, kind, a, _ in self.table]

    def _start(self, kind, a, y, weight):
        if kind == Kind.EWMA:
            return y
        if kind == Kind.HOLT:
            return y, 0.0
        if kind in _MIXTURES:
            trends, _ = _MIXTURES[kind]
            return mixture_start(self.row, y, weight, a, trends=trends)
        base, x = self._features(kind, a, None)
        return _Regression(np.zeros((len(x), len(x))), np.zeros(len(x)), base, x)

    def _learn(self, y, weight, held=False):
        prediction, noise = self.output, self.noise
        self.age += 1
        self.mass += weight
        weigh = self.age > 2 and self.high > self.low
        side = 1 if y > prediction else -1
        surprise = abs(y - prediction) > 5 * np.sqrt(noise)
        replaced = self.round > 5 and surprise and side != self.side
        self.side = side if replaced else 0
        if not held:
            self._aggregate(y, weight, noise, weigh)
            self.low, self.high = min(self.low, y), max(self.high, y)
        self.near_low, self.near_high = min(self.near_low, y), max(self.near_high, y)
        self._remember(y)
        self.mean += weight / self.mass * (y - self.mean)
        self._advance(y, prediction if replaced else y, weight, noise, weigh)
        self._predict()
        if self.round % 32 == 0 or 5 < self.round < 17 or self.round == 24:
            self._recalibrate()

    def _aggregate(self, y, weight, noise, weigh):
        """Trackers, top and noise learn from the errors of the round."""
        if weigh:
            errors = y - self.predictions[: self.n_members]
            factors = student_factor(errors, noise / weight)
            for k, share in enumerate(_SHARES):
                self.weights[k] = fixed_share_update(self.weights[k], factors, share)
        # Errors and gaps that may be rounding tell nothing.
        known = noise if self.variance > 0 else None
        round_ = self.output, self.predictions, y, weight
        self.top = ml_poly_update(self.top, *round_, known, self.rounding)
        square = weight * (y - self.output) ** 2
        if abs(y - self.output) <= self.rounding:
            return
        if self.variance == 0:
            # The first error is as likely as not a trend's.
            self.variance = 0.1 * square
        else:
            gain = max(0.01, 1 / (self.round - 1))
            self.variance, self.n_surprises = winsorised_update(
                self.variance, self.n_surprises, square, gain
            )

    def _remember(self, y):
        """Keep y, and its difference drawn in to three standard deviations."""
        difference = y - self.labels[-1]
        if len(self.differences) >= 8:
            reach = 3 * np.sqrt(np.mean(np.square(self.differences)))
            difference = float(np.clip(difference, -reach, reach))
        self.differences.append(difference)
        self.labels.append(y)
        n = len(self.labels)
        if n % (4 if n < 64 else 64) == 0:
            self.period = find_period(self.differences)

    def _advance(self, y, robust_y, weight, noise, weigh):
        """The members learn y and predict the next label."""
        predictions = []
        for i, ((_, kind, a, _), state) in enumerate(zip(self.table, self.states)):
            if kind == Kind.EWMA:
                state += kalman_gain(a[0], weight, self.mass) * (y - state)
                predictions.append(state)
            elif kind == Kind.HOLT:
                gain = kalman_gain(a[0], weight, self.mass)
                slope_gain = kalman_gain(a[0], weight, np.inf) * a[0] * a[1]
                state = holt_update(*state, y, gain, slope_gain)
                predictions.append(sum(state))
            elif kind in _MIXTURES:
                trends, heavy = _MIXTURES[kind]
                label = robust_y if heavy else y
                state = mixture_update(
                    state, self.row, label, weight, noise, a,
                    trends=trends, heavy=heavy, weigh=weigh,
                )  # fmt: skip
                predictions.extend(state.weights @ state.levels)
            else:
                gram, moment, base, x, profile = state
                if self.age > 2:
                    gram, moment = ridge_update(
                        gram, moment, x, y - base, weight, a[-1]
                    )
                if kind == Kind.SEASON:
                    profile, forecast = self._season(profile, y, *a[:2])
                    predictions.append(forecast)
                base, x = self._features(kind, a, profile)
                # Growth and seasons reach beyond what was seen: the present features
                # must not shrink their predictions.
                present = float(kind in (Kind.REVERSION, Kind.LAGS))
                forecast = ridge_forecast(gram, moment, x, self.noise, present)
                predictions.append(base + forecast)
                state = _Regression(gram, moment, base, x, profile)
            self.states[i] = state
        predictions = np.where(np.isnan(predictions), self.labels[-1], predictions)
        self.predictions = self._within_reach(predictions)

    def _season(self, profile, y, gain, seasonal_gain):
        """Profile with the present period, and its forecast."""
        p = self.period
        if p == 0:
            return None, y
        phase = self.round % p
        if profile is None or len(profile[1]) != p:
            profile = profile_start(np.array(self.labels[-p:]), phase)
        else:
            profile = profile_update(*profile, phase, y, gain, seasonal_gain)
        level, deviations = profile
        return profile, level + deviations[(phase + 1) % p]

    def _features(self, kind, a, profile):
        """What the next label is explained from: (base, features)."""
        last, mean = self.labels[-1], self.mean

        def lagged(lag, otherwise=mean):
            return self.labels[-1 - lag] if lag < len(self.labels) else otherwise

        change = last - lagged(1, last)
        if kind == Kind.REVERSION:
            return last, np.array([mean - last, change, np.sqrt(self.noise)])
        if kind == Kind.LAGS:
            return mean, np.array([lagged(k) - mean for k in range(a[0])])
        if kind == Kind.DIFFERENCES:
            changes = -np.diff(self.labels[: -a[0] - 2 : -1])
            unseen = np.zeros(a[0] - len(changes))
            return last, np.concatenate([changes, unseen, [mean - last]])
        if profile is None:
            return last, np.zeros(5)
        # One period ago the next label, the last and the one before are at lags
        # p - 1, p and p + 1.
        level, deviations = profile
        p = len(deviations)
        now, then = deviations[self.round % p], deviations[(self.round + 1) % p]
        x = [
            lagged(p - 1) - lagged(p),
            then - now,
            level + now - last,
            lagged(p - 1) - last,
            change - (lagged(p) - lagged(p + 1)),
        ]
        return last, np.array(x)

    def _predict(self):
        n = self.n_members
        trackers = self._within_reach(self.weights @ self.predictions)
        self.predictions = np.append(self.predictions, trackers)
        self.shares = ml_poly_weights(self.top, favoured=range(n, n + _N_STEADY))
        if not self.shares.any():
            self.shares[n:] = 1 / len(_SHARES)
        self.output = float(self._within_reach(self.shares @ self.predictions))

    def _within_reach(self, x):
        margin = 0.25 * (self.high - self.low)
        return np.clip(x, self.low - margin, self.high + margin)

    def _recalibrate(self):
        """Look back at the last labels; start again if old ones dwarf them."""
        n = min(self.round // 2, 64, len(self.labels))
        near = self.labels[-n:]
        self.near_low, self.near_high = min(near), max(near)
        width = self.near_high - self.near_low
        if n > 2 and width > 0 and self.variance > 100 * width**2:
            self.variance = width**2 / 16
            self.low, self.high = self.near_low, self.near_high
            self._restart(self.labels[-1], 1.0)


def _n_members(kind, parameters):
    if kind in _MIXTURES:
        return len(parameters)
    return 2 if kind == Kind.SEASON else 1


def pool_forecasts(y, sample_weight=None, *, table=POOL):
    """Predictions of the default rate: the pool, with its guard.

    Parameters
    ----------
    y : array-like of shape (n_rounds,)
        Labels; from NaN nothing is learned.
    sample_weight : array-like of shape (n_rounds,), default=None
        Weights; from a row of weight 0 nothing is learned.
    table : sequence of (name, kind, parameters, prior), default=POOL
        Members, as in `sktvdenoise.experts.POOL`.

    Returns
    -------
    predictions : ndarray of shape (n_rounds,)
        Each made before its label is seen.
    pool : Pool
    guard : Guard

    Examples
    --------
    >>> from sktvdenoise.pool import pool_forecasts
    >>> predictions, pool, guard = pool_forecasts([1.0, 2.0, 3.0, 4.0])
    >>> predictions[:2], guard.tripped
    (array([0., 1.]), False)
    """
    y = np.asarray(y, dtype=float)
    weights = np.ones_like(y) if sample_weight is None else np.asarray(sample_weight)
    guarded = flh_running_mean(y, learning_rate="theory", sample_weight=weights)
    pool, guard = Pool(table), Guard()
    predictions = np.empty_like(y)
    for row, (label, weight) in enumerate(zip(y, weights)):
        reach = 1.5 * guard.bound
        x = float(np.clip(pool.output * (pool.unit or 1), -reach, reach))
        predictions[row] = (1 - guard.share) * x + guard.share * guarded[row]
        if np.isnan(label) or weight == 0:
            pool.skip()
            continue
        guard = guard_update(guard, x, guarded[row], label, weight)
        pool.learn(label, weight)
    return predictions, pool, guard
