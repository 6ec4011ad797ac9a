"""Both engines meet the edges of data and settings in the same way."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import stoic
from engines.runs import (
    MAKERS,
    SOLVERS,
    Run,
    assert_close,
    assert_same_run,
    make_problem,
    make_solver,
    solve,
    solved_alike,
)
from stoic.engines.compiled.problem import translate
from stoic.engines.compiled.sparse_reference import sparse_init

every_solver = pytest.mark.parametrize("solver", SOLVERS)
each_alone = pytest.mark.parametrize("solver", MAKERS)
both_forms = pytest.mark.parametrize("regularizer", [stoic.L2(0.5), stoic.L1(0.05)], ids=["l2", "l1"])
LARGE = stoic.LogSumExp(10.0)


def table(n=60, d=4, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((n, d)), np.arange(n) % p
    return X, X @ np.ones(d) + rng.standard_t(3.0, n), groups


def sparse(X):
    return sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))


def problem_of(X, y, groups, outer=LARGE, regularizer=None, **options):
    return stoic.Problem(stoic.GroupLoss(X, y, groups, **options), outer, regularizer or stoic.L2(0.5))


def alike(solver, problem, m=3, **options):
    return solved_alike(problem, make_solver(solver, problem, m, 200), **options)


# --- shapes ---


@every_solver
@both_forms
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.sampled(8)
def test_rows_without_entries_and_columns_of_zeros(solver, regularizer, intercept):
    X, y, groups = table(d=6)
    X[::5] = 0.0
    X[:, 3] = 0.0
    alike(solver, problem_of(sparse(X), y, groups, regularizer=regularizer, intercept=intercept))


@each_alone
@both_forms
@pytest.mark.sampled(2)
def test_a_matrix_without_any_entry(solver, regularizer):
    _, y, groups = table()
    alike(solver, problem_of(sp.csr_array((60, 4)), y, groups, regularizer=regularizer, intercept=True))


@every_solver
def test_one_row_in_each_group_and_batches_larger_than_a_group(solver):
    X, y, _ = table(n=5)
    problem = problem_of(X, y, np.arange(5), loss="huber")
    settings = make_solver(solver, problem, 7, 200)
    # With one row a group z has no noise, and levels measured from it are rounding: only points are compared.
    plain, compiled = (solve(problem, settings, engine) for engine in ("plain", "compiled"))
    assert (compiled.status, compiled.samples) == (plain.status, plain.samples)
    assert_close(compiled.w, plain.w)


@every_solver
@both_forms
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.sampled(4)
def test_entries_that_are_stored_twice_count_as_their_sum(solver, regularizer, m):
    X, y, groups = table()
    one = sparse(X)
    twice = sp.csr_array(
        (np.repeat(one.data, 2) * np.tile([0.3, 0.7], one.nnz), np.repeat(one.indices, 2), 2 * one.indptr),
        shape=X.shape,
    )
    assert not twice.has_canonical_format
    alike(solver, problem_of(twice, y, groups, regularizer=regularizer), m)


@each_alone
@both_forms
@pytest.mark.sampled(2)
def test_rows_whose_columns_are_not_sorted(solver, regularizer):
    X, y, groups = table(d=9)
    mixed = sparse(X)
    order = np.concatenate(
        [np.arange(stop - 1, start - 1, -1) for start, stop in itertools.pairwise(mixed.indptr)]
    )
    mixed = sp.csr_array((mixed.data[order], mixed.indices[order], mixed.indptr), shape=X.shape)
    alike(solver, problem_of(mixed, y, groups, regularizer=regularizer))


@every_solver
@both_forms
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.sampled(4)
def test_one_column(solver, regularizer, make):
    X, y, groups = table(d=1)
    alike(solver, problem_of(make(X), y, groups, regularizer=regularizer))


@each_alone
@both_forms
@pytest.mark.parametrize("d", [2, 3, 5, 7, 8, 9, 15, 16, 17, 33])
@pytest.mark.sampled(12)
def test_every_remainder_of_the_unrolled_loops(solver, regularizer, d):
    X, y, groups = table(d=d)
    alike(solver, problem_of(X, y, groups, loss="huber", regularizer=regularizer), 1)
    alike(solver, problem_of(sparse(X), y, groups, loss="huber", regularizer=regularizer), 2)


@every_solver
@pytest.mark.parametrize("p", [1, 200])
@pytest.mark.sampled(4)
def test_one_group_and_many(solver, p):
    X, y, groups = table(n=400, p=p)
    for outer in (stoic.Linear(), LARGE, stoic.SmoothCVaR(0.3, 2.0)):
        problem = problem_of(X, y, groups, outer=outer, loss="huber")
        solved_alike(problem, make_solver(solver, problem, 1, 60))


@pytest.mark.every  # compiled anew for each solver
@each_alone
def test_targets_that_are_a_column_of_a_table(solver):
    X, y, groups = table()
    alike(solver, problem_of(X, np.column_stack([y, y])[:, 0], groups))


def test_every_other_column_in_single_precision_with_targets_that_are_a_column_of_a_table():
    X, y, groups = table(d=8)
    view = X.astype(np.float32)[:, ::2]
    problem = problem_of(view, np.column_stack([y, y])[:, 0], groups)
    assert np.shares_memory(problem.inner.X, view)
    alike("mscg", problem)


# --- settings ---


@each_alone
@pytest.mark.parametrize("regularizer", [stoic.L2(1e12), stoic.ElasticNet(1e12, 1e-6)])
def test_steps_so_long_that_the_regularizer_wins_in_one(solver, regularizer):
    X, y, groups = table()
    problem = problem_of(X, y, groups, regularizer=regularizer, loss="huber")
    solved_alike(problem, make_solver(solver, problem, 3, 60))


@each_alone
@pytest.mark.parametrize("alpha", [1e160, 1e300])
@pytest.mark.parametrize("make", [stoic.L2, lambda alpha: stoic.ElasticNet(alpha, 0.5)])
@pytest.mark.sampled(4)
def test_a_regularizer_that_shrinks_to_nothing(solver, make, alpha):
    X, y, groups = table()
    problem = problem_of(X, y, groups, regularizer=make(alpha), loss="huber", intercept=True)
    solved_alike(problem, make_solver(solver, problem, 3, 60), w0=np.ones(5))


@each_alone
@pytest.mark.parametrize("alpha", [30.0, 1e4])
def test_an_l1_term_that_lets_nothing_live(solver, alpha):
    X, y, groups = table()
    problem = problem_of(X, y, groups, regularizer=stoic.L1(alpha), loss="huber")
    run = Run(problem, make_solver(solver, problem, 3, 300)).compiled(300)
    assert not run.state.w.any()  # an average may keep the rounding of the thresholds it was summed under
    assert np.abs(run.solver.output(run.state)).max() <= 1e-13 * alpha


def rosc(**changes):
    settings = {
        "step_size": 0.05,
        "batch_size": 3,
        "n_steps": 200,
        "radius": 1.0,
        "reference_size": 40,
        "reference_mean": stoic.SmallestBall(0.4),
        "levels": stoic.Levels(1.0, 1.0, math.inf, math.inf),
    }
    return stoic.ROSC(**{**settings, **changes})


@both_forms
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("radius", [1e-3, 1e-9])
def test_a_ball_that_is_active_at_every_step(intercept, radius, regularizer):
    X, y, groups = table()
    problem = problem_of(X, y + 50.0, groups, regularizer=regularizer, intercept=intercept)
    run = Run(problem, rosc(radius=radius))
    for _ in range(200):
        run.plain()
        assert np.linalg.norm(run.state.w - run.state.reference.w) > 0.999 * radius
    solved_alike(problem, rosc(radius=radius))


@both_forms
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("w0", [1.0, 1e3, 1e5])
def test_a_small_ball_far_from_zero(intercept, w0, regularizer):
    X, y, groups = table()
    problem = problem_of(X, y, groups, regularizer=regularizer, intercept=intercept, loss="huber")
    solved_alike(problem, rosc(radius=1e-2), w0=np.full(problem.dimension, w0))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("label", [1e9, 1e12, 1e30, 1e50, 1e70, 1e100, 1e140])
@pytest.mark.parametrize("regularizer", [stoic.Zero(), stoic.L2(0.5), stoic.L1(0.05)], ids=["zero", "l2", "l1"])
@pytest.mark.sampled(2)
def test_a_wild_step_ends_on_the_edge_of_the_ball_and_leaves_no_trace_in_the_average(
    intercept, label, regularizer
):
    X, y, groups = table()
    y[::7] = label
    problem = problem_of(X, y, groups, intercept=intercept, outer=stoic.Linear(), regularizer=regularizer)
    settings = rosc(radius=2.0, batch_size=1)
    plain, compiled = Run(problem, settings), Run(problem, settings)
    for _ in range(50):
        assert_same_run(compiled.compiled(), plain.plain())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kick", [1e6, 1e9, 1e12])
def test_a_run_that_was_kicked_far_out_and_came_back_measures_distances_as_before(intercept, kick):
    rng = np.random.default_rng(0)  # one wild row in 60; the others bring w back within a few steps
    X = rng.choice([-1.0, 1.0], (60, 4))
    y = X @ np.ones(4) + 0.1 * rng.standard_normal(60)
    y[0] = kick
    problem = problem_of(X, y, None, outer=stoic.Linear(), regularizer=stoic.Zero(), intercept=intercept)
    levels = stoic.Levels(2.0, 3.0, 2.0, math.inf)
    settings = rosc(batch_size=1, step_size=0.1, n_steps=2000, radius=100.0 * kick, levels=levels)
    plain, compiled = Run(problem, settings), Run(problem, settings)
    for _ in range(100):
        plain.plain(20), compiled.compiled(20)
        assert compiled.counts == plain.counts
    assert 100 < plain.chunk.truncated_y < 1900


# --- infinities ---


@every_solver
@both_forms
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "quantile"])
@pytest.mark.parametrize("make", [np.asarray, sparse], ids=["dense", "csr"])
@pytest.mark.sampled(12)
def test_infinite_losses(solver, regularizer, loss, make):
    X, y, groups = table()
    y[3], y[31] = 1e200, -1e200
    alike(solver, problem_of(make(X), y, groups, loss=loss, regularizer=regularizer))


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("delta", "wild"),  # 83, 22, 5 and 3 blocks; of many blocks, fewer than half are wild
    [(0.01, 1.0), (0.3, 1.0), (0.8, 1.0), (0.85, 1.0), (0.01, 1e100), (0.3, 1e100), (0.01, 1e200), (0.3, 1e200)],
)
@np.errstate(all="ignore")
@pytest.mark.sampled(2)
def test_a_stage_on_sparse_rows_starts_from_the_reference_of_the_plain_engine(calibrated, wild, intercept, delta):
    levels = stoic.Calibrated(1.0, 1.0) if calibrated else stoic.Levels(1.0, 1.0, 1.0, 1.0)
    settings = rosc(reference_size=90, reference_mean=stoic.SmallestBall(delta), levels=levels)
    for seed in range(5):
        X, y, groups = table(d=12, seed=seed)
        y[0] *= wild
        problem = problem_of(sparse(X), y, groups, intercept=intercept)
        w0 = np.full(problem.dimension, 0.3)
        one, other = Run(problem, settings), Run(problem, settings)
        ours = sparse_init(settings, one.problem, w0, np.random.default_rng(seed)).reference
        theirs = settings.init(other.problem, w0, np.random.default_rng(seed)).reference
        np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-12)
        np.testing.assert_allclose(ours.z, theirs.z, rtol=1e-9, atol=1e-9 * np.abs(theirs.z).max())
        np.testing.assert_allclose(ours.levels, theirs.levels, rtol=1e-6)
        assert one.counts == other.counts


@each_alone
@pytest.mark.parametrize("outer", [LARGE, stoic.Linear()], ids=["logsumexp", "linear"])
@pytest.mark.parametrize("regularizer", [stoic.Zero(), stoic.L1(0.05)], ids=["zero", "l1"])
@pytest.mark.sampled(4)
def test_predictions_that_are_not_numbers(solver, outer, regularizer):
    X, y, groups = table()
    X[5] = [1e308, -1e308, 1e308, -1e308]  # times 100 is inf − inf
    problem = problem_of(X, y, groups, outer=outer, loss="huber", regularizer=regularizer)
    alike(solver, problem, w0=np.full(4, 100.0))


@each_alone
def test_a_group_of_prior_zero_may_have_infinite_losses(solver):
    X, y, groups = table()
    y[groups == 1] = 1e200
    alike(solver, problem_of(X, y, groups, outer=stoic.LogSumExp(5.0, prior=[1.0, 0.0, 1.0])))


def diverging(solver, problem, step=50.0):
    """Return settings whose steps are far too long: w grows until it overflows."""
    made = vars(make_solver(solver, problem, 3, 1200))
    if "steps" in made:
        return type(make_solver(solver, problem, 3))(**{**made, "steps": stoic.PowerLaw(step)})
    changes = {"step_size": step, "radius": math.inf, "levels": stoic.Levels(1e3, 1e3, math.inf, math.inf)}
    changes |= {"clip": 1e300}
    known = {name: value for name, value in changes.items() if name in made}
    return type(make_solver(solver, problem, 3))(**{**made, **known})


@each_alone
@pytest.mark.parametrize(
    ("regularizer", "intercept"),
    [(stoic.Zero(), False), (stoic.Zero(), True), (stoic.L1(0.05), True)],
    ids=["zero", "zero-intercept", "l1-intercept"],
)
@pytest.mark.sampled(4)
def test_a_run_that_diverges_keeps_the_last_finite_point(solver, intercept, regularizer):
    X, y, groups = table()
    problem = problem_of(X, y, groups, outer=stoic.Linear(), regularizer=regularizer, intercept=intercept)
    settings = diverging(solver, problem)
    plain, compiled = (solve(problem, settings, engine, observers={}) for engine in ("plain", "compiled"))
    assert plain.status is compiled.status
    assert plain.status is stoic.Status.DIVERGED or solver.startswith(("rosc", "clipped"))
    assert (compiled.n_steps, compiled.samples, compiled.evaluations) == (
        plain.n_steps,
        plain.samples,
        plain.evaluations,
    )
    assert np.isfinite(compiled.w).all()
    assert_close(compiled.w, plain.w)


@each_alone
@pytest.mark.parametrize("chunk_size", [7, pytest.param(1, marks=pytest.mark.every)])
@pytest.mark.sampled(3)
def test_a_run_that_diverges_does_so_whatever_the_chunk_size(solver, chunk_size):
    X, y, groups = table()
    problem = problem_of(X, y, groups, outer=stoic.Linear(), regularizer=stoic.Zero())
    settings = diverging(solver, problem)
    one = solve(problem, settings, "compiled", observers={})
    other = solve(problem, settings, "compiled", observers={}, chunk_size=chunk_size)
    assert (one.status, one.n_steps, one.samples) == (other.status, other.n_steps, other.samples)
    assert one.w.tobytes() == other.w.tobytes()


# --- endings ---


@every_solver
@pytest.mark.parametrize("budget", [121, 200, 333, 478, 479, 480, 481, 601, 1013])
@pytest.mark.sampled(6)
def test_a_budget_that_ends_in_the_middle_of_a_step(solver, budget):
    X, y, groups = table()
    problem = problem_of(X, y, groups, loss="huber")
    settings = make_solver(solver, problem, 3, 400)
    outcomes = []
    for engine in ("plain", "compiled"):
        try:
            outcomes.append(solve(problem, settings, engine, budget=budget, evaluate_every=50))
        except stoic.InvalidParameter as error:
            outcomes.append(str(error))
    plain, compiled = outcomes
    if isinstance(plain, str):
        assert compiled == plain
    else:
        solved_alike(problem, settings, budget=budget, evaluate_every=50)


@every_solver
def test_ctrl_c_while_observing(solver):
    problem = make_problem()
    settings = make_solver(solver, problem, 3)
    results = []
    for engine in ("plain", "compiled"):
        calls = iter(range(10))

        def observe(w, calls=calls):
            if next(calls) == 3:
                raise KeyboardInterrupt
            return w[0]

        results.append(solve(problem, settings, engine, observers={"w": observe}, evaluate_every=300))
    plain, compiled = results
    assert plain.status is compiled.status is stoic.Status.INTERRUPTED
    assert (plain.samples, plain.n_steps) == (compiled.samples, compiled.n_steps)
    assert_close(compiled.w, plain.w)


@each_alone
def test_ctrl_c_between_two_chunks(solver, monkeypatch):
    problem = make_problem()
    run = Run(problem, make_solver(solver, problem, 3))
    run.compiled(20)

    def interrupt(shape):
        raise KeyboardInterrupt

    monkeypatch.setattr("stoic.inners.groups.GroupedRows.at", lambda self, *uniforms: interrupt(uniforms))
    run.compiled(20)
    assert run.chunk.ending is stoic.Status.INTERRUPTED
    assert run.chunk.n_steps == 20


def test_a_callback_may_stop_the_solve():
    problem = make_problem()

    def stop(record):
        raise StopIteration

    for engine in ("plain", "compiled"):
        result = solve(problem, make_solver("mscg", problem, 3), engine, callback=stop, evaluate_every=300)
        assert (result.status, len(result.history)) == (stoic.Status.STOPPED, 1)


@each_alone
def test_time_that_has_run_out(solver):
    problem = make_problem()
    settings = make_solver(solver, problem, 3, 10**9) if "calibrated" not in solver else rosc(n_steps=10**9)
    for engine in ("plain", "compiled"):
        assert solve(problem, settings, engine, max_seconds=1e-9).status is stoic.Status.TIME_LIMIT


def test_time_that_runs_out_on_the_way():
    problem = make_problem()
    settings = make_solver("mscg", problem, 3, 10**9)
    result = solve(problem, settings, "compiled", budget=10**12, max_seconds=0.2)
    assert result.status is stoic.Status.TIME_LIMIT
    assert result.n_steps > 0


@each_alone
def test_tolerance_stops_both_engines_at_the_same_record(solver):
    problem = make_problem(loss="huber", regularizer="l2")
    solved_alike(problem, make_solver(solver, problem, 3, 2000), tol=0.02, evaluate_every=100)


# --- X stays where it is ---


@every_solver
def test_read_only_data(solver):
    X, y, groups = table()
    X.flags.writeable = y.flags.writeable = False
    alike(solver, problem_of(X, y, groups))


@each_alone
def test_data_and_w0_stay_as_they_were(solver):
    X, y, groups = table()
    matrix, w0 = sparse(X), np.full(4, 0.5)
    arrays = [matrix.data, matrix.indices, matrix.indptr, y, w0]
    before = [array.copy() for array in arrays]
    problem = problem_of(matrix, y, groups)
    solve(problem, make_solver(solver, problem, 3), "compiled", w0=w0)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_rows_are_not_copied(order):
    X, y, groups = table()
    problem = problem_of(np.asarray(X, order=order), y, groups)
    data = translate(problem, problem.inner).data
    assert np.shares_memory(data.X.values, problem.inner.X)
    assert np.shares_memory(data.targets, problem.inner.y)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_are_not_copied(index):
    X, y, groups = table()
    matrix = sparse(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    problem = problem_of(matrix, y, groups)
    rows = translate(problem, problem.inner).data.X
    for name in ("indptr", "indices", "data"):
        assert np.shares_memory(getattr(rows, name), getattr(matrix, name))
