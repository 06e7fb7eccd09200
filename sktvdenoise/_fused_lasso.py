"""The one-dimensional fused lasso as a function, and its certificate.

The exact comparator of the online methods: total-variation denoising at a penalty
`alpha` or within a budget TV(u) <= `tv_budget`, weighted, for one or several
channels, in time linear in the number of samples.
"""

from numbers import Integral

import numpy as np

from sktvdenoise._fused import denoise
from sktvdenoise._positions import (
    check_labels,
    check_number,
    check_squares,
    check_weights,
)
from sktvdenoise._problem import (
    check_combination,
    check_exposure,
    check_penalty,
    minimise,
)
from sktvdenoise._signal import PLAIN, Signal, signal_gap


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
        bad shape, a value that is not finite, is beyond 1e140, or that the loss does
        not allow (the message names the row).

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

    Every choice combines with weights. The squared loss with "tv" also takes
    `sparsity` and `bound`, alone or together; the other losses take `bound`, and the
    Poisson loss `exposure`; "group" is for the squared loss without either.

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
    check_penalty(alpha, tv_budget)
    check_number("sparsity", sparsity, finite=True)
    if bound is not None:
        check_number("bound", bound, positive=True)
    check_combination(
        loss=loss, penalty=penalty, sparsity=sparsity, bound=bound, exposure=exposure
    )
    check_number("tol", tol, positive=True)
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter must be an integer >= 1, got {max_iter!r}.")
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
    y, u = check_labels(y), check_labels(u, name="u")
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
