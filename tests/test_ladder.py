import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sktvdenoise._ladder import Kind
from sktvdenoise._ladder import allocate as allocate_table

from sktvdenoise import ladder, pool
from sktvdenoise.datasets import make_drifting_regression
from sktvdenoise.ladder import LADDER, TRACKERS, Ladder


def odd_columns():
    """Constant, equal, late and badly scaled columns."""
    X, y, _, _ = make_drifting_regression(
        150, 7, spread=3.0, offset=30.0, correlation=0.9, random_state=6
    )
    X[:60, 2] = 0.0
    X[:, 3] = 7.0
    X[:, 4] = X[:, 1]
    X[:, 5] = np.where(np.arange(150) < 100, -2.0, X[:, 5])
    return X, y


def stream(n=150, d=3, seed=0, **options):
    return make_drifting_regression(n, d, random_state=seed, **options)[:2]


def with_outliers(labels=(), rows=(), size=1e6):
    X, y = stream(noise=1.0)
    y[list(labels)] = size
    X[list(rows), 0] *= size
    return X, y


STREAMS = {
    "jumps": stream(),
    "walk": stream(d=1, drift="walk", step=0.1),
    "still, hardly any noise": stream(d=5, drift="still", noise=1e-3),
    "odd columns": odd_columns(),
    "sizes": tuple(a * 1e6 for a in stream(d=2, offset=1e3)),
    "equal labels": (stream()[0], np.full(150, 3.0)),
    "zeros, then others": (stream()[0], np.repeat([0.0, -1.0, 5.0], 50)),
    "outlying labels": with_outliers(labels=[1, 2, 40, 90, 91, 92, 93, 94, 95]),
    "other units": (stream()[0], np.repeat([1.0, 1e7], 75) * stream()[1]),
    "another level": (stream()[0], np.repeat([1.0, 1e7], 75) + stream()[1]),
    "outlying rows": with_outliers(rows=[0, 30, 31, 60], labels=[60]),
}


def unguarded(n):
    """Predictions of a guard that never does better, for long."""
    return np.full(n, np.inf)


def run(X, y, weights=None, guard=None, state=None):
    """Predictions of the ladder, and its state."""
    n = len(y)
    state = ladder.allocate(X.shape[1]) if state is None else state
    weights = np.ones(n) if weights is None else weights
    out = np.empty(n)
    ladder.learn(state, X, y, weights, unguarded(n) if guard is None else guard, out)
    return out, state


def predict(state, X):
    out = np.empty(len(X))
    ladder.predict(state, X, unguarded(len(X)), out)
    return out


def alone(row, X, y, weights=None):
    """Coefficients and intercept of a single member."""
    state = allocate_table(X.shape[1], [row], TRACKERS[:1])
    run(X, y, weights, state=state)
    return ladder.coefficients(state)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_kernel_is_the_reference(name, weighted):
    X, y = STREAMS[name]
    weights = np.ones(len(y))
    if weighted:
        weights = np.random.default_rng(1).uniform(0.1, 3, len(y))
    out, state = run(X, y, weights)
    # Equal columns leave some members a condition of 1e9 or so.
    tolerance = (1e-6 if name == "odd columns" else 1e-9) * np.abs(y).max()
    reference = Ladder(X.shape[1])
    for i, (x, label, weight) in enumerate(zip(X, y, weights)):
        assert out[i] == pytest.approx(reference.predict(x), abs=tolerance)
        reference.learn(x, label, weight)
    coef, intercept = ladder.coefficients(state)
    expected_coef, expected_intercept = reference.coefficients()
    sizes = np.abs(X).max(axis=0) + 1e-300
    assert_allclose(coef * sizes, expected_coef * sizes, atol=1e-7 * np.abs(y).max())
    assert_allclose(intercept, expected_intercept, atol=1e-7 * np.abs(y).max())
    assert_allclose(ladder.weights(state), reference.weights.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("name", STREAMS)
def test_batches_agree_bit_for_bit(name):
    X, y = STREAMS[name]
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0], len(y))
    whole, last = run(X, y, weights)
    state = ladder.allocate(X.shape[1])
    parts = []
    for rows in np.split(np.arange(len(y)), [1, 8, 9, 60]):
        X_part = np.asfortranarray(X[rows])[:, ::-1][:, ::-1]
        parts.append(run(X_part, y[rows], weights[rows], state=state)[0])
    assert_array_equal(np.concatenate(parts), whole)
    assert_array_equal(state, last)


@pytest.mark.parametrize("name", STREAMS)
def test_predicting_is_what_learning_does_first(name):
    X, y = STREAMS[name]
    out, _ = run(X, y)
    for end in (0, 1, 2, 5, 20, 100):
        _, state = run(X[:end], y[:end])
        before = state.copy()
        assert_array_equal(predict(state, X[end : end + 1]), out[end : end + 1])
        predict(state, X[:7])
        assert_array_equal(state, before)


def test_rows_without_weight_are_predicted_only():
    X, y = STREAMS["jumps"]
    weights = np.ones(len(y))
    weights[[0, 3, 20, 149]] = 0.0
    seen = weights > 0
    out, state = run(X, np.where(seen, y, 1e9), weights)
    expected, expected_state = run(X[seen], y[seen])
    assert_array_equal(out[seen], expected)
    assert_allclose(out[0], 0.0)
    assert_array_equal(predict(state, X), predict(expected_state, X))


def test_constant_weights_change_nothing():
    X, y = STREAMS["walk"]
    assert_array_equal(run(X, y, np.full(len(y), 0.7))[0], run(X, y)[0])


@pytest.mark.parametrize("name", ["jumps", "walk", "odd columns"])
def test_coefficients_are_those_of_the_predictions(name):
    X, y = STREAMS[name]
    _, state = run(X, y)
    coef, intercept = ladder.coefficients(state)
    new = X[-20:]
    assert_allclose(predict(state, new), new @ coef + intercept, atol=1e-6)


@pytest.mark.parametrize("factor", [2.0, -1.0, 2.0**-30, -(2.0**40)])
@pytest.mark.parametrize("name", STREAMS)
def test_powers_of_two_and_signs_of_labels_change_nothing(name, factor):
    X, y = STREAMS[name]
    assert_array_equal(run(X, factor * y)[0], factor * run(X, y)[0])


def test_predictions_scale_with_the_labels():
    X, y = STREAMS["jumps"]
    assert_allclose(run(X, 1e7 * y)[0], 1e7 * run(X, y)[0], atol=1e-9 * 1e7)


def test_units_of_single_features_change_nothing():
    # But for the common walks, which take units at their word.
    X, y = STREAMS["jumps"]
    table = [row for row in LADDER if row[1] != Kind.COMMON_WALK]
    outs = []
    for factors in ([1, 1, 1], [2.0**20, 2.0**-20, -1]):
        state = allocate_table(3, table, TRACKERS)
        outs.append(run(X * factors, y, state=state)[0])
    assert_array_equal(*outs)


@pytest.mark.parametrize("factor", [1, 1 - 2**-6, 0.5])
def test_a_ridge_solves_its_problem(factor):
    X, y = stream(400, 3, offset=5.0, spread=1.0, seed=3)
    weights = np.ones(400)
    weights[::7] = 0.0
    coef, intercept = alone(("ridge", Kind.RIDGE, (factor, 0.3), 1), X, y, weights)
    X, y = X[weights > 0], y[weights > 0]
    U = np.column_stack([np.ones(len(y)), X - X[0]])
    ages = factor ** np.arange(len(y) - 1, -1, -1.0)
    penalty = 0.3 * np.array([1e-6, *X.var(axis=0)])
    theta = np.linalg.solve(
        (U * ages[:, None]).T @ U + np.diag(penalty), U.T @ (ages * (y - y[0]))
    )
    assert_allclose(coef, theta[1:], rtol=1e-8)
    assert_allclose(intercept, y[0] + theta[0] - X[0] @ theta[1:], rtol=1e-8)


def test_digits_last_for_a_million_rows():
    # Features of one size, so that the scales of a walk never change.
    rng = np.random.default_rng(4)
    n = 1_000_000
    X = np.column_stack([rng.choice([-1.0, 1.0], n), rng.choice([-1e6, 1e6], n)])
    y = 2.0 + X @ [3.0, -1e-6] + rng.standard_normal(n)
    coef, intercept = alone(("walk", Kind.WALK, (0, 0, 10, 10), 1), X, y)
    Z = np.column_stack([np.ones(n), X / [1.0, 1e6]])
    theta = np.linalg.solve(Z.T @ Z + np.eye(3) / 10, Z.T @ y)
    assert_allclose([intercept, *coef * [1.0, 1e6]], theta, rtol=1e-9)


def test_digits_last_far_from_zero():
    rng = np.random.default_rng(5)
    n = 200_000
    X = 1e6 + rng.standard_normal((n, 2))
    y = (X - 1e6) @ [1.0, -2.0] + rng.standard_normal(n)
    coef, _ = alone(("ridge", Kind.RIDGE, (1, 0.001), 1), X, y)
    centred = (X - 1e6) - (X - 1e6).mean(axis=0)
    theta = np.linalg.solve(
        centred.T @ centred + 0.001 * np.diag(X.var(axis=0)), centred.T @ y
    )
    assert_allclose(coef, theta, rtol=1e-8)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_labels_of_any_size(size):
    X, y = STREAMS["jumps"]
    out, state = run(X, size * y)
    assert_allclose(out / size, run(X, y)[0], atol=1e-9)
    assert np.isfinite(ladder.coefficients(state)[0]).all()


def test_a_label_beyond_all_sizes_starts_the_ladder_again():
    X, y = STREAMS["jumps"]
    _, state = run(X, y)
    out, _ = run(X, 1e100 * y, state=state)
    assert np.mean((out / 1e100 - y)[100:] ** 2) < 2 * np.mean(
        (run(X, y)[0] - y)[100:] ** 2
    )


def test_without_noise_the_coefficients_are_found():
    X, y = stream(120, 4, drift="still", noise=0.0, seed=7)
    out, _ = run(X, y)
    assert np.max(np.abs(out - y)[20:]) < 0.05 * y.std()
    assert np.max(np.abs(out - y)[60:]) < 0.01 * y.std()


@pytest.mark.parametrize("size", [1e2, -1e4, 1e9])
@pytest.mark.parametrize("row", [4, 8, 50, 200])
def test_an_outlying_label_spoils_no_other_row(row, size):
    X, y = stream(300, drift="still", noise=1.0)
    spoilt = y.copy()
    spoilt[row] = size
    usual = (run(X, y)[0] - y) ** 2
    errors = (run(X, spoilt)[0] - y) ** 2
    assert np.sum(errors[row + 1 :]) < 1.1 * np.sum(usual[row + 1 :])


@pytest.mark.parametrize("row", [0, 1, 2, 3, 4, 8, 50, 200])
def test_an_outlying_feature_spoils_few_rows(row):
    X, y = stream(300, drift="still", noise=1.0)
    spoilt = X.copy()
    spoilt[row, 0] *= 1e6
    usual = (run(X, y)[0] - y) ** 2
    errors = (run(spoilt, y)[0] - y) ** 2
    assert np.sum(errors[row + 20 :]) < 1.1 * np.sum(usual[row + 20 :])
    assert np.sum(errors[row + 1 :]) < 1.3 * np.sum(usual[row + 1 :])


@pytest.mark.parametrize("size", [1e4, 1e9])
def test_an_outlier_among_the_first_labels_is_forgotten(size):
    X, y = stream(300, drift="still", noise=1.0)
    for row in range(4):
        spoilt = y.copy()
        spoilt[row] = size
        errors = (run(X, spoilt)[0] - y) ** 2
        assert np.sum(errors[100:]) < 1.15 * np.sum((run(X, y)[0] - y)[100:] ** 2)


@pytest.mark.parametrize("factor", [1e2, 1e4, 1e9])
def test_what_keeps_coming_back_is_no_outlier(factor):
    X, y = stream(300, drift="still", noise=0.3)
    usual = np.mean((run(X, y)[0] - y)[170:] ** 2)
    sizes = np.where(np.arange(300) < 150, 1.0, factor)
    out, _ = run(X, y * sizes)
    assert np.max(np.abs(out / factor - y)[155:]) < np.max(np.abs(y))
    assert np.mean((out / factor - y)[170:] ** 2) < 3 * usual
    out, _ = run(X * sizes[:, None], y)
    assert np.mean((out - y)[170:] ** 2) < 3 * usual


def best_member(X, y, first):
    """Squared error of the best member in hindsight, from a row on."""
    losses = []
    for row in LADDER:
        state = allocate_table(X.shape[1], [row], TRACKERS[:1])
        losses.append(np.sum((run(X, y, state=state)[0] - y)[first:] ** 2))
    return min(losses)


# Options of a stream, and limits to the geometric mean and the largest of the ratios
# of the squared error to that of the best member in hindsight.
ACCURACY = [
    ({"drift": "still"}, 1.15, 1.3),
    ({"n_jumps": 8}, 1.0, 1.1),
    ({"drift": "walk", "step": 0.03}, 1.06, 1.12),
    ({"n_jumps": 4, "n_drifting": 1, "drifting_intercept": False}, 1.0, 1.1),
    ({"drift": "walk", "step": 0.1, "n_drifting": 0}, 1.06, 1.12),
    ({"n_jumps": 3, "spread": 3.0, "offset": 10.0, "correlation": 0.5}, 1.0, 1.1),
]


@pytest.mark.parametrize("options, mean, most", ACCURACY)
def test_as_good_as_the_best_member(options, mean, most):
    ratios = []
    for seed in range(6):
        X, y = stream(500, 4, noise=0.3, seed=seed, **options)
        out, _ = run(X, y)
        ratios.append(np.sum((out - y)[6:] ** 2) / best_member(X, y, 6))
    assert np.exp(np.mean(np.log(ratios))) < mean
    assert max(ratios) < most


# The guard.


def excess_limit(d):
    return 4 * (d + 1) + 46


def play(X, choose, n, weight=None, guarded=None):
    """Labels chosen in view of both predictions: largest excess in units of B^2 W."""
    state = ladder.allocate(X.shape[1])
    excess = bound = weight_bound = most = 0.0
    out = np.empty(1)
    rng = np.random.default_rng(8)
    for i in range(n):
        x = X[i : i + 1]
        guard = guarded(i, bound, rng)
        ladder.predict(state, x, np.array([guard]), out)
        y = choose(i, float(out[0]), guard, bound, rng)
        w = 1.0 if weight is None else weight(i, rng)
        ladder.learn(state, x, np.array([y]), np.array([w]), np.array([guard]), out)
        excess += w * ((y - out[0]) ** 2 - (y - guard) ** 2)
        bound, weight_bound = max(bound, abs(y)), max(weight_bound, w)
        most = max(most, excess / (bound**2 * weight_bound))
    return most


CHOICES = {
    "against the output": lambda i, x, g, b, rng: 1.0 if g > x else -1.0,
    "the guard's": lambda i, x, g, b, rng: g if abs(g) > 0.1 else 1.0,
    "random": lambda i, x, g, b, rng: rng.choice([-1.0, 1.0]),
    "growing": lambda i, x, g, b, rng: 1.01**i * (1.0 if g > x else -1.0),
    "doubling": lambda i, x, g, b, rng: 2.0 ** (i // 40) * (1.0 if g > x else -1.0),
}
GUARDS = {
    "random": lambda i, b, rng: b * rng.uniform(-1, 1),
    "alternating": lambda i, b, rng: b * (-1) ** i,
    "period of three": lambda i, b, rng: b * (i % 3 - 1),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("choice", CHOICES)
def test_loss_is_the_guards_plus_a_constant(choice, guard, weighted):
    X = np.random.default_rng(9).standard_normal((600, 1))
    weight = (lambda i, rng: rng.uniform(0.01, 2) * 1.005**i) if weighted else None
    most = play(X, CHOICES[choice], 600, weight, GUARDS[guard])
    assert most <= excess_limit(1)


def test_the_guard_joins_and_bounds_the_loss():
    # The guard knows labels that can't be predicted.
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((3000, 2)), rng.choice([-1.0, 1.0], 3000)
    out, _ = run(X, y, guard=y)
    free, _ = run(X, y)
    assert np.sum((free - y) ** 2) > 2000
    assert np.max(np.cumsum((out - y) ** 2)) <= excess_limit(2)
    assert np.max(np.abs(out - y)[500:]) < 1e-6


def test_the_account_is_the_references():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((400, 2))
    y = rng.choice([-1.0, 1.0], 400) * (1 + np.arange(400) // 150)
    weights = rng.uniform(0.5, 2, 400)
    guarded = np.clip(y + 0.3 * rng.standard_normal(400), -1, 1)
    out, _ = run(X, y, weights, guard=guarded)
    plain, _ = run(X, y, weights)
    account, shares = pool.Guard(), []
    for x, g, o, label, weight in zip(plain, guarded, out, y, weights):
        g = np.clip(g, -account.bound, account.bound)
        if account.tripped:
            x = np.clip(x, -1.5 * account.bound, 1.5 * account.bound)
        shares.append(account.share)
        assert o == pytest.approx((1 - account.share) * x + account.share * g)
        account = pool.guard_update(account, x, g, label, weight, patience=12)
    assert max(shares) > 0.9


def test_bytes_that_are_no_state_are_refused():
    state = ladder.allocate(2)
    for wrong in (state[:-8], state[:16], np.zeros(0, np.uint8)):
        with pytest.raises(ValueError, match="bytes"):
            ladder.weights(wrong)
