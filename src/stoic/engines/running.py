"""What runs the steps of a solver in a kernel: the protocol, and what all of them share."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stoic.engines.forms import Form, ScaledForm, ThresholdedForm
from stoic.engines.translation import Translated
from stoic.protocols import Vector

Rows = NDArray[np.int64]


class Ran(NamedTuple):
    """The state after a run, the steps taken, and those in which y and z were truncated."""

    state: Any
    n_steps: int
    truncated_y: int = 0
    truncated_z: int = 0


class Runner(Protocol):
    """Takes the steps of one solver in a kernel."""

    batches: int

    def run(self, state: Any, rows: Rows) -> Ran:
        """Take a step for each of rows (steps, batches, p, m)."""
        ...

    def save(self) -> Any:
        """Return what `restore` needs to take a run back."""
        ...

    def restore(self, saved: Any) -> None:
        """Take back what has been done since `save`."""
        ...

    def evaluations(self, state: Any, n_steps: int) -> int:
        """Return how many batches `n_steps` steps from a state evaluate, counted as the meter counts."""
        ...


class ScaledRunner:
    """A runner on the scaled form, which lives on from chunk to chunk: boundaries do not change a bit."""

    problem: Translated
    _state: Any = None
    _vector: Form

    def vector(self, state: Any, center: Vector | None = None) -> Form:
        """Return the live form of the state that was returned last; of any other state a new one."""
        if state is not self._state:
            has_tail = self.problem.data.has_tail
            if self.problem.l1 > 0.0 and center is not None:
                self._vector = ThresholdedForm(state, center, has_tail=has_tail)
            else:
                anchor = self.problem.anchor
                center = anchor.center if center is None else center
                self._vector = ScaledForm(state, center, has_tail=has_tail, weight=anchor.weight)
            self.begin(state)
        return self._vector

    def begin(self, state: Any) -> None:
        """Set up what else lives on with the form."""

    def save(self) -> Any:
        """Return what `restore` needs to take a run back."""
        return None if self._state is None else (self._state, self._vector.clone())

    def restore(self, saved: Any) -> None:
        """Take back what has been done since `save`."""
        self._state = None
        if saved is not None:
            self._state, self._vector = saved

    def ran(self, state: Any, n_steps: int, truncated_y: int = 0, truncated_z: int = 0) -> Ran:
        """Return the outcome, and remember its state as the live one."""
        self._state = state
        return Ran(state, n_steps, truncated_y, truncated_z)


class EachOnce(ScaledRunner):
    """A runner that evaluates each batch at one point."""

    batches: int = 1

    def evaluations(self, state: Any, n_steps: int) -> int:  # noqa: ARG002
        """Return one evaluation a batch."""
        return self.batches * n_steps
