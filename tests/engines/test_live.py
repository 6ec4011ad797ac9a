"""States that stay with their kernels from chunk to chunk: when they are read, interrupted, and handed on."""

import math

import numpy as np
import pytest

import stoic
from engines.runs import (
    MAKERS,
    SOLVERS,
    Run,
    assert_close,
    assert_same_run,
    boosted,
    make_problem,
    make_solver,
    solve,
)
from stoic.engines.compiled import engine as compiled, vectors as engine_forms
from stoic.engines.compiled.adapters.base import Live
from stoic.engines.engine import Limits
from stoic.inners.metered import Metered

every_solver = pytest.mark.parametrize("solver", SOLVERS)
both_forms = pytest.mark.parametrize("regularizer", ["l2", "l1"])


def make_run(solver, regularizer="l2", *, n_steps=200, m=3):
    problem = make_problem("csr-int32", "huber", regularizer=regularizer, intercept=True)
    return Run(problem, make_solver(solver, problem, m, n_steps))


def go(run, steps):
    """Let the compiled engine take some steps; return the chunk as it is, not settled."""
    limits = Limits(10**12, steps, math.inf)
    return run.engine.run_chunk(run.solver, run.problem, run.meter, run.chunk, run.rng, limits)


# --- Ctrl-C ---


def interrupt_once(monkeypatch, after):
    """Raise a KeyboardInterrupt when a kernel has returned for the `after`-th time."""
    make, calls = compiled.make_adapter, []

    def interrupting(solver, problem):
        runner = make(solver, problem)
        run = runner.run

        def run_and_raise(t, rows, counts):
            run(t, rows, counts)
            calls.append(t)
            if len(calls) == after:
                raise KeyboardInterrupt

        runner.run = run_and_raise
        return runner

    monkeypatch.setattr(compiled, "make_adapter", interrupting)


def charge_once(monkeypatch, after):
    """Raise a KeyboardInterrupt when the meter is to be charged for a kernel for the `after`-th time."""
    charge, calls = Metered.charge, []

    def charge_or_raise(meter, samples, evaluations):
        calls.extend([samples] if samples > 0 else [])  # a reference is drawn before it is charged
        if len(calls) == after and samples > 0:
            raise KeyboardInterrupt
        charge(meter, samples, evaluations)

    monkeypatch.setattr(Metered, "charge", charge_or_raise)


def assert_interrupted_like_the_plain_engine(run, twin):
    """Compare a run that was interrupted with the plain engine after as many steps."""
    assert run.chunk.ending is stoic.Status.INTERRUPTED
    assert run.chunk.n_steps > 0
    twin.plain(run.chunk.n_steps)
    assert twin.chunk.n_steps == run.chunk.n_steps
    assert run.chunk[1:5] == twin.chunk[1:5]
    assert (run.meter.samples, run.meter.evaluations) == (twin.meter.samples, twin.meter.evaluations)
    assert type(run.state) is type(twin.state)
    assert run.state.t == twin.state.t
    for name in ("w", "average", "y", "z"):
        if getattr(twin.state, name, None) is not None:
            assert_close(getattr(run.state, name), getattr(twin.state, name))
    assert_close(run.solver.output(run.chunk.state), twin.solver.output(twin.chunk.state))


@every_solver
@both_forms
@pytest.mark.parametrize("raise_once", [interrupt_once, charge_once])
@pytest.mark.parametrize("after", [1, 2, 5])
@pytest.mark.sampled(8)
def test_ctrl_c_in_a_kernel_keeps_the_steps_that_it_has_taken(monkeypatch, solver, regularizer, raise_once, after):
    run, twin = make_run(solver, regularizer), make_run(solver, regularizer)
    raise_once(monkeypatch, after)
    while run.chunk.ending is None:
        run.compiled(30)
    monkeypatch.undo()
    assert_interrupted_like_the_plain_engine(run, twin)


@every_solver
@pytest.mark.parametrize("raise_once", [interrupt_once, charge_once])
def test_ctrl_c_in_the_first_kernel_of_a_later_stage(monkeypatch, solver, raise_once):
    problem = make_problem(loss="huber", regularizer="l2")
    settings = stoic.Restarted([make_solver(solver, problem, m, 40) for m in (3, 2)])
    if solver.startswith("restarted-"):
        settings = boosted(make_solver(solver, problem, 3, 40))
    run, twin = Run(problem, settings), Run(problem, settings)
    raise_once(monkeypatch, 2)
    while run.chunk.ending is None:
        run.compiled(1000)
    monkeypatch.undo()
    assert_interrupted_like_the_plain_engine(run, twin)


def test_a_solve_that_is_interrupted_in_a_kernel_says_so(monkeypatch):
    problem = make_problem(loss="huber", regularizer="l2")
    settings = make_solver("rosc", problem, 3)
    interrupt_once(monkeypatch, 3)
    result = solve(problem, settings, "compiled", evaluate_every=300, observers={})
    monkeypatch.undo()
    assert result.status is stoic.Status.INTERRUPTED
    assert 0 < result.n_steps < 300
    twin = solve(problem, settings, "plain", observers={}, budget=result.samples)
    assert (twin.n_steps, twin.samples, twin.evaluations) == (result.n_steps, result.samples, result.evaluations)
    assert (twin.truncated_y, twin.truncated_z) == (result.truncated_y, result.truncated_z)
    assert_close(result.w, twin.w)


# --- steps that are too large for kernels ---


def wild_problem(label, regularizer, outer=None):
    """Return data of which one row in 60 has a target that makes a step too large."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (60, 4))
    y = X @ np.ones(4) + 0.1 * rng.standard_normal(60)
    y[0] = label
    return stoic.Problem(stoic.GroupLoss(X, y), outer or stoic.Linear(), regularizer)


def wild_solver(name, regularizer):
    if name == "rosc":  # a ball brings w back
        levels = stoic.Levels(1.0, 1.0, math.inf, math.inf)
        return wild_problem(1e145, regularizer), stoic.ROSC(
            step_size=0.05,
            batch_size=1,
            n_steps=600,
            radius=2.0,
            reference_size=20,
            reference_mean=stoic.SmallestBall(0.6),
            levels=levels,
        )
    if name == "mscg":  # a ridge brings w back
        strong = stoic.ElasticNet(1e9, 1e-9) if isinstance(regularizer, stoic.L1) else stoic.L2(1e9)
        return wild_problem(1e142, strong), stoic.MSCG(0.05, 1, 600)
    robust = stoic.MSCG(0.02, 7, 200, stoic.SmallestBall(0.7))  # the mean passes over it
    return wild_problem(1e145, regularizer), robust


@pytest.mark.parametrize("solver", ["rosc", "mscg", "robust-mscg"])
@pytest.mark.parametrize("regularizer", [stoic.L2(0.1), stoic.L1(0.05)], ids=["l2", "l1"])
@pytest.mark.parametrize("steps", [1, 7, 1000])
@pytest.mark.sampled(2)
def test_a_step_that_is_too_large_is_the_plain_engines_and_the_next_ones_are_not(
    monkeypatch, solver, regularizer, steps
):
    problem, settings = wild_solver(solver, regularizer)
    run, twin = Run(problem, settings), Run(problem, settings)
    handed, plain = [], compiled.run_chunk

    def counted(solver, problem, meter, chunk, rng, limits):
        handed.append(chunk.n_steps)
        return plain(solver, problem, meter, chunk, rng, limits)

    monkeypatch.setattr(compiled, "run_chunk", counted)
    while run.chunk.ending is None:
        run.compiled(steps)
        twin.plain(steps)
        assert_same_run(run, twin)
    assert run.chunk.ending is stoic.Status.FINISHED
    assert 1 <= len(handed) < 0.5 * settings.n_steps
    assert handed[0] < settings.n_steps - 1  # kernels went on after it


@pytest.mark.parametrize("regularizer", [stoic.L2(0.1), stoic.L1(0.05)], ids=["l2", "l1"])
def test_ctrl_c_while_the_state_is_read_for_such_a_step(monkeypatch, regularizer):
    problem, settings = wild_solver("rosc", regularizer)
    run, twin = Run(problem, settings), Run(problem, settings)

    def interrupt(X, w, out):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine_forms, "total", interrupt)
    run.chunk = go(run, 1000)
    monkeypatch.undo()
    run.chunk = run.engine.settled(run.solver, run.chunk)
    assert_interrupted_like_the_plain_engine(run, twin)


# --- live and settled ---


@every_solver
@both_forms
@pytest.mark.sampled(2)
def test_settling_twice_gives_the_same_state(solver, regularizer):
    run = make_run(solver, regularizer)
    run.chunk = go(run, 30)
    live = compiled.innermost(run.solver, run.problem, run.chunk.state).state
    assert isinstance(live, Live)
    first, second = (run.engine.settled(run.solver, run.chunk) for _ in range(2))
    states = [compiled.innermost(run.solver, run.problem, chunk.state).state for chunk in (first, second)]
    assert states[0] is states[1]
    assert states[0].t == live.t
    assert run.engine.settled(run.solver, first) is first


@every_solver
@both_forms
@pytest.mark.sampled(2)
def test_a_chunk_that_goes_on_from_its_settled_state_does_not_start_anew(solver, regularizer):
    one, other = make_run(solver, regularizer), make_run(solver, regularizer)
    other.compiled(30)
    runner = other.engine._adapter
    other.compiled(20)
    assert other.engine._adapter is runner
    one.chunk = go(one, 50)
    one.compiled(0)
    for name in ("w", "average", "y", "z"):
        if getattr(one.state, name, None) is not None:
            assert getattr(one.state, name).tobytes() == getattr(other.state, name).tobytes()


@every_solver
@both_forms
@pytest.mark.sampled(2)
def test_an_old_state_handed_in_again_is_where_the_run_goes_on(solver, regularizer):
    run, twin = make_run(solver, regularizer), make_run(solver, regularizer)
    old, generator = run.compiled(20).chunk, run.rng.bit_generator.state
    counts = run.meter.samples, run.meter.evaluations
    run.compiled(17)
    run.chunk, run.rng.bit_generator.state = old, generator
    run.meter.samples, run.meter.evaluations = counts
    assert_same_run(run.compiled(13), twin.plain(33))


@pytest.mark.parametrize("solver", MAKERS)
def test_a_state_of_another_run_is_taken_as_it_is(solver):
    run, other = make_run(solver), make_run(solver)
    run.rng, other.rng = np.random.default_rng(1), np.random.default_rng(2)
    run.compiled(20), other.compiled(31)
    other.chunk, other.rng = run.chunk, np.random.default_rng(5)
    run.rng = np.random.default_rng(5)
    other.compiled(9), run.plain(9)
    assert_close(other.state.w, run.state.w)


# --- answers are read only where someone looks ---


@pytest.fixture
def reads(monkeypatch):
    """Return a list that grows by one whenever an average is read."""
    total, found = engine_forms.total, []

    def counted(X, w, out):
        found.append(X)
        total(X, w, out)

    monkeypatch.setattr(engine_forms, "total", counted)
    return found


@every_solver
@both_forms
@pytest.mark.sampled(3)
def test_without_observers_the_average_is_read_once_a_stage_and_twice_on_the_way(reads, solver, regularizer):
    """On the way, after a quarter and half of it, for a look back from the end."""
    problem = make_problem("csr-int32", "huber", regularizer=regularizer, intercept=True)
    settings = make_solver(solver, problem, 3, 200)
    options = {"budget": 10**6, "seed": 4, "engine": "compiled", "evaluate_every": 100, "chunk_size": 10}
    alone = stoic.minimize(problem, settings, **options)
    n_stages = len(getattr(settings, "stages", [None]))
    if solver.endswith("sox-tracked"):  # it reads one more at the end of each block of its late average
        return
    assert len(reads) == (0 if "civr" in solver else n_stages + 2)
    assert len(alone.history) >= 15
    reads.clear()
    for watched in ({"observers": {"first": lambda w: w[0]}}, {"tol": 1e-300}):
        result = stoic.minimize(problem, settings, **options, **watched)
        assert result.w.tobytes() == alone.w.tobytes()
        assert len(result.history) == len(alone.history)
        assert "civr" in solver or len(reads) >= len(result.history)
        reads.clear()
