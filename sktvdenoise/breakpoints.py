"""Breakpoints of a stream: where its level or its slope changes.

A stream is known by a summary of bounded size, whatever its length. `push` adds
labels to it, `read` tells the breakpoints seen by now. There is nothing to
choose; breakpoints of `a y + b` are those of `y`, they depend on the labels so
far only, and the same labels give the same ones in batches of any size. Later
labels may change earlier breakpoints.

1. *Clean* (`clean`). A label further from the median of the five around it than
   five times its usual distance is drawn in to that distance. Steps pass, up to
   two outliers in a row don't.
2. *Summarise* (`summarise`). Neighbouring pieces with the closest means, in the
   sense of Ward, are joined whenever there are more than `CAPACITY`. A piece
   keeps what is needed for the sums of squares of step 3.
3. *Segment.* A segment is a constant or a line plus stationary noise
   ``u_t = rho u_{t-1} + e_t``, with one correlation `rho` and one variance for
   all. For each of the two degrees, each `rho` of `CORRELATIONS` and each number
   of changes, dynamic programming finds the best segments made of whole pieces.
   One parabola for the whole stream stands beside them.
4. *Choose.* The least description length over all of these, see `read`. Lines
   that seem to meet are cut where they meet.
5. *Outline.* Labels that wander like a random walk without a jump, or whose
   second differences are white, have no breakpoints in the sense of 4, but a
   shape that is seen: at most nine lines, as long as each explains enough of
   the variance.

The functions `clean`, `summarise`, `segment_cost` and `least_costs` are the
references for the kernels, not used by them.
"""

import numpy as np

from sktvdenoise import _breakpoints as kernel
from sktvdenoise._breakpoints import CAPACITY, PIECE_DTYPE, TALLY_DTYPE, WINDOW

__all__ = ["new_state", "push", "read"]

CORRELATIONS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)
# Nats, in units of the logarithm of the number of labels: the place of a change,
# a level, slope or correlation.
PLACE, PARAMETER = 1.5, 0.5
FEW = 20  # labels; a place among fewer is no cheaper
# Of levels, of lines, of parabolas; and at most one in eight labels.
MOST_CHANGES = (31, 16, 0)
SMALLEST_SHARE_OF_NOISE = 1e-12  # in the sum of squares of the labels
WANDERING = 0.85  # smallest correlation of a random walk
CHANCE = 6.0  # variances by which sums of squares differ for no reason
# The part of the sum of squares that a change in the outline must explain is this
# times ln n / n, and no less than the smallest.
OUTLINE_SHARE, SMALLEST_SHARE = 0.6, 0.01
OUTLINE_CHANGES = 8


def new_state():
    """The summary of a stream without labels.

    Returns
    -------
    state : tuple of four ndarrays
        They are changed in place by `push`. Copies and pickles of them are
        summaries in their own right.
    """
    return (
        np.zeros(1, dtype=TALLY_DTYPE),
        np.zeros(CAPACITY + 1, dtype=PIECE_DTYPE),
        np.arange(CAPACITY + 1, dtype=np.int64),
        np.zeros(CAPACITY),
    )


def push(state, y, rows=None):
    """Add labels to the summary, in place: O(1) time a label, no memory.

    Parameters
    ----------
    state : tuple of ndarrays
        From `new_state`.
    y : array-like of shape (n_samples,)
        Finite labels, in order.
    rows : array-like of shape (n_samples,), default=None
        Increasing numbers of the labels' rows, by which `read` names them. None
        counts on from the last one.

    Examples
    --------
    >>> from sktvdenoise.breakpoints import new_state, push, read
    >>> state = new_state()
    >>> push(state, [0.0, 0.0, 0.0, 10.0, 10.0, 10.0])
    >>> read(state)
    array([3])
    """
    y = np.asarray(y, dtype=np.float64)
    if rows is None:
        tally = state[0][0]
        start = tally["row"][-1] + 1.0 if tally["n_labels"] else 0.0
        rows = start + np.arange(len(y))
    kernel.push(y, np.asarray(rows, dtype=np.float64), *state)


def read(state):
    r"""Breakpoints of the labels so far.

    Parameters
    ----------
    state : tuple of ndarrays
        From `new_state`; it isn't changed.

    Returns
    -------
    breakpoints : ndarray of shape (n_breakpoints,)
        First row of each new segment, ascending; empty if there is but one, and
        for fewer than five labels.

    Notes
    -----
    With `n` labels, `K` changes, `q` levels, slopes and correlations, and `Q`
    the sum of the segments' costs (`segment_cost`), chosen is the least of

    .. math::

        \frac n2 \ln \frac{Q}{n - q - K} - \frac{K + 1}2 \ln (1 - \rho^2)
        + \tfrac32 K \ln \max(n, 20) + \tfrac12 q \ln n.

    The first two terms are minus the logarithm of the Gaussian likelihood at
    the best variance, with its degrees of freedom; the third is the price of
    places and parameters, half a ln n a place more than that of [1]_, which on
    the other hand adds a term for the lengths of the segments. The bend of a
    parabola is priced like a place. Piecewise constant means with noise of this
    kind are studied in [2]_.

    Where the least has no change and a correlation above 0.85, or where white
    second differences are shorter to describe, the breakpoints are those of the
    best 1 to 9 lines in the sense of least squares; each change must explain the
    larger of 1 % and 60 ln(n)/n % of the sum of squares.

    The cost is that of 12 dynamic programmes over 64 pieces, whatever `n`: less
    than a millisecond.

    References
    ----------
    .. [1] N. R. Zhang and D. O. Siegmund (2007). A modified Bayes information
       criterion with applications to the analysis of comparative genomic
       hybridization data. Biometrics 63.
    .. [2] S. Chakar, E. Lebarbier, C. Lévy-Leduc and S. Robin (2017). A robust
       approach for estimating change-points in the mean of an AR(1) process.
       Bernoulli 23.
    """
    tally, pieces = closed(state)
    rows = pieces["row"].astype(np.int64)
    if tally["n_labels"] < WINDOW:
        return rows[:0]
    spans = kernel.join_all(pieces)
    whole = spans[:1, -1:].copy()
    n, total = whole[0, 0]["n"], whole[0, 0]["m2"]
    if total == 0.0:
        return rows[:0]
    smallest = SMALLEST_SHARE_OF_NOISE * total

    shortest, white = np.inf, []
    for degree, most in enumerate(MOST_CHANGES):
        most = min(most, max(1, int(n) // 8), len(pieces) - 1)
        for rho in CORRELATIONS:
            costs = kernel.segment_costs(spans if most else whole, rho, degree)
            least = kernel.least_costs(costs, most)
            length = description_length(
                np.maximum(least[:, -1], smallest), n, rho, degree
            )
            k = int(np.argmin(length))
            if length[k] < shortest:
                shortest, chosen = length[k], (degree, rho, costs, least, k)
            if rho == 0.0:
                white.append((costs, least))
    smooth = 0.5 * n * np.log(max(tally["bend"], smallest) / (n - 2)) + np.log(n)
    degree, rho, costs, least, k = chosen
    if smooth < shortest or (k == 0 and rho > WANDERING):
        costs, least = white[1]
        k = changes_of_outline(least[:, -1] / total, white[2][1][0, -1] / total, n)
        return rows[trace(costs, least, k)]
    starts = trace(costs, least, k)
    if degree == 1:
        starts = meet(spans, costs, starts, least[k, -1] / n)
    return rows[starts]


def description_length(cost, n, rho, degree):
    """Nats by number of changes, for sums of the segments' costs over n labels."""
    k = np.arange(len(cost))
    q = (k + 1) * (degree + 1) + (rho > 0.0)
    freedom = n - q - k
    length = 0.5 * n * np.log(cost / np.maximum(freedom, 1.0))
    length -= 0.5 * (k + 1) * np.log1p(-rho * rho)
    length += PLACE * k * np.log(max(n, FEW)) + PARAMETER * q * np.log(n)
    if degree == 2:
        length += (PLACE - PARAMETER) * np.log(n)
    return np.where(freedom > 1.0, length, np.inf)


def changes_of_outline(lines, parabola, n):
    """Number of changes of the outline, 0 if a few lines don't describe it.

    `lines` are the parts of the sum of squares left by 1, 2, .. lines, `parabola`
    that left by one parabola, the bend of which is priced like a change.
    """
    price = max(OUTLINE_SHARE * np.log(n) / n, SMALLEST_SHARE)
    left = lines + price * np.arange(len(lines))
    k = int(np.argmin(left))
    return k if k <= OUTLINE_CHANGES and left[k] <= parabola + price else 0


def trace(costs, least, n_changes):
    """First pieces of the segments but the first, in the best of n_changes + 1."""
    starts = []
    end = costs.shape[0]
    for k in range(n_changes, 0, -1):
        end = int(np.argmin(least[k - 1, :-1] + costs[:, end]))
        starts.append(end)
    return starts[::-1]


def meet(spans, costs, starts, variance):
    """Move the starts of lines to the piece in which the line meets the one before.

    Lines that may jump are often cut too early or too late at a mere bend. A start
    stays where the lines meet further off than a third of either, and where those
    cut at their meeting are worse by what is no chance.
    """
    first = np.diagonal(spans["n"]).cumsum() - np.diagonal(spans["n"])
    starts = [0, *starts, len(spans)]
    for k in range(1, len(starts) - 1):
        begin, cut, end = starts[k - 1 : k + 2]
        lines = spans[[begin, cut], [cut - 1, end - 1]]
        n = lines["n"]
        slope = 12.0 * lines["tilt"] / (n * (n * n - 1.0))
        rise = 0.5 * n * slope
        jump = (lines["mean"][1] - rise[1]) - (lines["mean"][0] + rise[0])
        bend = slope[1] - slope[0]
        if not -n[0] * abs(bend) < 3.0 * jump * -np.sign(bend) < n[1] * abs(bend):
            continue
        place = int(np.argmin(np.abs(first - first[cut] + jump / bend)))
        place = min(max(place, begin + 1), end - 1)
        loss = costs[begin, place] + costs[place, end]
        loss -= costs[begin, cut] + costs[cut, end]
        if loss < CHANCE * variance:
            starts[k] = place
    return starts[1:-1]


def closed(state):
    """Tally and pieces in order of time, the last labels among them."""
    tally, piece, slot, cost = (array.copy() for array in state)
    kernel.close(tally, piece, slot, cost)
    return tally[0], piece[slot[: tally[0]["n_pieces"]]]


def clean(y):
    """Reference of the cleaning: labels drawn in to the median of five.

    ``z_t = m_t + clip(y_t - m_t, -5 s, 5 s)``, where `m_t` is the median of the
    window around `t` and `s` a running mean of ``|y_t - m_t|`` over the labels
    before, each counted as 3 s at most. The two labels at either end are met by
    the line through the middle of the nearest window whose slope is the median of
    its differences. Nothing is drawn in while ``s = 0``.
    """
    y = np.asarray(y, dtype=np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(y, WINDOW)
    middle = np.median(windows, axis=1)
    slope = np.median(np.diff(windows, axis=1), axis=1)
    t = np.arange(len(y))
    nearest = np.clip(t - 2, 0, len(middle) - 1)
    m = middle[nearest] + slope[nearest] * (t - 2 - nearest)
    r = np.abs(y - m)
    start = np.abs(y[:WINDOW] - middle[0] - slope[0] * (np.arange(WINDOW) - 2))
    s = min(start.mean(), 2.0 * np.median(start))
    z = y.copy()
    for t in range(len(y)):
        if s > 0.0 and r[t] > 5.0 * s:
            z[t] = m[t] + np.copysign(5.0 * s, y[t] - m[t])
        if 2 <= t < len(y) - 2:
            forgetting = max(0.01, 1.0 / max(t + 1, 4))
            s = s + forgetting * (min(r[t], 3.0 * s) - s) if s > 0.0 else r[t]
    return z


def summarise(z, capacity=CAPACITY):
    """Reference of the summary: first labels of the pieces of cleaned labels `z`.

    Each label is a piece at first. Above `capacity` the neighbours (the leftmost
    on ties) with the least ``a b / (a + b) (mean_a - mean_b)^2``, `a` and `b` their
    numbers of labels, are joined.
    """
    n, mean = np.array([]), np.array([])
    for label in z:
        n, mean = np.append(n, 1.0), np.append(mean, label)
        if len(n) > capacity:
            a, b = n[:-1], n[1:]
            k = int(np.argmin(a * b / (a + b) * np.diff(mean) ** 2))
            mean[k] += (mean[k + 1] - mean[k]) * (n[k + 1] / (n[k] + n[k + 1]))
            n[k] += n[k + 1]
            n, mean = np.delete(n, k + 1), np.delete(mean, k + 1)
    return np.concatenate([[0.0], np.cumsum(n)[:-1]]).astype(np.int64)


def segment_cost(z, rho, degree):
    """Reference of a segment's cost: a weighted sum of squares.

    ``min (1 - rho^2) u_1^2 + sum_t (u_t - rho u_{t-1})^2`` with
    ``u_t = z_t - a - b t``, ``b = 0`` for degree 0.
    """

    def whiten(x):
        return np.append(np.sqrt(1.0 - rho * rho) * x[0], x[1:] - rho * x[:-1])

    t = np.arange(len(z)) - 0.5 * (len(z) - 1)
    design = np.column_stack([whiten(t**power) for power in range(degree + 1)])
    coef = np.linalg.lstsq(design, whiten(z), rcond=None)[0]
    return float(np.sum((whiten(z) - design @ coef) ** 2))


def least_costs(costs, n_changes):
    """Reference of the dynamic programme over the places of the last change."""
    least = [costs[0]]
    for _ in range(n_changes):
        least.append(np.min(least[-1][:-1, None] + costs, axis=0))
    return np.array(least)
