"""Cross-validation of the penalty: plain loops over folds, grid search, its display."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from sktvdenoise import (
    FusedLasso,
    FusedLassoCV,
    FusedLassoPathDisplay,
    InterleavedKFold,
    OnlineTVDenoiser,
)
from sktvdenoise.datasets import load_nile


def rows(n=150, seed=0, channels=None):
    """Positions with ties, in no order, labels of a few levels, weights with zeros."""
    rng = np.random.default_rng(seed)
    X = np.floor(np.arange(n) * 0.9)
    level = np.repeat(5 * rng.normal(size=5), -(-n // 5))[:n]
    shape = n if channels is None else (n, channels)
    y = (level if channels is None else level[:, None]) + rng.normal(size=shape)
    w = rng.integers(0, 4, n) / 2
    shuffle = rng.permutation(n)
    return X[shuffle], y[shuffle], w[shuffle]


def plain_loop(model, folds, X, y, w=None):
    """Mean squared errors by one fit for each penalty and fold."""
    w = np.ones(len(y)) if w is None else w
    errors = np.empty((len(model.alphas_), len(folds)))
    for k, (train, test) in enumerate(folds):
        for a, alpha in enumerate(model.alphas_):
            single = FusedLasso(alpha, sparsity=model.sparsity, bound=model.bound)
            single.fit(X[train], y[train], w[train])
            predicted = single.predict(X[test])
            errors[a, k] = mean_squared_error(y[test], predicted, sample_weight=w[test])
    return errors


@pytest.mark.parametrize("options", [{}, {"sparsity": 0.5, "bound": 3.0}])
@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_a_plain_loop(weighted, channels, options):
    X, y, w = rows(channels=channels)
    w = w if weighted else None
    alphas = [0, *np.geomspace(1e-2, 500, 12)]
    model = FusedLassoCV(alphas, cv=InterleavedKFold(5), **options).fit(X, y, w)
    errors = plain_loop(model, list(InterleavedKFold(5).split(X)), X, y, w)
    assert np.max(np.abs(model.mse_path_ - errors)) < 1e-12 * errors.max()
    np.testing.assert_array_equal(model.scores_, -model.mse_path_)
    best = np.argmin(errors.mean(axis=1))
    assert model.alpha_ == model.alphas_[best] == np.sort(alphas)[::-1][best]
    final = FusedLasso(model.alpha_, **options).fit(X, y, w)
    assert np.max(np.abs(model.values_ - final.values_)) < 1e-12
    np.testing.assert_array_equal(
        model.predict(X),
        model.values_[np.searchsorted(model.positions_, X, side="right") - 1],
    )
    for name in ("tv_", "loss_"):
        assert abs(getattr(model, name) / getattr(final, name) - 1) < 1e-12
    assert 0 <= model.dual_gap_ < 1e-12


@pytest.mark.parametrize(
    "cv", [InterleavedKFold(4), KFold(5, shuffle=True, random_state=0), KFold(3)]
)
@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "r2", None])
def test_same_answer_as_grid_search(cv, scoring):
    X, y, _ = rows()
    model = FusedLassoCV(30, cv=cv, scoring=scoring).fit(X, y)
    search = GridSearchCV(
        FusedLasso(),
        {"alpha": model.alphas_},
        cv=cv,
        scoring=scoring or "neg_mean_squared_error",
    ).fit(X[:, None], y)
    assert model.alpha_ == search.best_params_["alpha"]
    expected = search.cv_results_["mean_test_score"]
    assert np.max(np.abs(model.scores_.mean(axis=1) - expected)) < 1e-12 * np.max(
        np.abs(expected)
    )
    error = model.predict(X) - search.predict(X[:, None])
    assert np.max(np.abs(error)) < 1e-12
    assert hasattr(model, "mse_path_") == (scoring is None)


@pytest.mark.parametrize("scoring", [None, "neg_median_absolute_error"])
def test_jobs_give_the_same_numbers(scoring):
    X, y, w = rows()
    one, two = (
        FusedLassoCV(20, scoring=scoring, n_jobs=jobs).fit(X, y, w) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.scores_, two.scores_)
    assert one.alpha_ == two.alpha_


def test_one_standard_error():
    X, y, _ = rows()
    best, fewer = (
        FusedLassoCV(one_standard_error=rule).fit(X, y) for rule in (False, True)
    )
    mean = best.mse_path_.mean(axis=1)
    limit = best.mse_path_[np.argmin(mean)].std(ddof=1) / np.sqrt(5) + mean.min()
    assert fewer.alpha_ == best.alphas_[mean <= limit].max() > best.alpha_
    assert fewer.n_pieces_ < best.n_pieces_


def test_missing_labels_are_neither_learned_nor_judged():
    X, y, _ = rows()
    gaps = np.random.default_rng(1).random(len(y)) < 0.2
    holes = np.where(gaps, np.nan, y)
    folds = list(InterleavedKFold(5).split(X))
    model = FusedLassoCV(20, missing="skip", cv=folds).fit(X, holes)
    weighted = FusedLassoCV(model.alphas_, cv=folds).fit(X, y, np.where(gaps, 0, 1))
    np.testing.assert_array_equal(model.mse_path_, weighted.mse_path_)
    scored = FusedLassoCV(
        model.alphas_, missing="skip", cv=folds, scoring="neg_mean_squared_error"
    ).fit(X, holes)
    assert np.max(np.abs(scored.scores_ - model.scores_)) < 1e-11


def test_default_candidates():
    X, y, _ = rows()
    model = FusedLassoCV().fit(X, y)
    assert len(model.alphas_) == 100 and np.all(np.diff(model.alphas_) < 0)
    top = FusedLasso(model.alphas_[0] * (1 + 1e-12)).fit(X, y)
    assert top.n_pieces_ == 1 and model.alphas_[-1] < model.alpha_ < model.alphas_[0]
    below = FusedLasso(model.alphas_[0] * (1 - 1e-9)).fit(X, y)
    assert below.n_pieces_ > 1
    constant = FusedLassoCV().fit(range(10), [3.0] * 10)
    np.testing.assert_array_equal(constant.values_, [3.0] * 10)
    assert constant.alpha_ == 0


def test_large_offsets():
    X, y, _ = rows()
    model = FusedLassoCV().fit(X, y)
    moved = FusedLassoCV(model.alphas_).fit(X, y + 1e9)
    assert np.max(np.abs(moved.mse_path_ - model.mse_path_)) < 1e-5


def test_refit_of_the_chosen_solution():
    X, y, _ = rows()
    model = FusedLassoCV(refit=True).fit(X, y)
    expected = FusedLasso(model.alpha_, refit=True).fit(X, y)
    np.testing.assert_array_equal(model.breakpoints_, expected.breakpoints_)
    assert np.max(np.abs(model.values_ - expected.values_)) < 1e-12


def test_interleaved_folds():
    X = np.array([3.0, 1.0, 2.0, 2.0, 0.0])
    folds = list(InterleavedKFold(2).split(X))
    np.testing.assert_array_equal(folds[0][1], [0, 2, 4])  # 1st, 3rd and 5th position
    np.testing.assert_array_equal(folds[1][1], [1, 3])
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.append(train, test)), range(5))
    for k in (1, 6, 2.5):
        with pytest.raises(ValueError, match="n_splits"):
            next(InterleavedKFold(k).split(X))
    assert InterleavedKFold(3).get_n_splits() == 3
    assert repr(InterleavedKFold(3)) == "InterleavedKFold(n_splits=3)"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alphas": [1, -1]}, "alphas"),
        ({"alphas": [[1.0, 2.0]]}, "alphas"),
        ({"alphas": [np.nan]}, "NaN"),
        ({"alphas": 0}, "alphas"),
        ({"cv": 1}, "n_splits|cv"),
        ({"cv": 200}, "n_splits"),
        ({"cv": [([0, 1], [])]}, "test set of fold 0"),
        ({"cv": [([], [1])]}, "training set of fold 0"),
        ({"refit": True, "bound": 1.0}, "refit"),
    ],
)
def test_bad_parameters(options, message):
    X, y, _ = rows()
    with pytest.raises(ValueError, match=message):
        FusedLassoCV(**options).fit(X, y)


def test_folds_without_weight_are_named():
    X, y = np.arange(10), np.arange(10.0)
    w = np.ones(10)
    w[1::5] = 0
    with pytest.raises(ValueError, match="test set of fold 1"):
        FusedLassoCV(3, cv=InterleavedKFold(5)).fit(X, y, w)


def test_data_frames():
    X, y, _ = rows()
    frame = pd.DataFrame({"day": X})
    for scoring in (None, "r2"):
        model = FusedLassoCV(10, scoring=scoring).fit(frame, pd.Series(y))
        plain = FusedLassoCV(10, scoring=scoring).fit(X, y)
        np.testing.assert_array_equal(model.scores_, plain.scores_)
        assert list(model.feature_names_in_) == ["day"]


def test_nile():
    """Refitting leaves the step of 1899, of 1097.75 to 849.97 (Cobb 1978)."""
    X, y = load_nile(return_X_y=True)
    model = FusedLassoCV().fit(X, y)
    error = model.mse_path_.mean(axis=1)
    assert error.min() < 0.7 * error[0]
    assert 28 in model.breakpoints_
    for single in (
        FusedLassoCV(refit=True),
        FusedLasso("sure", refit=True),
        FusedLasso("bic", refit=True),
    ):
        np.testing.assert_array_equal(single.fit(X, y).breakpoints_, [28])
        levels = single.predict([1871, 1970])
        np.testing.assert_allclose(levels, [1097.75, 849.972222], atol=1e-6)


# ---- scorers and folds ----


@pytest.mark.parametrize(
    "scorer",
    [
        lambda model, X, y: -abs(model.alpha - 10),
        lambda model, X, y: -model.alpha_,
        lambda model, X, y: -model.n_pieces_,
        lambda model, X, y: -model.loss_,
        lambda model, X, y: -np.mean((model.predict_linear(X) - y) ** 2),
    ],
)
def test_scorers_see_a_fitted_model(scorer):
    X, y, _ = rows()
    alphas = [1, 10, 100]
    folds = InterleavedKFold(3)
    model = FusedLassoCV(alphas, scoring=scorer, cv=folds).fit(X, y)
    search = GridSearchCV(FusedLasso(), {"alpha": alphas}, scoring=scorer, cv=folds)
    search.fit(X[:, None], y)
    expected = search.cv_results_["mean_test_score"][::-1]
    np.testing.assert_allclose(model.scores_.mean(axis=1), expected, rtol=1e-12)


def test_scores_that_are_nan_come_last():
    X, y, _ = rows()

    def scorer(model, X, y):
        return np.nan if model.alpha >= 10 else model.score(X, y)

    with pytest.warns(UserWarning, match="non-finite"):
        model = FusedLassoCV([0.5, 2, 10, 1e3], scoring=scorer).fit(X, y)
    assert model.alpha_ == 2
    with pytest.raises(ValueError, match="Every candidate"):
        FusedLassoCV(3, scoring=lambda *_: np.nan).fit(X, y)
    with pytest.raises(ValueError, match="must return a number"):
        FusedLassoCV(3, scoring=lambda *_: "a").fit(X, y)


def test_folds_take_turns_among_observed_rows():
    rng = np.random.default_rng(0)
    X, y = np.arange(100), rng.normal(size=100)
    holes = y.copy()
    holes[::5] = np.nan
    seen = ~np.isnan(holes)
    model = FusedLassoCV(20, missing="skip").fit(X, holes)
    dropped = FusedLassoCV(20).fit(X[seen], y[seen])
    np.testing.assert_allclose(model.mse_path_, dropped.mse_path_, rtol=1e-13)
    weighted = FusedLassoCV(20).fit(X, y, seen)
    np.testing.assert_allclose(model.mse_path_, weighted.mse_path_, rtol=1e-13)
    both = FusedLassoCV(20, missing="skip").fit(X, np.column_stack([holes, y]))
    assert np.isfinite(both.mse_path_).all()


def test_tied_positions_keep_the_order_of_the_fold():
    rng = np.random.default_rng(0)
    X, y = np.repeat(np.arange(30), 5), rng.normal(size=150)
    cv = ShuffleSplit(3, random_state=0)
    for scoring in ("neg_mean_squared_error", None):
        model = FusedLassoCV(20, cv=cv, scoring=scoring).fit(X, y)
        search = GridSearchCV(
            FusedLasso(),
            {"alpha": model.alphas_},
            cv=cv,
            scoring="neg_mean_squared_error",
        ).fit(X[:, None], y)
        error = model.scores_.mean(axis=1) - search.cv_results_["mean_test_score"]
        assert np.max(np.abs(error)) < 1e-12


@pytest.mark.parametrize(
    "cv, message",
    [
        ([], "no folds"),
        ([([0, 1], [2, 500])], "Fold 0 of cv has the row 500"),
        ([([0, 1], [0.5])], "Fold 0 of cv is no pair"),
    ],
)
def test_folds_that_are_none(cv, message):
    X, y, _ = rows()
    for scoring in (None, "r2"):
        with pytest.raises(ValueError, match=message):
            FusedLassoCV(3, cv=cv, scoring=scoring).fit(X, y)


def test_folds_by_booleans():
    X, y, _ = rows()
    train = np.arange(150) % 2 == 0
    number = FusedLassoCV(5, cv=[(np.flatnonzero(train), np.flatnonzero(~train))])
    boolean = FusedLassoCV(5, cv=[(train, ~train)])
    np.testing.assert_array_equal(number.fit(X, y).scores_, boolean.fit(X, y).scores_)


def test_interleaved_folds_need_positions():
    for X, message in [
        (np.zeros((4, 2)), r"\(4, 2\)"),
        ([0.0, np.nan, 1.0], r"NaN \(first in row 1\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            next(InterleavedKFold(2).split(X))
    with pytest.raises(TypeError, match="dates"):
        next(InterleavedKFold(2).split(pd.date_range("2020", periods=4)))


def test_candidates_are_named():
    with pytest.raises(ValueError, match="alphas contains NaN"):
        FusedLassoCV([np.nan, 1]).fit(range(10), range(10))


# ---- display ----


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_display(pyplot):
    X, y, w = rows()
    model = FusedLassoCV(one_standard_error=True).fit(X, y, w)
    display = FusedLassoPathDisplay.from_estimator(
        model, X, y, sample_weight=w, n_alphas=20, position_name="day"
    )
    assert display.solutions.shape == (20, len(np.unique(X)))
    for k in (0, 7, 19):
        single = FusedLasso(display.alphas[k]).fit(X, y, w)
        expected = single.predict(display.positions)
        assert np.max(np.abs(display.solutions[k] - expected)) < 1e-11
    assert np.ptp(display.solutions[-1]) < 1e-12
    np.testing.assert_array_equal(display.image_.get_array(), display.solutions)
    np.testing.assert_array_equal(
        display.curve_.get_xydata().T, [model.mse_path_.mean(axis=1), model.alphas_]
    )
    assert len(display.axes_) == 2 and display.axes_[0].get_xlabel() == "day"
    assert display.axes_[1].get_xlabel() == "mean squared error"
    again = display.plot(pyplot.subplots(ncols=2)[1])
    assert again is display


def test_display_without_scores(pyplot):
    X, y, _ = rows()
    display = FusedLassoPathDisplay.from_estimator(FusedLasso("sure").fit(X, y), X, y)
    assert display.curve_ is None and len(display.axes_) == 1
    assert display.alpha == FusedLasso("sure").fit(X, y).alpha_
    with pytest.raises(ValueError, match="One output"):
        both = np.column_stack([y, y])
        FusedLassoPathDisplay.from_estimator(FusedLasso().fit(X, both), X, both)
    scored = FusedLassoCV(5, scoring="r2").fit(X, y)
    assert FusedLassoPathDisplay.from_estimator(scored, X, y).score_name == "score"
    FusedLassoPathDisplay.from_estimator(
        FusedLasso().fit([0, 1], [2, 2]), [0, 1], [2, 2]
    )


def draw(model, X, y, **options):
    return FusedLassoPathDisplay.from_estimator(model.fit(X, y), X, y, **options)


def test_display_on_own_axes_shares_the_scale(pyplot):
    X, y, _ = rows()
    display = draw(FusedLassoCV(), X, y, axes=pyplot.subplots(ncols=2)[1])
    limits = [ax.get_ylim() for ax in display.axes_]
    assert limits[0] == limits[1] == (display.alphas[0], display.alphas[-1])
    for model, axes, needed in (
        (FusedLassoCV(), pyplot.subplots()[1], "two Axes"),
        (FusedLasso(), pyplot.subplots(ncols=2)[1], "one"),
    ):
        with pytest.raises(ValueError, match=f"axes must be {needed}"):
            draw(model, X, y, axes=axes)


def test_display_has_the_shrinkage_of_the_estimator(pyplot):
    X, y, _ = rows()
    display = draw(FusedLassoCV(sparsity=0.5, bound=2.0), X, y)
    assert np.max(np.abs(display.solutions)) <= 2.0
    k = 50
    expected = FusedLasso(display.alphas[k], sparsity=0.5, bound=2.0).fit(X, y)
    error = display.solutions[k] - expected.predict(display.positions)
    assert np.max(np.abs(error)) < 1e-11


def test_display_steps_where_predict_does(pyplot):
    X, y = [0, 1, 100], [0, 5, 9.0]
    edges = draw(FusedLasso(), X, y).image_.get_coordinates()[0, :, 0]
    np.testing.assert_array_equal(edges, [0, 1, 100, 199])


def test_display_shows_the_chosen_alpha(pyplot):
    X, y, _ = rows()
    for alpha, text in ((0, "alpha = 0, below"), (np.inf, "alpha = inf, above")):
        picture = draw(FusedLasso(alpha), X, y).axes_[0]
        assert text in picture.get_title() and picture.get_legend() is None
    for alpha in (1e-9, 0.5, 1e9):
        display = draw(FusedLasso(alpha), X, y)
        assert display.alphas[0] <= alpha <= display.alphas[-1]
        legend = display.axes_[0].get_legend().get_texts()[0].get_text()
        assert legend == f"alpha = {alpha:.3g}"


def test_display_of_few_folds_and_candidates(pyplot):
    X, y, _ = rows()
    train = np.arange(150) % 2 == 0
    display = draw(FusedLassoCV(cv=[(train, ~train)]), X, y, score_name="MSE / m²")
    assert not display.axes_[1].collections
    assert display.axes_[1].get_xlabel() == display.score_name == "MSE / m²"
    display = draw(FusedLassoCV([3.0]), X, y)
    assert display.curve_.get_marker() == "o"
    texts = display.axes_[1].get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["mean", "± 1 std. error"]


def test_display_refuses(pyplot):
    X, y, _ = rows()
    model = FusedLasso().fit(X, y)
    for n_alphas in (0, 1, 2.5):
        with pytest.raises(ValueError, match="n_alphas"):
            draw(model, X, y, n_alphas=n_alphas)
    for x, labels in (([1], [1]), ([2, 2], [1, 3])):
        with pytest.raises(ValueError, match="two positions"):
            draw(FusedLasso(), x, labels)
    with pytest.raises(TypeError, match="FusedLasso or a FusedLassoCV"):
        draw(OnlineTVDenoiser(), X, y)


# ---- scikit-learn's own checks ----


class FirstColumn(FusedLassoCV):
    """The estimator with the first of any number of columns as its positions."""

    def fit(self, X, y, sample_weight=None):
        X = validate_data(self, X, dtype=np.float64)
        seen = {k: v for k, v in vars(self).items() if k.endswith("_in_")}
        super().fit(X[:, :1], y, sample_weight)
        vars(self).update(seen)
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return super().predict(X[:, 0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        tags.regressor_tags.poor_score = True  # noise has one piece
        return tags


CHECKS = [
    pytest.param(estimator, check, id=f"{check.func.__name__}-{i}")
    for i, (estimator, check) in enumerate(
        estimator_checks_generator(FirstColumn(alphas=5, cv=2))
    )
    # Folds count rows, so those of repeated rows are others.
    if check.func.__name__ != "check_sample_weight_equivalence_on_dense_data"
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator, check", CHECKS)
def test_scikit_learn(estimator, check):
    check(estimator)
