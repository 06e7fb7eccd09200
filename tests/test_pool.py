"""The pool behind the default rate: kernel and numpy reference, and the guarantee."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sktvdenoise._pool import (
    POOL_DTYPE,
    Kind,
    make_layout,
    member_weights,
    new_pool,
    pool_pass,
    top_of,
)

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.experts import POOL
from sktvdenoise.pool import Guard, Pool, guard_update, pool_forecasts

N = 400


def streams():
    """Name -> labels; some are harmless, some meet each rule of the pool."""
    rng = np.random.default_rng(0)
    t = np.arange(N)
    signs = rng.choice([-1.0, 1.0], N) * rng.uniform(0.9, 1.0, N)
    noise = rng.standard_normal(N)
    outliers = noise.copy()
    outliers[[4, 150, 151, 250, 300]] = [1e6, 1e4, -1e4, 1e12, 300.0]
    season = np.resize(4 * rng.standard_normal(12), N)
    return {
        "noise": noise,
        "heavy tails": rng.standard_t(2, N),
        "jumps": np.repeat(8 * rng.standard_normal(8), N // 8) + noise,
        "walk": np.cumsum(noise),
        "ramp": 0.7 * t,
        "exact season": np.sin(2 * np.pi * t / 24),
        "growing season": 0.05 * t + (1 + t / 300) * season + 0.1 * noise,
        "counts": rng.poisson(0.3, N).astype(float),
        "outliers": outliers,
        "outlier first": np.r_[1e12, 1 + noise[1:]],
        "break": np.where(t < 200, 0.0, 1e6) + noise,
        "explosive": np.sign(noise) * 1.5**t,
        "units": np.sign(noise[:130]) * 10.0 ** np.arange(130),
        "constant": np.full(N, 1 / 3),
        "zeros first": np.where(t < 50, 0.0, noise),
        "alternating": (-1.0) ** t,
        "random signs": signs,
        "high level": 1e7 + noise,
    }


STREAMS = streams()


def weights_for(y):
    """Weights of many sizes, some zero."""
    w = 10 ** np.random.default_rng(1).uniform(-2, 1, len(y))
    w[5::17] = 0.0
    return w


def kernel(y, w, table=POOL):
    """After each row: state of the kernel's pool, and its trackers and top."""
    rows, size = make_layout(table)
    pool, memory = new_pool(rows, size)
    state, top = pool.view(POOL_DTYPE)[0], top_of(memory)
    for row in range(len(y)):
        unused = np.zeros((2, 1))
        where = slice(row, row + 1)
        pool_pass(y[where], w[where], pool, memory, rows.view(np.uint8), *unused)
        yield state, top


def assert_kernel_is_reference(y, w, table=POOL, tolerance=1e-9):
    pool = Pool(table)
    for row, (state, top) in enumerate(kernel(y, w, table)):
        if np.isnan(y[row]) or w[row] == 0:
            pool.skip()
        else:
            pool.learn(y[row], w[row])
        if pool.age == 0:
            continue
        n = len(pool.predictions)
        scale = max(pool.high - pool.low, 1e-3 * abs(pool.low))
        settings = dict(rtol=0, atol=tolerance * scale, err_msg=f"row {row}")
        assert_allclose(top["prediction"][:n], pool.predictions, **settings)
        assert_allclose(state["output"], pool.output, **settings)
        assert_allclose(state["variance"], pool.variance, rtol=1e-6)
        shares = top["share"][:n] / top["share"].sum()
        settings["atol"] = max(1e-6, tolerance)
        assert_allclose(shares, pool.shares, **settings)
        assert_allclose(top["weight"][:, : pool.n_members], pool.weights, **settings)
        for name in ("unit", "round", "age", "n_held", "side", "low", "near_low"):
            assert state[name] == pytest.approx(getattr(pool, name), rel=1e-9), name


@pytest.mark.parametrize("name", STREAMS)
def test_kernel_is_the_reference(name):
    y = STREAMS[name]
    assert_kernel_is_reference(y, np.ones_like(y))


@pytest.mark.parametrize("name", ["jumps", "growing season", "outliers", "explosive"])
def test_kernel_is_the_reference_with_weights_and_missing_rows(name):
    y = STREAMS[name].copy()
    y[[0, 1, 30, 31, 32, 100]] = np.nan
    assert_kernel_is_reference(y, weights_for(y))


def test_repeated_labels_leave_no_more_than_rounding():
    """Members that are equal but for rounding are weighed by it, yet hardly."""
    signs = np.random.default_rng(2).choice([-1.0, 1.0], N // 20)
    y = np.repeat(signs, 20)
    assert_kernel_is_reference(y, np.ones_like(y), tolerance=1e-5)


TABLES = {
    "one level": POOL[:1],
    "means": [row for row in POOL if row[1] == Kind.MEANS],
    "one hazard": [("means", Kind.MEANS, (0.01,), 1)],
    "season first": POOL[::-1],
    "regressions": [row for row in POOL if Kind.REVERSION <= row[1] < Kind.MEANS],
    "shorter": [
        ("two lags", Kind.LAGS, (2, 0.99), 3),
        ("season", Kind.SEASON, (0.1, 0.5, 0.99), 2),
        ("one difference", Kind.DIFFERENCES, (1, 0.99), 1),
        ("robust", Kind.ROBUST_TRENDS, (1e-3, 1e-2), 1),
    ],
}


@pytest.mark.parametrize("name", TABLES)
def test_any_table_of_members(name):
    y = STREAMS["growing season"]
    assert_kernel_is_reference(y, np.ones_like(y), TABLES[name])


def test_streams_meet_every_rule():
    """What the comparison above would miss if it didn't happen."""

    def states(name):
        pool = Pool()
        for label in STREAMS[name]:
            pool.learn(label)
            yield pool

    assert any(pool.n_held == 1 for pool in states("break"))
    assert any(pool.n_held == 2 for pool in states("outliers"))
    assert any(pool.age == 1 for pool in states("break") if pool.round > 1)
    # An outlier before there is a range to be outside of: looking back finds it.
    assert any(pool.age == 1 for pool in states("outlier first") if pool.round > 4)
    assert any(pool.period == 12 for pool in states("growing season"))
    assert any(pool.side for pool in states("jumps"))
    assert any(pool.n_surprises for pool in states("jumps"))
    assert len({pool.unit for pool in states("units")}) == 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["noise", "outliers", "random signs", "explosive"])
def test_output_is_the_reference_with_its_guard(name, weighted):
    y = STREAMS[name]
    w = weights_for(y) if weighted else np.ones_like(y)
    expected, _, guard = pool_forecasts(y, w)
    denoiser = OnlineTVDenoiser()
    x = denoiser.partial_fit_predict(np.arange(len(y)), y, w)
    bound = np.maximum.accumulate(np.abs(y))
    assert np.max(np.abs(x - expected)[1:] / bound[:-1]) < 1e-9
    assert denoiser.member_weights_["guard"] == pytest.approx(guard.share, abs=1e-9)
    if name == "random signs" and not weighted:
        assert guard.tripped


# ---------------------------------------------------------------- one stream


def outputs(y, w=None, denoiser=None):
    denoiser = denoiser or OnlineTVDenoiser()
    return denoiser.partial_fit_predict(np.arange(float(len(y))), y, w)


@pytest.mark.parametrize("factor", [2.0**-300, -(2.0**7), -1.0, 2.0**300])
@pytest.mark.parametrize("name", STREAMS)
def test_powers_of_two_and_signs_change_nothing(name, factor):
    y = STREAMS[name]
    y = y[np.abs(y) < 1e40]
    assert_array_equal(outputs(factor * y), factor * outputs(y))


@pytest.mark.parametrize("slope, shift", [(3.7, 0.0), (-1e-5, 0.0), (1.3, 11.0)])
@pytest.mark.parametrize(
    "name",
    [
        "noise",
        "heavy tails",
        "jumps",
        "walk",
        "growing season",
        "counts",
        "break",
        "zeros first",
    ],
)
def test_pool_moves_with_the_labels(name, slope, shift):
    y = STREAMS[name]
    original, moved = OnlineTVDenoiser(), OnlineTVDenoiser()
    x, z = outputs(y, None, original), outputs(slope * y + shift, None, moved)
    assert original.member_weights_["guard"] == moved.member_weights_["guard"] == 0
    errors = np.abs(z - (slope * x + shift))[1:] / (abs(slope) * np.ptp(y))
    assert np.max(errors) < 1e-9


def test_equal_labels_are_predicted_exactly():
    for label in (0.0, 1 / 3, -1e12, 7e-300):
        assert_array_equal(outputs(np.full(100, label))[1:], label)


@pytest.mark.parametrize("name", STREAMS)
def test_member_weights_reproduce_the_forecast(name):
    y = STREAMS[name]
    rows, _ = make_layout(POOL)
    denoiser = OnlineTVDenoiser(missing="skip").partial_fit([0.0], [np.nan])
    assert sum(denoiser.member_weights_.values()) == pytest.approx(1, abs=1e-12)
    for end in (1, 2, 3, 10, 100, len(y)):
        denoiser = OnlineTVDenoiser().partial_fit(np.arange(end), y[:end])
        by_name = denoiser.member_weights_
        assert list(by_name.values()) == sorted(by_name.values(), reverse=True)
        assert sum(by_name.values()) == pytest.approx(1, abs=1e-12)
        memory = denoiser._streams[0]._memory
        n = int(rows["n_members"].sum())
        weights = member_weights(memory, n)
        assert np.all(weights >= 0)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        unit = denoiser._streams[0]._pool.view(POOL_DTYPE)["unit"][0] or 1.0
        forecast = unit * (weights @ top_of(memory)["prediction"][:n])
        if by_name["guard"] == 0:
            size = np.abs(y[:end]).max()
            assert denoiser.predict_one() == pytest.approx(forecast, abs=1e-9 * size)


@pytest.mark.parametrize("name", ["jumps", "growing season", "outliers", "explosive"])
def test_batches_and_single_labels_agree_bit_for_bit(name):
    y, rng = STREAMS[name], np.random.default_rng(3)
    expected, one_by_one = outputs(y), OnlineTVDenoiser()
    in_batches = OnlineTVDenoiser()
    cuts = np.sort(rng.choice(np.arange(1, N), 20, replace=False))
    parts = np.split(np.arange(N), cuts)
    found = [in_batches.partial_fit_predict(rows, y[rows]) for rows in parts]
    assert_array_equal(np.concatenate(found), expected)
    for label, x in zip(y, expected):
        assert one_by_one.predict_one() == x
        one_by_one.learn_one(label)
    for denoiser in (in_batches, one_by_one):
        assert denoiser.predict_one() == outputs(np.append(y, 0.0))[-1]
        assert denoiser.noise_scale_ == in_batches.noise_scale_
        assert denoiser.member_weights_ == in_batches.member_weights_


def test_later_labels_change_nothing_before():
    rng = np.random.default_rng(4)
    for y in STREAMS.values():
        end = len(y) // 2
        other = np.concatenate([y[:end], 1e3 * rng.standard_normal(len(y) - end)])
        assert_array_equal(outputs(y)[: end + 1], outputs(other)[: end + 1])


def test_a_weight_is_that_of_the_first_label_too():
    """A label of weight 100 counts as a hundred labels: the level hardly moves."""
    y = np.array([0.0, 1.0, 1.0])
    table = [("mean", Kind.EWMA, (0.0,), 1), ("means", Kind.MEANS, (1e-9,), 1)]
    for first, mean in ((100.0, 2 / 102), (1.0, 2 / 3)):
        *_, (state, top) = kernel(y, np.array([first, 1.0, 1.0]), table)
        level, mixture = top["prediction"][:2] * state["unit"]
        assert level == pytest.approx(mean, abs=1e-6)
        assert mixture == pytest.approx(mean, abs=0.05)


def test_constant_weights_change_nothing():
    """Weights count relative to their mean; units of labels and weights are free."""
    y = np.random.default_rng(3).standard_normal(400) + np.repeat([0.0, 5.0], 200)
    for factor in (2.0**-20, 4.0, 1024.0):
        *_, (state, _) = kernel(y, np.full(400, factor))
        *_, (plain, _) = kernel(y, np.ones(400))
        assert state["output"] == plain["output"]
        assert state["variance"] == plain["variance"]


@pytest.mark.parametrize("start", [[20.0] * 7, [0.0] * 9])
def test_what_keeps_coming_back_is_learned(start):
    """Labels that leave a constant again and again are part of the stream."""
    low = start[0]
    y = np.r_[start, np.tile([low + 1.0, low], 300)]
    x = OnlineTVDenoiser().partial_fit_predict(np.arange(len(y)), y)
    assert np.mean((y - x)[-100:] ** 2) < 0.01


def test_far_labels_in_a_season_are_learned():
    t = np.arange(1500)
    y = np.where(t % 10 == 9, 1e3, 0.0)
    y += np.random.default_rng(4).standard_normal(1500)
    x = OnlineTVDenoiser().partial_fit_predict(t, y)
    assert np.mean((y - x)[-300:] ** 2) < 100


# ---------------------------------------------------------------- the guarantee

# The constant of the theorem in doc/auto.md.
CONSTANT = 20.0


def largest_excess(y, w=None):
    """Excess of loss over the guard's at each prefix, over B^2 W; the largest."""
    w = np.ones_like(y) if w is None else w
    denoiser, guard = OnlineTVDenoiser(), OnlineTVDenoiser(learning_rate="theory")
    x, g = outputs(y, w, denoiser), outputs(y, w, guard)
    bound = np.maximum.accumulate(np.abs(y))
    size = bound**2 * np.maximum.accumulate(w)
    excess = np.cumsum(w * (g - x) * (2 * y - x - g))
    assert np.all(np.abs(x[1:]) <= 1.5 * bound[:-1])
    tripped = denoiser.member_weights_["guard"] > 0
    return np.max(excess[size > 0] / size[size > 0]), tripped


def test_constants_of_the_guard_add_up():
    """The trip at 4, 13 ln 2 after it and a round of 25/4 are within the constant."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 3000)
    model = OnlineTVDenoiser().fit(np.arange(3000), y)
    pool = model._streams[0]._pool
    excess = pool.view(POOL_DTYPE)["excess"][0]
    share = model.member_weights_["guard"]
    assert 0 < share < 1
    scale = excess / np.log(share / (1 - share))
    # Losses within 5/2 of the mean are exp-concave at rates up to 1 / (2 (5/2)^2).
    assert 12.5 <= scale
    assert 4 + scale * np.log(2) + 25 / 4 <= CONSTANT


def hostile_streams(n=3000):
    rng = np.random.default_rng(0)
    t = np.arange(n)
    signs = rng.choice([-1.0, 1.0], n)
    outliers = np.where(rng.random(n) < 0.02, 1e5 * signs, rng.standard_normal(n))
    return {
        "alternating": (-1.0) ** t,
        "random signs": signs,
        "random blocks": signs[t // 20],
        "jumps at powers of two": (-1.0) ** np.floor(np.log2(t + 1)),
        "slowly growing": signs * 1.001**t,
        "exploding": signs[:140] * 10.0 ** t[:140],
        "doubling": signs * 2.0 ** (t // 300),
        "outliers": outliers,
        "both sides": np.r_[-2.0, -np.ones(n // 2 - 1), np.ones(n // 2 - 1), 2.0],
        "spikes": np.where(t % 7 == 0, signs * t, 0.0),
    }


HOSTILE = hostile_streams()


@pytest.mark.parametrize("weights", ["equal", "random", "growing", "shrinking"])
@pytest.mark.parametrize("name", HOSTILE)
def test_loss_is_the_guards_plus_a_constant(name, weights):
    y, rng = HOSTILE[name], np.random.default_rng(6)
    t = np.arange(len(y))
    w = {
        "equal": np.ones(len(y)),
        "random": 10 ** rng.uniform(-4, 4, len(y)),
        "growing": 1.01**t,
        "shrinking": 0.99**t,
    }[weights]
    excess, tripped = largest_excess(y, w)
    assert excess <= CONSTANT
    if name == "random signs" and weights == "equal":
        assert tripped


def adversaries():
    """Labels chosen in view of both predictions: (round, output, guard) -> label."""
    random = np.random.default_rng(7).choice([-1.0, 1.0], 10**5)

    def for_guard(t, x, g):
        """The label in [-1, 1] that costs most; where it is a tie, any sign."""
        return np.sign(g - x) or random[t]

    def at_times(t, x, g):
        return for_guard(t, x, g) if random[t] > 0 else random[t + 7]

    return {
        "for the guard": for_guard,
        "for the guard, at times": at_times,
        "for the guard, growing": lambda t, x, g: 1.001**t * for_guard(t, x, g),
        "for the guard, doubling": lambda t, x, g: (
            2.0 ** (t // 500) * for_guard(t, x, g)
        ),
        "for the guard, exploding": lambda t, x, g: (
            10.0 ** (t // 25) * for_guard(t, x, g)
        ),
        "for the guard or zero": lambda t, x, g: (
            for_guard(t, x, g) if random[t] > 0 else 0.0
        ),
        "against the output": lambda t, x, g: -1.0 if x > 0 else 1.0,
        "against the mean": lambda t, x, g: -1.0 if x + g > 0 else 1.0,
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", adversaries())
def test_no_adversary_gains_more(name, weighted):
    choose = adversaries()[name]
    denoiser, guard = OnlineTVDenoiser(), OnlineTVDenoiser(learning_rate="theory")
    rng = np.random.default_rng(8)
    excess = bound = heaviest = 0.0
    for t in range(1000 if weighted else 3000):
        x, g = denoiser.predict_one(), guard.predict_one()
        y = float(choose(t, x, g))
        w = 10 ** rng.uniform(-1, 1) * (1 + t // 100) if weighted else 1.0
        excess += w * (g - x) * (2 * y - x - g)
        bound, heaviest = max(bound, abs(y)), max(heaviest, w)
        assert excess <= CONSTANT * bound**2 * heaviest
        for learner in (denoiser, guard):
            if weighted:
                learner.partial_fit([float(t)], [y], [w])
            else:
                learner.learn_one(y)
    if name in ("for the guard", "for the guard, at times"):
        assert denoiser.member_weights_["guard"] > 0


def test_account_of_a_guard_that_knows_the_labels():
    """Labels and weights outgrow those before, while the guard takes part."""
    rng = np.random.default_rng(9)
    y = rng.choice([-1.0, 1.0], 300) * 1.02 ** np.arange(300)
    w = 1.01 ** np.arange(300) * rng.uniform(0.5, 1, 300)
    guesses = np.append(0.9 * y, 0.0)  # of the guard, row by row
    guesses[200:] *= -1
    rows, size = make_layout(POOL)
    state, memory = new_pool(rows, size)
    guard, pool = Guard(), Pool()
    forecasts, estimates = guesses[:-1].copy(), guesses[1:].copy()
    pool_pass(y, w, state, memory, rows.view(np.uint8), forecasts, estimates)
    shares = []
    for row in range(300):
        x = pool.output * (pool.unit or 1.0)
        expected = (1 - guard.share) * x + guard.share * guesses[row]
        assert forecasts[row] == pytest.approx(expected, rel=1e-8)
        guard = guard_update(guard, x, guesses[row], y[row], w[row])
        pool.learn(y[row], w[row])
        shares.append(guard.share)
    assert shares[0] == 0 and max(shares) > 0.7 and min(shares[150:]) < 0.3
    for name in Guard._fields:
        found = float(state.view(POOL_DTYPE)[name][0])
        assert found == pytest.approx(float(getattr(guard, name)), rel=1e-8)


def test_a_guarded_output_is_a_mean_of_both():
    y = HOSTILE["random signs"][:500]
    denoiser, guard = OnlineTVDenoiser(), OnlineTVDenoiser(learning_rate="theory")
    denoiser.partial_fit(np.arange(500), y)
    guard.partial_fit(np.arange(500), y)
    state = denoiser._streams[0]._pool.view(POOL_DTYPE)[0]
    share = denoiser.member_weights_["guard"]
    assert 0 < share < 1
    expected = (1 - share) * state["output"] * state["unit"]
    expected += share * guard.predict_one()
    assert denoiser.predict_one() == pytest.approx(expected, abs=1e-14)
