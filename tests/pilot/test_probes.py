"""Probes of a fixed sample: on linear models they are short, the same as by definition, and take little memory."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import stoic
from spies import Spy
from stoic.inners.metered import Metered
from stoic.pilot import probes, run_pilot
from stoic.pilot.fixed_sample import draw_sample

N, D, P, SIZE = 400, 50, 3, 60


def table(n=N, d=D, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=share, rng=rng, data_sampler=rng.standard_normal, format="csr")
    return X, X @ np.ones(d) + rng.standard_t(2.5, n), np.arange(n) % P


def problem_of(X, y, groups, *, loss="squared", intercept=False, regularizer=None, outer=None):
    inner = stoic.GroupLoss(X, y, groups, loss=loss, intercept=intercept)
    return stoic.Problem(inner, outer or stoic.LogSumExp(5.0), regularizer or stoic.L2(0.1))


def measured(problem, seed=0, size=SIZE):
    """Return all that a pilot says, the generator's next number, and what the meter has counted."""
    rng, meter = np.random.default_rng(seed), Metered(problem.inner, 10**9)
    w0 = np.full(problem.dimension, 0.1)
    pilot = dataclasses.asdict(run_pilot(problem.with_inner(meter), w0, rng, size=size))
    return pilot.pop("constants") | pilot, rng.random(), (meter.samples, meter.evaluations)


def assert_same(one, other, rel):
    for name in one[0]:
        assert one[0][name] == pytest.approx(other[0][name], rel=rel), name
    assert one[1:] == other[1:]


def by_definition(problem):
    """Return the problem with an inner part of which nothing is known but what `Inner` promises."""
    return problem.with_inner(Spy(problem.inner))


SETTINGS = {
    "squared": {},
    "huber": {"loss": "huber"},
    "intercept": {"intercept": True},
    "L1": {"regularizer": stoic.L1(0.01)},
    "linear": {"outer": stoic.Linear(), "regularizer": stoic.Zero()},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_a_pilot_on_sparse_rows_says_what_one_on_dense_rows_does(name, seed, monkeypatch):
    X, y, groups = table(seed=seed)
    dense = measured(problem_of(X.toarray(), y, groups, **SETTINGS[name]), seed)
    monkeypatch.setattr(probes, "_DENSE_ENTRIES", 0)
    assert_same(measured(problem_of(X, y, groups, **SETTINGS[name]), seed), dense, rel=1e-10)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_array.toarray], ids=["csr", "dense"])
def test_a_pilot_says_and_counts_what_the_definition_gives(name, make):
    X, y, groups = table()
    problem = problem_of(make(X), y, groups, **SETTINGS[name])
    assert_same(measured(problem), measured(by_definition(problem)), rel=1e-8)


@pytest.mark.parametrize("make", [lambda problem: problem, by_definition], ids=["linear", "definition"])
def test_a_change_is_the_difference_of_two_gradients(make):
    problem = make(problem_of(*table(), intercept=True))
    rng = np.random.default_rng(0)
    sample, q = draw_sample(problem, 30, rng), rng.standard_normal(P)
    w, step = rng.standard_normal(D + 1), 0.1 * rng.standard_normal(D + 1)
    ends, inner = (w + step, w - step), problem.inner
    gradients = [problem.batch_gradient(end, sample.batch) for end in ends]
    np.testing.assert_allclose(sample.change(w, step), gradients[0] - gradients[1], rtol=1e-10, atol=1e-12)
    products = [inner.vjp(end, sample.batch, q) for end in ends]
    np.testing.assert_allclose(sample.change(w, step, q), products[0] - products[1], rtol=1e-10, atol=1e-12)
    jacobians = [inner.jacobian(end, sample.batch) for end in ends]
    expected = np.linalg.norm(jacobians[0] - jacobians[1])
    assert sample.jacobian_change(w, step) == pytest.approx(expected, rel=1e-10)
    with pytest.MonkeyPatch.context() as patch:  # a group at a time
        patch.setattr("stoic.pilot.fixed_sample._ENTRIES", 1)
        assert sample.jacobian_change(w, step) == pytest.approx(expected, rel=1e-10)


def test_a_sample_that_has_forgotten_its_rows_gives_the_same_numbers():
    problem = problem_of(*table())
    sample, w = draw_sample(problem, 30, np.random.default_rng(0)), np.full(D, 0.2)
    before = sample.gradient(w)
    sample.forget()
    assert sample.rows.gathered is None
    np.testing.assert_array_equal(sample.gradient(w), before)
    np.testing.assert_array_equal(sample.gradient(w.copy()), before)


@pytest.mark.slow
def test_a_pilot_on_wide_sparse_rows_takes_the_memory_of_a_few_vectors():
    d, p = 200_000, 4
    X, y, _ = table(n=600, d=d, share=300 / d)
    problem = problem_of(X, y, np.arange(600) % p)
    peaks = []
    for _ in range(2):  # what is compiled or loaded once does not count
        tracemalloc.start()
        run_pilot(problem, np.zeros(d), np.random.default_rng(0), size=50)
        peaks.append(tracemalloc.get_traced_memory()[1] / (8.0 * d))
        tracemalloc.stop()
    assert peaks[1] < 14.0  # five optima and w₀, and what a proximal gradient step and its rows need


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_first_smoothness_is_that_of_the_longest_step_that_goes_down(scale):
    """For F(w) = s²w² a step t is long enough iff t ≤ 1/(2s²), and steps are doubled or halved."""
    X = np.full((10, 1), scale)
    problem = stoic.Problem(stoic.GroupLoss(X, np.zeros(10)), stoic.Linear())
    sample = draw_sample(problem, 10, np.random.default_rng(0))
    found = probes.first_smoothness(sample, np.array([3.0]))
    assert 2.0 * scale**2 <= found * (1.0 + 1e-12)
    assert found <= 4.0 * scale**2


def test_first_smoothness_where_there_is_no_slope():
    problem = stoic.Problem(stoic.GroupLoss(np.ones((4, 1)), np.zeros(4)), stoic.Linear())
    sample = draw_sample(problem, 4, np.random.default_rng(0))
    assert probes.first_smoothness(sample, np.zeros(1)) == 1.0
