"""CIVR, composite incremental variance reduction of Zhang and Xiao."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

from numpy.random import Generator

from stoic.checks import Count, Positive, check_count
from stoic.errors import IncompatibleParts
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Array, Vector
from stoic.solvers.base import AUTO, UNBOUNDED, Info, Stepwise, either, method, planned

EVERYTHING = 0
"""The anchor size that stands for the whole finite sum."""


class CIVRState(NamedTuple):
    """The iterates w_i and w_{i−1}, i, and the running estimates y and z at w_{i−1}."""

    w: Vector
    previous: Vector
    t: int
    y: Vector | None
    z: Array | None


@method("civr")
@dataclass(frozen=True)
class CIVR(Stepwise):
    r"""Composite incremental variance reduction, one epoch.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; each sample's g and ∇g must be Lipschitz.

    **Algorithm.** An anchor batch of B samples gives y, z at w₀; every later step draws S samples and evaluates
    them at w_i and w_{i−1}:

    .. math::
        y \leftarrow y + \mathrm{mean}[g(w_i; \xi) - g(w_{i-1}; \xi)], \quad
        z \leftarrow z + \mathrm{mean}[\nabla g(w_i; \xi) - \nabla g(w_{i-1}; \xi)], \quad
        w_{i+1} = \mathrm{prox}_{\eta r}(w_i - \eta z^\top \nabla f(y)).

    The output is the last iterate w_τ (its theory returns a random one). The anchor costs B samples, a step S
    samples and 2S evaluations (of each group). z is a dense p × d matrix by nature.

    **Guarantee.** In expectation; see `RCIVR`, which repeats it.

    **When to use it.** As the building block of `RCIVR`.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, S and τ; from the pilot by default.
    anchor_size : int
        B; ``stoic.EVERYTHING`` (0) for the whole finite sum.

    References
    ----------
    J. Zhang, L. Xiao: A stochastic composite gradient method with incremental variance reduction. NeurIPS 2019.

    Examples
    --------
    >>> import stoic
    >>> stoic.CIVR(step_size=0.1, batch_size=8, n_steps=8, anchor_size=stoic.EVERYTHING).needs_pilot
    False
    """

    kernel: ClassVar[str] = "civr"

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    anchor_size: Annotated[int, partial(check_count, low=0)] = AUTO

    def tuned(self, pilot: Pilot) -> "CIVR":
        """Spend half of the budget (or the whole data, if less) on the anchor, the rest on 5/(μη) steps."""
        fits = pilot.n_samples is not None and 2 * pilot.n_samples <= pilot.budget
        anchor = either(self.anchor_size, EVERYTHING if fits else max(1, pilot.draws() // 2))
        left = pilot.draws() - (anchor or (pilot.n_samples or 0) // pilot.cost)
        m = either(self.batch_size, max(1, math.floor(left * pilot.mu / (10.0 * pilot.L))))
        n_steps = planned(self.n_steps, max(2, left // m))
        return replace(
            self,
            step_size=either(self.step_size, pilot.step_size(m)),
            batch_size=m,
            n_steps=n_steps,
            anchor_size=anchor,
        )

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` if the anchor is everything and the data are a stream."""
        if self.anchor_size == EVERYTHING and problem.inner.n_samples is None:
            raise IncompatibleParts(
                "CIVR(anchor_size=EVERYTHING) needs a finite sum, but the inner part is a stream; "
                "give the number of samples of the anchor."
            )

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the anchor and of the later steps."""
        anchor = inner.cost(self.anchor_size) if self.anchor_size else inner.n_samples or 0
        return anchor + (self.n_steps - 1) * inner.cost(self.batch_size)

    def output(self, state: CIVRState) -> Vector:
        """Return the last iterate."""
        return state.w

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> CIVRState:  # noqa: ARG002
        """Start at w0; the anchor is drawn by the first step."""
        return CIVRState(w0, w0, 0, None, None)

    def step(self, problem: Problem, state: CIVRState, rng: Generator) -> tuple[CIVRState, Info]:
        """Anchor at the first step, correct y and z at the later ones; then move w."""
        y, z = self._anchored(problem, state.w, rng) if state.y is None else self._corrected(problem, state, rng)
        ahead = state.w - self.step_size * (z.T @ problem.outer.gradient(y))
        w = problem.regularizer.prox(ahead, self.step_size)
        return CIVRState(w, state.w, state.t + 1, y, z), Info()

    def _anchored(self, problem: Problem, w: Vector, rng: Generator) -> tuple[Vector, Array]:
        inner = problem.inner
        batch = inner.draw(self.anchor_size, rng) if self.anchor_size else inner.everything()
        return inner.value(w, batch)[0], inner.jacobian(w, batch)[0]

    def _corrected(self, problem: Problem, state: CIVRState, rng: Generator) -> tuple[Vector, Array]:
        inner, w, before = problem.inner, state.w, state.previous
        batch = inner.draw(self.batch_size, rng)
        y = state.y + inner.value(w, batch)[0] - inner.value(before, batch)[0]
        z = state.z + inner.jacobian(w, batch)[0] - inner.jacobian(before, batch)[0]
        return y, z
