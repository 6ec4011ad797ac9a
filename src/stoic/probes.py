"""Probes of a fixed sample: curvature, noise, and a rough optimum."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from stoic.means import SmallestBall
from stoic.problem import Problem
from stoic.protocols import Array, Vector

_JACOBIAN_ENTRIES = 20_000_000


class Sample(NamedTuple):
    """A fixed batch of a problem: deterministic functions of w."""

    problem: Problem
    batch: Any
    size: int

    def smooth(self, w: Vector) -> float:
        """Return f(mean of g(w; ξ))."""
        return self.problem.outer.value(self.problem.inner.value(w, self.batch)[0])

    def gradient(self, w: Vector) -> Vector:
        """Return the gradient of `smooth`."""
        return self.problem.batch_gradient(w, self.batch)

    def objective(self, w: Vector) -> float:
        """Return `smooth` plus r(w)."""
        return self.smooth(w) + self.problem.regularizer.value(w)


def descend(sample: Sample, w: Vector, L: float, n_steps: int = 40) -> Vector:
    """Run proximal gradient with backtracking on the fixed sample."""
    L = L if 0.0 < L < math.inf else 1.0
    for _ in range(n_steps):
        value, gradient = sample.smooth(w), sample.gradient(w)
        for _ in range(60):
            trial = sample.problem.regularizer.prox(w - gradient / L, 1.0 / L)
            move = trial - w
            bound = value + gradient @ move + 0.5 * L * (move @ move)
            if sample.smooth(trial) <= bound + 1e-12 * abs(value):
                break
            L *= 2.0
        else:
            return w
        if not np.isfinite(trial).all() or np.linalg.norm(move) <= 1e-9 * np.linalg.norm(trial):
            return w
        w, L = trial, 0.7 * L
    return w


def curvature(
    sample: Sample, w: Vector, probe: float, rng: Generator, *, shift: float = 0.0, n_steps: int = 10
) -> float:
    """Return the largest eigenvalue of H, or of shift·I − H, by power iteration on gradient differences."""
    direction = rng.standard_normal(w.size)
    largest = 0.0
    for _ in range(n_steps):
        direction /= np.linalg.norm(direction) or 1.0
        step = probe * direction
        product = (sample.gradient(w + step) - sample.gradient(w - step)) / (2.0 * probe)
        product = shift * direction - product if shift else product
        largest = float(np.linalg.norm(product))
        if not 0.0 < largest < math.inf:
            break
        direction = product
    return largest


class Spread(NamedTuple):
    """Median deviation of single samples' gradients, and their expected smoothness."""

    noise: float
    smoothness: float


def single_samples(sample: Sample, singles: list[Any], w0: Vector, w1: Vector) -> Spread:
    """Return how the gradients of single samples scatter at w₁, and how they change from w₀ to w₁.

    For convex samples E‖∇(w₁) − ∇(w₀)‖² ≤ L ⟨E∇(w₁) − E∇(w₀), w₁ − w₀⟩, L the expected smoothness.
    """
    problem, inner = sample.problem, sample.problem.inner
    q = problem.outer.gradient(inner.value(w1, sample.batch)[0])
    mean = inner.vjp(w1, sample.batch, q)
    deviations, squares, products = [], 0.0, 0.0
    for single in singles:
        after, before = inner.vjp(w1, single, q), inner.vjp(w0, single, q)
        deviations.append(float(np.linalg.norm(after - mean)))
        squares += float((after - before) @ (after - before))
        products += float((after - before) @ (w1 - w0))
    return Spread(float(np.median(deviations)), squares / products if products > 0.0 else 0.0)


class Noise(NamedTuple):
    """Robust estimates of (E‖∇g‖²)^½, σ₀ and σ₁, and ‖∇f‖ at the robust mean of g."""

    slope: float
    C_g: float
    sigma0: float
    sigma1: float


def noise(parts: list[Sample], w: Vector) -> Noise:
    """Return robust estimates from block means at w, blocks of all parts together."""
    problem = parts[0].problem
    p, d = problem.inner.shape
    most = max(1, min(6, _JACOBIAN_ENTRIES // (p * d * len(parts))))
    blocks = min(most, *(part.size for part in parts))
    values = np.concatenate([problem.inner.value(w, part.batch, blocks) for part in parts])
    jacobians = np.concatenate([problem.inner.jacobian(w, part.batch, blocks) for part in parts])
    center = SmallestBall(0.5).combine  # any δ: the blocks are given
    y, z = center(values), center(jacobians)
    per_sample = math.sqrt(sum(part.size for part in parts) / len(values))
    sigma0, sigma1 = per_sample * median_distance(values, y), per_sample * median_distance(jacobians, z)
    slope = float(np.linalg.norm(problem.outer.gradient(y)))
    return Noise(slope, math.hypot(float(np.linalg.norm(z)), sigma1), sigma0, sigma1)


def median_distance(block_means: Array, center: Array) -> float:
    """Return the median distance of block means to a robust mean: a robust scale of their noise."""
    return float(np.median(np.linalg.norm((block_means - center).reshape(len(block_means), -1), axis=1)))


def jacobian_smoothness(sample: Sample, w: Vector, probe: float, rng: Generator, n_steps: int = 6) -> float:
    """Return L_g: power iteration on the summed Hessians, then the Frobenius norm along the direction found."""
    inner = sample.problem.inner
    direction = rng.standard_normal(w.size)
    ones = np.ones(inner.shape[0])
    for _ in range(n_steps):
        direction /= np.linalg.norm(direction) or 1.0
        step = probe * direction
        direction = inner.vjp(w + step, sample.batch, ones) - inner.vjp(w - step, sample.batch, ones)
    direction /= np.linalg.norm(direction) or 1.0
    step = probe * direction
    change = inner.jacobian(w + step, sample.batch) - inner.jacobian(w - step, sample.batch)
    return float(np.linalg.norm(change)) / (2.0 * probe)
