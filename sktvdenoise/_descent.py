"""Baselines that move one level: averages of the labels and gradient descent."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sktvdenoise import _baselines
from sktvdenoise._baselines import Gain
from sktvdenoise._level import LevelEstimator
from sktvdenoise._stream import LevelStream

POSITIVE = Interval(Real, 0, None, closed="neither")
COUNT = Interval(Integral, 1, None, closed="left")


class KernelStream(LevelStream):
    """A stream whose state is one array that begins with the forecast.

    Parameters
    ----------
    kernel : callable
        ``kernel(y, weights, state, *params, predictions, estimates)``.
    state : ndarray of float64
    *params : object
    """

    def __init__(self, kernel, state, *params):
        super().__init__()
        self._kernel, self._params = kernel, params
        self.state = state

    @property
    def forecast(self):
        return float(self.state[0])

    def _pass(self, y, weights, x, z):
        self._kernel(y, weights, self.state, *self._params, x, z)


_GAINS = {"strongly-convex": Gain.MEAN, "convex": Gain.ROOT}


def _level_stream(code, gain=0.0, batch=0):
    return KernelStream(_baselines.level_pass, np.zeros(3), code, gain, batch)


class EWMA(LevelEstimator):
    r"""Exponentially weighted moving average of the labels.

    :math:`x_{t+1} = x_t + a (y_t - x_t)`, with :math:`x_2 = y_1`. With the best `a`,
    of order :math:`C / (\sigma n^{1/2})`, the squared error is of order
    :math:`n^{1/2} \sigma C`, and no method linear in the labels does better [1]_.

    Parameters
    ----------
    smoothing : float, default=0.3
        `a`, in (0, 1]; 1 predicts the last label. A label of sample weight `w` counts
        as `w` in a row: :math:`1 - (1 - a)^w`.

    Attributes
    ----------
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2019). Online forecasting of total-variation-bounded
       sequences. NeurIPS.

    Examples
    --------
    >>> from sktvdenoise.baselines import EWMA
    >>> EWMA(smoothing=0.5).partial_fit_predict([0, 1, 2], [4.0, 0.0, 0.0])
    array([0., 4., 2.])
    """

    _parameter_constraints = {"smoothing": [Interval(Real, 0, 1, closed="right")]}

    def __init__(self, smoothing=0.3):
        self.smoothing = smoothing

    def _new_stream(self):
        return _level_stream(Gain.EWMA, float(self.smoothing))


class SlidingMean(LevelEstimator):
    r"""Mean of the last labels.

    With a window of order :math:`\sigma n^{1/2} / C` the squared error is of order
    :math:`n^{1/2} \sigma C`, as that of every method linear in the labels [1]_. O(1)
    time a label on average, O(window) memory.

    Parameters
    ----------
    window : int, default=10
        Number of labels, those of positive weight; fewer at the beginning.

    Attributes
    ----------
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2019). Online forecasting of total-variation-bounded
       sequences. NeurIPS.

    Examples
    --------
    >>> from sktvdenoise.baselines import SlidingMean
    >>> SlidingMean(window=2).partial_fit_predict(range(4), [1.0, 2.0, 4.0, 0.0])
    array([0. , 1. , 1.5, 3. ])
    """

    _parameter_constraints = {"window": [COUNT]}

    def __init__(self, window=10):
        self.window = window

    def _new_stream(self):
        return KernelStream(_baselines.sliding_pass, np.zeros(6 + 4 * self.window))


class OGD(LevelEstimator):
    r"""Online gradient descent [1]_ on the squared loss.

    :math:`x_{t+1} = x_t - \eta_t f_t'(x_t)` with :math:`f_t(x) = (y_t - x)^2`. Nothing
    need be known but how the level moves: the regret to the best constant is
    :math:`4 B^2 (1 + \ln n)` with the steps for strongly convex losses and
    :math:`O(B^2 n^{1/2})` with those for convex ones; to a moving level it is linear in
    `n` at worst, but for a constant step of order :math:`(C/n)^{1/2}`:
    :math:`O((n C)^{1/2})`.

    Parameters
    ----------
    step : {"strongly-convex", "convex"} or float, default="strongly-convex"
        :math:`\eta_t`: 1/(2 t), which gives the running mean; D/(G t^(1/2)), which is
        1/(2 t^(1/2)) whatever `B`, for the diameter D is 2 B and the slopes up to
        G = 4 B; or a constant in (0, 1/2], as in :class:`EWMA` with twice this
        smoothing. Iterates stay among the labels, so that there is nothing to project.

    Attributes
    ----------
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    Notes
    -----
    A sample weight `w` multiplies the loss; the steps become those of weighted losses,
    with t replaced by the sum of the weights, or of their squares. A step never goes
    beyond the label.

    References
    ----------
    .. [1] M. Zinkevich (2003). Online convex programming and generalized infinitesimal
       gradient ascent. ICML.
    .. [2] E. Hazan, A. Agarwal and S. Kale (2007). Logarithmic regret algorithms for
       online convex optimization. Machine Learning 69.

    Examples
    --------
    >>> from sktvdenoise.baselines import OGD
    >>> OGD().partial_fit_predict(range(4), [3.0, 1.0, 5.0, 0.0])
    array([0., 3., 2., 3.])
    """

    _parameter_constraints = {
        "step": [
            StrOptions({"strongly-convex", "convex"}),
            Interval(Real, 0, 0.5, closed="right"),
        ]
    }

    def __init__(self, step="strongly-convex"):
        self.step = step

    def _new_stream(self):
        if isinstance(self.step, str):
            return _level_stream(_GAINS[self.step])
        return _level_stream(Gain.CONSTANT, 2.0 * self.step)


class RestartedOGD(LevelEstimator):
    r"""Online gradient descent, started anew after every batch [1]_.

    The batch is chosen from the number of rounds and the variation of the losses. The
    dynamic regret is :math:`\tilde O((n C)^{1/2} B^{3/2})` for the squared loss, which
    is strongly convex, and :math:`O(n^{2/3} C^{1/3} B^{5/3})` where no more than
    convexity is used. It must be told `n`, `C` and `B`.

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`.
    variation : float
        `C`, the total variation of the level, in units of the labels.
    bound : float
        `B`, in units of the labels; a label beyond it raises a ValueError.
    step : {"strongly-convex", "convex"}, default="strongly-convex"
        The steps within a batch, as in :class:`OGD`.

    Attributes
    ----------
    batch_size_ : int
        Labels in a batch.
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    Notes
    -----
    The losses of two rounds differ by at most :math:`4 B |w_t - w_{t-1}|`, so that
    their variation is at most 4 B C. Over a batch of :math:`\Delta` rounds the regret
    to a moving level exceeds that to a constant by at most :math:`2 \Delta` times the
    variation within. The batch minimises the sum of both, up to logarithms:

    .. math::

        \Delta = \Bigl\lceil \sqrt{\tfrac{B n \ln n}{2 C}} \Bigr\rceil, \qquad
        \Delta = \Bigl\lceil \bigl(\tfrac{3 B n}{4 C}\bigr)^{2/3} \Bigr\rceil,

    for static regrets :math:`4 B^2 (1 + \ln \Delta)` and :math:`12 B^2 \Delta^{1/2}`,
    at most `n_samples`. A new batch begins at the last iterate.

    References
    ----------
    .. [1] O. Besbes, Y. Gur and A. Zeevi (2015). Non-stationary stochastic
       optimization. Operations Research 63.

    Examples
    --------
    >>> from sktvdenoise.baselines import RestartedOGD
    >>> ogd = RestartedOGD(n_samples=100, variation=10.0, bound=1.0)
    >>> ogd.fit([0, 1], [1.0, 0.0]).batch_size_
    5
    """

    _parameter_constraints = {
        "n_samples": [COUNT],
        "variation": [Interval(Real, 0, None, closed="left")],
        "bound": [POSITIVE],
        "step": [StrOptions({"strongly-convex", "convex"})],
    }
    _required_parameters = ["n_samples", "variation", "bound"]

    def __init__(self, n_samples, variation, bound, *, step="strongly-convex"):
        self.n_samples = n_samples
        self.variation = variation
        self.bound = bound
        self.step = step

    def _start(self, y):
        n, jumps = self.n_samples, self.variation / self.bound
        if self.step == "convex":
            batch = (0.75 * n / jumps) ** (2 / 3) if jumps else n
        else:
            batch = np.sqrt(n * np.log(n) / (2 * jumps)) if jumps else n
        self.batch_size_ = int(np.ceil(np.clip(batch, 1, n)))
        super()._start(y)

    def _new_stream(self):
        return _level_stream(_GAINS[self.step], batch=self.batch_size_)


class Ader(LevelEstimator):
    r"""Adaptive learning for dynamic environments: gradient descent at many steps [1]_.

    Its dynamic regret against every sequence of total variation `C` at once is
    :math:`O(B^2 (n (1 + C/B))^{1/2})`, the best for convex losses; that the squared
    loss has curvature is not used. It must be told `n` and `B`. A round costs O(log n).

    Parameters
    ----------
    n_samples : int
        Number of rounds, `n`. More may follow, for which nothing is promised.
    bound : float
        `B`, in units of the labels; a label beyond it raises a ValueError.

    Attributes
    ----------
    steps_ : ndarray of shape (n_experts,)
        Step of each expert.
    n_samples_seen_, positions_, values_, std_
        As in :class:`~sktvdenoise.online.OnlineTVDenoiser`.

    Notes
    -----
    With diameter D = 2 B and slopes up to G = 4 B, the
    :math:`N = \lceil \tfrac12 \log_2(1 + 4 n / 7) \rceil + 1` experts descend along one
    slope, that of the loss at the prediction, in steps of

    .. math:: \eta_i = 2^{i-1} \frac{D}{G} \sqrt{\frac{7}{2 n}},

    each projected on [-B, B]. Hedge weighs them by their linearised losses at the rate
    :math:`(8 / (n G^2 D^2))^{1/2}`, from the weights C / (i (i + 1)), C = 1 + 1/N (the
    improved Ader of the paper, one slope a round). For every sequence of path length P
    in [-B, B]

    .. math::

        R \le \tfrac34 G \sqrt{2 n (7 D^2 + 4 D P)}
        + \tfrac14 G D \sqrt{2 n}\, (1 + 2 \ln(k + 1)), \qquad
        k = \lfloor \tfrac12 \log_2 (1 + \tfrac{4 P}{7 D}) \rfloor + 1.

    Sample weights multiply the losses; the bound holds for weights up to 1.

    References
    ----------
    .. [1] L. Zhang, S. Lu and Z.-H. Zhou (2018). Adaptive online learning in dynamic
       environments. NeurIPS.

    Examples
    --------
    >>> from sktvdenoise.baselines import Ader
    >>> ader = Ader(n_samples=1000, bound=5.0).fit([0, 1, 2], [1.0, 2.0, 3.0])
    >>> ader.steps_.round(3)
    array([0.03 , 0.059, 0.118, 0.237, 0.473, 0.947])
    """

    _parameter_constraints = {"n_samples": [COUNT], "bound": [POSITIVE]}
    _required_parameters = ["n_samples", "bound"]

    def __init__(self, n_samples, bound):
        self.n_samples = n_samples
        self.bound = bound

    def _start(self, y):
        n = self.n_samples
        n_experts = int(np.ceil(0.5 * np.log2(1 + 4 * n / 7))) + 1
        self.steps_ = 2.0 ** np.arange(n_experts) * 0.5 * np.sqrt(7 / (2 * n))
        super()._start(y)

    def _new_stream(self):
        i = np.arange(1, len(self.steps_) + 1)
        state = np.concatenate([np.zeros(1 + len(i)), -np.log(i * (i + 1.0))])
        rate = np.sqrt(8 / self.n_samples) / (8 * self.bound**2)
        bound = float(self.bound)
        return KernelStream(_baselines.ader_pass, state, self.steps_, rate, bound)
