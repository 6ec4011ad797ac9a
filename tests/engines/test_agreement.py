"""Both engines give one answer, for all pairs of solvers, storage and parts."""

import itertools

import numpy as np
import pytest

import stoic
from engines.runs import (
    COMPILED_OFTEN,
    FACTORS,
    MAKERS,
    SOLVERS,
    STORAGE,
    build,
    covering,
    make_problem,
    make_solver,
    name_of,
    solve,
    solved_alike,
)

OFTEN = {"storage": COMPILED_OFTEN, "solver": (*MAKERS, "restarted-rosc", "restarted-scsc")}
PAIRS = covering(FACTORS | OFTEN)


@pytest.mark.parametrize("choice", PAIRS, ids=name_of)
def test_both_engines_agree_on_a_pair_of_options(choice):
    solved_alike(*build(choice))


def test_the_choices_hold_every_pair():
    held = {two for choice in PAIRS for two in itertools.permutations(choice.items(), 2)}
    for a, b in itertools.combinations(FACTORS, 2):
        for x, y in itertools.product(FACTORS[a], FACTORS[b]):
            rare = {x, y} & (set(STORAGE) | set(SOLVERS)).difference(*OFTEN.values())
            assert rare or ((a, x), (b, y)) in held


@pytest.mark.slow
def test_most_rosc_runs_truncate_y_and_z_in_some_steps_and_keep_them_in_others():
    shares = []
    for choice in PAIRS[::2]:
        if "rosc" in choice["solver"]:
            result = solve(*build(choice), "plain")
            shares.append((result.truncated_y, result.truncated_z))
    both = [0.05 <= y <= 0.5 and 0.05 <= z <= 0.5 for y, z in shares]
    assert sum(both) >= len(both) / 2, shares


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name.startswith("restarted-")])
def test_the_stages_of_a_restarted_run_change(solver):
    problem = make_problem()
    result = solve(problem, make_solver(solver, problem, 1), "compiled", evaluate_every=100)
    assert {record["stage"] for record in result.history} == {0, 1, 2}


@pytest.mark.parametrize("solver", MAKERS)
def test_both_engines_agree_when_the_scale_is_renewed_many_times(solver):
    problem = make_problem(regularizer="l2", loss="huber", intercept=True)
    strong = stoic.Problem(problem.inner, problem.outer, stoic.L2(20.0))
    settings = make_solver(solver, strong, 2)
    rates = [settings.steps.at(t) if hasattr(settings, "steps") else settings.step_size for t in range(60)]
    assert np.prod([1.0 + 20.0 * rate for rate in rates]) > 1e4  # what the scale is divided by in 60 steps
    solved_alike(strong, settings)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("w0", [-2.0, 40.0])
@pytest.mark.sampled(2)
def test_both_engines_agree_away_from_zero(solver, w0):
    problem = make_problem("csr-int32", "huber", "cvar", "l2", intercept=True)
    solved_alike(problem, make_solver(solver, problem, 3), w0=[w0] * problem.dimension)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("budget", [1003, 2222])
def test_both_engines_agree_when_the_budget_ends_the_run(solver, budget):
    problem = make_problem(loss="huber")
    assert solved_alike(problem, make_solver(solver, problem, 3, 4000), budget=budget).samples <= budget


@pytest.mark.parametrize("solver", SOLVERS)
def test_both_engines_agree_on_a_generator_that_goes_on(solver):
    problem, left, right = make_problem(), np.random.default_rng(1), np.random.default_rng(1)
    solve(problem, make_solver(solver, problem, 1), "plain", seed=left)
    solve(problem, make_solver(solver, problem, 1), "compiled", seed=right)
    assert left.bit_generator.state == right.bit_generator.state


@pytest.mark.parametrize(
    "storage", ["csr-int64-float32", pytest.param("fortran-float32", marks=pytest.mark.every)]
)  # each compiles anew
def test_both_engines_agree_on_other_storage(storage):
    problem = make_problem(storage, "logistic", "cvar", "l2", intercept=True)
    solved_alike(problem, make_solver("mscg", problem, 3))


@pytest.mark.every
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("solver", SOLVERS)
def test_both_engines_agree_on_every_combination(solver, storage):
    names = [name for name in FACTORS if name not in {"solver", "storage"}]
    for values in itertools.product(*(FACTORS[name] for name in names)):
        choice = {"solver": solver, "storage": storage, **dict(zip(names, values, strict=True))}
        try:
            solved_alike(*build(choice, n_steps=80))
        except AssertionError as error:
            raise AssertionError(name_of(choice)) from error
