"""A diagonal metric: the variables v in which columns are alike, and a problem in these."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.errors import IncompatibleParts
from stoic.guards import is_foreign
from stoic.inners.group_loss import GroupLoss
from stoic.inners.in_metric import InMetric
from stoic.inners.metered import Metered
from stoic.pilot.fixed_sample import LinearSample, Sample
from stoic.problem import Problem
from stoic.protocols import Regularizer, Vector
from stoic.regularizers import Anchored, Box, LeavingLast, Weighted, Zero, terms_of

_ALIKE = 3.0  # ratio of the largest scale of a column to the smallest: with less there is little to gain
_CENTERED = 2.0  # deviations: a mean within so many does little harm
_WILD = 6.0  # root mean squares: an entry beyond is what the scale has to suit
_SMALLEST = 1e-150


@dataclass(frozen=True, eq=False)
class Metric:
    r"""Variables v with :math:`w_k = s_k v_k`, columns centered at c where there is an intercept.

    The model is then one of the columns :math:`s_k (x_k - c_k)`, of which none is formed: with the intercept b of
    w, that of v is
    :math:`b + \sum_k c_k w_k`.

    Attributes
    ----------
    scale : ndarray of shape (d,)
        s; without an intercept's, which is 1.
    center : ndarray or None
        c; None where nothing is centered.
    """

    scale: Vector
    center: Vector | None = None

    def into(self, w: Vector) -> Vector:
        """Return v."""
        n = self.scale.size
        v = w.copy()
        v[:n] /= self.scale
        if self.center is not None:
            v[n] += self.center @ w[:n]
        return v

    def out_of(self, v: Vector) -> Vector:
        """Return w."""
        n = self.scale.size
        w = v.copy()
        w[:n] *= self.scale
        if self.center is not None:
            w[n] -= self.center @ w[:n]
        return w

    def problem(self, problem: Problem) -> Problem:
        """Return the problem in v, with the same meter around its inner part, if there is one.

        Raises
        ------
        IncompatibleParts
            If the regularizer is neither a penalty of the library nor a box, or an anchor, or a given scale has
            another size.
        """
        bare, n = problem.regularizer, self.scale.size
        n_last = problem.inner.n_unpenalized
        if n + n_last != problem.dimension:
            raise IncompatibleParts(
                f"scale has {n} entries for {problem.dimension - n_last} variables; give one for each."
            )
        regularizer = _in_metric(bare.regularizer if isinstance(bare, LeavingLast) else bare, self.scale)
        if regularizer is None:
            raise IncompatibleParts(f"{bare!r} cannot be written in scaled variables; use scale=None.")
        if n_last:
            regularizer = LeavingLast(regularizer, n_last)
        return problem.with_inner(self._inner(problem.inner)).with_regularizer(regularizer)

    def _inner(self, inner: Any) -> Any:
        bare = inner.inner if isinstance(inner, Metered) else inner
        if type(bare) is not GroupLoss or is_foreign(bare):
            tail = np.ones(inner.shape[1] - self.scale.size)
            return InMetric(inner, np.concatenate([self.scale, tail]))
        center = np.zeros(self.scale.size) if self.center is None else self.center
        scaled = bare.in_columns(center, 1.0 / self.scale)
        return inner.around(scaled) if isinstance(inner, Metered) else scaled


def _in_metric(regularizer: Regularizer, scale: Vector) -> Regularizer | None:
    """Return r(s·v) as a regularizer of v; None where there is none."""
    if isinstance(regularizer, Zero):
        return regularizer
    if isinstance(regularizer, Box):
        return Box(np.divide(regularizer.low, scale), np.divide(regularizer.high, scale))
    terms = None if isinstance(regularizer, Anchored) else terms_of(regularizer, scale.size)
    if terms is None or terms.linear.any():
        return None
    return Weighted(terms.l1 * scale, terms.l2 * scale**2)


def learned_metric(problem: Problem, parts: list[Sample]) -> tuple[Metric | None, str]:
    """Return the metric that the rows of a pilot speak for, and why there is none where there is none.

    The scale of a column is one over its root mean square, the median of those of the parts, and at most six over
    its largest entry: a column that is nearly always zero must not make steps that its few entries cannot bear.
    With an intercept it is that of the deviations from the column's mean, which is the median of the parts' means.
    """
    inner = problem.inner.inner if isinstance(problem.inner, Metered) else problem.inner
    if (
        type(inner) is not GroupLoss
        or is_foreign(inner)
        or not isinstance(inner.X, np.ndarray)
        or inner.is_standardized
    ):
        return None, "rows that are not dense are taken as they are"
    bare = problem.regularizer.regularizer if isinstance(problem.regularizer, LeavingLast) else problem.regularizer
    if _in_metric(bare, np.ones(inner.X.shape[1])) is None:
        return None, f"{bare!r} is taken as it is"
    drawn = [_rows_of(inner, part) for part in parts]
    center = (
        np.median([rows.mean(axis=0) for rows in drawn], axis=0) if inner.intercept else np.zeros(inner.X.shape[1])
    )
    squares = np.median([np.square(rows - center).mean(axis=0) for rows in drawn], axis=0)
    largest = np.sort([np.abs(rows - center).max(axis=0) for rows in drawn], axis=0)[-2:][0]  # one may be wild
    sizes = np.maximum(np.sqrt(squares), largest / _WILD)
    seen = (sizes > _SMALLEST * max(1.0, float(sizes.max(initial=0.0)))) & (sizes < math.inf)
    if not seen.any():
        return None, "the columns are all zero"
    is_far = inner.intercept and bool((np.abs(center) > _CENTERED * sizes)[seen].any())
    if not is_far and sizes[seen].max() <= _ALIKE * sizes[seen].min():
        return None, "the columns are alike"
    sizes = np.where(seen, sizes, math.exp(float(np.log(sizes[seen]).mean())))
    return Metric(1.0 / sizes, center if is_far else None), ""


def _rows_of(inner: GroupLoss, part: Sample) -> Any:
    rows: Any = part.rows.rows if isinstance(part, LinearSample) else part.batch.rows
    return inner.X[rows.ravel()].astype(np.float64, copy=False)
