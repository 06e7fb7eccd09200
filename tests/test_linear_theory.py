"""What theorems promise of follow-the-leading-history with covariates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sktvdenoise import FLHRegressor
from sktvdenoise._engines import FLHEngine, NumpyFLHEngine
from sktvdenoise.linear_experts import _predictions
from sktvdenoise.losses import LOSSES, Loss, example_13

SETTINGS = [
    ("squared", "vaw"),
    ("squared", "ridge"),
    ("squared", "ons"),
    ("squared", "ogd"),
    ("poisson", "ons"),
    ("poisson", "ogd"),
    ("logistic", "ons"),
    ("logistic", "ogd"),
]


def make_stream(loss, kind, n, d, seed=0, size=1.0):
    """Rows of norms up to `size`, coefficients in [-1, 1]; the first row is extreme."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= (
        size * rng.uniform(0.2, 1, size=n)[:, None] / np.linalg.norm(X, axis=1)[:, None]
    )
    X[0] *= size / np.linalg.norm(X[0])
    if kind == "jumps":
        u = np.repeat(rng.uniform(-1, 1, size=(3, d)), -(-n // 3), axis=0)[:n]
    elif kind == "drift":
        t = np.arange(n)[:, None]
        u = np.sin(2 * np.pi * (t / n + rng.random(d)))
    else:
        u = rng.uniform(-1, 1, size=(n, d))
    z = np.einsum("ij,ij->i", X, u)
    if loss == "squared":
        y = np.clip(z + 0.2 * rng.normal(size=n), -1, 1)
        y[0] = 1.0
    elif loss == "poisson":
        y = np.minimum(rng.poisson(np.exp(z)), 3).astype(float)
        y[0] = 3.0
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-4 * z))).astype(float)
    return X, y, u


def losses_of_experts(engine, X, y, w):
    """Losses in each round: of the mixture, and of the expert born in each round."""
    loss, n = engine.loss, len(y)
    state, out = engine.start(X.shape[1]), np.empty(1)
    own, experts = np.empty(n), np.full((n, n), np.nan)
    # The first row sets the ranges; its round is the first.
    for t in range(n):
        row = slice(t, t + 1)
        if t:
            settings, _, flh, _ = state
            z = _predictions(settings, flh, engine._augmented(X)[t])
            experts[flh.births - 1, t] = w[t] * loss.scale * loss.value(y[t], z)
        state = engine.learn(state, X[row], y[row], w[row], out)
        own[t] = w[t] * loss.scale * loss.value(y[t], out[0])
        if not t:
            experts[0, 0] = own[0]
    assert state[2].round == n + 1  # a single epoch
    return own, experts, state


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pruned", [True, False])
@pytest.mark.parametrize("kind", ["jumps", "drift", "wild"])
@pytest.mark.parametrize(
    "loss, base, intercept",
    [(*s, False) for s in SETTINGS]
    + [("squared", "vaw", True), ("squared", "ridge", True)],
)
def test_interval_bound(loss, base, intercept, kind, pruned, weighted):
    """sum over r..s of f(x) - f(x^r) <= ln(s) / eta, for all r <= s."""
    n, d = 90, 2
    X, y, _ = make_stream(loss, kind, n, d, size=1.0 if loss == "squared" else 0.3)
    w = np.random.default_rng(1).uniform(0.1, 1, size=n) if weighted else np.ones(n)
    parameters = dict(bound=1.0, alpha=1.0, pruned=pruned, intercept=intercept)
    engine = NumpyFLHEngine(base, LOSSES[loss], "theory", **parameters)
    own, experts, state = losses_of_experts(engine, X, y, w)
    rate = engine.rate_of(state)
    excess = np.nancumsum(own - experts, axis=1)
    start = np.arange(n)
    excess -= np.where(start > 0, excess[start, start - 1], 0.0)[:, None]
    rounds = np.arange(1, n + 1)
    alive = ~np.isnan(experts) & (rounds >= rounds[:, None])
    gap = np.where(alive, excess - np.log(rounds) / rate, -np.inf)
    assert np.max(gap) <= 1e-9 / min(rate, 1)
    kernel = FLHEngine(base, LOSSES[loss], "theory", **parameters)
    out = np.empty(n)
    kernel.learn(kernel.start(d), X, y, w, out)
    expected = w * LOSSES[loss].scale * LOSSES[loss].value(y, out)
    assert_allclose(own, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pruned", [True, False])
def test_interval_bound_at_a_mixable_rate_is_not_trivial(pruned):
    """At a rate ten thousand times the theory's the inequality fails: it has teeth."""
    X, y, _ = make_stream("squared", "wild", 90, 2)
    parameters = dict(bound=1.0, alpha=1.0, pruned=pruned, intercept=False)
    engine = NumpyFLHEngine("vaw", LOSSES["squared"], 1e4 / 8, **parameters)
    own, experts, _ = losses_of_experts(engine, X, y, np.ones(90))
    excess = np.cumsum(own - experts, axis=1)
    assert np.nanmax(excess[0] - np.log(np.arange(1, 91)) / (1e4 / 8)) > 0


@pytest.mark.parametrize("kind, n_pieces", [("jumps", 3), ("drift", 12)])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_dynamic_regret_of_the_newton_step(d, kind, n_pieces):
    r"""Theorem 14's chain: FLH on each piece, the Newton step against one point.

    On a piece of any length up to n the Newton step that starts with it is at most
    (d ln(1 + n G+^2 / (d eps)) + 1) / (2 beta) above every point of the box, and FLH is
    at most ln(n) / alpha above it.
    """
    n = 400
    for seed in range(3):
        X, y, u = make_stream("squared", kind, n, d, seed)
        model = FLHRegressor(
            "ons", learning_rate="theory", bound=1.0, pruning=None, fit_intercept=False
        )
        predictions = model.partial_fit_predict(X, y)
        c = model.constants_
        pieces = np.array_split(np.arange(n), n_pieces)
        comparator = np.concatenate(
            [np.tile(u[p].mean(0), (len(p), 1)) for p in pieces]
        )
        assert np.max(np.abs(comparator)) <= 1
        regret = np.sum((y - predictions) ** 2)
        regret -= np.sum((y - np.einsum("ij,ij->i", X, comparator)) ** 2)
        logs = d * np.log1p(n * c.G_plus**2 / (d * c.epsilon)) + 1
        bound = n_pieces * (np.log(n) / c.alpha + logs / (2 * c.newton))
        assert regret <= bound


# ---------------------------------------------------------------- constants


def test_constants_of_the_example():
    """Closed forms for squared loss with R = B = Y = 1."""
    for d in (1, 2, 3):
        c = example_13(
            LOSSES["squared"], bound=1, label_bound=1, row_bound=1, n_features=d
        )
        a = 2 * (1 + np.sqrt(d))
        a_plus = 2 * (1 + np.sqrt(d) * (1 + a))
        assert_allclose([c.a, c.G, c.a_plus, c.b, c.c], [a, a, a_plus, 2, 2])
        assert_allclose(c.alpha, 2 / a_plus**2)
        zeta = min(1 / (4 * a_plus * (2 * np.sqrt(d) + a)), c.alpha)
        diameter = 2 * (1 + a) * np.sqrt(d)
        assert_allclose([c.zeta, c.epsilon], [zeta, 1 / (zeta / 2 * diameter) ** 2])


@pytest.mark.parametrize("loss", ["squared", "poisson", "logistic"])
def test_constants_bound_the_derivatives(loss):
    known = LOSSES[loss]
    R, B, Y, d = 0.5, 0.8, 2.0, 2
    c = example_13(known, bound=B, label_bound=Y, row_bound=R, n_features=d)
    rng = np.random.default_rng(2)
    low, high = known.labels(Y)
    y = rng.uniform(low, high, size=2000)
    x = rng.normal(size=(2000, d))
    x *= R / np.linalg.norm(x, axis=1, keepdims=True)
    for box, slope, bends in ((B, c.a, False), (c.box, c.a_plus, True)):
        z = np.einsum("ij,ij->i", x, rng.uniform(-box, box, size=(2000, d)))
        assert np.max(np.abs(known.scale * known.derivative(y, z))) <= slope
        if bends:
            bend = known.scale * known.second_derivative(y, z)
            assert c.c <= np.min(bend) and np.max(bend) <= c.b
            # Exp-concavity: f'' >= alpha f'^2.
            square = (known.scale * known.derivative(y, z)) ** 2
            assert np.min(bend - c.alpha * square) >= 0


def test_out_of_range_constants_are_refused():
    with pytest.raises(ValueError, match="Logistic leave the range"):
        example_13(
            LOSSES["logistic"], bound=1, label_bound=1, row_bound=1e3, n_features=2
        )


# ---------------------------------------------------------------- ranges


def test_ranges_double_and_experts_start_again():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, size=(60, 2)), rng.uniform(-1, 1, size=60)
    y[0], y[20], y[40] = 1.0, 1.5, 9.0
    model = FLHRegressor(learning_rate="theory")
    bounds, births = [], []
    for t in range(60):
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        bounds.append(model.bound_)
        births.append(model.expert_births_[0])
    assert bounds == [1.0] * 20 + [2.0] * 20 + [9.0] * 20
    assert births[19] > 0 and births[20] == 20 and births[40] == 40
    assert model.learning_rate_ == 1 / (8 * 81)

    X = rng.uniform(-1, 1, size=(50, 2)) / np.sqrt(2)
    X[0], X[30], X[40] = [1.0, 0.0], [0.0, 1.5], [0.5, 0.0]
    ons = FLHRegressor("ons", learning_rate="theory", bound=0.5, fit_intercept=False)
    ons.partial_fit(X[:30], np.ones(30))
    assert (ons.row_bound_, ons.label_bound_, ons.bound_) == (1.0, 1.0, 0.5)
    before = ons.predict(X[30:31])[0]
    assert ons.partial_fit_predict(X[30:31], [0.5])[0] == pytest.approx(
        before, abs=1e-15
    )
    assert ons.row_bound_ == 1.5
    assert ons.constants_ == example_13(
        LOSSES["squared"], bound=0.5, label_bound=1.0, row_bound=1.5, n_features=2
    )
    assert ons.expert_births_[0] == 30
    ons.partial_fit(X[31:41], np.zeros(10), sample_weight=np.r_[np.ones(9), 3.0])
    assert ons.expert_births_[0] == 40


@pytest.mark.parametrize("expert", ["ons", "ogd"])
def test_counts_have_constants_for_small_rows_with_an_intercept(expert):
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-0.3, 0.3, size=(100, 2)), rng.poisson(1.0, size=100) * 1.0
    model = FLHRegressor(expert, loss="poisson", learning_rate="theory").fit(X, y)
    most = np.sqrt(np.max(np.sum(X**2, axis=1)) + 1)
    assert most <= model.row_bound_ <= 1.25 * most
    assert np.isfinite(model.predict(X)).all()
    message = r"norm .* labels of size .* 3 coefficients up to 1 .* may predict up to"
    with pytest.raises(ValueError, match=message):
        model.fit(10 * X, y)
    with pytest.raises(ValueError, match="choose expert='ons' or 'ogd'"):
        FLHRegressor(loss="poisson", learning_rate="theory").fit(X, y)


def test_predictions_of_the_theory_scale_with_the_labels():
    X, y, _ = make_stream("squared", "jumps", 100, 3)
    for expert in ("vaw", "ridge"):
        model = FLHRegressor(expert, learning_rate="theory")
        one = model.fit(X, y).predict(X)
        for factor in (2.0**-30, 2.0**40):
            assert_allclose(
                model.fit(X, factor * y).predict(X), factor * one, rtol=1e-12
            )


# ---------------------------------------------------------------- losses of one's own


class PaperSquares(Loss):
    def value(self, y, u):
        return (y - u) ** 2

    def derivative(self, y, u):
        return 2 * (u - y)

    def second_derivative(self, y, u):
        return 2 + np.zeros_like(u + y)


class LogCosh(Loss):
    def value(self, y, u):
        return np.logaddexp(u - y, y - u) - np.log(2)

    def derivative(self, y, u):
        return np.tanh(u - y)


def test_own_loss_equals_the_compiled_one():
    X, y, _ = make_stream("squared", "drift", 100, 2)
    for expert in ("ons", "ogd"):
        parameters = dict(learning_rate="theory", bound=1.0)
        own = FLHRegressor(expert, loss=PaperSquares(), **parameters)
        compiled = FLHRegressor(expert, **parameters)
        assert_allclose(
            own.partial_fit_predict(X, y),
            compiled.partial_fit_predict(X, y),
            atol=1e-10,
        )
        assert own.constants_ == compiled.constants_


def test_own_loss_learns_and_tells_what_it_lacks():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.standard_t(2, size=300)
    model = FLHRegressor("ons", loss=LogCosh(), learning_rate=1.0).fit(X, y)
    assert np.max(np.abs(model.coef_ - [1, -2])) < 0.2
    with pytest.raises(ValueError, match=r"needs second_derivative.*LogCosh"):
        FLHRegressor("ons", loss=LogCosh(), learning_rate="theory").fit(X, y)
    with pytest.raises(ValueError, match="'vaw' is for squared loss"):
        FLHRegressor(loss=LogCosh(), learning_rate=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"'ridge' is for squared loss.*poisson"):
        FLHRegressor("ridge", loss="poisson", learning_rate=1.0).fit(X, np.abs(y))
