"""Block means of slope·x over rows of a CSR matrix, known by their distances: only a wanted one is formed."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.inners.blocks import IntArray
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.kernels.jit import kernel
from stoic.means import smallest_ball_index
from stoic.protocols import Array, Vector

_CELLS = 1 << 17  # numbers of the block means held at a time: 1 MB, which stays in the cache
_FEW = 24  # a column that so few blocks have is cheaper to multiply entry by entry


class _CSR(NamedTuple):
    """The three arrays of a CSR matrix, indices unsigned."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]


class SparseBlocks:
    """The block means of the Jacobian of some drawn rows; no more than a few columns of them are held at a time.

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
        X = inner.X
        indices = X.indices.view(f"u{X.indices.dtype.itemsize}")
        self._X = _CSR(_read_only(X.indptr), _read_only(indices), _read_only(X.data))

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
        for rows, terms in zip(self.rows, weights, strict=True):
            self._add_gram(rows, terms, bounds, gram)
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
        weights, work, squared = self._weights(bounds), np.empty(end), np.zeros(bounds.size - 1)
        for rows, terms, line in zip(self.rows, weights, z[:, :end], strict=True):
            center = _read_only(np.ascontiguousarray(line))
            _add_squared_distances(self._X, rows, terms, bounds, center, work, squared)
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

    def _add_gram(self, rows: IntArray, weights: Vector, bounds: IntArray, gram: Array) -> None:
        """Add the products of one group's block means to the lower half of `gram`, a few columns at a time."""
        k, X = bounds.size - 1, self.inner.X
        is_sorted = bool(X.has_sorted_indices)
        block = np.repeat(np.arange(k), np.diff(bounds))
        places = X.indptr.take(rows).astype(np.int64)
        tile = np.zeros((min(X.shape[1], max(1, _CELLS // k)), k))
        owners, many = np.zeros(k, dtype=np.uint64), np.zeros((4, k))
        for first in range(0, X.shape[1], len(tile)):
            _fill(self._X, rows, weights, block, places, first, is_sorted, tile)
            _add_products(tile, owners, many, gram)


@kernel
def _fill(
    X: _CSR, rows: Any, weights: Any, block: Any, places: Any, first: int, is_sorted: bool, tile: Any
) -> None:
    """Add weight·x of each row to its block, for the columns from `first` on that the tile (columns, k) has.

    `places` says where the entries of a row begin that were not yet used; rows that are not sorted are searched.
    """
    for j in range(rows.size):
        e, end = np.uint64(places[j]), np.uint64(X.indptr[rows[j] + 1])
        weight, b = weights[j], np.uint64(block[j])
        while e < end:
            column = np.int64(X.indices[e]) - first
            if 0 <= column < tile.shape[0]:
                tile[np.uint64(column), b] += weight * X.data[e]
            elif is_sorted:
                break
            e += np.uint64(1)
        if is_sorted:
            places[j] = e


@kernel
def _add_products(tile: Any, owners: Any, many: Any, gram: Any) -> None:
    """Add the products of the columns (k,) of the tile to the lower half of `gram`, and set the tile to zero.

    `owners` (k,) is to write to, and `many` (4, k) as well; it is zero before and after.
    """
    width, k = tile.shape
    n_many = 0
    for c in range(width):
        column = tile[c]
        n = 0
        for b in range(k):  # without a branch, which could not be foretold
            owners[np.uint64(n)] = b
            n += column[b] != 0.0
        if n > _FEW:
            for b in range(k):
                many[n_many, b] = column[b]
            n_many += 1
        for i in range(n if n <= _FEW else 0):
            line, value = gram[owners[i]], column[owners[i]]
            for j in range(i + 1):
                line[owners[j]] += value * column[owners[j]]
        if n > 0:
            column[:] = 0.0
        if n_many == 4 or (n_many > 0 and c == width - 1):
            _add_four(many[0], many[1], many[2], many[3], gram)
            many[:] = 0.0
            n_many = 0


@kernel
def _add_four(x0: Any, x1: Any, x2: Any, x3: Any, gram: Any) -> None:
    """Add the products of four columns at once, so that `gram` is read and written once."""
    for b in range(x0.size):
        line = gram[b]
        for a in range(b + 1):
            line[a] += x0[b] * x0[a] + x1[b] * x1[a] + x2[b] * x2[a] + x3[b] * x3[a]


@kernel
def _add_squared_distances(X: _CSR, rows: Any, weights: Any, bounds: Any, z: Any, work: Any, out: Any) -> None:
    """Add the squared distances of one group's block means to its row z of the reference."""
    indptr, indices, data = X
    here = 0.0
    for c in range(z.size):
        work[c] = -z[c]
        here += z[c] * z[c]
    for b in range(bounds.size - 1):
        total = here
        for j in range(bounds[b], bounds[b + 1]):
            for e in range(np.uint64(indptr[rows[j]]), np.uint64(indptr[rows[j] + 1])):
                change, old = weights[j] * data[e], work[indices[e]]
                total += change * (2.0 * old + change)
                work[indices[e]] = old + change
        for j in range(bounds[b], bounds[b + 1]):
            for e in range(np.uint64(indptr[rows[j]]), np.uint64(indptr[rows[j] + 1])):
                work[indices[e]] = -z[indices[e]]
        out[b] += total


def _exponent(slopes: Array) -> int:
    """Return e with slopes·2^−e of ordinary size: squares then neither overflow nor vanish."""
    size = float(np.median(np.abs(slopes)))
    return int(np.frexp(size)[1]) if np.isfinite(size) else 0


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels then compile once, whatever they are given."""
    view = array.view()
    view.flags.writeable = False
    return view
