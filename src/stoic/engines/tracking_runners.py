"""SCGD, ASC-PG, SCSC and ALEXR in kernels: y moves along with w."""

from typing import Any

import numpy as np

from stoic.engines.running import EachOnce, Ran, Rows, ScaledRunner
from stoic.engines.translation import Translated
from stoic.kernels.tracking import asc_pg_steps, scgd_steps, scsc_steps
from stoic.protocols import Vector
from stoic.solvers.alexr import ALEXR
from stoic.solvers.asc_pg import ASCPG
from stoic.solvers.base import PowerLaw
from stoic.solvers.scgd import SCGD
from stoic.solvers.scsc import SCSC
from stoic.solvers.tracking import TrackedState


class TwoScaleRunner(EachOnce):
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


class CorrectedRunner(ScaledRunner):
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


def _sequence(law: PowerLaw, first: int, n_steps: int) -> Vector:
    return np.asarray(law.start * (1.0 + np.arange(first, first + n_steps) / law.delay) ** -law.power)
