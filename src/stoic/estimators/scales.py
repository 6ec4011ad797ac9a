"""Scales of columns and targets, by quantiles that outliers do not move; models of scaled data, and back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from stoic.errors import InvalidProblem
from stoic.inners.blocks import IntArray
from stoic.inners.groups import rows_by_group
from stoic.protocols import Array, Vector

_OF_NORMAL = 1.4826
"""The standard deviation of a normal law over its median absolute deviation."""

_SMALL, _LARGE = 1e-140, 1e140  # deviations between them have squares that keep their digits
_WILD = 1e4  # times the upper quantile of the sizes in a column: a value that dominates it
_SAMPLE = 100_000  # entries from which the ordinary size of an entry is told

_FARTHEST = 1e100  # units: farther targets would overflow; where losses are lines, all beyond are alike
_LARGEST_SQUARED = 1e70  # units: squares of squares stay finite


def weighted_quantile(values: Vector, weight: Vector | None, level: float) -> float:
    """Return the smallest value below or at which at least a share `level` of the weight lies.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]), 0.5)
    2.0
    """
    return float(np.quantile(values, level, weights=weight, method="inverted_cdf"))


def spread(residuals: Vector, weight: Vector | None = None) -> float:
    """Return a robust standard deviation about zero: 1.4826 times the median of |r|.

    Where more than half of them are zero, the tamed mean of |r| takes its place, in proportion to what it is for a
    normal law; 0 only where all are zero.

    Examples
    --------
    >>> spread(np.array([-1.0, 1.0, 1e9]))
    1.4826
    """
    sizes = np.abs(residuals)
    median = _OF_NORMAL * weighted_quantile(sizes, weight, 0.5)
    return median or float(np.sqrt(np.pi / 2.0)) * tamed_mean(sizes, weight)


def upper_quantile(sizes: Vector, weight: Vector | None = None) -> float:
    """Return the 90 % quantile of sizes; of fewer than 35, the fourth largest, or the middle one; 0 of one or two.

    Examples
    --------
    >>> [upper_quantile(np.arange(float(n))) for n in (100, 10, 3, 2)]
    [89.0, 6.0, 1.0, 0.0]
    """
    n = len(sizes) if weight is None else int(np.count_nonzero(weight))
    if n < 3:
        return 0.0
    above = min(3, (n - 1) // 2)
    return weighted_quantile(sizes, weight, min(0.9, 1.0 - (above + 0.5) / n))


def outlier_size(sizes: Vector, weight: Vector | None = None) -> float:
    """Return ten times the upper quantile of the sizes that are not zero, which ordinary outliers do not exceed.

    It is infinite where only one or two sizes are not zero.
    """
    positive = (sizes > 0.0) if weight is None else (sizes > 0.0) & (weight > 0.0)
    return 10.0 * upper_quantile(sizes[positive], None if weight is None else weight[positive]) or np.inf


def tamed_mean(sizes: Vector, weight: Vector | None = None) -> float:
    """Return the mean of sizes, each cut at the size of ordinary outliers.

    Examples
    --------
    >>> tamed_mean(np.array([0.0, 1.0, 1.0, 1.0, 1e300]))
    2.6
    """
    return float(np.average(np.minimum(sizes, outlier_size(sizes, weight)), weights=weight))


def group_medians(y: Vector, codes: IntArray, n_groups: int, weight: Vector | None = None) -> Vector:
    """Return the median of each group."""
    parts = rows_by_group(codes, n_groups)
    return np.array([weighted_quantile(y[rows], None if weight is None else weight[rows], 0.5) for rows in parts])


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
        """Return the scaling of those columns of a CSR matrix that one wild value dominates; the others stay."""
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


@dataclass(frozen=True)
class TargetScale:
    """Targets y as (y − location) / unit, and the power of the unit that a loss has."""

    location: float = 0.0
    unit: float = 1.0
    power: int = 0

    def apply(self, y: Vector) -> Vector:
        """Return the targets on their scale, at most 10¹⁰⁰ units from their location."""
        with np.errstate(over="ignore"):
            scaled = (y - self.location) / self.unit
        return np.clip(scaled, -_FARTHEST, _FARTHEST)

    def check_squares(self, y: Vector) -> None:
        """Raise `InvalidProblem` if a target is so far away that its square loss would overflow."""
        row = int(np.argmax(np.abs(self.apply(y))))
        if abs(self.apply(y[row : row + 1])[0]) > _LARGEST_SQUARED:
            raise InvalidProblem(
                f"y[{row}] = {y[row]:g} is too large for square loss, beside targets that spread by "
                f"{self.unit:g}; correct or remove it, or use loss='huber'."
            )

    @property
    def loss_unit(self) -> float:
        """The unit of the loss."""
        return float(self.unit**self.power)


@dataclass(frozen=True)
class Frame:
    """The scales of columns and targets, and whether there is an intercept.

    A model with K outputs has coefficients of shape (K, d) and K intercepts. Its variable w is a matrix with a row
    for each column and, where there is an intercept, one more; row by row.
    """

    scaling: Scaling
    target: TargetScale
    intercept: bool

    def model(self, w: Vector) -> tuple[Array, Vector]:
        """Return coefficients and intercepts for columns and targets as they are."""
        d = len(self.scaling.scale)
        W = w.reshape(d + self.intercept, -1) * self.target.unit
        coef, intercept = self.scaling.back(W[:d], W[d:].sum(axis=0) + self.target.location)
        return coef.T, intercept

    def variable(self, coef: Array, intercept: Vector) -> Vector:
        """Return the variable of a model for columns and targets as they are."""
        unit, location = self.target.unit, self.target.location
        W, b = self.scaling.forward(np.asarray(coef, dtype=float).T / unit, (intercept - location) / unit)
        return np.vstack([W, b[None]] if self.intercept else [W]).ravel()
