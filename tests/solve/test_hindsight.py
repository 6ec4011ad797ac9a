"""A look back from the answer: what kept draws tell, and how often they are wrong."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import binom

import stoic
from stoic.inners.metered import Drawn
from stoic.pilot.fixed_sample import Pooled, make_sample
from stoic.solve.hindsight import Hindsight, Outlook, rise
from stoic.solve.messages import cut_advice, divergence_advice, progress_advice

D = 3


def problem_of(noise, outer=None, n=600, groups=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    y = X @ np.ones(D) + noise(rng, n)
    return stoic.Problem(stoic.GroupLoss(X, y, np.arange(n) % groups), outer or stoic.LogSumExp(1.0))


PROBLEM = problem_of(lambda rng, n: rng.standard_normal(n))


def draws(problem, n, rng):
    return [Drawn(problem.inner.draw(1, rng), problem.inner.cost(1), [], 1) for _ in range(n)]


def pooled(problem, n, seed=0):
    return Pooled([make_sample(problem, one.batch, 1) for one in draws(problem, n, np.random.default_rng(seed))])


# --- pooled samples ---


def test_pooled_samples_have_the_means_of_all_their_draws():
    rng, w, q = np.random.default_rng(0), np.arange(D) + 0.5, np.ones(3)
    batches = [PROBLEM.inner.draw(size, rng) for size in (4, 1, 7)]
    together = Pooled([make_sample(PROBLEM, batch, batch.rows.shape[1]) for batch in batches])
    whole = type(batches[0])(np.hstack([batch.rows for batch in batches]))
    np.testing.assert_allclose(together.value(w), PROBLEM.inner.value(w, whole)[0], rtol=1e-12)
    np.testing.assert_allclose(together.vjp(w, q), PROBLEM.inner.vjp(w, whole, q), rtol=1e-12)
    np.testing.assert_allclose(together.values(w, 12), PROBLEM.inner.value(w, whole, 12), rtol=1e-12)


def test_pooled_samples_have_one_block_a_draw():
    with pytest.raises(stoic.InvalidParameter, match=r"blocks=2, .* have 4, one a draw"):
        pooled(PROBLEM, 4).values(np.zeros(D), 2)


# --- rise ---


def test_a_rise_is_the_difference_of_the_objectives_of_the_sample():
    sample, far = pooled(PROBLEM, 32), np.full(D, 100.0)
    expected = sample.objective(far) - sample.objective(np.zeros(D))
    assert rise(sample, np.zeros(D), far, 1e-4) == pytest.approx(expected, rel=1e-9)


def test_a_fall_is_no_rise():
    assert rise(pooled(PROBLEM, 32), np.zeros(D), np.ones(D), 0.4) == 0.0


def test_the_same_point_is_no_rise():
    assert rise(pooled(PROBLEM, 32), np.ones(D), np.ones(D), 0.4) == 0.0


@pytest.mark.parametrize(
    ("n", "length"), [(32, 1e2), *((n, far) for n in (4, 32) for far in (1e30, 1e150, 1e300))]
)
def test_a_point_far_away_is_a_rise_whether_or_not_its_losses_overflow(n, length):
    assert rise(pooled(PROBLEM, n), np.ones(D), np.full(D, length), 1e-4) > 0.0


def test_two_draws_decide_nothing():
    assert rise(pooled(PROBLEM, 2), np.ones(D), np.full(D, 1e30), 0.4) == 0.0


@pytest.mark.parametrize("wild", [1e10, 1e160])
def test_one_wild_draw_decides_nothing(wild):
    sample = pooled(PROBLEM, 31)
    row = int(sample.parts[0].batch.rows[0, 0])
    y = PROBLEM.inner.y.copy()
    y[row] = wild
    problem = PROBLEM.with_inner(stoic.GroupLoss(PROBLEM.inner.X, y, np.arange(600) % 3))
    sample = Pooled([make_sample(problem, part.batch, 1) for part in sample.parts])
    away = -1e-3 * np.sign(wild) * PROBLEM.inner.X[row]  # the wild draw alone is far worse there
    assert rise(sample, np.ones(D), np.ones(D) + away, 1e-3) == 0.0


def test_where_nothing_is_random_rounding_is_no_rise():
    problem = stoic.Problem(stoic.GroupLoss(np.ones((5, 1)), np.full(5, 3.0)), stoic.Linear())
    sample = pooled(problem, 8)
    assert rise(sample, np.zeros(1), np.full(1, -1e-12), 1e-4) == 0.0
    assert rise(sample, np.zeros(1), np.full(1, -1e-3), 1e-4) > 0.0


@pytest.mark.slow
def test_false_alarms_at_the_optimum_are_as_rare_as_asked_for():
    """Points around the optimum that are no better and no worse: the test must fire in about 5 % of 300 samples.

    They are taken on the level set of the exact objective. False alarm: 1e-4, by the binomial law; the draws are
    light-tailed, so that Student's quantile is good.
    """
    rng, alarms = np.random.default_rng(0), 0
    w = np.full(D, 0.8)
    level = PROBLEM.objective(w)
    for seed in range(300):
        direction = rng.standard_normal(D)
        top = minimize_scalar(lambda t, p=direction: PROBLEM.objective(w + t * p)).x
        low, high = (1.1 * top, 20.0 * top) if abs(top) > 1e-9 else (1e-9, 1.0)
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if PROBLEM.objective(w + middle * direction) < level else (low, middle)
        alarms += rise(pooled(PROBLEM, 32, seed), w, w + low * direction, 0.05) > 0.0
    assert binom.sf(alarms - 1, 300, 0.05) > 1e-4


# --- the outlook ---


def outlook(problem, w0, w, half=None, quarter=None, n=64):
    rng = np.random.default_rng(1)
    hindsight = Hindsight(problem, w0)
    for answer in (w0 if quarter is None else quarter, w if half is None else half):
        hindsight.keep(answer)
    return hindsight.outlook(w, *(draws(problem, n, rng) for _ in range(3)))


def exact(problem, w0):
    """Return F(w₀) less the least F, from SciPy."""
    return problem.objective(w0) - minimize(problem.objective, w0, jac=problem.gradient, tol=1e-12).fun


def test_an_answer_at_the_optimum_leaves_nothing():
    seen = outlook(PROBLEM, np.zeros(D), np.ones(D))
    assert (seen.risen, seen.moved, seen.left) == (0.0, 0.0, 0.0)
    assert seen.fallen > 0.0


def test_what_a_descent_finds_is_near_what_is_left():
    w0 = np.full(D, 10.0)
    seen = outlook(PROBLEM, w0, 0.8 * w0)
    assert seen.left == pytest.approx(exact(PROBLEM, 0.8 * w0), rel=0.3)
    assert seen.share_left == pytest.approx(exact(PROBLEM, 0.8 * w0) / exact(PROBLEM, w0), rel=0.15)


def test_where_a_descent_finds_nothing_the_pace_tells_what_is_left():
    # Two directions, one of them too flat for a descent: gains halve with each doubling, as in 1/t.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2)) * [1.0, 1e-4]
    problem = stoic.Problem(stoic.GroupLoss(X, X @ [0.0, 1e4]), stoic.Linear())
    w0, (quarter, half, w) = np.zeros(2), (np.array([0.0, (1.0 - 0.5 * t) * 1e4]) for t in (1.0, 0.7, 0.5))
    seen = outlook(problem, w0, w, half, quarter)
    gains = [problem.objective(a) - problem.objective(b) for a, b in ((quarter, half), (half, w))]
    rate = gains[1] / gains[0]
    assert seen.moved == pytest.approx(gains[1], rel=0.3)
    assert seen.left == pytest.approx(gains[1] * rate / (1.0 - rate), rel=0.6)


def test_answers_of_very_many_coordinates_are_not_kept():
    hindsight = Hindsight(PROBLEM, np.zeros(D))
    hindsight.keep(np.zeros(10**5 + 1))
    assert hindsight.answers == []


def test_without_draws_nothing_is_said():
    assert Hindsight(PROBLEM, np.zeros(D)).outlook(np.ones(D), [], [], []) == Outlook()


def test_heavy_tails_and_skewed_noise_at_the_start_raise_no_alarm():
    """The answer is a little better than the start, thanks to a few rows: no verdict in 200 samples of 32."""
    problem = problem_of(lambda rng, n: np.exp(2.0 * rng.standard_normal(n)), outer=stoic.Linear(), groups=1)
    w0, w = np.ones(D), np.linalg.lstsq(problem.inner.X, problem.inner.y, rcond=None)[0]
    alarms = sum(rise(pooled(problem, 32, seed), w0, w, 1e-4) > 0.0 for seed in range(200))
    assert alarms == 0


@pytest.mark.parametrize(("far", "is_risen"), [(30.0, True), (2.0, False)])
def test_a_rise_that_a_few_rows_carry_is_seen_over_all_data(far, is_risen):
    """One row in a hundred is far worse at the answer, all others are better."""
    rare = np.arange(2000) % 100 == 0
    X = np.stack([np.ones(2000), rare], axis=1)
    problem = stoic.Problem(stoic.GroupLoss(X, 1.0 + 0.1 * np.sin(np.arange(2000.0))), stoic.Linear())
    w0, w = np.zeros(2), np.array([1.0, far])
    kept = [draws(problem, 64, np.random.default_rng(seed)) for seed in range(3)]
    assert Hindsight(problem, w0, budget=1999).outlook(w, *kept).risen == 0.0
    risen = Hindsight(problem, w0, budget=2000).outlook(w, *kept).risen
    assert risen == (pytest.approx(problem.objective(w) - problem.objective(w0)) if is_risen else 0.0)


# --- words ---


@pytest.mark.parametrize(
    ("seen", "share"),
    [
        (Outlook(), 0.0),
        (Outlook(fallen=3.0, left=1.0), 0.25),
        (Outlook(fallen=-1.0, left=0.5), 1.0),
        (Outlook(fallen=math.nan, left=1.0), 0.0),
        (Outlook(fallen=1.0, left=math.inf), 0.0),
    ],
)
def test_the_share_that_is_left_is_of_the_whole_way(seen, share):
    assert seen.share_left == share


def test_a_hundredth_of_the_way_is_worth_saying_and_less_is_not():
    assert "25% of the way" in progress_advice(Outlook(fallen=3.0, moved=1.0, left=1.0))
    assert progress_advice(Outlook(fallen=99.1, moved=1.0, left=0.9)) == ""


def test_an_answer_no_lower_than_the_start_has_not_fallen():
    said = progress_advice(Outlook(fallen=-2.5, moved=1.0, left=4.0))
    assert "the objective is no lower than at the start, and about 4 is left, 100% of the way" in said


def test_an_answer_that_stands_still_is_not_said_to_move():
    assert progress_advice(Outlook(fallen=1.0, left=1.0)).startswith("The answer is not at an optimum: ")


def test_advice_on_a_plan_says_what_it_needs_where_that_is_known():
    assert "budget >= 74" in cut_advice(74)
    assert cut_advice(None) == "Use a larger budget."


def test_advice_on_a_rise_says_by_how_much():
    assert "2.5e+03 above that at the start: check the signs" in divergence_advice(Outlook(risen=2500.0))
