"""Displays: what was observed, what was made of it, and the best in hindsight."""

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._coefficient_plot import CoefficientPathDisplay
from sktvdenoise._experts_display import ExpertWeightsDisplay
from sktvdenoise._path_plot import FusedLassoPathDisplay
from sktvdenoise._plot_rows import (
    BLUE,
    GREY,
    VERMILION,
    draw_breakpoints,
    draw_line,
    in_order,
    name_of,
    one_output,
    shorten_dates,
)
from sktvdenoise._regret_plot import RegretCurveDisplay
from sktvdenoise.metrics import tv_oracle

__all__ = [
    "CoefficientPathDisplay",
    "DenoisingDisplay",
    "ExpertWeightsDisplay",
    "FusedLassoPathDisplay",
    "RegretCurveDisplay",
]


class DenoisingDisplay:
    """Observations, an estimate of their level, its breakpoints and the oracle.

    It is recommended to use
    :func:`~sktvdenoise.plotting.DenoisingDisplay.from_estimator` or
    :func:`~sktvdenoise.plotting.DenoisingDisplay.from_predictions`. All
    parameters are stored as attributes.

    Parameters
    ----------
    positions : ndarray of shape (n_samples,)
        Positions in ascending order: numbers or datetime64.

    observations : ndarray of shape (n_samples,)
        Labels; NaN where one is missing.

    estimate : ndarray of shape (n_samples,)
        Predictions or a fitted curve.

    oracle : ndarray of shape (n_samples,), default=None
        The best sequence in hindsight under a budget of total variation.

    breakpoints : ndarray of int, default=None
        Index of the first row of each new piece.

    estimate_name : str, default="estimate"
        Name of the estimate in the legend.

    oracle_name : str, default="oracle"
        Name of the oracle in the legend.

    position_name : str, default="position"
        Label of the x axis, with its unit.

    value_name : str, default="value"
        Label of the y axis, with its unit.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.

    figure_ : matplotlib Figure
        Figure containing it.

    observations_, estimate_ : matplotlib Line2D
        The points and the curve.

    oracle_, breakpoints_ : matplotlib Line2D or None
        The oracle and vertical lines at the breakpoints, if there are any.

    See Also
    --------
    sktvdenoise.metrics.tv_oracle : The best sequence under a budget.

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.plotting import DenoisingDisplay
    >>> X, y = load_nile(return_X_y=True)
    >>> model = OnlineTVDenoiser()
    >>> display = DenoisingDisplay.from_estimator(model, X, y, tv_budget=250)
    >>> display.oracle_name
    'oracle with TV ≤ 250'
    """

    def __init__(
        self,
        *,
        positions,
        observations,
        estimate,
        oracle=None,
        breakpoints=None,
        estimate_name="estimate",
        oracle_name="oracle",
        position_name="position",
        value_name="value",
    ):
        self.positions = positions
        self.observations = observations
        self.estimate = estimate
        self.oracle = oracle
        self.breakpoints = breakpoints
        self.estimate_name = estimate_name
        self.oracle_name = oracle_name
        self.position_name = position_name
        self.value_name = value_name

    def plot(
        self,
        ax=None,
        *,
        observations_kwargs=None,
        estimate_kwargs=None,
        oracle_kwargs=None,
        breakpoints_kwargs=None,
    ):
        """Draw the observations as points and the curves over them.

        A curve that repeats its values from row to row is drawn as steps: it
        jumps in the first row of a piece.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a new figure.

        observations_kwargs, estimate_kwargs, oracle_kwargs, breakpoints_kwargs : \
                dict, default=None
            Keywords passed to matplotlib's ``plot``.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.DenoisingDisplay`
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")

        # Where rows are dense, points stay as large as a legend can show them, and
        # the curve becomes thinner so that it doesn't hide them.
        shrink = 60 / np.sqrt(len(self.positions))
        self.observations_ = draw_line(
            ax,
            self.positions,
            self.observations,
            observations_kwargs,
            label="observed",
            color=GREY,
            linestyle="none",
            marker="o",
            markersize=np.clip(shrink, 2, 4),
            markeredgewidth=0,
            zorder=1,
        )
        self.estimate_ = draw_line(
            ax,
            self.positions,
            self.estimate,
            estimate_kwargs,
            label=self.estimate_name,
            color=BLUE,
            linewidth=np.clip(shrink, 0.7, 1.5),
            drawstyle=_drawstyle(self.estimate),
            zorder=2.5,
        )
        self.oracle_ = None
        if self.oracle is not None:
            self.oracle_ = draw_line(
                ax,
                self.positions,
                self.oracle,
                oracle_kwargs,
                label=self.oracle_name,
                color=VERMILION,
                linewidth=2.0,
                drawstyle="steps-post",
                zorder=2,
            )
        self.breakpoints_ = None
        if self.breakpoints is not None:
            self.breakpoints_ = draw_breakpoints(
                ax, self.positions[self.breakpoints], breakpoints_kwargs
            )
        ax.set(xlabel=self.position_name, ylabel=self.value_name)
        # The search for the best corner looks at every point.
        ax.legend(loc="best" if len(self.positions) <= 10_000 else "upper right")
        shorten_dates(ax, self.positions)

        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        tv_budget=None,
        ax=None,
        estimate_name=None,
        position_name=None,
        value_name=None,
        **kwargs,
    ):
        """Plot what an estimator makes of labels.

        A streaming estimator, one with ``partial_fit_predict``, is cloned and
        the clone goes through the rows in order of position: drawn is its
        prediction for each row, made before the label was seen, without the
        first, which knows nothing yet. Of any other estimator, which must be
        fitted, ``predict(X)`` is drawn. The estimator itself is not changed. Its
        ``breakpoints_``, or those of the clone, are drawn if there are any.

        Parameters
        ----------
        estimator : estimator instance
            :class:`~sktvdenoise.OnlineTVDenoiser`,
            :class:`~sktvdenoise.FusedLasso` or another regressor on positions.

        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order.

        y : array-like of shape (n_samples,)
            Labels; NaN where one is missing, if the estimator allows it.

        tv_budget : float, default=None
            With a budget the oracle is drawn, too: the sequence with the least
            squared loss among those whose total variation is at most this.

        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a new figure.

        estimate_name : str, default=None
            Name in the legend. None describes what is drawn.

        position_name, value_name : str, default=None
            Labels of the axes, with their units. None takes the names of a
            pandas `X` and `y`, if there are any.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.DenoisingDisplay`
            Object that stores computed values.

        Raises
        ------
        ValueError
            If `X` has more than one column, `y` more than one output, or the
            estimator refuses them.
        NotFittedError
            If an estimator without ``partial_fit_predict`` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        positions, observations, order = in_order(X, y)
        X_sorted = _safe_indexing(X, order)
        if hasattr(estimator, "partial_fit_predict"):
            estimator = clone(estimator)
            estimate = np.array(estimator.partial_fit_predict(X_sorted, observations))
            estimate[0] = np.nan
            default_name = "one-step prediction"
            breakpoints = getattr(estimator, "breakpoints_", None)
        else:
            check_is_fitted(estimator)
            estimate = estimator.predict(X_sorted)
            default_name = "fitted curve"
            breakpoints = getattr(estimator, "breakpoints_", None)
            if breakpoints is not None:
                # They count the rows of fit; look up where these are drawn.
                places = np.searchsorted(positions, estimator.positions_[breakpoints])
                breakpoints = places[(places > 0) & (places < len(positions))]
        return cls._with_oracle(
            tv_budget,
            positions=positions,
            observations=observations,
            estimate=estimate,
            breakpoints=breakpoints,
            estimate_name=estimate_name or default_name,
            position_name=position_name or name_of(X, "position"),
            value_name=value_name or name_of(y, "value"),
        ).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_pred,
        *,
        X=None,
        tv_budget=None,
        breakpoints=None,
        ax=None,
        estimate_name="prediction",
        position_name=None,
        value_name=None,
        **kwargs,
    ):
        """Plot predictions, however they were made, over the labels.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels; NaN where one is missing.

        y_pred : array-like of shape (n_samples,)
            Predictions.

        X : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Positions in any order: numbers or datetime64. None counts rows.

        tv_budget : float, default=None
            With a budget the oracle is drawn, too: the sequence with the least
            squared loss among those whose total variation is at most this.

        breakpoints : array-like of int, default=None
            First row of each new piece, counted in order of position.

        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a new figure.

        estimate_name : str, default="prediction"
            Name in the legend.

        position_name, value_name : str, default=None
            Labels of the axes, with their units. None takes the names of a
            pandas `X` and `y_true`, if there are any.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.DenoisingDisplay`
            Object that stores computed values.

        Raises
        ------
        ValueError
            If the numbers of rows differ, or there is more than one output.
        TypeError
            If `X` holds strings.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_predictions")
        check_consistent_length(y_true, y_pred, X)
        rows = np.arange(len(y_true)) if X is None else X
        positions, observations, order = in_order(rows, y_true)
        return cls._with_oracle(
            tv_budget,
            positions=positions,
            observations=observations,
            estimate=one_output(y_pred, "y_pred")[order],
            breakpoints=breakpoints,
            estimate_name=estimate_name,
            position_name=position_name or name_of(X, "position"),
            value_name=value_name or name_of(y_true, "value"),
        ).plot(ax, **kwargs)

    @classmethod
    def _with_oracle(cls, tv_budget, *, observations, **computed):
        if tv_budget is not None:
            computed["oracle"] = _oracle(observations, tv_budget)
            computed["oracle_name"] = f"oracle with TV ≤ {tv_budget:g}"
        return cls(observations=observations, **computed)


def _oracle(y, tv_budget):
    """The oracle of the labels that are there, held over the missing ones."""
    seen = ~np.isnan(y)
    comparator = tv_oracle(y[seen], tv_budget).comparator
    # The index of the last seen label at or before each row; 0 before the first.
    return comparator[np.maximum(np.cumsum(seen) - 1, 0)]


def _drawstyle(values):
    repeats = np.count_nonzero(np.diff(values) == 0)
    return "steps-post" if 2 * repeats > len(values) else "default"
