"""The protocol of adapters, which run the steps of a solver in a kernel, and what most of them share."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stoic.engines.compiled.problem import Translated
from stoic.engines.compiled.vectors import Form
from stoic.engines.kernels.parts.batches import Scratch

Rows = NDArray[np.int64]


class Live(NamedTuple):
    """Placeholder of a state while an adapter owns its vectors, at step t; `settled` returns the state itself."""

    t: int


class Adapter(Protocol):
    """Takes the steps of one solver in a kernel, on vectors that live on from run to run."""

    batches: int
    watched: int  # estimates that a step may truncate

    def begin(self, state: Any) -> None:
        """Take over from a state."""
        ...

    def run(self, t: int, rows: Rows, counts: Rows) -> None:
        """Take a step for each of rows (steps, batches, p, m) from step t, up to one that is not finite.

        `counts` gains the steps taken, and how often y and z were truncated.
        """
        ...

    def state(self, t: int) -> Any:
        """Return the state at step t, which is the one reached."""
        ...

    def evaluations(self, t: int, n_steps: int) -> int:
        """Return how many batches the `n_steps` steps from step t evaluate, counted as the meter counts."""
        ...


class VectorAdapter:
    """An adapter on a vector of one of the two forms: chunk boundaries do not change a bit."""

    solver: Any
    problem: Translated
    form: Form
    batches: int = 1
    watched: int = 0

    def begin(self, state: Any) -> None:
        """Take over from a state."""
        self.form = self.formed(state)
        p, m = self.problem.inner.n_groups, self.solver.batch_size
        self.scratch = Scratch(*(np.empty(p) for _ in range(3)), *(np.empty((p, m)) for _ in range(2)))

    def formed(self, state: Any) -> Form:
        """Return the form of a state."""
        return Form(self.problem, state)

    def evaluations(self, t: int, n_steps: int) -> int:  # noqa: ARG002
        """Return one evaluation a batch."""
        return self.batches * n_steps
