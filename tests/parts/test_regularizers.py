import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from checks import generated, vectors
from stoic.errors import InvalidParameter
from stoic.regularizers import L1, L2, Anchored, Box, ElasticNet, LeavingLast, Simplex, Zero, prox_in_ball

D = 5
CENTER = np.array([1.0, -0.5, 0.0, 2.0, 0.3])
LOW, HIGH = np.array([-1.0, 0.0, -np.inf, 0.5, 2.0]), np.array([1.0, np.inf, np.inf, 0.5, 3.0])

# Each regularizer with the same function, written for CVXPY as (terms, constraints).
ORACLES = {
    "zero": (Zero(), lambda w: (0.0, [])),
    "l1": (L1(0.7), lambda w: (0.7 * cp.norm1(w), [])),
    "l2": (L2(0.7), lambda w: (0.35 * cp.sum_squares(w), [])),
    "elastic net": (ElasticNet(1.5, 0.4), lambda w: (0.6 * cp.norm1(w) + 0.45 * cp.sum_squares(w), [])),
    "box": (Box(-0.5, 1.0), lambda w: (0.0, [w >= -0.5, w <= 1.0])),
    "box of vectors": (
        Box(LOW, HIGH),
        lambda w: (0.0, [w[[0, 1, 3, 4]] >= LOW[[0, 1, 3, 4]], w[[0, 3, 4]] <= HIGH[[0, 3, 4]]]),
    ),
    "simplex": (Simplex(2.0), lambda w: (0.0, [w >= 0, cp.sum(w) == 2.0])),
    "intercept": (LeavingLast(L1(0.7), 2), lambda w: (0.7 * cp.norm1(w[:-2]), [])),
    "intercept and ridge": (LeavingLast(L2(0.7), 1), lambda w: (0.35 * cp.sum_squares(w[:-1]), [])),
    "anchored": (
        Anchored(L1(0.7), CENTER, 0.8),
        lambda w: (0.7 * cp.norm1(w) + 0.4 * cp.sum_squares(w - CENTER), []),
    ),
    "anchored ridge": (
        Anchored(L2(0.7), CENTER, 0.8),
        lambda w: (0.35 * cp.sum_squares(w) + 0.4 * cp.sum_squares(w - CENTER), []),
    ),
    "anchored simplex": (
        Anchored(Simplex(2.0), CENTER, 0.8),
        lambda w: (0.4 * cp.sum_squares(w - CENTER), [w >= 0, cp.sum(w) == 2.0]),
    ),
}


def _by_cvxpy(terms_of, v, step, center=None, radius=None):
    w = cp.Variable(v.size)
    terms, limits = terms_of(w)
    if radius is not None:
        limits = [*limits, cp.norm2(w - center) <= radius]
    problem = cp.Problem(cp.Minimize(terms + cp.sum_squares(w - v) / (2 * step)), limits)
    problem.solve(solver=cp.CLARABEL)
    return w.value


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("seed", range(3))
def test_the_prox_agrees_with_cvxpy(name, seed):
    regularizer, terms_of = ORACLES[name]
    rng = np.random.default_rng(seed)
    v, step = rng.normal(scale=2.0, size=D), rng.uniform(0.1, 3.0)
    np.testing.assert_allclose(regularizer.prox(v, step), _by_cvxpy(terms_of, v, step), atol=2e-5)


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("seed", range(4))
def test_the_prox_in_a_ball_agrees_with_cvxpy(name, seed):
    regularizer, terms_of = ORACLES[name]
    rng = np.random.default_rng(seed)
    v, step = rng.normal(scale=3.0, size=D), rng.uniform(0.1, 2.0)
    center = regularizer.prox(rng.normal(size=D), 1.0)
    radius = rng.uniform(0.2, 0.9) * np.linalg.norm(regularizer.prox(v, step) - center)
    w = prox_in_ball(regularizer, v, step, center, radius)
    assert np.linalg.norm(w - center) == pytest.approx(radius, rel=1e-9)
    np.testing.assert_allclose(w, _by_cvxpy(terms_of, v, step, center, radius), atol=1e-4)


def test_values_are_those_of_the_formulas():
    w = np.array([1.0, -2.0, 3.0])
    assert Zero().value(w) == 0.0
    assert L1(2.0).value(w) == 12.0
    assert L2(2.0).value(w) == 14.0
    assert ElasticNet(2.0, 0.25).value(w) == pytest.approx(0.5 * 6.0 + 0.75 * 14.0)
    assert LeavingLast(L1(2.0), 1).value(w) == 6.0
    assert Anchored(L1(2.0), w, 3.0).value(w) == 12.0
    assert Anchored(Zero(), np.zeros(3), 3.0).value(w) == 21.0


def test_moduli_of_strong_convexity_are_those_of_the_formulas():
    assert Zero().strong_convexity == L1(2.0).strong_convexity == 0.0
    assert Box(0, 1).strong_convexity == Simplex().strong_convexity == 0.0
    assert L2(2.0).strong_convexity == 2.0
    assert ElasticNet(2.0, 0.25).strong_convexity == 1.5
    assert LeavingLast(L2(2.0), 1).strong_convexity == 0.0
    assert Anchored(L2(2.0), CENTER, 3.0).strong_convexity == 5.0
    assert Anchored(LeavingLast(L2(2.0), 1), CENTER, 3.0).strong_convexity == 3.0


def test_an_elastic_net_ends_in_l1_and_in_l2():
    v = np.array([-3.0, 0.2, 1.0])
    np.testing.assert_array_equal(ElasticNet(0.7, 1.0).prox(v, 0.5), L1(0.7).prox(v, 0.5))
    np.testing.assert_array_equal(ElasticNet(0.7, 0.0).prox(v, 0.5), L2(0.7).prox(v, 0.5))


def test_soft_thresholding_gives_plain_zeros():
    w = L1(1.0).prox(np.array([-0.5, 0.5, -0.0]), 1.0)
    assert not w.any()
    assert not np.signbit(w).any()


def test_a_box_ends_where_it_says():
    box = Box(LOW, HIGH)
    assert box.value(np.array([1.0, 0.0, 1e300, 0.5, 2.5])) == 0.0
    assert box.value(np.array([1.0 + 1e-15, 0.0, -7.0, 0.5, 2.5])) == 0.0
    assert box.value(np.array([1.0 + 1e-6, 0.0, -7.0, 0.5, 2.5])) == math.inf
    assert Box(0.0, math.inf).value(np.array([-1e-300])) == math.inf
    assert Box(0.0, 1e-12).value(np.array([2e-12])) == math.inf


def test_a_simplex_ends_where_it_says():
    assert Simplex().value(np.array([0.5, 0.5 + 1e-15])) == 0.0
    assert Simplex().value(np.array([0.5, 0.5 + 1e-6])) == math.inf
    assert Simplex().value(np.array([1.1, -0.1])) == math.inf
    assert Simplex(1e-12).value(np.array([1e-12, 1e-13])) == math.inf
    assert Simplex().value(np.array([np.nan, 1.0])) == math.inf


@generated
@given(v=vectors(st.integers(1, 30), bound=1e8), total=st.sampled_from([1e-6, 1.0, 1e6]))
def test_a_projection_on_the_simplex_is_on_it_at_any_scale(v, total):
    simplex = Simplex(total)
    w = simplex.prox(v, 1.0)
    assert simplex.value(w) == 0.0
    gap = (v - w)[w > 0.0]  # optimality: v − w is one number where w > 0, and no larger elsewhere
    tolerance = 1e-12 * max(total, np.abs(v).max())
    assert np.ptp(gap) <= tolerance
    assert (v - w).max() <= gap.min() + tolerance


def test_a_projection_on_the_simplex_has_exact_zeros():
    assert Simplex(1e-6).prox(np.array([0.0, *[-1.0] * 17]), 1.0).tolist() == [1e-6, *[0.0] * 17]


def test_a_projection_on_a_large_simplex_is_on_it():
    v = np.random.default_rng(0).standard_t(1.5, size=200_000)
    assert Simplex().value(Simplex().prox(v, 1.0)) == 0.0
    assert Simplex().value(Simplex().prox(np.zeros(100_000), 1.0)) == 0.0


@pytest.mark.parametrize("regularizer", [L1(1.0), ElasticNet(1.0, 0.3), Box(-0.3, 1.0)], ids=str)
def test_prox_then_project_is_not_the_prox_in_a_ball(regularizer):
    center, v, step, radius = np.array([0.2, 0.6, -0.25]), np.array([2.0, -3.0, -0.1]), 0.5, 0.4
    free = regularizer.prox(v, step)
    projected = center + (free - center) * radius / np.linalg.norm(free - center)
    w = prox_in_ball(regularizer, v, step, center, radius)

    def objective(x):
        return regularizer.value(x) + (x - v) @ (x - v) / (2 * step)

    assert np.linalg.norm(w - projected) > 1e-3
    assert objective(w) < objective(projected) - 1e-5


def test_l2_in_a_ball_is_the_projection_of_its_prox():
    center, v = np.array([1.0, 2.0]), np.array([10.0, -10.0])
    w = prox_in_ball(L2(0.5), v, 2.0, center, 1.5)
    free = v / 2.0
    np.testing.assert_allclose(w, center + 1.5 * (free - center) / np.linalg.norm(free - center), rtol=1e-15)


def test_the_root_agrees_with_the_closed_form_where_there_is_one():
    class Opaque:  # L2 that does not say that it is isotropic
        def value(self, w):
            return L2(0.5).value(w)

        def prox(self, v, step):
            return L2(0.5).prox(v, step)

    rng = np.random.default_rng(1)
    for radius in [1e-6, 1e-2, 1.0, 1e3]:
        v, center = 1e4 * rng.normal(size=6), rng.normal(size=6)
        by_root = prox_in_ball(Opaque(), v, 0.3, center, radius)
        by_formula = prox_in_ball(L2(0.5), v, 0.3, center, radius)
        assert np.linalg.norm(by_root - by_formula) <= 1e-9 * radius


def test_exact_zeros_of_l1_survive_an_active_ball():
    w = prox_in_ball(L1(1.0), np.array([9.0, 0.1, -0.2, 5.0]), 1.0, np.zeros(4), 2.0)
    assert w[1] == w[2] == 0.0
    assert np.linalg.norm(w) == pytest.approx(2.0, rel=1e-11)


def test_a_ball_smaller_than_the_spacing_of_floats_gives_its_center():
    center = np.array([1e8, -1e8])
    np.testing.assert_array_equal(prox_in_ball(L1(1.0), np.zeros(2), 1.0, center, 1e-12), center)


def test_a_huge_point_is_brought_into_the_ball():
    for regularizer in (Zero(), L2(1.0), L1(1.0)):
        w = prox_in_ball(regularizer, np.array([1e300, -1e300]), 1.0, np.array([1.0, 1.0]), 2.0)
        np.testing.assert_allclose(w, 1.0 + np.array([math.sqrt(2), -math.sqrt(2)]), rtol=1e-9)


def test_the_ball_does_not_hide_what_is_not_finite():
    for regularizer in (Zero(), L2(1.0), L1(1.0)):
        for bad in (math.nan, math.inf):
            w = prox_in_ball(regularizer, np.array([bad, 0.0]), 1.0, np.zeros(2), 1.0)
            assert not np.isfinite(w).all()


def test_huge_penalties_are_infinite_without_a_warning():
    w = np.full(3, 1e200)
    assert L2(1.0).value(w) == math.inf
    assert ElasticNet(1.0, 1.0).value(w) == pytest.approx(3e200)
    assert Zero().value(np.array([np.inf])) == 0.0


BAD_SETTINGS = [
    (L1, {"alpha": -1.0}),
    (L1, {"alpha": math.nan}),
    (L1, {"alpha": math.inf}),
    (L1, {"alpha": "much"}),
    (L2, {"alpha": -1e-9}),
    (L2, {"alpha": None}),
    (ElasticNet, {"alpha": -1.0}),
    (ElasticNet, {"alpha": 1.0, "l1_ratio": 1.5}),
    (ElasticNet, {"alpha": 1.0, "l1_ratio": math.nan}),
    (Box, {"low": 1.0, "high": 0.0}),
    (Box, {"low": math.nan, "high": 0.0}),
    (Box, {"low": 0.0, "high": math.nan}),
    (Box, {"low": math.inf, "high": math.inf}),
    (Box, {"low": -math.inf, "high": -math.inf}),
    (Box, {"low": [0.0, 0.0], "high": [1.0, 1.0, 1.0]}),
    (Box, {"low": [0.0], "high": [1.0, 1.0, 1.0]}),
    (Box, {"low": np.zeros((2, 2)), "high": 1.0}),
    (Box, {"low": "a", "high": 1.0}),
    (Simplex, {"total": 0.0}),
    (Simplex, {"total": -1.0}),
    (Simplex, {"total": math.inf}),
    (LeavingLast, {"regularizer": L1(1.0), "count": 0}),
    (LeavingLast, {"regularizer": L1(1.0), "count": 1.5}),
    (Anchored, {"regularizer": L1(1.0), "center": CENTER, "weight": -1.0}),
    (Anchored, {"regularizer": L1(1.0), "center": np.array([np.nan]), "weight": 1.0}),
    (Anchored, {"regularizer": L1(1.0), "center": np.zeros((2, 2)), "weight": 1.0}),
]


@pytest.mark.parametrize(("kind", "settings"), BAD_SETTINGS, ids=str)
def test_bad_settings_are_refused_by_name(kind, settings):
    with pytest.raises(InvalidParameter, match="|".join(settings)):
        kind(**settings)


@pytest.mark.parametrize(
    ("step", "radius"), [(1.0, 0.0), (1.0, -1.0), (1.0, math.nan), (0.0, 1.0), (math.nan, 1.0)]
)
def test_a_ball_without_a_radius_or_a_step_is_refused(step, radius):
    with pytest.raises(InvalidParameter, match="radius"):
        prox_in_ball(L1(1.0), np.ones(2), step, np.zeros(2), radius)


@pytest.mark.parametrize("regularizer", [Box(LOW, HIGH), Anchored(Zero(), CENTER, 1.0)], ids=["box", "anchored"])
def test_the_wrong_number_of_variables_is_refused(regularizer):
    for size in (1, 4):
        with pytest.raises(InvalidParameter, match="5"):
            regularizer.prox(np.zeros(size), 1.0)


def test_settings_are_copied():
    low, center = np.zeros(2), np.zeros(2)
    box, anchored = Box(low, 1.0), Anchored(Zero(), center, 1.0)
    low[:], center[:] = 0.5, 0.5
    assert box.prox(np.zeros(2), 1.0).tolist() == [0.0, 0.0]
    assert anchored.prox(np.zeros(2), 1.0).tolist() == [0.0, 0.0]


def test_a_box_with_one_side_turned_around_is_refused():
    for low, high in (([0.0, 2.0], [1.0, 1.0]), ([0.0, math.inf], math.inf), (-math.inf, [0.0, -math.inf])):
        with pytest.raises(InvalidParameter, match="low <= high"):
            Box(low, high)
