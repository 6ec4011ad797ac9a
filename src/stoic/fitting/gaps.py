"""Missing values of a table: how many there are, and which rows and columns a fit does without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stoic.datasets.columns import Column
from stoic.datasets.encoding import Encoding
from stoic.datasets.readings import Words
from stoic.errors import InvalidProblem
from stoic.reports.words import counted

Missing: TypeAlias = Literal["refuse", "drop", "impute"]

_MOST_SHOWN = 10


@dataclass(frozen=True)
class Gaps:
    """Missing values: in how many rows of each column, and in which rows.

    Parameters
    ----------
    counts : mapping of column names to numbers of rows
    rows : array of bool
    """

    counts: Mapping[str, int]
    rows: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "Gaps":
        """Return the gaps of columns, one at least."""
        counts, rows = {}, np.zeros(len(columns[0]), dtype=bool)
        for column in columns:
            if column.n_missing:
                counts[column.name] = column.n_missing
                rows |= column.is_missing
        return cls(counts, rows)

    @property
    def n_rows(self) -> int:
        """Rows that lack at least one value."""
        return int(self.rows.sum())

    def __str__(self) -> str:
        worst = sorted(self.counts.items(), key=lambda pair: -pair[1])
        more = f" and {counted(len(worst) - _MOST_SHOWN, 'more column')}" if len(worst) > _MOST_SHOWN else ""
        return ", ".join(f"{name!r}: {count:,}" for name, count in worst[:_MOST_SHOWN]) + more


def as_named(column: Column) -> Column:
    """Return a column of labels: what stands for a missing number, such as ?, is a name there."""
    return column.read_as(Words())


def rows_to_keep(
    path: Path, missing: Missing, features: Sequence[Column], roles: Sequence[Column]
) -> tuple[NDArray[np.intp] | None, list[str]]:
    """Return the rows to fit, None for all, and what is to be said of the others.

    Parameters
    ----------
    path : Path
    missing : {"refuse", "drop", "impute"}
        What is done with missing values; "impute" drops only rows whose target, group or weight is missing.
    features, roles : sequences of Column
        `roles` are target, group and weight.

    Raises
    ------
    InvalidProblem
        If values are missing and are to be refused, or no row is left.
    """
    n_rows = len(roles[0])
    needed, all_gaps = Gaps.of(roles), Gaps.of([*features, *roles])
    if not all_gaps.n_rows:
        return None, []
    if missing == "refuse":
        raise InvalidProblem(_refusal(path, all_gaps, needed))
    gaps = needed if missing == "impute" else all_gaps
    if needed.n_rows == n_rows:
        raise InvalidProblem(f"{path}: every row lacks target, group or weight ({needed}); name other columns.")
    if gaps.n_rows == n_rows:
        raise InvalidProblem(f"{path}: every row lacks a value ({gaps}); --drop a column, or --missing impute.")
    rows = np.flatnonzero(~gaps.rows)
    notes = []
    if gaps.n_rows:
        notes.append(f"{gaps.n_rows:,} of {n_rows:,} rows are dropped, as they lack a value ({gaps}).")
    filled = Gaps.of([column.take(rows) for column in features])
    if filled.n_rows:
        notes.append(
            f"--missing impute fills in medians and most frequent categories ({filled}); for each such column "
            "another one says where."
        )
    return rows, notes


def _refusal(path: Path, gaps: Gaps, needed: Gaps) -> str:
    n_rows, first = len(gaps.rows), int(np.argmax(gaps.rows)) + 1
    remedies = [f"--missing drop leaves these rows out and keeps {n_rows - gaps.n_rows:,}"]
    worst = max(set(gaps.counts).difference(needed.counts), key=gaps.counts.__getitem__, default=None)
    if worst is not None:
        dropped = f" and drops the {needed.n_rows:,} without target, group or weight" if needed.n_rows else ""
        remedies.append(f"--missing impute fills features in{dropped}")
        remedies.append(f"--drop {worst} leaves a column out")
    said = f"{path}: {gaps.n_rows:,} of {n_rows:,} rows lack a value ({gaps}); the first is row {first}."
    return f"{said} {'; '.join(remedies)}."


def notes_on_gaps(path: Path, encoding: Encoding, features: Sequence[Column]) -> list[str]:
    """Return what is to be said of missing values of rows to predict, whose columns are in the order of the codes.

    Raises
    ------
    InvalidProblem
        If the model was fitted without filling them in.
    """
    gaps = Gaps.of(features)
    if not gaps.n_rows:
        return []
    if any(code.fill is None for code in encoding.codes):
        raise InvalidProblem(
            f"{path}: {gaps.n_rows:,} of {len(gaps.rows):,} rows lack a value ({gaps}), but the model was fitted "
            "to whole rows; leave these rows out, or fit it with --missing impute."
        )
    unseen = [code.name for code in encoding.codes if code.name in gaps.counts and not code.indicator]
    if not unseen:
        return []
    new = Gaps({name: gaps.counts[name] for name in unseen}, gaps.rows)
    return [
        f"Columns that lacked no value at the fit lack some ({new}); they are filled in as if none were missing."
    ]
