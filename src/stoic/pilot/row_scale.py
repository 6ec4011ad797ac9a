"""Smoothness and noise of the gradients of single rows, for steps that draw some groups only."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stoic.inners.designs import RowBatch
from stoic.pilot.fixed_sample import LinearSample, Sample
from stoic.protocols import Array, IntArray, Vector, draws_groups

_MOST_ROWS, _MOST_ENTRIES = 256, 4_000_000
_USUAL = 0.9  # of the rows: a wild one does not set the noise


class RowScale(NamedTuple):
    """The number of groups that can be drawn apart, and L and noise of a step that draws one row.

    The row is of group i with the chance (1/p + q_i)/2, and has the weight that makes its gradient unbiased. Of k
    rows the smoothness is 1/k of it, on top of that of the mean, and the noise 1/√k of it.
    """

    n_groups: int = 1
    smoothness: float = 0.0
    noise: float = 0.0


def row_scale(singles: Sequence[Sample], sample: Sample, w0: Vector, w1: Vector) -> RowScale:
    """Return the scale of single rows between two points, from a few rows of some single draws.

    For convex rows E‖∇(w₁) − ∇(w₀)‖² ≤ L ⟨E∇(w₁) − E∇(w₀), w₁ − w₀⟩ gives L as for whole draws.
    """
    inner = sample.problem.inner
    p, d = inner.shape
    if not draws_groups(inner):
        return RowScale()
    q, n_rows = np.abs(sample.problem.outer.gradient(sample.value(w1))), min(p, _MOST_ROWS, _MOST_ENTRIES // d)
    total = float(np.add.reduce(q))
    if not (0.0 < total < math.inf and n_rows > 0 and singles):
        return RowScale(p)
    weight = q * (q / (0.5 / p + 0.5 * q / total))
    squares, products, sizes = [], [], []
    for single in singles[: math.ceil(_MOST_ROWS / n_rows)]:
        groups = np.linspace(0, p - 1, n_rows).round().astype(np.intp)
        ahead, start = (_gradients(single, w, groups) for w in (w1, w0))
        change = ahead - start
        squares.append(weight[groups] * np.einsum("ij,ij->i", change, change))
        products.append(q[groups] * (change @ (w1 - w0)))
        sizes.append(weight[groups] * np.einsum("ij,ij->i", ahead, ahead))
        single.forget()
    usual = np.sort(np.concatenate(sizes))
    usual = usual[: math.ceil(_USUAL * len(usual))]
    below = float(np.sum(products))
    smoothness = float(np.sum(squares)) / below if below > 0.0 else 0.0
    noise = math.sqrt(p * max(0.0, float(usual.mean())))
    return RowScale(p, *(value if math.isfinite(value) else 0.0 for value in (smoothness, noise)))


def _gradients(single: Sample, w: Vector, groups: IntArray) -> Array:
    """Return the gradients of the rows of some groups in a draw of size 1, of shape (groups, d)."""
    if isinstance(single, LinearSample):
        if single.meter is not None:
            single.meter.charge(0, len(groups))
        rows: IntArray = single.rows.rows  # type: ignore[assignment]
        return single.inner.jacobian(w, RowBatch(rows[groups]))[0]
    return single.problem.inner.jacobian(w, single.batch)[0][groups]
