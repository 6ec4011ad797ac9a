"""Probes of a sample: curvature, noise, and a rough optimum."""

import math
from typing import NamedTuple, cast

import numpy as np
from numpy.random import Generator

from stoic.inners.blocks import IntArray, block_bounds
from stoic.means import SmallestBall
from stoic.pilot.fixed_sample import LinearSample, Sample, length, product
from stoic.protocols import Array, Vector

_JACOBIAN_ENTRIES = 20_000_000
_DENSE_ENTRIES = 1 << 20  # numbers of block Jacobians, 8 MB, beyond which those of sparse rows are not formed

_ROUNDING = 1e-12  # of the size of a mean: distances that mean nothing
_DIRECTIONS = 1 << 19  # numbers of the directions of Lanczos' method, 4 MB
_DESCENT_WORK, _FEWEST_DESCENTS = (
    4_000_000,
    8,
)  # numbers that a descent may pass over; steps that it takes at least
_POWER_WORK, _FEWEST_POWERS = 300_000, 3
_SMALL_GAIN = 1e-4  # of the way down so far: 40 such steps would not change the optimum's size


def first_smoothness(sample: Sample, w: Vector) -> float:
    """Return 1/t for the longest of the steps t, 2t, 4t, … along −∇ that goes down by half of what is promised.

    The first one would change the objective by its own size if it were linear, so that units do not matter. Unlike
    the curvature at w this does not vanish where the loss is linear, far from the data.
    """
    values = sample.value(w)
    q = sample.problem.outer.gradient(values)
    gradient = sample.vjp(w, q)
    squared, size = product(gradient, gradient), float(np.linalg.norm(q) * np.linalg.norm(values))
    t = size / squared if squared > 0.0 else 0.0
    if not 0.0 < t < math.inf:
        return 1.0
    start = sample.smooth(w)

    def goes_down(t: float) -> bool:
        return sample.smooth(w - t * gradient) <= start - 0.5 * t * squared

    grow = goes_down(t)
    for _ in range(60):
        if goes_down(2.0 * t if grow else t) != grow:
            break
        t *= 2.0 if grow else 0.5
    return 1.0 / t


def descend(sample: Sample, w: Vector, L: float, n_steps: int = 40) -> Vector:
    """Run accelerated proximal gradient with backtracking on the fixed sample, until two steps gain little.

    The momentum is that of Nesterov, begun anew where the objective would rise. On a large sample there are fewer
    steps.
    """
    n_steps = min(n_steps, max(_FEWEST_DESCENTS, _DESCENT_WORK // sample.work))
    L, before, pace = L if 0.0 < L < math.inf else 1.0, w, 1.0
    first = last = sample.objective(w)
    is_slow = False
    for _ in range(n_steps):
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * pace * pace))
        ahead = w if pace == 1.0 else w + ((pace - 1.0) / following) * (w - before)
        trial, L = _prox_step(sample, ahead, L)
        reached = math.nan if trial is None else sample.objective(trial)
        if trial is None or not reached <= last:
            if pace == 1.0:
                return w
            before, pace = w, 1.0
            continue
        gains_little = not last - reached > _SMALL_GAIN * (first - reached)
        before, w, pace, L, last = w, trial, following, 0.8 * L, reached
        if gains_little and is_slow:
            return w
        is_slow = gains_little
    return w


def _prox_step(sample: Sample, w: Vector, L: float) -> tuple[Vector | None, float]:
    """Return the proximal gradient step from w, and the smoothness along it; None where there is none."""
    value, gradient = sample.smooth(w), sample.gradient(w)
    for _ in range(60):
        ahead = gradient / -L
        ahead += w
        trial = sample.problem.regularizer.prox(ahead, 1.0 / L)
        move = trial - w
        squared = product(move, move)
        bound = value + product(gradient, move) + 0.5 * L * squared
        if sample.smooth(trial) <= bound + 1e-12 * abs(value):
            return trial, L
        L *= 2.0
    return None, L


def is_large(sample: Sample) -> bool:
    """Whether a probe of a sample is so much work that few have to do."""
    return sample.work > _POWER_WORK


def curvature(
    sample: Sample, w: Vector, probe: float, rng: Generator, *, shift: float = 0.0, n_steps: int = 10
) -> float:
    """Return the largest eigenvalue of H, or of shift·I − H, by power iteration on gradient differences."""
    direction = rng.standard_normal(w.size)
    n_steps = min(n_steps, max(_FEWEST_POWERS, _POWER_WORK // sample.work))
    largest = 0.0
    for _ in range(n_steps):
        direction /= length(direction) or 1.0
        step = probe * direction
        image = sample.change(w, step)
        image /= 2.0 * probe
        image = shift * direction - image if shift else image
        largest = length(image)
        if not 0.0 < largest < math.inf:
            break
        direction = image
    return largest


class Spectrum(NamedTuple):
    """The largest and the smallest curvature that were found."""

    largest: float
    smallest: float


def spectrum(sample: Sample, w: Vector, probe: float, rng: Generator, *, n_steps: int = 24) -> Spectrum:
    """Return the extreme curvatures of a sample at w, by Lanczos' method on gradient differences.

    The directions are kept orthogonal, so that after d steps both are exact but for rounding; before that the
    largest is a little too small, and the smallest too large. Where the directions would take much memory, there
    are fewer.
    """
    d = w.size
    n_steps = min(d, max(_FEWEST_POWERS, min(n_steps, _DIRECTIONS // d, _POWER_WORK // sample.work)))
    basis, diagonal, beside = np.empty((n_steps, d)), [], []
    direction = rng.standard_normal(d)
    direction /= length(direction)
    for k in range(n_steps):
        basis[k] = direction
        image = sample.change(w, probe * direction)
        image /= 2.0 * probe
        diagonal.append(product(image, direction))
        for _ in range(2):  # the second time for rounding
            image -= basis[: k + 1].T @ (basis[: k + 1] @ image)
        size = length(image)
        if not (1e-10 * abs(diagonal[0]) < size < math.inf) or k == n_steps - 1:
            break
        beside.append(size)
        direction = image / size
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    if not np.isfinite(matrix).all():
        return Spectrum(math.inf, 0.0)
    values = np.linalg.eigvalsh(matrix)
    return Spectrum(float(values[-1]), float(values[0]))


class Spread(NamedTuple):
    """Median deviation of single samples' gradients, their expected smoothness, and that without the outliers."""

    noise: float
    smoothness: float
    typical_smoothness: float


def single_samples(sample: Sample, singles: list[Sample], w0: Vector, w1: Vector) -> Spread:
    """Return how the gradients of single samples scatter at w₁, and how they change from w₀ to w₁.

    For convex samples E‖∇(w₁) − ∇(w₀)‖² ≤ L ⟨E∇(w₁) − E∇(w₀), w₁ − w₀⟩, L the expected smoothness. The quarter of
    the samples whose gradients change most are its outliers.
    """
    q = sample.problem.outer.gradient(sample.value(w1))
    mean, way = sample.vjp(w1, q), w1 - w0
    deviations, changes = [], []
    for single in singles:
        after = single.vjp(w1, q)
        change = after - single.vjp(w0, q)
        deviations.append(length(after - mean))
        changes.append((product(change, change), product(change, way)))
        single.forget()
    usual = sorted(changes)[: math.ceil(0.75 * len(changes))]
    return Spread(float(np.median(deviations)), _expected_smoothness(changes), _expected_smoothness(usual))


def _expected_smoothness(changes: list[tuple[float, float]]) -> float:
    squares, products = (math.fsum(column) for column in zip(*changes, strict=True))
    return squares / products if products > 0.0 else 0.0


class NoiseScale(NamedTuple):
    """Robust estimates of (E‖∇g‖²)^½, σ₀ and σ₁, and ‖∇f‖ at the robust mean of g."""

    slope: float
    C_g: float
    sigma0: float
    sigma1: float


def noise(parts: list[Sample], w: Vector) -> NoiseScale:
    """Return robust estimates from block means at w, blocks of all parts together."""
    problem = parts[0].problem
    p, d = problem.inner.shape
    most = max(1, min(6, _JACOBIAN_ENTRIES // (p * d * len(parts))))
    if is_large(parts[0]):
        most = min(most, 2)
    blocks = min(most, *(part.size for part in parts))
    means = []
    for part in parts:
        means.append(part.values(w, blocks))
        part.forget()
    values = np.concatenate(means)
    y = SmallestBall(0.5).combine(values)  # any δ: the blocks are given
    size, far = _jacobian_noise(parts, w, blocks)
    per_sample = math.sqrt(sum(part.size for part in parts) / len(values))
    sigma0, sigma1 = per_sample * median_distance(values, y), per_sample * far
    slope = float(np.linalg.norm(problem.outer.gradient(y)))
    return NoiseScale(slope, math.hypot(size, sigma1), sigma0, sigma1)


def _jacobian_noise(parts: list[Sample], w: Vector, blocks: int) -> tuple[float, float]:
    """Return the norm of the robust mean of the blocks' Jacobians, and their median distance to it."""
    p, d = parts[0].problem.inner.shape
    if p * d * blocks * len(parts) > _DENSE_ENTRIES and all(part.is_sparse for part in parts):
        return _sparse_jacobian_noise(cast("list[LinearSample]", parts), w, blocks)
    jacobians = np.concatenate([part.problem.inner.jacobian(w, part.batch, blocks) for part in parts])
    z = SmallestBall(0.5).combine(jacobians)
    return float(np.linalg.norm(z)), median_distance(jacobians, z)


def _sparse_jacobian_noise(parts: list["LinearSample"], w: Vector, blocks: int) -> tuple[float, float]:
    from stoic.inners.sparse_blocks import SparseBlocks  # noqa: PLC0415 - loads numba

    rows = np.hstack([cast("IntArray", part.rows.rows) for part in parts])
    slopes = np.hstack([part.slopes(w) for part in parts])
    sizes = np.concatenate([np.diff(block_bounds(part.size, blocks)) for part in parts])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    z, far = SparseBlocks(parts[0].inner, rows, slopes).smallest_ball(bounds)
    size = float(np.linalg.norm(z))
    return size, typical(far, size)


def median_distance(block_means: Array, center: Array) -> float:
    """Return the median distance of block means to a robust mean: a robust scale of their noise."""
    distances = np.linalg.norm((block_means - center).reshape(len(block_means), -1), axis=1)
    return typical(distances, float(np.linalg.norm(center)))


def typical(distances: Vector, size: float) -> float:
    r"""Return the median of distances to a center of norm `size`: a robust scale.

    Under a law with atoms (targets that are mostly zero, rare events) more than half of them may be zero but for
    rounding. Then it is the median of the others times the root of their share, which is near the deviation; 0 if
    there are no others.

    Examples
    --------
    >>> import numpy as np
    >>> typical(np.array([1.0, 2.0, 5.0]), 1.0), typical(np.array([0.0, 0.0, 0.0, 3.0]), 1.0)
    (2.0, 1.5)
    """
    median, others = float(np.median(distances)), distances[distances > _ROUNDING * size]
    if median > _ROUNDING * size:
        return median
    return float(np.median(others)) * math.sqrt(len(others) / len(distances)) if len(others) else 0.0


def jacobian_smoothness(sample: Sample, w: Vector, probe: float, rng: Generator, n_steps: int = 6) -> float:
    """Return L_g: power iteration on the summed Hessians, then the Frobenius norm along the direction found."""
    direction = rng.standard_normal(w.size)
    n_steps = min(n_steps, max(_FEWEST_POWERS, _POWER_WORK // sample.work))
    ones = np.ones(sample.problem.inner.shape[0])
    for _ in range(n_steps):
        direction /= length(direction) or 1.0
        direction = sample.change(w, probe * direction, ones)
    direction /= length(direction) or 1.0
    return sample.jacobian_change(w, probe * direction) / (2.0 * probe)
