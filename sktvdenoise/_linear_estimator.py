"""What the estimators with covariates share: rows, states, and what is read of them."""

from functools import cache
from inspect import signature
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from sktvdenoise._auto_engines import make_engine
from sktvdenoise._engines import EXPERTS, LARGEST
from sktvdenoise._positions import (
    check_size,
    check_weights,
    refuse_no_number,
    refuse_not_finite,
)

TOO_LARGE = f"the largest number allowed is {LARGEST:g}"


@cache
def _defaults(cls):
    parameters = signature(cls.__init__).parameters
    return {name: p.default for name, p in parameters.items() if name != "self"}


class LinearEstimator(BaseEstimator):
    """Rows in, states of engines on; one state for each output or class."""

    _parameter_constraints = {
        "expert": [StrOptions(set(EXPERTS))],
        "learning_rate": [
            StrOptions({"auto", "theory"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "bound": [None, Interval(Real, 0, None, closed="neither")],
        "pruning": [StrOptions({"aflh"}), None],
        "alpha": [Interval(Real, 1e-30, 1e30, closed="both")],
        "fit_intercept": ["boolean"],
    }

    @property
    def coef_(self):
        return self._read("coef_", lambda s: self._engine.coef(s)[0])

    @property
    def intercept_(self):
        return self._read("intercept_", lambda s: self._engine.coef(s)[1])

    @property
    def expert_births_(self):
        return self._list("expert_births_", lambda s: self._engine.experts(s)[0])

    @property
    def expert_weights_(self):
        return self._list("expert_weights_", lambda s: self._engine.experts(s)[1])

    @property
    def member_weights_(self):
        self._check_attribute("member_weights_")
        if not hasattr(self._engine, "members"):
            raise AttributeError('member_weights_ are there only with "auto"')
        return self._list("member_weights_", self._engine.members)

    @property
    def learning_rate_(self):
        return self._read_theory("learning_rate_", "rate_of")

    @property
    def bound_(self):
        return self._read_theory("bound_", "bound_of")

    @property
    def label_bound_(self):
        return self._read_theory("label_bound_", "label_bound_of")

    @property
    def row_bound_(self):
        return self._read_theory("row_bound_", "row_bound_of")

    @property
    def constants_(self):
        self._check_attribute("constants_")
        if not getattr(self._engine, "has_constants", False):
            raise AttributeError(
                'constants_ are there only with learning_rate="theory" and '
                'expert="ons" or "ogd"'
            )
        return self._list("constants_", self._engine.constants_of)

    def __setstate__(self, state):
        super().__setstate__(state)
        if self.__sklearn_is_fitted__():
            self._states = [_writeable(s) for s in self._states]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_samples_seen_")

    def _check_rows(self, X, *, reset):
        """X as a float array; the estimator is compared with, but not changed."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
        if not plain or X.size == 0:
            original = X
            X = self._as_floats(X)
            if not reset:
                validate_data(self, original, reset=False, skip_check_array=True)
        elif not reset and (
            X.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_")
        ):
            validate_data(self, X, reset=False, skip_check_array=True)
        with np.errstate(over="ignore", invalid="ignore"):
            usual = np.abs(X).max() <= LARGEST
        if not usual:
            refuse_not_finite(X, "X")
            row = int(np.argmax(np.abs(X).max(axis=1)))
            raise ValueError(
                f"X[{row}] holds {np.abs(X[row]).max():g}, which is too large: "
                f"{TOO_LARGE}."
            )
        return X

    def _as_floats(self, X):
        """X as a float array of shape (n_samples, n_features), maybe not finite."""
        try:
            return check_array(
                X,
                dtype=np.float64,
                ensure_all_finite=False,
                estimator=self,
                input_name="X",
            )
        except ValueError:
            values = np.asarray(X)
            if values.dtype.kind in "OSU" and values.ndim == 2 and values.size:
                refuse_no_number(X, "X", "Covariates")
            raise

    def _check_weights(self, sample_weight, n_samples, *, whole):
        weights = check_weights(sample_weight, n_samples, allow_all_zero=not whole)
        check_size(weights, LARGEST, "sample_weight", why=TOO_LARGE)
        return weights

    def _start(self, X, loss, n_states):
        """An engine and its states, which are not the estimator's yet."""
        engine = make_engine(self, loss, _defaults(type(self)))
        return engine, [engine.start(X.shape[1]) for _ in range(n_states)]

    def _learn(self, begun, original, X, columns, weights):
        """Learn checked rows; `begun` is an engine and its states.

        Returns predictions, one column for each state. Nothing changes if a check of
        the engine fails.
        """
        engine, states = begun
        for state, y in zip(states, columns):
            engine.check(state, X, y, weights)
        if not self.__sklearn_is_fitted__() or engine is not self._engine:
            validate_data(self, original, reset=True, skip_check_array=True)
            self._engine = engine
            self.n_samples_seen_ = 0
        out = np.empty((len(states), len(X)))
        self._states = [
            engine.learn(state, X, y, weights, row)
            for state, y, row in zip(states, columns, out)
        ]
        self.n_samples_seen_ += len(X)
        return out.T

    def _outputs(self, X):
        """What the engine predicts, one column for each state."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        return np.stack([self._engine.predict(s, X) for s in self._states], axis=1)

    def _check_attribute(self, name):
        # AttributeError, so that hasattr is False until there are rows.
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{name} is there once rows have been seen")

    def _list(self, name, read):
        self._check_attribute(name)
        found = [read(state) for state in self._states]
        return found[0] if self._is_single() else found

    def _read(self, name, read):
        found = self._list(name, read)
        return found if self._is_single() else np.array(found)

    def _read_theory(self, name, method):
        self._check_attribute(name)
        if not hasattr(self._engine, method):
            raise AttributeError(f'{name} is not there with learning_rate="auto"')
        return self._read(name, getattr(self._engine, method))


def _writeable(state):
    """Copies of arrays that unpickling has mapped into read-only memory."""
    if isinstance(state, np.ndarray):
        return state if state.flags.writeable else state.copy()
    return tuple(map(_writeable, state)) if type(state) is tuple else state
