"""Columns that are centered and scaled, and weights for each column: both engines take the same steps."""

import numpy as np
import pytest

import stoic
from stoic.engines.kernels.rows import (
    Dense,
    Standardized,
    dot,
    products,
    push,
    squared_norm,
    standardized_dot,
    standardized_push,
)
from stoic.engines.kernels.vectors import explicit
from stoic.pilot import Metric
from stoic.regularizers import Anchored, Weighted, prox_in_ball

N, D = 300, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * np.logspace(-1, 1, D) + 3.0
Y = X @ np.ones(D) + RNG.standard_t(2.5, N)
METRIC = Metric(1.0 / X.std(axis=0), X.mean(axis=0))
ROSC = stoic.TrackedROSC(
    step_size=0.02,
    batch_size=2,
    n_steps=400,
    radius=1.5,  # the ball is active
    reference_size=40,
    reference_mean=stoic.SmallestBall(0.3),
    levels=stoic.Calibrated(5.0, 5.0, 0.1, 1.0),
    weight=0.1,
)
SCSC = stoic.SCSC(stoic.PowerLaw(0.02, 0.5, 50.0), stoic.PowerLaw(0.5, 0.5, 50.0), 2, 400, "average")


@pytest.mark.parametrize(
    ("solver", "regularizer"),
    [(ROSC, stoic.Zero()), (ROSC, stoic.ElasticNet(0.3)), (SCSC, stoic.L1(0.05))],
    ids=["tracked", "tracked-net", "scsc-l1"],
)
def test_engines_agree_in_a_metric(solver, regularizer):
    inner = stoic.GroupLoss(X, Y, np.arange(N) % 3, intercept=True)
    problem = METRIC.problem(stoic.Problem(inner, stoic.LogSumExp(5.0), regularizer))
    plain, compiled = (
        stoic.minimize(problem, solver, budget=5000, seed=0, engine=engine) for engine in ("plain", "compiled")
    )
    np.testing.assert_allclose(compiled.w, plain.w, rtol=1e-9, atol=1e-12)
    assert (compiled.samples, compiled.evaluations) == (plain.samples, plain.evaluations)
    assert (compiled.truncated_y, compiled.truncated_z) == (plain.truncated_y, plain.truncated_z)


def test_standardized_rows_are_those_that_would_be_formed():
    formed = (X - METRIC.center) * METRIC.scale
    rows, dense = Standardized(X, METRIC.center, METRIC.scale), Dense(formed)
    u, Z, work = RNG.standard_normal(D), RNG.standard_normal((D, 3)), np.zeros(D)
    assert dot(rows, 7, u) == pytest.approx(dot(dense, 7, u), rel=1e-12)
    assert squared_norm(rows, 7, work) == pytest.approx(squared_norm(dense, 7, work), rel=1e-12)
    out, expected = np.empty(3), np.empty(3)
    products(rows, 7, Z, out)
    products(dense, 7, Z, expected)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    assert standardized_dot(X[7], METRIC.center, METRIC.scale, u) == pytest.approx(formed[7] @ u, rel=1e-12)
    once = u.copy()
    standardized_push(X[7], METRIC.center, METRIC.scale, 0.3, once)
    np.testing.assert_allclose(once, u + 0.3 * formed[7], rtol=1e-12)
    moved, other = u.copy(), u.copy()
    assert push(rows, 7, 0.3, moved) == pytest.approx(push(dense, 7, 0.3, other), rel=1e-12)
    np.testing.assert_allclose(moved, other, rtol=1e-12)


def form(v, center, penalty, anchor=None, weight=0.0):
    scalars = np.zeros(explicit.N_SCALARS)
    scalars[explicit.WEIGHT] = weight
    pulled_to = center if anchor is None else anchor
    return explicit.Explicit(
        v.copy(), center, pulled_to, np.zeros(D), penalty.l1, penalty.l2, np.zeros(0), scalars
    )


@pytest.mark.parametrize("radius", [0.5, 1.5, np.inf])
@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_a_step_ends_at_the_prox_in_the_ball(radius, weight):
    penalty = Weighted(np.array([0.0, 0.5, 1.0, 0.1, 0.0, 2.0]), np.array([1.0, 0.0, 2.0, 0.1, 0.0, 0.5]))
    v, center, anchor = (RNG.standard_normal(D) for _ in range(3))
    w = form(v, center, penalty, anchor, weight)
    explicit.settle_explicit(w, 0.4, 9.0, 9.0, 0.0, radius, False)
    regularizer = Anchored(penalty, anchor, weight)
    expected = prox_in_ball(regularizer, v, 0.4, center, radius)
    np.testing.assert_allclose(w.v, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(w.past, w.v)
    assert w.scalars[explicit.FAR] == pytest.approx(np.linalg.norm(expected - center), rel=1e-9)


def test_the_parts_of_a_step():
    penalty = Weighted(np.full(D, 0.3), np.full(D, 0.5))
    v, center = RNG.standard_normal(D), RNG.standard_normal(D)
    w = form(v, center, penalty)
    explicit.pull_to_anchor(w, 0.5)
    np.testing.assert_allclose(w.v, (v + 0.5 * center) / 1.5, rtol=1e-12)
    end = penalty.prox(center + 0.6 * (w.v - center), 0.6 * 0.2)
    assert explicit.explicit_end(w, 2, 0.2, 0.6) == pytest.approx(end[2], rel=1e-12)
    assert explicit.explicit_reach(w, 0.2, 0.0, 0.6) == pytest.approx(np.linalg.norm(end - center), rel=1e-9)
    assert explicit.largest_share(w, 0.2, 0.0, 1e9) == 1.0
    assert 0.0 < explicit.largest_share(w, 0.2, 0.0, 0.5 * np.linalg.norm(end - center)) < 1.0
    assert explicit.take_explicit(w, 0.2, 0.6) == pytest.approx(np.sum((end - center) ** 2), rel=1e-9)
    np.testing.assert_allclose(w.v, end, rtol=1e-12)
