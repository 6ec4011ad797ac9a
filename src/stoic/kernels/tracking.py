"""Many steps of SCGD, ASC-PG, SCSC and ALEXR, whose y is a moving estimate of g."""

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.batches import Data, losses_and_slopes, move, predict, slopes_of
from stoic.kernels.jit import kernel
from stoic.kernels.losses import loss_value
from stoic.kernels.outers import Outer, outer_gradient
from stoic.kernels.rows import clear, dot, push
from stoic.kernels.scaled import TAIL, UU, A, B, Scaled, flush, needs_flush, settle

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@kernel
def scgd_steps(
    data: Data, outer: Outer, steps: Floats, weights: Floats, alpha: float, w: Scaled, y: Floats, rows: Rows
) -> int:
    """Take a step for each batch in rows (steps, p, m); return how many before one was not finite."""
    n_steps, p, m = rows.shape
    fresh, q, slopes = np.empty(p), np.empty(p), np.empty((p, m))
    s = w.scalars
    for t in range(n_steps):
        losses_and_slopes(data, w, rows[t], fresh, slopes)
        for i in range(p):
            y[i] = (1.0 - weights[t]) * y[i] + weights[t] * fresh[i]
        outer_gradient(outer, y, q)
        tail = move(data, w, rows[t], slopes, q, steps[t])
        if not (np.isfinite(s[UU]) and np.isfinite(tail)):
            return t
        settle(w, steps[t], alpha, s[TAIL] - steps[t] * tail, np.inf, data.has_tail)
        if needs_flush(w):
            flush(w)
    return n_steps


@kernel
def asc_pg_steps(
    data: Data, outer: Outer, steps: Floats, weights: Floats, alpha: float, w: Scaled, y: Floats, rows: Rows
) -> int:
    """Take a step for each pair of batches in rows (steps, 2, p, m)."""
    n_steps, _, p, m = rows.shape
    q, slopes, before = np.empty(p), np.empty((p, m)), np.empty((p, m))
    s = w.scalars
    for t in range(n_steps):
        outer_gradient(outer, y, q)
        slopes_of(data, w, rows[t, 0], slopes)
        for i in range(p):
            for j in range(m):
                before[i, j] = predict(data, w, rows[t, 1, i, j])
        tail = move(data, w, rows[t, 0], slopes, q, steps[t])
        if not (np.isfinite(s[UU]) and np.isfinite(tail)):
            return t
        settle(w, steps[t], alpha, s[TAIL] - steps[t] * tail, np.inf, data.has_tail)
        for i in range(p):
            total = 0.0
            for j in range(m):
                row = rows[t, 1, i, j]
                ahead = before[i, j] + (predict(data, w, row) - before[i, j]) / weights[t]
                total += loss_value(data.loss, ahead, data.targets[row])
            y[i] = (1.0 - weights[t]) * y[i] + weights[t] * total / m
        if needs_flush(w):
            flush(w)
    return n_steps


@kernel
def scsc_steps(
    data: Data,
    outer: Outer,
    steps: Floats,
    weights: Floats,
    extrapolation: float,
    alpha: float,
    w: Scaled,
    last: Floats,
    before: Floats,
    y: Floats,
    rows: Rows,
) -> int:
    """Take a step of SCSC for each batch in rows (steps, 1, p, m), or of ALEXR for each pair (steps, 2, p, m).

    `last` is u less its value one step ago; `before` holds a, the intercept and b of one step ago. SCSC is ALEXR
    with extrapolation (1 − b)/b and one batch for both.
    """
    n_steps, n_batches, p, m = rows.shape
    q, slopes = np.empty(p), np.empty((p, m))
    s = w.scalars
    for t in range(n_steps):
        b = weights[t]
        ahead = (1.0 - b) / b if n_batches == 1 else extrapolation
        for i in range(p):
            here, there = 0.0, 0.0
            for j in range(m):
                row = rows[t, 0, i, j]
                along = dot(data.X, row, w.u)
                rest, old_rest = (s[TAIL], before[1]) if data.has_tail else (0.0, 0.0)
                if s[B] != 0.0:
                    rest += s[B] * data.along_c[row]
                    old_rest += before[2] * data.along_c[row]
                old = before[0] * (along - dot(data.X, row, last)) + old_rest
                here += loss_value(data.loss, s[A] * along + rest, data.targets[row])
                there += loss_value(data.loss, old, data.targets[row])
            here, there = here / m, there / m
            y[i] = (1.0 - b) * y[i] + b * (here + ahead * (here - there))
        outer_gradient(outer, y, q)
        slopes_of(data, w, rows[t, n_batches - 1], slopes)
        forget(data, rows, t, last)
        before[0], before[1], before[2] = s[A], s[TAIL], s[B]
        tail_step = move(data, w, rows[t, n_batches - 1], slopes, q, steps[t])
        for i in range(p):
            for j in range(m):
                factor = -steps[t] / before[0] * q[i] * slopes[i, j] / m
                push(data.X, rows[t, n_batches - 1, i, j], factor, last, last, 0.0)
        if not (np.isfinite(s[UU]) and np.isfinite(tail_step)):
            return t
        settle(w, steps[t], alpha, s[TAIL] - steps[t] * tail_step, np.inf, data.has_tail)
        if needs_flush(w):
            for k in range(last.size):
                last[k] *= s[A]
            before[0] /= s[A]
            flush(w)
    return n_steps


@kernel
def forget(data: Data, rows: Rows, t: int, last: Floats) -> None:
    """Set `last` to zero where the step before t moved; everywhere, before the first step."""
    if t == 0:
        last[:] = 0.0
        return
    _, n_batches, p, m = rows.shape
    for i in range(p):
        for j in range(m):
            clear(data.X, rows[t - 1, n_batches - 1, i, j], last)
