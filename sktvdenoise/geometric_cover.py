"""Denoising when labels come in any order of their positions: the geometric cover.

Running means over dyadic intervals of positions, each awake where it holds the label.
`GeometricCoverDenoiser` needs nothing in advance; `Aligator` is the method of the paper
on a declared grid.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sktvdenoise._cover import (
    Rate,
    bound_of,
    cover_pass,
    cover_predict,
    n_nodes,
    new_cover,
)
from sktvdenoise._level import LevelEstimator
from sktvdenoise._positions import check_positions
from sktvdenoise._stream import LevelStream, with_room

__all__ = ["Aligator", "GeometricCoverDenoiser"]

# Rows between two looks at how much room the nodes need.
_CHUNK = 1024
# Offsets from the origin are exact floats and cells exact integers up to here.
_FARTHEST = 2.0**52

RATE_CONSTRAINT = [
    StrOptions({"auto", "theory"}),
    Interval(Real, 0, None, closed="neither"),
]


def rate_code(learning_rate):
    """What the kernels take: a code, and the rate where it is a number."""
    if isinstance(learning_rate, str):
        return Rate[learning_rate.upper()], 0.0
    return Rate.FIXED, float(learning_rate)


class CoverStream(LevelStream):
    """A stream of labels in any order; `offsets` are those of the rows to come."""

    def __init__(self, rate, bound, nearest):
        super().__init__()
        self._rate, self._nearest = rate, nearest
        self._state, self._roots, self._links, self._experts = new_cover(bound or 0.0)
        self.offsets = None

    @property
    def bound(self):
        return bound_of(self._state)

    def predict(self, offsets):
        predictions = np.empty(len(offsets))
        tree = self._state, self._roots, self._links, self._experts
        cover_predict(offsets, *tree, self._nearest, predictions)
        return predictions

    def _pass(self, y, weights, x, z):
        rows = y, weights, self.offsets
        for start in range(0, len(y), _CHUNK):
            part = slice(start, start + _CHUNK)
            self._make_room(len(y[part]))
            tree = self._state, self._roots, self._links, self._experts
            cover_pass(
                *(array[part] for array in rows),
                *tree,
                *self._rate,
                self._nearest,
                x[part],
                z[part],
            )

    def _make_room(self, n):
        """For n more rows, each with at most two new nodes."""
        needed = n_nodes(self._state) + 2 * n
        self._links = with_room(self._links, needed)
        self._experts = with_room(self._experts, needed)


class _CoverEstimator(LevelEstimator):
    """What the estimators over the cover share: positions in any order.

    A subclass has `_offsets`, which cells positions are in, and `_nearest`.
    """

    # Predictions are asked of the experts, not of the past.
    keep_history = False

    def partial_fit(self, X, y, sample_weight=None):
        """Go on learning, row by row, with positions in any order.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions; they may go back, and repeat.
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
            As in `fit`, and if the number of outputs changes. Nothing of the batch has
            been learned then.
        """
        return super().partial_fit(X, y, sample_weight)

    def partial_fit_predict(self, X, y, sample_weight=None, *, return_std=False):
        """Go on learning, and return what was predicted before each label.

        Parameters
        ----------
        X, y, sample_weight : object
            As in `partial_fit`.
        return_std : bool, default=False
            Whether to return the standard deviations of the errors, too.

        Returns
        -------
        predictions : ndarray of the shape of y
            They don't depend on how rows are cut into batches.
        std : ndarray of the shape of y
            Only with `return_std`.

        Raises
        ------
        ValueError
            As in `partial_fit`.
        """
        return super().partial_fit_predict(X, y, sample_weight, return_std=return_std)

    def predict(self, X, return_std=False):
        """Estimate the level at positions, from all labels seen.

        Parameters
        ----------
        X : array-like of shape (n_queries,) or (n_queries, 1)
            Positions, in any order.
        return_std : bool, default=False
            Whether to return the standard deviations, too.

        Returns
        -------
        estimates : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            What would be predicted for a label at each position, were it the next.
        std : ndarray of the same shape
            Standard deviation of the errors of late. Only with `return_std`.

        Raises
        ------
        NotFittedError
            If no row has been seen.
        ValueError
            If `X` is of wrong shape or not finite.
        """
        check_is_fitted(self)
        offsets = self._offsets(check_positions(self, X, reset=False))
        columns = [stream.predict(offsets) for stream in self._streams]
        estimates = columns[0] if self._single_output else np.stack(columns, axis=1)
        if not return_std:
            return estimates
        return estimates, np.full_like(estimates, self.std_)

    def predict_one(self):
        """Predict the label at the position that follows the last one by 1.

        Returns
        -------
        prediction : float
            0 before the first row.

        Raises
        ------
        ValueError
            If the stream has several outputs.
        """
        if not hasattr(self, "n_samples_seen_"):
            return 0.0
        if not self._single_output:
            self._refuse_outputs("predict_one")
        return float(self._streams[0].predict(self._next_offset())[0])

    def learn_one(self, y):
        """Learn a label, at the position that follows the last one by 1.

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
            As `partial_fit`, or if the stream has several outputs.
        """
        if hasattr(self, "n_samples_seen_"):
            self._check_range(np.array([self._last_position + 1.0]), self.origin_)
            for stream in self._streams:
                stream.offsets = self._next_offset()
        return super().learn_one(y)

    def smooth(self, X, y, sample_weight=None):
        """Estimate the level of a whole batch: the mean of two passes.

        One goes forward in order of position, one back; the estimate for a row is the
        mean of what they predict before they see its label, so that it depends on
        labels of both sides, but not on its own. At the ends it is the one prediction
        that has seen labels.
        What the estimator has learned is neither used nor changed.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Positions, in any order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        estimates : ndarray of the shape of `y`

        Raises
        ------
        ValueError
            As in `fit`.
        """
        self._validate_params()
        model = clone(self)
        positions, y, weights = model._check_rows(
            X, y, sample_weight, reset=True, whole=True
        )
        estimates, n_passes = np.zeros((2, *y.shape))
        order = np.argsort(positions, kind="stable")
        for rows in (order, order[::-1]):
            model._start(y)
            predictions, _ = model._learn(positions[rows], y[rows], weights[rows])
            learned = (~np.isnan(y[rows]).T & (weights[rows] > 0)).T
            informed = np.cumsum(learned, axis=0) > learned
            estimates[rows] += np.where(informed, predictions, 0.0)
            n_passes[rows] += informed
        return estimates / np.maximum(n_passes, 1.0)

    @property
    def bound_(self):
        return self._by_output("bound_", lambda stream: stream.bound)

    def _new_stream(self):
        rate = rate_code(self.learning_rate)
        return CoverStream(rate, self.bound, self._nearest)

    def _next_offset(self):
        return self._offsets(np.array([self._last_position + 1.0]))

    def _check_rows(self, X, y, sample_weight, *, reset, whole=False):
        rows = super()._check_rows(X, y, sample_weight, reset=reset, whole=whole)
        positions = rows[0]
        if not reset:
            origin = self.origin_
        else:
            origin = positions.min() if whole else positions[0]
        self._check_range(positions, origin)
        return rows

    def _check_range(self, positions, origin):
        """Refuse positions that have no cell."""
        raise NotImplementedError

    def _check_order(self, positions):
        """Any order will do."""

    def _learn(self, positions, y, weights):
        if self.n_samples_seen_ == 0:
            self.origin_ = float(positions[0])
        offsets = self._offsets(positions)
        for stream in self._streams:
            stream.offsets = offsets
        return super()._learn(positions, y, weights)


class GeometricCoverDenoiser(_CoverEstimator):
    r"""Online denoiser of labels that come in any order of their positions.

    A row is predicted before its label is seen; the next may lie anywhere, before or
    behind. In any order that doesn't depend on the noise, the squared error to a level
    of total variation `C` under noise of standard deviation :math:`\sigma` is
    :math:`\tilde O(n^{1/3} C^{2/3} \sigma^{4/3})` at the rates of the theory. Neither
    `C` nor the number of rows need be known. This is the method of [1]_ without its
    horizon.

    Parameters
    ----------
    learning_rate : {"auto", "theory"} or float, default="auto"
        How fast experts gain and lose weight.

        - "auto": one over twice the mean square of the prediction errors so far (with
          a memory of 100 labels, outliers drawn in). Nothing is proved; it is to do
          about as well as the float for known noise;
        - "theory": :math:`1 / (8 B^2)`, at which the bound below holds;
        - a float, in units of one over the square of a label; :math:`1/(2\sigma^2)`
          for noise of standard deviation :math:`\sigma` known.

    bound : float, default=None
        `B`, in units of the labels: one that is larger in absolute value raises a
        ValueError. With None it is learnt: where a label exceeds the present `B`, this
        becomes the larger of `2 B` and the label's absolute value, and at "theory"
        the experts start again.
    spacing : float, default=1.0
        Length of a cell, in units of the positions: labels in the same cell are noisy
        values of one number. Finer cells cost no time or memory.
    missing : {"error", "skip"}, default="error"
        What a NaN label means: an error, or a row from which nothing is learned.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows seen, missing labels included.
    n_features_in_ : int
        Always 1: the position.
    feature_names_in_ : ndarray of shape (1,)
        Name of the position, where `X` was a data frame with a named column.
    origin_ : float
        First position learned, where the cells begin.
    bound_ : float or ndarray of shape (n_outputs,)
        `B` in force: the given bound, or the one learnt.
    std_ : float or ndarray of shape (n_outputs,)
        Standard deviation of the next label about its prediction, as in
        :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    See Also
    --------
    OnlineTVDenoiser : For labels in order of time.
    sktvdenoise.baselines.Aligator : The same on a declared grid, to the letter.

    Notes
    -----
    Cells count from 1 on either side of the origin. Interval `i` of level `k`,
    :math:`i \ge 1`, holds the cells :math:`i 2^k, \dots, (i + 1) 2^k - 1`; its expert
    predicts the mean :math:`x^j` of the labels in it so far, or, without any, the last
    label of the nearest cell that has one (of two as near, the mean of both). Awake are
    the experts :math:`A` whose interval holds the row's position. With weights
    :math:`v^j`, 1 at first,

    .. math::

        x = \frac{\sum_{j \in A} v^j x^j}{\sum_{j \in A} v^j}, \qquad
        v^j \leftarrow v^j e^{-\eta (y - x^j)^2}
            \frac{\sum_{i \in A} v^i}{\sum_{i \in A} v^i e^{-\eta (y - x^i)^2}}
        \quad (j \in A),

    which leaves the weight of the awake unchanged; the others sleep. At "theory" the
    loss in any interval exceeds that of its expert by at most :math:`8 B^2 \ln N`, with
    `N` the number of intervals awake so far, at most
    :math:`(1 + \log_2 r)` times the number of labels if they span `r` cells, and less
    than twice the number of cells if these come in order.

    A label costs O(log r) time. Of intervals that hold the same labels one expert is
    kept for all, so that memory is O(n) for `n` labels wherever they are: at most two
    nodes for every cell that has a label.

    `fit` learns the rows in order of their positions, `partial_fit` in the order given.

    References
    ----------
    .. [1] D. Baby, X. Zhao and Y.-X. Wang (2021). An optimal reduction of TV-denoising
       to adaptive online learning. AISTATS.
    .. [2] A. Daniely, A. Gonen and S. Shalev-Shwartz (2015). Strongly adaptive online
       learning. ICML.
    .. [3] D. Adamskiy, W. M. Koolen, A. Chernov and V. Vovk (2016). A closer look at
       adaptive regret. Journal of Machine Learning Research 17.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise import GeometricCoverDenoiser
    >>> x = np.random.default_rng(0).permutation(100)
    >>> y = np.where(x < 50, 0.0, 5.0) + np.where(x % 2, 0.1, -0.1)
    >>> denoiser = GeometricCoverDenoiser().partial_fit(x, y)
    >>> np.abs(denoiser.predict([20, 45, 55, 90]).round())
    array([0., 0., 5., 5.])
    """

    _parameter_constraints = {
        "learning_rate": RATE_CONSTRAINT,
        "bound": [None, Interval(Real, 0, None, closed="neither")],
        "spacing": [Interval(Real, 0, None, closed="neither")],
        "missing": [StrOptions({"error", "skip"})],
    }
    _nearest = True

    def __init__(
        self, *, learning_rate="auto", bound=None, spacing=1.0, missing="error"
    ):
        self.learning_rate = learning_rate
        self.bound = bound
        self.spacing = spacing
        self.missing = missing

    def _start(self, y):
        super()._start(y)
        self._spacing = float(self.spacing)

    def _check_range(self, positions, origin):
        far = np.abs(positions - origin) >= _FARTHEST * self.spacing
        if far.any():
            row = int(np.argmax(far))
            raise ValueError(
                f"X[{row}] = {positions[row]:g} is more than 2^52 cells of "
                f"spacing={self.spacing:g} from the first position, {origin:g}."
            )

    def _offsets(self, positions):
        cells = np.floor((positions - self.origin_) / self._spacing)
        return np.clip(cells, -_FARTHEST, _FARTHEST).astype(np.int64)


class Aligator(_CoverEstimator):
    r"""Aggregation of online averages over a geometric cover, on a declared grid.

    To the letter of [1]_: labels in any order of their positions, running means of the
    intervals of a fixed grid, the last label seen as prediction of an interval without
    labels. :math:`\tilde O(n^{1/3} C^{2/3} \sigma^{4/3})` without knowledge of `C`; it
    must be told the grid in advance, and the noise for its rate. A label costs
    O(log n_samples).

    Parameters
    ----------
    n_samples : int
        Number of cells of the grid, the `n` of the paper.
    learning_rate : {"auto", "theory"} or float, default="theory"
        As in :class:`~sktvdenoise.GeometricCoverDenoiser`.
    bound : float, default=None
        `B`, as in :class:`~sktvdenoise.GeometricCoverDenoiser`.
    limits : tuple of two floats, default=None
        Lowest and highest position, between which the cells are spread evenly; None for
        the integers 0 to ``n_samples - 1``.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows seen.
    n_features_in_ : int
        Always 1: the position.
    feature_names_in_ : ndarray of shape (1,)
        Name of the position, where `X` was a data frame with a named column.
    origin_ : float
        First position learned.
    bound_, std_ : float or ndarray of shape (n_outputs,)
        As in :class:`~sktvdenoise.GeometricCoverDenoiser`.

    See Also
    --------
    sktvdenoise.GeometricCoverDenoiser : The same without a grid.

    Notes
    -----
    The formulas are those of :class:`~sktvdenoise.GeometricCoverDenoiser`. The paper
    begins with weights 1/|pool|; a factor common to all weights changes no prediction,
    so that nothing depends on the horizon but the grid itself. In order of time the
    nearest label is the last one, and the two methods are the same.

    `smooth` is the paper's batch estimate, the mean of a forward and a backward pass.

    References
    ----------
    .. [1] D. Baby, X. Zhao and Y.-X. Wang (2021). An optimal reduction of TV-denoising
       to adaptive online learning. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.baselines import Aligator
    >>> x = np.arange(100)
    >>> y = np.where(x < 50, 0.0, 5.0) + np.where(x % 2, 0.1, -0.1)
    >>> smooth = Aligator(100, learning_rate=50.0).smooth(x, y)
    >>> np.abs(smooth[[10, 80]].round())
    array([0., 5.])
    """

    _parameter_constraints = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": RATE_CONSTRAINT,
        "bound": [None, Interval(Real, 0, None, closed="neither")],
        "limits": [tuple, list, None],
    }
    _required_parameters = ["n_samples"]
    _nearest = False

    def __init__(self, n_samples, *, learning_rate="theory", bound=None, limits=None):
        self.n_samples = n_samples
        self.learning_rate = learning_rate
        self.bound = bound
        self.limits = limits

    def _grid(self):
        """Lowest position and highest, and the number of cells."""
        if self.limits is None:
            return 0.0, float(self.n_samples), self.n_samples
        if len(self.limits) != 2 or not self.limits[0] < self.limits[1]:
            raise ValueError(
                f"limits must be a lower and a higher number, got {self.limits!r}."
            )
        return float(self.limits[0]), float(self.limits[1]), self.n_samples

    def _start(self, y):
        super()._start(y)
        self._cells = self._grid()

    def _check_range(self, positions, origin):
        low, high, _ = self._grid()
        outside = (positions < low) | (positions > high)
        if self.limits is None:
            outside |= positions == high
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"X[{row}] = {positions[row]:g} is outside the grid from {low:g} to "
                f"{high:g}{', which is beyond it' if self.limits is None else ''}."
            )

    def _offsets(self, positions):
        low, high, n = self._cells
        cells = np.floor((positions - low) * (n / (high - low)))
        return np.clip(cells, 0, n - 1).astype(np.int64)
