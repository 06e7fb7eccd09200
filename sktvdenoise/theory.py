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
from sktvdenoise._kkt import (
    KKTConditions,
    Rows,
    check_sequence,
    kkt_conditions,
    loss_gradients,
)
from sktvdenoise._partition import (
    Bins,
    generate_bins,
    key_partition,
    single_cuts,
    split_monotonic,
    walk,
)
from sktvdenoise._partition_display import PartitionDisplay
from sktvdenoise._positions import check_labels, check_number
from sktvdenoise._regret_bounds import (
    denoising_regret_bound,
    dynamic_regret_bound,
    exp_concave_regret_bound,
    regret_lower_bound,
    strongly_convex_regret_bound,
)

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
    loss : {"squared", "logistic", "poisson"} or Loss, default="squared"
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
        another loss than squared and logistic.

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
    rows = Rows(y, X, loss)
    u = check_sequence(y, comparator, X)
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
