"""Losses and slopes of a drawn batch at a scaled vector, and the step along them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.jit import kernel
from stoic.kernels.losses import Loss, loss_slope, loss_value
from stoic.kernels.rows import dot, push
from stoic.kernels.scaled import SUM_A, TAIL, UU, A, B, Scaled

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Data(NamedTuple):
    """Rows, their targets, the loss, whether there is an intercept, and x·c of all rows where c is not zero."""

    X: Any
    targets: Floats
    loss: Loss
    has_tail: bool
    along_c: Floats


@kernel
def products(X: Any, c: Floats, out: Floats) -> None:
    """Write x·c of all rows into out."""
    for row in range(out.size):
        out[row] = dot(X, row, c)


@kernel
def predict(data: Data, w: Scaled, row: int) -> float:
    """Return the prediction for a row; c takes part where b is not zero."""
    s = w.scalars
    rest = s[TAIL] if data.has_tail else 0.0
    if s[B] != 0.0:
        rest += s[B] * data.along_c[row]
    return s[A] * dot(data.X, row, w.u) + rest


@kernel
def mean_losses(data: Data, w: Scaled, rows: Rows, y: Floats) -> None:
    """Write the mean loss of each group into y."""
    p, m = rows.shape
    for i in range(p):
        total = 0.0
        for j in range(m):
            total += loss_value(data.loss, predict(data, w, rows[i, j]), data.targets[rows[i, j]])
        y[i] = total / m


@kernel
def slopes_of(data: Data, w: Scaled, rows: Rows, slopes: Floats) -> None:
    """Write the derivatives of the losses into slopes."""
    p, m = rows.shape
    for i in range(p):
        for j in range(m):
            slopes[i, j] = loss_slope(data.loss, predict(data, w, rows[i, j]), data.targets[rows[i, j]])


@kernel
def losses_and_slopes(data: Data, w: Scaled, rows: Rows, y: Floats, slopes: Floats) -> None:
    """Write the mean loss of each group into y and the derivatives into slopes."""
    p, m = rows.shape
    for i in range(p):
        total = 0.0
        for j in range(m):
            prediction, target = predict(data, w, rows[i, j]), data.targets[rows[i, j]]
            total += loss_value(data.loss, prediction, target)
            slopes[i, j] = loss_slope(data.loss, prediction, target)
        y[i] = total / m


@kernel
def move(data: Data, w: Scaled, rows: Rows, slopes: Floats, q: Floats, step: float) -> float:
    """Add −step·zᵀq to the vector, z the mean Jacobian of the batch; return the entry of zᵀq for the intercept."""
    p, m = rows.shape
    s = w.scalars
    factor, tail = -step / s[A], 0.0
    for i in range(p):
        for j in range(m):
            weight = q[i] * slopes[i, j] / m
            tail += weight
            if weight != 0.0:
                s[UU] += push(data.X, rows[i, j], factor * weight, w.u, w.h, s[SUM_A])
    return tail
