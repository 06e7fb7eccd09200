"""Adaptive regression and classification with covariates, row by row."""

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from sktvdenoise._engines import LARGEST
from sktvdenoise._linear_classifier import FLHClassifier
from sktvdenoise._linear_estimator import TOO_LARGE, LinearEstimator
from sktvdenoise._positions import check_labels, check_size
from sktvdenoise._problem import check_exposure
from sktvdenoise.losses import LOSSES, Loss, Poisson

__all__ = ["FLHClassifier", "FLHRegressor"]


class FLHRegressor(RegressorMixin, LinearEstimator):
    r"""Adaptive regression: coefficients that change, by as much as they need.

    Rows are seen one after the other; before the label of a row is seen it is
    predicted. With nothing to set, a pool of regressions that follow their coefficients
    at different paces predicts, for numbers with the learner of the theory as a guard.
    That one is follow-the-leading-history: experts start in different rows and learn
    linear models, and are weighed by how well each did. With ``learning_rate="theory"``
    and ``expert="ons"`` its loss exceeds that of every sequence of coefficients by
    :math:`\tilde O(n^{1/3} C^{2/3} + 1)`, up to factors of d, where C is the sequence's
    total variation, which need not be known (Theorem 14 of [1]_).

    Parameters
    ----------
    expert : {"vaw", "ridge", "ons", "ogd"}, default="vaw"
        What the experts do with the rows since their birth. With "auto", for squared
        loss, those of the guard: "vaw" or "ridge".

        - "ridge": ridge regression, around the label before its birth; squared loss
          only;
        - "vaw": the same with the row to be predicted counted in, its label taken for
          this one, as of Vovk, Azoury and Warmuth; squared loss only;
        - "ons": the online Newton step [3]_;
        - "ogd": online gradient descent with step 1 / (H k) in its k-th row.

    loss : {"squared", "poisson"} or Loss, default="squared"
        :math:`(y - z)^2` or, for counts, :math:`e^z - y z`, of the linear prediction
        :math:`z = x^\top \theta`; or a loss of your own, see `sktvdenoise.losses.Loss`,
        which is not compiled and takes some hundred times as long.
    learning_rate : {"auto", "theory"} or float, default="auto"
        How predictions are made; :math:`\eta`, how strongly losses change the experts'
        weights.

        - "auto": by a pool of never restarted regressions: for squared loss with a
          guard, the learner of "theory", such that on every sequence the loss is at
          most the guard's plus :math:`(4 d + 50) B^2`, B the largest label, or five
          times that where the first labels are far from 0 beside their range (see
          `sktvdenoise.ladder`); for counts without (see `sktvdenoise.laplace`). Not for
          losses of your own;
        - "theory": all constants from the loss, `bound`, and the largest label and row
          so far, for which the guarantees hold. It is far too small for most uses;
        - a float, in units of one over the loss: for squared loss one over twice the
          variance of the noise is a good value, for counts 1. "ons" takes it for
          the rate of its steps, too.

    bound : float, default=None
        With "auto" it concerns the guard, and is refused for counts.
        For "vaw" and "ridge", in units of the labels: no label is larger in absolute
        value, one that is raises a ValueError, and predictions of experts are drawn in
        to :math:`[-B, B]`. With None it is learnt at the rate of "theory", and nothing
        is drawn in at a float.
        For "ons" and "ogd", in units of labels over features: B, the largest
        coefficient of the sequences to compare with at the rate of "theory" (None: the
        largest label for squared loss, 1 for counts), the largest coefficient of an
        expert at a float (None: any).
    pruning : {"aflh"} or None, default="aflh"
        With "aflh" an expert that starts in round :math:`r 2^k`, `r` odd, lives for
        :math:`2^{k+2} + 1` further rounds [2]_: O(log n) experts. With None all live
        for ever: O(n) time and memory per row. With "auto" it concerns the guard, and
        is refused for counts.
    alpha : float, default=1.0
        With "auto" it concerns the guard, and is refused for counts. For "vaw" and
        "ridge" the penalty :math:`\alpha |\theta - \theta_0|^2`, in units of squared
        features, of the intercept as well. At a float, "ons" starts with
        :math:`\alpha / \eta` times the identity, and "ogd" takes :math:`H = \alpha b
        R^2`, where b bounds the second derivative of the loss and R the norms of the
        rows so far. At the rate of "theory" both have their constants from elsewhere,
        and another `alpha` than 1 is refused.
    fit_intercept : bool, default=True
        Whether a feature 1 is added to the rows. False is refused with "auto".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,) or (n_outputs, n_features_in_)
        Coefficients of the mixture of experts, or of the pool, for the next row. (The
        experts of "vaw" draw their prediction to :math:`x^\top \theta_0`.)
    intercept_ : float or ndarray of shape (n_outputs,)
    expert_births_ : ndarray of shape (n_experts,) or list of n_outputs such
        The row, from 0, that is the first each living expert sees, ascending. The last
        is the newborn, which sees its first row in the next round. With "auto", the
        guard's; counts have none.
    expert_weights_ : ndarray of shape (n_experts,) or list of n_outputs such
        Weights of the living experts in the next prediction (with "auto", in the
        guard's); their sum is 1.
    member_weights_ : ndarray of shape (n_members,) or list of n_outputs such
        How much of the pool's next prediction each member accounts for, in the order of
        `sktvdenoise.ladder.LADDER` or `sktvdenoise.laplace.pool_members`; their sum is
        1. Only with "auto".
    learning_rate_ : float or ndarray of shape (n_outputs,)
        :math:`\eta` in force. This and what follows up to `constants_` isn't there with
        "auto".
    bound_ : float or ndarray of shape (n_outputs,)
        B in force; infinite where there is none.
    label_bound_, row_bound_ : float or ndarray of shape (n_outputs,)
        Range of labels and of norms of rows (with the 1 of the intercept) for which the
        constants hold; infinite where they don't matter.
    constants_ : Constants or list of n_outputs such
        See `sktvdenoise.losses.example_13`. Only with "ons" and "ogd" at the rate of
        "theory".
    n_samples_seen_ : int
        Number of rows seen.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if `X` was a data frame with names.

    See Also
    --------
    FLHClassifier : The same for classes.
    OnlineTVDenoiser : The same without covariates.
    CoefficientPathDisplay : A picture of the coefficients as rows come.

    Notes
    -----
    At a rate, in round t the weights and the prediction are

    .. math::

        z_t = \sum_j v_t^j z_t^j, \qquad
        \hat v_{t+1}^j \propto v_t^j e^{-\eta w_t f_t(z_t^j)}, \qquad
        v_{t+1}^j = \tfrac{t}{t+1} \hat v_{t+1}^j, \quad
        v_{t+1}^{t+1} = \tfrac{1}{t+1},

    with sample weight :math:`w_t`. For every expert alive in rounds r to s of the
    present start the loss exceeds the expert's by at most :math:`\ln(s) / \eta` at the
    rate of "theory", which is :math:`1 / (8 B^2)` for "vaw" and "ridge", else that of
    Example 13.

    The experts of "vaw" and "ridge" know only the rows since their birth, and are drawn
    to :math:`\theta_0 = (0, \dots, 0, o)`, where the origin o of the intercept is the
    label before: that is what a newborn predicts first. (Without an intercept o is 0.)
    With :math:`|o| \le B` the regret of "vaw" towards coefficients :math:`\theta` is
    that of labels of size 2 B towards :math:`\theta - \theta_0`. A newborn of "ons" and
    "ogd" starts from the coefficients of the mixture; at a float its intercept is moved
    so that it would have predicted the last label (the rate, of counts).

    The first prediction is 0. Then the first expert goes on as if it had started from
    the first label (of counts, from its logarithm), but for "ons" and "ogd" at the rate
    of "theory". So with an intercept the level of the labels doesn't matter at a float,
    and jumps of it are followed at once.

    At the rate of "theory" a label or a weight beyond all before raises its range to
    the double, a row that of norms by a quarter, or to what it is if that is more. The
    experts start again with this row as their first, from the mixture's prediction of
    it. There are logarithmically many such starts. Weights count relative to 1. With
    d coefficients up to B, labels up to Y and rows of norm up to R the constants of
    counts contain :math:`\exp(6 R \sqrt d (B + R \max(e^{R \sqrt d B}, Y)))`, roughly:
    only for small rows and counts they are floating-point numbers, otherwise a
    ValueError says so.

    At a float predictions of the experts of "ons" and "ogd" are drawn in to three times
    the largest label so far, the rates of counts to twice the largest count plus 2, so
    that long first steps do no lasting harm.

    "ogd" has a guarantee only with a single feature of constant size, as losses of
    several are not strongly convex. At the rate of "theory" it may fail with them.

    The experts of "vaw" and "ridge" keep the inverse of their matrix as U D U' [4]_, so
    that no digits are lost over millions of rows, though a column be a million times as
    large as another or depend on others. But the penalty counts squared features: a
    column of small numbers is learned late, of size s after some :math:`\alpha / s^2`
    rows, so scale such columns, or take a smaller `alpha`. "auto" hardly depends on it.

    Parameters are read where a stream starts: in `fit`, and in the first `partial_fit`.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.
    .. [2] E. Hazan and C. Seshadhri (2007). Adaptive algorithms for online
       decision problems. ECCC technical report 88.
    .. [3] E. Hazan, A. Agarwal and S. Kale (2007). Logarithmic regret algorithms for
       online convex optimization. Machine Learning 69.
    .. [4] G. J. Bierman (1977). Factorization methods for discrete sequential
       estimation. Academic Press.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise import FLHRegressor
    >>> X = np.sin(np.arange(200.0))[:, None]
    >>> y = np.where(np.arange(200) < 100, 3.0, -1.0) * X[:, 0]
    >>> model = FLHRegressor().fit(X, y)
    >>> model.coef_.round(1)
    array([-1.])

    The regret against all sequences of coefficients with the variation of the truth:

    >>> from sktvdenoise import dynamic_regret, path_variation
    >>> from sktvdenoise.datasets import make_drifting_regression
    >>> X, y, *truth = make_drifting_regression(300, 2, random_state=0)
    >>> C, Z = path_variation(np.column_stack(truth)), np.c_[X, np.ones(300)]
    >>> z = FLHRegressor().partial_fit_predict(X, y)
    >>> print(0 < dynamic_regret(y, z, tv_budget=C, X=Z) < 0.2 * np.sum(y**2))
    True
    """

    _parameter_constraints = {
        **LinearEstimator._parameter_constraints,
        "loss": [StrOptions({"squared", "poisson"}), Loss],
    }

    def __init__(
        self,
        expert="vaw",
        *,
        loss="squared",
        learning_rate="auto",
        bound=None,
        pruning="aflh",
        alpha=1.0,
        fit_intercept=True,
    ):
        self.expert = expert
        self.loss = loss
        self.learning_rate = learning_rate
        self.bound = bound
        self.pruning = pruning
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, exposure=None):
        """Forget the past and learn from the rows in their order, in one pass.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Covariates, at most 1e30 in size.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels. Several outputs are independent of each other.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Factors of the rows' losses; None means 1. From a row of weight 0 nothing
            is learned.
        exposure : float or array-like of shape (n_samples,), default=None
            Time or size that counts were taken over: y is expected to be exposure times
            rate. Only with ``loss="poisson"``.

        Returns
        -------
        self : FLHRegressor

        Raises
        ------
        ValueError
            If an array is empty, of wrong shape, not finite or too large, if a count or
            a weight is negative, or a label beyond `bound`; if parameters don't go
            together.
        """
        self._learn_rows(X, y, sample_weight, exposure, reset=True)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None, exposure=None):
        """Go on learning, row by row. Parameters are those of `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : float or array-like of shape (n_samples,), default=None
        exposure : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self : FLHRegressor

        Raises
        ------
        ValueError
            As in `fit`, and if the number of features or outputs changes. Nothing of
            the batch has been learned then.
        """
        self._learn_rows(X, y, sample_weight, exposure)
        return self

    def partial_fit_predict(self, X, y, sample_weight=None, exposure=None):
        """Go on learning, and return what was predicted before each label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : float or array-like of shape (n_samples,), default=None
        exposure : float or array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        predictions : ndarray of the shape of y
            As of `predict`; for counts the rate, per unit of exposure. They don't
            depend on how rows are cut into batches.

        Raises
        ------
        ValueError
            As in `partial_fit`.
        """
        if not self.__sklearn_is_fitted__():
            self._validate_params()
        outputs = self._learn_rows(X, y, sample_weight, exposure)
        return self._shaped(self._means(outputs))

    def predict(self, X):
        """Predict rows, each as if it were the next.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The mean of the label: the linear prediction, for counts its exponential,
            the rate per unit of exposure.

        Raises
        ------
        NotFittedError
            If no row has been seen.
        ValueError
            If `X` has another number of features, or is not finite.
        """
        return self._shaped(self._means(self._outputs(X)))

    def linear_predictor(self, X):
        """The linear prediction: the label, for counts the logarithm of the rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        z : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        outputs = self._outputs(X)
        if self._engine.predicts_mean:
            outputs = self._loss.link(outputs)
        return self._shaped(outputs)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _learn_rows(self, original, y, sample_weight, exposure, *, reset=False):
        begins = reset or not self.__sklearn_is_fitted__()
        X = self._check_rows(original, reset=begins)
        loss = LOSSES.get(self.loss, self.loss) if begins else self._loss
        y = check_labels(
            y, len(X), bound=self._label_limit() if begins else self._limit
        )
        y = loss.check(y)
        weights = self._check_weights(sample_weight, len(X), whole=reset)
        if exposure is not None:
            if not isinstance(loss, Poisson):
                raise ValueError('exposure is for counts: loss="poisson".')
            exposure = check_exposure(exposure, y)
            # E exp(z) - y z is E times the loss of the label y / E.
            seen = np.maximum(exposure, np.finfo(float).tiny)
            y = (y.T / seen).T
            weights = weights * exposure
        check_size(y, LARGEST, "Label y", why=TOO_LARGE)
        single = y.ndim == 1
        columns = [y] if single else [np.ascontiguousarray(c) for c in y.T]
        if begins:
            begun = self._start(X, self.loss, len(columns))
        else:
            begun = self._engine, self._states
            expected = "" if self._single else f" {len(self._states)}"
            if y.shape[1:] != (() if self._single else (len(self._states),)):
                raise ValueError(
                    f"y has shape {y.shape}, but the labels before had shape "
                    f"(n_samples,{expected})."
                )
        outputs = self._learn(begun, original, X, columns, weights)
        if begins:
            self._single, self._loss, self._limit = single, loss, self._label_limit()
        return outputs

    def _label_limit(self):
        """The largest label allowed; for "ons" and "ogd" `bound` is something else."""
        of_labels = self.expert in ("vaw", "ridge") and self.loss == "squared"
        return self.bound if of_labels else None

    def _is_single(self):
        return self._single

    def _means(self, outputs):
        return outputs if self._engine.predicts_mean else self._loss.mean(outputs)

    def _shaped(self, outputs):
        return outputs[:, 0] if self._single else outputs
