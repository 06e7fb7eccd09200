"""OnlineTVDenoiser in use: batching, resuming, scales, weights, missing labels."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sktvdenoise import OnlineTVDenoiser

RATES = [0.7, "theory", "mixable", "auto"]
SETTINGS = [
    dict(learning_rate=rate, pruning=pruning, bound=bound)
    for rate in RATES
    for pruning in ("aflh", None)
    for bound in (None, 20.0)
]
# ---------------------------------------------------------------- one stream, once


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_batching_changes_nothing(stream, settings, weighted, assert_same):
    X, y, w = stream
    w = w if weighted else np.ones_like(y)
    whole = OnlineTVDenoiser(**settings)
    expected = whole.partial_fit_predict(X, y, sample_weight=w)
    fitted = OnlineTVDenoiser(**settings).fit(X, y, sample_weight=w)
    assert_same(fitted, whole)
    for sizes in ([1] * 200, [1, 7, 50, 142]):
        model, outputs = OnlineTVDenoiser(**settings), []
        for part in np.split(np.arange(200), np.cumsum(sizes)[:-1]):
            outputs.append(
                model.partial_fit_predict(X[part], y[part], sample_weight=w[part])
            )
        assert_array_equal(np.concatenate(outputs), expected)
        assert_same(model, whole)


def test_batching_several_outputs(stream, assert_same):
    X, y, _ = stream
    Y = np.column_stack([y, y[::-1], np.abs(y)])
    Y[30:40, 1] = np.nan
    whole = OnlineTVDenoiser(missing="skip")
    expected = whole.partial_fit_predict(X, Y)
    model = OnlineTVDenoiser(missing="skip")
    outputs = [
        model.partial_fit_predict(X[part], Y[part])
        for part in np.split(np.arange(200), [1, 8, 35, 58])
    ]
    assert_array_equal(np.concatenate(outputs), expected)
    assert_same(model, whole)


def test_empty_batch_is_refused_and_leaves_the_state(stream):
    X, y, _ = stream
    model = OnlineTVDenoiser()
    with pytest.raises(ValueError):
        model.partial_fit(np.empty((0, 1)), np.empty(0))
    model.partial_fit(X, y)
    before = pickle.dumps(model)
    for method in (model.partial_fit, model.partial_fit_predict):
        with pytest.raises(ValueError):
            method(np.empty((0, 1)), np.empty(0))
    assert pickle.dumps(model) == before


def resumed_by_pickle(model, tmp_path):
    return pickle.loads(pickle.dumps(model))


def resumed_by_joblib(model, tmp_path):
    joblib.dump(model, tmp_path / "model.joblib")
    return joblib.load(tmp_path / "model.joblib")


def resumed_by_deepcopy(model, tmp_path):
    return copy.deepcopy(model)


@pytest.mark.parametrize(
    "resume", [resumed_by_pickle, resumed_by_joblib, resumed_by_deepcopy]
)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("keep_history", [True, False])
def test_resuming(stream, settings, keep_history, resume, tmp_path, assert_same):
    X, y, w = stream
    settings = {**settings, "keep_history": keep_history}
    whole = OnlineTVDenoiser(**settings)
    expected = whole.partial_fit_predict(X, y, sample_weight=w)
    model = OnlineTVDenoiser(**settings)
    model.partial_fit(X[:137], y[:137], sample_weight=w[:137])
    resumed = resume(model, tmp_path)
    rest = resumed.partial_fit_predict(X[137:], y[137:], sample_weight=w[137:])
    assert_array_equal(rest, expected[137:])
    assert_same(resumed, whole)
    assert model.n_samples_seen_ == 137  # the original did not move along


def test_loaded_model_still_learns(stream):
    X, y, _ = stream
    for learning_rate in RATES:
        model = OnlineTVDenoiser(learning_rate=learning_rate).fit(X, y)
        loaded = pickle.loads(pickle.dumps(model))
        before = loaded.predict([[1e6]])
        loaded.partial_fit([[2e5]], [1e3])
        assert abs(loaded.predict([[1e6]])[0] - before[0]) > 1e-3


def test_resuming_in_a_new_process(stream, tmp_path):
    X, y, w = stream
    model = OnlineTVDenoiser()
    expected = model.partial_fit_predict(X, y, sample_weight=w)
    first = OnlineTVDenoiser().partial_fit(X[:137], y[:137], sample_weight=w[:137])
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(first))
    np.savez(tmp_path / "rest.npz", X=X[137:], y=y[137:], w=w[137:])
    program = (
        "import pickle, numpy as np\n"
        "model = pickle.load(open('model.pickle', 'rb'))\n"
        "rest = np.load('rest.npz')\n"
        "out = model.partial_fit_predict("
        "rest['X'], rest['y'], sample_weight=rest['w'])\n"
        "np.save('out.npy', out)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=tmp_path, env=environment
    )
    assert_array_equal(np.load(tmp_path / "out.npy"), expected[137:])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_no_look_ahead(stream, settings):
    X, y, w = stream
    other = np.concatenate([y[:100], -7 * y[100:]])
    params = {**settings, "bound": settings["bound"] and 50.0}
    expected = OnlineTVDenoiser(**params).partial_fit_predict(
        X[:100], y[:100], sample_weight=w[:100]
    )
    for labels in (y, other):
        model = OnlineTVDenoiser(**params)
        outputs = model.partial_fit_predict(X, labels, sample_weight=w)
        assert_array_equal(outputs[:100], expected)
        short = OnlineTVDenoiser(**params).fit(
            X[:100], labels[:100], sample_weight=w[:100]
        )
        assert_array_equal(model.values_[:100], short.values_)


def test_predict_and_score_are_pure(stream):
    X, y, w = stream
    for keep_history in (True, False):
        model = OnlineTVDenoiser(keep_history=keep_history).fit(X, y, w)
        before = pickle.dumps(model)
        late = X if keep_history else X[-1:] + np.arange(200)[:, None]
        model.predict(late)
        model.predict(np.array([[1e9]]))
        model.score(late, y)
        assert pickle.dumps(model) == before


def test_fit_forgets(stream, assert_same):
    X, y, w = stream
    Z = np.linspace(-10, 300, 77)[:, None]
    for learning_rate in RATES:
        plain = OnlineTVDenoiser(learning_rate=learning_rate).fit(X, y, w)
        again = OnlineTVDenoiser(learning_rate=learning_rate)
        again.fit(X, 100 * y[::-1]).fit(X, y, w)
        assert_array_equal(again.predict(Z), plain.predict(Z))
        assert_same(again, plain)
        several = OnlineTVDenoiser(learning_rate=learning_rate)
        several.partial_fit(X, np.column_stack([y, y])).fit(X, y, w)
        assert_same(several, plain)


def test_partial_fit_continues_fit(stream, assert_same):
    X, y, w = stream
    for learning_rate in RATES:
        whole = OnlineTVDenoiser(learning_rate=learning_rate).partial_fit(X, y, w)
        parts = OnlineTVDenoiser(learning_rate=learning_rate).fit(
            X[:90], y[:90], w[:90]
        )
        assert_same(parts.partial_fit(X[90:], y[90:], w[90:]), whole)


def test_number_of_outputs_is_fixed_within_a_stream(stream):
    X, y, _ = stream
    model = OnlineTVDenoiser().partial_fit(X, np.column_stack([y, y]))
    before = pickle.dumps(model)
    with pytest.raises(ValueError):
        model.partial_fit(X + 1000, y)
    assert pickle.dumps(model) == before


# ---------------------------------------------------------------- numbers


def test_one_outlier_does_not_set_the_rate_for_ever():
    y = np.ones(200)
    y[50] = 1e12
    X = np.arange(200.0)[:, None]
    predictions = OnlineTVDenoiser().partial_fit_predict(X, y)
    assert np.all(np.isfinite(predictions))
    assert np.mean(np.abs(predictions[150:] - 1)) < 0.5


def assert_sound(model, outputs, largest):
    # The default extrapolates trends, by half the largest label at most.
    reach = 1.5 if model.learning_rate == "auto" else 1 + 1e-12
    assert np.max(np.abs(outputs)) <= largest * reach
    assert np.all(np.isfinite(model.expert_weights_))
    assert abs(model.expert_weights_.sum() - 1) < 1e-12


@pytest.mark.parametrize("learning_rate", [1e-300, 0.5, 1e300, *RATES[1:]])
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-160, 1e-150, 1e-12, 1e12, 1e139])
def test_labels_and_weights_of_any_size(stream, learning_rate, size):
    """Squares may leave the range of floating-point numbers, outputs may not."""
    X, y, w = stream
    y = y / np.abs(y).max()
    one_large = np.where(np.arange(200) == 50, size, y)
    growing = y * np.geomspace(1, size, 200)
    for labels in (size * y, one_large, growing, growing[::-1]):
        model = OnlineTVDenoiser(learning_rate=learning_rate)
        outputs = model.partial_fit_predict(X, labels)
        assert_sound(model, outputs, np.abs(labels).max())
    for weights in (size * w, size * w[::-1], np.geomspace(1, size, 200)):
        model = OnlineTVDenoiser(learning_rate=learning_rate)
        assert_sound(model, model.partial_fit_predict(X, y, weights), 1.0)


@pytest.mark.parametrize("learning_rate", RATES)
@pytest.mark.parametrize("bound", [1e-200, 1e-160, 1e12, 1e200])
def test_bounds_of_any_size(stream, learning_rate, bound):
    X, y, _ = stream
    y = y / np.abs(y).max() * min(1.0, bound)
    model = OnlineTVDenoiser(learning_rate=learning_rate, bound=bound)
    outputs = model.partial_fit_predict(X, y)
    # Substitution has the accuracy of the bound, not of the labels.
    largest = np.abs(y).max() + (1e-13 * bound if learning_rate == "mixable" else 0)
    assert_sound(model, outputs, largest)


@pytest.mark.parametrize("learning_rate", RATES)
def test_labels_whose_square_overflows_are_refused(learning_rate):
    with pytest.raises(ValueError, match=r"\[2\]|row 2\b"):
        OnlineTVDenoiser(learning_rate=learning_rate).fit(
            np.arange(3.0)[:, None], [1.0, 2.0, 1e200]
        )


@pytest.mark.parametrize("learning_rate", ["theory", "mixable", "auto"])
def test_predictions_scale_with_the_labels(stream, learning_rate):
    X, y, w = stream

    def outputs(c):
        model = OnlineTVDenoiser(learning_rate=learning_rate)
        return model.partial_fit_predict(X, c * y, sample_weight=w) / c

    expected = outputs(1.0)
    for c in (2.0**-30, 2.0, 2.0**40):
        assert_array_equal(outputs(c), expected)
    for c in (1e-8, -1.0, 3.0, 1e8):
        assert_allclose(outputs(c), expected, rtol=0, atol=1e-11)


def test_numeric_rate_is_in_inverse_squared_units(stream):
    X, y, w = stream
    expected = OnlineTVDenoiser(learning_rate=0.5).partial_fit_predict(X, y, w)
    c = 2.0**20
    result = OnlineTVDenoiser(learning_rate=0.5 / c**2).partial_fit_predict(X, c * y, w)
    assert_array_equal(result / c, expected)


@pytest.mark.parametrize("learning_rate", [0.5, "auto"])
def test_high_level_keeps_its_digits(learning_rate):
    """1e9 + N(0, 1) is denoised as N(0, 1) is, after the first two labels."""
    noise = np.random.default_rng(1).normal(size=1000)
    X = np.arange(1000.0)[:, None]
    level = OnlineTVDenoiser(learning_rate=learning_rate).partial_fit_predict(
        X, 1e9 + noise
    )
    plain = OnlineTVDenoiser(learning_rate=learning_rate).partial_fit_predict(X, noise)
    assert np.max(np.abs(level - 1e9 - plain)[1:]) < 1e-5


def test_noise_scale_does_not_depend_on_the_level():
    noise = np.random.default_rng(1).normal(size=1000)
    X = np.arange(1000.0)[:, None]
    plain = OnlineTVDenoiser().fit(X, noise).noise_scale_
    assert abs(OnlineTVDenoiser().fit(X, 1e9 + noise).noise_scale_ - plain) < 1e-6
    # The median of some hundred differences has a standard error of about a tenth.
    assert 0.7 < plain < 1.3


def test_float32_is_computed_in_double():
    y = (1e7 + np.random.default_rng(2).normal(size=20_000)).astype(np.float32)
    X = np.arange(20_000.0)[:, None]
    single = OnlineTVDenoiser(learning_rate=1e-3).partial_fit_predict(X, y)
    double = OnlineTVDenoiser(learning_rate=1e-3).partial_fit_predict(
        X, y.astype(np.float64)
    )
    assert_array_equal(single, double)
    assert abs(np.mean(single[1000:]) - np.mean(y[1000:].astype(float))) < 1e-2


@pytest.mark.parametrize("learning_rate", ["theory", "mixable", 0.5, "auto"])
@pytest.mark.parametrize("pruning", ["aflh", None])
def test_long_silence_then_a_level(learning_rate, pruning):
    y = np.repeat([0.0, 100.0], [5000, 200])
    X = np.arange(5200.0)[:, None]
    model = OnlineTVDenoiser(
        learning_rate=learning_rate, pruning=pruning, bound=100.0, keep_history=False
    )
    predictions = model.partial_fit_predict(X, y)
    assert np.all(np.isfinite(model.expert_weights_))
    assert abs(model.expert_weights_.sum() - 1) < 1e-12
    assert predictions[-1] >= 95


def test_weights_survive_huge_losses():
    """Losses of 1e4 and more a round at rate 1: one expert takes all but 1/(t+1)."""
    y = np.repeat([0.0, 100.0, -5.0], [50, 50, 50])
    X = np.arange(150.0)[:, None]
    for pruning in ("aflh", None):
        model = OnlineTVDenoiser(learning_rate=1.0, pruning=pruning)
        for t in range(150):
            model.partial_fit(X[t : t + 1], y[t : t + 1])
            weights = model.expert_weights_
            assert np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-12
        late = np.asarray(model.expert_births_) >= 100
        assert weights[late].sum() > 1 - 1e-12


@pytest.mark.parametrize("learning_rate", RATES)
def test_short_and_degenerate_input(learning_rate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in ([3.0], [3.0, 4.0], [3.0] * 30, [0.0] * 30):
            X = np.arange(float(len(y)))[:, None]
            for positions in (X, np.zeros_like(X)):
                model = OnlineTVDenoiser(learning_rate=learning_rate)
                outputs = model.partial_fit_predict(positions, y)
                assert outputs[0] == 0
                assert_allclose(outputs[1:], y[0], rtol=1e-14)
                forecast = model.predict([[99.0]])[0]
                assert min(y) * (1 - 1e-14) <= forecast <= max(y) * (1 + 1e-14)
        model = OnlineTVDenoiser(learning_rate=learning_rate).fit([[0.0]], [3.0])
        assert_allclose(model.predict([[-1.0], [0.0], [1.0]]), 3.0, rtol=1e-14)


# ---------------------------------------------------------------- weights, missing


def test_weight_may_be_a_scalar(stream, assert_same):
    X, y, _ = stream
    for c in (1.0, 0.5):
        scalar = OnlineTVDenoiser(learning_rate=0.7).fit(X, y, sample_weight=c)
        array = OnlineTVDenoiser(learning_rate=0.7).fit(X, y, np.full(200, c))
        assert_same(scalar, array)


def test_unit_weights_are_the_plain_case(stream, assert_same):
    X, y, _ = stream
    for settings in SETTINGS:
        plain = OnlineTVDenoiser(**settings).fit(X, y)
        assert_same(OnlineTVDenoiser(**settings).fit(X, y, np.ones(200)), plain)


@pytest.mark.parametrize("learning_rate", ["theory", "mixable"])
def test_a_common_weight_from_one_up_is_inert_at_named_rates(stream, learning_rate):
    """The rate is divided by the largest weight; smaller weights than 1 slow down."""
    X, y, _ = stream
    plain = OnlineTVDenoiser(learning_rate=learning_rate).fit(X, y).values_
    for c in (1.0, 8.0, 1e5, 1e200):
        model = OnlineTVDenoiser(learning_rate=learning_rate)
        values = model.fit(X, y, np.full(200, c)).values_
        assert_allclose(values, plain, rtol=0, atol=1e-12)
    slow = OnlineTVDenoiser(learning_rate=learning_rate)
    slow.fit(X, y, np.full(200, 0.1))
    assert np.max(np.abs(slow.values_ - plain)) > 1e-3


def test_a_weight_scales_the_numeric_rate(stream):
    """w (y - x)^2 at rate eta is (y - x)^2 at rate w eta."""
    X, y, _ = stream
    weighted = OnlineTVDenoiser(learning_rate=0.25).fit(X, y, np.full(200, 2.0))
    assert_array_equal(
        weighted.values_, OnlineTVDenoiser(learning_rate=0.5).fit(X, y).values_
    )


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_passed_over_rows_leave_no_trace(stream, settings):
    """Weight zero and a skipped NaN: the row is predicted, nothing else."""
    X, y, w = stream
    w = w + 0.1
    gone = np.zeros(200, dtype=bool)
    gone[[2, 3, 77, 78, 79, 140]] = True
    compact = OnlineTVDenoiser(**settings)
    expected = compact.partial_fit_predict(X[~gone], y[~gone], w[~gone])
    rows = np.flatnonzero(~gone)
    y_missing, w_zero = np.where(gone, np.nan, y), np.where(gone, 0.0, w)
    for labels, weights in ((y_missing, w), (y, w_zero)):
        model = OnlineTVDenoiser(missing="skip", **settings)
        outputs = model.partial_fit_predict(X, labels, weights)
        assert_array_equal(outputs[~gone], expected)
        assert_array_equal(outputs[[2, 3]], [outputs[4], outputs[4]])
        assert_array_equal(model.values_[~gone], compact.values_)
        assert_array_equal(model.expert_weights_, compact.expert_weights_)
        assert_array_equal(model.predict([[1e9]]), compact.predict([[1e9]]))
        assert (model.n_samples_seen_, compact.n_samples_seen_) == (200, 194)
        births = np.asarray(compact.expert_births_)
        assert_array_equal(model.expert_births_[:-1], rows[births[:-1]])
        assert model.expert_births_[-1] == 200
        assert model.bound_ == compact.bound_


def test_trailing_and_leading_rows_passed_over():
    X, y = np.arange(6.0)[:, None], np.array([np.nan, np.nan, 2.0, 3.0, np.nan, np.nan])
    for learning_rate in RATES:
        model = OnlineTVDenoiser(learning_rate=learning_rate, missing="skip")
        outputs = model.partial_fit_predict(X, y)
        compact = OnlineTVDenoiser(learning_rate=learning_rate)
        inner = compact.partial_fit_predict(X[2:4], y[2:4])
        last = compact.predict([[9.0]])[0]
        assert_array_equal(outputs, [0.0, 0.0, inner[0], inner[1], last, last])
        assert_array_equal(model.expert_weights_, compact.expert_weights_)
        births = np.asarray(model.expert_births_)
        assert_array_equal(births[:-1], np.asarray(compact.expert_births_)[:-1] + 2)


def test_missing_in_one_output_skips_that_output_only(stream):
    X, y, _ = stream
    Y = np.column_stack([y, y])
    Y[10:20, 1] = np.nan
    model = OnlineTVDenoiser(missing="skip").fit(X, Y)
    for k in range(2):
        single = OnlineTVDenoiser(missing="skip").fit(X, Y[:, k])
        assert_array_equal(model.values_[:, k], single.values_)


def test_skipping_in_a_batch_of_nothing_but_missing(stream):
    X, y, _ = stream
    model = OnlineTVDenoiser(missing="skip").fit(X, y)
    before = model.predict([[1e9]])
    model.partial_fit([[1000.0], [1001.0]], [np.nan, np.nan])
    assert_array_equal(model.predict([[1e9]]), before)
    assert model.n_samples_seen_ == 202
