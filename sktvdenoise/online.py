"""Online total-variation denoising: the level of a stream, now."""

from numbers import Real

from sklearn.utils._param_validation import Interval, StrOptions

from sktvdenoise._level import LevelEstimator
from sktvdenoise._stream import Stream

__all__ = ["OnlineTVDenoiser"]


class OnlineTVDenoiser(LevelEstimator):
    r"""Online total-variation denoiser with optimal dynamic regret.

    Rows are seen one after the other, in order of their position. Before the
    label of a row is seen it is predicted. With nothing to set, the squared loss
    exceeds that of every sequence `w` by
    :math:`\tilde O(n^{1/3} C^{2/3} B^{4/3} + B^2)`, where `C` is the total
    variation of `w` and `B` bounds the labels; neither need be known. No method
    can do better, and nothing is assumed about the labels.

    Parameters
    ----------
    learning_rate : {"auto", "theory", "mixable"} or float, default="auto"
        How predictions are made.

        - "auto": by a pool of forecasters (levels, trends, autoregressions, a
          season, running means since the last change), which on real series does
          many times better than the theory's rate, with the learner of "theory"
          as a guard: on every sequence the loss is at most the guard's plus
          :math:`20 B^2`;
        - "theory": by the mean of running means that started in different rows,
          weighted by how well each did at the rate :math:`1 / (8 B^2)` (Theorem 1
          of [1]_);
        - "mixable": the same at the rate :math:`1 / (2 B^2)`, with Vovk's
          substitution [3]_ in place of the weighted mean: the constant of the
          regret is four times smaller;
        - a float, in units of one over the square of a label: as "theory", at
          that rate.

    bound : float, default=None
        `B`, in units of the labels: no label is larger in absolute value, and
        one that is raises a ValueError. With None it is learnt: where a label
        exceeds the present `B`, this becomes the larger of `2 B` and the
        label's absolute value, and the learner of "theory" and "mixable"
        starts again with this label. The regrets of the pieces form a
        geometric sum, so that the rate of the regret is kept. Predictions at
        other rates don't depend on it, but for the guard of "auto".
    pruning : {"aflh"} or None, default="aflh"
        With "aflh" the running mean that starts in round
        :math:`r 2^k`, `r` odd, lives for :math:`2^{k+2} + 1` further rounds
        [2]_: O(log n) time and memory per label. With None all live for ever:
        O(n) per label. With "auto" it concerns the guard.
    keep_history : bool, default=True
        Whether positions and estimates of all rows are kept for `predict`.
        With False memory doesn't grow with the number of rows, and `predict`
        answers only at the last position and after it.
    missing : {"error", "skip"}, default="error"
        What a NaN label means: an error, or a row from which nothing is
        learned.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows seen, missing labels included.
    n_features_in_ : int
        Always 1: the position.
    feature_names_in_ : ndarray of shape (1,)
        Name of the position, where `X` was a data frame with a named column.
    positions_ : ndarray of shape (n_samples_seen_,)
        Positions of the rows seen. Only with `keep_history`.
    values_ : ndarray of shape (n_samples_seen_,) or (n_samples_seen_, n_outputs)
        Estimate of the level in each row, made when its label had been seen
        and no later one: the prediction for the row that follows. Only with
        `keep_history`.
    bound_ : float or ndarray of shape (n_outputs,)
        `B` in force: the given bound, or the one learnt. At a float, the largest
        absolute label.
    std_ : float or ndarray of shape (n_outputs,)
        Standard deviation of the next label about its prediction, such that
        nine in ten labels fall within 1.645 of it; infinite before the second
        label.
    noise_scale_ : float or ndarray of shape (n_outputs,)
        Standard deviation of the errors that the pool reckons with, drawn in where
        they are large. Only with "auto".
    breakpoints_ : ndarray of shape (n_breakpoints,) or list of n_outputs such
        First row, from 0, of each new segment by the labels so far; found with
        a delay of about 2 labels for a jump of 5 standard deviations, 8 for one
        of 2. Later labels may change them. Made for noise with a density: in
        sparse counts rare events are listed. See `sktvdenoise.breakpoints`.
    run_length_ : int or ndarray of shape (n_outputs,)
        Rows since the birth of the heaviest expert: for how long the level has
        stood, as far as the experts can tell.
    expert_births_ : ndarray of shape (n_experts,) or list of n_outputs such
        The row, from 0, that is the first each living expert sees, ascending.
        The last is the newborn, which sees its first label in the next round.
        With "auto", the experts are those of the pool's robust running means.
    expert_weights_ : ndarray of shape (n_experts,) or list of n_outputs such
        Weights of the living experts in the next prediction; their sum is 1.
        With "auto", the probability that the level has stood since each birth
        (if it changes once in 200 rounds).
    member_weights_ : dict of str to float, or list of n_outputs such
        How much of the next prediction each member of the pool, and the guard,
        accounts for, heaviest first. Their sum is 1. Only with "auto".

    See Also
    --------
    FusedLasso : The same question when all labels are there: offline total
        variation denoising.
    sktvdenoise.metrics.dynamic_regret : How far predictions were from the
        best sequence with a given total variation.

    Notes
    -----
    With "theory", in round `t` of `1, 2, ...` expert `j <= t` predicts the mean
    :math:`x_t^j` of labels `j, ..., t - 1`; the newborn `t` predicts the last
    label. The loss of a row is :math:`w_t (y_t - x_t)^2` with sample weight
    :math:`w_t`, and

    .. math::

        x_t = \sum_j v_t^j x_t^j, \qquad
        \hat v_{t+1}^j \propto v_t^j e^{-\eta w_t (y_t - x_t^j)^2}, \qquad
        v_{t+1}^j = \tfrac{t}{t+1} \hat v_{t+1}^j, \quad
        v_{t+1}^{t+1} = \tfrac{1}{t+1}.

    For every expert that is alive in rows `r` to `s` of the present start the
    loss exceeds the expert's by at most :math:`\ln(s) / \eta` at the rates
    "theory" and "mixable".

    The first prediction is 0. Order counts, spacing of the positions does not.
    Several outputs are independent instances (Proposition 10 of [1]_).
    Weights count relative to 1: a larger one than all before is met like a
    label beyond the bound, by a smaller rate and a new start.

    Parameters are read where a stream starts: in `fit`, and in the first
    `partial_fit`.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.
    .. [2] E. Hazan and C. Seshadhri (2007). Adaptive algorithms for online
       decision problems. ECCC technical report 88.
    .. [3] V. Vovk (2001). Competitive on-line statistics. International
       Statistical Review 69.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise import OnlineTVDenoiser
    >>> y = np.repeat([0.0, 5.0], 50) + np.tile([0.1, -0.1], 50)
    >>> denoiser = OnlineTVDenoiser()
    >>> x = denoiser.partial_fit_predict(np.arange(100), y)
    >>> np.abs(np.round(x[[0, 50, 53, 99]]))
    array([0., 0., 5., 5.])
    """

    _parameter_constraints = {
        "learning_rate": [
            StrOptions({"auto", "theory", "mixable"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "bound": [None, Interval(Real, 0, None, closed="neither")],
        "pruning": [StrOptions({"aflh"}), None],
        "keep_history": ["boolean"],
        "missing": [StrOptions({"error", "skip"})],
    }

    def __init__(
        self,
        *,
        learning_rate="auto",
        bound=None,
        pruning="aflh",
        keep_history=True,
        missing="error",
    ):
        self.learning_rate = learning_rate
        self.bound = bound
        self.pruning = pruning
        self.keep_history = keep_history
        self.missing = missing

    @property
    def bound_(self):
        return self._by_output("bound_", lambda stream: stream.bound)

    @property
    def breakpoints_(self):
        return self._list("breakpoints_", Stream.breakpoints)

    @property
    def run_length_(self):
        return self._by_output("run_length_", Stream.run_length)

    @property
    def expert_births_(self):
        return self._list("expert_births_", lambda stream: stream.experts()[0])

    @property
    def expert_weights_(self):
        return self._list("expert_weights_", lambda stream: stream.experts()[1])

    @property
    def noise_scale_(self):
        self._check_auto("noise_scale_")
        return self._by_output("noise_scale_", lambda stream: stream.noise_scale)

    @property
    def member_weights_(self):
        self._check_auto("member_weights_")
        return self._list("member_weights_", Stream.members)

    def _new_stream(self):
        return Stream(self.learning_rate, self.bound, self.pruning == "aflh")

    def _check_auto(self, name):
        self._check_attribute(name)
        if not self._streams[0].has_pool:
            raise AttributeError(f'{name} is there only with learning_rate="auto"')
