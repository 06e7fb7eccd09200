"""Adaptive classification with covariates, row by row."""

import numpy as np
from scipy.special import expit, log_expit, logit
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets

from sktvdenoise._linear_estimator import LinearEstimator
from sktvdenoise._positions import refuse_not_finite

__all__ = ["FLHClassifier"]


class FLHClassifier(ClassifierMixin, LinearEstimator):
    r"""Adaptive logistic regression: coefficients that change, by as much as they need.

    `FLHRegressor` with the logistic loss :math:`\ln(1 + e^z) - y z` of the log odds
    :math:`z = x^\top \theta`; the classes of more than two are told apart one from the
    rest.

    Parameters
    ----------
    expert : {"ons", "ogd"}, default="ons"
        The online Newton step, or online gradient descent. With "auto" the experts of
        the guard are those of "ons".
    learning_rate : {"auto", "theory"} or float, default="auto"
        How predictions are made; :math:`\eta`, how strongly losses change the experts'
        weights.

        - "auto": by a pool of regressions that follow their coefficients at different
          paces (see `sktvdenoise.laplace`), with the learner of "theory", on rows
          divided by the largest norm so far, as a guard: on every sequence the loss is
          at most the guard's plus ln 100;
        - "theory": all constants from `bound` and the largest row so far, for which
          Theorem 14 of [1]_ holds. They suit rows of norms about 1 or less. With
          several features (the 1 of the intercept is one) nothing is guaranteed for
          "ogd";
        - a float; 1 is a good value for rows of norm 1 to 10, to which others should be
          scaled. "ons" takes it for the rate of its steps, too.

    bound : float, default=None
        Refused with "auto". B, in units of one over features: the largest coefficient
        of the sequences to compare with at the rate of "theory" (None: 1), the largest
        coefficient of an expert at a float (None: any).
    pruning : {"aflh"} or None, default="aflh"
        As of `FLHRegressor`.
    alpha : float, default=1.0
        Refused with "auto". At a float, "ons" starts with :math:`\alpha / \eta` times
        the identity, and "ogd" takes :math:`H = \alpha R^2 / 4`, where R bounds the
        norms of the rows so far. Another value than 1 is refused at the rate of
        "theory".
    fit_intercept : bool, default=True
        Whether a feature 1 is added to the rows. False is refused with "auto".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features_in_) or (n_classes, n_features_in_)
        Coefficients of the mixture for the next row; with two classes those of the log
        odds of the second. With "auto" they are weighted means of the pool's: it mixes
        probabilities, so that ``decision_function`` is near to what they give, not the
        same, and nowhere beyond the log odds of a probability of 1e-6.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    expert_births_, expert_weights_ : ndarray of shape (n_experts,) or list of such
        As of `FLHRegressor`; one for each class where there are more than two.
    member_weights_, learning_rate_, bound_, label_bound_, row_bound_, constants_
        As of `FLHRegressor`.
    n_samples_seen_ : int
        Number of rows seen.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with names.

    See Also
    --------
    FLHRegressor : The same for numbers and counts, with more about the method.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise import FLHClassifier
    >>> X = np.sin(np.arange(400.0))[:, None]
    >>> y = np.where(X[:, 0] * np.where(np.arange(400) < 200, 1, -1) > 0, "up", "down")
    >>> FLHClassifier().fit(X, y).predict([[-1.0], [1.0]])
    array(['up', 'down'], dtype='<U4')
    """

    _parameter_constraints = {
        **LinearEstimator._parameter_constraints,
        "expert": [StrOptions({"ons", "ogd"})],
    }

    def __init__(
        self,
        expert="ons",
        *,
        learning_rate="auto",
        bound=None,
        pruning="aflh",
        alpha=1.0,
        fit_intercept=True,
    ):
        self.expert = expert
        self.learning_rate = learning_rate
        self.bound = bound
        self.pruning = pruning
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    @property
    def coef_(self):
        return np.atleast_2d(super().coef_)

    @property
    def intercept_(self):
        return np.atleast_1d(super().intercept_)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Forget the past and learn from the rows in their order, in one pass.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Covariates, at most 1e30 in size.
        y : array-like of shape (n_samples,)
            Classes, at least two.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors of the rows' losses; None means 1. From a row of weight 0 nothing
            is learned.

        Returns
        -------
        self : FLHClassifier

        Raises
        ------
        ValueError
            If an array is empty, of wrong shape, not finite or too large, if a weight
            is negative, if there is a single class; if parameters don't go together.
        """
        self._learn_rows(X, y, None, sample_weight, reset=True)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on learning, row by row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            All classes that may come. Needed in the first call, unless the rows of this
            call have them all.
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self : FLHClassifier

        Raises
        ------
        ValueError
            As in `fit`, and if a label is not one of the classes. Nothing of the batch
            has been learned then.
        """
        self._learn_rows(X, y, classes, sample_weight)
        return self

    def partial_fit_predict(self, X, y, classes=None, sample_weight=None):
        """Go on learning, and return the classes predicted before each was seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `partial_fit`, whose errors this raises.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        probabilities = self.partial_fit_predict_proba(X, y, classes, sample_weight)
        return self._labels(probabilities)

    def partial_fit_predict_proba(self, X, y, classes=None, sample_weight=None):
        """Go on learning, and return the probabilities given before each label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `partial_fit`, whose errors this raises.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        if not self.__sklearn_is_fitted__():
            self._validate_params()
        return self._probabilities(self._learn_rows(X, y, classes, sample_weight))

    def partial_fit_predict_log_proba(self, X, y, classes=None, sample_weight=None):
        """Go on learning, and return logarithms of the probabilities given before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `partial_fit`, whose errors this raises.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        if not self.__sklearn_is_fitted__():
            self._validate_params()
        return self._log_probabilities(self._learn_rows(X, y, classes, sample_weight))

    def partial_fit_decision_function(self, X, y, classes=None, sample_weight=None):
        """Go on learning, and return the log odds given before each label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `partial_fit`, whose errors this raises.

        Returns
        -------
        z : ndarray of shape (n_samples,) or (n_samples, n_classes)
            As of `decision_function`.
        """
        if not self.__sklearn_is_fitted__():
            self._validate_params()
        return self._log_odds(self._learn_rows(X, y, classes, sample_weight))

    def decision_function(self, X):
        """The log odds, each row as if it were the next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        z : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes those of the second; otherwise of each class against the
            rest.
        """
        return self._log_odds(self._outputs(X))

    def predict_proba(self, X):
        """Probabilities of the classes, each row as if it were the next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Their sum is 1: with more than two classes those of each against the rest
            are divided by their sum.
        """
        return self._probabilities(self._outputs(X))

    def predict_log_proba(self, X):
        """Logarithms of the probabilities, each row as if it were the next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Those of `predict_proba`. With two classes at a rate, or that of "theory",
            they are finite where a probability is rounded to 0.
        """
        return self._log_probabilities(self._outputs(X))

    def predict(self, X):
        """The most probable class, each row as if it were the next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self._labels(self._probabilities(self._outputs(X)))

    def _learn_rows(self, original, y, classes, sample_weight, *, reset=False):
        begins = reset or not self.__sklearn_is_fitted__()
        X = self._check_rows(original, reset=begins)
        y = _check_classes(y, len(X), begins)
        weights = self._check_weights(sample_weight, len(X), whole=reset)
        if begins:
            known = np.unique(y if classes is None else classes)
            if len(known) < 2:
                raise ValueError(
                    f"There must be at least two classes, but y has one class, "
                    f"{known[0]!r}. Tell partial_fit which others may come: classes."
                )
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(classes), known):
                raise ValueError(f"classes={classes!r} are not those before, {known}.")
        codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
        strange = known[codes] != y
        if strange.any():
            row = int(np.argmax(strange))
            raise ValueError(
                f"y[{row}] = {y.tolist()[row]!r} is not one of the classes {known}."
            )
        positive = [1] if len(known) == 2 else range(len(known))
        columns = [(codes == k).astype(float) for k in positive]
        if begins:
            begun = self._start(X, "logistic", len(columns))
        else:
            begun = self._engine, self._states
        outputs = self._learn(begun, original, X, columns, weights)
        self.classes_ = known
        return outputs

    def _is_single(self):
        return len(self._states) == 1

    def _probabilities(self, outputs):
        means = outputs if self._engine.predicts_mean else expit(outputs)
        if means.shape[1] == 1:
            return np.hstack([1 - means, means])
        total = means.sum(axis=1, keepdims=True)
        uniform = np.full_like(means, 1 / means.shape[1])
        return np.divide(means, total, out=uniform, where=total > 0)

    def _log_probabilities(self, outputs):
        if outputs.shape[1] == 1 and not self._engine.predicts_mean:
            return np.hstack([log_expit(-outputs), log_expit(outputs)])
        with np.errstate(divide="ignore"):
            return np.log(self._probabilities(outputs))

    def _log_odds(self, outputs):
        z = logit(outputs) if self._engine.predicts_mean else outputs
        return z[:, 0] if z.shape[1] == 1 else z

    def _labels(self, probabilities):
        return self.classes_[np.argmax(probabilities, axis=1)]


def _check_classes(y, n_samples, begins):
    """Labels as a one-dimensional array; their kind is checked where it `begins`."""
    if y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None."
        )
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"
    if begins or not plain or y.size == 0:
        y = check_array(
            y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y"
        )
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            refuse_not_finite(y, "y")
        check_classification_targets(y)
    if len(y) != n_samples:
        raise ValueError(
            f"X and y must have the same number of rows: X has {n_samples}, y has "
            f"{len(y)}."
        )
    return y
