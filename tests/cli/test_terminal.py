"""What commands print, and when they refuse an output; Ctrl-C from the first line on."""

import io
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from stoic.cli.main import main
from stoic.cli.terminal import hand_over

INTERRUPTED_AT = """
import os, runpy, signal, sys
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtImport())
sys.argv = ["stoic", *{arguments!r}]
runpy.run_module("stoic", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    "name", ["stoic.cli", "click", "numpy", "numpy._core.multiarray", "scipy.sparse", "sklearn"]
)
def test_ctrl_c_during_the_start_ends_a_command_without_a_traceback(name, tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("y,x\n1,2\n", encoding="utf-8")
    script = INTERRUPTED_AT.format(name=name, arguments=("inspect", str(data), "--target", "y"))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr in ("", "stoic: interrupted.\n", "\nstoic: interrupted.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_command_that_ignores_ctrl_c_goes_on_ignoring_it():
    script = INTERRUPTED_AT.format(name="click", arguments=("--version",))
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{script}"
    ended = subprocess.run([sys.executable, "-c", ignoring], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("sign", ["\x1b[31m", "\u202e", "\u2028", "\x07"])
def test_no_sign_that_steers_a_terminal_leaves_a_command(sign, tmp_path):
    data = tmp_path / f"ro{sign}ws.csv"
    data.write_text(
        f"y,x,g{sign}\n" + "".join(f"{i},{i % 3},a{sign}{i % 2}\n" for i in range(9)), encoding="utf-8"
    )
    for arguments in (
        ["--group", f"g{sign}"],
        ["--group", f"no{sign}"],
        [],
        ["--target", "y\x1b"],
        [f"--no{sign}"],
    ):
        ended = CliRunner().invoke(main, ["inspect", str(data), "--target", "y", *arguments])
        assert sign not in ended.output
        assert ended.exit_code in (0, 2)


def test_an_encoding_that_lacks_a_sign_does_not_end_a_command(tmp_path, monkeypatch):
    data = tmp_path / "rows.csv"
    data.write_text("y,x,g\n" + "".join(f"{i},{i % 3},Köln{i % 2}\n" for i in range(9)), encoding="utf-8")
    command = [sys.executable, "-m", "stoic", "inspect", str(data), "--target", "y", "--group", "g"]
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "K\\xf6ln0" in ended.stdout


def test_data_are_handed_to_programs_as_they_are(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    hand_over("Köln\x1b,1")
    output.flush()
    assert output.buffer.getvalue() == "Köln\x1b,1\n".encode()
    monkeypatch.setattr(output, "isatty", lambda: True, raising=False)
    hand_over("Köln\x1b,1")
    output.flush()
    assert output.buffer.getvalue().endswith(b"K\\xf6ln\\x1b,1\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--out", "no/model.stoic"], "does not exist"),
        (["--out", "m.stoic", "--summary", "no/m.html"], "does not exist"),
        (["--out", "m.stoic", "--summary", "m.stoic"], "same file"),
        (["--out", "m.html"], "same file"),
        (["--out", "rows.csv"], "same file"),
    ],
)
def test_fit_refuses_an_output_before_it_reads_the_rows(options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("not read", encoding="utf-8")
    ended = CliRunner().invoke(main, ["fit", "rows.csv", "--target", "y", *options])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize(("out", "said"), [("no/p.csv", "does not exist"), ("m.stoic", "same file")])
def test_predict_refuses_an_output_before_it_reads_the_rows(out, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m.stoic", "rows.csv"):
        (tmp_path / name).write_text("not read", encoding="utf-8")
    ended = CliRunner().invoke(main, ["predict", "m.stoic", "rows.csv", "--out", out])
    assert ended.exit_code == 2
    assert said in ended.stderr


@pytest.mark.parametrize("command", ["reproduce", "tails", "report"])
def test_studies_refuse_a_folder_that_cannot_be_written_before_they_begin(command, tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    arguments = [str(tmp_path)] if command == "report" else ["--quick", "--out", str(tmp_path)]
    ended = CliRunner().invoke(main, [command, *arguments])
    assert ended.exit_code == 2
    assert "Permission denied" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_signals_are_as_they_were_after_a_command():
    before = signal.getsignal(signal.SIGINT)
    CliRunner().invoke(main, ["--version"])
    assert signal.getsignal(signal.SIGINT) is before
