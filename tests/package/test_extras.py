"""Without the optional packages: what needs none works, and the rest says in a line what to install."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import stoic
from stoic import GroupRiskDisplay, TailDisplay
from stoic.cli.main import main
from stoic.extras import OF_STUDIES

SOURCE = Path(stoic.__file__).parent
OPTIONAL = (*OF_STUDIES, "pandas", "polars")
INSTALL = "run pip install 'stoic[experiments]'."
ROWS = "rent,size,region\n" + "".join(f"{20 * i % 17},{i % 7},{'ns'[i % 2]}\n" for i in range(60))


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A folder with a CSV file, and an interpreter that finds no package of the extra."""
    for name in OF_STUDIES:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flats.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_only_studies_import_an_optional_package_when_they_are_imported():
    paths = [path.relative_to(SOURCE.parent).with_suffix("") for path in SOURCE.rglob("*.py")]
    names = sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)
    others = [name for name in names if not name.startswith("stoic.studies.") and name != "stoic.__main__"]
    code = f"""
import sys
from importlib import import_module
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
for name in {others!r}:
    import_module(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [("reproduce", "--quick"), ("tails", "--quick"), ("report", ".")])
def test_a_study_says_in_one_line_what_to_install(bare, command):
    ended = CliRunner().invoke(main, command)
    assert ended.exit_code == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"stoic: stoic {command[0]} needs matplotlib, plotly and pydantic, not")
    assert line.endswith(INSTALL)
    assert [path.name for path in bare.iterdir()] == ["flats.csv"]


@pytest.mark.parametrize("command", ["reproduce", "tails", "report"])
def test_the_help_of_a_study_needs_nothing(bare, command):
    assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


@pytest.mark.slow
def test_a_fit_needs_no_matplotlib_and_its_page_has_no_pictures(bare):
    ended = CliRunner().invoke(
        main, ["fit", "flats.csv", "--target", "rent", "--group", "region", "--out", "a.stoic"]
    )
    assert ended.exit_code == 0, ended.output
    assert "the page has no pictures, which matplotlib draws; pip install 'stoic[experiments]'" in ended.stdout
    page = (bare / "a.html").read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "How the fit went" not in page
    assert "<h2>Groups</h2>" in page
    again = CliRunner().invoke(main, ["predict", "a.stoic", "flats.csv"])
    assert again.exit_code == 0, again.output


def test_a_picture_says_what_to_install(bare):
    y = np.arange(40.0)
    for draw in (GroupRiskDisplay.from_predictions, TailDisplay.from_predictions):
        with pytest.raises(stoic.MissingDependency, match="needs matplotlib, not installed here") as raised:
            draw(y, y[::-1], groups=np.arange(40) % 2)
        assert str(raised.value).endswith(INSTALL)
