"""Which solver serves which offline problem, and which choices don't combine."""

import numpy as np

from sktvdenoise import _group, _likelihood, _signal
from sktvdenoise._positions import LARGEST, check_number, check_weights
from sktvdenoise.losses import LOSSES


def check_exposure(exposure, labels, order=None):
    """Return the exposure of `labels` as a float array of shape (n_samples,).

    `order` tells the rows of the input that the labels were, where they are sorted.

    Raises
    ------
    ValueError
        If it is negative or not finite, zero everywhere, has another shape, or is
        zero where something was counted.
    """
    exposure = check_weights(exposure, len(labels), name="exposure")
    if order is not None:
        exposure = exposure[order]
    counts = np.nan_to_num(labels.reshape(len(labels), -1)).max(axis=1)
    impossible = (exposure == 0) & (counts > 0)
    if impossible.any():
        row = int(np.argmax(impossible))
        row = row if order is None else int(order[row])
        raise ValueError(f"y is positive in row {row}, but its exposure is 0.")
    return exposure


def check_penalty(alpha, tv_budget, rules=()):
    """Refuse anything but exactly one of a penalty and a budget."""
    if alpha is not None and tv_budget is not None:
        raise ValueError(
            f"Exactly one of alpha and tv_budget must be given: alpha must be None "
            f"when tv_budget is set, got alpha={alpha!r} and tv_budget={tv_budget!r}."
        )
    if alpha is None and tv_budget is None:
        raise ValueError("Exactly one of alpha and tv_budget must be given, got none.")
    if isinstance(alpha, str) and alpha in rules:
        return
    if alpha is not None:
        check_number("alpha", alpha)
    else:
        check_number("tv_budget", tv_budget)


def check_combination(
    *, loss, penalty, sparsity, bound, exposure, rule=False, refit=False
):
    """Refuse what no solver serves."""
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {sorted(LOSSES)}, got {loss!r}.")
    if penalty not in ("tv", "group"):
        raise ValueError(f"penalty must be 'tv' or 'group', got {penalty!r}.")
    likelihood, group = f"loss={loss!r}", "penalty='group'"
    given = {
        likelihood: loss != "squared",
        group: penalty == "group",
        "sparsity > 0": sparsity > 0,
        "bound": bound is not None,
        "a rule for alpha": rule,
        "refit": refit,
    }
    for one, other in [
        (likelihood, group),
        (likelihood, "sparsity > 0"),
        (likelihood, "a rule for alpha"),
        (likelihood, "refit"),
        (group, "sparsity > 0"),
        (group, "bound"),
        (group, "a rule for alpha"),
        (group, "refit"),
    ]:
        if given[one] and given[other]:
            raise ValueError(f"{one} and {other} do not combine.")
    if exposure is not None and loss != "poisson":
        raise ValueError(f"exposure is for loss='poisson', but loss={loss!r}.")


def minimise(
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
