"""Robust means of heavy-tailed samples: Algorithm 1, and its rivals."""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from stoic.checks import check_count, check_probability, refuse_masks
from stoic.errors import InvalidParameter
from stoic.protocols import Array


class MeanEstimator(Protocol):
    """An estimate of a mean from a batch, by way of the means over blocks of it."""

    @property
    def smallest_batch(self) -> int:
        """The fewest samples that the estimator can work on."""
        ...

    def n_blocks(self, size: int) -> int:
        """Return the number of blocks to cut a batch of `size` into, or raise `InvalidParameter`."""
        ...

    def combine(self, block_means: Array) -> Array:
        """Return the estimate, of shape (...), from block means of shape (n_blocks, ...)."""
        ...


def robust_mean(x: ArrayLike, delta: float = 0.05) -> float | Array:
    r"""Return a mean that heavy tails and corrupted samples cannot move far: Algorithm 1.

    Of n samples with mean μ and variance σ² (the trace of the covariance) it takes the median of
    :math:`k = \lceil 8 \log(1/\delta) \rceil` block means if they are scalars, the smallest half-ball of
    :math:`k = \lceil 18 \log(1/\delta) \rceil` if they are vectors. With probability at least 1 − δ

    .. math:: (\bar\mu - \mu)^2 \le 4 \sigma^2 / \lfloor n/k \rfloor, \qquad\text{or}\qquad
        \|\bar\mu - \mu\|^2 \le 27 \sigma^2 / \lfloor n/k \rfloor. \qquad\text{(Lemma 1)}

    Parameters
    ----------
    x : array_like of shape (n, ...)
        Independent samples. Shapes (n,) and (n, 1) count as scalars, all others as vectors.
    delta : float, default 0.05
        Probability that the bound may fail.

    Returns
    -------
    float, or ndarray of shape (...)
        As `median_of_means` and `smallest_ball_mean`, which also say what becomes of infinities and NaNs.

    Raises
    ------
    InvalidParameter
        If x is empty or not numeric, or n < k; the message says which δ n samples can buy.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_t(2.1, size=1000)
    >>> x[0] = 1e12
    >>> print(f"{robust_mean(x, delta=0.01):.2f}")
    0.04
    """
    x = _samples(x)
    estimator = MedianOfMeans(delta) if x.shape[1:] in {(), (1,)} else SmallestBall(delta)
    return estimator.combine(block_means(x, n_blocks=_enough("len(x)", len(x), estimator)))[()]


def median_of_means(x: ArrayLike, *, n_blocks: int) -> float | Array:
    """Return the median of the means over k = `n_blocks` blocks: Algorithm 1 for scalars.

    Samples of shape (n, ...) give shape (...), each coordinate by itself. One block gives the plain mean, and
    so do two of equal size. Infinite and NaN block means lie beyond all others: while they are fewer than
    half, the result is finite.

    Examples
    --------
    >>> print(median_of_means([1.0, 3.0, 2.0, 2.0, 3.0, 1e12], n_blocks=3))
    2.0
    """
    return _median(block_means(x, n_blocks=n_blocks))[()]


def smallest_ball_mean(X: ArrayLike, *, n_blocks: int) -> float | Array:
    r"""Return the block mean whose ball is the smallest to hold half of them: Algorithm 1 for vectors.

    With :math:`r_i` the ⌈k/2⌉-th smallest distance from block mean i to the k block means, itself included,
    the smallest :math:`r_i` wins; ties go to the first (Hsu and Sabato, JMLR 17, 2016). Samples of shape
    (n, ...) give shape (...); distances are Euclidean, for matrices Frobenius. With k ≤ 2 every ball has
    radius 0. Infinite and NaN block means never win; if they are more than half, the result is NaN.

    Examples
    --------
    >>> smallest_ball_mean([[0.0, 0.0], [1.0, 0.0], [1e12, 7.0], [3.0, 0.0], [1.0, 1.0]], n_blocks=5)
    array([1., 0.])
    """
    return _center_of_smallest_ball(block_means(X, n_blocks=n_blocks))[()]


def block_means(x: ArrayLike, *, n_blocks: int) -> Array:
    """Return the means over consecutive blocks of (n, ...) samples, of shape (n_blocks, ...).

    Sizes differ by at most one, the larger blocks first, as in `numpy.array_split`. A block that holds an
    infinity or a NaN, or whose sum overflows, has an infinite or NaN mean.

    Examples
    --------
    >>> block_means([1.0, 2.0, 3.0, 10.0, 20.0], n_blocks=2)
    array([ 2., 15.])
    """
    x, k = _samples(x), check_count("n_blocks", n_blocks)
    if len(x) < k:
        raise InvalidParameter(f"len(x)={len(x)} is below n_blocks={k}; use n_blocks <= {len(x)}.")
    size, n_larger = divmod(len(x), k)
    larger, rest = np.split(x, [n_larger * (size + 1)])
    with np.errstate(over="ignore", invalid="ignore"):
        means_of_larger = larger.reshape(n_larger, size + 1, *x.shape[1:]).mean(axis=1)
        means_of_rest = rest.reshape(k - n_larger, size, *x.shape[1:]).mean(axis=1)
    return np.concatenate([means_of_larger, means_of_rest])


def n_scalar_blocks(delta: float) -> int:
    """Return ⌈8 log(1/δ)⌉: with so many blocks Lemma 1 holds for scalars with probability 1 − δ."""
    return MedianOfMeans(delta).blocks


def n_vector_blocks(delta: float) -> int:
    """Return ⌈18 log(1/δ)⌉: with so many blocks Lemma 1 holds for vectors with probability 1 − δ."""
    return SmallestBall(delta).blocks


@dataclass(frozen=True)
class Mean:
    """The plain mean: not robust, but nothing is better where tails are light."""

    @property
    def smallest_batch(self) -> int:
        """1."""
        return 1

    def n_blocks(self, size: int) -> int:
        """Return 1."""
        check_count("batch_size", size)
        return 1

    def combine(self, block_means: Array) -> Array:
        """Return the mean along the first axis."""
        return np.asarray(block_means.mean(axis=0))


@dataclass(frozen=True)
class _DeltaBlocks:
    """Base of estimators that take ⌈rate · log(1/δ)⌉ blocks to fail with probability at most δ."""

    delta: float
    rate: ClassVar[float]

    def __post_init__(self) -> None:
        check_probability("delta", self.delta)

    @property
    def blocks(self) -> int:
        """⌈rate · log(1/δ)⌉."""
        # The small shift undoes rounding, so that k blocks buy exactly δ = e^(−k/rate).
        return max(1, math.ceil(-self.rate * math.log(self.delta) - 1e-9))

    @property
    def smallest_batch(self) -> int:
        """One sample a block."""
        return self.blocks

    def n_blocks(self, size: int) -> int:
        """Return `blocks`, or raise `InvalidParameter` if a batch of `size` samples cannot fill them."""
        return _enough("batch_size", check_count("batch_size", size), self)


@dataclass(frozen=True)
class MedianOfMeans(_DeltaBlocks):
    """The coordinatewise median of ⌈8 log(1/δ)⌉ block means; Lemma 1 holds for each coordinate."""

    rate: ClassVar[float] = 8.0

    def combine(self, block_means: Array) -> Array:
        """Return the median along the first axis, as `median_of_means` does."""
        return _median(block_means)


@dataclass(frozen=True)
class SmallestBall(_DeltaBlocks):
    """The block mean, of ⌈18 log(1/δ)⌉, whose ball is the smallest to hold half of them; Lemma 1 holds."""

    rate: ClassVar[float] = 18.0

    def combine(self, block_means: Array) -> Array:
        """Return the center of the smallest half-ball, as `smallest_ball_mean` does."""
        return _center_of_smallest_ball(block_means)


@dataclass(frozen=True)
class GeometricMedianOfMeans(_DeltaBlocks):
    """The point with the smallest sum of distances to ⌈3.5 log(1/δ)⌉ block means.

    Its squared error is at most 17σ²/⌊n/k⌋ with probability 1 − δ: Minsker, "Geometric median and robust
    estimation in Banach spaces", Bernoulli 21, 2015, Section 4.1 (α = 7/18, p = 1/10).
    """

    rate: ClassVar[float] = 3.5

    def combine(self, block_means: Array) -> Array:
        """Return the geometric median of the finite block means; NaN if they are fewer than half."""
        return _geometric_median(block_means)


@dataclass(frozen=True)
class TrimmedMean:
    """The coordinatewise mean without the smallest and largest ⌊share · size⌋ samples, and at least one.

    `share` is left out on each side, and strictly between 0 and 1/2.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if check_probability("share", self.share) >= 0.5:
            raise InvalidParameter(f"share={self.share!r} leaves no sample; use a share below 0.5.")

    @property
    def smallest_batch(self) -> int:
        """3: it takes so many to leave one."""
        return 3

    def n_blocks(self, size: int) -> int:
        """Return `size`: every sample is a block."""
        if check_count("batch_size", size) < self.smallest_batch:
            raise InvalidParameter(f"batch_size={size} is below the 3 that {self} needs; increase it.")
        return size

    def cut(self, size: int) -> int:
        """Return how many samples are left out on each side; at least one stays."""
        return min(max(1, math.floor(self.share * size + 1e-9)), (size - 1) // 2)

    def combine(self, block_means: Array) -> Array:
        """Return the trimmed mean along the first axis."""
        cut = self.cut(len(block_means))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.sort(block_means, axis=0)[cut:-cut].mean(axis=0))  # NaN last


def _samples(x: ArrayLike) -> Array:
    refuse_masks(x=x)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise InvalidParameter(f"x is not an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InvalidParameter(f"x has dtype {array.dtype}; give real numbers.")
    if array.size == 0 or array.ndim == 0:
        raise InvalidParameter(f"x has shape {array.shape}; give at least one sample, as (n,) or (n, ...).")
    return array.astype(np.float64, copy=False)


def _enough(name: str, size: int, estimator: _DeltaBlocks) -> int:
    needed = estimator.blocks
    if size < needed:
        mantissa, exponent = f"{math.exp(-size / estimator.rate):.16e}".split("e")
        delta = float(f"{math.ceil(10 * float(mantissa))}e{int(exponent) - 1}")  # rounded up: it must suffice
        raise InvalidParameter(
            f"{name}={size} is below the {needed} blocks {estimator} needs; use {name} >= {needed} "
            f"or a larger delta ({size} samples buy delta = {delta:g})."
        )
    return needed


def _median(points: Array) -> Array:
    low, high = (len(points) - 1) // 2, len(points) // 2
    ordered = np.partition(points, (low, high), axis=0)  # NaN last
    with np.errstate(invalid="ignore"):
        return np.asarray(0.5 * ordered[low] + 0.5 * ordered[high])  # halved first: the sum may overflow


def smallest_ball_index(squared_distances: Array) -> int:
    """Return the point whose ball is the smallest to hold half of the points, from all squared distances."""
    half = (len(squared_distances) + 1) // 2
    squared_radii = np.partition(squared_distances, half - 1, axis=1)[:, half - 1]  # Alg. 1, l. 7
    return int(np.argmin(squared_radii))  # Alg. 1, l. 8


def _center_of_smallest_ball(points: Array) -> Array:
    squared_distances = _squared_distances(_rescaled(points)[0])
    winner = smallest_ball_index(squared_distances)
    half_is_near = 2 * np.count_nonzero(squared_distances[winner] < np.inf) >= len(points)
    return np.array(points[winner]) if half_is_near else np.full(points.shape[1:], np.nan)


def _geometric_median(points: Array, tolerance: float = 1e-8, max_steps: int = 1000) -> Array:
    """Weiszfeld's iteration; where it meets a data point, with the correction of Vardi and Zhang (2000)."""
    rows, exponent = _rescaled(points)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if 2 * len(rows) < len(points):
        return np.full(points.shape[1:], np.nan)
    distances = np.sqrt(_squared_distances(rows).clip(max=1e200))
    best = int(np.argmin(distances.sum(axis=1)))  # descending from here it never crawls toward a data point
    center, nearby = rows[best], tolerance * float(np.median(distances[best]))
    for _ in range(max_steps):
        offsets = rows - center
        with np.errstate(over="ignore"):
            lengths = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
        away = lengths > nearby
        weights = 1.0 / lengths[away]
        pull = weights @ offsets[away]
        strength, n_here = float(np.linalg.norm(pull)), len(rows) - int(away.sum())
        if strength <= n_here:  # a data point is the median iff the others pull less than it holds
            break
        step = (1.0 - n_here / strength) * pull / weights.sum()
        center = center + step
        if np.linalg.norm(step) <= nearby:
            break
    return np.asarray(np.ldexp(center, exponent).reshape(points.shape[1:]))


def _rescaled(points: Array) -> tuple[Array, int]:
    """Return rows and e with points = rows · 2^e, where half of the rows have entries in [−1, 1]."""
    rows = points.reshape(len(points), -1)
    size = np.sort(np.abs(rows).max(axis=1))[(len(rows) - 1) // 2]  # NaN last
    exponent = int(np.frexp(size)[1]) if np.isfinite(size) else 0
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(rows, -exponent), exponent


def _squared_distances(rows: Array) -> Array:
    """Return the (k, k) squared distances; infinite where they overflow or a row is not finite."""
    from scipy.spatial.distance import pdist, squareform  # noqa: PLC0415 - slow to import

    squared = np.asarray(squareform(pdist(rows, "sqeuclidean"), checks=False))
    not_finite = ~np.isfinite(rows).all(axis=1)
    squared[not_finite] = squared[:, not_finite] = np.inf
    return squared
