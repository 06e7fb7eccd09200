"""The objects of the proof of optimal dynamic regret, to be computed and checked.

The statements are those of Baby and Wang (2021), whose numbers are used; the guide
`doc/theory.md` goes through the paper with these functions. They take arrays, so an
oracle of any origin will do, as that of ``sktvdenoise.metrics.tv_oracle``.

- *conditions of optimality* (Lemmas 3, 23, 29): `loss_gradients`, `kkt_conditions`;
- *bins* (Lemmas 5, 30): `walk`, `key_partition`, `generate_bins`, `split_monotonic`
  and, without any condition, `single_cuts`; `PartitionDisplay` draws them;
- *decomposition of the regret* (equations 8 and 17): `regret_decomposition`;
- *bounds* (Theorems 1 and 14, Propositions 10, 11 and 15): `denoising_regret_bound`,
  `exp_concave_regret_bound`, `strongly_convex_regret_bound`, all by
  `dynamic_regret_bound`; `regret_lower_bound`;
- *streams* (Example 21, Proposition 11, Remark 12): `make_example_21`,
  `make_lower_bound`, `make_smooth`, `smooth_variation`.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sktvdenoise._instances import (
    make_example_21,
    make_lower_bound,
    make_smooth,
    smooth_variation,
)
from sktvdenoise._partition import (
    Bins,
    generate_bins,
    jumps,
    key_partition,
    single_cuts,
    split_monotonic,
    walk,
)
from sktvdenoise._partition_plot import PartitionDisplay
from sktvdenoise._positions import check_labels, check_number
from sktvdenoise._regret_bounds import (
    denoising_regret_bound,
    dynamic_regret_bound,
    exp_concave_regret_bound,
    regret_lower_bound,
    strongly_convex_regret_bound,
)
from sktvdenoise.losses import LOSSES

__all__ = [
    "Bins",
    "KKTConditions",
    "PartitionDisplay",
    "RegretDecomposition",
    "denoising_regret_bound",
    "dynamic_regret_bound",
    "exp_concave_regret_bound",
    "generate_bins",
    "key_partition",
    "kkt_conditions",
    "loss_gradients",
    "make_example_21",
    "make_lower_bound",
    "make_smooth",
    "regret_decomposition",
    "regret_lower_bound",
    "single_cuts",
    "smooth_variation",
    "split_monotonic",
    "strongly_convex_regret_bound",
    "walk",
]


def loss_gradients(y, comparator, *, X=None, loss="squared"):
    """Gradients of the rows' losses along a sequence.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order.
    comparator : array-like of the shape of `y`, or of `X` if that is given
        The sequence.
    X : array-like of shape (n_samples, n_features), default=None
        Covariates; the prediction of a row is their product with the sequence's row.
        None: it is the sequence's row itself.
    loss : {"squared", "logistic", "poisson"}, default="squared"
        Of ``sktvdenoise.losses``: half the squared error, and half the deviances.

    Returns
    -------
    gradients : ndarray of the shape of `comparator`
        For squared loss without covariates ``comparator - y``.

    Raises
    ------
    ValueError
        If shapes don't fit, a value isn't finite, or the loss is unknown or doesn't
        allow a label.

    Examples
    --------
    >>> from sktvdenoise.theory import loss_gradients
    >>> loss_gradients([1.0, 3.0], [2.0, 2.0])
    array([ 1., -1.])
    """
    return _Rows(y, X, loss).gradients(_sequence(y, comparator, X))


@dataclass(frozen=True, eq=False)
class KKTConditions:
    """Conditions of optimality of a sequence within a budget of variation and a box.

    Attributes
    ----------
    signs : ndarray of shape (n_samples + 1,) or (n_samples + 1, n_outputs)
        Sign sequence: ``signs[t]`` belongs to the change from row t - 1 to row t, and
        is its sign if there is one; the first and the last are 0.
    lower, upper : ndarray of the shape of the sequence
        Multipliers of ``comparator >= -bound`` and ``comparator <= bound``.
    residual : float
        By how much the conditions fail, in the units of the multiplier: 0 up to
        rounding if and only if (for convex losses) the sequence is optimal for its
        own variation.
    """

    signs: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    residual: float


def kkt_conditions(comparator, gradients, multiplier, *, bound=None):
    """Sign sequence and multipliers of an oracle, and how well they fit.

    Parameters
    ----------
    comparator : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The sequence. Its jumps are the changes that are no rounding errors.
    gradients : array-like of the same shape
        Gradients of the losses there, as by `loss_gradients`.
    multiplier : float >= 0
        Multiplier of the budget, alpha, for the losses of these gradients.
    bound : float > 0, default=None
        Largest absolute value allowed, `B`, in the units of the sequence.

    Returns
    -------
    conditions : KKTConditions
        With the attributes `signs`, `lower`, `upper` and `residual`.

    Raises
    ------
    ValueError
        If the shapes differ, a value isn't finite, a number isn't in its range, or
        the sequence exceeds `bound`.

    Notes
    -----
    Lemma 29 of [1]_ (Lemma 23 for one coordinate, Lemma 3 for squared loss, where the
    first line reads :math:`y_t = u_t - \\alpha (s_t - s_{t-1})`): for each coordinate

    .. math:: \\nabla f_t(u_t) &= \\alpha (s_t - s_{t-1}) + \\gamma^-_t - \\gamma^+_t,
        \\qquad s_0 = s_n = 0, \\; |s_t| \\le 1, \\\\
        s_t &= \\mathrm{sign}(u_{t+1} - u_t) \\text{ if } u_{t+1} \\ne u_t, \\qquad
        \\gamma^\\pm_t \\ge 0, \\; \\gamma^\\pm_t (u_t \\mp B) = 0 .

    Without a box that binds, the cumulative gradients are :math:`\\alpha s`. Where the
    sequence stands at a bound, its multipliers are the least that keep :math:`|s| \\le
    1`, and what is missing at the end of the run is given to its last row: if any
    multipliers satisfy the conditions, these do. The residual is the largest violation
    by the cumulative gradients, the multipliers added. The given signs keep to their
    range and to the jumps even if there is a residual.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.metrics import tv_oracle
    >>> from sktvdenoise.theory import kkt_conditions, loss_gradients
    >>> y = [0.0, 0.0, 6.0, 6.0]
    >>> oracle = tv_oracle(y, tv_budget=4.0)
    >>> gradients = loss_gradients(y, oracle.comparator)
    >>> kkt = kkt_conditions(oracle.comparator, gradients, oracle.multiplier)
    >>> kkt.signs, kkt.residual
    (array([0. , 0.5, 1. , 0.5, 0. ]), 0.0)
    """
    check_number("multiplier", multiplier, finite=True)
    shape = np.shape(comparator)
    u = check_labels(comparator, name="comparator")
    g = check_labels(gradients, len(u), name="gradients")
    if g.shape != u.shape:
        raise ValueError(
            f"gradients has the shape {g.shape} and comparator {shape}: they must be "
            "the same."
        )
    u, g = u.reshape(len(u), -1), g.reshape(len(u), -1)
    pull = np.zeros_like(u)
    if bound is not None:
        check_number("bound", bound, positive=True, finite=True)
        slack = 1e-12 * bound
        beyond = np.abs(u) > bound + slack
        if beyond.any():
            row = int(np.argmax(beyond.any(axis=1)))
            raise ValueError(f"comparator[{row}] = {u[row]} exceeds bound={bound:g}.")
        held = np.sign(u) * (np.abs(u) >= bound - slack)
        for k in range(u.shape[1]):
            pull[:, k] = _pull(g[:, k], held[:, k], multiplier)
    dual = np.concatenate([np.zeros((1, u.shape[1])), np.cumsum(g + pull, axis=0)])
    steps = np.sign(jumps(u))
    inside = dual[1:-1]
    violations = np.where(
        steps != 0, np.abs(inside - multiplier * steps), np.abs(inside) - multiplier
    )
    residual = max(violations.max(initial=0.0), np.abs(dual[-1]).max())
    signs = np.zeros_like(dual)
    if multiplier > 0:
        signs[1:-1] = np.clip(inside / multiplier, -1.0, 1.0)
    signs[1:-1][steps != 0] = steps[steps != 0]
    return KKTConditions(
        signs.reshape(len(u) + 1, *shape[1:]),
        np.maximum(-pull, 0.0).reshape(shape),
        np.maximum(pull, 0.0).reshape(shape),
        float(residual),
    )


def _pull(g, held, multiplier):
    """Multipliers of the upper bound minus those of the lower, of one coordinate.

    `held` is 1 on the rows at the upper bound, -1 on those at the lower, 0 elsewhere.
    The cumulative sums of g plus the multipliers are the sign sequence times
    `multiplier`. At the upper bound they may not fall below -multiplier, and end a run
    at that if a jump follows, which is downwards, or at 0 after the last row; at the
    lower bound the same holds with all signs changed.
    """
    pull = np.zeros_like(g)
    level, done = 0.0, 0
    changes = np.flatnonzero(np.diff(held, prepend=0.0, append=0.0))
    for start, stop in pairwise(changes.tolist()):
        side = held[start]
        if side == 0:
            continue
        level += g[done:start].sum()
        sums = side * (level + np.cumsum(g[start:stop]))
        lift = np.maximum.accumulate(np.maximum(-multiplier - sums, 0.0))
        target = 0.0 if stop == len(g) else -multiplier
        lift[-1] = max(lift[-1], target - sums[-1])
        pull[start:stop] = side * np.diff(lift, prepend=0.0)
        level, done = side * (sums[-1] + lift[-1]), stop
    return pull


@dataclass(frozen=True, eq=False)
class RegretDecomposition:
    """The regret against a sequence, in three terms for each bin.

    Attributes
    ----------
    t1 : ndarray of shape (n_bins,)
        Loss of the predictions minus that of the bin's `steps`: what learning costs.
    t2 : ndarray of shape (n_bins,)
        Loss of the `steps` minus that of the `means`: not positive.
    t3 : ndarray of shape (n_bins,)
        Loss of the `means` minus that of the sequence: what it costs not to vary.
    means : ndarray of shape (n_bins,) or (n_bins, n_outputs)
        Mean of the sequence.
    steps : ndarray of the same shape
        A gradient step from there; for squared loss without covariates the mean label.
    """

    t1: np.ndarray
    t2: np.ndarray
    t3: np.ndarray
    means: np.ndarray
    steps: np.ndarray

    @property
    def regret(self):
        """Sum of all terms: loss of the predictions minus that of the sequence."""
        return float(np.sum(self.t1 + self.t2 + self.t3))


def regret_decomposition(
    y, y_pred, comparator, edges, *, X=None, loss="squared", smoothness=None
):
    """Split the regret into learning, a gradient step and not varying, bin by bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Labels, in order.
    y_pred : array-like of the same shape
        Predictions, each made before its label was seen.
    comparator : array-like of the shape of `y`, or of `X` if that is given
        The sequence, as ``tv_oracle(y, tv_budget).comparator``.
    edges : array-like of shape (n_bins + 1,)
        Increasing integers from 0 to `n_samples`, as by `key_partition`.
    X : array-like of shape (n_samples, n_features), default=None
        Covariates, as for `loss_gradients`.
    loss : {"squared", "logistic", "poisson"}, default="squared"
        Squared error (without a factor 1/2), or half the deviances.
    smoothness : float > 0, default=None
        Lipschitz constant of the gradients, beta. None is 2 for squared and 1/4 for
        logistic loss, times the largest squared Euclidean norm of a row of `X`.

    Returns
    -------
    decomposition : RegretDecomposition
        With the attributes `t1`, `t2`, `t3`, `means`, `steps` and `regret`.

    Raises
    ------
    ValueError
        If shapes don't fit, a value isn't finite, the edges aren't those of bins, the
        loss is unknown or doesn't allow a label, or `smoothness` is missing for
        Poisson loss, which has none everywhere.

    Notes
    -----
    Equation 17 of [1]_, of which equation 8 is the case of squared loss. For the rows
    j of a bin, n in number, with the mean :math:`\\bar u` of the sequence and
    :math:`v = \\bar u - \\frac{1}{n \\beta} \\sum_j \\nabla f_j(\\bar u)`,

    .. math:: R = \\sum_{bins} \\underbrace{\\sum_j f_j(x_j) - f_j(v)}_{T_1}
        + \\underbrace{\\sum_j f_j(v) - f_j(\\bar u)}_{T_2}
        + \\underbrace{\\sum_j f_j(\\bar u) - f_j(u_j)}_{T_3} .

    For squared loss and the optimal u, with the signs s at the ends a, b of the bin
    (before its first and after its last row), its first and last values
    :math:`u_a, u_b` and its variation C,

    .. math:: T_2 &= -\\frac{\\alpha^2}{n} (s_b - s_a)^2, \\\\
        T_3 &= \\sum_j (u_j - \\bar u)^2 + 2 \\alpha \\left( C + (u_a - \\bar u) s_a
            - (u_b - \\bar u) s_b \\right),

    which is Lemma 8 with equality and Lemma 9 before its estimates. The sum is at most
    :math:`n C^2/4`, hence :math:`B^2/4` in a bin that fits B. The bracket is at most
    2C, for the sequence takes values on both sides of its mean; it is 0 if the
    sequence is monotone in the bin with the signs of its direction at both ends.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.theory import regret_decomposition
    >>> y, y_pred, u = [0, 0, 6, 6], [0, 0, 0, 6], [1, 1, 5, 5]
    >>> parts = regret_decomposition(y, y_pred, u, edges=[0, 2, 4])
    >>> parts.t1, parts.t2, parts.t3, parts.regret
    (array([ 0., 36.]), array([-2., -2.]), array([0., 0.]), 32.0)
    """
    rows = _Rows(y, X, loss)
    u = _sequence(y, comparator, X)
    predictions = check_labels(y_pred, name="y_pred")
    if predictions.shape != rows.y.shape:
        raise ValueError(
            f"y and y_pred must have the same shape: y has {rows.y.shape}, y_pred has "
            f"{predictions.shape}."
        )
    edges = _check_edges(edges, len(u))
    if smoothness is None:
        smoothness = rows.smoothness()
    check_number("smoothness", smoothness, positive=True, finite=True)
    starts, sizes = edges[:-1], np.diff(edges)
    lengths = sizes.reshape(-1, *[1] * (u.ndim - 1))

    def sums(values):
        return np.add.reduceat(values, starts, axis=0)

    first = u[starts]
    # Means of differences from the bin's first value: exact for constant bins.
    means = first + sums(u - np.repeat(first, sizes, axis=0)) / lengths
    spread_means = np.repeat(means, sizes, axis=0)
    gradients = rows.scale * rows.gradients(spread_means)
    steps = means - sums(gradients) / (lengths * smoothness)
    losses = [
        sums(rows.losses(prediction))
        for prediction in (
            predictions,
            rows.predict(np.repeat(steps, sizes, axis=0)),
            rows.predict(spread_means),
            rows.predict(u),
        )
    ]
    t1, t2, t3 = (a - b for a, b in pairwise(losses))
    return RegretDecomposition(t1, t2, t3, means, steps)


class _Rows:
    """Losses of rows, with or without covariates."""

    def __init__(self, y, X, loss):
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {sorted(LOSSES)}, got {loss!r}.")
        self.name, self.loss = loss, LOSSES[loss]
        self.y = self.loss.check(check_labels(y))
        self.scale = 2.0 if loss == "squared" else 1.0
        self.X = None
        if X is not None:
            self.X = check_labels(X, name="X")
            if self.y.ndim != 1 or self.X.ndim != 2 or len(self.X) != len(self.y):
                raise ValueError(
                    "With covariates X of shape (n_samples, n_features) y must have "
                    f"the shape (n_samples,): got {self.X.shape} and {self.y.shape}."
                )

    def predict(self, u):
        return u if self.X is None else np.einsum("ij,ij->i", self.X, u)

    def gradients(self, u):
        slopes = self.loss.derivative(self.y, self.predict(u))
        return slopes if self.X is None else slopes[:, np.newaxis] * self.X

    def losses(self, prediction):
        values = self.scale * self.loss.value(self.y, prediction)
        return values.reshape(len(values), -1).sum(axis=1)

    def smoothness(self):
        largest = {"squared": 2.0, "logistic": 0.25}
        if self.name not in largest:
            raise ValueError(
                f"smoothness must be given for loss={self.name!r}: its gradients have "
                "no Lipschitz constant on all numbers."
            )
        norms = 1.0 if self.X is None else np.square(self.X).sum(axis=1).max()
        return float(largest[self.name] * norms)


def _sequence(y, comparator, X):
    """The checked comparator."""
    u = check_labels(comparator, name="comparator")
    what, shape = ("y", np.shape(y)) if X is None else ("X", np.shape(X))
    if u.shape != shape:
        raise ValueError(
            f"comparator must have the shape of {what}, {shape}; it has {u.shape}."
        )
    return u


def _check_edges(edges, n_samples):
    found = np.asarray(edges)
    if (
        found.ndim != 1
        or found.dtype.kind not in "iu"
        or len(found) < 2
        or found[0] != 0
        or found[-1] != n_samples
        or (np.diff(found) <= 0).any()
    ):
        raise ValueError(
            f"edges must be increasing integers from 0 to {n_samples}, got {edges!r}."
        )
    return found
