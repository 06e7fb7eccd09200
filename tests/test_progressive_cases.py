"""Progressive evaluation and its scorers in the company of other estimators."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from sktvdenoise import (
    FLHClassifier,
    FLHRegressor,
    FusedLasso,
    OnlineTVDenoiser,
    OnlineTVFilter,
)
from sktvdenoise.metrics import (
    make_dynamic_regret_scorer,
    make_progressive_scorer,
    neg_dynamic_regret,
)
from sktvdenoise.model_selection import (
    iter_progressive_val_score,
    progressive_val_predict,
    progressive_val_score,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    return X, X @ [1.0, 0.5, -1.0] + 0.1 * rng.standard_normal(80)


@pytest.fixture
def counts(rows):
    """Covariates, counts and their exposure."""
    X, y = rows
    rng = np.random.default_rng(1)
    exposure = rng.uniform(1, 50, 80)
    return X, rng.poisson(exposure * np.exp(y / 2)).astype(float), exposure


def poisson():
    return FLHRegressor("ons", loss="poisson", learning_rate=1.0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# ---- counts with an exposure ----


@pytest.mark.parametrize(
    "scoring", ["neg_mean_squared_error", "neg_mean_absolute_error", "r2"]
)
def test_counts_are_judged_by_exposure_times_the_rate(counts, scoring):
    X, y, exposure = counts
    params = {"exposure": exposure}
    rates = poisson().partial_fit_predict(X, y, exposure=exposure)
    scorer = sklearn.metrics.get_scorer(scoring)
    expected = scorer._sign * scorer._score_func(y, exposure * rates)
    for step in (None, 7):
        *_, last = iter_progressive_val_score(
            poisson(), X, y, scoring=scoring, params=params, step=step
        )
        assert last.score == pytest.approx(expected, rel=1e-12)
    assert_array_equal(progressive_val_predict(poisson(), X, y, params=params), rates)
    # A scalar stands for it everywhere.
    found = progressive_val_score(poisson(), X, y, params={"exposure": 2.0})
    rates = poisson().partial_fit_predict(X, y, exposure=2.0)
    assert found == pytest.approx(-np.mean((y - 2 * rates) ** 2), rel=1e-12)
    with pytest.raises(ValueError, match=r"exposure is negative.*row 0"):
        progressive_val_score(poisson(), X, y, params={"exposure": -exposure})


@pytest.mark.parametrize("learn", [True, False])
def test_scorers_judge_counts_by_exposure_times_the_rate(counts, routing, learn):
    X, y, exposure = counts
    scorer = make_progressive_scorer(learn=learn).set_score_request(exposure=True)
    model = poisson().set_fit_request(exposure=True)
    found = cross_val_score(
        model,
        X,
        y,
        scoring=scorer,
        cv=[(np.arange(50), np.arange(50, 80))],
        params={"exposure": exposure},
        error_score="raise",
    )
    if learn:
        rates = poisson().partial_fit_predict(X, y, exposure=exposure)[50:]
    else:
        rates = poisson().fit(X[:50], y[:50], exposure=exposure[:50]).predict(X[50:])
    expected = -np.mean((y - exposure * np.r_[np.zeros(50), rates])[50:] ** 2)
    assert_allclose(found, expected, rtol=1e-12)
    # Nobody forgets it silently.
    scorer = make_progressive_scorer(learn=learn)
    with pytest.raises(ValueError, match="exposure"):
        cross_val_score(
            model, X, y, scoring=scorer, params={"exposure": exposure}, cv=2
        )


def test_regret_of_counts_with_an_exposure_is_refused(counts):
    X, y, exposure = counts
    model = poisson().fit(X, y, exposure=exposure)
    with pytest.raises(ValueError, match="make_progressive_scorer"):
        neg_dynamic_regret(model, X, y, exposure=exposure)


# ---- what goes on learning ----


@pytest.mark.parametrize(
    "transformer",
    [
        PolynomialFeatures(),
        PCA(2),
        ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="passthrough"),
        FunctionTransformer(),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_the_last_step_learns_on_behind_transformers_that_cannot(rows, transformer):
    X, y = rows
    model = make_pipeline(transformer, FLHRegressor()).fit(X[:40], y[:40])
    Z = model[:-1].transform(X)
    expected = FLHRegressor().fit(Z[:40], y[:40])
    expected = expected.partial_fit_predict(Z[40:], y[40:])
    found = make_progressive_scorer()(model, X[40:], y[40:])
    assert found == pytest.approx(-np.mean((y[40:] - expected) ** 2), rel=1e-9)
    assert found != make_progressive_scorer(learn=False)(model, X[40:], y[40:])


def test_the_best_estimator_of_a_search_learns_on(rows):
    X, y = rows
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FLHRegressor()),
        {"flhregressor__alpha": [0.1, 1.0]},
        cv=TimeSeriesSplit(2),
    )
    search.fit(X[:40], y[:40])
    for scorer in (make_progressive_scorer(), neg_dynamic_regret):
        found = scorer(search, X[40:], y[40:])
        assert found == scorer(search.best_estimator_, X[40:], y[40:])
        fixed = scorer.__class__(learn=False)(search, X[40:], y[40:])
        assert found != fixed
    with pytest.raises(TypeError, match="GridSearchCV can't learn row by row"):
        progressive_val_predict(search, X, y)


def test_missing_labels_behind_fixed_steps_do_not_count():
    y = np.array([1.0, np.nan, 3.0])
    model = make_pipeline(FunctionTransformer(), FusedLasso(missing="skip"))
    model.fit([[0], [1]], [1.0, 2.0])
    found = make_progressive_scorer()(model, np.c_[[2, 3, 4]], y)
    assert found == make_progressive_scorer()(model, np.c_[[2, 4]], y[[0, 2]])


def test_only_predictions_made_before_the_label_count(rows):
    """Methods of the same name may mean something else."""
    X, y = rows

    class Leaky(SGDRegressor):
        def partial_fit_predict(self, X, y):
            return self.partial_fit(X, y).predict(X)

    class Negative(FLHRegressor):
        def predict(self, X):
            return -super().predict(X)

    honest = progressive_val_predict(SGDRegressor(random_state=0), X, y, warmup_size=1)
    found = progressive_val_predict(Leaky(random_state=0), X, y, warmup_size=1)
    assert_array_equal(found, honest)
    with pytest.raises(NotFittedError, match="warmup_size"):
        progressive_val_predict(Leaky(), X, y)
    honest = progressive_val_predict(FLHRegressor(), X, y)
    found = progressive_val_predict(Negative(), X, y, warmup_size=1)
    assert_allclose(found, -honest[1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("delay", [0, 2])
def test_predictions_before_the_first_label_behind_stateless_steps(rows, delay):
    X, y = rows
    model = make_pipeline(FunctionTransformer(), Normalizer(), FLHRegressor())
    found = progressive_val_predict(model, X, y, delay=delay)
    Z = Normalizer().transform(X)
    expected = progressive_val_predict(FLHRegressor(), Z, y, delay=delay)
    assert_allclose(found, expected, rtol=0, atol=1e-12)
    model = make_pipeline(FunctionTransformer(), OnlineTVDenoiser())
    first = progressive_val_predict(model, np.arange(80)[:, None], y, delay=delay)
    assert first[0] == 0.0
    with pytest.raises(NotFittedError, match="warmup_size"):
        progressive_val_predict(make_pipeline(StandardScaler(), FLHRegressor()), X, y)


def test_columns_are_denoised_as_the_stream_goes_on(rows):
    X, y = rows
    model = make_pipeline(OnlineTVFilter(), SGDRegressor(random_state=0))
    found = progressive_val_predict(model, X, y, warmup_size=1)
    Z = OnlineTVFilter().fit_transform(X)
    expected = progressive_val_predict(
        SGDRegressor(random_state=0), Z, y, warmup_size=1
    )
    assert_array_equal(found, expected)


def test_classes_are_given_to_wrappers(rows):
    X, y = rows
    kinds = np.where(y > 0, "high", "low")

    class Wrapper(ClassifierMixin, BaseEstimator):
        def partial_fit(self, X, y, **kwargs):
            if not hasattr(self, "model_"):
                self.model_ = SGDClassifier(random_state=0)
            self.model_.partial_fit(X, y, **kwargs)
            self.classes_ = self.model_.classes_
            return self

        def predict(self, X):
            return self.model_.predict(X)

    expected = progressive_val_predict(
        SGDClassifier(random_state=0), X, kinds, warmup_size=1
    )
    found = progressive_val_predict(Wrapper(), X, kinds, warmup_size=1)
    assert_array_equal(found, expected)


# ---- scores ----


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_scores_of_probabilities_are_finite_on_one_row(rows, scoring, learn):
    X, y = rows
    scorer = make_progressive_scorer(scoring, learn=learn)
    names = np.array(["low", "high"])
    # scikit-learn's Brier score of two classes does not take names.
    two = (y > 0).astype(int) if scoring == "neg_brier_score" else names[1 * (y > 0)]
    # Before scikit-learn 1.7 it knows two classes only.
    brier = signature(brier_score_loss).parameters
    several = scoring == "neg_log_loss" or "labels" in brier
    for kinds in (two, np.digitize(y, [-1, 1]))[: 1 + several]:
        model = FLHClassifier().fit(X[:40], kinds[:40])
        for t in (40, 41):
            score = scorer(model, X[t : t + 1], kinds[t : t + 1])
            assert -np.inf < score <= 0
        if scoring == "neg_log_loss":
            proba = model.predict_proba(X[41:42])
            expected = -log_loss(kinds[41:42], proba, labels=model.classes_)
            assert score == pytest.approx(expected, rel=1e-12)
        steps = iter_progressive_val_score(FLHClassifier(), X, kinds, scoring=scoring)
        assert np.isfinite([part.score for part in steps]).all()


@pytest.mark.parametrize("model", [OnlineTVDenoiser(), FLHRegressor()])
@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_steps_are_the_scores_so_far(rows, model, step):
    X, y = np.arange(350.0)[:, None], np.resize(rows[1], 350)
    errors = (y - progressive_val_predict(model, X, y))[2:] ** 2
    found = list(iter_progressive_val_score(model, X, y, step=step, warmup_size=2))
    ends = [*range(step, 348, step), 348]
    assert [part.n_samples for part in found] == ends
    expected = [-errors[:end].mean() for end in ends]
    assert_allclose([part.score for part in found], expected, rtol=1e-9)
    seconds = [part.seconds for part in found]
    assert min(np.diff([0.0, *seconds])) > 0


def test_changes_to_arrays_meanwhile_change_nothing(rows):
    X, y = rows
    w = np.ones(80)
    for model, params in (
        (FLHRegressor(), {}),
        (poisson(), {"exposure": np.ones(80)}),
        (SGDRegressor(random_state=0), {}),
    ):
        data = X.copy(), np.abs(y), w.copy()
        expected = progressive_val_score(
            model, X, np.abs(y), sample_weight=w, params=params, warmup_size=1
        )
        changed = {name: value.copy() for name, value in params.items()}
        scores = iter_progressive_val_score(
            model,
            *data[:2],
            sample_weight=data[2],
            params=changed,
            warmup_size=1,
            step=10,
        )
        next(scores)
        for array in (*data, *changed.values()):
            array[:] = 3.0
        *_, last = scores
        assert last.score == pytest.approx(expected, rel=1e-12)


# ---- bad input ----


def test_arguments_that_do_not_fit_are_refused_before_learning(rows):
    X, y = rows
    kinds = (y > 0).astype(float)

    class Unweighted(SGDRegressor):
        def partial_fit(self, X, y):
            raise AssertionError

    def run(model, y=y, **kwargs):
        progressive_val_score(model, X, y, warmup_size=1, **kwargs)

    w = np.ones(80)
    with pytest.raises(ValueError, match="sample_weight is given twice"):
        run(FLHRegressor(), sample_weight=w, params={"sample_weight": w})
    with pytest.raises(TypeError, match="params must be a dict, got 3"):
        run(FLHRegressor(), params=3)
    for name in ("speed", "X", 1):
        with pytest.raises(TypeError, match=f"FLHRegressor.partial_fit.*{name}"):
            run(FLHRegressor(), params={name: 1})
    with pytest.raises(TypeError, match=r"Unweighted.partial_fit.*sample_weight"):
        run(Unweighted(), sample_weight=w)
    with pytest.raises(TypeError, match=r"max_error.*takes no sample_weight"):
        run(FLHRegressor(), sample_weight=w, scoring="neg_max_error")
    for missing in (np.nan, None, pd.NA):
        labels = kinds.astype(object) if missing is not np.nan else kinds.copy()
        labels[33] = missing
        for model in (FLHClassifier(), SGDClassifier()):
            with pytest.raises(ValueError, match=r"y contains NaN \(first in row 33"):
                run(model, labels)
    masked = np.ma.array(kinds, mask=np.arange(80) == 34)
    with pytest.raises(ValueError, match=r"y contains NaN \(first in row 34\)"):
        run(SGDClassifier(), masked)
    with pytest.raises(ValueError, match="Complex"):
        run(SGDClassifier(), kinds + 1j)
    with pytest.raises(ValueError, match=r"y\[0\] is no number: 'a'"):
        run(SGDRegressor(), np.full(80, "a"))
    hidden = np.ma.array(X, mask=np.zeros_like(X))
    hidden[3, 1] = np.ma.masked
    with pytest.raises(ValueError, match="NaN"):
        progressive_val_score(SGDRegressor(), hidden, y, warmup_size=1)


def test_sparse_rows_of_any_format(rows):
    X, y = rows
    model = SGDRegressor(random_state=0)
    expected = progressive_val_predict(model, csr_array(X), y, warmup_size=1)
    found = progressive_val_predict(model, coo_array(X), y, warmup_size=1)
    assert_array_equal(found, expected)


def test_a_row_in_a_message_is_placed_in_the_stream(rows):
    X, y = rows
    y = np.abs(y).round()
    y[50] = -1
    for delay, warmup_size in [(0, 0), (1, 0), (0, 10)]:
        with pytest.raises(ValueError, match=r"negative \(first in row") as caught:
            progressive_val_predict(
                poisson(), X, y, delay=delay, warmup_size=warmup_size
            )
        (note,) = caught.value.__notes__
        if delay or warmup_size:
            assert note == f"Row {0 if delay else 40} here is row 50 of the stream."
        else:
            assert "row 50" in str(caught.value) and "80" in note


def test_scorers_are_checked_when_they_are_made(rows):
    X, y = rows
    with pytest.raises(ValueError, match="foo"):
        make_progressive_scorer("foo")
    for scoring in (3, ["r2"]):
        with pytest.raises(ValueError, match="scoring must be a scorer's name"):
            make_progressive_scorer(scoring)
    for make in (make_progressive_scorer, make_dynamic_regret_scorer):
        with pytest.raises(ValueError, match="learn must be True or False, got 'x'"):
            make(learn="x")
        for model in (
            FLHRegressor(),
            FusedLasso(),
            make_pipeline(StandardScaler(), FLHRegressor()),
        ):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                make()(model, X, y)
    scorer = make_progressive_scorer("neg_max_error")
    for learn in (True, False):
        scorer.set_params(learn=learn)
        with pytest.raises(TypeError, match=r"max_error.*takes no sample_weight"):
            scorer(FLHRegressor().fit(X, y), X, y, sample_weight=np.ones(80))


def test_whole_numbers_that_are_no_floats_are_refused(rows):
    """They are not rounded on their way."""
    _, y = rows
    X = np.arange(80) + 2**53
    for delay in (0, 1):
        with pytest.raises(ValueError, match=r"beyond 2\*\*53"):
            progressive_val_predict(OnlineTVDenoiser(), X, y, delay=delay)
