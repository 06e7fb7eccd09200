"""Progressive evaluation: what is learned when, and what the scores are."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from sktvdenoise import FusedLasso, OnlineTVDenoiser, OnlineTVFilter
from sktvdenoise.metrics import dynamic_regret, make_dynamic_regret_scorer
from sktvdenoise.model_selection import (
    iter_progressive_val_score,
    progressive_val_predict,
    progressive_val_score,
)


class Recorder(RegressorMixin, BaseEstimator):
    """Predicts how many rows it has learned; writes all calls down in `log`."""

    def __init__(self, log=None):
        self.log = log

    def __sklearn_clone__(self):
        return type(self)(self.log)

    def partial_fit(self, X, y, sample_weight=None):
        self.n_ = getattr(self, "n_", 0) + len(y)
        weights = None if sample_weight is None else sample_weight.tolist()
        self.log.append(("learn", X[:, 0].tolist(), y.tolist(), weights))
        return self

    def predict(self, X):
        self.log.append(("predict", X[:, 0].tolist()))
        return np.full(len(X), float(getattr(self, "n_", 0)))


class Slow(OnlineTVDenoiser):
    """Without the compiled pass."""

    partial_fit_predict = property(lambda self: self._hidden)

    def partial_fit(self, X, y, sample_weight=None):
        OnlineTVDenoiser.partial_fit_predict(self, X, y, sample_weight)
        return self


def regression(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1, 5, 1] + [0, 10, 0]
    return X, X @ [1.0, 0.2, -1.0] + 0.1 * rng.standard_normal(n)


# ---- what is learned when ----


@pytest.mark.parametrize("delay", [0, 1, 4, 100])
@pytest.mark.parametrize("warmup_size", [0, 1, 3, 9])
def test_a_row_is_predicted_before_it_and_late_labels_are_learned(delay, warmup_size):
    n, log = 10, []
    X, y = np.arange(n)[:, None], np.arange(n) + 0.5
    predictions = progressive_val_predict(
        Recorder(log), X, y, delay=delay, warmup_size=warmup_size
    )
    rows = np.arange(warmup_size, n)
    assert_array_equal(predictions, np.maximum(rows - delay, 0))
    assert [call[1] for call in log if call[0] == "predict"] == [[t] for t in rows]
    learned = [call[1:3] for call in log if call[0] == "learn"]
    assert [x for X, _ in learned for x in X] == list(range(max(n - 1 - delay, 0)))
    assert all(y == [x + 0.5 for x in X] for X, y in learned)
    # The rows known before the first prediction come in one call, others one by one.
    known = max(warmup_size - delay, 0)
    sizes = [len(X) for X, _ in learned]
    assert sizes == [known] * (known > 0) + [1] * (len(sizes) - (known > 0))


def test_weights_and_params_go_with_their_rows():
    log = []
    X, y, w = np.arange(4)[:, None], np.zeros(4), [1.0, 2.0, 3.0, 4.0]
    progressive_val_predict(Recorder(log), X, y, sample_weight=w, warmup_size=2)
    assert [call[3] for call in log if call[0] == "learn"] == [[1.0, 2.0], [3.0]]
    log.clear()
    progressive_val_predict(
        Recorder(log), X, y, params={"sample_weight": np.array(w)}, warmup_size=2
    )
    assert [call[3] for call in log if call[0] == "learn"] == [[1.0, 2.0], [3.0]]


@pytest.mark.parametrize("rate", ["auto", "theory", 0.05])
def test_row_by_row_is_the_compiled_pass_to_the_bit(stream, rate):
    X, y, w = stream
    for weights in (None, w):
        for labels in (y, np.c_[y, -2 * y]):
            expected = OnlineTVDenoiser(learning_rate=rate).partial_fit_predict(
                X, labels, weights
            )
            model = OnlineTVDenoiser(learning_rate=rate)
            found = progressive_val_predict(model, X, labels, sample_weight=weights)
            assert_array_equal(found, expected)
            scores = iter_progressive_val_score(
                model, X, labels, sample_weight=weights, step=7
            )
            last = list(scores)[-1].score
            row_weights = np.ones(len(y)) if weights is None else weights
            errors = ((labels - expected) ** 2).reshape(len(y), -1).mean(axis=1)
            assert last == pytest.approx(-np.average(errors, weights=row_weights))
    slow = progressive_val_predict(Slow(learning_rate=rate), X, y, warmup_size=1)
    fast = progressive_val_predict(OnlineTVDenoiser(learning_rate=rate), X, y)
    assert_array_equal(slow, fast[1:])


def test_late_labels_of_a_denoiser(stream):
    X, y, _ = stream
    delay = 3
    found = progressive_val_predict(OnlineTVDenoiser(), X, y, delay=delay)
    on_time = progressive_val_predict(OnlineTVDenoiser(), X, y)
    assert_array_equal(found[: delay + 1], 0.0)
    # What is known of row t is the forecast for the row after the last one learned.
    assert_array_equal(found[delay:], on_time[:-delay])


@pytest.mark.parametrize("delay", [0, 2])
def test_a_longer_warmup_only_leaves_out_predictions(stream, delay):
    X, y, _ = stream
    whole = progressive_val_predict(OnlineTVDenoiser(), X, y, delay=delay)
    for warmup_size in (1, 2, 3, 50):
        part = progressive_val_predict(
            OnlineTVDenoiser(), X, y, delay=delay, warmup_size=warmup_size
        )
        assert_array_equal(part, whole[warmup_size:])


def test_no_prediction_looks_ahead():
    X, y = regression()
    model = make_pipeline(StandardScaler(), SGDRegressor(random_state=0))
    whole = progressive_val_predict(model, X, y, warmup_size=5, delay=1)
    X[40:], y[39:] = 1e3, -1e3
    changed = progressive_val_predict(model, X, y, warmup_size=5, delay=1)
    assert_array_equal(changed[:35], whole[:35])
    assert np.all(changed[36:] != whole[36:])


# ---- any estimator ----


def test_a_pipeline_learns_a_row_from_step_to_step_after_its_prediction():
    X, y = regression()
    model = make_pipeline(StandardScaler(), Normalizer(), SGDRegressor(random_state=0))
    found = progressive_val_predict(model, X, y, warmup_size=5)
    scaler, sgd = StandardScaler(), SGDRegressor(random_state=0)
    expected = []
    for rows in [slice(0, 5), *(slice(t, t + 1) for t in range(5, len(y)))]:
        if rows.start:
            Z = Normalizer().transform(scaler.transform(X[rows]))
            expected.append(sgd.predict(Z)[0])
        Z = scaler.partial_fit(X[rows]).transform(X[rows])
        sgd.partial_fit(Normalizer().transform(Z), y[rows])
    assert_array_equal(found, expected)


def test_estimators_of_scikit_learn():
    X, y = regression()
    kinds = np.where(y > np.median(y), "high", "low")
    found = progressive_val_predict(
        make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
        X,
        kinds,
        warmup_size=1,
    )
    assert set(found) == {"high", "low"}
    both = np.c_[y, 2 * y]
    model = MultiOutputRegressor(SGDRegressor(random_state=0))
    assert progressive_val_predict(model, X, both, warmup_size=1).shape == (59, 2)
    counts = np.abs(X).astype(int)
    proba = progressive_val_predict(
        MultinomialNB(), counts, kinds, warmup_size=1, method="predict_proba"
    )
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    clusters = progressive_val_predict(
        MiniBatchKMeans(3, random_state=0, n_init=1), X, y, warmup_size=10
    )
    assert clusters.shape == (50,) and clusters.max() < 3
    words = ["yes indeed", "no never"] * 10
    model = make_pipeline(HashingVectorizer(n_features=16), SGDClassifier())
    answers = np.tile([1, 0], 10)
    assert_array_equal(
        progressive_val_predict(model, words, answers, warmup_size=4), answers[4:]
    )
    model = make_pipeline(IncrementalPCA(2), GaussianNB())
    assert len(progressive_val_predict(model, X, kinds, warmup_size=10)) == 50


def test_classes_go_to_the_first_call_only():
    calls = []

    class Classifier(ClassifierMixin, BaseEstimator):
        def partial_fit(self, X, y, classes=None):
            calls.append(classes)
            self.classes_ = np.array([0, 1, 2])
            return self

        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    X, y = np.zeros((4, 1)), [1, 2, 1, 1]
    progressive_val_predict(Classifier(), X, y, warmup_size=1)
    assert [None if c is None else c.tolist() for c in calls] == [[1, 2], None, None]
    calls.clear()
    params = {"classes": [0, 1, 2, 3]}
    progressive_val_predict(Classifier(), X, y, warmup_size=2, params=params)
    assert calls == [[0, 1, 2, 3], None]


def test_frozen_steps_stay_as_they_are():
    X, y = regression()
    scaler = StandardScaler().fit(X[:30])
    before = pickle.dumps(scaler)
    model = make_pipeline(FrozenEstimator(scaler), SGDRegressor(random_state=0))
    found = progressive_val_predict(model, X, y, warmup_size=1)
    assert pickle.dumps(scaler) == before
    expected = progressive_val_predict(
        SGDRegressor(random_state=0), scaler.transform(X), y, warmup_size=1
    )
    assert_array_equal(found, expected)
    learner = SGDRegressor(random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="FrozenEstimator"):
        progressive_val_predict(FrozenEstimator(learner), X, y)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Ridge(), "^Ridge"),
        (FusedLasso(), "^FusedLasso"),
        (make_pipeline(StandardScaler(), Ridge()), "'ridge'"),
        (make_pipeline(PolynomialFeatures(), SGDRegressor()), "'polynomialfeatures'"),
        (make_pipeline(OnlineTVFilter(), Ridge()), "'ridge'"),
        (
            make_pipeline(
                make_pipeline(FunctionTransformer(), PolynomialFeatures()),
                SGDRegressor(),
            ),
            "'polynomialfeatures'",
        ),
    ],
)
def test_what_cannot_stream_is_named(model, named):
    with pytest.raises(TypeError, match=rf"{named}.*partial_fit"):
        progressive_val_predict(model, *regression())


def test_the_estimator_is_not_changed(stream):
    X, y, _ = stream
    for model in (
        OnlineTVDenoiser(),
        OnlineTVDenoiser().fit(X, y),
        make_pipeline(StandardScaler(), SGDRegressor(random_state=0)).fit(X, y),
    ):
        before = pickle.dumps(model)
        first = progressive_val_predict(model, X, y, warmup_size=1)
        progressive_val_score(model, X, y, warmup_size=2, delay=1)
        assert pickle.dumps(model) == before
        # It starts afresh, whatever the estimator knew.
        assert_array_equal(progressive_val_predict(model, X, y, warmup_size=1), first)


def test_positions_in_a_pipeline_are_those_after_the_transformers(stream):
    X, y, _ = stream
    model = make_pipeline(FunctionTransformer(np.negative), OnlineTVDenoiser())
    expected = progressive_val_predict(OnlineTVDenoiser(), X, y)
    assert_array_equal(
        progressive_val_predict(model, -X, y, warmup_size=1), expected[1:]
    )


def test_sparse_and_polars_rows():
    X, y = regression()
    table = pytest.importorskip("polars").DataFrame(X, schema=list("abc"))
    model = SGDRegressor(random_state=0)
    expected = progressive_val_predict(model, X, y, warmup_size=1)
    assert_array_equal(
        progressive_val_predict(model, table, y, warmup_size=1), expected
    )
    sparse = progressive_val_predict(model, csr_array(X), y, warmup_size=1)
    assert sparse.shape == expected.shape


def test_frames_are_cut_like_arrays(stream):
    X, y, _ = stream
    expected = progressive_val_predict(OnlineTVDenoiser(), X, y, delay=1)
    frame = pd.DataFrame(X, columns=["day"], index=range(100, 100 + len(y)))
    series = pd.Series(y, index=frame.index)
    found = progressive_val_predict(OnlineTVDenoiser(), frame, series, delay=1)
    assert_array_equal(found, expected)
    assert_array_equal(
        progressive_val_predict(OnlineTVDenoiser(), X.tolist(), y.tolist(), delay=1),
        expected,
    )


# ---- scores ----

REGRESSION = [
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_median_absolute_error",
    "r2",
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_scores_are_those_of_the_predictions(stream, weighted, n_outputs):
    X, y, w = stream
    w = w if weighted else None
    if n_outputs == 2:
        y = np.c_[y, 3 * y]
    model = OnlineTVDenoiser()
    predictions = progressive_val_predict(model, X, y, sample_weight=w, warmup_size=2)
    found = list(
        iter_progressive_val_score(
            model, X, y, scoring=REGRESSION, sample_weight=w, warmup_size=2, step=49
        )
    )
    assert [part.n_samples for part in found] == [49, 98, 147, 196, 198]
    assert np.all(np.diff([part.seconds for part in found]) >= 0)
    functions = [
        metrics.mean_squared_error,
        metrics.root_mean_squared_error,
        metrics.mean_absolute_error,
        metrics.median_absolute_error,
        metrics.r2_score,
    ]
    for n, scores, _ in found:
        for name, function in zip(REGRESSION, functions):
            weights = None if w is None else w[2 : 2 + n]
            expected = function(y[2 : 2 + n], predictions[:n], sample_weight=weights)
            sign = 1 if name == "r2" else -1
            assert scores[name] == pytest.approx(sign * expected, rel=1e-12), name
    whole = progressive_val_score(
        model, X, y, scoring=REGRESSION, sample_weight=w, warmup_size=2
    )
    assert whole == pytest.approx(found[-1].score, rel=1e-12)


def test_scores_of_classifiers():
    X, y = regression()
    y = np.where(y > np.median(y), "high", "low")
    model = make_pipeline(
        StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)
    )
    scoring = {
        "accuracy": "accuracy",
        "exact": metrics.make_scorer(metrics.accuracy_score),
        "loss": "neg_log_loss",
        "area": "roc_auc",
    }
    scores = progressive_val_score(model, X, y, scoring=scoring, warmup_size=4)
    labels = progressive_val_predict(model, X, y, warmup_size=4)
    proba = progressive_val_predict(model, X, y, warmup_size=4, method="predict_proba")
    margin = progressive_val_predict(
        model, X, y, warmup_size=4, method="decision_function"
    )
    assert scores["accuracy"] == pytest.approx(np.mean(labels == y[4:]), rel=1e-12)
    assert scores["exact"] == pytest.approx(scores["accuracy"], rel=1e-12)
    assert scores["loss"] == pytest.approx(-metrics.log_loss(y[4:], proba))
    assert scores["area"] == pytest.approx(metrics.roc_auc_score(y[4:], margin))
    default = progressive_val_score(model, X, y, warmup_size=4)
    assert default == scores["accuracy"]


def test_regret_as_a_progressive_score(stream):
    X, y, w = stream
    scorer = make_dynamic_regret_scorer(tv_budget=12)
    model = OnlineTVDenoiser()
    found = progressive_val_score(model, X, y, scoring=scorer, sample_weight=w)
    predictions = model.partial_fit_predict(X, y, w)
    expected = -dynamic_regret(y, predictions, tv_budget=12, sample_weight=w)
    assert found == pytest.approx(expected, rel=1e-12)


def test_missing_labels_are_predicted_and_not_scored(stream):
    X, y, _ = stream
    y = y.copy()
    y[[0, 1, 60, 61, 199]] = np.nan
    model = OnlineTVDenoiser(missing="skip")
    predictions = progressive_val_predict(model, X, y)
    assert np.isfinite(predictions).all()
    seen = ~np.isnan(y)
    scoring = ["neg_mean_squared_error", "r2"]
    found = list(iter_progressive_val_score(model, X, y, scoring=scoring, step=2))
    assert np.isnan(found[0].score["r2"])
    assert np.isnan(found[0].score["neg_mean_squared_error"])
    last = found[-1].score
    mse = np.mean((y - predictions)[seen] ** 2)
    assert last["neg_mean_squared_error"] == pytest.approx(-mse)
    assert last["r2"] == pytest.approx(metrics.r2_score(y[seen], predictions[seen]))
    with pytest.raises(ValueError, match=r"NaN.*row 0"):
        progressive_val_predict(OnlineTVDenoiser(), X, y)


def test_default_scores_are_finite_on_one_row_and_tell_small_errors():
    model = OnlineTVDenoiser(learning_rate="theory", bound=1.0)
    assert progressive_val_score(model, [0], [1.0]) == -1.0
    y = np.ones(5)
    exact = progressive_val_score(model, np.arange(5), y, warmup_size=1)
    y[3] += 1e-7
    model.set_params(bound=2.0)
    close = progressive_val_score(model, np.arange(5), y, warmup_size=1)
    assert exact == 0.0 and -1e-13 < close < 0.0
    with pytest.raises(TypeError, match="scoring must be given"):
        progressive_val_score(MiniBatchKMeans(), np.ones((5, 1)), np.ones(5))


def test_a_bar_on_request_changes_nothing(stream, capsys, monkeypatch):
    X, y, _ = stream
    ticks = iter(range(10**6))
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))
    plain = progressive_val_predict(OnlineTVDenoiser(), X, y, delay=1)
    score = progressive_val_score(OnlineTVDenoiser(), X, y)
    assert capsys.readouterr() == ("", "")
    bar = progressive_val_predict(OnlineTVDenoiser(), X, y, delay=1, verbose=True)
    assert "[###" in capsys.readouterr().err
    assert_array_equal(bar, plain)
    found = progressive_val_score(OnlineTVDenoiser(), X, y, verbose=True)
    assert "100%" in capsys.readouterr().err
    assert found == pytest.approx(score, rel=1e-12)
    steps = iter_progressive_val_score(OnlineTVDenoiser(), X, y, step=7, verbose=True)
    assert [part.n_samples for part in steps] == [*range(7, 200, 7), 200]


# ---- bad input ----


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1.0, 2.0]}, r"X has 3, y has shape \(2,\)"),
        ({"y": [1.0, np.nan, 2.0]}, "NaN.*row 1"),
        ({"y": [1.0, 2.0, np.inf]}, "infinity.*row 2"),
        ({"y": None}, "y is None"),
        ({"X": [], "y": []}, "."),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight is negative.*row 1"),
        ({"sample_weight": [1.0]}, "one number per row"),
        ({"delay": -1}, "delay must be an integer >= 0, got -1"),
        ({"delay": 0.5}, "delay must be an integer >= 0, got 0.5"),
        ({"warmup_size": -1}, "warmup_size must be an integer >= 0"),
        ({"warmup_size": 3}, "warmup_size must be less than the number of rows, 3"),
    ],
)
def test_bad_input_is_refused(changes, message):
    good = {"X": [[0], [1], [2]], "y": [1.0, 2.0, 3.0]}
    for function in (progressive_val_predict, progressive_val_score):
        with pytest.raises(ValueError, match=message):
            function(OnlineTVDenoiser(), **good | changes)
    with pytest.raises(ValueError, match=message):
        iter_progressive_val_score(OnlineTVDenoiser(), **good | changes)


def test_other_bad_arguments():
    X, y = regression()
    with pytest.raises(ValueError, match="method must be one of"):
        progressive_val_predict(OnlineTVDenoiser(), X[:, :1], y, method="transform")
    with pytest.raises(TypeError, match="SGDRegressor has no predict_proba"):
        progressive_val_predict(SGDRegressor(), X, y, method="predict_proba")
    for step in (0, -1, 1.5):
        with pytest.raises(ValueError, match="step must be"):
            iter_progressive_val_score(SGDRegressor(), X, y, step=step)
    for scoring in ([], {}, 3):
        with pytest.raises(ValueError, match="scoring must be"):
            progressive_val_score(SGDRegressor(), X, y, scoring=scoring)
    with pytest.raises(NotFittedError, match="delay=2, warmup_size must be at least 3"):
        progressive_val_predict(SGDRegressor(), X, y, delay=2)
    with pytest.raises(ValueError, match=r"X and y|inconsistent numbers"):
        progressive_val_predict(GaussianNB(), X, y[:5] > 0)


def test_scores_that_do_not_fit_the_labels_are_refused_before_learning():
    X, y = regression()
    kinds = np.where(y > np.median(y), "high", "low")
    with pytest.raises(ValueError, match="scoring"):
        iter_progressive_val_score(SGDRegressor(), X, y, scoring="best")
    with pytest.raises(ValueError, match="string"):
        progressive_val_score(
            SGDClassifier(), X, kinds, scoring="neg_mean_squared_error", warmup_size=1
        )
    with pytest.raises(ValueError, match="continuous"):
        progressive_val_score(SGDRegressor(), X, y, scoring="accuracy", warmup_size=1)


def test_an_error_tells_the_row_of_the_stream():
    X, y = regression()
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        progressive_val_predict(SGDRegressor(), X, y, warmup_size=1)
    assert caught.value.__notes__ == ["At row 17 of the stream."]


def test_a_scorer_that_asks_for_nothing_or_for_too_much():
    X, y = regression()
    kinds = (y > np.median(y)).astype(int)

    def greedy(estimator, X, y):
        return np.mean(estimator.predict(X) == estimator.predict_proba(X).argmax(1))

    with pytest.raises(TypeError, match="asks for predict_proba besides"):
        progressive_val_score(GaussianNB(), X, kinds, scoring=greedy, warmup_size=20)
    with pytest.raises(TypeError, match="asks for none of"):
        progressive_val_score(GaussianNB(), X, kinds, scoring=lambda *args: 1.0)
