"""Many steps of MSCG (Algorithm 2) with a mean taken coordinate by coordinate: medians of means, trimmed means.

Both are the mean of the order statistics from `first` to `last` (exclusive) of the k block means. Of a sparse
column only the blocks that have it are looked at: the others are zeros, whose place in the order is known.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from stoic.engines.kernels.jit import allocating_kernel, kernel
from stoic.engines.kernels.parts.batches import Data, Penalty, slopes_of
from stoic.engines.kernels.parts.outers import Outer, outer_gradient
from stoic.engines.kernels.rows import CSR, Dense, push
from stoic.engines.kernels.steps.robust_mscg import block_losses
from stoic.engines.kernels.vectors.any import (
    TOO_LARGE,
    add_columns,
    intercept,
    is_calm,
    needs_refresh,
    refresh,
    settle,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TILE = 32  # columns of a dense X at a time: their block means stay in the cache


class Middle(NamedTuple):
    """Which order statistics count, and where the blocks of a batch begin and end: k + 1 bounds."""

    first: int
    last: int
    bounds: Ints


class Lists(NamedTuple):
    """Arrays to work in: block means of some columns, lists of those of a sparse X, and the moves.

    The list of a column leads from its head, a place in `values`, by way of `following` to the block means of
    earlier blocks; −1 ends it. Columns that have one are in `touched`. A move adds −step·amount to a column of w.
    """

    heads: Ints
    ordered: Floats
    tile: Floats
    values: Floats
    following: Ints
    touched: NDArray[np.uint32]
    columns: NDArray[np.uint32]
    amounts: Floats


@allocating_kernel
def coordinatewise_mscg_steps(
    data: Data,
    outer: Outer,
    penalty: Penalty,
    middle: Middle,
    step: float,
    w: Any,
    rows: Ints,
    heads: Ints,
    counts: Ints,
) -> None:
    """Take a step for each pair of batches in rows (steps, 2, p, m), and stop before one that is too large.

    `heads` has an entry for each column, −1 before and after.
    """
    n_steps, _, p, m = rows.shape
    k = middle.bounds.size - 1
    y, q, slopes, losses = np.empty(p), np.empty(p), np.empty((p, m)), np.empty((k, p))
    lists, one = make_lists(k, heads, most_entries(data.X, rows, heads.size)), np.ones(1)
    for t in range(n_steps):
        if needs_refresh(w, step, penalty.l1):
            refresh(w)
        block_losses(data, w, middle.bounds, rows[t, 0], losses)  # Alg. 2, l. 3
        if not middle_losses(losses, middle, lists.ordered, y):
            return
        slopes_of(data, w, rows[t, 1], slopes)
        outer_gradient(outer, y, q)
        n, tail = 0, 0.0
        for i in range(p):
            n = list_moves(data.X, middle, rows[t, 1, i], slopes[i], q[i], lists, n)
            if data.has_tail:
                tail += q[i] * middle_slope(slopes[i], middle, lists.ordered)
        if not is_calm(w, step * (abs(tail) + total_size(lists.amounts, n))):
            return
        add_columns(w, lists.columns[:n], lists.amounts[:n], one, -step)  # Alg. 2, l. 5; one by one, so may repeat
        settle(w, step, penalty.l1, penalty.l2, intercept(w) - step * tail, np.inf, data.has_tail)
        counts[0] += 1


@allocating_kernel
def make_lists(k: int, heads: Ints, room: int) -> Lists:
    """Return arrays for k blocks, and for as many entries as a step may have."""
    return Lists(
        heads,
        np.empty(k),
        np.empty((k, _TILE)),
        np.empty(room),
        np.empty(room, np.int64),
        np.empty(room, np.uint32),
        np.empty(room, np.uint32),
        np.empty((room, 1)),
    )


def most_entries(X: Any, rows: Ints, d: int) -> int:
    """Return how many moves a step may have: d of a dense X, of a sparse one as many as its rows have entries."""
    if isinstance(X, Dense):
        return d
    return int(np.diff(X.indptr)[rows[:, 1]].sum(axis=(1, 2), dtype=np.int64).max(initial=0))


@overload(most_entries, strict=False)
def _most_entries(X: Any, rows: Ints, d: int) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, rows: Ints, d: int) -> int:
            most: Any = np.int64(0)
            for t in range(rows.shape[0]):
                total = np.int64(0)
                for row in rows[t, 1].flat:
                    total += np.int64(X.indptr[row + 1]) - np.int64(X.indptr[row])
                most = max(most, total)
            return most

        return sparse
    return lambda X, rows, d: d


@kernel
def middle_losses(losses: Floats, middle: Middle, ordered: Floats, y: Floats) -> bool:
    """Write the estimate for each group from its block means (k, p); false where one is not finite, or huge."""
    k, p = losses.shape
    for i in range(p):
        for b in range(k):
            ordered[b] = losses[b, i]
        y[i] = middle_mean(ordered, k, 0, middle.first, middle.last)
        if not abs(y[i]) < TOO_LARGE * TOO_LARGE:  # beyond, sums may overflow in one engine only
            return False
    return True


@kernel
def middle_slope(slopes: Floats, middle: Middle, ordered: Floats) -> float:
    """Return the estimate for the intercept of one group."""
    bounds = middle.bounds
    k = bounds.size - 1
    for b in range(k):
        ordered[b] = 0.0
        for j in range(bounds[b], bounds[b + 1]):
            ordered[b] += slopes[j] / (bounds[b + 1] - bounds[b])
    return middle_mean(ordered, k, 0, middle.first, middle.last)


@kernel
def total_size(amounts: Floats, n: int) -> float:
    """Return the sum of the absolute values of the first n."""
    total = 0.0
    for j in range(n):
        total += abs(amounts[j, 0])
    return total


def list_moves(X: Any, middle: Middle, rows: Ints, slopes: Floats, q: float, lists: Lists, n: int) -> int:
    """Add q times the estimate of the mean of slope·x to the n moves in `lists`; return how many they are now.

    A dense X has one move for each column, to which every group adds. For a sparse one, groups that share a column
    have a move each.
    """
    bounds = middle.bounds
    means = np.zeros((bounds.size - 1, lists.heads.size))
    for b, mean in enumerate(means):
        for j in range(bounds[b], bounds[b + 1]):
            push(X, rows[j], slopes[j] / (bounds[b + 1] - bounds[b]), mean)
    ordered = np.sort(means, axis=0)[middle.first : middle.last]
    found = (ordered / (middle.last - middle.first)).sum(axis=0)
    if isinstance(X, Dense) and n > 0:
        lists.amounts[:, 0] += q * found
        return n
    columns = np.flatnonzero(found) if isinstance(X, CSR) else np.arange(lists.heads.size)
    lists.columns[n : n + columns.size] = columns
    lists.amounts[n : n + columns.size, 0] = q * found[columns]
    return n + columns.size


@overload(list_moves, inline="never")
def _list_moves(X: Any, middle: Middle, rows: Ints, slopes: Floats, q: float, lists: Lists, n: int) -> Any:
    if X.instance_class is CSR:

        def sparse(X: Any, middle: Middle, rows: Ints, slopes: Floats, q: float, lists: Lists, n: int) -> int:
            n_touched = list_entries(X, middle.bounds, rows, slopes, lists)
            k, heads, ordered = middle.bounds.size - 1, lists.heads, lists.ordered
            for j in range(n_touched):
                column = lists.touched[j]
                size, entry = 0, heads[column]
                while entry >= 0:
                    ordered[size] = lists.values[np.uint64(entry)]
                    entry = lists.following[np.uint64(entry)]
                    size += 1
                heads[column] = -1
                estimate = middle_mean(ordered, size, k - size, middle.first, middle.last)
                if estimate != 0.0:
                    lists.columns[n], lists.amounts[n, 0] = column, q * estimate
                    n += 1
            return n

        return sparse

    def dense(X: Any, middle: Middle, rows: Ints, slopes: Floats, q: float, lists: Lists, n: int) -> int:
        d = lists.heads.size
        for begin in range(0, d, _TILE):
            width = min(_TILE, d - begin)
            fill_tile(X, middle.bounds, rows, slopes, begin, width, lists.tile)
            sort_columns(lists.tile, width)
            average_rows(lists.tile, width, middle.first, middle.last)
            found = lists.tile[middle.first]
            for c in range(width):
                if n == 0:
                    lists.columns[begin + c], lists.amounts[begin + c, 0] = begin + c, 0.0
                lists.amounts[begin + c, 0] += q * found[c]
        return d

    return dense


@kernel
def list_entries(X: CSR, bounds: Ints, rows: Ints, slopes: Floats, lists: Lists) -> int:
    """Form the block means of slope·x, a list for each column from its head to earlier blocks; count columns."""
    heads, values, following = lists.heads, lists.values, lists.following
    n, n_touched = np.uint64(0), 0
    for b in range(bounds.size - 1):
        start, size = np.int64(n), bounds[b + 1] - bounds[b]
        for j in range(bounds[b], bounds[b + 1]):
            weight = slopes[j] / size
            for e in range(np.uint64(X.indptr[rows[j]]), np.uint64(X.indptr[rows[j] + 1])):
                column = X.indices[e]
                head = heads[column]
                if head >= start:
                    values[np.uint64(head)] += weight * X.data[e]
                    continue
                if head < 0:
                    lists.touched[n_touched] = column
                    n_touched += 1
                values[n], following[n], heads[column] = weight * X.data[e], head, n
                n += np.uint64(1)
    return n_touched


@kernel
def fill_tile(X: Dense, bounds: Ints, rows: Ints, slopes: Floats, begin: int, width: int, tile: Floats) -> None:
    """Write the block means (k, width) of slope·x for some columns into the tile; +∞ for NaN."""
    for b in range(bounds.size - 1):
        mean, size = tile[b], bounds[b + 1] - bounds[b]
        for c in range(width):
            mean[c] = 0.0
        for j in range(bounds[b], bounds[b + 1]):
            x, weight = X.values[rows[j]][begin:], slopes[j] / size
            for c in range(width):
                mean[c] += weight * x[c]
        for c in range(width):
            mean[c] = np.inf if np.isnan(mean[c]) else mean[c]


@kernel
def sort_columns(tile: Floats, width: int) -> None:
    """Sort each column by Batcher's network (Knuth, Section 5.2.2, Algorithm M): no branch depends on the data."""
    k = tile.shape[0]
    top = 1
    while 2 * top < k:
        top *= 2
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while d > 0:
            for i in range(k - d):
                if i & p == r:
                    order_rows(tile[i], tile[i + d], width)
            d, q, r = q - p, q // 2, p
        p //= 2


@kernel
def order_rows(low: Floats, high: Floats, width: int) -> None:
    """Exchange entries so that none of the first row is above that of the second."""
    for c in range(width):
        a, b = low[c], high[c]
        low[c], high[c] = min(a, b), max(a, b)


@kernel
def average_rows(tile: Floats, width: int, first: int, last: int) -> None:
    """Write the mean of the rows from first to last (exclusive) into the first of them."""
    mean, share = tile[first], 1.0 / (last - first)
    for c in range(width):
        mean[c] *= share
    for b in range(first + 1, last):
        for c in range(width):
            mean[c] += share * tile[b, c]


@kernel
def middle_mean(values: Floats, size: int, n_zeros: int, first: int, last: int) -> float:
    """Return the mean of the order statistics from first to last of some zeros and the first `size` values.

    The values change their order. A NaN counts as +∞: it is among the last as well, and where one counts, the
    mean is not finite in either case.
    """
    n_below = 0
    for j in range(size):
        if np.isnan(values[j]):
            values[j] = np.inf
        n_below += values[j] < 0.0
    start = min(first, max(first - n_zeros, n_below))  # among the values alone
    stop = min(last, max(last - n_zeros, n_below))
    if start == stop:
        return 0.0
    select(values, 0, size, start)
    select(values, start, size, stop)
    total, share = 0.0, 1.0 / (last - first)
    for j in range(start, stop):
        total += share * values[j]  # not the sum first: it may overflow
    return total


@kernel
def select(values: Floats, low: int, high: int, place: int) -> None:
    """Order values[low:high] so far that none before `place` is larger than any from there on; none is NaN."""
    high -= 1
    while low < place <= high:
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:  # Hoare's partition: up to j none is above the pivot, from i on none below
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return
