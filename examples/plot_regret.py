"""
Regret against every budget at once
===================================

How far were predictions from the best in hindsight? That depends on how much the best
may move. :func:`~sktvdenoise.metrics.regret_curve` answers for every budget of total
variation at once; nothing needs to be chosen.
"""

# %%
# The signal has eleven jumps, its noise a standard deviation of 1. Three learners: the
# default, the algorithm of the theory to the letter, and the last label again.

import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import OnlineTVDenoiser, RegretCurveDisplay, path_variation
from sktvdenoise.datasets import make_signal
from sktvdenoise.metrics import regret_curve

y, truth = make_signal("blocks", 2000, random_state=0)
rows = np.arange(len(y))
predictions = {
    "default": OnlineTVDenoiser().partial_fit_predict(rows, y),
    'learning_rate="theory"': OnlineTVDenoiser(
        learning_rate="theory"
    ).partial_fit_predict(rows, y),
    "the last label again": np.r_[0, y[:-1]],
}
budget = round(path_variation(truth))
curves = {name: regret_curve(y, x) for name, x in predictions.items()}
for name, curve in curves.items():
    print(f"{name:24} {curve(budget):8,.0f} at the truth's budget, {budget:.0f}")

# %%
# At the left of the first picture the oracle may not move at all, and whoever can move
# beats it. At the right it may follow the noise, and nobody can keep up. In between,
# at the budget of the truth, regret is what is paid for not knowing beforehand when
# the level jumps. The second picture shows it grow, mostly in the rows after a jump.

display = RegretCurveDisplay.from_predictions(
    y, predictions, tv_budget=budget, position_name="row"
)
display.figure_.set_size_inches(10, 4.5)
assert curves["default"](budget) < 0.6 * curves["the last label again"](budget)
assert curves["default"](budget) < curves['learning_rate="theory"'](budget)
assert curves["default"](0) < 0  # better than the best constant in hindsight
plt.show()
