"""The display of regret, against the budget of variation and over time."""

from dataclasses import replace

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sktvdenoise._plot_rows import (
    BLACK,
    CURVES,
    GREY,
    column,
    draw_line,
    literal,
    refuse_unordered,
    shorten_dates,
)
from sktvdenoise._positions import check_labels, check_number, check_weights
from sktvdenoise._progressive import check_count, labelled
from sktvdenoise._regret_curve import (
    RegretCurve,
    check_prediction,
    check_truth,
    losses,
)
from sktvdenoise.metrics import tv_oracle
from sktvdenoise.model_selection import progressive_val_predict

__all__ = ["RegretCurveDisplay"]

STYLES = ("solid", "dashed", "dashdot", (0, (6, 1, 1, 1, 1, 1)))
MOST_ROWS = 2000


class RegretCurveDisplay:
    """Regret against every budget of total variation, and over time against one.

    It is recommended to use
    :func:`~sktvdenoise.plotting.RegretCurveDisplay.from_estimator` or
    :func:`~sktvdenoise.plotting.RegretCurveDisplay.from_predictions`. All
    parameters are stored as attributes.

    Parameters
    ----------
    curves : dict of str to RegretCurve
        The curves by their names in the legend, of the same labels.

    bound : float, default=None
        Largest absolute label `B`, for the rate; None draws no rate.

    tv_budget : float, default=None
        The budget of the regret over time, marked among the budgets.

    positions : ndarray of shape (n_rows,), default=None
        Positions of the rows of `regrets`: numbers or datetime64.

    regrets : dict of str to ndarray of shape (n_rows,), default=None
        The regret so far at each position: the losses up to there less those of the
        one sequence within `tv_budget` that is best over the whole stream, up to
        there. None draws only the curves.

    unit : str, default=None
        Unit of the labels, for the names of the axes.

    position_name : str, default="row"
        Label of the axis of time, with its unit.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The axes of the curves and, with `regrets`, those of the regret over time.

    figure_ : matplotlib Figure
        Figure containing them.

    curves_, regrets_ : dict of str to matplotlib Line2D
        The lines in both; the second is empty without `regrets`.

    rate_, tv_budget_ : matplotlib Line2D or None
        The rate and the vertical line at the budget.

    See Also
    --------
    sktvdenoise.metrics.regret_curve : The curve as numbers.

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.plotting import RegretCurveDisplay
    >>> X, y = load_nile(return_X_y=True)
    >>> model = OnlineTVDenoiser()
    >>> display = RegretCurveDisplay.from_estimator(model, X, y, tv_budget=250)
    >>> list(display.curves)
    ['OnlineTVDenoiser']
    """

    def __init__(
        self,
        *,
        curves,
        bound=None,
        tv_budget=None,
        positions=None,
        regrets=None,
        unit=None,
        position_name="row",
    ):
        self.curves = curves
        self.bound = bound
        self.tv_budget = tv_budget
        self.positions = positions
        self.regrets = regrets
        self.unit = unit
        self.position_name = position_name

    def plot(self, axes=None, *, curves_kwargs=None, rate_kwargs=None):
        """Draw regret against the budget and, at its right, over time.

        Budgets are on a logarithmic scale that becomes linear where the oracle is
        within 1 % of the best constant, so that 0 is shown. Regret is on a
        logarithmic scale if it is positive everywhere, otherwise on one that is
        linear near 0.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, or one without `regrets`, default=None
            Axes to draw on. None makes a new figure.

        curves_kwargs, rate_kwargs : dict, default=None
            Keywords passed to matplotlib's ``plot``, for the lines of the estimators
            in both axes and for the rate.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.RegretCurveDisplay`
            The object itself.

        Raises
        ------
        ValueError
            If `axes` are fewer than needed.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        n_views = 1 if self.regrets is None else 2
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(
                ncols=n_views, figsize=(6.4 * n_views, 4.8), layout="constrained"
            )
        axes = list(np.ravel(axes))[:n_views]
        if len(axes) < n_views:
            raise ValueError("Regret over time needs a second pair of axes, got one.")
        self.axes_, self.figure_ = axes, axes[0].figure
        self._plot_curves(axes[0], curves_kwargs, rate_kwargs)
        self.regrets_ = {}
        if self.regrets is not None:
            self._plot_regrets(axes[1], curves_kwargs)
        return self

    def _plot_curves(self, ax, curves_kwargs, rate_kwargs):
        curves = list(self.curves.values())
        knee, budgets = drawn_budgets(curves[0], self.tv_budget)
        self.curves_ = {
            name: draw_line(ax, budgets, curve(budgets), curves_kwargs, **style)
            for (name, curve), style in zip(self.curves.items(), styles(self.curves))
        }
        self.rate_ = self.tv_budget_ = None
        if self.bound is not None:
            self.rate_ = draw_line(
                ax,
                budgets[1:],
                curves[0].rate(budgets[1:], self.bound),
                rate_kwargs,
                label="rate $n^{1/3} C^{2/3} B^{4/3}$",
                color=BLACK,
                linestyle="dotted",
            )
        if self.tv_budget is not None:
            self.tv_budget_ = ax.axvline(
                self.tv_budget,
                label=f"TV ≤ {self.tv_budget:g}",
                color=GREY,
                linewidth=1.0,
                zorder=1,
            )
        if knee > 0:
            ax.set_xscale("symlog", linthresh=_power_of_ten(knee))
        ax.set_xlim(budgets[0], budgets[-1])
        static = np.array([curve.static for curve in curves])
        whole = np.array([curve.loss for curve in curves])
        linear = max(0.01 * whole.min(), 1e-4 * np.abs([static, whole]).max())
        if static.min() > 1e-9 * whole.max():
            ax.set_yscale("log")
        elif linear > 0:
            ax.set_yscale("symlog", linthresh=_power_of_ten(linear))
            ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        first, second = self._units()
        ax.set(xlabel=f"budget of total variation C{first}", ylabel=f"regret{second}")
        ax.legend()

    def _plot_regrets(self, ax, curves_kwargs):
        marker = "o" if len(self.positions) == 1 else "none"
        self.regrets_ = {
            name: draw_line(
                ax, self.positions, regret, curves_kwargs, marker=marker, **style
            )
            for (name, regret), style in zip(self.regrets.items(), styles(self.regrets))
        }
        ax.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
        ylabel = f"regret so far against TV ≤ {self.tv_budget:g}{self._units()[1]}"
        ax.set(xlabel=self.position_name, ylabel=ylabel)
        ax.legend()
        shorten_dates(ax, self.positions)

    def _units(self):
        """The unit and its square as they follow the name of an axis."""
        if not self.unit:
            return "", ""
        unit = literal(self.unit)
        return f" ({unit})", f" ({unit}²)" if unit.isalpha() else f" ({unit})²"

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        tv_budget=None,
        bound=None,
        sample_weight=None,
        warmup_size=0,
        positions=None,
        axes=None,
        unit=None,
        position_name="row",
        **kwargs,
    ):
        """Plot the regret of streaming estimators.

        Each is cloned and the clone goes through the rows in their order: what counts
        are its predictions, made before the labels were seen, as by
        :func:`~sktvdenoise.model_selection.progressive_val_predict`. The estimators
        themselves are not changed.

        Parameters
        ----------
        estimator : estimator instance, or dict of str to estimator instance
            With ``partial_fit``, as :class:`~sktvdenoise.OnlineTVDenoiser`, or
            pipelines that end in such. Of several, the keys are names in the legend.

        X : array-like of shape (n_samples,) or (n_samples, n_features)
            Rows, in order.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels. Several outputs share a budget. NaN passes if all estimators have
            ``missing="skip"``: these rows are left out.

        tv_budget : float, default=None
            With a budget the regret over time is drawn, too.

        bound : float > 0, default=None
            Largest absolute label, for the rate. None takes it from the labels.

        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors >= 0 of the rows' losses, also for the estimators. None means 1.

        warmup_size : int >= 0, default=0
            Number of first rows that are learned and left out of the picture.

        positions : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Where rows are drawn on the axis of time. None counts them from 1.

        axes : sequence of matplotlib Axes, default=None
            As for `plot`.

        unit : str, default=None
            Unit of the labels.

        position_name : str, default="row"
            Label of the axis of time, with its unit.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.RegretCurveDisplay`
            Object that stores computed values.

        Raises
        ------
        ValueError
            If an estimator refuses the data, or as `from_predictions`.
        TypeError
            If an estimator can't learn row by row.
        NotFittedError
            If an estimator can't predict before it has learned something:
            `warmup_size` must then be positive.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        if not isinstance(estimator, dict):
            estimator = {type(estimator).__name__: estimator}
        predictions = {
            name: progressive_val_predict(
                model, X, y, sample_weight=sample_weight, warmup_size=warmup_size
            )
            for name, model in estimator.items()
        }
        labels = check_labels(y, allow_nan=True)
        check_count("warmup_size", warmup_size, below=len(labels))
        kept = np.flatnonzero(labelled(labels[warmup_size:]))
        rows = kept + warmup_size
        if not len(rows):
            raise ValueError("Input y contains NaN in every row: nothing to draw.")
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(labels))[rows]
        where = np.arange(1, len(labels) + 1) if positions is None else positions
        positions = _checked_positions(where, len(labels))[rows]
        predictions = {name: values[kept] for name, values in predictions.items()}
        y = labels[rows]
        return cls.from_predictions(
            y,
            predictions,
            tv_budget=tv_budget,
            bound=bound,
            sample_weight=sample_weight,
            positions=positions,
            axes=axes,
            unit=unit,
            position_name=position_name,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_pred,
        *,
        tv_budget=None,
        bound=None,
        sample_weight=None,
        positions=None,
        axes=None,
        unit=None,
        position_name="row",
        **kwargs,
    ):
        """Plot the regret of predictions, however they were made.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels, in order. Several outputs share a budget.

        y_pred : array-like of that shape, or dict of str to such
            Predictions, each made before its label was seen. Of several, the keys are
            names in the legend.

        tv_budget : float, default=None
            With a budget the regret over time is drawn, too.

        bound : float > 0, default=None
            Largest absolute label, for the rate. None takes it from the labels.

        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors >= 0 of the rows' losses; None means 1. A zero leaves a row out,
            as the first, of which nothing could be known.

        positions : array-like of shape (n_samples,) or (n_samples, 1), default=None
            Where rows are drawn on the axis of time: numbers or datetime64. None counts
            them from 1.

        axes : sequence of matplotlib Axes, default=None
            As for `plot`.

        unit : str, default=None
            Unit of the labels.

        position_name : str, default="row"
            Label of the axis of time, with its unit.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.RegretCurveDisplay`
            Object that stores computed values. Over time at most 2000 rows are shown.

        Raises
        ------
        ValueError
            If the shapes differ, a value isn't finite, or there are no predictions;
            if `tv_budget` is negative or not finite, or `bound` not positive.
        ImportError
            If matplotlib is not installed.

        Notes
        -----
        The regret over time at row t is
        :math:`\\sum_{s \\le t} w_s [(y_s - x_s)^2 - (y_s - u_s)^2]` with one sequence
        :math:`u`, the oracle of the budget over the whole stream: it ends at the value
        of the curve. It isn't the regret of the first t rows, whose oracle may spend
        the whole budget on them; that is at least as large.
        """
        check_matplotlib_support(f"{cls.__name__}.from_predictions")
        y, weights = check_truth(y_true, sample_weight)
        if not isinstance(y_pred, dict):
            y_pred = {"prediction": y_pred}
        if not y_pred:
            raise ValueError("There are no predictions to draw.")
        lost = {}
        for name, values in y_pred.items():
            label = "y_pred" if len(y_pred) == 1 else f"y_pred[{name!r}]"
            lost[name] = losses(y, check_prediction(values, y, weights, label), weights)
        if bound is None:
            counted = y if weights is None else y[weights > 0]
            bound = float(np.abs(counted).max()) or None
        else:
            check_number("bound", bound, positive=True, finite=True)
        at = np.arange(1, len(y) + 1) if positions is None else positions
        at = _checked_positions(at, len(y))
        display = cls(
            curves=_curves(y, weights, lost),
            bound=bound,
            tv_budget=tv_budget,
            unit=unit,
            position_name=position_name,
        )
        if tv_budget is not None:
            oracle = tv_oracle(y, tv_budget, sample_weight=weights).comparator
            best = losses(y, oracle, weights)
            rows = np.linspace(0, len(y) - 1, min(len(y), MOST_ROWS)).astype(int)
            display.positions = at[rows]
            display.regrets = {
                name: np.cumsum(loss - best)[rows] for name, loss in lost.items()
            }
        return display.plot(axes, **kwargs)


def _curves(y, weights, lost):
    """Curves of several losses of rows: one path, for they differ by a constant."""
    curve = RegretCurve.of(y, weights, 0.0)
    return {name: replace(curve, loss=float(v.sum())) for name, v in lost.items()}


def _checked_positions(positions, n_samples):
    at = column(positions, "positions")
    if len(at) != n_samples:
        raise ValueError(
            f"positions must have the shape ({n_samples},), got {at.shape}."
        )
    refuse_unordered(at, "positions")
    return at


def styles(names):
    """Colours and dashes that differ, and labels to the letter."""
    for i, name in enumerate(names):
        yield {
            "label": literal(str(name)),
            "color": CURVES[i % len(CURVES)],
            "linestyle": STYLES[(i // len(CURVES) + i) % len(STYLES)],
        }


def _power_of_ten(value):
    """The next one below, so that the ticks nearest to 0 are a decade from it."""
    return 10.0 ** np.floor(np.log10(value))


def drawn_budgets(curve, tv_budget=None):
    """Where the scale of budgets stops being linear, and budgets to draw at.

    The loss of the oracle is convex in the budget and begins with the slope
    -2 alpha; so up to the knee, where the tangent has fallen by 1 %, it is within
    1 % of that of the best constant.
    """
    last = max(curve.tv_budget[-1], tv_budget or 0.0)
    if curve.alphas[0] == 0:  # constant labels
        return 0.0, np.linspace(0.0, last or 1.0, 100)
    knee = 0.01 * curve.oracle_loss[0] / (2 * curve.alphas[0])
    budgets = np.geomspace(knee, last, 400)
    budgets[-1] = last
    return knee, np.concatenate([np.linspace(0, knee, 20, endpoint=False), budgets])
