"""Many steps of ROSC (Algorithm 5) under L1 and elastic net, at the cost of the rows drawn."""

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.batches import Data
from stoic.kernels.jit import kernel
from stoic.kernels.losses import loss_slope, loss_value
from stoic.kernels.outers import Outer, outer_gradient
from stoic.kernels.rosc import Reference, RowNumbers, Settings, keeps, know
from stoic.kernels.thresholded import (
    HIGH,
    LOW,
    TAIL,
    Thresholded,
    add_row,
    along,
    measure,
    settle_thresholded,
)

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@kernel
def rosc_l1_steps(
    data: Data,
    outer: Outer,
    reference: Reference,
    numbers: RowNumbers,
    settings: Settings,
    w: Thresholded,
    rows: Rows,
    work: Floats,
    counts: NDArray[np.int64],
) -> int:
    """Take a step for each batch in rows (steps, p, m); return how many were taken before one was not finite."""
    n_steps, p, m = rows.shape
    s, y, q, slopes = w.scalars, np.empty(p), np.empty(p), np.empty((p, m))
    step = settings.step
    for t in range(n_steps):
        evaluate_thresholded(data, reference, numbers, w, rows[t], y, slopes, work)  # Alg. 5, l. 5–6
        if strays(w, away(y, reference.y), reference.C_g, reference.slack_y):  # (4)
            counts[0] += 1
            y[:] = reference.y
        outer_gradient(outer, y, q)
        tail, moved = 0.0, 0.0
        if keeps_thresholded(data, reference, numbers, w, rows[t], slopes, work):  # (5)
            for i in range(p):
                for j in range(m):
                    weight = q[i] * slopes[i, j] / m
                    tail += weight
                    moved += step * abs(weight) * np.sqrt(numbers.squared[rows[t, i, j]])
                    if weight != 0.0:
                        add_row(data.X, rows[t, i, j], -step * weight, w)
        else:
            counts[1] += 1
            for i in range(p):
                tail += q[i] * reference.z_tail[i]
                add_row(reference.rows, i, -step * q[i], w)
            moved = step * np.sqrt(reference.z_squared)
        if not np.isfinite(moved + tail):
            return t
        ahead = s[TAIL] - step * tail if data.has_tail else 0.0
        settle_thresholded(w, step, settings.l1, settings.l2, ahead, settings.radius, moved)  # Alg. 5, l. 7
    return n_steps


@kernel
def evaluate_thresholded(
    data: Data,
    reference: Reference,
    numbers: RowNumbers,
    w: Thresholded,
    rows: Rows,
    y: Floats,
    slopes: Floats,
    work: Floats,
) -> None:
    """Write the mean loss of each group into y and the derivatives of the losses into slopes."""
    p, m = rows.shape
    for i in range(p):
        total = 0.0
        for j in range(m):
            row = rows[i, j]
            if np.isnan(numbers.squared[row]):
                know(data, reference, numbers, w.c, row, i, work)
            prediction = along(data.X, row, w) + w.scalars[TAIL]
            total += loss_value(data.loss, prediction, data.targets[row])
            slopes[i, j] = loss_slope(data.loss, prediction, data.targets[row])
        y[i] = total / m


@kernel
def away(y: Floats, reference: Floats) -> float:
    """Return ‖y − reference‖."""
    total = 0.0
    for i in range(y.size):
        total += (y[i] - reference[i]) ** 2
    return np.sqrt(total)


@kernel
def strays(w: Thresholded, far: float, growth: float, slack: float) -> bool:
    """Whether far > growth·‖w − c‖ + slack; only where the bracket cannot tell, the distance is measured."""
    if not far < np.inf:
        return True
    if far <= growth * w.scalars[LOW] + slack:
        return False
    if far > growth * w.scalars[HIGH] + slack:
        return True
    return far > growth * measure(w) + slack


@kernel
def keeps_thresholded(
    data: Data,
    reference: Reference,
    numbers: RowNumbers,
    w: Thresholded,
    rows: Rows,
    slopes: Floats,
    work: Floats,
) -> bool:
    """Whether ‖z − z̃₀‖_F ≤ L_g‖w − c‖ + slack, by the bracket where it can tell."""
    s = w.scalars
    if keeps(data, reference, numbers, rows, slopes, reference.L_g * s[LOW] + reference.slack_z, work):
        return True
    if not keeps(data, reference, numbers, rows, slopes, reference.L_g * s[HIGH] + reference.slack_z, work):
        return False
    return keeps(data, reference, numbers, rows, slopes, reference.L_g * measure(w) + reference.slack_z, work)
