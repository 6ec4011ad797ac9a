"""Brackets on the root of an increasing function: one root finder for the ball, in Python and in kernels.

False position; where the same end stays twice, its value counts less (Anderson, Björck 1973). Imports no numba.
"""

import math
from typing import NamedTuple

TOLERANCE = 1e-12  # relative width of a bracket that is narrow enough


class Bracket(NamedTuple):
    """Points 0 ≤ low < high, the function's values there (maybe damped), and the value that was found last."""

    low: float
    high: float
    below: float
    above: float
    last: float


def is_wide(bracket: Bracket) -> bool:
    """Whether the root is not yet known to a relative width of `TOLERANCE`."""
    return bracket.high - bracket.low > TOLERANCE * bracket.high > 0.0


def next_point(bracket: Bracket) -> float:
    """Return where to evaluate the function next: on the chord, or halfway if an end is infinite."""
    low, high = bracket.low, bracket.high
    if not bracket.above < math.inf:
        return 0.5 * (low + high)
    margin = 0.5 * TOLERANCE * high
    point = low + (high - low) * (bracket.below / (bracket.below - bracket.above))
    return min(max(point, low + margin), high - margin)


def narrowed(bracket: Bracket, point: float, value: float) -> Bracket:
    """Return the bracket when the function has a value at a point."""
    damping = 1.0
    if value * bracket.last > 0.0:
        nearer = abs(value) < abs(bracket.last)
        damping = max(0.1, 1.0 - value / bracket.last) if nearer else 0.5
    if value <= 0.0:
        return Bracket(point, bracket.high, value, bracket.above * damping, value)
    return Bracket(bracket.low, point, bracket.below * damping, value, value)
