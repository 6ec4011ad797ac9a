"""MSCG with robust means of whole blocks: both engines give one answer."""

import math

import numpy as np
import pytest

import stoic
from engines.runs import (
    REGULARIZERS,
    Run,
    assert_close,
    assert_same_run,
    boosted,
    make_problem,
    solve,
    solved_alike,
)
from stoic.engines.compiled import engine as compiled
from stoic.engines.kernels.rows import CSR, Dense
from stoic.engines.kernels.steps import robust_mscg as robust
from stoic.means import GeometricMedianOfMeans, SmallestBall

MEANS = {
    "smallest-ball": SmallestBall(math.exp(-7 / 18)),  # 7 blocks each, of sizes 2 and 3
    "geometric-median": GeometricMedianOfMeans(math.exp(-7 / 3.5)),
}
BATCH = 17

every_mean = pytest.mark.parametrize("mean", MEANS)
every_storage = pytest.mark.parametrize("storage", ["dense", "csr-int32"])
with_and_without_intercept = pytest.mark.parametrize("intercept", [False, True])


def robust_mscg(mean, n_steps=200, batch_size=BATCH):
    return stoic.MSCG(0.03, batch_size, n_steps, MEANS[mean])


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.sampled(2)
@pytest.mark.slow
def test_robust_mscg_agrees_with_the_plain_engine(mean, storage, intercept, regularizer):
    problem = make_problem(storage, "huber", "cvar", regularizer, intercept=intercept, weighted=True)
    solved_alike(problem, robust_mscg(mean, 300))


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@pytest.mark.parametrize("batch_size", [7, 8, 13, 14, 140])
def test_robust_mscg_agrees_whatever_the_sizes_of_the_blocks(mean, storage, batch_size):
    solved_alike(make_problem(storage), robust_mscg(mean, 60, batch_size))


@pytest.mark.usefixtures("only_kernels")
@pytest.mark.parametrize("mean", [SmallestBall(0.9), GeometricMedianOfMeans(0.7), GeometricMedianOfMeans(0.5)])
def test_one_two_and_three_blocks(mean):
    assert mean.n_blocks(5) in {1, 2, 3}
    solved_alike(make_problem("csr-int32"), stoic.MSCG(0.03, 5, 100, mean))


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
def test_restarted_robust_mscg_agrees_with_the_plain_engine(mean, storage):
    problem = make_problem(storage, "huber", regularizer="l2", intercept=True)
    stages = [robust_mscg(mean, 60, BATCH * 2**k) for k in range(3)]
    solved_alike(problem, stoic.Restarted(stages))


@every_mean
@every_storage
def test_robust_mscg_hands_blocks_that_are_not_finite_to_the_plain_engine(mean, storage):
    inner = make_problem(storage).inner
    y = inner.y.copy()
    y[0] = 1e200
    groups = np.arange(len(y)) % inner.n_groups
    problem = stoic.Problem(stoic.GroupLoss(inner.X, y, groups), stoic.LogSumExp(2.0))
    with np.errstate(all="ignore"):
        solved_alike(problem, robust_mscg(mean, 30, 28))


@every_mean
def test_robust_mscg_shrugs_off_an_outlier_that_plain_means_do_not(mean):
    problem = make_problem("csr-int32")
    rows = np.flatnonzero(np.arange(problem.inner.n_samples) % 60 == 0)
    y = problem.inner.y.copy()
    y[rows] = 1e6
    groups = np.arange(len(y)) % problem.inner.n_groups
    spoiled = stoic.Problem(stoic.GroupLoss(problem.inner.X, y, groups), stoic.Linear())
    robust_w = solved_alike(spoiled, robust_mscg(mean)).w
    plain_w = solve(spoiled, stoic.MSCG(0.03, BATCH, 200), "compiled").w
    assert np.linalg.norm(robust_w) < 0.1 * np.linalg.norm(plain_w)


@every_mean
@every_storage
@pytest.mark.parametrize("regularizer", ["l2", "elastic-net"])
def test_chunks_and_a_change_of_the_engine_lead_to_the_same_state(mean, storage, regularizer):
    problem = make_problem(storage, "huber", regularizer=regularizer, intercept=True)
    runs = [Run(problem, stoic.Restarted([robust_mscg(mean, 40), robust_mscg(mean, 40, 30)])) for _ in range(3)]
    assert_same_run(runs[0].compiled(7).compiled(60), runs[1].plain(67))
    assert_same_run(runs[2].plain(20).compiled(47), runs[1])


def points(rng, kind):
    k, d = rng.integers(1, 40), rng.integers(2, 60)
    X = rng.standard_t(1.5, (k, d))
    if kind == "near":
        return 0.03 * X + rng.standard_normal(d)
    if kind == "outlier":
        X[rng.integers(k)] += 1e4
    if kind == "equal":
        X[: k // 2 + k % 3] = X[0]
    if kind == "median in a point":
        X[0] = np.median(X, axis=0) + 0.02 * rng.standard_normal(d)
    return X


def gram_distances(X):
    gram = X @ X.T
    squares = np.diag(gram)
    squared = np.maximum(squares[:, None] + squares - 2.0 * (gram + gram.T) / 2.0, 0.0)
    np.fill_diagonal(squared, 0.0)
    return squared


@pytest.mark.parametrize("kind", ["far", "near", "outlier", "equal", "median in a point"])
def test_shares_from_distances_give_the_geometric_median(kind):
    rng = np.random.default_rng(2)
    for _ in range(200):
        X = points(rng, kind)
        shares = np.empty(len(X))
        robust.geometric_median(gram_distances(X), shares)
        assert shares.min() >= -1e-12
        assert_close(shares @ X, GeometricMedianOfMeans(0.5).combine(X), 1e-10)


@pytest.mark.parametrize("kind", ["far", "near", "outlier", "equal", "median in a point"])
def test_shares_from_distances_give_the_smallest_ball(kind):
    rng = np.random.default_rng(3)
    for _ in range(200):
        X = points(rng, kind)
        far, shares = np.empty((len(X), len(X))), np.empty(len(X))
        robust.squared_distances(X, far)
        robust.smallest_ball(far, shares)
        assert sorted(set(shares)) in ([1.0], [0.0, 1.0])
        np.testing.assert_array_equal(shares @ X, SmallestBall(0.5).combine(X))


@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_the_gram_matrix_of_sparse_rows_is_that_of_dense_ones(k):
    rng = np.random.default_rng(k)
    inner = make_problem("csr-int32").inner
    X = CSR(inner.X.indptr, inner.X.indices.view(np.uint32), inner.X.data)
    rows, slopes = rng.integers(0, inner.n_samples, 11), rng.standard_normal(11)
    bounds = np.concatenate([[0], np.cumsum([len(part) for part in np.array_split(rows, k)])])
    means = np.stack(
        [
            (slope[:, None] * inner.X[part].toarray()).mean(axis=0)
            for slope, part in zip(np.array_split(slopes, k), np.array_split(rows, k), strict=True)
        ]
    )
    heads = np.full(inner.X.shape[1], -1)
    for matrix in (X, Dense(inner.X.toarray())):
        data = compiled.translate(make_problem(), make_problem().inner).data._replace(X=matrix)
        far = np.empty((k, k))
        robust.jacobian_distances(data, bounds, rows[None], slopes[None], heads, far)
        np.testing.assert_allclose(far, ((means[:, None] - means) ** 2).sum(axis=2), rtol=1e-12, atol=1e-12)
        assert (heads == -1).all()
        gram = np.zeros((k, k))
        robust.add_gram(matrix, bounds, rows, slopes, heads, gram)
        np.testing.assert_allclose(np.tril(gram), np.tril(means @ means.T), rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["zero", "l1"])
@pytest.mark.sampled(2)
@pytest.mark.slow
def test_prox_boost_around_robust_mscg(mean, storage, intercept, regularizer):
    problem = make_problem(storage, "huber", "cvar", regularizer, intercept=intercept)
    solved_alike(problem, boosted(robust_mscg(mean, 40)))
