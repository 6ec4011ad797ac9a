"""Text files as UTF-8, whatever they were written in: UTF-8, UTF-16 or Windows-1252, told from the bytes."""

import codecs
from pathlib import Path
from typing import NamedTuple

from stoic.errors import InvalidProblem

_BLOCK = 1 << 20
_SAMPLE = 1 << 12
_MARKS = (  # UTF-32 before UTF-16, whose mark it begins with
    (codecs.BOM_UTF8, "utf-8", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_OTHER_FILES = (  # beginnings, and what to do with such a file
    (b"PK\x03\x04", "a zip archive or an Excel workbook; unpack it, or export the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; export the sheet as CSV"),
    (b"PAR1", "a Parquet file; let its name end in .parquet"),
    (b"ARROW1", "a Feather file; let its name end in .feather"),
    (b"\x1f\x8b", "compressed by gzip; let its name end in .gz"),
    (b"BZh", "compressed by bzip2; let its name end in .bz2"),
    (b"%PDF", "a PDF document; export the table as CSV"),
    (b'{"', "JSON; convert it, in Python by pandas.read_json and to_csv"),
    (b"[{", "JSON; convert it, in Python by pandas.read_json and to_csv"),
    (b"<!DOCTYPE", "a web page; get the file itself"),
    (b"<html", "a web page; get the file itself"),
    (b"<?xml", "XML; export the table as CSV"),
)
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\f\r\x1a"))


class Decoded(NamedTuple):
    """The content of a text file as UTF-8 without a mark, and the encoding that it was written in."""

    content: bytes
    encoding: str


def as_utf8(path: Path, content: bytes) -> Decoded:
    r"""Return the content of a text file as UTF-8.

    A byte order mark decides; else UTF-16 shows by its null bytes, and what is not UTF-8 is taken for
    Windows-1252, of which Latin-1 is a part.

    Raises
    ------
    InvalidProblem
        If the content is no text; the message says what it seems to be.

    Examples
    --------
    >>> as_utf8(Path("a.csv"), "größe".encode("latin-1"))
    Decoded(content=b'gr\xc3\xb6\xc3\x9fe', encoding='Windows-1252')
    """
    beginning = content[:_SAMPLE].removeprefix(codecs.BOM_UTF8).lstrip()
    for start, what in _OTHER_FILES:
        if beginning.startswith(start):
            raise InvalidProblem(f"{path} is no table of text but {what}.")
    for mark, codec, name in _MARKS:
        if content.startswith(mark):
            return _decoded(path, content, codec, name)
    unmarked = _unmarked_utf16(content[:_SAMPLE])
    if unmarked is not None:
        return _decoded(path, content, unmarked, "UTF-16")
    if b"\0" in content:
        raise InvalidProblem(f"{path} is no text: it holds null bytes; give a CSV, Parquet or LIBSVM file.")
    fault = _first_fault(content)
    if fault is None:
        return Decoded(content, "UTF-8")
    return _as_windows_text(path, content, fault)


def _decoded(path: Path, content: bytes, codec: str, name: str) -> Decoded:
    try:
        if codec == "utf-8":
            content = content.removeprefix(codecs.BOM_UTF8)
            content.decode()
            return Decoded(content, name)
        return Decoded(content.decode(codec).encode(), name)
    except UnicodeError as error:
        raise InvalidProblem(f"{path} begins as {name} text but is damaged: {error}; get it again.") from error


def _unmarked_utf16(sample: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark: every other byte of digits and separators is null."""
    evens, odds = sample[::2], sample[1::2]
    few, many = 0.02 * len(odds), 0.2 * len(odds)
    if odds.count(0) > many and evens.count(0) <= few:
        return "utf-16-le"
    if evens.count(0) > many and odds.count(0) <= few:
        return "utf-16-be"
    return None


def _first_fault(content: bytes) -> int | None:
    """Return the place of the first byte that is not UTF-8, in blocks: the text itself would fill the memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = 0
    try:
        for start in range(0, len(content), _BLOCK):
            n_kept = len(decoder.getstate()[0])
            decoder.decode(content[start : start + _BLOCK])
        n_kept, start = len(decoder.getstate()[0]), len(content)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return start - n_kept + error.start
    return None


def _as_windows_text(path: Path, content: bytes, fault: int) -> Decoded:
    if not content[:fault].isascii():
        raise InvalidProblem(
            f"{path} is damaged: byte {fault + 1} is not UTF-8, though letters before it are; get it again, or "
            "convert it to UTF-8."
        )
    if len(content.translate(None, _CONTROLS)) < len(content):
        raise InvalidProblem(f"{path} is no text; give a CSV, Parquet or LIBSVM file.")
    try:
        return Decoded(content.decode("cp1252").encode(), "Windows-1252")
    except UnicodeDecodeError:
        raise InvalidProblem(
            f"{path} is neither UTF-8, UTF-16 nor Windows-1252 (Latin-1) text; convert it to UTF-8."
        ) from None
