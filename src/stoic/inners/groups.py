"""Rows in groups: their weights, and draws with replacement from each group."""

import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.errors import InvalidParameter
from stoic.inners.blocks import IntArray, sums_by
from stoic.protocols import Array, Vector


def rows_by_group(codes: IntArray, n_groups: int) -> list[IntArray]:
    """Return the row numbers of each group, in ascending order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=n_groups))[:-1])


class GroupedRows:
    r"""The rows of each group as one permutation: group i is ``order[offsets[i]:offsets[i + 1]]``.

    Parameters
    ----------
    codes : array of int of shape (n,)
        The group number of each row; no group is empty.
    n_groups : int
    weight : array of shape (n,), optional
        Row weights >= 0, with a positive one in each group. Rows are drawn in proportion to them.
    """

    is_fresh: bool = False
    """Whether rows stand for a law that they are samples of: the sum over them is then no goal of its own."""

    def __init__(self, codes: IntArray, n_groups: int, weight: Vector | None = None) -> None:
        self.codes = codes
        self.sizes = np.bincount(codes, minlength=n_groups)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        self.order: IntArray = np.argsort(codes, kind="stable")
        self.weight = weight
        self._numbers = np.arange(n_groups, dtype=np.float64)[:, None]
        self._widths = self.sizes.astype(np.float64)[:, None]
        self._firsts = self.offsets[:-1, None]

    def with_weight(self, weight: Vector) -> "GroupedRows":
        """Return the same groups of rows with other weights."""
        other = copy.copy(self)
        other.weight = weight
        for name in ("shares", "_cumulative"):
            vars(other).pop(name, None)
        return other

    @property
    def n_groups(self) -> int:
        """The number p of groups."""
        return len(self.sizes)

    def draw(self, size: int, rng: Generator, groups: IntArray | None = None) -> IntArray:
        """Return `size` row numbers of each group, or of each of some groups, with replacement: (groups, size)."""
        if size < 1:
            raise InvalidParameter(f"size={size!r} is not a whole number >= 1.")
        if groups is None:
            return self.batches((self.n_groups, size), rng)
        groups = self._checked(groups)
        return self.at(rng.random((len(groups), size)), groups)

    def _checked(self, groups: IntArray) -> IntArray:
        """Return the numbers of some groups; raise `InvalidParameter` unless there are some, and all exist."""
        numbers = np.asarray(groups)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.size == 0:
            raise InvalidParameter(f"groups={groups!r} is not a nonempty array of the numbers of groups.")
        if numbers.min() < 0 or numbers.max() >= self.n_groups:
            raise InvalidParameter(
                f"groups has numbers from {numbers.min()} to {numbers.max()}; groups are numbered from 0 to "
                f"{self.n_groups - 1}."
            )
        return numbers

    def batches(self, shape: tuple[int, ...], rng: Generator) -> IntArray:
        """Return the rows of many batches, of shape (..., p, size): those that as many calls of `draw` give."""
        return self.at(rng.random(shape))

    def mark(self, rng: Generator) -> Any:
        """Return what `rewind` needs to take back all draws from here on."""
        return rng.bit_generator.state

    def rewind(self, mark: Any, rng: Generator) -> None:
        """Take back all draws since a mark."""
        rng.bit_generator.state = mark

    def at(self, uniforms: Array, groups: IntArray | None = None) -> IntArray:
        """Return the rows that uniform numbers in [0, 1) of shape (..., p, size) stand for.

        With groups (..., k) they are rows of those groups, and the numbers have the shape (..., k, size).
        """
        of: Any = slice(None) if groups is None else groups
        if self.weight is not None:
            points = np.minimum(uniforms + self._numbers[of], self._last_below[of])
            places: IntArray = np.searchsorted(self._cumulative, points, side="right")
            return self.order.take(places)
        # u <= 1 - 2**-53, the largest that a generator gives, and then u * n rounds to a number below n.
        places = (uniforms * self._widths[of]).astype(np.intp)
        places += self._firsts[of]
        return self.order.take(places)

    @cached_property
    def shares(self) -> Vector:
        """The share of each row in the mean of its group, of shape (n,)."""
        if self.weight is None:
            return (1.0 / self.sizes).take(self.codes)
        scaled = self._scaled_weight()
        return scaled / sums_by(self.codes, scaled, self.n_groups).take(self.codes)

    def weighed(self, terms: Vector, rows: slice = slice(None)) -> Vector:
        """Return the terms times the rows' shares; even an infinite term of weight zero counts nothing."""
        shares = self.shares[rows]
        if self.weight is None:
            return terms * shares
        return np.multiply(terms, shares, out=np.zeros_like(shares), where=shares > 0.0)

    def means(self, terms: Vector, rows: slice = slice(None)) -> Vector:
        """Return what the rows add to the means of the groups, of shape (p,)."""
        return sums_by(self.codes[rows], self.weighed(terms, rows), self.n_groups)

    @cached_property
    def _cumulative(self) -> Vector:
        """Cumulative shares in the order of the permutation; those of group i end at i + 1, exactly."""
        ordered = self._scaled_weight().take(self.order)
        cumulative = np.empty(len(ordered))
        for i in range(self.n_groups):
            part = slice(self.offsets[i], self.offsets[i + 1])
            sums = np.cumsum(ordered[part])
            cumulative[part] = i + sums / sums[-1]
        return cumulative

    @cached_property
    def _last_below(self) -> Array:
        """The largest number below i + 1: i + u may round up to it, and would fall in the next group."""
        return np.nextafter(self._numbers + 1.0, 0.0)

    def _scaled_weight(self) -> Vector:
        """Return the weights with a maximum of 1 in each group, so that no sum overflows."""
        weight = np.asarray(self.weight)
        largest = np.zeros(self.n_groups)
        np.maximum.at(largest, self.codes, weight)
        return weight / largest.take(self.codes)
