"""The start of a ROSC stage on sparse rows: robust means and slacks without a dense block of Jacobians."""

from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

from stoic.inners.blocks import block_bounds, block_sizes
from stoic.inners.group_loss import GroupLoss
from stoic.means import SmallestBall, smallest_ball_index
from stoic.problem import Problem
from stoic.protocols import Array, Vector
from stoic.solvers.base import AnySolver
from stoic.solvers.rosc import ROSC, Calibrated, Reference, ROSCState

_ENTRIES = 1 << 18  # numbers of X held at a time: 3 MB


def sparse_init(solver: AnySolver, problem: Problem, inner: GroupLoss, w0: Vector, rng: Generator) -> Any:
    """Return ``solver.init(problem, w0, rng)``; for ROSC on CSR rows from the Gram matrix of the block means."""
    is_sparse = sparse.issparse(inner.X)
    if not (is_sparse and isinstance(solver, ROSC) and isinstance(solver.reference_mean, SmallestBall)):
        return solver.init(problem, w0, rng)
    metered = problem.inner
    drawn = metered.draw(solver.reference_size, rng)  # Alg. 5, l. 1
    blocks = solver.reference_mean.n_blocks(solver.reference_size)
    y = solver.reference_mean.combine(metered.value(w0, drawn, blocks))  # Alg. 5, l. 2
    slopes = _Slopes(inner, w0, drawn.batch.rows)
    z = slopes.block(smallest_ball_index(slopes.squared_distances(blocks)), blocks)
    levels = solver.levels
    if isinstance(levels, Calibrated):
        cuts = min(solver.reference_size, max(solver.reference_size // solver.batch_size, 3))
        values = metered.value(w0, drawn, cuts)
        far_y = np.linalg.norm(values - y, axis=1)
        levels = solver.calibrated(float(np.median(far_y)), slopes.median_distance(z, cuts), cuts)
    return ROSCState(w0, w0, 0, Reference(w0, y, z, levels))


class _Slopes:
    """The rows of a reference batch with the derivatives of their losses; block means a few blocks at a time."""

    def __init__(self, inner: GroupLoss, w0: Vector, rows: Any) -> None:
        self.X, self.rows, self.has_tail = inner.X, rows, inner.intercept
        self.mean_length = max(1.0, inner.X.nnz / inner.n_samples)
        end = inner.X.shape[1]
        tail = float(w0[-1]) if self.has_tail else 0.0
        per_part = max(1, int(_ENTRIES / self.mean_length))
        predictions = [self._predict(group, w0[:end], per_part) for group in rows]
        self.slopes = inner.loss.derivative(np.stack(predictions) + tail, inner.y[rows])

    def _predict(self, rows: Any, w: Vector, per_part: int) -> Vector:
        parts = [self.X[rows[start : start + per_part]] @ w for start in range(0, len(rows), per_part)]
        return np.concatenate(parts)

    def _tiles(self, blocks: int) -> list[slice]:
        """Return ranges of blocks whose rows fit in memory."""
        rows_per_block = self.rows.shape[1] / blocks
        width = max(1, int(_ENTRIES / (self.mean_length * rows_per_block)))
        return [slice(start, min(start + width, blocks)) for start in range(0, blocks, width)]

    def _block_means(self, group: int, blocks: int, tile: slice) -> Any:
        """Return some block means of one group's slope·x as sparse rows, the intercept's column included."""
        size = self.rows.shape[1]
        bounds = block_bounds(size, blocks)[tile.start : tile.stop + 1]
        part = slice(int(bounds[0]), int(bounds[-1]))
        weights = (self.slopes[group] / block_sizes(size, blocks))[part]
        shape = (tile.stop - tile.start, weights.size)
        average = sparse.csr_array((weights, np.arange(weights.size), bounds - bounds[0]), shape=shape)
        means = average @ self.X[self.rows[group, part]]
        if self.has_tail:
            means = sparse.hstack([means, sparse.csr_array(average.sum(axis=1)[:, None])], format="csr")
        return means

    def squared_distances(self, blocks: int) -> Array:
        """Return the squared Frobenius distances of the block means, from their Gram matrix."""
        gram = np.zeros((blocks, blocks))
        tiles = self._tiles(blocks)
        for group in range(len(self.rows)):
            for i, tile in enumerate(tiles):
                means = self._block_means(group, blocks, tile)
                for other in tiles[: i + 1]:
                    others = means if other is tile else self._block_means(group, blocks, other)
                    gram[tile, other] += (means @ others.T).toarray()
        gram = np.tril(gram) + np.tril(gram, -1).T
        norms = np.diag(gram)
        return np.maximum(norms[:, None] + norms - 2.0 * gram, 0.0)

    def block(self, index: int, blocks: int) -> Array:
        """Return one block mean, dense, of shape (p, d)."""
        tile = slice(index, index + 1)
        groups = range(len(self.rows))
        return np.stack([self._block_means(group, blocks, tile).toarray()[0] for group in groups])

    def median_distance(self, z: Array, blocks: int) -> float:
        """Return the median distance of the block means to z."""
        squared = np.zeros(blocks)
        for group, row in enumerate(z):
            for tile in self._tiles(blocks):
                means = self._block_means(group, blocks, tile)
                squared[tile] += means.multiply(means).sum(axis=1) - 2.0 * (means @ row) + row @ row
        return float(np.median(np.sqrt(np.maximum(squared, 0.0))))
