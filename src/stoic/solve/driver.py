"""The driver: one loop that counts samples, observes, and stops."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, cast

import numpy as np
from numpy.random import Generator

from stoic.certificate.certifying import certify_answer
from stoic.certificate.duality import duality_gap
from stoic.certificate.linear_models import unknown_convexity
from stoic.checks import check_count, check_positive, check_probability
from stoic.engines.choice import ENGINES, check_engine, choose_engine
from stoic.engines.engine import Chunk, Limits, Status
from stoic.engines.plain import PlainEngine
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.guards import is_foreign
from stoic.inners.metered import BudgetSpent, Metered
from stoic.pilot import PilotRows, draw_pilot, measure_pilot, pilot_cost
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.hindsight import Hindsight, Outlook, split_draws
from stoic.solve.messages import (
    STEPS_ADVICE,
    STUCK_ADVICE,
    cut_advice,
    divergence_advice,
    progress_advice,
    truncation_advice,
)
from stoic.solve.progress import progress_bar
from stoic.solve.requests import check_watchers, make_generator, resolve, too_small_budget
from stoic.solve.result import Record, Result
from stoic.solvers import AnySolver, Method
from stoic.solvers.base import UNBOUNDED, Settings, has_plan, plan_cost

_log = logging.getLogger("stoic")

_LARGEST_PILOT = 200
_QUIET_EVALUATIONS = 3


def minimize(
    problem: Problem,
    method: str | Method = "auto",
    budget: int = 100_000,
    *,
    w0: Vector | None = None,
    seed: int | Generator | None = None,
    delta: float = 0.05,
    observers: Mapping[str, Callable[[Vector], float]] | None = None,
    callback: Callable[[Record], None] | None = None,
    evaluate_every: int | None = None,
    tol: float | None = None,
    max_seconds: float | None = None,
    engine: Literal["auto", "plain", "compiled", "renumbered"] = "auto",
    verbose: bool = False,
    chunk_size: int = 1000,
) -> Result:
    r"""Minimize :math:`F(w) = f(\mathrm E_\xi[g(w; \xi)]) + r(w)` with a budget of samples.

    Parameters
    ----------
    problem : Problem
        What to minimize.
    method : str or Solver, default "auto"
        A method string, whose settings are chosen by a pilot on the data, or settings such as
        ``stoic.RROSC(batch_size=8)``, of which only the open ones are.
    budget : int
        Data points ξ that may be drawn in all, the pilot and reference batches included; a batch of m from
        each of p groups costs p·m. It is never exceeded.
    w0 : ndarray of shape (d,), optional
        Where to start; by default the point of the regularizer's domain nearest to zero.
    seed : int or Generator, optional
        Same seed, same bits, whatever the observers, the verbosity and the chunk size.
    delta : float, default 0.05
        Total failure probability that a method with a confidence statement aims at.
    observers : mapping of names to functions of w, optional
        Their values go into the history; they are outside the clock.
    callback : function of a record, optional
        Called with each record of the history; raising ``StopIteration`` stops the solve.
    evaluate_every : int, optional
        Samples between two records, evaluations where all data are drawn once (`newton`); by default a fiftieth of
        the budget.
    tol : float, optional
        Stop when the answer moved by less than tol·max(1, ‖w‖) at three records in a row; records at which a
        solver had not updated its answer are passed over.
    max_seconds : float, optional
        Stop at the first step after this time on the wall clock, observers included.
    engine : {"auto", "plain", "compiled", "renumbered"}
        "plain" is the readable definition, "compiled" the same steps in kernels, at the cost of the rows drawn;
        both take the same draws and agree to rounding. "auto" compiles where that is possible and pays, and
        says in a log line where it is not possible. "renumbered" is an old name of "compiled".
    verbose : bool, default False
        Show a progress bar on standard error.
    chunk_size : int, default 1000
        Steps between two looks at the progress bar and the clock.

    Returns
    -------
    Result
        With the answer ``w``, its ``status``, and the ``history``. Ctrl-C returns what was reached so far.

    Raises
    ------
    InvalidParameter
        If a setting is out of range, the method is unknown, or the budget is below one step.
    InvalidProblem
        If a function of the user's own returns NaN or infinity at an ordinary point; the message names the
        function and the sample. Where finite functions overflow since w grows without end, the status is DIVERGED.
    IncompatibleParts
        If the problem is outside the method's assumptions.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.standard_normal((3000, 5)), np.arange(3000) % 3
    >>> y = X @ np.ones(5) + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(10.0), stoic.L2(1e-3))
    >>> result = stoic.minimize(problem, "rrosc", budget=100_000, seed=0)
    >>> result.success, result.samples <= 100_000, result.w.round(0)
    (True, True, array([1., 1., 1., 1., 1.]))
    """
    if not isinstance(problem, Problem):
        raise InvalidProblem(f"problem={problem!r} is not a Problem; give Problem(inner, outer, regularizer).")
    budget = check_count("budget", budget)
    every = budget // 50 or 1 if evaluate_every is None else check_count("evaluate_every", evaluate_every)
    chunk_size = check_count("chunk_size", chunk_size)
    delta = check_probability("delta", delta)
    tol = None if tol is None else check_positive("tol", tol)
    deadline = math.inf
    if max_seconds is not None:
        deadline = time.perf_counter() + check_positive("max_seconds", max_seconds)
    asked = resolve(method)
    chosen = asked.for_problem(problem, budget, engine) if hasattr(asked, "for_problem") else asked
    chosen.check(problem)
    check_watchers(observers, callback)
    if engine not in ENGINES:
        raise InvalidParameter(f"engine={engine!r} is not one of {', '.join(map(repr, ENGINES))}.")
    run = _Run(problem, budget, problem.start(w0), make_generator(seed), dict(observers or {}), callback, tol)
    try:
        with progress_bar(budget, visible=verbose) as show:
            run.start(chosen, asked, delta, engine)
            is_watched = verbose or max_seconds is not None
            run.go(every, chunk_size if is_watched else UNBOUNDED, deadline, show)
    except BudgetSpent as spent:
        raise InvalidParameter(too_small_budget(budget, spent.needed, chosen)) from None
    return run.result()


class _Run:
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
        self.seconds, self.quiet, self.recorded_count = 0.0, 0, -1
        self.history: list[Record] = []
        self.pilot_rows = PilotRows([], [])
        self.hindsight, self.shares_to_keep = Hindsight(problem, w0, budget), [0.25, 0.5]

    def start(self, method: Method, asked: Method, delta: float, engine: str) -> None:
        """Choose open settings from a pilot, and start the solver."""
        began, w0 = time.perf_counter(), self.w0
        self.asked, self.method = asked, method
        self.last, self.answer, self.delta = w0, w0, delta
        try:
            with np.errstate(all="ignore"):
                check_engine(engine, self.problem, self.meter)
                self.method = self._tuned(method, w0, delta)
                planned = plan_cost(self.solver, self.meter)
                self.needed = None if planned is None else self.meter.samples + planned
                self.engine = choose_engine(engine, self.solver, self.problem, self.meter)
                self.chunk = Chunk(self.engine.init(self.solver, self.problem, w0, self.rng))
        except KeyboardInterrupt:
            self.chunk = Chunk(None, ending=Status.INTERRUPTED)
        self.recorded = self.chunk
        self.seconds += time.perf_counter() - began

    @property
    def solver(self) -> AnySolver:
        """The method, once nothing about it is open."""
        return cast("AnySolver", self.method)

    def _tuned(self, method: Method, w0: Vector, delta: float) -> Method:
        """Return the solver with nothing open, after a pilot where something was."""
        if not method.needs_pilot:
            self.meter.is_keeping = True
            return method
        size = max(3, min(_LARGEST_PILOT, self.meter.budget // (50 * self.meter.cost(1))))
        self.meter.require(pilot_cost(size) * self.meter.cost(1))
        with self.meter.trying():
            self.pilot_rows = draw_pilot(self.problem, self.rng, size)
            pilot = measure_pilot(self.pilot_rows, w0, self.rng, delta=delta)
        solver = method.tuned(pilot.within(self.meter.left))
        solver.check(self.problem)
        _log.info("chosen from a pilot of %d samples: %s", self.meter.samples, solver)
        return solver

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
        record = {**self._record(), **self._gap(), **(self._look() if is_watched else {})}
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

    def _gap(self) -> Record:
        """Return the duality gap where each step uses all data and f∘g is convex; inf where it can wait."""
        if not self._draws_once or unknown_convexity(self.given):
            return {}
        solver, is_awaited = self.solver, self.callback is not None or self.chunk.ending is not None
        if not is_awaited and isinstance(solver, Settings) and not solver.looks_often(self.given):
            return {"duality_gap": math.inf}
        return {"duality_gap": duality_gap(self.given, self._answer())}

    def _answer(self) -> Vector:
        return self.solver.output(self.engine.settled(self.solver, self.chunk).state)

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
        self.chunk = self.recorded = chunk = self.chunk._replace(state=None)  # a look back needs room
        self.last = self.answer = w
        self.engine = PlainEngine()
        status, outlook = self._judged(w)
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
            solver=self.method,
            outlook=outlook,
            certifier=partial(certify_answer, self.given, w.copy(), self.delta, self.meter.budget),
        )

    def _short_advice(self) -> str:
        """Return advice where the steps have ended before the optimum was known to be reached."""
        return STEPS_ADVICE if hasattr(self.solver, "n_steps") else STUCK_ADVICE

    def _judged(self, w: Vector) -> tuple[Status, Outlook]:
        """Return the status of the run and, where it ended by itself, its outlook."""
        status = self.chunk.ending or Status.STOPPED
        if status is Status.BUDGET_SPENT and has_plan(self.asked):
            status = Status.PLAN_CUT
        if not (status.is_success or status in {Status.PLAN_CUT, Status.STEPS_SPENT}):
            return status, Outlook()
        try:
            outlook = self.hindsight.outlook(w, *split_draws(self.pilot_rows, self.meter.kept))
        except KeyboardInterrupt:
            return Status.INTERRUPTED, Outlook()
        except Exception as error:  # a part of the user's own need not take a batch twice, or points like these
            if not is_foreign(self.given.inner):
                raise
            _log.info("no look back from the answer: %s", error)
            return status, Outlook()
        return (Status.DIVERGED if outlook.risen > 0.0 else status), outlook
