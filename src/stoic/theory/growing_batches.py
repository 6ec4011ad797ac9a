r"""Batches that grow from stage to stage: the repair of Theorem 3 for a non-linear f.

With a constant batch the gap of RROSC stops at a floor, since :math:`\mathrm E \nabla f(y) \ne \nabla f(g)`.
If ∇²f is Lipschitz, that bias is of order 1/m, and a batch that grows by √2 a stage keeps it below the gap.
"""

import math

from stoic.checks import check_count, check_probability
from stoic.theory.plans import Constants, Plan, TruncatedStage, check_hessian_lipschitz
from stoic.theory.theorems import gaps_at_starts, one_stage_terms, round_up, truncated_stage


def growing_plan(
    constants: Constants,
    *,
    hessian_lipschitz: float,
    eps0: float,
    eps: float,
    delta: float,
    reference_block_size: int = 1,
) -> Plan[TruncatedStage]:
    r"""Plan RROSC with growing batches: F(w_K) − F* ≤ ε with probability 1 − δ, also for a non-linear f.

    With :math:`X = C_g M_f \sigma_0^2 + 2 L_f \sigma_0 \sigma_1` the stage that starts with gap e has

    .. math::
        m = \Big\lceil 12 X \sqrt{2 / (\mu e)} \Big\rceil, \qquad
        \eta = \min\Big\{ \frac{m e}{1536(\ell+1)^2 \max(C_gL_f\sigma_0, C_f\sigma_1)^2},\;
        \frac{1}{16(\ell+1)\max(C_g^2L_f, C_fL_g)} \Big\}, \qquad T \ge \frac{12}{\mu\eta},

    and the rest as in `theorem_3`. Once these bounds bind, m and T grow by √2 a stage and η shrinks by √2, so the
    total is :math:`O(\log^2(1/\delta) / (\mu\epsilon))`, as the paper claims for a constant m.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    hessian_lipschitz : float
        M_f, a Lipschitz constant of ∇²f; `LogSumExp` has it as an attribute.
    eps0, eps : float
        Bounds on the gap F − F* at the start and at the end, eps < eps0.
    delta : float
        Total probability of failure.
    reference_block_size : int, default 1
        c.

    Returns
    -------
    Plan
        `RROSC.from_plan` runs it.

    Raises
    ------
    InvalidParameter
        If the gaps are not 0 < eps < eps0, delta is not in (0, 1), or M_f is negative or not finite.

    Notes
    -----
    The proof is in ``docs/growing.md``.

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    >>> plan = growing_plan(constants, hessian_lipschitz=0.3, eps0=1.0, eps=0.1, delta=0.05)
    >>> [stage.batch_size for stage in plan.stages], round(plan.success_probability, 3)
    ([70, 99, 140, 198], 0.95)
    """
    gaps = gaps_at_starts(eps0, eps)
    share = check_probability("delta", delta) / (6 * len(gaps))
    c = check_count("reference_block_size", reference_block_size)
    M_f = check_hessian_lipschitz(hessian_lipschitz)
    stages = tuple(
        truncated_stage(constants, gap, share, _batch_size(constants, M_f, gap), c, n_terms=6) for gap in gaps
    )
    return Plan(stages, float(eps0), float(eps), 1.0 - delta)


def growing_stage_terms(
    constants: Constants, stage: TruncatedStage, eps: float, *, hessian_lipschitz: float
) -> tuple[float, ...]:
    r"""Return the six terms of the one-stage bound for a non-linear f, whose sum bounds the gap after `stage`.

    Those of `one_stage_terms`, and the bias :math:`D (C_g M_f \sigma_0^2 + 2 L_f \sigma_0 \sigma_1) / m` that a
    batch shared by y and z leaves in the gradient. The plan of `growing_plan` makes each at most ε/12.

    Parameters
    ----------
    constants : Constants
        Those of Assumption 1.
    stage : TruncatedStage
        The settings.
    eps : float
        The gap at the start of the stage.
    hessian_lipschitz : float
        M_f.

    Returns
    -------
    tuple of six floats

    Examples
    --------
    >>> constants = Constants(C_f=1.0, L_f=0.5, C_g=1.0, L_g=0.5, sigma0=1.0, sigma1=1.0, mu=0.1)
    >>> plan = growing_plan(constants, hessian_lipschitz=0.3, eps0=1.2, eps=0.1, delta=0.05)
    >>> round(growing_stage_terms(constants, plan.stages[0], 1.2, hessian_lipschitz=0.3)[5], 3)
    0.1
    """
    bias = stage.radius * _bias(constants, check_hessian_lipschitz(hessian_lipschitz)) / stage.batch_size
    return (*one_stage_terms(constants, stage, eps), bias)


def _bias(constants: Constants, M_f: float) -> float:
    """Return X: a shared batch of size m biases the gradient by at most X/(2m)."""
    y, z = constants.sigma0, constants.sigma1
    return constants.C_g * M_f * y * y + 2.0 * constants.L_f * y * z


def _batch_size(constants: Constants, M_f: float, gap: float) -> int:
    return round_up("batch_size", 12.0 * _bias(constants, M_f) * math.sqrt(2.0 / constants.mu / gap))
