"""The offline kernels agree with each other and with exact rational arithmetic."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from sktvdenoise._budget import average, multiplier, place, settle, spread
from sktvdenoise._fused import denoise, erode, form, solve, variation


def families(n, seed):
    """Signals of every character: noise, plateaus, ties, smooth and steep ones."""
    rng = np.random.default_rng(seed)
    t = np.arange(n, dtype=float)
    level = np.repeat(rng.normal(scale=5, size=5), -(-n // 5))[:n]
    return {
        "noise": rng.normal(size=n),
        "plateaus": level + rng.normal(size=n),
        "constant": np.full(n, 0.1),
        "ramp": t,
        "noisy ramp": 0.01 * t + rng.normal(size=n),
        "walk": np.cumsum(rng.normal(size=n)),
        "saw": t % 17,
        "long saw": t % (n // 3 + 1),
        "zigzag": (-1.0) ** t + 1e-3 * t,
        "sine": np.sin(20 * t / n),
        "integers": rng.integers(0, 4, n).astype(float),
        "heavy": np.exp(3 * rng.normal(size=n)),
    }


def weightings(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "unit": None,
        "uniform": rng.uniform(0.1, 3, n),
        "integer": rng.integers(1, 4, n).astype(float),
    }


SIGNALS = [
    pytest.param(y, w, id=f"{kind}-{weighting}-{n}")
    for n in (2, 3, 7, 40, 900)
    for kind, y in families(n, n).items()
    for weighting, w in weightings(n, n).items()
]


def ones(y, w):
    return np.ones_like(y) if w is None else w


def largest_alpha(y, w):
    """From this alpha on the solution is constant."""
    w = ones(y, w)
    return np.abs(np.cumsum(w * (y - np.average(y, weights=w)))[:-1]).max()


def solved(y, w, alpha):
    u = np.empty_like(y)
    solve(y, w, alpha, u)
    return u


def path(y, w):
    vanish, drop = np.full((2, len(y) - 1), np.nan)
    erode(y, w, vanish, drop)
    return vanish, drop


def relative_gap(y, w, u, alpha):
    """Objective minus the dual value at z = cumsum(w (u - y)), over the objective."""
    w, step = ones(y, w), np.diff(u)
    z = np.cumsum(w * (u - y))
    primal = 0.5 * np.sum(w * (y - u) ** 2) + alpha * np.abs(step).sum()
    scale = min(1.0, alpha / np.abs(z[:-1]).max(initial=0) if z[:-1].any() else 1.0)
    z = scale * (z - z[-1] * np.cumsum(w) / w.sum())
    dz = np.diff(z, prepend=0)
    dual = -np.sum(dz**2 / w) / 2 - np.sum(dz * y)
    return (primal - dual) / primal if primal else 0.0


FRACTIONS = (1e-3, 1e-2, 0.1, 0.3, 0.6, 0.95)


@pytest.mark.parametrize("y, w", SIGNALS)
def test_solution_is_certified_and_equals_the_path(y, w):
    vanish, drop = path(y, w)
    scale = np.ptp(y) or 1.0
    for fraction in FRACTIONS:
        alpha = fraction * (largest_alpha(y, w) or 1.0)
        u = solved(y, w, alpha)
        assert abs(relative_gap(y, w, u, alpha)) < 1e-9
        v = np.empty_like(y)
        form(y, w, vanish, alpha, alpha, v)
        assert np.max(np.abs(u - v)) <= 1e-11 * scale
        tv = np.sum((drop * (vanish - alpha))[vanish > alpha])
        assert abs(tv - np.abs(np.diff(u)).sum()) <= 1e-11 * np.abs(np.diff(y)).sum()


@pytest.mark.parametrize("y, w", SIGNALS)
def test_steps_follow_the_steps_of_the_data(y, w):
    for fraction in FRACTIONS:
        step = np.diff(solved(y, w, fraction * (largest_alpha(y, w) or 1.0)))
        moved = step != 0
        np.testing.assert_array_equal(np.sign(step)[moved], np.sign(np.diff(y))[moved])


@pytest.mark.parametrize("y, w", SIGNALS)
def test_path_starts_at_the_data_and_ends_at_the_mean(y, w):
    vanish, drop = path(y, w)
    assert np.all(vanish >= 0) and np.all(drop >= 0)
    size = np.sum(ones(y, w)) * np.ptp(y)
    assert abs(vanish.max() - largest_alpha(y, w)) <= 1e-12 * (
        size + np.sum(ones(y, w))
    )
    tv = np.abs(np.diff(y)).sum()
    assert abs(np.sum(drop * vanish) - tv) <= 1e-11 * tv
    np.testing.assert_array_equal(vanish[np.diff(y) == 0], 0)


def exact_path(y, w):
    """Vanishing alphas and slopes of TV by simulating all groups in rationals."""
    y, w = [Fraction(v) for v in y], [Fraction(v) for v in w]
    vanish = [Fraction(0)] * (len(y) - 1)
    groups = [[v, k, i] for i, (v, k) in enumerate(zip(y, w))]  # value, weight, last
    alpha, slopes = Fraction(0), []
    while True:
        merged = groups[:1]
        for value, weight, last in groups[1:]:
            if value == merged[-1][0]:
                vanish[merged[-1][2]] = alpha
                merged[-1][1:] = [merged[-1][1] + weight, last]
            else:
                merged.append([value, weight, last])
        groups = merged
        if len(groups) == 1:
            return vanish, slopes
        sign = [1 if b[0] > a[0] else -1 for a, b in pairwise(groups)]
        turn = [b - a for a, b in zip([0, *sign], [*sign, 0])]
        speed = [t / g[1] for t, g in zip(turn, groups)]
        slopes.append((alpha, sum(t * s for t, s in zip(turn, speed))))
        until = [
            (b[0] - a[0]) / (p - q)
            for a, b, p, q in zip(groups, groups[1:], speed, speed[1:])
            if p != q and (b[0] - a[0]) / (p - q) > 0
        ]
        alpha += min(until)
        for group, s in zip(groups, speed):
            group[0] += min(until) * s


def rational_signals():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(2, 16))
        t = np.arange(n)
        kind = rng.integers(5)
        y = [
            rng.integers(0, 4, n),
            np.cumsum(rng.integers(-1, 2, n)),
            t % int(rng.integers(2, 6)),
            np.repeat(rng.integers(-3, 4, n), 3)[:n],
            t * (1 + (t > n // 2)),
        ][kind]
        w = rng.integers(1, 4, n) if rng.integers(2) else np.ones(n)
        yield y.astype(float), w.astype(float)


def test_path_equals_exact_rational_arithmetic():
    for y, w in rational_signals():
        exact, slopes = exact_path(y, w)
        top = max(exact)
        for weights in [w, None] if np.all(w == 1) else [w]:
            vanish, drop = path(y, weights)
            for found, true in zip(vanish, exact):
                assert abs(Fraction(found) - true) <= 1e-14 * top
            ends = [alpha for alpha, _ in slopes[1:]] + [top]
            for (start, slope), end in zip(slopes, ends):
                middle = float((start + end) / 2)
                later = vanish > middle
                assert np.sum(later) == sum(a > middle for a in exact)
                assert abs(drop[later].sum() - float(slope)) <= 1e-12 * float(slope)


def test_path_survives_ties_up_to_rounding():
    rng = np.random.default_rng(1)
    for i in range(600):
        n = int(rng.integers(2, 120))
        y = rng.integers(0, 5, n) / 3 + [0, 0.61, -4.7, 1e3][i % 4]
        for _ in range(2):
            y = np.where(rng.integers(0, 3, n) == 1, np.nextafter(y, np.inf), y)
        w = rng.integers(1, 5, n) / 3
        vanish, drop = path(y, w)
        size = np.sum(w) * np.abs(y).max()
        assert abs(vanish.max() - largest_alpha(y, w)) <= 1e-14 * size
        assert abs(np.sum(drop * vanish) - np.abs(np.diff(y)).sum()) <= 1e-12 * size


@pytest.mark.parametrize("budget", [1e-9, 0.01, 0.5, 1.0])
def test_multiplier_is_the_root(budget):
    y = families(500, 3)["walk"]
    vanish, drop = path(y, None)
    budget *= np.abs(np.diff(y)).sum()
    alpha = multiplier(vanish.copy(), drop.copy(), budget)
    tv = np.sum((drop * (vanish - alpha))[vanish > alpha])
    assert abs(tv - budget) <= 1e-9 * budget + 1e-12
    assert 0 <= alpha <= vanish.max()


def test_integer_weights_are_repetitions():
    rng = np.random.default_rng(2)
    y, w = rng.normal(size=60), rng.integers(1, 5, 60)
    for alpha in (0.1, 1.0, 7.0):
        repeated = solved(np.repeat(y, w), None, alpha)
        expected = np.repeat(solved(y, w.astype(float), alpha), w)
        assert np.max(np.abs(repeated - expected)) < 1e-13


@pytest.mark.parametrize("weighting", ["unit", "uniform"])
def test_work_is_linear(weighting):
    """Visits and checks per sample are bounded, ramps and long look-aheads included."""
    for n in (1000, 20_000):
        w = weightings(n, 0)[weighting]
        for y in families(n, 5).values():
            top = largest_alpha(y, w) or 1.0
            u, (vanish, drop) = np.empty(n), np.empty((2, n - 1))
            for fraction in (1e-6, 1e-4, 1e-2, 0.3):
                assert solve(y, w, fraction * top, u) <= 6 * n + 5000
            assert erode(y, w, vanish, drop) <= 3 * n


def test_fallback_is_certified():
    """Long look-aheads over short pieces: the funnel takes over and hands back."""
    rng = np.random.default_rng(4)
    t = np.arange(30_000.0)
    ramp_then_noise = np.where(t < 8000, t, 8000 + 3 * rng.normal(size=t.size))
    for y in (t, (t / 100) ** 2, np.tile(ramp_then_noise, 2), 100 * np.sin(t / 300)):
        for w in (None, rng.uniform(0.1, 3, y.size)):
            for fraction in (1e-4, 1e-2, 1e-1):
                alpha = fraction * largest_alpha(y, w)
                u = np.empty_like(y)
                solve(y, w, alpha, u)
                assert abs(relative_gap(y, w, u, alpha)) < 1e-9


@pytest.mark.parametrize("decades", [8, 16])
def test_uneven_weights(decades):
    """Samples of negligible weight must not spoil the heavy ones."""

    def objective(u):
        return 0.5 * np.sum(w * (y - u) ** 2) + alpha * np.abs(np.diff(u)).sum()

    for n in (20, 300, 5000):
        w = 10.0 ** np.random.default_rng(n).uniform(-decades, 0, n)
        for y in families(n, n).values():
            vanish, _ = path(y, w)
            for fraction in (1e-4, 1e-2, 0.1, 0.5):
                alpha = fraction * (largest_alpha(y, w) or 1.0)
                u, v = solved(y, w, alpha), np.empty(n)
                form(y, w, vanish, alpha, alpha, v)
                error = abs(objective(u) - objective(v))
                assert error <= 1e-11 * objective(v) + 1e-15 * np.sum(w * y**2)


@pytest.mark.parametrize("scale", [1e-8, 1e-12, 1e-16, 1e-30, 1e-300])
def test_tiny_alpha_returns_the_data(scale):
    for n in (50, 3000):
        for w in weightings(n, n).values():
            for y in families(n, n).values():
                alpha = scale * (np.ptp(y) or 1.0)
                error = np.max(ones(y, w) * np.abs(solved(y, w, alpha) - y))
                assert error <= 2.001 * alpha + 3e-15 * np.abs(y).max()


@pytest.mark.parametrize("alpha", [1e3, 1e18, 1e300, np.inf])
def test_large_alpha_is_the_mean_to_rounding(alpha):
    y = families(50, 6)["noise"]
    assert np.max(np.abs(solved(y, None, alpha) - y.mean())) < 1e-15


@pytest.mark.parametrize("scale", [1e-200, 1e-8, 1e8, 1e150])
def test_scale(scale):
    y = families(300, 7)["plateaus"]
    expected = scale * solved(y, None, 2.0)
    error = np.abs(solved(scale * y, None, scale * 2.0) - expected)
    assert np.max(error) <= 1e-12 * scale * np.ptp(y)


@pytest.mark.parametrize("n", [2, 3, 5, 4096, 4097, 10_001])
def test_variation(n):
    for y in families(n, n).values():
        expected = np.abs(np.diff(y)).sum()
        assert abs(variation(y) - expected) <= 1e-13 * expected
    assert variation(np.ones(1)) == 0


@pytest.mark.parametrize("weighting", ["unit", "uniform"])
def test_means_of_pieces(weighting):
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=100), weightings(100, 0)[weighting]
    for last in ([], [0], [98], [3, 4, 50], np.arange(99)):
        last = np.array(last, dtype=np.intp)
        mean, rate, u = np.empty(len(last) + 1), np.empty(len(last) + 1), np.empty(100)
        fall = average(y, w, last, mean, rate)
        spread(mean, last, u)
        for part in np.split(np.arange(100), last + 1):
            center = np.average(y[part], weights=ones(y, w)[part])
            assert np.max(np.abs(u[part] - center)) < 1e-14
        sign = np.sign(np.diff(y))[last]
        expected = np.diff(sign, prepend=0, append=0)
        mass = np.add.reduceat(ones(y, w), np.append(0, last + 1))
        np.testing.assert_allclose(rate, expected / mass, rtol=1e-13)
        assert abs(fall - np.sum(expected**2 / mass)) <= 1e-13 * fall


@pytest.mark.parametrize("excess", [1.0, -1.0])
def test_what_rounding_left_is_taken_from_the_values(excess):
    """The last bits of the values make up for an excess of their size."""
    y = 1e6 + np.random.default_rng(0).normal(size=5000)
    last = np.arange(4999)
    mean, rate, value = np.empty((3, 5000))
    average(y, None, last, mean, rate)
    tv = place(mean, rate, 0.0, value)
    assert abs(tv - np.abs(np.diff(y)).sum()) <= 1e-12 * tv
    ulp = np.spacing(1e6)
    for size in (3, 1000, 20_000):
        place(mean, rate, 0.0, value)
        rest = settle(value, rate, excess * size * ulp)
        assert abs(rest) <= 2 * ulp
        change = tv - place(value, 0 * rate, 0.0, value.copy())
        assert abs(change - (excess * size * ulp - rest)) <= 1e-14 * tv
        assert np.max(np.abs(value - y)) <= (2 + size / 5000) * ulp
        assert np.all(np.diff(value) * np.diff(y) > 0)


@pytest.mark.parametrize("budget", [1e-9, 1e-3, 0.1, 0.5, 0.99])
def test_multiplier_of_many_events(budget):
    """A start sampled from clustered events may lie beyond the root."""
    for y in [*families(40_000, 8).values(), np.repeat(np.arange(625.0), 64) % 9]:
        vanish, drop = path(y, None)
        for order in (slice(None), np.argsort(vanish), np.argsort(-vanish)):
            tv = budget * np.sum(vanish * drop)
            alpha = multiplier(vanish[order].copy(), drop[order].copy(), tv)
            found = np.sum((drop * (vanish - alpha))[vanish > alpha])
            assert abs(found - tv) <= 1e-12 * tv + 5e-13 * np.sum(vanish * drop)


def test_short_calls_are_the_kernel_or_declined():
    y = families(100, 9)["plateaus"]
    for alpha in (2.0, 2, np.float64(2)):
        np.testing.assert_array_equal(denoise(y, alpha), solved(y, None, 2.0))
    frozen = y.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(denoise(frozen, 2.0), solved(y, None, 2.0))
    for bad in (
        y[::2],
        y[:0],
        y[:, None],
        list(y),
        y.astype(np.float32),
        y.astype(">f8"),
        np.append(y, np.nan),
        np.append(y, -np.inf),
        np.append(1e141, y),
        np.ma.array(y),
    ):
        assert denoise(bad, 2.0) is None
    for alpha in (0.0, -1.0, np.nan, np.inf, None, "sure"):
        assert denoise(y, alpha) is None
