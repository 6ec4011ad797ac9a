"""Base of solvers that draw some groups a step and keep their estimate of g by group."""

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from stoic.errors import IncompatibleParts
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector, draws_groups
from stoic.solvers.base import AUTO, Info, either, planned
from stoic.solvers.group_sampling import (
    bounded,
    chances_from,
    choose,
    default_groups,
    follow,
    groups_drawn,
    is_refresh,
    refresh_period,
    shares,
)
from stoic.solvers.two_scale import TrackedState, Tracking


class GroupTracking(Tracking):
    """A solver that draws some groups a step, and whose y is kept by group."""

    groups_per_step: int
    importance: float
    step_size: float
    batches_per_step: ClassVar[int] = 2

    @property
    def needs_pilot(self) -> bool:
        """Whether a setting is still to be chosen, but for the number of groups, which follows from p."""
        return any(getattr(self, name) is AUTO for name in ("step_size", "batch_size"))

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` if some groups are to be drawn where only all of them can be."""
        p = problem.inner.shape[0]
        if self.groups_per_step is not AUTO and self.groups_per_step < p and not draws_groups(problem.inner):
            raise IncompatibleParts(
                f"groups_per_step={self.groups_per_step} needs an inner part that draws some of its {p} outputs "
                f"without the others, and {problem.inner!r} does not; leave groups_per_step out, or use GroupLoss "
                f"or GroupSoftmax (docs/add_a_part.md)."
            )

    def n_drawn(self, inner: AnyInner) -> int:
        """Return how many groups a step draws."""
        return groups_drawn(inner, None if self.groups_per_step is AUTO else self.groups_per_step)

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the first batch, which is of all groups, and of all steps."""
        m, k = self.batch_size, self.n_drawn(inner)
        if k == inner.shape[0]:
            return super().planned_samples(inner)
        some: Any = inner
        return inner.cost(m) + self.batches_per_step * self.n_steps * int(some.cost(m, np.arange(k)))

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> TrackedState:
        """Start y at the mean of a first batch of all groups."""
        state = super().init(problem, w0, rng)
        if self.n_drawn(problem.inner) == problem.inner.shape[0]:
            return state
        return state._replace(chances=chances_from(problem.outer.gradient(state.y), self.importance))


class Extrapolating(GroupTracking):
    """ALEXR and SOX: y moves with one batch, w with another."""

    weight: float
    extrapolation: Any

    def tuned(self, pilot: Pilot) -> Self:
        """Take the step for averages, for the noise of the groups that a step draws."""
        p = pilot.n_groups
        k = min(either(self.groups_per_step, default_groups(p)), p)
        if k == p:
            m = either(self.batch_size, pilot.batch_size(per_step=2))
            n_steps = planned(self.n_steps, pilot.n_steps(m, per_step=2))
        else:
            m = either(self.batch_size, 1)
            n_steps = planned(self.n_steps, max(1, (pilot.budget - pilot.cost * m) // (2 * k * m)))
            pilot = pilot.of_groups(k)
        return replace(  # type: ignore[type-var]
            self,
            step_size=either(self.step_size, pilot.averaging_step(m, n_steps)),
            batch_size=m,
            n_steps=n_steps,
            groups_per_step=k if self.groups_per_step is AUTO and p > 1 else self.groups_per_step,
        )

    def step(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        """Move y with one batch, w with another."""
        if state.chances is not None:
            return self._step_of_some(problem, state, rng)
        inner, w = problem.inner, state.w
        batch = inner.draw(self.batch_size, rng)
        y = (1.0 - self.weight) * state.y + self.weight * self._ahead(inner, state, batch)
        v = inner.vjp(w, inner.draw(self.batch_size, rng), problem.outer.gradient(y))
        w = problem.regularizer.prox(w - self.step_size * v, self.step_size)
        return state.moved(w, y)._replace(previous=state.w), Info()

    def _step_of_some(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        inner: Any = problem.inner
        w, k, m = state.w, self.n_drawn(inner), self.batch_size
        chances: Any = state.chances
        if is_refresh(state.t, refresh_period(len(state.y), k)):
            chances = chances_from(problem.outer.gradient(state.y), self.importance)
        groups = choose(chances, rng.random(k))
        y = follow(state.y, groups, self._ahead(inner, state, inner.draw(m, rng, groups)), self.weight)
        q = bounded(problem.outer.gradient(y).take(groups) * shares(chances, groups), chances)
        v = inner.vjp(w, inner.draw(m, rng, groups), q)
        w = problem.regularizer.prox(w - self.step_size * v, self.step_size)
        previous = state.previous if self.extrapolation == 0.0 else state.w
        return state.moved(w, y)._replace(previous=previous, chances=chances), Info()

    def _ahead(self, inner: AnyInner, state: TrackedState, batch: Any) -> Vector:
        """Return the values that y is to move to: those at w_t, extrapolated from w_{t−1}."""
        here: Vector = inner.value(state.w, batch)[0]
        if self.extrapolation == 0.0:
            return here
        there: Vector = inner.value(state.previous, batch)[0]
        return here + float(self.extrapolation) * (here - there)
