import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import trim_mean

from checks import generated
from stoic.errors import InvalidParameter
from stoic.means import (
    GeometricMedianOfMeans,
    Mean,
    MedianOfMeans,
    SmallestBall,
    TrimmedMean,
    block_means,
    median_of_means,
    n_scalar_blocks,
    n_vector_blocks,
    robust_mean,
    smallest_ball_mean,
)

DELTA_ESTIMATORS = [MedianOfMeans, SmallestBall, GeometricMedianOfMeans]
ESTIMATORS = [MedianOfMeans(0.3), SmallestBall(0.3), GeometricMedianOfMeans(0.1), TrimmedMean(0.4)]

# Small integers: sums and differences are exact, and ties are common.
small = st.integers(-8, 8).map(float)
points_in_space = st.tuples(st.integers(1, 12), st.integers(1, 4)).flatmap(
    lambda s: arrays(float, s, elements=small)
)
samples_and_blocks = st.tuples(st.integers(1, 30), st.integers(1, 3)).flatmap(
    lambda s: st.tuples(arrays(float, s, elements=small), st.integers(1, s[0]))
)


def brute_force_smallest_ball(points):
    k = len(points)
    radii = [sorted(math.dist(a, b) for b in points)[math.ceil(k / 2) - 1] for a in points]
    return points[radii.index(min(radii))]


# Blocks


@generated
@given(samples_and_blocks)
@pytest.mark.slow
def test_block_means_are_those_of_array_split(samples_and_k):
    x, k = samples_and_k
    expected = [part.mean(axis=0) for part in np.array_split(x, k)]
    np.testing.assert_allclose(block_means(x, n_blocks=k), expected, rtol=1e-14, atol=1e-14)


def test_larger_blocks_come_first():
    np.testing.assert_array_equal(block_means([1, 3, 5, 7, 100], n_blocks=3), [2.0, 6.0, 100.0])


def test_block_means_keep_the_shape_of_a_sample():
    assert block_means(np.zeros((10, 3, 4)), n_blocks=7).shape == (7, 3, 4)


def test_more_blocks_than_samples_are_refused():
    with pytest.raises(InvalidParameter, match=re.escape("len(x)=2 is below n_blocks=3; use n_blocks <= 2.")):
        median_of_means([1.0, 2.0], n_blocks=3)


@pytest.mark.parametrize("n_blocks", [0, -1, 2.0, True, None])
def test_a_number_of_blocks_that_is_not_a_count_is_refused(n_blocks):
    with pytest.raises(InvalidParameter, match="n_blocks"):
        smallest_ball_mean(np.zeros((9, 2)), n_blocks=n_blocks)


@pytest.mark.parametrize("x", [[], np.zeros((0, 3)), np.zeros((3, 0)), 1.0, ["a"], [None], [1j], [[1], [1, 2]]])
def test_samples_that_are_empty_or_not_numbers_are_refused(x):
    with pytest.raises(InvalidParameter, match=r"^x "):
        block_means(x, n_blocks=1)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32])
def test_samples_of_any_real_type_become_doubles(dtype):
    means = block_means(np.ones(4, dtype=dtype), n_blocks=2)
    assert means.dtype == np.float64
    np.testing.assert_array_equal(means, 1.0)


@pytest.mark.parametrize(
    ("delta", "scalar", "vector"), [(0.1, 19, 42), (0.05, 24, 54), (1e-3, 56, 125), (0.999, 1, 1)]
)
def test_block_counts_are_those_of_lemma_1(delta, scalar, vector):
    assert (n_scalar_blocks(delta), n_vector_blocks(delta)) == (scalar, vector)


@pytest.mark.parametrize("n_blocks", [1, 7, 100, 1000])
def test_n_blocks_buy_exactly_the_delta_of_the_lemma(n_blocks):
    assert n_scalar_blocks(math.exp(-n_blocks / 8)) == n_blocks
    assert n_vector_blocks(math.exp(-n_blocks / 18)) == n_blocks


def test_the_smallest_positive_delta_has_a_block_count():
    assert n_scalar_blocks(5e-324) == math.ceil(8 * 1074 * math.log(2))


# Algorithm 1


@generated
@given(points_in_space)
def test_smallest_ball_agrees_with_brute_force(points):
    np.testing.assert_array_equal(
        smallest_ball_mean(points, n_blocks=len(points)), brute_force_smallest_ball(points)
    )


@generated
@given(points_in_space)
def test_median_of_means_of_single_samples_is_the_median(points):
    np.testing.assert_array_equal(median_of_means(points, n_blocks=len(points)), np.median(points, axis=0))


def test_ties_between_balls_go_to_the_first_block():
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    for turn in range(4):
        turned = np.roll(square, turn, axis=0)
        np.testing.assert_array_equal(smallest_ball_mean(turned, n_blocks=4), turned[0])


@pytest.mark.parametrize("n_blocks", [1, 2])
def test_with_two_blocks_at_most_the_first_ball_wins(n_blocks):
    x = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(smallest_ball_mean(x, n_blocks=n_blocks), x[: 6 // n_blocks].mean(axis=0))


def test_smallest_ball_of_matrices_uses_the_frobenius_norm():
    matrices = np.random.default_rng(0).normal(size=(11, 3, 4))
    expected = smallest_ball_mean(matrices.reshape(11, 12), n_blocks=11).reshape(3, 4)
    np.testing.assert_array_equal(smallest_ball_mean(matrices, n_blocks=11), expected)


def test_smallest_ball_agrees_with_brute_force_on_long_vectors():
    points = np.random.default_rng(0).standard_t(2.1, size=(9, 10_000))
    points[:, :9_000] = 0.0
    np.testing.assert_array_equal(smallest_ball_mean(points, n_blocks=9), brute_force_smallest_ball(points))


@generated
@given(samples_and_blocks, st.randoms(use_true_random=False))
def test_order_within_a_block_does_not_matter(samples_and_k, random):
    x, k = samples_and_k
    shuffled = np.concatenate([random.sample(list(part), len(part)) for part in np.array_split(x, k)])
    np.testing.assert_array_equal(median_of_means(shuffled, n_blocks=k), median_of_means(x, n_blocks=k))
    np.testing.assert_array_equal(smallest_ball_mean(shuffled, n_blocks=k), smallest_ball_mean(x, n_blocks=k))


@pytest.mark.parametrize("estimator", [Mean(), *ESTIMATORS], ids=str)
@generated
@given(
    points=points_in_space.filter(lambda points: len(points) >= 3),
    shift=small,
    exponent=st.integers(-500, 400),
)
def test_estimators_are_equivariant_to_translation_and_scale(estimator, points, shift, exponent):
    scale = math.ldexp(1.0, exponent)
    moved = estimator.combine(scale * (points + shift))
    np.testing.assert_allclose(moved / scale, estimator.combine(points) + shift, rtol=0, atol=1e-6)


@pytest.mark.parametrize("estimator", [Mean(), *ESTIMATORS], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4)])
def test_estimators_drop_the_block_axis_and_leave_the_blocks_alone(estimator, shape):
    blocks = np.random.default_rng(0).normal(size=(9, *shape))
    blocks.flags.writeable = False
    estimate = estimator.combine(blocks)
    assert isinstance(estimate, np.ndarray)
    assert estimate.shape == shape
    assert not np.shares_memory(estimate, blocks)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("wild", [1e12, 1e300, -1.7e308, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("tame", [1e-150, 1.0, 1e290])
def test_a_third_of_wild_blocks_does_not_poison_an_estimate(estimator, wild, tame):
    rng = np.random.default_rng(0)
    blocks = tame * rng.uniform(1.0, 2.0, size=(30, 4))
    blocks[rng.permutation(30)[:10], rng.integers(4, size=10)] = wild
    estimate = estimator.combine(blocks)
    assert np.all((tame <= estimate) & (estimate <= 2.0 * tame))


@pytest.mark.parametrize(
    "estimator", [MedianOfMeans(0.3), SmallestBall(0.3), GeometricMedianOfMeans(0.1)], ids=str
)
@pytest.mark.parametrize("k", [3, 4, 9, 10])
@pytest.mark.parametrize("wild", [np.inf, np.nan])
def test_estimates_are_finite_while_more_than_half_of_the_blocks_are(estimator, k, wild):
    blocks = np.random.default_rng(k).choice([0.0, 1.0, 1e308, -1e308], size=(k, 2))
    blocks[: (k - 1) // 2] = wild
    assert np.isfinite(estimator.combine(blocks)).all()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimates_are_not_finite_when_most_blocks_are_not(estimator):
    blocks = np.full((10, 2), np.nan)
    blocks[:3] = 1.0
    assert not np.isfinite(estimator.combine(blocks)).any()


def test_a_block_of_opposite_infinities_raises_no_warning():
    assert median_of_means([np.inf, -np.inf, 1.0, 1.0, 2.0, 2.0], n_blocks=3) == 2.0


# The public door


def test_robust_mean_of_scalars_is_the_median_of_means():
    x = np.random.default_rng(0).standard_t(2.1, size=100)
    expected = median_of_means(x, n_blocks=24)
    assert isinstance(expected, float)
    assert robust_mean(x) == expected
    np.testing.assert_array_equal(robust_mean(x[:, None]), [expected])


@pytest.mark.parametrize("shape", [(2,), (1, 1), (2, 3)])
def test_robust_mean_of_anything_else_is_the_smallest_ball(shape):
    x = np.random.default_rng(0).standard_t(2.1, size=(100, *shape))
    np.testing.assert_array_equal(robust_mean(x, delta=0.1), smallest_ball_mean(x, n_blocks=42))


def test_robust_mean_leaves_its_samples_alone():
    x = np.random.default_rng(0).normal(size=(100, 2))
    copy = x.copy()
    robust_mean(x)
    np.testing.assert_array_equal(x, copy)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, np.nan, "0.1", None])
def test_a_delta_that_is_not_a_probability_is_refused(delta):
    with pytest.raises(InvalidParameter, match="delta"):
        robust_mean(np.zeros(100), delta=delta)
    with pytest.raises(InvalidParameter, match="delta"):
        n_vector_blocks(delta)


def test_too_few_samples_are_told_what_they_can_buy():
    message = (
        "len(x)=20 is below the 42 blocks SmallestBall(delta=0.1) needs; use len(x) >= 42 "
        "or a larger delta (20 samples buy delta = 0.33)."
    )
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        robust_mean(np.zeros((20, 2)), delta=0.1)


def test_too_small_a_batch_is_told_what_it_can_buy():
    message = (
        "batch_size=20 is below the 42 blocks SmallestBall(delta=0.1) needs; use batch_size >= 42 "
        "or a larger delta (20 samples buy delta = 0.33)."
    )
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        SmallestBall(0.1).n_blocks(20)


@pytest.mark.parametrize("kind", DELTA_ESTIMATORS)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 18, 20, 55, 101, 1000])
def test_the_advised_delta_suffices(kind, size):
    with pytest.raises(InvalidParameter) as refusal:
        kind(1e-300).n_blocks(size)
    advised = float(re.search(r"buy delta = (\S+)\)", str(refusal.value)).group(1))
    assert kind(advised).n_blocks(size) <= size
    assert advised <= 1.1 * math.exp(-size / kind.rate)


# Mean estimators of solvers


@pytest.mark.parametrize(
    ("estimator", "n_blocks"),
    [
        (Mean(), 1),
        (MedianOfMeans(0.1), 19),
        (SmallestBall(0.1), 42),
        (GeometricMedianOfMeans(0.1), 9),
        (TrimmedMean(), 64),
    ],
    ids=str,
)
def test_estimators_say_how_many_blocks_they_want(estimator, n_blocks):
    assert estimator.n_blocks(64) == n_blocks


@pytest.mark.parametrize("estimator", [Mean(), *ESTIMATORS], ids=str)
@pytest.mark.parametrize("size", [0, -1, 10.0, None])
def test_a_batch_size_that_is_not_a_count_is_refused(estimator, size):
    with pytest.raises(InvalidParameter, match="batch_size"):
        estimator.n_blocks(size)


def test_the_plain_mean_of_one_block_is_that_block():
    np.testing.assert_array_equal(Mean().combine(np.array([[0.1, 0.2]])), [0.1, 0.2])


@generated
@given(points_in_space)
def test_geometric_median_has_a_subgradient_of_zero(points):
    center = GeometricMedianOfMeans(0.1).combine(points)
    offsets = points - center
    lengths = np.linalg.norm(offsets, axis=1)
    away = lengths > 1e-4
    pull = np.linalg.norm((offsets[away] / lengths[away, None]).sum(axis=0))
    assert pull <= np.sum(~away) + 1e-3


def test_geometric_median_agrees_with_a_general_solver():
    points = np.random.default_rng(0).standard_t(2.1, size=(12, 3))

    def total_distance(center):
        return np.linalg.norm(points - center, axis=1).sum()

    expected = minimize(
        total_distance,
        np.median(points, axis=0),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12},
    )
    np.testing.assert_allclose(GeometricMedianOfMeans(0.1).combine(points), expected.x, atol=1e-6)


@pytest.mark.parametrize("height", [0.0, 0.5, 0.9])
def test_geometric_median_stops_on_a_data_point_that_holds_it(height):
    triangle = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, height / 2]])  # its angle at the top exceeds 120 degrees
    np.testing.assert_array_equal(GeometricMedianOfMeans(0.5).combine(triangle), triangle[2])


def test_geometric_median_leaves_a_data_point_that_does_not_hold_it():
    # The center of an equilateral triangle beats all corners.
    corners = np.array([[0.0, 1.0], [-math.sqrt(0.75), -0.5], [math.sqrt(0.75), -0.5]])
    np.testing.assert_allclose(GeometricMedianOfMeans(0.5).combine(corners), 0.0, atol=1e-6)


@pytest.mark.parametrize(("size", "share"), [(10, 0.1), (30, 0.1), (100, 0.29), (41, 0.45), (7, 0.4)])
def test_trimmed_mean_agrees_with_scipy(size, share):
    x = np.random.default_rng(size).standard_t(2.1, size=(size, 3))
    share_without_rounding = (math.floor(share * size + 1e-9) + 0.5) / size
    np.testing.assert_allclose(TrimmedMean(share).combine(x), trim_mean(x, share_without_rounding), rtol=1e-13)


def test_trimmed_mean_leaves_out_at_least_one_sample_on_each_side():
    assert TrimmedMean(0.1).combine(np.array([1e12, 2.0, -1e12])) == 2.0


def test_a_share_next_to_one_half_leaves_the_middle():
    assert TrimmedMean(0.4999999999).combine(np.arange(4.0)) == 1.5


def test_trimmed_mean_needs_three_samples():
    with pytest.raises(InvalidParameter, match="batch_size=2 is below the 3"):
        TrimmedMean().n_blocks(2)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.7, -0.1, np.nan, None])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(InvalidParameter, match="share"):
        TrimmedMean(share)


def test_a_trimmed_mean_leaves_out_a_tenth_on_each_side_and_takes_three_samples():
    assert TrimmedMean() == TrimmedMean(0.1)
    assert TrimmedMean().smallest_batch == TrimmedMean().n_blocks(3) == 3
    with pytest.raises(InvalidParameter, match="batch_size=2 is below the 3"):
        TrimmedMean().n_blocks(2)


@pytest.mark.parametrize(("estimator", "rate"), list(zip(DELTA_ESTIMATORS, (8.0, 18.0, 3.5), strict=True)))
def test_a_delta_a_little_below_what_some_blocks_buy_takes_one_more(estimator, rate):
    for k in (1, 7, 40):
        bought = math.exp(-k / rate)
        assert estimator(bought).blocks == k
        assert estimator(bought * (1.0 - 1e-7)).blocks == k + 1
