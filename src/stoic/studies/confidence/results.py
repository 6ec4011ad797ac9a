"""Results of a confidence study, from its store alone: the runs of each method, and rates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stoic.protocols import Vector
from stoic.studies.confidence.methods import BASELINES, PLAIN_RIVALS
from stoic.studies.confidence.quantiles import Band, growth, quantile_band, rate, ratio_band, shown_deltas
from stoic.studies.confidence.runs import LawSetting, MethodCell, rate_settings_of
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.confidence.store import Failure, RunsByCell, TailsStore
from stoic.studies.confidence.tuning import chosen_cells

SHOWN = (0.5, 0.1, 0.01, 0.001)
"""The δ of tables, of which the first is that of the median."""


@dataclass(frozen=True, eq=False)
class MethodRuns:
    """The runs of a method in a setting: their gaps, and how they ended."""

    setting: LawSetting
    cell: MethodCell
    gaps: Vector
    diverged: int
    failed: int
    truncated_y: float
    truncated_z: float

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.cell.method

    @cached_property
    def quantiles(self) -> dict[float, Band]:
        """The quantiles that the number of runs can show, by δ."""
        return {delta: quantile_band(self.gaps, delta) for delta in shown_deltas(len(self.gaps))}

    def efficiency(self, spec: TailsSpec) -> float:
        """Return the mean gap over the least that there is (`GroupLaw.limit`); NaN where that says nothing."""
        limit = self.setting.law(spec).limit(self.setting.samples)
        return float(np.mean(self.gaps)) / limit if np.isfinite(limit) else np.nan

    @cached_property
    def growth(self) -> Band | None:
        """The exponent with which the quantiles grow."""
        return growth(self.gaps)

    def over(self, other: "MethodRuns", delta: float, other_delta: float | None = None) -> Band:
        """Return a quantile over one of another method, or of this one."""
        return ratio_band(self.gaps, delta, other.gaps, delta if other_delta is None else other_delta)


class Rate(NamedTuple):
    """The median gaps of a method against the samples of each group, and their slope on log scales."""

    noise: str
    method: str
    samples: tuple[int, ...]
    runs: tuple[int, ...]
    medians: tuple[Band, ...]
    slope: Band | None


class TailsResults(NamedTuple):
    """Results of a study: the spec, facts, the runs of each setting, rates, and runs that failed."""

    spec: TailsSpec
    facts: dict[str, Any]
    settings: dict[LawSetting, list[MethodRuns]]
    rates: list[Rate]
    n_done: int
    n_wanted: int
    failures: list[Failure]

    @property
    def methods(self) -> tuple[str, ...]:
        """All methods, those of the quantiles first."""
        return tuple(dict.fromkeys((*self.spec.methods, *self.spec.rate_methods)))

    def deepest(self, setting: LawSetting) -> float:
        """Return the smallest δ of tables for which all methods of a setting have runs enough."""
        fewest = min(len(sample.gaps) for sample in self.settings[setting])
        return min(shown_deltas(fewest, SHOWN), default=SHOWN[0])

    @property
    def baseline_method(self) -> str:
        """The name of the method that others are compared with."""
        return next((name for name in BASELINES if name in self.spec.methods), BASELINES[0])

    def baseline(self, setting: LawSetting) -> MethodRuns | None:
        """Return the runs that others are compared with, if there are some."""
        return next((one for one in self.settings[setting] if one.method == self.baseline_method), None)

    def best_rival(self, setting: LawSetting) -> MethodRuns | None:
        """Return the rival without a defense that has the lowest of the deepest quantiles, if there are some."""
        delta = self.deepest(setting)
        rivals = [one for one in self.settings[setting] if one.method in PLAIN_RIVALS and delta in one.quantiles]
        return min(rivals, key=lambda one: one.quantiles[delta].value, default=None)


def load_tails(folder: Path) -> TailsResults:
    """Return the results in a folder; raise InvalidParameter if there is no study."""
    with TailsStore.of_study(folder) as store:
        facts = store.facts()
        with store.understood():
            return _results(store, TailsSpec.model_validate(facts["spec"]), facts)


def _results(store: TailsStore, spec: TailsSpec, facts: dict[str, Any]) -> TailsResults:
    chosen = chosen_cells(store, spec)
    found = {
        setting: _method_runs(store.runs("tails", setting), setting, cells.values(), spec.runs)
        for setting, cells in chosen.items()
    }
    alone = [MethodCell(name) for name in spec.rate_methods]
    lengths = rate_settings_of(spec)
    by_length = [
        sample
        for setting in lengths
        for sample in _method_runs(store.runs("rates", setting), setting, alone, spec.rate_runs)
    ]
    wanted = len(chosen) * len(spec.methods) * spec.runs + len(lengths) * len(alone) * spec.rate_runs
    every = [*by_length, *(sample for samples in found.values() for sample in samples)]
    return TailsResults(
        spec,
        facts,
        {setting: samples for setting, samples in found.items() if samples},
        list(_rates(spec, by_length)),
        sum(len(sample.gaps) for sample in every),
        wanted,
        store.failures(),
    )


def _method_runs(
    runs: RunsByCell, setting: LawSetting, cells: Iterable[MethodCell], count: int
) -> list[MethodRuns]:
    found = []
    for cell in cells:
        outcomes = [stored.outcome for stored in runs.get(cell, []) if stored.number < count]
        if outcomes:
            endings = [outcome.ending for outcome in outcomes]
            shares = np.mean([outcome[-2:] for outcome in outcomes], axis=0)
            gaps = np.array([outcome.gap for outcome in outcomes])
            counts = endings.count("diverged"), endings.count("failed")
            found.append(MethodRuns(setting, cell, gaps, *counts, *map(float, shares)))
    return found


def _rates(spec: TailsSpec, samples: Sequence[MethodRuns]) -> Iterator[Rate]:
    for noise in spec.rate_noises:
        for method in spec.rate_methods:
            found = [one for one in samples if (one.setting.noise, one.method) == (noise, method)]
            if found:
                lengths = tuple(one.setting.samples for one in found)
                medians = tuple(quantile_band(one.gaps, 0.5) for one in found)
                slope = rate(lengths, [one.gaps for one in found])
                yield Rate(noise, method, lengths, tuple(len(one.gaps) for one in found), medians, slope)
