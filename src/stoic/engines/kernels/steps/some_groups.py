"""Many steps of ALEXR and SOX that draw some of the groups only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.parts.batches import Data, Scratch, move, predict, reserve_move, slopes_of, weigh
from stoic.engines.kernels.parts.losses import loss_value
from stoic.engines.kernels.parts.running_weights import Terms, begin_terms, note_change, some_weights
from stoic.engines.kernels.rows import Ints
from stoic.engines.kernels.vectors.any import intercept, needs_refresh, refresh, settle
from stoic.engines.kernels.vectors.previous import Previous, carry_over, predict_previous, remember

Floats = NDArray[np.float64]


class Choices(NamedTuple):
    """The groups of each step (steps, k), shares 1/(k·chance), rows (steps, 2, k, m), a bound of weights."""

    groups: Ints
    shares: Floats
    rows: Ints
    most: float


class GroupRates(NamedTuple):
    """η, γ and θ."""

    step: float
    weight: float
    extrapolation: float


@kernel
def some_groups_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    rates: GroupRates,
    w: Any,
    previous: Previous,
    y: Floats,
    terms: Terms,
    choices: Choices,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step for each choice of groups, and stop before one that is too large."""
    groups, rows, step = choices.groups, choices.rows, rates.step
    n_steps, k = groups.shape
    old, q, slopes = scratch.y, scratch.q, scratch.slopes
    for t in range(n_steps):
        if needs_refresh(w, step, penalty.l1):
            carry_over(w, previous)
            refresh(w)
        for j in range(k):
            i = groups[t, j]
            old[j] = y[i]
            y[i] = (1.0 - rates.weight) * y[i] + rates.weight * _fresh_value(
                data, w, previous, rows[t, 0, j], rates
            )
            note_change(outer, y, i, terms)
        some_weights(outer, y, groups[t], terms, q)
        bound_weights(q, choices.shares[t], choices.most)
        moving = rows[t, 1]
        slopes_of(data, w, moving, slopes)
        tail = weigh(slopes, q)
        if not reserve_move(data, w, slopes, step):
            for j in range(k - 1, -1, -1):
                y[groups[t, j]] = old[j]
            begin_terms(outer, y, terms)
            return
        if rates.extrapolation != 0.0:
            remember(data.X, w, previous, moving)
        move(data, w, moving, slopes, step, rows[min(t + 1, n_steps - 1), 0])
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        counts[0] += 1


@inlined
def bound_weights(q: Floats, shares: Floats, most: float) -> None:
    """Turn entries of ∇f into the weights of groups, cut where they have outgrown the chances; NaN stays."""
    for j in range(q.size):
        q[j] *= shares[j]
        if abs(q[j]) > most:
            q[j] = np.copysign(most, q[j])


@inlined
def _fresh_value(data: Data, w: Any, previous: Previous, rows: Ints, rates: GroupRates) -> float:
    """Return the mean loss of some rows of one group, extrapolated from the previous point."""
    here, there = 0.0, 0.0
    for j in range(rows.size):
        target = data.targets[rows[j]]
        here += loss_value(data.loss, predict(data, w, rows[j]), target)
        if rates.extrapolation != 0.0:
            there += loss_value(data.loss, predict_previous(data.X, w, previous, rows[j]), target)
    here /= rows.size
    if rates.extrapolation == 0.0:
        return here
    return here + rates.extrapolation * (here - there / rows.size)
