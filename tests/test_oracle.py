"""Oracles with covariates and other losses: peers, certificates, identities."""

import warnings

import clarabel
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from sktvdenoise.losses import LOSSES, Poisson
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle

NAMES = ["squared", "poisson", "logistic"]


def problem(loss, n=120, d=3, correlation=0.5, seed=0, scales=1.0):
    """Covariates, labels and the drifting coefficients behind them."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - correlation) * rng.normal(size=(n, d))
    X += np.sqrt(correlation) * rng.normal(size=(n, 1))
    u = rng.normal(size=(4, d))[np.arange(n) * 4 // n] / 2
    p = np.sum(X * u, axis=1)
    if loss == "squared":
        y = p + rng.normal(size=n)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(p, -4, 4))).astype(float)
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-p))).astype(float)
    return X * scales, y, u / scales


def loss_of(loss, y, p, w=1.0):
    return (2 if loss == "squared" else 1) * np.sum(w * LOSSES[loss].value(y, p))


def by_cones(X, y, w, loss, budget, bound):
    """The least loss, by an interior-point solver of cone programmes.

    The variables are u, |u_t - u_{t-1}| and what the loss needs.
    """
    n, d = X.shape
    m = (n - 1) * d
    steps = sparse.kron(sparse.diags([-1.0, 1.0], [0, 1], (n - 1, n)), sparse.eye(d))
    rows = sparse.block_diag([X[t : t + 1] for t in range(n)], format="csc")
    extra = {"squared": 0, "poisson": n, "logistic": 3 * n}[loss]
    size = n * d + m + extra

    def place(block, column):
        before = sparse.csc_matrix((block.shape[0], column))
        after = sparse.csc_matrix((block.shape[0], size - column - block.shape[1]))
        return sparse.hstack([before, block, after])

    eye, one = sparse.eye(n), np.ones(n)
    A = [place(sign * steps, 0) - place(sparse.eye(m), n * d) for sign in (1, -1)]
    A += [place(sparse.csc_matrix(np.ones((1, m))), n * d)]
    b = [np.zeros(2 * m), [budget]]
    if bound is not None:
        A += [place(sign * sparse.eye(n * d), 0) for sign in (1, -1)]
        b += [np.full(2 * n * d, bound)]
    P, q = sparse.csc_matrix((size, size)), np.zeros(size)
    own = n * d + m
    exponentials = []  # pairs of the matrices of x and z in exp(x) <= z
    if loss == "squared":
        P = place(2 * rows.T @ sparse.diags(w) @ rows, 0)
        P = sparse.vstack([P, sparse.csc_matrix((size - n * d, size))]).tocsc()
        q[: n * d] = -2 * rows.T @ (w * y)
        constant = np.sum(w * y**2)
    else:
        q[: n * d] = -rows.T @ (w * y)
        q[own : own + n] = w
        constant = np.sum(w * LOSSES[loss].value(y, 0 * y)) - np.sum(
            w * (1.0 if loss == "poisson" else np.log(2))
        )
    if loss == "poisson":
        exponentials = [(place(rows, 0), place(eye, own))]
    elif loss == "logistic":
        top, first, second = (place(eye, own + i * n) for i in range(3))
        exponentials = [(-top, first), (place(rows, 0) - top, second)]
        A += [first + second]
        b += [one]
    n_linear = sum(block.shape[0] for block in A)
    cones = [clarabel.NonnegativeConeT(n_linear)]
    for x, z in exponentials:
        zero = sparse.csc_matrix((n, size))
        stacked = sparse.vstack([-x, zero, -z]).tocsr()
        A += [stacked[np.arange(3 * n).reshape(3, n).T.ravel()]]
        b += [np.tile([0.0, 1.0, 0.0], n)]
        cones += [clarabel.ExponentialConeT()] * n
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.triu(P, format="csc"),
        q,
        sparse.vstack(A, format="csc"),
        np.concatenate(b),
        cones,
        settings,
    )
    found = solver.solve()
    assert str(found.status) in ("Solved", "AlmostSolved")
    return found.obj_val + constant


@pytest.mark.parametrize("bound", [None, 0.4])
@pytest.mark.parametrize("loss", NAMES)
def test_least_loss_is_that_of_a_cone_solver(loss, bound):
    for seed, (n, d, correlation) in enumerate([(60, 2, 0.0), (120, 3, 0.9)]):
        X, y, u = problem(loss, n, d, correlation, seed)
        w = np.random.default_rng(seed).uniform(0.5, 2, n)
        for share in (0.1, 1.0, 4.0):
            budget = share * path_variation(u)
            oracle = tv_oracle(y, budget, X=X, loss=loss, bound=bound, sample_weight=w)
            least = by_cones(X, y, w, loss, budget, bound)
            assert oracle.loss == pytest.approx(least, rel=2e-6)
            assert oracle.gap <= 1e-8 * max(oracle.loss, 1e-3 * np.sum(w))


@pytest.mark.parametrize("bound", [None, 0.3, 3.0])
@pytest.mark.parametrize("loss", NAMES)
def test_comparator_is_feasible_and_its_loss_is_told(loss, bound):
    X, y, u = problem(loss)
    for share in (0, 1e-3, 0.3, 2):
        budget = share * path_variation(u)
        oracle = tv_oracle(y, budget, X=X, loss=loss, bound=bound)
        assert oracle.comparator.shape == X.shape
        assert path_variation(oracle.comparator) <= budget * (1 + 1e-12)
        assert bound is None or np.abs(oracle.comparator).max() <= bound
        p = np.sum(X * oracle.comparator, axis=1)
        assert oracle.loss == pytest.approx(loss_of(loss, y, p), rel=1e-10)
        steps = np.count_nonzero(np.any(np.diff(oracle.comparator, axis=0), axis=1))
        assert steps < len(y) / 2


def lower_bound(X, y, p, loss, alpha, budget, bound):
    """Fenchel's bound at v = f'(p), its minimum over |u| <= bound by Viterbi's walk
    over the two values -bound and bound."""
    v = LOSSES[loss].derivative(y, p)
    total = -np.sum(LOSSES[loss].conjugate(y, v)) - alpha * budget
    for x in X.T:
        cost = np.zeros(2)
        for pull in v * x * bound:
            cost = np.minimum(cost, cost[::-1] + 2 * alpha * bound)
            cost += np.array([pull, -pull])
        total += cost.min()
    return (2 if loss == "squared" else 1) * total


@pytest.mark.parametrize("loss", NAMES)
def test_certificate_holds_and_is_tight(loss):
    for seed in range(4):
        X, y, u = problem(loss, 80, seed=seed)
        budget = 0.5 * path_variation(u)
        oracle = tv_oracle(y, budget, X=X, loss=loss, bound=0.3)
        p = np.sum(X * oracle.comparator, axis=1)
        low = lower_bound(X, y, p, loss, oracle.multiplier, budget, 0.3)
        assert abs(oracle.loss - low - oracle.gap) <= 1e-10 * oracle.loss
        assert oracle.loss - low <= 1.1e-8 * oracle.loss


@pytest.mark.parametrize("loss", NAMES)
def test_gap_of_a_result_stopped_early_is_a_bound(loss):
    X, y, u = problem(loss, correlation=0.9)
    budget = path_variation(u)
    best = tv_oracle(y, budget, X=X, loss=loss)
    for max_iter in (1, 3, 6):
        with pytest.warns(ConvergenceWarning, match=f"after {max_iter} iterations"):
            early = tv_oracle(y, budget, X=X, loss=loss, max_iter=max_iter)
        assert path_variation(early.comparator) <= budget * (1 + 1e-12)
        assert early.gap > 1e-8 * early.loss
        assert early.loss - early.gap <= best.loss * (1 + 1e-12)
        assert early.loss >= best.loss - best.gap


@pytest.mark.parametrize("bound", [None, 0.8])
@pytest.mark.parametrize("loss", NAMES)
def test_a_column_of_ones_is_no_covariate(loss, bound):
    y = problem(loss)[1]
    w = np.random.default_rng(1).integers(0, 3, len(y))
    for budget in (0, 0.1, 1, 3):
        size = {"loss": loss, "bound": bound, "sample_weight": w}
        one = tv_oracle(y, budget, **size)
        other = tv_oracle(y, budget, X=np.ones((len(y), 1)), **size)
        assert 0 <= one.gap <= 1e-8 * one.loss
        assert other.loss == pytest.approx(one.loss, rel=2e-8)
        error = np.abs(other.comparator[w > 0, 0] - one.comparator[w > 0])
        assert error.max() <= 1e-2


@pytest.mark.parametrize("bound", [None, 0.2])
@pytest.mark.parametrize("loss", NAMES)
def test_no_budget_is_the_best_constant(loss, bound):
    X, y, _ = problem(loss)
    oracle = tv_oracle(y, 0, X=X, loss=loss, bound=bound)
    assert np.ptp(oracle.comparator, axis=0).max() == 0
    static = minimize(
        lambda u: loss_of(loss, y, X @ u),
        np.zeros(X.shape[1]),
        bounds=None if bound is None else [(-bound, bound)] * X.shape[1],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    assert oracle.loss == pytest.approx(static.fun, rel=1e-9)
    assert oracle.loss <= static.fun * (1 + 1e-9)


@pytest.mark.parametrize("loss", NAMES)
def test_loss_falls_with_the_budget_and_the_bound(loss):
    X, y, u = problem(loss)
    budgets = path_variation(u) * np.array([0, 0.01, 0.1, 0.5, 1, 3])
    losses = [tv_oracle(y, c, X=X, loss=loss).loss for c in budgets]
    assert np.diff(losses).max() < 0
    losses = [
        tv_oracle(y, budgets[4], X=X, loss=loss, bound=b).loss for b in (0.1, 0.3, 1)
    ]
    assert np.diff(losses).max() < 0


def test_a_budget_beyond_need_leaves_no_loss():
    X, y, _ = problem("squared")
    oracle = tv_oracle(y, 1e6, X=X)
    assert oracle.loss <= 1e-10 * np.sum(y**2)
    assert oracle.multiplier == pytest.approx(0, abs=1e-4)
    bounded = tv_oracle(y, 1e6, X=X, bound=0.1)
    best = np.maximum(np.abs(y) - 0.1 * np.abs(X).sum(axis=1), 0)
    assert bounded.loss == pytest.approx(np.sum(best**2), rel=1e-8)


def test_shifts_of_labels_and_scales_of_columns():
    X, y, u = problem("squared")
    budget = path_variation(u)
    oracle = tv_oracle(y, budget, X=X)
    shift = np.array([3.0, -1.0, 100.0])
    moved = tv_oracle(y + X @ shift, budget, X=X)
    np.testing.assert_allclose(moved.comparator - shift, oracle.comparator, atol=1e-6)
    assert moved.loss == pytest.approx(oracle.loss, rel=1e-8)
    scaled = tv_oracle(7 * y, budget * 0.07, X=100 * X)
    np.testing.assert_allclose(scaled.comparator / 0.07, oracle.comparator, atol=1e-6)
    assert scaled.loss == pytest.approx(49 * oracle.loss, rel=1e-8)
    flipped = tv_oracle(y[::-1], budget, X=X[::-1])
    assert flipped.loss == pytest.approx(oracle.loss, rel=2e-8)


@pytest.mark.parametrize("bound", [None, 1.0])
@pytest.mark.parametrize("loss", NAMES)
def test_correlated_and_badly_scaled_covariates(loss, bound):
    scales = np.array([1, 1e4, 1, 1e4])
    X, y, u = problem(loss, 1000, 4, 0.9, scales=scales)
    static = tv_oracle(y, 0, X=X, loss=loss, bound=bound)
    assert static.gap <= 1e-8 * static.loss
    for share in (1e-4, 0.001, 0.1):
        oracle = tv_oracle(y, share * path_variation(u), X=X, loss=loss, bound=bound)
        assert oracle.gap <= 1e-8 * max(oracle.loss, 1e-3 * static.loss)
    X, y, u = problem(loss, 1000, 4, 0.98)
    oracle = tv_oracle(y, path_variation(u), X=X, loss=loss, bound=bound)
    assert oracle.gap <= 1e-8 * oracle.loss


@pytest.mark.parametrize("loss", NAMES)
def test_rows_and_columns_that_say_nothing(loss):
    X, y, u = problem(loss)
    budget = path_variation(u)
    oracle = tv_oracle(y, budget, X=X, loss=loss)
    wide = tv_oracle(y, budget, X=np.c_[X, 0 * y], loss=loss)
    assert wide.loss == pytest.approx(oracle.loss, rel=2e-8)
    assert np.all(wide.comparator[:, -1] == 0)
    w = np.ones(len(y))
    w[10:20] = 0
    light = tv_oracle(y, budget, X=X, loss=loss, sample_weight=w)
    short = tv_oracle(y[w > 0], budget, X=X[w > 0], loss=loss)
    np.testing.assert_array_equal(light.comparator[w > 0], short.comparator)
    np.testing.assert_array_equal(light.comparator[10:20], short.comparator[[9] * 10])
    assert light.loss == short.loss
    nothing = tv_oracle(y, budget, X=0 * X, loss=loss)
    assert nothing.loss == pytest.approx(loss_of(loss, y, 0 * y), rel=1e-12)
    assert nothing.gap == 0


def test_integer_weights_are_repeated_rows():
    X, y, u = problem("poisson")
    w = np.random.default_rng(5).integers(0, 4, len(y))
    budget = path_variation(u)
    one = tv_oracle(y, budget, X=X, loss="poisson", sample_weight=w)
    other = tv_oracle(
        np.repeat(y, w), budget, X=np.repeat(X, w, axis=0), loss="poisson"
    )
    assert one.loss == pytest.approx(other.loss, rel=2e-8)


def test_separable_labels_and_no_counts():
    """The infimum is 0 and not attained; under a bound it is a finite minimum."""
    rng = np.random.default_rng(3)
    X = np.c_[np.ones(50), rng.normal(size=50)]
    label = (X[:, 1] > 0).astype(float)
    for y, loss in [(label, "logistic"), (np.zeros(50), "poisson")]:
        free = tv_oracle(y, 1.0, X=X, loss=loss)
        assert np.all(np.isfinite(free.comparator))
        assert free.loss <= 1e-13
        assert free.gap <= free.loss
        bound = tv_oracle(y, 1.0, X=X, loss=loss, bound=2.0)
        assert 0.01 < bound.loss
        assert bound.gap <= 1e-8 * bound.loss
        assert tv_oracle(y, 1.0, loss=loss, bound=2.0).gap <= 1e-8


@pytest.mark.parametrize("loss", NAMES)
def test_one_row(loss):
    y = [5.0 if loss == "poisson" else 1.0]
    oracle = tv_oracle(y, 1.0, X=[[2.0, 1.0]], loss=loss, bound=0.1)
    np.testing.assert_allclose(oracle.comparator, [[0.1, 0.1]], rtol=1e-6)


@pytest.mark.parametrize("loss", NAMES)
def test_without_covariates_outputs_share_the_budget(loss):
    ys = np.stack([problem(loss, seed=seed)[1] for seed in range(2)], axis=1)
    oracle = tv_oracle(ys, 2.0, loss=loss)
    assert path_variation(oracle.comparator) == pytest.approx(2.0, rel=1e-9)
    assert 0 <= oracle.gap <= 1e-9 * oracle.loss
    assert oracle.loss == pytest.approx(loss_of(loss, ys, oracle.comparator))
    cones = by_cones(np.ones((len(ys), 1)), ys[:, 0], np.ones(len(ys)), loss, 1.5, None)
    alone = tv_oracle(ys[:, 0], 1.5, loss=loss)
    assert alone.loss == pytest.approx(cones, rel=2e-6)


@pytest.mark.parametrize("loss", NAMES)
def test_regret_is_the_difference_of_losses(loss):
    X, y, u = problem(loss)
    budget = path_variation(u)
    w = np.random.default_rng(0).uniform(size=len(y))
    size = {"X": X, "loss": loss, "sample_weight": w, "bound": 2.0}
    oracle = tv_oracle(y, budget, **size)
    p = np.sum(X * oracle.comparator, axis=1)
    assert abs(dynamic_regret(y, p, tv_budget=budget, **size)) <= 1e-9 * oracle.loss
    regret = dynamic_regret(y, 0 * y, tv_budget=budget, **size)
    assert regret == pytest.approx(loss_of(loss, y, 0 * y, w) - oracle.loss)


def test_losses_may_be_instances():
    class Own(Poisson):
        """A loss of one's own."""

    X, y, _ = problem("poisson")
    for size in ({"X": X}, {}):
        named = tv_oracle(y, 2.0, loss="poisson", **size)
        assert tv_oracle(y, 2.0, loss=Own(), **size).loss == named.loss
    assert tv_oracle(y, 2.0, loss=LOSSES["squared"]).loss == tv_oracle(y, 2.0).loss
    signs = tv_oracle([-1, 1, 1, -1], 1.0, loss="logistic")
    assert signs.loss == tv_oracle([0, 1, 1, 0], 1.0, loss="logistic").loss


def test_frames_are_covariates():
    X, y, _ = problem("squared")
    names = ["a", "b", "c"]
    plain = tv_oracle(y, 2.0, X=X).comparator
    for frame in (
        pd.DataFrame(X, columns=names),
        pl.DataFrame(dict(zip(names, X.T))),
        X.tolist(),
        np.asfortranarray(X),
    ):
        np.testing.assert_array_equal(tv_oracle(y, 2.0, X=frame).comparator, plain)


def test_inputs_are_not_altered_and_nothing_is_warned():
    X, y, _ = problem("poisson")
    before = X.copy(), y.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tv_oracle(y, 2.0, X=X, loss="poisson")
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"X": [1.0, 2.0, 3.0]}, r"\(n_samples, n_features\), got \(3,\)"),
        ({"X": np.ones((3, 0))}, r"\(3, 0\)"),
        ({"X": np.ones((4, 2))}, "X has 4, y has 3"),
        ({"X": [[1.0], [np.nan], [1.0]]}, r"X contains NaN \(first in row 1\)"),
        ({"X": [[1.0], [1.0], [np.inf]]}, r"X contains infinity \(first in row 2\)"),
        ({"X": [[1.0], [1e150], [1.0]]}, r"Covariate X\[1\]"),
        ({"X": [[1e140]] * 3, "sample_weight": 1e50}, "Covariates up to 1e\\+140"),
        ({"y": np.ones((3, 2))}, r"one output.*\(3, 2\)"),
        ({"y": [1.0, np.nan, 1.0]}, r"y contains NaN \(first in row 1\)"),
        ({"y": []}, "0 sample|minimum"),
        ({"tv_budget": -1.0}, "tv_budget"),
        ({"tv_budget": np.inf}, "tv_budget"),
        ({"bound": 0.0}, "bound"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        (
            {"loss": "huber"},
            r"loss must be one of \['logistic', 'poisson', 'squared'\]",
        ),
        ({"loss": None}, "loss must be"),
        ({"loss": "poisson", "y": [1.0, -1.0, 0.0]}, r"Counts.*row 1"),
        ({"loss": "logistic", "y": [1.0, 0.0, 2.0]}, r"Logistic.*row 2"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight"),
        ({"sample_weight": [0.0, 0.0, 0.0]}, "zero in every row"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"y": [0.0, 1.0, 1.0], "tv_budget": 1.0, "X": np.ones((3, 2))} | change
    with pytest.raises(ValueError, match=message):
        tv_oracle(**given)


def test_bad_predictions_are_refused():
    with pytest.raises(ValueError, match=r"row 1.*logarithms of rates"):
        dynamic_regret([1, 900], [1, 900], tv_budget=1, loss="poisson")
    with pytest.raises(ValueError, match="same shape"):
        dynamic_regret([1, 2], [1, 2, 3], tv_budget=1, X=[[1], [1]])
    with pytest.raises(TypeError, match="Covariates are numbers"):
        tv_oracle([1, 2], 1, X=np.array([["2020-01-01"]] * 2, dtype="datetime64[D]"))
