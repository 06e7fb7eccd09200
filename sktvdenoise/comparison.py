"""One series, the ways to denoise it side by side, and the best in hindsight."""

import time
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from scipy.signal import lfilter
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_predict
from sklearn.utils._optional_dependencies import (
    check_matplotlib_support,
    check_pandas_support,
)

from sktvdenoise._console import aligned, figure
from sktvdenoise._plot_rows import (
    BLACK,
    CURVES,
    GREY,
    draw_line,
    in_order,
    name_of,
    one_output,
)
from sktvdenoise._positions import check_labels
from sktvdenoise._progressive import check_count
from sktvdenoise._regret_curve import check_budgets
from sktvdenoise.cross_validation import FusedLassoCV
from sktvdenoise.metrics import path_variation, tv_oracle
from sktvdenoise.model_selection import progressive_val_predict
from sktvdenoise.offline import FusedLasso, fused_lasso
from sktvdenoise.online import OnlineTVDenoiser

__all__ = ["DenoiserComparison", "compare_denoisers"]

EARLIER = "earlier labels"
HINDSIGHT = "earlier labels, tuned on all"
OTHERS = "all other labels"
ALL = "all labels"

_N_FACTORS, _N_PENALTIES = 200, 25
_N_TUNINGS = 100
# So many solutions of a growing series at most.
_N_SOLUTIONS = 20_000


@dataclass(frozen=True)
class Contender:
    """A row of the table.

    Attributes
    ----------
    name : str
    sees : str
        What an estimate knows: "earlier labels"; "earlier labels, tuned on all";
        "all other labels" or "all labels" than that of its row.
    estimate : ndarray of shape (n_samples,)
        The estimates, in order of position.
    seconds : float
        Time spent on all of them, tuning included.
    """

    name: str
    sees: str
    estimate: np.ndarray = field(repr=False)
    seconds: float


class DenoiserComparison:
    """Losses, regrets and times of several denoisers on one series.

    `compare_denoisers` makes it. Printed, it is a table.

    Attributes
    ----------
    contenders : list of Contender
        With `name`, `sees`, `estimate` and `seconds`; the oracles are the last ones.
    positions : ndarray of shape (n_samples,)
        Ascending.
    y : ndarray of shape (n_samples,)
        Labels in order of position.
    truth : ndarray of shape (n_samples,) or None
        What was there but for the noise, where it is known.
    tv_budgets : ndarray of shape (n_budgets,)
        Budgets of total variation, ascending.
    warmup_size : int
        Number of first rows that are not judged.
    loss : ndarray of shape (n_contenders,)
        ``sum((y - estimate)**2)`` over the rows judged.
    regret : ndarray of shape (n_contenders, n_budgets)
        `loss` less that of the best sequence within each budget.
    error : ndarray of shape (n_contenders,) or None
        ``sum((truth - estimate)**2)`` over the rows judged.

    See Also
    --------
    compare_denoisers : Makes it, with an example.
    """

    def __init__(
        self,
        contenders,
        *,
        positions,
        y,
        truth,
        tv_budgets,
        oracle_loss,
        warmup_size,
        position_name="position",
        value_name="value",
    ):
        self.contenders = contenders
        self.positions, self.y, self.truth = positions, y, truth
        self.tv_budgets, self.warmup_size = tv_budgets, warmup_size
        estimates = np.array([row.estimate for row in contenders])
        self._judged = slice(warmup_size, None)
        self._losses = (y - estimates) ** 2
        self.loss = self._losses[:, self._judged].sum(axis=1)
        self.regret = self.loss[:, None] - oracle_loss
        self.error = None
        if truth is not None:
            self.error = ((truth - estimates)[:, self._judged] ** 2).sum(axis=1)
        self._names = position_name, value_name

    def _columns(self):
        columns = {"sees": [row.sees for row in self.contenders], "loss": self.loss}
        for budget, regret in zip(self.tv_budgets, self.regret.T):
            columns[f"regret, TV ≤ {budget:.6g}"] = regret
        if self.error is not None:
            columns["error to truth"] = self.error
        return columns | {"seconds": [row.seconds for row in self.contenders]}

    def to_frame(self):
        """The table as a data frame, a row for each contender.

        Returns
        -------
        frame : pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = check_pandas_support(f"{type(self).__name__}.to_frame")
        index = pandas.Index([row.name for row in self.contenders], name="denoiser")
        return pandas.DataFrame(self._columns(), index=index)

    def __repr__(self):
        columns = self._columns()
        lines = [["denoiser", *columns]]
        for row, cells in zip(self.contenders, zip(*columns.values())):
            *cells, seconds = cells
            figures = [c if isinstance(c, str) else figure(c) for c in cells]
            lines.append([row.name, *figures, f"{seconds:.3f}"])
        return aligned(lines, n_left=2)

    def plot(self, axes=None, *, tv_budget=None):
        """Draw the estimates, and below how losses grew beyond an oracle's.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            None makes a new figure.
        tv_budget : float, default=None
            The oracle's budget, one of `tv_budgets`; None takes the largest.

        Returns
        -------
        comparison : DenoiserComparison
            The object itself, with `axes_` and `figure_` set.

        Raises
        ------
        ValueError
            If there is no oracle with this budget.
        ImportError
            If matplotlib is not installed.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(
                2,
                sharex=True,
                figsize=(8, 6.5),
                height_ratios=[3, 2],
                layout="constrained",
            )
        n_oracles = len(self.tv_budgets)
        found = np.flatnonzero(
            self.tv_budgets == (self.tv_budgets[-1] if tv_budget is None else tv_budget)
        )
        if not len(found):
            raise ValueError(
                f"tv_budget must be one of {self.tv_budgets.tolist()}, got "
                f"{tv_budget!r}."
            )
        k = len(self.contenders) - n_oracles + int(found[0])
        oracle = self.contenders[k]
        top, bottom = axes
        judged, shown = self._judged, self.positions[self._judged]
        draw_line(
            top,
            self.positions,
            self.y,
            None,
            label="observed",
            color=GREY,
            linestyle="none",
            marker="o",
            markersize=np.clip(60 / np.sqrt(len(self.y)), 2, 4),
            markeredgewidth=0,
            zorder=1,
        )
        reference, label = oracle.estimate, oracle.name
        if self.truth is not None:
            reference, label = self.truth, "truth"
        draw_line(
            top,
            self.positions,
            reference,
            None,
            label=label,
            color=BLACK,
            linewidth=2.5,
            alpha=0.5,
            drawstyle="steps-post" if self.truth is None else "default",
            zorder=2,
        )
        excess = np.cumsum((self._losses - self._losses[k])[:, judged], axis=1)
        for i, row in enumerate(self.contenders[:-n_oracles]):
            style = {
                "color": CURVES[i % len(CURVES)],
                "linestyle": "--" if row.sees == OTHERS else "-",
                "linewidth": 1.5 if i == 0 else 1.0,
                "zorder": 4 - i / len(self.contenders),
                "label": row.name,
            }
            draw_line(top, shown, row.estimate[judged], None, **style)
            draw_line(bottom, shown, excess[i], None, **style)
        bottom.axhline(0, color=BLACK, linewidth=0.8, zorder=1)
        position_name, value_name = self._names
        top.set(ylabel=value_name)
        bottom.set(
            xlabel=position_name, ylabel=f"loss so far less that of the\n{oracle.name}"
        )
        top.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small"
        )
        self.axes_, self.figure_ = axes, top.figure
        return self


def compare_denoisers(
    X,
    y,
    *,
    truth=None,
    tv_budgets=None,
    estimators=None,
    n_splits=5,
    retune_every=None,
    warmup_size=1,
    random_state=0,
    n_jobs=None,
):
    """Compare the untuned online denoiser with tuned ones on a series.

    Parameters
    ----------
    X : array-like of shape (n_samples,) or (n_samples, 1)
        Positions, in any order: numbers or dates.
    y : array-like of shape (n_samples,)
        Labels.
    truth : array-like of shape (n_samples,), default=None
        The signal without noise, where it is known.
    tv_budgets : float or array-like of float >= 0, default=None
        Budgets of total variation for the regret, in the units of the labels. None
        takes 0, the best constant, and the variation of `truth`, or if that is not
        known of ``FusedLasso(alpha="sure", refit=True)``.
    estimators : dict of str to estimator, default=None
        What goes through the rows online, each with its name: estimators with
        `partial_fit` whose feature is the number of the row. None is the untuned
        :class:`~sktvdenoise.OnlineTVDenoiser`.
    n_splits : int >= 2, default=5
        Number of folds by which penalties are chosen.
    retune_every : int >= 1, default=None
        Number of rows after which the causal fused lasso chooses its penalty anew.
        None is a hundredth of the rows.
    warmup_size : int >= 0, default=1
        Number of first rows that are learned and not judged. In the first row all
        predict 0.
    random_state : int, RandomState instance or None, default=0
        What shuffles the folds.
    n_jobs : int, default=None
        Number of folds computed at once. The numbers don't depend on it.

    Returns
    -------
    comparison : DenoiserComparison
        Prints as a table, with `to_frame` and `plot`.

    Raises
    ------
    ValueError
        If lengths differ, there is more than one output, a position, a label or the
        truth isn't finite (the message names the row), a budget or a number is out of
        range, or there are not more than `n_splits` rows.
    TypeError
        If an estimator can't learn row by row, or `estimators` isn't a dict of them
        by name.

    See Also
    --------
    sktvdenoise.metrics.regret_curve : Regret against all budgets.

    Notes
    -----
    The contenders, and what their estimate of a row has seen:

    - the `estimators`: the labels of earlier rows;
    - the causal fused lasso: the same. It is solved anew for each row, with all
      earlier labels, and predicts its last level. Its penalty is the one that
      ``GridSearchCV(FusedLasso(), {"alpha": ...}, cv=TimeSeriesSplit(n_splits),
      scoring="neg_mean_squared_error")`` finds among 100 on the earlier labels; as a
      search for each row would be slow, it is held for `retune_every` rows;
    - the same with the best of 25 constant penalties in hindsight, and exponential
      smoothing with the best of 200 constant factors: earlier labels, but a setting
      that could not have been known;
    - the fused lasso for smoothing: all labels but those of its fold. The folds are
      shuffled, its penalty is the one with the least loss of held-out rows, and these
      predictions are what is judged;
    - the oracles, the best sequences within each budget: all labels, also that of
      the row. They are solved for the rows that are judged.

    Losses are sums of squares, not means. Solving anew for each row takes time
    quadratic in the number of rows: beyond 20,000 rows, or 4,000 for the best
    penalty, a solution is held for some rows.

    Examples
    --------
    >>> from sktvdenoise.comparison import compare_denoisers
    >>> from sktvdenoise.datasets import load_nile
    >>> X, y = load_nile(return_X_y=True)
    >>> comparison = compare_denoisers(X, y, tv_budgets=[0, 250])
    >>> online, tuned = comparison.regret[:2, 1]
    >>> bool(online < tuned)
    True
    """
    positions, labels, order = in_order(X, y)
    check_labels(y)
    if truth is not None:
        truth = one_output(truth, "truth")
        check_labels(truth, len(labels), name="truth")
        truth = truth[order]
    n = len(labels)
    if not isinstance(n_splits, Integral) or n_splits < 2:
        raise ValueError(f"n_splits must be an integer >= 2, got {n_splits!r}.")
    if n <= n_splits:
        raise ValueError(f"{n_splits} splits need more than {n} rows.")
    if retune_every is None:
        retune_every = max(1, n // _N_TUNINGS)
    check_count("retune_every", retune_every)
    if retune_every == 0:
        raise ValueError("retune_every must be at least 1, got 0.")
    check_count("warmup_size", warmup_size, below=n)
    if tv_budgets is None:
        tv_budgets = [0.0, _variation(labels, truth)]
    tv_budgets = np.unique(check_budgets(tv_budgets))
    if estimators is None:
        estimators = {"OnlineTVDenoiser": OnlineTVDenoiser(keep_history=False)}
    elif not isinstance(estimators, dict) or not all(
        isinstance(name, str) for name in estimators
    ):
        raise TypeError(
            "estimators must be a dict of estimators by their names, which are "
            f"strings, got {estimators!r}."
        )

    contenders = []

    def enter(name, sees, function, *args):
        start = time.perf_counter()
        estimate = function(*args)
        seconds = time.perf_counter() - start
        if isinstance(estimate, tuple):
            estimate, detail = estimate
            name = f"{name} {detail}"
        contenders.append(Contender(name, sees, estimate, seconds))

    for name, estimator in estimators.items():
        enter(name, EARLIER, _online, estimator, labels)
    causal = labels, n_splits, retune_every, n_jobs
    enter("fused lasso, time-series folds", EARLIER, _causal, *causal)
    enter("fused lasso, best penalty", HINDSIGHT, _causal_best, labels, warmup_size)
    enter("EWMA, best factor", HINDSIGHT, _ewma, labels, warmup_size)
    shuffled = labels, n_splits, random_state, n_jobs
    enter("fused lasso, shuffled folds", OTHERS, _smoothed, *shuffled)
    oracle_loss = []
    for budget in tv_budgets:
        start = time.perf_counter()
        oracle = tv_oracle(labels[warmup_size:], budget)
        seconds = time.perf_counter() - start
        oracle_loss.append(oracle.loss)
        # Flat before the rows that it knows.
        estimate = np.pad(oracle.comparator, (warmup_size, 0), mode="edge")
        name = f"oracle, TV ≤ {budget:.6g}"
        contenders.append(Contender(name, ALL, estimate, seconds))
    return DenoiserComparison(
        contenders,
        positions=positions,
        y=labels,
        truth=truth,
        tv_budgets=tv_budgets,
        oracle_loss=np.array(oracle_loss),
        warmup_size=warmup_size,
        position_name=name_of(X, "position"),
        value_name=name_of(y, "value"),
    )


def _variation(y, truth):
    if truth is None:
        model = FusedLasso(alpha="sure", refit=True)
        truth = model.fit(np.arange(len(y)), y).values_
    return path_variation(truth)


def _online(estimator, y):
    rows = np.arange(len(y), dtype=float)[:, None]
    try:
        return progressive_val_predict(estimator, rows, y)
    except NotFittedError:
        predictions = progressive_val_predict(estimator, rows, y, warmup_size=1)
        return np.append(0.0, predictions)


def _causal(y, n_splits, retune_every, n_jobs):
    """The last level of the fused lasso of all earlier labels, tuned on them."""
    model = FusedLassoCV(cv=TimeSeriesSplit(n_splits), n_jobs=n_jobs)
    rows = np.arange(len(y))
    alphas = np.zeros(len(y))
    for start in range(n_splits + 1, len(y), retune_every):
        alphas[start : start + retune_every] = model.fit(rows[:start], y[:start]).alpha_
    return _last_levels(y, alphas, 1 + len(y) // _N_SOLUTIONS)


def _causal_best(y, warmup_size):
    """The same with the one penalty of least loss, and this penalty."""
    rows = np.arange(len(y))
    alphas = FusedLassoCV(_N_PENALTIES, cv=2).fit(rows, y).alphas_
    hold = 1 + len(y) * len(alphas) // (5 * _N_SOLUTIONS)
    estimates = (_last_levels(y, np.full(len(y), alpha), hold) for alpha in alphas)
    return _best(y, estimates, alphas, warmup_size)


def _last_levels(y, alphas, hold):
    """The last level of each row's predecessors at the row's penalty."""
    estimate = np.zeros(len(y))
    for t in range(1, len(y), hold):
        estimate[t : t + hold] = fused_lasso(y[:t], alphas[t])[-1]
    return estimate


def _best(y, estimates, settings, warmup_size):
    """The estimate of least loss, and its setting in three digits."""
    best, least = None, np.inf
    for estimate, setting in zip(estimates, settings):
        loss = np.sum((y - estimate)[warmup_size:] ** 2)
        if loss < least:
            best, least = (estimate, f"{setting:.3g}"), loss
    return best


def _smoothed(y, n_splits, random_state, n_jobs):
    """Held-out labels by the fused lasso of the other folds, and the penalty."""
    rows = np.arange(len(y))
    folds = list(KFold(n_splits, shuffle=True, random_state=random_state).split(rows))
    alpha = FusedLassoCV(cv=folds, n_jobs=n_jobs).fit(rows, y).alpha_
    return cross_val_predict(FusedLasso(alpha), rows, y, cv=folds)


def _ewma(y, warmup_size):
    """Exponential smoothing with the factor of least loss, and this factor."""

    def smoothed(factor):
        state = [(1 - factor) * y[0]]
        level, _ = lfilter([factor], [1, factor - 1], y[1:-1], zi=state)
        return np.concatenate([[0.0, y[0]], level])

    factors = np.geomspace(1 / len(y), 1, _N_FACTORS)
    return _best(y, map(smoothed, factors), factors, warmup_size)
