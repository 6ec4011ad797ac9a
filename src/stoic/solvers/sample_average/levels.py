r"""Levels beyond which samples are clipped: robust deviations times the root of their number, or a part of it.

A clipped sample is moved towards its reference, not dropped. With a level of :math:`\kappa \sqrt n \sigma` no
sample moves a mean by more than κ of its own standard error, while the bias, :math:`E(|x| - \mathrm{level})_+`,
vanishes faster than that error wherever second moments exist: under light tails hardly anything is clipped.
"""

import math

import numpy as np

from stoic.inners.blocks import IntArray, sums_by
from stoic.protocols import Array, Vector

_KAPPA, _LEAST = 0.2, 6.0
_BLOCKS, _PER_BLOCK = 16, 8  # parts of a group whose mean squares are compared, and the fewest samples of one


def widths(sizes: Vector) -> Vector:
    """Return the levels, in deviations, for means of so many samples."""
    return np.asarray(np.maximum(_LEAST, _KAPPA * np.sqrt(sizes)))


def deviations(distances: Array) -> Vector:
    """Return robust deviations of columns of distances (n, p): the root of the median of mean squares of parts.

    Examples
    --------
    >>> distances = np.ones((160, 1))
    >>> distances[3] = 1e9
    >>> deviations(distances)
    array([1.])
    """
    n = len(distances)
    blocks = max(1, min(_BLOCKS, n // _PER_BLOCK))
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(distances)
        means = np.stack([squares[k::blocks].mean(axis=0) for k in range(blocks)])
    return np.sqrt(_median(means))


def group_deviations(distances: Vector, codes: IntArray, counts: Vector, p: int) -> Vector:
    """Return the same for rows in groups, each with a count; groups of few rows share the deviation of all."""
    n = len(distances)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(distances) * counts
    sizes = np.bincount(codes, minlength=p)
    blocks = max(1, min(_BLOCKS, n // _PER_BLOCK))
    part = np.arange(n) % blocks
    pooled = math.sqrt(float(_median(_ratio(sums_by(part, squares, blocks), sums_by(part, counts, blocks)))))
    blocks = max(1, min(_BLOCKS, int(sizes.max()) // _PER_BLOCK))
    place = codes * blocks + np.arange(n) % blocks
    means = _ratio(sums_by(place, squares, p * blocks), sums_by(place, counts, p * blocks)).reshape(p, blocks)
    own = np.sqrt(_median(means.T))
    is_small = (sizes < _BLOCKS * _PER_BLOCK) | ~np.isfinite(own)
    return np.where(is_small, np.maximum(pooled, np.where(np.isfinite(own), own, 0.0)) if p > 1 else pooled, own)


def centers(samples: Array) -> Array:
    """Return the entrywise median of the means of parts of samples (n, …)."""
    blocks = max(1, min(_BLOCKS, len(samples) // _PER_BLOCK))
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.stack([samples[k::blocks].mean(axis=0) for k in range(blocks)])
    return _median(means)


def _ratio(sums: Vector, counts: Vector) -> Vector:
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0.0)


def _median(means: Array) -> Array:
    """Return the medians of columns, parts that are not finite being the largest; NaN stands for no part."""
    is_empty = np.isnan(means).all(axis=0)
    found: Array = np.nanmedian(np.where(is_empty | np.isposinf(means), np.finfo(float).max, means), axis=0)
    return np.where(is_empty, np.nan, found)
