"""Base learners of follow-the-leading-history, one plain numpy step each.

These steps are the definition of what the compiled kernels do, written to be
read. An expert is born in some round, learns from the labels of that round and
of all later ones, and before its first label predicts what it was born with.
"""

import numpy as np

from sktvdenoise._pool import Kind

__all__ = ["POOL", "running_mean_update"]


def running_mean_update(mean, mass, y, weight=1.0):
    r"""Follow the leader for squared loss: the running mean since birth.

    Parameters
    ----------
    mean : float or ndarray
        Means so far, in the units of the labels. Where ``mass`` is zero it is
        the guess an expert was born with.
    mass : float or ndarray
        Sum of the weights since birth; zero before the first label.
    y : float
        New label.
    weight : float, default=1.0
        Weight of the new label, positive.

    Returns
    -------
    mean : float or ndarray
        Means with `y` included.
    mass : float or ndarray
        Sums of weights with `weight` included.

    Notes
    -----
    After weights :math:`w_1, .., w_k` the mean minimises
    :math:`\sum_{i \le k} w_i (y_i - m)^2`. The step

    .. math:: m \leftarrow m + \frac{w}{w + W} (y - m), \quad W = \text{mass},

    loses no digits to the level of the labels, as a difference of running sums
    would. With unit weights it is online gradient descent with step
    :math:`1 / (2 k)` on :math:`(y_k - x)^2`. A label that holds the whole mass
    replaces the guess exactly.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang, "Optimal Dynamic Regret in Exp-Concave Online
       Learning", COLT 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.experts import running_mean_update
    >>> running_mean_update(np.array([2.0, 1.0]), np.array([3.0, 0.0]), 6.0)
    (array([3., 6.]), array([4., 1.]))
    """
    mass = mass + weight
    share = weight / mass
    updated = np.where(share == 1.0, y, mean + share * (y - mean))
    return updated[()], mass


# The members of learning_rate="auto": name, kind, parameters (see `Kind`), weight at
# the start. A row may be removed, or another one added; of a mixture each hazard is a
# member, and a season has two: profile and regression.
POOL = (
    ("last label", Kind.EWMA, (1.0,), 4),
    ("EWMA 1/4", Kind.EWMA, (1 / 4,), 1),
    ("EWMA 1/30", Kind.EWMA, (1 / 30,), 1),
    ("mean", Kind.EWMA, (0.0,), 1),
    ("trend 0.03", Kind.HOLT, (0.03, 0.3), 1),
    ("trend 0.06", Kind.HOLT, (0.06, 0.3), 1),
    ("trend 0.1", Kind.HOLT, (0.1, 0.8), 1),
    ("trend 0.3", Kind.HOLT, (0.3, 0.2), 1),
    ("trend 0.3, quick", Kind.HOLT, (0.3, 0.8), 1),
    ("last trend", Kind.HOLT, (1.0, 0.9), 4),
    ("reversion", Kind.REVERSION, (0.995,), 1),
    ("autoregression", Kind.LAGS, (13, 1.0), 1),
    ("autoregression of differences", Kind.DIFFERENCES, (6, 0.995), 1),
    ("means", Kind.MEANS, (2e-4, 2e-3, 2e-2), 1),
    ("trends", Kind.TRENDS, (2e-4, 2e-3, 2e-2), 1),
    ("robust means", Kind.ROBUST_MEANS, (5e-3,), 1),
    ("robust trends", Kind.ROBUST_TRENDS, (5e-3,), 1),
    ("season", Kind.SEASON, (0.3, 0.2, 1.0), 1),
)
