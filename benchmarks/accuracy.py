"""How good OnlineTVDenoiser is, beside rivals that are tuned in hindsight.

    python benchmarks/accuracy.py [--data FOLDER] [--set other] [--families]
        [--signals] [--jumps] [--guarantee] [--quick] [--json FILE]

Without a choice all measures are taken that need no data. Every error is that of
one-step-ahead predictions, from the second label on. The rivals (exponentially
weighted means, Kalman local levels, Holt's local trends, autoregressions with
forgetting: 86 settings) are given their best setting on each series, which no one
knows beforehand; a ratio of 1 means as good as that.
"""

import argparse
import json
import time

import numpy as np
import rivals
from families import FAMILIES, draw, jumps, student
from joblib import Memory
from series import folder_series, packaged_series

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.datasets import make_signal


class Candidate:
    """The denoiser under test, with the time that it takes."""

    seconds = 0.0
    labels = 0

    def __call__(self, y):
        """One-step-ahead predictions, each made before its label was seen."""
        start = time.perf_counter()
        predictions = OnlineTVDenoiser().partial_fit_predict(np.arange(len(y)), y)
        self.seconds += time.perf_counter() - start
        self.labels += len(y)
        return predictions


denoise = Candidate()


def guard(y):
    """Predictions of the learner with the theorem, whose loss bounds the denoiser's."""
    denoiser = OnlineTVDenoiser(learning_rate="theory")
    return denoiser.partial_fit_predict(np.arange(len(y)), y)


def squared_errors(y, target, counted):
    """Sums of the denoiser's squared errors, one for each row of y."""
    predictions = np.array([denoise(row) for row in y])
    return np.where(counted, (target - predictions) ** 2, 0.0)[:, 1:].sum(axis=1)


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(list(values)))))


def table(header, rows):
    """Print rows below a header, each column as wide as its widest entry."""
    cells = [header, *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for first, *rest in cells:
        row = [text.rjust(width) for text, width in zip(rest, widths[1:])]
        print("  ".join([first.ljust(widths[0]), *row]).rstrip())
    print()


def _cell(value):
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e6 else f"{value:.1e}"
    return str(value)


# Real series.


def real_series(series, losses):
    """Ratio to the best rival on each series."""
    names = rivals.names()
    result = {}
    for name, values in series.items():
        y = values[None]
        counted = np.ones_like(y, dtype=bool)
        by_rival = losses(y, y, counted)[0]
        best = int(np.argmin(by_rival))
        result[name] = {
            "n": y.size,
            "rival": names[best],
            "rival_error": by_rival[best] / (y.size - 1),
            "ratio": squared_errors(y, y, counted)[0] / by_rival[best],
        }
    return result


def print_real_series(title, result):
    print(f"{title}: mean squared error over the best rival's")
    table(
        ["series", "n", "best rival", "ratio"],
        [(name, r["n"], r["rival"], r["ratio"]) for name, r in result.items()],
    )
    ratios = {name: r["ratio"] for name, r in result.items()}
    worst = max(ratios, key=ratios.get)
    print(
        f"{title}: {len(ratios)} series, geometric mean "
        f"{geometric_mean(ratios.values()):.4f}, worst {ratios[worst]:.3f} ({worst})\n"
    )


# Families of synthetic streams.


def synthetic_families(seeds, losses):
    """Ratio to the best rival by family, variant and seed.

    Outliers don't count, and the rivals don't see them.
    """
    result = {}
    for family, variants in FAMILIES.items():
        for variant in variants:
            y, clean, outlier = draw(family, variant, seeds)
            std = clean.std(axis=1, keepdims=True)
            standard = (clean - clean.mean(axis=1, keepdims=True)) / std
            by_rival = losses(standard, standard, ~outlier) * std**2
            ratios = squared_errors(y, y, ~outlier) / by_rival.min(axis=1)
            result.setdefault(family, {})[variant] = ratios.tolist()
    return result


def print_families(result, each_variant):
    print("Synthetic families: mean squared error over the best rival's")
    means = {}
    rows = []
    for family, variants in result.items():
        by_variant = {v: geometric_mean(ratios) for v, ratios in variants.items()}
        means[family] = geometric_mean(by_variant.values())
        worst = max(by_variant, key=by_variant.get)
        rows.append((family, means[family], by_variant[worst], worst))
        if each_variant:
            rows.extend((f"  {v}", ratio, "", "") for v, ratio in by_variant.items())
    table(["family", "ratio", "worst", "in variant"], rows)
    without = [mean for family, mean in means.items() if "outliers" not in family]
    print(
        f"Synthetic families: geometric mean {geometric_mean(means.values()):.4f}, "
        f"without those of outliers {geometric_mean(without):.4f}\n"
    )


# Signals with known truth.

SIGNALS = ("blocks", "bumps", "heavisine", "doppler")
NOISE_LEVELS = {
    "sd 7, sigma 1": {"std": 7.0, "noise": 1.0},
    "max 1, sigma 0.5": {"max_abs": 1.0, "noise": 0.5},
}


def known_signals(seeds, losses):
    """Mean squared error to the truth, over the variance of the noise.

    The floor is that of predicting each label's truth by the one before it.
    """
    result = {}
    for level, params in NOISE_LEVELS.items():
        for name in SIGNALS:
            drawn = [make_signal(name, 2048, **params, random_state=s) for s in seeds]
            y, truth = (np.array(rows) / params["noise"] for rows in zip(*drawn))
            counted = np.ones_like(y, dtype=bool)
            rounds = y.shape[1] - 1
            by_rival = losses(y / y.std(), truth / y.std(), counted) * y.var()
            ewma = by_rival[:, : len(rivals.EWMA_RATES)]
            result.setdefault(level, {})[name] = {
                "denoiser": squared_errors(y, truth, counted).mean() / rounds,
                "EWMA": ewma.min(axis=1).mean() / rounds,
                "best rival": by_rival.min(axis=1).mean() / rounds,
                "floor": (np.diff(truth) ** 2).sum(axis=1).mean() / rounds,
            }
    return result


def print_signals(result):
    print("Donoho-Johnstone signals: mean squared error to the truth / sigma^2")
    columns = ["denoiser", "EWMA", "best rival", "floor"]
    rows = []
    for level, by_name in result.items():
        for name, figures in by_name.items():
            rows.append((f"{level}, {name}", *(figures[c] for c in columns)))
        means = [geometric_mean(f[c] for f in by_name.values()) for c in columns]
        rows.append((f"{level}, geometric mean", *means))
    table(["signal", *columns], rows)


# Few jumps, and outliers.


def few_jumps(seeds, losses, change_point_predictions):
    """Squared error to the truth, summed over the rounds: eight jumps of 3 to 5."""
    n = 16384
    kinds = {
        "Gaussian noise": lambda rng: rng.standard_normal(n),
        "t noise, 3 degrees of freedom": lambda rng: student(rng, n),
    }
    result = {}
    for kind, noise in kinds.items():
        rngs = [np.random.default_rng([2048, seed]) for seed in seeds]
        truth = np.array([jumps(rng, n, 8) for rng in rngs])
        y = truth + [noise(rng) for rng in rngs]
        counted = np.ones_like(y, dtype=bool)
        by_hazard = [
            ((change_point_predictions(row) - goal)[:, 1:] ** 2).sum(axis=1)
            for row, goal in zip(y, truth)
        ]
        by_rival = losses(y / y.std(), truth / y.std(), counted) * y.var()
        ewma = by_rival[:, : len(rivals.EWMA_RATES)]
        result[kind] = {
            "denoiser": squared_errors(y, truth, counted).mean(),
            "BOCPD": np.min(by_hazard, axis=1).mean(),
            "EWMA": ewma.min(axis=1).mean(),
            "best rival": by_rival.min(axis=1).mean(),
        }
    return result


def print_jumps(result):
    print(
        "Eight jumps of 3-5 sigma in 16384 rounds: squared error to the truth, summed"
    )
    columns = ["denoiser", "BOCPD", "EWMA", "best rival"]
    rows = [(kind, *(f[c] for c in columns)) for kind, f in result.items()]
    table(["noise", *columns], rows)


def outlier_streams(rng, n=20000):
    """Noise with outliers or a break: name -> (labels, truth, normal rounds)."""
    noise = rng.standard_normal(n)
    rounds = np.arange(n)

    def outliers(sizes):
        y = 1.0 + noise
        y[list(sizes)] = list(sizes.values())
        return y, np.ones(n), ~np.isin(rounds, list(sizes))

    def shift(before, after, scale):
        truth = np.where(rounds < n // 2, before, after)
        return truth + scale * noise, truth, rounds != n // 2

    often = np.flatnonzero(rng.random(n) < 0.01)
    return {
        "none": outliers({}),
        "1e12 in round 5": outliers({5: 1e12}),
        "1e12 in round 9": outliers({9: 1e12}),
        "1e12 in round 1001": outliers({1001: 1e12}),
        "1e12 in rounds 1001, 3001": outliers({1001: 1e12, 3001: 1e12}),
        "1e3, 1e6, 1e12": outliers({1001: 1e3, 3001: 1e6, 5001: 1e12}),
        "1 % of 1e6": outliers(dict.fromkeys(often, 1e6)),
        "1 % of 100": outliers(dict.fromkeys(often, 100.0)),
        "1 % of 30": outliers(dict.fromkeys(often, 30.0)),
        "1 % of +-30": outliers(
            dict(zip(often, rng.choice([-30.0, 30.0], len(often))))
        ),
        "1e12 in round 0": outliers({0: 1e12}),
        "1e12 in round 1": outliers({1: 1e12}),
        "1e12 in rounds 1001, 1002": outliers({1001: 1e12, 1002: 1e12}),
        "1e12 in rounds 1001, 1002, 1003": outliers(
            {1001: 1e12, 1002: 1e12, 1003: 1e12}
        ),
        "level shift of 1e6": shift(0.0, 1e6, 1.0),
        "0, then 100, no noise": shift(0.0, 100.0, 0.0),
    }


def outliers_and_breaks(seeds):
    """Squared error to the truth on normal rounds.

    Returns, by stream, the sum over the rounds, the number of rounds with an
    error above 6 (of an outlier or a break, the rounds that it spoils), and the
    mean over the last quarter.
    """
    result = {}
    for seed in seeds:
        streams = outlier_streams(np.random.default_rng([1024, seed]))
        for name, (y, truth, normal) in streams.items():
            squares = np.where(normal, (denoise(y) - truth) ** 2, 0.0)[1:]
            figures = squares.sum(), (squares > 36).sum(), squares[-5000:].mean()
            result.setdefault(name, []).append(figures)
    names = ("sum", "rounds spoilt", "last quarter's mean")
    return {
        stream: dict(zip(names, np.mean(figures, axis=0).tolist()))
        for stream, figures in result.items()
    }


def print_outliers(result):
    print(
        "Outliers and breaks: squared error to the truth on the other rounds, sigma 1"
    )
    columns = ["sum", "rounds spoilt", "last quarter's mean"]
    rows = [
        (name, f"{f['sum']:.4g}", f["rounds spoilt"], f"{f[columns[2]]:.4g}")
        for name, f in result.items()
    ]
    table(["stream", *columns], rows)


# Guarantee.


def hostile_streams(rng, n):
    """Streams on which a learner may lose to the guard."""
    rounds = np.arange(n)
    signs = rng.choice([-1.0, 1.0], n)
    spike = np.ones(n)
    spike[n // 2] = 1e12
    return {
        "alternating signs": np.where(rounds % 2, 1.0, -1.0),
        "random signs": signs,
        "jumps at powers of two": np.where(
            np.floor(np.log2(rounds + 1)) % 2, 1.0, -1.0
        ),
        "random blocks": signs[rounds // 20],
        "growing scale": signs * 1.001**rounds,
        "one 1e12 in constants": spike,
        "one 1e12 in noise": spike + rng.standard_normal(n),
    }


def adversaries(rng, n):
    """Labels chosen in view of both predictions: name -> f(round, output, guard)."""
    signs = rng.choice([-1.0, 1.0], n)
    often = rng.random(n) < 0.5

    def for_guard(t, x, g):
        """The label in [-1, 1] that costs most; any sign where both agree."""
        return np.sign(g - x) or signs[t]

    return {
        "for the guard": for_guard,
        "for the guard, half of the time": lambda t, x, g: (
            for_guard(t, x, g) if often[t] else signs[t]
        ),
        "for the guard, or 0": lambda t, x, g: for_guard(t, x, g) if often[t] else 0.0,
        "for the guard, where far": lambda t, x, g: (
            np.sign(g - x) if abs(g - x) > 0.05 else -np.sign(x) or 1.0
        ),
        "for the guard, growing": lambda t, x, g: for_guard(t, x, g) * 1.001**t,
        "for the guard, doubling": lambda t, x, g: (
            for_guard(t, x, g) * 2.0 ** (t // 1000)
        ),
        "against the output": lambda t, x, g: -1.0 if x > 0 else 1.0,
        "against both": lambda t, x, g: -1.0 if x + g > 0 else 1.0,
    }


def play(learners, choose, n):
    """Labels and both learners' predictions."""
    rows = np.empty((n, 3))
    for t in range(n):
        x, g = (learner.predict_one() for learner in learners)
        y = float(choose(t, x, g))
        for learner in learners:
            learner.learn_one(y)
        rows[t] = y, x, g
    return rows.T


def largest_excess(y, x, g):
    """Excess of the loss over the guard's, in units of the square of B so far."""
    square = np.maximum.accumulate(y**2)
    excess = np.cumsum((g - x) * (2 * y - x - g))
    return float((excess[square > 0] / square[square > 0]).max())


def guarantee(seeds, n_streams=5000, n_adversaries=100_000):
    """Largest excess over seeds, and the number of seeds in which the guard joined."""
    result = {}

    def note(name, excess, denoiser):
        joined = denoiser.member_weights_["guard"] > 0
        worst, seeds_joined = result.get(name, (-np.inf, 0))
        result[name] = max(worst, excess), seeds_joined + joined

    for seed in seeds:
        rng = np.random.default_rng([512, seed])
        for name, y in hostile_streams(rng, n_streams).items():
            denoiser, rounds = OnlineTVDenoiser(), np.arange(len(y))
            x = denoiser.partial_fit_predict(rounds, y)
            note(name, largest_excess(y, x, guard(y)), denoiser)
        for name, choose in adversaries(rng, n_adversaries).items():
            learners = [
                OnlineTVDenoiser(learning_rate=rate, keep_history=False)
                for rate in ("auto", "theory")
            ]
            rows = play(learners, choose, n_adversaries)
            note(name, largest_excess(*rows), learners[0])
    return result


def print_guarantee(result, n_seeds):
    print("Largest excess of loss over the guard's, over B^2; proven: at most 20")
    rows = [
        (name, excess, f"{joined} of {n_seeds}")
        for name, (excess, joined) in result.items()
    ]
    table(["stream", "excess", "guard joined"], rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", metavar="FOLDER", help="real series of the benchmark's data folder")
    add("--set", choices=["other"], help="real series bundled with other packages")
    add("--families", action="store_true", help="families of synthetic streams")
    add("--variants", action="store_true", help="print each variant of the families")
    add("--signals", action="store_true", help="Donoho-Johnstone signals")
    add("--jumps", action="store_true", help="few jumps, outliers and breaks")
    add("--guarantee", action="store_true", help="excess over the guard")
    add("--seeds", type=int, metavar="N", help="number of seeds of every measure")
    add("--first-seed", type=int, default=0, metavar="SEED")
    add("--quick", action="store_true", help="one seed where none are given")
    add(
        "--cache",
        metavar="FOLDER",
        help="keep what is independent of the denoiser; empty it when a rival changes",
    )
    add("--json", metavar="FILE", help="write all figures to a file")
    options = parser.parse_args()
    chosen = ("data", "set", "families", "variants", "signals", "jumps", "guarantee")
    everything = not any(getattr(options, name) for name in chosen)

    def seeds(usual):
        number = options.seeds or (1 if options.quick else usual)
        return range(options.first_seed, options.first_seed + number)

    memory = Memory(options.cache, verbose=0)
    losses = memory.cache(rivals.losses)
    bocpd = memory.cache(rivals.change_point_predictions)
    results = {}
    if options.data:
        results["data"] = real_series(folder_series(options.data), losses)
        print_real_series("Real series", results["data"])
    if options.set == "other":
        series, absent = packaged_series()
        if absent:
            print("Series left out, not installed:", ", ".join(absent), "\n")
        if not series:
            parser.error("--set other: no package with series is installed")
        results["other"] = real_series(series, losses)
        print_real_series("Other series", results["other"])
    if options.families or options.variants or everything:
        results["families"] = synthetic_families(seeds(4), losses)
        print_families(results["families"], options.variants)
    if options.signals or everything:
        results["signals"] = known_signals(seeds(20), losses)
        print_signals(results["signals"])
    if options.jumps or everything:
        results["jumps"] = few_jumps(seeds(10), losses, bocpd)
        print_jumps(results["jumps"])
        results["outliers"] = outliers_and_breaks(seeds(4))
        print_outliers(results["outliers"])
    if options.guarantee or everything:
        results["guarantee"] = guarantee(seeds(4))
        print_guarantee(results["guarantee"], len(seeds(4)))
    if denoise.labels:
        time_taken = 1e9 * denoise.seconds / denoise.labels
        print(f"The denoiser took {time_taken:.0f} ns a label")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
