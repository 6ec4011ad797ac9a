"""Rows of a table as text: CSV for programs, Markdown and plain columns for people."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from stoic.reports.visible import visible

Row = tuple[Any, ...]


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> str:
    r"""Return a CSV file.

    Examples
    --------
    >>> as_csv(["a", "b"], [(1, "x, y")])
    'a,b\n1,"x, y"\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    r"""Return rows in columns of plain text, one line a row whatever their texts hold.

    Examples
    --------
    >>> in_columns([["method", "gap"], ["rrosc", "1"]])
    'method  gap\nrrosc   1'
    """
    rows = [[visible(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a table in Markdown, which shows the texts as they are.

    Examples
    --------
    >>> markdown_table(["a"], [["x | y"]])
    '| a |\n| --- |\n| x \\| y |'
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_inert(text) for text in line)} |" for line in lines)


def _inert(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    text = visible(" ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = "".join(f"\\{sign}" if sign in "\\`*|" else sign for sign in text)
    return text.replace("](", "\\](")  # a link
