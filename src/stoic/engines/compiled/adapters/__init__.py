"""Adapters: how a solver's state goes into its kernel and comes out again, the same type as in the plain engine.

A solver names its adapter by `kernel`, a module here, whose `adapter` takes the solver and the problem.
"""

from importlib import import_module
from typing import Any, cast

from stoic.engines.compiled.adapters.base import Adapter
from stoic.engines.compiled.problem import Translated


def make_adapter(solver: Any, problem: Translated) -> Adapter:
    """Return the adapter of a solver that nothing is missing for."""
    return cast("Adapter", import_module(f"{__name__}.{solver.kernel}").adapter(solver, problem))
