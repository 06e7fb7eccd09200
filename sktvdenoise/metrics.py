"""Exact dynamic regret against every sequence within a budget of variation.

The sequence is one of predictions, or of the coefficients of covariates.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sktvdenoise._likelihood import solution as likelihood_solution
from sktvdenoise._oracle import fit
from sktvdenoise._positions import (
    check_covariates,
    check_labels,
    check_number,
    check_squares,
    check_weights,
)
from sktvdenoise._regret_curve import (
    OracleInequality,
    RegretCurve,
    check_prediction,
    check_truth,
    regret_curve,
)
from sktvdenoise._scorers import (
    make_dynamic_regret_scorer,
    make_progressive_scorer,
    neg_dynamic_regret,
)
from sktvdenoise._signal import solution, variation
from sktvdenoise.losses import LOSSES, Loss, Squared, check_fit

__all__ = [
    "OracleInequality",
    "RegretCurve",
    "TVOracle",
    "dynamic_regret",
    "make_dynamic_regret_scorer",
    "make_progressive_scorer",
    "neg_dynamic_regret",
    "path_variation",
    "regret_curve",
    "tv_oracle",
]


@dataclass(frozen=True)
class TVOracle:
    """The best sequence in hindsight within a budget of total variation.

    Attributes
    ----------
    comparator : ndarray of shape (n_samples,), (n_samples, n_outputs) or \
            (n_samples, n_features)
        The sequence, with covariates that of the coefficients. Equal neighbours are
        exactly equal floats.
    loss : float
        Its cumulative loss: ``sum(w * (y - comparator)**2)`` for squared loss, the
        weighted sum of half the unit deviances for the others. With covariates the
        predictions are ``sum(X * comparator, axis=1)``.
    multiplier : float
        The multiplier of the budget for half the squares, or for the other losses
        themselves: the penalty `alpha` at which `fused_lasso` gives the same
        sequence. 0 if the budget doesn't bind (with covariates perhaps just small).
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


def _loss(loss):
    """The loss of this name, or itself."""
    if isinstance(loss, str) and loss in LOSSES:
        loss = LOSSES[loss]
    if not isinstance(loss, Loss):
        raise ValueError(
            f"loss must be one of {sorted(LOSSES)} or an ExponentialFamily, got "
            f"{loss!r}."
        )
    check_fit(loss, ["curvature", "divergence", "link", "limits"], "The oracle")
    return loss


def tv_oracle(
    y,
    tv_budget,
    *,
    X=None,
    loss="squared",
    bound=None,
    sample_weight=None,
    tol=1e-8,
    max_iter=1000,
):
    """Find the best sequence in hindsight within a budget of total variation.

    Without covariates it is a sequence of predictions; with covariates one of
    coefficients, by which every row has its own linear prediction.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order; with covariates there is one output.
    tv_budget : float >= 0
        Largest total variation allowed, `C`, in the units of the sequence. Several
        outputs, and all coefficients, share it.
    X : array-like of shape (n_samples, n_features), default=None
        Covariates. No intercept is added: where one is wanted, pass a column of ones.
    loss : {"squared", "poisson", "logistic"} or ExponentialFamily, default="squared"
        "squared" is (y - p)^2, without a factor 1/2. The others, see
        `sktvdenoise.losses`, are half the unit deviance: "poisson" is
        exp(p) - y p + y ln y - y for counts y >= 0, with p the logarithm of the rate;
        "logistic" is the log loss for labels 0 and 1 (or -1 and 1), with p the
        logarithm of the odds.
    bound : float > 0, default=None
        Largest absolute value allowed, `B`, of the sequence.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Factors >= 0 of the rows' losses; None means 1.
    tol : float > 0, default=1e-8
        With covariates, the largest `gap` relative to the loss (of the result, or a
        thousandth of that of the best constant coefficients, if this is more).
        Without, the solution is exact.
    max_iter : int > 0, default=1000
        With covariates, the largest number of iterations.

    Returns
    -------
    oracle : TVOracle
        With the attributes `comparator`, `loss`, `multiplier` and `gap`.

    Raises
    ------
    ValueError
        If `tv_budget` is negative or not finite, `y`, `X` or `sample_weight` has a
        bad shape or a value that isn't finite, or a label doesn't suit the loss.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` is reached before `tol`. The result is within the budget, and
        its gap is certified all the same.

    Notes
    -----
    Minimises :math:`\\sum_t w_t f_t(p_t)`, with :math:`p_t = u_t`, or
    :math:`p_t = x_t^\\top u_t` with covariates, subject to
    :math:`\\sum_t \\lVert u_t - u_{t-1} \\rVert_1 \\le C` and
    :math:`\\lVert u_t \\rVert_\\infty \\le B`: the comparator of the dynamic
    regret of [1]_. Without covariates it is found exactly, in linear time. With
    covariates, at a multiplier of the budget that is a root of the variation,
    semismooth Newton steps [3]_, exact fused lassos of each coefficient's sequence in
    turn [2]_ and Newton's steps on their pieces take turns, each in
    O(n_samples n_features^2). Rows of weight zero, or without a covariate that isn't,
    keep the coefficients of the row before.

    Without a bound the least loss may not be attained, as where labels are separable
    or all counts are zero. Then the result is finite and its loss within `gap` of the
    infimum. Where only some coefficients would be infinite, the gap may not become
    small; a bound helps.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.
    .. [2] P. Tseng (2001). Convergence of a block coordinate descent method for
       nondifferentiable minimization. Journal of Optimization Theory and
       Applications 109.
    .. [3] X. Li, D. Sun and K.-C. Toh (2018). On efficiently solving the subproblems
       of a level-set method for fused lasso problems. SIAM Journal on Optimization 28.

    Examples
    --------
    >>> from sktvdenoise.metrics import tv_oracle
    >>> oracle = tv_oracle([0, 0, 0, 10, 10, 10], tv_budget=4)
    >>> oracle.comparator, oracle.loss, oracle.multiplier
    (array([3., 3., 3., 7., 7., 7.]), 54.0, 9.0)
    >>> oracle = tv_oracle([1, 2, 2, 6], tv_budget=0.7, X=[[1], [2], [1], [3]])
    >>> oracle.comparator.ravel().round(6)
    array([1.2, 1.2, 1.9, 1.9])
    """
    check_number("tv_budget", tv_budget, finite=True)
    if bound is not None:
        check_number("bound", bound, positive=True)
    check_number("tol", tol, positive=True)
    check_number("max_iter", max_iter, positive=True)
    loss = _loss(loss)
    y = loss.check(check_labels(y))
    n_samples = len(y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, n_samples)
    check_squares(y, weights)
    if X is not None:
        weights = check_weights(weights, n_samples)
        return _regression(y, weights, X, loss, tv_budget, bound, tol, max_iter)
    columns = y.reshape(n_samples, -1)
    if isinstance(loss, Squared):
        found = solution(columns, weights, tv_budget=tv_budget, bound=bound)
    else:
        found = likelihood_solution(
            columns, weights, loss, tv_budget=tv_budget, bound=bound
        )
    # The loss of any u within the budget is at least the dual value at the
    # multiplier less what the multiplier charges for the whole budget.
    gap = loss.scale * (found.gap + found.alpha * (tv_budget - found.tv))
    comparator = found.u.reshape(y.shape)
    total = found.loss if isinstance(loss, Squared) else found.loss / 2
    return TVOracle(comparator, total, found.alpha, max(gap, 0.0))


def _regression(y, weights, X, loss, tv_budget, bound, tol, max_iter):
    """`tv_oracle` with covariates."""
    X = check_covariates(X, len(y))
    if y.ndim != 1:
        raise ValueError(
            f"With covariates there is one output: y must have shape ({len(y)},), got "
            f"{y.shape}. Outputs have coefficients of their own; call once for each."
        )
    size = np.abs(X).max()
    with np.errstate(over="ignore"):
        if not np.isfinite(4.0 * X.size * weights.max() * size * size):
            raise ValueError(
                f"Covariates up to {size:g} with weights up to {weights.max():g} are "
                "too large: the sum of their squares is no number. Divide them by a "
                "constant."
            )
    found = fit(
        y, weights, X, loss, budget=tv_budget, bound=bound, tol=tol, max_iter=max_iter
    )
    if not found.converged:
        relative = found.gap / found.loss
        hint = " or a bound" if bound is None else ""
        warnings.warn(
            f"tv_oracle stopped after {found.n_iter} iterations with a loss certified "
            f"to {relative:.1e} of itself; tol={tol:g} was asked for. A larger "
            f"max_iter{hint} may help.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return TVOracle(
        found.u,
        loss.scale * found.loss,
        float(found.alpha),
        loss.scale * found.gap,
    )


def dynamic_regret(
    y_true,
    y_pred,
    *,
    tv_budget,
    X=None,
    loss="squared",
    bound=None,
    sample_weight=None,
    tol=1e-8,
    max_iter=1000,
):
    """Cumulative loss less that of the best sequence within a budget.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order; with covariates there is one output.
    y_pred : array-like of the same shape
        Predictions, each made before its label was seen, as by
        ``OnlineTVDenoiser.partial_fit_predict``. What has seen the label, as the
        result of ``predict`` after ``fit``, has no regret worth the name. They are
        those of the label itself for squared loss, of the logarithm of the rate for
        "poisson" and of the logarithm of the odds for "logistic": what the
        comparator's sequence, or its linear predictions, are. ``link`` of a loss makes
        them of rates or probabilities.
    tv_budget : float >= 0
        Largest total variation of the comparator, in its units.
    X : array-like of shape (n_samples, n_features), default=None
        Covariates of the comparator; see `tv_oracle`.
    loss : {"squared", "poisson", "logistic"} or ExponentialFamily, default="squared"
        As in `tv_oracle`.
    bound : float > 0, default=None
        Largest absolute value of the comparator.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Factors >= 0 of the rows' losses; None means 1.
    tol, max_iter : float > 0, default=1e-8, and int > 0, default=1000
        As in `tv_oracle`.

    Returns
    -------
    regret : float
        In the units of the loss; lower is better. It may be negative: predictions may
        vary more than the comparator may.

    Raises
    ------
    ValueError
        If the shapes of `y_true` and `y_pred` differ, a value isn't finite, the loss
        of the predictions is no number, or as by `tv_oracle`.

    Warns
    -----
    ConvergenceWarning
        As by `tv_oracle`.

    Notes
    -----
    With predictions :math:`q_t` and those of the oracle :math:`p_t` (see
    `tv_oracle`), :math:`\\sum_t w_t f_t(q_t) - \\sum_t w_t f_t(p_t)`, where
    :math:`f_t(p) = (y_t - p)^2` for squared loss [1]_. It doesn't decrease in
    `tv_budget`. At 0 it is the static regret; from the total variation of the labels
    on, for squared loss without covariates, it is the whole loss.

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
    y, _ = check_truth(y_true, sample_weight)
    x = check_prediction(y_pred, y, None)
    function = _loss(loss)
    weights = check_weights(sample_weight, len(y)).reshape(-1, *[1] * (y.ndim - 1))
    with np.errstate(over="ignore"):
        losses = function.value(function.check(y), x)
    if not np.all(np.isfinite(losses)):
        row = int(np.argmax(~np.isfinite(losses.reshape(len(y), -1)).all(axis=1)))
        raise ValueError(
            f"The loss of y_pred is no finite number (first in row {row}): y_pred are "
            "logarithms of rates, not rates."
        )
    oracle = tv_oracle(
        y,
        tv_budget,
        X=X,
        loss=loss,
        bound=bound,
        sample_weight=sample_weight,
        tol=tol,
        max_iter=max_iter,
    )
    return function.scale * float(np.sum(weights * losses)) - oracle.loss
