"""Observers of a fit: callbacks, early stopping, a progress bar."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stoic.engines.engine import Status
from stoic.losses import Loss
from stoic.protocols import Vector
from stoic.solve.result import Record, Result


class Stopping(Protocol):
    """An observer of the weights at each record of the last solve, which may end it."""

    def observe(self, w: Vector, loss: Loss) -> float:
        """Return the loss that is watched, on other rows."""
        ...

    def look(self, record: Record) -> None:
        """Raise StopIteration where the loss does not improve any more."""
        ...


@dataclass(frozen=True)
class Watch:
    """The observers of a fit."""

    tol: float | None = None
    verbose: bool = False
    callbacks: Sequence[Callable[[Record], None]] = ()
    stopping: Stopping | None = None

    def options(self, loss: Loss, *, is_last: bool) -> dict[str, Any]:
        """Return the observers as arguments of `minimize`."""
        looks, observers, stopping = list(self.callbacks), {}, self.stopping
        if is_last and stopping is not None:
            looks.append(stopping.look)
            observers = {"validation_loss": lambda w: stopping.observe(w, loss)}

        def call(record: Record) -> None:
            for look in looks:
                look(record)

        return {"verbose": self.verbose, "callback": call if looks else None, "observers": observers}


def is_ended(result: Result) -> bool:
    """Whether the user, or infinite numbers, ended a solve for good."""
    return result.status in {Status.STOPPED, Status.INTERRUPTED, Status.DIVERGED}
