"""A vector kept as w = a·u + b·c: to shrink it or pull it to c costs nothing. With the sum of all its values.

Only Zero and L2, both also anchored at c (and the ball around c), allow this form. The intercept, which no
regularizer shrinks, is apart.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.kernels.jit import kernel

Floats = NDArray[np.float64]

# Places in `scalars`: the form, ‖u‖², ⟨u, c⟩, ‖c‖², Σa, Σb, the intercept, that of c, its sum; the anchor; and the
# largest ‖u‖² since it was last summed up.
A, B, UU, UC, CC, SUM_A, SUM_B, TAIL, TAIL_C, SUM_TAIL, WEIGHT, PEAK = range(12)
N_SCALARS = 12

_FLUSH_BELOW = 1e-4  # an active ball drives a to 0, and the average would lose its digits
_SUM_BELOW = 1e-6  # of its peak: ‖u‖² has lost digits that only a new sum gives back


class Scaled(NamedTuple):
    """The arrays of the form: Σ over past values of w is Σa·u − h + past + Σb·c."""

    u: Floats
    c: Floats
    h: Floats
    past: Floats
    scalars: Floats


@kernel
def flush(w: Scaled) -> None:
    """Set a to 1 again, and put the sum so far away; a pass over all coordinates."""
    s = w.scalars
    a, sum_a = s[A], s[SUM_A]
    for k in range(w.u.size):
        w.past[k] += sum_a * w.u[k] - w.h[k]
        w.h[k] = 0.0
        w.u[k] *= a
    s[A], s[SUM_A] = 1.0, 0.0
    sum_up(w)


@kernel
def sum_up(w: Scaled) -> None:
    """Compute ‖u‖² and ⟨u, c⟩ anew; a pass over all coordinates."""
    s = w.scalars
    s[UU], s[UC] = 0.0, 0.0
    for k in range(w.u.size):
        s[UU] += w.u[k] * w.u[k]
        s[UC] += w.u[k] * w.c[k]
    s[PEAK] = s[UU]


@kernel
def squared_distance(w: Scaled) -> float:
    """Return ‖w − c‖², intercept included."""
    s = w.scalars
    a, b = s[A], s[B] - 1.0
    tail = s[TAIL] - s[TAIL_C]
    return max(0.0, a * a * s[UU] + 2.0 * a * b * s[UC] + b * b * s[CC]) + tail * tail


@kernel
def settle(w: Scaled, step: float, alpha: float, tail_ahead: float, radius: float, has_tail: bool) -> float:
    """Finish a step: w is w − step·v but for the intercept; take the prox of (α/2)‖·‖² in the ball around c.

    Where the problem is anchored, it is that of (α/2)‖·‖² + (weight/2)‖· − c‖².

    Returns θ, 1 where the ball is not active: w = (θp + (1 − θ)c)/(1 + θ·step·α) with p the point handed in.
    """
    s = w.scalars
    if s[WEIGHT] > 0.0:  # as in `Anchored.prox`: a shorter step at a point nearer to c
        pull = step * s[WEIGHT]
        step /= 1.0 + pull
        s[A] /= 1.0 + pull
        s[B] = (s[B] + pull) / (1.0 + pull)
        tail_ahead = (tail_ahead + pull * s[TAIL_C]) / (1.0 + pull)
    ridge = step * alpha
    s[PEAK] = max(s[PEAK], s[UU])
    if s[UU] < _SUM_BELOW * s[PEAK]:
        sum_up(w)
    a, b = s[A] / (1.0 + ridge), s[B] / (1.0 + ridge) - 1.0  # p/(1 + ηα) − c = a·u + b·c
    far = np.sqrt(max(0.0, a * a * s[UU] + 2.0 * a * b * s[UC] + b * b * s[CC]))
    tail = tail_ahead - s[TAIL_C] if has_tail else 0.0
    theta = 1.0
    if radius < np.inf and (far / radius) ** 2 + (tail / radius) ** 2 > 1.0:
        theta = ball_theta(far / radius, abs(tail) / radius, ridge)
    shrink = 1.0 + theta * ridge
    s[A] *= theta / shrink
    s[B] = (theta * s[B] + 1.0 - theta) / shrink
    if has_tail:
        s[TAIL] = s[TAIL_C] + theta * tail
    s[SUM_A] += s[A]
    s[SUM_B] += s[B]
    s[SUM_TAIL] += s[TAIL]
    return theta


@kernel
def needs_flush(w: Scaled) -> bool:
    """Whether a is so small that u and the average lose their digits."""
    return bool(w.scalars[A] < _FLUSH_BELOW)


@kernel
def ball_theta(far: float, tail: float, ridge: float) -> float:
    """Return the root θ in (0, 1) of (θ·far·(1 + ridge)/(1 + θ·ridge))² + (θ·tail)² = 1."""
    if tail == 0.0:
        return 1.0 / (far + (far - 1.0) * ridge)
    low, high = 0.0, min(1.0, 1.0 / tail)
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return low
        reach = middle * far * ((1.0 + ridge) / (1.0 + middle * ridge))
        if reach * reach + middle * tail * middle * tail > 1.0:
            high = middle
        else:
            low = middle


@kernel
def current(w: Scaled, out: Floats) -> None:
    """Write w into out, without the intercept."""
    a, b = w.scalars[A], w.scalars[B]
    for k in range(w.u.size):
        out[k] = a * w.u[k] + b * w.c[k]


@kernel
def total(w: Scaled, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept."""
    sum_a, sum_b = w.scalars[SUM_A], w.scalars[SUM_B]
    for k in range(w.u.size):
        out[k] = sum_a * w.u[k] - w.h[k] + w.past[k] + sum_b * w.c[k]
