"""ROSC and TrackedROSC in their kernel."""

import numpy as np

from stoic.engines.compiled.adapters.base import Rows, VectorAdapter
from stoic.engines.compiled.problem import Translated
from stoic.engines.compiled.vectors import Form
from stoic.engines.kernels.rows import read_only
from stoic.engines.kernels.steps.rosc import ReferenceArrays, RowNumbers, StepSettings, rosc_steps
from stoic.solvers.rosc import ROSC, ROSCState
from stoic.solvers.tracked_rosc import TrackedROSC


class ROSCAdapter(VectorAdapter):
    """ROSC: the reference's own numbers are computed once a stage, the norms of rows once."""

    def __init__(self, solver: ROSC, problem: Translated) -> None:
        self.solver, self.problem, self.watched = solver, problem, solver.parts

    def begin(self, state: ROSCState) -> None:
        """Take over from a state, and prepare its reference."""
        self.of, self.y = state.reference, state.y.copy()
        end = self.problem.inner.X.shape[1]
        z = self.of.z
        self.Z = read_only(np.ascontiguousarray(z[:, :end].T))
        super().begin(state)
        columns = np.flatnonzero(self.Z.any(axis=1)) if self.form.packs else np.zeros(0, dtype=np.int64)
        tail = z[:, end].copy() if self.form.has_tail else np.zeros(len(z))
        norm, levels = float(np.linalg.norm(z)), tuple(float(level) for level in self.of.levels)
        packed = self.Z[columns], tail
        self.reference = ReferenceArrays(self.of.y, self.Z, columns.astype(np.uint32), *packed, norm, *levels)
        unknown = np.full(self.problem.inner.n_samples, np.nan)
        self.numbers = RowNumbers(self.problem.norms, unknown, np.zeros(end))

    def formed(self, state: ROSCState) -> Form:
        """Return the form of a state around w₀, which may hold z̃₀."""
        return Form(self.problem, state, state.reference.w, self.Z)

    def run(self, t: int, rows: Rows, counts: Rows) -> None:  # noqa: ARG002
        """Take the steps around the stage's reference."""
        solver, problem = self.solver, self.problem
        is_tracked = isinstance(solver, TrackedROSC)
        weight, by_sample = float(solver.weight) if is_tracked else 1.0, solver.truncates == "samples"
        settings = StepSettings(float(solver.step_size), float(solver.radius), weight, is_tracked, by_sample)
        rosc_steps(
            problem.data,
            problem.outer,
            problem.penalty,
            self.reference,
            self.numbers,
            settings,
            self.form.vector,
            self.y,
            rows[:, 0],
            self.scratch,
            counts,
        )

    def state(self, t: int) -> ROSCState:
        """Return the state at step t."""
        return ROSCState(self.form.w(), self.form.average(t), t, self.y.copy(), self.of)


adapter = ROSCAdapter
