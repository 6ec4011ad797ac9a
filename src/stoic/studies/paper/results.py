"""Results of an experiment, from its store alone: the cells of the grid, and curves over trials."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stoic.protocols import Array, Vector
from stoic.studies.paper.runs import Setting, settings_of
from stoic.studies.paper.selection import Cell, chosen_cells, stored_grid
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store, Stored

SELECTIONS = ("plain", "robust")


class Curve(NamedTuple):
    """A method at its chosen cell: scores of each trial along the samples, of shape (trials, points).

    A trial that diverged has infinite scores from there on.
    """

    setting: Setting
    cell: Cell
    samples: Vector
    seconds: Vector
    scores: dict[str, Array]
    trials: tuple[Stored, ...]

    def final(self, score: str) -> Vector:
        """Return the last score of each trial."""
        return self.scores[score][:, -1]

    @property
    def endings(self) -> dict[str, int]:
        """The number of trials with each ending."""
        names = [stored.outcome.ending for stored in self.trials]
        return {name: names.count(name) for name in sorted(set(names))}


class Results(NamedTuple):
    """Results of an experiment: the spec, facts on data and machine, the grid, and curves by way of selection."""

    spec: Spec
    facts: dict[str, Any]
    grid: list[Stored]
    cells: dict[str, dict[Setting, Cell]]
    curves: dict[str, list[Curve]]
    failed: list[Stored]

    @property
    def main(self) -> list[Curve]:
        """The curves of the selection, loss and temperature that the figures are about."""
        spec = self.spec
        wanted = spec.losses[0], spec.temperatures[0]
        return [
            curve
            for curve in self.curves[spec.selection]
            if (curve.setting.loss, curve.setting.temperature) == wanted
        ]


def load_results(folder: Path) -> Results:
    """Return the results in a folder; raise InvalidParameter if there is no experiment."""
    with Store.of_study(folder) as store:
        facts = store.facts()
        with store.understood():
            spec = Spec.model_validate(facts["spec"])
            grid, trials = stored_grid(store, spec), store.runs("trial")
            cells = {name: chosen_cells(grid, name) for name in SELECTIONS}
            curves = {name: list(_curves(spec, cells[name], trials)) for name in SELECTIONS}
    failed = [stored for stored in (*grid, *trials) if stored.outcome.ending == "failed"]
    return Results(spec, facts, grid, cells, curves, failed)


def _curves(spec: Spec, cells: dict[Setting, Cell], trials: Iterable[Stored]) -> Iterator[Curve]:
    by_place: dict[tuple[Setting, float, float], list[Stored]] = {}
    for stored in trials:
        by_place.setdefault((stored.run.setting, stored.run.alpha, stored.run.step), []).append(stored)
    for setting in settings_of(spec):
        cell = cells.get(setting)
        found = [] if cell is None else by_place.get((setting, cell.alpha, cell.step), [])
        ended = [stored for stored in found if stored.outcome.points and stored.run.repetition < spec.trials]
        if cell is not None and ended:
            yield _curve(setting, cell, sorted(ended, key=lambda stored: stored.run.repetition))


def _curve(setting: Setting, cell: Cell, trials: list[Stored]) -> Curve:
    longest = max((stored.outcome.points for stored in trials), key=len)
    names = [name for name in longest[0] if name in {"mse", "robust", "worst_group"}]
    return Curve(
        setting,
        cell,
        np.array([point["samples"] for point in longest], dtype=float),
        np.median([_padded(stored, "seconds", len(longest)) for stored in trials], axis=0),
        {name: np.array([_padded(stored, name, len(longest)) for stored in trials]) for name in names},
        tuple(trials),
    )


def _padded(stored: Stored, name: str, length: int) -> list[float]:
    values = [point[name] for point in stored.outcome.points]
    return values + [math.inf] * (length - len(values))
