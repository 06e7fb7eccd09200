"""Streams of the theory: where its statements are tight, and what its balls hold."""

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from sktvdenoise._positions import check_number
from sktvdenoise._regret_bounds import block_game, check_size

__all__ = ["make_example_21", "make_lower_bound", "make_smooth", "smooth_variation"]


def make_example_21(n_samples=6):
    """A stream whose multiplier is half its length.

    Parameters
    ----------
    n_samples : int, default=6
        Number of labels: even, at least 6.

    Returns
    -------
    y : ndarray of shape (n_samples,)
        The labels -2; -1, .., -1; 1; and `n_samples` / 2 times 2.
    comparator : ndarray of shape (n_samples,)
        The best sequence of variation 1: `n_samples` / 2 - 1 times 0, then 1.

    Raises
    ------
    ValueError
        If `n_samples` is odd, below 6 or no integer.

    Notes
    -----
    Example 21 of [1]_. The multiplier of the budget 1 is n/2 (for half the loss): no
    bound of it by a constant, or by a power of n below 1, can be had, and it must be
    the curvature of the losses that pays for it.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.metrics import tv_oracle
    >>> from sktvdenoise.theory import make_example_21
    >>> y, comparator = make_example_21(8)
    >>> y
    array([-2., -1., -1.,  1.,  2.,  2.,  2.,  2.])
    >>> tv_oracle(y, tv_budget=1.0).multiplier
    4.0
    """
    if not isinstance(n_samples, Integral) or n_samples < 6 or n_samples % 2:
        raise ValueError(f"n_samples must be even and at least 6, got {n_samples!r}.")
    half = n_samples // 2
    y = np.repeat([-2.0, -1.0, 1.0, 2.0], [1, half - 2, 1, half])
    return y, np.repeat([0.0, 1.0], [half - 1, half + 1])


def make_lower_bound(
    n_samples,
    tv_budget,
    bound=1.0,
    *,
    n_outputs=1,
    noise="uniform",
    random_state=None,
):
    """Streams on which every method has about the regret of the rate, or more.

    Parameters
    ----------
    n_samples : int
        Number of labels, `n`.
    tv_budget : float >= 0
        Largest total variation, `C`, in the units of the labels; the outputs have
        equal parts of it.
    bound : float > 0, default=1.0
        Largest absolute label, `B`, in their units.
    n_outputs : int, default=1
        Number of outputs, `d`.
    noise : {"uniform", "coin"}, default="uniform"
        "uniform": the truth lies in [-B/2, B/2], one number for each block of rounds,
        of random sign, and the noise is uniform on [-B/2, B/2]. "coin": the truth is
        0 and the labels are -B or B, the stream of `regret_lower_bound`.
    random_state : int, RandomState instance or None, default=None
        Source of the signs and of the noise.

    Returns
    -------
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The labels.
    truth : ndarray of that shape
        Their means. One-dimensional if `n_outputs` is 1.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range, or `noise` is unknown.

    Notes
    -----
    The streams of Proposition 11 of [1]_. The blocks are those at which the sequence
    in hindsight gains most by following the signs of the noise.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.theory import make_lower_bound
    >>> y, truth = make_lower_bound(1000, tv_budget=2.0, random_state=0)
    >>> bool(np.abs(np.diff(truth)).sum() <= 2.0), bool(np.abs(y).max() <= 1.0)
    (True, True)
    """
    check_size("n_samples", n_samples)
    check_size("n_outputs", n_outputs)
    check_number("tv_budget", tv_budget, finite=True)
    check_number("bound", bound, positive=True, finite=True)
    if noise not in ("uniform", "coin"):
        raise ValueError(f'noise must be "uniform" or "coin", got {noise!r}.')
    random = check_random_state(random_state)
    shape = (n_samples, n_outputs)
    truth = np.zeros(shape)
    if noise == "coin":
        y = bound * random.choice([-1.0, 1.0], shape)
    else:
        game = block_game(n_samples, tv_budget / n_outputs, bound / 2.0)
        signs = random.choice([-1.0, 1.0], (game.n_blocks, n_outputs))
        truth = game.size * signs[np.arange(n_samples) * game.n_blocks // n_samples]
        y = truth + random.uniform(-0.5 * bound, 0.5 * bound, shape)
    return (y, truth) if n_outputs > 1 else (y[:, 0], truth[:, 0])


def make_smooth(n_samples, radius, *, ball="sobolev", random_state=None):
    """A random signal in a discrete Hoelder or Sobolev ball.

    Parameters
    ----------
    n_samples : int
        Number of values, `n`.
    radius : float >= 0
        Radius of the ball, in the units of the signal.
    ball : {"sobolev", "holder"}, default="sobolev"
        "sobolev": the squares of the changes from one value to the next add up to
        `radius` squared; "holder": no change is larger than `radius`.
    random_state : int, RandomState instance or None, default=None
        Source of the signal.

    Returns
    -------
    signal : ndarray of shape (n_samples,)
        On the sphere of the ball, of mean 0.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range, or `ball` is unknown.

    See Also
    --------
    smooth_variation : How much such signals vary at most.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.theory import make_smooth, smooth_variation
    >>> signal = make_smooth(1000, 0.1, random_state=0)
    >>> variation = np.abs(np.diff(signal)).sum()
    >>> bool(variation <= smooth_variation(1000, 0.1))
    True
    """
    order = _check_ball(n_samples, radius, ball)
    random = check_random_state(random_state)
    if n_samples == 1:
        return np.zeros(1)
    # Changes that stay alike for a while, so that the signal goes somewhere.
    knots = np.linspace(0, n_samples, 2 + int(np.sqrt(n_samples)))
    values = random.standard_normal(len(knots))
    changes = np.interp(np.arange(1, n_samples), knots, values)
    changes *= radius / np.linalg.norm(changes, order)
    signal = np.concatenate([[0.0], np.cumsum(changes)])
    return signal - signal.mean()


def smooth_variation(n_samples, radius, *, ball="sobolev"):
    """Largest total variation in a discrete Hoelder or Sobolev ball.

    Parameters
    ----------
    n_samples : int
        Number of values, `n`.
    radius : float >= 0
        Radius of the ball, in the units of the signals.
    ball : {"sobolev", "holder"}, default="sobolev"
        As for `make_smooth`.

    Returns
    -------
    tv_bound : float
        In the units of the signals.

    Raises
    ------
    ValueError
        If a number isn't finite or not in its range, or `ball` is unknown.

    Notes
    -----
    Remark 12 of [1]_: with the changes :math:`Du`,

    .. math:: \\lVert Du \\rVert_1 \\le \\sqrt{n-1} \\, \\lVert Du \\rVert_2
        \\le (n-1) \\lVert Du \\rVert_\\infty .

    The Sobolev ball of radius :math:`C/\\sqrt{n-1}` and the Hoelder ball of radius
    :math:`C/(n-1)` lie in the ball of variation C, and what is optimal there is so on
    them. Straight lines attain both.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.theory import smooth_variation
    >>> smooth_variation(101, 0.1), smooth_variation(101, 0.1, ball="holder")
    (1.0, 10.0)
    """
    order = _check_ball(n_samples, radius, ball)
    return radius * float(n_samples - 1) ** (1.0 - 1.0 / order)


def _check_ball(n_samples, radius, ball):
    """The order of the norm of the changes."""
    check_size("n_samples", n_samples)
    check_number("radius", radius, finite=True)
    orders = {"sobolev": 2.0, "holder": np.inf}
    if ball not in orders:
        raise ValueError(f'ball must be "sobolev" or "holder", got {ball!r}.')
    return orders[ball]
