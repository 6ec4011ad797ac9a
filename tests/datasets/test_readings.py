"""Money, percentages, thousands, truth values and dates are read as numbers, and nothing else is."""

import numpy as np
import pyarrow as pa
import pytest

from stoic.datasets.dates import Dates, Hours
from stoic.datasets.readings import (
    Numbers,
    TruthValues,
    Words,
    reading_from_json,
    reading_to_json,
    units,
)


def read(reading, *texts):
    return reading.numbers(pa.array(texts, pa.string())).tolist()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$1,234.00", 1234.0),
        ("-$5", -5.0),
        ("$-5", -5.0),
        ("(1,234)", -1234.0),
        ("($1,234.50)", -1234.5),
        ("1 234.5", 1234.5),
        ("1\u202f234.5", 1234.5),
        ("CHF 1'234.50", 1234.5),
        ("1,23,456", 123456.0),
        ("12%", 12.0),
        ("12.5 %", 12.5),
        ("US$3", 3.0),
        ("5 kr", 5.0),
        ("20 €", 20.0),
        ("\u22123", -3.0),
        ("+7", 7.0),
        (".5", 0.5),
        ("1e5", 1e5),
        ("-0.25", -0.25),
    ],
)
def test_numbers_with_a_decimal_point_are_read(text, value):
    assert read(Numbers(), text, "x")[0] == value
    mirrored = text.translate(str.maketrans(",.", ".,"))
    assert read(Numbers("comma"), mirrored, "x")[0] == value


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "",
        "$",
        "-",
        "1,2",
        "12,34",
        "0,123",
        "1,2345",
        "1,234,5",
        "1.2.3",
        "1-2",
        "A1",
        "5 apples",
        "0x10",
        "1 2",
    ],
)
def test_what_is_no_number_is_none(text):
    assert np.isnan(read(Numbers(), text, "x")).all()


def test_the_decimal_mark_decides_what_a_sign_in_the_middle_is():
    assert read(Numbers("point"), "1,234", "$1") == [1234.0, 1.0]
    assert read(Numbers("comma"), "1,234", "1.234") == [1.234, 1234.0]


def test_units_are_signs_of_currency_and_percent():
    assert units(pa.array(["$5", "5 €", "7%", "CHF 3", "4", None])).to_pylist() == ["$", "€", "%", "CHF", "", ""]


def test_truth_values_are_ones_and_zeros():
    np.testing.assert_array_equal(
        read(TruthValues(), "Yes", "no", "TRUE", "f", None, "maybe"), [1, 0, 1, 0, np.nan, np.nan]
    )


def test_words_are_no_numbers():
    assert np.isnan(read(Words(), "1", None)).all()


DAY = 19_753.0  # 2024-01-31


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-31",
        "2024/1/31",
        "2024.01.31",
        "31.1.2024",
        "31. 1. 2024",
        "31 Jan 2024",
        "31-Jan-24",
        "31 January, 2024",
        "Jan 31, 2024",
        "January 31 2024",
        "2024-01-31 00:00:00",
        "2024-01-31T00:00:00Z",
        "2024-01-31T01:00:00+01:00",
        "2024-01-30T19:00:00-0500",
    ],
)
def test_dates_that_say_what_is_the_day_are_read_in_either_order(text):
    assert read(Dates("day-first"), text) == read(Dates("month-first"), text) == [DAY]


@pytest.mark.parametrize("sign", ["/", "-"])
def test_the_order_decides_what_is_the_day(sign):
    text = sign.join(["03", "04", "2024"])
    assert read(Dates("day-first"), text) == [19_816.0]  # 3 April
    assert read(Dates("month-first"), text) == [19_786.0]  # 4 March


def test_years_of_two_digits_are_those_from_1969_to_2068():
    assert read(Dates(), "1/1/69", "1/1/68") == [-365.0, 35_794.0]


def test_times_are_parts_of_a_day():
    assert read(Dates(), "2024-01-31 12:00", "1/31/2024 6:00 PM", "31.1.2024 00:00:00.5") == [
        DAY + 0.5,
        DAY + 0.75,
        DAY + 0.5 / 86_400,
    ]
    assert read(Hours(), "14:30", "2:30 pm", "12:00 am", "00:00:36") == [14.5, 14.5, 0.0, 0.01]


def test_a_month_is_its_first_day():
    assert read(Dates(), "2024-01") == [DAY - 30.0]


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29",
        "2024-13-01",
        "31.4.2024",
        "31 Foo 2024",
        "1.2.20",
        "2024",
        "20240131",
        "1/2/3",
        "hello",
        "25:00",
    ],
)
def test_what_is_no_date_is_none(text):
    assert np.isnan(read(Dates(), text)).all()


@pytest.mark.parametrize("text", ["24:00", "13:00 pm", "0:30 am", "12:60", "1230", "12"])
def test_what_is_no_time_of_day_is_none(text):
    assert np.isnan(read(Hours(), text)).all()


@pytest.mark.parametrize("reading", [Words(), TruthValues(), Numbers("comma"), Dates("day-first"), Hours()])
def test_readings_survive_json(reading):
    assert reading_from_json(reading_to_json(reading)) == reading
