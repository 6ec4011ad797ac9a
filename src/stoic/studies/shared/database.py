"""The store of a study: a sqlite file with facts beside the runs, and a lock on its folder.

What is written in one transaction is there whole or not at all, whatever ends the process. The lock is the
system's: it dies with its process.
"""

import json
import sqlite3
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

from stoic.errors import InvalidParameter, StoicError
from stoic.studies.shared.timing import machine, versions

_LOCK = "store.lock"
_MAPPINGS = ("spec", "machine", "versions", "data")  # facts that are read by name
_MOST_SHOWN = 200
_OF_THE_SYSTEM = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
_FACTS = "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);"

AnyDatabase = TypeVar("AnyDatabase", bound="Database")


class DamagedStore(StoicError, RuntimeError):  # noqa: N818
    """A store that cannot be read."""


def number_of(value: Any) -> float:
    """Return a number from a store, where a column of numbers may hold anything; raise TypeError if it is none."""
    if type(value) not in {int, float}:
        raise TypeError(f"{str(value)[:_MOST_SHOWN]!r} is not a number")
    return cast("float", value)


def one_of(value: Any, known: Sequence[Any]) -> Any:
    """Return a word from a store that is among those known; raise ValueError if it is not."""
    if value not in known:
        raise ValueError(f"{str(value)[:_MOST_SHOWN]!r} is not one of {', '.join(known)}")
    return value


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
        with self.understood():
            self._db = sqlite3.connect(self.path, isolation_level=None, timeout=60.0)
        try:
            with self.understood():
                self._refuse_code()
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("PRAGMA foreign_keys = ON")
                self._db.executescript(_FACTS + self.tables)
        except BaseException:
            self._db.close()
            raise

    def _refuse_code(self) -> None:
        """Refuse views, triggers and the like, which run when a table is read or written."""
        found = self._db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        for kind, name, sql in found:
            if kind not in {"table", "index"} or str(sql).upper().startswith("CREATE VIRTUAL"):
                raise ValueError(f"it has a {kind} {name!r}, as stoic makes none")

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
        try:
            has_begun = "spec" in store.facts()
        except BaseException:
            store.close()
            raise
        if not has_begun:
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
        rows = self._rows("SELECT name, value FROM facts ORDER BY name")
        with self.understood():
            facts = {str(name): json.loads(value) for name, value in rows}
            for name in _MAPPINGS:
                if not isinstance(facts.get(name, {}), dict):
                    raise TypeError(f"its {name} is no mapping")
        return facts

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Raise `DamagedStore` where what was read makes no sense, OSError where the system refuses the file."""
        try:
            with self._usable():
                yield
        except StoicError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise self._damaged(error) from error

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:  # what was to be written is wrong, not the file
            raise
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _OF_THE_SYSTEM:
                raise OSError(f"{str(self.path)!r} cannot be used: {error}.") from error
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DamagedStore:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_SHOWN]
        return DamagedStore(
            f"{str(self.path)!r} is damaged, or no store that stoic wrote ({why}); put back a copy, or delete it "
            f"and run {self.command} again."
        )

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all that a query finds."""
        with self.understood():
            return self._db.execute(query, values).fetchall()

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
        if changed and self._rows("SELECT EXISTS (SELECT 1 FROM runs)")[0][0]:
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
        with self._usable():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back by itself
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
    try:
        lock = sqlite3.connect(folder / _LOCK, isolation_level=None, timeout=0.0)
    except sqlite3.DatabaseError as error:
        raise OSError(f"{str(folder / _LOCK)!r} cannot be used: {error}.") from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise InvalidParameter(
                f"another stoic is at work in {str(folder)!r}; wait for it, or give another folder with --out."
            ) from None
        raise DamagedStore(f"{str(folder / _LOCK)!r} is no lock of stoic ({error}); delete it.") from error
    try:
        yield
    finally:
        lock.close()
