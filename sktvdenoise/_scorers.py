"""Scorers of estimators that learn on: regret and loss through the scored rows."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._positions import check_labels, check_number, check_weights
from sktvdenoise._problem import check_exposure
from sktvdenoise._progressive import (
    can_go_on,
    continued,
    final_step,
    labelled,
    skips_missing,
)
from sktvdenoise._recorded import (
    Recorded,
    check_takes_weights,
    default_scoring,
    score_of,
)
from sktvdenoise._regret_curve import (
    RegretCurve,
    check_prediction,
    check_truth,
    losses,
)
from sktvdenoise._signal import solution

__all__ = [
    "make_dynamic_regret_scorer",
    "make_progressive_scorer",
    "neg_dynamic_regret",
]


class _ContinuedScorer(BaseEstimator):
    """Scores an estimator's predictions, made while it goes on learning.

    A scorer has parameters, a `repr` and requests for metadata, as estimators have.
    """

    # Not a wish for metadata, although `score` has it as an argument.
    __metadata_request__score = {"estimator": UNUSED}

    def __call__(
        self, estimator, X, y, *, sample_weight=None, exposure=None, truth=None
    ):
        return self.score(
            estimator,
            X,
            y,
            sample_weight=sample_weight,
            exposure=exposure,
            truth=truth,
        )

    def score(self, estimator, X, y, *, sample_weight=None, exposure=None, truth=None):
        """Score rows; higher is better.

        Parameters
        ----------
        estimator : estimator
            It must be fitted, and is not changed.
        X : array-like of shape (n_samples,) or (n_samples, n_features)
            Rows in order of time.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0 for learning and score.
        exposure : float or array-like of shape (n_samples,), default=None
            Time or size that counts `y` were taken over, for learning; what is judged
            is exposure times the rate that is predicted.
        truth : array-like of the shape of y, default=None
            What predictions are judged by in place of `y`, which is learned.

        Returns
        -------
        score : float
        """
        self.check()
        if hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        scorer = check_scoring(scoring=self._scoring(estimator, exposure))
        if sample_weight is not None:
            check_takes_weights(scorer)
        if self.learn and can_go_on(estimator, X):
            params = None if exposure is None else {"exposure": exposure}
            estimator, rows = continued(estimator, X, y, scorer, sample_weight, params)
            y, seen, weights = rows.y, rows.seen, rows.weights
        else:
            seen, weights = None, sample_weight
            if skips_missing(final_step(estimator)):
                y = check_labels(y, allow_nan=True)
                seen = labelled(y)
            if weights is not None:
                weights = check_weights(weights, len(y), allow_all_zero=True)
            if exposure is not None:
                units = check_exposure(exposure, check_labels(y, allow_nan=True))
                rates = estimator.predict(X)
                units = units.reshape(-1, *[1] * (rates.ndim - 1))
                estimator = Recorded(estimator, {"predict": units * rates})
        if truth is not None:
            truth = np.asarray(truth)
            if truth.shape != np.shape(y):
                raise ValueError(
                    f"truth and y must have the same shape: truth has {truth.shape}, "
                    f"y has {np.shape(y)}."
                )
            y, seen = truth, None
        if seen is not None and not seen.all():
            if not seen.any():
                raise ValueError("Input y contains NaN in every row: nothing to score.")
            if isinstance(estimator, Recorded):
                estimator = estimator.at(seen)
            X, y = _safe_indexing(X, seen), y[seen]
            weights = None if weights is None else weights[seen]
        return score_of(scorer, estimator, X, y, weights)

    def _accept_sample_weight(self):
        return True


class ProgressiveScorer(_ContinuedScorer):
    """What `make_progressive_scorer` returns."""

    def __init__(self, scoring=None, *, learn=True):
        self.scoring = scoring
        self.learn = learn

    def _scoring(self, estimator, exposure):
        return self.scoring or default_scoring(estimator)

    def check(self):
        """Refuse parameters out of range."""
        _check_learn(self.learn)
        if isinstance(self.scoring, str):
            get_scorer(self.scoring)
        elif self.scoring is not None and not callable(self.scoring):
            raise ValueError(
                f"scoring must be a scorer's name, a scorer or None, got "
                f"{self.scoring!r}."
            )


class DynamicRegretScorer(_ContinuedScorer):
    """What `make_dynamic_regret_scorer` returns."""

    def __init__(self, tv_budget=None, *, bound=None, learn=True):
        self.tv_budget = tv_budget
        self.bound = bound
        self.learn = learn

    def _scoring(self, estimator, exposure):
        if exposure is not None:
            raise ValueError(
                "Counts with an exposure have no regret of squared losses: the "
                "sequences compared with would be of counts, not of rates. "
                "make_progressive_scorer scores them."
            )
        return self._negative_regret

    def check(self):
        """Refuse parameters out of range."""
        _check_learn(self.learn)
        if self.tv_budget is not None:
            check_number("tv_budget", self.tv_budget, finite=True)
        if self.bound is not None:
            check_number("bound", self.bound, positive=True)

    def _negative_regret(self, estimator, X, y, sample_weight=None):
        predictions = estimator.predict(X)
        y, weights = check_truth(y, sample_weight)
        x = check_prediction(predictions, y, weights, "the prediction")
        loss = losses(y, x, weights).sum()
        if self.tv_budget is None:
            scored = y if weights is None else y[weights > 0]
            # Where all labels are 0 the bound doesn't count.
            bound = self.bound or np.abs(scored).max() or 1.0
            curve = RegretCurve.of(y, weights, loss)
            return -curve.oracle_inequality(bound).value
        rows = y.reshape(len(y), -1)
        oracle = solution(rows, weights, tv_budget=self.tv_budget, bound=self.bound)
        return oracle.loss - loss


def _check_learn(learn):
    if not isinstance(learn, bool | np.bool_):
        raise ValueError(f"learn must be True or False, got {learn!r}.")


def make_dynamic_regret_scorer(tv_budget=None, *, bound=None, learn=True):
    """Make a scorer from minus the dynamic regret, for searches and cross-validation.

    Parameters
    ----------
    tv_budget : float >= 0, default=None
        Largest total variation of the sequence that predictions are compared with,
        `C`, in the units of the labels; 0 compares with the best constant. None
        compares with all sequences, each charged for its variation: see Notes.
    bound : float > 0, default=None
        `B`, in the units of the labels: with `tv_budget`, the largest absolute value
        of the sequence; without, what the charge reckons with, by default the
        largest label that is scored.
    learn : bool, default=True
        Whether an estimator with `partial_fit` goes on learning, on a copy, through
        the scored rows, each after its prediction; also the last step of a pipeline,
        whose transformers learn, too, or stay as they were fitted if they have no
        `partial_fit`, and the best estimator of a search. Other estimators, and with
        False all, predict the rows as they are; so do denoisers if the first row
        lies before the last one they were fitted to.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None, truth=None)`` returns minus the
        regret of the predictions of a fitted estimator, in squared units of the
        labels: higher is better. With `truth` they are judged by it, while `y` is
        learned.

    Raises
    ------
    ValueError
        If `tv_budget` is negative or not finite, `bound` isn't positive, or `learn`
        isn't a boolean.

    See Also
    --------
    sktvdenoise.metrics.dynamic_regret : The regret of given predictions.
    make_progressive_scorer : Any other score of such predictions.

    Notes
    -----
    With labels :math:`y_t`, weights :math:`w_t` and predictions :math:`x_t` the
    score is :math:`\\min_u [\\sum_t w_t (y_t - u_t)^2 + p(u)] - \\sum_t w_t (y_t -
    x_t)^2`. With a budget :math:`p` is 0 within it and infinite beyond. Without, it
    is the rate of [1]_, :math:`n^{1/3} TV(u)^{2/3} B^{4/3}`, `n` being the number of
    rows with weight: the score is positive where predictions do better than any
    sequence for what it costs.

    The oracle sees only the scored rows. On the same rows all budgets rank
    estimators alike, as the mean squared error does. The score is finite on a single
    row and on constant labels.

    An estimator that learns needs rows in order of time, later than those it was
    fitted to: :class:`~sklearn.model_selection.TimeSeriesSplit` makes such folds. The
    score of a training set, as :func:`~sklearn.model_selection.learning_curve`
    computes it, is one of estimates that have seen the labels.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory. Remark 2.

    Examples
    --------
    >>> from sklearn.model_selection import TimeSeriesSplit, cross_val_score
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.datasets import load_nile
    >>> from sktvdenoise.metrics import make_dynamic_regret_scorer
    >>> scorer, folds = make_dynamic_regret_scorer(tv_budget=0), TimeSeriesSplit(3)
    >>> X, y = load_nile(return_X_y=True)
    >>> cross_val_score(OnlineTVDenoiser(), X, y, scoring=scorer, cv=folds).shape
    (3,)
    """
    scorer = DynamicRegretScorer(tv_budget, bound=bound, learn=learn)
    scorer.check()
    return scorer


def make_progressive_scorer(scoring=None, *, learn=True):
    """Make a scorer of predictions that are made while learning goes on.

    Parameters
    ----------
    scoring : str or callable, default=None
        What scores the predictions: a scorer's name or a scorer ``f(estimator, X,
        y)``. None is "neg_mean_squared_error" for a regressor and "accuracy" for a
        classifier, which are finite on a single row and on constant labels.
    learn : bool, default=True
        As for :func:`make_dynamic_regret_scorer`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None, exposure=None, truth=None)``,
        higher is better; `estimator` is fitted and is not changed. With `exposure`
        counts are judged by exposure times the rate. With `truth` the predictions are
        judged by it, while `y` is learned.

    Raises
    ------
    ValueError
        If `scoring` is no scorer, or `learn` isn't a boolean.

    See Also
    --------
    sktvdenoise.model_selection.progressive_val_score : Of an estimator that has
        learned nothing yet.

    Examples
    --------
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> from sktvdenoise.metrics import make_progressive_scorer
    >>> model = OnlineTVDenoiser().fit([0, 1], [3.0, 3.0])
    >>> score = make_progressive_scorer("neg_max_error")(model, [2, 3, 4], [5, 5, 5])
    >>> round(score)
    -2
    """
    scorer = ProgressiveScorer(scoring, learn=learn)
    scorer.check()
    return scorer


neg_dynamic_regret = make_dynamic_regret_scorer()
"""Minus the dynamic regret without a budget: ``make_dynamic_regret_scorer()``."""
