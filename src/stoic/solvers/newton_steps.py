"""One step of Newton's method on a sum: a direction, a search along it, and what the next step needs to know."""

import math
from typing import Any, NamedTuple

import numpy as np

from stoic.protocols import Vector
from stoic.solvers.newton_directions import Direction, by_matrix, by_products
from stoic.solvers.newton_kept import Kept
from stoic.solvers.newton_model import bends_at, by_model, has_model
from stoic.solvers.newton_point import Line, Point, RowsPoint
from stoic.solvers.newton_proximal import Pace

_ARMIJO, _MOST_HALVINGS = 1e-4, 50
EXACT, _NEAR = 1e-20, 1e-12  # of the size of F: a decrease that is none, that may be rounding
_ROUNDING, _BLIND = 1e-15, 1e-12  # of F: its error, and a decrease that it hides
_NOTHING = 1e-8  # of F at the start: what counts as zero
_FIRST_DAMPING, _LEAST_DAMPING, _SMALL_DAMPING, _MOST_DAMPING = 1e-8, 1e-12, 1e-3, 1e6
_FIRST_BLEND, _LEAST_BLEND = 0.1, 0.02  # of the curvature of parabolas above the losses
_ROUGHLY = 1e-6  # of F: a gap for which the curvature of parabolas above the losses will do
_SLOW = 0.25  # of the last promise: one that shows that what is kept is worn out
_FRESH = 1e-9  # of the size of F: promises below which predictions and Hessians are formed anew
_OTHER, _LONGEST = 0.3, 4.0  # of a length: how different another has to be that a parabola points to; its most
_MOST_STALE = 20  # products with a kept diagonal


class NewtonState(NamedTuple):
    """The iterate, the steps taken, the damping of the next, how much the last was to lower F, its size at w₀.

    Done: another step would change nothing but rounding, or less than the gap that was asked for. Stuck: no step
    of any length lowers F. The last fields are what is kept from step to step: the point w, second derivatives,
    or their diagonal with the number of products that it has led.
    """

    w: Vector
    t: int = 0
    damping: float = _FIRST_DAMPING
    promised: float = math.inf
    first: float = 0.0
    is_done: bool = False
    is_stuck: bool = False
    point: Point | None = None
    kept: Kept | None = None
    before: float = math.inf
    is_rough: bool = False
    blend: float = 0.0
    diagonal: Vector | None = None
    age: int = 0
    pace: Pace = Pace()


def advance(state: NewtonState, gap: float) -> NewtonState:
    """Return the state after a step; it is done where F could fall by less than `gap` of its size at the start."""
    point: Any = state.point
    first = state.first if state.t else point.size
    size = max(point.size, _NOTHING * first)
    direction, state = _direction(point, state._replace(first=first), size, gap)
    promised = direction.promised
    if not math.isfinite(promised):  # numbers too large to go on
        return state._replace(w=np.full_like(state.w, np.nan), point=None)
    new, halvings = _search(point, direction, matters=promised > _NEAR * size)
    is_near = promised <= _NEAR * size and state.damping <= _SMALL_DAMPING  # a damped step promises little
    is_exact = state.kept is None or state.kept.is_exact(point.sum)
    is_done = promised <= EXACT * size or (is_near and is_exact and promised > 0.5 * state.promised)
    is_whole = halvings == 0 or promised <= _BLIND * abs(point.value)  # but for rounding
    is_trusted = state.damping <= _SMALL_DAMPING and is_whole and (state.blend == 0.0 or gap > _ROUGHLY)
    is_done = is_done or (is_trusted and 0.5 * promised <= gap * first)
    has_more = state.blend < 1.0 and _can_blend(point)  # parabolas above the losses come before damping
    failed = halvings > _MOST_HALVINGS or (halvings > 0 and not has_more)
    damping = state.damping * (2.0**halvings if failed else 0.1)
    is_stuck = halvings > _MOST_HALVINGS and damping > _MOST_DAMPING
    damping = min(max(damping, _LEAST_DAMPING), _MOST_DAMPING)
    state = state._replace(
        w=new.w,
        t=state.t + 1,
        damping=damping,
        promised=promised,
        before=state.promised,
        is_done=is_done,
        is_stuck=is_stuck,
        point=new,
        is_rough=state.is_rough or halvings > 0,
        blend=_blended(state.blend, halvings) if _can_blend(point) else 0.0,
    )
    if state.kept is not None and not is_done:
        is_slow = promised > (2.0 if point.sum.has_l1 else 1.0) * _SLOW * state.before
        is_rough = halvings > 0 or state.blend == 1.0
        kept = state.kept.followed(direction, point, new, is_slow=is_slow, is_rough=is_rough)
        state = state._replace(kept=kept)
    if promised <= _FRESH * size and not is_done and isinstance(new, RowsPoint):
        state = state._replace(point=new.sum.at(new.w))  # without the rounding of many steps
    return state


def _can_blend(point: Point) -> bool:
    return hasattr(getattr(point.sum.rows, "loss", None), "bound_curvature")


def _blended(blend: float, halvings: int) -> float:
    """Return how much of the parabolas above the losses the next step takes: more after a failure."""
    if halvings:
        return min(1.0, 10.0 * blend) or _FIRST_BLEND
    return 0.1 * blend if blend > _LEAST_BLEND else 0.0


def _direction(point: Point, state: NewtonState, size: float, gap: float) -> tuple[Direction, NewtonState]:
    accuracy = min(0.4, max(1e-6, math.sqrt(state.promised / size))) if size > 0.0 else 0.1
    if gap > 0.0 and 0.0 < state.promised < math.inf:  # what a step leaves is to be less than the gap, and no more
        accuracy = max(accuracy, min(0.1, math.sqrt(0.1 * gap * state.first / state.promised)))
    if state.kept is not None:
        kept = state.kept.formed(point, state.blend)
        return kept.direction(point, state.damping, accuracy, state.blend), state._replace(kept=kept)
    if point.w.size <= point.sum.most_dense:
        if state.is_rough and has_model(point.sum):
            return by_model(point, bends_at(point, state.blend), state.damping), state
        return by_matrix(point, point.hessian(state.blend), state.damping), state
    diagonal, age = state.diagonal, state.age
    if diagonal is None or age > _MOST_STALE:
        diagonal, age = point.diagonal(state.blend), 0
    direction, products = by_products(point, state.damping, accuracy, diagonal, state.blend)
    return direction, state._replace(diagonal=diagonal, age=age + products)


def _search(point: Point, direction: Direction, *, matters: bool) -> tuple[Point, int]:
    """Return the first point of w + p, w + p/2, … with a lower F, and how often the step was halved.

    Where rounding hides a decrease that matters, F must not climb there as steeply as it fell at w.
    """
    promised, line = direction.promised, point.line(direction.p, direction.change)
    slack = _ROUNDING * abs(point.value)
    is_hidden = matters and promised <= _BLIND * abs(point.value)
    for halvings in range(_MOST_HALVINGS + 1):
        step = 0.5**halvings
        if line.value(step) <= point.value - _ARMIJO * step * promised + slack:
            new = line.point(step)
            if not (is_hidden and float(new.slope @ direction.p) > (1.0 - _ARMIJO) * promised):
                is_free = direction.change is not None and not is_hidden  # of products
                return (_lowest(point, line, step, promised) if is_free else new), halvings
    return point, _MOST_HALVINGS + 1


def _lowest(point: Point, line: Line, step: float, promised: float) -> Point:
    """Return the end of a step, or of another length that a parabola through it points to, if F is lower there."""
    new = line.point(step)
    bent = new.value - point.value + step * promised
    other = min(_LONGEST, 0.5 * step * step * promised / bent) if bent > 0.0 else _LONGEST
    if abs(other - step) <= _OTHER * step:
        return new
    there = line.point(other)
    return there if there.value < new.value else new
