"""Squared lengths of the rows of an array or a CSR matrix about a center, in parts that stay in the cache."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from stoic.inners.blocks import sums_by
from stoic.protocols import Vector

_ENTRIES = 1 << 20  # of X that are looked at a time


def row_squares(X: Any, center: Vector, scale: Vector) -> Vector:
    """Return ‖(x − center)/scale‖² of the rows."""
    if sparse.issparse(X):
        return row_squares_of_csr(X, center, scale)
    squares = np.empty(X.shape[0])
    for part in parts(X):
        away = X[part] - center
        away /= scale
        squares[part] = np.einsum("ij,ij->i", away, away)
    return squares


def parts(X: Any) -> Iterator[slice]:
    """Yield ranges of rows of an array, of a size that stays in the cache."""
    rows = max(1, _ENTRIES // (8 * X.shape[1]))
    return (slice(start, start + rows) for start in range(0, X.shape[0], rows))


def csr_parts(X: Any) -> Iterator[tuple[slice, slice]]:
    """Yield ranges of rows of a CSR matrix with the ranges of their entries, about a million at a time."""
    starts = np.searchsorted(X.indptr, np.arange(_ENTRIES, X.nnz, _ENTRIES), side="right") - 1
    bounds = np.unique(np.concatenate([[0], starts, [X.shape[0]]]))
    for first, last in pairwise(bounds.tolist()):
        yield slice(first, last), slice(int(X.indptr[first]), int(X.indptr[last]))


def row_squares_of_csr(X: Any, center: Vector, scale: Vector) -> Vector:
    """Return ‖(x − center)/scale‖² of the rows of a CSR matrix: that of zeros, and what entries change."""
    squares, of_zero = np.empty(X.shape[0]), np.square(center / scale)
    for rows, entries in csr_parts(X):
        columns, lengths = X.indices[entries], np.diff(X.indptr[rows.start : rows.stop + 1])
        change = np.square((X.data[entries] - center[columns]) / scale[columns]) - of_zero[columns]
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        squares[rows] = sums_by(numbers, change, len(lengths))
    return np.asarray(np.maximum(squares + of_zero.sum(), 0.0))
