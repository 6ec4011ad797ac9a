r"""Lemma 1: with probability at least 1 − δ Algorithm 1 errs by no more than

    4 σ² / ⌊n/k⌋    squared, for scalars, k = ⌈8 log(1/δ)⌉,
    27 σ² / ⌊n/k⌋   squared, for vectors, k = ⌈18 log(1/δ)⌉,

whatever the law of the samples, as long as it has a variance σ² (the trace of the covariance).

A frequency is held against δ by one-sided Clopper–Pearson bounds of level `ALARM`: a test that asserts "no
more often than δ" fails by chance with probability at most `ALARM` for each of its cases, if Lemma 1 is true.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from stoic.means import GeometricMedianOfMeans, Mean, MedianOfMeans, SmallestBall, block_means

ALARM = 1e-6

# name: (draw(rng, size), mean, variance)
LAWS = {
    "Student(2.1)": (lambda rng, size: rng.standard_t(2.1, size), 0.0, 2.1 / 0.1),
    "Pareto(2.05)": (lambda rng, size: rng.pareto(2.05, size), 1 / 1.05, 2.05 / (1.05**2 * 0.05)),
    "lognormal": (lambda rng, size: rng.lognormal(size=size), math.exp(0.5), (math.e - 1) * math.e),
    "Gaussian": (lambda rng, size: rng.normal(size=size), 0.0, 1.0),
}
laws = pytest.mark.parametrize("law", LAWS)
dimensions = pytest.mark.parametrize("dimension", [1, 5, 50])


def lowest_probability(count: int, trials: int) -> float:
    return float(beta.ppf(ALARM, count, trials - count + 1)) if count else 0.0


def highest_probability(count: int, trials: int) -> float:
    return float(beta.isf(ALARM, count + 1, trials - count)) if count < trials else 1.0


def algorithm_1(dimension, delta):
    """Return the estimator of Lemma 1 and the constant of its bound."""
    return (MedianOfMeans(delta), 4.0) if dimension == 1 else (SmallestBall(delta), 27.0)


def squared_errors(law, dimension, estimator, *, block_size, repetitions, seed, n_corrupted=0):
    """Return errors in units of σ²/⌊n/k⌋; n is not a multiple of k, and corrupted blocks come last."""
    draw, mean, variance = LAWS[law]
    rng = np.random.default_rng(seed)
    k = estimator.n_blocks(10_000)
    samples = draw(rng, (k * block_size + k // 2, repetitions, dimension))
    blocks = block_means(samples, n_blocks=k)
    blocks[k - n_corrupted :] = 1e12
    estimates = np.array([estimator.combine(blocks[:, i]) for i in range(repetitions)])
    return ((estimates - mean) ** 2).sum(axis=1) / (dimension * variance / block_size)


@laws
@dimensions
def test_the_bound_fails_no_more_often_than_delta(law, dimension):
    """False alarm: at most 1e-6 a case."""
    estimator, constant = algorithm_1(dimension, delta=0.1)
    errors = squared_errors(law, dimension, estimator, block_size=10, repetitions=200, seed=[1, dimension])
    assert lowest_probability(int((errors > constant).sum()), 200) <= 0.1


@laws
@dimensions
def test_the_bound_of_minsker_fails_no_more_often_than_delta(law, dimension):
    """False alarm: at most 1e-6 a case."""
    estimator = GeometricMedianOfMeans(0.1)
    errors = squared_errors(law, dimension, estimator, block_size=10, repetitions=200, seed=[2, dimension])
    assert lowest_probability(int((errors > 17.0).sum()), 200) <= 0.1


@laws
@dimensions
def test_the_bound_survives_the_corruption_of_a_third_of_the_blocks(law, dimension):
    """False alarm: at most 1e-6 a case.

    With ⌊k/3⌋ blocks lost, a failure takes a quarter of the others astray: farther than 2σ/√m (scalars) or
    √3σ/√m (vectors) from the mean, m = ⌊n/k⌋. By Chernoff this has probability at most δ if one block strays
    with probability at most 1/17 or 2/19. Not every law does so, but these do: see the next two tests.
    """
    estimator, constant = algorithm_1(dimension, delta=0.1)
    n_corrupted = estimator.n_blocks(10_000) // 3
    errors = squared_errors(
        law,
        dimension,
        estimator,
        block_size=10,
        repetitions=200,
        seed=[3, dimension],
        n_corrupted=n_corrupted,
    )
    assert lowest_probability(int((errors > constant).sum()), 200) <= 0.1


@pytest.mark.parametrize(("rate", "stray"), [(8, 1 / 17), (18, 2 / 19)])
def test_a_quarter_of_the_clean_blocks_strays_with_probability_at_most_delta(rate, stray):
    """No chance involved: e^(−(2/3) k KL(1/4 ‖ stray)) ≤ δ for k = rate · log(1/δ) blocks, 2/3 clean."""
    divergence = 0.25 * math.log(0.25 / stray) + 0.75 * math.log(0.75 / (1 - stray))
    assert 2 / 3 * rate * divergence >= 1.0


@laws
@dimensions
def test_blocks_of_these_laws_stray_rarely(law, dimension):
    """False alarm: below 1e-6 a case, as at most 5 % stray (Gaussian scalars: 4.55 %) of 20,000."""
    stray = 1 / 17 if dimension == 1 else 2 / 19
    distances = squared_errors(law, dimension, Mean(), block_size=10, repetitions=20_000, seed=[4, dimension])
    assert (distances > (4.0 if dimension == 1 else 3.0)).mean() <= stray


def test_the_worst_law_of_chebyshev_breaks_the_median_of_too_few_blocks_only():
    """One block strays to one side by more than 2σ with probability at most 1/5 (Cantelli), and here it does.

    The median of ⌈log(1/δ)⌉ = 3 blocks then fails with probability 0.104 > δ = 0.05, that of 24 hardly ever.
    False alarm: below 1e-6.
    """
    rng, delta, repetitions, q = np.random.default_rng(5), 0.05, 20_000, 0.2 - 1e-6
    high, low = math.sqrt((1 - q) / q), -math.sqrt(q / (1 - q))  # mean 0, variance 1
    assert high > 2.0
    for k, holds in [(MedianOfMeans(delta).n_blocks(24), True), (3, False)]:
        blocks = np.where(rng.random((k, repetitions)) < q, high, low)
        failures = int((MedianOfMeans(delta).combine(blocks) ** 2 > 4.0).sum())
        assert (lowest_probability(failures, repetitions) <= delta) == holds


REPETITIONS = 40_000


@pytest.fixture(scope="module")
def scalar_spikes():
    """X = 1 with probability q, else 0. Only the number of spikes in a block matters, so only that is drawn.

    With nq = 1/(40 log(1/δ)) a single spike carries the plain mean beyond the bound 2σ/√m.
    """
    delta, block_size = 1e-3, 100
    k = MedianOfMeans(delta).n_blocks(10_000)
    q = 1 / (40 * k * block_size * math.log(1 / delta))
    blocks = np.random.default_rng(6).binomial(block_size, q, size=(k, REPETITIONS)) / block_size
    return delta, blocks, q, math.sqrt(4.0 * q * (1 - q) / block_size)


def test_the_plain_mean_of_a_spike_law_breaks_the_bound(scalar_spikes):
    """False alarm: below 1e-6, as it takes fewer than 74 failures where 145 are expected."""
    delta, blocks, mean, bound = scalar_spikes
    failures = int((np.abs(Mean().combine(blocks) - mean) > bound).sum())
    assert lowest_probability(failures, REPETITIONS) > delta


def test_the_median_of_means_of_a_spike_law_keeps_the_bound(scalar_spikes):
    """False alarm: below 1e-50, as a failure takes spikes in 28 of 56 blocks."""
    delta, blocks, mean, bound = scalar_spikes
    failures = int((np.abs(MedianOfMeans(delta).combine(blocks) - mean) > bound).sum())
    assert highest_probability(failures, REPETITIONS) <= delta


def test_the_smallest_ball_of_a_spike_law_keeps_the_bound_that_the_plain_mean_breaks():
    """X = (3/5, 4/5) with probability q = 1/(500 n log(1/δ)), else 0; δ = 1e-5 and 400,000 repetitions.

    False alarm: below 1e-6, as 69 failures of the plain mean are expected where 18 suffice, and one of ours
    takes spikes in 104 of 208 blocks. Repetitions without a spike are all alike, so one stands for them.
    """
    rng, delta, repetitions, block_size = np.random.default_rng(7), 1e-5, 400_000, 100
    k = SmallestBall(delta).n_blocks(10_000)
    q = 1 / (500 * k * block_size * math.log(1 / delta))
    direction = np.array([0.6, 0.8])
    bound = math.sqrt(27.0 * q * (1 - q) / block_size)
    totals = rng.binomial(k * block_size, q, size=repetitions)
    failures = dict.fromkeys([Mean(), SmallestBall(delta)], 0)
    for total, weight in [(0, int((totals == 0).sum())), *((total, 1) for total in totals[totals > 0])]:
        spikes = np.bincount(rng.integers(k, size=total), minlength=k)
        blocks = spikes[:, None] / block_size * direction
        for estimator in failures:
            is_failure = np.linalg.norm(estimator.combine(blocks) - q * direction) > bound
            failures[estimator] += weight * int(is_failure)
    assert lowest_probability(failures[Mean()], repetitions) > delta
    assert failures[SmallestBall(delta)] == 0
