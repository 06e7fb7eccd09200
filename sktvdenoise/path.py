"""The solutions of the one-dimensional fused lasso at all penalties, and which to take.

As the penalty grows, neighbouring pieces of the solution only merge. The alphas at
which the boundaries between the samples vanish are therefore the whole path: found
in linear time, kept in linear memory (``doc/path.md``).
"""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
from scipy.special import kolmogi

from sktvdenoise import _knots as kernel
from sktvdenoise._positions import (
    check_labels,
    check_number,
    check_squares,
    check_weights,
)
from sktvdenoise._signal import PLAIN, Solution, channels, constrained

__all__ = ["FusedLassoPath", "fused_lasso_path"]

# Median of |N(0, 1)|.
MEDIAN_SIZE = 0.6744897501960817


def fused_lasso_path(y, sample_weight=None):
    """Solve the weighted 1-D fused lasso for all penalties at once, exactly.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_channels)
        The signal, in order. Channels share the penalty.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights >= 0, the same for all channels; None for ones.

    Returns
    -------
    path : FusedLassoPath
        Its arrays `alphas`, `tv`, `loss`, `refit_loss` and `n_pieces` describe the
        solutions at the knots, between which the variation is linear in alpha.
        ``path.solution(alpha)``, ``path.solution(tv_budget=...)`` and
        ``path.solution(n_pieces=...)`` form one.

    Raises
    ------
    ValueError
        If `y` or `sample_weight` has a bad shape, a value that is not finite or
        beyond 1e140 (the message names the row), or there are more than 2147483646
        samples.

    See Also
    --------
    fused_lasso : One solution, several times faster than the whole path.

    Notes
    -----
    For every alpha >= 0 the u that minimises

        1/2 sum_i w_i (y_i - u_i)^2 + alpha sum_i abs(u_{i+1} - u_i).

    Pieces only merge as alpha grows [1]_. They are merged out of order, each as
    soon as no neighbour can disturb it, so there is neither a queue nor a search:
    time and memory are O(n), the knots' tables included. The theory page on the
    path, ``doc/path.md``, has the argument.

    References
    ----------
    .. [1] J. Friedman, T. Hastie, H. Hoefling and R. Tibshirani (2007). Pathwise
       coordinate optimization. Annals of Applied Statistics 1(2).

    Examples
    --------
    >>> from sktvdenoise.offline import fused_lasso_path
    >>> path = fused_lasso_path([0, 0, 0, 6, 0, 0, 0])
    >>> path.n_pieces
    array([3, 1], dtype=int32)
    >>> path.alphas * 7, path.tv, path.loss * 7
    (array([ 0., 18.]), array([12.,  0.]), array([  0., 216.]))
    >>> path.solution(tv_budget=6)
    array([0.42857143, 0.42857143, 0.42857143, 3.42857143, 0.42857143,
           0.42857143, 0.42857143])
    """
    labels = check_labels(y).copy()  # the path forms solutions from them later
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(labels)).copy()
    check_squares(labels, weights)
    signals = channels(labels.reshape(len(labels), -1), weights)
    return FusedLassoPath(signals, labels.shape)


@dataclass(frozen=True)
class Knots:
    """Tables of a path at its knots, as in `FusedLassoPath`.

    `n_levels` counts the pieces of every channel apart.
    """

    alphas: np.ndarray
    refit_loss: np.ndarray
    tv: np.ndarray
    loss: np.ndarray
    n_levels: np.ndarray

    @classmethod
    def of(cls, paths):
        vanish, drop = paths[0] if len(paths) == 1 else np.concatenate(paths, axis=1)
        tables = np.empty((4, len(vanish) + 1))
        later = np.empty(len(vanish) + 1, dtype=np.int32)
        k = kernel.knots(vanish, drop, tables, later)
        if k <= len(later) // 2:  # ties: let the unused part go
            tables, later = tables[:, :k].copy(), later[:k].copy()
        later += len(paths)
        return cls(*tables[:, :k], later[:k])

    def joined(self, signals):
        """The same with the knots that only rounding keeps apart as one, the last.

        Where knots lie so densely that they would follow each other in a chain, all
        stay. Alpha 0 stays, too: there the solution is the signal.
        """
        apart = rounding(signals, self.alphas[1:], self.n_levels[:-1])
        tied = np.diff(self.alphas) <= apart
        tied[:1] = False
        if not tied.any():
            return self
        start = np.append(0, np.flatnonzero(~tied) + 1)
        end = np.append(start[1:], len(self.alphas)) - 1
        width = self.alphas[end] - self.alphas[start]
        chain = width[1:] > 2 * apart[end[1:] - 1]
        chain = np.repeat(np.append(False, chain), end - start + 1)
        kept = chain.copy()
        kept[end] = True
        tables = self.alphas, self.refit_loss, self.tv, self.loss, self.n_levels
        return Knots(*(table[kept] for table in tables))

    def at(self, alphas):
        """Loss, loss about the means and number of levels at any `alphas`."""
        k = np.searchsorted(self.alphas, alphas, side="right") - 1
        fall = np.diff(self.tv, append=0.0)
        width = np.diff(self.alphas, append=np.inf)
        origin = self.alphas[k]
        growth = (-fall / width)[k] * (alphas - origin) * (alphas + origin)
        return self.loss[k] + growth, self.refit_loss[k], self.n_levels[k]


def rounding(signals, alphas, n_levels):
    """How far apart rounding may put knots at `alphas`, with `n_levels` before them.

    There two levels of about the size of the labels meet, of pieces that have about
    the mean mass. Of what this has 8 units in the last place, errors are up to 4 on
    decimal labels, beside rational arithmetic.
    """
    size = max(signal.size for signal in signals)
    mass = sum(signal.mass for signal in signals)
    return 8 * np.finfo(float).eps * (alphas + size * mass / n_levels)


class FusedLassoPath:
    """The solutions at all penalties, as `fused_lasso_path` returns them.

    Its arrays are sorted by alpha, start at alpha 0 and end where the solution
    becomes constant. Events that only rounding keeps apart are one knot.

    Attributes
    ----------
    alphas : ndarray of shape (n_knots,)
        Penalties at which pieces merge, ascending, the first one 0.
    tv : ndarray of shape (n_knots,)
        Total variation there, over all channels. Linear in alpha between knots, 0
        at the last one.
    loss : ndarray of shape (n_knots,)
        ``sum(w * (y - u)**2)`` there, without a factor 1/2. Between the knots a < b
        it grows with the square of alpha.
    refit_loss : ndarray of shape (n_knots,)
        The same about the means of the pieces. Constant from knot to knot.
    n_pieces : ndarray of shape (n_knots,)
        Number of pieces from there on (to the next knot, it excluded): 1 + the
        number of samples at which any channel steps.

    alpha_max : float
        The least penalty at which the solution is constant.
    signals : list of Signal
        The channels.

    See Also
    --------
    fused_lasso_path : Makes it, with an example.
    """

    def __init__(self, signals, shape):
        self.signals, self._shape = signals, shape
        self._paths = [signal.path() for signal in signals]

    @cached_property
    def _knots(self):
        return Knots.of(self._paths).joined(self.signals)

    def __repr__(self):
        names = ("n_samples", "n_channels")
        sizes = ", ".join(f"{k}={v}" for k, v in zip(names, self._shape))
        return f"{type(self).__name__}({sizes}, alpha_max={self.alpha_max:.6g})"

    @property
    def alphas(self):
        return self._knots.alphas

    @property
    def tv(self):
        return self._knots.tv

    @property
    def loss(self):
        return self._knots.loss

    @property
    def refit_loss(self):
        return self._knots.refit_loss

    @cached_property
    def n_pieces(self):
        if len(self._paths) == 1:
            return self._knots.n_levels
        vanish = np.zeros(self._shape[0] - 1)
        for signal, (own, _) in zip(self.signals, self._paths):
            last = slice(None) if signal.rows is None else signal.rows[1:] - 1
            vanish[last] = np.maximum(vanish[last], own)
        vanish.sort()
        merged = np.searchsorted(vanish, self.alphas, side="right")
        return (len(vanish) - merged + 1).astype(np.int32)

    @property
    def alpha_max(self):
        return max(float(vanish.max(initial=0.0)) for vanish, _ in self._paths)

    def solution(self, alpha=None, *, tv_budget=None, n_pieces=None):
        """Form one solution, in O(n).

        Exactly one of the arguments must be given.

        Parameters
        ----------
        alpha : float >= 0, default=None
            Penalty.
        tv_budget : float >= 0, default=None
            Largest total variation, shared by the channels.
        n_pieces : int >= 1, default=None
            Largest number of pieces: the solution at the least alpha that has no
            more. Where several boundaries vanish at once it has fewer.

        Returns
        -------
        u : ndarray of the shape of the signal
            What `fused_lasso` returns, up to rounding.

        Raises
        ------
        ValueError
            If not exactly one argument is given or it is out of range.
        """
        given = [alpha, tv_budget, n_pieces]
        if sum(value is not None for value in given) != 1:
            raise ValueError(
                "Exactly one of alpha, tv_budget and n_pieces must be given, got "
                f"alpha={alpha!r}, tv_budget={tv_budget!r}, n_pieces={n_pieces!r}."
            )
        if tv_budget is not None:
            check_number("tv_budget", tv_budget)
            found = self.within(tv_budget)
        else:
            if n_pieces is not None:
                alpha = self._alpha_of(n_pieces)
            check_number("alpha", alpha)
            found = self.at(alpha)
        return found.u.reshape(self._shape)

    def at(self, alpha, shrink=PLAIN):
        """The solution at `alpha`, with its certificate (a `Solution`)."""
        paths = zip(self.signals, self._paths)
        plain = [signal.formed(vanish, alpha) for signal, (vanish, _) in paths]
        return Solution.of(self.signals, plain, alpha, shrink)

    def within(self, tv_budget):
        """The solution within a budget, with its multiplier (a `Solution`)."""
        plain, alpha = constrained(self.signals, tv_budget, PLAIN, paths=self._paths)
        return Solution.of(self.signals, plain, alpha)

    def _alpha_of(self, n_pieces):
        if not isinstance(n_pieces, Integral) or n_pieces < 1:
            raise ValueError(f"n_pieces must be an integer >= 1, got {n_pieces!r}.")
        return float(self.alphas[np.argmax(self.n_pieces <= n_pieces)])


# ---- which penalty ----


def noise_scale(signal):
    """Standard deviation of the noise of a sample of weight 1.

    The median size of the differences of neighbours, each divided by what its
    standard deviation would be, over that of a standard normal: a tenth of the
    differences may be jumps. Weights count as inverse variances.

    Among tied sizes, as in rounded labels, the median is interpolated, each size
    standing for the interval of those nearer to it than to another. Where most
    labels repeat the one before, the root mean square limits it: labels that
    are constant but for a few jumps have little noise.
    """
    size = np.abs(np.diff(signal.y))
    if not len(size):
        return 0.0
    weight = np.sqrt(0.5)
    if signal.w is not None:
        weight = 1 / np.sqrt(1 / signal.w[1:] + 1 / signal.w[:-1])
    size *= weight
    half = len(size) / 2
    middle = np.partition(size, int(half))[int(half)]
    # Differences of decimals that are equal differ by the rounding of four labels.
    tie = 2 * np.spacing(signal.size) * np.max(weight)
    below, above = size < middle - tie, size > middle + tie
    n_below = np.count_nonzero(below)
    n_ties = len(size) - n_below - np.count_nonzero(above)
    low = (size.max(where=below, initial=-np.inf) + middle) / 2 if n_below else 0.0
    high = (
        (size.min(where=above, initial=np.inf) + middle) / 2 if above.any() else middle
    )
    scale = (low + (half - n_below) / n_ties * (high - low)) / MEDIAN_SIZE
    if middle <= tie:
        scale = min(scale, np.sqrt(np.mean(size**2)))
    return float(scale)


def no_false_jump(path):
    """The penalty that leaves pure noise in one piece with probability 0.95.

    The solution at alpha is constant where the sums of w (y - mean) stay below
    alpha; for noise they are a Brownian bridge of scale sigma sqrt(sum w), whose
    largest distance from 0 has Kolmogorov's distribution. Independent channels stay
    below together with the product of their probabilities.
    """
    bridge = kolmogi(-np.expm1(np.log(0.95) / len(path.signals)))
    mass = [signal.mass for signal in path.signals]
    sigma = [noise_scale(signal) for signal in path.signals]
    return float(bridge * np.max(np.sqrt(mass) * sigma))


def sure(path):
    """The knot with the least unbiased estimate of the squared error to the truth.

    It is loss + 2 sigma^2 (number of pieces) - n sigma^2 (Stein 1981; the degrees
    of freedom are the number of pieces, Tibshirani and Taylor 2012). The loss grows
    from knot to knot, so the least one is at a knot.
    """
    total = 0.0
    for signal, knots in _channels(path):
        loss, _, levels = knots.at(path.alphas)
        total = total + loss + 2 * noise_scale(signal) ** 2 * levels
    return float(path.alphas[np.argmin(total)])


def bic(path):
    """The first penalty of the segmentation with the least information criterion.

    It is refit_loss / sigma^2 + 2 ln(n) (number of pieces): a level and a place for
    every piece (Yao 1988), the levels being means, not shrunken.
    """
    total = 0.0
    with np.errstate(over="ignore"):
        for signal, knots in _channels(path):
            _, loss, levels = knots.at(path.alphas)
            variance = max(noise_scale(signal) ** 2, np.finfo(float).tiny)
            total = total + loss / variance + 2 * np.log(len(signal.y)) * levels
    return float(path.alphas[np.argmin(total)])


RULES = {"no-false-jump": no_false_jump, "sure": sure, "bic": bic}


def _channels(path):
    if len(path.signals) == 1:
        return [(path.signals[0], path._knots)]
    return [(s, Knots.of([own])) for s, own in zip(path.signals, path._paths)]


def refitted(signal, u):
    """The solution `u` with neighbouring pieces joined where noise explains the step.

    Of all ways to join pieces, that with the least sum of squares about the means +
    2 sigma^2 ln(n) (number of pieces), exactly; every piece gets the mean of its
    labels.
    """
    starts = np.append(0, np.flatnonzero(np.diff(u)) + 1)
    mass = signal.masses(starts)

    def means(values, starts, mass):
        move = signal.y - values
        return (
            np.add.reduceat(move if signal.w is None else signal.w * move, starts)
            / mass
            + values[starts]
        )

    level = means(u, starts, mass)
    price = 2 * noise_scale(signal) ** 2 * np.log(len(u))
    first = np.empty(len(starts), dtype=np.int32)
    kernel.join(level, mass, price, first)
    cuts = [first[-1]]
    while cuts[-1]:
        cuts.append(first[cuts[-1] - 1])
    starts = starts[cuts[::-1]]
    sizes = np.diff(starts, append=len(u))
    level = means(np.repeat(signal.y[starts], sizes), starts, signal.masses(starts))
    return np.repeat(level, sizes)
