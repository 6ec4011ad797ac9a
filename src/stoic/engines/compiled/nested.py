"""The innermost of nested solvers: found, replaced, and started from sparse rows where X is sparse."""

from typing import Any

from numpy.random import Generator

from stoic.engines.compiled.sparse_reference import sparse_init
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver
from stoic.solvers.composite import Composite, Running


def innermost(solver: AnySolver, problem: Problem, state: Any) -> Running:
    """Return what takes the next step."""
    found = Running(solver, problem, state)
    while isinstance(found.solver, Composite):
        found = found.solver.running(found.problem, found.state)
    return found


def with_innermost(solver: AnySolver, problem: Problem, state: Any, inner: Any) -> Any:
    """Return the state with that of the solver that takes the steps replaced."""
    if not isinstance(solver, Composite):
        return inner
    return state._replace(inner=with_innermost(*solver.running(problem, state), inner))


def begun(solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
    """Return ``solver.init(problem, w0, rng)``, the reference of a ROSC from sparse rows where X is sparse."""
    if isinstance(solver, Composite):
        return solver.started(problem, w0, rng, begun)
    return sparse_init(solver, problem, w0, rng)


def advanced(solver: AnySolver, problem: Problem, state: Any, rng: Generator) -> Any:
    """Return the state with the next solver begun, at the innermost level whose running one has finished."""
    if not isinstance(solver, Composite):
        return state
    running = solver.running(problem, state)
    if running.solver.finished(running.state):
        return solver.advanced(problem, state, rng, begun)
    return state._replace(inner=advanced(*running, rng))
