"""How good adaptive logistic and Poisson regression is, beside tuned rivals.

    python benchmarks/glm_accuracy.py [--quick] [--first-seed N] [--json FILE]

Simulated streams whose coefficients stand, jump or walk. Every loss is that of
one-step-ahead predictions: log loss, or Poisson deviance, over all rows but the first.
The rivals, stochastic gradient descent in 84 settings and iterated Kalman filters in
36, are given their best setting on each stream, which no one knows beforehand; a ratio
of 1 means as good as that.
"""

import argparse
import json

import numpy as np
from accuracy import geometric_mean, table
from scipy.special import expit

from sktvdenoise import _laplace
from sktvdenoise.losses import LOSSES

DRIFTS = ("still", "few", "many", "slow", "fast", "intercept")
FEATURES = (2, 5, 10, 20)
LENGTHS = (300, 2000, 10000)


def coefficients(drift, n, d, scale, rng):
    """Coefficients of each row, shape (n, d + 1); the intercept comes first.

    They are drawn from a normal law whose variances add up to scale^2 over the slopes,
    and to half of that for the intercept. "few" and "many" draw them anew, 3 times
    and every 60 rows on average; "slow" and "fast" walk at random, so that variances
    double within 1000 rows and within 100; with "intercept" the intercept alone does,
    within 200.
    """
    std = np.r_[scale / np.sqrt(2), np.full(d, scale / np.sqrt(d))]
    start = std * rng.standard_normal(d + 1)
    if drift == "still":
        return np.tile(start, (n, 1))
    if drift in ("few", "many"):
        rate = 3 / n if drift == "few" else 1 / 60
        piece = np.cumsum(rng.random(n) < rate)
        return (std * rng.standard_normal((piece[-1] + 1, d + 1)))[piece]
    rounds = {"slow": 1000, "fast": 100, "intercept": 200}[drift]
    steps = std / np.sqrt(rounds) * rng.standard_normal((n, d + 1))
    if drift == "intercept":
        steps[:, 1:] = 0
    # What walks is drawn back to 0, so that long streams aren't all certain.
    keep = 1 - 0.5 / rounds
    path = np.empty((n, d + 1))
    path[0] = start
    for t in range(1, n):
        path[t] = keep * path[t - 1] + steps[t]
    if drift == "intercept":
        path[:, 1:] = start[1:]
    return path


def stream(loss, drift, n, d, seed):
    """Features, labels and true means."""
    code = DRIFTS.index(drift), n, d, list(LOSSES).index(loss), seed
    rng = np.random.default_rng(code)
    X = rng.standard_normal((n, d))
    theta = coefficients(drift, n, d, 2.0 if loss == "logistic" else 0.7, rng)
    u = theta[:, 0] + np.sum(theta[:, 1:] * X, axis=1)
    if loss == "logistic":
        mean = expit(u)
        return X, (rng.random(n) < mean).astype(float), mean
    mean = np.exp(np.minimum(u + 1, 8.0))
    return X, rng.poisson(mean).astype(float), mean


def total_loss(loss, y, mean):
    """Log loss, or deviance, summed over all rows but the first."""
    if loss == "logistic":
        mean = np.clip(mean, 1e-6, 1 - 1e-6)
    with np.errstate(divide="ignore"):
        u = LOSSES[loss].link(mean)
    value = LOSSES[loss].deviation(y, mean, u)
    return (value if loss == "logistic" else 2 * value)[..., 1:].sum(axis=-1)


# Rivals.

STEPS = 2.0 ** -np.arange(-1, 13)
SGD = [
    (step, decay, intercept)
    for decay in (0.0, 0.25, 0.5)
    for step in STEPS
    for intercept in ("same", 0.01)
]
KALMAN = [
    (q, p0, q if ratio == 1 else ratio * q, max(1.0, p0))
    for q in (0.0, *4.0 ** -np.arange(1, 12, 2.0)[:5])
    for p0 in (0.1, 1.0, 10.0)
    for ratio in (1, 10)
]


def sgd(loss, X, y):
    """Means predicted by stochastic gradient descent, shape (settings, streams, n).

    theta -= step t^-decay (A'(u) - y) (1, x), as in river's LogisticRegression with a
    constant step and its own for the intercept, and in scikit-learn's schedules.
    """
    n_streams, n, d = X.shape
    step, decay = np.array([setting[:2] for setting in SGD]).T
    own = np.array([0.0 if s[2] == "same" else s[2] for s in SGD])
    slopes = np.zeros((len(SGD), n_streams, d))
    intercept = np.zeros((len(SGD), n_streams))
    result = np.empty((n, len(SGD), n_streams))
    for t in range(n):
        u = intercept + np.einsum("ksd,sd->ks", slopes, X[:, t])
        mean = expit(u) if loss == "logistic" else np.exp(np.clip(u, -9, 9))
        result[t] = mean
        rate = step * (t + 1) ** -decay
        # Where steps are too large, rates overflow: river draws gradients in, too.
        error = np.clip(mean - y[:, t], -1e12, 1e12)
        slopes -= rate[:, None, None] * error[..., None] * X[:, t]
        intercept -= np.where(own > 0, own, rate)[:, None] * error
    return result.transpose(1, 2, 0)


def pool(loss, X, y, members, trackers):
    """Means predicted by a pool."""
    state = _laplace.allocate(
        X.shape[1], _laplace.Code[loss.upper()], members, trackers
    )
    out = np.empty(len(y))
    _laplace.learn(state, X, y, np.ones(len(y)), np.zeros(len(y)), out)
    return out


def kalman(loss, X, y):
    """Means predicted by single iterated Kalman filters, shape (settings, n)."""
    return np.array(
        [pool(loss, X, y, [setting] * 4, [(0.0, 1.0)]) for setting in KALMAN]
    )
