r"""Experts with coefficients, and follow-the-leading-history over them, in plain numpy.

These steps define what the compiled kernel computes, and are tested equal to it; with
losses of one's own they are what runs. A row `x` of `p` numbers (the last is 1 where
there is an intercept) gives the prediction :math:`z = x^\top \theta` of an expert.

- "ridge": :math:`\theta = \theta_0 + (\lambda I + \sum w x x^\top)^{-1} \sum w (y -
  x^\top \theta_0) x`, the leader for squared loss since the expert's birth, penalised
  by its distance from :math:`\theta_0 = (0, \dots, 0, o)`. The origin `o` of the
  intercept is the label before the birth; of the first expert its first label. Without
  an intercept :math:`\theta_0 = 0`;
- "vaw": the same with the present row counted in, its label taken for
  :math:`x^\top \theta_0` (Vovk, Azoury and Warmuth);
- "ons": the online Newton step;
- "ogd": online gradient descent with step :math:`1 / (H k)` in the `k`-th row.
"""

from typing import NamedTuple

import numpy as np

from sktvdenoise.aggregation import aflh_last_round, flh_update
from sktvdenoise.losses import LOSSES, Loss

__all__ = [
    "FLHSettings",
    "LinearFLH",
    "flh_linear_coefficients",
    "flh_linear_predict",
    "flh_linear_start",
    "flh_linear_update",
    "newton_step",
    "project_box",
]


def project_box(inverse, point, box):
    r"""Nearest point of :math:`[-h, h]^p` in the norm of a matrix.

    Parameters
    ----------
    inverse : ndarray of shape (p, p)
        :math:`P = A^{-1}`, symmetric and positive definite.
    point : ndarray of shape (p,)
        `c`.
    box : float
        `h`.

    Returns
    -------
    x : ndarray of shape (p,)
        The minimiser of :math:`(x - c)^\top A (x - c)`, exact up to rounding.

    Notes
    -----
    With multipliers `m` of the bounds :math:`x = c - P m`, where :math:`m_i = 0`, or
    :math:`x_i = \pm h` and :math:`m_i` has its sign. Block principal pivoting [1]_:
    guess which coordinates `N` are at a bound, solve :math:`P_{NN} m_N = c_N - x_N`,
    exchange all that are infeasible. When their number has not become less for ten
    steps, only the last one is exchanged until it has, which is known to end.

    References
    ----------
    .. [1] L. F. Portugal, J. J. Judice and L. N. Vicente, "A comparison of block
       pivoting and interior-point algorithms for linear least squares problems with
       nonnegative variables", Mathematics of Computation 63 (1994).

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.linear_experts import project_box
    >>> project_box(np.array([[1.0, -0.5], [-0.5, 1.0]]), np.array([2.0, 0.0]), 1.0)
    array([1. , 0.5])
    """
    p = len(point)
    side = np.sign(point) * (np.abs(point) > box)
    fewest, tries = p + 1, 10
    for _ in range(100 + 20 * p):
        bound = np.flatnonzero(side)
        multipliers = np.linalg.solve(
            inverse[np.ix_(bound, bound)], point[bound] - box * side[bound]
        )
        x = point - inverse[:, bound] @ multipliers
        x[bound] = box * side[bound]
        other = np.sign(x) * (np.abs(x) > box * (1 + 1e-13))
        other[bound] = np.where(side[bound] * multipliers >= 0, side[bound], 0)
        infeasible = np.flatnonzero(other != side)
        if len(infeasible) == 0:
            break
        tries -= 1
        if len(infeasible) < fewest:
            fewest, tries = len(infeasible), 10
        exchanged = infeasible if tries > 0 else infeasible[-1:]
        side[exchanged] = other[exchanged]
    return np.clip(x, -box, box)


def newton_step(root, theta, gradient, newton, box=np.inf):
    r"""Online Newton step of one expert, or of several.

    Parameters
    ----------
    root : ndarray of shape (..., p, p)
        `S` with :math:`S S^\top = A^{-1}`, at first :math:`\varepsilon^{-1/2} I`.
    theta : ndarray of shape (..., p)
    gradient : ndarray of shape (..., p)
        `g`, of the loss at `theta`.
    newton : float
        :math:`\beta`.
    box : float, default=inf
        Largest coefficient.

    Returns
    -------
    root : ndarray of shape (..., p, p)
        Of :math:`A + g g^\top`, by Potter's formula: no digits of `A` are lost.
    theta : ndarray of shape (..., p)
        :math:`\theta - A^{-1} g / \beta` with the new `A`, projected onto the box in
        the norm of `A`.

    References
    ----------
    .. [1] E. Hazan, A. Agarwal and S. Kale, "Logarithmic regret algorithms for online
       convex optimization", Machine Learning 69 (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.linear_experts import newton_step
    >>> _, theta = newton_step(np.eye(1), np.zeros(1), np.array([1.0]), newton=0.5)
    >>> theta
    array([-1.])
    """
    f = np.einsum("...ji,...j->...i", root, gradient)
    share = 1 / (1 + np.sum(f**2, axis=-1, keepdims=True))
    direction = np.einsum("...ij,...j->...i", root, f) * share
    pull = f / (1 + np.sqrt(share))
    root = root - direction[..., :, None] * pull[..., None, :]
    theta = theta - direction / newton
    for k in map(tuple, np.argwhere(np.abs(theta).max(axis=-1) > box)):
        theta[k] = project_box(root[k] @ root[k].T, theta[k], box)
    return root, theta


class FLHSettings(NamedTuple):
    """What follow-the-leading-history over experts with coefficients is run with.

    Attributes
    ----------
    base : {"vaw", "ridge", "ons", "ogd"}
    loss : Loss
        Counted ``loss.scale`` times. "vaw" and "ridge" take squared loss only.
    intercept : bool
        Whether the last entry of each row is a 1.
    pruned : bool
        Whether experts die as `aflh_last_round` says.
    rate : float
        Of the weights, for losses of rows of weight `weight_unit`.
    weight_unit : float
        Weights are divided by it.
    from_label : bool
        Whether the first expert's intercept starts at ``loss.start`` of the first
        label, once its row has been predicted, and those of newborns of "ons" and "ogd"
        so that they would have predicted that of the last label. Only with an
        intercept.
    prior : float
        Variance of a newborn's coefficients: one over the ridge, or over epsilon.
    newton : float
        `beta` of "ons".
    convexity : float
        `H` of "ogd".
    box : float
        Largest coefficient of "ons" and "ogd".
    low, high : float
        Predictions of experts are drawn in to this range.
    """

    base: str
    loss: Loss = LOSSES["squared"]
    intercept: bool = False
    pruned: bool = True
    rate: float = 1.0
    weight_unit: float = 1.0
    from_label: bool = False
    prior: float = 1.0
    newton: float = 1.0
    convexity: float = 1.0
    box: float = np.inf
    low: float = -np.inf
    high: float = np.inf


class LinearFLH(NamedTuple):
    """What is known before a row; experts in order of birth, the newborn last.

    Attributes
    ----------
    births : ndarray of int, shape (n_experts,)
        Rounds of birth, from 1.
    log_weights : ndarray of shape (n_experts,)
        Those of weights whose sum is 1.
    masses : ndarray of shape (n_experts,)
        Sums of weights since birth.
    thetas : ndarray of shape (n_experts, p)
        Coefficients.
    matrices : ndarray of shape (n_experts, p, p)
        Those of "vaw" and "ridge"; roots of their inverses, of "ons".
    moments : ndarray of shape (n_experts, p)
        Sums of labels less origins times rows, of "vaw" and "ridge".
    origins : ndarray of shape (n_experts,)
        Prior means of the intercepts, of "vaw" and "ridge".
    rows : ndarray of int, shape (n_experts,)
        Row of the stream, from 0, that is the first each expert sees.
    guess : float
        What a newborn of "vaw" and "ridge" predicts.
    """

    births: np.ndarray
    log_weights: np.ndarray
    masses: np.ndarray
    thetas: np.ndarray
    matrices: np.ndarray
    moments: np.ndarray
    origins: np.ndarray
    rows: np.ndarray
    guess: float = 0.0

    @property
    def round(self):
        """Number of the next round, from 1: that of the newborn's birth."""
        return int(self.births[-1])


def _is_least_squares(settings):
    return settings.base in ("vaw", "ridge")


def _newborn(settings, birth, theta, guess, row):
    origin = guess if settings.intercept and _is_least_squares(settings) else 0.0
    start = np.clip(theta, -settings.box, settings.box)
    if _is_least_squares(settings):
        start = _from_origin(settings, np.zeros_like(theta), origin)
    root = settings.base == "ons"
    matrix = np.eye(len(theta)) * settings.prior ** (0.5 if root else -1)
    fields = (birth, 0.0, 0.0, start, matrix, np.zeros_like(start), origin, row)
    return [np.array([field]) for field in fields]


def _from_origin(settings, thetas, origins):
    """Coefficients, where the intercepts are counted from their origins."""
    if settings.intercept:
        thetas[..., -1] += origins
    return thetas


def _start_from_label(settings, state, y):
    """The only expert, which has predicted, as if it had started from its label."""
    origin = np.clip(settings.loss.start(y), -settings.box, settings.box)
    thetas = state.thetas.copy()
    thetas[:, -1] = origin
    return state._replace(thetas=thetas, origins=np.full(1, origin)), np.full(1, origin)


def flh_linear_start(settings, theta, guess=0.0, row=0):
    """One expert, in round 1.

    Parameters
    ----------
    settings : FLHSettings
    theta : ndarray of shape (p,)
        Where "ons" and "ogd" start: zeros, or the mixture's coefficients at a restart.
    guess : float, default=0.0
        What "vaw" and "ridge" predict first.
    row : int, default=0
        The next row of the stream.

    Returns
    -------
    state : LinearFLH
    """
    return LinearFLH(*_newborn(settings, 1, theta, guess, row), guess)


def _predictions(settings, state, x):
    """Of the experts for a row."""
    z = state.thetas @ x
    if settings.base == "vaw":
        leverages = np.linalg.solve(state.matrices, x[None, :, None])[..., 0] @ x
        z = state.origins + (z - state.origins) / (1 + leverages)
    if _is_least_squares(settings):
        z[-1] = state.guess
    return np.clip(z, settings.low, settings.high)


def flh_linear_predict(settings, state, x):
    """The mixture's prediction for a row of shape (p,)."""
    return float(np.exp(state.log_weights) @ _predictions(settings, state, x))


def flh_linear_coefficients(settings, state):
    """Coefficients of the mixture, shape (p,)."""
    return np.exp(state.log_weights) @ state.thetas


def flh_linear_update(settings, state, x, y, weight=1.0, row=None):
    r"""One row.

    Parameters
    ----------
    settings : FLHSettings
    state : LinearFLH
    x : ndarray of shape (p,)
    y : float
    weight : float, default=1.0
        Positive.
    row : int, default=None
        Row of the stream that this is; by default that for which the newborn waited.

    Returns
    -------
    prediction : float
        Made before `y` is seen: the weighted mean of the experts'.
    state : LinearFLH

    Notes
    -----
    With the loss :math:`f(z) = w f_y(z)` the weights are those of `flh_update`, so that
    the loss exceeds that of every expert alive from round r to s by at most
    :math:`\ln(s) / \eta` if f is :math:`\eta`-exp-concave on the predictions.

    The intercept of a newborn of "vaw" and "ridge" starts at the last label, its other
    coefficients at 0: that is what it predicts first, and what its penalty draws to
    when it knows the rows since its birth. A newborn of "ons" and "ogd" starts from the
    mixture's coefficients, its intercept moved as `FLHSettings.from_label` says.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.linear_experts import (
    ...     FLHSettings, flh_linear_start, flh_linear_update)
    >>> settings = FLHSettings("ridge", prior=1e9)
    >>> state = flh_linear_start(settings, np.zeros(1))
    >>> _, state = flh_linear_update(settings, state, np.array([2.0]), 6.0)
    >>> state.thetas.round(6)
    array([[3.],
           [0.]])
    """
    weight = weight / settings.weight_unit
    z = _predictions(settings, state, x)
    prediction = float(np.exp(state.log_weights) @ z)
    loss, scale, t = settings.loss, settings.loss.scale, state.round
    if t == 1 and settings.from_label:
        state, z = _start_from_label(settings, state, y)
    losses = np.minimum(weight * scale * loss.value(y, z), 1e300)
    if losses.shape != z.shape or np.isnan(losses).any():
        raise ValueError(
            f"The loss {type(loss).__name__} must be numbers of the shape of the "
            f"predictions, {z.shape}, got {losses} for the label {y:g}."
        )
    log_weights = flh_update(state.log_weights, losses, settings.rate, t)
    masses, thetas = state.masses + weight, state.thetas
    matrices, moments = state.matrices, state.moments
    if _is_least_squares(settings):
        matrices = matrices + weight * np.outer(x, x)
        moments = moments + weight * np.outer(y - state.origins, x)
        thetas = np.linalg.solve(matrices, moments[..., None])[..., 0]
        thetas = _from_origin(settings, thetas, state.origins)
    else:
        slopes = weight * scale * loss.derivative(y, z)
        if settings.base == "ogd":
            steps = slopes / (settings.convexity * masses)
            thetas = thetas - steps[:, None] * x
            thetas = np.clip(thetas, -settings.box, settings.box)
        else:
            gradients = slopes[:, None] * x
            matrices, thetas = newton_step(
                matrices, thetas, gradients, settings.newton, settings.box
            )
    shares = np.exp(log_weights[:-1] - np.logaddexp.reduce(log_weights[:-1]))
    row = state.rows[-1] if row is None else row
    rows = np.append(state.rows[:-1], row)
    experts = [state.births, log_weights[:-1], masses, thetas, matrices, moments]
    experts += [state.origins, rows]
    if settings.pruned:
        alive = aflh_last_round(state.births) > t
        experts = [array[alive] for array in experts]
    guess = float(y) if settings.intercept else 0.0
    theta = shares @ thetas
    if settings.from_label:
        theta[-1] += loss.start(y) - x @ theta
    newborn = _newborn(settings, t + 1, theta, guess, row + 1)
    newborn[1] = log_weights[-1:]
    joined = [np.concatenate(pair) for pair in zip(experts, newborn)]
    joined[1] -= np.logaddexp.reduce(joined[1])
    return prediction, LinearFLH(*joined, guess)
