"""Joint jumps across channels: optimality, certificates, identities, data handling."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group
from sklearn.exceptions import ConvergenceWarning

from sktvdenoise._group import _Rows, group_variation, lengths, solution
from sktvdenoise._signal import Signal
from sktvdenoise.offline import FusedLasso, fused_lasso


def signal(n=200, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    shape = n, channels
    return np.cumsum(rng.normal(size=shape), axis=0) + rng.normal(size=shape)


def weights(n=200, seed=0):
    return np.random.default_rng(seed).uniform(0.2, 3, n)


def objective(y, u, alpha, w=None):
    w = np.ones(len(y)) if w is None else w
    return 0.5 * np.sum(w[:, None] * (y - u) ** 2) + alpha * group_variation(u)


def relative_gap(found):
    return found.gap / (found.loss / 2 + found.alpha * found.tv)


KINDS = {
    "walk": lambda rng: signal(),
    "integers": lambda rng: rng.integers(0, 3, (300, 3)).astype(float),
    "ramp": lambda rng: np.arange(100.0)[:, None] * [1.0, 2.0],
    "plateaus": lambda rng: (
        np.repeat(5 * rng.normal(size=(8, 4)), 50, axis=0) + rng.normal(size=(400, 4))
    ),
    "one silent": lambda rng: np.column_stack([np.zeros(200), rng.normal(size=200)]),
    "equal": lambda rng: rng.normal(size=(200, 1)) * np.ones(3),
    "step": lambda rng: np.repeat([[0.0, 0.0], [10.0, 5.0]], 50, axis=0),
    "spike": lambda rng: np.where(np.arange(300) == 50, 1e12, 1.0)[:, None] * [1, 1],
    "wide": lambda rng: np.exp(5 * rng.normal(size=(200, 2))),
    "offset": lambda rng: 1e9 + rng.normal(size=(200, 2)),
    "small": lambda rng: 1e-8 * rng.normal(size=(200, 2)),
}


# ---- optimality ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.03, 0.4, 0.99])
@pytest.mark.parametrize("weighted", [False, True])
def test_certified(kind, share, weighted):
    y = KINDS[kind](np.random.default_rng(3))
    w = weights(len(y)) if weighted else None
    alpha = share * _Rows(Signal(y, w)).alpha_max
    found = solution(y, w, alpha=alpha)
    assert 0 <= relative_gap(found) <= 1e-11
    # Runs are exactly equal: pieces can be counted
    n_steps = np.count_nonzero(np.any(np.diff(found.u, axis=0) != 0, axis=1))
    assert n_steps >= 1
    if share > 0.9:
        assert n_steps <= 3


def test_against_an_independent_solver():
    y, w, alpha = signal(12, 2), weights(12), 1.3

    def dual(z):
        flow = np.diff(z.reshape(-1, 2), axis=0, prepend=0, append=0)
        value = np.sum(flow**2 / (2 * w[:, None]) + y * flow)
        slope = -np.diff(flow / w[:, None] + y, axis=0)
        return value, slope.ravel()

    room = {
        "type": "ineq",
        "fun": lambda z: alpha**2 - np.sum(z.reshape(-1, 2) ** 2, axis=1),
        "jac": lambda z: -2 * np.kron(np.eye(11), np.ones(2)) * z,
    }
    other = minimize(
        dual,
        np.zeros(22),
        jac=True,
        method="SLSQP",
        constraints=[room],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    found = solution(y, w, alpha=alpha)
    own = objective(y, found.u, alpha, w)
    assert abs(own + other.fun) < 1e-9 * own
    flow = np.diff(other.x.reshape(-1, 2), axis=0, prepend=0, append=0)
    assert np.max(np.abs(y + flow / w[:, None] - found.u)) < 1e-5


def test_gap_bounds_the_excess():
    y, w = signal(), weights()
    rows = _Rows(Signal(y, w))
    found = solution(y, w, alpha=2.0)
    least = objective(y, found.u, 2.0, w)
    assert abs(found.loss / 2 + 2.0 * found.tv - least) < 1e-12 * least
    rng = np.random.default_rng(1)
    for scale in (1e-6, 1e-3, 1.0):
        for move in (rng.normal(size=y.shape), np.ones(3), y - found.u):
            other = found.u + scale * move
            excess = objective(y, other, 2.0, w) - least
            assert 0 < excess <= rows.gap(other - rows.mean, 2.0) * (1 + 1e-9)


def test_ends_of_the_path():
    y, w = signal(), weights()
    mean = np.average(y, axis=0, weights=w)
    largest = lengths(np.cumsum(w[:, None] * (y - mean), axis=0)).max()
    np.testing.assert_allclose(
        fused_lasso(y, 0.0, sample_weight=w, penalty="group"), y, atol=1e-14
    )
    for alpha in (1.0001 * largest, 1e9, np.inf):
        u = fused_lasso(y, alpha, sample_weight=w, penalty="group")
        np.testing.assert_allclose(u, np.tile(mean, (200, 1)), rtol=1e-13)
        assert np.all(u == u[0])
    u = fused_lasso(y, 0.9999 * largest, sample_weight=w, penalty="group")
    assert np.count_nonzero(np.any(np.diff(u, axis=0) != 0, axis=1)) == 1


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.2, 0.6, 0.99])
@pytest.mark.parametrize("kind", ["walk", "integers", "plateaus", "ramp"])
def test_budget(share, kind):
    y = KINDS[kind](np.random.default_rng(4))
    budget = share * group_variation(y)
    found = solution(y, tv_budget=budget)
    assert abs(found.tv / budget - 1) <= 1e-9
    assert relative_gap(found) <= 1e-11
    penalised = solution(y, alpha=found.alpha)
    assert np.max(np.abs(penalised.u - found.u)) <= 1e-7 * np.ptp(y)


def test_budgets_that_do_not_bind():
    y = signal()
    for budget in (group_variation(y), 1e9, np.inf):
        found = solution(y, tv_budget=budget)
        assert found.alpha == 0 and found.gap == 0
        np.testing.assert_allclose(found.u, y, atol=1e-13)
    found = solution(y, tv_budget=0.0)
    assert found.tv == 0 and found.alpha > 0 and relative_gap(found) < 1e-12


def test_variation_never_grows_with_alpha():
    y = signal(100)
    tv = [solution(y, alpha=a).tv for a in np.geomspace(1e-3, 1e3, 40)]
    assert np.max(np.diff(tv)) <= 1e-9 * tv[0] and tv[-1] == 0


# ---- identities ----


def test_golden_step():
    # Levels (0, 0) and (3, 4) move towards each other along the step, by alpha / 2
    y = np.repeat([[0.0, 0.0], [3.0, 4.0]], 2, axis=0)
    u = fused_lasso(y, 1.0, penalty="group")
    np.testing.assert_allclose(u[:2], [[0.3, 0.4]] * 2, atol=1e-12)
    np.testing.assert_allclose(u[2:], [[2.7, 3.6]] * 2, atol=1e-12)
    u = fused_lasso(y, tv_budget=1.0, penalty="group")
    np.testing.assert_allclose(u[2] - u[0], [0.6, 0.8], atol=1e-12)


@pytest.mark.parametrize("options", [{"alpha": 2.0}, {"tv_budget": 9.0}])
def test_one_channel_is_total_variation(options):
    y, w = signal(channels=1), weights()
    group = solution(y, w, **options).u
    plain = fused_lasso(y, sample_weight=w, **options)
    assert np.max(np.abs(group - plain)) < 1e-10
    np.testing.assert_array_equal(
        fused_lasso(y, sample_weight=w, penalty="group", **options), plain
    )


@pytest.mark.parametrize("options", [{"alpha": 2.0}, {"tv_budget": 30.0}])
def test_silent_and_equal_channels(options):
    y = signal(channels=1)
    u = fused_lasso(np.column_stack([y, np.zeros(200)]), penalty="group", **options)
    assert np.max(np.abs(u[:, 0] - fused_lasso(y[:, 0], **options))) < 1e-9
    assert np.max(np.abs(u[:, 1])) < 1e-12
    scaled = {k: v * 5.0 for k, v in options.items()}
    u = fused_lasso(y * [3.0, 4.0], penalty="group", **scaled)
    expected = fused_lasso(y[:, 0], **options)
    assert np.max(np.abs(u - expected[:, None] * [3.0, 4.0])) < 1e-8


@pytest.mark.parametrize("options", [{"alpha": 2.0}, {"tv_budget": 30.0}])
def test_rotation_of_the_channels(options):
    y, w = signal(), weights()
    rotation = ortho_group.rvs(3, random_state=0)
    u = fused_lasso(y, sample_weight=w, penalty="group", **options)
    turned = fused_lasso(y @ rotation, sample_weight=w, penalty="group", **options)
    assert np.max(np.abs(turned - u @ rotation)) < 1e-8
    separate = fused_lasso(y, sample_weight=w, **options)
    assert np.max(np.abs(separate - u)) > 0.1


def test_jumps_coincide_across_channels():
    y = KINDS["plateaus"](np.random.default_rng(5))
    model = FusedLasso(20.0, penalty="group").fit(np.arange(400), y)
    steps = np.diff(model.values_, axis=0) != 0
    jumps = np.any(steps, axis=1)
    assert 7 <= np.count_nonzero(jumps) <= 40
    np.testing.assert_array_equal(np.all(steps, axis=1), jumps)
    np.testing.assert_array_equal(np.flatnonzero(jumps) + 1, model.breakpoints_)
    near = np.abs(model.breakpoints_[:, None] - np.arange(50, 400, 50)).min(axis=0)
    assert np.max(near) <= 2
    assert FusedLasso(20.0).fit(np.arange(400), y).n_pieces_ > model.n_pieces_


@pytest.mark.parametrize("c", [1e-8, 1.0, 1e8])
def test_scaling_offset_and_reversal(c):
    y = signal()
    u = fused_lasso(y, 2.0, penalty="group")
    error = fused_lasso(c * y, 2.0 * c, penalty="group") - c * u
    assert np.max(np.abs(error)) <= 1e-9 * c
    error = fused_lasso(y[::-1], 2.0, penalty="group")[::-1] - u
    assert np.max(np.abs(error)) <= 1e-9
    offset = np.array([1e9, -1e9, 0])
    error = fused_lasso(y + offset, 2.0, penalty="group") - offset - u
    assert np.max(np.abs(error)) <= 1e-5


@pytest.mark.parametrize("options", [{"alpha": 2.0}, {"tv_budget": 30.0}])
def test_integer_weights_are_repeated_rows(options):
    y, w = signal(80), np.random.default_rng(1).integers(1, 5, 80)
    weighted = fused_lasso(y, sample_weight=w, penalty="group", **options)
    repeated = fused_lasso(np.repeat(y, w, axis=0), penalty="group", **options)
    assert np.max(np.abs(np.repeat(weighted, w, axis=0) - repeated)) < 1e-8


# ---- data handling ----


def test_zero_weights_and_missing_rows():
    y = signal(60)
    holes = y.copy()
    holes[[0, 7, 20, 21, 59]] = np.nan
    seen = ~np.isnan(holes[:, 0])
    model = FusedLasso(2.0, penalty="group", missing="skip").fit(range(60), holes)
    expected = fused_lasso(y[seen], 2.0, penalty="group")
    np.testing.assert_array_equal(model.values_[seen], expected)
    np.testing.assert_array_equal(
        model.values_[[0, 7, 20, 21, 59]], model.values_[[1, 6, 19, 19, 58]]
    )
    u = fused_lasso(y, 2.0, sample_weight=seen, penalty="group")
    np.testing.assert_array_equal(u, model.values_)
    holes[5, 1] = np.nan
    with pytest.raises(ValueError, match="row 5 misses some"):
        FusedLasso(penalty="group", missing="skip").fit(range(60), holes)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"alpha": None, "tv_budget": 0.5}])
@pytest.mark.parametrize("constant", [False, True])
def test_short_and_constant_input(n, options, constant):
    y = np.full((n, 2), 7.0) if constant else signal(n, 2)
    model = FusedLasso(penalty="group", **options).fit(np.zeros(n), y)
    assert np.isfinite(model.values_).all() and model.values_.shape == (n, 2)
    assert 0 <= model.dual_gap_ < 1e-14
    assert model.tv_ <= 0.5 + 1e-12 or not options
    assert model.n_iter_ >= 1


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sparsity": 1.0}, "do not combine"),
        ({"bound": 1.0}, "do not combine"),
        ({"loss": "logistic"}, "do not combine"),
        ({"penalty": "joint"}, "penalty"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_refused(options, message):
    options = {"penalty": "group", **options}
    y = np.eye(4)[:, :2]
    with pytest.raises(ValueError, match=message):
        fused_lasso(y, 1.0, **options)
    with pytest.raises(ValueError, match=message):
        FusedLasso(**options).fit(range(4), y)


def test_early_stop_warns_with_its_gap():
    y = signal()
    with pytest.warns(ConvergenceWarning, match=r"relative gap of \d\.\de"):
        u = fused_lasso(y, 2.0, penalty="group", max_iter=1)
    best = fused_lasso(y, 2.0, penalty="group")
    assert objective(y, u, 2.0) > objective(y, best, 2.0)


def test_dual_gap_is_reported():
    y, w = signal(), weights()
    model = FusedLasso(2.0, penalty="group").fit(range(200), y, w)
    found = solution(y, w, alpha=2.0)
    assert model.dual_gap_ == found.gap / 200 and model.n_iter_ == found.n_iter > 3
    assert abs(model.tv_ - group_variation(model.values_)) < 1e-12
    loss = np.sum(w[:, None] * (y - model.values_) ** 2)
    assert abs(model.loss_ - loss) < 1e-10 * loss
    budget = FusedLasso(None, tv_budget=10.0, penalty="group").fit(range(200), y, w)
    assert abs(budget.tv_ - 10) < 1e-9 and budget.alpha_ > 0


def test_advice_of_the_warning():
    y = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.warns(ConvergenceWarning, match=r"Increase tol\."):
        FusedLasso(1.0, penalty="group", tol=1e-25).fit(range(50), y)
    with pytest.warns(ConvergenceWarning, match="Increase max_iter or tol"):
        FusedLasso(1.0, penalty="group", tol=1e-25, max_iter=1).fit(range(50), y)
