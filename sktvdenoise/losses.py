"""Losses of a prediction u: squared, Poisson with u = log rate, logistic, your own.

A `Loss` has a value and a derivative, which is all that online learning at a given
rate asks for. The three here are more: each is that of an exponential family with its
natural parameter u, up to what does not depend on u: with a convex A,

    f_y(u) = A(u) - y u + A*(y) = 1/2 (unit deviance of y and the mean A'(u)) >= 0.

So its derivative is A'(u) - y, its second derivative A''(u), and its conjugate
f_y*(v) = A*(y + v) - A*(y), where A* is the conjugate of A. ``mean`` is A', ``link``
its inverse.

Online, a loss is counted ``scale`` times: the paper's squared loss is (y - u)^2, twice
the one here, and all learning rates and constants are those of the paper.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import entr, expit, kl_div, logit, rel_entr

__all__ = [
    "LOSSES",
    "Constants",
    "ExponentialFamily",
    "Logistic",
    "Loss",
    "Poisson",
    "Squared",
    "check_fit",
    "example_13",
]


class Loss(ABC):
    """A loss f_y(u), convex in u. Everything works elementwise on arrays.

    A loss of one's own defines `value` and `derivative`, and `second_derivative` if
    constants are to be computed from it, as ``learning_rate="theory"`` does.

    Attributes
    ----------
    scale : float
        How many times the loss is counted online.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.losses import Loss
    >>> class LogCosh(Loss):
    ...     def value(self, y, u):
    ...         return np.logaddexp(u - y, y - u) - np.log(2)
    ...     def derivative(self, y, u):
    ...         return np.tanh(u - y)
    >>> float(LogCosh().value(1.0, 1.0))
    0.0
    """

    scale = 1.0

    @abstractmethod
    def value(self, y, u):
        """f_y(u)."""

    @abstractmethod
    def derivative(self, y, u):
        """f_y'(u)."""

    def second_derivative(self, y, u):
        """f_y''(u) > 0."""
        raise NotImplementedError

    def mean(self, u):
        """The label to expect at the prediction u: u itself."""
        return u

    def start(self, y):
        """A prediction that the label y suggests: here y itself, as of `mean`."""
        return y

    def check(self, y):
        """Return the labels, NaN among them kept, or raise ValueError."""
        return y

    def labels(self, largest):
        """Least and greatest label whose absolute value is at most `largest`."""
        return -largest, largest

    def smoothness(self, largest):
        """What f'' is at most where online predictions are kept, `scale` left out.

        `largest` is the largest absolute label so far.
        """
        return 1.0

    def kept(self, largest):
        """Range (low, high) that online predictions are drawn in to."""
        return -np.inf, np.inf

    def extremes(self, radius, largest):
        """Greatest abs(f'), greatest f'' and least f'' over abs(u) <= radius.

        Labels are at most `largest` in absolute value. Read off 257 equally spaced u,
        the ends and 0 among them, at the least and the greatest label, where the
        losses here have their extremes.
        """
        u = np.linspace(-radius, radius, 257)
        y = np.reshape(self.labels(largest), (2, 1))
        with np.errstate(over="ignore"):
            slope = np.abs(self.derivative(y, u))
            bend = self.second_derivative(y, u)
        return tuple(
            self.scale * float(v) for v in (slope.max(), bend.max(), bend.min())
        )


class ExponentialFamily(Loss):
    """What an offline solver may ask of a loss.

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
    def curvature(self, u):
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

    def second_derivative(self, y, u):
        """f_y''(u) = A''(u) for every y."""
        return self.curvature(u) + np.zeros_like(y)

    def conjugate(self, y, v):
        """f_y*(v) = sup_u v u - f_y(u)."""
        return self.dual(y + v) - self.dual(y)


class Squared(ExponentialFamily):
    """(y - u)^2 / 2; online (y - u)^2."""

    scale = 2.0

    def kept(self, largest):
        return -3.0 * largest, 3.0 * largest

    def mean(self, u):
        return u

    def link(self, mean, rest=None):
        return mean

    def curvature(self, u):
        return np.ones_like(u)

    def deviation(self, y, mean, u):
        return 0.5 * (y - u) ** 2

    def divergence(self, u, v):
        return 0.5 * (u - v) ** 2

    def dual(self, mean):
        return 0.5 * np.square(mean)

    def limits(self, y, weights):
        return -np.inf, np.inf


class Poisson(ExponentialFamily):
    """exp(u) - y u + y ln y - y, for y >= 0: u is the logarithm of the rate."""

    def mean(self, u):
        return np.exp(u)

    def link(self, mean, rest=None):
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(mean, 0.0))

    def curvature(self, u):
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

    def start(self, y):
        return np.log(np.maximum(y, 0.5))

    def labels(self, largest):
        return 0.0, largest

    def smoothness(self, largest):
        return 2.0 * largest + 2.0

    def kept(self, largest):
        """The rate is at most twice the largest count and 2."""
        return -np.inf, np.log(self.smoothness(largest))

    def limits(self, y, weights):
        """A rate that expects 2e-16 events (or of all events) in all is 0 enough."""
        count = float(np.sum(y * weights))
        least = np.finfo(float).eps * (min(1.0, count) or 1.0)
        return np.log(least) - np.log(np.sum(weights)), np.inf


class Logistic(ExponentialFamily):
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

    def curvature(self, u):
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

    def labels(self, largest):
        return 0.0, 1.0

    def smoothness(self, largest):
        return 0.25

    def limits(self, y, weights):
        """Probabilities that expect 2e-16 successes or failures in all are enough."""
        high = np.log(max(1.0, np.sum(weights))) - np.log(np.finfo(float).eps)
        return -high, high


LOSSES = {"squared": Squared(), "poisson": Poisson(), "logistic": Logistic()}


class Constants(NamedTuple):
    """Constants of Example 13 of the paper, see `example_13`.

    Attributes
    ----------
    a, a_plus : float
        Greatest slope of the loss on predictions by coefficients in the box of the
        comparators, and in that of the experts.
    b, c : float
        Greatest and least second derivative on the latter.
    G, G_plus : float
        Largest gradients, `a R` and `a_plus R`.
    box : float
        `B + G`, largest coefficient of an expert.
    beta : float
        Smoothness, at least 1.
    alpha : float
        Exp-concavity, and the rate of follow-the-leading-history.
    zeta, newton, epsilon : float
        Of the online Newton step: its rate is `newton` = `zeta` / 2, its matrix starts
        at `epsilon` times the identity.
    H : float
        `c R^2`: the step of gradient descent in round k is 1 / (H k).
    """

    a: float
    a_plus: float
    b: float
    c: float
    G: float
    G_plus: float
    box: float
    beta: float
    alpha: float
    zeta: float
    newton: float
    epsilon: float
    H: float


def example_13(loss, *, bound, label_bound, row_bound, n_features):
    r"""Constants of Example 13: losses of a linear prediction.

    Parameters
    ----------
    loss : Loss
        With a second derivative.
    bound : float
        B, largest coefficient of a comparator, in units of labels over features.
    label_bound : float
        Y, largest absolute label.
    row_bound : float
        R, largest Euclidean norm of a row, the 1 of an intercept included.
    n_features : int
        d, the intercept included.

    Returns
    -------
    constants : Constants

    Raises
    ------
    ValueError
        If one of them is not a positive floating-point number.

    Notes
    -----
    The losses are :math:`f_t(u) = g_t(x_t^\top u)`. On :math:`|u|_\infty \le B` the
    prediction is at most :math:`R \sqrt d B`, where :math:`|g'| \le a`; on the box of
    the experts, :math:`|u|_\infty \le B + G`, at most :math:`R \sqrt d (B + G)`, where
    :math:`|g'| \le a^+` and :math:`c \le g'' \le b`. Then

    .. math::

        G = a R, \quad \beta = \max(b R^2, 1), \quad \alpha = c / (a^+)^2, \quad
        G^+ = R a^+, \quad \zeta = \min\Bigl(\frac{1}{4 G^+ (2 B \sqrt d + 2 G /
        \beta)}, \alpha\Bigr).

    The Newton step has rate :math:`\zeta / 2` and starts at
    :math:`\varepsilon = 4 / (\zeta\,\text{diam})^2` with the diameter
    :math:`2 (B + G) \sqrt d`. A loss of one feature of size R has strong convexity
    :math:`H = c R^2`; with more features none has, and gradient descent no guarantee.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang, "Optimal Dynamic Regret in Exp-Concave Online
       Learning", COLT 2021, Example 13, Theorem 14, Proposition 15.

    Examples
    --------
    >>> from sktvdenoise.losses import LOSSES, example_13
    >>> constants = example_13(
    ...     LOSSES["squared"], bound=1.0, label_bound=1.0, row_bound=1.0, n_features=2
    ... )
    >>> round(constants.alpha, 5), round(constants.epsilon)
    (0.00585, 4718)
    """
    B, R, root = bound, row_bound, np.sqrt(n_features)
    with np.errstate(all="ignore"):
        a, _, _ = loss.extremes(R * root * B, label_bound)
        G = a * R
        a_plus, b, c = loss.extremes(R * root * (B + G), label_bound)
        beta = max(b * R**2, 1.0)
        alpha = c / np.square(a_plus)
        G_plus = R * a_plus
        zeta = min(1 / (4 * G_plus * (2 * B * root + 2 * G / beta)), alpha)
        epsilon = 1 / np.square(zeta * (B + G) * root)
    found = Constants(
        a,
        a_plus,
        b,
        c,
        G,
        G_plus,
        B + G,
        beta,
        alpha,
        zeta,
        zeta / 2,
        epsilon,
        c * R**2,
    )
    found = Constants(*map(float, found))
    if not all(0 < v < np.inf for v in found):
        raise ValueError(
            f"With rows of norm {R:g}, labels of size {label_bound:g} and {n_features} "
            f"coefficients up to {B:g} the theory's constants for the loss "
            f"{type(loss).__name__} leave the range of floating-point numbers: its "
            f"experts may predict up to {R * root * (B + G):.3g}. Divide X by a "
            "constant, or choose another learning_rate."
        )
    return found


def check_fit(loss, methods, who):
    """Refuse a loss that lacks what is asked of it.

    Parameters
    ----------
    loss : Loss
    methods : sequence of str
        Names of methods of `Loss` or `ExponentialFamily`.
    who : str
        Who asks; the start of the message.

    Raises
    ------
    ValueError
        If one is not defined.

    Examples
    --------
    >>> from sktvdenoise.losses import LOSSES, check_fit
    >>> check_fit(LOSSES["poisson"], ["link", "second_derivative"], "The solver")
    """
    missing = [
        name
        for name in methods
        if getattr(type(loss), name, None) in (None, getattr(Loss, name, None))
    ]
    if missing:
        raise ValueError(
            f"{who} needs {' and '.join(missing)}, which the loss "
            f"{type(loss).__name__} does not define."
        )
