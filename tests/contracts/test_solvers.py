"""What every method promises, whatever its mathematics."""

import copy
import dataclasses
import functools
import re

import numpy as np
import pandas as pd
import pytest

import stoic
from catalog import CASES, DETERMINISTIC, METHODS, is_within_assumptions
from spies import Spy
from stoic.solvers.base import plan_cost
from stoic.solvers.newton_point import Point

BUDGET = 1500
ODD_BUDGETS = (1, 2, 23, 31, 64, 97, 241, 499, 1013)
RECORDED = {"samples", "evaluations", "seconds", "stage", "truncated_y", "truncated_z"}

every_method = pytest.mark.parametrize("method", METHODS)


def problem_for(method):
    """Return the catalog's ridge problem, with a linear f for the methods that need one."""
    case = CASES["logsumexp-l2"]
    if is_within_assumptions(method, case):
        return case.problem
    return stoic.Problem(case.problem.inner, stoic.Linear(), stoic.L2(0.1))


def spied(method, alarm=None):
    """Return the problem with a spy as its inner part, and the spy."""
    problem = problem_for(method)
    spy = Spy(problem.inner, alarm)
    return problem.with_inner(spy), spy


def solve(method, budget=BUDGET, seed=3, **options):
    return stoic.minimize(problem_for(method), method, budget=budget, seed=seed, **options)


@functools.cache
def plain(method, budget=BUDGET):
    """Return a solve without extras; several tests hold others against it."""
    return solve(method, budget)


@functools.cache
def observed(method):
    """Return a solve that is watched, and the points seen."""
    points = []
    return solve(method, observers={"norm": lambda w: points.append(w) or np.linalg.norm(w)}), points


def tuned(method):
    return plain(method).solver


def assert_same(left, right):
    """Compare states: nested tuples of arrays and numbers, bit for bit."""
    if isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, Point):  # what is known of F there
        assert left == right
    elif hasattr(left, "__dict__") or hasattr(left, "__slots__"):  # a batch
        assert type(left) is type(right)
        np.testing.assert_array_equal(getattr(left, "rows", None), getattr(right, "rows", None))
    else:
        np.testing.assert_array_equal(left, right, strict=isinstance(left, np.ndarray))


# --- randomness ---


@every_method
def test_the_same_seed_gives_the_same_bits(method):
    np.testing.assert_array_equal(solve(method).w, plain(method).w)


@every_method
def test_another_seed_gives_another_answer(method):
    assert np.array_equal(plain(method).w, solve(method, seed=4).w) == (method in DETERMINISTIC)


@every_method
@pytest.mark.parametrize(
    "options",
    [
        {"observers": {"objective": CASES["logsumexp-l2"].problem.objective}},
        {"callback": lambda record: None},
        {"verbose": True},
        {"evaluate_every": 1},
        {"evaluate_every": 10**9},
        {"chunk_size": 1},
        {"chunk_size": 7},
        {"max_seconds": 3600.0},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
@pytest.mark.sampled(4)
def test_watching_a_solve_does_not_change_its_bits(method, options):
    alone, watched = plain(method, 600), solve(method, budget=600, **options)
    np.testing.assert_array_equal(watched.w, alone.w)
    for count in ("samples", "evaluations", "n_steps", "status"):
        assert getattr(watched, count) == getattr(alone, count)


# --- purity ---


@every_method
def test_w0_and_the_data_stay_as_they_were(method):
    problem = problem_for(method)
    w0 = np.linspace(-1.0, 1.0, problem.dimension)
    kept = [w0, problem.inner.X, problem.inner.y, problem.inner.grouped_rows.order]
    before = [array.copy() for array in kept]
    stoic.minimize(problem, method, budget=BUDGET, w0=w0, seed=0)
    assert_same(tuple(kept), tuple(before))


@every_method
def test_the_answer_shares_no_memory_with_w0(method):
    problem = problem_for(method)
    w0 = np.zeros(problem.dimension)
    assert not np.shares_memory(stoic.minimize(problem, method, budget=BUDGET, w0=w0, seed=0).w, w0)


@every_method
def test_a_read_only_w0_is_taken(method):
    w0 = np.zeros(10)
    w0.flags.writeable = False
    result = solve(method, w0=w0)
    np.testing.assert_array_equal(result.w, plain(method).w)
    assert result.w.flags.writeable


@every_method
def test_steps_are_pure(method):
    # From one state and equal generators a step gives equal states, and leaves the one it came from alone;
    # stage ends are passed on the way.
    problem, solver = problem_for(method), tuned(method)
    state = solver.init(problem, np.zeros(problem.dimension), np.random.default_rng(0))
    steps = 0
    while not solver.finished(state) and steps < 200:
        kept = copy.deepcopy(state)
        once, info = solver.step(problem, state, np.random.default_rng(steps))
        again, same_info = solver.step(problem, state, np.random.default_rng(steps))
        assert_same((*once, *info), (*again, *same_info))
        assert_same(state, kept)
        state, steps = once, steps + 1
    assert steps > 20 or method in {*DETERMINISTIC, "sample-average"}  # whose draws double


@every_method
def test_settings_are_frozen_hashable_and_equal_to_their_copies(method):
    settings = stoic.METHODS[method]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(settings, [*(item.name for item in dataclasses.fields(settings)), "anything"][0], 1)
    assert len({settings, copy.copy(settings)}) == 1


# --- the budget ---


@every_method
@pytest.mark.parametrize("budget", ODD_BUDGETS)
@pytest.mark.sampled(3)
def test_a_budget_is_never_exceeded(method, budget):
    problem, spy = spied(method)
    try:
        result = stoic.minimize(problem, method, budget=budget, seed=0)
    except stoic.InvalidParameter:
        pass
    else:
        assert result.samples == spy.samples
        assert result.n_steps >= 1
    assert spy.samples <= budget


@every_method
def test_a_default_solve_spends_most_of_its_budget(method):
    assert plain(method).samples >= 0.8 * BUDGET or method in DETERMINISTIC  # these stop where they are done


def advised(method, budget):
    """Return the budget that the error message asks for, or None if the solve runs."""
    try:
        solve(method, budget=budget)
    except stoic.InvalidParameter as error:
        asked = re.search(rf"budget={budget} is below .* use budget >= (\d+)", str(error))
        return int(asked.group(1))
    return None


@every_method
def test_advice_on_the_budget_leads_to_a_solve_within_a_few_rounds(method):
    budget, rounds = 1, 0
    while (needed := advised(method, budget)) is not None:
        assert needed > budget
        budget, rounds = needed, rounds + 1
    assert 1 <= rounds <= 4


@every_method
def test_without_a_pilot_too_small_a_budget_is_refused_before_anything_is_drawn(method):
    problem, spy = spied(method)
    with pytest.raises(stoic.InvalidParameter, match=r"budget=1 is below the \d+ samples that \w+ draws"):
        stoic.minimize(problem, tuned(method), budget=1, seed=0)
    assert spy.samples == 0


# --- counting ---


@every_method
def test_samples_counted_are_samples_drawn(method):
    problem, spy = spied(method)
    result = stoic.minimize(problem, method, budget=BUDGET, seed=0)
    assert result.samples == spy.samples


@every_method
def test_a_plan_draws_what_it_is_said_to_need(method):
    problem = problem_for(method)
    needed = plan_cost(tuned(method), problem.inner)
    assert (needed is None) == (method in DETERMINISTIC)
    if needed is not None:
        result = stoic.minimize(problem, tuned(method), budget=needed, seed=0)
        assert (result.status, result.samples) == (stoic.Status.FINISHED, needed)
        cut = stoic.minimize(problem, tuned(method), budget=needed - 1, seed=0)
        assert cut.status is stoic.Status.PLAN_CUT
        assert f"use budget >= {needed}" in cut.message


@every_method
def test_evaluations_counted_are_distinct_pairs_of_a_batch_and_a_point(method):
    solver = tuned(method)
    problem, spy = spied(method)
    seen = []  # up to the last record: the look back after it is not counted
    result = stoic.minimize(
        problem, solver, budget=BUDGET, seed=0, callback=lambda _: seen.append(spy.evaluations)
    )
    assert result.evaluations == seen[-1]


# --- settings ---


@every_method
def test_the_solver_of_a_result_needs_no_pilot(method):
    solver = tuned(method)
    assert not solver.needs_pilot
    assert stoic.minimize(problem_for(method), solver, budget=BUDGET, seed=0).solver == solver


@every_method
def test_tuning_the_solver_of_a_result_changes_nothing(method, pilot):
    solver = tuned(method)
    assert solver.tuned(pilot.within(10**9)) == solver


def first_stage(solver):
    return solver.stages[0] if hasattr(solver, "stages") else solver


KEPT = [
    (stoic.MSCG, {"step_size": 0.123}),
    (stoic.MSCG, {"batch_size": 7}),
    (stoic.MSCG, {"n_steps": 9}),
    (stoic.MSCG, {"n_steps": 10**6}),
    (stoic.MSCG, {"mean": stoic.MedianOfMeans(0.3)}),
    (stoic.ROSC, {"radius": 0.7}),
    (stoic.ROSC, {"reference_size": 33}),
    (stoic.ROSC, {"reference_mean": stoic.SmallestBall(0.8)}),
    (stoic.ROSC, {"levels": stoic.Levels(1.0, 2.0, 3.0, 4.0)}),
    (stoic.ROSC, {"levels": stoic.Calibrated(1.0, 2.0, 0.5)}),
    (stoic.ROSC, {"n_steps": 10**6, "step_size": 0.01}),
    (stoic.RROSC, {"step_size": 0.01, "batch_size": 2, "n_steps": 11, "radius": 3.0}),
    (stoic.RROSC, {"levels": stoic.Levels(1.0, 2.0, 3.0, 4.0)}),
    (stoic.RMSCG, {"step_size": 0.01, "batch_size": 2, "n_steps": 11}),
    (stoic.RMSCG, {"mean": stoic.MedianOfMeans(0.9)}),
    (stoic.SCGD, {"steps": stoic.PowerLaw(0.01, 0.5), "weights": stoic.PowerLaw(0.3), "batch_size": 2}),
    (stoic.SCGD, {"answer": "average", "n_steps": 12}),
    (stoic.SCGD, {"n_steps": 10**6}),
    (stoic.SCSC, {"steps": stoic.PowerLaw(0.01, 0.5), "weights": stoic.PowerLaw(0.3), "answer": "last"}),
    (stoic.ASCPG, {"steps": stoic.PowerLaw(0.01, 0.5), "weights": stoic.PowerLaw(0.3), "answer": "last"}),
    (stoic.CIVR, {"step_size": 0.01, "batch_size": 3, "n_steps": 5, "anchor_size": 20}),
    (stoic.CIVR, {"anchor_size": stoic.EVERYTHING}),
    (stoic.RCIVR, {"step_size": 0.01}),
    (stoic.ClippedSGD, {"clip": 0.5, "batch_size": 2}),
    (stoic.ALEXR, {"weight": 0.4, "extrapolation": 0.2}),
    (stoic.ALEXR, {"groups_per_step": 3, "importance": 0.2}),
    (stoic.SOX, {"weight": 0.4, "groups_per_step": 2}),
    (stoic.TrackedSOX, {"weights": stoic.PowerLaw(0.4, 1.0), "groups_per_step": 2, "batch_size": 3}),
    (stoic.RSMD, {"step_size": 0.01, "batch_size": 2, "radius": 3.0, "factor": 0.5}),
]


@pytest.fixture(scope="module")
def pilot():
    from stoic.pilot import run_pilot

    problem = CASES["logsumexp-l2"].problem
    measured = run_pilot(problem, np.zeros(10), np.random.default_rng(0), size=50)
    return measured.within(5000)


@pytest.mark.parametrize(("kind", "settings"), KEPT, ids=lambda part: getattr(part, "__name__", None))
def test_settings_that_are_given_are_kept(kind, settings, pilot):
    stage = first_stage(kind(**settings).tuned(pilot))
    assert {name: getattr(stage, name) for name in settings} == settings


@pytest.mark.parametrize("kind", [stoic.RROSC, stoic.RMSCG, stoic.RCIVR, stoic.RSMD])
@pytest.mark.parametrize("n_stages", [1, 3])
def test_a_number_of_stages_that_is_given_is_kept(kind, n_stages, pilot):
    assert len(kind(n_stages=n_stages).tuned(pilot).stages) == n_stages


def test_prox_boost_keeps_its_trials_its_modulus_and_the_settings_of_its_solver(pilot):
    boost = stoic.ProxBoost(solver=stoic.MSCG(step_size=0.01), mu=0.3, n_trials=2)
    stages = boost.tuned(pilot).stages
    assert [stage.n_trials for stage in stages] == [2] * len(stages)
    assert [stage.weight for stage in stages[:3]] == [0.0, 0.3, 0.6]
    assert {stage.solver.step_size for stage in stages} == {0.01}


# --- the history ---


@every_method
def test_records_hold_counts_and_observations(method):
    result, _ = observed(method)
    names = RECORDED | {"norm"} | ({"duality_gap"} if method in DETERMINISTIC else set())
    assert {frozenset(record) for record in result.history} == {frozenset(names)}
    assert all(isinstance(value, int | float) for record in result.history for value in record.values())


@every_method
@pytest.mark.parametrize("every", [None, 1, 40, 10**6])
@pytest.mark.sampled(3)
def test_the_samples_of_records_increase_up_to_the_end(method, every):
    result = solve(method, evaluate_every=every)
    samples = [record["samples"] for record in result.history]
    assert samples == sorted(samples if method in DETERMINISTIC else set(samples))  # these draw once
    assert samples[-1] == result.samples
    assert result.history[-1]["evaluations"] == result.evaluations


@every_method
def test_the_last_record_is_of_the_answer(method):
    result, points = observed(method)
    np.testing.assert_array_equal(points[-1], result.w)


@every_method
def test_records_of_truncation_add_up_to_the_shares_of_the_result(method):
    result = solve(method, evaluate_every=1)  # a record a step
    steps = result.history[-result.n_steps :]
    doubles = method == "sample-average"  # what its steps draw
    weights = np.diff([record["samples"] for record in steps], prepend=0) if doubles else np.ones(len(steps))
    for name in ("truncated_y", "truncated_z"):
        mean = np.average([record[name] for record in steps], weights=weights)
        assert mean == pytest.approx(getattr(result, name), abs=1e-12)


@every_method
def test_a_history_turns_into_a_table(method):
    result, _ = observed(method)
    table = pd.DataFrame(result.history)
    assert len(table) == len(result.history)
    assert not table.isna().any().any()
    assert table["stage"].is_monotonic_increasing
    assert table["seconds"].is_monotonic_increasing


def test_every_registered_method_is_under_contract():
    assert set(METHODS) == set(stoic.METHODS)
