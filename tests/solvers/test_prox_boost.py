"""proxBoost: trials around a center, a choice among their answers, and the stages that follow."""

import numpy as np
import pytest

import stoic
from catalog import CASES
from stoic.solvers.base import Info
from stoic.solvers.prox_boost import ProxBoosted, ProxStage

PROBLEM = CASES["logsumexp-l2"].problem
START = np.zeros(10)


class Told:
    """A solver that is told its answers: each trial takes one step, to the next vector of an iterator."""

    needs_pilot = False

    def __init__(self):
        self.regularizers = []

    def tuned(self, pilot):
        return self

    def check(self, problem):
        raise stoic.IncompatibleParts("told nothing")

    def init(self, problem, w0, answers):
        self.regularizers.append(problem.regularizer)
        return w0, False

    def step(self, problem, state, answers):
        self.regularizers.append(problem.regularizer)
        return (np.full(10, next(answers)), True), Info(watched=1)

    def finished(self, state):
        return state[1]

    def output(self, state):
        return state[0]


def outputs(solver, answers):
    """Return the first coordinate of the output, and whether the run has finished, after each step."""
    state, answers = solver.init(PROBLEM, START, iter(answers)), iter(answers)
    seen = []
    while not solver.finished(state):
        state, info = solver.step(PROBLEM, state, answers)
        seen.append((float(solver.output(state)[0]), info.stage))
    return seen


def test_of_five_answers_the_one_with_the_smallest_ball_that_holds_half_of_them_is_chosen():
    solver = ProxBoosted((ProxStage(0.0, Told(), 5),))
    assert outputs(solver, [100.0, 3.0, -80.0, 3.5, 2.9])[-1] == (3.0, 0)


def test_before_there_are_three_answers_the_answer_is_the_center_of_the_stage():
    solver = ProxBoosted((ProxStage(0.0, Told(), 4), ProxStage(1.0, Told(), 2), ProxStage(1.0, Told(), 1)))
    seen = outputs(solver, [7.0, 7.5, 7.6, 70.0, 1.0, 1.5, 4.0])
    # Two of four answers make a half: 7.5 and 7.6 are the nearest. With two answers every ball has radius 0.
    assert seen == [(0.0, 0), (0.0, 0), (7.5, 0), (7.5, 0), (7.5, 1), (1.0, 1), (4.0, 2)]


def test_each_stage_is_anchored_at_the_answer_chosen_in_the_one_before():
    told = Told()
    outputs(
        ProxBoosted((ProxStage(0.0, told, 1), ProxStage(2.0, told, 2), ProxStage(3.0, told, 1))), [5.0, 6, 7, 8]
    )
    starting, stepping = told.regularizers[::2], told.regularizers[1::2]
    for seen in (starting, stepping):
        assert seen[0] is PROBLEM.regularizer
        assert {one.regularizer for one in seen[1:]} == {PROBLEM.regularizer}
        assert [(float(one.center[0]), one.weight) for one in seen[1:]] == [(5.0, 2.0), (5.0, 2.0), (6.0, 3.0)]


def test_the_assumptions_of_the_solvers_of_all_stages_are_checked():
    fine = stoic.MSCG(step_size=0.1, batch_size=1)
    with pytest.raises(stoic.IncompatibleParts, match="told nothing"):
        ProxBoosted((ProxStage(0.0, fine, 1), ProxStage(0.0, Told(), 1))).check(PROBLEM)
    with pytest.raises(stoic.IncompatibleParts, match="told nothing"):
        stoic.ProxBoost(solver=Told()).check(PROBLEM)


def test_an_objective_that_is_not_known_to_be_strongly_convex_needs_a_modulus():
    flat = stoic.Problem(PROBLEM.inner, PROBLEM.outer, stoic.L1(0.1))
    with pytest.raises(stoic.IncompatibleParts, match="strongly convex"):
        stoic.ProxBoost().check(flat)
    stoic.ProxBoost(mu=0.1).check(flat)
    stoic.ProxBoost().check(PROBLEM)
