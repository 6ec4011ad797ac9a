r"""Quantiles of a sample with bands that hold for any law, their growth, and slopes.

The (1 − δ)-quantile q of a law is estimated by the ⌈n(1 − δ)⌉-th smallest of n independent runs. How many of them
are at most q is binomial with n and 1 − δ, whatever the law is, if it has no atom at q; so the probability that q
is between the l-th and the u-th smallest is known. (With an atom it is larger.)
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from stoic.inners.blocks import IntArray
from stoic.protocols import Array, Vector
from stoic.studies.shared.seeds import generator

CONFIDENCE = 0.95
DELTAS = (
    0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.015, 0.01, 0.007, 0.005, 0.003, 0.002, 0.0015, 0.001,
)  # fmt: skip
"""The probabilities δ at which quantiles are shown."""

_RUNS_BEYOND = 2  # a quantile is shown where as many runs are expected beyond it
_RESAMPLES = 1000


class Band(NamedTuple):
    """A number, and the ends of an interval that holds the true one with probability 0.95.

    The lower end of a gap is 0, its upper end infinite, where there are too few runs to tell.
    """

    value: float
    low: float
    high: float

    @property
    def is_open(self) -> bool:
        """Whether there is no upper end."""
        return math.isinf(self.high)


def can_show(n: int, delta: float) -> bool:
    """Whether n runs are enough for the (1 − δ)-quantile: two are expected beyond it.

    Examples
    --------
    >>> can_show(2000, 0.001), can_show(1999, 0.001)
    (True, False)
    """
    return n * delta >= _RUNS_BEYOND * (1.0 - 1e-12)


def shown_deltas(n: int, deltas: Sequence[float] = DELTAS) -> tuple[float, ...]:
    """Return those of some δ at which n runs have a quantile to show."""
    return tuple(delta for delta in deltas if can_show(n, delta))


def quantile(gaps: ArrayLike, delta: float) -> float:
    """Return the ⌈n(1 − δ)⌉-th smallest of n numbers.

    Examples
    --------
    >>> quantile(range(1, 101), 0.1), quantile([2.0, np.inf], 0.4)
    (90.0, inf)
    """
    ordered = np.sort(np.asarray(gaps, dtype=float))
    return float(ordered[_rank(len(ordered), delta) - 1])


def quantile_band(gaps: ArrayLike, delta: float, confidence: float = CONFIDENCE) -> Band:
    """Return the (1 − δ)-quantile of independent runs with a band that holds for any law.

    Each end misses with probability at most (1 − confidence)/2, exactly by the binomial.

    Examples
    --------
    >>> quantile_band(range(1, 1001), 0.1)
    Band(value=900.0, low=881.0, high=919.0)
    >>> quantile_band(range(1, 1001), 0.002).is_open
    True
    """
    ordered = np.sort(np.asarray(gaps, dtype=float))
    low, high = band_ranks(len(ordered), delta, confidence)
    return Band(
        float(ordered[_rank(len(ordered), delta) - 1]),
        float(ordered[low - 1]) if low else 0.0,
        float(ordered[high - 1]) if high <= len(ordered) else math.inf,
    )


@lru_cache(maxsize=1024)
def band_ranks(n: int, delta: float, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Return l and u: the l-th and the u-th smallest of n runs are the ends of the band.

    They are the closest for which the l-th is above the quantile with probability at most (1 − confidence)/2, and
    the u-th below it likewise; l may be 0 and u may be n + 1, and then that end is open.
    """
    below = bdtr(np.arange(n + 1, dtype=float), n, 1.0 - delta)  # P(at most k of n runs are at most q)
    miss = 0.5 * (1.0 - confidence)
    return int(np.searchsorted(below, miss, side="right")), int(np.searchsorted(below, 1.0 - miss)) + 1


def ratio_band(above: ArrayLike, delta: float, below: ArrayLike, other: float) -> Band:
    """Return the (1 − δ)-quantile of some runs over the (1 − other)-quantile of some, perhaps the same, runs.

    The band is made of two, each of which misses with half the probability; so it holds however they depend on
    each other.

    Examples
    --------
    >>> ratio_band([1.0, 2.0, 4.0], 0.1, [1.0, 2.0, 4.0], 0.5).value
    2.0
    """
    half = 0.5 * (1.0 + CONFIDENCE)
    top, bottom = quantile_band(above, delta, half), quantile_band(below, other, half)
    return Band(
        _ratio(top.value, bottom.value),
        0.0 if bottom.is_open else _ratio(top.low, bottom.high),
        math.inf if top.is_open else _ratio(top.high, bottom.low),
    )


def _ratio(top: float, bottom: float) -> float:
    if math.isinf(bottom):
        return math.nan if math.isinf(top) else 0.0
    return top / bottom if bottom > 0.0 else math.inf


def growth(gaps: ArrayLike) -> Band | None:
    r"""Return the exponent k with which quantiles grow like :math:`\log^k(1/\delta)` for δ from 0.1 to 0.001.

    It is the slope of log quantile against log log(1/δ) by least squares; the band is of resampled runs (the
    bootstrap), so it is rough where few runs lie beyond the last quantile. Without enough runs for δ = 0.01 there
    is none; a quantile that is infinite makes it infinite.

    Examples
    --------
    >>> delta = (np.arange(20_000) + 0.5) / 20_000
    >>> round(growth(np.log(1.0 / delta) ** 2).value, 1)
    2.0
    """
    ordered = np.sort(np.asarray(gaps, dtype=float))
    n = len(ordered)
    deltas = shown_deltas(n, [delta for delta in DELTAS if delta <= 0.1])
    if not can_show(n, 0.01):
        return None
    x = np.log(np.log(1.0 / np.array(deltas)))
    ranks = tuple(_rank(n, delta) for delta in deltas)
    slopes = _slopes(x, ordered[_resampled(n, ranks)])
    return _percentiles(_slopes(x, ordered[None, np.array(ranks) - 1])[0], slopes)


def rate(samples: Sequence[int], gaps: Sequence[ArrayLike]) -> Band | None:
    r"""Return the slope of log median gap against log samples, with a band of resampled runs.

    Parameters
    ----------
    samples : sequence of int
    gaps : sequence of arrays
        The gaps of the runs with as many samples.

    Returns
    -------
    Band or None
        None where there are fewer than two numbers of samples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = rate([100, 1000], [rng.exponential(1 / n, 400) for n in (100, 1000)])
    >>> found.low < -1.0 < found.high
    True
    """
    if len(samples) < 2:
        return None
    x, columns, medians = np.log(np.array(samples, dtype=float)), [], []
    for place, values in enumerate(gaps):
        ordered = np.sort(np.asarray(values, dtype=float))
        middle = _rank(len(ordered), 0.5)
        medians.append(ordered[middle - 1])
        columns.append(ordered[_resampled(len(ordered), (middle,), place)[:, 0]])
    return _percentiles(_slopes(x, np.array([medians]))[0], _slopes(x, np.stack(columns, axis=1)))


def _rank(n: int, delta: float) -> int:
    return max(1, n - math.floor(n * delta + 1e-9))


@lru_cache(maxsize=32)
def _resampled(n: int, ranks: tuple[int, ...], place: int = 0) -> IntArray:
    """Return, of many samples of n of the numbers 0, …, n − 1, those with some ranks; a row is a sample."""
    rng, places = generator("resampled", n, place), np.array(ranks) - 1
    samples = (rng.integers(0, n, size=n) for _ in range(_RESAMPLES))
    return np.array([np.partition(sample, places)[places] for sample in samples])


def _slopes(x: Vector, y: Array) -> Vector:
    """Return the slope of log y against x for each row of y; infinite where y is."""
    centered = x - x.mean()
    finite = np.asarray(np.isfinite(y).all(axis=1, keepdims=True))
    logs = np.log(np.maximum(np.where(finite, y, 1.0), 1e-300))
    return np.where(finite[:, 0], logs @ centered / (centered @ centered), np.inf)


def _percentiles(value: float, resampled: Vector) -> Band:
    miss = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(resampled, [miss, 1.0 - miss], method="nearest")
    return Band(float(value), float(low), float(high))
