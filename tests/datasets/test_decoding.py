"""Text files are read whatever they were encoded in, and what is no text is refused with a word on what it is."""

import codecs
import gzip
from pathlib import Path

import pytest

from stoic.datasets.decoding import as_utf8
from stoic.errors import InvalidProblem

TEXT = "größe;preis\n1,5;20 €\n"
PATH = Path("data.csv")


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (TEXT.encode(), "UTF-8"),
        (TEXT.encode("utf-8-sig"), "UTF-8"),
        (TEXT.encode("utf-16"), "UTF-16"),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "UTF-16"),
        (TEXT.encode("utf-16-le"), "UTF-16"),
        (TEXT.encode("utf-16-be"), "UTF-16"),
        (TEXT.encode("utf-32"), "UTF-32"),
        (TEXT.encode("cp1252"), "Windows-1252"),
    ],
)
def test_the_encoding_is_told_from_the_bytes(content, encoding):
    assert as_utf8(PATH, content) == (TEXT.encode(), encoding)


@pytest.mark.parametrize("place", [10, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_letters_across_blocks_are_whole_and_a_fault_is_counted_over_all_blocks(place):
    text = "a" * place + "ö" + "b" * 10
    assert as_utf8(PATH, text.encode()) == (text.encode(), "UTF-8")
    with pytest.raises(InvalidProblem, match=f"byte {place + 13} is not UTF-8, though letters before it are"):
        as_utf8(PATH, text.encode() + b"\xff")


@pytest.mark.parametrize("start", [b"ok,", b"\xef\xbb\xbf"])
def test_a_letter_that_is_cut_off_is_not_passed_over(start):
    with pytest.raises(InvalidProblem, match="damaged"):
        as_utf8(PATH, start + "öö".encode()[:-1])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04rest", "Excel workbook; unpack it, or export the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0rest", "export the sheet as CSV"),
        (b"PAR1rest", r"let its name end in \.parquet"),
        (b"ARROW1rest", r"let its name end in \.feather"),
        (gzip.compress(b"y,x", mtime=0), r"let its name end in \.gz"),
        (b'\n[{"y": 1}]', r"JSON; convert it"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"a,b\n1,\0\0\0\n", "null bytes"),
        (b"\xff\x01\x02", "is no text"),
        (b"y\xff\x81", "neither UTF-8, UTF-16 nor Windows-1252"),
        (codecs.BOM_UTF16_LE + b"a", "begins as UTF-16 text but is damaged"),
    ],
)
def test_what_is_no_text_is_refused_by_name(content, what):
    with pytest.raises(InvalidProblem, match=rf"^data\.csv .*{what}"):
        as_utf8(PATH, content)
