"""Predict, then learn: an estimator led through rows one after the other.

What evaluations and scorers share. Row t is predicted by an estimator that has
learned rows 0, ..., t - 1 - delay and no other.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from inspect import Parameter, signature
from itertools import pairwise
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length, get_tags
from sklearn.utils.validation import _num_samples

from sktvdenoise._positions import check_labels, check_weights
from sktvdenoise._problem import check_exposure
from sktvdenoise._recorded import Recorded, method_of


class Learner:
    """An estimator, or a pipeline, that learns row by row.

    Parameters
    ----------
    model : estimator
        Learns in place. In a pipeline a row goes from step to step: each learns it
        and hands it on as it transforms it then.
    fitted : bool
        Whether it has been fitted. Transformers without `partial_fit` then stay as
        they are; otherwise there is nothing that they could be.

    Raises
    ------
    TypeError
        If the estimator or a step, which the message names, can't learn a row after
        the others.
    """

    def __init__(self, model, *, fitted=False):
        *steps, (name, self.final) = _flat(model)
        self._transformers = [(step, _can_learn(step)) for _, step in steps]
        for (step_name, step), (_, learns) in zip(steps, self._transformers):
            if not (learns or fitted or _is_fixed(step)):
                _refuse(
                    step_name,
                    step,
                    "has no partial_fit. A transformer that is to stay as it was "
                    "fitted goes into a FrozenEstimator",
                )
        if not _can_learn(self.final):
            _refuse(name, self.final, "has no partial_fit")
        self._accepted = signature(self.final.partial_fit).parameters

    @property
    def takes_classes(self):
        return "classes" in self._accepted or (
            is_classifier(self.final) and self.takes("classes")
        )

    def takes(self, name):
        """Whether partial_fit of the last step has such an argument."""
        return name in self._accepted or any(
            p.kind == Parameter.VAR_KEYWORD for p in self._accepted.values()
        )

    @property
    def reads_floats(self):
        """Whether whole numbers are taken as float64: once is faster than each."""
        return not self._transformers and _is_of_this_package(
            type(self.final).partial_fit
        )

    def learn(self, X, y, params):
        for step, learns in self._transformers:
            if not learns:
                X = step.transform(X)
            elif hasattr(step, "partial_fit_transform"):
                X = step.partial_fit_transform(X)
            else:
                X = step.partial_fit(X, y).transform(X)
        self.final.partial_fit(X, y, **params)

    def transform(self, X):
        """What the last step gets to see."""
        for step, _ in self._transformers:
            X = step.transform(X)
        return X

    def predict(self, X, method):
        return getattr(self.final, method)(self.transform(X))

    def one_pass(self, method):
        """The method that predicts and learns many rows at once, or None.

        ``partial_fit_predict`` returns what ``predict`` would have, each row's
        before its label is seen; ``partial_fit_predict_proba`` likewise.
        """
        return None if self._transformers else self._final_pass(self.final, method)

    @staticmethod
    def _final_pass(final, method):
        # Others may mean something else by the name, or predict otherwise.
        names = "partial_fit", method, f"partial_fit_{method}"
        if all(_is_of_this_package(getattr(type(final), n, None)) for n in names):
            return getattr(final, names[-1])
        return None

    def ignorant(self, X, y, params, method):
        """What is predicted before anything is learned, or None if that is refused.

        By its contract ``partial_fit_predict`` does not look at `y` for that.
        """
        one_pass = self._final_pass(clone(self.final), method)
        if one_pass is None:
            return None
        try:
            X = self.transform(X)
        except NotFittedError:
            return None
        return one_pass(X, y, **params)


def _is_of_this_package(function):
    module = getattr(function, "__module__", None) or ""
    return module.partition(".")[0] == __name__.partition(".")[0]


def can_go_on(model, X):
    """Whether a fitted model can learn the rows of `X`, too.

    Denoisers can't go back: their rows must not lie before the last one learned.
    """
    try:
        learner = Learner(model, fitted=True)
    except TypeError:
        return False
    last = getattr(learner.final, "_last_position", None)
    if last is None or not _num_samples(X):
        return True
    return bool(np.ravel(learner.transform(_cut(X, 0, 1)))[0] >= last)


def _flat(model, name=None):
    """Names and steps of a pipeline and of those inside it; of a search, its best."""
    if isinstance(model, FrozenEstimator) or hasattr(model, "partial_fit"):
        # A pipeline has no partial_fit.
        return [(name, model)]
    if hasattr(model, "best_estimator_"):
        return _flat(model.best_estimator_, name)
    if not isinstance(model, Pipeline):
        return [(name, model)]
    return [
        pair
        for name, step in model.steps
        if step is not None and not isinstance(step, str)
        for pair in _flat(step, name)
    ]


def final_step(model):
    """The last step of a pipeline, or the model itself."""
    return _flat(model)[-1][1]


def _can_learn(step):
    # What is frozen would hand partial_fit on to the estimator inside.
    return not isinstance(step, FrozenEstimator) and hasattr(step, "partial_fit")


def _is_fixed(step):
    return isinstance(step, FrozenEstimator) or not get_tags(step).requires_fit


def _refuse(name, step, why):
    kind = type(step).__name__
    where = kind if name is None else f"The pipeline's step {name!r}, {kind},"
    raise TypeError(f"{where} can't learn row by row: it {why}.")


class Rows:
    """Checked rows: features, labels and what else goes with them to partial_fit.

    Parameters
    ----------
    learner : Learner
    X : array-like of n_samples rows
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : float, array-like of shape (n_samples,) or None
    params : dict or None
        Further arguments of partial_fit. What has n_samples rows is cut like `X`.
        `classes` goes to the first call only.

    Attributes
    ----------
    y : ndarray
    weights : ndarray of shape (n_samples,) or None
    seen : ndarray of bool of shape (n_samples,)
        Where a label is there, in every output.
    """

    def __init__(self, learner, X, y, sample_weight=None, params=None):
        if issparse(X):
            X = X.tocsr()
        elif np.ma.isMaskedArray(X):
            X = np.where(np.ma.getmaskarray(X), np.nan, X.data)
        elif learner.reads_floats and _is_exact(X):
            X = X.astype(float)
        self.X, self.n_samples = X, _num_samples(X)
        self.y = self._labels(learner.final, y)
        self.seen = labelled(self.y)
        self._by_row, self._constant, self._once = {}, {}, {}
        self.weights = self.exposure = None
        if params is None:
            params = {}
        if not isinstance(params, Mapping):
            raise TypeError(f"params must be a dict, got {params!r}.")
        if sample_weight is not None:
            if "sample_weight" in params:
                raise ValueError(
                    "sample_weight is given twice: as an argument, and in params."
                )
            self.weights = check_weights(
                sample_weight, self.n_samples, allow_all_zero=True
            )
            params = {**params, "sample_weight": self.weights}
        for name, value in params.items():
            if name in ("X", "y") or not learner.takes(name):
                raise TypeError(
                    f"{type(learner.final).__name__}.partial_fit takes no further "
                    f"argument {name}."
                )
            if name == "exposure" and value is not None and self.y.dtype.kind == "f":
                value = self.exposure = check_exposure(value, self.y)
            if name == "classes":
                self._once[name] = value
            elif hasattr(value, "__len__") and _num_samples(value) == self.n_samples:
                self._by_row[name] = value
            else:
                self._constant[name] = value

    def _labels(self, final, y):
        if y is None or is_regressor(final):
            return check_labels(y, self.n_samples, allow_nan=skips_missing(final))
        check_consistent_length(self.X, y)
        if not self.n_samples:
            raise ValueError("X has 0 rows.")
        missing = np.ma.getmaskarray(y) if np.ma.isMaskedArray(y) else False
        y = np.asarray(y)
        if y.dtype.kind == "c":
            raise ValueError("Complex data not supported: y holds complex numbers.")
        missing = (missing | _is_missing(y)).reshape(len(y), -1).any(axis=1)
        if missing.any() and is_classifier(final) and not skips_missing(final):
            row = int(np.argmax(missing))
            raise ValueError(f"Input y contains NaN (first in row {row}).")
        return y

    def add_classes(self):
        """All classes of `y`, as the first call of a classifier's partial_fit needs."""
        if "classes" not in self._once:
            classes = [np.unique(column) for column in np.atleast_2d(self.y.T)]
            self._once["classes"] = classes if self.y.ndim == 2 else classes[0]

    @property
    def classes(self):
        return self._once.get("classes")

    def expected(self, found, start, stop):
        """Predictions of the labels themselves: a rate is one per unit of exposure."""
        if self.exposure is None or "predict" not in found:
            return found
        rates = found["predict"]
        units = self.exposure[start:stop].reshape(-1, *[1] * (rates.ndim - 1))
        return found | {"predict": units * rates}

    def features(self, start, stop):
        return _cut(self.X, start, stop)

    def part(self, start, stop, *, first=False):
        """Features, labels and arguments of partial_fit."""
        params = {name: _cut(v, start, stop) for name, v in self._by_row.items()}
        params |= self._constant
        if first:
            params |= self._once
        return self.features(start, stop), self.y[start:stop], params


def skips_missing(estimator):
    """Whether NaN stands for a label that isn't there."""
    return getattr(estimator, "missing", None) == "skip"


def labelled(y):
    """The rows in which no output's label is missing, as booleans."""
    if y.dtype.kind != "f":
        return np.ones(len(y), dtype=bool)
    return ~np.isnan(y.reshape(len(y), -1)).any(axis=1)


def _is_exact(X):
    """Whether these are integers that float64 tells apart."""
    if type(X) is not np.ndarray or X.dtype.kind not in "iu" or not X.size:
        return False
    return -(2**53) < X.min() and X.max() < 2**53


def _is_missing(y):
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind != "O":
        return np.zeros(y.shape, dtype=bool)
    found = [
        v is None or type(v).__name__ == "NAType" or (isinstance(v, float) and v != v)
        for v in y.flat
    ]
    return np.reshape(found, y.shape)


def _cut(array, start, stop):
    if isinstance(array, np.ndarray | list):
        return array[start:stop]
    return _safe_indexing(array, slice(start, stop))


def lead(learner, rows, methods, *, first=0, delay=0, stops=()):
    """Predict rows from `first` on, each before it is learned.

    Parameters
    ----------
    learner : Learner
    rows : Rows
    methods : list of str
        What to call for predictions.
    first : int
        Row predicted first. The rows that are known then are learned in one call.
    delay : int
        Number of rows by which labels are late.
    stops : iterable of int
        Ends of blocks, ascending, between `first` and the last row.

    Yields
    ------
    start, stop : int
        The block.
    found : dict of str to ndarray
        Its predictions, by method. They don't depend on `stops`.
    """
    known = max(first - delay, 0)
    if known:
        with _naming_rows(0, known):
            learner.learn(*rows.part(0, known, first=True))
    one_pass = learner.one_pass(methods[0]) if len(methods) == 1 else None
    if delay:
        one_pass = None
    ends = [first, *stops, rows.n_samples]
    for start, stop in pairwise(ends):
        if one_pass is not None:
            X, y, params = rows.part(start, stop, first=start == 0)
            with _naming_rows(start, stop):
                predictions = one_pass(X, y, **params)
            yield start, stop, {methods[0]: predictions}
            continue
        found = {method: [] for method in methods}
        for t in range(start, stop):
            if known < t - delay:
                with _naming_rows(known, known + 1):
                    learner.learn(*rows.part(known, known + 1, first=known == 0))
                known += 1
            with _naming_rows(t, t + 1):
                for method, predictions in found.items():
                    predictions.append(_prediction(learner, rows, t, method, delay))
        yield start, stop, {name: np.concatenate(p) for name, p in found.items()}


def _prediction(learner, rows, t, method, delay):
    try:
        return learner.predict(rows.features(t, t + 1), method)
    except NotFittedError as error:
        found = learner.ignorant(*rows.part(t, t + 1, first=True), method)
        if found is None:
            raise NotFittedError(
                f"{type(learner.final).__name__} can't predict before it has learned "
                f"something: with delay={delay}, warmup_size must be at least "
                f"{delay + 1}."
            ) from error
        return found


class _naming_rows:
    """What is raised within the block tells which rows were at hand.

    A row that a message names is counted from the first of them.
    """

    def __init__(self, start, stop):
        self._start = start
        self._where = f"row {start}" if stop == start + 1 else f"rows {start}:{stop}"

    def __enter__(self):
        pass

    def __exit__(self, kind, error, traceback):
        if isinstance(error, Exception):
            note = f"At {self._where} of the stream."
            named = re.search(r"\brow (\d+)|\w\[(\d+)\]", str(error))
            if named and self._start:
                row = int(named[1] or named[2])
                note = f"Row {row} here is row {self._start + row} of the stream."
            error.add_note(note)


def continued(estimator, X, y, scorer, sample_weight=None, params=None):
    """A fitted estimator goes on, on a copy: its predictions and the rows.

    Parameters
    ----------
    scorer : callable
        What will judge them.

    Returns
    -------
    recorded : Recorded
    rows : Rows
    """
    learner = Learner(deepcopy(estimator), fitted=True)
    rows = Rows(learner, X, y, sample_weight, params)
    method = method_of(scorer, estimator, rows)
    ((_, _, found),) = lead(learner, rows, [method])
    found = rows.expected(found, 0, rows.n_samples)
    return Recorded(estimator, found), rows


def check_count(name, value, *, below=None):
    """Refuse what is no integer >= 0, or not less than `below`."""
    if not isinstance(value, Integral) or value < 0:
        raise ValueError(f"{name} must be an integer >= 0, got {value!r}.")
    if below is not None and value >= below:
        raise ValueError(
            f"{name} must be less than the number of rows, {below}, got {value!r}."
        )
