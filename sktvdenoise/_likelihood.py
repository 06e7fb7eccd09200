"""The offline problem for losses of exponential families, on validated arrays.

minimise sum_i w_i [A(u_i) - y_i u_i] + alpha TV(u),  low <= u_i <= high,

for one or several channels that share alpha. A is the same for all samples (an
exposure is a weight: E exp(u) - y u = E [exp(u) - (y/E) u]), and this makes the
problem one of squared loss. Without limits u is optimal if and only if there are
z_i with z_0 = z_n = 0, |z_i| <= alpha and z_i = alpha sign(u_{i+1} - u_i) wherever u
steps, such that

    w_i (m_i - y_i) = z_i - z_{i-1},  m_i = A'(u_i).

A' increases strictly, so m steps where u does and with the same sign: these are the
very conditions under which m minimises 1/2 sum w (y - m)^2 + alpha TV(m). One taut
string, in linear time, therefore gives the means for every such loss, at the same
alpha. Clipping u is optimal under limits: the loss is separable and clipping keeps
the order of values, hence every subgradient of TV.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from sktvdenoise._signal import Signal, variation

LARGEST_ALPHA = np.finfo(float).max


class _Channel:
    """One channel: its samples of positive weight, its loss and limits."""

    def __init__(self, y, w, loss, bound):
        self.signal = Signal(y, w)
        self.loss = loss
        self.weight = 1.0 if self.signal.w is None else self.signal.w
        w = np.broadcast_to(self.weight, self.signal.y.shape)
        limits = loss.limits(self.signal.y, w) if bound is None else (-bound, bound)
        self.low, self.high = limits

    def clip(self, u):
        return np.clip(u, self.low, self.high)

    def link(self, mean, rest):
        return self.clip(self.loss.link(mean, rest))

    def at(self, alpha):
        """Pieces of the solution at `alpha`."""
        step = np.diff(self.signal.at(alpha))
        found = self.pieces(step, alpha)
        return self._split(found, step, alpha) if 0 < alpha < np.inf else found

    def _split(self, found, step, alpha):
        """Solve pieces anew whose own z leaves the tube by more than their rounding.

        Small rates beside large ones may have been joined for want of digits. Within
        a piece they have them; what the neighbours pull goes to its end samples.
        """
        y, w = self.signal.y, np.broadcast_to(self.weight, self.signal.y.shape)
        z = np.cumsum(w * (found.spread(found.mean) - y))
        ends = found.starts + found.sizes - 1
        pull = np.concatenate([[0.0], alpha * found.sign, [0.0]])
        z += np.repeat(pull[:-1] - np.append(0.0, z[ends[:-1]]), found.sizes)
        z[ends] = 0.0
        beyond = np.maximum.reduceat(np.abs(z), found.starts)
        rounding = 1e-9 * np.add.reduceat(w * np.abs(y), found.starts)
        wrong = np.flatnonzero(beyond > alpha + rounding)
        if not len(wrong):
            return found
        for g in wrong:
            part = slice(found.starts[g], ends[g] + 1)
            labels = y[part].copy()
            labels[0] -= pull[g] / w[part][0]
            labels[-1] += pull[g + 1] / w[part][-1]
            step[part.start : ends[g]] = np.diff(Signal(labels, w[part]).at(alpha))
        return self.pieces(step, alpha)

    def pieces(self, step, alpha):
        """Pieces that end where `step` is not 0 and its sign is that of the data.

        Where rounding put means in the wrong order the pieces are joined.
        """
        signs = np.sign(np.diff(self.signal.y))
        last = np.flatnonzero(np.sign(step) * signs > 0)
        while True:
            found = _Pieces(self, last, signs[last], alpha)
            ordered = np.diff(found.mean) * found.sign > 0
            if ordered.all():
                return found
            last = last[ordered]


class _Pieces:
    """Runs of equal means: of the data, plus alpha (s_right - s_left) / weight."""

    def __init__(self, channel, last, sign, alpha):
        signal = channel.signal
        self.channel = channel
        self.starts = np.append(0, last + 1)
        self.sizes = np.diff(self.starts, append=len(signal.y))
        self.sign = sign
        mass = signal.masses(self.starts)
        self.rate = np.diff(sign, prepend=0, append=0) / mass
        # Sums of terms of one sign: small means beside large ones keep their digits.
        y, w = signal.y, channel.weight
        self.data = np.add.reduceat(w * y, self.starts) / mass
        self.other = np.add.reduceat(w * (1 - y), self.starts) / mass
        self.move(alpha)

    def move(self, alpha):
        pull = min(alpha, LARGEST_ALPHA) * self.rate
        self.mean, self.rest = self.data + pull, self.other - pull
        self.u = self.channel.link(self.mean, self.rest)

    @property
    def speed(self):
        """Derivative of u with respect to alpha."""
        inside = (self.channel.low < self.u) & (self.u < self.channel.high)
        curvature = self.channel.loss.curvature(self.u[inside])
        speed = np.zeros_like(self.u)
        speed[inside] = self.rate[inside] / curvature
        return speed

    def spread(self, values):
        return np.repeat(values, self.sizes)


def constrained(channels, budget):
    """Pieces whose variations of u add up to `budget` at most, and the multiplier.

    The paths of the means are known for all alpha in linear time. The variation of u
    never grows with alpha, so the multiplier is one root for all channels; on the
    structure found there Newton's method corrects it to rounding.
    """
    free = [channel.at(0.0) for channel in channels]
    if sum(variation(pieces.u) for pieces in free) <= budget:
        return free, 0.0
    paths = [channel.signal.path()[0] for channel in channels]
    largest = max(float(vanish.max(initial=0.0)) for vanish in paths)
    if budget == 0:
        return [channel.at(np.inf) for channel in channels], largest

    def at(alpha):
        return [
            c.pieces(np.where(vanish > alpha, np.diff(c.signal.y), 0.0), alpha)
            for c, vanish in zip(channels, paths)
        ]

    def excess(alpha):
        return sum(variation(pieces.u) for pieces in at(alpha)) - budget

    low = largest
    while low and excess(low) < 0:
        low *= 1e-3
    if not low or excess(low) == 0:
        return at(low), low
    alpha = brentq(excess, low, min(1e3 * low, largest), xtol=1e-300, rtol=1e-15)
    found = at(alpha)
    for _ in range(3):
        fall = -sum(np.sum(p.sign * np.diff(p.speed)) for p in found)
        over = sum(variation(p.u) for p in found) - budget
        if fall <= 0 or abs(over) <= 1e-15 * budget:
            break
        alpha += over / fall
        for pieces in found:
            pieces.move(alpha)
    return found, alpha


@dataclass(frozen=True)
class LikelihoodSolution:
    """A solution with its certificate.

    Attributes
    ----------
    u, mean : ndarray of shape (n_samples, n_channels)
        The natural parameter and the mean A'(u).
    alpha : float
        The penalty, or the multiplier of the budget.
    loss : float
        The deviance, twice the sum of the losses.
    tv : float
        Total variation of `u`, summed over the channels.
    gap : float
        Objective, half the deviance + alpha TV(u), minus a lower bound on its
        minimum at the same alpha, >= 0.
    """

    u: np.ndarray
    mean: np.ndarray
    alpha: float
    _pieces: list
    n_iter: int = 1

    @cached_property
    def loss(self):
        total = 0.0
        for p in self._pieces:
            c = p.channel
            y, u = c.signal.y, p.spread(p.u)
            mean = np.clip(p.mean, c.loss.mean(c.low), c.loss.mean(c.high))
            total += np.sum(c.weight * c.loss.deviation(y, p.spread(mean), u))
        return 2.0 * float(total)

    @cached_property
    def tv(self):
        return variation(self.u)

    @cached_property
    def gap(self):
        return sum(
            likelihood_gap(
                p.channel, p.spread(p.u), p.spread(p.mean), p.spread(p.rest), self.alpha
            )
            for p in self._pieces
        )


def likelihood_gap(channel, u, mean, rest, alpha):
    """Objective at `u` minus the better of two dual values that `mean` implies.

    `rest` is 1 - mean, with all its digits.

    One takes z = cumsum(w (mean - y)), closed. The other starts anew at every step of
    u with what z is there at the optimum, alpha times its sign, so that the rounding
    of large counts does not reach the small ones; it serves where u has pieces.
    """
    y, w = channel.signal.y, channel.weight
    residual = mean - y
    shift = np.average(residual, weights=channel.signal.w)
    z = np.cumsum(w * (residual - shift))[:-1]
    gap = _gap(channel, u, (mean - shift, rest + shift), residual - shift, z, alpha)
    step = np.diff(u)
    last = np.flatnonzero(step)
    if np.isinf(alpha) or not len(last):
        return gap
    ends = alpha * np.sign(step[last])
    z = np.cumsum(w * residual)[:-1]
    sizes = np.diff(last, append=len(z))
    z[last[0] + 1 :] += np.repeat(ends - z[last], sizes)[1:]
    z[last] = ends
    close = np.append(last, len(z))  # the rest of the rounding goes to the ends
    flow = np.diff(z, prepend=0.0, append=0.0)[close]
    left = flow / np.broadcast_to(w, y.shape)[close] - residual[close]
    residual[close] += left
    target, rest = mean.copy(), rest.copy()
    target[close] += left
    rest[close] -= left
    return min(gap, _gap(channel, u, (target, rest), residual, z, alpha))


def _gap(channel, u, target, flow, z, alpha):
    """Terms >= 0, so that nothing cancels, for z scaled into [-alpha, alpha].

    `flow` is (z_i - z_{i-1}) / w_i, `target` the pair of y + flow and 1 - y - flow.
    The dual value is the least sum of w [A(v) - target v] over v within the limits,
    at v = link(target).
    """
    loss = channel.loss
    largest = np.abs(z).max(initial=0)
    theta = min(1.0, alpha / largest) if largest else 1.0
    target, rest = target[0] + (theta - 1) * flow, target[1] - (theta - 1) * flow
    v = channel.link(target, rest)
    excess = loss.divergence(u, v) + np.maximum((loss.mean(v) - target) * (u - v), 0)
    step = np.diff(u)
    penalty = min(alpha, largest) if np.isinf(alpha) else alpha
    slack = np.maximum(penalty * np.abs(step) - theta * z * step, 0)
    return float(np.sum(channel.weight * excess) + np.sum(slack))


def solution(y, w, loss, *, alpha=None, tv_budget=None, bound=None):
    """Solve the problem for given `alpha`, or with TV(u) <= `tv_budget`.

    Parameters
    ----------
    y : ndarray of shape (n_samples, n_channels)
        Labels in the domain of the loss; any value where the weight is 0.
    w : ndarray of shape (n_samples,) or (n_samples, n_channels), or None
        Weights >= 0, not all zero in a channel.
    loss : Loss
    alpha, tv_budget : float >= 0
        Exactly one of them; both may be infinite.
    bound : float, default=None
        Limit of abs(u); None for those of the loss.

    Returns
    -------
    LikelihoodSolution
    """
    n_samples, n_channels = y.shape
    if w is not None:
        w = np.broadcast_to(w.T, (n_channels, n_samples))
    channels = [
        _Channel(y[:, j], None if w is None else w[j], loss, bound)
        for j in range(n_channels)
    ]
    if alpha is None:
        pieces, alpha = constrained(channels, tv_budget)
    else:
        pieces = [channel.at(alpha) for channel in channels]
    u, mean = np.empty((2, n_samples, n_channels))
    for j, (channel, found) in enumerate(zip(channels, pieces)):
        ends = loss.mean(channel.low), loss.mean(channel.high)
        u[:, j] = channel.signal.spread(found.spread(found.u))
        mean[:, j] = channel.signal.spread(found.spread(np.clip(found.mean, *ends)))
    return LikelihoodSolution(u, mean, float(alpha), pieces)
