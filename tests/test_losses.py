"""The losses as functions, and total variation denoising under them."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, log_loss, mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, KFold

from sktvdenoise._likelihood import _Channel, likelihood_gap, solution
from sktvdenoise.losses import LOSSES
from sktvdenoise.offline import FusedLasso, fused_lasso

LIKELIHOODS = ["poisson", "logistic"]


def variation(u):
    return np.abs(np.diff(u, axis=0)).sum()


def labels(loss, n=200, seed=0, channels=None):
    """Labels of a wave with a jump, on the linear scale."""
    rng = np.random.default_rng(seed)
    u = np.sin(np.arange(n) * 6 / n) + np.where(np.arange(n) < n // 3, 1.5, -0.5)
    shape = (n,) if channels is None else (n, channels)
    u = u.reshape(-1, *[1] * (len(shape) - 1)) + np.zeros(shape)
    if loss == "poisson":
        return rng.poisson(np.exp(u)).astype(float)
    if loss == "logistic":
        return (rng.random(shape) < expit(u)).astype(float)
    return u + rng.normal(size=shape)


def objective(loss, y, u, alpha, w=1.0):
    return np.sum(w * LOSSES[loss].value(y, u)) + alpha * variation(u)


# ---- the functions ----


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_and_conjugates(name):
    loss = LOSSES[name]
    y, h = np.array([0.0, 0.2, 1.0, 1.0])[:, None], 1e-5
    u = np.linspace(-4, 4, 41)
    slope = (loss.value(y, u + h) - loss.value(y, u - h)) / (2 * h)
    assert np.max(np.abs(slope - loss.derivative(y, u))) < 1e-7
    bend = (loss.mean(u + h) - loss.mean(u - h)) / (2 * h)
    assert np.max(np.abs(bend - loss.second_derivative(y, u))) < 1e-7
    assert np.max(np.abs(loss.link(loss.mean(u)) - u)) < 1e-12
    # Fenchel and Young: equality exactly at the derivative
    v = loss.derivative(y, u)
    assert np.max(np.abs(loss.conjugate(y, v) + loss.value(y, u) - u * v)) < 1e-12
    w = loss.derivative(y, u[:, None, None] + np.zeros_like(u))
    assert np.min(loss.conjugate(y, w) + loss.value(y, u) - u * w) > -1e-12
    # Bregman divergence, also where it is small
    a, b = u[:, None], u + 1e-3
    direct = loss.value(0.0, a) - loss.value(0.0, b) - loss.derivative(0.0, b) * (a - b)
    assert np.max(np.abs(loss.divergence(a, b) - direct)) < 1e-12
    assert np.min(loss.divergence(a, b)) >= 0
    assert np.min(loss.value(y, u)) >= 0


def test_losses_are_finite_far_out():
    logistic, poisson = LOSSES["logistic"], LOSSES["poisson"]
    u = np.array([-800.0, 800.0])
    np.testing.assert_array_equal(logistic.mean(u), [0, 1])
    np.testing.assert_array_equal(logistic.value(np.array([1, 0]), u), [800, 800])
    np.testing.assert_array_equal(logistic.value(np.array([0, 1]), u), [0, 0])
    np.testing.assert_array_equal(logistic.divergence(u, -u), [800, 800])
    assert np.isinf(logistic.conjugate(0.5, 0.6)) and np.isinf(poisson.dual(-1.0))
    assert poisson.value(3.0, -800.0) == 2400 + 3 * np.log(3) - 3
    assert poisson.conjugate(2.0, -2.0) == -(2 * np.log(2) - 2)


# ---- independent solutions and closed forms ----


def by_increments(loss, y, alpha, w):
    """Minimise over u_1 and the positive and negative parts of the steps."""
    n = len(y)

    def function(x):
        u = x[0] + np.append(0, np.cumsum(x[1:n] - x[n:]))
        g = np.cumsum((w * LOSSES[loss].derivative(y, u))[::-1])[::-1]
        value = np.sum(w * LOSSES[loss].value(y, u)) + alpha * x[1:].sum()
        return value, np.concatenate([g[:1], g[1:] + alpha, alpha - g[1:]])

    start = np.zeros(2 * n - 1)
    start[0] = LOSSES[loss].link(np.average(y, weights=w))
    bounds = [(None, None)] + [(0, None)] * (2 * n - 2)
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.fun


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_against_an_independent_solver(loss, alpha):
    y, w = labels(loss, 25), np.random.default_rng(1).uniform(0.3, 2, 25)
    model = FusedLasso(alpha, loss=loss).fit(range(25), y, w)
    own = objective(loss, y, model.linear_values_, alpha, w)
    other = by_increments(loss, y, alpha, w)
    assert abs(own - other) <= 1e-7 * own
    assert own <= other + 1e-12 * own


@pytest.mark.parametrize("loss", LOSSES)
def test_ends_of_the_path(loss):
    y, w = labels(loss), np.random.default_rng(1).uniform(0.3, 2, 200)
    free = FusedLasso(0.0, loss=loss).fit(range(200), y, w)
    np.testing.assert_allclose(free.values_, y, atol=1e-15)
    assert free.loss_ < 1e-12
    mean = np.average(y, weights=w)
    for options in ({"alpha": 1e9}, {"alpha": np.inf}, {"alpha": None, "tv_budget": 0}):
        constant = FusedLasso(loss=loss, **options).fit(range(200), y, w)
        assert constant.n_pieces_ == 1 and constant.tv_ == 0
        np.testing.assert_allclose(constant.values_, mean, rtol=1e-13)
        linear = LOSSES[loss].link(mean)
        np.testing.assert_allclose(constant.linear_values_, linear, rtol=1e-12)
    largest = np.abs(np.cumsum(w * (y - mean))).max()
    assert FusedLasso(1.001 * largest, loss=loss).fit(range(200), y, w).n_pieces_ == 1
    assert FusedLasso(0.999 * largest, loss=loss).fit(range(200), y, w).n_pieces_ == 2


def test_golden_counts():
    # Half and half: total counts 0 and 30, moved by alpha; exactly as squared loss
    mean = fused_lasso([0, 0, 0, 10, 10, 10], 3, loss="poisson")
    np.testing.assert_allclose(mean, [1, 1, 1, 9, 9, 9], rtol=1e-15)
    mean = fused_lasso([0, 0, 1, 1], tv_budget=2.0, loss="logistic")
    np.testing.assert_allclose(mean, expit([-1, -1, 1, 1]), rtol=1e-14)
    counts = [0, 0, 0, 8, 8, 8]
    model = FusedLasso(None, tv_budget=np.log(3), loss="poisson").fit(range(6), counts)
    # rates r, 3 r with 4 r = 8 on average, so the multiplier is 3 r
    np.testing.assert_allclose(model.values_, [2, 2, 2, 6, 6, 6], rtol=1e-14)
    assert abs(model.alpha_ - 6) < 1e-13


@pytest.mark.parametrize("loss", LOSSES)
def test_means_solve_the_squared_problem(loss):
    y = labels(loss)
    for alpha in (0.1, 1.0, 7.0):
        mean = fused_lasso(y, alpha, loss=loss)
        assert np.max(np.abs(mean - fused_lasso(y, alpha))) < 1e-13


# ---- certificate ----


@pytest.mark.parametrize("loss", LOSSES)
def test_gap_bounds_the_excess(loss):
    y, w = labels(loss), np.random.default_rng(2).uniform(0.3, 2, 200)
    found = solution(y[:, None], w, LOSSES[loss], alpha=1.5)
    u = found.u[:, 0]
    least = objective(loss, y, u, 1.5, w)
    assert abs(found.loss / 2 + 1.5 * found.tv - least) < 1e-12 * least
    assert 0 <= found.gap <= 1e-13 * least
    channel = _Channel(y, w, LOSSES[loss], None)
    rng = np.random.default_rng(3)
    for scale in (1e-6, 1e-3, 0.1, 1.0):
        other = u + scale * rng.normal(size=200)
        excess = objective(loss, y, other, 1.5, w) - least
        mean = LOSSES[loss].mean(other)
        gap = likelihood_gap(channel, other, mean, 1 - mean, 1.5)
        assert 0 < excess <= gap * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 20_000])
def test_certified_at_every_size(loss, n):
    y = labels(loss, n)
    for alpha in (0.03, 1.0, n**0.5):
        model = FusedLasso(alpha, loss=loss).fit(range(n), y)
        size = (model.loss_ / 2 + alpha * model.tv_) / n
        assert 0 <= model.dual_gap_ <= 1e-11 * size + 1e-30


@pytest.mark.parametrize("loss", LIKELIHOODS)
@pytest.mark.parametrize("channels", [None, 3])
def test_budget(loss, channels):
    y = labels(loss, channels=channels)
    w = np.random.default_rng(1).uniform(0.3, 2, 200)
    for budget in (1e-6, 0.1, 3.0, 40.0):
        model = FusedLasso(None, tv_budget=budget, loss=loss).fit(range(200), y, w)
        assert abs(model.tv_ / budget - 1) <= 1e-9
        size = (model.loss_ / 2 + model.alpha_ * model.tv_) / 200
        assert model.dual_gap_ <= 1e-11 * size
        penalised = FusedLasso(model.alpha_, loss=loss).fit(range(200), y, w)
        error = penalised.linear_values_ - model.linear_values_
        assert np.max(np.abs(error)) < 1e-9
    free = FusedLasso(None, tv_budget=1e9, loss=loss).fit(range(200), y, w)
    assert free.alpha_ == 0
    np.testing.assert_allclose(free.values_, y, atol=1e-15)


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_variation_never_grows_with_alpha(loss):
    y = labels(loss)
    models = [
        FusedLasso(a, loss=loss).fit(range(200), y) for a in np.geomspace(1e-3, 1e3, 60)
    ]
    tv, deviance = np.array([(m.tv_, m.loss_) for m in models]).T
    assert np.max(np.diff(tv)) <= 1e-12 * tv[0] and tv[-1] == 0
    assert np.min(np.diff(deviance)) >= -1e-12 * deviance[-1]


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_bound_is_optimal(loss):
    y, bound = labels(loss, 60), 0.4
    for options in ({"alpha": 0.5}, {"alpha": None, "tv_budget": 1.0}):
        model = FusedLasso(bound=bound, loss=loss, **options).fit(range(60), y)
        u, alpha = model.linear_values_, model.alpha_
        assert np.max(np.abs(u)) <= bound
        least = objective(loss, y, u, alpha)
        assert model.dual_gap_ * 60 <= 1e-13 * least
        rng = np.random.default_rng(4)
        for scale in (1e-3, 0.1, 1.0):
            other = np.clip(u + scale * rng.normal(size=60), -bound, bound)
            assert objective(loss, y, other, alpha) >= least * (1 - 1e-14)


# ---- exposure, weights, missing labels, channels ----


def test_exposure_is_a_weight_of_rates():
    rng = np.random.default_rng(5)
    y, e = labels("poisson"), rng.uniform(0.1, 4, 200)
    w = rng.uniform(0.3, 2, 200)
    model = FusedLasso(2.0, loss="poisson")
    counts = clone(model).fit(range(200), y, w, exposure=e)
    rates = clone(model).fit(range(200), y / e, w * e)
    np.testing.assert_allclose(counts.values_, rates.values_, rtol=1e-13)

    def likelihood(u):
        return np.sum(w * (e * np.exp(u) - y * u)) + 2.0 * variation(u)

    least = likelihood(counts.linear_values_)
    for scale in (1e-4, 1e-2, 1.0):
        for other in (rng.normal(size=200), np.sign(y - e * counts.values_)):
            assert likelihood(counts.linear_values_ + scale * other) > least
    shuffle = rng.permutation(200)
    again = clone(model).fit(shuffle, y[shuffle], w[shuffle], exposure=e[shuffle])
    np.testing.assert_array_equal(again.values_, counts.values_)


def test_exposure_multiplies():
    y, e = labels("poisson"), np.random.default_rng(5).uniform(0.1, 4, 200)
    rate = fused_lasso(y, 2.0, loss="poisson", exposure=e)
    scaled = fused_lasso(y, 2.0, loss="poisson", exposure=1000 * e)
    np.testing.assert_allclose(scaled, rate / 1000, rtol=1e-13)
    ones = fused_lasso(y, 2.0, loss="poisson", exposure=1.0)
    np.testing.assert_array_equal(ones, fused_lasso(y, 2.0, loss="poisson"))


def test_rows_without_exposure_are_skipped():
    y, e = labels("poisson", 40), np.ones(40)
    y[[0, 7, 8, 39]] = e[[0, 7, 8, 39]] = 0
    rate = fused_lasso(y, 1.0, loss="poisson", exposure=e)
    np.testing.assert_array_equal(rate[[0, 7, 8, 39]], rate[[1, 6, 6, 38]])
    seen = e > 0
    np.testing.assert_array_equal(rate[seen], fused_lasso(y[seen], 1.0, loss="poisson"))


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_integer_weights_are_repeated_rows(loss):
    y, w = labels(loss, 80), np.random.default_rng(1).integers(1, 5, 80)
    for options in ({"alpha": 3.0}, {"tv_budget": 2.0}, {"alpha": 0.0}):
        weighted = fused_lasso(y, sample_weight=w, loss=loss, **options)
        repeated = fused_lasso(np.repeat(y, w), loss=loss, **options)
        assert np.max(np.abs(np.repeat(weighted, w) - repeated)) < 1e-12


def test_shares_of_trials():
    rng = np.random.default_rng(6)
    trials = rng.integers(1, 30, 20)
    share = rng.binomial(trials, expit(np.arange(20) / 5 - 2)) / trials
    model = FusedLasso(1.5, loss="logistic").fit(range(20), share, trials)
    own = objective("logistic", share, model.linear_values_, 1.5, trials)
    other = by_increments("logistic", share, 1.5, trials)
    assert abs(own - other) <= 1e-7 * own and own <= other * (1 + 1e-12)


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_channels_are_independent(loss):
    y = labels(loss, channels=3)
    mean = fused_lasso(y, 2.0, loss=loss)
    for j in range(3):
        np.testing.assert_array_equal(mean[:, j], fused_lasso(y[:, j], 2.0, loss=loss))


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_missing_labels_have_weight_zero(loss):
    y = labels(loss, 30)
    holes = y.copy()
    holes[[0, 9, 10, 29]] = np.nan
    model = FusedLasso(1.0, missing="skip", loss=loss).fit(range(30), holes)
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(
        model.values_[seen], fused_lasso(y[seen], 1.0, loss=loss)
    )
    np.testing.assert_array_equal(
        model.values_[[0, 9, 10, 29]], model.values_[[1, 8, 8, 28]]
    )


# ---- limits of the domain ----


def test_labels_of_two_kinds():
    y = labels("logistic", 50)
    expected = fused_lasso(y, 1.0, loss="logistic")
    for other in (y == 1, 2 * y - 1, y.astype(int), pd.Series(y == 1)):
        np.testing.assert_array_equal(
            fused_lasso(other, 1.0, loss="logistic"), expected
        )


def test_nothing_counted():
    for options in ({"alpha": 0.0}, {"alpha": 1.0}, {"alpha": None, "tv_budget": 1.0}):
        model = FusedLasso(loss="poisson", **options).fit(range(20), np.zeros(20))
        assert model.n_pieces_ == 1
        rate = model.predict([3.0])[0]
        assert 0 < rate < 1e-15 and np.isfinite(model.linear_values_).all()
        assert 20 * rate <= 3e-16  # expected counts in all, the rise of the loss
        assert model.dual_gap_ < 1e-17 and model.loss_ < 1e-15
    bounded = FusedLasso(1.0, loss="poisson", bound=3.0).fit(range(20), np.zeros(20))
    np.testing.assert_array_equal(bounded.linear_values_, -3.0)


def test_zeros_then_many():
    y = np.r_[np.zeros(500), 1e6, np.zeros(20)]
    with np.errstate(all="raise", under="ignore"):
        for options in (
            {"alpha": 0.0},
            {"alpha": 1e-9},
            {"alpha": 1.0},
            {"alpha": 1e5},
            {"alpha": None, "tv_budget": 5.0},
            {"alpha": None, "tv_budget": 100.0},
        ):
            model = FusedLasso(loss="poisson", **options).fit(range(521), y)
            assert np.all(np.isfinite(model.linear_values_)) and model.values_.min() > 0
            size = (model.loss_ / 2 + model.alpha_ * model.tv_) / 521
            assert model.dual_gap_ <= 1e-12 * size


def test_separable_labels():
    y = np.repeat([0.0, 1.0], 10)
    tiny = [FusedLasso(a, loss="logistic").fit(range(20), y) for a in (0, 1e-200)]
    for model in tiny:
        assert np.all(np.isfinite(model.linear_values_))
        assert model.loss_ < 1e-15
        assert 36 < np.max(np.abs(model.linear_values_)) < 40
    model = FusedLasso(1e-6, loss="logistic").fit(range(20), y)
    np.testing.assert_allclose(model.values_[[0, 19]], [1e-7, 1 - 1e-7], rtol=1e-9)
    for budget in (30.0, 60.0, 75.0):
        model = FusedLasso(None, tv_budget=budget, loss="logistic").fit(range(20), y)
        assert abs(model.tv_ / budget - 1) < 1e-13
        np.testing.assert_allclose(model.linear_values_[[0, 19]] * 2, [-budget, budget])
        assert model.dual_gap_ < 1e-15
    ones = FusedLasso(1.0, loss="logistic").fit(range(5), np.ones(5))
    assert np.all(np.isfinite(ones.linear_values_)) and ones.loss_ < 1e-15
    bounded = FusedLasso(0.0, loss="logistic", bound=800.0).fit(range(20), y)
    np.testing.assert_array_equal(bounded.values_, y)
    np.testing.assert_array_equal(np.abs(bounded.linear_values_), 800.0)


def test_rates_over_24_orders_of_magnitude():
    rng = np.random.default_rng(0)
    rates = np.repeat(10.0 ** rng.integers(-12, 13, 20), 50)
    e = rng.uniform(1, 20, 1000) / rates
    y = rng.poisson(e * rates)
    for options in (
        {"alpha": 1e-6},
        {"alpha": 1.0},
        {"alpha": 20.0},
        {"alpha": None, "tv_budget": 100.0},
    ):
        model = FusedLasso(loss="poisson", **options)
        model.fit(range(1000), y, exposure=e)
        size = (model.loss_ / 2 + model.alpha_ * model.tv_) / 1000
        assert model.dual_gap_ <= 1e-12 * size
    model = FusedLasso(20.0, loss="poisson").fit(range(1000), y, exposure=e)
    inner = np.arange(1000) % 50 == 25
    assert np.max(np.abs(np.log(model.values_ / rates))[inner]) < 0.5


@pytest.mark.parametrize("loss", LIKELIHOODS)
@pytest.mark.parametrize("y", [[0.0], [1.0], [0.0, 1.0], [1.0] * 5, [0.0] * 5])
@pytest.mark.parametrize("options", [{}, {"alpha": None, "tv_budget": 0.5}])
def test_short_and_constant_input(loss, y, options):
    model = FusedLasso(loss=loss, **options).fit(np.zeros(len(y)), y)
    assert np.isfinite(model.linear_values_).all()
    assert min(y) - 1e-15 <= model.values_.min() <= model.values_.max()
    assert model.values_.max() <= max(y) + 1e-15
    assert 0 <= model.dual_gap_ < 1e-13


@pytest.mark.parametrize(
    "options, y, message",
    [
        ({"loss": "poisson"}, [1, -1, 2], r"negative \(first in row 1\)"),
        ({"loss": "logistic"}, [0, 1, 2], r"another value \(first in row 2\)"),
        ({"loss": "logistic"}, [-1, 0.5, 1], r"-1 or 1.*row 1"),
        ({"loss": "logistic"}, [np.nan, 0, 1], "NaN"),
        ({"loss": "poisson", "sparsity": 1.0}, [1, 2, 3], "do not combine"),
        ({"loss": "poisson", "penalty": "group"}, [1, 2, 3], "do not combine"),
        ({"loss": "absolute"}, [1, 2, 3], "loss"),
        ({"loss": "poisson", "exposure": [1, 0, 1]}, [0, 2, 0], "row 1, but its exp"),
        ({"loss": "poisson", "exposure": [1, -1, 1]}, [0, 2, 0], "exposure is neg"),
        ({"loss": "poisson", "exposure": [1, 1]}, [0, 2, 0], "exposure must be"),
        ({"loss": "poisson", "exposure": [1, np.nan, 1]}, [0, 2, 0], "exposure.*NaN"),
        ({"loss": "poisson", "exposure": [0, 0, 0]}, [0, 0, 0], "exposure is zero"),
        ({"loss": "poisson", "exposure": 1e-300}, [0, 1, 0], "row 1 is too large"),
        ({"exposure": [1, 1, 1]}, [0, 2, 0], "exposure is for loss='poisson'"),
    ],
)
def test_refused(options, y, message):
    with pytest.raises(ValueError, match=message):
        fused_lasso(y, 1.0, **options)
    exposure = options.pop("exposure", None)
    with pytest.raises(ValueError, match=message):
        FusedLasso(**options).fit(range(3), y, exposure=exposure)


# ---- estimator ----


def test_predictions_on_both_scales():
    model = FusedLasso(1.0, loss="logistic").fit([1, 2, 3, 4], [0, 0, 1, 1])
    np.testing.assert_allclose(model.predict([0, 2.5, 3]), [0.5, 0.5, 0.5])
    model = FusedLasso(0.5, loss="logistic").fit([1, 2, 3, 4], [0, 0, 1, 1])
    np.testing.assert_allclose(model.predict([0, 2.5, 3, 9]), [0.25, 0.25, 0.75, 0.75])
    linear = model.predict_linear([0, 2.5, 3, 9])
    np.testing.assert_allclose(linear, logit([0.25, 0.25, 0.75, 0.75]), rtol=1e-14)
    np.testing.assert_array_equal(model.breakpoints_, [2])
    squared = FusedLasso().fit([1, 2], [0, 5])
    np.testing.assert_array_equal(squared.predict_linear([1]), squared.predict([1]))


def test_loss_is_the_deviance():
    y, w = labels("poisson"), np.random.default_rng(1).uniform(0.3, 2, 200)
    model = FusedLasso(2.0, loss="poisson").fit(range(200), y, w)
    deviance = mean_poisson_deviance(y, model.values_, sample_weight=w) * w.sum()
    assert abs(model.loss_ - deviance) < 1e-12 * deviance


@pytest.mark.parametrize("channels", [None, 2])
def test_score_is_the_share_of_the_deviance(channels):
    X, w = np.arange(200), np.random.default_rng(1).uniform(0.3, 2, 200)
    y = labels("poisson", channels=channels)
    model = FusedLasso(2.0, loss="poisson").fit(X, y)
    flat = np.repeat(w, channels or 1)
    if channels is None:
        expected = d2_tweedie_score(y, model.predict(X), sample_weight=w, power=1)
        assert abs(model.score(X, y, w) - expected) < 1e-12
    assert 0 < model.score(X, y, w) < 1
    y = labels("logistic", channels=channels)
    model = FusedLasso(2.0, loss="logistic").fit(X, y)
    null = np.broadcast_to(np.average(y, axis=0, weights=w), y.shape)
    ratio = log_loss(
        y.ravel(), model.predict(X).ravel(), sample_weight=flat
    ) / log_loss(y.ravel(), null.ravel(), sample_weight=flat)
    assert abs(model.score(X, y, w) - (1 - ratio)) < 1e-12
    assert model.score(X, 2 * y - 1, w) == model.score(X, y, w)


def test_score_of_constant_labels_is_finite():
    for loss in LIKELIHOODS:
        model = FusedLasso(1.0, loss=loss).fit(range(4), [0, 0, 1, 1])
        assert model.score([0, 1], [0, 0]) == 0.0
        exact = FusedLasso(1.0, loss=loss).fit(range(4), np.ones(4))
        assert exact.score([0, 1], [1, 1]) == exact.score([0], [1]) == 1.0


def test_constant_fit_is_the_intercept_of_a_glm():
    y, w = labels("poisson"), np.random.default_rng(1).uniform(0.3, 2, 200)
    glm = PoissonRegressor(alpha=0, tol=1e-10).fit(np.zeros((200, 1)), y, w)
    model = FusedLasso(np.inf, loss="poisson").fit(range(200), y, w)
    assert abs(model.linear_values_[0] - glm.intercept_) < 1e-7


@pytest.mark.parametrize(
    "options", [{"alpha": "sure"}, {"refit": True}, {"sparsity": 0.1}]
)
@pytest.mark.parametrize("choice", [{"loss": "poisson"}, {"penalty": "group"}])
def test_refused_by_the_estimator(options, choice):
    with pytest.raises(ValueError, match="do not combine"):
        FusedLasso(**options, **choice).fit(range(3), np.eye(3))


def test_rules_are_for_the_estimator():
    with pytest.raises(ValueError, match="alpha must be a number"):
        fused_lasso([1.0, 2.0], "sure")


def test_inside_a_search():
    X, y = np.arange(120.0)[:, None], labels("poisson", 120)
    grid = {"alpha": [0.1, 1.0, 10.0], "loss": ["squared", "poisson"]}
    search = GridSearchCV(
        FusedLasso(), grid, cv=KFold(4, shuffle=True, random_state=0)
    ).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
