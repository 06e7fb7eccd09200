"""
Sunspots: a cycle that nobody told it about
===========================================

Three centuries of yearly sunspot numbers, predicted one year ahead. The denoiser is
given no period, no order and no window; its pool of forecasters holds trends and
autoregressions, and it finds out as it goes which of them to believe.
"""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import sunspots

from sktvdenoise import OnlineTVDenoiser

data = sunspots.load_pandas().data
years, spots = data["YEAR"].to_numpy(), data["SUNACTIVITY"].to_numpy()
denoiser = OnlineTVDenoiser()
predicted = denoiser.partial_fit_predict(years, spots)

# %%
# Two rivals. One repeats the last year. The other is an autoregression of nine years,
# fitted to *all* the years, those that it is judged on included: it cheats.

last = np.r_[0, spots[:-1]]
lags = np.column_stack([np.r_[np.zeros(k), spots[:-k]] for k in range(1, 10)])
lags = np.column_stack([np.ones_like(spots), lags])[9:]
cheat = np.r_[np.zeros(9), lags @ np.linalg.lstsq(lags, spots[9:], rcond=None)[0]]

scored = years >= 1720  # after a warm-up for all
error = {
    name: np.sqrt(np.mean((spots - estimate)[scored] ** 2))
    for name, estimate in {
        "last year\nagain": last,
        "online\ndenoiser": predicted,
        "AR(9), knows\nall years": cheat,
    }.items()
}
for name, value in error.items():
    print(f"{' '.join(name.split()):22} {value:.1f}")
assert error["online\ndenoiser"] < 0.8 * error["last year\nagain"]

# %%
# The first picture shows a century of predictions, each made before its year.

fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=(2, 1), layout="constrained"
)
shown = years >= 1900
left.plot(years[shown], spots[shown], "o", color="#777777", markersize=4)
left.plot(years[shown], predicted[shown], color="#0072B2")
left.set(xlabel="year", ylabel="sunspot number of the year")
left.legend(["observed", "predicted the year before"], loc="upper left", ncols=2)
left.set_ylim(-15, 230)
names, colors = list(error), ["#777777", "#0072B2", "#D55E00"]
bars = right.bar(names, error.values(), color=colors)
right.bar_label(bars, fmt="%.1f")
right.set(ylim=(0, 28), ylabel="root mean squared error (sunspots)")
plt.show()
