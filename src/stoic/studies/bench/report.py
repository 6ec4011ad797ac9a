"""The report of a benchmark: the values of each metric, or the reason why there are none."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stoic.storage.atomic import replace_file
from stoic.studies.bench.targets import BenchTarget
from stoic.studies.shared.timing import Range


@dataclass(frozen=True)
class Measurement:
    """The values of a metric, one a repetition, and what they were computed from."""

    values: Sequence[float]
    detail: Mapping[str, float]


@dataclass(frozen=True)
class MetricOutcome:
    """A metric with its values, or with the reason why there are none."""

    target: BenchTarget
    measured: Measurement | None = None
    reason: str = ""
    failed: bool = False

    @property
    def spread(self) -> Range | None:
        """The median and the extremes of the values."""
        return None if self.measured is None else Range.of(self.measured.values)


@dataclass(frozen=True)
class Report:
    """The outcomes of a benchmark, and the machine that it ran on.

    Parameters
    ----------
    size : "small" or "full"
    repetitions : int
    outcomes : tuple of MetricOutcome
        In the order in which they were found.
    machine, versions : mappings
        Where it was measured, and with what.
    pending : tuple of str, optional
        Figures that were asked for and are not among the outcomes: the benchmark goes on, or was interrupted.
    """

    size: str
    repetitions: int
    outcomes: tuple[MetricOutcome, ...]
    machine: Mapping[str, object]
    versions: Mapping[str, str]
    pending: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no metric is pending."""
        return not self.pending

    def with_outcome(self, outcome: MetricOutcome) -> "Report":
        """Return the report with one more metric, which is pending no longer."""
        pending = tuple(name for name in self.pending if name != outcome.target.name)
        return replace(self, outcomes=(*self.outcomes, outcome), pending=pending)

    def holds(self, outcome: MetricOutcome) -> bool | None:
        """Whether a metric is as it must be; None if it was not measured, or not at full size."""
        if self.size != "full" or outcome.spread is None:
            return None
        return outcome.target.holds(outcome.spread.median)

    @property
    def failed(self) -> bool:
        """Whether a solve went wrong."""
        return any(outcome.failed for outcome in self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as numbers, strings, lists and dictionaries, ready for JSON."""
        return {
            "size": self.size,
            "repetitions": self.repetitions,
            "complete": self.complete,
            "pending": list(self.pending),
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "figures": {outcome.target.name: self._metric(outcome) for outcome in self.outcomes},
        }

    def write(self, path: Path) -> None:
        """Write `as_dict` as JSON in one move: at any moment the file is whole, the old one or the new one."""
        replace_file(path, json.dumps(self.as_dict(), indent=2) + "\n")

    def _metric(self, outcome: MetricOutcome) -> dict[str, Any]:
        target = outcome.target
        known = {"what": target.what, "must": target.must, "aim": target.aim or None}
        if outcome.measured is None or outcome.spread is None:
            return {**known, "failed" if outcome.failed else "not_available": outcome.reason}
        found = {"values": list(outcome.measured.values), "detail": dict(outcome.measured.detail)}
        return {**known, **outcome.spread._asdict(), "holds": self.holds(outcome), **found}
