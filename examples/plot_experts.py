"""
What the experts believe, and where the level changed
=====================================================

Experts start in different rows and remember only what came after their birth. After a
change the old ones are wrong, and their weight falls to younger ones. So the weights
tell for how long the level has stood, and ``breakpoints_`` where it changed.
"""

import matplotlib.pyplot as plt
import numpy as np

from sktvdenoise import DenoisingDisplay, ExpertWeightsDisplay, OnlineTVDenoiser
from sktvdenoise.datasets import make_signal

y, truth = make_signal("blocks", 613, std=5, random_state=1)
rows = np.arange(len(y))

# %%
# Above: what is seen, and the prediction of each row before its label was seen. Below:
# each slanted line is an expert, which grows older by one with every row; the darker,
# the heavier. The age of the heaviest falls to 0 where the level jumps.

fig, (above, below) = plt.subplots(
    2, 1, figsize=(9, 7), sharex=True, layout="constrained"
)
denoised = DenoisingDisplay.from_estimator(
    OnlineTVDenoiser(), rows, y, ax=above, position_name="row", value_name="label"
)
experts = ExpertWeightsDisplay.from_estimator(
    OnlineTVDenoiser(), rows, y, ax=below, position_name="row"
)

# %%
# Every jump of the truth has been found, to within a few rows.

jumps = np.flatnonzero(np.diff(truth)) + 1
found = rows[denoised.breakpoints]
distance = np.abs(jumps[:, None] - found).min(axis=1)
print("jumps of the truth:", jumps)
print("breakpoints found: ", found)
assert len(found) == len(jumps) and distance.max() <= 2
plt.show()
