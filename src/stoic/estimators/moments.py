"""Moments of the columns of an array or a CSR matrix about a center."""

from typing import Any

import numpy as np
from scipy import sparse

from stoic.inners.blocks import sums_by
from stoic.inners.row_squares import csr_parts, parts
from stoic.protocols import Array, Vector

_SMALL, _LARGE = 1e-140, 1e140  # deviations between them have squares that keep their digits
_COLUMNS = 16  # of a CSR matrix that are filled at a time: those that are hardly sparse
_GLANCE = 101  # rows whose median is told


def moments(X: Any, shares: Vector, *, centered: bool) -> tuple[Vector, Vector]:
    """Return the means of columns, or zero, and the root mean squares about them; rows count by their shares.

    Where squares overflow or vanish, they are formed with the largest entry of the column for the unit.
    """
    center, size = _moments(X, shares, centered=centered)
    extreme = np.flatnonzero(~((size > _SMALL) & (size < _LARGE)))
    if extreme.size:  # or constant
        part = X[:, extreme].astype(float)
        unit = np.ravel(abs(part).max(axis=0).toarray() if sparse.issparse(X) else np.abs(part).max(axis=0))
        unit[unit == 0.0] = 1.0
        scaled = part.multiply(1.0 / unit).tocsr() if sparse.issparse(X) else part / unit
        center[extreme], size[extreme] = (unit * moment for moment in _moments(scaled, shares, centered=centered))
    return center, size


@np.errstate(over="ignore", invalid="ignore")
def _moments(X: Any, shares: Vector, *, centered: bool) -> tuple[Vector, Vector]:
    powers = _powers_of_csr if sparse.issparse(X) else _powers
    center = weighted_sum(X, shares) if centered else np.zeros(X.shape[1])
    first, second = powers(X, shares, center)
    if centered:  # the center is off by the rounding of a long sum, which is to be no deviation
        center, second = center + first, np.maximum(second - np.square(first), 0.0)
    return center, np.sqrt(second)


def weighted_sum(X: Any, weight: Vector) -> Vector:
    """Return the sum of the rows times their weights; no array is converted as a whole."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return np.asarray(weight @ X, dtype=float)
    total = np.zeros(X.shape[1])
    for part in parts(X):
        total += weight[part] @ X[part]
    return total


def _powers(X: Any, shares: Vector, center: Vector) -> Array:
    """Return the means of x − center and of its square, a part of the rows at a time."""
    total = np.zeros((2, X.shape[1]))
    for part in parts(X):
        away = X[part] - center
        total += shares[part] @ away, shares[part] @ np.square(away)
    return total


def _powers_of_csr(X: Any, shares: Vector, center: Vector) -> Array:
    """Return the same; the zeros of a column that are not stored count in one term."""
    total, d = np.zeros((2, X.shape[1])), X.shape[1]
    share, count = np.zeros(d), np.zeros(d)
    for rows, entries in csr_parts(X):
        columns, lengths = X.indices[entries], np.diff(X.indptr[rows.start : rows.stop + 1])
        weight, away = np.repeat(shares[rows], lengths), X.data[entries] - center[columns]
        total += sums_by(columns, weight * away, d), sums_by(columns, weight * np.square(away), d)
        share += sums_by(columns, weight, d)
        count += np.bincount(columns, minlength=d)
    rest = np.where(count < X.shape[0], np.maximum(1.0 - share, 0.0), 0.0)  # exact where all are stored
    return np.asarray(total + np.stack([-rest * center, rest * np.square(center)]))


def shares_apart(X: Any, shares: Vector, *, centered: bool) -> Vector:
    """Return, for each column, the share of the rows that have another value than most; 1 where most have none.

    Of a column for one category of many, that is the share of the rows in it. Where nothing is to be centered, it
    is the share of the rows that are not zero.
    """
    matrix: Any = X
    if not sparse.issparse(X):
        common = _common(X, shares) if centered else np.zeros(X.shape[1])
        return _shares_off(X, shares, common)
    apart = _shares_off_zero(X, shares)
    filled = np.flatnonzero(apart >= (0.5 if centered else np.inf))  # where most are zero, that is all
    for start in range(0, len(filled), _COLUMNS):
        some = filled[start : start + _COLUMNS]
        array = np.asarray(matrix[:, some].toarray())
        apart[some] = _shares_off(array, shares, _common(array, shares))
    return apart


def _common(X: Any, shares: Vector) -> Any:
    """Return the medians of a few rows: the values that most rows have, where most have one."""
    glance = np.random.default_rng(0).choice(X.shape[0], _GLANCE, p=shares)
    return np.sort(X[glance], axis=0)[_GLANCE // 2]


def _shares_off(X: Any, shares: Vector, values: Any) -> Vector:
    """Return the share of the rows of an array that have another value; 1 where that is most of them."""
    same = np.zeros(X.shape[1])
    for part in parts(X):
        same += shares[part] @ (X[part] == values)
    return np.where(same > 0.5, np.maximum(1.0 - same, 0.0), 1.0)


def _shares_off_zero(X: Any, shares: Vector) -> Vector:
    """Return the share of the rows of a CSR matrix that are not zero."""
    apart = np.zeros(X.shape[1])
    for rows, entries in csr_parts(X):
        weight = np.repeat(shares[rows], np.diff(X.indptr[rows.start : rows.stop + 1]))
        apart += sums_by(X.indices[entries], np.where(X.data[entries] != 0.0, weight, 0.0), len(apart))
    return apart
