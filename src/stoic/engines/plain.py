"""The plain engine: the readable definition of a run, one `solver.step` after another."""

import math
import time
from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.engines.engine import Chunk, Limits, Status
from stoic.inners.metered import BudgetSpent, Metered
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver


def run_chunk(
    solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
) -> Chunk:
    """Run the steps from a chunk boundary to the next one.

    Raises
    ------
    BudgetSpent
        If the budget does not allow even the first step of the run.
    """
    last = chunk.n_steps + limits.steps
    try:
        with np.errstate(all="ignore"):
            while chunk.n_steps < last and meter.samples < limits.samples and chunk.ending is None:
                chunk = _one_step(solver, problem, chunk, rng, limits.deadline)
    except BudgetSpent:
        if chunk.n_steps == 0:
            raise
        chunk = chunk._replace(ending=Status.BUDGET_SPENT)
    except KeyboardInterrupt:
        chunk = chunk._replace(ending=Status.INTERRUPTED)
    return chunk


def _one_step(solver: AnySolver, problem: Problem, chunk: Chunk, rng: Generator, deadline: float) -> Chunk:
    """Return the run one step later, or with the reason why it ends."""
    if solver.finished(chunk.state):
        return chunk._replace(ending=Status.FINISHED)
    if time.perf_counter() > deadline:
        return chunk._replace(ending=Status.TIME_LIMIT)
    state, info = solver.step(problem, chunk.state, rng)
    if not math.isfinite(float(solver.output(state).sum())):
        return chunk._replace(ending=Status.DIVERGED)
    return Chunk(
        state,
        chunk.n_steps + 1,
        chunk.watched + info.watched,
        chunk.truncated_y + info.truncated_y,
        chunk.truncated_z + info.truncated_z,
        info.stage,
    )


class PlainEngine:
    """The plain engine as an object, for `minimize`."""

    def init(self, solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
        """Return the state before the first step."""
        return solver.init(problem, w0, rng)

    def run_chunk(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        """Run the steps from a chunk boundary to the next one."""
        return run_chunk(solver, problem, meter, chunk, rng, limits)

    def settled(self, solver: AnySolver, chunk: Chunk) -> Chunk:  # noqa: ARG002
        """Return the chunk, whose state is always the solver's own."""
        return chunk
