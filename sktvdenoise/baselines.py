r"""The methods that the theory compares itself with, as estimators of the same kind.

A level of total variation `C` is tracked under noise of standard deviation `sigma` (or
any labels within `B`); the rates are those of the squared error (regret) in `n` rounds
for fixed `sigma` and `B`.

=================================  =====================  ============================
method                             rate                   told in advance
=================================  =====================  ============================
`EWMA`, `SlidingMean`              n^(1/2) C              smoothing or window, from C
`OGD`                              linear in n            (a constant level: ln n)
`RestartedOGD`                     n^(1/2) C^(1/2)        n, C, B
`Ader`                             n^(1/2) (1 + C)^(1/2)  n, B
`SleepingExperts`, `Aligator`,     n^(1/3) C^(2/3)        sigma, or B
`GeometricCoverDenoiser`
`ARROWS`                           n^(1/3) C^(2/3)        n, sigma
`OnlineIsotonicRegression`         n^(1/3) C^(2/3)        n, B; monotone levels
`HaarThreshold` (offline)          n^(1/3) C^(2/3)        nothing
`LinearTrendFilter` (offline)      n^(1/5)                alpha; variation of slopes
=================================  =====================  ============================

No method can do better than n^(1/3) C^(2/3), and none that is linear in the labels, as
the first three are, better than n^(1/2). A round costs O(1) time but where the class
says otherwise.

All share the interface of :class:`~sktvdenoise.online.OnlineTVDenoiser`; the first
prediction is 0. Those with a `bound` refuse labels beyond it.
"""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from sktvdenoise import _baselines, _cover
from sktvdenoise._descent import (
    COUNT,
    EWMA,
    OGD,
    POSITIVE,
    Ader,
    KernelStream,
    RestartedOGD,
    SlidingMean,
)
from sktvdenoise._level import LevelEstimator
from sktvdenoise._smoothers import HaarThreshold, LinearTrendFilter
from sktvdenoise.geometric_cover import (
    RATE_CONSTRAINT,
    Aligator,
    GeometricCoverDenoiser,
    rate_code,
)

__all__ = [
    "ARROWS",
    "EWMA",
    "OGD",
    "Ader",
    "Aligator",
    "GeometricCoverDenoiser",
    "HaarThreshold",
    "LinearTrendFilter",
    "OnlineIsotonicRegression",
    "RestartedOGD",
    "SleepingExperts",
    "SlidingMean",
]


class SleepingExperts(LevelEstimator):
    r"""Sleeping experts over the geometric cover, in order of time.

    Running means of the intervals of rounds [i 2^k, (i + 1) 2^k - 1] [1]_, each asleep
    outside its interval, aggregated so that the weight of the awake never changes
    [2]_. The regret in every interval is :math:`O(B^2 \ln n)`, the dynamic regret
    :math:`\tilde O(n^{1/3} C^{2/3} B^{4/3})` [3]_. Neither `n` nor `C` need be known.
    O(log n) time a label and memory.

    Parameters
    ----------
    learning_rate : {"auto", "theory"} or float, default="theory"
        As in :class:`~sktvdenoise.GeometricCoverDenoiser`.
    bound : float, default=None
        As in :class:`~sktvdenoise.GeometricCoverDenoiser`.

    Attributes
    ----------
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.
    bound_ : float or ndarray of shape (n_outputs,)
        `B` in force: the given bound, or the one learnt.
    expert_weights_ : ndarray of shape (n_awake,) or list of n_outputs such
        Weights of the experts awake in the next round, those of short intervals first;
        a new one has weight 1.

    See Also
    --------
    sktvdenoise.GeometricCoverDenoiser : The same for labels in any order, with the
        formulas.

    Notes
    -----
    In interval `I` the loss exceeds that of its running mean, which at first predicts
    the last label, by at most :math:`\ln(N) / \eta` at the rate
    :math:`\eta = 1/(8 B^2)`; `N`, the number of intervals that begin before the end of
    `I`, at round t, is 2 t less the number of ones among the binary digits of t. In the
    rounds 1, 2, 4, 8, .. all intervals are new, and the prediction is the last label.

    References
    ----------
    .. [1] A. Daniely, A. Gonen and S. Shalev-Shwartz (2015). Strongly adaptive online
       learning. ICML.
    .. [2] D. Adamskiy, W. M. Koolen, A. Chernov and V. Vovk (2016). A closer look at
       adaptive regret. Journal of Machine Learning Research 17.
    .. [3] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave online
       learning. COLT.

    Examples
    --------
    >>> from sktvdenoise.baselines import SleepingExperts
    >>> y = [4.0, 2.0, 0.0, 1.0, 3.0, 3.0]
    >>> SleepingExperts(bound=4.0).partial_fit_predict(range(6), y).round(2)
    array([0.  , 4.  , 2.  , 0.  , 1.  , 2.67])
    """

    _parameter_constraints = {
        "learning_rate": RATE_CONSTRAINT,
        "bound": [None, POSITIVE],
    }

    def __init__(self, *, learning_rate="theory", bound=None):
        self.learning_rate = learning_rate
        self.bound = bound

    @property
    def bound_(self):
        return self._by_output("bound_", lambda stream: _cover.bound_of(stream.state))

    @property
    def expert_weights_(self):
        return self._list(
            "expert_weights_", lambda stream: _cover.sleeping_weights(stream.state)
        )

    def _new_stream(self):
        state = _cover.new_sleeping(self.bound or 0.0)
        return KernelStream(_cover.sleeping_pass, state, *rate_code(self.learning_rate))


class ARROWS(LevelEstimator):
    r"""Adaptive restarting of an online average by wavelet shrinkage [1]_.

    The prediction is the mean of a bin of labels, which ends where its soft-thresholded
    Haar coefficients show variation. The squared error under independent noise is
    :math:`\tilde O(n^{1/3} C^{2/3} \sigma^{4/3} + C^2)`. It must be told the noise and
    `n`, not `C`. A round costs O(log n).

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`. More may follow, for which nothing is promised.
    sigma : float
        Standard deviation of the noise, in units of the labels.
    beta : float, default=2.0
        The threshold is :math:`\sigma (\beta \ln n)^{1/2}`. The theorem asks for
        more than 24; 2 serves better.

    Attributes
    ----------
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    Notes
    -----
    After each label, the bin less its mean is padded by zeros to a power of two, `k`;
    with :math:`\alpha_l` the soft-thresholded coefficients of level l, of which there
    are 2^l, a new bin begins with the next label if

    .. math::

        \frac{1}{\sqrt k} \sum_{l=0}^{\log_2 k - 1} 2^{l/2} \lVert \alpha_l \rVert_1
        > \frac{\sigma}{\sqrt k}.

    The left side estimates the variation in the bin, from below. (With sigma alone on
    the right a bin could vary by almost sigma however long it lasts, and the error
    would be linear in `n`.) The first label of a bin is predicted by the one before.

    The coefficient of a complete block of 2^j labels doesn't change when others come,
    nor with the mean; at most one block of each scale is incomplete, so that a round
    costs O(log k), where transforming the bin anew costs O(k).

    Sample weights can only be 0 and 1.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2019). Online forecasting of total-variation-bounded
       sequences. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.baselines import ARROWS
    >>> y = np.repeat([0.0, 5.0], 8)
    >>> ARROWS(n_samples=16, sigma=0.5).partial_fit_predict(np.arange(16), y)[6:11]
    array([0., 0., 0., 5., 5.])
    """

    _parameter_constraints = {
        "n_samples": [COUNT],
        "sigma": [POSITIVE],
        "beta": [Interval(Real, 0, None, closed="left")],
    }
    _required_parameters = ["n_samples", "sigma"]

    def __init__(self, n_samples, sigma, *, beta=2.0):
        self.n_samples = n_samples
        self.sigma = sigma
        self.beta = beta

    def _check_rows(self, X, y, sample_weight, *, reset, whole=False):
        rows = super()._check_rows(X, y, sample_weight, reset=reset, whole=whole)
        other = (rows[2] != 0.0) & (rows[2] != 1.0)
        if other.any():
            row = int(np.argmax(other))
            raise ValueError(
                f"sample_weight[{row}] = {rows[2][row]:g}: ARROWS takes labels of "
                "equal noise, with weights 0 or 1."
            )
        return rows

    def _new_stream(self):
        sigma = float(self.sigma)
        threshold = sigma * np.sqrt(self.beta * np.log(self.n_samples))
        state = _baselines.new_arrows()
        return KernelStream(_baselines.arrows_pass, state, sigma, threshold)


class OnlineIsotonicRegression(LevelEstimator):
    r"""Exponential weights over the non-decreasing sequences on a grid [1]_.

    The regret to the best monotone sequence is :math:`O(B^2 n^{1/3} (\ln n)^{2/3})`,
    the least possible but for the logarithm: that of a sequence of variation C = 2 B
    which only rises. It must be told `n` and `B`. A round costs O(n^{1/3}).

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`. More may follow, for which nothing is promised.
    bound : float
        `B`, in units of the labels; a label beyond it raises a ValueError.
    increasing : bool, default=True
        Whether sequences rise or fall.

    Attributes
    ----------
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    Notes
    -----
    With :math:`K = \lceil (n / (4 \ln(n + 1)))^{1/3} \rceil` the levels are
    :math:`v_k = -B + 2 B k / K`, `k = 0, .., K`. Each of the :math:`\binom{n + K}{K}`
    non-decreasing sequences of them has weight :math:`e^{-\eta L}`, with `L` its loss
    so far and :math:`\eta = 1/(8 B^2)`, and the prediction is their mean. They are
    added up by a forward recursion over the level of the last round; with `m` rounds
    after the next, :math:`\binom{m + K - k}{m}` of them go on from level `k`. For
    every monotone sequence

    .. math:: R \le 8 B^2 \ln \tbinom{n + K}{K} + \frac{n B^2}{K^2}.

    The paper's algorithm also takes the positions in any order, in O(n K) a round; here
    they come in order. The first prediction is the mean over all sequences, which
    isn't 0. Sample weights multiply the losses; the bound holds for weights up to 1.

    References
    ----------
    .. [1] W. Kotlowski, W. M. Koolen and A. Malek (2016). Online isotonic regression.
       COLT.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.baselines import OnlineIsotonicRegression
    >>> model = OnlineIsotonicRegression(n_samples=1000, bound=1.0)
    >>> y = np.linspace(-1.0, 1.0, 1000)
    >>> bool(np.abs(model.partial_fit_predict(y, y) - y).mean() < 0.1)
    True
    """

    _parameter_constraints = {
        "n_samples": [COUNT],
        "bound": [POSITIVE],
        "increasing": ["boolean"],
    }
    _required_parameters = ["n_samples", "bound"]

    def __init__(self, n_samples, bound, *, increasing=True):
        self.n_samples = n_samples
        self.bound = bound
        self.increasing = increasing

    def predict_one(self):
        """Predict the next label.

        Returns
        -------
        prediction : float
            The same as `predict` at the last position; before the first row the mean
            over all sequences.

        Raises
        ------
        ValueError
            If the stream has several outputs.
        """
        if not hasattr(self, "n_samples_seen_"):
            return self._new_stream().forecast
        return super().predict_one()

    def _new_stream(self):
        n = self.n_samples
        n_steps = int(np.ceil((n / (4 * np.log(n + 1))) ** (1 / 3)))
        bound = float(self.bound if self.increasing else -self.bound)
        state = np.empty(3 + n_steps)
        _baselines.isotonic_start(state, n, bound)
        rate = 1 / (8 * bound**2)
        return KernelStream(_baselines.isotonic_pass, state, n, bound, rate)
