"""The store of a study: a sqlite file with facts beside the runs, and a lock on its folder.

What is written in one transaction is there whole or not at all, whatever ends the process. The lock is the
system's: it dies with its process.
"""

import json
import sqlite3
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from stoic.errors import InvalidParameter, StoicError
from stoic.studies.shared.timing import machine, versions

_LOCK = "store.lock"
_FACTS = "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"

AnyDatabase = TypeVar("AnyDatabase", bound="Database")


class DamagedStore(StoicError, RuntimeError):  # noqa: N818
    """A store that cannot be read."""


class Database:
    """A file with facts, and with tables that a subclass names, one of which is called runs.

    Parameters
    ----------
    folder : Path
        Where the file is, or is made.
    """

    name: ClassVar[str]
    """The name of the file."""

    tables: ClassVar[str]
    """The statements that make the tables, unless they exist."""

    study: ClassVar[str]
    """The word for what the file holds."""

    command: ClassVar[str]
    """The command that makes it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / self.name
        self._db = sqlite3.connect(self.path, isolation_level=None, timeout=60.0)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.executescript(_FACTS + self.tables)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise DamagedStore(
                f"{str(self.path)!r} is not a store of stoic: {error}; use another folder."
            ) from error

    @classmethod
    def of_study(cls, folder: Path) -> Self:
        """Return the store of the study in a folder.

        Raises
        ------
        InvalidParameter
            If there is none in the folder, or it has not begun.
        """
        if not (folder / cls.name).is_file():
            raise InvalidParameter(f"{str(folder)!r} has no {cls.name}; give the --out folder of {cls.command}.")
        store = cls(folder)
        if "spec" not in store.facts():
            store.close()
            raise InvalidParameter(f"the store in {str(folder)!r} holds no {cls.study}; run {cls.command} first.")
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def set_fact(self, name: str, value: Any) -> None:
        """Keep a fact about the experiment, in place of an earlier one of the same name."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def facts(self) -> dict[str, Any]:
        """Return all facts about the experiment."""
        return {name: json.loads(value) for name, value in self._db.execute("SELECT * FROM facts ORDER BY name")}

    def claim(self, settings: Mapping[str, Any], command: str, *, free: Container[str]) -> None:
        """Keep the settings, the command, versions and machine; refuse where runs have other settings.

        Parameters
        ----------
        settings : mapping
            As JSON has them.
        command : str
        free : container of str
            Settings that may differ, since no single run depends on them.

        Raises
        ------
        InvalidParameter
            If there are runs, and another setting differs.
        """
        before = self.facts().get("spec", {})
        changed = [name for name in before if name not in free and before[name] != settings.get(name)]
        if changed and self._db.execute("SELECT EXISTS (SELECT 1 FROM runs)").fetchone()[0]:
            was = ", ".join(f"{name}={before[name]!r}" for name in changed)
            folder = str(self.path.parent)
            raise InvalidParameter(
                f"{folder!r} holds an experiment with {was}; give these settings, or another folder with --out."
            )
        facts = {"spec": dict(settings), "command": command, "versions": versions(), "machine": machine()}
        for name, value in facts.items():
            self.set_fact(name, value)

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
