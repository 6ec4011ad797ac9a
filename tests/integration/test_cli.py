"""The command line: what it prints, writes and returns."""

import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

import stoic
from stoic.cli import bench as command
from stoic.cli.main import COMMANDS, main
from stoic.studies.bench import measure as bench, workloads
from stoic.studies.bench.report import Measurement
from stoic.studies.bench.targets import TARGETS


@pytest.fixture
def run():
    return lambda *args: CliRunner().invoke(main, args, prog_name="stoic")


def python(*args):
    """Run a fresh interpreter."""
    return subprocess.run([sys.executable, "-W", "error", *args], capture_output=True, text=True, check=False)  # noqa: S603


BENCH = """
import signal, sys, threading
from stoic.cli.main import main
from stoic.studies.bench import measure as bench
from stoic.studies.bench.report import Measurement

signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests run
bench._METRICS["growth-p"] = lambda load, turns: Measurement([1.0], {})
bench._METRICS["memory-rosc"] = lambda load, turns: threading.Event().wait(30)  # a signal comes before
main(["bench", *sys.argv[1:]], prog_name="stoic")
"""


def start(*args, encoding="utf-8", stderr=subprocess.PIPE):
    """Start a benchmark in which growth-p is 1 at once, and memory-rosc is never measured."""
    environment = os.environ | {"PYTHONIOENCODING": encoding, "TERM": "xterm"}
    command = [sys.executable, "-W", "error", "-c", BENCH, *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=stderr, env=environment, text=True, encoding=encoding)  # noqa: S603


def await_line(process, name):
    """Return the line of a figure; it comes while the process runs, or not at all."""
    return next(line for line in process.stdout if line.startswith(name))


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
        (["bench", "--size", "small", "--json", os.devnull], "not a regular file"),
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


@pytest.mark.slow
def test_a_small_benchmark_reports_every_figure(run, tmp_path):
    path = tmp_path / "bench.json"
    done = run("bench", "--size", "small", "--repetitions", "1", "--json", str(path))
    assert done.exit_code == 0, done.output
    report = json.loads(path.read_text(encoding="utf-8"))
    assert list(report["figures"]) == list(TARGETS)
    assert report["complete"]
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
    assert done.exit_code == 130
    assert done.stdout == ""
    assert done.stderr == "stoic: interrupted after 0 of 1 figures.\n"


# Nothing measured is lost

ASKED_FOR = ("--size", "small", "--only", "growth-p", "--only", "memory-rosc")


@pytest.fixture
def measured(monkeypatch):
    """Return a function that gives figures what they are to return, or to raise."""

    def give(**figures):
        def figure(ending):
            def measure(load, turns):
                if isinstance(ending, BaseException):
                    raise ending
                return Measurement([ending], {})

            return measure

        for name, ending in figures.items():
            monkeypatch.setitem(bench._METRICS, name.replace("_", "-"), figure(ending))

    give(growth_p=1.0, memory_rosc=2.0)
    return give


def test_ctrl_c_keeps_the_figures_measured_so_far(run, tmp_path, measured):
    measured(memory_rosc=KeyboardInterrupt())
    path = tmp_path / "bench.json"
    done = run("bench", *ASKED_FOR, "--json", str(path))
    assert done.exit_code == 130
    assert "\ngrowth-p            1.00" in done.stdout
    assert done.stderr == "stoic: interrupted after 1 of 2 figures.\n"
    report = json.loads(path.read_text(encoding="utf-8"))
    assert (report["complete"], report["pending"]) == (False, ["memory-rosc"])
    assert report["figures"]["growth-p"]["values"] == [1.0]


def test_ctrl_c_between_the_file_and_the_line_loses_neither(run, tmp_path, measured, monkeypatch):
    once = iter([KeyboardInterrupt()])
    line = command._line

    def interrupted(*args):
        for ending in once:
            raise ending
        return line(*args)

    monkeypatch.setattr(command, "_line", interrupted)
    path = tmp_path / "bench.json"
    done = run("bench", *ASKED_FOR, "--json", str(path))
    assert done.exit_code == 130
    assert done.stdout.count("\ngrowth-p ") == 1
    assert list(json.loads(path.read_text(encoding="utf-8"))["figures"]) == ["growth-p"]


def test_a_benchmark_that_measured_nothing_leaves_an_earlier_report_alone(run, tmp_path, measured):
    measured(growth_p=KeyboardInterrupt())
    path = tmp_path / "bench.json"
    path.write_text("earlier", encoding="utf-8")
    assert run("bench", *ASKED_FOR, "--json", str(path)).exit_code == 130
    assert path.read_text(encoding="utf-8") == "earlier"


def test_an_error_nobody_thought_of_leaves_the_figures_before_it(run, tmp_path, measured):
    measured(memory_rosc=ZeroDivisionError())
    path = tmp_path / "bench.json"
    done = run("bench", *ASKED_FOR, "--json", str(path))
    assert isinstance(done.exception, ZeroDivisionError)
    assert "\ngrowth-p            1.00" in done.stdout
    assert json.loads(path.read_text(encoding="utf-8"))["pending"] == ["memory-rosc"]


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize(("sent", "code"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGKILL", -9)])
def test_a_signal_finds_every_figure_on_standard_output_and_in_the_file(sent, code, tmp_path):
    path = tmp_path / "bench.json"
    with start(*ASKED_FOR, "--json", str(path)) as process:
        assert await_line(process, "growth-p").split()[:2] == ["growth-p", "1.00"]
        process.send_signal(signal.Signals[sent])
        process.communicate()
    assert process.returncode == code
    report = json.loads(path.read_text(encoding="utf-8"))
    assert (list(report["figures"]), report["pending"]) == (["growth-p"], ["memory-rosc"])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="terminals are those of POSIX")
def test_a_bar_on_the_terminal_takes_no_line_from_a_file():
    terminal, inner = os.openpty()
    try:
        with start("--size", "small", "--only", "growth-p", stderr=inner) as process:
            out = process.stdout.read()
    finally:
        os.close(inner)
        shown = os.read(terminal, 65_536).decode()
        os.close(terminal)
    assert process.returncode == 0
    assert "\ngrowth-p            1.00" in out
    assert "growth-p" in shown
    assert "1.00" not in shown


@pytest.mark.slow
def test_signs_that_the_encoding_lacks_cost_no_figure():
    with start("--size", "small", "--only", "growth-p", encoding="latin-1") as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    assert "\ngrowth-p            1.00  1.00 to 1.00      ? 0.1 " in out


# The file


def test_the_file_a_link_leads_to_is_written(run, tmp_path, measured):
    link, path = tmp_path / "link", tmp_path / "bench.json"
    link.symlink_to(path)
    assert run("bench", *ASKED_FOR, "--json", str(link)).exit_code == 0
    assert link.is_symlink()
    assert json.loads(path.read_text(encoding="utf-8"))["complete"]


def test_a_folder_that_cannot_be_written_is_refused_before_a_figure(run, tmp_path, measured, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    done = run("bench", *ASKED_FOR, "--json", str(tmp_path / "bench.json"))
    assert done.exit_code == 2
    assert "bench.json' cannot be written: Permission denied; give another path." in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_report_that_cannot_be_written_is_one_line(run, tmp_path, measured, monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    done = run("bench", "--size", "small", "--only", "growth-p", "--json", str(tmp_path / "bench.json"))
    assert done.exit_code == 1
    assert "\ngrowth-p            1.00" in done.stdout
    assert done.stderr.endswith("bench.json' could not be written: No space left on device.\n")
    assert done.stderr.count("\n") == 1


def test_a_disk_that_is_full_for_a_while_is_reported_and_written_later(run, tmp_path, measured, monkeypatch):
    once = iter([OSError(28, "No space left on device")])

    def refuse(*args):
        for ending in once:
            raise ending

    monkeypatch.setattr("os.fsync", refuse)
    path = tmp_path / "bench.json"
    done = run("bench", *ASKED_FOR, "--json", str(path))
    assert done.exit_code == 0
    assert done.stderr.count("No space left on device") == 1
    assert json.loads(path.read_text(encoding="utf-8"))["complete"]
