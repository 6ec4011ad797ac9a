"""Parts of a problem as the plain arrays and numbers that kernels take."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.engines.kernels.parts.batches import Data, Penalty
from stoic.engines.kernels.parts.losses import ABSOLUTE, HUBER, LOGISTIC, QUANTILE, SQUARED, Loss as LossCode
from stoic.engines.kernels.parts.outers import LINEAR, LOGSUMEXP, SMOOTH_CVAR, Outer as OuterCode
from stoic.engines.kernels.rows import CSR, Dense, csr_rows, read_only
from stoic.inners.group_loss import GroupLoss
from stoic.losses import Absolute, Huber, Logistic, Loss, Quantile, Squared
from stoic.outers import Linear, LogSumExp, SmoothCVaR
from stoic.problem import Problem
from stoic.protocols import AnyInner, Array, Outer, Regularizer, Vector
from stoic.regularizers import L1, L2, ElasticNet, LeavingLast, Zero


class Anchor(NamedTuple):
    """A point that all coordinates are pulled to, by (weight/2)‖w − center‖²."""

    center: Vector | None
    weight: float


NO_ANCHOR = Anchor(None, 0.0)


class Translated(NamedTuple):
    """A problem in the kernels' terms; the regularizer is the penalty and the anchor's term.

    `norms` keeps the norms of rows, NaN until a kernel asks for them. `order` tells which column of X each column
    of the kernels is, where they were renumbered.
    """

    inner: GroupLoss
    data: Data
    outer: OuterCode
    penalty: Penalty
    norms: Vector
    order: NDArray[Any] | None = None
    anchor: Anchor = NO_ANCHOR

    def inward(self, vectors: Array) -> Array:
        """Return vectors (…, d) with their columns as the kernels number them; the intercept stays last."""
        return vectors if self.order is None else vectors.take(self.order, axis=-1)

    def outward(self, vectors: Array) -> Array:
        """Return the kernels' vectors with their columns as X has them."""
        if self.order is None:
            return vectors
        out = np.empty_like(vectors)
        out[..., self.order] = vectors
        return out


def missing_parts(problem: Problem, inner: AnyInner) -> list[str]:
    """Return what the kernels lack for a problem; nothing if they can run it."""
    if type(inner) is not GroupLoss:
        return [f"the inner part {inner!r} (only GroupLoss is compiled)"]
    missing = []
    if type(inner.loss) not in _LOSS_KINDS:
        missing.append(f"the loss {inner.loss!r}")
    if type(problem.outer) not in {Linear, LogSumExp, SmoothCVaR}:
        missing.append(f"the outer function {problem.outer!r}")
    if type(_bare(problem.regularizer)) not in {Zero, L1, L2, ElasticNet}:
        missing.append(f"the regularizer {problem.regularizer!r}")
    return missing


def translate(problem: Problem, inner: GroupLoss, *, renumber: bool = False) -> Translated:
    """Return the problem in the kernels' terms, without copying X; to renumber columns, its indices are copied."""
    order = _by_frequency(inner) if renumber and not isinstance(inner.X, np.ndarray) else None
    X = _rows(inner.X, order)
    data = Data(X, read_only(inner.y), _loss(inner.loss), inner.intercept, _largest(inner.X))
    penalty = Penalty(*(float(weight) for weight in _bare(problem.regularizer).weights))  # type: ignore[attr-defined]
    unknown = np.full(inner.n_samples, np.nan)
    return Translated(inner, data, _outer(problem.outer, inner.n_groups), penalty, unknown, order)


def _bare(regularizer: Regularizer) -> Regularizer:
    return regularizer.regularizer if isinstance(regularizer, LeavingLast) else regularizer


def _by_frequency(inner: GroupLoss) -> NDArray[Any]:
    """Return the columns of w, the most frequent first: those that many rows have then share cache lines."""
    counts = np.bincount(inner.X.indices, minlength=inner.X.shape[1])
    order = np.argsort(-counts, kind="stable")
    return np.append(order, order.size) if inner.intercept else order


def _rows(X: Any, order: NDArray[Any] | None) -> CSR | Dense:
    if isinstance(X, np.ndarray):
        return Dense(read_only(X))
    rows = csr_rows(X)
    if order is None:
        return rows
    numbers = np.empty(order.size, dtype=rows.indices.dtype)
    numbers[order] = np.arange(order.size)
    return rows._replace(indices=read_only(numbers.take(rows.indices)))


def _largest(X: Any) -> float:
    """Return the largest |entry|, at least 1, without a copy of X."""
    values = X if isinstance(X, np.ndarray) else X.data
    return float(max(1.0, values.max(initial=0.0), -values.min(initial=0.0)))


_LOSS_KINDS: dict[type, int] = {
    Squared: SQUARED,
    Huber: HUBER,
    Absolute: ABSOLUTE,
    Quantile: QUANTILE,
    Logistic: LOGISTIC,
}


def _loss(loss: Loss) -> LossCode:
    scale = getattr(loss, "threshold", getattr(loss, "smoothing", 1.0))
    return LossCode(_LOSS_KINDS[type(loss)], float(scale), float(getattr(loss, "level", 0.5)))


def _outer(outer: Outer, p: int) -> OuterCode:
    given = getattr(outer, "baseline", None)
    baseline = np.zeros(p) if given is None else np.array(given)
    if isinstance(outer, Linear):
        return OuterCode(LINEAR, outer.gradient(np.zeros(p)), baseline, 1.0, 1.0, np.empty(0))
    temperature = float(outer.temperature)  # type: ignore[attr-defined]
    if isinstance(outer, SmoothCVaR):
        return OuterCode(SMOOTH_CVAR, np.ones(p), baseline, temperature, max(1.0, outer.level * p), np.empty(p))
    prior = np.full(p, 1.0 / p) if outer.prior is None else np.array(outer.prior)  # type: ignore[attr-defined]
    return OuterCode(LOGSUMEXP, prior, baseline, temperature, 1.0, np.empty(0))
