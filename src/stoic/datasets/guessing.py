"""What the text of a column is: numbers, truth values, dates, or words; other columns help where it is open."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stoic.datasets.columns import Column
from stoic.datasets.dates import Dates, Hours, Order
from stoic.datasets.readings import GAPS, Mark, Numbers, Reading, TruthValues, units
from stoic.protocols import Vector

_FEW = 8  # spellings of yes and no
_TRUTHS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_SAMPLE = 200  # texts that show whether a reading is worth trying
_MANY_NUMBERS = 20  # distinct numbers in a column of text from which on the text among them is a slip
_BOTH: tuple[Mark, Mark] = ("point", "comma")
_ORDERS: tuple[Order, Order] = ("month-first", "day-first")


class Conventions(NamedTuple):
    """What the user says of numbers and dates in text; None where the file is to tell.

    Parameters
    ----------
    decimal : {"point", "comma"}, optional
        The decimal mark.
    dates : {"day-first", "month-first"}, optional
        The order in dates such as 03/04/2024.
    """

    decimal: Mark | None = None
    dates: Order | None = None


class _Guess(NamedTuple):
    """The readings that suit each text of a column, or a fault; `is_plain` if arrow reads the numbers."""

    column: Column
    texts: Any = None  # distinct, without what stands for a missing value
    readings: tuple[Reading, ...] = ()
    is_plain: bool = False
    fault: tuple[str, str] | None = None  # a text, and what is wrong with it


def read_texts(columns: Sequence[Column], told: Conventions, *, typed: bool = False) -> list[Column]:
    """Return columns whose text is read as numbers or dates where all of it can be, with notes on what was chosen.

    Parameters
    ----------
    columns : sequence of Column
    told : Conventions
    typed : bool, default False
        Whether the file has types of its own: then plain numbers in a column of text are text, such as codes.
    """
    guesses = [_guess(column, told, typed=typed) for column in columns]
    mark = told.decimal or _usual_mark(guesses)
    order = told.dates or _usual_order(guesses, mark)
    return [_decided(guess, mark, order) for guess in guesses]


def has_decimal_commas(columns: Sequence[Column]) -> bool:
    """Return whether numbers with a decimal comma are among the columns."""
    read = [column.texts for column in columns if column.reading == Numbers("comma")]
    return any(pc.any(pc.match_substring(texts, ",")).as_py() for texts in read)


def _guess(column: Column, told: Conventions, *, typed: bool) -> _Guess:
    if not column.is_text:
        return _Guess(column)
    if told.decimal != "comma" and column.plain is not None:
        return _Guess(column) if typed else _Guess(column, readings=(Numbers(),), is_plain=True)
    distinct = _without_gaps(column.texts)
    if _are_truths(distinct):
        return _Guess(column, distinct, (TruthValues(),))
    if not len(distinct):
        return _Guess(column)
    return _tried(column, distinct, told)


def _without_gaps(texts: Any) -> Any:
    distinct = pc.unique(texts.drop_null())
    return distinct.filter(pc.invert(pc.is_in(pc.utf8_lower(distinct), pa.array(GAPS, distinct.type))))


def _are_truths(distinct: Any) -> bool:
    if not 0 < len(distinct) <= _FEW:
        return False
    words = {str(text).lower() for text in distinct.to_pylist()}
    return words in _TRUTHS or words in ({"true"}, {"false"}, {"yes"}, {"no"})


def _tried(column: Column, distinct: Any, told: Conventions) -> _Guess:
    """Return the readings that suit every text, or the fault of the few that one does not suit."""
    readings: list[Reading] = [Numbers(mark) for mark in ((told.decimal,) if told.decimal else _BOTH)]
    readings += [*(Dates(order) for order in ((told.dates,) if told.dates else _ORDERS)), Hours()]
    sample = distinct[:_SAMPLE]
    likely = [one for one in readings if np.isfinite(one.numbers(sample)).mean() > 0.5]
    numbers = {one: ~np.isnan(one.numbers(distinct)) for one in likely}
    fitting = tuple(one for one in likely if numbers[one].all())
    if fitting:
        return _Guess(column, distinct, fitting, fault=_mixed_units(distinct, fitting[0]))
    best = max(likely, key=lambda one: int(numbers[one].sum()), default=None)
    if best is not None:
        n_read = int(numbers[best].sum())
        if n_read > max(_MANY_NUMBERS, 9 * (len(distinct) - n_read)):
            slip, what = distinct[int(np.argmin(numbers[best]))].as_py(), _WHAT[type(best)]
            return _Guess(
                column,
                fault=(slip, f"is no {what}, as almost all others are; correct it, or leave the column out"),
            )
    return _Guess(column)


_WHAT: dict[type, str] = {Numbers: "number", Dates: "date", Hours: "time of day"}


def _mixed_units(distinct: Any, reading: Reading) -> tuple[str, str] | None:
    """Return a text in another currency than the others, or without the percent sign that others have."""
    if not isinstance(reading, Numbers):
        return None
    found = units(distinct)
    kinds = [unit for unit in pc.unique(found).to_pylist() if unit or "%" in pc.unique(found).to_pylist()]
    if len(kinds) < 2:
        return None
    place = pc.index(found, pa.scalar(kinds[1])).as_py()
    with_other = f"with {kinds[1]!r}" if kinds[1] else "without a sign"
    return distinct[place].as_py(), f"is {with_other}, but other rows have {kinds[0] or 'none'!r}; convert them"


def _usual_mark(guesses: Sequence[_Guess]) -> Mark:
    """Return the decimal mark of most columns that have just one reading."""
    n_commas = sum(guess.readings[:1] == (Numbers("comma"),) for guess in guesses)
    if not n_commas:
        return "point"
    n_points = sum(
        Numbers("point") in guess.readings and not _is_readable(guess, Numbers("comma")) for guess in guesses
    )
    return "comma" if n_commas > n_points else "point"


def _usual_order(guesses: Sequence[_Guess], mark: Mark) -> Order:
    """Return the order of most columns with just one; without any, that of the countries of the decimal mark."""
    orders = [guess.readings[0].order for guess in guesses if _has_one_order(guess)]  # type: ignore[attr-defined]
    if orders:
        return max(_ORDERS, key=orders.count)
    return "day-first" if mark == "comma" else "month-first"


def _has_one_order(guess: _Guess) -> bool:
    return len(guess.readings) == 1 and isinstance(guess.readings[0], Dates)


def _is_readable(guess: _Guess, reading: Reading) -> bool:
    if not guess.is_plain or reading in guess.readings:
        return reading in guess.readings
    texts = pc.unique(guess.column.texts.drop_null())
    return not np.isnan(reading.numbers(texts)).any()


def _decided(guess: _Guess, mark: Mark, order: Order) -> Column:
    if guess.fault is not None:
        return guess.column.with_fault(*guess.fault)
    if not guess.readings:
        return guess.column
    for usual in (Numbers(mark), Dates(order)):
        if usual in guess.readings or (isinstance(usual, Numbers) and mark == "comma" and guess.is_plain):
            chosen = usual if _is_readable(guess, usual) else guess.readings[0]
            break
    else:
        chosen = guess.readings[0]
    return guess.column.read_as(chosen, _note(guess, chosen))


def _note(guess: _Guess, chosen: Reading) -> str:
    """Return what a reader of the file should know of the choice; nothing for numbers that need none."""
    if isinstance(chosen, TruthValues) or (guess.is_plain and chosen == Numbers()):
        return ""
    texts = guess.texts if guess.texts is not None else pc.unique(guess.column.texts.drop_null())
    values = chosen.numbers(texts)
    others = [one for one in _rivals(chosen) if _is_readable(guess, one)]
    for other in others:
        differs = np.flatnonzero(values != other.numbers(texts))
        if len(differs):
            return _said(guess.column.name, texts, values, chosen, int(differs[0]), other)
    place = _worth_showing(texts, chosen)
    return "" if place is None else _said(guess.column.name, texts, values, chosen, place, None)


def _rivals(chosen: Reading) -> list[Reading]:
    if isinstance(chosen, Numbers):
        return [Numbers(mark) for mark in _BOTH if mark != chosen.decimal]
    return [Dates(order) for order in _ORDERS if order != chosen.order] if isinstance(chosen, Dates) else []


def _worth_showing(texts: Any, chosen: Reading) -> int | None:
    """Return the place of a text that is more than digits and a decimal mark."""
    if not isinstance(chosen, Numbers):
        return 0
    plain = r"^[+-]?\d*\.?\d*$" if chosen.decimal == "point" else r"^[+-]?\d*,?\d*$"
    decorated = pc.invert(pc.match_substring_regex(texts, plain))
    place = int(pc.index(decorated, pa.scalar(True)).as_py())
    return place if place >= 0 else None


def _said(name: str, texts: Any, values: Vector, chosen: Reading, place: int, other: Reading | None) -> str:
    text, value = texts[place].as_py(), values[place]
    if isinstance(chosen, Dates):
        day = np.datetime64(int(value), "D")
        said = f"Column {name!r} holds dates: {text!r} is {day}, the number {value:.10g} (days since 1970-01-01)"
        return said + (
            f"; --dates {other.order} takes the day from the other place." if isinstance(other, Dates) else "."
        )
    if isinstance(chosen, Hours):
        return f"Column {name!r} holds times: {text!r} is read as the number {value:.4g} (hours since midnight)."
    said = f"Column {name!r}: {text!r} is read as the number {value:.12g}"
    return said + (f"; --decimal {other.decimal} reads it otherwise." if isinstance(other, Numbers) else ".")
