"""Smoothness and noise of the gradients of single rows, for steps that draw some groups only."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stoic.inners.designs import RowBatch
from stoic.pilot.fixed_sample import LinearSample, Pooled, Sample, length
from stoic.protocols import Array, IntArray, Vector, draws_groups

ALL_UP_TO = 64
"""Of so many groups a step draws all, by default, and rows are not looked at one by one."""

_MOST_ROWS, _MOST_ENTRIES, _ENOUGH_ROWS = 256, 4_000_000, 2048
_POWER_STEPS = 6
_MEDIAN_SQUARE = 0.455  # of a normal number: so a median of squares becomes a mean, but for wild rows


class RowScale(NamedTuple):
    """The number p of groups that can be drawn apart, and the scales of a step that draws one row.

    The row is of group i with the chance (1/p + q_i)/2, and has the weight that makes its gradient unbiased. q are
    the weights of a linear f. For any other f they are taken as equal: where few rows a group are known, ∇f at
    their means is that of the wildest of them. `mean` is the smoothness of the mean gradient for fixed q. Of k
    rows the smoothness is `mean` and 1/k of `single`, the noise 1/√k of `noise`. What is 0 is not known.
    """

    n_groups: int = 1
    mean: float = 0.0
    single: float = 0.0
    noise: float = 0.0


UNKNOWN = RowScale()
"""Of a part that draws all its outputs together."""


def row_scale(parts: Sequence[Sample], singles: Sequence[Sample], w0: Vector, w1: Vector) -> RowScale:
    """Return the scale of single rows between two points, from the draws of a pilot; nothing more is drawn.

    For convex rows E‖∇(w₁) − ∇(w₀)‖² ≤ L ⟨E∇(w₁) − E∇(w₀), w₁ − w₀⟩ gives L as for whole draws.
    """
    problem = parts[0].problem
    p, d = problem.inner.shape
    if not draws_groups(problem.inner):
        return UNKNOWN
    if p <= ALL_UP_TO:
        return RowScale(p)
    q = problem.outer.gradient(Pooled([*parts, *singles]).value(w1))
    if getattr(problem.outer, "smoothness", None) != 0.0:
        q = np.full(p, float(np.add.reduce(np.abs(q))) / p)
    total, n_rows = float(np.add.reduce(np.abs(q))), min(p, _MOST_ROWS, _MOST_ENTRIES // d)
    if not (0.0 < total < math.inf and n_rows > 0):
        return RowScale(p)
    smoothness = _mean_smoothness(parts, w0, w1, q)
    chance = 0.5 / p + (0.5 / total) * np.abs(q)
    groups = np.linspace(0, p - 1, n_rows).round().astype(np.intp)
    squares, products, sizes = [], [], []
    for single in singles[: math.ceil(_MOST_ROWS / n_rows)]:
        ahead, start = (_gradients(single, w, groups) for w in (w1, w0))
        change = ahead - start
        weight = np.square(q[groups]) / chance[groups]
        squares.append(weight * np.einsum("ij,ij->i", change, change))
        products.append(q[groups] * (change @ (w1 - w0)))
        sizes.append(weight * np.einsum("ij,ij->i", ahead, ahead))
        single.forget()
    noise = math.sqrt(p * float(np.median(np.concatenate(sizes))) / _MEDIAN_SQUARE)
    below = float(np.sum(products))
    found = smoothness, float(np.sum(squares)) / below if below > 0.0 else 0.0, noise
    return RowScale(p, *(value if math.isfinite(value) else 0.0 for value in found))


def _mean_smoothness(parts: Sequence[Sample], w0: Vector, w1: Vector, q: Vector) -> float:
    """Return the largest curvature of ⟨q, g⟩ for fixed q at both points, by power iteration on enough rows."""
    enough = Pooled(parts[: math.ceil(_ENOUGH_ROWS / (len(q) * parts[0].size))])
    probe = 1e-3 * (length(w1 - w0) or 1.0 + length(w0))
    largest, rng = 0.0, np.random.default_rng(0)  # its own: it does not move the draws of the solve
    for point in (w0, w1):
        direction = rng.standard_normal(w0.size)
        for _ in range(_POWER_STEPS):
            direction /= length(direction) or 1.0
            direction = enough.change(point, probe * direction, q) / (2.0 * probe)
        largest = max(largest, length(direction))
    enough.forget()
    return largest


def _gradients(single: Sample, w: Vector, groups: IntArray) -> Array:
    """Return the gradients of the rows of some groups in a draw of size 1, of shape (groups, d)."""
    if isinstance(single, LinearSample):
        rows: IntArray = single.rows.rows  # type: ignore[assignment]
        found: Array = single.inner.jacobian(w, RowBatch(rows[groups]))[0]
    else:
        found = single.problem.inner.jacobian(w, single.batch)[0][groups]
    return found
