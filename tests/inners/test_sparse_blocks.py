"""Block means of sparse rows, known by their distances: the same as those of Jacobians that are formed."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from stoic.inners import GroupLoss, sparse_blocks
from stoic.inners.blocks import block_bounds
from stoic.inners.sparse_blocks import SparseBlocks
from stoic.means import SmallestBall

N, D, P, SIZE = 300, 60, 3, 120


def table(seed=0):
    """Return rows of which some columns are full, most are rare and some are empty."""
    rng = np.random.default_rng(seed)
    share = np.where(np.arange(D) < 5, 1.0, 0.05) * (np.arange(D) % 7 > 0)
    return rng.standard_normal((N, D)) * (rng.random((N, D)) < share), rng.standard_normal(N)


def plain(X):
    return sparse.csr_array(X)


def unsorted(X):
    """Return the rows with their entries in reverse order."""
    matrix = sparse.csr_array(X)
    for start, stop in pairwise(matrix.indptr):
        matrix.indices[start:stop] = matrix.indices[start:stop][::-1].copy()
        matrix.data[start:stop] = matrix.data[start:stop][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def doubled(X):
    """Return the rows with each entry in two parts."""
    matrix = sparse.csr_array(X)
    data = np.repeat(matrix.data, 2) * np.tile([0.25, 0.75], matrix.nnz)
    return sparse.csr_array((data, np.repeat(matrix.indices, 2), 2 * matrix.indptr), shape=X.shape)


def long_indices(X):
    matrix = sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


KINDS = [
    plain,
    sparse.csr_matrix,
    unsorted,
    doubled,
    long_indices,
    lambda X: sparse.csr_array(X.astype(np.float32)),
]


def setting(make=plain, *, intercept=False, scale=1.0, seed=0, size=SIZE):
    """Return an inner part, a batch, the slopes of its rows, and the blocks made of both."""
    X, y = table(seed)
    inner = GroupLoss(make(X), scale * y, np.arange(N) % P, intercept=intercept)
    batch = inner.draw(size, np.random.default_rng(seed))
    slopes = inner.slopes_at(inner.predict(np.zeros(inner.shape[1]), batch), batch)
    return inner, batch, slopes, SparseBlocks(inner, batch.rows, slopes)


def jacobians(inner, batch, blocks):
    return inner.jacobian(np.zeros(inner.shape[1]), batch, blocks)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [1, 2, 7, 40, SIZE])
def test_distances_are_those_of_the_jacobians(make, intercept, blocks):
    inner, batch, _, means = setting(make, intercept=intercept)
    rows = jacobians(inner, batch, blocks).reshape(blocks, -1)
    np.testing.assert_allclose(
        means.distances(block_bounds(SIZE, blocks)), cdist(rows, rows), rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("cells", [1, 40 * 7, 40 * D])
@pytest.mark.parametrize("make", [plain, unsorted])
def test_distances_do_not_depend_on_how_many_columns_are_held_at_a_time(make, cells, monkeypatch):
    means, bounds = setting(make)[3], block_bounds(SIZE, 40)
    expected = means.distances(bounds)
    monkeypatch.setattr(sparse_blocks, "_CELLS", cells)
    np.testing.assert_allclose(means.distances(bounds), expected, rtol=1e-12)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [1, 7, 40, SIZE])
def test_distances_to_a_reference_are_those_of_the_jacobians(make, intercept, blocks):
    inner, batch, _, means = setting(make, intercept=intercept)
    z = jacobians(inner, batch, 3)[1]
    expected = np.linalg.norm((jacobians(inner, batch, blocks) - z).reshape(blocks, -1), axis=1)
    np.testing.assert_allclose(means.distances_to(z, block_bounds(SIZE, blocks)), expected, rtol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("wild", [1.0, 1e100])
@np.errstate(all="ignore")
def test_the_smallest_ball_is_that_of_the_jacobians_at_any_scale(intercept, scale, wild):
    for seed in range(10):
        inner, batch, slopes, means = setting(intercept=intercept, scale=scale, seed=seed)
        slopes[:, :5] *= wild
        dense = np.array([_mean(inner, batch, slopes, part) for part in np.array_split(np.arange(SIZE), 40)])
        z, far = means.smallest_ball(block_bounds(SIZE, 40))
        np.testing.assert_allclose(z, SmallestBall(0.5).combine(dense), rtol=1e-12, atol=1e-12 * scale)
        expected = np.linalg.norm(((dense - z) / scale).reshape(40, -1), axis=1)
        near = expected < 1e6
        assert near.sum() >= 38
        np.testing.assert_allclose(far[near] / scale, expected[near], rtol=1e-6, atol=1e-12)


def _mean(inner, batch, slopes, part):
    """Return the mean Jacobian (p, d) over some places of a batch."""
    X = inner.X.toarray()
    X = np.hstack([X, np.ones((N, 1))]) if inner.intercept else X
    return np.einsum("pj,pjd->pd", slopes[:, part], X[batch.rows[:, part]]) / len(part)


@np.errstate(all="ignore")
def test_infinite_blocks_are_far_away_while_they_are_fewer_than_half():
    inner, batch, slopes, _ = setting()
    slopes[:, : SIZE // 4] = np.inf
    z, far = SparseBlocks(inner, batch.rows, slopes).smallest_ball(block_bounds(SIZE, 40))
    assert np.isfinite(z).all()
    assert np.isinf(far).sum() == 10
    slopes[:, : 3 * SIZE // 4] = np.inf
    z, far = SparseBlocks(inner, batch.rows, slopes).smallest_ball(block_bounds(SIZE, 40))
    assert np.isnan(z).all()
    assert np.isnan(far).all()


def test_blocks_of_any_bounds_are_taken():
    inner, batch, slopes, means = setting()
    bounds = np.array([0, 1, 50, 51, SIZE])
    rows = np.array([_mean(inner, batch, slopes, np.arange(a, b)) for a, b in pairwise(bounds)])
    flat = rows.reshape(4, -1)
    np.testing.assert_allclose(means.distances(bounds), cdist(flat, flat), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(means.mean(1, 50), rows[1], rtol=1e-12, atol=1e-14)


def test_the_data_are_left_alone():
    inner, _, _, means = setting(unsorted)
    arrays = inner.X.data, inner.X.indices, inner.X.indptr
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    z, _ = means.smallest_ball(block_bounds(SIZE, 40))
    means.distances_to(z, block_bounds(SIZE, 40))
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_mean_is_in_the_order_that_engines_take_without_a_copy():
    means = setting(intercept=True)[3]
    assert means.mean(0, 10)[:, :-1].T.flags.c_contiguous


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("intercept", [False, True])
def test_predictions_are_those_of_the_inner_part(make, intercept):
    inner, batch, _, _ = setting(make, intercept=intercept)
    w = np.random.default_rng(1).standard_normal(2 * inner.shape[1])[::2]  # not contiguous
    ours = sparse_blocks.predictions(inner, w, batch.rows)
    np.testing.assert_allclose(ours, inner.predict(w, batch), rtol=1e-12, atol=1e-13)


def test_results_have_the_same_bits_for_any_number_of_threads(monkeypatch):
    inner, batch, _, means = setting()
    z, bounds, w = jacobians(inner, batch, 3)[1], block_bounds(SIZE, 40), np.ones(D)

    def results():
        yield means.distances(bounds)
        yield means.distances_to(z, bounds)
        yield sparse_blocks.predictions(inner, w, batch.rows)

    monkeypatch.setattr(sparse_blocks, "_MOST_THREADS", 1)
    expected = list(results())
    for threads in (2, 3):
        monkeypatch.setattr(sparse_blocks, "_threads", lambda n, threads=threads: min(n, threads))
        for ours, theirs in zip(results(), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
