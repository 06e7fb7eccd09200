"""Every statement of the theory, on oracles, on random ones and on the worst ones."""

import doctest
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sktvdenoise import OnlineTVDenoiser
from sktvdenoise.datasets import load_nile, make_signal
from sktvdenoise.losses import LOSSES
from sktvdenoise.metrics import dynamic_regret, path_variation, tv_oracle
from sktvdenoise.offline import fused_lasso
from sktvdenoise.theory import (
    denoising_regret_bound,
    generate_bins,
    key_partition,
    kkt_conditions,
    loss_gradients,
    make_example_21,
    make_lower_bound,
    regret_decomposition,
    single_cuts,
    split_monotonic,
    walk,
)

GUIDE = Path(__file__).parents[1] / "doc" / "theory.md"


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


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("bound", [0.5, 2.0])
def test_oracles_with_covariates(loss, bound):
    random = np.random.default_rng(4)
    X = random.standard_normal((200, 2))
    truth = np.repeat([[1.0, -1.0], [-1.0, -1.0]], 100, axis=0)
    y = np.sum(X * truth, axis=1) + 0.5 * random.standard_normal(200)
    if loss == "logistic":
        y = (y > 0).astype(float)
    oracle = tv_oracle(y, 1.5, X=X, loss=loss, bound=bound, tol=1e-12)
    u = oracle.comparator
    gradients = loss_gradients(y, u, X=X, loss=loss)
    kkt = kkt_conditions(u, gradients, oracle.multiplier, bound=bound)
    assert kkt.residual <= 1e-4
    assert (kkt.upper.any() or kkt.lower.any()) == (bound == 0.5)
    if bound == 2.0:
        edges = generate_bins(u, kkt.signs, 1.0).edges
        parts = regret_decomposition(y, np.zeros(200), u, edges, X=X, loss=loss)
        value = dynamic_regret(
            y, np.zeros(200), tv_budget=1.5, X=X, loss=loss, bound=bound, tol=1e-12
        )
        assert parts.regret == pytest.approx(value)


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


# Theorem 1 and Proposition 10.


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


@pytest.mark.skipif(not GUIDE.exists(), reason="tests run without the repository")
def test_guide_runs():
    failures, attempted = doctest.testfile(str(GUIDE), module_relative=False)
    assert attempted and not failures
