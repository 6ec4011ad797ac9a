"""Accelerated proximal steps in the metric of the diagonal: they find out which of many variables are not zero."""

import math
from typing import Any, NamedTuple

import numpy as np

from stoic.protocols import Vector
from stoic.solvers.newton_point import Point, RowsPoint

_STEPS, _MOST_DOUBLINGS = 10, 60
_EASE, _ROUNDING = 0.8, 1e-14  # of the metric from step to step, and of F


class Pace(NamedTuple):
    """What is kept from step to step: the multiple of the metric, the momentum, and the point ahead."""

    metric: float = 1.0
    momentum: float = 1.0
    ahead: Any = None


def proximal_steps(point: Point, diagonal: Vector, pace: Pace) -> tuple[Point, Pace]:
    """Return the point after some accelerated proximal steps with restarts, and the pace of the next.

    A step takes two products with the rows: predictions are linear, so that those ahead of a point need none.
    """
    before: Any = point
    ahead: Any = pace.ahead or point
    metric, momentum = pace.metric, pace.momentum if pace.ahead else 1.0
    for _ in range(_STEPS):
        reached, metric = _step(ahead, diagonal, _EASE * metric)
        if reached.value > before.value:
            if ahead is before:
                break
            ahead, momentum = before, 1.0
            continue
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        share = (momentum - 1.0) / following
        w, t = reached.w + share * (reached.w - before.w), reached.t + share * (reached.t - before.t)
        ahead = RowsPoint(point.sum, w, t) if share > 0.0 else reached
        before, momentum = reached, following
        if point.sum.is_late:
            break
    return before, Pace(metric, momentum, ahead)


def _step(point: Any, diagonal: Vector, metric: float) -> tuple[Any, float]:
    """Return the proximal step from a point, short enough that F lies below its model there, and the metric."""
    l1, w = point.sum.terms.l1, point.w
    smooth = point.value - float(l1 @ np.abs(w))
    for _ in range(_MOST_DOUBLINGS):
        scale = metric * diagonal
        v = w - point.smooth / scale
        new = np.sign(v) * np.maximum(np.abs(v) - l1 / scale, 0.0)
        move = new - w
        reached = point.sum.at(new)
        model = smooth + float(point.smooth @ move) + 0.5 * float(move @ (scale * move))
        if reached.value - float(l1 @ np.abs(new)) <= model + _ROUNDING * abs(point.value):
            break
        metric *= 2.0
    return reached, metric
