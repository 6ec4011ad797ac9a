"""A start from fewer rows: growing parts of each group, each solved to the accuracy that so few rows have."""

import math

import numpy as np

from stoic.inners.blocks import IntArray
from stoic.inners.group_loss import GroupLoss
from stoic.solvers.newton_steps import LARGE, MOST_DENSE, NewtonState, advance, keeps_matrix
from stoic.solvers.newton_sum import Point, Sum

_GROWTH = 8  # of the rows from level to level
_PER_VARIABLE, _FEWEST = 10, 10  # rows for each variable, and of each group
_STATISTICAL = 0.1  # of the noise of F on few rows: how exactly it is minimized there
_MOST_STEPS = 30


def started(point: Point) -> NewtonState:
    """Return the state at a point, or at a lower one that fewer rows have led to."""
    sum_ = point.sum
    state = NewtonState(point.w, point=point)
    strides = _strides(sum_)
    for stride in strides:
        few = sum_.of_rows(_some(sum_, stride))
        own = NewtonState(state.w, point=few.at(state.w))
        noise = _STATISTICAL * min(1.0, len(state.w) / few.n)
        while own.t < _MOST_STEPS and not (own.is_done or own.is_stuck or sum_.is_late):
            own = advance(own, noise)
        if own.point is None or not np.isfinite(own.w).all():
            return NewtonState(point.w, point=point)
        matrix = None
        if stride == strides[-1] and keeps_matrix(sum_):
            matrix = own.point.hessian()
        state = state._replace(w=own.w, matrix=matrix)
    if not strides:
        return state
    reached = sum_.at(state.w)
    if not reached.value < point.value:
        reached = point
    return state._replace(w=reached.w, point=reached)


def _strides(sum_: Sum) -> list[int]:
    """Return how many rows there are for each that is taken, from level to level."""
    if not isinstance(sum_.rows, GroupLoss) or sum_.entries <= LARGE:
        return []
    d, n = len(sum_.terms.l2), sum_.n
    if d > MOST_DENSE and sum_.has_l1:
        return []
    least = max(_PER_VARIABLE * d, 200)
    most = int(math.log(max(1.0, n / least), _GROWTH))
    return [_GROWTH**k for k in range(most, 0, -1)]


def _some(sum_: Sum, stride: int) -> IntArray:
    """Return each row of a group that comes that far after the last, but some of each group, and one that counts."""
    rows = sum_.rows.grouped_rows
    taken = []
    for first, size in zip(rows.offsets[:-1].tolist(), rows.sizes.tolist(), strict=True):
        own = rows.order[first : first + size : max(1, min(stride, size // _FEWEST))]
        if rows.weight is not None and not (rows.weight[own] > 0.0).any():
            own = rows.order[first : first + size]
        taken.append(own)
    return np.sort(np.concatenate(taken))
