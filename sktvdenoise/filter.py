"""Online total-variation denoising of features: a causal filter of columns."""

from copy import deepcopy

import numpy as np
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from sktvdenoise._positions import check_size
from sktvdenoise._stream import Stream
from sktvdenoise.online import OnlineTVDenoiser

__all__ = ["OnlineTVFilter"]


class OnlineTVFilter(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Denoise each column of a table, row by row, by `OnlineTVDenoiser`.

    A column is a stream of its own. Its value in a row is replaced by the estimate
    of its level that is made when the values up to this row, itself included, have
    been seen, and no later one. Features for a regressor can therefore be denoised
    before the rows are split into past and future.

    Parameters
    ----------
    learning_rate : {"auto", "theory", "mixable"} or float, default="auto"
        See :class:`~sktvdenoise.online.OnlineTVDenoiser`. A float is in units of one
        over the square of a value, the same for all columns.
    bound : float, default=None
        Largest absolute value of all columns, in their units; a larger one raises a
        ValueError. With None it is learnt, for each column.
    pruning : {"aflh"} or None, default="aflh"
        Whether experts die: O(log n) time and memory per value, or O(n).
    missing : {"error", "skip"}, default="error"
        What NaN means: an error, or a value from which nothing is learned. The
        estimate before it holds on; it is 0 until the first value.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where `X` was a data frame with names.

    See Also
    --------
    OnlineTVDenoiser : The same for labels, with predictions and their errors.

    Notes
    -----
    After `fit` the rows of each call are a stream from its beginning: nothing is
    carried over from `fit` or from call to call, and the first rows of a test set are
    estimated as if nothing had come before. What `partial_fit` learns is kept, in
    O(log n) memory, and rows to transform are those that follow. Rows must be in the
    order of time; the spacing doesn't count.

    Parameters are read where a stream starts: in the first `partial_fit`, and after
    `fit` in each `transform`.

    Equal to column by column
    ``OnlineTVDenoiser(...).fit(np.arange(n_samples), X[:, j]).values_``: an estimate
    is the prediction for the row that follows, at "auto" with the step of a trend or
    a season that this includes.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise import OnlineTVFilter
    >>> level = np.repeat([0.0, 5.0], 50)
    >>> X = np.column_stack([level, -level]) + np.tile([0.1, -0.1], 50)[:, None]
    >>> np.abs(OnlineTVFilter().fit_transform(X)[[49, 53, 99]]).round()
    array([[0., 0.],
           [5., 5.],
           [5., 5.]])
    """

    _parameter_constraints = {
        name: OnlineTVDenoiser._parameter_constraints[name]
        for name in ("learning_rate", "bound", "pruning", "missing")
    }

    def __init__(
        self, *, learning_rate="auto", bound=None, pruning="aflh", missing="error"
    ):
        self.learning_rate = learning_rate
        self.bound = bound
        self.pruning = pruning
        self.missing = missing

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Check the columns and remember their number and names.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in order of time.
        y : None
            Ignored.

        Returns
        -------
        self : OnlineTVFilter

        Raises
        ------
        ValueError
            If `X` is of wrong shape, is not finite (NaN may pass with `missing`),
            or has a value beyond `bound` or above 1e140.
        """
        self._check_rows(X, reset=True)
        self.__dict__.pop("_streams", None)
        return self

    def partial_fit(self, X, y=None):
        """Learn rows that follow those learned before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in order of time.
        y : None
            Ignored.

        Returns
        -------
        self : OnlineTVFilter

        Raises
        ------
        ValueError
            As `fit`, and if the columns are not those of the rows before. Nothing has
            been learned then.
        """
        self._learn(X)
        return self

    def partial_fit_transform(self, X, y=None):
        """Learn rows and return their estimates, as `transform` before would have.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in order of time.
        y : None
            Ignored.

        Returns
        -------
        estimates : ndarray of shape (n_samples, n_features)

        Raises
        ------
        ValueError
            As `partial_fit`.
        """
        return self._learn(X)

    def transform(self, X):
        """Denoise each column causally, as rows that follow those of `partial_fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in order of time.

        Returns
        -------
        estimates : ndarray of shape (n_samples, n_features)
            For each row and column the estimate of the level that is made with the
            rows learned by `partial_fit` and those of `X` up to this one. A data
            frame as `set_output` says.

        Raises
        ------
        NotFittedError
            If neither `fit` nor `partial_fit` has been called.
        ValueError
            As `fit`, and if the columns are not those of `fit`.
        """
        check_is_fitted(self)
        self._validate_params()
        X = self._check_rows(X, reset=False)
        return _pass(deepcopy(self._begun(X)), X)

    def _learn(self, X):
        self._validate_params()
        X = self._check_rows(X, reset=not hasattr(self, "n_features_in_"))
        self._streams = self._begun(X)
        return _pass(self._streams, X)

    def _begun(self, X):
        if hasattr(self, "_streams"):
            return self._streams
        settings = self.learning_rate, self.bound, self.pruning == "aflh"
        return [Stream(*settings) for _ in X.T]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "skip"
        return tags

    def _check_rows(self, X, *, reset):
        finite = "allow-nan" if self.missing == "skip" else True
        X = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite=finite
        )
        check_size(X, self.bound, "X")
        return X


def _pass(streams, X):
    """Estimates of the columns by streams that learn them."""
    weights = np.ones(len(X))
    estimates = np.empty_like(X, order="F")
    for stream, column, out in zip(streams, X.T, estimates.T):
        out[:] = stream.learn(np.ascontiguousarray(column), weights)[1]
    return estimates
