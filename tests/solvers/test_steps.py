"""One noisy step of each method beside its published equations, written anew on the same batches."""

import math

import numpy as np
import pytest

import stoic
from catalog import CASES
from stoic.solvers.civr import CIVRState
from stoic.solvers.mscg import MSCGState
from stoic.solvers.rosc import Reference, ROSCState
from stoic.solvers.rsmd import RSMDStage, RSMDState
from stoic.solvers.two_scale import TrackedState

PROBLEM = CASES["logsumexp-l1"].problem
LINEAR = CASES["linear-huber-l1"].problem
SIZE, T = 3, 4


def point(seed, problem=PROBLEM):
    return np.random.default_rng(seed).standard_normal(problem.dimension)


W, BEFORE, AVERAGE = point(0), point(1), point(2)
Y = PROBLEM.inner.value(W, PROBLEM.inner.everything())[0] * np.array([1.1, 0.8, 0.9])
TRACKED = TrackedState(w=W, average=AVERAGE, t=T, y=Y, previous=BEFORE)


def g(w, batch, problem=PROBLEM):
    return problem.inner.value(w, batch)[0]


def jacobian(w, batch, problem=PROBLEM):
    return problem.inner.jacobian(w, batch)[0]


def batches(n, problem=PROBLEM):
    """Return the first batches that a generator of seed 7 draws."""
    rng = np.random.default_rng(7)
    return [problem.inner.draw(SIZE, rng) for _ in range(n)]


def moved(solver, state, problem=PROBLEM):
    return solver.step(problem, state, np.random.default_rng(7))


def prox_step(w, a, z, y, problem=PROBLEM):
    return problem.regularizer.prox(w - a * z.T @ problem.outer.gradient(y), a)


def assert_state(state, **expected):
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(state, name), value, rtol=1e-10, atol=1e-12, err_msg=name)


def two_scale(kind):
    steps, weights = stoic.PowerLaw(0.05, 1.0, 2.0), stoic.PowerLaw(0.9, 0.5, 4.0)
    solver = kind(steps=steps, weights=weights, batch_size=SIZE, n_steps=10, answer="last")
    return solver, 0.05 / (1.0 + T / 2.0), 0.9 / math.sqrt(1.0 + T / 4.0)


def assert_counted(state, w):
    """A step counts itself, and puts its iterate into the average of all."""
    assert_state(state, w=w, average=AVERAGE + (w - AVERAGE) / (T + 1), t=T + 1)


def test_scgd_moves_y_first_and_w_along_the_gradient_at_the_new_y():
    solver, a, b = two_scale(stoic.SCGD)
    (batch,) = batches(1)
    y = (1 - b) * Y + b * g(W, batch)
    state, _ = moved(solver, TRACKED)
    assert_state(state, y=y)
    assert_counted(state, prox_step(W, a, jacobian(W, batch), y))


def test_asc_pg_moves_w_first_and_y_at_the_extrapolated_point():
    solver, a, b = two_scale(stoic.ASCPG)
    first, second = batches(2)
    w = prox_step(W, a, jacobian(W, first), Y)
    state, _ = moved(solver, TRACKED)
    assert_state(state, y=(1 - b) * Y + b * g((1 - 1 / b) * W + w / b, second))
    assert_counted(state, w)


def test_scsc_corrects_y_by_the_same_batch_at_both_points():
    solver, a, b = two_scale(stoic.SCSC)
    (batch,) = batches(1)
    y = (1 - b) * (Y + g(W, batch) - g(BEFORE, batch)) + b * g(W, batch)
    state, _ = moved(solver, TRACKED)
    assert_state(state, y=y, previous=W)
    assert_counted(state, prox_step(W, a, jacobian(W, batch), y))


def test_alexr_extrapolates_y_with_one_batch_and_moves_w_with_another():
    solver = stoic.ALEXR(step_size=0.05, batch_size=SIZE, weight=0.3, extrapolation=0.7)
    first, second = batches(2)
    y = 0.7 * Y + 0.3 * (g(W, first) + 0.7 * (g(W, first) - g(BEFORE, first)))
    state, _ = moved(solver, TRACKED)
    assert_state(state, y=y, previous=W)
    assert_counted(state, prox_step(W, 0.05, jacobian(W, second), y))


def test_mscg_takes_y_and_z_from_two_batches():
    first, second = batches(2)
    w = prox_step(W, 0.05, jacobian(W, second), g(W, first))
    state, _ = moved(stoic.MSCG(step_size=0.05, batch_size=SIZE), MSCGState(W, AVERAGE, T))
    assert_counted(state, w)


def test_mscg_with_a_robust_mean_takes_it_of_values_and_of_jacobians():
    first, second = batches(2)
    y = np.median(PROBLEM.inner.value(W, first, SIZE), axis=0)
    z = np.median(PROBLEM.inner.jacobian(W, second, SIZE), axis=0)
    mean = stoic.MedianOfMeans(math.exp(-SIZE / 8))
    state, _ = moved(stoic.MSCG(step_size=0.05, batch_size=SIZE, mean=mean), MSCGState(W, AVERAGE, T))
    assert_counted(state, prox_step(W, 0.05, z, y))


def civr(anchor_size=5):
    return stoic.CIVR(step_size=0.05, batch_size=SIZE, n_steps=9, anchor_size=anchor_size)


def test_civr_corrects_y_and_z_by_what_a_batch_changed_between_two_points():
    (batch,), z = batches(1), np.ones((3, 20))
    y_new = Y + g(W, batch) - g(BEFORE, batch)
    z_new = z + jacobian(W, batch) - jacobian(BEFORE, batch)
    state, _ = moved(civr(), CIVRState(W, BEFORE, T, Y, z))
    assert_state(state, y=y_new, z=z_new, previous=W, t=T + 1, w=prox_step(W, 0.05, z_new, y_new))


@pytest.mark.parametrize("anchor_size", [5, stoic.EVERYTHING])
def test_civr_starts_from_the_means_of_its_anchor(anchor_size):
    inner = PROBLEM.inner
    batch = inner.draw(5, np.random.default_rng(7)) if anchor_size else inner.everything()
    solver = civr(anchor_size)
    state, _ = moved(solver, solver.init(PROBLEM, W, np.random.default_rng(7)))
    y, z = g(W, batch), jacobian(W, batch)
    assert_state(state, y=y, z=z, previous=W, t=1, w=prox_step(W, 0.05, z, y))


@pytest.mark.parametrize(("share", "is_clipped"), [(0.5, 1), (1.0 + 1e-9, 0), (2.0, 0)])
def test_a_gradient_longer_than_the_clip_is_shortened_to_it_and_recorded(share, is_clipped):
    (batch,) = batches(1)
    v = jacobian(W, batch).T @ PROBLEM.outer.gradient(g(W, batch))
    clip = share * float(np.linalg.norm(v))
    solver = stoic.ClippedSGD(step_size=0.05, batch_size=SIZE, clip=clip)
    state, info = moved(solver, MSCGState(W, AVERAGE, T))
    assert_counted(state, PROBLEM.regularizer.prox(W - 0.05 * min(1.0, share) * v, 0.05))
    assert (info.watched, info.truncated_y, info.truncated_z) == (1, 0, is_clipped)


# --- ROSC ---


@pytest.mark.parametrize(("y_is_far", "z_is_far"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_rosc_replaces_what_is_further_from_its_reference_than_a_level_that_grows_with_the_way(y_is_far, z_is_far):
    (batch,), start, z_start = batches(1), point(3), np.ones((3, 20))
    y, z, way = g(W, batch), jacobian(W, batch), float(np.linalg.norm(W - start))
    far_y, far_z = float(np.linalg.norm(y - Y)), float(np.linalg.norm(z - z_start))
    share_y, share_z = 0.499 if y_is_far else 0.501, 0.499 if z_is_far else 0.501
    levels = stoic.Levels(0.5 * far_y / way, 0.5 * far_z / way, share_y * far_y, share_z * far_z)
    state = ROSCState(W, AVERAGE, T, Y, Reference(start, Y, z_start, levels))
    solver = stoic.ROSC(step_size=0.05, batch_size=SIZE, n_steps=9, radius=math.inf, levels=levels)
    after, info = moved(solver, state)
    y, z = Y if y_is_far else y, z_start if z_is_far else z
    assert_state(after, y=y)
    assert_counted(after, prox_step(W, 0.05, z, y))
    assert (info.watched, info.truncated_y, info.truncated_z) == (1, y_is_far, z_is_far)


# --- RSMD ---


def rsmd(**settings):
    given = {"step_size": 0.05, "batch_size": SIZE, "n_steps": 400, "radius": math.inf, "smoothness": 2.0}
    given |= {"reference_size": 40, "reference_mean": stoic.SmallestBall(0.5), "factor": 0.1, "least": 3.0}
    return RSMDStage(**(given | settings))


def test_the_slack_of_rsmd_is_measured_on_its_reference_batch():
    # 13 blocks of 40 samples; the deviation of a batch of 3 is √(40/13/3) times that of a block.
    w, mean = point(3, LINEAR), stoic.SmallestBall(0.5)
    blocks = mean.n_blocks(40)
    jacobians = LINEAR.inner.jacobian(w, LINEAR.inner.draw(40, np.random.default_rng(7)), blocks)
    gradients = np.einsum("bpd,p->bd", jacobians, [0.3, 0.7])
    center = mean.combine(gradients)
    scale = np.median(np.linalg.norm(gradients - center, axis=1)) * math.sqrt(40 / blocks / SIZE)
    for settings, width in (({}, 3.0), ({"least": 1.0}, 2.0), ({"factor": 0.2}, 4.0)):
        state = rsmd(**settings).init(LINEAR, w, np.random.default_rng(7))
        assert_state(state, w=w, average=w, center=w, t=0, reference=center, slack=width * scale)


@pytest.mark.parametrize("is_truncated", [0, 1])
def test_rsmd_takes_the_reference_where_a_gradient_is_further_from_it_than_its_level(is_truncated):
    w, center, reference = point(3, LINEAR), point(4, LINEAR), point(5, LINEAR)
    (batch,) = batches(1, LINEAR)
    gradient = jacobian(w, batch, LINEAR).T @ [0.3, 0.7]
    far = float(np.linalg.norm(gradient - reference))
    smoothness = 0.5 * far / float(np.linalg.norm(w - center))
    slack = far * (0.499 if is_truncated else 0.501)
    state = RSMDState(w, np.ones_like(w), T, center, reference, slack)
    after, info = moved(rsmd(smoothness=smoothness), state, LINEAR)
    v = reference if is_truncated else gradient
    expected = LINEAR.regularizer.prox(w - 0.05 * v, 0.05)
    assert_state(after, w=expected, t=T + 1, average=1.0 + (expected - 1.0) / (T + 1), center=center, slack=slack)
    assert (info.watched, info.truncated_z) == (1, is_truncated)


def test_rsmd_stays_in_the_ball_around_its_center():
    w, center = point(3, LINEAR), point(3, LINEAR) + 0.01
    state = RSMDState(w, w, T, center, np.full_like(w, 1e6), 0.0)
    after, _ = moved(rsmd(radius=0.2), state, LINEAR)
    assert np.linalg.norm(after.w - center) == pytest.approx(0.2, rel=1e-9)


def test_a_stage_of_rsmd_refuses_a_reference_too_small_for_its_mean_and_an_f_that_is_not_linear():
    rsmd(reference_size=13).check(LINEAR)
    with pytest.raises(stoic.InvalidParameter, match="12 is below the 13 blocks"):
        rsmd(reference_size=12).check(LINEAR)
    with pytest.raises(stoic.IncompatibleParts, match="linear"):
        rsmd().check(PROBLEM)
    with pytest.raises(stoic.IncompatibleParts, match="linear"):
        stoic.RSMD().check(PROBLEM)
