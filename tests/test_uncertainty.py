"""Standard deviations, intervals, breakpoints and run lengths of OnlineTVDenoiser."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

from sktvdenoise import OnlineTVDenoiser, breakpoints

RATES = [0.7, "theory", "mixable", "auto"]


def run(y, sample_weight=None, **params):
    """The denoiser after all rows, its predictions, and their standard deviations."""
    model = OnlineTVDenoiser(**params)
    return model, *model.partial_fit_predict(
        np.arange(len(y)), y, sample_weight, return_std=True
    )


def streams(n, rng):
    """Streams whose noise is not normal, not of one size, or not alone."""
    rows, noise = np.arange(n), rng.normal(size=n)
    quarter = 4 * rows // n
    outliers = np.where(rng.random(n) < 0.01, 50.0, 0.0)
    outliers[:10] = 0.0
    return {
        "noise": noise,
        "t, 3 degrees of freedom": rng.standard_t(3, size=n),
        "noise of two sizes": np.where(quarter % 2, 5.0, 1.0) * noise,
        "jumps": 6.0 * (quarter % 2) + noise,
        "season": 4 * np.sin(2 * np.pi * rows / 12) + noise,
        "walk": np.cumsum(noise),
        "growing scale": np.exp(4 * rows / n) * noise,
        "growing level": np.exp(6 * rows / n + 0.05 * noise),
        "outliers": noise + outliers,
        "enormous first label": np.where(rows == 0, 1e6, noise),
        "counts": rng.poisson(2.0, size=n).astype(float),
    }


STREAMS = list(streams(100, np.random.default_rng(0)))

# ---------------------------------------------------------------- coverage


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("learning_rate", ["auto", "mixable"])
def test_nine_in_ten_labels_fall_inside(learning_rate, stream):
    """88 to 92 % on each short stream, by intervals known before the labels."""
    for seed in range(4):
        y = streams(400, np.random.default_rng(seed))[stream]
        _, predictions, std = run(y, learning_rate=learning_rate)
        inside = np.abs(y - predictions)[2:] <= norm.ppf(0.95) * std[2:]
        assert 0.88 <= inside.mean() <= 0.92


def test_coverage_holds_in_every_part_of_a_stream():
    """Where the noise is five times as large, and where it is small again."""
    parts = []
    for seed in range(5):
        y = streams(1200, np.random.default_rng(seed))["noise of two sizes"]
        _, predictions, std = run(y)
        inside = np.abs(y - predictions) <= norm.ppf(0.95) * std
        parts.append(inside.reshape(4, 300).mean(axis=1))
    assert np.min(np.mean(parts, axis=0)) > 0.86
    assert np.max(np.mean(parts, axis=0)) < 0.94


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_other_coverages_under_normal_noise(coverage):
    inside = []
    for seed in range(4):
        y = streams(1500, np.random.default_rng(seed))["jumps"]
        _, predictions, std = run(y)
        reach = norm.ppf(0.5 + coverage / 2) * std
        inside.append(np.abs(y - predictions)[2:] <= reach[2:])
    assert abs(np.mean(inside) - coverage) < 0.03


def test_std_is_that_of_the_noise():
    """At a constant level, with what there is to know of it, it is sigma."""
    std = [
        run(3.0 * np.random.default_rng(seed).normal(size=1500))[2][300:]
        for seed in range(4)
    ]
    assert 0.95 * 3 < np.mean(std) < 1.1 * 3


# ---------------------------------------------------------------- what std is


@pytest.mark.parametrize("learning_rate", RATES)
def test_std_is_infinite_before_the_second_label(learning_rate):
    y = np.random.default_rng(0).normal(size=10)
    model, _, std = run(y, learning_rate=learning_rate)
    assert_array_equal(std[:2], np.inf)
    assert np.all(np.isfinite(std[2:])) and np.all(std[2:] > 0)
    model = OnlineTVDenoiser(learning_rate=learning_rate)
    for t in range(10):
        model.partial_fit([t], y[t : t + 1])
        assert model.std_ == (std[t + 1] if t < 9 else model.std_)
        assert np.isfinite(model.std_) == (t > 0)
        low, high = model.predict_interval([t])
        assert np.isfinite([low, high]).all() == (t > 0)


@pytest.mark.parametrize("learning_rate", RATES)
def test_constant_labels_have_no_error(learning_rate):
    model, _, std = run(np.full(50, 3.5), learning_rate=learning_rate)
    assert np.max(std[2:]) < 1e-14
    low, high = model.predict_interval([99])
    assert_allclose([low, high], 3.5, rtol=1e-14)
    if learning_rate == "auto":
        # Without any error so far, the first sets the scale.
        model.partial_fit([50], [4.5])
        assert_allclose(model.std_, 1.0, rtol=1e-12)


@pytest.mark.parametrize("learning_rate", ["theory", "mixable", "auto"])
@pytest.mark.parametrize("factor", [-1.0, 1e-8, 1e8])
def test_std_scales_with_the_labels(stream, learning_rate, factor):
    _, y, w = stream
    std = run(y, w, learning_rate=learning_rate)[2]
    scaled = run(factor * y, w, learning_rate=learning_rate)[2]
    assert_allclose(scaled, abs(factor) * std, rtol=1e-7)


@pytest.mark.parametrize("learning_rate", [0.7, "auto"])
def test_std_does_not_depend_on_the_level(stream, learning_rate):
    _, y, w = stream
    std = run(y, w, learning_rate=learning_rate)[2]
    shifted = run(y + 1e3, w, learning_rate=learning_rate)[2]
    assert_allclose(shifted[2:], std[2:], rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learning_rate", RATES)
def test_batching_changes_no_std(stream, learning_rate, weighted):
    X, y, w = stream
    w = w if weighted else None
    y = np.column_stack([y, y[::-1]])
    whole = OnlineTVDenoiser(learning_rate=learning_rate)
    _, expected = whole.partial_fit_predict(X, y, w, return_std=True)
    assert expected.shape == y.shape
    for sizes in ([1] * 200, [1, 7, 50, 142]):
        model, found = OnlineTVDenoiser(learning_rate=learning_rate), []
        for part in np.split(np.arange(200), np.cumsum(sizes)[:-1]):
            weights = None if w is None else w[part]
            found.append(
                model.partial_fit_predict(X[part], y[part], weights, return_std=True)[1]
            )
        assert_array_equal(np.concatenate(found), expected)
        assert_array_equal(model.std_, whole.std_)


def test_std_of_the_past_is_what_was_known_then(stream):
    X, y, w = stream
    model = OnlineTVDenoiser()
    known, stds = {}, []
    for t in range(200):
        model.partial_fit(X[t], y[t : t + 1], w[t : t + 1])
        known[X[t, 0]] = model.predict(X[t])[0], model.std_
        stds.append(model.std_)
    query = np.array(list(known))
    estimates, std = model.predict(query, return_std=True)
    assert_array_equal(np.array(list(known.values())).T, [estimates, std])
    assert_array_equal(model.fit(X, y, w).predict(query, return_std=True)[1], std)
    # Each is the standard deviation with which the next label was met.
    met = OnlineTVDenoiser().partial_fit_predict(X, y, w, return_std=True)[1]
    assert_array_equal(met[1:], stds[:-1])
    # Before the first position the first estimate holds, made after one label.
    assert_array_equal(model.predict([-1.0], return_std=True)[1], np.inf)
    assert_array_equal(model.predict([1e9], return_std=True)[1], model.std_)


@pytest.mark.parametrize("learning_rate", RATES)
def test_rows_passed_over_leave_std_alone(stream, learning_rate):
    _, y, _ = stream
    holes, weights = y.copy(), np.ones(200)
    holes[[0, 5, 60, 61, 199]] = np.nan
    weights[[1, 90]] = 0.0
    params = dict(learning_rate=learning_rate, missing="skip")
    model, _, std = run(holes, weights, **params)
    learned = ~np.isnan(holes) & (weights > 0)
    plain, _, expected = run(y[learned], **params)
    assert_array_equal(std[learned], expected)
    assert model.std_ == plain.std_
    for t in np.flatnonzero(~learned)[:-1]:
        assert std[t + 1] == std[t]


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize("keep_history", [True, False])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.999])
def test_intervals_are_about_the_predictions(stream, coverage, keep_history):
    X, y, _ = stream
    for labels in (y, np.column_stack([y, -y])):
        model = OnlineTVDenoiser(keep_history=keep_history).fit(X, labels)
        query = X if keep_history else X[-1:] + np.arange(3)[:, None]
        center, std = model.predict(query, return_std=True)
        assert center.shape == std.shape == (len(query), *labels.shape[1:])
        assert_array_equal(center, model.predict(query))
        low, high = model.predict_interval(query, coverage)
        reach = norm.ppf((1 + coverage) / 2)
        known = np.isfinite(std)
        assert_allclose((high - center)[known], (reach * std)[known], rtol=1e-10)
        assert_allclose((center - low)[known], (reach * std)[known], rtol=1e-10)
    assert_array_equal(
        model.predict_interval(query)[0], model.predict_interval(query, 0.9)[0]
    )


def test_bad_questions_are_refused(stream):
    X, y, _ = stream
    with pytest.raises(NotFittedError):
        OnlineTVDenoiser().predict_interval(X)
    model = OnlineTVDenoiser(keep_history=False).fit(X, y)
    for coverage in (0, 1, -0.5, 1.5, np.nan, np.inf):
        with pytest.raises(ValueError, match="coverage"):
            model.predict_interval(X[-1:], coverage)
    with pytest.raises(ValueError, match=r"X\[0\] = 0 is before"):
        model.predict_interval(X)
    assert not hasattr(OnlineTVDenoiser(), "std_")


# ---------------------------------------------------------------- breakpoints


def test_breakpoints_of_short_streams():
    model = OnlineTVDenoiser().fit(np.arange(6), [0.0, 0.0, 0.0, 10.0, 10.0, 10.0])
    assert_array_equal(model.breakpoints_, [3])
    for y in (np.full(100, 7.0), np.zeros(1), np.arange(3.0)):
        found = OnlineTVDenoiser().fit(np.arange(len(y)), y).breakpoints_
        assert found.shape == (0,) and found.dtype.kind == "i"
    assert not hasattr(OnlineTVDenoiser(), "breakpoints_")


@pytest.mark.parametrize("learning_rate", RATES)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_breakpoints_are_those_of_the_learned_labels(stream, learning_rate, one_by_one):
    X, y, w = stream
    y = y.copy()
    y[[0, 79, 80, 81, 150]] = np.nan
    model = OnlineTVDenoiser(learning_rate=learning_rate, missing="skip")
    state = breakpoints.new_state()
    for t in range(200):
        if one_by_one:
            w[t] = 1.0
            model.learn_one(y[t])
        else:
            model.partial_fit(X[t], y[t : t + 1], w[t : t + 1])
        if y[t] == y[t] and w[t] > 0:
            breakpoints.push(state, y[t : t + 1], [t])
        if t % 20 == 0:
            assert_array_equal(model.breakpoints_, breakpoints.read(state))
    assert_array_equal(model.breakpoints_, breakpoints.read(state))
    # The jump before row 80, whose label and the next one are missing.
    assert_array_equal(model.breakpoints_, [82, 140])


def test_breakpoints_of_several_outputs(stream):
    X, y, _ = stream
    Y = np.column_stack([y, np.where(X[:, 0] > 100, 50.0, 0.0), np.zeros(200)])
    Y[10:20, 0] = np.nan
    model = OnlineTVDenoiser(missing="skip").fit(X, Y)
    assert len(model.breakpoints_) == 3
    for found, labels in zip(model.breakpoints_, Y.T):
        single = OnlineTVDenoiser(missing="skip").fit(X, labels)
        assert_array_equal(found, single.breakpoints_)
    assert_array_equal(model.breakpoints_[1], [np.argmax(X[:, 0] > 100)])
    assert len(model.breakpoints_[2]) == 0


# ---------------------------------------------------------------- run lengths


@pytest.mark.parametrize("learning_rate", RATES)
def test_run_length_is_the_age_of_the_heaviest_expert(stream, learning_rate):
    X, y, _ = stream
    model = OnlineTVDenoiser(learning_rate=learning_rate, missing="skip")
    y = y.copy()
    y[[0, 1, 70]] = np.nan
    for t in range(200):
        model.partial_fit(X[t], y[t : t + 1])
        births, weights = model.expert_births_[:-1], model.expert_weights_[:-1]
        if t < 2:
            assert model.run_length_ == 0
        else:
            assert t + 1 - births[np.argmax(weights)] == model.run_length_
            assert 1 <= model.run_length_ <= t + 1
    assert isinstance(model.run_length_, int)


def test_run_length_counts_from_the_last_jump(stream):
    X, y, _ = stream  # jumps at 80 and 140
    Y = np.column_stack([y, np.zeros(200), np.where(np.arange(200) < 190, 0.0, 9.0)])
    model = OnlineTVDenoiser().fit(X, Y)
    assert abs(model.run_length_[0] - 60) <= 3
    assert model.run_length_[1] == 200
    # The first label of the new level was held back until a second confirmed it.
    assert model.run_length_[2] == 9
    model = OnlineTVDenoiser().fit(X[:140], y[:140])
    assert abs(model.run_length_ - 60) <= 3


# ---------------------------------------------------------------- one by one


@pytest.mark.parametrize("keep_history", [True, False])
@pytest.mark.parametrize("bound", [None, 20.0])
@pytest.mark.parametrize("pruning", ["aflh", None])
@pytest.mark.parametrize("learning_rate", RATES)
def test_one_by_one_is_the_same(
    stream, learning_rate, pruning, bound, keep_history, assert_same
):
    _, y, _ = stream
    y = y.copy()
    y[[3, 4, 120]] = np.nan
    params = dict(
        learning_rate=learning_rate,
        pruning=pruning,
        bound=bound,
        keep_history=keep_history,
        missing="skip",
    )
    whole, expected, std = run(y, **params)
    model = OnlineTVDenoiser(**params)
    assert model.predict_one() == 0.0
    for t in range(200):
        prediction = model.predict_one()
        assert prediction == expected[t] and isinstance(prediction, float)
        assert t == 0 or model.std_ == std[t]
        assert model.learn_one(y[t]) is model
    assert_same(model, whole)
    assert model.std_ == whole.std_ and model.run_length_ == whole.run_length_
    assert_array_equal(model.breakpoints_, whole.breakpoints_)
    if keep_history:
        for mine, theirs in zip(
            model.predict(np.arange(200), return_std=True),
            whole.predict(np.arange(200), return_std=True),
        ):
            assert_array_equal(mine, theirs)


def test_single_labels_and_batches_take_turns(stream, assert_same):
    _, y, _ = stream
    whole = run(y)[0]
    model = OnlineTVDenoiser().learn_one(y[0])
    model.partial_fit(np.arange(1, 90), y[1:90])
    for t in range(90, 120):
        model.learn_one(y[t])
    assert_array_equal(model.positions_, np.arange(120.0))
    resumed = pickle.loads(pickle.dumps(model))
    for other in (model, resumed):
        other.partial_fit(np.arange(120, 200), y[120:])
        assert_same(other, whole)
        assert_array_equal(other.breakpoints_, whole.breakpoints_)


def test_single_labels_follow_the_last_position():
    model = OnlineTVDenoiser().fit([7.5, 2.0], [1.0, 0.0])
    model.learn_one(2).learn_one(np.float32(2.5)).learn_one(True)
    assert_array_equal(model.positions_, [2.0, 7.5, 8.5, 9.5, 10.5])
    assert model.predict_one() == model.predict([10.5])[0] == model.values_[-1]
    assert model.n_samples_seen_ == 5


@pytest.mark.parametrize("started", [True, False])
def test_bad_single_labels_are_refused_and_leave_the_state(started):
    def fresh(**params):
        model = OnlineTVDenoiser(**params)
        return model.fit(np.arange(5), np.arange(5.0)) if started else model

    for params, label, message in (
        ({}, np.nan, "NaN"),
        ({}, np.inf, "infinity"),
        (dict(missing="skip"), -np.inf, "infinity"),
        ({}, 1e150, "too large"),
        (dict(bound=10.0), -10.5, "bound=10"),
    ):
        model = fresh(**params)
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=message):
            model.learn_one(label)
        if started:
            assert pickle.dumps(model) == before
        assert hasattr(model, "n_samples_seen_") == started
    for label in ("seven", None):
        with pytest.raises((TypeError, ValueError)):
            fresh().learn_one(label)
    with pytest.raises(ValueError, match="learning_rate"):
        OnlineTVDenoiser(learning_rate="fast").learn_one(1.0)


def test_single_labels_are_for_one_output(stream):
    X, y, _ = stream
    model = OnlineTVDenoiser().fit(X, np.column_stack([y, y]))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="predict_one is for one output"):
        model.predict_one()
    with pytest.raises(ValueError, match="learn_one is for one output"):
        model.learn_one(1.0)
    assert pickle.dumps(model) == before


# ---------------------------------------------------------------- for ever


@pytest.mark.parametrize("learning_rate", RATES)
def test_state_is_of_one_size(learning_rate):
    """Pickles differ by the digits of the counters, and memory doesn't grow."""
    y = np.random.default_rng(0).normal(size=100_000)
    X = np.arange(100_000.0)
    model = OnlineTVDenoiser(learning_rate=learning_rate, keep_history=False)
    model.partial_fit(X[:1000], y[:1000])
    early = len(pickle.dumps(model))
    tracemalloc.start()
    try:
        model.partial_fit(X[1000:2000], y[1000:2000])
        before = tracemalloc.get_traced_memory()[0]
        model.partial_fit(X[2000:], y[2000:])
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
        assert abs(len(pickle.dumps(model)) - early) <= 16
        for label in y[:5120]:
            model.learn_one(label)
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
    finally:
        tracemalloc.stop()
    # Up to 256 single labels are on their way to the summary of breakpoints.
    assert len(pickle.dumps(model)) - early < 10_000
    assert early < 100_000
