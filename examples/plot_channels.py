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

fig, axes = plt.subplots(2, 2, figsize=(10, 6), sharex=True, sharey=True)
fig.set_layout_engine("constrained")
for ax, channel in zip(axes.flat, range(4)):
    ax.plot(minutes, y[:, channel], ".", color="#BBBBBB", markersize=3)
    ax.plot(minutes, truth[:, channel], color="black", linewidth=1)
    ax.plot(minutes, alone.values_[:, channel], color="#D55E00", linestyle="--")
    ax.plot(minutes, joint.values_[:, channel], color="#0072B2", linewidth=2)
    ax.set_title(f"sensor {channel + 1} of {d}")
fig.supxlabel("minute")
fig.supylabel("reading (standard deviations of the noise)")
names = ["reading", "truth", "denoised on its own", "denoised together"]
fig.legend(axes[0, 0].lines, names, loc="outside upper center", ncols=4)
plt.show()
