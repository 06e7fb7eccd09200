"""Bounds of the regret with every constant, as functions of n, C, B and d."""

from math import floor, log, log1p, log2, sqrt
from numbers import Integral
from typing import NamedTuple

import numpy as np

from sktvdenoise._positions import check_number

__all__ = [
    "denoising_regret_bound",
    "dynamic_regret_bound",
    "exp_concave_regret_bound",
    "regret_lower_bound",
    "strongly_convex_regret_bound",
]


def dynamic_regret_bound(
    n_samples, tv_budget, interval_regret, *, smoothness=2.0, n_outputs=1
):
    """Dynamic regret of whatever has small static regret on every interval.

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`.
    tv_budget : float >= 0
        Largest total variation of the comparator, `C`.
    interval_regret : float > 0
        Largest static regret on any interval, `S`, in the units of the losses.
    smoothness : float > 0, default=2
        The losses are smooth with this constant: their gradients change by at most
        that times the distance. It is 2 for squared loss (without a factor 1/2).
    n_outputs : int, default=1
        Number of independent streams, `d`, that share the budget. Coordinates that
        are learned together count as one.

    Returns
    -------
    bound : float
        In the units of the losses.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range.

    Notes
    -----
    With beta for the smoothness,

    .. math:: R(C) \\le 3 \\left( d S + d^{1/3} n^{1/3} C^{2/3}
        \\beta^{1/3} S^{2/3} \\right).

    A walk with the threshold theta has :math:`1 + (2n)^{1/3} (C/\\theta)^{2/3}` bins
    (`walk`). In each a comparator with two values, the steps of `single_cuts`, loses
    :math:`\\beta \\theta^2/2` to the sequence at most, and the learner loses
    :math:`2S` to it. With :math:`\\theta^2 = 2S/\\beta` a bin costs :math:`3S`; for d
    streams :math:`\\sum_k C_k^{2/3} \\le d^{1/3} C^{2/3}`. So the logarithm in S
    enters the rate with the power 2/3 only.

    Examples
    --------
    >>> from sktvdenoise.theory import dynamic_regret_bound
    >>> dynamic_regret_bound(1000, 1.0, 1.0, smoothness=1.0)
    33.0
    """
    check_size("n_samples", n_samples)
    check_size("n_outputs", n_outputs)
    check_number("tv_budget", tv_budget, finite=True)
    check_number("interval_regret", interval_regret, positive=True, finite=True)
    check_number("smoothness", smoothness, positive=True, finite=True)
    rate = np.cbrt(n_outputs * n_samples * smoothness)
    variation = np.cbrt(tv_budget * interval_regret) ** 2
    return 3.0 * float(n_outputs * interval_regret + rate * variation)


def denoising_regret_bound(n_samples, tv_budget, bound, *, n_outputs=1, pruning="aflh"):
    """Upper bound of the regret of FLH over running means, for squared loss.

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`.
    tv_budget : float >= 0
        Largest total variation of the comparator, `C`, in the units of the labels.
    bound : float > 0
        Largest absolute label, `B`, in their units.
    n_outputs : int, default=1
        Number of outputs, `d`, each with an FLH of its own, that share the budget.
    pruning : {"aflh", None}, default="aflh"
        The schedule of the experts; None keeps them all.

    Returns
    -------
    bound : float
        In the squared units of the labels: the bound of ``dynamic_regret`` for
        ``OnlineTVDenoiser(learning_rate="theory", bound=bound, pruning=pruning)``.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range, or `pruning` is unknown.

    Notes
    -----
    Theorem 1 and Proposition 10 of [1]_ with constants: `dynamic_regret_bound` with
    smoothness 2 and, for the static regret on an interval,

    .. math:: S = K \\left( 8 B^2 \\ln n + 4 B^2 (1 + \\ln n) \\right).

    The first term is what FLH at its rate :math:`1/(8 B^2)` loses to a living expert.
    The second is what the running mean, from birth, loses to the interval's mean: with
    the mean :math:`m_{k-1}` of the labels before, it is :math:`(y_1 - x_1)^2 +
    \\sum_{k \\ge 2} (y_k - m_{k-1})^2 / k`. K is the number of experts that it takes
    to cover the interval one after the other: 1 without pruning; with it
    :math:`\\lfloor \\log_2(n+1) \\rfloor`, for one that lives at the end was born in
    the first half and leaves less than half to the others. No bound exceeds
    :math:`4 B^2 n d`, for everything is in [-B, B].

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.theory import denoising_regret_bound
    >>> round(denoising_regret_bound(10**6, 1.0, 1.0, pruning=None))
    12099
    """
    check_number("bound", bound, positive=True, finite=True)
    check_size("n_samples", n_samples)
    logarithm = log(n_samples)
    interval = _cover(n_samples, pruning) * bound**2 * (4.0 + 12.0 * logarithm)
    upper = dynamic_regret_bound(n_samples, tv_budget, interval, n_outputs=n_outputs)
    return min(upper, 4.0 * bound**2 * n_samples * n_outputs)


def exp_concave_regret_bound(
    n_samples,
    tv_budget,
    bound,
    *,
    lipschitz,
    smoothness,
    exp_concavity,
    n_features=1,
    box=None,
    newton=None,
    pruning="aflh",
):
    """Upper bound of the regret of FLH over online Newton steps.

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`.
    tv_budget : float >= 0
        Largest total variation of the comparator, `C`, over its coordinates.
    bound : float > 0
        Largest absolute coordinate of the comparator, `B`.
    lipschitz, smoothness, exp_concavity : float > 0
        Constants `G`, beta and alpha of the losses on the experts' domain: the largest
        Euclidean norm of a gradient, the Lipschitz constant of the gradients, and the
        largest number such that exp(-alpha f) is concave.
    n_features : int, default=1
        Number of coordinates, `d`.
    box : float > 0, default=None
        Largest absolute coordinate of an expert, at least the default
        :math:`B + G/\\beta`.
    newton : float > 0, default=None
        Step parameter gamma of the Newton steps, see the Notes. None is
        :math:`\\frac12 \\min(1/(4GD), \\alpha)`, which is right for all losses.
    pruning : {"aflh", None}, default="aflh"
        The schedule of the experts; None keeps them all.

    Returns
    -------
    bound : float
        In the units of the losses.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range, or `pruning` is unknown.

    Notes
    -----
    Theorem 14 of [1]_ with constants: `dynamic_regret_bound` with

    .. math:: S = K \\left( \\frac{\\ln n}{\\alpha} + \\frac{1}{2 \\gamma}
        \\left( 1 + d \\ln(1 + \\frac{n (G \\gamma D)^2}{d}) \\right) \\right),

    where D is the diameter of the box, :math:`2 \\sqrt d` times its `box`, and K as in
    `denoising_regret_bound`. The second term is the regret of online Newton steps with
    :math:`A_0 = I / (\\gamma D)^2` [2]_: :math:`\\frac{1}{2\\gamma} (1 + \\sum_t g_t^T
    A_t^{-1} g_t)`, where the sum is at most :math:`\\ln(\\det A_n / \\det A_0)`. It
    holds for any gamma with :math:`f(v) \\ge f(x) + g^T (v - x) + \\frac{\\gamma}{2}
    (g^T (v - x))^2` in the box, g being the gradient at x. Losses :math:`h(x^T u)` have
    it for :math:`\\gamma \\le \\min h'' / \\max h'^2`, whatever the diameter. The
    gradient steps of `single_cuts` end in the box: they have length :math:`G/\\beta` at
    most.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.
    .. [2] E. Hazan, A. Agarwal and S. Kale (2007). Logarithmic regret algorithms for
       online convex optimization. Machine Learning 69, 169-192.

    Examples
    --------
    >>> from sktvdenoise.theory import exp_concave_regret_bound
    >>> losses = dict(lipschitz=1.0, smoothness=1.0, exp_concavity=0.5)
    >>> round(exp_concave_regret_bound(10**6, 1.0, 1.0, pruning=None, **losses))
    10790
    """
    check_number("bound", bound, positive=True, finite=True)
    check_number("lipschitz", lipschitz, positive=True, finite=True)
    check_number("smoothness", smoothness, positive=True, finite=True)
    check_number("exp_concavity", exp_concavity, positive=True, finite=True)
    check_size("n_samples", n_samples)
    check_size("n_features", n_features)
    smallest = bound + lipschitz / smoothness
    box = smallest if box is None else box
    check_number("box", box, positive=True, finite=True)
    if box < smallest:
        raise ValueError(f"box={box:g} must be at least B + G / beta, {smallest:g}.")
    diameter = 2.0 * box * sqrt(n_features)
    if newton is None:
        newton = 0.5 * min(0.25 / (lipschitz * diameter), exp_concavity)
    check_number("newton", newton, positive=True, finite=True)
    growth = n_samples * (lipschitz * newton * diameter) ** 2 / n_features
    steps = (1.0 + n_features * log1p(growth)) / (2.0 * newton)
    interval = _cover(n_samples, pruning) * (log(n_samples) / exp_concavity + steps)
    return dynamic_regret_bound(n_samples, tv_budget, interval, smoothness=smoothness)


def strongly_convex_regret_bound(
    n_samples, tv_budget, *, lipschitz, smoothness, strong_convexity, pruning="aflh"
):
    """Upper bound of the regret of FLH over online gradient descent.

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`.
    tv_budget : float >= 0
        Largest total variation of the comparator, `C`, over its coordinates.
    lipschitz, smoothness, strong_convexity : float > 0
        Constants `G`, beta and `H` of the losses on the experts' domain, the box
        :math:`\\lVert x \\rVert_\\infty \\le B + G/\\beta`: the largest Euclidean norm
        of a gradient, the Lipschitz constant of the gradients, and the largest number
        such that :math:`f - H \\lVert x \\rVert^2/2` is convex.
    pruning : {"aflh", None}, default="aflh"
        The schedule of the experts; None keeps them all.

    Returns
    -------
    bound : float
        In the units of the losses; the number of coordinates doesn't enter.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range, `strong_convexity` is above
        `smoothness`, or `pruning` is unknown.

    Notes
    -----
    Proposition 15 of [1]_ with constants: `dynamic_regret_bound` with

    .. math:: S = K \\frac{G^2}{H} \\left( \\ln n + \\frac{1 + \\ln n}{2} \\right)

    and K as in `denoising_regret_bound`. The losses are exp-concave with
    :math:`H/G^2`, the rate of FLH, and gradient descent with the steps
    :math:`1/(H k)` has the static regret :math:`\\frac{G^2}{2H} \\sum_k 1/k` [2]_.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.
    .. [2] E. Hazan, A. Agarwal and S. Kale (2007). Logarithmic regret algorithms for
       online convex optimization. Machine Learning 69, 169-192.

    Examples
    --------
    >>> from sktvdenoise.theory import strongly_convex_regret_bound
    >>> losses = dict(lipschitz=4.0, smoothness=2.0, strong_convexity=2.0)
    >>> round(strongly_convex_regret_bound(10**6, 1.0, pruning=None, **losses))
    12099
    """
    check_number("lipschitz", lipschitz, positive=True, finite=True)
    check_number("smoothness", smoothness, positive=True, finite=True)
    check_number("strong_convexity", strong_convexity, positive=True, finite=True)
    if strong_convexity > smoothness:
        raise ValueError(
            f"strong_convexity={strong_convexity} is above smoothness={smoothness}: "
            "no loss has both."
        )
    check_size("n_samples", n_samples)
    logarithm = log(n_samples)
    interval = lipschitz**2 / strong_convexity * (1.5 * logarithm + 0.5)
    return dynamic_regret_bound(
        n_samples,
        tv_budget,
        _cover(n_samples, pruning) * interval,
        smoothness=smoothness,
    )


def regret_lower_bound(n_samples, tv_budget, bound, *, n_outputs=1):
    """What no method's regret can be below on all labels, for squared loss.

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`.
    tv_budget : float >= 0
        Largest total variation of the comparator, `C`, in the units of the labels.
    bound : float > 0
        Largest absolute label, `B`, in their units.
    n_outputs : int, default=1
        Number of outputs, `d`, that share the budget.

    Returns
    -------
    bound : float
        In the squared units of the labels. For every method there are labels in
        [-B, B] on which its (expected) regret is at least that.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range.

    Notes
    -----
    Proposition 11 of [1]_ with constants and a short proof. The labels are fair coins,
    -B or B. Whoever predicts them loses :math:`n B^2` at least, in expectation. In
    hindsight, cut the rounds into m blocks of equal length L (or L + 1) and let the
    sequence be a number :math:`\\epsilon` on each, with the sign of the block's sum.
    Its variation is at most :math:`2 \\epsilon (m - 1)`, and it loses
    :math:`2 \\epsilon B \\, E|S_L| - \\epsilon^2 L` less than 0 does, where
    :math:`S_L` is the sum of L signs. This function adds the blocks up for the best m
    and :math:`\\epsilon`. By :math:`E|S_L| \\ge \\sqrt{L/2}` that is, with
    :math:`\\epsilon = B/\\sqrt{2L}`, :math:`B^2/2` a block, hence
    :math:`2^{-4/3} n^{1/3} C^{2/3} B^{4/3}` up to rounding, and :math:`d^{1/3}` times
    that if d outputs share the budget equally. One block is :math:`B^2/2`.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.theory import regret_lower_bound
    >>> regret_lower_bound(1, 0.0, 1.0)
    1.0
    >>> round(regret_lower_bound(10**6, 1.0, 1.0), 1)
    55.8
    """
    check_size("n_samples", n_samples)
    check_size("n_outputs", n_outputs)
    check_number("tv_budget", tv_budget, finite=True)
    check_number("bound", bound, positive=True, finite=True)
    return n_outputs * block_game(n_samples, tv_budget / n_outputs, bound).gain


class BlockGame(NamedTuple):
    """A sequence of `n_blocks` pieces of one size against coins, and what it gains."""

    gain: float
    n_blocks: int
    size: float


def block_game(n_samples, tv_budget, bound):
    """The `BlockGame` with the largest expected gain over the sequence 0.

    The largest among 4096 numbers of blocks, and near to it up to n_samples: a later
    number is followed by one that is at most 1 % larger.
    """
    few = np.arange(1, min(n_samples, 4096) + 1)
    many = np.geomspace(few[-1], n_samples, 2000).astype(np.int64)
    blocks = np.unique(np.append(few, many))
    lengths, longer = np.divmod(n_samples, blocks)
    sums = bound * (
        (blocks - longer) * _mean_absolute_sum(lengths)
        + longer * _mean_absolute_sum(lengths + 1)
    )
    size = sums / n_samples
    size[1:] = np.minimum(size[1:], tv_budget / (2.0 * (blocks[1:] - 1)))
    gains = 2.0 * size * sums - size**2 * n_samples
    best = int(np.argmax(gains))
    return BlockGame(float(gains[best]), int(blocks[best]), float(size[best]))


_EXACT = 1000  # so that what the series leaves out is below rounding


def _mean_absolute_sum(lengths):
    """E|S_L| for the sum S_L of L signs: 2 j C(2j, j) / 4^j for L = 2 j - 1 and 2 j.

    |S| grows by 1 on the mean if it was 0 and stays the same on the mean otherwise,
    and S_2j is 0 with the probability C(2j, j)/4^j = prod (1 - 1/(2i)).
    """
    j = (lengths + 1) // 2
    returns = np.cumprod(1.0 - 0.5 / np.arange(1, _EXACT + 1))
    exact = np.append(1.0, returns)[np.minimum(j, _EXACT)]
    h = 1.0 / np.maximum(j, _EXACT)
    series = 1 - h / 8 + h**2 / 128 + 5 * h**3 / 1024 - 21 * h**4 / 32768
    return 2.0 * j * np.where(j < _EXACT, exact, np.sqrt(h / np.pi) * series)


def _cover(n_samples, pruning):
    """Experts that cover an interval, each from its birth and after the other."""
    if pruning is None:
        return 1
    if pruning != "aflh":
        raise ValueError(f'pruning must be "aflh" or None, got {pruning!r}.')
    return floor(log2(n_samples + 1))


def check_size(name, value):
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")
