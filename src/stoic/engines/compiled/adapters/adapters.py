"""How a solver's state goes into its kernel and comes out again, the same type as in the plain engine."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from stoic.engines.compiled.adapters.base import FormRunner, Rows, Runner
from stoic.engines.compiled.adapters.robust_mscg import ROBUST_KINDS, RobustSteps
from stoic.engines.compiled.adapters.two_scale import CorrectedRunner, TwoScaleRunner
from stoic.engines.compiled.problem import Translated
from stoic.engines.compiled.vectors import Form
from stoic.engines.kernels.rows import read_only
from stoic.engines.kernels.steps.civr import Pull, civr_steps
from stoic.engines.kernels.steps.mscg import clipped_sgd_steps, mscg_steps
from stoic.engines.kernels.steps.rosc import Reference, RowNumbers, Settings, rosc_steps
from stoic.means import Mean
from stoic.protocols import Array
from stoic.solvers.alexr import ALEXR
from stoic.solvers.asc_pg import ASCPG
from stoic.solvers.civr import CIVR, CIVRState
from stoic.solvers.clipped_sgd import ClippedSGD
from stoic.solvers.mscg import MSCG, MSCGState
from stoic.solvers.prox_boost import ProxBoosted
from stoic.solvers.rosc import ROSC, ROSCState
from stoic.solvers.scgd import SCGD
from stoic.solvers.scsc import SCSC
from stoic.solvers.tracked_rosc import TrackedROSC


class ROSCRunner(FormRunner):
    """ROSC: the reference's own numbers are computed once a stage, the norms of rows once."""

    def __init__(self, solver: ROSC, problem: Translated) -> None:
        self.solver, self.problem, self.watched = solver, problem, solver.parts

    def begin(self, state: ROSCState) -> None:
        """Take over from a state, and prepare its reference."""
        self.of, self.y = state.reference, state.y.copy()
        end = self.problem.inner.X.shape[1]
        z = self.problem.inward(self.of.z)
        self.Z = read_only(np.ascontiguousarray(z[:, :end].T))
        super().begin(state)
        columns = np.flatnonzero(self.Z.any(axis=1)) if self.form.packs else np.zeros(0, dtype=np.int64)
        tail = z[:, end].copy() if self.form.has_tail else np.zeros(len(z))
        norm, levels = float(np.linalg.norm(z)), tuple(float(level) for level in self.of.levels)
        packed = self.Z[columns], tail
        self.reference = Reference(self.of.y, self.Z, columns.astype(np.uint32), *packed, norm, *levels)
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
        settings = Settings(float(solver.step_size), float(solver.radius), weight, is_tracked, by_sample)
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


class MSCGRunner(FormRunner):
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


class ClippedSGDRunner(FormRunner):
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


class CIVRRunner:
    """CIVR after its anchor; dense, as its mathematics is."""

    batches = 1
    watched = 0

    def __init__(self, solver: CIVR, problem: Translated) -> None:
        self.solver, self.problem = solver, problem

    def begin(self, state: CIVRState) -> None:
        """Take over from a state."""
        inward = self.problem.inward
        z = inward(cast("Array", state.z))  # its first step is the plain engine's
        self.arrays = inward(state.w), inward(state.previous), state.y, z

    def run(self, t: int, rows: Rows, counts: Rows) -> None:  # noqa: ARG002
        """Take the steps, on copies: those before one that fails are taken again."""
        arrays, taken = self._stepped(rows)
        if taken < len(rows):
            arrays, taken = self._stepped(rows[:taken])
        self.arrays = arrays
        counts[0] += taken

    def _stepped(self, rows: Rows) -> tuple[Any, int]:
        problem, (center, weight) = self.problem, self.problem.anchor
        w, before, y, z = (np.array(part) for part in self.arrays)
        pull = Pull(weight, read_only(np.zeros(w.size) if center is None else problem.inward(center)))
        step, q = float(self.solver.step_size), np.empty(len(y))
        parts = problem.data, problem.outer, problem.penalty, pull
        taken = civr_steps(*parts, step, w, before, y, z, rows[:, 0], q)
        return (w, before, y, z), taken

    def state(self, t: int) -> CIVRState:
        """Return the state at step t."""
        (w, before, y, z), outward = self.arrays, self.problem.outward
        return CIVRState(outward(w), outward(before), t, y, outward(z))

    def evaluations(self, t: int, n_steps: int) -> int:  # noqa: ARG002
        """Return two evaluations a batch."""
        return 2 * n_steps


_RUNNERS: dict[type, Callable[[Any, Translated], Runner]] = {
    ROSC: ROSCRunner,
    TrackedROSC: ROSCRunner,
    MSCG: MSCGRunner,
    ClippedSGD: ClippedSGDRunner,
    SCGD: TwoScaleRunner,
    ASCPG: TwoScaleRunner,
    SCSC: CorrectedRunner,
    ALEXR: CorrectedRunner,
    CIVR: CIVRRunner,
}


def missing_for(solver: Any) -> list[str]:
    """Return what the kernels lack for a solver; nothing if they can run it."""
    if type(solver) is ProxBoosted:
        return ["a proxBoost in proxBoost"]
    if type(solver) not in _RUNNERS:
        return [f"the solver {type(solver).__name__}"]
    if type(solver) is MSCG and type(solver.mean) not in {Mean, *ROBUST_KINDS}:
        return [f"the mean {solver.mean!r} in MSCG"]
    return []


def make_runner(solver: Any, problem: Translated) -> Runner:
    """Return the runner of a solver that nothing is missing for."""
    return _RUNNERS[type(solver)](solver, problem)
