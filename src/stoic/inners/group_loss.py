r"""Losses of a linear model, averaged over each group of rows: the inner part of group DRO."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from stoic.inners.blocks import IntArray, means_over_blocks, require_one_block
from stoic.inners.designs import Matrix, RowBatch
from stoic.inners.groups import GroupedRows
from stoic.inners.labels import encode_groups
from stoic.inners.named_losses import resolve_loss
from stoic.inners.over_rows import OverRows, make_design
from stoic.inners.row_squares import row_squares
from stoic.inners.row_terms import RowTerms
from stoic.inners.validation import check_by_column, check_matrix, check_scale, check_vector, check_weight
from stoic.losses import Loss
from stoic.protocols import Array, Vector


class GroupLoss(OverRows):
    r"""The mean loss of a linear model in each group, :math:`g_i(w) = \mathrm E_{P_i}[\ell(x^\top w, y)]`.

    P_i is the distribution of the rows of group i, each in proportion to its weight. A batch of size m holds
    m rows of each group, drawn with replacement.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, columns)
        Finite numbers. A NumPy array of float64 or float32 and a SciPy CSR matrix are used as they are,
        without a copy; other sparse formats are converted to CSR and other numbers to float64.
    y : array of shape (n,)
        Targets; labels -1 and +1 for the logistic loss.
    groups : array of shape (n,), optional
        Group labels of any sortable kind: numbers, strings, a pandas Categorical. By default all rows are one
        group.
    loss : str or Loss, default "squared"
        "squared", "huber", "absolute", "quantile", "logistic", or an object such as ``Huber(threshold=2.0)``.
    sample_weight : array of shape (n,), optional
        Weights >= 0 of the rows within their group; only their ratios matter. A row of weight zero is
        never drawn.
    intercept : bool, default False
        Whether the model has an intercept: the last coordinate of w, which regularizers leave alone.
    center, scale : array of shape (columns,), optional
        The model is one of the columns (x - center) / scale, zero and one by default. These are never formed: X
        stays as it is, sparse if it is. With a sparse X solvers then run in the plain engine.

    Attributes
    ----------
    group_labels : array of shape (p,)
        The sorted labels; output i of the inner function is the mean loss of ``group_labels[i]``.
    X, y, loss, intercept, grouped_rows
        What the object was made from, after checks.
    center, scale : array of shape (columns,) or None
        None where neither was given.

    Raises
    ------
    InvalidProblem
        If the data cannot be used; the message names the row and the column.
    InvalidParameter
        If there is no such loss.

    Notes
    -----
    Values are float64 whatever the storage. Where drawn losses are so large that they overflow, NumPy's
    warnings are left to the caller.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.inners import GroupLoss
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 5.0])
    >>> inner = GroupLoss(X, y, ["north", "north", "south"])
    >>> inner.group_labels.tolist()
    ['north', 'south']
    >>> inner.value(np.array([2.0]), inner.everything())
    array([[2.5, 1. ]])
    >>> batch = inner.draw(10, np.random.default_rng(0))
    >>> inner.jacobian(np.array([2.0]), batch, blocks=5).shape
    (5, 2, 1)

    Columns that are centered and scaled, and a sparse matrix that stays sparse:

    >>> from scipy import sparse
    >>> years = sparse.csr_array([[1999.0], [2001.0], [0.0]])
    >>> inner = GroupLoss(years, y, intercept=True, center=[2000.0], scale=[10.0])
    >>> inner.predict(np.array([1.0, 5.0]), inner.everything()).round(6).tolist()
    [4.9, 5.1, -195.0]
    """

    n_samples: int
    group_labels: NDArray[Any]
    draws_groups: ClassVar[bool] = True

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        groups: Any = None,
        *,
        loss: str | Loss = "squared",
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        self.loss = resolve_loss(loss)
        self.intercept = bool(intercept)
        self.X: Matrix = check_matrix("X", X)
        self.n_samples = int(self.X.shape[0])
        self.y = check_vector("y", y, self.n_samples)
        self._check_target()
        self.group_labels, codes = encode_groups(groups, self.n_samples)
        weight = None if sample_weight is None else check_weight(sample_weight, codes, self.group_labels)
        self.grouped_rows = GroupedRows(codes, len(self.group_labels), weight)
        self.center, self.scale = self._checked_columns(center, scale)
        self._design = make_design(self.X, intercept=self.intercept, center=self.center, scale=self.scale)

    def __repr__(self) -> str:
        kind = ("dense" if isinstance(self.X, np.ndarray) else "CSR") + ", standardized" * self.is_standardized
        return (
            f"GroupLoss({self.n_samples} rows, {self.X.shape[1]} columns, {kind}, {self.n_groups} groups, "
            f"loss={self.loss}, intercept={self.intercept})"
        )

    def with_loss(self, loss: str | Loss) -> "GroupLoss":
        """Return the same rows with another loss; they are not checked again."""
        other = copy.copy(self)
        other.loss = resolve_loss(loss)
        other._check_target()  # noqa: SLF001 - of its own kind
        return other

    def with_target(self, y: Vector) -> "GroupLoss":
        """Return the same rows with other targets, an array of finite float64."""
        other = copy.copy(self)
        other.y = y
        other._check_target()  # noqa: SLF001 - of its own kind
        return other

    def with_matrix(self, X: Matrix) -> "GroupLoss":
        """Return the same rows with other columns, checked before: those of X as they are, not standardized."""
        other = copy.copy(self)
        other.X, other.center, other.scale = X, None, None
        other._design = make_design(X, intercept=self.intercept)  # noqa: SLF001 - of its own kind
        return other

    def in_columns(self, center: Vector, scale: Vector) -> "GroupLoss":
        """Return the same rows with columns centered and scaled once more, none of them formed."""
        other = copy.copy(self)
        before = self.center, self.scale
        if self.is_standardized:  # ((x − c)/s − center)/scale
            center, scale = before[0] + before[1] * center, before[1] * scale  # type: ignore[operator]
        other.center, other.scale = center, scale
        other._design = make_design(  # noqa: SLF001 - of its own kind
            self.X, intercept=self.intercept, center=center, scale=scale
        )
        return other

    def with_weight(self, weight: Vector) -> "GroupLoss":
        """Return the same rows with other weights, a positive one in each group."""
        other = copy.copy(self)
        other.grouped_rows = self.grouped_rows.with_weight(weight)
        return other

    def row_lengths(self) -> Vector:
        """Return the length of each row, columns in units of their root mean square over all rows."""
        design: Any = self._design
        X = getattr(design, "plain", design).X  # of rows that were taken, X itself is not there
        d = X.shape[1]
        unit = np.sqrt(self.gram_diagonal(np.full(self.n_samples, 1.0 / self.n_samples))[:d])
        unit = np.where((unit > 0.0) & np.isfinite(unit), unit, 1.0)
        if self.center is not None and self.scale is not None:
            squares = row_squares(X, self.center, self.scale * unit)
        else:
            squares = row_squares(X, np.zeros(d), unit)
        return np.sqrt(squares + self.intercept)

    def taken(self, rows: IntArray) -> "GroupLoss":
        """Return some rows, at least one of positive weight in each group; they are copied."""
        other = copy.copy(self)
        other.X, other.y, other.n_samples = None, self.y[rows], len(rows)
        weight = None if self.grouped_rows.weight is None else self.grouped_rows.weight[rows]
        other.grouped_rows = GroupedRows(self.grouped_rows.codes[rows], self.n_groups, weight)
        other._design = self._design.taken(rows)  # noqa: SLF001 - of its own kind
        return other

    def with_columns(self, columns: IntArray) -> "GroupLoss":
        """Return the model of some coordinates of w, in ascending order; their columns are copied."""
        other = copy.copy(self)
        other.X, other._design = None, self._design.with_columns(columns)  # noqa: SLF001 - of its own kind
        other.intercept = self.intercept and bool(len(columns)) and int(columns[-1]) == self.shape[1] - 1
        return other

    def _checked_columns(self, center: Any, scale: Any) -> tuple[Vector | None, Vector | None]:
        """Return both, or neither where none is given."""
        if center is None and scale is None:
            return None, None
        d = self.X.shape[1]
        center = np.zeros(d) if center is None else check_by_column("center", center, d)
        return center, np.ones(d) if scale is None else check_scale(scale, d)

    def _check_target(self) -> None:
        check_target = getattr(self.loss, "check_target", None)
        if check_target is not None:
            check_target(self.y)

    @property
    def is_standardized(self) -> bool:
        """Whether the columns are (x - center) / scale, so that X alone is not what the model is of."""
        return self.scale is not None

    @property
    def is_fresh(self) -> bool:
        """Whether the rows stand for a law that they are samples of: the sum over them is no goal of its own."""
        return self.grouped_rows.is_fresh

    @property
    def n_groups(self) -> int:
        """The number p of groups."""
        return len(self.group_labels)

    @property
    def shape(self) -> tuple[int, int]:
        """(p, d); d counts the intercept."""
        return self.n_groups, self._design.d

    @property
    def n_unpenalized(self) -> int:
        """1 with an intercept, else 0."""
        return int(self.intercept)

    def draw(self, size: int, rng: Generator, groups: IntArray | None = None) -> RowBatch:
        """Draw `size` rows of each group, or of each of some groups given by their numbers.

        They are drawn with replacement, in proportion to their weights.
        """
        return RowBatch(self.grouped_rows.draw(size, rng, groups))

    def joined(self, batches: Sequence[RowBatch]) -> RowBatch:
        """Return drawn batches as one, those of each group one after another."""
        return RowBatch(np.concatenate([batch.rows for batch in batches], axis=1))

    def cost(self, size: int, groups: IntArray | None = None) -> int:
        """Return `size` times p, or times the number of some groups."""
        return (self.n_groups if groups is None else len(groups)) * size

    def value(self, w: Vector, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of the losses, of shape (blocks, p)."""
        return self.value_at(self.predict(w, batch), batch, blocks)

    def losses(self, w: Vector) -> Vector:
        """Return the loss of each row."""
        return self.loss.value(self.predict(w, self.everything()), self.y)

    def steepness(self, w: Vector, batch: RowBatch) -> Vector:
        """Return the mean of ℓ′²/(2·curvature) in each group over all rows, of shape (p,).

        It is at most the mean loss above its least value, equal to it for square loss, and bounded where slopes
        are, however large a target: the size that a change of the loss is to be compared with.
        """
        return self.steepness_at(self.predict(w, batch))

    def jacobian(self, w: Vector, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of the derivatives of the losses, of shape (blocks, p, d)."""
        return self.means_of(self.slopes_at(self.predict(w, batch), batch), batch, blocks)

    def vjp(self, w: Vector, batch: RowBatch, q: Vector) -> Vector:
        """Return zᵀq for the mean Jacobian z of the batch: one combination of its rows."""
        slopes = self.slopes_at(self.predict(w, batch), batch)
        if batch.rows is not None:
            return self.combine(slopes * (q / slopes.shape[1])[:, None], batch)
        return self.combine(slopes * q.take(self.grouped_rows.codes), batch)

    def hessian(self, w: Vector, batch: RowBatch, q: Vector) -> Array:
        """Return Σ q_i ∇²g_i(w) for the batch of all rows, of shape (d, d)."""
        return self.gram(self._curvatures(w, batch, q))

    def hessian_diagonal(self, w: Vector, batch: RowBatch, q: Vector) -> Vector:
        """Return the diagonal of `hessian`, without forming the matrix."""
        return self.gram_diagonal(self._curvatures(w, batch, q))

    def hessian_product(self, w: Vector, batch: RowBatch, q: Vector, v: Vector) -> Vector:
        """Return the product of `hessian` with v, without forming the matrix."""
        return self.combine(self._curvatures(w, batch, q) * self.predict(v, batch), batch)

    def _curvatures(self, w: Vector, batch: RowBatch, q: Vector) -> Vector:
        return self.curvatures_at(self.predict(w, batch)) * q.take(self.grouped_rows.codes)

    def curvatures_at(self, prediction: Vector, blend: float = 0.0) -> Vector:
        """Return the second derivatives of the losses in the predictions of all rows, times the rows' shares.

        A `blend` of 1 takes the curvatures of parabolas above the losses instead, as in iteratively reweighted
        least squares, where the loss has ``bound_curvature``; less of it is in between.
        """
        return self._terms.curvatures(prediction, blend)

    def bent(self, curvatures: Vector, change: Vector) -> Vector:
        """Return what a change of the predictions of all rows adds to `slopes_at`, to first order."""
        return curvatures * change

    def hessian_at(self, curvatures: Vector, q: Vector) -> Array:
        """Return `hessian` at given curvatures."""
        return self.gram(curvatures * q.take(self.grouped_rows.codes))

    def diagonal_at(self, curvatures: Vector, q: Vector) -> Vector:
        """Return `hessian_diagonal` at given curvatures, roughly where entries are stored twice."""
        return self.gram_diagonal(curvatures * q.take(self.grouped_rows.codes), roughly=True)

    def steepness_at(self, prediction: Vector) -> Vector:
        """Return `steepness` at given predictions."""
        return self._terms.steepness(prediction)

    def means_of(self, c: Array, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of the rows times `c`, of shape (blocks, p, d); sums, of all rows."""
        if batch.rows is not None:
            return self._design.block_means(c, batch, blocks)
        require_one_block(blocks)
        return self._design.sums_by(self.grouped_rows.codes, c, self.n_groups)[None]

    def value_at(self, prediction: Array, batch: RowBatch, blocks: int = 1) -> Array:
        """Return `value` at given predictions."""
        if batch.rows is not None:
            return means_over_blocks(self.loss.value(prediction, self.y.take(batch.rows)), blocks)
        require_one_block(blocks)
        return self._terms.means(prediction)[None]

    def slopes_at(self, prediction: Array, batch: RowBatch) -> Array:
        """Return the derivatives of the losses in the prediction; for all rows times the rows' shares."""
        if batch.rows is not None:
            return self.loss.derivative(prediction, self.y.take(batch.rows))
        return self._terms.slopes(prediction)

    @property
    def _terms(self) -> RowTerms:
        return RowTerms(self.loss, self.y, self.grouped_rows)
