"""The layers hold, and functions and files stay short."""

import ast
import logging
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "stoic"
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


@pytest.fixture(scope="module")
def texts():
    """The text of each file, by its name."""
    return {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


@pytest.fixture(scope="module")
def nodes(texts):
    """Each node of each file, with the file's name."""
    return [(name, node) for name, text in texts.items() for node in ast.walk(ast.parse(text))]


def test_a_module_imports_only_from_layers_below_it(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", sys.path[:])  # to which lint_imports adds
    monkeypatch.setattr(logging.getLogger("stoic"), "disabled", False)  # which lint_imports sets, for all loggers
    failed = lint_imports(config_filename="pyproject.toml", no_cache=True)
    assert not failed, capsys.readouterr().out


def test_a_file_is_a_short_read(texts):
    assert [name for name, text in texts.items() if len(text.splitlines()) > LONGEST_FILE] == []


def test_a_function_fits_a_screen(nodes):
    functions = [(n, node) for n, node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [f"{name}: {node.name}" for name, node in functions if length(node) > LONGEST_FUNCTION] == []


def test_nothing_is_printed(nodes):
    assert [f"{name}:{node.lineno}" for name, node in nodes if is_print(node)] == []


def test_nothing_is_asserted(nodes):
    assert [f"{name}:{node.lineno}" for name, node in nodes if isinstance(node, ast.Assert)] == []
