"""Extreme but legal problems: an answer that is finite, or a solve that says that it diverged; never a warning."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import stoic
from catalog import METHODS, NEEDS_LINEAR_OUTER

RNG = np.random.default_rng(0)
P, D, ROWS = 3, 3, 15
X = RNG.standard_normal((P * ROWS, D))
Y = X @ np.arange(1.0, D + 1.0) + RNG.standard_normal(P * ROWS)
GROUPS = np.repeat(np.arange(P), ROWS)

every_method = pytest.mark.parametrize("method", METHODS)
FEW = ("mscg", "rmscg-robust", "rrosc", "scsc", "rcivr", "rsmd", "clipped-sgd")
a_few_methods = pytest.mark.parametrize("method", FEW)


def problem_for(method, X=X, y=Y, groups=GROUPS, outer=None, **options):
    outer = stoic.Linear() if method in NEEDS_LINEAR_OUTER else outer or stoic.LogSumExp(1.0)
    return stoic.Problem(stoic.GroupLoss(X, y, groups, **options), outer, stoic.L2(0.1))


def solve(method, problem, budget=1500):
    """Solve, and check what must hold however it went."""
    result = stoic.minimize(problem, method, budget=budget, seed=0)
    assert np.isfinite(result.w).all()
    values = [(name, value) for record in result.history for name, value in record.items()]
    assert all(math.isfinite(value) or (name, value) == ("duality_gap", math.inf) for name, value in values)
    if not result.success and not is_cut(method, result):
        assert result.status is stoic.Status.DIVERGED
        assert "smaller step size" in result.message
    return result


def is_cut(method, result):
    """Whether the budget or the last of its steps ended Newton's method before it was done."""
    return method == "newton" and result.status in {stoic.Status.PLAN_CUT, stoic.Status.STEPS_SPENT}


def check_progress(method, problem, budget=1500):
    """Solve, and check that the answer is no worse than the start."""
    result = solve(method, problem, budget)
    assert result.success or is_cut(method, result), result.message
    start = problem.objective(problem.start(None))
    assert problem.objective(result.w) <= start + 1e-9 * abs(start)
    return result


# --- temperatures and losses ---


@every_method
@pytest.mark.parametrize("temperature", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.sampled(4)
def test_any_temperature_gives_an_answer_no_worse_than_the_start(method, temperature):
    check_progress(method, problem_for(method, outer=stoic.LogSumExp(temperature)))


@a_few_methods
@pytest.mark.parametrize("temperature", [1e-8, 1e8])
@pytest.mark.sampled(2)
def test_any_temperature_of_the_tail_mean_gives_an_answer_no_worse_than_the_start(method, temperature):
    check_progress(method, problem_for(method, outer=stoic.SmoothCVaR(0.5, temperature)))


@every_method
@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e6, 1e50, 1e150])
@pytest.mark.sampled(4)
def test_labels_of_any_scale_give_a_finite_answer(method, scale):
    # Losses reach 1e300.
    problem = problem_for(method, y=scale * Y)
    result = solve(method, problem)
    assert math.isfinite(problem.objective(result.w))


@every_method
@pytest.mark.parametrize("wild", [1e12, 1e150, -1e150])
@pytest.mark.sampled(4)
def test_one_wild_label_gives_a_finite_answer(method, wild):
    y = Y.copy()
    y[4] = wild
    problem = problem_for(method, y=y)
    assert math.isfinite(problem.objective(solve(method, problem).w))


@every_method
@pytest.mark.sampled(2)
def test_a_loss_beyond_the_largest_float_gives_a_finite_answer(method):
    y = Y.copy()
    y[4] = 1e200
    solve(method, problem_for(method, y=y))


@pytest.mark.parametrize("method", ["rosc", "rrosc"])
@pytest.mark.parametrize("wild", [1e12, 1e150, 1e200])
def test_the_robust_methods_fit_the_rest_of_the_data_when_one_label_is_wild(method, wild):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2))
    y = X @ [1.0, 2.0] + rng.standard_normal(600)
    y[4] = wild
    problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(600) % 3), stoic.LogSumExp(1.0), stoic.L2(1e-3))
    result = stoic.minimize(problem, method, budget=20_000, seed=0)
    assert result.success
    np.testing.assert_allclose(result.w, [1.0, 2.0], atol=0.7)


# --- features ---


@every_method
@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.sampled(4)
def test_features_of_another_scale_give_an_answer_no_worse_than_the_start(method, scale):
    check_progress(method, problem_for(method, X=scale * X))


@every_method
@pytest.mark.parametrize("scale", [1e-150, 1e100])
@pytest.mark.sampled(4)
def test_features_of_an_absurd_scale_give_a_finite_answer(method, scale):
    solve(method, problem_for(method, X=scale * X))


@every_method
@pytest.mark.sampled(2)
def test_columns_of_zeros_get_weights_of_zero(method):
    padded = np.column_stack([np.zeros(len(X)), X, np.zeros(len(X))])
    result = check_progress(method, problem_for(method, X=padded))
    np.testing.assert_array_equal(result.w[[0, -1]], 0.0)
    assert np.abs(result.w[1:-1]).min() > 0.0


@every_method
@pytest.mark.sampled(2)
def test_features_that_are_all_zero_leave_the_start_alone(method):
    result = check_progress(method, problem_for(method, X=0.0 * X))
    np.testing.assert_array_equal(result.w, 0.0)


@every_method
@pytest.mark.sampled(2)
def test_single_precision_sparse_features_give_the_answer_of_dense_ones(method):
    single = np.where(np.abs(X) > 0.3, X, 0.0).astype(np.float32)
    dense, sparse = (
        check_progress(method, problem_for(method, X=matrix))
        for matrix in (single.astype(float), sp.csr_array(single))
    )
    np.testing.assert_allclose(sparse.w, dense.w, rtol=1e-4, atol=1e-4)


# --- shapes ---


@every_method
@pytest.mark.sampled(2)
def test_one_variable_and_one_group_are_enough(method):
    result = check_progress(method, problem_for(method, X=X[:, :1], groups=None))
    assert result.w.shape == (1,)


@every_method
@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.sampled(4)
def test_groups_of_one_row_are_fitted(method, n_groups):
    problem = problem_for(method, X=X[:n_groups], y=Y[:n_groups], groups=np.arange(n_groups))
    result = check_progress(method, problem)
    assert problem.objective(result.w) < 0.9 * problem.objective(np.zeros(D))


@pytest.mark.parametrize("method", ["rosc", "rrosc"])
@pytest.mark.parametrize("seed", [5, 8, 12, 25])
def test_rounding_truncates_nothing_where_there_is_no_noise(method, seed):
    # One row: the slacks are zero, and ‖z − z̃‖ = L_g‖w − w₀‖ exactly; estimates need a margin.
    rng = np.random.default_rng(seed)
    problem = stoic.Problem(
        stoic.GroupLoss(rng.standard_normal((1, 3)), 5.0 * rng.standard_normal(1)), stoic.Linear(), stoic.L2(0.1)
    )
    result = check_progress(method, problem)
    assert result.truncated_z < 0.1


@every_method
@pytest.mark.sampled(2)
def test_rows_that_repeat_are_as_good_as_rows_of_their_own(method):
    problem = problem_for(method, X=np.repeat(X[::ROWS], ROWS, axis=0), y=np.repeat(Y[::ROWS], ROWS))
    result = check_progress(method, problem)
    assert problem.objective(result.w) < 0.9 * problem.objective(np.zeros(D))


@pytest.mark.parametrize(
    "solver",
    [
        stoic.MSCG(batch_size=50),
        stoic.ROSC(batch_size=50),
        stoic.RROSC(batch_size=50),
        stoic.RMSCG(batch_size=50),
        stoic.ClippedSGD(batch_size=50),
        stoic.CIVR(batch_size=50),
        stoic.SCSC(batch_size=50),
    ],
    ids=lambda solver: type(solver).__name__,
)
def test_a_batch_may_be_larger_than_a_group(solver):
    few = np.arange(len(X)) % ROWS < 2  # two rows a group
    check_progress(solver, problem_for("", X=X[few], y=Y[few], groups=GROUPS[few]), budget=5000)


@every_method
@pytest.mark.sampled(2)
def test_a_start_at_the_optimum_stays_there(method):
    # All labels zero: w0 = 0 is optimal, the gradient is zero, and so are the noise and the distance to go.
    result = check_progress(method, problem_for(method, y=0.0 * Y))
    np.testing.assert_array_equal(result.w, 0.0)


@every_method
@pytest.mark.sampled(2)
def test_groups_of_very_different_sizes_are_all_drawn(method):
    keep = (GROUPS == 0) | (np.arange(len(X)) % ROWS == 0)
    check_progress(method, problem_for(method, X=X[keep], y=Y[keep], groups=GROUPS[keep]))


@a_few_methods
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-12, 1e12, 1e300])
@pytest.mark.sampled(2)
def test_any_penalty_gives_an_answer_no_worse_than_the_start(method, alpha):
    problem = problem_for(method)
    check_progress(method, stoic.Problem(problem.inner, problem.outer, stoic.L2(alpha)))


@a_few_methods
@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile"])
@pytest.mark.sampled(2)
def test_losses_that_grow_slowly_take_wild_labels(method, loss):
    y = Y.copy()
    y[4] = 1e200
    problem = problem_for(method, y=y, loss=loss)
    assert math.isfinite(problem.objective(solve(method, problem).w))


@a_few_methods
@pytest.mark.parametrize("length", [1e6, 1e100, 1e150])
@pytest.mark.sampled(2)
def test_a_start_far_away_gives_a_finite_answer(method, length):
    problem = problem_for(method)
    result = stoic.minimize(problem, method, budget=1500, w0=np.full(D, length), seed=0)
    assert np.isfinite(result.w).all()


# --- laws with atoms ---


@pytest.mark.parametrize(
    ("share", "engine", "storage"),
    [
        (0.1, "compiled", sp.csr_array),
        (0.01, "compiled", np.asarray),
        (0.01, "plain", sp.csr_array),
        pytest.param(0.1, "plain", sp.csr_array, marks=pytest.mark.every),
        pytest.param(0.1, "plain", np.asarray, marks=pytest.mark.every),
        pytest.param(0.1, "compiled", np.asarray, marks=pytest.mark.every),
        pytest.param(0.01, "plain", np.asarray, marks=pytest.mark.every),
        pytest.param(0.01, "compiled", sp.csr_array, marks=pytest.mark.every),
    ],
)
def test_rare_events_are_no_outliers(share, engine, storage):
    """Most samples agree to the last bit at the start; those that do not are what the answer is made of."""
    n = 20_000
    y = np.random.default_rng(0).permutation(np.arange(n) < share * n).astype(float)
    problem = stoic.Problem(stoic.GroupLoss(storage(np.ones((n, 1))), y, np.zeros(n)), stoic.Linear())
    result = stoic.minimize(problem, budget=20_000, seed=0, engine=engine)
    start, end, best = (problem.objective(np.array([w])) for w in (0.0, result.w[0], share))
    assert end - best <= 0.1 * (start - best)
