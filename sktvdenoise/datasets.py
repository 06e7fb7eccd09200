"""Test signals with known truth, and the flow of the Nile."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

__all__ = ["load_nile", "make_drifting_regression", "make_signal"]


# The four curves of Donoho and Johnstone (1994, Table 1) on 0 < t <= 1.

_KNOTS = [0.1, 0.13, 0.15, 0.23, 0.25, 0.4, 0.44, 0.65, 0.76, 0.78, 0.81]
_JUMPS = [4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2]
_PEAKS = [4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2]
_WIDTHS = [0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005]


def _blocks(t):
    return sum(h * (1 + np.sign(t - k)) / 2 for k, h in zip(_KNOTS, _JUMPS))


def _bumps(t):
    bumps = zip(_KNOTS, _PEAKS, _WIDTHS)
    return sum(h / (1 + np.abs((t - k) / w)) ** 4 for k, h, w in bumps)


def _heavisine(t):
    return 4 * np.sin(4 * np.pi * t) - np.sign(t - 0.3) - np.sign(0.72 - t)


def _doppler(t):
    return np.sqrt(t * (1 - t)) * np.sin(2 * np.pi * 1.05 / (t + 0.05))


def _step(t):
    return np.where(t > 0.5, 1.0, 0.0)


_CURVES = {
    "blocks": _blocks,
    "bumps": _bumps,
    "heavisine": _heavisine,
    "doppler": _doppler,
    "step": _step,
}


@validate_params(
    {
        "name": [StrOptions({*_CURVES, "walk"})],
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "std": [Interval(Real, 0, None, closed="left"), None],
        "max_abs": [Interval(Real, 0, None, closed="left"), None],
        "tv": [Interval(Real, 0, None, closed="left"), None],
        "noise": [Interval(Real, 0, None, closed="left")],
        "df": [Interval(Real, 2, None, closed="neither"), None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_signal(
    name="blocks",
    n_samples=1024,
    *,
    std=None,
    max_abs=None,
    tv=None,
    noise=1.0,
    df=None,
    random_state=None,
):
    """Noisy labels of a named signal, and the signal itself.

    The labels are ``truth + noise * e`` with independent `e` of mean 0 and
    variance 1. The size of the truth is set by one of `std`, `max_abs` and
    `tv`; without any of them ``std=7``, which with unit noise is the setting
    of Donoho and Johnstone.

    Parameters
    ----------
    name : {"blocks", "bumps", "heavisine", "doppler", "step", "walk"}, \
            default="blocks"
        The first four are the curves of [1]_ at ``t = 1/n, 2/n, .., 1``;
        "step" is 0 up to ``t = 1/2`` and constant after it; "walk" is a random
        walk from 0 with Gaussian steps, all rescaled together.

    n_samples : int, default=1024
        Number of labels, at least 2.

    std : float, default=None
        Standard deviation of the truth, in units of the labels.

    max_abs : float, default=None
        Largest absolute value of the truth, in units of the labels.

    tv : float, default=None
        Total variation of the truth, ``sum(abs(diff(truth)))``, in units of
        the labels.

    noise : float, default=1.0
        Standard deviation of the noise, in units of the labels.

    df : float, default=None
        Degrees of freedom, above 2, of Student's t noise; its variance is
        still ``noise ** 2``. None gives Gaussian noise.

    random_state : int, RandomState instance or None, default=None
        Source of the walk and of the noise. The walk does not depend on
        `noise` and `df`.

    Returns
    -------
    y : ndarray of shape (n_samples,)
        The labels.

    truth : ndarray of shape (n_samples,)
        The signal without noise.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or more than one of `std`,
        `max_abs` and `tv` is given.

    References
    ----------
    .. [1] Donoho, D. L. and Johnstone, I. M. (1994). Ideal spatial adaptation
       by wavelet shrinkage. Biometrika 81, 425-455. Table 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.datasets import make_signal
    >>> y, truth = make_signal("walk", 500, tv=20.0, random_state=0)
    >>> print(y.shape, round(float(np.abs(np.diff(truth)).sum()), 9))
    (500,) 20.0
    """
    sizes = {"std": std, "max_abs": max_abs, "tv": tv}
    given = [size for size, value in sizes.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"Give at most one of std, max_abs and tv; got {given}.")

    rng = check_random_state(random_state)
    if name == "walk":
        steps = rng.standard_normal(n_samples - 1)
        shape = np.concatenate([[0.0], np.cumsum(steps)])
    else:
        shape = _CURVES[name](np.arange(1, n_samples + 1) / n_samples)

    if tv is not None:
        scale = tv / np.abs(np.diff(shape)).sum()
    elif max_abs is not None:
        scale = max_abs / np.abs(shape).max()
    else:
        scale = (7.0 if std is None else std) / shape.std()
    truth = scale * shape

    if df is None:
        errors = rng.standard_normal(n_samples)
    else:
        errors = rng.standard_t(df, n_samples) * np.sqrt((df - 2) / df)
    return truth + noise * errors, truth


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "drift": [StrOptions({"still", "jumps", "walk"})],
        "n_jumps": [Interval(Integral, 0, None, closed="left")],
        "step": [Interval(Real, 0, None, closed="left")],
        "n_drifting": [Interval(Integral, 0, None, closed="left"), None],
        "drifting_intercept": ["boolean"],
        "noise": [Interval(Real, 0, None, closed="left")],
        "correlation": [Interval(Real, 0, 1, closed="left")],
        "spread": [Interval(Real, 0, None, closed="left")],
        "offset": [Interval(Real, None, None, closed="neither")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_drifting_regression(
    n_samples=1000,
    n_features=5,
    *,
    drift="jumps",
    n_jumps=3,
    step=0.01,
    n_drifting=None,
    drifting_intercept=True,
    noise=0.1,
    correlation=0.0,
    spread=0.0,
    offset=0.0,
    random_state=None,
):
    r"""Regression whose coefficients change with time, and the coefficients.

    .. math:: y_t = b_t + x_t^\top \theta_t + \sigma e_t

    with independent standard normal :math:`e_t`. Per standard deviation of a feature
    its coefficient is normal with variance ``1 / n_features``, so that the features'
    part of the label has a variance near 1; the level of the labels has variance 1.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, at least 1.

    n_features : int, default=5
        Number of features, at least 1.

    drift : {"still", "jumps", "walk"}, default="jumps"
        "still": nothing changes. "jumps": `n_jumps` times, at places drawn without
        replacement, coefficients are drawn anew. "walk": they walk at random.

    n_jumps : int, default=3
        Number of jumps, below `n_samples`; only with ``drift="jumps"``.

    step : float, default=0.01
        Standard deviation of a step of the walk, relative to that of a coefficient at
        the start; only with ``drift="walk"``.

    n_drifting : int, default=None
        Number of features whose coefficients change: the first ones. None: all.

    drifting_intercept : bool, default=True
        Whether the intercept changes, too.

    noise : float, default=0.1
        :math:`\sigma`, in units of the labels.

    correlation : float, default=0.0
        Between any two features, at least 0 and below 1.

    spread : float, default=0.0
        Standard deviations of the features are powers of ten with exponents drawn
        uniformly from ``[-spread, spread]``.

    offset : float, default=0.0
        Mean of each feature, in units of its standard deviation. The intercept
        makes up for it, so that the labels do not depend on it.

    random_state : int, RandomState instance or None, default=None
        Source of everything. The coefficients and features do not depend on `noise`.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The features.

    y : ndarray of shape (n_samples,)
        The labels.

    coef : ndarray of shape (n_samples, n_features)
        :math:`\theta_t`, in units of the labels over those of the features.

    intercept : ndarray of shape (n_samples,)
        :math:`b_t`, in units of the labels.

    Raises
    ------
    ValueError
        If a parameter is out of its range, `n_jumps` is not below `n_samples`, or
        `n_drifting` exceeds `n_features`.

    Examples
    --------
    >>> import numpy as np
    >>> from sktvdenoise.datasets import make_drifting_regression
    >>> X, y, coef, intercept = make_drifting_regression(
    ...     500, 3, n_jumps=2, noise=0.0, random_state=0)
    >>> changes = np.abs(np.diff(coef, axis=0)).sum(axis=1) > 0
    >>> print(int(changes.sum()), np.allclose(y, intercept + np.sum(X * coef, axis=1)))
    2 True
    """
    if n_drifting is None:
        n_drifting = n_features
    if n_drifting > n_features:
        raise ValueError(
            f"n_drifting={n_drifting} must be at most n_features={n_features}."
        )
    if drift == "jumps" and n_jumps >= n_samples:
        raise ValueError(f"n_jumps={n_jumps} must be below n_samples={n_samples}.")

    rng = check_random_state(random_state)
    common = rng.standard_normal((n_samples, 1))
    X = rng.standard_normal((n_samples, n_features))
    X = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * X
    scale = 10.0 ** rng.uniform(-spread, spread, n_features)

    # The intercept comes first.
    std = np.array([1.0] + [1 / np.sqrt(n_features)] * n_features)
    drifts = np.arange(n_features + 1) <= n_drifting
    drifts[0] = drifting_intercept
    theta = np.tile(std * rng.standard_normal(n_features + 1), (n_samples, 1))
    if drift == "jumps":
        places = np.sort(rng.permutation(n_samples - 1)[:n_jumps]) + 1
        for place in places:
            theta[place:, drifts] = (std * rng.standard_normal(len(std)))[drifts]
    elif drift == "walk":
        steps = step * rng.standard_normal((n_samples - 1, len(std)))
        walk = std * np.cumsum(steps, axis=0)
        theta[1:, drifts] += walk[:, drifts]

    y = theta[:, 0] + np.sum(X * theta[:, 1:], axis=1)
    y += noise * rng.standard_normal(n_samples)
    coef = theta[:, 1:] / scale
    intercept = theta[:, 0] - offset * theta[:, 1:].sum(axis=1)
    X = (X + offset) * scale
    return X, y, coef, intercept


_NILE_FIRST_YEAR = 1871
_NILE_VOLUMES = """
1120 1160  963 1210 1160 1160  813 1230 1370 1140  995  935 1110  994 1020  960
1180  799  958 1140 1100 1210 1150 1250 1260 1220 1030 1100  774  840  874  694
 940  833  701  916  692 1020 1050  969  831  726  456  824  702 1120 1100  832
 764  821  768  845  864  862  698  845  744  796 1040  759  781  865  845  944
 984  897  822 1010  771  676  649  846  812  742  801 1040  860  874  848  890
 744  749  838 1050  918  986  797  923  975  815 1020  906  901 1170  912  746
 919  718  714  740
"""
_NILE_DESCR = """\
Annual flow of the Nile at Aswan
--------------------------------

:Number of samples: 100, the years 1871 to 1970
:Feature: year
:Target: volume of the year's flow, in 1e8 cubic metres

The level falls once: the mean is 1097.75 to 1898 and 849.97 from 1899. The
series is in the public domain.

References: Cobb, G. W. (1978). The problem of the Nile: conditional solution to
a changepoint problem. Biometrika 65, 243-251. Durbin, J. and Koopman, S. J.
(2001). Time Series Analysis by State Space Methods. Oxford University Press.
"""


@validate_params(
    {"return_X_y": ["boolean"], "as_frame": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def load_nile(*, return_X_y=False, as_frame=False):
    """Annual flow of the Nile at Aswan, 1871-1970 (regression).

    One drop, after 1898, under noise: the classical example of a change point
    [1]_ and of a local level [2]_.

    Parameters
    ----------
    return_X_y : bool, default=False
        If True, return ``(data, target)`` instead of a Bunch.

    as_frame : bool, default=False
        If True, data is a pandas DataFrame and target a pandas Series.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the attributes

        data : {ndarray, DataFrame} of shape (100, 1)
            The years.
        target : {ndarray, Series} of shape (100,)
            The volumes, in 1e8 cubic metres.
        feature_names, target_names : list of str
            ``["year"]`` and ``["volume"]``.
        frame : DataFrame of shape (100, 2) or None
            Years and volumes together, only with `as_frame=True`.
        DESCR : str
            Description and sources.

    (data, target) : tuple if `return_X_y` is True
        Years and volumes as above.

    References
    ----------
    .. [1] Cobb, G. W. (1978). The problem of the Nile: conditional solution to
       a changepoint problem. Biometrika 65, 243-251.
    .. [2] Durbin, J. and Koopman, S. J. (2001). Time Series Analysis by State
       Space Methods. Oxford University Press.

    Examples
    --------
    >>> from sktvdenoise.datasets import load_nile
    >>> X, y = load_nile(return_X_y=True)
    >>> print(X.shape, y[:3])
    (100, 1) [1120. 1160.  963.]
    """
    target = np.array(_NILE_VOLUMES.split(), dtype=np.float64)
    data = np.arange(_NILE_FIRST_YEAR, _NILE_FIRST_YEAR + len(target))[:, np.newaxis]
    frame = None
    if as_frame:
        pandas = check_pandas_support("load_nile with as_frame=True")
        frame = pandas.DataFrame({"year": data[:, 0], "volume": target})
        data, target = frame[["year"]], frame["volume"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=["year"],
        target_names=["volume"],
        DESCR=_NILE_DESCR,
    )
