"""Encodings of table columns as matrix columns, to be applied to new rows in the same way."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.datasets.columns import Column
from stoic.errors import InvalidProblem
from stoic.inners.designs import Matrix
from stoic.protocols import Vector

_MOST_DENSE = 50  # one-hot columns of a dense matrix


@dataclass(frozen=True)
class Code:
    """One column: a number, or a zero or one for each category; and what is filled in where a value is missing.

    Without categories it is a number.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None

    @property
    def names(self) -> list[str]:
        """The names of its columns in the matrix."""
        return [self.name] if self.categories is None else [f"{self.name}={one}" for one in self.categories]


@dataclass(frozen=True)
class Encoding:
    """The codes of all columns, in order.

    The matrix is CSR where categories take more than 50 columns, else dense.
    """

    codes: tuple[Code, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], *, imputes: bool = False) -> "Encoding":
        """Return the encoding of columns: numbers as they are, text by its categories.

        Parameters
        ----------
        columns : sequence of Column
        imputes : bool, default False
            Fill in the median of numbers and the most frequent category; else a missing value is refused.
        """

        def code(column: Column) -> Code:
            fill = column.typical() if imputes else None
            return Code(column.name, None if column.is_number else tuple(column.categories()), fill)

        return cls(tuple(code(column) for column in columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        return tuple(name for code in self.codes for name in code.names)

    def apply(self, columns: Sequence[Column]) -> Matrix:
        """Return the matrix of columns with these names, in any order; others are refused.

        Raises
        ------
        InvalidProblem
            If a column is missing or surplus, or has a value that cannot be encoded.
        """
        by_name = {column.name: column for column in columns}
        self._check_names(by_name, columns)
        parts, start = [], 0
        for code in self.codes:
            column = by_name[code.name]
            if code.categories is None:
                parts.append(_Part(start, column.as_numbers(code.fill)))  # type: ignore[arg-type]
            else:
                places = start + column.as_codes(code.categories, code.fill)  # type: ignore[arg-type]
                parts.append(_Part(places, np.ones(len(places))))
            start += len(code.names)
        n_codes = sum(len(code.names) for code in self.codes if code.categories is not None)
        return (_as_csr if n_codes > _MOST_DENSE else _as_dense)(parts, start)

    def _check_names(self, by_name: Mapping[str, Column], columns: Sequence[Column]) -> None:
        wanted = [code.name for code in self.codes]
        for what, names in (
            ("lacks the column", [name for name in wanted if name not in by_name]),
            ("has a column that the model was not fitted with", [name for name in by_name if name not in wanted]),
        ):
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise InvalidProblem(f"{columns[0].path} {what}: {names[0]!r}{more}.")

    def as_json(self) -> list[dict[str, Any]]:
        """Return the encoding as values that JSON can hold."""
        return [asdict(code) for code in self.codes]

    @classmethod
    def from_json(cls, told: Sequence[Mapping[str, Any]]) -> "Encoding":
        """Return the encoding from what `as_json` returned."""
        return cls(
            tuple(
                Code(one["name"], None if one["categories"] is None else tuple(one["categories"]), one["fill"])
                for one in told
            )
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A number in each row: in one column, or in the column that the row's code says."""

    place: int | NDArray[np.int64]
    values: Vector


def _as_dense(parts: Sequence[_Part], n_columns: int) -> NDArray[np.float64]:
    n_rows = len(parts[0].values)
    X = np.zeros((n_rows, n_columns))
    for part in parts:
        X[np.arange(n_rows), part.place] = part.values
    return X


def _as_csr(parts: Sequence[_Part], n_columns: int) -> Any:
    n_rows = len(parts[0].values)
    rows = np.tile(np.arange(n_rows), len(parts))
    places = np.concatenate([np.broadcast_to(part.place, n_rows) for part in parts])
    values = np.concatenate([part.values for part in parts])
    used = values != 0.0
    entries = values[used], (rows[used].astype(np.int32), places[used].astype(np.int32))
    X = sparse.coo_array(entries, shape=(n_rows, n_columns)).tocsr()
    X.sort_indices()
    return X
