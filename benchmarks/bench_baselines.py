"""Errors and costs of the baselines beside the denoiser.

    python benchmarks/bench_baselines.py [--seeds 40] [--labels 100000]

Squared errors to the truth, summed over the rounds, on the signals of Donoho and
Johnstone (n = 1024, standard deviation 7, unit noise), each label predicted before it
is seen; the same for labels in random order; and nanoseconds a label in one batch,
the least of several runs on blocks.
"""

import argparse
import time

import numpy as np

from sktvdenoise import GeometricCoverDenoiser, OnlineTVDenoiser
from sktvdenoise.baselines import (
    ARROWS,
    EWMA,
    OGD,
    Ader,
    Aligator,
    HaarThreshold,
    LinearTrendFilter,
    OnlineIsotonicRegression,
    RestartedOGD,
    SleepingExperts,
    SlidingMean,
)
from sktvdenoise.datasets import make_signal

SIGNALS = ["blocks", "bumps", "heavisine", "doppler"]
N = 1024


def online(n, bound, tv):
    """Name -> estimator, told what it must be told."""
    return {
        "last value": EWMA(1.0),
        "SlidingMean(10)": SlidingMean(10),
        "OGD": OGD(),
        "RestartedOGD": RestartedOGD(n, tv, bound),
        "Ader": Ader(n, bound),
        'SleepingExperts("theory")': SleepingExperts(bound=bound),
        "Aligator(1/2)": Aligator(n, learning_rate=0.5),
        "GeometricCoverDenoiser": GeometricCoverDenoiser(),
        "ARROWS": ARROWS(n, 1.0),
        "OnlineIsotonicRegression": OnlineIsotonicRegression(n, bound),
        'OnlineTVDenoiser("theory")': OnlineTVDenoiser(
            learning_rate="theory", bound=bound
        ),
        "OnlineTVDenoiser(1/2)": OnlineTVDenoiser(learning_rate=0.5),
        "OnlineTVDenoiser": OnlineTVDenoiser(),
    }


def best_of(models, y, truth):
    """Least error over models tuned in hindsight."""
    return min(squared(m.partial_fit_predict(range(N), y), truth) for m in models)


def squared(x, truth):
    return np.sum((x - truth) ** 2)


def errors(name, seed):
    """Method -> squared error to the truth on one stream."""
    y, truth = make_signal(name, N, random_state=seed)
    bound, tv = np.abs(y).max(), np.abs(np.diff(truth)).sum()
    x = np.arange(N)
    order = np.random.default_rng(seed).permutation(N)
    found = {
        name: squared(model.partial_fit_predict(x, y), truth)
        for name, model in online(N, bound, tv).items()
    }
    smoothings = [EWMA(a) for a in np.geomspace(0.02, 1, 40)]
    found["best EWMA in hindsight"] = best_of(smoothings, y, truth)
    windows = [SlidingMean(k) for k in np.unique(np.geomspace(1, 100, 30).astype(int))]
    found["best SlidingMean in hindsight"] = best_of(windows, y, truth)
    for model in (
        Aligator(N, learning_rate=0.5),
        GeometricCoverDenoiser(learning_rate=0.5),
        GeometricCoverDenoiser(),
    ):
        predictions = model.partial_fit_predict(order, y[order])
        found[f"random order: {model}"] = squared(predictions, truth[order])
    smooth = Aligator(N, learning_rate=0.5).smooth(x, y)
    found["offline: Aligator.smooth"] = squared(smooth, truth)
    curve = GeometricCoverDenoiser().fit(x, y).predict(x)
    found["offline: GeometricCoverDenoiser.predict"] = squared(curve, truth)
    found["offline: HaarThreshold"] = squared(HaarThreshold().fit(x, y).values_, truth)
    trends = [LinearTrendFilter(a) for a in np.geomspace(0.3, 300, 16)]
    found["offline: best LinearTrendFilter in hindsight"] = min(
        squared(model.fit(x, y).values_, truth) for model in trends
    )
    found["floor"] = np.sum(np.diff(truth, prepend=0.0) ** 2)
    return found


def nanoseconds(new, y, x, repeats=3):
    best = np.inf
    for _ in range(repeats):
        model = new()
        start = time.perf_counter()
        model.partial_fit_predict(x, y)
        best = min(best, time.perf_counter() - start)
    return 1e9 * best / len(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--labels", type=int, default=10**5)
    args = parser.parse_args()

    columns = []
    for name in SIGNALS:
        streams = [errors(name, 1000 + seed) for seed in range(args.seeds)]
        columns.append(
            {key: np.array([found[key] for found in streams]) for key in streams[0]}
        )
    print(f"| error | {' | '.join(SIGNALS)} |\n|---|{'---|' * len(SIGNALS)}")
    for key in columns[0]:
        cells = [
            f"{c[key].mean():.0f} ± {c[key].std() / np.sqrt(args.seeds):.0f}"
            for c in columns
        ]
        print(f"| {key} | {' | '.join(cells)} |")

    n = args.labels
    y, truth = make_signal("blocks", n, random_state=0)
    bound, tv = np.abs(y).max(), np.abs(np.diff(truth)).sum()
    x = np.arange(n)
    print(f"\n| cost at n = {n} | ns a label |\n|---|---|")
    for key in online(n, bound, tv):
        cost = nanoseconds(lambda key=key: online(n, bound, tv)[key], y, x)
        print(f"| {key} | {cost:.0f} |")
    order = np.random.default_rng(0).permutation(n)
    cost = nanoseconds(GeometricCoverDenoiser, y[order], order)
    print(f"| GeometricCoverDenoiser, random order | {cost:.0f} |")
    for model in (HaarThreshold(), LinearTrendFilter(100.0)):
        start = time.perf_counter()
        model.fit(x, y)
        cost = 1e9 * (time.perf_counter() - start) / n
        print(f"| {model}.fit | {cost:.0f} |")


if __name__ == "__main__":
    main()
