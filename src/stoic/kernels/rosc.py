"""Many steps of ROSC (Algorithm 5) at the cost of the rows drawn."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.batches import Data
from stoic.kernels.jit import kernel
from stoic.kernels.losses import loss_slope, loss_value
from stoic.kernels.outers import Outer, outer_gradient
from stoic.kernels.rows import CSR, clear, dot, push, squared_norm
from stoic.kernels.scaled import SUM_A, TAIL, UC, UU, A, B, Scaled, flush, needs_flush, settle, squared_distance

Floats = NDArray[np.float64]


class Reference(NamedTuple):
    """ỹ₀ and z̃₀ (as sparse rows), their norms, products with c, and the levels of (4) and (5)."""

    y: Floats
    z: Floats
    rows: CSR
    z_tail: Floats
    z_squared: float
    z_dot_c: Floats
    C_g: float
    L_g: float
    slack_y: float
    slack_z: float


class RowNumbers(NamedTuple):
    """x·c, x·z̃₀ (of the row's group) and ‖x‖² of each row; NaN until first used."""

    dot_c: Floats
    dot_z: Floats
    squared: Floats


class Settings(NamedTuple):
    """η, the weights of ‖w‖₁ and ‖w‖²/2, and D."""

    step: float
    l1: float
    l2: float
    radius: float


@kernel
def rosc_steps(
    data: Data,
    outer: Outer,
    reference: Reference,
    numbers: RowNumbers,
    settings: Settings,
    w: Scaled,
    rows: NDArray[np.int64],
    work: Floats,
    counts: NDArray[np.int64],
) -> int:
    """Take a step for each batch in rows (steps, p, m); return how many were taken before one was not finite.

    `counts` adds up the steps in which y and z were truncated. `work` is zero before and after.
    """
    n_steps, p, m = rows.shape
    s, y, q, slopes = w.scalars, np.empty(p), np.empty(p), np.empty((p, m))
    for t in range(n_steps):
        distance = np.sqrt(squared_distance(w))
        evaluate(data, reference, numbers, w, rows[t], y, slopes, work)  # Alg. 5, l. 5–6
        if not within(y, reference.y, reference.C_g * distance + reference.slack_y):  # (4)
            counts[0] += 1
            y[:] = reference.y
        outer_gradient(outer, y, q)
        if keeps(
            data, reference, numbers, rows[t], slopes, reference.L_g * distance + reference.slack_z, work
        ):  # (5)
            tail = move_along(data, numbers, w, rows[t], slopes, q, settings.step)
        else:
            counts[1] += 1
            tail = move_to_reference(reference, w, q, settings.step)
        if not (np.isfinite(s[UU]) and np.isfinite(tail)):
            return t
        ahead = s[TAIL] - settings.step * tail
        settle(w, settings.step, settings.l2, ahead, settings.radius, data.has_tail)  # Alg. 5, l. 7
        if needs_flush(w):
            flush(w)
    return n_steps


@kernel
def evaluate(
    data: Data,
    reference: Reference,
    numbers: RowNumbers,
    w: Scaled,
    rows: NDArray[np.int64],
    y: Floats,
    slopes: Floats,
    work: Floats,
) -> None:
    """Write the mean loss of each group into y and the derivatives of the losses into slopes."""
    p, m = rows.shape
    s = w.scalars
    tail = s[TAIL] if data.has_tail else 0.0
    for i in range(p):
        total = 0.0
        for j in range(m):
            row = rows[i, j]
            if np.isnan(numbers.squared[row]):
                know(data, reference, numbers, w.c, row, i, work)
            prediction = s[A] * dot(data.X, row, w.u) + s[B] * numbers.dot_c[row] + tail
            total += loss_value(data.loss, prediction, data.targets[row])
            slopes[i, j] = loss_slope(data.loss, prediction, data.targets[row])
        y[i] = total / m


@kernel
def move_along(
    data: Data,
    numbers: RowNumbers,
    w: Scaled,
    rows: NDArray[np.int64],
    slopes: Floats,
    q: Floats,
    step: float,
) -> float:
    """Add −step·zᵀq to w, z the mean Jacobian of the batch; return the entry of zᵀq for the intercept."""
    p, m = rows.shape
    s = w.scalars
    factor, tail = -step / s[A], 0.0
    for i in range(p):
        for j in range(m):
            weight = q[i] * slopes[i, j] / m
            tail += weight
            if weight != 0.0:
                s[UU] += push(data.X, rows[i, j], factor * weight, w.u, w.h, s[SUM_A])
                s[UC] += factor * weight * numbers.dot_c[rows[i, j]]
    return tail


@kernel
def move_to_reference(reference: Reference, w: Scaled, q: Floats, step: float) -> float:
    """Add −step·z̃₀ᵀq to w; return the entry of z̃₀ᵀq for the intercept."""
    s = w.scalars
    factor, tail = -step / s[A], 0.0
    for i in range(q.size):
        tail += q[i] * reference.z_tail[i]
        s[UU] += push(reference.rows, i, factor * q[i], w.u, w.h, s[SUM_A])
        s[UC] += factor * q[i] * reference.z_dot_c[i]
    return tail


@kernel
def know(
    data: Data, reference: Reference, numbers: RowNumbers, c: Floats, row: int, group: int, work: Floats
) -> None:
    """Compute what the steps of a stage ask of a row again and again."""
    tail = 1.0 if data.has_tail else 0.0
    numbers.dot_c[row] = dot(data.X, row, c)
    numbers.dot_z[row] = dot(data.X, row, reference.z[group]) + tail * reference.z_tail[group]
    numbers.squared[row] = squared_norm(data.X, row, work) + tail


@kernel
def within(y: Floats, reference: Floats, radius: float) -> bool:
    """Whether ‖y − reference‖ ≤ radius and is finite; false for NaN."""
    total = 0.0
    for i in range(y.size):
        total += (y[i] - reference[i]) ** 2
    distance = np.sqrt(total)
    return distance <= radius and distance < np.inf


@kernel
def keeps(
    data: Data,
    reference: Reference,
    numbers: RowNumbers,
    rows: NDArray[np.int64],
    slopes: Floats,
    radius: float,
    work: Floats,
) -> bool:
    """Whether ‖z − z̃₀‖_F ≤ radius: ‖z‖² − 2⟨z, z̃₀⟩ + ‖z̃₀‖², first with a bound on ‖z‖, then exactly."""
    p, m = rows.shape
    product, most = 0.0, 0.0
    for i in range(p):
        length = 0.0
        for j in range(m):
            product += slopes[i, j] * numbers.dot_z[rows[i, j]] / m
            length += abs(slopes[i, j]) * np.sqrt(numbers.squared[rows[i, j]]) / m
        most += length * length
    rest = reference.z_squared - 2.0 * product
    if not np.isfinite(most + rest):
        return False
    if most + rest <= radius * radius or m == 1:
        return most + rest <= radius * radius
    exact = 0.0
    for i in range(p):
        exact += squared_mean(data, rows[i], slopes[i], work)
    return exact + rest <= radius * radius


@kernel
def squared_mean(data: Data, rows: NDArray[np.int64], slopes: Floats, work: Floats) -> float:
    """Return ‖mean of slope·x‖² over rows that may share columns; `work` is zero before and after."""
    m = rows.size
    total, tail = 0.0, 0.0
    for j in range(m):
        total += push(data.X, rows[j], slopes[j] / m, work, work, 0.0)
        tail += slopes[j] / m
    for j in range(m):
        clear(data.X, rows[j], work)
    return total + tail * tail if data.has_tail else total
