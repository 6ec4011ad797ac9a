"""Rows of X centered and scaled by column, of which nothing is formed: a zero that is not stored stays so."""

import numpy as np

from stoic.inners.blocks import IntArray
from stoic.inners.designs import Design, RowBatch
from stoic.protocols import Array, Vector


class StandardizedDesign:
    r"""The rows :math:`\tilde x = (x - c) / s`, followed by a 1 where there is an intercept.

    They are a linear map of the rows (x, 1): each product is one with those rows and a correction of rank one.

    Parameters
    ----------
    plain : Design
        The rows of X, followed by a 1.
    center, scale : array of shape (columns,)
        c and s.
    intercept : bool
    """

    def __init__(self, plain: Design, center: Vector, scale: Vector, *, intercept: bool) -> None:
        self.plain, self.center, self.scale, self.intercept = plain, center, scale, intercept
        self.d = len(scale) + intercept

    def predict(self, w: Vector, batch: RowBatch) -> Array:
        """Return the products of the rows with w, in the shape of ``batch.rows``; (n,) for all rows."""
        plain = np.empty(len(self.scale) + 1)
        slopes = np.divide(w[: len(self.scale)], self.scale, out=plain[:-1])
        plain[-1] = (w[-1] if self.intercept else 0.0) - self.center @ slopes
        return self.plain.predict(plain, batch)

    def combine(self, c: Array, batch: RowBatch) -> Vector:
        """Return the sum of the rows times `c`, which has the shape of ``batch.rows``; (n,) for all rows."""
        return self._standardized(self.plain.combine(c, batch))

    def block_means(self, c: Array, batch: RowBatch, blocks: int) -> Array:
        """Return the means of drawn rows times `c` over blocks of each group, of shape (blocks, p, d)."""
        return self._standardized(self.plain.block_means(c, batch, blocks))

    def sums_by(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return the sums of all rows times c by their codes, of shape (n_groups, d)."""
        return self._standardized(self.plain.sums_by(codes, c, n_groups))

    def gram(self, c: Vector) -> Array:
        """Return the sum over all rows of c times the outer product of the row with itself, of shape (d, d)."""
        halfway = self._standardized(self.plain.gram(c))  # rows are standardized, columns not yet
        return self._standardized(np.ascontiguousarray(halfway.T))

    def grams(self, codes: IntArray, c: Vector, n_groups: int) -> Array:
        """Return `gram` of the rows of each code, of shape (n_groups, d, d), for c >= 0."""
        halfway = self._standardized(self.plain.grams(codes, c, n_groups))
        return self._standardized(np.ascontiguousarray(halfway.swapaxes(1, 2)))

    def gram_diagonal(self, c: Vector, *, roughly: bool = False) -> Vector:
        """Return the diagonal of `gram`, without forming it; roughly, where entries may be stored twice."""
        squares, sums = self.plain.gram_diagonal(c, roughly=roughly), self.plain.combine(c, RowBatch(None))
        inside, total = squares[:-1], float(sums[-1])
        inside -= self.center * (2.0 * sums[:-1] - total * self.center)
        inside /= self.scale
        inside /= self.scale
        np.maximum(inside, 0.0, out=inside)  # but for rounding
        return squares if self.intercept else np.ascontiguousarray(inside)

    def taken(self, rows: IntArray) -> "StandardizedDesign":
        """Return the design of some rows, copied."""
        return StandardizedDesign(self.plain.taken(rows), self.center, self.scale, intercept=self.intercept)

    def with_columns(self, columns: IntArray) -> "StandardizedDesign":
        """Return the design of some columns, copied; the last number may stand for the intercept."""
        d = len(self.scale)
        has_intercept = self.intercept and bool(len(columns)) and int(columns[-1]) == d
        inside = columns[:-1] if has_intercept else columns
        plain = self.plain.with_columns(np.append(inside, d))
        return StandardizedDesign(plain, self.center[inside], self.scale[inside], intercept=has_intercept)

    def _standardized(self, sums: Array) -> Array:
        """Return sums of standardized rows, given those of the rows (x, 1), which are overwritten."""
        inside = sums[..., :-1]
        inside -= sums[..., -1:] * self.center
        inside /= self.scale
        return sums if self.intercept else np.ascontiguousarray(inside)
