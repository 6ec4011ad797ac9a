"""What separates the columns of a text file, and their names: told from its first rows."""

import csv
import io
from collections import Counter
from typing import NamedTuple

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAMPLE = 1 << 20  # bytes
_MOST_ROWS = 200
_EXCEL = b"sep="  # the first line of some files, for Excel


class Header(NamedTuple):
    """The separator of a file, the names of its columns as they stand there, and the bytes before them."""

    separator: str
    names: tuple[str, ...]
    start: int = 0


def find_header(content: bytes, *, likely: str = ",") -> Header:
    r"""Return the separator with which the rows have as many values as there are names, and those names.

    Parameters
    ----------
    content : bytes
        A file in UTF-8.
    likely : str, default ","
        The separator where the rows do not tell.

    Examples
    --------
    >>> find_header(b"rent;town\n900,5;Ulm\n1200,25;Bonn\n")
    Header(separator=';', names=('rent', 'town'), start=0)
    """
    first, _, _ = content.partition(b"\n")
    told = first.strip().strip(b'"')
    if told[:4].lower() == _EXCEL and len(told) == 5 and chr(told[4]) in SEPARATORS:
        separator = chr(told[4])
        return Header(separator, tuple(_records(_sample(content[len(first) + 1 :]), separator)[0]), len(first) + 1)
    text = _sample(content)
    found = {separator: _records(text, separator) for separator in sorted(SEPARATORS, key=likely.__ne__)}
    best = max(found, key=lambda separator: _fit(found[separator]))
    return Header(best, tuple(found[best][0]))


def _sample(content: bytes) -> str:
    """Return whole lines from the beginning, two at least."""
    end = len(content)
    if end > _SAMPLE:
        end = content.find(b"\n", max(_SAMPLE, content.find(b"\n") + 1)) + 1 or end
    return content[:end].decode(errors="ignore")


def _records(text: str, separator: str) -> list[list[str]]:
    """Return the first rows that are not blank; a name alone where they cannot be told."""
    found: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if record:
                found.append(record)
            if len(found) == _MOST_ROWS:
                break
    except csv.Error:  # a value of more than 131,072 signs: not this separator, or an open quotation mark
        found = found[:1]
    return found or [[text.strip()]]


def _fit(records: list[list[str]]) -> tuple[bool, bool, float, int]:
    """Return how well a separator explains the rows; the larger the better."""
    n_names, lengths = len(records[0]), Counter(map(len, records[1:]))
    if not lengths:
        return n_names > 1, True, 1.0, n_names
    usual, n_times = max(lengths.items(), key=lambda pair: pair[1])
    return max(n_names, usual) > 1, n_names == usual, n_times / (len(records) - 1), usual
