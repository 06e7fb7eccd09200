"""Exact dynamic regret against every sequence within a budget of variation."""

from dataclasses import dataclass

import numpy as np

from sktvdenoise._positions import (
    check_labels,
    check_number,
    check_squares,
    check_weights,
)
from sktvdenoise._signal import solution, variation

__all__ = ["TVOracle", "dynamic_regret", "path_variation", "tv_oracle"]


@dataclass(frozen=True)
class TVOracle:
    """The best sequence in hindsight within a budget of total variation.

    Attributes
    ----------
    comparator : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The sequence. Equal neighbours are exactly equal floats.
    loss : float
        Its cumulative loss ``sum(w * (y - comparator)**2)``.
    multiplier : float
        The multiplier of the budget for half the loss: the penalty `alpha` at
        which `fused_lasso` gives the same sequence. 0 if the budget doesn't bind.
    gap : float
        `loss` is at most this much above the least possible one. It is certified
        by a dual point and never negative.
    """

    comparator: np.ndarray
    loss: float
    multiplier: float
    gap: float


def path_variation(u):
    """Total variation of a sequence, in the units of its values.

    Parameters
    ----------
    u : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The sequence.

    Returns
    -------
    tv : float
        ``sum(abs(u[t] - u[t - 1]))``, over the outputs, too.

    Raises
    ------
    ValueError
        If `u` is empty, has three dimensions or a value that isn't finite.

    Examples
    --------
    >>> from sktvdenoise.metrics import path_variation
    >>> path_variation([0.0, 0.0, 3.0, 1.0])
    5.0
    """
    return variation(check_labels(u, name="u"))


def tv_oracle(y, tv_budget, *, bound=None, sample_weight=None):
    """Find the best sequence in hindsight within a budget of total variation.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order.
    tv_budget : float >= 0
        Largest total variation allowed, `C`, in the units of `y`. Several outputs
        share it.
    bound : float > 0, default=None
        Largest absolute value allowed, `B`, in the units of `y`. It binds only
        where it is below the largest label.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Factors >= 0 of the rows' losses; None means 1.

    Returns
    -------
    oracle : TVOracle
        With the attributes `comparator`, `loss`, `multiplier` and `gap`.

    Raises
    ------
    ValueError
        If `tv_budget` is negative or not finite, or `y` or `sample_weight` has a
        bad shape or a value that isn't finite.

    Notes
    -----
    Minimises :math:`\\sum_t w_t (y_t - u_t)^2` subject to
    :math:`\\sum_t \\lVert u_t - u_{t-1} \\rVert_1 \\le C` and
    :math:`\\lVert u \\rVert_\\infty \\le B`, exactly and in linear time: the
    comparator of the dynamic regret of [1]_.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.metrics import tv_oracle
    >>> oracle = tv_oracle([0, 0, 0, 10, 10, 10], tv_budget=4)
    >>> oracle.comparator, oracle.loss, oracle.multiplier
    (array([3., 3., 3., 7., 7., 7.]), 54.0, 9.0)
    """
    check_number("tv_budget", tv_budget, finite=True)
    if bound is not None:
        check_number("bound", bound, positive=True)
    y = check_labels(y)
    n_samples = len(y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, n_samples)
    check_squares(y, weights)
    found = solution(
        y.reshape(n_samples, -1), weights, tv_budget=tv_budget, bound=bound
    )
    # Half the loss of any u within the budget is at least the dual value at the
    # multiplier less what the multiplier charges for the whole budget.
    gap = 2.0 * (found.gap + found.alpha * (tv_budget - found.tv))
    comparator = found.u.reshape(y.shape)
    return TVOracle(comparator, found.loss, found.alpha, max(gap, 0.0))


def dynamic_regret(y_true, y_pred, *, tv_budget, bound=None, sample_weight=None):
    """Cumulative squared loss less that of the best sequence within a budget.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order.
    y_pred : array-like of the same shape
        Predictions, each made before its label was seen, as by
        ``OnlineTVDenoiser.partial_fit_predict``. What has seen the label, as the
        result of ``predict`` after ``fit``, has no regret worth the name.
    tv_budget : float >= 0
        Largest total variation of the comparator, in the units of the labels.
    bound : float > 0, default=None
        Largest absolute value of the comparator, in the units of the labels.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Factors >= 0 of the rows' losses; None means 1.

    Returns
    -------
    regret : float
        In the squared units of the labels; lower is better. It may be negative:
        predictions may vary more than the comparator may.

    Raises
    ------
    ValueError
        If the shapes of `y_true` and `y_pred` differ, a value isn't finite, or
        `tv_budget` is negative or not finite.

    Notes
    -----
    With predictions :math:`x_t` and the oracle's sequence :math:`u_t` (see
    `tv_oracle`), :math:`\\sum_t w_t (y_t - x_t)^2 - \\sum_t w_t (y_t - u_t)^2`
    [1]_. It doesn't decrease in `tv_budget`. At 0 it is the static regret; from
    the total variation of the labels on it is the whole loss.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.metrics import dynamic_regret
    >>> y = [0, 0, 0, 10, 10, 10]
    >>> dynamic_regret(y, [0, 0, 0, 0, 10, 10], tv_budget=4)
    46.0
    """
    y, x = check_labels(y_true, name="y_true"), check_labels(y_pred, name="y_pred")
    if y.shape != x.shape:
        raise ValueError(
            f"y_true and y_pred must have the same shape: y_true has {y.shape}, "
            f"y_pred has {x.shape}."
        )
    check_squares(x)
    oracle = tv_oracle(y, tv_budget, bound=bound, sample_weight=sample_weight)
    weights = check_weights(sample_weight, len(y)).reshape(-1, *[1] * (y.ndim - 1))
    return float(np.sum(weights * (y - x) ** 2)) - oracle.loss
