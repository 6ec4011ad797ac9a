"""Probes of a fixed sample: curvature, noise, and a rough optimum."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast
from weakref import ref

import numpy as np
from numpy.random import Generator

from stoic.inners.blocks import IntArray, block_bounds
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import Metered
from stoic.means import SmallestBall
from stoic.problem import Problem
from stoic.protocols import Array, Vector

_JACOBIAN_ENTRIES = 20_000_000
_DENSE_ENTRIES = 1 << 20  # numbers of block Jacobians, 8 MB, beyond which those of sparse rows are not formed

_PIECE = 1 << 13
_SMALL_GAIN = 1e-4  # of the way down so far: 40 such steps would not change the optimum's size


def product(x: Vector, y: Vector) -> float:
    """Return x·y, piece by piece: BLAS shares longer products among threads, which wait for a busy core."""
    whole = x.size // _PIECE * _PIECE
    pieces = np.vecdot(x[:whole].reshape(-1, _PIECE), y[:whole].reshape(-1, _PIECE))
    return float(pieces.sum() + x[whole:] @ y[whole:])


def length(x: Vector) -> float:
    """Return ‖x‖."""
    return math.sqrt(product(x, x))


class Sample:
    """A fixed batch of a problem: deterministic functions of w. What is known at the last w is not computed again.

    Parameters
    ----------
    problem : Problem
    batch : batch of the problem's inner part
    size : int
        Of what was drawn.
    """

    def __init__(self, problem: Problem, batch: Any, size: int) -> None:
        self.problem, self.batch, self.size = problem, batch, size
        self._last: tuple[ref[Vector] | None, Any] = None, None

    @property
    def is_sparse(self) -> bool:
        """Whether it consists of sparse rows."""
        return False

    def value(self, w: Vector) -> Vector:
        """Return the mean of g(w; ξ)."""
        mean: Vector = self._at(w, lambda: self.problem.inner.value(w, self.batch)[0])
        return mean

    def values(self, w: Vector, blocks: int) -> Array:
        """Return the means of g(w; ξ) over blocks, of shape (blocks, p)."""
        return self.problem.inner.value(w, self.batch, blocks)

    def vjp(self, w: Vector, q: Vector) -> Vector:
        """Return zᵀq for the mean z of ∇g(w; ξ)."""
        return self.problem.inner.vjp(w, self.batch, q)

    def smooth(self, w: Vector) -> float:
        """Return f(mean of g(w; ξ))."""
        return self.problem.outer.value(self.value(w))

    def gradient(self, w: Vector) -> Vector:
        """Return the gradient of `smooth`."""
        return self.vjp(w, self.problem.outer.gradient(self.value(w)))

    def objective(self, w: Vector) -> float:
        """Return `smooth` plus r(w)."""
        return self.smooth(w) + self.problem.regularizer.value(w)

    def change(self, w: Vector, step: Vector, q: Vector | None = None) -> Vector:
        """Return by how much `gradient`, or zᵀq for a fixed q, changes from w − step to w + step."""
        ahead, behind = w + step, w - step
        if q is None:
            return self.gradient(ahead) - self.gradient(behind)
        return self.vjp(ahead, q) - self.vjp(behind, q)

    def jacobian_change(self, w: Vector, step: Vector) -> float:
        """Return the Frobenius norm of the change of z from w − step to w + step."""
        inner = self.problem.inner
        return float(np.linalg.norm(inner.jacobian(w + step, self.batch) - inner.jacobian(w - step, self.batch)))

    def forget(self) -> None:
        """Let go of what is large and can be computed again."""

    def _at(self, w: Vector, compute: Callable[[], Any]) -> Any:
        """Return what was computed at w, if that was the last point."""
        if self._last[0] is None or self._last[0]() is not w:
            self._last = ref(w), compute()
        return self._last[1]


class LinearSample(Sample):
    """A fixed batch of a linear model: what it predicts at w ± step follows from w and the step."""

    def __init__(self, problem: Problem, batch: Any, size: int) -> None:
        super().__init__(problem, batch, size)
        self.meter = problem.inner if isinstance(problem.inner, Metered) else None
        self.inner: GroupLoss = cast("GroupLoss", self.meter.inner if self.meter else problem.inner)
        self.rows: RowBatch = batch.batch if self.meter else batch

    @property
    def is_sparse(self) -> bool:
        """Whether it consists of sparse rows."""
        return not isinstance(self.inner.X, np.ndarray)

    def value(self, w: Vector) -> Vector:
        """Return the mean of g(w; ξ)."""
        mean: Vector = self.values(w, 1)[0]
        return mean

    def values(self, w: Vector, blocks: int) -> Array:
        """Return the means of g(w; ξ) over blocks."""
        self._count(w)
        return self.inner.value_at(self._prediction(w), self.rows, blocks)

    def vjp(self, w: Vector, q: Vector) -> Vector:
        """Return zᵀq for the mean z of ∇g(w; ξ)."""
        self._count(w)
        return self.inner.combine(self._weights(self._prediction(w), q), self.rows)

    def slopes(self, w: Vector) -> Array:
        """Return the derivatives of the losses in the predictions at w."""
        self._count(w)
        return self.inner.slopes_at(self._prediction(w), self.rows)

    def change(self, w: Vector, step: Vector, q: Vector | None = None) -> Vector:
        """Return the change between two points: one product with the rows, one combination of them."""
        ahead, behind = (self._weights(prediction, q) for prediction in self._around(w, step))
        return self.inner.combine(ahead - behind, self.rows)

    def jacobian_change(self, w: Vector, step: Vector) -> float:
        """Return the Frobenius norm of the change of z, one row of it after another."""
        ahead, behind = (self.inner.slopes_at(prediction, self.rows) for prediction in self._around(w, step))
        change = (ahead - behind) / self.size
        alone = np.eye(len(change))[:, :, None]
        return math.hypot(*(length(self.inner.combine(one * change, self.rows)) for one in alone))

    def forget(self) -> None:
        """Let go of the rows that were gathered."""
        self.rows.forget()

    def _prediction(self, w: Vector) -> Array:
        prediction: Array = self._at(w, lambda: self.inner.predict(w, self.rows))
        return prediction

    def _weights(self, prediction: Array, q: Vector | None) -> Array:
        """Return the weights of the rows in zᵀq, by default for q = ∇f, where the model predicts `prediction`."""
        if q is None:
            q = self.problem.outer.gradient(self.inner.value_at(prediction, self.rows)[0])
        return self.inner.slopes_at(prediction, self.rows) * (q / self.size)[:, None]

    def _around(self, w: Vector, step: Vector) -> tuple[Array, Array]:
        """Return the predictions at w + step and w − step, two new points."""
        if self.meter is not None:
            self.meter.charge(0, 2 * self.batch.size)
        here, along = self._prediction(w), self.inner.predict(step, self.rows)
        return here + along, here - along

    def _count(self, w: Vector) -> None:
        """Count a point as the meter does, once for each batch."""
        if self.meter is None:
            return
        alive = [point for point in self.batch.points if point() is not None]
        if not any(w is point() for point in alive):
            alive.append(ref(w))
            self.meter.charge(0, self.batch.size)
        self.batch.points[:] = alive


def draw_sample(problem: Problem, size: int, rng: Generator) -> Sample:
    """Return a batch of `size` to be evaluated at many points."""
    inner = problem.inner.inner if isinstance(problem.inner, Metered) else problem.inner
    kind = LinearSample if type(inner) is GroupLoss else Sample
    return kind(problem, problem.inner.draw(size, rng), size)


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
    """Run proximal gradient with backtracking on the fixed sample, until a step gains little."""
    L = L if 0.0 < L < math.inf else 1.0
    first = last = sample.objective(w)
    for _ in range(n_steps):
        value, gradient = sample.smooth(w), sample.gradient(w)
        for _ in range(60):
            ahead = gradient / -L
            ahead += w
            trial = sample.problem.regularizer.prox(ahead, 1.0 / L)
            move = trial - w
            squared = product(move, move)
            bound = value + product(gradient, move) + 0.5 * L * squared
            if sample.smooth(trial) <= bound + 1e-12 * abs(value):
                break
            L *= 2.0
        else:
            return w
        reached = sample.objective(trial)
        if not last - reached > _SMALL_GAIN * (first - reached):
            return w
        w, L, last = trial, 0.7 * L, reached
    return w


def curvature(
    sample: Sample, w: Vector, probe: float, rng: Generator, *, shift: float = 0.0, n_steps: int = 10
) -> float:
    """Return the largest eigenvalue of H, or of shift·I − H, by power iteration on gradient differences."""
    direction = rng.standard_normal(w.size)
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
    return Noise(slope, math.hypot(size, sigma1), sigma0, sigma1)


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
    return float(np.linalg.norm(z)), float(np.median(far))


def median_distance(block_means: Array, center: Array) -> float:
    """Return the median distance of block means to a robust mean: a robust scale of their noise."""
    return float(np.median(np.linalg.norm((block_means - center).reshape(len(block_means), -1), axis=1)))


def jacobian_smoothness(sample: Sample, w: Vector, probe: float, rng: Generator, n_steps: int = 6) -> float:
    """Return L_g: power iteration on the summed Hessians, then the Frobenius norm along the direction found."""
    direction = rng.standard_normal(w.size)
    ones = np.ones(sample.problem.inner.shape[0])
    for _ in range(n_steps):
        direction /= length(direction) or 1.0
        direction = sample.change(w, probe * direction, ones)
    direction /= length(direction) or 1.0
    return sample.jacobian_change(w, probe * direction) / (2.0 * probe)
