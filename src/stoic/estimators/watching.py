"""What looks on while a model is trained: callbacks, early stopping, a progress bar."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stoic.losses import Loss
from stoic.protocols import Vector
from stoic.solve.result import Record


class Stopping(Protocol):
    """What looks at the weights at each record of the last solve, and may end it."""

    def observe(self, w: Vector, loss: Loss) -> float:
        """Return the loss that is watched, on other rows."""
        ...

    def look(self, record: Record) -> None:
        """Raise StopIteration where it does not improve any more."""
        ...


@dataclass(frozen=True)
class Watch:
    """What looks on while a model is trained."""

    tol: float | None = None
    verbose: bool = False
    callbacks: Sequence[Callable[[Record], None]] = ()
    stopping: Stopping | None = None

    def options(self, loss: Loss, *, is_last: bool) -> dict[str, Any]:
        """Return what `minimize` has to know of it."""
        looks, observers, stopping = list(self.callbacks), {}, self.stopping
        if is_last and stopping is not None:
            looks.append(stopping.look)
            observers = {"validation_loss": lambda w: stopping.observe(w, loss)}

        def call(record: Record) -> None:
            for look in looks:
                look(record)

        return {"verbose": self.verbose, "callback": call if looks else None, "observers": observers}
