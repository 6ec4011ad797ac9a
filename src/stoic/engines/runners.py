"""How a solver's state goes into its kernel and comes out again, the same type as in the plain engine."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stoic.engines.forms import Form, ScaledForm, ThresholdedForm
from stoic.engines.robust_mscg import ROBUST_KINDS, RobustSteps
from stoic.engines.translation import Translated, read_only
from stoic.kernels.civr import civr_steps
from stoic.kernels.mscg import clipped_sgd_steps, mscg_steps
from stoic.kernels.rosc import Reference, RowNumbers, Settings, rosc_steps
from stoic.kernels.rosc_l1 import rosc_l1_steps
from stoic.kernels.rows import CSR
from stoic.kernels.tracking import asc_pg_steps, scgd_steps, scsc_steps
from stoic.means import Mean
from stoic.protocols import Vector
from stoic.solvers.alexr import ALEXR
from stoic.solvers.asc_pg import ASCPG
from stoic.solvers.base import PowerLaw
from stoic.solvers.civr import CIVR, CIVRState
from stoic.solvers.clipped_sgd import ClippedSGD
from stoic.solvers.mscg import MSCG, MSCGState
from stoic.solvers.rosc import ROSC, ROSCState
from stoic.solvers.rosc import Reference as PlainReference
from stoic.solvers.scgd import SCGD
from stoic.solvers.scsc import SCSC
from stoic.solvers.tracking import TrackedState

Rows = NDArray[np.int64]


class Ran(NamedTuple):
    """The state after a run, the steps taken, and those in which y and z were truncated."""

    state: Any
    n_steps: int
    truncated_y: int = 0
    truncated_z: int = 0


class Runner(Protocol):
    """Takes the steps of one solver in a kernel."""

    batches: int

    def run(self, state: Any, rows: Rows) -> Ran:
        """Take a step for each of rows (steps, batches, p, m)."""
        ...

    def save(self) -> Any:
        """Return what `restore` needs to take a run back."""
        ...

    def restore(self, saved: Any) -> None:
        """Take back what has been done since `save`."""
        ...

    def evaluations(self, state: Any, n_steps: int) -> int:
        """Return how many batches `n_steps` steps from a state evaluate, counted as the meter counts."""
        ...


class _Scaled:
    """A runner on the scaled form, which lives on from chunk to chunk: boundaries do not change a bit."""

    problem: Translated
    _state: Any = None
    _vector: Form

    def vector(self, state: Any, center: Vector | None = None) -> Form:
        """Return the live form of the state that was returned last; of any other state a new one."""
        if state is not self._state:
            has_tail = self.problem.data.has_tail
            if self.problem.l1 > 0.0 and center is not None:
                self._vector = ThresholdedForm(state, center, has_tail=has_tail)
            else:
                anchor = self.problem.anchor
                center = anchor.center if center is None else center
                self._vector = ScaledForm(state, center, has_tail=has_tail, weight=anchor.weight)
            self.begin(state)
        return self._vector

    def begin(self, state: Any) -> None:
        """Set up what else lives on with the form."""

    def save(self) -> Any:
        """Return what `restore` needs to take a run back."""
        return None if self._state is None else (self._state, self._vector.clone())

    def restore(self, saved: Any) -> None:
        """Take back what has been done since `save`."""
        self._state = None
        if saved is not None:
            self._state, self._vector = saved

    def ran(self, state: Any, n_steps: int, truncated_y: int = 0, truncated_z: int = 0) -> Ran:
        """Return the outcome, and remember its state as the live one."""
        self._state = state
        return Ran(state, n_steps, truncated_y, truncated_z)


class _EachOnce(_Scaled):
    """A runner that evaluates each batch at one point."""

    batches: int = 1

    def evaluations(self, state: Any, n_steps: int) -> int:  # noqa: ARG002
        """Return one evaluation a batch."""
        return self.batches * n_steps


class ROSCRunner(_EachOnce):
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


class MSCGRunner(_EachOnce):
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


class ClippedSGDRunner(_EachOnce):
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


class TwoScaleRunner(_EachOnce):
    """SCGD and ASC-PG: the previous point is not needed."""

    def __init__(self, solver: SCGD | ASCPG, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.batches = solver.batches_per_step
        self.steps = scgd_steps if isinstance(solver, SCGD) else asc_pg_steps

    def run(self, state: TrackedState, rows: Rows) -> Ran:
        """Take the steps."""
        problem, vector = self.problem, self.vector(state)
        steps, weights = (_sequence(law, state.t, len(rows)) for law in (self.solver.steps, self.solver.weights))
        y, batches = state.y.copy(), rows if self.batches == 2 else rows[:, 0]
        taken = self.steps(problem.data, problem.outer, steps, weights, problem.l2, vector.form, y, batches)
        t = state.t + taken
        return self.ran(TrackedState(vector.w(), vector.average(t), t, y, state.previous), taken)


class CorrectedRunner(_Scaled):
    """SCSC and ALEXR: the batch is evaluated at the previous point too."""

    def __init__(self, solver: SCSC | ALEXR, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.batches = 1 if isinstance(solver, SCSC) else 2

    def run(self, state: TrackedState, rows: Rows) -> Ran:
        """Take the steps."""
        problem, vector = self.problem, self.vector(state)
        steps, weights, extrapolation = self._rates(state.t, len(rows))
        last, before, y = self.last, self.before, state.y.copy()
        taken = scsc_steps(
            problem.data,
            problem.outer,
            steps,
            weights,
            extrapolation,
            problem.l2,
            vector.form,
            last,
            before,
            y,
            rows,
        )
        previous = before[0] * (vector.form.u - last) + before[2] * vector.form.c
        if problem.data.has_tail:
            previous = np.append(previous, before[1])
        t = state.t + taken
        return self.ran(TrackedState(vector.w(), vector.average(t), t, y, previous), taken)

    def begin(self, state: TrackedState) -> None:
        """Keep u less its value one step ago, and a, the intercept and b of one step ago."""
        end = self.problem.inner.X.shape[1]
        self.last = state.w[:end] - state.previous[:end]
        self.before = np.array([1.0, state.previous[-1], 0.0 if self.problem.anchor.center is None else 1.0])

    def save(self) -> Any:
        """Return what `restore` needs to take a run back."""
        return None if self._state is None else (super().save(), self.last.copy(), self.before.copy())

    def restore(self, saved: Any) -> None:
        """Take back what has been done since `save`."""
        if saved is None:
            super().restore(None)
        else:
            form, self.last, self.before = saved
            super().restore(form)

    def evaluations(self, state: TrackedState, n_steps: int) -> int:
        """Return one more a step than there are batches; at the start both points are one."""
        return (self.batches + 1) * n_steps - (state.previous is state.w)

    def _rates(self, first: int, n_steps: int) -> tuple[Vector, Vector, float]:
        solver = self.solver
        if isinstance(solver, SCSC):
            return _sequence(solver.steps, first, n_steps), _sequence(solver.weights, first, n_steps), 0.0
        constant = np.full(n_steps, float(solver.step_size)), np.full(n_steps, float(solver.weight))
        return *constant, float(solver.extrapolation)


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


def _sequence(law: PowerLaw, first: int, n_steps: int) -> Vector:
    return np.asarray(law.start * (1.0 + np.arange(first, first + n_steps) / law.delay) ** -law.power)


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
