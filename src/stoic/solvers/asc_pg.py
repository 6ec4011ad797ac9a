"""ASC-PG, accelerated stochastic compositional proximal gradient of Wang, Liu and Fang."""

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from stoic.problem import Problem
from stoic.solvers.base import Info, PowerLaw, method
from stoic.solvers.two_scale import StepRule, TrackedState, TwoScale


@method("asc-pg")
@dataclass(frozen=True)
class ASCPG(TwoScale):
    r"""Accelerated stochastic compositional proximal gradient, a baseline of the paper's experiment.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, any smooth f.

    **Algorithm.** With y₁ the mean of a first batch, for k = 1, 2, …

    .. math::
        w_{k+1} &= \mathrm{prox}_{a_k r}(w_k - a_k \nabla g(w_k; \xi_k)^\top \nabla f(y_k)), \\
        z_{k+1} &= (1 - 1/b_k) w_k + (1/b_k) w_{k+1}, \\
        y_{k+1} &= (1 - b_k) y_k + b_k\, g(z_{k+1}; \xi'_k) .

    The extrapolated point z may leave the domain of r. A step costs 2m samples (of each group).

    **Guarantee.** In expectation, for bounded ∇g: O(k^(−2/7)) for convex problems with a_k ~ k^(−5/7),
    b_k = k^(−4/7), averaged; O(k^(−4/5)) for optimally strongly convex ones with a_k ~ 1/k, b_k = k^(−4/5).

    **When to use it.** As a baseline with light tails.

    Parameters
    ----------
    steps, weights : PowerLaw
        a_k and b_k; chosen as for `SCGD`.
    batch_size, n_steps : int
        m, and the number of steps.
    answer : {"last", "average"}
        The output rule.

    References
    ----------
    M. Wang, J. Liu, E. X. Fang: Accelerating stochastic composition optimization. JMLR 18 (2017).

    Examples
    --------
    >>> import stoic
    >>> solver = stoic.ASCPG(steps=stoic.PowerLaw(0.1, 1.0), weights=stoic.PowerLaw(1.0, 0.8), batch_size=1)
    >>> solver.needs_pilot  # the output rule is still open
    True
    """

    kernel: ClassVar[str] = "two_scale"

    batches_per_step: ClassVar[int] = 2
    convex_power: ClassVar[float] = 5.0 / 7.0

    def weights_for(self, chosen: StepRule) -> PowerLaw:
        """Return b_k ~ k^(−4/5) for optimally strongly convex problems, k^(−4/7) for convex ones."""
        return PowerLaw(1.0, 0.8 if chosen.is_strongly_convex else 4.0 / 7.0, chosen.steps.delay)

    def step(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        """Move w, extrapolate, then move y with a fresh batch."""
        inner, k = problem.inner, state.t
        a, b = self.steps.at(k), self.weights.at(k)
        q = problem.outer.gradient(state.y)
        ahead = state.w - a * inner.vjp(state.w, inner.draw(self.batch_size, rng), q)
        w = problem.regularizer.prox(ahead, a)
        z = state.w + (w - state.w) / b
        y = (1.0 - b) * state.y + b * inner.value(z, inner.draw(self.batch_size, rng))[0]
        return state.moved(w, y), Info()
