"""F over some rows and coordinates of a problem, and where it is evaluated: with its derivatives, or along a line."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from stoic.guards import is_foreign
from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.metered import Metered
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Array, Vector
from stoic.regularizers import Terms, terms_of

Product: TypeAlias = Callable[[Vector], tuple[Vector, Any]]
"""v ↦ ∇²F v, and the change of the predictions along v where the model is linear."""

MOST_DENSE = 1000  # variables up to which the Hessian is formed
_MOST_JACOBIAN = 1 << 20  # numbers of the Jacobian of g
_MOST_KEPT = 1 << 20  # numbers of rows that are kept group by group, in a copy
_MOST_SQUARE = 1000  # entries of u up to which the Hessian of f is formed


@dataclass(frozen=True)
class Sum:
    """F over all data of a problem, or over some rows and coordinates of a linear model.

    Attributes
    ----------
    problem : Problem
        Its inner part counts what is evaluated where it is `Metered`.
    data : object
        All data, as the inner part gives them.
    terms : Terms
        Of the regularizer.
    constant : float
        What the regularizer has beside its terms.
    deadline : float
        When to stop, by `time.perf_counter`.
    """

    problem: Problem
    data: Any
    terms: Terms
    deadline: float = math.inf

    @cached_property
    def rows(self) -> Any:
        """The rows of a linear model of the library; None where the inner part is another."""
        inner = getattr(self.problem.inner, "inner", self.problem.inner)
        is_own = type(inner) in {GroupLoss, GroupSoftmax} and not is_foreign(inner)
        return inner if is_own else None

    @cached_property
    def is_linear(self) -> bool:
        """Whether f has no curvature."""
        return isinstance(self.problem.outer, Linear)

    @cached_property
    def n(self) -> int:
        """The number of data points."""
        return int(self.problem.inner.n_samples or 0)

    @cached_property
    def has_l1(self) -> bool:
        """Whether there is an L1 term."""
        return bool(self.terms.l1.any())

    @cached_property
    def codes(self) -> IntArray:
        """The groups of the rows."""
        return cast("IntArray", getattr(self.rows, "one", self.rows).grouped_rows.codes)

    @cached_property
    def has_z(self) -> bool:
        """Whether the Jacobian of g is wanted anyhow, and the slopes are made of it."""
        p, d = self.problem.inner.shape
        return type(self.rows) is GroupLoss and not self.is_linear and d <= MOST_DENSE and p * d <= _MOST_JACOBIAN

    @property
    def designs(self) -> Iterable[tuple[IntArray, Any]]:
        """The row numbers of each group, and the design of these rows: one after another where they are many."""
        return self._designs if self.entries <= _MOST_KEPT else self._each_design()

    @cached_property
    def _designs(self) -> list[tuple[IntArray, Any]]:
        return list(self._each_design())

    def _each_design(self) -> Iterator[tuple[IntArray, Any]]:
        rows = self.rows.grouped_rows
        for own in np.split(rows.order, rows.offsets[1:-1]):
            yield own, self.rows._design.taken(own)  # noqa: SLF001 - its rows

    @cached_property
    def entries(self) -> float:
        """The stored numbers of the rows."""
        X = getattr(self.rows, "one", self.rows)._design  # noqa: SLF001 - its size
        X = getattr(X, "plain", X).X
        return float(X.size if isinstance(X, np.ndarray) else X.nnz)

    @cached_property
    def lengths(self) -> Vector:
        """The lengths of the columns, 1 where one is empty."""
        squares = self.rows.gram_diagonal(self.rows.grouped_rows.shares)
        return np.asarray(np.sqrt(np.where(squares > 0.0, squares, 1.0)))

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() > self.deadline

    def count(self) -> None:
        """Count an evaluation of all rows."""
        meter = self.problem.inner
        if isinstance(meter, Metered):
            meter.charge(0, self.n)

    def penalty(self, w: Vector) -> float:
        """Return the regularizer, but for a constant where coordinates were left out."""
        return self.problem.regularizer.value(w)

    def at(self, w: Vector) -> "Point":
        """Return the point w."""
        if self.rows is None:
            return Point(self, w)
        return RowsPoint(self, w, self.rows.predict(w, self.data))

    def of_rows(self, rows: IntArray) -> "Sum":
        """Return F over some rows, each group with at least one that counts."""
        return Sum(self.problem.with_inner(self.rows.taken(rows)), RowBatch(None), self.terms, self.deadline)

    def of_columns(self, columns: IntArray) -> "Sum":
        """Return F as a function of some coordinates, the others being zero."""
        terms = Terms(*(one[columns] for one in self.terms))
        problem = self.problem.with_inner(self.rows.with_columns(columns)).with_regularizer(_Penalty(terms))
        return Part(problem, RowBatch(None), terms, self.deadline)


class Part(Sum):
    """F as a function of some coordinates."""


@dataclass(frozen=True)
class _Penalty:
    """The terms of a regularizer as one of its own."""

    terms: Terms

    def value(self, w: Vector) -> float:
        """Return Σ l1·|w| + l2·w²/2 + linear·w."""
        l1, l2, linear = self.terms
        return float(l1 @ np.abs(w) + 0.5 * (l2 @ np.square(w)) + linear @ w)

    def prox(self, v: Vector, step: float) -> Vector:
        """Return the minimizer of r(w) + ‖w − v‖² / (2 step)."""
        l1, l2, linear = self.terms
        v = v - step * linear
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - step * l1, 0.0) / (1.0 + step * l2))


class Line(NamedTuple):
    """F along a line from a point: its value at a step, and the point there."""

    value: Callable[[float], float]
    point: Callable[[float], "Point"]


class Point:
    """F and its first two derivatives at w, over all data."""

    t: Any = None

    def __init__(self, sum_: Sum, w: Vector) -> None:
        self.sum, self.w = sum_, w
        self.u = self._values()
        self.value = sum_.problem.outer.value(self.u) + sum_.penalty(w)

    def _values(self) -> Vector:
        return self.sum.problem.inner.value(self.w, self.sum.data)[0]

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
        """The curvature that is taken where there is none."""
        return np.abs(self.slope) / max(1.0, float(np.linalg.norm(self.w)))

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

    def product(self, blend: float = 0.0) -> Product:  # noqa: ARG002
        """Return the function v ↦ ∇²F v."""
        inner: Any = self.sum.problem.inner

        def times(v: Vector) -> tuple[Vector, Any]:
            curved = inner.hessian_product(self.w, self.sum.data, self.q, v)
            return curved + self.z.T @ self.bent(self.z @ v) + self.sum.terms.l2 * v, 0.0

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

    def __init__(self, sum_: Sum, w: Vector, t: Array) -> None:
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
        """What the rows make of second derivatives."""
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

    def product(self, blend: float = 0.0) -> Product:
        """Return the function v ↦ ∇²F v: f adds a term of the rank of its curvature, from the same product."""
        curved = self.curvatures(blend)
        curved = curved * self.weights if self.t.ndim == 1 else curved

        def times(v: Vector) -> tuple[Vector, Any]:
            change = self.rows.predict(v, self.sum.data)
            terms = curved * change if change.ndim == 1 else self.rows.bent(curved, change) * self.weights
            if not self.sum.is_linear:
                bent = self.bent(self.group_sums(self.slopes * change)).take(self.sum.codes)
                terms += self.slopes * (bent if change.ndim == 1 else bent[:, None])
            return self.rows.combine(terms, self.sum.data) + self.sum.terms.l2 * v, change

        return times

    def group_sums(self, terms: Array) -> Vector:
        """Return the sums over the rows of each group."""
        of_rows = terms if terms.ndim == 1 else terms.sum(axis=1)
        return np.asarray(sums_by(self.sum.codes, of_rows, self.u.size))

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


def sum_of(problem: Problem, data: Any) -> Sum:
    """Return F over all data."""
    terms = cast("Terms", terms_of(problem.regularizer, problem.dimension))
    sum_ = Sum(problem, data, terms, float(getattr(problem.inner, "deadline", math.inf)))
    return sum_ if sum_.rows is None else replace(sum_, data=RowBatch(None))  # the meter is told by `count`
