"""Sections as plain text, their numbers under each other."""

import re
from collections.abc import Iterator, Sequence

from stoic.fitting.inspection import Section
from stoic.reports.text_tables import in_columns

_NUMBER = re.compile(r"[+−-]?[\d,.]+(e[+-]?\d+)?( %)?( ± .+)?( \[.+\])?|[–∞]|")


def text_of(sections: Sequence[Section]) -> Iterator[str]:
    """Yield sections as lines, with an empty one after each."""
    for section in sections:
        yield section.title
        rows = [section.head, *section.rows] if any(section.head) else list(section.rows)
        cells = [[str(cell) for cell in row] for row in rows]
        right = numbers_of(section) if any(section.head) else set()
        yield from (f"  {line}" for line in in_columns(_right_aligned(cells, right)).splitlines())
        yield from (f"  {note}" for note in section.notes)
        yield ""


def numbers_of(section: Section) -> set[int]:
    """Return the columns of a section, after the first, whose cells are all numbers."""
    columns = list(zip(*([str(cell) for cell in row] for row in section.rows), strict=True))
    return {j for j, column in enumerate(columns) if j and all(map(_NUMBER.fullmatch, column))}


def _right_aligned(rows: Sequence[Sequence[str]], right: set[int]) -> list[list[str]]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [[cell.rjust(widths[j]) if j in right else cell for j, cell in enumerate(row)] for row in rows]
