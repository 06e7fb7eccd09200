"""How often labels fall inside the intervals of OnlineTVDenoiser.

    python benchmarks/coverage.py [--data FOLDER] [--set other] [--families]
        [--seeds N]

Without a choice the families of synthetic streams are measured. Every interval was
known before its label was seen; the first two labels, which have none, don't count,
and neither do marked outliers. What is calibrated is 90 %; the other columns show
how far the errors are from a normal distribution. The width is that of the 90 %
intervals on average, over that of the intervals of one width for all labels that,
in hindsight, hold 90 % of them.
"""

import argparse

import numpy as np
from families import FAMILIES, draw
from scipy.stats import norm
from series import folder_series, packaged_series

from sktvdenoise import OnlineTVDenoiser

COVERAGES = (0.5, 0.8, 0.9, 0.95)
REACHES = norm.ppf(0.5 + np.array(COVERAGES) / 2)


def measure(streams, counted=None):
    """Parts of the labels inside the intervals, and the relative width.

    Parameters
    ----------
    streams : array-like of shape (n_streams, n_rounds)
    counted : boolean ndarray of shape (n_streams, n_rounds), default=None

    Returns
    -------
    figures : ndarray of shape (5,)
        Means over the streams: one for each of `COVERAGES`, and the width.
    """
    figures = []
    for i, y in enumerate(streams):
        predictions, std = OnlineTVDenoiser(keep_history=False).partial_fit_predict(
            np.arange(len(y)), y, return_std=True
        )
        used = np.isfinite(std)
        if counted is not None:
            used &= counted[i]
        error, std = np.abs(y - predictions)[used], std[used]
        inside = (error <= REACHES[:, None] * std).mean(axis=1)
        width = REACHES[2] * std.mean() / np.quantile(error, COVERAGES[2])
        figures.append([*inside, width])
    return np.mean(figures, axis=0)


def print_table(title, rows):
    """Print (name, number of labels, figures), and what is out of 85-95 %."""
    width = max(len(name) for name, *_ in rows)
    columns = [f"{c:.0%}" for c in COVERAGES] + ["  width"]
    print(f"{title:{width}}      n  " + " ".join(f"{c:>6}" for c in columns))
    for name, n, (*inside, wide) in rows:
        cells = " ".join(f"{100 * part:6.1f}" for part in inside)
        print(f"{name:{width}} {n:6d}  {cells} {wide:8.3g}")
    parts = np.array([figures[2] for *_, figures in rows])
    off = [name for (name, *_), part in zip(rows, parts) if not 0.85 <= part <= 0.95]
    means = " ".join(f"{100 * c:6.1f}" for c in np.mean([f[:4] for *_, f in rows], 0))
    print(f"{'mean':{width}} {'':6}  {means}")
    print(
        f"{len(rows)} rows; 90 % intervals hold {100 * parts.min():.1f} to "
        f"{100 * parts.max():.1f} %; out of 85-95 %: {', '.join(off) or 'none'}\n"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", metavar="FOLDER", help="real series of the benchmark's data folder")
    add("--set", choices=["other"], help="real series bundled with other packages")
    add("--families", action="store_true", help="families of synthetic streams")
    add("--seeds", type=int, default=4, metavar="N", help="streams of each family")
    options = parser.parse_args()

    sets = {}
    if options.data:
        sets["Real series"] = folder_series(options.data)
    if options.set:
        sets["Other series"], absent = packaged_series()
        if absent:
            print("Series left out, not installed:", ", ".join(absent), "\n")
    for title, series in sets.items():
        rows = [(name, len(y), measure([y])) for name, y in series.items()]
        print_table(title, rows)
    if options.families or not sets:
        rows = []
        for family, variants in FAMILIES.items():
            for variant, (n, *_) in variants.items():
                y, _, outlier = draw(family, variant, range(options.seeds))
                rows.append((f"{family}: {variant}", n, measure(y, ~outlier)))
        print_table("Families", rows)


if __name__ == "__main__":
    main()
