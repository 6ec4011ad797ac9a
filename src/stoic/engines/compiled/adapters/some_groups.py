"""ALEXR and SOX in their kernel where a step draws some of the groups."""

from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.engines.compiled.adapters.base import Rows, VectorAdapter
from stoic.engines.compiled.previous import before, previous_of
from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.parts.batches import Scratch
from stoic.engines.kernels.parts.outers import outer_gradient
from stoic.engines.kernels.parts.running_weights import N_SCALARS, Terms, begin_terms
from stoic.engines.kernels.steps.some_groups import Choices, GroupRates, some_groups_steps
from stoic.protocols import Vector
from stoic.solvers.base import UNBOUNDED
from stoic.solvers.group_sampling import (
    Chances,
    chances_from,
    choose,
    is_refresh,
    refresh_period,
    shares,
    until_refresh,
)
from stoic.solvers.group_tracking import GroupTracking
from stoic.solvers.two_scale import TrackedState


class ChoosingAdapter(VectorAdapter):
    """Groups are chosen here, as the plain steps choose them, from chances that are renewed between runs.

    Without chances each step draws all groups.
    """

    y: Vector
    chances: Chances | None

    def __init__(self, solver: GroupTracking, problem: Translated) -> None:
        self.solver, self.problem = solver, problem
        self.k = solver.n_drawn(problem.inner)
        self.period = refresh_period(problem.inner.n_groups, self.k)

    @property
    def n_groups(self) -> int:
        """The number k of groups in a batch."""
        return self.k

    def begin(self, state: Any) -> None:
        """Take over from a state."""
        self.form, self.y, self.chances = self.formed(state), state.y.copy(), state.chances
        k, m, p = self.k, self.solver.batch_size, self.problem.inner.n_groups
        self.renewed_at = -1
        self.terms = Terms(np.zeros(p), np.zeros(N_SCALARS), np.empty(p))
        self.scratch = Scratch(*(np.empty(k) for _ in range(3)), *(np.empty((k, m)) for _ in range(2)))
        begin_terms(self.problem.outer, self.y, self.terms)

    def room(self, t: int) -> int:
        """Return the steps up to the next one at which chances are renewed."""
        return UNBOUNDED if self.chances is None else until_refresh(t, self.period)

    def draw(self, t: int, n_steps: int, rng: Generator) -> Choices:
        """Return the choices of as many plain steps, at most up to where chances are renewed."""
        b, k, m, source = self.batches, self.k, self.solver.batch_size, self.problem.inner.grouped_rows
        if self.chances is None:
            groups = np.broadcast_to(np.arange(k), (n_steps, k))
            return Choices(groups.copy(), np.ones((n_steps, k)), source.batches((n_steps, b, k, m), rng), np.inf)
        chances = self._chances_at(t)
        uniforms = rng.random((n_steps, k + b * k * m))
        groups = choose(chances, uniforms[:, :k])
        of_each = np.broadcast_to(groups[:, None], (n_steps, b, k))
        rows = source.at(uniforms[:, k:].reshape(n_steps, b, k, m), of_each)
        return Choices(groups, shares(chances, groups), rows, chances.most / k)

    def _chances_at(self, t: int) -> Chances:
        """Return the chances from step t on, computed anew where the plain step does."""
        if is_refresh(t, self.period) and t != self.renewed_at:  # draws that are taken back are not made anew
            q = np.empty(len(self.y))
            outer_gradient(self.problem.outer, self.y, q)
            self.chances, self.renewed_at = chances_from(q, self.solver.importance), t
        return self.chances  # type: ignore[return-value]

    def refresh_terms(self, t: int) -> None:
        """Compute the terms of ∇f anew, at fixed steps."""
        if is_refresh(t, self.period):
            begin_terms(self.problem.outer, self.y, self.terms)


class SomeGroupsAdapter(ChoosingAdapter):
    """ALEXR and SOX of some groups."""

    batches = 2

    def begin(self, state: TrackedState) -> None:
        """Take over from a state."""
        super().begin(state)
        self.starts_at, self.start = (state.t if state.previous is state.w else -1), state.previous
        self.before = before(self.form, self.problem, state.previous, (self.k, self.solver.batch_size))

    def run(self, t: int, rows: Choices, counts: Rows) -> None:
        """Take the steps."""
        problem, solver = self.problem, self.solver
        self.refresh_terms(t)
        rates = GroupRates(*(float(rate) for rate in (solver.step_size, solver.weight, solver.extrapolation)))
        some_groups_steps(
            problem.data,
            problem.outer,
            problem.penalty,
            rates,
            self.form.vector,
            self.before,
            self.y,
            self.terms,
            rows,
            self.scratch,
            counts,
        )

    def state(self, t: int) -> TrackedState:
        """Return the state at step t."""
        w, start = self.form.w(), self.start
        if self.solver.extrapolation != 0.0:
            start = w if t == self.starts_at else previous_of(self.form, self.before)
        return TrackedState(w, self.form.average(t), t, self.y.copy(), start, self.chances)

    def evaluations(self, t: int, n_steps: int) -> int:
        """Return the batches, and the first of each step once more at the previous point where that is needed."""
        if self.solver.extrapolation == 0.0:
            return 2 * n_steps
        return 3 * n_steps - (t == self.starts_at)
