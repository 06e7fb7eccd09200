"""Online total-variation denoising with optimal dynamic regret.

A stream of noisy numbers arrives; what is its level now?

- `sktvdenoise.online`: `OnlineTVDenoiser`, which answers without knowing how much
  the level will vary;
- `sktvdenoise.geometric_cover`: `GeometricCoverDenoiser`, for labels that come in any
  order of their positions;
- `sktvdenoise.baselines`: the methods that the theory compares itself with;
- `sktvdenoise.filter`: `OnlineTVFilter`, which denoises features on their way to a
  regressor; `sktvdenoise.river`: `RiverDenoiser`, for the library of that name;
- `sktvdenoise.linear`: `FLHRegressor` and `FLHClassifier`, regression with
  covariates whose coefficients vary;
- `sktvdenoise.offline`: `FusedLasso` and `fused_lasso`, the answer when all labels
  are there, exact and in linear time, and `fused_lasso_path`, that for all penalties;
- `sktvdenoise.losses`: those of counts and of labels, for the same questions;
- `sktvdenoise.cross_validation`: `FusedLassoCV`, its penalty by cross-validation;
- `sktvdenoise.metrics`: `dynamic_regret`, how far predictions were from the best
  sequence in hindsight with a given total variation, `regret_curve`, that for every
  variation at once, and `tv_oracle`, this sequence;
- `sktvdenoise.model_selection`: `progressive_val_predict` and scores of what it
  predicts, each row before its label is learned; `sktvdenoise.comparison`:
  `compare_denoisers`, the online denoiser and tuned ones side by side;
- `sktvdenoise.plotting`: `DenoisingDisplay`, a picture of labels, estimate and oracle,
  `ExpertWeightsDisplay`, of what the experts made of a stream,
  `CoefficientPathDisplay`, of coefficients that vary, and `RegretCurveDisplay`, of the
  regret of several estimators;
- `sktvdenoise.datasets`: signals and regressions with their truth, and the Nile;
- `sktvdenoise.theory`: the proof of the regret's rate, to be computed: conditions of
  optimality, partitions, the decomposition, bounds with constants, and its streams;
- `sktvdenoise.experts`, `sktvdenoise.linear_experts`, `sktvdenoise.aggregation`: the
  algorithms in a few lines of numpy; `sktvdenoise.ladder`, `sktvdenoise.laplace`: the
  pools of adaptive regression.
"""

from sktvdenoise._version import __version__

try:
    from sktvdenoise import _fused, _online  # noqa: F401
except ImportError as error:
    raise ImportError(
        "The compiled parts of sktvdenoise are missing: install it with pip, in a "
        "checkout with `pip install -e .`, and import it from elsewhere than an "
        "unbuilt source folder."
    ) from error

from sktvdenoise._path_plot import FusedLassoPathDisplay
from sktvdenoise.cross_validation import FusedLassoCV, InterleavedKFold
from sktvdenoise.filter import OnlineTVFilter
from sktvdenoise.geometric_cover import GeometricCoverDenoiser
from sktvdenoise.linear import FLHClassifier, FLHRegressor
from sktvdenoise.metrics import (
    dynamic_regret,
    path_variation,
    regret_curve,
    tv_oracle,
)
from sktvdenoise.offline import FusedLasso, fused_lasso, fused_lasso_path
from sktvdenoise.online import OnlineTVDenoiser
from sktvdenoise.plotting import (
    CoefficientPathDisplay,
    DenoisingDisplay,
    ExpertWeightsDisplay,
    RegretCurveDisplay,
)

__all__ = [
    "CoefficientPathDisplay",
    "DenoisingDisplay",
    "ExpertWeightsDisplay",
    "FLHClassifier",
    "FLHRegressor",
    "FusedLasso",
    "FusedLassoCV",
    "FusedLassoPathDisplay",
    "GeometricCoverDenoiser",
    "InterleavedKFold",
    "OnlineTVDenoiser",
    "OnlineTVFilter",
    "RegretCurveDisplay",
    "__version__",
    "dynamic_regret",
    "fused_lasso",
    "fused_lasso_path",
    "path_variation",
    "regret_curve",
    "tv_oracle",
]
