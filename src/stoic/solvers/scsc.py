"""SCSC, the stochastically corrected compositional gradient method of Chen, Sun and Yin."""

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from stoic.problem import Problem
from stoic.solvers.base import Info, method
from stoic.solvers.two_scale import TrackedState, TwoScale


@method("scsc")
@dataclass(frozen=True)
class SCSC(TwoScale):
    r"""Stochastically corrected stochastic compositional gradient: one time scale.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, any smooth f; each sample's g must be Lipschitz.

    **Algorithm.** One batch a step, evaluated at w_t and w_{t−1}, so that y follows the drift of g:

    .. math::
        y \leftarrow (1 - b_t)\,(y + g(w_t; \xi) - g(w_{t-1}; \xi)) + b_t\, g(w_t; \xi), \qquad
        w_{t+1} = \mathrm{prox}_{a_t r}(w_t - a_t \nabla g(w_t; \xi)^\top \nabla f(y)).

    A step costs m samples (of each group) and 2m evaluations.

    **Guarantee.** In expectation, the rate of plain SGD, with b_t proportional to a_t.

    **When to use it.** Light tails and a non-linear f: y has no bias floor and hardly any lag.

    Parameters
    ----------
    steps, weights : PowerLaw
        a_t and b_t; by default a_t as for `SCGD` and b_t in proportion, from 1/2.
    batch_size, n_steps : int
        m, and the number of steps.
    answer : {"last", "average"}
        The output rule.

    References
    ----------
    T. Chen, Y. Sun, W. Yin: Solving stochastic compositional optimization is nearly as easy as solving
    stochastic optimization. IEEE Transactions on Signal Processing 69 (2021).

    Examples
    --------
    >>> import stoic
    >>> stoic.SCSC(batch_size=4).weights
    AUTO
    """

    kernel: ClassVar[str] = "two_scale"

    def step(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        """Correct y with the same batch at both points, then move w."""
        inner, w = problem.inner, state.w
        batch = inner.draw(self.batch_size, rng)
        a, b = self.steps.at(state.t), self.weights.at(state.t)
        here = inner.value(w, batch)[0]
        y = (1.0 - b) * (state.y + here - inner.value(state.previous, batch)[0]) + b * here
        w = problem.regularizer.prox(w - a * inner.vjp(w, batch, problem.outer.gradient(y)), a)
        return state.moved(w, y)._replace(previous=state.w), Info()
