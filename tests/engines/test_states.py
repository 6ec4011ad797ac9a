"""Both engines go through the same states, step by step, and hand them to each other."""

import itertools

import numpy as np
import pytest

import stoic
from engines.runs import MAKERS, SOLVERS, Run, assert_close, assert_same_run, make_problem, make_solver, solve
from stoic.solvers import rosc

every_solver = pytest.mark.parametrize("solver", SOLVERS)
PARTS = {
    "dense": ("dense", "squared", "logsumexp", "l2"),
    "csr": ("csr-int32", "huber", "cvar", "zero"),
    "dense-l1": ("dense", "huber", "cvar", "l1"),
    "csr-l1": ("csr-int32", "squared", "logsumexp", "l1"),
    "dense-elastic-net": ("dense", "squared", "logsumexp", "elastic-net"),
    "csr-elastic-net": ("csr-int32", "huber", "cvar", "elastic-net"),
}


def two_runs(solver, parts, m=3, **options):
    problem = make_problem(*PARTS[parts], **options)
    settings = make_solver(solver, problem, m, n_steps=200)
    return Run(problem, settings), Run(problem, settings)


@every_solver
@pytest.mark.parametrize(
    ("parts", "intercept"),
    [
        ("dense", False),
        ("dense", True),
        ("csr", False),
        ("csr", True),
        ("dense-l1", False),
        ("csr-l1", True),
        ("dense-elastic-net", True),
        ("csr-elastic-net", False),
    ],
)
@pytest.mark.sampled(10)
def test_every_step_leads_to_the_same_state(solver, parts, intercept):
    compiled, plain = two_runs(solver, parts, intercept=intercept)
    for _ in range(200):
        assert_same_run(compiled.compiled(), plain.plain())
    assert compiled.compiled().chunk.ending is plain.plain().chunk.ending is stoic.Status.FINISHED


@every_solver
@pytest.mark.parametrize("steps", [7, 200])
@pytest.mark.parametrize("parts", ["dense", "dense-l1"])
@pytest.mark.sampled(5)
def test_chunks_of_many_steps_lead_to_the_same_states(solver, parts, steps):
    compiled, plain = two_runs(solver, parts, m=1, intercept=True)
    for _ in range(-(-200 // steps)):
        assert_same_run(compiled.compiled(steps), plain.plain(steps))


@every_solver
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.sampled(6)
def test_a_run_may_change_its_engine_half_way(solver, parts):
    mixed, plain = two_runs(solver, parts, intercept=True)
    mixed.plain(65).compiled(65).plain(65)
    assert_same_run(mixed, plain.plain(195))


@every_solver
@pytest.mark.parametrize("parts", ["csr", "csr-elastic-net"])
@pytest.mark.sampled(3)
def test_a_run_may_change_its_engine_at_every_step(solver, parts):
    mixed, plain = two_runs(solver, parts)
    for take, steps in zip(itertools.cycle([mixed.plain, mixed.compiled]), [1, 2, 3] * 20, strict=False):
        take(steps)
    assert_same_run(mixed, plain.plain(120))


@every_solver
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.sampled(6)
def test_the_point_before_is_handed_on(solver, parts):
    compiled, plain = two_runs(solver, parts, intercept=True)
    compiled.compiled(50), plain.plain(50)
    if hasattr(plain.state, "previous"):
        assert_close(compiled.state.previous, plain.state.previous)


@every_solver
@pytest.mark.parametrize("parts", ["dense", "csr-elastic-net"])
def test_a_chunk_leaves_the_state_it_started_from_as_it_was(solver, parts):
    run, _ = two_runs(solver, parts)
    state = run.compiled(20).state
    kept = [part.copy() for part in state if isinstance(part, np.ndarray)]
    run.compiled(20)
    for part, before in zip([part for part in state if isinstance(part, np.ndarray)], kept, strict=True):
        np.testing.assert_array_equal(part, before)


# --- conditions that the runs are to meet ---


@pytest.mark.parametrize("solver", ["rosc", "restarted-rosc-calibrated"])
@pytest.mark.parametrize("regularizer", ["zero", "l2"])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_that_are_long_beside_the_groups_let_the_kernel_hold_the_reference(solver, regularizer, intercept):
    problem = make_problem("wide", "huber", "logsumexp", regularizer, intercept=intercept)
    settings = make_solver(solver, problem, 3, n_steps=200)
    compiled, plain = Run(problem, settings), Run(problem, settings)
    for _ in range(200):
        assert_same_run(compiled.compiled(), plain.plain())
        assert not compiled.engine._adapter.form.packs
    assert plain.chunk.truncated_z >= 10


@pytest.mark.parametrize("solver", ["rosc", "rosc-calibrated"])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("m", [1, 3])
def test_between_5_and_50_percent_of_steps_truncate_and_the_ball_is_active_in_many(solver, parts, m):
    compiled, plain = two_runs(solver, parts, m)
    active, radius = 0, plain.solver.radius
    for _ in range(200):
        plain.plain()
        active += np.linalg.norm(plain.state.w - plain.state.reference.w) > (1.0 - 1e-9) * radius
    assert 20 <= active <= 199
    assert 10 <= plain.chunk.truncated_y <= 100
    assert 10 <= plain.chunk.truncated_z <= 100
    assert_same_run(compiled.compiled(200), plain)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_ball_that_is_always_active_renews_the_scale(monkeypatch, intercept):
    problem = make_problem("dense", "squared", "logsumexp", "zero", intercept=intercept)
    settings = stoic.ROSC(**{**vars(make_solver("rosc", problem, 3)), "radius": 0.05})
    compiled, plain = Run(problem, settings), Run(problem, settings)
    shares = []

    def watched(regularizer, v, step, center, radius):
        w = real(regularizer, v, step, center, radius)
        shares.append(np.linalg.norm(w - center) / np.linalg.norm(v - center))
        return w

    real = rosc.prox_in_ball
    monkeypatch.setattr(rosc, "prox_in_ball", watched)
    plain.plain(200)
    assert np.prod(np.minimum(shares, 1.0)) < 1e-8  # the scale a, were it never renewed
    assert np.mean(np.array(shares) < 1.0 - 1e-12) > 0.5
    assert_same_run(compiled.compiled(200), plain)


@pytest.mark.parametrize("solver", [name for name in MAKERS if name not in {"rosc-calibrated", "civr"}])
@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("regularizer", [stoic.L2(1e12), stoic.ElasticNet(1e12, 1e-14)], ids=["l2", "elastic-net"])
def test_the_average_of_one_point_is_that_point(solver, engine, regularizer):
    problem = make_problem()
    strong = stoic.Problem(problem.inner, problem.outer, regularizer)  # w₁ is far smaller than w₀
    settings = stoic.ROSC(**{**vars(make_solver("rosc", strong, 1)), "radius": np.inf})
    run = Run(strong, settings if solver == "rosc" else make_solver(solver, strong, 1), w0=np.ones(6))
    getattr(run, engine)(1)
    np.testing.assert_allclose(run.state.average, run.state.w, rtol=1e-12)


# --- bits ---

WATCHED = {
    "observers": {"observers": {"norm": np.linalg.norm}},
    "records at every step": {"evaluate_every": 1},
    "one record": {"evaluate_every": 10**9},
    "chunks of 1": {"chunk_size": 1},
    "chunks of 7": {"chunk_size": 7},
    "one chunk": {"chunk_size": 10**6},
    "verbose": {"verbose": True},
    "time limit": {"max_seconds": 3600.0},
}


@every_solver
@pytest.mark.parametrize("parts", ["dense", "dense-l1", "csr-elastic-net"])
@pytest.mark.sampled(7)
def test_watching_a_compiled_solve_does_not_change_its_bits(solver, parts):
    problem = make_problem(*PARTS[parts], intercept=True)
    settings = make_solver(solver, problem, 1)
    alone = stoic.minimize(problem, settings, budget=10**6, seed=2, engine="compiled")
    for name, options in WATCHED.items():
        watched = stoic.minimize(problem, settings, budget=10**6, seed=2, engine="compiled", **options)
        assert watched.w.tobytes() == alone.w.tobytes(), name


@every_solver
@pytest.mark.parametrize("regularizer", ["l2", "l1"])
@pytest.mark.sampled(3)
def test_the_same_seed_gives_the_same_bits_again(solver, regularizer):
    problem = make_problem("csr-int32", "huber", "cvar", regularizer, intercept=True)
    settings = make_solver(solver, problem, 3)
    first, second = (solve(problem, settings, "compiled") for _ in range(2))
    assert first.w.tobytes() == second.w.tobytes()
