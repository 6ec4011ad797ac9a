"""Statuses that hold: what is called a success is one, on both engines."""

import math

import numpy as np
import pytest

import stoic
from stoic import Status
from stoic.theory.theorems import Constants, theorem_1, theorem_3

RNG = np.random.default_rng(0)
N, D = 2000, 3
X = RNG.standard_normal((N, D))
Y = X @ np.ones(D) + RNG.standard_normal(N)
GROUPS = np.arange(N) % 4
INNER = stoic.GroupLoss(X, Y, GROUPS)
PROBLEM = stoic.Problem(INNER, stoic.LogSumExp(1.0), stoic.L2(1e-3))

both_engines = pytest.mark.parametrize("engine", ["plain", "compiled"])


def functions(sign=1.0, y=Y):
    """Return squared loss as functions of one's own, its Jacobian times a sign."""

    def value(w, samples):
        return np.square(samples[0] @ w - samples[1])[:, None]

    def jacobian(w, samples):
        return sign * (2.0 * (samples[0] @ w - samples[1])[:, None] * samples[0])[:, None]

    return stoic.FunctionInner(value, jacobian, (1, D), data=(X, y))


# --- above the start ---


@pytest.mark.parametrize(
    "method", ["rrosc-tracked", "mscg", "scsc", "clipped-sgd", stoic.MSCG(1e-3, 2), stoic.SCGD()], ids=str
)
def test_a_jacobian_of_the_wrong_sign_diverges_whatever_the_size_of_the_answer(method):
    problem = stoic.Problem(functions(sign=-1.0), stoic.Linear())
    result = stoic.minimize(problem, method, budget=4000, seed=0)
    assert result.status is Status.DIVERGED
    assert np.isfinite(result.w).all()
    assert "smaller step size" in result.message
    with pytest.raises(stoic.SolveFailed, match="ended above the start"):
        result.raise_for_status()


@pytest.mark.parametrize("method", ["auto", "sample-average"])
def test_a_jacobian_of_the_wrong_sign_is_no_success_where_no_step_lowers_the_objective(method):
    problem = stoic.Problem(functions(sign=-1.0), stoic.Linear())
    result = stoic.minimize(problem, method, budget=4000, seed=0)
    assert result.status is Status.STEPS_SPENT
    assert "check the signs of the derivatives" in result.message


def test_a_wrong_sign_is_seen_where_a_box_keeps_the_answer_small():
    problem = stoic.Problem(functions(sign=-1.0), stoic.Linear(), stoic.Box(-3.0, 3.0))
    result = stoic.minimize(problem, "mscg", budget=4000, seed=0)
    assert result.status is Status.DIVERGED
    assert np.abs(result.w).max() <= 3.0
    assert "check the signs of the derivatives" in result.message


@both_engines
def test_steps_that_are_too_long_are_a_divergence_before_anything_overflows(engine):
    solver = stoic.MSCG(step_size=5.0, batch_size=4, n_steps=12)
    result = stoic.minimize(PROBLEM, solver, budget=4000, seed=0, engine=engine)
    assert result.status is Status.DIVERGED
    assert 1e3 < np.linalg.norm(result.w) < 1e100
    assert "above that at the start" in result.message


@both_engines
@pytest.mark.parametrize("method", ["auto", "mscg", "rmscg", "scsc", "alexr", stoic.MSCG(0.01, 4)], ids=str)
@pytest.mark.parametrize("noise", [0.0, 1.0, 30.0])
@pytest.mark.sampled(2)
def test_a_start_at_the_optimum_of_a_noisy_problem_is_not_called_a_divergence(engine, method, noise):
    """False alarm: 1e-4 a solve, where the answer is as good as the start; it is a little worse."""
    y = noise * np.random.default_rng(1).standard_t(2.5, N)
    problem = stoic.Problem(stoic.GroupLoss(X, y, GROUPS), stoic.LogSumExp(1.0 + noise), stoic.L2(1e-3))
    w0 = stoic.minimize(problem, "newton", budget=10**6).w
    result = stoic.minimize(problem, method, budget=4000, w0=w0, seed=0, engine=engine)
    assert result.success, result.message
    assert "still moves" not in result.message


def test_a_look_back_draws_nothing():
    rng = np.random.default_rng(0)
    result = stoic.minimize(PROBLEM, stoic.MSCG(0.01, 4), budget=3200, seed=rng)
    other = np.random.default_rng(0)
    other.random((100, 2, 4, 4))
    assert result.samples == 3200
    assert rng.bit_generator.state == other.bit_generator.state


@both_engines
def test_the_engines_keep_the_same_draws(engine):
    from stoic.solve.run import Run

    solver = stoic.MSCG(0.01, 4)
    run = Run(PROBLEM, 3200, np.zeros(D), np.random.default_rng(0), {}, None, None)
    run.start(solver, solver, 0.05, engine)
    run.go(64, 2**62, math.inf, lambda *_: None)
    kept = np.concatenate([one.batch.rows for one in run.meter.kept], axis=1)
    rng = np.random.default_rng(0)
    expected = np.concatenate([INNER.draw(4, rng).rows for _ in range(16)], axis=1)
    np.testing.assert_array_equal(kept, expected)


# --- a plan that the budget cuts ---


CONSTANTS = Constants(C_f=1.0, L_f=0.0, C_g=5.0, L_g=2.0, sigma0=5.0, sigma1=5.0, mu=0.5)


@both_engines
def test_a_plan_of_theorem_3_that_the_budget_cuts_is_no_success(engine):
    plan = theorem_3(CONSTANTS, eps0=4.0, eps=0.1, delta=0.05)
    assert plan.samples > 10**7
    problem = stoic.Problem(stoic.GroupLoss(X, Y), stoic.Linear())
    result = stoic.minimize(problem, stoic.RROSC.from_plan(plan), budget=20_000, seed=0, engine=engine)
    assert result.status is Status.PLAN_CUT
    assert not result.success
    assert f"needs {plan.samples} samples" in result.message
    with pytest.raises(stoic.SolveFailed, match="before the plan did"):
        result.raise_for_status()


def test_a_plan_of_theorem_1_that_the_budget_cuts_is_no_success():
    plan = theorem_1(CONSTANTS, eps0=4.0, eps=0.1)
    problem = stoic.Problem(stoic.GroupLoss(X, Y), stoic.Linear())
    result = stoic.minimize(problem, stoic.RMSCG.from_plan(plan), budget=20_000, seed=0)
    assert result.status is Status.PLAN_CUT
    assert f"use budget >= {plan.samples}" in result.message


def test_a_plan_that_is_carried_out_is_a_success():
    solver = stoic.Restarted([stoic.MSCG(step_size=0.05, batch_size=2, n_steps=100) for _ in range(2)])
    result = stoic.minimize(PROBLEM, solver, budget=2 * 100 * 2 * 2 * 4, seed=0)
    assert (result.status, result.success, result.samples) == (Status.FINISHED, True, 3200)


@pytest.mark.parametrize(
    ("method", "status"),
    [
        (stoic.MSCG(step_size=0.01, batch_size=4), Status.BUDGET_SPENT),
        (stoic.MSCG(step_size=0.01, batch_size=4, n_steps=10**6), Status.PLAN_CUT),
        (stoic.MSCG(n_steps=10**6), Status.PLAN_CUT),
        (stoic.RMSCG(n_stages=3, n_steps=10**6), Status.PLAN_CUT),
        (stoic.SCSC(n_steps=10**6), Status.PLAN_CUT),
        (stoic.RCIVR(), Status.BUDGET_SPENT),
    ],
    ids=str,
)
def test_only_steps_that_were_asked_for_can_be_cut(method, status):
    result = stoic.minimize(PROBLEM, method, budget=4000, seed=0)
    assert result.status is status or (status is Status.BUDGET_SPENT and result.success)
    assert result.success == (status is not Status.PLAN_CUT)


def test_a_boosted_plan_knows_what_it_needs():
    stage = stoic.solvers.prox_boost.ProxStage(0.0, stoic.MSCG(step_size=0.01, batch_size=1, n_steps=1000), 3)
    result = stoic.minimize(PROBLEM, stoic.solvers.prox_boost.ProxBoosted((stage, stage)), budget=4000, seed=0)
    assert result.status is Status.PLAN_CUT
    assert f"needs {2 * 3 * 1000 * 2 * 4} samples" in result.message


# --- steps that end before the optimum ---


def test_newton_that_has_taken_its_steps_before_the_optimum_is_no_success():
    sharp = stoic.Problem(stoic.GroupLoss(1e3 * X, 1e4 * Y, GROUPS, loss="huber"), stoic.LogSumExp(1e-2))
    short = stoic.minimize(sharp, stoic.Newton(n_steps=3), budget=10**6)
    assert (short.status, short.success) == (Status.STEPS_SPENT, False)
    assert "more steps, n_steps" in short.message
    with pytest.raises(stoic.SolveFailed, match="before the optimum"):
        short.raise_for_status()
    whole = stoic.minimize(PROBLEM, stoic.Newton(), budget=10**6)
    assert (whole.status, whole.success) == (Status.FINISHED, True)


@pytest.mark.parametrize("seed", range(20))
def test_newton_that_has_finished_is_at_the_optimum(seed):
    """Whatever the units: losses of up to 1e9 times the temperature, where damped steps promise little."""
    rng = np.random.default_rng(seed)
    n, d, p = rng.integers([30, 1, 1], [400, 20, 6])
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2.0, 2.0, d)
    y = 10.0 ** rng.uniform(-3.0, 4.0) * (X @ rng.standard_normal(d) / math.sqrt(d) + rng.standard_t(1.5, n))
    inner = stoic.GroupLoss(X, y, np.arange(n) % p, loss="squared", intercept=True)
    problem = stoic.Problem(inner, stoic.LogSumExp(1.0))
    result = stoic.minimize(problem, "newton", budget=10**8)
    if result.success:
        assert stoic.certify(problem, result.w).estimate <= 1e-8 * problem.objective(np.zeros(d + 1))


# --- what is left ---


@both_engines
def test_a_far_start_says_how_much_of_the_way_is_left(engine):
    w0 = np.full(D, 1000.0 / math.sqrt(D))
    problem = stoic.Problem(stoic.GroupLoss(X, Y, GROUPS, loss="huber"), stoic.LogSumExp(1.0), stoic.L2(1e-3))
    solver = stoic.MSCG(
        step_size=0.1, batch_size=1
    )  # with steps from a pilot it would start at the pilot's optimum
    result = stoic.minimize(problem, solver, budget=10_000, w0=w0, seed=0, engine=engine)
    best = problem.objective(stoic.minimize(problem, "newton", budget=10**6).w)
    left = (problem.objective(result.w) - best) / (problem.objective(w0) - best)
    assert left > 0.5
    said = int(result.message.split("% of the way")[0].split()[-1]) / 100.0
    assert "The answer still moves" in result.message
    assert said == pytest.approx(left, abs=0.15)
    assert result.success  # every step was taken, and an estimate from few draws is no proof


@both_engines
def test_steps_that_are_too_short_say_how_much_of_the_way_is_left(engine):
    solver = stoic.MSCG(step_size=1e-4, batch_size=4)
    result = stoic.minimize(PROBLEM, solver, budget=8000, seed=0, engine=engine)
    assert result.status is Status.BUDGET_SPENT
    assert "The answer still moves" in result.message


@both_engines
@pytest.mark.parametrize("method", ["auto", "mscg", "scsc", "rcivr", "rmscg"])
def test_an_ordinary_solve_says_nothing_of_the_kind(engine, method):
    result = stoic.minimize(PROBLEM, method, budget=20_000, seed=0, engine=engine)
    assert "of the way" not in result.message
