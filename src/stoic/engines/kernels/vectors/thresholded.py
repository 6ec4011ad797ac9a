"""A vector under L1 and elastic net: untouched coordinates shrink by themselves. With the sum of all its values.

A coordinate keeps a potential v, and its value is w = sign(v)·P·max(0, |v| − Q): each step changes P and Q alone,
P ← P/(1 + ηb) and Q ← Q + ηa/P for the prox of a‖·‖₁ + (b/2)‖·‖². The sum of its past values is
sign(v)·(|v|·ΣP − ΣPQ) + past, with the sums up to now, or up to the step at which |v| ≤ Q ended it.

Inner loops have no branch that depends on the data: which coordinates are dead is as good as random, and a wrong
guess of the processor costs more than all the arithmetic of a touch.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.engines.kernels.jit import fused, inlined, kernel, reordered
from stoic.engines.kernels.rows import CSR, Dense, by_storage
from stoic.engines.kernels.vectors.scaled import TOO_LARGE

Floats = NDArray[np.float64]

# Columns of `table`, a line a step since the last rebase; places in `scalars`: the line, the bracket on ‖w − c‖
# and what the step adds to it, the intercept, those of c and the anchor, its sum, ‖c‖, buckets per unit of Q and
# how many are in use, a bound on |v|, and the anchor's weight.
P, Q, SUM_P, SUM_PQ = range(4)
NOW, LOW, HIGH, MOVED, TAIL, TAIL_C, TAIL_ANCHOR, SUM_TAIL, NORM_C, PACE, N_USED, SIZE, WEIGHT = range(13)
N_SCALARS = 13
N_LINES = 4096
N_BUCKETS = 4 * N_LINES

_REBASE_BELOW = 1e-6


class Thresholded(NamedTuple):
    """The arrays of the form; from the sum above, Σ shares_r·x_r over all rows is still to be subtracted.

    `lines` tells for each bucket of potentials the last line with Q at or below where the bucket begins. The
    anchor takes the place of c in (weight/2)‖w − anchor‖². `later` has room for the entries of any row.
    """

    v: Floats
    c: Floats
    anchor: Floats
    past: Floats
    shares: Floats
    table: Floats
    lines: NDArray[np.uint16]
    later: NDArray[np.uint32]
    scalars: Floats


class Threshold(NamedTuple):
    """The line of the table that holds now."""

    now: Any
    p: float
    q: float
    sum_p: float
    sum_pq: float
    pace: float


@inlined
def line_now(w: Thresholded) -> Threshold:
    """Return the line that holds now."""
    now = np.uint64(w.scalars[NOW])
    table = w.table
    return Threshold(now, table[now, P], table[now, Q], table[now, SUM_P], table[now, SUM_PQ], w.scalars[PACE])


@inlined
def shrunk(v: float, q: float) -> float:
    """Return v less its part in [−q, q]."""
    return v - max(-q, min(q, v))


@inlined
def gathered(w: Thresholded, v: float, line: Threshold) -> float:
    """Return sign(v)·(|v|·ΣP − ΣPQ) up to now, or up to the last step with Q < |v|."""
    size = abs(v)
    last = last_below(w, size, line)
    return math.copysign(size * w.table[last, SUM_P] - w.table[last, SUM_PQ], v)


@inlined
def last_below(w: Thresholded, size: float, line: Threshold) -> Any:
    """Return the last line with Q < size; Q never grows by less than a bucket, so it is one of two."""
    bucket = np.uint64(min(size * line.pace, N_BUCKETS - 1.0))
    now = np.uint64(line.now)  # a line that comes from Python has an int64
    first: Any = min(np.uint64(w.lines[bucket]), now)
    return min(first + np.uint64(w.table[first + np.uint64(1), Q] < size), now)


# --- x·w ---


@fused
def thresholded_product_csr(X: CSR, w: Thresholded, row: int) -> float:
    """Return x·w, in four sums."""
    line, v, indices, data = line_now(w), w.v, X.indices, X.data
    q = line.q
    s0 = s1 = s2 = s3 = 0.0
    k, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
    while k + np.uint64(3) < stop:
        s0 += data[k] * shrunk(v[indices[k]], q)
        s1 += data[k + np.uint64(1)] * shrunk(v[indices[k + np.uint64(1)]], q)
        s2 += data[k + np.uint64(2)] * shrunk(v[indices[k + np.uint64(2)]], q)
        s3 += data[k + np.uint64(3)] * shrunk(v[indices[k + np.uint64(3)]], q)
        k += np.uint64(4)
    while k < stop:
        s0 += data[k] * shrunk(v[indices[k]], q)
        k += np.uint64(1)
    return line.p * ((s0 + s1) + (s2 + s3))


@fused
def thresholded_product_dense(X: Dense, w: Thresholded, row: int) -> float:
    """Return x·w."""
    line, v, x = line_now(w), w.v, X.values[row]
    total = 0.0
    for k in range(np.uint64(x.size)):
        total += x[k] * shrunk(v[k], line.q)
    return line.p * total


thresholded_product = by_storage(thresholded_product_csr, thresholded_product_dense)
"""Return x·w for one row x, without the intercept: thresholded_product(X, w, row)."""


# --- w + factor·x ---

# A value that keeps its sign moves its potential by factor·x/P, and its sum by that times ΣP: for all entries that
# is one number, the row's share. The others are put on a list, touched one by one, and their part of the share
# taken back.


@fused
def add_thresholded_csr(X: CSR, w: Thresholded, row: int, factor: float, following: int = -1) -> None:
    """Add factor·x to w."""
    v, later, line = w.v, w.later, line_now(w)
    indices, data = X.indices, X.data
    q, scale, n = line.q, factor / line.p, np.uint64(0)
    start = np.uint64(X.indptr[row])
    for k in range(np.uint64(X.indptr[row + 1]) - start):
        i = indices[start + k]
        old = v[i]
        new = old + scale * data[start + k]
        same = (min(old, new) > q) | (max(old, new) < -q)
        v[i] = new if same else old
        later[n] = k
        n += np.uint64(not same)
    share = scale * line.sum_p
    w.shares[row] += share
    for j in range(n):
        place = start + np.uint64(later[j])
        touch(w, indices[place], factor * data[place], share * data[place], line)


@fused
def add_thresholded_dense(X: Dense, w: Thresholded, row: int, factor: float, following: int = -1) -> None:
    """Add factor·x to w."""
    v, later, line, x = w.v, w.later, line_now(w), X.values[row]
    q, scale, n = line.q, factor / line.p, np.uint64(0)
    for k in range(np.uint64(x.size)):
        old = v[k]
        new = old + scale * x[k]
        same = (min(old, new) > q) | (max(old, new) < -q)
        v[k] = new if same else old
        later[n] = k
        n += np.uint64(not same)
    share = scale * line.sum_p
    w.shares[row] += share
    for j in range(n):
        place = np.uint64(later[j])
        touch(w, place, factor * x[place], share * x[place], line)


add_thresholded = by_storage(add_thresholded_csr, add_thresholded_dense)
"""Add factor·x to w: add_thresholded(X, w, row, factor, following=-1)."""


@inlined
def touch(w: Thresholded, k: Any, amount: float, shared: float, line: Threshold) -> None:
    """Add an amount to coordinate k, whatever its sign before and after; `shared` is in the share of a row."""
    old = w.v[k]
    ahead = line.p * shrunk(old, line.q) + amount
    size = abs(ahead) / line.p + line.q
    after = math.copysign(size * line.sum_p - line.sum_pq, ahead)
    w.past[k] -= after - gathered(w, old, line) - shared
    w.v[k] = math.copysign(size, ahead)


@kernel
def add_thresholded_columns(w: Thresholded, columns: Any, packed: Floats, q: Floats, factor: float) -> None:
    """Add factor·(packed·q) to some coordinates of w."""
    line = line_now(w)
    for j in range(columns.size):
        amount = 0.0
        for i in range(q.size):
            amount += packed[j, i] * q[i]
        touch(w, columns[j], factor * amount, 0.0, line)


@inlined
def needs_rebase(w: Thresholded, step: float, l1: float) -> bool:
    """Whether the table has no room for a step, or its digits or its buckets no longer suit it."""
    line = line_now(w)
    if line.now == 0:
        return False
    growth = step * l1 / line.p
    is_full = line.now + 1 >= N_LINES or (line.q + growth) * line.pace >= N_BUCKETS - 1.0
    return bool(is_full or line.p < _REBASE_BELOW or (growth * line.pace < 1.0 and l1 > 0.0))


@kernel
def rebase(w: Thresholded) -> None:
    """Write every coordinate out and start the table anew; a pass over all coordinates, if the table has begun."""
    if w.scalars[NOW] == 0.0:
        return
    line, v, past, size = line_now(w), w.v, w.past, 0.0
    for k in range(np.uint64(v.size)):
        past[k] += gathered(w, v[k], line)
        v[k] = line.p * shrunk(v[k], line.q)
        size = max(size, abs(v[k]))
    w.scalars[SIZE] = size
    begin_table(w)


@inlined
def begin_table(w: Thresholded) -> None:
    """Let the table begin where potentials are values and nothing is gathered."""
    s = w.scalars
    w.table[0, P], w.table[0, Q], w.table[0, SUM_P], w.table[0, SUM_PQ] = 1.0, 0.0, 0.0, 0.0
    w.lines[: int(s[N_USED])] = N_LINES
    s[NOW], s[N_USED], s[PACE] = 0.0, 0.0, 0.0


@inlined
def pass_time(w: Thresholded, step: float, l1: float, l2: float) -> None:
    """Let every coordinate take the prox of step·(l1‖·‖₁ + (l2/2)‖·‖²), and add the values to their sums."""
    s, line = w.scalars, line_now(w)
    growth = step * l1 / line.p
    if line.now == 0 and growth > 0.0:
        s[PACE] = min(4.0 / growth, 1e300)  # buckets of a quarter of the first growth
    p, q = line.p / (1.0 + step * l2), line.q + growth
    following = w.table[line.now + np.uint64(1)]
    following[P], following[Q], following[SUM_P], following[SUM_PQ] = p, q, line.sum_p + p, line.sum_pq + p * q
    while s[N_USED] < q * s[PACE]:
        w.lines[np.uint64(s[N_USED])] = line.now
        s[N_USED] += 1.0
    s[NOW] += 1.0
    s[SUM_TAIL] += s[TAIL]


@kernel
def measure(w: Thresholded) -> float:
    """Return ‖w − c‖ exactly, intercept included, and close the bracket on it; a pass over all coordinates."""
    s = w.scalars
    s[LOW] = s[HIGH] = np.sqrt(squared_from_center(w) + (s[TAIL] - s[TAIL_C]) ** 2)
    return s[HIGH]


@reordered
def squared_from_center(w: Thresholded) -> float:
    """Return ‖w − c‖², without the intercept."""
    line, v, c, total = line_now(w), w.v, w.c, 0.0
    for k in range(np.uint64(v.size)):
        move = line.p * shrunk(v[k], line.q) - c[k]
        total += move * move
    return total


@kernel
def current_thresholded(w: Thresholded, out: Floats) -> None:
    """Write w into out, without the intercept."""
    line = line_now(w)
    for k in range(w.v.size):
        out[k] = line.p * shrunk(w.v[k], line.q)


@kernel
def total_thresholded(w: Thresholded, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept and the shares of rows."""
    line = line_now(w)
    for k in range(w.v.size):
        out[k] = w.past[k] + gathered(w, w.v[k], line)


@inlined
def reserve_thresholded(w: Thresholded, amount: float) -> bool:
    """Add an amount, on the scale of potentials, to the bound on |v|; return False where it may pass TOO_LARGE."""
    w.scalars[SIZE] += amount / line_now(w).p
    return bool(w.scalars[SIZE] < TOO_LARGE)


@inlined
def note_thresholded_move(w: Thresholded, length: float) -> None:
    """Add a length to how far the step may move w."""
    w.scalars[MOVED] += length


@inlined
def exceeds_bracket(w: Thresholded, far: float, growth: float, slack: float) -> bool:
    """Return whether far > growth·‖w − c‖ + slack; the distance is measured where its bracket cannot tell."""
    s = w.scalars
    if not far < np.inf:
        return True
    if far <= growth * s[LOW] + slack:
        return False
    if far > growth * s[HIGH] + slack:
        return True
    return far > growth * measure(w) + slack


@inlined
def thresholded_intercept(w: Thresholded) -> float:
    """Return the intercept."""
    return w.scalars[TAIL]
