"""Rows that stand for all: some of each group in equal distances, and more of those that are long or rare."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.group_loss import GroupLoss
from stoic.protocols import Vector

_LOOKED_AT, _PER_COLUMN = 1000, 8  # rows that are looked at first, at least, and for each column
_MOST_COLUMNS = 1000  # that are looked at
_UNEVEN = 0.05  # of them: as many tell a column's curvature where rows are not alike


class Sampling:
    r"""How rows of a group loss are chosen.

    Where the entries of some column are few or wild, row x of group i has the chance

    .. math:: \min\Big(1, m \Big[\tfrac12 a_x + \tfrac12 \frac{\ell_x}{\sum_{x' \in i} \ell_{x'}}\Big]\Big), \qquad
              \ell_x = a_x \sum_k x_k^2 / \overline{x_k^2},

    with its share a of the group's mean, and counts with the inverse of its chance. Else all chances of a group
    are alike. Nothing is random: a row is chosen wherever the sum of the chances passes a whole number.

    Parameters
    ----------
    inner : GroupLoss
    """

    def __init__(self, inner: GroupLoss) -> None:
        self.inner, self.grouped = inner, inner.grouped_rows

    def rows(self, size: int) -> tuple[IntArray, Vector | None]:
        """Return the numbers of about as many rows, some of each group, and their weights, None for their own."""
        most = size / self.grouped.n_groups
        if self._lengths is None:
            return self._apart(most), None
        shares = self.grouped.shares
        lengths, is_rare = self._lengths
        parts = lengths / np.maximum(sums_by(self.grouped.codes, lengths, self.grouped.n_groups), 1e-300).take(
            self.grouped.codes
        )
        chances = np.minimum(1.0, most * (0.5 * shares + 0.5 * parts))
        rare = int(np.count_nonzero(is_rare))
        chances[is_rare] = np.maximum(chances[is_rare], min(1.0, size / max(1, rare)))
        chances[shares == 0.0] = 0.0
        order = self.grouped.order
        passed = np.floor(np.cumsum(chances[order]) + 0.5)
        rows = order[np.diff(passed, prepend=0.0) > 0.0]
        return rows, shares[rows] / chances[rows]

    def _apart(self, most: float) -> IntArray:
        """Return rows of each group in equal distances; all of a small one, and at least one that counts."""
        grouped = self.grouped
        apart = np.maximum(1, np.ceil(grouped.sizes / most).astype(np.intp))
        codes = grouped.codes.take(grouped.order)
        places = np.arange(len(codes)) - grouped.offsets.take(codes)
        is_taken = places % apart.take(codes) == 0
        if grouped.weight is not None:
            counts = sums_by(codes, is_taken * (grouped.weight.take(grouped.order) > 0.0), grouped.n_groups)
            is_taken |= (counts == 0.0).take(codes)
        return np.asarray(grouped.order[is_taken])

    @cached_property
    def _lengths(self) -> tuple[Vector, NDArray[np.bool_]] | None:
        """The shares of the rows times their squared lengths, and which have entries in a rare column."""
        n, d = self.inner.n_samples, self.inner.shape[1]
        if d > _MOST_COLUMNS:
            return None
        some = self._apart(min(n, max(_LOOKED_AT, _PER_COLUMN * d)) / self.grouped.n_groups)
        design: Any = self.inner._design  # noqa: SLF001 - its columns as they are in memory
        design = getattr(design, "plain", design)
        squares, fourths = _moments(design.taken(some).X)
        is_rare = squares == 0.0
        if not (np.square(squares) <= _UNEVEN * len(some) * fourths).any():
            return None
        unit = 1.0 / np.where(is_rare, 1.0, squares / len(some))
        lengths = design._all.row_squares(np.where(is_rare, 0.0, unit))  # noqa: SLF001 - of its rows
        lengths = np.asarray(self.grouped.weighed(lengths), dtype=float)
        if not is_rare.any():
            return lengths, np.zeros(n, dtype=np.bool_)
        of_rare = np.asarray(design._all.row_squares(is_rare.astype(float)))  # noqa: SLF001
        return lengths, of_rare > 0.0


def _moments(X: Any) -> tuple[Vector, Vector]:
    """Return the sums of the squares and of the fourth powers of each column."""
    entries = X if isinstance(X, np.ndarray) else X.data
    squares: Vector = np.square(entries, dtype=np.float64)
    if isinstance(X, np.ndarray):
        return squares.sum(axis=0), np.square(squares).sum(axis=0)
    d = X.shape[1]
    return sums_by(X.indices, squares, d), sums_by(X.indices, np.square(squares), d)
