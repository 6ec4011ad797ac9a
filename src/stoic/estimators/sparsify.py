"""Set weights to exact zero where L1 optimality says so; averages are never sparse."""

from typing import cast

import numpy as np

from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.regularizers import Terms, terms_of

_MOST_ROUNDS = 5


def with_zeros(problem: Problem, w: Vector) -> Vector:
    """Return w with those weights at zero whose own best value is zero, all others as they are.

    With the slope s and the curvature h of the smooth part along a coordinate that is where |h·w − s| is at most
    the weight of |w|. All of them move at once, as long as F falls; a round takes a few passes over the rows.

    Parameters
    ----------
    problem : Problem
        With a regularizer of L1 and L2 terms. w stays as it is where its inner part is no `GroupLoss`.
    w : array of shape (d,)

    Returns
    -------
    array of shape (d,)
    """
    inner = problem.inner
    l1, l2, linear = cast("Terms", terms_of(problem.regularizer, w.size))
    if not (isinstance(inner, GroupLoss) and l1.any()):
        return w
    rows, reached = inner.everything(), problem.objective(w)
    for _ in range(_MOST_ROUNDS):
        q = problem.outer.gradient(inner.value(w, rows)[0])
        slope = inner.vjp(w, rows, q) + l2 * w + linear
        curvature = inner.hessian_diagonal(w, rows, q) + l2
        ends = (w != 0.0) & (l1 > 0.0) & (np.abs(curvature * w - slope) <= l1)
        if not ends.any():
            break
        trial = np.where(ends, 0.0, w)
        value = problem.objective(trial)
        if value > reached:
            break
        w, reached = trial, value
    return w
