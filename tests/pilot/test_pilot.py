"""The pilot: constants from a few samples, against problems whose constants are known."""

import dataclasses
import math

import numpy as np
import pytest

import stoic
from catalog import CASES
from stoic.pilot import run_pilot

N, D, NOISE = 4000, 5, 2.0
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
MODEL = np.arange(1.0, D + 1.0)
Y = X @ MODEL + NOISE * RNG.standard_normal(N)


def problem_of(X=X, y=Y, outer=None, regularizer=None, groups=None):
    return stoic.Problem(stoic.GroupLoss(X, y, groups), outer or stoic.Linear(), regularizer or stoic.Zero())


def constants_of(problem, seed=0, **options):
    return dataclasses.asdict(stoic.estimate_constants(problem, seed=seed, **options))


# For x ~ N(0, I), y = xᵀw* + sξ and the square loss at w₀ = 0:
#   g(ξ) = r² with r ~ N(0, |w*|² + s²), ∇g(ξ) = 2rx, ∇²g = 2I, E|∇g(ξ)|² = 4(s²d + |w*|²(d + 2)).
LENGTH2 = float(MODEL @ MODEL)
SECOND_MOMENT = 4.0 * (NOISE**2 * D + LENGTH2 * (D + 2))
KNOWN = {
    "C_f": 1.0,
    "C_g": math.sqrt(SECOND_MOMENT),
    "L_g": 2.0,
    "sigma0": math.sqrt(2.0) * (LENGTH2 + NOISE**2),
    "sigma1": math.sqrt(SECOND_MOMENT - 4.0 * LENGTH2),
    "mu": 2.0,
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", KNOWN)
def test_constants_are_within_a_factor_of_three_of_the_truth(name, seed):
    assert KNOWN[name] / 3.0 <= constants_of(problem_of(), seed)[name] <= 3.0 * KNOWN[name]


def test_the_outer_function_gives_its_own_constants():
    constants = constants_of(problem_of(outer=stoic.LogSumExp(4.0), groups=np.arange(N) % 3))
    assert constants["L_f"] == 1.0 / 8.0
    assert 3.0**-0.5 <= constants["C_f"] <= 1.0


def test_a_regularizer_adds_its_modulus():
    plain, ridge = (constants_of(problem_of(regularizer=r))["mu"] for r in (stoic.Zero(), stoic.L2(5.0)))
    assert ridge == pytest.approx(plain + 5.0, rel=0.02)


def test_unbounded_constants_become_finite():
    X = RNG.standard_normal((500, 3))
    problem = stoic.Problem(stoic.Moments(X), stoic.MeanVariance(1.0), stoic.Simplex())
    assert problem.outer.lipschitz == math.inf
    assert all(math.isfinite(value) for value in constants_of(problem).values())


# --- scales ---


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e9])
def test_constants_follow_the_scale_of_the_targets(scale):
    plain, scaled = constants_of(problem_of()), constants_of(problem_of(y=scale * Y))
    powers = {"C_f": 0, "C_g": 1, "L_g": 0, "sigma0": 2, "sigma1": 1, "mu": 0}
    for name, power in powers.items():
        assert scaled[name] == pytest.approx(plain[name] * scale**power, rel=1e-2), name


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_constants_follow_the_scale_of_the_features(scale):
    plain, scaled = constants_of(problem_of()), constants_of(problem_of(X=scale * X))
    powers = {"C_f": 0, "C_g": 1, "L_g": 2, "sigma0": 0, "sigma1": 1, "mu": 2}
    for name, power in powers.items():
        assert scaled[name] == pytest.approx(plain[name] * scale**power, rel=1e-2), name


# --- wild samples ---


@pytest.mark.parametrize("wild", [1e4, 1e12])
@pytest.mark.parametrize("name", ["sigma0", "sigma1", "C_g", "L_g"])
def test_a_wild_label_does_not_blow_up_the_constants(name, wild):
    y = Y.copy()
    y[:4] = wild  # one in a thousand: most pilots of 1000 rows hold one
    ratios = [constants_of(problem_of(y=y), s)[name] / constants_of(problem_of(), s)[name] for s in range(6)]
    assert max(ratios) <= 5.0


# --- what a pilot draws and gives ---


def test_the_same_seed_gives_the_same_constants():
    assert constants_of(problem_of(), 3) == constants_of(problem_of(), 3)


def test_a_start_that_is_given_is_where_constants_are_taken():
    far = constants_of(problem_of(), w0=1e3 * np.ones(D))
    assert far["C_g"] > 100.0 * KNOWN["C_g"]


@pytest.mark.parametrize("size", [2, 0, 3.0, True])
def test_a_size_below_three_is_refused(size):
    with pytest.raises(stoic.InvalidParameter, match=f"size={size!r} is not a whole number >= 3"):
        stoic.estimate_constants(problem_of(), size=size)


@pytest.fixture(scope="module")
def pilot():
    problem = CASES["logsumexp-l2"].problem
    return run_pilot(problem, np.zeros(10), np.random.default_rng(0), size=200, delta=0.1).within(40_000)


def test_a_pilot_measures_the_gap_and_the_way_to_the_optimum(pilot):
    case = CASES["logsumexp-l2"]
    assert pilot.eps0 == pytest.approx(case.range, rel=0.3)
    assert pilot.distance == pytest.approx(np.linalg.norm(case.optimum), rel=0.3)
    assert pilot.gradient_norm == pytest.approx(np.linalg.norm(case.problem.gradient(np.zeros(10))), rel=0.3)
    assert pilot.distance <= pilot.reach(0.1, 1000) < math.inf


def test_there_is_no_ball_where_steps_are_too_few_for_the_condition_number(pilot):
    steps = 5.0 / (pilot.mu * 0.1)
    assert pilot.reach(0.1, int(steps) + 1) < pilot.reach(0.1, int(steps)) == math.inf


def test_a_pilot_bounds_the_curvature_at_the_optimum(pilot):
    problem, w = CASES["logsumexp-l2"].problem, CASES["logsumexp-l2"].optimum
    hessian = np.array(
        [(problem.gradient(w + step) - problem.gradient(w - step)) / 2e-5 for step in 1e-5 * np.eye(10)]
    )
    curvatures = np.linalg.eigvalsh(0.5 * (hessian + hessian.T))
    assert 0.8 * curvatures[-1] <= pilot.L
    assert 0.1 <= pilot.mu <= 3.0 * (curvatures[0] + 0.1)


def test_larger_batches_allow_longer_steps(pilot):
    steps = [pilot.step_size(m) for m in (1, 4, 64)]
    assert steps == sorted(steps)
    assert steps[-1] <= 0.5 / pilot.L


def test_settings_of_a_pilot_stay_within_its_budget(pilot):
    for per_step in (1, 2):
        m = pilot.batch_size(per_step=per_step)
        assert per_step * m * pilot.n_steps(m, per_step=per_step) * pilot.cost <= pilot.budget


def test_a_pilot_without_noise_and_distance_still_gives_settings():
    problem = stoic.Problem(stoic.GroupLoss(np.ones((4, 1)), np.zeros(4)), stoic.Linear())
    pilot = run_pilot(problem, np.zeros(1), np.random.default_rng(0), size=3).within(1000)
    assert (pilot.distance, pilot.eps0, pilot.gradient_noise) == (0.0, 0.0, 0.0)
    assert pilot.reach(0.1, 10**9) == math.inf
    assert 0.0 < pilot.averaging_step(1, 100) < math.inf


def test_wild_features_do_not_shorten_the_steps_of_methods_that_truncate():
    """Pareto(2.5) features, 20 pilots: the median step over the smallest one.

    Measured over 200 pilots it is 161 by all samples, and 7.3 without their outliers; over 20, 161 and 2.2.
    """
    steps = {"all": [], "typical": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        wild = rng.pareto(2.5, (2000, D)) - 1.0 / 1.5
        pilot = run_pilot(problem_of(wild, wild @ MODEL + RNG.standard_normal(2000)), np.zeros(D), rng, size=200)
        steps["all"].append(pilot.step_size(1))
        steps["typical"].append(pilot.truncated.step_size(1))
    spread = {name: np.median(values) / min(values) for name, values in steps.items()}
    assert spread["typical"] < 8.0 < spread["all"]
    assert np.median(steps["typical"]) > np.median(steps["all"])


@pytest.mark.parametrize("far", [0.0, 1e3])
def test_a_loss_that_is_linear_at_the_start_has_its_curvature_found(far):
    """Huber with all labels far from the start: no curvature there, and 2 (the loss is r²) at the optimum."""
    problem = stoic.Problem(stoic.GroupLoss(X, Y + far, loss=stoic.Huber(10.0), intercept=True), stoic.Linear())
    pilot = run_pilot(problem, np.zeros(D + 1), np.random.default_rng(0), size=200)
    assert 1.0 < pilot.L < 10.0
    assert 0.5 * far < pilot.distance < 2.0 * far + 20.0
