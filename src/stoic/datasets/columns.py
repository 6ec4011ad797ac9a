"""Columns of a table as numbers, codes or group labels; imported only where pyarrow is needed."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stoic.errors import InvalidProblem
from stoic.protocols import Vector

_MOST_SHOWN = 5  # categories that a message lists
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

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers or booleans."""
        return not self._is_category and _is_number(self._values.type)

    @property
    def n_missing(self) -> int:
        """Rows without a value; NaN is none."""
        return int(self._values.is_null(nan_is_null=True).to_numpy().sum()) if self.is_number else self._n_null

    @property
    def _n_null(self) -> int:
        return int(self._values.null_count)

    def typical(self) -> float | str:
        """Return the value to fill in: the median of numbers, else the most frequent category."""
        self._check_any()
        if self.is_number:
            numbers = self._values.drop_null().cast(pa.float64()).to_numpy()
            return float(np.median(numbers[~np.isnan(numbers)]))
        counts = Counter(value for value in self._values.to_pylist() if value is not None)
        return str(max(sorted(counts), key=counts.__getitem__))

    def as_numbers(self, fill: float | None = None) -> Vector:
        """Return the values as float64, `fill` where one is missing."""
        if not self.is_number:
            raise self._error(f"holds {self._values.type}, but numbers are required; choose or convert a column")
        if fill is None:
            self._check_complete()
        try:
            numbers: Vector = self._values.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid as error:
            row = self._first(lambda value: value is not None and abs(value) > _EXACT)
            raise self._error("is too large for a float64 to hold it exactly; scale the column", row) from error
        if fill is not None:
            numbers = np.where(np.isnan(numbers), fill, numbers)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise self._error(f"is {numbers[row]}; remove the row or fill the value in", row)
        return numbers

    def categories(self) -> list[str]:
        """Return the sorted categories."""
        self._check_any()
        if not self._is_category and not _is_text(self._values.type):
            raise self._error(
                f"holds {self._values.type}, but numbers, booleans or text are required; convert or remove it"
            )
        found: list[Any] = self._values.unique().to_pylist()
        return [str(category) for category in sorted(one for one in found if one is not None)]

    def as_codes(self, categories: Sequence[str], fill: str | None = None) -> NDArray[np.int64]:
        """Return the number of each row's category, that of `fill` where it is missing."""
        if fill is None:
            self._check_complete()
        numbers = {category: number for number, category in enumerate(categories)}
        known = [fill if value is None else str(value) for value in self._values.to_pylist()]
        unknown = next((row for row, value in enumerate(known) if value not in numbers), None)
        if unknown is not None:
            shown = ", ".join(map(repr, list(categories)[:_MOST_SHOWN]))
            raise self._error(f"is none of the categories that the model was fitted with ({shown})", unknown)
        return np.array([numbers[str(value)] for value in known], dtype=np.int64)

    def as_labels(self) -> NDArray[Any]:
        """Return the values as labels of groups: numbers and booleans as they are, all else as text."""
        self._check_complete()
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

    def as_given(self) -> list[Any]:
        """Return the values as they were read, None where there is none."""
        return list(self._values.to_pylist())

    def check_typed(self) -> None:
        """Refuse what reading text as numbers leaves behind: a line break within a value, a slip among numbers."""
        if not _is_text(self._values.type):
            return
        distinct: list[str] = self._values.drop_null().unique().to_pylist()
        broken = {text for text in distinct if "\n" in text or "\r" in text}
        if broken:
            row = self._first(broken.__contains__)
            raise self._error("holds a line break; close the quotation mark, or remove the column", row)
        words = {text for text in distinct if not _reads_as_number(text)}
        if words and len(distinct) - len(words) > max(_MANY_NUMBERS, 9 * len(words)):
            row = self._first(words.__contains__)
            raise self._error("is no number, as almost all others are; correct it, or remove the column", row)

    def _check_any(self) -> None:
        if self.n_missing == len(self._values):
            raise self._error("has no value in any row; remove it")

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
