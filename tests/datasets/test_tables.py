"""Tables are read from LIBSVM, CSV and Parquet files; what is wrong is refused with file, column and row."""

import bz2
import datetime as dt
import gzip
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from stoic.datasets.columns import Column
from stoic.datasets.encoding import Encoding
from stoic.datasets.tables import read_table
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.inners.group_loss import GroupLoss

CSV = "y,rooms,town,new,region\n1.5,2,Ulm,true,N\n-2,3,Bonn,false,S\n0,4,Ulm,true,N\n"


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STOIC_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path):
    """Return a function that writes text, bytes or an Arrow table to a file and gives its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        if isinstance(content, dict):
            content = pa.table(content)
        if isinstance(content, pa.Table):
            parquet.write_table(content, path, write_page_checksum=True)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def read(write):
    def read(content, name="data.csv", target="y", **options):
        name = "data.parquet" if isinstance(content, dict | pa.Table) else name
        return read_table(write(content, name), target=target, **options)

    return read


@pytest.fixture
def refused(read, tmp_path):
    """Return a function that gives the message with which content is refused, without the folder."""

    def refused(content, *arguments, **options):
        with pytest.raises(InvalidProblem) as error:
            read(content, *arguments, **options)
        message = str(error.value)
        assert message.startswith(str(tmp_path))
        return message.removeprefix(f"{tmp_path}/")

    return refused


def as_parquet(text):
    """Return the table of a CSV text."""
    from pyarrow import csv

    return csv.read_csv(pa.BufferReader(text.encode()))


# What is read


@pytest.mark.parametrize("as_file", [str, as_parquet], ids=["csv", "parquet"])
def test_numbers_and_booleans_stay_and_text_becomes_one_hot(as_file, read):
    table = read(as_file(CSV), group="region")
    assert table.names == ("rooms", "town=Bonn", "town=Ulm", "new")
    assert table.X.tolist() == [[2, 0, 1, 1], [3, 1, 0, 0], [4, 0, 1, 1]]
    assert table.X.dtype == table.y.dtype == np.float64
    assert table.y.tolist() == [1.5, -2.0, 0.0]
    assert table.groups.tolist() == ["N", "S", "N"]


@pytest.mark.parametrize(
    ("pack", "name"), [(gzip.compress, "data.csv.gz"), (bz2.compress, "data.csv.bz2"), (bytes, "DATA.CSV")]
)
def test_a_csv_file_may_be_packed_and_its_name_in_capitals(pack, name, read):
    assert read(pack(CSV.encode()), name).y.tolist() == [1.5, -2.0, 0.0]


@pytest.mark.parametrize("name", ["a.svm", "a.svmlight", "a.libsvm", "a.txt", "a.b.TXT"])
@pytest.mark.parametrize(("pack", "suffix"), [(bytes, ""), (gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_a_libsvm_file_is_read_by_its_suffix(name, pack, suffix, read):
    X, y, groups, names = read(pack(b"1 1:2\n2 3:1\n"), name + suffix, target=None)
    assert X.toarray().tolist() == [[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert y.tolist() == [1.0, 2.0]
    assert groups is None
    assert names is None


def test_a_table_goes_into_a_group_loss(read):
    table = read(CSV, group="region")
    inner = GroupLoss(table.X, table.y, table.groups)
    assert inner.shape == (2, 4)


def test_without_a_group_column_there_are_no_groups(read):
    assert read("y,x\n1,2\n").groups is None


def test_many_categories_and_many_columns_make_no_matrix_sparse(read):
    rows = "\n".join(f"{i},c{i % 60}" for i in range(200))
    assert isinstance(read(f"y,code\n{rows}").X, np.ndarray)
    wide = {"y": [1.0]} | {f"x{i}": [float(i)] for i in range(80)}
    assert isinstance(read(wide).X, np.ndarray)


def test_columns_of_every_type_of_number_are_read(read):
    table = read(
        {
            "y": pa.array([1, 2], pa.int8()),
            "a": pa.array([1, 2], pa.uint64()),
            "b": pa.array([1.5, 2], pa.float32()),
            "c": pa.array(np.array([1.5, 2], np.float16)),
            "d": pa.array([Decimal("1.25"), Decimal(2)]),
            "e": [True, False],
        }
    )
    assert table.X.tolist() == [[1, 1.5, 1.5, 1.25, 1], [2, 2, 2, 2, 0]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_columns_of_every_type_of_text_are_one_hot(kind, read):
    assert read({"y": [1, 2], "t": pa.array(["b", "a"], kind)}).X.tolist() == [[0, 1], [1, 0]]


def test_dictionary_columns_are_one_hot(read):
    table = read({"y": [1, 2, 3], "t": pa.array(["b", "a", "b"]).dictionary_encode()})
    assert table.names == ("t=a", "t=b")
    assert table.X.tolist() == [[0, 1], [1, 0], [0, 1]]


def test_dictionary_columns_of_numbers_are_one_hot_in_the_order_of_the_numbers():
    """Parquet gives them back as numbers, as of this version of pyarrow."""
    values = pa.chunked_array([pa.array([30, 4, 30]).dictionary_encode()])
    columns = [Column(Path("data"), "t", values)]
    encoding = Encoding.of(columns)
    assert encoding.names == ("t=4", "t=30")
    assert encoding.apply(columns).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_categories_that_no_row_has_take_no_column(read):
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1]), pa.array(["unused", "used"]))
    assert read({"y": [1, 2], "t": column}).names == ("t=used",)


def test_a_column_in_many_chunks_is_one_column(read):
    parts = [pa.table({"y": [i], "t": pa.array([f"c{i % 2}"]).dictionary_encode()}) for i in range(4)]
    assert read(pa.concat_tables(parts)).X.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ([3, 1], [3, 1]),
        ([True, False], [True, False]),
        (["b", "a"], ["b", "a"]),
        ([0.5, 2.0], [0.5, 2.0]),
        (pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
        ([dt.date(2024, 1, 2), dt.date(2023, 1, 1)], ["2024-01-02", "2023-01-01"]),
        ([Decimal("1.50"), Decimal("2.25")], ["1.50", "2.25"]),
    ],
)
def test_groups_may_be_of_any_type(column, labels, read):
    assert read({"y": [1, 2], "x": [3, 4], "g": column}, group="g").groups.tolist() == labels


def test_text_of_any_language_and_signs_is_kept(read):
    names = read('y,größe\n1,"a,b"\n2,"say ""hi"""\n3,日本\n').names
    assert names == ("größe=a,b", 'größe=say "hi"', "größe=日本")


def test_a_type_is_that_of_the_whole_column_not_of_its_beginning(read):
    rows = "1,2\n" * 400_000 + "1.5,0.5\n"  # more than the megabyte that pyarrow looks at by itself
    assert read("y,x\n" + rows).X[-1, 0] == 0.5


def test_a_few_numbers_among_words_are_categories(read):
    rows = "\n".join(f"{i},{min(i % 6, 4)}{'+' if i % 6 >= 4 else ''}" for i in range(30))
    assert read(f"y,rooms\n{rows}").names == ("rooms=0", "rooms=1", "rooms=2", "rooms=3", "rooms=4+")


def test_windows_line_ends_a_byte_order_mark_and_a_missing_last_newline_are_fine(read):
    assert read(b"\xef\xbb\xbfy,x\r\n1,2\r\n3,4").X.tolist() == [[2.0], [4.0]]


# What is refused


@pytest.mark.parametrize("as_file", [str, as_parquet], ids=["csv", "parquet"])
def test_a_target_or_group_that_is_no_column_is_refused_with_the_columns(as_file, read):
    for options in ({"target": "price"}, {"target": None}, {"target": "y", "group": "area"}):
        with pytest.raises(InvalidParameter) as error:
            read(as_file(CSV), **options)
        assert "is not a column of" in str(error.value)
        assert "'y', 'rooms', 'town', 'new', 'region'" in str(error.value)


@pytest.mark.parametrize("wrong", ["Town", "twon", " town", "town_"])
def test_a_name_with_a_slip_brings_up_the_right_one(wrong, read):
    with pytest.raises(InvalidParameter, match=r"is not a column of .*; did you mean 'town'\?$"):
        read(CSV, group=wrong)


def test_a_file_without_names_of_columns_is_told_from_numbers_in_their_place(read):
    with pytest.raises(InvalidParameter, match=r"The first line of a file names its columns\.$"):
        read("5.1,3.5,-2\n1,2,3\n")
    with pytest.raises(InvalidParameter, match="separated by commas, semicolons, tabs or bars"):
        read("y x z\n1 2 3\n", target="price")


def test_a_long_list_of_columns_is_shortened(read):
    with pytest.raises(InvalidParameter, match=r"'x19' and 980 more\.$"):
        read({f"x{i}": [1] for i in range(1_000)})


def test_a_libsvm_file_has_no_columns_to_name(read):
    for options in ({"target": "y"}, {"target": None, "group": "g"}):
        with pytest.raises(InvalidParameter, match="without named columns; leave out"):
            read(b"1 1:2\n", "a.svm", **options)


@pytest.mark.parametrize("name", ["data", "data.gz", "data.parquet.gz", "E2006.train", ".csv", "a.csv.zip"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(name, read):
    with pytest.raises(InvalidParameter, match=r"\.svm, \.svmlight, \.libsvm, \.txt or \.csv or \.tsv.*\.parquet"):
        read(CSV, name)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("data.xlsx", r"pandas\.read_excel\('data.xlsx'\)\.to_csv\('data.csv', index=False\)"),
        ("data.json", r"pandas\.read_json\('data.json'\)"),
        ("data.jsonl", r"pandas\.read_json\('data.jsonl', lines=True\)"),
        ("data.sav", r"pandas\.read_spss"),
    ],
)
def test_kinds_of_tables_that_are_not_read_are_refused_with_a_way_to_csv(name, remedy, read):
    with pytest.raises(InvalidParameter, match=remedy):
        read(CSV, name)


@pytest.mark.parametrize("path", [None, 3, "a\0.csv"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidParameter, match="path="):
        read_table(path, target="y")


@pytest.mark.parametrize("name", ["none.csv", "none.csv.gz", "none.parquet", "none.svm"])
def test_a_missing_file_is_an_oserror_that_names_it(name, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        read_table(tmp_path / name, target=None if name.endswith("svm") else "y")


@pytest.mark.parametrize("value", ["", "NA", "null", "NaN", "nan", "#N/A"])
@pytest.mark.parametrize(("column", "place"), [("y", 0), ("x", 1), ("t", 2), ("g", 3)])
def test_a_missing_value_of_a_csv_file_is_refused_with_column_and_row(value, column, place, refused):
    row = ["1", "2", "a", "b"]
    row[place] = value
    message = refused("y,x,t,g\n1,2,a,b\n" + ",".join(row) + "\n3,4,c,d\n", group="g")
    assert message == f"data.csv: column '{column}', row 2: has no value there; remove the row or fill it in."


def test_missing_values_of_a_parquet_file_are_refused_with_column_and_row(refused):
    for column in ([1.0, None], ["a", None], pa.array(["a", None]).dictionary_encode()):
        message = refused({"y": [1, 2], "x": column})
        assert "column 'x', row 2: has no value there" in message
    for empty in (pa.nulls(2), pa.array([None, None], pa.string())):
        assert "column 'x' has no value in any row; remove it" in refused({"y": [1, 2], "x": empty})


def test_quoted_text_that_looks_like_a_missing_value_is_text(read):
    assert read('y,t\n1,"NA"\n2,""\n').names == ("t=", "t=NA")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_with_column_and_row(value, refused):
    for column in ("y", "x"):
        message = refused({"y": [1.0, 2.0], "x": [3.0, 4.0]} | {column: [1.0, value]})
        what = "has no value there" if np.isnan(value) else f"is {value}; remove the row"
        assert f"column '{column}', row 2 ('{value}'): {what}" in message


def test_an_infinite_value_of_a_csv_file_is_refused(refused):
    assert "column 'x', row 2 ('inf'): is inf" in refused("y,x\n1,2\n3,inf\n")
    assert "column 'x', row 2 ('1e4000'): is inf" in refused("y,x\n1,2\n3,1e4000\n")


@pytest.mark.parametrize(
    "column",
    [
        [[1], [2, 3]],
        [{"a": 1}, {"a": 2}],
        [b"\xff", b"a"],
        [dt.timedelta(1), dt.timedelta(2)],
    ],
    ids=["list", "struct", "binary", "duration"],
)
def test_columns_of_other_types_are_refused_by_name(column, refused):
    assert "column 'odd' holds " in refused({"y": [1, 2], "odd": column})
    assert "column 'odd' holds " in refused({"odd": column, "x": [1, 2]}, target="odd")


@pytest.mark.parametrize(
    "column", [[[1], [2, 3]], [{"a": 1}, {"a": 2}], [b"\xff", b"a"]], ids=["list", "struct", "binary"]
)
def test_groups_that_cannot_be_labels_are_refused(column, refused):
    assert "column 'g' holds " in refused({"y": [1, 2], "x": [1, 2], "g": column}, group="g")


def test_a_group_that_is_nan_is_refused(refused):
    assert "column 'g', row 2 ('nan'): has no value there" in refused(
        {"y": [1, 2], "x": [1, 2], "g": [1.0, np.nan]}, group="g"
    )


def test_a_target_of_text_is_refused(refused):
    assert "column 'y' holds string, but numbers are required" in refused("y,x\nhigh,1\nlow,2\n")


def test_a_whole_number_that_float64_cannot_hold_is_refused(refused):
    message = refused({"y": [1, 2, 3], "id": [1, 2**53 + 1, 3]})
    assert "column 'id', row 2 ('9007199254740993'): is too large for a float64" in message


@pytest.mark.parametrize("slip", ["abc", "0x10", "1;5", "12,5", "1 2"])
def test_a_slip_among_many_numbers_is_refused_with_its_row(slip, refused):
    rows = [f"1,{i / 7}" for i in range(40)]
    rows[24] = f'1,"{slip}"'
    message = refused("y,x\n" + "\n".join(rows) + "\n")
    assert f"column 'x', row 25 ('{slip}'): is no number, as almost all others are" in message


def test_column_names_that_are_there_twice_are_refused(refused, tmp_path):
    assert "the column names 'x' are there more than once" in refused("y,x,x\n1,2,3\n")
    doubled = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["y", "x", "x"])
    assert "the column names 'x' are there more than once" in refused(doubled)


def test_a_table_without_features_is_refused(refused):
    assert "no column besides target and group" in refused("y,g\n1,a\n", group="g")


@pytest.mark.parametrize("content", ["", "\n", "\n\n\n", "y,x\n", "y,x"])
def test_a_csv_file_without_rows_is_refused(content, refused):
    assert refused(content).startswith("data.csv: the file ")


def test_a_parquet_file_without_rows_is_refused(refused):
    assert "the file has no rows" in refused({"y": pa.array([], pa.int64()), "x": pa.array([], pa.int64())})


@pytest.mark.parametrize(("row", "n"), [("3", 1), ("3,4,5", 3)])
def test_a_row_of_another_length_is_refused_with_its_number(row, n, refused):
    message = refused(f"y,x\n1,2\n{row}\n5,6\n")
    assert message.startswith(
        f"data.csv, row 2 ('{row}'): 2 columns are named, but the row has {n} (with commas between them)"
    )


def test_rows_with_a_value_more_than_names_are_told_from_a_slip(refused):
    assert "name the first column too" in refused("y,x\na,1,2\nb,3,4\n")


def test_an_open_quotation_mark_is_refused_with_its_row(refused):
    message = refused('y,t,x\n1,a,1\n2,"b,2\n3,c,3\n4,d,4\n')
    assert message.startswith("data.csv")
    message = refused('y,t\n1,a\n2,"b\n3,c\n4,d\n')
    assert "column 't', row 2" in message
    assert "holds a line break, as if a quotation mark were not closed" in message


def test_two_open_quotation_marks_are_refused_where_they_swallow_a_row(refused):
    assert "as if a quotation mark were not closed" in refused('y,t,x\n1,a,1\n2,"b,2\n3,c,3\n4,"d,4\n')


def test_line_breaks_and_separators_in_closed_quotation_marks_are_fine(read):
    assert read('y,t\n1,"a,b\nc, d, e\n"\n2,5" pipe\n').names == ('t=5" pipe', "t=a,b\nc, d, e")
    assert read('y,t,x\n1,"a\nb",1\n2,"say ""hi""\nx",2\n').names == ("t=a\nb", 't=say "hi"\nx', "x")


@pytest.mark.parametrize("cut", [1, 8, 20])
def test_a_cut_off_packed_csv_file_is_refused(cut, refused):
    assert "data.csv.gz: the file is cut off" in refused(gzip.compress(CSV.encode())[:-cut], "data.csv.gz")


def test_a_faulty_libsvm_file_is_refused_with_its_line(refused):
    assert refused(b"1 1:2\n1 1:x\n", "rows.txt", target=None).startswith("rows.txt, line 2: ")


@pytest.mark.parametrize(
    "junk", [b"", b"PAR1", b"PAR1PAR1", b"y,x\n1,2\n", bytes(1_000), b"PAR1" + bytes(100) + b"PAR1"]
)
def test_what_is_no_parquet_file_is_refused(junk, refused):
    assert refused(junk, "data.parquet").startswith("data.parquet: the file is damaged, or not a Parquet file")


def test_a_cut_off_parquet_file_is_refused(write, refused):
    content = write({"y": list(range(100)), "x": [str(i) for i in range(100)]}, "data.parquet").read_bytes()
    for length in range(0, len(content), 13):
        assert "is damaged" in refused(content[:length], "data.parquet")


def test_damaged_values_of_a_parquet_file_with_checksums_are_refused(write, refused):
    values = np.random.default_rng(0).random(1_000)
    content = write({"y": values, "x": -values}, "data.parquet").read_bytes()
    rng = random.Random(0)
    for _ in range(20):
        altered = bytearray(content)
        altered[rng.randrange(1_000, 7_000)] ^= 1 << rng.randrange(8)  # within the values of y, before its footer
        assert "is damaged" in refused(bytes(altered), "data.parquet")


def test_a_parquet_file_without_checksums_and_with_a_flipped_bit_is_read_or_refused(tmp_path):
    path, rng = tmp_path / "data.parquet", random.Random(0)
    parquet.write_table(as_parquet(CSV), path)
    content, places = path.read_bytes(), set()
    for _ in range(500):
        altered = bytearray(content)
        altered[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(altered)
        try:
            places.add(len(read_table(path, target="y").y))
        except (InvalidProblem, InvalidParameter) as error:
            assert "data.parquet" in str(error)  # noqa: PT017 - or nothing is raised
    assert places == {3}


def test_text_of_a_parquet_file_that_is_none_is_refused(read, refused):
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], "i4")), pa.py_buffer(b"\xe3")]
    )
    assert "is damaged" in refused({"y": [1], "t": broken})


def test_junk_in_place_of_a_csv_file_is_refused_or_has_no_such_column(read):
    rng = random.Random(0)
    for _ in range(300):
        junk = rng.randbytes(rng.randint(1, 400))
        with pytest.raises((InvalidProblem, InvalidParameter)):
            read(junk)


@pytest.mark.slow
def test_a_csv_file_with_a_flipped_bit_is_read_or_refused(read):
    content, rng = CSV.encode(), random.Random(1)
    for _ in range(500):
        altered = bytearray(content)
        altered[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        try:
            table = read(bytes(altered), group="region")
        except (InvalidProblem, InvalidParameter) as error:
            assert "data.csv" in str(error)  # noqa: PT017 - or nothing is raised
        else:
            assert np.isfinite(table.X).all()
            assert len(table.X) == len(table.y) == len(table.groups)


@pytest.mark.parametrize(("pack", "suffix"), [(gzip.compress, "gz"), (bz2.compress, "bz2")])
def test_a_file_that_unpacks_to_far_more_than_a_table_does_is_refused_before_it_fills_the_memory(
    pack, suffix, refused, read, monkeypatch
):
    content = pack(b"y,x\n" + b"1,2\n" * 100_000)
    assert len(read(content, f"data.csv.{suffix}").y) == 100_000  # below 256 MiB nothing is said
    monkeypatch.setattr("stoic.datasets.compressed._MUCH", 100_000)
    assert "unpacks to more than 200 times its size" in refused(content, f"data.csv.{suffix}")
    assert "unpack it yourself" in refused(pack(b"1 1:1\n" * 100_000), f"a.svm.{suffix}", target=None)


def test_a_parquet_file_of_a_table_that_would_fill_the_memory_is_refused(refused, monkeypatch):
    monkeypatch.setattr("stoic.datasets.arrow_files._MUCH", 100_000)
    constant = {"y": np.ones(1_000_000), "x": np.ones(1_000_000)}
    assert "over 1,000 times the size of the file" in refused(constant)
