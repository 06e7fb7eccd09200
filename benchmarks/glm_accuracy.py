"""How good adaptive logistic and Poisson regression is, beside tuned rivals.

    python benchmarks/glm_accuracy.py [--seeds N] [--first-seed N] [--json FILE]
    python benchmarks/glm_accuracy.py --cost

Simulated streams whose coefficients stand, jump or walk. Every loss is that of
one-step-ahead predictions: log loss, or Poisson deviance, over all rows but the first.
The rivals are given their best setting on each stream, which no one knows beforehand:
stochastic gradient descent in 84 settings (river's LogisticRegression, and
scikit-learn's decaying steps), and single iterated Kalman filters in 36. A ratio of 1
means as good as that. With --cost: microseconds of processor time a row, in one batch.
"""

import argparse
import itertools
import json
import time

import numpy as np
from accuracy import geometric_mean, table
from scipy.special import expit

from sktvdenoise import _laplace
from sktvdenoise.laplace import SHARES, Member, pool_members
from sktvdenoise.losses import LOSSES

KINDS = ("independent", "correlated")
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


def stream(loss, kind, drift, n, d, seed):
    """Features, labels and true means.

    Features are normal with variance 1; those that are correlated are so by 0.8^k, k
    columns apart.
    """
    code = KINDS.index(kind), DRIFTS.index(drift), n, d, list(LOSSES).index(loss), seed
    rng = np.random.default_rng(code)
    X = rng.standard_normal((n, d))
    if kind == "correlated":
        for j in range(1, d):
            X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
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
    Member((max(1.0, p0), p0), (ratio * q, q), (1.0, 1.0))
    for q in (0.0, *4.0 ** -np.arange(1, 10, 2))
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


def pool(loss, X, y, members=None, shares=SHARES):
    """Means predicted by a pool."""
    n, d = X.shape
    members = pool_members(d, loss) if members is None else members
    state = _laplace.allocate(d, _laplace.Code[loss.upper()], members, shares)
    predictions = np.empty(n)
    _laplace.learn(state, X, y, np.ones(n), np.zeros(n), predictions)
    return predictions


def kalman(loss, X, y):
    """Means predicted by single iterated Kalman filters, shape (settings, n)."""
    lanes = 4
    return np.array([pool(loss, X, y, [setting] * lanes, [0.0]) for setting in KALMAN])


def measure(loss, n, d, seed):
    """Losses of the pool, the rivals and the truth on the streams of one size."""
    names = list(itertools.product(KINDS, DRIFTS))
    streams = [stream(loss, *name, n, d, seed) for name in names]
    X, y, truth = (np.array(part) for part in zip(*streams))
    with np.errstate(over="ignore", invalid="ignore"):
        by_sgd = np.nanmin(total_loss(loss, y, sgd(loss, X, y)), axis=0)
    for i, (kind, drift) in enumerate(names):
        yield {
            "features": kind,
            "drift": drift,
            "n": n,
            "d": d,
            "pool": total_loss(loss, y[i], pool(loss, X[i], y[i])),
            "sgd": by_sgd[i],
            "kalman": total_loss(loss, y[i], kalman(loss, X[i], y[i])).min(),
            "truth": total_loss(loss, y[i], truth[i]),
        }


def report(loss, losses):
    """Print geometric means of the ratios to the rivals, by what streams differ in."""

    def row(name, chosen):
        ratios = [[r["pool"] / r[rival] for r in chosen] for rival in ("sgd", "kalman")]
        means = map(geometric_mean, ratios)
        return (name, len(chosen), *means, *map(float, map(max, ratios)))

    rows = [row("all", losses)]
    for key in ("features", "drift", "n", "d"):
        for value in dict.fromkeys(r[key] for r in losses):
            chosen = [r for r in losses if r[key] == value]
            rows.append(row(f"{key} {value}", chosen))
    print(f"{loss}: loss over that of the best rival in hindsight")
    table(("streams", "", "SGD", "Kalman", "worst", "worst"), rows)


def cost(n=100_000, n_runs=3):
    """Print the time that a row takes, by the number of features."""
    rows = []
    for d in (1, 2, 5, 10, 20, 30):
        times = []
        for loss in ("logistic", "poisson"):
            X, y, _ = stream(loss, "independent", "few", n, d, 0)
            runs = []
            for _ in range(n_runs):
                start = time.process_time()
                pool(loss, X, y)
                runs.append(time.process_time() - start)
            times.append(1e6 * min(runs) / n)
        rows.append((str(d), *times))
    table(("features", "logistic", "poisson"), rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--first-seed", type=int, default=101, metavar="N")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--cost", action="store_true")
    options = parser.parse_args()
    if options.cost:
        return cost()
    result = {}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for loss in ("logistic", "poisson"):
        sizes = itertools.product(LENGTHS, FEATURES, seeds)
        result[loss] = [r for size in sizes for r in measure(loss, *size)]
        report(loss, result[loss])
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, default=float)


if __name__ == "__main__":
    main()
