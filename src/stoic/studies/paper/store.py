"""The store of an experiment: one sqlite file, one row per run and one per point of its curve.

A run is written in one transaction when it has ended, so a store that a kill or a full disk leaves behind holds
whole runs only.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from stoic.studies.paper.runs import Ending, Outcome, Run, Setting
from stoic.studies.shared.database import Database, number_of, one_of

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, phase TEXT NOT NULL, loss TEXT NOT NULL, temperature REAL NOT NULL,
    regularizer TEXT NOT NULL, method TEXT NOT NULL, alpha REAL NOT NULL, step REAL NOT NULL,
    repetition INTEGER NOT NULL, ending TEXT NOT NULL, message TEXT NOT NULL, samples INTEGER NOT NULL,
    seconds REAL NOT NULL, truncated_y REAL NOT NULL, truncated_z REAL NOT NULL);
CREATE TABLE IF NOT EXISTS points (
    key TEXT NOT NULL REFERENCES runs (key) ON DELETE CASCADE, samples INTEGER NOT NULL, seconds REAL NOT NULL,
    stage INTEGER NOT NULL, truncated_y REAL NOT NULL, truncated_z REAL NOT NULL, scores TEXT NOT NULL,
    PRIMARY KEY (key, samples));
"""
_INSERT = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COUNTS = ("samples", "seconds", "stage", "truncated_y", "truncated_z")


class Stored(NamedTuple):
    """A run and its outcome."""

    run: Run
    outcome: Outcome


class Store(Database):
    """The runs of one experiment in a folder."""

    name, tables = "store.sqlite", _TABLES
    study, command = "experiment", "stoic reproduce"

    def add(self, run: Run, outcome: Outcome) -> None:
        """Keep a run that has ended, in place of an earlier one of the same name."""
        setting = run.setting
        names = setting.loss, setting.temperature, setting.regularizer, setting.method
        cell = run.alpha, run.step, run.repetition
        counts = outcome.samples, outcome.seconds, outcome.truncated_y, outcome.truncated_z
        ended = outcome.ending, outcome.message, *counts
        with self._transaction():
            self._db.execute("DELETE FROM runs WHERE key = ?", (run.key,))
            self._db.execute(_INSERT, (run.key, run.phase, *names, *cell, *ended))
            points = [_row(run.key, point) for point in outcome.points]
            self._db.executemany("INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?)", points)

    def known(self, *, but_failed: bool = False) -> set[str]:
        """Return the names of the runs that are kept, on request without those that failed."""
        left_out = "failed" if but_failed else ""
        return {key for (key,) in self._rows("SELECT key FROM runs WHERE ending != ?", (left_out,))}

    def runs(self, phase: str) -> list[Stored]:
        """Return the runs of a phase in the order of their names."""
        points: dict[str, list[dict[str, float]]] = {}
        of_phase = "SELECT points.* FROM points JOIN runs USING (key) WHERE phase = ? ORDER BY key, points.samples"
        with self.understood():
            for key, *counts, scores in self._rows(of_phase, (phase,)):
                point = dict(zip(_COUNTS, counts, strict=True)) | json.loads(scores)
                points.setdefault(key, []).append({name: number_of(value) for name, value in point.items()})
            rows = self._rows("SELECT * FROM runs WHERE phase = ? ORDER BY key", (phase,))
            return [_stored(row, points.get(row[0], [])) for row in rows]


def _row(key: str, point: Mapping[str, float]) -> tuple[Any, ...]:
    scores = {name: value for name, value in point.items() if name not in (*_COUNTS, "evaluations")}
    return (key, *(point[name] for name in _COUNTS), json.dumps(scores, sort_keys=True))


def _stored(row: tuple[Any, ...], points: list[dict[str, float]]) -> Stored:
    _, phase, loss, temperature, regularizer, method, alpha, step, repetition, *ended = row
    run = Run(phase, Setting(loss, temperature, regularizer, method), alpha, step, repetition)
    ending, message, *numbers = ended
    samples, seconds, truncated_y, truncated_z = map(number_of, numbers)
    ending = one_of(ending, get_args(Ending))
    return Stored(run, Outcome(ending, str(message), int(samples), seconds, truncated_y, truncated_z, points))
