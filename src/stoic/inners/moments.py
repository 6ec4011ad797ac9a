r"""The first two moments of the return xᵀw: the inner part of mean-variance problems."""

from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.inners.blocks import means_over_blocks, require_one_block
from stoic.inners.designs import Matrix, RowBatch
from stoic.inners.groups import GroupedRows
from stoic.inners.over_rows import OverRows, make_design
from stoic.inners.validation import check_matrix
from stoic.protocols import Array, Vector


class Moments(OverRows):
    r"""The moments :math:`g(w) = (\mathrm E[x^\top w], \mathrm E[(x^\top w)^2])` over the rows x of X.

    With ``MeanVariance(weight)`` as outer function, (1) is Markowitz' problem for the portfolio w.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, d)
        Returns: a row a period, a column an asset. Used without a copy as in `GroupLoss`.

    Raises
    ------
    InvalidProblem
        If X is not a matrix of finite numbers; the message names the row and the column.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.inners import Moments
    >>> inner = Moments([[0.1, 0.3], [0.1, -0.1]])
    >>> inner.value(np.array([0.0, 1.0]), inner.everything()).round(3)
    array([[0.1 , 0.05]])
    """

    n_samples: int

    def __init__(self, X: Any) -> None:
        self.X: Matrix = check_matrix("X", X)
        self.n_samples = int(self.X.shape[0])
        self._rows = GroupedRows(np.zeros(self.n_samples, dtype=np.intp), 1)
        self._design = make_design(self.X)

    def __repr__(self) -> str:
        return f"Moments({self.n_samples} rows, {self.X.shape[1]} columns)"

    @property
    def shape(self) -> tuple[int, int]:
        """(2, d)."""
        return 2, self._design.d

    @property
    def n_unpenalized(self) -> int:
        """0: there is no intercept."""
        return 0

    def draw(self, size: int, rng: Generator) -> RowBatch:
        """Draw `size` rows with replacement."""
        return RowBatch(self._rows.draw(size, rng))

    def cost(self, size: int) -> int:
        """Return `size`: one row serves both moments."""
        return size

    def value(self, w: Vector, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of xᵀw and its square, of shape (blocks, 2)."""
        if batch.rows is None:
            require_one_block(blocks)
        returns = self.predict(w, batch).ravel()
        return means_over_blocks(np.stack([returns, np.square(returns)]), blocks)

    def jacobian(self, w: Vector, batch: RowBatch, blocks: int = 1) -> Array:
        """Return the block means of x and 2 (xᵀw) x, of shape (blocks, 2, d)."""
        slopes = self._slopes(w, batch)
        if batch.rows is not None:
            return np.concatenate([self._design.block_means(c, batch, blocks) for c in slopes[:, None]], axis=1)
        require_one_block(blocks)
        return np.stack([self.combine(c, batch) for c in slopes / self.n_samples])[None]

    def vjp(self, w: Vector, batch: RowBatch, q: Vector) -> Vector:
        """Return zᵀq for the mean Jacobian z of the batch: one combination of its rows."""
        slopes = self._slopes(w, batch)
        return self.combine((q / slopes.shape[1]).dot(slopes), batch)

    def hessian(self, w: Vector, batch: RowBatch, q: Vector) -> Array:  # noqa: ARG002 - it is the same everywhere
        """Return Σ q_i ∇²g_i(w) = 2 q_2 E xxᵀ for the batch of all rows, of shape (d, d)."""
        return self.gram(np.full(self.n_samples, 2.0 * q[1] / self.n_samples))

    def hessian_product(self, w: Vector, batch: RowBatch, q: Vector, v: Vector) -> Vector:  # noqa: ARG002
        """Return the product of `hessian` with v, without forming the matrix."""
        return self.combine(2.0 * q[1] / self.n_samples * self.predict(v, batch), batch)

    def _slopes(self, w: Vector, batch: RowBatch) -> Array:
        """Return the derivatives of both moments in xᵀw, of shape (2, size)."""
        returns = self.predict(w, batch).ravel()
        return np.stack([np.ones_like(returns), 2.0 * returns])
