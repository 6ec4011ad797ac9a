"""The plan with a tracked y: eleven terms, each small enough, and no more samples than the theorem says.

The formulas of docs/tracked_proof.md stand here once more, for arrays: the plan as it is printed there, and the
terms put together from the bounds of its Steps 5 and 6, not from the numbers of Step 7.
"""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest

import stoic
from stoic.errors import InvalidParameter
from stoic.theory.growing_batches import growing_plan
from stoic.theory.plans import Constants
from stoic.theory.theorems import theorem_3
from stoic.theory.tracked_values import tracked_plan, tracked_stage_terms

ROUNDING = 1 + 1e-9
CEILING = 1e-4  # ⌈6401 θκ⌉ is 6401 or 6402 where θκ = 1 up to rounding
ORDINARY = Constants(C_f=1.0, L_f=0.5, C_g=2.0, L_g=0.5, sigma0=1.0, sigma1=3.0, mu=0.1)
BOUNDS = ("noise of y", "noise of z", "curvature of f", "curvature of g", "batch")


class Sets(NamedTuple):
    """Constants, M_f, the gap at the start of a stage, δ of the plan and m: arrays, an entry a plan."""

    C_f: np.ndarray
    L_f: np.ndarray
    C_g: np.ndarray
    L_g: np.ndarray
    sigma0: np.ndarray
    sigma1: np.ndarray
    mu: np.ndarray
    M_f: np.ndarray
    e: np.ndarray
    delta: np.ndarray
    m: np.ndarray

    def where(self, mask):
        return Sets(*(column[mask] for column in self))


class Stages(NamedTuple):
    """A stage for each set: what the page prescribes, and the letters on the way there."""

    C_g: np.ndarray
    theta: np.ndarray
    P: np.ndarray
    ell: np.ndarray
    eta: np.ndarray
    T: np.ndarray
    beta: np.ndarray
    c: np.ndarray
    bounds: np.ndarray


def random_sets(n, seed):
    """Return constants over six decades, one in twenty of those that may be 0 at 0, and batches up to 10,000."""
    rng = np.random.default_rng(seed)
    columns = 10.0 ** rng.uniform(-3, 3, (9, n))
    for k in (0, 2, 3, 4, 5, 7):  # C_f, C_g, L_g, σ₀, σ₁, M_f
        columns[k, rng.random(n) < 0.05] = 0.0
    delta, m = 10.0 ** rng.uniform(-6, -0.05, n), np.floor(10.0 ** rng.uniform(0, 4, n))
    return Sets(*columns, delta, m)


def prescribed(s, without=None):
    """Return the stages of one-stage plans, or those with one of the bounds on η left out."""
    C_g = np.maximum(s.C_g, np.sqrt(s.mu / s.L_f))
    Lambda, P = s.L_f * C_g**2, 2 * s.L_f * s.L_g + 4 * C_g**2 * s.M_f
    with np.errstate(divide="ignore"):
        theta, share = np.maximum(1.0, s.e / (s.mu**2 * s.L_f / (320 * P**2))), s.delta / 10
        ell = np.log(1 / share)
        ell2 = np.log(2 * np.ceil(6401 * theta * Lambda / s.mu) / share)
        bounds = np.array(
            [
                s.m * s.e / (7e5 * theta**2 * ell2**2 * (C_g * s.L_f * s.sigma0) ** 2),
                s.m * s.e / (6000 * (ell + 1) ** 2 * (s.C_f * s.sigma1) ** 2),
                1 / (190 * theta * ell2 * Lambda),
                1 / (18 * (ell + 1) * s.C_f * s.L_g),
                1 / (s.m * s.mu),
            ]
        )
    kept = bounds if without is None else np.delete(bounds, without, axis=0)
    eta = kept.min(axis=0)
    c = np.maximum(1.0, np.ceil(13.5 * s.mu * s.sigma0**2 / (C_g**2 * s.e)))
    return Stages(C_g, theta, P, ell, eta, np.ceil(40 / (s.mu * eta)), 80 * theta * Lambda * eta, c, bounds)


class Sizes(NamedTuple):
    """D, σ̃ and σ̂, M_y and M_z, ν."""

    D: np.ndarray
    y: np.ndarray
    z: np.ndarray
    M_y: np.ndarray
    M_z: np.ndarray
    nu: np.ndarray


def sizes(s, p):
    D, y, z = np.sqrt(2 * s.e / s.mu), s.sigma0 / np.sqrt(s.m), s.sigma1 / np.sqrt(s.m)
    M_y, M_z = np.maximum(y * np.sqrt(p.T), p.C_g * D), np.maximum(z * np.sqrt(p.T), s.L_g * D)
    return Sizes(D, y, z, M_y, M_z, np.sqrt(27 / p.c))


def derived_terms(s, p):
    """Return the eleven terms, put together as Step 7 does from the bounds of Steps 5 and 6."""
    D, y, _, M_y, M_z, nu = sizes(s, p)
    L_f, theta, ell, beta = s.L_f, p.theta, p.ell, p.beta
    ell2 = np.log(2 * np.ceil(2 * beta * p.T) / (s.delta / 10))
    B_N = 2 * np.sqrt(beta * ell2) * y + 4.1 * beta * M_y * ell2  # 6e
    E = 2 * p.C_g * D + nu * s.sigma0 + B_N + 2 * y / np.sqrt(p.T)
    zeta_w, zeta_squared = 8 * s.C_f * D * (ell + 1) * M_z, 8 * s.C_f**2 * (3 * ell + 2) * M_z**2  # 6a, 6b
    zeta_p = zeta_w / beta  # 6c
    h_y, y_squared = 8 * p.C_g * L_f * D * (ell + 1) * M_y, 8 * (3 * ell + 2) * M_y**2  # 6d, 6f
    N_squared = 4 / 3 * ell * (7 * M_y * B_N + 4 * y**2) + 13 * beta * (3 * ell + 2) * M_y**2  # 6g
    # Coefficient of Σ‖e_t‖² in Step 7, times the factor of Step 5.
    back = 1.5175 * theta * L_f * 4 / (1 - 0.0035)
    a_back = back / (20 * theta * L_f)  # of Σ a_s, and of a_0/β
    sums = (
        D**2 / (2 * p.eta),
        a_back * s.e * (1 + 1 / beta),
        (2 * p.eta + back * p.eta / (10 * theta * L_f)) * zeta_squared,
        zeta_w + back * 4 * p.eta * p.C_g**2 * zeta_p,
        back * (nu * s.sigma0) ** 2 / beta,
        back * N_squared + theta * beta * L_f * y_squared,
        theta * (back * 4 / theta + 32 * (ell + 1) * L_f) * y**2,
        p.T * 2 * p.P**2 * D**4 / (theta * L_f),
        h_y,
        7 * ell * L_f * E * M_y,
        L_f / (2 * beta) * 2 * E**2,
    )
    return np.array(sums) / p.T


def planned(s, k, eps=0.6):
    """Return the constants of set k, and the code's plan for it, of one stage."""
    constants = Constants(*(float(column[k]) for column in s[:7]))
    plan = tracked_plan(
        constants,
        hessian_lipschitz=float(s.M_f[k]),
        eps0=float(s.e[k]),
        eps=eps * float(s.e[k]),
        delta=float(s.delta[k]),
        batch_size=int(s.m[k]),
    )
    return constants, plan


def steep_sets(n, seed):
    """Return sets in which the curvature of g may bind: no noise, a steep f, and small gaps."""
    s = random_sets(n, seed)
    none = np.zeros(n)
    return s._replace(C_f=1e3 * s.C_f, sigma0=none, sigma1=none, e=1e-9 * s.e, m=none + 1)


SETS = Sets(*map(np.concatenate, zip(random_sets(10_000, seed=0), steep_sets(1000, seed=2), strict=True)))


@pytest.fixture(scope="module")
def stages():
    """The code's plans of one stage for all sets."""
    return [planned(SETS, k) for k in range(len(SETS.e))]


@pytest.fixture(scope="module")
def terms(stages):
    """The code's eleven terms for all sets, of shape (11, sets)."""
    rows = [
        tracked_stage_terms(constants, plan.stages[0], plan.eps0, hessian_lipschitz=M_f)
        for (constants, plan), M_f in zip(stages, SETS.M_f.tolist(), strict=True)
    ]
    return np.array(rows).T


def test_a_stage_is_what_the_page_prescribes(stages):
    p = prescribed(SETS)
    D, _, _, M_y, M_z, nu = sizes(SETS, p)
    for name, expected in {
        "step_size": p.eta,
        "n_steps": p.T,
        "weight": p.beta,
        "radius": D,
        "reference_size": p.c * np.ceil(18 * p.ell),
        "delta": SETS.delta / 10,
        "batch_size": SETS.m,
    }.items():
        found = [float(getattr(plan.stages[0], name)) for _, plan in stages]
        np.testing.assert_allclose(found, expected, rtol=CEILING, err_msg=name)
    levels = np.array([plan.stages[0].levels for _, plan in stages])
    slacks = M_y + 2 * nu * SETS.sigma0, M_z + 2 * nu * SETS.sigma1
    np.testing.assert_allclose(levels.T, [p.C_g, SETS.L_g, *slacks], rtol=CEILING)


def test_each_of_the_eleven_terms_is_at_most_a_thirty_third_of_the_gap(terms):
    assert terms.shape == (11, 11_000)
    assert (terms <= SETS.e / 33 * ROUNDING).all()


def test_the_terms_are_what_the_steps_of_the_proof_add_up_to(terms):
    """Those of the code have constants that are rounded up, by less than 1 %."""
    derived = derived_terms(SETS, prescribed(SETS))
    assert (derived <= terms * (1 + CEILING)).all()
    assert (terms <= 1.01 * derived).all()


def test_the_terms_are_those_of_the_steps_for_stages_of_any_length():
    """Also where what is negligible in the plan is not: few steps, a slow y, a small reference."""
    s, rng = random_sets(2000, seed=3), np.random.default_rng(3)
    s = s._replace(C_g=s.C_g + np.sqrt(s.mu / s.L_f))
    T = np.ceil(10.0 ** rng.uniform(0, 4, s.e.size))
    beta, c = (
        np.minimum(1.0, 10.0 ** rng.uniform(-3, 2, s.e.size) / T),
        np.ceil(10.0 ** rng.uniform(0, 3, s.e.size)),
    )
    p = prescribed(s)
    p = p._replace(T=T, beta=beta, eta=beta / (80 * p.theta * s.L_f * p.C_g**2), c=c)
    found = []
    for k in range(s.e.size):
        constants, plan = planned(s, k)
        stage = dataclasses.replace(
            plan.stages[0],
            n_steps=int(T[k]),
            step_size=float(p.eta[k]),
            weight=float(beta[k]),
            reference_size=int(c[k]) * plan.stages[0].n_blocks,
        )
        found.append(tracked_stage_terms(constants, stage, plan.eps0, hessian_lipschitz=float(s.M_f[k])))
    derived = derived_terms(s, p).T
    assert (derived <= np.array(found) * ROUNDING).all()
    assert (np.array(found) <= 1.01 * derived).all()


def test_eleven_shares_are_less_than_what_halves_the_gap():
    """Σ‖e_t‖² gives back 0.306 Σ a_s, so that 0.694 of the mean gap is at most the eleven terms."""
    assert 4 / (1 - 0.0035) <= 4.02
    assert 1 + 0.2 + 2 / 400 + 1 / 8 + 1 / 8 + 1 / 16 <= 1.5175 + 1e-12
    assert 1.5175 * 4.02 / 20 <= 0.306
    assert 11 / 33 / (1 - 0.306) < 0.5


def test_the_side_conditions_of_the_proof_hold(stages):
    p = prescribed(SETS)
    D, _, _, M_y, M_z, nu = sizes(SETS, p)
    L = SETS.C_f * SETS.L_g + SETS.L_f * p.C_g**2
    eta, T, beta, samples, b = np.array(
        [
            (stage.step_size, stage.n_steps, stage.weight, stage.n_steps * stage.batch_size, stage.reference_size)
            for (stage,) in (plan.stages for _, plan in stages)
        ]
    ).T
    assert (2 * eta * L <= ROUNDING).all()
    assert (eta * SETS.L_f * p.C_g**2 <= 1 / 400).all()
    assert (beta <= 1 / 5).all()
    assert (T >= 4).all()
    assert (nu * SETS.sigma0 <= M_y * ROUNDING).all()
    assert (nu * SETS.sigma1 <= M_z * ROUNDING).all()
    assert (p.C_g * SETS.M_f * D <= p.theta * SETS.L_f / 8 * ROUNDING).all()
    assert (b <= 0.01 * samples).all()
    assert (samples <= 41 * SETS.m / (SETS.mu * eta) * ROUNDING).all()


@pytest.mark.parametrize("k", range(4), ids=BOUNDS[:4])
def test_without_one_of_the_bounds_on_the_step_a_term_exceeds_its_share(k):
    """In all sets in which the others allow a step ten times as long."""
    bounds = prescribed(SETS).bounds
    s = SETS.where(np.delete(bounds, k, axis=0).min(axis=0) > 10 * bounds[k])
    assert len(s.e) > 100
    assert (derived_terms(s, prescribed(s)).max(axis=0) <= s.e / 33 * ROUNDING).all()
    assert (derived_terms(s, prescribed(s, without=k)).max(axis=0) > s.e / 33).all()


def test_without_the_bound_on_the_step_by_the_batch_the_reference_is_worse_than_the_noise():
    """It keeps νσ₁ ≤ M_z, on which all bounds for truncated Jacobians rest, and no term has it."""
    s = random_sets(10_000, seed=1)
    s = s._replace(m=1e9 * np.ones_like(s.m), L_g=np.zeros_like(s.m))
    p = prescribed(s, without=4)
    short = (s.sigma1 > 0) & (p.c == 1) & (p.eta > 10 / (s.m * s.mu))
    assert short.sum() > 100
    size = sizes(s, p)
    assert (size.nu * s.sigma1 > size.M_z)[short].all()
    size = sizes(s, prescribed(s))
    assert (size.nu * s.sigma1 <= size.M_z * ROUNDING).all()


def test_stages_share_delta_and_are_otherwise_alone():
    settings = {"hessian_lipschitz": 0.2, "batch_size": 3}
    plan = tracked_plan(ORDINARY, eps0=1.0, eps=0.03, delta=0.06, **settings)
    assert (plan.n_stages, plan.success_probability) == (6, 0.94)
    for stage, gap in zip(plan.stages, plan.gaps, strict=False):
        alone = tracked_plan(ORDINARY, eps0=gap, eps=0.6 * gap, delta=0.01, **settings).stages[0]
        assert stage == alone


def test_at_small_gaps_steps_and_weights_halve_and_stages_double():
    plan = tracked_plan(ORDINARY, hessian_lipschitz=0.2, eps0=1e-6, eps=1e-8, delta=0.05)
    assert {stage.batch_size for stage in plan.stages} == {1}
    for one, following in zip(plan.stages, plan.stages[1:], strict=False):
        assert following.n_steps == pytest.approx(2 * one.n_steps, rel=1e-6)
        assert following.step_size == pytest.approx(one.step_size / 2)
        assert following.weight == pytest.approx(one.weight / 2)


def test_samples_are_of_the_order_of_one_over_eps():
    settings = {"hessian_lipschitz": 0.2, "eps0": 1e-6, "delta": 0.05}
    few, many = (tracked_plan(ORDINARY, eps=eps, **settings) for eps in (1e-8, 1e-9))
    assert many.samples / few.samples == pytest.approx(10.0, rel=0.5)  # δ is shared among more stages


def test_growing_batches_are_nearly_always_the_cheaper_plan():
    """As the page says; of 1,000 sets of constants in at least 990."""
    cheaper = 0
    for k in range(1000):
        constants, tracked = planned(SETS, k)
        gaps = {"eps0": tracked.eps0, "eps": tracked.eps, "delta": float(SETS.delta[k])}
        growing = growing_plan(constants, hessian_lipschitz=float(SETS.M_f[k]), **gaps)
        cheaper += growing.samples <= tracked.samples
    assert cheaper >= 990


def test_the_plan_is_run_by_stages_that_track_y_and_truncate_the_means_of_batches():
    plan = tracked_plan(ORDINARY, hessian_lipschitz=0.2, eps0=1.0, eps=0.3, delta=0.1, batch_size=4)
    solver = stoic.RROSCTracked.from_plan(plan)
    assert len(solver.stages) == 2
    for stage, told in zip(solver.stages, plan.stages, strict=True):
        assert type(stage) is stoic.TrackedROSC
        assert (stage.weight, stage.truncates, stage.batch_size) == (told.weight, "batches", 4)
        assert (stage.step_size, stage.n_steps, stage.radius) == (told.step_size, told.n_steps, told.radius)
        assert (stage.levels, stage.reference_size) == (told.levels, told.reference_size)
        assert stage.reference_mean == stoic.SmallestBall(told.delta)


def test_a_plan_for_another_method_is_refused():
    gaps = {"eps0": 1.0, "eps": 0.3, "delta": 0.1}
    tracked = tracked_plan(ORDINARY, hessian_lipschitz=0.2, **gaps)
    with pytest.raises(InvalidParameter, match=r"use RROSCTracked\.from_plan"):
        stoic.RROSC.from_plan(tracked)
    with pytest.raises(InvalidParameter, match=r"use tracked_plan or RROSC\.from_plan"):
        stoic.RROSCTracked.from_plan(theorem_3(ORDINARY, **gaps))
    stage = theorem_3(ORDINARY, **gaps).stages[0]
    with pytest.raises(InvalidParameter, match="take one from tracked_plan"):
        tracked_stage_terms(ORDINARY, stage, 1.0, hessian_lipschitz=0.2)


def test_a_linear_f_is_sent_to_theorem_3():
    linear = dataclasses.replace(ORDINARY, L_f=0.0)
    with pytest.raises(InvalidParameter, match=r"L_f=0 says that f is linear.*use theorem_3"):
        tracked_plan(linear, hessian_lipschitz=0.0, eps0=1.0, eps=0.1, delta=0.1)


@pytest.mark.parametrize("M_f", [-1.0, math.inf, math.nan, "1", None])
def test_a_constant_that_is_none_is_refused(M_f):
    with pytest.raises(InvalidParameter, match="hessian_lipschitz"):
        tracked_plan(ORDINARY, hessian_lipschitz=M_f, eps0=1.0, eps=0.1, delta=0.1)


@pytest.mark.parametrize(
    ("name", "value"), [("batch_size", 0), ("batch_size", 1.5), ("delta", 1.0), ("eps", 2.0), ("eps0", math.nan)]
)
def test_settings_out_of_range_are_refused(name, value):
    settings = {"hessian_lipschitz": 0.2, "eps0": 1.0, "eps": 0.1, "delta": 0.1} | {name: value}
    with pytest.raises(InvalidParameter, match=name):
        tracked_plan(ORDINARY, **settings)


@pytest.mark.parametrize("constant", ["C_f", "L_f", "C_g", "L_g", "sigma0", "sigma1", "mu"])
@pytest.mark.parametrize("value", [1e-300, 1e-160, 1e160, 1e300])
def test_constants_that_no_computer_can_count_with_are_refused_or_planned(constant, value):
    constants = dataclasses.replace(ORDINARY, **{constant: value})
    try:
        plan = tracked_plan(constants, hessian_lipschitz=0.2, eps0=1.0, eps=0.1, delta=0.1)
    except InvalidParameter:
        return
    assert all(0 < stage.step_size < math.inf and 0 < stage.weight <= 0.05 for stage in plan.stages)
