"""What each method makes of a pilot: the rules of its docstring, written anew for pilots made by hand."""

import dataclasses
import math

import pytest

import stoic
from stoic.pilot import Pilot
from stoic.theory.plans import Constants

CONSTANTS = Constants(C_f=1.0, L_f=0.5, C_g=2.0, L_g=3.0, sigma0=1.5, sigma1=2.5, mu=0.5)
PILOT = Pilot(
    constants=CONSTANTS,
    L=4.0,
    L_sample=20.0,
    L_typical=8.0,
    gradient_norm=5.0,
    gradient_noise=6.0,
    distance=7.0,
    eps0=9.0,
    modulus=0.25,
    budget=240_000,  # 120,000 draws: 40 for each of 3,000 steps, or 20 where a step takes two batches
    cost=2,
    n_samples=None,
    delta=0.05,
)
SHARP = dataclasses.replace(PILOT, L_sample=8.0)  # the pilot of methods that truncate
FLAT = dataclasses.replace(PILOT, constants=dataclasses.replace(CONSTANTS, mu=1e-3))
DRAWS = 120_000


def blocks(delta):
    return math.ceil(18 * math.log(1 / delta))


def share_of(solver):
    return solver.reference_mean.delta


# --- one stage ---


def test_mscg_spends_its_budget_on_pairs_of_batches():
    solver = stoic.MSCG().tuned(PILOT)
    assert (solver.batch_size, solver.n_steps) == (20, 3000)
    assert solver.step_size == PILOT.averaging_step(20, 3000)


def test_mscg_with_a_robust_mean_has_a_batch_that_fills_its_blocks():
    mean = stoic.SmallestBall(0.01)
    assert stoic.MSCG(mean=mean).tuned(PILOT).batch_size == blocks(0.01)
    assert stoic.MSCG(mean=stoic.SmallestBall(0.5)).tuned(PILOT).batch_size == 20


def test_alexr_spends_its_budget_on_pairs_of_batches():
    solver = stoic.ALEXR().tuned(PILOT)
    assert (solver.batch_size, solver.n_steps) == (20, 3000)
    assert solver.step_size == PILOT.averaging_step(20, 3000)


@pytest.mark.parametrize(("norm", "noise", "clip"), [(5.0, 6.0, 5.0), (0.5, 10.0, 30 / math.sqrt(40)), (0, 0, 1)])
def test_the_clip_is_the_first_gradient_three_deviations_of_a_batch_or_one(norm, noise, clip):
    solver = stoic.ClippedSGD().tuned(dataclasses.replace(PILOT, gradient_norm=norm, gradient_noise=noise))
    assert solver.clip == pytest.approx(clip)
    assert (solver.batch_size, solver.n_steps) == (40, 3000)


def test_rosc_spends_a_tenth_of_its_samples_on_the_reference():
    solver = stoic.ROSC().tuned(PILOT)
    assert (solver.batch_size, solver.reference_size, solver.n_steps) == (40, 12_000, 2700)
    assert solver.step_size == SHARP.averaging_step(40, 2700)
    assert solver.radius == pytest.approx(max(14.0, math.sqrt(2 * 9.0 / 0.5)))
    assert share_of(solver) == pytest.approx(0.05 / 6)
    assert (solver.levels.C_g, solver.levels.L_g) == pytest.approx((2.2, 3.3))
    assert (solver.levels.factor, solver.levels.least) == (0.1, 3.0)


def test_the_reference_of_rosc_is_no_larger_than_its_blocks_can_use():
    solver = stoic.ROSC().tuned(PILOT.within(6_000_000))
    assert solver.batch_size == 64
    assert solver.reference_size == blocks(0.05 / 6) * 10 * 64
    assert solver.n_steps == 3_000_000 // 64 - solver.reference_size // 64
    assert stoic.ROSC(batch_size=1).tuned(PILOT).reference_size == blocks(0.05 / 6) * 10 * 2


def test_a_small_reference_buys_the_delta_of_one_sample_a_block():
    solver = stoic.ROSC().tuned(PILOT.within(600))
    assert (solver.batch_size, solver.reference_size, solver.n_steps) == (1, 30, 270)
    assert share_of(solver) == pytest.approx(math.exp(-30 / 18))
    assert stoic.ROSC().tuned(PILOT.within(10)).reference_size == 2
    assert stoic.ROSC().tuned(PILOT.within(4)).n_steps == 1


def test_single_samples_are_cut_further_out_than_batches():
    assert stoic.ROSC(truncates="samples").tuned(PILOT).levels.least == 10.0


def test_a_tracked_stage_has_one_sample_a_step_and_forgets_forty_times():
    solver = stoic.TrackedROSC().tuned(PILOT)
    assert (solver.batch_size, solver.truncates) == (1, "samples")
    assert solver.weight == pytest.approx(40 / solver.n_steps)
    assert (solver.levels.factor, solver.levels.least) == (0.2, 10.0)
    short = stoic.TrackedROSC().tuned(PILOT.within(400))
    assert short.weight == 0.1 < 40 / short.n_steps
    assert stoic.TrackedROSC().tuned(PILOT.within(40)).weight == pytest.approx(4 / 18)
    assert stoic.TrackedROSC().tuned(PILOT.within(4)).weight == 1.0


@pytest.mark.parametrize(
    ("kind", "per_step", "start", "power"),
    [(stoic.SCGD, 1, 1.0, 2 / 3), (stoic.ASCPG, 2, 1.0, 0.8), (stoic.SCSC, 1, 0.5, 1.0)],
)
def test_two_time_scales_have_the_strongly_convex_rule_where_the_steps_outnumber_the_condition(
    kind, per_step, start, power
):
    solver, m = kind().tuned(PILOT), 40 // per_step
    first = 0.5 / (4.0 + 20.0 / m)
    assert (solver.batch_size, solver.n_steps, solver.answer) == (m, 3000, "last")
    assert dataclasses.astuple(solver.steps) == pytest.approx((first, 1.0, 2 / (0.5 * first)))
    assert dataclasses.astuple(solver.weights) == pytest.approx((start, power, 2 / (0.5 * first)))


@pytest.mark.parametrize(
    ("kind", "step_power", "start", "power"),
    [(stoic.SCGD, 0.75, 1.0, 0.5), (stoic.ASCPG, 5 / 7, 1.0, 4 / 7), (stoic.SCSC, 0.5, 0.5, 0.5)],
)
def test_two_time_scales_have_the_convex_rule_where_they_do_not(kind, step_power, start, power):
    solver = kind().tuned(FLAT)
    assert solver.answer == "average"
    delay = solver.n_steps / 5
    assert dataclasses.astuple(solver.steps)[1:] == pytest.approx((step_power, delay))
    assert dataclasses.astuple(solver.weights) == pytest.approx((start, power, delay))


def test_the_rule_changes_where_the_bend_comes_after_a_fifth_of_the_steps():
    for mu, answer in ((1.001, "last"), (0.999, "average")):  # the bend is at 2/(μη) steps, and η = 0.5/24
        given = dataclasses.replace(PILOT, constants=dataclasses.replace(CONSTANTS, mu=mu))
        solver = stoic.SCGD(batch_size=1, n_steps=480).tuned(given)
        assert solver.answer == answer
    assert stoic.SCGD(n_steps=2).tuned(FLAT).steps.delay == 1.0


# --- restarts ---


def test_rrosc_doubles_its_length_shrinks_its_ball_and_steps_as_the_length_asks():
    result = stoic.RROSC().tuned(PILOT)
    stages = result.stages
    n_stages = math.floor(math.log2(3000 / 64 + 1))  # whatever μ is
    assert len(stages) == n_stages == 5
    assert result.window > 0.5
    for k, stage in enumerate(stages):
        length = math.floor(3000 / (2**n_stages - 1) * 2**k)
        assert stage.batch_size == 40
        assert stage.reference_size == length * 40 // 10
        assert stage.n_steps == length - math.ceil(stage.reference_size / 40)
        assert stage.step_size == SHARP.averaging_step(40, stage.n_steps)
        wander = SHARP.wander(stage.step_size, 40, stage.n_steps)
        assert stage.radius >= max(14.0 / 2 ** (k / 2), 4.0 * wander) * (1.0 - 1e-12)
        assert share_of(stage) == pytest.approx(max(0.05 / n_stages / 6, math.exp(-stage.reference_size / 18)))


def test_a_step_given_to_rrosc_is_halved_and_the_last_stage_answers_as_in_the_paper():
    result = stoic.RROSC(step_size=0.08, radius=14.0).tuned(PILOT)
    n_stages = math.floor(math.log2(3000 / max(50.0, 5 / (0.5 * 0.08)) + 1))
    assert len(result.stages) == n_stages
    assert result.window == 0.0
    for k, stage in enumerate(result.stages):
        assert stage.step_size == pytest.approx(0.08 / 2**k)
        assert stage.radius == pytest.approx(14.0 / 2 ** (k / 2))


def test_a_step_given_to_the_tracked_method_falls_by_root_two():
    result = stoic.RROSCTracked(step_size=0.08).tuned(PILOT)
    assert [stage.step_size for stage in result.stages[:3]] == pytest.approx([0.08, 0.08 / 2**0.5, 0.04])
    assert result.window > 0.5


# --- the step of an average ---

KNOWN = dataclasses.replace(PILOT, dimension=10)


def test_the_step_of_an_average_falls_with_the_budget_where_mu_is_tiny_and_coordinates_are_many():
    wide = dataclasses.replace(
        FLAT, constants=dataclasses.replace(CONSTANTS, mu=1e-9), dimension=10**7, distance=0.1
    )
    steps = [wide.averaging_step(1, n) for n in (10**3, 10**5, 10**7)]
    assert steps[0] / steps[1] == pytest.approx(10.0, rel=0.7)
    assert steps[1] / steps[2] == pytest.approx(10.0, rel=0.7)


def test_the_step_of_an_average_stays_long_where_mu_is_tiny_and_coordinates_are_few():
    few = dataclasses.replace(KNOWN, constants=dataclasses.replace(CONSTANTS, mu=1e-9), distance=100.0)
    assert few.averaging_step(1, 10**4) == few.step_size(1)


def test_the_step_of_an_average_falls_with_the_length_where_mu_is_known_and_forgets_the_start():
    steps = [KNOWN.averaging_step(1, n) for n in (10**4, 10**6)]
    assert steps[1] < steps[0] <= KNOWN.step_size(1)
    assert all(KNOWN.mu * step * n > 2.0 for step, n in zip(steps, (10**4, 10**6), strict=True))


def test_a_length_given_to_rrosc_doubles_from_stage_to_stage():
    stages = stoic.RROSC(n_steps=7, n_stages=3).tuned(PILOT).stages
    assert [stage.n_steps for stage in stages] == [7, 14, 28]


def test_rrosc_tracked_takes_one_sample_a_step_in_stages_that_are_tracked():
    stages = stoic.RROSCTracked().tuned(PILOT).stages
    assert {(type(stage), stage.batch_size) for stage in stages} == {(stoic.TrackedROSC, 1)}
    assert len(stages) == 8
    assert {stage.batch_size for stage in stoic.RROSCTracked(batch_size=6).tuned(PILOT).stages} == {6}


def longest_of_growing(pilot, n_stages):
    """Return m for so many stages, and the largest m with which the first of them is long enough."""
    draws = pilot.budget // pilot.cost
    m = max(1, round(math.sqrt(draws / 2 ** (n_stages - 1)) / 3))
    step = 0.5 / (pilot.L + pilot.L_typical / m)
    return m, math.floor(draws / (2**n_stages - 1) / max(50.0, 5 / (pilot.mu * step)))


@pytest.mark.parametrize("budget", [240_000, 24_000, 6000, 2000, 300])
def test_growing_batches_have_the_most_stages_whose_first_is_long_enough(budget):
    pilot = PILOT.within(budget)
    stages = stoic.RROSCGrowing().tuned(pilot).stages
    enough = [k for k in range(1, 13) if longest_of_growing(pilot, k)[1] >= longest_of_growing(pilot, k)[0]]
    short = [k for k in range(1, 5) if longest_of_growing(pilot, k)[1] >= 1]
    n_stages = max([*enough, *short], default=1)
    m, room = longest_of_growing(pilot, n_stages)
    assert len(stages) == n_stages
    assert {(stage.truncates, stage.levels.factor, stage.levels.least) for stage in stages} == {
        ("samples", 0.1, 10.0)
    }
    assert [stage.batch_size for stage in stages] == [
        round(max(1, min(m, room)) * 2 ** (k / 2)) for k in range(n_stages)
    ]


def test_rmscg_doubles_its_batch_from_stage_to_stage():
    stages = stoic.RMSCG().tuned(PILOT).stages
    eta = 0.5 / (4.0 + 20.0 / 20)
    n_stages = math.floor(math.log2(3000 / max(50.0, 5 / (0.5 * eta)) + 1))
    assert [stage.batch_size for stage in stages] == [20 * 2**k for k in range(n_stages)]
    assert {(stage.step_size, stage.n_steps) for stage in stages} == {(eta, 3000 // (2**n_stages - 1))}


def test_rmscg_takes_a_step_a_stage_at_least():
    assert [stage.n_steps for stage in stoic.RMSCG(n_stages=3).tuned(PILOT.within(8)).stages] == [1, 1, 1]


def test_the_plan_of_theorem_1_has_plain_means_and_that_of_theorem_2_robust_ones():
    plain = stoic.theorem_1(CONSTANTS, eps0=8.0, eps=1.0)
    robust = stoic.theorem_2(CONSTANTS, eps0=8.0, eps=1.0, delta=0.1)
    for plan, mean in ((plain, stoic.Mean()), (robust, stoic.SmallestBall(robust.stages[0].delta))):
        for stage, planned in zip(stoic.RMSCG.from_plan(plan).stages, plan.stages, strict=True):
            assert stage == stoic.MSCG(planned.step_size, planned.batch_size, planned.n_steps, mean)


def test_rmscg_with_a_robust_mean_given_has_a_first_batch_that_fills_its_blocks():
    stages = stoic.RMSCG(mean=stoic.SmallestBall(0.01)).tuned(PILOT).stages
    assert stages[0].batch_size == blocks(0.01)


@pytest.mark.parametrize(("mu", "fewest"), [(0.5, 600), (0.05, 1600)])
def test_robust_rmscg_spends_on_batches_what_the_condition_allows(mu, fewest):
    pilot = dataclasses.replace(PILOT, constants=dataclasses.replace(CONSTANTS, mu=mu))
    stages = stoic.METHODS["rmscg-robust"]().tuned(pilot).stages
    m = DRAWS // (2 * fewest)
    assert stages[0].batch_size == m
    events = 2 * stages[0].n_steps * len(stages)
    assert stages[0].mean.delta == pytest.approx(max(0.05 / events, math.exp(-(m // 4) / 3.5)))
    assert stoic.RMSCG(mean=stoic.AUTO).tuned(pilot.within(1000)).stages[0].batch_size == 8


def test_the_blocks_of_robust_rmscg_are_three_at_least_and_its_delta_shared_where_it_can_be():
    few = stoic.RMSCG(mean=stoic.AUTO, batch_size=8).tuned(PILOT).stages[0]
    assert few.mean.delta == pytest.approx(math.exp(-3 / 3.5))
    many = stoic.RMSCG(mean=stoic.AUTO, batch_size=400).tuned(PILOT).stages
    assert many[0].mean.delta == pytest.approx(0.05 / (2 * many[0].n_steps * len(many)))


def test_rsmd_halves_its_step_doubles_its_length_and_shrinks_its_ball():
    stages = stoic.RSMD().tuned(PILOT).stages
    first_step = 0.5 / (4.0 + 8.0 / 40)
    n_stages = len(stages)
    assert n_stages == math.floor(math.log2(3000 / max(50.0, 5 / (0.5 * first_step)) + 1))
    for k, stage in enumerate(stages):
        length = math.floor(3000 / (2**n_stages - 1) * 2**k)
        assert (stage.batch_size, stage.factor, stage.least) == (40, 0.1, 3.0)
        assert stage.reference_size == length * 40 // 10
        assert stage.n_steps == length - math.ceil(stage.reference_size / 40)
        assert stage.step_size == pytest.approx(first_step / 2**k)
        assert stage.radius == pytest.approx(14.0 / 2 ** (k / 2))
        assert stage.smoothness == pytest.approx(4.4)
        assert share_of(stage) == pytest.approx(max(0.05 / n_stages / 2, math.exp(-stage.reference_size / 18)))


def test_the_smallest_stage_of_rsmd_has_two_samples_of_reference_and_a_step():
    (stage,) = stoic.RSMD(n_stages=1).tuned(PILOT.within(4)).stages
    assert (stage.reference_size, stage.n_steps) == (2, 1)
    assert share_of(stage) == pytest.approx(math.exp(-2 / 18))


def test_stages_of_a_list_have_an_equal_share_each():
    first, second, third = stoic.Restarted([stoic.MSCG()] * 3).tuned(PILOT).stages
    assert first == second == third == stoic.MSCG().tuned(PILOT.within(80_000))


# --- CIVR and proxBoost ---


@pytest.mark.parametrize(("n_samples", "anchor", "left"), [(120_000, 0, 60_000), (120_001, 60_000, 60_000)])
def test_civr_anchors_at_all_data_where_they_cost_half_of_the_budget_at_most(n_samples, anchor, left):
    solver = stoic.CIVR().tuned(dataclasses.replace(PILOT, n_samples=n_samples))
    m = math.floor(left * 0.5 / (10 * 4.0))
    assert (solver.anchor_size, solver.batch_size, solver.n_steps) == (anchor, m, left // m)
    assert solver.step_size == pytest.approx(0.5 / (4.0 + 20.0 / m))


def test_civr_on_a_stream_anchors_at_half_of_the_budget_and_takes_two_steps_at_least():
    assert stoic.CIVR().tuned(PILOT).anchor_size == 60_000
    tiny = stoic.CIVR().tuned(PILOT.within(2))
    assert (tiny.anchor_size, tiny.batch_size, tiny.n_steps) == (1, 1, 2)


@pytest.mark.parametrize(("n_samples", "is_finite"), [(30_000, True), (30_001, False), (None, False)])
def test_rcivr_passes_over_finite_data_where_the_budget_allows_four_epochs(n_samples, is_finite):
    stages = stoic.RCIVR().tuned(dataclasses.replace(PILOT, n_samples=n_samples)).stages
    assert (stages[0].anchor_size == stoic.EVERYTHING) == is_finite


def test_an_epoch_of_rcivr_over_finite_data_takes_root_n_steps_of_root_n_samples_of_each_group():
    pilot = dataclasses.replace(PILOT, n_samples=10_000)
    stages = stoic.RCIVR().tuned(pilot).stages
    root = math.ceil(math.sqrt(5000))
    assert set(stages) == {
        stoic.CIVR(step_size=0.5 / (4.0 + 20.0 / root), batch_size=root, n_steps=root, anchor_size=0)
    }
    assert len(stages) == math.ceil(240_000 / (10_000 + (root - 1) * root * 2))
    assert len(stoic.RCIVR(rule="finite-sum").tuned(pilot.within(5)).stages) == 1


def test_the_anchors_of_rcivr_double_on_an_expectation_and_spend_half_of_the_budget():
    stages = stoic.RCIVR().tuned(PILOT).stages
    steps = math.ceil(5 / (0.5 * 0.5 / (4.0 + 20.0 / 8)))
    n_stages = math.floor(math.log2(DRAWS / (2 * steps) + 1))
    first = DRAWS / 2 / (2**n_stages - 1)
    assert [stage.anchor_size for stage in stages] == [math.floor(first * 2**k) for k in range(n_stages)]
    for stage in stages:
        n_steps = max(steps, math.isqrt(stage.anchor_size))
        assert (stage.n_steps, stage.batch_size) == (n_steps, stage.anchor_size // n_steps)
        assert stage.step_size == pytest.approx(0.5 / (4.0 + 20.0 / stage.batch_size))


def test_epochs_of_rcivr_have_two_steps_at_least_and_no_more_than_their_anchor_has_samples():
    (tiny,) = stoic.RCIVR(n_stages=1).tuned(PILOT.within(4)).stages
    assert (tiny.anchor_size, tiny.n_steps, tiny.batch_size) == (1, 2, 1)
    (short,) = stoic.RCIVR(n_stages=1).tuned(PILOT.within(120)).stages
    assert (short.anchor_size, short.n_steps, short.batch_size) == (30, 30, 1)
    assert len(stoic.RCIVR().tuned(PILOT.within(10**12)).stages) == 12


def test_prox_boost_doubles_its_weights_up_to_the_smoothness_and_repeats_the_last():
    stages = stoic.ProxBoost().tuned(PILOT).stages
    assert [stage.weight for stage in stages] == [0.0, 0.25, 0.5, 1.0, 2.0, 2.0]
    assert {stage.n_trials for stage in stages} == {5}


@pytest.mark.parametrize("total", [240_000, 60_000, 12_000])
def test_prox_boost_shares_its_budget_by_the_condition_of_its_stages(total):
    stages = stoic.ProxBoost(n_trials=3).tuned(PILOT.within(total)).stages
    needs = [(4.0 + stage.weight) / (0.5 + stage.weight) + 2.0 for stage in stages]
    for stage, need in zip(stages, needs, strict=True):
        budget = math.floor(total * need / sum(needs) / 3)
        constants = dataclasses.replace(CONSTANTS, mu=0.5 + stage.weight)
        pilot = dataclasses.replace(PILOT, budget=budget, fewest_steps=100, constants=constants)
        assert stage.solver == stoic.MSCG().tuned(pilot)


def test_prox_boost_takes_a_modulus_that_is_larger_than_the_one_measured():
    stages = stoic.ProxBoost(mu=2.0, n_trials=1).tuned(PILOT).stages
    assert [stage.weight for stage in stages] == [0.0, 2.0, 2.0]
    needs = [(4.0 + stage.weight) / (2.0 + stage.weight) + 2.0 for stage in stages]
    steps = [2 * stage.solver.n_steps * stage.solver.batch_size for stage in stages]  # draws
    assert steps == pytest.approx([DRAWS * need / sum(needs) for need in needs], rel=0.01)
    assert [stage.weight for stage in stoic.ProxBoost(mu=64.0).tuned(PILOT).stages] == [0.0, 64.0, 64.0]


def test_the_trials_of_a_plan_of_prox_boost_have_an_equal_share_each():
    plan = stoic.ProxBoost(n_trials=2).tuned(PILOT)
    opened = dataclasses.replace(plan, stages=tuple(s._replace(solver=stoic.MSCG()) for s in plan.stages))
    assert opened.needs_pilot
    assert not plan.needs_pilot
    for stage in opened.tuned(PILOT).stages:
        assert stage.solver == stoic.MSCG().tuned(PILOT.within(240_000 // 12).anchored(stage.weight))
