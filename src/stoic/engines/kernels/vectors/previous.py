"""The previous point w_{t−1}, stored where step t changed it: SCSC and ALEXR evaluate each batch there too."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.parts.batches import copy_to
from stoic.engines.kernels.rows import CSR, Dense, Ints, Standardized, by_storage, dot
from stoic.engines.kernels.vectors import explicit, scaled, thresholded
from stoic.engines.kernels.vectors.any import by_form
from stoic.engines.kernels.vectors.explicit import Explicit
from stoic.engines.kernels.vectors.scaled import Scaled, product_with_center
from stoic.engines.kernels.vectors.thresholded import Thresholded, line_now, shrunk

Floats = NDArray[np.float64]

# Places in `scalars`: a or P, b or Q, the intercept, and whether `last` is set everywhere.
SCALE, SHIFT, TAIL, ALL = range(4)
N_SCALARS = 4


class Previous(NamedTuple):
    """The coordinates u or v of one step ago where they differ, NaN elsewhere, and the rows that moved them."""

    last: Floats
    rows: Ints
    scalars: Floats


@inlined
def previous_at(coordinate: float, last: float) -> float:
    """Return what a coordinate was."""
    return coordinate if np.isnan(last) else last


# --- the prediction for a row at the previous point ---


@kernel
def previous_product_csr(X: CSR, row: int, now: Floats, last: Floats, q: float) -> float:
    """Return the product of a row with the previous coordinates, each less its part in [−q, q]."""
    total = 0.0
    for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
        i = X.indices[k]
        total += X.data[k] * shrunk(previous_at(now[i], last[i]), q)
    return total


@kernel
def previous_product_dense(X: Dense, row: int, now: Floats, last: Floats, q: float) -> float:
    """Return the product of a row with the previous coordinates, each less its part in [−q, q]."""
    total = 0.0
    for k in range(np.uint64(now.size)):
        total += X.values[row, k] * shrunk(previous_at(now[k], last[k]), q)
    return total


@kernel
def previous_product_standardized(X: Standardized, row: int, now: Floats, last: Floats, q: float) -> float:
    """Return the product of a row with the previous coordinates, each less its part in [−q, q]."""
    total = 0.0
    for k in range(np.uint64(now.size)):
        total += (X.values[row, k] - X.center[k]) * X.scale[k] * shrunk(previous_at(now[k], last[k]), q)
    return total


previous_product = by_storage(previous_product_csr, previous_product_dense, previous_product_standardized)


@inlined
def predict_previous_scaled(X: Any, w: Scaled, previous: Previous, row: int) -> float:
    """Return the prediction for a row at the previous point."""
    s = previous.scalars
    total = s[SCALE] * previous_product(X, row, w.u, previous.last, 0.0) + s[TAIL]
    return total + s[SHIFT] * product_with_center(X, w, row) if s[SHIFT] != 0.0 else total


@inlined
def predict_previous_thresholded(X: Any, w: Thresholded, previous: Previous, row: int) -> float:
    """Return the prediction for a row at the previous point."""
    s = previous.scalars
    return s[SCALE] * previous_product(X, row, w.v, previous.last, s[SHIFT]) + s[TAIL]


@inlined
def predict_previous_explicit(X: Any, w: Explicit, previous: Previous, row: int) -> float:
    """Return the prediction for a row at the previous point, which is written out."""
    return dot(X, row, previous.last) + previous.scalars[TAIL]


predict_previous = by_form(
    predict_previous_scaled, predict_previous_thresholded, predict_previous_explicit, place=1
)
"""Return the prediction for a row at the previous point: predict_previous(X, w, previous, row)."""


# --- the point of now becomes the previous one ---


@kernel
def mark_csr(X: CSR, row: int, source: Floats, out: Floats, factor: float) -> None:
    """Write factor·source into out where the row has entries."""
    for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
        out[X.indices[k]] = factor * source[X.indices[k]]


@kernel
def mark_dense(X: Dense, row: int, source: Floats, out: Floats, factor: float) -> None:
    """Write factor·source into out."""
    for k in range(np.uint64(out.size)):
        out[k] = factor * source[k]


mark = by_storage(mark_csr, mark_dense)


@kernel
def keep(X: Any, now: Floats, previous: Previous, rows: Ints, everywhere: bool) -> None:
    """Keep the coordinates that rows have, and no others; all of them where an anchor moves all."""
    last, (p, m) = previous.last, rows.shape
    if previous.scalars[ALL] != 0.0:
        for k in range(last.size):
            last[k] = np.nan
    else:
        for i in range(p):
            for j in range(m):
                mark(X, previous.rows[i, j], last, last, np.nan)
    previous.scalars[ALL] = 1.0 if everywhere else 0.0
    if everywhere:
        copy_to(last, now)
        return
    for i in range(p):
        for j in range(m):
            previous.rows[i, j] = rows[i, j]
            mark(X, rows[i, j], now, last, 1.0)


@inlined
def remember_scaled(X: Any, w: Scaled, previous: Previous, rows: Ints) -> None:
    """Make w the previous point, before a step along some rows."""
    s = previous.scalars
    s[SCALE], s[SHIFT], s[TAIL] = w.scalars[scaled.A], w.scalars[scaled.B], w.scalars[scaled.TAIL]
    keep(X, w.u, previous, rows, False)


@inlined
def remember_thresholded(X: Any, w: Thresholded, previous: Previous, rows: Ints) -> None:
    """Make w the previous point, before a step along some rows."""
    s, line = previous.scalars, line_now(w)
    s[SCALE], s[SHIFT], s[TAIL] = line.p, line.q, w.scalars[thresholded.TAIL]
    keep(X, w.v, previous, rows, w.scalars[thresholded.WEIGHT] > 0.0)


@inlined
def remember_explicit(X: Any, w: Explicit, previous: Previous, rows: Ints) -> None:
    """Make w the previous point, all of it."""
    copy_to(previous.last, w.v)
    previous.scalars[TAIL] = w.scalars[explicit.TAIL]


remember = by_form(remember_scaled, remember_thresholded, remember_explicit, place=1)
"""Make w the previous point, before a step along some rows: remember(X, w, previous, rows)."""


# --- the previous point, written out and kept while the form of w is made anew ---


@kernel
def previous_scaled(w: Scaled, previous: Previous, out: Floats) -> None:
    """Write the previous point into out, without the intercept."""
    scale, shift = previous.scalars[SCALE], previous.scalars[SHIFT]
    for k in range(out.size):
        out[k] = scale * previous_at(w.u[k], previous.last[k]) + shift * w.c[k]


@kernel
def previous_thresholded(w: Thresholded, previous: Previous, out: Floats) -> None:
    """Write the previous point into out, without the intercept."""
    scale, shift = previous.scalars[SCALE], previous.scalars[SHIFT]
    for k in range(out.size):
        out[k] = scale * shrunk(previous_at(w.v[k], previous.last[k]), shift)


@kernel
def previous_explicit(w: Explicit, previous: Previous, out: Floats) -> None:
    """Write the previous point into out, without the intercept."""
    copy_to(out, previous.last)


previous_point = by_form(previous_scaled, previous_thresholded, previous_explicit)
"""Write the previous point into out, without the intercept: previous_point(w, previous, out)."""


@inlined
def carry_over_scaled(w: Scaled, previous: Previous) -> None:
    """Keep the previous point the same, before w is rescaled to a = 1."""
    a = w.scalars[scaled.A]
    for k in range(previous.last.size):
        previous.last[k] *= a
    previous.scalars[SCALE] /= a


@inlined
def carry_over_thresholded(w: Thresholded, previous: Previous) -> None:
    """Keep the previous point the same, before the table of w begins anew."""
    previous_thresholded(w, previous, previous.last)
    previous.scalars[SCALE], previous.scalars[SHIFT], previous.scalars[ALL] = 1.0, 0.0, 1.0


@inlined
def carry_over_explicit(w: Explicit, previous: Previous) -> None:
    """Do nothing: w is never made anew."""


carry_over = by_form(carry_over_scaled, carry_over_thresholded, carry_over_explicit)
"""Keep the previous point the same, before the form of w is made anew: carry_over(w, previous)."""
