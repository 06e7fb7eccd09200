"""Nanoseconds a label of the streaming kernels, alone and beside peers.

    python benchmarks/bench_online.py [--peers]

Each figure is the least of several runs on fresh labels: noise around a level
with ten jumps. Peers, one label after the other as they offer it: river's
running mean and ADWIN, scikit-learn's SGDRegressor.
"""

import argparse
import time

import numpy as np

from sktvdenoise import OnlineTVDenoiser


def make_labels(n, seed):
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.normal(0.0, 3.0, 10), -(-n // 10))[:n]
    return level + rng.standard_normal(n)


def nanoseconds(run, n, repeats):
    """Least time of run(labels) over repeats, by label."""
    best = np.inf
    for seed in range(repeats):
        y = make_labels(n, seed)
        start = time.perf_counter()
        run(y)
        best = min(best, time.perf_counter() - start)
    return 1e9 * best / n


def denoise(**params):
    def run(y):
        OnlineTVDenoiser(**params).partial_fit_predict(np.arange(len(y)), y)

    return run


def row_by_row(y):
    """One row a call through the scikit-learn interface, as arrays."""
    denoiser = OnlineTVDenoiser(learning_rate=0.5)
    for i, position in enumerate(np.arange(float(len(y)))[:, None, None]):
        denoiser.partial_fit(position, y[i : i + 1])
        denoiser.predict(position)


def one_by_one(**params):
    def run(y):
        denoiser = OnlineTVDenoiser(**params)
        for label in y.tolist():
            denoiser.predict_one()
            denoiser.learn_one(label)

    return run


def peers():
    from river import drift, stats
    from sklearn.linear_model import SGDRegressor

    def river_mean(y):
        mean = stats.Mean()
        for label in y.tolist():
            mean.update(label)
            mean.get()

    def adwin(y):
        detector = drift.ADWIN()
        for label in y.tolist():
            detector.update(label)

    def sgd(y):
        model, row = SGDRegressor(), np.ones((1, 1))
        for label in y:
            model.partial_fit(row, [label])
            model.predict(row)

    return {
        "river stats.Mean": (river_mean, 10**5),
        "river ADWIN": (adwin, 10**5),
        "SGDRegressor, row by row": (sgd, 1000),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="run the peers too")
    with_peers = parser.parse_args().peers
    print("| what | n | ns a label |\n|---|---|---|")
    for rate in (0.5, "theory", "mixable", "auto"):
        for n in (10**4, 10**5, 10**6):
            figure = nanoseconds(denoise(learning_rate=rate), n, 5)
            print(f"| learning_rate={rate!r} | {n} | {figure:.0f} |")
    for rate in (0.5, "theory"):
        n = 10**4
        figure = nanoseconds(denoise(learning_rate=rate, pruning=None), n, 3)
        print(
            f"| learning_rate={rate!r}, pruning=None | {n} | {figure:.0f}, "
            f"{2 * figure / n:.1f} an expert and round |"
        )
    figure = nanoseconds(row_by_row, 2000, 3)
    print(f"| partial_fit and predict, row by row | 2000 | {figure:.0f} |")
    for rate in (0.5, "auto"):
        for kept in (False, True):
            run = one_by_one(learning_rate=rate, keep_history=kept)
            figure = nanoseconds(run, 20000, 3)
            print(
                f"| predict_one and learn_one, {rate!r}, keep_history={kept} | 20000 "
                f"| {figure:.0f} |"
            )
    if with_peers:
        for name, (run, n) in peers().items():
            print(f"| {name} | {n} | {nanoseconds(run, n, 3):.0f} |")


if __name__ == "__main__":
    main()
