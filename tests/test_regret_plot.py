"""The display of regret: what is drawn is what was computed."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sktvdenoise import OnlineTVDenoiser, RegretCurveDisplay
from sktvdenoise.datasets import make_signal
from sktvdenoise.metrics import dynamic_regret, regret_curve, tv_oracle
from sktvdenoise.model_selection import progressive_val_predict

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture
def rows():
    """Labels in several pieces, and two sequences of predictions."""
    y, _ = make_signal("blocks", 300, std=3.0, random_state=0)
    return y, {"last": np.r_[0, y[:-1]], "zero": np.zeros(300)}


def xy(line):
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_curves_are_drawn_exactly_from_zero_to_the_variation_of_the_labels(rows):
    y, predictions = rows
    display = RegretCurveDisplay.from_predictions(y, predictions)
    assert list(display.curves_) == list(predictions)
    for name, line in display.curves_.items():
        budgets, regret = xy(line)
        curve = regret_curve(y, predictions[name])
        np.testing.assert_allclose(regret, curve(budgets), rtol=1e-12, atol=1e-8)
        assert budgets[0] == 0 and budgets[-1] == curve.tv_budget[-1]
        assert (np.diff(budgets) > 0).all()
        assert display.curves[name].loss == pytest.approx(curve.loss, rel=1e-14)
    assert len(display.axes_) == 1 and display.regrets_ == {}
    assert display.tv_budget_ is None


def test_scale_is_linear_only_where_the_oracle_is_nearly_constant(rows):
    y, predictions = rows
    display = RegretCurveDisplay.from_predictions(y, predictions)
    knee = display.axes_[0].xaxis.get_transform().linthresh
    curve = display.curves["last"]
    assert 0 < curve(knee) - curve.static <= 0.01 * curve.oracle_loss[0]
    # Nor is it far below that: the next power of ten.
    assert np.log10(knee) == pytest.approx(round(np.log10(knee)), abs=1e-12)
    assert curve(20 * knee) - curve.static > 0.01 * curve.oracle_loss[0]


def test_negative_regret_is_shown(rows):
    y, predictions = rows
    display = RegretCurveDisplay.from_predictions(y, predictions)
    ax = display.axes_[0]
    assert ax.get_yscale() == "symlog"
    assert display.curves["last"].static < 0
    display.figure_.canvas.draw()
    low, high = ax.get_ylim()
    assert low < display.curves["last"].static
    assert high > display.curves["zero"].loss


def test_positive_regret_is_on_a_log_scale():
    y = np.random.default_rng(0).standard_normal(100)
    display = RegretCurveDisplay.from_predictions(y, np.full(100, 5.0))
    assert display.curves["prediction"].static > 0
    assert display.axes_[0].get_yscale() == "log"
    display.figure_.canvas.draw()


def test_rate_of_the_paper_is_drawn(rows):
    y, predictions = rows
    for bound in (None, 2.5):
        display = RegretCurveDisplay.from_predictions(y, predictions, bound=bound)
        budgets, rate = xy(display.rate_)
        largest = bound or np.abs(y).max()
        expected = np.cbrt(len(y)) * budgets ** (2 / 3) * largest ** (4 / 3)
        np.testing.assert_allclose(rate, expected, rtol=1e-12)
    label = display.axes_[0].get_legend().get_texts()[-1].get_text()
    assert "n^{1/3} C^{2/3} B^{4/3}" in label
    # Rows that don't count give no bound.
    y, weights = y.copy(), np.ones(len(y))
    y[3], weights[3] = 1e9, 0
    display = RegretCurveDisplay.from_predictions(y, 0 * y, sample_weight=weights)
    assert display.bound == np.abs(y[weights > 0]).max()


@pytest.mark.parametrize("outputs", [1, 2])
def test_regret_over_time_is_against_the_oracle_of_the_whole_stream(rows, outputs):
    y, predictions = rows
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(y)).astype(float)
    if outputs == 2:
        y = np.c_[y, rng.standard_normal(len(y))]
        predictions = {name: np.c_[x, x] for name, x in predictions.items()}
    display = RegretCurveDisplay.from_predictions(
        y, predictions, tv_budget=40, sample_weight=weights
    )
    u = tv_oracle(y, 40, sample_weight=weights).comparator
    for name, x in predictions.items():
        at, regret = xy(display.regrets_[name])
        np.testing.assert_array_equal(at, np.arange(1, 301))
        both = [((y - v) ** 2).reshape(300, -1).sum(axis=1) for v in (x, u)]
        expected = np.cumsum(weights * both[0]) - np.cumsum(weights * both[1])
        np.testing.assert_allclose(regret, expected, rtol=1e-9, atol=1e-7)
        end = dynamic_regret(y, x, tv_budget=40, sample_weight=weights)
        assert regret[-1] == pytest.approx(end, rel=1e-9)
        assert display.curves[name](40) == pytest.approx(end, rel=1e-9)
    assert set(xy(display.tv_budget_)[0]) == {40}
    assert "TV ≤ 40" in display.axes_[1].get_ylabel()
    assert "TV ≤ 40" in texts(display.axes_[0])


def test_regret_of_a_prefix_is_at_least_that_over_time(rows):
    """As documented: on fewer rows the oracle may spend the whole budget."""
    y, predictions = rows
    display = RegretCurveDisplay.from_predictions(y, predictions, tv_budget=40)
    for t in (1, 50, 150, 299):
        prefix = dynamic_regret(y[:t], predictions["last"][:t], tv_budget=40)
        assert prefix >= display.regrets["last"][t - 1] - 1e-9 * np.sum(y**2)


def test_long_streams_are_thinned_to_their_end():
    y = np.random.default_rng(0).standard_normal(5000)
    display = RegretCurveDisplay.from_predictions(y, 0 * y, tv_budget=3)
    assert len(display.positions) == len(display.regrets["prediction"]) == 2000
    assert (display.positions[0], display.positions[-1]) == (1, 5000)
    end = dynamic_regret(y, 0 * y, tv_budget=3)
    assert display.regrets["prediction"][-1] == pytest.approx(end, rel=1e-9)


def test_estimators_predict_each_row_before_its_label(rows):
    y, _ = rows
    X = 10.0 * np.arange(len(y))
    models = {
        "theory": OnlineTVDenoiser(learning_rate="theory"),
        "default": OnlineTVDenoiser(),
    }
    display = RegretCurveDisplay.from_estimator(models, X, y, tv_budget=40)
    assert texts(display.axes_[0])[:2] == ["theory", "default"]
    for name, model in models.items():
        x = model.partial_fit_predict(X, y)
        expected = dynamic_regret(y, x, tv_budget=40)
        assert display.curves[name](40) == pytest.approx(expected, rel=1e-9)
    display = RegretCurveDisplay.from_estimator(OnlineTVDenoiser(), X, y)
    assert list(display.curves) == ["OnlineTVDenoiser"]


def test_estimators_get_the_weights(rows):
    y, _ = rows
    X, w = np.arange(len(y)), np.linspace(0.2, 3, len(y))
    display = RegretCurveDisplay.from_estimator(
        OnlineTVDenoiser(), X, y, sample_weight=w
    )
    x = OnlineTVDenoiser().partial_fit_predict(X, y, sample_weight=w)
    expected = regret_curve(y, x, sample_weight=w)
    assert display.curves["OnlineTVDenoiser"].loss == pytest.approx(expected.loss)


def test_given_estimators_are_not_changed(rows):
    y, _ = rows
    X = np.arange(len(y))
    for model in (OnlineTVDenoiser(), OnlineTVDenoiser().fit(X, y)):
        before = pickle.dumps(model)
        RegretCurveDisplay.from_estimator({"it": model}, X, -y, tv_budget=3)
        assert pickle.dumps(model) == before


def test_estimators_that_cannot_stream_are_refused(rows):
    y, _ = rows
    with pytest.raises(TypeError, match="Ridge can't learn row by row"):
        RegretCurveDisplay.from_estimator(Ridge(), np.c_[y], y)


def test_names_units_and_positions(rows):
    y, predictions = rows
    hours = np.datetime64("2020-01-02T00") + np.arange(300)
    display = RegretCurveDisplay.from_predictions(
        y,
        predictions | {"price $a_$ in $": y + 1},
        tv_budget=20,
        positions=hours,
        unit="mV",
        position_name="time",
    )
    display.figure_.canvas.draw()
    first, second = display.axes_
    assert first.get_xlabel() == "budget of total variation C (mV)"
    assert first.get_ylabel() == "regret (mV²)"
    assert second.get_xlabel() == "time"
    assert second.get_ylabel() == "regret so far against TV ≤ 20 (mV²)"
    assert "2020" in second.xaxis.get_major_formatter().get_offset()
    np.testing.assert_array_equal(display.positions, hours)
    assert texts(first)[2] == texts(second)[2] == r"price \$a_\$ in \$"
    display.unit = "10^8 m^3"
    assert display.plot().axes_[0].get_ylabel() == "regret (10^8 m^3)²"
    display.unit = None
    assert display.plot().axes_[0].get_ylabel() == "regret"


def test_many_estimators_are_told_apart(rows):
    """By colour in both views; those of one colour by their dashes."""
    y, _ = rows
    predictions = {str(k): y + k for k in range(1, 15)}
    display = RegretCurveDisplay.from_predictions(y, predictions, tv_budget=5)

    def look(line):
        return line.get_color(), str(line._dash_pattern)

    for lines in (display.curves_, display.regrets_):
        assert len({look(line) for line in lines.values()}) == 14
    for name in predictions:
        assert look(display.curves_[name]) == look(display.regrets_[name])
    few = list(display.curves_.values())[:6]
    assert len({line.get_color() for line in few}) == 6


def test_given_axes_and_styles_are_used(rows, pyplot):
    y, predictions = rows
    figure, axes = pyplot.subplots(3)
    display = RegretCurveDisplay.from_predictions(
        y,
        predictions,
        tv_budget=4,
        axes=axes[1:],
        curves_kwargs={"lw": 7},
        rate_kwargs={"c": "red", "label": "bound"},
    )
    assert display.axes_ == list(axes[1:]) and display.figure_ is figure
    assert not axes[0].lines
    for lines in (display.curves_, display.regrets_):
        assert {line.get_linewidth() for line in lines.values()} == {7}
    assert display.rate_.get_color() == "red"
    assert display.rate_.get_label() == "bound"
    assert display.plot() is display and display.figure_ is not figure
    with pytest.raises(ValueError, match="second pair of axes"):
        display.plot(axes[0])
    display.regrets = None
    assert display.plot(axes[0]).axes_ == [axes[0]]


@pytest.mark.parametrize("tv_budget", [None, 0, 5, 1e6])
@pytest.mark.parametrize(
    "y, x",
    [
        ([3.0], [1.0]),
        ([3.0, 3.0], [3.0, 3.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([1.0, 2.0, 2.0], [1.0, 2.0, 2.0]),
        ([-1.0, 1.0], [0.0, 0.0]),
        ([1e100, -1e100, 1e90], [0.0, 0.0, 0.0]),
        ([1e-150, 3e-150, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_odd_streams_are_drawn(y, x, tv_budget):
    display = RegretCurveDisplay.from_predictions(y, x, tv_budget=tv_budget)
    display.figure_.canvas.draw()
    budgets, regret = xy(display.curves_["prediction"])
    assert np.isfinite(budgets).all() and np.isfinite(regret).all()
    assert (display.rate_ is None) == (not np.any(y))
    assert budgets[-1] >= (tv_budget or 0)


def test_bad_input_is_refused_before_anything_is_drawn(rows, pyplot):
    y, _ = rows
    draw = RegretCurveDisplay.from_predictions
    with pytest.raises(ValueError, match=r"y_pred\['b'\] has \(299,\)"):
        draw(y, {"a": y, "b": y[1:]})
    with pytest.raises(ValueError, match=r"y_pred\['b'\] contains NaN .*row 2"):
        draw(y, {"a": y, "b": np.where(np.arange(300) == 2, np.nan, y)})
    with pytest.raises(ValueError, match="y_true contains NaN"):
        draw(np.where(np.arange(300) == 2, np.nan, y), y)
    with pytest.raises(ValueError, match="no predictions"):
        draw(y, {})
    with pytest.raises(ValueError, match=r"positions must have the shape \(300,\)"):
        draw(y, y, tv_budget=1, positions=np.arange(299))
    for bound in (0, -1, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="bound must be"):
            draw(y, y, bound=bound)
    for budget in (-1, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="tv_budget"):
            draw(y, y, tv_budget=budget)
    with pytest.raises(ValueError, match="sample_weight"):
        draw(y, y, sample_weight=-np.ones(300))
    assert not pyplot.get_fignums()


def test_matplotlib_is_imported_only_to_draw(monkeypatch):
    code = """
import sys, sktvdenoise.plotting
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
axes = Figure().subplots(2)
draw = sktvdenoise.plotting.RegretCurveDisplay.from_predictions
draw([1, 2], [1, 1], tv_budget=1, axes=axes)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="requires matplotlib"):
        RegretCurveDisplay.from_predictions([1, 2], [1, 1])


def test_any_streaming_estimator_and_missing_labels(rows):
    y, _ = rows
    X = np.c_[np.arange(300.0)]
    times = np.arange(300)[:, None] + 1000
    models = {
        "pipe": make_pipeline(StandardScaler(), SGDRegressor(random_state=0)),
        "online": OnlineTVDenoiser(),
    }
    display = RegretCurveDisplay.from_estimator(
        models, X, y, warmup_size=20, tv_budget=30, positions=times
    )
    for name, model in models.items():
        found = progressive_val_predict(model, X, y, warmup_size=20)
        expected = dynamic_regret(y[20:], found, tv_budget=30)
        assert display.curves[name](30) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(display.positions, np.arange(1020, 1300))
    gaps = y.copy()
    gaps[[4, 77]] = np.nan
    seen = ~np.isnan(gaps)
    model = OnlineTVDenoiser(missing="skip")
    weights = np.linspace(1, 2, 300)
    display = RegretCurveDisplay.from_estimator(
        model, X, gaps, tv_budget=30, sample_weight=weights
    )
    found = model.partial_fit_predict(X, gaps, weights)[seen]
    expected = dynamic_regret(y[seen], found, tv_budget=30, sample_weight=weights[seen])
    curve = display.curves["OnlineTVDenoiser"]
    assert curve(30) == pytest.approx(expected, rel=1e-9)
    assert curve.n_samples == 298
    np.testing.assert_array_equal(display.positions, np.flatnonzero(seen) + 1)


def test_positions_that_are_none_are_refused(rows, pyplot):
    y, predictions = rows
    times = np.arange("2020-01-01", "2020-10-27", dtype="M8[D]")
    for positions, missing in [
        (np.arange(300.0), np.nan),
        (np.arange(300.0), np.inf),
        (times, np.datetime64("NaT")),
        (times.astype(object), None),
    ]:
        positions = positions.copy()
        positions[5] = missing
        with pytest.raises(ValueError, match="positions holds no position in row 5"):
            RegretCurveDisplay.from_predictions(
                y, predictions, tv_budget=1, positions=positions
            )
    with pytest.raises(TypeError, match="positions holds strings"):
        RegretCurveDisplay.from_predictions(y, predictions, positions=np.full(300, "a"))
    assert not pyplot.get_fignums()


def test_ticks_next_to_zero_are_a_decade_away(rows):
    y, predictions = rows
    for factor in (1.0, 0.3, 7e-5):
        scaled = {name: factor * x for name, x in predictions.items()}
        display = RegretCurveDisplay.from_predictions(factor * y, scaled)
        display.figure_.canvas.draw()
        for axis in (display.axes_[0].xaxis, display.axes_[0].yaxis):
            linear = axis.get_transform().linthresh
            ticks = np.asarray(axis.get_majorticklocs())
            assert np.abs(ticks[ticks != 0]).min() >= linear * (1 - 1e-12)


def test_what_the_legend_lists_is_drawn():
    display = RegretCurveDisplay.from_predictions([2.0], [1.0], tv_budget=1)
    for line in (*display.curves_.values(), display.rate_):
        assert len(line.get_xdata()) > 1
    assert [line.get_marker() for line in display.regrets_.values()] == ["o"]
