"""MSCG, the mini-batch stochastic compositional gradient method: Algorithm 2."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from numpy.random import Generator

from stoic.checks import Count, Positive
from stoic.means import GeometricMedianOfMeans, Mean, SmallestBall
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector
from stoic.solvers.base import (
    AUTO,
    UNBOUNDED,
    Averaging,
    Info,
    RobustMean,
    either,
    mean_value,
    mean_vjp,
    method,
    planned,
    running_mean,
)


class MSCGState(NamedTuple):
    """The iterate w_t, the average of w_1 … w_t, and t."""

    w: Vector
    average: Vector
    t: int

    def moved(self, w: Vector) -> "MSCGState":
        """Return the state one step on."""
        t = self.t + 1
        return MSCGState(w, running_mean(self.average, w, t), t)


@method("mscg")
@dataclass(frozen=True)
class MSCG(Averaging):
    r"""Mini-batch stochastic compositional gradient: Algorithm 2 of the paper.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, f∘g convex and L-smooth.

    **Algorithm.** For t = 0 … T−1 draw two independent batches of m samples;

    .. math::
        y = \mathrm{mean}_{S_1} g(w_t; \xi), \quad z = \mathrm{mean}_{S_2} \nabla g(w_t; \xi), \quad
        w_{t+1} = \mathrm{prox}_{\eta r}(w_t - \eta z^\top \nabla f(y)).

    The output is the average of w_1 … w_T. A step costs 2m samples (of each group).

    **Guarantee.** In expectation, Lemma 2, with η ≤ 1/(2L); with a robust mean and restarts, with high
    probability (Theorem 2). Without restarts a constant batch leaves an error of order 1/m.

    **When to use it.** As the building block of `RMSCG`, and as the plain reference method.

    Parameters
    ----------
    step_size : float
        η; from the pilot by default.
    batch_size : int
        m; from the pilot by default.
    n_steps : int
        T; until the budget is spent by default.
    mean : MeanEstimator, default Mean()
        ``SmallestBall(delta)`` is the paper's robust option.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> problem = stoic.Problem(stoic.GroupLoss(np.eye(4, 2), np.ones(4)), stoic.Linear())
    >>> solver = stoic.MSCG(step_size=0.2, batch_size=4)
    >>> stoic.minimize(problem, solver, budget=4000, seed=0).w.round(1)
    array([1., 1.])
    """

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    mean: RobustMean = Mean()

    @property
    def kernel(self) -> str | None:
        """Its adapter in the compiled engine, which has three of the means."""
        return "mscg" if type(self.mean) in {Mean, SmallestBall, GeometricMedianOfMeans} else None

    def tuned(self, pilot: Pilot) -> "MSCG":
        """Take the step for averages and the batch that spreads the budget over enough steps."""
        m = either(self.batch_size, max(pilot.batch_size(per_step=2), self.mean.smallest_batch))
        n_steps = planned(self.n_steps, pilot.n_steps(m, per_step=2))
        step_size = either(self.step_size, pilot.averaging_step(m, n_steps))
        return replace(self, step_size=step_size, batch_size=m, n_steps=n_steps)

    def check(self, problem: Problem) -> None:  # noqa: ARG002
        """Raise `InvalidParameter` if the batch is too small for the mean."""
        if self.batch_size is not AUTO:
            self.mean.n_blocks(self.batch_size)

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples that all steps draw."""
        return 2 * self.n_steps * inner.cost(self.batch_size)

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> MSCGState:  # noqa: ARG002
        """Start at w0."""
        return MSCGState(w0, w0, 0)

    def step(self, problem: Problem, state: MSCGState, rng: Generator) -> tuple[MSCGState, Info]:
        """Take one step of Algorithm 2."""
        inner, w, m = problem.inner, state.w, self.batch_size
        first, second = inner.draw(m, rng), inner.draw(m, rng)  # Alg. 2, l. 2
        y = mean_value(inner, w, first, m, self.mean)  # Alg. 2, l. 3–4
        v = mean_vjp(inner, w, second, m, self.mean, problem.outer.gradient(y))
        w = problem.regularizer.prox(w - self.step_size * v, self.step_size)  # Alg. 2, l. 5
        return state.moved(w), Info()
