"""Which solver serves which offline problem, and which choices don't combine."""

import numpy as np

from sktvdenoise import _group, _likelihood, _signal
from sktvdenoise._positions import LARGEST, check_squares, check_weights
from sktvdenoise.losses import LOSSES


def check_exposure(exposure, labels):
    """Return the exposure as a float array of shape (n_samples,).

    Raises
    ------
    ValueError
        If it is negative or not finite, zero everywhere, has another shape, or is
        zero where something was counted.
    """
    try:
        exposure = check_weights(exposure, len(labels))
    except ValueError as error:
        raise ValueError(str(error).replace("sample_weight", "exposure")) from None
    counts = np.nan_to_num(labels.reshape(len(labels), -1)).max(axis=1)
    impossible = (exposure == 0) & (counts > 0)
    if impossible.any():
        row = int(np.argmax(impossible))
        raise ValueError(f"y is positive in row {row}, but its exposure is 0.")
    return exposure


def check_combination(*, loss, penalty, sparsity, bound, exposure):
    """Refuse what no solver serves."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {sorted(LOSSES)}, got {loss!r}.")
    if penalty not in ("tv", "group"):
        raise ValueError(f"penalty must be 'tv' or 'group', got {penalty!r}.")
    given = {
        f"loss={loss!r}": loss != "squared",
        "penalty='group'": penalty == "group",
        "sparsity > 0": sparsity > 0,
        "bound": bound is not None,
        "exposure": exposure is not None,
    }
    reasons = [
        (f"loss={loss!r}", "penalty='group'", "jumps are joined for loss='squared'"),
        (f"loss={loss!r}", "sparsity > 0", "sparsity is for loss='squared'"),
        ("penalty='group'", "sparsity > 0", "use penalty='tv'"),
        ("penalty='group'", "bound", "use penalty='tv'"),
    ]
    for one, other, reason in reasons:
        if given[one] and given[other]:
            raise ValueError(f"{one} and {other} do not combine: {reason}.")
    if exposure is not None and loss != "poisson":
        raise ValueError(f"exposure is for loss='poisson', but loss={loss!r}.")


def denoise(
    labels,
    weights,
    exposure,
    *,
    loss,
    penalty,
    alpha,
    tv_budget,
    sparsity,
    bound,
    tol,
    max_iter,
):
    """Solve the problem of `labels`, of shape (n_samples, n_channels).

    Parameters
    ----------
    labels : ndarray of shape (n_samples, n_channels)
        Finite, but NaN where the weight is 0.
    weights : ndarray of shape (n_samples,) or (n_samples, n_channels), or None
    exposure : ndarray of shape (n_samples,) or None

    Returns
    -------
    An object with `u` and `mean` of the shape of `labels`, `alpha`, `tv`, `loss` and
    `gap`.
    """
    size = {"alpha": alpha, "tv_budget": tv_budget}
    if loss == "squared":
        check_squares(labels, weights)
        if penalty == "group" and labels.shape[1] > 1:
            return _group.solution(labels, weights, tol=tol, max_iter=max_iter, **size)
        return _signal.solution(labels, weights, sparsity=sparsity, bound=bound, **size)
    labels = LOSSES[loss].check(labels)
    if exposure is not None:
        labels, weights = _rates(labels, weights, exposure)
    return _likelihood.solution(labels, weights, LOSSES[loss], bound=bound, **size)


def _rates(counts, weights, exposure):
    """Counts and exposure as rates and weights: E exp(u) - y u, divided by E."""
    seen = exposure > 0
    rates = np.zeros_like(counts)
    with np.errstate(over="ignore"):
        rates[seen] = counts[seen] / exposure[seen, None]
    if np.nanmax(rates) > LARGEST:
        row = int(np.argmax(np.nan_to_num(rates).max(axis=1)))
        raise ValueError(f"y / exposure in row {row} is too large a rate.")
    if weights is None:
        return rates, exposure
    if weights.ndim == 2:
        exposure = exposure[:, None]
    weights = weights * exposure
    if not weights.any():
        raise ValueError("sample_weight * exposure is zero in every row.")
    return rates, weights
