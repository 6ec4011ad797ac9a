"""The restart combinator: run stages one after another, each from the answer of the one before."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from stoic.checks import check_real
from stoic.errors import InvalidParameter
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import UNBOUNDED, AnySolver, Weight, check_method
from stoic.solvers.composite import Begin, Composite, Running


class RestartedState(NamedTuple):
    """The number of the stage that is running, its own state, the answer of the stage before, and recent answers.

    These are kept with their weights, where the answer is an average over stages.
    """

    stage: int
    inner: Any
    before: Vector | None = None
    recent: tuple[tuple[float, Vector], ...] = ()


@dataclass(frozen=True)
class Restarted(Composite):
    r"""Run solvers one after another: stage k starts at the answer of stage k − 1 (Algorithms 3 and 4).

    RMSCG is ``Restarted`` of `MSCG` stages whose batches double; RROSC is ``Restarted`` of `ROSC` stages with
    the plan of Theorem 3; RCIVR repeats `CIVR`. Any sequence of solvers with a number of steps of their own
    will do. One stage alone is that stage, bit for bit. A stage cut short by the budget gives its partial
    answer; in its first tenth, in which that is an average of few points, the answer is that of the stage before.

    With a `window` the answer is an average over stages, at any time: of the last ones, as many as have that share
    of all samples of steps so far, each in proportion to its samples. Each stage still starts at the answer of the
    one before.

    Parameters
    ----------
    stages : sequence of Solver
        In the order in which they run.
    window : float, default 0.0
        A share; 0 for the answer of one stage alone.

    Examples
    --------
    >>> import stoic
    >>> stages = [stoic.MSCG(step_size=0.1, batch_size=2**k, n_steps=50) for k in range(4)]
    >>> len(stoic.Restarted(stages).stages)
    4
    """

    stages: tuple[AnySolver, ...]
    window: Weight = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            raise InvalidParameter("stages is empty; give at least one solver.")
        for k, stage in enumerate(self.stages):
            check_method(f"stages[{k}]", stage)
        check_real("window", self.window, low=0.0, high=1.0)

    @property
    def needs_pilot(self) -> bool:
        """Whether a stage has a setting that is still to be chosen."""
        return any(stage.needs_pilot for stage in self.stages)

    def tuned(self, pilot: Pilot) -> "Restarted":
        """Let each stage choose its settings from an equal share of the budget."""
        share = pilot.within(pilot.budget // len(self.stages))
        return replace(self, stages=tuple(stage.tuned(share) for stage in self.stages))

    def check(self, problem: Problem) -> None:
        """Check every stage."""
        for stage in self.stages:
            stage.check(problem)

    def solvers(self) -> Iterator[tuple[AnySolver, bool]]:
        """Walk through the stages."""
        yield from ((stage, False) for stage in self.stages)

    def running(self, problem: Problem, state: RestartedState) -> Running:
        """Return the running stage."""
        return Running(self.stages[state.stage], problem, state.inner)

    def started(self, problem: Problem, w0: Vector, rng: Generator, begin: Begin) -> RestartedState:
        """Start the first stage."""
        return RestartedState(0, begin(self.stages[0], problem, w0, rng))

    def advanced(self, problem: Problem, state: RestartedState, rng: Generator, begin: Begin) -> RestartedState:
        """Start the next stage at the answer of the one before."""
        before, k = self.stages[state.stage].output(state.inner), state.stage + 1
        recent = self._recent(state) if self.window > 0.0 else ()
        return RestartedState(
            k, begin(self.stages[k], problem, before, rng), before, recent
        )  # Alg. 3 and 4: w_k = stage(w_{k−1})

    def finished(self, state: RestartedState) -> bool:
        """Whether the last stage has finished."""
        return state.stage == len(self.stages) - 1 and self.stages[-1].finished(state.inner)

    def output(self, state: RestartedState) -> Vector:
        """Return the average over stages; or the running one's answer, at its beginning that before."""
        running = self.stages[state.stage]
        if self.window > 0.0 and state.recent:
            recent = self._recent(state)
            total = sum(weight for weight, _ in recent)
            answer = np.zeros_like(recent[0][1])
            for weight, one in recent:
                answer += (weight / total) * one
            return answer
        if state.before is not None and _has_just_begun(running, state.inner):
            return state.before
        return running.output(state.inner)

    def _recent(self, state: RestartedState) -> tuple[tuple[float, Vector], ...]:
        """Return the last answers that make up the window, that of the running stage the last of them."""
        running = self.stages[state.stage]
        size = float(state.inner.t * getattr(running, "batch_size", 1))
        answers = (*state.recent, (size, running.output(state.inner)))
        needed = self.window * (size + self._before(state.stage))
        first = len(answers) - 1
        while first > 0 and sum(weight for weight, _ in answers[first:]) < needed:
            first -= 1
        return answers[first:]

    def _before(self, stage: int) -> float:
        """Return the samples of the steps of all stages before one."""
        return float(
            sum(getattr(one, "n_steps", 0) * getattr(one, "batch_size", 1) for one in self.stages[:stage])
        )


def _has_just_begun(solver: AnySolver, state: Any) -> bool:
    n_steps = getattr(solver, "n_steps", UNBOUNDED)
    return bool(n_steps < UNBOUNDED and 10 * state.t < n_steps)
