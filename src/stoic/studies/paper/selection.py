"""Cells of the grid, chosen by their validation errors."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from stoic.studies.paper.runs import Setting, grid_of
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store, Stored


class Cell(NamedTuple):
    """A place in the grid, and its validation error."""

    alpha: float
    step: float
    error: float


def stored_grid(store: Store, spec: Spec) -> list[Stored]:
    """Return the cells of a spec that are stored; the store may have others, from when the grid was larger."""
    wanted = set(grid_of(spec))
    return [stored for stored in store.runs("grid") if stored.run in wanted]


def validation_error(stored: Stored, score: str) -> float:
    """Return the error at the end of a run; infinite where it diverged, failed or was given up."""
    if stored.outcome.ending != "finished" or not stored.outcome.points:
        return math.inf
    error = stored.outcome.points[-1][score]
    return error if math.isfinite(error) else math.inf


def chosen_cells(grid: Iterable[Stored], score: str) -> dict[Setting, Cell]:
    """Return the best cell of each setting; of equal ones the smaller step, then the larger regularizer.

    A setting of which no cell has a finite error has none.
    """
    best: dict[Setting, Cell] = {}
    for stored in grid:
        run = stored.run
        cell = Cell(run.alpha, run.step, validation_error(stored, score))
        if cell.error < math.inf and _rank(cell) < _rank(best.get(run.setting, cell._replace(error=math.inf))):
            best[run.setting] = cell
    return best


def _rank(cell: Cell) -> tuple[float, float, float]:
    return cell.error, cell.step, -cell.alpha
