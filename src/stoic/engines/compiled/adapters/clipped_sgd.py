"""Clipped SGD in its kernel."""

import numpy as np

from stoic.engines.compiled.adapters.base import Rows, VectorAdapter
from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.steps.mscg import clipped_sgd_steps
from stoic.solvers.clipped_sgd import ClippedSGD
from stoic.solvers.mscg import MSCGState


class ClippedSGDAdapter(VectorAdapter):
    """Clipped SGD."""

    watched = 1

    def __init__(self, solver: ClippedSGD, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.work = np.zeros(problem.inner.X.shape[1])

    def run(self, t: int, rows: Rows, counts: Rows) -> None:  # noqa: ARG002
        """Take the steps."""
        solver, problem = self.solver, self.problem
        clipped_sgd_steps(
            problem.data,
            problem.outer,
            problem.penalty,
            float(solver.step_size),
            float(solver.clip),
            self.form.vector,
            rows[:, 0],
            self.work,
            self.scratch,
            counts,
        )

    def state(self, t: int) -> MSCGState:
        """Return the state at step t."""
        return MSCGState(self.form.w(), self.form.average(t), t)


adapter = ClippedSGDAdapter
