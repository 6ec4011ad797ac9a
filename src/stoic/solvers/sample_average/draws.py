"""The robust sample average of any inner part: draws that are kept, their truncated means, and Newton steps."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stoic.pilot.fixed_sample import Sample, make_sample
from stoic.problem import Problem
from stoic.protocols import Array, Regularizer, Vector
from stoic.regularizers import Zero, terms_of
from stoic.solvers.sample_average.curvature import MOST_FORMED, Curvature, measured_curvature, step_of
from stoic.solvers.sample_average.levels import centers, deviations, widths

Drawing: TypeAlias = tuple[Any, int]
"""A batch, and how many were drawn."""

_ENTRIES = 1 << 21  # numbers of Jacobians that are held at a time
_MOST_STEPS, _MOST_HALVINGS = 50, 30
_SETTLED, _EXACT = 0.02, 1e-12  # of the first step's promise, and of F
_ARMIJO, _ROUNDING, _STUCK = 1e-4, 1e-13, 1e-3
_REFERENCE = 2000  # draws that centers and levels are measured on
_CURVED, _PER_VARIABLE = 2000, 20  # draws that second derivatives are measured on


class Clips(NamedTuple):
    """Centers of values and Jacobians, the units of the columns, and the levels of both by output."""

    y: Vector
    z: Array
    unit: Vector
    far_y: Vector
    far_z: Vector


class Found(NamedTuple):
    """A minimum, the share of the samples that were clipped, the curvature, and whether no step lowers F."""

    w: Vector
    clipped: float
    curvature: Curvature | None = None
    is_stuck: bool = False


class KeptDraws:
    """Batches that are kept, their means clipped sample by sample.

    Parameters
    ----------
    problem : Problem
    kept : sequence of batches with their sizes
    is_whole : bool
        Whether it is all data as one batch, of which nothing is clipped.
    """

    def __init__(self, problem: Problem, kept: tuple[Drawing, ...], *, is_whole: bool = False) -> None:
        self.problem, self.kept, self.is_whole = problem, kept, is_whole
        self.size = sum(size for _, size in kept)
        self.clips: Clips | None = None
        self.clipped = 0.0
        terms = terms_of(problem.regularizer, problem.dimension)
        self.bent = None if terms is None or terms.l1.any() else terms
        self.rough: Regularizer = problem.regularizer if self.bent is None else Zero()

    @property
    def are_few(self) -> bool:
        """Whether second derivatives are worth measuring anew."""
        return self.size <= 4 * max(_CURVED, _PER_VARIABLE * self.problem.dimension)

    def sample(self) -> Sample:
        """Return the first draws, enough for second derivatives."""
        batch, size = self.kept[0]
        if self.is_whole:
            return Sample(self.problem, batch, size)
        for other, n in self.kept[1:]:
            if size >= max(_CURVED, _PER_VARIABLE * self.problem.dimension):
                break
            batch, size = other, n
        return make_sample(self.problem, batch, size)

    def clip_around(self, w: Vector) -> None:
        """Set the centers and levels of truncation from some of the draws at w."""
        inner, some, n = self.problem.inner, [], 0
        for batch, size in reversed(self.kept):
            some.append((inner.value(w, batch, size), inner.jacobian(w, batch, size)))
            n += size
            if n >= _REFERENCE:
                break
        values, jacobians = (np.concatenate(parts) for parts in zip(*some, strict=True))
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

    def curvature(self, w: Vector) -> Curvature:
        """Return the second derivatives of the smooth part of F at w, on some of the draws."""
        measured = measured_curvature(self.sample(), w, self.gradient(w)[1])
        return measured if self.bent is None else measured.plus(self.bent.l2)

    def gradient(self, w: Vector) -> tuple[float, Vector]:
        """Return the smooth part of F by clipped means, and its gradient: r is in it where it is smooth."""
        value, gradient = self._composed(w)
        if self.bent is None:
            return value, gradient
        value += self.problem.regularizer.value(w)
        return value, gradient + self.bent.l2 * w + self.bent.linear

    def _composed(self, w: Vector) -> tuple[float, Vector]:
        """Return f(ŷ), and ẑᵀ∇f(ŷ)."""
        problem, y = self.problem, self.value(w)
        q = problem.outer.gradient(y)
        if self.clips is None:
            total = np.zeros(problem.dimension)
            for batch, size in self.kept:
                total += problem.inner.vjp(w, batch, q) * (size / self.size)
            return problem.outer.value(y), total
        z, clipped = np.zeros(problem.inner.shape), 0
        for batch, size in self.kept:
            some, n = self._clipped_jacobians(w, batch, size, self.clips)
            z += some
            clipped += n
        self.clipped = clipped / (self.size * len(y))
        return problem.outer.value(y), q @ (z / self.size)

    def _clipped_values(self, w: Vector, batch: Any, size: int) -> Vector:
        if self.clips is None:
            return np.asarray(size * self.problem.inner.value(w, batch)[0])
        y, far = self.clips.y, self.clips.far_y
        values = self.problem.inner.value(w, batch, size)
        away = np.nan_to_num(values - y, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return np.asarray(np.clip(away, -far, far).sum(axis=0) + size * y)

    def _clipped_jacobians(self, w: Vector, batch: Any, size: int, clips: Clips) -> tuple[Array, int]:
        _, z, unit, _, level = clips
        away = self.problem.inner.jacobian(w, batch, size) - z
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
    if curvature is None or (draws.are_few and w.size <= MOST_FORMED):
        curvature = draws.curvature(w)
    descent = None
    if is_first:
        descent = _descended(draws, w, curvature, 0.0 if draws.is_whole else None)
        w, curvature = descent.w, descent.curvature
    enough = None
    for _ in range(0 if draws.is_whole else 1 + (is_first or is_last)):
        draws.clip_around(w)
        descent = _descended(draws, w, curvature, enough)
        w, curvature = descent.w, descent.curvature
        enough = _SETTLED * descent.first if enough is None else enough
    return Found(w, draws.clipped, curvature, descent is not None and descent.is_stuck)


class Descent(NamedTuple):
    """The end of a descent, the curvature there, what its first step promised, and whether no step lowers F."""

    w: Vector
    curvature: Curvature
    first: float
    is_stuck: bool


def _descended(draws: KeptDraws, w: Vector, curvature: Curvature, enough: float | None) -> Descent:
    """Take Newton steps until one promises no more than `enough`, or little of what the first one did."""
    regularizer, first, is_stuck = draws.rough, 0.0, False
    smooth, gradient = draws.gradient(w)
    value = smooth + regularizer.value(w)
    for t in range(_MOST_STEPS + 3 * w.size):
        step = step_of(curvature, gradient, w, regularizer)
        promised = -float(gradient @ step) - regularizer.value(w + step) + regularizer.value(w)
        if not promised > 0.0:
            break
        first = promised if t == 0 else first
        trial = _searched(draws, w, step, value, promised)
        if trial is None:
            is_stuck = promised > max(_STUCK * abs(value), enough or 0.0) and t == 0
            break
        smooth, after = draws.gradient(trial)
        curvature = curvature.updated(trial - w, after - gradient)
        w, gradient, value = trial, after, smooth + regularizer.value(trial)
        if promised <= max(_SETTLED * first if enough is None else enough, _EXACT * abs(value)):
            break
    return Descent(w, curvature, first, is_stuck)


def _searched(draws: KeptDraws, w: Vector, step: Vector, value: float, promised: float) -> Vector | None:
    """Return the first of w + p, w + p/2, … with a lower F; None if there is none."""
    slack = _ROUNDING * abs(value)
    for halvings in range(_MOST_HALVINGS):
        trial = w + 0.5**halvings * step
        if draws.objective(trial) <= value - _ARMIJO * 0.5**halvings * promised + slack:
            return trial
    return None
