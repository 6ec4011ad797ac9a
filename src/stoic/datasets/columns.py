"""Columns of a table as numbers, one-hot codes or group labels; imported only where pyarrow is needed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from stoic.errors import InvalidProblem
from stoic.protocols import Vector

Matrix: TypeAlias = Any  # a dense array or scipy.sparse.csr_array

_MOST_DENSE = 50  # one-hot columns of a dense matrix
_MANY_NUMBERS = 20  # distinct numbers in a column of text from which on the text among them is a slip
_EXACT = 2**53  # whole numbers up to here are float64 numbers


class Column:
    """One column of a file, and its errors, which name the file, the column and the row.

    Parameters
    ----------
    path : Path
    name : str
    values : pyarrow.ChunkedArray
    """

    def __init__(self, path: Path, name: str, values: Any) -> None:
        self.path, self.name = path, name
        self._is_category = pa.types.is_dictionary(values.type)
        self._values = values.cast(values.type.value_type) if self._is_category else values
        self._check_complete()

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers or booleans."""
        return not self._is_category and _is_number(self._values.type)

    def as_numbers(self) -> Vector:
        """Return the values as float64."""
        if not self.is_number:
            raise self._error(f"holds {self._values.type}, but numbers are required; choose or convert a column")
        try:
            numbers: Vector = self._values.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid as error:
            row = self._first(lambda value: abs(value) > _EXACT)
            raise self._error("is too large for a float64 to hold it exactly; scale the column", row) from error
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise self._error(f"is {numbers[row]}; remove the row or fill the value in", row)
        return numbers

    def as_codes(self) -> tuple[list[str], NDArray[np.int64]]:
        """Return the sorted categories, and the number of each row's."""
        if not self._is_category and not _is_text(self._values.type):
            raise self._error(
                f"holds {self._values.type}, but numbers, booleans or text are required; convert or remove it"
            )
        found: list[Any] = self._values.unique().to_pylist()
        numbers = {category: number for number, category in enumerate(sorted(found))}
        codes = np.array([numbers[value] for value in self._values.to_pylist()], dtype=np.int64)
        return [str(category) for category in numbers], codes

    def as_labels(self) -> NDArray[Any]:
        """Return the values as labels of groups: numbers and booleans as they are, all else as text."""
        if _is_number(self._values.type) and not pa.types.is_decimal(self._values.type):
            labels: NDArray[Any] = self._values.to_numpy()
            if not (labels == labels).all():  # noqa: PLR0124 - false of NaN only
                raise self._error("is nan; name a group for it", int(np.argmin(labels == labels)))  # noqa: PLR0124
            return labels
        try:
            return np.array(self._values.cast(pa.large_string()).to_pylist(), dtype=object)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise self._error(
                f"holds {self._values.type}, which cannot name groups; use text or numbers"
            ) from error

    def check_typed(self) -> None:
        """Refuse what reading text as numbers leaves behind: a line break within a value, a slip among numbers."""
        if not _is_text(self._values.type):
            return
        distinct: list[str] = self._values.unique().to_pylist()
        broken = {text for text in distinct if "\n" in text or "\r" in text}
        if broken:
            row = self._first(broken.__contains__)
            raise self._error("holds a line break; close the quotation mark, or remove the column", row)
        words = {text for text in distinct if not _reads_as_number(text)}
        if words and len(distinct) - len(words) > max(_MANY_NUMBERS, 9 * len(words)):
            row = self._first(words.__contains__)
            raise self._error("is no number, as almost all others are; correct it, or remove the column", row)

    def _check_complete(self) -> None:
        if self._values.null_count:
            row = int(np.argmax(self._values.is_null().to_numpy()))
            raise self._error("has no value there; remove the row or fill it in", row)

    def _first(self, is_meant: Callable[[Any], bool]) -> int | None:
        return next((row for row, value in enumerate(self._values.to_pylist()) if is_meant(value)), None)

    def _error(self, what: str, row: int | None = None) -> InvalidProblem:
        if row is None:
            return InvalidProblem(f"{self.path}: column {self.name!r} {what}.")
        value = self._values[row].as_py()
        shown = "" if value is None else f" ({str(value)[:40]!r})"
        return InvalidProblem(f"{self.path}: column {self.name!r}, row {row + 1}{shown}: {what}.")


def encode(columns: Sequence[Column]) -> tuple[Matrix, tuple[str, ...]]:
    """Return a matrix of the columns, text as one-hot codes, and the names of its columns.

    The matrix is CSR where the codes take more than 50 columns, else dense.
    """
    parts: list[_Part] = []
    names: list[str] = []
    n_codes = 0
    for column in columns:
        if column.is_number:
            parts.append(_Part(len(names), column.as_numbers()))
            names.append(column.name)
        else:
            categories, codes = column.as_codes()
            parts.append(_Part(len(names) + codes, np.ones(len(codes))))
            names += [f"{column.name}={category}" for category in categories]
            n_codes += len(categories)
    make = _as_csr if n_codes > _MOST_DENSE else _as_dense
    return make(parts, len(names)), tuple(names)


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


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
