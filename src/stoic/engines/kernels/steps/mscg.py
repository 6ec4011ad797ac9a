"""Many steps of MSCG (Algorithm 2) with plain means, and of clipped SGD."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import kernel
from stoic.engines.kernels.parts.batches import (
    Data,
    Scratch,
    losses_and_slopes,
    mean_losses,
    move,
    reserve_move,
    slopes_of,
    weigh,
)
from stoic.engines.kernels.parts.outers import outer_gradient
from stoic.engines.kernels.rows import Ints, clear, push
from stoic.engines.kernels.vectors.any import intercept, needs_refresh, refresh, settle

Floats = NDArray[np.float64]


@kernel
def mscg_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    step: float,
    w: Any,
    rows: Ints,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step for each pair of batches in rows (steps, 2, p, m), and stop before one that is too large."""
    y, q, slopes = scratch.y, scratch.q, scratch.slopes
    for t in range(rows.shape[0]):
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        mean_losses(data, w, rows[t, 0], y)  # Alg. 2, l. 3
        slopes_of(data, w, rows[t, 1], slopes)
        outer_gradient(outer, y, q)
        tail = weigh(slopes, q)
        if not reserve_move(data, w, slopes, step):
            return
        move(data, w, rows[t, 1], slopes, step, rows[min(t + 1, rows.shape[0] - 1), 0])  # Alg. 2, l. 5
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        counts[0] += 1


@kernel
def clipped_sgd_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    step: float,
    clip: float,
    w: Any,
    rows: Ints,
    work: Floats,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a clipped step for each batch in rows (steps, p, m); `counts[2]` adds up the clipped ones.

    `work` is zero before and after.
    """
    y, q, slopes = scratch.y, scratch.q, scratch.slopes
    for t in range(rows.shape[0]):
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        losses_and_slopes(data, w, rows[t], y, slopes)
        outer_gradient(outer, y, q)
        tail = weigh(slopes, q)
        norm = np.sqrt(squared_gradient(data, rows[t], slopes, work))
        shortened = step * (clip / norm) if norm > clip else step
        if not (norm < np.inf and reserve_move(data, w, slopes, shortened)):  # an infinite norm may be one of NaN
            return
        move(data, w, rows[t], slopes, shortened, rows[min(t + 1, rows.shape[0] - 1)])
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - shortened * tail, np.inf, data.has_tail)
        counts[0] += 1
        counts[2] += norm > clip


@kernel
def squared_gradient(data: Data, rows: Ints, weights: Floats, work: Floats) -> float:
    """Return ‖Σ weight·x‖² for rows that may share columns; `work` is zero before and after."""
    p, m = rows.shape
    total, tail = 0.0, 0.0
    for i in range(p):
        for j in range(m):
            total += push(data.X, rows[i, j], weights[i, j], work)
            tail += weights[i, j]
    for i in range(p):
        for j in range(m):
            clear(data.X, rows[i, j], work)
    return total + tail * tail if data.has_tail else total
