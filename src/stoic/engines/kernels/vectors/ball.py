"""The prox in the ball for a vector under thresholds: mostly one more line of its table, else a few passes."""

from typing import NamedTuple

import numpy as np

from stoic.brackets import Bracket
from stoic.engines.kernels.jit import inlined, kernel, reordered
from stoic.engines.kernels.roots import is_wide, narrowed, next_point
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
    w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool
) -> None:
    """Finish a step: w is w − step·v, but for the intercept; take the prox in the ball around c.

    Where the problem is anchored, and where the ball is active, that takes passes over all coordinates.
    """
    s = w.scalars
    if not has_tail:
        tail_ahead = 0.0
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


@reordered
def squared_way(w: Thresholded, way: Way) -> float:
    """Return ‖w(θ) − c‖², without the intercept."""
    v, c, anchor, total = w.v, w.c, w.anchor, 0.0
    for k in range(np.uint64(v.size)):
        move = ended(way, v[k], c[k], anchor[k]) - c[k]
        total += move * move
    return total


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


@reordered
def take(w: Thresholded, way: Way) -> float:
    """Move every coordinate where it ends, add that to its sum, and return ‖w − c‖², without the intercept."""
    v, c, anchor, past, total = w.v, w.c, w.anchor, w.past, 0.0
    for k in range(np.uint64(v.size)):
        new = ended(way, v[k], c[k], anchor[k])
        past[k] += new
        v[k] = new
        total += (new - c[k]) * (new - c[k])
    return total


@kernel
def largest_theta(
    w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float, unbounded: float
) -> float:
    """Return the largest θ that ends within the ball."""
    if not unbounded > radius:
        return 1.0
    bracket = Bracket(0.0, 1.0, -radius, unbounded - radius, 0.0)
    while is_wide(bracket):
        theta = next_point(bracket)
        bracket = narrowed(bracket, theta, reach(w, step, l1, l2, tail_ahead, theta) - radius)
    return bracket.low
