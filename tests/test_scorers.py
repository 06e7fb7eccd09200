"""Scorers that learn on: what they return, inside scikit-learn's searches too."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TimeSeriesSplit,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sktvdenoise import FusedLasso, OnlineTVDenoiser, OnlineTVFilter
from sktvdenoise.metrics import (
    dynamic_regret,
    make_dynamic_regret_scorer,
    make_progressive_scorer,
    neg_dynamic_regret,
    path_variation,
    regret_curve,
)

SCORERS = {
    "default": neg_dynamic_regret,
    "static": make_dynamic_regret_scorer(tv_budget=0),
    "budget": make_dynamic_regret_scorer(tv_budget=3.0, bound=4.0),
    "squared": make_progressive_scorer(),
    "absolute": make_progressive_scorer("neg_mean_absolute_error"),
}
FOLDS = TimeSeriesSplit(4)


@pytest.fixture(params=SCORERS)
def scorer(request):
    return SCORERS[request.param]


def halves(stream):
    X, y, _ = stream
    return X[:100], y[:100], X[100:], y[100:]


@pytest.mark.parametrize("budget", [0, 1.5, 7.0, 1e6])
@pytest.mark.parametrize("bound", [None, 3.0])
def test_score_is_minus_the_regret_of_predictions_made_learning_on(
    stream, budget, bound
):
    X, y, later, labels = halves(stream)
    w = stream[2][100:]
    for weights in (None, w):
        scorer = make_dynamic_regret_scorer(budget, bound=bound)
        model = OnlineTVDenoiser().fit(X, y)
        found = scorer(model, later, labels, sample_weight=weights)
        predictions = model.partial_fit_predict(later, labels, weights)
        regret = dynamic_regret(
            labels, predictions, tv_budget=budget, bound=bound, sample_weight=weights
        )
        assert found == pytest.approx(-regret, rel=1e-12, abs=1e-9)


def test_without_a_budget_variation_is_charged_for(stream):
    X, y, later, labels = halves(stream)
    model = OnlineTVDenoiser().fit(X, y)
    found = neg_dynamic_regret(model, later, labels)
    curve = regret_curve(labels, model.partial_fit_predict(later, labels))
    bound = np.abs(labels).max()
    assert found == -curve.oracle_inequality(bound).value
    # A row without weight might as well not be there.
    zero = np.r_[0.0, np.ones(len(labels))]
    rows, more = np.r_[later[:1], later], np.r_[1e3, labels]
    model = FusedLasso().fit(X, y)
    alone = neg_dynamic_regret(model, later, labels, sample_weight=zero[1:])
    weighted = neg_dynamic_regret(model, rows, more, sample_weight=zero)
    assert weighted == pytest.approx(alone, rel=1e-12)
    # It is the least over all budgets, so no budget's own trade is above it.
    for budget in np.linspace(0, 1.2 * path_variation(labels), 60):
        charge = len(labels) ** (1 / 3) * budget ** (2 / 3) * bound ** (4 / 3)
        assert -found >= curve(budget) - charge - 1e-9


def test_scores_of_what_is_fixed_are_those_of_its_predictions(stream):
    X, y, later, labels = halves(stream)
    for model in (
        FusedLasso(alpha=3.0),
        make_pipeline(OnlineTVFilter(), Ridge()),
        OnlineTVDenoiser(),
    ):
        model.fit(X, y)
        scorer = make_dynamic_regret_scorer(2.0, learn=False)
        expected = -dynamic_regret(labels, model.predict(later), tv_budget=2.0)
        assert scorer(model, later, labels) == pytest.approx(expected, rel=1e-12)
        scorer = make_progressive_scorer("r2", learn=False)
        assert scorer(model, later, labels) == model.score(later, labels)
    assert scorer(model, later, labels) < make_progressive_scorer("r2")(
        model, later, labels
    )


def test_all_that_can_learn_learns_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2))
    y = X @ [1.0, -1.0]
    model = make_pipeline(StandardScaler(), SGDRegressor(random_state=0))
    model.fit(X[:40], y[:40])
    found = make_progressive_scorer()(model, X[40:], y[40:])
    scaler, sgd = pickle.loads(pickle.dumps([step for _, step in model.steps]))
    errors = []
    for t in range(40, 80):
        errors.append(y[t] - sgd.predict(scaler.transform(X[t : t + 1]))[0])
        row = scaler.partial_fit(X[t : t + 1]).transform(X[t : t + 1])
        sgd.partial_fit(row, y[t : t + 1])
    assert found == pytest.approx(-np.mean(np.square(errors)), rel=1e-12)
    classifier = SGDClassifier(loss="log_loss", random_state=0)
    classifier.fit(X[:40], y[:40] > 0)
    assert 0 < make_progressive_scorer()(classifier, X[40:], y[40:] > 0) <= 1
    loss = make_progressive_scorer("neg_log_loss")(classifier, X[40:], y[40:] > 0)
    assert -np.inf < loss < 0


def test_nothing_scored_is_changed(stream, scorer):
    X, y, later, labels = halves(stream)
    for model in (
        OnlineTVDenoiser(),
        FusedLasso(),
        make_pipeline(StandardScaler(), SGDRegressor(random_state=0)),
    ):
        model.fit(X, y)
        before = pickle.dumps(model)
        first = scorer(model, later, labels)
        assert pickle.dumps(model) == before
        assert scorer(model, later, labels) == first


@pytest.mark.parametrize("labels", [[2.0], [0.0], [1e-130], [3.0, 3.0, 3.0], [0.0] * 4])
def test_scores_are_finite_on_one_row_and_constant_folds(scorer, labels):
    rows = np.arange(2, 2 + len(labels))
    for model in (OnlineTVDenoiser(), FusedLasso()):
        model.fit([0, 1], [1.0, 2.0])
        score = scorer(model, rows, labels)
        assert isinstance(score, float) and np.isfinite(score)
    exact = FusedLasso().fit([0], labels[:1])
    assert scorer(exact, rows, labels) == pytest.approx(0, abs=1e-12)


def test_small_errors_differ_on_constant_labels(scorer):
    y = np.ones(10)
    scores = [
        scorer(FusedLasso(alpha=0).fit([0], [1 + error]), np.arange(10), y)
        for error in (0, 1e-7, 1e-3, 1)
    ]
    assert np.all(np.diff(scores) < 0)


def test_all_budgets_rank_alike(stream):
    X, y, later, labels = halves(stream)
    models = [
        OnlineTVDenoiser(learning_rate=rate).fit(X, y)
        for rate in ("auto", "theory", "mixable", 0.1, 1.0)
    ]
    ranks = {
        name: np.argsort([scorer(model, later, labels) for model in models]).tolist()
        for name, scorer in SCORERS.items()
        if name != "absolute"
    }
    assert len({tuple(rank) for rank in ranks.values()}) == 1


# ---- inside scikit-learn ----


def test_numbers_do_not_depend_on_jobs(stream, scorer):
    X, y, _ = stream
    for model in (OnlineTVDenoiser(), FusedLasso(alpha=2.0)):
        one, two = (
            cross_val_score(model, X, y, scoring=scorer, cv=FOLDS, n_jobs=n_jobs)
            for n_jobs in (1, 2)
        )
        assert one.shape == (4,) and np.isfinite(one).all()
        assert_array_equal(one, two)
    one, two = (
        learning_curve(
            OnlineTVDenoiser(),
            X,
            y,
            scoring=scorer,
            cv=FOLDS,
            train_sizes=[10, 40],
            n_jobs=n_jobs,
            error_score="raise",
        )[2]
        for n_jobs in (1, 2)
    )
    assert one.shape == (2, 4) and np.isfinite(one).all()
    assert_array_equal(one, two)


def test_grid_search(stream, scorer):
    X, y, _ = stream
    grid = {"learning_rate": [0.001, 0.3, "auto"]}
    one, two = (
        GridSearchCV(
            OnlineTVDenoiser(), grid, scoring=scorer, cv=FOLDS, n_jobs=n_jobs
        ).fit(X, y)
        for n_jobs in (1, 2)
    )
    scores = one.cv_results_["mean_test_score"]
    assert_array_equal(scores, two.cv_results_["mean_test_score"])
    assert scores[0] < scores[1] and one.best_index_ == np.argmax(scores)
    for index, rate in enumerate(grid["learning_rate"]):
        for fold, (train, test) in enumerate(FOLDS.split(X)):
            model = OnlineTVDenoiser(learning_rate=rate).fit(X[train], y[train])
            found = one.cv_results_[f"split{fold}_test_score"][index]
            assert found == scorer(model, X[test], y[test])


def test_several_scores_at_once(stream):
    X, y, _ = stream
    found = cross_validate(FusedLasso(), X, y, scoring=SCORERS, cv=FOLDS)
    for name, scorer in SCORERS.items():
        expected = cross_val_score(FusedLasso(), X, y, scoring=scorer, cv=FOLDS)
        assert_array_equal(found[f"test_{name}"], expected)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_truth_and_weights_are_routed_in(stream, routing):
    X, y, w = stream
    truth = np.repeat([0.0, 5.0, -2.0], [80, 60, 60])
    for scorer in (make_dynamic_regret_scorer(2.0), make_progressive_scorer()):
        scorer.set_score_request(truth=True, sample_weight=True)
        model = OnlineTVDenoiser().set_fit_request(sample_weight=True)
        grid = {"learning_rate": [0.01, 0.3, "auto"]}
        search = GridSearchCV(model, grid, scoring=scorer, cv=FOLDS)
        search.fit(X, y, truth=truth, sample_weight=w)
        for index, rate in enumerate(grid["learning_rate"]):
            for fold, (train, test) in enumerate(FOLDS.split(X)):
                model = OnlineTVDenoiser(learning_rate=rate)
                model.fit(X[train], y[train], w[train])
                # y is learned, the truth judges.
                x = model.partial_fit_predict(X[test], y[test], w[test])
                if hasattr(scorer, "tv_budget"):
                    expected = -dynamic_regret(
                        truth[test], x, tv_budget=2.0, sample_weight=w[test]
                    )
                else:
                    expected = -np.average((truth[test] - x) ** 2, weights=w[test])
                found = search.cv_results_[f"split{fold}_test_score"][index]
                assert found == pytest.approx(expected, rel=1e-12)


def test_truth_by_another_name_for_one_scorer_among_several(stream, routing):
    X, y, _ = stream
    truth = np.repeat([0.0, 5.0, -2.0], [80, 60, 60])
    scorers = {
        "labels": make_progressive_scorer().set_score_request(
            truth=False, sample_weight=False
        ),
        "truth": make_progressive_scorer().set_score_request(
            truth="signal", sample_weight=False
        ),
    }
    found = cross_validate(
        OnlineTVDenoiser(), X, y, scoring=scorers, cv=FOLDS, params={"signal": truth}
    )
    # The labels' noise of variance 1 is in the one, not in the other.
    noise = found["test_truth"] - found["test_labels"]
    assert_allclose(noise, 1.0, atol=0.35)


# ---- scorers as objects ----


def test_scorers_are_objects_like_estimators(stream, scorer):
    X, y, later, labels = halves(stream)
    model = OnlineTVDenoiser().fit(X, y)
    expected = scorer(model, later, labels)
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer)):
        assert copy.get_params() == scorer.get_params()
        assert copy(model, later, labels) == expected
    assert repr(make_dynamic_regret_scorer(3)) == "DynamicRegretScorer(tv_budget=3)"
    assert repr(make_progressive_scorer("r2")) == "ProgressiveScorer(scoring='r2')"


@pytest.mark.parametrize("budget", [-1, np.nan, np.inf, "1", [1]])
def test_bad_budgets_are_refused(budget):
    with pytest.raises(ValueError, match="tv_budget must be a finite number >= 0"):
        make_dynamic_regret_scorer(budget)
    scorer = make_dynamic_regret_scorer().set_params(tv_budget=budget)
    model = FusedLasso().fit([0], [1.0])
    with pytest.raises(ValueError, match="tv_budget"):
        scorer(model, [1], [1.0])


@pytest.mark.parametrize("bound", [-1, 0, np.nan, "1"])
def test_bad_bounds_are_refused(bound):
    with pytest.raises(ValueError, match="bound must be a number > 0"):
        make_dynamic_regret_scorer(1.0, bound=bound)


@pytest.mark.parametrize("model", [OnlineTVDenoiser(), FusedLasso()])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (([2, 3], [1.0]), r"\(1,\)"),
        (([2, 3], [1.0, np.nan]), r"NaN.*row 1"),
        (([2, 3], [np.inf, 1.0]), r"infinity.*row 0"),
        (([], []), "."),
    ],
)
def test_bad_rows_are_refused(model, data, message, scorer):
    if "sq" in repr(scorer) or not hasattr(scorer, "tv_budget"):
        message = "."  # of scikit-learn, for what is fixed
    with pytest.raises(ValueError, match=message):
        scorer(clone(model).fit([0, 1], [1.0, 2.0]), *data)


def test_bad_truth_and_weights_are_refused(scorer):
    model = OnlineTVDenoiser().fit([0, 1], [1.0, 2.0])
    for truth in ([1.0], [[1.0], [2.0]]):
        with pytest.raises(ValueError, match="truth and y must have the same shape"):
            scorer(model, [2, 3], [1.0, 2.0], truth=truth)
    with pytest.raises(ValueError, match="NaN"):
        scorer(model, [2, 3], [1.0, 2.0], truth=[1.0, np.nan])
    for weights in ([1.0], [1.0, -1.0]):
        with pytest.raises(ValueError, match="sample_weight"):
            scorer(model, [2, 3], [1.0, 2.0], sample_weight=weights)


def test_missing_labels_do_not_count(scorer):
    y, w = np.array([1.0, np.nan, 3.0, 2.0]), np.array([1.0, 1.0, 2.0, 3.0])
    for model in (OnlineTVDenoiser(missing="skip"), FusedLasso(missing="skip")):
        model.fit([0, 1], [1.0, 2.0])
        found = scorer(model, [2, 3, 4, 5], y, sample_weight=w)
        kept = [0, 2, 3]
        expected = scorer(model, [2, 4, 5], y[kept], sample_weight=w[kept])
        assert found == pytest.approx(expected, rel=1e-12)
        with pytest.raises(ValueError, match="nothing to score"):
            scorer(model, [2, 3], [np.nan, np.nan])
        # The truth is there for all rows.
        truth = scorer(model, [2, 3, 4, 5], y, truth=[1.0, 9.0, 1.0, 1.0])
        assert truth != scorer(model, [2, 4, 5], y[kept], truth=np.ones(3))


def test_rows_that_go_back_are_predicted_and_not_learned(stream, scorer):
    X, y, _ = stream
    fixed = clone(scorer).set_params(learn=False)
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        model = OnlineTVDenoiser().fit(X[train], y[train])
        same = scorer(model, X[test], y[test]) == fixed(model, X[test], y[test])
        assert same == (fold < 2)
    model = OnlineTVDenoiser().fit(X, y)
    assert scorer(model, X, y) == fixed(model, X, y)
    backwards = make_pipeline(FunctionTransformer(np.negative), OnlineTVDenoiser())
    backwards.fit(-X[:100], y[:100])
    model = OnlineTVDenoiser().fit(X[:100], y[:100])
    found = scorer(backwards, -X[100:], y[100:])
    assert found == scorer(model, X[100:], y[100:])
    with pytest.raises(ValueError, match="goes back"):
        scorer(model, X[[199, 3]] + 1, y[[199, 3]])
