"""Products with rows of X, dense or CSR, for a drawn batch or for all rows; X itself is never copied."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stoic.inners.blocks import IntArray, block_bounds, block_sizes, sums_by
from stoic.inners.gathered import CSRMatrix, CSRRows, DenseRows, Gathered, SparseEntries
from stoic.inners.parted import Parted
from stoic.protocols import Array, Vector

DenseMatrix: TypeAlias = NDArray[np.float64] | NDArray[np.float32]
Matrix: TypeAlias = Any  # DenseMatrix or CSRMatrix

_MAX_ENTRIES = 1 << 21  # numbers of X that a batch keeps: 16 MB dense, 24 MB sparse
_PARTS = 8  # a larger batch is gathered anew in parts of this share of it
_MANY_ENTRIES = 1 << 13  # from here on SciPy's fixed costs are worth paying


@dataclass(slots=True, eq=False)
class RowBatch:
    """Row numbers of shape (p, size), `size` of each group; None stands for all rows, each once.

    The rows that were gathered last are kept: value and derivative are mostly asked for in turn.
    """

    rows: IntArray | None
    gathered: Gathered | None = field(default=None, repr=False)
    gathered_from: "Design | None" = field(default=None, repr=False)

    def forget(self) -> None:
        """Let go of the rows that were gathered."""
        self.gathered = self.gathered_from = None

    def __reduce__(self) -> tuple[type["RowBatch"], tuple[IntArray | None]]:
        return RowBatch, (self.rows,)  # a pickled batch does not carry the data with it


class Design(ABC):
    """The rows of X, followed by a 1 where there is an intercept.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, columns), after checks
    intercept : bool
    """

    def __init__(self, X: Matrix, *, intercept: bool, entries: int) -> None:
        self.X = X
        self.intercept = intercept
        self.n_rows = int(X.shape[0])
        self.d = int(X.shape[1]) + intercept
        self._max_rows = max(1, _MAX_ENTRIES * self.n_rows // max(1, entries))

    def predict(self, w: Vector, batch: RowBatch) -> Array:
        """Return the products of the rows with w, in the shape of ``batch.rows``; (n,) for all rows."""
        if batch.rows is None:
            return self._predict_all(w)
        if batch.rows.size <= self._max_rows:
            return self._gathered(batch).dot(w).reshape(batch.rows.shape)
        flat = batch.rows.ravel()
        products = [self._gather(flat[part]).dot(w) for part in self._parts(flat.size)]
        return np.concatenate(products).reshape(batch.rows.shape)

    def combine(self, c: Array, batch: RowBatch) -> Vector:
        """Return the sum of the rows times `c`, which has the shape of ``batch.rows``; (n,) for all rows."""
        if batch.rows is None:
            return self._combine_all(c)
        if batch.rows.size <= self._max_rows:
            return self._gathered(batch).combine(c.ravel())
        return self._combine_in_parts(c.ravel(), batch.rows.ravel())

    def block_means(self, c: Array, batch: RowBatch, blocks: int) -> Array:
        """Return the means of drawn rows times `c` over blocks of each group, of shape (blocks, p, d)."""
        rows: IntArray = batch.rows  # type: ignore[assignment]  # all rows are not cut into blocks
        p, size = rows.shape
        c = c / block_sizes(size, blocks)
        if rows.size <= self._max_rows:
            return self._gathered(batch).block_sums(c, blocks)
        means, bounds = np.empty((blocks, p, self.d)), block_bounds(size, blocks)
        some = self._max_rows // _PARTS // (p * int(bounds[1]))  # blocks that fit; the first is one of the longest
        for first in range(0, blocks, max(1, some)):
            last = min(first + max(1, some), blocks)
            part = slice(bounds[first], bounds[last])
            if some > 0:
                means[first:last] = self._gather(rows[:, part].ravel()).block_sums(c[:, part], last - first)
            else:
                means[first] = [self._combine_in_parts(c[i, part], rows[i, part]) for i in range(p)]
        return means

    def sums_by(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return the sums of all rows times c by their codes, of shape (n_groups, d)."""
        inside = self._all.sums_by(codes, c, n_groups)
        if not self.intercept:
            return inside
        return np.column_stack([inside, sums_by(codes, c, n_groups)])

    def gram(self, c: Vector) -> Array:
        """Return the sum over all rows of c times the outer product of the row with itself, of shape (d, d)."""
        inside = self._all.gram(c)
        if not self.intercept:
            return inside
        total = np.empty((self.d, self.d))
        total[:-1, :-1] = inside
        total[-1] = total[:, -1] = self._combine_all(c)
        return total

    def grams(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return `gram` of the rows of each code, of shape (n_groups, d, d), for c >= 0."""
        inside = self._all.grams(codes, c, n_groups)
        if not self.intercept:
            return inside
        total = np.empty((n_groups, self.d, self.d))
        total[:, :-1, :-1] = inside
        total[:, -1] = total[:, :, -1] = self.sums_by(codes, c, n_groups)
        return total

    def gram_diagonal(self, c: Vector, *, roughly: bool = False) -> Vector:
        """Return the diagonal of `gram`, without forming it; roughly, where entries may be stored twice."""
        inside = self._all.squares(c, roughly=roughly)
        return np.append(inside, c.sum()) if self.intercept else inside

    def taken(self, rows: IntArray) -> "Design":
        """Return the design of some rows, copied; those of an array that follow each other are a view."""
        first, n = int(rows[0]), len(rows)
        is_range = int(rows[-1]) == first + n - 1 and bool((np.diff(rows) == 1).all())
        return self.like(self.X[first : first + n] if is_range else self.X[rows], intercept=self.intercept)

    def with_columns(self, columns: IntArray) -> "Design":
        """Return the design of some columns, copied; the last number may stand for the intercept."""
        has_intercept = self.intercept and bool(len(columns)) and int(columns[-1]) == self.d - 1
        return self.like(self.X[:, columns[:-1] if has_intercept else columns], intercept=has_intercept)

    @abstractmethod
    def like(self, X: Matrix, *, intercept: bool) -> "Design":
        """Return a design of the same kind."""

    @cached_property
    def _all(self) -> Parted:
        return Parted(self.X)

    def _gathered(self, batch: RowBatch) -> Gathered:
        if batch.gathered is None or batch.gathered_from is not self:
            batch.gathered, batch.gathered_from = self._gather(batch.rows.ravel()), self  # type: ignore[union-attr]
        return batch.gathered

    def _combine_in_parts(self, c: Vector, flat: IntArray) -> Vector:
        total = np.zeros(self.d)
        for part in self._parts(flat.size):
            total += self._gather(flat[part]).combine(c[part])
        return total

    def _parts(self, size: int) -> Iterator[slice]:
        length = max(1, self._max_rows // _PARTS)
        return (slice(start, start + length) for start in range(0, size, length))

    def _predict_all(self, w: Vector) -> Vector:
        if not self.intercept:
            return self._all.times(w)
        shifted: Vector = self._all.times(w[:-1]) + w[-1]
        return shifted

    def _combine_all(self, c: Vector) -> Vector:
        if not self.intercept:
            return self._all.transposed_times(c)
        return np.append(self._all.transposed_times(c), c.sum())

    @abstractmethod
    def _gather(self, flat: IntArray) -> Gathered:
        """Return copies of the rows, each followed by a 1 where there is an intercept."""


class DenseDesign(Design):
    """Rows of an array, float64 or float32, in any memory order."""

    def __init__(self, X: DenseMatrix, *, intercept: bool = False) -> None:
        super().__init__(X, intercept=intercept, entries=X.size)

    def like(self, X: Matrix, *, intercept: bool) -> "DenseDesign":
        """Return a design of an array."""
        return DenseDesign(X, intercept=intercept)

    def _gather(self, flat: IntArray) -> DenseRows:
        rows = self.X.take(flat, axis=0) if self.X.flags.c_contiguous else self.X[flat]  # take would copy all of X
        if self.intercept:
            extended = np.empty((len(flat), self.d))
            extended[:, :-1] = rows
            extended[:, -1] = 1.0
            return DenseRows(extended)
        return DenseRows(rows.astype(np.float64, copy=False))


class CSRDesign(Design):
    """Rows of a CSR matrix; entries that are stored twice count as their sum."""

    def __init__(self, X: CSRMatrix, *, intercept: bool = False) -> None:
        super().__init__(X, intercept=intercept, entries=X.nnz)

    def like(self, X: Matrix, *, intercept: bool) -> "CSRDesign":
        """Return a design of a CSR matrix."""
        return CSRDesign(X, intercept=intercept)

    def _gather(self, flat: IntArray) -> Gathered:
        if len(flat) * self.X.nnz > _MANY_ENTRIES * self.n_rows:
            return CSRRows(self.X[flat].astype(np.float64, copy=False), self.intercept)
        return self._gather_entries(flat)

    def _gather_entries(self, flat: IntArray) -> SparseEntries:
        indptr = self.X.indptr
        starts = indptr.take(flat).astype(np.intp, copy=False)
        lengths = indptr.take(flat + 1) - starts
        ends = np.cumsum(lengths)
        numbers = np.repeat(np.arange(len(flat)), lengths)
        positions = np.arange(len(numbers)) + (starts - ends + lengths).take(numbers)
        columns = self.X.indices.take(positions).astype(np.intp, copy=False)
        entries = self.X.data.take(positions).astype(np.float64, copy=False)
        if self.intercept:
            numbers = np.concatenate([numbers, np.arange(len(flat))])
            columns = np.concatenate([columns, np.full(len(flat), self.d - 1)])
            entries = np.concatenate([entries, np.ones(len(flat))])
        return SparseEntries(numbers, columns, entries, (len(flat), self.d))
