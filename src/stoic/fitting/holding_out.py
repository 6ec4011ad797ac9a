"""Rows held out for the test: a fifth of each group, classes in proportion."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.fitting.schemas import FileRows
from stoic.inners.blocks import IntArray
from stoic.inners.labels import encode_groups

ONE_IN = 5
"""One row of so many is held out."""


class Split(NamedTuple):
    """Rows to train on and rows to test on, and how many groups were too small to give a fifth each."""

    train: FileRows
    test: FileRows
    n_small: int
    are_all_small: bool


def hold_out(table: FileRows, seed: int, *, classifies: bool) -> Split:
    """Return the rows in two parts.

    Groups of fewer than five rows give a fifth of all their rows together. Rows without weight are in neither
    part, and of a class that would be held out whole no row is.

    Parameters
    ----------
    table : FileRows
    seed : int
        Of the draw.
    classifies : bool
        Whether targets are classes.
    """
    y: Any = table.y
    counted = counted_rows(table)
    labels, codes = encode_groups(table.groups, len(y))
    codes = codes[counted]
    is_small = np.bincount(codes, minlength=len(labels)) < ONE_IN
    units = np.where(is_small[codes], len(labels), codes)
    classes = (
        np.unique(y[counted], return_inverse=True)[1] if classifies else np.zeros(len(counted), dtype=np.intp)
    )
    chosen = _one_in_five(units, classes, np.random.default_rng(seed))
    if classifies:
        chosen &= np.isin(classes, classes[~chosen])
    parts = part_of(table, counted[~chosen]), part_of(table, counted[chosen])
    return Split(*parts, int(is_small.sum()), bool(is_small.all()))


def _one_in_five(units: IntArray, classes: IntArray, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which rows are every fifth of their unit, in the order of its classes and at random within these."""
    order = np.lexsort((rng.random(len(units)), classes, units))
    ordered = units[order]
    places = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    start = rng.integers(ONE_IN, size=int(units.max(initial=0)) + 1)
    chosen = np.zeros(len(units), dtype=bool)
    chosen[order] = (places + start[ordered]) % ONE_IN == 0
    return chosen


def counted_rows(table: FileRows) -> IntArray:
    """Return the numbers of the rows that have a weight."""
    return np.arange(table.X.shape[0]) if table.weight is None else np.flatnonzero(table.weight > 0.0)


def part_of(table: FileRows, rows: IntArray) -> FileRows:
    """Return some of the rows."""
    y: Any = table.y
    groups, weight = table.groups, table.weight
    return table._replace(
        X=table.X[rows],
        y=y[rows],
        groups=None if groups is None else groups[rows],
        weight=None if weight is None else weight[rows],
    )
