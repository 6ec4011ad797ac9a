"""Kernels that draw some groups: running weights beside ∇f itself, steps that are taken back, and bounds."""

import numpy as np
import pytest

import stoic
from engines.runs import OUTERS, P, Run, assert_close, assert_same_run, make_problem, solved_alike
from stoic.engines.kernels.parts.running_weights import N_SCALARS, Terms, begin_terms, note_change, some_weights
from stoic.engines.kernels.steps import tracked_sox as kernels
from stoic.engines.kernels.steps.some_groups import bound_weights
from stoic.solvers import tracked_sox

SOME = np.array([2, 0, 2], dtype=np.int64)


def new_terms():
    return Terms(np.zeros(P), np.zeros(N_SCALARS), np.empty(P))


def weights_of(code, y, terms):
    q = np.empty(SOME.size)
    some_weights(code, y, SOME, terms, q)
    return q


@pytest.mark.parametrize("name", OUTERS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_running_weights_follow_the_gradient_while_y_changes(name, scale):
    outer, rng = OUTERS[name], np.random.default_rng(0)
    code, terms, y = outer.code(P), new_terms(), scale * rng.standard_normal(P)
    begin_terms(code, y, terms)
    for _ in range(300):
        i = rng.integers(P)
        y[i] += scale * rng.standard_normal()
        note_change(code, y, i, terms)
        np.testing.assert_allclose(weights_of(code, y, terms), outer.gradient(y)[SOME], rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("name", ["logsumexp", "prior", "scale"])
@pytest.mark.parametrize("path", [(900.0, 0.0), (0.0, 900.0), (0.0, np.inf, 1.0), (1.0, np.nan), (1e308, -1e308)])
def test_running_weights_stand_jumps_and_what_is_not_finite(name, path):
    outer = OUTERS[name]
    code, terms, y = outer.code(P), new_terms(), np.zeros(P)
    begin_terms(code, y, terms)
    with np.errstate(all="ignore"):
        for i in (2, 0, 1, 3):
            for value in path:
                y[i] = value
                note_change(code, y, i, terms)
                assert_close(weights_of(code, y, terms), outer.gradient(y)[SOME])


def test_a_fresh_value_is_the_mean_loss_of_its_rows():
    # Steps of one group, one row and no regularizer: y_1 − (1 − γ) y_0 is γ times the fresh value.
    problem = make_problem("dense", "huber")
    run = Run(problem, stoic.ALEXR(0.01, 2, 10, 0.25, 0.7, groups_per_step=1, importance=0.0))
    run.compiled(3)
    before, rng = run.state, np.random.default_rng()
    rng.bit_generator.state = run.rng.bit_generator.state
    group = int(rng.random(1)[0] * P)
    rows = problem.inner.draw(2, rng, np.array([group]))
    here, there = (problem.inner.value(w, rows)[0, 0] for w in (before.w, before.previous))
    run.compiled(1)
    assert run.state.y[group] == pytest.approx(0.75 * before.y[group] + 0.25 * (1.7 * here - 0.7 * there))


@pytest.mark.parametrize("kind", [stoic.ALEXR, stoic.SOX])
def test_a_step_too_large_for_the_kernel_leaves_y_as_it_was(kind):
    problem = make_problem("dense", "squared", "logsumexp")
    solver = kind(1e60, 2, 40, 0.5, groups_per_step=2)
    plain, compiled = Run(problem, solver).plain(40), Run(problem, solver).compiled(40)
    assert plain.chunk.ending is compiled.chunk.ending is stoic.Status.DIVERGED
    assert plain.chunk.n_steps == compiled.chunk.n_steps


@pytest.mark.parametrize("outer", ["logsumexp", "cvar", "weighted", "scale"])
@pytest.mark.parametrize("kind", [stoic.ALEXR, stoic.SOX])
def test_engines_may_change_half_way(outer, kind):
    problem = make_problem("csr-int32", "huber", outer, "l2", intercept=True)
    solver = kind(0.05, 2, 10**6, 0.3, groups_per_step=3)
    one = Run(problem, solver).plain(70).compiled(80).plain(3).compiled(200)
    other = Run(problem, solver).plain(353)
    assert_same_run(one, other)


def test_both_engines_cut_weights_that_have_outgrown_the_chances():
    rng = np.random.default_rng(4)
    X, groups = rng.standard_normal((800, 5)), np.arange(800) % 200
    y = X @ np.ones(5) + rng.standard_normal(800)
    problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(0.05))  # one group has all the weight
    for solver in (stoic.ALEXR(0.01, 1, 900), stoic.SOX(0.01, 2, 900, importance=0.2)):
        solved_alike(problem, solver)


def test_weights_are_cut_with_their_sign_and_nan_stays():
    q = np.array([1.0, -3.0, 0.1, np.nan])
    bound_weights(q, np.array([1.0, 1.0, 2.0, 1.0]), 0.5)
    np.testing.assert_array_equal(q, [0.5, -0.5, 0.2, np.nan])


def test_kernels_and_plain_steps_have_the_same_constants():
    assert (kernels.PACE, kernels.CUT) == (tracked_sox.PACE, tracked_sox.CUT)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("storage", ["dense", "csr-int32"])
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
def test_both_engines_truncate_the_same_rows(storage, regularizer, m):
    problem = make_problem(storage, "squared", "logsumexp", regularizer, intercept=True)
    wild = problem.inner.with_target(np.where(np.arange(len(problem.inner.y)) % 41 == 0, 1e4, problem.inner.y))
    solver = stoic.TrackedSOX(0.01, m, 700, stoic.PowerLaw(1.0, 1.0, 5.0), groups_per_step=3)
    result = solved_alike(problem.with_inner(wild), solver)
    assert min(result.truncated_y, result.truncated_z) > 0.005


def test_a_late_average_may_change_engines_within_a_block():
    problem = make_problem("dense", "huber", "cvar", "l2", intercept=True)
    solver = stoic.TrackedSOX(0.02, 2, 640, stoic.PowerLaw(1.0, 1.0, 5.0), groups_per_step=2)
    one = Run(problem, solver).plain(70).compiled(85).plain(3).compiled(200)
    assert_same_run(one, Run(problem, solver).plain(358))
