"""A display of a partition, with the signs that it is made by."""

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sktvdenoise._kkt import kkt_conditions, loss_gradients
from sktvdenoise._partition import key_partition
from sktvdenoise._plot_rows import BLUE, GREY, VERMILION, draw_line, one_output
from sktvdenoise._positions import check_labels
from sktvdenoise.metrics import tv_oracle


class PartitionDisplay:
    """Labels, oracle and bins, and below them the sign sequence.

    It is recommended to use
    :func:`~sktvdenoise.theory.PartitionDisplay.from_labels`. All parameters are stored
    as attributes.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels.

    comparator : ndarray of shape (n_samples,)
        The oracle's sequence.

    signs : ndarray of shape (n_samples + 1,)
        Its sign sequence (see ``kkt_conditions``).

    edges : ndarray of shape (n_bins + 1,)
        From 0 to `n_samples`; bins are drawn in alternating shades.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        The labels' and the signs'.

    figure_ : matplotlib Figure
        Figure containing them.

    labels_, comparator_, signs_ : matplotlib Line2D
        The curves.

    bins_ : list of two matplotlib PolyCollections
        Every second bin, in both axes.

    Examples
    --------
    >>> from sktvdenoise.theory import PartitionDisplay, make_example_21
    >>> y, _ = make_example_21(8)
    >>> display = PartitionDisplay.from_labels(y, tv_budget=1.0)
    >>> display.edges
    array([0, 3, 8])
    """

    def __init__(self, *, y, comparator, signs, edges):
        self.y = y
        self.comparator = comparator
        self.signs = signs
        self.edges = edges

    @classmethod
    def from_labels(cls, y, tv_budget, *, bound=None, axes=None):
        """Compute oracle, signs and key partition of labels, and draw them.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, 1)
            Labels, in order.

        tv_budget : float >= 0
            Largest total variation of the oracle, in the units of the labels.

        bound : float > 0, default=None
            The `B` of the partition, in their units; None takes the largest absolute
            label.

        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : PartitionDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the labels have several outputs or a value that isn't finite, or a
            number isn't in its range.
        """
        check_matplotlib_support(f"{cls.__name__}.from_labels")
        y = check_labels(one_output(y, "y"))
        oracle = tv_oracle(y, tv_budget)
        u = oracle.comparator
        conditions = kkt_conditions(u, loss_gradients(y, u), oracle.multiplier)
        if bound is None:
            bound = np.abs(y).max() or 1.0
        edges = key_partition(u, bound)
        display = cls(y=y, comparator=u, signs=conditions.signs, edges=edges)
        return display.plot(axes)

    def plot(self, axes=None):
        """Draw the picture.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : PartitionDisplay
            This display.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        from matplotlib import pyplot

        if axes is None:
            _, axes = pyplot.subplots(
                2, sharex=True, layout="constrained", height_ratios=[2, 1]
            )
        above, below = self.axes_ = np.asarray(axes)
        self.figure_ = above.figure
        n_samples = len(self.y)
        rows = np.arange(n_samples)
        self.labels_ = draw_line(
            above, rows, self.y, {}, color=GREY, linestyle="", marker=".", label="label"
        )
        self.comparator_ = draw_line(
            above,
            rows,
            self.comparator,
            {},
            color=BLUE,
            drawstyle="steps-mid",
            label="oracle",
        )
        self.signs_ = draw_line(
            below, np.arange(n_samples + 1) - 0.5, self.signs, {}, color=VERMILION
        )
        # Row t is drawn from t - 1/2 to t + 1/2, so that edges and signs lie between.
        bins = np.searchsorted(self.edges, rows, side="right")
        self.bins_ = [
            ax.fill_between(
                np.repeat(rows, 2) + np.tile([-0.5, 0.5], n_samples),
                0.0,
                1.0,
                where=np.repeat(bins % 2 == 1, 2),
                transform=ax.get_xaxis_transform(),
                color=GREY,
                alpha=0.25,
                linewidth=0,
                label="every second bin",
            )
            for ax in (above, below)
        ]
        above.set(ylabel="label")
        above.legend()
        below.set(xlabel="row", ylabel="sign", ylim=(-1.1, 1.1))
        return self
