"""Where a solve starts: at the pilot's own optimum, if single draws leave no doubt that it is better."""

import numpy as np
import pytest

import stoic
from stoic.pilot import draw_pilot, find_start, pilot_size, probes
from stoic.pilot.fixed_sample import draw_sample

N, D = 4000, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
MODEL = np.arange(1.0, D + 1.0)
Y = X @ MODEL + RNG.standard_normal(N)


def problem_of(y=Y, groups=None, loss="squared"):
    inner = stoic.GroupLoss(X, y, np.arange(N) % 3 if groups is None else groups, loss=loss)
    return stoic.Problem(inner, stoic.LogSumExp(2.0))


def found(problem, w0, seed=0, size=60):
    return find_start(draw_pilot(problem, np.random.default_rng(seed), size), w0)


@pytest.mark.parametrize("seed", range(5))
def test_a_far_start_is_left(seed):
    start = found(problem_of(loss=stoic.Huber(1.0)), np.full(D, 500.0), seed).start
    assert np.linalg.norm(start - MODEL) < 1.0


@pytest.mark.parametrize("seed", range(5))
def test_a_start_at_the_optimum_is_kept(seed):
    problem = problem_of()
    optimum = stoic.minimize(problem, "newton", budget=10**8).w
    assert found(problem, optimum, seed).start is optimum


@pytest.mark.parametrize("seed", range(5))
def test_wild_labels_do_not_move_the_start_far(seed):
    y = Y.copy()
    y[::300] = 1e6  # most pilots have one of these
    start = found(problem_of(y, loss="huber"), np.zeros(D), seed).start
    assert np.linalg.norm(start - MODEL) < np.linalg.norm(MODEL)


@pytest.mark.parametrize("seed", range(4))
def test_few_draws_of_many_groups_find_a_start(seed):
    problem = problem_of(groups=np.arange(N) % 200)
    start = found(problem, np.zeros(D), seed, size=12).start
    assert problem.objective(start) < 0.1 * problem.objective(np.zeros(D))


@pytest.mark.parametrize("n_draws", [1, 60, 250, 1000, 5000, 10**7])
def test_a_pilot_takes_a_small_share_of_the_draws(n_draws):
    size = pilot_size(n_draws)
    assert 3 <= size <= 200
    assert size <= max(3, n_draws // 20)
    assert n_draws < 500 or size >= 24


def test_a_solve_that_starts_far_away_ends_as_one_that_starts_near():
    problem, far = problem_of(loss=stoic.Huber(1.0)), np.full(D, 1000.0)
    best = problem.objective(stoic.minimize(problem, "newton", budget=10**8).w)
    gaps = [
        problem.objective(stoic.minimize(problem, "rrosc-tracked", 12_000, w0=w0, seed=0).w) - best
        for w0 in (np.zeros(D), far)
    ]
    assert max(gaps) < 0.05


def test_lanczos_finds_the_extreme_curvatures():
    scales = np.array([1e-2, 0.1, 1.0, 3.0, 10.0])
    problem = stoic.Problem(stoic.GroupLoss(X * scales, Y), stoic.Linear())
    sample = draw_sample(problem, 500, np.random.default_rng(0))
    rows = (X * scales)[sample.rows.rows[0]]
    expected = np.linalg.eigvalsh(2.0 * rows.T @ rows / 500)
    seen = probes.spectrum(sample, np.zeros(D), 1e-3, np.random.default_rng(1))
    assert seen.largest == pytest.approx(expected[-1], rel=1e-6)
    assert seen.smallest == pytest.approx(expected[0], rel=1e-2)
