"""The comparison of denoisers: each contender is what it says, and nothing more."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit

from sktvdenoise import FusedLasso, FusedLassoCV, OnlineTVDenoiser, fused_lasso
from sktvdenoise.comparison import compare_denoisers
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle

EXAMPLE = Path(__file__).parents[1] / "examples" / "plot_comparison.py"
ONLINE, CAUSAL, PENALTY, FACTOR, SHUFFLED, STATIC, ORACLE = range(7)


@pytest.fixture(scope="module")
def signal():
    return make_signal("blocks", 120, noise=1.0, random_state=3)


@pytest.fixture(scope="module")
def compared(signal):
    y, truth = signal
    return compare_denoisers(np.arange(len(y)), y, truth=truth)


def test_the_figures_are_those_of_the_estimates(signal, compared):
    y, truth = signal
    assert_allclose(compared.tv_budgets, [0, path_variation(truth)])
    for row, loss, regret, error in zip(
        compared.contenders, compared.loss, compared.regret, compared.error
    ):
        x = row.estimate
        assert loss == pytest.approx(np.sum((y - x)[1:] ** 2), rel=1e-12)
        assert error == pytest.approx(np.sum((truth - x)[1:] ** 2), rel=1e-12)
        expected = [
            dynamic_regret(y[1:], x[1:], tv_budget=c) for c in compared.tv_budgets
        ]
        assert_allclose(regret, expected, rtol=1e-9, atol=1e-6)
        assert row.seconds >= 0


def test_the_online_denoiser_is_untuned_and_causal(signal, compared):
    y, _ = signal
    expected = OnlineTVDenoiser().partial_fit_predict(np.arange(len(y)), y)
    assert_array_equal(compared.contenders[ONLINE].estimate, expected)
    assert compared.contenders[ONLINE].sees == "earlier labels"


def test_the_causal_penalty_is_that_of_a_grid_search(signal, compared):
    y, _ = signal
    estimate = compared.contenders[CAUSAL].estimate
    assert_array_equal(estimate[:6], [0.0, *y[:5]])
    for t in (6, 40, 83, 119):
        rows = np.arange(t)
        candidates = FusedLassoCV(cv=TimeSeriesSplit(5)).fit(rows, y[:t]).alphas_
        search = GridSearchCV(
            FusedLasso(),
            {"alpha": candidates},
            scoring="neg_mean_squared_error",
            cv=TimeSeriesSplit(5),
        ).fit(rows[:, None], y[:t])
        # Rounding may decide between penalties that do alike.
        assert estimate[t] == pytest.approx(search.predict([[t]])[0], rel=1e-9)


def test_what_sees_earlier_labels_does_not_look_ahead(signal):
    y, _ = signal
    changed = y.copy()
    changed[80:] += 100.0
    pair = [
        compare_denoisers(np.arange(120), labels, retune_every=20)
        for labels in (y, changed)
    ]
    for k in (ONLINE, CAUSAL):
        one, two = (found.contenders[k].estimate for found in pair)
        assert_array_equal(one[:81], two[:81])
        assert np.all(one[82:] != two[82:])


def test_settings_in_hindsight_are_the_best(signal, compared):
    y, _ = signal
    n = len(y)
    level, levels = y[0], [0.0]
    row = compared.contenders[FACTOR]
    factor = float(row.name.split()[-1])
    for label in y[:-1]:
        level += factor * (label - level)
        levels.append(level)
    assert_allclose(row.estimate, levels, atol=0.02 * np.ptp(y))
    for other in (0.03, 0.3, 1.0):
        level, loss = y[0], 0.0
        for label in y[1:]:
            loss += (label - level) ** 2
            level += other * (label - level)
        assert compared.loss[FACTOR] <= loss * 1.01
    row = compared.contenders[PENALTY]
    alpha = float(row.name.split()[-1])
    levels = [0.0, *(fused_lasso(y[:t], alpha)[-1] for t in range(1, n))]
    assert_allclose(row.estimate, levels, atol=0.02 * np.ptp(y))
    assert row.sees == "earlier labels, tuned on all"


def test_shuffled_folds_see_all_labels_but_their_own(signal, compared):
    y, _ = signal
    rows = np.arange(len(y))
    folds = list(KFold(5, shuffle=True, random_state=0).split(rows))
    alpha = FusedLassoCV(cv=folds).fit(rows, y).alpha_
    for train, test in folds:
        model = FusedLasso(alpha).fit(train, y[train])
        assert_array_equal(
            compared.contenders[SHUFFLED].estimate[test], model.predict(test)
        )


def test_the_oracle_is_the_best_within_its_budget(signal, compared):
    y, _ = signal
    for k, budget in zip((STATIC, ORACLE), compared.tv_budgets):
        oracle = tv_oracle(y[1:], budget)
        assert_array_equal(compared.contenders[k].estimate[1:], oracle.comparator)
        assert compared.regret[k, k - STATIC] == pytest.approx(0, abs=1e-6)
    assert compared.loss[ORACLE] == compared.loss.min()


def test_the_order_of_rows_and_the_number_of_jobs_do_not_count(signal, compared):
    y, truth = signal
    order = np.random.default_rng(0).permutation(len(y))
    found = compare_denoisers(order, y[order], truth=truth[order], n_jobs=2)
    assert_array_equal(found.regret, compared.regret)
    assert_array_equal(found.error, compared.error)
    assert_array_equal(found.positions, np.arange(len(y)))


def test_other_estimators_and_budgets(signal):
    y, _ = signal
    estimators = {
        "theory": OnlineTVDenoiser(learning_rate="theory"),
        "line": SGDRegressor(random_state=0, eta0=1e-6),
    }
    found = compare_denoisers(
        np.arange(120), y, estimators=estimators, tv_budgets=[9, 3, 3]
    )
    names = [row.name for row in found.contenders]
    assert names[:2] == ["theory", "line"]
    assert names[-2:] == ["oracle, TV ≤ 3", "oracle, TV ≤ 9"]
    assert found.contenders[1].estimate[0] == 0.0
    assert found.error is None
    with pytest.raises(TypeError, match="Ridge can't learn"):
        compare_denoisers(np.arange(120), y, estimators={"ridge": Ridge()})


def test_the_table(compared):
    frame = compared.to_frame()
    assert isinstance(frame, pd.DataFrame) and frame.index.name == "denoiser"
    assert list(frame.columns[:2]) == ["sees", "loss"]
    assert list(frame.columns[-2:]) == ["error to truth", "seconds"]
    assert_array_equal(frame["regret, TV ≤ 0"], compared.regret[:, 0])
    lines = repr(compared).splitlines()
    assert len(lines) == 1 + len(compared.contenders)
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("OnlineTVDenoiser ")


def test_the_picture(compared):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    assert compared.plot() is compared
    top, bottom = compared.axes_
    labels = [text.get_text() for text in top.get_legend().get_texts()]
    names = [row.name for row in compared.contenders[:STATIC]]
    assert labels == ["observed", "truth", *names]
    for k, line in enumerate(bottom.get_lines()[:STATIC]):
        # At the end the curve is the regret against the largest budget.
        assert line.get_ydata()[-1] == pytest.approx(compared.regret[k, 1], rel=1e-9)
    compared.plot(compared.axes_, tv_budget=0)
    with pytest.raises(ValueError, match="tv_budget must be one of"):
        compared.plot(tv_budget=1)
    _, y = load_nile(return_X_y=True, as_frame=True)
    dates = pd.date_range("1871", periods=100, freq="YS")
    found = compare_denoisers(dates, y, retune_every=50).plot()
    assert found.axes_[0].get_ylabel() == "volume"
    assert "oracle, TV ≤ 247.778" in [
        text.get_text() for text in found.axes_[0].get_legend().get_texts()
    ]
    plt.close("all")


@pytest.mark.parametrize("y", [np.arange(6.0), np.ones(6), np.r_[np.zeros(6), 1.0]])
def test_short_and_constant_series(y):
    found = compare_denoisers(np.arange(len(y)), y)
    assert np.isfinite(found.loss).all() and np.isfinite(found.regret).all()
    if not np.ptp(y):
        assert_allclose(found.loss, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": np.ones(9)}, "inconsistent numbers of samples"),
        ({"y": np.r_[np.ones(9), np.nan]}, "y contains NaN.*row 9"),
        ({"y": np.ones((10, 2))}, "One output"),
        ({"X": np.ones((10, 2))}, "one position per row"),
        ({"truth": np.ones(9)}, r"truth has shape \(9,\)"),
        ({"truth": np.r_[np.ones(9), np.nan]}, "truth contains NaN.*row 9"),
        ({"tv_budgets": [1, -1]}, "tv_budget must be a finite number"),
        ({"tv_budgets": np.inf}, "tv_budget must be a finite number"),
        ({"n_splits": 1}, "n_splits must be"),
        ({"n_splits": 10}, "10 splits need more than 10 rows"),
        ({"retune_every": 0}, "retune_every must be"),
        ({"warmup_size": 10}, "warmup_size must be less than"),
        ({"X": [], "y": []}, "."),
    ],
)
def test_bad_input_is_refused(changes, message):
    good = {"X": np.arange(10), "y": np.ones(10)}
    with pytest.raises(ValueError, match=message):
        compare_denoisers(**good | changes)


@pytest.mark.skipif(not EXAMPLE.exists(), reason="tests run without the repository")
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_example_runs():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    runpy.run_path(str(EXAMPLE))
    assert len(pyplot.get_fignums()) >= 2
    pyplot.close("all")


def test_positions_without_a_place_are_refused():
    y = np.arange(10.0)
    days = np.arange("2020-01-01", "2020-01-11", dtype="M8[D]")
    for positions, missing in [
        (np.arange(10.0), np.nan),
        (np.arange(10.0), -np.inf),
        (days, np.datetime64("NaT")),
        (days.astype(object), None),
    ]:
        positions = positions.copy()
        positions[5] = missing
        with pytest.raises(ValueError, match="X holds no position in row 5"):
            compare_denoisers(positions, y)
    with pytest.raises(ValueError, match="X is masked in row 2"):
        compare_denoisers(np.ma.array(y, mask=y == 2), y)


@pytest.mark.parametrize(
    "estimators", [OnlineTVDenoiser(), [OnlineTVDenoiser()], {1: OnlineTVDenoiser()}]
)
def test_estimators_have_names(estimators):
    with pytest.raises(TypeError, match="estimators must be a dict"):
        compare_denoisers(np.arange(10), np.ones(10), estimators=estimators)
