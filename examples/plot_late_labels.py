"""
Missing and late labels
=======================

Carbon dioxide on Mauna Loa, week by week from 1958 to 2001. Some weeks are missing, and
a laboratory may need weeks until it reports. What does lateness cost?
"""

# %%
# With ``missing="skip"`` a NaN is a row from which nothing is learned. What is
# predicted for it is still of use: it fills the gap.

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import co2

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.model_selection import progressive_val_predict

data = co2.load_pandas().data["co2"]
weeks, level = data.index.to_numpy(), data.to_numpy()
rows = np.arange(len(level))
gaps = np.isnan(level)
print(f"{gaps.sum()} of {len(level)} weeks are missing")

# %%
# ``delay=4`` predicts each row when the labels of the four rows before it are not
# there yet.

delays = [0, 1, 2, 4, 8, 13]
predictions = {
    delay: progressive_val_predict(
        OnlineTVDenoiser(missing="skip"), rows, level, delay=delay, warmup_size=52
    )
    for delay in delays
}
error = [
    np.sqrt(np.nanmean((level[52:] - predictions[delay]) ** 2)) for delay in delays
]
print({delay: f"{e:.2f} ppm" for delay, e in zip(delays, error)})
assert error[0] < 0.6 and np.all(np.diff(error) > 0)

fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=(3, 2), layout="constrained"
)
first, last = 52, 52 + 6 * 52
left.plot(weeks[first:last], level[first:last], ".", color="#777777", label="measured")
left.plot(
    weeks[first:last],
    predictions[0][: last - first],
    color="#0072B2",
    linewidth=1,
    label="predicted, labels in time",
)
left.plot(
    weeks[first:last],
    predictions[8][: last - first],
    color="#D55E00",
    linewidth=1,
    label="predicted, labels 8 weeks late",
)
left.set(xlabel="date", ylabel="carbon dioxide (parts per million)")
left.legend(loc="upper left")
left.set_ylim(311, 328)
right.plot(delays, error, "o-", color="black")
right.set(
    xlabel="labels are late by (weeks)",
    ylabel="root mean squared error (parts per million)",
    ylim=(0, None),
)
plt.show()
