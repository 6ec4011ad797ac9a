"""The thresholded form, part by part, against vectors that take every prox themselves."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp

import stoic
from stoic.kernels import rosc_l1
from stoic.kernels import thresholded as th
from stoic.kernels.rows import CSR, Dense

# Wrapped, so that the overloads are compiled and not the plain bodies.
along = numba.njit(lambda X, row, w: th.along(X, row, w))  # noqa: PLW0108
add_row = numba.njit(lambda X, row, factor, w: th.add_row(X, row, factor, w))  # noqa: PLW0108


def make_form(w, c=None, *, tail=0.0, tail_c=0.0):
    table, scalars = np.zeros((th.N_LINES, 4)), np.zeros(th.N_SCALARS)
    table[0, th.P] = 1.0
    c = np.zeros_like(w) if c is None else c
    scalars[th.TAIL], scalars[th.TAIL_C], scalars[th.NORM_C] = tail, tail_c, np.linalg.norm(c)
    form = th.Thresholded(w.copy(), c, np.zeros_like(w), np.zeros_like(w), table, scalars)
    th.measure(form)
    return form


def read(write, form):
    out = np.empty(form.v.size)
    write(form, out)
    return out


def make_rows(kind, X):
    if kind == "dense":
        return Dense(X)
    rows = sp.csr_array(X)
    return CSR(rows.indptr, rows.indices.view(np.uint32), rows.data)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize(("l1", "l2"), [(0.3, 0.0), (0.05, 0.5), (0.0, 2.0), (3.0, 0.1)])
def test_the_form_follows_a_vector_that_takes_every_prox_itself(kind, l1, l2):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 12)) < 0.3, rng.standard_normal((40, 12)), 0.0)
    rows, w = make_rows(kind, X), rng.standard_normal(12)
    regularizer, form, total = stoic.ElasticNet(l1 + l2, l1 / (l1 + l2)), make_form(w), np.zeros(12)
    for t in range(th.N_LINES + 500):  # more steps than the table has lines
        for row in rng.integers(0, 40, 2):
            assert along(rows, row, form) == pytest.approx(X[row] @ w, rel=1e-9, abs=1e-11)
            factor = 0.05 * rng.standard_normal()
            add_row(rows, row, factor, form)
            w = w + factor * X[row]
        step = 0.01 * (1.0 + t % 3)
        th.pass_time(form, step, l1, l2)
        w = regularizer.prox(w, step)
        total += w
        if t % 1000 == 0:
            th.rebase(form)
    np.testing.assert_allclose(read(th.current_thresholded, form), w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(read(th.total_thresholded, form), total, rtol=1e-9, atol=1e-8)
    assert th.measure(form) == pytest.approx(np.linalg.norm(w), rel=1e-9)


def test_a_value_is_its_potential_less_the_threshold():
    for v, value in [(3.0, 4.0), (-3.0, -4.0), (0.5, 0.0), (1.0, 0.0), (0.0, 0.0)]:
        assert th.worth(v, 2.0, 1.0) == value
        assert 2.0 * th.shrunk(v, 1.0) == value


def grown_table(n_steps, l1, l2, step=0.1):
    form = make_form(np.ones(1))
    for _ in range(n_steps):
        th.pass_time(form, step, l1, l2)
    return form.table, n_steps


@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_the_last_line_below_a_size_is_found_wherever_it_is(l2):
    table, now = grown_table(120, 1.0, l2)
    for size in np.linspace(1e-6, table[now, th.Q], 500):
        expected = np.searchsorted(table[: now + 1, th.Q], size) - 1
        assert th.last_below(size, table, now) == expected


@pytest.mark.parametrize("v", [20.0, -20.0, 4.2, -0.7, 0.05])
def test_what_a_coordinate_has_gathered_is_the_sum_of_its_values(v):
    table, now = grown_table(100, 1.0, 0.2)
    values = [th.worth(v, table[s, th.P], table[s, th.Q]) for s in range(1, now + 1)]
    assert th.gathered(v, table, now) == pytest.approx(sum(values), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("v", [5.0, -5.0, 0.5, 0.0])
@pytest.mark.parametrize("step", [0.3, -0.3, 50.0, -50.0, 0.0])
def test_a_touch_moves_the_value_and_leaves_the_past(v, step):
    form = make_form(np.array([v]))
    for _ in range(20):
        th.pass_time(form, 0.1, 1.0, 0.3)
    before, total = read(th.current_thresholded, form), read(th.total_thresholded, form)
    th.touch(form, 0, step, 20)
    np.testing.assert_allclose(read(th.current_thresholded, form), before + step, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(read(th.total_thresholded, form), total, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("radius", [0.1, 1.0, 3.0, 100.0])
@pytest.mark.parametrize("tail", [0.0, 2.0])
def test_a_step_is_settled_in_the_ball_as_the_prox_in_the_ball_is(radius, tail):
    rng = np.random.default_rng(1)
    w, c = rng.standard_normal(6), rng.standard_normal(6)
    form, regularizer = make_form(w, c, tail=0.0, tail_c=0.0), stoic.regularizers.LeavingLast(stoic.L1(0.7), 1)
    assert th.pulled(2.0, 1.0, 1.0, 0.5, 1.0, 0.0) == 1.5
    expected = stoic.prox_in_ball(regularizer, np.append(w, tail), 0.5, np.append(c, 0.0), radius)
    th.settle_thresholded(form, 0.5, 0.7, 0.0, tail, radius, 10.0)
    got = np.append(read(th.current_thresholded, form), form.scalars[th.TAIL])
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(read(th.total_thresholded, form), got[:-1], rtol=1e-9, atol=1e-11)
    assert form.scalars[th.LOW] <= np.linalg.norm(got - np.append(c, 0.0)) * (1 + 1e-12)
    assert form.scalars[th.HIGH] >= np.linalg.norm(got - np.append(c, 0.0)) * (1 - 1e-12)


def test_a_pulled_step_reaches_the_sphere():
    form = make_form(np.array([3.0, -4.0]), np.array([1.0, 1.0]))
    assert th.reach(form, 0.1, 1.0, 0.0, 1.0) > 0.5
    th.pull(form, 0.1, 1.0, 0.0, 0.0, 0.5)
    assert th.measure(form) == pytest.approx(0.5, rel=1e-9)


def test_a_test_that_the_bracket_cannot_decide_measures_the_distance():
    form = make_form(np.array([3.0, 4.0]))
    assert rosc_l1.away(np.array([3.0, 4.0]), np.zeros(2)) == 5.0
    form.scalars[th.LOW], form.scalars[th.HIGH] = 0.0, 100.0
    assert not rosc_l1.strays(form, 1.0, 1.0, 2.0)  # below the slack, whatever the distance
    assert rosc_l1.strays(form, 103.0, 1.0, 2.0)  # above, whatever the distance
    assert form.scalars[th.HIGH] == 100.0
    assert rosc_l1.strays(form, 7.5, 1.0, 2.0)
    assert form.scalars[th.LOW] == form.scalars[th.HIGH] == 5.0
    assert not rosc_l1.strays(form, 6.5, 1.0, 2.0)
    assert rosc_l1.strays(form, np.inf, 1.0, 2.0)
    assert rosc_l1.strays(form, np.nan, 1.0, 2.0)
