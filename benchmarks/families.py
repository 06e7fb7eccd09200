"""Families of synthetic streams, seeded.

A stream is drawn by a function of a generator and a length, in units in which
plain noise has standard deviation 1. Labels that are outliers are marked: rivals
see the stream without them, and errors on them don't count.
"""

import zlib

import numpy as np
from scipy.signal import lfilter

__all__ = ["FAMILIES", "draw"]


def noise(rng, n):
    return rng.standard_normal(n)


def student(rng, n):
    """Noise of variance 1 with three degrees of freedom."""
    return rng.standard_t(3, n) / np.sqrt(3)


def walk(rng, n, step):
    return step * np.cumsum(rng.standard_normal(n))


def autoregressive(rng, n, *coefs):
    innovations = rng.standard_normal(n + 500)
    return lfilter([1.0], [1.0, *(-c for c in coefs)], innovations)[500:]


def cyclical(rng, n, period, damping):
    return autoregressive(
        rng, n, 2 * damping * np.cos(2 * np.pi / period), -(damping**2)
    )


def steps(rng, n, length, size):
    """Levels N(0, size^2) that last `length` rounds on average."""
    starts = rng.random(n) < 1 / length
    starts[0] = True
    return size * rng.standard_normal(starts.sum())[np.cumsum(starts) - 1]


def jumps(rng, n, number):
    """Jumps of 3 to 5, up or down, at random places."""
    increments = np.zeros(n)
    where = rng.choice(np.arange(1, n), number, replace=False)
    increments[where] = rng.uniform(3, 5, number) * rng.choice([-1, 1], number)
    return np.cumsum(increments)


def season(rng, n, period, size):
    """A random pattern of the given standard deviation, repeated."""
    pattern = rng.standard_normal(period)
    pattern = (pattern - pattern.mean()) / pattern.std()
    return size * pattern[np.arange(n) % period]


def sine(rng, n, period, size):
    return size * np.sin(2 * np.pi * (np.arange(n) / period + rng.random()))


def trend(n, rise):
    return np.linspace(0.0, rise, n)


def daily(rng, n):
    """Hours: a smooth day, fainter at the weekend, on a slow walk."""
    hour = np.arange(n)
    day = np.sin(2 * np.pi * hour / 24) + 0.5 * np.sin(4 * np.pi * hour / 24 + 1)
    weekday = np.where(hour // 24 % 7 < 5, 4.0, 2.0)
    return weekday * day + walk(rng, n, 0.1) + 0.5 * noise(rng, n)


def garch(rng, n):
    innovations, values, variance = rng.standard_normal(n), np.empty(n), 1.0
    for t in range(n):
        values[t] = np.sqrt(variance) * innovations[t]
        variance = 0.05 + 0.15 * values[t] ** 2 + 0.8 * variance
    return values


def airline(rng, n):
    """Growth, and a season of twelve in proportion to the level."""
    growth = np.exp(trend(n, 1.5) + walk(rng, n, 0.02))
    return 10 * growth * (1 + season(rng, n, 12, 0.15) + 0.03 * noise(rng, n))


def regimes(rng, n, length):
    """Pieces of other kinds, each from a random level on."""
    kinds = (
        lambda m: noise(rng, m),
        lambda m: 0.2 * noise(rng, m),
        lambda m: autoregressive(rng, m, 0.8),
        lambda m: walk(rng, m, 1.0),
        lambda m: season(rng, m, 7, 2.0) + 0.5 * noise(rng, m),
        lambda m: sine(rng, m, 80, 3.0) + 0.5 * noise(rng, m),
        lambda m: trend(m, 10.0) + noise(rng, m),
        lambda m: student(rng, m),
    )
    pieces = [
        kind(length) + rng.normal(0, 5)
        for _ in range(-(-n // (length * len(kinds))))
        for kind in rng.permutation(np.array(kinds, dtype=object))
    ]
    return np.concatenate(pieces)[:n]


# Outliers: a function of a generator and a length that gives their sizes, 0 where
# there is none.


def scattered(size, *, run=1, share=0.01, one_sided=True):
    """Runs of outliers, anywhere after the tenth round."""

    def sizes(rng, n):
        starts = rng.random(n) < share / run
        starts[:10] = False
        sign = 1 if one_sided else rng.choice([-1, 1], n)
        marked = np.convolve(starts, np.ones(run))[:n] > 0
        return np.where(marked, size * sign, 0.0)

    return sizes


def early(size, *where):
    def sizes(rng, n):
        result = np.zeros(n)
        result[list(where)] = size
        return result

    return sizes


def level_and_noise(rng, n):
    return steps(rng, n, 250, 3.0) + noise(rng, n)


def walk_and_noise(rng, n):
    return walk(rng, n, 0.2) + noise(rng, n)


# Family -> variant -> (length, labels, sizes of the outliers or None).
FAMILIES = {
    "constant": {
        "150": (150, noise),
        "1000": (1000, noise),
        "6000": (6000, noise),
    },
    "few jumps": {
        "4 in 4000": (4000, lambda r, n: jumps(r, n, 4) + noise(r, n)),
        "2 in 1000": (1000, lambda r, n: jumps(r, n, 2) + noise(r, n)),
    },
    "blocks": {
        "60": (1500, lambda r, n: steps(r, n, 60, 3.0) + noise(r, n)),
        "150": (1500, lambda r, n: steps(r, n, 150, 6.0) + noise(r, n)),
        "20": (1500, lambda r, n: steps(r, n, 20, 5.0) + noise(r, n)),
    },
    "autoregression": {
        "0.5": (1000, lambda r, n: autoregressive(r, n, 0.5)),
        "0.9": (1000, lambda r, n: autoregressive(r, n, 0.9)),
        "-0.5": (1000, lambda r, n: autoregressive(r, n, -0.5)),
        "cycle": (1000, lambda r, n: cyclical(r, n, 11, 0.95)),
        "two": (1000, lambda r, n: autoregressive(r, n, 1.2, -0.4)),
    },
    "steps and AR": {
        "0.6": (1500, lambda r, n: jumps(r, n, 6) + 0.7 * autoregressive(r, n, 0.6)),
        "0.8": (1500, lambda r, n: steps(r, n, 200, 4.0) + autoregressive(r, n, 0.8)),
    },
    "walk": {
        "pure": (1000, lambda r, n: walk(r, n, 1.0)),
        "1": (1000, lambda r, n: walk(r, n, 1.0) + noise(r, n)),
        "0.3": (1000, lambda r, n: walk(r, n, 0.3) + noise(r, n)),
        "0.1": (1000, lambda r, n: walk(r, n, 0.1) + noise(r, n)),
        "0.03": (2000, lambda r, n: walk(r, n, 0.03) + noise(r, n)),
    },
    "integrated walk": {
        "0.3": (1000, lambda r, n: np.cumsum(walk(r, n, 0.3)) + noise(r, n)),
        "0.03": (1000, lambda r, n: np.cumsum(walk(r, n, 0.03)) + noise(r, n)),
        "0.003": (1000, lambda r, n: np.cumsum(walk(r, n, 0.003)) + noise(r, n)),
    },
    "season": {
        "7": (
            700,
            lambda r, n: season(r, n, 7, 2.0) + walk(r, n, 0.05) + noise(r, n),
        ),
        "12": (
            600,
            lambda r, n: season(r, n, 12, 2.0) + walk(r, n, 0.1) + 0.5 * noise(r, n),
        ),
        "24": (
            1200,
            lambda r, n: season(r, n, 24, 2.0) + walk(r, n, 0.05) + noise(r, n),
        ),
        "sine of 24": (1200, lambda r, n: sine(r, n, 24, 3.0) + noise(r, n)),
        "days": (2500, daily),
    },
    "trend and season": {
        "12": (
            240,
            lambda r, n: trend(n, 15) + season(r, n, 12, 3.0) + noise(r, n),
        ),
        "4": (
            160,
            lambda r, n: trend(n, 20) + season(r, n, 4, 2.0) + noise(r, n),
        ),
        "7": (
            600,
            lambda r, n: trend(n, -30) + season(r, n, 7, 3.0) + noise(r, n),
        ),
    },
    "airline": {
        "144": (144, airline),
        "400": (400, airline),
    },
    "sine": {
        "100": (1000, lambda r, n: sine(r, n, 100, 3.0) + noise(r, n)),
        "500": (2000, lambda r, n: sine(r, n, 500, 5.0) + noise(r, n)),
        "50": (1000, lambda r, n: sine(r, n, 50, 3.0) + 0.2 * noise(r, n)),
    },
    "counts": {
        "low": (1000, lambda r, n: r.poisson(np.exp(walk(r, n, 0.05) - 0.5))),
        "steps": (1000, lambda r, n: r.poisson(5 * np.exp(steps(r, n, 200, 0.7)))),
        "season": (
            800,
            lambda r, n: r.poisson(20 * np.exp(season(r, n, 7, 0.3) + trend(n, 1))),
        ),
    },
    "changing noise": {
        "steps": (
            1500,
            lambda r, n: walk(r, n, 0.1) + np.exp(steps(r, n, 200, 1.0)) * noise(r, n),
        ),
        "garch": (1500, lambda r, n: jumps(r, n, 5) + garch(r, n)),
        "growing": (
            1000,
            lambda r, n: walk(r, n, 0.2) + np.exp(trend(n, 3)) * noise(r, n),
        ),
    },
    "t3": {
        "constant": (1000, student),
        "jumps": (2000, lambda r, n: jumps(r, n, 5) + student(r, n)),
        "walk": (1000, lambda r, n: walk(r, n, 0.2) + student(r, n)),
        "walk of t3": (1000, lambda r, n: np.cumsum(student(r, n))),
    },
    "single outliers": {
        "10": (1000, level_and_noise, scattered(10.0, one_sided=False)),
        "30": (1000, level_and_noise, scattered(30.0)),
        "100": (1000, walk_and_noise, scattered(100.0)),
        "1000": (1000, level_and_noise, scattered(1e3)),
        "1e6": (1000, walk_and_noise, scattered(1e6)),
        "one of 1e6": (1000, walk_and_noise, early(1e6, 500)),
    },
    "runs of outliers": {
        "two of 30": (1000, level_and_noise, scattered(30.0, run=2)),
        "two of 1e3": (1000, level_and_noise, scattered(1e3, run=2)),
        "three of 1e6": (1000, walk_and_noise, scattered(1e6, run=3)),
    },
    "first outliers": {
        "30 in 0": (400, walk_and_noise, early(30.0, 0)),
        "1e6 in 0": (400, walk_and_noise, early(1e6, 0)),
        "1e6 in 1": (400, walk_and_noise, early(1e6, 1)),
        "1e3 in 2, 3": (400, walk_and_noise, early(1e3, 2, 3)),
    },
    "regimes": {
        "200": (3200, lambda r, n: regimes(r, n, 200)),
        "60": (1440, lambda r, n: regimes(r, n, 60)),
    },
}

for name, kind in {
    "noise": noise,
    "last value": lambda r, n: walk(r, n, 1.0),
    "walk": lambda r, n: walk(r, n, 0.3) + noise(r, n),
    "AR": lambda r, n: autoregressive(r, n, 0.8),
    "jump": lambda r, n: jumps(r, n, 1) + noise(r, n),
    "trend": lambda r, n: trend(n, 10) + noise(r, n),
    "season": lambda r, n: season(r, n, 12, 2.0) + noise(r, n),
}.items():
    FAMILIES.setdefault("short", {}).update(
        {f"{name} {n}": (n, kind) for n in (60, 150, 400)}
    )


def draw(family, variant, seeds):
    """Streams of one variant.

    Returns
    -------
    y : ndarray of shape (n_seeds, n_rounds)
        Labels, outliers included.
    clean : ndarray of shape (n_seeds, n_rounds)
        The labels without the outliers' deviations.
    outlier : boolean ndarray of shape (n_seeds, n_rounds)
    """
    n, labels, *outliers = FAMILIES[family][variant]
    key = zlib.crc32(f"{family}/{variant}".encode())
    rngs = [np.random.default_rng([key, seed]) for seed in seeds]
    clean = np.array([labels(rng, n) for rng in rngs], dtype=float)
    deviation = np.zeros_like(clean)
    for sizes in outliers:
        deviation += [sizes(rng, n) for rng in rngs]
    return clean + deviation, clean, deviation != 0
