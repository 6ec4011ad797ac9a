"""Columns of a table on one scale, and the way back; a CSR matrix stays one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from stoic.estimators.locating import upper_quantile
from stoic.inners.blocks import IntArray
from stoic.protocols import Array, Vector

_SMALL, _LARGE = 1e-140, 1e140  # deviations between them have squares that keep their digits
_WILD = 1e4  # times the upper quantile of the sizes in a column: a value that owns it
_SAMPLE = 100_000  # entries from which the ordinary size of an entry is told


@dataclass(frozen=True)
class Scaling:
    """Columns x as (x − center) / scale.

    Parameters
    ----------
    center, scale : array of shape (d,)
        The center is zero where X is sparse: it would fill the matrix. A scale of a constant column is 1.
    """

    center: Vector
    scale: Vector

    @classmethod
    def none(cls, d: int) -> "Scaling":
        """Return the scaling that leaves d columns as they are; one number each stands for all."""
        return cls(np.broadcast_to(0.0, d), np.broadcast_to(1.0, d))

    @classmethod
    def of_wild_columns(cls, X: Any, weight: Vector | None) -> "Scaling":
        """Return the scaling of those columns of a CSR matrix that a wild value owns; the others stay."""
        columns = _wild_columns(X)
        if columns.size == 0:
            return cls.none(X.shape[1])
        scale = np.ones(X.shape[1])
        scale[columns] = cls.of(X[:, columns], weight, centered=False).scale
        return cls(np.zeros(X.shape[1]), scale)

    @classmethod
    def of(cls, X: Any, weight: Vector | None, *, centered: bool) -> "Scaling":
        """Return the scaling to unit variance, and on request to mean zero; rows count by their weights."""
        shares = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
        mean, deviation = _moments(X, shares)
        extreme = np.flatnonzero(~((deviation > _SMALL) & (deviation < _LARGE)))
        if extreme.size:  # or constant: once more, with the largest entry for the unit
            part = X[:, extreme]
            unit = np.ravel(abs(part).max(axis=0).toarray() if _is_sparse(X) else np.abs(part).max(axis=0))
            unit = np.where(unit > 0.0, unit, 1.0).astype(float)
            scaled = part.multiply(1.0 / unit).tocsr() if _is_sparse(X) else part / unit
            mean[extreme], deviation[extreme] = (unit * moment for moment in _moments(scaled, shares))
        noise = 10.0 * np.finfo(X.dtype).eps * np.abs(mean)  # of a constant column, by rounding
        scale = np.where(deviation > noise, deviation, 1.0)
        return cls(mean if centered and not _is_sparse(X) else np.zeros_like(mean), scale)

    def apply(self, X: Any) -> Any:
        """Return X scaled, in its own precision and form; X itself where nothing is to be done.

        Rows of an array lie together then; those of data frames lie across memory.
        """
        if not self.center.any() and (self.scale == 1.0).all():
            return X if _is_sparse(X) else np.ascontiguousarray(X)
        if _is_sparse(X):
            scaled = X.data / self.scale.astype(X.dtype)[X.indices]
            return sparse.csr_array((scaled, X.indices, X.indptr), shape=X.shape)
        scaled = np.subtract(X, self.center.astype(X.dtype), order="C")
        scaled /= self.scale.astype(X.dtype)
        return scaled

    def forward(self, W: Array, intercept: Vector) -> tuple[Array, Vector]:
        """Return the models of scaled columns, one a column of W, that predict what those of plain columns do."""
        return W * self.scale[:, None], intercept + self.center @ W

    def back(self, W: Array, intercept: Vector) -> tuple[Array, Vector]:
        """Return the models of plain columns that predict what those of scaled columns do."""
        plain = W / self.scale[:, None]
        return plain, intercept - self.center @ plain


def _is_sparse(X: Any) -> bool:
    return sparse.issparse(X)


def _wild_columns(X: Any) -> IntArray:
    """Return the columns of a CSR matrix with a value 10⁴ times as large as nearly all others of the column."""
    sample = X.data if X.nnz <= _SAMPLE else X.data[np.random.default_rng(0).integers(0, X.nnz, _SAMPLE)]
    sizes = np.abs(sample[sample != 0.0])
    least = _WILD * float(np.quantile(sizes, 0.1)) if sizes.size else np.inf
    if max(X.data.max(initial=0.0), -X.data.min(initial=0.0)) <= least:
        return np.empty(0, dtype=np.intp)
    columns = np.unique(X.indices[np.abs(X.data) > least])
    by_column, ordinary = X[:, columns].tocsc(), upper_quantile(sizes)
    parts = [np.abs(part) for part in np.split(by_column.data, by_column.indptr[1:-1])]
    are_wild = [part.max() > _WILD * (upper_quantile(part) or ordinary) for part in parts]
    return np.asarray(columns[np.array(are_wild)], dtype=np.intp)


@np.errstate(over="ignore", invalid="ignore")
def _moments(X: Any, shares: Vector) -> tuple[Vector, Vector]:
    """Return the means and standard deviations of columns; not finite where squares overflow."""
    if not _is_sparse(X):
        mean = shares @ X
        return mean, np.sqrt(_variance(X, mean, shares))
    X = X.astype(float, copy=False)
    mean, square = (np.asarray(shares @ power).ravel() for power in (X, X.power(2)))
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _variance(X: Any, mean: Vector, shares: Vector, *, rows: int = 1 << 11) -> Vector:
    """Return the variances in two passes, a part of the rows at a time."""
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], rows):
        part = slice(start, start + rows)
        total += shares[part] @ np.square(X[part] - mean)
    return total
