"""Rates: errors and regrets as the stream gets longer or varies more.

    python benchmarks/rates.py [--seeds 10] [--jobs 1] [--cache FOLDER]
                               [--images FOLDER]

Slopes on a log-log scale, with 95 % intervals over the seeds, against the number of
rounds at a fixed variation, and against the variation at a fixed number of rounds. The
theory has 1/3 and 2/3 for the adaptive methods, 1/2 and 1 for those that are linear in
the labels, 1/2 and 1/2 for descent that starts again. With a cache a run that was
interrupted goes on where it was; the figures don't depend on the number of jobs.
"""

import argparse
import sys

import numpy as np
from joblib import Memory, Parallel, delayed
from scipy.stats import t as student

from sktvdenoise import FLHRegressor, GeometricCoverDenoiser, OnlineTVDenoiser
from sktvdenoise.baselines import ARROWS, EWMA, Ader, Aligator, RestartedOGD
from sktvdenoise.metrics import dynamic_regret
from sktvdenoise.theory import make_lower_bound

LENGTHS = (1000, 3000, 10_000, 30_000, 100_000)
BUDGETS = (1.0, 3.0, 10.0, 30.0, 100.0)
FIXED_LENGTH, FIXED_BUDGET = 10_000, 10.0
SIGMA = 1.0


def steps(n, budget, seed):
    """Up and down, as often as leaves each step five standard errors of its plateau."""
    rng = np.random.default_rng([n, int(1000 * budget), seed])
    n_jumps = max(1, round((n * (budget / SIGMA) ** 2 / 25) ** (1 / 3)))
    up = np.arange(n_jumps + 1) % 2
    truth = np.repeat(up, np.diff(np.linspace(0, n, n_jumps + 2).astype(int)))
    truth = (truth - 0.5) * (budget / n_jumps)
    return truth + SIGMA * rng.normal(size=n), truth


def coins(n, budget, seed):
    """Fair coins, -1 or 1: the stream of the lower bound. There is no truth."""
    random_state = np.random.RandomState(seed)
    y, _ = make_lower_bound(n, budget, noise="coin", random_state=random_state)
    return y, None


def methods(n, budget, bound):
    """Name -> estimators, told what they must be told; the best of several counts."""
    newton = FLHRegressor("ons", learning_rate="theory", fit_intercept=False)
    return {
        "FLH over means, theory": [
            OnlineTVDenoiser(learning_rate="theory", bound=bound)
        ],
        "FLH over means, 1/(2 sigma^2)": [
            OnlineTVDenoiser(learning_rate=0.5 / SIGMA**2)
        ],
        "OnlineTVDenoiser, default": [OnlineTVDenoiser()],
        "FLH over Newton steps, theory": [newton],
        "Aligator, 1/(2 sigma^2)": [Aligator(n, learning_rate=0.5 / SIGMA**2)],
        "GeometricCoverDenoiser": [GeometricCoverDenoiser()],
        "ARROWS": [ARROWS(n, SIGMA)],
        "RestartedOGD, told C": [RestartedOGD(n, budget, bound)],
        "RestartedOGD, told 1": [RestartedOGD(n, 1.0, bound)],
        "Ader": [Ader(n, bound)],
        "EWMA, best in hindsight": [EWMA(2.0**-k) for k in np.arange(0, 14, 0.5)],
    }


def measure(kind, n, budget, seed):
    """Method -> error to the truth, or regret where there is none."""
    y, truth = KINDS[kind](n, budget, seed)
    bound = float(np.abs(y).max())
    found = {}
    for name, models in methods(n, budget, bound).items():
        values = []
        for model in models:
            X = np.ones((n, 1)) if isinstance(model, FLHRegressor) else np.arange(n)
            x = model.partial_fit_predict(X, y)
            if truth is None:
                values.append(dynamic_regret(y, x, tv_budget=budget))
            else:
                values.append(float(np.sum((x - truth) ** 2)))
        found[name] = min(values)
    return found


KINDS = {"steps": steps, "coins": coins}


def slope(sizes, errors):
    """Slope on a log-log scale and half the width of its 95 % interval.

    Parameters
    ----------
    sizes : array-like of shape (n_sizes,)
    errors : ndarray of shape (n_seeds, n_sizes)
        Positive numbers. Each seed has a slope of its own.
    """
    x = np.log(sizes) - np.mean(np.log(sizes))
    slopes = np.log(errors) @ x / (x @ x)
    n = len(slopes)
    half = student.ppf(0.975, n - 1) * slopes.std(ddof=1) / np.sqrt(n)
    return float(slopes.mean()), float(half)


def run(kinds, cases, seeds, jobs, cache, show=lambda done, total: None):
    """(kind, n, budget) -> method -> array of shape (n_seeds,)."""
    cached = Memory(cache, verbose=0).cache(measure)
    keys = [(kind, *case) for kind in kinds for case in cases]
    tasks = [(*key, seed) for key in keys for seed in range(seeds)]
    parallel = Parallel(n_jobs=jobs, return_as="generator")
    results = []
    for result in parallel(delayed(cached)(*task) for task in tasks):
        results.append(result)
        show(len(results), len(tasks))
    found = {}
    for key, start in zip(keys, range(0, len(tasks), seeds)):
        part = results[start : start + seeds]
        found[key] = {name: np.array([r[name] for r in part]) for name in part[0]}
    return found


def table(found, kind, lengths, budgets, fixed):
    """Rows: method, slopes with their intervals, mean at the largest size."""
    length, budget = fixed
    rows = []
    for name in found[kind, length, budget]:
        cells = []
        for sizes, keys in (
            (lengths, [(kind, n, budget) for n in lengths]),
            (budgets, [(kind, length, c) for c in budgets]),
        ):
            errors = np.stack([found[key][name] for key in keys], axis=1)
            if np.all(errors > 0):
                cells.append("{:.2f} ± {:.2f}".format(*slope(sizes, errors)))
            else:
                cells.append("")
        rows.append((name, *cells, found[kind, lengths[-1], budget][name].mean()))
    return rows


def picture(found, kind, lengths, budgets, fixed, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    length, budget = fixed
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True)
    what = "squared error to the truth" if kind == "steps" else "dynamic regret"
    panels = (
        (lengths, [(kind, n, budget) for n in lengths], "number of rounds n", 1 / 3),
        (budgets, [(kind, length, c) for c in budgets], "total variation C", 2 / 3),
    )
    colors = plt.get_cmap("tab20").colors
    for ax, (sizes, keys, label, rate) in zip(axes, panels):
        for i, name in enumerate(found[keys[0]]):
            means = [found[key][name].mean() for key in keys]
            ax.plot(sizes, means, marker="o", ms=3, color=colors[i], label=name)
        guide = np.asarray(sizes) ** rate
        level = found[keys[-1]]["OnlineTVDenoiser, default"].mean() / guide[-1]
        ax.plot(sizes, level * guide, "k--", lw=1, label="rates 1/3 and 2/3")
        ax.set(xscale="log", yscale="log", xlabel=label)
    axes[0].set(ylabel=f"{what} (labels squared)", title=f"C = {budget:g}")
    axes[1].set(title=f"n = {length}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", help="folder to go on from after an interruption")
    parser.add_argument("--images", help="folder for rates_*.png")
    options = parser.parse_args()
    fixed = FIXED_LENGTH, FIXED_BUDGET
    cases = {(n, FIXED_BUDGET): None for n in LENGTHS}
    cases |= {(FIXED_LENGTH, c): None for c in BUDGETS}

    def show(done, total):
        print(f"\r{done} of {total} streams", end="", file=sys.stderr, flush=True)

    found = run(KINDS, cases, options.seeds, options.jobs, options.cache, show)
    print(file=sys.stderr)
    for kind in KINDS:
        print(f"\n{kind}: {KINDS[kind].__doc__}\n")
        print(f"| | slope in n | slope in C | at n = {LENGTHS[-1]:.0e} |")
        print("|---|---|---|---|")
        for name, in_n, in_c, last in table(found, kind, LENGTHS, BUDGETS, fixed):
            print(f"| {name} | {in_n} | {in_c} | {last:.0f} |")
        if options.images:
            path = f"{options.images}/rates_{kind}.png"
            picture(found, kind, LENGTHS, BUDGETS, fixed, path)


if __name__ == "__main__":
    main()
