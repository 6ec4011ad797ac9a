"""Newton's method over all data at hand: the exact optimum of data in memory."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.checks import Count
from stoic.errors import IncompatibleParts
from stoic.inners.parted import one_blas_thread
from stoic.losses import Squared
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.regularizers import terms_of
from stoic.solvers.base import Info, Settings, method
from stoic.solvers.newton_levels import started
from stoic.solvers.newton_sets import has_sets, round_of
from stoic.solvers.newton_steps import LARGE, NewtonState, advance
from stoic.solvers.newton_sum import Sum, sum_of


GAP = 1e-9
"""Of F at the start: how near to the optimum is near enough where a pass over the rows takes long."""


@method("newton")
@dataclass(frozen=True)
class Newton(Settings):
    r"""Newton's method on the finite sum, orthant by orthant where there is an L1 term.

    **Problem.** :math:`F(w) = f(\tfrac1n \sum_\xi g(w; \xi)) + a \|w\|_1 + \tfrac b2 \|w\|^2` over finite data,
    where g, f and the loss offer second derivatives (`GroupLoss` with `Linear`, `LogSumExp`
    or `SmoothCVaR`, whose Hessian jumps).

    **Algorithm.** A step evaluates all data. With :math:`q = \nabla f(g(w))`, and on the coordinates that are
    not zero or about to leave zero, the direction p solves

    .. math::
        \Big(\sum_i q_i \nabla^2 g_i + \nabla g^\top \nabla^2 f \nabla g + b I + \lambda D\Big) p = -\nabla F ,

    where D is the diagonal of what stands before it: scales of columns do not matter. w moves along p, half as
    far again and again until F falls enough; a coordinate that would change its sign stops at zero. The damping λ
    shrinks where a whole step is taken and grows where it is not. Up to 1,000 variables the system is solved
    directly, beyond by conjugate gradients.

    One target of 10²⁰ makes F so large that rounding hides every decrease. Then the slope at the end of a step
    tells whether it went too far, and decreases are compared with the part of F that its slopes account for: the
    mean of ℓ′²/(2·curvature), which no target makes large where slopes are bounded.

    **Guarantee.** F falls at every step. Near the optimum, steps shorten quadratically; the method finishes when
    rounding ends that. Where `n_steps` end it before, or no step lowers F, the status is ``STEPS_SPENT`` and no
    success: losses thousands of times their temperature or width take many steps. Nothing is random.

    **When to use it.** Where the data are small, and their exact optimum is wanted. Under heavy tails and square
    loss that optimum is ruled by outliers; methods that truncate are then better on new data.

    Parameters
    ----------
    n_steps : int, default 200
        The most steps that are taken.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> X, y, groups = np.arange(6.0)[:, None], np.array([1.0, 3.0, 5.0, 7.0, 9.0, 20.0]), np.arange(6) % 2
    >>> inner = stoic.GroupLoss(X, y, groups, loss="huber", intercept=True)
    >>> problem = stoic.Problem(inner, stoic.LogSumExp(1.0))
    >>> result = stoic.minimize(problem, "newton", budget=1000)
    >>> float(np.abs(problem.gradient(result.w)).max()) < 1e-9
    True
    """

    n_steps: Count = 200
    gap: float | None = None

    @property
    def uses_all_data(self) -> bool:
        """Every step does."""
        return True

    def tuned(self, pilot: Pilot) -> "Newton":  # noqa: ARG002 - nothing is open
        """Return the solver as it is."""
        return self

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` if a part has no second derivative, or the data are a stream."""
        inner = getattr(problem.inner, "inner", problem.inner)
        lacking = [
            what
            for what, is_there in {
                "a finite sum": problem.inner.n_samples is not None,
                "an inner part with hessian": hasattr(inner, "hessian"),
                "a loss with second_derivative": hasattr(getattr(inner, "loss", Squared()), "second_derivative"),
                "an outer function with hessian": hasattr(problem.outer, "hessian"),
                "a regularizer of L1 and L2 terms": terms_of(problem.regularizer, problem.dimension) is not None,
            }.items()
            if not is_there
        ]
        if lacking:
            raise IncompatibleParts(f"Newton needs {', '.join(lacking)}; use another method.")

    def finished(self, state: NewtonState) -> bool:
        """Whether a step would change nothing, none lowers F, or all have been taken."""
        return state.is_done or state.is_stuck or state.t >= self.n_steps

    def fell_short(self, state: NewtonState) -> bool:
        """Whether the steps have ended where another would still change something."""
        return not state.is_done

    def output(self, state: NewtonState) -> Vector:
        """Return the last iterate."""
        return state.w

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> NewtonState:  # noqa: ARG002
        """Start at w0."""
        return NewtonState(w0)

    def step(self, problem: Problem, state: NewtonState, rng: Generator) -> tuple[NewtonState, Info]:  # noqa: ARG002
        """Take one step along the damped Newton direction."""
        if state.point is None:
            state = self._started(problem, state)
        sum_ = state.point.sum
        gap = (GAP if is_large(sum_) else 0.0) if self.gap is None else self.gap
        with one_blas_thread() if is_large(sum_) else nullcontext():
            if has_sets(sum_):
                return round_of(state, gap, sum_.lengths), Info()
            return advance(state, gap), Info()

    def _started(self, problem: Problem, state: NewtonState) -> NewtonState:
        sum_ = sum_of(problem, problem.inner.everything())
        point = sum_.at(state.w)
        if not is_large(sum_):
            return state._replace(point=point)
        with one_blas_thread():
            return started(point)


def is_large(sum_: Sum) -> bool:
    """Whether a pass over the rows takes so long that fewer rows and threads pay."""
    return sum_.rows is not None and sum_.entries > LARGE
