"""MSCG's steps with a robust mean, called as those with plain means are."""

import numpy as np

from stoic.engines.translation import Translated, read_only
from stoic.inners.blocks import block_bounds
from stoic.kernels.batches import Data
from stoic.kernels.outers import Outer
from stoic.kernels.robust import GEOMETRIC_MEDIAN, SMALLEST_BALL, Blocks, robust_mscg_steps
from stoic.kernels.robust import Ints as Rows
from stoic.kernels.scaled import Scaled
from stoic.means import GeometricMedianOfMeans, SmallestBall
from stoic.solvers.mscg import MSCG

ROBUST_KINDS: dict[type, int] = {SmallestBall: SMALLEST_BALL, GeometricMedianOfMeans: GEOMETRIC_MEDIAN}


class RobustSteps:
    """The kernel with what it needs to know of a solver whose mean is one of `ROBUST_KINDS`."""

    def __init__(self, solver: MSCG, problem: Translated) -> None:
        m = solver.batch_size
        bounds = block_bounds(m, solver.mean.n_blocks(m)).astype(np.int64)
        self.blocks = Blocks(ROBUST_KINDS[type(solver.mean)], read_only(bounds))
        self.heads = np.full(problem.inner.X.shape[1], -1, dtype=np.int64)

    def __call__(self, data: Data, outer: Outer, step: float, alpha: float, w: Scaled, rows: Rows) -> int:
        """Take a step for each pair of batches in rows (steps, 2, p, m)."""
        return robust_mscg_steps(data, outer, self.blocks, step, alpha, w, rows, self.heads)
