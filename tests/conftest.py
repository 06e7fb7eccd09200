"""What tests share: a stream, a comparison of denoisers, the command line."""

import io
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sktvdenoise.__main__ import main

STATE = ["n_samples_seen_", "bound_", "expert_births_", "expert_weights_"]
HISTORY = ["positions_", "values_"]


@pytest.fixture
def stream():
    """200 labels with two jumps, positions with ties, and weights with zeros."""
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 5.0, -2.0], [80, 60, 60]) + rng.normal(size=200)
    X = np.floor(np.arange(200) * 0.8)[:, None]
    w = rng.uniform(0.1, 3, size=200)
    w[rng.choice(np.arange(5, 200), size=10, replace=False)] = 0.0
    return X, y, w


@pytest.fixture
def assert_same():
    """Check that two fitted denoisers have the same state, bit for bit."""

    def check(a, b):
        for name in STATE + (HISTORY if a.keep_history else []):
            left, right = getattr(a, name), getattr(b, name)
            if isinstance(left, list):
                assert len(left) == len(right)
            else:
                left, right = [left], [right]
            for one, other in zip(left, right):
                assert_array_equal(one, other, err_msg=name)
        future = np.array([[1e6]])
        assert_array_equal(a.predict(future), b.predict(future))

    return check


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command line in an empty folder: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*argv, stdin=None):
        if stdin is not None:
            stream = stdin if isinstance(stdin, io.RawIOBase) else io.BytesIO(stdin)
            stdin = io.TextIOWrapper(io.BufferedReader(stream))
            monkeypatch.setattr(sys, "stdin", stdin)
        status = main([str(arg) for arg in argv])
        return status, *capsys.readouterr()

    return run
