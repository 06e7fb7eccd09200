"""The display of a solution path: every solution as a row of a picture."""

from numbers import Integral

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._plot_rows import BLUE, VERMILION
from sktvdenoise._positions import check_ordered
from sktvdenoise._signal import Shrinkage, channels
from sktvdenoise.offline import FusedLasso
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
        Positions in ascending order. A value holds from its position to the next.

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
                width_ratios=[2, 1][: 1 + scored],
                figsize=(8.0, 4.8) if scored else None,
            )
        axes = list(np.ravel(axes))
        if len(axes) != 1 + scored:
            raise ValueError(
                f"axes must be {'two Axes, of picture and curve' if scored else 'one'}"
                f", got {len(axes)}."
            )
        picture = axes[0]
        self.image_ = picture.pcolormesh(
            _edges(self.positions),
            _rims(self.alphas),
            self.solutions,
            **{"cmap": "viridis", "rasterized": True} | kwargs,
        )
        picture.set(yscale="log", xlabel=self.position_name, ylabel="alpha")
        picture.figure.colorbar(self.image_, ax=picture, label=self.value_name)
        self.curve_ = self._plot_scores(axes[1]) if scored else None
        low, high = self.alphas[0], self.alphas[-1]
        if self.alpha is not None:
            name = f"alpha = {self.alpha:.3g}"
            if 0 < self.alpha < np.inf:
                low, high = min(low, self.alpha), max(high, self.alpha)
                for ax in axes:
                    line = ax.axhline(
                        self.alpha, color=VERMILION, linestyle="dashed", label=name
                    )
                picture.legend(handles=[line], loc="upper right")
            else:  # a logarithmic axis has no place for it
                side = "below" if self.alpha == 0 else "above"
                picture.set_title(f"{name}, {side} the picture", fontsize="medium")
        if low == high:
            low, high = 0.5 * low, 2.0 * high
        for ax in axes:
            ax.set_ylim(low, high)
        self.axes_ = axes
        self.figure_ = picture.figure
        return self

    def _plot_scores(self, ax):
        """The mean scores, with their standard errors where there are several folds."""
        mean = self.cv_scores.mean(axis=1)
        n_folds = self.cv_scores.shape[1]
        shown = self.cv_alphas > 0
        at, mean = self.cv_alphas[shown], mean[shown]
        marker = "o" if len(at) == 1 else None
        (curve,) = ax.plot(mean, at, color=BLUE, marker=marker, label="mean")
        if n_folds > 1:
            error = self.cv_scores.std(axis=1, ddof=1)[shown] / np.sqrt(n_folds)
            ax.fill_betweenx(
                at,
                mean - error,
                mean + error,
                color=BLUE,
                alpha=0.2,
                linewidth=0,
                label="± 1 std. error",
            )
        ax.set(yscale="log")
        ax.set_xlabel(self.score_name, labelpad=12.0)  # below the power of ten
        ax.locator_params(axis="x", nbins=3)
        ax.ticklabel_format(axis="x", scilimits=(-2, 3), useMathText=True)
        ax.legend(fontsize="small")
        return curve

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
        score_name=None,
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
            Rows of the picture, at least 2: penalties in geometric steps from one
            that changes little to the least that gives a constant, or to the
            estimator's where that lies outside. They have the estimator's
            `sparsity` and `bound`.

        axes : sequence of matplotlib Axes, default=None
            As for `plot`.

        position_name, value_name, score_name : str, default="position", "value", None
            Labels of the axes, with their units. None is "mean squared error", or
            "score" of an estimator with a `scoring`.

        **kwargs : dict
            Passed to matplotlib's ``pcolormesh``.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.FusedLassoPathDisplay`
            Object that stores computed values. At most 2000 columns are shown.

        Raises
        ------
        ValueError
            If `y` has several outputs or a single position, the estimator has
            another loss than the squared one, or it refuses the data; if `axes` or
            `n_alphas` are not as many as needed.
        TypeError
            If the estimator is another one.
        NotFittedError
            If the estimator is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        if not isinstance(estimator, FusedLasso):
            raise TypeError(
                "estimator must be a FusedLasso or a FusedLassoCV, got "
                f"{type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        if not isinstance(n_alphas, Integral) or n_alphas < 2:
            raise ValueError(f"n_alphas must be an integer >= 2, got {n_alphas!r}.")
        loss = getattr(estimator, "loss", "squared")
        if loss != "squared":
            raise ValueError(f"The path is drawn for loss='squared', not {loss!r}.")
        reader = type(estimator)(missing=estimator.missing)
        positions, rows, weights, _, _ = check_ordered(reader, X, y, sample_weight)
        if rows.shape[1] != 1:
            raise ValueError(
                f"One output can be drawn at a time; y has {rows.shape[1]}. Fit and "
                "draw the columns one by one."
            )
        if positions[0] == positions[-1]:
            raise ValueError("A picture needs rows at two positions or more.")
        path = FusedLassoPath(channels(rows, weights), rows.shape)
        largest = path.alpha_max or 1.0
        # The median alpha at which a boundary vanishes is one of the noise.
        smallest = np.median(path.alphas) if len(path.alphas) > 2 else 0.0
        smallest = min(max(0.3 * smallest, 1e-6 * largest), 0.1 * largest)
        chosen = estimator.alpha_
        if 0 < chosen < np.inf:
            smallest, largest = min(smallest, chosen), max(largest, chosen)
        alphas = np.geomspace(smallest, largest, n_alphas)
        # As in predict, the last of several equal positions counts.
        columns = np.flatnonzero(np.diff(positions, append=np.inf))
        some = np.linspace(0, len(columns) - 1, min(len(columns), MOST_COLUMNS))
        columns = columns[some.astype(int)]
        shrink = Shrinkage(estimator.sparsity, estimator.bound)
        solutions = np.stack([path.at(alpha, shrink).u[columns, 0] for alpha in alphas])
        scores = {}
        if hasattr(estimator, "scores_"):
            squared = hasattr(estimator, "mse_path_")
            scores = {
                "cv_alphas": estimator.alphas_,
                "cv_scores": estimator.mse_path_ if squared else estimator.scores_,
                "score_name": score_name
                or ("mean squared error" if squared else "score"),
            }
        return cls(
            positions=positions[columns],
            alphas=alphas,
            solutions=solutions,
            alpha=chosen,
            position_name=position_name,
            value_name=value_name,
            **scores,
        ).plot(axes, **kwargs)


def _edges(positions):
    """Columns that begin at their positions, the last as wide as the one before."""
    width = positions[-1] - positions[-2] if len(positions) > 1 else 1.0
    return np.append(positions, positions[-1] + width)


def _rims(alphas):
    """Limits of the rows of a logarithmic axis, halfway between the alphas."""
    ratio = np.sqrt(alphas[1:] / alphas[:-1])
    if not len(ratio):
        ratio = np.array([2.0])
    return np.append(alphas[0] / ratio[0], alphas * np.append(ratio, ratio[-1]))
