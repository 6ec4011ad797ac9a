"""A point of a sum: F and its derivatives there, and F along a line from it."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from stoic.inners.blocks import sums_by
from stoic.inners.threads import added, filled
from stoic.protocols import Array, Vector

if TYPE_CHECKING:
    from stoic.solvers.newton_sum import Sum

Product: TypeAlias = Callable[[Vector], tuple[Vector, Any]]
"""v ↦ ∇²F v, and the change of the predictions along v where the model is linear."""

_MOST_SQUARE = 1000  # entries of u up to which the Hessian of f is formed


class Line(NamedTuple):
    """F along a line from a point: its value at a step, and the point there."""

    value: Callable[[float], float]
    point: Callable[[float], "Point"]


class Point:
    """F and its first two derivatives at w, over all data."""

    t: Any = None

    def __init__(self, sum_: "Sum", w: Vector) -> None:
        self.sum, self.w = sum_, w
        self.u = self._values()
        self.value = sum_.problem.outer.value(self.u) + sum_.penalty(w)

    def __eq__(self, other: object) -> bool:
        """Whether both are at the same point, to the last bit of what is kept there."""
        if not isinstance(other, Point):
            return NotImplemented
        return np.array_equal(self.w, other.w) and np.array_equal(self.t, other.t)

    def __hash__(self) -> int:
        return hash(self.value)

    def _values(self) -> Vector:
        return cast("Vector", self.sum.problem.inner.value(self.w, self.sum.data)[0])

    @cached_property
    def q(self) -> Vector:
        """∇f(g(w))."""
        return self.sum.problem.outer.gradient(self.u)

    def _slope_of_data(self) -> Vector:
        return self.sum.problem.inner.vjp(self.w, self.sum.data, self.q)

    @cached_property
    def smooth(self) -> Vector:
        """The gradient of F without its L1 term."""
        return self._slope_of_data() + self.sum.terms.l2 * self.w + self.sum.terms.linear

    @cached_property
    def slope(self) -> Vector:
        """The one-sided derivatives of F, zero where both sides rise."""
        return one_sided(self.smooth, self.w, self.sum.terms.l1) if self.sum.has_l1 else self.smooth

    @cached_property
    def size(self) -> float:
        """The part of F that its slopes account for, or F itself where the inner part does not have it."""
        steepness = self._steepness()
        if steepness is None:
            return abs(self.value)
        accounted = float(np.abs(self.q) @ steepness)
        return min(abs(self.value), accounted + abs(self.sum.penalty(self.w)))

    def _steepness(self) -> Vector | None:
        inner: Any = self.sum.problem.inner
        if not hasattr(getattr(inner, "inner", inner), "steepness"):
            return None
        return cast("Vector", inner.steepness(self.w, self.sum.data))

    @cached_property
    def flat(self) -> Vector:
        """The curvature taken where there is none: a step along a slope then promises no more than F's size."""
        steep = np.abs(self.slope)
        return steep * (steep / (self.size or 1.0))

    def bent(self, v: Array) -> Array:
        """Return ∇²f(u) v; where p is large, the matrix is not formed."""
        outer: Any = self.sum.problem.outer
        if hasattr(outer, "hessian_product") and (self.u.size > _MOST_SQUARE or v.ndim == 1):
            return np.asarray(outer.hessian_product(self.u, v))
        return np.asarray(self._outer_hessian @ v)

    @cached_property
    def _outer_hessian(self) -> Array:
        return np.asarray(cast("Any", self.sum.problem.outer).hessian(self.u))

    @cached_property
    def z(self) -> Array:
        """The Jacobian of g."""
        return np.asarray(self.sum.problem.inner.jacobian(self.w, self.sum.data)[0])

    def _hessian_of_data(self, blend: float) -> Array:  # noqa: ARG002
        inner: Any = self.sum.problem.inner
        return np.asarray(inner.hessian(self.w, self.sum.data, self.q))

    def hessian(self, blend: float = 0.0) -> Array:
        """Return the matrix ∇²F, L1 left out; with a part of the curvature of parabolas above the losses."""
        matrix = self._hessian_of_data(blend)
        if not self.sum.is_linear:
            matrix = matrix + self.z.T @ self.bent(self.z)
        matrix[np.diag_indices(len(matrix))] += self.sum.terms.l2
        return matrix

    def product(self, blend: float = 0.0, ridge: Vector | float = 0.0) -> Product:  # noqa: ARG002
        """Return the function v ↦ ∇²F v, with a ridge."""
        inner: Any = self.sum.problem.inner
        ridge = self.sum.terms.l2 + ridge

        def times(v: Vector) -> tuple[Vector, Any]:
            curved = inner.hessian_product(self.w, self.sum.data, self.q, v)
            return curved + self.z.T @ self.bent(self.z @ v) + ridge * v, 0.0

        return times

    def diagonal(self, blend: float = 0.0) -> Vector:  # noqa: ARG002
        """Return the diagonal of ∇²F, or the curvature along its slope where the inner part does not have it."""
        inner: Any = self.sum.problem.inner
        if hasattr(getattr(inner, "inner", inner), "hessian_diagonal"):
            curved = inner.hessian_diagonal(self.w, self.sum.data, self.q)
            return np.asarray(curved + np.einsum("ik,ik->k", self.z, self.bent(self.z)) + self.sum.terms.l2)
        along = float(self.slope @ self.product()(self.slope)[0]) / max(float(self.slope @ self.slope), 1e-300)
        return np.full(self.w.shape, along)

    def line(self, direction: Vector, change: Any = None) -> Line:  # noqa: ARG002 - of predictions, which it has not
        """Return F along a direction."""
        inner, penalty, outer = self.sum.problem.inner, self.sum.penalty, self.sum.problem.outer

        def value(step: float) -> float:
            w = self.w + step * direction
            return outer.value(inner.value(w, self.sum.data)[0]) + penalty(w)

        return Line(value, lambda step: self.sum.at(self.w + step * direction))


class RowsPoint(Point):
    """A point of a linear model, with the predictions t: what is made of them costs no product with the rows."""

    def __init__(self, sum_: "Sum", w: Vector, t: Array) -> None:
        self.t, self.rows = t, sum_.rows
        sum_.count()
        super().__init__(sum_, w)

    def _values(self) -> Vector:
        return cast("Vector", self.rows.value_at(self.t, self.sum.data)[0])

    def _steepness(self) -> Vector | None:
        return self.rows.steepness_at(self.t) if hasattr(self.rows, "steepness_at") else None

    @cached_property
    def slopes(self) -> Array:
        """The derivatives of the losses times the rows' shares."""
        return np.asarray(self.rows.slopes_at(self.t, self.sum.data))

    def curvatures(self, blend: float) -> Array:
        """Return what the rows make of second derivatives."""
        return np.asarray(self.rows.curvatures_at(self.t, blend))

    @cached_property
    def weights(self) -> Array:
        """∇f of the group of each row."""
        weights = self.q.take(self.sum.codes)
        return weights if self.t.ndim == 1 else weights[:, None]

    def _slope_of_data(self) -> Vector:
        if self.sum.has_z:
            return np.asarray(self.q @ self.z)
        return cast("Vector", self.rows.combine(self.slopes * self.weights, self.sum.data))

    @cached_property
    def z(self) -> Array:
        """The Jacobian of g."""
        if self.t.ndim == 1:
            return np.asarray(self.rows.means_of(self.slopes, self.sum.data)[0])
        return np.asarray(self.rows.jacobian(self.w, self.sum.data)[0])

    def _hessian_of_data(self, blend: float) -> Array:
        return np.asarray(self.rows.hessian_at(self.curvatures(blend), self.q))

    def product(self, blend: float = 0.0, ridge: Vector | float = 0.0) -> Product:
        """Return the function v ↦ ∇²F v with a ridge: f adds a term of the rank of its curvature to the same."""
        ridge = self.sum.terms.l2 + ridge
        shifted, curved = np.empty(self.w.shape), self.curvatures(blend)
        curved = curved * self.weights if self.t.ndim == 1 else curved

        def times(v: Vector) -> tuple[Vector, Any]:
            change = self.rows.predict(v, self.sum.data)
            terms = self._bent_terms(curved, change)
            whole: Vector = self.rows.combine(terms, self.sum.data)
            whole += np.multiply(ridge, v, out=shifted)
            return whole, change

        return times

    def _bent_terms(self, curved: Array, change: Array) -> Array:
        """Return what a change of the predictions adds to the slopes times the weights, to first order."""
        slopes, codes, n = self.slopes, self.sum.codes, len(change)
        if change.ndim > 1:
            terms = self.rows.bent(curved, change) * self.weights
            if self.sum.is_linear:
                return np.asarray(terms)
            bent = self.bent(sums_by(codes, (slopes * change).sum(axis=1), self.u.size))
            return np.asarray(terms + slopes * bent.take(codes)[:, None])
        if self.sum.is_linear:
            return np.asarray(curved * change)
        bent = self.bent(added(n, lambda j: sums_by(codes[j], slopes[j] * change[j], self.u.size)))
        return filled(n, lambda j: curved[j] * change[j] + slopes[j] * bent.take(codes[j]))

    def diagonal(self, blend: float = 0.0) -> Vector:
        """Return the diagonal of ∇²F but for the part of f, which is of low rank."""
        return np.asarray(self.rows.diagonal_at(self.curvatures(blend), self.q) + self.sum.terms.l2)

    def line(self, direction: Vector, change: Any = None) -> Line:
        """Return F along a direction: after one product with the rows, none at all."""
        change = self.rows.predict(direction, self.sum.data) if change is None else change
        made: dict[float, RowsPoint] = {}

        def point(step: float) -> RowsPoint:
            if step not in made:
                made.clear()
                made[step] = RowsPoint(self.sum, self.w + step * direction, self.t + step * change)
            return made[step]

        return Line(lambda step: point(step).value, point)


def one_sided(smooth: Vector, w: Vector, l1: Vector) -> Vector:
    """Return the one-sided derivatives of a function with an L1 term, zero where both sides rise."""
    at_zero = np.sign(smooth) * np.maximum(np.abs(smooth) - l1, 0.0)
    return np.asarray(np.where(w != 0.0, smooth + l1 * np.sign(w), at_zero))
