"""What estimators of the level of a stream share: rows in, history, forecasts.

`LevelEstimator` validates rows, keeps their order and remembers the estimates; a
stream (see `sktvdenoise._stream`) makes them, one for each output.
"""

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._positions import (
    LARGEST,
    check_labels,
    check_positions,
    check_weights,
    step_predict,
)
from sktvdenoise._stream import make_writeable, with_room


class LevelEstimator(RegressorMixin, BaseEstimator):
    """Base of the estimators of a level from labels in order of their positions.

    A subclass says by `_new_stream` what learns one output. The parameters `bound`,
    `missing` and `keep_history` mean what they mean in `OnlineTVDenoiser`; one that
    a subclass doesn't have stands at None, "error" and True.
    """

    def _new_stream(self):
        """A stream that has seen nothing, as the parameters ask."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Forget the past and learn from the rows in order of position.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order. Rows with equal positions are learned
            from in the order given.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors of the rows' losses; None means 1. From a row of weight 0
            nothing is learned.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If an array is empty, of wrong shape or not finite, if a label is
            beyond `bound` or above 1e140, or if a weight is negative.
        """
        positions, y, weights = self._check_rows(
            X, y, sample_weight, reset=True, whole=True
        )
        order = np.argsort(positions, kind="stable")
        self._start(y)
        self._learn(positions[order], y[order], weights[order])
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Go on learning, row by row.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, none before the one that precedes it, the last one of
            earlier calls included.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As in `fit`, and if a position goes back or the number of outputs
            changes. Nothing of the batch has been learned then.
        """
        self.partial_fit_predict(X, y, sample_weight)
        return self

    def partial_fit_predict(self, X, y, sample_weight=None, *, return_std=False):
        """Go on learning, and return what was predicted before each label.

        The predictions don't depend on how rows are cut into batches. They
        are what regret is measured on.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, as in `partial_fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `fit`.
        return_std : bool, default=False
            Whether to return the standard deviations, too.

        Returns
        -------
        predictions : ndarray of the shape of y
            The prediction for each row, made before its label was seen.
        std : ndarray of the shape of y
            Standard deviation of the label about its prediction, known before
            the label was seen; infinite for the first two labels. Only with
            `return_std`.

        Raises
        ------
        ValueError
            As in `partial_fit`.
        """
        first = not hasattr(self, "n_samples_seen_")
        if first:
            self._validate_params()
        positions, y, weights = self._check_rows(X, y, sample_weight, reset=first)
        if not first:
            self._check_continues(y)
        self._check_order(positions)
        if first:
            self._start(y)
        predictions, std = self._learn(positions, y, weights)
        return (predictions, std) if return_std else predictions

    def predict(self, X, return_std=False):
        """Estimate the level at positions, from the labels up to each.

        At the last position seen and after it, this is the prediction for the
        next row; before it, the estimate that was made when the labels up to
        that position had been seen. An estimate has therefore seen the label
        of its own position: to measure regret or error use
        `partial_fit_predict`, whose predictions have not.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, in any order. Those before the first get the first
            estimate.
        return_std : bool, default=False
            Whether to return the standard deviations, too.

        Returns
        -------
        estimates : ndarray of shape (n_queries,) or (n_queries, n_outputs)
        std : ndarray of the same shape
            Standard deviation of the next label about the estimate, as known
            then. Only with `return_std`.

        Raises
        ------
        NotFittedError
            If no row has been seen.
        ValueError
            If `X` is not finite, or a position is before the last one seen
            and `keep_history` is False.
        """
        check_is_fitted(self)
        query = check_positions(self, X, reset=False)
        if self._keeps_history:
            estimates = step_predict(self.positions_, self.values_, query)
            if not return_std:
                return estimates
            return estimates, step_predict(self.positions_, self._stds, query)
        early = query < self._last_position
        if early.any():
            row = int(np.argmax(early))
            raise ValueError(
                f"X[{row}] = {query[row]:g} is before the last position seen, "
                f"{self._last_position:g}, and estimates of the past are not kept "
                "with keep_history=False."
            )
        forecast = self._by_output("forecast", lambda stream: stream.forecast)
        std = self.std_
        estimates = np.full(query.shape + np.shape(forecast), forecast)
        return (estimates, np.full_like(estimates, std)) if return_std else estimates

    def predict_interval(self, X, coverage=0.9):
        """Interval of the next label at positions.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, as in `predict`.
        coverage : float, default=0.9
            The part of the labels that should fall inside, between 0 and 1. What
            is calibrated is 0.9; others follow from it as for a normal
            distribution.

        Returns
        -------
        low, high : ndarray of shape (n_queries,) or (n_queries, n_outputs)

        Raises
        ------
        ValueError
            As `predict`, and if `coverage` isn't between 0 and 1.

        Notes
        -----
        Whatever the labels, nine in ten of them fall inside in the long run, as
        long as the size of the errors stays bounded away from 0 and infinity. The
        40 real series of ``benchmarks/coverage.py``, 100 to 6000 labels long, have
        86 to 94 % inside at 0.9. Their errors have heavier tails than a normal
        distribution: at 0.5, 0.8 and 0.95 it is 57, 82 and 93 % on average.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")
        estimates, std = self.predict(X, return_std=True)
        reach = norm.ppf(0.5 + coverage / 2) * std
        return estimates - reach, estimates + reach

    def predict_one(self):
        """Predict the next label.

        Returns
        -------
        prediction : float
            The same as `predict` at the last position; 0 before the first row.

        Raises
        ------
        ValueError
            If the stream has several outputs.
        """
        if not hasattr(self, "n_samples_seen_"):
            return 0.0
        if not self._single_output:
            self._refuse_outputs("predict_one")
        return self._streams[0].forecast

    def learn_one(self, y):
        """Learn a label, at the position that follows the last one by 1.

        The same as `partial_fit` with one row, without its overhead.

        Parameters
        ----------
        y : float
            The label.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the label isn't finite (unless NaN and `missing` is "skip"), is
            beyond `bound` or above 1e140, or the stream has several outputs.
            Nothing has been learned then.
        """
        if not hasattr(self, "n_samples_seen_"):
            return self.partial_fit([0.0], [y])
        if not self._single_output:
            self._refuse_outputs("learn_one")
        y = float(y)
        largest = LARGEST if self._bound is None else self._bound
        if not -largest <= y <= largest and not (y != y and self._skips):
            # Says what is wrong.
            self._check_rows([0.0], [y], None, reset=False)
        stream = self._streams[0]
        if y != y:
            stream.learn(np.array([y]), np.ones(1))
        else:
            stream.learn_one(y)
        self._last_position += 1.0
        self.n_samples_seen_ += 1
        if self._keeps_history:
            n = self._n_kept
            self._keep(n, n + 1, self._last_position, stream.forecast, stream.std)
        return self

    @property
    def positions_(self):
        self._check_history("positions_")
        return _read_only(self._positions[: self._n_kept])

    @property
    def values_(self):
        self._check_history("values_")
        return _read_only(self._values[: self._n_kept])

    @property
    def std_(self):
        return self._by_output("std_", lambda stream: stream.std)

    def __setstate__(self, state):
        super().__setstate__(state)
        make_writeable(self)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_samples_seen_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.multi_output = True
        return tags

    def _check_rows(self, X, y, sample_weight, *, reset, whole=False):
        positions = check_positions(self, X, reset=reset)
        n_samples = len(positions)
        bound, skips = (
            (getattr(self, "bound", None), getattr(self, "missing", None) == "skip")
            if reset
            else (self._bound, self._skips)
        )
        y = check_labels(y, n_samples, allow_nan=skips, bound=bound)
        if whole and np.isnan(y).all():
            raise ValueError("Input y contains NaN in every row: nothing to learn.")
        weights = check_weights(sample_weight, n_samples, allow_all_zero=not whole)
        return positions, y, weights

    def _check_continues(self, y):
        expected = () if self._single_output else (len(self._streams),)
        if y.shape[1:] != expected:
            raise ValueError(
                f"y has shape {y.shape}, but the labels before had shape "
                f"{('n_samples', *expected)}."
            )

    def _check_order(self, positions):
        before = np.empty_like(positions)
        before[0] = getattr(self, "_last_position", -np.inf)
        before[1:] = positions[:-1]
        back = positions < before
        if back.any():
            row = int(np.argmax(back))
            raise ValueError(
                f"X[{row}] = {positions[row]:g} goes back behind {before[row]:g}: "
                "positions must not decrease. fit sorts them, partial_fit can't."
            )

    def _start(self, y):
        """Forget everything; take the shape of the labels from `y`."""
        self._single_output = y.ndim == 1
        n_outputs = 1 if self._single_output else y.shape[1]
        # What the state is made for holds until the next start.
        self._bound = getattr(self, "bound", None)
        self._skips = getattr(self, "missing", None) == "skip"
        self._keeps_history = getattr(self, "keep_history", True)
        self._streams = [self._new_stream() for _ in range(n_outputs)]
        self.n_samples_seen_ = 0
        self._n_kept = 0
        self._last_position = -np.inf
        self._positions = np.empty(0)
        self._values, self._stds = np.empty((2, 0, *y.shape[1:]))

    def _learn(self, positions, y, weights):
        """Learn checked rows. Returns predictions and their standard deviations."""
        if self._single_output:
            learned = self._streams[0].learn(y, weights)
        else:
            by_output = [
                stream.learn(labels, weights)
                for stream, labels in zip(self._streams, y.T)
            ]
            learned = (np.stack(arrays, axis=-1) for arrays in zip(*by_output))
        predictions, values, std, next_std = learned
        self.n_samples_seen_ += len(y)
        self._last_position = float(positions[-1])
        if self._keeps_history:
            end = self._n_kept + len(y)
            rows = slice(self._n_kept, end)
            self._keep(rows, end, positions, values, next_std)
        return predictions, std

    def _keep(self, rows, end, positions, values, stds):
        """Write rows, an index or a slice, of the history; its length is end then."""
        self._n_kept = end
        if end > len(self._positions):
            self._positions = with_room(self._positions, end)
            self._values = with_room(self._values, end)
            self._stds = with_room(self._stds, end)
        self._positions[rows] = positions
        self._values[rows] = values
        self._stds[rows] = stds

    def _list(self, name, read):
        """What `read` tells of the stream, or of each."""
        self._check_attribute(name)
        found = [read(stream) for stream in self._streams]
        return found[0] if self._single_output else found

    def _by_output(self, name, read):
        found = self._list(name, read)
        return found if self._single_output else np.array(found)

    def _refuse_outputs(self, name):
        raise ValueError(
            f"{name} is for one output, and this stream has {len(self._streams)}. Use "
            "partial_fit and predict."
        )

    def _check_attribute(self, name):
        # AttributeError, so that hasattr is False until there are rows.
        if not hasattr(self, "n_samples_seen_"):
            raise AttributeError(f"{name} is there once rows have been seen")

    def _check_history(self, name):
        self._check_attribute(name)
        if not self._keeps_history:
            raise AttributeError(f"{name} is there only with keep_history=True")


def _read_only(view):
    view.flags.writeable = False
    return view
