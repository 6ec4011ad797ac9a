"""A fixed sample of a problem, to be evaluated at many points."""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast
from weakref import ref

import numpy as np
from numpy.random import Generator

from stoic.errors import InvalidParameter
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import Metered
from stoic.problem import Problem
from stoic.protocols import Array, Vector

_PIECE = 1 << 13
_ENTRIES = 1 << 21  # of z that are held at a time: 16 MB


def product(x: Vector, y: Vector) -> float:
    """Return x·y, piece by piece: BLAS shares longer products among threads, which wait for a busy core."""
    whole = x.size // _PIECE * _PIECE
    pieces = np.vecdot(x[:whole].reshape(-1, _PIECE), y[:whole].reshape(-1, _PIECE))
    return float(pieces.sum() + x[whole:] @ y[whole:])


def length(x: Vector) -> float:
    """Return ‖x‖."""
    return math.sqrt(product(x, x))


class Sample:
    """A fixed batch of a problem: deterministic functions of w. What is known at the last w is not computed again.

    Parameters
    ----------
    problem : Problem
    batch : batch of the problem's inner part
    size : int
        Of what was drawn.
    """

    def __init__(self, problem: Problem, batch: Any, size: int) -> None:
        self.problem, self.batch, self.size = problem, batch, size
        self._last: tuple[ref[Vector] | None, Any] = None, None

    @property
    def is_sparse(self) -> bool:
        """Whether it consists of sparse rows."""
        return False

    @property
    def work(self) -> int:
        """Numbers that a gradient passes over, as far as they are known."""
        return self.problem.dimension

    def value(self, w: Vector) -> Vector:
        """Return the mean of g(w; ξ)."""
        mean: Vector = self._at(w, lambda: self.problem.inner.value(w, self.batch)[0])
        return mean

    def values(self, w: Vector, blocks: int) -> Array:
        """Return the means of g(w; ξ) over blocks, of shape (blocks, p)."""
        return self.problem.inner.value(w, self.batch, blocks)

    def vjp(self, w: Vector, q: Vector) -> Vector:
        """Return zᵀq for the mean z of ∇g(w; ξ)."""
        return self.problem.inner.vjp(w, self.batch, q)

    def smooth(self, w: Vector) -> float:
        """Return f(mean of g(w; ξ))."""
        return self.problem.outer.value(self.value(w))

    def gradient(self, w: Vector) -> Vector:
        """Return the gradient of `smooth`."""
        return self.vjp(w, self.problem.outer.gradient(self.value(w)))

    def objective(self, w: Vector) -> float:
        """Return `smooth` plus r(w)."""
        return self.smooth(w) + self.problem.regularizer.value(w)

    def change(self, w: Vector, step: Vector, q: Vector | None = None) -> Vector:
        """Return by how much `gradient`, or zᵀq for a fixed q, changes from w − step to w + step."""
        ahead, behind = w + step, w - step
        if q is None:
            return self.gradient(ahead) - self.gradient(behind)
        return self.vjp(ahead, q) - self.vjp(behind, q)

    def jacobian_change(self, w: Vector, step: Vector) -> float:
        """Return the Frobenius norm of the change of z from w − step to w + step."""
        inner = self.problem.inner
        return float(np.linalg.norm(inner.jacobian(w + step, self.batch) - inner.jacobian(w - step, self.batch)))

    def forget(self) -> None:
        """Let go of what is large and can be computed again."""

    def _at(self, w: Vector, compute: Callable[[], Any]) -> Any:
        """Return what was computed at w, if that was the last point."""
        if self._last[0] is None or self._last[0]() is not w:
            self._last = ref(w), compute()
        return self._last[1]


class LinearSample(Sample):
    """A fixed batch of a linear model: what it predicts at w ± step follows from w and the step."""

    def __init__(self, problem: Problem, batch: Any, size: int) -> None:
        super().__init__(problem, batch, size)
        self.meter = problem.inner if isinstance(problem.inner, Metered) else None
        self.inner: GroupLoss = cast("GroupLoss", self.meter.inner if self.meter else problem.inner)
        self.rows: RowBatch = batch.batch if self.meter else batch

    @property
    def is_sparse(self) -> bool:
        """Whether it consists of sparse rows; no row that is centered is sparse."""
        return not (isinstance(self.inner.X, np.ndarray) or self.inner.is_standardized)

    @property
    def work(self) -> int:
        """Numbers that a gradient passes over: the entries of the rows, and w."""
        X = self.inner.X
        entries = X.nnz if hasattr(X, "nnz") else X.size
        return int(self.problem.dimension + self.size * self.inner.n_groups * entries // X.shape[0])

    def value(self, w: Vector) -> Vector:
        """Return the mean of g(w; ξ)."""
        mean: Vector = self.values(w, 1)[0]
        return mean

    def values(self, w: Vector, blocks: int) -> Array:
        """Return the means of g(w; ξ) over blocks."""
        self._count(w)
        return self.inner.value_at(self._prediction(w), self.rows, blocks)

    def vjp(self, w: Vector, q: Vector) -> Vector:
        """Return zᵀq for the mean z of ∇g(w; ξ)."""
        self._count(w)
        return self.inner.combine(self._weights(self._prediction(w), q), self.rows)

    def slopes(self, w: Vector) -> Array:
        """Return the derivatives of the losses in the predictions at w."""
        self._count(w)
        return self.inner.slopes_at(self._prediction(w), self.rows)

    def change(self, w: Vector, step: Vector, q: Vector | None = None) -> Vector:
        """Return the change between two points: one product with the rows, one combination of them."""
        ahead, behind = (self._weights(prediction, q) for prediction in self._around(w, step))
        return self.inner.combine(ahead - behind, self.rows)

    def jacobian_change(self, w: Vector, step: Vector) -> float:
        """Return the Frobenius norm of the change of z, some rows of it after others."""
        ahead, behind = (self.inner.slopes_at(prediction, self.rows) for prediction in self._around(w, step))
        change, some = ahead - behind, max(1, _ENTRIES // self.inner.shape[1])
        norms = []
        for first in range(0, len(change), some):
            part = slice(first, first + some)
            rows = self.rows if some >= len(change) else RowBatch(self.rows.rows[part])  # type: ignore[index]
            norms.append(length(self.inner.means_of(change[part], rows).ravel()))
        return math.hypot(*norms)

    def forget(self) -> None:
        """Let go of the rows that were gathered."""
        self.rows.forget()

    def _prediction(self, w: Vector) -> Array:
        prediction: Array = self._at(w, lambda: self.inner.predict(w, self.rows))
        return prediction

    def _weights(self, prediction: Array, q: Vector | None) -> Array:
        """Return the weights of the rows in zᵀq, by default for q = ∇f, where the model predicts `prediction`."""
        if q is None:
            q = self.problem.outer.gradient(self.inner.value_at(prediction, self.rows)[0])
        return self.inner.slopes_at(prediction, self.rows) * (q / self.size)[:, None]

    def _around(self, w: Vector, step: Vector) -> tuple[Array, Array]:
        """Return the predictions at w + step and w − step, two new points."""
        if self.meter is not None:
            self.meter.charge(0, 2 * self.batch.size)
        here, along = self._prediction(w), self.inner.predict(step, self.rows)
        return here + along, here - along

    def _count(self, w: Vector) -> None:
        if self.meter is not None:
            self.meter.count(w, self.batch)


class Pooled(Sample):
    """Several samples of one problem as one: means over all of them."""

    def __init__(self, parts: Sequence[Sample]) -> None:
        super().__init__(parts[0].problem, None, sum(part.size for part in parts))
        self.parts = parts

    @property
    def work(self) -> int:
        """Numbers that a gradient passes over."""
        return sum(part.work for part in self.parts)

    def value(self, w: Vector) -> Vector:
        """Return the mean of g(w; ξ)."""
        mean: Vector = self._at(w, lambda: self._mean(lambda part: part.value(w)))
        return mean

    def values(self, w: Vector, blocks: int) -> Array:
        """Return g(w; ξ) draw by draw, of shape (blocks, p); there is no other number of blocks."""
        if blocks != self.size:
            raise InvalidParameter(f"blocks={blocks}, but samples that were pooled have {self.size}, one a draw.")
        return np.concatenate([part.values(w, part.size) for part in self.parts])

    def vjp(self, w: Vector, q: Vector) -> Vector:
        """Return zᵀq for the mean z of ∇g(w; ξ)."""
        return self._mean(lambda part: part.vjp(w, q))

    def forget(self) -> None:
        """Let go of what the parts keep."""
        for part in self.parts:
            part.forget()

    def _mean(self, of: Callable[[Sample], Vector]) -> Vector:
        """Return the mean over the parts, which is summed up one by one: a term may be as long as w."""
        first, *others = self.parts
        total = of(first) * (first.size / self.size)
        for part in others:
            total += of(part) * (part.size / self.size)
        return total


def make_sample(problem: Problem, batch: Any, size: int) -> Sample:
    """Return a batch of `size` draws, to be evaluated at many points."""
    inner = problem.inner.inner if isinstance(problem.inner, Metered) else problem.inner
    return (LinearSample if type(inner) is GroupLoss else Sample)(problem, batch, size)


def draw_sample(problem: Problem, size: int, rng: Generator) -> Sample:
    """Draw a batch of `size` to be evaluated at many points."""
    return make_sample(problem, problem.inner.draw(size, rng), size)
