"""Adaptive logistic and Poisson regression: kernel, bounds, invariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit

from sktvdenoise import _laplace
from sktvdenoise.laplace import (
    SHARES,
    Account,
    LaplacePool,
    laplace_update,
    pool_members,
)
from sktvdenoise.losses import LOSSES

BOTH = pytest.mark.parametrize("loss", ["logistic", "poisson"])
N_MEMBERS, N_TRACKERS = 28, len(SHARES)


def start(loss, d, members=None, shares=SHARES):
    members = pool_members(d, loss) if members is None else members
    return _laplace.allocate(d, _laplace.Code[loss.upper()], members, shares)


def run(loss, X, y, weight=1.0, offset=0.0, *, state=None, guard=None, parts=False):
    """Predictions, parts of them, and the state after the last row."""
    n, d = X.shape
    state = start(loss, d) if state is None else state
    weight, offset = np.full(n, weight), np.full(n, offset)
    predictions, table = np.empty(n), np.empty((n, N_MEMBERS + N_TRACKERS + 1))
    _laplace.learn(
        state, X, y, weight, offset, predictions, guard, table if parts else None
    )
    return (predictions, state, table) if parts else (predictions, state)


def head(state):
    return state[: _laplace.HEAD_DTYPE.itemsize].view(_laplace.HEAD_DTYPE)[0]


def covariances(state, p):
    """All members' covariances, from the end of the state."""
    n_members, size = int(head(state)["n_members"]), p * (p + 1) // 2
    packed = state.view(float)[-size * n_members :].reshape(-1, size, 4)
    result = np.zeros((n_members, p, p))
    i, j = np.tril_indices(p)
    result[:, i, j] = result[:, j, i] = packed.transpose(0, 2, 1).reshape(-1, size)
    return result


def draw(loss, u, rng):
    if loss == "logistic":
        return (rng.random(len(u)) < expit(u)).astype(float)
    return rng.poisson(np.exp(np.minimum(u, 10.0))).astype(float)


def features(n=150):
    """Name -> features; some are harmless, some meet each rule of the units."""
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((n, 3)), np.arange(n)
    last = X[:, 2]
    return {
        "normal": X,
        "scales": X * [1, 1e6, 1e-6] + [1e6, 0, 1],
        "constant": np.c_[X[:, :2], np.full(n, 3.0)],
        "same twice": X[:, [0, 0, 1]],
        "late": np.c_[X[:, :2], np.where(t < n // 2, 7.0, last)],
        "rare": np.c_[X[:, :2], t % 37 == 36],
        "trend": np.c_[X[:, :2], t],
        "far off": np.c_[X[:, :2], np.where(t % 50 == 49, 1e9, last)],
        "far off at first": np.c_[X[:, :2], np.where(t == 1, 1e9, last)],
        "wider": np.c_[X[:, :2], np.where(t < 20, 1e-9, 1e6) * last],
    }


FEATURES = features()


def labels_for(loss, X):
    """Name -> labels."""
    rng = np.random.default_rng(1)
    t, first = np.arange(len(X)), X[:, 0] - X[:, 0].mean()
    result = {
        "drawn": draw(loss, 2 * first, rng),
        "zeros": np.zeros(len(X)),
        "ones": np.ones(len(X)),
        "separable": (first > 0).astype(float),
        "jump": draw(loss, np.where(t < len(X) // 2, 2, -2) * first, rng),
    }
    if loss == "poisson":
        result["enormous"] = np.full(len(X), 1e6)
        result["zeros, then enormous"] = np.where(t < len(X) // 2, 0.0, 1e6)
        result["rarely enormous"] = np.where(t % 40 == 20, 1e6, 0.0)
    return result


CASES = [(loss, n, k) for loss in ("logistic", "poisson")
         for n, X in FEATURES.items() for k in labels_for(loss, X)]  # fmt: skip


# Kernel and reference.


SPECIAL = "late", "wider", "far off at first"


@pytest.mark.parametrize(
    ("loss", "name", "labels"),
    [c for i, c in enumerate(CASES) if c[1] in SPECIAL or i % 4 == 0],
)
def test_kernel_is_the_reference(loss, name, labels):
    n = 70
    X = FEATURES[name][:n]
    y = labels_for(loss, FEATURES[name])[labels][:n]
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.2, 3.0, n)
    weight[[0, 30]] = 0.0
    offset = rng.standard_normal(n) if loss == "poisson" else np.zeros(n)
    members = pool_members(3)[::9]
    state, pool = start(loss, 3, members), LaplacePool(3, loss, members)
    expected = []
    for row in zip(X, y, weight, offset):
        expected.append(pool.predict(row[0], row[3]))
        if row[2] > 0:
            pool.learn(*row)
    predictions, _ = run(loss, X, y, weight, offset, state=state)
    # Rounding by 1e-10 of a logarithm of 1e6 counts is felt in the weights.
    accuracy = 1e-2 if labels == "enormous" else 1e-5
    assert_allclose(predictions, expected, rtol=accuracy)
    assert_allclose(_laplace.weights(state), pool.top @ pool.weights, atol=accuracy)
    for mine, theirs in zip(_laplace.coefficients(state), pool.coefficients()):
        assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    if loss == "poisson":
        assert head(state)["dispersion"] == pytest.approx(pool.dispersion, rel=1e-4)
    assert_allclose(covariances(state, 4), pool.covariance, rtol=1e-3, atol=1e-6)


@BOTH
def test_account_of_the_kernel_is_the_reference(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 2))
    y = draw(loss, 2 * X[:, 0], rng)
    weight = rng.uniform(0.0, 3.0, 200)
    guard = expit(2 * X[:, 0]) if loss == "logistic" else np.exp(2 * X[:, 0])
    predictions, state, parts = run(loss, X, y, weight, guard=guard, parts=True)
    account, expected = Account(), []
    for i, pool in enumerate(parts[:, -1]):
        expected.append(account.mix(loss, pool, guard[i]))
        account = account.update(loss, y[i], weight[i], pool, guard[i])
    assert_allclose(predictions, expected, rtol=1e-12)
    for name in account._fields:
        assert head(state)[name] == pytest.approx(getattr(account, name), rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_update_is_at_the_mode(loss):
    """The gradient of prior and loss vanishes, the covariance is the Hessian's."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        root, theta, z = rng.standard_normal((5, 4)), *rng.standard_normal((2, 4))
        precision = root.T @ root
        y, w, offset = rng.integers(2), rng.uniform(0.1, 5), rng.standard_normal()
        new, covariance = laplace_update(
            theta, np.linalg.inv(precision), z, y, w, LOSSES[loss], offset
        )
        u = z @ new + offset
        gradient = precision @ (new - theta) + w * LOSSES[loss].derivative(y, u) * z
        assert_allclose(gradient, 0, atol=1e-8)
        hessian = precision + w * LOSSES[loss].curvature(u) * np.outer(z, z)
        assert_allclose(covariance @ hessian, np.eye(4), atol=1e-7)


# Bounds.


def log_loss(y, p):
    return -(y * np.log(p) + (1 - y) * np.log1p(-p))


def against_the_output(n, d, seed):
    """Labels that are always the less likely one, but for one in four."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), np.empty(n)
    state, parts = start("logistic", d), np.empty((n, N_MEMBERS + N_TRACKERS + 1))
    for i in range(n):
        one, p = slice(i, i + 1), np.empty(1)
        _laplace.predict(state, X[one], np.zeros(1), p)
        y[i] = (p[0] < 0.5) != (rng.random() < 0.25)
        _laplace.learn(
            state, X[one], y[one], np.ones(1), np.zeros(1), p, None, parts[one]
        )
    return y, parts


def blocks(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    slopes = np.repeat(3 * rng.standard_normal((10, d)), n // 10, axis=0)
    y = draw("logistic", np.sum(slopes * X, axis=1), rng)
    return y, run("logistic", X, y, parts=True)[-1]


@pytest.mark.parametrize("play", [blocks, against_the_output])
def test_regret_to_every_sequence_of_members(play):
    """Fixed share, at rate 1: the price of a sequence is that of its switches.

    The least sum of losses and prices is found by dynamic programming.
    """
    y, parts = play(1000, 2, seed=5)
    losses = log_loss(y[:, None], parts)
    members, trackers, output = np.split(losses, [N_MEMBERS, -1], axis=1)
    for k, share in enumerate(SHARES):
        switch = -np.log(share / N_MEMBERS)
        stay = -np.log1p(-share + share / N_MEMBERS)
        best = np.log(N_MEMBERS) + members[0]
        for row in members[1:]:
            best = row + np.minimum(best + stay, best.min() + switch)
        assert trackers[:, k].sum() <= best.min() + 1e-8
    regret = np.cumsum(output[:, 0]) - np.cumsum(trackers, axis=0).min(axis=1)
    assert regret.max() <= np.log(N_TRACKERS) + 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_log_loss_with_a_guard(seed):
    """At most ln 100 above the guard's and ln(100/99) above the pool's, always."""
    rng = np.random.default_rng(seed)
    n = 600
    X = rng.standard_normal((n, 2))
    # The pool is led astray: its coefficients change sign in every row.
    u = 4 * X[:, 0] * (-1.0) ** np.arange(n)
    y = draw("logistic", u, rng)
    guard = expit(u) if seed % 2 else np.full(n, 1e-12 if seed else 0.5)
    p, _, parts = run("logistic", X, y, guard=guard, parts=True)
    mine = np.cumsum(log_loss(y, p))
    assert np.max(mine - np.cumsum(log_loss(y, guard))) <= np.log(100) + 1e-9
    assert np.max(mine - np.cumsum(log_loss(y, parts[:, -1]))) <= -np.log(0.99) + 1e-9
    if seed == 1:
        assert mine[-1] < 0.9 * log_loss(y, parts[:, -1]).sum()


@pytest.mark.parametrize("seed", range(4))
def test_deviance_with_a_guard(seed):
    """At most H ln 100 + r Y above the guard's half deviance, always."""
    rng = np.random.default_rng(seed)
    n = 2000
    X = rng.standard_normal((n, 1))
    u = 0.5 + 1.5 * X[:, 0] * (-1.0) ** np.arange(n)
    y = draw("poisson", u, rng)
    guard = np.exp(u) if seed % 2 else np.full(n, 3.0)
    mu, state, parts = run("poisson", X, y, guard=guard, parts=True)
    loss = LOSSES["poisson"].value
    excess = np.cumsum(loss(y, np.log(mu)) - loss(y, np.log(guard)))
    far = np.maximum.accumulate(np.abs(np.log(parts[:, -1] / guard)))
    bound = head(state)["steepness"] * np.log(100) + far * np.maximum.accumulate(y)
    assert np.all(excess <= bound)
    if seed % 2:
        assert excess[-1] < np.sum(loss(y, np.log(parts[:, -1])) - loss(y, u))


@BOTH
def test_jumps_are_followed(loss):
    """A hundred rows after it, a jump is behind: near the loss of the truth."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((4000, 3))
    size = 3 if loss == "logistic" else 1
    u = np.where(np.arange(4000) // 1000 % 2, size, -size) * X[:, 0]
    y = draw(loss, u, rng)
    late = np.arange(4000) % 1000 >= 100
    link, value = LOSSES[loss].link, LOSSES[loss].value
    mine, truth = value(y, link(run(loss, X, y)[0])), value(y, u)
    assert mine[late].mean() < 1.12 * truth[late].mean()


def one_signal(loss):
    rng = np.random.default_rng(19)
    X = rng.standard_normal((1500, 2))
    u = 3 * X[:, 0] if loss == "logistic" else 1 + 0.5 * X[:, 0]
    return X, draw(loss, u, rng)


def losses_after(row, loss, X, y, reference):
    """Mean loss in rows 50 to 100 and 100 to 400 after it, and that of a reference."""
    mean, expected = run(loss, X, y)[0], run(loss, *reference)[0]
    for rows in (slice(row + 50, row + 100), slice(row + 100, row + 400)):
        truth = reference[1][rows]
        yield tuple(
            LOSSES[loss].deviation(truth, p[rows], LOSSES[loss].link(p[rows])).mean()
            for p in (mean, expected)
        )


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("row", [0, 1, 5, 50, 1000])
def test_one_absurd_count_is_forgotten(row, size):
    X, y = one_signal("poisson")
    absurd = np.where(np.arange(len(y)) == row, size, y)
    soon, late = losses_after(row, "poisson", X, absurd, (X, y))
    assert soon[0] < 2 * soon[1]
    assert late[0] < 1.2 * late[1]


@BOTH
@pytest.mark.parametrize("size", [-1e9, 1e4, 1e9])
@pytest.mark.parametrize("row", [0, 1, 2, 5, 50, 1000])
def test_one_row_far_off_is_forgotten(loss, row, size):
    X, y = one_signal(loss)
    far = X.copy()
    far[row, 0] = size
    soon, late = losses_after(row, loss, far, y, (X, y))
    assert soon[0] < 2 * soon[1]
    assert late[0] < 1.2 * late[1]


def test_large_counts_that_come_again_are_learned():
    """A new level within some rows; and what comes once in fifty rows, in the mean."""
    for level in (1e3, 1e6, 1e12):
        y = np.repeat([1.0, level], 100)
        mean, _ = run("poisson", np.zeros((200, 1)), y)
        assert_allclose(mean[120:], level, rtol=0.05)
    pulses = np.where(np.arange(5000) % 50 == 25, 1000.0, 0.0)
    member = start("poisson", 1, pool_members(1)[:1] * 4, [0.0])
    mean, _ = run("poisson", np.zeros((5000, 1)), pulses, state=member)
    assert mean[-1] == pytest.approx(20, rel=0.2)


@pytest.mark.parametrize("drift", [0.0, 0.3])
def test_little_is_lost_to_the_best_member(drift):
    """One filter with the right drift is not known beforehand; that costs nats."""
    rng = np.random.default_rng(17)
    X = rng.standard_normal((1000, 2))
    slopes = [2, -1] + drift * rng.standard_normal((1000, 2)).cumsum(axis=0)
    y = draw("logistic", np.sum(slopes * X, axis=1), rng)
    losses = log_loss(y[:, None], run("logistic", X, y, parts=True)[-1]).sum(axis=0)
    price = np.log(N_MEMBERS) + np.log(N_TRACKERS) + 1000 * -np.log1p(-SHARES[0])
    assert losses[-1] <= losses[:N_MEMBERS].min() + price


# Numerics.


@BOTH
@pytest.mark.parametrize("name", FEATURES)
def test_extremes_are_survived(loss, name):
    X = FEATURES[name]
    rng = np.random.default_rng(7)
    for labels, y in labels_for(loss, X).items():
        for weight in (1.0, 10 ** rng.uniform(-6, 6, len(y))):
            p, state = run(loss, X, y, weight)
            assert np.all(p > 0), labels
            assert np.all(p < (1 if loss == "logistic" else 1e7)), labels
            assert np.all(np.isfinite(state.view(float)[6:]))
            assert np.all(np.isfinite(_laplace.coefficients(state)[0]))
            C = covariances(state, 4)
            std = np.sqrt(np.einsum("kii->ki", C))
            assert np.linalg.eigvalsh(C / (std[:, None] * std[..., None])).min() > 0


@BOTH
def test_many_rows_leave_no_drift(loss):
    """Without random walk the covariance is the inverse of Fisher's information.

    Times the dispersion, for counts: the mean unit deviance of Poisson's law is up to
    1.15.
    """
    rng = np.random.default_rng(8)
    n = 300_000
    X = rng.standard_normal((n, 1))
    u = 1 + X[:, 0]
    y = draw(loss, u, rng)
    state = start(loss, 1, pool_members(1)[:1] * 4, [0.0])
    run(loss, X, y, state=state)
    after_head = state.view(float)[_laplace.HEAD_DTYPE.itemsize // 8 :]
    first, _, _, _, centre, unit = after_head[:6]
    Z = np.c_[np.ones(n), (X - first - centre) / np.sqrt(unit)]
    precision = Z.T @ (LOSSES[loss].curvature(u)[:, None] * Z)
    dispersion = np.linalg.eigvals(covariances(state, 2)[0] @ precision)
    assert dispersion.min() > 0.98
    assert dispersion.max() < (1.02 if loss == "logistic" else 1.15)
    slopes, intercept = _laplace.coefficients(state)
    assert_allclose([intercept, *slopes], 1, atol=0.03)


def test_overdispersed_counts():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((3000, 2))
    mean = np.exp(3 + 0.5 * X[:, 0])
    poisson = run("poisson", X, rng.poisson(mean).astype(float))[1]
    mixed = rng.poisson(mean * rng.gamma(2.0, 0.5, 3000)).astype(float)
    overdispersed = run("poisson", X, mixed)[1]
    assert 0.8 < head(poisson)["dispersion"] < 1.3
    assert 5 < head(overdispersed)["dispersion"] < 20
    assert_allclose(_laplace.coefficients(overdispersed)[0], [0.5, 0], atol=0.15)


# Invariances.


@BOTH
def test_batches_change_nothing(loss):
    rng = np.random.default_rng(10)
    X = rng.standard_normal((200, 3))
    y, guard = draw(loss, X[:, 0], rng), rng.uniform(0.2, 0.8, 200)
    whole, state = run(loss, X, y, guard=guard)
    for cuts in (range(1, 200), [1, 8, 58]):
        piecewise, pieces = start(loss, 3), []
        for rows in np.split(np.arange(200), cuts):
            part = X[rows], y[rows]
            pieces.append(run(loss, *part, state=piecewise, guard=guard[rows])[0])
            piecewise = piecewise.copy()
        assert_array_equal(np.concatenate(pieces), whole)
        assert_array_equal(piecewise, state)


@BOTH
def test_predict_is_what_learn_will_say(loss):
    rng = np.random.default_rng(11)
    X, offset = rng.standard_normal((60, 3)), rng.standard_normal(60)
    y, guard = draw(loss, X[:, 0], rng), rng.uniform(0.2, 0.8, 60)
    state = start(loss, 3)
    for i in range(60):
        one, p = slice(i, i + 1), np.empty(1)
        before = state.copy()
        _laplace.predict(state, X[one], offset[one], p, guard[one])
        assert_array_equal(state, before)
        # Weight 0: predicted, but not learned.
        learned, _ = run(loss, X[one], y[one], 0.0, offset[one], state=state,
                         guard=guard[one])  # fmt: skip
        assert_array_equal(state, before)
        assert p == learned
        learned, _ = run(loss, X[one], y[one], 1.0, offset[one], state=state,
                         guard=guard[one])  # fmt: skip
        assert p == learned


@BOTH
def test_features_in_other_units(loss):
    rng = np.random.default_rng(12)
    X = rng.standard_normal((300, 3))
    y = draw(loss, X[:, 0] - X[:, 1], rng)
    p, state = run(loss, X, y)
    slopes, intercept = _laplace.coefficients(state)
    assert_array_equal(run(loss, X * [2.0**20, 2.0**-20, -1], y)[0], p)
    scale = np.array([1e6, 1e-6, 3.0])
    q, scaled = run(loss, X * scale, y)
    assert_allclose(q, p, rtol=1e-6)
    assert_allclose(_laplace.coefficients(scaled)[0] * scale, slopes, rtol=1e-5)
    shift = np.array([1e3, 0.0, -5.0])
    q, shifted = run(loss, X + shift, y)
    assert_allclose(q, p, rtol=1e-6)
    expected = intercept - slopes @ shift
    assert _laplace.coefficients(shifted)[1] == pytest.approx(expected, rel=1e-5)
    assert_allclose(run(loss, X[:, [2, 0, 1]], y)[0], p, rtol=1e-6)


def test_classes_the_other_way_round():
    rng = np.random.default_rng(13)
    X = rng.standard_normal((300, 2))
    y = draw("logistic", X[:, 0] + 1, rng)
    assert_allclose(run("logistic", X, 1 - y)[0], 1 - run("logistic", X, y)[0],
                    rtol=1e-6)  # fmt: skip


def test_exposure_in_other_units():
    rng = np.random.default_rng(14)
    X, offset = rng.standard_normal((300, 2)), rng.standard_normal(300)
    y = draw("poisson", X[:, 0] + offset, rng)
    mu, state = run("poisson", X, y, 1.0, offset)
    nu, other = run("poisson", X, y, 1.0, offset + 12.0)
    assert_allclose(nu, mu, rtol=1e-6)
    intercepts = [_laplace.coefficients(s)[1] for s in (state, other)]
    assert intercepts[0] - intercepts[1] == pytest.approx(12.0)


def test_exposure_as_weight():
    """They differ by the prior of the first rate only, which is soon forgotten."""
    rng = np.random.default_rng(18)
    X, exposure = rng.standard_normal((600, 2)), rng.uniform(50, 200, 600)
    y = draw("poisson", 0.5 * X[:, 0] - 3 + np.log(exposure), rng)
    mu, _ = run("poisson", X, y, 1.0, np.log(exposure))
    rate, _ = run("poisson", X, y / exposure, exposure)
    assert_allclose(rate[300:], (mu / exposure)[300:], rtol=0.01)


@BOTH
def test_one_member_predicts_by_its_coefficients(loss):
    rng = np.random.default_rng(15)
    X = rng.standard_normal((100, 2)) * [1, 100] + [3, 7]
    y = draw(loss, X[:, 0] - 3, rng)
    state = start(loss, 2, pool_members(2)[3:4] * 4, [0.01])
    offset = 0.5 if loss == "poisson" else 0.0
    run(loss, X, y, 1.0, offset, state=state)
    slopes, intercept = _laplace.coefficients(state)
    x, p = X[:1], np.empty(1)
    _laplace.predict(state, x, np.full(1, offset), p)
    u = x @ slopes + intercept + offset
    assert_allclose(logit(p) if loss == "logistic" else np.log(p), u, rtol=1e-9)


@BOTH
def test_zeros_for_ages(loss):
    """The mean of the next label falls like one over the rows, and rises at once."""
    rng = np.random.default_rng(16)
    X, y = rng.standard_normal((3000, 2)), np.zeros(3000)
    p, state = run(loss, X, y)
    assert 1e-5 < p[-1] < 0.01
    q, _ = run(loss, X[:30], np.ones(30), state=state)
    assert q[-1] > 0.5


# What doesn't fit.


def test_states_and_rows_that_do_not_fit():
    state, X, one = start("logistic", 2), np.zeros((1, 2)), np.zeros(1)
    for wrong in (state[:-8].copy(), state[:8].copy(), np.zeros(0, np.uint8)):
        with pytest.raises(ValueError, match="a state has"):
            _laplace.predict(wrong, X, one, one.copy())
    before = state.copy()
    with pytest.raises(ValueError, match="X has 3 features instead of 2"):
        _laplace.predict(state, np.zeros((1, 3)), one, one.copy())
    with pytest.raises(ValueError, match="columns have 1 to 2 rows, but X has 1"):
        _laplace.learn(state, X, np.zeros(2), one, one, one.copy())
    with pytest.raises(ValueError, match="columns have 2 to 2 rows"):
        _laplace.learn(state, X, one, one, one, one.copy(), np.zeros(2))
    assert_array_equal(state, before)
