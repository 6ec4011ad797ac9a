"""The store of an experiment: one sqlite file, one row per run and one per point of its curve.

A run is written in one transaction when it has ended, so a store that a kill or a full disk leaves behind holds
whole runs only. It is locked while an experiment writes to it, by the system: a lock dies with its process.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from stoic.errors import InvalidParameter, StoicError
from stoic.experiments.runs import Outcome, Run, Setting

NAME, _LOCK, _VERSION = "store.sqlite", "store.lock", 1

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
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


class DamagedStore(StoicError, RuntimeError):  # noqa: N818
    """A store that cannot be read."""


class Stored(NamedTuple):
    """A run and how it went."""

    run: Run
    outcome: Outcome


class Store:
    """The runs of one experiment in a folder.

    Parameters
    ----------
    folder : Path
        Where the file is, or is made.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._db = sqlite3.connect(self.path, isolation_level=None, timeout=60.0)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise DamagedStore(f"{str(self.path)!r} is no store of stoic: {error}; use another folder.") from error

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

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
        return {key for (key,) in self._db.execute("SELECT key FROM runs WHERE ending != ?", (left_out,))}

    def runs(self, phase: str) -> list[Stored]:
        """Return the runs of a phase in the order of their names."""
        points: dict[str, list[dict[str, float]]] = {}
        of_phase = "SELECT points.* FROM points JOIN runs USING (key) WHERE phase = ? ORDER BY key, points.samples"
        for key, *counts, scores in self._db.execute(of_phase, (phase,)):
            point = dict(zip(_COUNTS, counts, strict=True)) | json.loads(scores)
            points.setdefault(key, []).append(point)
        rows = self._db.execute("SELECT * FROM runs WHERE phase = ? ORDER BY key", (phase,))
        return [_stored(row, points.get(row[0], [])) for row in rows]

    def set_fact(self, name: str, value: Any) -> None:
        """Keep a fact about the experiment, in place of an earlier one of the same name."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def facts(self) -> dict[str, Any]:
        """Return what is known about the experiment."""
        return {name: json.loads(value) for name, value in self._db.execute("SELECT * FROM facts ORDER BY name")}

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; refuse where another process has it.

    Raises
    ------
    InvalidParameter
        If another process is at work in the folder.
    """
    lock = sqlite3.connect(folder / _LOCK, isolation_level=None, timeout=0.0)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        lock.close()
        raise InvalidParameter(
            f"another stoic is at work in {str(folder)!r}; wait for it, or give another folder with --out."
        ) from None
    try:
        yield
    finally:
        lock.close()


def _row(key: str, point: Mapping[str, float]) -> tuple[Any, ...]:
    scores = {name: value for name, value in point.items() if name not in (*_COUNTS, "evaluations")}
    return (key, *(point[name] for name in _COUNTS), json.dumps(scores, sort_keys=True))


def _stored(row: tuple[Any, ...], points: list[dict[str, float]]) -> Stored:
    _, phase, loss, temperature, regularizer, method, alpha, step, repetition, *ended = row
    run = Run(phase, Setting(loss, temperature, regularizer, method), alpha, step, repetition)
    ending, message, samples, seconds, truncated_y, truncated_z = ended
    return Stored(run, Outcome(ending, message, samples, seconds, truncated_y, truncated_z, points))
