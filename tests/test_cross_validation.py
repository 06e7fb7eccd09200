"""Cross-validation of the penalty: plain loops over folds, grid search, its display."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data

from sktvdenoise import (
    FusedLasso,
    FusedLassoCV,
    FusedLassoPathDisplay,
    InterleavedKFold,
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
    model = FusedLassoCV(alphas, **options).fit(X, y, w)
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
        FusedLassoCV(3).fit(X, y, w)


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
    assert display.solutions.shape == (20, len(X))
    for k in (0, 7, 19):
        single = FusedLasso(display.alphas[k]).fit(X, y, w)
        assert np.max(np.abs(display.solutions[k] - single.values_)) < 1e-11
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
