"""Rows of a time series: positions, labels and weights, read alike everywhere.

A position is one number per row. Only the order of positions matters to the
methods of this package, never their spacing. Every ``check_*`` function returns
float64 arrays and raises a ValueError that names the argument and the row before
anything is learned.
"""

from datetime import date, timedelta
from numbers import Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

# Squares of larger numbers leave the range of floating-point numbers.
LARGEST = 1e140

_TIMES = (date, timedelta, np.datetime64, np.timedelta64)


def check_positions(estimator, X, *, reset):
    """Return the positions in `X` as a float array of shape (n_samples,).

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` (always 1), and ``feature_names_in_`` when `X`
        is a data frame with a named column.
    X : array-like of shape (n_samples,) or (n_samples, 1)
        Finite numbers. A one-dimensional `X` has no feature name.
    reset : bool
        True in ``fit``, False where `X` is compared with the fitted column.

    Raises
    ------
    ValueError
        If `X` is empty, has another shape, or holds NaN or infinity.
    TypeError
        If `X` holds dates or time differences.
    """
    if not _is_plain(X):
        _refuse_times(X)
    positions = _as_float(X, "X")
    if positions.ndim == 2:
        if positions.shape[1] != 1:
            raise ValueError(
                f"X holds one position per row: its shape must be (n_samples,) or "
                f"(n_samples, 1), got {positions.shape}."
            )
        if reset or not _is_plain(X) or hasattr(estimator, "feature_names_in_"):
            # Otherwise a plain column meets a plain column.
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        positions = positions[:, 0]
    elif reset:
        estimator.n_features_in_ = 1
        estimator.__dict__.pop("feature_names_in_", None)
    _refuse_not_finite(positions, "X")
    return positions


def check_labels(y, n_samples=None, *, allow_nan=False, bound=None, name="y"):
    """Return the labels `y` as a C-contiguous float array, one- or two-dimensional.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    n_samples : int, default=None
        The number of rows that `y` must have; None accepts any.
    allow_nan : bool, default=False
        Whether NaN stands for a missing label. Infinity never passes.
    bound : float, default=None
        The largest absolute label that is allowed; None allows 1e140, whose square
        is still a floating-point number.
    name : str, default="y"
        What messages call it.

    Raises
    ------
    ValueError
        If `y` is None or empty, has three dimensions or another number of rows,
        or holds infinity, NaN where that is not allowed, or too large a label.
    TypeError
        If `y` holds dates or time differences.
    """
    if y is None:
        raise ValueError(
            f"This estimator requires y to be passed, but the target {name} is None."
        )
    if not _is_plain(y):
        _refuse_times(y, name, "Labels")
    y = np.ascontiguousarray(_as_float(y, name))
    if n_samples is not None and y.shape[0] != n_samples:
        raise ValueError(
            f"X and y must have the same number of rows: X has {n_samples}, "
            f"y has shape {y.shape}."
        )
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"{name} has 0 columns (shape {y.shape}).")
    _refuse_not_finite(y, name, allow_nan=allow_nan)
    check_size(y, bound, f"Label {name}")
    return y


def check_covariates(X, n_samples):
    """Return the covariates as a float array of shape (n_samples, n_features).

    Raises
    ------
    ValueError
        If `X` has another shape or no column, or holds NaN, infinity or a number
        above 1e140.
    TypeError
        If `X` holds dates or time differences.
    """
    if not _is_plain(X):
        _refuse_times(X, "X", "Covariates")
    X = _as_float(X, "X")
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(
            f"X holds covariates: its shape must be (n_samples, n_features), got "
            f"{X.shape}. A single one is a column, X.reshape(-1, 1)."
        )
    if len(X) != n_samples:
        raise ValueError(
            f"X and y must have the same number of rows: X has {len(X)}, y has "
            f"{n_samples}."
        )
    _refuse_not_finite(X, "X")
    check_size(X, None, "Covariate X")
    return X


def check_size(values, bound, name):
    """Refuse values, finite or NaN, above `bound`, or above 1e140 if it is None."""
    largest, why = LARGEST, "its square is too large a number"
    if bound is not None:
        largest, why = bound, f"bound={bound:g}; bound=None learns it"
    beyond = np.abs(values) > largest
    if beyond.any():
        row = _first_row(beyond)
        raise ValueError(f"{name}[{row}] = {values[row]} is too large: {why}.")


def check_weights(sample_weight, n_samples, *, allow_all_zero=False):
    """Return the weights as a float array of shape (n_samples,); None is all ones.

    Raises
    ------
    ValueError
        If a weight is negative, NaN or infinite, if all are zero (unless
        `allow_all_zero`), or if there are not `n_samples` of them. A scalar stands
        for that weight everywhere.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    if _ndim(sample_weight) == 0:
        sample_weight = np.full(n_samples, sample_weight)
    w = _as_float(sample_weight, "sample_weight")
    if w.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must be a scalar or one weight per row, shape "
            f"({n_samples},), got {w.shape}."
        )
    _refuse_not_finite(w, "sample_weight")
    _refuse(w < 0, "sample_weight", "is negative")
    if not allow_all_zero and not w.any():
        raise ValueError("sample_weight is zero in every row.")
    return w


def check_number(name, value, *, positive=False, finite=False):
    """Refuse what is not a number, or not in range; the message names it."""
    valid = isinstance(value, Real) and (value > 0 if positive else value >= 0)
    if not valid or (finite and np.isinf(value)):
        sign = "> 0" if positive else ">= 0"
        kind = "finite number" if finite else "number"
        raise ValueError(f"{name} must be a {kind} {sign}, got {value!r}.")


def step_predict(positions, values, query):
    """Evaluate the right-continuous step function through `values` at `query`.

    Between two positions the value of the earlier one holds; outside the function
    is flat. Where a position occurs several times its last value counts.

    Parameters
    ----------
    positions : ndarray of shape (n_samples,)
        Sorted in non-decreasing order.
    values : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    query : ndarray of shape (n_queries,)

    Returns
    -------
    ndarray of shape (n_queries,) or (n_queries, n_outputs)
    """
    last = np.searchsorted(positions, query, side="right") - 1
    return values[np.maximum(last, 0)]


def _ndim(array):
    return array.ndim if hasattr(array, "ndim") else np.asarray(array).ndim


def _is_plain(array):
    """Whether `array` is what every input becomes."""
    return (
        type(array) is np.ndarray
        and array.dtype == np.float64
        and array.ndim in (1, 2)
        and array.size > 0
    )


def _as_float(array, name):
    """`array` with one or two dimensions as float64; missing values become NaN."""
    if _is_plain(array):
        return array
    if hasattr(array, "to_numpy"):
        array = np.asarray(array)
    if _ndim(array) == 0:
        raise ValueError(f"{name} must have at least one dimension, got a scalar.")
    if isinstance(array, np.ndarray) and array.dtype == object:
        array = _without_na(array)
    if type(array) is np.ndarray and array.dtype == np.float64 and array.ndim <= 2:
        if array.size:
            return array  # as check_array would, in a hundredth of its time
    return check_array(
        array,
        dtype=np.float64,
        ensure_2d=False,
        ensure_all_finite=False,
        input_name=name,
    )


def _without_na(array):
    """Replace pandas' NA, which has no float value, in an array of objects."""
    array = np.array(array, dtype=object)
    for i, value in enumerate(array.flat):
        if type(value).__name__ == "NAType":
            array.flat[i] = np.nan
    return array


def check_squares(y, weights=None):
    """Refuse labels and weights whose sum of squares would not be a number."""
    size = max(np.fmax.reduce(y, None, initial=0), -np.fmin.reduce(y, None, initial=0))
    heaviest = 1.0 if weights is None else weights.max()
    with np.errstate(over="ignore"):
        if not np.isfinite(4.0 * y.size * heaviest * size * size):
            raise ValueError(
                f"Labels up to {size:g} with weights up to {heaviest:g} are too large: "
                "the sum of their squares is no number. Divide them by a constant."
            )


def _refuse_times(array, name="X", what="Positions"):
    values = np.asarray(array)
    if values.dtype.kind in "mM" or (
        values.dtype == object and values.size and isinstance(values.flat[0], _TIMES)
    ):
        raise TypeError(
            f"{name} holds dates or time differences. {what} are numbers: pass, for "
            "example, the seconds or days since the first observation."
        )


def _refuse_not_finite(array, name, *, allow_nan=False):
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(array.sum())
    if not finite:
        _refuse(np.isinf(array), name, "contains infinity")
        if not allow_nan:
            _refuse(np.isnan(array), name, "contains NaN")


def _refuse(bad, name, what):
    """Raise a ValueError that names the first row where `bad` is true, if any."""
    if bad.any():
        raise ValueError(f"Input {name} {what} (first in row {_first_row(bad)}).")


def _first_row(bad):
    return int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))


def check_ordered(estimator, X, y, sample_weight):
    """Validated data in the order of their positions.

    Returns
    -------
    positions : ndarray of shape (n_samples,)
    rows : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or (n_samples, n_outputs), or None
    shape : tuple
        Of `y`.
    order : ndarray of shape (n_samples,)
        The rows that they were.
    """
    skip = estimator.missing == "skip"
    positions = check_positions(estimator, X, reset=True)
    labels = check_labels(y, len(positions), allow_nan=skip)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(positions))
    check_squares(labels, weights)
    order = np.argsort(positions, kind="stable")
    rows = labels.reshape(len(labels), -1)[order]
    if weights is not None:
        weights = weights[order]
    if skip:
        weights = _observed(rows, weights)
    return positions[order], rows, weights, labels.shape, order


def _observed(rows, weights):
    """Weights of shape (n_samples, n_outputs) that are zero where a label is NaN."""
    observed = ~np.isnan(rows)
    w = observed * (1.0 if weights is None else weights[:, None])
    empty = ~w.any(axis=0)
    if empty.any():
        raise ValueError(
            f"Input y contains NaN in every weighted row of column "
            f"{int(np.argmax(empty))}: nothing was observed."
        )
    return w
