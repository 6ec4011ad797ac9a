"""The bias floor: with a non-linear f and a constant batch, RROSC stops short of what Theorem 3 claims.

The problem: f(u) = log(1 + eᵘ) − u/5, g(w; ξ) = w + ξ with ξ = ±2, r(w) = w²/20. All assumptions hold:

    C_f = 0.8 and L_f = 1/4, as f′ = s − 1/5 and f″ = s(1 − s) for the logistic s in (0, 1);
    C_g = 1, L_g = 0, σ₁ = 0, as ∇g(w; ξ) = 1;  σ₀ = 2;  μ = 1/10, the modulus of r.

With m = 1 the expected step vanishes not at w*, where f′(w) + w/10 = 0, but where E f′(w + ξ) + w/10 = 0.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from stoic import L2, RROSC, GroupLoss, LogSumExp, Problem, Status, minimize
from stoic.theory.theorems import Constants, theorem_3
from streams import Signs, Stream

CONSTANTS = Constants(C_f=0.8, L_f=0.25, C_g=1.0, L_g=0.0, sigma0=2.0, sigma1=0.0, mu=0.1)
EPS0, EPS, DELTA = 0.06, 0.0075, 0.05


class TiltedSoftplus:
    def value(self, u):
        return float(np.logaddexp(0.0, u[0]) - 0.2 * u[0])

    def gradient(self, u):
        return slope(u)


def slope(u):
    return expit(u) - 0.2


def objective(w):
    return float(np.logaddexp(0.0, w) - 0.2 * w + 0.05 * w * w)


def stationary(m):
    """Return where the expected step with batches of m vanishes."""
    heads = np.arange(m + 1)
    noise, weights = 4.0 * heads / m - 2.0, binom.pmf(heads, m, 0.5)
    return brentq(lambda w: weights @ slope(w + noise) + 0.1 * w, -5.0, 5.0, xtol=1e-14)


BEST = brentq(lambda w: slope(w) + 0.1 * w, -5.0, 5.0, xtol=1e-14)


def gap(w):
    return objective(float(w)) - objective(BEST)


class RecordedSigns(Signs):
    def __init__(self):
        self.tosses = []

    def means(self, n, shape, rng):
        self.tosses.append(super().means(n, shape, rng))
        return self.tosses[-1].copy()


def problem_with(law):
    zero = np.zeros((1, 1))
    inner = Stream(  # sin(π/2) is 1 in floats too, and waves of 0 leave the Jacobian at 1
        b=np.zeros(1),
        A=np.ones((1, 1)),
        h=zero,
        scale=np.array([2.0]),
        waves=zero,
        phases=np.array([math.pi / 2]),
        law=law,
    )
    return Problem(inner, TiltedSoftplus(), L2(0.1))


def plan_of(m):
    return theorem_3(CONSTANTS, eps0=EPS0, eps=EPS, delta=DELTA, batch_size=m)


def test_the_optimum_and_the_stationary_points_are_those_of_the_documentation():
    assert pytest.approx(-0.8969, abs=1e-4) == BEST
    assert stationary(1) == pytest.approx(-1.3955, abs=1e-4)
    assert gap(stationary(1)) == pytest.approx(0.0361, abs=1e-4)
    assert gap(stationary(1)) > 4.8 * EPS


def test_the_plan_reports_no_success_probability():
    assert plan_of(1).success_probability is None


def test_the_levels_of_the_plan_are_out_of_reach_of_the_noise():
    """|y − ỹ₀| ≤ |w − w₀| + 4 surely, and z = z̃₀ = 1: not one step of the whole plan is truncated."""
    for c in (1, 10, 1000):
        plan = theorem_3(CONSTANTS, eps0=EPS0, eps=EPS, delta=DELTA, reference_block_size=c)
        assert min(stage.levels.slack_y for stage in plan.stages) > 4.0


def coarse_steps(n, eta, counts, w):
    """Return bounds on the iterate after n steps of ROSC, from bounds w of shape (2, runs) on the one before.

    With a = 1/(1 + αη), w_n = aⁿw − η Σ a^(n−t) f′(w_t + ξ_t). A step moves w by at most η(C_f + α|w|) ≤ η while
    |w| ≤ 2, so that w_t is within nη of w; f′ increases; and the weights a^(n−t) are between aⁿ and 1. Only the
    number of ξ_t = 2 is left of the noise. The bounds increase with w, which makes them hold from one to the next.
    """
    reach, shrunk = n * eta * np.array([[1.0], [-1.0]]), (1.0 + 0.1 * eta) ** -n
    total = counts * slope(w + reach + 2.0) + (n - counts) * slope(w + reach - 2.0)
    return shrunk * w - eta * (total + np.sign(reach) * n * (1.0 - shrunk) * 0.8)


def bounds_on_stage(stage, w, rng, width=0.004):
    """Return bounds on the average of the iterates of a stage that starts within the bounds w."""
    n, left, total, start = int(width / stage.step_size), stage.n_steps, np.zeros_like(w), w
    while left:
        n = min(n, left)
        total += n * (w + n * stage.step_size * np.array([[-1.0], [1.0]]))
        w = coarse_steps(n, stage.step_size, rng.binomial(n, 0.5, w.shape[1]), w)
        left -= n
        assert np.abs(w - start[::-1]).max() + width < stage.radius  # the ball never binds
        assert np.abs(w).max() + width < 2.0
    return total / stage.n_steps


def test_the_coarse_steps_enclose_those_of_rosc():
    """No chance involved: the same coins decide both."""
    solver, law, n = RROSC.from_plan(plan_of(1)).stages[0], RecordedSigns(), 1000
    problem, rng = problem_with(law), np.random.default_rng(0)
    state = solver.init(problem, np.array([BEST]), rng)
    law.tosses.clear()
    for _ in range(n):
        state, _ = solver.step(problem, state, rng)
    heads = np.array([np.sum(np.array(law.tosses) > 0)])
    low, high = coarse_steps(n, solver.step_size, heads, np.full((2, 1), BEST))[:, 0]
    assert low < state.w[0] < high
    assert high - low < 0.02 * abs(state.w[0] - BEST)


@pytest.mark.slow
def test_the_first_steps_of_the_plan_leave_the_optimum_and_none_is_truncated():
    """False alarm: below 1e-6. The expected drift of the average is 28 standard deviations, and 7 are allowed."""
    plan, n = plan_of(1), 10_000
    problem, budget = problem_with(Signs()), plan.stages[0].reference_size + n
    result = minimize(problem, RROSC.from_plan(plan), budget=budget, w0=np.array([BEST]), seed=0)
    assert result.status is Status.PLAN_CUT
    assert result.n_steps == n
    assert result.truncated_y == result.truncated_z == 0.0
    expected_step = 0.5 * (slope(BEST + 2.0) + slope(BEST - 2.0)) + 0.1 * BEST
    drift = -plan.stages[0].step_size * expected_step * n / 2
    assert result.w[0] - BEST == pytest.approx(drift, rel=0.25)


@pytest.mark.slow
def test_the_whole_plan_walks_away_from_the_optimum_to_a_gap_above_eps():
    """20 runs of all 177 million steps, each started at the optimum itself. False alarm: below 1e-6.

    Theorem 3 claims a gap of at most 0.0075 in 19 of 20 runs. In all of them it is between 0.0350 and 0.0373: the
    bounds enclose 0.0361.
    """
    rng, w = np.random.default_rng(1), np.full((2, 20), BEST)
    for stage in plan_of(1).stages:
        w = bounds_on_stage(stage, w, rng)
    assert (w[0] < w[1]).all()
    assert (w[1] < BEST).all()
    assert min(map(gap, w[1])) > 4.5 * EPS  # F increases to the left of the optimum
    assert max(map(gap, w[0])) < 5.2 * EPS
    assert (w[0] < stationary(1)).all()
    assert (w[1] > stationary(1)).all()


@pytest.mark.parametrize("m", [1, pytest.param(4, marks=pytest.mark.every), 16])
@pytest.mark.slow
def test_the_answer_is_where_the_expected_step_of_its_batch_size_vanishes(m):
    """The plan with longer and fewer steps, at which the answer is more noisy and the floor the same.

    False alarm: below 1e-6. The answer's standard deviation is 0.31/(0.23 √(10,000 m)) = 0.0133/√m, with 0.31 that
    of f′(w + ξ) and 0.23 the slope of the expected step; six of them are allowed.
    """
    plan = plan_of(m)
    lengths = zip(plan.stages, (2000, 2000, 10_000), strict=True)
    stages = (dataclasses.replace(stage, step_size=0.02, n_steps=n_steps) for stage, n_steps in lengths)
    plan = dataclasses.replace(plan, stages=tuple(stages))
    start = np.array([BEST])
    result = minimize(problem_with(Signs()), RROSC.from_plan(plan), budget=plan.samples, w0=start, seed=m)
    assert result.status is Status.FINISHED
    assert result.truncated_y == result.truncated_z == 0.0
    assert result.w[0] == pytest.approx(stationary(m), abs=6 * 0.0133 / math.sqrt(m))
    assert result.w[0] < BEST
    assert (gap(result.w[0]) > 3 * EPS) == (m == 1)


def test_the_floor_falls_like_the_square_of_the_batch_size():
    """∇²f is Lipschitz: the bias of the gradient tends to f‴σ₀²/(2m), the floor to its square over 2F″."""
    s = expit(BEST)
    curvature, third = s * (1 - s), s * (1 - s) * (1 - 2 * s)
    limit = (third * 4.0 / 2) ** 2 / (2 * (curvature + 0.1))
    scaled = [m * m * gap(stationary(m)) for m in (1, 4, 16, 64, 256)]
    assert scaled == pytest.approx([limit] * 5, rel=0.35)
    assert scaled[-1] == pytest.approx(limit, rel=0.01)


@pytest.mark.slow
def test_at_the_defaults_the_tracked_method_is_a_hundred_times_below_the_floor():
    """F is log(e^(0.8w) + e^(−0.2w)) + w²/20, so LogSumExp over two groups of linear losses, a coin each.

    Medians of 5 runs of 10⁶ samples. Of 20 runs (benchmarks/bias_floor.py) the lowest gap of `rrosc` is 5e-4, the
    highest of `rrosc-tracked` 3e-6; the medians are 1.7e-2 and 3e-7. False alarm: below 3e-3, as three of the five
    runs of a method would have to be beyond what 20 runs have shown.
    """
    x, xi = np.array([0.8, 0.8, -0.2, -0.2]), np.array([2.0, -2.0, 2.0, -2.0])
    inner = GroupLoss(x[:, None], -x * xi - 100.0, [0, 0, 1, 1], loss="absolute")  # |xw − y| = x(w + ξ) + 100
    problem = Problem(inner, LogSumExp(1.0), L2(0.1))

    def median_gap(method):
        return np.median([gap(minimize(problem, method, 10**6, seed=seed).w[0]) for seed in range(5)])

    assert median_gap(RROSC(batch_size=1)) > 100 * median_gap("rrosc-tracked")
