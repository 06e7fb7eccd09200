"""The members of the pool, in numpy: each against the definition that it follows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student

from sktvdenoise.aggregation import (
    MLPoly,
    fixed_share_update,
    ml_poly_update,
    ml_poly_weights,
    student_factor,
)
from sktvdenoise.experts import (
    find_period,
    holt_update,
    kalman_gain,
    mixture_start,
    mixture_update,
    profile_start,
    profile_update,
    ridge_forecast,
    ridge_update,
    running_mean_update,
)
from sktvdenoise.pool import winsorised_update

# ---------------------------------------------------------------- levels and trends


@pytest.mark.parametrize("weight", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("gain", [0.05, 0.5, 0.9])
def test_gain_is_that_of_a_steady_kalman_filter(gain, weight):
    """The walk's variance is such that the gain for weight 1 is the given one."""
    walk = gain**2 / (1 - gain)
    variance = 0.0
    for _ in range(2000):
        predicted = variance + walk
        variance = predicted / (predicted + 1)
    assert_allclose(variance, gain, rtol=1e-9)
    expected = predicted / (predicted + 1 / weight)
    assert_allclose(kalman_gain(gain, weight, np.inf), expected, rtol=1e-9)


def test_gain_of_zero_is_the_running_mean():
    rng = np.random.default_rng(0)
    level, mean, mass = 3.0, 3.0, 0.0
    for y, w in zip(rng.normal(size=50), rng.uniform(0.1, 3, 50)):
        mean, mass = running_mean_update(mean, mass, y, w)
        level += kalman_gain(0.0, w, mass) * (y - level)
        assert_allclose(level, mean, atol=1e-14)


def test_holt_follows_a_line_exactly():
    level, slope = 5.0, 2.0
    for y in 7.0 + 2.0 * np.arange(20):
        assert level + slope == y
        level, slope = holt_update(level, slope, y, 0.3, 0.1)


# ---------------------------------------------------------------- regression


def regression(seed, n=40, d=5, forgetting=1.0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    w = rng.uniform(0.1, 3, n)
    gram, moment = np.zeros((d, d)), np.zeros(d)
    for row in range(n):
        gram, moment = ridge_update(gram, moment, X[row], y[row], w[row], forgetting)
    return X, y, w * forgetting ** np.arange(n)[::-1], gram, moment, rng.normal(size=d)


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_ridge_minimises_its_objective(forgetting):
    X, y, w, gram, moment, x = regression(0, forgetting=forgetting)
    root = np.sqrt(w)[:, None]
    rows = np.vstack([root * X, np.sqrt(0.7) * np.eye(5)])
    labels = np.append(root[:, 0] * y, np.zeros(5))
    expected = x @ np.linalg.lstsq(rows, labels, rcond=None)[0]
    assert_allclose(ridge_forecast(gram, moment, x, 0.7), expected, rtol=1e-12)


def test_present_features_are_a_row_with_label_zero():
    _, _, _, gram, moment, x = regression(1)
    with_row = ridge_update(gram, moment, x, 0.0)
    assert_allclose(
        ridge_forecast(gram, moment, x, 0.7, present=1.0),
        ridge_forecast(*with_row, x, 0.7),
        rtol=1e-13,
    )


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_bound_of_vovk_azoury_and_warmuth(penalty):
    """The regret against every theta, with labels up to 1 chosen against x."""
    rng = np.random.default_rng(2)
    n, d = 300, 3
    X, y = rng.uniform(-1, 1, size=(n, d)), np.empty(n)
    gram, moment, loss = np.zeros((d, d)), np.zeros(d), 0.0
    for row in range(n):
        x = ridge_forecast(gram, moment, X[row], penalty, present=1.0)
        y[row] = -np.sign(x) or 1.0
        loss += (y[row] - x) ** 2
        gram, moment = ridge_update(gram, moment, X[row], y[row])
    theta = np.linalg.solve(gram + penalty * np.eye(d), moment)
    best = np.sum((y - X @ theta) ** 2) + penalty * theta @ theta
    assert loss <= best + np.linalg.slogdet(np.eye(d) + gram / penalty)[1]


def test_dependent_features_are_no_harm():
    x = np.array([1e3, 2e3, 4e3])
    gram, moment = 1e6 * np.outer(x, x), 1e6 * 5.0 * x
    for penalty in (1e-30, 1e-200):
        assert abs(ridge_forecast(gram, moment, x, penalty) - 5.0) < 1e-6


# ---------------------------------------------------------------- change points


def run_lengths(y, hazard, s):
    """Posterior of births after all labels, and the means, by plain recursion.

    An expert born in row j predicts row t from the mean m of labels j .. t - 1,
    with variance s (1 + 1 / (t - j)); the newborn from label t - 1, with 26 s.
    """
    posterior = np.array([1 - hazard, hazard])  # after the first label
    for row in range(1, len(y)):
        ages = np.append(row - np.arange(row), 1 / 25)
        means = np.append([y[j:row].mean() for j in range(row)], y[row - 1])
        variance = s * (1 + 1 / ages)
        density = np.exp(-((y[row] - means) ** 2) / (2 * variance))
        joint = posterior * density / np.sqrt(2 * np.pi * variance)
        posterior = np.append((1 - hazard) * joint, hazard * joint.sum())
        posterior /= posterior.sum()
    return posterior, np.append([y[j:].mean() for j in range(len(y))], y[-1])


@pytest.mark.parametrize("hazards", [(0.01,), (1e-3, 0.05, 0.5)])
def test_mixture_is_the_posterior_of_run_lengths(hazards):
    rng = np.random.default_rng(3)
    y = np.repeat([0.0, 4.0, -1.0], 30) + rng.normal(size=90)
    mixture = mixture_start(0, y[0], 1.0, hazards)
    for row in range(1, len(y)):
        mixture = mixture_update(mixture, row, y[row], 1.0, 0.8, hazards, n_kept=None)
    for weights, hazard in zip(mixture.weights, hazards):
        posterior, means = run_lengths(y, hazard, 0.8)
        assert_allclose(weights, posterior, rtol=1e-10, atol=1e-12)
        assert_allclose(mixture.levels, means, atol=1e-12)
        assert_allclose(weights @ mixture.levels, posterior @ means, atol=1e-12)
    assert_array_equal(mixture.births, np.arange(91))


def test_bounded_memory_loses_little():
    """Eight experts of ninety predict as all do, to a tenth of the noise."""
    rng = np.random.default_rng(4)
    y = np.repeat([0.0, 4.0, -1.0], 60) + rng.normal(size=180)
    short = full = mixture_start(0, y[0], 1.0, [0.01])
    for row in range(1, len(y)):
        short = mixture_update(short, row, y[row], 1.0, 1.0, [0.01])
        full = mixture_update(full, row, y[row], 1.0, 1.0, [0.01], n_kept=None)
        assert len(short.births) <= 9
        assert_array_equal(short.births[-3:], full.births[-3:])
        assert abs(short.weights.sum() - 1) < 1e-12
        difference = short.weights @ short.levels - full.weights @ full.levels
        assert np.max(np.abs(difference)) < 0.1


def test_experts_are_weighted_means_and_lines():
    """A line's slope has variance 0.1 s before its labels, its level any."""
    rng = np.random.default_rng(5)
    y, w = rng.normal(size=12), rng.uniform(0.2, 3, size=12)
    level = mixture_start(0, y[0], w[0], [0.1])
    line = mixture_start(0, y[0], w[0], [0.1], trends=True)
    for row in range(1, 12):
        rule = dict(n_kept=None, hazards=[0.1], row=row, y=y[row], weight=w[row])
        level = mixture_update(level, noise=1.0, **rule)
        line = mixture_update(line, noise=1.0, trends=True, **rule)
    for birth in range(12):
        labels, masses = y[birth:], w[birth:]
        assert_allclose(level.levels[birth], np.average(labels, weights=masses))
        assert_allclose(level.variances[birth], 1 / masses.sum())
        time = np.arange(len(labels)) - len(labels)  # the next label is at 0
        X = np.column_stack([np.ones(len(labels)), time])
        precision = X.T @ (masses[:, None] * X) + np.diag([0.0, 10.0])
        theta = np.linalg.solve(precision, X.T @ (masses * labels))
        covariance = np.linalg.inv(precision)
        assert_allclose(line.levels[birth], theta[0], atol=1e-12)
        assert_allclose(line.slopes[birth], theta[1], atol=1e-12)
        assert_allclose(line.variances[birth], covariance[0, 0])
        assert_allclose(line.covariances[birth], covariance[0, 1], atol=1e-12)
        assert_allclose(line.slope_variances[birth], covariance[1, 1])


def test_heavy_tails_are_students():
    rng = np.random.default_rng(6)
    mixture = mixture_start(0, 0.0, 1.0, [0.1])
    for row in range(1, 6):
        before = mixture
        y, s = rng.normal(), 0.7
        mixture = mixture_update(mixture, row, y, 1.0, s, [0.1], heavy=True)
        scale = np.sqrt(2 / 3 * s * (1 + before.variances))
        density = student.pdf(y - before.levels, df=3, scale=scale)
        posterior = before.weights[0] * density
        expected = np.append(0.9 * posterior / posterior.sum(), 0.1)
        assert_allclose(mixture.weights[0], expected, rtol=1e-12)


def test_an_outlier_hardly_moves_robust_levels():
    y = np.append(np.zeros(50), 100.0)
    plain = robust = mixture_start(0, 0.0, 1.0, [1e-6])
    for row in range(1, 51):
        rule = dict(hazards=[1e-6], row=row, y=y[row], weight=1.0, noise=1.0)
        plain = mixture_update(plain, **rule, n_kept=None)
        robust = mixture_update(robust, **rule, n_kept=None, heavy=True)
    assert abs(plain.levels[0] - 100 / 51) < 1e-9
    assert 0 < robust.levels[0] < 1e-3 * plain.levels[0]


# ---------------------------------------------------------------- seasons


@pytest.mark.parametrize("period", [3, 7, 24, 150])
def test_period_is_found_and_no_multiple(period):
    rng = np.random.default_rng(period)
    pattern = rng.normal(size=period)
    for n in (6, 20):
        y = np.resize(pattern, n * period) + 0.2 * rng.normal(size=n * period)
        assert find_period(np.diff(y)) == period
        assert find_period(-1e6 * np.diff(y)) == period


def test_a_period_is_above_three_standard_errors():
    rng = np.random.default_rng(7)
    for _ in range(40):
        d = np.diff(np.cumsum(rng.normal(size=400)))
        k = find_period(d)
        if k > 0:
            rho = d[k:] @ d[:-k] / (d @ d) * len(d) / (len(d) - k)
            assert rho > 3 / np.sqrt(len(d) - k)
    assert find_period(np.zeros(50)) == find_period([]) == find_period([1.0]) == 0


def test_profile_repeats_an_exact_season():
    rng = np.random.default_rng(8)
    pattern = rng.normal(size=7)
    y = np.resize(pattern, 40)
    level, deviations = profile_start(y[10:17], phase=16 % 7)
    for row in range(17, 40):
        assert_allclose(level + deviations[row % 7], y[row], atol=1e-14)
        level, deviations = profile_update(level, deviations, row % 7, y[row], 0.3, 0.2)
    assert_allclose(level, pattern.mean(), atol=1e-14)


# ---------------------------------------------------------------- aggregation


def test_fixed_share_keeps_its_bound():
    """With mix losses l, and any sequence of experts with m switches."""
    rng = np.random.default_rng(9)
    n, K, share = 200, 5, 0.02
    losses = rng.exponential(size=(n, K))
    path = np.repeat(rng.integers(K, size=8), n // 8)
    losses[np.arange(n), path] *= 0.1
    weights, mix = np.full(K, 1 / K), 0.0
    for row in losses:
        mix -= np.log(weights @ np.exp(-row))
        weights = fixed_share_update(weights, np.exp(-row), share)
        assert abs(weights.sum() - 1) < 1e-12
    m = np.count_nonzero(np.diff(path))
    stay, switch = (1 - share) + share / K, share / K
    price = np.log(K) - (n - 1 - m) * np.log(stay) - m * np.log(switch)
    assert mix <= losses[np.arange(n), path].sum() + price


def test_fixed_share_forgets_where_nothing_is_left():
    assert_array_equal(fixed_share_update(np.ones(4) / 4, np.zeros(4), 0.1), 0.25)


def test_student_factor_is_a_density():
    errors = np.linspace(-5, 5, 11)
    density = student.pdf(errors, df=3, scale=np.sqrt(0.7 / 2))
    ratio = student_factor(errors, 0.7) / density
    assert_allclose(ratio, ratio[0], rtol=1e-12)


def test_ml_poly_finds_the_best_expert():
    rng = np.random.default_rng(10)
    y = rng.normal(size=2000)
    state = MLPoly(np.zeros(3), np.zeros(3), 0.0)
    predictions, loss = np.array([-1.0, 0.0, 3.0]), 0.0
    for label in y:
        weights = ml_poly_weights(state)
        x = weights @ predictions if weights.any() else predictions.mean()
        loss += (label - x) ** 2
        state = ml_poly_update(state, x, predictions, label)
    assert weights.sum() == pytest.approx(1) and weights[1] > 0.95
    # The gradients' regret is above that of the squared loss.
    assert loss - np.sum(y**2) <= state.regret[1]
    n_times_log = 3 * (1 + np.log(1 + len(y)))
    assert state.regret[1] <= np.sqrt(n_times_log * state.variance[1])


def test_ml_poly_draws_in_errors_and_gaps():
    state = MLPoly(np.zeros(2), np.zeros(2), 0.0)
    near, far = np.array([0.0, 1.0]), np.array([0.0, 100.0])
    assert_allclose(ml_poly_update(state, 0.0, near, -1e9, noise=1.0).regret, [0, -10])
    # 2 * 5 * 10 and 0.02 (100^2 - 100).
    assert_allclose(ml_poly_update(state, 0.0, far, -1e9, noise=1.0).regret, [0, -298])
    assert_array_equal(ml_poly_update(state, 0.0, near, 1.0, rounding=1.0).regret, 0)


def test_an_outlier_counts_little_a_change_of_scale_for_all():
    variance, surprises = winsorised_update(1.0, 0, 1e12, 0.01)
    assert variance == pytest.approx(1.08)
    for _ in range(60):
        variance, surprises = winsorised_update(variance, surprises, 1e12, 0.01)
    assert 1e11 < variance < 1e12
    for _ in range(60):
        variance, surprises = winsorised_update(variance, surprises, 1e12, 0.01)
    assert surprises == 0
