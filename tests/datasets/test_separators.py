"""The separator is the one with which rows have as many values as there are names."""

import pytest

from stoic.datasets.delimited import column_names, read_delimited
from stoic.datasets.separators import find_header


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_every_separator_is_found(sign):
    content = sign.join(["a", "b", "c"]) + "\n" + sign.join(["1", "2", "3"]) + "\n"
    assert find_header(content.encode()) == (sign, ("a", "b", "c"), 0)


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        (b"rent;rooms\n1,5;2,5\n3,5;4,5\n", ";"),  # decimal commas, as regular as the semicolons
        (b"town,note\nUlm,a;b;c\nBonn,d\n", ","),
        (b'note;x\n"a;b, c";1\n"d, e";2\n', ";"),
        (b"name|x\nA, B|1\nC, D|2\n", "|"),
        (b"a,b\n", ","),
        (b"a;b", ";"),
        (b"x\n1\n2\n", ","),
        (b"a;b\n1;2\n\n3;4;5\n6;7\n8;9\n", ";"),  # one row is wrong
        (b"\n\na\tb\n1\t2\n", "\t"),
    ],
)
def test_the_separator_is_that_of_the_names_and_of_most_rows(content, separator):
    assert find_header(content).separator == separator


def test_the_likely_separator_decides_where_nothing_else_does():
    assert find_header(b"x\n1\n", likely="\t").separator == "\t"
    assert find_header(b"a\tb,c\n1\t2,3\n", likely="\t").separator == "\t"
    assert find_header(b"a\tb,c\n1\t2,3\n").separator == ","


def test_excels_line_on_the_separator_is_no_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"sep=;\r\na;b\r\n1;2\r\n")
    found = read_delimited(path)
    assert found.table.to_pydict() == {"a": ["1"], "b": ["2"]}


def test_values_longer_than_a_field_may_be_do_not_stop_the_search():
    assert find_header(b"a;b\n" + b"x" * 200_000 + b";2\n").separator == ";"


def test_the_first_rows_of_a_large_file_are_enough():
    assert find_header(b"a;b\n" + b"1,5;2\n" * 300_000 + b"junk").separator == ";"


def test_names_lose_the_blanks_around_them_and_missing_ones_are_called_by_their_place():
    assert column_names(("", " rent ", "")) == ["column 1", "rent", "column 3"]
