"""A summary of the results in numbers: one line per setting, and the methods that are ahead."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from stoic.studies.paper.results import SELECTIONS, Curve, Results
from stoic.studies.paper.runs import Run, Setting, settings_of
from stoic.studies.paper.selection import Cell
from stoic.studies.paper.spec import Spec
from stoic.studies.shared.statistics import Averages, averages


class Measures(NamedTuple):
    """Of the trials of a setting: final test errors, effort, and how often a step was truncated."""

    mse: Averages
    worst_group: Averages
    samples: float
    seconds: float
    truncated_y: float
    truncated_z: float


class SummaryLine(NamedTuple):
    """A setting at the cell that was chosen for it, or without one; `missing` trials have not been run."""

    setting: Setting
    cell: Cell | None
    measures: Measures | None
    ended: int
    diverged: int
    failed: int
    missing: int

    @property
    def remark(self) -> str:
        """A warning for a reader of the numbers: trials that failed or are missing."""
        if self.cell is None:
            return "no cell of the grid has a finite error yet"
        counts = {"failed": self.failed, "not run yet": self.missing}
        n = self.ended + self.failed + self.missing
        return ", ".join(f"{count} of {n} {what}" for what, count in counts.items() if count)

    @property
    def mean(self) -> float:
        """The mean of the final test errors; infinite where there is none."""
        return math.inf if self.measures is None else float(self.measures.mse.mean)

    @property
    def deviation(self) -> float:
        """The standard deviation of the final test errors; NaN where there is none."""
        return math.nan if self.measures is None else float(self.measures.mse.deviation)


class Verdict(NamedTuple):
    """The methods ahead with a regularizer: `lowest` in the mean, `next` after it, `steadiest` in the deviation.

    `without_mean` are lines of trials that have ended of which one is infinite.
    """

    regularizer: str
    lowest: SummaryLine | None
    next: SummaryLine | None
    steadiest: SummaryLine | None
    without_mean: tuple[SummaryLine, ...]


def selections(spec: Spec) -> tuple[str, ...]:
    """Return the ways of selection, the one that the figures are about first."""
    return (spec.selection, *(name for name in SELECTIONS if name != spec.selection))


def lines_of(results: Results, selection: str) -> list[SummaryLine]:
    """Return a line for each setting of the spec, in its order."""
    curves = {curve.setting: curve for curve in results.curves[selection]}
    cells = results.cells[selection]
    return [
        _line(results, setting, cells.get(setting), curves.get(setting)) for setting in settings_of(results.spec)
    ]


def _line(results: Results, setting: Setting, cell: Cell | None, curve: Curve | None) -> SummaryLine:
    if cell is None:
        return SummaryLine(setting, None, None, 0, 0, 0, 0)
    place = Run("trial", setting, cell.alpha, cell.step)
    failed = sum(replace(stored.run, repetition=0) == place for stored in results.failed)
    ended = 0 if curve is None else len(curve.trials)
    missing = max(0, results.spec.trials - ended - failed)
    if curve is None:
        return SummaryLine(setting, cell, None, 0, 0, failed, missing)
    return SummaryLine(setting, cell, _measures(curve), ended, curve.endings.get("diverged", 0), failed, missing)


def _measures(curve: Curve) -> Measures:
    outcomes = [stored.outcome for stored in curve.trials]
    return Measures(
        averages(curve.final("mse")),
        averages(curve.final("worst_group")),
        float(np.median([outcome.samples for outcome in outcomes])),
        float(np.median([outcome.seconds for outcome in outcomes])),
        float(np.mean([outcome.truncated_y for outcome in outcomes])),
        float(np.mean([outcome.truncated_z for outcome in outcomes])),
    )


def about_groups(results: Results) -> str:
    """Return a sentence where the error of the worst group says nothing new, since test rows are in one group."""
    curves = [curve for selected in results.curves.values() for curve in selected]
    is_same = all(
        np.allclose(curve.scores["mse"], curve.scores["worst_group"], equal_nan=True) for curve in curves
    )
    return "All test rows are in one group, so its error is the MSE." if curves and is_same else ""


def verdicts(results: Results) -> Iterator[Verdict]:
    """Yield who is ahead with each regularizer, for the selection, loss and temperature of the figures."""
    spec = results.spec
    lines = lines_of(results, spec.selection)
    for regularizer in spec.regularizers:
        wanted = spec.losses[0], spec.temperatures[0], regularizer
        yield _verdict(
            regularizer,
            [
                line
                for line in lines
                if (line.setting.loss, line.setting.temperature, line.setting.regularizer) == wanted
            ],
        )


def _verdict(regularizer: str, lines: list[SummaryLine]) -> Verdict:
    ended = [line for line in lines if line.measures is not None]
    by_mean = sorted((line for line in ended if math.isfinite(line.mean)), key=lambda line: line.mean)
    steady = [line for line in by_mean if math.isfinite(line.deviation)]
    return Verdict(
        regularizer,
        by_mean[0] if by_mean else None,
        by_mean[1] if len(by_mean) > 1 else None,
        min(steady, key=lambda line: line.deviation, default=None),
        tuple(line for line in ended if not math.isfinite(line.mean)),
    )
