"""The protocol of adapters, which run the steps of a solver in a kernel, and what most of them share."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from stoic.engines.compiled.problem import Translated
from stoic.engines.compiled.vectors import Form
from stoic.engines.kernels.parts.batches import Scratch
from stoic.solvers.base import UNBOUNDED

Rows = NDArray[np.int64]


class Live(NamedTuple):
    """Placeholder of a state while an adapter owns its vectors, at step t; `settled` returns the state itself."""

    t: int


class Adapter(Protocol):
    """Takes the steps of one solver in a kernel, on vectors that live on from run to run."""

    batches: int
    watched: int  # estimates that a step may truncate
    n_groups: int  # in a batch

    def begin(self, state: Any) -> None:
        """Take over from a state."""
        ...

    def room(self, t: int) -> int:
        """Return how many steps from step t can be drawn at a time."""
        ...

    def draw(self, t: int, n_steps: int, rng: Generator) -> Any:
        """Return what as many plain steps draw from step t on: rows (steps, batches, p, m), or choices of them."""
        ...

    def run(self, t: int, rows: Any, counts: Rows) -> None:
        """Take a step for each of the rows from step t, up to one that is not finite.

        `counts` gains the steps taken, and how often y and z were truncated.
        """
        ...

    def state(self, t: int) -> Any:
        """Return the state at step t, which is the one reached."""
        ...

    def evaluations(self, t: int, n_steps: int) -> int:
        """Return how many batches the `n_steps` steps from step t evaluate, counted as the meter counts."""
        ...


class DrawsAll:
    """A part of an adapter: each batch is of all groups."""

    solver: Any
    problem: Translated
    batches: int = 1
    watched: int = 0

    @property
    def n_groups(self) -> int:
        """The number of groups in a batch."""
        return self.problem.inner.n_groups

    def room(self, t: int) -> int:  # noqa: ARG002
        """Return more steps than any budget allows."""
        return UNBOUNDED

    def draw(self, t: int, n_steps: int, rng: Generator) -> Any:  # noqa: ARG002
        """Return the rows of all steps, of shape (steps, batches, p, m)."""
        shape = n_steps, self.batches, self.n_groups, self.solver.batch_size
        return self.problem.inner.grouped_rows.batches(shape, rng)


class VectorAdapter(DrawsAll):
    """An adapter on a vector of one of the two forms: chunk boundaries do not change a bit."""

    form: Form

    def begin(self, state: Any) -> None:
        """Take over from a state."""
        self.form = self.formed(state)
        p, m = self.n_groups, self.solver.batch_size
        self.scratch = Scratch(*(np.empty(p) for _ in range(3)), *(np.empty((p, m)) for _ in range(2)))

    def formed(self, state: Any) -> Form:
        """Return the form of a state."""
        return Form(self.problem, state)

    def evaluations(self, t: int, n_steps: int) -> int:  # noqa: ARG002
        """Return one evaluation a batch."""
        return self.batches * n_steps
