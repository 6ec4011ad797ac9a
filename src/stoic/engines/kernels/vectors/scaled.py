"""A vector kept as w = a·(u + Zβ) + b·c: to shrink it or pull it to c costs nothing. With the sum of its values.

Only Zero and L2, both also anchored at c (and the ball around c), allow this form. The intercept, which no
regularizer shrinks, is apart. Z is z̃₀ᵀ of ROSC, and a truncated step changes β alone.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.roots import ball_theta
from stoic.engines.kernels.rows import dot, fetch, products, push, vector_dot

Floats = NDArray[np.float64]

# Places in `scalars`: the form, ‖u + Zβ‖², ⟨u + Zβ, c⟩, ‖c‖², Σa, Σb, the intercept, that of c, its sum; the
# anchor; the largest ‖u + Zβ‖² since it was last summed up; and whether β is in use.
A, B, UU, UC, CC, SUM_A, SUM_B, TAIL, TAIL_C, SUM_TAIL, WEIGHT, PEAK, HOLDS = range(13)
N_SCALARS = 13

TOO_LARGE = 1e140  # for a coordinate: beyond, squares may overflow, and the plain engine takes the step
_FLUSH_BELOW = 1e-4  # an active ball drives a to 0, and the average would lose its digits
_SUM_BELOW = 1e-6  # of its peak: ‖u‖² has lost digits that only a new sum gives back


class Held(NamedTuple):
    """What the form holds of Z (d, p): β, the past of its sum, Zᵀ(u + Zβ), Zᵀc, ZᵀZ, and xᵀZ of rows in use.

    p is 0 where nothing is held. The rest is computed when β is first used; rows not in use have NaN.
    """

    Z: Floats
    beta: Floats
    past: Floats
    along_u: Floats
    along_c: Floats
    gram: Floats
    along_rows: Floats


class Scaled(NamedTuple):
    """The arrays of the form: Σ over past values of w is Σa·(u + Zβ) + past + Z·held.past + Σb·c − Σ shares_r·x_r.

    A row that moves u by factor·x when the sum of the a is Σa adds Σa·factor to its share: one number a row, where
    Σa·factor·x would be a second vector to write. `along_c` keeps x·c of the rows that were used, NaN for others.
    """

    u: Floats
    c: Floats
    past: Floats
    shares: Floats
    along_c: Floats
    scalars: Floats
    held: Held


@inlined
def scaled_product(X: Any, w: Scaled, row: int) -> float:
    """Return x·w for one row x, without the intercept."""
    s = w.scalars
    product = s[A] * dot(X, row, w.u)
    if s[HOLDS] != 0.0:
        product += s[A] * product_with_held(X, w, row)
    return product + s[B] * product_with_center(X, w, row) if s[B] != 0.0 else product


@inlined
def product_with_center(X: Any, w: Scaled, row: int) -> float:
    """Return x·c, computed on first use."""
    if w.scalars[CC] == 0.0:
        return 0.0
    if np.isnan(w.along_c[row]):
        w.along_c[row] = dot(X, row, w.c)
    return w.along_c[row]


@inlined
def know_held(X: Any, w: Scaled, row: int) -> None:
    """Compute xᵀZ on first use."""
    if np.isnan(w.held.along_rows[row, 0]):
        products(X, row, w.held.Z, w.held.along_rows[row])


@inlined
def product_with_held(X: Any, w: Scaled, row: int) -> float:
    """Return x·Zβ."""
    know_held(X, w, row)
    total = 0.0
    for i in range(w.held.beta.size):
        total += w.held.beta[i] * w.held.along_rows[row, i]
    return total


@kernel
def hold(w: Scaled, q: Floats, factor: float) -> None:
    """Add factor·Zq to w."""
    s, held = w.scalars, w.held
    if s[HOLDS] == 0.0:
        s[HOLDS] = 1.0
        begin_to_hold(w)
    for i in range(q.size):
        step = factor / s[A] * q[i]
        s[UU] += step * (2.0 * held.along_u[i] + step * held.gram[i, i])
        s[UC] += step * held.along_c[i]
        for j in range(q.size):
            held.along_u[j] += step * held.gram[i, j]
        held.beta[i] += step
        held.past[i] -= s[SUM_A] * step


@kernel
def begin_to_hold(w: Scaled) -> None:
    """Compute Zᵀu and, the first time, Zᵀc and ZᵀZ; a pass over all coordinates. β is 0."""
    held, p = w.held, w.held.beta.size
    held.along_u[:] = 0.0
    for k in range(w.u.size):
        for i in range(p):
            held.along_u[i] += held.Z[k, i] * w.u[k]
    if held.gram.any():
        return
    held.along_c[:] = 0.0
    for k in range(w.u.size):
        for i in range(p):
            held.along_c[i] += held.Z[k, i] * w.c[k]
            for j in range(p):
                held.gram[i, j] += held.Z[k, i] * held.Z[k, j]


@inlined
def held_at(w: Scaled, k: int, coefficients: Floats) -> float:
    """Return coordinate k of Z·coefficients."""
    total = 0.0
    if w.scalars[HOLDS] != 0.0:
        for i in range(coefficients.size):
            total += w.held.Z[k, i] * coefficients[i]
    return total


@inlined
def add_scaled(X: Any, w: Scaled, row: int, factor: float, following: int = -1) -> None:
    """Add factor·x to w."""
    s = w.scalars
    factor /= s[A]
    fetch(w.shares, max(0, following))
    s[UU] += push(X, row, factor, w.u, following)
    s[UC] += factor * product_with_center(X, w, row)
    w.shares[row] += s[SUM_A] * factor
    if s[HOLDS] != 0.0:
        s[UU] += 2.0 * factor * product_with_held(X, w, row)
        for i in range(w.held.beta.size):
            w.held.along_u[i] += factor * w.held.along_rows[row, i]


@kernel
def add_scaled_columns(w: Scaled, columns: Any, packed: Floats, q: Floats, factor: float) -> None:
    """Add factor·(packed·q) to some coordinates of w; nothing is held."""
    s = w.scalars
    scale, past = factor / s[A], factor / s[A] * s[SUM_A]
    uu, uc = s[UU], s[UC]
    for j in range(columns.size):
        amount, k = 0.0, columns[j]
        for i in range(q.size):
            amount += packed[j, i] * q[i]
        old = w.u[k]
        new = old + scale * amount
        w.u[k] = new
        w.past[k] -= past * amount
        uu += scale * amount * (new + old)
        uc += scale * amount * w.c[k]
    s[UU], s[UC] = uu, uc


@inlined
def add_scaled_reference(w: Scaled, columns: Any, packed: Floats, q: Floats, factor: float) -> None:
    """Add factor·Zq to w, where Z is held or given by its columns that are not zero."""
    if w.held.beta.size > 0:
        hold(w, q, factor)
    else:
        add_scaled_columns(w, columns, packed, q, factor)


@inlined
def scaled_reference_product(X: Any, w: Scaled, Z: Floats, row: int, group: int, along: Floats) -> float:
    """Return x·z for a row and one column z of Z, computed on first use; the form keeps it, or `along`."""
    if w.held.beta.size > 0:
        know_held(X, w, row)
        return w.held.along_rows[row, group]
    return kept_product(X, w, Z, row, group, along)


@inlined
def kept_product(X: Any, w: Any, Z: Floats, row: int, group: int, along: Floats) -> float:
    """Return x·z for a row and one column z of Z, computed on first use; `along` keeps it."""
    if np.isnan(along[row]):
        along[row] = dot(X, row, Z[:, group])
    return along[row]


@inlined
def needs_flush(w: Scaled, step: float, l1: float) -> bool:
    """Whether a is so small that u and the average lose their digits."""
    return bool(w.scalars[A] < _FLUSH_BELOW)


@kernel
def flush(w: Scaled) -> None:
    """Rescale to a = 1: add Σa·u to `past`, Zβ to u, and compute products anew; nothing where a = 1 and Σa = 0."""
    s, u, past = w.scalars, w.u, w.past
    a, sum_a = s[A], s[SUM_A]
    if a == 1.0 and sum_a == 0.0:
        return
    if s[HOLDS] != 0.0:
        let_go(w)
    for k in range(np.uint64(u.size)):
        past[k] += sum_a * u[k]
        u[k] *= a
    s[A], s[SUM_A] = 1.0, 0.0
    sum_up(w)


@kernel
def let_go(w: Scaled) -> None:
    """Add Zβ to u and Z·held.past to `past`, and set β to 0; a pass over all coordinates."""
    held = w.held
    for k in range(w.u.size):
        w.u[k] += held_at(w, k, held.beta)
        w.past[k] += held_at(w, k, held.past)
    held.beta[:] = 0.0
    held.past[:] = 0.0
    w.scalars[HOLDS] = 0.0


@kernel
def sum_up(w: Scaled) -> None:
    """Compute ‖u + Zβ‖², ⟨u + Zβ, c⟩ and Zᵀ(u + Zβ) anew; a pass over all coordinates."""
    s = w.scalars
    if s[HOLDS] == 0.0:
        s[UU], s[UC] = vector_dot(w.u, w.u), vector_dot(w.u, w.c)
    else:
        sum_up_held(w)
    s[PEAK] = s[UU]


@kernel
def sum_up_held(w: Scaled) -> None:
    """Compute what `sum_up` does for u + Zβ, where Z is held."""
    s, held = w.scalars, w.held
    s[UU], s[UC] = 0.0, 0.0
    held.along_u[:] = 0.0
    for k in range(w.u.size):
        value = w.u[k] + held_at(w, k, held.beta)
        s[UU] += value * value
        s[UC] += value * w.c[k]
        for i in range(held.beta.size):
            held.along_u[i] += held.Z[k, i] * value


@inlined
def squared_distance(w: Scaled) -> float:
    """Return ‖w − c‖², intercept included."""
    s = w.scalars
    a, b = s[A], s[B] - 1.0
    tail = s[TAIL] - s[TAIL_C]
    return max(0.0, a * a * s[UU] + 2.0 * a * b * s[UC] + b * b * s[CC]) + tail * tail


@inlined
def exceeds_distance(w: Scaled, far: float, growth: float, slack: float) -> bool:
    """Whether far > growth·‖w − c‖ + slack, or far is not finite."""
    return not far <= growth * np.sqrt(squared_distance(w)) + slack or not far < np.inf


@inlined
def reserve_scaled(w: Scaled, amount: float) -> bool:
    """Return whether a move of each coordinate by an amount, and u itself, stay below TOO_LARGE."""
    s = w.scalars
    return amount / s[A] < TOO_LARGE and s[UU] < TOO_LARGE * TOO_LARGE


@inlined
def note_scaled_move(w: Scaled, length: float) -> None:
    """Do nothing: ‖w − c‖ is known at each step."""


@inlined
def scaled_intercept(w: Scaled) -> float:
    """Return the intercept."""
    return w.scalars[TAIL]


@inlined
def settle_scaled(
    w: Scaled, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool
) -> float:
    """Finish a step: w is w − step·v but for the intercept; take the prox of (l2/2)‖·‖² in the ball around c.

    Where the problem is anchored, it is that of (l2/2)‖·‖² + (weight/2)‖· − c‖².

    Returns θ, 1 where the ball is not active: w = (θp + (1 − θ)c)/(1 + θ·step·l2) with p the point handed in.
    """
    s = w.scalars
    if s[WEIGHT] > 0.0:  # as in `Anchored.prox`: a shorter step at a point nearer to c
        pull = step * s[WEIGHT]
        step /= 1.0 + pull
        s[A] /= 1.0 + pull
        s[B] = (s[B] + pull) / (1.0 + pull)
        tail_ahead = (tail_ahead + pull * s[TAIL_C]) / (1.0 + pull)
    ridge = step * l2
    s[PEAK] = max(s[PEAK], s[UU])
    if s[UU] < _SUM_BELOW * s[PEAK]:
        sum_up(w)
    a, b = s[A] / (1.0 + ridge), s[B] / (1.0 + ridge) - 1.0  # p/(1 + η·l2) − c = a·u + b·c
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
def current_scaled(w: Scaled, out: Floats) -> None:
    """Write w into out, without the intercept."""
    a, b = w.scalars[A], w.scalars[B]
    for k in range(w.u.size):
        out[k] = a * (w.u[k] + held_at(w, k, w.held.beta)) + b * w.c[k]


@kernel
def total_scaled(w: Scaled, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept and the shares of rows."""
    sum_a, sum_b = w.scalars[SUM_A], w.scalars[SUM_B]
    for k in range(w.u.size):
        held = sum_a * held_at(w, k, w.held.beta) + held_at(w, k, w.held.past)
        out[k] = sum_a * w.u[k] + held + w.past[k] + sum_b * w.c[k]
