"""Dates and times of day in text, as numbers: days since 1970, hours since midnight."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stoic.protocols import Vector

Order: TypeAlias = Literal["day-first", "month-first"]

_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?(?:\s*(?P<half>[AaPp][Mm]))?"
_TIME = rf"(?:(?:T|,?\s+){_CLOCK}\s*(?P<zone>Z|UTC|GMT|[+-]\d{{2}}(?::?\d{{2}})?)?)?$"
_DAY, _MONTH, _NAME = r"(?P<day>\d{1,2})", r"(?P<month>\d{1,2})", r"(?P<name>[A-Za-z]{3,9})\.?"
_LONG, _SHORT = (
    r"(?P<year>\d{4})",
    r"(?P<year>\d{2}|\d{4})",
)  # years of two digits are read with strokes and names only
_FORMS = (
    rf"^{_LONG}-{_MONTH}(?:-{_DAY})?{_TIME}",
    rf"^{_LONG}/{_MONTH}/{_DAY}{_TIME}",
    rf"^{_LONG}\.{_MONTH}\.{_DAY}{_TIME}",
    rf"^{_DAY}\.\s?{_MONTH}\.\s?{_LONG}{_TIME}",  # with points the day is first in every country
    rf"^{_DAY}[-. ]\s?{_NAME}[-, ]\s?{_SHORT}{_TIME}",
    rf"^{_NAME}[- ]{_DAY},?[- ]{_LONG}{_TIME}",
)
_ORDERED = {
    "day-first": (rf"^{_DAY}/{_MONTH}/{_SHORT}{_TIME}", rf"^{_DAY}-{_MONTH}-{_LONG}{_TIME}"),
    "month-first": (rf"^{_MONTH}/{_DAY}/{_SHORT}{_TIME}", rf"^{_MONTH}-{_DAY}-{_LONG}{_TIME}"),
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PIVOT = 69  # years of two digits from here on are of the last century, as in POSIX


@dataclass(frozen=True)
class Dates:
    """Dates, with a time of day or without, as days since 1970-01-01 in UTC.

    ISO dates, ``31.1.2024``, ``31 Jan 2024``, ``January 31, 2024``, and ``1/31/2024`` in one order.

    Parameters
    ----------
    order : {"day-first", "month-first"}, default "month-first"
        Which number of ``03/04/2024`` or ``03-04-2024`` is the day.
    """

    order: Order = "month-first"

    def numbers(self, texts: Any) -> Vector:
        """Return the days, NaN where a text is no date.

        Examples
        --------
        >>> Dates().numbers(pa.array(["1970-01-02", "2 Jan 1970 12:00", "2/30/1970"])).tolist()
        [1.0, 1.5, nan]
        """
        days = np.full(len(texts), np.nan)
        for form in (*_FORMS, *_ORDERED[self.order]):
            found = pc.extract_regex(texts, form)
            if found.null_count < len(texts):
                rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
                days[rows] = _days(_Parts(found.take(pa.array(rows))))
        return days


@dataclass(frozen=True)
class Hours:
    """Times of day, such as ``14:30`` and ``2:30 pm``, as hours since midnight."""

    def numbers(self, texts: Any) -> Vector:
        """Return the hours, NaN where a text is no time of day."""
        found = pc.extract_regex(texts, rf"^{_CLOCK}$")
        return np.where(found.is_valid().to_numpy(zero_copy_only=False), _hours(_Parts(found)), np.nan)


class _Parts:
    """The parts that a pattern has found in texts."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self._names = {field.name for field in found.type}

    def texts(self, name: str) -> Any:
        """Return a part as text, empty where there is none."""
        return pc.coalesce(pc.struct_field(self._found, name), pa.scalar(""))

    def numbers(self, name: str, otherwise: float) -> Vector:
        """Return a part as numbers."""
        if name not in self._names:
            return np.full(len(self._found), otherwise)
        text = pc.replace_substring(self.texts(name), ",", ".")
        kept = pc.if_else(pc.equal(text, ""), str(otherwise), text)
        return np.asarray(pc.cast(kept, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)

    def months(self) -> Vector:
        """Return the months as numbers; NaN for what names none."""
        if "name" not in self._names:
            return self.numbers("month", 1.0)
        starts = pc.utf8_lower(pc.utf8_slice_codeunits(self.texts("name"), 0, 3))
        places = pc.index_in(starts, pa.array(_MONTHS))
        return np.asarray(pc.cast(places, pa.float64()).to_numpy(zero_copy_only=False) + 1.0, dtype=np.float64)


def _days(parts: _Parts) -> Vector:
    year, month, day = parts.numbers("year", 0.0), parts.months(), parts.numbers("day", 1.0)
    is_short = pc.equal(pc.utf8_length(parts.texts("year")), 2).to_numpy(zero_copy_only=False)
    year = year + np.where(is_short.astype(bool), np.where(year < _PIVOT, 2000.0, 1900.0), 0.0)
    is_month = (month >= 1.0) & (month <= 12.0)
    first = (12.0 * (year - 1970.0) + np.where(is_month, month, 1.0) - 1.0).astype(np.int64)
    start, end = (months.astype("datetime64[M]").astype("datetime64[D]") for months in (first, first + 1))
    is_day = (day >= 1.0) & (day <= (end - start).astype(np.float64))
    days = start.astype(np.float64) + day - 1.0 + (_hours(parts) - _zone(parts)) / 24.0
    return np.asarray(np.where(is_month & is_day, days, np.nan))


def _hours(parts: _Parts) -> Vector:
    """Return the time of day in hours; NaN for what is none."""
    hour, minute, second = (parts.numbers(name, 0.0) for name in ("hour", "minute", "second"))
    half = pc.utf8_lower(parts.texts("half"))
    is_pm, is_am = (_flags(pc.equal(half, name)) for name in ("pm", "am"))
    is_time = (minute < 60.0) & (second < 61.0)
    is_time &= np.where(is_pm | is_am, (hour >= 1.0) & (hour <= 12.0), hour < 24.0)
    hour = np.where(is_pm | is_am, hour % 12.0 + 12.0 * is_pm, hour)
    return np.asarray(np.where(is_time, hour + minute / 60.0 + second / 3600.0, np.nan))


def _zone(parts: _Parts) -> Vector:
    """Return how many hours the clock is before UTC."""
    found = pc.extract_regex(parts.texts("zone"), r"^(?P<sign>[+-])(?P<hour>\d{2}):?(?P<minute>\d{2})?$")
    away = _Parts(found)
    hours = away.numbers("hour", 0.0) + away.numbers("minute", 0.0) / 60.0
    return np.where(_flags(pc.equal(away.texts("sign"), "-")), -hours, hours)


def _flags(flags: Any) -> NDArray[np.bool_]:
    return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=bool)
