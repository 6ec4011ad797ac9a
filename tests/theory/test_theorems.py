"""What a plan holds, counts and refuses. That its numbers do what they should is in tests/theory."""

import dataclasses
import math
from itertools import pairwise

import pytest

from stoic.errors import InvalidParameter
from stoic.means import n_vector_blocks
from stoic.theory.plans import Constants, Stage, TruncatedStage
from stoic.theory.theorems import one_stage_terms, theorem_1, theorem_2, theorem_3

ORDINARY = Constants(C_f=1.0, L_f=0.05, C_g=3.0, L_g=2.0, sigma0=2.0, sigma1=4.0, mu=0.1)
QUIET = dataclasses.replace(ORDINARY, sigma0=0.0, sigma1=0.0)
LINEAR = dataclasses.replace(ORDINARY, L_f=0.0)
FLAT = dataclasses.replace(QUIET, L_f=0.0, L_g=0.0)


def plans(constants, eps0=8.0, eps=0.5, delta=0.01):
    gaps = {"eps0": eps0, "eps": eps}
    return (
        theorem_1(constants, **gaps),
        theorem_2(constants, **gaps, delta=delta),
        theorem_3(constants, **gaps, delta=delta),
    )


def test_smoothness_is_that_of_the_composition():
    assert Constants(C_f=2.0, L_f=3.0, C_g=5.0, L_g=7.0, sigma0=0.0, sigma1=0.0, mu=1.0).L == 2 * 7 + 25 * 3


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Constants)])
@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan, "1", True])
def test_a_constant_that_is_no_nonnegative_finite_number_is_refused_by_name(name, value):
    with pytest.raises(InvalidParameter, match=name):
        dataclasses.replace(ORDINARY, **{name: value})


def test_quadratic_growth_with_modulus_zero_is_refused():
    with pytest.raises(InvalidParameter, match="mu"):
        dataclasses.replace(ORDINARY, mu=0.0)


@pytest.mark.parametrize(
    ("eps0", "eps", "n_stages"), [(8.0, 1.0, 3), (8.0, 0.99, 4), (1.0, 0.9, 1), (0.3, 0.0375, 3)]
)
def test_the_gap_halves_until_it_is_small_enough(eps0, eps, n_stages):
    for plan in plans(ORDINARY, eps0, eps):
        assert plan.n_stages == len(plan.stages) == n_stages
        assert plan.gaps == tuple(eps0 / 2**k for k in range(n_stages + 1))
        assert plan.gaps[-1] <= eps < plan.gaps[-2]


def test_samples_count_two_batches_a_step_of_mscg():
    assert Stage(step_size=0.1, n_steps=10, batch_size=7).samples == 140
    plan = theorem_1(ORDINARY, eps0=8.0, eps=0.5)
    assert plan.samples == sum(2 * stage.n_steps * stage.batch_size for stage in plan.stages)


def test_samples_count_one_batch_a_step_of_rosc_and_the_reference():
    plan = theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01, batch_size=3, reference_block_size=2)
    assert all(stage.reference_size == 2 * stage.n_blocks for stage in plan.stages)
    assert plan.samples == sum(stage.reference_size + 3 * stage.n_steps for stage in plan.stages)


def test_delta_is_total_and_shared_among_the_events():
    robust = theorem_2(ORDINARY, eps0=8.0, eps=0.5, delta=0.01)
    assert sum(2 * stage.n_steps * stage.delta for stage in robust.stages) == pytest.approx(0.01)
    truncated = theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01)
    assert sum(6 * stage.delta for stage in truncated.stages) == pytest.approx(0.01)


def test_only_what_is_proven_has_a_success_probability():
    assert [plan.success_probability for plan in plans(ORDINARY)] == [None, 0.99, None]
    assert [plan.success_probability for plan in plans(LINEAR)] == [None, 0.99, 0.99]


def test_robust_batches_are_whole_blocks():
    plan = theorem_2(ORDINARY, eps0=8.0, eps=0.5, delta=0.01)
    assert all(stage.batch_size % n_vector_blocks(stage.delta) == 0 for stage in plan.stages)


def test_batches_double_from_stage_to_stage_of_rmscg_up_to_rounding():
    for plan in plans(ORDINARY)[:2]:
        blocks = n_vector_blocks(plan.stages[0].delta) if plan.stages[0].delta else 1
        sizes = [stage.batch_size for stage in plan.stages]
        assert all(2 * (m - blocks) < n <= 2 * m for m, n in pairwise(sizes))
        assert len({(stage.n_steps, stage.step_size) for stage in plan.stages}) == 1


def test_steps_double_and_step_sizes_halve_from_stage_to_stage_of_rrosc_when_noise_binds():
    noisy = dataclasses.replace(ORDINARY, sigma1=400.0)
    stages = theorem_3(noisy, eps0=8.0, eps=0.5, delta=0.01).stages
    for early, late in pairwise(stages):
        assert late.step_size == early.step_size / 2
        assert abs(late.n_steps - 2 * early.n_steps) <= 1
        assert late.radius == pytest.approx(early.radius / math.sqrt(2))


def test_slacks_hold_both_the_error_of_the_reference_and_lambda():
    plan = theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01, batch_size=4, reference_block_size=3)
    for stage, gap in zip(plan.stages, plan.gaps, strict=False):
        D, root, nu = math.sqrt(2 * gap / 0.1), math.sqrt(stage.n_steps / 4), 3.0
        assert stage.levels.slack_y == pytest.approx(nu * 2.0 + max(3.0 * D, 2.0 * root) + nu * 2.0)
        assert stage.levels.slack_z == pytest.approx(nu * 4.0 + max(2.0 * D, 4.0 * root) + nu * 4.0)
        assert stage.levels[:2] == (3.0, 2.0)


def test_a_shorter_step_takes_more_steps_and_a_longer_one_than_1_over_2l_is_refused():
    longest = 1 / (2 * ORDINARY.L)
    for theorem, extra in ((theorem_1, {}), (theorem_2, {"delta": 0.01})):
        plan = theorem(ORDINARY, eps0=8.0, eps=0.5, **extra)
        assert plan.stages[0].step_size == longest
        shorter = theorem(ORDINARY, eps0=8.0, eps=0.5, step_size=longest / 2, **extra)
        assert shorter.stages[0].n_steps > plan.stages[0].n_steps
        with pytest.raises(InvalidParameter, match=r"1/\(2L\)"):
            theorem(ORDINARY, eps0=8.0, eps=0.5, step_size=longest * 1.01, **extra)


def test_growth_that_comes_from_the_regularizer_does_not_make_the_default_step_endless():
    steep = dataclasses.replace(ORDINARY, mu=1e6)
    assert [plan.stages[0].step_size * 1e6 for plan in plans(steep)[:2]] == [1.0, 1.0]


@pytest.mark.parametrize("constants", [QUIET, LINEAR, FLAT, dataclasses.replace(FLAT, sigma1=1.0)])
def test_a_linear_outer_function_and_absent_noise_are_limits_not_errors(constants):
    for plan in plans(constants):
        for stage in plan.stages:
            assert 0 < stage.step_size < math.inf
            assert stage.n_steps >= 1
            assert stage.batch_size >= 1


def test_without_noise_the_smallest_batches_do():
    expectation, robust, _ = plans(QUIET)
    assert {stage.batch_size for stage in expectation.stages} == {1}
    assert {stage.batch_size for stage in robust.stages} == {n_vector_blocks(robust.stages[0].delta)}


@pytest.mark.parametrize(
    ("eps0", "eps"), [(1.0, 1.0), (1.0, 2.0), (0.0, 0.0), (1.0, 0.0), (math.inf, 1.0), (1.0, -1.0)]
)
def test_gaps_out_of_order_are_refused(eps0, eps):
    for theorem, extra in ((theorem_1, {}), (theorem_2, {"delta": 0.1}), (theorem_3, {"delta": 0.1})):
        with pytest.raises(InvalidParameter, match="eps"):
            theorem(ORDINARY, eps0=eps0, eps=eps, **extra)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta):
    for theorem in (theorem_2, theorem_3):
        with pytest.raises(InvalidParameter, match="delta"):
            theorem(ORDINARY, eps0=8.0, eps=0.5, delta=delta)


@pytest.mark.parametrize("setting", ["batch_size", "reference_block_size"])
def test_sizes_of_rrosc_are_positive_whole_numbers(setting):
    with pytest.raises(InvalidParameter, match=setting):
        theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.1, **{setting: 0})


@pytest.mark.parametrize(
    "extreme", [{"sigma1": 1e200}, {"C_g": 1e200}, {"mu": 1e-320}, {"L_g": 1e308, "C_f": 1e308}]
)
def test_constants_that_ask_for_uncountable_samples_are_refused_and_not_computed_with(extreme):
    constants = dataclasses.replace(ORDINARY, **extreme)
    for theorem, extra in ((theorem_1, {}), (theorem_2, {"delta": 0.1}), (theorem_3, {"delta": 0.1})):
        with pytest.raises(InvalidParameter, match="rescale"):
            theorem(constants, eps0=1.0, eps=0.5, **extra)


def test_plans_are_frozen_records():
    plan = theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01)
    assert plan == theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01)
    assert isinstance(plan.stages[0], TruncatedStage)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.stages = ()


def test_one_stage_terms_follow_the_printed_formula():
    stage = theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01, batch_size=2).stages[1]
    eta, T, D, log = stage.step_size, stage.n_steps, stage.radius, math.log(1 / stage.delta)
    expected = (
        4.0 / (0.1 * eta * T),
        2 * eta / T * 8 * 3.0**2 * 0.05**2 * (3 * log + 2) * max(2.0**2 * T / 2, 3.0**2 * D**2),
        2 * eta / T * 8 * 1.0**2 * (3 * log + 2) * max(4.0**2 * T / 2, 2.0**2 * D**2),
        1 / T * 8 * 3.0 * 0.05 * D * (log + 1) * max(2.0 * math.sqrt(T / 2), 3.0 * D),
        1 / T * 8 * 1.0 * D * (log + 1) * max(4.0 * math.sqrt(T / 2), 2.0 * D),
    )
    assert one_stage_terms(ORDINARY, stage, 4.0) == pytest.approx(expected)


def test_batches_and_blocks_of_rrosc_are_one_sample_unless_it_is_said_otherwise():
    for stage in theorem_3(ORDINARY, eps0=8.0, eps=0.5, delta=0.01).stages:
        assert (stage.batch_size, stage.reference_size) == (1, stage.n_blocks)


def test_the_plans_of_theorems_1_and_2_are_the_formulas_of_their_docstrings():
    eta, mu, y, z = 1 / (2 * ORDINARY.L), 0.1, (3.0 * 0.05 * 2.0) ** 2, (1.0 * 4.0) ** 2
    expectation, robust, _ = plans(ORDINARY)
    assert {stage.n_steps for stage in expectation.stages} == {math.ceil(8 / (mu * eta) + 4)}
    assert {stage.n_steps for stage in robust.stages} == {math.ceil(4 * (2 / (mu * eta) + 1))}
    for plain, blocked, gap in zip(expectation.stages, robust.stages, (8.0, 4.0, 2.0, 1.0), strict=True):
        assert plain.batch_size == math.ceil(8 / (mu * gap) * (2 * mu * eta * z + 2 * mu * eta * y + y))
        size = math.ceil(16 * 27 * (mu * eta + 1) * (y + z) / (mu * gap))
        assert blocked.batch_size == math.ceil(18 * math.log(1 / blocked.delta)) * size


@pytest.mark.parametrize(
    ("constants", "m", "c"), [(ORDINARY, 1, 1), (QUIET, 5, 2), (FLAT, 40_000, 1), (FLAT, 1, 9)]
)
def test_the_plan_of_theorem_3_is_the_formula_of_its_docstring(constants, m, c):
    plan = theorem_3(constants, eps0=8.0, eps=0.5, delta=0.01, batch_size=m, reference_block_size=c)
    k, ell = constants, math.log(6 * 4 / 0.01)
    noise = 1280 * (ell + 1) ** 2 * max(k.C_g * k.L_f * k.sigma0, k.C_f * k.sigma1) ** 2
    curvature = 16 * (ell + 1) * max(k.C_g**2 * k.L_f, k.C_f * k.L_g)
    for stage, gap in zip(plan.stages, (8.0, 4.0, 2.0, 1.0), strict=True):
        eta = 1 / max(noise / (m * gap), curvature) if noise + curvature else 1 / k.mu
        assert stage.step_size == pytest.approx(eta)
        longest = max(10 / (k.mu * eta), 27 * m / c, 2 * ell * (2 * ell + 1) / 3)
        assert stage.n_steps == pytest.approx(math.ceil(longest), abs=1)
        assert stage.radius == pytest.approx(math.sqrt(2 * gap / k.mu))
