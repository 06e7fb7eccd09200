"""Base learners of follow-the-leading-history, one plain numpy step each.

These steps are the definition of what the compiled kernels do, written to be
read. An expert is born in some round, learns from the labels of that round and
of all later ones, and before its first label predicts what it was born with.
"""

import numpy as np

__all__ = ["running_mean_update"]


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
