"""Rows of a time series in pictures: what the displays share."""

import numpy as np
from sklearn.utils import check_consistent_length

from sktvdenoise._positions import check_labels

# From the palette of Okabe and Ito (2008), told apart with any colour vision and,
# by their lightness, in print without colours.
GREY, BLUE, VERMILION, BLACK = "#999999", "#0072B2", "#D55E00", "#000000"
CURVES = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def in_order(X, y):
    """Positions and labels sorted by position, and the permutation that does it."""
    check_consistent_length(X, y)
    positions = column(X, "X")
    refuse_unordered(positions, "X")
    order = np.argsort(positions, kind="stable")
    return positions[order], one_output(y, "y")[order], order


def column(X, name):
    """One position per row as a one-dimensional array."""
    positions = np.asarray(X)
    if positions.ndim > 2 or (positions.ndim == 2 and positions.shape[1] != 1):
        raise ValueError(
            f"{name} holds one position per row: its shape must be (n_samples,) or "
            f"(n_samples, 1), got {positions.shape}."
        )
    positions = positions.reshape(-1)
    if np.ma.isMaskedArray(X):
        _refuse_missing(np.ma.getmaskarray(X).reshape(-1), name, "is masked")
    if positions.dtype.kind not in "biufmMO" or any(
        isinstance(position, str) for position in positions[:1]
    ):
        raise TypeError(f"{name} holds strings. Positions are numbers or dates.")
    return positions


def refuse_unordered(positions, name):
    """Refuse positions that have no place in the order: NaN, NaT, NA, infinity."""
    if positions.dtype.kind == "f":
        bad = ~np.isfinite(positions)
    elif positions.dtype.kind in "mM":
        bad = np.isnat(positions)
    elif positions.dtype.kind == "O":
        bad = np.array([_has_no_place(position) for position in positions], dtype=bool)
    else:
        return
    _refuse_missing(bad, name, "holds no position")


def _has_no_place(position):
    if position is None or type(position).__name__ in ("NaTType", "NAType"):
        return True
    if isinstance(position, np.datetime64 | np.timedelta64):
        return bool(np.isnat(position))
    return isinstance(position, float) and not np.isfinite(position)


def _refuse_missing(bad, name, what):
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name} {what} in row {row}: NaN, NaT or infinity.")


def one_output(y, name):
    y = check_labels(y, allow_nan=True, name=name)
    if y.ndim == 2 and y.shape[1] != 1:
        raise ValueError(f"One output can be drawn at a time; {name} has {y.shape[1]}.")
    return y.reshape(-1)


def name_of(data, default):
    columns = getattr(data, "columns", None)
    name = getattr(data, "name", None) if columns is None else columns[0]
    return literal(name) if isinstance(name, str) and name else default


def literal(name):
    """A name as matplotlib shows it to the letter: a dollar sign begins no formula."""
    return name.replace("$", r"\$")


def draw_line(ax, x, y, kwargs, **defaults):
    """A curve with the given keywords, by any of their names, and defaults."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return ax.plot(x, y, **defaults | normalize_kwargs(kwargs, Line2D))[0]


def shorten_dates(ax, positions):
    """Ticks that say the year once, if the positions on the x axis are dates."""
    from matplotlib.dates import ConciseDateFormatter

    if np.asarray(positions).dtype.kind == "M":
        locator = ax.xaxis.get_major_locator()
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def draw_breakpoints(ax, places, kwargs):
    """Vertical lines, or None if there are no places."""
    if not len(places):
        return None
    # One line from the bottom to the top at each place, with gaps between.
    return draw_line(
        ax,
        np.repeat(places, 3),
        np.tile([0.0, 1.0, np.nan], len(places)),
        kwargs,
        label="breakpoint" + "s" * (len(places) > 1),
        color=BLACK,
        linestyle="dotted",
        linewidth=1.0,
        transform=ax.get_xaxis_transform(),
        zorder=1.5,
    )
