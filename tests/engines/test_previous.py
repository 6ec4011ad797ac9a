"""The previous point, against a copy that was kept."""

import math

import numpy as np
import pytest

from engines.vectors import STORAGE, explicit, make_scaled, make_thresholded, matrix_of
from stoic.engines.kernels.vectors import any as forms, previous as kernels
from stoic.engines.kernels.vectors.previous import ALL, N_SCALARS, SCALE, SHIFT, TAIL, Previous

D, N, SHAPE = 7, 12, (2, 2)
any_storage = pytest.mark.parametrize("storage", STORAGE)
KINDS = {  # how the form is made, l1, l2
    "zero": (make_scaled, {}, 0.0, 0.0),
    "l2": (make_scaled, {}, 0.0, 9.0),
    "l2 anchored": (make_scaled, {"weight": 5.0}, 0.0, 0.3),
    "l1": (make_thresholded, {}, 0.5, 0.0),
    "elastic net": (make_thresholded, {}, 0.3, 40.0),
    "elastic net anchored": (make_thresholded, {"weight": 2.0}, 0.3, 0.4),
}
any_kind = pytest.mark.parametrize("kind", KINDS)


def make_form(kind, *, has_tail=False):
    rng = np.random.default_rng(0)
    make, options, l1, l2 = KINDS[kind]
    w, c = rng.standard_normal((2, D + has_tail))
    return make(w, c, n_rows=N, has_tail=has_tail, **options), l1, l2


def make_previous(form, point, *, tail=0.0):
    """Return a point that is set everywhere, as a runner does."""
    scalars, last = np.zeros(N_SCALARS), point.copy()
    scalars[SCALE], scalars[ALL], scalars[TAIL] = 1.0, 1.0, tail
    if hasattr(form, "u"):
        last, scalars[SHIFT] = last - form.c, 1.0
    return Previous(last, np.zeros(SHAPE, dtype=np.int64), scalars)


def point_of(form, before):
    out = np.empty(D)
    kernels.previous_point(form, before, out)
    return out


@any_kind
@any_storage
@pytest.mark.parametrize("has_tail", [False, True])
def test_the_previous_point_is_that_before_the_step(kind, storage, has_tail):
    rng, X = np.random.default_rng(1), matrix_of(D, N)
    data, (form, l1, l2) = STORAGE[storage](X), make_form(kind, has_tail=has_tail)
    kept, tail = rng.standard_normal(D), 0.7 if has_tail else 0.0
    before, n_refreshed = make_previous(form, kept, tail=tail), 0
    for _ in range(200):
        if forms.needs_refresh(form, 0.05, l1):
            kernels.carry_over(form, before)
            forms.refresh(form)
            n_refreshed += 1
        drawn = rng.integers(0, N, SHAPE)
        for row in drawn.flat:
            found = kernels.predict_previous(data, form, before, row)
            assert found == pytest.approx(X[row] @ kept + tail, rel=1e-9, abs=1e-10)
        kept, tail = explicit(form), forms.intercept(form)
        kernels.remember(data, form, before, drawn)
        for row in drawn.flat:
            forms.add(data, form, row, 0.2 * rng.standard_normal())
        forms.settle(form, 0.05, l1, l2, tail + 0.1, math.inf, has_tail)
        np.testing.assert_allclose(point_of(form, before), kept, rtol=0.0, atol=1e-11)
        assert before.scalars[TAIL] == tail
    assert n_refreshed > 0 or kind in {"zero", "l1", "elastic net anchored"}


@any_kind
def test_a_point_is_carried_over_when_the_form_is_made_anew(kind):
    data, (form, l1, l2) = STORAGE["csr"](matrix_of(D, N)), make_form(kind)
    before = make_previous(form, np.arange(7.0))
    for _ in range(3):
        forms.settle(form, 0.05, l1, l2, 0.0, math.inf, False)
    kernels.remember(data, form, before, np.array([[0, 1], [2, 3]]))
    kept = point_of(form, before)
    kernels.carry_over(form, before)
    forms.refresh(form)
    np.testing.assert_allclose(point_of(form, before), kept, rtol=1e-12, atol=1e-13)


def test_a_coordinate_is_as_now_where_nothing_is_kept():
    assert kernels.previous_at(3.0, math.nan) == 3.0
    assert kernels.previous_at(3.0, 2.0) == 2.0
    assert kernels.previous_at(3.0, 0.0) == 0.0


@any_storage
@pytest.mark.parametrize("q", [0.0, 0.5, 1e9])
def test_previous_product(storage, q):
    X, rng = matrix_of(D, N), np.random.default_rng(3)
    data, now, last = STORAGE[storage](X), rng.standard_normal(D), np.full(D, np.nan)
    last[[1, 4]] = 2.0, -0.1
    old = np.where(np.isnan(last), now, last)
    values = np.sign(old) * np.maximum(np.abs(old) - q, 0.0)
    for row in range(N):
        found = kernels.previous_product(data, row, now, last, q)
        assert found == pytest.approx(X[row] @ values, rel=1e-12, abs=1e-13)


@any_storage
def test_mark_writes_where_a_row_has_entries(storage):
    X, source = matrix_of(D, N), np.arange(1.0, 8.0)
    data = STORAGE[storage](X)
    for row in range(N):
        out = np.full(D, 77.0)
        kernels.mark(data, row, source, out, 2.0)
        where = np.ones(D, dtype=bool) if storage == "dense" else X[row] != 0.0
        np.testing.assert_array_equal(out, np.where(where, 2.0 * source, 77.0))
        kernels.mark(data, row, out, out, np.nan)
        np.testing.assert_array_equal(np.isnan(out), where)


@pytest.mark.parametrize("everywhere", [False, True])
def test_keep_holds_the_coordinates_of_the_last_rows_and_no_others(everywhere):
    X, now = np.eye(5), np.arange(10.0, 15.0)
    data = STORAGE["csr"](X)
    before = Previous(np.full(5, 1.0), np.zeros((1, 2), dtype=np.int64), np.zeros(N_SCALARS))
    before.scalars[ALL] = 1.0
    kernels.keep(data, now, before, np.array([[0, 3]]), False)
    np.testing.assert_array_equal(before.last, [10.0, np.nan, np.nan, 13.0, np.nan])
    kernels.keep(data, now, before, np.array([[1, 1]]), everywhere)
    expected = now if everywhere else [np.nan, 11.0, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(before.last, expected)
    assert before.scalars[ALL] == everywhere
    kernels.keep(data, now, before, np.array([[4, 2]]), False)
    np.testing.assert_array_equal(before.last, [np.nan, np.nan, 12.0, np.nan, 14.0])
    assert before.rows.tolist() == [[4, 2]]
