"""
==========================================
Untuned and online against tuned and refit
==========================================

Whoever knows scikit-learn would denoise a series by searching the penalty of the
fused lasso with :class:`~sklearn.model_selection.GridSearchCV`, and fit it again as
labels arrive. :class:`~sktvdenoise.OnlineTVDenoiser` has nothing to search for and
sees each label once. What does that cost?
"""

# %%
# A simulated signal
# ------------------
# Eleven jumps under noise of standard deviation 1. One call runs all contenders; the
# column ``sees`` tells what each one knows when it estimates a row. Only the first
# two rows are fair: what comes after them was tuned on the very labels that judge it,
# or has seen labels of the future.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score

from sktvdenoise import FusedLasso, OnlineTVDenoiser
from sktvdenoise.comparison import compare_denoisers
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.metrics import make_dynamic_regret_scorer

y, truth = make_signal("blocks", 1000, random_state=0)
blocks = compare_denoisers(np.arange(1000), y, truth=truth)
print(blocks)
blocks.plot()

# %%
# Below, each curve is the loss beyond that of an oracle that may move as much as the
# truth did and knows all labels. A jump costs whoever has to notice it first. Folds
# that respect time judge a penalty by how well a constant predicts the far future,
# and so choose far too large a one.

online, searched, best_penalty, best_factor = blocks.error[:4]
print(f"{searched / online:.0f} times the error of the online denoiser")
assert searched > 5 * online
assert best_penalty > online and best_factor > online

# %%
# The Nile
# --------
# A hundred years with one drop. The oracle's budget is the variation of the
# segmentation that ``FusedLasso(alpha="sure", refit=True)`` finds.

X, flow = load_nile(return_X_y=True, as_frame=True)
nile = compare_denoisers(X, flow)
print(nile)
nile.plot()
assert nile.loss[0] < nile.loss[1]

# %%
# Regret as a score
# -----------------
# The same question as a search of scikit-learn asks it. A scorer of this package lets
# the online denoiser go on learning through each test fold, label by label after its
# prediction; a fused lasso predicts the fold by its last level.

scorer, folds = make_dynamic_regret_scorer(tv_budget=250), TimeSeriesSplit(5)
search = GridSearchCV(
    FusedLasso(), {"alpha": np.geomspace(1, 1e4, 30)}, scoring=scorer, cv=folds
).fit(X, flow)
scores = cross_val_score(OnlineTVDenoiser(), X, flow, scoring=scorer, cv=folds)
print(f"regret of the best fused lasso: {-search.best_score_:,.0f} a fold")
print(f"regret of the online denoiser:  {-scores.mean():,.0f} a fold")
assert scores.mean() > search.best_score_

plt.show()
