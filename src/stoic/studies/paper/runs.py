"""The runs of the paper's experiment: cells of the grid and trials, their solves, and their outcomes."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np

from stoic.engines.engine import Status
from stoic.inners.group_loss import GroupLoss
from stoic.outers import LogSumExp
from stoic.pilot import Pilot, run_pilot
from stoic.problem import Problem
from stoic.protocols import Regularizer
from stoic.regularizers import L1, L2, Zero
from stoic.solve.driver import minimize
from stoic.solve.result import Record, Result
from stoic.solvers import METHODS, Method
from stoic.solvers.base import AnySolver
from stoic.studies.paper.data import Material, first_rows, last_rows, load_material, with_noise
from stoic.studies.paper.scores import Score, Scores, mean_squared, robust_mean_squared, worst_group
from stoic.studies.paper.spec import Spec
from stoic.studies.shared.methods import UNTUNED, with_step
from stoic.studies.shared.seeds import generator

Phase: TypeAlias = Literal["grid", "trial"]
Ending: TypeAlias = Literal["finished", "diverged", "hopeless", "failed"]

HOPELESS = 1e3
"""Times the error of the zero model: a cell above that when a quarter of the budget is spent is given up."""

_PILOT_SIZE = 200
_LOOKS_AT_A_CELL = 8
_VALIDATION: dict[str, Score] = {"plain": mean_squared, "robust": robust_mean_squared}
_TEST: dict[str, Score] = {"mse": mean_squared, "robust": robust_mean_squared, "worst_group": worst_group}


@dataclass(frozen=True)
class Setting:
    """A problem and a method: a loss, a temperature, a regularizer, and a method to compare with others."""

    loss: str
    temperature: float
    regularizer: str
    method: str


@dataclass(frozen=True)
class Run:
    """One solve: of the grid (repetition 0), or a trial with its noise."""

    phase: Phase
    setting: Setting
    alpha: float
    step: float
    repetition: int = 0

    @property
    def key(self) -> str:
        """The name under which it is stored, and from which its random numbers come."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Outcome:
    """The ending of a run: its points (one record each), what it drew, and why it stopped early, if it did."""

    ending: Ending
    message: str
    samples: int = 0
    seconds: float = 0.0
    truncated_y: float = 0.0
    truncated_z: float = 0.0
    points: list[dict[str, float]] = field(default_factory=list)


def settings_of(spec: Spec) -> list[Setting]:
    """Return all settings of an experiment, those of the figures first."""
    return [
        Setting(loss, temperature, regularizer, method)
        for loss in spec.losses
        for temperature in spec.temperatures
        for regularizer in spec.regularizers
        for method in spec.methods
    ]


def grid_of(spec: Spec) -> Iterator[Run]:
    """Yield every cell of every setting's grid."""
    for setting in settings_of(spec):
        for alpha in spec.alphas:
            for step in spec.steps_of(setting.method):
                yield Run("grid", setting, alpha, step)


def execute(run: Run, spec: Spec, folder: Path) -> Outcome:
    """Return the outcome of a run on the data in a folder; an exception is one as well, but not Ctrl-C."""
    try:
        with np.errstate(all="ignore"):
            return _worker(spec, folder).outcome(run)
    except Exception as error:  # it is stored and shown, and the other runs go on
        return Outcome("failed", f"{type(error).__name__}: {error}")


@lru_cache(maxsize=1)
def _worker(spec: Spec, folder: Path) -> "Worker":
    return Worker(spec, load_material(folder))


class _Task(NamedTuple):
    """The part of the problem that has the rows to fit, and scores on others; the first score is what matters."""

    inner: GroupLoss
    scores: Scores

    @property
    def main(self) -> str:
        """The name of the score that matters."""
        return next(iter(self.scores.scores))

    def problem(self, setting: Setting, regularizer: Regularizer) -> Problem:
        return Problem(self.inner, LogSumExp(setting.temperature), regularizer)


class Worker:
    """Runs cells and trials of one experiment on its data; what they share is computed once."""

    def __init__(self, spec: Spec, material: Material) -> None:
        self.spec, self.material = spec, material
        self._pilots: dict[tuple[str | float, ...], Pilot] = {}
        self._task_of = lru_cache(maxsize=2)(self._make_task)  # runs that follow each other mostly share one

    def outcome(self, run: Run) -> Outcome:
        """Return the outcome of a run."""
        spec, task = self.spec, self._task_of(run.phase, run.repetition, run.setting.loss)
        problem = task.problem(run.setting, {"l1": L1, "l2": L2}[run.setting.regularizer](run.alpha))
        is_cell = run.phase == "grid"
        result = minimize(
            problem,
            solver_for(run.setting.method, run.step, spec, self._pilot(run, task)),
            spec.budget,
            seed=generator(spec.seed, "draws", run.key),
            observers={name: task.scores.observer(name) for name in task.scores.scores},
            evaluate_every=math.ceil(spec.budget / (_LOOKS_AT_A_CELL if is_cell else spec.evaluations)),
            callback=_give_up(task, spec.budget // 4) if is_cell else None,
        )
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return _outcome(result)

    def _make_task(self, phase: Phase, repetition: int, loss: str) -> _Task:
        spec, material = self.spec, self.material
        if phase == "grid":
            train = with_noise(material.train, spec, "grid")
            fit, seen, scores = first_rows(train, material.n_fit), last_rows(train, material.n_fit), _VALIDATION
        else:
            fit, seen, scores = with_noise(material.train, spec, "train", repetition), material.test, _TEST
            if spec.test_labels == "noisy":
                seen = with_noise(seen, spec, "test", repetition)
        inner = GroupLoss(fit.X, fit.y, fit.groups, loss=loss)
        inner.grouped_rows.is_fresh = (
            True  # they stand for the law of noisy rows: their own optimum fits the noise
        )
        return _Task(inner, Scores(seen, scores))

    def _pilot(self, run: Run, task: _Task) -> Pilot:
        """Return a pilot on the rows to fit, without a regularizer: the same for every cell and method."""
        names = (run.phase, run.setting.loss, run.setting.temperature, run.repetition)
        if names not in self._pilots:
            problem = task.problem(run.setting, Zero())
            size = max(3, min(_PILOT_SIZE, self.spec.budget // (50 * problem.inner.cost(1))))
            rng = generator(self.spec.seed, "pilot", *names)
            self._pilots[names] = run_pilot(problem, np.zeros(problem.dimension), rng, size=size)
        return self._pilots[names]


def _give_up(task: _Task, after: int) -> Callable[[Record], None]:
    name = task.main
    limit = HOPELESS * task.scores.at(np.zeros(task.inner.shape[1]))[name]

    def look(record: Record) -> None:
        if record["samples"] >= after and not record[name] <= limit:
            raise StopIteration

    return look


def _outcome(result: Result) -> Outcome:
    ending: Ending = "hopeless" if result.status is Status.STOPPED else "finished"
    return Outcome(
        "diverged" if result.became_infinite else ending,  # an answer above the start counts with its scores
        result.message,
        result.samples,
        result.seconds,
        result.truncated_y,
        result.truncated_z,
        [dict(record) for record in result.history],
    )


def solver_for(method: str, step: float, spec: Spec, pilot: Pilot) -> Method:
    """Return the solver of a cell; what neither the cell nor the spec says is chosen as in ``minimize``.

    An untuned method is left to ``minimize`` as a whole. A method with restarts takes K stages that fill the
    budget. SCGD and ASC-PG take the sequences of their theorems for optimally strongly convex problems, with the
    step size as the first.
    """
    if step == UNTUNED:
        return METHODS[method]()
    recipe = with_step(method, step)
    names = {field.name for field in fields(recipe)}
    settings = {"batch_size": spec.batch_size, "n_stages": spec.n_stages, "radius": spec.radius}
    if method == "rcivr":
        settings |= {"n_stages": recipe.n_stages}  # epochs, of which the budget pays for as many as it can
    chosen = {name: value for name, value in settings.items() if name in names}
    return cast("AnySolver", replace(recipe, **chosen).tuned(pilot.within(spec.budget)))
