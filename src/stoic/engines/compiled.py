"""The compiled engine: many steps of a solver in one kernel, with the draws and states of the plain one."""

import math
import time
from typing import Any, cast

import numpy as np
from numpy.random import Generator

from stoic.engines.boosted import Innermost, Part, begun, innermost, outer_stage, parts, started, with_innermost
from stoic.engines.plain import Chunk, Limits, run_chunk
from stoic.engines.runners import make_runner, missing_for
from stoic.engines.running import Ran, Runner
from stoic.engines.translation import Translated, missing_parts, translate
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import BudgetSpent, Metered
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.result import Status
from stoic.solvers.base import AnySolver
from stoic.solvers.civr import CIVR, CIVRState
from stoic.solvers.prox_boost import ProxBoosted
from stoic.solvers.rosc import ROSC

_MOST_ROWS = 1 << 18  # row numbers drawn at a time


def missing(solver: AnySolver, problem: Problem, meter: Metered) -> list[str]:
    """Return what the kernels lack for this solver on this problem; nothing if the engine can run it."""
    lacking = missing_parts(problem, meter.inner)
    if lacking:
        return lacking
    l1 = translate(problem, cast("GroupLoss", meter.inner)).l1
    return sorted({reason for part in parts(solver) for reason in _missing_for_part(part, l1)})


def _missing_for_part(part: Part, l1: float) -> list[str]:
    if isinstance(part.solver, ProxBoosted):
        return ["a proxBoost in proxBoost"]
    lacking = missing_for(part.solver, l1)
    if lacking or not part.is_anchored:
        return lacking
    if type(part.solver) is ROSC and not part.starts_there:
        return ["a restarted ROSC in proxBoost"]
    if type(part.solver) is not CIVR and l1 > 0.0:
        return [f"an L1 term with {type(part.solver).__name__} in proxBoost"]
    return []


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
        self._runs: tuple[AnySolver | None, Vector | None] = None, None

    def init(self, solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
        """Return the state before the first step; the reference of ROSC from sparse rows where X is sparse."""
        return begun(solver, problem, self._problem.inner, w0, rng)

    def run_chunk(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        """Go on from a chunk boundary to the next one, as `stoic.engines.plain.run_chunk` does."""
        last = chunk.n_steps + limits.steps
        try:
            with np.errstate(all="ignore"):
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
        state = started(solver, problem, self._problem.inner, chunk.state, rng)
        chunk = chunk._replace(state=state)
        inner = innermost(solver, state)
        runner = self._runner_of(inner)
        m = inner.solver.batch_size  # type: ignore[attr-defined]
        n_steps = min(limits.steps, self._room(inner, runner, meter, limits.samples, m))
        if n_steps == 0 or (isinstance(inner.state, CIVRState) and inner.state.y is None):
            return run_chunk(solver, problem, meter, chunk, rng, limits._replace(steps=1))  # draws what it can
        return self._ran(solver, problem, meter, chunk, rng, limits._replace(steps=n_steps), runner, inner)

    def _runner_of(self, inner: Innermost) -> Runner:
        runs = inner.solver, inner.anchor.center
        if self._runner is None or any(new is not old for new, old in zip(runs, self._runs, strict=True)):
            self._runner, self._runs = make_runner(inner.solver, self._problem.anchored(inner.anchor)), runs
        return self._runner

    def _room(self, inner: Innermost, runner: Runner, meter: Metered, until: int, m: int) -> int:
        """Return how many steps fit: into the stage, the budget, the way to the next record, and memory."""
        cost = runner.batches * meter.cost(m)
        wanted = max(1, math.ceil((until - meter.samples) / cost))  # a stage that starts takes one step at least
        planned: int = inner.solver.n_steps  # type: ignore[attr-defined]
        return int(min(planned - inner.state.t, meter.left // cost, wanted, max(1, _MOST_ROWS // cost)))

    def _ran(
        self,
        solver: AnySolver,
        problem: Problem,
        meter: Metered,
        chunk: Chunk,
        rng: Generator,
        limits: Limits,
        runner: Runner,
        inner: Innermost,
    ) -> Chunk:
        before, saved = rng.bit_generator.state, runner.save()
        ran = runner.run(inner.state, self._rows(rng, runner, inner, limits.steps))
        if ran.n_steps == limits.steps and np.isfinite(ran.state.w.sum()):
            return self._counted(meter, chunk, runner, inner, ran)
        # One step failed: take those before it again, and let the plain engine find out how.
        runner.restore(saved)
        rng.bit_generator.state = before
        if 0 < ran.n_steps < limits.steps:
            ran = runner.run(inner.state, self._rows(rng, runner, inner, ran.n_steps))
            chunk = self._counted(meter, chunk, runner, inner, ran)
            limits = limits._replace(steps=limits.steps - ran.n_steps)
        return run_chunk(solver, problem, meter, chunk, rng, limits)

    def _rows(self, rng: Generator, runner: Runner, inner: Innermost, n_steps: int) -> Any:
        """Draw the rows of some steps, those that as many calls of `draw` would give."""
        m: int = inner.solver.batch_size  # type: ignore[attr-defined]
        uniforms = rng.random((n_steps, runner.batches, self._problem.inner.n_groups, m))
        return self._problem.inner.grouped_rows.at(uniforms)

    def _counted(self, meter: Metered, chunk: Chunk, runner: Runner, inner: Innermost, ran: Ran) -> Chunk:
        """Return the chunk after a run, and count what it has drawn and evaluated."""
        rows = meter.cost(inner.solver.batch_size)  # type: ignore[attr-defined]
        meter.charge(ran.n_steps * runner.batches * rows, runner.evaluations(inner.state, ran.n_steps) * rows)
        return Chunk(
            with_innermost(chunk.state, ran.state),
            chunk.n_steps + ran.n_steps,
            chunk.truncated_y + ran.truncated_y,
            chunk.truncated_z + ran.truncated_z,
            outer_stage(chunk.state),
        )
