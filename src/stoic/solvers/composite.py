"""Composite solvers: those that run other solvers, one after another."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numpy.random import Generator

from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solvers.base import AnySolver, Info, Settings

Begin = Callable[[AnySolver, Problem, Vector, Generator], Any]
"""What starts a solver on a problem: its `init`, or an engine's version of that."""


def begin(solver: AnySolver, problem: Problem, w0: Vector, rng: Generator) -> Any:
    """Return ``solver.init(problem, w0, rng)``."""
    return solver.init(problem, w0, rng)


class Running(NamedTuple):
    """The solver that takes the next step, on which problem, and its state."""

    solver: AnySolver
    problem: Problem
    state: Any


class Composite(Settings):
    """A solver made of others: it says which of them is running, and what follows when that has finished.

    The state must have `stage`, the number that is reported, and `inner`, the state of the running solver. `step`
    is written once, here; both engines run any composite solver, since they only ask these questions.
    """

    def solvers(self) -> Iterator[tuple[AnySolver, bool]]:
        """Walk through all solvers that may run, and whether on problems that it has anchored: see `Anchored`."""
        raise NotImplementedError

    def running(self, problem: Problem, state: Any) -> Running:
        """Return the solver that takes the next step, with its problem and its state."""
        raise NotImplementedError

    def started(self, problem: Problem, w0: Vector, rng: Generator, begin: Begin) -> Any:
        """Return the state before the first step; `begin` starts the first solver."""
        raise NotImplementedError

    def advanced(self, problem: Problem, state: Any, rng: Generator, begin: Begin) -> Any:
        """Return the state with the next solver begun, the running one having finished."""
        raise NotImplementedError

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> Any:
        """Return the state before the first step."""
        return self.started(problem, w0, rng, begin)

    def step(self, problem: Problem, state: Any, rng: Generator) -> tuple[Any, Info]:
        """Take a step of the running solver, beginning the next one if it has finished."""
        solver, part, inner = self.running(problem, state)
        if solver.finished(inner):
            state = self.advanced(problem, state, rng, begin)
            solver, part, inner = self.running(problem, state)
        inner, info = solver.step(part, inner, rng)
        return state._replace(inner=inner), info._replace(stage=state.stage)
