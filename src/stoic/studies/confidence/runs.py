"""The runs of a confidence study: their names, their batches, and the solves themselves."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np

from stoic.engines.engine import Status
from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.solve.driver import minimize
from stoic.studies.confidence.laws import GroupLaw
from stoic.studies.confidence.methods import RIVALS, method_of
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.shared.methods import UNTUNED
from stoic.studies.shared.seeds import generator

Part: TypeAlias = Literal["tuning", "tails", "rates"]
Ending: TypeAlias = Literal["finished", "diverged", "failed"]

_MOST_RUNS, _MOST_SAMPLES = 50, 10_000_000  # of a batch, which takes about ten seconds


class LawSetting(NamedTuple):
    """A law, by its noise and where that is, and the samples of each group."""

    noise: str
    place: str
    samples: int

    @property
    def name(self) -> str:
        """The name for a reader; Gaussian noise has no place, since it is everywhere."""
        return self.noise if self.noise == "gaussian" else f"{self.noise} {self.place}"

    def law(self, spec: TailsSpec) -> GroupLaw:
        """Return the law."""
        return GroupLaw(self.noise, self.place, deviations=spec.deviations)


class MethodCell(NamedTuple):
    """A method with its step size."""

    method: str
    step: float = UNTUNED


class Key(NamedTuple):
    """A run: of a part of the study, in a setting, of a method, with a number."""

    part: Part
    setting: LawSetting
    cell: MethodCell
    number: int


class GapOutcome(NamedTuple):
    """The ending of a run, and its gap, which is infinite unless it finished."""

    gap: float
    ending: Ending = "finished"
    message: str = ""
    truncated_y: float = 0.0
    truncated_z: float = 0.0


class RunBatch(NamedTuple):
    """Runs of the same cells, number by number: those of a number share their rows."""

    part: Part
    setting: LawSetting
    cells: tuple[MethodCell, ...]
    numbers: tuple[int, ...]

    @property
    def n_runs(self) -> int:
        """The number of its runs."""
        return len(self.cells) * len(self.numbers)


def settings_of(spec: TailsSpec) -> list[LawSetting]:
    """Return the settings of the quantiles; Gaussian noise is one of them, whatever the place."""
    found = (
        LawSetting(noise, "labels" if noise == "gaussian" else place, spec.samples)
        for noise in spec.noises
        for place in spec.places
    )
    return list(dict.fromkeys(found))


def rate_settings_of(spec: TailsSpec) -> list[LawSetting]:
    """Return the settings of the gap against samples."""
    return [LawSetting(noise, "labels", n) for noise in spec.rate_noises for n in sorted(spec.rates)]


def tuning_cells(spec: TailsSpec) -> tuple[MethodCell, ...]:
    """Return every rival with every step size of the grid."""
    rivals = [name for name in spec.methods if name in RIVALS]
    return tuple(MethodCell(method, step) for method in rivals for step in sorted(spec.steps))


def keys_of(part: Part, setting: LawSetting, cells: Iterable[MethodCell], count: int) -> list[Key]:
    """Return the runs number 0, …, count − 1 of some cells, number by number."""
    cells = list(cells)
    return [Key(part, setting, cell, number) for number in range(count) for cell in cells]


def batches_of(keys: Iterable[Key]) -> Iterator[RunBatch]:
    """Yield runs in batches; no result depends on which."""
    for (part, setting), alike in groupby(keys, lambda key: (key.part, key.setting)):
        by_number: dict[int, list[MethodCell]] = {}
        for key in alike:
            by_number.setdefault(key.number, []).append(key.cell)
        for cells, group in groupby(by_number.items(), lambda pair: tuple(pair[1])):
            numbers = [number for number, _ in group]
            size = max(1, min(_MOST_RUNS, _MOST_SAMPLES // (setting.samples * len(cells))))
            for first in range(0, len(numbers), size):
                yield RunBatch(part, setting, cells, tuple(numbers[first : first + size]))


def execute(batch: RunBatch, spec: TailsSpec) -> list[tuple[Key, GapOutcome]]:
    """Return the outcomes of the runs of a batch."""
    law = batch.setting.law(spec)
    found = []
    for number in batch.numbers:
        names = (spec.seed, batch.part, *batch.setting, number)
        problem = law.problem(batch.setting.samples, generator("rows", *names))
        for cell in batch.cells:
            outcome = _outcome(law, problem, cell, generator("draws", *names, *cell))
            found.append((Key(batch.part, batch.setting, cell, number), outcome))
    return found


def _outcome(law: GroupLaw, problem: Problem, cell: MethodCell, rng: np.random.Generator) -> GapOutcome:
    """Solve from the first row on; an exception is an outcome as well, but not Ctrl-C."""
    inner = cast("GroupLoss", problem.inner)
    budget = inner.n_samples
    inner.grouped_rows.rewind(0, rng)
    try:
        with np.errstate(all="ignore"):
            engine: Literal["auto", "compiled"] = "auto" if cell.method == "auto" else "compiled"
            result = minimize(problem, method_of(*cell), budget, seed=rng, engine=engine, evaluate_every=budget)
            gap = law.gap(result.w)
    except Exception as error:  # it is stored and shown, and the other runs go on
        return GapOutcome(np.inf, "failed", f"{type(error).__name__}: {error}")
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    shares = result.truncated_y, result.truncated_z
    if result.became_infinite or not np.isfinite(gap):  # an answer above the start counts with its gap
        return GapOutcome(np.inf, "diverged", result.message, *shares)
    return GapOutcome(gap, "finished", "", *shares)
