"""Sums and means over parts of a batch; blocks are consecutive, and their sizes differ by at most one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.errors import InvalidParameter
from stoic.protocols import Array

IntArray = NDArray[np.intp]


def block_bounds(size: int, blocks: int) -> IntArray:
    """Return the blocks + 1 bounds of the parts of ``range(size)``, cut as by ``numpy.array_split``."""
    if not 1 <= blocks <= size:
        raise InvalidParameter(
            f"blocks={blocks} does not fit a batch of {size} samples; "
            f"use 1 <= blocks <= {size}, or draw more samples."
        )
    short, n_long = divmod(size, blocks)
    numbers = np.arange(blocks + 1)
    return numbers * short + np.minimum(numbers, n_long)


def require_one_block(blocks: int) -> None:
    """Raise `InvalidParameter` where all rows are to be cut into blocks."""
    if blocks != 1:
        raise InvalidParameter(
            f"blocks={blocks}, but everything() is one block: groups differ in size, and rows in weight; "
            f"cut a batch from draw() into blocks instead."
        )


def block_sizes(size: int, blocks: int) -> IntArray | int:
    """Return the size of the block that each of ``range(size)`` lies in; one number where all agree."""
    if blocks > 0 and size % blocks == 0:
        return size // blocks
    sizes = np.diff(block_bounds(size, blocks))
    return np.repeat(sizes, sizes)


def means_over_blocks(samples: Array, blocks: int) -> Array:
    """Return the means over `blocks` parts of the last axis: (p, size) becomes (blocks, p)."""
    size = samples.shape[-1]
    if blocks == 1:
        total: Array = np.add.reduce(samples, -1) / size
        return total[None]
    bounds = block_bounds(size, blocks)
    means: Array = np.add.reduceat(samples, bounds[:-1], axis=-1) / np.diff(bounds)
    return means.T


def means_by(numbers: IntArray, terms: Array, count: int) -> Array:
    """Return the means of the terms that have the numbers 0, ..., count - 1, each of which some have."""
    return sums_by(numbers, terms, count) / np.bincount(numbers, minlength=count)


def sums_by(numbers: IntArray, terms: Array, count: int) -> Array:
    """Return the sums of the terms that have the numbers 0, ..., count - 1."""
    sums: Any = np.bincount(numbers, terms, count)  # NumPy's stubs overlook that weights make it float
    return sums  # type: ignore[no-any-return]
