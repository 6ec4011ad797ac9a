"""SCGD, stochastic compositional gradient descent of Wang, Fang and Liu."""

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from stoic.problem import Problem
from stoic.solvers.base import Info, PowerLaw, method
from stoic.solvers.two_scale import StepRule, TrackedState, TwoScale


@method("scgd")
@dataclass(frozen=True)
class SCGD(TwoScale):
    r"""Stochastic compositional gradient descent: the first method with two time scales.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, any smooth f.

    **Algorithm.** With y started at the mean of a first batch, at each step one batch gives

    .. math::
        y \leftarrow (1 - b_k) y + b_k\, g(w_k; \xi), \qquad
        w_{k+1} = \mathrm{prox}_{a_k r}(w_k - a_k \nabla g(w_k; \xi)^\top \nabla f(y)).

    A step costs m samples (of each group).

    **Guarantee.** In expectation: O(k^(−1/4)) for convex problems with a_k = k^(−3/4), b_k = k^(−1/2), averaged;
    O(k^(−2/3)) for strongly convex ones with a_k = 1/(μk), b_k = k^(−2/3), last iterate.

    **When to use it.** As the classic baseline. Its slow rate shows.

    Parameters
    ----------
    steps, weights : PowerLaw
        a_k and b_k; by default the strongly convex rule, or the convex one where the pilot finds the problem
        too ill-conditioned for it. Both start to decay after about 2κ steps.
    batch_size, n_steps : int
        m, and the number of steps.
    answer : {"last", "average"}
        The output rule.

    References
    ----------
    M. Wang, E. X. Fang, H. Liu: Stochastic compositional gradient descent. Mathematical Programming 161 (2017).

    Examples
    --------
    >>> import stoic
    >>> stoic.SCGD(steps=stoic.PowerLaw(0.1, 0.75), weights=stoic.PowerLaw(1.0, 0.5), batch_size=1).steps.at(15)
    0.0125
    """

    kernel: ClassVar[str] = "two_scale"

    convex_power: ClassVar[float] = 0.75

    def weights_for(self, chosen: StepRule) -> PowerLaw:
        """Return b_k ~ k^(−2/3) for strongly convex problems, k^(−1/2) for convex ones."""
        return PowerLaw(1.0, 2.0 / 3.0 if chosen.is_strongly_convex else 0.5, chosen.steps.delay)

    def step(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        """Move y, then w."""
        inner, w, k = problem.inner, state.w, state.t
        batch = inner.draw(self.batch_size, rng)
        a, b = self.steps.at(k), self.weights.at(k)
        y = (1.0 - b) * state.y + b * inner.value(w, batch)[0]
        w = problem.regularizer.prox(w - a * inner.vjp(w, batch, problem.outer.gradient(y)), a)
        return state.moved(w, y), Info()
