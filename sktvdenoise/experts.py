"""Forecasters of the next label, one plain numpy step each.

These steps are the definition of what the compiled kernels do, written to be read:
the running means of follow-the-leading-history, and the members of the pool behind
the default rate, whose table is at the end. All are functions of a state, a label
and its weight; weight 1 is the plain case.
"""

from typing import NamedTuple

import numpy as np

from sktvdenoise._pool import Kind

__all__ = [
    "POOL",
    "Mixture",
    "find_period",
    "holt_update",
    "kalman_gain",
    "mixture_start",
    "mixture_update",
    "profile_start",
    "profile_update",
    "ridge_forecast",
    "ridge_update",
    "running_mean_update",
]


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


def kalman_gain(gain, weight, mass):
    r"""Gain of an exponentially weighted mean for a label of given weight.

    Parameters
    ----------
    gain : float
        :math:`a \in [0, 1]`, the gain for weight 1; 0 is the running mean.
    weight : float
        :math:`w`, weight of the label.
    mass : float
        :math:`W`, sum of the weights, `weight` included.

    Returns
    -------
    gain : float
        :math:`\max(w a / (1 - a + w a), w / W)`.

    Notes
    -----
    The steady state of a Kalman filter with variance of the noise 1 has a level of
    variance :math:`p = a / (1 - a)` before a label; one with variance :math:`1/w`
    is met by the gain :math:`p / (p + 1/w)`, which is the first term. The second
    makes it a running mean until enough labels are there.

    Examples
    --------
    >>> from sktvdenoise.experts import kalman_gain
    >>> kalman_gain(0.25, 1.0, 2.0), kalman_gain(0.25, 1.0, 9.0)
    (0.5, 0.25)
    """
    return max(weight * gain / (1 - gain + weight * gain), weight / mass)


def holt_update(level, slope, y, gain, slope_gain):
    r"""Holt's linear trend: one label.

    Parameters
    ----------
    level, slope : float
        Before the label; its prediction is their sum.
    y : float
        New label.
    gain, slope_gain : float
        Gains of the level and of the slope.

    Returns
    -------
    level, slope : float
        :math:`m + b + g e` and :math:`b + h e` with the error
        :math:`e = y - m - b`.

    References
    ----------
    .. [1] C. C. Holt, "Forecasting seasonals and trends by exponentially weighted
       moving averages", ONR Memorandum 52 (1957).

    Examples
    --------
    >>> from sktvdenoise.experts import holt_update
    >>> holt_update(1.0, 1.0, 4.0, 0.5, 0.25)
    (3.0, 1.5)
    """
    error = y - level - slope
    return level + slope + gain * error, slope + slope_gain * error


def ridge_update(gram, moment, x, residual, weight=1.0, forgetting=1.0):
    r"""Ridge regression with forgetting: one row.

    Parameters
    ----------
    gram : ndarray of shape (n_features, n_features)
        :math:`G = \sum w x x^\top`.
    moment : ndarray of shape (n_features,)
        :math:`v = \sum w r x`.
    x : ndarray of shape (n_features,)
        Features of the row.
    residual : float
        :math:`r`, the label above what it is explained from.
    weight, forgetting : float, default=1.0
        Weight of the row, and what earlier rows are multiplied with.

    Returns
    -------
    gram, moment : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.experts import ridge_update
    >>> ridge_update(np.eye(1), np.ones(1), np.array([2.0]), 3.0, forgetting=0.5)
    (array([[4.5]]), array([6.5]))
    """
    gram = forgetting * gram + weight * np.outer(x, x)
    return gram, forgetting * moment + weight * residual * x


def ridge_forecast(gram, moment, x, penalty, present=0.0):
    r"""Prediction of ridge regression, or of Vovk, Azoury and Warmuth.

    Parameters
    ----------
    gram, moment : ndarray
        As of `ridge_update`.
    x : ndarray of shape (n_features,)
        Features of the next row.
    penalty : float
        :math:`\lambda > 0`.
    present : float, default=0.0
        1 for the forecaster of Vovk, Azoury and Warmuth, which counts the next row
        in, with label 0: its regret against every :math:`\theta` is at most
        :math:`\lambda |\theta|^2 + Y^2 d \ln(1 + n R^2 / (\lambda d))` for labels
        within `Y` and :math:`|x| \le R`, with no bound known beforehand.

    Returns
    -------
    prediction : float
        :math:`x^\top (G + \text{present} \cdot x x^\top + \lambda I)^{-1} v`.

    Notes
    -----
    By elimination, where no pivot is let fall below :math:`10^{-12}` of its
    diagonal entry: where the features depend on each other, rounding must not make
    it negative.

    References
    ----------
    .. [1] V. Vovk, "Competitive on-line statistics", International Statistical
       Review 69 (2001).
    .. [2] K. S. Azoury and M. K. Warmuth, "Relative loss bounds for on-line density
       estimation with the exponential family", Machine Learning 43 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.experts import ridge_forecast
    >>> ridge_forecast(np.eye(2), np.ones(2), np.array([1.0, 3.0]), penalty=1.0)
    2.0
    """
    d = len(x)
    a = np.column_stack([gram, x, moment])
    a[:, :d] += present * np.outer(x, x) + penalty * np.eye(d)
    least = 1e-12 * a.diagonal()
    prediction = 0.0
    for j in range(d):
        row, pivot = a[j, j + 1 :], max(a[j, j], least[j])
        prediction += a[j, d] * a[j, d + 1] / pivot
        a[j + 1 :, j + 1 :] -= np.outer(row[: d - 1 - j] / pivot, row)
    return float(prediction)


class Mixture(NamedTuple):
    """Experts that differ in when the level changed last; the youngest is last.

    Attributes
    ----------
    births : ndarray of shape (n_experts,)
        Row whose label is the first that each sees.
    levels, slopes : ndarray of shape (n_experts,)
        The next label's forecast, and its change from row to row.
    variances, covariances, slope_variances : ndarray of shape (n_experts,)
        Of level and slope, in units of the variance of the noise.
    weights : ndarray of shape (n_hazards, n_experts)
        Probabilities of the births; each row sums to 1.
    """

    births: np.ndarray
    levels: np.ndarray
    slopes: np.ndarray
    variances: np.ndarray
    covariances: np.ndarray
    slope_variances: np.ndarray
    weights: np.ndarray


# A newborn, beside its birth and level: slope, variances and covariance.
_NEWBORN = (0.0, 25.0, 0.0, 0.1)


def mixture_start(row, y, weight, hazards, *, trends=False):
    """A mixture that knows one label. Parameters are those of `mixture_update`."""
    fields = (np.array([float(value)]) for value in (row, y, *_NEWBORN))
    first = Mixture(*fields, np.ones((len(hazards), 1)))
    return mixture_update(
        first, row, y, weight, 1.0, hazards, trends=trends, weigh=False
    )


def mixture_update(
    state, row, y, weight, noise, hazards, *, trends=False, heavy=False, weigh=True,
    n_kept=8,
):  # fmt: skip
    r"""Bayesian online change-point detection: one label.

    Parameters
    ----------
    state : Mixture
    row : int
        The label's row; the newborn starts in the one after it.
    y : float
        New label.
    weight : float
        Its weight `w`: the noise of the label has variance :math:`s / w`.
    noise : float
        :math:`s`, variance of the noise of a label of weight 1.
    hazards : sequence of float
        Probabilities of a change before each label; each weighs the same experts.
    trends : bool, default=False
        Whether experts are lines, rather than levels.
    heavy : bool, default=False
        Whether densities have Student's tails, and a label far from a forecast
        moves it less.
    weigh : bool, default=True
        Whether weights are updated, or experts learn only.
    n_kept : int or None, default=8
        Number of experts that outlive the round; None keeps all.

    Returns
    -------
    state : Mixture
        Its forecasts are ``state.weights @ state.levels``, one for each hazard.

    Notes
    -----
    An expert is a Kalman filter for a level, or a line, that has stood since its
    birth. With :math:`e = y - m` and :math:`d = 1/w + P_{11}` the weights are
    multiplied by the predictive density, up to a common factor

    .. math::

        d^{-1/2} e^{-e^2 / (2 s d)}, \qquad \text{or} \qquad
        d^{-1/2} \bigl(1 + e^2 / (2 s d)\bigr)^{-2},

    which is Student's with 3 degrees of freedom. Then
    :math:`(m, b) \mathrel{+}= P_{\cdot 1} e / d`,
    :math:`P \mathrel{-}= P_{\cdot 1} P_{\cdot 1}^\top / d`, and a line moves on by
    its slope. With heavy tails :math:`1/w` is first multiplied by
    :math:`(3 + e^2 / (s d)) / 4`, as by one step of expectation and maximisation
    for these tails. The newborn, which has predicted the last label, takes the label
    for its level. A change before the next label has probability `h`: the next
    newborn's weight is `h`, all others are multiplied by :math:`1 - h`. So the
    weights are the posterior of run lengths [1]_.

    Where there are more than `n_kept`, the expert whose largest weight is the
    smallest is dropped before the birth, but none of the youngest three.

    References
    ----------
    .. [1] R. P. Adams and D. J. C. MacKay, "Bayesian Online Changepoint Detection",
       2007.
    .. [2] P. Fearnhead and Z. Liu, "On-line inference for multiple changepoint
       problems", Journal of the Royal Statistical Society B 69 (2007).

    Examples
    --------
    >>> from sktvdenoise.experts import mixture_start, mixture_update
    >>> mixture = mixture_start(0, 1.0, 1.0, [0.01])
    >>> for row in (1, 2):
    ...     mixture = mixture_update(mixture, row, 9.0, 1.0, 1.0, [0.01])
    >>> mixture.births, (mixture.weights @ mixture.levels).round(2)
    (array([0., 1., 2., 3.]), array([9.]))
    """
    births, m, b, p11, p12, p22, weights = state
    error, d = y - m, 1 / weight + p11
    if weigh:
        exponents = -np.minimum(error**2 / (2 * noise * d), 1e300)
        density = (
            (1 - exponents) ** -2.0 if heavy else np.exp(exponents - exponents.max())
        )
        weights = np.maximum(weights * density / np.sqrt(d), 1e-60)
        weights = weights / weights.sum(axis=1, keepdims=True)

    label_noise = np.full_like(m, 1 / weight)
    if heavy and weigh:
        label_noise *= (3 + error**2 / (noise * d)) / 4
    gain, slope_gain = p11 / (label_noise + p11), p12 / (label_noise + p11)
    m, b = m + gain * error, b + slope_gain * error
    p11, p12, p22 = p11 - gain * p11, p12 - gain * p12, p22 - slope_gain * p12
    m[-1], p11[-1] = y, 1 / weight
    if trends:
        m, p11, p12 = m + b, p11 + 2 * p12 + p22, p12 + p22

    experts = np.array([births, m, b, p11, p12, p22])
    if n_kept is not None and experts.shape[1] > n_kept:
        worst = np.argmin(weights.max(axis=0)[:-3])
        experts = np.delete(experts, worst, axis=1)
        weights = np.delete(weights, worst, axis=1)
        weights = weights / weights.sum(axis=1, keepdims=True)
    experts = np.column_stack([experts, [row + 1.0, y, *_NEWBORN]])
    hazards = np.reshape(hazards, (-1, 1))
    return Mixture(*experts, np.hstack([(1 - hazards) * weights, hazards]))


def find_period(differences, longest=400):
    r"""Lag at which differences of labels repeat, or 0.

    Parameters
    ----------
    differences : array-like of shape (n,)
        Differences of successive labels, drawn in where they are large.
    longest : int, default=400
        Lags below ``min(longest - 1, n // 2)`` are tried, from 2.

    Returns
    -------
    period : int

    Notes
    -----
    Of the lags at which the autocovariances have a local maximum it is the one with
    the largest autocorrelation less three standard errors

    .. math::

        \frac{n}{n - k} \frac{\sum_t d_t d_{t-k}}{\sum_t d_t^2}
        - \frac{3}{\sqrt{n - k}},

    if that is positive. A longer lag must do a tenth better than a shorter one, so
    that multiples of the period are no rivals.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.experts import find_period
    >>> find_period(np.diff(np.tile([0.0, 1.0, 5.0, 2.0, 2.0, 2.0, 0.5], 9)))
    7
    """
    differences = np.asarray(differences, dtype=float)
    n = len(differences)
    power = differences @ differences
    if power <= 0:
        return 0
    end = min(longest - 1, n // 2)
    products = [differences[k:] @ differences[: n - k] for k in range(end + 1)]
    period, best = 0, 0.0
    for k in range(2, end):
        if products[k] > products[k - 1] and products[k] >= products[k + 1]:
            rho = products[k] / power * n / (n - k) - 3 / np.sqrt(n - k)
            if rho > 1.1 * best:
                period, best = k, rho
    return period


def profile_start(labels, phase):
    """Level and seasonal deviations of the last period.

    Parameters
    ----------
    labels : ndarray of shape (period,)
        Labels of the last period, the newest last.
    phase : int
        Phase of the newest, below the period.

    Returns
    -------
    level : float
    deviations : ndarray of shape (period,)
        By phase.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.experts import profile_start
    >>> profile_start(np.array([1.0, 2.0, 6.0]), phase=0)
    (3.0, array([ 3., -2., -1.]))
    """
    level = labels.mean()
    return float(level), np.roll(labels - level, phase + 1)


def profile_update(level, deviations, phase, y, gain, seasonal_gain):
    r"""Level and season without a trend, as of Holt and Winters: one label.

    Parameters
    ----------
    level : float
    deviations : ndarray of shape (period,)
        From the level, by phase.
    phase : int
        Phase of the label.
    y : float
        New label.
    gain, seasonal_gain : float
        :math:`a` and :math:`g`.

    Returns
    -------
    level : float
        :math:`m + a e`, with the error :math:`e = y - m - s_\phi`.
    deviations : ndarray of shape (period,)
        With :math:`s_\phi + g (1 - a) e` for the phase of the label.

    References
    ----------
    .. [1] P. R. Winters, "Forecasting sales by exponentially weighted moving
       averages", Management Science 6 (1960).

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.experts import profile_update
    >>> profile_update(3.0, np.array([1.0, -1.0]), 1, 4.0, 0.5, 0.5)
    (4.0, array([ 1. , -0.5]))
    """
    error = y - level - deviations[phase]
    deviations = deviations.copy()
    deviations[phase] += seasonal_gain * (1 - gain) * error
    return float(level + gain * error), deviations


# The members of learning_rate="auto": name, kind, parameters (see `Kind`), weight at
# the start. A row may be removed, or another one added; of a mixture each hazard is a
# member, and a season has two: profile and regression. The row of means stays: run
# lengths are read from it.
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
