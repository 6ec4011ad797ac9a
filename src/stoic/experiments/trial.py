"""Run one cell or trial: noise, problem, solver, and scores along the way."""

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stoic.driver import minimize
from stoic.experiments.material import Material, Rows, first, load, noisy
from stoic.experiments.runs import Ending, Outcome, Run, Setting
from stoic.experiments.scores import Score, Scores, mean_squared, robust_mean_squared, worst_group
from stoic.experiments.seeds import generator
from stoic.experiments.solvers import solver_for
from stoic.experiments.spec import Spec
from stoic.inners.group_loss import GroupLoss
from stoic.outers import LogSumExp
from stoic.pilot import Pilot, run_pilot
from stoic.problem import Problem
from stoic.protocols import Regularizer
from stoic.regularizers import L1, L2, Zero
from stoic.result import Record, Result, Status

HOPELESS = 1e3  # times the error of the zero model, when a quarter of the budget is spent: such a cell is given up
_PILOT_SIZE = 200
_LOOKS_AT_A_CELL = 8
_VALIDATION: dict[str, Score] = {"plain": mean_squared, "robust": robust_mean_squared}
_TEST: dict[str, Score] = {"mse": mean_squared, "robust": robust_mean_squared, "worst_group": worst_group}


def execute(run: Run, spec: Spec, folder: Path) -> Outcome:
    """Return how a run on the data in a folder went; an exception is an outcome as well, but not Ctrl-C."""
    try:
        with np.errstate(all="ignore"):
            return _worker(spec, folder).outcome(run)
    except Exception as error:  # it is stored and shown, and the other runs go on
        return Outcome("failed", f"{type(error).__name__}: {error}")


@lru_cache(maxsize=1)
def _worker(spec: Spec, folder: Path) -> "Worker":
    return Worker(spec, load(folder))


class _Task(NamedTuple):
    """The rows to fit, the rows to score on, and the scores; the first of them is the one that matters."""

    rows: Rows
    seen: Rows
    scores: dict[str, Score]


class Worker:
    """Runs cells and trials of one experiment on its data; what they share is computed once."""

    def __init__(self, spec: Spec, material: Material) -> None:
        self.spec, self.material = spec, material
        self._pilots: dict[tuple[str | float, ...], Pilot] = {}

    def outcome(self, run: Run) -> Outcome:
        """Return how a run went."""
        spec, task = self.spec, self._task(run)
        problem = _problem(run.setting, task.rows, {"l1": L1, "l2": L2}[run.setting.regularizer](run.alpha))
        solver = solver_for(run.setting.method, run.step, spec, self._pilot(run, task.rows))
        scores, main = Scores(task.seen, task.scores), next(iter(task.scores))
        limit = HOPELESS * scores.at(np.zeros(problem.dimension))[main]
        is_cell = run.phase == "grid"
        result = minimize(
            problem,
            solver,
            spec.budget,
            seed=generator(spec.seed, "draws", run.key),
            observers={name: scores.observer(name) for name in task.scores},
            evaluate_every=math.ceil(spec.budget / (_LOOKS_AT_A_CELL if is_cell else spec.evaluations)),
            callback=_give_up(main, limit, spec.budget // 4) if is_cell else None,
        )
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return _outcome(result)

    def _task(self, run: Run) -> _Task:
        spec, material = self.spec, self.material
        if run.phase == "grid":
            train = noisy(material.train, spec, "grid")
            return _Task(first(train, material.n_fit), last(train, material.n_fit), _VALIDATION)
        train, test = noisy(material.train, spec, "train", run.repetition), material.test
        if spec.test_labels == "noisy":
            test = noisy(test, spec, "test", run.repetition)
        return _Task(train, test, _TEST)

    def _pilot(self, run: Run, rows: Rows) -> Pilot:
        """Return a pilot on the rows to fit, without a regularizer: the same for every cell and method."""
        names = (run.phase, run.setting.loss, run.setting.temperature, run.repetition)
        if names not in self._pilots:
            problem = _problem(run.setting, rows, Zero())
            size = max(3, min(_PILOT_SIZE, self.spec.budget // (50 * problem.inner.cost(1))))
            rng = generator(self.spec.seed, "pilot", *names)
            self._pilots[names] = run_pilot(problem, np.zeros(problem.dimension), rng, size=size)
        return self._pilots[names]


def last(rows: Rows, start: int) -> Rows:
    """Return the rows from a place on."""
    return Rows(rows.X[start:], rows.y[start:], rows.groups[start:])


def _problem(setting: Setting, rows: Rows, regularizer: Regularizer) -> Problem:
    inner = GroupLoss(rows.X, rows.y, rows.groups, loss=setting.loss)
    return Problem(inner, LogSumExp(setting.temperature), regularizer)


def _give_up(name: str, limit: float, after: int) -> Callable[[Record], None]:
    def look(record: Record) -> None:
        if record["samples"] >= after and not record[name] <= limit:
            raise StopIteration

    return look


def _outcome(result: Result) -> Outcome:
    endings: dict[Status, Ending] = {Status.DIVERGED: "diverged", Status.STOPPED: "hopeless"}
    return Outcome(
        endings.get(result.status, "finished"),
        result.message,
        result.samples,
        result.seconds,
        result.truncated_y,
        result.truncated_z,
        [dict(record) for record in result.history],
    )
