"""One stream: what is known of it, and how a label is learned.

The state is a handful of numpy arrays, edited in place by the kernels.
"""

import numpy as np

from sktvdenoise import _online, _pool, breakpoints
from sktvdenoise._online import (
    PRUNED_CAPACITY,
    SPREAD_DTYPE,
    STREAM_DTYPE,
    Expert,
    Rate,
    flh_pass,
    new_spread,
    new_stream,
    spread_pass,
)
from sktvdenoise._pool import (
    MIXTURE_DTYPE,
    Kind,
    guard_weight,
    make_layout,
    member_weights,
    new_pool,
    pool_pass,
)
from sktvdenoise.experts import POOL

_ROWS, _MEMORY_SIZE = make_layout(POOL)
_LAYOUT = _ROWS.view(np.uint8)
_MEANS = next(row for row in _ROWS if row["kind"] == Kind.ROBUST_MEANS)
# Labels on their way to the summary of breakpoints, one by one, are few at most.
_MOST_PENDING = 256


class LevelStream:
    """Forecasts of one stream and the standard deviations of their errors.

    A subclass has `forecast`, the prediction of the next label, and `_pass`.

    Attributes
    ----------
    n_samples_seen : int
    """

    def __init__(self):
        self._spread = new_spread()
        self.n_samples_seen = 0

    def __setstate__(self, state):
        self.__dict__.update(state)
        make_writeable(self)

    @property
    def std(self):
        return _online.std_of(self._spread)

    def learn(self, y, weights):
        """Learn labels; NaN and those of weight 0 are passed over.

        Returns
        -------
        predictions, estimates, std, next_std : ndarray of shape (n_samples,)
            Forecasts made before and after each label, and the standard
            deviations of the label that was, and that will be, next.
        """
        x, z, std, next_std = np.empty((4, len(y)))
        self._pass(y, weights, x, z)
        spread_pass(y, weights, x, self._spread, std, next_std)
        self.n_samples_seen += len(y)
        return x, z, std, next_std

    def learn_one(self, y):
        """Learn one label, as `learn` does with weight 1."""
        self.learn(np.array([y]), np.ones(1))

    def _pass(self, y, weights, x, z):
        """Learn labels; write the forecasts made before and after each."""
        raise NotImplementedError


class Stream(LevelStream):
    """The stream of `OnlineTVDenoiser`, with its experts and breakpoints.

    Parameters
    ----------
    learning_rate : {"auto", "theory", "mixable"} or float
    bound : float or None
        Largest absolute label, or None to learn it.
    pruned : bool
        Whether experts die.
    """

    def __init__(self, learning_rate, bound, pruned):
        super().__init__()
        self._pruned = pruned
        self._code, self._rate = Rate.FIXED, learning_rate
        if isinstance(learning_rate, str):
            # The guard of "auto" is the learner of "theory".
            name = "theory" if learning_rate == "auto" else learning_rate
            self._code, self._rate = Rate[name.upper()], 0.0
        self._flh, self._table = new_stream(
            PRUNED_CAPACITY if pruned else 2, bound or 0
        )
        self._pool = self._memory = None
        if learning_rate == "auto":
            self._pool, self._memory = new_pool(_ROWS, _MEMORY_SIZE)
        self._summary = breakpoints.new_state()
        self._pending = []

    def __getstate__(self):
        # The same whether labels came one by one or in batches.
        self._push_pending()
        return vars(self).copy()

    @property
    def has_pool(self):
        return self._pool is not None

    def learn(self, y, weights):
        if len(y) == 1 and weights[0] == 1.0 and not np.isnan(y[0]):
            before = self.forecast, self.std
            self.learn_one(float(y[0]))
            row = np.array([before[0], self.forecast, before[1], self.std])
            return row[:, None]
        learned = ~np.isnan(y) & (weights > 0)
        rows = self.n_samples_seen + np.flatnonzero(learned)
        result = super().learn(y, weights)
        self._push_pending()
        breakpoints.push(self._summary, y[learned], rows)
        return result

    def _pass(self, y, weights, x, z):
        if not self._pruned:
            self._make_room(len(y))
        state = self._flh, self._table, self._code, self._rate, self._pruned
        flh_pass(y, weights, *state, x, z)
        if self._pool is not None:
            pool_pass(y, weights, self._pool, self._memory, _LAYOUT, x, z)

    def learn_one(self, y):
        """Learn one label, as `learn` does with weight 1."""
        if not self._pruned:
            self._make_room(1)
        state = self._flh, self._table, self._spread
        if self._pool is None:
            _online.learn_one(y, *state, self._code, self._rate, self._pruned)
        else:
            _pool.learn_one(
                y,
                *state,
                self._code,
                self._pruned,
                self._pool,
                self._memory,
                _LAYOUT,
            )
        self._pending.append((self.n_samples_seen, y))
        if len(self._pending) >= _MOST_PENDING:
            self._push_pending()
        self.n_samples_seen += 1

    @property
    def forecast(self):
        if self._pool is None:
            return _online.forecast_of(self._flh)
        return _pool.forecast_of(self._pool)

    @property
    def bound(self):
        return float(self._flh.view(STREAM_DTYPE)["bound"][0])

    @property
    def noise_scale(self):
        return _pool.noise_scale(self._pool)

    def breakpoints(self):
        self._push_pending()
        return breakpoints.read(self._summary)

    def experts(self):
        """Births and weights of the living experts."""
        if self._pool is None:
            n = int(self._flh.view(STREAM_DTYPE)["n_alive"][0])
            births, weights = self._table[[Expert.BIRTH, Expert.WEIGHT], :n]
        else:
            start = _MEANS["offset"]
            size = MIXTURE_DTYPE.itemsize // self._memory.itemsize
            mixture = self._memory[start : start + size].view(MIXTURE_DTYPE)[0]
            n = int(mixture["n"])
            births, weights = mixture["birth"][:n], mixture["w"][0, :n]
        if n == 0:
            return np.zeros(1, dtype=np.int64), np.ones(1)
        return births.astype(np.int64), weights / weights.sum()

    def run_length(self):
        """Rows since the birth of the heaviest expert that has seen a label."""
        births, weights = self.experts()
        if not self._spread.view(SPREAD_DTYPE)["n"][0]:
            return 0
        if len(births) == 1:
            # The pool has seen zeros only.
            return self.n_samples_seen
        return int(self.n_samples_seen - births[np.argmax(weights[:-1])])

    def members(self):
        """Weights of members and guard in the next forecast, heaviest first."""
        guard = guard_weight(self._pool)
        weights = member_weights(self._memory, int(_ROWS["n_members"].sum()))
        weights = (1 - guard) * np.add.reduceat(weights, _ROWS["first"])
        by_name = dict(zip((name for name, *_ in POOL), weights.tolist()), guard=guard)
        return dict(sorted(by_name.items(), key=lambda item: -item[1]))

    def _make_room(self, n):
        """For n more experts; the newborn of the round after them comes on top."""
        needed = int(self._flh.view(STREAM_DTYPE)["n_alive"][0]) + n
        self._table = with_room(self._table, needed, axis=1)

    def _push_pending(self):
        if self._pending:
            rows, labels = zip(*self._pending)
            breakpoints.push(self._summary, np.array(labels, dtype=float), rows)
            self._pending = []


def make_writeable(instance):
    """Copy arrays that unpickling has mapped into read-only memory, as joblib does."""
    for name, value in vars(instance).items():
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            setattr(instance, name, value.copy())
        elif isinstance(value, tuple):
            copies = (
                v.copy() if isinstance(v, np.ndarray) and not v.flags.writeable else v
                for v in value
            )
            setattr(instance, name, tuple(copies))


def with_room(array, n, axis=0):
    """The array itself if it has n entries along axis, else a copy with 2 n."""
    if array.shape[axis] >= n:
        return array
    shape = list(array.shape)
    room = shape[axis]
    shape[axis] = 2 * n
    larger = np.zeros(shape, dtype=array.dtype)
    larger[(slice(None),) * axis + (slice(room),)] = array
    return larger
