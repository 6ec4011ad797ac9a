"""TrackedROSC, RROSCTracked and RROSCGrowing: what their y and their batches do."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest

import stoic
from catalog import CASES
from stoic.studies.confidence.laws import GroupLaw

PROBLEM = CASES["logsumexp-l2"].problem
W0 = np.zeros(10)
KEEP_ALL = stoic.Levels(0.0, 0.0, math.inf, math.inf)


def stage(kind=stoic.TrackedROSC, **settings):
    given = {"batch_size": 3, "n_steps": 4, "reference_size": 30, "reference_mean": stoic.SmallestBall(0.5)}
    return kind(step_size=0.05, radius=math.inf, **({"levels": KEEP_ALL} | given | settings))


def test_a_step_is_along_the_gradient_at_the_average_of_earlier_samples():
    solver, rng, twin = stage(weight=0.3), np.random.default_rng(0), np.random.default_rng(0)
    state = solver.init(PROBLEM, W0, rng)
    PROBLEM.inner.draw(30, twin)
    np.testing.assert_array_equal(state.y, state.reference.y)
    for _ in range(4):
        batch = PROBLEM.inner.draw(3, twin)
        values, z = PROBLEM.inner.value(state.w, batch)[0], PROBLEM.inner.jacobian(state.w, batch)[0]
        ahead = state.w - 0.05 * z.T @ PROBLEM.outer.gradient(state.y)
        after, _ = solver.step(PROBLEM, state, rng)
        np.testing.assert_allclose(after.w, PROBLEM.regularizer.prox(ahead, 0.05), rtol=1e-12)
        np.testing.assert_allclose(after.y, 0.7 * state.y + 0.3 * values, rtol=1e-12)
        state = after


def test_samples_are_truncated_one_by_one():
    """Of the samples of a batch those beyond the level give way to the reference, and the others stay."""
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    start = stage().init(PROBLEM, W0, rng)
    twin.bit_generator.state = rng.bit_generator.state
    values = PROBLEM.inner.value(W0, PROBLEM.inner.draw(3, twin), 3)
    far = np.linalg.norm(values - start.reference.y, axis=1)
    slack = 0.5 * (np.sort(far)[1] + np.sort(far)[2])
    levels = stoic.Levels(0.0, 0.0, slack, math.inf)
    state = start._replace(reference=start.reference._replace(levels=levels))
    after, info = stage(stoic.ROSC, truncates="samples").step(PROBLEM, state, rng)
    kept = np.where((far > slack)[:, None], start.reference.y, values)
    np.testing.assert_allclose(after.y, kept.mean(axis=0), rtol=1e-12)
    assert (info.watched, info.truncated_y, info.truncated_z) == (3, 1, 0)


def test_a_batch_of_one_sample_is_truncated_alike_either_way():
    runs = [
        stoic.minimize(
            PROBLEM, stage(stoic.ROSC, batch_size=1, n_steps=300, truncates=kind), budget=10_000, seed=1
        ).w
        for kind in ("batches", "samples")
    ]
    np.testing.assert_array_equal(*runs)


def test_calibrated_slacks_are_those_of_what_is_truncated():
    """For single samples: their own median distance times factor·√(mT), not that of the means of m."""
    levels, rng = stoic.Calibrated(0.0, 0.0, factor=1.0, least=0.0), np.random.default_rng(5)
    solver = stage(stoic.ROSC, levels=levels, truncates="samples", batch_size=5, n_steps=80)
    found = solver.init(PROBLEM, W0, rng).reference
    values = PROBLEM.inner.value(W0, PROBLEM.inner.draw(30, np.random.default_rng(5)), 30)
    far = np.median(np.linalg.norm(values - found.y, axis=1))
    assert found.levels.slack_y == pytest.approx(20.0 * far)


def pilot_on(n=20_000, noise="gaussian"):
    """Return the solver that a method chooses on a law of that noise with n samples of each group."""
    law = GroupLaw(noise)

    def chosen(method):
        problem = law.problem(n, np.random.default_rng(0))
        return stoic.minimize(problem, method, budget=n * law.p, seed=0, callback=_stop).solver

    return chosen


def _stop(_):
    raise StopIteration


def test_from_stage_to_stage_the_length_doubles_the_weight_of_y_halves_and_the_step_does_not_grow_much():
    stages = pilot_on()("rrosc-tracked").stages
    assert len(stages) >= 4
    assert {(type(one), one.batch_size, one.truncates) for one in stages} == {(stoic.TrackedROSC, 1, "samples")}
    for before, after in itertools.pairwise(stages):
        assert after.step_size <= 2.0 * before.step_size
        assert after.radius >= before.radius / math.sqrt(2) * (1.0 - 1e-12)  # more, where noise takes w further
        assert after.n_steps == pytest.approx(2 * before.n_steps, rel=0.1)
        assert after.weight == pytest.approx(min(0.1, 40 / after.n_steps))
    assert stages[-1].step_size < stages[0].step_size
    assert stages[-1].weight < 0.01


def test_from_stage_to_stage_batches_and_lengths_grow_by_the_root_of_two():
    n = 60_000
    stages = pilot_on(n)("rrosc-growing").stages
    assert len(stages) >= 4
    for k, one in enumerate(stages):
        assert one.truncates == "samples"
        assert one.step_size == pytest.approx(stages[0].step_size / 2 ** (k / 2))
        assert 0.0 < one.radius <= stages[0].radius
        assert one.batch_size == pytest.approx(stages[0].batch_size * 2 ** (k / 2), abs=0.5)
    assert stages[-1].batch_size == pytest.approx(math.sqrt(n) / 3, rel=0.2)
    lengths = [one.n_steps for one in stages[1:]]
    assert lengths == sorted(lengths)
    spent = sum(one.n_steps * one.batch_size + one.reference_size for one in stages)
    assert 0.9 * n < spent <= n


def test_given_settings_of_the_first_stage_are_kept():
    chosen = pilot_on()
    growing = chosen(stoic.RROSCGrowing(n_stages=3, step_size=0.02, batch_size=4, n_steps=100, radius=3.0)).stages
    assert [one.batch_size for one in growing] == [4, 6, 8]
    assert [one.n_steps for one in growing] == [100, 141, 200]
    assert [round(one.step_size, 5) for one in growing] == [0.02, 0.01414, 0.01]
    tracked = chosen(stoic.RROSCTracked(n_stages=2, step_size=0.02, batch_size=4, radius=3.0, levels=KEEP_ALL))
    assert [(one.step_size, one.batch_size) for one in tracked.stages] == [
        (0.02, 4),
        (pytest.approx(0.02 / 2**0.5), 4),
    ]
    assert {one.levels for one in tracked.stages} == {KEEP_ALL}


def test_truncates_is_one_of_two_words():
    with pytest.raises(stoic.InvalidParameter, match="truncates='rows' is not 'batches' or 'samples'"):
        stoic.ROSC(truncates="rows")


@pytest.mark.parametrize("method", [stoic.RROSCTracked(), stoic.ROSC(step_size=0.1), stoic.SCGD()])
def test_open_settings_stay_open_when_copied_or_pickled(method):
    for twin in (copy.deepcopy(method), pickle.loads(pickle.dumps(method))):  # noqa: S301
        assert twin.batch_size is stoic.AUTO
        assert twin == method


@pytest.mark.parametrize("noise", ["gaussian", "t2.5"])
@pytest.mark.slow
def test_neither_of_ours_has_the_bias_floor_of_the_paper(noise):
    """Medians of 5 runs with 60,000 samples a group. Measured over 12 runs: the floor is 6.7e-3 to 1.5e-2, ours
    1.6e-4 to 2.4e-4, all within a factor of 3 of their median.
    """
    law, n = GroupLaw(noise), 60_000

    def median_gap(method):
        gaps = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            problem = law.problem(n, rng)
            result = stoic.minimize(problem, method, budget=n * law.p, seed=rng, engine="compiled")
            gaps.append(law.gap(result.w))
        return np.median(gaps)

    floor = median_gap(stoic.RROSC(batch_size=1))
    assert median_gap("rrosc-tracked") < floor / 12
    assert median_gap("rrosc-growing") < floor / 12
