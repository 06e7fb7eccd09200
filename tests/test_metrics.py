"""Oracles and regrets: identities, certificates, golden values."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from sktvdenoise import OnlineTVDenoiser, fused_lasso, metrics
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle

STEP = [0, 0, 0, 10, 10, 10]


def streams():
    rng = np.random.default_rng(0)
    n = 120
    return {
        "noise": rng.standard_normal(n),
        "walk": np.cumsum(rng.standard_normal(n)),
        "steps": np.repeat(rng.normal(0, 5, 6), n // 6) + rng.standard_normal(n),
        "ramp": np.linspace(0, 10, n),
        "constant": np.full(n, 3.0),
        "integers": rng.integers(0, 4, n).astype(float),
        "offset": 1e6 + rng.standard_normal(n),
    }


@pytest.fixture(params=streams())
def y(request):
    return streams()[request.param]


def budgets(y):
    return path_variation(y) * np.array([0, 1e-6, 0.01, 0.1, 0.3, 0.7, 0.999, 1, 2])


def test_golden_values_of_the_step():
    oracle = tv_oracle(STEP, 4)
    np.testing.assert_allclose(oracle.comparator, [3, 3, 3, 7, 7, 7], rtol=1e-14)
    assert oracle.loss == pytest.approx(54, rel=1e-14)
    assert oracle.multiplier == pytest.approx(9, rel=1e-14)
    assert path_variation(oracle.comparator) <= 4 * (1 + 1e-9)
    np.testing.assert_allclose(tv_oracle(range(5), 2).comparator, [1, 1, 2, 3, 3])


def test_regret_of_the_oracle_and_of_the_labels():
    assert dynamic_regret(STEP, [3, 3, 3, 7, 7, 7], tv_budget=4) == pytest.approx(0)
    assert dynamic_regret(STEP, STEP, tv_budget=4) == pytest.approx(-54)


def test_oracle_is_within_its_budget_and_certified(y):
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    for sample_weight in (None, weights):
        mean = np.average(y, weights=sample_weight)
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        scale = np.sum(w * (y - mean) ** 2)
        rounding = 1e-15 * len(y) * np.abs(y).max()
        for budget in budgets(y):
            oracle = tv_oracle(y, budget, sample_weight=sample_weight)
            assert path_variation(oracle.comparator) <= budget + rounding
            assert 0 <= oracle.gap <= 1e-9 * scale
            loss = np.sum(w * (y - oracle.comparator) ** 2)
            assert oracle.loss == pytest.approx(loss, rel=1e-9, abs=1e-12 * scale)


def test_multiplier_gives_the_same_sequence_as_a_penalty(y):
    for budget in budgets(y)[1:-2]:
        oracle = tv_oracle(y, budget)
        if oracle.multiplier > 0:
            np.testing.assert_allclose(
                fused_lasso(y, oracle.multiplier),
                oracle.comparator,
                rtol=1e-12,
                atol=1e-9 * np.ptp(y),
            )


def test_no_other_sequence_within_the_budget_does_better():
    """Against a general solver, in the increments, whose variation is a sum."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        y, w = rng.normal(0, 3, 8), rng.uniform(0.2, 3, 8)
        budget = 0.4 * path_variation(y)

        def loss(v, y=y, w=w):
            u = v[0] + np.r_[0, np.cumsum(v[1:8] - v[8:])]
            return np.sum(w * (y - u) ** 2)

        result = minimize(
            loss,
            np.zeros(15),
            method="SLSQP",
            bounds=[(None, None)] + [(0, None)] * 14,
            constraints={"type": "ineq", "fun": lambda v, c=budget: c - v[1:].sum()},
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        oracle = tv_oracle(y, budget, sample_weight=w)
        assert oracle.loss == pytest.approx(result.fun, rel=1e-6)
        assert oracle.loss <= result.fun * (1 + 1e-9)


def test_regret_grows_with_the_budget_between_static_and_the_whole_loss(y):
    x = OnlineTVDenoiser(learning_rate="theory").partial_fit_predict(
        np.arange(len(y)), y
    )
    whole = np.sum((y - x) ** 2)
    regrets = [dynamic_regret(y, x, tv_budget=c) for c in budgets(y)]
    assert np.diff(regrets).min() >= -1e-12 * whole
    static = whole - np.sum((y - y.mean()) ** 2)
    assert regrets[0] == pytest.approx(static, rel=1e-9)
    assert regrets[-1] == regrets[-2] == pytest.approx(whole, rel=1e-12)


def test_outputs_share_a_budget_through_one_multiplier():
    rng = np.random.default_rng(3)
    y = np.c_[rng.standard_normal(60), 10 * rng.standard_normal(60)]
    budget = 0.2 * path_variation(y)
    oracle = tv_oracle(y, budget)
    assert path_variation(oracle.comparator) == pytest.approx(budget, rel=1e-12)
    for k in range(2):
        np.testing.assert_allclose(
            fused_lasso(y[:, k], oracle.multiplier), oracle.comparator[:, k], atol=1e-9
        )
    swapped = tv_oracle(y[:, ::-1], budget).comparator
    np.testing.assert_allclose(swapped[:, ::-1], oracle.comparator, rtol=1e-12)


def test_bound_is_kept_and_changes_nothing_where_it_does_not_bind():
    y = streams()["walk"]
    budget = 0.3 * path_variation(y)
    free = tv_oracle(y, budget)
    loose = tv_oracle(y, budget, bound=2 * np.abs(y).max())
    np.testing.assert_allclose(loose.comparator, free.comparator, rtol=1e-12)
    bound = 0.3 * np.abs(y).max()
    tight = tv_oracle(y, budget, bound=bound)
    assert np.abs(tight.comparator).max() <= bound
    assert path_variation(tight.comparator) <= budget * (1 + 1e-9)
    assert tight.loss > free.loss
    assert tight.gap <= 1e-9 * np.sum(y**2)


def test_regret_is_against_the_bounded_comparator():
    y = streams()["walk"]
    x = np.zeros_like(y)
    budget, bound = 0.3 * path_variation(y), 0.3 * np.abs(y).max()
    oracle = tv_oracle(y, budget, bound=bound)
    regret = dynamic_regret(y, x, tv_budget=budget, bound=bound)
    assert regret == pytest.approx(np.sum(y**2) - oracle.loss, rel=1e-12)
    assert regret < dynamic_regret(y, x, tv_budget=budget) - 1


def test_gap_shows_a_worse_sequence(monkeypatch):
    """The certificate is computed from the sequence, not a formality."""
    y = streams()["steps"]
    budget = 0.2 * path_variation(y)
    best = tv_oracle(y, budget)
    exact = metrics.solution

    def worse(*args, **kwargs):
        found = exact(*args, **kwargs)
        plain = [u + 0.1 * (np.arange(len(u)) >= 60) for u in found._plain]
        u = np.stack(plain, axis=1)
        return replace(found, u=u, _plain=plain)

    monkeypatch.setattr(metrics, "solution", worse)
    oracle = tv_oracle(y, budget)
    assert oracle.loss > best.loss + 0.1
    assert best.gap < 1e-9 < 1e-3 < oracle.gap


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(4)
    y, w = rng.standard_normal(40), rng.integers(0, 4, 40)
    x = rng.standard_normal(40)
    repeated = dynamic_regret(np.repeat(y, w), np.repeat(x, w), tv_budget=3)
    weighted = dynamic_regret(y, x, tv_budget=3, sample_weight=w)
    assert weighted == pytest.approx(repeated, rel=1e-9)


@pytest.mark.parametrize("budget", [-1, np.nan, np.inf, "1", None])
def test_bad_budgets_are_refused(budget):
    with pytest.raises((ValueError, TypeError), match="tv_budget"):
        tv_oracle(STEP, budget)


def test_bad_arrays_are_refused():
    with pytest.raises(ValueError, match=r"\(6,\).*\(5,\)"):
        dynamic_regret(STEP, STEP[:5], tv_budget=1)
    with pytest.raises(ValueError, match=r"\(6,\).*\(6, 1\)"):
        dynamic_regret(STEP, np.c_[STEP], tv_budget=1)
    for bad in ([], [1, np.nan], [np.inf, 1]):
        with pytest.raises(ValueError):
            tv_oracle(bad, 1)
        with pytest.raises(ValueError):
            path_variation(bad)
    with pytest.raises(ValueError, match="sample_weight"):
        tv_oracle(STEP, 1, sample_weight=[1, 1, 1, 1, 1, -1])
