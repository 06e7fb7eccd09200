import numpy as np
import pytest

from sktvdenoise.datasets import load_nile, make_drifting_regression, make_signal

NAMES = ["blocks", "bumps", "heavisine", "doppler", "step", "walk"]
# Donoho and Johnstone (1994), Table 1: knots; jumps of "blocks"; peaks and widths
# of "bumps".
KNOTS = np.array([0.10, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])
JUMPS = np.array([4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])
PEAKS = np.array([4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
WIDTHS = np.array([5, 5, 6, 10, 10, 30, 10, 10, 5, 8, 5]) / 1000


def truth_of(name, n_samples, **size):
    return make_signal(name, n_samples, random_state=0, **size)[1]


def at(signal, t):
    """The value at time t, which must be a multiple of 1/n."""
    index = round(t * len(signal)) - 1
    assert (index + 1) / len(signal) == pytest.approx(t, abs=1e-12)
    return signal[index]


def test_blocks_has_the_published_jumps():
    n = 1021  # prime: no knot falls on a sample
    steps = np.diff(truth_of("blocks", n, tv=np.abs(JUMPS).sum()))
    places = np.flatnonzero(np.abs(steps) > 1e-9)
    np.testing.assert_array_equal(places, np.floor(n * KNOTS).astype(int) - 1)
    np.testing.assert_allclose(steps[places], JUMPS, rtol=1e-12)


def test_bumps_peaks_at_the_published_knots():
    u = truth_of("bumps", 10000, std=1.0)
    inner = u[1:-1]
    maxima = np.flatnonzero((inner > u[:-2]) & (inner > u[2:])) + 2
    np.testing.assert_array_equal(maxima, np.round(10000 * KNOTS).astype(int))
    distances = np.abs(KNOTS[:, np.newaxis] - KNOTS)
    heights = (PEAKS / (1 + distances / WIDTHS) ** 4).sum(axis=1)
    np.testing.assert_allclose(u[maxima - 1] / u.max(), heights / heights.max())


def test_heavisine_at_quarter_periods():
    # 4 sin(4 pi t) - sign(t - 0.3) - sign(0.72 - t)
    u = truth_of("heavisine", 1000, std=1.0)
    u /= at(u, 1 / 8) / 4
    points = {0.25: 0, 0.375: -6, 0.5: -2, 0.625: 2, 0.875: -4, 1: 0}
    for t, value in points.items():
        assert at(u, t) == pytest.approx(value, abs=1e-12)


def test_doppler_at_zeros_and_crests():
    # sqrt(t (1 - t)) sin(2.1 pi / (t + 0.05))
    u = truth_of("doppler", 200, max_abs=1.0)
    for t in (0.25, 0.3, 0.65, 1.0):
        assert at(u, t) == pytest.approx(0, abs=1e-12)
    ratio = -np.sqrt(0.55 * 0.45 / (0.79 * 0.21))
    assert at(u, 0.55) / at(u, 0.79) == pytest.approx(ratio, rel=1e-12)


def test_step_is_two_equal_halves():
    u = truth_of("step", 10, tv=3.0)
    np.testing.assert_array_equal(u, [0.0] * 5 + [3.0] * 5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_samples", [2, 7, 1000])
def test_size_is_the_one_asked_for(name, n_samples):
    assert truth_of(name, n_samples).std() == pytest.approx(7)
    assert truth_of(name, n_samples, std=3.0).std() == pytest.approx(3)
    bounded = truth_of(name, n_samples, max_abs=5.0)
    assert np.abs(bounded).max() == pytest.approx(5)
    varied = truth_of(name, n_samples, tv=20.0)
    assert np.abs(np.diff(varied)).sum() == pytest.approx(20)
    np.testing.assert_array_equal(truth_of(name, n_samples, tv=0.0), 0)


def test_walk_is_drawn_before_the_noise():
    walks = [
        make_signal("walk", 50, tv=1.0, noise=noise, df=df, random_state=3)[1]
        for noise, df in [(1.0, None), (0.0, None), (2.0, 3.0)]
    ]
    np.testing.assert_array_equal(walks[0], walks[1])
    np.testing.assert_array_equal(walks[0], walks[2])
    assert walks[0][0] == 0


@pytest.mark.parametrize("df", [None, 6.0])
def test_noise_has_the_asked_standard_deviation(df):
    n = 200_000
    y, truth = make_signal("step", n, noise=2.5, df=df, random_state=0)
    errors = (y - truth) / 2.5
    # Kurtosis 3 (Gaussian) or 6 (t, 6 degrees): var(e^2) = kurtosis - 1.
    kurtosis = 3.0 if df is None else 6.0
    assert abs(errors.mean()) < 4 / np.sqrt(n)
    assert abs(np.mean(errors**2) - 1) < 4 * np.sqrt((kurtosis - 1) / n)
    assert (np.mean(errors**4) > 4) == (df is not None)


def test_noise_is_added_to_the_truth():
    quiet, truth = make_signal("bumps", 64, noise=0.0, random_state=1)
    np.testing.assert_array_equal(quiet, truth)
    once = make_signal("bumps", 64, noise=1.0, random_state=1)[0] - truth
    twice = make_signal("bumps", 64, noise=2.0, random_state=1)[0] - truth
    np.testing.assert_allclose(twice, 2 * once, atol=1e-12)


def test_random_state_repeats_and_varies():
    first, again = (make_signal("walk", 20, random_state=5)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - make_signal("walk", 20, random_state=6)[0]).max() > 0


@pytest.mark.parametrize(
    ("kwargs", "word"),
    [
        ({"name": "block"}, "name"),
        ({"n_samples": 1}, "n_samples"),
        ({"std": -1.0}, "std"),
        ({"tv": float("nan")}, "tv"),
        ({"noise": -0.1}, "noise"),
        ({"df": 2.0}, "df"),
        ({"std": 1.0, "tv": 2.0}, r"std.*tv"),
    ],
)
def test_bad_parameters_are_named(kwargs, word):
    with pytest.raises(ValueError, match=word):
        make_signal(**kwargs)


def test_nile_is_the_published_series():
    nile = load_nile()
    assert nile.data.shape == (100, 1)
    np.testing.assert_array_equal(nile.data[:, 0], np.arange(1871, 1971))
    # Cobb (1978): the mean is 1097.75 to 1898 and 849.97 from 1899.
    assert nile.target[:28].mean() == 1097.75
    assert nile.target[28:].mean() == pytest.approx(849.97, abs=0.005)
    assert nile.target[nile.data[:, 0] == 1913] == nile.target.min() == 456
    assert nile.frame is None
    assert (nile.feature_names, nile.target_names) == (["year"], ["volume"])
    assert "Cobb" in nile.DESCR


def test_nile_in_other_shapes():
    nile = load_nile()
    X, y = load_nile(return_X_y=True)
    np.testing.assert_array_equal(X, nile.data)
    np.testing.assert_array_equal(y, nile.target)

    pandas = pytest.importorskip("pandas")
    framed = load_nile(as_frame=True)
    assert list(framed.frame.columns) == ["year", "volume"]
    np.testing.assert_array_equal(framed.data, nile.data)
    np.testing.assert_array_equal(framed.target, nile.target)
    X, y = load_nile(return_X_y=True, as_frame=True)
    assert isinstance(X, pandas.DataFrame) and isinstance(y, pandas.Series)


def test_nile_is_a_fresh_copy_each_time():
    load_nile().target[:] = 0
    assert load_nile().target.min() == 456


DRIFTS = [
    {"drift": "still"},
    {"n_jumps": 7},
    {"drift": "walk", "step": 0.1},
    {"n_jumps": 4, "n_drifting": 2},
    {"drift": "walk", "n_drifting": 0, "spread": 3.0, "offset": -4.0},
]


@pytest.mark.parametrize("options", DRIFTS)
def test_drifting_labels_are_those_of_the_coefficients(options):
    X, y, coef, intercept = make_drifting_regression(
        20000, 4, noise=0.25, correlation=0.5, random_state=0, **options
    )
    errors = y - intercept - np.sum(X * coef, axis=1)
    assert np.std(errors) == pytest.approx(0.25, rel=0.03)
    quiet = make_drifting_regression(
        20000, 4, noise=0.0, correlation=0.5, random_state=0, **options
    )
    for with_noise, without in zip((X, coef, intercept), (quiet[0], *quiet[2:])):
        np.testing.assert_array_equal(with_noise, without)


def test_drifting_coefficients_change_where_they_should():
    options = {"n_jumps": 7, "n_drifting": 2, "random_state": 1}
    _, _, coef, intercept = make_drifting_regression(
        300, 3, drifting_intercept=False, **options
    )
    changed = np.diff(coef, axis=0) != 0
    assert changed[:, 0].sum() == changed[:, 1].sum() == 7
    assert not changed[:, 2].any()
    assert not np.diff(intercept).any()
    _, _, coef, _ = make_drifting_regression(300, 3, drift="still", random_state=1)
    assert not np.diff(coef, axis=0).any()


def test_drifting_features_have_the_shape_asked_for():
    X, _, coef, _ = make_drifting_regression(
        100_000, 3, correlation=0.7, spread=3.0, offset=5.0, random_state=2
    )
    std = X.std(axis=0)
    correlations = np.corrcoef(X.T)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(correlations, 0.7, atol=0.02)
    np.testing.assert_allclose(X.mean(axis=0) / std, 5.0, rtol=0.02)
    assert std.max() / std.min() > 10
    assert np.abs(coef * std).max() < 5


def test_a_drifting_walk_has_the_given_steps():
    _, _, coef, _ = make_drifting_regression(
        5000, 4, drift="walk", step=0.02, random_state=3
    )
    assert np.diff(coef, axis=0).std() * 2 == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_drifting": 6}, "n_drifting=6"),
        ({"n_jumps": 1000}, "n_jumps=1000"),
        ({"correlation": 1.0}, "correlation"),
        ({"drift": "fast"}, "drift"),
    ],
)
def test_drifting_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        make_drifting_regression(**options)
