"""Copies of the rows of a batch, as an array, a list of entries or a CSR matrix, and products with them."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from stoic.inners.blocks import IntArray, block_bounds, sums_by
from stoic.protocols import Array, Vector

CSRMatrix: TypeAlias = Any  # scipy.sparse.csr_array or csr_matrix; their stubs do not agree on indexing


class Gathered(Protocol):
    """Copies of a few rows of X as float64, followed by a 1 where there is an intercept."""

    def dot(self, w: Vector) -> Vector:
        """Return the products with w, one a row."""
        ...

    def combine(self, c: Vector) -> Vector:
        """Return the sum of the rows times c."""
        ...

    def block_sums(self, c: Array, blocks: int) -> Array:
        """Return the sums of the rows times c, (p, size), over blocks of each group: (blocks, p, d)."""
        ...


@dataclass(slots=True, frozen=True)
class DenseRows:
    """Rows as an array."""

    rows: Array

    def dot(self, w: Vector) -> Vector:
        """Return the products with w."""
        products: Vector = self.rows.dot(w)
        return products

    def combine(self, c: Vector) -> Vector:
        """Return the sum of the rows times c."""
        total: Vector = c.dot(self.rows)
        return total

    def block_sums(self, c: Array, blocks: int) -> Array:
        """Return the sums over blocks, by a stack of products where all blocks have one size."""
        p, size = c.shape
        d = self.rows.shape[1]
        if size % blocks:
            terms = (c.reshape(-1, 1) * self.rows).reshape(p, size, d)
            starts = block_bounds(size, blocks)[:-1]
            return np.ascontiguousarray(np.add.reduceat(terms, starts, axis=1).swapaxes(0, 1))
        length = size // blocks
        stack = self.rows.reshape(p, blocks, length, d).swapaxes(0, 1)
        return (c.reshape(p, blocks, 1, length).swapaxes(0, 1) @ stack)[:, :, 0]


@dataclass(slots=True, frozen=True)
class SparseEntries:
    """Few sparse rows as a list of entries, summed by weighted counts: SciPy's fixed costs are larger."""

    numbers: IntArray
    columns: IntArray
    entries: Vector
    shape: tuple[int, int]

    def dot(self, w: Vector) -> Vector:
        """Return the products with w."""
        return sums_by(self.numbers, self.entries * w.take(self.columns), self.shape[0])

    def combine(self, c: Vector) -> Vector:
        """Return the sum of the rows times c."""
        return sums_by(self.columns, self.entries * c.take(self.numbers), self.shape[1])

    def block_sums(self, c: Array, blocks: int) -> Array:
        """Return the sums over blocks: the place of each entry in the answer is computed, then counted."""
        p, d = len(c), self.shape[1]
        places = _block_and_group(p, c.shape[1], blocks).take(self.numbers) * d + self.columns
        sums = sums_by(places, self.entries * c.ravel().take(self.numbers), blocks * p * d)
        return sums.reshape(blocks, p, d)


@dataclass(slots=True)
class CSRRows:
    """Many sparse rows as a CSR matrix; the 1 of an intercept is not stored."""

    rows: CSRMatrix
    intercept: bool
    transposed: Any = None

    def dot(self, w: Vector) -> Vector:
        """Return the products with w."""
        if not self.intercept:
            return np.asarray(self.rows @ w)
        return np.asarray(self.rows @ w[:-1] + w[-1])

    def combine(self, c: Vector) -> Vector:
        """Return the sum of the rows times c."""
        if self.transposed is None:
            self.transposed = self.rows.T
        total = np.asarray(self.transposed @ c)
        return np.append(total, c.sum()) if self.intercept else total

    def block_sums(self, c: Array, blocks: int) -> Array:
        """Return the sums over blocks as the product with a matrix that has one entry a column."""
        p, size = c.shape
        places, flat = _block_and_group(p, size, blocks), c.ravel()
        sums = sparse.csc_array((flat, places, np.arange(p * size + 1)), shape=(blocks * p, p * size)).tocsr()
        answer = (sums @ self.rows).toarray()
        if self.intercept:
            answer = np.column_stack([answer, sums_by(places, flat, blocks * p)])
        return np.asarray(answer).reshape(blocks, p, -1)


def _block_and_group(p: int, size: int, blocks: int) -> IntArray:
    """Return block * p + group of each of p * size rows."""
    block = np.repeat(np.arange(blocks), np.diff(block_bounds(size, blocks)))
    return (block * p + np.arange(p)[:, None]).ravel()
