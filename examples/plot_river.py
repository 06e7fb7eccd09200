"""
Approval ratings, beside river
==============================

How many people approve of a president, day by day: an average over many polls. It is
hard to do better than to say yesterday's number again.
:class:`~sktvdenoise.river.RiverDenoiser` is a model of river, the library for streams;
it isn't told so, and finds out.
"""

import matplotlib.pyplot as plt
import numpy as np
from river import datasets, evaluate, linear_model, metrics, preprocessing

from sktvdenoise.river import RiverDenoiser

# %%
# Two models of river see the day's polls of five institutes. The denoiser ignores them
# and sees past ratings alone. All go through river's own loop: predict, then learn.

scaled = preprocessing.StandardScaler
models = {
    "denoiser": RiverDenoiser(),
    "linear regression": scaled() | linear_model.LinearRegression(),
    "Bayesian regression": scaled() | linear_model.BayesianLinearRegression(),
}
ratings = np.array([y for _, y in datasets.TrumpApproval()])
predicted = {"yesterday's rating": np.r_[0, ratings[:-1]]}
for name, model in models.items():
    rows = evaluate.iter_progressive_val_score(
        datasets.TrumpApproval(), model, metrics.MAE(), step=1, yield_predictions=True
    )
    predicted[name] = np.array([row["Prediction"] for row in rows], dtype=float)

# %%
# The first hundred days are for warming up.

error = {name: np.abs(ratings - x)[100:].mean() for name, x in predicted.items()}
for name, value in error.items():
    print(f"{name:20} {value:.3f} points")
assert error["denoiser"] < 1.1 * error["yesterday's rating"]
assert error["denoiser"] < 0.3 * error["linear regression"]

days = np.arange(len(ratings))
shown = slice(100, 300)
colors = dict(zip(error, ["#CC79A7", "#0072B2", "#D55E00", "#009E73"]))
fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=(2, 1), layout="constrained"
)
left.plot(days[shown], ratings[shown], ".", color="#777777", label="rating")
for name in models:
    left.plot(days[shown], predicted[name][shown], color=colors[name], label=name)
left.set(xlabel="day", ylabel="approval (%)")
left.legend(ncols=2, fontsize="small")
bars = right.barh(list(error), error.values(), color=colors.values())
right.bar_label(bars, fmt="%.2f", padding=3)
right.set(xlabel="mean absolute error (points)", xlim=(0, 1.25 * max(error.values())))
right.invert_yaxis()
plt.show()
