"""Images of a denoised column, drawn without a screen."""

import contextlib
import importlib.util
import logging
import os
import warnings
from datetime import datetime

import numpy as np

from sktvdenoise._csv import InputError, open_output
from sktvdenoise.plotting import DenoisingDisplay


def has_matplotlib():
    return importlib.util.find_spec("matplotlib") is not None


@contextlib.contextmanager
def open_image(path):
    """A function that draws a display into the image that `path` becomes."""
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in ("png", "pdf", "svg"):
        raise InputError(
            f"cannot write {path}: the name of an image ends in .png, .pdf or .svg"
        )
    if not has_matplotlib():
        raise InputError("an image needs matplotlib: pip install sktvdenoise[plot]")
    try:
        with _quiet_matplotlib():
            from matplotlib.figure import Figure
    except (ImportError, ValueError) as error:
        raise InputError(f"cannot load matplotlib: {_first_line(error)}") from None
    with open_output(path, binary=True) as file:

        def draw(y, predictions, **kwargs):
            # The first prediction knows nothing: no scale should be made for it.
            predictions = np.append(np.nan, predictions[1:])
            figure = Figure(figsize=(8, 4.5), layout="constrained")
            axes = figure.subplots()
            DenoisingDisplay.from_predictions(y, predictions, ax=axes, **kwargs)
            try:
                with _quiet_matplotlib():
                    figure.savefig(file, format=kind, dpi=150)
            except (ValueError, ArithmeticError, RuntimeError) as error:
                raise InputError(f"cannot draw {path}: {_first_line(error)}") from None

        yield draw


@contextlib.contextmanager
def _quiet_matplotlib():
    """Keep its notes on fonts and caches, which concern no data, off the screen."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        logger.setLevel(level)


def _first_line(error):
    return str(error).partition("\n")[0]


def positions_of(cells):
    """Cells as numbers or times, if they can be an axis and don't decrease; else None.

    An axis has margins and ticks beyond its data, which matplotlib must be able to
    represent: years from 1 to 9999, and differences of numbers.
    """
    try:
        positions = np.array([float(cell) for cell in cells])
        least, largest = -1e300, 1e300
    except ValueError:
        try:
            times = [
                datetime.fromisoformat(cell).replace(tzinfo=None) for cell in cells
            ]
        except ValueError:
            return None
        positions = np.array(times, dtype="datetime64[us]")
        least, largest = np.array(["1000", "9000"], dtype="datetime64[us]")
    # False for NaN, too.
    inside = (positions >= least).all() and (positions <= largest).all()
    return positions if inside and (positions[1:] >= positions[:-1]).all() else None
