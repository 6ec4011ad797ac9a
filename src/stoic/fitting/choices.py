"""What a table is used for without being told: columns that are left out, targets that are classes, and why."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.datasets.columns import Column
from stoic.errors import InvalidProblem
from stoic.protocols import Vector

_FEW_ROWS = 20  # below which nothing is said of values that all differ
_MANY_CATEGORIES = 100
_MOST_CLASSES = 100  # of text that nobody called classes
_SAMPLE = 1_000  # numbers that show whether there are more than a few
_MARKS = 5  # different numbers that may stand for classes
_LARGE_SHARE = 0.3  # of rows with a text of their own
_MOST_SHOWN = 10
_NAMES_ROWS = re.compile(r"(?:^|[_ .-])(?:id|uuid|guid)$", re.IGNORECASE)
_KEEP = "--keep-column keeps a column."


class Features(NamedTuple):
    """The columns to use, the names of those left out, and sentences about both."""

    columns: list[Column]
    left_out: tuple[str, ...]
    notes: list[str]

    def of_rows(self, rows: NDArray[np.intp], keep: Collection[str]) -> "Features":
        """Return what is left to use where only some rows are."""
        again = choose_features([column.take(rows) for column in self.columns], keep)
        notes = list(dict.fromkeys((*self.notes, *again.notes)))
        return Features(again.columns, (*self.left_out, *again.left_out), notes)


def choose_features(columns: Sequence[Column], keep: Collection[str]) -> Features:
    """Leave out columns that cannot help a model of rows to come, unless they are in `keep`.

    These are columns without a value or with just one, names of rows (numbers that count them, text that differs
    in each, whole numbers called id that do), and text that differs in more than 30 % of the rows.
    """
    wanted = set(keep)
    reasons = {column.name: "" if column.name in wanted else _reason(column) for column in columns}
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    used = [column for column in columns if not reasons[column.name]]
    notes = [f"Left out, as {reason}: {listed(names)}. {_KEEP}" for reason, names in found.items() if reason]
    wide = [column for column in used if _n_categories(column) > _MANY_CATEGORIES]
    notes += fold(
        [
            f"Column {column.name!r} has {_n_categories(column):,} categories, each a column of the matrix; "
            f"--drop {column.name} leaves it out."
            for column in wide
        ],
        "columns have many categories",
    )
    return Features(used, tuple(name for name, reason in reasons.items() if reason), notes)


def _reason(column: Column) -> str:
    """Return why a column is left out, if it is."""
    column.check()
    if column.n_missing == len(column):
        return "no row has a value"
    if column.is_constant:
        return "all rows have the same value"
    if len(column) < _FEW_ROWS:
        return ""
    if column.is_number:
        return "its values only count or name the rows" if _names_rows(column) else ""
    return _reason_of_text(column.n_distinct(), len(column) - column.n_missing)


def _reason_of_text(n_categories: int, n_values: int) -> str:
    if n_categories == n_values:
        return "every row has a text of its own"
    is_rare = n_categories > max(_LARGE_SHARE * n_values, _FEW_ROWS)
    return f"more than {_LARGE_SHARE:.0%} of the rows have a text of their own" if is_rare else ""


def _names_rows(column: Column) -> bool:
    if column.counts_rows():
        return True
    is_called_so = _NAMES_ROWS.search(column.name) or column.name.endswith(("Id", "ID"))
    return bool(is_called_so) and column.is_whole and column.n_distinct() == len(column)


def _n_categories(column: Column) -> int:
    return 0 if column.is_number else column.n_distinct()


class TargetKind(NamedTuple):
    """Whether a target is a class, and a sentence about it if nobody said so."""

    classifies: bool
    notes: tuple[str, ...] = ()


def kind_of_target(column: Column, classifies: bool | None) -> TargetKind:
    """Return whether the values of a column are classes; by default text, truth values, 0 and 1, and -1 and 1.

    Raises
    ------
    InvalidProblem
        If nobody said, and they are dates, or text with more than 100 different values.
    """
    if classifies is not None:
        return TargetKind(classifies)
    column.check()
    if column.is_date:
        raise InvalidProblem(
            f"{column.path}: column {column.name!r} holds dates, which are no target; predict a number, such as "
            "the days from one date to the other (--regress takes the days since 1970-01-01)."
        )
    if column.is_number:
        return (
            _two_classes(column.name, " and ".join(sorted(column.examples())))
            if column.is_truth
            else kind_of_numbers(column.name, column.present())
        )
    n_classes = column.n_distinct()
    n_values = len(column) - column.n_missing
    if n_classes > _MOST_CLASSES or n_classes > max(_FEW_ROWS, n_values / 2):
        raise InvalidProblem(
            f"{column.path}: the target {column.name!r} is text with {n_classes:,} different values, such as "
            f"{listed(column.examples())}: too many to be classes. If they are numbers, write all as numbers; "
            "--classify makes classes of them all the same."
        )
    return TargetKind(True)


def kind_of_numbers(name: str, y: Vector) -> TargetKind:
    """Return whether numbers are the marks of two classes: 0 and 1, or -1 and 1."""
    values = np.unique(y[:_SAMPLE])
    values = np.unique(y) if len(values) <= _MARKS else values
    if values.tolist() not in ([0.0, 1.0], [-1.0, 1.0]):
        return TargetKind(False, _on_marks(name, values))
    return _two_classes(name, f"{values[0]:g} and {values[1]:g}")


def _on_marks(name: str, values: Vector) -> tuple[str, ...]:
    """Return a note where numbers may be the marks of classes: a few whole ones."""
    if not 1 < len(values) <= _MARKS or (values != np.round(values)).any():
        return ()
    *first, last = (f"{value:g}" for value in values)
    which = f"{', '.join(first)} and {last}"
    return (
        f"The target {name!r} holds just {which}, which are taken as numbers; --classify takes them as classes.",
    )


def _two_classes(name: str, values: str) -> TargetKind:
    said = f"The target {name!r} holds {values}, which are taken as classes; --regress takes them as numbers."
    return TargetKind(True, (said,))


def notes_on_groups(name: str, groups: NDArray[np.object_]) -> list[str]:
    """Return what is to be said of groups that hardly any two rows share, or that all do."""
    n_groups = len(set(groups.tolist()))
    if n_groups == 1:
        return [
            f"All rows are of the one group {groups[0]!r} of the column {name!r}: there is nothing to protect."
        ]
    if len(groups) < _FEW_ROWS or n_groups <= len(groups) / 2:
        return []
    return [
        f"Nearly every row is a group of its own: {name!r} has {n_groups:,} values in {len(groups):,} rows. A "
        "group needs rows to be protected; let --group name a column with fewer values."
    ]


def notes_on_readings(columns: Sequence[Column]) -> list[str]:
    """Return what is to be said of text that is read as numbers or dates."""
    notes = [
        column.note or f"Column {column.name!r} holds dates: they are numbers of days since 1970-01-01."
        for column in columns
        if column.note or column.is_date
    ]
    return fold(notes, "columns are read as numbers in such a way")


def fold(lines: Sequence[str], what: str) -> list[str]:
    """Return at most ten lines, and one on how many more there are."""
    more = [f"{len(lines) - _MOST_SHOWN:,} more {what}."] if len(lines) > _MOST_SHOWN else []
    return [*lines[:_MOST_SHOWN], *more]


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them, at most ten."""
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    return ", ".join(map(repr, names[:_MOST_SHOWN])) + more


def no_features(path: Path, notes: Sequence[str]) -> InvalidProblem:
    """Return the error for a table without a column that can be used."""
    return InvalidProblem(f"{path} has no column left for features; leave out fewer. {' '.join(notes)}".rstrip())
