"""`import stoic` is light, and every public name is there."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import stoic

HEAVY = ("scipy", "rich", "pandas", "matplotlib", "polars", "cvxpy", "sklearn", "numba", "pyarrow")


def modules_after(code):
    """Return the top-level modules that a fresh interpreter has loaded after `code`."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_stoic_loads_nothing_heavy():
    assert modules_after("import stoic").isdisjoint(HEAVY)


def test_importing_stoic_does_not_even_load_numpy():
    assert "numpy" not in modules_after("import stoic")


@pytest.mark.slow
def test_a_solve_without_a_progress_bar_needs_no_rich_and_no_pandas():
    code = """
import numpy as np, stoic
problem = stoic.Problem(stoic.GroupLoss(np.eye(4, 2), np.ones(4)), stoic.Linear())
stoic.minimize(problem, "rrosc", budget=500, seed=0)
"""
    assert modules_after(code).isdisjoint({"rich", "pandas", "matplotlib", "polars", "cvxpy", "sklearn"})


@pytest.mark.parametrize("name", stoic.__all__)
def test_a_public_name_resolves_to_something_documented(name):
    thing = getattr(stoic, name)
    assert name in {"AUTO", "EVERYTHING", "METHODS"} or thing.__doc__


def test_dir_lists_every_public_name_once():
    _ = stoic.Problem  # a name that has been used is no longer only promised
    listed = dir(stoic)
    assert set(stoic.__all__) <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.slow
def test_a_star_import_gives_the_public_names():
    code = "from stoic import *\nassert Problem and minimize and RROSC and LogSumExp"
    assert "stoic" in modules_after(code)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'stoic' has no attribute 'RROSK'"):
        _ = stoic.RROSK


def test_hasattr_is_false_for_unknown_names():
    assert not hasattr(stoic, "no_such_thing")


def test_the_version_is_three_numbers():
    assert [part.isdigit() for part in stoic.__version__.split(".")] == [True] * 3


def test_every_solver_in_a_method_table_is_public():
    public = {getattr(stoic, name) for name in stoic.__all__ if isinstance(getattr(stoic, name), type)}
    assert {type(make()) for make in stoic.METHODS.values()} <= public


def test_type_checkers_see_the_names_that_are_loaded_when_they_are_used():
    tree = ast.parse(Path(stoic.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {(line.module, name.name) for line in block.body for name in line.names if name.asname == name.name}
    assert seen == {(home, name) for home, names in stoic._HOMES.items() for name in names}


@pytest.mark.slow
def test_a_small_fit_loads_no_numba():
    code = """
import numpy as np, scipy.sparse as sp, stoic
X = np.random.default_rng(0).standard_normal((200, 3))
for table in (X, sp.csr_array(X)):
    stoic.GroupDRORegressor().fit(table, X @ [1.0, 2.0, 3.0], groups=np.arange(200) % 2)
"""
    assert "numba" not in modules_after(code)
