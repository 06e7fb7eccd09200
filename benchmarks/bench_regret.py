"""The regret against every budget at once, beside the regret at one.

Run ``python benchmarks/bench_regret.py [n ...]`` with the package importable. Prints a
markdown table of CPU milliseconds (minima) and of errors relative to the loss of the
best constant, against what is known without the path: the losses of oracles that are
formed, and sums in exact arithmetic.
"""

import math
import sys
import time

import numpy as np

from sktvdenoise.metrics import dynamic_regret, regret_curve

SHARES = np.geomspace(1e-6, 1, 1000)


def streams(n, rng):
    """Labels whose noise, if any, is of size 1."""
    noise = rng.standard_normal(n)
    levels = np.repeat(5 * rng.standard_normal(100), -(-n // 100))[:n]
    return {
        "plateaus + noise": levels + noise,
        "noise": noise,
        "the same + 1e9": 1e9 + noise,
        "random walk": np.cumsum(noise),
        "ramp": np.arange(n, dtype=float),
        "integers 0 to 4": rng.integers(0, 5, n).astype(float),
        "two outputs": np.c_[levels + noise, np.cumsum(noise)],
    }


def milliseconds(rounds, function, *args, **kwargs):
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        result = function(*args, **kwargs)
        best = min(best, time.process_time() - start)
    return 1e3 * best, result


def exact_static_loss(y):
    """Sum of squares about the mean, correctly rounded but for the mean."""
    total = 0.0
    for column in y.reshape(len(y), -1).T:
        centred = column - column[0]
        mean = math.fsum(centred) / len(y)
        deviations = centred - mean
        rest = math.fsum(deviations) / len(y)
        total += math.fsum(deviations**2) - len(y) * rest**2
    return total


def table(n, rounds):
    rng = np.random.default_rng(0)
    names = ["curve", "oracle inequality", "1000 budgets", "`dynamic_regret`, one"]
    print(f"\nn = {n}: CPU milliseconds, and errors relative to L(0)\n")
    print("| stream |", " | ".join(names), "| L(0) | L(C), 12 budgets | knots |")
    print("|---" * (len(names) + 4) + "|")
    for name, y in streams(n, rng).items():
        x = y + rng.standard_normal(y.shape)
        bound = float(np.abs(y).max())
        at_curve, curve = milliseconds(rounds, regret_curve, y, x)
        budgets = SHARES * curve.tv_budget[-1]
        times = [
            at_curve,
            milliseconds(rounds, curve.oracle_inequality, bound)[0],
            milliseconds(rounds, curve, budgets)[0],
            milliseconds(rounds, dynamic_regret, y, x, tv_budget=budgets[667])[0],
        ]
        static = curve.oracle_loss[0]
        first = abs(static - exact_static_loss(y)) / static
        # Sequences near 1e9 would be rounded; labels less 1e9 aren't.
        offset = 1e9 if bound > 1e8 else 0.0
        other = max(
            abs(dynamic_regret(y - offset, x - offset, tv_budget=c) - curve(c)) / static
            for c in curve.tv_budget[-1] * np.geomspace(1e-6, 0.99, 12)
        )
        cells = [f"{t:.1f}" for t in times]
        print(
            f"| {name} |",
            " | ".join(cells),
            f"| {first:.0e} | {other:.0e} | {len(curve.tv_budget)} |",
            flush=True,
        )


class TimeRegret:
    """The same for asv."""

    params = (["plateaus + noise", "random walk", "ramp"], [1000, 100_000, 1_000_000])
    param_names = ("stream", "n")

    def setup(self, stream, n):
        rng = np.random.default_rng(0)
        self.y = streams(n, rng)[stream]
        self.x = self.y + rng.standard_normal(n)
        self.curve = regret_curve(self.y, self.x)

    def time_curve(self, stream, n):
        regret_curve(self.y, self.x)

    def time_oracle_inequality(self, stream, n):
        self.curve.oracle_inequality(10.0)

    def time_budgets(self, stream, n):
        self.curve(SHARES * self.curve.tv_budget[-1])


if __name__ == "__main__":
    for n in [int(float(n)) for n in sys.argv[1:]] or [1000, 100_000, 1_000_000]:
        table(n, rounds=7 if n <= 100_000 else 3)
