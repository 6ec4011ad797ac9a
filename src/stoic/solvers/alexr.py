"""ALEXR and SOX of Wang and Yang: few groups a step, and an estimate of g kept by group."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

from stoic.checks import Count, Positive, check_real
from stoic.solvers.base import AUTO, UNBOUNDED, Weight, method
from stoic.solvers.group_tracking import Extrapolating


@method("alexr")
@dataclass(frozen=True)
class ALEXR(Extrapolating):
    r"""ALEXR: a single loop over few groups a step, with an extrapolated moving average by group.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; its theory is for separable f.

    **Algorithm.** Draw k of the p groups. Of each, one batch evaluated at w_t and w_{t−1} moves its entry of y,
    and an independent one its Jacobian; the entries of other groups stay as they are. With :math:`P_i` the chance
    of group i,

    .. math::
        y_i &\leftarrow (1 - \gamma) y_i
            + \gamma\,[\,g_i(w_t; \xi) + \theta\,(g_i(w_t; \xi) - g_i(w_{t-1}; \xi))\,], \\
        w_{t+1} &= \mathrm{prox}_{\eta r}\Big(w_t - \eta \sum_{i\ \mathrm{drawn}} \frac{1}{k P_i}\,
            \frac{\partial f}{\partial u_i}(y)\, \nabla g_i(w_t; \xi')\Big), \qquad
        P_i = \frac{1 - a}{p} + a\,\frac{|q_i|}{\sum_j |q_j|} .

    q = ∇f(y) as it was when chances were last computed, before steps 0, 1, 2, 4, … and then every max(64, p/(8k))
    steps. Choices are stratified: number j is made in the jth k-th of the cumulative chances. The output is the
    average of w_1 … w_T. A step costs 2km samples and 3km evaluations, the first batch, of all groups, pm. Where
    the inner part can only draw all groups, or there are no more than 64, k = p and :math:`k P_i = 1`.

    **For a coupled f,** such as log-sum-exp, where ∂f/∂u_i depends on all of y, it is taken at the whole y, in
    which groups that were not drawn for long are as old as that. Where such a weight has outgrown the chances, it
    is cut at twice what they would allow, so that few rows are not the whole step. Kernels keep the normalizer of
    log-sum-exp as a running sum, so that a step costs what its rows cost; the plain engine, and `SmoothCVaR` in
    both, compute ∇f anew, at a cost of p.

    **Guarantee.** In expectation, near-optimal for convex separable f and a prox-friendly r, drawn uniformly. For
    a coupled f, or chances that follow q, none is proven.

    **When to use it.** Light tails, very many groups.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, m and T; from the pilot by default.
    weight : float, default 0.1
        γ: each entry of y averages about 2/γ batches.
    extrapolation : float, default 1.0
        θ.
    groups_per_step : int
        k; by default p, or 32 of more than 64.
    importance : float, default 0.5
        a: which share of the choices follows q; 0 draws groups uniformly, 1 for a `Linear` f in proportion to its
        weights.

    References
    ----------
    B. Wang, T. Yang: A near-optimal single-loop stochastic algorithm for convex finite-sum coupled compositional
    optimization, ICML 2025.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 2))
    >>> inner = stoic.GroupLoss(X, X @ [1.0, 2.0] + rng.standard_normal(4000), np.arange(4000) % 200)
    >>> problem = stoic.Problem(inner, stoic.LogSumExp(2.0))
    >>> stoic.minimize(problem, stoic.ALEXR(groups_per_step=10), budget=40_000, seed=0).w.round(0)
    array([1., 2.])
    """

    kernel: ClassVar[str] = "two_scale"

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    weight: Weight = 0.1
    extrapolation: Annotated[float, partial(check_real, low=0.0)] = 1.0
    groups_per_step: Count = AUTO
    importance: Weight = 0.5


@method("sox")
@dataclass(frozen=True)
class SOX(Extrapolating):
    r"""SOX: few groups a step, and a moving average of g by group.

    `ALEXR` without extrapolation: :math:`y_i \leftarrow (1 - \gamma) y_i + \gamma\, g_i(w_t; \xi)` for the groups
    drawn. A step costs 2km samples and as many evaluations. The paper's moving average of gradients is left out
    (β = 1 there), as the answer is an average.

    **When to use it.** As `ALEXR`; beside it, to see what extrapolation is worth.

    Parameters
    ----------
    step_size, batch_size, n_steps, weight, groups_per_step, importance
        As for `ALEXR`.

    References
    ----------
    B. Wang, T. Yang: Finite-sum coupled compositional stochastic optimization: theory and applications, ICML 2022.

    Examples
    --------
    >>> import stoic
    >>> stoic.SOX(groups_per_step=8).extrapolation
    0.0
    """

    kernel: ClassVar[str] = "two_scale"

    @property
    def extrapolation(self) -> float:
        """0, where ALEXR has θ."""
        return 0.0

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    weight: Weight = 0.1
    groups_per_step: Count = AUTO
    importance: Weight = 0.5
