"""
Regression whose coefficients drift
===================================

What a degree of cold costs in heating depends on the house, and houses are rebuilt. The
coefficients of this simulated demand drift, and once they jump.
:class:`~sktvdenoise.FLHRegressor` follows without a window to choose.
"""

import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import FLHRegressor

rng = np.random.default_rng(0)
n, noise = 1500, 0.5
days = np.arange(n)
X = rng.standard_normal((n, 2))
coef = np.column_stack(
    [np.where(days < 900, 2.0, -0.5), 1.0 + np.sin(2 * np.pi * days / n)]
)
y = np.sum(X * coef, axis=1) + noise * rng.standard_normal(n)

# %%
# The learning rate is in units of one over the loss. For squared loss a good value is
# one over twice the variance of the noise. The coefficients are those known before the
# day's label.

model = FLHRegressor("ridge", learning_rate=1 / (2 * noise**2))
predicted, known = np.zeros(n), np.zeros((n, 2))
for day in days:
    if day:
        predicted[day] = model.predict(X[day : day + 1])[0]
        known[day] = model.coef_
    model.partial_fit(X[day : day + 1], y[day : day + 1])

# %%
# Rivals: one ridge regression on all earlier days, and one on the last so many, the
# number of which is the best of seven *in hindsight*. What counts is the squared error
# to what the true coefficients say.

products = np.cumsum(X[:, :, None] * X[:, None, :], axis=0)
moments = np.cumsum(X * y[:, None], axis=0)


def windowed(width):
    x, ridge = np.zeros(n), np.eye(2)
    for day in days[1:]:
        matrix, vector = products[day - 1] + ridge, moments[day - 1]
        if day > width:
            matrix = matrix - products[day - 1 - width]
            vector = vector - moments[day - 1 - width]
        x[day] = X[day] @ np.linalg.solve(matrix, vector)
    return x


def excess(x):
    return np.mean((x - np.sum(X * coef, axis=1))[20:] ** 2)


widths = [10, 20, 40, 80, 160, 320, n]
rivals = {width: excess(windowed(width)) for width in widths}
best = min(rivals, key=rivals.get)
print(f"adaptive: {excess(predicted):.3f}, all earlier days: {rivals[n]:.3f}")
for width in widths[:-1]:
    print(f"the last {width} days: {rivals[width]:.3f}")
assert excess(predicted) < 1.4 * rivals[best]
assert excess(predicted) < 0.1 * rivals[n]

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for k, (color, what) in enumerate([("#0072B2", "cold"), ("#D55E00", "wind")]):
    ax.plot(days, coef[:, k], color="black", linestyle="--", linewidth=1.5, zorder=3)
    ax.plot(days, known[:, k], color=color, label=f"{what}, as known that day")
ax.plot([], [], color="black", linestyle="--", label="truth")
ax.set(xlabel="day", ylabel="coefficient (MW per standard deviation)")
ax.legend()
plt.show()
