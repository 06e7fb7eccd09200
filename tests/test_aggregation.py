"""The numpy references: schedules, weight rules and the bounds they promise."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sktvdenoise.aggregation import (
    aflh_alive,
    aflh_last_round,
    flh_running_mean,
    flh_update,
    substitution,
)
from sktvdenoise.experts import running_mean_update

# ---------------------------------------------------------------- running means


def test_running_mean_is_the_weighted_average():
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=50), rng.uniform(0.1, 3, size=50)
    mean, mass = 7.0, 0.0
    for k in range(50):
        mean, mass = running_mean_update(mean, mass, y[k], w[k])
        assert_allclose(mean, np.average(y[: k + 1], weights=w[: k + 1]), atol=1e-14)
    assert_allclose(mass, w.sum())


def test_running_mean_is_gradient_descent_with_step_one_over_2k():
    y = np.random.default_rng(1).normal(size=200)
    mean, mass, x = 0.0, 0.0, 0.0
    for k, label in enumerate(y, start=1):
        mean, mass = running_mean_update(mean, mass, label)
        x = x - 1 / (2 * k) * 2 * (x - label)
        assert abs(mean - x) < 1e-14


def test_first_label_replaces_the_guess_exactly():
    mean, mass = running_mean_update(np.array([1e12, 0.0]), np.zeros(2), 0.1, 0.3)
    assert_array_equal(mean, [0.1, 0.1])
    assert_array_equal(mass, [0.3, 0.3])


def test_running_mean_keeps_its_digits_on_a_high_level():
    noise = np.random.default_rng(2).normal(size=1000)
    mean, mass = 0.0, 0.0
    for label in 1e9 + noise:
        mean, mass = running_mean_update(mean, mass, label)
    assert abs(mean - 1e9 - noise.mean()) < 1e-6


# ---------------------------------------------------------------- the schedule


def test_last_round_by_the_definition():
    for r in range(1, 40, 2):
        for k in range(8):
            birth = r * 2**k
            assert aflh_last_round(birth) == birth + 2 ** (k + 2) + 1


@pytest.mark.parametrize(
    "t, alive",
    [
        (1, [1]),
        (8, [2, 3, 4, 5, 6, 7, 8]),
        (16, [4, 8, 10, 11, 12, 13, 14, 15, 16]),
        (17, [4, 8, 10, 12, 13, 14, 15, 16, 17]),
    ],
)
def test_alive_sets(t, alive):
    assert_array_equal(aflh_alive(t), alive)


@pytest.mark.parametrize("t, size", [(599, 20), (1024, 21), (4095, 25)])
def test_alive_set_sizes(t, size):
    assert len(aflh_alive(t)) == size


def test_alive_sets_evolve_by_one_birth_and_at_most_one_death():
    for t in range(1, 1100):
        now, then = set(aflh_alive(t)), set(aflh_alive(t + 1))
        assert then - now == {t + 1}
        dead = now - then
        assert len(dead) <= 1
        if dead:
            k = (t - 1 & -(t - 1)).bit_length() - 1
            assert dead == {t - 1 - 2 ** (k + 2)}


def test_every_recent_half_meets_the_alive_set():
    for t in range(1, 400):
        alive = aflh_alive(t)
        for s in range(1, t + 1):
            assert np.any((alive >= s) & (alive <= (s + t) / 2))


def test_alive_set_is_logarithmic():
    """2^k | i and age <= 2^(k+2) + 1 leave at most 3 births for each k."""
    sizes = [len(aflh_alive(t)) for t in range(1, 5000)]
    log2 = np.log2(np.arange(1, 5000))
    assert np.all(sizes <= 3 * (log2 + 1))
    assert max(sizes) > 24  # most experts of a longer history are worth keeping


# ---------------------------------------------------------------- weight rules


def test_update_in_plain_weights():
    rng = np.random.default_rng(3)
    weights, losses = rng.dirichlet(np.ones(6)), rng.uniform(0, 4, size=6)
    updated = weights * np.exp(-0.3 * losses)
    expected = np.append(updated / updated.sum() * (1 - 1 / 11), 1 / 11)
    result = np.exp(flh_update(np.log(weights), losses, 0.3, t=10))
    assert_allclose(result, expected, rtol=1e-13)


def test_update_survives_any_loss():
    weights = np.exp(flh_update(np.log([0.5, 0.5]), np.array([1.1e4, 1e4]), 1.0, t=9))
    assert_array_equal(weights[:2], [0.0, 1 - 1 / 10])
    assert abs(weights.sum() - 1) < 1e-12


def test_a_constant_loss_changes_nothing():
    rng = np.random.default_rng(4)
    log_weights, losses = np.log(rng.dirichlet(np.ones(5))), rng.uniform(size=5)
    shifted = flh_update(log_weights, losses + 1e6, 1.0, t=5)
    assert_allclose(shifted, flh_update(log_weights, losses, 1.0, t=5), atol=1e-8)


def experts_of(kind, rng):
    if kind == "far apart":
        return np.log([0.5, 0.5]), np.array([-1.0, 1.0])
    if kind == "lonely":
        return np.zeros(1), np.array([0.3])
    if kind == "one-sided":
        return np.log([1e-300, 1.0]), np.array([-1.0, 1.0])
    return np.log(rng.dirichlet(np.ones(9) / 3)), rng.uniform(-1, 1, size=9)


@pytest.mark.parametrize("bound", [1.0, 1e-6, 250.0])
@pytest.mark.parametrize("kind", ["far apart", "lonely", "one-sided", "random"])
def test_substitution_inequality(kind, bound):
    """(y - x)^2 <= g(y) on a grid of |y| <= B, with room for rounding only."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        log_weights, predictions = experts_of(kind, rng)
        predictions = bound * predictions
        eta = 1 / (2 * bound**2)
        x = substitution(log_weights, predictions, eta, bound)
        y = np.linspace(-bound, bound, 201)
        exponents = log_weights - eta * (y[:, None] - predictions) ** 2
        g = -logsumexp(exponents, axis=1) / eta
        assert np.all((y - x) ** 2 <= g + 1e-14 * bound**2)
        assert abs(x) <= bound


def test_no_prediction_would_do_above_the_mixable_rate():
    """1/(2 B^2) is exact: experts at +-0.1 and rate 0.55 allow no x for y = +-1."""
    log_weights, predictions, eta = np.log([0.5, 0.5]), np.array([-0.1, 0.1]), 0.55
    y = np.array([-1.0, 1.0])
    g = -logsumexp(log_weights - eta * (y[:, None] - predictions) ** 2, axis=1) / eta
    x = np.linspace(-1, 1, 2001)[:, None]
    assert np.all(np.any((y - x) ** 2 > g + 1e-4, axis=1))


def test_substitution_of_agreeing_experts_is_their_prediction():
    for x in np.linspace(-3, 3, 13):
        log_weights = np.log(np.full(4, 0.25))
        result = substitution(log_weights, np.full(4, x), 1 / 18, 3.0)
        assert abs(result - x) < 1e-14


# ---------------------------------------------------------------- the whole of FLH


def weights_by_segmentation(y, eta):
    """Weights of round n + 1 by brute force over all segmentations of 1..n+1.

    A segmentation with starts S has prior prod_{t in S} 1/t prod_{t not in S}
    (1 - 1/t) and likelihood exp(-eta loss), where each label is predicted by the
    mean of its segment so far, the first of a segment by the label before it.
    Expert j's weight is the probability that the last segment starts at j.
    """
    n = len(y)
    weights = np.zeros(n + 1)
    later = range(2, n + 2)
    for size in range(n + 1):
        for chosen in combinations(later, size):
            starts = (1, *chosen)
            probability = 1.0
            for t in later:
                probability *= 1 / t if t in starts else 1 - 1 / t
            loss = 0.0
            for first, end in zip(starts, (*chosen, n + 2)):
                x = y[first - 2] if first > 1 else 0.0
                for t in range(first, min(end, n + 1)):
                    loss += (y[t - 1] - x) ** 2
                    x = np.mean(y[first - 1 : t])
            weights[starts[-1] - 1] += probability * np.exp(-eta * loss)
    return weights / weights.sum()


@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0])
def test_weights_equal_the_sum_over_all_segmentations(eta):
    y = np.random.default_rng(6).normal(size=9)
    _, state = flh_running_mean(y, learning_rate=eta, pruning=None, return_state=True)
    assert_allclose(state.weights, weights_by_segmentation(y, eta), rtol=1e-12)
    assert_allclose(state.means[0], y.mean(), atol=1e-14)
    assert_allclose(state.forecast, state.weights @ state.means, atol=1e-14)


def test_weights_equal_the_mix_loss_form():
    """ln v^j_{n+1} = -ln(n+1) - eta sum_{t>=j} (loss of j - mix loss)."""
    n, eta = 300, 0.4
    y = np.random.default_rng(7).normal(size=n) + (np.arange(n) > 150) * 3
    excess = np.zeros(n + 1)  # loss of j minus mix loss, from birth
    for t in range(1, n + 1):
        means = np.array([y[j - 1 : t - 1].mean() for j in range(1, t)])
        newborn = y[t - 2] if t > 1 else 0.0
        losses = (y[t - 1] - np.append(means, newborn)) ** 2
        mix = -logsumexp(-eta * (excess[:t] + losses) - np.log(t)) / eta
        excess[:t] += losses - mix
    expected = np.exp(-eta * excess) / (n + 1)
    _, state = flh_running_mean(y, learning_rate=eta, pruning=None, return_state=True)
    assert_allclose(state.weights, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("learning_rate", [0.5, "theory", "mixable"])
@pytest.mark.parametrize("t", [8, 16, 17, 130])
def test_births_follow_the_schedule(learning_rate, t):
    y = np.random.default_rng(8).uniform(-1, 1, size=t - 1)
    _, state = flh_running_mean(
        y, learning_rate=learning_rate, bound=1.0, return_state=True
    )
    assert_array_equal(state.births + 1, aflh_alive(t))
    assert abs(state.weights.sum() - 1) < 1e-12


@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
def test_learnt_bound_starts_again_when_outgrown(learning_rate):
    y = np.array([1.0, 0.5, -1.0, 3.0, 2.0, -7.0, 1.0])
    predictions, state = flh_running_mean(
        y, learning_rate=learning_rate, return_state=True
    )
    assert state.bound == 7.0  # 1, then max(2, 3), then max(6, 7)
    assert_array_equal(state.births, [5, 6, 7])
    fresh = flh_running_mean(y[5:], learning_rate=learning_rate, bound=7.0)
    assert predictions[6] == fresh[1] == -7.0
    bound = 0.0
    for end in range(1, 8):
        _, state = flh_running_mean(
            y[:end], learning_rate=learning_rate, return_state=True
        )
        assert state.bound >= bound
        bound = state.bound
        assert abs(y[:end]).max() <= bound <= 2 * abs(y[:end]).max()


@pytest.mark.parametrize("learning_rate", [0.5, "theory", "mixable"])
@pytest.mark.parametrize("pruning", ["aflh", None])
def test_passed_over_rows_leave_no_trace(learning_rate, pruning):
    rng = np.random.default_rng(9)
    y, w = rng.normal(size=60), rng.uniform(0.2, 2.5, size=60)
    kept = rng.random(60) < 0.7
    settings = dict(learning_rate=learning_rate, pruning=pruning, return_state=True)
    expected, reference = flh_running_mean(y[kept], sample_weight=w[kept], **settings)
    y_missing, w_zero = y.copy(), w.copy()
    y_missing[~kept], w_zero[~kept] = np.nan, 0.0
    for labels, weights in [(y_missing, w), (y, w_zero)]:
        result, state = flh_running_mean(labels, sample_weight=weights, **settings)
        assert_array_equal(result[kept], expected)
        assert_array_equal(state.weights, reference.weights)
        assert_array_equal(state.means, reference.means)
        assert_array_equal(
            state.births[:-1], np.flatnonzero(kept)[reference.births[:-1]]
        )
        assert state.births[-1] == 60


@pytest.mark.parametrize("power", [-600, -3, 5, 400])
def test_predictions_scale_with_the_labels(power):
    y = np.random.default_rng(10).normal(size=100)
    c = 2.0**power
    for learning_rate in ("theory", "mixable"):
        expected = c * flh_running_mean(y, learning_rate=learning_rate)
        result = flh_running_mean(c * y, learning_rate=learning_rate)
        assert_array_equal(result, expected)


def test_cumulative_mix_loss_bounds_the_learner_with_weights():
    """The substitution at 1/(2 B^2) holds for every weighted label, w <= W."""
    rng = np.random.default_rng(11)
    for _ in range(200):
        log_weights, x_j = experts_of("random", rng)
        x = substitution(log_weights, x_j, 1 / 2, 1.0)
        largest = rng.uniform(1, 10)
        w, y = rng.uniform(0, largest), rng.uniform(-1, 1)
        eta = 1 / (2 * largest)
        mix = -logsumexp(log_weights - eta * w * (y - x_j) ** 2) / eta
        assert w * (y - x) ** 2 <= mix + 1e-14 * largest
