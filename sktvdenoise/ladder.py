r"""The pool behind adaptive linear regression, and a numpy reference of it.

A few dozen linear regressions that never start again, the *members*, predict each
label; *trackers* follow the best of them by fixed share; the output is the mean of the
trackers. `LADDER` and `TRACKERS` are all that there is to choose. What the members are:

- **walks**: Kalman filters for coefficients that walk at random. With
  :math:`z_t = (1, x_t / s)`

  .. math:: y_t = z_t^\top \theta_t + e_t, \quad
            \theta_{t+1} = \theta_t + (q_0^{1/2} e'_t, q^{1/2} e''_t),

  noise of variance 1 and a normal prior: q from 0, nothing changes, to 256, the last
  few rows count. A step of the intercept is no smaller: the level drifts faster than
  the slopes, or takes up the last error whole. For `s` see `with_row`;
- **common walks**: the same, all features in the unit of the largest: units that are
  common to the features tell which coefficients are large. Their intercept stands;
- **ridges**: least squares with a penalty that isn't forgotten where the rows are:

  .. math:: \min_\theta \sum_{s < t} \lambda^{t - s} (y_s - u_s^\top \theta)^2
            + r \sum_i v_i \theta_i^2, \quad u_s = (1, x_s - x_1),

  with the variances `v` of the features;
- **levels**: exponentially weighted means of the labels, as insurance.

A row whose label or features are far off isn't learned unless the next confirm it, and
the ladder starts again if sizes change for good (`Ladder`, Notes).

The compiled kernel is tested equal to `Ladder`. Why it predicts well, what is proven of
it and what each part earns is in ``doc/linear.md``.
"""

from typing import NamedTuple

import numpy as np

from sktvdenoise._ladder import Kind, Noise, coefficients, learn, predict, weights
from sktvdenoise._ladder import allocate as _allocate

__all__ = [
    "LADDER",
    "TRACKERS",
    "Ladder",
    "Scales",
    "allocate",
    "coefficients",
    "kalman_update",
    "learn",
    "member_density",
    "predict",
    "weights",
    "with_row",
]

# q of the slopes, q of the intercept.
_WALKS = (
    *((q, q) for q in (0, 2**-20, 2**-16, 2**-12, 2**-8, 2**-4, 1, 16)),
    *((0, q) for q in (2**-4, 1, 256)),
    *((2**-12, q) for q in (2**-4, 1, 256)),
    *((2**-6, q) for q in (1, 256)),
)
_FACTORS = (1, *(1 - 2**-k for k in (7, 4, 2, 1)))

# Name, kind, parameters, prior weight.
LADDER = (
    *(("walk", Kind.WALK, (q, q0, 10, 10), 1.0) for q, q0 in _WALKS),
    *(
        ("common walk", Kind.COMMON_WALK, (q, 0, 1e6, 1e6), 0.6)
        for q in (2**-16, 2**-8, 1, 256)
    ),
    *(
        ("ridge", Kind.RIDGE, (factor, r), 1.6)
        for r in (10, 0.5, 0.03, 0.001)
        for factor in _FACTORS
    ),
    *(("level", Kind.LEVEL, (q,), 0.1) for q in (2**-8, 2**-4, 1, 16)),
)

# Whose errors tell the variance of the noise, forgetting of them, share of the prior.
TRACKERS = (
    (Noise.OWN, 0.98, 0.003),
    (Noise.OWN, 0.8, 0.003),
    (Noise.COMMON, 0.98, 0.003),
)


def allocate(n_features):
    """State of a ladder before the first row, for `learn`, `predict` and the like.

    Parameters
    ----------
    n_features : int

    Returns
    -------
    state : ndarray of uint8
    """
    return _allocate(n_features, LADDER, TRACKERS)


class Scales(NamedTuple):
    """What is known of the features.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Of the differences to the first row.
    variance, square : ndarray of shape (n_features,)
        Mean squared deviation from the mean, and mean square.
    scale : ndarray of shape (n_features,)
        What the walks divide features by; 0 where they don't see them.
    common : float
        What the common walks divide them by.
    """

    mean: np.ndarray
    variance: np.ndarray
    square: np.ndarray
    scale: np.ndarray
    common: float


def with_row(scales, x, first, t):
    """Scales of the features with a further row.

    Parameters
    ----------
    scales : Scales
        Of the rows before.
    x, first : ndarray of shape (n_features,)
        The row and the first row.
    t : int
        Number of the row, from 1.

    Returns
    -------
    scales : Scales
        The scales of the walks are root mean squares. They follow the rows for twice
        as many rows as there are coefficients; then they stand, so that coefficients
        mean the same for ever, but for features that were 0 until now.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.ladder import Scales, with_row
    >>> x = np.array([3.0, 0.0])
    >>> scales = with_row(Scales(*np.zeros((4, 2)), 0.0), x, x, 1)
    >>> scales.scale, scales.variance
    (array([3., 0.]), array([0., 0.]))
    """
    follow = t <= 2 * (len(x) + 1)
    deviation = x - first - scales.mean
    square = scales.square + (x**2 - scales.square) / t
    root = np.sqrt(square)
    common = scales.common
    if follow or common == 0:
        common = root.max(initial=0.0)
    return Scales(
        scales.mean + deviation / t,
        scales.variance + (deviation**2 * (t - 1) / t - scales.variance) / t,
        square,
        np.where(follow | (scales.scale == 0), root, scales.scale),
        common,
    )


def kalman_update(theta, P, z, y, growth, noise=1.0):
    r"""Kalman filters of coefficients that walk at random: one row.

    Parameters
    ----------
    theta : ndarray of shape (n_filters, p)
    P : ndarray of shape (n_filters, p, p)
        Their covariances, in units of the variance of the noise.
    z : ndarray of shape (n_filters, p)
        The row.
    y : float
        Its label.
    growth : ndarray of shape (n_filters, p)
        What the walk adds to the variances.
    noise : float, default=1.0
        Relative variance of the row's noise.

    Returns
    -------
    theta, P : ndarray
    leverage : ndarray of shape (n_filters,)
        :math:`z^\top P z`, the variance of the prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.ladder import kalman_update
    >>> one = np.ones((1, 1))
    >>> kalman_update(0 * one, one[..., None], one, 2.0, 0 * one)
    (array([[1.]]), array([[[0.5]]]), array([1.]))
    """
    P = P + growth[:, :, None] * np.eye(z.shape[1])
    g = np.einsum("kij,kj->ki", P, z)
    leverage = np.sum(g * z, axis=1)
    k = g / (leverage + noise)[:, None]
    theta = theta + k * (y - np.sum(theta * z, axis=1))[:, None]
    return theta, P - k[:, :, None] * g[:, None, :], np.maximum(leverage, 0)


def member_density(errors, leverages, squares, variance, count, noise=1.0):
    r"""How well members predicted a label: densities with each member's own noise.

    Parameters
    ----------
    errors, leverages : ndarray of shape (n_members,)
        The variance of an error is that of the noise times ``noise + leverages``.
    squares : ndarray of shape (n_members,)
        Sums of errors squared over these factors.
    variance : float
        :math:`c`, of the noise, as far as the tracker knows.
    count : float
        How many squares are in the sums.
    noise : float, default=1.0
        Relative variance of the row's noise.

    Returns
    -------
    density : ndarray of shape (n_members,)
        Logarithms, up to a common constant: Student's density with at most 4 degrees
        of freedom, of squared scale :math:`(S + c/100)/(N + 1/100)` times the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.ladder import member_density
    >>> density = member_density(np.ones(2), np.zeros(2), np.array([1, 100]), 1.0, 1.0)
    >>> bool(density[0] > density[1])
    True
    """
    nu = min(count + 0.01, 4)
    v = nu * (squares + 0.01 * variance) / (count + 0.01) * (noise + leverages)
    return (nu * np.log(v) - (nu + 1) * np.log(v + errors**2)) / 2


class Ladder:
    """Members and trackers for one stream, without a guard.

    Parameters
    ----------
    n_features : int
    members, trackers : sequence, default=LADDER, TRACKERS

    Notes
    -----
    - A row is *far* if its label is more than 5 ranges outside the range so far, 0
      included, or a feature above 1000 root mean squares. From the fifth row on it is
      held back: not learned. If the next is far, too, it is accepted, and the ladder
      starts again from it; above 25 times as much, three are held back. More than five
      far rows in the last 64 or so need no others to confirm them.
    - After 8, 16, 32, ... rows the ladder looks back at the later half of them, and
      starts again if noise, or a feature's root mean square, is above 100 times all
      that is there: an outlier came among the first rows, or a storm is over.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.ladder import Ladder
    >>> ladder = Ladder(1)
    >>> for x in range(20):
    ...     ladder.learn(np.array([x]), 3.0 * x + 1)
    >>> round(ladder.predict(np.array([20.0])), 1)
    61.0
    """

    def __init__(self, n_features, members=LADDER, trackers=TRACKERS):
        self.members, self.trackers = members, trackers
        self._start(n_features)

    def _start(self, n_features):
        """Nothing is known."""
        members, trackers = self.members, self.trackers
        self.p = p = n_features + 1
        rows = {kind: [m for m in members if m[1] == kind] for kind in list(Kind)[:4]}
        self.n_walks = len(rows[Kind.WALK])
        walks = rows[Kind.WALK] + rows[Kind.COMMON_WALK]
        q, q0, prior, prior0 = np.array([m[2] for m in walks], dtype=float).T
        self._q, self._q0 = q, q0
        self._factor, self._ridge = np.array([m[2] for m in rows[Kind.RIDGE]], float).T
        self._level_q = np.array([m[2][0] for m in rows[Kind.LEVEL]], dtype=float)
        weights = np.array([m[3] for kind in rows.values() for m in kind], dtype=float)
        self._prior = weights / weights.sum()

        self.round = self.n_held = 0
        self.n_far, self.check, self.recent = 0.0, 8, []
        self.first = np.zeros(n_features)
        self.first_label = self.low = self.high = self.mean_weight = 0.0
        self.scales = Scales(*np.zeros((4, n_features)), 0.0)
        self.theta = np.zeros((len(walks), p))
        self.P = np.zeros((len(walks), p, p))
        self.P[:, 0, 0] = prior0
        self.P[:, range(1, p), range(1, p)] = prior[:, None]
        self.gram = np.zeros((len(self._factor), p, p))
        self.moment = np.zeros((len(self._factor), p))
        self.level = np.zeros(len(self._level_q))
        self.level_variance = np.ones(len(self._level_q))
        n = len(trackers)
        self.weights = np.tile(self._prior, (n, 1))
        self.squares = np.zeros((n, len(self.members)))
        self.tracker_squares, self.tracker_count = np.zeros(n), np.zeros(n)

    def predict(self, x):
        """Prediction of the label of a row."""
        return float(self._predictions(x).mean()) if self.round else 0.0

    def learn(self, x, y, weight=1.0):
        """Learn a row, of positive weight."""
        x = np.asarray(x, dtype=float)
        if self._holds_back(x, y):
            return
        if self.n_held > 1 or self._dwarfed():
            self._start(len(x))
        self.mean_weight += (weight - self.mean_weight) / (self.round + 1)
        noise = np.clip(self.mean_weight / weight, 1e-6, 1e6)
        if self.round == 0:
            self.first, self.first_label = x, y
        predictions = self._predictions(x)
        self.scales, z, growth, u, ridge_leverages = self._seen
        self.theta, self.P, leverages = kalman_update(
            self.theta, self.P, z, y, growth, noise
        )
        factor = self._factor[:, None]
        self.gram = factor[:, :, None] * self.gram + np.outer(u, u) / noise
        self.moment = factor * self.moment + (y - self.first_label) * u / noise
        variance = self.level_variance + self._level_q
        gain = variance / (variance + noise)
        self.level = self.level + gain * (y - self.first_label - self.level)
        self.level_variance = (1 - gain) * variance
        if self.round > 0:
            leverages = np.concatenate([leverages, ridge_leverages, variance])
            for i in range(len(self.trackers)):
                self._track(i, y, predictions[i], leverages, noise)
        self.low, self.high = min(self.low, y), max(self.high, y)
        self.recent = [*(self.recent if 2 * self.round != self.check else ()), (x, y)]
        self.round += 1

    def coefficients(self):
        """Coefficients and intercept: weighted means of the members'."""
        weights = self.weights.mean(axis=0)
        walks, ridges, levels = np.split(weights, np.cumsum(self._sizes())[:2])
        scale = self._walk_scales(self.scales)
        slopes = np.divide(
            self.theta[:, 1:], scale, out=0 * self.theta[:, 1:], where=scale > 0
        )
        theta = self._solve(self.moment, self.scales.variance)
        coef = walks @ slopes + ridges @ theta[:, 1:]
        intercept = walks @ self.theta[:, 0] + levels @ (self.first_label + self.level)
        intercept += ridges @ (
            self.first_label + theta[:, 0] - theta[:, 1:] @ self.first
        )
        return coef, intercept

    def _holds_back(self, x, y):
        """Whether a row is so far off that the next ones must confirm it."""
        width = self.high - self.low
        beyond = max(y - self.high, self.low - y)
        root = np.sqrt(self.scales.square)
        far = np.abs(x)[root > 0] / (1000 * root[root > 0])
        far = max(far.max(initial=0), beyond / (5 * width) if width > 0 else 0)
        self.n_far *= 1 - 1 / 64
        if self.round < 4 or far <= 1:
            self.n_held = 0
            return False
        self.n_far += 1
        self.n_held += 1
        return self.n_far <= 5 and self.n_held <= (3 if far > 25 else 1)

    def _dwarfed(self):
        """Whether what is kept is far larger than all of the later half of the rows."""
        if self.round != self.check:
            return False
        self.check *= 2
        sizes = np.max([np.abs([*x, y]) for x, y in self.recent], axis=0)
        noise = np.max(self.tracker_squares / self.tracker_count)
        kept = np.append(self.scales.square, noise)
        return bool(np.any((sizes > 0) & (kept > (100 * sizes) ** 2)))

    def _sizes(self):
        return len(self._q), len(self._factor), len(self._level_q)

    def _walk_scales(self, scales):
        common = np.full((len(self._q) - self.n_walks, self.p - 1), scales.common)
        return np.vstack([np.tile(scales.scale, (self.n_walks, 1)), common])

    def _solve(self, right, variance):
        """(A + r D)^-1 right for all ridges, right of shape (n, p) or (p,)."""
        diagonal = np.concatenate([[0], np.where(variance > 0, variance, 1)])
        A = self.gram + (self._ridge[:, None] * diagonal)[:, :, None] * np.eye(self.p)
        A[:, 0, 0] += 1e-6 * self._ridge
        right = np.broadcast_to(right, self.moment.shape)
        return np.linalg.solve(A, right[:, :, None])[:, :, 0]

    def _predictions(self, x):
        """Of the trackers."""
        t = self.round + 1
        scales = with_row(self.scales, x, self.first, t)
        scale = self._walk_scales(scales)
        z = np.divide(x, scale, out=np.zeros_like(scale), where=scale > 0)
        z = np.hstack([np.ones((len(z), 1)), z])
        square = np.tile(scales.square, (len(z), 1))
        square[self.n_walks :] = scales.square.max(initial=0.0)
        drift = np.divide(
            scale**2, square, out=np.ones_like(z[:, 1:]), where=square > 0
        )
        growth = np.hstack([self._q0[:, None], self._q[:, None] * drift])

        u = np.concatenate([[1], x - self.first])
        old = self.scales.variance
        variance = np.where((t <= 2 * self.p) | (old == 0), scales.variance, old)
        ridges = self._solve(self.moment, variance) @ u
        leverages = self._solve(u, variance) @ u
        self._seen = scales, z, growth, u, leverages

        members = np.concatenate(
            [
                np.sum(self.theta * z, axis=1),
                self.first_label + ridges,
                self.first_label + self.level,
            ]
        )
        margin = 2 * (self.high - self.low)
        self._members = np.clip(members, self.low - margin, self.high + margin)
        return self.weights @ self._members

    def _track(self, i, y, prediction, leverages, noise):
        kind, keep, share = self.trackers[i]
        errors, error = y - self._members, y - prediction
        count = self.tracker_count[i]
        square = error**2 / noise
        variance = self.tracker_squares[i] / count if count > 0 else square
        variance = max(variance, (1e-13 * max(-self.low, self.high) + 1e-100) ** 2)
        if kind == Noise.OWN:
            squares = self.squares[i]
            density = member_density(errors, leverages, squares, variance, count, noise)
            most = (squares + 0.01 * variance) * (5 / count if count > 3 else 1e100)
            new = np.minimum(errors**2 / (noise + leverages), most)
            self.squares[i] = keep * squares + new
            square = error**2 / (noise + self.weights[i] @ leverages)
        else:
            density = -(errors**2) / (2 * noise * variance)
        # The prior's share is no part of the mean that predicts.
        share = max(share, 1 / self.round)
        shared = (1 - share) * self.weights[i] + share * self._prior
        weights = shared * np.exp(density - density.max())
        self.weights[i] = weights / weights.sum()
        if count > 3:
            square = min(square, 5 * variance)
        if self.round <= self.p:
            keep = min(keep, 0.5)
        self.tracker_squares[i] = keep * self.tracker_squares[i] + square
        self.tracker_count[i] = keep * count + 1
