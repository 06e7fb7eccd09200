"""A display of what the experts of a stream believed as it went on."""

import numpy as np
from sklearn.base import clone
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sktvdenoise._plot_rows import (
    VERMILION,
    draw_breakpoints,
    draw_line,
    in_order,
    name_of,
)

# Rows after which the weights are looked at, at most: as many as can be told apart in
# a picture, and quick to compute for streams of any length.
_MOST_STEPS = 200
_VISIBLE = 0.01  # smallest weight


class ExpertWeightsDisplay:
    """For how long has the level stood? Weights of the experts as a stream goes on.

    Each expert is a slanted line that rises by one with every row since its birth;
    the darker it is, the larger the expert's weight in the prediction of the next
    label. An expert has forgotten all that came before its birth, so that after a
    change the weight falls to younger ones. The run length is that of the heaviest.

    It is recommended to use
    :func:`~sktvdenoise.plotting.ExpertWeightsDisplay.from_estimator`. All parameters
    are stored as attributes.

    Parameters
    ----------
    positions : ndarray of shape (n_steps,)
        Positions, in ascending order, of the rows after which the experts were
        looked at.

    n_samples_seen : ndarray of shape (n_steps,)
        Number of rows seen then.

    births : list of n_steps ndarrays of shape (n_experts,)
        The row, from 0, that is the first each expert that lived then has seen.

    weights : list of n_steps ndarrays of shape (n_experts,)
        Their weights.

    run_lengths : ndarray of shape (n_steps,)
        Rows since the birth of the heaviest expert.

    breakpoints : array-like of shape (n_breakpoints,), default=()
        Positions where new pieces start.

    position_name : str, default="position"
        Label of the x axis, with its unit.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.

    figure_ : matplotlib Figure
        Figure containing it.

    weights_ : matplotlib LineCollection
        The experts.

    colorbar_ : matplotlib Colorbar
        The scale of their weights.

    run_lengths_ : matplotlib Line2D
        The run length.

    breakpoints_ : matplotlib Line2D or None
        Vertical lines at the breakpoints, if there are any.

    See Also
    --------
    DenoisingDisplay : Observations, estimate and breakpoints.

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.plotting import ExpertWeightsDisplay
    >>> X, y = load_nile(return_X_y=True)
    >>> display = ExpertWeightsDisplay.from_estimator(OnlineTVDenoiser(), X, y)
    >>> display.breakpoints
    array([1899])
    """

    def __init__(
        self,
        *,
        positions,
        n_samples_seen,
        births,
        weights,
        run_lengths,
        breakpoints=(),
        position_name="position",
    ):
        self.positions = positions
        self.n_samples_seen = n_samples_seen
        self.births = births
        self.weights = weights
        self.run_lengths = run_lengths
        self.breakpoints = breakpoints
        self.position_name = position_name

    def plot(
        self,
        ax=None,
        *,
        weights_kwargs=None,
        run_lengths_kwargs=None,
        breakpoints_kwargs=None,
    ):
        """Draw the experts as shaded lines, and the run length over them.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a new figure.

        weights_kwargs : dict, default=None
            Keywords passed to matplotlib's ``LineCollection``.

        run_lengths_kwargs, breakpoints_kwargs : dict, default=None
            Keywords passed to matplotlib's ``plot``.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.ExpertWeightsDisplay`
            The object itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt
        from matplotlib.collections import LineCollection
        from matplotlib.colors import PowerNorm

        if ax is None:
            _, ax = plt.subplots(layout="constrained")

        # From each step to the next; the heaviest segments come last, on top.
        left, right = self.positions[:-1], self.positions[1:]
        seen, added = self.n_samples_seen[:-1], np.diff(self.n_samples_seen)
        sizes = [len(births) for births in self.births[:-1]]
        step = np.repeat(np.arange(len(sizes)), sizes)
        weights = np.concatenate([[], *self.weights[:-1]])
        age = seen[step] - np.concatenate([[], *self.births[:-1]])
        starts = np.column_stack([left[step], age])
        ends = np.column_stack([right[step], age + added[step]])
        order = np.argsort(weights, kind="stable")
        styles = dict(
            cmap="Blues",  # from white to a dark blue
            norm=PowerNorm(0.5, 0.0, 1.0),  # the root makes small weights visible
            linewidth=4.0,
            capstyle="butt",
            rasterized=True,
            zorder=1,
        )
        self.weights_ = LineCollection(
            np.stack([starts, ends], axis=1)[order],
            array=weights[order],
            **styles | (weights_kwargs or {}),
        )
        ax.add_collection(self.weights_)
        self.colorbar_ = ax.figure.colorbar(
            self.weights_, ax=ax, label="weight of the expert"
        )
        run = self.run_lengths[:-1]
        self.run_lengths_ = draw_line(
            ax,
            np.column_stack([left, right]).reshape(-1),
            np.column_stack([run, run + added]).reshape(-1),
            run_lengths_kwargs,
            label="run length",
            color=VERMILION,
            linewidth=1.0,
            zorder=2,
        )
        self.breakpoints_ = draw_breakpoints(ax, self.breakpoints, breakpoints_kwargs)
        # Up to the oldest expert that can be seen, with room for the legend.
        top = np.max((age + added[step])[weights > _VISIBLE], initial=1.0)
        ax.set(
            xlabel=self.position_name,
            ylabel="age of the expert (rows)",
            ylim=(0.0, 1.2 * top),
        )
        ax.margins(x=0.0)
        ax.legend(loc="upper left", ncols=2)

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
        ax=None,
        position_name=None,
        **kwargs,
    ):
        """Run a fresh clone of an estimator over the rows and plot its experts.

        Their weights are looked at after at most 200 rows, equally many rows apart.

        Parameters
        ----------
        estimator : estimator instance
            :class:`~sktvdenoise.online.OnlineTVDenoiser`, or one with its
            ``partial_fit``, ``expert_births_``, ``expert_weights_``,
            ``run_length_`` and ``breakpoints_``; the given one is not changed.

        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions in any order.

        y : array-like of shape (n_samples,)
            Labels; NaN where one is missing, if the estimator takes them.

        ax : matplotlib Axes, default=None
            Axes to draw on. None makes a new figure.

        position_name : str, default=None
            Name of positions, with its unit. None takes the name of a data frame's
            column, if there is any.

        **kwargs : dict
            Passed to `plot`.

        Returns
        -------
        display : :class:`~sktvdenoise.plotting.ExpertWeightsDisplay`
            Object that stores computed values.

        Raises
        ------
        TypeError
            If the estimator has no experts.
        ValueError
            If the numbers of rows differ, or there is more than one output.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        rows, labels, _ = in_order(X, y)
        estimator = clone(estimator)
        # They are there when rows have been seen.
        if not hasattr(type(estimator), "expert_births_"):
            raise TypeError(f"{type(estimator).__name__} has no experts to draw.")
        n_steps = min(len(rows), _MOST_STEPS)
        ends = np.unique(np.linspace(1, len(rows), n_steps).astype(int))
        births, weights, run_lengths = [], [], []
        for start, end in zip([0, *ends], ends):
            estimator.partial_fit(rows[start:end], labels[start:end])
            births.append(estimator.expert_births_)
            weights.append(estimator.expert_weights_)
            run_lengths.append(estimator.run_length_)
        return cls(
            positions=rows[ends - 1],
            n_samples_seen=ends,
            births=births,
            weights=weights,
            run_lengths=np.array(run_lengths),
            breakpoints=rows[estimator.breakpoints_],
            position_name=position_name or name_of(X, "position"),
        ).plot(ax, **kwargs)
