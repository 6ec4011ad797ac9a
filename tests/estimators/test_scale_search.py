"""The search for a scale, and the run of Newton steps behind it."""

import numpy as np
import pytest

from stoic import GroupDRORegressor, GroupLoss, Linear, Newton, Problem
from stoic.engines.engine import Status
from stoic.errors import InvalidParameter
from stoic.estimators.newton_run import NewtonRun
from stoic.estimators.scale_search import Secant
from stoic.losses import Huber

N, D = 400, 3


@pytest.fixture(scope="module")
def inner():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D))
    return GroupLoss(X, X.sum(axis=1) + rng.standard_t(2.0, N), np.arange(N) % 2, loss=Huber(1.0))


@pytest.mark.parametrize("slope", [-0.4, 0.0, 0.4, 0.8])
def test_a_secant_finds_the_fixed_point_of_a_line(slope):
    secant, s = Secant(), 1.0
    for _ in range(60):
        s = secant.after(s, (1.0 - slope) * 3.0 + slope * s)
    assert s == pytest.approx(3.0, rel=1e-6)


def test_a_secant_takes_the_value_itself_where_moves_do_not_shrink():
    secant = Secant()
    assert secant.after(1.0, 1.1) == 1.1
    assert secant.after(1.1, 2.0) == 2.0


def test_a_run_that_turns_to_another_loss_ends_where_one_from_the_start_does(inner):
    run, w = NewtonRun(Newton(), 10_000 * N), np.zeros(D)
    for threshold in (3.0, 1.5, 1.0):
        problem = Problem(inner.with_loss(Huber(threshold)), Linear())
        while not (run.problem is problem and run.is_done):
            w = run.step(problem, w)
    np.testing.assert_allclose(problem.gradient(w), 0.0, atol=1e-9)
    assert run.result(w).status is Status.FINISHED


def test_a_run_counts_all_rows_as_drawn_once_and_every_evaluation(inner):
    run, w = NewtonRun(Newton(), 10 * N), np.zeros(D)
    counts = []
    for threshold in (3.0, 1.0):
        problem = Problem(inner.with_loss(Huber(threshold)), Linear())
        w = run.step(problem, w)
        counts.append(run.meter.evaluations)
    assert run.meter.samples == N
    assert counts[1] > counts[0] >= 2 * N


def test_a_budget_below_one_pass_is_refused_with_what_is_needed(inner):
    with pytest.raises(InvalidParameter, match=f"budget=10 is below the {N} samples"):
        NewtonRun(Newton(), 10).step(Problem(inner, Linear()), np.zeros(D))


def test_an_exact_fit_has_a_record_for_each_step_and_a_gap_in_the_last():
    rng = np.random.default_rng(2)
    X, groups = rng.standard_normal((N, D)), np.arange(N) % 2
    y = X.sum(axis=1) + rng.standard_t(2.0, N)
    model = GroupDRORegressor(protect="loss", temperature=4.0).fit(X, y, groups=groups)
    assert len(model.history_) == model.n_iter_
    assert {record["phase"] for record in model.history_} == {0, 1}
    assert ["duality_gap" in record for record in model.history_] == [False] * (model.n_iter_ - 1) + [True]
