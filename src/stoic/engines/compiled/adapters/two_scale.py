"""SCGD, ASC-PG, SCSC and ALEXR in kernels: y moves along with w."""

from typing import Any

import numpy as np

from stoic.engines.compiled.adapters.base import Rows, VectorAdapter
from stoic.engines.compiled.adapters.some_groups import SomeGroupsAdapter
from stoic.engines.compiled.previous import before, previous_of
from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.steps.two_scale import Rates, asc_pg_steps, scgd_steps, scsc_steps
from stoic.protocols import Vector
from stoic.solvers.asc_pg import ASCPG
from stoic.solvers.base import PowerLaw
from stoic.solvers.group_tracking import Extrapolating
from stoic.solvers.scgd import SCGD
from stoic.solvers.scsc import SCSC
from stoic.solvers.two_scale import TrackedState


class TwoScaleAdapter(VectorAdapter):
    """SCGD and ASC-PG: the previous point is not needed."""

    def __init__(self, solver: SCGD | ASCPG, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.batches = solver.batches_per_step
        self.steps = scgd_steps if isinstance(solver, SCGD) else asc_pg_steps

    def begin(self, state: TrackedState) -> None:
        """Take over from a state."""
        super().begin(state)
        self.y, self.previous = state.y.copy(), state.previous

    def run(self, t: int, rows: Rows, counts: Rows) -> None:
        """Take the steps."""
        problem, solver = self.problem, self.solver
        rates = Rates(*(sequence(law, t, len(rows)) for law in (solver.steps, solver.weights)))
        batches = rows if self.batches == 2 else rows[:, 0]
        parts = problem.data, problem.outer, problem.penalty
        self.steps(*parts, rates, self.form.vector, self.y, batches, self.scratch, counts)

    def state(self, t: int) -> TrackedState:
        """Return the state at step t."""
        return TrackedState(self.form.w(), self.form.average(t), t, self.y.copy(), self.previous)


class CorrectedAdapter(VectorAdapter):
    """SCSC, and ALEXR and SOX of all groups: the batch is evaluated at the previous point too."""

    def __init__(self, solver: SCSC | Extrapolating, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.batches = 1 if isinstance(solver, SCSC) else 2

    def begin(self, state: TrackedState) -> None:
        """Take over from a state."""
        super().begin(state)
        self.y, self.starts_at = state.y.copy(), state.t if state.previous is state.w else -1
        self.before = before(self.form, self.problem, state.previous, (self.n_groups, self.solver.batch_size))

    def run(self, t: int, rows: Rows, counts: Rows) -> None:
        """Take the steps."""
        problem = self.problem
        rates, extrapolation = self._rates(t, len(rows))
        scsc_steps(
            problem.data,
            problem.outer,
            problem.penalty,
            rates,
            extrapolation,
            self.form.vector,
            self.before,
            self.y,
            rows,
            self.scratch,
            counts,
        )

    def state(self, t: int) -> TrackedState:
        """Return the state at step t."""
        w = self.form.w()
        previous = w if t == self.starts_at else previous_of(self.form, self.before)
        return TrackedState(w, self.form.average(t), t, self.y.copy(), previous)

    def evaluations(self, t: int, n_steps: int) -> int:
        """Return one more a step than there are batches, unless there is no extrapolation.

        At the start both points are one.
        """
        if getattr(self.solver, "extrapolation", 1.0) == 0.0:
            return self.batches * n_steps
        return (self.batches + 1) * n_steps - (t == self.starts_at)

    def _rates(self, first: int, n_steps: int) -> tuple[Rates, float]:
        solver = self.solver
        if isinstance(solver, SCSC):
            laws = sequence(solver.steps, first, n_steps), sequence(solver.weights, first, n_steps)
            return Rates(*laws), 0.0
        constant = np.full(n_steps, float(solver.step_size)), np.full(n_steps, float(solver.weight))
        return Rates(*constant), float(solver.extrapolation)


def sequence(law: PowerLaw, first: int, n_steps: int) -> Vector:
    """Return the terms of some steps, from the first one on."""
    return np.asarray(law.start * (1.0 + np.arange(first, first + n_steps) / law.delay) ** -law.power)


def adapter(solver: Any, problem: Translated) -> TwoScaleAdapter | CorrectedAdapter | SomeGroupsAdapter:
    """Return the adapter of a solver of this family."""
    if isinstance(solver, Extrapolating) and solver.n_drawn(problem.inner) < problem.inner.n_groups:
        return SomeGroupsAdapter(solver, problem)
    return (CorrectedAdapter if isinstance(solver, SCSC | Extrapolating) else TwoScaleAdapter)(solver, problem)
