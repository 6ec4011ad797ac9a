"""The estimate from the curvature around w: exact on a parabola, and none where there is no parabola."""

import math

import numpy as np
import pytest

import stoic
from stoic.certificate.local import local_estimate
from stoic.pilot.fixed_sample import Sample

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3)) @ [[1.0, 0.8, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 2.0]]
Y = X @ [1.0, -2.0, 3.0] + RNG.standard_normal(40)


def sample_of(problem):
    return Sample(problem, problem.inner.everything(), problem.inner.n_samples)


def estimate(problem, w):
    return local_estimate(sample_of(problem), w, problem.gradient(w))


@pytest.mark.parametrize("w", [np.zeros(3), np.array([30.0, -2.0, 1.0])])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_on_a_parabola_it_is_the_gap(w, alpha):
    problem = stoic.Problem(stoic.GroupLoss(X, Y), stoic.Linear(), stoic.L2(alpha))
    best = np.linalg.solve(X.T @ X / 20.0 + alpha * np.eye(3), X.T @ Y / 20.0)
    gap = problem.objective(w) - problem.objective(best)
    assert estimate(problem, w) == pytest.approx(gap, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_features_is_no_matter(unit):
    problem = stoic.Problem(stoic.GroupLoss(X / unit, Y), stoic.Linear())
    one = stoic.Problem(stoic.GroupLoss(X, Y), stoic.Linear())
    w = np.array([30.0, -2.0, 1.0])
    assert estimate(problem, w * unit) == pytest.approx(estimate(one, w), rel=1e-6)


@pytest.mark.parametrize("penalty", [stoic.L1(0.1), stoic.ElasticNet(0.1, 0.5), stoic.Box(-1.0, 1.0)], ids=repr)
def test_there_is_none_where_r_is_not_smooth(penalty):
    assert math.isnan(estimate(stoic.Problem(stoic.GroupLoss(X, Y), stoic.Linear(), penalty), np.zeros(3)))


def test_an_intercept_without_a_penalty_does_not_make_r_smooth():
    inner = stoic.GroupLoss(X, Y, intercept=True)
    assert math.isnan(estimate(stoic.Problem(inner, stoic.Linear(), stoic.L1(0.1)), np.zeros(4)))


def test_there_is_none_where_the_curvature_is_zero_along_a_line():
    twice = np.hstack([X, X[:, :1]])
    assert math.isnan(estimate(stoic.Problem(stoic.GroupLoss(twice, Y), stoic.Linear()), np.zeros(4)))


def test_there_is_none_where_numbers_overflow():
    problem = stoic.Problem(stoic.GroupLoss(X, Y), stoic.Linear(), stoic.L2(1.0))
    assert math.isnan(local_estimate(sample_of(problem), np.ones(3), np.array([1.0, np.inf, 1.0])))
