"""Rows of a time series: positions, labels and weights, read alike everywhere.

A position is one number per row. Only the order of positions matters to the
methods of this package, never their spacing. Every ``check_*`` function returns
float64 arrays and raises a ValueError that names the argument and the row before
anything is learned.
"""

from datetime import date, datetime, timedelta
from numbers import Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

# Sums of squares of larger numbers, with weights, may leave the range of
# floating-point numbers; so do, at the other end, those below SMALLEST_SQUARE.
LARGEST = 1e140
SMALLEST_SQUARE = 1e-280

_TIMES = (date, timedelta, np.datetime64, np.timedelta64)
_EXACT = 2**53  # integers up to here are floating-point numbers


def check_positions(estimator, X, *, reset):
    """Return the positions in `X` as a float array of shape (n_samples,).

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` (always 1), and ``feature_names_in_`` when `X`
        is a data frame with a named column.
    X : array-like of shape (n_samples,) or (n_samples, 1)
        Finite numbers. A one-dimensional `X` has no feature name. Masked entries
        of a masked array count as NaN, here and in labels and weights.
    reset : bool
        True in ``fit``, False where `X` is compared with the fitted column.

    Raises
    ------
    ValueError
        If `X` is empty, has another shape, or holds NaN, infinity or an integer
        that float64 can't tell from its neighbours.
    TypeError
        If `X` holds dates or time differences.
    """
    positions = _as_float(X, "X", "Positions")
    if not _is_plain(X):
        _refuse_inexact(X, positions)
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
    refuse_not_finite(positions, "X")
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
        The largest absolute label that is allowed; None allows 1e140, so that sums
        of squares with weights stay floating-point numbers.
    name : str, default="y"
        What the messages call `y`.

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
            f"This estimator requires {name} to be passed, but the target {name} is "
            "None."
        )
    y = np.ascontiguousarray(_as_float(y, name, "Labels"))
    if n_samples is not None and y.shape[0] != n_samples:
        raise ValueError(
            f"X and {name} must have the same number of rows: X has {n_samples}, "
            f"{name} has shape {y.shape}."
        )
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"{name} has 0 columns (shape {y.shape}).")
    refuse_not_finite(y, name, allow_nan=allow_nan)
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
    X = _as_float(X, "X", "Covariates")
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
    refuse_not_finite(X, "X")
    check_size(X, None, "Covariate X")
    return X


def check_size(values, bound, name, *, why=None):
    """Refuse values, finite or NaN, above `bound`, or above 1e140 if it is None.

    The message ends with `why`; by default `bound` is taken for the parameter.
    """
    largest = LARGEST if bound is None else bound
    if bound is None:
        why = f"up to {LARGEST:g} sums of squares stay floating-point numbers"
    elif why is None:
        why = f"bound={bound:g} says that none is larger"
    if largest_size(values) > largest:
        beyond = np.abs(values) > largest
        row = _first_row(beyond)
        raise ValueError(f"{name}[{row}] = {values[row]} is too large: {why}.")


def largest_size(values):
    """The largest absolute value; NaN are passed over."""
    if not values.size:
        return 0.0
    return max(np.fmax.reduce(values, axis=None), -np.fmin.reduce(values, axis=None))


def check_weights(
    sample_weight, n_samples, *, allow_all_zero=False, name="sample_weight"
):
    """Return the weights as a float array of shape (n_samples,); None is all ones.

    The messages call them `name`.

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
    w = _as_float(sample_weight, name, "They")
    if w.shape != (n_samples,):
        raise ValueError(
            f"{name} must be a scalar or one number per row, shape ({n_samples},), got "
            f"{w.shape}."
        )
    refuse_not_finite(w, name)
    _refuse(w < 0, name, "is negative")
    if not allow_all_zero and not w.any():
        raise ValueError(f"{name} is zero in every row.")
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


def _as_float(array, name, what):
    """`array` with one or two dimensions as float64; missing values become NaN.

    `what` begins the sentence that says why dates are refused.
    """
    if _is_plain(array):
        return array
    if np.ma.isMaskedArray(array):
        mask = np.ma.getmaskarray(array)
        array = np.where(mask, np.nan, _as_float(array.data, name, what))
    if hasattr(array, "to_numpy"):
        array = np.asarray(array)
    if _ndim(array) == 0:
        raise ValueError(f"{name} must have at least one dimension, got a scalar.")
    _refuse_times(array, name, what)
    if isinstance(array, np.ndarray) and array.dtype == object:
        array = _without_na(array)
    if type(array) is np.ndarray and array.dtype == np.float64 and array.ndim <= 2:
        if array.size:
            return array  # as check_array would, in a hundredth of its time
    if np.asarray(array).shape[:1] == (0,):
        raise ValueError(
            f"{name} is empty: it has 0 sample(s), while a minimum of 1 is required."
        )
    try:
        return check_array(
            array,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=False,
            input_name=name,
        )
    except (TypeError, ValueError, OverflowError):
        refuse_no_number(array, name, what)
        raise


def _without_na(array):
    """Replace pandas' NA, which has no float value, in an array of objects."""
    array = np.array(array, dtype=object)
    for i, value in enumerate(array.flat):
        if type(value).__name__ == "NAType":
            array.flat[i] = np.nan
    return array


def check_squares(y, weights=None, *, exact=False):
    """Refuse labels and weights whose sum of squares would not be a number.

    With `exact`, refuse also those whose squares would all be rounded to zero.
    """
    size = largest_size(y)
    heaviest = 1.0 if weights is None else weights.max()
    sizes = f"Labels up to {size:g} with weights up to {heaviest:g} are too"
    with np.errstate(over="ignore", under="ignore"):
        if not np.isfinite(4.0 * y.size * heaviest * size * size):
            raise ValueError(
                f"{sizes} large: the sum of their squares is no number. Divide them by "
                "a constant."
            )
        if exact and size > 0 and heaviest * size * size < SMALLEST_SQUARE:
            raise ValueError(
                f"{sizes} small: their squares are rounded to zero. Multiply them by a "
                "constant."
            )


def _refuse_times(array, name, what):
    """Refuse dates; what isn't a number at all is left to the conversion."""
    values = np.asarray(array)
    if values.dtype.kind in "mM" or (
        values.dtype == object and values.size and _is_time(values.flat[0])
    ):
        raise _no_times(name, what)


def _no_times(name, what):
    return TypeError(
        f"{name} holds dates or time differences. {what} are numbers: pass, for "
        "example, the seconds or days since the first observation."
    )


def _is_time(value):
    return isinstance(value, _TIMES) or type(value).__name__ in ("Period", "NaTType")


def _is_date_text(value):
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value.strip()))
    except ValueError:
        return False


def refuse_no_number(array, name, what):
    """Name the first row that can't become a float, if that is what is wrong."""
    values = np.asarray(array, dtype=object)
    rows = values.reshape(len(values), -1)
    for i, row in enumerate(rows):
        for value in row:
            try:
                float(value)
            except OverflowError:
                raise ValueError(f"{name}[{i}] is too large a number.") from None
            except (TypeError, ValueError):
                if _is_time(value) or _is_date_text(value):
                    raise _no_times(name, what) from None
                raise ValueError(f"{name}[{i}] is no number: {value!r}.") from None


def _refuse_inexact(X, positions):
    """Refuse integers that lose digits as floats: their order would be lost."""
    if largest_size(positions) < _EXACT:
        return
    values = np.asarray(X).reshape(positions.shape)
    if values.dtype.kind in "iu":
        with np.errstate(invalid="ignore"):
            moved = positions.astype(values.dtype) != values
    elif values.dtype == object:
        moved = np.array(
            [
                isinstance(value, int) and int(position) != value
                for value, position in zip(values.flat, positions.flat)
            ]
        )
    else:
        return
    if moved.any():
        row = _first_row(moved)
        raise ValueError(
            f"X[{row}] = {values[row]} is an integer beyond 2**53, which float64 "
            "doesn't tell from its neighbours: subtract the first position."
        )


def refuse_not_finite(array, name, *, allow_nan=False):
    """Name the first row with infinity, or with NaN where that is not allowed."""
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
        No part of `X`; `rows` and `weights` may be parts of what was passed.
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
    check_squares(labels, weights, exact=True)
    rows = labels.reshape(len(labels), -1)
    if (positions[1:] >= positions[:-1]).all():
        order = np.arange(len(positions))
        positions = positions.copy()
    else:
        order = np.argsort(positions, kind="stable")
        positions, rows = positions[order], rows[order]
        weights = None if weights is None else weights[order]
    if skip:
        weights = observed_weights(rows, weights)
    return positions, rows, weights, labels.shape, order


def observed_weights(rows, weights):
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
