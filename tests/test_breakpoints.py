"""Breakpoints of a stream: equivariance, batching, references, error rates."""

import itertools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sktvdenoise import _breakpoints as kernel
from sktvdenoise import breakpoints as bp
from sktvdenoise.breakpoints import new_state, push, read


def find(y, rows=None):
    state = new_state()
    push(state, y, rows)
    return read(state)


def autoregression(rng, n, rho):
    u = rng.standard_normal(n)
    for t in range(1, n):
        u[t] = rho * u[t - 1] + np.sqrt(1.0 - rho * rho) * u[t]
    return u


def steps(n, *places, size=6.0):
    return size * np.searchsorted(places, np.arange(n), side="right") % (2.0 * size)


def streams():
    """Streams of many kinds: noise, steps, kinks, wandering, clean, short."""
    rng = np.random.default_rng(0)
    t = np.arange(300)
    return {
        "white": rng.standard_normal(300),
        "steps": steps(300, 80, 170, 260) + rng.standard_normal(300),
        "kink": 0.1 * np.maximum(t - 150, 0) + rng.standard_normal(300),
        "correlated": steps(300, 120, size=9.0) + autoregression(rng, 300, 0.8),
        "walk": np.cumsum(rng.standard_normal(300)),
        "smooth": np.cumsum(np.cumsum(rng.standard_normal(300))),
        "heavy": rng.standard_t(2, 300) + steps(300, 150),
        "clean": steps(40, 11, 30),
        "short": steps(9, 5) + 0.1 * rng.standard_normal(9),
        "integers": rng.integers(0, 3, 200).astype(float),
    }


STREAMS = pytest.mark.parametrize("y", streams().values(), ids=streams())


@pytest.mark.parametrize(
    "y, expected",
    [
        ([0, 0, 0, 10, 10, 10], [3]),
        (np.repeat([0.1, 0.3, 0.2], [20, 30, 25]), [20, 50]),
        (np.maximum(np.arange(60) - 25, 0), [25]),
        (np.full(50, 0.1), []),
        (np.arange(50), []),
        ([], []),
        ([1.0], []),
        ([0, 0, 10, 10], []),
    ],
)
def test_clean_labels(y, expected):
    breakpoints = find(y)
    assert breakpoints.dtype == np.int64
    assert_array_equal(breakpoints, expected)


@STREAMS
@pytest.mark.parametrize(
    "scale, shift",
    [(-1.0, 0.0), (3.7e8, 1e9), (1e-9, -5e-7), (1e135, 0.0), (3e-130, 0.0)],
)
def test_affine_equivariance(y, scale, shift):
    assert_array_equal(find(scale * y + shift), find(y))


def test_noise_on_a_large_offset():
    y = steps(1000, 400, 700, size=5.0) + np.random.default_rng(1).normal(size=1000)
    assert_array_equal(find(y + 1e9), find(y))


@STREAMS
def test_batches_and_pickles_make_no_difference(y):
    whole, single, mixed = new_state(), new_state(), new_state()
    push(whole, y)
    for label in y:
        push(single, [label])
        read(single)
    for batch in np.split(y, [1, 4, 7, 50, 51]):
        push(mixed, batch)
        mixed = pickle.loads(pickle.dumps(mixed))
    for one, two, three in zip(whole, single, mixed):
        assert one.tobytes() == two.tobytes() == three.tobytes()


@STREAMS
def test_read_changes_nothing(y):
    state = new_state()
    push(state, y)
    before = pickle.dumps(state)
    assert_array_equal(read(state), read(state))
    assert pickle.dumps(state) == before


@STREAMS
def test_reading_on_the_way_gives_what_a_stream_of_the_past_gives(y):
    state = new_state()
    for batch in np.split(y, [len(y) // 3, len(y) // 2]):
        push(state, batch)
        seen = state[0]["n_labels"][0]
        assert_array_equal(read(state), find(y[:seen]))


@STREAMS
def test_rows_name_the_breakpoints(y):
    rows = np.cumsum(np.random.default_rng(2).integers(1, 4, len(y)))
    assert_array_equal(find(y, rows), rows[find(y)])


def test_rows_count_on():
    y = steps(100, 50)
    state = new_state()
    push(state, y[:30], np.arange(1000, 1030))
    push(state, y[30:])
    assert_array_equal(read(state), [1050])


def test_state_is_bounded():
    rng = np.random.default_rng(3)
    state = new_state()
    sizes = []
    for _ in range(4):
        push(state, rng.standard_normal(5000))
        sizes.append(len(pickle.dumps(state)))
    assert len(set(sizes)) == 1
    assert sizes[0] < 8000


@STREAMS
def test_cleaning_and_summary_equal_their_references(y):
    state = new_state()
    push(state, y)
    tally, pieces = bp.closed(state)
    z = bp.clean(y)
    starts = bp.summarise(z)
    assert_array_equal(pieces["row"], starts)
    scale = np.abs(z - z.mean()).max() or 1.0
    for piece, part in zip(pieces, np.split(z, starts[1:])):
        t = np.arange(len(part)) - 0.5 * (len(part) - 1)
        expected = {
            "n": len(part),
            "mean": part.mean(),
            "m2": np.sum((part - part.mean()) ** 2),
            "tilt": np.sum(t * part),
            "bow": np.sum(t**2 * (part - part.mean())),
            "d2": np.sum(np.diff(part) ** 2),
            "first": part[0],
            "last": part[-1],
        }
        for name, value in expected.items():
            assert_allclose(
                piece[name], value, rtol=1e-10, atol=1e-10 * scale, err_msg=name
            )
    assert_allclose(tally["bend"], np.sum(np.diff(z, 2) ** 2), rtol=1e-10)


def test_cleaning_draws_in_outliers_and_keeps_steps():
    rng = np.random.default_rng(4)
    y = steps(200, 100, size=20.0) + rng.standard_normal(200)
    spoilt = y.copy()
    spoilt[[40, 41, 150]] += 1e6
    z = bp.clean(spoilt)
    assert np.max(np.abs(z - y)) < 10.0
    assert np.max(np.abs(bp.clean(y) - y)) < 3.0


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.97, 1.0 - 1e-9])
def test_segment_costs_equal_least_squares(rho, degree):
    rng = np.random.default_rng(5)
    z = rng.standard_normal(60) + steps(60, 20)
    state = new_state()
    push(state, z)
    _, pieces = bp.closed(state)
    z = bp.clean(z)
    costs = kernel.segment_costs(kernel.join_all(pieces), rho, degree)
    ends = np.append(pieces["row"], len(z)).astype(int)
    for i, j in itertools.combinations(range(0, len(ends), 7), 2):
        expected = bp.segment_cost(z[ends[i] : ends[j]], rho, degree)
        assert_allclose(costs[i, j], expected, rtol=1e-6, atol=1e-10)
    assert np.all(np.isinf(costs[np.tril_indices_from(costs)]))


def test_costs_of_long_segments_with_an_offset():
    rng = np.random.default_rng(6)
    z = 1e9 + rng.standard_normal(3000) + 0.01 * np.arange(3000)
    state = new_state()
    push(state, z)
    _, pieces = bp.closed(state)
    spans = kernel.join_all(pieces)
    for rho, degree in itertools.product([0.0, 0.6, 0.97], [0, 1, 2]):
        cost = kernel.segment_costs(spans, rho, degree)[0, -1]
        expected = bp.segment_cost(bp.clean(z) - 1e9, rho, degree)
        assert_allclose(cost, expected, rtol=1e-5)


def test_dynamic_programme_equals_reference_and_brute_force():
    rng = np.random.default_rng(7)
    m, most = 8, 4
    costs = np.full((m, m + 1), np.inf)
    for i, j in itertools.combinations(range(m + 1), 2):
        costs[i, j] = rng.exponential() * (j - i) ** 1.5
    least = kernel.least_costs(costs, most)
    assert_array_equal(least, bp.least_costs(costs, most))
    for k in range(most + 1):
        every = {
            cuts: sum(costs[a, b] for a, b in itertools.pairwise((0, *cuts, m)))
            for cuts in itertools.combinations(range(1, m), k)
        }
        best = min(every, key=every.get)
        assert_allclose(least[k, m], every[best], rtol=1e-12)
        assert_array_equal(bp.trace(costs, least, k), best)


@pytest.mark.parametrize("n, most", [(1000, 0), (200, 0), (50, 1), (10, 4)])
def test_white_noise_has_no_breakpoints(n, most):
    found = [len(find(np.random.default_rng(s).standard_normal(n))) for s in range(40)]
    assert np.count_nonzero(found) <= most


@pytest.mark.parametrize("rho", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("rise", [0.0, 20.0])
def test_correlated_noise_and_trends_have_no_breakpoints(rho, rise):
    found = 0
    for seed in range(40):
        u = autoregression(np.random.default_rng(seed), 1000, rho)
        found += len(find(u + rise * np.arange(1000) / 1000)) > 0
    assert found <= 1


def test_outliers_are_no_breakpoints():
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.standard_normal(1000)
        outliers = rng.random(1000) < 0.01
        y[outliers] += 20.0 * rng.choice([-1.0, 1.0], outliers.sum())
        found += len(find(y)) > 0
        found += len(find(rng.standard_t(3, 1000))) > 0
    assert found <= 6


@pytest.mark.parametrize("rho, size", [(0.0, 5.0), (0.7, 5.0), (0.0, 100.0)])
def test_a_step_is_found_alone(rho, size):
    missed = 0
    for seed in range(40):
        u = autoregression(np.random.default_rng(seed), 400, rho)
        breakpoints = find(u + steps(400, 150, size=size))
        missed += len(breakpoints) != 1 or abs(breakpoints[0] - 150) > 2
    assert missed <= 2


def test_a_kink_is_found_where_the_lines_meet():
    t = np.arange(400)
    distance = []
    for seed in range(20):
        u = np.random.default_rng(seed).standard_normal(400)
        breakpoints = find(u + 0.2 * np.maximum(t - 220, 0))
        assert len(breakpoints) == 1
        distance.append(abs(breakpoints[0] - 220))
    assert np.median(distance) <= 5


def test_starts_move_to_the_meeting_of_lines_and_stay_at_jumps():
    t = np.arange(60.0)
    noise = np.random.default_rng(8).standard_normal(60)
    for shift, expected in ((0.0, 30), (9.0, 32)):
        state = new_state()
        push(state, np.maximum(t - 30, 0) + shift * (t >= 32) + noise)
        spans = kernel.join_all(bp.closed(state)[1])
        costs = kernel.segment_costs(spans, 0.0, 1)
        assert abs(bp.meet(spans, costs, [32], 1.0)[0] - expected) <= 1


def test_many_jumps_are_all_found():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        level = np.cumsum(7.0 * rng.choice([-1.0, 1.0], 20))
        y = np.repeat(level, 50) + rng.standard_normal(1000)
        assert_allclose(find(y), np.arange(50, 1000, 50), atol=1)


def test_a_large_step_is_listed_after_a_few_labels():
    delays = []
    for seed in range(20):
        y = steps(300, 200, size=5.0) + np.random.default_rng(seed).normal(size=300)
        state = new_state()
        push(state, y[:200])
        assert len(read(state)) == 0
        for end in range(201, 301):
            push(state, y[end - 1 : end])
            if np.any(np.abs(read(state) - 200) <= 2):
                delays.append(end - 200)
                break
    assert len(delays) == 20
    assert np.median(delays) <= 6


def test_a_random_walk_is_outlined_by_few_lines():
    lines = []
    for seed in range(40):
        y = np.cumsum(np.random.default_rng(seed).standard_normal(500))
        ends = np.concatenate([[0], find(y), [500]])
        left = sum(bp.segment_cost(y[a:b], 0, 1) for a, b in itertools.pairwise(ends))
        lines.append((len(ends) - 1, left / np.sum((y - y.mean()) ** 2)))
    number, left = np.array(lines).T
    assert 2 <= np.median(number) <= 7
    assert np.median(left) < 0.2


def test_bent_curves_have_no_breakpoints():
    t = np.linspace(0.0, 1.0, 200)
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for curve in (15.0 * t**2, np.exp(2.0 * t)):
            found += len(find(curve + rng.standard_normal(200))) > 0
    assert found <= 3
