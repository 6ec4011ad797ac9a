"""Many steps of ROSC (Algorithm 5) at the cost of the rows drawn."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.batches import Data, Penalty, Scratch, can_move, copy_to, losses_and_slopes, move, weigh
from stoic.kernels.forms import (
    add_columns,
    exceeds,
    intercept,
    is_calm,
    needs_refresh,
    note_move,
    product_with_reference,
    refresh,
    settle,
)
from stoic.kernels.jit import inlined, kernel
from stoic.kernels.outers import Outer, outer_gradient
from stoic.kernels.rows import clear, fetch, push, squared_norm

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

FAR = 1e3  # radii: the rounding of a longer step would show in the average of points in the ball


class Reference(NamedTuple):
    """ỹ₀ and Z = z̃₀ᵀ, its rows that are not zero, its norm, and the levels of (4) and (5)."""

    y: Floats
    Z: Floats
    columns: NDArray[np.uint32]
    packed: Floats
    z_tail: Floats
    z_norm: float
    C_g: float
    L_g: float
    slack_y: float
    slack_z: float


class RowNumbers(NamedTuple):
    """‖x‖ and x·z̃₀ (of the row's group) of each row, NaN until first used; `work` is zero outside of steps."""

    norm: Floats
    along_z: Floats
    work: Floats


class Settings(NamedTuple):
    """η and D."""

    step: float
    radius: float


@kernel
def rosc_steps(
    data: Data,
    outer: Outer,
    penalty: Penalty,
    reference: Reference,
    numbers: RowNumbers,
    settings: Settings,
    w: Any,
    rows: Rows,
    scratch: Scratch,
    counts: Rows,
) -> None:
    """Take a step for each batch in rows (steps, p, m), and stop before one that numbers are too large for.

    `counts` adds up the steps, and those in which y and z were truncated.
    """
    step, y, q, slopes = settings.step, scratch.y, scratch.q, scratch.slopes
    for t in range(rows.shape[0]):
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        losses_and_slopes(data, w, rows[t], y, slopes)  # Alg. 5, l. 5–6
        y_strays = exceeds(w, away(y, reference.y), reference.C_g, reference.slack_y)  # (4)
        if y_strays:
            copy_to(y, reference.y)
        outer_gradient(outer, y, q)
        z_strays = strays(data, reference, numbers, w, rows[t], slopes)  # (5)
        if z_strays:
            reach = step * reference.z_norm * size_of(q)
            if not is_calm(w, reach):
                return
            begin_move(w, reach, settings.radius)
            tail = move_to_reference(reference, w, q, step)
        else:
            tail = weigh(slopes, q)
            if not can_move(data, w, slopes, step):
                return
            begin_move(w, step * length(numbers, rows[t], slopes), settings.radius)
            following = rows[min(t + 1, rows.shape[0] - 1)]
            fetch_norms(numbers, following)
            move(data, w, rows[t], slopes, step, following)
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, settings.radius, data.has_tail)  # l. 7
        counts[0] += 1
        counts[1] += y_strays
        counts[2] += z_strays


@inlined
def begin_move(w: Any, most: float, radius: float) -> None:
    """Take note of a step; before one that the ball undoes, the sum so far is put away from its rounding."""
    if most > FAR * radius:
        refresh(w)
    note_move(w, most)


@inlined
def away(y: Floats, reference: Floats) -> float:
    """Return ‖y − reference‖."""
    total = 0.0
    for i in range(y.size):
        total += (y[i] - reference[i]) ** 2
    return np.sqrt(total)


@inlined
def size_of(y: Floats) -> float:
    """Return ‖y‖."""
    total = 0.0
    for i in range(y.size):
        total += y[i] * y[i]
    return np.sqrt(total)


@inlined
def length(numbers: RowNumbers, rows: Rows, weights: Floats) -> float:
    """Return a bound on ‖Σ weight·x‖."""
    p, m = rows.shape
    total = 0.0
    for i in range(p):
        for j in range(m):
            total += abs(weights[i, j]) * numbers.norm[rows[i, j]]
    return total


@inlined
def fetch_norms(numbers: RowNumbers, rows: Rows) -> None:
    """Fetch the norms of some rows into the cache."""
    p, m = rows.shape
    for i in range(p):
        for j in range(m):
            fetch(numbers.norm, rows[i, j])


@kernel
def move_to_reference(reference: Reference, w: Any, q: Floats, step: float) -> float:
    """Add −step·z̃₀ᵀq to w; return the entry of z̃₀ᵀq for the intercept."""
    add_columns(w, reference.columns, reference.packed, q, -step)
    tail = 0.0
    for i in range(q.size):
        tail += q[i] * reference.z_tail[i]
    return tail


@inlined
def strays(data: Data, reference: Reference, numbers: RowNumbers, w: Any, rows: Rows, slopes: Floats) -> bool:
    """Whether ‖z − z̃₀‖_F > L_g‖w − w₀‖ + slack, by ‖z − z̃₀‖ ≤ ‖z‖ + ‖z̃₀‖ if that can tell, else exactly."""
    p, m = rows.shape
    most = 0.0  # a bound on ‖z‖², exact for m = 1
    for i in range(p):
        bound = 0.0
        for j in range(m):
            bound += abs(slopes[i, j]) * norm_of(data, numbers, rows[i, j])
        most += (bound / m) ** 2
    if not np.isfinite(most):
        return True
    growth, slack = reference.L_g, reference.slack_z
    if np.sqrt(most) + reference.z_norm <= slack:
        return False
    along = inner_product(data, reference, numbers, w, rows, slopes)
    rest = reference.z_norm * reference.z_norm - 2.0 * along
    far = np.sqrt(max(0.0, most + rest))
    if m == 1 or not exceeds(w, far, growth, slack):
        return exceeds(w, far, growth, slack)
    exact = 0.0
    for i in range(p):
        exact += squared_mean(data, rows[i], slopes[i], numbers.work)
    return exceeds(w, np.sqrt(max(0.0, exact + rest)), growth, slack)


@inlined
def norm_of(data: Data, numbers: RowNumbers, row: int) -> float:
    """Return the norm of a row, 1 for the intercept included, computed on first use."""
    if np.isnan(numbers.norm[row]):
        tail = 1.0 if data.has_tail else 0.0
        numbers.norm[row] = np.sqrt(squared_norm(data.X, row, numbers.work) + tail)
    return numbers.norm[row]


@inlined
def inner_product(
    data: Data, reference: Reference, numbers: RowNumbers, w: Any, rows: Rows, slopes: Floats
) -> float:
    """Return ⟨z, z̃₀⟩ from x·z̃₀ of the rows."""
    p, m = rows.shape
    total = 0.0
    for i in range(p):
        tail = reference.z_tail[i] if data.has_tail else 0.0
        for j in range(m):
            along = product_with_reference(data.X, w, reference.Z, rows[i, j], i, numbers.along_z)
            total += slopes[i, j] * (along + tail) / m
    return total


@kernel
def squared_mean(data: Data, rows: Rows, slopes: Floats, work: Floats) -> float:
    """Return ‖mean of slope·x‖² over rows that may share columns; `work` is zero before and after."""
    m = rows.size
    total, tail = 0.0, 0.0
    for j in range(m):
        total += push(data.X, rows[j], slopes[j] / m, work)
        tail += slopes[j] / m
    for j in range(m):
        clear(data.X, rows[j], work)
    return total + tail * tail if data.has_tail else total
