"""The offline fused lasso: golden values, identities, certificates, data handling."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from sktvdenoise._signal import solution
from sktvdenoise.metrics import dynamic_regret
from sktvdenoise.offline import FusedLasso, duality_gap, fused_lasso, fused_lasso_path

STEP = [0, 0, 0, 10, 10, 10]

# Annual volume of the Nile at Aswan 1871-1970, 1e8 m^3 (Cobb 1978)
NILE = np.array(
    """1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180
    799 958 1140 1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701
    916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864 862
    698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742
    801 1040 860 874 848 890 744 749 838 1050 918 986 797 923 975 815 1020 906 901
    1170 912 746 919 718 714 740""".split(),
    dtype=float,
)


def variation(u):
    return np.abs(np.diff(u, axis=0)).sum()


def signal(n=200, seed=0, channels=None):
    rng = np.random.default_rng(seed)
    shape = n if channels is None else (n, channels)
    return np.cumsum(rng.normal(size=shape), axis=0) + rng.normal(size=shape)


# ---- golden values ----


@pytest.mark.parametrize(
    "y, alpha, weight, expected",
    [
        (STEP, 0, None, STEP),
        (STEP, 1, None, [1 / 3] * 3 + [29 / 3] * 3),
        (STEP, 14.999, None, [14.999 / 3] * 3 + [10 - 14.999 / 3] * 3),
        (STEP, 15, None, [5] * 6),
        (STEP, 1e12, None, [5] * 6),
        (STEP, np.inf, None, [5] * 6),
        (STEP, 3, [1, 1, 1, 3, 3, 3], [1] * 3 + [29 / 3] * 3),
        (STEP, 22.5, [1, 1, 1, 3, 3, 3], [7.5] * 6),
        ([0, 0, 0, 6, 0, 0, 0], 1, None, [1 / 3] * 3 + [4] + [1 / 3] * 3),
        ([0, 0, 0, 6, 0, 0, 0], 2, None, [2 / 3] * 3 + [2] + [2 / 3] * 3),
        ([0, 0, 0, 6, 0, 0, 0], 18 / 7, None, [6 / 7] * 7),
    ],
)
def test_penalised_values(y, alpha, weight, expected):
    u = fused_lasso(y, alpha, sample_weight=weight)
    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-14)


def test_constrained_values():
    found = solution(np.array(STEP, dtype=float)[:, None], tv_budget=4)
    np.testing.assert_allclose(found.u[:, 0], [3, 3, 3, 7, 7, 7], atol=1e-14)
    assert abs(found.loss - 54) < 1e-12
    assert abs(found.alpha - 9) < 1e-12
    assert found.tv <= 4 * (1 + 1e-15)
    np.testing.assert_array_equal(fused_lasso(STEP, tv_budget=10), STEP)
    np.testing.assert_array_equal(fused_lasso(STEP, tv_budget=np.inf), STEP)
    np.testing.assert_array_equal(fused_lasso(STEP, tv_budget=0), [5] * 6)
    np.testing.assert_allclose(
        fused_lasso([0, 1, 2, 3, 4], tv_budget=2), [1, 1, 2, 3, 3], atol=1e-14
    )


@pytest.mark.parametrize(
    "alpha, tv, loss, n_pieces",
    [
        (100, 2663.7, 675556.642857, 32),
        (1000, 198.174603, 1647060.369048, 2),
        (2000, 148.571429, 1795869.892857, 2),
        (4995.2, 0, 2835156.75, 1),
    ],
)
def test_nile(alpha, tv, loss, n_pieces):
    model = FusedLasso(alpha).fit(np.arange(1871, 1971), NILE)
    assert abs(model.tv_ - tv) < 1e-6
    assert abs(model.loss_ - loss) < 1e-5
    assert model.n_pieces_ == n_pieces
    if alpha == 1000:
        levels = model.predict([1871, 1970])
        np.testing.assert_allclose(levels, [1062.035714, 863.861111], atol=1e-6)


# ---- identities ----


def test_variation_never_grows_with_alpha():
    y = signal()
    tv = [variation(fused_lasso(y, a)) for a in np.geomspace(1e-3, 1e3, 60)]
    assert np.max(np.diff(tv)) <= 1e-12 * tv[0]
    assert tv[0] > 0.99 * variation(y) and tv[-1] < 1e-12 * tv[0]


@pytest.mark.parametrize("c", [1e-8, 1.0, 1e8])
def test_scaling(c):
    y = signal()
    error = fused_lasso(c * y, 3.0 * c) - c * fused_lasso(y, 3.0)
    assert np.max(np.abs(error)) <= 1e-9 * c
    error = fused_lasso(c * y, tv_budget=9.0 * c) - c * fused_lasso(y, tv_budget=9.0)
    assert np.max(np.abs(error)) <= 1e-9 * c


def test_offset():
    y = signal()
    for options in ({"alpha": 3.0}, {"tv_budget": 9.0}):
        error = fused_lasso(y + 1e9, **options) - (fused_lasso(y, **options) + 1e9)
        assert np.max(np.abs(error)) <= 1e-5


def test_reversal_and_sign():
    y = signal()
    for options in ({"alpha": 3.0}, {"tv_budget": 9.0}):
        u = fused_lasso(y, **options)
        assert np.max(np.abs(fused_lasso(y[::-1], **options)[::-1] - u)) < 1e-12
        assert np.max(np.abs(fused_lasso(-y, **options) + u)) < 1e-12


def test_no_cancellation_at_large_offsets():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=1000)
    mean = fused_lasso(1e9 + noise, np.inf)
    assert np.max(np.abs(mean - 1e9 - noise.mean())) < 1e-6
    y = (1e7 + rng.normal(size=20_000)).astype(np.float32)
    mean = fused_lasso(y, 1e9)
    assert np.max(np.abs(mean - y.astype(float).mean())) < 1e-2


def test_integer_weights_are_repeated_rows():
    y, w = signal(80), np.random.default_rng(1).integers(1, 5, 80)
    for options in ({"alpha": 3.0}, {"tv_budget": 9.0}):
        weighted = fused_lasso(y, sample_weight=w, **options)
        repeated = fused_lasso(np.repeat(y, w), **options)
        assert np.max(np.abs(np.repeat(weighted, w) - repeated)) < 1e-12


def test_scalar_weight_scales_alpha():
    y = signal()
    error = fused_lasso(y, 3.0, sample_weight=2.0) - fused_lasso(y, 1.5)
    assert np.max(np.abs(error)) < 1e-12


def test_zero_weights_are_the_limit_of_small_ones():
    y = signal(60)
    w = np.ones(60)
    w[[0, 1, 7, 20, 21, 22, 40, 59]] = 0
    for options in ({"alpha": 2.0}, {"tv_budget": 9.0}):
        u = fused_lasso(y, sample_weight=w, **options)
        limit = fused_lasso(y, sample_weight=np.maximum(w, 1e-9), **options)
        assert np.max(np.abs(u - limit)[w > 0]) < 1e-7
        assert abs(variation(u) - variation(limit)) < 1e-7
        np.testing.assert_array_equal(u[[0, 1]], u[2])
        np.testing.assert_array_equal(
            u[[7, 20, 21, 22, 40, 59]], u[[6, *[19] * 3, 39, 58]]
        )
        y_elsewhere = np.where(w > 0, y, 1e6)
        np.testing.assert_array_equal(
            fused_lasso(y_elsewhere, sample_weight=w, **options), u
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [1e-6, 0.01, 0.2, 0.6, 0.99])
@pytest.mark.parametrize(
    "kind", ["walk", "integers", "ramp", "long noise", "long saw", "long integers"]
)
def test_budget_is_met_and_certified(kind, share, weighted):
    rng = np.random.default_rng(3)
    y = {
        "walk": signal(),
        "integers": rng.integers(0, 4, 300).astype(float),
        "ramp": np.arange(100.0),
        "long integers": rng.integers(0, 5, 20_000).astype(float),
        "long noise": rng.normal(size=20_000),
        "long saw": np.arange(20_000.0) % 37,
    }[kind]
    w = rng.uniform(0.1, 3, len(y)) if weighted else None
    budget = share * variation(y)
    found = solution(y[:, None], w, tv_budget=budget)
    assert abs(found.tv / budget - 1) <= 1e-12 + 1e-15 * np.ptp(y) / budget * len(y)
    assert found.gap <= 1e-9 * (found.loss / 2 + found.alpha * found.tv)
    penalised = fused_lasso(y, found.alpha, sample_weight=w)
    assert np.max(np.abs(penalised - found.u[:, 0])) <= 1e-9 * np.ptp(y)


@pytest.mark.parametrize("weighting", ["unit", "integer", "uneven"])
@pytest.mark.parametrize(
    "kind", ["noise", "walk", "ramp", "saw", "zigzag", "integers", "steep", "sparse"]
)
def test_long_signals_within_a_budget_are_on_the_path(kind, weighting):
    """Newton's method on the pieces finds what the whole path tells."""
    n, rng = 9001, np.random.default_rng(8)
    t = np.arange(n, dtype=float)
    y = {
        "noise": rng.normal(size=n) + 1e3,
        "walk": np.cumsum(rng.normal(size=n)),
        "ramp": 0.01 * t + rng.normal(size=n),
        "saw": t % 1000,
        "zigzag": t % 2,
        "integers": np.cumsum(rng.integers(-1, 2, n)).astype(float),
        "steep": np.exp(5 * rng.normal(size=n)),
        "sparse": np.where(t < n // 2, 0, rng.normal(size=n)),
    }[kind]
    w = {
        "unit": None,
        "integer": rng.integers(1, 4, n).astype(float),
        "uneven": rng.exponential(size=n),
    }[weighting]
    path = fused_lasso_path(y, w)
    for share in (1e-9, 1e-6, 1e-3, 0.03, 0.1, 0.3, 0.7, 0.95, 0.999):
        budget = share * variation(y)
        found, expected = solution(y[:, None], w, tv_budget=budget), path.within(budget)
        assert np.max(np.abs(found.u - expected.u)) <= 1e-12 * np.abs(y).max()
        assert abs(found.alpha - expected.alpha) <= 1e-6 * expected.alpha
        ulp = np.spacing(np.abs(y).max())
        assert abs(found.tv - budget) <= 1e-12 * budget + ulp


def test_long_channels_share_a_budget():
    n, rng = 9000, np.random.default_rng(9)
    y = rng.normal(size=(n, 2)) * [1, 5] + np.outer(np.arange(n) // 3000, [4.0, 0])
    path = fused_lasso_path(y)
    for share in (1e-3, 0.1, 0.7):
        budget = share * variation(y)
        found = solution(y, tv_budget=budget)
        assert abs(found.tv / budget - 1) <= 1e-12
        assert np.max(np.abs(found.u - path.within(budget).u)) <= 1e-12


def test_channels_are_independent_at_fixed_alpha():
    y = signal(channels=3)
    u = fused_lasso(y, 2.0)
    for j in range(3):
        np.testing.assert_array_equal(u[:, j], fused_lasso(y[:, j], 2.0))
    np.testing.assert_array_equal(fused_lasso(y[:, ::-1], 2.0), u[:, ::-1])


def test_channels_share_a_budget_through_one_multiplier():
    y = signal(channels=3) * [1, 5, 0.2]
    found = solution(y, tv_budget=20.0)
    assert abs(found.tv - 20) < 1e-12
    error = fused_lasso(y, found.alpha) - found.u
    assert np.max(np.abs(error)) < 1e-9
    error = fused_lasso(y[:, ::-1], tv_budget=20.0)[:, ::-1] - found.u
    assert np.max(np.abs(error)) < 1e-12


# ---- bound and sparsity ----


def full_problem(y, options, w):
    """Optimality of a convex problem: no feasible direction descends."""
    u = fused_lasso(y, sample_weight=w, **options)
    alpha, gamma = options.get("alpha", 0.0), options.get("sparsity", 0.0)

    def rest(v):
        return gamma * np.sum(w * np.abs(v)) + alpha * variation(v)

    rng = np.random.default_rng(5)
    for scale in (1e-3, 0.1, 1, 10):
        for _ in range(10):
            v = fused_lasso(
                y + scale * rng.normal(size=y.shape),
                sample_weight=w,
                **options,
            )
            slope = np.sum(w * (u - y) * (v - u)) + rest(v) - rest(u)
            assert slope >= -1e-9 * (1 + abs(rest(u)))
    return u


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 2.0, "bound": 1.5},
        {"alpha": 2.0, "sparsity": 0.7},
        {"alpha": 2.0, "sparsity": 0.7, "bound": 1.5},
        {"tv_budget": 9.0, "bound": 1.5},
        {"tv_budget": 9.0, "sparsity": 0.7},
        {"tv_budget": 9.0, "sparsity": 0.7, "bound": 1.5},
        {"tv_budget": 2.0, "bound": 100.0},
    ],
)
def test_bound_and_sparsity_are_optimal(options):
    y = signal(150, seed=2)
    w = np.random.default_rng(2).uniform(0.2, 2, 150)
    u = full_problem(y, options, w)
    assert np.max(np.abs(u)) <= options.get("bound", np.inf)
    found = solution(y[:, None], w, **options)
    assert found.gap <= 1e-9 * (found.loss / 2 + found.alpha * found.tv)
    if "tv_budget" in options:
        assert abs(found.tv / options["tv_budget"] - 1) <= 1e-12
        penalised = {k: v for k, v in options.items() if k != "tv_budget"}
        v = fused_lasso(y, found.alpha, sample_weight=w, **penalised)
        assert np.max(np.abs(u - v)) < 1e-9
    else:
        plain = fused_lasso(y, options["alpha"], sample_weight=w)
        assert np.max(np.abs(plain - u)) > 0.1
    if "sparsity" in options:
        assert np.count_nonzero(u) < len(u)


def test_budget_that_the_bound_already_meets():
    u = fused_lasso([0, 10, 0, 10], tv_budget=3.5, bound=1.0)
    np.testing.assert_array_equal(u, [0, 1, 0, 1])
    u = fused_lasso(STEP, tv_budget=0, bound=2)
    np.testing.assert_array_equal(u, [2] * 6)


# ---- certificate ----


def test_duality_gap_bounds_the_excess():
    y, w = signal(channels=2), np.random.default_rng(0).uniform(0.2, 2, 200)

    def objective(u):
        return 0.5 * np.sum(w[:, None] * (y - u) ** 2) + 2.0 * variation(u)

    best = fused_lasso(y, 2.0, sample_weight=w)
    assert 0 <= duality_gap(y, best, 2.0, w) <= 1e-12 * objective(best)
    rng = np.random.default_rng(1)
    for scale in (1e-6, 1e-3, 1.0):
        u = best + scale * rng.normal(size=y.shape)
        excess = (objective(u) - objective(best)) / len(y)
        assert 0 < excess <= duality_gap(y, u, 2.0, w)
    with pytest.raises(ValueError, match=r"\(200, 2\) but u has shape \(200,\)"):
        duality_gap(y, best[:, 0], 2.0)
    with pytest.raises(ValueError, match="positive, it is 0 in row 3"):
        duality_gap(y, best, 2.0, np.arange(200) != 3)


# ---- estimator ----


def test_step_function():
    X = np.array([4.0, 1.0, 3.0, 2.0, 6.0, 5.0])
    model = FusedLasso(1.0).fit(X, np.where(X > 3, 10.0, 0.0))
    np.testing.assert_array_equal(model.positions_, np.arange(1.0, 7.0))
    np.testing.assert_array_equal(model.breakpoints_, [3])
    assert model.n_pieces_ == 2 and model.alpha_ == 1.0
    query = [-1e9, 1, 3.99, 4, 1e9]
    np.testing.assert_allclose(model.predict(query), np.repeat([1 / 3, 29 / 3], [3, 2]))
    np.testing.assert_array_equal(model.predict(X)[np.argsort(X)], model.values_)
    assert model.dual_gap_ <= 1e-14


def test_multiplier_is_reported():
    model = FusedLasso(None, tv_budget=4).fit(range(6), STEP)
    assert abs(model.alpha_ - 9) < 1e-12 and abs(model.loss_ - 54) < 1e-12
    assert abs(model.tv_ - 4) < 1e-14
    assert FusedLasso(None, tv_budget=20).fit(range(6), STEP).alpha_ == 0


def test_breakpoints():
    constant = FusedLasso(1e9).fit(range(6), STEP)
    assert constant.breakpoints_.shape == (0,)
    assert constant.breakpoints_.dtype.kind == "i" and constant.n_pieces_ == 1
    both = np.column_stack([STEP, [0, 10, 10, 10, 10, 10]])
    np.testing.assert_array_equal(
        FusedLasso(0.5).fit(range(6), both).breakpoints_, [1, 3]
    )
    values = FusedLasso(20.0).fit(range(200), signal()).values_
    inside = np.setdiff1d(
        np.arange(1, 200), FusedLasso(20.0).fit(range(200), signal()).breakpoints_
    )
    np.testing.assert_array_equal(values[inside], values[inside - 1])


def test_only_the_order_of_positions_counts():
    y = signal(50)
    X = np.sort(np.random.default_rng(0).uniform(size=50))
    expected = FusedLasso(2.0).fit(np.arange(50), y).values_
    np.testing.assert_array_equal(FusedLasso(2.0).fit(X, y).values_, expected)
    shuffle = np.random.default_rng(1).permutation(50)
    shuffled = FusedLasso(2.0).fit(X[shuffle], y[shuffle])
    np.testing.assert_array_equal(shuffled.values_, expected)


def test_equal_positions_stay_observations_and_the_last_one_predicts():
    model = FusedLasso(0.5).fit([0, 1, 1, 1, 2], [0.0, 1.0, 5.0, 9.0, 9.0])
    np.testing.assert_array_equal(model.values_, fused_lasso([0, 1, 5, 9, 9], 0.5))
    assert model.predict([1])[0] == model.values_[3]
    same = FusedLasso(0.5).fit([2, 2, 2], [1.0, 2.0, 6.0])
    np.testing.assert_array_equal(same.predict([1, 2, 3]), same.values_[[0, 2, 2]])


@pytest.mark.parametrize("y", [[3.0], [3.0, 5.0], [7.0] * 5])
@pytest.mark.parametrize("options", [{}, {"alpha": None, "tv_budget": 0.5}])
def test_short_and_constant_input(y, options):
    model = FusedLasso(**options).fit(np.zeros(len(y)), y)
    assert np.isfinite(model.predict([0, 1])).all()
    assert min(y) <= model.values_.min() and model.values_.max() <= max(y)
    assert 0 <= model.dual_gap_ < 1e-15


def test_missing_labels_have_weight_zero():
    model = FusedLasso(1.0, missing="skip").fit(range(5), [0, 0, np.nan, 10, 10])
    np.testing.assert_allclose(model.values_, [0.5, 0.5, 0.5, 9.5, 9.5], atol=1e-14)
    np.testing.assert_array_equal(model.breakpoints_, [3])
    assert abs(model.loss_ - 1.0) < 1e-14
    y = np.array([[np.nan, 1.0], [2.0, np.nan], [4.0, 5.0]])
    both = FusedLasso(0.5, missing="skip").fit(range(3), y).values_
    np.testing.assert_allclose(both, [[2.5, 1.5], [2.5, 1.5], [3.5, 4.5]], atol=1e-14)
    pandas = pd.Series([0, 0, pd.NA, 10, 10], dtype="Float64")
    same = FusedLasso(1.0, missing="skip").fit(range(5), pandas)
    np.testing.assert_array_equal(same.values_, model.values_)
    with pytest.raises(ValueError, match="column 1: nothing was observed"):
        FusedLasso(missing="skip").fit(range(2), [[1, np.nan], [1, np.nan]])
    with pytest.raises(ValueError, match="infinity"):
        FusedLasso(missing="skip").fit(range(2), [1, np.inf])


def test_weights_reach_the_estimator():
    model = FusedLasso(3.0)
    model.fit([5, 4, 3, 2, 1, 0], STEP[::-1], sample_weight=[3, 3, 3, 1, 1, 1])
    np.testing.assert_allclose(model.values_, [1] * 3 + [29 / 3] * 3)
    assert abs(model.loss_ - (3 + 9 / 9)) < 1e-13
    for bad in ([-1] + [1] * 5, [0] * 6, [1] * 5):
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(range(6), STEP, sample_weight=bad)


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_one_column_and_one_dimension_agree(shape):
    y = np.reshape(np.array(STEP, dtype=float), shape)
    u = fused_lasso(y, 1.0)
    assert u.shape == shape
    np.testing.assert_array_equal(u.ravel(), fused_lasso(STEP, 1.0))
    assert FusedLasso().fit(range(6), y).predict([1, 2]).shape == (2, *shape[1:])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("container", [np.array, pd.Series, pd.DataFrame, pl.Series])
def test_bad_labels_are_named(bad, container):
    word = "NaN" if np.isnan(bad) else "infinity"
    y = container([1.0, bad, 2.0])
    with pytest.raises(ValueError, match=rf"y contains {word} \(first in row 1\)"):
        FusedLasso().fit(range(3), y)
    with pytest.raises(ValueError, match=rf"y contains {word} \(first in row 1\)"):
        fused_lasso(y, 1.0)


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match=r"X has 3, y has shape \(4,\)"):
        FusedLasso().fit(range(3), range(4))
    model = FusedLasso().fit(range(3), range(3))
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        model.predict(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict([np.nan])
    with pytest.raises(TypeError, match="dates"):
        model.fit(pd.date_range("2020", periods=3), range(3))


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "none"),
        ({"alpha": 1, "tv_budget": 1}, "alpha must be None"),
        ({"alpha": -1}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"alpha": "1"}, "alpha"),
        ({"tv_budget": -1}, "tv_budget"),
        ({"alpha": 1, "bound": 0}, "bound"),
        ({"alpha": 1, "sparsity": -1}, "sparsity"),
        ({"alpha": 1, "sparsity": np.inf}, "sparsity"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        fused_lasso(STEP, **options)
    with pytest.raises(ValueError, match=message):
        FusedLasso(**{"alpha": None, **options}).fit(range(6), STEP)


KINDS = {
    "reversed": lambda a: a[::-1].copy()[::-1],
    "strided": lambda a: np.repeat(a, 2)[::2],
    "fortran": lambda a: np.asfortranarray(np.column_stack([a, a]))[:, 0],
    "uint8": lambda a: a.astype(np.uint8),
    "bool": lambda a: a.astype(bool),
    "float32": lambda a: a.astype(np.float32),
    "object": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "series": pd.Series,
    "nullable": lambda a: pd.Series(a, dtype="Float64"),
    "polars": pl.Series,
    "frame": lambda a: pd.DataFrame({"y": a}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_array_kinds(kind):
    a = np.array([200.0, 3, 3, 250, 0, 7]) if kind != "bool" else np.eye(6)[2]
    y = KINDS[kind](a)
    before = np.array(y, copy=True)
    u = fused_lasso(y, 2.0)
    np.testing.assert_array_equal(u.ravel(), fused_lasso(a, 2.0))
    np.testing.assert_array_equal(np.array(y), before)
    model = FusedLasso(0.0).fit(range(6), y)
    np.testing.assert_array_equal(model.values_.ravel(), a)
    assert not np.shares_memory(model.values_, np.asarray(y))
    assert not np.shares_memory(fused_lasso(a, tv_budget=1e9), a)


def test_memory_map(tmp_path):
    y = signal()
    np.save(tmp_path / "y.npy", y)
    mapped = np.load(tmp_path / "y.npy", mmap_mode="r")
    np.testing.assert_array_equal(fused_lasso(mapped, 2.0), fused_lasso(y, 2.0))
    model = FusedLasso(2.0).fit(mapped, mapped)
    order = np.argsort(y, kind="stable")
    np.testing.assert_array_equal(model.values_, fused_lasso(y[order], 2.0))


def test_data_frames_carry_the_name():
    frame = pd.DataFrame({"year": range(6), "flow": STEP})
    model = FusedLasso().fit(frame[["year"]], frame["flow"])
    assert list(model.feature_names_in_) == ["year"]
    np.testing.assert_array_equal(model.predict(frame[["year"]]), model.values_)


def test_refit_forgets():
    model = FusedLasso().fit(range(6), np.column_stack([STEP, STEP]))
    again = model.fit(range(4), [1, 2, 3, 4])
    fresh = clone(model).fit(range(4), [1, 2, 3, 4])
    assert vars(again).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(again.predict([1.5]), fresh.predict([1.5]))


def test_every_parameter_matters():
    X, y = np.arange(40), signal(40)
    base = FusedLasso().fit(X, y).values_
    for options in (
        {"alpha": 2.0},
        {"alpha": None, "tv_budget": 2.0},
        {"sparsity": 0.5},
        {"bound": 0.5},
    ):
        assert np.any(FusedLasso(**options).fit(X, y).values_ != base)


def test_inside_pipelines_and_searches():
    X, y = np.arange(80.0)[:, None], signal(80)
    pipeline = make_pipeline(FunctionTransformer(), FusedLasso(2.0))
    expected = FusedLasso(2.0).fit(X, y).predict(X)
    np.testing.assert_array_equal(pipeline.fit(X, y).predict(X), expected)
    scaled = TransformedTargetRegressor(FusedLasso(2.0), transformer=StandardScaler())
    expected = y.std() * fused_lasso((y - y.mean()) / y.std(), 2.0) + y.mean()
    assert np.max(np.abs(scaled.fit(X, y).predict(X) - expected)) < 1e-12
    grid = {"alpha": [0.1, 1.0, 10.0]}
    scores = [
        GridSearchCV(FusedLasso(), grid, cv=TimeSeriesSplit(3), n_jobs=jobs)
        .fit(X, y)
        .cv_results_["mean_test_score"]
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*scores)


# ---- scikit-learn's own checks ----


class FirstColumn(FusedLasso):
    """The estimator with the first of any number of columns as its positions."""

    def fit(self, X, y, sample_weight=None):
        X = validate_data(self, X, dtype=np.float64)
        seen = {k: v for k, v in vars(self).items() if k.endswith("_in_")}
        super().fit(X[:, :1], y, sample_weight)
        vars(self).update(seen)
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return super().predict(X[:, 0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        return tags


CHECKS = [
    pytest.param(estimator, check, id=f"{check.func.__name__}-{i}")
    for options in (
        {},
        {"missing": "skip", "sparsity": 0.01, "bound": 50.0},
        {"penalty": "group"},
    )
    for i, (estimator, check) in enumerate(
        estimator_checks_generator(FirstColumn(**options))
    )
]


def test_number_of_scikit_learn_checks():
    assert len(CHECKS) >= 3 * 58  # 59 in scikit-learn 1.6, 60 in 1.9


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator, check", CHECKS)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_dual_gap_shows_a_worse_solution(monkeypatch):
    """The attribute is the certificate of the values, not a formality."""
    rng = np.random.default_rng(11)
    y = rng.standard_normal(50)
    exact = FusedLasso(alpha=1.0).fit(np.arange(50), y)
    nearby = solution(y[:, None], None, alpha=1.1)
    monkeypatch.setattr(
        "sktvdenoise.offline.minimise",
        lambda *args, **kwargs: replace(nearby, alpha=1.0),
    )
    worse = FusedLasso(alpha=1.0).fit(np.arange(50), y)
    assert exact.dual_gap_ < 1e-12 < worse.dual_gap_


# ---- scores, certificates, what is refused ----


def test_score_passes_over_missing_labels():
    rng = np.random.default_rng(0)
    x = np.arange(60)
    y = np.repeat([[0.0, 3.0], [4.0, 1.0]], 30, axis=0) + rng.normal(size=(60, 2))
    y[::7, 0] = y[3::5, 1] = np.nan
    w = rng.uniform(0.5, 2, 60)
    model = FusedLasso(missing="skip").fit(x, y, w)
    own = []
    for labels, values in zip(y.T, model.values_.T):
        seen = ~np.isnan(labels)
        own.append(r2_score(labels[seen], values[seen], sample_weight=w[seen]))
    assert abs(model.score(x, y, w) - np.mean(own)) < 1e-14
    counts = np.where(np.isnan(y), np.nan, np.round(np.abs(y)))
    model = FusedLasso(missing="skip", loss="poisson").fit(x, counts)
    filled = np.nan_to_num(counts[:, 0])
    single = FusedLasso(missing="skip", loss="poisson").fit(x, counts[:, 0])
    expected = single.score(x, filled, ~np.isnan(counts[:, 0]))
    assert single.score(x, counts[:, 0]) == expected
    assert model.score(x, counts) < 1
    search = GridSearchCV(FusedLasso(missing="skip"), {"alpha": [0.1, 1, 10]})
    assert np.isfinite(search.fit(x[:, None], y).best_score_)
    with pytest.raises(ValueError, match=r"NaN \(first in row 0\)"):
        FusedLasso().fit(x, np.zeros((60, 2))).score(x, y)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_weights_of_the_score_are_validated(loss):
    model = FusedLasso(loss=loss).fit(range(6), STEP)
    assert model.score(range(6), STEP, 2.0) == model.score(range(6), STEP)
    for weight, message in [
        ([1, 1, 1, 1, 1, -1], "sample_weight is negative.*row 5"),
        ([1, 1, np.nan, 1, 1, 1], "sample_weight contains NaN.*row 2"),
        ([1] * 5, "sample_weight must be a scalar or one number per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.score(range(6), STEP, weight)
    with pytest.raises(ValueError, match=r"shape \(6, 2\)"):
        model.score(range(6), np.zeros((6, 2)))


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e8])
@pytest.mark.parametrize("kind", ["steps", "walk"])
def test_certificate_beside_an_offset(kind, offset):
    rng = np.random.default_rng(0)
    y = rng.normal(size=100_000)
    y = (
        np.cumsum(y)
        if kind == "walk"
        else y + np.repeat(3 * rng.normal(size=10), 10**4)
    )
    for options in (
        {"alpha": 1.0},
        {"alpha": 100.0},
        {"alpha": None, "tv_budget": 20.0},
        {"alpha": 10.0, "bound": offset + 2},
    ):
        model = FusedLasso(**options).fit(range(len(y)), y + offset)
        objective = 0.5 * model.loss_ + model.alpha_ * model.tv_
        assert 0 <= model.dual_gap_ * len(y) <= 1e-10 * objective


def test_a_refit_has_no_budget():
    with pytest.raises(ValueError, match="tv_budget"):
        FusedLasso(None, tv_budget=3, refit=True).fit(range(6), STEP)


def test_values_do_not_share_memory():
    model = FusedLasso().fit(range(6), STEP)
    assert not np.shares_memory(model.values_, model.linear_values_)
    x = np.arange(3.0)
    assert not np.shares_memory(FusedLasso().fit(x, x).positions_, x)


@pytest.mark.parametrize("max_iter", [0, 0.5, "a", -1])
def test_number_of_iterations_is_an_integer(max_iter):
    with pytest.raises(ValueError, match="max_iter must be an integer"):
        fused_lasso(STEP, 1, max_iter=max_iter)


def test_tiny_labels_are_refused_where_squares_decide():
    y = 1e-170 * np.random.default_rng(0).normal(size=50)
    for alpha in ("sure", "bic"):
        with pytest.raises(ValueError, match="too small"):
            FusedLasso(alpha).fit(range(50), y)


def test_regret_names_the_predictions():
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        dynamic_regret([1.0, 2.0], [1.0, np.nan], tv_budget=1)
