"""The layers hold, and functions and files stay short."""

import ast
import logging
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stoic"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
LONGEST_FUNCTION, LONGEST_FILE = 60, 350


def length(function):
    """Return the number of lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def is_print(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


@pytest.fixture(params=FILES)
def text(request):
    return (SOURCE / request.param).read_text(encoding="utf-8")


@pytest.fixture
def nodes(text):
    return list(ast.walk(ast.parse(text)))


def test_a_module_imports_only_from_layers_below_it(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", sys.path[:])  # to which lint_imports adds
    monkeypatch.setattr(logging.getLogger("stoic"), "disabled", False)  # which lint_imports sets, for all loggers
    failed = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not failed, capsys.readouterr().out


def test_a_file_is_a_short_read(text):
    assert len(text.splitlines()) <= LONGEST_FILE


def test_a_function_fits_a_screen(nodes):
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [node.name for node in functions if length(node) > LONGEST_FUNCTION] == []


def test_nothing_is_printed(nodes):
    assert [node.lineno for node in nodes if is_print(node)] == []


def test_nothing_is_asserted(nodes):
    assert [node.lineno for node in nodes if isinstance(node, ast.Assert)] == []
