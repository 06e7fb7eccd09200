"""What runs behind the estimators with covariates: engines, and which parameters act.

An engine learns one output, row by row. It has

    start(n_features) -> state
    check(state, X, y, weights)              raises before anything is learned
    learn(state, X, y, weights, out) -> state    out: predictions before each label
    predict(state, X) -> predictions
    coef(state) -> (coefficients, intercept)
    experts(state) -> (births, weights)

where a state is numpy arrays that pickle as they are, `learn` edits them in place
(and returns them, or larger ones), and a row of weight 0 is predicted only. Where
`predicts_mean` is true predictions are means of the label, else linear predictors.
"""

from typing import NamedTuple

import numpy as np

from sktvdenoise import _linear
from sktvdenoise._linear import LINEAR_DTYPE, Base, LossCode
from sktvdenoise.linear_experts import (
    FLHSettings,
    flh_linear_coefficients,
    flh_linear_predict,
    flh_linear_start,
    flh_linear_update,
)
from sktvdenoise.losses import Logistic, Poisson, example_13

LEAST_SQUARES = ("vaw", "ridge")
EXPERTS = ("vaw", "ridge", "ons", "ogd")

# Squares of products of a few of these, and of their inverses, are numbers.
LARGEST = 1e30
_SMALLEST_BOUND = 1e-60


class Ranges(NamedTuple):
    """Largest label, row norm and weight that an engine is prepared for.

    A row beyond one of them raises it, as `GROWTH` says or to what the row has if that
    is more. Infinite where it doesn't matter.
    """

    label: float
    row: float
    weight: float

    def widened(self, labels, norms, weights):
        """The ranges after rows, and whether one of them is beyond these."""
        seen = (labels, norms, weights)
        new = Ranges(*map(_widen, self, map(np.abs, seen), GROWTH))
        return new, new != self


# The constants of counts grow like the exponential of one of the norm, and more.
GROWTH = Ranges(2.0, 1.25, 2.0)


def _widen(limit, values, growth):
    while (beyond := values > limit * (1 + 1e-12)).any():
        limit = max(growth * limit, float(values[np.argmax(beyond)]))
    return limit


class _FLH:
    """Follow-the-leading-history: its settings, by the rate and the ranges."""

    predicts_mean = False

    def __init__(self, base, loss, rate, *, bound, alpha, pruned, intercept):
        self.base, self.loss, self.rate = base, loss, rate
        self.bound, self.alpha = bound, alpha
        self.pruned, self.intercept = pruned, intercept
        self.is_theory = rate == "theory"

    def start(self, n_features):
        p = n_features + self.intercept
        return self._new(p, self._settings(p, self._first_ranges()))

    def check(self, state, X, y, weights):
        if self.has_constants:
            learned = weights > 0
            ranges, beyond = self._ranges(state).widened(
                y[learned], self._norms(X[learned]), weights[learned]
            )
            if beyond:
                self._constants(X.shape[1] + self.intercept, ranges)

    @property
    def has_constants(self):
        return self.is_theory and self.base not in LEAST_SQUARES

    @property
    def _starts_from_label(self):
        # The theorem's Newton step and descent start from 0, or from where they were. A
        # single class says little about its odds.
        if self.has_constants or isinstance(self.loss, Logistic):
            return False
        return self.intercept

    def constants_of(self, state):
        """Constants of Example 13 in force."""
        return self._constants(self._n_coefficients(state), self._ranges(state))

    def rate_of(self, state):
        ranges = self._ranges(state)
        return self._settings(self._n_coefficients(state), ranges).rate

    def bound_of(self, state):
        """B in force; infinite where there is none."""
        return self._bound(self._ranges(state).label)

    def label_bound_of(self, state):
        return max(float(self._ranges(state).label), 0.0)

    def row_bound_of(self, state):
        return max(float(self._ranges(state).row), 0.0)

    def _first_ranges(self):
        """Below every row where a range matters, infinite elsewhere."""
        never, at_once = np.inf, -1.0
        if self.base in LEAST_SQUARES:
            learnt = self.is_theory and self.bound is None
            return Ranges(
                at_once if learnt else never, never, 1.0 if self.is_theory else never
            )
        if self.is_theory:
            all_alike = self.loss.labels(1.0) == self.loss.labels(2.0)
            return Ranges(never if all_alike else at_once, at_once, 1.0)
        # Where predictions are drawn in depends on the labels, steps on both.
        by_label = np.isfinite(self.loss.kept(1.0)).any()
        return Ranges(
            at_once if by_label else never,
            at_once if self.base == "ogd" else never,
            never,
        )

    def _bound(self, label_bound):
        if self.bound is not None:
            return float(self.bound)
        if not self.is_theory:
            return np.inf
        if self.base not in LEAST_SQUARES and isinstance(self.loss, Poisson | Logistic):
            return 1.0
        return max(label_bound, _SMALLEST_BOUND)

    def _constants(self, p, ranges):
        return example_13(
            self.loss,
            bound=self._bound(ranges.label),
            label_bound=max(ranges.label, _SMALLEST_BOUND),
            row_bound=max(ranges.row, _SMALLEST_BOUND),
            n_features=p,
        )

    def _settings(self, p, ranges):
        """Settings for rows within ranges."""
        settings = FLHSettings(
            self.base,
            self.loss,
            self.intercept,
            self.pruned,
            from_label=self._starts_from_label,
            prior=1 / self.alpha,
        )
        bound = self._bound(ranges.label)
        if not self.is_theory:
            label = max(ranges.label, 0.0)
            settings = settings._replace(rate=float(self.rate), newton=float(self.rate))
            if self.base in LEAST_SQUARES:
                return settings._replace(low=-bound, high=bound)
            smoothness = self.loss.scale * self.loss.smoothness(label)
            row = max(ranges.row, _SMALLEST_BOUND)
            low, high = self.loss.kept(label)
            if self.base == "ons":
                # In units of squared gradients, as are squared features over the rate.
                settings = settings._replace(prior=self.rate / self.alpha)
            return settings._replace(
                box=min(bound, LARGEST),
                convexity=self.alpha * smoothness * row**2,
                low=low,
                high=high,
            )
        settings = settings._replace(weight_unit=ranges.weight)
        if self.base in LEAST_SQUARES:
            # On [-B, B] the constants of Example 13 are a = 4 B and c = 2.
            return settings._replace(rate=1 / (8 * bound**2), low=-bound, high=bound)
        if ranges.row < 0:
            return settings
        constants = self._constants(p, ranges)
        return settings._replace(
            rate=constants.alpha,
            prior=1 / constants.epsilon,
            newton=constants.newton,
            convexity=constants.H,
            box=constants.box,
        )

    def _norms(self, X):
        X = np.ascontiguousarray(X)  # so that the order of sums is the same
        return np.sqrt(np.einsum("ij,ij->i", X, X) + self.intercept)


class FLHEngine(_FLH):
    """By the compiled kernel. A state is an array of bytes."""

    def learn(self, state, X, y, weights, out):
        done = 0
        while True:
            done += _linear.learn(X[done:], y[done:], weights[done:], state, out[done:])
            if done == len(y):
                return state
            ranges, beyond = self._ranges(state).widened(
                y[done : done + 1],
                self._norms(X[done : done + 1]),
                weights[done : done + 1],
            )
            if not beyond:
                state = self._with_room(state)
                continue
            guess = self.predict(state, X[done : done + 1])[0]
            self._write(state, self._settings(_header(state)["p"], ranges), ranges)
            if self.is_theory:
                _linear.restart(state, guess)

    def predict(self, state, X):
        out = np.empty(len(X))
        _linear.predict(state, X, out)
        return out

    def coef(self, state):
        theta = _linear.coefficients(state)
        return (theta[:-1], float(theta[-1])) if self.intercept else (theta, 0.0)

    def experts(self, state):
        _, births, weights = _linear.experts(state)
        order = np.argsort(births, kind="stable")
        return births[order], weights[order]

    def _new(self, p, settings):
        size = _linear.state_size(p, Base[self.base.upper()], _linear.LANES)
        state = np.zeros(size, dtype=np.uint8)
        header = _header(state)
        header["p"], header["intercept"] = p, self.intercept
        header["pruned"] = self.pruned
        header["from_label"] = self._starts_from_label
        header["base"] = Base[self.base.upper()]
        header["loss"] = LossCode[type(self.loss).__name__.upper()]
        self._write(state, settings, self._first_ranges())
        _linear.restart(state, 0.0)
        return state

    def _write(self, state, settings, ranges):
        header = _header(state)
        for name in ("rate", "weight_unit", "prior", "newton", "convexity", "box"):
            header[name] = getattr(settings, name)
        header["low"], header["high"] = settings.low, settings.high
        header["label_bound"], header["row_bound"], header["weight_bound"] = ranges

    def _ranges(self, state):
        header = _header(state)
        return Ranges(*(float(header[f"{name}_bound"]) for name in Ranges._fields))

    def _n_coefficients(self, state):
        return int(_header(state)["p"])

    def _with_room(self, state):
        """A copy with room for half as many experts again."""
        header = _header(state)
        n_blocks = -(-int(header["n_alive"]) // _linear.LANES)
        n_experts = (n_blocks + 1 + n_blocks // 2) * _linear.LANES
        size = _linear.state_size(header["p"], header["base"], n_experts)
        larger = np.zeros(size, dtype=np.uint8)
        larger[: len(state)] = state
        return larger


def _header(state):
    return state[: LINEAR_DTYPE.itemsize].view(LINEAR_DTYPE)[0]


class NumpyFLHEngine(_FLH):
    """By the steps in numpy, for losses that are not compiled.

    A state is a tuple: settings, ranges, `LinearFLH` and the number of rows.
    """

    def learn(self, state, X, y, weights, out):
        settings, ranges, flh, n_seen = state
        for i, x in enumerate(self._augmented(X)):
            row = n_seen + i
            if not weights[i] > 0:
                out[i] = flh_linear_predict(settings, flh, x)
                flh = flh._replace(rows=np.append(flh.rows[:-1], row + 1))
                continue
            at = slice(i, i + 1)
            new, beyond = ranges.widened(y[at], self._norms(X[at]), weights[at])
            if beyond:
                guess = flh_linear_predict(settings, flh, x)
                theta = flh_linear_coefficients(settings, flh)
                ranges, settings = new, self._settings(len(x), new)
                if self.is_theory:
                    flh = flh_linear_start(settings, theta, guess, row)
            out[i], flh = flh_linear_update(settings, flh, x, y[i], weights[i])
        return settings, ranges, flh, n_seen + len(y)

    def predict(self, state, X):
        settings, _, flh, _ = state
        rows = [flh_linear_predict(settings, flh, x) for x in self._augmented(X)]
        return np.array(rows)

    def coef(self, state):
        theta = flh_linear_coefficients(state[0], state[2])
        return (theta[:-1], float(theta[-1])) if self.intercept else (theta, 0.0)

    def experts(self, state):
        return state[2].rows, np.exp(state[2].log_weights)

    def _new(self, p, settings):
        flh = flh_linear_start(settings, np.zeros(p))
        return settings, self._first_ranges(), flh, 0

    def _ranges(self, state):
        return state[1]

    def _n_coefficients(self, state):
        return state[2].thetas.shape[1]

    def _augmented(self, X):
        return np.column_stack([X, np.ones(len(X))]) if self.intercept else X
