"""Gradients along a sequence, and the conditions that make it an optimal one."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sktvdenoise._partition import jumps
from sktvdenoise._positions import check_labels, check_number
from sktvdenoise.losses import LOSSES, Loss

__all__ = [
    "KKTConditions",
    "Rows",
    "check_sequence",
    "kkt_conditions",
    "loss_gradients",
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
    loss : {"squared", "logistic", "poisson"} or Loss, default="squared"
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
    return Rows(y, X, loss).gradients(check_sequence(y, comparator, X))


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


class Rows:
    """Losses of rows, with or without covariates."""

    def __init__(self, y, X, loss):
        self.loss = LOSSES.get(loss, loss) if isinstance(loss, str) else loss
        if not isinstance(self.loss, Loss):
            raise ValueError(
                f"loss must be one of {sorted(LOSSES)} or a Loss, got {loss!r}."
            )
        self.y = self.loss.check(check_labels(y))
        self.scale = self.loss.scale
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
        largest = {LOSSES["squared"]: 2.0, LOSSES["logistic"]: 0.25}
        if self.loss not in largest:
            raise ValueError(
                f"smoothness must be given for the loss {type(self.loss).__name__}: "
                "the derivative has no known Lipschitz constant on all numbers."
            )
        norms = 1.0 if self.X is None else np.square(self.X).sum(axis=1).max()
        return float(largest[self.loss] * norms)


def check_sequence(y, comparator, X):
    """The checked comparator."""
    u = check_labels(comparator, name="comparator")
    what, shape = ("y", np.shape(y)) if X is None else ("X", np.shape(X))
    if u.shape != shape:
        raise ValueError(
            f"comparator must have the shape of {what}, {shape}; it has {u.shape}."
        )
    return u
