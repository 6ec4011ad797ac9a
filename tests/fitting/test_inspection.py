"""Descriptions of the rows of a file: what is missing, and what the target is."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from stoic.cli.main import main

FIT = ["fit", "data.csv", "--target", "y", "--group", "g", "--missing", "impute", "--out", "m.stoic"]


@pytest.fixture
def inspect(tmp_path, monkeypatch):
    """Return a function that writes a frame and gives the lines of `stoic inspect`."""
    monkeypatch.chdir(tmp_path)

    def inspect(frame, *options):
        frame.to_csv("data.csv", index=False)
        result = CliRunner().invoke(main, ["inspect", "data.csv", "--target", "y", *options])
        assert result.exit_code == 0, result.output
        return [line.strip() for line in result.stdout.splitlines()]

    return inspect


def test_missing_values_are_counted_and_never_refused(inspect):
    frame = pd.DataFrame({"y": [1.5, None, 2.5, 3.0], "x": [None, None, 1.0, 2.0], "z": [1.0, 2.0, 4.0, 3.0]})
    lines = inspect(frame)
    start = lines.index("Missing values")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["column", "rows", "share"],
        ["x", "2", "50.0%"],
        ["y", "1", "25.0%"],
    ]
    assert lines[start + 4].startswith(
        "2 of 4 rows lack no value of the columns to use. stoic fit needs --missing drop"
    )
    assert "Missing values" not in inspect(frame.dropna())


def test_columns_that_lack_values_are_folded_beyond_ten(inspect):
    frame = pd.DataFrame({f"c{i}": [None, 1.0 + i, 2.0] for i in range(14)} | {"y": [1.0, 2.0, 3.5]})
    assert "And 4 more columns." in inspect(frame)
    assert "And 1 more column." in inspect(frame[["y", *(f"c{i}" for i in range(11))]])


def test_a_target_of_zeros_and_ones_is_shown_as_classes_unless_told_otherwise(inspect):
    frame = pd.DataFrame({"y": [0, 1, 1, 0], "x": [1.0, 2.0, 4.0, 3.0]})
    lines = inspect(frame)
    assert "Classes" in lines
    assert any(line.startswith("Note: The target 'y' holds 0 and 1") for line in lines)
    assert "Targets" in inspect(frame, "--regress")


def test_what_was_filled_in_for_predictions_is_said_beside_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"y": np.arange(40.0) ** 1.1, "x": np.arange(40) % 7, "g": ["a", "b"] * 20})
    frame.to_csv("data.csv", index=False)
    run = CliRunner().invoke
    assert run(main, FIT).exit_code == 0
    frame.assign(x=[None, *range(39)]).to_csv("new.csv", index=False)
    result = run(main, ["predict", "m.stoic", "new.csv"])
    assert len(result.stdout.splitlines()) == 41
    assert result.stderr.startswith("Note: Columns that lacked no value at the fit lack some ('x': 1)")


def test_tables_of_other_programs_are_refused_with_a_way_to_csv(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.xlsx").write_bytes(b"PK\x03\x04")
    result = CliRunner().invoke(main, ["inspect", "data.xlsx", "--target", "y"])
    assert result.exit_code == 2
    assert "pandas.read_excel('data.xlsx')" in result.stderr
