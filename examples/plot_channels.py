"""
Many channels that jump together
================================

Eight sensors of one machine. When it changes its state all of them move, each by little
compared with its noise. One by one they miss the changes; together they see them.
"""

# %%
# Three changes at the same times in all channels, by about 1.2 standard deviations of
# the noise.

import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import FusedLasso

rng = np.random.default_rng(0)
n, d = 400, 8
jumps = np.array([100, 180, 300])
heights = rng.choice([-1.2, 1.2], size=(len(jumps) + 1, d))
truth = np.cumsum(heights, axis=0)[np.searchsorted(jumps, np.arange(n), side="right")]
y = truth + rng.standard_normal((n, d))
minutes = np.arange(n)

# %%
# ``penalty="tv"`` lets each channel jump on its own, ``penalty="group"`` adds up the
# Euclidean norms of the steps across channels: a jump that all share costs little more
# than that of one. Each gets the penalty with the smaller error to the truth.


def best(penalty, alphas):
    fits = [FusedLasso(alpha, penalty=penalty).fit(minutes, y) for alpha in alphas]
    return min(fits, key=lambda fit: np.mean((fit.values_ - truth) ** 2))


alone, joint = (
    best("tv", np.geomspace(2, 40, 12)),
    best("group", np.geomspace(4, 80, 12)),
)
error = {
    "each on its own": np.sqrt(np.mean((alone.values_ - truth) ** 2)),
    "together": np.sqrt(np.mean((joint.values_ - truth) ** 2)),
}
print({name: f"{value:.3f}" for name, value in error.items()})
print("pieces:", alone.n_pieces_, "and", joint.n_pieces_)
assert error["together"] < 0.85 * error["each on its own"]
assert joint.n_pieces_ < alone.n_pieces_

# %%
# Two of the channels at the left. At the right is every step of every channel, the
# larger the bigger: alone, they step where the noise makes them, and mostly at
# different times.

fig = plt.figure(figsize=(10, 5), layout="constrained")
axes = fig.subplot_mosaic([["first", "steps"], ["second", "steps"]])
for ax, channel in zip([axes["first"], axes["second"]], [0, 3]):
    ax.plot(minutes, y[:, channel], ".", color="#BBBBBB", markersize=3, label="reading")
    ax.plot(minutes, truth[:, channel], color="black", linewidth=1, label="truth")
    for fit, color, style, name in [
        (alone, "#D55E00", "--", "on its own"),
        (joint, "#0072B2", "-", "together"),
    ]:
        ax.plot(minutes, fit.values_[:, channel], style, color=color, label=name)
    ax.set_ylabel(f"sensor {channel + 1}\n(deviations of the noise)")
axes["first"].legend(ncols=2, fontsize="small")
axes["second"].set_xlabel("minute")

steps = axes["steps"]
for fit, color, shift, name in [
    (alone, "#D55E00", 0.15, "on its own"),
    (joint, "#0072B2", -0.15, "together"),
]:
    row, channel = np.nonzero(np.diff(fit.values_, axis=0))
    size = np.abs(np.diff(fit.values_, axis=0)[row, channel])
    steps.scatter(
        row + 1, channel + 1 + shift, 60 * size, color=color, label=name, linewidth=0
    )
for k, jump in enumerate(jumps):
    steps.axvline(
        jump, color="black", linestyle=":", zorder=0, label=None if k else "truth"
    )
steps.set(xlabel="minute", ylabel="sensor", title="steps, by size", ylim=(0.3, 9.6))
steps.set_yticks(range(1, d + 1))
steps.legend(ncols=3, loc="upper center", fontsize="small")
plt.show()
