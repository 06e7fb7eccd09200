"""Aggregation of experts: by age, by recent loss, by regret.

In round t = 1, 2, .. the learner predicts :math:`x_t`, sees the label :math:`y_t` and
suffers :math:`f_t(x_t)`. In follow-the-leading-history (FLH) a new expert starts in
every round; FLH weighs the living ones by exponentials of their losses and gives each
newborn a share of 1/t, so that it competes with the best expert of every interval.
Fixed share and ML-Poly weigh the members of the pool behind the default rate, which
`sktvdenoise.pool` puts together.

The functions here are short numpy references: they define what the compiled
kernels compute and are tested equal to them. Weights are kept as logarithms, so
that no loss, however large, makes them underflow to 0/0.

References
----------
.. [1] D. Baby and Y.-X. Wang, "Optimal Dynamic Regret in Exp-Concave Online
   Learning", COLT 2021.
.. [2] E. Hazan and C. Seshadhri, "Adaptive Algorithms for Online Decision
   Problems", ECCC TR07-088, 2007.
.. [3] V. Vovk, "A Game of Prediction with Expert Advice", Journal of Computer and
   System Sciences 56 (1998), 153-173.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from sktvdenoise.experts import running_mean_update

__all__ = [
    "FLHState",
    "MLPoly",
    "aflh_alive",
    "aflh_last_round",
    "fixed_share_update",
    "flh_running_mean",
    "flh_update",
    "ml_poly_update",
    "ml_poly_weights",
    "student_factor",
    "substitution",
]


def aflh_last_round(birth):
    """Last round in which an expert of pruned FLH is alive.

    Parameters
    ----------
    birth : int or ndarray of int
        Round of birth, from 1.

    Returns
    -------
    last : int or ndarray of int
        Last round, included.

    Notes
    -----
    With :math:`i = r 2^k`, r odd, expert i lives in the rounds
    :math:`i, .., i + 2^{k+2} + 1`. The largest power of two that divides i is
    ``i & -i``. The schedule is Hazan and Seshadhri's (2007).

    Examples
    --------
    >>> from sktvdenoise.aggregation import aflh_last_round
    >>> [aflh_last_round(i) for i in (1, 2, 3, 4)]
    [6, 11, 8, 21]
    """
    return birth + 4 * (birth & -birth) + 1


def aflh_alive(t):
    r"""Rounds of birth of the experts alive in round t of pruned FLH.

    Parameters
    ----------
    t : int
        Round, from 1.

    Returns
    -------
    births : ndarray of int, shape (n_alive,)
        Rounds of birth in ascending order; the last one is `t`.

    Notes
    -----
    There are :math:`O(\log t)` of them, and for every :math:`s \le t` one was
    born in :math:`[s, (s + t)/2]`.

    Examples
    --------
    >>> from sktvdenoise.aggregation import aflh_alive
    >>> aflh_alive(16)
    array([ 4,  8, 10, 11, 12, 13, 14, 15, 16])
    """
    births = np.arange(1, t + 1)
    return births[aflh_last_round(births) >= t]


def flh_update(log_weights, losses, learning_rate, t):
    r"""One round of FLH: weigh by the losses, then add the newborn.

    Parameters
    ----------
    log_weights : ndarray, shape (n_experts,)
        Logarithms of the weights in round t, up to a common constant.
    losses : ndarray, shape (n_experts,)
        Losses of the experts in round t.
    learning_rate : float
        :math:`\eta > 0`, one over the units of the losses.
    t : int
        Round, from 1.

    Returns
    -------
    log_weights : ndarray, shape (n_experts + 1,)
        Logarithms of the weights in round t + 1, which sum to one; the newborn
        comes last.

    Notes
    -----
    .. math::
        \hat v^j_{t+1} \propto v^j_t e^{-\eta f_t(x^j_t)}, \quad
        v^{t+1}_{t+1} = \frac1{t+1}, \quad
        v^j_{t+1} = \Bigl(1 - \frac1{t+1}\Bigr) \hat v^j_{t+1}.

    If the losses are :math:`\eta`-exp-concave and the learner predicts the
    weighted mean, then for every expert r alive in the rounds r to s

    .. math:: \sum_{t=r}^s f_t(x_t) - f_t(x^r_t) \le \frac{\ln s}{\eta}.

    Removing experts and dividing by the remaining sum only raises the weights of
    the others, so this holds for pruned FLH as well.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.aggregation import flh_update
    >>> np.exp(flh_update(np.zeros(1), np.array([7.0]), 0.5, t=1))
    array([0.5, 0.5])
    """
    log_weights = log_weights - learning_rate * losses
    log_weights = log_weights - np.logaddexp.reduce(log_weights)
    return np.append(log_weights + np.log1p(-1 / (t + 1)), -np.log(t + 1))


def substitution(log_weights, predictions, learning_rate, bound):
    r"""Vovk's substitution for squared loss on [-bound, bound].

    Parameters
    ----------
    log_weights : ndarray, shape (n_experts,)
        Logarithms of weights that sum to one.
    predictions : ndarray, shape (n_experts,)
        Predictions of the experts.
    learning_rate : float
        :math:`\eta`, at most :math:`1/(2 B^2)` for the guarantee below.
    bound : float
        B > 0, such that labels and predictions lie in [-B, B].

    Returns
    -------
    prediction : float
        In [-B, B].

    Notes
    -----
    With the generalised prediction
    :math:`g(y) = -\frac1\eta \ln \sum_j v^j e^{-\eta (y - x^j)^2}` the result
    is :math:`x = (g(-B) - g(B)) / (4 B)`, clipped, and

    .. math:: (y - x)^2 \le g(y) \quad \text{for every } |y| \le B.

    :math:`g` falls as :math:`\eta` grows, so that with labels weighted by
    :math:`w \le W` and updates at rate :math:`1/(2 B^2 W)` the substitution at
    :math:`1/(2 B^2)` needs no weight and still satisfies
    :math:`w (y - x)^2 \le -2 B^2 W \ln \sum_j v^j e^{-w (y - x^j)^2 / (2 B^2 W)}`.
    See Vovk (1998).

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.aggregation import substitution
    >>> x = substitution(np.log([0.5, 0.5]), np.array([-1.0, 1.0]), 0.5, bound=1.0)
    >>> abs(x) < 1e-15
    True
    """

    def generalised_prediction(y):
        exponents = log_weights - learning_rate * (y - predictions) ** 2
        return -logsumexp(exponents) / learning_rate

    x = generalised_prediction(-bound) - generalised_prediction(bound)
    return float(np.clip(x / (4 * bound), -bound, bound))


class FLHState(NamedTuple):
    """What FLH over running means knows after the last label.

    Attributes
    ----------
    births : ndarray of int, shape (n_alive,)
        Zero-based index of the first label each living expert sees, ascending;
        the last one is the newborn, which waits for the next label.
    weights : ndarray, shape (n_alive,)
        Weights for the next round; they sum to one.
    means : ndarray, shape (n_alive,)
        Predictions of the experts for the next round.
    forecast : float
        Prediction for the next round.
    bound : float
        B in force, the given or the learnt one.
    """

    births: np.ndarray
    weights: np.ndarray
    means: np.ndarray
    forecast: float
    bound: float


def flh_running_mean(
    y,
    *,
    learning_rate,
    pruning="aflh",
    bound=None,
    sample_weight=None,
    return_state=False,
):
    r"""FLH over running means: the denoiser of Theorem 1, in plain numpy.

    Parameters
    ----------
    y : array-like, shape (n_samples,)
        Labels. A NaN is passed over: predicted, not learned from.
    learning_rate : {"theory", "mixable"} or float
        :math:`\eta`. "theory" is :math:`1/(8 B^2 W)` with the weighted mean,
        "mixable" is :math:`1/(2 B^2 W)` with Vovk's substitution; a number is
        used as it stands, with the weighted mean.
    pruning : {"aflh", None}, default="aflh"
        "aflh" keeps :math:`O(\log t)` experts in round t, None keeps all t.
    bound : float, default=None
        B, with :math:`|y_t| \le B`, in the units of `y`. None: learnt.
    sample_weight : array-like, shape (n_samples,), default=None
        Weights :math:`w_t \ge 0` of the losses; a row of weight zero is passed
        over. None means ones.
    return_state : bool, default=False
        Whether to return the state after the last label too.

    Returns
    -------
    predictions : ndarray, shape (n_samples,)
        The prediction of each round, made before its label was seen.
    state : FLHState
        Only if `return_state`.

    Notes
    -----
    The loss is :math:`f_t(x) = w_t (y_t - x)^2`. The prediction of the first
    round is 0 and a newborn predicts the last label.

    Named rates need B and the largest weight W. W starts at 1, and B, unless it
    is given, at :math:`|y_1|`. A label that exceeds one of them raises it, to the
    double or to the label if that is more, and FLH starts again with this label
    as its first. Hence :math:`B_n \le 2 \max_t |y_t|`, and there are at most
    logarithmically many restarts in the range of the labels.

    The cost is O(n log n) with pruning and O(n^2) without.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang, "Optimal Dynamic Regret in Exp-Concave Online
       Learning", COLT 2021, Theorem 1.

    Examples
    --------
    >>> from sktvdenoise.aggregation import flh_running_mean
    >>> flh_running_mean([4.0, 4.0, 1.0], learning_rate="theory", bound=4.0)
    array([0., 4., 4.])
    """
    y = np.asarray(y, dtype=float)
    weight = np.ones_like(y) if sample_weight is None else np.asarray(sample_weight)
    named = isinstance(learning_rate, str)
    rate = {"theory": 1 / 8, "mixable": 1 / 2}.get(learning_rate, learning_rate)
    given = bound is not None
    scale = float(bound) if given else 0.0  # B
    largest_weight = 1.0  # W

    def first_expert():
        """Births (rounds), log-weights, means, masses and rows of round 1."""
        return np.array([1]), np.zeros(1), np.zeros(1), np.zeros(1), []

    births, log_weights, means, masses, rows = first_expert()
    forecast = 0.0
    predictions = np.empty_like(y)
    for row in range(len(y)):
        predictions[row] = forecast
        if np.isnan(y[row]) or weight[row] == 0:
            continue
        outgrown = abs(y[row]) > scale and not given
        overweight = weight[row] > largest_weight
        if outgrown:
            scale = max(2 * scale, abs(y[row]))
        if overweight:
            largest_weight = max(2 * largest_weight, weight[row])
        if named and (outgrown or overweight):
            births, log_weights, means, masses, rows = first_expert()

        rows.append(row)
        t = len(rows)  # this round; round t of this start saw label rows[t - 1]
        if named:  # losses in units of B^2 W; all are zero while B is
            errors = (y[row] - means) / (scale or 1.0)
            losses = weight[row] / largest_weight * errors**2
        else:
            losses = weight[row] * (y[row] - means) ** 2
        log_weights = flh_update(log_weights, losses, rate, t)
        means, masses = running_mean_update(means, masses, y[row], weight[row])
        births = np.append(births, t + 1)
        means, masses = np.append(means, y[row]), np.append(masses, 0.0)
        if pruning == "aflh":
            alive = aflh_last_round(births) > t
            births, means, masses = births[alive], means[alive], masses[alive]
            log_weights = log_weights[alive] - logsumexp(log_weights[alive])

        if learning_rate == "mixable" and scale > 0:
            forecast = scale * substitution(log_weights, means / scale, 1 / 2, 1.0)
        else:
            forecast = float(np.exp(log_weights) @ means)

    if not return_state:
        return predictions
    first_seen = np.array([*rows, len(y)])[births - 1]
    state = FLHState(first_seen, np.exp(log_weights), means, forecast, scale)
    return predictions, state


def student_factor(errors, variance):
    r"""Factor of a weight by an error: a density with Student's tails.

    Parameters
    ----------
    errors : ndarray
    variance : float
        :math:`s > 0`, of the noise.

    Returns
    -------
    factor : ndarray
        :math:`(1 + e^2 / (1.5 s))^{-2}`: up to a constant Student's density with 3
        degrees of freedom and scale :math:`\sqrt{s / 2}`.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.aggregation import student_factor
    >>> student_factor(np.array([0.0, 3.0]), 2.0)
    array([1.    , 0.0625])
    """
    return (1 + errors**2 / (1.5 * variance)) ** -2.0


def fixed_share_update(weights, factors, share):
    r"""Fixed share: weigh, then move towards equal weights.

    Parameters
    ----------
    weights : ndarray of shape (n_experts,)
        Their sum is 1.
    factors : ndarray of shape (n_experts,)
        What the round's losses multiply the weights with.
    share : float
        :math:`\alpha \in [0, 1]`.

    Returns
    -------
    weights : ndarray of shape (n_experts,)
        :math:`(1 - \alpha) \hat v_j + \alpha / K` with
        :math:`\hat v_j \propto v_j f_j`; equal weights if all products are 0.

    References
    ----------
    .. [1] M. Herbster and M. K. Warmuth, "Tracking the best expert", Machine
       Learning 32 (1998).

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.aggregation import fixed_share_update
    >>> fixed_share_update(np.array([0.5, 0.5]), np.array([1.0, 0.25]), 0.1)
    array([0.77, 0.23])
    """
    products = weights * factors
    total, n = products.sum(), len(weights)
    if not total > 0:
        return np.full(n, 1 / n)
    return (1 - share) / total * products + share / n


class MLPoly(NamedTuple):
    """What ML-Poly knows of its experts.

    Attributes
    ----------
    regret, variance : ndarray of shape (n_experts,)
    largest : float
        Largest square of a round's regret.
    """

    regret: np.ndarray
    variance: np.ndarray
    largest: float


def ml_poly_update(
    state, prediction, predictions, y, weight=1.0, noise=None, rounding=0.0
):
    r"""ML-Poly, with regrets drawn in: one label.

    Parameters
    ----------
    state : MLPoly
    prediction : float
        :math:`x`, of the learner.
    predictions : ndarray of shape (n_experts,)
        :math:`p_j`.
    y : float
        Label.
    weight : float, default=1.0
        :math:`w`.
    noise : float or None, default=None
        :math:`s`, variance of the noise, if anything is known of it.
    rounding : float, default=0.0
        Differences of predictions that are not above it count as 0.

    Returns
    -------
    state : MLPoly

    Notes
    -----
    The gradient of the loss :math:`w (x - y)^2` gives the regrets
    :math:`r_j = 2 w (x - y)(x - p_j)`, and

    .. math:: R_j \mathrel{+}= r_j, \quad V_j \mathrel{+}= r_j^2 + (M' - M),

    where `M` is the largest :math:`\max_j r_j^2` so far, before and after [1]_.
    Here :math:`x - y` is drawn in to 5, and :math:`x - p_j` to 10, standard
    deviations of the noise, so that one round can't outweigh hundreds. So that
    members that are far off don't stay unpunished for it, :math:`0.02 w ((x -
    p_j)^2 - 100 s)_+` is taken off the regrets.

    References
    ----------
    .. [1] P. Gaillard, G. Stoltz and T. van Erven, "A Second-order Bound with Excess
       Losses", COLT 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.aggregation import MLPoly, ml_poly_update
    >>> state = MLPoly(np.zeros(2), np.zeros(2), 0.0)
    >>> state = ml_poly_update(state, 1.0, np.array([0.0, 2.0]), 0.0)
    >>> state.regret
    array([ 2., -2.])
    """
    error, gaps = prediction - y, prediction - predictions
    reach, free = 1e60, np.inf
    if noise is not None:
        reach, free = 10 * np.sqrt(noise), 100 * noise
        error = np.clip(error, -reach / 2, reach / 2)
    drawn_in = np.where(np.abs(gaps) > rounding, np.clip(gaps, -reach, reach), 0)
    regrets = 2 * weight * error * drawn_in
    largest = max((regrets**2).max(), state.largest)
    regrets = regrets - 0.02 * weight * np.maximum(gaps**2 - free, 0)
    variance = state.variance + regrets**2 + (largest - state.largest)
    return MLPoly(state.regret + regrets, variance, float(largest))


def ml_poly_weights(state, favoured=()):
    r"""Weights of ML-Poly's experts in the next round.

    Parameters
    ----------
    state : MLPoly
    favoured : sequence of int, default=()
        Experts with a standard deviation of their regret on top, to be believed
        in until regrets tell more.

    Returns
    -------
    weights : ndarray of shape (n_experts,)
        :math:`\propto (R_j)_+ / V_j`, with the sum 1; all 0 where none is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.aggregation import MLPoly, ml_poly_weights
    >>> ml_poly_weights(MLPoly(np.array([1.0, -2.0, 3.0]), np.ones(3), 1.0))
    array([0.25, 0.  , 0.75])
    """
    regret = state.regret.copy()
    regret[list(favoured)] += np.sqrt(state.variance[list(favoured)])
    known = state.variance > 0
    weights = np.divide(
        np.maximum(regret, 0), state.variance, out=np.zeros_like(regret), where=known
    )
    return weights / (weights.sum() or 1.0)
