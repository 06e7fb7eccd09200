"""The bounds of the theory hold and fit together; so do its streams."""

from itertools import product

import numpy as np
import pytest

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.linear import FLHRegressor
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle
from sktvdenoise.theory import (
    denoising_regret_bound,
    dynamic_regret_bound,
    exp_concave_regret_bound,
    generate_bins,
    key_partition,
    kkt_conditions,
    loss_gradients,
    make_example_21,
    make_lower_bound,
    make_smooth,
    regret_decomposition,
    regret_lower_bound,
    single_cuts,
    smooth_variation,
    split_monotonic,
    strongly_convex_regret_bound,
    walk,
)

# Bounds: Theorems 1 and 14, Propositions 10, 11 and 15.


def _flh(n_samples, value, slope, rate, radius, state, step):
    """Losses of FLH over all experts, each one number in [-radius, radius]."""
    at, states = np.zeros(n_samples), np.full(n_samples, state)
    weights, losses = np.zeros(n_samples), np.zeros(n_samples)
    for t in range(n_samples):
        weights[:t] *= t / (t + 1)
        weights[t] = 1 / (t + 1)
        alive = slice(t + 1)
        losses[t] = value(t, weights[alive] @ at[alive])
        weights[alive] *= np.exp(-rate * value(t, at[alive]))
        weights[alive] /= weights[alive].sum()
        slopes = slope(t, at[alive])
        states[alive], steps = step(slopes, states[alive])
        at[alive] = np.clip(at[alive] - steps, -radius, radius)
    return losses


def test_theorem_14():
    n_samples, bound = 300, 1.0
    lipschitz, smoothness = 1.0, 0.25  # of ln(1 + exp(-m)), |x| <= 1
    radius = bound + lipschitz / smoothness
    alpha = np.exp(-radius)
    gamma = 0.5 * min(1 / (4 * lipschitz * 2 * radius), alpha)
    random = np.random.default_rng(0)
    x = random.choice([-1.0, 1.0], n_samples)
    for truth in (np.repeat([1.0, -1.0, 0.5], 100), random.choice([-1.0, 1.0], 300)):
        y = (random.random(n_samples) < 1 / (1 + np.exp(-3 * x * truth))).astype(float)

        def value(t, u, y=y):
            return np.logaddexp(0, x[t] * u) - y[t] * x[t] * u

        def slope(t, u, y=y):
            return x[t] * (1 / (1 + np.exp(-x[t] * u)) - y[t])

        def newton(slopes, states):
            states = states + slopes**2
            return states, slopes / (gamma * states)

        start = 1 / (gamma * 2 * radius) ** 2
        losses = _flh(n_samples, value, slope, alpha, radius, start, newton)
        for u in (truth, np.zeros(300), np.repeat(np.mean(truth), 300)):
            regret = np.sum(losses) - np.sum(value(slice(None), u))
            assert regret <= exp_concave_regret_bound(
                n_samples,
                path_variation(u),
                bound,
                lipschitz=lipschitz,
                smoothness=smoothness,
                exp_concavity=alpha,
                pruning=None,
            )


def _newton_gap(value, slope, box, gamma):
    """Least f(v) - f(x) - z - gamma z^2/2, where z = f'(x) (v - x), over the box."""
    x, v = np.meshgrid(*[np.linspace(-box, box, 201)] * 2)
    z = slope(x) * (v - x)
    return np.min(value(v) - value(x) - z - gamma * z**2 / 2)


def test_newton_steps_need_the_diameter_of_the_box():
    # exp(-f) = 1 + 0.9 x is concave: alpha = 1. G is 0.9 near 0, the box |x| <= B + G.
    bound, lipschitz = 1e-3, 0.9 / (1 - 0.9e-3)

    def value(x):
        return -np.log(1 + 0.9 * x)

    def slope(x):
        return -0.9 / (1 + 0.9 * x)

    box = bound + lipschitz
    steepest = abs(slope(-box))
    smoothness = steepest**2
    steps = 2 * bound + 2 * lipschitz / smoothness
    zeta = min(1 / (4 * steepest * steps), 1.0)
    assert _newton_gap(value, slope, box, zeta / 2) < -1.0
    right = 0.5 * min(1 / (4 * steepest * 2 * box), 1.0)
    assert _newton_gap(value, slope, box, right) >= -1e-12
    # Losses of a linear prediction don't need it: all of alpha is right.
    alpha = 2.0 / (2 * (1 + 3.0)) ** 2
    gap = _newton_gap(lambda x: (1 - x) ** 2, lambda x: 2 * (x - 1), 3.0, alpha)
    assert gap >= -1e-12


@pytest.mark.parametrize("pruning", ["aflh", None])
def test_theorem_14_for_the_estimator(pruning):
    # Rows of norm 1, the first label the largest: constants don't change on the way.
    random = np.random.default_rng(1)
    angles = random.uniform(0, 2 * np.pi, 300)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    truth = np.repeat([[1.0, -1.0], [-1.0, -1.0], [0.0, 0.5]], 100, axis=0)
    y = np.clip(np.sum(X * truth, axis=1) + 0.3 * random.standard_normal(300), -1, 1)
    y[0] = 1.0
    model = FLHRegressor(
        "ons", learning_rate="theory", bound=1.0, pruning=pruning, fit_intercept=False
    )
    y_pred = model.partial_fit_predict(X, y)
    constants = model.constants_
    for budget in (0.0, 1.0, 5.0):
        regret = dynamic_regret(y, y_pred, tv_budget=budget, X=X, bound=1.0)
        assert regret <= exp_concave_regret_bound(
            300,
            budget,
            1.0,
            lipschitz=constants.G_plus,
            smoothness=constants.beta,
            exp_concavity=constants.alpha,
            n_features=2,
            box=max(constants.box, 1.0 + constants.G_plus / constants.beta),
            newton=constants.newton,
            pruning=pruning,
        )


def test_proposition_15():
    n_samples, bound = 300, 1.0
    random = np.random.default_rng(0)
    x = random.uniform(0.7, 1.0, n_samples)
    convexity, smoothness = 2 * 0.7**2, 2.0
    lipschitz = 8.0  # 2 |x| |y - x u| with |y| <= 1 and |u| <= 3, bound + 2 below
    radius = 3.0
    for truth in (np.repeat([1.0, -1.0, 0.5], 100), random.choice([-1.0, 1.0], 300)):
        y = np.clip(x * truth + 0.3 * random.standard_normal(n_samples), -1, 1)

        def value(t, u, y=y):
            return (y[t] - x[t] * u) ** 2

        def slope(t, u, y=y):
            return 2 * x[t] * (x[t] * u - y[t])

        def descent(slopes, states):
            states = states + 1.0
            return states, slopes / (convexity * states)

        # From |u| <= 1 the mean gradient, at most 4, leads to |u| <= 3 at most.
        rate = convexity / lipschitz**2
        losses = _flh(n_samples, value, slope, rate, radius, 0.0, descent)
        for u in (truth, np.zeros(300), np.repeat(np.mean(truth), 300)):
            assert np.max(np.abs(u)) <= bound
            regret = np.sum(losses) - np.sum(value(slice(None), u))
            assert regret <= strongly_convex_regret_bound(
                n_samples,
                path_variation(u),
                lipschitz=lipschitz,
                smoothness=smoothness,
                strong_convexity=convexity,
                pruning=None,
            )


def _rate(function, name, factor, **kwargs):
    """Exponent of the bound in one argument, where the rate dominates."""
    n = {"n_samples": 10**15, "tv_budget": 1e3} | kwargs
    grown = n | {name: n[name] * factor}
    return np.log(function(**grown) / function(**n)) / np.log(factor)


def test_exponents_of_the_bounds():
    logs = dict(abs=0.05)
    losses = dict(lipschitz=1.0, smoothness=1.0)
    for function, constants in (
        (denoising_regret_bound, dict(bound=1.0, pruning=None)),
        (
            exp_concave_regret_bound,
            dict(bound=1.0, exp_concavity=0.5, pruning=None) | losses,
        ),
        (
            strongly_convex_regret_bound,
            dict(strong_convexity=0.5, pruning=None) | losses,
        ),
    ):
        assert _rate(function, "tv_budget", 8.0, **constants) == pytest.approx(
            2 / 3, 0.01
        )
        assert _rate(function, "n_samples", 8, **constants) == pytest.approx(
            1 / 3, **logs
        )
    constants = dict(bound=1.0, pruning=None)
    assert _rate(denoising_regret_bound, "bound", 8.0, **constants) == pytest.approx(
        4 / 3, 0.01
    )
    several = constants | dict(n_outputs=8)
    assert _rate(denoising_regret_bound, "n_outputs", 8, **several) == pytest.approx(
        1 / 3, **logs
    )


def test_rate_of_the_lower_bound():
    for n, budget, bound in (
        (10**5, 1.0, 1.0),
        (10**5, 20.0, 3.0),
        (3 * 10**4, 0.5, 1.0),
    ):
        rate = np.cbrt(n) * np.cbrt(budget) ** 2 * np.cbrt(bound) ** 4
        lower = regret_lower_bound(n, budget, bound)
        assert 2 ** (-4 / 3) * rate <= lower <= 0.7 * rate
    assert regret_lower_bound(1000, 8.0, 1.0, n_outputs=8) == pytest.approx(
        8 * regret_lower_bound(1000, 1.0, 1.0)
    )
    assert regret_lower_bound(1000, 0.0, 2.0) >= 2.0


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("budget", [0.0, 0.7, 2.0, 100.0])
def test_proposition_11_exactly(n, budget):
    # The mean over all coin streams: what the best method loses minus the oracle.
    gains = [
        n - tv_oracle(np.array(y), budget).loss for y in product([-1.0, 1.0], repeat=n)
    ]
    assert 0.5 <= regret_lower_bound(n, budget, 1.0) <= np.mean(gains) + 1e-9
    if budget == 100.0:
        assert regret_lower_bound(n, budget, 1.0) == pytest.approx(n)


@pytest.mark.parametrize("learning_rate", ["theory", "mixable", "auto"])
def test_proposition_11_for_the_denoiser(learning_rate):
    regrets = []
    for seed in range(30):
        y, truth = make_lower_bound(1000, 2.0, noise="coin", random_state=seed)
        assert not truth.any()
        denoiser = OnlineTVDenoiser(learning_rate=learning_rate, bound=1.0)
        y_pred = denoiser.partial_fit_predict(np.arange(1000), y)
        regrets.append(dynamic_regret(y, y_pred, tv_budget=2.0))
    error = np.std(regrets) / np.sqrt(30)
    lower = regret_lower_bound(1000, 2.0, 1.0)
    assert np.mean(regrets) >= lower - 3 * error
    assert lower <= denoising_regret_bound(1000, 2.0, 1.0)


def test_bounds_fit_together():
    for n, budget in product((1, 10, 10**4), (0.0, 1.0, 100.0)):
        lower = regret_lower_bound(n, budget, 1.0)
        full = denoising_regret_bound(n, budget, 1.0, pruning=None)
        assert lower <= full <= denoising_regret_bound(n, budget, 1.0) <= 4.0 * n
    # 3 (S + n^(1/3) C^(2/3) beta^(1/3) S^(2/3)), S = 8, n = 27, C = 1, beta = 1.
    assert dynamic_regret_bound(27, 1.0, 8.0, smoothness=1.0) == pytest.approx(60.0)


# Streams: Example 21, Proposition 11, Remark 12.


@pytest.mark.parametrize("n_samples", [6, 8, 50, 1000])
def test_example_21(n_samples):
    y, u = make_example_21(n_samples)
    oracle = tv_oracle(y, 1.0)
    assert len(y) == n_samples and path_variation(u) == 1.0
    np.testing.assert_allclose(oracle.comparator, u, atol=1e-12)
    assert oracle.multiplier == pytest.approx(n_samples / 2)
    assert kkt_conditions(u, u - y, n_samples / 2).residual == 0.0


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_lower_bound_stream(n_outputs):
    for budget in (0.0, 1.0, 50.0):
        y, truth = make_lower_bound(
            400, budget, 2.0, n_outputs=n_outputs, random_state=0
        )
        assert y.shape == truth.shape == ((400,) if n_outputs == 1 else (400, 3))
        assert np.max(np.abs(y)) <= 2.0 and np.max(np.abs(truth)) <= 1.0
        assert path_variation(truth) <= budget * (1 + 1e-12)
        for column in truth.reshape(400, -1).T:
            assert path_variation(column) <= budget / n_outputs * (1 + 1e-12)


@pytest.mark.parametrize("ball", ["sobolev", "holder"])
@pytest.mark.parametrize("n_samples", [1, 2, 100, 1001])
def test_remark_12(ball, n_samples):
    order = {"sobolev": 2, "holder": np.inf}[ball]
    limit = smooth_variation(n_samples, 0.3, ball=ball)
    for seed in range(20):
        u = make_smooth(n_samples, 0.3, ball=ball, random_state=seed)
        if n_samples > 1:
            assert np.linalg.norm(np.diff(u), order) == pytest.approx(0.3)
        assert path_variation(u) <= limit * (1 + 1e-12)
    if n_samples > 1:
        steps = n_samples - 1
        size = 0.3 / (np.sqrt(steps) if ball == "sobolev" else 1.0)
        line = size * np.arange(n_samples)
        assert path_variation(line) == pytest.approx(limit)


def test_the_truth_itself_has_regret_of_the_rate():
    # Uniform noise tells the truth of a block soon, so that the errors of a learner
    # who knows the blocks add up to C B / 4 only: the rate is what the oracle gains.
    n_samples, budget = 10**5, 2.0
    y, truth = make_lower_bound(n_samples, budget, random_state=0)
    size = np.abs(truth[0])
    starts = np.flatnonzero(np.diff(truth, prepend=0.0))
    n_unknown = 0
    for block in np.split(y, starts[1:]):
        revealing = np.abs(block) > 0.5 - size
        n_unknown += np.argmax(revealing) + 1 if revealing.any() else len(block)
    lower = regret_lower_bound(n_samples, budget, 0.5)
    assert n_unknown * size**2 < 0.1 * lower
    assert dynamic_regret(y, truth, tv_budget=budget) > 0.5 * lower


# Input.


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: walk([0.0, np.nan], 1.0), "comparator contains NaN.*row 1"),
        (lambda: walk([0.0], 0.0), "bound must be a finite number > 0"),
        (lambda: key_partition([], 1.0), "comparator|0 sample"),
        (lambda: generate_bins([0.0, 1.0], [0, 0, 0], 1.0), r"signs\[1\]"),
        (lambda: generate_bins([0.0, 1.0], [0, 1], 1.0), "one row more"),
        (lambda: split_monotonic([0.0], [0, 0], 1, 1), "no rows"),
        (lambda: single_cuts([0.0, 1.0], [0.0], 1.0), "must be the same"),
        (lambda: kkt_conditions([0.0], [[0.0]], 1.0), "must be the same"),
        (lambda: kkt_conditions([0.0], [0.0], -1.0), "multiplier"),
        (lambda: kkt_conditions([2.0], [0.0], 1.0, bound=1.0), r"comparator\[0\]"),
        (lambda: loss_gradients([0.0], [0.0], loss="huber"), "loss must be one of"),
        (lambda: loss_gradients([0.0, 1.0], [0.0]), "shape of y"),
        (lambda: loss_gradients([0.0], [[1.0]], X=[[1.0, 2.0]]), "shape of X"),
        (lambda: loss_gradients([[0.0]], [[1.0]], X=[[1.0]]), "With covariates"),
        (lambda: regret_decomposition([0], [0, 1], [0], [0, 1]), "y_pred has"),
        (lambda: regret_decomposition([0], [0], [0], [0, 2]), "edges must be"),
        (lambda: regret_decomposition([0], [0], [0], [0.0, 1.0]), "edges must be"),
        (
            lambda: regret_decomposition([0], [0], [0], [0, 1], loss="poisson"),
            "smoothness must be given",
        ),
        (lambda: denoising_regret_bound(0, 1.0, 1.0), "n_samples must be an integer"),
        (lambda: denoising_regret_bound(9, 1.0, 1.0, pruning="x"), "pruning"),
        (lambda: denoising_regret_bound(9, -1.0, 1.0), "tv_budget"),
        (
            lambda: strongly_convex_regret_bound(
                9, 1.0, lipschitz=1.0, smoothness=1.0, strong_convexity=2.0
            ),
            "no loss has both",
        ),
        (
            lambda: exp_concave_regret_bound(
                9, 1.0, 1.0, lipschitz=1.0, smoothness=1.0, exp_concavity=1.0, box=1.5
            ),
            "box=1.5 must be at least B",
        ),
        (lambda: make_example_21(7), "even and at least 6"),
        (lambda: make_lower_bound(9, 1.0, noise="x"), "noise must be"),
        (lambda: make_smooth(9, 1.0, ball="x"), "ball must be"),
        (lambda: smooth_variation(9, np.inf), "radius"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
