"""The penalty of the fused lasso by cross-validation, one path a fold."""

import warnings
from numbers import Integral, Number, Real

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, _fit_context
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples

from sktvdenoise._knots import held_out_errors
from sktvdenoise._positions import (
    check_labels,
    check_ordered,
    check_positions,
    check_weights,
)
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
            If `n_splits` is not an integer from 2 to the number of rows, or `X` has
            several columns or a value that is not finite (the message names the row).
        TypeError
            If `X` holds dates.
        """
        positions = check_positions(BaseEstimator(), X, reset=True)
        k, n_samples = self.n_splits, len(positions)
        if not isinstance(k, Integral) or not 2 <= k <= n_samples:
            raise ValueError(
                f"n_splits must be an integer from 2 to the number of rows, got "
                f"n_splits={k!r} and n_samples={n_samples}."
            )
        turn = np.empty(n_samples, dtype=np.intp)
        turn[np.argsort(positions, kind="stable")] = np.arange(n_samples) % k
        for fold in range(k):
            held_out = turn == fold
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
    path per fold serves all penalties. It is for the squared loss and the penalty
    "tv": for counts, classes and joint jumps search over
    :class:`~sktvdenoise.FusedLasso` with
    :class:`~sklearn.model_selection.GridSearchCV`.

    Parameters
    ----------
    alphas : int >= 1 or array-like of float >= 0, default=None
        Candidate penalties, or their number, from one that is too small, a tenth of
        the noise's standard deviation, to the least that gives a constant, in
        geometric steps. None is 100.
    cv : int >= 2, splitter or iterable, default=None
        Folds. An int is the number of folds that take turns along the positions, as
        :class:`~sktvdenoise.InterleavedKFold` makes them, among the rows that have a
        label and a weight; None is 5. Where outputs miss different labels, rows that
        miss the same ones take turns among themselves. A splitter of scikit-learn,
        which should shuffle, or an iterable of pairs of row numbers works as in
        :class:`~sklearn.model_selection.GridSearchCV`.
    scoring : str or callable, default=None
        What to maximise: a scorer's name or a scorer ``f(estimator, X, y)``, which
        gets a fitted `FusedLasso` and rows without missing labels. None minimises
        the mean squared error, which is much the fastest.
    n_jobs : int, default=None
        Number of folds computed at once by joblib. The numbers don't depend on it.
    one_standard_error : bool, default=False
        Whether to take the largest penalty whose mean score is within one standard
        error of the best one, for fewer pieces.
    sparsity, bound, refit, missing : default=0.0, None, False, "error"
        As for :class:`~sktvdenoise.FusedLasso`. `refit`, which needs ``sparsity=0``
        and no `bound`, applies to the final fit, not to the folds. All others
        combine.

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
    positions_, values_, breakpoints_, n_pieces_, tv_, loss_, dual_gap_
        Of the fit at `alpha_` to all labels, as for
        :class:`~sktvdenoise.FusedLasso`.
    linear_values_ : ndarray of the shape of `values_`
        Equal to `values_`.
    n_iter_ : int
        Always 1.
    n_features_in_ : int
        Always 1.
    feature_names_in_ : ndarray of shape (1,)
        Name of the column of `X`, where it has one.

    See Also
    --------
    FusedLasso : Fixed penalty or budget, and rules that don't need folds.
    sktvdenoise.plotting.FusedLassoPathDisplay : A picture of the path and the scores.

    Notes
    -----
    Where the scores of several candidates are equal, the largest penalty is chosen.
    Candidates with a score that is NaN come last, with a warning.
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
            If a training or a test set has no weighted label of an output, a fold
            has rows that aren't there, a penalty is negative or not finite, no
            candidate has a score, or the data have a bad shape or a value that is
            not finite (the message names the row).
        TypeError
            If `X` holds dates.

        Warns
        -----
        UserWarning
            If scores are not finite.
        """
        self._check_refit()
        positions, rows, weights, shape, order = check_ordered(
            self, X, y, sample_weight
        )
        path = FusedLassoPath(channels(rows, weights), rows.shape)
        self.alphas_ = self._candidates(path)
        folds = self._folds(X, y, rows, weights, order)
        shrink = Shrinkage(self.sparsity, self.bound)
        ascending = self.alphas_[::-1].copy()
        if self.scoring is None:
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))

            def in_order(part):
                # Equal positions stay in the order in which the fold has them.
                part = rank[part]
                return part[np.argsort(positions[part], kind="stable")]

            calls = (
                delayed(fold_errors)(
                    number,
                    *map(in_order, fold),
                    positions,
                    rows,
                    weights,
                    ascending,
                    shrink,
                )
                for number, fold in enumerate(folds)
            )
        else:
            scorer = check_scoring(self, self.scoring)
            data = X, y, sample_weight
            calls = (
                delayed(fold_scores)(number, *fold, *data, ascending, self, scorer)
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
            alphas = check_labels(self.alphas, name="alphas")
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

    def _folds(self, X, y, rows, weights, order):
        """Pairs of row numbers, as a grid search would make them."""
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            return _turns(cv, rows, weights, order)
        folds = [
            [_row_numbers(part, number, len(order)) for part in pair]
            for number, pair in enumerate(check_cv(cv).split(X, y))
        ]
        if not folds:
            raise ValueError("cv has no folds.")
        return folds

    def _choose(self):
        if not np.isfinite(self.scores_).all():
            if np.isnan(self.scores_).any(axis=1).all():
                raise ValueError("Every candidate has a score that is NaN.")
            warnings.warn("One or more of the scores are non-finite.", stacklevel=3)
        mean = self.scores_.mean(axis=1)
        best = int(np.nanargmax(mean))
        n_folds = self.scores_.shape[1]
        if self.one_standard_error and n_folds > 1:
            error = self.scores_[best].std(ddof=1) / np.sqrt(n_folds)
            best = int(np.argmax(mean >= mean[best] - error))
        return best


def _turns(n_splits, rows, weights, order):
    """Folds that take turns among the rows with labels of weight, in their order.

    Rows in which the same outputs are observed take turns among themselves, so that
    each fold holds labels of every output, as long as there are enough.
    """
    if weights is None:
        seen = np.arange(len(rows))
    else:
        observed = np.broadcast_to(weights.T > 0, rows.T.shape).T
        kind = np.unique(observed, axis=0, return_inverse=True)[1].reshape(-1)
        seen = np.flatnonzero(observed.any(axis=1))
        seen = seen[np.argsort(kind[seen], kind="stable")]
    turns = InterleavedKFold(n_splits).split(np.arange(len(seen)))
    return [[np.sort(order[seen[part]]) for part in pair] for pair in turns]


def _row_numbers(part, fold, n_samples):
    """Rows of a fold, also where they are told by booleans or counted from the end."""
    part = np.asarray(part)
    if part.dtype == bool and part.shape == (n_samples,):
        part = np.flatnonzero(part)
    elif not part.size:
        part = part.astype(np.intp)
    if part.ndim != 1 or part.dtype.kind not in "iu":
        raise ValueError(f"Fold {fold} of cv is no pair of lists of row numbers.")
    beyond = (part < -n_samples) | (part >= n_samples)
    if beyond.any():
        raise ValueError(
            f"Fold {fold} of cv has the row {part[np.argmax(beyond)]}, but there are "
            f"{n_samples} rows."
        )
    return part


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
    given = {
        name: getattr(estimator, name) for name in ("sparsity", "bound", "missing")
    }
    reader = FusedLasso(**given)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, _num_samples(X))[train]
    data = _safe_indexing(X, train), _safe_indexing(y, train), sample_weight
    positions, rows, weights, shape, _ = check_ordered(reader, *data)
    columns = {k: v for k, v in vars(reader).items() if k.endswith("_in_")}
    path = FusedLassoPath(channels(rows, weights), rows.shape)
    labels = check_labels(y, allow_nan=True)[test]
    test = test[~np.isnan(labels).reshape(len(test), -1).any(axis=1)]
    if not len(test):
        raise ValueError(f"The test set of fold {fold} holds no label.")
    X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
    shrink = Shrinkage(estimator.sparsity, estimator.bound)
    scores = []
    for alpha in alphas:
        model = FusedLasso(float(alpha), **given)
        vars(model).update(columns)
        model._keep(positions, path.at(alpha, shrink), shape)
        score = scorer(model, X_test, y_test)
        if not isinstance(score, Number):
            raise ValueError(f"scoring must return a number, got {score!r}.")
        scores.append(score)
    return scores
