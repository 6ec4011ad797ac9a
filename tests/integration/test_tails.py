"""``stoic tails`` as a user runs it: killed, interrupted, extended, misused."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from commands import (
    assert_interrupted,
    assert_refused_by_name,
    assert_report_needs_only,
    kill_again_and_again,
    run,
    start_and_wait_for,
)

pytestmark = pytest.mark.slow
COMMAND = "tails"
CONFIG = """
noises = ["gaussian", "t2.5"]
places = ["labels"]
methods = ["rrosc-tracked", "rmscg"]
runs = 20
samples = 600
tune_runs = 3
steps = [0.01, 0.1]
rates = [400, 800]
rate_runs = 3
rate_noises = ["t2.5"]
rate_methods = ["rrosc-tracked"]
"""
N_KILLS = 2


def contents(folder):
    with sqlite3.connect(folder / "tails.sqlite") as db:
        return sorted(db.execute("SELECT * FROM runs"))


def test_it_ends_with_tables_figures_and_a_report(undisturbed):
    folder, ended = undisturbed
    figures = {f"figure_{what}.{kind}" for what in ("tails", "rates") for kind in ("png", "svg", "pdf")}
    assert {path.name for path in folder.iterdir()} >= figures | {
        "tails.csv", "tails_rates.csv", "tails.md", "report.html",
    }  # fmt: skip
    assert "runs = 20" in ended.stdout
    assert "The best of RMSCG, by its last quantile" in ended.stdout
    assert ended.stdout.rstrip().endswith("report.html")
    assert ended.stderr.splitlines()[-1] == "rates: 6 of 6 runs are done"


@pytest.mark.every  # one of the two studies is killed in each run of the tests
def test_killed_again_and_again_it_ends_with_the_same_runs(config, undisturbed, tmp_path):
    folder = tmp_path / "out"
    kill_again_and_again(N_KILLS, (0.5, 3.0), "tails", "--config", config, "--out", folder, "--jobs", 2)
    ended = run("tails", "--config", config, "--out", folder, "--jobs", 1)
    assert ended.returncode == 0, ended.stderr
    assert contents(folder) == contents(undisturbed[0])
    assert (folder / "tails.csv").read_bytes() == (undisturbed[0] / "tails.csv").read_bytes()


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_that_the_same_command_goes_on(config, tmp_path, by):
    arguments = ["tails", "--config", config, "--out", tmp_path, "--jobs", 1, "--runs", 5000]
    assert_interrupted(start_and_wait_for(tmp_path / "tails.sqlite", *arguments), by)


def test_the_report_is_made_from_the_store_alone(undisturbed, tmp_path):
    names = ("tails.csv", "tails_rates.csv", "tails.md", "figure_tails.png", "figure_rates.svg")
    assert_report_needs_only("tails.sqlite", undisturbed[0], tmp_path / "copy", names)


MISUSES = [
    ["--runs", "0"],
    ["--runs", "many"],
    ["--samples", "-1"],
    ["--jobs", "0"],
    ["--noises", "cauchy"],
    ["--noises", "none"],
    ["--noises", "t2.5,t2.5"],
    ["--places", "weights"],
    ["--methods", "nonsense"],
    ["--methods", "rosc"],
    ["--rates", "1.5"],
    ["--rates", "0"],
    ["--rate-methods", "rmscg"],
    ["--steps", "0"],
    ["--steps", "x"],
    ["--tune-runs", "0"],
    ["--deviations", "1,2"],
    ["--seed", "-1"],
    ["--config", "nowhere.toml"],
    ["--nonsense", "1"],
    ["surplus"],
]


@pytest.mark.parametrize("arguments", MISUSES, ids=" ".join)
def test_a_wrong_command_line_is_refused_in_one_line(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    assert_refused_by_name("tails", *arguments)
    assert not Path("tails").exists()


def test_help_does_without_numpy():
    code = """
import sys
from stoic.cli.main import main
try:
    main(["tails", "--help"], prog_name="stoic")
except SystemExit as end:
    heavy = {"numpy", "scipy", "rich", "numba", "pydantic"} & set(sys.modules)
    sys.exit(f"{end.code} {heavy}" if end.code or heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert "--deviations" in done.stdout
