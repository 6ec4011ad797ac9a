"""Gradients of outer functions f at y, written into q."""

import numpy as np
from numpy.typing import NDArray

from stoic.codes import LINEAR, LOGSUMEXP, SMOOTH_CVAR, OuterCode
from stoic.engines.kernels.jit import kernel

Floats = NDArray[np.float64]


@kernel
def outer_gradient(outer: OuterCode, y: Floats, q: Floats) -> None:
    """Write ∇f(y) into q, which holds (y − b)/s until then."""
    p = y.size
    if outer.kind == LINEAR:
        for i in range(p):
            q[i] = outer.weights[i]
        return
    for i in range(p):
        q[i] = (y[i] - outer.baseline[i]) / outer.scale[i]
    top, rest = -np.inf, 1.0
    if outer.kind == SMOOTH_CVAR:
        top, rest = threshold(q, outer.ordered, outer.capacity, outer.temperature)
    elif outer.kind == LOGSUMEXP:
        for i in range(p):
            if outer.weights[i] > 0.0 and not q[i] <= top:
                top = q[i]
    else:
        top = np.nan  # no such function
    total = 0.0
    for i in range(p):
        if outer.weights[i] == 0.0:
            q[i] = 0.0
        elif q[i] > top:
            q[i] = 1.0
        else:
            q[i] = outer.weights[i] * rest * np.exp(scaled_below(q[i], top, outer.temperature))
        total += q[i]
    for i in range(p):
        q[i] /= total * outer.scale[i]


@kernel
def scaled_below(value: float, top: float, temperature: float) -> float:
    """Return (value − top)/temperature for a top that bounds it; the limit 0 where both are infinite."""
    return 0.0 if value == top else (value - top) / temperature


@kernel
def threshold(y: Floats, ordered: Floats, capacity: float, temperature: float) -> tuple[float, float]:
    """Return the largest entry below the cap, and the factor of the entries below it."""
    sort_down(y, ordered)
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


@kernel
def sort_down(y: Floats, out: Floats) -> None:
    """Write y into out, largest entries first: heapsort, which needs no memory of its own."""
    for i in range(y.size):
        out[i] = y[i]
    for root in range(y.size - 1, -1, -1):
        sift(out, root, y.size)
    for last in range(y.size - 1, 0, -1):
        out[0], out[last] = out[last], out[0]
        sift(out, 0, last)


@kernel
def sift(heap: Floats, root: int, size: int) -> None:
    """Let an entry sink below smaller ones, in a heap with the smallest on top."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if not heap[child] < heap[root]:
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child
