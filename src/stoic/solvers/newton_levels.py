"""A start from fewer rows: growing parts of each group, each solved to the accuracy that so few rows have."""

import numpy as np

from stoic.protocols import Vector
from stoic.solvers.newton_kept import Kept
from stoic.solvers.newton_point import Point
from stoic.solvers.newton_steps import NewtonState, advance
from stoic.solvers.newton_sum import Sum

_STATISTICAL = 0.1  # of the noise of F on few rows: how exactly it is minimized there
_MOST_STEPS = 30


def started(sum_: Sum, w: Vector) -> NewtonState:
    """Return the state at w, or at a lower point that fewer rows have led to."""
    start, state = sum_.at(w), NewtonState(w, blend=1.0)
    if not sum_.levels:
        return state._replace(point=start)
    for size in sum_.levels:
        few = sum_.of_size(size)
        first = _lower(few.at(state.w), few.at(w))
        own = NewtonState(first.w, point=first, is_rough=True, blend=1.0)
        noise = _STATISTICAL * min(1.0, len(w) / few.n)
        while own.t < _MOST_STEPS and not (own.is_done or own.is_stuck or sum_.is_late):
            own = advance(own, noise)
        if own.point is None or not np.isfinite(own.w).all():
            return NewtonState(w, point=start)
        state = state._replace(w=own.w, blend=own.blend, diagonal=own.diagonal)
    reached = _lower(sum_.at(state.w), start)
    kept = Kept(few) if sum_.takes_few else None
    return state._replace(w=reached.w, point=reached, kept=kept)


def _lower(reached: Point, start: Point) -> Point:
    return reached if reached.value < start.value else start
