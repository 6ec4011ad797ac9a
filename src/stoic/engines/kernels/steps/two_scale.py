"""Many steps of SCGD, ASC-PG, SCSC and ALEXR, whose y is a moving estimate of g."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import kernel
from stoic.engines.kernels.parts.batches import (
    Data,
    Scratch,
    copy_to,
    losses_and_slopes,
    move,
    predict,
    reserve_move,
    slopes_of,
    weigh,
)
from stoic.engines.kernels.parts.losses import loss_value
from stoic.engines.kernels.parts.outers import outer_gradient
from stoic.engines.kernels.rows import Ints
from stoic.engines.kernels.vectors.any import intercept, needs_refresh, refresh, settle
from stoic.engines.kernels.vectors.previous import Previous, carry_over, predict_previous, remember

Floats = NDArray[np.float64]


class Rates(NamedTuple):
    """The step sizes and the weights of new values in y, one of each a step."""

    steps: Floats
    weights: Floats


@kernel
def scgd_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    rates: Rates,
    w: Any,
    y: Floats,
    rows: Ints,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step for each batch in rows (steps, p, m), and stop before one that is too large."""
    n_steps, p, _ = rows.shape
    fresh, q, slopes = scratch.fresh, scratch.q, scratch.slopes
    for t in range(n_steps):
        step, weight = rates.steps[t], rates.weights[t]
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        losses_and_slopes(data, w, rows[t], fresh, slopes)
        for i in range(p):
            fresh[i] = (1.0 - weight) * y[i] + weight * fresh[i]
        outer_gradient(outer, fresh, q)
        tail = weigh(slopes, q)
        if not reserve_move(data, w, slopes, step):
            return
        copy_to(y, fresh)
        move(data, w, rows[t], slopes, step, rows[min(t + 1, n_steps - 1)])
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        counts[0] += 1


@kernel
def asc_pg_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    rates: Rates,
    w: Any,
    y: Floats,
    rows: Ints,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step for each pair of batches in rows (steps, 2, p, m), and stop before one that is too large."""
    n_steps, _, p, m = rows.shape
    q, slopes, before = scratch.q, scratch.slopes, scratch.spare
    for t in range(n_steps):
        step, weight = rates.steps[t], rates.weights[t]
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        outer_gradient(outer, y, q)
        slopes_of(data, w, rows[t, 0], slopes)
        for i in range(p):
            for j in range(m):
                before[i, j] = predict(data, w, rows[t, 1, i, j])
        tail = weigh(slopes, q)
        if not reserve_move(data, w, slopes, step):
            return
        move(data, w, rows[t, 0], slopes, step, rows[min(t + 1, n_steps - 1), 0])
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        for i in range(p):
            total = 0.0
            for j in range(m):
                row = rows[t, 1, i, j]
                ahead = before[i, j] + (predict(data, w, row) - before[i, j]) / weight
                total += loss_value(data.loss, ahead, data.targets[row])
            y[i] = (1.0 - weight) * y[i] + weight * total / m
        counts[0] += 1


@kernel
def scsc_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    rates: Rates,
    extrapolation: float,
    w: Any,
    previous: Previous,
    y: Floats,
    rows: Ints,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step of SCSC for each batch in rows (steps, 1, p, m), or of ALEXR for each pair (steps, 2, p, m).

    SCSC is ALEXR with extrapolation (1 − b)/b and one batch for both.
    """
    n_steps, n_batches, p, m = rows.shape
    fresh, q, slopes = scratch.fresh, scratch.q, scratch.slopes
    for t in range(n_steps):
        step, b = rates.steps[t], rates.weights[t]
        if needs_refresh(w, step, penalty.l1):
            carry_over(w, previous)
            refresh(w)
        ahead, is_ahead = (
            (1.0 - b) / b if n_batches == 1 else extrapolation,
            n_batches == 1 or extrapolation != 0.0,
        )
        for i in range(p):
            here, there = 0.0, 0.0
            for j in range(m):
                row = rows[t, 0, i, j]
                here += loss_value(data.loss, predict(data, w, row), data.targets[row])
                if is_ahead:
                    there += loss_value(data.loss, predict_previous(data.X, w, previous, row), data.targets[row])
            here, there = here / m, there / m
            fresh[i] = (1.0 - b) * y[i] + b * (here + ahead * (here - there) if is_ahead else here)
        outer_gradient(outer, fresh, q)
        moving = rows[t, n_batches - 1]
        slopes_of(data, w, moving, slopes)
        tail = weigh(slopes, q)
        if not reserve_move(data, w, slopes, step):
            return
        copy_to(y, fresh)
        remember(data.X, w, previous, moving)
        move(data, w, moving, slopes, step, rows[min(t + 1, n_steps - 1), 0])
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        counts[0] += 1
