"""Columns of a table as numbers, codes or group labels; imported only where pyarrow is needed."""

import contextlib
import copy
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stoic.datasets.arrow_types import as_floats, is_date, is_moment, is_number, is_text, usual
from stoic.datasets.dates import Dates, Hours
from stoic.datasets.readings import GAPS, Numbers, Reading, TruthValues, Words
from stoic.errors import InvalidProblem
from stoic.protocols import Vector

_MOST_SHOWN = 5  # categories that a message lists
_EXACT = 2**53  # whole numbers up to here are float64 numbers


class Column:
    """One column of a file, and its errors, which name the file, the column and the row.

    Parameters
    ----------
    path : Path
    name : str
    values : pyarrow.ChunkedArray
        Of any type; text is read as its reading says, by default as words.

    Attributes
    ----------
    reading : Reading or None
        How text becomes numbers; None for other types.
    note : str
        What a reader of the file should know of the reading, if anything.
    """

    def __init__(self, path: Path, name: str, values: Any) -> None:
        self.path, self.name = path, name
        self._is_category = pa.types.is_dictionary(values.type)
        self._values = usual(values.cast(values.type.value_type) if self._is_category else values)
        self.is_text = is_text(self._values.type) and not self._is_category
        if self.is_text:
            self._values = pc.utf8_trim_whitespace(self._values)
        self.reading: Reading | None = Words() if self.is_text else None
        self.note = ""
        self._fault: tuple[str, str] | None = None
        self._rows: NDArray[np.intp] | None = None  # of the file, where not all are there

    def read_as(self, reading: Reading | None, note: str = "") -> "Column":
        """Return the column with another reading of its text; of other types as it is."""
        if not self.is_text or reading is None or (reading == self.reading and self._fault is None):
            return self
        return self._changed(reading=reading, note=note, _fault=None)

    def with_fault(self, text: str, what: str) -> "Column":
        """Return the column with an error that its use raises."""
        return self._changed(_fault=(text, what))

    def take(self, rows: NDArray[np.intp]) -> "Column":
        """Return some rows; errors still count those of the file."""
        kept = rows if self._rows is None else self._rows[rows]
        taken = self._changed(_values=self._values.take(pa.array(rows)), _rows=kept)
        taken.__dict__.pop("plain", None)
        return taken

    def _changed(self, **changes: Any) -> "Column":
        other = copy.copy(self)
        for name in ("_numbers", "is_missing"):  # which the reading decides
            other.__dict__.pop(name, None)
        other.__dict__.update(changes)
        return other

    @cached_property
    def plain(self) -> Vector | None:
        """The values of text that is nothing but numbers with a decimal point; NaN where one is missing."""
        try:
            return as_floats(self._values) if self.is_text else None
        except pa.ArrowInvalid:
            return None

    def __len__(self) -> int:
        return len(self._values)

    @property
    def texts(self) -> Any:
        """The text as it stands in the file, without blanks around it."""
        return self._values

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers, booleans, dates or times, or text that reads as such."""
        if self.is_text:
            return not isinstance(self.reading, Words) and self._fault is None
        return not self._is_category and (is_number(self._values.type) or is_moment(self._values.type))

    @property
    def is_date(self) -> bool:
        """Whether the values are dates."""
        return isinstance(self.reading, Dates) or is_date(self._values.type)

    @property
    def is_truth(self) -> bool:
        """Whether the values are true or false, yes or no."""
        return isinstance(self.reading, TruthValues) or pa.types.is_boolean(self._values.type)

    @cached_property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which rows have no value; NaN is none, and neither is a sign such as ? among numbers."""
        if self.plain is not None and self.reading == Numbers():
            return np.isnan(self.plain)
        flags = self._values.is_null(nan_is_null=pa.types.is_floating(self._values.type))
        if self.is_text and self.is_number:
            lower = pc.utf8_lower(self._values)
            flags = pc.or_(flags, pc.is_in(lower, pa.array(GAPS, lower.type)))
        return np.asarray(flags.to_numpy(), dtype=bool)

    @property
    def n_missing(self) -> int:
        """Rows without a value."""
        return int(self.is_missing.sum())

    @property
    def is_constant(self) -> bool:
        """Whether all rows have one value."""
        if self.n_missing or not (self.is_text or self.is_number or self._is_category):
            return False
        if self.plain is not None:
            return bool((self.plain == self.plain[0]).all())
        return bool(pc.all(pc.equal(self._values, self._values[0])).as_py())

    @property
    def is_whole(self) -> bool:
        """Whether the values are whole numbers of up to 64 bits."""
        return self._are_whole() if self.is_text else pa.types.is_integer(self._values.type)

    def counts_rows(self) -> bool:
        """Return whether the values are whole numbers that grow from row to row, from 0 or 1, hardly with gaps."""
        if str(self._values[0].as_py()) not in {"0", "1"} or self.n_missing or not self.is_whole:
            return False
        steps = np.diff(self._values.cast(pa.int64()).to_numpy())
        return bool((steps > 0).all() and steps.sum() <= 2 * len(self))

    def examples(self) -> list[str]:
        """Return up to three of the values that differ."""
        return [str(value) for value in self._values.drop_null().unique()[:3].to_pylist()]

    def n_distinct(self) -> int:
        """Return how many different values there are."""
        return int(pc.count_distinct(self._values, mode="only_valid").as_py())

    def typical(self) -> float | str:
        """Return the value to fill in: the median of numbers, else the most frequent category."""
        self._check_any()
        if self.is_number:
            return float(np.median(self.present()))
        counts = pc.value_counts(self._values.drop_null())
        pairs = [(str(one["values"]), int(one["counts"])) for one in counts.to_pylist()]
        return max(sorted(pairs), key=lambda pair: pair[1])[0]

    def present(self) -> Vector:
        """Return the numbers of the rows that have one."""
        return self._numbers[~np.isnan(self._numbers)]

    def as_numbers(self, fill: float | None = None) -> Vector:
        """Return the values as float64, `fill` where one is missing."""
        self.check()
        if not self.is_number:
            raise self._error(f"holds {self._kind}, but numbers are required; choose or convert a column")
        numbers = self._numbers
        if fill is None:
            self._check_complete()
        else:
            numbers = np.where(np.isnan(numbers), fill, numbers)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise self._error(f"is {numbers[row]}; remove the row or fill the value in", row)
        return numbers

    def categories(self) -> list[str]:
        """Return the sorted categories."""
        self.check()
        self._check_any()
        found: list[Any] = self._values.unique().to_pylist()
        return [str(category) for category in sorted(one for one in found if one is not None)]

    def as_codes(self, categories: Sequence[str], fill: str | None = None) -> NDArray[np.int64]:
        """Return the number of each row's category, that of `fill` where it is missing."""
        if fill is None:
            self._check_complete()
        texts = self._values if self.is_text else self._values.cast(pa.string())
        texts = texts if fill is None else pc.fill_null(texts, fill)
        codes = pc.index_in(texts, value_set=pa.array(list(categories), texts.type))
        if codes.null_count:
            shown = ", ".join(map(repr, list(categories)[:_MOST_SHOWN]))
            row = int(np.argmax(codes.is_null().to_numpy()))
            raise self._error(f"is none of the categories that the model was fitted with ({shown})", row)
        return np.asarray(codes.to_numpy(), dtype=np.int64)

    def as_labels(self) -> NDArray[Any]:
        """Return the values as labels of groups: numbers and booleans as they are, all else as text."""
        if self.is_text:
            return self._text_labels()
        self._check_complete()
        if is_number(self._values.type) and not pa.types.is_decimal(self._values.type):
            labels: NDArray[Any] = self._values.to_numpy()
            return labels
        try:
            return np.array(self._values.cast(pa.large_string()).to_pylist(), dtype=object)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise self._error(f"holds {self._kind}, which cannot name groups; use text or numbers") from error

    def as_given(self) -> list[Any]:
        """Return the values as they were read, None where there is none."""
        return list(self._values.to_pylist())

    def _text_labels(self) -> NDArray[Any]:
        """Return plain numbers as numbers, unless a number such as 007 is a name; else the text."""
        if self._values.null_count:  # what stands for a missing number, such as ?, is a name here
            raise self._no_value(int(np.argmax(self._values.is_null().to_numpy())))
        for kind in (pa.int64(), pa.float64()):
            with contextlib.suppress(pa.ArrowInvalid):
                numbers: NDArray[Any] = self._values.cast(kind).to_numpy()
                is_name = pc.any(pc.match_substring_regex(self._values, r"^[+-]?0\d")).as_py()
                if not is_name and np.isfinite(numbers).all():
                    return numbers
        return np.array(self._values.to_pylist(), dtype=object)

    @property
    def _kind(self) -> str:
        return str(self._values.type).removeprefix("large_")

    @cached_property
    def _numbers(self) -> Vector:
        """The values as float64, NaN where one is missing."""
        if self.is_text:
            return self._read_numbers()
        try:
            return as_floats(self._values)
        except pa.ArrowInvalid as error:
            raise self._too_large(as_floats(self._values, safe=False)) from error

    def _read_numbers(self) -> Vector:
        reading: Any = self.reading
        if self.plain is not None and reading == Numbers():
            numbers = self.plain
        else:
            numbers = reading.numbers(self._values.combine_chunks())
        unread = np.isnan(numbers) & ~self.is_missing
        if unread.any():
            raise self._error(f"is {_WANTED[type(reading)]}, as in the rows of the fit", int(np.argmax(unread)))
        if isinstance(reading, Numbers) and (np.abs(numbers) >= _EXACT).any() and self._are_whole():
            raise self._too_large(numbers)
        return numbers

    def _are_whole(self) -> bool:
        """Whether all texts are whole numbers of up to 64 bits."""
        with contextlib.suppress(pa.ArrowInvalid):
            self._values.cast(pa.int64())
            return True
        return False

    def _too_large(self, numbers: Vector) -> InvalidProblem:
        row = int(np.argmax(np.abs(numbers) >= _EXACT))
        return self._error(
            "is too large for a float64 to hold it exactly; scale the column, or drop it if it only names rows",
            row,
        )

    def check(self) -> None:
        """Raise the error of a column of another type, or of one that is read as numbers but for a few words."""
        if not (self.is_number or self.is_text or self._is_category):
            raise self._error(
                f"holds {self._kind}, but numbers, dates, booleans or text are required; convert or remove it"
            )
        if self._fault is not None:
            text, what = self._fault
            row = next(row for row, value in enumerate(self._values.to_pylist()) if value == text)
            raise self._error(what, row)

    def _check_any(self) -> None:
        if self.is_missing.all():
            raise self._error("has no value in any row; remove it")

    def _check_complete(self) -> None:
        self._check_any()
        if self.is_missing.any():
            raise self._no_value(int(np.argmax(self.is_missing)))

    def _no_value(self, row: int) -> InvalidProblem:
        return self._error("has no value there; remove the row or fill it in", row)

    def _error(self, what: str, row: int | None = None) -> InvalidProblem:
        if row is None:
            return InvalidProblem(f"{self.path}: column {self.name!r} {what}.")
        value = self._values[row].as_py()
        shown = "" if value is None else f" ({str(value)[:40]!r})"
        place = row if self._rows is None else int(self._rows[row])
        return InvalidProblem(f"{self.path}: column {self.name!r}, row {place + 1}{shown}: {what}.")


_WANTED: dict[type, str] = {
    Numbers: "no number",
    Dates: "no date",
    Hours: "no time of day",
    TruthValues: "neither yes nor no",
}
