"""The display of a solution path: every solution as a row of a picture."""

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._positions import check_ordered
from sktvdenoise._signal import channels
from sktvdenoise.path import FusedLassoPath

__all__ = ["FusedLassoPathDisplay"]

MOST_COLUMNS = 2000


class FusedLassoPathDisplay:
    """The solutions of the fused lasso over alpha, and the errors of held-out labels.

    It is recommended to use
    :func:`~sktvdenoise.plotting.FusedLassoPathDisplay.from_estimator`. All
    parameters are stored as attributes.

    Parameters
    ----------
    positions : ndarray of shape (n_columns,)
        Positions in ascending order.

    alphas : ndarray of shape (n_alphas,)
        Positive penalties in ascending order, in geometric steps.

    solutions : ndarray of shape (n_alphas, n_columns)
        The solution at each of `alphas`.

    alpha : float, default=None
        The penalty chosen.

    cv_alphas : ndarray of shape (n_candidates,), default=None
        Candidates of cross-validation.

    cv_scores : ndarray of shape (n_candidates, n_folds), default=None
        Their scores, or errors, fold by fold.

    position_name, value_name, score_name : str, default="position", "value", \
            "mean squared error"
        Labels of the axes, with their units.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The picture's axes and, with scores, those of the curve at its left.

    figure_ : matplotlib Figure
        Figure containing them.

    image_ : matplotlib QuadMesh
        The solutions.

    curve_ : matplotlib Line2D or None
        The mean scores.

    See Also
    --------
    sktvdenoise.FusedLassoCV : The penalty by cross-validation.

    Examples
    --------
    >>> from sktvdenoise import FusedLassoCV
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.plotting import FusedLassoPathDisplay
    >>> X, y = load_nile(return_X_y=True)
    >>> model = FusedLassoCV().fit(X, y)
    >>> FusedLassoPathDisplay.from_estimator(model, X, y).solutions.shape
    (200, 100)
    """

    def __init__(
        self,
        *,
        positions,
        alphas,
        solutions,
        alpha=None,
        cv_alphas=None,
        cv_scores=None,
        position_name="position",
        value_name="value",
        score_name="mean squared error",
    ):
        self.positions = positions
        self.alphas = alphas
        self.solutions = solutions
        self.alpha = alpha
        self.cv_alphas = cv_alphas
        self.cv_scores = cv_scores
        self.position_name = position_name
        self.value_name = value_name
        self.score_name = score_name

    def plot(self, axes=None, **kwargs):
        """Draw the picture and, beside it on the same scale of alpha, the curve.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, or one without scores, default=None
            Axes of the picture and of the curve. None makes a new figure.

        **kwargs : dict
            Passed to matplotlib's ``pcolormesh``.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.FusedLassoPathDisplay`
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        scored = self.cv_scores is not None
        if axes is None:
            _, axes = plt.subplots(
                ncols=1 + scored,
                sharey=True,
                squeeze=False,
                layout="constrained",
                width_ratios=[3, 1][: 1 + scored],
            )
        axes = list(np.ravel(axes))
        picture = axes[0]
        self.image_ = picture.pcolormesh(
            self.positions,
            self.alphas,
            self.solutions,
            **{"shading": "nearest", "cmap": "viridis", "rasterized": True} | kwargs,
        )
        picture.set(yscale="log", xlabel=self.position_name, ylabel="alpha")
        picture.figure.colorbar(self.image_, ax=picture, label=self.value_name)
        self.curve_ = None
        if scored:
            mean = self.cv_scores.mean(axis=1)
            n_folds = self.cv_scores.shape[1]
            error = self.cv_scores.std(axis=1, ddof=1) / np.sqrt(n_folds)
            shown = self.cv_alphas > 0
            at = self.cv_alphas[shown]
            (self.curve_,) = axes[1].plot(mean[shown], at, color="#0072B2")
            axes[1].fill_betweenx(
                at,
                (mean - error)[shown],
                (mean + error)[shown],
                color="#0072B2",
                alpha=0.2,
                linewidth=0,
                label="± 1 standard error",
            )
            axes[1].set(yscale="log", xlabel=self.score_name)
        if self.alpha:
            for ax in axes[: 1 + scored]:
                ax.axhline(self.alpha, color="#D55E00", linestyle="dashed")
        picture.set_ylim(self.alphas[0], self.alphas[-1])
        self.axes_ = axes[: 1 + scored]
        self.figure_ = picture.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        sample_weight=None,
        n_alphas=200,
        axes=None,
        position_name="position",
        value_name="value",
        **kwargs,
    ):
        """Plot the path of labels, the penalty an estimator chose, and its scores.

        Parameters
        ----------
        estimator : FusedLassoCV or FusedLasso
            Fitted.

        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0; None for ones.

        n_alphas : int, default=200
            Rows of the picture: penalties in geometric steps from one that changes
            little to the least that gives a constant.

        axes : sequence of matplotlib Axes, default=None
            As for `plot`.

        position_name, value_name : str, default="position", "value"
            Labels of the axes, with their units.

        **kwargs : dict
            Passed to matplotlib's ``pcolormesh``.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.FusedLassoPathDisplay`
            Object that stores computed values. At most 2000 columns are shown.

        Raises
        ------
        ValueError
            If `y` has several outputs, the estimator has another loss than the
            squared one, or it refuses the data.
        NotFittedError
            If the estimator is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        loss = getattr(estimator, "loss", "squared")
        if loss != "squared":
            raise ValueError(f"The path is drawn for loss='squared', not {loss!r}.")
        reader = type(estimator)(missing=estimator.missing)
        positions, rows, weights, _, _ = check_ordered(reader, X, y, sample_weight)
        if rows.shape[1] != 1:
            raise ValueError(
                f"One output can be drawn at a time; y has {rows.shape[1]}."
            )
        path = FusedLassoPath(channels(rows, weights), rows.shape)
        largest = path.alpha_max or 1.0
        # The median alpha at which a boundary vanishes is one of the noise.
        smallest = np.median(path.alphas) if len(path.alphas) > 2 else 0.0
        smallest = min(max(0.3 * smallest, 1e-6 * largest), 0.1 * largest)
        alphas = np.geomspace(smallest, largest, n_alphas)
        columns = np.unique(
            np.linspace(0, len(rows) - 1, min(len(rows), MOST_COLUMNS)).astype(int)
        )
        solutions = np.stack([path.at(alpha).u[columns, 0] for alpha in alphas])
        scores = {}
        if hasattr(estimator, "scores_"):
            squared = hasattr(estimator, "mse_path_")
            scores = {
                "cv_alphas": estimator.alphas_,
                "cv_scores": estimator.mse_path_ if squared else estimator.scores_,
                "score_name": "mean squared error" if squared else "score",
            }
        return cls(
            positions=positions[columns],
            alphas=alphas,
            solutions=solutions,
            alpha=estimator.alpha_,
            position_name=position_name,
            value_name=value_name,
            **scores,
        ).plot(axes, **kwargs)
