"""The offline problem on validated arrays: fixed alpha, fixed budget, certificate.

minimise sum_i w_i [ (y_i - u_i)^2 / 2 + gamma |u_i| ] + alpha TV(u), |u_i| <= B,

over one or several channels that share alpha. With gamma = 0 and no bound this is
the plain problem; its solution, soft-thresholded by gamma and clipped to [-B, B],
solves the full one for the same alpha (Yu 2013: the map keeps the order of values,
hence every subgradient of TV stays one).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from sktvdenoise import _fused as kernel
from sktvdenoise._budget import (
    advance,
    average,
    coarsen,
    gather,
    multiplier,
    place,
    settle,
    spread,
)
from sktvdenoise._fused import erode, form, solve
from sktvdenoise._positions import largest_size


def variation(u):
    """Total variation along the first axis, summed over the channels."""
    if u.size == len(u):
        return kernel.variation(np.ascontiguousarray(u).reshape(-1))
    return float(np.abs(np.diff(u, axis=0)).sum())


@dataclass(frozen=True)
class Shrinkage:
    """The map u -> clip(soft(u, sparsity), -bound, bound)."""

    sparsity: float = 0.0
    bound: float | None = None

    def __call__(self, u):
        if self.sparsity:
            u = np.sign(u) * np.maximum(np.abs(u) - self.sparsity, 0)
        return u if self.bound is None else np.clip(u, -self.bound, self.bound)

    def moves(self, u):
        """Where the image follows a small change of `u`: the derivative, 0 or 1."""
        size = np.abs(u) - self.sparsity
        inside = size > 0 if self.sparsity else np.ones(u.shape, dtype=bool)
        return inside if self.bound is None else inside & (size < self.bound)


PLAIN = Shrinkage()


class Signal:
    """One channel: its samples of positive weight and where the others belong.

    A sample of weight zero takes the value of the last one before it that has a
    weight (of the first that has one, if there is none before it): an optimal
    choice, for it adds nothing to the variation.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Finite where the weight is positive.
    w : ndarray of shape (n_samples,) or None
        Weights >= 0, not all zero; None for ones.

    Attributes
    ----------
    y, w : ndarray of shape (n_weighted,), or None
        The samples of positive weight and their weights.
    rows, source : ndarray of shape (n_weighted,) or (n_samples,), or None
        Where they were, and which of them every sample takes its value from; None
        if all samples have a weight.
    """

    def __init__(self, y, w):
        self.rows = self.source = None
        if w is not None:
            keep = w > 0
            if not keep.all():
                self.rows = np.flatnonzero(keep)
                self.source = np.maximum(np.cumsum(keep) - 1, 0)
                y, w = y[keep], w[keep]
            w = np.ascontiguousarray(w)
        self.y, self.w = np.ascontiguousarray(y), w

    def spread(self, u):
        """Give every sample, also those of weight zero, its value."""
        return u if self.source is None else u[self.source]

    @cached_property
    def mass(self):
        """Weight of all samples."""
        return float(len(self.y) if self.w is None else self.w.sum())

    @cached_property
    def size(self):
        """The largest absolute label."""
        return largest_size(self.y)

    def weighted(self, values):
        return values if self.w is None else self.w * values

    def masses(self, starts):
        """Weights of the pieces that begin at `starts`."""
        if self.w is None:
            return np.diff(starts, append=len(self.y)).astype(float)
        return np.add.reduceat(self.w, starts)

    def at(self, alpha):
        """The plain solution at `alpha`, in O(n)."""
        if alpha == 0:
            return self.y.copy()
        u = np.empty_like(self.y)
        solve(self.y, self.w, alpha, u)
        return u

    def formed(self, vanish, alpha):
        """The same from the path, which tells the pieces, in O(n).

        Where only rounding keeps two levels apart, they are one.
        """
        u = np.empty_like(self.y)
        alpha = min(alpha, vanish.max(initial=0.0))
        form(self.y, self.w, vanish, alpha, alpha, u)
        while alpha:
            equal = self._equal(u)
            if not len(equal):
                break
            vanish = vanish.copy()
            vanish[equal] = 0.0
            form(self.y, self.w, vanish, alpha, alpha, u)
        return u

    def _equal(self, u):
        """Boundaries whose steps are within the rounding of the levels beside them.

        A level is as exact as the largest label of its piece.
        """
        rounding = 8 * np.finfo(float).eps
        last = np.flatnonzero(u[1:] != u[:-1])
        step = np.abs(u[last + 1] - u[last])
        if not step.size or step.min() > rounding * self.size:
            return last[:0]
        sizes = np.maximum.reduceat(np.abs(self.y), np.append(0, last + 1))
        return last[step <= rounding * np.maximum(sizes[1:], sizes[:-1])]

    def path(self):
        """Vanishing alphas and drops of all boundaries (see `erode`), in O(n)."""
        vanish, drop = np.empty((2, len(self.y) - 1))
        erode(self.y, self.w, vanish, drop)
        return vanish, drop


class _Pieces:
    """The pieces of a signal's solution at some alpha, see the kernels."""

    def __init__(self, signal):
        self.signal = signal
        n = len(signal.y)
        self.last = np.empty(n, dtype=np.intp)
        self.value, self.mass, self.room = np.empty((3, n))
        self.stands = np.empty(n, dtype=np.uint8)

    def solve(self, alpha):
        """Become the pieces at `alpha`; return their number, TV and its fall."""
        y, w = self.signal.y, self.signal.w
        solve(y, w, alpha, self.room)
        self.found = gather(y, w, self.room, self.last, self.value, self.mass)
        return self.found

    def advance(self, delta):
        """Become the pieces at an alpha larger by `delta`; return the same."""
        pieces = self.last, self.value, self.mass
        self.found = advance(*pieces, *self.found, delta, self.room, self.stands)
        return self.found

    def boundaries(self):
        return self.last[: self.found[0] - 1]


class _Stretch:
    """The pieces of a signal that end at `last`, on a linear stretch of its path."""

    def __init__(self, signal, last):
        self.signal, self.last = signal, last
        self.mean, self.rate, self.value = np.empty((3, len(last) + 1))
        self.fall = average(signal.y, signal.w, last, self.mean, self.rate)

    def place(self, alpha, shrink):
        """Move the pieces to `alpha`; return their variation, shrunken."""
        tv = place(self.mean, self.rate, alpha, self.value)
        return tv if shrink == PLAIN else variation(shrink(self.value))

    def shrunken_fall(self, shrink):
        """How fast that falls with alpha."""
        y = self.signal.y
        sign = np.where(y[self.last + 1] > y[self.last], 1.0, -1.0)
        moves = shrink.moves(self.value)
        return -float(np.dot(sign, np.diff(self.rate * moves)))

    def solution(self):
        u = np.empty_like(self.signal.y)
        spread(self.value, self.last, u)
        return u


def constrained(signals, budget, shrink, paths=None):
    """Plain solutions whose shrunken variations add up to at most `budget`.

    TV(alpha) = sum of drop (vanish - alpha)+ is known from the paths, so the
    multiplier is one root of one convex function for all channels. On the linear
    piece of the root the values are corrected until the variation is the budget to
    rounding. `paths`, where they are known, are the whole paths of the signals.

    Returns
    -------
    solutions : list of ndarray
        Before shrinkage, one for each signal.
    alpha : float
        The multiplier, 0 where the budget does not bind.
    """
    total = sum(variation(shrink(signal.y)) for signal in signals)
    if total <= budget:
        return [signal.y.copy() for signal in signals], 0.0
    plain = shrink == PLAIN
    found = _search(signals, budget, total) if plain and paths is None else None
    if found is None:
        paths = paths or [signal.path() for signal in signals]
        alpha = _multiplier(paths, budget)
        if not plain:
            alpha = _shrunken_root(signals, paths, alpha, budget, shrink)
        found = [np.flatnonzero(vanish > alpha) for vanish, _ in paths], alpha
    lasts, alpha = found
    stretches = [_Stretch(*pair) for pair in zip(signals, lasts)]
    fall = sum(stretch.fall for stretch in stretches)
    for _ in range(4):
        excess = sum(s.place(alpha, shrink) for s in stretches) - budget
        if not plain:
            fall = sum(s.shrunken_fall(shrink) for s in stretches)
        if abs(excess) <= 1e-15 * budget or fall <= 0 or alpha + excess / fall == alpha:
            break
        alpha += excess / fall
    if plain and abs(excess) > 1e-13 * budget:
        for stretch in stretches:
            excess = settle(stretch.value, stretch.rate, excess)
    return [stretch.solution() for stretch in stretches], alpha


def _multiplier(paths, budget):
    """The multiplier of the plain problem, where the paths hold."""
    last = max(float(vanish.max(initial=0)) for vanish, _ in paths)
    if budget == 0:
        return last
    events = paths[0] if len(paths) == 1 else np.concatenate(paths, axis=1)
    alpha = multiplier(*events, budget)
    return min(alpha, np.nextafter(last, 0))


def _search(signals, budget, total):
    """Boundaries of the pieces on the stretch of the budget, and an alpha there.

    One solve at a guess, then Newton's method on the pieces. TV is convex in alpha,
    so from a guess below the multiplier no step overshoots, and from one beyond it
    one step leads below. None where the path is the better way.
    """
    if min(len(signal.y) for signal in signals) < 8192:
        return None
    alpha = _guess(signals, budget, total)
    pieces = [_Pieces(signal) for signal in signals]
    for _ in range(3):
        if alpha <= 0:
            return None
        counts, tv, fall = _sums(p.solve(alpha) for p in pieces)
        if 0 in counts:
            return None
        if tv >= budget * (1 - 1e-14):
            break
        alpha = alpha + (tv - budget) / fall if fall else 0.9 * alpha
    else:
        return None
    while tv > budget * (1 + 1e-13):
        before, delta = counts, (tv - budget) / fall
        alpha += delta
        counts, tv, fall = _sums(p.advance(delta) for p in pieces)
        if counts == before:
            break
    return [p.boundaries() for p in pieces], alpha


def _sums(found):
    """Counts, the sum of the variations and that of their falls."""
    counts, tv, fall = zip(*found)
    return counts, sum(tv), sum(fall)


def _guess(signals, budget, total, size=32, n_blocks=16, fraction=512):
    """An alpha near the multiplier.

    Where pieces are long it is the multiplier of the means of runs of `size` samples;
    where they are short, that of a few short blocks of samples, for their share of the
    budget.
    """
    coarse = []
    for signal in signals:
        mean, mass = np.empty((2, -(-len(signal.y) // size)))
        coarsen(signal.y, signal.w, size, mean, mass)
        coarse.append(Signal(mean, mass))
    alpha = 0.0
    if budget < sum(variation(signal.y) for signal in coarse):
        vanish, drop = np.concatenate([s.path() for s in coarse], axis=1)
        alpha = multiplier(vanish, drop, budget)
        if 8 * np.count_nonzero(vanish > alpha) < len(vanish):
            return alpha
    blocks = []
    for signal in signals:
        length = len(signal.y) // fraction
        for first in np.linspace(0, len(signal.y) - length, n_blocks).astype(int):
            part = slice(first, first + length)
            w = None if signal.w is None else signal.w[part]
            blocks.append(Signal(signal.y[part], w))
    vanish, drop = np.concatenate([block.path() for block in blocks], axis=1)
    share = sum(variation(block.y) for block in blocks) / total
    if share == 0:
        return alpha
    pieces = 16 * len(blocks)
    few = np.partition(vanish, -pieces)[-pieces] or np.inf
    return max(alpha, min(0.97 * multiplier(vanish, drop, budget * share), few))


def _shrunken_root(signals, paths, alpha, budget, shrink):
    """The alpha where the shrunken variation is `budget`; at most the plain one."""

    def excess(alpha):
        total = -budget
        for signal, (vanish, _) in zip(signals, paths):
            u = np.empty_like(signal.y)
            form(signal.y, signal.w, vanish, alpha, alpha, u)
            total += variation(shrink(u))
        return total

    if excess(alpha) >= -1e-12 * budget:
        return alpha
    return brentq(excess, 0.0, alpha, xtol=1e-300, rtol=1e-15, maxiter=500)


@dataclass(frozen=True)
class Solution:
    """A solution with its certificate.

    Attributes
    ----------
    u : ndarray of shape (n_samples, n_channels)
    signals : list of Signal
        The channels.
    alpha : float
        The penalty, or the multiplier of the budget.
    loss : float
        sum w (y - u)^2, without the factor 1/2.
    tv : float
        Total variation, summed over the channels.
    gap : float
        Objective minus a lower bound on its minimum at the same alpha, >= 0. Under
        a budget, `loss` exceeds the smallest one possible by at most
        2 (gap + alpha (budget - tv)), up to the sparsity term.
    """

    u: np.ndarray
    alpha: float
    signals: list
    _plain: list
    _shrink: Shrinkage
    n_iter: int = 1

    @property
    def mean(self):
        return self.u

    @classmethod
    def of(cls, signals, plain, alpha, shrink=PLAIN):
        """Gather the channels' solutions before shrinkage, at one `alpha`."""
        columns = [s.spread(shrink(values)) for s, values in zip(signals, plain)]
        u = np.stack(columns, axis=1) if len(columns) > 1 else columns[0][:, None]
        return cls(u, float(alpha), signals, plain, shrink)

    @property
    def channels(self):
        """Pairs of each signal and its solution before shrinkage."""
        return zip(self.signals, self._plain)

    @cached_property
    def loss(self):
        return float(
            sum(
                np.sum(s.weighted((s.y - self._shrink(u)) ** 2))
                for s, u in self.channels
            )
        )

    @cached_property
    def tv(self):
        return variation(self.u)

    @cached_property
    def gap(self):
        return sum(
            signal_gap(signal, u, self.alpha, self._shrink)
            for signal, u in self.channels
        )


def signal_gap(signal, plain, alpha, shrink):
    """Objective of shrink(plain) minus the dual value at the z that `plain` implies.

    The better of two. One takes z anew at every step of `plain`, as it is there at
    the optimum, alpha times the sign: each piece is judged with its own mean, and the
    rounding of its level, beside a large offset, does not add up along it. Where that
    does not certify `plain`, z is cumsum(w (plain - y)), closed (its end is 0).
    """
    plain = np.ascontiguousarray(plain)
    residual = plain - signal.y
    e, z = np.empty((2, len(plain)))
    gap = np.inf
    if np.isfinite(alpha):
        kernel.dual_point(signal.y, signal.w, plain, alpha, e, z)
        gap, objective = _gap(signal, plain, residual, e, z, alpha, shrink)
        if gap <= 1e-12 * objective:
            return gap
    e = residual - np.average(residual, weights=signal.w)
    z = np.cumsum(signal.weighted(e), out=z)
    return min(gap, _gap(signal, plain, residual, e, z, alpha, shrink)[0])


def _gap(signal, plain, residual, e, z, alpha, shrink):
    """Gap and objective at z, the sums of w e, scaled into [-alpha, alpha].

    `residual` is plain - y; z is overwritten. The difference is written as a sum of
    terms that are >= 0 each, so nothing cancels.
    """
    w, u = signal.weighted, shrink(plain)
    largest = largest_size(z[:-1])
    theta = min(1.0, alpha / largest) if largest else 1.0
    last = np.flatnonzero(u[1:] != u[:-1])
    step = u[last + 1] - u[last]
    penalty = (min(alpha, largest) if np.isinf(alpha) else alpha) * np.abs(step)
    gap = np.sum(penalty - theta * z[last] * step)
    objective = penalty.sum()
    if shrink == PLAIN:
        move = np.multiply(e, theta, out=z)
        np.subtract(residual, move, out=move)
    else:
        free = signal.y + theta * e
        best = shrink(free)
        move, residual = u - best, u - signal.y
        sizes = np.abs(u) - np.abs(best)
        gap += np.sum(w(move * (best - free) + shrink.sparsity * sizes))
        objective += shrink.sparsity * np.sum(w(np.abs(u)))
    gap += 0.5 * np.dot(w(move), move)
    return float(gap), float(objective + 0.5 * np.dot(w(residual), residual))


def channels(y, w=None):
    """The columns of `y` as signals; `w` as in `solution`."""
    if w is None:
        return [Signal(column, None) for column in y.T]
    w = np.broadcast_to(w.T, (y.shape[1], len(y)))
    return [Signal(column, weights) for column, weights in zip(y.T, w)]


def solution(y, w=None, *, alpha=None, tv_budget=None, sparsity=0.0, bound=None):
    """Solve the full problem for given `alpha`, or with TV(u) <= `tv_budget`.

    Parameters
    ----------
    y : ndarray of shape (n_samples, n_channels)
    w : ndarray of shape (n_samples,) or (n_samples, n_channels), default=None
        Weights >= 0, not all zero in a channel. Where a weight is 0, y may be NaN.
    alpha, tv_budget : float >= 0
        Exactly one of them; both may be infinite.
    sparsity : float, default=0.0
    bound : float, default=None

    Returns
    -------
    Solution
    """
    signals = channels(y, w)
    shrink = Shrinkage(sparsity, bound)
    if alpha is None:
        plain, alpha = constrained(signals, tv_budget, shrink)
    else:
        plain = [signal.at(alpha) for signal in signals]
    return Solution.of(signals, plain, alpha, shrink)
