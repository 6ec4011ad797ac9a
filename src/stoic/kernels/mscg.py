"""Many steps of MSCG (Algorithm 2) with plain means, and of clipped SGD."""

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.batches import Data, losses_and_slopes, mean_losses, move, slopes_of
from stoic.kernels.jit import kernel
from stoic.kernels.outers import Outer, outer_gradient
from stoic.kernels.rows import clear, push
from stoic.kernels.scaled import TAIL, UU, Scaled, flush, needs_flush, settle

Floats = NDArray[np.float64]


@kernel
def mscg_steps(data: Data, outer: Outer, step: float, alpha: float, w: Scaled, rows: NDArray[np.int64]) -> int:
    """Take a step for each pair of batches in rows (steps, 2, p, m); return how many before one was not finite."""
    n_steps, _, p, m = rows.shape
    y, q, slopes = np.empty(p), np.empty(p), np.empty((p, m))
    s = w.scalars
    for t in range(n_steps):
        mean_losses(data, w, rows[t, 0], y)  # Alg. 2, l. 3
        slopes_of(data, w, rows[t, 1], slopes)
        outer_gradient(outer, y, q)
        tail = move(data, w, rows[t, 1], slopes, q, step)  # Alg. 2, l. 5
        if not (np.isfinite(s[UU]) and np.isfinite(tail)):
            return t
        settle(w, step, alpha, s[TAIL] - step * tail, np.inf, data.has_tail)
        if needs_flush(w):
            flush(w)
    return n_steps


@kernel
def clipped_sgd_steps(
    data: Data,
    outer: Outer,
    step: float,
    alpha: float,
    clip: float,
    w: Scaled,
    rows: NDArray[np.int64],
    work: Floats,
    counts: NDArray[np.int64],
) -> int:
    """Take a clipped step for each batch in rows (steps, p, m); `counts[1]` adds up the clipped ones."""
    n_steps, p, m = rows.shape
    y, q, slopes = np.empty(p), np.empty(p), np.empty((p, m))
    s = w.scalars
    for t in range(n_steps):
        losses_and_slopes(data, w, rows[t], y, slopes)
        outer_gradient(outer, y, q)
        norm = np.sqrt(squared_gradient(data, rows[t], slopes, q, work))
        shortened = step
        if norm > clip:
            counts[1] += 1
            shortened = step * (clip / norm)
        tail = move(data, w, rows[t], slopes, q, shortened)
        if not (np.isfinite(s[UU]) and np.isfinite(tail)):
            return t
        settle(w, step, alpha, s[TAIL] - shortened * tail, np.inf, data.has_tail)
        if needs_flush(w):
            flush(w)
    return n_steps


@kernel
def squared_gradient(data: Data, rows: NDArray[np.int64], slopes: Floats, q: Floats, work: Floats) -> float:
    """Return ‖zᵀq‖² for rows that may share columns; `work` is zero before and after."""
    p, m = rows.shape
    total, tail = 0.0, 0.0
    for i in range(p):
        for j in range(m):
            weight = q[i] * slopes[i, j] / m
            total += push(data.X, rows[i, j], weight, work, work, 0.0)
            tail += weight
    for i in range(p):
        for j in range(m):
            clear(data.X, rows[i, j], work)
    return total + tail * tail if data.has_tail else total
