"""`Metered`: the one home of the counts of samples and evaluations."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import stoic
from catalog import CASES
from checks import generated
from spies import Spy
from stoic.inners.metered import BudgetSpent, Metered

PROBLEM = CASES["logsumexp-l2"].problem  # 4 groups of 60 rows
INNER = PROBLEM.inner
W = np.zeros(10)
Q = np.full(4, 0.25)


def metered(budget=10**6):
    return Metered(INNER, budget)


def rng():
    return np.random.default_rng(0)


def test_a_draw_costs_its_size_in_each_group():
    meter = metered()
    meter.draw(5, rng())
    assert (meter.samples, meter.evaluations, meter.left) == (20, 0, 10**6 - 20)


def test_everything_costs_all_rows():
    meter = metered()
    meter.everything()
    assert meter.samples == 240


def test_a_batch_at_a_point_is_evaluated_once_whatever_is_asked_of_it():
    meter = metered()
    batch = meter.draw(5, rng())
    meter.value(W, batch)
    meter.value(W, batch, 5)
    meter.jacobian(W, batch, 2)
    meter.vjp(W, batch, Q)
    assert meter.evaluations == 20


def test_another_point_is_another_evaluation():
    meter = metered()
    batch = meter.draw(5, rng())
    for w in (W, W + 1.0, W):
        meter.value(w, batch)
    assert meter.evaluations == 40


def test_another_batch_is_another_evaluation():
    meter = metered()
    generator = rng()
    for batch in (meter.draw(5, generator), meter.draw(3, generator)):
        meter.value(W, batch)
    assert meter.evaluations == 32


def test_a_batch_that_is_kept_over_a_draw_is_not_evaluated_anew():
    # "One evaluation for each point w": the pilot comes back to its first batch after it has drawn others.
    meter = metered()
    generator = rng()
    batch = meter.draw(5, generator)
    meter.value(W, batch)
    meter.draw(1, generator)
    meter.value(W, batch)
    assert meter.evaluations == 20


def test_a_draw_beyond_the_budget_draws_nothing_and_says_what_it_needs():
    spy = Spy(INNER)
    meter, generator = Metered(spy, 25), rng()
    meter.draw(5, generator)
    state = generator.bit_generator.state
    with pytest.raises(BudgetSpent) as raised:
        meter.draw(2, generator)
    assert raised.value.needed == 28
    assert (meter.samples, spy.samples) == (20, 20)
    assert generator.bit_generator.state == state


def test_the_whole_budget_may_be_drawn():
    meter = metered(budget=20)
    meter.draw(5, rng())
    assert meter.left == 0


def test_everything_beyond_the_budget_is_refused():
    with pytest.raises(BudgetSpent):
        metered(budget=239).everything()


@generated
@given(st.integers(1, 300), st.lists(st.integers(1, 12), max_size=20), st.integers(0, 2**32))
def test_no_sequence_of_draws_exceeds_the_budget(budget, sizes, seed):
    spy = Spy(INNER)
    meter, generator = Metered(spy, budget), np.random.default_rng(seed)
    for size in sizes:
        fits = spy.samples + 4 * size <= budget
        if fits:
            meter.draw(size, generator)
        else:
            with pytest.raises(BudgetSpent):
                meter.draw(size, generator)
    assert meter.samples == spy.samples <= budget


def test_answers_are_those_of_the_part_it_counts():
    meter = metered()
    batch, plain = meter.draw(6, rng()), INNER.draw(6, rng())
    np.testing.assert_array_equal(meter.value(W, batch, 3), INNER.value(W, plain, 3))
    np.testing.assert_array_equal(meter.jacobian(W, batch, 3), INNER.jacobian(W, plain, 3))
    np.testing.assert_array_equal(meter.vjp(W, batch, Q), INNER.vjp(W, plain, Q))
    assert (meter.shape, meter.n_samples, meter.n_unpenalized, meter.cost(3)) == ((4, 10), 240, 0, 12)


STEP, M, T = 0.01, 3, 10
CONSTANT = {"steps": stoic.PowerLaw(STEP), "weights": stoic.PowerLaw(0.5), "answer": "last"}
ROSC = stoic.ROSC(
    step_size=STEP,
    batch_size=M,
    n_steps=T,
    radius=1.0,
    reference_size=20,
    reference_mean=stoic.SmallestBall(0.5),
    levels=stoic.Calibrated(1.0, 1.0),
)


@pytest.mark.parametrize(
    ("solver", "samples", "evaluations"),
    [
        (stoic.MSCG(STEP, M, T), 2 * M * T, 2 * M * T),
        (stoic.MSCG(STEP, M, T, stoic.SmallestBall(0.9)), 2 * M * T, 2 * M * T),
        (stoic.ClippedSGD(STEP, M, T, 1.0), M * T, M * T),
        (ROSC, 20 + M * T, 20 + M * T),
        (stoic.SCGD(batch_size=M, n_steps=T, **CONSTANT), M + M * T, M + M * T),
        (stoic.ASCPG(batch_size=M, n_steps=T, **CONSTANT), M + 2 * M * T, M + 2 * M * T),
        # At the first step w_{t−1} is w_t: one evaluation less.
        (stoic.SCSC(batch_size=M, n_steps=T, **CONSTANT), M + M * T, M + M * (2 * T - 1)),
        (stoic.ALEXR(STEP, M, T), M + 2 * M * T, M + M * (3 * T - 1)),
        (stoic.CIVR(STEP, M, T, 50), 50 + M * (T - 1), 50 + 2 * M * (T - 1)),
        (stoic.CIVR(STEP, M, T, stoic.EVERYTHING), 60 + M * (T - 1), 60 + 2 * M * (T - 1)),
    ],
    ids=lambda part: type(part).__name__ if not isinstance(part, int) else None,
)
def test_solvers_cost_what_their_documentation_says(solver, samples, evaluations):
    result = stoic.minimize(PROBLEM, solver, budget=10_000, seed=0)
    assert result.status is stoic.Status.FINISHED
    assert (result.samples, result.evaluations) == (4 * samples, 4 * evaluations)
