"""Pairwise distances of sparse block means, without forming the blocks."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from stoic.engines.kernels.parts.blocks import Tile, add_products, add_squared_distances, fill_tile, predict_rows
from stoic.engines.kernels.rows import csr_rows, read_only
from stoic.inners.blocks import IntArray
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.means import smallest_ball_index
from stoic.protocols import Array, Vector

_CELLS = 1 << 17  # numbers of the block means held at a time: 1 MB, which stays in the cache
_MOST_THREADS = 4  # each holds a vector of length d


class SparseBlocks:
    """The block means of the Jacobian of some drawn rows; no more than a few columns of them are held at a time.

    Groups are shared among threads. Sums over groups are formed in the order of the groups, so that results have
    the same bits for any number of threads.

    Parameters
    ----------
    inner : GroupLoss
        Over a CSR matrix; its rows are read where they are.
    rows : array of int of shape (p, size)
    slopes : array of shape (p, size)
        The derivatives of their losses.
    """

    def __init__(self, inner: GroupLoss, rows: IntArray, slopes: Array) -> None:
        self.inner, self.rows, self.slopes = inner, rows, slopes
        self._X = csr_rows(inner.X)

    def smallest_ball(self, bounds: IntArray) -> tuple[Array, Vector]:
        """Return the block mean that `SmallestBall` takes, of shape (p, d), and the distances of all to it."""
        far = self.distances(bounds)
        winner = smallest_ball_index(far)
        if 2 * np.count_nonzero(far[winner] < np.inf) < len(far):
            return np.full(self.inner.shape, np.nan), np.full(len(far), np.nan)
        return self.mean(bounds[winner], bounds[winner + 1]), far[winner]

    def distances(self, bounds: IntArray) -> Array:
        """Return the Frobenius distances of the means over the blocks that k + 1 bounds cut, of shape (k, k).

        They come from the Gram matrix, so that one below 1e-8 times the means is rounding. They are infinite where
        a mean is not finite.
        """
        exponent = _exponent(self.slopes)
        weights = np.ldexp(self._weights(bounds), -exponent)
        gram = np.zeros((bounds.size - 1, bounds.size - 1))
        for part in _by_threads(lambda i: self._gram(self.rows[i], weights[i], bounds), len(self.rows)):
            gram += part
        if self.inner.intercept:
            tails = np.add.reduceat(weights, bounds[:-1], axis=1)
            gram += tails.T @ tails
        gram = np.tril(gram) + np.tril(gram, -1).T
        norms = np.diag(gram)
        squared = norms[:, None] + norms - 2.0 * gram
        np.fill_diagonal(squared, np.where(np.isfinite(norms), 0.0, np.inf))
        return np.ldexp(np.sqrt(np.where(np.isnan(squared), np.inf, np.maximum(squared, 0.0))), exponent)

    def distances_to(self, z: Array, bounds: IntArray) -> Vector:
        """Return the Frobenius distances of the means over k blocks to z, of shape (k,)."""
        end = self.inner.X.shape[1]
        weights, squared = self._weights(bounds), np.zeros(bounds.size - 1)

        def from_group(i: int) -> Vector:
            center, out = read_only(np.ascontiguousarray(z[i, :end])), np.zeros(bounds.size - 1)
            add_squared_distances(self._X, self.rows[i], weights[i], bounds, center, np.empty(end), out)
            return out

        for part in _by_threads(from_group, len(self.rows)):
            squared += part
        if self.inner.intercept:
            squared += np.square(np.add.reduceat(weights, bounds[:-1], axis=1) - z[:, end:]).sum(axis=0)
        return np.sqrt(np.maximum(squared, 0.0))

    def mean(self, start: int, stop: int) -> Array:
        """Return the mean over one block, of shape (p, d), in Fortran order: so engines need no copy."""
        mean = np.empty(self.inner.shape, order="F")
        for line, rows, slopes in zip(mean, self.rows, self.slopes, strict=True):
            line[:] = self.inner.combine(slopes[start:stop] / (stop - start), RowBatch(rows[start:stop]))
        return mean

    def _weights(self, bounds: IntArray) -> Array:
        sizes = np.diff(bounds)
        weights: Array = self.slopes / np.repeat(sizes, sizes)
        return weights

    def _gram(self, rows: IntArray, weights: Vector, bounds: IntArray) -> Array:
        """Return the products of one group's block means, the lower half, from a few columns at a time."""
        k, X = bounds.size - 1, self.inner.X
        is_sorted = bool(X.has_sorted_indices)
        block = np.repeat(np.arange(k), np.diff(bounds))
        places = X.indptr.take(rows).astype(np.int64)
        tile, gram = _empty_tile(min(X.shape[1], max(1, _CELLS // k)), k), np.zeros((k, k))
        for first in range(0, X.shape[1], len(tile.values)):
            fill_tile(self._X, rows, weights, block, places, first, is_sorted, tile)
            add_products(tile, gram)
        return gram


def predictions(inner: GroupLoss, w: Vector, rows: IntArray) -> Array:
    """Return xᵀw of many rows (p, size) of a CSR matrix, in that shape; unlike `predict`, it copies no row."""
    X, out = csr_rows(inner.X), np.empty(rows.shape)
    w = read_only(np.ascontiguousarray(w))
    list(_by_threads(lambda i: predict_rows(X, rows[i], w, out[i]), len(rows)))
    return out + w[-1] if inner.intercept else out


def _by_threads(work: Callable[[int], Any], n: int) -> Iterator[Any]:
    """Yield work(0) … work(n − 1)."""
    with ThreadPoolExecutor(_threads(n)) as pool:
        yield from pool.map(work, range(n))


def _threads(n: int) -> int:
    """Return how many threads share n pieces of work: one for each processor that the process may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, n, _MOST_THREADS)


def _empty_tile(n_columns: int, k: int) -> Tile:
    is_used, owners = np.zeros(n_columns, dtype=np.bool_), np.zeros(k, dtype=np.uint64)
    return Tile(np.zeros((n_columns, k)), is_used, owners, np.zeros((4, k)))


def _exponent(slopes: Array) -> int:
    """Return e with slopes·2^−e of ordinary size: squares then neither overflow nor vanish."""
    size = float(np.median(np.abs(slopes)))
    return int(np.frexp(size)[1]) if np.isfinite(size) else 0
