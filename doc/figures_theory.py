"""Figure of the page on the theory: labels, oracle, bins and signs.

Run ``python doc/figures_theory.py``; it writes ``doc/images/partition.png``.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from sktvdenoise.datasets import load_nile
from sktvdenoise.theory import PartitionDisplay

if __name__ == "__main__":
    X, y = load_nile(return_X_y=True)
    display = PartitionDisplay.from_labels(y - y.mean(), tv_budget=600.0)
    display.axes_[0].set(ylabel="flow minus its mean", title="The key partition")
    display.axes_[1].set(xlabel="year since 1871")
    display.figure_.savefig(Path(__file__).parent / "images" / "partition.png", dpi=120)
