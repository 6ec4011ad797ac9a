"""The command line as a user runs it: to its end, killed, interrupted, misused."""

import random
import subprocess
import sys
import time

from click.testing import CliRunner

from stoic.cli.main import main

PATIENCE = 300.0  # seconds until a test gives up: far more than the slowest machine needs


def _command(arguments):
    return [sys.executable, "-m", "stoic", *map(str, arguments)]


def run(*arguments):
    """Return what has become of a command."""
    return subprocess.run(  # noqa: S603 - our own code
        _command(arguments), capture_output=True, text=True, encoding="utf-8", check=False, timeout=PATIENCE
    )


def start(*arguments, output=subprocess.PIPE):
    """Return the process of a command."""
    return subprocess.Popen(_command(arguments), stdout=output, stderr=output, text=True, encoding="utf-8")  # noqa: S603


def start_and_wait_for(path, *arguments):
    """Return the process of a command that has made a file."""
    process, deadline = start(*arguments), time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return process


def kill_again_and_again(times, seconds, *arguments):
    """Start a command, and kill it after some time in the range of seconds."""
    rng = random.Random(0)
    for _ in range(times):
        process = start(*arguments, output=subprocess.DEVNULL)
        time.sleep(rng.uniform(*seconds))
        process.kill()
        process.wait()  # its own processes end when they find it gone


def assert_interrupted(process, by):
    """Assert that a process ends at a signal with a word on how to go on."""
    process.send_signal(by)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "stoic: interrupted; what was done is kept, and the same command goes on."
    assert "Traceback" not in said


def assert_report_needs_only(store, made, folder, names):
    """Assert that `stoic report` makes files of a folder again, to the byte, from a copy of its store alone."""
    folder.mkdir()
    (folder / store).write_bytes((made / store).read_bytes())
    ended = CliRunner().invoke(main, ["report", str(folder)])
    assert ended.exit_code == 0, ended.output
    for name in names:
        assert (folder / name).read_bytes() == (made / name).read_bytes(), name
    assert (folder / "report.html").exists()


def refused(*arguments):
    """Assert that a command line is refused in one line without a traceback, and return the line."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, (arguments, result.output)
    assert "Traceback" not in result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("stoic: ")
    return line


def assert_refused_by_name(command, *arguments):
    """Assert that a command refuses an option in one line that names it, or what it was given."""
    line = refused(command, *arguments)
    name = arguments[0].removeprefix("--").replace("-", "_")
    assert name in line.replace("-", "_") or arguments[-1] in line
