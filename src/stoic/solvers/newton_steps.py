"""One step of Newton's method on a sum: a direction, a search along it, and what the next step needs to know."""

import math
from typing import Any, NamedTuple

import numpy as np

from stoic.protocols import Array, Vector
from stoic.solvers.newton_directions import Direction, by_matrix, by_products
from stoic.solvers.newton_sum import Point, RowsPoint, Sum

MOST_DENSE = 1000  # variables up to which the Hessian is formed
LARGE = 1 << 20  # stored numbers from which on it is kept from step to step
_ARMIJO, _MOST_HALVINGS = 1e-4, 50
EXACT, _NEAR = 1e-20, 1e-12  # of the size of F: a decrease that is none, that may be rounding
_ROUNDING, _BLIND = 1e-15, 1e-12  # of F: its error, and a decrease that it hides
_NOTHING = 1e-8  # of F at the start: what counts as zero
_FIRST_DAMPING, _LEAST_DAMPING, _SMALL_DAMPING, _MOST_DAMPING = 1e-8, 1e-12, 1e-3, 1e6
_FRESH = 1e-9  # of the size of F: promises below which predictions and Hessians are formed anew
_STEEP = 0.3  # of the slope at the start of a step: one at its end that a better length would avoid
_LONGEST = 4.0
_MOST_UPDATES, _MOST_STALE = 15, 20  # of a kept matrix, products with a kept diagonal
_LEAST_BENT = 1e-10  # of the lengths: a change of slopes along a step that tells its curvature


class NewtonState(NamedTuple):
    """The iterate, the steps taken, the damping of the next, how much the last was to lower F, its size at w₀.

    Done: another step would change nothing but rounding, or less than the gap that was asked for. Stuck: no step
    of any length lowers F. The last fields are what is kept from step to step: the point w, and a matrix or a
    diagonal of second derivatives near it with the number of its updates or products.
    """

    w: Vector
    t: int = 0
    damping: float = _FIRST_DAMPING
    promised: float = math.inf
    first: float = 0.0
    is_done: bool = False
    is_stuck: bool = False
    point: Point | None = None
    matrix: Array | None = None
    diagonal: Vector | None = None
    age: int = 0


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
    is_done = promised <= EXACT * size or (is_near and promised > 0.5 * state.promised)
    is_done = is_done or (0.5 * promised <= gap * first and state.damping <= _SMALL_DAMPING and halvings == 0)
    damping = state.damping * (0.1 if halvings == 0 else 2.0**halvings)
    is_stuck = halvings > _MOST_HALVINGS and damping > _MOST_DAMPING
    damping = min(max(damping, _LEAST_DAMPING), _MOST_DAMPING)
    state = state._replace(
        w=new.w, t=state.t + 1, damping=damping, promised=promised, is_done=is_done, is_stuck=is_stuck, point=new
    )
    if state.matrix is not None and not is_done:
        state = _updated(state, point, new, halvings, promised / size if size else 0.0)
    if promised <= _FRESH * size and not is_done and isinstance(new, RowsPoint):
        state = state._replace(point=new.sum.at(new.w))  # without the rounding of many steps
    return state


def keeps_matrix(sum_: Sum) -> bool:
    """Whether the Hessian is formed of some rows once, and then follows the slopes of all."""
    d = len(sum_.terms.l2)
    return sum_.rows is not None and d <= MOST_DENSE and sum_.entries > LARGE


def _direction(point: Point, state: NewtonState, size: float, gap: float) -> tuple[Direction, NewtonState]:
    if point.w.size <= MOST_DENSE:
        matrix = point.hessian() if state.matrix is None else state.matrix
        return by_matrix(point, matrix, state.damping), state
    accuracy = min(0.1, max(1e-6, math.sqrt(state.promised / size))) if size > 0.0 else 0.1
    if gap > 0.0 and state.promised < math.inf:  # what is left after a step is to be less than the gap, and no more
        accuracy = max(accuracy, min(0.1, math.sqrt(0.1 * gap * state.first / state.promised)))
    diagonal, age = state.diagonal, state.age
    if diagonal is None or age > _MOST_STALE:
        diagonal, age = point.diagonal(), 0
    direction, products = by_products(point, state.damping, accuracy, diagonal)
    return direction, state._replace(diagonal=diagonal, age=age + products)


def _updated(state: NewtonState, before: Point, after: Point, halvings: int, promised: float) -> NewtonState:
    """Return the state with the kept matrix corrected by the slopes of a step (Broyden, Fletcher, Goldfarb, Shanno)."""
    if state.age >= _MOST_UPDATES or halvings > 2 or promised <= _FRESH:
        return state._replace(matrix=after.hessian(), age=0)
    matrix: Any = state.matrix
    s, y = after.w - before.w, after.smooth - before.smooth
    bent, own = float(s @ y), matrix @ s
    if bent <= _LEAST_BENT * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return state._replace(age=state.age + 1)
    matrix = matrix + np.outer(y, y / bent) - np.outer(own, own / float(s @ own))
    return state._replace(matrix=matrix, age=state.age + 1)


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
                return new, halvings
    return point, _MOST_HALVINGS + 1
