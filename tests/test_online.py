"""OnlineTVDenoiser against its reference and against the theory's exact bounds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.aggregation import aflh_alive, aflh_last_round, flh_running_mean

RATES = [0.7, "theory", "mixable"]
PRUNINGS = ["aflh", None]
RATE_OF = {"theory": 8, "mixable": 2}  # eta = 1 / (RATE_OF B^2)


def positions(n, start=0):
    return np.arange(start, start + n, dtype=float)[:, None]


def predict_then_learn(y, sample_weight=None, **params):
    model = OnlineTVDenoiser(**params)
    predictions = model.partial_fit_predict(
        positions(len(y)), y, sample_weight=sample_weight
    )
    return model, predictions


def streams(n):
    """Streams in [-1, 1] that are easy, hard and degenerate for running means."""
    rng = np.random.default_rng(0)
    t = np.arange(1, n + 1)
    outliers = np.clip(0.05 * rng.normal(size=n), -1, 1)
    outliers[rng.choice(n, size=n // 40, replace=False)] = 1.0
    return {
        "random": rng.uniform(-1, 1, size=n),
        "alternating": (-1.0) ** t,
        "jumps at powers of two": (-1.0) ** np.floor(np.log2(t)),
        "late jump": np.where(t <= n // 2, -1.0, 1.0),
        "steps": np.clip(
            np.repeat(rng.uniform(-1, 1, size=-(-n // 50)), 50)[:n]
            + 0.2 * rng.normal(size=n),
            -1,
            1,
        ),
        "constant": np.full(n, -1.0),
        "zeros": np.zeros(n),
        "outliers": outliers,
        "ramp": np.linspace(-1, 1, n),
    }


STREAMS = list(streams(100))


def growing_stream(n=300):
    """A stream that outgrows the learnt bound several times; it begins with 0."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=n) * (1 + (np.arange(n) > 100) + 8 * (np.arange(n) > 200))
    y[0], y[1], y[150] = 0.0, 0.0, 40.0
    return y


# ---------------------------------------------------------------- the reference


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bound", [None, 45.0])
@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", [1e-3, *RATES])
def test_kernel_equals_the_reference(learning_rate, pruning, bound, weighted):
    y = growing_stream()
    w = np.random.default_rng(2).uniform(0.1, 5, size=len(y)) if weighted else None
    params = dict(learning_rate=learning_rate, pruning=pruning, bound=bound)
    expected, state = flh_running_mean(y, sample_weight=w, return_state=True, **params)
    model, predictions = predict_then_learn(y, w, **params)
    tolerance = 1e-10 * np.abs(y).max()
    assert_allclose(predictions, expected, rtol=0, atol=tolerance)
    assert_allclose(model.values_[:-1], expected[1:], rtol=0, atol=tolerance)
    assert_allclose(model.values_[-1], state.forecast, rtol=0, atol=tolerance)
    assert_array_equal(model.expert_births_, state.births)
    assert_allclose(model.expert_weights_, state.weights, rtol=1e-8, atol=1e-12)
    assert model.n_samples_seen_ == len(y)
    if learning_rate in RATE_OF:
        assert model.bound_ == state.bound


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", [30.0, "theory", "mixable"])
def test_kernel_equals_the_reference_on_every_stream(learning_rate, pruning, stream):
    y = 3 * streams(140)[stream]
    params = dict(learning_rate=learning_rate, pruning=pruning)
    expected, state = flh_running_mean(y, return_state=True, **params)
    model, predictions = predict_then_learn(y, **params)
    assert_allclose(predictions, expected, rtol=0, atol=3e-10)
    assert_array_equal(model.expert_births_, state.births)
    assert_allclose(model.expert_weights_, state.weights, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", [*RATES, "auto"])
def test_weights_are_a_distribution_after_every_label(learning_rate, pruning):
    model = OnlineTVDenoiser(learning_rate=learning_rate, pruning=pruning)
    y = growing_stream(260)
    for t in range(len(y)):
        model.partial_fit(positions(1, t), y[t : t + 1])
        weights = model.expert_weights_
        assert np.all(np.isfinite(weights)) and np.all(weights >= 0)
        assert abs(weights.sum() - 1) < 1e-12
        assert len(weights) == len(model.expert_births_)


# ---------------------------------------------------------------- the schedule


@pytest.mark.parametrize("learning_rate", RATES)
def test_births_are_the_alive_set_of_the_next_round(learning_rate):
    """S_8, S_16, S_17 and the sizes at 599, 1024 and 4095 on the way."""
    y = np.random.default_rng(3).uniform(-1, 1, size=4200)
    model = OnlineTVDenoiser(learning_rate=learning_rate, bound=1.0, keep_history=False)
    seen = 0
    sizes = {}
    for t in [2, 3, 6, 7, 8, 16, 17, 33, 599, 1024, 1025, 4095]:
        model.partial_fit(positions(t - 1 - seen, seen), y[seen : t - 1])
        seen = t - 1
        assert_array_equal(np.asarray(model.expert_births_) + 1, aflh_alive(t))
        sizes[t] = len(model.expert_births_)
    assert (sizes[599], sizes[1024], sizes[4095]) == (20, 21, 25)


@pytest.mark.parametrize("learning_rate", RATES)
def test_without_pruning_every_expert_lives(learning_rate):
    y = np.random.default_rng(4).uniform(-1, 1, size=400)
    model, _ = predict_then_learn(
        y, learning_rate=learning_rate, bound=1.0, pruning=None
    )
    assert_array_equal(model.expert_births_, np.arange(401))


# ---------------------------------------------------------------- exact bounds


def expert_predictions(y, r, w=None):
    """Predictions of the expert born in round r, for the rounds r, .., n."""
    newborn = y[r - 2] if r > 1 else 0.0
    w = np.ones(len(y)) if w is None else w
    seen, mass = y[r - 1 : -1], w[r - 1 : -1]
    return np.append(newborn, np.cumsum(mass * seen) / np.cumsum(mass))


def interval_slack(y, predictions, denominator, pruning, scale=1.0, w=None, first=1):
    """Smallest relative slack of sum_{r..s} w (f(x) - f(x^r)) <= ln(s)/eta.

    eta = 1 / (denominator scale), where scale is B^2 W. The slack is in units of
    ln(s)/eta, over all living intervals [r, s] with r >= first; negative means
    that the bound fails, 1 that the learner never does worse than an expert.
    In round 1 the learner is the only expert.
    """
    n = len(y)
    w = np.ones(n) if w is None else w
    rounding = 1e-12 * scale * n
    smallest = np.inf
    for r in range(first, n + 1):
        last = min(n, aflh_last_round(r)) if pruning == "aflh" else n
        rounds = slice(r - 1, last)
        x_r = expert_predictions(y, r, w)[: last - r + 1]
        excess = np.cumsum(
            w[rounds]
            * ((y[rounds] - predictions[rounds]) ** 2 - (y[rounds] - x_r) ** 2)
        )
        bound = denominator * scale * np.log(np.arange(r, last + 1))
        if r == 1:
            assert abs(excess[0]) <= rounding
            bound, excess = bound[1:], excess[1:]
        slack = (bound + rounding - excess) / bound
        smallest = min(smallest, slack.min(initial=np.inf))
    return smallest


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
def test_interval_bound(learning_rate, pruning, stream):
    bound = 5.0
    y = bound * streams(500)[stream]
    _, predictions = predict_then_learn(
        y, learning_rate=learning_rate, pruning=pruning, bound=bound
    )
    assert (
        interval_slack(y, predictions, RATE_OF[learning_rate], pruning, bound**2) >= 0
    )


@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
def test_interval_bound_is_nearly_attained(learning_rate):
    """A late jump uses most of ln(s)/eta: a smaller rate would break the bound."""
    y = streams(500)["late jump"]
    _, predictions = predict_then_learn(y, learning_rate=learning_rate, bound=1.0)
    slack = interval_slack(y, predictions, RATE_OF[learning_rate], "aflh")
    assert 0 <= slack < 0.5


@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
@pytest.mark.parametrize("strategy", ["away", "away in blocks", "towards one expert"])
def test_interval_bound_against_an_adversary(learning_rate, pruning, strategy):
    """Labels chosen after the prediction is known."""
    n = 300
    rng = np.random.default_rng(5)
    model = OnlineTVDenoiser(learning_rate=learning_rate, pruning=pruning, bound=1.0)
    y, predictions = np.zeros(n), np.zeros(n)
    away = 1.0
    for t in range(n):
        forecast = model.predict(positions(1, t))[0] if t else 0.0
        if strategy == "away" or t % 17 == 0:
            away = 1.0 if forecast <= 0 else -1.0
        if strategy == "towards one expert" and t > 1:
            expert = y[rng.integers(t) : t].mean()
            away = 1.0 if expert > forecast else -1.0
        y[t] = away
        predictions[t] = model.partial_fit_predict(positions(1, t), y[t : t + 1])[0]
        assert predictions[t] == forecast
    assert interval_slack(y, predictions, RATE_OF[learning_rate], pruning) >= 0


@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
@pytest.mark.parametrize("stream", ["random", "alternating", "late jump", "steps"])
def test_interval_bound_with_weights(learning_rate, pruning, stream):
    """With w_t <= W and rate 1/(. B^2 W) the bound holds for w_t f_t.

    The first label carries the largest weight, so W is known from round 1 on.
    """
    y = streams(300)[stream]
    w = np.random.default_rng(6).uniform(0, 1, size=300) ** 3 * 6
    w[0] = 6.0
    _, predictions = predict_then_learn(
        y, w, learning_rate=learning_rate, pruning=pruning, bound=1.0
    )
    # Round 1 of FLH, whose forecast came before W was known, predicts 0 anyway.
    slack = interval_slack(y, predictions, RATE_OF[learning_rate], pruning, 6.0, w)
    assert slack >= 0


@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
@pytest.mark.parametrize("stream", ["random", "alternating", "outliers", "steps"])
def test_forecast_is_never_above_the_mix_loss(learning_rate, pruning, stream):
    """w (y - x)^2 <= -(1/eta) ln sum_j v^j exp(-eta w (y - x^j)^2), each round.

    The forecast x is made before label and weight are known, so the inequality
    has to hold for all of them: every |y| <= B and every w <= W.
    """
    n, largest = 100, 9.0
    y = streams(n)[stream]
    w = np.random.default_rng(6).uniform(0.1, 1, size=n) ** 3 * largest
    w[0] = largest
    eta = 1 / (RATE_OF[learning_rate] * largest)
    label = np.linspace(-1, 1, 21)[:, None, None]
    weight = np.array([0.1, 1.0, 3.0, largest])[:, None]
    model = OnlineTVDenoiser(learning_rate=learning_rate, pruning=pruning, bound=1.0)
    for t in range(1, n):
        model.partial_fit(positions(1, t), y[t - 1 : t], w[t - 1 : t])
        x = model.predict(positions(1, t))[0]
        births = model.expert_births_[:-1]
        means = [np.average(y[r:t], weights=w[r:t]) for r in births]
        x_j = np.array([*means, y[t - 1]])
        mixed = np.exp(-eta * weight * (label - x_j) ** 2) @ model.expert_weights_
        mix_loss = -np.log(mixed) / eta
        loss = weight[:, 0] * (label[..., 0] - x) ** 2
        assert np.all(loss <= mix_loss + 1e-12 * largest)


def epochs(y):
    """(start, end, B) of the runs between restarts: B doubles or jumps to |y|."""
    bound, start, found = 0.0, 0, []
    for t, label in enumerate(np.abs(y)):
        if label > bound:
            if t > start:
                found.append((start, t, bound))
            bound, start = max(2 * bound, label), t
    return [*found, (start, len(y), bound)]


@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
def test_interval_bound_with_a_learnt_bound(learning_rate, pruning):
    """Between restarts the bound holds with the B learnt so far.

    Round 1 of a run was predicted under the smaller B, so intervals start later.
    """
    y = growing_stream(400)
    model, predictions = predict_then_learn(
        y, learning_rate=learning_rate, pruning=pruning
    )
    runs = epochs(y)
    assert len(runs) > 4
    for start, end, bound in runs:
        slack = interval_slack(
            y[start:end],
            predictions[start:end],
            RATE_OF[learning_rate],
            pruning,
            bound**2 or 1.0,
            first=2,
        )
        assert slack >= 0
        assert np.all(np.abs(predictions[start + 1 : end]) <= bound * (1 + 1e-12))
    assert model.bound_ == runs[-1][2] <= 2 * np.abs(y).max()
    assert np.min(model.expert_births_) >= runs[-1][0]


@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("n_pieces", [1, 4, 20])
def test_regret_against_piecewise_constants(learning_rate, stream, n_pieces):
    """An explicit switching-regret bound.

    A running mean's regret against a constant over k labels is
    sum_i (y_i - m_{i-1})^2 / i <= 4 B^2 (1 + ln k), so on an interval that ends at
    s FLH loses at most ln(s)/eta + 4 B^2 (1 + ln s); a piece of the comparator is
    covered greedily by intervals on which the expert born at their start lives.
    """
    n, bound = 512, 2.0
    y = bound * streams(n)[stream]
    _, predictions = predict_then_learn(y, learning_rate=learning_rate, bound=bound)
    _, unpruned = predict_then_learn(
        y, learning_rate=learning_rate, bound=bound, pruning=None
    )
    pieces = np.array_split(np.arange(n), n_pieces)
    comparator = np.concatenate([np.full(len(p), y[p].mean()) for p in pieces])
    oracle = np.sum((y - comparator) ** 2)
    per_interval = bound**2 * (RATE_OF[learning_rate] * np.log(n) + 4 * (1 + np.log(n)))
    n_intervals = 0
    for piece in pieces:
        r, end = piece[0] + 1, piece[-1] + 1
        while r <= end:
            n_intervals += 1
            r = aflh_last_round(r) + 1
    assert np.sum((y - unpruned) ** 2) - oracle <= n_pieces * per_interval
    assert np.sum((y - predictions) ** 2) - oracle <= n_intervals * per_interval


# ---------------------------------------------------------------- identities


@pytest.mark.parametrize("learning_rate", [*RATES, "auto"])
@pytest.mark.parametrize("pruning", PRUNINGS)
def test_outputs_are_independent_streams(learning_rate, pruning):
    """Proposition 10: d coordinates are d instances."""
    rng = np.random.default_rng(7)
    y = np.column_stack([growing_stream(200), rng.normal(size=200), np.zeros(200)])
    params = dict(learning_rate=learning_rate, pruning=pruning)
    model, predictions = predict_then_learn(y, **params)
    assert predictions.shape == (200, 3)
    for k in range(3):
        single, expected = predict_then_learn(y[:, k], **params)
        assert_array_equal(predictions[:, k], expected)
        assert_array_equal(np.asarray(model.values_)[:, k], single.values_)
        assert_array_equal(model.expert_births_[k], single.expert_births_)
        assert_array_equal(model.expert_weights_[k], single.expert_weights_)


def test_mean_weighted_forecast_of_one_expert_is_the_running_mean():
    """With a vanishing rate only the schedule weighs: v^j = 1/t for all j <= t."""
    y = np.random.default_rng(8).normal(size=100)
    model, predictions = predict_then_learn(y, learning_rate=1e-300, pruning=None)
    for t in range(2, 101):
        means = [expert_predictions(y[:t], r)[-1] for r in range(1, t + 1)]
        assert_allclose(predictions[t - 1], np.mean(means), atol=1e-13)
    assert_allclose(model.expert_weights_, 1 / 101, rtol=1e-12)


def test_huge_rate_follows_the_best_expert():
    """A noiseless step: right after it only newborn experts make no error."""
    y = np.repeat([0.0, 1.0, -2.0], 40)
    _, predictions = predict_then_learn(y, learning_rate=1e6)
    late = np.arange(120) % 40 >= 2
    assert np.max(np.abs((predictions - y)[late])) < 1e-12


def test_convex_hull():
    """Weighted means never leave the range of the labels."""
    y = 3 + np.random.default_rng(9).uniform(-1, 1, size=300)
    for learning_rate in (0.7, "theory", "auto"):
        _, predictions = predict_then_learn(y, learning_rate=learning_rate)
        assert predictions[0] == 0
        assert y.min() - 1e-12 <= predictions[1:].min()
        assert predictions[1:].max() <= y.max() + 1e-12


@pytest.mark.parametrize("learning_rate", [1.0, "theory", "mixable", "auto"])
def test_denoising_beats_the_last_label(learning_rate):
    """On a long constant with noise the forecast has a small error to the truth."""
    y = np.clip(np.random.default_rng(10).normal(size=2000), -4, 4)
    bound = 4.0 if isinstance(learning_rate, str) else None
    _, predictions = predict_then_learn(y, learning_rate=learning_rate, bound=bound)
    assert np.mean(predictions[1:] ** 2) < 0.5 * np.mean(y[:-1] ** 2)
