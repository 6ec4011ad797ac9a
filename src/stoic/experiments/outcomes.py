"""What a benchmark found: a figure's values or why there are none, and the report of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoic.experiments.targets import Target
from stoic.experiments.timing import Spread


@dataclass(frozen=True)
class Measured:
    """The values of a figure, one a repetition, and what they were computed from."""

    values: Sequence[float]
    detail: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """A figure with its values, or with the reason why there are none."""

    target: Target
    measured: Measured | None = None
    reason: str = ""
    failed: bool = False

    @property
    def spread(self) -> Spread | None:
        """The median and the extremes of the values."""
        return None if self.measured is None else Spread.of(self.measured.values)


@dataclass(frozen=True)
class Report:
    """What a benchmark found, and where."""

    size: str
    repetitions: int
    outcomes: tuple[Outcome, ...]
    machine: Mapping[str, object]
    versions: Mapping[str, str]

    def holds(self, outcome: Outcome) -> bool | None:
        """Whether a figure is as it must be; None if it was not measured, or not at full size."""
        if self.size != "full" or outcome.spread is None:
            return None
        return outcome.target.holds(outcome.spread.median)

    @property
    def failed(self) -> bool:
        """Whether a solve went wrong."""
        return any(outcome.failed for outcome in self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as numbers, strings, lists and dictionaries, ready for JSON."""
        head = {"size": self.size, "repetitions": self.repetitions}
        figures = {outcome.target.name: self._figure(outcome) for outcome in self.outcomes}
        return {**head, "machine": dict(self.machine), "versions": dict(self.versions), "figures": figures}

    def _figure(self, outcome: Outcome) -> dict[str, Any]:
        target = outcome.target
        figure = {"what": target.what, "must": target.must, "aim": target.aim or None}
        if outcome.measured is None or outcome.spread is None:
            return {**figure, "failed" if outcome.failed else "not_available": outcome.reason}
        found = {"values": list(outcome.measured.values), "detail": dict(outcome.measured.detail)}
        return {**figure, **outcome.spread._asdict(), "holds": self.holds(outcome), **found}
