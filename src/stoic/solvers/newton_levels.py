"""A start from fewer rows: growing parts of each group, each solved to the accuracy that so few rows have."""

import numpy as np

from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.group_loss import GroupLoss
from stoic.solvers.newton_point import Point
from stoic.solvers.newton_steps import KEEPS, LARGE, NewtonState, advance, keeps_matrix, second
from stoic.solvers.newton_sum import MOST_DENSE, Sum

_PER_VARIABLE, _FEWEST_ROWS = (8, 64, 256), 25  # rows for each variable on each level, of 25 variables at least
_PER_GROUP = 4  # rows of a level that tell a group's mean, at least
_LEAST_GAIN = 4  # times fewer rows than all, for a level to pay
_STATISTICAL = 0.1  # of the noise of F on few rows: how exactly it is minimized there
_MOST_STEPS = 30
_BLEND = 0.1  # of the parabolas above the losses, in the second derivatives that are kept


def started(point: Point) -> NewtonState:
    """Return the state at a point, or at a lower one that fewer rows have led to."""
    sum_ = point.sum
    state = NewtonState(point.w, point=point, blend=1.0)
    sizes = _sizes(sum_)
    for size in sizes:
        few = sum_.of_rows(_some(sum_, size))
        first = _lower(few.at(state.w), few.at(point.w))
        own = NewtonState(first.w, point=first, is_rough=True, blend=1.0)
        noise = _STATISTICAL * min(1.0, len(state.w) / few.n)
        while own.t < _MOST_STEPS and not (own.is_done or own.is_stuck or sum_.is_late):
            own = advance(own, noise)
        if own.point is None or not np.isfinite(own.w).all():
            return NewtonState(point.w, point=point)
        state = state._replace(w=own.w, blend=own.blend, diagonal=own.diagonal)
    if not sizes:
        return state
    reached = _lower(sum_.at(state.w), point)
    state = state._replace(w=reached.w, point=reached)
    if keeps_matrix(sum_) and own.point is not None:
        state = state._replace(keeps=True, **second(own.point, reached, max(own.blend, _BLEND)))
    return state


def _lower(reached: Point, start: Point) -> Point:
    return reached if reached.value < start.value else start


def _sizes(sum_: Sum) -> list[int]:
    """Return how many rows are taken, from level to level."""
    if not isinstance(sum_.rows, GroupLoss) or sum_.entries <= LARGE:
        return []
    d, n = len(sum_.terms.l2), sum_.n
    if d <= MOST_DENSE and sum_.entries <= KEEPS:
        return []
    if d > MOST_DENSE:
        sizes = [] if sum_.has_l1 else [n // _LEAST_GAIN]
    else:
        sizes = [max(k * d, _FEWEST_ROWS * k) for k in _PER_VARIABLE]
    return [size for size in sizes if _PER_GROUP * sum_.rows.n_groups <= size <= n // _LEAST_GAIN]


def _some(sum_: Sum, size: int) -> IntArray:
    """Return as many rows of each group, in equal distances; all of a small one, and at least one that counts."""
    rows = sum_.rows.grouped_rows
    apart = np.maximum(1, -(-rows.sizes * rows.n_groups // size))
    codes = rows.codes.take(rows.order)
    places = np.arange(len(codes)) - rows.offsets.take(codes)
    is_taken = places % apart.take(codes) == 0
    if rows.weight is not None:
        counts = sums_by(codes, is_taken * (rows.weight.take(rows.order) > 0.0), rows.n_groups)
        is_taken |= (counts == 0.0).take(codes)
    return np.asarray(rows.order[is_taken])
