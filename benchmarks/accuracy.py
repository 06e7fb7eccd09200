"""How good OnlineTVDenoiser is, beside rivals that are tuned in hindsight.

    python benchmarks/accuracy.py [--data FOLDER] [--set other] [--families]
                                  [--seeds N] [--quick] [--json FILE]

Every error is that of one-step-ahead predictions, from the second label on. The
rivals (exponentially weighted means, Kalman local levels, Holt's local trends,
autoregressions with forgetting: 86 settings) are given their best setting on each
series, which no one knows beforehand; a ratio of 1 means as good as that.
What doesn't change with the denoiser is kept in the folder `--cache`.
"""

import argparse
import json
import time

import numpy as np
import rivals
from families import FAMILIES, draw
from joblib import Memory
from series import folder_series, packaged_series

from sktvdenoise import OnlineTVDenoiser


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


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(list(values)))))


def table(rows, header):
    """Print rows below a header, each column as wide as its widest entry."""
    cells = [header, *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for cell in cells:
        first, *rest = (text.rjust(width) for text, width in zip(cell, widths))
        print("  ".join([first.strip().ljust(widths[0]), *rest]))
    print()


def _cell(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def squared_errors(y, target, counted):
    """Sums of the denoiser's squared errors, one for each row of y."""
    predictions = np.array([denoise(row) for row in y])
    return np.where(counted, (target - predictions) ** 2, 0.0)[:, 1:].sum(axis=1)


def real_series(series, losses):
    """Ratio to the best rival on each series."""
    names = rivals.names()
    result = {}
    for name, y in series.items():
        y = y[None]
        counted = np.ones_like(y, dtype=bool)
        by_rival = losses(y, counted)[0]
        best = int(np.argmin(by_rival))
        error = squared_errors(y, y, counted)[0]
        result[name] = {
            "n": y.size,
            "rival": names[best],
            "rival_error": by_rival[best] / (y.size - 1),
            "ratio": error / by_rival[best],
        }
    return result


def print_real_series(title, result):
    print(f"{title}: mean squared error over the best rival's")
    table(
        [(name, r["n"], r["rival"], r["ratio"]) for name, r in result.items()],
        ["series", "n", "best rival", "ratio"],
    )
    ratios = {name: r["ratio"] for name, r in result.items()}
    worst = max(ratios, key=ratios.get)
    print(
        f"{title}: {len(ratios)} series, geometric mean "
        f"{geometric_mean(ratios.values()):.4f}, worst {ratios[worst]:.3f} ({worst})\n"
    )


def synthetic_families(seeds, losses):
    """Ratio to the best rival by family, variant and seed.

    Outliers don't count, and the rivals don't see them.
    """
    result = {}
    for family, variants in FAMILIES.items():
        for variant in variants:
            y, clean, outlier = draw(family, variant, seeds)
            mean = clean.mean(axis=1, keepdims=True)
            std = clean.std(axis=1, keepdims=True)
            by_rival = losses((clean - mean) / std, ~outlier) * std**2
            errors = squared_errors(y, y, ~outlier)
            ratios = errors / by_rival.min(axis=1)
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
    table(rows, ["family", "ratio", "worst", "in variant"])
    without = [mean for family, mean in means.items() if "outliers" not in family]
    print(
        f"Synthetic families: geometric mean {geometric_mean(means.values()):.4f}, "
        f"without those of outliers {geometric_mean(without):.4f}\n"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="FOLDER", help="real series of a folder")
    parser.add_argument(
        "--set", choices=["other"], help="real series bundled with other packages"
    )
    parser.add_argument("--families", action="store_true", help="synthetic streams")
    parser.add_argument(
        "--variants", action="store_true", help="print each variant of the families"
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED")
    parser.add_argument("--quick", action="store_true", help="fewer seeds")
    parser.add_argument("--cache", metavar="FOLDER", help="keep the rivals' errors")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file")
    options = parser.parse_args()

    def seeds(usual):
        number = options.seeds or (1 if options.quick else usual)
        return range(options.first_seed, options.first_seed + number)

    losses = Memory(options.cache, verbose=0).cache(rivals.losses)
    results = {}
    if options.data:
        results["data"] = real_series(folder_series(options.data), losses)
        print_real_series("Real series", results["data"])
    if options.set == "other":
        series, absent = packaged_series()
        results["other"] = real_series(series, losses)
        print_real_series("Other series", results["other"])
        if absent:
            print("Left out, as not installed:", ", ".join(absent), "\n")
    if options.families:
        results["families"] = synthetic_families(seeds(4), losses)
        print_families(results["families"], options.variants)
    if denoise.labels:
        print(
            f"The denoiser took {1e9 * denoise.seconds / denoise.labels:.0f} ns a label"
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
