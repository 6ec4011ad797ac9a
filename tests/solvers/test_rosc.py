"""ROSC: what the reference, the levels and the ball do to a step."""

import math

import numpy as np
import pytest

import stoic
from catalog import CASES

PROBLEM = CASES["logsumexp-l2"].problem
W0 = np.zeros(10)
KEEP_ALL = stoic.Levels(0.0, 0.0, math.inf, math.inf)


def rosc(levels=KEEP_ALL, radius=math.inf, **settings):
    given = {"batch_size": 2, "n_steps": 50, "reference_size": 30, "reference_mean": stoic.SmallestBall(0.5)}
    return stoic.ROSC(step_size=0.05, levels=levels, radius=radius, **(given | settings))


def steps(solver, problem=PROBLEM, seed=0):
    """Yield the states and infos of a run."""
    rng = np.random.default_rng(seed)
    state = solver.init(problem, W0, rng)
    while not solver.finished(state):
        state, info = solver.step(problem, state, rng)
        yield state, info


def test_rosc_returns_to_the_reference_when_a_batch_is_an_outlier():
    # Levels of zero truncate everything: all steps follow the reference gradient z̃ᵀ∇f(ỹ).
    solver = rosc(stoic.Levels(0.0, 0.0, 0.0, 0.0), n_steps=3)
    w = W0
    for state, info in steps(solver):
        gradient = state.reference.z.T @ PROBLEM.outer.gradient(state.reference.y)
        w = PROBLEM.regularizer.prox(w - 0.05 * gradient, 0.05)
        assert (info.truncated_y, info.truncated_z) == (1.0, 1.0)
        np.testing.assert_allclose(state.w, w, rtol=1e-13)


@pytest.mark.parametrize(
    ("levels", "y", "z"),
    [
        (stoic.Levels(0.0, 0.0, 0.0, math.inf), 1.0, 0.0),
        (stoic.Levels(0.0, 0.0, math.inf, 0.0), 0.0, 1.0),
        (stoic.Levels(0.0, 0.0, math.inf, math.inf), 0.0, 0.0),
    ],
)
def test_values_and_jacobians_are_truncated_each_for_itself(levels, y, z):
    result = stoic.minimize(PROBLEM, rosc(levels), budget=5000, seed=0)
    assert (result.truncated_y, result.truncated_z) == (y, z)


@pytest.mark.parametrize("regularizer", [stoic.L2(0.1), stoic.L1(0.1), stoic.Box(-1.0, 1.0)])
def test_iterates_stay_in_the_ball(regularizer):
    problem = stoic.Problem(PROBLEM.inner, PROBLEM.outer, regularizer)
    distances = [np.linalg.norm(state.w) for state, _ in steps(rosc(radius=0.3), problem)]
    assert max(distances) == pytest.approx(0.3, rel=1e-9)


@pytest.mark.slow
def test_one_wild_label_does_not_reach_the_iterate():
    case = CASES["logsumexp-l2"].problem.inner
    y = case.y.copy()
    y[7] = 1e12
    wild = stoic.Problem(stoic.GroupLoss(case.X, y, case.grouped_rows.codes), PROBLEM.outer, PROBLEM.regularizer)
    result = stoic.minimize(wild, "rosc", budget=20_000, seed=0)
    assert 0.0 < result.truncated_z < 0.2
    assert PROBLEM.objective(result.w) < 0.5 * PROBLEM.objective(W0)
    assert PROBLEM.objective(stoic.minimize(wild, "mscg", budget=20_000, seed=0).w) > PROBLEM.objective(W0)


def test_calibrated_levels_follow_the_scale_of_the_data():
    # Scaling y (and w0 = 0) by s scales values by s², Jacobians by s: the slacks must follow.
    inner, slacks = PROBLEM.inner, []
    for scale in (1.0, 1000.0):
        scaled = stoic.GroupLoss(inner.X, inner.y * scale, inner.grouped_rows.codes)
        problem = stoic.Problem(scaled, PROBLEM.outer, PROBLEM.regularizer)
        state = rosc(stoic.Calibrated(0.0, 0.0)).init(problem, W0, np.random.default_rng(0))
        slacks.append((state.reference.levels.slack_y / scale**2, state.reference.levels.slack_z / scale))
    assert slacks[0] == pytest.approx(slacks[1], rel=1e-9)


def test_calibrated_levels_grow_with_the_root_of_a_long_stage():
    slack = {}
    for n_steps in (10_000, 40_000):
        solver = rosc(stoic.Calibrated(0.0, 0.0), n_steps=n_steps)
        slack[n_steps] = solver.init(PROBLEM, W0, np.random.default_rng(0)).reference.levels.slack_y
    assert slack[40_000] == pytest.approx(2.0 * slack[10_000])


def test_a_stage_of_the_plan_of_theorem_3_becomes_a_solver():
    constants = stoic.Constants(C_f=1.0, L_f=0.0, C_g=1.0, L_g=1.0, sigma0=0.1, sigma1=0.1, mu=1.0)
    plan = stoic.theorem_3(constants, eps0=1.0, eps=0.3, delta=0.1)
    solver = stoic.RROSC.from_plan(plan)
    assert not solver.needs_pilot
    for stage, planned in zip(solver.stages, plan.stages, strict=True):
        assert (stage.step_size, stage.n_steps, stage.radius) == (
            planned.step_size,
            planned.n_steps,
            planned.radius,
        )
        assert (stage.reference_size, stage.levels) == (planned.reference_size, planned.levels)


def test_levels_that_grow_with_the_steps_need_their_number():
    solver = rosc(stoic.Calibrated(1.0, 1.0), n_steps=2**62)
    with pytest.raises(stoic.InvalidParameter, match="give n_steps to ROSC"):
        stoic.minimize(PROBLEM, solver, budget=1000)


def test_a_reference_too_small_for_its_mean_is_refused():
    solver = rosc(reference_size=3, reference_mean=stoic.SmallestBall(0.1))
    with pytest.raises(stoic.InvalidParameter, match="3 is below the 42 blocks"):
        stoic.minimize(PROBLEM, solver, budget=1000)


def test_calibrated_levels_keep_their_growth_and_scale_what_was_measured():
    solver = rosc(stoic.Calibrated(2.0, 5.0, factor=0.5, least=3.0), n_steps=100, reference_size=30, batch_size=4)
    # 7 blocks of 30/7 samples: a batch of 4 deviates √(30/7/4) times as far as a block.
    growth = 5.0 * math.sqrt(30 / 7 / 4)
    assert tuple(solver.calibrated(1.5, 0.7)) == pytest.approx((2.0, 5.0, 1.5 * growth, 0.7 * growth))


@pytest.mark.parametrize(
    ("settings", "blocks"),
    [
        ({"reference_size": 30, "batch_size": 4}, 7),
        ({"reference_size": 30, "batch_size": 20}, 3),
        ({"reference_size": 2, "batch_size": 4}, 2),
        ({"reference_size": 30, "batch_size": 4, "truncates": "samples"}, 30),
    ],
)
def test_the_reference_is_cut_into_blocks_of_what_is_truncated_and_at_least_three(settings, blocks):
    assert rosc(**settings).calibration_blocks == blocks


def test_where_all_blocks_of_the_reference_agree_nothing_is_truncated():
    X, y = np.ones((50, 1)), np.zeros(50)
    problem = stoic.Problem(stoic.GroupLoss(X, y, np.zeros(50)), stoic.Linear())
    solver = rosc(stoic.Calibrated(C_g=1.0, L_g=1.0))
    levels = solver.init(problem, np.zeros(1), np.random.default_rng(0)).reference.levels
    assert (levels.slack_y, levels.slack_z) == (np.inf, np.inf)
