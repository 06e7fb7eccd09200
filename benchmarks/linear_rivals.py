"""Linear regressions tuned in hindsight: what adaptive regression is compared with.

A rival predicts each label before it is learned, in all of its settings at once, from
the features as they are or standardised by their running means and variances, the
present row included. Every row has a 1 in front, but for gradient descent, which has an
intercept of its own. Losses are summed from the second row on.
"""

import numpy as np

__all__ = ["RIVALS", "losses"]

# RLS, also river's BayesianLinearRegression: `factor, ridge`.
FACTORS = (1, 0.9999, 0.9995, 0.999, 0.998, 0.995, 0.99, 0.985, 0.98, 0.97)
FACTORS += (0.96, 0.95, 0.93, 0.9, 0.87, 0.84, 0.8, 0.75, 0.7, 0.6)
RIDGES = (1e-3, 1e-2, 0.1, 1.0, 10.0)
RLS = np.array([(factor, ridge) for factor in FACTORS for ridge in RIDGES])
# `smoothing, alpha`: with smoothing s it is RLS with the factor s and the ridge
# 1 / (alpha (1 - s)); without, river 0.26 starts from the covariance I / alpha.
BAYESIAN = [(s, alpha) for s in (None, 0.99, 0.95, 0.8) for alpha in (0.1, 1.0, 10.0)]
BAYESIAN += [(None, 0.01)]
# `ridge`
VAW = np.array(RIDGES)
# `q, prior variance`
KALMAN = np.array([(q, v) for q in np.geomspace(1e-8, 10, 20) for v in (1, 30, 1000)])
# `rate, rate of the intercept, l2`, of river's LinearRegression
SGD = np.array(
    [
        (rate, intercept, l2)
        for rate in (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
        for intercept in (0.01, 0.1)
        for l2 in (0.0, 1e-3)
    ]
)


def bayesian_as_rls(smoothing, alpha):
    if smoothing is None:
        return 1.0, alpha
    return smoothing, 1 / (alpha * (1 - smoothing))


def standardised(X):
    """Rows less the running mean, over the running standard deviation."""
    counts = np.arange(1, len(X) + 1)[:, None]
    shifted = X - X[0]
    means = np.cumsum(shifted, axis=0) / counts
    before = np.vstack([np.zeros((1, X.shape[1])), means[:-1]])
    variances = np.cumsum((shifted - before) * (shifted - means), axis=0) / counts
    scales = np.sqrt(variances)
    return np.divide(
        shifted - means, scales, out=np.zeros_like(scales), where=scales > 0
    )


def with_ones(X):
    return np.column_stack([np.ones(len(X)), X])


def rls(X, y, settings=RLS):
    """Recursive least squares with forgetting; the ridge is forgotten, too."""
    factor, ridge = np.asarray(settings, dtype=float).T
    P = np.eye(X.shape[1]) / ridge[:, None, None]
    theta = np.zeros((len(ridge), X.shape[1]))
    for x, label in zip(X, y):
        prediction = theta @ x
        yield prediction
        g = P @ x
        k = g / (factor + g @ x)[:, None]
        theta += k * (label - prediction)[:, None]
        P -= k[:, :, None] * g[:, None, :]
        P /= factor[:, None, None]


def vaw(X, y, ridges=VAW):
    """Vovk, Azoury and Warmuth: ridge with the present row and the label 0."""
    P = np.eye(X.shape[1]) / np.asarray(ridges, dtype=float)[:, None, None]
    theta = np.zeros((len(ridges), X.shape[1]))
    for x, label in zip(X, y):
        prediction = theta @ x
        g = P @ x
        yield prediction / (1 + g @ x)
        k = g / (1 + g @ x)[:, None]
        theta += k * (label - prediction)[:, None]
        P -= k[:, :, None] * g[:, None, :]


def kalman(X, y, settings=KALMAN):
    """Coefficients that walk at random, noise of variance 1."""
    q, variance = np.asarray(settings, dtype=float).T
    eye = np.eye(X.shape[1])
    P = eye * variance[:, None, None]
    theta = np.zeros((len(q), X.shape[1]))
    walk = eye * q[:, None, None]
    for x, label in zip(X, y):
        prediction = theta @ x
        yield prediction
        P += walk
        g = P @ x
        k = g / (1 + g @ x)[:, None]
        theta += k * (label - prediction)[:, None]
        P -= k[:, :, None] * g[:, None, :]


def sgd(X, y, settings=SGD):
    """Gradient descent as in river's LinearRegression."""
    rate, intercept_rate, l2 = np.asarray(settings, dtype=float).T
    theta = np.zeros((len(rate), X.shape[1]))
    intercept = np.zeros(len(rate))
    for x, label in zip(X, y):
        prediction = theta @ x + intercept
        yield prediction
        slope = np.clip(2 * (prediction - label), -1e12, 1e12)
        intercept -= intercept_rate * slope
        theta -= rate[:, None] * (slope[:, None] * x + l2[:, None] * theta)


def _runs(X, y):
    raw, standard = with_ones(X), with_ones(standardised(X))
    both = [*RLS, *(bayesian_as_rls(*setting) for setting in BAYESIAN)]
    return [
        rls(raw, y, both),
        rls(standard, y, both),
        vaw(raw, y),
        vaw(standard, y),
        kalman(raw, y),
        kalman(standard, y),
        sgd(standard[:, 1:], y),
    ]


_NAMES = ["RLS"] * len(RLS) + ["Bayesian"] * len(BAYESIAN)
RIVALS = _NAMES * 2 + ["VAW"] * 2 * len(VAW) + ["Kalman"] * 2 * len(KALMAN)
RIVALS += ["SGD"] * len(SGD)


def losses(X, y, first=1):
    """Squared errors of all settings, summed from the row `first` on.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    first : int or sequence of int, default=1

    Returns
    -------
    total : ndarray of shape (len(first), n_settings) or (n_settings,)
        Infinite where a setting leaves the numbers.
    """
    firsts = np.atleast_1d(first)
    results = []
    with np.errstate(all="ignore"):
        for run in _runs(X, y):
            errors = np.array([(p - label) ** 2 for p, label in zip(run, y)])
            results.append([errors[begin:].sum(axis=0) for begin in firsts])
    total = np.concatenate(results, axis=1)
    total[~np.isfinite(total)] = np.inf
    return total if np.ndim(first) else total[0]
