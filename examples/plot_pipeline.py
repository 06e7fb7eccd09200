"""
A filter in a pipeline
======================

Sensors are noisy, and what they measure changes in steps. A regression on the raw
readings is pulled towards zero by the noise. Put
:class:`~sktvdenoise.OnlineTVFilter` before it: each reading is replaced by the level as
it is known in its row, from earlier rows and this one alone, so that no future leaks
into the features.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from sktvdenoise import OnlineTVFilter
from sktvdenoise.datasets import make_signal

n = 2000
sensors = [
    make_signal(name, n, std=2, noise=1.5, random_state=seed)
    for seed, name in enumerate(["blocks", "walk", "heavisine"])
]
X = np.column_stack([y for y, _ in sensors])
levels = np.column_stack([truth for _, truth in sensors])
load = 10 + levels @ [3.0, -2.0, 1.0]
load += np.random.default_rng(3).standard_normal(n)

# %%
# The first half is for learning, the second for judging. The filter is causal, so it
# may run over both.

past, future = slice(0, n // 2), slice(n // 2, n)
raw = LinearRegression()
filtered = make_pipeline(OnlineTVFilter(), LinearRegression())
score, predicted = {}, {}
for name, model in {"raw readings": raw, "filtered readings": filtered}.items():
    model.fit(X[past], load[past])
    predicted[name] = model.predict(X[future])
    score[name] = r2_score(load[future], predicted[name])
print({name: f"R² = {value:.2f}" for name, value in score.items()})
assert score["filtered readings"] > score["raw readings"] + 0.1

fig, axes = plt.subplots(
    1, 2, figsize=(9, 4.8), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, x), color in zip(axes, predicted.items(), ["#D55E00", "#0072B2"]):
    ax.plot(load[future], x, ".", color=color, alpha=0.5, label="a minute")
    ax.axline((10, 10), slope=1, color="black", label="exact")
    ax.set(title=f"{name}: R² = {score[name]:.2f}", xlabel="load (kW)")
    ax.legend(loc="upper left")
axes[0].set_ylabel("predicted load (kW)")
plt.show()
