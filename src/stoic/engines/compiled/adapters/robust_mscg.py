"""MSCG's steps with a robust mean, called as those with plain means are."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.parts.batches import Data, Penalty, Scratch
from stoic.engines.kernels.parts.outers import Outer
from stoic.engines.kernels.rows import read_only
from stoic.engines.kernels.steps.coordinatewise import Middle, coordinatewise_mscg_steps
from stoic.engines.kernels.steps.robust_mscg import (
    GEOMETRIC_MEDIAN,
    SMALLEST_BALL,
    Blocks,
    Ints as Rows,
    robust_mscg_steps,
)
from stoic.inners.blocks import block_bounds
from stoic.means import GeometricMedianOfMeans, MedianOfMeans, SmallestBall, TrimmedMean
from stoic.solvers.mscg import MSCG


def _median(_mean: MedianOfMeans, bounds: Rows) -> Middle:
    k = len(bounds) - 1
    return Middle((k - 1) // 2, k // 2 + 1, bounds)


def _trimmed(mean: TrimmedMean, bounds: Rows) -> Middle:
    k = len(bounds) - 1
    return Middle(mean.cut(k), k - mean.cut(k), bounds)


ROBUST_KINDS: dict[type, Callable[[Any, Rows], Blocks | Middle]] = {
    SmallestBall: lambda _mean, bounds: Blocks(SMALLEST_BALL, bounds),
    GeometricMedianOfMeans: lambda _mean, bounds: Blocks(GEOMETRIC_MEDIAN, bounds),
    MedianOfMeans: _median,
    TrimmedMean: _trimmed,
}


class RobustSteps:
    """The kernel with what it needs to know of a solver whose mean is one of `ROBUST_KINDS`."""

    def __init__(self, solver: MSCG, problem: Translated) -> None:
        m = solver.batch_size
        bounds = block_bounds(m, solver.mean.n_blocks(m)).astype(np.int64)
        self.blocks = ROBUST_KINDS[type(solver.mean)](solver.mean, read_only(bounds))
        self.heads = np.full(problem.inner.X.shape[1], -1, dtype=np.int64)

    def __call__(
        self,
        data: Data,
        outer: Outer,
        penalty: Penalty,
        step: float,
        w: Any,
        rows: Rows,
        _scratch: Scratch,
        counts: Rows,
    ) -> None:
        """Take a step for each pair of batches in rows (steps, 2, p, m)."""
        if isinstance(self.blocks, Middle):
            coordinatewise_mscg_steps(data, outer, penalty, self.blocks, step, w, rows, self.heads, counts)
        else:
            robust_mscg_steps(data, outer, penalty, self.blocks, step, w, rows, self.heads, counts)
