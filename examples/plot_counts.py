"""
Counts: how often did mines explode?
====================================

Disasters in British coal mines with ten deaths or more, 1851 to 1961. Counts are small
integers whose noise grows with their rate: the loss is Poisson's, the answer a rate per
year in steps.
"""

import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import FusedLasso

# %%
# Counts by year, from R. G. Jarrett (1979), A note on the intervals between coal-mining
# disasters, Biometrika 66, 191-193.

disasters = np.array(
    """4 5 4 0 1 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2
    1 3 2 2 1 1 1 1 3 0 0 1 0 1 1 0 0 3 1 0 3 2 2 0 1 1 1 0 1 0 1 0 0 0 2 1 0
    0 0 1 1 0 2 3 3 1 1 2 1 1 1 1 2 4 2 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1
    """.split(),
    dtype=float,
)
years = np.arange(1851, 1962)

# %%
# A change of the rate is cheap to believe in, or dear: the penalty says how dear. If
# the rate never changed, the sums of counts would wander like a Brownian bridge, and
# only in one case of twenty by more than 1.358 times the root of their number: at this
# penalty chance alone hardly draws a step. It draws the rate's fall as a staircase, and
# smaller than it was; a third of the penalty shows more of it, and a step by chance.

careful = 1.358 * np.sqrt(disasters.sum())
fits = {
    "rate, no step by chance": FusedLasso(careful, loss="poisson"),
    "rate, a third of the penalty": FusedLasso(careful / 3, loss="poisson"),
}
for name, fit in fits.items():
    fit.fit(years, disasters)
    rates = fit.values_[np.r_[0, fit.breakpoints_]].round(2)
    print(f"{name}: {rates.tolist()}, steps in {years[fit.breakpoints_].tolist()}")
    assert 0 <= fit.dual_gap_ < 1e-12  # certified: no better one exists

careful = fits["rate, no step by chance"]
steps = years[careful.breakpoints_]
assert 1885 <= steps.min() and steps.max() <= 1900
assert careful.values_[0] > 2 * careful.values_[-1]

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.bar(years, disasters, color="#BBBBBB", label="disasters of the year")
for (name, fit), color, style in zip(fits.items(), ["#0072B2", "#D55E00"], ["-", "--"]):
    values, width = fit.values_, 3 if style == "-" else 1.5
    ax.step(years, values, style, where="mid", color=color, linewidth=width, label=name)
ax.set(xlabel="year", ylabel="disasters a year")
ax.legend()
plt.show()
