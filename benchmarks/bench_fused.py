"""The offline kernels beside the public one-dimensional TV solvers, in one process.

Run ``python benchmarks/bench_fused.py [n ...]`` with the package importable; solvers
that are not installed are skipped with a line. Prints markdown tables of CPU
nanoseconds per sample, minima over rounds in which all solvers take turns. With
``--gaps n`` it prints how near to the optimum they come.
"""

import importlib
import sys
import time

import numpy as np
from sktvdenoise._fused import erode, solve

from sktvdenoise import FusedLasso, FusedLassoCV, InterleavedKFold, fused_lasso_path
from sktvdenoise._signal import Signal, solution
from sktvdenoise.offline import duality_gap, fused_lasso

PEERS = {
    "TVDCondat2013 2013": ("TVDCondat2013", "tvd_2013", {}),
    "TVDCondat2013 2017": ("TVDCondat2013", "tvd_2017", {}),
    "TVDCondat2013 string": ("TVDCondat2013", "tvd_tautstring", {}),
    "prox_tv classic": ("prox_tv", "tv1_1d", {"method": "classictautstring"}),
    "prox_tv default": ("prox_tv", "tv1_1d", {}),
    "condat_tv": ("condat_tv", "tv_denoise", {}),
}
QUADRATIC = "TVDCondat2013 2013"  # 80 microseconds a sample on ramps of 1e5
BUDGETS = (1e-6, 1e-3, 1e-2, 0.1, 0.5, 0.9)


def peers():
    """The installed peers as functions of y and alpha."""
    found = {}
    for name, (module, function, options) in PEERS.items():
        try:
            run = getattr(importlib.import_module(module), function)
        except ImportError:
            print(f"{name}: not installed, skipped")
            continue
        found[name] = lambda y, alpha, run=run, options=options: run(
            y, alpha, **options
        )
    return found


def solve_unit(y, alpha):
    u = np.empty_like(y)
    solve(y, None, alpha, u)
    return u


def solve_weighted(y, alpha):
    u = np.empty_like(y)
    solve(y, np.ones_like(y), alpha, u)
    return u


def erosion(y, _):
    return erode(y, None, *np.empty((2, len(y) - 1)))


def plateaus(n, rng):
    """Ten to a hundred levels of size 5, noise of size 1."""
    n_levels = min(100, n // 50)
    return np.repeat(5 * rng.normal(size=n_levels), n // n_levels) + rng.normal(size=n)


def smooth_signals(n, rng):
    t = np.arange(n, dtype=float)
    return {
        "ramp": t,
        "saw": t % 1000,
        "sine": np.sin(40 * t / n),
        "walk": np.cumsum(rng.normal(size=n)),
    }


def n_pieces(u):
    return 1 + np.count_nonzero(np.diff(u))


def alpha_for_pieces(y, target):
    low, high = 1e-6, 2 * largest_alpha(y)
    for _ in range(50):
        middle = np.sqrt(low * high)
        few = n_pieces(solve_unit(y, middle)) <= target
        low, high = (low, middle) if few else (middle, high)
    return high


def largest_alpha(y):
    return np.abs(np.cumsum(y - y.mean())).max()


def timings(functions, signals, alpha, rounds):
    """Minimal CPU nanoseconds per sample of each function over all signals."""
    best = dict.fromkeys(functions, np.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            function(signals[-1], alpha)  # the allocator and caches settle
            start = time.process_time()
            for y in signals:
                function(y, alpha)
            spent = (time.process_time() - start) / sum(map(len, signals))
            best[name] = min(best[name], 1e9 * spent)
    return best


def relative_gap(y, u, alpha):
    objective = 0.5 * np.sum((y - u) ** 2) + alpha * np.abs(np.diff(u)).sum()
    return duality_gap(y, u, alpha) * len(y) / objective


def cases(n, rng):
    """Label, signals (fresh ones for every call where n is small), alpha."""
    signals = [plateaus(n, rng) for _ in range(max(2, 200_000 // n))]
    for pieces in (n // 10, min(100, n // 50), 2, 1):
        yield f"plateaus + noise, {pieces} pieces", signals, None, pieces
    for name, y in smooth_signals(n, rng).items():
        for fraction in (1e-4, 1e-2, 0.3):
            label = f"{name}, alpha = {fraction:g} of the largest"
            yield label, [y] * max(1, 200_000 // n), fraction * largest_alpha(y), None


def table_of_solves(n, others, rounds):
    rng = np.random.default_rng(0)
    names = ["solve", "solve, weighted", "fused_lasso", *others]
    print(f"\nn = {n}: CPU ns per sample (relative gap of solve, worst peer)\n")
    print("| signal |", " | ".join(names), "| solve / fastest peer | gaps |")
    print("|---" * (len(names) + 3) + "|")
    for label, signals, alpha, pieces in cases(n, rng):
        y = signals[0]
        if pieces:
            alpha = alpha_for_pieces(y, pieces)
        slow = pieces is None and n > 20_000
        usable = {k: f for k, f in others.items() if not (slow and k == QUADRATIC)}
        functions = {
            "solve": solve_unit,
            "solve, weighted": solve_weighted,
            "fused_lasso": fused_lasso,
        } | usable
        best = timings(functions, signals, alpha, rounds)
        own = relative_gap(y, solve_unit(y, alpha), alpha)
        theirs = [
            relative_gap(y, np.asarray(f(y, alpha)), alpha) for f in usable.values()
        ]
        ratio = best["solve"] / min((best[k] for k in usable), default=np.nan)
        cells = [f"{best[k]:.1f}" if k in best else "-" for k in names]
        gaps = f"{own:.0e}, {max(theirs, default=np.nan):.0e}"
        print(
            f"| {label} |", " | ".join(cells), f"| {ratio:.2f} | {gaps} |", flush=True
        )


def table_of_gaps(n, others):
    """Relative gaps where alpha is 0.01 to 10,000 times the noise."""
    others = {k: f for k, f in others.items() if k != QUADRATIC}
    rng = np.random.default_rng(0)
    t = np.arange(n) / n
    noisy = {
        "plateaus + noise": plateaus(n, rng),
        "noise": rng.normal(size=n),
        "ramp + noise": 1000 * t + rng.normal(size=n),
        "sine + noise": 10 * np.sin(40 * t) + rng.normal(size=n),
        "walk": np.cumsum(rng.normal(size=n)),
    }
    alphas = (0.01, 0.1, 1.0, 100.0, 1e4)
    print(f"\nn = {n}: relative gap of solve, of the worst peer\n")
    print("| signal |", " | ".join(f"alpha = {a:g}" for a in alphas), "|")
    print("|---" * (len(alphas) + 1) + "|")
    for label, y in noisy.items():
        cells = []
        for alpha in alphas:
            own = relative_gap(y, solve_unit(y, alpha), alpha)
            theirs = [
                relative_gap(y, np.asarray(f(y, alpha)), alpha) for f in others.values()
            ]
            cells.append(f"{own:.0e}, {max(theirs, default=np.nan):.0e}")
        print(f"| {label} |", " | ".join(cells), "|", flush=True)


def tables(y, _):
    return fused_lasso_path(y).tv


def table_of_paths(n, others, rounds):
    """The whole path with its tables beside single solves at several penalties."""
    rng = np.random.default_rng(0)
    y = plateaus(n, rng)
    pieces = (n // 10, 100, 1)
    names = ["erosion", "path with tables", "a solution from the path"]
    print(f"\nn = {n}, plateaus + noise: CPU ns per sample, the path\n")
    path = fused_lasso_path(y)
    middle = alpha_for_pieces(y, 100)
    best = timings({"erosion": erosion, "path with tables": tables}, [y], None, rounds)
    best |= timings(
        {names[2]: lambda y, alpha: path.solution(alpha)}, [y], middle, rounds
    )
    tv = np.abs(np.diff(y)).sum()
    ends = (
        abs(path.tv[0] / tv - 1),
        abs(path.loss[-1] / np.sum((y - y.mean()) ** 2) - 1),
    )
    print("|", " | ".join(names), "| error of TV(0), of the last loss |")
    print("|---" * (len(names) + 1) + "|")
    cells = [f"{best[name]:.0f}" for name in names]
    print("|", " | ".join(cells), f"| {ends[0]:.0e}, {ends[1]:.0e} |")
    print("\n| pieces | solve | fastest peer | path with tables / solve | / peer |")
    print("|---" * 5 + "|", flush=True)
    for target in pieces:
        alpha = alpha_for_pieces(y, target)
        single = timings({"solve": solve_unit} | others, [y], alpha, rounds)
        own = single.pop("solve")
        peer = min(single.values(), default=np.nan)
        whole = best["path with tables"]
        print(
            f"| {target} | {own:.1f} | {peer:.1f} | {whole / own:.1f} | "
            f"{whole / peer:.1f} |",
            flush=True,
        )


def table_of_cross_validation(sizes, n_alphas=100):
    """Seconds of choosing among penalties: one path a fold, and a grid search."""
    from sklearn.model_selection import GridSearchCV

    print(f"\n{n_alphas} penalties, 5 folds: CPU seconds, and the penalties chosen\n")
    print("| n | FusedLassoCV | GridSearchCV | ratio | alpha | alpha |")
    print("|---" * 6 + "|", flush=True)
    for n in sizes:
        y, X = plateaus(n, np.random.default_rng(0)), np.arange(n)[:, None]
        start = time.process_time()
        model = FusedLassoCV(n_alphas).fit(X, y)
        own = time.process_time() - start
        search = GridSearchCV(
            FusedLasso(),
            {"alpha": model.alphas_},
            cv=InterleavedKFold(5),
            scoring="neg_mean_squared_error",
        )
        start = time.process_time()
        search.fit(X, y)
        grid = time.process_time() - start
        print(
            f"| {n} | {own:.4f} | {grid:.3f} | {grid / own:.0f} | {model.alpha_:.6g} | "
            f"{search.best_params_['alpha']:.6g} |",
            flush=True,
        )


def table_of_budgets(n, rounds):
    rng = np.random.default_rng(0)
    budgets = {f"TV <= {share:g} TV(y)": share for share in BUDGETS}
    print(f"\nn = {n}: CPU ns per sample (in solves; error of TV / budget)\n")
    print("| signal | erode |", " | ".join(budgets), "| error |")
    print("|---" * (len(budgets) + 3) + "|")
    signals = {"plateaus + noise": plateaus(n, rng), "noise": rng.normal(size=n)}
    signals |= smooth_signals(n, rng)
    signals["ramp + noise"] = 1e-3 * np.arange(n) + rng.normal(size=n)
    signals["integers"] = rng.integers(0, 5, n).astype(float)
    for label, y in signals.items():
        tv = np.abs(np.diff(y)).sum()
        best = timings({"erode": erosion}, [y], None, rounds)
        error, solves = 0.0, []
        for name, share in budgets.items():

            def run(y, _, budget=share * tv):
                return solution(y[:, None], tv_budget=budget)

            found = run(y, None)
            best |= timings({name: run}, [y], None, rounds)
            single = timings({"": solve_unit}, [y], found.alpha, rounds)[""]
            solves.append(best[name] / single)
            error = max(error, abs(found.tv / (share * tv) - 1))
        cells = [f"{best[k]:.0f} ({r:.1f})" for k, r in zip(budgets, solves)]
        print(
            f"| {label} | {best['erode']:.0f} |",
            " | ".join(cells),
            f"| {error:.0e} |",
            flush=True,
        )


class TimeOffline:
    """The same kernels for asv."""

    params = (["plateaus", "ramp", "saw", "sine", "walk"], [1000, 100_000, 1_000_000])
    param_names = ("signal", "n")

    def setup(self, signal, n):
        rng = np.random.default_rng(0)
        self.y = (smooth_signals(n, rng) | {"plateaus": plateaus(n, rng)})[signal]
        self.alpha = 0.01 * largest_alpha(self.y)
        self.budget = 0.01 * np.abs(np.diff(self.y)).sum()

    def time_solve(self, signal, n):
        solve_unit(self.y, self.alpha)

    def time_erode(self, signal, n):
        Signal(self.y, None).path()

    def time_path_with_tables(self, signal, n):
        tables(self.y, None)

    def time_call(self, signal, n):
        fused_lasso(self.y, self.alpha)

    def time_budget(self, signal, n):
        solution(self.y[:, None], tv_budget=self.budget)


class TimeCrossValidation:
    """A hundred penalties, five folds, for asv."""

    params = [1000, 100_000]
    param_names = ("n",)

    def setup(self, n):
        self.y = plateaus(n, np.random.default_rng(0))

    def time_fit(self, n):
        FusedLassoCV().fit(np.arange(n), self.y)


def main(sizes):
    others = peers()
    for n in sizes:
        table_of_solves(n, others, rounds=9 if n <= 100_000 else 5)
    for n in sizes:
        table_of_paths(n, others, rounds=5 if n <= 1_000_000 else 2)
    table_of_budgets(max(sizes), rounds=3)
    table_of_cross_validation([n for n in sizes if n <= 100_000])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--gaps"]:
        table_of_gaps(int(float(sys.argv[2])), peers())
    else:
        sizes = [int(float(n)) for n in sys.argv[1:]]
        main(sizes or [100, 1000, 100_000, 1_000_000])
