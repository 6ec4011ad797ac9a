"""`Restarted`: stages one after another, each from the answer of the one before."""

import numpy as np
import pytest

import stoic
from catalog import CASES

PROBLEM = CASES["logsumexp-l2"].problem


def stage(n_steps=10, step_size=0.01):
    return stoic.MSCG(step_size=step_size, batch_size=1, n_steps=n_steps)


def rosc(n_steps=10):
    return stoic.ROSC(
        step_size=0.01,
        batch_size=1,
        n_steps=n_steps,
        radius=0.5,
        reference_size=8,
        reference_mean=stoic.SmallestBall(0.7),
        levels=stoic.Calibrated(5.0, 5.0),
    )


SOLVERS = [
    stage(),
    rosc(),
    stoic.CIVR(step_size=0.01, batch_size=1, n_steps=10, anchor_size=5),
    stoic.SCSC(steps=stoic.PowerLaw(0.01), weights=stoic.PowerLaw(0.5), batch_size=1, n_steps=10, answer="last"),
    stoic.Restarted([stage(3), stage(4)]),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_one_stage_is_that_stage_bit_for_bit(solver):
    alone = stoic.minimize(PROBLEM, solver, budget=1000, seed=0)
    restarted = stoic.minimize(PROBLEM, stoic.Restarted([solver]), budget=1000, seed=0)
    np.testing.assert_array_equal(restarted.w, alone.w)
    assert (restarted.samples, restarted.evaluations, restarted.status) == (
        alone.samples,
        alone.evaluations,
        alone.status,
    )


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_two_stages_are_two_solves_in_a_row(solver):
    rng = np.random.default_rng(0)
    w = stoic.minimize(PROBLEM, solver, budget=1000, seed=rng).w
    w = stoic.minimize(PROBLEM, solver, budget=1000, seed=rng, w0=w).w
    both = stoic.minimize(PROBLEM, stoic.Restarted([solver, solver]), budget=1000, seed=0)
    np.testing.assert_array_equal(both.w, w)


def test_stages_of_different_kinds_may_follow_each_other():
    result = stoic.minimize(PROBLEM, stoic.Restarted(SOLVERS), budget=5000, seed=0)
    assert result.status is stoic.Status.FINISHED
    assert result.n_steps == 47


def test_records_say_which_stage_they_are_of():
    result = stoic.minimize(PROBLEM, stoic.Restarted([stage(2), stage(3)]), budget=500, seed=0, evaluate_every=1)
    assert [record["stage"] for record in result.history] == [0, 0, 1, 1, 1]


def test_a_run_needs_the_steps_of_all_stages_to_finish():
    solver = stoic.Restarted([stage(2), stage(3)])
    rng, finished = np.random.default_rng(0), []
    state = solver.init(PROBLEM, np.zeros(10), rng)
    for _ in range(5):
        finished.append(solver.finished(state))
        state, _ = solver.step(PROBLEM, state, rng)
    assert [*finished, solver.finished(state)] == [False] * 5 + [True]


def test_open_stages_are_tuned_with_an_equal_share_of_the_budget():
    solver = stoic.Restarted([stoic.MSCG(), stoic.MSCG()])
    assert solver.needs_pilot
    result = stoic.minimize(PROBLEM, solver, budget=4000, seed=0)
    first, second = result.solver.stages
    assert first == second
    assert result.status is stoic.Status.FINISHED
    assert result.samples > 3500


def test_a_list_of_stages_becomes_a_tuple_and_stays_as_it_was():
    stages = [stage(), stage()]
    solver = stoic.Restarted(stages)
    stages.clear()
    assert len(solver.stages) == 2


def test_no_stages_are_refused():
    with pytest.raises(stoic.InvalidParameter, match="stages is empty"):
        stoic.Restarted([])


def test_the_assumptions_of_every_stage_are_checked():
    few = stoic.MSCG(step_size=0.01, batch_size=2, n_steps=3, mean=stoic.SmallestBall(0.1))
    with pytest.raises(stoic.InvalidParameter, match="batch_size=2 is below the 42 blocks"):
        stoic.minimize(PROBLEM, stoic.Restarted([stage(), few]), budget=1000)


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_in_the_first_tenth_of_a_stage_the_answer_is_that_of_the_stage_before(engine):
    """Records at every step: the second stage has 40, of which the first three leave the answer as it was."""
    seen = []
    solver = stoic.Restarted([stage(10), stage(40, step_size=0.02)])
    options = {
        "seed": 0,
        "engine": engine,
        "evaluate_every": 1,
        "observers": {"w": lambda w: seen.append(w) or 0.0},
    }
    stoic.minimize(PROBLEM, solver, budget=1000, **options)
    assert len(seen) == 50
    for w in seen[10:13]:
        np.testing.assert_array_equal(w, seen[9])
    assert all((w != seen[9]).any() for w in [seen[8], *seen[13:]])


# --- answers averaged over stages ---


def test_with_a_window_the_answer_is_that_of_the_last_stages_by_their_samples():
    stages, rng, answers = [stage(4), stage(8), stage(16)], np.random.default_rng(0), []
    w = None
    for one in stages:
        w = stoic.minimize(PROBLEM, one, budget=1000, seed=rng, w0=w).w
        answers.append(w)
    result = stoic.minimize(PROBLEM, stoic.Restarted(stages, window=0.8), budget=1000, seed=0)
    np.testing.assert_allclose(result.w, (8.0 * answers[1] + 16.0 * answers[2]) / 24.0, rtol=1e-12)
    last = stoic.minimize(PROBLEM, stoic.Restarted(stages, window=0.5), budget=1000, seed=0)
    np.testing.assert_allclose(last.w, answers[2], rtol=1e-12)


def test_with_a_window_the_answer_of_a_stage_that_has_just_begun_counts_little():
    stages, cost = [stage(8), stage(16)], stage(1).planned_samples(PROBLEM.inner)
    whole = stoic.minimize(PROBLEM, stages[0], budget=1000, seed=0).w
    cut = stoic.minimize(PROBLEM, stoic.Restarted(stages, window=1.0), budget=9 * cost, seed=0)
    assert cut.n_steps == 9
    assert np.linalg.norm(cut.w - whole) < 0.2 * np.linalg.norm(whole)


@pytest.mark.parametrize("window", [-0.1, 1.5, np.nan])
def test_a_window_is_a_share(window):
    with pytest.raises(stoic.InvalidParameter, match="window"):
        stoic.Restarted([stage()], window=window)
