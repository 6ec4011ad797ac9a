"""Clipped SGD: stochastic gradient steps whose gradient is clipped to a largest norm."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from stoic.checks import Count, Positive
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector
from stoic.solvers.base import AUTO, UNBOUNDED, Averaging, Info, either, method, planned
from stoic.solvers.mscg import MSCGState


@method("clipped-sgd")
@dataclass(frozen=True)
class ClippedSGD(Averaging):
    r"""Stochastic gradient steps whose gradient is clipped to a largest norm.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; stated for plain stochastic problems (linear f).

    **Algorithm.** With v = ∇g(w_t; ξ)ᵀ∇f(g(w_t; ξ)) from one batch,

    .. math:: w_{t+1} = \mathrm{prox}_{\eta r}(w_t - \eta v \min(1, c / \|v\|)).

    The output is the average of w_1 … w_T. A step costs m samples (of each group). A clipped step is recorded as
    one in which z was truncated.

    **Guarantee.** For linear f with high probability at the price of log(1/δ), with c and η from the horizon; for
    a non-linear f the batch leaves the same bias floor as in `RROSC`, and clipping adds its own.

    **When to use it.** As the baseline that everyone knows.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, m and T; from the pilot by default.
    clip : float
        c; by default the larger of ‖∇(f∘g)(w₀)‖ and 3 typical deviations of a batch's gradient.

    References
    ----------
    E. Gorbunov, M. Danilova, A. Gasnikov: Stochastic optimization with heavy-tailed noise via accelerated
    gradient clipping. NeurIPS 2020.

    Examples
    --------
    >>> import stoic
    >>> stoic.ClippedSGD(step_size=0.1, batch_size=8, clip=1.0).needs_pilot
    False
    """

    kernel: ClassVar[str] = "clipped_sgd"

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    clip: Positive = AUTO

    def tuned(self, pilot: Pilot) -> "ClippedSGD":
        """Take the step for averages and a level that ordinary batches do not reach."""
        m = either(self.batch_size, pilot.batch_size())
        level = max(pilot.gradient_norm, 3.0 * pilot.gradient_noise / m**0.5) or 1.0
        n_steps = planned(self.n_steps, pilot.n_steps(m))
        return replace(
            self,
            step_size=either(self.step_size, pilot.averaging_step(m, n_steps)),
            batch_size=m,
            n_steps=n_steps,
            clip=either(self.clip, level),
        )

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples that all steps draw."""
        return self.n_steps * inner.cost(self.batch_size)

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> MSCGState:  # noqa: ARG002
        """Start at w0."""
        return MSCGState(w0, w0, 0)

    def step(self, problem: Problem, state: MSCGState, rng: Generator) -> tuple[MSCGState, Info]:
        """Take one clipped step."""
        v = problem.batch_gradient(state.w, problem.inner.draw(self.batch_size, rng))
        norm = float(np.linalg.norm(v))
        is_clipped = norm > self.clip
        if is_clipped:
            v = v * (self.clip / norm)
        w = problem.regularizer.prox(state.w - self.step_size * v, self.step_size)
        return state.moved(w), Info(watched=1, truncated_z=int(is_clipped))
