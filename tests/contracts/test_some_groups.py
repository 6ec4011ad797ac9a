"""What methods that draw some groups a step promise beyond all others: counts, budgets, and groups left alone."""

import numpy as np
import pytest

import stoic
from catalog import CASES
from spies import Spy
from stoic.solvers.base import plan_cost
from stoic.solvers.group_sampling import (
    bounded,
    chances_from,
    choose,
    default_groups,
    is_refresh,
    shares,
    until_refresh,
)

P, D = 90, 4
RNG = np.random.default_rng(3)
X = RNG.standard_normal((4 * P, D))
GROUPS = np.arange(4 * P) % P
Y = (X * (1.0 + 0.3 * RNG.standard_normal((P, D)))[GROUPS]).sum(axis=1) + RNG.standard_normal(4 * P)
PROBLEM = stoic.Problem(stoic.GroupLoss(X, Y, GROUPS), stoic.LogSumExp(4.0), stoic.L2(0.01))
SETTINGS = {"step_size": 0.03, "batch_size": 2, "groups_per_step": 7}
SOLVERS = {
    "alexr": stoic.ALEXR(**SETTINGS),
    "sox": stoic.SOX(**SETTINGS),
    "sox-tracked": stoic.TrackedSOX(**SETTINGS, weights=stoic.PowerLaw(1.0, 1.0, 50.0), n_steps=10**6),
    "alexr-linear": stoic.ALEXR(**SETTINGS, importance=1.0),
}

every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
both_engines = pytest.mark.parametrize("engine", ["plain", "compiled"])


def planned(solver, n_steps):
    return type(solver)(**{**vars(solver), "n_steps": n_steps})


@every_solver
def test_samples_and_evaluations_are_those_of_the_rows_drawn(solver):
    spy = Spy(PROBLEM.inner)
    seen = []
    result = stoic.minimize(
        PROBLEM.with_inner(spy), solver, budget=5000, seed=0, callback=lambda _: seen.append(spy.evaluations)
    )
    assert (result.samples, result.evaluations) == (spy.samples, seen[-1])


@every_solver
def test_kernels_count_as_the_plain_engine_does(solver):
    plain, compiled = (
        stoic.minimize(PROBLEM, solver, budget=5000, seed=0, engine=engine) for engine in ("plain", "compiled")
    )
    assert (compiled.samples, compiled.evaluations) == (plain.samples, plain.evaluations)
    np.testing.assert_allclose(compiled.w, plain.w, rtol=0.0, atol=1e-9)


@every_solver
@both_engines
@pytest.mark.parametrize("budget", [208, 209, 500, 1013])
def test_a_budget_is_never_exceeded(solver, engine, budget):
    result = stoic.minimize(PROBLEM, solver, budget=budget, seed=0, engine=engine)
    assert budget - 28 < result.samples <= budget  # a step draws 28


@every_solver
def test_a_plan_draws_what_it_is_said_to_need(solver):
    solver = planned(solver, 50)
    needed = plan_cost(solver, PROBLEM.inner)
    assert needed == 2 * P + 50 * solver.batches_per_step * 7 * 2
    result = stoic.minimize(PROBLEM, solver, budget=needed, seed=0)
    assert (result.status, result.samples) == (stoic.Status.FINISHED, needed)


@every_solver
def test_a_step_moves_the_entries_of_the_groups_it_draws_and_no_others(solver):
    state = solver.init(PROBLEM, np.zeros(D), np.random.default_rng(0))
    for seed in range(20):
        before = state.y.copy()
        state, _ = solver.step(PROBLEM, state, np.random.default_rng(seed))
        drawn = choose(state.chances, np.random.default_rng(seed).random(7))
        assert set(np.flatnonzero(state.y != before)) == set(drawn.tolist())


def test_a_step_is_that_of_the_definition():
    solver = stoic.ALEXR(**SETTINGS, weight=0.3, extrapolation=0.7, importance=0.0)
    inner, w, previous = PROBLEM.inner, np.full(D, 0.5), np.full(D, 0.4)
    state = solver.init(PROBLEM, w, np.random.default_rng(0))._replace(t=5, previous=previous)
    rng = np.random.default_rng(1)
    groups = np.floor((np.arange(7) + rng.random(7)) * P / 7).astype(int)
    first, second = (inner.draw(2, rng, groups) for _ in range(2))
    here, there = inner.value(w, first)[0], inner.value(previous, first)[0]
    y = state.y.copy()
    y[groups] = 0.7 * y[groups] + 0.3 * (here + 0.7 * (here - there))
    q = PROBLEM.outer.gradient(y)[groups] * P / 7
    v = inner.jacobian(w, second)[0].T @ q
    after, _ = solver.step(PROBLEM, state, np.random.default_rng(1))
    assert len(set(groups)) == 7
    np.testing.assert_allclose(after.y, y, rtol=1e-13)
    np.testing.assert_allclose(after.w, PROBLEM.regularizer.prox(w - 0.03 * v, 0.03), rtol=1e-12)


@both_engines
@every_solver
def test_chunks_and_records_do_not_change_a_bit(solver, engine):
    solver = planned(solver, 400)
    alone, watched = (
        stoic.minimize(PROBLEM, solver, budget=6000, seed=0, engine=engine, evaluate_every=every, observers=seen)
        for every, seen in ((10**6, None), (37, {"norm": np.linalg.norm}))
    )
    np.testing.assert_array_equal(watched.w, alone.w)


@every_solver
def test_many_groups_are_fitted(solver):
    start, best = (PROBLEM.objective(w) for w in (np.zeros(D), stoic.minimize(PROBLEM, "newton", budget=10**6).w))
    result = stoic.minimize(PROBLEM, solver, budget=60_000, seed=0)
    assert PROBLEM.objective(result.w) - best < 0.02 * (start - best)


# --- which groups ---


def test_weighted_sums_over_chosen_groups_are_unbiased():
    # Stratified choices are enumerated: 2000 equally spaced numbers stand for each uniform one.
    q = np.array([5.0, 0.0, -1.0, 2.0, 0.5])
    h = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    chances = chances_from(q, 0.7)
    grid = (np.arange(2000) + 0.5) / 2000
    groups = choose(chances, np.repeat(grid[:, None], 3, axis=1))
    mean = (shares(chances, groups) * (q * h)[groups]).sum(axis=1).mean()
    assert mean == pytest.approx(q @ h, rel=1e-2)


@pytest.mark.parametrize("importance", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("q", [[0.0, 0.0, 0.0], [np.nan, 1.0, 1.0], [np.inf, 1.0, 1.0]])
def test_weights_of_which_nothing_is_known_give_equal_chances(importance, q):
    np.testing.assert_allclose(chances_from(np.array(q), importance).each, 1 / 3)


def test_a_group_without_weight_is_never_chosen_where_only_weights_count():
    chances = chances_from(np.array([0.0, 1.0, 0.0, 3.0, 0.0]), 1.0)
    for uniform in (0.0, 0.25, 0.5, 1.0 - 2.0**-53):
        assert set(choose(chances, np.full(4, uniform)).tolist()) <= {1, 3}


def test_current_chances_cut_no_weight_and_old_ones_do():
    q = np.array([0.97, 0.01, 0.01, 0.01])
    chances = chances_from(q, 0.5)
    weights = q * shares(chances, np.arange(4))
    np.testing.assert_array_equal(bounded(weights, chances), weights)
    old = chances_from(q[::-1], 0.5)
    grown = q * shares(old, np.arange(4))
    assert bounded(grown, old)[0] < grown[0]
    np.testing.assert_array_equal(bounded(-grown, old), -bounded(grown, old))


@pytest.mark.parametrize("period", [1, 64, 100])
def test_chances_last_until_they_are_renewed(period):
    renewed = [t for t in range(300) if is_refresh(t, period)]
    for t in range(200):
        assert t + until_refresh(t, period) == min(r for r in renewed if r > t)


def test_all_of_few_groups_are_drawn_and_few_of_many():
    assert [default_groups(p) for p in (1, 64, 65, 20_000)] == [1, 64, 32, 32]


def test_a_part_that_draws_all_its_outputs_together_is_refused_or_drawn_as_a_whole():
    problem = CASES["own-functions-l1"].problem
    with pytest.raises(stoic.IncompatibleParts, match=r"groups_per_step=1 needs an inner part that draws some"):
        stoic.minimize(problem, stoic.SOX(groups_per_step=1), budget=2000)
    assert stoic.minimize(problem, "sox", budget=2000, seed=0).success
