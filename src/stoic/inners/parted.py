"""Products with all rows of X, in fixed parts that threads share: the same bits for any number of threads."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from stoic.inners.blocks import IntArray, block_bounds
from stoic.inners.threads import each_of, one_blas_thread
from stoic.protocols import Array, Vector

_PART, _MOST_PARTS = 1 << 20, 16  # stored numbers of a part at least
_SUMS = 1  # numbers of a part for each entry of its sums, which are added up in the end
_BLOCK = 1 << 16  # numbers of rows that are copied at a time, which stay in the cache
_COPIED = 1 << 20  # numbers of rows that are copied at a time, group by group
_SPARSE_COST = 200.0  # of a product of two entries, beside one of a dense Gram matrix
_FEW_GROUPS = 24  # whose sums a dense product with zeros in it forms sooner than a sparse one


class Parted:
    """An array or CSR matrix in parts of consecutive rows, of which only views are made.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
    """

    def __init__(self, X: Any) -> None:
        self.X, self.is_sparse = X, sparse.issparse(X)
        (n, d), entries = X.shape, X.nnz if self.is_sparse else X.size
        n_parts = min(_MOST_PARTS, entries // max(_PART, _SUMS * d), n) or 1
        self.bounds = block_bounds(n, n_parts) if n else np.array([0, 0])
        self.must_convert = X.dtype != np.float64 or not (self.is_sparse or X.flags.forc)

    @cached_property
    def parts(self) -> list[Any]:
        """Views of the parts."""
        if len(self.bounds) == 2:
            return [self.X]
        if not self.is_sparse:
            return [self.X[part] for part in self._slices]
        return [_view(self.X, part) for part in self._slices]

    def __reduce__(self) -> tuple[type["Parted"], tuple[Any]]:
        return Parted, (self.X,)  # without the views, which would be copies

    @property
    def _slices(self) -> list[slice]:
        return [slice(*pair) for pair in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)]

    def times(self, w: Vector) -> Vector:
        """Return Xw."""
        if not w.any():  # as at most starts
            return np.zeros(self.X.shape[0])
        if len(self.bounds) == 2 and not self.must_convert:
            return np.asarray(self.X @ w)
        product = np.empty(self.X.shape[0])

        def fill(k: int) -> None:
            start = self.bounds[k]
            for rows, part in self._blocks(k):
                product[start + rows.start : start + rows.stop] = part @ w

        self._each(fill)
        return product

    def transposed_times(self, c: Vector) -> Vector:
        """Return Xᵀc."""
        if len(self.bounds) == 2 and not self.must_convert:
            return np.asarray(self.X.T @ c)
        if not (self.is_sparse or self.must_convert or self.X.flags.c_contiguous):
            return self._by_columns(c)

        def of_part(k: int) -> Array:
            own = c[self.bounds[k] : self.bounds[k + 1]]
            return _sum([_transposed_times(part, own[rows]) for rows, part in self._blocks(k)], self.X.shape[1])

        return _sum(self._each(of_part), self.X.shape[1])

    def _by_columns(self, c: Vector) -> Vector:
        """Return Xᵀc of an array whose columns are contiguous."""
        bounds = block_bounds(self.X.shape[1], min(_MOST_PARTS, self.X.shape[1]))

        def of_columns(k: int) -> Array:
            return np.asarray(np.dot(self.X.T[bounds[k] : bounds[k + 1]], c))

        with one_blas_thread():
            return np.concatenate(each_of(of_columns, range(len(bounds) - 1)))

    def sums_by(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return the sums of the rows times c by their codes, of shape (n_groups, d)."""
        if n_groups == 1:
            return self.transposed_times(c)[None]

        by_one_product = not self.is_sparse and n_groups <= _FEW_GROUPS

        def of_part(k: int) -> Array:
            own, numbers = (one[self.bounds[k] : self.bounds[k + 1]] for one in (c, codes))
            total = np.zeros((n_groups, self.X.shape[1]))
            for rows, part in self._blocks(k, copies=self.is_sparse or by_one_product):
                m = rows.stop - rows.start
                if by_one_product:
                    spread = np.zeros((n_groups, m))
                    spread[numbers[rows], np.arange(m)] = own[rows]
                    total += spread @ part
                    continue
                entries = own[rows], numbers[rows], np.arange(m + 1)
                inside: Any = sparse.csr_array(entries, shape=(m, n_groups)).T @ part
                total += inside if isinstance(inside, np.ndarray) else inside.toarray()
            return total

        return np.asarray(sum(self._each(of_part)))

    def gram(self, c: Vector) -> Array:
        """Return Xᵀ diag(c) X."""
        is_positive = bool((c >= 0.0).all())
        entries, (n, d) = self.X.nnz if self.is_sparse else self.X.size, self.X.shape
        is_thin = self.is_sparse and _SPARSE_COST * (entries / max(1, n)) ** 2 < d**2

        def of_part(k: int) -> Array:
            own, part = c[self.bounds[k] : self.bounds[k + 1]], self.parts[k]
            if is_thin:
                product: Any = part.multiply(own[:, None]).T @ part
                return np.asarray(product.toarray(), dtype=float)
            length, total = max(1, _BLOCK * 4 // d), np.zeros((d, d))
            for start in range(0, part.shape[0], length):
                total += _gram_of(part[start : start + length], own[start : start + length, None], is_positive)
            return total

        return np.asarray(sum(self._each(of_part)))

    def grams(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return `gram` of the rows of each code, (n_groups, d, d), for c >= 0; only blocks are copied."""
        d = self.X.shape[1]

        def of_part(k: int) -> Array:
            own, numbers = (one[self.bounds[k] : self.bounds[k + 1]] for one in (c, codes))
            part, total = self.parts[k], np.zeros((n_groups, d, d))
            length = max(1, _COPIED // d)
            for start in range(0, part.shape[0], length):
                block = slice(start, start + length)
                order = np.argsort(numbers[block], kind="stable")
                ends = np.searchsorted(numbers[block][order], np.arange(n_groups + 1))
                rows = _ordered(part[block], order, np.sqrt(own[block][order]))
                for i in np.flatnonzero(np.diff(ends)):
                    inside = rows[ends[i] : ends[i + 1]]
                    total[i] += inside.T @ inside
            return total

        return np.asarray(sum(self._each(of_part)))

    def squares(self, c: Vector, *, roughly: bool = False) -> Vector:
        """Return the sums of c times the squares of the entries, column by column.

        Roughly: entries that are stored twice count each by itself, since their sum takes a copy of the matrix.
        """

        def of_part(k: int) -> Array:
            own, part = c[self.bounds[k] : self.bounds[k + 1]], self.parts[k]
            if self.is_sparse:
                squares = np.square(part.data, dtype=np.float64)
                return np.asarray(sparse.csr_array((squares, part.indices, part.indptr), shape=part.shape).T @ own)
            length = max(1, _BLOCK // part.shape[1])
            starts = range(0, part.shape[0], length)
            squared = [own[i : i + length] @ np.square(part[i : i + length], dtype=np.float64) for i in starts]
            return _sum(squared, part.shape[1])

        if self.is_sparse and not roughly and not self.X.has_canonical_format:
            canonical = self.X.copy()
            canonical.sum_duplicates()
            return Parted(canonical).squares(c)
        return _sum(self._each(of_part), self.X.shape[1])

    def row_squares(self, u: Vector) -> Vector:
        """Return the sums of u times the squares of the entries, row by row."""
        sums = np.empty(self.X.shape[0])

        def fill(k: int) -> None:
            part, own = self.parts[k], sums[self.bounds[k] : self.bounds[k + 1]]
            if self.is_sparse:
                squares = np.square(part.data, dtype=np.float64)
                own[:] = sparse.csr_array((squares, part.indices, part.indptr), shape=part.shape) @ u
                return
            length = max(1, _BLOCK // part.shape[1])
            for i in range(0, part.shape[0], length):
                own[i : i + length] = np.square(part[i : i + length], dtype=np.float64) @ u

        self._each(fill)
        return sums

    def _blocks(self, k: int, *, copies: bool = False) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of a part as float64: some at a time where these, or what is made of them, are copies."""
        part = self.parts[k]
        n = part.shape[0]
        if not (self.must_convert or copies):
            yield slice(0, n), part
            return
        per_row = part.nnz / max(1, n) if self.is_sparse else part.shape[1]
        length = int(max(1, _BLOCK // max(1, per_row)))
        for start in range(0, n, length):
            rows = slice(start, min(start + length, n))
            yield rows, (_view(part, rows) if self.is_sparse else part[rows]).astype(np.float64, copy=False)

    def _each(self, work: Callable[[int], Any]) -> list[Any]:
        """Return what is made of each part, by threads where there are several."""
        n_parts = len(self.bounds) - 1
        if n_parts == 1:
            return [work(0)]
        _ = self.parts
        if self.is_sparse:
            return each_of(work, range(n_parts))
        with one_blas_thread():
            return each_of(work, range(n_parts))


def _transposed_times(part: Any, c: Vector) -> Array:
    """Return the product of a part's transpose with c; NumPy's `dot` lets threads run, its `matmul` does not."""
    return np.asarray(np.dot(c, part) if isinstance(part, np.ndarray) else part.T @ c)


def _ordered(rows: Any, order: IntArray, scale: Vector) -> Array:
    """Return rows in an order, each times its scale, as float64 in the memory order that they have."""
    if not isinstance(rows, np.ndarray):
        rows = rows.toarray()
    if rows.flags.c_contiguous:
        rows = rows.take(order, axis=0).astype(np.float64, copy=False)
        rows *= scale[:, None]
        return np.asarray(rows)
    columns = rows.T.take(order, axis=1).astype(np.float64, copy=False)
    columns *= scale
    return np.asarray(columns.T)


def _view(X: Any, rows: slice) -> Any:
    """Return some rows of a CSR matrix, which share its memory: SciPy would copy what is less than half of it."""
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    part = sparse.csr_array((rows.stop - rows.start, X.shape[1]), dtype=X.dtype)
    part.data, part.indices = X.data[first:last], X.indices[first:last]
    part.indptr = X.indptr[rows.start : rows.stop + 1] - first
    return part


def _sum(terms: list[Array], d: int) -> Array:
    total = np.zeros(d)
    for term in terms:
        total += term
    return total


def _gram_of(rows: Any, c: Array, is_positive: bool) -> Array:
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    rows = rows.astype(np.float64, copy=False)
    if not is_positive:
        return np.asarray((rows * c).T @ rows)
    scaled = rows * np.sqrt(c)
    return np.asarray(scaled.T @ scaled)  # of which BLAS forms one half
