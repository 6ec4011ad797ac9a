"""The samples in README.md and docs/*.md run as they stand, in order, and print what the page says."""

import doctest
import importlib
import itertools
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import stoic
from rounded import clear, compiled

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, and the prose between it and the next."""

    language: str
    text: str
    prose: str


def blocks_of(page):
    """Return the blocks of a page, in order."""
    _, *parts = FENCE.split((ROOT / page).read_text(encoding="utf-8"))
    return [Block(*block) for block in zip(parts[::3], parts[1::3], parts[2::3], strict=True)]


def samples_of(page):
    """Return each Python block with what it should print and the file it is to be saved as, if any."""
    for block, after in itertools.pairwise([*blocks_of(page), Block("", "", "")]):
        if block.language == "python":
            saved = re.search(r"Save it as `(\w+)\.py`", block.prose)
            yield block.text, after.text if after.language == "text" else "", saved and saved[1]


PLACES = ["README.md", *sorted(f"docs/{page.name}" for page in ROOT.glob("docs/*.md"))]
PAGES = [page for page in PLACES if any(samples_of(page))]


@pytest.fixture
def module_folder(tmp_path, monkeypatch):
    """A folder to import from; its modules and the methods they register are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    methods = dict(stoic.METHODS)
    yield tmp_path
    stoic.METHODS.clear()
    stoic.METHODS.update(methods)
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(file.stem, None)


def test_the_pages_with_samples_are_found():
    names = ("add_a_part", "add_a_solver", "certificate", "choosing", "estimators")
    assert set(PAGES) == {"README.md", *(f"docs/{name}.md" for name in names)}


@pytest.mark.parametrize("page", PAGES)
def test_the_samples_of_a_page_print_what_the_page_says_and_no_digit_that_may_differ(page, module_folder, capsys):
    names = {"__name__": page, "clear": clear}
    for code, output, module in samples_of(page):
        if module:
            (module_folder / f"{module}.py").write_text(code, encoding="utf-8")
            importlib.invalidate_caches()
        else:
            exec(compiled(code, page), names)  # noqa: S102
        assert capsys.readouterr().out == output


def test_the_skeleton_of_a_solver_passes_its_own_doctest(module_folder):
    code = next(code for code, _, module in samples_of("docs/add_a_solver.md") if module == "prox_sgd")
    (module_folder / "prox_sgd.py").write_text(code, encoding="utf-8")
    importlib.invalidate_caches()
    failed, attempted = doctest.testmod(importlib.import_module("prox_sgd"))
    assert (failed, attempted > 0) == (0, True)


@pytest.mark.parametrize("edge", [0.25, 1.35, -1.05, 2.4500001, -1e-9])
def test_a_number_at_a_rounding_edge_is_not_shown(edge):
    with pytest.raises(AssertionError, match="too near to a rounding edge"):
        clear([1.0, edge], 1)


def test_a_number_clear_of_the_edges_is_shown_as_it_is():
    for code in ("print(x.round(1))", "print(round(float(x), 1))", 'print(f"{x:.1f}")'):
        exec(compiled(code, "sample"), {"x": np.float64(1.24), "clear": clear})  # noqa: S102
        with pytest.raises(AssertionError, match="too near to a rounding edge"):
            exec(compiled(code, "sample"), {"x": np.float64(1.25), "clear": clear})  # noqa: S102
