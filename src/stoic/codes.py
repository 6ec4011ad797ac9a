"""Codes of losses, outer functions and penalties in kernels: a kind, and constants. Imports no numba."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SQUARED, HUBER, ABSOLUTE, QUANTILE, LOGISTIC = range(5)
LINEAR, LOGSUMEXP, SMOOTH_CVAR = range(3)


class LossCode(NamedTuple):
    """A loss: its kind, and its one or two parameters (threshold or smoothing; level)."""

    kind: int
    scale: float = 1.0
    level: float = 0.5


class OuterCode(NamedTuple):
    """An outer function: kind, weights or prior, baseline, scale, temperature, level · p, an array to sort in."""

    kind: int
    weights: NDArray[np.float64]
    baseline: NDArray[np.float64]
    scale: NDArray[np.float64]
    temperature: float
    capacity: float
    ordered: NDArray[np.float64]


class PenaltyCode(NamedTuple):
    """The weights of ‖w‖₁ and ‖w‖²/2."""

    l1: float
    l2: float


_MATHEMATICS = ("value", "derivative", "gradient", "prox", "step")


def own(part: Any, name: str) -> Any:
    """Return an attribute of a part; None if it has none, or a subclass below it has other mathematics.

    Examples
    --------
    >>> import stoic
    >>> class Halved(stoic.Huber):
    ...     def value(self, prediction, target):
    ...         return 0.5 * super().value(prediction, target)
    >>> own(stoic.Huber(2.0), "code"), own(Halved(), "code")
    (LossCode(kind=1, scale=2.0, level=0.5), None)
    """
    for kind in type(part).__mro__:
        if name in vars(kind):
            return getattr(part, name)
        if any(one in vars(kind) for one in _MATHEMATICS):
            return None
    return None
