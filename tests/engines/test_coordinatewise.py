"""MSCG with medians of means and trimmed means: both engines agree, and so do the kernel's parts."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

import stoic
from checks import generated
from engines.runs import LOSSES, OUTERS, Run, assert_same_run, boosted, make_problem, solve, solved_alike
from engines.vectors import STORAGE, copied, explicit, make_scaled, make_thresholded, matrix_of, read_only
from stoic.engines.compiled.problem import translate
from stoic.engines.kernels.jit import allocating_kernel
from stoic.engines.kernels.steps import coordinatewise
from stoic.engines.kernels.steps.coordinatewise import Middle
from stoic.means import MedianOfMeans, TrimmedMean


def median(k):
    """Return the median of k block means."""
    return MedianOfMeans(math.exp(-k / 8))


MEANS = {"odd": median(7), "even": median(6), "trimmed": TrimmedMean(0.2)}
BATCH = 17  # the sizes of the blocks differ

every_mean = pytest.mark.parametrize("mean", MEANS)
every_storage = pytest.mark.parametrize("storage", ["dense", "csr-int32"])
with_and_without_intercept = pytest.mark.parametrize("intercept", [False, True])
both_forms = pytest.mark.parametrize("regularizer", ["l2", "l1"])


def mscg(mean, n_steps=200, batch_size=BATCH, step_size=0.03):
    return stoic.MSCG(step_size, batch_size, n_steps, MEANS.get(mean, mean))


# --- whole solves ---


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["zero", "l2", "l1", "elastic-net"])
@pytest.mark.sampled(2)
def test_coordinatewise_means_agree_with_the_plain_engine(mean, storage, intercept, regularizer):
    problem = make_problem(storage, "huber", "cvar", regularizer, intercept=intercept, weighted=True)
    solved_alike(problem, mscg(mean, 300))


@pytest.mark.usefixtures("only_kernels")
@every_mean
@pytest.mark.parametrize(("loss", "outer"), [*zip(itertools.cycle(LOSSES), OUTERS, strict=False)])
def test_every_loss_and_every_outer_function(mean, loss, outer):
    solved_alike(make_problem("csr-int32", loss, outer, "l2", intercept=True), mscg(mean))


@pytest.mark.every
@pytest.mark.usefixtures("only_kernels")
@both_forms
@pytest.mark.parametrize("storage", ["fortran", "csr-int64", "dense-float32", "csr-int64-float32"])
def test_every_storage(storage, regularizer):
    for mean in MEANS:
        solved_alike(make_problem(storage, "huber", regularizer=regularizer, intercept=True), mscg(mean))


@pytest.mark.usefixtures("only_kernels")
@every_storage
@both_forms
@pytest.mark.parametrize("mean", [*map(median, (1, 2, 3, 5, 8, 13)), *map(TrimmedMean, (1e-9, 0.1, 0.3, 0.49))])
@pytest.mark.sampled(2)
def test_few_and_many_blocks_of_one_and_of_many_samples(mean, storage, regularizer):
    problem = make_problem(storage, "huber", regularizer=regularizer, intercept=True)
    for batch_size in sorted({mean.smallest_batch, 13, 14, 26, 64, 150}):
        solved_alike(problem, mscg(mean, 40, batch_size))


@pytest.mark.usefixtures("only_kernels")
@every_mean
@both_forms
@with_and_without_intercept
def test_rows_that_have_a_column_twice_empty_rows_and_columns_that_few_rows_have(mean, regularizer, intercept):
    rng = np.random.default_rng(4)
    n, d = 240, 30
    lengths = rng.integers(0, 9, n) * (np.arange(n) % 7 > 0)
    columns = (d * rng.random(lengths.sum()) ** 3).astype(np.int32)
    values = rng.standard_normal(columns.size)
    values[::11] = 0.0  # stored all the same
    X = sp.csr_array((values, columns, np.append(0, np.cumsum(lengths)).astype(np.int32)), shape=(n, d))
    assert not X.has_canonical_format
    y, groups = rng.standard_t(2.1, n), np.arange(n) % 3
    inner = stoic.GroupLoss(X, y, groups, loss=stoic.Huber(1.0), intercept=intercept)
    problem = stoic.Problem(inner, stoic.LogSumExp(1.0), stoic.L1(0.01) if regularizer == "l1" else stoic.L2(0.1))
    assert np.abs(solved_alike(problem, mscg(mean, 400, step_size=0.1)).w).max() > 0.01
    solved_alike(problem, mscg(TrimmedMean(0.02), 100, 50))  # many columns that are not all zero in the middle


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["zero", "elastic-net"])
def test_restarts_and_prox_boost(mean, storage, intercept, regularizer):
    problem = make_problem(storage, "huber", "cvar", regularizer, intercept=intercept)
    solved_alike(problem, stoic.Restarted([mscg(mean, 60, BATCH * 2**k) for k in range(3)]))
    solved_alike(problem, boosted(mscg(mean, 40)))


@every_mean
@both_forms
def test_chunks_numbers_of_columns_and_changes_of_the_engine_do_not_matter(mean, regularizer):
    problem = make_problem("csr-int32", "huber", regularizer=regularizer, intercept=True)
    once = solve(problem, mscg(mean), "compiled").w
    for chunk_size in (1, 7, 64):
        np.testing.assert_array_equal(solve(problem, mscg(mean), "compiled", chunk_size=chunk_size).w, once)
    np.testing.assert_allclose(solve(problem, mscg(mean), "renumbered").w, once, rtol=1e-9, atol=1e-12)
    assert_same_run(Run(problem, mscg(mean)).plain(20).compiled(47).plain(3), Run(problem, mscg(mean)).plain(70))


def spoiled(storage, label, every, **options):
    """Return a problem in which one row of so many has another label."""
    problem = make_problem(storage, regularizer="l2", **options)
    inner, numbers = problem.inner, np.arange(problem.inner.n_samples)
    y = np.where(numbers % every == 0, label, inner.y)
    changed = stoic.GroupLoss(inner.X, y, numbers % inner.n_groups, intercept=inner.intercept)
    return stoic.Problem(changed, stoic.LogSumExp(2.0), problem.regularizer)


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("label", [1e200, -1e200, 1e300])
def test_infinite_losses_that_are_cut_off_stay_in_the_kernel(mean, storage, intercept, label):
    with np.errstate(all="ignore"):
        result = solved_alike(spoiled(storage, label, 10**9, intercept=intercept), mscg(mean, 60, 28))
    assert np.abs(result.w).max() < 10.0
    assert result.status is stoic.Status.FINISHED


@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("every", [3, 7, 21, 61])
@pytest.mark.parametrize("label", [1e150, 1e200, 1.7e308])
def test_infinite_losses_that_count_are_left_to_the_plain_engine(mean, storage, intercept, every, label):
    with np.errstate(all="ignore"):
        solved_alike(spoiled(storage, label, every, intercept=intercept), mscg(mean, 30, 28))


@every_mean
@every_storage
@pytest.mark.parametrize("regularizer", ["zero", "l1"])
def test_what_diverges_diverges_alike(mean, storage, regularizer):
    with np.errstate(all="ignore"):
        problem = make_problem(storage, "squared", "linear", regularizer)
        result = solved_alike(problem, mscg(mean, 3000, step_size=20.0), tolerance=1e-6)
    assert result.status is not stoic.Status.FINISHED


# --- order statistics ---

SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, 1e308, -1e308, math.inf, -math.inf, math.nan, 1e-320)
entries = st.one_of(st.sampled_from(SPECIAL), st.floats(-3.0, 3.0), st.integers(-2, 2).map(float))


@generated
@given(values=st.lists(entries, min_size=1, max_size=25), n_zeros=st.integers(0, 25), data=st.data())
def test_middle_mean_is_that_of_sorted_values_and_zeros(values, n_zeros, data):
    k = len(values) + n_zeros
    first = data.draw(st.integers(0, k - 1))
    last = data.draw(st.integers(first + 1, k))
    ordered = np.sort(np.append(values, np.zeros(n_zeros)))[first:last]
    with np.errstate(all="ignore"):
        expected = (ordered / (last - first)).sum()
    found = coordinatewise.middle_mean(np.array([*values, 9.0]), len(values), n_zeros, first, last)
    assert np.isfinite(found) == np.isfinite(expected)
    assert found == pytest.approx(expected, rel=1e-14, abs=1e-14) or not np.isfinite(expected)


@pytest.mark.parametrize("k", range(3, 8))
def test_middle_mean_gives_both_estimators_for_all_signs_and_ties(k):
    for code in range(3**k):
        values = np.array([code // 3**j % 3 - 1.0 for j in range(k)])
        stored = values[values != 0.0]
        for mean in (median(k), TrimmedMean(0.3)):
            order = middle_of(mean, k)[:2]
            found = coordinatewise.middle_mean(stored.copy(), stored.size, k - stored.size, *order)
            assert found == pytest.approx(float(mean.combine(values)), abs=1e-15)


@generated
@given(values=st.lists(entries.filter(lambda x: not math.isnan(x)), min_size=1, max_size=60), data=st.data())
def test_select_splits_a_part_at_a_place(values, data):
    low = data.draw(st.integers(0, len(values)))
    high = data.draw(st.integers(low, len(values)))
    place = data.draw(st.integers(low, high))
    ordered = np.array(values)
    coordinatewise.select(ordered, low, high, place)
    assert sorted(ordered[low:high]) == sorted(values[low:high])
    assert ordered[:low].tolist() == values[:low]
    assert ordered[high:].tolist() == values[high:]
    if low < place < high:
        assert ordered[low:place].max() <= ordered[place:high].min()


@pytest.mark.parametrize("width", [1, 5, 32])
def test_sort_columns_and_order_rows(width):
    rng = np.random.default_rng(width)
    for k in (*range(1, 20), 31, 32, 33, 64, 65, 100):
        tile = rng.integers(-k, k, (k, 32)).astype(float)
        tile[rng.random((k, 32)) < 0.1] = math.inf
        tile[rng.random((k, 32)) < 0.1] = -math.inf
        ordered = tile.copy()
        coordinatewise.sort_columns(ordered, width)
        np.testing.assert_array_equal(ordered[:, :width], np.sort(tile[:, :width], axis=0))
        np.testing.assert_array_equal(ordered[:, width:], tile[:, width:])
    low, high = np.array([3.0, 1.0, -math.inf]), np.array([2.0, 2.0, math.inf])
    coordinatewise.order_rows(low, high, 2)
    assert low.tolist() == [2.0, 1.0, -math.inf]
    assert high.tolist() == [3.0, 2.0, math.inf]


def test_the_mean_of_the_two_in_the_middle_does_not_overflow():
    assert coordinatewise.middle_mean(np.array([1.5e308, 0.0, 1.7e308, math.inf]), 4, 0, 1, 3) == 1.6e308
    tile = np.array([[1.0, 9.0], [1.5e308, 2.0], [1.7e308, 4.0], [math.inf, math.nan]])
    coordinatewise.average_rows(tile, 2, 1, 3)
    assert tile[1].tolist() == [1.6e308, 3.0]
    coordinatewise.average_rows(tile, 1, 0, 1)
    assert tile[0].tolist() == [1.0, 9.0]


# --- parts of the kernel ---


@allocating_kernel
def compiled_moves(X, middle, rows, slopes, q, lists, n):
    return coordinatewise.list_moves(X, middle, rows, slopes, q, lists, n)


@allocating_kernel
def compiled_room(X, rows, d):
    return coordinatewise.most_entries(X, rows, d)


def middle_of(mean, m):
    """Return the order statistics and blocks of a mean, read off what it makes of numbers in order."""
    k = mean.n_blocks(m)
    bounds = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(m), k))])
    infinite = np.where(np.arange(k) >= np.arange(k + 1)[:, None], math.inf, 1.0).T
    last = int(np.flatnonzero(np.isfinite(mean.combine(infinite)))[0])
    return Middle(k - last, last, read_only(bounds))


def jacobian(X, middle, rows, slopes):
    """Return the block means of slope·x."""
    parts = np.split(slopes[:, None] * X[rows], middle.bounds[1:-1])
    return np.stack([part.mean(axis=0) for part in parts])


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("d", [1, 5, 31, 32, 33, 70])
@every_mean
def test_list_moves_adds_the_estimates_of_all_groups(mean, d, storage):
    rng, mean = np.random.default_rng(d), MEANS[mean]
    X, m, p = matrix_of(d, 12), BATCH, 3
    data, middle = STORAGE[storage](X), middle_of(mean, BATCH)
    rows, slopes, q = rng.integers(0, 12, (1, 2, p, m)), rng.standard_t(2.0, (p, m)), np.array([0.5, 0.0, 2.0])
    slopes[0, 3], slopes[2, 5] = 1e140, -1e140
    expected = sum(q[i] * mean.combine(jacobian(X, middle, rows[0, 1, i], slopes[i])) for i in range(p))
    heads = np.full(d, -1)
    room = coordinatewise.most_entries(data, rows, d)
    assert room == compiled_room(data, rows, d)
    for list_moves in (compiled_moves, coordinatewise.list_moves):
        lists, n, found = coordinatewise.make_lists(mean.n_blocks(m), heads, room), 0, np.zeros(d)
        for i in range(p):
            n = list_moves(data, middle, rows[0, 1, i], slopes[i], q[i], lists, n)
        assert n <= room
        np.add.at(found, lists.columns[:n], lists.amounts[:n, 0])
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        assert coordinatewise.total_size(lists.amounts, n) == pytest.approx(np.abs(lists.amounts[:n]).sum())
        assert (heads == -1).all()


def test_list_entries_leads_from_a_column_to_its_blocks():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    rows, slopes, bounds = np.arange(4), np.array([1.0, 3.0, 1.0, 2.0]), np.array([0, 2, 3, 4])
    for storage in ("csr", "doubled"):
        lists = coordinatewise.make_lists(3, np.full(3, -1), 12)
        assert coordinatewise.list_entries(STORAGE[storage](X), bounds, rows, slopes, lists) == 2
        assert lists.touched[:2].tolist() == [0, 2]
        means = {}
        for column in range(3):
            entry, means[column] = lists.heads[column], []
            while entry >= 0:
                means[column].append(lists.values[entry])
                entry = lists.following[entry]
        assert means == {0: [10.0, 0.5], 1: [], 2: [5.5]}


def test_fill_tile_writes_block_means_and_infinity_for_what_is_no_number():
    X = np.arange(12.0).reshape(3, 4)
    tile = np.full((2, 32), 7.0)
    rows, slopes, bounds = np.array([2, 0, 1]), np.array([1.0, 3.0, math.inf]), np.array([0, 2, 3])
    coordinatewise.fill_tile(STORAGE["dense"](X), bounds, rows, slopes, 1, 3, tile)
    assert tile[0, :4].tolist() == [6.0, 8.0, 10.0, 7.0]
    assert tile[1, :4].tolist() == [math.inf, math.inf, math.inf, 7.0]
    coordinatewise.fill_tile(STORAGE["dense"](X), bounds, rows[[1, 1, 1]], slopes, 0, 1, tile)
    assert tile[:, 0].tolist() == [0.0, math.inf]  # 0·∞


def test_middle_slope_and_middle_losses_are_the_estimates_of_blocks():
    rng = np.random.default_rng(0)
    slopes, losses, y = rng.standard_t(1.0, BATCH), rng.standard_t(1.0, (7, 3)), np.empty(3)
    losses[2, 1], losses[3, 2] = math.inf, math.nan
    middle, ordered = middle_of(MEANS["odd"], BATCH), np.empty(7)
    means = jacobian(np.ones((1, 1)), middle, np.zeros(BATCH, dtype=int), slopes)
    assert coordinatewise.middle_slope(slopes, middle, ordered) == pytest.approx(np.median(means))
    assert coordinatewise.middle_losses(read_only(losses), middle, ordered, y)
    np.testing.assert_allclose(y, MEANS["odd"].combine(losses))
    for huge in (math.inf, math.nan, 1e290):
        losses[:4, 0] = huge
        assert not coordinatewise.middle_losses(read_only(losses), middle, ordered, y)


@pytest.mark.parametrize("make", [make_scaled, make_thresholded])
@pytest.mark.parametrize("size", [1e141, 1e200, math.inf, math.nan])
@every_storage
def test_a_step_that_is_too_large_leaves_everything_as_it_was(make, size, storage):
    problem = make_problem(storage, "squared", "linear", intercept=True)
    parts = translate(problem, problem.inner)
    n, d = problem.inner.X.shape
    w = np.linspace(-1.0, 1.0, d + 1)
    form, heads, counts = make(w, n_rows=n, has_tail=True), np.full(d, -1), np.zeros(3, dtype=np.int64)
    middle, rows = middle_of(MEANS["odd"], BATCH), np.random.default_rng(0).integers(0, n, (3, 2, 4, BATCH))
    before, y = copied(form), parts.data.targets.copy()
    arguments = parts.outer, parts.penalty, middle, 0.1, form, rows, heads, counts
    y[rows[0, 1]] = size
    coordinatewise.coordinatewise_mscg_steps(parts.data._replace(targets=read_only(y)), *arguments)
    assert counts.tolist() == [0, 0, 0]
    assert (heads == -1).all()
    np.testing.assert_array_equal(explicit(form, has_tail=True), w)
    np.testing.assert_array_equal(form.past, before.past)
    coordinatewise.coordinatewise_mscg_steps(parts.data, *arguments[:4], before, *arguments[5:])
    assert counts.tolist() == [3, 0, 0]
