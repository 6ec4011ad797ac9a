"""The prox in the ball for a vector under thresholds: mostly one more line of its table, else a few passes."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.rows import FREE
from stoic.engines.kernels.vectors.thresholded import (
    HIGH,
    LOW,
    MOVED,
    NORM_C,
    SIZE,
    SUM_TAIL,
    TAIL,
    TAIL_ANCHOR,
    TAIL_C,
    WEIGHT,
    Thresholded,
    line_now,
    pass_time,
    rebase,
    shrunk,
)


@kernel
def settle_thresholded(
    w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float
) -> None:
    """Finish a step: w is w − step·v, but for the intercept; take the prox in the ball around c.

    Where the problem is anchored, and where the ball is active, that takes passes over all coordinates.
    """
    s = w.scalars
    if s[WEIGHT] > 0.0:
        write_out(w, step, l1, l2, tail_ahead, radius, reach(w, step, l1, l2, tail_ahead, 1.0))
        return
    change = s[MOVED] + step * (l1 * np.sqrt(w.v.size) + l2 * (s[NORM_C] + s[HIGH]))
    s[MOVED] = 0.0
    s[LOW], s[HIGH] = max(0.0, s[LOW] - change), s[HIGH] + change
    if s[HIGH] > radius:
        s[LOW] = s[HIGH] = reach(w, step, l1, l2, tail_ahead, 1.0)
        if s[HIGH] > radius:
            write_out(w, step, l1, l2, tail_ahead, radius, s[HIGH])
            return
    s[TAIL] = tail_ahead
    pass_time(w, step, l1, l2)


class Way(NamedTuple):
    """What a step does to a potential v for a θ: shrunk(θ·value + (1 − θ)·c, threshold)·scale is where it ends.

    The value is P·shrunk(v, Q)·keep + toward·anchor.
    """

    p: float
    q: float
    keep: float
    toward: float
    theta: float
    threshold: float
    scale: float


@inlined
def way_of(w: Thresholded, step: float, l1: float, l2: float, theta: float) -> Way:
    """Return the way of a step; the pull to the anchor comes first, and makes the step shorter."""
    line, pull = line_now(w), step * w.scalars[WEIGHT]
    shorter = theta * step / (1.0 + pull)
    keep = 1.0 / (1.0 + pull)
    return Way(line.p, line.q, keep, pull * keep, theta, shorter * l1, 1.0 / (1.0 + shorter * l2))


@inlined
def ended(way: Way, v: float, c: float, anchor: float) -> float:
    """Return where a coordinate ends."""
    value = way.p * shrunk(v, way.q) * way.keep + way.toward * anchor
    return shrunk(way.theta * value + (1.0 - way.theta) * c, way.threshold) * way.scale


@inlined
def tail_ended(w: Thresholded, way: Way, tail_ahead: float) -> float:
    """Return where the intercept ends; nothing but the anchor and the ball act on it."""
    s = w.scalars
    return s[TAIL_C] + way.theta * (way.keep * tail_ahead + way.toward * s[TAIL_ANCHOR] - s[TAIL_C])


def squared_way(w: Thresholded, way: Way) -> float:
    """Return ‖w(θ) − c‖², without the intercept."""
    moves = (ended(way, *place) - place[1] for place in zip(w.v, w.c, w.anchor, strict=True))
    return float(sum(move * move for move in moves))


@overload(squared_way, jit_options=FREE)
def _squared_way(w: Thresholded, way: Way) -> Any:
    def summed(w: Thresholded, way: Way) -> float:
        v, c, anchor, total = w.v, w.c, w.anchor, 0.0
        for k in range(np.uint64(v.size)):
            move = ended(way, v[k], c[k], anchor[k]) - c[k]
            total += move * move
        return total

    return summed


@kernel
def reach(w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, theta: float) -> float:
    """Return how far from c the step ends for a θ; a pass over all coordinates."""
    way = way_of(w, step, l1, l2, theta)
    tail = tail_ended(w, way, tail_ahead) - w.scalars[TAIL_C]
    return np.sqrt(squared_way(w, way) + tail * tail)


@kernel
def write_out(
    w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float, unbounded: float
) -> None:
    """Take the step in the ball, coordinate by coordinate; `unbounded` is how far it would go without."""
    s = w.scalars
    theta = largest_theta(w, step, l1, l2, tail_ahead, radius, unbounded)
    rebase(w)
    way = way_of(w, step, l1, l2, theta)
    s[TAIL] = tail_ended(w, way, tail_ahead)
    s[LOW] = s[HIGH] = np.sqrt(take(w, way) + (s[TAIL] - s[TAIL_C]) ** 2)
    s[SUM_TAIL], s[MOVED], s[SIZE] = s[SUM_TAIL] + s[TAIL], 0.0, s[HIGH] + s[NORM_C]


def take(w: Thresholded, way: Way) -> float:
    """Move every coordinate where it ends, add that to its sum, and return ‖w − c‖², without the intercept."""
    w.v[:] = [ended(way, *place) for place in zip(w.v, w.c, w.anchor, strict=True)]
    w.past[:] += w.v
    return float(np.sum((w.v - w.c) ** 2))


@overload(take, jit_options=FREE)
def _take(w: Thresholded, way: Way) -> Any:
    def taken(w: Thresholded, way: Way) -> float:
        v, c, anchor, past, total = w.v, w.c, w.anchor, w.past, 0.0
        for k in range(np.uint64(v.size)):
            new = ended(way, v[k], c[k], anchor[k])
            past[k] += new
            v[k] = new
            total += (new - c[k]) * (new - c[k])
        return total

    return taken


@kernel
def largest_theta(
    w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float, unbounded: float
) -> float:
    """Return the largest θ that ends within the ball.

    By chords, since the distance is nearly straight in θ; after two in a row to one side, the value at the other
    end counts half (the Illinois rule), and every fourth time the middle is tried.
    """
    low, high, n, side = 0.0, 1.0, 0, 0
    short, beyond = -radius, unbounded - radius
    if not beyond > 0.0:
        return 1.0
    while high - low > 1e-13 * high:
        n += 1
        theta = low - short * ((high - low) / (beyond - short))
        if n % 4 == 0 or not low < theta < high:
            theta = 0.5 * (low + high)
        far = reach(w, step, l1, l2, tail_ahead, theta) - radius
        if abs(far) <= 1e-13 * radius:
            return theta
        if far > 0.0:
            high, beyond, short, side = theta, far, (0.5 * short if side > 0 else short), 1
        else:
            low, short, beyond, side = theta, far, (0.5 * beyond if side < 0 else beyond), -1
    return low
