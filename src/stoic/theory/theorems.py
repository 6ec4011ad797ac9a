r"""Theorems 1, 2 and 3 as code: from the constants of Assumption 1 to the settings of every stage.

A stage starts with a gap :math:`F(w) - F_* \le \epsilon_{k-1}` and ends with half of that, so that
:math:`K = \lceil \log_2(\epsilon_0 / \epsilon) \rceil` stages suffice. Other logarithms are natural.
"""

import math

from stoic.checks import check_count, check_positive, check_probability
from stoic.errors import InvalidParameter
from stoic.means import n_vector_blocks
from stoic.theory.plans import Constants, Plan, Stage, TruncatedStage
from stoic.truncation import Levels


def theorem_1(constants: Constants, *, eps0: float, eps: float, step_size: float | None = None) -> Plan[Stage]:
    r"""Plan RMSCG with plain means: :math:`\mathrm E[F(w_K) - F_*] \le \epsilon`.

    .. math::
        T = \Big\lceil \frac{8}{\mu\eta} + 4 \Big\rceil, \qquad
        m_k = \Big\lceil \frac{8}{\mu\epsilon_{k-1}} \big(2\mu\eta C_f^2\sigma_1^2
        + 2\mu\eta C_g^2L_f^2\sigma_0^2 + C_g^2L_f^2\sigma_0^2\big) \Big\rceil.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    eps0, eps : float
        Bounds on the gap F − F* at the start and at the end, eps < eps0.
    step_size : float, optional
        η ≤ 1/(2L). By default min(1/(2L), 1/μ): where r and not f∘g makes F grow, a longer step buys nothing.

    Returns
    -------
    Plan
        With ``success_probability=None``: the statement is one in expectation. Markov's inequality makes it
        F(w_K) − F* ≤ ε/δ with probability 1 − δ, a price that Theorem 2 avoids.

    Raises
    ------
    InvalidParameter
        If the gaps are not 0 < eps < eps0 or the step is too long.

    Notes
    -----
    The printed constants are smaller: the proof drops the term Σ (μ/4) dist(w_t, W*)² of its own Lemma 7.
    Bounded by half of Σ (F(w_t) − F*), it gives, with V = 2η(C_f²σ₁² + C_g²L_f²σ₀²) + C_g²L_f²σ₀²/μ,

    .. math::
        \mathrm E[F(\hat w_T) - F_*] \le \Big(\frac{2}{\mu\eta} + 1\Big)\frac{\epsilon_{k-1}}{T}
        + \frac{2V}{m_k} \le \frac{\epsilon_{k-1}}{4} + \frac{\epsilon_{k-1}}{4}.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    >>> plan = theorem_1(constants, eps0=1.0, eps=0.25)
    >>> plan.stages[0]
    Stage(step_size=0.5, n_steps=164, batch_size=30, delta=None)
    >>> plan.samples, plan.success_probability
    (29520, None)
    """
    gaps = gaps_at_starts(eps0, eps)
    step_size = _step_size(constants, step_size)
    mu, growth = constants.mu, constants.mu * step_size
    y_noise, z_noise = _squared_gradient_noise(constants)
    noise = 8.0 * (2.0 * growth * z_noise + (2.0 * growth + 1.0) * y_noise)
    n_steps = round_up("n_steps", 8.0 / mu / step_size + 4.0)
    stages = (Stage(step_size, n_steps, round_up("batch_size", noise / mu / gap)) for gap in gaps)
    return Plan(tuple(stages), float(eps0), float(eps), None)


def theorem_2(
    constants: Constants, *, eps0: float, eps: float, delta: float, step_size: float | None = None
) -> Plan[Stage]:
    r"""Plan RMSCG with robust means: F(w_K) − F* ≤ ε with probability 1 − δ, for any smooth f.

    With :math:`\delta' = \delta/(2TK)`, one share for each robust mean, and
    :math:`n = \lceil 18\ln(1/\delta')\rceil` blocks,

    .. math::
        T = \Big\lceil 4\Big(\frac{2}{\mu\eta} + 1\Big) \Big\rceil, \qquad
        m_k = n \Big\lceil \frac{16 \cdot 27 (\mu\eta + 1)(C_g^2L_f^2\sigma_0^2 + C_f^2\sigma_1^2)}
        {\mu\epsilon_{k-1}} \Big\rceil.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    eps0, eps : float
        Bounds on the gap F − F* at the start and at the end, eps < eps0.
    delta : float
        Total probability of failure.
    step_size : float, optional
        η ≤ 1/(2L); by default min(1/(2L), 1/μ).

    Returns
    -------
    Plan
        With ``success_probability = 1 - delta``; ``stage.delta`` is δ′.

    Raises
    ------
    InvalidParameter
        If the gaps are not 0 < eps < eps0, the step is too long, or delta is not in (0, 1).

    Notes
    -----
    The paper has 486 ln(1/δ′) = 27 · 18 ln(1/δ′) in the place of 27n, and no rounding. With whole blocks the
    squared error of a mean is at most 27σ²/⌊m_k/n⌋, so it is the size of a block that is rounded up. With
    probability 1 − 2Tδ′ a stage then ends with

    .. math::
        F(\hat w_T) - F_* \le \Big(\frac{2}{\mu\eta} + 1\Big)\frac{\epsilon_{k-1}}{T}
        + \frac{4(\mu\eta + 1)(C_g^2L_f^2\sigma_0^2 + C_f^2\sigma_1^2)}{\mu} \cdot \frac{27}{m_k/n}
        \le \frac{\epsilon_{k-1}}{4} + \frac{\epsilon_{k-1}}{4}.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    >>> plan = theorem_2(constants, eps0=1.0, eps=0.25, delta=0.05)
    >>> stage = plan.stages[0]
    >>> stage.n_steps, stage.batch_size, round(plan.success_probability, 3)
    (164, 969570, 0.95)
    >>> round(stage.delta * 2 * stage.n_steps * plan.n_stages, 3)
    0.05
    """
    gaps = gaps_at_starts(eps0, eps)
    delta = check_probability("delta", delta)
    step_size = _step_size(constants, step_size)
    mu = constants.mu
    noise = 16.0 * 27.0 * (mu * step_size + 1.0) * sum(_squared_gradient_noise(constants))
    n_steps = round_up("n_steps", 4.0 * (2.0 / mu / step_size + 1.0))
    share = delta / (2 * n_steps * len(gaps))
    block_sizes = (round_up("batch_size", noise / mu / gap) for gap in gaps)
    stages = (Stage(step_size, n_steps, n_vector_blocks(share) * size, share) for size in block_sizes)
    return Plan(tuple(stages), float(eps0), float(eps), 1.0 - delta)


def theorem_3(
    constants: Constants,
    *,
    eps0: float,
    eps: float,
    delta: float,
    batch_size: int = 1,
    reference_block_size: int = 1,
) -> Plan[TruncatedStage]:
    r"""Plan RROSC: F(w_K) − F* ≤ ε with probability 1 − δ for a linear f, by O(log²(1/δ)/(με)) samples.

    With :math:`\delta' = \delta/(6K)`, :math:`\ell = \ln(1/\delta')`, a reference of
    :math:`\lceil 18\ell \rceil` blocks of c samples and :math:`\nu = \sqrt{27/c}`, the stage that starts with
    gap e has

    .. math::
        \eta = \min\Big\{ \frac{m e}{1280(\ell+1)^2 \max(C_gL_f\sigma_0, C_f\sigma_1)^2},\;
        \frac{1}{16(\ell+1)\max(C_g^2L_f, C_fL_g)} \Big\}, \qquad D = \sqrt{2e/\mu},

    .. math::
        T = \Big\lceil \max\Big\{ \frac{10}{\mu\eta}, \frac{27m}{c}, \frac{2\ell(2\ell+1)}{3} \Big\}
        \Big\rceil, \quad \lambda_y = \max(C_gD, \sigma_0\sqrt{T/m}) + \nu\sigma_0, \quad
        \lambda_z = \max(L_gD, \sigma_1\sqrt{T/m}) + \nu\sigma_1.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    eps0, eps : float
        Bounds on the gap F − F* at the start and at the end, eps < eps0.
    delta : float
        Total probability of failure.
    batch_size : int, default 1
        m, the same in all stages.
    reference_block_size : int, default 1
        c.

    Returns
    -------
    Plan
        ``success_probability`` is 1 − delta for ``L_f = 0``, else None. The slacks in ``stage.levels``
        are λ + νσ: all that (4) and (5) add to C_g‖w − w₀‖ and L_g‖w − w₀‖.

    Raises
    ------
    InvalidParameter
        If the gaps are not 0 < eps < eps0, delta is not in (0, 1), or a size is not a positive whole number.

    Notes
    -----
    For a non-linear f the paper claims the same, which is false: with a constant batch E∇f(y) differs from
    ∇f(g), and the gap stops at a floor that depends on m. `growing_plan`, `tracked_plan` and the plan of
    Theorem 2 have none.

    T ≥ 27m/c is Lemma 4's ν ≤ √T for a ν that multiplies σ and not σ/√m; T ≥ 2ℓ(2ℓ+1)/3 is needed because
    Bernstein's inequality asks for centered variables. `one_stage_terms` gives what a stage achieves.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.0, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    >>> plan = theorem_3(constants, eps0=1.0, eps=0.1, delta=0.05)
    >>> [stage.n_steps for stage in plan.stages]
    [6587291, 13174582, 26349163, 52698325]
    >>> stage = plan.stages[0]
    >>> stage.n_blocks, stage.reference_size, round(stage.radius, 3), round(plan.success_probability, 3)
    (112, 112, 4.472, 0.95)
    """
    gaps = gaps_at_starts(eps0, eps)
    share = check_probability("delta", delta) / (6 * len(gaps))
    m, c = check_count("batch_size", batch_size), check_count("reference_block_size", reference_block_size)
    stages = tuple(truncated_stage(constants, gap, share, m, c) for gap in gaps)
    return Plan(stages, float(eps0), float(eps), 1.0 - delta if constants.L_f == 0.0 else None)


def one_stage_terms(
    constants: Constants, stage: TruncatedStage, eps: float
) -> tuple[float, float, float, float, float]:
    r"""Return the five terms of the one-stage bound of ROSC, whose sum bounds the gap after `stage`.

    .. math::
        \frac{\epsilon}{\mu\eta T},\quad
        \frac{16\eta C_g^2L_f^2(3\ell+2)}{T} M_y^2,\quad \frac{16\eta C_f^2(3\ell+2)}{T} M_z^2,\quad
        \frac{8C_gL_fD(\ell+1)}{T} M_y,\quad \frac{8C_fD(\ell+1)}{T} M_z,

    with :math:`\ell = \ln(1/\delta')`, :math:`M_y = \max(\sigma_0\sqrt{T/m}, C_gD)` and
    :math:`M_z = \max(\sigma_1\sqrt{T/m}, L_gD)`. The plan of `theorem_3` makes each at most ε/10.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    stage : TruncatedStage
        The settings; δ′ is its `delta`, the share of one event.
    eps : float
        The gap at the start of the stage.

    Returns
    -------
    tuple of five floats
        The distance term, then A₁, A₂, B₁ and B₂ of Lemma 4.

    Notes
    -----
    The bounds on B₁ and B₂ are proven for a linear f only, where the terms of A₁ and B₁ are 0.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.0, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    >>> plan = theorem_3(constants, eps0=1.0, eps=0.1, delta=0.05)
    >>> [round(term, 4) for term in one_stage_terms(constants, plan.stages[0], 1.0)]
    [0.1, 0.0, 0.005, 0.0, 0.1]
    """
    c, eta, T, D = constants, stage.step_size, stage.n_steps, stage.radius
    ell = math.log(1.0 / stage.delta)
    M_y = max(c.sigma0 * math.sqrt(T / stage.batch_size), c.C_g * D)
    M_z = max(c.sigma1 * math.sqrt(T / stage.batch_size), c.L_g * D)
    return (
        eps / (c.mu * eta * T),
        16.0 * eta * (3.0 * ell + 2.0) * (c.C_g * c.L_f * M_y) ** 2 / T,
        16.0 * eta * (3.0 * ell + 2.0) * (c.C_f * M_z) ** 2 / T,
        8.0 * (ell + 1.0) * D * c.C_g * c.L_f * M_y / T,
        8.0 * (ell + 1.0) * D * c.C_f * M_z / T,
    )


def truncated_stage(
    constants: Constants, gap: float, delta: float, m: int, c: int, n_terms: int = 5
) -> TruncatedStage:
    """Return the stage that makes each of `n_terms` terms of its bound at most its share of half the gap."""
    ell, parts = math.log(1.0 / delta), 2.0 * n_terms
    step_size = _truncated_step_size(constants, gap, ell, m, parts)
    n_steps = round_up(
        "n_steps", max(parts / constants.mu / step_size, 27.0 * m / c, 2.0 * ell * (2.0 * ell + 1.0) / 3.0)
    )
    return complete_stage(constants, gap, delta, step_size, n_steps, m, c)


def complete_stage(
    constants: Constants, gap: float, delta: float, step_size: float, n_steps: int, m: int, c: int
) -> TruncatedStage:
    """Return a stage with the ball, the reference and the levels that go with its step and its length."""
    radius = math.sqrt(2.0 * gap / constants.mu)
    nu, root = math.sqrt(27.0 / c), math.sqrt(n_steps / m)

    def slack(lipschitz: float, sigma: float) -> float:  # λ + νσ of (4) and (5)
        return max(lipschitz * radius, sigma * root) + 2.0 * nu * sigma

    C_g, L_g = constants.C_g, constants.L_g
    levels = Levels(C_g, L_g, slack(C_g, constants.sigma0), slack(L_g, constants.sigma1))
    return TruncatedStage(step_size, n_steps, m, radius, c * n_vector_blocks(delta), delta, levels)


def _truncated_step_size(constants: Constants, gap: float, ell: float, m: int, parts: float) -> float:
    """Return the smallest bound on η of the appendix, 4) or 5): the others and 1/(2L) never bind."""
    noise = 128.0 * parts * (ell + 1.0) * (ell + 1.0) * max(_squared_gradient_noise(constants))
    curvature = (
        16.0 * (ell + 1.0) * max(constants.C_g * constants.C_g * constants.L_f, constants.C_f * constants.L_g)
    )
    bound = max(noise / m / gap, curvature)
    return usable_step(1.0 / bound if bound > 0.0 else 1.0 / constants.mu)


def _squared_gradient_noise(constants: Constants) -> tuple[float, float]:
    """Return (C_g L_f σ₀)² and (C_f σ₁)²: the noise of y and of z in the gradient zᵀ∇f(y)."""
    y, z = constants.C_g * constants.L_f * constants.sigma0, constants.C_f * constants.sigma1
    return y * y, z * z


def gaps_at_starts(eps0: float, eps: float) -> tuple[float, ...]:
    """Return the gap at the start of each stage; stages halve it until it is at most eps."""
    eps0, eps = check_positive("eps0", eps0), check_positive("eps", eps)
    if eps >= eps0:
        raise InvalidParameter(f"eps={eps:g} is not below eps0={eps0:g}: the start is already good enough.")
    n_stages = round_up("n_stages", math.log2(eps0 / eps))
    return tuple(eps0 / 2.0**k for k in range(n_stages))


def _step_size(constants: Constants, step_size: float | None) -> float:
    longest = 1.0 / (2.0 * constants.L) if constants.L > 0.0 else math.inf
    if step_size is None:
        return usable_step(min(longest, 1.0 / constants.mu))
    step_size = check_positive("step_size", step_size)
    if step_size > longest:
        raise InvalidParameter(f"step_size={step_size:g} is above 1/(2L) = {longest:g}; use at most that.")
    return step_size


def usable_step(step_size: float) -> float:
    """Return the step, or raise `InvalidParameter` if it is zero, infinite or not a number."""
    if not 0.0 < step_size < math.inf:
        raise InvalidParameter(f"The constants ask for a step_size of {step_size:g}; rescale the problem.")
    return step_size


def round_up(name: str, least: float) -> int:
    """Return the smallest whole number that is at least `least`; 1 or more."""
    if not math.isfinite(least):
        raise InvalidParameter(
            f"{name} overflows: the constants ask for more than can be counted; rescale the problem."
        )
    return max(1, math.ceil(least))
