"""Online total-variation denoising: the level of a stream, now."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._online import (
    PRUNED_CAPACITY,
    Expert,
    Rate,
    flh_pass,
    new_streams,
)
from sktvdenoise._positions import (
    check_labels,
    check_positions,
    check_weights,
    step_predict,
)

__all__ = ["OnlineTVDenoiser"]

# Squares of larger labels leave the range of floating-point numbers.
_LARGEST_LABEL = 1e140


class OnlineTVDenoiser(RegressorMixin, BaseEstimator):
    r"""Online total-variation denoiser with optimal dynamic regret.

    Rows are seen one after the other, in order of their position. Before the
    label of a row is seen it is predicted; the prediction is the average of
    running means that started in different rows, weighted by how well each
    did (Follow-the-Leading-History over Follow-the-Leader). With the rates
    "theory" and "mixable" the squared loss exceeds that of every sequence `w`
    by :math:`\tilde O(n^{1/3} C^{2/3} B^{4/3} + B^2)`, where `C` is the total
    variation of `w`, which need not be known, and `B` bounds the labels. No
    method can do better, and nothing is assumed about the labels.

    Parameters
    ----------
    learning_rate : {"auto", "theory", "mixable"} or float, default="auto"
        The rate at which experts lose weight with their squared loss.

        - "theory": :math:`1 / (8 B^2)`, and the weighted mean is predicted
          (Theorem 1 of [1]_);
        - "mixable": :math:`1 / (2 B^2)`, and Vovk's substitution [3]_ is
          predicted: the constant of the regret is four times smaller;
        - a float, in units of one over the square of a label: that rate, and
          the weighted mean is predicted;
        - "auto": :math:`1 / (2 s^2)`, where the scale of the noise `s` comes
          from the median of the last 128 absolute first differences. It does
          much better than the named rates wherever the noise is smaller than
          the labels, without their guarantee.

    bound : float, default=None
        `B`, in units of the labels: no label is larger in absolute value, and
        one that is raises a ValueError. With None it is learnt: where a label
        exceeds the present `B`, this becomes the larger of `2 B` and the
        label's absolute value, and for the rates "theory" and "mixable" the
        learner starts again with this label. The regrets of the pieces form a
        geometric sum, so that the rate of the regret is kept. Predictions at
        other rates don't depend on it.
    pruning : {"aflh"} or None, default="aflh"
        With "aflh" the running mean that starts in round
        :math:`r 2^k`, `r` odd, lives for :math:`2^{k+2} + 1` further rounds
        [2]_: O(log n) time and memory per label. With None all live for ever:
        O(n) per label.
    keep_history : bool, default=True
        Whether positions and estimates of all rows are kept for `predict`.
        With False memory doesn't grow with the number of rows, and `predict`
        answers only at the last position and after it.
    missing : {"error", "skip"}, default="error"
        What a NaN label means: an error, or a row from which nothing is
        learned.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows seen, missing labels included.
    n_features_in_ : int
        Always 1: the position.
    feature_names_in_ : ndarray of shape (1,)
        Name of the position, where `X` was a data frame with a named column.
    positions_ : ndarray of shape (n_samples_seen_,)
        Positions of the rows seen. Only with `keep_history`.
    values_ : ndarray of shape (n_samples_seen_,) or (n_samples_seen_, n_outputs)
        Estimate of the level in each row, made when its label had been seen
        and no later one: the prediction for the row that follows. Only with
        `keep_history`.
    bound_ : float or ndarray of shape (n_outputs,)
        `B` in force: the given bound, or the one learnt.
    noise_scale_ : float or ndarray of shape (n_outputs,)
        Standard deviation of the noise behind the rate "auto"; 0 while no two
        labels were seen. Only with that rate.
    expert_births_ : ndarray of shape (n_experts,) or list of n_outputs such
        The row, from 0, that is the first each living expert sees, ascending.
        The last is the newborn, which sees its first label in the next round.
    expert_weights_ : ndarray of shape (n_experts,) or list of n_outputs such
        Weights of the living experts in the next prediction; their sum is 1.

    See Also
    --------
    FusedLasso : The same question when all labels are there: offline total
        variation denoising.
    sktvdenoise.metrics.dynamic_regret : How far predictions were from the
        best sequence with a given total variation.

    Notes
    -----
    In round `t` of `1, 2, ...` expert `j <= t` predicts the mean
    :math:`x_t^j` of labels `j, ..., t - 1`; the newborn `t` predicts the last
    label. The loss of a row is :math:`w_t (y_t - x_t)^2` with sample weight
    :math:`w_t`, and

    .. math::

        x_t = \sum_j v_t^j x_t^j, \qquad
        \hat v_{t+1}^j \propto v_t^j e^{-\eta w_t (y_t - x_t^j)^2}, \qquad
        v_{t+1}^j = \tfrac{t}{t+1} \hat v_{t+1}^j, \quad
        v_{t+1}^{t+1} = \tfrac{1}{t+1}.

    For every expert that is alive in rows `r` to `s` of the present start the
    loss exceeds the expert's by at most :math:`\ln(s) / \eta` at the rates
    "theory" and "mixable".

    The first prediction is 0. Order counts, spacing of the positions does not.
    Several outputs are independent instances (Proposition 10 of [1]_).
    Weights count relative to 1: a larger one than all before is met like a
    label beyond the bound, by a smaller rate and a new start.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.
    .. [2] E. Hazan and C. Seshadhri (2007). Adaptive algorithms for online
       decision problems. ECCC technical report 88.
    .. [3] V. Vovk (2001). Competitive on-line statistics. International
       Statistical Review 69.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> y = np.repeat([0.0, 5.0], 50) + np.tile([0.1, -0.1], 50)
    >>> denoiser = OnlineTVDenoiser()
    >>> x = denoiser.partial_fit_predict(np.arange(100), y)
    >>> np.abs(np.round(x[[0, 50, 53, 99]]))
    array([0., 0., 5., 5.])
    """

    _parameter_constraints = {
        "learning_rate": [
            StrOptions({"auto", "theory", "mixable"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "bound": [None, Interval(Real, 0, None, closed="neither")],
        "pruning": [StrOptions({"aflh"}), None],
        "keep_history": ["boolean"],
        "missing": [StrOptions({"error", "skip"})],
    }

    def __init__(
        self,
        *,
        learning_rate="auto",
        bound=None,
        pruning="aflh",
        keep_history=True,
        missing="error",
    ):
        self.learning_rate = learning_rate
        self.bound = bound
        self.pruning = pruning
        self.keep_history = keep_history
        self.missing = missing

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
        self : OnlineTVDenoiser

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
        self : OnlineTVDenoiser

        Raises
        ------
        ValueError
            As in `fit`, and if a position goes back or the number of outputs
            changes. Nothing of the batch has been learned then.
        """
        self.partial_fit_predict(X, y, sample_weight)
        return self

    def partial_fit_predict(self, X, y, sample_weight=None):
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

        Returns
        -------
        predictions : ndarray of the shape of y
            The prediction for each row, made before its label was seen.

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
        return self._learn(positions, y, weights)

    def predict(self, X):
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

        Returns
        -------
        estimates : ndarray of shape (n_queries,) or (n_queries, n_outputs)

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
            return step_predict(self.positions_, self.values_, query)
        early = query < self._last_position
        if early.any():
            row = int(np.argmax(early))
            raise ValueError(
                f"X[{row}] = {query[row]:g} is before the last position seen, "
                f"{self._last_position:g}, and estimates of the past are not kept "
                "with keep_history=False."
            )
        forecast = self._per_output(self._streams["forecast"])
        return np.full(query.shape + np.shape(forecast), forecast)

    @property
    def positions_(self):
        self._check_history("positions_")
        return self._positions[: self._n_kept]

    @property
    def values_(self):
        self._check_history("values_")
        return self._values[: self._n_kept]

    @property
    def bound_(self):
        self._check_attribute("bound_")
        return self._per_output(self._streams["bound"])

    @property
    def noise_scale_(self):
        self._check_attribute("noise_scale_")
        if self.learning_rate != "auto":
            raise AttributeError('noise_scale_ is there only with learning_rate="auto"')
        return self._per_output(self._streams["noise_scale"])

    @property
    def expert_births_(self):
        self._check_attribute("expert_births_")
        births = [row.astype(np.int64) for row in self._experts(Expert.BIRTH)]
        return births[0] if self._single_output else births

    @property
    def expert_weights_(self):
        self._check_attribute("expert_weights_")
        weights = [row / row.sum() for row in self._experts(Expert.WEIGHT)]
        return weights[0] if self._single_output else weights

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
        y = check_labels(y, n_samples, allow_nan=self.missing == "skip")
        largest = _LARGEST_LABEL if self.bound is None else self.bound
        beyond = np.abs(y) > largest
        if beyond.any():
            row = int(np.argmax(beyond.reshape(n_samples, -1).any(axis=1)))
            why = "its square is too large a number"
            if self.bound is not None:
                why = f"bound={self.bound:g}; bound=None learns it"
            raise ValueError(f"Label y[{row}] = {y[row]} is too large: {why}.")
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
        self._pruned = self.pruning == "aflh"
        self._keeps_history = self.keep_history
        capacity = PRUNED_CAPACITY if self._pruned else 2
        self._streams, self._tables, self._noises = new_streams(n_outputs, capacity)
        if self.bound is not None:
            self._streams["bound"] = self.bound
        self.n_samples_seen_ = 0
        self._n_kept = 0
        self._last_position = -np.inf
        self._positions = np.empty(0)
        self._values = np.empty((0, *y.shape[1:]))

    def _learn(self, positions, y, weights):
        n_samples = len(positions)
        code, rate = Rate.FIXED, self.learning_rate
        if isinstance(rate, str):
            code, rate = Rate[rate.upper()], 0.0
        if not self._pruned:
            # The newborn of the next round comes on top.
            needed = int(self._streams["n_alive"].max()) + n_samples
            self._tables = _with_room(self._tables, needed, axis=2)
        predictions, values = np.empty((2, *y.shape))
        columns = y.reshape(n_samples, -1).T
        outputs = zip(
            columns,
            predictions.reshape(n_samples, -1).T,
            values.reshape(n_samples, -1).T,
        )
        for channel, (labels, before, after) in enumerate(outputs):
            flh_pass(
                labels,
                weights,
                self._streams,
                self._tables,
                self._noises,
                channel,
                code,
                rate,
                self._pruned,
                before,
                after,
            )
        self.n_samples_seen_ += n_samples
        self._last_position = float(positions[-1])
        if self._keeps_history:
            start, self._n_kept = self._n_kept, self._n_kept + n_samples
            self._positions = _with_room(self._positions, self._n_kept)
            self._positions[start : self._n_kept] = positions
            self._values = _with_room(self._values, self._n_kept)
            self._values[start : self._n_kept] = values
        return predictions

    def _experts(self, field):
        """One row of every output's table, restricted to the living experts."""
        alive = self._streams["n_alive"]
        return [table[field, :n] for table, n in zip(self._tables, alive)]

    def _per_output(self, values):
        return float(values[0]) if self._single_output else values.copy()

    def _check_attribute(self, name):
        # AttributeError, so that hasattr is False until there are rows.
        if not hasattr(self, "n_samples_seen_"):
            raise AttributeError(f"{name} is there once rows have been seen")

    def _check_history(self, name):
        self._check_attribute(name)
        if not self._keeps_history:
            raise AttributeError(f"{name} is there only with keep_history=True")


def _with_room(array, n, axis=0):
    """The array itself if it has n entries along axis, else a copy with 2 n."""
    if array.shape[axis] >= n:
        return array
    shape = list(array.shape)
    room = shape[axis]
    shape[axis] = 2 * n
    larger = np.zeros(shape, dtype=array.dtype)
    larger[(slice(None),) * axis + (slice(room),)] = array
    return larger
