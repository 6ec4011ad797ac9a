"""Directions of Newton's method: by a matrix, with or without an L1 term, or by conjugate gradients."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import daxpy
from scipy.linalg.lapack import dpotrf, dpotrs

from stoic.protocols import Array, Vector
from stoic.solvers.newton_point import Point, Product, one_sided

Mask: TypeAlias = NDArray[np.bool_]

_SINGULAR = 1e-14  # of the diagonal: what makes a matrix definite that is so but for rounding
_MOST_PRODUCTS = 1000  # of conjugate gradients
_EVEN = 10.0  # of the mean diagonal, which is added to each entry to precondition them
_ENOUGH = 1e-3  # of the slope along a direction: what a step that was cut keeps of it
_MOST_ROUNDS, _LARGE, _FEW_ROUNDS = 50, 500, 6  # of the signs of a quadratic model with an L1 term; of a large one
_SOLVED, _NEARLY_SOLVED = 1e-8, 1e-2  # of the decrease of the first round: what ends them, of a large one too


class Direction(NamedTuple):
    """A direction, twice the decrease that is promised along it, and what is known at its end.

    That is the change of the predictions, and the slopes that a model foresees, the L1 term left out.
    """

    p: Vector
    promised: float
    change: Any = None
    foreseen: Callable[[Vector], Vector] | None = None


class Quadratic(NamedTuple):
    """The model of a function with an L1 term at w: slopes and Hessian, and what stands for zeros of it."""

    w: Vector
    smooth: Vector
    matrix: Array
    l1: Vector
    flat: Vector


def by_matrix(point: Point, matrix: Array, damping: float) -> Direction:
    """Return the minimizer of the quadratic model with a matrix, damped in proportion to its diagonal."""
    model = Quadratic(point.w, point.smooth, matrix, point.sum.terms.l1, point.flat)
    return Direction(*minimum(model, damping))


def minimum(model: Quadratic, damping: float) -> tuple[Vector, float]:
    """Return the way to the minimizer of a quadratic model, and the decrease that its slopes promise.

    The diagonal is scaled to one, so that no column's unit matters. NaN where the matrix overflows.
    """
    w, smooth, matrix, l1, flat = model
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), np.nan), np.nan
    diagonal = np.maximum(matrix.diagonal(), flat)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = scale[:, None] * matrix * scale
    if not l1.any():
        p = scale * _solve(scaled, -scale * smooth, damping)
        return p, -float(smooth @ p)
    scaled.flat[:: len(scaled) + 1] += damping
    p = _with_l1(model, scaled, scale)
    return p, -float(smooth @ p) - float(l1 @ (np.abs(w + p) - np.abs(w)))


def _solve(matrix: Array, b: Vector, ridge: float) -> Vector:
    """Return the solution with a ridge."""
    return np.asarray(dpotrs(_factor(matrix, ridge), b, lower=1)[0])


def _factor(matrix: Array, ridge: float) -> Array:
    """Return Cholesky's factor with a ridge, a larger one where the matrix is singular but for rounding."""
    while True:
        damped = matrix.copy(order="F")
        damped.flat[:: len(damped) + 1] += ridge
        factor, info = dpotrf(damped, lower=1, overwrite_a=1)
        if info == 0:
            return np.asarray(factor)
        if ridge > 1e300:
            raise LinAlgError("the matrix has entries that are not finite")
        ridge = max(10.0 * ridge, _SINGULAR)


def _with_l1(model: Quadratic, matrix: Array, scale: Vector) -> Vector:
    """Return the way to the minimizer of a quadratic model plus the L1 term, sign by sign."""
    l1, start = scale * model.l1, model.w / scale
    smooth, v, first = scale * model.smooth, start, 0.0
    is_large = len(v) > _LARGE  # each round takes long: the next step goes on
    for _ in range(_FEW_ROUNDS if is_large else _MOST_ROUNDS):
        slope = one_sided(smooth, v, l1)
        free = (v != 0.0) | (slope != 0.0) | (l1 == 0.0)
        if not free.any():
            break
        p = np.zeros_like(v)
        p[free] = _solve(matrix[np.ix_(free, free)], -slope[free], 0.0)
        p[(l1 > 0.0) & (v == 0.0) & (p * slope > 0.0)] = 0.0
        step = _signed_step(matrix, slope, v, p, l1)
        if step is None:
            break
        gain = -float(slope @ step)
        first = first or gain
        v = v + step
        v[(l1 > 0.0) & (np.abs(v) <= 1e-14 * np.abs(step))] = 0.0
        smooth = scale * model.smooth + matrix @ (v - start)
        if gain <= (_NEARLY_SOLVED if is_large else _SOLVED) * first:
            break
    return np.asarray(np.where(v == 0.0, -model.w, scale * (v - start)))


def _signed_step(matrix: Array, slope: Vector, v: Vector, p: Vector, l1: Vector) -> Vector | None:
    """Return a step along p that lowers the model, where no coordinate changes its sign; None if none does.

    Coordinates that would change their sign stop at zero. Where that is no descent, as it may be where the matrix
    is nearly singular, the step ends where the first one reaches zero.
    """
    orthant = np.where(v != 0.0, np.sign(v), -np.sign(slope))
    crosses = (l1 > 0.0) & ((v + p) * orthant < 0.0)
    step = np.where(crosses, -v, p)
    along = float(slope @ step)
    if not (along < 0.0 and -along >= _ENOUGH * abs(float(slope @ p))):
        length = float(np.min(v[crosses] / -p[crosses], initial=1.0))
        step = np.where(crosses & (-v == length * p), -v, length * p)
        along = float(slope @ step)
        if not along < 0.0:
            return None
    curved = float(step @ (matrix @ step))
    return step if curved <= -along else np.asarray(-along / curved * step)


def by_products(
    point: Point, damping: float, accuracy: float, diagonal: Vector, blend: float
) -> tuple[Direction, int]:
    """Return the direction of conjugate gradients on the coordinates that are free to move, and their number.

    They end where the residual is small enough, or the time is over: each point on their way is a descent.
    """
    slope, l1 = point.slope, point.sum.terms.l1
    free = None
    if point.sum.has_l1:
        free = (point.w != 0.0) | (slope != 0.0) | (l1 == 0.0)
    diagonal = np.maximum(diagonal, point.flat)
    inverse = 1.0 / (diagonal + (_EVEN * diagonal.mean() or 1.0))  # rare columns would be most of the norm
    scaled = np.empty_like(inverse)
    p, change, n = _conjugate(
        point,
        point.product(blend, damping * diagonal),
        lambda r: np.multiply(inverse, r, out=scaled),
        free,
        accuracy,
    )
    if not point.sum.has_l1:
        return Direction(p, -float(slope @ p), change), n
    step = _within_orthant(point, p)
    return Direction(step, -float(slope @ step), change if np.array_equal(step, p) else None), n


def by_kept_matrix(point: Point, matrix: Array, damping: float, accuracy: float, blend: float) -> Direction:
    """Return the direction of conjugate gradients that a matrix near the Hessian leads; without an L1 term."""
    diagonal = np.maximum(matrix.diagonal(), point.flat)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    factor = _factor(scale[:, None] * matrix * scale, damping)

    def solve(r: Vector) -> Vector:
        return np.asarray(scale * dpotrs(factor, scale * r, lower=1)[0])

    p, change, _ = _conjugate(point, point.product(blend, damping / scale**2), solve, None, accuracy)
    return Direction(p, -float(point.slope @ p), change)


def _within_orthant(point: Point, p: Vector) -> Vector:
    """Return p, or a part of it, with zeros where a coordinate would change its sign: a descent."""
    w, slope, l1 = point.w, point.slope, point.sum.terms.l1
    orthant = np.where(w != 0.0, np.sign(w), -np.sign(slope))
    p[(l1 > 0.0) & (w == 0.0) & (p * slope > 0.0)] = 0.0
    for halving in range(40):
        reached = w + 0.5**halving * p
        step = np.where((l1 > 0.0) & (reached * orthant < 0.0), -w, 0.5**halving * p)
        if float(slope @ step) <= 0.0:
            break
    return np.asarray(step)


def _conjugate(
    point: Point, product: Product, solve: Callable[[Vector], Vector], free: Mask | None, accuracy: float
) -> tuple[Vector, Any, int]:
    r = -point.slope if free is None else np.where(free, -point.slope, 0.0)
    x, change = np.zeros_like(r), None
    z = solve(r)
    v, rz = z.copy(), float(r @ z)
    enough = accuracy * accuracy * rz
    for count in range(_MOST_PRODUCTS):
        if not rz > enough or (count and point.sum.is_late):
            return x, change, count
        hv, along = product(v)
        if free is not None:
            hv[~free] = 0.0
        curved = float(v @ hv)
        if not curved > 0.0:
            break
        step = rz / curved
        x = daxpy(v, x, a=step)
        change = _added(change, step, along)
        r = daxpy(hv, r, a=-step)
        z = solve(r)
        rz, before = float(r @ z), rz
        v *= rz / before
        v += z
    return x, (None if point.t is None else change), _MOST_PRODUCTS


def _added(change: Any, step: float, along: Any) -> Any:
    if isinstance(along, np.ndarray):
        along *= step  # nobody else has it
    else:
        along = step * along
    if change is None:
        return along
    change += along
    return change
