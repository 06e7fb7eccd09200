"""OnlineTVDenoiser at the door: positions, parameters, bad rows, kinds of arrays."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from sktvdenoise import OnlineTVDenoiser

RATES = [0.7, "theory", "mixable", "auto"]

# ---------------------------------------------------------------- positions


def test_predict_is_the_forecast_after_all_labels_up_to_a_position(stream):
    X, y, w = stream
    for learning_rate in RATES:
        model = OnlineTVDenoiser(learning_rate=learning_rate).fit(X, y, w)
        x = X.ravel()
        assert_array_equal(model.positions_, x)
        queries = np.random.default_rng(3).permutation(
            np.concatenate([x, x + 0.3, [-5.0, -0.1, 1e9]])
        )
        expected = [model.values_[max(np.sum(x <= q) - 1, 0)] for q in queries]
        assert_array_equal(model.predict(queries[:, None]), expected)
        for t in (1, 60, 133):  # a position's estimate is that of the prefix
            while x[t] == x[t - 1]:
                t += 1
            prefix = OnlineTVDenoiser(learning_rate=learning_rate).fit(
                X[:t], y[:t], w[:t]
            )
            assert_array_equal(model.predict(X[t - 1 : t]), prefix.predict([[1e9]]))


def test_values_are_the_next_predictions(stream):
    X, y, w = stream
    for learning_rate in RATES:
        model = OnlineTVDenoiser(learning_rate=learning_rate)
        outputs = model.partial_fit_predict(X, y, w)
        assert outputs[0] == 0
        assert_array_equal(model.values_[:-1], outputs[1:])
        assert_array_equal(model.predict([[1e9]]), model.values_[-1:])


def test_without_history_only_the_present_is_known(stream):
    X, y, w = stream
    model = OnlineTVDenoiser(keep_history=False).fit(X, y, w)
    full = OnlineTVDenoiser().fit(X, y, w)
    now = np.array([X[-1], X[-1] + 1])
    assert_array_equal(model.predict(now), full.predict(now))
    with pytest.raises(ValueError):
        model.predict(X[-1:] - 0.5)
    with pytest.raises(ValueError):
        model.predict(np.vstack([now, X[:1]]))


def test_forecast_stays_current_when_history_is_switched(stream):
    X, y, w = stream
    whole = OnlineTVDenoiser().fit(X, y, w)
    for before in (True, False):
        model = OnlineTVDenoiser(keep_history=before)
        model.partial_fit(X[:90], y[:90], w[:90])
        model.set_params(keep_history=not before)
        model.partial_fit(X[90:], y[90:], w[90:])
        assert_array_equal(model.predict([[1e9]]), whole.predict([[1e9]]))


def test_without_history_the_state_stays_small():
    y = np.random.default_rng(4).normal(size=20_000)
    X = np.arange(20_000.0)[:, None]
    model = OnlineTVDenoiser(keep_history=False)
    early = len(pickle.dumps(model.partial_fit(X[:1000], y[:1000])))
    late = len(pickle.dumps(model.partial_fit(X[1000:], y[1000:])))
    assert late < early + 4000 and late < 100_000


def test_fit_sorts_by_position_and_keeps_ties_in_order(stream, assert_same):
    X, y, w = stream
    rng = np.random.default_rng(5)
    order = np.argsort(rng.permutation(X.ravel().astype(int) % 7), kind="stable")
    X_mixed, y_mixed, w_mixed = X[order], y[order], w[order]
    back = np.argsort(X_mixed.ravel(), kind="stable")
    mixed = OnlineTVDenoiser().fit(X_mixed, y_mixed, w_mixed)
    ordered = OnlineTVDenoiser().fit(X_mixed[back], y_mixed[back], w_mixed[back])
    assert_same(mixed, ordered)
    assert np.any(X_mixed != X)


def test_order_counts_and_spacing_does_not(stream):
    _, y, w = stream
    plain = OnlineTVDenoiser().fit(np.arange(200.0)[:, None], y, w)
    uneven = OnlineTVDenoiser().fit(np.exp(np.arange(200.0) / 9)[:, None], y, w)
    assert_array_equal(plain.values_, uneven.values_)


def test_going_back_names_the_row(stream):
    X, y, _ = stream
    for method in ("partial_fit", "partial_fit_predict"):
        model = OnlineTVDenoiser()
        with pytest.raises(ValueError, match=r"\[2\]|row 2\b"):
            getattr(model, method)([[0.0], [2.0], [1.0], [3.0]], y[:4])
        model = OnlineTVDenoiser().fit(X, y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"\[0\]|row 0\b"):
            getattr(model, method)(X[-1:] - 1, y[:1])
        assert pickle.dumps(model) == before
        getattr(model, method)(X[-1:], y[:1])  # an equal position is allowed
        assert model.n_samples_seen_ == 201


# ---------------------------------------------------------------- parameters


PAIRS = {
    "learning_rate": [(0.1, 1.0), ("theory", "mixable"), ("auto", "theory")],
    "bound": [(8.0, 80.0), (None, 80.0)],
    "pruning": [("aflh", None)],
}


@pytest.mark.parametrize("name", PAIRS)
def test_numeric_parameters_count(stream, name):
    X, y, _ = stream
    for left, right in PAIRS[name]:
        base = {"learning_rate": "theory"} if name != "learning_rate" else {}
        one = OnlineTVDenoiser(**{**base, name: left}).partial_fit_predict(X, y)
        other = OnlineTVDenoiser(**{**base, name: right}).partial_fit_predict(X, y)
        assert np.max(np.abs(one - other)) > 1e-3


@pytest.mark.parametrize("learning_rate", [0.7, "auto"])
def test_bound_is_inert_at_rates_without_guarantee(stream, learning_rate):
    X, y, _ = stream
    learnt = OnlineTVDenoiser(learning_rate=learning_rate).fit(X, y)
    given = OnlineTVDenoiser(learning_rate=learning_rate, bound=80.0).fit(X, y)
    assert_array_equal(learnt.values_, given.values_)
    assert given.bound_ == 80.0
    assert np.abs(y).max() <= learnt.bound_ <= 2 * np.abs(y).max()


def test_other_parameters_count(stream):
    X, y, _ = stream
    assert hasattr(OnlineTVDenoiser().fit(X, y), "values_")
    assert not hasattr(OnlineTVDenoiser(keep_history=False).fit(X, y), "values_")
    y[3] = np.nan
    OnlineTVDenoiser(missing="skip").fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        OnlineTVDenoiser(missing="error").fit(X, y)


@pytest.mark.parametrize(
    "wrong",
    [
        dict(learning_rate="best"),
        dict(learning_rate=0.0),
        dict(learning_rate=-1.0),
        dict(learning_rate=np.nan),
        dict(bound=0.0),
        dict(bound=-1.0),
        dict(bound="auto"),
        dict(pruning="all"),
        dict(keep_history="yes"),
        dict(missing="drop"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(stream, wrong):
    X, y, _ = stream
    for method in ("fit", "partial_fit", "partial_fit_predict"):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            getattr(OnlineTVDenoiser(**wrong), method)(X, y)


def test_parameters_are_stored_untouched():
    bound, rate = np.float32(3.0), 1
    model = OnlineTVDenoiser(learning_rate=rate, bound=bound)
    assert model.get_params()["bound"] is bound
    model.fit([[0.0], [1.0]], [1.0, 2.0])
    assert model.bound is bound and model.learning_rate is rate
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("learning_rate", RATES)
def test_label_beyond_the_bound_names_the_row(stream, learning_rate):
    X, y, _ = stream
    model = OnlineTVDenoiser(learning_rate=learning_rate, bound=20.0).fit(X, y)
    before = pickle.dumps(model)
    for label in (20.5, -1e9):
        with pytest.raises(ValueError, match=r"\[2\]|row 2\b"):
            model.partial_fit([[900.0], [901.0], [902.0]], [1.0, -20.0, label])
        assert pickle.dumps(model) == before
    model.partial_fit([[900.0], [901.0]], [20.0, -20.0])  # the bound itself is allowed


# ---------------------------------------------------------------- bad rows


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", [np.array, pd.Series, "frame"])
def test_not_finite_labels_are_refused(bad, container):
    y = np.array([1.0, bad, 2.0])
    y = pd.DataFrame({"y": y}) if container == "frame" else container(y)
    X = np.arange(3.0)[:, None]
    word = "NaN" if np.isnan(bad) else "infinity"
    fresh = OnlineTVDenoiser()
    fitted = OnlineTVDenoiser().fit(X, [1.0, 2.0, 3.0])
    before = pickle.dumps(fitted)
    with pytest.raises(ValueError, match=word):
        fresh.fit(X, y)
    with pytest.raises(ValueError, match=word):
        fitted.score(X, y)
    for method in (fitted.partial_fit, fitted.partial_fit_predict):
        with pytest.raises(ValueError, match=word):
            method(X + 10, y)
    assert pickle.dumps(fitted) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("container", [np.array, pd.Series, pd.DataFrame])
def test_not_finite_positions_are_refused(bad, container):
    X = container(np.array([10.0, bad, 12.0]))
    word = "NaN" if np.isnan(bad) else "infinity"
    for missing in ("error", "skip"):
        model = OnlineTVDenoiser(missing=missing).fit([[0.0]], [1.0])
        before = pickle.dumps(model)
        for method in (model.partial_fit, model.partial_fit_predict, model.score):
            with pytest.raises(ValueError, match=word):
                method(X, [1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match=word):
            model.predict(X)
        assert pickle.dumps(model) == before


def test_infinite_labels_are_refused_even_where_missing_ones_are_skipped():
    model = OnlineTVDenoiser(missing="skip")
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.arange(3.0)[:, None], [1.0, np.inf, 2.0])


@pytest.mark.parametrize(
    "weight",
    [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0], [1.0, np.nan, 1.0], [np.inf] * 3],
    ids=str,
)
def test_bad_weights_are_refused(weight):
    X, y = np.arange(3.0)[:, None], np.array([1.0, 2.0, 3.0])
    with pytest.raises(ValueError):
        OnlineTVDenoiser().fit(X, y, sample_weight=weight)
    if np.any(weight):  # a batch of nothing but zeros is a legitimate pause
        model = OnlineTVDenoiser().fit(X, y)
        before = pickle.dumps(model)
        with pytest.raises(ValueError):
            model.partial_fit(X + 10, y, sample_weight=weight)
        assert pickle.dumps(model) == before


def test_wrong_shapes_name_both():
    X, y = np.arange(4.0)[:, None], np.ones(5)
    with pytest.raises(ValueError, match=r"4.*5"):
        OnlineTVDenoiser().fit(X, y)
    with pytest.raises(ValueError):
        OnlineTVDenoiser().fit(np.ones((4, 2)), y[:4])
    with pytest.raises(ValueError):
        OnlineTVDenoiser().fit(X, np.ones((4, 1, 1)))
    with pytest.raises(ValueError):
        OnlineTVDenoiser().fit(X, 3.0)
    with pytest.raises(NotFittedError):
        OnlineTVDenoiser().predict(X)


def test_column_of_labels_never_broadcasts(stream):
    X, y, _ = stream
    flat = OnlineTVDenoiser()
    expected = flat.partial_fit_predict(X, y)
    column = OnlineTVDenoiser()
    outputs = column.partial_fit_predict(X, y[:, None])
    assert outputs.shape in {(200,), (200, 1)}
    assert_array_equal(np.ravel(outputs), expected)
    assert np.size(column.predict(X)) == 200
    assert np.isfinite(column.score(X, y[:, None]))


def test_positions_may_be_flat(stream, assert_same):
    X, y, w = stream
    flat = OnlineTVDenoiser().fit(X.ravel(), y, w)
    assert_same(flat, OnlineTVDenoiser().fit(X, y, w))
    assert_array_equal(flat.predict(X.ravel()), flat.predict(X))


# ---------------------------------------------------------------- kinds of arrays


def test_kinds_of_arrays(tmp_path):
    rng = np.random.default_rng(6)
    base = rng.integers(0, 200, size=60).astype(float)
    X = np.arange(60.0)[:, None]
    expected = OnlineTVDenoiser().fit(X, base).values_
    stored = np.memmap(tmp_path / "y", dtype=float, mode="w+", shape=60)
    stored[:] = base
    stored.flush()
    strided = np.repeat(base, 2)
    kinds = {
        "reversed": base[::-1].copy()[::-1],
        "strided": strided[::2],
        "memmap": np.memmap(tmp_path / "y", dtype=float, mode="r"),
        "uint8": base.astype(np.uint8),
        "int32": base.astype(np.int32),
        "float32": base.astype(np.float32),
        "big-endian": base.astype(">f8"),
        "object": base.astype(object),
        "list": list(base),
        "Series": pd.Series(base, index=np.arange(60)[::-1]),
        "nullable": pd.Series(base, dtype="Float64"),
        "nullable int": pd.Series(base.astype(int), dtype="Int64"),
        "polars": pl.Series(base),
    }
    for kind, y in kinds.items():
        before = copy.deepcopy(y)
        model = OnlineTVDenoiser().fit(X, y)
        assert_array_equal(model.values_, expected, err_msg=kind)
        assert_array_equal(np.asarray(y), np.asarray(before), err_msg=kind)


def test_differences_of_small_integers_and_booleans_do_not_wrap():
    X = np.arange(40.0)[:, None]
    y = np.random.default_rng(7).integers(0, 2, size=40)
    expected = OnlineTVDenoiser().fit(X, y.astype(float)).values_
    assert_array_equal(OnlineTVDenoiser().fit(X, y.astype(bool)).values_, expected)
    assert_array_equal(
        OnlineTVDenoiser().fit(X, (255 * y).astype(np.uint8)).values_,
        OnlineTVDenoiser().fit(X, 255.0 * y).values_,
    )


def test_kinds_of_tables(stream):
    X, y, _ = stream
    Y = np.column_stack([y, -y, y**2])
    expected = OnlineTVDenoiser().fit(X, Y)
    for tables in (
        (np.asfortranarray(X), np.asfortranarray(Y)),
        (pd.DataFrame(X, columns=["x"]), pd.DataFrame(Y, columns=list("abc"))),
        (pl.DataFrame(X, schema=["x"]), pl.DataFrame(Y, schema=list("abc"))),
        (X.astype(np.int16), Y[::-1][::-1]),
    ):
        model = OnlineTVDenoiser().fit(*tables)
        assert_array_equal(model.values_, expected.values_)
        assert_array_equal(model.predict(tables[0]), expected.predict(X))


def test_the_callers_arrays_are_neither_changed_nor_kept(stream):
    X, y, w = (np.ascontiguousarray(a) for a in stream)
    copies = X.copy(), y.copy(), w.copy()
    model = OnlineTVDenoiser().fit(X, y, w)
    for array, before in zip((X, y, w), copies):
        assert_array_equal(array, before)
    state = pickle.dumps(model)
    X[:], y[:], w[:] = -1.0, 1e6, 0.0
    assert pickle.dumps(model) == state
    outputs = model.predict([[0.0], [1e9]])
    outputs[:] = 1e6
    assert pickle.dumps(model) == state


def test_missing_values_of_pandas(assert_same):
    X = np.arange(3.0)[:, None]
    y = pd.Series([1.0, pd.NA, 2.0], dtype="Float64")
    with pytest.raises(ValueError, match="NaN"):
        OnlineTVDenoiser().fit(X, y)
    skipped = OnlineTVDenoiser(missing="skip").fit(X, y)
    expected = OnlineTVDenoiser(missing="skip").fit(X, [1.0, np.nan, 2.0])
    assert_same(skipped, expected)


def test_dates_as_positions_are_taken_in_order_or_refused_clearly():
    days = pd.date_range("2024-01-01", periods=30)
    y = np.random.default_rng(8).normal(size=30)
    expected = OnlineTVDenoiser().fit(np.arange(30.0)[:, None], y).values_
    for X in (days, pd.Series(days), days.to_numpy()[:, None]):
        try:
            model = OnlineTVDenoiser().fit(X, y)
        except (ValueError, TypeError) as error:
            assert "date" in str(error).lower()
        else:
            assert_array_equal(model.values_, expected)


def test_channels_in_any_order(stream):
    X, y, w = stream
    Y = np.column_stack([y, np.cumsum(y), y[::-1]])
    model = OnlineTVDenoiser().fit(X, Y, w)
    shuffled = OnlineTVDenoiser().fit(X, Y[:, [2, 0, 1]], w)
    assert_array_equal(model.values_[:, [2, 0, 1]], shuffled.values_)
    assert model.predict(X).shape == (200, 3)


# ---------------------------------------------------------------- scikit-learn


class FirstColumnDenoiser(OnlineTVDenoiser):
    """The denoiser on tables of features: their first column is the position.

    Most of scikit-learn's checks need estimators that take several features.
    """

    def fit(self, X, y, sample_weight=None):
        super().fit(self._first_column(X, reset=True), y, sample_weight)
        validate_data(self, X, reset=True, skip_check_array=True)
        return self

    def partial_fit(self, X, y, sample_weight=None):
        first = not hasattr(self, "n_samples_seen_")
        column = self._first_column(X, reset=first)
        super().partial_fit(column, y, sample_weight)
        if first:
            validate_data(self, X, reset=True, skip_check_array=True)
        return self

    def predict(self, X):
        check_is_fitted(self)
        return super().predict(self._first_column(X, reset=False))

    def _first_column(self, X, reset):
        return validate_data(self, X, reset=reset, dtype=np.float64)[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.regressor_tags.poor_score = True  # one feature of ten
        return tags


GOES_BACK = "partial_fit is given rows whose positions go back, which it refuses"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a row of weight 2 is one round with twice the loss, two equal rows are two "
        "rounds"
    ),
    "check_fit_score_takes_y": GOES_BACK,
    "check_n_features_in_after_fitting": GOES_BACK,
    "check_estimators_partial_fit_n_features": GOES_BACK,
}


@pytest.mark.parametrize(
    "model, expected_failures",
    [
        (FirstColumnDenoiser(), EXPECTED_FAILURES),
        (FirstColumnDenoiser(learning_rate="theory", pruning=None), EXPECTED_FAILURES),
        (
            FirstColumnDenoiser(learning_rate="mixable", missing="skip"),
            EXPECTED_FAILURES,
        ),
    ],
    ids=["default", "theory", "skip"],
)
def test_estimator_checks_of_scikit_learn(model, expected_failures):
    """All checks pass but the declared ones, and those do fail."""
    results = check_estimator(
        model,
        on_fail=None,
        on_skip=None,
        expected_failed_checks=expected_failures,
    )
    by_status = {"passed": [], "failed": [], "xfail": [], "skipped": []}
    for result in results:
        by_status[result["status"]].append((result["check_name"], result["exception"]))
    assert by_status["failed"] == []
    assert {name for name, _ in by_status["xfail"]} == set(expected_failures)
    assert len(by_status["passed"]) >= 50
