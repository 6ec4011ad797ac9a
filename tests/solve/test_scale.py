"""`minimize(scale=)`: solved in other variables, answered in those of the problem."""

import logging

import numpy as np
import pytest

import stoic

N, D = 2000, 4
RNG = np.random.default_rng(0)
SCALES = np.array([1e-3, 1.0, 10.0, 1e3])
RAW = RNG.standard_normal((N, D)) * SCALES
Y = RAW @ (1.0 / SCALES) + RNG.standard_normal(N)
PENALTIES = [stoic.Zero(), stoic.L2(1e-3), stoic.L1(1e-3)]


def problem_of(regularizer=None, X=RAW, **options):
    return stoic.Problem(
        stoic.GroupLoss(X, Y, np.arange(N) % 2, **options), stoic.LogSumExp(1.0), regularizer or stoic.Zero()
    )


def share_left(problem, result):
    best = problem.objective(stoic.minimize(problem, "newton", budget=10**8).w)
    start = problem.objective(np.zeros(problem.dimension))
    return (problem.objective(result.w) - best) / (start - best)


@pytest.mark.parametrize("regularizer", PENALTIES, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("method", ["rrosc-tracked", "scsc"])
def test_raw_columns_are_no_obstacle(regularizer, method):
    problem = problem_of(regularizer)
    assert share_left(problem, stoic.minimize(problem, method, 10_000, seed=0)) < 0.01
    assert share_left(problem, stoic.minimize(problem, method, 10_000, seed=0, scale=None)) > 0.2


def test_features_far_from_zero_are_no_obstacle_where_there_is_an_intercept():
    problem = problem_of(X=RAW / SCALES + 20.0, intercept=True)
    result = stoic.minimize(problem, "rrosc-tracked", 10_000, seed=0)
    assert result.solver.metric.center is not None
    assert share_left(problem, result) < 1e-3


def test_the_solver_of_a_result_shows_the_scales_and_solves_in_them_again():
    problem = problem_of()
    result = stoic.minimize(problem, "rrosc-tracked", 5000, seed=0)
    np.testing.assert_allclose(result.solver.metric.scale * SCALES, np.ones(D), rtol=0.5)
    assert len(result.solver.stages) > 1
    again = stoic.minimize(problem, result.solver, 5000, seed=1)
    assert share_left(problem, again) < 0.01


def test_given_scales_are_exact():
    """A step in v = w/s is a step in w with the squares of s in front of the gradient."""
    problem, s = problem_of(X=RAW / SCALES), np.array([0.5, 1.0, 2.0, 4.0])
    solver = stoic.MSCG(step_size=0.01, batch_size=3, n_steps=1)
    result = stoic.minimize(problem, solver, 1000, seed=0, scale=s)
    plain = stoic.minimize(problem, solver, 1000, seed=0, scale=None)
    np.testing.assert_allclose(result.w, s**2 * plain.w, rtol=1e-12)


def test_observers_see_the_variables_of_the_problem():
    seen = []
    result = stoic.minimize(
        problem_of(), "rrosc-tracked", 5000, seed=0, observers={"w": lambda w: seen.append(w.copy()) or 0.0}
    )
    np.testing.assert_array_equal(seen[-1], result.w)


def test_settings_in_units_of_w_are_taken_as_they_are(caplog):
    caplog.set_level(logging.INFO, "stoic")
    result = stoic.minimize(problem_of(), stoic.ClippedSGD(step_size=1e-8), 5000, seed=0)
    assert isinstance(result.solver, stoic.ClippedSGD)
    assert "settings were given in its units" in caplog.text
    stoic.minimize(problem_of(), "clipped-sgd", 5000, seed=0)
    assert "solved in scaled variables" in caplog.text


@pytest.mark.parametrize("scale", ["raw", -1.0, [1.0, 0.0], [1.0, np.inf], [[1.0]], [1.0, "a"]], ids=str)
def test_scales_that_are_none_are_refused(scale):
    with pytest.raises(stoic.InvalidParameter, match="scale="):
        stoic.minimize(problem_of(), "mscg", 1000, scale=scale)


def test_scales_of_another_number_of_columns_are_refused():
    with pytest.raises(stoic.IncompatibleParts, match="scale has 2 entries for 4 variables"):
        stoic.minimize(problem_of(), "mscg", 1000, scale=[1.0, 2.0])
