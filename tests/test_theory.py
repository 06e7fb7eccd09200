"""Every statement of the theory, on oracles, on random ones and on the worst ones."""

from itertools import pairwise, product

import numpy as np
import pytest

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.losses import LOSSES
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle
from sktvdenoise.offline import fused_lasso
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


def _oracle(y, budget, bound=None):
    oracle = tv_oracle(y, budget, bound=bound)
    u = oracle.comparator
    kkt = kkt_conditions(u, loss_gradients(y, u), oracle.multiplier, bound=bound)
    return u, oracle.multiplier, kkt


def _streams():
    """Labels in [-B, B], with B and budgets, from smooth to adversarial."""
    for name in ("blocks", "doppler", "walk"):
        y, _ = make_signal(name, 600, tv=5.0, noise=0.3, random_state=1)
        yield name, y, np.abs(y).max(), (0.1, 2.0, 20.0)
    nile = load_nile().target - 913.0
    yield "nile", nile, np.abs(nile).max(), (100.0, 400.0, 3000.0)
    yield "example 21", make_example_21(100)[0], 2.0, (0.1, 1.0, 3.0)
    for noise in ("uniform", "coin"):
        y, _ = make_lower_bound(500, 3.0, noise=noise, random_state=0)
        yield noise, y, 1.0, (0.02, 3.0, 30.0)
    y, _ = make_lower_bound(300, 3.0, n_outputs=3, noise="coin", random_state=0)
    yield "three coins", y, 1.0, (0.05, 3.0, 60.0)
    yield "one label", np.array([1.0]), 1.0, (0.0, 1.0)


STREAMS = [
    pytest.param(y, bound, budget, id=f"{name}-{budget}")
    for name, y, bound, budgets in _streams()
    for budget in budgets
]
on_streams = pytest.mark.parametrize(("y", "bound", "budget"), STREAMS)


def _planted(seed, n_outputs=1, n_samples=60, scale=1.0):
    """A sequence, signs and a multiplier for which it is optimal, and its labels.

    Any signs of the jumps, filled up by anything in [-1, 1], will do.
    """
    random = np.random.default_rng(seed)
    jumps = random.random((n_samples, n_outputs)) < random.choice([0.05, 0.3, 0.9])
    drift = random.choice([-1.0, 0.0, 1.0], n_outputs)
    steps = scale * jumps * (random.standard_normal(jumps.shape) + 3.0 * drift)
    steps[0] = 0.0
    u = np.cumsum(steps, axis=0)
    width = random.choice([0.05, 1.0])
    signs = np.zeros((n_samples + 1, n_outputs))
    signs[1:-1] = 1.0 - width * random.random((n_samples - 1, n_outputs)) * 2.0
    signs[1:-1] *= np.where(drift < 0, -1.0, 1.0)
    moves = u[1:] != u[:-1]
    signs[1:-1][moves] = np.sign(np.diff(u, axis=0))[moves]
    multiplier = float(10.0 ** random.uniform(-2.0, 3.0))
    return u, signs, multiplier, u - multiplier * np.diff(signs, axis=0)


def _variations(u, edges):
    return np.array([path_variation(u[a:b]) for a, b in pairwise(edges)])


def _excess(y, u, edges):
    """T2 + T3 of each bin."""
    parts = regret_decomposition(y, np.zeros_like(y), u, edges)
    return parts.t2 + parts.t3


# Conditions of optimality: Lemmas 3, 23 and 29.


@on_streams
def test_oracle_has_sign_sequence(y, bound, budget):
    u, multiplier, kkt = _oracle(y, budget)
    scale = bound * len(y)
    assert kkt.residual <= 1e-12 * scale
    labels = u - multiplier * np.diff(kkt.signs, axis=0)
    assert np.max(np.abs(labels - y)) <= 1e-11 * scale
    assert np.max(np.abs(kkt.signs)) <= 1.0
    steps = np.diff(u, axis=0)
    jump = np.abs(steps) > 1e-13 * bound
    np.testing.assert_array_equal(kkt.signs[1:-1][jump], np.sign(steps)[jump])
    assert not kkt.lower.any() and not kkt.upper.any()


@pytest.mark.parametrize("seed", range(20))
def test_planted_signs_are_found(seed):
    u, signs, multiplier, y = _planted(seed, n_outputs=2)
    kkt = kkt_conditions(u, loss_gradients(y, u), multiplier)
    np.testing.assert_allclose(kkt.signs, signs, atol=1e-9)
    # The multiplier of the oracle can't be compared: it isn't unique if all jumps
    # have one size of dual, but the loss is that of the least within the variation.
    oracle = tv_oracle(y, path_variation(u))
    assert np.sum((y - u) ** 2) <= oracle.loss * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("bound", [0.2, 0.5, 0.9])
def test_box_that_binds(bound, n_outputs):
    random = np.random.default_rng(0)
    wave = np.sin(np.arange(400)[:, None] / (20.0 + np.arange(n_outputs)))
    y = np.squeeze(wave + 0.3 * random.standard_normal(wave.shape))
    u, multiplier, kkt = _oracle(y, 16.0 * n_outputs * bound, bound)
    assert (u == bound).any() and (u == -bound).any()
    assert kkt.residual <= 1e-10
    assert kkt.upper.any() and kkt.lower.any()
    assert np.min(kkt.upper) >= 0 and np.min(kkt.lower) >= 0
    assert not kkt.upper[u < bound].any() and not kkt.lower[u > -bound].any()
    gradients = multiplier * np.diff(kkt.signs, axis=0) + kkt.lower - kkt.upper
    assert np.max(np.abs(gradients - (u - y))) <= 1e-10
    # Without the box the same sequence isn't optimal.
    assert kkt_conditions(u, u - y, multiplier).residual > 0.1


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_other_losses_have_signs(loss):
    random = np.random.default_rng(3)
    level = np.repeat([0.3, 0.8, 0.5], 100)
    y = random.poisson(5 * level) if loss == "poisson" else random.random(300) < level
    y = y.astype(float)
    u = LOSSES[loss].link(fused_lasso(y, alpha=4.0, loss=loss))
    kkt = kkt_conditions(u, loss_gradients(y, u, loss=loss), 4.0)
    assert kkt.residual <= 1e-7
    assert len(set(u)) > 1


def test_residual_of_what_is_not_optimal():
    y, _ = make_signal("blocks", 200, random_state=0)
    oracle = tv_oracle(y, 30.0)
    u, alpha = oracle.comparator, oracle.multiplier
    assert kkt_conditions(u, u - y, alpha).residual < 1e-9
    assert kkt_conditions(u, u - y, 1.1 * alpha).residual == pytest.approx(0.1 * alpha)
    assert kkt_conditions(u + 0.01, u + 0.01 - y, alpha).residual >= 1.9
    free = kkt_conditions(y, y - y, 0.0)
    assert free.residual == 0.0
    np.testing.assert_array_equal(free.signs[1:-1], np.sign(np.diff(y)))


def test_gradients_are_those_of_the_losses():
    random = np.random.default_rng(0)
    X, u = random.standard_normal((2, 20, 3))
    for loss in ("squared", "logistic", "poisson"):
        y = (random.random(20) < 0.5).astype(float)
        gradients = loss_gradients(y, u, X=X, loss=loss)
        for k in range(3):
            step = 1e-6 * np.eye(3)[k]
            ends = [
                regret_decomposition(
                    y, y, u + s, [*range(21)], X=X, loss=loss, smoothness=1e9
                )
                for s in (step, -step)
            ]
            # T1 + T2 + T3 of single rows is a constant minus the loss there.
            rise = -(ends[0].t1 + ends[0].t2 + ends[0].t3)
            rise += ends[1].t1 + ends[1].t2 + ends[1].t3
            slope = rise / 2e-6 / (2.0 if loss == "squared" else 1.0)
            np.testing.assert_allclose(slope, gradients[:, k], atol=1e-6)


# Bins: Lemma 5.


@on_streams
def test_walk(y, bound, budget):
    u, _, _ = _oracle(y, budget)
    edges = walk(u, bound)
    n_samples = len(y)
    assert edges[0] == 0 and edges[-1] == n_samples and np.all(np.diff(edges) > 0)
    fits = _variations(u, edges) * np.sqrt(np.diff(edges)) <= bound * (1 + 1e-9)
    assert fits.all()
    for start, stop in pairwise(edges[:-1]):
        longer = path_variation(u[start : stop + 1])
        assert longer * np.sqrt(stop + 1 - start) > bound * (1 - 1e-9)
    count = 1 + np.cbrt(2 * n_samples) * np.cbrt(path_variation(u) / bound) ** 2
    assert len(edges) - 1 <= count


@on_streams
def test_key_partition(y, bound, budget):
    u, _, kkt = _oracle(y, budget)
    edges = key_partition(u, bound)
    assert edges[0] == 0 and edges[-1] == len(y)
    fits = _variations(u, edges) * np.sqrt(np.diff(edges)) <= bound * (1 + 1e-9)
    assert fits.all()
    inner = edges[1:-1]
    u_columns, signs = (v.reshape(len(v), -1) for v in (u, kkt.signs))
    assert np.all((u_columns[inner] != u_columns[inner - 1]).any(axis=1))
    assert np.all(np.abs(signs[inner]).max(axis=1) == 1.0)
    rate = np.cbrt(len(y)) * np.cbrt(path_variation(u) / bound) ** 2
    assert len(edges) - 1 <= 1 + 2 ** (4 / 3) * rate


def test_number_of_bins_is_of_the_rate():
    # A straight line needs a constant times n^(1/3) C^(2/3) of them.
    for n_samples in (1000, 8000, 64000):
        n_bins = len(key_partition(np.linspace(0, 1, n_samples), 1.0)) - 1
        rate = n_samples ** (1 / 3)
        assert 0.9 * rate <= n_bins <= 1 + 2 ** (4 / 3) * rate


def test_edges_in_runs_move_to_the_jumps():
    u = np.repeat([0.0, 0.1, 0.0], [3, 50, 3])
    np.testing.assert_array_equal(walk(u, 0.5), [0, 25, 53, 56])
    np.testing.assert_array_equal(key_partition(u, 0.5), [0, 3, 53, 56])


# Decomposition: equations 8 and 17, Lemmas 8 and 9.


@on_streams
def test_terms_add_up_to_the_regret(y, bound, budget):
    y_pred = OnlineTVDenoiser(bound=bound).partial_fit_predict(np.arange(len(y)), y)
    y_pred = y_pred.reshape(y.shape)
    u, _, _ = _oracle(y, budget)
    regret = dynamic_regret(y, y_pred, tv_budget=budget)
    loss = np.sum((y - y_pred) ** 2)
    for edges in (key_partition(u, bound), single_cuts(u, u - y, bound), [0, len(y)]):
        parts = regret_decomposition(y, y_pred, u, edges)
        assert abs(parts.regret - regret) <= 1e-12 * (loss + np.sum(y**2))
        means = [y[a:b].mean(axis=0) for a, b in pairwise(edges)]
        np.testing.assert_allclose(parts.steps, means, atol=1e-12 * bound)


@on_streams
def test_lemma_8_holds_with_equality(y, bound, budget):
    u, multiplier, kkt = _oracle(y, budget)
    edges = key_partition(u, bound)
    parts = regret_decomposition(y, y, u, edges)
    changes = np.diff(kkt.signs[edges], axis=0).reshape(len(edges) - 1, -1)
    expected = -(multiplier**2) * np.sum(changes**2, axis=1) / np.diff(edges)
    np.testing.assert_allclose(parts.t2, expected, atol=1e-9 * bound**2 * len(y))


@on_streams
def test_lemma_9(y, bound, budget):
    u, multiplier, kkt = _oracle(y, budget)
    edges = key_partition(u, bound)
    t3 = regret_decomposition(y, y, u, edges).t3
    tolerance = 1e-9 * bound**2 * len(y)
    assert np.all(t3 >= -tolerance)
    variations = _variations(u, edges)
    assert np.all(t3 <= bound**2 / 4 + 4 * multiplier * variations + tolerance)
    u, signs = (v.reshape(len(v), -1) for v in (u, kkt.signs))
    for i, (a, b) in enumerate(pairwise(edges)):
        rows, steps = u[a:b], np.diff(u[a:b], axis=0)
        mean = rows.mean(axis=0)
        spread = np.sum((rows - mean) ** 2)
        bracket = np.abs(steps).sum(axis=0)
        bracket += (rows[0] - mean) * signs[a] - (rows[-1] - mean) * signs[b]
        assert abs(t3[i] - spread - 2 * multiplier * bracket.sum()) <= tolerance
        rising = np.all(steps >= 0) and np.all(signs[[a, b]] == 1.0)
        falling = np.all(steps <= 0) and np.all(signs[[a, b]] == -1.0)
        if rising or falling:
            assert t3[i] <= bound**2 / 4 + tolerance


def test_lemma_9_monotone_cases_occur():
    y = np.repeat([-10.0, 1.0, 1.2, 1.4, 13.0], 5)
    u, _, kkt = _oracle(y, 15.0)
    a, b = 5, 20
    assert np.all(np.diff(u[a:b]) >= 0) and u[a] < u[b - 1]
    assert kkt.signs[a] == kkt.signs[b] == 1.0
    t3 = regret_decomposition(y, y, u, [0, a, b, 25]).t3[1]
    assert t3 == pytest.approx(np.sum((u[a:b] - u[a:b].mean()) ** 2))


def test_four_is_the_constant_of_lemma_9():
    # Down at once and up in the end, between jumps up and down: the sequence is nearly
    # its mean's, but for the ends.
    n_samples, multiplier = 10**4, 1e6
    u = np.repeat([0.0, 1.0, 0.0, 1.0, 0.0], [1, 1, n_samples - 2, 1, 1])
    signs = np.zeros(len(u) + 1)
    signs[[1, 2, -3, -2]] = 1.0, -1.0, 1.0, -1.0
    y = u - multiplier * np.diff(signs)
    assert kkt_conditions(u, u - y, multiplier).residual < 1e-6
    t3 = regret_decomposition(y, y, u, [0, 1, n_samples + 1, n_samples + 2]).t3[1]
    assert t3 / (multiplier * 2.0) == pytest.approx(4.0, rel=1e-3)


def test_a_single_bin_needs_a_cut():
    # The variation fits B, yet T2 + T3 isn't of the order of B^2: the signs at both
    # ends are 0, so that T2 = 0, and the multiplier is of the order of n.
    n_samples = 10**4
    y = np.repeat([-1.0, 1.0], n_samples // 2)
    u, multiplier, kkt = _oracle(y, 0.99 / np.sqrt(n_samples))
    edges = key_partition(u, 1.0)
    np.testing.assert_array_equal(edges, [0, n_samples])
    assert multiplier > 0.49 * n_samples
    assert _excess(y, u, edges)[0] > 0.9 * np.sqrt(n_samples)
    for cut in (
        generate_bins(u, kkt.signs, 1.0).edges,
        single_cuts(u, u - y, 1.0),
    ):
        np.testing.assert_array_equal(cut, [0, n_samples // 2, n_samples])
        assert _excess(y, u, cut).sum() <= 1.0


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_terms_add_up_with_covariates(loss):
    random = np.random.default_rng(5)
    X = random.standard_normal((80, 3))
    u = np.cumsum(0.1 * random.standard_normal((80, 3)), axis=0)
    y = (random.random(80) < 0.5).astype(float)
    y_pred = random.standard_normal(80)
    edges = [0, 10, 11, 50, 80]
    beta = 10.0 if loss == "poisson" else None
    parts = regret_decomposition(y, y_pred, u, edges, X=X, loss=loss, smoothness=beta)
    predictions = np.sum(X * u, axis=1)

    def value(p):
        if loss == "squared":
            return np.sum((y - p) ** 2)
        if loss == "logistic":
            return np.sum(np.logaddexp(0, p) - y * p)
        return np.sum(np.exp(p) - y * p)

    assert parts.regret == pytest.approx(value(y_pred) - value(predictions))
    if loss != "poisson":
        # The step is a descent by |sum of gradients|^2 / (2 n beta) at least.
        rows = np.repeat(parts.means, np.diff(edges), axis=0)
        scale = 2.0 if loss == "squared" else 1.0
        gradients = scale * loss_gradients(y, rows, X=X, loss=loss)
        beta = scale * (1.0 if loss == "squared" else 0.25)
        beta *= np.max(np.sum(X**2, axis=1))
        totals = np.add.reduceat(gradients, edges[:-1], axis=0)
        descent = np.sum(totals**2, axis=1) / (2 * np.diff(edges) * beta)
        assert np.all(parts.t2 <= -descent + 1e-12)


# Many coordinates: Lemma 30.


def _check_properties(u, signs, bound):
    bins = generate_bins(u, signs, bound)
    edges = bins.edges
    assert edges[0] == 0 and edges[-1] == len(u) and np.all(np.diff(edges) > 0)
    assert np.isin(walk(u, bound), edges).all()
    assert len(edges) <= 2 * len(walk(u, bound)) - 1
    rate = np.cbrt(len(u)) * np.cbrt(path_variation(u) / bound) ** 2
    assert len(edges) - 1 <= 2 + 2 ** (4 / 3) * rate
    fits = _variations(u, edges) * np.sqrt(np.diff(edges)) <= bound * (1 + 1e-9)
    assert fits.all()
    u, s = u.reshape(len(u), -1), signs.reshape(len(signs), -1)
    for kind, a, b in zip(bins.properties, edges[:-1], edges[1:]):
        change = np.abs(s[b] - s[a]).max()
        if kind == 2:
            assert change >= 0.5
            continue
        assert kind == 1
        steps = np.diff(u[a:b], axis=0)
        up, down = (steps > 0).any(axis=0), (steps < 0).any(axis=0)
        assert not (up & down).any()
        for k in np.flatnonzero(up | down):
            missed = np.abs((1.0 if up[k] else -1.0) - s[[a, b], k]).max()
            assert missed <= 3.0 * change + 1e-12
    return bins


@on_streams
def test_lemma_30_on_oracles(y, bound, budget):
    u, _, kkt = _oracle(y, budget)
    bins = _check_properties(u, kkt.signs, bound)
    limits = np.where(bins.properties == 1, 9.25, 16.25) * bound**2
    assert np.all(_excess(y, u, bins.edges) <= limits + 1e-9 * bound**2 * len(y))


@pytest.mark.parametrize("n_outputs", [1, 2, 7])
def test_lemma_30_on_planted_oracles(n_outputs):
    kinds = set()
    for seed in range(150):
        u, signs, multiplier, y = _planted(seed, n_outputs)
        for bound in (1.0, 10.0, 300.0, 3000.0):
            bins = _check_properties(u, signs, bound)
            limits = np.where(bins.properties == 1, 9.25, 16.25) * bound**2
            tolerance = 1e-9 * (1 + multiplier) ** 2 * n_outputs
            assert np.all(_excess(y, u, bins.edges) <= limits + tolerance)
            kinds |= {(len(bins.edges) > len(walk(u, bound)), *bins.properties)}
    assert any(1 in kind[1:] for kind in kinds) and any(2 in kind[1:] for kind in kinds)
    assert {kind[0] for kind in kinds} == {True, False}


def test_split_monotonic():
    # Signs near the direction at both ends, and equal: only a cut makes them change.
    u = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    signs = np.array([[0.9, 0.9], [1.0, 0.95], [0.97, 1.0], [1.0, 0.93], [0.9, 0.9]])
    assert split_monotonic(u, signs, 0, 4) in (1, 2, 3)
    # Directions attained at both ends: nothing to do, though the signs don't change.
    signs[[0, -1]] = 1.0
    assert split_monotonic(u, signs, 0, 4) is None
    assert split_monotonic(u, signs, 1, 2) is None
    with pytest.raises(ValueError, match="Coordinate 1 isn't monotone"):
        u[3, 1] = 0.0
        signs[3, 1] = -1.0
        split_monotonic(u, signs, 0, 4)


# The short way: any sequence, any smooth loss, one cut for each bin of the walk.


def _pair_sums(parts, edges, whole):
    """T2 + T3 with the means of the walk's bins, over each of them."""
    return np.add.reduceat(parts.t2 + parts.t3, np.searchsorted(edges, whole[:-1]))


@on_streams
def test_single_cuts_on_oracles(y, bound, budget):
    u, _, _ = _oracle(y, budget)
    edges, whole = single_cuts(u, u - y, bound), walk(u, bound)
    assert np.isin(whole, edges).all() and len(edges) <= 2 * len(whole) - 1
    parts = regret_decomposition(y, y, u, edges)
    sums = _pair_sums(parts, edges, whole)
    assert np.all(sums <= bound**2 * (1 + 1e-9) + 1e-12 * bound**2 * len(y))


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_single_cuts_on_any_sequence(n_outputs):
    largest = -np.inf
    for seed in range(300):
        random = np.random.default_rng(seed)
        shape = (40, n_outputs)
        jumps = random.standard_normal(shape) * (random.random(shape) < 0.2)
        u = np.cumsum(jumps, axis=0)
        noise = random.standard_normal(shape) * 10.0 ** random.uniform(-2, 2)
        pull = np.cumsum(random.standard_normal(shape), axis=0) * random.choice([0, 1])
        y = u + noise + pull
        for bound in (0.5, 5.0, 50.0):
            edges, whole = single_cuts(u, u - y, bound), walk(u, bound)
            parts = regret_decomposition(y, y, u, edges)
            sums = _pair_sums(parts, edges, whole)
            largest = max(largest, np.max(sums) / bound**2)
    assert largest <= 1.0 + 1e-9


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_single_cuts_with_covariates(loss):
    for seed in range(100):
        random = np.random.default_rng(seed)
        X = random.standard_normal((60, 3))
        u = np.cumsum(random.standard_normal((60, 3)) * 0.1, axis=0)
        y = (random.random(60) < 0.5).astype(float)
        gradients = loss_gradients(y, u, X=X, loss=loss)
        scale = 2.0 if loss == "squared" else 1.0
        beta = (2.0 if loss == "squared" else 0.25) * np.max(np.sum(X**2, axis=1))
        for bound in (0.3, 3.0):
            edges, whole = single_cuts(u, gradients, bound), walk(u, bound)
            parts = regret_decomposition(y, y, u, edges, X=X, loss=loss)
            sums = _pair_sums(parts, edges, whole)
            assert np.all(sums <= beta * bound**2 * (1 + np.sqrt(2)) ** 2 / 8)
            # Both steps from the mean of the walk's bin.
            means = np.concatenate(
                [np.tile(u[a:b].mean(axis=0), (b - a, 1)) for a, b in pairwise(whole)]
            )
            pull = scale * loss_gradients(y, means, X=X, loss=loss)
            steps = means.copy()
            for a, b in pairwise(edges):
                steps[a:b] -= pull[a:b].mean(axis=0) / beta
            singles = regret_decomposition(
                y, np.sum(X * steps, axis=1), u, np.arange(61), X=X, loss=loss
            )
            excess = np.add.reduceat(singles.t1 + singles.t2 + singles.t3, whole[:-1])
            assert np.all(excess <= beta * bound**2 / 2)


# Bounds: Theorems 1 and 14, Propositions 10, 11 and 15.


@on_streams
@pytest.mark.parametrize("pruning", ["aflh", None])
def test_theorem_1_and_proposition_10(y, bound, budget, pruning):
    denoiser = OnlineTVDenoiser(learning_rate="theory", bound=bound, pruning=pruning)
    y_pred = denoiser.partial_fit_predict(np.arange(len(y)), y).reshape(y.shape)
    n_outputs = y.shape[1] if y.ndim == 2 else 1
    regret = dynamic_regret(y, y_pred, tv_budget=budget)
    limit = denoising_regret_bound(
        len(y), budget, bound, n_outputs=n_outputs, pruning=pruning
    )
    assert regret <= limit
    # Each bin is an interval: learning it costs no more than was said.
    u = tv_oracle(y, budget).comparator
    parts = regret_decomposition(y, y_pred, u, single_cuts(u, u - y, bound))
    cover = 1 if pruning is None else np.floor(np.log2(len(y) + 1))
    interval = cover * bound**2 * (4 + 12 * np.log(len(y)))
    assert np.max(parts.t1) <= n_outputs * interval * (1 + 1e-12)


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
        (lambda: make_example_21(7), "even and at least 6"),
        (lambda: make_lower_bound(9, 1.0, noise="x"), "noise must be"),
        (lambda: make_smooth(9, 1.0, ball="x"), "ball must be"),
        (lambda: smooth_variation(9, np.inf), "radius"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
