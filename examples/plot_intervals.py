"""
Prediction intervals that keep their word
=========================================

The surface of the Pacific off Peru, season by season since 1950 (El Niño), and an
electrocardiogram. Before each label we say between which two numbers it will fall, nine
times in ten. Did it?
"""

import matplotlib.pyplot as plt
import numpy as np
import pywt
from scipy.stats import norm

from sktvdenoise import OnlineTVDenoiser

dates, sea = pywt.data.nino()
heart = pywt.data.ecg().astype(float)


def predicted(y):
    """Predictions and standard deviations, each before its label."""
    denoiser = OnlineTVDenoiser()
    return denoiser.partial_fit_predict(np.arange(len(y)), y, return_std=True)


# %%
# The interval at a coverage is the prediction plus and minus a multiple of the standard
# deviation. What is calibrated is nine in ten; real errors have heavier tails than the
# normal distribution, so that fewer than that multiple promises are far out, and more
# are near.

coverages = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
inside = {}
for name, y in {"El Niño": sea, "electrocardiogram": heart}.items():
    x, std = predicted(y)
    z = np.abs(y - x)[20:] / std[20:]
    inside[name] = [np.mean(z <= norm.ppf(0.5 + c / 2)) for c in coverages]
    print(name, dict(zip(coverages.tolist(), np.round(inside[name], 3).tolist())))
    assert 0.85 < inside[name][4] < 0.95

fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=(2, 1), layout="constrained"
)
x, std = predicted(sea)
shown = dates >= 1985
left.fill_between(
    dates[shown],
    (x - 1.645 * std)[shown],
    (x + 1.645 * std)[shown],
    color="#0072B2",
    alpha=0.2,
    linewidth=0,
    label="90 % interval, known beforehand",
)
out = np.abs(sea - x)[shown] > 1.645 * std[shown]
left.plot(dates[shown], sea[shown], ".", color="#777777", label="inside")
left.plot(dates[shown][out], sea[shown][out], "D", color="#D55E00", label="outside")
left.set(xlabel="year", ylabel="sea's temperature, from its mean (°C)")
left.legend(ncols=3, loc="lower left")
left.set_ylim(-4.5, 4)
right.plot([50, 100], [50, 100], color="black", linestyle=":", label="as asked")
for share, color, marker in zip(inside.values(), ["#0072B2", "#D55E00"], "os"):
    right.plot(100 * coverages, 100 * np.array(share), marker + "-", color=color)
right.legend(["as asked", *inside])
right.set(xlabel="coverage asked for (%)", ylabel="labels inside (%)")
plt.show()
