"""Progressive evaluation: predict each row, then learn it."""

import time
from contextlib import nullcontext
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing

from sktvdenoise._console import progress_bar
from sktvdenoise._progressive import (
    Learner,
    Rows,
    check_count,
    lead,
)
from sktvdenoise._recorded import (
    METHODS,
    Recorded,
    default_scoring,
    method_of,
    score_of,
)

__all__ = [
    "ProgressiveScore",
    "iter_progressive_val_score",
    "progressive_val_predict",
    "progressive_val_score",
]

# With a bar, rows are predicted in so many blocks at least.
_BAR_BLOCKS = 100
# Estimators of this package predict and learn so many rows at once, or more.
_AHEAD = 100


def progressive_val_predict(
    estimator,
    X,
    y,
    *,
    sample_weight=None,
    warmup_size=0,
    delay=0,
    method="predict",
    params=None,
    verbose=False,
):
    """Predict each row of a stream before its label is learned.

    Parameters
    ----------
    estimator : estimator with `partial_fit`
        It is cloned, and the clone learns; the estimator itself is not changed. In
        a :class:`~sklearn.pipeline.Pipeline` every transformer must have
        `partial_fit`, be stateless, or be wrapped in a
        :class:`~sklearn.frozen.FrozenEstimator`.
    X : array-like of shape (n_samples,) or (n_samples, n_features)
        Rows in order of time.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels. NaN passes if the estimator has ``missing="skip"``.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights >= 0 for `partial_fit`; None passes none. In a pipeline they go to
        the last step.
    warmup_size : int >= 0, default=0
        Number of first rows for which no prediction is made. Those of them whose
        labels are there in time are learned in one call of `partial_fit`.
    delay : int >= 0, default=0
        Number of rows by which labels are late: row `t` is predicted when rows
        ``0, ..., t - 1 - delay`` have been learned.
    method : {"predict", "predict_proba", "predict_log_proba", \
            "decision_function"}, default="predict"
        What is called for a prediction.
    params : dict, default=None
        Further arguments of the last step's `partial_fit`. An array with n_samples
        rows is cut like `X`. `classes` goes to the first call; if it is needed and
        not given, it is all of ``np.unique(y)``. With an `exposure` predictions are
        rates per unit of it.
    verbose : bool, default=False
        Whether to show a bar on standard error.

    Returns
    -------
    predictions : ndarray of shape (n_samples - warmup_size, ...)
        For rows `warmup_size` and later.

    Raises
    ------
    TypeError
        If the estimator, or a step of the pipeline, has no `partial_fit`, lacks
        `method`, or `partial_fit` takes no such argument. The message names it.
    NotFittedError
        If the estimator can't predict before it has learned: `warmup_size` must then
        be larger than `delay`.
    ValueError
        If the numbers of rows differ, a label isn't finite, a weight is negative, or
        `warmup_size` or `delay` is out of range.

    See Also
    --------
    progressive_val_score : Scores of these predictions.

    Notes
    -----
    A row is learned as a whole, after its prediction: in a pipeline the first step
    learns it and hands it on as it transforms it then, and so forth. The prediction
    of a row thus depends on no later row, and of itself on its features alone. A
    larger `warmup_size` leaves out first predictions and, for estimators that learn
    a batch as its rows one by one, changes none of the others.

    Estimators of this package make all predictions in one call of
    `partial_fit_predict` (or `partial_fit_predict_proba`) if there is no delay: they
    are the same numbers. They also tell what they predict before the first label,
    after transformers that need not learn, too.

    References
    ----------
    .. [1] A. P. Dawid (1984). Present position and potential developments: some
       personal views: statistical theory: the prequential approach. Journal of the
       Royal Statistical Society A 147(2).

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.model_selection import progressive_val_predict
    >>> X, y = [0, 1, 2, 3, 4, 5], [5.0, 5.0, 5.0, 7.0, 7.0, 7.0]
    >>> progressive_val_predict(OnlineTVDenoiser(), X, y, delay=1).round()[:4]
    array([0., 0., 5., 5.])
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}.")
    learner, rows = _prepared(estimator, X, y, sample_weight, params)
    _check_range(rows, warmup_size, delay)
    if not hasattr(learner.final, method):
        raise TypeError(f"{type(learner.final).__name__} has no {method}.")
    blocks = lead(
        learner,
        rows,
        [method],
        first=warmup_size,
        delay=delay,
        stops=_stops(warmup_size, rows.n_samples, verbose=verbose),
    )
    predictions = []
    with progress_bar() if verbose else nullcontext() as show:
        for _, stop, found in blocks:
            predictions.append(found[method])
            if verbose:
                show(stop / rows.n_samples)
    return predictions[0] if len(predictions) == 1 else np.concatenate(predictions)


def progressive_val_score(
    estimator,
    X,
    y,
    *,
    scoring=None,
    sample_weight=None,
    warmup_size=0,
    delay=0,
    params=None,
    verbose=False,
):
    """Score predictions that are made, row by row, before the label is learned.

    Parameters
    ----------
    estimator, X, y : object
        As for :func:`progressive_val_predict`.
    scoring : str, callable, list or dict, default=None
        A scorer's name or a scorer ``f(estimator, X, y)``, or several: a list of
        names, or a dict of scorers by name. None is "neg_mean_squared_error" for a
        regressor and "accuracy" for a classifier, which are finite on a single row
        and on constant labels.
    sample_weight : float or array-like of shape (n_samples,), default=None
        Weights >= 0 of the rows, for `partial_fit` and for the scores; None passes
        none.
    warmup_size : int >= 0, default=0
        Number of first rows that are learned and not scored.
    delay : int >= 0, default=0
        Number of rows by which labels are late.
    params : dict, default=None
        Further arguments of `partial_fit`. With an `exposure` counts are judged by
        exposure times the rate.
    verbose : bool, default=False
        Whether to show a bar on standard error.

    Returns
    -------
    score : float or dict of str to float
        Higher is better. Rows whose label is missing don't count; NaN if none is
        left, or their weights are all zero.

    Raises
    ------
    TypeError, NotFittedError, ValueError
        As by :func:`progressive_val_predict`; a TypeError, too, if nothing says how
        to score.

    See Also
    --------
    iter_progressive_val_score : The score as it develops.
    sktvdenoise.metrics.make_progressive_scorer : For cross-validation and searches.

    Notes
    -----
    A scorer sees the rows that are scored, their labels, and an estimator whose
    predictions are those made progressively.

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.model_selection import progressive_val_score
    >>> X, y = load_nile(return_X_y=True)
    >>> mae = "neg_mean_absolute_error"
    >>> score = progressive_val_score(OnlineTVDenoiser(), X, y, scoring=mae)
    >>> -130 < score < 0
    True
    """
    *_, last = iter_progressive_val_score(
        estimator,
        X,
        y,
        scoring=scoring,
        sample_weight=sample_weight,
        warmup_size=warmup_size,
        delay=delay,
        params=params,
        step=None,
        verbose=verbose,
    )
    return last.score


class ProgressiveScore(NamedTuple):
    """What is known after some rows of a stream.

    Attributes
    ----------
    n_samples : int
        Number of rows scored so far, those with a missing label included.
    score : float or dict of str to float
        Score of their predictions.
    seconds : float
        Time spent on predicting and learning so far.
    """

    n_samples: int
    score: float
    seconds: float


def iter_progressive_val_score(
    estimator,
    X,
    y,
    *,
    scoring=None,
    sample_weight=None,
    warmup_size=0,
    delay=0,
    params=None,
    step=1,
    verbose=False,
):
    """Yield the score of progressive predictions as it develops.

    Parameters
    ----------
    estimator, X, y, scoring, sample_weight, warmup_size, delay, params : object
        As for :func:`progressive_val_score`.
    step : int >= 1 or None, default=1
        Number of rows from one score to the next; the last comes after the last row.
        None yields that only.
    verbose : bool, default=False
        As for :func:`progressive_val_score`.

    Returns
    -------
    scores : iterator of ProgressiveScore
        Tuples ``(n_samples, score, seconds)``. Rows are predicted and learned as it
        goes on; it has copies of them. Estimators of this package are up to 100 rows
        ahead of the scores, and their time is spread over them evenly.

    Raises
    ------
    TypeError, NotFittedError, ValueError
        As by :func:`progressive_val_score`. What can be checked is checked before
        the iterator is returned.

    Notes
    -----
    The scores "neg_mean_squared_error", "neg_root_mean_squared_error",
    "neg_mean_absolute_error" and "accuracy" take O(1) time per row; others are
    computed anew from all rows so far at each step.

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.model_selection import iter_progressive_val_score
    >>> X, y = [0, 1, 2, 3], [2.0, 2.0, 2.0, 2.0]
    >>> scores = iter_progressive_val_score(OnlineTVDenoiser(), X, y, step=2)
    >>> [(n, score) for n, score, seconds in scores]
    [(2, -2.0), (4, -1.0)]
    """
    if step is not None:
        check_count("step", step)
        if step == 0:
            raise ValueError("step must be at least 1, got 0.")
    learner, rows = _prepared(estimator, X, y, sample_weight, params)
    _check_range(rows, warmup_size, delay)
    if step is not None:
        # What the caller does to the arrays meanwhile changes nothing.
        rows = deepcopy(rows)
    single, scorers = _scorers(scoring, learner.final)
    for name, scorer in scorers.items():
        kind = None
        if isinstance(scorer, str) and is_regressor(learner.final):
            kind = _ERRORS.get(scorer)
        elif scorer == "accuracy" and is_classifier(learner.final) and rows.y.ndim == 1:
            kind = _Accuracy
        if kind is None:
            scorers[name] = _Anew(
                check_scoring(scoring=scorer), learner, rows, warmup_size
            )
        else:
            scorers[name] = kind()
    return _scores(learner, rows, scorers, single, warmup_size, delay, step, verbose)


def _scores(learner, rows, scorers, single, warmup_size, delay, step, verbose):
    first, n = warmup_size, rows.n_samples
    methods = sorted({scorer.method for scorer in scorers.values()})
    at_once = len(methods) == 1 and not delay and learner.one_pass(methods[0])
    size = step * -(-_AHEAD // step) if step and at_once else step
    stops = _stops(first, n, size, verbose=verbose)
    blocks = lead(learner, rows, methods, first=first, delay=delay, stops=stops)
    seconds, started = 0.0, time.perf_counter()
    with progress_bar() if verbose else nullcontext() as show:
        for begin, end, found in blocks:
            found = rows.expected(found, begin, end)
            spent = (time.perf_counter() - started) / (end - begin)
            inner = begin - (begin - first) % step + step if step else end
            for stop in [*range(inner, end, step or 1), end]:
                seconds += (stop - begin) * spent
                for scorer in scorers.values():
                    predictions = found[scorer.method][: stop - begin]
                    scorer.add(rows, begin, stop, predictions)
                found = {name: p[stop - begin :] for name, p in found.items()}
                begin = stop
                if stop == n or (step and (stop - first) % step == 0):
                    score = {name: scorer.score() for name, scorer in scorers.items()}
                    score = score[""] if single else score
                    yield ProgressiveScore(stop - first, score, seconds)
            if verbose:
                show(end / n)
            started = time.perf_counter()


def _prepared(estimator, X, y, sample_weight, params):
    learner = Learner(clone(estimator))
    rows = Rows(learner, X, y, sample_weight, params)
    if learner.takes_classes:
        rows.add_classes()
    return learner, rows


def _check_range(rows, warmup_size, delay):
    check_count("warmup_size", warmup_size, below=rows.n_samples)
    check_count("delay", delay)


def _stops(first, n_samples, step=None, *, verbose):
    """Ends of blocks of rows: every `step` rows, and often enough for a bar."""
    sizes = [step] if step else []
    if verbose:
        sizes.append(max(1, n_samples // _BAR_BLOCKS))
    return sorted({stop for k in sizes for stop in range(first + k, n_samples, k)})


# ---- scores so far ----


def _scorers(scoring, model):
    """Whether there is one scorer, and names or scorers by name."""
    if scoring is None:
        scoring = default_scoring(model)
    if isinstance(scoring, str) or callable(scoring):
        return True, {"": scoring}
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if not isinstance(scoring, dict) or not scoring:
        raise ValueError(
            "scoring must be a name, a scorer, a list of names or a dict of scorers, "
            f"got {scoring!r}."
        )
    return False, dict(scoring)


class _Mean:
    """A running mean of the losses of rows, of each output."""

    method = "predict"

    def __init__(self):
        self._weight, self._mean = 0.0, np.nan

    def add(self, rows, start, stop, predictions):
        seen = rows.seen[start:stop]
        y, x = rows.y[start:stop][seen], predictions[seen]
        if y.shape != x.shape:
            raise ValueError(f"Predictions have shape {x.shape}, labels {y.shape}.")
        w = np.ones(len(y)) if rows.weights is None else rows.weights[start:stop][seen]
        weight = w.sum()
        if not weight:
            return
        mean = w @ self._loss(y, x) / weight
        if self._weight:
            self._weight += weight
            self._mean += (mean - self._mean) * (weight / self._weight)
        else:
            self._weight, self._mean = weight, mean

    def score(self):
        return float(-np.mean(self._mean))


class _SquaredError(_Mean):
    def _loss(self, y, x):
        return (y - x) ** 2


class _RootSquaredError(_SquaredError):
    def score(self):
        return float(-np.mean(np.sqrt(self._mean)))


class _AbsoluteError(_Mean):
    def _loss(self, y, x):
        return np.abs(y - x)


class _Accuracy(_Mean):
    def _loss(self, y, x):
        return (y == x).astype(float)

    def score(self):
        return float(self._mean)


_ERRORS = {
    "neg_mean_squared_error": _SquaredError,
    "neg_root_mean_squared_error": _RootSquaredError,
    "neg_mean_absolute_error": _AbsoluteError,
}


class _Anew:
    """Any scorer, asked about all rows so far."""

    def __init__(self, scorer, learner, rows, first):
        self._scorer, self._model = scorer, learner.final
        self._rows, self._first = rows, first
        self.method = method_of(scorer, learner.final, rows)
        self._parts, self._stop = [], first

    def add(self, rows, start, stop, predictions):
        self._parts.append(predictions)
        self._stop = stop

    def score(self):
        rows = self._rows
        self._parts = [np.concatenate(self._parts)]
        kept = np.flatnonzero(rows.seen[self._first : self._stop])
        at = kept + self._first
        weights = None if rows.weights is None else rows.weights[at]
        if not len(kept) or (weights is not None and not weights.any()):
            return np.nan
        found = {self.method: self._parts[0]}
        recorded = Recorded(self._model, found, rows.classes).at(kept)
        X = _safe_indexing(rows.X, at)
        return score_of(self._scorer, recorded, X, rows.y[at], weights)
