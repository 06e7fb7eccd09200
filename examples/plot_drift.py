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
# There is nothing to set. The coefficients are those known before the day's label.

model = FLHRegressor()
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
assert excess(predicted) < 0.8 * rivals[best]
assert excess(predicted) < 0.1 * rivals[n]

# %%
# Each dot is a day.

fig, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.5), width_ratios=(3, 2), layout="constrained"
)
for k, (color, what) in enumerate([("#0072B2", "cold"), ("#D55E00", "wind")]):
    left.plot(days, known[:, k], ".", color=color, markersize=3, label=what)
    left.plot(days, coef[:, k], color="black", linestyle="--", zorder=3)
left.lines[-1].set_label("truth")
left.set(
    xlabel="day", ylabel="coefficient, as known that day\n(MW per standard deviation)"
)
left.legend(markerscale=3)
right.plot(
    widths, rivals.values(), "o-", color="#777777", label="ridge, last days only"
)
right.axhline(excess(predicted), color="#0072B2", label="adaptive, no window")
right.set(xscale="log", yscale="log", xlabel="days in the window")
right.set_ylabel("mean squared error to the truth (MW²)")
right.legend()
plt.show()
