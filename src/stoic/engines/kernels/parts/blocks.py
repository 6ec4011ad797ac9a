"""Products and distances of block means over sparse rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.rows import CSR, Ints, dot

Floats = NDArray[np.float64]

_FEW = 24  # a column that so few blocks have is cheaper to multiply entry by entry


class Tile(NamedTuple):
    """A few columns of k block means (columns, k), zero between uses, and which of the columns have an entry.

    `owners` (k,) is to write to, and `many` (4, k) as well; it is zero between uses.
    """

    values: Floats
    is_used: NDArray[np.bool_]
    owners: NDArray[np.uint64]
    many: Floats


@kernel
def predict_rows(X: CSR, rows: Ints, w: Floats, out: Floats) -> None:
    """Write x·w of some rows into out."""
    for j in range(rows.size):
        out[j] = dot(X, rows[j], w)


@kernel
def fill_tile(
    X: CSR, rows: Ints, weights: Floats, block: Ints, places: Ints, first: int, is_sorted: bool, tile: Tile
) -> None:
    """Add weight·x of each row to its block, for the columns from `first` on that the tile has.

    `places` says where the entries of a row begin that were not yet used; rows that are not sorted are searched.
    """
    for j in range(rows.size):
        e, end = np.uint64(places[j]), np.uint64(X.indptr[rows[j] + 1])
        weight, b = weights[j], np.uint64(block[j])
        while e < end:
            column = np.int64(X.indices[e]) - first
            if 0 <= column < tile.values.shape[0]:
                tile.values[np.uint64(column), b] += weight * X.data[e]
                tile.is_used[np.uint64(column)] = True
            elif is_sorted:
                break
            e += np.uint64(1)
        if is_sorted:
            places[j] = e


@kernel
def add_products(tile: Tile, gram: Floats) -> None:
    """Add the products of the columns of the tile to the lower half of `gram`, and set the tile to zero."""
    owners, many, n_many = tile.owners, tile.many, 0
    for c in range(tile.is_used.size):
        if tile.is_used[c]:
            tile.is_used[c] = False
            column, n = tile.values[c], 0
            for b in range(column.size):  # without a branch, which could not be foretold
                owners[np.uint64(n)] = b
                n += column[b] != 0.0
            if n <= _FEW:
                multiply_pairs(column, owners[:n], gram)
            else:
                for b in range(column.size):
                    many[n_many, b] = column[b]
                n_many += 1
            column[:] = 0.0
        if n_many == 4 or (n_many > 0 and c == tile.is_used.size - 1):
            add_four(many[0], many[1], many[2], many[3], gram)
            many[:] = 0.0
            n_many = 0


@inlined
def multiply_pairs(column: Floats, owners: NDArray[np.uint64], gram: Floats) -> None:
    """Add the products of the entries that a column has."""
    for i in range(owners.size):
        line, value = gram[owners[i]], column[owners[i]]
        for j in range(i + 1):
            line[owners[j]] += value * column[owners[j]]


@kernel
def add_four(x0: Floats, x1: Floats, x2: Floats, x3: Floats, gram: Floats) -> None:
    """Add the products of four columns at once, so that `gram` is read and written once."""
    for b in range(x0.size):
        line = gram[b]
        for a in range(b + 1):
            line[a] += x0[b] * x0[a] + x1[b] * x1[a] + x2[b] * x2[a] + x3[b] * x3[a]


@kernel
def add_squared_distances(
    X: CSR, rows: Ints, weights: Floats, bounds: Ints, z: Floats, work: Floats, out: Floats
) -> None:
    """Add the squared distances of one group's block means to its row z of the reference."""
    indptr, indices, data = X.indptr, X.indices, X.data
    here = 0.0
    for c in range(z.size):
        work[c] = -z[c]
        here += z[c] * z[c]
    for b in range(bounds.size - 1):
        total = here
        for j in range(bounds[b], bounds[b + 1]):
            for e in range(np.uint64(indptr[rows[j]]), np.uint64(indptr[rows[j] + 1])):
                change, old = weights[j] * data[e], work[indices[e]]
                total += change * (2.0 * old + change)
                work[indices[e]] = old + change
        for j in range(bounds[b], bounds[b + 1]):
            for e in range(np.uint64(indptr[rows[j]]), np.uint64(indptr[rows[j] + 1])):
                work[indices[e]] = -z[indices[e]]
        out[b] += total
