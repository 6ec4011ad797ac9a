"""A vector with nothing put off, under a penalty with weights for each coordinate, and the sum of its values.

A step passes over all coordinates, which is at the cost of the rows where rows are dense.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.brackets import Bracket
from stoic.engines.kernels.jit import inlined, kernel, reordered
from stoic.engines.kernels.roots import is_wide, narrowed, next_point
from stoic.engines.kernels.rows import dot, push
from stoic.engines.kernels.vectors.scaled import TOO_LARGE
from stoic.engines.kernels.vectors.thresholded import shrunk

Floats = NDArray[np.float64]

# Places in `scalars`: ‖w − c‖, a bound on |w|, the intercept, those of c and the anchor, its sum, the
# anchor's weight.
FAR, SIZE, TAIL, TAIL_C, TAIL_ANCHOR, SUM_TAIL, WEIGHT = range(7)
N_SCALARS = 7


class Explicit(NamedTuple):
    """The arrays of the form: w, its center, the anchor, the sum of past values, the weights of |w| and w²/2.

    `shares` is empty: the sum is all in `past`.
    """

    v: Floats
    c: Floats
    anchor: Floats
    past: Floats
    l1: Floats
    l2: Floats
    shares: Floats
    scalars: Floats


@inlined
def explicit_product(X: Any, w: Explicit, row: int) -> float:
    """Return x·w for one row x, without the intercept."""
    return dot(X, row, w.v)


@inlined
def add_explicit(X: Any, w: Explicit, row: int, factor: float, following: int = -1) -> None:
    """Add factor·x to w."""
    push(X, row, factor, w.v, following)


@kernel
def add_explicit_columns(w: Explicit, columns: Any, packed: Floats, q: Floats, factor: float) -> None:
    """Add factor·(packed·q) to some coordinates of w."""
    for j in range(columns.size):
        amount = 0.0
        for i in range(q.size):
            amount += packed[j, i] * q[i]
        w.v[columns[j]] += factor * amount


@inlined
def explicit_intercept(w: Explicit) -> float:
    """Return the intercept."""
    return w.scalars[TAIL]


@inlined
def reserve_explicit(w: Explicit, amount: float) -> bool:
    """Add an amount to the bound on |w|; return False where it may pass TOO_LARGE, and leave it then as it was."""
    if not w.scalars[SIZE] + amount < TOO_LARGE:
        return False
    w.scalars[SIZE] += amount
    return True


@inlined
def never_stale(w: Explicit, step: float, l1: float) -> bool:
    """Return False: nothing has to be made anew."""
    return False


@inlined
def keep_explicit(w: Explicit) -> None:
    """Do nothing."""


@inlined
def note_explicit_move(w: Explicit, length: float) -> None:
    """Do nothing: ‖w − c‖ is known at each step."""


@inlined
def exceeds_explicit(w: Explicit, far: float, growth: float, slack: float) -> bool:
    """Whether far > growth·‖w − c‖ + slack, or far is not finite."""
    return not far <= growth * w.scalars[FAR] + slack or not far < np.inf


@inlined
def settle_explicit(
    w: Explicit, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool
) -> None:
    """Finish a step: w is w − step·v, but for the intercept; take the prox in the ball around c.

    The weights are those of the form, not l1 and l2, the largest of them.
    """
    s = w.scalars
    pull = step * s[WEIGHT]
    shorter = step / (1.0 + pull)
    tail = (tail_ahead + pull * s[TAIL_ANCHOR]) / (1.0 + pull) if has_tail else 0.0
    pull_to_anchor(w, pull)
    theta = 1.0
    if radius < np.inf:
        theta = largest_share(w, shorter, tail, radius)
    s[TAIL] = s[TAIL_C] + theta * (tail - s[TAIL_C]) if has_tail else 0.0
    squared = take_explicit(w, shorter, theta)
    tail = s[TAIL] - s[TAIL_C]
    s[FAR] = np.sqrt(squared + tail * tail)
    s[SUM_TAIL] += s[TAIL]


@inlined
def pull_to_anchor(w: Explicit, pull: float) -> None:
    """Move w to (w + pull·anchor)/(1 + pull)."""
    if pull > 0.0:
        for k in range(np.uint64(w.v.size)):
            w.v[k] = (w.v[k] + pull * w.anchor[k]) / (1.0 + pull)


@inlined
def explicit_end(w: Explicit, k: Any, step: float, theta: float) -> float:
    """Return where coordinate k ends for a θ."""
    shorter = theta * step
    ahead = w.c[k] + theta * (w.v[k] - w.c[k])
    return shrunk(ahead, shorter * w.l1[k]) / (1.0 + shorter * w.l2[k])


@reordered
def explicit_reach(w: Explicit, step: float, tail: float, theta: float) -> float:
    """Return how far from c the step ends for a θ; a pass over all coordinates."""
    total = theta * (tail - w.scalars[TAIL_C]) * theta * (tail - w.scalars[TAIL_C])
    for k in range(np.uint64(w.v.size)):
        move = explicit_end(w, k, step, theta) - w.c[k]
        total += move * move
    return np.sqrt(total)


@kernel
def largest_share(w: Explicit, step: float, tail: float, radius: float) -> float:
    """Return the largest θ that ends within the ball."""
    far = explicit_reach(w, step, tail, 1.0)
    if not far > radius:
        return 1.0
    bracket = Bracket(0.0, 1.0, -radius, far - radius, 0.0)
    while is_wide(bracket):
        theta = next_point(bracket)
        bracket = narrowed(bracket, theta, explicit_reach(w, step, tail, theta) - radius)
    return bracket.low


@reordered
def take_explicit(w: Explicit, step: float, theta: float) -> float:
    """Move every coordinate where it ends, add that to its sum, and return ‖w − c‖², without the intercept."""
    v, c, past, total, size = w.v, w.c, w.past, 0.0, 0.0
    for k in range(np.uint64(v.size)):
        new = explicit_end(w, k, step, theta)
        v[k] = new
        past[k] += new
        total += (new - c[k]) * (new - c[k])
        size = max(size, abs(new))
    w.scalars[SIZE] = size
    return total


@kernel
def current_explicit(w: Explicit, out: Floats) -> None:
    """Write w into out, without the intercept."""
    for k in range(w.v.size):
        out[k] = w.v[k]


@kernel
def total_explicit(w: Explicit, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept."""
    for k in range(w.past.size):
        out[k] = w.past[k]
