"""
A stream, denoised live
=======================

Year by year the flow of the Nile at Aswan arrives. Before each year we predict it and
say how sure we are; after it we learn. In 1899 the level fell by over a fifth. When
could one have known?
"""

# %%
# The loop of a live system: :meth:`~sktvdenoise.OnlineTVDenoiser.predict_one`, then
# :meth:`~sktvdenoise.OnlineTVDenoiser.learn_one`. Everything else is read off the
# denoiser at any time.

import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.datasets import load_nile

years, flow = load_nile(return_X_y=True)
years = years[:, 0]
denoiser = OnlineTVDenoiser()
predicted, std, noticed = [], [], None
for year, label in zip(years, flow):
    predicted.append(denoiser.predict_one())
    std.append(denoiser.std_ if year > years[0] else np.inf)
    denoiser.learn_one(label)
    if noticed is None and len(denoiser.breakpoints_):
        noticed = year
predicted, reach = np.array(predicted), 1.645 * np.array(std)
(drop,) = years[denoiser.breakpoints_]
print(f"The level fell in {drop}; the denoiser said so at the end of {noticed}.")
assert drop == 1899 and noticed <= 1905

# %%
# Nine in ten labels should fall into the interval that was known before them.

inside = np.abs(flow - predicted)[10:] <= reach[10:]
print(f"{inside.mean():.0%} of the flows are inside")
assert 0.8 < inside.mean() < 0.98

known = np.isfinite(reach)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.fill_between(
    years[known],
    (predicted - reach)[known],
    (predicted + reach)[known],
    color="#0072B2",
    alpha=0.15,
    linewidth=0,
    label="90 % interval, known beforehand",
)
ax.plot(years, flow, "o", color="#777777", markersize=4, label="observed flow")
ax.plot(years[1:], predicted[1:], color="#0072B2", label="predicted beforehand")
ax.axvline(drop, color="black", linestyle=":", label=f"the level falls: {drop}")
ax.axvline(noticed, color="#D55E00", linestyle="--", label=f"noticed: {noticed}")
ax.set(xlabel="year", ylabel="flow of the year (10⁸ m³)", ylim=(400, 1650))
ax.legend(ncols=2, loc="upper right")
plt.show()
