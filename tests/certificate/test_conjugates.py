"""Convex conjugates of losses and regularizers, beside suprema over grids."""

import math

import numpy as np
import pytest

import stoic
from stoic.regularizers import Anchored, LeavingLast

LOSSES = [stoic.Squared(), stoic.Huber(0.7), stoic.Absolute(0.4), stoic.Quantile(0.8, 0.5), stoic.Logistic()]
GRID = np.linspace(-60.0, 60.0, 240_001)
NET = stoic.ElasticNet(0.8, 0.25)
ALONE = [  # regularizers of one variable, with slopes v at which r*(−v) is finite
    (stoic.Zero(), [0.0]),
    (stoic.L1(0.5), [-0.5, -0.2, 0.0, 0.5]),
    (stoic.L2(0.3), [-2.0, 0.0, 1.0]),
    (NET, [-3.0, -0.1, 0.0, 2.0]),
    (stoic.Box(-1.0, 2.0), [-1.0, 0.0, 3.0]),
    (stoic.Box(-1.0, np.inf), [0.0, 3.0]),
    (stoic.Box(-np.inf, 2.0), [-1.0, 0.0]),
    (Anchored(NET, np.array([1.5]), 0.7), [-3.0, 0.0, 2.0]),
    (Anchored(stoic.Box(-1.0, 2.0), np.array([4.0]), 0.7), [-3.0, 0.0, 2.0]),
    (Anchored(stoic.L1(0.5), np.array([1.0]), 0.0), [-0.5, 0.3]),
]


def conjugate_on_grid(loss, slope, target):
    return float((slope * GRID - loss.value(GRID, target)).max())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("target", [-1.0, 1.0])
def test_the_gap_of_a_loss_is_its_value_plus_its_conjugate_less_the_product(loss, target):
    low, high = (float(end[0]) for end in loss.slope_range(np.array([target])))
    for share in (0.0, 0.1, 0.5, 0.98):
        slope = max(low, -3.0) * (1.0 - share) + min(high, 3.0) * share
        for prediction in (-4.0, -0.9, 0.2, 1.0, 5.0):
            expected = float(loss.value(prediction, target)) + conjugate_on_grid(loss, slope, target)
            gap = float(loss.conjugate_gap(np.array(slope), np.array(prediction), np.array(target)))
            assert gap == pytest.approx(expected - slope * prediction, abs=2e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("target", [-1.0, 1.0])
def test_outside_its_range_a_slope_has_no_conjugate(loss, target):
    for end, away in zip(loss.slope_range(np.array([target])), (-0.1, 0.1), strict=True):
        if math.isfinite(end[0]):
            near, far = (
                float(((end[0] + away) * GRID - loss.value(GRID, target))[np.abs(GRID) <= reach].max())
                for reach in (30.0, 60.0)
            )
            assert far > near + 2.0  # it grows with the reach
            assert conjugate_on_grid(loss, end[0] - 0.01 * away, target) < 5.0


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_gap_vanishes_at_the_derivative_and_is_accurate_near_it(loss):
    predictions, target = np.array([-3.0, -0.3, 0.1, 2.0]), np.ones(4)
    slopes = loss.derivative(predictions, target)
    np.testing.assert_allclose(loss.conjugate_gap(slopes, predictions, target), 0.0, atol=1e-15)
    near = 0.999999 * slopes
    expected = [
        loss.value(t, 1.0) + _newton_conjugate(loss, s) - s * t for s, t in zip(near, predictions, strict=True)
    ]
    np.testing.assert_allclose(loss.conjugate_gap(near, predictions, target), expected, atol=1e-13)


def _newton_conjugate(loss, slope):
    """Return ℓ*(θ, 1) by bisection for the prediction at which θ is the derivative."""
    low, high = -100.0, 100.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loss.derivative(middle, 1.0) < slope else (low, middle)
    return slope * low - float(loss.value(low, 1.0))


@pytest.mark.parametrize(("regularizer", "slopes"), ALONE, ids=lambda one: str(one)[:30])
def test_the_gap_of_a_regularizer_is_its_value_plus_its_conjugate_plus_the_product(regularizer, slopes):
    values = np.array([regularizer.value(np.array([u])) for u in GRID[::200]])
    for v in slopes:
        conjugate = float((-v * GRID[::200] - values).max())
        assert regularizer.feasible(np.array([v]))[0] == v
        for w in (-1.0, 0.0, 0.5, 2.0):
            point = np.array([w])
            gap = regularizer.conjugate_gap(point, np.array([v]))
            assert gap == pytest.approx(regularizer.value(point) + conjugate + v * w, abs=1e-2)
            assert gap >= 0.0


@pytest.mark.parametrize(
    ("regularizer", "v", "feasible"),
    [
        (stoic.Zero(), 0.3, 0.0),
        (stoic.L1(0.5), 0.7, 0.5),
        (stoic.L1(0.5), -0.7, -0.5),
        (stoic.Box(-1.0, np.inf), -0.2, 0.0),
        (stoic.Box(-np.inf, 2.0), 0.2, 0.0),
        (Anchored(stoic.L1(0.5), np.array([1.0]), 0.0), 0.8, 0.5),
    ],
)
def test_where_a_conjugate_is_infinite_the_nearest_slope_is_given(regularizer, v, feasible):
    assert regularizer.conjugate_gap(np.array([0.5]), np.array([v])) == math.inf
    assert regularizer.feasible(np.array([v]))[0] == feasible


def test_the_gap_on_a_simplex_is_that_of_frank_and_wolfe():
    w, v = np.array([0.5, 1.5, 0.0]), np.array([1.0, -2.0, 3.0])
    assert stoic.Simplex(2.0).conjugate_gap(w, v) == pytest.approx(w @ v - 2.0 * v.min())
    np.testing.assert_array_equal(stoic.Simplex(2.0).feasible(v), v)


def test_a_coordinate_that_is_left_alone_needs_a_slope_of_zero():
    regularizer, w = LeavingLast(stoic.L2(2.0), 1), np.array([1.0, 7.0])
    assert regularizer.conjugate_gap(w, np.array([1.0, 1e-30])) == math.inf
    assert regularizer.conjugate_gap(w, np.array([1.0, 0.0])) == stoic.L2(2.0).conjugate_gap(w[:1], np.ones(1))
    np.testing.assert_array_equal(regularizer.feasible(np.array([1.0, 5.0])), [1.0, 0.0])


def test_outer_functions_that_are_convex_say_so():
    u = np.random.default_rng(0).standard_normal((2, 200, 3))
    for outer in (stoic.Linear([1.0, 2.0, 0.5]), stoic.LogSumExp(0.3), stoic.SmoothCVaR(0.6, 0.2)):
        assert outer.is_convex
        for one, other in zip(*u, strict=True):
            tangent = outer.value(one) + outer.gradient(one) @ (other - one)
            assert outer.value(other) >= tangent - 1e-12
    assert not getattr(stoic.MeanVariance(1.0), "is_convex", False)
