"""The plan with growing batches: six terms, each small enough, and no more samples than the theorem says.

The formulas of docs/growing.md stand here once more: what is checked is not compared with itself.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import stoic
from stoic.errors import InvalidParameter
from stoic.theory.growing_batches import growing_plan, growing_stage_terms
from stoic.theory.plans import Constants
from stoic.theory.theorems import theorem_3

ROUNDING = 1 + 1e-9
ORDINARY = Constants(C_f=1.0, L_f=0.5, C_g=2.0, L_g=0.5, sigma0=1.0, sigma1=3.0, mu=0.1)


def plans(n, seed=0):
    """Yield plans for constants, gaps and delta that spread over several decades; some constants are 0."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        *values, M_f, eps0 = 10.0 ** rng.uniform(-3, 3, 9)
        values = np.where(rng.random(7) < 0.06, 0.0, values)
        values[6] = values[6] or 1.0  # mu
        constants, eps = Constants(*map(float, values)), eps0 * float(10.0 ** rng.uniform(-3, -0.01))
        settings = {"eps0": float(eps0), "eps": eps, "delta": float(10.0 ** rng.uniform(-6, -0.1))}
        yield constants, float(M_f), growing_plan(constants, hessian_lipschitz=float(M_f), **settings)


def transcribed_bias(constants, M_f):
    """X of the page: 2D times the biases (b) of ∇f(ŷ) and (c) of the product is DX/m."""
    k = constants
    of_f = k.C_g * M_f * k.sigma0**2 / 2
    of_product = k.L_f * k.sigma0 * k.sigma1
    return 2 * (of_f + of_product)


def transcribed_terms(constants, M_f, stage, gap):
    """The distance, A₁, A₂, B₁, B₂ and the new bias, from the sums over a stage that the page bounds."""
    k, eta, T, m = constants, stage.step_size, stage.n_steps, stage.batch_size
    ell, D = math.log(1 / stage.delta), math.sqrt(2 * gap / k.mu)
    M_y, M_z = max(k.sigma0 * math.sqrt(T / m), k.C_g * D), max(k.sigma1 * math.sqrt(T / m), k.L_g * D)
    squares_y, squares_z = (8 * (3 * ell + 2) * M**2 for M in (M_y, M_z))
    along_y, along_z = (8 * D * (ell + 1) * M for M in (M_y, M_z))
    return (
        D**2 / (2 * eta) / T,
        2 * eta * (k.C_g * k.L_f) ** 2 * squares_y / T,
        2 * eta * k.C_f**2 * squares_z / T,
        k.C_g * k.L_f * along_y / T,
        k.C_f * along_z / T,
        D * transcribed_bias(k, M_f) / m,
    )


def test_each_of_the_six_terms_is_at_most_a_twelfth_of_the_gap():
    found, transcribed = [], []
    for constants, M_f, plan in plans(1000):
        for stage, gap in zip(plan.stages, plan.gaps[:-1], strict=True):
            found.append(growing_stage_terms(constants, stage, gap, hessian_lipschitz=M_f))
            transcribed.append(transcribed_terms(constants, M_f, stage, gap))
            assert max(found[-1]) <= gap / 12 * ROUNDING
    np.testing.assert_allclose(found, transcribed, rtol=1e-9)


def test_the_batch_the_step_and_the_length_are_those_of_the_page():
    for constants, M_f, plan in plans(300, seed=1):
        k = constants
        for stage, gap in zip(plan.stages, plan.gaps[:-1], strict=True):
            ell = math.log(1 / stage.delta)
            m = max(1, math.ceil(12 * transcribed_bias(k, M_f) * math.sqrt(2 / (k.mu * gap))))
            assert stage.batch_size == pytest.approx(m, rel=1e-9)
            noise = 1536 * (ell + 1) ** 2 * max(k.C_g * k.L_f * k.sigma0, k.C_f * k.sigma1) ** 2 / (m * gap)
            curvature = 16 * (ell + 1) * max(k.C_g**2 * k.L_f, k.C_f * k.L_g)
            if noise or curvature:
                assert stage.step_size == pytest.approx(1 / max(noise, curvature), rel=1e-9)
            least = max(12 / (k.mu * stage.step_size), 27 * m, 2 * ell * (2 * ell + 1) / 3)
            assert stage.n_steps == pytest.approx(math.ceil(least), rel=1e-9)
            assert (plan.n_stages * 6 * stage.delta, stage.reference_size) == (
                pytest.approx(1 - plan.success_probability),
                math.ceil(18 * ell),
            )


def test_bernsteins_inequality_includes_the_bias_of_a_shared_batch():
    """B₁ and B₂ of the page, with a = 4CDM divided out: u is σ√(T/m)/M ≤ 1.

    γ is at most 3a and its conditional mean at most ua/(2√T), whatever that mean is made of; V ≤ u²a²/4; the bias
    of truncation adds at most ua. And A₁, A₂, with C²M² divided out.
    """
    rng = np.random.default_rng(0)
    ell, T, u = rng.exponential(5.0, 40_000), 1 + rng.exponential(20.0, 40_000), rng.random(40_000)
    largest, V = 3 + u / (2 * np.sqrt(T)), u**2 / 4
    assert (np.sqrt(2 * V * ell) + largest * ell / 3 + u <= 2 * (ell + 1)).all()
    assert (u**2 + np.sqrt(2 * 36 * u**2 * ell) + 36 * ell / 3 <= 8 * (3 * ell + 2)).all()


def test_a_batch_smaller_by_one_would_not_do():
    checked = 0
    for constants, M_f, plan in plans(300):
        for stage, gap in zip(plan.stages, plan.gaps[:-1], strict=True):
            if stage.batch_size > 1:
                smaller = dataclasses.replace(stage, batch_size=stage.batch_size - 1)
                assert transcribed_terms(constants, M_f, smaller, gap)[5] > gap / 12 / ROUNDING
                checked += 1
    assert checked > 300


def test_batches_and_stages_grow_by_the_root_of_two_and_steps_shrink_by_it():
    plan = growing_plan(ORDINARY, hessian_lipschitz=0.2, eps0=1e-3, eps=1e-6, delta=0.05)
    for one, following in zip(plan.stages, plan.stages[1:], strict=False):
        assert following.batch_size == pytest.approx(math.sqrt(2.0) * one.batch_size, rel=1e-2)
        assert following.n_steps == pytest.approx(math.sqrt(2.0) * one.n_steps, rel=1e-2)
        assert following.step_size == pytest.approx(one.step_size / math.sqrt(2.0), rel=1e-2)


def test_samples_are_of_the_order_of_one_over_eps():
    settings = {"hessian_lipschitz": 0.2, "eps0": 1e-3, "delta": 0.05}
    few, many = (growing_plan(ORDINARY, eps=eps, **settings) for eps in (1e-5, 1e-6))
    assert many.samples / few.samples == pytest.approx(10.0, rel=0.5)  # δ is shared among more stages
    assert many.success_probability == pytest.approx(0.95)


def test_for_a_linear_f_the_batch_is_one_sample_and_the_plan_nearly_that_of_theorem_3():
    linear = dataclasses.replace(ORDINARY, L_f=0.0)
    gaps = {"eps0": 1.0, "eps": 0.01, "delta": 0.1}
    ours, paper = growing_plan(linear, hessian_lipschitz=0.0, **gaps), theorem_3(linear, **gaps)
    assert {stage.batch_size for stage in ours.stages} == {1}
    assert ours.samples / paper.samples == pytest.approx(1.44, rel=1e-2)  # 12 for 10, in η and in T


def test_the_plan_of_a_kl_problem_is_run_by_rrosc():
    outer = stoic.LogSumExp(2.0)
    constants = dataclasses.replace(ORDINARY, L_f=outer.smoothness)
    plan = growing_plan(constants, hessian_lipschitz=outer.hessian_lipschitz, eps0=1.0, eps=0.3, delta=0.1)
    solver = stoic.RROSC.from_plan(plan)
    assert [stage.batch_size for stage in solver.stages] == [stage.batch_size for stage in plan.stages]


@pytest.mark.parametrize("M_f", [-1.0, math.inf, math.nan, "1", None])
def test_a_constant_that_is_none_is_refused(M_f):
    with pytest.raises(InvalidParameter, match="hessian_lipschitz"):
        growing_plan(ORDINARY, hessian_lipschitz=M_f, eps0=1.0, eps=0.1, delta=0.1)


def bias_of_a_shared_batch(m, *, f_slope, z):
    """Return |E zᵀ(f′(y) − f′(0))| for y the mean of m fair signs and z that of z(sign), over all 2^m batches."""
    batches = np.array(list(itertools.product((-1.0, 1.0), repeat=m)))
    y = batches.mean(axis=1)
    return abs(float((z(batches).mean(axis=1) * (f_slope(y) - f_slope(0.0))).mean()))


@pytest.mark.parametrize("m", [1, 3, 8])
def test_the_bias_is_what_a_shared_batch_attains_where_z_follows_y(m):
    # f(u) = 0.7u²/2 has M_f = 0; y = sign, z = 1.5·sign: σ₀ = 1, σ₁ = 1.5. Over a ball the gap pays for 2D.
    constants = dataclasses.replace(ORDINARY, L_f=0.7, sigma0=1.0, sigma1=1.5)
    stage = growing_plan(constants, hessian_lipschitz=0.0, eps0=1.0, eps=0.5, delta=0.1).stages[0]
    stage = dataclasses.replace(stage, batch_size=m, radius=2.0)
    bias = bias_of_a_shared_batch(m, f_slope=lambda u: 0.7 * u, z=lambda sign: 1.5 * sign)
    term = growing_stage_terms(constants, stage, 1.0, hessian_lipschitz=0.0)[5]
    assert term == pytest.approx(2 * 2.0 * bias)


@pytest.mark.parametrize("m", [1, 3, 8])
def test_the_bias_is_what_a_curved_slope_attains_where_z_is_certain(m):
    # f(u) = 0.3u³/6 has M_f = 0.3 and ∇²f(0) = 0; z = 2 = C_g is not random.
    constants = dataclasses.replace(ORDINARY, C_g=2.0, sigma0=1.0, sigma1=0.0)
    stage = growing_plan(constants, hessian_lipschitz=0.3, eps0=1.0, eps=0.5, delta=0.1).stages[0]
    stage = dataclasses.replace(stage, batch_size=m, radius=2.0)
    bias = bias_of_a_shared_batch(m, f_slope=lambda u: 0.3 * u**2 / 2, z=lambda sign: np.full_like(sign, 2.0))
    term = growing_stage_terms(constants, stage, 1.0, hessian_lipschitz=0.3)[5]
    assert term == pytest.approx(2 * 2.0 * bias)


def test_a_block_of_the_reference_is_one_sample_unless_it_is_said_otherwise():
    gaps = {"hessian_lipschitz": 0.2, "eps0": 1.0, "eps": 0.1, "delta": 0.1}
    assert all(stage.reference_size == stage.n_blocks for stage in growing_plan(ORDINARY, **gaps).stages)
    larger = growing_plan(ORDINARY, **gaps, reference_block_size=3)
    assert all(stage.reference_size == 3 * stage.n_blocks for stage in larger.stages)
