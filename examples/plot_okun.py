"""
A law that changes: growth and unemployment
===========================================

When the economy grows unemployment falls: Okun's law. By how much differs from decade
to decade. Quarterly figures of the United States, 1959 to 2009, with
:class:`~sktvdenoise.FLHRegressor`.
"""

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import macrodata

from sktvdenoise import FLHRegressor

data = macrodata.load_pandas().data
quarters = (data["year"] + (data["quarter"] - 1) / 4).to_numpy()[1:]
growth = 100 * np.diff(np.log(data["realgdp"].to_numpy()))
change = np.diff(data["unemp"].to_numpy())

# %%
# There is nothing to set. Each prediction knows the quarter's growth and earlier
# quarters.

model = FLHRegressor()
slope, predicted = [], []
for x, y in zip(growth, change):
    predicted.append(model.predict([[x]])[0] if slope else 0.0)
    model.partial_fit([[x]], [y])
    slope.append(model.coef_[0])
slope, predicted = np.array(slope), np.array(predicted)

scored = quarters >= 1965
error = np.sqrt(np.mean((change - predicted)[scored] ** 2))
without = np.sqrt(np.mean((change - np.mean(change))[scored] ** 2))
print(f"error {error:.3f} points; of the mean of all quarters {without:.3f}")
assert error < 0.85 * without

smooth = np.array([np.median(slope[max(0, i - 7) : i + 1]) for i in range(len(slope))])
fig, (above, below) = plt.subplots(
    2, 1, figsize=(8, 6), sharex=True, height_ratios=(3, 2), layout="constrained"
)
above.plot(quarters, change, ".", color="#777777", label="observed")
above.plot(quarters[8:], predicted[8:], color="#0072B2", label="predicted from growth")
above.set_ylabel("change of unemployment\n(points a quarter)")
above.legend()
below.plot(quarters[8:], slope[8:], ".", color="#D55E00", label="as known that quarter")
below.plot(quarters[8:], smooth[8:], color="#D55E00", label="median of two years")
below.axhline(0, color="black", linewidth=0.8)
below.set(xlabel="year", ylabel="effect of 1 % growth\n(points)")
below.legend(ncols=2)
plt.show()
