"""Each noise follows its law, and rows get theirs at random.

Seeds are fixed. A test against a law would fail for one in 10,000 new seeds or less: ALARM is the level of each.
"""

import math

import numpy as np
import pytest
from scipy import stats

from stoic.datasets.noise import (
    NOISES,
    Gaussian,
    Pareto,
    SparseUniform,
    StudentT,
    add_noise,
    make_noises,
)
from stoic.errors import InvalidParameter, InvalidProblem

ALARM = 1e-4
N = 20_000


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def as_pareto(noise):
    """Shift back to the start at 1. The smallest of N draws is 1 + 1/(N a) on average: far below what KS sees."""
    return noise - noise.min() + 1.0


def assert_sums_to_zero(noise):
    """Rounding is relative to the numbers before the shift, of which 1 + max - min is about the largest."""
    assert abs(math.fsum(noise)) <= len(noise) * np.finfo(float).eps * (1.0 + np.ptp(noise))


# Laws


@pytest.mark.parametrize("tail", [1.01, 2.01, 5.0])
def test_pareto_noise_is_pareto_with_scale_one_but_for_the_shift(tail, rng):
    drawn = as_pareto(Pareto(tail).draw(N, rng))
    assert stats.kstest(drawn, stats.pareto(tail).cdf).pvalue > ALARM


@pytest.mark.parametrize("tail", [1.01, 2.01])
def test_pareto_noise_has_the_quantiles_of_its_law_far_out_in_the_tail(tail, rng):
    drawn = as_pareto(Pareto(tail).draw(N, rng))
    for share in (0.5, 0.1, 0.01, 0.001):
        above = int((drawn > stats.pareto(tail).isf(share)).sum())
        assert stats.binomtest(above, N, share).pvalue > ALARM


def test_pareto_noise_has_the_deviation_of_its_law_where_there_is_one(rng):
    law = stats.pareto(10.0)  # its fourth moment exists, so the variance of a sample is nearly normal
    variance, kurtosis = law.stats("vk")
    drawn = Pareto(10.0).draw(N, rng)
    error = variance * math.sqrt((kurtosis + 2.0) / N)
    assert abs(drawn.var() - variance) < 4.0 * error


@pytest.mark.parametrize("df", [2.5, 5.0])
def test_student_noise_is_students_t(df, rng):
    assert stats.kstest(StudentT(df).draw(N, rng), stats.t(df).cdf).pvalue > ALARM


@pytest.mark.parametrize(("df", "errors"), [(2.5, 12.0), (5.0, 4.0)])
def test_student_noise_has_mean_zero_and_is_not_shifted_to_it(df, errors, rng):
    """One outlier moves the mean by 12 standard errors with probability N P(|t| > 12 sd sqrt(N)) = 5e-5."""
    drawn = StudentT(df).draw(N, rng)
    assert 0.0 < abs(drawn.mean()) < errors * stats.t(df).std() / math.sqrt(N)


def test_student_noise_has_the_variance_of_its_law_where_a_fourth_moment_exists(rng):
    law = stats.t(12.0)
    variance, kurtosis = law.stats("vk")
    assert abs(StudentT(12.0).draw(N, rng).var() - variance) < 4.0 * variance * math.sqrt((kurtosis + 2.0) / N)


@pytest.mark.parametrize("bound", [5.0, 10.0])
def test_sparse_noise_without_the_normal_part_is_uniform_on_its_share_of_rows(bound, rng):
    drawn = SparseUniform(bound, deviation=0.0).draw(N, rng)
    spikes = drawn[drawn != 0.0]
    assert stats.binomtest(len(spikes), N, 0.1).pvalue > ALARM
    assert stats.kstest(spikes, stats.uniform(-bound, 2.0 * bound).cdf).pvalue > ALARM


def test_sparse_noise_is_the_sum_of_both_parts(rng):
    bound, share, deviation = 5.0, 0.3, 0.5
    drawn = SparseUniform(bound, share, deviation).draw(N, rng)

    def cdf(x):
        """A normal, and with probability `share` a uniform added: its cdf is the mean of the normal one."""
        z = [(x + end) / deviation for end in (-bound, bound)]
        low, high = (t * stats.norm.cdf(t) + stats.norm.pdf(t) for t in z)
        return (1.0 - share) * stats.norm.cdf(x / deviation) + share * (high - low) * deviation / (2.0 * bound)

    assert stats.kstest(drawn, cdf).pvalue > ALARM
    variance = deviation**2 + share * bound**2 / 3.0
    assert drawn.var() == pytest.approx(variance, rel=0.1)  # 4 deviations of it are 0.06


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, N)])
def test_a_share_of_none_or_all_of_the_rows_is_exact(share, expected, rng):
    drawn = SparseUniform(5.0, share=share, deviation=0.0).draw(N, rng)
    assert np.count_nonzero(drawn) == expected


def test_gaussian_noise_is_normal(rng):
    assert stats.kstest(Gaussian(0.3).draw(N, rng), stats.norm(0.0, 0.3).cdf).pvalue > ALARM


# The shift


@pytest.mark.parametrize("tail", [1.01, 2.01])
@pytest.mark.parametrize("size", [2, 17, N])
def test_pareto_noise_has_mean_zero_to_rounding(tail, size, rng):
    assert_sums_to_zero(Pareto(tail).draw(size, rng))


def test_pareto_noise_drawn_alone_is_zero(rng):
    assert Pareto(1.01).draw(1, rng).tolist() == [0.0]


@pytest.mark.parametrize("noise", [*NOISES.values(), Gaussian()], ids=repr)
def test_no_rows_need_no_noise(noise, rng):
    assert noise.draw(0, rng).shape == (0,)


@pytest.mark.parametrize("noise", [*NOISES.values(), Gaussian()], ids=repr)
def test_the_same_seed_gives_the_same_bits(noise):
    one, same, other = (noise.draw(50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.dtype == np.float64
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


# Names


def test_the_six_kinds_are_those_of_the_experiment_in_order():
    assert list(NOISES.items()) == [
        ("pareto-1.01", Pareto(1.01)),
        ("pareto-2.01", Pareto(2.01)),
        ("student-2.5", StudentT(2.5)),
        ("student-5", StudentT(5.0)),
        ("sparse-5", SparseUniform(5.0, share=0.1, deviation=1.0)),
        ("sparse-10", SparseUniform(10.0, share=0.1, deviation=1.0)),
    ]


def test_kinds_are_made_by_name_and_the_sparse_ones_take_share_and_deviation():
    made = make_noises(["sparse-7", "gaussian-1", "pareto-1.5", "student-3"], share=0.2, deviation=0.5)
    assert list(made.items()) == [
        ("sparse-7", SparseUniform(7.0, share=0.2, deviation=0.5)),
        ("gaussian-1", Gaussian(1.0)),
        ("pareto-1.5", Pareto(1.5)),
        ("student-3", StudentT(3.0)),
    ]


@pytest.mark.parametrize(
    "name", ["cauchy-1", "pareto", "pareto-", "pareto-x", "", "-1", "Pareto-2", "student-2-3", 7, None]
)
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(InvalidParameter) as refused:
        make_noises([name])
    for part in (repr(name), "pareto-TAIL", "student-DF", "sparse-BOUND", "gaussian-DEVIATION", "sparse-10"):
        assert part in str(refused.value)


@pytest.mark.parametrize("name", ["pareto-1", "pareto-nan", "student--3", "sparse-inf", "gaussian--1", "sparse-0"])
def test_a_number_out_of_range_is_refused_with_the_name_it_came_from(name):
    with pytest.raises(InvalidParameter, match=f"'{name}' cannot be made"):
        make_noises([name])


def test_a_name_given_twice_is_refused():
    with pytest.raises(InvalidParameter, match="'student-5' is named twice"):
        make_noises(["student-5", "sparse-5", "student-5"])


def test_one_name_need_not_be_in_a_list():
    assert make_noises("student-5") == {"student-5": StudentT(5.0)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pareto(1.0),
        lambda: Pareto(math.nan),
        lambda: Pareto("2"),
        lambda: StudentT(0.5),
        lambda: StudentT(math.inf),
        lambda: SparseUniform(0.0),
        lambda: SparseUniform(5.0, share=1.1),
        lambda: SparseUniform(5.0, share=-0.1),
        lambda: SparseUniform(5.0, deviation=-1.0),
        lambda: SparseUniform(5.0, deviation=math.inf),
        lambda: Gaussian(math.nan),
        lambda: Gaussian().draw(-1, np.random.default_rng(0)),
        lambda: Pareto(2.0).draw(2.5, np.random.default_rng(0)),
    ],
)
def test_a_setting_out_of_range_is_refused(make):
    with pytest.raises(InvalidParameter):
        make()


# Labels


class Constant:
    """Adds the number of rows it is drawn for, which shows that a kind is drawn once."""

    def draw(self, size, rng):
        return np.full(size, float(size))


def test_each_kind_is_drawn_once_for_all_of_its_rows(rng):
    y = np.arange(100.0)
    labels, groups = add_noise(y, {"a": Constant(), "b": Constant(), "c": Constant()}, rng)
    np.testing.assert_array_equal(labels - y, np.bincount(groups)[groups])


def test_groups_count_the_kinds_in_the_order_of_the_mapping(rng):
    kinds = {"none": Gaussian(0.0), "some": Gaussian(1.0)}
    labels, groups = add_noise(np.zeros(1_000), kinds, rng)
    assert groups.dtype == np.int64
    np.testing.assert_array_equal(labels != 0.0, groups == 1)


def test_every_kind_is_as_likely_as_the_others(rng):
    groups = add_noise(np.zeros(N), NOISES, rng).groups
    assert stats.chisquare(np.bincount(groups, minlength=6)).pvalue > ALARM


def test_kinds_do_not_follow_the_order_of_rows(rng):
    groups = add_noise(np.zeros(N), NOISES, rng).groups
    pairs = np.bincount(6 * groups[:-1:2] + groups[1::2], minlength=36)
    assert stats.chisquare(pairs).pvalue > ALARM


def test_the_mean_of_pareto_noise_is_zero_over_the_rows_that_have_it(rng):
    labels, groups = add_noise(np.zeros(N), NOISES, rng)
    for code in (0, 1):
        assert_sums_to_zero(labels[groups == code])


def test_labels_handed_in_stay_as_they_are(rng):
    y = np.arange(50.0)
    y.flags.writeable = False
    labels, _ = add_noise(y, NOISES, rng)
    assert not np.shares_memory(labels, y)
    np.testing.assert_array_equal(y, np.arange(50.0))
    assert (labels != y).any()


def test_the_same_seed_gives_the_same_labels():
    y = np.arange(200.0)
    one, same, other = (add_noise(y, NOISES, np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.labels, same.labels)
    np.testing.assert_array_equal(one.groups, same.groups)
    assert (one.groups != other.groups).any()


def test_lists_and_whole_numbers_are_labels_too(rng):
    assert add_noise([1, 2, 3], {"none": Gaussian(0.0)}, rng).labels.tolist() == [1.0, 2.0, 3.0]


def test_fewer_rows_than_kinds_are_fine(rng):
    labels, groups = add_noise([1.0], NOISES, rng)
    assert labels.shape == groups.shape == (1,)
    assert add_noise(np.empty(0), NOISES, rng).labels.shape == (0,)


@pytest.mark.parametrize("y", [[1.0, math.nan], [[1.0], [2.0]], 3.0, ["a", "b"], [math.inf], [[1], [1, 2]], None])
def test_what_is_no_vector_of_numbers_is_refused(y, rng):
    with pytest.raises(InvalidProblem, match="y"):
        add_noise(y, NOISES, rng)


def test_no_kind_of_noise_is_refused(rng):
    with pytest.raises(InvalidParameter, match="noises is empty"):
        add_noise([1.0], {}, rng)
