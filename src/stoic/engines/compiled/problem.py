"""A problem as the plain arrays and numbers that kernels take."""

from typing import Any, NamedTuple, cast

import numpy as np

from stoic.codes import OuterCode, PenaltyCode
from stoic.engines.kernels.parts.batches import Data
from stoic.engines.kernels.rows import Dense, Standardized, csr_rows, read_only
from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.protocols import Regularizer, Vector
from stoic.regularizers import Anchored, LeavingLast


class Anchor(NamedTuple):
    """A point that all coordinates are pulled to, by (weight/2)‖w − center‖²."""

    center: Vector | None
    weight: float


NO_ANCHOR = Anchor(None, 0.0)


class Translated(NamedTuple):
    """A problem in the kernels' terms; the regularizer is the penalty and the anchor's term.

    `norms` keeps the norms of rows, NaN until a kernel asks for them. `by_column` are the weights of a penalty
    that has its own for each coordinate.
    """

    inner: GroupLoss
    data: Data
    outer: OuterCode
    penalty: PenaltyCode
    norms: Vector
    anchor: Anchor = NO_ANCHOR
    by_column: tuple[Vector, Vector] | None = None


def translate(problem: Problem, inner: GroupLoss) -> Translated:
    """Return the problem in the kernels' terms, without copying X."""
    X = _rows(inner)
    loss, outer, regularizer = (
        cast("Any", part) for part in (inner.loss, problem.outer, bare(problem.regularizer))
    )
    data = Data(X, read_only(inner.y), loss.code, inner.intercept, _largest(inner))
    unknown = np.full(inner.n_samples, np.nan)
    parts = inner, data, outer.code(inner.n_groups), regularizer.code, unknown
    return Translated(*parts, by_column=getattr(regularizer, "weights_by_column", None))


def _rows(inner: GroupLoss) -> Any:
    if not isinstance(inner.X, np.ndarray):
        return csr_rows(inner.X)
    if inner.scale is None or inner.center is None:
        return Dense(read_only(inner.X))
    return Standardized(read_only(inner.X), read_only(inner.center), read_only(1.0 / inner.scale))


def bare(regularizer: Regularizer) -> Regularizer:
    """Return r without what leaves an intercept alone."""
    return regularizer.regularizer if isinstance(regularizer, LeavingLast) else regularizer


def anchor_of(regularizer: Regularizer) -> Anchor:
    """Return the anchor of a regularizer that has at most one."""
    if isinstance(regularizer, Anchored):
        return Anchor(regularizer.center, regularizer.weight)
    return NO_ANCHOR


def _largest(inner: GroupLoss) -> float:
    """Return the largest |entry| of the rows, at least 1, without a copy of X."""
    X: Any = inner.X
    if inner.scale is None or inner.center is None:
        values = X if isinstance(X, np.ndarray) else X.data
        return float(max(1.0, values.max(initial=0.0), -values.min(initial=0.0)))
    ends = np.array([X.max(axis=0, initial=-np.inf), X.min(axis=0, initial=np.inf)], dtype=np.float64)
    return float(max(1.0, np.abs((ends - inner.center) / inner.scale).max(initial=0.0)))
