"""One step of Newton's method on a sum: a direction, a search along it, and what the next step needs to know."""

import math
from typing import Any, NamedTuple, cast

import numpy as np

from stoic.protocols import Array, Vector
from stoic.solvers.newton_directions import Direction, by_kept_matrix, by_matrix, by_products
from stoic.solvers.newton_model import Bends, bends_at, by_model, corrected, has_model, hessian_of
from stoic.solvers.newton_point import Point, RowsPoint
from stoic.solvers.newton_sum import MOST_DENSE, Sum

LARGE = 1 << 18  # stored numbers: a pass over more takes long
KEEPS = 1 << 20  # stored numbers from which on fewer rows come first, and the Hessian is kept from step to step
_FEW_PRODUCTS, _MANY_PRODUCTS = 2.0, 8.0  # in whose time the Hessian is formed: it is not kept, it leads only
_ARMIJO, _MOST_HALVINGS = 1e-4, 50
EXACT, _NEAR = 1e-20, 1e-12  # of the size of F: a decrease that is none, that may be rounding
_ROUNDING, _BLIND = 1e-15, 1e-12  # of F: its error, and a decrease that it hides
_NOTHING = 1e-8  # of F at the start: what counts as zero
_FIRST_DAMPING, _LEAST_DAMPING, _SMALL_DAMPING, _MOST_DAMPING = 1e-8, 1e-12, 1e-3, 1e6
_FIRST_BLEND, _LEAST_BLEND = 0.1, 0.02  # of the curvature of parabolas above the losses
_ROUGHLY = 1e-6  # of F: a gap for which the curvature of parabolas above the losses will do
_SLOW = 0.25  # of the last promise: one that shows that what is kept is worn out
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
    bends: Bends | None = None
    matrix: Array | None = None
    keeps: bool = False
    leads: bool = False
    before: float = math.inf
    is_rough: bool = False
    blend: float = 0.0
    diagonal: Vector | None = None
    age: int = 0
    metric: float = 1.0


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
    is_trusted = state.damping <= _SMALL_DAMPING and halvings == 0 and (state.blend == 0.0 or gap > _ROUGHLY)
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
    if state.keeps and not state.leads and not is_done:
        state = _kept(state, direction, point, new, size)
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


def keeps_matrix(sum_: Sum) -> bool:
    """Whether the Hessian is formed of some rows once, and then follows the slopes of all."""
    d = len(sum_.terms.l2)
    is_large = sum_.rows is not None and d <= MOST_DENSE and sum_.entries > KEEPS
    return is_large and sum_.products_of_a_matrix > _FEW_PRODUCTS


def _direction(point: Point, state: NewtonState, size: float, gap: float) -> tuple[Direction, NewtonState]:
    accuracy = min(0.1, max(1e-6, math.sqrt(state.promised / size))) if size > 0.0 else 0.1
    if gap > 0.0 and 0.0 < state.promised < math.inf:  # what a step leaves is to be less than the gap, and no more
        accuracy = max(accuracy, min(0.1, math.sqrt(0.1 * gap * state.first / state.promised)))
    if state.leads:
        matrix = state.matrix if state.bends is None else hessian_of(point, state.bends)
        return by_kept_matrix(point, cast("Array", matrix), state.damping, accuracy, state.blend), state
    if point.w.size <= point.sum.most_dense:
        if (state.keeps or state.is_rough) and has_model(point.sum):
            bends = state.bends or bends_at(point, state.blend)
            return by_model(point, bends, state.damping), state._replace(bends=bends if state.keeps else None)
        matrix = point.hessian(state.blend) if state.matrix is None else state.matrix
        return by_matrix(point, matrix, state.damping), state._replace(matrix=matrix if state.keeps else None)
    diagonal, age = state.diagonal, state.age
    if diagonal is None or age > _MOST_STALE:
        diagonal, age = point.diagonal(state.blend), 0
    direction, products = by_products(point, state.damping, accuracy, diagonal, state.blend)
    return direction, state._replace(diagonal=diagonal, age=age + products)


def _kept(state: NewtonState, direction: Direction, before: Point, new: Point, size: float) -> NewtonState:
    """Return the state with what is kept corrected by the slopes of a step, or left out where it is worn out."""
    is_slow = state.blend == 1.0 or (
        state.age > 0 and state.promised > (2.0 if new.sum.has_l1 else 1.0) * _SLOW * state.before
    )
    is_worn = is_slow or state.age >= _MOST_UPDATES or state.promised <= _FRESH * size
    if is_worn and not new.sum.has_l1 and new.sum.products_of_a_matrix > _MANY_PRODUCTS:
        return state._replace(leads=True)
    if is_worn:
        return state._replace(bends=None, matrix=None, age=0)
    step, bends = new.w - before.w, state.bends
    if bends is not None and direction.foreseen is not None and step.any():
        bends = corrected(bends, step, new.smooth, direction.foreseen(step))
    matrix = state.matrix
    if matrix is not None and step.any():
        change = new.smooth - before.smooth
        matrix = corrected(Bends(matrix, matrix), step, change, matrix @ step).missing
    return state._replace(bends=bends, matrix=matrix, age=state.age + 1)


def second(few: Point, point: Point, blend: float) -> dict[str, Any]:
    """Return second derivatives as a state keeps them: of few rows, but for columns that these hardly have."""
    if not has_model(few.sum):
        matrix = few.hessian(blend)
        matrix.flat[:: len(matrix) + 1] += np.maximum(point.diagonal(blend) - matrix.diagonal(), 0.0)
        return {"matrix": matrix}
    bends = bends_at(few, blend)
    own = few.q @ np.einsum("ijj->ij", bends.of_groups) + few.sum.terms.l2
    return {"bends": bends._replace(missing=np.diag(np.maximum(point.diagonal(blend) - own, 0.0)))}


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
