r"""Bounds on F(w) − F* from a measured tangent, and from what is known of r, its domain and curvature.

A measured tangent (`tangents`) bounds f(g(w)) − f(g(w°)) for the optimum w°. With x = w − w°, a slope s and a
number e such that :math:`r(w°) \ge r(w) - \langle s, x \rangle - e + \tfrac12 x^\top \Lambda x`, and a matrix M
for all that is curved, F(w) − F* is at most e plus the largest value over Δ and x of

.. math:: \langle \mathrm{shift}, \Delta \rangle - \tfrac12 \textstyle\sum_i \Delta_i^2 / m_i
    + \langle \mathrm{slope} + s, x \rangle - \tfrac12 x^\top M x + \mathrm{width}(\Delta, x) .

M is Λ, the curvature of r itself; or Λ + H less the error of H, for square loss; or μI, if F is known to have the
modulus μ. Curvature of f∘g that was measured *at w* is none of these: it says nothing about the way to w°. On a
bounded domain the supremum over the domain needs no M. All of these hold on the same event, so that the least of
them does.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stoic.certificate.confidence import Rise, widest
from stoic.certificate.tangents import Tangent
from stoic.problem import Problem
from stoic.protocols import Array, Regularizer, Vector
from stoic.regularizers import Box, LeavingLast, Simplex, terms_of

_SCALES = 2.0 ** np.arange(-8.0, 8.5, 0.5)  # of the step to the point at which a subgradient of r is taken
_SINGULAR = 1e-12  # of the largest eigenvalue


class Gap(NamedTuple):
    """A bound on F(w) − F*, and whether it makes use of the modulus that was given."""

    bound: float
    uses_modulus: bool


def least_gap(problem: Problem, w: Vector, seen: Tangent, modulus: float | None) -> Gap:
    """Return the least bound that a tangent gives; inf where there is none."""
    if not (seen.is_finite and problem.regularizer.value(w) < math.inf):
        return Gap(math.inf, False)
    curved = _quadratic(problem)
    known = [_domain_gap(problem.regularizer, w, seen)]
    known += [_curved_gap(problem, w, seen, curved, root) for root in _roots(seen, curved)]
    given = math.inf if modulus is None else _modulus_gap(problem, w, seen, curved, modulus)
    least = min(known)
    return Gap(min(least, given), given < least)


def _quadratic(problem: Problem) -> Vector:
    """Return the diagonal of Λ: the weights of w²/2 in r."""
    terms = terms_of(problem.regularizer, problem.dimension)
    return np.full(problem.dimension, problem.strong_convexity) if terms is None else terms.l2


def _roots(seen: Tangent, curved: Vector) -> Iterator[Array]:
    """Yield a root of M⁻¹ for each M that is positive definite.

    The error of xᵀHx, along the one x that counts, is part of the same sum as that of ⟨slope, x⟩. In coordinates
    in which Λ + H, as measured, is the identity, it is at most the largest width over all matrices of norm 1, of
    which xxᵀ is one.
    """
    if curved.min() > 0.0:
        yield 1.0 / np.sqrt(curved)
    if seen.curvature is None:
        return
    eigenvalues, vectors = np.linalg.eigh(seen.curvature.mean + np.diag(curved))
    if not eigenvalues[0] > _SINGULAR * eigenvalues[-1]:
        return
    root = vectors / np.sqrt(eigenvalues)
    blocks = root.T @ seen.curvature.wide.reshape(-1, *root.shape) @ root
    width = widest(blocks.reshape(len(blocks), -1))
    if width < 1.0:
        yield root / math.sqrt(1.0 - width)


def _modulus_gap(problem: Problem, w: Vector, seen: Tangent, curved: Vector, modulus: float) -> float:
    """Return a bound where F has a modulus μ.

    Where r is a quadratic plus what is piecewise linear or a constraint, μ is the modulus of f∘g plus that
    quadratic, so M = μI. For other r, the gap is at most A(x), all of the above with M = Λ, and at least
    (μ/2)‖x‖²: so it is at most 2A(x) − (μ/2)‖x‖².
    """
    if _has_kinks_only(problem.regularizer, w.size):
        return _curved_gap(problem, w, seen, curved, np.full(w.size, 1.0 / math.sqrt(modulus)))
    return _curved_gap(problem, w, seen, curved, 1.0 / np.sqrt(2.0 * curved + modulus), times=2.0)


def _has_kinks_only(r: Regularizer, d: int) -> bool:
    """Return whether r is a quadratic plus what is piecewise linear or a constraint."""
    within = r.regularizer if isinstance(r, LeavingLast) else r
    return terms_of(r, d) is not None or isinstance(within, Box | Simplex)


def _curved_gap(
    problem: Problem, w: Vector, seen: Tangent, curved: Vector, root: Array, times: float = 1.0
) -> float:
    """Return the least bound over points u of a path of prox steps, each with its subgradient of r."""
    terms = terms_of(problem.regularizer, w.size)
    typical = float(np.square(root).sum()) / w.size  # step 1/m: for M = mI the best without noise
    steps = typical * (_SCALES if terms is None or terms.l1.any() else np.ones(1))
    parts = [_subgradient(problem.regularizer, w, seen.slope.mean, curved, step) for step in steps]
    slopes = [times * _times(v, root) for _, v in parts]
    least = _least_rises(seen, times, times * _times(seen.slope.wide, root), slopes)
    return float(np.fmin.reduce([times * e for e, _ in parts] + least, initial=math.inf))


def _least_rises(seen: Tangent, times: float, wide: Array, slopes: list[Vector]) -> Vector:
    """Return the least value over all ways to bound the part of Δ, for each slope."""
    alone = Rise(wide)
    ways = [[times * seen.flat + alone(v) for v in slopes]]
    for bend in seen.bends:
        shift: Any = seen.shift
        root = np.sqrt(times * bend)
        joint, start = Rise(np.hstack([shift.wide * root, wide])), shift.mean * root
        ways.append([joint(np.concatenate([start, v])) for v in slopes])
    return np.asarray(np.fmin.reduce(np.array(ways), axis=0))


def _times(rows: Array, root: Array) -> Array:
    product: Array = rows * root if root.ndim == 1 else rows @ root
    return product


def _subgradient(r: Regularizer, w: Vector, slope: Vector, curved: Vector, step: float) -> tuple[float, Vector]:
    """Return e and slope + s from a subgradient p of r at u: s = p + Λ(w − u), and e is what r lacks at w."""
    u = r.prox(w - step * slope, step)
    way = w - u
    p = way / step - slope
    e = r.value(w) - r.value(u) - float(p @ way) - 0.5 * float(curved @ np.square(way))
    return max(0.0, e), slope + p + curved * way


def _domain_gap(r: Regularizer, w: Vector, seen: Tangent) -> float:
    """Return the supremum over a bounded domain; inf where r has none that is known."""
    slope, wide = seen.slope.mean, seen.slope.wide
    if isinstance(r, Simplex):  # convex in x: the largest value is at a vertex
        along = float(slope @ w) - r.total * slope
        widths = np.linalg.norm((wide @ w)[:, None] - r.total * wide, axis=0)
        return _excess(seen) + float((along + widths).max())
    if not (isinstance(r, Box) and np.isfinite(r.low).all() and np.isfinite(r.high).all()):
        return math.inf
    ends = w - np.stack([np.broadcast_to(side, w.shape) for side in (r.high, r.low)])
    reach = np.abs(ends).max(axis=0)
    width = min(widest(wide) * float(np.linalg.norm(reach)), float(seen.slope.widths @ reach))
    return _excess(seen) + float((slope * ends).max(axis=0).sum()) + width


def _excess(seen: Tangent) -> float:
    """Return the largest value over Δ alone."""
    return float(_least_rises(seen, 1.0, np.zeros((len(seen.slope.wide), 1)), [np.zeros(1)])[0])
