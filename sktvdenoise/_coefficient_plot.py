"""The display of coefficients that change, as a stream goes on."""

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sktvdenoise._plot_rows import BLACK, GREY, draw_line, literal, shorten_dates
from sktvdenoise._positions import check_covariates, check_weights
from sktvdenoise._regret_plot import MOST_ROWS, styles
from sktvdenoise.losses import LOSSES, Loss
from sktvdenoise.metrics import tv_oracle

__all__ = ["CoefficientPathDisplay"]

# As many as can be told apart in a picture, and quick for streams of any length.
MOST_STEPS = 200


class CoefficientPathDisplay:
    """Coefficients of adaptive regressions over time, and the best in hindsight.

    Each coefficient has a panel of its own, the intercept the last one. The sequences
    of the oracle share one budget of total variation.

    It is recommended to use
    :func:`~sktvdenoise.plotting.CoefficientPathDisplay.from_estimator` or
    :func:`~sktvdenoise.plotting.CoefficientPathDisplay.from_coefficients`. All
    parameters are stored as attributes.

    Parameters
    ----------
    positions : ndarray of shape (n_steps,)
        Positions of the rows that are shown: numbers or datetime64.

    coefficients : dict of str to ndarray of shape (n_steps, n_coefficients)
        Coefficients when these rows had been learned, by their names in the legend.

    names : sequence of n_coefficients str
        Names of the coefficients.

    oracle : ndarray of shape (n_steps, n_coefficients), default=None
        The best sequence in hindsight at these rows.

    tv_budget : float, default=None
        Its budget, for the legend.

    truth : ndarray of shape (n_steps, n_coefficients), default=None
        The true coefficients at these rows.

    position_name : str, default="row"
        Label of the axis of time, with its unit.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each coefficient drawn.

    figure_ : matplotlib Figure
        Figure containing them.

    coefficients_ : dict of str to list of matplotlib Line2D
        The lines of each estimator, one for each panel.

    oracle_, truth_ : list of matplotlib Line2D
        Empty where there is none.

    See Also
    --------
    sktvdenoise.metrics.tv_oracle : The oracle as numbers.
    RegretCurveDisplay : How far the predictions are behind it.

    Examples
    --------
    >>> from sktvdenoise import FLHRegressor
    >>> from sktvdenoise.datasets import make_drifting_regression
    >>> from sktvdenoise.plotting import CoefficientPathDisplay
    >>> X, y, *_ = make_drifting_regression(200, 2, random_state=0)
    >>> display = CoefficientPathDisplay.from_estimator(FLHRegressor(), X, y)
    >>> display.names
    ['x0', 'x1', 'intercept']
    """

    def __init__(
        self,
        *,
        positions,
        coefficients,
        names,
        oracle=None,
        tv_budget=None,
        truth=None,
        position_name="row",
    ):
        self.positions = positions
        self.coefficients = coefficients
        self.names = names
        self.oracle = oracle
        self.tv_budget = tv_budget
        self.truth = truth
        self.position_name = position_name

    def plot(
        self,
        axes=None,
        *,
        features=None,
        coefficients_kwargs=None,
        oracle_kwargs=None,
        truth_kwargs=None,
    ):
        """Draw a panel for each coefficient, one below the other.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Axes to draw on, one for each coefficient. None makes a new figure.

        features : sequence of str, default=None
            Names of the coefficients to draw. None draws all.

        coefficients_kwargs, oracle_kwargs, truth_kwargs : dict, default=None
            Keywords passed to matplotlib's ``plot``.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.CoefficientPathDisplay`
            The object itself.

        Raises
        ------
        ValueError
            If `axes` are fewer than the coefficients, or one of `features` is none.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        drawn = self._places(features)
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(
                nrows=len(drawn),
                sharex=True,
                figsize=(6.4, max(4.8, 1.6 * len(drawn))),
                layout="constrained",
            )
        axes = list(np.ravel(axes))[: len(drawn)]
        if len(axes) < len(drawn):
            raise ValueError(
                f"{len(drawn)} coefficients need as many axes, got {len(axes)}."
            )
        self.axes_, self.figure_ = axes, axes[0].figure

        def draw(values, kwargs, **style):
            return [
                draw_line(ax, self.positions, values[:, k], kwargs, **style)
                for ax, k in zip(axes, drawn)
            ]

        self.truth_, self.oracle_ = [], []
        if self.truth is not None:
            self.truth_ = draw(
                self.truth, truth_kwargs, label="truth", color=GREY, linewidth=3.0
            )
        self.coefficients_ = {
            name: draw(values, coefficients_kwargs, **style)
            for (name, values), style in zip(
                self.coefficients.items(), styles(self.coefficients)
            )
        }
        if self.oracle is not None:
            label = "oracle"
            if self.tv_budget is not None:
                label += f", TV ≤ {self.tv_budget:.4g}"
            self.oracle_ = draw(
                self.oracle,
                oracle_kwargs,
                label=label,
                color=BLACK,
                linestyle="dotted",
                linewidth=1.8,
            )
        for ax, k in zip(axes, drawn):
            ax.set_ylabel(literal(str(self.names[k])))
        n_lines = len(axes[0].get_legend_handles_labels()[0])
        axes[0].legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=min(n_lines, 4),
            frameon=False,
        )
        axes[-1].set_xlabel(self.position_name)
        shorten_dates(axes[-1], self.positions)
        return self

    def _places(self, features):
        names = [str(name) for name in self.names]
        if features is None:
            return list(range(len(names)))
        strange = [name for name in features if name not in names]
        if strange or not len(features):
            raise ValueError(f"features are some of {names}, got {list(features)!r}.")
        return [names.index(name) for name in features]

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        tv_budget=None,
        loss=None,
        sample_weight=None,
        truth=None,
        positions=None,
        axes=None,
        position_name="row",
        **kwargs,
    ):
        """Plot the coefficients of streaming estimators as they learn.

        Each is cloned and the clone learns the rows in their order. After each of 200
        blocks of them its coefficients are read. The estimators themselves are not
        changed.

        Parameters
        ----------
        estimator : estimator instance, or dict of str to estimator instance
            With ``partial_fit`` and ``coef_``, as :class:`~sktvdenoise.FLHRegressor` or
            scikit-learn's ``SGDRegressor``; classifiers of two classes, too. Of
            several, the keys are names in the legend.

        X : array-like of shape (n_samples, n_features)
            Covariates.

        y : array-like of shape (n_samples,)
            Labels, in order.

        tv_budget : float, default=None
            With a budget the oracle is drawn, too.

        loss : {"squared", "poisson", "logistic"} or Loss, default=None
            Of the oracle. None takes that of the first estimator.

        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors >= 0 of the rows' losses, also for the estimators. None means 1.

        truth : array-like of shape (n_samples, n_coefficients), default=None
            The true coefficients, if they are known; the intercept last.

        positions : array-like of shape (n_samples,), default=None
            Where rows are drawn on the axis of time. None counts them from 1.

        axes : sequence of matplotlib Axes, default=None
            As for `plot`.

        position_name : str, default="row"
            Label of the axis of time, with its unit.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.CoefficientPathDisplay`
            Object that stores computed values.

        Raises
        ------
        TypeError
            If an estimator has no ``partial_fit`` or no ``coef_``.
        ValueError
            If an estimator refuses the data or has several outputs, if there is no
            estimator, or as `from_coefficients`.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        if not isinstance(estimator, dict):
            estimator = {type(estimator).__name__: estimator}
        if not estimator:
            raise ValueError("There are no estimators to draw.")
        for model in estimator.values():
            if not hasattr(model, "partial_fit"):
                raise TypeError(f"{type(model).__name__} has no partial_fit.")
        check_consistent_length(X, y)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, len(y))
        rows = _steps(len(y), MOST_STEPS)
        found = {
            name: _learn(clone(model), X, y, weights, rows)
            for name, model in estimator.items()
        }
        first = next(iter(estimator.values()))
        if is_classifier(first):
            y = np.asarray(y) == np.unique(y)[-1]
        own = getattr(first, "loss", None)
        if loss is None and is_classifier(first):
            loss = "logistic"
        elif loss is None:
            loss = own if isinstance(own, Loss) or own in LOSSES else "squared"
        fit_intercept = any(
            getattr(model, "fit_intercept", True) for model in estimator.values()
        )
        if not fit_intercept:
            found = {name: values[:, :-1] for name, values in found.items()}
        return cls._from_steps(
            X,
            y,
            found,
            rows,
            tv_budget=tv_budget,
            loss=loss,
            sample_weight=weights,
            truth=truth,
            fit_intercept=fit_intercept,
            positions=positions,
            position_name=position_name,
        ).plot(axes, **kwargs)

    @classmethod
    def from_coefficients(
        cls,
        X,
        y,
        coefficients,
        *,
        tv_budget=None,
        loss="squared",
        sample_weight=None,
        truth=None,
        fit_intercept=True,
        positions=None,
        axes=None,
        position_name="row",
        **kwargs,
    ):
        """Plot coefficients, however they were found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Covariates.

        y : array-like of shape (n_samples,)
            Labels, in order.

        coefficients : array-like of shape (n_samples, n_coefficients), or dict of such
            A row for each row of `X`; the intercept last. Of several, the keys are
            names in the legend.

        tv_budget : float, default=None
            With a budget the oracle is drawn, too.

        loss : {"squared", "poisson", "logistic"} or Loss, default="squared"
            Of the oracle, see `sktvdenoise.metrics.tv_oracle`.

        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors >= 0 of the rows' losses in the oracle. None means 1.

        truth : array-like of shape (n_samples, n_coefficients), default=None
            The true coefficients, if they are known.

        fit_intercept : bool, default=True
            Whether the last coefficient is an intercept: then `n_coefficients` is
            `n_features` + 1.

        positions : array-like of shape (n_samples,), default=None
            Where rows are drawn on the axis of time: numbers or datetime64. None counts
            them from 1.

        axes : sequence of matplotlib Axes, default=None
            As for `plot`.

        position_name : str, default="row"
            Label of the axis of time, with its unit.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.CoefficientPathDisplay`
            Object that stores computed values; at most 2000 rows are shown.

        Raises
        ------
        ValueError
            If shapes don't fit together, if there are no coefficients, or as by
            `sktvdenoise.metrics.tv_oracle`.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_coefficients")
        if not isinstance(coefficients, dict):
            coefficients = {"coefficients": coefficients}
        if not coefficients:
            raise ValueError("There are no coefficients to draw.")
        check_consistent_length(X, y)
        rows = _steps(len(y), MOST_ROWS)
        shape = (len(y), np.shape(X)[1] + bool(fit_intercept))
        found = {
            name: _matrix(values, shape, f"The coefficients {name!r}")[rows]
            for name, values in coefficients.items()
        }
        return cls._from_steps(
            X,
            y,
            found,
            rows,
            tv_budget=tv_budget,
            loss=loss,
            sample_weight=sample_weight,
            truth=truth,
            fit_intercept=fit_intercept,
            positions=positions,
            position_name=position_name,
        ).plot(axes, **kwargs)

    @classmethod
    def _from_steps(
        cls,
        X,
        y,
        coefficients,
        rows,
        *,
        tv_budget,
        loss,
        sample_weight,
        truth,
        fit_intercept,
        positions,
        position_name,
    ):
        """A display of coefficients at `rows`, with the oracle of all rows there."""
        names = [str(name) for name in getattr(X, "columns", [])]
        X = check_covariates(X, len(y))
        names = names or [f"x{i}" for i in range(X.shape[1])]
        if fit_intercept:
            X = np.column_stack([X, np.ones(len(X))])
            names.append("intercept")
        at = np.arange(1, len(X) + 1) if positions is None else np.asarray(positions)
        if at.shape != (len(X),):
            raise ValueError(
                f"positions must have the shape ({len(X)},), got {at.shape}."
            )
        if truth is not None:
            truth = _matrix(truth, X.shape, "truth")[rows]
        oracle = None
        if tv_budget is not None:
            oracle = tv_oracle(
                y, tv_budget, X=X, loss=loss, sample_weight=sample_weight
            ).comparator[rows]
        return cls(
            positions=at[rows],
            coefficients=coefficients,
            names=names,
            oracle=oracle,
            tv_budget=tv_budget,
            truth=truth,
            position_name=position_name,
        )


def _steps(n, most):
    """Indices of the last rows of at most so many blocks of equal sizes."""
    return np.unique(np.linspace(0, n, min(n, most) + 1).astype(int))[1:] - 1


def _learn(model, X, y, weights, rows):
    """Coefficients, with the intercept, when each of `rows` has been learned."""
    more = {"classes": np.unique(y)} if is_classifier(model) else {}
    found, start = [], 0
    for stop in rows + 1:
        at = slice(start, stop)
        if weights is not None:
            more["sample_weight"] = weights[at]
        model.partial_fit(_safe_indexing(X, at), _safe_indexing(y, at), **more)
        if not hasattr(model, "coef_"):
            raise TypeError(f"{type(model).__name__} has no coef_.")
        coef = np.asarray(model.coef_)
        if coef.ndim == 2 and len(coef) != 1:
            raise ValueError(
                f"One output can be drawn at a time; {type(model).__name__} has "
                f"{len(coef)}."
            )
        found.append(np.append(coef.ravel(), model.intercept_))
        start = stop
    return np.array(found)


def _matrix(values, shape, name):
    values = np.asarray(values, dtype=float)
    if values.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {values.shape}.")
    return values
