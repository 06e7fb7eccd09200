"""The display of a partition: what is drawn is what was computed."""

import pickle

import numpy as np
import pytest

from sktvdenoise.datasets import make_signal
from sktvdenoise.theory import PartitionDisplay, key_partition

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_what_is_drawn(pyplot):
    y, _ = make_signal("blocks", 200, tv=5.0, noise=0.3, random_state=0)
    display = PartitionDisplay.from_labels(y, tv_budget=5.0)
    u, edges = display.comparator, display.edges
    np.testing.assert_array_equal(edges, key_partition(u, np.abs(y).max()))
    np.testing.assert_array_equal(display.labels_.get_ydata(), y)
    np.testing.assert_array_equal(display.comparator_.get_ydata(), u)
    # The sign between two rows is drawn between them, where an edge would be.
    x, signs = display.signs_.get_data()
    np.testing.assert_array_equal(x, np.arange(201) - 0.5)
    np.testing.assert_array_equal(signs, display.signs)
    for bins, ax in zip(display.bins_, display.axes_):
        assert bins.axes is ax
        ends = [path.vertices[:, 0] for path in bins.get_paths()]
        drawn = [edge for end in ends for edge in (end.min() + 0.5, end.max() + 0.5)]
        expected = edges if len(edges) % 2 == 0 else edges[:-1]
        np.testing.assert_array_equal(np.unique(drawn), expected)
    display.figure_.canvas.draw()


def test_given_axes_and_copies(pyplot):
    figure, axes = pyplot.subplots(2)
    bound = PartitionDisplay.from_labels([[0.0], [1.0]], 0.5, bound=0.1, axes=axes)
    assert bound.figure_ is figure and list(bound.axes_) == list(axes)
    bare = PartitionDisplay(y=[0, 1], comparator=[0, 1], signs=[0, 1, 0], edges=[0, 2])
    assert pickle.loads(pickle.dumps(bare)).edges == [0, 2]


def test_bad_input():
    with pytest.raises(ValueError, match="One output can be drawn at a time"):
        PartitionDisplay.from_labels([[0.0, 1.0]], 1.0)
    with pytest.raises(ValueError, match="NaN"):
        PartitionDisplay.from_labels([0.0, np.nan], 1.0)
    with pytest.raises(ValueError, match="tv_budget"):
        PartitionDisplay.from_labels([0.0, 1.0], -1.0)
