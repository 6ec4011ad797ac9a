"""Steps with an L1 term and many variables: on those that are not zero, or most want to be."""

from typing import Any

import numpy as np

from stoic.inners.group_loss import GroupLoss
from stoic.protocols import Vector
from stoic.solvers.newton_point import RowsPoint
from stoic.solvers.newton_proximal import proximal_steps
from stoic.solvers.newton_steps import EXACT, NewtonState, advance
from stoic.solvers.newton_sum import MOST_DENSE, Part, Sum

_FEWEST, _GROWTH = 200, 2.0  # variables that join in a round, at least and beside those that are not zero
_ROWS, _WIDE = 2, 100  # for each variable: with fewer, of so many variables, the Hessian is nearly singular
_SHARE = 0.1  # of what the variables of a round promise first: what is left when it ends
_MOST_STEPS = 50
_MANY, _UNSETTLED, _PAYS = 500, 0.1, 1e-5  # variables that are not zero, wishes beside them, and a gain of F at w₀
_SLOW = 0.5  # of the last gain of proximal steps: steps on the set may do more
_MOST_INSIDE = 3 * MOST_DENSE  # variables of a set that is tried then
_SHARE_OF_ALL = 0.1  # of all variables: as many wishes at the start are too many for rounds


def has_sets(sum_: Sum) -> bool:
    """Whether the steps are on working sets."""
    if not sum_.has_l1 or not isinstance(sum_.rows, GroupLoss):
        return False
    d = len(sum_.terms.l1)
    return d > MOST_DENSE or d > max(_WIDE, sum_.n // _ROWS)


def round_of(state: NewtonState, gap: float, scale: Vector) -> NewtonState:
    """Return the state after a round: steps on the variables that are not zero, and those that most want to join.

    `scale` are the lengths of the columns, in which slopes are compared.
    """
    point: Any = state.point
    first = state.first if state.t else point.size
    l1, w, slope = point.sum.terms.l1, point.w, point.slope
    inside = (w != 0.0) | (l1 == 0.0)
    wish = np.where(inside, 0.0, np.abs(slope) / scale)
    joining = int(max(_FEWEST, _GROWTH * np.count_nonzero(inside)))
    outside = float(np.square(wish).sum()) / point.rows.loss.curvature  # about what they could lower F by
    n_wishes = int(np.count_nonzero(wish)) if outside > max(gap, EXACT) * first else 0
    n_inside = int(np.count_nonzero(inside))
    is_unsettled = n_wishes > _UNSETTLED * n_inside or n_inside > Part.most_dense
    is_wide = n_inside > _MANY or (n_inside == 0 and n_wishes > max(_MANY, _SHARE_OF_ALL * len(w)))
    is_slow = state.pace.ahead is not None and state.promised > _SLOW * state.before
    is_stuck = is_slow and n_inside <= _MOST_INSIDE  # where steps on the set do more
    if is_wide and is_unsettled and state.promised > _PAYS * first and not is_stuck:
        return _by_proximal_steps(state, first, np.square(scale) * point.rows.loss.curvature)
    if n_wishes > joining:
        wish[wish < np.partition(wish, -joining)[-joining]] = 0.0
    columns = np.flatnonzero(inside | (wish > 0.0))
    part = point.sum.of_columns(columns)
    own = NewtonState(
        w[columns],
        point=RowsPoint(part, w[columns], point.t),
        first=first,
        damping=state.damping,
        blend=state.blend if state.t and len(columns) <= part.most_dense else 1.0,
        is_rough=True,
    )
    share = _SHARE if n_wishes else 0.0
    most, t = 0.0, 0
    while t < _MOST_STEPS and not (own.is_done or own.is_stuck):
        own = advance(own._replace(t=t or 1), gap)
        if own.point is None:
            return state._replace(w=np.full_like(w, np.nan), point=None)
        most, t = max(most, own.promised), t + 1
        if own.promised <= share * most or part.is_late:
            break
    new = np.zeros_like(w)
    new[columns] = own.w
    there: Any = own.point
    has_moved = t > 1 and 0.5 * most > gap * first  # others may want to join where these have moved
    is_done = own.is_done and n_wishes == 0 and not has_moved
    return state._replace(
        w=new, t=state.t + 1, promised=most, first=first, is_done=is_done, is_stuck=own.is_stuck and n_wishes == 0,
        point=RowsPoint(point.sum, new, there.t), damping=own.damping,
        blend=own.blend, pace=state.pace._replace(ahead=None),
    )  # fmt: skip


def _by_proximal_steps(state: NewtonState, first: float, diagonal: Vector) -> NewtonState:
    """Return the state after proximal steps on all variables, where too many want to join for rounds."""
    point: Any = state.point
    new, pace = proximal_steps(point, diagonal + point.sum.terms.l2, state.pace)
    gained = 2.0 * (point.value - new.value)
    return state._replace(
        w=new.w, t=state.t + 1, promised=gained, before=state.promised, first=first, point=new, pace=pace
    )
