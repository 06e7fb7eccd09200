"""Experts with coefficients: kernel against numpy, projection, identities, digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import lsq_linear

from sktvdenoise import OnlineTVDenoiser, _linear
from sktvdenoise._engines import FLHEngine, NumpyFLHEngine
from sktvdenoise.linear_experts import newton_step, project_box
from sktvdenoise.losses import LOSSES

EXPERTS = {
    "squared": ["vaw", "ridge", "ons", "ogd"],
    "poisson": ["ons", "ogd"],
    "logistic": ["ons", "ogd"],
}
PAIRS = [(loss, base) for loss, bases in EXPERTS.items() for base in bases]


def stream(loss, n=120, d=3, seed=0, size=1.0):
    """Rows, labels that turn their backs on the rows half way, and weights."""
    rng = np.random.default_rng(seed)
    X = size * rng.normal(size=(n, d))
    z = X @ np.linspace(1, -1, d) * np.where(np.arange(n) < n // 2, 1.0, -1.0)
    w = rng.uniform(0.1, 3, size=n)
    w[[4, n // 4]] = 0.0
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * z)).astype(float), w
    if loss == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float), w
    return X, z + 0.3 * rng.normal(size=n), w


def make(cls, base, loss="squared", rate=0.5, **changes):
    parameters = dict(bound=None, alpha=1.0, pruned=True, intercept=True)
    return cls(base, LOSSES[loss], rate, **{**parameters, **changes})


def run(engine, X, y, w=None):
    state, out = engine.start(X.shape[1]), np.empty(len(y))
    state = engine.learn(state, X, y, np.ones(len(y)) if w is None else w, out)
    return state, out


# ---------------------------------------------------------------- the reference


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("pruned", [True, False])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("rate", ["theory", 0.5])
@pytest.mark.parametrize("loss, base", PAIRS)
def test_kernel_equals_numpy(loss, base, rate, bounded, pruned, intercept):
    theory = rate == "theory"
    X, y, w = stream(loss, size=0.05 if theory and loss != "squared" else 1.0)
    bound = None
    if bounded:
        bound = 30.0 if base in ("vaw", "ridge") else 0.6
    # The Newton step on squares is chaotic at first if its matrix starts small.
    alpha = 30.0 if base == "ons" and not theory else 1.0
    parameters = dict(bound=bound, pruned=pruned, intercept=intercept, alpha=alpha)
    compiled = make(FLHEngine, base, loss, rate, **parameters)
    plain = make(NumpyFLHEngine, base, loss, rate, **parameters)
    (a, found), (b, expected) = run(compiled, X, y, w), run(plain, X, y, w)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert_allclose(compiled.predict(a, X), plain.predict(b, X), rtol=1e-9, atol=1e-9)
    for one, other in zip(compiled.coef(a), plain.coef(b)):
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert_array_equal(compiled.experts(a)[0], plain.experts(b)[0])
    assert_allclose(compiled.experts(a)[1], plain.experts(b)[1], rtol=1e-8, atol=1e-12)
    assert len(compiled.experts(a)[0]) == (len(plain.experts(b)[0]))
    for name in ("rate_of", "bound_of", "label_bound_of", "row_bound_of"):
        assert getattr(compiled, name)(a) == getattr(plain, name)(b)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 12])
@pytest.mark.parametrize("base", ["vaw", "ons"])
def test_kernel_equals_numpy_for_any_number_of_features(base, d):
    X, y, _ = stream("squared", n=80, d=d)
    parameters = dict(alpha=100.0, bound=50.0 if base == "vaw" else 0.4)
    expected = run(make(NumpyFLHEngine, base, **parameters), X, y)[1]
    found = run(make(FLHEngine, base, **parameters), X, y)[1]
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- the projection


def problems(d, n=40):
    rng = np.random.default_rng(d)
    for k in range(n):
        root = rng.normal(size=(d, d)) * 10 ** rng.uniform(-1, 1, size=d)
        matrix = root @ root.T + 10 ** rng.uniform(-3, 0) * np.eye(d)
        yield matrix, 3 * (1 + k % 3) * rng.normal(size=d)


def kernel_projection(matrix, point, box):
    """With P = U D U' from the matrix, as the kernel keeps it."""
    flipped = np.linalg.cholesky(np.linalg.inv(matrix)[::-1, ::-1])[::-1, ::-1]
    scale = np.diag(flipped)
    x = point.copy()
    _linear.project_box(scale**2, flipped / scale, x, box)
    return x


def numpy_projection(matrix, point, box):
    return project_box(np.linalg.inv(matrix), point, box)


@pytest.mark.parametrize("project", [numpy_projection, kernel_projection])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 30])
def test_projection_is_optimal(d, project):
    for matrix, point in problems(d):
        x = project(matrix, point, 1.0)
        assert np.max(np.abs(x)) <= 1.0
        scale = np.abs(matrix).max() * np.abs(point).max()
        gradient = matrix @ (x - point) / scale
        inside = np.abs(x) < 1.0
        tolerance = 1e-7  # the matrix is known by its inverse only
        assert np.max(np.abs(gradient[inside]), initial=0) < tolerance
        assert np.max((gradient * np.sign(x))[~inside], initial=-1) < tolerance
        root = np.linalg.cholesky(matrix).T
        rival = lsq_linear(root, root @ point, (-1, 1), method="bvls", tol=1e-12).x
        objective = [(v - point) @ matrix @ (v - point) for v in (x, rival)]
        assert objective[0] <= objective[1] * (1 + 1e-8) + 1e-12


@pytest.mark.parametrize("project", [numpy_projection, kernel_projection])
def test_projection_in_the_plain_norm_is_a_clip(project):
    rng = np.random.default_rng(0)
    for diagonal in (np.ones(6), rng.uniform(0.1, 9, size=6)):
        point = 2 * rng.normal(size=6)
        found = project(np.diag(diagonal), point, 0.7)
        assert_allclose(found, np.clip(point, -0.7, 0.7), atol=1e-15)
    assert project(np.array([[3.0]]), np.array([-4.0]), 2.5)[0] == -2.5


def test_newton_step_stays_in_the_box():
    rng = np.random.default_rng(1)
    root, theta, matrix = np.eye(3), np.zeros(3), np.eye(3)
    for _ in range(50):
        gradient = rng.normal(size=3)
        matrix += np.outer(gradient, gradient)
        free = theta - np.linalg.solve(matrix, gradient) / 0.1
        root, theta = newton_step(root, theta, gradient, 0.1, box=0.5)
        assert_allclose(root @ root.T @ matrix, np.eye(3), atol=1e-10)
        expected = numpy_projection(matrix, free, 0.5)
        assert_allclose(theta, expected, atol=1e-10)
        assert np.max(np.abs(theta)) <= 0.5
    assert np.max(np.abs(theta)) == 0.5


# ---------------------------------------------------------------- identities


@pytest.mark.parametrize("pruned", [True, False])
def test_ridge_on_ones_is_the_denoiser(pruned):
    """Follow the leader on a constant row is the running mean, newborn included."""
    y = np.repeat([0.0, 5.0, -2.0], 80) + np.random.default_rng(2).normal(size=240)
    engine = make(FLHEngine, "ridge", intercept=True, pruned=pruned, alpha=1e-15)
    state, found = run(engine, np.empty((240, 0)), y)
    denoiser = OnlineTVDenoiser(learning_rate=0.5, pruning="aflh" if pruned else None)
    expected = denoiser.partial_fit_predict(np.arange(240.0), y)
    assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(y).max())
    assert_array_equal(engine.experts(state)[0], denoiser.expert_births_)
    assert_allclose(engine.experts(state)[1], denoiser.expert_weights_, atol=1e-11)


def test_descent_on_ones_is_the_running_mean():
    y = np.random.default_rng(3).normal(size=100)
    engine = make(FLHEngine, "ogd", intercept=False)
    state, _ = run(engine, np.ones((100, 1)), y)
    coefficients, births, _ = _linear.experts(state)
    for theta, birth in zip(coefficients[:, 0], births):
        if birth < 100:
            assert abs(theta - y[birth:].mean()) < 1e-12


def test_vaw_is_ridge_that_has_seen_the_row_with_label_zero():
    X, y, _ = stream("squared", n=30)
    vaw = make(FLHEngine, "vaw", intercept=False)
    ridge = make(FLHEngine, "ridge", intercept=False)
    prediction = run(vaw, X, y)[1]
    weights = vaw.experts(run(vaw, X[:-1], y[:-1])[0])[1]
    state, _ = run(ridge, X, np.append(y[:-1], 0.0))
    thetas, births, _ = _linear.experts(state)
    by_birth = {birth: x for birth, x in zip(births, thetas @ X[-1])}
    before = run(vaw, X[:-1], y[:-1])[0]
    expected = 0.0
    for birth, weight in zip(*vaw.experts(before)):
        if birth == 29:
            continue  # the newborn predicts 0
        if birth in by_birth:
            expected += weight * by_birth[birth]
        else:  # died in this round
            rows = slice(birth, 29)
            gram = np.eye(3) + X[rows].T @ X[rows] + np.outer(X[-1], X[-1])
            expected += weight * X[-1] @ np.linalg.solve(gram, X[rows].T @ y[rows])
    assert abs(prediction[-1] - expected) < 1e-12
    assert len(weights) == len(vaw.experts(before)[1])


@pytest.mark.parametrize("base", ["vaw", "ridge"])
@pytest.mark.parametrize("alpha", [0.1, 20.0])
def test_intercepts_are_penalised_by_their_distance_from_a_label(base, alpha):
    """The last one before the birth; of the first expert the first."""
    X, y, w = stream("squared", n=40)
    y, w = y + 70, w + 0.1
    engine = make(FLHEngine, base, alpha=alpha)
    state, _ = run(engine, X[:-1], y[:-1], w[:-1])
    rows = np.column_stack([X, np.ones(40)])
    x, expected = rows[-1], 0.0
    for birth, weight in zip(*engine.experts(state)):
        origin = y[max(birth - 1, 0)]
        seen, counts = rows[birth:39], w[birth:39, None]
        gram = alpha * np.eye(4) + (counts * seen).T @ seen
        gram += np.outer(x, x) * (base == "vaw")
        moments = (counts * seen).T @ (y[birth:39] - origin)
        expected += weight * (origin + x @ np.linalg.solve(gram, moments))
    assert abs(engine.predict(state, X[-1:])[0] - expected) < 1e-10


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_ridge_experts_solve_their_problem(alpha):
    X, y, w = stream("squared", n=60)
    engine = make(FLHEngine, "ridge", intercept=False, alpha=alpha)
    thetas, births, _ = _linear.experts(run(engine, X, y, w)[0])
    for theta, birth in zip(thetas, births):
        gram = alpha * np.eye(3) + (w[birth:, None] * X[birth:]).T @ X[birth:]
        expected = np.linalg.solve(gram, X[birth:].T @ (w[birth:] * y[birth:]))
        assert_allclose(theta, expected, atol=1e-12)


def test_newborns():
    """The last label; the mixture's coefficients."""
    X, y, _ = stream("squared", n=50)
    for base in ("vaw", "ridge"):
        state, _ = run(make(FLHEngine, base, rate=1e-9), X[:1], y[:1])
        # Two experts of weight 1/2, of which the newborn predicts y[0].
        engine = make(FLHEngine, base, rate=1e-9)
        theta, _, _ = _linear.experts(state)
        x = np.append(X[1], 1.0)
        leverage = x @ x - (x @ np.append(X[0], 1)) ** 2 / (2 + X[0] @ X[0])
        # The first expert started from the first label, once it had predicted it.
        old = y[0] + (x @ theta[0] - y[0]) / (1 + (leverage if base == "vaw" else 0))
        assert abs(engine.predict(state, X[1:2])[0] - (old + y[0]) / 2) < 1e-12
    state, _ = run(make(FLHEngine, "ogd", pruned=False), X, y)
    thetas, births, weights = _linear.experts(state)
    newborn = np.argmax(births)
    others = np.arange(len(births)) != newborn
    mixture = weights[others] @ thetas[others] / weights[others].sum()
    # Its intercept would have predicted the last label.
    assert_allclose(thetas[newborn][:-1], mixture[:-1], atol=1e-14)
    assert abs(thetas[newborn] @ np.append(X[-1], 1) - y[-1]) < 1e-14


# ---------------------------------------------------------------- digits


def exact_ridge(X, y, alpha):
    """The solution for two features, in integers."""
    one = 1 << 80
    X, y = ([[int(v * 2.0**40) << 40 for v in row] for row in a] for a in (X, y[None]))
    a, b = zip(*X)
    (y,) = y
    alpha = int(alpha * 2.0**80) * one
    aa, ab, bb = (sum(map(int.__mul__, p, q)) for p, q in ((a, a), (a, b), (b, b)))
    ay, by = (sum(map(int.__mul__, p, y)) for p in (a, b))
    aa, bb = aa + alpha, bb + alpha
    det = aa * bb - ab * ab
    solution = ((bb * ay - ab * by), (aa * by - ab * ay))
    return np.array([(v << 100) // det / 2.0**100 for v in solution])


@pytest.mark.parametrize("level", [1e3, 1e6])
def test_no_digits_are_lost_over_many_rows(level):
    """Features (1, level + N(0, 1)), ridge 1e-6, an expert that has seen 2e4 rows."""
    birth, n = 2**15, 20_000
    rng = np.random.default_rng(4)
    # Multiples of 2^-40 keep the reference exact.
    feature = np.round(rng.normal(size=birth + n) * 2.0**20) / 2.0**20 + level
    y = np.round((2 * feature + rng.normal(size=birth + n)) * 2.0**20) / 2.0**20
    X = np.column_stack([np.ones(birth + n), feature])
    alpha = 2.0**-20
    engine = make(FLHEngine, "ridge", intercept=False, alpha=alpha, rate=1e-6)
    state, out = run(engine, X, y)
    thetas, births, _ = _linear.experts(state)
    start = birth - 1
    expected = exact_ridge(X[start:], y[start:], alpha)
    found = thetas[list(births).index(start)]
    assert abs(found[1] - expected[1]) < 1e-9
    assert abs(found[0] - expected[0]) < 1e-9 * level
    assert np.isfinite(out).all()
