"""Encodings of table columns as matrix columns, to be applied to new rows in the same way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stoic.datasets.columns import Column
from stoic.datasets.readings import Reading, Words, reading_from_json, reading_to_json
from stoic.errors import InvalidProblem
from stoic.inners.designs import Matrix
from stoic.protocols import Vector

_LARGE = 1 << 30  # bytes of a dense matrix below which it is never made sparse
_GAIN = 4  # how many times smaller a sparse one has to be


@dataclass(frozen=True)
class Code:
    """One column: a number, or a zero or one for each category; and what is filled in where a value is missing.

    Parameters
    ----------
    name : str
    categories : tuple of str, optional
        Without them it is a number.
    fill : float or str, optional
        What stands in where a value is missing; without it such a row is refused.
    reading : Reading, optional
        How text becomes a number.
    indicator : bool, default False
        Whether a column of its own says where a value was missing.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    reading: Reading | None = None
    indicator: bool = False

    @property
    def names(self) -> list[str]:
        """The names of its columns in the matrix."""
        names = [self.name] if self.categories is None else [f"{self.name}={one}" for one in self.categories]
        return [*names, f"{self.name} is missing"] if self.indicator else names

    def as_json(self) -> dict[str, Any]:
        """Return the code as values that JSON can hold."""
        reading = None if self.reading is None else reading_to_json(self.reading)
        return {**self.__dict__, "reading": reading}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Code":
        """Return the code from what `as_json` returned."""
        categories = None if told["categories"] is None else tuple(told["categories"])
        reading = None if told.get("reading") is None else reading_from_json(told["reading"])
        return cls(told["name"], categories, told["fill"], reading, bool(told.get("indicator", False)))


@dataclass(frozen=True)
class Encoding:
    """The codes of all columns, in order.

    The matrix is dense, but for one of more than 1 GiB that takes less than a quarter as CSR.
    """

    codes: tuple[Code, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], *, imputes: bool = False) -> "Encoding":
        """Return the encoding of columns: numbers as they are, text by its categories.

        Parameters
        ----------
        columns : sequence of Column
        imputes : bool, default False
            Fill in the median of numbers and the most frequent category, and add a column of zeros and ones to
            each that lacks a value; else a missing value is refused.
        """

        def code(column: Column) -> Code:
            fill = column.typical() if imputes else None
            indicator = imputes and column.n_missing > 0
            if column.is_number:
                return Code(column.name, None, fill, column.reading, indicator)
            return Code(column.name, tuple(column.categories()), fill, None, indicator)

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
        parts, start = [], 0
        for code, column in zip(self.codes, self.ordered(columns), strict=True):
            parts += _parts_of(code, column, start)
            start += len(code.names)
        n_entries = sum(np.count_nonzero(part.values) for part in parts)
        n_rows = len(columns[0])
        n_sparse, n_dense = 12 * n_entries + 4 * n_rows, 8 * n_rows * start
        return (_as_csr if n_dense > max(_LARGE, _GAIN * n_sparse) else _as_dense)(parts, n_rows, start)

    def ordered(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns in the order of the codes, their text read as the codes say; others are refused."""
        by_name = {column.name: column for column in columns}
        self._check_names(by_name, columns)
        return [
            by_name[code.name].read_as(code.reading if code.categories is None else Words()) for code in self.codes
        ]

    def _check_names(self, by_name: Mapping[str, Column], columns: Sequence[Column]) -> None:
        wanted = {code.name: None for code in self.codes}  # in order
        for what, names in (
            ("lacks the column", [name for name in wanted if name not in by_name]),
            ("has a column that the model was not fitted with", [name for name in by_name if name not in wanted]),
        ):
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise InvalidProblem(f"{columns[0].path} {what}: {names[0]!r}{more}.")

    def as_json(self) -> list[dict[str, Any]]:
        """Return the encoding as values that JSON can hold."""
        return [code.as_json() for code in self.codes]

    @classmethod
    def from_json(cls, told: Sequence[Mapping[str, Any]]) -> "Encoding":
        """Return the encoding from what `as_json` returned."""
        return cls(tuple(Code.from_json(one) for one in told))


@dataclass(frozen=True, slots=True)
class _Part:
    """A number in each row: in one column, or in the column that the row's code says."""

    place: int | NDArray[np.int64]
    values: Vector


def _parts_of(code: Code, column: Column, start: int) -> list[_Part]:
    if code.categories is None:
        parts = [_Part(start, column.as_numbers(code.fill))]  # type: ignore[arg-type]
    else:
        places = start + column.as_codes(code.categories, code.fill)  # type: ignore[arg-type]
        parts = [_Part(places, np.ones(len(places)))]
    if code.indicator:
        parts.append(_Part(start + len(code.names) - 1, column.is_missing.astype(np.float64)))
    return parts


def _as_dense(parts: Sequence[_Part], n_rows: int, n_columns: int) -> NDArray[np.float64]:
    X = np.zeros((n_rows, n_columns))
    for part in parts:
        if isinstance(part.place, int):
            X[:, part.place] = part.values
        else:
            X[np.arange(n_rows), part.place] = part.values
    return X


def _as_csr(parts: Sequence[_Part], n_rows: int, n_columns: int) -> Any:
    rows = [np.flatnonzero(part.values) for part in parts]
    places = [np.broadcast_to(part.place, n_rows)[used] for part, used in zip(parts, rows, strict=True)]
    values = np.concatenate([part.values[used] for part, used in zip(parts, rows, strict=True)])
    entries = values, (np.concatenate(rows).astype(np.int32), np.concatenate(places).astype(np.int32))
    X = sparse.coo_array(entries, shape=(n_rows, n_columns)).tocsr()
    X.sort_indices()
    return X
