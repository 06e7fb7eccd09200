"""What each member of the default's pool earns.

    python benchmarks/ablation.py [--seeds N] [--cache FOLDER]

For each row of the table `POOL`, the same measures without it: the geometric mean
over the synthetic families but those of outliers (errors over the best rival's), the
worst change of a family, the Donoho-Johnstone signals (squared error to the truth
over the noise variance) and eight jumps in 16384 rounds under Gaussian noise.
"""

import argparse

import numpy as np
import rivals
from accuracy import denoise, geometric_mean, synthetic_families, table
from joblib import Memory

from sktvdenoise import _stream
from sktvdenoise.datasets import make_signal
from sktvdenoise.experts import POOL

SIGNALS = ("blocks", "bumps", "heavisine", "doppler")


def use(pool):
    """Streams that start from now on have this pool."""
    rows, size = _stream.make_layout(pool)
    _stream.POOL, _stream._ROWS, _stream._MEMORY_SIZE = pool, rows, size
    _stream._LAYOUT = rows.view(np.uint8)


def signals(seeds, **size):
    """Geometric mean over the signals of the error to the truth."""
    errors = []
    for name in SIGNALS:
        by_seed = []
        for seed in seeds:
            y, truth = make_signal(name, 2048, random_state=seed, **size)
            by_seed.append(np.mean((denoise(y) - truth) ** 2))
        errors.append(np.mean(by_seed))
    return geometric_mean(errors) / size.get("noise", 1.0) ** 2


def few_jumps(seeds, n=16384):
    total = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        steps = np.zeros(n)
        where = rng.choice(np.arange(1, n), 8, replace=False)
        steps[where] = rng.uniform(3, 5, 8) * rng.choice([-1, 1], 8)
        level = np.cumsum(steps)
        total.append(np.sum((denoise(level + rng.standard_normal(n)) - level) ** 2))
    return float(np.mean(total))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=4, metavar="N")
    parser.add_argument("--cache", metavar="FOLDER", help="keep the rivals' errors")
    options = parser.parse_args()
    seeds = range(options.seeds)
    losses = Memory(options.cache, verbose=0).cache(rivals.losses)
    rows, full = [], None
    for removed in [None, *(name for name, *_ in POOL)]:
        use(tuple(row for row in POOL if row[0] != removed))
        by_family = {
            family: geometric_mean(np.concatenate(list(variants.values())))
            for family, variants in synthetic_families(seeds, losses).items()
            if "outliers" not in family
        }
        full = full or by_family
        worst = max(by_family, key=lambda family: by_family[family] / full[family])
        rows.append(
            (
                removed or "nothing",
                geometric_mean(by_family.values()),
                f"{worst} {full[worst]:.3f} -> {by_family[worst]:.3f}",
                signals(seeds, std=7.0),
                signals(seeds, max_abs=1.0, noise=0.5),
                few_jumps(seeds),
            )
        )
    use(POOL)
    table(["without", "families", "hurt most", "sd 7", "max 1", "jumps"], rows)


if __name__ == "__main__":
    main()
