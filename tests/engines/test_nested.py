"""proxBoost: both engines give one answer, around every solver and with every regularizer."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import stoic
from engines.runs import MAKERS, Run, assert_same_run, boosted, make_problem, make_solver, solve, solved_alike
from stoic.checks import Count
from stoic.engines.support import missing
from stoic.solvers.composite import Composite, Running

every_storage = pytest.mark.parametrize("storage", ["dense", "csr-int32"])
with_and_without_intercept = pytest.mark.parametrize("intercept", [False, True])


@pytest.mark.usefixtures("only_kernels")
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["l2", "l1", "elastic-net"])
@pytest.mark.parametrize("solver", MAKERS)
@pytest.mark.sampled(9)
def test_prox_boost_agrees_with_the_plain_engine(solver, storage, intercept, regularizer):
    problem = make_problem(storage, "huber", "logsumexp", regularizer, intercept=intercept)
    result = solved_alike(problem, boosted(make_solver(solver, problem, 3, 60)), evaluate_every=400)
    assert {record["stage"] for record in result.history} == {0, 1, 2}


@pytest.mark.usefixtures("only_kernels")
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["zero", "l2", "l1", "elastic-net"])
@pytest.mark.parametrize("solver", ["restarted-rosc", "restarted-rosc-calibrated"])
@pytest.mark.sampled(3)
def test_a_restarted_rosc_has_its_ball_and_its_anchor_around_different_points(
    solver, storage, intercept, regularizer
):
    problem = make_problem(storage, "huber", "logsumexp", regularizer, intercept=intercept)
    result = solved_alike(problem, boosted(make_solver(solver, problem, 3, 60), (0.3, 2.0)))
    assert 0.05 < result.truncated_z < 0.95


@pytest.mark.usefixtures("only_kernels")
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["l2", "elastic-net"])
def test_a_strong_anchor_renews_the_scale_many_times(intercept, regularizer):
    problem = make_problem("csr-int32", "huber", "linear", regularizer, intercept=intercept)
    solved_alike(problem, boosted(make_solver("scsc", problem, 2, 150), (50.0, 500.0)))


@pytest.mark.usefixtures("only_kernels")
@every_storage
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
@pytest.mark.slow
def test_prox_boost_of_restarts_and_restarts_of_prox_boost(storage, regularizer):
    problem = make_problem(storage, "huber", regularizer=regularizer, intercept=True)
    names = ("mscg", "alexr", "civr", "rosc", "scgd")
    stages = stoic.Restarted([make_solver(name, problem, 3, 30) for name in names])
    nested = boosted(stages, (0.0, 1.0), 2)
    solved_alike(problem, nested)
    solved_alike(problem, stoic.Restarted([stages, nested, make_solver("mscg", problem, 5, 50)]))


@pytest.mark.usefixtures("only_kernels")
@pytest.mark.parametrize("storage", ["csr-int32", "wide"])
def test_the_trials_of_a_first_stage_of_rosc_start_at_the_anchor(storage):
    problem = make_problem(storage, "huber", regularizer="l2")
    first, then = make_solver("rosc-calibrated", problem, 3, 40), make_solver("mscg", problem, 3, 40)
    solved_alike(problem, boosted(stoic.Restarted([first, then]), (0.5, 1.0)))


@every_storage
@pytest.mark.parametrize("method", ["rmscg-robust", "prox-boost"])
@pytest.mark.parametrize("regularizer", ["l2", "elastic-net"])
@pytest.mark.slow
def test_methods_that_choose_their_settings_agree(method, storage, regularizer):
    problem = make_problem(storage, "huber", regularizer=regularizer)
    solved_alike(problem, method, budget=20_000)


@pytest.mark.parametrize("solver", ["rosc", "civr", "mscg", "scsc"])
@pytest.mark.parametrize("budget", [1003, 1404, 2222, 3001])
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
@pytest.mark.sampled(2)
def test_a_budget_that_ends_within_a_trial(solver, budget, regularizer):
    problem = make_problem(loss="huber", regularizer=regularizer)
    solved_alike(problem, boosted(make_solver(solver, problem, 3, 25)), budget=budget)


@pytest.mark.parametrize("solver", ["rosc", "mscg", "scsc", "restarted-rosc"])
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
def test_chunks_do_not_change_a_bit_of_prox_boost(solver, regularizer):
    problem = make_problem("csr-int32", "huber", regularizer=regularizer)
    settings = boosted(make_solver(solver, problem, 3, 60))
    once = solve(problem, settings, "compiled")
    for chunk_size in (1, 7, 64):
        again = solve(problem, settings, "compiled", chunk_size=chunk_size)
        np.testing.assert_array_equal(again.w, once.w)


@pytest.mark.parametrize("solver", ["rosc", "mscg", "scsc", "civr", "restarted-rosc"])
@pytest.mark.parametrize("regularizer", ["l2", "elastic-net"])
def test_a_run_of_prox_boost_may_change_its_engine(solver, regularizer):
    problem = make_problem("csr-int32", "huber", regularizer=regularizer, intercept=True)
    settings = boosted(make_solver(solver, problem, 3, 30))
    mixed, plain = Run(problem, settings), Run(problem, settings)
    for steps in (10, 25, 40, 1, 1, 50):
        mixed.compiled(steps).plain(steps)
    assert_same_run(mixed, plain.plain(254))


# --- what is missing ---


class MyMean(stoic.SmallestBall):
    """A robust mean of the user's own."""


def test_what_is_missing_is_named():
    problem = make_problem(regularizer="elastic-net")
    mscg, rosc = make_solver("mscg", problem, 3), make_solver("rosc", problem, 3)
    mine = stoic.MSCG(0.03, 17, 10, MyMean(0.7))

    def lacks(solver):
        return missing(solver, problem, problem.inner)

    assert lacks(boosted(mscg)) == lacks(boosted(rosc)) == []
    assert lacks(boosted(stoic.Restarted([mscg, rosc]))) == lacks(boosted(stoic.Restarted([rosc, mscg]))) == []
    assert lacks(boosted(boosted(mscg), [1.0])) == ["a proxBoost in proxBoost"]
    assert lacks(boosted(boosted(mscg), [0.0])) == []
    assert lacks(boosted(stoic.Restarted([mscg, mine]))) == [f"the mean {mine.mean!r} in MSCG"]


def test_a_prox_boost_in_prox_boost_runs_in_the_plain_engine():
    problem = make_problem(loss="huber", regularizer="l2")
    settings = boosted(boosted(make_solver("mscg", problem, 3, 10), (0.5,)), (1.0,))
    with pytest.raises(stoic.IncompatibleParts, match="a proxBoost in proxBoost"):
        solve(problem, settings, "compiled")
    np.testing.assert_array_equal(solve(problem, settings, "auto").w, solve(problem, settings, "plain").w)


class AlternatingState(NamedTuple):
    """How many turns are over, and the state of the one that runs."""

    stage: int
    inner: Any


@dataclass(frozen=True)
class Alternating(Composite):
    """A combinator of the user's own: two solvers take turns, each from the answer of the other."""

    first: Any
    second: Any
    n_turns: Count = 4

    @property
    def needs_pilot(self):
        return False

    def turn(self, k):
        return (self.first, self.second)[k % 2]

    def solvers(self):
        yield from ((self.first, False), (self.second, False))

    def running(self, problem, state):
        return Running(self.turn(state.stage), problem, state.inner)

    def started(self, problem, w0, rng, begin):
        return AlternatingState(0, begin(self.first, problem, w0, rng))

    def advanced(self, problem, state, rng, begin):
        k, answer = state.stage + 1, self.turn(state.stage).output(state.inner)
        return AlternatingState(k, begin(self.turn(k), problem, answer, rng))

    def tuned(self, pilot):
        return self

    def finished(self, state):
        return state.stage == self.n_turns - 1 and self.turn(state.stage).finished(state.inner)

    def output(self, state):
        return self.turn(state.stage).output(state.inner)


@pytest.mark.usefixtures("only_kernels")
@every_storage
def test_a_combinator_of_ones_own_is_compiled(storage):
    problem = make_problem(storage, "huber", "logsumexp", "l2", intercept=True)
    mine = Alternating(make_solver("mscg", problem, 3, 20), make_solver("rosc", problem, 3, 20))
    result = solved_alike(problem, mine, evaluate_every=200)
    assert {record["stage"] for record in result.history} == {0, 1, 2, 3}
    solved_alike(problem, boosted(mine))
