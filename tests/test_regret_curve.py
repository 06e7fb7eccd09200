"""Regret against every budget at once: what the definitions imply."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.metrics import (
    dynamic_regret,
    path_variation,
    regret_curve,
    tv_oracle,
)

STEP = [0, 0, 0, 10, 10, 10]


def cases():
    """Labels, predictions and weights."""
    rng = np.random.default_rng(0)
    n = 150
    noise = rng.standard_normal(n)
    steps = np.repeat(rng.normal(0, 5, 6), n // 6)
    weights = rng.uniform(0.1, 3, n)
    zeros = weights * (rng.random(n) < 0.7)
    zeros[:3] = 0
    labels = {
        "noise": (noise, None),
        "walk": (np.cumsum(noise), None),
        "steps": (steps + noise, weights),
        "plateaus": (steps, weights),
        "ties": (rng.integers(0, 4, n).astype(float), None),
        "ties and zeros": (rng.integers(0, 3, n).astype(float), zeros.round()),
        "ramp": (np.arange(n) / 10, None),
        "scalar weight": (noise, 2.5),
        "offset": (1e6 + steps + noise, zeros),
        "tiny": (1e-150 * (steps + noise), None),
        "huge": (1e100 * (steps + noise), weights),
        "outputs": (np.c_[noise, 10 * steps, np.cumsum(noise)], None),
        "outputs and zeros": (rng.integers(-2, 3, (n, 2)) + 0.0, zeros),
        "one column": (noise[:, None], weights),
        "constant": (np.full(n, 3.0), None),
        "one row": (np.array([2.0]), 3.0),
        "two rows": (np.array([2.0, 5.0]), None),
    }
    return {
        name: (y, y + np.abs(y).max() * rng.normal(0, 0.2, y.shape), w)
        for name, (y, w) in labels.items()
    }


@pytest.fixture(params=cases())
def case(request):
    return cases()[request.param]


def of(case):
    y, x, w = case
    return regret_curve(y, x, sample_weight=w)


def row_weights(y, w):
    """Weights of the shape of `y`."""
    w = np.broadcast_to(1.0 if w is None else w, len(y))
    return np.broadcast_to(w.reshape(-1, *[1] * (y.ndim - 1)), y.shape)


def test_golden_values_of_the_step():
    """By hand: halves at C/2 from their mean 5, loss 6 (5 - C/2)^2, penalty 3 of it."""
    curve = regret_curve(STEP, [0, 0, 0, 0, 10, 10])
    np.testing.assert_allclose(curve.tv_budget, [0, 10], rtol=1e-15)
    np.testing.assert_allclose(curve.regret, [-50, 100], rtol=1e-15)
    assert (curve.static, curve.loss, curve.n_samples) == (-50, 100, 6)
    budgets = np.linspace(0, 10, 11)
    oracle = 6 * (5 - budgets / 2) ** 2
    np.testing.assert_allclose(curve(budgets), 100 - oracle, rtol=1e-14)
    np.testing.assert_allclose(curve.multiplier(budgets), 15 - 1.5 * budgets)
    assert curve(10) == curve(11) == 100 and curve.multiplier(11) == 0


def test_curve_is_the_regret_at_every_budget(case):
    """Between knots, at knots and beyond, against one oracle for each budget."""
    y, x, w = case
    curve = of(case)
    rng = np.random.default_rng(1)
    whole = curve.tv_budget[-1]
    knots = rng.choice(curve.tv_budget, 15)
    budgets = np.r_[0, whole * rng.random(20), whole * 10 ** rng.uniform(-6, 0, 13)]
    budgets = np.r_[budgets, knots, 2 * whole]
    assert len(budgets) == 50
    scale = curve.oracle_loss[0] + curve.loss
    # Each oracle is a sequence of floats, the curve isn't.
    rounding = 1e-12 * scale + 1e-13 * np.abs(y).max() * np.sqrt(scale * len(y))
    expected = [dynamic_regret(y, x, tv_budget=c, sample_weight=w) for c in budgets]
    np.testing.assert_allclose(curve(budgets), expected, rtol=0, atol=rounding)


def test_curve_is_certified_by_dual_points(case):
    """The losses lie between the oracle's and what its gap allows."""
    y, _, w = case
    curve = of(case)
    rounding = 1e-12 * curve.oracle_loss[0] + 1e-30 * np.abs(y).max() ** 2
    rounding += 1e-15 * np.abs(y).max() * np.sqrt(curve.oracle_loss[0] * len(y))
    for share in (0, 0.03, 0.4, 0.95):
        budget = share * curve.tv_budget[-1]
        oracle = tv_oracle(y, budget, sample_weight=w)
        loss = curve.loss - curve(budget)
        own = 1e-15 * curve.loss
        assert loss <= oracle.loss + rounding + own
        assert loss >= oracle.loss - oracle.gap - rounding - own


def test_multiplier_is_that_of_the_oracle(case):
    y, _, w = case
    curve = of(case)
    largest = curve.multiplier(0)
    for share in (0, 0.01, 0.2, 0.7, 0.99, 2):
        budget = share * curve.tv_budget[-1]
        oracle = tv_oracle(y, budget, sample_weight=w)
        error = abs(curve.multiplier(budget) - oracle.multiplier)
        assert error <= 1e-9 * largest


def test_loss_falls_at_twice_the_multiplier(case):
    """By the mean value theorem, for alpha is monotone: between any two budgets."""
    curve = of(case)
    budgets = curve.tv_budget[-1] * np.linspace(0, 1, 200) ** 2
    alpha = curve.multiplier(budgets)
    assert np.diff(alpha).max() <= 0
    rise, width = np.diff(curve(budgets)), np.diff(budgets)
    rounding = 1e-14 * (curve.loss + curve.oracle_loss[0])
    assert (rise <= 2 * alpha[:-1] * width + rounding).all()
    assert (rise >= 2 * alpha[1:] * width - rounding).all()


def test_knots_are_sorted_and_the_curve_grows(case):
    curve = of(case)
    assert (np.diff(curve.tv_budget) >= 0).all()
    assert (np.diff(curve.regret) >= 0).all()
    assert curve.tv_budget[0] == curve.oracle_loss[-1] == curve.alphas[-1] == 0
    np.testing.assert_array_equal(curve.regret, curve.loss - curve.oracle_loss)
    fine = np.sort(np.r_[curve.tv_budget, np.linspace(0, curve.tv_budget[-1], 5000)])
    rounding = 4e-16 * (curve.loss + curve.oracle_loss[0])
    assert np.diff(curve(fine)).min() >= -rounding
    at_knots = curve(curve.tv_budget)
    np.testing.assert_allclose(at_knots, curve.regret, rtol=0, atol=rounding)


def test_ends_are_static_regret_and_the_whole_loss(case):
    y, x, w = case
    curve = of(case)
    w = row_weights(y, w)
    whole = np.sum(w * (y - x) ** 2)
    means = np.average(y, axis=0, weights=w[:, 0] if y.ndim == 2 else w)
    constant = np.sum(w * (y - means) ** 2)
    assert curve.loss == pytest.approx(whole, rel=1e-14)
    # The mean itself is rounded.
    rounding = 1e-13 * (whole + constant) + w.sum() * (2e-16 * np.abs(y).max()) ** 2
    assert curve.static == pytest.approx(whole - constant, rel=0, abs=rounding)
    assert curve.static == curve(0) == curve.regret[0]
    counted = y[(w > 0).reshape(len(y), -1)[:, 0]]
    assert curve.tv_budget[-1] == pytest.approx(path_variation(counted), rel=1e-13)
    for budget in curve.tv_budget[-1] * np.array([1, 1 + 1e-9, 100]):
        assert curve(budget) == curve.loss == curve.regret[-1]
    assert curve.n_samples == len(counted)


def test_regret_of_the_oracle_and_of_the_labels(case):
    """Its own oracle has regret 0, the labels have minus the oracle's loss."""
    y, _, w = case
    labels = regret_curve(y, y, sample_weight=w)
    assert labels.loss == 0
    np.testing.assert_array_equal(labels.regret, -labels.oracle_loss)
    for share in (0, 0.1, 0.6, 1):
        budget = share * labels.tv_budget[-1]
        oracle = tv_oracle(y, budget, sample_weight=w)
        curve = regret_curve(y, oracle.comparator, sample_weight=w)
        rounding = 1e-12 * curve.oracle_loss[0] + oracle.gap
        rounding += 1e-13 * np.abs(y).max() * np.sqrt(curve.oracle_loss[0] * len(y))
        assert abs(curve(budget)) <= rounding
        assert labels(budget) == pytest.approx(-oracle.loss, rel=0, abs=rounding)


def test_predictions_move_the_curve_by_their_loss():
    y, x, w = cases()["steps"]
    one, other = of((y, x, w)), of((y, 0 * x, w))
    budgets = np.linspace(0, one.tv_budget[-1], 30)
    shift = np.sum(w * y**2) - np.sum(w * (y - x) ** 2)
    np.testing.assert_allclose(other(budgets) - one(budgets), shift, rtol=1e-10)


def test_integers_against_rational_numbers():
    """Two pieces of sizes 1 and 2 and a third: worked out in fractions.

    Labels 0, 6, 6, 3. To alpha = 3 the first moves by 1 a unit, the middle pair, a
    maximum, by 1, the last by 1: TV = 9 - 4 alpha up to alpha = 3/2, where the last
    meets the middle at 9/2; from there 0 + alpha and the three at 5 - alpha / 3.
    """
    curve = regret_curve([0, 6, 6, 3], [0, 0, 0, 0])
    loss = 81

    def exact(budget):
        budget = Fraction(budget)
        if budget >= 9:
            return loss
        if budget >= 3:
            alpha = (9 - budget) / 4
            return loss - 4 * alpha**2
        alpha = (5 - budget) * Fraction(3, 4)
        first = alpha**2
        level = 5 - alpha / 3
        return loss - first - 2 * (6 - level) ** 2 - (3 - level) ** 2

    budgets = [Fraction(k, 7) for k in range(71)]
    np.testing.assert_allclose(
        curve([float(b) for b in budgets]),
        [float(exact(b)) for b in budgets],
        rtol=2e-15,
    )


def test_linear_interpolation_would_show():
    """Between knots the curve is strictly above its chord: quadratic, not linear."""
    y, x, _ = cases()["steps"]
    curve = regret_curve(y, x)
    middle = (curve.tv_budget[1:] + curve.tv_budget[:-1]) / 2
    above = curve(middle) - (curve.regret[1:] + curve.regret[:-1]) / 2
    rises, wide = np.diff(curve.alphas), np.diff(curve.tv_budget)
    # Of slopes 2 a and 2 b at the ends the middle is (a - b) (width) / 4 above.
    np.testing.assert_allclose(above, -rises * wide / 4, rtol=1e-6, atol=1e-10)


# ---------------------------------------------------------------- invariances


def test_shift_scale_and_reversal():
    y, x, w = cases()["steps"]
    curve = regret_curve(y, x, sample_weight=w)
    budgets = curve.tv_budget[-1] * np.linspace(0, 1.1, 40)
    scale = curve.loss + curve.oracle_loss[0]
    others = {
        "shifted": (regret_curve(y + 64, x + 64, sample_weight=w), 1),
        "scaled": (regret_curve(-8 * y, -8 * x, sample_weight=w), 8),
        "reversed": (regret_curve(y[::-1], x[::-1], sample_weight=w[::-1]), 1),
    }
    for name, (other, factor) in others.items():
        np.testing.assert_allclose(
            other(factor * budgets),
            factor**2 * curve(budgets),
            rtol=0,
            atol=1e-12 * factor**2 * scale,
            err_msg=name,
        )
        summary = other.oracle_inequality(factor * 2.0)
        assert summary.value == pytest.approx(
            factor**2 * curve.oracle_inequality(2.0).value, abs=1e-12 * scale * factor
        )
    heavy = regret_curve(y, x, sample_weight=4 * w)
    np.testing.assert_allclose(heavy(budgets), 4 * curve(budgets), atol=1e-12 * scale)


def test_large_offset_costs_nothing():
    """Labels of 1e9 and noise are exact differences; so must be the curve."""
    rng = np.random.default_rng(2)
    y, x = 1e9 + rng.standard_normal((2, 5000))
    w = rng.integers(0, 4, 5000)
    far = regret_curve(y, x, sample_weight=w)
    near = regret_curve(y - 1e9, x - 1e9, sample_weight=w)
    budgets = near.tv_budget[-1] * np.r_[0, 10.0 ** np.arange(-8, 1), 0.3, 0.9]
    error = np.abs(far(budgets) - near(budgets))
    assert error.max() <= 1e-13 * near.oracle_loss[0]
    assert far.multiplier(0) == pytest.approx(near.multiplier(0), rel=1e-13)


def test_outputs_may_change_places_and_copies_add_up():
    y, x, _ = cases()["outputs"]
    curve, swapped = regret_curve(y, x), regret_curve(y[:, [2, 0, 1]], x[:, [2, 0, 1]])
    budgets = curve.tv_budget[-1] * np.linspace(0, 1, 30)
    np.testing.assert_allclose(swapped(budgets), curve(budgets), rtol=1e-12, atol=1e-8)
    # Two equal outputs share the budget evenly.
    single = regret_curve(y[:, 0], x[:, 0])
    double = regret_curve(y[:, [0, 0]], x[:, [0, 0]])
    budgets = single.tv_budget[-1] * np.linspace(0, 1, 30)
    np.testing.assert_allclose(
        double(2 * budgets), 2 * single(budgets), rtol=1e-12, atol=1e-10
    )


def test_outputs_share_the_budget_in_the_best_way():
    """The best split of a budget between two outputs: the losses' slopes are equal."""
    y, x, _ = cases()["outputs"]
    both = regret_curve(y[:, :2], x[:, :2])
    one, other = (regret_curve(y[:, k], x[:, k]) for k in range(2))
    for budget in both.tv_budget[-1] * np.array([0.05, 0.3, 0.8]):
        split = minimize_scalar(
            lambda c, budget=budget: -one(c) - other(budget - c),
            bounds=(0, budget),
            method="bounded",
            options={"xatol": 1e-9 * budget},
        )
        # No split is better; scipy's comes near, also where the best is at an end.
        assert both(budget) >= -split.fun - 1e-12 * both.oracle_loss[0]
        assert both(budget) == pytest.approx(-split.fun, rel=1e-7)


def test_integer_weights_are_repeated_rows_and_zeros_are_no_rows():
    rng = np.random.default_rng(4)
    y, x, w = *rng.standard_normal((2, 60)), rng.integers(0, 4, 60)
    curve = regret_curve(y, x, sample_weight=w)
    repeated = regret_curve(np.repeat(y, w), np.repeat(x, w))
    budgets = curve.tv_budget[-1] * np.linspace(0, 1.1, 40)
    np.testing.assert_allclose(curve(budgets), repeated(budgets), atol=1e-11)
    left = regret_curve(y[w > 0], x[w > 0], sample_weight=w[w > 0])
    np.testing.assert_array_equal(curve.oracle_loss, left.oracle_loss)
    assert curve.loss == pytest.approx(left.loss, rel=1e-14)
    summaries = [one.oracle_inequality(0.3) for one in (curve, left)]
    np.testing.assert_allclose(*summaries, rtol=1e-12)
    y[w == 0], x[w == 0] = 1e9, -1e9
    wild = regret_curve(y, x, sample_weight=w)
    np.testing.assert_array_equal(wild.regret, curve.regret)


# ---------------------------------------------------------------- oracle inequality


@pytest.mark.parametrize("bound", [1e-3, 0.03, 0.3, 1.0, 3.0, 30.0])
def test_oracle_inequality_is_the_least_sum(case, bound):
    """No point of a dense grid is below; scipy finds the same around the minimum."""
    curve = of(case)
    whole = curve.tv_budget[-1]
    unit = np.sqrt(curve.oracle_loss[0] / curve.n_samples)
    if not unit:
        assert curve.oracle_inequality(bound) == (curve.static, 0)
        return
    bound *= unit
    value, budget = curve.oracle_inequality(bound)
    assert 0 <= budget <= whole

    scale = curve.loss + curve.oracle_loss[0]

    def trade(c):
        return ((curve.loss - curve(c)) + curve.rate(c, bound)) / scale

    least = (curve.loss - value) / scale
    assert trade(budget) == pytest.approx(least, abs=1e-13)
    grid = np.r_[0, whole * np.geomspace(1e-9, 1, 20000), curve.tv_budget]
    grid = np.unique(np.r_[grid, np.linspace(0, whole, 20000)])
    sums = trade(grid)
    assert least <= sums.min() + 1e-13
    k = np.argmin(sums)
    around = grid[max(k - 1, 0)] / whole, grid[min(k + 1, len(grid) - 1)] / whole
    found = minimize_scalar(
        lambda share: trade(share * whole),
        bounds=around,
        method="bounded",
        options={"xatol": 1e-13},
    )
    assert least == pytest.approx(min(found.fun, sums[k]), rel=1e-9, abs=1e-12)


def test_oracle_inequality_is_attained_between_knots_where_its_slope_is_zero():
    y, x, w = cases()["steps"]
    curve = regret_curve(y, x, sample_weight=w)
    inside = 0
    for bound in np.geomspace(0.02, 5, 60):
        _, budget = curve.oracle_inequality(bound)
        if budget:
            slope = curve.rate(budget, bound) * 2 / (3 * budget)
            assert slope == pytest.approx(2 * curve.multiplier(budget), rel=1e-9)
            inside += np.abs(curve.tv_budget - budget).min() > 1e-6 * budget
    assert inside > 20


def test_oracle_inequality_of_two_rows_in_closed_form():
    """Labels +-1: loss (2 - C)^2 / 2 at variation C, so the sum has one variable.

    With C = z^3 it is stationary where (2 - z^3) z = 2 factor / 3.
    """
    curve = regret_curve([-1, 1], [0, 0])
    for bound in (0.05, 0.3, 0.6, 0.9):
        factor = np.cbrt(2) * bound ** (4 / 3)
        roots = np.roots([1, 0, 0, -2, 2 * factor / 3])
        z = roots[np.abs(roots.imag) < 1e-12].real
        z = np.r_[0, z[(z >= 0) & (z**3 <= 2)]]
        sums = (2 - z**3) ** 2 / 2 + factor * z**2
        value, budget = curve.oracle_inequality(bound)
        assert value == pytest.approx(2 - sums.min(), abs=1e-12)
        assert budget == pytest.approx(z[np.argmin(sums)] ** 3, rel=1e-9)


def test_oracle_inequality_at_extreme_bounds(case):
    """A free comparator is the labels, an unpayable one is a constant."""
    curve = of(case)
    rounding = 1e-12 * (curve.loss + curve.oracle_loss[0])
    free = curve.oracle_inequality(1e-300)
    assert free.value == pytest.approx(curve.loss, abs=rounding)
    dear = curve.oracle_inequality(1e140)
    assert dear.value == pytest.approx(curve.static, abs=rounding)


def test_oracle_inequality_falls_with_the_bound(case):
    curve = of(case)
    bounds = np.geomspace(1e-4, 10, 50) * np.sqrt(curve.oracle_loss[0] + 1e-300)
    values = [curve.oracle_inequality(bound).value for bound in bounds]
    rounding = 1e-13 * (curve.loss + curve.oracle_loss[0])
    assert np.diff(values).max() <= rounding
    assert curve.static - rounding <= min(values) <= max(values) <= curve.loss


def test_denoiser_keeps_its_rate():
    """The theorem's claim, with constant 1, for several signals of known bound."""
    rng = np.random.default_rng(6)
    n = 2000
    for jumps in (1, 4, 16):
        truth = np.repeat(rng.uniform(-1, 1, jumps + 1), n // (jumps + 1))
        y = truth + 0.3 * rng.uniform(-1, 1, len(truth))
        x = OnlineTVDenoiser().partial_fit_predict(np.arange(len(y)), y)
        curve = regret_curve(y, x)
        assert curve.oracle_inequality(np.abs(y).max()).value <= 0


def test_rate_is_that_of_the_paper():
    curve = regret_curve(np.arange(8.0), np.zeros(8))
    np.testing.assert_allclose(curve.rate([0, 1, 27], 8), [0, 32, 288], rtol=1e-15)
    assert curve.rate(1, 1) == 2


# ---------------------------------------------------------------- input


def test_shape_of_budgets_is_kept():
    curve = regret_curve(STEP, STEP)
    for read in (curve, curve.multiplier, lambda c: curve.rate(c, 1.0)):
        for number in (4, 4.0, np.float32(4), np.int64(4), np.array(4.0)):
            assert type(read(number)) is float
        assert read([]).shape == (0,)
        assert read([[1, 2, 3]]).shape == (1, 3)
        np.testing.assert_array_equal(read([4, 0, 4]), [read(4), read(0), read(4)])


@pytest.mark.parametrize(
    "budget",
    [-1, -1e-300, np.nan, np.inf, "1", None, 1j, True, [1, -1], [np.nan], [[np.inf]]],
)
def test_bad_budgets_are_refused(budget):
    curve = regret_curve(STEP, STEP)
    for read in (curve, curve.multiplier, lambda c: curve.rate(c, 1.0)):
        with pytest.raises(ValueError, match="tv_budget must be a finite number >= 0"):
            read(budget)


@pytest.mark.parametrize("bound", [0, -1, np.nan, np.inf, "1", None, [1.0], 1e200])
def test_bad_bounds_are_refused(bound):
    curve = regret_curve(STEP, STEP)
    with pytest.raises(ValueError, match="bound must be"):
        curve.oracle_inequality(bound)
    with pytest.raises(ValueError, match="bound must be"):
        curve.rate(1, bound)


@pytest.mark.parametrize(
    "y_true, y_pred, message",
    [
        (STEP, STEP[:5], r"y_true has \(6,\), y_pred has \(5,\)"),
        (STEP, np.c_[STEP], r"y_true has \(6,\), y_pred has \(6, 1\)"),
        (STEP, 3.0, "y_pred must have at least one dimension"),
        (STEP, None, "y_pred is None"),
        (None, STEP, "y_true is None"),
        ([], [], "minimum of 1 is required"),
        (np.zeros((3, 0)), np.zeros((3, 0)), "0 feature|0 columns"),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), "dim"),
        ([1, np.nan], [1, 1], r"y_true contains NaN \(first in row 1\)"),
        ([1, 1, 1], [1, 1, np.nan], r"y_pred contains NaN \(first in row 2\)"),
        ([np.inf, 1], [1, 1], r"y_true contains infinity \(first in row 0\)"),
        ([1, 1], [1, -np.inf], r"y_pred contains infinity \(first in row 1\)"),
        ([1, 1e150], [1, 1], r"y_true\[1\] = 1e\+150 is too large"),
        ([1, 1], [1e150, 1], r"y_pred\[0\] = 1e\+150 is too large"),
    ],
)
def test_bad_arrays_are_refused(y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        regret_curve(y_true, y_pred)


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1, 1, 1, 1, 1, -1], r"sample_weight is negative \(first in row 5\)"),
        ([1, np.nan, 1, 1, 1, 1], r"sample_weight contains NaN \(first in row 1\)"),
        ([np.inf] * 6, "sample_weight contains infinity"),
        ([1, 1], r"shape \(6,\), got \(2,\)"),
        (np.zeros(6), "sample_weight is zero in every row"),
        (0, "sample_weight is zero in every row"),
        (1e308, "too large"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        regret_curve(STEP, STEP, sample_weight=weights)


def test_lists_integers_and_other_layouts():
    y, x, _ = cases()["outputs"]
    expected = regret_curve(y, x).regret
    np.testing.assert_array_equal(
        regret_curve(np.asfortranarray(y), x.tolist()).regret, expected
    )
    before = y.copy(), x.copy()
    y.flags.writeable = x.flags.writeable = False
    np.testing.assert_array_equal(regret_curve(y, x).regret, expected)
    np.testing.assert_array_equal((y, x), before)
    ints = regret_curve(np.array(STEP, dtype=np.int8), STEP)
    np.testing.assert_array_equal(ints.regret, [-150, 0])
