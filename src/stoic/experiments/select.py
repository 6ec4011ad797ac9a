"""Choose the cell of a grid by its validation error."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from stoic.experiments.runs import Setting
from stoic.experiments.spec import Spec
from stoic.experiments.store import Stored


class Cell(NamedTuple):
    """A place in the grid, and its validation error."""

    alpha: float
    step: float
    error: float


def validation_error(stored: Stored, score: str) -> float:
    """Return the error at the end of a run; infinite where it diverged, failed or was given up."""
    if stored.outcome.ending != "finished" or not stored.outcome.points:
        return math.inf
    error = stored.outcome.points[-1][score]
    return error if math.isfinite(error) else math.inf


def chosen_cells(grid: Iterable[Stored], score: str, spec: Spec) -> dict[Setting, Cell]:
    """Return the best cell of each setting; of equal ones the smaller step, then the larger regularizer.

    A setting of which no cell has a finite error has none. Cells that are stored but not in the grid of the spec,
    which may have been smaller or larger before, do not count.
    """
    best: dict[Setting, Cell] = {}
    for stored in grid:
        run = stored.run
        if run.alpha not in spec.alphas or run.step not in spec.steps:
            continue
        cell = Cell(run.alpha, run.step, validation_error(stored, score))
        if cell.error < math.inf and _rank(cell) < _rank(best.get(run.setting, cell._replace(error=math.inf))):
            best[run.setting] = cell
    return best


def _rank(cell: Cell) -> tuple[float, float, float]:
    return cell.error, cell.step, -cell.alpha
