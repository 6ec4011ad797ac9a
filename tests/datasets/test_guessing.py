"""What the text of a column is follows from all of it, and where that leaves it open from the other columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from stoic.datasets.columns import Column
from stoic.datasets.dates import Dates, Hours
from stoic.datasets.guessing import Conventions, has_decimal_commas, read_texts
from stoic.datasets.readings import Numbers, TruthValues, Words
from stoic.errors import InvalidProblem


def columns(*texts, told=None, typed=False):
    made = [Column(Path("data.csv"), f"c{i}", pa.chunked_array([pa.array(one)])) for i, one in enumerate(texts)]
    return read_texts(made, told or Conventions(), typed=typed)


def column(*texts, **options):
    return columns(texts, **options)[0]


@pytest.mark.parametrize(
    ("texts", "reading"),
    [
        (("1", "2.5", None), Numbers()),
        (("$1", "2"), Numbers()),
        (("1,5", "2"), Numbers("comma")),
        (("10 %", "20 %"), Numbers()),
        (("yes", "No", None), TruthValues()),
        (("t", "f"), TruthValues()),
        (("t", "t"), Words()),  # one letter alone is a letter
        (("true",), TruthValues()),
        (("yes", "no", "maybe"), Words()),
        (("2024-01-31", "31.12.2023"), Dates()),
        (("31/12/2023", "1/2/2024"), Dates("day-first")),
        (("12/31/2023", "1/2/2024"), Dates("month-first")),
        (("31/12/2023", "12/31/2023"), Words()),
        (("14:30", "9:00 am"), Hours()),
        (("Ulm", "Bonn"), Words()),
        (("1", "2", "3+"), Words()),
        (("?", "-"), Words()),
    ],
)
def test_a_reading_suits_every_text_of_a_column(texts, reading):
    assert column(*texts).reading == reading


def test_signs_for_a_missing_value_among_numbers_and_dates_are_missing():
    numbers = column("1", "?", "3", "n.a.", None)
    assert numbers.is_missing.tolist() == [False, True, False, True, True]
    np.testing.assert_array_equal(numbers.as_numbers(fill=9.0), [1, 9, 3, 9, 9])
    assert column("2024-01-31", "-").n_missing == 1
    assert column("a", "?").n_missing == 0


def test_an_open_mark_is_decided_by_the_other_columns():
    open_one, german = ("1,234", "5,678"), ("1,5", "2,5")
    assert columns(open_one)[0].as_numbers().tolist() == [1234.0, 5678.0]
    assert columns(open_one, german)[0].as_numbers().tolist() == [1.234, 5.678]
    points = columns(("1.234", "5.678"), german, ("7", "8"))
    assert points[0].as_numbers().tolist() == [1234.0, 5678.0]
    assert points[2].reading == Numbers("comma")
    mixed = columns(("1.234", "0.5"), ("2.25", "1"), german)  # two columns to one
    assert [one.reading for one in mixed] == [Numbers(), Numbers(), Numbers("comma")]
    assert has_decimal_commas(mixed)
    assert not has_decimal_commas(columns(open_one))


def test_a_mark_that_is_told_is_the_only_one():
    assert column("1,234", told=Conventions(decimal="comma")).as_numbers().tolist() == [1.234]
    assert column("1.234", told=Conventions(decimal="comma")).as_numbers().tolist() == [1234.0]
    assert column("1,5", "2,5", told=Conventions(decimal="point")).reading == Words()


def test_an_open_order_of_dates_is_decided_by_other_columns_then_by_the_decimal_mark():
    open_one = ("03/04/2024", "05/06/2024")
    assert columns(open_one)[0].reading == Dates("month-first")
    assert columns(open_one, ("31/12/2023", "1/1/2024"))[0].reading == Dates("day-first")
    assert columns(open_one, ("1,5", "2,5"))[0].reading == Dates("day-first")
    assert columns(open_one, told=Conventions(dates="day-first"))[0].reading == Dates("day-first")


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (("1", "2.5"), ""),
        (("1,5", "2,5"), ""),
        (("yes", "no"), ""),
        (("$1,234.50", "$2"), "Column 'c0': '$1,234.50' is read as the number 1234.5."),
        (
            ("1,234", "2,345"),
            "Column 'c0': '1,234' is read as the number 1234; --decimal comma reads it otherwise.",
        ),
        (
            ("2024-01-31",),
            "Column 'c0' holds dates: '2024-01-31' is 2024-01-31, the number 19753 (days since 1970-01-01).",
        ),
        (
            ("03/04/2024",),
            "Column 'c0' holds dates: '03/04/2024' is 2024-03-04, the number 19786 (days since 1970-01-01); "
            "--dates day-first takes the day from the other place.",
        ),
        (("14:30",), "Column 'c0' holds times: '14:30' is read as the number 14.5 (hours since midnight)."),
    ],
)
def test_a_note_says_how_text_was_read_unless_it_is_plain(texts, note):
    assert column(*texts).note == note


def test_plain_numbers_in_text_of_a_file_with_types_are_text():
    assert column("01234", "5", typed=True).reading == Words()
    assert column("$5", "$6", typed=True).reading == Numbers()


@pytest.mark.parametrize(
    ("good", "slip", "what"),
    [
        ([f"${i}.50" for i in range(40)], "$x", "is no number"),
        ([f"2024-01-{i:02}" for i in range(1, 31)], "2024-02-30", "is no date"),
        ([f"{i % 12}:{i}" for i in range(10, 40)], "noon", "is no time of day"),
    ],
)
def test_a_slip_among_many_numbers_or_dates_is_refused_when_the_column_is_used(good, slip, what):
    slipped = column(*good, slip)
    with pytest.raises(InvalidProblem, match=rf"row {len(good) + 1} \({slip!r}\): {what}".replace("$", r"\$")):
        slipped.check()
    assert slipped.as_labels()[-1] == slip  # as a group it is a name


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("$5", "€6"), r"row 2 \('€6'\): is with '€', but other rows have '\$'"),
        (("5%", "6"), r"row 2 \('6'\): is without a sign, but other rows have '%'"),
    ],
)
def test_mixed_units_are_refused(texts, message):
    with pytest.raises(InvalidProblem, match=message):
        column(*texts).as_numbers()


def test_labels_are_numbers_only_where_they_are_written_as_such():
    assert column("3", "10").as_labels().tolist() == [3, 10]
    assert column("1.5", "2").as_labels().tolist() == [1.5, 2.0]
    for texts in (("007", "8"), ("$5", "$6"), ("yes", "no"), ("1", "?"), ("2024-01-31",), ("1,5", "2,5")):
        assert column(*texts).as_labels().tolist() == list(texts)


def test_text_of_whole_numbers_that_float64_cannot_hold_is_refused():
    with pytest.raises(InvalidProblem, match=r"row 2 \('9007199254740993'\): is too large for a float64"):
        column("1", "9007199254740993").as_numbers()


def test_rows_that_were_taken_keep_their_numbers():
    taken = column("1", "2", None, "inf").take(np.array([1, 3]))
    with pytest.raises(InvalidProblem, match=r"column 'c0', row 4 \('inf'\)"):
        taken.as_numbers()


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (pa.array([19_753, 0], pa.date32()), [19_753.0, 0.0]),
        (pa.array([43_200_000, None], pa.timestamp("ms")), [0.5, 9.0]),
        (pa.array([86_400], pa.timestamp("s", "Europe/Berlin")), [1.0]),
        (pa.array([5_400], pa.time32("s")), [1.5]),
    ],
)
def test_dates_and_times_with_a_type_are_numbers(values, numbers):
    made = Column(Path("data.parquet"), "c", pa.chunked_array([values]))
    assert made.as_numbers(fill=9.0).tolist() == numbers
