"""Which engine runs: what was asked for, or for "auto" what is possible and pays."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import stoic
from engines.runs import make_inner, make_problem, make_solver, solve
from spies import Spy
from stoic.engines.choice import choose_engine
from stoic.engines.compiled.engine import CompiledEngine
from stoic.engines.plain import PlainEngine
from stoic.engines.support import missing
from stoic.inners.metered import Metered

LARGE = 60_000


class MyLoss(stoic.Huber):
    """A loss of the user's own, though it has one of ours as its base."""

    def value(self, prediction, target):
        return 0.5 * super().value(prediction, target)


class MySolver(stoic.MSCG):
    """A solver of the user's own."""


class MyMean(stoic.SmallestBall):
    """A robust mean of the user's own."""


class Slanted:
    """An outer function of the user's own."""

    smoothness = 0.0

    def value(self, u):
        return float(u.sum())

    def gradient(self, u):
        return np.ones(len(u))


def mscg(**changes):
    return stoic.MSCG(**{"step_size": 0.01, "batch_size": 2, "n_steps": 50, **changes})


def with_loss(loss):
    inner = make_inner()
    return stoic.Problem(stoic.GroupLoss(inner.X, inner.y, loss=loss), stoic.Linear())


UNSUPPORTED = {
    "inner": (stoic.Problem(Spy(make_inner()), stoic.Linear()), mscg(), "inner part"),
    "moments": (stoic.Problem(stoic.Moments(np.eye(5, 3)), stoic.MeanVariance(1.0)), mscg(), "inner part"),
    "loss": (with_loss(MyLoss(1.0)), mscg(), "the loss MyLoss"),
    "outer": (stoic.Problem(make_inner(), Slanted()), mscg(), "the outer function"),
    "regularizer": (
        stoic.Problem(make_inner(), stoic.Linear(), stoic.Box(-1.0, 1.0)),
        mscg(),
        "the regularizer Box",
    ),
    "solver": (make_problem(), MySolver(0.01, 2, 50), "the solver MySolver"),
    "stage": (make_problem(), stoic.Restarted([mscg(), MySolver(0.01, 2, 50)]), "the solver MySolver"),
    "mean": (make_problem(), mscg(mean=MyMean(0.8), batch_size=5), "the mean MyMean"),
}
unsupported = pytest.mark.parametrize(("problem", "solver", "name"), UNSUPPORTED.values(), ids=UNSUPPORTED)


def lines(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "stoic" and record.levelno == logging.INFO and "engine" in record.getMessage()
    ]


def after(code):
    """Return whether a fresh interpreter has loaded numba after `code`."""
    script = f"""
import sys
import numpy as np, stoic
problem = stoic.Problem(stoic.GroupLoss(np.eye(4, 2), np.ones(4)), stoic.Linear())
solver = stoic.MSCG(step_size=0.1, batch_size=1, n_steps=20)
{code}
print("numba" in sys.modules)
"""
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return done.stdout.split()[-1] == "True"


@unsupported
def test_compiled_names_what_the_kernels_lack(problem, solver, name):
    with pytest.raises(stoic.IncompatibleParts, match=name):
        stoic.minimize(problem, solver, budget=LARGE, seed=0, engine="compiled")


@unsupported
def test_compiled_draws_nothing_where_it_cannot_run(problem, solver, name):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(stoic.IncompatibleParts):
        stoic.minimize(problem, solver, budget=LARGE, seed=rng, engine="compiled")
    assert rng.bit_generator.state == before


def test_compiled_runs_no_pilot_on_a_problem_that_it_cannot_run():
    rng = np.random.default_rng(0)
    before, spy = rng.bit_generator.state, Spy(make_inner())
    with pytest.raises(stoic.IncompatibleParts, match="inner part"):
        stoic.minimize(stoic.Problem(spy, stoic.Linear()), "mscg", budget=LARGE, seed=rng, engine="compiled")
    assert spy.calls == 0
    assert rng.bit_generator.state == before


def test_the_message_says_what_to_do():
    with pytest.raises(stoic.IncompatibleParts, match="use engine='auto' or 'plain'"):
        stoic.minimize(*UNSUPPORTED["loss"][:2], budget=LARGE, engine="compiled")


def test_everything_that_is_missing_of_a_problem_is_named():
    inner = with_loss(MyLoss(1.0)).inner
    problem = stoic.Problem(inner, Slanted(), stoic.Box(-1.0, 1.0))
    lacking = " ".join(missing(mscg(), problem, inner))
    assert all(word in lacking for word in ("MyLoss", "Slanted", "Box"))


@unsupported
def test_auto_falls_back_and_says_why_in_one_line(problem, solver, name, caplog):
    caplog.set_level(logging.INFO, logger="stoic")
    auto = stoic.minimize(problem, solver, budget=LARGE, seed=0)
    (line,) = lines(caplog)
    assert name in line
    plain = stoic.minimize(problem, solver, budget=LARGE, seed=0, engine="plain")
    np.testing.assert_array_equal(auto.w, plain.w)
    assert len(lines(caplog)) == 1


def test_auto_says_nothing_where_it_compiles(caplog):
    caplog.set_level(logging.INFO, logger="stoic")
    problem = make_problem()
    auto = solve(problem, make_solver("mscg", problem, 3), "auto")
    assert lines(caplog) == []
    np.testing.assert_array_equal(auto.w, solve(problem, make_solver("mscg", problem, 3), "compiled").w)


@pytest.mark.slow
def test_auto_with_a_small_budget_stays_plain_and_does_not_load_numba():
    assert not after("stoic.minimize(problem, solver, budget=40_000, seed=0)")


def test_plain_does_not_load_numba():
    assert not after("stoic.minimize(problem, solver, budget=10**9, seed=0, engine='plain')")


@pytest.mark.slow
def test_auto_with_a_large_budget_compiles():
    assert after("stoic.minimize(problem, solver, budget=10**6, seed=0)")


@pytest.mark.parametrize(
    ("budget", "columns", "kind"),
    [
        (49_999, 3, PlainEngine),
        (50_000, 3, CompiledEngine),
        (9_999, 10_000, PlainEngine),
        (10_000, 10_000, CompiledEngine),
    ],
)
def test_auto_compiles_where_there_is_enough_to_do(budget, columns, kind):
    problem = stoic.Problem(stoic.GroupLoss(np.ones((4, columns)), np.ones(4)), stoic.Linear())
    solver = stoic.MSCG(step_size=0.1, batch_size=1, n_steps=10)
    assert type(choose_engine("auto", solver, problem, Metered(problem.inner, budget))) is kind


def test_a_small_budget_gives_the_bits_of_the_plain_engine():
    problem = make_problem()
    solver = make_solver("mscg", problem, 3)
    auto, plain = (solve(problem, solver, engine, budget=5000) for engine in ("auto", "plain"))
    np.testing.assert_array_equal(auto.w, plain.w)


@pytest.mark.parametrize("engine", ["fast", "", "PLAIN", None, 1, ["plain"]])
def test_an_unknown_engine_is_named(engine):
    with pytest.raises(stoic.InvalidParameter, match="engine="):
        stoic.minimize(make_problem(), mscg(), budget=1000, engine=engine)
