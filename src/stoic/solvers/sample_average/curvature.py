"""Second derivatives of f∘g from differences of gradients on a part of the draws, and the steps they give."""

import math
from dataclasses import dataclass

import numpy as np

from stoic.pilot.fixed_sample import Sample
from stoic.protocols import Array, Regularizer, Vector
from stoic.regularizers import Terms, terms_of

MOST_FORMED = 128
"""Variables up to which all of it is measured."""

_PROBE = 1e-4  # of 1 + ‖w‖: the width of a difference
_LEAST_BENT = 1e-3  # of what the matrix has along a move: a secant that is used
_FLAT = 1e-10  # of the largest eigenvalue: what counts as no curvature
_SWEEPS, _STILL = 200, 1e-10
_PROXIMAL_STEPS = 2000


@dataclass(frozen=True)
class Curvature:
    """A positive definite approximation of ∇²(f∘g), which secants improve.

    Where there are many variables its inverse is kept, too.
    """

    matrix: Array
    inverse: Array | None = None

    def updated(self, move: Vector, change: Vector) -> "Curvature":
        """Return the matrix after a secant update (BFGS) by a move and the change of the gradient along it."""
        along, bent = float(move @ change), self.matrix @ move
        squared = float(move @ bent)
        if not (squared > 0.0 and along > _LEAST_BENT * squared):
            return self
        matrix = self.matrix - np.outer(bent, bent / squared) + np.outer(change, change / along)
        if self.inverse is None:
            return Curvature(matrix)
        back = self.inverse @ change
        both = np.outer(back, move / along)
        size = (1.0 + float(change @ back) / along) / along
        return Curvature(matrix, self.inverse - both - both.T + size * np.outer(move, move))

    def plus(self, diagonal: Vector) -> "Curvature":
        """Return the matrix with a diagonal added; an inverse is that of the diagonals."""
        matrix = self.matrix + np.diag(diagonal)
        return Curvature(matrix, None if self.inverse is None else np.diag(1.0 / np.diag(matrix)))

    def solve(self, slope: Vector) -> Vector:
        """Return the product of the inverse with a vector."""
        if self.inverse is not None:
            return self.inverse @ slope
        unit = 1.0 / np.sqrt(np.maximum(np.diag(self.matrix), 1e-300))
        scaled = unit[:, None] * self.matrix * unit + _FLAT * np.eye(len(slope))
        return np.asarray(unit * np.linalg.solve(scaled, unit * slope))


def measured_curvature(sample: Sample, w: Vector, gradient: Vector) -> Curvature:
    """Return the curvature on a sample at w, by differences: along all axes, or the gradient alone."""
    probe = _PROBE * (1.0 + float(np.linalg.norm(w)))
    if w.size > MOST_FORMED:
        size = float(np.linalg.norm(gradient)) or 1.0
        change = sample.change(w, probe / size * gradient) / (2.0 * probe)
        along = _usable(abs(float(change @ gradient)) / size)
        return Curvature(along * np.eye(w.size), np.eye(w.size) / along)
    matrix = np.stack([sample.change(w, probe * one) / (2.0 * probe) for one in np.eye(w.size)])
    if not np.isfinite(matrix).all():
        return Curvature(np.eye(w.size) * _usable(float(np.abs(matrix[np.isfinite(matrix)]).max(initial=0.0))))
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
    r"""Return the p that minimizes :math:`\langle \mathrm{slope}, p \rangle + \tfrac12 p^\top H p + r(w + p)`.

    A penalty without a term in |w| is taken to be in the slope and in H.
    """
    terms = terms_of(regularizer, w.size)
    if terms is None:
        return _proximal_steps(curvature.matrix, slope, w, regularizer)
    if terms.l1.any():
        return _coordinate_descent(curvature.matrix, slope, w, terms)
    return -curvature.solve(slope)


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


def _proximal_steps(matrix: Array, slope: Vector, w: Vector, regularizer: Regularizer) -> Vector:
    """Minimize by accelerated proximal gradients, begun again where they turn round."""
    L = _usable(float(np.linalg.norm(matrix, 2)))
    at = ahead = w
    momentum = 1.0
    for _ in range(_PROXIMAL_STEPS):
        trial = regularizer.prox(ahead - (slope + matrix @ (ahead - w)) / L, 1.0 / L)
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
