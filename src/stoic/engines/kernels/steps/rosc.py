"""Many steps of ROSC (Algorithm 5) at the cost of the rows drawn."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.parts.batches import Data, Scratch, copy_to, extent, move, predict, weigh
from stoic.engines.kernels.parts.losses import loss_slope, loss_value
from stoic.engines.kernels.parts.outers import outer_gradient
from stoic.engines.kernels.rows import Ints, clear, fetch, push, squared_norm
from stoic.engines.kernels.vectors.any import (
    add_columns,
    exceeds,
    intercept,
    needs_refresh,
    note_move,
    product_with_reference,
    refresh,
    reserve,
    settle,
)

Floats = NDArray[np.float64]

FAR = 1e3  # radii: the rounding of a longer step would show in the average of points in the ball


class ReferenceArrays(NamedTuple):
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


class StepSettings(NamedTuple):
    """η, D, the weight of a batch in y, whether ∇f is taken at the y before, and whether samples are truncated."""

    step: float
    radius: float
    weight: float
    is_tracked: bool
    by_sample: bool


@kernel
def rosc_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    reference: ReferenceArrays,
    numbers: RowNumbers,
    settings: StepSettings,
    w: Any,
    y: Floats,
    rows: Ints,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step for each batch in rows (steps, p, m), and stop before one that numbers are too large for.

    y is the estimate of g, a moving average where it is tracked. `counts` adds up the steps, and how
    often y and z were truncated, batches or samples.
    """
    step, fresh, q, slopes = settings.step, scratch.fresh, scratch.q, scratch.slopes
    parts = rows.shape[2] if settings.by_sample else 1
    for t in range(rows.shape[0]):
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        losses_by_row(data, w, rows[t], scratch.spare, slopes)  # Alg. 5, l. 5–6
        if settings.by_sample:
            n_cut = truncate_samples(reference, w, scratch.spare, fresh)  # (4)
            n_away = drop_stray_samples(data, reference, numbers, w, rows[t], slopes)  # (5)
        else:
            n_cut = truncate_batch(reference, w, scratch.spare, fresh)  # (4)
            n_away = drop_stray_batch(data, reference, numbers, w, rows[t], slopes)  # (5)
        outer_gradient(outer, y if settings.is_tracked else fresh, q)
        tail, share = weigh(slopes, q), n_away / parts
        reach = share * reference.z_norm * size_of(q) if n_away > 0 else 0.0
        if not reserve(w, step * (extent(data, slopes) + reach)):
            return
        begin_move(w, step * (length(numbers, rows[t], slopes) + reach), settings.radius)
        if n_away > 0:
            tail += share * move_to_reference(reference, w, q, share * step)
        if n_away < parts:
            following = rows[min(t + 1, rows.shape[0] - 1)]
            fetch_norms(numbers, following)
            move(data, w, rows[t], slopes, step, following)
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, settings.radius, data.has_tail)  # l. 7
        follow(y, fresh, settings.weight)
        counts[0] += 1
        counts[1] += n_cut
        counts[2] += n_away


@inlined
def losses_by_row(data: Data, w: Any, rows: Ints, losses: Floats, slopes: Floats) -> None:
    """Write the losses and their derivatives, entry by entry."""
    p, m = rows.shape
    for i in range(p):
        for j in range(m):
            prediction, target = predict(data, w, rows[i, j]), data.targets[rows[i, j]]
            losses[i, j] = loss_value(data.loss, prediction, target)
            slopes[i, j] = loss_slope(data.loss, prediction, target)


@inlined
def follow(y: Floats, fresh: Floats, weight: float) -> None:
    """Let y be the moving average with the fresh estimate."""
    for i in range(y.size):
        y[i] = (1.0 - weight) * y[i] + weight * fresh[i]


@inlined
def truncate_batch(reference: ReferenceArrays, w: Any, losses: Floats, fresh: Floats) -> int:
    """Write the mean losses into fresh, ỹ₀ where they stray; return whether they do."""
    p, m = losses.shape
    for i in range(p):
        total = 0.0
        for j in range(m):
            total += losses[i, j]
        fresh[i] = total / m
    if not exceeds(w, away(fresh, reference.y), reference.C_g, reference.slack_y):
        return 0
    copy_to(fresh, reference.y)
    return 1


@inlined
def truncate_samples(reference: ReferenceArrays, w: Any, losses: Floats, fresh: Floats) -> int:
    """Write the mean of the losses of m samples into fresh, ỹ₀ in the place of those that stray; count these."""
    p, m = losses.shape
    n_cut = 0
    fresh[:] = 0.0
    for j in range(m):
        strays = exceeds(w, away(losses[:, j], reference.y), reference.C_g, reference.slack_y)
        n_cut += strays
        for i in range(p):
            fresh[i] += reference.y[i] if strays else losses[i, j]
    for i in range(p):
        fresh[i] /= m
    return n_cut


@inlined
def begin_move(w: Any, most: float, radius: float) -> None:
    """Take note of a step; beyond FAR radii, refresh w first: the ball undoes the step, but not its rounding."""
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
def length(numbers: RowNumbers, rows: Ints, weights: Floats) -> float:
    """Return a bound on ‖Σ weight·x‖."""
    p, m = rows.shape
    total = 0.0
    for i in range(p):
        for j in range(m):
            if weights[i, j] != 0.0:  # the norm of a row that is left out may be infinite
                total += abs(weights[i, j]) * numbers.norm[rows[i, j]]
    return total


@inlined
def fetch_norms(numbers: RowNumbers, rows: Ints) -> None:
    """Fetch the norms of some rows into the cache."""
    p, m = rows.shape
    for i in range(p):
        for j in range(m):
            fetch(numbers.norm, rows[i, j])


@kernel
def move_to_reference(reference: ReferenceArrays, w: Any, q: Floats, step: float) -> float:
    """Add −step·z̃₀ᵀq to w; return the entry of z̃₀ᵀq for the intercept."""
    add_columns(w, reference.columns, reference.packed, q, -step)
    tail = 0.0
    for i in range(q.size):
        tail += q[i] * reference.z_tail[i]
    return tail


@inlined
def drop_stray_samples(
    data: Data, reference: ReferenceArrays, numbers: RowNumbers, w: Any, rows: Ints, slopes: Floats
) -> int:
    """Set to 0 the slopes of samples with ‖z − z̃₀‖_F > L_g‖w − w₀‖ + slack, and count them."""
    p, m = rows.shape
    n_away = 0
    for j in range(m):
        squared = 0.0
        for i in range(p):
            squared += (slopes[i, j] * norm_of(data, numbers, rows[i, j])) ** 2
        if is_away(data, reference, numbers, w, rows[:, j : j + 1], slopes[:, j : j + 1], squared):
            slopes[:, j] = 0.0
            n_away += 1
    return n_away


@inlined
def drop_stray_batch(
    data: Data, reference: ReferenceArrays, numbers: RowNumbers, w: Any, rows: Ints, slopes: Floats
) -> int:
    """Set all slopes to 0 if the mean z of the batch strays; return whether it does.

    Only where a bound on ‖z‖ cannot tell, the norm is computed.
    """
    p, m = rows.shape
    most = 0.0  # a bound on ‖z‖², exact for m = 1
    for i in range(p):
        bound = 0.0
        for j in range(m):
            bound += abs(slopes[i, j]) * norm_of(data, numbers, rows[i, j])
        most += (bound / m) ** 2
    if not is_away(data, reference, numbers, w, rows, slopes, most):
        return 0
    if m > 1 and np.isfinite(most):
        exact = 0.0
        for i in range(p):
            exact += squared_mean(data, rows[i], slopes[i], numbers.work)
        if not is_away(data, reference, numbers, w, rows, slopes, exact):
            return 0
    slopes[:] = 0.0
    return 1


@inlined
def is_away(
    data: Data, reference: ReferenceArrays, numbers: RowNumbers, w: Any, rows: Ints, slopes: Floats, squared: float
) -> bool:
    """Whether ‖z − z̃₀‖_F > L_g‖w − w₀‖ + slack for ‖z‖² = `squared`; ‖z‖ + ‖z̃₀‖ may tell that it is not."""
    if not np.isfinite(squared):
        return True
    if np.sqrt(squared) + reference.z_norm <= reference.slack_z:
        return False
    along = inner_product(data, reference, numbers, w, rows, slopes)
    far = np.sqrt(max(0.0, squared + reference.z_norm * reference.z_norm - 2.0 * along))
    return exceeds(w, far, reference.L_g, reference.slack_z)


@inlined
def norm_of(data: Data, numbers: RowNumbers, row: int) -> float:
    """Return the norm of a row, 1 for the intercept included, computed on first use."""
    if np.isnan(numbers.norm[row]):
        tail = 1.0 if data.has_tail else 0.0
        numbers.norm[row] = np.sqrt(squared_norm(data.X, row, numbers.work) + tail)
    return numbers.norm[row]


@inlined
def inner_product(
    data: Data, reference: ReferenceArrays, numbers: RowNumbers, w: Any, rows: Ints, slopes: Floats
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
def squared_mean(data: Data, rows: Ints, slopes: Floats, work: Floats) -> float:
    """Return ‖mean of slope·x‖² over rows that may share columns; `work` is zero before and after."""
    m = rows.size
    total, tail = 0.0, 0.0
    for j in range(m):
        total += push(data.X, rows[j], slopes[j] / m, work)
        tail += slopes[j] / m
    for j in range(m):
        clear(data.X, rows[j], work)
    return total + tail * tail if data.has_tail else total
