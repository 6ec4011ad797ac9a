"""Vectors of any form: one answer for both forms."""

import itertools
import math

import numpy as np
import pytest

from engines.vectors import (
    STORAGE,
    explicit,
    make_scaled,
    make_thresholded,
    matrix_of,
    regularizer_of,
    summed,
)
from stoic.engines.kernels.vectors import any as forms, scaled, thresholded as th
from stoic.regularizers import prox_in_ball

D, N = 7, 12
Z = np.random.default_rng(8).standard_normal((D, 3))
Z[[2, 5]] = 0.0
COLUMNS = np.flatnonzero(Z.any(axis=1)).astype(np.uint32)
PACKED = np.ascontiguousarray(Z[COLUMNS])

any_storage = pytest.mark.parametrize("storage", STORAGE)
both_tails = pytest.mark.parametrize("has_tail", [False, True])


class Case:
    """A form, its regularizer, and the vector that it stands for, which takes every step itself."""

    def __init__(self, kind, has_tail, seed=0):
        rng = np.random.default_rng(seed)
        w, c, anchor = (rng.standard_normal(D + has_tail) for _ in range(3))
        name, self.l1, self.l2, weight, self.radius = KINDS[kind]
        common = {"weight": weight, "n_rows": N, "has_tail": has_tail}
        if name == "thresholded":
            self.form = make_thresholded(w, c, anchor=anchor, **common)
        else:
            anchor, held = c, Z if name == "holding" else None
            self.form = make_scaled(w, c, a=0.6, b=0.9, Z=held, **common)
        self.regularizer = regularizer_of(self.l1, self.l2, has_tail=has_tail, anchor=anchor, weight=weight)
        self.w, self.c, self.has_tail = w, c, has_tail
        self.total, self.tails = np.zeros(D), 0.0

    def add(self, x):
        self.w = self.w.copy()
        self.w[:D] += x

    def settle(self, step, tail):
        """Take the prox in the ball; the intercept moves to `tail`."""
        ahead = np.append(self.w[:D], tail) if self.has_tail else self.w
        self.w = prox_in_ball(self.regularizer, ahead, step, self.c, self.radius)
        self.total = self.total + self.w[:D]
        self.tails += self.w[-1] if self.has_tail else 0.0


KINDS = {  # the form, l1, l2, the weight of the anchor, the radius
    "zero": ("scaled", 0.0, 0.0, 0.0, math.inf),
    "l2": ("scaled", 0.0, 2.0, 0.0, math.inf),
    "l2 in a ball": ("scaled", 0.0, 2.0, 0.0, 0.8),
    "l2 anchored": ("scaled", 0.0, 0.3, 5.0, 0.8),
    "l2 holding": ("holding", 0.0, 2.0, 0.0, 0.8),
    "l1": ("thresholded", 0.5, 0.0, 0.0, math.inf),
    "elastic net in a ball": ("thresholded", 0.3, 0.4, 0.0, 0.8),
    "elastic net anchored": ("thresholded", 0.3, 0.4, 2.0, math.inf),
    "l2 anchored elsewhere": ("thresholded", 0.0, 0.4, 2.0, 0.8),
}
any_kind = pytest.mark.parametrize("kind", KINDS)


@any_kind
@any_storage
@both_tails
def test_a_form_and_a_vector_take_the_same_steps(kind, storage, has_tail):
    rng, X = np.random.default_rng(1), matrix_of(D, N)
    data, case = STORAGE[storage](X), Case(kind, has_tail)
    form, n_refreshed = case.form, 0
    for t in range(150):
        step, row, factor, q = 0.05, rng.integers(0, N), 0.2 * rng.standard_normal(), rng.random(3)
        if forms.needs_refresh(form, step, case.l1):
            forms.refresh(form)
            n_refreshed += 1
        assert forms.product(data, form, row) == pytest.approx(X[row] @ case.w[:D], rel=1e-9, abs=1e-10)
        assert forms.reserve(form, 1.0)
        forms.note_move(form, 100.0)
        forms.add(data, form, row, factor)
        case.add(factor * X[row])
        if t % 3 == 0:
            forms.add_columns(form, COLUMNS, PACKED, q, -0.1)
            case.add(-0.1 * Z @ q)
        tail = forms.intercept(form) + 0.3 * rng.standard_normal()
        forms.settle(form, step, case.l1, case.l2, tail, case.radius, has_tail)
        case.settle(step, tail)
        np.testing.assert_allclose(explicit(form, has_tail=has_tail), case.w, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(summed(data, form), case.total, rtol=1e-9, atol=1e-9)
    places = scaled if isinstance(form, scaled.Scaled) else th
    assert form.scalars[places.SUM_TAIL] == pytest.approx(case.tails, abs=1e-9)
    assert n_refreshed > 0 or kind == "zero" or places is th  # those refresh themselves in the ball, or seldom


def moved(kind, storage, has_tail):
    """Return rows and a form on its way."""
    data, case = STORAGE[storage](matrix_of(D, N)), Case(kind, has_tail)
    for t in range(10):
        forms.add(data, case.form, t, 0.3)
        forms.settle(case.form, 0.05, case.l1, case.l2, 0.1 * t, case.radius, has_tail)
    return data, case


@any_kind
@any_storage
@both_tails
def test_a_product_a_move_and_a_refresh(kind, storage, has_tail):
    data, case = moved(kind, storage, has_tail)
    form, X, w, total = case.form, matrix_of(D, N), explicit(case.form), summed(data, case.form)
    for row in range(N):
        assert forms.product(data, form, row) == pytest.approx(X[row] @ w, rel=1e-10, abs=1e-11)
        for group in (0, 2):
            along = np.full(N, np.nan)
            for _ in range(2):
                found = forms.product_with_reference(data, form, Z, row, group, along)
                assert found == pytest.approx(X[row] @ Z[:, group], abs=1e-12)
        forms.add(data, form, row, 0.6)
        w = w + 0.6 * X[row]
    q = np.array([0.5, -0.5, 1.0])
    forms.add_columns(form, COLUMNS, PACKED, q, 0.3)
    np.testing.assert_allclose(explicit(form), w + 0.3 * Z @ q, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(summed(data, form), total, rtol=1e-8, atol=1e-9)
    forms.refresh(form)
    np.testing.assert_allclose(explicit(form), w + 0.3 * Z @ q, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(summed(data, form), total, rtol=1e-8, atol=1e-9)
    assert not forms.needs_refresh(form, 0.05, case.l1)


def test_kept_product_is_computed_once():
    X, along = matrix_of(D, N), np.full(N, np.nan)
    data = STORAGE["csr"](X)
    assert scaled.kept_product(data, None, Z, 4, 1, along) == pytest.approx(X[4] @ Z[:, 1])
    assert np.flatnonzero(~np.isnan(along)).tolist() == [4]
    along[4] = 77.0
    assert scaled.kept_product(data, None, Z, 4, 1, along) == 77.0


def test_the_intercept_is_apart():
    w = np.arange(4.0)
    assert forms.intercept(make_scaled(w, has_tail=True)) == 3.0
    assert forms.intercept(make_thresholded(w, has_tail=True)) == 3.0
    assert forms.intercept(make_scaled(w)) == forms.intercept(make_thresholded(w)) == 0.0


# --- calm ---


def test_a_scaled_form_reserve_while_u_stays_small():
    form = make_scaled(np.ones(3), a=1e-3)
    assert forms.reserve(form, 1e136)
    for amount in (1.1e137, math.inf, math.nan):  # over a, more than 1e140
        assert not forms.reserve(form, amount)
    assert forms.reserve(make_scaled(np.full(3, 5e139)), 1.0)
    for size in (6e139, 1e150):
        assert not forms.reserve(make_scaled(np.full(3, size)), 1.0)


def test_a_thresholded_form_reserve_while_what_it_moved_adds_up_to_little():
    form = make_thresholded(np.array([1.0, -3e139]))
    assert forms.reserve(form, 4e139)
    assert form.scalars[th.SIZE] == pytest.approx(7e139)
    assert forms.reserve(form, 2e139)
    assert not forms.reserve(form, 2e139)
    for amount in (math.inf, math.nan):
        assert not forms.reserve(make_thresholded(np.ones(2)), amount)
    shrunk = make_thresholded(np.ones(2))
    th.pass_time(shrunk, 1.0, 0.0, 9.0)
    assert forms.reserve(shrunk, 9e138)
    assert not forms.reserve(shrunk, 9e138)


# --- distances ---


@pytest.mark.parametrize("make", [make_scaled, make_thresholded])
@pytest.mark.parametrize("has_tail", [False, True])
def test_exceeds_compares_with_the_distance_to_the_center(make, has_tail):
    w, c = np.array([3.0, 4.0, 1.0]), np.array([0.0, 0.0, 1.0])
    for growth, slack in itertools.product((0.0, 2.0), (0.0, 1.0, math.inf)):
        level = growth * 5.0 + slack
        for far in (0.0, 0.999 * level, 1.001 * level + 1e-9, 1e150):
            expected = far > level or not far < math.inf
            assert forms.exceeds(make(w, c, has_tail=has_tail), far, growth, slack) == expected
        for far in (math.inf, math.nan):
            assert forms.exceeds(make(w, c, has_tail=has_tail), far, growth, slack)


def test_exceeds_bracket_measures_the_distance_only_where_the_bracket_cannot_tell():
    form = make_thresholded(np.array([3.0, 4.0]))
    form.scalars[th.LOW], form.scalars[th.HIGH] = 0.0, 100.0
    assert not th.exceeds_bracket(form, 1.0, 1.0, 2.0)  # below the slack, whatever the distance
    assert th.exceeds_bracket(form, 103.0, 1.0, 2.0)  # above, whatever the distance
    assert form.scalars[th.HIGH] == 100.0
    assert th.exceeds_bracket(form, 7.5, 1.0, 2.0)
    assert form.scalars[th.LOW] == form.scalars[th.HIGH] == 5.0
    assert not th.exceeds_bracket(form, 6.5, 1.0, 2.0)
    assert th.exceeds_bracket(form, math.inf, 1.0, 2.0)
    assert th.exceeds_bracket(form, math.nan, 1.0, 2.0)


def test_moves_are_noted_where_the_distance_is_not_known():
    form, other = make_thresholded(np.ones(2)), make_scaled(np.ones(2))
    before = other.scalars.copy()
    for _ in range(2):
        forms.note_move(form, 1.5)
        forms.note_move(other, 1.5)
    assert form.scalars[th.MOVED] == 3.0
    np.testing.assert_array_equal(other.scalars, before)


# --- the sum of all values ---


@any_storage
def test_subtract_shares_and_total(storage):
    X, shares = matrix_of(D, N), np.zeros(N)
    shares[[0, 2, 7]] = 1.0, -2.0, 0.5
    data, out = STORAGE[storage](X), np.ones(D)
    forms.subtract_shares(data, shares, out)
    np.testing.assert_allclose(out, 1.0 - shares @ X, rtol=1e-13, atol=1e-14)
    for make in (make_scaled, make_thresholded):
        form = make(np.ones(D), n_rows=N)
        form.past[:], form.shares[:] = np.arange(D), shares
        forms.total_less_shares(form, out)
        np.testing.assert_array_equal(out, np.arange(D))
        forms.total(data, form, out)
        np.testing.assert_allclose(out, np.arange(D) - shares @ X, rtol=1e-13, atol=1e-14)
        forms.current(form, out)
        np.testing.assert_array_equal(out, np.ones(D))
