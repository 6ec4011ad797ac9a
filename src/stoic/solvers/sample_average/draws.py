"""The robust sample average of any inner part: draws that are kept, their truncated means, and Newton steps."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stoic.pilot.fixed_sample import Sample, make_sample
from stoic.problem import Problem
from stoic.protocols import Array, Vector
from stoic.solvers.sample_average.curvature import Curvature, measured_curvature, step_of
from stoic.solvers.sample_average.levels import centers, deviations, widths

Drawing: TypeAlias = tuple[Any, int]
"""A batch, and how many were drawn."""

_ENTRIES = 1 << 21  # numbers of Jacobians that are held at a time
_MOST_STEPS, _MOST_HALVINGS = 50, 30
_SETTLED, _EXACT = 0.02, 1e-12  # of the first step's promise, and of F
_ARMIJO, _ROUNDING = 1e-4, 1e-13
_CURVED, _PER_VARIABLE = 2000, 20  # draws that second derivatives are measured on


class Clips(NamedTuple):
    """Centers of values and Jacobians, the units of the columns, and the levels of both by output."""

    y: Vector
    z: Array
    unit: Vector
    far_y: Vector
    far_z: Vector


class Found(NamedTuple):
    """A minimum, the share of the samples that were clipped there, and the curvature."""

    w: Vector
    clipped: float
    curvature: Curvature


class KeptDraws:
    """Batches that are kept, their means clipped sample by sample.

    Parameters
    ----------
    problem : Problem
    kept : sequence of batches with their sizes
    """

    def __init__(self, problem: Problem, kept: tuple[Drawing, ...]) -> None:
        self.problem, self.kept = problem, kept
        self.size = sum(size for _, size in kept)
        self.clips: Clips | None = None
        self.clipped = 0.0

    def sample(self) -> Sample:
        """Return the first draws, enough for second derivatives."""
        batch, size = self.kept[0]
        for other, n in self.kept[1:]:
            if size >= max(_CURVED, _PER_VARIABLE * self.problem.dimension):
                break
            batch, size = other, n
        return make_sample(self.problem, batch, size)

    def clip_around(self, w: Vector) -> None:
        """Set the centers and levels of truncation from some of the draws at w."""
        inner = self.problem.inner
        batch, size = self.kept[-1]
        values, jacobians = inner.value(w, batch, size), inner.jacobian(w, batch, size)
        y, z = centers(values), centers(jacobians)
        root = np.sqrt(np.median(np.square(jacobians).sum(axis=1), axis=0))
        unit = 1.0 / np.where((root > 0.0) & np.isfinite(root), root, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            far = np.linalg.norm((jacobians - z) * unit, axis=2)
            spread_y, spread_z = deviations(np.abs(values - y)), deviations(far)
        wide = float(widths(np.array([float(self.size)]))[0])
        self.clips = Clips(y, z, unit, *(_levels(wide * spread) for spread in (spread_y, spread_z)))

    def value(self, w: Vector) -> Vector:
        """Return the clipped mean of g."""
        total = np.zeros(self.problem.inner.shape[0])
        for batch, size in self.kept:
            total += self._clipped_values(w, batch, size)
        return total / self.size

    def objective(self, w: Vector) -> float:
        """Return F by clipped means."""
        return self.problem.outer.value(self.value(w)) + self.problem.regularizer.value(w)

    def gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return f(ŷ), and ẑᵀ∇f(ŷ)."""
        y, z, clipped = self.value(w), np.zeros(self.problem.inner.shape), 0
        for batch, size in self.kept:
            total, n = self._clipped_jacobians(w, batch, size)
            z += total
            clipped += n
        self.clipped = clipped / (self.size * len(y))
        return self.problem.outer.value(y), self.problem.outer.gradient(y) @ (z / self.size)

    def _clipped_values(self, w: Vector, batch: Any, size: int) -> Vector:
        values = self.problem.inner.value(w, batch, size)
        if self.clips is None:
            return np.asarray(values.sum(axis=0))
        y, far = self.clips.y, self.clips.far_y
        away = np.nan_to_num(values - y, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.asarray(np.clip(away, -far, far).sum(axis=0) + size * y)

    def _clipped_jacobians(self, w: Vector, batch: Any, size: int) -> tuple[Array, int]:
        jacobians = self.problem.inner.jacobian(w, batch, size)
        if self.clips is None:
            return np.asarray(jacobians.sum(axis=0)), 0
        _, z, unit, _, level = self.clips
        away = jacobians - z
        far = np.sqrt(np.einsum("npd,d->np", np.square(away), np.square(unit)))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(far <= level, 1.0, np.nan_to_num(level / far, nan=0.0))
        away = np.where(np.isfinite(far)[:, :, None], away, 0.0)
        return np.asarray(np.einsum("np,npd->pd", share, away) + size * z), int((share < 1.0).sum())


def _levels(levels: Vector) -> Vector:
    """Return the levels; where all samples agree, nothing is known of their noise, and nothing is clipped."""
    return np.where(levels > 0.0, levels, np.inf)


def batch_sizes(problem: Problem, size: int) -> list[int]:
    """Return the sizes of batches of which single Jacobians are held at a time."""
    p, d = problem.inner.shape
    most = max(1, _ENTRIES // (p * d))
    return [min(most, size - first) for first in range(0, size, most)]


def minimum_on_draws(
    draws: KeptDraws, w: Vector, curvature: Curvature | None, *, is_first: bool, is_last: bool
) -> Found:
    """Return the minimum of F by clipped means, from w on, by Newton steps."""
    if is_first:
        w, curvature = _descended(draws, w, measured_curvature(draws.sample(), w, 0.0), to_the_end=True)
    for _ in range(1 + (is_first or is_last)):
        draws.clip_around(w)
        if curvature is None or not is_last:
            curvature = measured_curvature(draws.sample(), w, 0.0)
        w, curvature = _descended(draws, w, curvature, to_the_end=False)
    return Found(w, draws.clipped, curvature)


def _descended(
    draws: KeptDraws, w: Vector, curvature: Curvature, *, to_the_end: bool
) -> tuple[Vector, Curvature]:
    """Take Newton steps until the next promises little."""
    regularizer, first = draws.problem.regularizer, None
    smooth, gradient = draws.gradient(w)
    value = smooth + regularizer.value(w)
    for _ in range(_MOST_STEPS):
        step = step_of(curvature, gradient, w, regularizer)
        promised = -float(gradient @ step) - regularizer.value(w + step) + regularizer.value(w)
        if not promised > 0.0:
            break
        first = promised if first is None else first
        trial = _searched(draws, w, step, value, promised)
        if trial is None:
            break
        smooth, after = draws.gradient(trial)
        curvature = curvature.updated(trial - w, after - gradient)
        w, gradient, value = trial, after, smooth + regularizer.value(trial)
        if promised <= (_EXACT * abs(value) if to_the_end else _SETTLED * first):
            break
    return w, curvature


def _searched(draws: KeptDraws, w: Vector, step: Vector, value: float, promised: float) -> Vector | None:
    """Return the first of w + p, w + p/2, … with a lower F; None if there is none."""
    slack = _ROUNDING * abs(value)
    for halvings in range(_MOST_HALVINGS):
        trial = w + 0.5**halvings * step
        if draws.objective(trial) <= value - _ARMIJO * 0.5**halvings * promised + slack:
            return trial
    return None
