"""Newton steps of an exact fit, counted and recorded as by `minimize`, on one problem or one after another."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from stoic.engines.engine import Chunk, Limits, Status
from stoic.engines.plain import run_chunk
from stoic.errors import InvalidParameter
from stoic.estimators.convergence import convergence
from stoic.estimators.rows import TrainingRows
from stoic.inners.metered import BudgetSpent, Metered
from stoic.losses import Squared
from stoic.problem import Problem
from stoic.protocols import Array, Vector
from stoic.solve.progress import progress_bar
from stoic.solve.requests import too_small_budget
from stoic.solve.result import Record, Result
from stoic.solvers.newton import Newton
from stoic.solvers.newton_point import RowsPoint
from stoic.solvers.newton_steps import NewtonState
from stoic.solvers.newton_sum import sum_of

if TYPE_CHECKING:
    from stoic.estimators.training import Trainer

_CLOSE = 0.1  # of F: the decrease of a step that is short


@dataclass
class NewtonRun:
    """A run of Newton's method; the problem may change between two steps.

    Parameters
    ----------
    solver : Newton
    budget : int
    callback : function of a record, optional
    """

    solver: Newton
    budget: int
    callback: Callable[[Record], None] | None = None
    chunk: Chunk = field(default_factory=lambda: Chunk(None))
    problem: Problem | None = None
    counted: Any = None
    meter: Any = None
    seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    rng: Generator = field(default_factory=lambda: np.random.default_rng(0))

    def step(self, problem: Problem, w: Vector) -> Vector:
        """Return w after a step, the next one where the problem is that of the last."""
        began = time.perf_counter()
        if problem is not self.problem:
            self._turn_to(problem, w)
        limits = Limits(self.budget + 1, 1, np.inf)
        try:
            self.chunk = run_chunk(self.solver, self.counted, self.meter, self.chunk, self.rng, limits)
        except BudgetSpent as spent:
            raise InvalidParameter(too_small_budget(self.budget, spent.needed, self.solver)) from None
        self.seconds += time.perf_counter() - began
        return self.solver.output(self.chunk.state)

    def _turn_to(self, problem: Problem, w: Vector) -> None:
        """Go on with another problem over the same rows, near the last one: not from fewer rows again."""
        meter: Any = Metered(problem.inner, self.budget)
        counted = problem.with_inner(meter)
        if self.problem is None:
            state: Any = self.solver.init(counted, w, self.rng)
        else:
            meter.charge(self.meter.samples, self.meter.evaluations)
            last, sum_ = self.chunk.state, sum_of(counted, meter.inner.everything())
            point = sum_.at(w) if self.predictions is None else RowsPoint(sum_, w, self.predictions)
            kept = None if last.kept is None else last.kept.moved_to(sum_)
            state = NewtonState(
                w, damping=last.damping, point=point, kept=kept, diagonal=last.diagonal, age=last.age
            )
        self.problem, self.counted, self.meter = problem, counted, meter
        self.chunk = self.chunk._replace(state=state, ending=None)

    def objective(self, problem: Problem, rows: TrainingRows) -> Callable[[Vector], float]:
        """Return the objective on the rows that a history is of; where they are all rows, the steps know it."""
        if rows.for_history is rows:
            return lambda _w: float(self.chunk.state.point.value)
        inner: Any = problem.inner
        return problem.with_inner(rows.for_history.inner(getattr(inner, "loss", Squared()))).objective

    @property
    def predictions(self) -> Array | None:
        """What the model predicts, where the steps know it."""
        point = self.chunk.state.point
        return None if point is None else point.t

    @property
    def is_over(self) -> bool:
        """Whether the user, the budget, the steps or infinite numbers have ended it."""
        is_ended = self.chunk.ending not in {None, Status.FINISHED}
        return is_ended or self.chunk.n_steps >= self.solver.n_steps

    @property
    def is_done(self) -> bool:
        """Whether another step on the same problem would change nothing."""
        return self.problem is not None and self.solver.finished(self.chunk.state)

    @property
    def is_close(self) -> bool:
        """Whether the last step was short: the next would be far shorter."""
        state: Any = self.chunk.state
        return self.is_done or bool(state.promised <= _CLOSE * state.first)

    def record(self, w: Vector, observers: Mapping[str, Callable[[Vector], float]]) -> None:
        """Add a record after a step that has drawn something, and let the callback end the run."""
        counts = {"samples": self.meter.samples, "evaluations": self.meter.evaluations, "seconds": self.seconds}
        is_old = bool(self.history) and counts["evaluations"] == self.history[-1]["evaluations"]
        if is_old or self.chunk.ending is Status.INTERRUPTED:
            return
        record = {**counts, "stage": 0, "truncated_y": 0.0, "truncated_z": 0.0}
        try:
            record |= {name: float(observe(w)) for name, observe in observers.items()}
            self.history.append(record)
            if self.callback is not None:
                self.callback(record)
        except StopIteration:
            self.chunk = self.chunk._replace(ending=Status.STOPPED)
        except KeyboardInterrupt:
            self.chunk = self.chunk._replace(ending=Status.INTERRUPTED)

    def go_on(self, solver: Newton) -> None:
        """Go on nearer to the optimum than the last solver would."""
        self.solver = solver
        self.chunk = self.chunk._replace(state=self.chunk.state._replace(is_done=False), ending=None)

    def result(self, w: Vector) -> Result:
        """Return the result."""
        status = self.chunk.ending
        if status in {None, Status.FINISHED}:
            is_reached = self.is_done and not self.solver.fell_short(self.chunk.state)
            status = Status.FINISHED if is_reached else Status.STEPS_SPENT
        message = f"{status.value} {self.chunk.n_steps} steps, {self.meter.samples} of {self.budget} samples."
        counts = self.meter.samples, self.meter.evaluations, self.seconds, self.chunk.n_steps
        return Result(w, status, message, *counts, 0.0, 0.0, self.history, self.solver)


def exact_solve(trainer: "Trainer", problem: Problem, w: Vector, start: Vector, *, is_last: bool) -> Result:
    """Return the minimum by Newton steps from w on, as near as is asked for, beside the objective at the start."""
    loss, tol = getattr(problem.inner, "loss", trainer.loss_at(1.0)), trainer.watch.tol
    options = trainer.watch.options(loss, is_last=is_last)
    run = NewtonRun(trainer.exact_solver, trainer.exact_budget, options["callback"])
    observers = {"objective": run.objective(problem, trainer.rows), **options["observers"]}
    with progress_bar(run.budget, visible=trainer.watch.verbose) as show:
        while not run.is_over:
            w = run.step(problem, w)
            show(run.meter.samples, f"step {run.chunk.n_steps}")
            run.record(w, observers)
            if run.is_done:
                if trainer.to_the_last_digit or run.solver.gap is None:
                    break
                reached = convergence(problem, w, start, tol)
                run.history[-1] = {**run.history[-1], "duality_gap": reached.gap}
                if reached.is_reached:
                    break
                run.go_on(replace(run.solver, gap=None))
    return run.result(w)
