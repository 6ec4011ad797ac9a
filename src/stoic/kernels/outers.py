"""Gradients of outer functions f at y, written into q."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.jit import kernel

LINEAR, LOGSUMEXP, SMOOTH_CVAR = range(3)

Floats = NDArray[np.float64]


class Outer(NamedTuple):
    """Which outer function: its weights (or prior), temperature, and level · p."""

    kind: int
    weights: Floats
    temperature: float
    capacity: float


@kernel
def outer_gradient(outer: Outer, y: Floats, q: Floats) -> None:
    """Write ∇f(y) into q."""
    p = y.size
    if outer.kind == LINEAR:
        for i in range(p):
            q[i] = outer.weights[i]
        return
    top, rest = -np.inf, 1.0
    if outer.kind == SMOOTH_CVAR:
        top, rest = threshold(y, outer.capacity, outer.temperature)
    else:
        for i in range(p):
            if outer.weights[i] > 0.0 and not y[i] <= top:
                top = y[i]
    total = 0.0
    for i in range(p):
        if outer.weights[i] == 0.0:
            q[i] = 0.0
        elif y[i] > top:
            q[i] = 1.0
        else:
            q[i] = outer.weights[i] * rest * np.exp(scaled_below(y[i], top, outer.temperature))
        total += q[i]
    for i in range(p):
        q[i] /= total


@kernel
def scaled_below(value: float, top: float, temperature: float) -> float:
    """Return (value − top)/temperature for a top that bounds it; the limit 0 where both are infinite."""
    return 0.0 if value == top else (value - top) / temperature


@kernel
def threshold(y: Floats, capacity: float, temperature: float) -> tuple[float, float]:
    """Return the largest entry below the cap, and the factor of the entries below it."""
    ordered = np.sort(y)[::-1]
    low, high = 0, int(np.ceil(capacity)) - 1
    while low < high:  # the smallest k with capacity − k ≤ S_k, once true always true
        middle = (low + high) // 2
        if capacity - middle <= tail_sum(ordered, middle, temperature):
            high = middle
        else:
            low = middle + 1
    return ordered[low], (capacity - low) / tail_sum(ordered, low, temperature)


@kernel
def tail_sum(ordered: Floats, first: int, temperature: float) -> float:
    """Return S_k: the sum of exp((u_i − u_k)/temperature) over i ≥ k, for u sorted downwards."""
    total = 0.0
    for i in range(first, ordered.size):
        total += np.exp(scaled_below(ordered[i], ordered[first], temperature))
    return total
