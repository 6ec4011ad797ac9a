"""Where targets lie and how far they spread, by medians: wild ones do not matter, weights of rows do."""

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

    Where more than half of them are zero, the mean of |r| takes its place, in proportion to what it is for a
    normal law; 0 only where all are zero.

    Examples
    --------
    >>> spread(np.array([-1.0, 1.0, 1e9]))
    1.4826
    """
    sizes = np.abs(residuals)
    median = _OF_NORMAL * weighted_quantile(sizes, weight, 0.5)
    return median or float(np.sqrt(np.pi / 2.0) * np.average(sizes, weights=weight))


def group_medians(y: Vector, codes: IntArray, n_groups: int, weight: Vector | None = None) -> Vector:
    """Return the median of each group."""
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(codes, minlength=n_groups))[:-1])
    return np.array([weighted_quantile(y[rows], None if weight is None else weight[rows], 0.5) for rows in parts])
