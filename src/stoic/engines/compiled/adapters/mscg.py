"""MSCG with plain or robust means in its kernels."""

from typing import Any

import numpy as np

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.compiled.adapters.base import Rows, VectorAdapter
from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.parts.batches import Data, Scratch
from stoic.engines.kernels.rows import read_only
from stoic.engines.kernels.steps.mscg import mscg_steps
from stoic.engines.kernels.steps.robust_mscg import GEOMETRIC_MEDIAN, SMALLEST_BALL, Blocks, robust_mscg_steps
from stoic.inners.blocks import block_bounds
from stoic.means import Mean, SmallestBall
from stoic.solvers.mscg import MSCG, MSCGState


class MSCGAdapter(VectorAdapter):
    """MSCG with plain or robust means."""

    batches = 2

    def __init__(self, solver: MSCG, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.steps = mscg_steps if type(solver.mean) is Mean else RobustSteps(solver, problem)

    def run(self, t: int, rows: Rows, counts: Rows) -> None:  # noqa: ARG002
        """Take the steps."""
        problem, step = self.problem, float(self.solver.step_size)
        vector, scratch = self.form.vector, self.scratch
        self.steps(problem.data, problem.outer, problem.penalty, step, vector, rows, scratch, counts)

    def state(self, t: int) -> MSCGState:
        """Return the state at step t."""
        return MSCGState(self.form.w(), self.form.average(t), t)


class RobustSteps:
    """The kernel for robust means, called as the one for plain means is."""

    def __init__(self, solver: MSCG, problem: Translated) -> None:
        m = solver.batch_size
        bounds = block_bounds(m, solver.mean.n_blocks(m)).astype(np.int64)
        kind = SMALLEST_BALL if isinstance(solver.mean, SmallestBall) else GEOMETRIC_MEDIAN
        self.blocks = Blocks(kind, read_only(bounds))
        self.heads = np.full(problem.inner.X.shape[1], -1, dtype=np.int64)

    def __call__(
        self,
        data: Data,
        outer: OuterCode,
        penalty: PenaltyCode,
        step: float,
        w: Any,
        rows: Rows,
        _scratch: Scratch,
        counts: Rows,
    ) -> None:
        """Take a step for each pair of batches in rows (steps, 2, p, m)."""
        robust_mscg_steps(data, outer, penalty, self.blocks, step, w, rows, self.heads, counts)


adapter = MSCGAdapter
