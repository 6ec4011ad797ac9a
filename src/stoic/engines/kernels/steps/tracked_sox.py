"""Many steps of TrackedSOX: some groups, one batch for y and z, truncated row by row."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.parts.batches import Data, Scratch, move, predict, reserve_move, weigh
from stoic.engines.kernels.parts.losses import loss_slope, loss_value
from stoic.engines.kernels.parts.running_weights import Terms, note_change, some_weights
from stoic.engines.kernels.rows import Ints, squared_norm
from stoic.engines.kernels.steps.some_groups import Choices, bound_weights
from stoic.engines.kernels.steps.two_scale import Rates
from stoic.engines.kernels.vectors.any import intercept, needs_refresh, refresh, settle

Floats = NDArray[np.float64]

PACE, CUT = 0.02, 3.0  # as in stoic.solvers.tracked_sox


class Truncation(NamedTuple):
    """Limits in scales of y and z, the two scales, norms of rows, NaN until first used; `work` is zero."""

    limit_y: float
    limit_z: float
    scales: Floats
    norms: Floats
    work: Floats


@kernel
def tracked_sox_steps(
    data: Data,
    outer: OuterCode,
    penalty: PenaltyCode,
    rates: Rates,
    truncation: Truncation,
    w: Any,
    y: Floats,
    terms: Terms,
    choices: Choices,
    scratch: Scratch,
    counts: Ints,
) -> None:
    """Take a step for each choice of groups, and stop before one that is too large."""
    groups, rows, scales = choices.groups, choices.rows, truncation.scales
    n_steps, k = groups.shape
    fresh, q, slopes, sizes = scratch.fresh, scratch.q, scratch.slopes, scratch.spare
    for t in range(n_steps):
        step, weight = rates.steps[t], rates.weights[t]
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        some_weights(outer, y, groups[t], terms, q)
        bound_weights(q, choices.shares[t], choices.most)
        n_y, scale_y = _cut_values(data, w, rows[t, 0], groups[t], y, q, truncation, fresh, slopes, sizes)
        n_z, scale_z = _cut_slopes(data, rows[t, 0], q, truncation, slopes, sizes)
        tail = weigh(slopes, q)
        if not reserve_move(data, w, slopes, step):
            return
        move(data, w, rows[t, 0], slopes, step, rows[min(t + 1, n_steps - 1), 0])
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        for j in range(k):
            i = groups[t, j]
            y[i] = (1.0 - weight) * y[i] + weight * fresh[j]
            note_change(outer, y, i, terms)
        scales[0], scales[1] = scale_y, scale_z
        counts[0] += 1
        counts[1] += n_y
        counts[2] += n_z


@inlined
def _cut_values(
    data: Data,
    w: Any,
    rows: Ints,
    groups: Ints,
    y: Floats,
    q: Floats,
    truncation: Truncation,
    fresh: Floats,
    slopes: Floats,
    sizes: Floats,
) -> tuple[int, float]:
    """Write y_i moved by the mean truncated deviation into fresh, and slopes; count cuts, return the new scale."""
    k, m = rows.shape
    most, n_cut = truncation.limit_y * truncation.scales[0], 0
    for j in range(k):
        total, old = 0.0, y[groups[j]]
        for i in range(m):
            prediction, target = predict(data, w, rows[j, i]), data.targets[rows[j, i]]
            slopes[j, i] = loss_slope(data.loss, prediction, target)
            away = loss_value(data.loss, prediction, target) - old
            sizes[j, i] = abs(away)
            if sizes[j, i] > most:
                away = np.copysign(most, away)
                n_cut += 1
            total += away
        fresh[j] = old + total / m
    return n_cut, _scale_after(truncation.scales[0], sizes, q)


@inlined
def _cut_slopes(
    data: Data, rows: Ints, q: Floats, truncation: Truncation, slopes: Floats, sizes: Floats
) -> tuple[int, float]:
    """Shorten slopes of rows whose gradients are too long; count them, and return the new scale."""
    k, m = rows.shape
    most, n_cut = truncation.limit_z * truncation.scales[1], 0
    for j in range(k):
        for i in range(m):
            row = rows[j, i]
            if np.isnan(truncation.norms[row]):
                tail = 1.0 if data.has_tail else 0.0
                truncation.norms[row] = np.sqrt(squared_norm(data.X, row, truncation.work) + tail)
            sizes[j, i] = abs(slopes[j, i]) * truncation.norms[row]
            if sizes[j, i] > most:
                slopes[j, i] *= most / sizes[j, i]
                n_cut += 1
    return n_cut, _scale_after(truncation.scales[1], sizes, q)


@inlined
def _scale_after(before: float, sizes: Floats, q: Floats) -> float:
    """Return the scale after a step: the mean of its sizes at first, then a moving average of what is cut."""
    k, m = sizes.shape
    total, n = 0.0, 0
    for j in range(k):
        if q[j] != 0.0:
            n += m
            for i in range(m):
                if sizes[j, i] > CUT * before:
                    total += CUT * before
                else:  # NaN, too
                    total += sizes[j, i]
    if n == 0:
        return before
    return total / n if before == np.inf else before + PACE * (total / n - before)
