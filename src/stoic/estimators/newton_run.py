"""Newton steps of an exact fit, counted and recorded as `minimize` does, on one problem or on one after another."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from stoic.certificate.duality import duality_gap
from stoic.engines.engine import Chunk, Limits, Status
from stoic.engines.plain import run_chunk
from stoic.errors import InvalidParameter
from stoic.inners.metered import BudgetSpent, Metered
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.messages import too_small_budget
from stoic.solve.progress import progress_bar
from stoic.solve.result import Record, Result
from stoic.solvers.newton import Newton

if TYPE_CHECKING:
    from stoic.estimators.training import Trainer

_CLOSE = 1e-3  # of F: the decrease of a step that is short


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
    samples: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    history: list[Record] = field(default_factory=list)
    rng: Generator = field(default_factory=lambda: np.random.default_rng(0))

    def step(self, problem: Problem, w: Vector) -> Vector:
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
        self.samples, self.evaluations = meter.samples, meter.evaluations
        self.seconds += time.perf_counter() - began
        return self.solver.output(self.chunk.state)

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
        if self.chunk.ending is Status.INTERRUPTED or (self.history and self.samples == self.history[-1]["samples"]):
            return
        counts = {"samples": self.samples, "evaluations": self.evaluations, "seconds": self.seconds}
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

    def result(self, w: Vector, *, is_reached: bool = False) -> Result:
        """Return the result; what was asked for may be reached before the optimum is."""
        status = self.chunk.ending
        if status in {None, Status.FINISHED}:
            is_reached = is_reached or (self.is_done and not self.solver.fell_short(self.chunk.state))
            status = Status.FINISHED if is_reached else Status.STEPS_SPENT
        message = f"{status.value} {self.chunk.n_steps} steps, {self.samples} of {self.budget} samples."
        counts = self.samples, self.evaluations, self.seconds, self.chunk.n_steps
        return Result(w, status, message, *counts, 0.0, 0.0, self.history, self.solver)


def exact_solve(
    trainer: "Trainer", problem: Problem, w: Vector, *, solver: Newton, goal: float | None, is_last: bool
) -> Result:
    """Return the minimum by Newton steps from w on; with a goal, the first point with such a duality gap."""
    loss = getattr(problem.inner, "loss", trainer.loss_at(1.0))
    options = trainer.watch.options(loss, is_last=is_last)
    run = NewtonRun(solver, trainer.exact_budget, options["callback"])
    observers = {"objective": problem.with_inner(trainer.rows.for_history.inner(loss)).objective}
    if goal is not None:
        observers["duality_gap"] = partial(duality_gap, problem)
    is_reached = False
    with progress_bar(run.budget, visible=trainer.watch.verbose) as show:
        while not (run.is_over or run.is_done or is_reached):
            w = run.step(problem, w)
            show(run.samples, f"step {run.chunk.n_steps}")
            run.record(w, {**observers, **options["observers"]})
            is_reached = goal is not None and run.history[-1].get("duality_gap", np.inf) <= goal
    return run.result(w, is_reached=is_reached)
