"""``stoic reproduce`` and ``stoic report`` as a user runs them: killed, interrupted, twice at once, misused."""

import csv
import os
import signal
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import (
    PATIENCE,
    assert_interrupted,
    assert_refused_by_name,
    assert_report_needs_only,
    kill_again_and_again,
    refused,
    run,
    start_and_wait_for,
)
from stoic.cli.main import main

pytestmark = pytest.mark.slow
COMMAND = "reproduce"
CONFIG = """
size = 0.005
methods = ["rrosc", "rmscg", "asc-pg", "auto"]
alphas = [1e-3, 1e-2]
steps = [1e-2, 1e-1]
budget = 2000
trials = 2
evaluations = 4
batch_size = 1
n_stages = 2
"""


def tables(folder):
    """Return what the tables say, timings aside."""
    found = {}
    for name in ("results.csv", "grid.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            found[name] = [{k: v for k, v in row.items() if "second" not in k} for row in csv.DictReader(file)]
    lines = (folder / "summary.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    place = next(row.index("seconds (timing)") for row in cells if "seconds (timing)" in row)
    found["summary.md"] = [row[:place] + row[place + 1 :] for row in cells]
    return found


def test_it_ends_with_tables_figures_and_a_report(undisturbed):
    folder, ended = undisturbed
    names = {path.name for path in folder.iterdir()}
    figures = {f"figure_{kind}.{suffix}" for kind in ("l1", "l2") for suffix in ("png", "svg", "pdf")}
    assert names >= figures | {"results.csv", "results.parquet", "grid.csv", "summary.md", "report.html"}
    assert "scratch" not in names
    assert "budget = 2000" in ended.stdout
    assert ended.stdout.rstrip().endswith("report.html")


@pytest.mark.parametrize("times", [2, pytest.param(30, marks=pytest.mark.every)])
def test_killed_again_and_again_it_ends_with_the_same_tables(config, undisturbed, tmp_path, times):
    folder = tmp_path / "out"
    kill_again_and_again(times, (0.3, 4.0), "reproduce", "--config", config, "--out", folder, "--jobs", 2)
    ended = run("reproduce", "--config", config, "--out", folder, "--jobs", 1)
    assert ended.returncode == 0, ended.stderr
    assert tables(folder) == tables(undisturbed[0])


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_that_the_same_command_goes_on(config, tmp_path, by):
    folder = tmp_path / "out"
    arguments = ["reproduce", "--config", config, "--out", folder, "--jobs", 1]
    assert_interrupted(start_and_wait_for(folder / "store.sqlite", *arguments), by)


@pytest.mark.every
def test_interrupted_it_goes_on_and_ends_with_the_same_tables(config, undisturbed, tmp_path):
    folder = tmp_path / "out"
    arguments = ["reproduce", "--config", config, "--out", folder, "--jobs", 1]
    assert_interrupted(start_and_wait_for(folder / "store.sqlite", *arguments), signal.SIGINT)
    assert run(*arguments).returncode == 0
    assert tables(folder) == tables(undisturbed[0])


def test_processes_end_when_the_one_that_started_them_is_killed(config, tmp_path):
    arguments = ["reproduce", "--config", config, "--out", tmp_path, "--jobs", 2]
    process = start_and_wait_for(tmp_path / "store.sqlite-wal", *arguments)  # its processes have its pipes
    time.sleep(3.0)
    process.kill()
    process.communicate(timeout=PATIENCE)


def test_two_at_once_in_one_folder_are_refused(config, tmp_path):
    folder = tmp_path / "out"
    arguments = ["reproduce", "--config", config, "--out", folder, "--jobs", 1]
    process = start_and_wait_for(folder / "store.sqlite", *arguments)
    try:
        second = run(*arguments)
    finally:
        process.kill()
        process.communicate()
    assert second.returncode == 2
    assert "another stoic is at work" in second.stderr


def test_the_report_is_made_from_the_store_alone(undisturbed, tmp_path):
    names = ("results.csv", "grid.csv", "summary.md", "figure_l1.png", "figure_l2.svg", "results.parquet")
    assert_report_needs_only("store.sqlite", undisturbed[0], tmp_path / "copy", names)


MISUSES = [
    ["--budget", "0"],
    ["--budget", "many"],
    ["--budget", "1.5"],
    ["--trials", "0"],
    ["--trials", "-3"],
    ["--trials", ""],
    ["--jobs", "0"],
    ["--jobs", "two"],
    ["--size", "0"],
    ["--size", "-1"],
    ["--size", "nan"],
    ["--size", "inf"],
    ["--seed", "-1"],
    ["--seed", "x"],
    ["--methods", "nonsense"],
    ["--methods", "rrosc,rrosc"],
    ["--methods", ""],
    ["--methods", "none"],
    ["--methods", "rrosc,,rmscg"],
    ["--methods", "prox-boost"],
    ["--regularizers", "l3"],
    ["--regularizers", "none"],
    ["--losses", "cubic"],
    ["--losses", "logistic"],
    ["--noise", "pareto"],
    ["--noise", "cauchy-1"],
    ["--noise", "pareto-0"],
    ["--noise", "sparse-x"],
    ["--alphas", "x"],
    ["--alphas", "0"],
    ["--alphas", "-1"],
    ["--alphas", "1,1"],
    ["--alphas", "inf"],
    ["--steps", "none"],
    ["--steps", "1,two"],
    ["--temperatures", "0"],
    ["--radius", "0"],
    ["--radius", "-5"],
    ["--batch-size", "0"],
    ["--n-stages", "0"],
    ["--evaluations", "0"],
    ["--selection", "best"],
    ["--test-labels", "dirty"],
    ["--validation-share", "1"],
    ["--validation-share", "0"],
    ["--test-share", "2"],
    ["--sparse-share", "-0.1"],
    ["--config", "nowhere.toml"],
    ["--nonsense", "1"],
    ["surplus"],
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("arguments", MISUSES, ids=" ".join)
@pytest.mark.usefixtures("here")
def test_a_wrong_command_line_is_refused_in_one_line(arguments):
    assert_refused_by_name("reproduce", *arguments)
    assert not Path("reproduced").exists()


@pytest.mark.parametrize(
    "content",
    [
        "budget = 0",
        "nonsense = 1",
        "methods = 'rrosc'",
        "budget = ",
        "[budget]\nx = 1",
        "alphas = [1, 'x']",
        "size = 'x'",
    ],
)
@pytest.mark.usefixtures("here")
def test_a_wrong_configuration_is_refused_in_one_line(content):
    Path("wrong.toml").write_text(content, encoding="utf-8")
    refused("reproduce", "--config", "wrong.toml")


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["report", "nowhere"], ["report", "."], ["report", ".", "."], ["reproduce", "--out", "taken"]],
    ids=" ".join,
)
@pytest.mark.usefixtures("here")
def test_a_wrong_folder_is_refused_in_one_line(arguments):
    Path("taken").write_text("a file", encoding="utf-8")
    refused(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [["--data", "nowhere.csv", "--target", "y"], ["--data", "x.doc"], ["--data", "e2006"]],
    ids=" ".join,
)
@pytest.mark.usefixtures("here")
def test_data_that_are_not_there_are_refused_by_name(arguments):
    result = CliRunner().invoke(main, ["reproduce", "--jobs", "1", *arguments])
    assert result.exit_code in {1, 2}
    assert "Traceback" not in result.output
    assert arguments[1].partition(".")[0].upper() in result.stderr.upper()


@pytest.mark.usefixtures("here")
def test_a_disk_that_cannot_be_written_is_reported_in_one_line():
    if os.geteuid() == 0:
        folder = "/proc/stoic"  # root may write anywhere else
    else:
        Path("locked").mkdir(mode=0o500)
        folder = "locked/out"
    result = CliRunner().invoke(main, ["reproduce", "--out", folder])
    assert result.exit_code in {1, 2}
    assert "Traceback" not in result.output
    assert folder.partition("/")[0] in result.stderr or "stoic" in result.stderr
