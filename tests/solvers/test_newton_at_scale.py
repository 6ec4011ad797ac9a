"""Newton's method as it is on large data: parts of the rows, kept matrices, working sets, threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

import stoic
from stoic.inners import parted, threads
from stoic.inners.parted import Parted
from stoic.regularizers import Anchored
from stoic.solvers import newton_kept, newton_sets, newton_sum
from stoic.solvers.newton_model import has_model
from stoic.solvers.newton_rows import Sampling
from stoic.solvers.newton_sum import sum_of

N, D = 3000, 12
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * np.linspace(0.2, 2.0, D)
GROUPS = np.arange(N) % 3
Y = X @ RNG.standard_normal(D) + (1 + GROUPS) * RNG.standard_t(2.5, N)
WIDE = sp.random_array((400, 1500), density=0.05, rng=RNG, format="csr")
WIDE_Y = WIDE @ np.where(np.arange(1500) < 20, 2.0, 0.0) + 0.3 * RNG.standard_normal(400)


@pytest.fixture
def large(monkeypatch):
    """Take all data for large ones, of which some rows give the second derivatives."""
    for name, value in {"LARGE": 1, "_STARTS": 1, "_PER_VARIABLE": (4, 16), "_DEAR": 0.0, "_SHORT": 1e9}.items():
        monkeypatch.setattr(newton_sum, name, value)
    monkeypatch.setattr(parted, "_PART", 500)
    monkeypatch.setattr(threads, "_TERMS", 500)


def assert_optimal(problem, result, atol):
    """Assert that a prox step from the answer leads to it, which is so at optima alone."""
    assert result.status is stoic.Status.FINISHED
    ahead = problem.regularizer.prox(result.w - problem.gradient(result.w), 1.0)
    np.testing.assert_allclose(ahead, result.w, atol=atol)


def problem_of(kind=np.asarray, loss="huber", outer=None, regularizer=None, **options):
    y = np.sign(Y) if loss == "logistic" else Y
    inner = stoic.GroupLoss(kind(X), y, GROUPS, loss=loss, **options)
    return stoic.Problem(inner, outer or stoic.LogSumExp(0.5), regularizer or stoic.L2(1e-3))


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "regularizer", [stoic.Zero(), stoic.L2(1e-3), stoic.L1(0.05), stoic.ElasticNet(0.05)], ids=repr
)
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "quantile", "logistic"])
@pytest.mark.parametrize(
    "outer",
    [stoic.LogSumExp(0.5, prior=[1, 2, 3], baseline=[0, 1, 0]), stoic.SmoothCVaR(0.5, 0.5), stoic.Linear()],
)
def test_kept_matrices_lead_to_the_optimum(outer, loss, regularizer):
    problem = problem_of(loss=loss, outer=outer, regularizer=regularizer, intercept=True)
    result = stoic.minimize(problem, stoic.Newton(gap=0.0), budget=N)
    assert_optimal(problem, result, 1e-7)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("many", [1e9, 0.0], ids=["of all rows", "leads"])
@pytest.mark.parametrize("cheap", [1e9, 0.0], ids=["anew", "mended"])
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_second_derivatives_are_formed_anew_mended_or_of_more_rows(loss, cheap, many, monkeypatch):
    monkeypatch.setattr(newton_kept, "_CHEAP", cheap)
    monkeypatch.setattr(newton_kept, "_MANY_PRODUCTS", many)
    monkeypatch.setattr(newton_sum, "_PER_VARIABLE", (2,))
    grown = []
    monkeypatch.setattr(newton_kept.Kept, "_of_more", counted(newton_kept.Kept._of_more, grown))
    problem = problem_of(loss=loss, regularizer=stoic.L2(1e-4))
    assert_optimal(problem, stoic.minimize(problem, stoic.Newton(gap=0.0), budget=N), 1e-7)
    assert grown


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "kind",
    [np.asarray, np.asfortranarray, lambda x: x.astype(np.float32), sp.csr_array],
    ids=["C", "F", "32", "CSR"],
)
def test_storage_standardized_columns_and_anchors_do_not_matter(kind):
    center, scale = X.mean(axis=0), X.std(axis=0)
    problem = problem_of(kind, intercept=True, center=center, scale=scale)
    anchored = problem.with_regularizer(Anchored(problem.regularizer, np.ones(D + 1), 0.1))
    for one in (problem, anchored):
        assert_optimal(one, stoic.minimize(one, stoic.Newton(gap=0.0), budget=N), 1e-7)


@pytest.mark.usefixtures("large")
def test_the_optimum_is_that_of_an_independent_solver():
    problem = problem_of(loss="huber")
    found = scipy_minimize(
        lambda w: (problem.objective(w), problem.gradient(w)), np.zeros(D), jac=True, method="BFGS", tol=1e-9
    )
    result = stoic.minimize(problem, "newton", budget=N)
    assert problem.objective(result.w) <= found.fun * (1.0 + 1e-9)
    np.testing.assert_allclose(problem.objective(result.w), found.fun, rtol=1e-4)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_many_columns_start_from_a_part_of_the_rows(loss):
    inner = stoic.GroupLoss(WIDE, WIDE_Y, np.arange(400) % 4, loss=loss)
    problem = stoic.Problem(inner, stoic.LogSumExp(0.2), stoic.L2(1e-2))
    assert_optimal(problem, stoic.minimize(problem, stoic.Newton(gap=0.0), budget=400), 1e-7)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("many", [500, 5])
def test_working_sets_and_proximal_steps_find_the_non_zero_weights(loss, intercept, many, monkeypatch):
    monkeypatch.setattr(newton_sets, "_FEWEST", 10)
    monkeypatch.setattr(newton_sets, "_MANY", many)
    inner = stoic.GroupLoss(WIDE, WIDE_Y, np.arange(400) % 4, loss=loss, intercept=intercept)
    problem = stoic.Problem(inner, stoic.LogSumExp(0.2), stoic.ElasticNet(5e-3, l1_ratio=0.99))
    result = stoic.minimize(problem, stoic.Newton(gap=0.0), budget=400)
    assert_optimal(problem, result, 1e-8)
    assert 0 < np.count_nonzero(result.w) < 200


@pytest.mark.usefixtures("large")
def test_a_gap_ends_the_steps_earlier_and_is_kept():
    problem = problem_of(regularizer=stoic.L2(0.1))
    whole, part = (stoic.minimize(problem, stoic.Newton(gap=gap), budget=N) for gap in (0.0, 1e-3))
    assert part.n_steps < whole.n_steps
    assert problem.objective(part.w) - problem.objective(whole.w) <= 1e-3 * problem.objective(np.zeros(D))
    with pytest.raises(stoic.InvalidParameter, match="gap=-1"):
        stoic.Newton(gap=-1)


@pytest.mark.usefixtures("large")
def test_the_data_are_drawn_once_and_a_late_solve_ends_within_a_step():
    inner = stoic.GroupLoss(WIDE, WIDE_Y, loss="huber")
    problem = stoic.Problem(inner, stoic.Linear(), stoic.L2(1e-6))
    result = stoic.minimize(problem, "newton", budget=400, max_seconds=1e-9)
    assert result.status is stoic.Status.TIME_LIMIT
    assert result.samples <= 400
    with pytest.raises(stoic.InvalidParameter, match="budget >= 400"):
        stoic.minimize(problem, "newton", budget=399)


def test_conjugate_gradients_end_after_a_product_where_the_time_is_over(monkeypatch):
    inner = stoic.GroupLoss(WIDE, WIDE_Y, loss="squared")
    problem = stoic.Problem(inner, stoic.Linear(), stoic.L2(1e-6))
    solver, products = stoic.Newton(gap=0.0), []
    monkeypatch.setattr(type(inner), "combine", counted(type(inner).combine, products))

    def after_steps():
        state = solver.init(problem, np.zeros(1500), None)
        for _ in range(4):
            state, _ = solver.step(problem, state, None)
        return state

    after_steps()
    in_time = len(products)
    products.clear()
    monkeypatch.setattr("stoic.solvers.newton_sum.Sum.is_late", True)
    state = after_steps()
    assert len(products) <= 8 < in_time  # one in a direction, one for the slope of a point
    assert problem.objective(state.w) < problem.objective(np.zeros(1500))


def counted(method, calls):
    def call(*arguments):
        calls.append(1)
        return method(*arguments)

    return call


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, lambda x: x.astype(np.float32), sp.csr_array])
def test_products_in_parts_have_the_same_bits_for_any_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr(parted, "_PART", 500)
    w, c, codes = RNG.standard_normal(D), RNG.standard_normal(N), GROUPS.astype(np.intp)
    results = []
    for most in (1, 3):
        threads._pool.cache_clear()
        monkeypatch.setattr(threads, "_MOST_THREADS", most)
        monkeypatch.setattr(threads, "_processors", lambda: 8)
        rows = Parted(kind(X))
        assert len(rows.parts) > 4
        sums = [rows.sums_by(codes, c, 3), rows.grams(codes, np.abs(c), 3)]
        results.append([rows.times(w), rows.transposed_times(c), rows.gram(c), rows.squares(c), *sums])
    threads._pool.cache_clear()
    dense = kind(X).toarray() if sp.issparse(kind(X)) else kind(X).astype(float)
    expected = [dense @ w, dense.T @ c, dense.T @ (c[:, None] * dense), c @ dense**2]
    expected.append(np.stack([dense[codes == i].T @ c[codes == i] for i in range(3)]))
    expected.append(np.stack([(dense * (np.abs(c) * (codes == i))[:, None]).T @ dense for i in range(3)]))
    for one, other, right in zip(*results, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, right, rtol=1e-9, atol=1e-9)


def test_many_groups_are_summed_as_few_are():
    codes, c = np.arange(N) % 40, RNG.standard_normal(N)
    for rows in (Parted(X), Parted(sp.csr_array(X))):
        for own in (codes, codes % 3):
            expected = np.stack([X[own == i].T @ c[own == i] for i in range(own.max() + 1)])
            np.testing.assert_allclose(rows.sums_by(own, c, len(expected)), expected, rtol=1e-9, atol=1e-9)


def test_terms_made_by_threads_are_those_of_one_share(monkeypatch):
    y = np.sign(Y)
    problem = stoic.GroupLoss(X, y, GROUPS, loss="logistic", sample_weight=np.arange(N) % 5)
    everything, t = problem.everything(), 3.0 * RNG.standard_normal(N)

    def made():
        return (
            problem.value_at(t, everything),
            problem.slopes_at(t, everything),
            problem.curvatures_at(t, 0.3),
            problem.steepness_at(t),
        )

    alone = made()
    monkeypatch.setattr(threads, "_TERMS", 100)
    for one, other in zip(alone, made(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_threads_heed_the_errors_that_the_caller_wants_and_hand_theirs_on(monkeypatch):
    monkeypatch.setattr(threads, "_TERMS", 10)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        threads.added(100, lambda rows: np.full(rows.stop - rows.start, 1e300).prod(keepdims=True))
    with np.errstate(over="ignore"):
        assert np.isinf(threads.added(100, lambda rows: np.full(2, 1e300).prod(keepdims=True)))


@pytest.mark.parametrize("weight", [None, np.arange(N) % 7])
def test_rows_alike_are_taken_in_equal_distances_and_one_that_counts_of_each_group(weight):
    groups = np.repeat([0, 1, 2, 3], [2000, 700, 292, 8])
    weight = None if weight is None else np.where(groups == 3, np.arange(N) == N - 2, weight)
    inner = stoic.GroupLoss(RNG.uniform(1.0, 2.0, (N, 3)), Y, groups, sample_weight=weight)
    some, weights = Sampling(inner).rows(400)
    assert weights is None
    counts = np.bincount(groups[some])
    assert (counts[:3] == [100, 100, 98]).all()
    assert np.unique(np.diff(some[groups[some] == 0])).tolist() == [20]
    assert counts[3] == 8
    if weight is not None:
        assert (np.bincount(groups[some], weight[some]) > 0.0).all()


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("standardized", [False, True])
def test_rows_that_are_long_or_rare_are_taken_and_the_weights_make_up_for_it(kind, standardized):
    rng = np.random.default_rng(1)
    columns = np.stack(
        [np.ones(N), rng.standard_t(2.0, N), np.arange(N) % 1000 == 7, np.arange(N) == 5], axis=1
    ) * np.array([1.0, 100.0, 1e-3, 1e5])  # units do not matter
    options = {"center": columns.mean(axis=0), "scale": columns.std(axis=0) + 1.0} if standardized else {}
    weight = 0.5 + rng.random(N)
    inner = stoic.GroupLoss(kind(columns), Y, GROUPS, sample_weight=weight, **options)
    some, weights = Sampling(inner).rows(600)
    assert 300 < len(some) < 800
    assert {5, 7, 1007, 2007} <= set(some.tolist())
    shares = inner.taken(some).with_weight(weights).grouped_rows.shares
    for own in (columns[:, 0], columns[:, 2], np.square(columns[:, 1])):
        exact = np.bincount(GROUPS, own * inner.grouped_rows.shares)
        found = np.bincount(GROUPS[some], own[some] * shares)
        np.testing.assert_allclose(found, exact, rtol=0.2)


def test_rows_without_weight_are_not_taken():
    weight = (np.arange(N) % 2 == 0).astype(float)
    inner = stoic.GroupLoss(np.square(np.square(X)), Y, GROUPS, sample_weight=weight)
    some, weights = Sampling(inner).rows(500)
    assert weights is not None
    assert (weight[some] == 1.0).all()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("p", [3, 1000])
def test_levels_have_several_rows_of_each_group(p):
    problem = stoic.Problem(stoic.GroupLoss(X, Y, np.arange(N) % p), stoic.LogSumExp(50.0), stoic.L2(1e-2))
    sum_ = sum_of(problem, None)
    assert bool(sum_.levels) == sum_.takes_few == (p == 3)
    assert all(4 * p <= size <= N // 4 for size in sum_.levels)
    assert_optimal(problem, stoic.minimize(problem, stoic.Newton(gap=0.0), budget=N), 1e-7)


def test_there_is_a_model_of_groups_where_their_matrices_are_few_beside_the_rows():
    few, many = (stoic.Problem(stoic.GroupLoss(X, Y, np.arange(N) % p), stoic.LogSumExp(1.0)) for p in (3, 1000))
    assert has_model(sum_of(few, None))
    assert not has_model(sum_of(many, None))
    assert not has_model(sum_of(stoic.Problem(few.inner, stoic.Linear()), None))


def test_parts_share_the_memory_of_the_matrix(monkeypatch):
    monkeypatch.setattr(parted, "_PART", 500)
    matrix = sp.csr_array(X)
    for rows in (Parted(matrix), Parted(X)):
        assert len(rows.parts) > 4
        for part in rows.parts:
            if sp.issparse(part):
                assert np.shares_memory(part.data, matrix.data)
                assert np.shares_memory(part.indices, matrix.indices)
            else:
                assert np.shares_memory(part, X)


def test_second_derivatives_move_to_another_loss_and_all_rows_are_not_copied():
    few, other = (sum_of(problem_of(loss=loss), None) for loss in ("huber", "squared"))
    kept = newton_kept.Kept(few.of_size(300)).moved_to(other)
    assert kept.few.n < N
    assert not kept.is_formed
    assert newton_kept.Kept(few).moved_to(other).few is other
