"""Losses of a prediction u: squared, Poisson with u = log rate, logistic.

Each is that of an exponential family with its natural parameter u, up to what does
not depend on u: with a convex A,

    f_y(u) = A(u) - y u + A*(y) = 1/2 (unit deviance of y and the mean A'(u)) >= 0.

So its derivative is A'(u) - y, its second derivative A''(u), and its conjugate
f_y*(v) = A*(y + v) - A*(y), where A* is the conjugate of A. ``mean`` is A', ``link``
its inverse.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import entr, expit, kl_div, logit, rel_entr

__all__ = ["LOSSES", "Logistic", "Loss", "Poisson", "Squared"]


class Loss(ABC):
    """What a solver may ask of a loss; everything works elementwise on arrays.

    Examples
    --------
    >>> from sktvdenoise.losses import LOSSES
    >>> loss = LOSSES["poisson"]
    >>> float(loss.value(1.0, 0.0)), float(loss.derivative(3.0, 0.0))
    (0.0, -2.0)
    """

    @abstractmethod
    def mean(self, u):
        """The mean A'(u) of the label at the prediction u."""

    @abstractmethod
    def link(self, mean, rest=None):
        """The prediction with this mean; infinite at the ends of its range.

        `rest` is 1 - mean, where it is known to more digits.
        """

    @abstractmethod
    def second_derivative(self, u):
        """A''(u) > 0."""

    @abstractmethod
    def deviation(self, y, mean, u):
        """The loss of u, given also its mean; no large terms cancel."""

    @abstractmethod
    def divergence(self, u, v):
        """A(u) - A(v) - A'(v) (u - v) >= 0."""

    @abstractmethod
    def dual(self, mean):
        """A*(mean); infinite outside the range of means."""

    @abstractmethod
    def check(self, y):
        """Return the labels, NaN among them kept, or raise ValueError."""

    @abstractmethod
    def limits(self, y, weights):
        """Where to keep u so that it is finite: (low, high).

        `weights` are the observations (or the exposure) behind each label. The
        limits raise the mean loss by rounding errors at most.
        """

    def value(self, y, u):
        """f_y(u), half the unit deviance."""
        return self.deviation(y, self.mean(u), u)

    def derivative(self, y, u):
        """f_y'(u)."""
        return self.mean(u) - y

    def conjugate(self, y, v):
        """f_y*(v) = sup_u v u - f_y(u)."""
        return self.dual(y + v) - self.dual(y)


class Squared(Loss):
    """(y - u)^2 / 2."""

    def mean(self, u):
        return u

    def link(self, mean, rest=None):
        return mean

    def second_derivative(self, u):
        return np.ones_like(u)

    def deviation(self, y, mean, u):
        return 0.5 * (y - u) ** 2

    def divergence(self, u, v):
        return 0.5 * (u - v) ** 2

    def dual(self, mean):
        return 0.5 * np.square(mean)

    def check(self, y):
        return y

    def limits(self, y, weights):
        return -np.inf, np.inf


class Poisson(Loss):
    """exp(u) - y u + y ln y - y, for y >= 0: u is the logarithm of the rate."""

    def mean(self, u):
        return np.exp(u)

    def link(self, mean, rest=None):
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(mean, 0.0))

    def second_derivative(self, u):
        return np.exp(u)

    def deviation(self, y, mean, u):
        # Where the rate is 0 as a floating-point number, u may still be finite.
        spread = kl_div(y, mean)
        far = np.isinf(spread)
        return np.where(far, mean - y * np.where(far, u, 0.0) - entr(y) - y, spread)

    def divergence(self, u, v):
        return np.exp(v) * (np.expm1(u - v) - (u - v))

    def dual(self, mean):
        return np.where(mean < 0, np.inf, -entr(np.maximum(mean, 0.0)) - mean)

    def check(self, y):
        negative = y < 0
        if negative.any():
            row = int(np.argmax(negative.reshape(len(y), -1).any(axis=1)))
            raise ValueError(
                f"Counts are >= 0, but y is negative (first in row {row})."
            )
        return y

    def limits(self, y, weights):
        """A rate that expects 2e-16 events (or of all events) in all is 0 enough."""
        count = float(np.sum(y * weights))
        least = np.finfo(float).eps * (min(1.0, count) or 1.0)
        return np.log(least) - np.log(np.sum(weights)), np.inf


class Logistic(Loss):
    """ln(1 + exp(u)) - y u + y ln y + (1 - y) ln(1 - y), for 0 <= y <= 1.

    u is the logarithm of the odds, y a label 0 or 1 or a share of successes.
    """

    def mean(self, u):
        return expit(u)

    def link(self, mean, rest=None):
        if rest is None:
            return logit(np.clip(mean, 0.0, 1.0))
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(mean, 0.0)) - np.log(np.maximum(rest, 0.0))

    def second_derivative(self, u):
        return expit(u) * expit(-np.asarray(u))

    def deviation(self, y, mean, u):
        y, u = np.asarray(y), np.asarray(u)
        success = np.logaddexp(0, np.where(y > 0, -u, 0)) * y
        failure = np.logaddexp(0, np.where(y < 1, u, 0)) * (1 - y)
        return np.maximum(success + failure - entr(y) - entr(1 - y), 0.0)

    def divergence(self, u, v):
        step = u - v
        small = np.log1p(expit(v) * np.expm1(np.clip(step, -1, 1)))
        large = np.logaddexp(0, u) - np.logaddexp(0, v)
        difference = np.where(np.abs(step) < 1, small, large)
        return np.maximum(difference - expit(v) * step, 0.0)

    def dual(self, mean):
        return rel_entr(mean, 1.0) + rel_entr(1.0 - np.asarray(mean), 1.0)

    def check(self, y):
        observed = ~np.isnan(y)
        if np.any(y[observed] == -1):
            y = np.where(y == -1, 0.0, np.where(y == 1, 1.0, np.where(observed, 2, y)))
            what = "labels with a -1 among them are -1 or 1"
        else:
            what = "labels are 0 or 1, or shares between"
        beyond = (y < 0) | (y > 1)
        if beyond.any():
            row = int(np.argmax(beyond.reshape(len(y), -1).any(axis=1)))
            raise ValueError(
                f"Logistic {what}, but y holds another value (first in row {row})."
            )
        return y

    def limits(self, y, weights):
        """Probabilities that expect 2e-16 successes or failures in all are enough."""
        high = np.log(max(1.0, np.sum(weights))) - np.log(np.finfo(float).eps)
        return -high, high


LOSSES = {"squared": Squared(), "poisson": Poisson(), "logistic": Logistic()}
