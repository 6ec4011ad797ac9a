r"""Cross-entropies of a linear softmax model, averaged over each group of rows."""

import copy
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from stoic.checks import check_count
from stoic.errors import InvalidProblem
from stoic.inners.blocks import IntArray, means_over_blocks, require_one_block
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.protocols import Array, Vector


class GroupSoftmax:
    r"""The mean cross-entropy of a softmax model in each group.

    .. math:: g_i(W) = \mathrm E_{P_i}[\log \textstyle\sum_k e^{x^\top w_k} - x^\top w_y]

    The variable is the matrix W with a column w_k for each of K classes, row by row: entry jK + k belongs to
    column j of X and class k; the last K entries are the intercepts where there are some.

    Parameters
    ----------
    X, groups, sample_weight, intercept, center, scale
        As for `GroupLoss`.
    y : array of int of shape (n,)
        Classes 0, …, K − 1.
    n_classes : int
        K, at least 2.

    Raises
    ------
    InvalidProblem
        If the data cannot be used; the message names the row and the column.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.inners import GroupSoftmax
    >>> inner = GroupSoftmax(np.eye(3), [0, 1, 2], n_classes=3)
    >>> inner.shape
    (1, 9)
    >>> inner.value(np.zeros(9), inner.everything()).round(4)
    array([[1.0986]])
    """

    draws_groups: ClassVar[bool] = True

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        groups: Any = None,
        *,
        n_classes: int,
        sample_weight: ArrayLike | None = None,
        intercept: bool = False,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        self.n_classes = check_count("n_classes", n_classes, low=2)
        how: dict[str, Any] = {"sample_weight": sample_weight, "intercept": intercept}
        self.one = GroupLoss(X, y, groups, center=center, scale=scale, **how)
        self.y = self.one.y.astype(np.intp)
        wrong = (self.one.y != self.y) | (self.y < 0) | (self.y >= self.n_classes)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidProblem(
                f"y[{row}] = {self.one.y[row]:g} is not a class; classes are 0 to {n_classes - 1}."
            )
        self.group_labels, self.n_samples = self.one.group_labels, self.one.n_samples

    def __repr__(self) -> str:
        return f"GroupSoftmax({self.n_classes} classes, {self.one})"

    @property
    def shape(self) -> tuple[int, int]:
        """(p, dK); d counts the intercept."""
        p, d = self.one.shape
        return p, d * self.n_classes

    @property
    def n_unpenalized(self) -> int:
        """K with intercepts, else 0."""
        return self.n_classes * self.one.n_unpenalized

    def draw(self, size: int, rng: Generator, groups: IntArray | None = None) -> RowBatch:
        """Draw `size` rows of each group, or of each of some groups given by their numbers.

        They are drawn with replacement, in proportion to their weights.
        """
        return self.one.draw(size, rng, groups)

    def everything(self) -> RowBatch:
        """Return all rows as one batch, each with its weight."""
        return self.one.everything()

    def cost(self, size: int, groups: IntArray | None = None) -> int:
        """Return `size` times p, or times the number of some groups."""
        return self.one.cost(size, groups)

    def value(self, w: Vector, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of the cross-entropies, of shape (blocks, p)."""
        return self.value_at(self.predict(w, batch), batch, blocks)

    def value_at(self, prediction: Array, batch: RowBatch, blocks: int = 1) -> Array:
        """Return `value` at given predictions."""
        losses = self._losses(prediction, batch)
        if batch.rows is not None:
            return means_over_blocks(losses, blocks)
        require_one_block(blocks)
        return self.one.grouped_rows.means(losses)[None]

    def losses(self, w: Vector) -> Vector:
        """Return the loss of each row."""
        everything = self.everything()
        return self._losses(self.predict(w, everything), everything)

    def jacobian(self, w: Vector, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of the derivatives, of shape (blocks, p, dK)."""
        slopes = self.slopes_at(self.predict(w, batch), batch)
        columns = [self.one.means_of(slopes[..., k], batch, blocks) for k in range(self.n_classes)]
        means = np.stack(columns, axis=-1)
        return means.reshape(*means.shape[:2], -1)

    def vjp(self, w: Vector, batch: RowBatch, q: Vector) -> Vector:
        """Return zᵀq for the mean Jacobian z of the batch."""
        slopes = self.slopes_at(self.predict(w, batch), batch)
        if batch.rows is not None:
            return self.combine(slopes * (q / slopes.shape[1])[:, None, None], batch)
        return self.combine(slopes * q.take(self.one.grouped_rows.codes)[:, None], batch)

    def hessian(self, w: Vector, batch: RowBatch, q: Vector) -> Array:
        """Return Σ q_i ∇²g_i(w) for the batch of all rows, of shape (dK, dK)."""
        return self.hessian_at(self.curvatures_at(self.predict(w, batch)), q)

    def hessian_at(self, curvatures: Array, q: Vector) -> Array:
        """Return `hessian` at given probabilities."""
        K, d = self.n_classes, self.one.shape[1]
        share, weight = curvatures, self._weights(q)
        hessian = np.empty((d, K, d, K))
        for k in range(K):
            for other in range(k + 1):
                c = weight * share[:, k] * ((k == other) - share[:, other])
                hessian[:, k, :, other] = hessian[:, other, :, k] = self.one.gram(c)
        return hessian.reshape(d * K, d * K)

    def hessian_product(self, w: Vector, batch: RowBatch, q: Vector, v: Vector) -> Vector:
        """Return the product of `hessian` with v, without forming the matrix."""
        bent = self.bent(self.curvatures_at(self.predict(w, batch)), self.predict(v, batch))
        return self.combine(bent * q.take(self.one.grouped_rows.codes)[:, None], batch)

    def diagonal_at(self, curvatures: Array, q: Vector) -> Vector:
        """Return the diagonal of `hessian` at given probabilities."""
        c = self._weights(q)[:, None] * curvatures * (1.0 - curvatures)
        return np.stack([self.one.gram_diagonal(one) for one in c.T.copy()], axis=-1).ravel()

    def curvatures_at(self, prediction: Array, blend: float = 0.0) -> Array:  # noqa: ARG002 - they are positive
        """Return the probabilities of all classes, of which second derivatives are made."""
        share: Array = softmax(prediction, axis=-1)
        return share

    def bent(self, curvatures: Array, change: Array) -> Array:
        """Return what a change of the predictions of all rows adds to `slopes_at`, to first order."""
        centered = change - (curvatures * change).sum(axis=-1, keepdims=True)
        return np.asarray(self.one.grouped_rows.shares[:, None] * curvatures * centered)

    def _weights(self, q: Vector) -> Vector:
        rows = self.one.grouped_rows
        return rows.shares * q.take(rows.codes)

    def taken(self, rows: Any) -> "GroupSoftmax":
        """Return some rows, at least one of positive weight in each group; they are copied."""
        other = copy.copy(self)
        other.one, other.y, other.n_samples = self.one.taken(rows), self.y[rows], len(rows)
        return other

    def predict(self, w: Vector, batch: RowBatch) -> Array:
        """Return the scores of all classes, on the last axis. They are linear in w."""
        W = w.reshape(-1, self.n_classes)
        return np.stack([self.one.predict(column, batch) for column in W.T.copy()], axis=-1)

    def _losses(self, scores: Array, batch: RowBatch) -> Array:
        own = np.take_along_axis(scores, self._classes(batch)[..., None], axis=-1)[..., 0]
        return np.asarray(logsumexp(scores, axis=-1) - own)

    def combine(self, c: Array, batch: RowBatch) -> Vector:
        """Return the sum of the rows times `c`, which has the shape of what `predict` returns: its transpose."""
        columns = [self.one.combine(np.ascontiguousarray(c[..., k]), batch) for k in range(self.n_classes)]
        return np.stack(columns, axis=-1).ravel()

    def slopes_at(self, prediction: Array, batch: RowBatch) -> Array:
        """Return the derivatives of the losses in the scores; for all rows times the rows' shares."""
        slopes: Array = softmax(prediction, axis=-1)
        slopes -= np.arange(self.n_classes) == self._classes(batch)[..., None]
        return slopes if batch.rows is not None else slopes * self.one.grouped_rows.shares[:, None]

    def _classes(self, batch: RowBatch) -> Any:
        return self.y if batch.rows is None else self.y.take(batch.rows)
