"""Newton's method over all data at hand: the exact optimum of data in memory."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, cast

from numpy.random import Generator

from stoic.checks import Count, check_real
from stoic.errors import IncompatibleParts
from stoic.inners.threads import one_blas_thread
from stoic.losses import Squared
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.regularizers import terms_of
from stoic.solvers.base import Info, Settings, method
from stoic.solvers.newton_levels import started
from stoic.solvers.newton_point import Point
from stoic.solvers.newton_sets import has_sets, round_of
from stoic.solvers.newton_steps import NewtonState, advance
from stoic.solvers.newton_sum import MOST_DENSE, sum_of

Gap = Annotated[float | None, lambda name, value: value is None or check_real(name, value, low=0.0)]
"""A part of F, or None."""

_FEW = 32  # variables whose matrices BLAS does not share among threads
_GAP = 1e-9
"""Of F at the start: how near to the optimum is near enough where a pass over the rows takes long."""


@method("newton")
@dataclass(frozen=True)
class Newton(Settings):
    r"""Newton's method on the finite sum, orthant by orthant where there is an L1 term.

    **Problem.** :math:`F(w) = f(\tfrac1n \sum_\xi g(w; \xi)) + a \|w\|_1 + \tfrac b2 \|w\|^2` over finite data,
    where g, f and the loss offer second derivatives (`GroupLoss` with `Linear`, `LogSumExp`
    or `SmoothCVaR`, whose Hessian jumps).

    **Algorithm.** With :math:`q = \nabla f(g(w))` the direction p minimizes the model of F with the Hessian

    .. math:: \sum_i q_i \nabla^2 g_i + \nabla g^\top \nabla^2 f \nabla g + b I + \lambda D ,

    where D is the diagonal of what stands before it: scales of columns do not matter. w moves along p, half as
    far again and again until F falls enough. The damping λ shrinks where a whole step is taken and grows where it
    is not. Of linear models (`GroupLoss`, `GroupSoftmax`) the predictions are kept, so that a search along p and
    the part of f cost no product with the rows. Where a step fails, the next ones keep f as it is, a group's mean
    being a parabola of its own, and losses with lines far out (Huber) are bounded by parabolas, as in iteratively
    reweighted least squares.

    *Up to 1,000 variables* the model is minimized as a whole, its L1 term sign by sign. From a million stored
    numbers on, parts of the rows are solved first, and H is that of rows that stand for all: more of them where
    steps are slow, in the end all, or H leads conjugate gradients over all rows. *Beyond*, conjugate gradients
    take two products with the rows each; with an L1 term the steps are on working sets, and accelerated proximal
    steps come first where these would be large. Parts of the rows are fixed, and threads share them: the bits do
    not depend on how many there are.

    One target of 10²⁰ makes F so large that rounding hides every decrease. Then the slope at the end of a step
    tells whether it went too far, and decreases are compared with the part of F that its slopes account for: the
    mean of ℓ′²/(2·curvature), which no target makes large where slopes are bounded.

    **Guarantee.** F falls at every step. The method finishes when a whole step promises less than `gap`: half the
    Newton decrement, which tells F(w) − F* near the optimum but is no bound; the last record has a bound,
    ``duality_gap``. Where `n_steps` end it before, or no step lowers F, the status is ``STEPS_SPENT`` and no
    success: losses thousands of times their temperature or width take many steps. Nothing is random. The data
    are drawn once and evaluated often: the budget has to allow one pass.

    **When to use it.** Where data are in memory, and their exact optimum is wanted. Under heavy tails and square
    loss that optimum is ruled by outliers; methods that truncate are then better on new data.

    Parameters
    ----------
    n_steps : int, default 200
        The most steps that are taken.
    gap : float, optional
        How far above the optimum F may end, as a part of its size at the start; 0 goes on to rounding. By default
        0, but 1e-9 where there are more than 262,144 stored numbers.

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
    gap: Gap = None

    @property
    def uses_all_data(self) -> bool:
        """Every step does."""
        return True

    def looks_often(self, problem: Problem) -> bool:
        """Whether a pass over the data takes no time."""
        return not sum_of(problem, None).is_large

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
        state = state if state.point else self._started(problem, state)
        sum_ = cast("Point", state.point).sum
        gap = (_GAP if sum_.is_large else 0.0) if self.gap is None else self.gap
        with one_blas_thread() if state.w.size > _FEW or sum_.is_large else nullcontext():
            if has_sets(sum_):
                return round_of(state, gap, sum_.lengths), Info()
            return advance(state, gap), Info()

    def _started(self, problem: Problem, state: NewtonState) -> NewtonState:
        sum_ = sum_of(problem, problem.inner.everything())
        if not sum_.is_large:
            return state._replace(point=sum_.at(state.w), blend=float(state.w.size > MOST_DENSE))
        with one_blas_thread():
            return started(sum_, state.w)
