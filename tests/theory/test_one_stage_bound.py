"""One stage halves the gap: the bounds of Theorems 1, 2 and 3, term by term, for constants of all sizes."""

import dataclasses
import math

import numpy as np
import pytest

from stoic.means import n_vector_blocks
from stoic.theory.plans import Constants
from stoic.theory.theorems import one_stage_terms, theorem_1, theorem_2, theorem_3

ROUNDING = 1 + 1e-9


def cases(n, seed=0):
    """Constants, gap and delta spread over eight decades each; about one in three has a constant at 0."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        *values, eps0 = 10.0 ** rng.uniform(-4, 4, 8)
        values = np.where(rng.random(7) < 0.06, 0.0, values)
        values[6] = values[6] or 1.0  # mu
        yield Constants(*map(float, values)), float(eps0), float(10.0 ** rng.uniform(-8, -0.1))


def stages(plan):
    return zip(plan.stages, plan.gaps[:-1], strict=True)


def theorem_3_plans(n, seed=0):
    rng = np.random.default_rng(seed + 1)
    for constants, eps0, delta in cases(n, seed):
        m, c = (int(size) for size in 2.0 ** rng.integers(0, 8, 2))
        eps = eps0 * float(10.0 ** rng.uniform(-4, -0.01))
        plan = theorem_3(constants, eps0=eps0, eps=eps, delta=delta, batch_size=m, reference_block_size=c)
        yield constants, plan, m, c


def test_each_of_the_five_terms_of_rosc_is_at_most_a_tenth_of_the_gap():
    for constants, plan, _, _ in theorem_3_plans(2000):
        for stage, gap in stages(plan):
            assert max(one_stage_terms(constants, stage, gap)) <= gap / 10 * ROUNDING


def test_a_step_one_percent_longer_makes_a_term_of_rosc_exceed_a_tenth_of_the_gap():
    # T is 10/(μη) as in the plan, but not rounded up: the step is to be judged by itself.
    checked = 0
    for constants, plan, _, _ in theorem_3_plans(2000):
        if constants.C_f * (constants.sigma1 + constants.L_g) + constants.C_g * constants.L_f == 0.0:
            continue  # no noise and no curvature: every step is short enough
        for stage, gap in stages(plan):
            step_size = 1.01 * stage.step_size
            longer = dataclasses.replace(stage, step_size=step_size, n_steps=10 / (constants.mu * step_size))
            assert max(one_stage_terms(constants, longer, gap)) > gap / 10 * 1.004
            checked += 1
    assert checked > 2000


def test_the_step_of_rosc_suits_the_smoothness_of_the_problem():
    for constants, plan, _, _ in theorem_3_plans(2000):
        assert all(2 * constants.L * stage.step_size <= ROUNDING for stage in plan.stages)


def test_the_printed_bound_with_c_g_not_squared_would_not_do():
    constants = Constants(C_f=1.0, L_f=1.0, C_g=10.0, L_g=0.0, sigma0=0.0, sigma1=0.0, mu=1.0)
    stage = theorem_3(constants, eps0=1.0, eps=0.5, delta=0.1).stages[0]
    printed = 1 / (16 * 10.0 * 1.0 * (math.log(1 / stage.delta) + 1))
    stage = dataclasses.replace(stage, step_size=printed, n_steps=math.ceil(10 / printed))
    assert one_stage_terms(constants, stage, 1.0)[3] > 9 * 1.0 / 10


def test_the_conditions_of_bernsteins_inequality_hold_in_lemma_4():
    """The proof of Lemma 4 for B₂ and A₂, with everything divided by 2 C_f D and by C_f².

    It takes |γ| ≤ k, |Eγ| ≤ r, Eγ² ≤ s² from Lemma 8 (Lemma 9 for y) and needs
    exp(−((2ℓ+1)a)² / (2Ts² + (2/3)(k+r)(2ℓ+1)a)) ≤ δ′ and Tr + (2ℓ+1)a within the bound of Lemma 4. As γ is
    not centered, k + r stands where the paper has k; squares have γ ≥ 0, so that γ − Eγ ≤ k.
    """

    def tail(ell, a, s, k, T):
        return ((2 * ell + 1) * a) ** 2 / (2 * T * s**2 + 2 / 3 * k * (2 * ell + 1) * a)

    for constants, plan, m, c in theorem_3_plans(2000):
        for stage in plan.stages:
            T, D, ell = stage.n_steps, stage.radius, math.log(1 / stage.delta)
            for lipschitz, sigma, slack in (
                (constants.L_g, constants.sigma1, stage.levels.slack_z),
                (constants.C_g, constants.sigma0, stage.levels.slack_y),
            ):
                if sigma == 0.0:
                    continue  # nothing is random
                error, noise = math.sqrt(27 / c) * sigma, sigma / math.sqrt(m)
                M, lam = max(noise * math.sqrt(T), lipschitz * D), slack - error
                sup = 2 * lipschitz * D + 2 * error + lam  # 1) of Lemma 8
                bias = noise**2 / lam**2 * (lipschitz * D + error) + noise**2 / lam  # 2)
                rms = noise + (lipschitz * D + error) * noise / lam  # 3)
                a = 2 * M
                assert tail(ell, a, rms, sup + bias, T) * ROUNDING >= ell
                assert T * bias + (2 * ell + 1) * a <= 4 * (ell + 1) * M * ROUNDING
                a = 12 * M**2
                assert tail(ell, a, sup * rms, sup**2, T) * ROUNDING >= ell
                assert T * rms**2 + (2 * ell + 1) * a <= 8 * (3 * ell + 2) * M**2 * ROUNDING


@pytest.mark.parametrize("share_of_longest_step", [1.0, 0.1])
def test_both_terms_of_the_corrected_theorem_1_are_at_most_a_quarter_of_the_gap(share_of_longest_step):
    for constants, eps0, _ in cases(2000, seed=2):
        plan = theorem_1(constants, eps0=eps0, eps=eps0 / 100)
        if share_of_longest_step < 1:
            step_size = share_of_longest_step * plan.stages[0].step_size
            plan = theorem_1(constants, eps0=eps0, eps=eps0 / 100, step_size=step_size)
        for stage, gap in stages(plan):
            assert 2 * constants.L * stage.step_size <= ROUNDING
            assert max(theorem_1_terms(constants, stage, gap)) <= gap / 4 * ROUNDING


def theorem_1_terms(constants, stage, gap):
    """Sum of Lemma 7 over a stage with w = w_t*, where (μ/4)‖w_t − w_t*‖² ≤ (F(w_t) − F*)/2."""
    c, eta = constants, stage.step_size
    variance = 2 * eta * (c.C_f * c.sigma1) ** 2 + (2 * eta + 1 / c.mu) * (c.C_g * c.L_f * c.sigma0) ** 2
    return (2 / (c.mu * eta) + 1) * gap / stage.n_steps, 2 * variance / stage.batch_size


def test_the_recursion_of_theorem_1_halves_the_gap_at_its_worst():
    """Take a_1 + … + a_t ≤ gap/(μη) + (a_0 + … + a_{t−1})/2 + tV/m with equality: the worst gaps a_t."""
    constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    plan = theorem_1(constants, eps0=1.0, eps=0.1)
    for stage, gap in stages(plan):
        noise = theorem_1_terms(constants, stage, gap)[1] / 2
        worst = [gap]
        for t in range(1, stage.n_steps + 1):
            bound = gap / (constants.mu * stage.step_size) + sum(worst) / 2 + t * noise
            worst.append(bound - sum(worst[1:]))
        assert np.mean(worst[1:]) <= gap / 2 * ROUNDING


def test_the_printed_steps_of_theorem_1_would_not_do():
    constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    stage = theorem_1(constants, eps0=1.0, eps=0.5).stages[0]
    printed = dataclasses.replace(stage, n_steps=math.ceil(4 / (constants.mu * stage.step_size)))
    assert theorem_1_terms(constants, printed, 1.0)[0] > 1.0 / 2


def test_both_terms_of_theorem_2_are_at_most_a_quarter_of_the_gap_with_whole_blocks():
    for constants, eps0, delta in cases(2000, seed=3):
        c = constants
        for stage, gap in stages(theorem_2(constants, eps0=eps0, eps=eps0 / 100, delta=delta)):
            eta, n_blocks = stage.step_size, n_vector_blocks(stage.delta)
            squared_error = 27 / (stage.batch_size // n_blocks)  # of Algorithm 1, for sigma = 1
            noise = (c.C_g * c.L_f * c.sigma0) ** 2 + (c.C_f * c.sigma1) ** 2
            assert 2 * c.L * eta <= ROUNDING
            assert (2 / (c.mu * eta) + 1) * gap / stage.n_steps <= gap / 4 * ROUNDING
            assert 4 * (eta + 1 / c.mu) * noise * squared_error <= gap / 4 * ROUNDING
            printed = 16 * (c.mu * eta + 1) * noise * 486 * math.log(1 / stage.delta) / (c.mu * gap)
            assert squared_error * printed <= 486 * math.log(1 / stage.delta) * ROUNDING
