"""The compiled engine: many steps of a solver in one kernel, with the draws and states of the plain one."""

import math
import time
from typing import Any, cast

import numpy as np
from numpy.random import Generator

from stoic.engines.compiled.adapters import make_adapter
from stoic.engines.compiled.adapters.base import Adapter, Live, Rows
from stoic.engines.compiled.nested import advanced, begun, innermost, with_innermost
from stoic.engines.compiled.problem import anchor_of, translate
from stoic.engines.engine import Chunk, Limits, Status
from stoic.engines.plain import run_chunk
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import BudgetSpent, Metered
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver
from stoic.solvers.civr import CIVRState
from stoic.solvers.composite import Composite, Running

_MOST_ROWS = 1 << 15  # row numbers drawn at a time


class CompiledEngine:
    """Hands chunks of steps to kernels.

    The vectors of the running solver stay in a form that its kernel works on; `settled` gives them as a state.

    Parameters
    ----------
    problem : Problem
        Its inner part is the meter.
    meter : Metered
        Around a `GroupLoss`.
    """

    def __init__(self, problem: Problem, meter: Metered) -> None:
        self._given, self._problem = problem, translate(problem, cast("GroupLoss", meter.inner))
        self._adapter: Adapter | None = None
        self._counts: Rows = np.zeros(3, dtype=np.int64)  # of steps that are not yet in a chunk
        self._settled: Any = None  # the state of the vectors that the adapter owns, where it is known
        self._reached: Chunk = Chunk(None)  # where Ctrl-C ends the run, but for the steps not yet in a chunk

    def init(self, solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
        """Return the state before the first step; the reference of ROSC from sparse rows where X is sparse."""
        return begun(solver, problem, w0, rng)

    def settled(self, solver: AnySolver, chunk: Chunk) -> Chunk:
        """Return the chunk with a state of the solver's own type, from which any engine can go on."""
        inner = innermost(solver, self._given, chunk.state)
        if not isinstance(inner.state, Live):
            return chunk
        if self._settled is None:
            self._settled = cast("Adapter", self._adapter).state(inner.state.t)
        return chunk._replace(state=with_innermost(solver, self._given, chunk.state, self._settled))

    def run_chunk(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        """Go on from a chunk boundary to the next one, as `stoic.engines.plain.run_chunk` does.

        The state may be one that only this engine can go on from: see `settled`.
        """
        last, self._reached = chunk.n_steps + limits.steps, chunk
        try:
            with np.errstate(all="ignore"):
                while chunk.n_steps < last and meter.samples < limits.samples and chunk.ending is None:
                    left = limits._replace(steps=last - chunk.n_steps)
                    chunk = self._reached = self._advanced(solver, problem, meter, chunk, rng, left)
        except BudgetSpent:
            if chunk.n_steps == 0:
                raise
            chunk = chunk._replace(ending=Status.BUDGET_SPENT)
        except KeyboardInterrupt:
            chunk = self._reached
            if self._counts[0] > 0:  # the kernel had returned
                chunk = self._counted(solver, meter, chunk)
            chunk = chunk._replace(ending=Status.INTERRUPTED)
        return chunk

    def _advanced(
        self, solver: AnySolver, problem: Problem, meter: Metered, chunk: Chunk, rng: Generator, limits: Limits
    ) -> Chunk:
        if solver.finished(chunk.state):
            return chunk._replace(ending=Status.FINISHED)
        if time.perf_counter() > limits.deadline:
            return chunk._replace(ending=Status.TIME_LIMIT)
        inner = innermost(solver, problem, chunk.state)
        if inner.solver.finished(inner.state):
            chunk = self.settled(solver, chunk)
            chunk = self._reached = chunk._replace(state=advanced(solver, problem, chunk.state, rng))
        chunk = self._in_hand(solver, chunk)
        inner = innermost(solver, problem, chunk.state)
        m = inner.solver.batch_size  # type: ignore[attr-defined]
        n_steps = min(limits.steps, self._room(inner, meter, limits.samples, m))
        if n_steps > 0 and isinstance(inner.state, Live):
            chunk, left = self._ran(solver, meter, chunk, rng, n_steps)
            if not left:
                return chunk
        # Draws that are not paid for, CIVR's anchor, and a step whose numbers are too large for kernels.
        return run_chunk(solver, problem, meter, self.settled(solver, chunk), rng, limits._replace(steps=1))

    def _in_hand(self, solver: AnySolver, chunk: Chunk) -> Chunk:
        """Return the chunk with a live state, an adapter in charge of it."""
        inner, problem, state = innermost(solver, self._given, chunk.state)
        if isinstance(state, Live) or (isinstance(state, CIVRState) and state.y is None):
            return chunk
        if state is not self._settled:
            adapter = make_adapter(inner, self._problem._replace(anchor=anchor_of(problem.regularizer)))
            adapter.begin(state)
            self._adapter, self._settled = adapter, state
        return chunk._replace(state=with_innermost(solver, self._given, chunk.state, Live(state.t)))

    def _room(self, inner: Running, meter: Metered, until: int, m: int) -> int:
        """Return how many steps fit: into the stage, the budget, the way to the next record, and memory."""
        adapter = self._adapter
        cost = meter.cost(m) if adapter is None else adapter.batches * adapter.n_groups * m
        wanted = max(1, math.ceil((until - meter.samples) / cost))  # a stage that starts takes one step at least
        planned: int = inner.solver.n_steps  # type: ignore[attr-defined]
        most = _MOST_ROWS // cost if adapter is None else min(_MOST_ROWS // cost, adapter.room(inner.state.t))
        return int(min(planned - inner.state.t, meter.left // cost, wanted, max(1, most)))

    def _ran(
        self, solver: AnySolver, meter: Metered, chunk: Chunk, rng: Generator, n_steps: int
    ) -> tuple[Chunk, int]:
        """Return the chunk after some steps in the kernel, and how many it left; draws are those of the others."""
        adapter, source = cast("Adapter", self._adapter), self._problem.inner.grouped_rows
        inner = innermost(solver, self._given, chunk.state)
        t, p = inner.state.t, self._problem.inner.n_groups
        mark = source.mark(rng)
        rows = adapter.draw(t, n_steps, rng)
        self._counts[:], state, self._settled = 0, self._settled, None
        adapter.run(t, rows, self._counts)
        taken = int(self._counts[0])
        if taken == 0:
            self._settled = state
        if taken < n_steps:
            source.rewind(mark, rng)
            adapter.draw(t, taken, rng)
        m = inner.solver.batch_size  # type: ignore[attr-defined]
        drawn = getattr(rows, "rows", rows)[:taken]
        for batch in drawn.reshape(-1, p, m) if adapter.n_groups == p else ():
            if not meter.is_keeping:
                break
            meter.keep(RowBatch(batch.copy()), m)
        return self._counted(solver, meter, chunk), n_steps - taken

    def _counted(self, solver: AnySolver, meter: Metered, chunk: Chunk) -> Chunk:
        """Return the chunk with the steps of the kernel in it, and count what they have drawn and evaluated."""
        adapter, inner = cast("Adapter", self._adapter), innermost(solver, self._given, chunk.state)
        taken, truncated_y, truncated_z = (int(count) for count in self._counts)
        if taken == 0:
            return chunk
        rows, t = adapter.n_groups * inner.solver.batch_size, inner.state.t  # type: ignore[attr-defined]
        reached = Chunk(
            with_innermost(solver, self._given, chunk.state, Live(t + taken)),
            chunk.n_steps + taken,
            chunk.watched + taken * adapter.watched,
            chunk.truncated_y + truncated_y,
            chunk.truncated_z + truncated_z,
            chunk.state.stage if isinstance(solver, Composite) else 0,
        )
        meter.charge(taken * adapter.batches * rows, adapter.evaluations(t, taken) * rows)
        self._reached, self._counts[:] = reached, 0  # the last act: Ctrl-C before it has the steps counted anew
        return reached
