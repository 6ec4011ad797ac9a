"""A run: one loop that counts samples, observes, and stops."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

import numpy as np
from numpy.random import Generator

from stoic.certificate.certifying import certify_answer
from stoic.engines.choice import check_engine, choose_engine
from stoic.engines.engine import Chunk, Limits, Status
from stoic.engines.plain import PlainEngine
from stoic.guards import is_foreign
from stoic.inners.metered import Metered
from stoic.pilot import Metric, PilotRows, draw_pilot, find_start, measure_pilot, pilot_cost, pilot_size
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.gap import gap_record
from stoic.solve.hindsight import Hindsight, Outlook, split_draws
from stoic.solve.messages import (
    STEPS_ADVICE,
    STUCK_ADVICE,
    cut_advice,
    divergence_advice,
    progress_advice,
    truncation_advice,
)
from stoic.solve.result import Record, Result
from stoic.solve.variables import Rescaled, Scale, Variables, chosen_metric
from stoic.solvers import AnySolver, Method
from stoic.solvers.base import Settings, has_plan, plan_cost

_log = logging.getLogger("stoic")

_QUIET_EVALUATIONS = 3


class Run:
    """One solve: its counts, its observers, its records and its state."""

    def __init__(
        self,
        problem: Problem,
        budget: int,
        w0: Vector,
        rng: Generator,
        observers: Mapping[str, Callable[[Vector], float]],
        callback: Callable[[Record], None] | None,
        tol: float | None,
    ) -> None:
        self.given, self.w0 = problem, w0
        self.meter = Metered(problem.inner, budget, w0)
        self.problem = problem.watched().with_inner(self.meter)
        self.rng, self.observers, self.callback, self.tol = rng, observers, callback, tol
        self.seconds, self.quiet, self.recorded_count, self.history = 0.0, 0, -1, list[Record]()
        self.pilot_rows, self.variables = PilotRows([], []), Variables()
        self.hindsight, self.shares_to_keep = Hindsight(problem, w0, budget), [0.25, 0.5]

    def start(self, method: Method, asked: Method, delta: float, engine: str, scale: Scale = None) -> None:
        """Choose open settings from a pilot, and start the solver."""
        began, w0 = time.perf_counter(), self.w0
        self.asked, self.method = asked, method
        self.start_at = w0
        self.last, self.answer, self.delta = w0, w0, delta
        try:
            with np.errstate(all="ignore"):
                check_engine(engine, self.problem, self.meter)
                self.method = self._tuned(method, w0, delta, scale)
                planned = plan_cost(self.solver, self.meter)
                self.needed = None if planned is None else self.meter.samples + planned
                self.engine = choose_engine(engine, self.solver, self.problem, self.meter)
                self.chunk = Chunk(self.engine.init(self.solver, self.problem, self.start_at, self.rng))
        except KeyboardInterrupt:
            self.chunk = Chunk(None, ending=Status.INTERRUPTED)
        self.recorded = self.chunk
        self.seconds += time.perf_counter() - began

    @property
    def solver(self) -> AnySolver:
        """The method, once nothing about it is open."""
        return cast("AnySolver", self.method)

    def _tuned(self, method: Method, w0: Vector, delta: float, scale: Scale) -> Method:
        """Return the solver with nothing open, after a pilot where something was, and where it is to start."""
        if not method.needs_pilot:
            self._solve_in(chosen_metric(scale, method, self.problem, self.pilot_rows))
            self.meter.is_keeping, self.start_at = True, self.variables.into(w0)
            return method
        size = pilot_size(self.meter.budget // self.meter.cost(1))
        self.meter.require(pilot_cost(size) * self.meter.cost(1))
        with self.meter.trying():
            self.pilot_rows = draw_pilot(self.problem, self.rng, size)
            self._solve_in(chosen_metric(scale, method, self.problem, self.pilot_rows))
            rows = self.variables.rows(self.problem, self.pilot_rows)
            found = find_start(rows, self.variables.into(w0))
            pilot = measure_pilot(rows, found, self.rng, delta=delta)
        self.start_at = found.start
        solver = method.tuned(pilot.within(self.meter.left))
        solver.check(self.problem)
        _log.info("chosen from a pilot of %d samples: %s", self.meter.samples, solver)
        return solver

    def _solve_in(self, metric: Metric | None) -> None:
        """Solve in the variables of a metric from here on."""
        if metric is not None:
            self.problem, self.variables = metric.problem(self.problem), Variables(metric)
            self.meter = self.problem.inner if isinstance(self.problem.inner, Metered) else self.meter

    def go(self, every: int, chunk_size: int, deadline: float, show: Callable[[int, str], None]) -> None:
        """Run chunks until the solver, the budget, the clock, the callback or the user ends it."""
        self.meter.deadline, chunk_size = deadline, 1 if self._draws_once else chunk_size
        try:
            while self.chunk.ending is None:
                mark = (self._counted // every + 1) * every
                while self.chunk.ending is None and self._counted < mark:
                    self._advance(Limits(min(mark, self._next_look()), chunk_size, deadline))
                    show(self.meter.samples, f"stage {self.chunk.stage + 1}")
                if self._counted != self.recorded_count:
                    self._observe()
        except KeyboardInterrupt:  # while observing
            self.chunk = self.chunk._replace(ending=Status.INTERRUPTED)
        _log.info("%s %d samples", self.chunk.ending, self.meter.samples)

    @property
    def _counted(self) -> int:
        """What is counted between records: samples, or evaluations where all data are drawn once."""
        return self.meter.evaluations if self._draws_once else self.meter.samples

    @property
    def _draws_once(self) -> bool:
        return bool(getattr(self.method, "uses_all_data", False))

    def _next_look(self) -> int:
        """Keep the answers after a quarter and half of the run, and return when there is one to be kept next."""
        whole = min(self.meter.budget, self.needed or self.meter.budget)
        while self.shares_to_keep and self.meter.samples >= math.ceil(self.shares_to_keep[0] * whole):
            self.shares_to_keep.pop(0)
            self.hindsight.keep(self._answer())
        return math.ceil(self.shares_to_keep[0] * whole) if self.shares_to_keep else self.meter.budget + 1

    def _advance(self, limits: Limits) -> None:
        began = time.perf_counter()
        self.chunk = self.engine.run_chunk(self.solver, self.problem, self.meter, self.chunk, self.rng, limits)
        if self.chunk.ending is not None:
            self.chunk = self.engine.settled(self.solver, self.chunk)
        solver, has_finished = self.solver, self.chunk.ending is Status.FINISHED
        if has_finished and isinstance(solver, Settings) and solver.fell_short(self.chunk.state):
            self.chunk = self.chunk._replace(ending=Status.STEPS_SPENT)
        self.seconds += time.perf_counter() - began

    def _observe(self) -> None:
        """Add a record, and let the callback and the tolerance end the solve."""
        is_watched = bool(self.observers) or self.tol is not None  # only then has the answer to be known
        record = {
            **self._record(),
            **gap_record(self.given, self.solver, self._answer, is_last=self.chunk.ending is not None),
            **(self._look() if is_watched else {}),
        }
        self.history.append(record)
        self.recorded, self.recorded_count = self.chunk, self._counted
        if self.chunk.ending is None and self.quiet >= _QUIET_EVALUATIONS:
            self.chunk = self.chunk._replace(ending=Status.CONVERGED)
        if self.callback is not None:
            try:
                self.callback(record)
            except StopIteration:
                self.chunk = self.chunk._replace(ending=self.chunk.ending or Status.STOPPED)

    def _look(self) -> Record:
        """Return the observers' values, and count records at which the answer did not move."""
        answer = self._answer()
        w = answer.view()  # states are never changed in place
        w.flags.writeable = False
        with np.errstate(over="ignore", invalid="ignore"):
            moved = float(np.linalg.norm(w - self.last)) / max(1.0, float(np.linalg.norm(w)))
        if self.tol is not None and answer is not self.answer:  # one that was not updated says nothing
            self.quiet = self.quiet + 1 if moved < self.tol else 0
        self.last, self.answer = w, answer
        return {name: float(observe(w)) for name, observe in self.observers.items()}

    def _answer(self) -> Vector:
        return self.variables.out_of(self.solver.output(self.engine.settled(self.solver, self.chunk).state))

    def _record(self) -> Record:
        watched = max(1, self.chunk.watched - self.recorded.watched)
        return {
            "samples": self.meter.samples,
            "evaluations": self.meter.evaluations,
            "seconds": self.seconds,
            "stage": self.chunk.stage,
            "truncated_y": (self.chunk.truncated_y - self.recorded.truncated_y) / watched,
            "truncated_z": (self.chunk.truncated_z - self.recorded.truncated_z) / watched,
        }

    def result(self) -> Result:
        """Return the result: the answer, the status, and the message."""
        w = (self.last if self.chunk.state is None else self._answer()).copy()
        risen = self.solver.risen(self.chunk.state) if hasattr(self.solver, "risen") and self.chunk.state else 0.0
        self.chunk = self.recorded = chunk = self.chunk._replace(state=None)  # a look back needs room
        self.last = self.answer = w
        self.engine = PlainEngine()
        status, outlook = self._judged(w, risen)
        parts = [
            f"{status.value} {chunk.n_steps} steps, {self.meter.samples} of {self.meter.budget} samples.",
            cut_advice(self.needed) if status is Status.PLAN_CUT else "",
            self._short_advice() if status is Status.STEPS_SPENT else "",
            divergence_advice(outlook) if status is Status.DIVERGED else progress_advice(outlook),
            truncation_advice(self.history),
        ]
        return Result(
            w=w,
            status=status,
            message=" ".join(filter(None, parts)),
            samples=self.meter.samples,
            evaluations=self.meter.evaluations,
            seconds=self.seconds,
            n_steps=chunk.n_steps,
            truncated_y=chunk.truncated_y / max(1, chunk.watched),
            truncated_z=chunk.truncated_z / max(1, chunk.watched),
            history=self.history,
            solver=self.method if self.variables.metric is None else Rescaled(self.method, self.variables.metric),
            outlook=outlook,
            certifier=partial(certify_answer, self.given, w.copy(), self.delta, self.meter.budget),
        )

    def _short_advice(self) -> str:
        """Return advice where the steps have ended before the optimum was known to be reached."""
        return STEPS_ADVICE if hasattr(self.solver, "n_steps") else STUCK_ADVICE

    def _judged(self, w: Vector, risen: float) -> tuple[Status, Outlook]:
        """Return the status of the run and, where it ended by itself, its outlook.

        `risen` is by how much the solver itself has seen F rise, if it has.
        """
        status = self.chunk.ending or Status.STOPPED
        if status is Status.BUDGET_SPENT and has_plan(self.asked):
            status = Status.PLAN_CUT
        if not (status.is_success or status in {Status.PLAN_CUT, Status.STEPS_SPENT}):
            return status, Outlook()
        if risen > 0.0:
            return Status.DIVERGED, Outlook(risen, -risen)
        try:
            draws = split_draws(self.pilot_rows, self.meter.kept)
            outlook = self.hindsight.outlook(w, *draws, is_fitted=getattr(self.solver, "minimizes_draws", False))
        except KeyboardInterrupt:
            return Status.INTERRUPTED, Outlook()
        except Exception as error:  # a part of the user's own need not take a batch twice, or points like these
            if not is_foreign(self.given.inner):
                raise
            _log.info("no look back from the answer: %s", error)
            return status, Outlook()
        return (Status.DIVERGED if outlook.risen > 0.0 else status), outlook
