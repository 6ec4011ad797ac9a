"""Where numbers lie and how far they spread, by quantiles: wild ones do not matter, weights of rows do."""

import numpy as np

from stoic.inners.blocks import IntArray
from stoic.protocols import Vector

_OF_NORMAL = 1.4826
"""The standard deviation of a normal law over its median absolute deviation."""


def weighted_quantile(values: Vector, weight: Vector | None, level: float) -> float:
    """Return the smallest value below or at which at least a share `level` of the weight lies.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]), 0.5)
    2.0
    """
    return float(np.quantile(values, level, weights=weight, method="inverted_cdf"))


def spread(residuals: Vector, weight: Vector | None = None) -> float:
    """Return a robust standard deviation about zero: 1.4826 times the median of |r|.

    Where more than half of them are zero, the tamed mean of |r| takes its place, in proportion to what it is for a
    normal law; 0 only where all are zero.

    Examples
    --------
    >>> spread(np.array([-1.0, 1.0, 1e9]))
    1.4826
    """
    sizes = np.abs(residuals)
    median = _OF_NORMAL * weighted_quantile(sizes, weight, 0.5)
    return median or float(np.sqrt(np.pi / 2.0)) * tamed_mean(sizes, weight)


def upper_quantile(sizes: Vector, weight: Vector | None = None) -> float:
    """Return the 90 % quantile of sizes; of fewer than 35, the fourth largest, or the middle one; 0 of one or two.

    Examples
    --------
    >>> [upper_quantile(np.arange(float(n))) for n in (100, 10, 3, 2)]
    [89.0, 6.0, 1.0, 0.0]
    """
    n = len(sizes) if weight is None else int(np.count_nonzero(weight))
    if n < 3:
        return 0.0
    above = min(3, (n - 1) // 2)
    return weighted_quantile(sizes, weight, min(0.9, 1.0 - (above + 0.5) / n))


def outlier_size(sizes: Vector, weight: Vector | None = None) -> float:
    """Return ten times the upper quantile of the sizes that are not zero, which ordinary outliers do not exceed.

    It is infinite where only one or two sizes are not zero.
    """
    positive = (sizes > 0.0) if weight is None else (sizes > 0.0) & (weight > 0.0)
    return 10.0 * upper_quantile(sizes[positive], None if weight is None else weight[positive]) or np.inf


def tamed_mean(sizes: Vector, weight: Vector | None = None) -> float:
    """Return the mean of sizes, each cut at the size of ordinary outliers.

    Examples
    --------
    >>> tamed_mean(np.array([0.0, 1.0, 1.0, 1.0, 1e300]))
    2.6
    """
    return float(np.average(np.minimum(sizes, outlier_size(sizes, weight)), weights=weight))


def group_medians(y: Vector, codes: IntArray, n_groups: int, weight: Vector | None = None) -> Vector:
    """Return the median of each group."""
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes, minlength=n_groups))[:-1])
    return np.array([weighted_quantile(y[rows], None if weight is None else weight[rows], 0.5) for rows in parts])
