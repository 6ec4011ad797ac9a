r"""Plans for a tracked y, with a proof: RROSC with one batch a step for a non-linear f.

∇f is taken at a moving average of earlier batches. What that costs is of the order of the average's weight and not
of 1/m, so that no batch has to grow. If ∇²f is Lipschitz, the plan below ends at the gap that it is asked for.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from stoic.checks import check_count, check_probability
from stoic.errors import InvalidParameter
from stoic.theory.plans import Constants, Plan, TruncatedStage, check_hessian_lipschitz
from stoic.theory.theorems import complete_stage, gaps_at_starts, round_up, usable_step


def tracked_plan(
    constants: Constants,
    *,
    hessian_lipschitz: float,
    eps0: float,
    eps: float,
    delta: float,
    batch_size: int = 1,
) -> Plan[TruncatedStage]:
    r"""Plan RROSC with a tracked y: F(w_K) − F* ≤ ε with probability 1 − δ for a non-linear f, at a constant m.

    With :math:`C_g` at least :math:`\sqrt{\mu/L_f}`, :math:`\Lambda = L_fC_g^2`, :math:`\kappa = \Lambda/\mu`,
    :math:`P = 2L_fL_g + 4C_g^2M_f`, :math:`\delta' = \delta/(10K)` and :math:`\ell = \ln(1/\delta')`, the stage
    that starts with gap e has

    .. math::
        \theta &= \max\Big\{1,\; \frac{320\, P^2}{\mu^2L_f}\, e\Big\}, \qquad
        \ell_2 = \ln\frac{2\lceil 6401\,\theta\kappa\rceil}{\delta'}, \\
        \eta &= \min\Big\{ \frac{m e}{7\cdot 10^5\,\theta^2\ell_2^2(C_gL_f\sigma_0)^2},\;
        \frac{m e}{6000(\ell+1)^2(C_f\sigma_1)^2},\; \frac{1}{190\,\theta\ell_2\Lambda},\;
        \frac{1}{18(\ell+1)C_fL_g},\; \frac{1}{m\mu} \Big\}, \\
        T &= \Big\lceil \frac{40}{\mu\eta} \Big\rceil, \qquad \beta = 80\,\theta\Lambda\eta, \qquad
        c = \max\Big\{1, \Big\lceil \frac{13.5\,\mu\sigma_0^2}{C_g^2e} \Big\rceil\Big\},

    the weight β of a batch in y, and ball, reference and levels as in `theorem_3`. Once
    :math:`\theta = 1` and the noise binds, η halves and T doubles from stage to stage: the total is
    :math:`O(\log^2(\kappa/\delta')/(\mu\epsilon))`.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1, with C_f and L_f on all of R^p, where y may be.
    hessian_lipschitz : float
        M_f, a Lipschitz constant of ∇²f; `LogSumExp` has it as an attribute.
    eps0, eps : float
        Bounds on the gap F − F* at the start and at the end, eps < eps0.
    delta : float
        Total probability of failure.
    batch_size : int, default 1
        m, the same in all stages.

    Returns
    -------
    Plan
        `RROSCTracked.from_plan` runs it.

    Raises
    ------
    InvalidParameter
        If f is linear (``L_f = 0``), the gaps are not 0 < eps < eps0, delta is not in (0, 1), the batch is not
        a positive whole number, or M_f is negative or not finite.

    Notes
    -----
    The proof is in ``docs/tracked_proof.md``. The constants are large, and `growing_plan` is nearly always the
    cheaper plan. What this one shows is that a tracked y needs no growing batch. The defaults of `RROSCTracked`
    are not those of the plan, and carry no guarantee.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.0, sigma0=0.01, sigma1=0.1, mu=0.5)
    >>> plan = tracked_plan(constants, hessian_lipschitz=0.01, eps0=0.5, eps=0.1, delta=0.05)
    >>> [stage.batch_size for stage in plan.stages], round(plan.success_probability, 3)
    ([1, 1, 1], 0.95)
    >>> f"{plan.samples:.1e}", f"{plan.stages[0].weight:.3f}"
    ('7.5e+06', '0.002')
    """
    gaps = gaps_at_starts(eps0, eps)
    share = check_probability("delta", delta) / (10 * len(gaps))
    m, M_f = check_count("batch_size", batch_size), check_hessian_lipschitz(hessian_lipschitz)
    scales = _scales(constants, M_f)
    stages = tuple(_stage(scales, gap, share, m) for gap in gaps)
    return Plan(stages, float(eps0), float(eps), 1.0 - delta)


def tracked_stage_terms(
    constants: Constants, stage: TruncatedStage, eps: float, *, hessian_lipschitz: float
) -> tuple[float, ...]:
    r"""Return the eleven terms of the one-stage bound for a tracked y; their sum over 0.694 bounds the gap.

    They are those of Step 7 in ``docs/tracked_proof.md``, where the letters are explained: the distance to the
    optimum (1, 2), the noise of ∇g (3, 4), the error of the reference (5), the noise of y (6, 7), Taylor's
    remainder (8), and y's way to the optimum (9, 10, 11). The plan of `tracked_plan` makes each at most ε/33, so
    that the gap after the stage is at most (ε/3)/0.694 < ε/2.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    stage : TruncatedStage
        The settings; the weight has to be :math:`80\theta\Lambda\eta`, as in the plan.
    eps : float
        The gap at the start of the stage.
    hessian_lipschitz : float
        M_f.

    Returns
    -------
    tuple of eleven floats

    Raises
    ------
    InvalidParameter
        If f is linear, the stage has no weight, or M_f is negative or not finite.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.0, sigma0=0.01, sigma1=0.1, mu=0.5)
    >>> plan = tracked_plan(constants, hessian_lipschitz=0.01, eps0=0.5, eps=0.1, delta=0.05)
    >>> terms = tracked_stage_terms(constants, plan.stages[0], 0.5, hessian_lipschitz=0.01)
    >>> len(terms), max(terms) <= 0.5 / 33
    (11, True)
    """
    scales = _scales(constants, check_hessian_lipschitz(hessian_lipschitz))
    k, theta = scales.constants, scales.theta(eps)
    eta, T, D, m, beta = stage.step_size, stage.n_steps, stage.radius, stage.batch_size, stage.weight
    if beta is None:
        raise InvalidParameter("The stage has no weight for a tracked y; take one from tracked_plan.")
    ell, ell2 = math.log(1.0 / stage.delta), math.log(2.0 * math.ceil(2.0 * beta * T) / stage.delta)
    sigma_y, sigma_z = k.sigma0 / math.sqrt(m), k.sigma1 / math.sqrt(m)
    M_y, M_z = max(sigma_y * math.sqrt(T), k.C_g * D), max(sigma_z * math.sqrt(T), k.L_g * D)
    error = math.sqrt(27.0 * stage.n_blocks / stage.reference_size) * k.sigma0  # νσ₀
    B_N = 2.0 * math.sqrt(beta * ell2) * sigma_y + 4.1 * beta * M_y * ell2  # Step 6e
    E = 2.0 * k.C_g * D + error + B_N + 2.0 * sigma_y / math.sqrt(T)
    of_noise = 8.15 * ell * (7.0 * M_y * B_N + 4.0 * sigma_y**2) + 88.0 * beta * (3.0 * ell + 2.0) * M_y**2
    return (
        D * D / (2.0 * eta * T),
        0.306 * eps * (1.0 + 1.0 / beta) / T,
        2.62 * 8.0 * eta * (3.0 * ell + 2.0) * (k.C_f * M_z) ** 2 / T,
        1.306 * 8.0 * k.C_f * D * (ell + 1.0) * M_z / T,
        6.11 * theta * k.L_f * error**2 / (beta * T),
        theta * k.L_f * of_noise / T,
        (57.0 + 32.0 * ell) * theta * k.L_f * sigma_y**2 / T,
        2.0 * (scales.P * D * D) ** 2 / (theta * k.L_f),
        8.0 * k.C_g * k.L_f * D * (ell + 1.0) * M_y / T,
        7.0 * ell * k.L_f * E * M_y / T,
        k.L_f * E * E / (beta * T),
    )


class _Scales(NamedTuple):
    """The constants with the C_g of the proof, and P and 1/e₁ that follow from them."""

    constants: Constants
    P: float
    inverse_e1: float

    @property
    def Lambda(self) -> float:  # noqa: N802 - the letter of the proof
        return self.constants.L_f * self.constants.C_g * self.constants.C_g

    def theta(self, gap: float) -> float:
        """Return by how much y has to be faster than at small gaps."""
        return max(1.0, gap * self.inverse_e1)


def _scales(constants: Constants, M_f: float) -> _Scales:
    L_f, mu = constants.L_f, constants.mu
    if L_f == 0.0:
        raise InvalidParameter("L_f=0 says that f is linear, where y needs no tracking; use theorem_3.")
    C_g = max(constants.C_g, math.sqrt(mu / L_f))
    P = 2.0 * L_f * constants.L_g + 4.0 * C_g * C_g * M_f
    return _Scales(replace(constants, C_g=C_g), P, 320.0 * (P / mu) * (P / mu) / L_f)


def _stage(scales: _Scales, gap: float, delta: float, m: int) -> TruncatedStage:
    k, theta, Lambda = scales.constants, scales.theta(gap), scales.Lambda
    ell, ell2 = math.log(1.0 / delta), math.log(2.0 / delta * round_up("n_steps", 6401.0 * theta * Lambda / k.mu))
    noise_y, noise_z = theta * ell2 * k.C_g * k.L_f * k.sigma0, (ell + 1.0) * k.C_f * k.sigma1
    bounds = (
        7e5 * noise_y * noise_y / m / gap,  # term 6
        6000.0 * noise_z * noise_z / m / gap,  # term 4
        190.0 * theta * ell2 * Lambda,  # term 6 where M_y = C_g D
        18.0 * (ell + 1.0) * k.C_f * k.L_g,  # term 4 where M_z = L_g D
        m * k.mu,  # νσ₁ ≤ σ₁√(T/m)
    )
    step_size = usable_step(1.0 / max(bounds) if all(map(math.isfinite, bounds)) else 0.0)
    n_steps = round_up("n_steps", 40.0 / k.mu / step_size)
    spread = k.sigma0 / k.C_g
    c = round_up("reference_block_size", 13.5 * k.mu * spread * spread / gap)  # νσ₀ ≤ C_g D
    stage = complete_stage(k, gap, delta, step_size, n_steps, m, c)
    return replace(stage, weight=80.0 * theta * Lambda * step_size)
