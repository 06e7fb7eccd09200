"""Forecasters tuned in hindsight: what an online denoiser is compared with.

A rival is a generator. Given labels of shape (n_series, n_rounds) it yields, for
rounds 1, 2, ..., its predictions of shape (n_series, n_settings), each made from
the labels before that round; round 0 is where all start and isn't predicted.
All series and all settings advance together, so that a round costs a handful of
array operations.
"""

import numpy as np

# The last is the last value.
EWMA_RATES = np.geomspace(1e-3, 1.0, 50)
KALMAN_RATIOS = np.geomspace(1e-6, 10.0, 12)
HOLT_RATES = np.array([(a, b) for a in (0.05, 0.2, 0.5, 0.9) for b in (0.02, 0.1, 0.4)])
AR_LAGS = (1, 2, 6, 12)
# Together within a per cent of all pairs of these factors and ridges.
AR_FORGETTING = np.array([0.98, 0.995, 1.0])
AR_RIDGES = np.array([0.001, 0.1, 1.0])


def ewma(y):
    """Exponentially weighted means: level += rate (y - level)."""
    level = np.repeat(y[:, :1], len(EWMA_RATES), axis=1)
    for label in y.T[1:, :, None]:
        yield level
        level = level + EWMA_RATES * (label - level)


def kalman(y):
    """Local levels: y = level + noise, level += ratio^(1/2) noise, diffuse start."""
    level = np.repeat(y[:, :1], len(KALMAN_RATIOS), axis=1)
    variance = np.ones(len(KALMAN_RATIOS))
    for label in y.T[1:, :, None]:
        yield level
        variance = variance + KALMAN_RATIOS
        gain = variance / (variance + 1.0)
        level = level + gain * (label - level)
        variance = gain


def holt(y):
    """Local trends: level and slope each corrected by a share of the error."""
    rate, slope_rate = HOLT_RATES.T
    level = np.repeat(y[:, :1], len(HOLT_RATES), axis=1)
    slope = np.zeros_like(level)
    for label in y.T[1:, :, None]:
        forecast = level + slope
        yield forecast
        error = label - forecast
        level = forecast + rate * error
        slope = slope + rate * slope_rate * error


def autoregression(y, lags):
    """Difference to the last label, by least squares on 1 and the last labels.

    Rows lose weight geometrically, the ridge does not. Before the first label
    there is assumed to have been the same.
    """
    n_series, n_rounds = y.shape
    padded = np.concatenate([np.repeat(y[:, :1], lags - 1, axis=1), y], axis=1)
    forgetting = AR_FORGETTING[:, None, None]
    gram = np.zeros((n_series, len(AR_FORGETTING), lags + 1, lags + 1))
    moment = np.zeros((n_series, len(AR_FORGETTING), lags + 1, 1))
    ridge = AR_RIDGES[:, None, None] * np.eye(lags + 1)
    row = np.ones((n_series, lags + 1))
    for t in range(1, n_rounds):
        row[:, 1:] = padded[:, t - 1 : t - 1 + lags]
        coef = np.linalg.solve(gram + ridge, moment)[..., 0]
        yield y[:, t - 1, None] + np.einsum("skp,sp->sk", coef, row)
        gram *= forgetting
        gram += (row[:, :, None] * row[:, None, :])[:, None]
        moment *= forgetting
        moment += ((y[:, t] - y[:, t - 1])[:, None] * row)[:, None, :, None]


def names():
    """One name for each setting, in the order of the columns of `losses`."""
    return [
        *(f"EWMA {rate:.3g}" for rate in EWMA_RATES[:-1]),
        "last value",
        *(f"Kalman {ratio:.1g}" for ratio in KALMAN_RATIOS),
        *(f"Holt {a:g} {b:g}" for a, b in HOLT_RATES),
        *(f"AR({lags}) {f:g}" for lags in AR_LAGS for f in AR_FORGETTING),
    ]


def _loss(predictions, target, counted):
    total = 0.0
    for t, prediction in enumerate(predictions, 1):
        error = target[:, t, None] - prediction
        total = total + counted[:, t, None] * error * error
    return total


def losses(y, target, counted):
    """Sums of squared errors of one-step-ahead predictions, by setting.

    Parameters
    ----------
    y : ndarray of shape (n_series, n_rounds)
        Labels, standardised: the ridges of the autoregressions are not scaled.
    target : ndarray of shape (n_series, n_rounds)
        What predictions are compared with: the labels, or the truth below them.
    counted : boolean ndarray of shape (n_series, n_rounds)
        Where False, and in round 0, errors don't count.

    Returns
    -------
    losses : ndarray of shape (n_series, n_settings)
    """
    runs = [ewma(y), kalman(y), holt(y), *(autoregression(y, p) for p in AR_LAGS)]
    return np.concatenate([_loss(run, target, counted) for run in runs], axis=1)


HAZARDS = np.geomspace(5e-5, 5e-2, 7)
NEGLIGIBLE = 1e-7


def change_point_predictions(y, prior_variance=25.0):
    """Bayesian online change-point detection (Adams and MacKay, 2007).

    Levels are N(0, prior_variance), the noise is N(0, 1), and a change comes
    before each round with the probability HAZARDS[k]. Run lengths that are
    negligible at every hazard are dropped.

    Parameters
    ----------
    y : ndarray of shape (n_rounds,)

    Returns
    -------
    predictions : ndarray of shape (n_hazards, n_rounds)
        Predictive means, each from the labels before its round.
    """
    predictions = np.empty((len(HAZARDS), len(y)))
    # Posterior of the level by run length, and the weights of run lengths.
    mean, variance = np.zeros(1), np.full(1, prior_variance)
    weights = np.ones((len(HAZARDS), 1))
    for t, label in enumerate(y):
        predictions[:, t] = weights @ mean
        error = label - mean
        exponent = -0.5 * error * error / (1.0 + variance)
        weights *= np.exp(exponent - exponent.max()) / np.sqrt(1.0 + variance)
        weights /= weights.sum(axis=1, keepdims=True)
        gain = variance / (1.0 + variance)
        kept = weights.max(axis=0) > NEGLIGIBLE
        mean = np.append((mean + gain * error)[kept], 0.0)
        variance = np.append(gain[kept], prior_variance)
        weights = np.column_stack(
            [(1.0 - HAZARDS)[:, None] * weights[:, kept], HAZARDS]
        )
        weights /= weights.sum(axis=1, keepdims=True)
    return predictions
