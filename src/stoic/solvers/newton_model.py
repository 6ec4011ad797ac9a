"""The model of F that keeps f as it is: the mean of each group becomes a parabola of its own."""

from typing import Any, NamedTuple

import numpy as np

from stoic.inners.group_loss import GroupLoss
from stoic.protocols import Array, Vector
from stoic.solvers.newton_directions import Direction, Quadratic, minimum
from stoic.solvers.newton_point import Point
from stoic.solvers.newton_sum import Sum

_MOST_NUMBERS, _FEW_NUMBERS = 1 << 23, 1 << 16  # of the Hessians of all groups
_PER_ENTRY = 0.125  # such numbers for each stored number of the rows: with more, the model takes longer than steps
_MOST_ROUNDS, _SOLVED = 40, 1e-4  # of Newton's method on the model; share of the first decrease that ends it
_ARMIJO, _MOST_HALVINGS = 1e-2, 30
_SEEN = 1e-10  # of F: a decrease of the model that rounding does not hide
_LEAST_BENT = 1e-8  # of the lengths: what is seen of a curvature that the model lacks


class Bends(NamedTuple):
    """The Hessians of the groups, of shape (p, d, d), what their sum lacks, and slopes unless of all rows."""

    of_groups: Array
    missing: Array | None = None
    z: Array | None = None


def has_model(sum_: Sum) -> bool:
    """Whether there is a model: f is bent, the rows are those of a group loss, and the groups are not too many."""
    if not isinstance(sum_.rows, GroupLoss) or sum_.is_linear:
        return False
    p, d = sum_.problem.inner.shape
    return p * d * d <= min(_MOST_NUMBERS, max(_FEW_NUMBERS, _PER_ENTRY * sum_.entries))


def bends_at(point: Point, blend: float = 0.0) -> Bends:
    """Return the Hessians of the groups at a point."""
    curvatures: Any = point.curvatures(blend)  # type: ignore[attr-defined]  # of rows
    rows = point.sum.rows
    return Bends(rows._design.grams(point.sum.codes, curvatures, rows.n_groups))  # noqa: SLF001 - of its rows


def by_model(point: Point, bends: Bends, damping: float) -> Direction:
    """Return the minimizer of the model, damped in proportion to its diagonal."""
    model = _Model(point, bends, damping)
    p, first = np.zeros_like(point.w), 0.0
    value = start = model.value(p)
    for _ in range(_MOST_ROUNDS):
        smooth, matrix = model.derivatives(p)
        step, gain = minimum(Quadratic(point.w + p, smooth, matrix, point.sum.terms.l1, point.flat), 0.0)
        first = first or gain
        if not gain > _SOLVED * first:
            break
        length = 1.0
        for _ in range(_MOST_HALVINGS):
            reached = model.value(p + length * step)
            if reached <= value - _ARMIJO * length * gain:
                break
            length *= 0.5
        else:
            break
        p, value = p + length * step, reached
    p = np.where(point.w + p == 0.0, -point.w, p)
    l1, w = point.sum.terms.l1, point.w
    along = -float(point.smooth @ p) - float(l1 @ (np.abs(w + p) - np.abs(w)))
    promised = 2.0 * (start - value) if start - value > _SEEN * abs(start) else along
    return Direction(p, promised, foreseen=model.slope_of_data)


def hessian_of(point: Point, bends: Bends) -> Array:
    """Return the Hessian of the model at the point itself."""
    return _Model(point, bends, 0.0).derivatives(np.zeros_like(point.w))[1]


def corrected(bends: Bends, step: Vector, slopes: Vector, foreseen: Vector) -> Bends:
    """Return the model with the slopes that a step has led to, where it is to be more bent: a term of rank one."""
    lacking = slopes - foreseen
    bent = float(lacking @ step)
    if bent <= _LEAST_BENT * float(np.linalg.norm(lacking) * np.linalg.norm(step)):
        return bends
    more = np.outer(lacking, lacking / bent)
    return bends._replace(missing=more if bends.missing is None else bends.missing + more)


class _Model:
    def __init__(self, point: Point, bends: Bends, damping: float) -> None:
        self.point, self.outer, self.bends = point, point.sum.problem.outer, bends
        self.z = point.z if bends.z is None else bends.z
        d, terms = len(point.w), point.sum.terms
        rest = 0.0 if bends.z is None else point.smooth - terms.l2 * point.w - terms.linear - point.q @ bends.z
        self.rest = np.zeros(d) + rest  # of the slopes over all rows, that those of some do not have
        self.flat = bends.of_groups.reshape(-1, d)
        diagonal = point.q @ np.einsum("ijj->ij", bends.of_groups) + point.sum.terms.l2
        self.ridge = damping * np.maximum(diagonal, point.flat)

    def _means(self, p: Vector) -> tuple[Vector, Array]:
        """Return what the model makes of the groups' means, and their slopes."""
        bent = (self.flat @ p).reshape(-1, len(p))
        return self.point.u + self.z @ p + 0.5 * (bent @ p), self.z + bent

    def _lacking(self, p: Vector) -> Vector:
        return 0.0 * p if self.bends.missing is None else np.asarray(self.bends.missing @ p)

    def value(self, p: Vector) -> float:
        """Return the model at w + p."""
        rest = float(self.rest @ p) + 0.5 * float(p @ self._lacking(p) + p @ (self.ridge * p))
        value: float = self.outer.value(self._means(p)[0]) + self.point.sum.penalty(self.point.w + p) + rest
        return value

    def slope_of_data(self, p: Vector) -> Vector:
        """Return its slopes, L1 term and damping left out."""
        u, z = self._means(p)
        terms = self.point.sum.terms
        return np.asarray(
            self.outer.gradient(u) @ z
            + self.rest
            + self._lacking(p)
            + terms.l2 * (self.point.w + p)
            + terms.linear
        )

    def derivatives(self, p: Vector) -> tuple[Vector, Array]:
        """Return its slopes and its Hessian, the L1 term left out."""
        u, z = self._means(p)
        q, outer = self.outer.gradient(u), self.outer
        matrix = np.tensordot(q, self.bends.of_groups, 1) + z.T @ outer.hessian_product(u, z)  # type: ignore[attr-defined]
        if self.bends.missing is not None:
            matrix += self.bends.missing
        matrix.flat[:: len(p) + 1] += self.point.sum.terms.l2 + self.ridge
        return self.slope_of_data(p) + self.ridge * p, matrix
