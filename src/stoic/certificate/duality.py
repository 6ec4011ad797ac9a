r"""The duality gap of w over all data: a bound on F(w) − F* by convexity alone, with nothing left to chance.

For a linear model (`linear_models`), any slopes θ in the domain of :math:`\ell^*` and
:math:`v = \sum_j c_j \theta_j x_j + e`, Fenchel and Young bound the gap by sums of terms that are at least zero,

.. math:: F(w) - F^* \le \sum_j c_j \big[\ell(t_j) + \ell^*(\theta_j) - \theta_j t_j\big]
    + \big[r(w) + r^*(-v) + \langle v, w \rangle\big] .

f has dropped out: q = ∇f(g(w)) makes its own such term zero. With θ = ℓ′ the first sum is zero too. Where r* is
then infinite, θ is moved: by second derivatives, until v vanishes where r has no weight (an intercept, or no
penalty); and scaled down, until v is within the weight of an L1 term. θ = 0 is always allowed. For other convex
f∘g, v = ∇(f∘g)(w) and the second bracket alone is the bound.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from stoic.certificate.linear_models import LinearModel, inner_of, linear_model
from stoic.problem import Problem
from stoic.protocols import Array, Regularizer, Vector

_EPS = float(np.finfo(float).eps)
_ROUNDS = 8  # of moving θ; the first does the work, the others undo its rounding
_FEW, _MOST_DENSE = 16, 1000  # variables for which the system is formed by products, and at all
_FLOORS = (0.0, 1e-3, 1.0)  # of the largest second derivative of a loss
_SINGULAR = 1e-14  # of the largest eigenvalue: what counts as zero


def duality_gap(problem: Problem, w: Vector) -> float:
    """Return a bound on F(w) − F* from one or a few passes over all data; rounding errors are part of it.

    It holds for certain where f∘g and r are convex. inf where r* is infinite and θ cannot be moved.

    Parameters
    ----------
    problem : Problem
        Over finite data.
    w : array of shape (d,)
        A point of the domain of r.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> X, y = np.array([[1.0], [1.0]]), np.array([0.0, 2.0])
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y), stoic.Linear(), stoic.L2(1.0))
    >>> w = np.array([0.5])
    >>> round(duality_gap(problem, w), 4), round(problem.objective(w) - problem.objective(2 / 3 * np.ones(1)), 4)
    (0.125, 0.0417)
    """
    problem = problem.with_inner(inner_of(problem))
    with np.errstate(all="ignore"):
        model = linear_model(problem, w) if has_conjugate(problem.regularizer) else None
        gap = _tangent_gap(problem, w) if model is None else _model_gap(problem, model, w)
    return gap if gap >= 0.0 else math.inf  # NaN where numbers overflow


def has_conjugate(regularizer: Regularizer) -> bool:
    """Return whether a regularizer, and the one within it, offers `conjugate_gap` and `feasible`."""
    within = getattr(regularizer, "regularizer", None)
    return hasattr(regularizer, "conjugate_gap") and (within is None or has_conjugate(within))


def _tangent_gap(problem: Problem, w: Vector) -> float:
    """Return r(w) + r*(−v) + ⟨v, w⟩ for v = ∇(f∘g)(w)."""
    r: Any = problem.regularizer
    v = problem.gradient(w)
    if has_conjugate(r):
        gap = float(r.conjugate_gap(w, v))
    elif problem.strong_convexity > 0.0:
        gap = modulus_gap(problem, w, problem.strong_convexity, v)
    else:
        return math.inf
    return _with_rounding(gap, problem, w, v, abs(problem.smooth(w)))


def modulus_gap(problem: Problem, w: Vector, modulus: float, v: Vector | None = None) -> float:
    r"""Return a bound from strong convexity: of r with that modulus and v = ∇(f∘g)(w); without v, of F.

    With :math:`u = \mathrm{prox}(w - v/m)` and the subgradient :math:`s = m(w - u) - v` of r at u, the convex
    function lies above its value at u plus :math:`\langle v + s, \cdot - u \rangle + (m/2) \|\cdot - u\|^2`.
    """
    r = problem.regularizer
    given = problem.gradient(w) if v is None else v
    u = r.prox(w - given / modulus, 1.0 / modulus)
    subgradient = modulus * (w - u) - given
    if v is None:
        slope = problem.gradient(u) + subgradient
        return problem.objective(w) - problem.objective(u) + float(slope @ slope) / (2.0 * modulus)
    slope = v + subgradient
    return r.value(w) - r.value(u) + float(v @ (w - u)) + float(slope @ slope) / (2.0 * modulus)


def _with_rounding(gap: float, problem: Problem, w: Vector, v: Vector, size: float) -> float:
    """Return the gap and what rounding may hide: some ε of the sums that were formed."""
    n = problem.inner.n_samples or 1
    sums = gap + size + abs(problem.regularizer.value(w)) + float(np.abs(v) @ np.abs(w))
    return gap + _EPS * (8.0 + math.sqrt(n)) * sums


def _model_gap(problem: Problem, model: LinearModel, w: Vector) -> float:
    r: Any = problem.regularizer
    theta, v, error = _feasible_point(model, r, w)
    gap = math.inf
    if is_homogeneous(model):  # then slopes may be scaled, and be zero
        s = min(model.shrinkage(theta), _shrinkage(r, v))
        theta, v = s * theta, r.feasible(s * v)  # which undoes rounding
        gap = model.total_gap(0.0 * theta) + r.conjugate_gap(w, 0.0 * v)
    found = model.total_gap(theta) + r.conjugate_gap(w, v)
    gap = float(np.fmin(found, gap)) + error
    return _with_rounding(gap, problem, w, v, model.size)


def _shrinkage(r: Any, v: Vector) -> float:
    """Return the largest s in [0, 1] with r*(−sv) finite."""
    counts = v != 0.0
    return float(np.minimum.reduce(np.maximum(r.feasible(v)[counts] / v[counts], 0.0), initial=1.0))


def _feasible_point(model: LinearModel, r: Any, w: Vector) -> tuple[Array, Vector, float]:
    """Return θ and v, moved where r* is infinite whatever their scale, and a bound on the rounding error of v.

    Where second derivatives alone do not do it, as too few rows have one, the others get a part of the largest.
    """
    for floor in _FLOORS:
        theta, v, error = _feasible_point_by(model, r, w, floor)
        if not _infeasible(model, r, v).any():
            break
    return theta, v, error


def _feasible_point_by(model: LinearModel, r: Any, w: Vector, floor: float) -> tuple[Array, Vector, float]:
    theta = model.slopes()
    v = model.combine(theta)
    chosen, scale, reach, solve = np.zeros(v.size, dtype=bool), np.zeros(v.size), np.abs(w), None
    for _ in range(_ROUNDS):
        strays = _infeasible(model, r, v)
        if (strays & ~chosen).any():
            chosen |= strays
            solve, scale = _solver(model, np.flatnonzero(chosen), v.size, floor), _rounding_errors(model, theta)
        missing = np.where(chosen, r.feasible(v) - v, 0.0)
        if solve is None or not (np.abs(missing) > scale).any():
            break
        move = np.zeros(v.size)
        move[chosen] = solve(missing[chosen])
        theta = theta + model.bent(model.predict(move), floor)  # θ of the point w + move, to first order
        v, reach = model.combine(theta), reach + np.abs(move)
    missing = np.where(chosen, r.feasible(v) - v, 0.0)
    near = np.abs(missing) <= scale
    return theta, np.where(near, v + missing, v), float(np.where(near, np.abs(missing), 0.0) @ reach)


def _infeasible(model: LinearModel, r: Any, v: Vector) -> NDArray[np.bool_]:
    """Return the coordinates at which r*(−v) is infinite, whatever the scale of v."""
    goal = r.feasible(v)
    return np.asarray((goal != v) & ((goal == 0.0) | (not is_homogeneous(model))))


def is_homogeneous(model: LinearModel) -> bool:
    """Return whether v scales with θ: there is no term e."""
    return np.ndim(model.slope) == 0


def _rounding_errors(model: LinearModel, theta: Array) -> Vector:
    """Return the rounding errors that the entries of v may have."""
    squares = np.square(theta) if theta.ndim == 1 else np.square(theta).sum(axis=1)
    length = math.sqrt(float(model.weights @ squares))
    return 10.0 * _EPS * (10.0 + math.sqrt(len(theta))) * length * np.sqrt(model.squares())


def _solver(model: LinearModel, chosen: NDArray[np.intp], d: int, floor: float) -> Callable[[Vector], Vector]:
    """Return a function that solves H Δ = b on some of d coordinates, H the second derivative of Σ c ℓ."""
    size = chosen.size

    def times(part: Vector) -> Vector:
        whole = np.zeros(d)
        whole[chosen] = part
        bent = model.bent(model.predict(whole), floor)
        return model.sums((bent.T * model.weights).T)[chosen]

    if size > _MOST_DENSE:
        system = LinearOperator((size, size), matvec=times, dtype=float)
        return lambda b: np.asarray(cg(system, b, rtol=1e-12, maxiter=1000)[0])
    few = size <= _FEW
    matrix = np.stack([times(one) for one in np.eye(size)]) if few else model.hessian_block(chosen, floor)
    if not np.isfinite(matrix).all():  # which LAPACK would refuse
        return np.zeros_like
    eigenvalues, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    kept = eigenvalues > _SINGULAR * size * eigenvalues[-1]
    inverse = np.where(kept, 1.0 / np.where(kept, eigenvalues, 1.0), 0.0)
    return lambda b: vectors @ (inverse * (b @ vectors))
