"""The benchmark of rates: its slopes, its streams, and how it goes on."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "rates.py"
pytestmark = pytest.mark.skipif(
    not PATH.exists(), reason="tests run without the repository"
)


@pytest.fixture(scope="module")
def rates():
    spec = importlib.util.spec_from_file_location("rates", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_slope_of_a_power_law(rates):
    rng = np.random.default_rng(0)
    sizes = np.array([1e3, 3e3, 1e4, 3e4, 1e5])
    exact, half = rates.slope(sizes, 7 * np.tile(sizes ** (1 / 3), (4, 1)))
    assert abs(exact - 1 / 3) < 1e-12 and half < 1e-12
    covered = 0
    for _ in range(400):
        noise = np.exp(0.2 * rng.normal(size=(10, len(sizes))))
        mean, half = rates.slope(sizes, sizes**0.5 * noise)
        covered += abs(mean - 0.5) <= half
    assert 360 <= covered <= 396


def test_streams_have_their_variation(rates):
    for budget in (1.0, 10.0):
        _, truth = rates.steps(3000, budget, 0)
        assert abs(np.abs(np.diff(truth)).sum() - budget) < 1e-9


def test_interrupted_runs_go_on(rates, tmp_path, monkeypatch):
    cases = [(100, 2.0), (200, 2.0)]
    found = rates.run(["steps"], cases, 2, 1, tmp_path)
    alone = rates.run(["steps"], cases, 2, 1, None)
    for key, methods in alone.items():
        for name, values in methods.items():
            np.testing.assert_array_equal(found[key][name], values)
    # What was measured is not measured again.
    monkeypatch.setitem(rates.KINDS, "steps", None)
    again = rates.run(["steps"], cases, 2, 1, tmp_path)
    for key, methods in found.items():
        for name, values in methods.items():
            np.testing.assert_array_equal(again[key][name], values)
