"""Second derivatives of f∘g from differences of gradients on a part of the draws, and the steps they give."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from stoic.pilot.fixed_sample import Sample
from stoic.protocols import Array, Regularizer, Vector
from stoic.regularizers import Terms, terms_of

MOST_FORMED = 128
"""Variables up to which the matrix is formed."""

_PROBE = 1e-4  # of the length of w and of the last step: the width of a difference
_FLAT = 1e-10  # of the largest eigenvalue: what counts as no curvature
_SWEEPS, _STILL = 200, 1e-10
_MOST_PRODUCTS, _ACCURACY = 60, 0.05
_PROXIMAL_STEPS = 2000


@dataclass(frozen=True)
class Curvature:
    """An approximation of ∇²(f∘g): a matrix, or products from differences of gradients of a sample around w."""

    matrix: Array | None
    sample: Sample | None = None
    w: Vector | None = None
    probe: float = 1.0

    def times(self, v: Vector) -> Vector:
        """Return the product with v."""
        if self.matrix is not None:
            return self.matrix @ v
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return np.zeros_like(v)
        sample: Any = self.sample
        scale = self.probe / size
        return np.asarray(sample.change(self.w, scale * v) / (2.0 * scale))

    def updated(self, move: Vector, change: Vector) -> "Curvature":
        """Return the matrix after a secant update (BFGS) by a move and the change of the gradient along it."""
        if self.matrix is None:
            return self
        along, bent = float(move @ change), self.matrix @ move
        squared = float(move @ bent)
        if not (squared > 0.0 and along > 1e-3 * squared):
            return self
        matrix = self.matrix - np.outer(bent, bent / squared) + np.outer(change, change / along)
        return Curvature(matrix)


def measured_curvature(sample: Sample, w: Vector, moved: float) -> Curvature:
    """Return the curvature on a sample at w; `moved` is the length of the last move, if any."""
    probe = _PROBE * (1.0 + float(np.linalg.norm(w)) + moved)
    if w.size > MOST_FORMED:
        return Curvature(None, sample, w, probe)
    matrix = np.stack([sample.change(w, probe * one) / (2.0 * probe) for one in np.eye(w.size)])
    if not np.isfinite(matrix).all():
        return Curvature(np.eye(w.size) * _usable(np.abs(matrix[np.isfinite(matrix)]).max(initial=0.0)))
    return Curvature(_convex(0.5 * (matrix + matrix.T)))


def _convex(matrix: Array) -> Array:
    """Return the matrix with the sizes of its eigenvalues, none near zero, in units of its diagonal."""
    size = np.sqrt(np.abs(np.diag(matrix)))
    unit = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(matrix / unit / unit[:, None])
    values = np.maximum(np.abs(values), _FLAT * max(float(np.abs(values).max()), 1e-300))
    return np.asarray((vectors * values) @ vectors.T * unit * unit[:, None])


def _usable(number: float) -> float:
    return number if 0.0 < number < math.inf else 1.0


def step_of(curvature: Curvature, slope: Vector, w: Vector, regularizer: Regularizer) -> Vector:
    r"""Return the p that minimizes :math:`\langle \mathrm{slope}, p \rangle + \tfrac12 p^\top H p + r(w + p)`."""
    terms = terms_of(regularizer, w.size)
    if terms is not None and not terms.l1.any():
        return _linear_step(curvature, slope + terms.l2 * w + terms.linear, terms.l2)
    if terms is not None and curvature.matrix is not None:
        return _coordinate_descent(curvature.matrix, slope, w, terms)
    return _proximal_steps(curvature, slope, w, regularizer)


def _linear_step(curvature: Curvature, slope: Vector, l2: Vector) -> Vector:
    if curvature.matrix is not None:
        matrix = curvature.matrix + np.diag(l2)
        unit = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        scaled = unit[:, None] * matrix * unit + _FLAT * np.eye(len(l2))
        return np.asarray(-unit * np.linalg.solve(scaled, unit * slope))

    def product(v: Vector) -> Vector:
        return curvature.times(v) + l2 * v

    system = LinearOperator((len(l2), len(l2)), matvec=product, dtype=float)
    return np.asarray(-cg(system, slope, rtol=_ACCURACY, maxiter=_MOST_PRODUCTS)[0])


def _coordinate_descent(matrix: Array, slope: Vector, w: Vector, terms: Terms) -> Vector:
    """Minimize coordinate by coordinate, which column scales do not matter to."""
    at, diagonal = w.copy(), np.maximum(np.diag(matrix) + terms.l2, 1e-300)
    gradient = slope + terms.l2 * w + terms.linear
    for _ in range(_SWEEPS):
        largest = 0.0
        for k in range(len(at)):
            ahead = at[k] - gradient[k] / diagonal[k]
            cut = terms.l1[k] / diagonal[k]
            move = ahead - min(max(ahead, -cut), cut) - at[k]
            if move != 0.0:
                at[k] += move
                gradient += move * matrix[k]
                gradient[k] += move * terms.l2[k]
                largest = max(largest, diagonal[k] * move * move)
        if largest <= _STILL * max(float(np.square(at - w) @ diagonal), 1e-300):
            break
    return at - w


def _proximal_steps(curvature: Curvature, slope: Vector, w: Vector, regularizer: Regularizer) -> Vector:
    """Minimize by accelerated proximal gradients, begun again where they turn round."""
    formed = curvature.matrix is not None
    L = _largest_eigenvalue(curvature.times, w.size)
    at = ahead = w
    momentum = 1.0
    for _ in range(_PROXIMAL_STEPS if formed else _MOST_PRODUCTS):
        trial = regularizer.prox(ahead - (slope + curvature.times(ahead - w)) / L, 1.0 / L)
        move = trial - at
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        if float((ahead - trial) @ move) > 0.0:
            momentum, ahead, at = 1.0, trial, trial
            continue
        ahead = trial + (momentum - 1.0) / following * move
        if float(np.abs(move).max()) <= 1e-12 * (1.0 + float(np.abs(trial).max())):
            return trial - w
        at, momentum = trial, following
    return at - w


def _largest_eigenvalue(times: Callable[[Vector], Vector], d: int) -> float:
    """Return a bound near the largest eigenvalue, by power steps."""
    v, size = np.random.default_rng(0).standard_normal(d), 1.0
    for _ in range(30):
        v /= float(np.linalg.norm(v)) or 1.0
        v = times(v)
        size = float(np.linalg.norm(v))
    return _usable(1.1 * size)
