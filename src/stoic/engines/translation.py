"""Parts of a problem as the plain arrays and numbers that kernels take."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.inners.group_loss import GroupLoss
from stoic.kernels.batches import Data, products
from stoic.kernels.losses import ABSOLUTE, HUBER, LOGISTIC, QUANTILE, SQUARED
from stoic.kernels.losses import Loss as LossCode
from stoic.kernels.outers import LINEAR, LOGSUMEXP, SMOOTH_CVAR
from stoic.kernels.outers import Outer as OuterCode
from stoic.kernels.rows import CSR, Dense
from stoic.losses import Absolute, Huber, Logistic, Loss, Quantile, Squared
from stoic.outers import Linear, LogSumExp, SmoothCVaR
from stoic.problem import Problem
from stoic.protocols import AnyInner, Outer, Regularizer, Vector
from stoic.regularizers import L1, L2, ElasticNet, LeavingLast, Zero

_UNSIGNED = {4: np.uint32, 8: np.uint64}


class Anchor(NamedTuple):
    """A point that all coordinates are pulled to, by (weight/2)‖w − center‖²."""

    center: Vector | None
    weight: float


NO_ANCHOR = Anchor(None, 0.0)


class Translated(NamedTuple):
    """A problem in the kernels' terms; the regularizer is l1·‖w‖₁ + (l2/2)‖w‖², and the anchor's term."""

    inner: GroupLoss
    data: Data
    outer: OuterCode
    l1: float
    l2: float
    anchor: Anchor = NO_ANCHOR

    def anchored(self, anchor: Anchor) -> "Translated":
        """Return the problem with the anchor's term."""
        if anchor.center is None:
            return self
        along_c = np.empty(self.inner.n_samples)
        products(self.data.X, read_only(anchor.center[: self.inner.X.shape[1]]), along_c)
        return self._replace(anchor=anchor, data=self.data._replace(along_c=read_only(along_c)))


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


def translate(problem: Problem, inner: GroupLoss) -> Translated:
    """Return the problem in the kernels' terms, without copying X."""
    l1, l2 = _bare(problem.regularizer).weights  # type: ignore[attr-defined]
    nowhere = read_only(np.zeros(0))
    data = Data(_rows(inner.X), read_only(inner.y), _loss(inner.loss), inner.intercept, nowhere)
    return Translated(inner, data, _outer(problem.outer, inner.n_groups), float(l1), float(l2))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: kernels then compile once, whatever they are given."""
    view = array.view()
    view.flags.writeable = False
    return view


def _bare(regularizer: Regularizer) -> Regularizer:
    return regularizer.regularizer if isinstance(regularizer, LeavingLast) else regularizer


def _rows(X: Any) -> CSR | Dense:
    if isinstance(X, np.ndarray):
        return Dense(read_only(X))
    indices = X.indices.view(_UNSIGNED[X.indices.dtype.itemsize])
    return CSR(read_only(X.indptr), read_only(indices), read_only(X.data))


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
    if isinstance(outer, Linear):
        return OuterCode(LINEAR, outer.gradient(np.zeros(p)), 1.0, 1.0)
    if isinstance(outer, SmoothCVaR):
        return OuterCode(SMOOTH_CVAR, np.ones(p), float(outer.temperature), max(1.0, outer.level * p))
    prior = np.full(p, 1.0 / p) if outer.prior is None else np.array(outer.prior)  # type: ignore[attr-defined]
    return OuterCode(LOGSUMEXP, prior, float(outer.temperature), 1.0)  # type: ignore[attr-defined]
