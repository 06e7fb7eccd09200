"""OnlineTVFilter: the causal estimates of each column, in scikit-learn's company."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from sktvdenoise import OnlineTVDenoiser, OnlineTVFilter

SETTINGS = [
    {},
    dict(learning_rate="theory"),
    dict(learning_rate="mixable", bound=30.0, pruning=None),
    dict(learning_rate=0.5),
]


@pytest.fixture
def table():
    """300 rows of three columns: jumps, a wave, and a constant."""
    rng = np.random.default_rng(0)
    rows = np.arange(300)
    levels = [np.repeat([0.0, 6.0, -3.0], 100), 5 * np.sin(rows / 30), 0 * rows + 2.0]
    return np.column_stack(levels) + rng.normal(size=(300, 3)) * [1.0, 1.0, 0.0]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_estimates_are_those_of_the_denoiser(table, settings):
    rows = np.arange(len(table))
    estimates = OnlineTVFilter(**settings).fit_transform(table)
    assert_array_equal(estimates, OnlineTVDenoiser(**settings).fit(rows, table).values_)
    assert estimates.shape == table.shape


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_later_rows_and_other_columns_change_nothing(table, settings):
    model = OnlineTVFilter(**settings).fit(table)
    whole = model.transform(table)
    assert_array_equal(model.transform(table[:120]), whole[:120])
    other = table.copy()
    other[120:] *= -2
    other[:, 2] = 1.0
    assert_array_equal(model.transform(other)[:120, :2], whole[:120, :2])
    assert_array_equal(
        OnlineTVFilter(**settings).fit_transform(table[:, [2, 0]]), whole[:, [2, 0]]
    )


def test_each_call_is_a_fresh_stream(table):
    model = OnlineTVFilter().fit(1000 * table[::-1])
    expected = OnlineTVFilter().fit_transform(table)
    for _ in range(2):
        assert_array_equal(model.transform(table), expected)
    kept = {"n_features_in_": 3, **model.get_params()}
    assert vars(model) == kept


def test_noise_is_removed(table):
    rows = np.arange(300)
    level, wave = np.repeat([0.0, 6.0, -3.0], 100), 5 * np.sin(rows / 30)
    estimates = OnlineTVFilter().fit_transform(table)
    settled = rows % 100 > 10
    for column, truth in enumerate((level, wave)):
        error = np.abs(estimates[:, column] - truth)[settled]
        assert error.mean() < 0.6 * np.abs(table[:, column] - truth)[settled].mean()
    assert np.max(np.abs(estimates[:, 2] - 2.0)) < 1e-12


def test_missing_values_hold_the_estimate(table):
    with pytest.raises(ValueError, match="NaN"):
        OnlineTVFilter().fit(np.where(table > 4, np.nan, table))
    holes = table.copy()
    holes[:3, 0] = np.nan
    holes[50:60, 1] = np.nan
    holes[:, 2] = np.nan
    estimates = OnlineTVFilter(missing="skip").fit_transform(holes)
    assert_array_equal(estimates[:3, 0], 0.0)
    assert_array_equal(
        estimates[3:, 0], OnlineTVFilter().fit_transform(table[3:])[:, 0]
    )
    assert_array_equal(estimates[49:60, 1], estimates[49, 1])
    there = np.r_[0:50, 60:300]
    assert_array_equal(
        estimates[there, 1], OnlineTVFilter().fit_transform(table[there])[:, 1]
    )
    assert_array_equal(estimates[:, 2], 0.0)
    with pytest.raises(ValueError, match="infinity"):
        OnlineTVFilter(missing="skip").fit(np.where(table > 4, np.inf, table))


def test_what_is_refused(table):
    with pytest.raises(NotFittedError):
        OnlineTVFilter().transform(table)
    model = OnlineTVFilter(bound=8.0)
    far = table.copy()
    far[70, 1] = -8.5
    with pytest.raises(ValueError, match=r"X\[70\].*bound=8"):
        model.fit(far)
    with pytest.raises(ValueError, match=r"X\[70\].*bound=8"):
        model.fit(np.clip(table, -8, 8)).transform(far)
    far[70, 1] = 1e150
    with pytest.raises(ValueError, match=r"X\[70\].*too large"):
        OnlineTVFilter().fit(far)
    with pytest.raises(ValueError, match="2 features"):
        OnlineTVFilter().fit(table).transform(table[:, :2])
    for wrong in (dict(learning_rate=0.0), dict(pruning="no"), dict(missing=None)):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            OnlineTVFilter(**wrong).fit(table)


def test_the_callers_table_is_left_alone(table):
    before = table.copy()
    table.setflags(write=False)
    estimates = OnlineTVFilter().fit_transform(table)
    assert_array_equal(table, before)
    assert not np.shares_memory(estimates, table)
    assert_array_equal(
        OnlineTVFilter().fit_transform(np.asfortranarray(table)), estimates
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_names(table, library):
    frames = pytest.importorskip(library)
    if library == "polars" and not hasattr(frames.DataFrame, "__dataframe__"):
        # scikit-learn reads the names of today's polars from 1.8 on.
        pytest.importorskip("sklearn", minversion="1.8")
    names = ["level", "wave", "constant"]
    frame = frames.DataFrame(dict(zip(names, table.T)))
    model = OnlineTVFilter().set_output(transform=library).fit(frame)
    estimates = model.transform(frame)
    assert isinstance(estimates, frames.DataFrame)
    assert list(estimates.columns) == names
    assert list(model.get_feature_names_out()) == names
    expected = OnlineTVFilter().fit_transform(table)
    assert_array_equal(estimates.to_numpy(), expected)

    columns = ColumnTransformer(
        [("denoised", OnlineTVFilter(), ["wave", "level"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform=library)
    mixed = columns.fit_transform(frame)
    assert list(mixed.columns) == ["wave", "level", "constant"]
    assert_array_equal(mixed["wave"].to_numpy(), expected[:, 1])
    assert_array_equal(mixed["constant"].to_numpy(), table[:, 2])
    if library == "pandas":
        late = frame.set_index(np.arange(300) + 7)
        assert_array_equal(model.transform(late).index, late.index)


def test_denoised_features_help_a_regressor():
    """A label that depends on the level that noisy features show."""
    rng = np.random.default_rng(1)
    level = np.repeat(rng.normal(0, 3, size=(20, 2)), 50, axis=0)
    X = level + rng.normal(size=level.shape)
    y = level @ [2.0, -1.0] + 0.1 * rng.normal(size=1000)
    model = make_pipeline(OnlineTVFilter(), LinearRegression())
    folds = TimeSeriesSplit(4)
    denoised = cross_val_score(clone(model), X, y, cv=folds, error_score="raise")
    raw = cross_val_score(LinearRegression(), X, y, cv=folds)
    assert 1 - denoised.mean() < 0.7 * (1 - raw.mean())


ORDER = "rows are a stream: an estimate depends on the rows before it"
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": ORDER,
    "check_methods_subset_invariance": ORDER,
}


@pytest.mark.parametrize(
    "settings",
    [{}, dict(learning_rate="mixable", pruning=None), dict(missing="skip")],
    ids=str,
)
def test_estimator_checks_of_scikit_learn(settings):
    """All checks pass but the declared ones, and those do fail."""
    results = check_estimator(
        OnlineTVFilter(**settings),
        on_fail=None,
        on_skip=None,
        expected_failed_checks=EXPECTED_FAILURES,
    )
    by_status = {"passed": [], "failed": [], "xfail": [], "skipped": []}
    for result in results:
        by_status[result["status"]].append((result["check_name"], result["exception"]))
    assert by_status["failed"] == []
    assert {name for name, _ in by_status["xfail"]} == set(EXPECTED_FAILURES)
    assert len(by_status["passed"]) >= 40


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_rows_learned_are_those_before(table, settings):
    whole = OnlineTVFilter(**settings).fit_transform(table)
    model = OnlineTVFilter(**settings)
    assert model.partial_fit(table[:100]) is model
    for _ in range(2):
        assert_array_equal(model.transform(table[100:]), whole[100:])
    for t in range(100, 110):
        found = model.partial_fit_transform(table[t : t + 1])
        assert_array_equal(found, whole[t : t + 1])
    kept = pickle.dumps(model)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[1.0, np.nan, 0.0]])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(table[:, :2])
    assert pickle.dumps(model) == kept
    assert_array_equal(pickle.loads(kept).transform(table[110:]), whole[110:])
    # fit begins anew.
    assert_array_equal(model.fit(table).transform(table), whole)
