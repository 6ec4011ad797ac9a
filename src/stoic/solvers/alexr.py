"""ALEXR of Wang and Yang, with SOX as its special case."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

from numpy.random import Generator

from stoic.checks import Count, Positive, check_real
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.solvers.base import AUTO, UNBOUNDED, Info, Weight, either, method, planned
from stoic.solvers.two_scale import TrackedState, Tracking


@method("alexr")
@dataclass(frozen=True)
class ALEXR(Tracking):
    r"""ALEXR: a single loop with an extrapolated moving average; ``extrapolation=0`` is SOX.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; its theory is for separable f.

    **Algorithm.** One batch S₁ evaluated at w_t and w_{t−1} for y, an independent S₂ for the Jacobian:

    .. math::
        y \leftarrow (1 - \gamma) y
            + \gamma\,[\,g(w_t; \xi) + \theta\,(g(w_t; \xi) - g(w_{t-1}; \xi))\,], \qquad
        w_{t+1} = \mathrm{prox}_{\eta r}(w_t - \eta \nabla g(w_t; \xi')^\top \nabla f(y)).

    The output is the average of w_1 … w_T. A step costs 2m samples (of each group) and 3m evaluations.

    **Guarantee.** In expectation, near-optimal for convex separable f and a prox-friendly r.

    **When to use it.** Light tails, many groups, a non-linear f.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, m and T; from the pilot by default.
    weight : float, default 0.1
        γ: y averages about 2/γ batches.
    extrapolation : float, default 1.0
        θ.

    References
    ----------
    B. Wang, T. Yang: ALEXR: An optimal single-loop algorithm for convex finite-sum coupled compositional
    stochastic optimization (2025). B. Wang, T. Yang: Finite-sum coupled compositional stochastic
    optimization (SOX), ICML 2022.

    Examples
    --------
    >>> import stoic
    >>> stoic.ALEXR(extrapolation=0.0).weight  # SOX
    0.1
    """

    kernel: ClassVar[str] = "two_scale"

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    weight: Weight = 0.1
    extrapolation: Annotated[float, partial(check_real, low=0.0)] = 1.0

    batches_per_step: ClassVar[int] = 2

    def tuned(self, pilot: Pilot) -> "ALEXR":
        """Take the step for averages."""
        m = either(self.batch_size, pilot.batch_size(per_step=2))
        n_steps = planned(self.n_steps, pilot.n_steps(m, per_step=2))
        step_size = either(self.step_size, pilot.averaging_step(m, n_steps))
        return replace(self, step_size=step_size, batch_size=m, n_steps=n_steps)

    def step(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        """Move y with one batch, w with another."""
        inner, w = problem.inner, state.w
        batch = inner.draw(self.batch_size, rng)
        here = inner.value(w, batch)[0]
        ahead = here + self.extrapolation * (here - inner.value(state.previous, batch)[0])
        y = (1.0 - self.weight) * state.y + self.weight * ahead
        v = inner.vjp(w, inner.draw(self.batch_size, rng), problem.outer.gradient(y))
        w = problem.regularizer.prox(w - self.step_size * v, self.step_size)
        return state.moved(w, y)._replace(previous=state.w), Info()
