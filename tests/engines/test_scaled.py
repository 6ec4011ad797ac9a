"""The scaled form, part by part, against explicit vectors."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from checks import generated, vectors
from engines.vectors import STORAGE, explicit, make_scaled, matrix_of, regularizer_of, summed
from stoic.engines.kernels import roots, rows
from stoic.engines.kernels.vectors import scaled
from stoic.engines.kernels.vectors.scaled import HOLDS, PEAK, SUM_A, TAIL, UC, UU, A, B
from stoic.regularizers import prox_in_ball

any_storage = pytest.mark.parametrize("storage", STORAGE)
both_tails = pytest.mark.parametrize("has_tail", [False, True])


def assert_sums(form, rtol=1e-9):
    """Compare what the form keeps with what it stands for."""
    s, held = form.scalars, form.held
    x = (explicit(form) - s[B] * form.c) / s[A]
    scale = rtol * (x @ x + form.c @ form.c)
    np.testing.assert_allclose(s[UU], x @ x, rtol=rtol, atol=1e-300)
    np.testing.assert_allclose(s[UC], x @ form.c, rtol=rtol, atol=scale)
    if s[HOLDS]:
        np.testing.assert_allclose(held.along_u, held.Z.T @ x, rtol=rtol, atol=scale)
        np.testing.assert_allclose(held.along_c, held.Z.T @ form.c, rtol=rtol, atol=scale)
        np.testing.assert_allclose(held.gram, held.Z.T @ held.Z, rtol=rtol)


# --- steps in the ball ---


@both_tails
@pytest.mark.parametrize("weight", [0.0, 0.7])
@generated
@given(
    w=vectors(6),
    c=vectors(6),
    a=st.floats(1e-4, 1.0),
    b=st.floats(0.0, 1.0),
    tail=st.floats(-5.0, 5.0),
    step=st.sampled_from([1e-3, 0.1, 2.0]),
    l2=st.sampled_from([0.0, 0.5, 30.0]),
    radius=st.sampled_from([1e-3, 0.5, 3.0, 100.0, math.inf]),
)
def test_settle_scaled_is_the_prox_in_the_ball(has_tail, weight, w, c, a, b, tail, step, l2, radius):
    form = make_scaled(w, c, a=a, b=b, weight=weight, has_tail=has_tail)
    ahead = np.append(w[:-1], tail) if has_tail else w
    regularizer = regularizer_of(0.0, l2, has_tail=has_tail, anchor=c, weight=weight)
    theta = scaled.settle_scaled(form, step, 0.0, l2, tail, radius, has_tail)
    expected = prox_in_ball(regularizer, ahead, step, c, radius)
    scale = max(np.linalg.norm(ahead), np.linalg.norm(c), np.linalg.norm(w), 1e-12)
    np.testing.assert_allclose(explicit(form, has_tail=has_tail), expected, rtol=0.0, atol=1e-10 * scale)
    is_free = np.linalg.norm(regularizer.prox(ahead, step) - c) <= radius * (1.0 + 1e-12)
    assert is_free or 0.0 < theta < 1.0


@both_tails
@pytest.mark.parametrize("l2", [0.0, 1.0, 1e6, 1e160])
@pytest.mark.parametrize("size", [1.0, 1e10, 1e70, 1e139])
def test_a_step_ends_on_the_edge_of_the_ball_however_far_it_went(has_tail, l2, size):
    c = np.array([1.0, 1.0, -1.0, 0.0])[: 3 + has_tail]
    ahead = c + size * np.array([1.0, -2.0, 0.5, 1.0])[: 3 + has_tail]
    form = make_scaled(ahead, c, has_tail=has_tail)
    scaled.settle_scaled(form, 0.1, 0.0, l2, size, 0.5, has_tail)
    expected = prox_in_ball(regularizer_of(0.0, l2, has_tail=has_tail), ahead, 0.1, c, 0.5)
    np.testing.assert_allclose(explicit(form, has_tail=has_tail), expected, atol=1e-9)


@pytest.mark.parametrize("largest", [1e3, 1e150])
@pytest.mark.parametrize("ridge", [0.0, 0.3, 1e4, 1e160])
def test_ball_theta_is_the_root(largest, ridge):
    sizes = [size for size in (0.0, 1e-3, 0.9, 1.1, 1e3, 1e80, 1e150) if size <= largest]
    for far, tail in itertools.product(sizes, sizes):  # in radii
        if math.hypot(far, tail) > 1.0 and far * ridge < 1e300:  # the ball is active, and θ a normal number
            theta = roots.ball_theta(far, tail, ridge)
            assert 0.0 < theta < 1.0, (far, tail)
            reached = math.hypot(theta * far * (1.0 + ridge) / (1.0 + theta * ridge), theta * tail)
            assert reached == pytest.approx(1.0, rel=1e-9), (far, tail)


def test_without_a_ball_no_step_is_shortened():
    form = make_scaled(np.full(3, 1e139))
    assert scaled.settle_scaled(form, 0.1, 0.0, 0.0, 0.0, math.inf, False) == 1.0


# --- the form made anew ---


@generated
@given(w=vectors(5), c=vectors(5), a=st.floats(1e-6, 1.0), b=st.floats(-1.0, 1.0))
def test_squared_distance_flush_and_current_scaled(w, c, a, b):
    form = make_scaled(w, c, a=a, b=b, has_tail=True)
    size = (w - c) @ (w - c)
    lost = 1e-12 * (size + c @ c + w @ w)
    np.testing.assert_allclose(explicit(form, has_tail=True), w, rtol=1e-12, atol=1e-14 * (1.0 + np.abs(c).max()))
    assert scaled.squared_distance(form) == pytest.approx(size, rel=1e-12, abs=lost)
    assert scaled.needs_flush(form, 0.1, 0.0) == (a < 1e-4)
    before = explicit(form)
    scaled.flush(form)
    assert (form.scalars[A], form.scalars[B]) == (1.0, b)
    assert not scaled.needs_flush(form, 0.1, 0.0)
    np.testing.assert_allclose(explicit(form), before, rtol=1e-12, atol=1e-14 * (1.0 + np.abs(c).max()))
    assert_sums(form)


@pytest.mark.parametrize("way", ["either", "held"])
def test_sum_up_computes_the_products_anew(way):
    Z = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, -1.0]])
    form = make_scaled(np.array([1.0, 2.0, -3.0]), np.array([0.5, 1.0, 1.0]), a=0.5, Z=Z)
    scaled.hold(form, np.array([1.0, 3.0]), 0.25)
    w = explicit(form)
    form.scalars[UU], form.scalars[UC], form.held.along_u[:] = 1e9, -1e9, 7.0  # what rounding may leave
    {"either": scaled.sum_up, "held": scaled.sum_up_held}[way](form)
    assert_sums(form, 1e-14)
    assert way == "held" or form.scalars[PEAK] == form.scalars[UU]
    np.testing.assert_array_equal(explicit(form), w)


def test_a_form_that_was_far_out_sums_up_when_it_is_back():
    X = STORAGE["dense"](np.eye(2))
    form = make_scaled(np.array([1e9, 1.0]), np.array([0.3, 0.1]))
    for factor in (-1e9, 1e-3):
        scaled.add_scaled(X, form, 0, factor)
        scaled.settle_scaled(form, 0.1, 0.0, 0.0, 0.0, math.inf, False)
    assert_sums(form, 1e-12)


# --- rows ---


@any_storage
def test_scaled_product_and_add_scaled(storage):
    rng, X = np.random.default_rng(0), matrix_of(7)
    data, w, c = STORAGE[storage](X), rng.standard_normal(7), rng.standard_normal(7)
    for b in (0.0, 0.9):
        form = make_scaled(w, c, a=0.3, b=b, Z=rng.standard_normal((7, 2)))
        value = w.copy()
        for row, q in itertools.product(range(len(X)), ([0.0, 0.0], [1.0, -0.5])):
            assert scaled.scaled_product(data, form, row) == pytest.approx(X[row] @ value, rel=1e-12, abs=1e-12)
            scaled.add_scaled(data, form, row, 0.7)
            value = value + 0.7 * X[row]
            if any(q):
                scaled.hold(form, np.array(q), 0.2)
                value = value + 0.2 * form.held.Z @ q
            np.testing.assert_allclose(explicit(form), value, rtol=1e-12, atol=1e-12)
        assert_sums(form)


@any_storage
def test_products_with_the_center_are_computed_once(storage):
    X, c = matrix_of(4), np.arange(4.0)
    data, form = STORAGE[storage](X), make_scaled(np.ones(4), np.arange(4.0))
    for row in (0, 2, 0):
        assert scaled.product_with_center(data, form, row) == pytest.approx(X[row] @ c, rel=1e-14)
    assert np.flatnonzero(~np.isnan(form.along_c)).tolist() == [0, 2]
    form.along_c[0] = 77.0
    assert scaled.product_with_center(data, form, 0) == 77.0
    centered = make_scaled(np.ones(4), np.zeros(4), n_rows=0)
    assert scaled.product_with_center(data, centered, 0) == 0.0


# --- what is held ---


@any_storage
def test_what_is_held_counts_as_a_part_of_u(storage):
    rng, X = np.random.default_rng(1), matrix_of(5)
    data, Z, w = STORAGE[storage](X), rng.standard_normal((5, 3)), rng.standard_normal(5)
    form = make_scaled(w, rng.standard_normal(5), a=0.4, b=0.8, Z=Z)
    assert scaled.held_at(form, 0, np.ones(3)) == 0.0  # not in use
    scaled.begin_to_hold(form)
    form.scalars[HOLDS] = 1.0
    assert_sums(form)
    q = np.array([1.0, 0.0, -2.0])
    scaled.hold(form, q, -0.3)
    assert_sums(form)
    np.testing.assert_allclose(explicit(form), w - 0.3 * Z @ q, rtol=1e-12)
    np.testing.assert_allclose(form.held.beta, -0.3 * q / 0.4)
    for k in range(5):
        assert scaled.held_at(form, k, q) == pytest.approx(Z[k] @ q)
    for row in range(len(X)):
        scaled.know_held(data, form, row)
        np.testing.assert_allclose(form.held.along_rows[row], X[row] @ Z, rtol=1e-12, atol=1e-14)
        expected = X[row] @ Z @ form.held.beta
        assert scaled.product_with_held(data, form, row) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("zero", [0, None])  # a column of Z that is 0
def test_let_go_makes_what_was_held_a_part_of_u_and_it_can_be_held_again(zero):
    rng, X = np.random.default_rng(4), STORAGE["dense"](matrix_of(5))
    Z, w, c = rng.standard_normal((5, 3)), rng.standard_normal(5), rng.standard_normal(5)
    if zero is not None:
        Z[:, zero] = 0.0
    form = make_scaled(w, c, a=0.4, b=0.8, Z=Z)
    for _ in range(3):
        scaled.hold(form, np.array([1.0, 0.0, -2.0]), -0.3)
        scaled.settle_scaled(form, 0.1, 0.0, 0.5, 0.0, math.inf, False)
        scaled.add_scaled(X, form, 2, 0.1)
        assert_sums(form)
        w, past = explicit(form), summed(X, form)
        scaled.let_go(form)
        np.testing.assert_allclose(explicit(form), w, rtol=1e-12)
        np.testing.assert_allclose(summed(X, form), past, rtol=1e-12)
        assert form.scalars[HOLDS] == np.abs(form.held.beta).max() == np.abs(form.held.past).max() == 0.0
        assert_sums(form)


def test_a_form_that_is_new_is_not_flushed():
    form = make_scaled(np.array([1.0, 2.0]), np.array([0.5, 1.0]))
    form.scalars[UU] = 7.0
    scaled.flush(form)
    assert form.scalars[UU] == 7.0


def test_held_or_along_columns_a_step_leads_to_the_same_vector_and_sum():
    rng, X = np.random.default_rng(2), STORAGE["dense"](matrix_of(6))
    Z, w, c = rng.standard_normal((6, 2)), rng.standard_normal(6), rng.standard_normal(6)
    Z[[1, 4]] = 0.0
    columns = np.flatnonzero(Z.any(axis=1)).astype(np.uint32)
    holding, packed = make_scaled(w, c, Z=Z), make_scaled(w, c)
    for t in range(300):
        q, radius = rng.random(2), 1.0 if t % 3 else math.inf
        for form in (holding, packed):
            if scaled.needs_flush(form, 0.1, 0.0):
                scaled.flush(form)
            scaled.add_scaled(X, form, t % 6, 0.1)
            if form is holding:
                scaled.hold(form, q, -0.05)
            else:
                scaled.add_scaled_columns(form, columns, np.ascontiguousarray(Z[columns]), q, -0.05)
            scaled.settle_scaled(form, 0.05, 0.0, 0.4, 0.0, radius, False)
    for form in (holding, packed):
        assert_sums(form)
    np.testing.assert_allclose(explicit(holding), explicit(packed), rtol=1e-10)
    np.testing.assert_allclose(summed(X, holding), summed(X, packed), rtol=1e-10, atol=1e-10)


# --- the sum of all values ---


@any_storage
@both_tails
@pytest.mark.parametrize("l2", [0.0, 0.5, 50.0])
@pytest.mark.parametrize("radius", [0.3, math.inf])
@pytest.mark.parametrize("holds", [False, True])
def test_total_scaled_less_the_shares_is_the_sum_of_all_values(storage, has_tail, l2, radius, holds):
    rng, X = np.random.default_rng(3), matrix_of(5)
    data, w, Z = STORAGE[storage](X), rng.standard_normal(5 + has_tail), rng.standard_normal((5, 2))
    form, seen, tails = make_scaled(w, w, has_tail=has_tail, Z=Z if holds else None), np.zeros(5), 0.0
    s = form.scalars
    for row in rng.integers(0, len(X), 60):
        scaled.add_scaled(data, form, row, -0.1)
        if holds and row % 2:
            scaled.hold(form, np.array([0.3, 0.7]), 0.1)
        scaled.settle_scaled(form, 0.1, 0.0, l2, s[TAIL] + 0.2, radius, has_tail)
        seen, tails = seen + explicit(form), tails + s[TAIL]
        if scaled.needs_flush(form, 0.1, 0.0):
            scaled.flush(form)
    out = np.empty(5)
    scaled.total_scaled(form, out)
    np.testing.assert_allclose(out - form.shares @ X, seen, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(summed(data, form), seen, rtol=1e-9, atol=1e-11)
    assert s[scaled.SUM_TAIL] == pytest.approx(tails)


def test_the_share_of_a_row_is_the_sum_of_scales_times_its_factor():
    X, form = STORAGE["csr"](np.eye(3)), make_scaled(np.zeros(3))
    form.scalars[A], form.scalars[SUM_A] = 0.5, 4.0
    scaled.add_scaled(X, form, 1, 3.0)
    assert form.shares.tolist() == [0.0, 24.0, 0.0, 0.0, 0.0, 0.0]
    assert form.u.tolist() == [0.0, 6.0, 0.0]
    assert rows.dot(X, 1, form.u) == 6.0
    out = np.empty(3)
    scaled.current_scaled(form, out)
    assert out.tolist() == [0.0, 3.0, 0.0]
