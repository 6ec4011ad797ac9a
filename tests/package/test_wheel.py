"""The wheel in a new environment, with what it requires and no more: `make wheel`, which CI runs once."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import stoic
from stoic.extras import OF_STUDIES

pytestmark = pytest.mark.wheel
ROOT = Path(__file__).parents[2]
ROWS = "rent,size,region\n" + "".join(
    f"{300 + 9 * size + 40 * (size % 7)},{size},{'north' if size % 3 else 'south'}\n" for size in range(20, 140)
)
INSTALL = "run pip install 'stoic[experiments]'."


def run(*command, cwd):
    """Return what has become of a command, which sees nothing of this environment's Python."""
    hidden = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(  # noqa: S603 - our own code
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", check=False
    )


def pip(python, *arguments, cwd):
    """Return what has become of a pip command."""
    return run(python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments, cwd=cwd)


@pytest.fixture(scope="module", autouse=True)
def _registry(tmp_path_factory):
    """Skip where pip cannot reach a registry; where it can, whatever it fails at is a fault."""
    folder = tmp_path_factory.mktemp("registry")
    done = pip(sys.executable, "download", "--retries", "1", "--no-deps", "--dest", folder, "click", cwd=folder)
    if done.returncode:
        pytest.skip(f"pip cannot reach a registry: {done.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    done = pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a new environment that has the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("bare")
    assert run(sys.executable, "-m", "venv", folder / "env", cwd=folder).returncode == 0
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = pip(python, "install", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "flats.csv").write_text(ROWS, encoding="utf-8")
    return folder


@pytest.fixture
def command(python, folder):
    """A function that runs a command line of stoic in the new environment."""
    return lambda line: run(python.parent / "stoic", *line.split(), cwd=folder)


def test_the_wheel_has_all_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "stoic").rglob("*.*")}
    assert {name for name in sources if "__pycache__" not in name} == {n for n in names if ".dist-info/" not in n}
    assert {"stoic/py.typed", "stoic/reports/report_files/page.css"} <= names


def test_requirements_are_met_and_optional_packages_are_absent(python, folder):
    done = pip(python, "check", cwd=folder)
    assert done.returncode == 0, done.stdout
    code = "from stoic import extras; print(*extras.not_installed(*extras.OF_STUDIES))"
    assert run(python, "-W", "error", "-c", code, cwd=folder).stdout.split() == list(OF_STUDIES)


def test_the_version_is_said(command):
    assert command("--version").stdout == f"stoic, version {stoic.__version__}\n"


def test_the_example_of_the_readme_prints_what_it_says(python, folder):
    page = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Estimators")[2]
    code, output = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", page, re.DOTALL).groups()
    done = run(python, "-W", "error", "-c", code, cwd=folder)
    assert (done.stdout, done.returncode) == (output, 0), done.stderr


def test_a_model_is_fitted_inspected_and_predicts(command, folder):
    for line, said in (
        ("inspect flats.csv --target rent --group region", "tail index"),
        ("fit flats.csv --target rent --group region --out flats.stoic", "The model: flats.stoic"),
        ("inspect flats.stoic", "GroupDRORegressor"),
        ("predict flats.stoic flats.csv --out rents.csv", "rents.csv"),
    ):
        done = command(line)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        assert said in done.stdout
    assert len((folder / "rents.csv").read_text(encoding="utf-8").splitlines()) == 121
    assert "<svg" not in (folder / "flats.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["reproduce --quick", "tails --quick", "report ."])
def test_a_study_says_in_one_line_what_to_install(command, name):
    done = command(name)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"stoic: stoic {name.split()[0]} needs matplotlib, plotly and pydantic, not installed")
    assert line.endswith(INSTALL)
