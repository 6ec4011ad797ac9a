"""Losses and slopes of a drawn batch at a vector of any form, and the step along them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import LossCode
from stoic.engines.kernels.jit import inlined
from stoic.engines.kernels.parts.losses import loss_slope, loss_value
from stoic.engines.kernels.rows import Ints, fetch
from stoic.engines.kernels.vectors.any import add, intercept, product, reserve

Floats = NDArray[np.float64]


class Data(NamedTuple):
    """Ints, their targets, the loss, whether there is an intercept, and the largest |entry| of X, at least 1."""

    X: Any
    targets: Floats
    loss: LossCode
    has_tail: bool
    largest: float


class Scratch(NamedTuple):
    """Arrays to work in: three of shape (p,) and two of shape (p, m)."""

    y: Floats
    fresh: Floats
    q: Floats
    slopes: Floats
    spare: Floats


@inlined
def predict(data: Data, w: Any, row: int) -> float:
    """Return the prediction for a row."""
    return product(data.X, w, row) + intercept(w)


@inlined
def mean_losses(data: Data, w: Any, rows: Ints, y: Floats) -> None:
    """Write the mean loss of each group into y."""
    p, m = rows.shape
    for i in range(p):
        total = 0.0
        for j in range(m):
            total += loss_value(data.loss, predict(data, w, rows[i, j]), data.targets[rows[i, j]])
        y[i] = total / m


@inlined
def slopes_of(data: Data, w: Any, rows: Ints, slopes: Floats) -> None:
    """Write the derivatives of the losses into slopes."""
    p, m = rows.shape
    for i in range(p):
        for j in range(m):
            slopes[i, j] = loss_slope(data.loss, predict(data, w, rows[i, j]), data.targets[rows[i, j]])


@inlined
def losses_and_slopes(data: Data, w: Any, rows: Ints, y: Floats, slopes: Floats) -> None:
    """Write the mean loss of each group into y and the derivatives into slopes."""
    p, m = rows.shape
    for i in range(p):
        total = 0.0
        for j in range(m):
            prediction, target = predict(data, w, rows[i, j]), data.targets[rows[i, j]]
            total += loss_value(data.loss, prediction, target)
            slopes[i, j] = loss_slope(data.loss, prediction, target)
        y[i] = total / m


@inlined
def weigh(slopes: Floats, q: Floats) -> float:
    """Turn slopes into the weights of the rows in zᵀq, z the mean Jacobian of the batch; return their sum."""
    p, m = slopes.shape
    total = 0.0
    for i in range(p):
        for j in range(m):
            slopes[i, j] *= q[i] / m
            total += slopes[i, j]
    return total


@inlined
def extent(data: Data, weights: Floats) -> float:
    """Return a bound on the coordinates of Σ weight·x."""
    p, m = weights.shape
    total = 0.0
    for i in range(p):
        for j in range(m):
            total += abs(weights[i, j])
    return total * data.largest


@inlined
def reserve_move(data: Data, w: Any, weights: Floats, step: float) -> bool:
    """Make room for a move by −step·Σ weight·x; False where it is too large for a kernel."""
    return reserve(w, step * extent(data, weights))


@inlined
def move(data: Data, w: Any, rows: Ints, weights: Floats, step: float, following: Ints) -> None:
    """Add −step·Σ weight·x to the vector, but for the intercept; the next batch is fetched into the cache."""
    p, m = rows.shape
    for i in range(p):
        for j in range(m):
            fetch(data.targets, following[i, j])
            if weights[i, j] != 0.0:
                add(data.X, w, rows[i, j], -step * weights[i, j], following[i, j])


@inlined
def copy_to(y: Floats, source: Floats) -> None:
    """Copy a vector."""
    for i in range(y.size):
        y[i] = source[i]
