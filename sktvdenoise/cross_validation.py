"""The penalty of the fused lasso by cross-validation, one path a fold."""

from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import _fit_context
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples

from sktvdenoise._knots import held_out_errors
from sktvdenoise._positions import check_labels, check_ordered, check_weights
from sktvdenoise._signal import Shrinkage, channels
from sktvdenoise.offline import FusedLasso
from sktvdenoise.path import FusedLassoPath, noise_scale

__all__ = ["FusedLassoCV", "InterleavedKFold"]


class InterleavedKFold:
    """Folds that take turns along the positions: every k-th row is held out.

    Each held-out row has its neighbours in the training set, so that folds judge
    how well a curve fills gaps, not how well it extrapolates.

    Parameters
    ----------
    n_splits : int >= 2, default=5
        Number of folds k.

    Examples
    --------
    >>> from sktvdenoise import InterleavedKFold
    >>> for train, test in InterleavedKFold(2).split([[10], [30], [20], [40]]):
    ...     print(train, test)
    [2 3] [0 1]
    [0 1] [2 3]
    """

    def __init__(self, n_splits=5):
        self.n_splits = n_splits

    def split(self, X, y=None, groups=None):
        """Yield the rows of each training and test set, ascending.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order.
        y, groups : object, default=None
            Ignored.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If `n_splits` is not an integer from 2 to the number of rows.
        """
        k, n_samples = self.n_splits, _num_samples(X)
        if not isinstance(k, Integral) or not 2 <= k <= n_samples:
            raise ValueError(
                f"n_splits must be an integer from 2 to the number of rows, got "
                f"n_splits={k!r} and n_samples={n_samples}."
            )
        rank = np.empty(n_samples, dtype=np.intp)
        order = np.argsort(np.asarray(X).reshape(n_samples), kind="stable")
        rank[order] = np.arange(n_samples)
        for fold in range(k):
            held_out = rank % k == fold
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def get_n_splits(self, X=None, y=None, groups=None):
        """The number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        n_splits : int
        """
        return self.n_splits

    def __repr__(self):
        return f"{type(self).__name__}(n_splits={self.n_splits!r})"


class FusedLassoCV(FusedLasso):
    """Total-variation denoising with the penalty chosen by cross-validation.

    Labels are held out in turn and predicted by the piece they fall in. One solution
    path per fold serves all penalties.

    Parameters
    ----------
    alphas : int >= 1 or array-like of float >= 0, default=None
        Candidate penalties, or their number, from one that is too small, a tenth of
        the noise's standard deviation, to the least that gives a constant, in
        geometric steps. None is 100.
    cv : int >= 2, splitter or iterable, default=None
        Folds. An int is the number of folds that take turns along the positions
        (:class:`~sktvdenoise.InterleavedKFold`); None is 5. A splitter of
        scikit-learn, which should shuffle, or an iterable of pairs of row numbers
        works as in :class:`~sklearn.model_selection.GridSearchCV`.
    scoring : str or callable, default=None
        What to maximise: a scorer's name or a scorer ``f(estimator, X, y)``. None
        minimises the mean squared error, which is much the fastest.
    n_jobs : int, default=None
        Number of folds computed at once by joblib. The numbers don't depend on it.
    one_standard_error : bool, default=False
        Whether to take the largest penalty whose mean score is within one standard
        error of the best one, for fewer pieces.
    sparsity, bound, refit, missing : default=0.0, None, False, "error"
        As for :class:`~sktvdenoise.FusedLasso`. `refit` applies to the final fit,
        not to the folds.

    Attributes
    ----------
    alpha_ : float
        The penalty chosen.
    alphas_ : ndarray of shape (n_alphas,)
        Candidates in descending order.
    scores_ : ndarray of shape (n_alphas, n_folds)
        Scores of the held-out labels; minus `mse_path_` without `scoring`.
    mse_path_ : ndarray of shape (n_alphas, n_folds)
        Mean squared errors of the held-out labels, weighted by `sample_weight`,
        averaged over the outputs. Only without `scoring`.
    positions_, values_, breakpoints_, n_pieces_, tv_, loss_, dual_gap_, n_features_in_
        Of the fit at `alpha_` to all labels, as for
        :class:`~sktvdenoise.FusedLasso`.

    See Also
    --------
    FusedLasso : Fixed penalty or budget, and rules that don't need folds.
    sktvdenoise.plotting.FusedLassoPathDisplay : A picture of the path and the scores.

    Notes
    -----
    Where the scores of several candidates are equal, the largest penalty is chosen.
    A training set has fewer rows than all, so the penalty acts a little more
    strongly on it, as in every grid search over `alpha`.

    With `scoring=None` the held-out labels are summed over the pieces, which only
    merge along the path: a fold costs one path and, for each penalty, a pass over
    its pieces.

    Examples
    --------
    >>> from sktvdenoise import FusedLassoCV
    >>> from sktvdenoise.datasets import load_nile
    >>> X, y = load_nile(return_X_y=True)
    >>> model = FusedLassoCV(alphas=[10, 100, 1000]).fit(X, y)
    >>> model.alpha_, model.n_pieces_
    (1000.0, 2)
    """

    _parameter_constraints = {
        "alphas": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "n_jobs": [Integral, None],
        "one_standard_error": ["boolean"],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "bound": [Interval(Real, 0, None, closed="neither"), None],
        "refit": ["boolean"],
        "missing": [StrOptions({"error", "skip"})],
    }

    def __init__(
        self,
        alphas=None,
        *,
        cv=None,
        scoring=None,
        n_jobs=None,
        one_standard_error=False,
        sparsity=0.0,
        bound=None,
        refit=False,
        missing="error",
    ):
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.one_standard_error = one_standard_error
        self.sparsity = sparsity
        self.bound = bound
        self.refit = refit
        self.missing = missing

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Choose the penalty and denoise `y` in the order of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order; rows with equal positions keep their order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights >= 0, of the fits and of the errors; None for ones. With
            `scoring` they are those of the fits only, as in a grid search.

        Returns
        -------
        self : FusedLassoCV

        Raises
        ------
        ValueError
            If a training or a test set has no weighted label of an output, a penalty
            is negative or not finite, or the data have a bad shape, or a value that
            is not finite (the message names the row).
        TypeError
            If `X` holds dates.
        """
        self._check_refit()
        positions, rows, weights, shape, order = check_ordered(
            self, X, y, sample_weight
        )
        path = FusedLassoPath(channels(rows, weights), rows.shape)
        self.alphas_ = self._candidates(path)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        folds = [[np.sort(rank[part]) for part in pair] for pair in self._folds(X, y)]
        shrink = Shrinkage(self.sparsity, self.bound)
        ascending = self.alphas_[::-1].copy()
        if self.scoring is None:
            calls = (
                delayed(fold_errors)(
                    number, *fold, positions, rows, weights, ascending, shrink
                )
                for number, fold in enumerate(folds)
            )
        else:
            scorer = check_scoring(self, self.scoring)
            data = X, y, sample_weight
            calls = (
                delayed(fold_scores)(
                    number,
                    *(order[part] for part in fold),
                    *data,
                    ascending,
                    self,
                    scorer,
                )
                for number, fold in enumerate(folds)
            )
        scores = Parallel(self.n_jobs)(calls)
        self.scores_ = np.array(scores).T[::-1]
        self.__dict__.pop("mse_path_", None)
        if self.scoring is None:
            self.mse_path_, self.scores_ = self.scores_, -self.scores_
        alpha = self.alphas_[self._choose()]
        return self._keep(positions, path.at(alpha, shrink), shape)

    def _candidates(self, path):
        """Penalties in descending order."""
        if self.alphas is not None and not isinstance(self.alphas, Integral):
            alphas = check_labels(self.alphas)
            if alphas.ndim != 1 or (alphas < 0).any():
                raise ValueError("alphas must be a list of numbers >= 0.")
            return np.sort(alphas)[::-1].copy()
        largest = path.alpha_max
        if largest == 0:
            return np.zeros(1)
        noise = max(noise_scale(signal) for signal in path.signals)
        smallest = min(max(0.1 * noise, 1e-6 * largest), largest)
        return np.geomspace(
            largest, smallest, 100 if self.alphas is None else self.alphas
        )

    def _folds(self, X, y):
        """Pairs of row numbers, as a grid search would make them."""
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            cv = InterleavedKFold(cv)
        return check_cv(cv).split(X, y)

    def _choose(self):
        mean = self.scores_.mean(axis=1)
        best = int(np.argmax(mean))
        n_folds = self.scores_.shape[1]
        if self.one_standard_error and n_folds > 1:
            error = self.scores_[best].std(ddof=1) / np.sqrt(n_folds)
            best = int(np.argmax(mean >= mean[best] - error))
        return best


def _weighted(fold, name, rows, weights):
    """Weights as a matrix; refuse a set in which an output has none."""
    weights = np.ones(len(rows)) if weights is None else weights
    weights = np.broadcast_to(weights.T, rows.T.shape).T
    if not len(rows) or not weights.any(axis=0).all():
        raise ValueError(f"The {name} set of fold {fold} holds no weighted label.")
    return weights


def fold_errors(fold, train, test, positions, rows, weights, alphas, shrink):
    """Mean squared errors of the held-out rows at ascending `alphas`.

    Every held-out label belongs to a training sample, the last one at or before its
    position, and from then on to the piece of that sample. Pieces only merge as
    alpha grows, so their sums are carried from one alpha to the next, as means and
    squares about the means.
    """
    place = np.searchsorted(positions[train], positions[test], side="right") - 1
    place = np.maximum(place, 0)
    train_weights = None if weights is None else weights[train]
    test_weights = None if weights is None else weights[test]
    _weighted(fold, "training", rows[train], train_weights)
    test_weights = _weighted(fold, "test", rows[test], test_weights)
    errors = np.zeros(len(alphas))
    for j, signal in enumerate(channels(rows[train], train_weights)):
        held_out, w = rows[test, j], test_weights[:, j]
        piece = place if signal.source is None else signal.source[place]
        seen = w > 0
        errors += _channel_errors(
            signal, piece[seen], held_out[seen], w[seen], alphas, shrink
        )
    return errors / rows.shape[1]


def _channel_errors(signal, piece, labels, w, alphas, shrink):
    vanish, _ = signal.path()
    step = np.sign(np.diff(signal.y))
    mean, mass = signal.y, signal.masses(np.arange(len(signal.y)))
    held = np.bincount(piece, w, len(mean))
    # About the training sample, so that large offsets cost no digits.
    move = labels - signal.y[piece]
    rest = np.bincount(piece, w * move**2, len(mean))
    move = np.bincount(piece, w * move, len(mean))
    move = np.divide(move, held, out=np.zeros_like(move), where=held > 0)
    rest -= held * move**2
    errors = np.empty(len(alphas))
    pieces = mean.copy(), mass, mean + move, held, rest
    bound = np.inf if shrink.bound is None else shrink.bound
    held_out_errors(vanish, step, *pieces, alphas, shrink.sparsity, bound, errors)
    return errors / w.sum()


def fold_scores(fold, train, test, X, y, sample_weight, alphas, estimator, scorer):
    """Scores of the held-out rows at ascending `alphas`, by any scorer."""
    model = FusedLasso(
        sparsity=estimator.sparsity, bound=estimator.bound, missing=estimator.missing
    )
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, _num_samples(X))[train]
    data = _safe_indexing(X, train), _safe_indexing(y, train), sample_weight
    positions, rows, weights, shape, _ = check_ordered(model, *data)
    path = FusedLassoPath(channels(rows, weights), rows.shape)
    labels = check_labels(y, allow_nan=True)[test]
    test = test[~np.isnan(labels).reshape(len(test), -1).any(axis=1)]
    if not len(test):
        raise ValueError(f"The test set of fold {fold} holds no label.")
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    shrink = Shrinkage(model.sparsity, model.bound)
    scores = []
    for alpha in alphas:
        model.positions_ = positions
        model.values_ = path.at(alpha, shrink).u.reshape(shape)
        scores.append(scorer(model, X_test, y_test))
    return scores
