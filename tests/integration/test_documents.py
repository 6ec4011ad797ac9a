"""The samples in docs/*.md run as they stand, in order, and print what the page says."""

import doctest
import importlib
import itertools
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import stoic

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, and the prose between it and the next."""

    language: str
    text: str
    prose: str


def blocks_of(page):
    """Return the blocks of a page, in order."""
    _, *parts = FENCE.split((DOCS / page).read_text(encoding="utf-8"))
    return [Block(*block) for block in zip(parts[::3], parts[1::3], parts[2::3], strict=True)]


def samples_of(page):
    """Return each Python block with what it should print and the file it is to be saved as, if any."""
    for block, after in itertools.pairwise([*blocks_of(page), Block("", "", "")]):
        if block.language == "python":
            saved = re.search(r"Save it as `(\w+)\.py`", block.prose)
            yield block.text, after.text if after.language == "text" else "", saved and saved[1]


PAGES = sorted(page.name for page in DOCS.glob("*.md") if any(samples_of(page.name)))


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
    assert PAGES == ["add_a_part.md", "add_a_solver.md", "certificate.md", "choosing.md", "estimators.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_samples_of_a_page_print_what_the_page_says(page, module_folder, capsys):
    names = {"__name__": page}
    for code, output, module in samples_of(page):
        if module:
            (module_folder / f"{module}.py").write_text(code, encoding="utf-8")
            importlib.invalidate_caches()
        else:
            exec(compile(code, page, "exec"), names)  # noqa: S102
        assert capsys.readouterr().out == output


def test_the_skeleton_of_a_solver_passes_its_own_doctest(module_folder):
    code = next(code for code, _, module in samples_of("add_a_solver.md") if module == "prox_sgd")
    (module_folder / "prox_sgd.py").write_text(code, encoding="utf-8")
    importlib.invalidate_caches()
    failed, attempted = doctest.testmod(importlib.import_module("prox_sgd"))
    assert (failed, attempted > 0) == (0, True)
