"""Base of solvers whose y is a moving estimate of g, with step sizes and weights of their own."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self

from numpy.random import Generator

from stoic.checks import Count
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector
from stoic.solvers.base import AUTO, UNBOUNDED, PowerLaw, Steps, Stepwise, Weights, either, planned, running_mean
from stoic.solvers.group_sampling import Chances


class TrackedState(NamedTuple):
    """The iterate w_t, the average of w_1 … w_t, t, the moving estimate y of g, and w_{t−1} where it is needed.

    And where only some groups are drawn, their chances.
    """

    w: Vector
    average: Vector
    t: int
    y: Vector
    previous: Vector
    chances: Chances | None = None

    def moved(self, w: Vector, y: Vector) -> "TrackedState":
        """Return the state one step on."""
        t = self.t + 1
        return TrackedState(w, running_mean(self.average, w, t), t, y, self.previous, self.chances)


class Tracking(Stepwise):
    """A solver whose y is a moving estimate of g, started at the mean of a first batch."""

    batch_size: Count
    answer: str = "average"
    batches_per_step: ClassVar[int] = 1

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the first batch and of all steps."""
        return (1 + self.batches_per_step * self.n_steps) * inner.cost(self.batch_size)

    def output(self, state: TrackedState) -> Vector:
        """Return the average of w_1 … w_t, or w_t itself, by the output rule."""
        return state.w if self.answer == "last" else state.average

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> TrackedState:
        """Start y at the mean of a first batch."""
        y = problem.inner.value(w0, problem.inner.draw(self.batch_size, rng))[0]
        return TrackedState(w0, w0, 0, y, w0)


class StepRule(NamedTuple):
    """Step sizes, and the answer that goes with them."""

    steps: PowerLaw
    answer: str
    is_strongly_convex: bool


def decaying_steps(pilot: Pilot, batch_size: int, n_steps: int, *, convex_power: float) -> StepRule:
    """Return steps ~ 2/(μk) with the last iterate where the steps outnumber κ, else k^−power with the average.

    Both start at 1/(2L) and bend after 2/(μη) steps, so that they follow the scale of the problem.
    """
    start = pilot.step_size(batch_size)
    delay = 2.0 / (pilot.mu * start)
    if delay <= n_steps / 5.0:
        return StepRule(PowerLaw(start, 1.0, delay), "last", True)
    return StepRule(PowerLaw(start, convex_power, max(1.0, n_steps / 5.0)), "average", False)


@dataclass(frozen=True)
class TwoScale(Tracking):
    """Step sizes a_k for w, weights b_k for y, and an output rule, all chosen together."""

    steps: Steps = AUTO
    weights: Weights = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    answer: Literal["average", "last"] = AUTO

    convex_power: ClassVar[float] = 0.5

    def tuned(self, pilot: Pilot) -> Self:
        """Take the rule that the condition number allows."""
        m = either(self.batch_size, pilot.batch_size(per_step=self.batches_per_step))
        n_steps = planned(self.n_steps, pilot.n_steps(m, per_step=self.batches_per_step))
        chosen = decaying_steps(pilot, m, n_steps, convex_power=self.convex_power)
        return replace(
            self,
            steps=either(self.steps, chosen.steps),
            weights=either(self.weights, self.weights_for(chosen)),
            batch_size=m,
            n_steps=n_steps,
            answer=either(self.answer, chosen.answer),
        )

    def weights_for(self, chosen: StepRule) -> PowerLaw:
        """Return the weights that go with chosen step sizes."""
        return PowerLaw(0.5, chosen.steps.power, chosen.steps.delay)
