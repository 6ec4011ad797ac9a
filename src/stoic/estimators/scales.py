"""Scales of columns and targets, by quantiles that outliers do not move; models of scaled data, and back."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from stoic.errors import InvalidProblem
from stoic.estimators.moments import moments, shares_apart
from stoic.inners.blocks import IntArray
from stoic.inners.groups import rows_by_group
from stoic.protocols import Array, Vector

_OF_NORMAL = 1.4826
"""The standard deviation of a normal law over its median absolute deviation."""

_COMMON = 3.0  # one over the share of rows apart, from which a column has unit variance
_TINY, _HUGE = 1e-50, 1e50  # scales between them can be left to be done: sums and squares stay finite

_LARGE_ARRAY = 1 << 25  # bytes: a copy of fewer is worth its memory
_FAR = 100.0  # deviations from a center: the squares of sums of plain columns lose four digits

_FARTHEST = 1e100  # units: farther targets would overflow; where losses are lines, all beyond are alike
_LARGEST_SQUARED = 1e70  # units: squares of squares stay finite


def weighted_quantile(values: Vector, weight: Vector | None, level: float) -> float:
    """Return the smallest value below or at which at least a share `level` of the weight lies.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]), 0.5)
    2.0
    """
    if weight is None:  # what NumPy does, without its fixed costs
        place = max(math.ceil(level * len(values)) - 1, 0)
        return float(np.partition(values, place)[place])
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
        The scale of a constant column is its size.
    """

    center: Vector
    scale: Vector

    @classmethod
    def none(cls, d: int) -> "Scaling":
        """Return the scaling that leaves d columns as they are; one number each stands for all."""
        return cls(np.broadcast_to(0.0, d), np.broadcast_to(1.0, d))

    @classmethod
    def of(cls, X: Any, weight: Vector | None, *, centered: bool) -> "Scaling":
        """Return the scaling to mean zero and unit variance; to unit mean square where it is not to be centered.

        Where fewer than a third of the rows, a share q, have another value than the rest, the mean square becomes
        3q: a column for a rare category would otherwise count as much as the others, on the word of few rows.
        Rows count by their weights.
        """
        shares = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
        center, size = moments(X, shares, centered=centered)
        limits = np.finfo(X.dtype)
        varies = size > 10.0 * limits.eps * np.abs(center) + limits.tiny  # by more than rounding
        constant = np.where(center != 0.0, np.abs(center), 1.0)
        few = np.minimum(_COMMON * shares_apart(X, shares, centered=centered), 1.0)
        scale = np.divide(size, np.sqrt(few), out=constant, where=varies & (few > 0.0))
        return cls(center.astype(X.dtype).astype(float), scale)  # the center of a float32 column is a float32

    @property
    def is_none(self) -> bool:
        """Whether it leaves all columns as they are."""
        return bool(not self.center.any() and (self.scale == 1.0).all())

    def applied(self, X: Any, *, may_be_left: bool = False) -> tuple[Any, "Scaling | None"]:
        """Return X scaled, in its own precision and form, and what is left to be done with it.

        All is done in an array; rows lie together then, those of data frames lie across memory. Of a CSR matrix
        all is left, but for columns of which it would cost digits. So it is of a large array that may be left
        as it is and has no such column.
        """
        if self.is_none:
            return (X if sparse.issparse(X) else np.ascontiguousarray(X)), None
        if sparse.issparse(X):
            return self._applied_to_csr(X)
        if may_be_left and X.nbytes >= _LARGE_ARRAY and self._is_harmless:
            return X, self
        scaled = np.subtract(X, self.center.astype(X.dtype), order="C")
        scaled /= self.scale.astype(X.dtype)
        return scaled, None

    @property
    def _is_harmless(self) -> bool:
        """Whether sums of plain columns, centered and scaled afterwards, keep their digits."""
        is_near = np.abs(self.center) <= _FAR * self.scale
        return bool((is_near & (self.scale >= _TINY) & (self.scale <= _HUGE)).all())

    def _applied_to_csr(self, X: Any) -> tuple[Any, "Scaling"]:
        """Center columns without a zero that are far from it, and scale those whose squares overflow or vanish.

        A column with a zero among n rows is no farther than √n deviations.
        """
        is_full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
        shift = np.where(is_full & (np.abs(self.center) >= self.scale), self.center, 0.0)
        unit = np.where((self.scale < _TINY) | (self.scale > _HUGE), self.scale, 1.0)
        if not shift.any() and (unit == 1.0).all():
            return X, self
        data = X.data - shift.astype(X.dtype)[X.indices]
        data /= unit.astype(X.dtype)[X.indices]
        left = Scaling((self.center - shift) / unit, self.scale / unit)
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape), left

    def forward(self, W: Array, intercept: Vector) -> tuple[Array, Vector]:
        """Return the models of scaled columns, one a column of W, that predict what those of plain columns do."""
        return W * self.scale[:, None], intercept + self.center @ W

    def back(self, W: Array, intercept: Vector) -> tuple[Array, Vector]:
        """Return the models of plain columns that predict what those of scaled columns do."""
        plain = W / self.scale[:, None]
        return plain, intercept - self.center @ plain


def canonical(X: Any) -> Any:
    """Return a matrix with no entry stored twice; X itself where there is none."""
    if not sparse.issparse(X) or X.has_canonical_format:  # type: ignore[attr-defined]
        return X
    summed: Any = X.copy()  # type: ignore[attr-defined]
    summed.sum_duplicates()
    return summed


def scaled_csr(X: Any, scale: Vector) -> Any:
    """Return a CSR matrix with its columns divided by their scales, in its own precision."""
    return sparse.csr_array((X.data / scale.astype(X.dtype)[X.indices], X.indices, X.indptr), shape=X.shape)


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
