"""Means, deviations, medians and quartiles over trials, of which some may be infinite."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from stoic.protocols import Array


class Averages(NamedTuple):
    """Averages of several trials: a number each, or one for each point of a curve."""

    mean: Array
    deviation: Array
    median: Array
    low: Array
    high: Array


def averages(scores: ArrayLike) -> Averages:
    """Return the averages of trials, which are the rows of an array or the entries of a vector.

    A trial without a finite score counts as infinite: it makes the mean infinite, and moves the median and the
    quartiles as any large score would. The deviation is that of a sample, with n − 1; it is NaN where there is one
    trial only, or an infinite one.

    Examples
    --------
    >>> found = averages([[1.0, 1.0], [2.0, 2.0], [3.0, np.nan]])
    >>> found.mean.tolist(), found.median.tolist(), found.deviation.tolist()
    ([2.0, inf], [2.0, 2.0], [1.0, nan])
    """
    values = np.asarray(scores, dtype=float)
    values = np.where(np.isfinite(values), values, np.inf)
    with np.errstate(all="ignore"):
        mean = values.mean(axis=0)
        deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)
    return Averages(mean, deviation, *(_quantile(values, share) for share in (0.5, 0.25, 0.75)))


def is_wide(values: ArrayLike) -> bool:
    """Whether the finite ones of some values are positive and span more than a factor of ten.

    Examples
    --------
    >>> is_wide([0.1, 2.0, np.inf]), is_wide([0.5, 2.0]), is_wide([])
    (True, False, False)
    """
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    return bool(numbers.size and numbers.min() > 0.0 and numbers.max() > 10.0 * numbers.min())


def _quantile(values: Array, share: float) -> Array:
    """Return a quantile by linear interpolation; next to an infinite value it is infinite, never NaN."""
    low, high = (np.quantile(values, share, axis=0, method=way) for way in ("lower", "higher"))
    with np.errstate(all="ignore"):
        between = np.quantile(values, share, axis=0)
    found: Array = np.where(low == high, low, np.where(np.isinf(high), np.inf, between))
    return found
