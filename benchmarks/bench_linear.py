"""Cost a row of the estimators with covariates, and digits kept over many rows.

    python benchmarks/bench_linear.py [--peers] [--digits]

Each figure is the least processor time of several runs: standard normal covariates,
coefficients that drift, noise of variance 1. Peers, one row after the other as they
offer it: river's LinearRegression, scikit-learn's SGDRegressor. `--digits` compares the
slope on features (1, 1e6 + N(0, 1)) with ridge 2^-20 to that of the same problem solved
in integers.
"""

import argparse
import time

import numpy as np

from sktvdenoise import FLHClassifier, FLHRegressor, _linear

EXPERTS = ("vaw", "ridge", "ons", "ogd")


def make_rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    theta = rng.normal(size=d) + np.cumsum(rng.normal(size=(n, d)) / 100, axis=0)
    return X, np.einsum("ij,ij->i", X, theta) / np.sqrt(d) + rng.normal(size=n)


def least(run, repeats=5):
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def by_batch(model, X, y):
    """Microseconds a row."""
    return 1e6 * least(lambda: model.fit(X, y), 3) / len(y)


def one_by_one(model, X, y):
    for i in range(len(y)):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        model.predict(X[i : i + 1])


def costs():
    print("| estimator | d | rows | microseconds a row |\n|---|---|---|---|")
    for d in (1, 3, 10, 30):
        n = 10**5 if d <= 10 else 2 * 10**4
        X, y = make_rows(n, d)
        for expert in EXPERTS:
            model = FLHRegressor(expert, learning_rate=0.5)
            print(f"| {model!r} | {d} | {n} | {by_batch(model, X, y):.2f} |")
        counts = np.random.default_rng(1).poisson(np.exp(np.clip(y, -3, 3)))
        for model, labels in (
            (FLHClassifier(learning_rate=1.0), y > 0),
            (FLHRegressor(), y),
            (FLHClassifier(), y > 0),
            (FLHRegressor(loss="poisson"), counts),
        ):
            print(f"| {model!r} | {d} | {n} | {by_batch(model, X, labels):.2f} |")
    X, y = make_rows(1000, 10)
    for model, labels in (
        (FLHRegressor(), y),
        (FLHRegressor(learning_rate=0.5), y),
        (FLHRegressor(learning_rate="theory"), y),
        (FLHRegressor("ons", learning_rate=0.5), y),
        (FLHClassifier(), (y > 0).astype(int)),
    ):
        model.fit(X, labels)
        figure = 1e6 * least(lambda m=model, v=labels: one_by_one(m, X, v)) / len(y)
        print(f"| {model!r}, partial_fit and predict | 10 | single | {figure:.0f} |")


def peers():
    from river import linear_model
    from sklearn.linear_model import SGDRegressor

    X, y = make_rows(2000, 10)
    rows = [dict(enumerate(x)) for x in X.tolist()]

    def river():
        model = linear_model.LinearRegression()
        for x, label in zip(rows, y.tolist()):
            model.predict_one(x)
            model.learn_one(x, label)

    for name, run in (
        ("river LinearRegression", river),
        ("SGDRegressor", lambda: one_by_one(SGDRegressor().fit(X, y), X, y)),
    ):
        print(f"| {name} | 10 | single | {1e6 * least(run, 3) / len(y):.1f} |")


def exact_slope(x, y, alpha):
    """Slope of ridge on (1, x), for multiples of 2^-20, in integers."""
    x, y = (list(map(int, v * 2.0**20)) for v in (x, y))
    one = 1 << 20
    n, penalty = one * one * len(x), int(alpha * 2.0**40)
    sx, sy = one * sum(x), one * sum(y)
    xx, xy = (sum(map(int.__mul__, x, v)) for v in (x, y))
    slope = (n + penalty) * xy - sx * sy
    return (slope << 100) // ((n + penalty) * (xx + penalty) - sx * sx) / 2.0**100


def digits():
    alpha = 2.0**-20
    for exponent, n in ((15, 20_000), (20, 10**6)):
        # The expert that starts in round 2^k lives for 2^(k + 2) more.
        birth = 2**exponent - 1
        rng = np.random.default_rng(exponent)
        x = np.round(rng.normal(size=birth + n) * 2.0**20) / 2.0**20 + 1e6
        y = np.round((2 * x + rng.normal(size=birth + n)) * 2.0**20) / 2.0**20
        X = np.column_stack([np.ones(birth + n), x])
        model = FLHRegressor(
            "ridge", learning_rate=1e-6, alpha=alpha, fit_intercept=False
        ).fit(X, y)
        theta, births, _ = _linear.experts(model._states[0])
        found = theta[list(births).index(birth), 1]
        error = abs(found - exact_slope(x[birth:], y[birth:], alpha))
        print(f"slope after {n} rows: error {error:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="run the peers too")
    parser.add_argument("--digits", action="store_true", help="digits instead of costs")
    options = parser.parse_args()
    if options.digits:
        digits()
        return
    costs()
    if options.peers:
        peers()


if __name__ == "__main__":
    main()
