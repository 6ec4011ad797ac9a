"""Each kernel does what its plain twin does, on generated inputs, ties, zeros, huge and infinite numbers."""

import ast
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import stoic
from checks import generated, vectors
from stoic.engines.translation import translate
from stoic.kernels import (
    batches,
    civr,
    jit,
    losses,
    mscg,
    outers,
    robust,
    rosc,
    rosc_l1,
    rows,
    scaled,
    thresholded,
    tracking,
)
from stoic.kernels.scaled import N_SCALARS, SUM_TAIL, TAIL, TAIL_C, UC, UU, A, B, Scaled
from stoic.regularizers import LeavingLast, prox_in_ball
from stoic.truncation import truncate

ROOT = Path(__file__).parents[2]
HUGE = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e-160, 1e8, -1e8, 1e160, -1e160, 1e308, -1e308, math.inf, -math.inf)

# --- rows: the compiled forms against the bodies that Python runs ---


@jit.kernel
def compiled_dot(X, row, u):
    return rows.dot(X, row, u)


@jit.kernel
def compiled_squared_norm(X, row, work):
    return rows.squared_norm(X, row, work)


@jit.kernel
def compiled_push(X, row, factor, u, h, share):
    return rows.push(X, row, factor, u, h, share)


@jit.kernel
def compiled_clear(X, row, u):
    rows.clear(X, row, u)


def read_only(array):
    array.flags.writeable = False
    return array


def as_dense(X):
    return rows.Dense(read_only(np.ascontiguousarray(X)))


def as_csr(X, *, doubled=False):
    matrix = sp.csr_array(X)
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    if doubled:  # entries in two parts, which are to count as their sum
        indptr, indices = 2 * indptr, np.repeat(indices, 2)
        data = np.repeat(data, 2) * np.tile([0.25, 0.75], matrix.nnz)
    return rows.CSR(read_only(indptr.astype(np.int32)), read_only(indices.astype(np.uint32)), read_only(data))


FORMS = {"dense": as_dense, "csr": as_csr, "doubled": functools.partial(as_csr, doubled=True)}
any_form = pytest.mark.parametrize("form", FORMS)


def matrices(d):
    """Return rows of every kind: generated, empty, one entry, all ones."""
    rng = np.random.default_rng(d)
    X = np.where(rng.random((6, d)) < 0.6, rng.standard_normal((6, d)), 0.0)
    X[1], X[2], X[3] = 0.0, 1.0, np.eye(d)[d - 1]
    return X


@any_form
@pytest.mark.parametrize("d", [*range(1, 18), 40])
def test_dot_and_squared_norm(form, d):
    X, u = matrices(d), np.random.default_rng(1).standard_normal(d)
    data, work = FORMS[form](X), np.zeros(d)
    for row in range(len(X)):
        scale = 1e-14 * (1.0 + np.abs(X[row]) @ np.abs(u))
        assert compiled_dot(data, row, u) == pytest.approx(rows.dot(data, row, u), abs=scale)
        assert rows.dot(data, row, u) == pytest.approx(X[row] @ u, abs=scale)
        squared = pytest.approx(X[row] @ X[row], rel=1e-14)
        assert compiled_squared_norm(data, row, work) == squared
        assert rows.squared_norm(data, row, work) == squared
        assert not work.any()


@any_form
@pytest.mark.parametrize("d", [*range(1, 18), 40])
def test_push_and_clear(form, d):
    X, rng = matrices(d), np.random.default_rng(2)
    data = FORMS[form](X)
    for row in range(len(X)):
        u, h = rng.standard_normal(d), rng.standard_normal(d)
        ours, theirs = (u.copy(), h.copy()), (u.copy(), h.copy())
        gain = compiled_push(data, row, 0.7, *ours, 3.0)
        assert gain == pytest.approx(rows.push(data, row, 0.7, *theirs, 3.0), abs=1e-12)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(ours, (u + 0.7 * X[row], h + 2.1 * X[row]), rtol=1e-13, atol=1e-14)
        compiled_clear(data, row, ours[0]), rows.clear(data, row, theirs[0])
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-13, atol=1e-14)
        assert not ours[0][X[row] != 0.0].any()


@any_form
def test_push_into_one_vector_twice_leaves_its_second_use_alone(form):
    X, work = matrices(5), np.zeros(5)
    assert compiled_push(FORMS[form](X), 0, 2.0, work, work, 0.0) == pytest.approx(4.0 * X[0] @ X[0])
    np.testing.assert_allclose(work, 2.0 * X[0])


@any_form
def test_rows_in_single_precision_are_summed_in_double(form):
    X, u = matrices(9).astype(np.float32), np.full(9, 1.0 + 1e-12)
    if form == "dense":
        data = rows.Dense(read_only(X))
        assert compiled_dot(data, 0, u) == pytest.approx(X[0].astype(float) @ u, rel=1e-15)


# --- losses ---

LOSSES = [
    stoic.Squared(),
    stoic.Huber(1.5),
    stoic.Huber(1e-3),
    stoic.Absolute(0.1),
    stoic.Absolute(1e3),
    stoic.Quantile(0.7, 0.1),
    stoic.Quantile(0.01, 2.0),
    stoic.Logistic(),
]
any_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def loss_code(loss):
    problem = stoic.Problem(stoic.GroupLoss(np.eye(2), [1.0, -1.0], loss=loss), stoic.Linear())
    return translate(problem, problem.inner).data.loss


def targets_of(loss):
    return (1.0, -1.0) if isinstance(loss, stoic.Logistic) else (0.0, 1.0, -2.5, 1e200, -1e308)


@np.errstate(all="ignore")
def check_loss(loss, prediction, target):
    code, t, y = loss_code(loss), np.array([prediction]), np.array([target])
    value, slope = losses.loss_value(code, prediction, target), losses.loss_slope(code, prediction, target)
    np.testing.assert_allclose(value, loss.value(t, y)[0], rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(slope, loss.derivative(t, y)[0], rtol=1e-13, atol=1e-300)


@any_loss
@generated
@given(prediction=st.floats(-1e3, 1e3), target=st.floats(-1e3, 1e3))
def test_loss_value_and_loss_slope(loss, prediction, target):
    check_loss(loss, prediction, math.copysign(1.0, target) if isinstance(loss, stoic.Logistic) else target)


@any_loss
@pytest.mark.parametrize("prediction", HUGE)
def test_losses_of_huge_and_infinite_predictions(loss, prediction):
    for target in targets_of(loss):
        check_loss(loss, prediction, target)


@any_loss
def test_the_loss_of_a_prediction_that_is_not_a_number_is_none(loss):
    check_loss(loss, math.nan, 1.0)


# --- outer functions ---

TEMPERATURES = (1e-8, 1e-3, 1.0, 50.0, 1e8)
U = {
    "ties": [1.0, 1.0, 1.0, 1.0],
    "two at the top": [3.0, 0.0, 3.0, 1.0],
    "zeros": [0.0, 0.0, 0.0, 0.0],
    "spread": [0.1, 5.0, 2.0, 30.0],
    "close": [1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1.0],
    "huge": [1e300, 2.0, 1e308, 1e307],
    "opposite": [-1e308, 1e308, 0.0, 1.0],
    "one infinite": [1.0, math.inf, 2.0, 3.0],
    "two infinite": [math.inf, 1.0, math.inf, 3.0],
    "all infinite": [math.inf] * 4,
    "minus infinite": [-math.inf, 1.0, 2.0, 3.0],
    "not a number": [1.0, math.nan, 2.0, 3.0],
    "not a number where the prior is zero": [1.0, 3.0, math.nan, 2.0],
    "infinite where the prior is zero": [1.0, 3.0, math.inf, 2.0],
}
OUTERS = {
    "linear": lambda t: stoic.Linear(),
    "weighted": lambda t: stoic.Linear([0.5, -1.0, 0.0, 2.0]),
    "logsumexp": stoic.LogSumExp,
    "prior": lambda t: stoic.LogSumExp(t, prior=[1.0, 2.0, 0.0, 1e-3]),
    "cvar-0.1": lambda t: stoic.SmoothCVaR(0.1, t),
    "cvar-0.5": lambda t: stoic.SmoothCVaR(0.5, t),
    "cvar-0.6": lambda t: stoic.SmoothCVaR(0.6, t),
    "cvar-1": lambda t: stoic.SmoothCVaR(1.0, t),
}
any_outer = pytest.mark.parametrize("name", OUTERS)


def outer_code(outer, p):
    problem = stoic.Problem(stoic.GroupLoss(np.eye(p), np.ones(p), np.arange(p)), outer)
    return translate(problem, problem.inner).outer


@np.errstate(all="ignore")
def check_outer(outer, u):
    q = np.empty(len(u))
    outers.outer_gradient(outer_code(outer, len(u)), u, q)
    np.testing.assert_allclose(q, outer.gradient(u), rtol=1e-12, atol=1e-15)


@any_outer
@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("kind", U)
def test_outer_gradient_at_the_edges(name, temperature, kind):
    check_outer(OUTERS[name](temperature), np.array(U[kind]))


@any_outer
@generated
@given(u=vectors(4, 1e3), log_temperature=st.floats(-8.0, 8.0))
def test_outer_gradient(name, u, log_temperature):
    check_outer(OUTERS[name](10.0**log_temperature), u)


@pytest.mark.parametrize("p", [1, 2, 5, 40, 200])
@pytest.mark.parametrize("level", [0.01, 0.25, 0.5, 0.9, 1.0])
def test_threshold_and_tail_sum_give_capped_weights(p, level):
    u = np.random.default_rng(p).standard_normal(p) * 3.0
    check_outer(stoic.SmoothCVaR(level, 0.5), u)
    capacity = max(1.0, level * p)
    top, factor = outers.threshold(u, capacity, 0.5)
    q = np.where(u > top, 1.0, factor * np.exp((np.minimum(u, top) - top) / 0.5))
    assert q.max() <= 1.0 + 1e-12
    assert q.sum() == pytest.approx(capacity)
    ordered = np.sort(u)[::-1]
    for k in range(p):
        assert outers.tail_sum(ordered, k, 0.5) == pytest.approx(np.exp((ordered[k:] - ordered[k]) / 0.5).sum())


def test_scaled_below_is_zero_at_the_top_even_where_it_is_infinite():
    assert outers.scaled_below(math.inf, math.inf, 1e-8) == 0.0
    assert outers.scaled_below(1.0, 1.0, 1e-320) == 0.0
    assert outers.scaled_below(1.0, 3.0, 4.0) == -0.5
    assert outers.scaled_below(1.0, math.inf, 4.0) == -math.inf


# --- the scaled form against explicit vectors ---


def make_form(u, c, a, b, tail=0.0, tail_c=0.0):
    scalars = np.zeros(N_SCALARS)
    scalars[:5] = a, b, u @ u, u @ c, c @ c
    scalars[TAIL], scalars[TAIL_C] = tail, tail_c
    return Scaled(u.copy(), read_only(c.copy()), np.zeros(u.size), np.zeros(u.size), scalars)


def explicit(form, *, has_tail=False):
    w = np.empty(form.u.size)
    scaled.current(form, w)
    return np.append(w, form.scalars[TAIL]) if has_tail else w


def check_settle(u, c, a, b, *, tail, has_tail, step, alpha, radius):
    form = make_form(u, c, a, b, 0.3 if has_tail else 0.0, -0.2 if has_tail else 0.0)
    ahead, center = a * u + b * c, c
    regularizer = stoic.L2(alpha)
    if has_tail:
        ahead, center, regularizer = np.append(ahead, tail), np.append(c, -0.2), LeavingLast(regularizer, 1)
    expected = prox_in_ball(regularizer, ahead, step, center, radius)
    theta = scaled.settle(form, step, alpha, tail, radius, has_tail)
    scale = max(np.linalg.norm(ahead), np.linalg.norm(center), 1e-12)
    np.testing.assert_allclose(explicit(form, has_tail=has_tail), expected, rtol=0.0, atol=1e-10 * scale)
    free = np.linalg.norm(regularizer.prox(ahead, step) - center) <= radius * (1.0 + 1e-12)
    assert free or 0.0 < theta < 1.0
    return form


@pytest.mark.parametrize("has_tail", [False, True])
@generated
@given(
    u=vectors(5),
    c=vectors(5),
    a=st.floats(1e-4, 1.0),
    b=st.floats(0.0, 1.0),
    tail=st.floats(-5.0, 5.0),
    step=st.sampled_from([1e-3, 0.1, 2.0]),
    alpha=st.sampled_from([0.0, 0.5, 30.0]),
    radius=st.sampled_from([1e-3, 0.5, 3.0, 100.0, math.inf]),
)
def test_settle_is_the_prox_in_the_ball(has_tail, u, c, a, b, tail, step, alpha, radius):
    check_settle(u, c, a, b, tail=tail, has_tail=has_tail, step=step, alpha=alpha, radius=radius)


@pytest.mark.parametrize("has_tail", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 1e6, 1e160])
@pytest.mark.parametrize("size", [1.0, 1e10, 1e70, 1e140])
def test_settle_ends_on_the_edge_of_the_ball_however_far_the_step_went(has_tail, alpha, size):
    u, c = size * np.array([1.0, -2.0, 0.5]), np.array([1.0, 1.0, -1.0])
    form = make_form(u, c, 1.0, 1.0)
    ahead, center, regularizer = u + c, c, stoic.L2(alpha)
    if has_tail:
        ahead, center, regularizer = np.append(ahead, size), np.append(c, 0.0), LeavingLast(regularizer, 1)
    scaled.settle(form, 0.1, alpha, size if has_tail else 0.0, 0.5, has_tail)
    expected = prox_in_ball(regularizer, ahead, 0.1, center, 0.5)
    np.testing.assert_allclose(explicit(form, has_tail=has_tail), expected, atol=1e-9)


@pytest.mark.parametrize("largest", [1e3, 1e150])
@pytest.mark.parametrize("ridge", [0.0, 0.3, 1e4, 1e160])
def test_ball_theta_is_the_root(largest, ridge):
    sizes = [size for size in (0.0, 1e-3, 0.9, 1.1, 1e3, 1e80, 1e150) if size <= largest]
    for far, tail in itertools.product(sizes, sizes):  # in radii
        if math.hypot(far, tail) > 1.0 and far * ridge < 1e300:  # the ball is active, and θ a normal number
            theta = scaled.ball_theta(far, tail, ridge)
            assert 0.0 < theta < 1.0, (far, tail)
            reached = math.hypot(theta * far * (1.0 + ridge) / (1.0 + theta * ridge), theta * tail)
            assert reached == pytest.approx(1.0, rel=1e-9), (far, tail)


@generated
@given(u=vectors(4), c=vectors(4), a=st.floats(1e-6, 1.0), b=st.floats(-1.0, 1.0))
def test_squared_distance_flush_and_current(u, c, a, b):
    form = make_form(u, c, a, b, tail=2.0, tail_c=0.5)
    w = a * u + b * c
    np.testing.assert_allclose(explicit(form), w, rtol=1e-15, atol=1e-300)
    size = (w - c) @ (w - c) + 2.25
    assert scaled.squared_distance(form) == pytest.approx(size, rel=1e-12, abs=1e-12 * (u @ u + c @ c))
    assert scaled.needs_flush(form) == (a < 1e-4)
    scaled.flush(form)
    assert form.scalars[A] == 1.0
    assert form.scalars[B] == b
    assert not scaled.needs_flush(form)
    np.testing.assert_allclose(explicit(form), w, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(form.scalars[UU], form.u @ form.u, rtol=1e-12, atol=1e-280)
    np.testing.assert_allclose(form.scalars[UC], form.u @ form.c, rtol=1e-9, atol=1e-12 * (a * (u @ u) + c @ c))


def test_sum_up_computes_the_products_anew():
    u, c = np.array([1.0, 2.0, -3.0]), np.array([0.5, 1.0, 1.0])
    form = make_form(u, c, 0.5, 1.0)
    form.scalars[UU], form.scalars[UC] = 1e9, -1e9  # what rounding may leave
    scaled.sum_up(form)
    assert (form.scalars[UU], form.scalars[UC]) == (14.0, -0.5)
    np.testing.assert_array_equal(explicit(form), 0.5 * u + c)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 50.0])
@pytest.mark.parametrize("radius", [0.3, math.inf])
def test_total_is_the_sum_of_all_values(alpha, radius):
    rng = np.random.default_rng(3)
    X, w = as_dense(rng.standard_normal((40, 5))), rng.standard_normal(5)
    form = make_form(np.zeros(5), w, 1.0, 1.0)
    s, seen, tails = form.scalars, np.zeros(5), 0.0
    for row in range(40):
        s[UU] += compiled_push(X, row, -0.1 / s[A], form.u, form.h, s[scaled.SUM_A])
        s[UC] += -0.1 / s[A] * compiled_dot(X, row, w)
        scaled.settle(form, 0.1, alpha, s[TAIL] + 0.2, radius, True)
        seen, tails = seen + explicit(form), tails + s[TAIL]
        if scaled.needs_flush(form):
            scaled.flush(form)
    summed = np.empty(5)
    scaled.total(form, summed)
    np.testing.assert_allclose(summed, seen, rtol=1e-10, atol=1e-12)
    assert s[SUM_TAIL] == pytest.approx(tails)


# --- batches and the parts of solvers, against the inner part of the plain engine ---


def setting(*, intercept, m=3, sparse=False, loss="huber"):
    """Return an inner part, its data for kernels, a batch, and w as vector and as scaled form."""
    rng = np.random.default_rng(9)
    X = np.where(rng.random((30, 6)) < 0.7, rng.standard_normal((30, 6)), 0.0)
    X = sp.csr_array(X) if sparse else X
    inner = stoic.GroupLoss(X, 3.0 * rng.standard_normal(30), np.arange(30) % 3, loss=loss, intercept=intercept)
    data = translate(stoic.Problem(inner, stoic.Linear()), inner).data
    w, batch = rng.standard_normal(6 + intercept), inner.draw(m, rng)
    form = make_form(w[:6] / 0.25, np.zeros(6), 0.25, 0.0, tail=float(w[-1]) if intercept else 0.0)
    return inner, data, batch, w, form


both_tails = pytest.mark.parametrize("intercept", [False, True])
both_forms = pytest.mark.parametrize("sparse", [False, True])


@both_tails
@both_forms
@pytest.mark.parametrize("m", [1, 3])
def test_predict_mean_losses_slopes_of_losses_and_slopes_and_move(intercept, sparse, m):
    inner, data, batch, w, form = setting(intercept=intercept, sparse=sparse, m=m)
    predictions = inner._design.predict(w, batch)
    for place in np.ndindex(predictions.shape):
        assert batches.predict(data, form, batch.rows[place]) == pytest.approx(predictions[place], rel=1e-12)
    y, again, slopes, others = np.empty(3), np.empty(3), np.empty((3, m)), np.empty((3, m))
    batches.mean_losses(data, form, batch.rows, y)
    batches.slopes_of(data, form, batch.rows, slopes)
    batches.losses_and_slopes(data, form, batch.rows, again, others)
    np.testing.assert_allclose(y, inner.value(w, batch)[0], rtol=1e-12)
    np.testing.assert_array_equal(again, y)
    np.testing.assert_array_equal(others, slopes)
    q = np.array([0.2, 0.0, 0.8])
    v = inner.vjp(w, batch, q)
    tail = batches.move(data, form, batch.rows, slopes, q, 0.1)
    np.testing.assert_allclose(explicit(form), (w - 0.1 * v)[:6], rtol=1e-11)
    assert form.scalars[UU] == pytest.approx(form.u @ form.u)
    if intercept:
        assert tail == pytest.approx(v[-1])
    squared = mscg.squared_gradient(data, batch.rows, slopes, q, work := np.zeros(6))
    assert squared == pytest.approx(v @ v)
    assert not work.any()


@both_forms
def test_products_of_all_rows(sparse):
    inner, data, _, w, _ = setting(intercept=False, sparse=sparse)
    out = np.empty(30)
    batches.products(data.X, read_only(w.copy()), out)
    np.testing.assert_allclose(out, inner.X @ w, rtol=1e-12, atol=1e-14)


def reference_for(inner, data, w0, z):
    end = data.X.values.shape[1] if isinstance(data.X, rows.Dense) else 6
    body, has_tail = np.ascontiguousarray(z[:, :end]), inner.intercept
    tail = z[:, end].copy() if has_tail else np.zeros(len(z))
    flat = sp.csr_array(body)
    entries = rows.CSR(flat.indptr.astype(np.int64), flat.indices.astype(np.uint32), flat.data)
    y = np.array([1.0, 2.0, 3.0])
    return rosc.Reference(
        y, read_only(body), entries, tail, float(np.vdot(z, z)), body @ w0[:end], 1.0, 1.0, 0.0, 0.0
    )


@both_tails
@both_forms
@pytest.mark.parametrize("m", [1, 3])
def test_know_evaluate_keeps_squared_mean_move_along_and_move_to_reference(intercept, sparse, m):
    inner, data, batch, w, _ = setting(intercept=intercept, sparse=sparse, m=m)
    rng = np.random.default_rng(4)
    w0, z0 = rng.standard_normal(w.size), rng.standard_normal((3, w.size))
    reference, work = reference_for(inner, data, w0, z0), np.zeros(6)
    numbers = rosc.RowNumbers(*(np.full(30, np.nan) for _ in range(3)))
    u = (w[:6] - 0.9 * w0[:6]) / 0.5
    tails = (float(w[-1]), float(w0[-1])) if intercept else (0.0, 0.0)
    form = make_form(u, w0[:6], 0.5, 0.9, *tails)
    y, slopes = np.empty(3), np.empty((3, m))
    rosc.evaluate(data, reference, numbers, form, batch.rows, y, slopes, work)
    np.testing.assert_allclose(y, inner.value(w, batch)[0], rtol=1e-12)
    z = inner.jacobian(w, batch)[0]
    for group, row in itertools.product(range(3), range(m)):
        place = batch.rows[group, row]
        x = np.append(inner.X[[place]].toarray()[0] if sparse else inner.X[place], [1.0] * intercept)
        assert numbers.dot_c[place] == pytest.approx(x[:6] @ w0[:6])
        assert numbers.dot_z[place] == pytest.approx(x @ z0[group])
        assert numbers.squared[place] == pytest.approx(x @ x)
    for group in range(3):
        squared = rosc.squared_mean(data, batch.rows[group], slopes[group], work)
        assert squared == pytest.approx(z[group] @ z[group])
    far = np.linalg.norm(z - z0)
    for radius in (0.0, far * (1.0 - 1e-9), far * (1.0 + 1e-9), 100.0 * far, math.inf):
        kept = rosc.keeps(data, reference, numbers, batch.rows, slopes, radius, work)
        assert kept == (far <= radius)
    assert not work.any()
    q = np.array([0.3, 0.0, 0.7])
    for estimate in (z, z0):
        moved = Scaled(form.u.copy(), form.c, form.h.copy(), form.past, form.scalars.copy())
        if estimate is z:
            tail = rosc.move_along(data, numbers, moved, batch.rows, slopes, q, 0.1)
        else:
            tail = rosc.move_to_reference(reference, moved, q, 0.1)
        v = estimate.T @ q
        np.testing.assert_allclose(explicit(moved), (w - 0.1 * v)[:6], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(moved.scalars[UU], moved.u @ moved.u)
        np.testing.assert_allclose(moved.scalars[UC], moved.u @ moved.c)
        if intercept:
            assert tail == pytest.approx(v[-1])


def test_know_computes_the_numbers_of_one_row():
    inner, data, _, w, _ = setting(intercept=True)
    z = np.arange(21.0).reshape(3, 7)
    numbers = rosc.RowNumbers(*(np.full(30, np.nan) for _ in range(3)))
    rosc.know(data, reference_for(inner, data, w, z), numbers, w[:6].copy(), 4, 1, np.zeros(6))
    assert np.flatnonzero(~np.isnan(numbers.squared)).tolist() == [4]
    assert numbers.dot_z[4] == pytest.approx(np.append(inner.X[4], 1.0) @ z[1])


@pytest.mark.parametrize("y", [[0.0, 0.0], [3.0, 4.0], [math.inf, 0.0], [math.nan, 0.0], [1e200, 0.0]])
@pytest.mark.parametrize("radius", [0.0, 5.0, 4.999, math.inf])
def test_within_decides_as_truncate_does(y, radius):
    y, reference = np.array(y), np.zeros(2)
    assert rosc.within(y, reference, radius) == (not truncate(y, reference, radius)[1])


@both_tails
@both_forms
def test_correct_moves_y_and_z_by_the_change_of_one_row(intercept, sparse):
    inner, data, batch, w, _ = setting(intercept=intercept, sparse=sparse, m=1)
    before, y, z = w + 0.5, np.arange(3.0), np.ones((3, w.size))
    expected_y = y + inner.value(w, batch)[0] - inner.value(before, batch)[0]
    expected_z = z + inner.jacobian(w, batch)[0] - inner.jacobian(before, batch)[0]
    for i in range(3):
        civr.correct(data, batch.rows[i, 0], w, before, y, z[i], i, 1)
    np.testing.assert_allclose(y, expected_y, rtol=1e-12)
    np.testing.assert_allclose(z, expected_z, rtol=1e-11, atol=1e-13)


@both_tails
@both_forms
def test_block_losses_and_move_shares_follow_the_blocks_of_the_plain_engine(intercept, sparse):
    inner, data, batch, w, form = setting(intercept=intercept, sparse=sparse, m=8)
    bounds, q, shares = np.array([0, 3, 6, 8]), np.array([0.2, 0.0, 0.8]), np.array([0.5, 0.0, 0.5])
    found, slopes = np.empty((3, 3)), np.empty((3, 8))
    robust.block_losses(data, form, bounds, batch.rows, found)
    np.testing.assert_allclose(found, inner.value(w, batch, 3), rtol=1e-12)
    batches.slopes_of(data, form, batch.rows, slopes)
    v = np.tensordot(shares, inner.jacobian(w, batch, 3), axes=1).T @ q
    tail = robust.move_shares(data, form, bounds, batch.rows, slopes, shares, q, 0.1)
    np.testing.assert_allclose(explicit(form), (w - 0.1 * v)[:6], rtol=1e-11)
    assert form.scalars[UU] == pytest.approx(form.u @ form.u)
    assert tail == pytest.approx(v[-1]) or not intercept


def test_dot_of_two_vectors():
    x, y = np.arange(5.0), np.array([1.0, -1.0, 0.5, 2.0, 0.0])
    assert robust.dot_of(x, y) == x @ y
    assert robust.dot_of(x[:0], y[:0]) == 0.0


@both_tails
@both_forms
@pytest.mark.parametrize("m", [1, 3])
def test_evaluate_thresholded_and_keeps_thresholded(intercept, sparse, m):
    inner, data, batch, w, _ = setting(intercept=intercept, sparse=sparse, m=m)
    rng = np.random.default_rng(4)
    w0, z0 = rng.standard_normal(w.size), rng.standard_normal((3, w.size))
    table, scalars = np.zeros((thresholded.N_LINES, 4)), np.zeros(thresholded.N_SCALARS)
    table[0, thresholded.P], scalars[thresholded.NORM_C] = 1.0, np.linalg.norm(w0[:6])
    if intercept:
        scalars[thresholded.TAIL], scalars[thresholded.TAIL_C] = w[-1], w0[-1]
    form = thresholded.Thresholded(w[:6].copy(), w0[:6].copy(), np.zeros(6), np.zeros(6), table, scalars)
    assert thresholded.measure(form) == pytest.approx(np.linalg.norm(w - w0))
    numbers = rosc.RowNumbers(*(np.full(30, np.nan) for _ in range(3)))
    y, slopes, work = np.empty(3), np.empty((3, m)), np.zeros(6)
    reference = reference_for(inner, data, w0, z0)
    rosc_l1.evaluate_thresholded(data, reference, numbers, form, batch.rows, y, slopes, work)
    np.testing.assert_allclose(y, inner.value(w, batch)[0], rtol=1e-12)
    far, distance = np.linalg.norm(inner.jacobian(w, batch)[0] - z0), np.linalg.norm(w - w0)
    for share in (0.0, 1.0 - 1e-9, 1.0 + 1e-9, 10.0):
        levels = reference._replace(L_g=0.5 * share * far / distance, slack_z=0.5 * share * far)
        kept = rosc_l1.keeps_thresholded(data, levels, numbers, form, batch.rows, slopes, work)
        assert kept == (share > 1.0)
    assert not work.any()


@both_forms
def test_forget_clears_what_the_step_before_moved(sparse):
    _, data, batch, _, _ = setting(intercept=False, sparse=sparse, m=1)
    drawn = np.stack([batch.rows, batch.rows])[:, None]
    for t in (0, 1):
        last = np.zeros(6)
        for i in range(3):
            compiled_push(data.X, batch.rows[i, 0], 1.0, last, last, 0.0)
        tracking.forget(data, drawn, t, last)
        assert not last.any()


# --- no kernel without a test ---

STEPS = {  # run by whole solves, in tests/engines
    "rosc_steps": "rosc",
    "mscg_steps": "mscg",
    "clipped_sgd_steps": "clipped-sgd",
    "scgd_steps": "scgd",
    "asc_pg_steps": "asc-pg",
    "scsc_steps": "scsc",
    "civr_steps": "civr",
    "rosc_l1_steps": "rosc",  # with L1 and elastic net
    "robust_mscg_steps": "mscg",  # in test_robust_and_boosted.py
}


def public_kernels():
    for path in sorted((ROOT / "src" / "stoic" / "kernels").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and path.stem != "jit":
                yield f"{path.stem}.{node.name}"


def named_in_tests():
    """Return every name that the code of a test of kernels uses; text and comments do not count."""
    names = set()
    for path in (
        Path(__file__),
        *(ROOT / "tests" / "engines").glob("*.py"),
        *(ROOT / "tests" / "twins").glob("*.py"),
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names |= {getattr(node, "attr", None), getattr(node, "id", None)}
    return names


@pytest.mark.parametrize("name", list(public_kernels()))
def test_a_kernel_has_a_test(name):
    function = name.partition(".")[2]
    assert function in named_in_tests() or function in STEPS


def test_the_solvers_whose_kernels_are_tested_by_whole_solves_are_run():
    text = (ROOT / "tests" / "engines" / "runs.py").read_text(encoding="utf-8")
    assert all(f'"{solver}":' in text for solver in STEPS.values())
