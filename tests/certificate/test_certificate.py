"""Certificates over data: bounds that hold, how tight they are, and what is said where nothing is known."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize

import stoic
from catalog import CASES
from stoic.certificate.certificate import Certificate
from stoic.certificate.duality import duality_gap, has_conjugate
from stoic.certificate.improving import improving
from stoic.certificate.linear_models import SoftmaxModel

TABLE = np.random.default_rng(3)
X = TABLE.standard_normal((60, 3)) * [1.0, 3.0, 0.3]
Y = X @ [1.0, -0.5, 2.0] + TABLE.standard_t(2.1, 60)
GROUPS = np.arange(60) % 4
LOSSES = {
    "squared": stoic.Squared(),
    "huber": stoic.Huber(0.7),
    "absolute": stoic.Absolute(0.2),
    "quantile": stoic.Quantile(0.8, 0.3),
    "logistic": stoic.Logistic(),
}
OUTERS = {
    "linear": stoic.Linear([0.5, 2.0, 0.0, 1.0]),
    "kl": stoic.LogSumExp(0.3),
    "cvar": stoic.SmoothCVaR(0.6, 0.5),
}
PENALTIES = {
    "zero": stoic.Zero(),
    "l1": stoic.L1(0.05),
    "l2": stoic.L2(0.02),
    "net": stoic.ElasticNet(0.1, 0.5),
    "box": stoic.Box([-1.0, -0.2, 0.0], [0.5, 0.2, 3.0]),
    "open": stoic.Box([0.0, -np.inf, -np.inf], [np.inf, 0.1, np.inf]),
    "simplex": stoic.Simplex(2.0),
}


def inner_of(loss, **options):
    if loss == "softmax":
        return stoic.GroupSoftmax(X, np.digitize(Y, [-1.0, 1.0]), GROUPS, n_classes=3, **options)
    target = np.where(Y > 0.0, 1.0, -1.0) if loss == "logistic" else Y
    return stoic.GroupLoss(X, target, GROUPS, loss=LOSSES[loss], **options)


def lower(problem, w):
    """Return a value of F that SciPy reaches from w, by values alone: an upper bound on F*."""
    coordinates = np.arange(problem.dimension) < problem.dimension - problem.inner.n_unpenalized
    if isinstance(getattr(problem.regularizer, "regularizer", problem.regularizer), stoic.Simplex):
        bounds = [(0.0, None) if one else (None, None) for one in coordinates]
        total = {"type": "eq", "fun": lambda w: w[coordinates].sum() - 2.0}
        found = minimize(
            problem.smooth, w, method="SLSQP", bounds=bounds, constraints=total, options={"ftol": 1e-12}
        )
        return min(problem.objective(problem.regularizer.prox(found.x, 0.0)), problem.objective(w))

    def inside(w):
        return problem.objective(problem.regularizer.prox(w, 0.0))

    found = minimize(inside, w, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-10, "fatol": 1e-12})
    return min(found.fun, problem.objective(w))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("outer", OUTERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.sampled(3)
def test_a_bound_is_never_below_the_gap(loss, outer, penalty, intercept):
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0 + GROUPS)
    inner = inner_of(loss, intercept=intercept, sample_weight=weight)
    problem = stoic.Problem(inner, OUTERS[outer], PENALTIES[penalty])
    start = problem.start(None)
    value, reached = problem.objective(start), lower(problem, start)
    certificate = stoic.certify(problem, start)
    assert (certificate.route, certificate.delta, certificate.assumptions) == ("duality", 0.0, ())
    assert duality_gap(problem, start) >= value - reached - 1e-12 * abs(value)
    assert value - reached - 1e-12 * abs(value) <= certificate.bound
    assert certificate.bound <= 1.2 * (value - reached) + 2e-3 * abs(value)  # SciPy's method is not exact


@pytest.mark.parametrize("penalty", ["zero", "l1", "l2"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_softmax_has_bounds_too(penalty, intercept):
    problem = stoic.Problem(inner_of("softmax", intercept=intercept), stoic.LogSumExp(0.2), PENALTIES[penalty])
    *_, best = improving(problem, problem.start(None))
    for share in (0.0, 0.5, 0.99, 1.0):
        w = share * best
        gap, certificate = problem.objective(w) - problem.objective(best), stoic.certify(problem, w)
        assert gap - 1e-13 <= certificate.bound <= 1.2 * gap + 1e-9
        assert gap - 1e-13 <= duality_gap(problem, w)


@pytest.mark.parametrize("shift", [0.0, 1e4, 1e5])
def test_scores_whose_digits_hide_the_loss_do_not_make_a_bound_false(shift):
    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1, 0, 1])  # separable: F* = 0
    problem = stoic.Problem(stoic.GroupSoftmax(X, y, np.zeros(3), n_classes=2, intercept=True), stoic.Linear())
    for s in np.linspace(9.0, 14.0, 8):
        w = np.array([-s, s, shift, shift])
        assert (
            problem.objective(w)
            <= stoic.certify(problem, w).bound
            <= 1.1 * problem.objective(w) + 1e-14 * (1 + shift)
        )


@pytest.mark.parametrize("name", ["logsumexp-l2", "linear-zero", "logsumexp-l1"])
@pytest.mark.parametrize("far", [0.0, 1e-3, 0.1, 10.0])
def test_a_bound_is_close_to_the_gap_that_cvxpy_knows(name, far):
    case = CASES[name]
    w = case.optimum + far * np.random.default_rng(0).standard_normal(case.optimum.size)
    gap, bound = case.problem.objective(w) - case.best, stoic.certify(case.problem, w).bound
    assert gap - 1e-8 * case.range <= bound <= 1.2 * gap + 1e-7 * case.range


def test_the_curvature_at_w_is_not_taken_for_that_on_the_way():
    """Two groups with y = 1 ± √3.25 and 2 ± 0.5 and X = 1: at 0 the Hessian of f∘g is far above that nearby."""
    y = np.array([1.0 + 3.25**0.5, 1.0 - 3.25**0.5, 2.5, 1.5])
    for temperature in (1.0, 0.3, 0.1):
        inner = stoic.GroupLoss(np.ones((4, 1)), y, [0, 0, 1, 1])
        problem = stoic.Problem(inner, stoic.LogSumExp(temperature))
        best = minimize(problem.objective, [1.5], tol=1e-12).fun
        gap = problem.objective(np.zeros(1)) - best
        assert gap - 1e-9 <= stoic.certify(problem, np.zeros(1)).bound <= 1.1 * gap


def test_a_loss_that_is_linear_at_w_has_a_bound():
    """Huber's loss, labels 0 (49 %) and 1000 (51 %): the slope at 0 is small, and the gap is not."""
    y = np.where(np.arange(100) < 51, 1000.0, 0.0)
    problem = stoic.Problem(stoic.GroupLoss(np.ones((100, 1)), y, loss="huber"), stoic.Linear())
    gap = problem.objective(np.zeros(1)) - problem.objective(np.array([1000.0]))
    assert gap > 35.0
    assert gap - 1e-9 <= stoic.certify(problem, np.zeros(1)).bound <= 1.5 * gap
    assert duality_gap(problem, np.zeros(1)) >= gap


def test_a_column_of_zeros_and_a_column_twice_do_no_harm():
    wide = np.column_stack([X, np.zeros(60), X[:, 0]])
    problem = stoic.Problem(stoic.GroupLoss(wide, Y, GROUPS), stoic.LogSumExp(1.0))
    w = stoic.minimize(problem, "newton", budget=10_000).w
    assert stoic.certify(problem, w).bound <= 1e-10 * problem.objective(np.zeros(5))


def test_more_variables_than_rows_have_a_bound_without_a_penalty():
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((40, 1200))
    problem = stoic.Problem(stoic.GroupLoss(wide, wide[:, 0]), stoic.Linear())
    value = problem.objective(np.zeros(1200))
    assert value - 1e-12 <= stoic.certify(problem, np.zeros(1200)).bound <= value * (1.0 + 1e-9)  # F* = 0


@pytest.mark.parametrize("penalty", PENALTIES)
def test_mean_and_variance_of_returns_have_bounds(penalty):
    returns = 0.01 * np.random.default_rng(0).standard_t(3, (500, 3)) + [0.001, 0.0, 0.002]
    problem = stoic.Problem(stoic.Moments(returns), stoic.MeanVariance(5.0), PENALTIES[penalty])
    start = problem.start(None)
    certificate = stoic.certify(problem, start)
    gap = problem.objective(start) - lower(problem, start)
    assert gap - 1e-12 <= certificate.bound <= 1.5 * gap + 1e-6
    assert certificate.assumptions == ()


@pytest.mark.parametrize(("n", "route"), [(100_000, "duality"), (100_001, "fresh samples")])
def test_so_many_samples_are_looked_at_by_default(n, route):
    column = np.linspace(-1.0, 1.0, n)[:, None]
    problem = stoic.Problem(stoic.GroupLoss(column, column[:, 0] ** 3), stoic.Linear(), stoic.L2(1.0))
    assert stoic.certify(problem, np.zeros(1)).route == route


def test_slopes_of_a_softmax_shrink_until_they_are_probabilities():
    weight = np.ones(60)
    weight[0] = 0.0
    inner = stoic.GroupSoftmax(X, GROUPS % 3, n_classes=3, sample_weight=weight)
    model = SoftmaxModel(inner, np.zeros(inner.shape[1]), np.ones(1))
    slopes = model.slopes()
    slopes[0] = -9.0  # a row that does not count
    assert model.shrinkage(slopes) == 1.0
    assert model.shrinkage(3.0 * slopes) == pytest.approx(0.5)  # towards the own class −2/3
    slopes[1, ~model.own[1]] *= -1.0
    assert model.shrinkage(slopes) == 0.0


# --- parts of one's own ---


class OwnRidge:
    """(1/2)‖w‖² with a modulus, but no conjugate."""

    strong_convexity = 1.0

    def value(self, w):
        return 0.5 * float(w @ w)

    def prox(self, v, step):
        return v / (1.0 + step)


class OwnMaximum:
    """A smooth maximum that does not say that it is convex."""

    def value(self, u):
        return stoic.LogSumExp(0.3).value(u)

    def gradient(self, u):
        return stoic.LogSumExp(0.3).gradient(u)


def own_inner():
    def value(w, samples):
        return np.square(samples @ w - 1.0)[:, None]

    def jacobian(w, samples):
        return 2.0 * ((samples @ w - 1.0)[:, None] * samples)[:, None, :]

    return stoic.FunctionInner(value, jacobian, (1, 3), data=X)


def test_convexity_that_is_not_known_is_named():
    certificate = stoic.certify(stoic.Problem(own_inner(), stoic.Linear(), stoic.L2(0.5)), np.ones(3))
    assert certificate.assumptions == ("f∘g is convex",)
    assert certificate.statement.endswith("by duality over all 60 samples, if f∘g is convex.")
    certificate = stoic.certify(stoic.Problem(inner_of("huber"), OwnMaximum(), stoic.L2(0.5)), np.ones(3))
    assert certificate.assumptions == ("f is convex and does not fall in any argument",)


def test_nothing_is_said_where_convexity_alone_gives_no_bound():
    problem = stoic.Problem(own_inner(), stoic.Linear())
    certificate = stoic.certify(problem, np.ones(3))
    assert certificate.bound == math.inf
    assert certificate.statement.startswith("Nothing rigorous can be said about F(w) − F*")
    assert "modulus=..." in certificate.advice
    assert certificate.estimate == pytest.approx(
        problem.objective(np.ones(3)) - lower(problem, np.ones(3)), rel=0.1
    )


def test_a_modulus_that_is_known_gives_a_bound():
    problem = stoic.Problem(own_inner(), stoic.Linear())
    modulus = float(np.linalg.eigvalsh(2.0 * X.T @ X / 60)[0])
    certificate = stoic.certify(problem, np.ones(3), modulus=modulus)
    gap = problem.objective(np.ones(3)) - lower(problem, np.ones(3))
    assert gap <= certificate.bound * (1 + 1e-9)
    assert certificate.bound <= 1.2 * gap
    assert certificate.assumptions[-1].startswith("F is strongly convex with modulus")


def test_a_regularizer_of_ones_own_counts_with_the_modulus_that_it_declares():
    problem = stoic.Problem(inner_of("squared"), stoic.LogSumExp(1.0), OwnRidge())
    same = stoic.Problem(inner_of("squared"), stoic.LogSumExp(1.0), stoic.L2(1.0))
    assert not has_conjugate(problem.regularizer)
    w = np.ones(3)
    certificate = stoic.certify(problem, w)
    gap = same.objective(w) - lower(same, w)
    assert gap - 1e-9 <= certificate.bound <= 1.3 * gap
    assert certificate.assumptions == ("r is convex, with the modulus that it declares",)


def test_a_negative_weight_is_no_convex_function():
    problem = stoic.Problem(inner_of("squared"), stoic.Linear([1.0, 1.0, 1.0, -0.1]), stoic.L2(0.1))
    assert stoic.certify(problem, np.ones(3)).assumptions == ("f∘g is convex",)


def test_numbers_that_overflow_give_no_bound():
    problem = stoic.Problem(inner_of("squared"), stoic.Linear(), stoic.L2(0.1))
    certificate = stoic.certify(problem, np.full(3, 1e200))
    assert certificate.bound == math.inf
    assert "not a finite number" in certificate.statement


# --- results ---


@pytest.mark.slow
def test_the_result_has_its_certificate_made_when_asked_for():
    case = CASES["logsumexp-l2"]
    result = stoic.minimize(case.problem, budget=20_000, seed=0)
    certificate = result.certificate
    assert certificate is result.certificate
    assert case.problem.objective(result.w) - case.best <= certificate.bound + 1e-9 * case.range
    again = stoic.minimize(case.problem, budget=20_000, seed=0)
    np.testing.assert_array_equal(again.w, result.w)
    assert again.certificate.bound == certificate.bound


def test_a_result_from_elsewhere_says_how_to_certify_it():
    result = stoic.minimize(CASES["logsumexp-l2"].problem, budget=5000, seed=0)
    copied = pickle.loads(pickle.dumps(result))  # noqa: S301
    with pytest.raises(stoic.SolveFailed, match=r"use stoic.certify\(problem, result.w\)"):
        _ = copied.certificate


def test_the_history_of_a_method_that_goes_through_all_data_has_the_duality_gap():
    case = CASES["logsumexp-l2"]
    n = case.problem.inner.n_samples
    result = stoic.minimize(case.problem, "newton", budget=400 * n, evaluate_every=n)
    gaps = [record["duality_gap"] for record in result.history if "duality_gap" in record]
    assert len(gaps) >= 3
    assert case.problem.objective(result.w) - case.best <= gaps[-1] + 1e-9 * case.range
    assert gaps[-1] < 1e-6 * gaps[0]


def test_the_history_of_a_method_that_draws_has_none():
    result = stoic.minimize(CASES["logsumexp-l2"].problem, "rrosc-tracked", budget=5000, seed=0)
    assert all("duality_gap" not in record for record in result.history)


def test_the_words():
    certificate = Certificate(0.01234, 0.05, math.nan, (), "fresh samples", 1000)
    sentence = "F(w) − F* ≤ 0.0124 with probability at least 0.95, by 1000 fresh samples"
    assert str(certificate) == f"{sentence}."
    assumed = Certificate(0.01234, 0.05, 0.0042, ("a holds", "so does b"), "fresh samples", 1000)
    assert assumed.statement == f"{sentence}, if a holds and so does b."
    assert str(assumed).endswith("A guess without a guarantee: F(w) − F* is about 0.0042.")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"delta": 0.0}, "delta=0"), ({"samples": 0}, "samples=0"), ({"modulus": -1.0}, "modulus=-1")],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(stoic.InvalidParameter, match=message):
        stoic.certify(CASES["logsumexp-l2"].problem, np.zeros(10), **options)


def test_without_a_penalty_the_gap_is_that_of_the_parabola_of_the_rows_that_have_curvature():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), np.concatenate([rng.standard_normal(50), np.full(10, 30.0)])
    problem = stoic.Problem(stoic.GroupLoss(X, y, loss=stoic.Huber(3.0)), stoic.Linear())
    w = stoic.minimize(problem, "newton", budget=10**6).w + 1e-4
    v, H = problem.gradient(w), problem.inner.hessian(w, problem.inner.everything(), np.ones(1))
    assert duality_gap(problem, w) == pytest.approx(0.5 * v @ np.linalg.solve(H, v), rel=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_block_of_the_second_derivative_of_a_softmax_is_that_of_the_whole(intercept, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), rng.integers(0, 4, 50)
    inner = stoic.GroupSoftmax(X, y, np.arange(50) % 2, n_classes=4, intercept=intercept)
    w = rng.standard_normal(inner.shape[1])
    model = SoftmaxModel(inner, w, np.array([0.3, 0.7]))
    for entries in (1, 1 << 20):
        monkeypatch.setattr("stoic.certificate.linear_models._ENTRIES", entries)
        for chosen in (np.arange(w.size), np.array([w.size - 1]), np.array([5, 0, 7, 4])):
            block = model.hessian_block(chosen)
            np.testing.assert_allclose(block, model.hessian()[np.ix_(chosen, chosen)], atol=1e-12)
