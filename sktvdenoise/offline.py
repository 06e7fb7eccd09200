"""FusedLasso, the one-dimensional fused lasso as an estimator.

A step function is fitted to all the labels at once; `fused_lasso` is the same as a
function, `fused_lasso_path` the solutions at all penalties.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._fused_lasso import duality_gap, fused_lasso
from sktvdenoise._positions import (
    check_labels,
    check_ordered,
    check_positions,
    check_weights,
    observed_weights,
    step_predict,
)
from sktvdenoise._problem import (
    check_combination,
    check_exposure,
    check_penalty,
    minimise,
)
from sktvdenoise._signal import Shrinkage, Solution, channels
from sktvdenoise.losses import LOSSES
from sktvdenoise.path import (
    RULES,
    FusedLassoPath,
    fused_lasso_path,
    refitted,
)

__all__ = ["FusedLasso", "duality_gap", "fused_lasso", "fused_lasso_path"]


class FusedLasso(RegressorMixin, BaseEstimator):
    """Total-variation denoising of labels in order of their positions.

    The fit is a step function: constant pieces between breakpoints. Only the order
    of the positions counts, not their spacing.

    Parameters
    ----------
    alpha : float >= 0, {"no-false-jump", "sure", "bic"} or None, default=1.0
        Penalty on the total variation, in the units of ``sample_weight * y``, or
        the rule that chooses it from the labels:

        - "no-false-jump" tells whether anything changes at all: noise around a
          constant gives one piece with probability 0.95. It smooths much.
        - "sure" is for the curve: the least unbiased estimate of the squared error.
          It steps more often than the truth, in stairs about the jumps.
        - "bic" is for the pieces: the segmentation, among those of the path, with
          the least information criterion of the means of its pieces.

        They take the noise to be independent, its standard deviation being told by
        the differences of neighbours, and the weights to be inverse variances.
    tv_budget : float >= 0, default=None
        Largest total variation of u allowed instead; `alpha` must then be None. All
        outputs share the budget. It does not combine with `refit`, whose levels may
        vary more.
    sparsity : float >= 0, default=0.0
        Penalty on ``sum(sample_weight * abs(u))``, in the units of `y`.
    bound : float > 0, default=None
        Require ``abs(u) <= bound``.
    refit : bool, default=False
        Whether to join the neighbouring pieces that noise doesn't tell apart and
        give each piece the mean of its labels. This takes away the stairs and the
        bias towards neighbours, for breakpoints and levels; the best `alpha` for it
        is a small one, such as that of "sure". It needs ``sparsity=0``, no `bound`
        and no `tv_budget`. Outputs are joined each on its own.
    missing : {"error", "skip"}, default="error"
        What NaN in `y` does: raise, or count as an observation of weight zero. The
        gap then continues the piece of the observation before it (after it at the
        start).
    loss : {"squared", "poisson", "logistic"}, default="squared"
        What u is: the level of `y`, the logarithm of the rate of counts >= 0 (which
        may have an `exposure`), or the logarithm of the odds of labels 0 or 1, -1 or
        1, or of shares of successes with the numbers of trials as weights.
    penalty : {"tv", "group"}, default="tv"
        Whether outputs jump on their own or together: the sum of their variations,
        or the Euclidean norms of the steps across outputs.
    tol : float > 0, default=1e-9
        Largest certified gap relative to the objective. Inert but for joint jumps of
        several outputs: all else is exact to rounding without iterations.
    max_iter : int >= 1, default=100
        Largest number of interior-point steps for joint jumps.

    Attributes
    ----------
    positions_ : ndarray of shape (n_samples,)
        Positions in non-decreasing order. Equal positions stay separate
        observations, in the order they were given.
    values_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The denoised labels at `positions_`, on the scale of `y`: levels, rates per
        unit of exposure, probabilities. Equal runs are exactly equal floats.
    linear_values_ : ndarray of the shape of `values_`
        u: `values_` for the squared loss, the logarithms of rates or odds.
    breakpoints_ : ndarray of int
        Indices into `positions_` of the first sample of each piece but the first,
        where any output steps; empty for a constant fit.
    n_pieces_ : int
        Number of pieces, ``len(breakpoints_) + 1``.
    alpha_ : float
        `alpha`, or the one chosen, or the multiplier of the budget (0 where it does
        not bind).
    tv_ : float
        Total variation of `linear_values_`, as the penalty has it.
    loss_ : float
        The deviance: sum of ``sample_weight * (y - values_)**2``, without a factor
        1/2, or that of the Poisson or binomial distribution.
    dual_gap_ : float
        (objective - lower bound on its minimum) / n_samples, at `alpha_`: the
        certificate of optimality, of the solution before refitting. An offset of
        the labels doesn't blur it: each piece is judged beside its own labels.
    n_iter_ : int
        Number of interior-point steps for joint jumps, 1 for all else.
    n_features_in_ : int
        Always 1.
    feature_names_in_ : ndarray of shape (1,)
        Name of the column of `X`, where it has one.

    See Also
    --------
    fused_lasso : The same as a function of the labels alone.
    fused_lasso_path : The solutions at all penalties.
    sktvdenoise.FusedLassoCV : The penalty chosen by cross-validation.

    Notes
    -----
    Minimises 1/2 sum w (y - u)^2 + sparsity sum w abs(u) + alpha TV(u) subject to
    abs(u) <= bound, or the first two terms subject to TV(u) <= tv_budget; see
    :func:`fused_lasso` for method and references, also for the other losses and for
    joint jumps. Time and memory are linear in the number of samples.

    Which choices combine:

    =======================  ==============================================
    squared loss, "tv"       all but: `refit` with `sparsity`, `bound` or
                             `tv_budget`; `exposure`
    "poisson", "logistic"    `alpha` (a number) or `tv_budget`, `bound`,
                             weights; `exposure` for counts
    "group" (squared loss)   `alpha` (a number) or `tv_budget`, weights
    =======================  ==============================================

    All take several outputs and ``missing="skip"`` ("group" where a row misses all
    outputs or none). Labels are refused beyond 1e140, and where the squares of all
    are rounded to zero, as those of 1e-150.

    The rules look at all knots of the path of the plain problem, that without
    `sparsity` and `bound`. With sigma from the median absolute difference of
    neighbours,

    - "no-false-jump": alpha = 1.358 sigma sqrt(sum w), the 95 % point of the
      largest distance of a Brownian bridge from 0 (of m independent outputs each has
      the probability 0.95^(1/m)); the largest over the outputs;
    - "sure": least sum w (y - u)^2 + 2 sigma^2 (number of pieces), summed over the
      outputs [1]_ [2]_;
    - "bic": least sum w (y - mean)^2 / sigma^2 + 2 ln(n) (number of pieces) [3]_;
      `alpha_` is the least penalty that gives these pieces.

    `refit` minimises the same as "bic" over all ways to join pieces of the solution,
    by dynamic programming.

    References
    ----------
    .. [1] C. M. Stein (1981). Estimation of the mean of a multivariate normal
       distribution. Annals of Statistics 9(6).
    .. [2] R. J. Tibshirani and J. Taylor (2012). Degrees of freedom in lasso
       problems. Annals of Statistics 40(2).
    .. [3] Y.-C. Yao (1988). Estimating the number of change-points via Schwarz'
       criterion. Statistics and Probability Letters 6(3).

    Examples
    --------
    >>> from sktvdenoise.offline import FusedLasso
    >>> model = FusedLasso(alpha=3).fit([1, 2, 3, 4], [0, 0, 10, 10])
    >>> model.predict([0, 2.5, 3, 99])
    array([1.5, 1.5, 8.5, 8.5])
    >>> model.breakpoints_
    array([2])
    """

    _parameter_constraints = {
        "alpha": [
            Interval(Real, 0, np.inf, closed="both"),
            StrOptions(set(RULES)),
            None,
        ],
        "tv_budget": [Interval(Real, 0, np.inf, closed="both"), None],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "bound": [Interval(Real, 0, None, closed="neither"), None],
        "refit": ["boolean"],
        "missing": [StrOptions({"error", "skip"})],
        "loss": [StrOptions(set(LOSSES))],
        "penalty": [StrOptions({"tv", "group"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        tv_budget=None,
        sparsity=0.0,
        bound=None,
        refit=False,
        missing="error",
        loss="squared",
        penalty="tv",
        tol=1e-9,
        max_iter=100,
    ):
        self.alpha = alpha
        self.tv_budget = tv_budget
        self.sparsity = sparsity
        self.bound = bound
        self.refit = refit
        self.missing = missing
        self.loss = loss
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, exposure=None):
        """Denoise `y` in the order of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order; rows with equal positions keep their order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0; None for ones.
        exposure : float or array-like of shape (n_samples,), default=None
            Time, area or population >= 0 in which each count was taken, for
            ``loss="poisson"``; None for ones. The same fit, without `exposure`, has
            the labels ``y / exposure`` and the weights ``sample_weight * exposure``:
            the form that ``score`` and searches take.

        Returns
        -------
        self : FusedLasso

        Raises
        ------
        ValueError
            If `alpha` and `tv_budget` are both given or both None, choices do not
            combine, or the data have a bad shape, a value that is not finite or one
            that the loss does not allow (the message names the row).
        TypeError
            If `X` holds dates.
        """
        check_penalty(self.alpha, self.tv_budget, RULES)
        self._check_refit()
        check_combination(
            loss=self.loss,
            penalty=self.penalty,
            sparsity=self.sparsity,
            bound=self.bound,
            exposure=exposure,
            rule=isinstance(self.alpha, str),
            refit=self.refit,
        )
        positions, rows, weights, shape, order = check_ordered(
            self, X, y, sample_weight
        )
        if exposure is not None:
            exposure = check_exposure(exposure, rows, order)
        return self._keep(positions, self._solve(rows, weights, exposure), shape)

    def _check_refit(self):
        if self.refit and (self.sparsity or self.bound is not None):
            raise ValueError(
                f"refit=True needs sparsity=0 and bound=None, got "
                f"sparsity={self.sparsity!r} and bound={self.bound!r}."
            )
        if self.refit and getattr(self, "tv_budget", None) is not None:
            raise ValueError(
                "refit=True needs an alpha, not a tv_budget: the refitted levels may "
                "vary more."
            )

    def _solve(self, rows, weights, exposure):
        if not isinstance(self.alpha, str):
            return minimise(
                rows,
                weights,
                exposure,
                loss=self.loss,
                penalty=self.penalty,
                alpha=self.alpha,
                tv_budget=self.tv_budget,
                sparsity=self.sparsity,
                bound=self.bound,
                tol=self.tol,
                max_iter=self.max_iter,
            )
        path = FusedLassoPath(channels(rows, weights), rows.shape)
        alpha = RULES[self.alpha](path)
        return path.at(alpha, Shrinkage(self.sparsity, self.bound))

    def _keep(self, positions, found, shape):
        """Set the fitted attributes to the solution `found`, refitted if asked."""
        self.dual_gap_ = found.gap / len(positions)
        if self.refit:
            plain = [refitted(*channel) for channel in found.channels]
            found = Solution.of(found.signals, plain, found.alpha)
        self.positions_ = positions
        self.values_ = found.mean.reshape(shape)
        self.linear_values_ = found.u.reshape(shape)
        if found.mean is found.u:  # so that a change of one leaves the other
            self.linear_values_ = self.linear_values_.copy()
        steps = np.any(found.u[1:] != found.u[:-1], axis=1)
        self.breakpoints_ = np.flatnonzero(steps) + 1
        self.n_pieces_ = len(self.breakpoints_) + 1
        self.alpha_ = found.alpha
        self.tv_ = found.tv
        self.loss_ = found.loss
        self.n_iter_ = found.n_iter
        return self

    def predict(self, X):
        """Evaluate the step function.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, in any order, inside or outside the range of the fit.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
            The value at the last fitted position at or before each query (the last
            of several equal positions); the first value before all of them. As in
            scikit-learn's generalised linear models it is the mean of the label: the
            rate per unit of exposure, the probability.
        """
        check_is_fitted(self)
        query = check_positions(self, X, reset=False)
        return step_predict(self.positions_, self.values_, query)

    def predict_linear(self, X):
        """Evaluate u: the logarithm of the rate, of the odds, or the level itself.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, in any order, inside or outside the range of the fit.

        Returns
        -------
        ndarray of shape (n_queries,) or (n_queries, n_outputs)
        """
        check_is_fitted(self)
        query = check_positions(self, X, reset=False)
        return step_predict(self.positions_, self.linear_values_, query)

    def score(self, X, y, sample_weight=None):
        """R^2, the share of the squared error about the mean that is explained.

        For ``loss="poisson"`` and ``"logistic"`` it is D^2, the same for the deviance,
        as in scikit-learn's generalised linear models.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels; counts with an exposure as rates, weighted by it. With
            ``missing="skip"`` NaN has weight zero.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0; None for ones.

        Returns
        -------
        score : float
            At most 1; D^2 is 0 for other predictions of constant labels. R^2 is the
            mean of the outputs' own.

        Raises
        ------
        ValueError
            If `y` or `sample_weight` has a bad shape or a value that is not finite,
            or an output has no label of weight.
        """
        loss = LOSSES[getattr(self, "loss", "squared")]
        mean = self.predict(X)
        u = mean if loss is LOSSES["squared"] else self.predict_linear(X)
        y = check_labels(y, len(mean), allow_nan=self.missing == "skip")
        if y.size != mean.size:
            raise ValueError(
                f"y has shape {y.shape}, but the fit has outputs of shape {mean.shape}."
            )
        y, mean, u = (array.reshape(len(y), -1) for array in (y, mean, u))
        w = check_weights(sample_weight, len(y))
        w = observed_weights(y, w)
        if loss is LOSSES["squared"]:
            scores = [
                r2_score(y[seen, j], mean[seen, j], sample_weight=w[seen, j])
                for j, seen in enumerate((w > 0).T)
            ]
            return float(np.mean(scores))
        y = loss.check(y)
        y = np.where(w > 0, y, mean)
        null = np.broadcast_to(np.average(y, axis=0, weights=w), y.shape)
        error = np.sum(w * loss.deviation(y, mean, u))
        spread = np.sum(w * loss.deviation(y, null, loss.link(null)))
        if spread <= 1e-15 * np.sum(w):
            return float(error <= 1e-15 * np.sum(w))
        return float(1 - error / spread)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = getattr(self, "loss", "") == "poisson"
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.multi_output = True
        return tags
