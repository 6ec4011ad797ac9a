"""The parts of steps on drawn batches, against the inner part of the plain engine."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import stoic
from engines.vectors import STORAGE, explicit, make_scaled, make_thresholded, read_only, summed
from stoic.engines.compiled.problem import translate
from stoic.engines.kernels.parts import batches
from stoic.engines.kernels.steps import civr, mscg, robust_mscg as robust, rosc
from stoic.engines.kernels.vectors import thresholded as th
from stoic.engines.kernels.vectors.any import settle
from stoic.engines.kernels.vectors.scaled import UU
from stoic.means import GeometricMedianOfMeans, SmallestBall
from stoic.truncation import truncate, truncated_mean

D, N, P = 6, 30, 3
both_tails = pytest.mark.parametrize("intercept", [False, True])
any_storage = pytest.mark.parametrize("storage", STORAGE)
both_forms = pytest.mark.parametrize("make", [make_scaled, make_thresholded])
one_and_three = pytest.mark.parametrize("m", [1, 3])


def setting(storage="dense", *, intercept=False, m=3, loss="huber"):
    """Return an inner part, its data for kernels, a batch, and a point."""
    rng = np.random.default_rng(9)
    X = np.where(rng.random((N, D)) < 0.7, rng.standard_normal((N, D)), 0.0)
    inner = stoic.GroupLoss(X, 3.0 * rng.standard_normal(N), np.arange(N) % P, loss=loss, intercept=intercept)
    data = translate(stoic.Problem(inner, stoic.Linear()), inner).data._replace(X=STORAGE[storage](X))
    return inner, data, inner.draw(m, rng), rng.standard_normal(D + intercept)


def form_of(make, w, c=None, *, intercept=False, **options):
    return make(w, c, n_rows=N, has_tail=intercept, **options)


# --- batches ---


@both_tails
@any_storage
@both_forms
@one_and_three
def test_predict_mean_losses_slopes_of_losses_and_slopes_weigh_and_move(intercept, storage, make, m):
    inner, data, batch, w = setting(storage, intercept=intercept, m=m)
    form, X = form_of(make, w, intercept=intercept), inner.X
    for row in batch.rows.flat:
        expected = X[row] @ w[:D] + (w[-1] if intercept else 0.0)
        assert batches.predict(data, form, row) == pytest.approx(expected, rel=1e-12)
    y, again, slopes, others = np.empty(P), np.empty(P), np.empty((P, m)), np.empty((P, m))
    batches.mean_losses(data, form, batch.rows, y)
    batches.slopes_of(data, form, batch.rows, slopes)
    batches.losses_and_slopes(data, form, batch.rows, again, others)
    np.testing.assert_allclose(y, inner.value(w, batch)[0], rtol=1e-12)
    np.testing.assert_array_equal(again, y)
    np.testing.assert_array_equal(others, slopes)
    q = np.array([0.2, 0.0, 0.8])
    v = inner.vjp(w, batch, q)
    tail = batches.weigh(slopes, q)
    np.testing.assert_allclose(slopes, others * q[:, None] / m, rtol=1e-15)
    assert tail == pytest.approx(v[-1] if intercept else slopes.sum())
    squared = mscg.squared_gradient(data, batch.rows, slopes, work := np.zeros(D))
    assert squared == pytest.approx(v @ v)
    assert not work.any()
    batches.move(data, form, batch.rows, slopes, 0.1, batch.rows[::-1])
    np.testing.assert_allclose(explicit(form), (w - 0.1 * v)[:D], rtol=1e-11)
    if make is make_scaled:
        assert form.scalars[UU] == pytest.approx(form.u @ form.u)


@both_forms
def test_reserve_move_bounds_what_any_coordinate_may_move(make):
    _, data, batch, w = setting()
    for largest, weight, calm in (
        (2.0, 1e138, True),
        (2.0, 6e139, False),
        (1e100, 1e39, True),
        (1e100, 1e41, False),
    ):
        weights = np.zeros_like(batch.rows, dtype=float)
        weights[0, 0], weights[1, 1] = 0.5 * weight, -0.5 * weight
        form = form_of(make, w)
        assert batches.reserve_move(data._replace(largest=largest), form, weights, 1.0) == calm
        assert batches.extent(data._replace(largest=largest), weights) == pytest.approx(weight * largest)
        np.testing.assert_array_equal(explicit(form), w)
    for weight in (math.inf, -math.inf, math.nan):
        weights[0, 0] = weight
        assert not batches.reserve_move(data, form_of(make, w), weights, 1.0)


def test_the_largest_entry_of_the_data_is_at_least_one():
    for X, largest in ((np.eye(2) * 0.1, 1.0), (np.array([[-7.0, 2.0], [0.0, 1.0]]), 7.0)):
        for rows in (X, sp.csr_array(X)):
            inner = stoic.GroupLoss(rows, np.ones(2))
            assert translate(stoic.Problem(inner, stoic.Linear()), inner).data.largest == largest


def test_copy_to():
    y, source = np.zeros(3), read_only([1.0, math.inf, -0.0])
    batches.copy_to(y, source)
    np.testing.assert_array_equal(y, source)


# --- ROSC ---


def reference_for(z, *, intercept=False, levels=(1.0, 1.0, 0.0, 0.0)):
    Z = read_only(z[:, :D].T)
    columns = np.flatnonzero(Z.any(axis=1))
    tail = z[:, D].copy() if intercept else np.zeros(P)
    y, norm = np.array([1.0, 2.0, 3.0]), float(np.linalg.norm(z))
    return rosc.ReferenceArrays(y, Z, columns.astype(np.uint32), Z[columns], tail, norm, *levels)


def unknown():
    return rosc.RowNumbers(np.full(N, np.nan), np.full(N, np.nan), np.zeros(D))


def rosc_setting(storage, *, make, m, intercept, holds=False):
    """Return what `setting` does, a reference with a column of zeros, and the form around w₀."""
    inner, data, batch, w = setting(storage, intercept=intercept, m=m)
    rng = np.random.default_rng(4)
    w0, z0 = rng.standard_normal(w.size), rng.standard_normal((P, w.size))
    z0[:, 2] = 0.0
    options = {"Z": z0[:, :D].T} if holds else {}
    return inner, data, batch, w, w0, z0, form_of(make, w, w0, intercept=intercept, **options)


@both_tails
@any_storage
@both_forms
@one_and_three
def test_batches_and_samples_stray_as_truncate_decides(intercept, storage, make, m):
    for holds in {False, make is make_scaled}:
        inner, data, batch, w, w0, z0, form = rosc_setting(
            storage, make=make, m=m, intercept=intercept, holds=holds
        )
        slopes, numbers, parts = np.empty((P, m)), unknown(), inner.jacobian(w, batch, m)
        batches.slopes_of(data, form, batch.rows, slopes)
        distance, z = np.linalg.norm(w - w0), parts.mean(axis=0)
        for share, growth in itertools.product((0.0, 1.0 - 1e-9, 1.0 + 1e-9, 10.0, math.inf), (0.0, 0.5)):
            for far, by_sample in ((np.linalg.norm(z - z0), False), (np.linalg.norm(parts[-1] - z0), True)):
                levels = stoic.Levels(1.0, 0.0 if share == math.inf else growth * share * far / distance, 1.0, 0.0)
                levels = levels._replace(slack_z=(1.0 - growth) * share * far)
                reference = reference_for(z0, intercept=intercept, levels=levels)
                count = rosc.drop_stray_samples if by_sample else rosc.drop_stray_batch
                left = slopes.copy()
                found = count(data, reference, numbers, form, batch.rows, left)
                cut = [truncate(part, z0, levels.radius_z(distance))[1] for part in (parts if by_sample else [z])]
                assert cut[-1] == (share < 1.0)
                assert found == sum(cut)
                np.testing.assert_array_equal(left, np.where(cut, 0.0, slopes))
        assert not numbers.work.any()


@both_forms
@one_and_three
def test_is_away_tells_by_the_norm_that_it_is_given(make, m):
    inner, data, batch, w, _w0, z0, form = rosc_setting("dense", make=make, m=m, intercept=False)
    slopes, z = np.empty((P, m)), inner.jacobian(w, batch)[0]
    batches.slopes_of(data, form, batch.rows, slopes)
    far = np.linalg.norm(z - z0)
    for slack, squared, expected in (
        (far * (1.0 + 1e-9), np.vdot(z, z), False),
        (far * (1.0 - 1e-9), np.vdot(z, z), True),
        (far * (1.0 + 1e-9), np.vdot(z, z) + 1.0, True),
        (np.linalg.norm(z) + np.linalg.norm(z0) + 1e-9, np.vdot(z, z), False),
        (math.inf, math.inf, True),
        (math.inf, math.nan, True),
    ):
        reference = reference_for(z0, levels=(1.0, 0.0, 1.0, slack))
        assert rosc.is_away(data, reference, unknown(), form, batch.rows, slopes, squared) == expected


@pytest.mark.parametrize("slope", [math.inf, -math.inf, math.nan, 1e160])
@pytest.mark.parametrize("slack", [1.0, math.inf])
@one_and_three
@np.errstate(invalid="ignore")
def test_a_jacobian_that_is_not_finite_strays_whatever_the_slack(slope, slack, m):
    inner, data, batch, _, _, z0, form = rosc_setting("dense", make=make_scaled, m=m, intercept=False)
    slopes, reference = np.ones((P, m)), reference_for(z0, levels=(1.0, 1.0, 1.0, slack))
    slopes[1, 0] = slope
    z = (slopes[:, :, None] * inner.X[batch.rows]).mean(axis=1)
    assert truncate(z, z0, slack)[1]
    for count in (rosc.drop_stray_samples, rosc.drop_stray_batch):
        left = slopes.copy()
        assert count(data, reference, unknown(), form, batch.rows, left) >= 1
        assert not left[:, 0].any()


@both_forms
@one_and_three
@pytest.mark.parametrize("wild", [0.0, 1e3, math.inf, math.nan])
@np.errstate(invalid="ignore")
def test_losses_by_row_are_truncated_as_batches_or_samples(make, m, wild):
    inner, data, batch, w, w0, z0, form = rosc_setting("dense", make=make, m=m, intercept=False)
    losses, slopes, expected = np.empty((P, m)), np.empty((P, m)), np.empty((P, m))
    rosc.losses_by_row(data, form, batch.rows, losses, slopes)
    np.testing.assert_allclose(losses.T, inner.value(w, batch, m), rtol=1e-12)
    batches.slopes_of(data, form, batch.rows, expected)
    np.testing.assert_array_equal(slopes, expected)
    losses[1, -1] += wild
    for slack in (2.0, 6.0, 20.0):
        levels = stoic.Levels(0.1, 1.0, slack, 1.0)
        reference, radius = reference_for(z0, levels=levels), levels.radius_y(np.linalg.norm(w - w0))
        for truncated, parts in (
            (rosc.truncate_batch, losses.mean(axis=1)[None]),
            (rosc.truncate_samples, losses.T),
        ):
            fresh = np.empty(P)
            mean, n_cut = truncated_mean(parts, reference.y, radius)
            assert truncated(reference, form, losses, fresh) == n_cut
            np.testing.assert_allclose(fresh, mean, rtol=1e-12)


def test_y_follows_the_fresh_estimate_by_its_weight():
    for weight, expected in ((1.0, [5.0, -2.0]), (0.25, [2.0, -0.5]), (0.0, [1.0, 0.0])):
        y = np.array([1.0, 0.0])
        rosc.follow(y, np.array([5.0, -2.0]), weight)
        assert y.tolist() == expected


@both_tails
@any_storage
def test_norm_of_a_row_adds_up_entries_that_share_a_column(intercept, storage):
    inner, data, _, _ = setting(storage, intercept=intercept)
    numbers = unknown()
    for row in (4, 7, 4):
        assert rosc.norm_of(data, numbers, row) == pytest.approx(math.hypot(*inner.X[row], float(intercept)))
    assert np.flatnonzero(~np.isnan(numbers.norm)).tolist() == [4, 7]
    assert not numbers.work.any()
    numbers.norm[4] = 77.0
    assert rosc.norm_of(data, numbers, 4) == 77.0


@both_tails
@any_storage
@one_and_three
def test_inner_product_squared_mean_and_length(intercept, storage, m):
    for make, holds in ((make_scaled, False), (make_scaled, True), (make_thresholded, False)):
        inner, data, batch, w, _, z0, form = rosc_setting(
            storage, make=make, m=m, intercept=intercept, holds=holds
        )
        slopes, numbers, z = np.empty((P, m)), unknown(), inner.jacobian(w, batch)[0]
        batches.slopes_of(data, form, batch.rows, slopes)
        reference = reference_for(z0, intercept=intercept)
        for _ in range(2):
            found = rosc.inner_product(data, reference, numbers, form, batch.rows, slopes)
            assert found == pytest.approx(np.vdot(z, z0))
        for group in range(P):
            squared = rosc.squared_mean(data, batch.rows[group], slopes[group], numbers.work)
            assert squared == pytest.approx(z[group] @ z[group])
        assert not numbers.work.any()
        for row in batch.rows.flat:
            rosc.norm_of(data, numbers, row)
        bound = rosc.length(numbers, batch.rows, slopes / m)
        assert bound >= np.linalg.norm(z.sum(axis=0)) * (1.0 - 1e-12)
        assert bound == pytest.approx((np.abs(slopes / m) * numbers.norm[batch.rows]).sum())


def test_fetch_norms_reads_and_writes_nothing():
    numbers = unknown()
    rosc.fetch_norms(numbers, np.array([[0, N - 1], [7, 7]]))
    assert np.isnan(numbers.norm).all()


@both_tails
def test_move_to_reference(intercept):
    q = np.array([0.3, 0.0, 0.7])
    for make, holds in ((make_scaled, False), (make_scaled, True), (make_thresholded, False)):
        _, _, _, w, _, z0, form = rosc_setting("csr", make=make, m=1, intercept=intercept, holds=holds)
        tail = rosc.move_to_reference(reference_for(z0, intercept=intercept), form, q, 0.1)
        v = z0.T @ q
        np.testing.assert_allclose(explicit(form), (w - 0.1 * v)[:D], rtol=1e-12)
        assert tail == pytest.approx(v[-1] if intercept else 0.0)


def test_begin_move_puts_the_sum_away_before_a_step_that_the_ball_undoes():
    for make in (make_scaled, make_thresholded):
        form = form_of(make, np.array([1.0, 2.0]))
        for _ in range(3):
            settle(form, 0.1, 0.5, 0.5, 0.0, math.inf, False)
        total = summed(STORAGE["dense"](np.zeros((N, 2))), form)
        for length, radius in ((5.0, math.inf), (5.0, 1.0)):
            rosc.begin_move(form, length, radius)
            assert form.past.any() == 0.0
        rosc.begin_move(form, 2.0 * rosc.FAR, 1.0)
        np.testing.assert_allclose(form.past, total, rtol=1e-12)  # the rest of the sum is 0
        np.testing.assert_allclose(summed(STORAGE["dense"](np.zeros((N, 2))), form), total, rtol=1e-12)
        if make is make_thresholded:
            assert form.scalars[th.MOVED] == 10.0 + 2.0 * rosc.FAR


@pytest.mark.parametrize("y", [[0.0, 0.0], [3.0, 4.0], [math.inf, 0.0], [math.nan, 0.0], [1e200, 0.0]])
@pytest.mark.parametrize("radius", [0.0, 5.0, 4.999, math.inf])
def test_away_and_size_of_decide_as_truncate_does(y, radius):
    y, reference = np.array(y), np.zeros(2)
    for far in (rosc.away(y, reference), rosc.size_of(y)):
        assert (not far <= radius or not far < math.inf) == truncate(y, reference, radius)[1]
    if np.isfinite(y).all():
        assert rosc.away(y, y + 3.0) == rosc.size_of((y + 3.0) - y)


# --- CIVR and robust means ---


@both_tails
@any_storage
def test_correct_moves_y_and_z_by_the_change_of_one_row(intercept, storage):
    inner, data, batch, w = setting(storage, intercept=intercept, m=1)
    before, y, z = w + 0.5, np.arange(3.0), np.ones((P, w.size))
    expected_y = y + inner.value(w, batch)[0] - inner.value(before, batch)[0]
    expected_z = z + inner.jacobian(w, batch)[0] - inner.jacobian(before, batch)[0]
    for i in range(P):
        civr.correct(data, batch.rows[i, 0], w, before, y, z[i], i, 1)
    np.testing.assert_allclose(y, expected_y, rtol=1e-12)
    np.testing.assert_allclose(z, expected_z, rtol=1e-11, atol=1e-13)


@both_tails
@any_storage
@both_forms
def test_block_losses_and_weigh_shares_follow_the_blocks_of_the_plain_engine(intercept, storage, make):
    inner, data, batch, w = setting(storage, intercept=intercept, m=8)
    form = form_of(make, w, intercept=intercept)
    bounds, q, shares = np.array([0, 3, 6, 8]), np.array([0.2, 0.0, 0.8]), np.array([0.5, 0.0, 0.5])
    found, slopes = np.empty((3, P)), np.empty((P, 8))
    robust.block_losses(data, form, bounds, batch.rows, found)
    np.testing.assert_allclose(found, inner.value(w, batch, 3), rtol=1e-12)
    batches.slopes_of(data, form, batch.rows, slopes)
    v = np.tensordot(shares, inner.jacobian(w, batch, 3), axes=1).T @ q
    slopes[0, 4] = math.inf  # in a block without a share
    tail = robust.weigh_shares(slopes, q, bounds, shares)
    assert tail == pytest.approx(v[-1] if intercept else slopes.sum())
    assert not slopes[:, 3:6].any()
    batches.move(data, form, batch.rows, slopes, 0.1, batch.rows[::-1])
    np.testing.assert_allclose(explicit(form), (w - 0.1 * v)[:D], rtol=1e-11)


def test_estimate_gives_the_shares_of_the_mean_that_is_asked_for_unless_a_distance_is_infinite():
    points = np.random.default_rng(0).standard_normal((7, 4))
    far, shares, mean = np.empty((7, 7)), np.empty(7), np.empty(4)
    robust.squared_distances(points, far)
    for kind, plain in (
        (robust.SMALLEST_BALL, SmallestBall(0.5)),
        (robust.GEOMETRIC_MEDIAN, GeometricMedianOfMeans(0.5)),
    ):
        assert robust.estimate(kind, far, shares)
        robust.combine(shares, points, mean)
        np.testing.assert_allclose(mean, plain.combine(points), rtol=1e-8)
        for wrong in (math.inf, math.nan):
            broken = far.copy()
            broken[1, 2] = wrong
            assert not robust.estimate(kind, broken, shares)


def test_combine_passes_over_points_without_a_share():
    out = np.empty(2)
    robust.combine(np.array([0.5, 0.0, 0.5]), np.array([[1.0, 2.0], [math.inf, math.nan], [3.0, 4.0]]), out)
    assert out.tolist() == [2.0, 3.0]


def test_dot_of_two_vectors():
    x, y = np.arange(5.0), np.array([1.0, -1.0, 0.5, 2.0, 0.0])
    assert robust.dot_of(x, y) == x @ y
    assert robust.dot_of(x[:0], y[:0]) == 0.0
