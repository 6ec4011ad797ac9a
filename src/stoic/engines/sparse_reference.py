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
    """The rows of a reference batch with the derivatives of their losses."""

    def __init__(self, inner: GroupLoss, w0: Vector, rows: Any) -> None:
        self.X, self.rows, self.has_tail = inner.X, rows, inner.intercept
        end = inner.X.shape[1]
        tail = float(w0[-1]) if self.has_tail else 0.0
        predictions = np.stack([inner.X[group] @ w0[:end] for group in rows]) + tail
        self.slopes = inner.loss.derivative(predictions, inner.y[rows])

    def _block_means(self, group: int, blocks: int) -> Any:
        """Return the block means of one group's slope·x as sparse rows, the intercept's column included."""
        size = self.rows.shape[1]
        weights = self.slopes[group] / block_sizes(size, blocks)
        average = sparse.csr_array((weights, np.arange(size), block_bounds(size, blocks)), shape=(blocks, size))
        means = average @ self.X[self.rows[group]]
        if self.has_tail:
            means = sparse.hstack([means, sparse.csr_array(average.sum(axis=1)[:, None])], format="csr")
        return means

    def squared_distances(self, blocks: int) -> Array:
        """Return the squared Frobenius distances of the block means, from their Gram matrix."""
        gram = np.zeros((blocks, blocks))
        for group in range(len(self.rows)):
            means = self._block_means(group, blocks)
            gram += (means @ means.T).toarray()
        norms = np.diag(gram)
        return np.maximum(norms[:, None] + norms - 2.0 * gram, 0.0)

    def block(self, index: int, blocks: int) -> Array:
        """Return one block mean, dense, of shape (p, d)."""
        return np.stack(
            [self._block_means(group, blocks)[[index]].toarray()[0] for group in range(len(self.rows))]
        )

    def median_distance(self, z: Array, blocks: int) -> float:
        """Return the median distance of the block means to z."""
        squared = np.zeros(blocks)
        for group, row in enumerate(z):
            means = self._block_means(group, blocks)
            squared += means.multiply(means).sum(axis=1) - 2.0 * (means @ row) + row @ row
        return float(np.median(np.sqrt(np.maximum(squared, 0.0))))
