"""Exact regret against every budget of total variation at once, for squared loss."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sktvdenoise._positions import (
    LARGEST,
    check_labels,
    check_number,
    check_squares,
    check_weights,
)
from sktvdenoise._signal import channels
from sktvdenoise.path import FusedLassoPath

__all__ = ["OracleInequality", "RegretCurve", "regret_curve"]


class OracleInequality(NamedTuple):
    """The excess over the best trade of loss against variation, in hindsight.

    Attributes
    ----------
    value : float
        Loss of the predictions minus the least sum of a sequence's loss and the rate
        at its variation. At most 0 if the predictions kept the rate, constant 1,
        against every sequence.
    tv_budget : float
        Variation of the sequence with the least sum.
    """

    value: float
    tv_budget: float


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """Regret as a function of the budget of total variation.

    Called with a budget, or an array of budgets, it returns the exact regret there.
    `regret_curve` makes it.

    Attributes
    ----------
    tv_budget : ndarray of shape (n_knots,)
        Budgets at which pieces of the oracle split, ascending from 0 to the total
        variation of the labels, in their units.
    regret : ndarray of shape (n_knots,)
        Regret against them. It doesn't decrease. In the squared units of the labels.
    oracle_loss : ndarray of shape (n_knots,)
        Losses of the oracles, without a factor 1/2.
    alphas : ndarray of shape (n_knots,)
        Multipliers of the budgets (see `multiplier`), descending to 0.
    loss : float
        Loss of the predictions: the regret from the last budget on.
    static : float
        Regret against the best constant (of each output): that at budget 0.
    n_samples : int
        Number of rows of positive weight.

    See Also
    --------
    sktvdenoise.metrics.tv_oracle : One oracle, as a sequence, with a certified gap.
    """

    tv_budget: np.ndarray = field(repr=False)
    oracle_loss: np.ndarray = field(repr=False)
    alphas: np.ndarray = field(repr=False)
    loss: float
    n_samples: int

    @classmethod
    def of(cls, y, weights, loss):
        """The curve of checked labels, weights and the loss of predictions."""
        path = FusedLassoPath(channels(y.reshape(len(y), -1), weights), y.shape)
        tables = (path.tv, path.loss, path.alphas)
        n_samples = len(y) if weights is None else np.count_nonzero(weights)
        ascending = (np.ascontiguousarray(table[::-1]) for table in tables)
        return cls(*ascending, float(loss), int(n_samples))

    @cached_property
    def regret(self):
        return self.loss - self.oracle_loss

    @property
    def static(self):
        return float(self.regret[0])

    def __call__(self, tv_budget):
        """Regret against budgets, exact also between the knots.

        Parameters
        ----------
        tv_budget : float or array-like of any shape
            Finite numbers >= 0, in the units of the labels.

        Returns
        -------
        regret : float or ndarray of that shape
            In the squared units of the labels.

        Raises
        ------
        ValueError
            If a budget is negative, NaN, infinite or no number.
        """
        budgets = check_budgets(tv_budget)
        return _like(budgets, self.loss - self._oracle(budgets)[1])

    def multiplier(self, tv_budget):
        """Multiplier of budgets, for half the loss.

        The penalty `alpha` at which ``fused_lasso`` gives the oracle; the loss of the
        oracle falls with the budget at twice this rate. At budget 0 it is the least
        penalty that gives constants, from the variation of the labels on it is 0.

        Parameters
        ----------
        tv_budget : float or array-like of any shape
            Finite numbers >= 0, in the units of the labels.

        Returns
        -------
        alpha : float or ndarray of that shape

        Raises
        ------
        ValueError
            If a budget is negative, NaN, infinite or no number.
        """
        budgets = check_budgets(tv_budget)
        return _like(budgets, self._oracle(budgets)[0])

    def rate(self, tv_budget, bound):
        """The optimal rate n^(1/3) C^(2/3) B^(4/3) of the regret, without constants.

        Parameters
        ----------
        tv_budget : float or array-like of any shape
            Budgets `C`: finite numbers >= 0, in the units of the labels.
        bound : float > 0
            Largest absolute label, `B`, in their units.

        Returns
        -------
        rate : float or ndarray of that shape
            In the squared units of the labels. `n` is the number of rows of positive
            weight, whatever their weights.

        Raises
        ------
        ValueError
            If a budget is negative, NaN, infinite or no number, or `bound` isn't
            positive and finite.
        """
        budgets = check_budgets(tv_budget)
        return _like(budgets, self._factor(bound) * np.cbrt(budgets) ** 2)

    def oracle_inequality(self, bound):
        """Excess over the best trade of loss against variation: no budget to choose.

        Parameters
        ----------
        bound : float > 0
            Largest absolute label, `B`, in the units of the labels.

        Returns
        -------
        summary : OracleInequality
            The pair `value`, `tv_budget`. Lower is better.

        Raises
        ------
        ValueError
            If `bound` isn't a positive and finite number.

        Notes
        -----
        With predictions :math:`x_t` it is (Remark 2 of [1]_, without constants)

        .. math:: \\sum_t w_t (y_t - x_t)^2 - \\min_u \\Big\\{ \\sum_t w_t
            (y_t - u_t)^2 + n^{1/3} \\, TV(u)^{2/3} B^{4/3} \\Big\\},

        the minimum being over all sequences, exactly. A budget as large as the
        variation of the noise lets the oracle fit noise; here it has to pay for that.

        References
        ----------
        .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
           online learning. Conference on Learning Theory.

        Examples
        --------
        >>> from sktvdenoise.metrics import regret_curve
        >>> curve = regret_curve([0, 0, 0, 10, 10, 10], [0, 0, 0, 0, 10, 10])
        >>> value, tv_budget = curve.oracle_inequality(bound=0.1)
        >>> round(value, 2), round(tv_budget, 2)
        (99.61, 9.99)
        """
        # Over the sequences of variation C the sum is least at the oracle's
        # g(C) = L(C) + factor C^(2/3), L the oracle's loss, so the minimum is that of
        # g on [0, TV(y)]. L has the derivative -2 alpha(C), which is continuous; so g
        # is differentiable for C > 0 and its minimum is at 0 or at a stationary
        # point, in a segment or at a knot.
        factor = self._factor(bound)
        candidates = np.append(self.tv_budget, self._stationary(factor))
        found = len(self.tv_budget)
        losses = np.append(self.oracle_loss, self._oracle(candidates[found:])[1])
        sums = losses + factor * np.cbrt(candidates) ** 2
        best = np.argmin(sums)
        return OracleInequality(float(self.loss - sums[best]), float(candidates[best]))

    def _oracle(self, budgets):
        """Multiplier and loss of the oracle at any budgets.

        Between knots the budget is linear in alpha, with slope -s, and the loss grows
        by s (alpha^2 - a^2), hence by (alpha + a) times what the budget is less.
        """
        budgets = np.minimum(budgets, self.tv_budget[-1])
        above = np.searchsorted(self.tv_budget, budgets)
        below = np.maximum(above - 1, 0)
        short = self.tv_budget[above] - budgets
        width = self.tv_budget[above] - self.tv_budget[below]
        share = np.divide(short, width, out=np.zeros_like(short), where=width > 0)
        a = self.alphas[above]
        alpha = a + share * (self.alphas[below] - a)
        return alpha, self.oracle_loss[above] + short * (alpha + a)

    def _stationary(self, factor):
        """Budgets inside segments where L(C) + factor C^(2/3) has a local minimum.

        The derivative is 0 where h = alpha C^(1/3) equals factor / 3, and negative
        where h is larger. On a segment alpha = (c - C) / s, so h grows with C up to
        C = c / 4 and falls from there on: there is a minimum in it, and one only, if
        h crosses factor / 3 on the falling branch. The branch is within [c / 4, c], so
        54 halvings find the crossing to the last digit.
        """
        level = factor / 3
        low, high = self.tv_budget[:-1], self.tv_budget[1:]
        rise, a = -np.diff(self.alphas), self.alphas[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            slope = (high - low) / rise
            low = np.clip((high + slope * a) / 4, low, high)
            falls = (a + (high - low) / slope) * np.cbrt(low) > level
        segments = np.flatnonzero(falls & (a * np.cbrt(high) <= level))
        low, high, slope, a = (v[segments] for v in (low, high, slope, a))
        end = high
        for _ in range(54):
            middle = (low + high) / 2
            before = (a + (end - middle) / slope) * np.cbrt(middle) > level
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        return high

    def _factor(self, bound):
        check_number("bound", bound, positive=True, finite=True)
        if bound > LARGEST:
            raise ValueError(f"bound must be at most {LARGEST:g}, got {bound!r}.")
        return np.cbrt(self.n_samples) * np.cbrt(float(bound)) ** 4


def regret_curve(y_true, y_pred, *, sample_weight=None):
    """Regret against every budget of total variation at once, for squared loss.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order. Several outputs share a budget.
    y_pred : array-like of the same shape
        Predictions, each made before its label was seen, as by
        ``OnlineTVDenoiser.partial_fit_predict``.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Factors >= 0 of the rows' losses; None means 1.

    Returns
    -------
    curve : RegretCurve
        ``curve(tv_budget)`` is what `dynamic_regret` returns, for one budget or an
        array of them; ``curve.static`` the static regret, ``curve.tv_budget`` and
        ``curve.regret`` the knots, ``curve.multiplier(tv_budget)`` the penalty that
        gives the oracle, ``curve.oracle_inequality(bound)`` a summary without a budget.

    Raises
    ------
    ValueError
        If the shapes of `y_true` and `y_pred` differ, one of them is empty, a value
        isn't finite (the message names the row), or weights are negative or all zero.

    See Also
    --------
    sktvdenoise.metrics.dynamic_regret : One budget, other losses.
    sktvdenoise.plotting.RegretCurveDisplay : The picture.

    Notes
    -----
    :math:`R(C) = \\sum_t w_t (y_t - x_t)^2 - L(C)`, where :math:`L(C)` is the least
    :math:`\\sum_t w_t (y_t - u_t)^2` among the sequences with
    :math:`\\sum_t \\lVert u_t - u_{t-1} \\rVert_1 \\le C` [1]_. The oracles of all
    budgets are the path of the fused lasso. With its penalty alpha the variation is
    piecewise linear and the loss piecewise quadratic, and both are known without
    forming a sequence: time and memory are O(n), a budget costs O(log n).

    *Rounding.* The m knots are sums of positive terms, so variation and loss have
    relative errors of at most about m eps (eps = 1.1e-16), and those of
    :math:`L(C)`, which is convex with slope :math:`-2 \\alpha`, are within
    :math:`m \\, eps \\, (L(C) + 2 \\alpha C) \\le m \\, eps \\, L(0)`: relative to
    the loss of the best constant, whatever is added to all labels. At a million labels
    the differences to certified oracles are below 3e-12 L(0) (``tv_oracle`` returns
    a certified gap at any budget).

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.metrics import regret_curve
    >>> curve = regret_curve([0, 0, 0, 10, 10, 10], [0, 0, 0, 0, 10, 10])
    >>> curve.static, curve(4), curve([0, 8, 20])
    (-50.0, 46.0, array([-50.,  94., 100.]))
    """
    y, weights = check_truth(y_true, sample_weight)
    x = check_prediction(y_pred, y, weights)
    return RegretCurve.of(y, weights, losses(y, x, weights).sum())


def check_truth(y_true, sample_weight):
    """Labels, and weights of shape (n_samples,) or None for ones."""
    y = check_labels(y_true, name="y_true")
    weights = None if sample_weight is None else check_weights(sample_weight, len(y))
    check_squares(y, weights)
    return y, weights


def check_prediction(y_pred, y, weights, name="y_pred"):
    """Predictions of the shape of the labels `y`."""
    x = check_labels(y_pred, name=name)
    if x.shape != y.shape:
        raise ValueError(
            f"y_true and {name} must have the same shape: y_true has {y.shape}, "
            f"{name} has {x.shape}."
        )
    check_squares(x, weights)
    return x


def check_budgets(tv_budget):
    """Budgets as an array of any shape, without dimensions for a number."""
    budgets = np.asarray(tv_budget)
    if budgets.dtype.kind not in "iuf" or not np.all(
        (budgets >= 0) & np.isfinite(budgets)
    ):
        raise ValueError(
            "tv_budget must be a finite number >= 0 or an array of such, got "
            f"{tv_budget!r}."
        )
    return budgets.astype(float)


def losses(y, x, weights):
    """Squared losses of the rows, the outputs added up."""
    errors = ((y - x) ** 2).reshape(len(y), -1).sum(axis=1)
    return errors if weights is None else weights * errors


def _like(budgets, values):
    return values if budgets.ndim else float(values)
