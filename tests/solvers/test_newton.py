"""Newton's method: second derivatives of a problem, and optima that are hard to reach."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import stoic
from stoic.regularizers import Anchored

N, D = 600, 8


def data(seed=0):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((N, D)), np.arange(N) % 3
    return X, X @ rng.standard_normal(D) + (1 + groups) * rng.standard_t(1.5, N), groups


def inner_of(X=None, y=None, **options):
    own_X, own_y, groups = data()
    return stoic.GroupLoss(own_X if X is None else X, own_y if y is None else y, groups, **options)


def assert_optimal(problem, result, atol=1e-9):
    """Assert that the answer is where a prox step from it leads, which is so at optima alone."""
    ahead = problem.regularizer.prox(result.w - problem.gradient(result.w), 1.0)
    np.testing.assert_allclose(ahead, result.w, atol=atol)
    assert result.n_steps < result.solver.n_steps


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array, sp.csr_matrix, lambda X: X.astype(np.float32), np.asfortranarray]
)
def test_the_hessian_matches_differences_of_the_gradient(kind, intercept):
    inner = inner_of(kind(data()[0]), loss="logistic", y=np.sign(data()[1]), intercept=intercept)
    everything, q, h = inner.everything(), np.array([0.5, 0.2, 0.3]), 1e-5
    w = np.random.default_rng(1).standard_normal(inner.shape[1])
    columns = [
        (inner.vjp(w + h * e, everything, q) - inner.vjp(w - h * e, everything, q)) / (2 * h)
        for e in np.eye(len(w))
    ]
    hessian = inner.hessian(w, everything, q)
    np.testing.assert_allclose(hessian, np.stack(columns, axis=1), atol=1e-8)
    np.testing.assert_allclose(inner.hessian_diagonal(w, everything, q), np.diag(hessian), rtol=1e-6)
    np.testing.assert_allclose(inner.hessian_product(w, everything, q, w), hessian @ w, atol=1e-12)


def test_weights_of_rows_count():
    X, y, groups = data()
    weight = np.random.default_rng(2).integers(0, 3, N).astype(float)
    outer, regularizer = stoic.LogSumExp(2.0), stoic.L2(0.1)
    weighted = stoic.Problem(stoic.GroupLoss(X, y, groups, loss="huber", sample_weight=weight), outer, regularizer)
    often = np.repeat(np.arange(N), weight.astype(int))
    repeated = stoic.Problem(stoic.GroupLoss(X[often], y[often], groups[often], loss="huber"), outer, regularizer)
    one, other = (stoic.minimize(problem, "newton", budget=10**6) for problem in (weighted, repeated))
    np.testing.assert_allclose(one.w, other.w, rtol=1e-9)


@pytest.mark.parametrize(
    "regularizer", [stoic.Zero(), stoic.L2(1e-3), stoic.L1(0.1), stoic.ElasticNet(0.1)], ids=repr
)
@pytest.mark.parametrize(
    "loss",
    [stoic.Squared(), stoic.Huber(0.5), stoic.Absolute(0.05), stoic.Quantile(0.9, 0.2)],
    ids=repr,
)
def test_heavy_tails_and_losses_without_curvature_are_no_obstacle(loss, regularizer):
    problem = stoic.Problem(inner_of(loss=loss, intercept=True), stoic.LogSumExp(1.0), regularizer)
    assert_optimal(problem, stoic.minimize(problem, "newton", budget=10**7))


@pytest.mark.parametrize("regularizer", [stoic.L2(1e-3), stoic.L1(0.1)], ids=repr)
@pytest.mark.parametrize("level", [0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_groups_at_the_cap_of_smooth_cvar_are_no_obstacle(level, temperature, regularizer):
    outer = stoic.SmoothCVaR(level, temperature, baseline=[0.0, 0.5, 1.0])
    problem = stoic.Problem(inner_of(loss="huber", intercept=True), outer, regularizer)
    assert_optimal(problem, stoic.minimize(problem, "newton", budget=10**7), atol=1e-8)


@pytest.mark.parametrize("regularizer", [stoic.L2(0.1), stoic.L1(0.1)], ids=repr)
def test_a_regularizer_may_be_anchored_at_a_point(regularizer):
    inner = inner_of(loss="huber", intercept=True)
    problem = stoic.Problem(inner, stoic.LogSumExp(1.0), regularizer)
    anchored = problem.with_regularizer(Anchored(problem.regularizer, np.ones(D + 1), 0.5))
    assert_optimal(anchored, stoic.minimize(anchored, "newton", budget=10**6))


@pytest.mark.parametrize("temperature", [1e-4, 1e4])
def test_nearly_the_worst_group_and_nearly_the_mean(temperature):
    problem = stoic.Problem(inner_of(loss="huber"), stoic.LogSumExp(temperature), stoic.L2(0.01))
    assert_optimal(problem, stoic.minimize(problem, "newton", budget=10**7), atol=1e-7)


@pytest.mark.parametrize(
    "X",
    [
        np.hstack([data()[0], data()[0]]),
        data()[0] * np.logspace(-4, 4, D),
        np.hstack([data()[0], np.zeros((N, 1))]),
    ],
    ids=["twice", "bad scales", "an empty column"],
)
def test_columns_that_are_dependent_empty_or_badly_scaled_are_no_obstacle(X):
    problem = stoic.Problem(inner_of(X, loss="huber", intercept=True), stoic.LogSumExp(1.0))
    plain = stoic.Problem(inner_of(loss="huber", intercept=True), stoic.LogSumExp(1.0))
    result, best = (stoic.minimize(one, "newton", budget=10**7) for one in (problem, plain))
    assert problem.objective(result.w) <= plain.objective(best.w) * (1 + 1e-12)
    assert np.isfinite(result.w).all()


@pytest.mark.parametrize("regularizer", [stoic.L2(0.1), stoic.L1(0.1)], ids=repr)
def test_many_columns_are_solved_by_products(regularizer):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 1100))
    inner = stoic.GroupLoss(X, 3.0 * X[:, 0] + rng.standard_t(2.0, 90), np.arange(90) % 3, loss="huber")
    problem = stoic.Problem(inner, stoic.LogSumExp(1.0), regularizer)
    result = stoic.minimize(problem, "newton", budget=10**7)
    assert_optimal(problem, result, atol=1e-8)
    if isinstance(regularizer, stoic.L1):
        assert np.count_nonzero(result.w) < 90


def test_an_exact_fit_and_labels_far_away_are_found():
    X, _, groups = data()
    exact = stoic.Problem(stoic.GroupLoss(X, X @ np.ones(D), groups, loss="huber"), stoic.LogSumExp(1.0))
    result = stoic.minimize(exact, "newton", budget=10**6)
    np.testing.assert_allclose(result.w, 1.0, atol=1e-12)
    assert result.n_steps < 30
    y = data()[1] + 1e6
    far = stoic.Problem(stoic.GroupLoss(X, y, groups, loss="huber", intercept=True), stoic.LogSumExp(1.0))
    # A decrease of less than 1e-12 F may be rounding: with F near 10 that leaves slopes of up to √(1e-12 F L), on
    # some processors more than on others.
    assert_optimal(far, stoic.minimize(far, "newton", budget=10**6), atol=1e-5)


@pytest.mark.parametrize("target", [1e20, -1e50, 1e300])
@pytest.mark.parametrize("loss", [stoic.Huber(1.0), stoic.Absolute(0.1), stoic.Quantile(0.7, 0.1)], ids=repr)
def test_a_target_that_hides_every_decrease_in_rounding_does_not_stop_the_descent(loss, target):
    X, y, groups = data()
    y[5] = np.copysign(1e5, target)  # where slopes are those of the wild target
    known = stoic.Problem(stoic.GroupLoss(X, y, groups, loss=loss, intercept=True), stoic.Linear(), stoic.L2(1e-3))
    y[5] = target
    problem = stoic.Problem(
        stoic.GroupLoss(X, y, groups, loss=loss, intercept=True), stoic.Linear(), stoic.L2(1e-3)
    )
    result, expected = (stoic.minimize(one, "newton", budget=10**7) for one in (problem, known))
    assert_optimal(problem, result, atol=1e-8)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_scales_of_columns_do_not_matter(kind):
    X, y, groups = data()
    units = np.logspace(-60, 60, D)
    plain, scaled = (
        stoic.minimize(
            stoic.Problem(stoic.GroupLoss(kind(one), y, groups, loss="huber"), stoic.LogSumExp(1.0)),
            "newton",
            budget=10**6,
        )
        for one in (X, X * units)
    )
    np.testing.assert_allclose(scaled.w * units, plain.w, rtol=1e-8)


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "quantile"])
def test_steepness_is_the_part_of_the_loss_that_slopes_account_for(loss):
    X, y, groups = data()
    inner = stoic.GroupLoss(X, y, groups, loss=loss)
    w, rows = np.ones(D), inner.everything()
    steepness, losses = inner.steepness(w, rows), inner.value(w, rows)[0]
    assert (steepness <= losses * (1.0 + 1e-12)).all()
    if loss == "squared":
        np.testing.assert_allclose(steepness, losses)
    else:
        y[0] = 1e300
        np.testing.assert_allclose(inner.with_target(y).steepness(w, rows), steepness, atol=0.02)


def test_warm_starts_and_records_are_those_of_every_method():
    problem = stoic.Problem(inner_of(loss="huber"), stoic.LogSumExp(1.0), stoic.L2(0.1))
    cold = stoic.minimize(problem, "newton", budget=10**6, evaluate_every=N, observers={"F": problem.objective})
    values = [record["F"] for record in cold.history]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(values))
    warm = stoic.minimize(problem, "newton", budget=10**6, w0=cold.w)
    assert warm.n_steps <= 2
    np.testing.assert_allclose(warm.w, cold.w, rtol=1e-12)
    assert cold.samples == warm.samples == N  # drawn once, and evaluated often
    assert cold.evaluations >= N * cold.n_steps
    assert len(values) == cold.n_steps


def test_a_loss_without_second_derivative_is_refused_by_name():
    class Own:
        curvature = 1.0

        def value(self, prediction, target):
            return 0.5 * np.square(prediction - target)

        def derivative(self, prediction, target):
            return prediction - target

    problem = stoic.Problem(inner_of(loss=Own()), stoic.Linear())
    with pytest.raises(stoic.IncompatibleParts, match=r"Newton needs a loss with second_derivative; use another"):
        stoic.minimize(problem, "newton")


def test_numbers_too_large_for_a_step_end_the_method_at_the_start():
    X, y, groups = data()
    problem = stoic.Problem(stoic.GroupLoss(1e160 * X, y, groups), stoic.LogSumExp(1.0))
    result = stoic.minimize(problem, "newton", budget=10**6)
    assert result.status is stoic.Status.DIVERGED
    np.testing.assert_array_equal(result.w, np.zeros(D))


def test_where_no_step_lowers_the_objective_w_stays_and_the_method_ends():
    solver, w, inner = stoic.Newton(), np.full(D, 0.1), inner_of(loss="huber")
    here = inner.value(w, inner.everything())[0]

    class Jumping(stoic.LogSumExp):
        """An outer function that is higher everywhere but at one point, whatever its derivatives say."""

        def value(self, u):
            return super().value(u) + (0.0 if np.array_equal(u, here) else 100.0)

    problem = stoic.Problem(inner, Jumping(1.0))
    state, _ = solver.step(problem, solver.init(problem, w, None), None)
    np.testing.assert_array_equal(solver.output(state), w)
    assert solver.finished(state)
    assert state.t == 1
