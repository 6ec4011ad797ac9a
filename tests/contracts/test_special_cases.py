"""Special cases tie the algorithms to each other and to proximal gradient, step for step."""

import math

import numpy as np
import pytest

import stoic
from catalog import CASES
from stoic.solvers.base import running_mean
from stoic.solvers.prox_boost import ProxBoosted, ProxStage
from stoic.solvers.rsmd import RSMDStage

ETA, SIZE, STEPS = 0.02, 3, 40
UNTRUNCATED = stoic.Levels(C_g=0.0, L_g=0.0, slack_y=math.inf, slack_z=math.inf)

PROBLEMS = ("linear-zero", "logsumexp-l2", "logsumexp-l1", "cvar-box", "mean-variance-simplex", "own-functions-l1")
on_problems = pytest.mark.parametrize("name", PROBLEMS)


def start(problem):
    """Return a point of the domain that is not special."""
    ahead = np.random.default_rng(99).standard_normal(problem.dimension)
    return problem.regularizer.prox(ahead, ETA)


def run(solver, problem, rng, w0=None):
    """Take all steps of a solver, and return its answer and the last state."""
    state = solver.init(problem, start(problem) if w0 is None else w0, rng)
    while not solver.finished(state):
        state, _ = solver.step(problem, state, rng)
    return solver.output(state), state


def after_a_draw(problem, size, seed=5):
    """Return the generator as it is once a batch has been drawn from it."""
    rng = np.random.default_rng(seed)
    problem.inner.draw(size, rng)
    return rng


def mscg(**settings):
    return stoic.MSCG(step_size=ETA, batch_size=SIZE, n_steps=STEPS, **settings)


def rosc(**settings):
    given = {"radius": math.inf, "reference_size": 20, "reference_mean": stoic.SmallestBall(0.5)} | settings
    return stoic.ROSC(step_size=ETA, batch_size=SIZE, n_steps=STEPS, **given)


def constant(kind, weight, answer="average"):
    steps, weights = stoic.PowerLaw(ETA), stoic.PowerLaw(weight)
    return kind(steps=steps, weights=weights, batch_size=SIZE, n_steps=STEPS, answer=answer)


def rsmd(**settings):
    mean = stoic.SmallestBall(0.5)
    reference = {"reference_size": 20, "reference_mean": mean, "least": 0.0}
    return RSMDStage(step_size=ETA, batch_size=SIZE, n_steps=STEPS, **reference, **settings)


UNCLIPPED = stoic.ClippedSGD(step_size=ETA, batch_size=SIZE, n_steps=STEPS, clip=1e300)


# --- one algorithm inside another ---


def mscg_with_a_shared_batch(problem, w0, rng):
    """The twin: both means of Algorithm 2 from one batch."""
    inner, w, average = problem.inner, w0, w0
    for t in range(1, STEPS + 1):
        batch = inner.draw(SIZE, rng)
        y, z = inner.value(w, batch)[0], inner.jacobian(w, batch)[0]
        w = problem.regularizer.prox(w - ETA * (z.T @ problem.outer.gradient(y)), ETA)
        average = running_mean(average, w, t)
    return average


@on_problems
def test_rosc_without_truncation_and_ball_is_mscg_with_a_shared_batch(name):
    problem = CASES[name].problem
    answer, _ = run(rosc(levels=UNTRUNCATED), problem, np.random.default_rng(5))
    twin = mscg_with_a_shared_batch(problem, start(problem), after_a_draw(problem, 20))
    np.testing.assert_array_equal(answer, twin)


@on_problems
def test_rosc_without_truncation_and_ball_is_sgd_without_clipping(name):
    problem = CASES[name].problem
    answer, _ = run(rosc(levels=UNTRUNCATED), problem, np.random.default_rng(5))
    sgd, _ = run(UNCLIPPED, problem, after_a_draw(problem, 20))
    np.testing.assert_allclose(answer, sgd, rtol=1e-12, atol=1e-14)


@on_problems
def test_scgd_of_weight_one_is_sgd_without_clipping(name):
    problem = CASES[name].problem
    answer, _ = run(constant(stoic.SCGD, 1.0), problem, np.random.default_rng(5))
    sgd, _ = run(UNCLIPPED, problem, after_a_draw(problem, SIZE))
    np.testing.assert_array_equal(answer, sgd)


@on_problems
def test_scsc_of_weight_one_is_scgd_of_weight_one(name):
    problem = CASES[name].problem
    answers = [run(constant(kind, 1.0), problem, np.random.default_rng(5))[0] for kind in (stoic.SCSC, stoic.SCGD)]
    np.testing.assert_array_equal(*answers)


@on_problems
def test_alexr_of_weight_one_without_extrapolation_is_mscg(name):
    problem = CASES[name].problem
    alexr = stoic.ALEXR(step_size=ETA, batch_size=SIZE, n_steps=STEPS, weight=1.0, extrapolation=0.0)
    answer, _ = run(alexr, problem, np.random.default_rng(5))
    plain, _ = run(mscg(), problem, after_a_draw(problem, SIZE))
    np.testing.assert_array_equal(answer, plain)


@on_problems
def test_asc_pg_of_weight_one_is_mscg(name):
    # Its batches alternate as those of MSCG do: y, z, y, z, …; the extrapolation lands on the new iterate.
    problem = CASES[name].problem
    answer, _ = run(constant(stoic.ASCPG, 1.0), problem, np.random.default_rng(5))
    plain, _ = run(mscg(), problem, np.random.default_rng(5))
    np.testing.assert_allclose(answer, plain, rtol=1e-10, atol=1e-12)


@on_problems
@pytest.mark.parametrize("weight", [0.1, 0.5, 1.0])
def test_alexr_with_the_matching_extrapolation_moves_y_as_scsc_does(name, weight):
    problem = CASES[name].problem
    scsc = constant(stoic.SCSC, weight)
    alexr = stoic.ALEXR(step_size=ETA, batch_size=SIZE, weight=weight, extrapolation=(1.0 - weight) / weight)
    state = scsc.init(problem, start(problem), np.random.default_rng(0))
    for seed in range(1, 20):  # from every state of a run of SCSC, fed the same batch
        ahead, _ = alexr.step(problem, state, np.random.default_rng(seed))
        state, _ = scsc.step(problem, state, np.random.default_rng(seed))
        np.testing.assert_allclose(ahead.y, state.y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["linear-zero", "linear-huber-l1", "linear-logistic-box"])
def test_rsmd_without_truncation_and_ball_is_sgd_without_clipping(name):
    problem = CASES[name].problem
    answer, _ = run(rsmd(radius=math.inf, smoothness=1.0, factor=1e300), problem, np.random.default_rng(5))
    sgd, _ = run(UNCLIPPED, problem, after_a_draw(problem, 20))
    np.testing.assert_allclose(answer, sgd, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mean", [stoic.SmallestBall(0.95), stoic.MedianOfMeans(0.9)])
@on_problems
def test_a_robust_mean_of_one_block_is_the_plain_mean(name, mean):
    problem = CASES[name].problem
    assert mean.blocks == 1
    answers = [run(mscg(**given), problem, np.random.default_rng(5))[0] for given in ({"mean": mean}, {})]
    np.testing.assert_array_equal(*answers)


# --- combinators of one part ---


@pytest.mark.parametrize("kind", [stoic.RROSC, stoic.RMSCG, stoic.RCIVR])
@on_problems
def test_one_stage_makes_a_restarted_method_its_stage(name, kind):
    problem = CASES[name].problem
    restarted = stoic.minimize(problem, kind(n_stages=1), budget=600, seed=0, scale=None).solver
    (stage,) = restarted.stages
    answers = [stoic.minimize(problem, solver, budget=600, seed=1, scale=None).w for solver in (restarted, stage)]
    np.testing.assert_array_equal(*answers)


@pytest.mark.slow
def test_the_stages_of_restarted_methods_are_the_methods_they_restart():
    problem = CASES["logsumexp-l2"].problem
    kinds = {"rrosc": stoic.ROSC, "rmscg": stoic.MSCG, "rmscg-robust": stoic.MSCG, "rcivr": stoic.CIVR}
    for method, kind in kinds.items():
        stages = stoic.minimize(problem, method, budget=20_000, seed=0).solver.stages
        assert {type(stage) for stage in stages} == {kind}


@pytest.mark.parametrize("solver", [mscg(), rosc(levels=UNTRUNCATED), constant(stoic.SCSC, 0.3, "last")])
@on_problems
def test_prox_boost_of_one_trial_without_a_pull_is_its_solver(name, solver):
    problem = CASES[name].problem
    boosted = ProxBoosted((ProxStage(0.0, solver, 1),))
    answers = [run(either, problem, np.random.default_rng(5))[0] for either in (boosted, solver)]
    np.testing.assert_array_equal(*answers)


# --- no noise: proximal gradient ---


def without_noise(outer, regularizer):
    """Return a problem whose groups repeat one row each, so that every batch has the exact mean."""
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((3, 4)), rng.standard_normal(3)
    inner = stoic.GroupLoss(np.repeat(X, 5, axis=0), np.repeat(y, 5), np.repeat(np.arange(3), 5))
    return stoic.Problem(inner, outer, regularizer)


def proximal_gradient(problem, w):
    """Return the iterates w_1, …, w_T."""
    iterates = []
    for _ in range(STEPS):
        w = problem.regularizer.prox(w - ETA * problem.gradient(w), ETA)
        iterates.append(w)
    return np.array(iterates)


OUTPUT = {"average": lambda iterates: iterates.mean(axis=0), "last": lambda iterates: iterates[-1]}
REGULARIZERS = [stoic.Zero(), stoic.L2(0.3), stoic.L1(0.1), stoic.ElasticNet(0.2, 0.5), stoic.Box(-0.3, 0.4)]
civr = stoic.CIVR(step_size=ETA, batch_size=SIZE, n_steps=STEPS, anchor_size=stoic.EVERYTHING)
alexr_of = {"step_size": ETA, "batch_size": SIZE, "n_steps": STEPS, "weight": 0.2}

# Where y does not matter (f linear), and where it follows g without lag (any f).
EXACT = {
    "mscg": (mscg(), "average"),
    "mscg-robust": (mscg(mean=stoic.SmallestBall(0.9)), "average"),
    "rosc": (rosc(levels=stoic.Levels(C_g=1e3, L_g=1e3, slack_y=1e-9, slack_z=1e-9)), "average"),
    "rosc-calibrated": (rosc(levels=stoic.Calibrated(C_g=1e3, L_g=1e3)), "average"),
    "rosc-in-a-ball": (rosc(levels=UNTRUNCATED, radius=50.0), "average"),
    "clipped-sgd": (UNCLIPPED, "average"),
    "civr": (civr, "last"),
    "scgd": (constant(stoic.SCGD, 1.0), "average"),
    "scsc": (constant(stoic.SCSC, 0.2), "average"),
    "scsc-last": (constant(stoic.SCSC, 0.2, "last"), "last"),
    "asc-pg": (constant(stoic.ASCPG, 1.0, "last"), "last"),
    "alexr": (stoic.ALEXR(extrapolation=4.0, **alexr_of), "average"),
    "restarted": (stoic.Restarted((constant(stoic.SCSC, 0.2, "last"),)), "last"),
}
LINEAR_ONLY = {
    "scgd-lagging": (constant(stoic.SCGD, 0.1), "average"),
    "asc-pg-lagging": (constant(stoic.ASCPG, 0.1, "last"), "last"),
    "alexr-lagging": (stoic.ALEXR(extrapolation=1.0, **alexr_of), "average"),
    "sox": (stoic.ALEXR(extrapolation=0.0, **alexr_of), "average"),
    "rsmd": (rsmd(radius=50.0, smoothness=1e3, factor=1.0), "average"),
}


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("name", EXACT | LINEAR_ONLY)
def test_a_linear_f_and_no_noise_make_a_method_proximal_gradient(name, regularizer):
    problem = without_noise(stoic.Linear([0.5, 0.2, 0.3]), regularizer)
    solver, output = (EXACT | LINEAR_ONLY)[name]
    answer, _ = run(solver, problem, np.random.default_rng(0))
    expected = OUTPUT[output](proximal_gradient(problem, start(problem)))
    np.testing.assert_allclose(answer, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("outer", [stoic.LogSumExp(0.5), stoic.SmoothCVaR(0.5, 0.5)], ids=["kl", "cvar"])
@pytest.mark.parametrize("name", EXACT)
def test_no_noise_and_a_y_that_does_not_lag_make_a_method_proximal_gradient(name, outer):
    problem = without_noise(outer, stoic.L1(0.1))
    solver, output = EXACT[name]
    answer, _ = run(solver, problem, np.random.default_rng(0))
    expected = OUTPUT[output](proximal_gradient(problem, start(problem)))
    np.testing.assert_allclose(answer, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", LINEAR_ONLY)
def test_a_y_that_lags_is_noticed_by_a_curved_f(name):
    # Guards the two tests above: their problem tells methods apart.
    problem = without_noise(stoic.LogSumExp(0.5), stoic.L1(0.1))
    solver, output = LINEAR_ONLY[name]
    if name == "rsmd":
        with pytest.raises(stoic.IncompatibleParts, match="linear"):
            solver.check(problem)
        return
    answer, _ = run(solver, problem, np.random.default_rng(0))
    expected = OUTPUT[output](proximal_gradient(problem, start(problem)))
    assert np.abs(answer - expected).max() > 1e-4


def test_without_noise_a_restart_continues_from_the_average_of_the_stage_before():
    problem = without_noise(stoic.LogSumExp(0.5), stoic.L2(0.1))
    answer, _ = run(stoic.Restarted((mscg(), mscg())), problem, np.random.default_rng(0))
    first = proximal_gradient(problem, start(problem)).mean(axis=0)
    np.testing.assert_allclose(answer, proximal_gradient(problem, first).mean(axis=0), rtol=1e-11)


def test_civr_restarted_after_one_step_is_proximal_gradient_on_noisy_data():
    problem = CASES["logsumexp-elastic-net"].problem
    epoch = stoic.CIVR(step_size=ETA, batch_size=1, n_steps=1, anchor_size=stoic.EVERYTHING)
    answer, _ = run(stoic.Restarted((epoch,) * STEPS), problem, np.random.default_rng(0))
    np.testing.assert_allclose(answer, proximal_gradient(problem, start(problem))[-1], rtol=1e-11, atol=1e-13)


def test_without_noise_prox_boost_takes_proximal_point_steps():
    # One trial a stage and a solver that runs to convergence: w_j minimizes F(w) + (λ/2)‖w − w_{j−1}‖².
    problem, weight = without_noise(stoic.Linear(), stoic.L2(0.5)), 2.0
    solver = stoic.CIVR(step_size=0.1, batch_size=1, n_steps=400, anchor_size=stoic.EVERYTHING)
    answer, _ = run(ProxBoosted((ProxStage(weight, solver, 1),) * 2), problem, np.random.default_rng(0))
    data = problem.inner.X[::5], problem.inner.y[::5]
    w = start(problem)
    for _ in range(2):  # ∇F(w) = 2/3 Xᵀ(Xw − y) + 0.5w, solved in closed form
        X, y = data
        hessian = 2.0 / 3.0 * X.T @ X + (0.5 + weight) * np.eye(4)
        w = np.linalg.solve(hessian, 2.0 / 3.0 * X.T @ y + weight * w)
    np.testing.assert_allclose(answer, w, rtol=1e-9)
