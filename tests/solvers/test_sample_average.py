"""The robust sample average: the optimum of what was drawn, but for wild samples; and what `auto` takes when."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

import stoic
from catalog import CASES
from stoic.solve import hindsight
from stoic.solvers.sample_average import draws, solver
from stoic.solvers.sample_average.curvature import Curvature, step_of
from stoic.solvers.sample_average.levels import deviations, group_deviations, widths
from stoic.solvers.sample_average.rows import clipping_weights
from stoic.studies.confidence.laws import GroupLaw

TRUTH = np.array([1.0, -2.0, 0.5])


def rows(n=4000, seed=0, noise=lambda rng, n: rng.standard_normal(n)):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((n, 3)), np.arange(n) % 4
    return X, X @ TRUTH + 0.3 * groups * X[:, 0] + noise(rng, n), groups


def stream(X, y, groups):
    """Return square losses of groups as functions of samples that are handed out in order, as a stream."""
    p = groups.max() + 1
    samples = [np.stack([array[groups == i] for i in range(p)], axis=1) for array in (X, y)]
    place = [0]

    def draw(size, rng):
        place[0] += size
        return tuple(array[place[0] - size : place[0]] for array in samples)

    def value(w, batch):
        return np.square(batch[0] @ w - batch[1])

    def jacobian(w, batch):
        return 2.0 * (batch[0] @ w - batch[1])[:, :, None] * batch[0]

    return stoic.FunctionInner(value, jacobian, shape=(p, X.shape[1]), draw=draw)


def sample_average(X, y, groups, outer, alpha=0.0):
    """Return the minimum over rows by SciPy."""

    def both(w):
        residuals = X @ w - y
        u = np.bincount(groups, residuals**2) / np.bincount(groups)
        q = outer.gradient(u)[groups] / np.bincount(groups)[groups]
        return outer.value(u) + 0.5 * alpha * w @ w, 2.0 * X.T @ (q * residuals) + alpha * w

    return scipy_minimize(both, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_under_light_tails_the_answer_is_the_optimum_of_what_was_drawn(alpha):
    X, y, groups = rows()
    outer = stoic.LogSumExp(1.0)
    problem = stoic.Problem(stream(X, y, groups), outer, stoic.L2(alpha))
    result = stoic.minimize(problem, "sample-average", budget=1000, seed=0)
    assert (result.status, result.samples, result.truncated_z) == (stoic.Status.FINISHED, 1000, 0.0)
    np.testing.assert_allclose(result.w, sample_average(X, y, groups, outer, alpha), atol=2e-3)


def test_rows_of_a_group_loss_give_what_functions_of_the_same_samples_give():
    law = GroupLaw()
    problem = law.problem(2000, np.random.default_rng(0))
    inner = problem.inner
    of_rows = stoic.minimize(problem, "sample-average", budget=8000, seed=0)
    functions = stream(inner.X, inner.y, inner.grouped_rows.codes)
    of_functions = stoic.minimize(problem.with_inner(functions), "sample-average", budget=2000, seed=0)
    np.testing.assert_allclose(of_rows.w, of_functions.w, atol=2e-3)
    assert law.gap(of_rows.w) == pytest.approx(law.gap(of_functions.w), rel=0.05)


@pytest.mark.parametrize("size", [1e4, 1e8])
@pytest.mark.parametrize("kind", ["rows", "functions"])
def test_a_wild_sample_hardly_moves_the_answer(kind, size):
    X, y, groups = rows()
    wild = y.copy()
    wild[1111] = size

    def answer(y):
        outer = stoic.LogSumExp(1.0)
        if kind == "functions":
            problem, budget = stoic.Problem(stream(X, y, groups), outer), 1000
        else:
            inner = stoic.GroupLoss(X, y, groups)
            inner.grouped_rows.is_fresh = True
            problem, budget = stoic.Problem(inner, outer), 8000
        return stoic.minimize(problem, "sample-average", budget=budget, seed=0).w

    assert np.linalg.norm(answer(wild) - answer(y)) < 0.2
    far = sample_average(X, wild, groups, stoic.LogSumExp(1.0))
    assert np.linalg.norm(far - answer(y)) > 1.0


def test_the_answer_at_half_of_the_samples_is_that_of_a_run_planned_for_them():
    X, y, groups = rows(8000)
    problem = stoic.Problem(stream(X, y, groups), stoic.LogSumExp(1.0))
    observers = {f"w{k}": lambda w, k=k: w[k] for k in range(3)}
    whole = stoic.minimize(problem, "sample-average", budget=2000, seed=0, observers=observers)
    halfway = next(record for record in whole.history if record["samples"] == 1000)
    problem = stoic.Problem(stream(X, y, groups), stoic.LogSumExp(1.0))
    planned = stoic.minimize(problem, "sample-average", budget=1000, seed=0).w
    np.testing.assert_allclose([halfway[name] for name in observers], planned, atol=5e-3)


def test_what_memory_does_not_hold_is_averaged_chunk_by_chunk(monkeypatch):
    monkeypatch.setattr(solver, "_ENTRIES", 0)
    monkeypatch.setattr(solver, "_FEWEST_KEPT", 250)
    X, y, groups = rows()
    outer = stoic.Linear()
    problem = stoic.Problem(stream(X, y, groups), outer)
    result = stoic.minimize(problem, "sample-average", budget=1000, seed=0)
    by_chunk = [
        sample_average(X[k : k + 1000], y[k : k + 1000], groups[k : k + 1000], outer) for k in range(0, 4000, 1000)
    ]
    np.testing.assert_allclose(result.w, np.mean(by_chunk, axis=0), atol=2e-3)


def test_batches_of_few_draws_give_the_same_answer(monkeypatch):
    X, y, groups = rows()
    whole = stoic.minimize(
        stoic.Problem(stream(X, y, groups), stoic.LogSumExp(1.0)), "sample-average", budget=1000
    )
    monkeypatch.setattr(draws, "_ENTRIES", 12 * 50)
    parts = stoic.minimize(
        stoic.Problem(stream(X, y, groups), stoic.LogSumExp(1.0)), "sample-average", budget=1000
    )
    np.testing.assert_allclose(parts.w, whole.w, atol=2e-3)


@pytest.mark.parametrize(
    "name",
    ["own-functions-l1", "mean-variance-simplex", "cvar-box", "logsumexp-huber-simplex", "linear-logistic-box"],
)
def test_all_data_at_once_give_their_optimum_whatever_the_parts(name):
    case = CASES[name]
    result = stoic.minimize(case.problem, "auto", budget=10_000)
    assert isinstance(result.solver, stoic.SampleAverage)
    assert result.solver.everything
    assert (result.status, result.samples) == (stoic.Status.FINISHED, case.problem.inner.n_samples)
    assert abs(case.relative_gap(result.w)) < 1e-8


def test_more_variables_than_are_measured_one_by_one_are_fitted_by_secants(monkeypatch):
    monkeypatch.setattr(draws, "MOST_FORMED", 2)
    monkeypatch.setattr("stoic.solvers.sample_average.curvature.MOST_FORMED", 2)
    X, y, groups = rows()
    outer = stoic.LogSumExp(1.0)
    result = stoic.minimize(stoic.Problem(stream(X, y, groups), outer), "sample-average", budget=1000)
    np.testing.assert_allclose(result.w, sample_average(X, y, groups, outer), atol=5e-3)


# --- parts ---


def test_levels_grow_like_the_root_of_the_number_of_samples():
    np.testing.assert_allclose(widths(np.array([10.0, 10_000.0, 40_000.0])), [6.0, 20.0, 40.0])


def test_deviations_are_those_of_most_samples():
    rng = np.random.default_rng(0)
    distances = np.abs(rng.standard_normal((3200, 2)))
    np.testing.assert_allclose(deviations(distances), 1.0, atol=0.1)
    distances[:3] = 1e9
    np.testing.assert_allclose(deviations(distances), 1.0, atol=0.15)
    codes = np.arange(3200) % 2
    np.testing.assert_allclose(group_deviations(distances[:, 0], codes, np.ones(3200), 2), 1.0, atol=0.2)


def test_small_groups_share_the_deviation_of_all_rows():
    rng = np.random.default_rng(0)
    codes = np.arange(3000) // 3
    found = group_deviations(np.abs(rng.standard_normal(3000)), codes, np.ones(3000), 1000)
    assert found.min() > 0.9


def test_rows_within_the_levels_have_the_weight_one():
    X, y, groups = rows()
    inner = stoic.GroupLoss(X, y, groups)
    before = clipping_weights(inner, TRUTH, np.ones(4000))
    assert (before < 1.0).mean() < 0.003
    y[7] = 1e3
    weights = clipping_weights(stoic.GroupLoss(X, y, groups), TRUTH, np.ones(4000))
    assert 0.0 < weights[7] < 0.01
    np.testing.assert_allclose(np.delete(weights, 7), np.delete(before, 7), atol=0.1)


def test_a_secant_update_fits_the_secant_and_its_inverse_stays_one():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    matrix = root @ root.T + np.eye(4)
    move, change = np.ones(4), np.array([2.0, 1.0, 3.0, 1.0])
    updated = Curvature(matrix, np.linalg.inv(matrix)).updated(move, change)
    np.testing.assert_allclose(updated.matrix @ move, change)
    np.testing.assert_allclose(updated.matrix @ updated.inverse, np.eye(4), atol=1e-9)
    assert Curvature(matrix).updated(move, -change).matrix is matrix  # no curvature along it


@pytest.mark.parametrize("regularizer", [stoic.L1(0.3), stoic.Box(-0.2, 0.4), stoic.Simplex(1.0)])
def test_steps_minimize_the_quadratic_model_with_the_regularizer(regularizer):
    rng = np.random.default_rng(1)
    root, slope = rng.standard_normal((3, 3)), rng.standard_normal(3)
    matrix, w = root @ root.T + 0.1 * np.eye(3), regularizer.prox(rng.standard_normal(3), 1.0)

    def model(p):
        return slope @ p + 0.5 * p @ matrix @ p + regularizer.value(w + p)

    step = step_of(Curvature(matrix), slope, w, regularizer)
    found = model(step)
    for _ in range(500):
        other = regularizer.prox(w + step + 0.1 * rng.standard_normal(3), 1e-12) - w
        assert found <= model(other) + 1e-9


# --- what auto takes ---


def test_auto_takes_the_exact_optimum_where_the_budget_allows_all_data(caplog):
    X, y, groups = rows(400)
    problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(1.0))
    with caplog.at_level(logging.INFO, logger="stoic"):
        result = stoic.minimize(problem, budget=400)
    assert isinstance(result.solver, stoic.Newton)
    assert result.samples == 400
    assert [record.message for record in caplog.records if "auto" in record.message] == [
        "auto takes Newton: the budget of 400 allows to draw all 400 samples"
    ]
    assert isinstance(stoic.minimize(problem, budget=399).solver, stoic.SampleAverage)


def test_auto_takes_kernels_where_they_are_asked_for_and_keeps_no_large_jacobians():
    X, y, groups = rows(400)
    problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(1.0))
    assert stoic.Auto().for_problem(problem, 10**6, "compiled") == stoic.RROSCTracked()
    wide = stoic.FunctionInner(lambda w, x: x, lambda w, x: x, shape=(2, 10**6), draw=lambda size, rng: None)
    assert stoic.Auto().for_problem(stoic.Problem(wide, stoic.Linear()), 10**6) == stoic.RROSCTracked()


def many_groups(p, n=20_000, d=30):
    """Return KL group DRO of p groups alike but for their noise."""
    rng = np.random.default_rng(5)
    X, groups = rng.standard_normal((n, d)), np.arange(n) % p
    y = X @ np.ones(d) + rng.uniform(0.5, 1.5, p)[groups] * rng.standard_normal(n)
    return stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(4.0))


def test_auto_keeps_the_rows_of_very_many_groups_and_their_number_hardly_matters():
    gaps = []
    for p in (5, 2000):
        problem = many_groups(p)
        best = problem.objective(stoic.minimize(problem, "newton", budget=20_000).w)
        result = stoic.minimize(problem, budget=10_000, seed=0)
        assert isinstance(result.solver, stoic.SampleAverage)
        gaps.append(problem.objective(result.w) - best)
    assert gaps[1] <= 2.0 * gaps[0]  # five draws a group, of a Jacobian of 60,000 entries
    with pytest.raises(stoic.InvalidParameter, match="budget >= 2000"):
        stoic.minimize(problem, budget=1999)


def test_auto_keeps_rows_whose_jacobians_would_be_large_but_no_fresh_ones_of_many_columns():
    assert type(stoic.Auto().for_problem(many_groups(20_000), 19_999)) is stoic.SampleAverage
    wide = stoic.GroupLoss(sp.random_array((50, 600_000), density=1e-4, rng=0, format="csr"), np.zeros(50))
    problem = stoic.Problem(wide, stoic.Linear())
    assert type(stoic.Auto().for_problem(problem, 49)) is stoic.SampleAverage
    wide.grouped_rows.is_fresh = True
    assert stoic.Auto().for_problem(problem, 49) == stoic.RROSCTracked()


def test_auto_draws_few_of_many_groups_where_no_draws_are_kept():
    problem = many_groups(65)
    assert stoic.Auto().for_problem(problem, 1000, "compiled") == stoic.TrackedSOX()
    assert stoic.Auto().for_problem(many_groups(64), 1000, "compiled") == stoic.RROSCTracked()


def test_no_descent_is_tried_from_an_answer_that_is_fitted_to_the_draws(monkeypatch):
    def descend(*_):
        raise AssertionError

    monkeypatch.setattr(hindsight, "descend", descend)
    X, y, groups = rows(400)
    problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(1.0))
    assert stoic.minimize(problem, "sample-average", budget=200).success
    with pytest.raises(AssertionError):
        stoic.minimize(problem, "rrosc-tracked", budget=2000)


@pytest.mark.parametrize(("signal", "is_risen"), [(0.0, True), (3.0, False)])
def test_an_answer_that_later_draws_show_above_the_start_is_no_success(signal, is_risen):
    """More variables than rows: where targets are noise, the minimum over the rows fits it and nothing else."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 300))
    y = signal * X[:, 0] + rng.standard_normal(4000)
    problem = stoic.Problem(stoic.GroupLoss(X, y), stoic.Linear(), stoic.L2(0.1))
    result = stoic.minimize(problem, budget=200, seed=0)
    assert isinstance(result.solver, stoic.SampleAverage)
    assert (result.status is stoic.Status.DIVERGED) == is_risen == (not result.success)
    if is_risen:
        assert problem.objective(result.w) > problem.objective(np.zeros(300))
        assert "a larger budget or penalty" in result.message


def test_all_data_of_a_stream_are_refused():
    X, y, groups = rows(400)
    problem = stoic.Problem(stream(X, y, groups), stoic.Linear())
    with pytest.raises(stoic.IncompatibleParts, match="needs a finite sum"):
        stoic.minimize(problem, stoic.SampleAverage(everything=True), budget=100)
