"""Functions of the user's own: what is not finite is an error that names the sample, or an overflow."""

import math

import numpy as np
import pytest

import stoic
from stoic.guards import InnerGuard, is_foreign, overflows
from stoic.inners.metered import Metered

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 2))
Y = X @ [1.0, -1.0] + RNG.standard_normal(400)
BAD = 17


def value(w, samples):
    x, y = samples
    return np.square(x @ w - y)[:, None]


def jacobian(w, samples):
    x, y = samples
    return (2.0 * (x @ w - y)[:, None] * x)[:, None]


def make(**changes):
    return stoic.FunctionInner(
        **({"value": value, "jacobian": jacobian, "shape": (1, 2), "data": (X, Y)} | changes)
    )


def at(row, function, number):
    """Return the function with `number` for the sample that is row `row` of the data."""

    def changed(w, samples):
        returned = function(w, samples)
        returned[samples[1] == Y[row]] = number
        return returned

    return changed


def with_a_bad_row(number):
    y = Y.copy()
    y[BAD] = number
    return make(data=(X, y))


def solve(inner, method="auto", outer=None, regularizer=None, budget=3000, **options):
    problem = stoic.Problem(inner, outer or stoic.Linear(), regularizer or stoic.Zero())
    return stoic.minimize(problem, method, budget=budget, seed=0, **options)


SLOW = stoic.MSCG(step_size=0.01, batch_size=3)  # no pilot
METHODS = ["auto", "rosc", "mscg", "rmscg-robust", "scsc", "rcivr", "clipped-sgd", SLOW]


# --- a sample that is broken ---


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_row_of_data_that_is_not_finite_is_named(method, number):
    with pytest.raises(
        stoic.InvalidProblem, match=r"row 17 of data, which is not finite itself, .*at the start too"
    ):
        solve(with_a_bad_row(number), method)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_value_that_is_infinite_for_one_row_is_named(method):
    with pytest.raises(stoic.InvalidProblem, match=r"value\(w, samples\) returned inf for row 17 of data, and"):
        solve(make(value=at(BAD, value, math.inf)), method)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_jacobian_that_is_nan_for_one_row_is_named(method):
    with pytest.raises(stoic.InvalidProblem, match=r"jacobian\(w, samples\) returned nan for row 17 of data, and"):
        solve(make(jacobian=at(BAD, jacobian, math.nan)), method)


def test_a_product_that_is_nan_for_one_row_is_named():
    def product(w, samples, q):
        return np.full(2, math.nan) if (samples[1] == Y[BAD]).any() else q @ jacobian(w, samples).mean(axis=0)

    with pytest.raises(stoic.InvalidProblem, match=r"vjp\(w, samples, q\) returned nan for row 17 of data"):
        solve(make(vjp=product), SLOW)


@pytest.mark.parametrize("method", ["auto", SLOW], ids=str)
def test_a_stream_that_draws_nan_now_and_then_is_stopped_at_the_first(method):
    def draw(size, rng):
        x = rng.standard_normal((size, 2))
        return x, np.where(rng.random(size) < 0.01, math.nan, x[:, 0])

    with pytest.raises(
        stoic.InvalidProblem, match=r"sample \d+ of draw\(size=\d+, rng\), which is not finite itself"
    ):
        solve(make(data=None, draw=draw), method)


def test_samples_that_hold_nan_are_fine_where_the_functions_know_how_to_take_them():
    def known(function):
        return lambda w, samples: function(w, (samples[0], np.nan_to_num(samples[1])))

    y = np.where(np.arange(400) % 10 == 0, math.nan, Y)
    assert solve(make(value=known(value), jacobian=known(jacobian), data=(X, y))).success


def test_the_exact_objective_and_gradient_name_the_row():
    problem = stoic.Problem(with_a_bad_row(math.nan), stoic.Linear())
    for function in (problem.objective, problem.gradient):
        with pytest.raises(stoic.InvalidProblem, match="row 17 of data"):
            function(np.ones(2))


def test_the_constants_are_not_estimated_from_nan():
    with pytest.raises(stoic.InvalidProblem, match="row 17 of data"):
        stoic.estimate_constants(stoic.Problem(with_a_bad_row(math.nan), stoic.Linear()), seed=0)


# --- a part that is wholly the user's own ---


class Own:
    """An inner part that knows nothing of its samples but their mean in blocks."""

    shape, n_samples, n_unpenalized = (1, 2), None, 0

    def draw(self, size, rng):
        rows = rng.integers(400, size=size)
        return X[rows], np.where(rows == BAD, math.nan, Y[rows])

    def everything(self):
        raise NotImplementedError

    def cost(self, size):
        return size

    def value(self, w, batch, blocks=1):
        return np.array([part.mean(axis=0) for part in np.array_split(value(w, batch), blocks)])

    def jacobian(self, w, batch, blocks=1):
        return np.array([part.mean(axis=0) for part in np.array_split(jacobian(w, batch), blocks)])

    def vjp(self, w, batch, q):
        return q @ self.jacobian(w, batch)[0]


@pytest.mark.parametrize("method", ["auto", SLOW], ids=str)
def test_a_part_of_ones_own_is_named_with_the_number_of_the_sample_in_its_draw(method):
    with pytest.raises(stoic.InvalidProblem, match=r"of .*Own.* returned nan for sample \d+ of a draw of \d+"):
        solve(Own(), method)


class NoDomain:
    """f(u) = log(1 − u₀), not defined beyond 1."""

    def value(self, u):
        return float(np.log(1.0 - u[0]))

    def gradient(self, u):
        return np.where(u < 1.0, -1.0 / (1.0 - u), math.nan)


@pytest.mark.parametrize("method", ["auto", SLOW], ids=str)
def test_an_outer_function_that_is_nan_is_named_with_its_argument(method):
    with pytest.raises(
        stoic.InvalidProblem, match=r"\(u\) of the outer function .*NoDomain.* returned nan for u = \["
    ):
        solve(make(), method, outer=NoDomain())


class Leaky:
    """A regularizer whose prox loses what is far out."""

    def value(self, w):
        return 0.0

    def prox(self, v, step):
        return np.where(np.abs(v) > 0.5, math.nan, v)


def test_a_prox_that_is_nan_is_named_with_its_argument():
    with pytest.raises(
        stoic.InvalidProblem, match=r"prox\(v, step\) of the regularizer .*Leaky.* returned nan for v"
    ):
        solve(make(), SLOW, regularizer=Leaky(), budget=20_000)


def test_a_regularizer_that_is_nan_is_named():
    regularizer = Leaky()
    regularizer.value = lambda _: math.nan
    problem = stoic.Problem(make(), stoic.Linear(), regularizer)
    with pytest.raises(stoic.InvalidProblem, match=r"value\(w\) of the regularizer .*Leaky.* returned nan"):
        problem.objective(np.zeros(2))


# --- overflow is divergence ---


@pytest.mark.parametrize(
    "method", [stoic.MSCG(1e6, 1), stoic.SCSC(steps=stoic.PowerLaw(1e6), batch_size=1)], ids=str
)
def test_finite_functions_that_overflow_far_from_the_start_are_a_divergence(method):
    result = solve(make(), method)
    assert result.status is stoic.Status.DIVERGED
    assert np.isfinite(result.w).all()


def test_an_exponential_that_overflows_at_an_ordinary_distance_is_a_divergence():
    inner = stoic.FunctionInner(
        lambda w, x: np.exp(x @ w)[:, None], lambda w, x: (np.exp(x @ w)[:, None] * x)[:, None], (1, 2), data=X
    )
    result = solve(inner, stoic.MSCG(step_size=100.0, batch_size=1))
    assert result.status is stoic.Status.DIVERGED
    assert np.linalg.norm(result.w) < 1e30


def test_a_function_that_is_not_defined_where_the_method_goes_is_an_error():
    def root(w, x):
        return np.sqrt(0.25 - w[:1] + 0.0 * x[:, :1])  # falls towards w₀ = 1/4, and ends there

    def slope(w, x):
        return np.broadcast_to([[-0.5, 0.0]] / root(w, x[:1]), (len(x), 1, 2))

    inner = stoic.FunctionInner(root, slope, (1, 2), data=X)
    with pytest.raises(stoic.InvalidProblem, match=r"returned nan for row \d+ of data, at a w that is .* away"):
        solve(inner, SLOW)


def test_a_pilot_may_try_points_at_which_a_function_is_not_defined():
    def gap(w, x):  # −log(1 − w₀) + w₀² less what it is at 0: the pilot's first steps are long
        return np.broadcast_to(-np.log(1.0 - w[0]) + 50.0 * (w[0] + 3.0) ** 2, (len(x), 1))

    def slope(w, x):
        return np.broadcast_to([1.0 / (1.0 - w[0]) + 100.0 * (w[0] + 3.0), 0.0], (len(x), 1, 2))

    inner = stoic.FunctionInner(gap, slope, (1, 2), data=X)
    meter = Metered(inner, 10**6, np.zeros(2))
    with np.errstate(all="ignore"), meter.trying():
        assert math.isnan(meter.value(np.array([2.0, 0.0]), meter.draw(3, np.random.default_rng(0)))[0, 0])
    assert solve(inner, "mscg").success


@pytest.mark.parametrize(
    ("function", "far", "answer"),
    [
        (np.exp, 1e3, True),
        (np.exp, 1e90, True),
        (lambda w: w**4, 1e80, True),
        (lambda w: np.sqrt(1.0 - w), 1e3, False),
        (lambda w: np.sqrt(1.0 - w), 1e90, False),
        (lambda w: np.log(1.0 - w), 1e3, False),
        (lambda w: np.where(w > 3.0, math.inf, w), 4.0, False),
        (lambda w: np.log(1.0 + np.exp(w)), 1e3, False),  # its own doing: log(1 + eʷ) is near w
    ],
)
def test_an_overflow_passes_large_numbers_and_the_end_of_a_domain_does_not(function, far, answer):
    with np.errstate(all="ignore"):
        assert overflows(function, np.zeros(1), np.array([far])) == answer


def test_numbers_of_which_only_the_sum_overflows_are_not_blamed_on_a_sample():
    inner = make(value=lambda w, samples: np.full((len(samples[1]), 1), 1e308))
    guard = InnerGuard(inner, np.zeros(2))
    batch = inner.draw(4, np.random.default_rng(0))
    with np.errstate(over="ignore"):
        guard.check("value", inner.value(np.ones(2), batch), np.ones(2), batch, 4)


# --- what is watched ---


class OwnLoss:
    curvature = 2.0

    def value(self, prediction, y):
        return np.where(y == Y[BAD], math.nan, np.square(prediction - y))

    def derivative(self, prediction, y):
        return 2.0 * (prediction - y)


def test_a_loss_of_ones_own_is_watched():
    with pytest.raises(stoic.InvalidProblem, match="returned nan for sample"):
        solve(stoic.GroupLoss(X, Y, loss=OwnLoss()), SLOW)


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        (stoic.GroupLoss(X, Y), False),
        (stoic.GroupLoss(X, Y, loss=OwnLoss()), True),
        (stoic.Moments(X), False),
        (make(), True),
        (stoic.LogSumExp(1.0), False),
        (NoDomain(), True),
        (stoic.L1(0.1), False),
        (Leaky(), True),
    ],
    ids=lambda part: type(part).__name__,
)
def test_only_what_is_not_the_librarys_own_is_watched(part, answer):
    assert is_foreign(part) == answer


def test_a_regularizer_of_ones_own_is_watched_behind_an_intercept():
    problem = stoic.Problem(stoic.GroupLoss(X, Y, intercept=True), stoic.Linear(), Leaky())
    assert is_foreign(problem.regularizer)


def test_wild_labels_of_the_librarys_own_losses_are_still_truncated():
    y = Y.copy()
    y[BAD] = 1e200  # its squared loss is infinite
    result = solve(stoic.GroupLoss(X, y), "rosc", budget=20_000)
    assert result.success
    assert result.truncated_y > 0.0
