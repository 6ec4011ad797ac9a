"""Many steps of CIVR: z moves along the rows drawn, but w moves everywhere, so a step costs p·d."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import kernel
from stoic.engines.kernels.parts.batches import Data
from stoic.engines.kernels.parts.losses import loss_slope, loss_value
from stoic.engines.kernels.parts.outers import outer_gradient
from stoic.engines.kernels.rows import dot, push

Floats = NDArray[np.float64]


class Pull(NamedTuple):
    """An anchor's term (weight/2)‖w − center‖² of the regularizer; its weight may be 0."""

    weight: float
    center: Floats


@kernel
def civr_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    anchor: Pull,
    step: float,
    w: Floats,
    before: Floats,
    y: Floats,
    z: Floats,
    rows: NDArray[np.int64],
    q: Floats,
) -> int:
    """Take a step for each batch in rows (steps, p, m), on w, w of one step before, y and z in place.

    Returns how many were taken before one was not finite; q is to work in.
    """
    n_steps, p, m = rows.shape
    columns = w.size - 1 if data.has_tail else w.size
    pull, l1, l2 = step * anchor.weight, penalty.l1, penalty.l2
    shorter = step / (1.0 + pull)
    for t in range(n_steps):
        for i in range(p):
            for j in range(m):
                correct(data, rows[t, i, j], w, before, y, z[i], i, m)
        outer_gradient(outer, y, q)
        finite = 0.0
        for k in range(w.size):
            v = 0.0
            for i in range(p):
                v += q[i] * z[i, k]
            ahead = (w[k] - step * v + pull * anchor.center[k]) / (1.0 + pull)
            before[k] = w[k]
            if k < columns:
                ahead -= min(max(ahead, -shorter * l1), shorter * l1)
                ahead /= 1.0 + shorter * l2
            w[k] = ahead
            finite += ahead
        if not np.isfinite(finite):
            return t
    return n_steps


@kernel
def correct(data: Data, row: int, w: Floats, before: Floats, y: Floats, z: Floats, group: int, m: int) -> None:
    """Add a row's change of loss and of slope, from one step before to now, to y and z of its group."""
    columns = w.size - 1 if data.has_tail else w.size
    here, there = dot(data.X, row, w), dot(data.X, row, before)
    if data.has_tail:
        here, there = here + w[columns], there + before[columns]
    target = data.targets[row]
    y[group] += (loss_value(data.loss, here, target) - loss_value(data.loss, there, target)) / m
    change = (loss_slope(data.loss, here, target) - loss_slope(data.loss, there, target)) / m
    push(data.X, row, change, z)
    if data.has_tail:
        z[columns] += change
