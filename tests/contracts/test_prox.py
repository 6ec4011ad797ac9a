"""What every regularizer keeps: its prox is a prox, also in a ball."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from checks import generated, vectors
from stoic.regularizers import (
    L1,
    L2,
    Anchored,
    Box,
    ElasticNet,
    LeavingLast,
    Simplex,
    Weighted,
    Zero,
    prox_in_ball,
)

D = 4
ANCHOR = np.array([0.5, -1.0, 0.0, 2.0])
REGULARIZERS = {
    "Zero": Zero(),
    "L1": L1(0.6),
    "L2": L2(0.6),
    "ElasticNet": ElasticNet(1.2, 0.3),
    "Box": Box(-0.5, 2.0),
    "half-open Box": Box(np.array([0.0, -np.inf, -1.0, 1.0]), np.array([np.inf, 0.5, 1.0, 1.0])),
    "Simplex": Simplex(3.0),
    "LeavingLast(L1)": LeavingLast(L1(0.6), 1),
    "LeavingLast(L2)": LeavingLast(L2(0.6), 1),
    "LeavingLast(Simplex)": LeavingLast(Simplex(), 2),
    "Anchored(L1)": Anchored(L1(0.6), ANCHOR, 0.9),
    "Weighted": Weighted(np.array([0.0, 0.5, 1.0, 2.0]), np.array([0.0, 1.0, 0.0, 3.0])),
    "Anchored(LeavingLast)": Anchored(LeavingLast(ElasticNet(1.0), 1), ANCHOR, 0.9),
    "Anchored(Box)": Anchored(Box(-0.5, 2.0), ANCHOR, 0.9),
}
every_regularizer = pytest.mark.parametrize("name", REGULARIZERS)
steps = st.sampled_from([1e-3, 0.1, 1.0, 30.0])
seeds = st.integers(0, 2**32 - 1)
some = settings(generated, max_examples=25)  # of each regularizer
sizes = st.tuples(st.sampled_from([1.0, 1e4, 1e8]), st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]))  # of v, radius


def _rivals(regularizer, w, center, radius, rng):
    """Return points of dom r in the ball: near w and far from it."""
    for scale in (1e-3, 0.1, 1.0, 10.0):
        size = scale * min(radius, 1e3)
        z = regularizer.prox(w + size * rng.normal(size=w.size), 1e-9 * size)
        distance = np.linalg.norm(z - center)
        yield z if distance <= radius else center + (z - center) * (radius / distance)


def _check_optimal(regularizer, w, v, step, center, radius, rng):
    """Check r(z) − r(w) + ⟨w − v, z − w⟩/step ≥ 0 for points z of the feasible set."""
    for z in _rivals(regularizer, w, center, radius, rng):
        change = z - w
        penalties = regularizer.value(z), regularizer.value(w)
        assert np.isfinite(penalties).all()
        slope = (w - v) @ change / step
        steepness = np.linalg.norm(w - v) / step
        error = 1e-12 * np.linalg.norm(w - center) + 1e-15 * np.linalg.norm(w)  # what w is known up to
        slack = steepness * (1e-9 * np.linalg.norm(change) + error) + 1e-13 * sum(penalties)
        assert penalties[0] - penalties[1] + slope >= -slack


@every_regularizer
@some
@given(v=vectors(D), step=steps, seed=seeds)
def test_the_prox_is_optimal(name, v, step, seed):
    regularizer, rng = REGULARIZERS[name], np.random.default_rng(seed)
    w = regularizer.prox(v, step)
    _check_optimal(regularizer, w, v, step, w, np.inf, rng)


@every_regularizer
@some
@given(v=vectors(D), step=steps, seed=seeds)
def test_the_prox_beats_perturbations(name, v, step, seed):
    regularizer, rng = REGULARIZERS[name], np.random.default_rng(seed)

    def objective(x):
        return regularizer.value(x) + (x - v) @ (x - v) / (2 * step)

    w = regularizer.prox(v, step)
    for scale in (1e-4, 1e-2, 1.0):
        moved = w + scale * rng.normal(size=D)
        assert objective(w) <= objective(moved) * (1 + 1e-12)


@every_regularizer
@some
@given(u=vectors(D), v=vectors(D), step=steps)
def test_the_prox_is_firmly_non_expansive(name, u, v, step):
    regularizer = REGULARIZERS[name]
    change = regularizer.prox(u, step) - regularizer.prox(v, step)
    assert change @ change <= change @ (u - v) + 1e-12


@every_regularizer
@some
@given(u=vectors(D), v=vectors(D))
def test_the_modulus_contracts_the_prox(name, u, v):
    regularizer, step = REGULARIZERS[name], 0.7
    change = np.linalg.norm(regularizer.prox(u, step) - regularizer.prox(v, step))
    assert change * (1.0 + step * regularizer.strong_convexity) <= np.linalg.norm(u - v) + 1e-12


@every_regularizer
@some
@given(v=vectors(D, bound=1e8), step=steps)
def test_a_prox_lies_in_the_domain(name, v, step):
    assert np.isfinite(REGULARIZERS[name].value(REGULARIZERS[name].prox(v, step)))


@every_regularizer
@some
@given(v=vectors(D), c=vectors(D), step=steps)
def test_in_a_ball_without_end_the_prox_is_the_prox_bit_for_bit(name, v, c, step):
    regularizer = REGULARIZERS[name]
    w = prox_in_ball(regularizer, v, step, regularizer.prox(c, 1.0), np.inf)
    np.testing.assert_array_equal(w, regularizer.prox(v, step))


@every_regularizer
@generated
@given(v=vectors(D, bound=1.0), c=vectors(D), sizes=sizes, step=steps, seed=seeds)
def test_the_prox_in_a_ball_is_feasible_and_optimal(name, v, c, sizes, step, seed):
    regularizer, rng, (size, radius) = REGULARIZERS[name], np.random.default_rng(seed), sizes
    v, center = size * v, regularizer.prox(c, 1.0)
    w = prox_in_ball(regularizer, v, step, center, radius)
    assert np.linalg.norm(w - center) <= radius * (1.0 + 1e-9)
    _check_optimal(regularizer, w, v, step, center, radius, rng)


@every_regularizer
@some
@given(v=vectors(D), c=vectors(D), radius=st.floats(1e-3, 10.0), seed=seeds)
def test_no_point_of_the_ball_beats_the_prox_in_it(name, v, c, radius, seed):
    regularizer, rng, step = REGULARIZERS[name], np.random.default_rng(seed), 0.5
    center = regularizer.prox(c, 1.0)
    w = prox_in_ball(regularizer, v, step, center, radius)

    def objective(x):
        return regularizer.value(x) + (x - v) @ (x - v) / (2 * step)

    for z in _rivals(regularizer, w, center, radius, rng):
        assert objective(w) <= objective(z) + 1e-10 * (1.0 + objective(w))


@every_regularizer
def test_arrays_handed_in_come_back_unchanged_and_unshared(name):
    regularizer = REGULARIZERS[name]
    v, center = np.array([3.0, -2.0, 0.1, 7.0]), regularizer.prox(np.zeros(D), 1.0)
    for array in (v, center):
        array.flags.writeable = False
    for w in (
        regularizer.prox(v, 0.5),
        prox_in_ball(regularizer, v, 0.5, center, 0.1),
        prox_in_ball(regularizer, v, 0.5, center, 1e9),
    ):
        assert not np.shares_memory(w, v)
        assert not np.shares_memory(w, center)
        assert w.flags.writeable
    regularizer.value(center)
    assert v.tolist() == [3.0, -2.0, 0.1, 7.0]
