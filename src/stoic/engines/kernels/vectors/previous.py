"""The point one step ago, from what a step changed: SCSC and ALEXR evaluate each batch there too."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.parts.batches import copy_to
from stoic.engines.kernels.rows import CSR, entries
from stoic.engines.kernels.vectors import scaled, thresholded
from stoic.engines.kernels.vectors.scaled import Scaled, product_with_center
from stoic.engines.kernels.vectors.thresholded import line_now, shrunk

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

# Places in `scalars`: a or P, b or Q, the intercept, and whether `last` is set everywhere.
SCALE, SHIFT, TAIL, ALL = range(4)
N_SCALARS = 4


class Earlier(NamedTuple):
    """The coordinates u or v of one step ago where they differ, NaN elsewhere, and the rows that moved them."""

    last: Floats
    rows: Rows
    scalars: Floats


@inlined
def earlier_at(coordinate: float, last: float) -> float:
    """Return what a coordinate was."""
    return coordinate if np.isnan(last) else last


def predict_earlier(X: Any, w: Any, earlier: Earlier, row: int) -> float:
    """Return the prediction for a row at the earlier point."""
    out = np.empty(earlier.last.size)
    earlier_point(w, earlier, out)
    columns, values = entries(X, row)
    return float(values @ out[columns] + earlier.scalars[TAIL])


@overload(predict_earlier, strict=False)
def _predict_earlier(X: Any, w: Any, earlier: Earlier, row: int) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(X: Any, w: Any, earlier: Earlier, row: int) -> float:
            s = earlier.scalars
            total = s[SCALE] * earlier_product(X, row, w.u, earlier.last, 0.0) + s[TAIL]
            return total + s[SHIFT] * product_with_center(X, w, row) if s[SHIFT] != 0.0 else total

        return of_scaled

    def of_thresholded(X: Any, w: Any, earlier: Earlier, row: int) -> float:
        s = earlier.scalars
        return s[SCALE] * earlier_product(X, row, w.v, earlier.last, s[SHIFT]) + s[TAIL]

    return of_thresholded


def earlier_product(X: Any, row: int, now: Floats, last: Floats, q: float) -> float:
    """Return the product of a row with the earlier coordinates, each less its part in [−q, q]."""
    columns, values = entries(X, row)
    old = np.where(np.isnan(last), now, last)[columns]
    return float(values @ (old - np.clip(old, -q, q)))


@overload(earlier_product, inline="never")
def _earlier_product(X: Any, row: int, now: Floats, last: Floats, q: float) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, now: Floats, last: Floats, q: float) -> float:
            total = 0.0
            for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
                i = X.indices[k]
                total += X.data[k] * shrunk(earlier_at(now[i], last[i]), q)
            return total

        return sparse

    def dense(X: Any, row: int, now: Floats, last: Floats, q: float) -> float:
        total = 0.0
        for k in range(np.uint64(now.size)):
            total += X.values[row, k] * shrunk(earlier_at(now[k], last[k]), q)
        return total

    return dense


def remember(X: Any, w: Any, earlier: Earlier, rows: Rows) -> None:
    """Make the point as it is the earlier one, before a step along some rows."""
    s = earlier.scalars
    if isinstance(w, Scaled):
        s[SCALE], s[SHIFT], s[TAIL] = w.scalars[scaled.A], w.scalars[scaled.B], w.scalars[scaled.TAIL]
        keep(X, w.u, earlier, rows, False)
    else:
        line = line_now(w)
        s[SCALE], s[SHIFT], s[TAIL] = line.p, line.q, w.scalars[thresholded.TAIL]
        keep(X, w.v, earlier, rows, bool(w.scalars[thresholded.WEIGHT] > 0.0))


@overload(remember, strict=False)
def _remember(X: Any, w: Any, earlier: Earlier, rows: Rows) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(X: Any, w: Any, earlier: Earlier, rows: Rows) -> None:
            s = earlier.scalars
            s[SCALE], s[SHIFT], s[TAIL] = w.scalars[scaled.A], w.scalars[scaled.B], w.scalars[scaled.TAIL]
            keep(X, w.u, earlier, rows, False)

        return of_scaled

    def of_thresholded(X: Any, w: Any, earlier: Earlier, rows: Rows) -> None:
        s, line = earlier.scalars, line_now(w)
        s[SCALE], s[SHIFT], s[TAIL] = line.p, line.q, w.scalars[thresholded.TAIL]
        keep(X, w.v, earlier, rows, w.scalars[thresholded.WEIGHT] > 0.0)

    return of_thresholded


@kernel
def keep(X: Any, now: Floats, earlier: Earlier, rows: Rows, everywhere: bool) -> None:
    """Keep the coordinates that rows have, and no others; all of them where an anchor moves all."""
    last, (p, m) = earlier.last, rows.shape
    if earlier.scalars[ALL] != 0.0:
        for k in range(last.size):
            last[k] = np.nan
    else:
        for i in range(p):
            for j in range(m):
                mark(X, earlier.rows[i, j], last, last, np.nan)
    earlier.scalars[ALL] = 1.0 if everywhere else 0.0
    if everywhere:
        copy_to(last, now)
        return
    for i in range(p):
        for j in range(m):
            earlier.rows[i, j] = rows[i, j]
            mark(X, rows[i, j], now, last, 1.0)


def mark(X: Any, row: int, source: Floats, out: Floats, factor: float) -> None:
    """Write factor·source into out where the row has entries."""
    columns = entries(X, row)[0]
    out[columns] = factor * source[columns]


@overload(mark, inline="never")
def _mark(X: Any, row: int, source: Floats, out: Floats, factor: float) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, row: int, source: Floats, out: Floats, factor: float) -> None:
            for k in range(np.uint64(X.indptr[row]), np.uint64(X.indptr[row + 1])):
                out[X.indices[k]] = factor * source[X.indices[k]]

        return sparse

    def dense(X: Any, row: int, source: Floats, out: Floats, factor: float) -> None:
        for k in range(np.uint64(out.size)):
            out[k] = factor * source[k]

    return dense


def carry_over(w: Any, earlier: Earlier) -> None:
    """Keep the earlier point the same, before the form of w is made anew."""
    s = earlier.scalars
    if isinstance(w, Scaled):
        earlier.last[:] *= w.scalars[scaled.A]
        s[SCALE] /= w.scalars[scaled.A]
        return
    earlier_point(w, earlier, earlier.last)
    s[SCALE], s[SHIFT], s[ALL] = 1.0, 0.0, 1.0


@overload(carry_over, strict=False)
def _carry_over(w: Any, earlier: Earlier) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(w: Any, earlier: Earlier) -> None:
            a = w.scalars[scaled.A]
            for k in range(earlier.last.size):
                earlier.last[k] *= a
            earlier.scalars[SCALE] /= a

        return of_scaled

    def of_thresholded(w: Any, earlier: Earlier) -> None:
        earlier_point(w, earlier, earlier.last)
        earlier.scalars[SCALE], earlier.scalars[SHIFT], earlier.scalars[ALL] = 1.0, 0.0, 1.0

    return of_thresholded


def earlier_point(w: Any, earlier: Earlier, out: Floats) -> None:
    """Write the earlier point into out, without the intercept."""
    s = earlier.scalars
    old = np.where(np.isnan(earlier.last), w.u if isinstance(w, Scaled) else w.v, earlier.last)
    if isinstance(w, Scaled):
        out[:] = s[SCALE] * old + s[SHIFT] * w.c
    else:
        out[:] = s[SCALE] * (old - np.clip(old, -s[SHIFT], s[SHIFT]))


@overload(earlier_point, strict=False)
def _earlier_point(w: Any, earlier: Earlier, out: Floats) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(w: Any, earlier: Earlier, out: Floats) -> None:
            scale, shift = earlier.scalars[SCALE], earlier.scalars[SHIFT]
            for k in range(out.size):
                out[k] = scale * earlier_at(w.u[k], earlier.last[k]) + shift * w.c[k]

        return of_scaled

    def of_thresholded(w: Any, earlier: Earlier, out: Floats) -> None:
        scale, shift = earlier.scalars[SCALE], earlier.scalars[SHIFT]
        for k in range(out.size):
            out[k] = scale * shrunk(earlier_at(w.v[k], earlier.last[k]), shift)

    return of_thresholded
