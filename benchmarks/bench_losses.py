"""Poisson and logistic total variation and joint jumps: time, and certified gaps.

Run ``python benchmarks/bench_losses.py [n ...]`` with the package importable. Where
clarabel, an interior-point solver of cone programmes, is installed, the joint jumps
are solved by it, too. Prints markdown tables of CPU seconds, minima over rounds, and
of gaps relative to the objective.
"""

import importlib.util
import sys
import time

import numpy as np
from scipy import sparse
from scipy.special import expit

from sktvdenoise._group import solution as joint
from sktvdenoise._likelihood import solution as likelihood
from sktvdenoise.losses import LOSSES

N_CHANNELS = 5
MOST_ROWS_OF_PEER = 10_000


def plateaus(n, channels, rng):
    """Up to a hundred levels of standard deviation 1.5."""
    n_levels = min(100, max(2, n // 50))
    level = np.arange(n) * n_levels // n
    return 1.5 * rng.normal(size=(n_levels, channels))[level]


def labels(loss, n, rng):
    """Labels and weights: counts as rates with their exposure, or zeros and ones."""
    u = plateaus(n, 1, rng)
    if loss == "poisson":
        exposure = rng.uniform(0.1, 3, n)
        return rng.poisson(exposure[:, None] * np.exp(u)) / exposure[:, None], exposure
    return (rng.random(u.shape) < expit(u)).astype(float), np.ones(n)


def measured(function, rounds):
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        found = function()
        best = min(best, time.process_time() - start)
    return best, found


def relative_gap(found):
    objective = found.loss / 2 + found.alpha * found.tv
    return found.gap / objective


def table_of_losses(sizes):
    print("\n| loss | n | problem | CPU s | relative gap | error of the budget |")
    print("|---" * 6 + "|")
    for loss in ("poisson", "logistic"):
        for n in sizes:
            y, w = labels(loss, n, np.random.default_rng(0))
            for name, value in (("alpha", 3.0), ("alpha", n**0.5), ("tv_budget", 20)):
                spent, found = measured(
                    lambda y=y, w=w, name=name, value=value, loss=LOSSES[loss]: (
                        likelihood(y, w, loss, **{name: value})
                    ),
                    rounds=3,
                )
                budget = name == "tv_budget" and found.alpha > 0
                error = f"{abs(found.tv / value - 1):.0e}" if budget else "-"
                print(
                    f"| {loss} | {n} | {name} = {value:.4g} | {spent:.4f} |"
                    f" {relative_gap(found):.0e} | {error} |",
                    flush=True,
                )


def by_cones(y, alpha):
    """The joint jumps as a second-order cone programme."""
    import clarabel

    n, p = y.shape
    steps = sparse.kron(sparse.diags([-1.0, 1.0], [0, 1], (n - 1, n)), sparse.eye(p))
    # Rows (length_i, step_i) of each cone in turn
    order = np.arange((n - 1) * (p + 1)).reshape(n - 1, p + 1)
    order = np.argsort(np.concatenate([order[:, 0], order[:, 1:].ravel()]))
    cones = -sparse.block_diag([sparse.eye(n - 1), steps], format="csr")[order]
    cones = sparse.csc_matrix(cones)
    squares = sparse.block_diag(
        [sparse.csc_matrix((n - 1, n - 1)), sparse.eye(n * p)], format="csc"
    )
    linear = np.concatenate([np.full(n - 1, alpha), -y.ravel()])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        squares,
        linear,
        cones,
        np.zeros(len(order)),
        [clarabel.SecondOrderConeT(p + 1)] * (n - 1),
        settings,
    ).solve()
    u = np.array(found.x)[n - 1 :].reshape(n, p)
    return (
        np.sum((y - u) ** 2) / 2
        + alpha * np.linalg.norm(np.diff(u, axis=0), axis=1).sum()
    )


def table_of_jumps(sizes):
    peer = importlib.util.find_spec("clarabel") is not None
    if not peer:
        print("clarabel: not installed, skipped")
    print(f"\nJoint jumps of {N_CHANNELS} channels\n")
    print("| n | problem | pieces | CPU s | relative gap | clarabel CPU s (excess) |")
    print("|---" * 6 + "|")
    for n in sizes:
        rng = np.random.default_rng(0)
        y = plateaus(n, N_CHANNELS, rng) + rng.normal(size=(n, N_CHANNELS))
        total = np.linalg.norm(np.diff(y, axis=0), axis=1).sum()
        for name, value in (
            ("alpha", 1.0),
            ("alpha", 10.0),
            ("alpha", n**0.5),
            ("tv_budget", 0.05 * total),
        ):
            spent, found = measured(
                lambda y=y, name=name, value=value: joint(y, **{name: value}),
                rounds=1 if n > 20_000 else 3,
            )
            other = "-"
            if peer and n <= MOST_ROWS_OF_PEER and name == "alpha":
                cones, least = measured(lambda y=y, a=value: by_cones(y, a), rounds=1)
                objective = found.loss / 2 + found.alpha * found.tv
                other = f"{cones:.2f} ({least / objective - 1:.0e})"
            pieces = 1 + np.count_nonzero(np.any(np.diff(found.u, axis=0), axis=1))
            print(
                f"| {n} | {name} = {value:.4g} | {pieces} | {spent:.3f} |"
                f" {relative_gap(found):.0e} | {other} |",
                flush=True,
            )


class TimeLosses:
    """The same for asv."""

    params = (["poisson", "logistic"], [1000, 100_000, 1_000_000])
    param_names = ("loss", "n")

    def setup(self, loss, n):
        self.y, self.w = labels(loss, n, np.random.default_rng(0))

    def time_alpha(self, loss, n):
        likelihood(self.y, self.w, LOSSES[loss], alpha=3.0)

    def time_budget(self, loss, n):
        likelihood(self.y, self.w, LOSSES[loss], tv_budget=20.0)


class TimeJointJumps:
    params = (1000, 10_000)
    param_names = ("n",)

    def setup(self, n):
        rng = np.random.default_rng(0)
        self.y = plateaus(n, N_CHANNELS, rng) + rng.normal(size=(n, N_CHANNELS))

    def time_alpha(self, n):
        joint(self.y, alpha=10.0)


def main(sizes):
    table_of_losses(sizes)
    table_of_jumps([n for n in sizes if n <= 100_000])


if __name__ == "__main__":
    main([int(float(n)) for n in sys.argv[1:]] or [1000, 10_000, 100_000, 1_000_000])
