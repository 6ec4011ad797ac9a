"""Moments of the columns of an array or a CSR matrix, and squares of its rows, about a center."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from stoic.inners.blocks import sums_by
from stoic.protocols import Array, Vector

_SMALL, _LARGE = 1e-70, 1e70  # root mean squares between them have fourth powers that keep their digits
_ENTRIES = 1 << 20  # of X that are looked at a time


@dataclass(frozen=True)
class Moments:
    """Of each column: what it is about, its root mean square about that, and its kurtosis.

    The kurtosis is the mean fourth power over the squared mean square, about 1/q where a share q of the rows has
    all that varies.
    """

    center: Vector
    size: Vector
    kurtosis: Vector


def column_moments(X: Any, weight: Vector | None, *, centered: bool) -> Moments:
    """Return the moments of the columns about their means, or about zero; rows count by their weights.

    Where powers overflow or vanish, they are formed with the largest entry of the column for the unit.
    """
    shares = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
    found = _moments(X, shares, centered=centered)
    extreme = np.flatnonzero(~((found.size > _SMALL) & (found.size < _LARGE)))
    if extreme.size:
        part = X[:, extreme].astype(float)
        unit = np.ravel(abs(part).max(axis=0).toarray() if sparse.issparse(X) else np.abs(part).max(axis=0))
        unit[unit == 0.0] = 1.0
        scaled = part.multiply(1.0 / unit).tocsr() if sparse.issparse(X) else part / unit
        again = _moments(scaled, shares, centered=centered)
        found.center[extreme], found.size[extreme] = unit * again.center, unit * again.size
        found.kurtosis[extreme] = again.kurtosis
    return found


@np.errstate(over="ignore", invalid="ignore")
def _moments(X: Any, shares: Vector, *, centered: bool) -> Moments:
    center = np.asarray(shares @ X, dtype=float) if centered else np.zeros(X.shape[1])
    second, fourth = _powers_of_csr(X, shares, center) if sparse.issparse(X) else _powers(X, shares, center)
    return Moments(center, np.sqrt(second), fourth / np.where(second > 0.0, second * second, 1.0))


def _powers(X: Any, shares: Vector, center: Vector) -> tuple[Vector, Vector]:
    """Return the mean second and fourth powers of x − center, a part of the rows at a time."""
    second, fourth = np.zeros((2, X.shape[1]))
    rows = max(1, _ENTRIES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], rows):
        part = slice(start, start + rows)
        squares: Array = np.square(X[part] - center)
        second += shares[part] @ squares
        fourth += shares[part] @ np.square(squares, out=squares)
    return second, fourth


def _powers_of_csr(X: Any, shares: Vector, center: Vector) -> tuple[Vector, Vector]:
    """Return the same; the zeros of a column that are not stored count in one term."""
    d = X.shape[1]
    second, fourth, share, count = np.zeros((4, d))
    for rows, entries in csr_parts(X):
        columns, lengths = X.indices[entries], np.diff(X.indptr[rows.start : rows.stop + 1])
        weight, squares = np.repeat(shares[rows], lengths), np.square(X.data[entries] - center[columns])
        second += sums_by(columns, weight * squares, d)
        fourth += sums_by(columns, weight * np.square(squares), d)
        share += sums_by(columns, weight, d)
        count += np.bincount(columns, minlength=d)
    rest = np.where(count < X.shape[0], np.maximum(1.0 - share, 0.0), 0.0)  # exact where all are stored
    return second + rest * np.square(center), fourth + rest * np.square(np.square(center))


def csr_parts(X: Any) -> Iterator[tuple[slice, slice]]:
    """Yield ranges of rows of a CSR matrix with the ranges of their entries, about a million at a time."""
    starts = np.searchsorted(X.indptr, np.arange(0, max(X.nnz, 1), _ENTRIES), side="right") - 1
    bounds = np.unique(np.append(starts, X.shape[0]))
    bounds[0] = 0
    for first, last in pairwise(bounds.tolist()):
        yield slice(first, last), slice(int(X.indptr[first]), int(X.indptr[last]))


def row_squares(X: Any, center: Vector) -> Vector:
    """Return ‖x − center‖² of the rows of an array, a part at a time."""
    squares = np.empty(X.shape[0])
    rows = max(1, _ENTRIES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], rows):
        part = slice(start, start + rows)
        squares[part] = np.square(X[part] - center).sum(axis=1)
    return squares


def row_squares_of_csr(X: Any, center: Vector, scale: Vector) -> Vector:
    """Return ‖(x − center)/scale‖² of the rows of a CSR matrix: that of zeros, and what entries change."""
    squares, of_zero = np.empty(X.shape[0]), np.square(center / scale)
    for rows, entries in csr_parts(X):
        columns, lengths = X.indices[entries], np.diff(X.indptr[rows.start : rows.stop + 1])
        change = np.square((X.data[entries] - center[columns]) / scale[columns]) - of_zero[columns]
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        squares[rows] = sums_by(numbers, change, len(lengths))
    return np.asarray(np.maximum(squares + of_zero.sum(), 0.0))
