"""A vector under L1 and elastic net: untouched coordinates shrink by themselves. With the sum of all its values.

A coordinate keeps a potential v, and its value is w = sign(v)·P·max(0, |v| − Q): each step changes P and Q alone,
P ← P/(1 + ηb) and Q ← Q + ηa/P for the prox of a‖·‖₁ + (b/2)‖·‖². The sum of its past values is
sign(v)·(|v|·ΣP − ΣPQ) − h, with the sums up to now, or up to the step at which |v| ≤ Q ended it.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from stoic.kernels.jit import kernel
from stoic.kernels.rows import CSR, Dense

Floats = NDArray[np.float64]

# Columns of `table`, a line a step since the last rebase; places in `scalars`.
P, Q, SUM_P, SUM_PQ = range(4)
NOW, LOW, HIGH, TAIL, TAIL_C, SUM_TAIL, NORM_C = range(7)
N_SCALARS = 7
N_LINES = 4096

_REBASE_BELOW = 1e-6


class Thresholded(NamedTuple):
    """The arrays of the form: Σ over past values of w is the sum above plus `past`."""

    v: Floats
    c: Floats
    h: Floats
    past: Floats
    table: Floats
    scalars: Floats


@kernel
def worth(v: float, p: float, q: float) -> float:
    """Return sign(v)·P·max(0, |v| − Q)."""
    if v > q:
        return p * (v - q)
    return p * (v + q) if v < -q else 0.0


@kernel
def gathered(v: float, table: Floats, now: int) -> float:
    """Return sign(v)·(|v|·ΣP − ΣPQ) up to now, or up to the last step with Q < |v|."""
    size = abs(v)
    line = now
    if size <= table[now, Q]:
        line = last_below(size, table, now)
        if line < 0:
            return 0.0
    total = size * table[line, SUM_P] - table[line, SUM_PQ]
    return total if v > 0.0 else -total


@kernel
def last_below(size: float, table: Floats, now: int) -> int:
    """Return the last line with Q < size, −1 if there is none; Q is nearly linear, so a guess is nearly right."""
    line = min(now, int(size / table[now, Q] * now))
    for _ in range(8):
        if table[line, Q] >= size:
            line -= 1
            if line < 0:
                return -1
        elif table[line + 1, Q] < size:
            line += 1
        else:
            return line
    low, high = -1, now
    while high - low > 1:  # Q[low] < size ≤ Q[high]
        middle = (low + high) // 2
        if table[middle, Q] < size:
            low = middle
        else:
            high = middle
    return low


def along(X: Any, row: int, w: Thresholded) -> float:
    """Return x·w for one row x, without the intercept."""
    now = int(w.scalars[NOW])
    p, q = w.table[now, P], w.table[now, Q]
    values = p * np.sign(w.v) * np.maximum(np.abs(w.v) - q, 0.0)
    x = X.values[row] if isinstance(X, Dense) else X.data[X.indptr[row] : X.indptr[row + 1]]
    columns = slice(None) if isinstance(X, Dense) else X.indices[X.indptr[row] : X.indptr[row + 1]]
    return float(x @ values[columns])


@overload(along, inline="never")
def _along(X: Any, row: int, w: Thresholded) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, w: Thresholded) -> float:
            now = int(w.scalars[NOW])
            q, v, indices, data = w.table[now, Q], w.v, X.indices, X.data
            s0 = s1 = 0.0
            k, stop = np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])
            while k + np.uint64(1) < stop:
                s0 += data[k] * shrunk(v[indices[k]], q)
                s1 += data[k + np.uint64(1)] * shrunk(v[indices[k + np.uint64(1)]], q)
                k += np.uint64(2)
            if k < stop:
                s0 += data[k] * shrunk(v[indices[k]], q)
            return w.table[now, P] * (s0 + s1)

        return sparse

    def dense(X: Any, row: int, w: Thresholded) -> float:
        now = int(w.scalars[NOW])
        q, v, x = w.table[now, Q], w.v, X.values[row]
        total = 0.0
        for k in range(np.uint64(x.size)):
            total += x[k] * shrunk(v[k], q)
        return w.table[now, P] * total

    return dense


@kernel
def shrunk(v: float, q: float) -> float:
    """Return v less its part in [−q, q]."""
    inner = min(q, v)
    return v - (max(-q, inner))


@kernel
def touch(w: Thresholded, k: int, step: float, now: int) -> None:
    """Add `step` to the value of coordinate k, whatever its sign before and after."""
    v, p, q = w.v[k], w.table[now, P], w.table[now, Q]
    ahead = worth(v, p, q) + step
    new = 0.0
    if ahead > 0.0:
        new = ahead / p + q
    elif ahead < 0.0:
        new = ahead / p - q
    before = gathered(v, w.table, now) if v != 0.0 else 0.0
    after = abs(new) * w.table[now, SUM_P] - w.table[now, SUM_PQ] if new != 0.0 else 0.0
    w.h[k] += (after if new > 0.0 else -after) - before
    w.v[k] = new


def add_row(X: Any, row: int, factor: float, w: Thresholded) -> None:
    """Add factor·x to the values."""
    columns = range(w.v.size) if isinstance(X, Dense) else X.indices[X.indptr[row] : X.indptr[row + 1]]
    values = X.values[row] if isinstance(X, Dense) else X.data[X.indptr[row] : X.indptr[row + 1]]
    for k, value in zip(columns, values, strict=True):
        touch(w, k, factor * value, int(w.scalars[NOW]))


@overload(add_row, inline="never")
def _add_row(X: Any, row: int, factor: float, w: Thresholded) -> Any:
    # A value that keeps its sign moves its potential by step/P and h by that times ΣP: all but a few do.
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, factor: float, w: Thresholded) -> None:
            v, h, indices, data = w.v, w.h, X.indices, X.data
            now = int(w.scalars[NOW])
            q, share, sum_p = w.table[now, Q], factor / w.table[now, P], w.table[now, SUM_P]
            for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
                i = indices[k]
                old = v[i]
                new = old + share * data[k]
                if abs(old) > q and abs(new) > q and (new > 0.0) == (old > 0.0):
                    v[i] = new
                    h[i] += (new - old) * sum_p
                else:
                    touch(w, i, factor * data[k], now)

        return sparse

    def dense(X: Any, row: int, factor: float, w: Thresholded) -> None:
        v, h, x = w.v, w.h, X.values[row]
        now = int(w.scalars[NOW])
        q, share, sum_p = w.table[now, Q], factor / w.table[now, P], w.table[now, SUM_P]
        for i in range(np.uint64(x.size)):
            old = v[i]
            new = old + share * x[i]
            if abs(old) > q and abs(new) > q and (new > 0.0) == (old > 0.0):
                v[i] = new
                h[i] += (new - old) * sum_p
            else:
                touch(w, i, factor * x[i], now)

    return dense


@kernel
def rebase(w: Thresholded) -> None:
    """Write every coordinate out and start the table anew; a pass over all coordinates."""
    now = int(w.scalars[NOW])
    p, q = w.table[now, P], w.table[now, Q]
    for k in range(w.v.size):
        v = w.v[k]
        if v != 0.0:
            w.past[k] += gathered(v, w.table, now)
            w.v[k] = worth(v, p, q)
        w.past[k] -= w.h[k]
        w.h[k] = 0.0
    w.table[0, P], w.table[0, Q], w.table[0, SUM_P], w.table[0, SUM_PQ] = 1.0, 0.0, 0.0, 0.0
    w.scalars[NOW] = 0.0


@kernel
def measure(w: Thresholded) -> float:
    """Return ‖w − c‖ exactly, intercept included, and close the bracket on it; a pass over all coordinates."""
    s = w.scalars
    now = int(s[NOW])
    p, q = w.table[now, P], w.table[now, Q]
    total = (s[TAIL] - s[TAIL_C]) ** 2
    for k in range(w.v.size):
        total += (worth(w.v[k], p, q) - w.c[k]) ** 2
    s[LOW] = s[HIGH] = np.sqrt(total)
    return s[HIGH]


@kernel
def pass_time(w: Thresholded, step: float, l1: float, l2: float) -> None:
    """Let every coordinate take the prox of step·(l1‖·‖₁ + (l2/2)‖·‖²), and add the values to their sums."""
    if w.scalars[NOW] + 2.0 > N_LINES or w.table[int(w.scalars[NOW]), P] < _REBASE_BELOW:
        rebase(w)
    now = int(w.scalars[NOW])
    p, q = w.table[now, P], w.table[now, Q]
    p_next, q_next = p / (1.0 + step * l2), q + step * l1 / p
    w.table[now + 1, P], w.table[now + 1, Q] = p_next, q_next
    w.table[now + 1, SUM_P] = w.table[now, SUM_P] + p_next
    w.table[now + 1, SUM_PQ] = w.table[now, SUM_PQ] + p_next * q_next
    w.scalars[NOW] = now + 1.0
    w.scalars[SUM_TAIL] += w.scalars[TAIL]


@kernel
def settle_thresholded(
    w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float, moved: float
) -> None:
    """Finish a step: w is w − step·v; take the prox in the ball around c. `moved` bounds ‖step·v‖."""
    s = w.scalars
    shrink = step * (l1 * np.sqrt(w.v.size) + l2 * (s[NORM_C] + s[HIGH]))
    s[LOW], s[HIGH] = max(0.0, s[LOW] - moved - shrink), s[HIGH] + moved + shrink
    before, s[TAIL] = s[TAIL], tail_ahead
    if s[HIGH] > radius and reach(w, step, l1, l2, 1.0) > radius:
        s[TAIL] = before
        pull(w, step, l1, l2, tail_ahead, radius)
        return
    if s[HIGH] > radius:
        s[LOW] = s[HIGH] = reach(w, step, l1, l2, 1.0)
    pass_time(w, step, l1, l2)


@kernel
def pulled(value: float, c: float, theta: float, step: float, l1: float, l2: float) -> float:
    """Return the prox of θ·step·(l1|·| + (l2/2)|·|²) at θ·value + (1 − θ)·c."""
    point = theta * value + (1.0 - theta) * c
    return shrunk(point, theta * step * l1) / (1.0 + theta * step * l2)


@kernel
def reach(w: Thresholded, step: float, l1: float, l2: float, theta: float) -> float:
    """Return how far from c the step ends for a θ; a pass over all coordinates."""
    s = w.scalars
    now = int(s[NOW])
    p, q = w.table[now, P], w.table[now, Q]
    total = (theta * (s[TAIL] - s[TAIL_C])) ** 2
    for k in range(w.v.size):
        total += (pulled(worth(w.v[k], p, q), w.c[k], theta, step, l1, l2) - w.c[k]) ** 2
    return np.sqrt(total)


@kernel
def pull(w: Thresholded, step: float, l1: float, l2: float, tail_ahead: float, radius: float) -> None:
    """Take the step on the sphere: the largest θ whose step ends within the ball, by bisection on full passes."""
    s = w.scalars
    s[TAIL] = tail_ahead
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if reach(w, step, l1, l2, middle) > radius:
            high = middle
        else:
            low = middle
        if high - low <= 1e-13 * high:
            break
    rebase(w)
    for k in range(w.v.size):
        w.v[k] = pulled(w.v[k], w.c[k], low, step, l1, l2)
        w.past[k] += w.v[k]
    s[TAIL] = s[TAIL_C] + low * (tail_ahead - s[TAIL_C])
    s[SUM_TAIL] += s[TAIL]
    measure(w)


@kernel
def current_thresholded(w: Thresholded, out: Floats) -> None:
    """Write w into out, without the intercept."""
    now = int(w.scalars[NOW])
    for k in range(w.v.size):
        out[k] = worth(w.v[k], w.table[now, P], w.table[now, Q])


@kernel
def total_thresholded(w: Thresholded, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept."""
    now = int(w.scalars[NOW])
    for k in range(w.v.size):
        out[k] = w.past[k] - w.h[k]
        if w.v[k] != 0.0:
            out[k] += gathered(w.v[k], w.table, now)
