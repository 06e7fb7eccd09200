"""The one-dimensional fused lasso with the whole signal at hand.

The exact comparator of the online methods: total-variation denoising at a penalty
`alpha` or within a budget TV(u) <= `tv_budget`, weighted, for one or several
channels, in time linear in the number of samples.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._fused import denoise
from sktvdenoise._positions import (
    check_labels,
    check_number,
    check_positions,
    check_squares,
    check_weights,
    step_predict,
)
from sktvdenoise._problem import check_combination, check_exposure, minimise
from sktvdenoise._signal import (
    PLAIN,
    Shrinkage,
    Signal,
    Solution,
    channels,
    signal_gap,
)
from sktvdenoise.losses import LOSSES
from sktvdenoise.path import (
    RULES,
    FusedLassoPath,
    fused_lasso_path,
    refitted,
)

__all__ = ["FusedLasso", "duality_gap", "fused_lasso", "fused_lasso_path"]


def fused_lasso(
    y,
    alpha=None,
    *,
    tv_budget=None,
    sample_weight=None,
    bound=None,
    sparsity=0.0,
    loss="squared",
    exposure=None,
    penalty="tv",
    tol=1e-9,
    max_iter=100,
):
    """Denoise a signal by total variation: the weighted 1-D fused lasso, exactly.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_channels)
        The signal, in order: numbers, counts >= 0 for the Poisson loss; for the
        logistic loss False and True, 0 and 1, -1 and 1, or shares of successes in
        [0, 1] with the numbers of trials as `sample_weight`.
    alpha : float >= 0, default=None
        Penalty on the total variation, in the units of ``sample_weight * y``. 0
        returns `y`; from a finite value on (and for ``inf``) the result is the
        weighted mean.
    tv_budget : float >= 0, default=None
        Largest total variation of u allowed. All channels share it. Exactly one of
        `alpha` and `tv_budget` must be given.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights >= 0, the same for all channels; None for ones. A sample of weight
        zero takes the value of the weighted sample before it (after it at the
        start).
    bound : float > 0, default=None
        Require ``abs(u) <= bound``. None sets wide limits for the Poisson and the
        logistic loss: see Notes.
    sparsity : float >= 0, default=0.0
        Penalty gamma on ``sum(sample_weight * abs(u))``, in the units of `y`.
    loss : {"squared", "poisson", "logistic"}, default="squared"
        What u is: the level of `y`, the logarithm of the rate of counts, or the
        logarithm of the odds of success.
    exposure : float or array-like of shape (n_samples,), default=None
        Time, area or population >= 0 in which each count was taken, for the Poisson
        loss: `mean` is the rate per unit of exposure. None for ones.
    penalty : {"tv", "group"}, default="tv"
        "tv" adds up the variations of the channels; "group" joins their jumps:
        Euclidean norms of the steps across channels. The same for one channel.
    tol : float > 0, default=1e-9
        Largest certified gap relative to the objective. Only the joint jumps of
        several channels take iterations; all else is exact to rounding.
    max_iter : int >= 1, default=100
        Largest number of interior-point steps, of which joint jumps take some 20.

    Returns
    -------
    mean : ndarray of the shape of `y`
        On the scale of `y`: the level u, the rate per unit of exposure exp(u), or
        the probability 1 / (1 + exp(-u)). Equal neighbours are exactly equal floats.

    Raises
    ------
    ValueError
        If not exactly one of `alpha` and `tv_budget` is given, a number is out of
        range, choices do not combine, or `y`, `sample_weight` or `exposure` has a
        bad shape, a value that is not finite or one that the loss does not allow
        (the message names the row).

    Warns
    -----
    ConvergenceWarning
        If joint jumps did not reach `tol`; the message tells the gap.

    Notes
    -----
    Minimises, over u with abs(u_i) <= bound,

        1/2 sum_i w_i (y_i - u_i)^2 + gamma sum_i w_i abs(u_i)
        + alpha sum_i abs(u_{i+1} - u_i),

    or the first two terms subject to sum_i abs(u_{i+1} - u_i) <= tv_budget. The
    penalised form is solved by the taut string [1]_; the constrained form along the
    solution path, on which pieces only merge [2]_. Soft-thresholding by
    gamma and clipping the plain solution is exact [2]_ [3]_.

    The other losses replace the first term by half the deviance [4]_,

        sum_i w_i [E_i exp(u_i) - y_i u_i] + const for counts with exposure E,
        sum_i w_i [ln(1 + exp(u_i)) - y_i u_i] + const for labels,

    with TV(u) on the linear scale. Both are solved by one weighted taut string: the
    means of the solution solve the squared problem with the same alpha (for counts
    with labels y / E and weights w E), for in u and in the means the conditions of
    optimality are the same. The budget limits the variation of u. Without `bound`, u
    is kept finite where all counts are zero or the labels are separable: the rate
    (probability) is at least what expects 2e-16 counts (successes, failures) in all,
    which costs nothing measurable. The path of the means over alpha is
    ``fused_lasso_path(y / exposure, sample_weight * exposure)``.

    ``penalty="group"`` has sum_i norm(u_{i+1} - u_i) over the channels [5]_, by an
    interior-point method on the dual with Newton's method on the jumps it finds.

    References
    ----------
    .. [1] P. L. Davies and A. Kovac (2001). Local extremes, runs, strings and
       multiresolution. Annals of Statistics 29(1).
    .. [2] J. Friedman, T. Hastie, H. Hoefling and R. Tibshirani (2007). Pathwise
       coordinate optimization. Annals of Applied Statistics 1(2).
    .. [3] Y. Yu (2013). On decomposing the proximal map. NeurIPS 26.
    .. [4] L. Dümbgen and A. Kovac (2009). Extensions of smoothing via taut strings.
       Electronic Journal of Statistics 3.
    .. [5] K. Bleakley and J.-P. Vert (2011). The group fused lasso for multiple
       change-point detection. arXiv:1106.4199.

    Examples
    --------
    >>> from sktvdenoise.offline import fused_lasso
    >>> fused_lasso([0, 0, 0, 10, 10, 10], alpha=3)
    array([1., 1., 1., 9., 9., 9.])
    >>> fused_lasso([0, 0, 0, 10, 10, 10], tv_budget=4)
    array([3., 3., 3., 7., 7., 7.])
    >>> fused_lasso([0, 0, 8, 8], alpha=1, loss="poisson", exposure=[1, 1, 2, 2])
    array([0.5 , 0.5 , 3.75, 3.75])
    """
    if sample_weight is bound is tv_budget is exposure is None and (
        sparsity,
        loss,
        penalty,
        tol,
        max_iter,
    ) == (0, "squared", "tv", 1e-9, 100):
        u = denoise(y, alpha)
        if u is not None:
            return u
    _check_penalty(alpha, tv_budget)
    check_number("sparsity", sparsity, finite=True)
    if bound is not None:
        check_number("bound", bound, positive=True)
    check_combination(
        loss=loss, penalty=penalty, sparsity=sparsity, bound=bound, exposure=exposure
    )
    check_number("tol", tol, positive=True)
    check_number("max_iter", max_iter, positive=True)
    labels = check_labels(y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(labels))
    check_squares(labels, weights)
    if exposure is not None:
        exposure = check_exposure(exposure, labels)
    found = minimise(
        labels.reshape(len(labels), -1),
        weights,
        exposure,
        loss=loss,
        penalty=penalty,
        alpha=alpha,
        tv_budget=tv_budget,
        sparsity=sparsity,
        bound=bound,
        tol=tol,
        max_iter=max_iter,
    )
    return found.mean.reshape(labels.shape)


def duality_gap(y, u, alpha, sample_weight=None):
    """Bound how far `u` is from optimal for the plain fused lasso at `alpha`.

    Parameters
    ----------
    y, u : array-like of shape (n_samples,) or (n_samples, n_channels)
        Signal and candidate.
    alpha : float >= 0
        Penalty on the total variation.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights > 0; None for ones.

    Returns
    -------
    gap : float
        (primal - dual) / n_samples >= 0, in the units of ``sample_weight * y**2``:
        the objective at `u` is at most this much (times n_samples) above its
        minimum. 0 up to rounding if and only if `u` is optimal.

    Raises
    ------
    ValueError
        If shapes differ, `alpha` is negative, a weight is not positive, or a value
        is not finite.

    Notes
    -----
    The dual point is z_i = sum_{j <= i} w_j (u_j - y_j), closed so that z_n = 0 and
    scaled so that abs(z_i) <= alpha; at the optimum z_i = alpha sign(u_{i+1} - u_i)
    wherever u steps [1]_. Where that keeps abs(z_i) <= alpha, the sums start from these
    values with every piece, so that rounding does not add up.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. COLT, Lemma 3.

    Examples
    --------
    >>> from sktvdenoise.offline import duality_gap
    >>> duality_gap([0.0, 1.0], [0.25, 0.75], alpha=0.25)
    0.0
    >>> duality_gap([0.0, 1.0], [0.0, 1.0], alpha=0.25)
    0.03125
    """
    check_number("alpha", alpha)
    y, u = check_labels(y), check_labels(u)
    if y.shape != u.shape:
        raise ValueError(f"y has shape {y.shape} but u has shape {u.shape}.")
    w = None if sample_weight is None else check_weights(sample_weight, len(y))
    if w is not None and not w.all():
        row = int(np.argmin(w))
        raise ValueError(f"sample_weight must be positive, it is 0 in row {row}.")
    gap = sum(
        signal_gap(Signal(a, w), b, alpha, PLAIN)
        for a, b in zip(y.reshape(len(y), -1).T, u.reshape(len(y), -1).T)
    )
    return gap / len(y)


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
        outputs share the budget.
    sparsity : float >= 0, default=0.0
        Penalty on ``sum(sample_weight * abs(u))``, in the units of `y`.
    bound : float > 0, default=None
        Require ``abs(u) <= bound``.
    refit : bool, default=False
        Whether to join the neighbouring pieces that noise doesn't tell apart and
        give each piece the mean of its labels. This takes away the stairs and the
        bias towards neighbours, for breakpoints and levels; the best `alpha` for it
        is a small one, such as that of "sure". It needs ``sparsity=0`` and no
        `bound`. Outputs are joined each on its own.
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
        certificate of optimality, of the solution before refitting.
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

    The rules look at all knots of the path of the plain problem, that without
    `sparsity` and `bound`. With sigma from the median absolute difference of
    neighbours,

    - "no-false-jump": alpha = 1.358 sigma sqrt(sum w), the 95 % point of the
      largest distance of a Brownian bridge from 0; the largest over the outputs;
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
        _check_penalty(self.alpha, self.tv_budget, RULES)
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
        positions, rows, weights, shape, order = ordered(self, X, y, sample_weight)
        if exposure is not None:
            exposure = check_exposure(exposure, rows, order)
        return self._keep(positions, self._solve(rows, weights, exposure), shape)

    def _check_refit(self):
        if self.refit and (self.sparsity or self.bound is not None):
            raise ValueError(
                f"refit=True needs sparsity=0 and bound=None, got "
                f"sparsity={self.sparsity!r} and bound={self.bound!r}."
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
            Labels; counts with an exposure as rates, weighted by it.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0; None for ones.

        Returns
        -------
        score : float
            At most 1; D^2 is 0 for other predictions of constant labels.
        """
        loss = LOSSES[getattr(self, "loss", "squared")]
        if loss is LOSSES["squared"]:
            return super().score(X, y, sample_weight)
        mean, u = self.predict(X), self.predict_linear(X)
        y = loss.check(check_labels(y, len(mean)).reshape(mean.shape))
        w = check_weights(sample_weight, len(y))
        null = np.broadcast_to(np.average(y, axis=0, weights=w), y.shape)
        w = w.reshape(-1, *[1] * (y.ndim - 1))
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


def ordered(estimator, X, y, sample_weight):
    """Validated data in the order of their positions.

    Returns
    -------
    positions : ndarray of shape (n_samples,)
    rows : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or (n_samples, n_outputs), or None
    shape : tuple
        Of `y`.
    order : ndarray of shape (n_samples,)
        The rows that they were.
    """
    skip = estimator.missing == "skip"
    positions = check_positions(estimator, X, reset=True)
    labels = check_labels(y, len(positions), allow_nan=skip)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(positions))
    check_squares(labels, weights)
    order = np.argsort(positions, kind="stable")
    rows = labels.reshape(len(labels), -1)[order]
    if weights is not None:
        weights = weights[order]
    if skip:
        weights = _observed(rows, weights)
    return positions[order], rows, weights, labels.shape, order


def _observed(rows, weights):
    """Weights of shape (n_samples, n_outputs) that are zero where a label is NaN."""
    observed = ~np.isnan(rows)
    w = observed * (1.0 if weights is None else weights[:, None])
    empty = ~w.any(axis=0)
    if empty.any():
        raise ValueError(
            f"Input y contains NaN in every weighted row of column "
            f"{int(np.argmax(empty))}: nothing was observed."
        )
    return w


def _check_penalty(alpha, tv_budget, rules=()):
    if alpha is not None and tv_budget is not None:
        raise ValueError(
            f"Exactly one of alpha and tv_budget must be given: alpha must be None "
            f"when tv_budget is set, got alpha={alpha!r} and tv_budget={tv_budget!r}."
        )
    if alpha is None and tv_budget is None:
        raise ValueError("Exactly one of alpha and tv_budget must be given, got none.")
    if isinstance(alpha, str) and alpha in rules:
        return
    if alpha is not None:
        check_number("alpha", alpha)
    else:
        check_number("tv_budget", tv_budget)
