"""Tables hold every point and cell, the same bits every time; a summary that no message can break."""

import csv
import io
import math

import pytest
from pyarrow import parquet

from made_results import HOSTILE, made_results
from stoic.studies.paper.tables import (
    CELL_COLUMNS,
    POINT_COLUMNS,
    cell_rows,
    point_rows,
    summary_text,
    write_tables,
)

NAMES = ("results.csv", "results.parquet", "grid.csv", "summary.md")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return made_results(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def folder(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(results, folder)
    return folder


def rows(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def test_there_is_a_row_for_each_point_of_each_trial(results, folder):
    found = rows(folder / "results.csv")
    assert tuple(found[0]) == POINT_COLUMNS
    curves = [curve for name in ("plain", "robust") for curve in results.curves[name]]
    assert len(found) == sum(len(outcome.points) for curve in curves for _, outcome in curve.trials)
    assert {row["ending"] for row in found} == {"finished", "diverged"}
    assert found[0]["selection"] == "plain"
    assert "inf" in {row["mse"] for row in found}


def test_parquet_has_the_same_rows_with_types(results, folder):
    table = parquet.read_table(folder / "results.parquet")
    assert table.column_names == list(POINT_COLUMNS)
    assert [str(table.schema.field(name).type) for name in ("trial", "alpha", "method", "mse")] == [
        "int64",
        "double",
        "string",
        "double",
    ]
    assert list(zip(*table.to_pydict().values(), strict=True))[:40] == list(point_rows(results))[:40]


def test_there_is_a_row_for_each_cell_with_how_it_ended(results, folder):
    found = rows(folder / "grid.csv")
    assert tuple(found[0]) == CELL_COLUMNS
    assert len(found) == len(results.grid) == len(list(cell_rows(results)))
    assert {row["ending"] for row in found} == {"finished", "diverged", "hopeless", "failed"}
    failed = next(row for row in found if row["ending"] == "failed")
    assert HOSTILE in failed["message"]
    assert failed["plain"] == ""


def test_the_same_store_gives_the_same_bytes(folder, tmp_path):
    write_tables(made_results(tmp_path), tmp_path)
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_slower_runs_change_the_columns_of_seconds_only(results):
    slow = [stored._replace(outcome=_slower(stored.outcome)) for stored in results.grid]
    before, after = list(cell_rows(results)), list(cell_rows(results._replace(grid=slow)))
    place = CELL_COLUMNS.index("seconds")
    assert before != after
    assert [row[:place] + row[place + 1 :] for row in before] == [row[:place] + row[place + 1 :] for row in after]


def _slower(outcome):
    return type(outcome)(**{**outcome.__dict__, "seconds": outcome.seconds + 1.0})


def test_the_summary_has_a_table_for_each_problem_and_selection(folder):
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert text.count("### L") == 8
    assert text.index("by the mean") < text.index("by the median of means")
    assert "| RROSC | 10⁻¹ | 10⁻¹ | 0.3" in text
    assert "| ∞ |" in text
    assert "1 of 3 failed" in text


def test_every_row_of_a_summary_has_as_many_columns_as_its_head(folder):
    text = (folder / "summary.md").read_text(encoding="utf-8")
    tables = [[line for line in part.splitlines() if line.startswith("|")] for part in text.split("#")]
    for table in filter(None, tables):
        assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_messages_cannot_break_the_summary(folder):
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert (
        "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; \\| a [link\\](javascript:alert(1)) and more |" in text
    )
    assert "<img" not in text


def test_the_robust_selection_comes_first_where_it_is_the_headline(tmp_path):
    text = summary_text(made_results(tmp_path, selection="robust"))
    assert text.index("by the median of means") < text.index("by the mean of")


def test_a_store_without_trials_still_gives_every_table(tmp_path):
    write_tables(made_results(tmp_path, with_trials=False), tmp_path)
    assert rows(tmp_path / "results.csv") == []
    assert parquet.read_table(tmp_path / "results.parquet").num_rows == 0
    assert "3 of 3 not run yet" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_one_trial_has_a_mean_without_a_deviation(tmp_path):
    results = made_results(tmp_path, trials=1)
    assert "±" not in summary_text(results).split("| --- |", 1)[1].replace("mean ± sd", "")


def test_a_store_without_failures_says_none(results):
    assert summary_text(results._replace(failed=[])).endswith("## Failed runs\n\nNone.\n")


def test_a_full_disk_leaves_the_old_tables(results, folder, tmp_path, monkeypatch):
    write_tables(results, tmp_path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_tables(results._replace(failed=[]), tmp_path)
    monkeypatch.undo()
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)
    assert (tmp_path / "summary.md").read_bytes() == (folder / "summary.md").read_bytes()


def test_infinite_scores_are_kept_as_such(results):
    place = POINT_COLUMNS.index("mse")
    assert any(math.isinf(row[place]) for row in point_rows(results))
