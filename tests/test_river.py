"""The denoiser in river gives the numbers of the denoiser."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sktvdenoise import OnlineTVDenoiser

pytest.importorskip("river")

from river import checks, evaluate, metrics, preprocessing, stats

from sktvdenoise.river import RiverDenoiser

RATES = ["auto", "theory", "mixable", 0.5]
SETTINGS = dict(learning_rate="mixable", bound=40.0, pruning=None, missing="skip")


def labels(n=300):
    rng = np.random.default_rng(0)
    return np.repeat([0.0, 5.0, -2.0], n // 3) + rng.normal(size=n)


def one_by_one(model, y):
    predictions = []
    for label in y:
        predictions.append(model.predict_one({}))
        model.learn_one({}, label)
    return predictions


@pytest.mark.parametrize("learning_rate", RATES)
def test_predictions_are_those_of_the_denoiser(learning_rate):
    y = labels()
    expected = OnlineTVDenoiser(learning_rate=learning_rate).partial_fit_predict(
        np.arange(len(y)), y
    )
    model = RiverDenoiser(learning_rate=learning_rate)
    assert_array_equal(one_by_one(model, y), expected)
    assert model.denoiser.n_samples_seen_ == len(y)


def test_progressive_validation():
    y = labels()
    expected = OnlineTVDenoiser().partial_fit_predict(np.arange(len(y)), y)
    model = preprocessing.StandardScaler() | RiverDenoiser()
    dataset = [({"t": t, "noise": -label}, label) for t, label in enumerate(y)]
    metric = evaluate.progressive_val_score(dataset, model, metrics.MAE())
    np.testing.assert_allclose(metric.get(), np.abs(y - expected).mean(), rtol=1e-12)


def test_delayed_labels():
    y = labels()
    model, twin = RiverDenoiser(), OnlineTVDenoiser()
    dataset = [({"t": float(t)}, label) for t, label in enumerate(y)]
    metric = evaluate.progressive_val_score(
        dataset, model, metrics.MSE(), moment="t", delay=4.5
    )
    total = stats.Mean()
    for t, label in enumerate(y):
        if t > 4:
            twin.learn_one(y[t - 5])
        total.update((label - twin.predict_one()) ** 2)
    np.testing.assert_allclose(metric.get(), total.get(), rtol=1e-12)


def test_parameters_survive_cloning():
    model = RiverDenoiser(**SETTINGS)
    assert model._get_params() == SETTINGS
    model.learn_one({}, 30.0)
    fresh = model.clone()
    assert fresh._get_params() == SETTINGS
    assert fresh.predict_one({}) == 0.0
    assert model.predict_one({}) != 0.0
    assert {k: getattr(fresh.denoiser, k) for k in SETTINGS} == SETTINGS
    other = model.clone({"bound": 7.0})
    assert other._get_params() == {**SETTINGS, "bound": 7.0}
    with pytest.raises(ValueError, match="bound=7"):
        other.learn_one({}, 7.5)


def test_a_wrong_parameter_is_named():
    with pytest.raises(ValueError, match="learning_rate"):
        RiverDenoiser(learning_rate="fast").learn_one({}, 1.0)


def test_features_are_ignored_and_predicting_learns_nothing():
    y = labels()
    plain, model = RiverDenoiser(), RiverDenoiser()
    one_by_one(plain, y)
    for t, label in enumerate(y):
        before = pickle.dumps(model)
        model.predict_one({"t": t, "text": "anything"})
        assert pickle.dumps(model) == before
        model.learn_one({"t": np.nan}, label)
    assert model.predict_one({}) == plain.predict_one({})


def test_memory_stays():
    model = RiverDenoiser()
    sizes = []
    for label in np.random.default_rng(1).normal(size=4096):
        model.learn_one({}, label)
        if model.denoiser.n_samples_seen_ in (1024, 4096):
            sizes.append(len(pickle.dumps(model)))
    assert abs(sizes[1] - sizes[0]) < 16


@pytest.mark.parametrize(
    "check",
    list(checks.yield_checks(RiverDenoiser())),
    ids=lambda check: check.__name__,
)
def test_checks_of_river(check):
    check(RiverDenoiser())


def test_river_is_imported_only_here():
    code = "import sys, sktvdenoise; assert 'river' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
