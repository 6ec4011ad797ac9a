"""The diagonal metric: exact in its variables, learned where columns differ, left alone where they do not."""

import numpy as np
import pytest
from scipy import sparse

import stoic
from stoic.errors import IncompatibleParts
from stoic.pilot import Metric, draw_pilot, learned_metric
from stoic.regularizers import Simplex

N, D = 900, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X @ np.ones(D) + RNG.standard_normal(N)
SCALES = np.array([1e-3, 1.0, 10.0, 1e3])
METRIC = Metric(np.array([0.5, 2.0, 3.0, 0.1]))
PENALTIES = [stoic.Zero(), stoic.L1(0.3), stoic.L2(0.2), stoic.ElasticNet(0.4, 0.3), stoic.Box(-0.4, 0.8)]


def problem_of(X=X, regularizer=None, **options):
    return stoic.Problem(
        stoic.GroupLoss(X, Y, np.arange(N) % 3, **options), stoic.LogSumExp(2.0), regularizer or stoic.Zero()
    )


def learned(problem, size=100):
    return learned_metric(problem, draw_pilot(problem, np.random.default_rng(0), size).parts)


@pytest.mark.parametrize("regularizer", PENALTIES, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_problem_in_a_metric_is_the_problem(regularizer, intercept):
    problem = problem_of(regularizer=regularizer, intercept=intercept)
    metric = Metric(METRIC.scale, RNG.standard_normal(D) if intercept else None)
    inside, w = metric.problem(problem), RNG.uniform(-0.4, 0.4, D + intercept)
    v = metric.into(w)
    np.testing.assert_allclose(metric.out_of(v), w, rtol=1e-14)
    assert inside.objective(v) == pytest.approx(problem.objective(w), rel=1e-12)
    step = 1e-6 * RNG.standard_normal(v.size)
    change = inside.smooth(v + step) - inside.smooth(v - step)
    assert change == pytest.approx(2.0 * inside.gradient(v) @ step, rel=1e-4)


@pytest.mark.parametrize("regularizer", PENALTIES, ids=lambda part: type(part).__name__)
def test_its_prox_is_the_best_point_in_the_metric(regularizer):
    inside, w = METRIC.problem(problem_of(regularizer=regularizer)).regularizer, RNG.standard_normal(D)
    best = inside.prox(w, 0.3)

    def value(v):
        return inside.value(v) + np.sum((v - w) ** 2) / 0.6

    for _ in range(50):
        v = inside.prox(best + 1e-3 * RNG.standard_normal(D), 1e-9)
        assert value(best) <= value(v) + 1e-12


def test_a_part_of_the_users_own_is_solved_in_given_scales():
    inner = stoic.Moments(X[:, :2])
    problem = stoic.Problem(inner, stoic.MeanVariance(1.0), stoic.L2(0.1))
    metric = Metric(np.array([0.5, 20.0]))
    inside, w = metric.problem(problem), np.array([0.3, -2.0])
    assert inside.objective(metric.into(w)) == pytest.approx(problem.objective(w), rel=1e-12)


def test_what_cannot_be_scaled_is_refused():
    with pytest.raises(IncompatibleParts, match="use scale=None"):
        METRIC.problem(problem_of(regularizer=Simplex()))
    with pytest.raises(IncompatibleParts, match="scale has 4 entries for 2 variables"):
        METRIC.problem(stoic.Problem(stoic.GroupLoss(X[:, :2], Y), stoic.Linear()))


def test_columns_of_different_scales_are_made_alike():
    metric, _ = learned(problem_of(X * SCALES))
    np.testing.assert_allclose(metric.scale * SCALES, np.ones(D), rtol=0.3)


def test_columns_far_from_zero_are_centered_where_there_is_an_intercept():
    metric, _ = learned(problem_of(X + 20.0, intercept=True))
    np.testing.assert_allclose(metric.center, np.full(D, 20.0), rtol=0.05)
    assert learned(problem_of(X + 20.0))[0] is None


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (problem_of(), "alike"),
        (problem_of(X * SCALES, Simplex()), "as it is"),
        (problem_of(sparse.csr_array(X * SCALES)), "not dense"),
        (stoic.Problem(stoic.Moments(X * SCALES), stoic.MeanVariance(1.0)), "not dense"),
    ],
    ids=["alike", "simplex", "csr", "moments"],
)
def test_other_problems_are_left_alone(problem, reason):
    metric, why = learned(problem)
    assert metric is None
    assert reason in why


def test_a_rare_column_is_no_larger_than_its_entries_can_bear():
    rare = X.copy()
    rare[:, 0] = np.arange(N) % 50 == 0
    metric, _ = learned(problem_of(rare))
    assert metric.scale[0] <= 6.0
    empty = X * SCALES
    empty[:, 1] = 0.0
    metric, _ = learned(problem_of(empty))
    assert np.isfinite(metric.scale).all()
