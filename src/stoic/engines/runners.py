"""How a solver's state goes into its kernel and comes out again, the same type as in the plain engine."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stoic.engines.robust_mscg import ROBUST_KINDS, RobustSteps
from stoic.engines.running import EachOnce, Ran, Rows, Runner
from stoic.engines.tracking_runners import CorrectedRunner, TwoScaleRunner
from stoic.engines.translation import Translated, read_only
from stoic.kernels.civr import civr_steps
from stoic.kernels.mscg import clipped_sgd_steps, mscg_steps
from stoic.kernels.rosc import Reference, RowNumbers, Settings, rosc_steps
from stoic.kernels.rosc_l1 import rosc_l1_steps
from stoic.kernels.rows import CSR
from stoic.means import Mean
from stoic.solvers.alexr import ALEXR
from stoic.solvers.asc_pg import ASCPG
from stoic.solvers.civr import CIVR, CIVRState
from stoic.solvers.clipped_sgd import ClippedSGD
from stoic.solvers.mscg import MSCG, MSCGState
from stoic.solvers.rosc import ROSC, ROSCState
from stoic.solvers.rosc import Reference as PlainReference
from stoic.solvers.scgd import SCGD
from stoic.solvers.scsc import SCSC


class ROSCRunner(EachOnce):
    """ROSC: the reference's own numbers are computed once a stage."""

    def __init__(self, solver: ROSC, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.of: PlainReference | None = None

    def run(self, state: ROSCState, rows: Rows) -> Ran:
        """Take the steps around the stage's reference."""
        solver, problem = self.solver, self.problem
        if state.reference is not self.of:
            self._prepare(state.reference)
        vector = self.vector(state, state.reference.w)
        settings = Settings(float(solver.step_size), problem.l1, problem.l2, float(solver.radius))
        counts = np.zeros(2, dtype=np.int64)
        steps = rosc_l1_steps if problem.l1 > 0.0 else rosc_steps
        taken = steps(
            problem.data,
            problem.outer,
            self.reference,
            self.numbers,
            settings,
            vector.form,
            rows[:, 0],
            self.work,
            counts,
        )
        t = state.t + taken
        after = ROSCState(vector.w(), vector.average(t), t, state.reference)
        return self.ran(after, taken, int(counts[0]), int(counts[1]))

    def _prepare(self, reference: PlainReference) -> None:
        end = self.problem.inner.X.shape[1]
        z = np.ascontiguousarray(reference.z[:, :end])
        tail = reference.z[:, end].copy() if self.problem.data.has_tail else np.zeros(len(z))
        group, column = np.nonzero(z)
        indptr = np.searchsorted(group, np.arange(len(z) + 1)).astype(np.int64)
        rows = CSR(read_only(indptr), read_only(column.astype(np.uint32)), read_only(z[group, column]))
        squared = float(np.vdot(z, z) + tail @ tail)
        levels = tuple(float(level) for level in reference.levels)
        self.reference = Reference(reference.y, read_only(z), rows, tail, squared, z @ reference.w[:end], *levels)
        self.numbers = RowNumbers(*(np.full(self.problem.inner.n_samples, np.nan) for _ in range(3)))
        self.work = np.zeros(end)
        self.of = reference


class MSCGRunner(EachOnce):
    """MSCG with plain or robust means."""

    batches = 2

    def __init__(self, solver: MSCG, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.steps = mscg_steps if type(solver.mean) is Mean else RobustSteps(solver, problem)

    def run(self, state: MSCGState, rows: Rows) -> Ran:
        """Take the steps."""
        vector = self.vector(state)
        step = float(self.solver.step_size)
        taken = self.steps(self.problem.data, self.problem.outer, step, self.problem.l2, vector.form, rows)
        t = state.t + taken
        return self.ran(MSCGState(vector.w(), vector.average(t), t), taken)


class ClippedSGDRunner(EachOnce):
    """Clipped SGD."""

    def __init__(self, solver: ClippedSGD, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.work = np.zeros(problem.inner.X.shape[1])

    def run(self, state: MSCGState, rows: Rows) -> Ran:
        """Take the steps."""
        solver, problem, vector = self.solver, self.problem, self.vector(state)
        counts = np.zeros(2, dtype=np.int64)
        taken = clipped_sgd_steps(
            problem.data,
            problem.outer,
            float(solver.step_size),
            problem.l2,
            float(solver.clip),
            vector.form,
            rows[:, 0],
            self.work,
            counts,
        )
        t = state.t + taken
        return self.ran(MSCGState(vector.w(), vector.average(t), t), taken, 0, int(counts[1]))


class CIVRRunner:
    """CIVR after its anchor; dense, as its mathematics is."""

    batches = 1

    def __init__(self, solver: CIVR, problem: Translated) -> None:
        self.solver, self.problem = solver, problem

    def run(self, state: CIVRState, rows: Rows) -> Ran:
        """Take the steps."""
        problem, step = self.problem, float(self.solver.step_size)
        w, before, y, z = (np.array(part) for part in (state.w, state.previous, state.y, state.z))
        center, weight = problem.anchor
        taken = civr_steps(
            problem.data,
            problem.outer,
            step,
            problem.l1,
            problem.l2,
            weight,
            read_only(np.zeros(w.size) if center is None else center),
            w,
            before,
            y,
            z,
            rows[:, 0],
        )
        return Ran(CIVRState(w, before, state.t + taken, y, z), taken)

    def save(self) -> None:
        """Keep nothing: the state itself is what the kernel works on a copy of."""

    def restore(self, saved: None) -> None:
        """Take back nothing."""

    def evaluations(self, state: CIVRState, n_steps: int) -> int:  # noqa: ARG002
        """Return two evaluations a batch."""
        return 2 * n_steps


_RUNNERS: dict[type, Callable[[Any, Translated], Runner]] = {
    ROSC: ROSCRunner,
    MSCG: MSCGRunner,
    ClippedSGD: ClippedSGDRunner,
    SCGD: TwoScaleRunner,
    ASCPG: TwoScaleRunner,
    SCSC: CorrectedRunner,
    ALEXR: CorrectedRunner,
    CIVR: CIVRRunner,
}


def missing_for(solver: Any, l1: float) -> list[str]:
    """Return what the kernels lack for a solver; nothing if they can run it."""
    if type(solver) not in _RUNNERS:
        return [f"the solver {type(solver).__name__}"]
    if type(solver) is MSCG and type(solver.mean) not in {Mean, *ROBUST_KINDS}:
        return [f"the mean {solver.mean!r} in MSCG"]
    if l1 > 0.0 and type(solver) not in {CIVR, ROSC}:
        return [f"an L1 term with {type(solver).__name__}"]
    return []


def make_runner(solver: Any, problem: Translated) -> Runner:
    """Return the runner of a solver that nothing is missing for."""
    return _RUNNERS[type(solver)](solver, problem)
