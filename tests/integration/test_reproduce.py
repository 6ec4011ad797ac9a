"""``stoic reproduce`` and ``stoic report`` as a user runs them: killed, interrupted, twice at once, misused."""

import csv
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONFIG = """
size = 0.005
alphas = [1e-3, 1e-2]
steps = [1e-2, 1e-1, 1.0]
budget = 2000
trials = 2
evaluations = 4
batch_size = 1
n_stages = 2
"""
N_KILLS = 30


def command(*arguments):
    return [sys.executable, "-m", "stoic", *map(str, arguments)]


def run(*arguments, **options):
    return subprocess.run(  # noqa: S603
        command(*arguments), capture_output=True, text=True, encoding="utf-8", check=False, timeout=300, **options
    )


def start(*arguments, output=subprocess.PIPE):
    return subprocess.Popen(command(*arguments), stdout=output, stderr=output, text=True, encoding="utf-8")  # noqa: S603


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "small.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def undisturbed(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    ended = run("reproduce", "--config", config, "--out", folder, "--jobs", 1)
    assert ended.returncode == 0, ended.stderr
    return folder, ended.stdout


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
    folder, said = undisturbed
    names = {path.name for path in folder.iterdir()}
    figures = {f"figure_{kind}.{suffix}" for kind in ("l1", "l2") for suffix in ("png", "svg", "pdf")}
    assert names >= figures | {"results.csv", "results.parquet", "grid.csv", "summary.md", "report.html"}
    assert "scratch" not in names
    assert "budget = 2000" in said
    assert said.rstrip().endswith("report.html")


def test_killed_thirty_times_it_ends_with_the_same_tables(config, undisturbed, tmp_path):
    rng, folder = random.Random(0), tmp_path / "out"
    for _ in range(N_KILLS):
        process = start("reproduce", "--config", config, "--out", folder, "--jobs", 2, output=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 4.0))
        process.kill()
        process.wait()  # its own processes end when they find it gone
    ended = run("reproduce", "--config", config, "--out", folder, "--jobs", 1)
    assert ended.returncode == 0, ended.stderr
    assert tables(folder) == tables(undisturbed[0])


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_that_the_same_command_goes_on(config, undisturbed, tmp_path, by):
    folder = tmp_path / "out"
    process = start("reproduce", "--config", config, "--out", folder, "--jobs", 1)
    deadline = time.monotonic() + 60
    while not (folder / "store.sqlite").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(by)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "stoic: interrupted; what was done is kept, and the same command goes on."
    assert "Traceback" not in said
    assert run("reproduce", "--config", config, "--out", folder, "--jobs", 1).returncode == 0
    assert tables(folder) == tables(undisturbed[0])


def test_processes_end_when_the_one_that_started_them_is_killed(config, tmp_path):
    process = start("reproduce", "--config", config, "--out", tmp_path, "--jobs", 2)  # they have its pipes
    deadline = time.monotonic() + 60
    while not (tmp_path / "store.sqlite-wal").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(3.0)
    process.kill()
    process.communicate(timeout=30)


def test_two_at_once_in_one_folder_are_refused(config, tmp_path):
    folder = tmp_path / "out"
    process = start("reproduce", "--config", config, "--out", folder, "--jobs", 1)
    try:
        deadline = time.monotonic() + 60
        while not (folder / "store.sqlite").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        second = run("reproduce", "--config", config, "--out", folder, "--jobs", 1)
    finally:
        process.kill()
        process.communicate()
    assert second.returncode == 2
    assert "another stoic is at work" in second.stderr


def test_the_report_is_made_from_the_store_alone(undisturbed, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "store.sqlite").write_bytes((undisturbed[0] / "store.sqlite").read_bytes())
    ended = run("report", folder)
    assert ended.returncode == 0, ended.stderr
    for name in ("results.csv", "grid.csv", "summary.md", "figure_l1.png", "figure_l2.svg", "results.parquet"):
        assert (folder / name).read_bytes() == (undisturbed[0] / name).read_bytes(), name
    assert (folder / "report.html").exists()


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


def fails_in_one_line(runner, arguments):
    """Assert that a command line is refused in one line without a traceback, and return the line."""
    from stoic.cli.main import main

    result = runner.invoke(main, arguments)
    assert result.exit_code == 2, (arguments, result.output)
    assert "Traceback" not in result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("stoic: ")
    return line


@pytest.fixture
def runner(tmp_path, monkeypatch):
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    return CliRunner()


@pytest.mark.parametrize("arguments", MISUSES, ids=" ".join)
def test_a_wrong_command_line_is_refused_in_one_line(runner, arguments):
    line = fails_in_one_line(runner, ["reproduce", *arguments])
    name = arguments[0].removeprefix("--").replace("-", "_")
    assert name in line.replace("-", "_") or arguments[-1] in line
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
def test_a_wrong_configuration_is_refused_in_one_line(runner, content):
    Path("wrong.toml").write_text(content, encoding="utf-8")
    fails_in_one_line(runner, ["reproduce", "--config", "wrong.toml"])


@pytest.mark.parametrize(
    "arguments",
    [["report"], ["report", "nowhere"], ["report", "."], ["report", ".", "."], ["reproduce", "--out", "taken"]],
    ids=" ".join,
)
def test_a_wrong_folder_is_refused_in_one_line(runner, arguments):
    Path("taken").write_text("a file", encoding="utf-8")
    fails_in_one_line(runner, arguments)


@pytest.mark.parametrize(
    "arguments",
    [["--data", "nowhere.csv", "--target", "y"], ["--data", "x.doc"], ["--data", "e2006"]],
    ids=" ".join,
)
def test_data_that_are_not_there_are_refused_by_name(runner, arguments):
    from stoic.cli.main import main

    result = runner.invoke(main, ["reproduce", "--jobs", "1", *arguments])
    assert result.exit_code in {1, 2}
    assert "Traceback" not in result.output
    assert arguments[1].partition(".")[0].upper() in result.stderr.upper()


def test_a_disk_that_cannot_be_written_is_reported_in_one_line(runner):
    if os.geteuid() == 0:
        folder = "/proc/stoic"  # root may write anywhere else
    else:
        Path("locked").mkdir(mode=0o500)
        folder = "locked/out"
    from stoic.cli.main import main

    result = runner.invoke(main, ["reproduce", "--out", folder])
    assert result.exit_code in {1, 2}
    assert "Traceback" not in result.output
    assert folder.partition("/")[0] in result.stderr or "stoic" in result.stderr
