"""Tables, figures and the report of a confidence study hold what its store says."""

import csv
import json
import math
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from made_results import HOSTILE, made_results
from made_tails import made_tails
from stoic.errors import InvalidParameter, MissingDependency
from stoic.reports.page import page_text
from stoic.studies.confidence.chapter import tails_chapter
from stoic.studies.confidence.figures import median_gaps, panels, quantile_lines, write_tails_figures
from stoic.studies.confidence.quantiles import quantile_band
from stoic.studies.confidence.results import load_tails
from stoic.studies.confidence.runs import LawSetting
from stoic.studies.confidence.spec import TailsSpec
from stoic.studies.confidence.tables import (
    Summary,
    quantile_rows,
    rival_head,
    rival_lines,
    tails_summary,
    tails_text,
    write_tails_tables,
)
from stoic.studies.outputs import write_outputs
from stoic.studies.shared.settings import as_toml, checked

LABELS = LawSetting("t2.5", "labels", 20_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    made_tails(folder)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return load_tails(folder)


def sample_of(results, method, setting=LABELS):
    return next(one for one in results.settings[setting] if one.method == method)


# Tables


def test_every_quantile_is_in_the_table(results, tmp_path):
    write_tails_tables(results, tmp_path)
    with (tmp_path / "tails.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 8 * 14  # 400 runs show all but the last four of 18 quantiles
    for row in rows[::7]:
        one = sample_of(results, row["method"], LawSetting(row["noise"], row["place"], int(row["samples"])))
        band = quantile_band(one.gaps, float(row["delta"]))
        assert (float(row["quantile"]), float(row["low"]), float(row["high"])) == band
        assert (int(row["runs"]), float(row["step"])) == (400, one.cell.step)


def test_every_median_is_in_the_table_of_rates(results, tmp_path):
    write_tails_tables(results, tmp_path)
    with (tmp_path / "tails_rates.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["noise"], row["method"], row["samples"]) for row in rows[:4]] == [
        ("gaussian", "rrosc-tracked", "1000"),
        ("gaussian", "rrosc-tracked", "4000"),
        ("gaussian", "rrosc-tracked", "16000"),
        ("gaussian", "rrosc-m1", "1000"),
    ]
    assert len(rows) == 2 * 2 * 3
    slope = next(
        found.slope for found in results.rates if (found.noise, found.method) == ("t2.5", "rrosc-tracked")
    )
    assert slope.low < -1.0 < slope.high
    assert float(rows[6]["slope"]) == slope.value


def test_rivals_run_at_the_step_with_the_lowest_tail(results):
    for samples in results.settings.values():
        assert {one.cell.step for one in samples} == {0.0, 0.1}


def test_a_line_of_the_summary_says_what_the_runs_say(results):
    summary = Summary(results, LABELS)
    assert summary.head[2:7] == ["median", "0.9-quantile", "0.99-quantile", "0.99-quantile / median",
                                 "0.99-quantile / RROSC-TRACKED's"]  # fmt: skip
    rows = {row[0]: row for row in summary.rows()}
    one, tracked = sample_of(results, "rmscg"), sample_of(results, "rrosc-tracked")
    ratio = quantile_band(one.gaps, 0.01).value / quantile_band(tracked.gaps, 0.01).value
    assert rows["RMSCG"][1] == "0.1"
    assert rows["RMSCG"][6].startswith(f"{ratio:.3g} [")
    assert rows["RROSC-TRACKED"][1:2] + rows["RROSC-TRACKED"][6:7] == ["–", "1"]
    assert rows["RMSCG"][-2:] == ["25 %, 50 %", "0 of 400"]
    assert rows["SCGD"][-1] == "1 of 400"
    assert rows["RCIVR"][-1] == "0 of 400, and 1 failed"


@pytest.mark.slow
def test_a_step_at_the_end_of_the_grid_is_marked(tmp_path):
    found = made_tails(tmp_path, steps=(0.1, 1.0), noises=("t2.5",), places=("labels",))
    steps = {row[0]: row[1] for row in Summary(found, LABELS).rows()}
    assert steps["RMSCG"] == "0.1 (end of the grid)"


def test_quantiles_that_the_runs_cannot_show_are_left_out(tmp_path):
    few = made_tails(tmp_path, runs=30, rates=())
    assert {row[-4] for row in quantile_rows(few)} == {0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07}
    assert "0.99-quantile" not in tails_summary(few)
    assert "0.9-quantile / median" in tails_summary(few)
    assert "Median gap against samples" not in tails_summary(few)


def test_the_best_of_the_undefended_rivals_is_named_in_each_setting(results):
    lines = {line[0]: line[1:] for line in rival_lines(results)}
    assert list(lines) == ["gaussian", "t2.5 labels", "t2.5 both"]
    one, tracked = sample_of(results, "rmscg"), sample_of(results, "rrosc-tracked")
    assert lines["t2.5 labels"][0] == "RMSCG"
    assert lines["t2.5 labels"][1].startswith(f"{one.over(tracked, 0.5).value:.3g} [")
    assert rival_head(results)[2:] == ["median", "0.9-quantile", "0.99-quantile"]
    for text in (tails_text(results), tails_summary(results)):
        assert "The best of RMSCG, ASC-PG, RCIVR and SCGD" in text


def test_without_the_method_to_compare_with_there_is_no_comparison(tmp_path):
    found = made_tails(tmp_path, methods=("rrosc", "rmscg"), noises=("t2.5",), places=("labels",))
    assert rival_lines(found) == []
    assert {row[6] for row in Summary(found, LABELS).rows()} == {"–"}


def test_an_unfinished_study_says_so(tmp_path):
    found = made_tails(tmp_path, parts=("tuning",))
    assert found.settings == {}
    assert "0 of 9,960 runs have ended" in tails_text(found)
    assert "0 of 9,960 runs have ended" in tails_summary(found)
    assert "nothing to draw" in page_text([tails_chapter(found, "")])
    write_tails_figures(found, tmp_path)
    assert list(tmp_path.glob("*.png")) == []


@pytest.mark.slow
def test_a_few_runs_show_nothing_and_break_nothing(tmp_path):
    made_tails(tmp_path, runs=3, rate_runs=1, rates=(1000,), rate_noises=("t2.5",), noises=("t2.5",))
    assert "growth" in write_outputs(tmp_path)
    assert (tmp_path / "tails.csv").read_text(encoding="utf-8").count("\n") == 1


def test_hostile_text_cannot_leave_its_cell(results):
    assert "<img" not in tails_text(results)


# Figures


def lines_of(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def test_quantiles_are_drawn_against_one_over_delta(results):
    axes = quantile_lines(results, LABELS)
    drawn = lines_of(axes)
    assert list(drawn) == [
        "RROSC-TRACKED",
        "RROSC",
        "RMSCG",
        "ASC-PG",
        "RCIVR",
        "SCGD",
        "CLIPPED-SGD",
        "PROX-BOOST",
    ]
    expected = sample_of(results, "rmscg").quantiles
    np.testing.assert_allclose(drawn["RMSCG"].get_xdata(), [1.0 / delta for delta in expected])
    np.testing.assert_allclose(drawn["RMSCG"].get_ydata(), [band.value for band in expected.values()])
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_title()) == ("log", "log", "t2.5 labels")
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.5", "0.1", "0.01", "0.001"]


def test_lines_differ_in_color_marker_or_dashes(results):
    lines = lines_of(quantile_lines(results, LABELS)).values()
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines}
    assert len(looks) == 8
    assert len({(line.get_color(), line._dash_pattern[1] and tuple(line._dash_pattern[1])) for line in lines}) == 8


def test_what_is_infinite_is_left_out(results):
    worse = replace(results.settings[LABELS][0], gaps=np.append(np.ones(300), [math.inf] * 100))
    one = results._replace(settings={LABELS: [worse]})
    line = lines_of(quantile_lines(one, LABELS))["RROSC-TRACKED"]
    assert line.get_ydata().tolist() == [1.0, 1.0, 1.0]


def test_medians_are_drawn_with_their_slope_in_the_legend(results):
    axes = median_gaps(results, "gaussian")
    found = next(one for one in results.rates if (one.noise, one.method) == ("gaussian", "rrosc-tracked"))
    name = next(text for text in lines_of(axes) if text.startswith("RROSC-TRACKED: "))
    assert f"{found.slope.value:.2f}".replace("-", "−") in name
    np.testing.assert_allclose(lines_of(axes)[name].get_ydata(), [band.value for band in found.medians])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1k", "4k", "16k"]


def test_a_row_of_panels_is_a_noise_or_all_where_each_has_one(results, tmp_path):
    assert [[one.name for one in row] for row in panels(results)] == [["gaussian"], ["t2.5 labels", "t2.5 both"]]
    other = made_tails(tmp_path, places=("both",), runs=10)
    assert [[one.name for one in row] for row in panels(other)] == [["gaussian", "t2.5 both"]]


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(results, tmp_path):
    files, one = {}, results._replace(settings={LABELS: results.settings[LABELS]})
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_tails_figures(one, tmp_path / name)
        files[name] = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
    kinds = {f"figure_{what}.{kind}" for what in ("tails", "rates") for kind in ("png", "svg", "pdf")}
    assert set(files["one"]) == kinds
    assert files["one"] == files["other"]


def test_without_matplotlib_the_command_that_installs_it_is_named(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match=r"needs matplotlib.*stoic\[experiments\]"):
        write_tails_figures(results, tmp_path)


# The report


def data_of(text):
    start = text.index('id="chart-data">') + len('id="chart-data">')
    return json.loads(text[start : text.index("</script>", start)])


def test_the_charts_hold_what_the_runs_say(results):
    data = data_of(page_text([tails_chapter(results, "stoic report .")]))
    assert [chart["kind"] for chart in data["charts"]] == ["tails"] * 3 + ["rates"] * 2
    chart = next(chart for chart in data["charts"] if chart.get("heading") == "t2.5 labels")
    line = next(line for line in chart["lines"] if line["method"] == "rmscg")
    expected = sample_of(results, "rmscg").quantiles
    assert line["delta"] == list(expected)
    np.testing.assert_allclose(line["value"], [band.value for band in expected.values()], rtol=1e-5)
    open_ends = [math.isinf(band.high) for band in expected.values()]
    assert [high is None for high in line["high"]] == open_ends
    assert set(data["methods"]) == {*results.spec.methods, "rrosc-m1"}


def test_the_settings_in_the_report_make_the_same_study(results, tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(as_toml(results.spec), encoding="utf-8")
    assert tomllib.loads(path.read_text(encoding="utf-8"))["runs"] == 400
    assert checked(TailsSpec, {}, path) == results.spec


@pytest.mark.slow
def test_a_folder_with_both_experiments_has_both_in_its_report(tmp_path):
    made_results(tmp_path)
    made_tails(tmp_path, noises=("t2.5",), places=("labels",))
    words = write_outputs(tmp_path)
    assert "The best of RMSCG, ASC-PG, RCIVR and SCGD" in words
    assert "has the lowest mean test MSE" in words
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    kinds = {chart["kind"] for chart in data_of(text)["charts"]}
    assert kinds >= {"curve", "grid", "tails", "rates"}
    names = [part.partition('"')[0] for part in text.split('<section id="')[1:]]
    assert len(names) == len(set(names))
    assert names.index("configuration") < names.index("tails") < names.index("tails-quantiles")
    assert HOSTILE not in text
    assert {path.name for path in tmp_path.iterdir()} >= {
        "results.csv",
        "tails.csv",
        "tails.md",
        "figure_tails.png",
    }


def test_a_folder_with_neither_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match=r"no store\.sqlite and no tails\.sqlite"):
        write_outputs(tmp_path)
