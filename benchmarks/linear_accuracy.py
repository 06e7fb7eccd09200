"""How good adaptive linear regression is, beside rivals that are tuned in hindsight.

    python benchmarks/linear_accuracy.py [--streams N] [--seed S] [--without NAME]
        [--tracker N] [--data FOLDER] [--cache FOLDER] [--json FILE]
    python benchmarks/linear_accuracy.py --cost
    python benchmarks/linear_accuracy.py --outliers

A ratio is the sum of squared one-step errors, from the second row on, over that of the
best of the rivals' settings on the same stream, which no one knows beforehand.
"""

import argparse
import json
import sys
import time

import linear_rivals
import numpy as np
import pandas as pd
from joblib import Memory
from sktvdenoise._ladder import allocate

from sktvdenoise import ladder
from sktvdenoise.datasets import make_drifting_regression

NOISES = {1: (0.1, 0.3, 1.0), 2: (0.01, 0.1, 0.5, 2.0)}


def draw(family, seed):
    """A stream of a family: (description, X, y).

    Family 1 is the plainer one: n from 100 to 5000, at most 10 features of a common
    scale. Family 2 has up to 20 features, correlated, shifted, of scales over six
    orders of magnitude, heavy-tailed or walking at random, and n from 100 to 1500.
    """
    rng = np.random.default_rng([family, seed])
    kinds = ("still", "few", "many", "slow", "fast", "some", "intercept")
    kind = kinds[seed % len(kinds)]
    if family == 1:
        n = int(rng.choice([100, 1000, 5000]))
        d = int(rng.choice([2, 5, 10]))
        options = {"correlation": float(rng.choice([0.0, 0.5]))}
    else:
        n = int(rng.choice([100, 300, 700, 1500]))
        d = int(rng.choice([2, 5, 10, 20]))
        options = {
            "correlation": float(rng.choice([0.0, 0.5, 0.9])),
            "spread": float(rng.choice([0.0, 3.0])),
            "offset": float(rng.choice([0.0, 3.0, 30.0])),
        }
    noise = float(rng.choice(NOISES[family]))
    drifts = {
        "still": {"drift": "still"},
        "few": {"n_jumps": int(rng.integers(1, 4))},
        "many": {"n_jumps": n // 60},
        "slow": {"drift": "walk", "step": 0.01},
        "fast": {"drift": "walk", "step": 0.1},
        "some": {"n_jumps": 3, "n_drifting": 1, "drifting_intercept": False},
        "intercept": {"drift": "walk", "step": 0.1, "n_drifting": 0},
    }
    X, y, coef, _ = make_drifting_regression(
        n,
        d,
        noise=noise,
        random_state=int(rng.integers(2**31)),
        **options,
        **drifts[kind],
    )
    shape = "normal"
    if family == 2:
        shape = str(rng.choice(["normal", "normal", "heavy", "walking"]))
        std = X.std(axis=0)
        if shape == "heavy":
            change = std * rng.standard_t(3, X.shape)
        elif shape == "walking":
            change = std * np.cumsum(rng.standard_normal(X.shape), axis=0) / 10
        else:
            change = np.zeros_like(X)
        X = X + change
        y = y + np.sum(coef * change, axis=1)
    description = {"n": n, "d": d, "kind": kind, "noise": noise, "shape": shape}
    return description | options, X, y


def real_series(folder):
    """Name, X, y of real series in a folder."""
    approval = pd.read_csv(f"{folder}/trump_approval.csv.gz")
    target = approval.pop("five_thirty_eight")
    yield "approval", approval.to_numpy(float), target.to_numpy(float)
    macro = pd.read_csv(f"{folder}/macrodata.csv")
    target = macro.pop("realcons")
    yield "macro", macro.to_numpy(float), target.to_numpy(float)


class Candidate:
    """The ladder under test, with the time that it takes.

    Its guard never predicts better than it does, and takes no part.
    """

    seconds = 0.0
    rows = 0

    def __init__(self, without=None, tracker=None):
        self.members = [m for m in ladder.LADDER if m[0] != without]
        self.trackers = ladder.TRACKERS
        if tracker is not None:
            self.trackers = self.trackers[tracker : tracker + 1]

    def __call__(self, X, y):
        """Predictions, each made before its label is seen."""
        n, d = X.shape
        state, out = allocate(d, self.members, self.trackers), np.empty(n)
        X, ones, guard = np.ascontiguousarray(X), np.ones(n), np.full(n, np.inf)
        start = time.perf_counter()
        ladder.learn(state, X, y, ones, guard, out)
        self.seconds += time.perf_counter() - start
        self.rows += n
        return out


def measure(candidate, X, y, losses):
    """Ratio to the best rival, from the second row on and after d + 2 rows."""
    later = X.shape[1] + 2
    rivals = losses(X, y, (1, later))
    best = rivals.argmin(axis=1)
    errors = (candidate(X, y) - y) ** 2
    return {
        "ratio": errors[1:].sum() / rivals[0, best[0]],
        "later": errors[later:].sum() / rivals[1, best[1]],
        "rival": linear_rivals.RIVALS[best[0]],
    }


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(list(values)))))


def print_cost():
    """Microseconds a row, the least of five batches."""
    for d, n in ((3, 100_000), (10, 100_000), (30, 10_000)):
        X, y, _, _ = make_drifting_regression(n, d, random_state=0)
        times = []
        for _ in range(5):
            candidate = Candidate()
            candidate(X, y)
            times.append(1e6 * candidate.seconds / n)
        print(f"d = {d}, {n} rows: {min(times):.2f} microseconds a row")


def print_outliers():
    """Errors after an outlier, and after all sizes change, over those without.

    Sums of squares of 32 still streams of 3 features with noise as large as the signal.
    """

    def errors(X, y, size=1.0):
        return ((Candidate()(X, y) - y) / size) ** 2

    streams = [
        make_drifting_regression(
            400, 3, noise=1.0, drift="still", random_state=10_000 + seed
        )[:2]
        for seed in range(32)
    ]
    usual = np.mean([errors(X, y) for X, y in streams], axis=0)
    print("outlier: what, size, row; the 8 rows after it, 20, 100; rows from 100 on")
    for what in ("label", "feature"):
        for size in (1e2, 1e4, 1e9):
            for row in (0, 3, 4, 50):
                runs = []
                for X, y in streams:
                    X, spoilt = X.copy(), y.copy()
                    if what == "label":
                        spoilt[row] = size
                    else:
                        X[row, 0] *= size
                    runs.append(errors(X, spoilt))
                ratios = [
                    np.sum(np.mean(runs, axis=0)[rows]) / np.sum(usual[rows])
                    for rows in (
                        *(np.s_[row + 1 : row + k] for k in (9, 21, 101)),
                        np.s_[100:],
                    )
                ]
                print(f"  {what}, {size:.0e}, {row}: ", *(f"{r:.3g}" for r in ratios))
    print(
        "all sizes change in row 200: what, factor; the 5 rows from it on, the 20 next"
    )
    for what in ("labels", "features"):
        for factor in (1e2, 1e4, 1e9):
            sizes, runs = np.where(np.arange(400) < 200, 1.0, factor), []
            for X, y in streams:
                if what == "labels":
                    runs.append(errors(X, y * sizes, sizes))
                else:
                    runs.append(errors(X * sizes[:, None], y))
            ratios = [
                np.mean(runs, axis=0)[rows].sum() / usual[rows].sum()
                for rows in (np.s_[200:205], np.s_[205:225])
            ]
            print(f"  {what}, {factor:.0e}: ", *(f"{r:.3g}" for r in ratios))


def summary(rows, *keys):
    """Geometric mean and worst by the values of keys."""
    for key in keys:
        groups = {}
        for row in rows:
            groups.setdefault(row[key], []).append(row["ratio"])
        parts = [f"{v}: {geometric_mean(r):.3f}" for v, r in sorted(groups.items())]
        print(f"  by {key}: " + ", ".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--streams", type=int, default=280, help="of each family")
    parser.add_argument("--seed", type=int, default=1000, help="of the first stream")
    parser.add_argument("--without", help="members to leave out, by their name")
    parser.add_argument("--tracker", type=int, help="only this one, from 0")
    parser.add_argument("--cost", action="store_true", help="measure only times")
    parser.add_argument("--outliers", action="store_true", help="only with outliers")
    parser.add_argument("--data", help="folder with real series")
    parser.add_argument("--cache", help="folder for the rivals' losses")
    parser.add_argument("--json", help="file for all figures")
    options = parser.parse_args()
    if options.cost:
        return print_cost()
    if options.outliers:
        return print_outliers()
    losses = Memory(options.cache, verbose=0).cache(linear_rivals.losses)

    candidate = Candidate(options.without, options.tracker)
    result = {}
    for family in (1, 2):
        rows = []
        for seed in range(options.seed, options.seed + options.streams):
            description, X, y = draw(family, seed)
            rows.append({"seed": seed} | description | measure(candidate, X, y, losses))
        result[f"family {family}"] = rows
        ratios = [row["ratio"] for row in rows]
        later = [row["later"] for row in rows]
        print(
            f"family {family}: {len(rows)} streams, geometric mean "
            f"{geometric_mean(ratios):.4f}, worst {max(ratios):.3f}; after d + 2 rows "
            f"{geometric_mean(later):.4f}, worst {max(later):.3f}, "
            f"above 1.2: {sum(ratio > 1.2 for ratio in later)}"
        )
        summary(rows, "kind", "n", "d", "noise", "shape", "rival")
    if options.data:
        rows = []
        for name, X, y in real_series(options.data):
            rows.append({"name": name} | measure(candidate, X, y, losses))
            print(f"{name}: {rows[-1]['ratio']:.4f} (best: {rows[-1]['rival']})")
        result["real"] = rows
        print(f"real: geometric mean {geometric_mean(r['ratio'] for r in rows):.4f}")
    print(f"{1e6 * candidate.seconds / candidate.rows:.2f} microseconds a row")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    sys.exit(main())
