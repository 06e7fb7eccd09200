"""Sleeping experts over the geometric cover against their reference and bounds."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sktvdenoise import GeometricCoverDenoiser, _cover
from sktvdenoise.baselines import Aligator, SleepingExperts
from sktvdenoise.datasets import make_signal


def cell(offset):
    """Side of the origin and number of the cell, from 1."""
    return (0, offset + 1) if offset >= 0 else (1, -offset)


class Reference:
    """Every interval with an expert of its own, in a dictionary."""

    def __init__(self, rate, nearest):
        self.rate, self.nearest = rate, nearest
        self.experts = {}  # (side, level, i): log weight, mean, mass
        self.labels = {}  # offset: newest label
        self.last = 0.0

    def awake(self, offset):
        side, u = cell(offset)
        return [(side, k, u >> k) for k in range(u.bit_length())]

    def newborn(self, offset):
        if not self.nearest or not self.labels:
            return self.last
        distance = min(abs(offset - other) for other in self.labels)
        at = {offset - distance, offset + distance} & set(self.labels)
        return np.mean([self.labels[other] for other in at])

    def state(self, offset):
        new = 0.0, self.newborn(offset), 0.0
        rows = [self.experts.get(key, new) for key in self.awake(offset)]
        return np.array(rows).T

    def predict(self, offset):
        log_weight, mean, _ = self.state(offset)
        weight = np.exp(log_weight - log_weight.max())
        return weight @ mean / weight.sum()

    def learn(self, offset, y, w=1.0):
        log_weight, mean, mass = self.state(offset)
        charged = log_weight - self.rate * w * (y - mean) ** 2
        charged += np.logaddexp.reduce(log_weight) - np.logaddexp.reduce(charged)
        mean = (mass * mean + w * y) / (mass + w)
        for key, *row in zip(self.awake(offset), charged, mean, mass + w):
            self.experts[key] = tuple(row)
        self.labels[offset] = self.last = y

    def run(self, offsets, y, w=None):
        w = np.ones(len(y)) if w is None else w
        predictions = []
        for offset, label, weight in zip(offsets.tolist(), y, w):
            predictions.append(self.predict(offset))
            if weight > 0:
                self.learn(offset, label, weight)
        return np.array(predictions)


def orders(n):
    rng = np.random.default_rng(0)
    return {
        "time": np.arange(n),
        "backwards": np.arange(n)[::-1],
        "any": rng.permutation(n),
        "repeated": rng.integers(0, n // 4, size=n),
        "sparse": rng.integers(-(2**40), 2**40, size=n),
        "clusters": 10**6 * rng.integers(-3, 3, size=n) + rng.integers(0, 9, size=n),
    }


ORDERS = list(orders(8))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_denoiser_equals_the_reference(order, weighted):
    n = 150
    x = orders(n)[order]
    rng = np.random.default_rng(1)
    y = np.sin(x / 20.0) * 3 + rng.normal(size=n)
    w = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else None
    reference = Reference(0.5, nearest=True)
    expected = reference.run(x - x[0], y, w)
    model = GeometricCoverDenoiser(learning_rate=0.5)
    assert_allclose(model.partial_fit_predict(x, y, w), expected, atol=1e-9)
    query = np.concatenate([x, rng.integers(x.min() - 9, x.max() + 9, size=50)])
    expected = [reference.predict(q) for q in (query - x[0]).tolist()]
    assert_allclose(model.predict(query), expected, atol=1e-9)


@pytest.mark.parametrize("order", ["time", "backwards", "any", "repeated"])
def test_aligator_equals_the_reference(order):
    n = 150
    x = orders(n)[order]
    y = np.random.default_rng(2).normal(size=n)
    expected = Reference(2.0, nearest=False).run(x, y)
    model = Aligator(n, learning_rate=2.0)
    assert_allclose(model.partial_fit_predict(x, y), expected, atol=1e-9)


@pytest.mark.parametrize("learning_rate", [0.5, "theory", "auto"])
def test_the_three_are_the_same_in_order_of_time(learning_rate):
    n = 300
    y, _ = make_signal("blocks", n, random_state=3)
    params = dict(learning_rate=learning_rate, bound=40.0)
    expected = SleepingExperts(**params).partial_fit_predict(range(n), y)
    for model in (GeometricCoverDenoiser(**params), Aligator(n, **params)):
        found = model.partial_fit_predict(np.arange(n), y)
        assert_allclose(found, expected, atol=1e-8)


def test_nothing_depends_on_the_horizon():
    """The paper's weights 1/|pool| are a factor common to all."""
    x = np.random.default_rng(4).permutation(100)
    y = np.random.default_rng(5).normal(size=100)
    small, large = Aligator(100, learning_rate=0.5), Aligator(10**6, learning_rate=0.5)
    expected = small.partial_fit_predict(x, y)
    assert_array_equal(large.partial_fit_predict(x, y), expected)


def test_sleeping_experts_keep_the_weight_of_the_awake():
    """A new expert has weight 1 and no round changes the total of those awake."""
    y = np.random.default_rng(6).normal(size=260) * 3
    model = SleepingExperts(learning_rate=0.3).partial_fit([0], y[:1])
    errors = []
    for t in range(2, 260):
        before = model.expert_weights_
        newborn = (t & -t).bit_length()
        assert_array_equal(before[:newborn], 1.0)
        assert len(before) == t.bit_length()
        model.partial_fit([t - 1], y[t - 1 : t])
        after = model.expert_weights_
        ends = ((t + 1) & -(t + 1)).bit_length()  # those replaced by new experts
        gone = before.sum() - after[ends:].sum()
        assert gone > 0
        if ends == 1:  # only [t, t], which was awake once, has gone
            reference = Reference(0.3, nearest=False)
            reference.run(np.arange(t), y[:t])
            weights = [np.exp(reference.experts[k][0]) for k in reference.awake(t - 1)]
            errors.append(abs(sum(weights) / before.sum() - 1))
            assert_allclose(after[1:], weights[1:], rtol=1e-9)
    assert len(errors) > 100 and max(errors) < 1e-12


def sequences(n):
    rng = np.random.default_rng(7)
    t = np.arange(n)
    return {
        "random": rng.uniform(-1, 1, size=n),
        "signs": rng.choice([-1.0, 1.0], size=n),
        "alternating": (-1.0) ** t,
        "step": np.where(t < n // 3, -1.0, 1.0),
        "steps": np.repeat(rng.choice([-1.0, 1.0], size=-(-n // 16)), 16)[:n],
    }


@pytest.mark.parametrize("order", ["time", "any"])
@pytest.mark.parametrize("name", list(sequences(8)))
def test_regret_to_every_interval_of_the_cover(name, order):
    """At most ln(N) / eta, N the number of intervals that have been awake."""
    n = 256
    y = sequences(n)[name]
    x = orders(n)[order]
    model = Aligator(n, learning_rate="theory", bound=1.0)
    excess = (y[x] - model.partial_fit_predict(x, y[x])) ** 2
    reference = Reference(1 / 8, nearest=False)
    keys = {}
    for row, offset in enumerate(x.tolist()):
        _, means, _ = reference.state(offset)
        for key, mean in zip(reference.awake(offset), means):
            keys.setdefault(key, []).append(excess[row] - (y[offset] - mean) ** 2)
        reference.learn(offset, y[offset])
    slack = 8 * np.log(len(keys)) - np.array([sum(regret) for regret in keys.values()])
    assert len(keys) == 2 * n - n.bit_count()
    assert slack.min() >= 0


def test_theory_starts_again_beyond_the_bound():
    x = np.random.default_rng(8).permutation(200)
    y = np.random.default_rng(9).normal(size=200)
    y[120] = 100.0
    model = GeometricCoverDenoiser(learning_rate="theory")
    model.partial_fit(x[:120], y[:120])
    assert model.bound_ < 10
    model.partial_fit(x[120:], y[120:])
    assert model.bound_ == 100.0
    rest = Reference(1 / (8 * 100.0**2), nearest=True)
    rest.last = y[119]
    rest.run(x[120:] - x[0], y[120:])
    expected = [rest.predict(q) for q in (x - x[0]).tolist()]
    assert_allclose(model.predict(x), expected, atol=1e-9)


# ---------------------------------------------------------------- the stream


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "params", [{"learning_rate": 0.5}, {}, {"learning_rate": "theory"}]
)
def test_batches_pickles_and_single_labels_are_identical(params, order):
    n = 3000
    x = orders(n)[order]
    y = np.random.default_rng(10).normal(size=(n, 2)) * [1, 30]
    whole = GeometricCoverDenoiser(**params)
    expected = whole.partial_fit_predict(x, y)
    model, found, start = GeometricCoverDenoiser(**params), [], 0
    for size in (1, 1, 7, 500, 1, 1500, 990):
        rows = slice(start, start + size)
        found.append(model.partial_fit_predict(x[rows], y[rows]))
        model = pickle.loads(pickle.dumps(model)) if size > 7 else copy.deepcopy(model)
        start += size
    assert start == n
    assert_array_equal(np.concatenate(found), expected)
    assert_array_equal(model.predict(x), whole.predict(x))
    assert_array_equal(model.std_, whole.std_)


def test_single_labels_follow_the_last_position():
    y = np.random.default_rng(11).normal(size=40)
    one, many = GeometricCoverDenoiser(spacing=0.5), GeometricCoverDenoiser(spacing=0.5)
    expected = many.partial_fit_predict(np.arange(40), y)
    assert one.predict_one() == 0.0
    for label, prediction in zip(y, expected):
        assert one.predict_one() == prediction
        one.learn_one(label)
    assert one.n_samples_seen_ == 40
    assert_array_equal(one.predict(np.arange(50)), many.predict(np.arange(50)))


def test_predict_is_what_comes_next_and_changes_nothing():
    x = orders(100)["any"]
    y = np.random.default_rng(12).normal(size=100)
    model = GeometricCoverDenoiser().partial_fit(x[:60], y[:60])
    before = pickle.dumps(model)
    expected = [model.predict([q])[0] for q in range(-5, 110)]
    assert pickle.dumps(model) == before
    for q, value in zip(range(-5, 110), expected):
        assert copy.deepcopy(model).partial_fit_predict([q], [9.0])[0] == value


def test_two_nodes_for_every_cell_are_enough():
    for x in orders(2000).values():
        model = GeometricCoverDenoiser().partial_fit(x, np.ones(2000))
        n_cells = len(set(x.tolist()))
        assert n_cells <= _cover.n_nodes(model._streams[0]._state) <= 2 * n_cells - 1


def test_fit_learns_in_order_of_position():
    x = orders(100)["any"] * 0.37
    y = np.random.default_rng(13).normal(size=100)
    order = np.argsort(x)
    fitted = GeometricCoverDenoiser(spacing=0.37).fit(x, y)
    streamed = GeometricCoverDenoiser(spacing=0.37).partial_fit(x[order], y[order])
    assert_array_equal(fitted.predict(x), streamed.predict(x))
    assert fitted.origin_ == x.min()


def test_missing_labels_and_zero_weights_teach_nothing():
    x = orders(80)["any"]
    y = np.random.default_rng(14).normal(size=80)
    seen = np.arange(80) % 3 > 0
    plain = GeometricCoverDenoiser().partial_fit(x[:1], y[:1])
    plain.partial_fit(x[seen], y[seen])
    missing = GeometricCoverDenoiser(missing="skip").partial_fit(x[:1], y[:1])
    missing.partial_fit(x, np.where(seen, y, np.nan))
    weighted = GeometricCoverDenoiser().partial_fit(x[:1], y[:1])
    weighted.partial_fit(x, y, seen.astype(float))
    assert_array_equal(missing.predict(x), plain.predict(x))
    assert_array_equal(weighted.predict(x), plain.predict(x))


@pytest.mark.parametrize("scale", [1e-130, 1.0, 1e130])
@pytest.mark.parametrize("learning_rate", ["auto", "theory"])
def test_units_of_the_labels_do_not_matter(learning_rate, scale):
    x = orders(300)["any"]
    y, _ = make_signal("doppler", 300, random_state=15)
    model = GeometricCoverDenoiser(learning_rate=learning_rate)
    expected = model.partial_fit_predict(x, y[x])
    found = GeometricCoverDenoiser(learning_rate=learning_rate)
    found = found.partial_fit_predict(x, y[x] * scale) / scale
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("learning_rate", ["auto", 0.5])
def test_an_outlier_is_forgotten(learning_rate):
    y = np.random.default_rng(16).normal(size=4000)
    y[1000] = 1e12
    model = GeometricCoverDenoiser(learning_rate=learning_rate)
    predictions = model.partial_fit_predict(np.arange(4000), y)
    assert np.all(np.isfinite(predictions))
    assert np.mean(predictions[3000:] ** 2) < 1.0


def test_nearest_label_serves_better_than_the_last_in_any_order():
    """What the paper's rule for empty intervals costs, and why it is not ours."""
    ratios = []
    for seed in range(10):
        y, truth = make_signal("heavisine", 1024, random_state=seed)
        x = np.random.default_rng(seed).permutation(1024)
        errors = [
            np.sum((model.partial_fit_predict(x, y[x]) - truth[x]) ** 2)
            for model in (
                GeometricCoverDenoiser(learning_rate=0.5),
                Aligator(1024, learning_rate=0.5),
            )
        ]
        ratios.append(errors[0] / errors[1])
    assert max(ratios) < 0.25


@pytest.mark.parametrize("name", ["blocks", "bumps", "heavisine", "walk"])
@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_auto_does_about_as_well_as_known_noise(name, noise):
    errors = np.zeros(2)
    for seed in range(5):
        y, truth = make_signal(name, 1024, noise=noise, random_state=seed)
        for i, rate in enumerate(["auto", 1 / (2 * noise**2)]):
            model = GeometricCoverDenoiser(learning_rate=rate)
            predictions = model.partial_fit_predict(range(1024), y)
            errors[i] += np.sum((predictions - truth) ** 2)
    assert errors[0] <= 1.1 * errors[1]


@pytest.mark.parametrize("learning_rate", ["auto", "theory", 0.5])
def test_enormous_and_tiny_labels_and_weights(learning_rate):
    rng = np.random.default_rng(20)
    y = rng.choice([-1e140, 0.0, 1e-300, 1.0, 1e140], size=300)
    w = rng.choice([1e-150, 1.0, 1e150], size=300)
    x = orders(300)["any"]
    model = GeometricCoverDenoiser(learning_rate=learning_rate)
    predictions = model.partial_fit_predict(x, y, w)
    assert np.abs(predictions).max() <= 1e140 * (1 + 1e-12)


# ---------------------------------------------------------------- smooth


@pytest.mark.parametrize("missing", [False, True])
def test_smooth_is_the_mean_of_two_passes(missing):
    n = 120
    x = orders(n)["any"]
    y = np.random.default_rng(17).normal(size=(n, 2))
    if missing:
        y[x < 5, 0] = np.nan
        y[40, 1] = np.nan
    model = GeometricCoverDenoiser(missing="skip")
    found = model.smooth(x, y)[np.argsort(x)]
    sorted_y = y[np.argsort(x)]
    forward = model.partial_fit_predict(np.arange(n), sorted_y)
    backward = GeometricCoverDenoiser(missing="skip").partial_fit_predict(
        np.arange(n)[::-1], sorted_y[::-1]
    )[::-1]
    expected = (forward + backward) / 2
    expected[-1] = forward[-1]
    first = [6 if missing else 1, 1]
    for column, ends in enumerate(first):
        expected[:ends, column] = backward[:ends, column]
    assert_array_equal(found, expected)


def test_smooth_does_not_see_a_rows_own_label():
    y = np.random.default_rng(18).normal(size=50)
    model = GeometricCoverDenoiser(learning_rate=0.5)
    before = model.smooth(range(50), y)
    for row, n_others in ((0, 1), (20, 10)):
        changed = y.copy()
        changed[row] += 1.0
        after = model.smooth(range(50), changed)
        assert after[row] == before[row]
        assert np.sum(after != before) >= n_others
    assert not hasattr(model, "n_samples_seen_")


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "model, x, message",
    [
        (Aligator(10), [3, 10], r"X\[1\] = 10 is outside the grid from 0 to 10"),
        (Aligator(10), [-1], r"X\[0\] = -1 is outside"),
        (Aligator(10, limits=(0, 1)), [0.5, 1.01], r"X\[1\] = 1.01 is outside"),
        (Aligator(10, limits=(1, 0)), [0.5], "limits must be a lower and a higher"),
        (Aligator(10, limits=(1, 2, 3)), [0.5], "limits must be"),
        (GeometricCoverDenoiser(), [0, 1e16], r"X\[1\] = 1e\+16 is more than 2\^52"),
    ],
)
def test_positions_without_a_cell_are_refused(model, x, message):
    for learn in (model.fit, model.partial_fit, model.smooth):
        with pytest.raises(ValueError, match=message):
            learn(x, np.ones(len(x)))
    assert not hasattr(model, "n_samples_seen_")


def test_the_grid_ends_at_its_highest_position():
    grid = Aligator(10, limits=(0, 1)).fit([0.0, 1.0], [1.0, 2.0])
    assert_allclose(grid.predict([1.0]), grid.predict([0.95]), rtol=0)
    steps = Aligator(3).fit([0, 1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="outside the grid"):
        steps.learn_one(4.0)
    assert steps.n_samples_seen_ == 3
    with pytest.raises(ValueError, match="predict_one is for one output"):
        Aligator(3).fit([0], [[1.0, 2.0]]).predict_one()
