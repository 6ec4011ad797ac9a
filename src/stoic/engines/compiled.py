"""The compiled engine: many steps of a solver in one kernel, with the draws and states of the plain one."""

import math
import time
from typing import Any, cast

import numpy as np
from numpy.random import Generator

from stoic.engines.plain import Chunk, Limits, run_chunk
from stoic.engines.runners import Runner, make_runner, missing_for
from stoic.engines.sparse_reference import sparse_init
from stoic.engines.translation import Translated, missing_parts, translate
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import BudgetSpent, Metered
from stoic.problem import Problem
from stoic.result import Status
from stoic.solvers.base import AnySolver
from stoic.solvers.civr import CIVRState
from stoic.solvers.restarted import Restarted, RestartedState

_MOST_ROWS = 1 << 18  # row numbers drawn at a time


def missing(solver: AnySolver, problem: Problem, meter: Metered) -> list[str]:
    """Return what the kernels lack for this solver on this problem; nothing if the engine can run it."""
    lacking = missing_parts(problem, meter.inner)
    if lacking:
        return lacking
    l1 = translate(problem, cast("GroupLoss", meter.inner)).l1
    stages = solver.stages if isinstance(solver, Restarted) else (solver,)
    return sorted({reason for stage in stages for reason in missing_for(stage, l1)})


class CompiledEngine:
    """Hands chunks of steps to kernels.

    Parameters
    ----------
    problem : Problem
        Its inner part is the meter.
    meter : Metered
        Around a `GroupLoss`.
    """

    def __init__(self, problem: Problem, meter: Metered) -> None:
        self._problem: Translated = translate(problem, cast("GroupLoss", meter.inner))
        self._runner: Runner | None = None
        self._runs: AnySolver | None = None

    def run_chunk(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        """Go on from a chunk boundary to the next one, as `stoic.engines.plain.run_chunk` does."""
        last = chunk.n_steps + limits.steps
        try:
            while chunk.n_steps < last and meter.samples < limits.samples and chunk.ending is None:
                left = limits._replace(steps=last - chunk.n_steps)
                chunk = self._advanced(solver, problem, meter, chunk, rng, left)
        except BudgetSpent:
            if chunk.n_steps == 0:
                raise
            chunk = chunk._replace(ending=Status.BUDGET_SPENT)
        except KeyboardInterrupt:
            chunk = chunk._replace(ending=Status.INTERRUPTED)
        return chunk

    def _advanced(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        if solver.finished(chunk.state):
            return chunk._replace(ending=Status.FINISHED)
        if time.perf_counter() > limits.deadline:
            return chunk._replace(ending=Status.TIME_LIMIT)
        chunk = self._in_a_running_stage(solver, problem, chunk, rng)
        stage, state = _running(solver, chunk.state)
        runner = self._runner_of(stage)
        m = stage.batch_size  # type: ignore[attr-defined]
        n_steps = min(limits.steps, self._room(stage, state, runner, meter, limits.samples, m))
        if n_steps == 0 or (isinstance(state, CIVRState) and state.y is None):
            return run_chunk(solver, problem, meter, chunk, rng, limits._replace(steps=1))  # draws what it can
        return self._ran(solver, problem, meter, chunk, rng, limits._replace(steps=n_steps), runner, m)

    def _in_a_running_stage(self, solver: AnySolver, problem: Problem, chunk: Chunk, rng: Generator) -> Chunk:
        """Start the next stage where the running one has finished."""
        if not isinstance(solver, Restarted) or not solver.stages[chunk.state.stage].finished(chunk.state.inner):
            return chunk
        k = chunk.state.stage + 1
        answer = solver.stages[k - 1].output(chunk.state.inner)
        inner = sparse_init(solver.stages[k], problem, self._problem.inner, answer, rng)
        return chunk._replace(state=RestartedState(k, inner))

    def _runner_of(self, stage: AnySolver) -> Runner:
        if self._runner is None or self._runs is not stage:
            self._runner, self._runs = make_runner(stage, self._problem), stage
        return self._runner

    def _room(self, stage: Any, state: Any, runner: Runner, meter: Metered, until: int, m: int) -> int:
        """Return how many steps fit: into the stage, the budget, the way to the next record, and memory."""
        cost = runner.batches * meter.cost(m)
        wanted = max(1, math.ceil((until - meter.samples) / cost))  # a stage that starts takes one step at least
        return int(min(stage.n_steps - state.t, meter.left // cost, wanted, max(1, _MOST_ROWS // cost)))

    def _ran(
        self,
        solver: AnySolver,
        problem: Problem,
        meter: Metered,
        chunk: Chunk,
        rng: Generator,
        limits: Limits,
        runner: Runner,
        m: int,
    ) -> Chunk:
        _, state = _running(solver, chunk.state)
        before = rng.bit_generator.state
        p = self._problem.inner.n_groups
        rows = self._problem.inner.grouped_rows.at(rng.random((limits.steps, runner.batches, p, m)))
        ran = runner.run(state, rows)
        if ran.n_steps < limits.steps or not np.isfinite(ran.state.w.sum()):
            rng.bit_generator.state = before  # the plain engine finds the step that failed, and how
            return run_chunk(solver, problem, meter, chunk, rng, limits)
        meter.charge(limits.steps * runner.batches * p * m, runner.evaluations(state, limits.steps) * p * m)
        restarted = isinstance(solver, Restarted)
        return Chunk(
            RestartedState(chunk.state.stage, ran.state) if restarted else ran.state,
            chunk.n_steps + ran.n_steps,
            chunk.truncated_y + ran.truncated_y,
            chunk.truncated_z + ran.truncated_z,
            chunk.state.stage if restarted else 0,
        )


def _running(solver: AnySolver, state: Any) -> tuple[AnySolver, Any]:
    if isinstance(solver, Restarted):
        return solver.stages[state.stage], state.inner
    return solver, state
