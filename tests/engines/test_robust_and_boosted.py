"""MSCG with robust means and proxBoost: both engines give one answer, and say what only one can run."""

import math

import numpy as np
import pytest

import stoic
from engines.runs import MAKERS, Run, assert_close, assert_same_run, make_problem, make_solver, solve, solved_alike
from stoic.engines import compiled
from stoic.engines.compiled import missing
from stoic.inners.metered import Metered
from stoic.kernels import robust
from stoic.kernels.rows import CSR, Dense
from stoic.means import GeometricMedianOfMeans, MedianOfMeans, SmallestBall
from stoic.solvers.prox_boost import ProxBoosted, ProxStage

MEANS = {
    "smallest-ball": SmallestBall(math.exp(-7 / 18)),  # 7 blocks each, of sizes 2 and 3
    "geometric-median": GeometricMedianOfMeans(math.exp(-7 / 3.5)),
}
BATCH = 17

every_mean = pytest.mark.parametrize("mean", MEANS)
every_storage = pytest.mark.parametrize("storage", ["dense", "csr-int32"])
with_and_without_intercept = pytest.mark.parametrize("intercept", [False, True])


@pytest.fixture
def only_kernels(monkeypatch):
    """Fail where the compiled engine hands more than the first step of a CIVR to the plain one."""
    plain = compiled.run_chunk

    def guarded(solver, problem, meter, chunk, rng, limits):
        after = plain(solver, problem, meter, chunk, rng, limits)
        if after.n_steps > chunk.n_steps:
            assert compiled.innermost(solver, chunk.state).state.y is None
        return after

    monkeypatch.setattr(compiled, "run_chunk", guarded)


def robust_mscg(mean, n_steps=200, batch_size=BATCH):
    return stoic.MSCG(0.03, batch_size, n_steps, MEANS[mean])


def boosted(solver, weights=(0.0, 0.3, 2.0), n_trials=3):
    return ProxBoosted(tuple(ProxStage(weight, solver, n_trials) for weight in weights))


# --- MSCG with robust means ---


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("regularizer", ["zero", "l2"])
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
def test_chunks_and_a_change_of_the_engine_lead_to_the_same_state(mean, storage):
    problem = make_problem(storage, "huber", regularizer="l2", intercept=True)
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
        np.testing.assert_allclose(gram, np.tril(means @ means.T), rtol=1e-12, atol=1e-12)


# --- proxBoost ---


@pytest.mark.usefixtures("only_kernels")
@every_storage
@with_and_without_intercept
@pytest.mark.parametrize("solver", MAKERS)
def test_prox_boost_agrees_with_the_plain_engine(solver, storage, intercept):
    problem = make_problem(storage, "huber", "logsumexp", "l2", intercept=intercept)
    result = solved_alike(problem, boosted(make_solver(solver, problem, 3, 60)))
    assert {record["stage"] for record in result.history} == {0, 1, 2}


@pytest.mark.usefixtures("only_kernels")
@every_mean
@every_storage
@with_and_without_intercept
def test_prox_boost_around_robust_mscg(mean, storage, intercept):
    problem = make_problem(storage, "huber", "cvar", "zero", intercept=intercept)
    solved_alike(problem, boosted(robust_mscg(mean, 40)))


@pytest.mark.usefixtures("only_kernels")
@with_and_without_intercept
def test_a_strong_anchor_renews_the_scale_many_times(intercept):
    problem = make_problem("csr-int32", "huber", "linear", "l2", intercept=intercept)
    solved_alike(problem, boosted(make_solver("scsc", problem, 2, 150), (50.0, 500.0)))


@pytest.mark.usefixtures("only_kernels")
@every_storage
def test_prox_boost_of_restarts_and_restarts_of_prox_boost(storage):
    problem = make_problem(storage, "huber", regularizer="l2", intercept=True)
    stages = stoic.Restarted([make_solver(name, problem, 3, 30) for name in ("mscg", "alexr", "civr", "scgd")])
    nested = boosted(stages, (0.0, 1.0), 2)
    solved_alike(problem, nested)
    solved_alike(problem, stoic.Restarted([stages, nested, make_solver("mscg", problem, 5, 50)]))


@pytest.mark.usefixtures("only_kernels")
def test_the_trials_of_a_first_stage_of_rosc_start_at_the_anchor():
    problem = make_problem("csr-int32", "huber", regularizer="l2")
    first, then = make_solver("rosc-calibrated", problem, 3, 40), make_solver("mscg", problem, 3, 40)
    solved_alike(problem, boosted(stoic.Restarted([first, then]), (0.5, 1.0)))


@every_storage
@pytest.mark.parametrize("method", ["rmscg-robust", "prox-boost"])
def test_methods_that_choose_their_settings_agree(method, storage):
    problem = make_problem(storage, "huber", regularizer="l2")
    solved_alike(problem, method, budget=60_000)


@pytest.mark.parametrize("solver", ["rosc", "civr", "mscg", "scsc"])
@pytest.mark.parametrize("budget", [1003, 1404, 2222, 3001])
def test_a_budget_that_ends_within_a_trial(solver, budget):
    problem = make_problem(loss="huber", regularizer="l2")
    solved_alike(problem, boosted(make_solver(solver, problem, 3, 25)), budget=budget)


@pytest.mark.parametrize("solver", ["rosc", "mscg", "scsc"])
def test_chunks_do_not_change_a_bit_of_prox_boost(solver):
    problem = make_problem("csr-int32", "huber", regularizer="l2")
    settings = boosted(make_solver(solver, problem, 3, 60))
    once = solve(problem, settings, "compiled")
    for chunk_size in (1, 7, 64):
        again = solve(problem, settings, "compiled", chunk_size=chunk_size)
        np.testing.assert_array_equal(again.w, once.w)


@pytest.mark.parametrize("solver", ["rosc", "mscg", "scsc", "civr"])
def test_a_run_of_prox_boost_may_change_its_engine(solver):
    problem = make_problem("csr-int32", "huber", regularizer="l2", intercept=True)
    settings = boosted(make_solver(solver, problem, 3, 30))
    mixed, plain = Run(problem, settings), Run(problem, settings)
    for steps in (10, 25, 40, 1, 1, 50):
        mixed.compiled(steps).plain(steps)
    assert_same_run(mixed, plain.plain(254))


# --- what is missing ---


def lacks(solver, regularizer="l2"):
    problem = make_problem(regularizer=regularizer)
    return missing(solver, problem, Metered(problem.inner, 1))


def test_what_is_missing_is_named():
    problem = make_problem()
    mscg, rosc = make_solver("mscg", problem, 3), make_solver("rosc", problem, 3)
    median = stoic.MSCG(0.03, BATCH, 10, MedianOfMeans(0.5))
    assert lacks(boosted(mscg)) == lacks(boosted(rosc)) == []
    assert lacks(boosted(stoic.Restarted([mscg, rosc])), "zero") == ["a restarted ROSC in proxBoost"]
    assert lacks(boosted(stoic.Restarted([rosc, mscg]))) == []
    assert lacks(boosted(stoic.Restarted([mscg, rosc]), [0.0])) == []
    assert lacks(boosted(boosted(mscg), [1.0])) == ["a proxBoost in proxBoost"]
    assert lacks(boosted(rosc), "elastic-net") == ["an L1 term with ROSC in proxBoost"]
    assert lacks(boosted(make_solver("civr", problem, 3)), "elastic-net") == []
    assert lacks(boosted(stoic.Restarted([mscg, median]))) == [f"the mean {median.mean!r} in MSCG"]


def test_civr_in_prox_boost_takes_an_l1_term():
    problem = make_problem("csr-int32", "huber", regularizer="elastic-net", intercept=True)
    solved_alike(problem, boosted(make_solver("civr", problem, 3, 60)))


def test_a_restarted_rosc_in_prox_boost_runs_in_the_plain_engine():
    problem = make_problem(loss="huber", regularizer="l2")
    settings = boosted(make_solver("restarted-rosc", problem, 3, 40))
    with pytest.raises(stoic.IncompatibleParts, match="a restarted ROSC in proxBoost"):
        solve(problem, settings, "compiled")
    np.testing.assert_array_equal(solve(problem, settings, "auto").w, solve(problem, settings, "plain").w)
