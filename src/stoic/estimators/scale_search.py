r"""The average fit and the scale of its residuals, found together by Newton's method.

The loss has the scale s of the residuals of the fit, :math:`s = h(\hat w(s))`, a fixed point. A Newton step at s
leads next to :math:`\hat w(s)` soon, so the scale follows after each: by a secant through the last two pairs
(s, h), which is the fixed point's own Newton step where h is smooth. The search ends where a step changes neither.
"""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stoic.engines.engine import Chunk, Limits, Status
from stoic.engines.plain import run_chunk
from stoic.errors import InvalidParameter
from stoic.inners.metered import BudgetSpent, Metered
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.messages import too_small_budget
from stoic.solve.progress import progress_bar
from stoic.solve.result import Record, Result
from stoic.solvers.newton import Newton

if TYPE_CHECKING:
    from stoic.estimators.training import Trainer

_MOST_ROUNDS, SETTLED = 40, 1e-8  # changes of the scale; the last one, as a part of it
_CLOSE = 1e-3  # of F: the decrease of a step that is short
_STEEPEST = 0.5  # slope of h that a secant is trusted with


@dataclass
class Secant:
    """Steps to a fixed point s = h(s).

    Examples
    --------
    >>> secant, s = Secant(), 1.0
    >>> for _ in range(3):
    ...     s = secant.after(s, 1.0 + 0.1 * s)
    >>> round(s, 12)
    1.111111111111
    """

    before: tuple[float, float] | None = None

    def after(self, s: float, found: float) -> float:
        """Return the next s, given h(s)."""
        before, self.before = self.before, (s, found)
        if before is None or s == before[0] or abs(found - s) > abs(before[1] - before[0]):
            return found
        slope = (found - before[1]) / (s - before[0])
        step = (found - s) / (1.0 - min(max(slope, -_STEEPEST), _STEEPEST))
        return max(s + step, 0.5 * min(s, found))


@dataclass
class NewtonRun:
    """Newton steps on one problem after another, counted and recorded together as `minimize` does for one."""

    solver: Newton
    budget: int
    options: dict[str, Any]
    chunk: Chunk = field(default_factory=lambda: Chunk(None))
    problem: Problem | None = None
    samples: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    rng: Any = field(default_factory=lambda: np.random.default_rng(0))

    def step(self, problem: Problem, w: Vector, on_sample: Problem) -> Vector:
        """Return w after a step, the next one where the problem is that of the last."""
        began = time.perf_counter()
        meter: Any = Metered(problem.inner, self.budget)
        meter.charge(self.samples, self.evaluations)
        counted = problem.with_inner(meter)
        if problem is not self.problem:
            self.problem, self.chunk = problem, self.chunk._replace(state=self.solver.init(counted, w, self.rng))
        limits = Limits(self.budget + 1, 1, np.inf)
        try:
            self.chunk = run_chunk(self.solver, counted, meter, self.chunk, self.rng, limits)
        except BudgetSpent as spent:
            raise InvalidParameter(too_small_budget(self.budget, spent.needed, self.solver)) from None
        is_new, self.samples, self.evaluations = meter.samples > self.samples, meter.samples, meter.evaluations
        self.seconds += time.perf_counter() - began
        w = self.solver.output(self.chunk.state)
        if is_new and self.chunk.ending is not Status.INTERRUPTED:
            self._record(w, on_sample)
        return w

    @property
    def is_over(self) -> bool:
        """Whether the user, the budget, the steps or infinite numbers have ended it."""
        is_ended = self.chunk.ending not in {None, Status.FINISHED}
        return is_ended or self.chunk.n_steps >= self.solver.n_steps

    @property
    def is_done(self) -> bool:
        """Whether another step on the same problem would change nothing."""
        return self.solver.finished(self.chunk.state)

    @property
    def is_close(self) -> bool:
        """Whether the last step was short: the next would be far shorter."""
        state: Any = self.chunk.state
        return self.is_done or bool(state.promised <= _CLOSE * state.first)

    def _record(self, w: Vector, on_sample: Problem) -> None:
        counts = {"samples": self.samples, "evaluations": self.evaluations, "seconds": self.seconds}
        record = {**counts, "stage": 0, "truncated_y": 0.0, "truncated_z": 0.0, "objective": on_sample.objective(w)}
        self.history.append(record)
        try:
            if self.options["callback"] is not None:
                self.options["callback"](record)
        except StopIteration:
            self.chunk = self.chunk._replace(ending=Status.STOPPED)
        except KeyboardInterrupt:
            self.chunk = self.chunk._replace(ending=Status.INTERRUPTED)

    def result(self, w: Vector) -> Result:
        """Return the result."""
        status = self.chunk.ending
        if status in {None, Status.FINISHED}:
            has_ended = self.is_done and not self.solver.fell_short(self.chunk.state)
            status = Status.FINISHED if has_ended else Status.STEPS_SPENT
        message = f"{status.value} {self.chunk.n_steps} steps, {self.samples} of {self.budget} samples."
        counts = self.samples, self.evaluations, self.seconds, self.chunk.n_steps
        return Result(w, status, message, *counts, 0.0, 0.0, self.history, self.solver)


def exact_average(
    trainer: "Trainer", w: Vector, shares: Vector, budget: int
) -> tuple[Vector, float, Result]:
    """Return the average fit from w on, the scale of its residuals, and the solve."""
    solver = trainer.method if isinstance(trainer.method, Newton) else Newton()
    run = NewtonRun(solver, budget, trainer.watch.options(trainer.loss_at(1.0), is_last=False))
    with progress_bar(budget, visible=trainer.watch.verbose) as show:
        scale, secant, rounds, start = 1.0, Secant(), 0, w
        rows, problem = trainer.rows.within_reach(w, trainer.loss_at(scale)), None
        while True:
            if problem is None:
                loss = trainer.loss_at(scale)
                problem = Problem(rows.inner(loss), Linear(shares), trainer.regularizer)
                on_sample = problem.with_inner(rows.for_history.inner(loss))
            w = run.step(problem, w, on_sample)
            show(run.samples, "scale")
            found = trainer.scale_of(w) if trainer.has_scale else scale
            if run.is_over:
                break
            if abs(found - scale) > trainer.scale_tol * scale and rounds < _MOST_ROUNDS:
                if not run.is_close:
                    continue
                scale, rounds, problem = secant.after(scale, found), rounds + 1, None
            elif run.is_done or trainer.is_near(problem, w, start):
                if not trainer.reaches(rows, w):
                    break
                rows, problem = trainer.rows.within_reach(w, loss), None
    return w, scale if rounds == _MOST_ROUNDS else found, run.result(w)
