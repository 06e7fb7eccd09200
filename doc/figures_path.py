"""Figure of the theory page on the path: groups, clocks and merge times.

Run ``python doc/figures_path.py``; it writes ``doc/images/path.png``.
"""

from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import fused_lasso_path
from sktvdenoise.datasets import load_nile

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#999999"


def draw_heights(ax, y):
    """Every sample's value over alpha; extrema, which move, in colour."""
    path = fused_lasso_path(y)
    alphas = np.append(path.alphas, 1.06 * path.alpha_max)
    for a, b in pairwise(alphas):
        low, high = path.solution(a), path.solution(b)
        for i in range(len(y)):
            moves = high[i] - low[i]
            tiny = 1e-9 * np.ptp(y)
            color = GREY if abs(moves) < tiny else (BLUE if moves > 0 else VERMILION)
            ax.plot([a, b], [low[i], high[i]], color=color, linewidth=1.2)
    for a in path.alphas[1:]:
        ax.axvline(a, color="k", linewidth=0.4, linestyle="dotted")
    ax.set(xlabel="alpha", ylabel="u", title="maxima fall, minima rise, others stand")


def draw_clocks(ax):
    """One event, and what makes it final: lower bounds of the neighbours' arrival."""
    k = 0.5
    for place, height, label, color in (
        (0.0, 0.0, "A", BLUE),
        (1.0, 3.0, "X", VERMILION),
        (3.0, 0.4, "B", BLUE),
    ):
        ax.plot(place, height, "o", color=color)
        ax.annotate(label, (place, height), (6, 6), textcoords="offset points")
    ax.plot(2.0, 1.8, "o", color=GREY)
    ax.annotate("S", (2.0, 1.8), (6, 6), textcoords="offset points")
    ax.axhline(1.8, color=GREY, linewidth=0.8, linestyle="dashed")
    ax.annotate("", (1.0, 1.8), (1.0, 3.0), arrowprops={"arrowstyle": "->"})
    ax.text(1.05, 2.3, f"t = {k * 1.2:g}")
    for place, height in ((0.0, 0.0), (3.0, 0.4)):
        ax.annotate("", (place, 1.8), (place, height), arrowprops={"arrowstyle": "->"})
        ax.text(place + 0.05, 0.9, f"T ≥ {k * (1.8 - height):.1f}")
    ax.set(
        xlim=(-0.4, 3.9),
        ylim=(-0.3, 3.5),
        xlabel="group",
        ylabel="height",
        title="X absorbs S at t = 0.6\nif A and B are not at h before",
    )
    ax.set_xticks([])


def draw_knots(ax, y):
    path = fused_lasso_path(y)
    ax.plot(path.alphas[1:], path.tv[1:] / path.tv[0], label="TV / TV(y)")
    ax.plot(path.alphas[1:], path.loss[1:] / path.loss[-1], label="loss / last loss")
    ax.step(
        path.alphas[1:], path.n_pieces[1:] / len(y), where="post", label="pieces / n"
    )
    ax.set(xscale="log", xlabel="alpha", title="tables of the Nile, 100 years")
    ax.legend(loc="center left")


def main(target):
    _, axes = plt.subplots(ncols=3, figsize=(12, 3.8), layout="constrained")
    draw_heights(axes[0], np.array([0.0, 3, 1, 4, 2, 2, 6, 5, 3, 4]))
    draw_clocks(axes[1])
    draw_knots(axes[2], load_nile(return_X_y=True)[1])
    plt.savefig(target, dpi=110)


if __name__ == "__main__":
    main(Path(__file__).parent / "images" / "path.png")
