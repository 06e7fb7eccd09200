"""Best varying coefficients within a budget of variation: time, and certified gaps.

Run ``python benchmarks/bench_oracle.py [n ...]`` with the package importable. Prints a
markdown table of CPU seconds, of gaps relative to the loss, and of the iterations.
"""

import sys
import time

import numpy as np
from scipy.special import expit

from sktvdenoise._oracle import fit
from sktvdenoise.losses import LOSSES

CASES = {
    "independent": (0.0, 1.0, None),
    "correlation 0.9": (0.9, 1.0, None),
    "correlation 0.9, bound": (0.9, 1.0, 0.7),
    "correlation 0.9, thrice the budget": (0.9, 3.0, None),
    "correlation 0.9, scales 1 and 1e4": (0.9, 0.001, None),
}
N_FEATURES = 5


def problem(loss, n, correlation, scales=1.0, seed=0):
    """Covariates, labels, and the variation of the coefficients behind them.

    Each coefficient has nine levels of standard deviation 1.
    """
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - correlation) * rng.normal(size=(n, N_FEATURES))
    X += np.sqrt(correlation) * rng.normal(size=(n, 1))
    u = np.empty_like(X)
    for k in range(N_FEATURES):
        starts = np.sort(rng.integers(0, n, 8))
        u[:, k] = rng.normal(size=9)[np.searchsorted(starts, np.arange(n), "right")]
    p = np.sum(X * u, axis=1)
    if loss == "squared":
        y = p + rng.normal(size=n)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(p / 2, -5, 5))).astype(float)
    else:
        y = (rng.random(n) < expit(p / 2)).astype(float)
    return X * scales, y, np.abs(np.diff(u / scales, axis=0)).sum()


def table(sizes):
    print("| loss | n | covariates | pieces | iterations | CPU s | gap / loss |")
    print("|---" * 7 + "|")
    for n in sizes:
        for loss in LOSSES:
            for name, (correlation, share, bound) in CASES.items():
                uneven = "scales" in name
                scales = np.array([1, 1e4, 1, 1e4, 1]) if uneven else 1.0
                X, y, variation = problem(loss, n, correlation, scales)
                start = time.process_time()
                found = fit(
                    y,
                    np.ones(n),
                    X,
                    LOSSES[loss],
                    budget=share * variation,
                    bound=bound,
                )
                spent = time.process_time() - start
                pieces = np.count_nonzero(np.diff(found.u, axis=0)) + N_FEATURES
                print(
                    f"| {loss} | {n} | {name} | {pieces} | {found.n_iter} |"
                    f" {spent:.2f} | {found.gap / found.loss:.0e} |",
                    flush=True,
                )


class TimeOracle:
    """The same for asv."""

    params = (list(LOSSES), [10_000, 100_000])
    param_names = ("loss", "n")

    def setup(self, loss, n):
        self.X, self.y, self.budget = problem(loss, n, 0.5)

    def time_fit(self, loss, n):
        weights = np.ones(len(self.y))
        fit(self.y, weights, self.X, LOSSES[loss], budget=self.budget)


if __name__ == "__main__":
    table([int(float(n)) for n in sys.argv[1:]] or [10_000, 100_000])
