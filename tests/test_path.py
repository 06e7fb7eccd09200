"""The whole path: its knots, its solutions, and the rules that pick one of them."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from sktvdenoise._knots import join, knots

from sktvdenoise import FusedLasso, fused_lasso, fused_lasso_path
from sktvdenoise._signal import Signal
from sktvdenoise.datasets import load_nile
from sktvdenoise.path import noise_scale


def variation(u):
    return np.abs(np.diff(u, axis=0)).sum()


def n_pieces(u):
    step = np.diff(u, axis=0).reshape(len(u) - 1, -1)
    return 1 + np.count_nonzero(step.any(axis=1))


def families(n, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n, dtype=float)
    return {
        "noise": rng.normal(size=n),
        "plateaus": np.repeat(5 * rng.normal(size=5), -(-n // 5))[:n]
        + rng.normal(size=n),
        "walk": np.cumsum(rng.normal(size=n)),
        "constant": np.full(n, 0.1),
        "ramp": t,
        "saw": t % 7,
        "integers": rng.integers(0, 4, n).astype(float),
        "offset": 1e6 + rng.normal(size=n),
        "heavy": np.exp(3 * rng.normal(size=n)),
    }


def weightings(n):
    rng = np.random.default_rng(n)
    zeros = rng.integers(0, 3, n).astype(float)
    zeros[n // 2] = 1.0
    return {"unit": None, "uniform": rng.uniform(0.1, 3, n), "zeros": zeros}


SIGNALS = [
    pytest.param(y, w, id=f"{kind}-{weighting}-{n}")
    for n in (2, 3, 30, 400, 5000)
    for kind, y in families(n).items()
    for weighting, w in weightings(n).items()
]


def spread_of(y, w):
    """sum w (y - mean)^2, the loss at the end of the path."""
    w = np.ones(len(y)) if w is None else w
    return np.sum(w * (y - np.average(y, weights=w)) ** 2)


# ---- knots ----


@pytest.mark.parametrize("y, w", SIGNALS)
def test_ends_of_the_tables(y, w):
    path = fused_lasso_path(y, w)
    seen = y if w is None else y[w > 0]
    tv, loss = variation(seen), spread_of(y, w)
    assert path.alphas[0] == path.loss[0] == path.refit_loss[0] == path.tv[-1] == 0
    assert abs(path.tv[0] - tv) <= 1e-12 * tv
    rounding = 1e-15 * np.sum((1 if w is None else w) * y**2)
    for table in (path.loss, path.refit_loss):
        assert abs(table[-1] - loss) <= 1e-11 * loss + rounding
    assert path.n_pieces[0] == n_pieces(seen) and path.n_pieces[-1] == 1
    assert path.alpha_max == path.alphas[-1]
    assert np.all(np.diff(path.alphas) > 0) and np.all(np.diff(path.n_pieces) < 0)
    assert np.all(np.diff(path.loss) >= 0) and np.all(np.diff(path.tv) <= 0)


@pytest.mark.parametrize("y, w", SIGNALS)
def test_tables_describe_the_solutions(y, w):
    path = fused_lasso_path(y, w)
    weight = np.ones(len(y)) if w is None else w
    rounding = 1e-15 * len(y) * np.abs(y).max()
    resolution = 1e-12 * np.ptp(y) + 1e-15 * np.abs(y).max()
    tolerance = np.sum(weight) * np.ptp(y) * resolution
    rng = np.random.default_rng(0)
    for k in rng.choice(len(path.alphas), min(len(path.alphas), 10), replace=False):
        u = path.solution(path.alphas[k])
        assert abs(variation(u) - path.tv[k]) <= 1e-12 * variation(y) + rounding
        assert abs(np.sum(weight * (y - u) ** 2) - path.loss[k]) <= tolerance
        assert n_pieces(u) <= path.n_pieces[k]
        if n_pieces(u) < path.n_pieces[k]:  # simultaneous events apart by rounding
            assert path.alphas[k + 1] <= path.alphas[k] * (1 + 1e-12)
            continue
        starts = np.append(0, np.flatnonzero(np.diff(u)) + 1)
        means = np.add.reduceat(weight * y, starts) / np.add.reduceat(weight, starts)
        means = np.repeat(means, np.diff(starts, append=len(y)))
        error = np.sum(weight * (y - means) ** 2) - path.refit_loss[k]
        assert abs(error) <= tolerance + 1e-12 * np.sum(weight * y**2)


@pytest.mark.parametrize("y, w", SIGNALS)
def test_solutions_equal_those_of_the_single_solve(y, w):
    path = fused_lasso_path(y, w)
    rng = np.random.default_rng(1)
    top, scale = path.alpha_max, np.ptp(y) or 1.0
    for alpha in [0, np.inf, 2 * top, *(top * 10 ** -rng.uniform(0, 6, 5))]:
        error = path.solution(alpha) - fused_lasso(y, alpha, sample_weight=w)
        assert np.max(np.abs(error)) <= 1e-11 * scale + 1e-15 * np.abs(y).max()
    for budget in [0, np.inf, *(variation(y) * rng.uniform(0, 1, 4) ** 3)]:
        expected = fused_lasso(y, tv_budget=budget, sample_weight=w)
        u = path.solution(tv_budget=budget)
        assert np.max(np.abs(u - expected)) <= 1e-9 * scale
        rounding = 1e-15 * np.abs(y).max() * len(y)
        assert variation(u) <= budget * (1 + 1e-12) + rounding
    for pieces in {1, 2, 3, len(y) // 3 + 1, len(y), 10 * len(y)}:
        u = path.solution(n_pieces=pieces)
        assert n_pieces(u) <= pieces
        k = np.argmax(path.n_pieces <= pieces)
        np.testing.assert_array_equal(u, path.solution(path.alphas[k]))
        assert k == 0 or path.n_pieces[k - 1] > pieces


def exact_knots(y, w):
    """Alpha, pieces, TV and loss, by groups that move and merge in rationals."""
    y, w = [Fraction(v) for v in y], [Fraction(v) for v in w]
    groups, knots, alpha = [[v, k] for v, k in zip(y, w)], [], Fraction(0)
    sizes = [1] * len(y)
    while True:
        merged, lengths = groups[:1], sizes[:1]
        for (value, weight), size in zip(groups[1:], sizes[1:]):
            if value == merged[-1][0]:
                merged[-1][1] += weight
                lengths[-1] += size
            else:
                merged.append([value, weight])
                lengths.append(size)
        groups, sizes = merged, lengths
        u = [g[0] for g, size in zip(groups, sizes) for _ in range(size)]
        tv = sum(abs(b - a) for a, b in pairwise(u))
        loss = sum(k * (a - b) ** 2 for a, b, k in zip(y, u, w))
        knots.append((alpha, len(groups), tv, loss))
        if len(groups) == 1:
            return knots
        sign = [1 if b[0] > a[0] else -1 for a, b in pairwise(groups)]
        speed = [(b - a) / g[1] for a, b, g in zip([0, *sign], [*sign, 0], groups)]
        step = min(
            (b[0] - a[0]) / (p - q)
            for a, b, p, q in zip(groups, groups[1:], speed, speed[1:])
            if p != q and (b[0] - a[0]) / (p - q) > 0
        )
        alpha += step
        groups = [[g[0] + step * s, g[1]] for g, s in zip(groups, speed)]


def small_signals():
    rng = np.random.default_rng(5)
    for _ in range(250):
        n = int(rng.integers(2, 18))
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


def test_knots_equal_exact_rational_arithmetic():
    """Simultaneous events may be knots apart by rounding, never more."""
    for y, w in small_signals():
        exact, path = exact_knots(y, w), fused_lasso_path(y, w)
        top, tv, loss = exact[-1][0], exact[0][2], exact[-1][3]
        nearest = [
            min(exact, key=lambda e, a=a: abs(e[0] - Fraction(a))) for a in path.alphas
        ]
        for k, knot in enumerate(nearest):
            assert abs(Fraction(path.alphas[k]) - knot[0]) <= 1e-14 * top
            assert abs(Fraction(path.tv[k]) - knot[2]) <= 1e-13 * tv
            assert abs(Fraction(path.loss[k]) - knot[3]) <= 1e-13 * loss
        assert {knot[0] for knot in nearest} == {knot[0] for knot in exact}
        for (start, pieces, _, _), (end, *_) in pairwise([*exact, (2 * top + 1,)]):
            k = np.searchsorted(path.alphas, float((start + end) / 2)) - 1
            assert path.n_pieces[k] == pieces


def test_nile():
    """Values of the objective with the factor 1/2, from exact arithmetic."""
    _, flow = load_nile(return_X_y=True)
    path = fused_lasso_path(flow)
    assert abs(path.alpha_max - 4995.2) < 1e-9
    for alpha, tv, loss, pieces in [
        (100, 2663.7, 675556.642857, 32),
        (1000, 198.174603, 1647060.369048, 2),
        (2000, 148.571429, 1795869.892857, 2),
    ]:
        assert abs(np.interp(alpha, path.alphas, path.tv) - tv) < 1e-6
        u = path.solution(alpha)
        assert abs(np.sum((flow - u) ** 2) - loss) < 1e-6 and n_pieces(u) == pieces
        assert path.n_pieces[np.searchsorted(path.alphas, alpha, "right") - 1] == pieces
    np.testing.assert_array_equal(
        np.flatnonzero(np.diff(path.solution(n_pieces=2))), [27]
    )
    # Two levels at the end: their refitted loss is that of the best single step.
    assert abs(path.refit_loss[-2] - 1597457.194444) < 1e-6


def test_tables_of_a_long_signal_are_sorted_whatever_the_keys():
    rng = np.random.default_rng(0)
    for y in (
        rng.integers(0, 3, 20_000) / 3,
        rng.normal(size=20_000) * 1e-200,
        np.cumsum(rng.choice([-1.0, 1.0], 20_000)) / 7,
        1.0 + 1e-12 * rng.integers(0, 1000, 20_000),
    ):
        path = fused_lasso_path(y)
        vanish, _ = Signal(y, None).path()
        every = np.union1d([0], vanish)
        kept = np.isin(every, path.alphas)
        assert kept.sum() == len(path.alphas) and kept[0] and kept[-1]
        # Only knots that rounding puts before the next one are left out.
        n_levels = len(y) - np.searchsorted(np.sort(vanish), every[:-1], side="right")
        rounding = 2e-15 * (every[1:] + np.abs(y).max() * len(y) / n_levels)
        assert np.all((np.diff(every) <= rounding)[~kept[:-1]])
        merged = np.searchsorted(np.sort(vanish), path.alphas, side="right")
        np.testing.assert_array_equal(path.n_pieces, len(y) - merged)


@pytest.mark.parametrize("m", [0, 1, 2, 511, 513, 30_000])
def test_knots_of_any_events(m):
    rng = np.random.default_rng(m)
    near = np.nextafter(rng.integers(1, 4, m) / 3, rng.integers(0, 2, m))
    for vanish in (
        rng.exponential(size=m),
        np.exp(50 * rng.normal(size=m)),
        np.where(rng.integers(0, 3, m) == 0, 0.0, rng.exponential(size=m)),
        rng.integers(0, 5, m) / 7,
        near,  # keys that differ in their last bits
        1 + 2.0**-52 * rng.integers(0, m + 1, m),
        np.where(np.arange(m) == m // 2, 1e140, near),
        np.append(5e-324 * rng.integers(0, 9, m // 2), np.arange(m - m // 2)),
        np.zeros(m),
        -np.sort(-rng.uniform(size=m)),
    ):
        drop = rng.exponential(size=m)
        tables, later = np.empty((4, m + 1)), np.empty(m + 1, dtype=np.int32)
        k = knots(vanish, drop, tables, later)
        alphas, refit, tv, loss = tables[:, :k]
        order = np.append(0, vanish)
        expected, place = np.unique(order, return_inverse=True)
        np.testing.assert_array_equal(alphas, expected)
        sizes = np.bincount(place)
        np.testing.assert_array_equal(later[:k], m + 1 - np.cumsum(sizes))
        drops = np.bincount(place, np.append(0, drop))
        slope = np.cumsum(drops[::-1])[::-1][1:]
        a, b = expected[:-1], expected[1:]
        rest = np.append(np.cumsum((slope * (b - a))[::-1])[::-1], 0)
        np.testing.assert_allclose(tv, rest, rtol=1e-11)
        grown = np.append(0, np.cumsum(slope * (b - a) * (b + a)))
        np.testing.assert_allclose(loss, grown, rtol=1e-11)
        drops[0] = 0
        np.testing.assert_allclose(refit, np.cumsum(drops * expected**2), rtol=1e-11)


def test_channels():
    y = np.column_stack([families(300)[k] for k in ("noise", "walk", "integers")])
    w = weightings(300)["zeros"]
    for weight in (None, w):
        path = fused_lasso_path(y, weight)
        single = [fused_lasso_path(column, weight) for column in y.T]
        np.testing.assert_array_equal(
            path.alphas, np.unique(np.concatenate([p.alphas for p in single]))
        )
        tv = sum(np.interp(path.alphas, p.alphas, p.tv) for p in single)
        assert np.max(np.abs(path.tv - tv)) <= 1e-12 * tv[0]
        for alpha in (0.31, 2.17, 40.3):
            u = path.solution(alpha)
            np.testing.assert_array_equal(u.T, [p.solution(alpha) for p in single])
            k = np.searchsorted(path.alphas, alpha, "right") - 1
            assert path.n_pieces[k] == n_pieces(u)
        budget = 0.1 * path.tv[0]
        error = path.solution(tv_budget=budget) - fused_lasso(
            y, tv_budget=budget, sample_weight=weight
        )
        assert np.max(np.abs(error)) < 1e-9


def test_scale_and_offset():
    y = families(500)["plateaus"]
    path = fused_lasso_path(y)
    for c in (1e-150, 1e-8, 1e8, 1e130):
        scaled = fused_lasso_path(c * y)
        assert np.max(np.abs(scaled.alphas / c - path.alphas)) <= 1e-12 * path.alpha_max
        assert np.max(np.abs(scaled.tv / c - path.tv)) <= 1e-12 * path.tv[0]
    moved = fused_lasso_path(y + 1e9)
    assert (
        np.max(np.abs(moved.tv - np.interp(moved.alphas, path.alphas, path.tv))) < 1e-3
    )


def test_one_sample_and_constants():
    for y in ([3.0], [3.0, 3.0], [[1.0, 2.0]]):
        path = fused_lasso_path(y)
        np.testing.assert_array_equal(path.alphas, [0])
        np.testing.assert_array_equal(path.n_pieces, [1])
        np.testing.assert_array_equal(path.solution(1.0), y)
        np.testing.assert_array_equal(path.solution(n_pieces=1), y)


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "Exactly one"),
        ({"alpha": 1, "n_pieces": 1}, "Exactly one"),
        ({"alpha": -1}, "alpha"),
        ({"tv_budget": np.nan}, "tv_budget"),
        ({"n_pieces": 0}, "n_pieces"),
        ({"n_pieces": 1.5}, "n_pieces"),
    ],
)
def test_bad_requests(options, message):
    with pytest.raises(ValueError, match=message):
        fused_lasso_path([0, 1, 2]).solution(**options)


def test_bad_data_are_named():
    with pytest.raises(ValueError, match=r"y contains NaN \(first in row 1\)"):
        fused_lasso_path([0, np.nan, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        fused_lasso_path([0, 1, 2], [1, -1, 1])


# ---- rules ----


def brute_force(y, w, penalty):
    """The knot with the least penalty(solution, number of pieces)."""
    path = fused_lasso_path(y, w)
    values = [penalty(path.solution(a), p) for a, p in zip(path.alphas, path.n_pieces)]
    return path.alphas[int(np.argmin(values))]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["noise", "plateaus", "walk", "integers"])
def test_rules_minimise_over_all_knots(kind, weighted):
    y = families(200)[kind]
    w = weightings(200)["uniform"] if weighted else None
    weight, sigma = np.ones(200) if w is None else w, noise_scale(Signal(y, w))

    def sure(u, pieces):
        return np.sum(weight * (y - u) ** 2) + 2 * sigma**2 * pieces

    def bic(u, pieces):
        starts = np.append(0, np.flatnonzero(np.diff(u)) + 1)
        means = np.add.reduceat(weight * y, starts) / np.add.reduceat(weight, starts)
        means = np.repeat(means, np.diff(starts, append=len(y)))
        return np.sum(weight * (y - means) ** 2) + 2 * sigma**2 * np.log(200) * pieces

    for rule, penalty in (("sure", sure), ("bic", bic)):
        model = FusedLasso(rule).fit(range(200), y, w)
        assert model.alpha_ == brute_force(y, w, penalty)
        fixed = FusedLasso(model.alpha_).fit(range(200), y, w)
        assert np.max(np.abs(model.values_ - fixed.values_)) < 1e-12
        assert 0 <= model.dual_gap_ < 1e-12
    alpha = FusedLasso("no-false-jump").fit(range(200), y, w).alpha_
    assert abs(alpha / (1.3580986 * sigma * np.sqrt(weight.sum())) - 1) < 1e-6


def test_sure_minimises_between_knots_too():
    y = families(300)["plateaus"]
    sigma = noise_scale(Signal(y, None))

    def estimate(alpha):
        u = fused_lasso(y, alpha)
        return np.sum((y - u) ** 2) + 2 * sigma**2 * n_pieces(u)

    best = estimate(FusedLasso("sure").fit(range(300), y).alpha_ * (1 + 1e-9))
    others = [estimate(a) for a in np.geomspace(1e-2, 1e3, 300)]
    assert best <= min(others) + 1e-6


def test_rules_scale_with_data_and_weights():
    y = families(300)["plateaus"]
    for rule in ("no-false-jump", "sure", "bic"):
        alpha = FusedLasso(rule).fit(range(300), y).alpha_
        scaled = FusedLasso(rule).fit(range(300), 1e3 * y + 5).alpha_
        assert abs(scaled / alpha - 1e3) < 1e-6
        weighted = FusedLasso(rule).fit(range(300), y, 4.0).alpha_
        assert abs(weighted / alpha - 4) < 1e-9


def test_no_false_jump_keeps_its_promise():
    """94 of 100 in the mean, and a clear step is found."""
    constant = found = 0
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(size=400)
        constant += FusedLasso("no-false-jump").fit(range(400), noise).n_pieces_ == 1
        step = noise + 5 * (np.arange(400) >= 200)
        cuts = FusedLasso("no-false-jump").fit(range(400), step).breakpoints_
        found += np.min(np.abs(cuts - 200)) <= 2
    assert constant >= 88 and found == 100


def test_rules_for_several_outputs_add_up():
    y = np.column_stack([families(200)[k] for k in ("plateaus", "noise")])
    sigma = [noise_scale(Signal(column, None)) for column in y.T]
    path = fused_lasso_path(y)

    def sure(alpha):
        u = path.solution(alpha)
        return sum(
            np.sum((a - b) ** 2) + 2 * s**2 * n_pieces(b)
            for a, b, s in zip(y.T, u.T, sigma)
        )

    best = path.alphas[int(np.argmin([sure(alpha) for alpha in path.alphas]))]
    assert FusedLasso("sure").fit(range(200), y).alpha_ == best
    twice = FusedLasso("bic").fit(range(200), y[:, [0, 0]])
    assert twice.alpha_ == FusedLasso("bic").fit(range(200), y[:, 0]).alpha_


def test_rules_before_sparsity_and_bound():
    y = families(200)["plateaus"]
    for rule in ("no-false-jump", "sure", "bic"):
        alpha = FusedLasso(rule).fit(range(200), y).alpha_
        model = FusedLasso(rule, sparsity=0.5, bound=3.0).fit(range(200), y)
        assert model.alpha_ == alpha
        expected = fused_lasso(y, alpha, sparsity=0.5, bound=3.0)
        assert np.max(np.abs(model.values_ - expected)) < 1e-12


@pytest.mark.parametrize("rule", ["no-false-jump", "sure", "bic"])
def test_rules_on_short_and_clean_labels(rule):
    for y in ([3.0], [3.0, 5.0], [7.0] * 5, [0, 0, 0, 10, 10, 10]):
        model = FusedLasso(rule).fit(range(len(y)), y)
        assert np.isfinite(model.values_).all() and np.isfinite(model.alpha_)
    clean = np.repeat([0.0, 5.0, 1.0, 1.5], 100)
    np.testing.assert_array_equal(
        FusedLasso(rule).fit(range(400), clean).breakpoints_, [100, 200, 300]
    )


def test_noise_scale():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20_000)
    jumps = np.repeat(rng.normal(size=200) * 20, 100)
    w = rng.uniform(0.1, 10, 20_000)
    for y, weight in (
        (3 * noise, None),
        (3 * noise + jumps, None),
        (3 * noise / np.sqrt(w) + jumps, w),
        (1e9 + 3 * noise, None),
    ):
        assert abs(noise_scale(Signal(y, weight)) / 3 - 1) < 0.05
    for unit in (0.1, 0.5, 1, 2, 3):
        rounded = unit * np.round(noise / unit)
        assert abs(noise_scale(Signal(rounded, None)) / rounded.std() - 1) < 0.15
    assert noise_scale(Signal(np.zeros(5), None)) == 0
    assert noise_scale(Signal(np.repeat([0.0, 1.0], 500), None)) < 0.03


# ---- refitting ----


def best_join(mean, mass, price):
    """Dynamic programming over all ways to cut, without pruning."""
    n = len(mean)
    cost, cuts = [0.0], [[]]
    for t in range(1, n + 1):
        options = []
        for s in range(t):
            center = np.average(mean[s:t], weights=mass[s:t])
            rest = np.sum(mass[s:t] * (mean[s:t] - center) ** 2)
            options.append(cost[s] + rest + price)
        s = int(np.argmin(options))
        cost.append(options[s])
        cuts.append([*cuts[s], s])
    return cuts[-1], cost[-1]


def test_join_is_exact():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        level = 5 * np.cumsum(rng.normal(size=n) * (rng.random(n) < 0.2))
        mean, mass = level + rng.normal(size=n), rng.uniform(0.1, 3, n)
        price = float(rng.choice([0.1, 1, 5, 20]))
        first = np.empty(n, dtype=np.int32)
        join(mean, mass, price, first)
        cuts = [first[-1]]
        while cuts[-1]:
            cuts.append(first[cuts[-1] - 1])
        assert cuts[::-1] == best_join(mean, mass, price)[0]


def test_refit_gives_means_and_joins_stairs():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 5.0, 3.0, 3.0, -2.0], 100) + rng.normal(size=500)
    plain = FusedLasso("sure").fit(range(500), y)
    model = FusedLasso("sure", refit=True).fit(range(500), y)
    assert plain.n_pieces_ > model.n_pieces_ == 4
    assert np.max(np.abs(model.breakpoints_ - [100, 200, 400])) <= 2
    assert set(model.breakpoints_) <= set(plain.breakpoints_)
    for part in np.split(np.arange(500), model.breakpoints_):
        assert np.max(np.abs(model.values_[part] - y[part].mean())) < 1e-13
    assert model.alpha_ == plain.alpha_ and model.dual_gap_ == plain.dual_gap_
    assert abs(model.loss_ - np.sum((y - model.values_) ** 2)) < 1e-9
    assert abs(model.tv_ - variation(model.values_)) < 1e-12


def test_refit_is_the_best_join_of_the_pieces():
    y, w = families(200)["plateaus"], weightings(200)["zeros"]
    for options in ({"alpha": 1.0}, {"alpha": "sure"}):
        plain = FusedLasso(**options).fit(range(200), y, w)
        starts = np.append(0, plain.breakpoints_)
        mass = np.add.reduceat(w, starts)
        mean = np.add.reduceat(w * y, starts) / mass
        price = 2 * noise_scale(Signal(y, w)) ** 2 * np.log(np.count_nonzero(w))
        cuts, _ = best_join(mean, mass, price)
        model = FusedLasso(**options, refit=True).fit(range(200), y, w)
        np.testing.assert_array_equal(model.breakpoints_, starts[cuts[1:]])


def test_refit_needs_the_plain_problem():
    for options in ({"sparsity": 1.0}, {"bound": 1.0}):
        with pytest.raises(ValueError, match="refit"):
            FusedLasso(refit=True, **options).fit(range(3), range(3))


def test_refit_of_outputs_is_each_ones_own():
    y = np.column_stack([families(200)[k] for k in ("plateaus", "walk")])
    both = FusedLasso(2.0, refit=True).fit(range(200), y).values_
    for column, labels in zip(both.T, y.T):
        single = FusedLasso(2.0, refit=True).fit(range(200), labels).values_
        np.testing.assert_array_equal(column, single)


# ---- rounding, and what is kept ----


def test_later_changes_of_the_arrays_do_not_reach_the_path():
    y, w = families(50)["noise"], weightings(50)["uniform"]
    path = fused_lasso_path(y, w)
    before, loss = path.solution(1.0), fused_lasso_path(y, w).loss[-1]
    y[:], w[:] = 0.0, 5.0
    np.testing.assert_array_equal(path.solution(1.0), before)
    assert path.loss[-1] == loss


def test_decimal_labels_have_the_knots_of_integers():
    rng = np.random.default_rng(1)
    for k in range(300):
        n = int(rng.integers(3, 30))
        tenths = [
            rng.integers(-5, 6, n),
            np.cumsum(rng.integers(-2, 3, n)),
            200 + rng.integers(0, 8, n),
        ][k % 3]
        exact = exact_knots([int(v) for v in tenths], [1] * n)
        path = fused_lasso_path(tenths / 10)
        assert len(path.alphas) == len(exact)
        assert [knot[1] for knot in exact] == path.n_pieces.tolist()
        size = np.abs(tenths).max() / 10
        for pieces in range(1, n):
            steps = np.abs(np.diff(path.solution(n_pieces=pieces)))
            assert steps[steps > 0].min(initial=1.0) > 1e-14 * size
        for alpha, pieces, *_ in exact:
            assert n_pieces(path.solution(float(alpha / 10))) == pieces


def test_dense_knots_stay():
    path = fused_lasso_path(1e9 + np.random.default_rng(0).normal(size=20_000))
    assert len(path.alphas) > 15_000


def test_small_labels_beside_large_ones_keep_their_steps():
    y = np.array([1e-9, 3e-9, 2e-9, 1e12, 1e12, 0.0, 1e-9])
    for alpha in (1e-12, 1e-10):
        u = fused_lasso_path(y).solution(alpha)
        expected = y + alpha * np.array([1, -2, 2, 0, 0, 2, -1])
        np.testing.assert_allclose(u, expected, rtol=1e-12)


def test_noise_scale_does_not_depend_on_units():
    rng = np.random.default_rng(0)
    for sd in (0.3, 1.0, 2.0):
        tenths = np.round(200 + sd * rng.normal(size=2001))
        for w in (None, rng.integers(1, 3, 2001).astype(float)):
            scale = noise_scale(Signal(tenths, w))
            for unit in (10, 100, 3.7):
                other = noise_scale(Signal(tenths / unit, w)) * unit
                assert abs(other / scale - 1) < 1e-9


def test_no_false_jump_of_many_outputs():
    rng = np.random.default_rng(0)
    x = np.arange(500)
    calm = [
        FusedLasso("no-false-jump").fit(x, rng.normal(size=(500, 20))).n_pieces_ == 1
        for _ in range(300)
    ]
    assert np.mean(calm) > 0.9  # single levels of 0.95 promise 0.95^20 = 0.36


def test_repr():
    assert (
        repr(fused_lasso_path([[0, 1], [2, 2]]))
        == "FusedLassoPath(n_samples=2, n_channels=2, alpha_max=1)"
    )
    assert (
        repr(fused_lasso_path([0, 1])) == "FusedLassoPath(n_samples=2, alpha_max=0.5)"
    )
