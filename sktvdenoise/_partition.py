"""Cuts of a comparator into bins in which it varies little.

A comparator u has n rows of d coordinates. A partition is the array of its edges: bin
i is the rows ``edges[i]``, .., ``edges[i + 1] - 1``, and row t *jumps* in a coordinate
that differs from row t - 1. A bin *fits* B if its variation is at most B / sqrt(rows).
"""

from bisect import bisect_right
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np

from sktvdenoise._positions import check_labels, check_number

__all__ = [
    "Bins",
    "generate_bins",
    "key_partition",
    "single_cuts",
    "split_monotonic",
    "walk",
]


def walk(comparator, bound):
    """Cut a sequence whenever its variation outgrows bound / sqrt(rows).

    Parameters
    ----------
    comparator : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The sequence; its variation is added up over the outputs.
    bound : float > 0
        In the units of the sequence.

    Returns
    -------
    edges : ndarray of shape (n_bins + 1,)
        From 0 to `n_samples`. Each bin fits `bound`, and none would with the row
        that follows it.

    Raises
    ------
    ValueError
        If the sequence is empty or has a value that isn't finite, or `bound` isn't
        positive and finite.

    Notes
    -----
    The number of bins is at most :math:`1 + (2n)^{1/3} (C/B)^{2/3}` with the
    variation :math:`C`. For let the bins but the last have, with the row that
    follows, the variations :math:`C_i` and :math:`n_i` rows. Then
    :math:`C_i \\sqrt{n_i} > B`, so by Hoelder's inequality their number is less than
    :math:`B^{-2/3} \\sum_i C_i^{2/3} n_i^{1/3} \\le B^{-2/3} (\\sum_i C_i)^{2/3}
    (\\sum_i n_i)^{1/3}`; the :math:`C_i` add up to at most :math:`C` and the
    :math:`n_i`, each at most twice its bin, to at most :math:`2n`.

    Examples
    --------
    >>> from sktvdenoise.theory import walk
    >>> walk([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], bound=1.0)
    array([0, 4, 6])
    """
    check_number("bound", bound, positive=True, finite=True)
    u = _columns(comparator)
    n_samples = len(u)
    variation = np.zeros(n_samples)
    np.cumsum(np.abs(np.diff(u, axis=0)).sum(axis=1), out=variation[1:])
    edges = [0]
    while edges[-1] < n_samples:
        first = edges[-1]

        def size(last, first=first):
            return (variation[last] - variation[first]) * sqrt(last - first + 1)

        # The size never falls as rows are added, so a bin costs O(log n).
        edges.append(bisect_right(range(n_samples), bound, lo=first + 1, key=size))
    return np.array(edges)


def key_partition(comparator, bound):
    """The key partition: bins of little variation that end where the sequence jumps.

    Parameters
    ----------
    comparator : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The sequence, as ``tv_oracle(y, tv_budget).comparator``.
    bound : float > 0
        Largest absolute label, `B`, in the units of the sequence.

    Returns
    -------
    edges : ndarray of shape (n_bins + 1,)
        From 0 to `n_samples`; bin i is the rows ``edges[i]`` to
        ``edges[i + 1] - 1``, and the sequence jumps at every edge between two bins.

    Raises
    ------
    ValueError
        If the sequence is empty or has a value that isn't finite, or `bound` isn't
        positive and finite.

    Notes
    -----
    Lemma 5 of [1]_: a new bin is opened when the variation passes
    :math:`B / \\sqrt{n_i}` (see `walk`). Then an edge amid equal rows is replaced by
    the two ends of their run, which leaves bins that are parts of the former ones or
    constant: they fit `B`, too. An edge becomes two at most, so their number is

    .. math:: M \\le 1 + 2^{4/3} n^{1/3} C^{2/3} B^{-2/3}.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.theory import key_partition
    >>> key_partition([0.0, 0.1, 0.1, 0.1, 0.1, 0.1], bound=0.2)
    array([0, 1, 6])
    """
    edges = walk(comparator, bound)
    starts = np.flatnonzero(jumps(_columns(comparator)).any(axis=1)) + 1
    ends = np.concatenate([[0], starts, [edges[-1]]])
    below = ends[np.searchsorted(ends, edges, side="right") - 1]
    above = ends[np.searchsorted(ends, edges, side="left")]
    return np.union1d(below, above)


class Bins(NamedTuple):
    """Bins of `generate_bins`.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        From 0 to the number of rows.
    properties : ndarray of shape (n_bins,)
        1 or 2: which of the two properties the bin has.
    """

    edges: np.ndarray
    properties: np.ndarray


def generate_bins(comparator, signs, bound):
    """Bins in which any number of coordinates are monotone, or a sign turns.

    Parameters
    ----------
    comparator : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The optimal sequence.
    signs : array-like of shape (n_samples + 1,) or (n_samples + 1, n_outputs)
        Its sign sequence (see `kkt_conditions`): ``signs[t]`` belongs to the change
        from row t - 1 to row t.
    bound : float > 0
        Largest absolute label, `B`, in the units of the sequence.

    Returns
    -------
    bins : Bins
        The pair `edges`, `properties`.

    Raises
    ------
    ValueError
        If the shapes don't fit, a value isn't finite, a sign at a jump isn't that of
        the jump, or `bound` isn't positive and finite.

    Notes
    -----
    The purpose of Lemma 30 of [1]_ is kept, its procedure (Appendix E) shortened.
    With the change :math:`\\Delta_k` of the signs of coordinate k across the bin, each
    bin fits `B` and has

    1. *monotone*: every coordinate is constant, or monotone with a direction
       :math:`\\sigma_k` that the signs :math:`s` at both ends of the bin miss by
       little, :math:`|\\sigma_k - s_k| \\le 3 \\max_l |\\Delta_l|`, or
    2. *turning*: :math:`|\\Delta_k| \\ge 1/2` for a coordinate.

    A bin of `walk` with neither is cut once. If a coordinate goes up and down in it,
    the cut is at a jump of its with the sign against that at the start, and both parts
    turn: two signs that differ by less than 1/2 are both 1/2 away from 1 or both from
    -1. Otherwise `split_monotonic` has the cut. So there are at most two bins for each
    of `walk`, whatever the number of coordinates:

    .. math:: |P| \\le 2 + 2^{4/3} n^{1/3} C^{2/3} B^{-2/3}.

    For squared loss a bin has :math:`T_2 + T_3 \\le 9.25 B^2` with the first property
    and :math:`16.25 B^2` with the second: by the formulas of `regret_decomposition` it
    is at most :math:`n C^2/4 + 2 \\alpha c \\, C - \\alpha^2 \\Delta^2/n`, with
    :math:`\\Delta` for the largest change, and c is :math:`3 \\Delta` or 2.

    References
    ----------
    .. [1] D. Baby and Y.-X. Wang (2021). Optimal dynamic regret in exp-concave
       online learning. Conference on Learning Theory.

    Examples
    --------
    >>> from sktvdenoise.theory import generate_bins
    >>> generate_bins([0.0, 0.1, 0.0], signs=[0.0, 1.0, -1.0, 0.0], bound=1.0)
    Bins(edges=array([0, 2, 3]), properties=array([2, 2]))
    """
    u, s = _with_signs(comparator, signs)
    steps = jumps(u)
    edges, properties = [0], []
    for start, stop in pairwise(walk(u, bound).tolist()):
        property_, cut = _classify(steps, s, start, stop)
        for edge in (cut, stop):
            if edge is not None:
                edges.append(edge)
                properties.append(property_)
    return Bins(np.array(edges), np.array(properties))


def _classify(steps, s, start, stop):
    """Which property the bin has, or its parts after the cut, and the cut or None."""
    if np.abs(s[stop] - s[start]).max() >= 0.5:
        return 2, None
    inner = steps[start : stop - 1]
    turning = _turning(inner)
    if not turning.any():
        return 1, _split(steps, s, start, stop)
    k = int(np.argmax(turning))
    against = inner[:, k] < 0 if s[start, k] >= 0 else inner[:, k] > 0
    return 2, start + 1 + int(np.argmax(against))


def split_monotonic(comparator, signs, start, stop):
    """Where to cut a bin of monotone coordinates so that its signs change enough.

    Parameters
    ----------
    comparator : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The optimal sequence, monotone in each coordinate from row `start` to row
        ``stop - 1``.
    signs : array-like of shape (n_samples + 1,) or (n_samples + 1, n_outputs)
        Its sign sequence.
    start, stop : int
        The bin is the rows from `start` to ``stop - 1``.

    Returns
    -------
    cut : int or None
        First row of the second part; None if the bin has the first property of
        `generate_bins` as it is.

    Raises
    ------
    ValueError
        If the shapes don't fit, the bin has no rows, or a coordinate isn't monotone.

    Notes
    -----
    Let :math:`m` be the largest :math:`|\\sigma_k - s_k|`, over the coordinates that
    aren't constant and both ends. If :math:`m > 3 \\max_l |\\Delta_l|`, its coordinate
    misses its direction at both ends by more than :math:`2m/3`; at any of its jumps
    it doesn't miss it at all. The cut is there. If another coordinate misses by
    :math:`x m` there, a part has signs that change by at least
    :math:`\\max(2/3, x - 1) \\, m` and miss by at most :math:`\\max(1, x) \\, m`: 5/2
    times that. One cut does for any number of coordinates.

    Examples
    --------
    >>> from sktvdenoise.theory import split_monotonic
    >>> split_monotonic([0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0], 0, 3)
    2
    """
    u, s = _with_signs(comparator, signs)
    if not 0 <= start < stop <= len(u):
        raise ValueError(f"The bin from {start} to {stop} has no rows of {len(u)}.")
    steps = jumps(u)
    turning = _turning(steps[start : stop - 1])
    if turning.any():
        k = int(np.argmax(turning))
        raise ValueError(f"Coordinate {k} isn't monotone from row {start} to {stop}.")
    return _split(steps, s, start, stop)


def _turning(steps):
    return (steps > 0).any(axis=0) & (steps < 0).any(axis=0)


def _split(steps, s, start, stop):
    """`split_monotonic` of checked jumps and signs."""
    inner = steps[start : stop - 1]
    moving = np.flatnonzero(inner.any(axis=0))
    if not len(moving):
        return None
    inner, ends = inner[:, moving], s[[start, stop]]
    directions = np.sign(inner.sum(axis=0))
    misses = np.abs(directions - ends[:, moving]).max(axis=0)
    if misses.max() <= 3.0 * np.abs(ends[1] - ends[0]).max():
        return None
    places = np.flatnonzero(inner[:, np.argmax(misses)])
    return start + 1 + int(places[len(places) // 2])


def single_cuts(comparator, gradients, bound):
    """One cut for each bin of `walk`, where gradients say that it pays most.

    Parameters
    ----------
    comparator : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Any sequence; it needn't be optimal.
    gradients : array-like of the same shape
        Gradients of the losses there; for squared loss ``comparator - y`` will do,
        factors don't matter.
    bound : float > 0
        `B`, or any other threshold for `walk`.

    Returns
    -------
    edges : ndarray of shape (n_bins + 1,)
        At most two bins for each of those of `walk`.

    Raises
    ------
    ValueError
        If the shapes differ, a value isn't finite, or `bound` isn't positive and
        finite.

    Notes
    -----
    A short way to the regret, which needs neither the conditions of optimality nor
    convexity. Take a bin of `walk`, with n rows, the variation :math:`C`, the mean
    :math:`\\bar u` and the gradients :math:`g_j` at :math:`u_j`; the losses are
    beta-smooth. Let :math:`\\zeta_t` be the sum of the gradients of its rows before t
    minus the share (of rows) of all, and cut the bin at the jump t of a
    coordinate k where :math:`m = |\\zeta_{t,k}|` is largest. Then

    - going to the mean costs :math:`\\sum_j f_j(\\bar u) - f_j(u_j) \\le \\sum_j
      \\langle g_j, \\bar u - u_j \\rangle + \\beta n C^2/8 \\le m C + \\beta n
      C^2/8`: summed by parts, each jump is multiplied by an entry of :math:`\\zeta`;
    - a gradient step from the mean for each part, over (rows beta), gains
      :math:`\\frac{1}{2\\beta} (\\frac{2m}{\\sqrt n} - \\frac{\\beta \\sqrt n C}{2}
      )_+^2` at least. With the gradients at u in place of those at the mean it would
      be :math:`(|a|^2/p + |b|^2/q)/(2\\beta)`, where a, b are their sums and p, q the
      rows of the parts, and :math:`|a|^2/p + |b|^2/q \\ge m^2 n/(pq) \\ge 4m^2/n`; as
      the gradients differ by :math:`\\beta |u_j - \\bar u|` at most, the root of that
      sum differs by :math:`\\beta \\sqrt n C/2` at most.

    Together at most :math:`\\beta n C^2/2 \\le \\beta B^2/2`, for any m. If the steps
    start from the means of the parts, as in `regret_decomposition`, the same holds for
    squared loss, where they end at the same place, and in general 0.73 in place of 1/2:
    with the spread of u split into W within the parts and V between them, :math:`W + V
    \\le n C^2/4`, the sum is at most :math:`\\frac{\\beta}{2} (\\sqrt n C/2 + \\sqrt V
    + \\sqrt W)^2 \\le \\beta n C^2 (1 + \\sqrt 2)^2/8`.

    Examples
    --------
    >>> from sktvdenoise.theory import single_cuts
    >>> u, y = [0.0, 0.5, 0.5, 0.5], [-2.0, 1.0, 1.0, 1.0]
    >>> single_cuts(u, [a - b for a, b in zip(u, y)], bound=1.0)
    array([0, 1, 4])
    """
    u = _columns(comparator)
    g = _columns(gradients, "gradients")
    if g.shape != u.shape:
        raise ValueError(
            f"gradients has the shape {g.shape} and comparator {u.shape}: they must "
            "be the same."
        )
    steps = jumps(u)
    edges = [0]
    for start, stop in pairwise(walk(u, bound).tolist()):
        rows = g[start:stop]
        sums = np.cumsum(rows - rows.mean(axis=0), axis=0)[:-1]
        gains = np.where(steps[start : stop - 1], np.abs(sums), 0.0).max(axis=1)
        if gains.any():
            edges.append(start + 1 + int(np.argmax(gains)))
        edges.append(stop)
    return np.array(edges)


def jumps(u):
    """Changes from one row to the next; those of the size of rounding errors are 0."""
    steps = np.diff(u, axis=0)
    return np.where(np.abs(steps) > 1e-14 * np.abs(u).max(), steps, 0.0)


def _columns(values, name="comparator"):
    values = check_labels(values, name=name)
    return values.reshape(len(values), -1)


def _with_signs(comparator, signs):
    """Comparator and signs as columns, the signs those of the jumps."""
    u, s = _columns(comparator), _columns(signs, "signs")
    if s.shape != (len(u) + 1, u.shape[1]):
        raise ValueError(
            f"signs must have one row more than comparator {u.shape}, got {s.shape}."
        )
    steps = jumps(u)
    wrong = (steps != 0) & (np.abs(s[1:-1] - np.sign(steps)) > 1e-6)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1))) + 1
        raise ValueError(f"signs[{row}] = {s[row]} isn't the sign of the jump there.")
    return u, s
