"""Breakpoints of streams: error rates, delays, agreement with annotators, cost.

    python benchmarks/breakpoints.py [--streams 100] [--data DIRECTORY]

Streams are simulated, with seeds 0, 1, ..; noise has standard deviation 1. Read
at the end of the stream unless said otherwise. DIRECTORY holds annotated series,
one csv file each (the labels in the last column, a line of names at the top, NaN
where one is missing), and changepoint_annotations.json: series -> annotator ->
first index of each new segment, from 0.

Covering: of each true segment the largest overlap (intersection over union) with
a found one, averaged over labels, then over annotators. F1: index 0 is in every
set; a true breakpoint is matched by the nearest unused found one within five;
precision against all annotators together, recall averaged over them.
"""

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from sktvdenoise.breakpoints import new_state, push, read


def find(y):
    rows = np.flatnonzero(np.isfinite(y))
    state = new_state()
    push(state, y[rows], rows)
    return read(state)


# Noise of n labels.


def white(rng, n):
    return rng.standard_normal(n)


def correlated(rho):
    def noise(rng, n):
        u = rng.standard_normal(n)
        for t in range(1, n):
            u[t] = rho * u[t - 1] + np.sqrt(1.0 - rho * rho) * u[t]
        return u

    return noise


def walk(rng, n):
    return np.cumsum(rng.standard_normal(n))


def heavy(rng, n):
    return rng.standard_t(3, n) / np.sqrt(3.0)


def outliers(rng, n):
    return white(rng, n) + 20.0 * (rng.random(n) < 0.01) * rng.choice([-1, 1], n)


def seasonal(rng, n):
    return 0.6 * white(rng, n) + 1.1 * np.sin(np.arange(n) / 12 * 2.0 * np.pi)


def uneven(rng, n):
    return white(rng, n) * np.repeat(np.exp(rng.normal(0, 0.5, n // 80 + 1)), 80)[:n]


# Signals of n labels, with their breakpoints.


def flat(rng, n):
    return np.zeros(n), []


def trend(rng, n):
    return rng.uniform(3.0, 20.0) * np.arange(n) / n, []


def bent(rng, n):
    return rng.uniform(5.0, 20.0) * (np.arange(n) / n) ** 2, []


def places(rng, n, k):
    """k breakpoints, at least n / (3 k + 3) labels apart and from the ends."""
    while True:
        cuts = np.sort(rng.choice(np.arange(1, n), k, replace=False))
        if np.diff(cuts, prepend=0, append=n).min() >= n / (3 * k + 3):
            return cuts


def steps(k, low, high):
    def signal(rng, n):
        cuts = places(rng, n, k)
        jumps = np.zeros(n)
        jumps[cuts] = rng.uniform(low, high, k) * rng.choice([-1, 1], k)
        return np.cumsum(jumps), cuts

    return signal


def kinks(k, low, high):
    """Changes of slope, each worth low to high over the segment that follows."""

    def signal(rng, n):
        cuts = places(rng, n, k)
        bends = np.zeros(n)
        lengths = np.diff(cuts, append=n)
        bends[cuts] = rng.uniform(low, high, k) / lengths * rng.choice([-1, 1], k)
        return np.cumsum(np.cumsum(bends)), cuts

    return signal


def steps_on_trend(rng, n):
    level, cuts = steps(1, 3.0, 6.0)(rng, n)
    return level + trend(rng, n)[0], cuts


def every_fifty(rng, n):
    cuts = np.arange(50, n, 50)
    jumps = np.zeros(n)
    jumps[cuts] = 7.0 * rng.choice([-1, 1], len(cuts))
    return np.cumsum(jumps), cuts


FAMILIES = {
    "white": (white, flat, (7, 20, 50, 200, 1000)),
    "AR(1) 0.3": (correlated(0.3), flat, (1000,)),
    "AR(1) 0.7": (correlated(0.7), flat, (40, 200, 1000)),
    "AR(1) 0.9": (correlated(0.9), flat, (200, 1000)),
    "AR(1) 0.95": (correlated(0.95), flat, (200, 1000)),
    "random walk": (walk, flat, (200, 1000)),
    "trend": (white, trend, (50, 200, 1000)),
    "trend, AR(1) 0.7": (correlated(0.7), trend, (200, 1000)),
    "parabola": (white, bent, (200, 1000)),
    "season": (seasonal, flat, (200, 1000)),
    "season, trend": (seasonal, trend, (200, 1000)),
    "t noise, 3 d.f.": (heavy, flat, (1000,)),
    "1 % outliers of 20": (outliers, flat, (1000,)),
    "uneven variance": (uneven, flat, (400,)),
    "step of 1": (white, steps(1, 1, 1), (1000,)),
    "step of 2": (white, steps(1, 2, 2), (50, 200, 1000)),
    "step of 5": (white, steps(1, 5, 5), (50, 200, 1000)),
    "step of 10": (white, steps(1, 10, 10), (50, 200, 1000)),
    "6 steps of 2 to 8": (white, steps(6, 2, 8), (400, 1000)),
    "19 steps of 7": (white, every_fifty, (1000,)),
    "2 steps of 3 to 7, AR(1) 0.7": (correlated(0.7), steps(2, 3, 7), (300,)),
    "step of 4 to 8, AR(1) 0.9": (correlated(0.9), steps(1, 4, 8), (300,)),
    "2 steps of 3 to 7, t noise": (heavy, steps(2, 3, 7), (300,)),
    "2 steps of 3 to 7, outliers": (outliers, steps(2, 3, 7), (300,)),
    "step of 3 to 6, season": (seasonal, steps(1, 3, 6), (200,)),
    "step of 3 to 6, trend": (white, steps_on_trend, (200,)),
    "step of 8 to 20, random walk": (walk, steps(1, 8, 20), (200,)),
    "kink of 6 to 20": (white, kinks(1, 6, 20), (60, 200)),
    "2 kinks of 6 to 20": (white, kinks(2, 6, 20), (300,)),
    "kink of 6 to 20, AR(1) 0.7": (correlated(0.7), kinks(1, 6, 20), (200,)),
}


def make(noise, signal, n, seed):
    rng = np.random.default_rng([seed, n])
    level, cuts = signal(rng, n)
    return level + noise(rng, n), np.asarray(cuts, dtype=int)


def covering(true, found, n):
    covered = 0.0
    for a, b in pairwise([0, *true, n]):
        overlap = (
            max(0, min(b, d) - max(a, c)) / (max(b, d) - min(a, c))
            for c, d in pairwise([0, *found, n])
        )
        covered += (b - a) * max(overlap) / n
    return covered


def n_matched(true, found, margin):
    unused, n = set(found), 0
    for cut in sorted(true):
        nearest = min(unused, key=lambda x: abs(x - cut), default=np.inf)
        if abs(nearest - cut) <= margin:
            unused.remove(nearest)
            n += 1
    return n


def scores(annotations, found, n, margin=5):
    """Mean covering and F1."""
    found = [int(x) for x in found]
    cover = np.mean([covering(cuts, found, n) for cuts in annotations])
    sets = [{0, *map(int, cuts)} for cuts in annotations]
    predicted = {0, *found}
    precision = n_matched(set().union(*sets), predicted, margin) / len(predicted)
    recall = np.mean([n_matched(s, predicted, margin) / len(s) for s in sets])
    return cover, 2.0 * precision * recall / (precision + recall)


def print_families(n_streams):
    print("| stream | n | none, % | in ±2, % | in ±5, % | too many | covering | F1 |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (noise, signal, lengths) in FAMILIES.items():
        for n in lengths:
            none = near = close = cuts_seen = extra = 0
            score = []
            for seed in range(n_streams):
                y, cuts = make(noise, signal, n, seed)
                found = find(y)
                none += len(found) == 0
                near += n_matched(cuts, found, 2)
                close += n_matched(cuts, found, 5)
                cuts_seen += len(cuts)
                extra += max(0, len(found) - len(cuts))
                score.append(scores([cuts], found, n))
            shares = (
                f"{100 * near / cuts_seen:.0f} | {100 * close / cuts_seen:.0f}"
                if cuts_seen
                else " | "
            )
            print(
                f"| {name} | {n} | {100 * none / n_streams:.0f} | {shares} "
                f"| {extra / n_streams:.2f} | "
                + " | ".join(f"{x:.3f}" for x in np.mean(score, axis=0))
                + " |"
            )


def print_delays(n_streams):
    print("\n| step after 200 labels | labels until listed within ±5, median | 90 % |")
    print("|---|---|---|")
    for size in (2.0, 3.0, 5.0, 10.0):
        delays = []
        for seed in range(n_streams):
            y = np.random.default_rng(seed).standard_normal(400)
            y[200:] += size
            state = new_state()
            push(state, y[:200])
            delay = 0
            while delay < 200 and not np.any(np.abs(read(state) - 200) <= 5):
                push(state, y[200 + delay : 201 + delay])
                delay += 1
            delays.append(delay)
        print(
            f"| {size:g} | {np.median(delays):.0f} | {np.quantile(delays, 0.9):.0f} |"
        )
    spans = ((5, 20), (20, 40), (40, 80), (80, 200), (200, 400))
    print("\nRead after every label: streams with a breakpoint at that time, %\n")
    print("| stream | " + " | ".join(f"{a}-{b}" for a, b in spans) + " | ever |")
    print("|---|" + "---|" * (len(spans) + 1))
    for name in ("white", "AR(1) 0.7", "trend"):
        noise, signal, _ = FAMILIES[name]
        listed = np.zeros((n_streams, 400), dtype=bool)
        for seed in range(n_streams):
            state = new_state()
            for t, label in enumerate(make(noise, signal, 400, seed)[0]):
                push(state, [label])
                listed[seed, t] = len(read(state)) > 0
        shares = [listed[:, a - 1 : b].mean() for a, b in spans]
        shares.append(listed.any(axis=1).mean())
        print(f"| {name} | " + " | ".join(f"{100 * x:.1f}" for x in shares) + " |")


def print_annotated(directory):
    annotations = json.loads((directory / "changepoint_annotations.json").read_text())
    print("\n| series | n | covering | F1 | none: covering | F1 | breakpoints |")
    print("|---|---|---|---|---|---|---|")
    total = []
    for name, by_annotator in sorted(annotations.items()):
        path = directory / f"{name}.csv"
        if not path.exists():
            continue
        y = np.genfromtxt(path, delimiter=",", skip_header=1, ndmin=2)[:, -1]
        found, cuts = find(y), list(by_annotator.values())
        row = scores(cuts, found, len(y)) + scores(cuts, [], len(y))
        total.append(row)
        numbers = " | ".join(f"{x:.2f}" for x in row)
        print(f"| {name} | {len(y)} | {numbers} | {' '.join(map(str, found))} |")
    numbers = " | ".join(f"{x:.3f}" for x in np.mean(total, axis=0))
    print(f"| mean of {len(total)} | | {numbers} | |")


def print_costs():
    print("\n| n | ns a label | microseconds a read | bytes of state |")
    print("|---|---|---|---|")
    for n in (100, 1000, 100_000):
        y = np.random.default_rng(0).standard_normal(n)
        label = reading = np.inf
        for _ in range(20):
            state = new_state()
            start = time.perf_counter()
            push(state, y)
            middle = time.perf_counter()
            read(state)
            label = min(label, middle - start)
            reading = min(reading, time.perf_counter() - middle)
        size = sum(array.nbytes for array in state)
        print(f"| {n} | {1e9 * label / n:.0f} | {1e6 * reading:.0f} | {size} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=100, help="of each family")
    parser.add_argument("--data", type=Path, help="directory of annotated series")
    args = parser.parse_args()
    print_families(args.streams)
    print_delays(max(1, args.streams // 5))
    if args.data:
        print_annotated(args.data)
    print_costs()


if __name__ == "__main__":
    main()
