"""The command line: what it prints, writes and returns."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

import stoic
from stoic.cli.main import COMMANDS, main
from stoic.experiments import workloads
from stoic.experiments.targets import TARGETS


@pytest.fixture
def run():
    return lambda *args: CliRunner().invoke(main, args, prog_name="stoic")


def python(*args):
    """Run a fresh interpreter."""
    return subprocess.run([sys.executable, "-W", "error", *args], capture_output=True, text=True, check=False)  # noqa: S603


def test_help_lists_every_command(run):
    done = run("--help")
    assert done.exit_code == 0
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("args", [["--help"], ["bench", "--help"]])
def test_help_does_without_numpy(args):
    code = f"""
import sys
from stoic.cli.main import main
try:
    main({args!r}, prog_name="stoic")
except SystemExit as end:
    heavy = {{"numpy", "scipy", "rich", "sklearn", "numba"}} & set(sys.modules)
    sys.exit(f"{{end.code}} {{heavy}}" if end.code or heavy else 0)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: stoic")


def test_python_m_stoic_is_stoic():
    done = python("-m", "stoic", "--version")
    assert (done.returncode, done.stdout.split()[-1]) == (0, stoic.__version__)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Missing command"),
        (["bnch"], "No such command 'bnch'"),
        (["--fast"], "No such option"),
        (["bench", "--size", "huge"], "'huge' is not one of"),
        (["bench", "--only", "l3"], "'l3' is not one of"),
        (["bench", "--repetitions", "0"], "0 is not in the range"),
        (["bench", "--repetitions", "five"], "'five' is not a valid integer"),
        (["bench", "--json", "no/such/folder/bench.json"], "does not exist"),
        (["bench", "--json", "."], "is a directory"),
        (["bench", "small"], "unexpected extra argument"),
    ],
)
def test_a_wrong_command_line_is_two_and_one_line(run, args, said):
    done = run(*args)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("stoic: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_small_benchmark_reports_every_figure(run, tmp_path):
    path = tmp_path / "bench.json"
    done = run("bench", "--size", "small", "--repetitions", "1", "--json", str(path))
    assert done.exit_code == 0, done.output
    report = json.loads(path.read_text(encoding="utf-8"))
    assert list(report["figures"]) == list(TARGETS)
    assert report["versions"]["stoic"] == stoic.__version__
    assert {"processor", "cores"} <= set(report["machine"])
    for name, figure in report["figures"].items():
        assert f"\n{name} " in done.stdout
        assert "median" in figure or "not_available" in figure


def test_only_the_figures_asked_for_are_measured(run):
    done = run("bench", "--size", "small", "--repetitions", "1", "--only", "memory-rosc")
    assert done.exit_code == 0, done.output
    assert [name for name in TARGETS if f"\n{name} " in done.stdout] == ["memory-rosc"]


def test_a_figure_that_fails_is_one(run, monkeypatch):
    def minimize(*args, **options):
        raise stoic.SolveFailed("The iterates\nbecame infinite.")

    monkeypatch.setattr(workloads, "minimize", minimize)
    done = run("bench", "--size", "small", "--only", "growth-p")
    assert done.exit_code == 1
    assert "growth-p        failed: The iterates became infinite." in done.stdout
    assert done.stderr == "stoic: a figure failed; see above.\n"


def test_ctrl_c_is_one_line(run, monkeypatch):
    def minimize(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(workloads, "minimize", minimize)
    done = run("bench", "--size", "small", "--only", "growth-p")
    assert done.exit_code == 1
    assert done.stderr.split() == ["stoic:", "interrupted."]


def test_a_report_that_cannot_be_written_is_one_line(run, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    done = run(
        "bench", "--size", "small", "--repetitions", "1", "--only", "memory-rosc", "--json", str(tmp_path / "a")
    )
    assert done.exit_code == 1
    assert done.stderr == "stoic: No space left on device\n"
