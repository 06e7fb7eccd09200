import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDRegressor

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.metrics import tv_oracle
from sktvdenoise.offline import FusedLasso
from sktvdenoise.plotting import DenoisingDisplay, ExpertWeightsDisplay

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


class TwoMeans(RegressorMixin, BaseEstimator):
    """The means of the first and of the second half of the rows."""

    def fit(self, X, y):
        self.positions_ = np.sort(np.ravel(X))
        self.breakpoints_ = np.array([len(y) // 2])
        self.means_ = [half.mean() for half in np.array_split(y, self.breakpoints_)]
        return self

    def predict(self, X):
        jump = self.positions_[self.breakpoints_[0]]
        return np.where(np.ravel(X) < jump, *self.means_)


@pytest.fixture
def rows():
    y, _ = make_signal("step", 60, std=5.0, random_state=0)
    return 10.0 * np.arange(60), y


def xy(line):
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_stream_is_drawn_as_predicted_before_each_label(rows):
    X, y = rows
    display = DenoisingDisplay.from_estimator(OnlineTVDenoiser(), X, y)
    expected = OnlineTVDenoiser().partial_fit_predict(X, y)
    x, estimate = xy(display.estimate_)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(estimate[1:], expected[1:])
    assert np.isnan(estimate[0])
    np.testing.assert_array_equal(xy(display.observations_), rows)
    assert display.oracle_ is None


def test_given_estimator_is_not_changed(rows):
    X, y = rows
    for estimator in (OnlineTVDenoiser(), OnlineTVDenoiser().fit(X, y)):
        before = pickle.dumps(estimator)
        DenoisingDisplay.from_estimator(estimator, X, -y)
        assert pickle.dumps(estimator) == before


def test_oracle_is_drawn(rows):
    X, y = rows
    display = DenoisingDisplay.from_estimator(OnlineTVDenoiser(), X, y, tv_budget=8)
    comparator = tv_oracle(y, 8).comparator
    np.testing.assert_array_equal(xy(display.oracle_)[1], comparator)
    assert display.oracle_.get_drawstyle() == "steps-post"
    assert "8" in display.oracle_.get_label()


def test_breakpoints_are_drawn_as_lines_across(rows):
    X, y = rows
    display = DenoisingDisplay.from_predictions(
        y + 1000, y + 1000, X=X, tv_budget=8, breakpoints=[30, 41]
    )
    x, height = (values.reshape(-1, 3) for values in xy(display.breakpoints_))
    np.testing.assert_array_equal(x[:, 0], [300.0, 410.0])
    assert (x == x[:, :1]).all()
    # Heights are fractions of the axes, and leave the data's limits alone.
    np.testing.assert_array_equal(height[:, :2], [[0.0, 1.0]] * 2)
    assert display.ax_.get_ylim()[0] > 900
    # Jumps of the oracle are no breakpoints of the predictions.
    display = DenoisingDisplay.from_predictions(y, y, X=X, tv_budget=8)
    assert np.diff(display.oracle).any() and display.breakpoints_ is None


@pytest.mark.parametrize("tv_budget", [None, 8.0])
@pytest.mark.parametrize("keep_history", [True, False])
def test_breakpoints_of_a_stream_are_those_of_its_rows(rows, keep_history, tv_budget):
    X, y = np.floor(rows[0] / 25), rows[1] * 3
    model = OnlineTVDenoiser(keep_history=keep_history)
    display = DenoisingDisplay.from_estimator(model, X, y, tv_budget=tv_budget)
    expected = OnlineTVDenoiser().fit(X, y).breakpoints_
    assert len(expected) > 0
    np.testing.assert_array_equal(display.breakpoints, expected)
    np.testing.assert_array_equal(xy(display.breakpoints_)[0][::3], X[expected])


def test_fitted_curve_with_the_estimators_breakpoints(rows):
    X, y = rows
    model = TwoMeans()
    with pytest.raises(NotFittedError):
        DenoisingDisplay.from_estimator(model, X, y)
    model.fit(X, y)
    display = DenoisingDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(xy(display.estimate_)[1], model.predict(X))
    assert display.estimate_.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(display.breakpoints, [30])
    # Other rows than those of fit: the jump stays at its position.
    display = DenoisingDisplay.from_estimator(model, X[20:], y[20:])
    np.testing.assert_array_equal(display.breakpoints, [10])
    display = DenoisingDisplay.from_estimator(model, X[40:], y[40:])
    assert display.breakpoints_ is None


def test_rows_in_any_order_give_the_same_picture(rows):
    X, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    y_pred = np.sin(X)
    pictures = [
        DenoisingDisplay.from_estimator(OnlineTVDenoiser(), X[rows], y[rows])
        for rows in (slice(None), order)
    ] + [
        DenoisingDisplay.from_predictions(y[rows], y_pred[rows], X=X[rows][:, None])
        for rows in (slice(None), order)
    ]
    for a, b in (pictures[:2], pictures[2:]):
        np.testing.assert_array_equal(xy(a.estimate_), xy(b.estimate_))
        np.testing.assert_array_equal(xy(a.observations_), xy(b.observations_))
    np.testing.assert_array_equal(xy(pictures[3].estimate_)[1], y_pred)


def test_oracle_is_held_over_missing_labels(rows):
    X, y = rows
    y = y.copy()
    y[[0, 1, 20, 21, 59]] = np.nan
    seen = np.isfinite(y)
    model = OnlineTVDenoiser(missing="skip")
    display = DenoisingDisplay.from_estimator(model, X, y, tv_budget=8)
    comparator = tv_oracle(y[seen], 8).comparator
    np.testing.assert_array_equal(display.oracle[seen], comparator)
    np.testing.assert_array_equal(
        display.oracle[[0, 1, 20, 21, 59]], display.oracle[[2, 2, 19, 19, 58]]
    )


def test_dates_as_positions(rows, pyplot):
    y = rows[1]
    days = np.datetime64("2020-01-01") + np.arange(60)
    display = DenoisingDisplay.from_predictions(y, y, X=days, tv_budget=8)
    display.figure_.canvas.draw()
    np.testing.assert_array_equal(display.positions, days)
    assert "2020" in display.ax_.xaxis.get_major_formatter().get_offset()


def test_names_of_axes_and_legend(rows):
    pandas = pytest.importorskip("pandas")
    X, y = load_nile(return_X_y=True, as_frame=True)
    display = DenoisingDisplay.from_estimator(OnlineTVDenoiser(), X, y)
    assert display.ax_.get_xlabel() == "year"
    assert display.ax_.get_ylabel() == "volume"
    display = DenoisingDisplay.from_predictions(
        pandas.Series(rows[1]),
        rows[1],
        tv_budget=1.5,
        estimate_name="mine",
        position_name="depth (m)",
        value_name="response (mV)",
    )
    assert display.ax_.get_xlabel() == "depth (m)"
    assert display.ax_.get_ylabel() == "response (mV)"
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend[:2] == ["observed", "mine"]
    assert legend[2].endswith("1.5")


def test_given_axes_and_styles_are_used(rows, pyplot):
    X, y = rows
    figure, axes = pyplot.subplots(2)
    display = DenoisingDisplay.from_predictions(
        y,
        y,
        X=X,
        tv_budget=4,
        breakpoints=[30],
        ax=axes[1],
        observations_kwargs={"marker": "x"},
        estimate_kwargs={"c": "red", "lw": 7},
        oracle_kwargs={"label": "best"},
        breakpoints_kwargs={"ls": "-"},
    )
    assert display.ax_ is axes[1] and display.figure_ is figure
    assert not axes[0].lines
    assert display.observations_.get_marker() == "x"
    assert display.estimate_.get_color() == "red"
    assert display.estimate_.get_linewidth() == 7
    assert display.oracle_.get_label() == "best"
    assert display.breakpoints_.get_linestyle() == "-"
    assert display.plot() is display
    assert display.figure_ is not figure


def test_bad_rows_are_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"\(60, 2\)"):
        DenoisingDisplay.from_estimator(OnlineTVDenoiser(), np.c_[X, X], y)
    with pytest.raises(ValueError, match="y has 2"):
        DenoisingDisplay.from_estimator(OnlineTVDenoiser(), X, np.c_[y, y])
    with pytest.raises(ValueError, match=r"\[60, 59\]"):
        DenoisingDisplay.from_predictions(y, y[1:])


@pytest.mark.parametrize("kind", ["U3", object])
def test_strings_are_no_positions(kind):
    # Their order is not that of the numbers they spell.
    X = np.array(["9", "10", "11"], dtype=kind)
    with pytest.raises(TypeError, match="X holds strings"):
        DenoisingDisplay.from_predictions(np.zeros(3), np.zeros(3), X=X)


def test_names_of_columns_are_shown_to_the_letter():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(np.arange(3.0), name="price $a_$ in $")
    display = DenoisingDisplay.from_predictions(y, y)
    display.figure_.canvas.draw()
    label = display.ax_.yaxis.label
    assert label._preprocess_math(label.get_text()) == ("price $a_$ in $", False)


def test_dense_rows_stay_visible():
    def sizes(n):
        display = DenoisingDisplay.from_predictions(np.zeros(n), np.zeros(n))
        (point, *_) = display.ax_.get_legend().get_lines()
        assert point.get_markersize() == display.observations_.get_markersize()
        return point.get_markersize(), display.estimate_.get_linewidth()

    sparse, dense = sizes(50), sizes(20_000)
    assert sparse == (4, 1.5)
    assert dense[0] >= 2 and dense[1] < 1


def test_matplotlib_is_imported_only_to_draw():
    code = """
import sys, sktvdenoise.plotting
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
axes = Figure().subplots()
sktvdenoise.plotting.DenoisingDisplay.from_predictions([1, 2], [1, 2], ax=axes)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_matplotlib_is_named(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="requires matplotlib"):
        DenoisingDisplay.from_predictions(rows[1], rows[1])


def test_fused_lasso_is_drawn_as_steps_with_its_breakpoints(rows):
    X, y = rows
    model = FusedLasso(alpha=10.0).fit(X, y)
    display = DenoisingDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(xy(display.estimate_)[1], model.values_)
    assert display.estimate_.get_drawstyle() == "steps-post"
    assert 0 < len(model.breakpoints_) < 10
    np.testing.assert_array_equal(display.breakpoints, model.breakpoints_)
    display = DenoisingDisplay.from_estimator(model, X, y, tv_budget=0)
    np.testing.assert_array_equal(display.breakpoints, model.breakpoints_)
    np.testing.assert_allclose(display.oracle, y.mean())


# ---------------------------------------------------------------- experts


@pytest.mark.parametrize("learning_rate", ["auto", "theory", 0.5])
@pytest.mark.parametrize("n", [2, 60, 1000])
def test_experts_are_those_of_the_stream(learning_rate, n):
    y, _ = make_signal("blocks", n, std=5.0, random_state=0)
    X = 3.0 * np.arange(n)
    model = OnlineTVDenoiser(learning_rate=learning_rate)
    display = ExpertWeightsDisplay.from_estimator(model, X, y)
    seen = display.n_samples_seen
    assert len(seen) == min(n, 200) and seen[0] == 1 and seen[-1] == n
    np.testing.assert_array_equal(display.positions, X[seen - 1])
    twin = OnlineTVDenoiser(learning_rate=learning_rate)
    start = 0
    for k, end in enumerate(seen):
        twin.partial_fit(X[start:end], y[start:end])
        start = end
        np.testing.assert_array_equal(display.births[k], twin.expert_births_)
        np.testing.assert_array_equal(display.weights[k], twin.expert_weights_)
        assert display.run_lengths[k] == twin.run_length_
    np.testing.assert_array_equal(display.breakpoints, X[twin.breakpoints_])


def test_experts_are_drawn_from_row_to_row():
    """Two experts; the older one leads until the younger takes over."""
    display = ExpertWeightsDisplay(
        positions=np.array([10.0, 20.0, 40.0]),
        n_samples_seen=np.array([5, 6, 8]),
        births=[np.array([0, 4]), np.array([0, 4]), np.array([4])],
        weights=[np.array([0.75, 0.25]), np.array([0.375, 0.625]), np.array([1.0])],
        run_lengths=np.array([5, 2, 4]),
        breakpoints=[20.0],
        position_name="depth (m)",
    ).plot()
    # The heavier of a step come later, on top.
    segments = [segment.tolist() for segment in display.weights_.get_segments()]
    assert segments == [
        [[10, 1], [20, 2]],
        [[20, 6], [40, 8]],
        [[20, 2], [40, 4]],
        [[10, 5], [20, 6]],
    ]
    np.testing.assert_array_equal(
        display.weights_.get_array(), [0.25, 0.375, 0.625, 0.75]
    )
    x, run = xy(display.run_lengths_)
    np.testing.assert_array_equal(x, [10, 20, 20, 40])
    np.testing.assert_array_equal(run, [5, 6, 2, 4])
    np.testing.assert_array_equal(xy(display.breakpoints_)[0], [20.0] * 3)
    assert display.ax_.get_xlabel() == "depth (m)"
    assert display.ax_.get_ylabel() == "age of the expert (rows)"
    assert display.colorbar_.ax.get_ylabel() == "weight of the expert"
    assert display.ax_.get_ylim()[0] == 0 and display.ax_.get_ylim()[1] > 8


def test_run_length_is_the_age_of_a_darkest_line(rows):
    display = ExpertWeightsDisplay.from_estimator(OnlineTVDenoiser(), *rows)
    x, run = (values.reshape(-1, 2) for values in xy(display.run_lengths_))
    segments = np.array(display.weights_.get_segments())
    weights = display.weights_.get_array()
    for left, age in zip(x[1:, 0], run[1:, 0]):
        here = segments[:, 0, 0] == left
        heaviest = segments[here][np.argmax(weights[here])]
        np.testing.assert_array_equal(heaviest[0], [left, age])


def test_estimator_of_the_experts_is_not_changed(rows):
    X, y = rows
    for estimator in (OnlineTVDenoiser(), OnlineTVDenoiser().fit(X, y)):
        before = pickle.dumps(estimator)
        ExpertWeightsDisplay.from_estimator(estimator, X, -y)
        assert pickle.dumps(estimator) == before


def test_experts_of_rows_in_any_order_with_missing_labels(rows):
    X, y = rows
    y = y.copy()
    y[[0, 1, 30]] = np.nan
    order = np.random.default_rng(0).permutation(len(y))
    model = OnlineTVDenoiser(missing="skip")
    first, second = (
        ExpertWeightsDisplay.from_estimator(model, X[r][:, None], y[r])
        for r in (slice(None), order)
    )
    np.testing.assert_array_equal(
        first.weights_.get_segments(), second.weights_.get_segments()
    )
    np.testing.assert_array_equal(
        first.weights_.get_array(), second.weights_.get_array()
    )


@pytest.mark.parametrize("n", [1, 3])
def test_few_rows_of_experts_are_drawn(n, pyplot):
    display = ExpertWeightsDisplay.from_estimator(
        OnlineTVDenoiser(), np.zeros(n), np.arange(n)
    )
    display.figure_.canvas.draw()
    assert len(display.run_lengths_.get_xdata()) == 2 * (n - 1)
    assert display.breakpoints_ is None


def test_axes_styles_and_names_of_experts(pyplot):
    pytest.importorskip("pandas")
    X, y = load_nile(return_X_y=True, as_frame=True)
    figure, axes = pyplot.subplots(2)
    display = ExpertWeightsDisplay.from_estimator(
        OnlineTVDenoiser(),
        X,
        y,
        ax=axes[1],
        weights_kwargs={"cmap": "Greys", "linewidth": 7},
        run_lengths_kwargs={"c": "red"},
        breakpoints_kwargs={"ls": "-"},
    )
    assert display.ax_ is axes[1] and display.figure_ is figure
    assert display.weights_.get_cmap().name == "Greys"
    assert display.weights_.get_linewidth() == [7]
    assert display.run_lengths_.get_color() == "red"
    assert display.breakpoints_.get_linestyle() == "-"
    assert display.ax_.get_xlabel() == "year"
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["run length", "breakpoint"]
    assert display.plot() is display
    assert display.figure_ is not figure


def test_what_has_no_experts_is_refused(rows):
    X, y = rows
    with pytest.raises(TypeError, match="FusedLasso has no experts"):
        ExpertWeightsDisplay.from_estimator(FusedLasso(), X, y)
    with pytest.raises(TypeError, match="SGDRegressor has no experts"):
        ExpertWeightsDisplay.from_estimator(SGDRegressor(), X[:, None], y)
    with pytest.raises(ValueError, match="y has 2"):
        ExpertWeightsDisplay.from_estimator(OnlineTVDenoiser(), X, np.c_[y, y])
    with pytest.raises(ValueError, match=r"\[60, 59\]"):
        ExpertWeightsDisplay.from_estimator(OnlineTVDenoiser(), X, y[1:])
