"""The store of a confidence study: one sqlite file, one row per run, written batch by batch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, get_args

from stoic.studies.confidence.runs import Ending, GapOutcome, Key, LawSetting, MethodCell, Part
from stoic.studies.shared.database import Database, number_of, one_of

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    part TEXT NOT NULL, noise TEXT NOT NULL, place TEXT NOT NULL, samples INTEGER NOT NULL,
    method TEXT NOT NULL, step REAL NOT NULL, number INTEGER NOT NULL, gap REAL NOT NULL, ending TEXT NOT NULL,
    message TEXT NOT NULL, truncated_y REAL NOT NULL, truncated_z REAL NOT NULL,
    PRIMARY KEY (part, noise, place, samples, method, step, number)) WITHOUT ROWID;
"""
_INSERT = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_OF = "SELECT {} FROM runs WHERE (part, noise, place, samples) = (?, ?, ?, ?)"


class NumberedOutcome(NamedTuple):
    """The number of a run, and its outcome."""

    number: int
    outcome: GapOutcome


RunsByCell: TypeAlias = Mapping[MethodCell, Sequence[NumberedOutcome]]


class Failure(NamedTuple):
    """Runs of a method that failed for the same reason."""

    part: Part
    setting: LawSetting
    method: str
    n_runs: int
    message: str


class TailsStore(Database):
    """The runs of one study in a folder."""

    name, tables = "tails.sqlite", _TABLES
    study, command = "study", "stoic tails"

    def add(self, outcomes: Iterable[tuple[Key, GapOutcome]]) -> None:
        """Keep the runs of a batch, all or none."""
        rows = [(key.part, *key.setting, *key.cell, key.number, *outcome) for key, outcome in outcomes]
        with self._transaction():
            self._db.executemany(_INSERT, rows)

    def known(self, part: Part, setting: LawSetting, *, but_failed: bool = False) -> set[Key]:
        """Return the runs of a setting that are kept, on request without those that failed."""
        where = _OF.format("method, step, number") + " AND ending != ?"
        left_out = "failed" if but_failed else ""
        return {
            Key(part, setting, MethodCell(method, step), number)
            for method, step, number in self._rows(where, (part, *setting, left_out))
        }

    def runs(self, part: Part, setting: LawSetting) -> dict[MethodCell, list[NumberedOutcome]]:
        """Return the runs of a setting by their cells, in the order of their numbers."""
        what = _OF.format("method, step, number, gap, ending, message, truncated_y, truncated_z")
        found: dict[MethodCell, list[NumberedOutcome]] = {}
        rows = self._rows(what + " ORDER BY number", (part, *setting))
        with self.understood():
            for method, step, number, gap, ending, message, *shares in rows:
                outcome = GapOutcome(
                    number_of(gap), one_of(ending, get_args(Ending)), str(message), *map(number_of, shares)
                )
                found.setdefault(MethodCell(method, step), []).append(NumberedOutcome(number, outcome))
        return found

    def failures(self) -> list[Failure]:
        """Return why runs failed, those alike in one row."""
        what = "SELECT part, noise, place, samples, method, count(*), message FROM runs WHERE ending = 'failed' "
        rows = self._rows(what + "GROUP BY part, noise, place, samples, method, message")
        return [Failure(row[0], LawSetting(*row[1:4]), *row[4:]) for row in rows]
