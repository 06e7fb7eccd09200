"""The display of coefficients: what is drawn is what was learned."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.preprocessing import StandardScaler

from sktvdenoise import (
    CoefficientPathDisplay,
    FLHClassifier,
    FLHRegressor,
    dynamic_regret,
    tv_oracle,
)
from sktvdenoise.datasets import make_drifting_regression
from sktvdenoise.metrics import path_variation

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    """Rows, labels and true coefficients with the intercept last."""
    X, y, coef, intercept = make_drifting_regression(
        300, 2, noise=0.3, offset=1.0, random_state=0
    )
    return X, y, np.column_stack([coef, intercept])


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def xy(line):
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_lines_are_the_coefficients_after_each_block(rows):
    X, y, truth = rows
    model = FLHRegressor("ridge", learning_rate=5.0)
    display = CoefficientPathDisplay.from_estimator(
        model, X, y, tv_budget=6.0, truth=truth
    )
    assert len(display.positions) == 200 and display.positions[-1] == 300
    seen = display.positions.astype(int)
    oracle = tv_oracle(y, 6.0, X=with_ones(X)).comparator
    assert path_variation(oracle) <= 6 * (1 + 1e-9)
    for n in (seen[0], seen[77], 300):
        step = int(np.flatnonzero(seen == n)[0])
        fitted = clone(model).fit(X[:n], y[:n])
        expected = np.append(fitted.coef_, fitted.intercept_)
        for k in range(3):
            for line, value in (
                (display.coefficients_["FLHRegressor"][k], expected[k]),
                (display.oracle_[k], oracle[n - 1, k]),
                (display.truth_[k], truth[n - 1, k]),
            ):
                at, drawn = xy(line)
                assert at[step] == n and drawn[step] == value
                assert line.axes is display.axes_[k]
    assert [ax.get_ylabel() for ax in display.axes_] == ["x0", "x1", "intercept"]
    assert display.axes_[-1].get_xlabel() == "row"
    assert texts(display.axes_[0]) == ["truth", "FLHRegressor", "oracle, TV ≤ 6"]


def test_the_oracle_is_that_of_the_dynamic_regret(rows):
    """Its predictions have no regret; the model's have what dynamic_regret says."""
    X, y, truth = rows
    budget = path_variation(truth)
    display = CoefficientPathDisplay.from_estimator(
        FLHRegressor(), X[:150], y[:150], tv_budget=budget
    )
    assert len(display.positions) == 150  # every row
    best = np.sum(with_ones(X[:150]) * display.oracle, axis=1)
    regret = [
        dynamic_regret(y[:150], z, tv_budget=budget, X=with_ones(X[:150]))
        for z in (best, FLHRegressor().partial_fit_predict(X[:150], y[:150]))
    ]
    assert abs(regret[0]) < 1e-9 * np.sum(y**2) < regret[1] < 0.5 * np.sum(y**2)


def test_without_an_intercept_there_is_no_panel_for_it(rows):
    X, y, _ = rows
    still = FLHRegressor("ons", learning_rate=1.0, fit_intercept=False)
    display = CoefficientPathDisplay.from_estimator(still, X, y, tv_budget=3.0)
    assert display.names == ["x0", "x1"] and len(display.axes_) == 2
    assert_array_equal(display.oracle[-1], tv_oracle(y, 3.0, X=X).comparator[-1])
    models = {"without": still, "with": FLHRegressor()}
    display = CoefficientPathDisplay.from_estimator(models, X, y)
    assert len(display.axes_) == 3 and display.oracle_ == display.truth_ == []
    assert not display.coefficients["without"][:, 2].any()
    assert display.coefficients["with"][:, 2].any()


@pytest.mark.parametrize("kind", ["poisson", "logistic", "squared_error"])
def test_the_oracle_has_the_loss_of_the_estimator(rows, kind):
    X, y, _ = rows
    X, y, loss = X[:120], y[:120], kind
    if kind == "poisson":
        y = np.floor(np.exp(y / 2))
        model = FLHRegressor(loss="poisson")
    elif kind == "logistic":
        model, y = FLHClassifier(), np.where(y > np.median(y), "up", "down")
    else:
        model, loss = SGDRegressor(random_state=0), "squared"
    display = CoefficientPathDisplay.from_estimator(model, X, y, tv_budget=2.0)
    labels = y == "up" if kind == "logistic" else y
    expected = tv_oracle(labels, 2.0, X=with_ones(X), loss=loss).comparator
    assert_array_equal(display.oracle, expected)


def test_weights_reach_the_estimator_and_the_oracle(rows):
    X, y, _ = rows
    w = np.linspace(0, 3, len(y))
    display = CoefficientPathDisplay.from_estimator(
        FLHRegressor(), X, y, tv_budget=4.0, sample_weight=w
    )
    expected = FLHRegressor().fit(X, y, w).coef_
    assert_array_equal(display.coefficients["FLHRegressor"][-1, :2], expected)
    oracle = tv_oracle(y, 4.0, X=with_ones(X), sample_weight=w).comparator
    assert_array_equal(display.oracle[-1], oracle[-1])


def test_given_coefficients(rows):
    X, y, truth = rows
    display = CoefficientPathDisplay.from_coefficients(X, y, truth, tv_budget=5.0)
    assert_array_equal(display.coefficients["coefficients"], truth)
    assert_array_equal(display.positions, np.arange(1, 301))
    assert_array_equal(display.oracle, tv_oracle(y, 5.0, X=with_ones(X)).comparator)
    many = np.random.default_rng(0).normal(size=(5000, 1))
    display = CoefficientPathDisplay.from_coefficients(
        many, many[:, 0], {"one": many, "two": -many}, fit_intercept=False
    )
    assert len(display.positions) == 2000 and display.positions[-1] == 5000
    assert display.coefficients["two"][-1, 0] == -many[-1, 0]


def test_names_and_positions(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=["price $a_$", "b"])
    hours = np.datetime64("2020-01-02T00") + np.arange(300)
    display = CoefficientPathDisplay.from_estimator(
        FLHRegressor(), frame, pd.Series(y), positions=hours, position_name="time"
    )
    display.figure_.canvas.draw()
    assert display.names == ["price $a_$", "b", "intercept"]
    assert display.axes_[0].get_ylabel() == r"price \$a_\$"
    assert display.axes_[-1].get_xlabel() == "time"
    assert "2020" in display.axes_[-1].xaxis.get_major_formatter().get_offset()
    assert display.positions[-1] == hours[-1]


def test_lines_are_told_apart(rows):
    X, y, truth = rows
    models = {str(k): FLHRegressor("ogd", learning_rate=1.0) for k in range(9)}
    display = CoefficientPathDisplay.from_estimator(
        models, X[:50], y[:50], tv_budget=1.0, truth=truth[:50]
    )
    lines = [found[0] for found in display.coefficients_.values()]
    lines += [display.oracle_[0], display.truth_[0]]
    looks = {(line.get_color(), str(line._dash_pattern)) for line in lines}
    assert len(looks) == 11
    display.figure_.canvas.draw()
    box = display.axes_[0].get_legend().get_window_extent()
    assert box.y0 >= display.axes_[0].get_window_extent().y1 - 1  # above the lines


def test_given_axes_features_and_styles_are_used(rows, pyplot):
    X, y, truth = rows
    figure, axes = pyplot.subplots(3)
    display = CoefficientPathDisplay.from_estimator(
        FLHRegressor(),
        X,
        y,
        tv_budget=1.0,
        truth=truth,
        axes=axes,
        features=["intercept", "x0"],
        coefficients_kwargs={"lw": 7},
        oracle_kwargs={"c": "red"},
        truth_kwargs={"label": "really"},
    )
    assert display.axes_ == list(axes[:2]) and display.figure_ is figure
    assert not axes[2].lines and axes[0].get_ylabel() == "intercept"
    assert_array_equal(xy(display.oracle_[0])[1], display.oracle[:, 2])
    assert display.coefficients_["FLHRegressor"][1].get_linewidth() == 7
    assert display.oracle_[0].get_color() == "red"
    assert texts(axes[0])[0] == "really"
    assert display.plot() is display and len(display.axes_) == 3
    with pytest.raises(ValueError, match="3 coefficients need as many axes, got 2"):
        display.plot(axes[:2])
    for features in (["x9"], []):
        with pytest.raises(ValueError, match=r"some of \['x0', 'x1', 'intercept'\]"):
            display.plot(features=features)


def test_given_estimators_are_not_changed(rows):
    X, y, _ = rows
    model = FLHRegressor().fit(X, y)
    before = pickle.dumps(model)
    CoefficientPathDisplay.from_estimator(model, X, -y)
    assert pickle.dumps(model) == before


def test_what_is_refused(rows):
    X, y, truth = rows
    draw = CoefficientPathDisplay.from_estimator
    given = CoefficientPathDisplay.from_coefficients
    with pytest.raises(TypeError, match="LinearRegression has no partial_fit"):
        draw(LinearRegression(), X, y)
    with pytest.raises(TypeError, match="StandardScaler has no coef_"):
        draw(StandardScaler(), X, y)
    with pytest.raises(ValueError, match="FLHRegressor has 2"):
        draw(FLHRegressor(), X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="FLHClassifier has 3"):
        draw(FLHClassifier(), X, np.arange(300) % 3)
    with pytest.raises(ValueError, match="no estimators"):
        draw({}, X, y)
    with pytest.raises(ValueError, match="no coefficients"):
        given(X, y, {})
    with pytest.raises(ValueError, match=r"shape \(300, 3\), got \(300, 2\)"):
        given(X, y, truth[:, :2])
    with pytest.raises(ValueError, match=r"truth must .* \(300, 3\)"):
        draw(FLHRegressor(), X, y, truth=truth[:5])
    with pytest.raises(ValueError, match=r"positions must .* \(300,\)"):
        draw(FLHRegressor(), X, y, positions=[1, 2])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        draw(FLHRegressor(), X, y[:-1])
    with pytest.raises(ValueError, match="tv_budget"):
        draw(FLHRegressor(), X, y, tv_budget=-1.0)
    bad = X.copy()
    bad[7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        draw(FLHRegressor(), bad, y)


def test_matplotlib_is_imported_only_to_draw(monkeypatch):
    code = """
import sys, sktvdenoise.plotting
assert "matplotlib" not in sys.modules
from matplotlib.figure import Figure
axes = Figure().subplots(2)
draw = sktvdenoise.plotting.CoefficientPathDisplay.from_coefficients
draw([[1], [2]], [1, 1], [[1, 0], [1, 0]], tv_budget=1, axes=axes)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="requires matplotlib"):
        CoefficientPathDisplay.from_estimator(FLHRegressor(), [[1], [2]], [1, 1])
