"""CSV files and their kin: columns of text, whatever separates and encodes them."""

import csv as python_csv
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from stoic.datasets.compressed import open_bytes
from stoic.datasets.decoding import as_utf8
from stoic.datasets.separators import SEPARATORS, Header, find_header
from stoic.errors import InvalidProblem

_LARGEST_BLOCK = 2**31 - 1


class DelimitedFile(NamedTuple):
    """Columns of text with their names, the separator between them and the encoding of the file."""

    table: Any
    separator: str
    encoding: str

    @property
    def separated_by(self) -> str:
        """The separator in words."""
        return f"{SEPARATORS[self.separator]} between the columns"


def read_delimited(path: Path, *, likely: str = ",") -> DelimitedFile:
    """Return the columns of a file as text; values that are missing are null.

    Parameters
    ----------
    path : Path
    likely : str, default ","
        The separator where the rows do not tell.

    Raises
    ------
    InvalidProblem
        If the file is no such table; the message names the row.
    """
    with open_bytes(path) as file:
        content, encoding = as_utf8(path, file.read())
    content = content.removesuffix(b"\x1a")  # the end of a file, for DOS
    if not content.strip():
        raise InvalidProblem(f"{path}: the file is empty; a line of column names and rows are required.")
    if not content.endswith((b"\n", b"\r")):
        content += b"\n"
    header = find_header(content, likely=likely)
    table = _parsed(path, content[header.start :] if header.start else content, header)
    if b'"' in content:
        _check_quotes(path, content, table, header)
    return DelimitedFile(table, header.separator, encoding)


def column_names(names: tuple[str, ...]) -> list[str]:
    """Return the names of columns without blanks around them; one without a name is called by its place."""
    return [name.strip() or f"column {place}" for place, name in enumerate(names, 1)]


def _parsed(path: Path, content: bytes, header: Header) -> Any:
    places = list(map(str, range(len(header.names))))  # names may be there twice
    try:
        table = csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(
                block_size=min(len(content) + 1, _LARGEST_BLOCK),
                use_threads=False,  # else errors name no row
                column_names=places,
                skip_rows_after_names=1,
            ),
            parse_options=csv.ParseOptions(newlines_in_values=True, delimiter=header.separator),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        raise InvalidProblem(_explain(path, str(error), header)) from error
    return table.rename_columns(column_names(header.names))


def _explain(path: Path, message: str, header: Header) -> str:
    """Return pyarrow's message on a CSV file with the row counted as ours are, without the header."""
    match = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): ?(.*)", message, re.DOTALL)
    if match is None:
        return f"{path}: the file cannot be read as a table: {message}"
    row, n_names, n_values = int(match[1]) - 1, int(match[2]), int(match[3])
    remedy = "quote what holds a separator"
    if row == 1 and n_values == n_names + 1:
        remedy = "name the first column too"
    elif "\n" in match[4].strip():
        remedy = "close the quotation mark"
    return (
        f"{path}, row {row} ({match[4].strip()[:40]!r}): {n_names} columns are named, but the row has {n_values} "
        f"(with {SEPARATORS[header.separator]} between them); correct it, or {remedy}."
    )


def _check_quotes(path: Path, content: bytes, table: Any, header: Header) -> None:
    """Refuse values with a line break unless all quotation marks are closed: one that is open swallows rows."""
    name, row, text = _longest_broken(table)
    if text and not _are_closed(content, header):
        raise InvalidProblem(
            f"{path}: column {name!r}, row {row + 1} ({text[:40]!r}): the value holds a line break, as if a "
            "quotation mark were not closed; close it, or remove the line break."
        )


def _longest_broken(table: Any) -> tuple[str, int, str]:
    """Return the longest text with a line break, after its column and row; an empty one where there is none."""
    found = ("", 0, "")
    for name, values in zip(table.column_names, table.itercolumns(), strict=True):
        broken = pc.match_substring_regex(values, "[\r\n]")
        if pc.any(broken).as_py():
            for row in np.flatnonzero(pc.fill_null(broken, False).to_numpy()).tolist():
                found = max(found, (name, row, values[row].as_py()), key=lambda one: len(one[2]))
    return found


def _are_closed(content: bytes, header: Header) -> bool:
    """Return whether each quotation mark that opens a value is closed before a separator or the end of a row."""
    try:
        text = io.StringIO(content.decode(), newline="")
        for _ in python_csv.reader(text, delimiter=header.separator, strict=True):
            pass
    except python_csv.Error:
        return False
    return True
