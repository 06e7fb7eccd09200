"""Positions, labels and weights are read alike whatever holds them."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator

from sktvdenoise._positions import (
    check_labels,
    check_positions,
    check_squares,
    check_weights,
    step_predict,
)

NUMBERS = np.array([3.0, 1.0, 2.0, 2.0])


@pytest.mark.parametrize(
    "X",
    [
        NUMBERS,
        NUMBERS[:, None],
        NUMBERS.tolist(),
        [[v] for v in NUMBERS],
        NUMBERS.astype(np.uint8),
        NUMBERS.astype(np.float32)[:, None],
        NUMBERS.astype(object),
        np.repeat(NUMBERS, 2)[::2],
        pd.Series(NUMBERS, name="t"),
        pd.Series(NUMBERS, dtype="Float64"),
        pd.DataFrame({"t": NUMBERS}),
        pl.Series("t", NUMBERS),
        pl.DataFrame({"t": NUMBERS}),
    ],
    ids=lambda X: f"{type(X).__module__.split('.')[0]}-{type(X).__name__}",
)
def test_positions_of_every_container(X):
    estimator = BaseEstimator()
    positions = check_positions(estimator, X, reset=True)
    assert positions.dtype == np.float64
    np.testing.assert_array_equal(positions, NUMBERS)
    assert estimator.n_features_in_ == 1
    np.testing.assert_array_equal(check_positions(estimator, X, reset=False), NUMBERS)


def test_names_are_those_of_the_last_fit():
    estimator = BaseEstimator()
    check_positions(estimator, pd.DataFrame({"year": NUMBERS}), reset=True)
    assert list(estimator.feature_names_in_) == ["year"]
    check_positions(estimator, NUMBERS, reset=True)
    assert not hasattr(estimator, "feature_names_in_")


@pytest.mark.parametrize(
    "X, message",
    [
        ([0.0, np.nan, 1.0], r"X contains NaN \(first in row 1\)"),
        ([[0.0], [1.0], [-np.inf]], r"X contains infinity \(first in row 2\)"),
        (pd.Series([0.0, pd.NA], dtype="Float64"), r"X contains NaN"),
        (pd.Series([0.0, pd.NA], dtype=object), r"X contains NaN"),
        (pd.DataFrame({"t": [0.0, pd.NA]}), r"X contains NaN"),
        (pd.DataFrame({"t": [0.0, pd.NA]}, dtype="Float64"), r"X contains NaN"),
        (pl.Series([0.0, None]), r"X contains NaN"),
        (np.zeros((3, 2)), r"\(3, 2\)"),
        ([], "0 sample"),
        (np.zeros((0, 1)), "0 sample"),
        (np.zeros((2, 1, 1)), "dim 3"),
        (3.0, "scalar"),
    ],
)
def test_bad_positions(X, message):
    with pytest.raises(ValueError, match=message):
        check_positions(BaseEstimator(), X, reset=True)


@pytest.mark.parametrize(
    "X",
    [
        pd.date_range("2020-01-01", periods=3),
        pd.Series(pd.date_range("2020-01-01", periods=3, tz="UTC")),
        pl.Series([datetime.date(2020, 1, d) for d in (1, 2, 3)]),
        [datetime.datetime(2020, 1, d) for d in (1, 2, 3)],
        np.arange(3).astype("timedelta64[s]")[:, None],
    ],
)
def test_dates_are_refused(X):
    with pytest.raises(TypeError, match="Positions are numbers"):
        check_positions(BaseEstimator(), X, reset=True)


@pytest.mark.parametrize(
    "y",
    [
        NUMBERS.astype(np.uint8),
        NUMBERS.astype(np.float32),
        NUMBERS.astype(object),
        pd.Series(NUMBERS, dtype="Int64"),
        pl.Series(NUMBERS),
        NUMBERS[::-1][::-1],
    ],
)
def test_labels_of_every_container(y):
    labels = check_labels(y, 4)
    assert labels.dtype == np.float64 and labels.flags.c_contiguous
    np.testing.assert_array_equal(labels, NUMBERS)


def test_labels_keep_their_dimensions():
    assert check_labels(NUMBERS).shape == (4,)
    assert check_labels(NUMBERS[:, None]).shape == (4, 1)
    fortran = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    assert check_labels(fortran).flags.c_contiguous


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_missing_labels(missing):
    y = np.array([1.0, 2.0, missing], dtype=object)
    with pytest.raises(ValueError, match=r"y contains NaN \(first in row 2\)"):
        check_labels(y)
    np.testing.assert_array_equal(check_labels(y, allow_nan=True), [1, 2, np.nan])
    with pytest.raises(ValueError, match=r"y contains infinity \(first in row 0\)"):
        check_labels([np.inf, np.nan], allow_nan=True)


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "requires y to be passed"),
        (NUMBERS[:3], r"X has 4, y has shape \(3,\)"),
        (np.zeros((4, 0)), r"0 (columns|feature)"),
        (np.zeros((4, 1, 1)), "dim 3"),
        (1.0, "scalar"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        check_labels(y, 4)


def test_labels_whose_squares_overflow_are_refused():
    np.testing.assert_array_equal(check_labels([1e140] * 3), [1e140] * 3)
    with pytest.raises(ValueError, match=r"y\[1\] = 1e\+141 is too large"):
        check_labels([1.0, 1e141, 1e308])
    with pytest.raises(ValueError, match="bound=2"):
        check_labels([1.0, -3.0], bound=2.0)
    with pytest.raises(ValueError, match="weights up to"):
        check_squares(np.full(3, 1e10), np.full(3, 1e300))
    check_squares(np.ones(3), np.full(3, 1e300))


def test_dates_are_no_labels():
    with pytest.raises(TypeError, match="y holds dates"):
        check_labels(np.array(["2020-01-01"], dtype="datetime64[D]"))


def test_weights():
    np.testing.assert_array_equal(check_weights(None, 3), [1, 1, 1])
    np.testing.assert_array_equal(check_weights(2, 3), [2, 2, 2])
    np.testing.assert_array_equal(check_weights(np.uint8([0, 1, 2]), 3), [0, 1, 2])


@pytest.mark.parametrize(
    "weight, message",
    [
        ([1, -1, 1], r"negative \(first in row 1\)"),
        ([1, 1, np.nan], r"NaN \(first in row 2\)"),
        ([1, np.inf, 1], r"infinity \(first in row 1\)"),
        ([0, 0, 0], "zero in every row"),
        (0.0, "zero in every row"),
        ([1, 1], r"\(2,\)"),
        (np.ones((3, 1)), r"\(3, 1\)"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        check_weights(weight, 3)


def test_step_function_is_right_continuous_and_flat_outside():
    positions = np.array([0.0, 1.0, 1.0, 3.0])
    values = np.array([10.0, 20.0, 30.0, 40.0])
    query = np.array([-5.0, 0.0, 0.5, 1.0, 2.9, 3.0, 99.0])
    np.testing.assert_array_equal(
        step_predict(positions, values, query), [10, 10, 10, 30, 30, 40, 40]
    )
    both = np.column_stack([values, -values])
    np.testing.assert_array_equal(
        step_predict(positions, both, query)[:, 1],
        -step_predict(positions, values, query),
    )


# ---- what is no float, or loses digits as one ----


def test_masked_entries_are_missing():
    y = np.ma.array([1.0, 999.0, 3.0], mask=[0, 1, 0])
    with pytest.raises(ValueError, match=r"y contains NaN \(first in row 1\)"):
        check_labels(y)
    np.testing.assert_array_equal(check_labels(y, allow_nan=True), [1, np.nan, 3])
    with pytest.raises(ValueError, match=r"X contains NaN \(first in row 1\)"):
        check_positions(BaseEstimator(), y.astype(int), reset=True)
    with pytest.raises(ValueError, match=r"sample_weight contains NaN"):
        check_weights(y, 3)


@pytest.mark.parametrize("kind", [np.int64, np.uint64, object, list])
def test_integers_that_floats_merge_are_refused(kind):
    first = 2**60
    positions = [first, first + 1, first + 1024]
    X = positions if kind is list else np.array(positions, dtype=kind)
    with pytest.raises(ValueError, match=r"X\[1\].*subtract the first position"):
        check_positions(BaseEstimator(), X, reset=True)
    X = np.array([2**53, -(2**53), 2**60])
    np.testing.assert_array_equal(check_positions(BaseEstimator(), X, reset=True), X)


@pytest.mark.parametrize(
    "X",
    [
        pd.period_range("2020", periods=3, freq="D"),
        ["2020-01-01", "2020-01-02", "2020-01-03"],
        pd.Series(["2020-01-01 10:00", "2020-01-02 10:00"]),
        [0.0, datetime.date(2020, 1, 1)],
    ],
)
def test_periods_and_date_texts_are_dates(X):
    with pytest.raises(TypeError, match="Positions are numbers"):
        check_positions(BaseEstimator(), X, reset=True)


def test_what_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"y\[1\] is no number: 'a'"):
        check_labels(["1.5", "a"])
    with pytest.raises(ValueError, match=r"y\[2\] is too large a number"):
        check_labels([1, 2, 10**400])
    with pytest.raises(ValueError, match="alphas is empty"):
        check_labels([], name="alphas")
    with pytest.raises(ValueError, match="X is empty"):
        check_positions(BaseEstimator(), [], reset=True)
    with pytest.raises(ValueError, match=r"exposure must be .*\(2,\)"):
        check_weights([1, 2], 3, name="exposure")


def test_squares_that_vanish():
    tiny = np.array([0.0, 1e-170])
    check_squares(tiny)
    for y, w in ((tiny, None), (1e50 * tiny, np.array([0, 1e-100]))):
        with pytest.raises(ValueError, match="too small"):
            check_squares(y, w, exact=True)
    check_squares(np.zeros(2), exact=True)
