"""Products with all rows of X, in fixed parts that threads share: the same bits for any number of threads."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import ThreadpoolController

from stoic.inners.blocks import IntArray, block_bounds
from stoic.protocols import Array, Vector

_PART, _MOST_PARTS, _MOST_THREADS = 1 << 17, 16, 4  # stored numbers of a part at least
_SUMS = 1  # numbers of a part for each entry of its sums, which are added up in the end
_BLOCK = 1 << 16  # numbers of rows that are copied at a time, which stay in the cache
_SPARSE_COST = 200.0  # of a product of two entries, beside one of a dense Gram matrix


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # which looks through the libraries of the process: once


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: more would wait for each other, or sum in another order."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    return ThreadPoolExecutor(min(_processors(), _MOST_THREADS))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

        def of_part(k: int) -> Array:
            own = c[self.bounds[k] : self.bounds[k + 1]]
            return _sum([part.T @ own[rows] for rows, part in self._blocks(k)], self.X.shape[1])

        return _sum(self._each(of_part), self.X.shape[1])

    def sums_by(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return the sums of the rows times c by their codes, of shape (n_groups, d)."""
        if n_groups == 1:
            return self.transposed_times(c)[None]

        def of_part(k: int) -> Array:
            own, numbers = (one[self.bounds[k] : self.bounds[k + 1]] for one in (c, codes))
            total = np.zeros((n_groups, self.X.shape[1]))
            for rows, part in self._blocks(k, copies=self.is_sparse):
                entries = own[rows], numbers[rows], np.arange(rows.stop - rows.start + 1)
                inside: Any = sparse.csr_array(entries, shape=(part.shape[0], n_groups)).T @ part
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

    def squares(self, c: Vector) -> Vector:
        """Return the sums of c times the squares of the entries, column by column."""

        def of_part(k: int) -> Array:
            own, part = c[self.bounds[k] : self.bounds[k + 1]], self.parts[k]
            if self.is_sparse:
                squares = np.square(part.data, dtype=np.float64)
                return np.asarray(sparse.csr_array((squares, part.indices, part.indptr), shape=part.shape).T @ own)
            length = max(1, _BLOCK // part.shape[1])
            starts = range(0, part.shape[0], length)
            squared = [own[i : i + length] @ np.square(part[i : i + length], dtype=np.float64) for i in starts]
            return _sum(squared, part.shape[1])

        if self.is_sparse and not self.X.has_canonical_format:
            canonical = self.X.copy()
            canonical.sum_duplicates()
            return Parted(canonical).squares(c)
        return _sum(self._each(of_part), self.X.shape[1])

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
            return list(_pool(os.getpid()).map(work, range(n_parts)))
        with one_blas_thread():
            return list(_pool(os.getpid()).map(work, range(n_parts)))


def _view(X: Any, rows: slice) -> Any:
    """Return some rows of a CSR matrix, which share its memory."""
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    inside = X.data[first:last], X.indices[first:last], X.indptr[rows.start : rows.stop + 1] - first
    return sparse.csr_array(inside, shape=(rows.stop - rows.start, X.shape[1]))


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
