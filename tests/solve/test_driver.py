"""`minimize`: how a solve is watched, how it ends, and what is said about it."""

import functools
import io
import math
import sys
from itertools import pairwise

import numpy as np
import pytest

import stoic
from catalog import CASES
from spies import Spy
from stoic import Status

PROBLEM = CASES["logsumexp-l2"].problem
SLOW = stoic.MSCG(step_size=0.01, batch_size=1)  # no pilot, no end of its own: 8 samples a step
WILD = stoic.MSCG(step_size=1e6, batch_size=1)


def solve(method=SLOW, budget=4000, **options):
    return stoic.minimize(PROBLEM, method, budget=budget, **({"seed": 0} | options))


def interrupt(*_):
    raise KeyboardInterrupt


def after(n, action):
    """Return a function that acts at its n-th call, and returns 0.0 at the others."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return action(*arguments) if len(calls) == n else 0.0

    return counted


# --- Ctrl-C ---


@pytest.mark.parametrize("method", [SLOW, "mscg", "rrosc", "prox-boost"])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_ctrl_c_inside_an_observer_returns_what_was_reached(method, n):
    result = solve(method, observers={"objective": after(n, interrupt)})
    assert result.status is Status.INTERRUPTED
    assert len(result.history) == n - 1
    assert np.isfinite(result.w).all()


def test_ctrl_c_inside_the_callback_returns_what_was_reached():
    result = solve(callback=after(3, interrupt))
    assert result.status is Status.INTERRUPTED
    assert len(result.history) == 3


def interrupted_at(call, method, **options):
    """Solve with an inner part that is interrupted at its `call`-th draw or evaluation."""

    def alarm(n):
        if n == call:
            raise KeyboardInterrupt

    spy = Spy(PROBLEM.inner, alarm)
    try:
        return stoic.minimize(PROBLEM.with_inner(spy), method, budget=4000, seed=0, **options)
    except KeyboardInterrupt:  # which would end pytest itself
        pytest.fail("Ctrl-C was not caught")


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5, 77, 1234])
def test_ctrl_c_inside_a_step_returns_the_answer_before_that_step(call):
    result = interrupted_at(call, SLOW)
    steps = (call - 1) // 4  # two draws, a value and a product a step
    state = SLOW.init(PROBLEM, PROBLEM.start(None), rng := np.random.default_rng(0))
    for _ in range(steps):
        state, _ = SLOW.step(PROBLEM, state, rng)
    assert result.status is Status.INTERRUPTED
    assert result.n_steps == steps
    np.testing.assert_array_equal(result.w, state.average)
    assert "keyboard" in result.message


@functools.cache
def calls_of(method):
    """Return the number of draws and evaluations of a solve that is left alone."""
    spy = Spy(PROBLEM.inner)
    stoic.minimize(PROBLEM.with_inner(spy), method, budget=4000, seed=0)
    return spy.calls


@pytest.mark.parametrize("method", ["rrosc", "rmscg-robust", "scsc", "rcivr", "prox-boost"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 1.0])
def test_ctrl_c_at_any_moment_returns_a_finite_answer(method, share):
    # The first calls fall into the pilot, the next into a reference batch, the last into steps.
    result = interrupted_at(1 + round(share * (calls_of(method) - 1)), method)
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.w).all()
    assert result.samples <= 4000


def test_ctrl_c_inside_a_reference_batch_returns_the_start():
    solver = stoic.ROSC(
        step_size=0.01,
        batch_size=1,
        n_steps=10,
        radius=1.0,
        reference_size=20,
        reference_mean=stoic.SmallestBall(0.5),
        levels=stoic.Levels(1.0, 1.0, 1.0, 1.0),
    )
    w0 = np.arange(10.0)
    result = interrupted_at(2, solver, w0=w0)
    assert result.status is Status.INTERRUPTED
    np.testing.assert_array_equal(result.w, w0)


def test_what_was_drawn_before_ctrl_c_is_counted():
    assert interrupted_at(7, SLOW).samples == 16


# --- other ways to end ---


def stop(*_):
    raise StopIteration


def test_a_callback_stops_a_solve():
    result = solve(callback=after(3, stop))
    assert result.status is Status.STOPPED
    assert len(result.history) == 3
    assert result.samples < 4000


def test_a_callback_sees_every_record():
    seen = []
    result = solve(callback=seen.append)
    assert seen == result.history


def test_a_stop_at_the_very_end_does_not_hide_that_the_plan_was_finished():
    result = solve(stoic.MSCG(step_size=0.01, batch_size=1, n_steps=5), evaluate_every=10**6, callback=stop)
    assert result.status is Status.FINISHED


def test_other_errors_of_a_callback_are_passed_on():
    def broken(record):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solve(callback=broken)


def test_a_planned_number_of_steps_is_taken():
    result = solve(stoic.MSCG(step_size=0.01, batch_size=1, n_steps=17))
    assert (result.status, result.n_steps, result.samples) == (Status.FINISHED, 17, 17 * 8)


def test_a_budget_that_ends_between_steps_is_not_touched_again():
    result = solve(budget=8 * 17 + 3)
    assert (result.status, result.n_steps, result.samples) == (Status.BUDGET_SPENT, 17, 17 * 8)


def test_the_clock_ends_a_solve():
    result = solve(max_seconds=1e-9)
    assert (result.status, result.n_steps) == (Status.TIME_LIMIT, 0)
    np.testing.assert_array_equal(result.w, PROBLEM.start(None))


def test_an_answer_that_stays_where_it_is_has_converged():
    result = solve(tol=1e-2, evaluate_every=100)
    assert result.status is Status.CONVERGED
    assert result.samples < 4000


def test_convergence_takes_three_quiet_records_in_a_row():
    answers = []
    result = solve(tol=1e-2, evaluate_every=100, observers={"w": lambda w: answers.append(w) or 0.0})
    points = [PROBLEM.start(None), *answers]
    moved = [np.linalg.norm(w - before) / max(1.0, np.linalg.norm(w)) for before, w in pairwise(points)]
    assert max(moved[-3:]) < 1e-2
    assert all(max(moved[i : i + 3]) >= 1e-2 for i in range(len(moved) - 3))
    assert result.status is Status.CONVERGED


def test_a_start_at_the_optimum_converges_at_once():
    X = np.random.default_rng(0).standard_normal((30, 2))
    problem = stoic.Problem(stoic.GroupLoss(X, np.zeros(30)), stoic.Linear())
    result = stoic.minimize(problem, SLOW, budget=10_000, tol=1e-9, evaluate_every=10, seed=0)
    assert result.status is Status.CONVERGED
    assert len(result.history) == 3


def test_a_tolerance_waits_for_the_first_answer_of_prox_boost():
    # Its answer stays at the center of a stage until three trials are done: that is not convergence.
    result = solve("prox-boost", tol=1e-6)
    assert result.status is not Status.CONVERGED or np.linalg.norm(result.w) > 0.0


# --- divergence ---


def test_a_diverged_solve_keeps_the_last_finite_answer():
    state = WILD.init(PROBLEM, PROBLEM.start(None), rng := np.random.default_rng(0))
    finite = state
    with np.errstate(all="ignore"):
        while np.isfinite(state.average).all():
            finite = state
            state, _ = WILD.step(PROBLEM, state, rng)
    result = solve(WILD)
    assert result.status is Status.DIVERGED
    np.testing.assert_array_equal(result.w, finite.average)
    assert result.n_steps == finite.t


HUGE = stoic.PowerLaw(1e30)


@pytest.mark.parametrize(
    "method",
    [
        stoic.MSCG(step_size=1e30),
        stoic.SCGD(steps=HUGE),
        stoic.SCSC(steps=HUGE),
        stoic.ASCPG(steps=HUGE),
        stoic.ALEXR(step_size=1e30),
        stoic.CIVR(step_size=1e30),
        stoic.RMSCG(step_size=1e30),
        stoic.RCIVR(step_size=1e30),
        stoic.ProxBoost(stoic.MSCG(step_size=1e30), mu=0.1),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_huge_step_size_diverges_with_a_finite_answer_and_a_remedy(method):
    problem = stoic.Problem(PROBLEM.inner, PROBLEM.outer)
    result = stoic.minimize(problem, method, budget=8000, seed=0)
    assert result.status is Status.DIVERGED
    assert np.isfinite(result.w).all()
    assert "smaller step size" in result.message
    assert not result.success


def test_a_failed_solve_raises_when_asked_to():
    with pytest.raises(stoic.SolveFailed, match=r"infinite or NaN.*smaller step size"):
        solve(WILD).raise_for_status()


def test_a_good_solve_returns_itself_when_asked_to_raise():
    result = solve()
    assert result.raise_for_status() is result


@pytest.mark.parametrize("status", Status)
def test_a_status_is_a_success_only_if_the_answer_is_what_was_promised(status):
    good = {Status.FINISHED, Status.BUDGET_SPENT, Status.CONVERGED}
    assert status.is_success == (status in good)
    assert status.value.endswith(".")


def test_the_message_counts_steps_and_samples():
    result = solve(budget=99)
    assert result.message.startswith(Status.BUDGET_SPENT.value)
    assert "12 steps, 96 of 99 samples" in result.message


# --- naming a method ---


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("rosk", "rosc"),
        ("RROSC", "rrosc"),
        ("asc_pg", "asc-pg"),
        ("proxboost", "prox-boost"),
        ("clipped sgd", "clipped-sgd"),
    ],
)
def test_a_misspelt_method_is_guessed(given, meant):
    with pytest.raises(stoic.InvalidParameter, match=f"method='{given}' is unknown; did you mean '{meant}'"):
        solve(given)


def test_a_method_that_resembles_none_is_answered_with_the_list():
    with pytest.raises(
        stoic.InvalidParameter, match="'qqq' is unknown; Methods: alexr, asc-pg, auto, civr, clipped-sgd"
    ):
        solve("qqq")


@pytest.mark.parametrize("method", [None, 3, {"rrosc"}, stoic.MSCG, stoic.RROSC, len])
def test_a_method_of_the_wrong_type_is_refused(method):
    with pytest.raises(stoic.InvalidParameter, match="neither a method string nor"):
        solve(method)


@pytest.mark.parametrize("method", stoic.METHODS)
def test_a_method_string_is_its_settings_untouched(method):
    problem = stoic.Problem(PROBLEM.inner, stoic.Linear(), stoic.L2(0.1))
    results = [stoic.minimize(problem, m, budget=600, seed=0) for m in (method, stoic.METHODS[method]())]
    np.testing.assert_array_equal(results[0].w, results[1].w)
    assert results[0].solver == results[1].solver


# --- watching ---


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.array(2.5), 2, True, math.inf, math.nan])
def test_observers_may_return_any_number(number):
    result = solve(budget=100, observers={"it": lambda w: number})
    assert type(result.history[0]["it"]) is float
    assert result.history[0]["it"] == pytest.approx(float(number), nan_ok=True)


def test_observers_cannot_write_to_the_answer():
    def vandal(w):
        w[:] = 0.0
        return 0.0

    with pytest.raises(ValueError, match="read-only"):
        solve(observers={"vandal": vandal})


def test_observers_may_keep_what_they_saw():
    seen = []
    result = solve(budget=400, observers={"w": lambda w: seen.append(w) or w[0]})
    assert [w[0] for w in seen] == [record["w"] for record in result.history]
    assert len({w.tobytes() for w in seen}) == len(seen)


def test_an_observer_may_not_take_the_name_of_a_count():
    with pytest.raises(stoic.InvalidParameter, match="samples"):
        solve(observers={"samples": lambda w: -1.0})


def test_observers_are_outside_the_clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def slow(w):
        now[0] += 1000.0
        return 0.0

    assert solve(budget=400, observers={"slow": slow}).seconds == 0.0


def test_records_come_at_the_first_step_past_a_multiple_of_evaluate_every():
    result = solve(budget=99, evaluate_every=20)
    assert [record["samples"] for record in result.history] == [24, 40, 64, 80, 96]


def test_by_default_there_are_about_fifty_records():
    assert 48 <= len(solve(budget=8000).history) <= 51


def test_a_progress_bar_is_silent_where_there_is_no_terminal(capfd):
    solve(verbose=True)
    assert capfd.readouterr() == ("", "")


def test_a_progress_bar_is_drawn_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    solve(verbose=True)
    assert "stage 1" in screen.getvalue()


def test_nothing_is_printed_by_default(capfd):
    solve("rrosc")
    assert capfd.readouterr() == ("", "")


def test_settings_chosen_by_the_pilot_are_logged(caplog):
    with caplog.at_level("INFO", logger="stoic"):
        solve("mscg")
    assert "MSCG(step_size=" in caplog.text


# --- the seed ---


def test_a_generator_as_a_seed_is_used_and_advanced():
    rng = np.random.default_rng(0)
    first, second = solve(seed=rng).w, solve(seed=rng).w
    np.testing.assert_array_equal(first, solve(seed=0).w)
    assert not np.array_equal(first, second)


def test_without_a_seed_two_solves_differ():
    assert not np.array_equal(solve(seed=None).w, solve(seed=None).w)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    solve("rrosc", seed=None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# --- starts and cut stages ---


@pytest.mark.parametrize(
    ("regularizer", "expected"),
    [(stoic.Zero(), np.zeros(10)), (stoic.Box(1.0, 2.0), np.ones(10)), (stoic.Simplex(), np.full(10, 0.1))],
)
def test_a_solve_starts_at_the_point_of_the_domain_nearest_to_zero(regularizer, expected):
    problem = stoic.Problem(PROBLEM.inner, PROBLEM.outer, regularizer)
    w = stoic.minimize(problem, SLOW, budget=100, max_seconds=1e-9).w
    np.testing.assert_allclose(w, expected, rtol=1e-12)


def test_a_start_that_is_given_is_where_the_solve_begins():
    w0 = np.arange(10.0)
    np.testing.assert_array_equal(solve(w0=w0, max_seconds=1e-9).w, w0)


def test_a_start_may_be_a_list_of_whole_numbers():
    assert solve(w0=list(range(10)), max_seconds=1e-9).w.dtype == np.float64


def test_a_stage_cut_short_returns_its_partial_average():
    stages = [stoic.MSCG(step_size=0.01, batch_size=1, n_steps=20) for _ in range(3)]
    result = solve(stoic.Restarted(stages), budget=8 * 27 + 3)  # 7 steps into the second stage
    rng, w = np.random.default_rng(0), PROBLEM.start(None)
    for n_steps in (20, 7):
        state = stages[0].init(PROBLEM, w, rng)
        for _ in range(n_steps):
            state, _ = stages[0].step(PROBLEM, state, rng)
        w = state.average
    np.testing.assert_array_equal(result.w, w)
    assert (result.status, result.n_steps, result.history[-1]["stage"]) == (Status.PLAN_CUT, 27, 1)


def test_a_stage_whose_reference_cannot_be_paid_for_leaves_the_answer_of_the_stage_before():
    first = stoic.MSCG(step_size=0.01, batch_size=1, n_steps=20)
    second = stoic.CIVR(step_size=0.01, batch_size=1, n_steps=5, anchor_size=1000)
    result = solve(stoic.Restarted([first, second]), budget=1000)
    np.testing.assert_array_equal(result.w, solve(first).w)
    assert (result.status, result.samples) == (Status.PLAN_CUT, 160)
