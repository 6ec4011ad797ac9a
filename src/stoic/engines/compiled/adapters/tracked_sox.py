"""TrackedSOX in its kernel."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from stoic.engines.compiled.adapters.base import Rows
from stoic.engines.compiled.adapters.some_groups import ChoosingAdapter
from stoic.engines.compiled.adapters.two_scale import sequence
from stoic.engines.compiled.problem import Translated
from stoic.engines.compiled.vectors import Form
from stoic.engines.kernels.steps.some_groups import Choices
from stoic.engines.kernels.steps.tracked_sox import Truncation, tracked_sox_steps
from stoic.engines.kernels.steps.two_scale import Rates
from stoic.protocols import Vector
from stoic.solvers.tracked_sox import TrackedSOX, TrackedSOXState


class TrackedSOXAdapter(ChoosingAdapter):
    """The form of w begins anew with each block of the average, and gives the mean of the block."""

    batches = 1

    def __init__(self, solver: TrackedSOX, problem: Translated) -> None:
        super().__init__(solver, problem)
        self.watched, self.limits = self.k * solver.batch_size, solver.limits(problem.inner)
        self.work = np.zeros(problem.inner.X.shape[1])

    def begin(self, state: TrackedSOXState) -> None:
        """Take over from a state."""
        super().begin(state)
        self.before, self.since = state.average, state.t
        self.scales = np.array([state.scale_y, state.scale_z])

    def formed(self, state: Any) -> Form:
        """Return the form of w, with nothing in its average."""
        return Form(self.problem, SimpleNamespace(w=state.w, average=state.w, t=0))

    def room(self, t: int) -> int:
        """Return the steps up to where chances are renewed or a block of the average ends."""
        block: int = self.solver.block
        return min(super().room(t), block - t % block)

    def run(self, t: int, rows: Choices, counts: Rows) -> None:
        """Take the steps."""
        problem, solver = self.problem, self.solver
        self.refresh_terms(t)
        if t % solver.block == 0 and t > self.since:
            self.before, self.since, self.form = self._average(t), t, self.formed(SimpleNamespace(w=self.form.w()))
        n_steps = len(rows.groups)
        weights = sequence(solver.weights, t, n_steps)
        tracked_sox_steps(
            problem.data,
            problem.outer,
            problem.penalty,
            Rates(np.full(n_steps, float(solver.step_size)), weights),
            Truncation(*self.limits, self.scales, problem.norms, self.work),
            self.form.vector,
            self.y,
            self.terms,
            rows,
            self.scratch,
            counts,
        )

    def _average(self, t: int) -> Vector:
        """Return the average at step t: that at the start of the block, and the mean of the block."""
        n, solver, average = t - self.since, self.solver, self.before
        if n == 0 or self.since == 0:
            return self.form.average(n) if n else average
        new = n * solver.weight_of(t)
        share = new / (solver.total_weight(self.since) + new)
        mean: Vector = average + share * (self.form.average(n) - average)
        return mean

    def state(self, t: int) -> TrackedSOXState:
        """Return the state at step t."""
        scales = (float(scale) for scale in self.scales)
        return TrackedSOXState(self.form.w(), self._average(t), t, self.y.copy(), self.chances, *scales)


adapter = TrackedSOXAdapter
