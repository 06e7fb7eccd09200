"""The engine that an estimator with covariates asks for, and those of "auto"."""

import numpy as np

from sktvdenoise import ladder
from sktvdenoise._engines import LEAST_SQUARES, FLHEngine, NumpyFLHEngine
from sktvdenoise.laplace import CompiledPool
from sktvdenoise.losses import LOSSES, check_fit

# Labels within which `CentredEngine` decides.
OPENING = 8

_NAMES = {type(loss): name for name, loss in LOSSES.items()}

# Parameters that do nothing, and are refused where they differ from their defaults: by
# the rate and the loss, or the rate and the expert. With "auto" the others concern its
# guard.
INERT = {
    ("auto", "squared"): ("fit_intercept",),
    ("auto", "logistic"): ("expert", "bound", "alpha", "fit_intercept"),
    ("auto", "poisson"): ("expert", "bound", "pruning", "alpha", "fit_intercept"),
    ("theory", "ons"): ("alpha",),
    ("theory", "ogd"): ("alpha",),
}


def make_engine(estimator, loss, defaults):
    """The engine that an estimator's parameters ask for.

    Parameters
    ----------
    estimator : estimator instance
        With the parameters of `FLHRegressor` but `loss`.
    loss : {"squared", "poisson", "logistic"} or Loss
    defaults : dict
        The estimator's default parameters.

    Raises
    ------
    ValueError
        If parameters don't go together, or one would do nothing.
    """
    loss = _NAMES.get(type(loss), loss)
    rate, expert = estimator.learning_rate, estimator.expert
    if isinstance(rate, str):
        kind = loss if rate == "auto" else expert
        if rate == "auto" and (rate, kind) not in INERT:
            raise ValueError(
                'learning_rate="auto" is for squared, Poisson and logistic loss, not '
                f'for {loss!r}: give a number, or "theory".'
            )
        for name in INERT.get((rate, kind), ()):
            value = getattr(estimator, name)
            if value != defaults[name]:
                raise ValueError(
                    f"{name}={value!r} does nothing with learning_rate={rate!r} and "
                    f"{'loss' if rate == 'auto' else 'expert'}={kind!r}: leave it at "
                    f"{defaults[name]!r}."
                )
    if rate == "auto":
        return _auto_engine(estimator, loss)
    who = f"expert={expert!r} with learning_rate={rate!r}"
    if expert in LEAST_SQUARES and loss != "squared":
        raise ValueError(
            f"expert={expert!r} is for squared loss; with loss={loss!r} choose "
            "expert='ons' or 'ogd'."
        )
    known = LOSSES.get(loss, loss) if isinstance(loss, str) else loss
    needed = ["value", "derivative"]
    if rate == "theory":
        needed.append("second_derivative")
    check_fit(known, needed, who)
    make = FLHEngine if isinstance(loss, str) else NumpyFLHEngine
    return make(
        expert,
        known,
        rate,
        bound=estimator.bound,
        alpha=estimator.alpha,
        pruned=estimator.pruning == "aflh",
        intercept=bool(estimator.fit_intercept),
    )


def _auto_engine(estimator, loss):
    """The pool of a loss, beside the theorem's learner where there can be one."""
    pruned, known = estimator.pruning == "aflh", LOSSES[loss]
    if loss == "squared":
        if estimator.expert not in LEAST_SQUARES:
            raise ValueError(
                f"expert={estimator.expert!r} with learning_rate='auto': the experts "
                "of its guard are 'vaw' or 'ridge'."
            )
        guard = FLHEngine(
            estimator.expert,
            known,
            "theory",
            bound=estimator.bound,
            alpha=estimator.alpha,
            pruned=pruned,
            intercept=True,
        )
        return CentredEngine(_CompiledLadder(), guard, predicts_mean=False)
    # The constants of counts up to Y are of the order of exp(Y): their learner would
    # not move.
    guard = None
    if loss == "logistic":
        settings = {"bound": None, "alpha": 1.0, "pruned": pruned, "intercept": False}
        guard = UnitRows(FLHEngine("ons", known, "theory", **settings))
    return AutoEngine(CompiledPool(loss), guard, predicts_mean=True)


class UnitRows:
    """An engine that sees rows, with a 1 for the intercept, of norms of at most 1.

    Rows are divided by the power of two that is above all norms so far; where that
    grows, the engine starts again. For a larger row it predicts 0. A state is a tuple:
    the power, the row of the last start, the number of rows, and the engine's.

    Parameters
    ----------
    engine : engine
        Without an intercept of its own.
    """

    def __init__(self, engine):
        self.engine, self.loss = engine, engine.loss

    def start(self, n_features):
        return 0.0, 0, 0, self.engine.start(n_features + 1)

    def check(self, state, X, y, weights):
        """No row is beyond the range of this engine."""

    def learn(self, state, X, y, weights, out):
        size, first, n_seen, inner = state
        Z, norms = self._augmented(X)
        done, n = 0, len(y)
        while done < n:
            beyond = np.flatnonzero((norms[done:] > size) & (weights[done:] > 0))
            stop = done + int(beyond[0]) if len(beyond) else n
            if stop > done:
                at = slice(done, stop)
                rows = Z[at] / np.maximum(size, norms[at])[:, None]
                inner = self.engine.learn(inner, rows, y[at], weights[at], out[at])
                out[at][norms[at] > size] = 0.0
            if stop < n:
                size = float(np.ldexp(1.0, np.frexp(norms[stop])[1]))
                first, inner = n_seen + stop, self.engine.start(Z.shape[1])
            done = stop
        return size, first, n_seen + n, inner

    def predict(self, state, X):
        size, _, _, inner = state
        Z, norms = self._augmented(X)
        out = self.engine.predict(inner, Z / np.maximum(size, norms)[:, None])
        out[norms > size] = 0.0
        return out

    def experts(self, state):
        births, weights = self.engine.experts(state[3])
        return births + state[1], weights

    def _augmented(self, X):
        Z = np.column_stack([X, np.ones(len(X))])
        return Z, np.sqrt(np.einsum("ij,ij->i", Z, Z))


class _CompiledLadder:
    """The functions of `sktvdenoise.ladder` as an object, which pickles."""

    allocate = staticmethod(ladder.allocate)
    learn = staticmethod(ladder.learn)
    predict = staticmethod(ladder.predict)
    coefficients = staticmethod(ladder.coefficients)
    weights = staticmethod(ladder.weights)


class AutoEngine:
    """By a compiled pool that needs no settings, with a theorem's learner as its guard.

    Parameters
    ----------
    pool : object
        With ``allocate(n_features)``, ``learn(state, X, y, weights, guard, out)``,
        ``predict(state, X, guard, out)``, ``coefficients(state)``, which gives
        coefficients and intercept, and ``weights(state)``, those of its members.
    guard : engine or None
        Its predictions go to the pool, as means where `predicts_mean` is true.
    predicts_mean : bool

    A state is a pair: the pool's and the guard's.
    """

    def __init__(self, pool, guard, *, predicts_mean):
        self.pool, self.guard, self.predicts_mean = pool, guard, predicts_mean

    def start(self, n_features):
        guard = self.guard and self.guard.start(n_features)
        return self.pool.allocate(n_features), guard

    def check(self, state, X, y, weights):
        if self.guard:
            self.guard.check(state[1], X, y, weights)

    def learn(self, state, X, y, weights, out):
        mine, guards = state
        guarded = None
        if self.guard:
            guarded = np.empty(len(y))
            guards = self.guard.learn(guards, X, y, weights, guarded)
        self.pool.learn(mine, X, y, weights, self._means(guarded), out)
        return mine, guards

    def predict(self, state, X):
        out = np.empty(len(X))
        guarded = self.guard and self._means(self.guard.predict(state[1], X))
        self.pool.predict(state[0], X, guarded, out)
        return out

    def coef(self, state):
        return self.pool.coefficients(state[0])

    def experts(self, state):
        """Those of the guard."""
        if not self.guard:
            raise AttributeError("There are no experts with counts at 'auto'")
        return self.guard.experts(state[1])

    def members(self, state):
        return self.pool.weights(state[0])

    def _means(self, guarded):
        if guarded is None or not self.predicts_mean:
            return guarded
        return self.guard.loss.mean(guarded)


class CentredEngine(AutoEngine):
    """An `AutoEngine` for labels far from 0, such as temperatures in kelvin.

    Where of the first `OPENING` labels the first few are all more than three times
    their range away from 0, the first is taken off from all labels, and the pool starts
    again with these rows. A state has two more entries: the label that is taken off,
    and the first rows while that is open, else None.
    """

    def start(self, n_features):
        rows = np.empty((0, n_features)), np.empty(0), np.empty(0), np.empty(0)
        return *super().start(n_features), 0.0, rows

    def learn(self, state, X, y, weights, out):
        mine, guards, base, rows = state
        guarded = np.empty(len(y))
        guards = self.guard.learn(guards, X, y, weights, guarded)

        def run(at, mine, base):
            rows = X[at], y[at], weights[at], guarded[at]
            self._learn_pool(mine, base, *rows, out[at])

        done = 0
        while rows is not None and done < len(y):
            at = slice(done, done + 1)
            run(at, mine, base)
            done += 1
            if not weights[at] > 0:
                continue
            new = X[at], y[at], weights[at], guarded[at]
            rows = tuple(np.concatenate(pair) for pair in zip(rows, new))
            if self._is_far(rows[1]):
                base, mine = float(rows[1][0]), self.pool.allocate(X.shape[1])
                self._learn_pool(mine, base, *rows, np.empty(len(rows[1])))
            if base or len(rows[1]) == OPENING:
                rows = None
        if done < len(y):
            run(slice(done, None), mine, base)
        return mine, guards, base, rows

    def predict(self, state, X):
        mine, guards, base, _ = state
        out = np.empty(len(X))
        self.pool.predict(mine, X, self.guard.predict(guards, X) - base, out)
        return out + base

    def coef(self, state):
        slopes, intercept = self.pool.coefficients(state[0])
        return slopes, intercept + state[2]

    def _learn_pool(self, mine, base, X, y, weights, guarded, out):
        self.pool.learn(mine, X, y - base, weights, guarded - base, out)
        out += base

    @staticmethod
    def _is_far(labels):
        return len(labels) > 1 and np.abs(labels).min() > 3 * np.ptp(labels)
