"""How the text of a column becomes numbers: plain ones, money, percentages; yes and no; or no numbers at all."""

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stoic.datasets.dates import Dates, Hours
from stoic.protocols import Vector

Mark: TypeAlias = Literal["point", "comma"]

GAPS = (
    "?",
    "-",
    "--",
    "---",
    "–",
    "—",
    ".",
    "..",
    "...",
    "*",
    "na",
    "n.a.",
    "n/a",
    "nan",
    "null",
    "none",
    "missing",
    "unknown",
)
"""What stands for a missing value among numbers or dates, in small letters."""

_YES, _NO = ("true", "yes", "t", "y"), ("false", "no", "f", "n")
_CODES = "USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|Rs\\.?|kr\\.?"
_CURRENCY = rf"(?:[A-Z]{{0,2}}\p{{Sc}}|{_CODES})"
_SIGN = "[+\\-−]"
_BLANK = r"[ \x{a0}\x{202f}]"
_GROUPS = {  # what stands between thousands, by the decimal mark
    "point": rf"(?:,|['’]|{_BLANK})",
    "comma": rf"(?:\.|['’]|{_BLANK})",
}
_DECIMAL = {"point": r"\.", "comma": ","}


class Reading(Protocol):
    """A way to read the text of a column as numbers."""

    def numbers(self, texts: Any) -> Vector:
        """Return the numbers, NaN where a text is missing or cannot be read so."""
        ...


@dataclass(frozen=True)
class Words:
    """Text that stays text."""

    def numbers(self, texts: Any) -> Vector:
        """Return NaN for every text."""
        return np.full(len(texts), np.nan)


@dataclass(frozen=True)
class TruthValues:
    """Yes and no, true and false, and their first letters: 1 and 0."""

    def numbers(self, texts: Any) -> Vector:
        """Return the numbers, NaN where a text is another."""
        lower = pc.utf8_lower(texts)
        is_true, is_false = (pc.is_in(lower, pa.array(words, lower.type)) for words in (_YES, _NO))
        return np.where(_bools(is_true), 1.0, np.where(_bools(is_false), 0.0, np.nan))


@dataclass(frozen=True)
class Numbers:
    """Numbers with a decimal point or comma, also as money or percentages, with thousands apart.

    ``$1,234.50``, ``1.234,50 €`` and ``(1 234)`` are 1234.5, 1234.5 and −1234; ``12 %`` is 12.

    Parameters
    ----------
    decimal : {"point", "comma"}, default "point"
    """

    decimal: Mark = "point"

    def numbers(self, texts: Any) -> Vector:
        """Return the numbers, NaN where a text is no number."""
        if self.decimal == "point":
            try:
                return _floats(pc.cast(texts, pa.float64()))
            except pa.ArrowInvalid:
                pass
        plain = pc.replace_substring_regex(bare(texts), _SIGN_FIRST, r"\1")
        plain = pc.replace_substring(plain, "−", "-")
        kept = pc.if_else(pc.match_substring_regex(plain, _pattern(self.decimal)), plain, None)
        digits = pc.replace_substring_regex(kept, _GROUPS[self.decimal], "")
        return _floats(pc.cast(pc.replace_substring(digits, ",", "."), pa.float64()))


_SIGN_FIRST = r"^\+(.)"  # which is nothing to arrow's own reader


@functools.cache
def _pattern(decimal: Mark) -> str:
    group, mark = _GROUPS[decimal], _DECIMAL[decimal]
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{2,3}})*{group}\d{{3}})"
    return rf"^[+-]?(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?$"


def bare(texts: Any) -> Any:
    """Return texts without signs of currency and percent, and with a minus for brackets."""
    inner = pc.replace_substring_regex(texts, r"^\((.*)\)$", r"-\1")
    front = pc.replace_substring_regex(inner, rf"^({_SIGN}?)\s*{_CURRENCY}\s*({_SIGN}?)", r"\1\2")
    return pc.replace_substring_regex(front, rf"\s*(?:{_CURRENCY}|%)$", "")


def units(texts: Any) -> Any:
    """Return the sign of currency or percent of each text; an empty one where there is none."""
    found = pc.extract_regex(texts, rf"(?P<unit>{_CURRENCY}|%)")
    return pc.coalesce(pc.struct_field(found, "unit"), pa.scalar(""))


def _floats(numbers: Any) -> Vector:
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _bools(flags: Any) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=bool)


_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Words, TruthValues, Numbers, Dates, Hours)}


def reading_to_json(reading: Reading) -> dict[str, Any]:
    """Return a reading as values that JSON can hold."""
    return {"kind": type(reading).__name__, **asdict(reading)}  # type: ignore[call-overload]


def reading_from_json(told: Mapping[str, Any]) -> Reading:
    """Return the reading from what `reading_to_json` returned."""
    reading: Reading = _KINDS[told["kind"]](**{name: value for name, value in told.items() if name != "kind"})
    return reading
