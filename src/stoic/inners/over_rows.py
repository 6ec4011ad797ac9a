"""Inner parts over the rows of a design: batches of rows, and products with them."""

from typing import TypeAlias

from scipy import sparse

from stoic.inners.designs import CSRDesign, DenseDesign, Design, Matrix, RowBatch
from stoic.inners.standardized import StandardizedDesign
from stoic.protocols import Array, Vector

AnyDesign: TypeAlias = Design | StandardizedDesign


class OverRows:
    """Base of inner parts over the rows of a design."""

    _design: AnyDesign

    def everything(self) -> RowBatch:
        """Return all rows as one batch; each counts by its weight."""
        return RowBatch(None)

    def predict(self, w: Vector, batch: RowBatch) -> Array:
        """Return xᵀw of the rows, in the shape of ``batch.rows``; (n,) for all rows. It is linear in w."""
        return self._design.predict(w, batch)

    def combine(self, c: Array, batch: RowBatch) -> Vector:
        """Return the sum of the rows times `c`, which has the shape of what `predict` returns: its transpose."""
        return self._design.combine(c, batch)

    def gram(self, c: Vector) -> Array:
        """Return the sum over all rows of c times the outer product of the row with itself, of shape (d, d)."""
        return self._design.gram(c)

    def gram_diagonal(self, c: Vector, *, roughly: bool = False) -> Vector:
        """Return the diagonal of `gram`, without forming it; roughly, where entries may be stored twice."""
        return self._design.gram_diagonal(c, roughly=roughly)


def make_design(
    X: Matrix, *, intercept: bool = False, center: Vector | None = None, scale: Vector | None = None
) -> AnyDesign:
    """Return the design for X, an array or a CSR matrix after checks, its columns centered and scaled or not."""
    plain = CSRDesign if sparse.issparse(X) else DenseDesign
    if center is None or scale is None:
        return plain(X, intercept=intercept)
    return StandardizedDesign(plain(X, intercept=True), center, scale, intercept=intercept)
