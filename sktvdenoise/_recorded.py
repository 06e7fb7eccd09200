"""Scorers of scikit-learn, asked about predictions that were made before."""

from copy import copy
from inspect import Parameter, signature

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def _if_model_has(method):
    return available_if(lambda self: hasattr(self._model, method))


class Recorded:
    """An estimator that gives, for its rows, predictions that were made before.

    Scorers of scikit-learn take it for the estimator that made them.

    Parameters
    ----------
    model : estimator
        What made them.
    found : dict of str to ndarray
        Predictions by method. Another method raises `Wanted`.
    classes : ndarray or None
        Its classes where it has not learned yet.
    """

    def __init__(self, model, found, classes=None):
        self._model, self._found, self._classes = model, found, classes

    def at(self, kept):
        """Its predictions for some of the rows."""
        found = {method: values[kept] for method, values in self._found.items()}
        return Recorded(self._model, found, self._classes)

    def _give(self, method):
        if method not in self._found:
            raise Wanted(method)
        return self._found[method]

    @_if_model_has("predict")
    def predict(self, X):
        return self._give("predict")

    @_if_model_has("predict_proba")
    def predict_proba(self, X):
        return self._give("predict_proba")

    @_if_model_has("predict_log_proba")
    def predict_log_proba(self, X):
        return self._give("predict_log_proba")

    @_if_model_has("decision_function")
    def decision_function(self, X):
        return self._give("decision_function")

    @property
    def classes_(self):
        return getattr(self._model, "classes_", self._classes)

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return get_tags(self._model)


class Wanted(TypeError):
    """A scorer's wish for predictions of another method."""

    def __init__(self, method):
        super().__init__(
            f"The scorer asks for {method} besides other predictions: one method is "
            "called for each scorer."
        )
        self.method = method


def default_scoring(model):
    """What judges a model if nothing is said: finite on one row and constant labels."""
    if is_regressor(model):
        return "neg_mean_squared_error"
    if is_classifier(model):
        return "accuracy"
    raise TypeError(
        f"{type(model).__name__} is neither a regressor nor a classifier: scoring must "
        "be given."
    )


def method_of(scorer, model, rows):
    """The method whose predictions a scorer asks for."""
    if rows.weights is not None:
        check_takes_weights(scorer)
    X, y = rows.X, rows.y
    if not rows.seen.all():
        X, y = _safe_indexing(X, np.flatnonzero(rows.seen)), y[rows.seen]
    try:
        scorer(Recorded(model, {}, rows.classes), X, y)
    except Wanted as wanted:
        return wanted.method
    raise TypeError(f"{scorer!r} asks for none of {', '.join(METHODS)}.")


def check_takes_weights(scorer):
    """Refuse a scorer that can't weigh rows."""
    function = getattr(scorer, "_score_func", scorer)
    try:
        accepted = signature(function).parameters
    except (TypeError, ValueError):
        return
    if "sample_weight" not in accepted and not any(
        p.kind == Parameter.VAR_KEYWORD for p in accepted.values()
    ):
        raise TypeError(f"The scorer {scorer!r} takes no sample_weight.")


def with_classes(scorer, classes):
    """A scorer that knows all classes, where its rows may not show them.

    Scores of probabilities of scikit-learn otherwise take them from the labels, and
    fail where one of them has none.
    """
    function = getattr(scorer, "_score_func", None)
    if function is None or np.ndim(classes) != 1 or "labels" in scorer._kwargs:
        return scorer
    proba = scorer._response_method in ("predict_proba", ("predict_proba",))
    if not proba or "labels" not in signature(function).parameters:
        return scorer
    scorer = copy(scorer)
    scorer._kwargs = scorer._kwargs | {"labels": classes}
    return scorer


def score_of(scorer, estimator, X, y, weights=None):
    """The score as a float."""
    params = {} if weights is None else {"sample_weight": weights}
    scorer = with_classes(scorer, getattr(estimator, "classes_", None))
    return float(scorer(estimator, X, y, **params))
