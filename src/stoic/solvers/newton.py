"""Newton's method over all data at hand: the exact optimum where the data are small."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from stoic.checks import Count
from stoic.errors import IncompatibleParts
from stoic.losses import Squared
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import Array, Vector
from stoic.regularizers import Terms, terms_of
from stoic.solvers.base import Info, Settings, method

Mask: TypeAlias = NDArray[np.bool_]

_MOST_DENSE = 1000  # variables up to which the Hessian is formed
_MOST_SQUARE = 1000  # entries of u up to which that of f is
_ARMIJO, _MOST_HALVINGS = 1e-4, 50
_EXACT, _NEAR = 1e-20, 1e-12  # of the size of F: a decrease that is none, that may be rounding
_ROUNDING, _BLIND = 1e-15, 1e-12  # of F: its error, and a decrease that it hides
_NOTHING = 1e-8  # of F at the start: what counts as zero
_SINGULAR = 1e-14  # of the diagonal: what makes a matrix definite that is so but for rounding
_FIRST_DAMPING, _LEAST_DAMPING, _SMALL_DAMPING, _MOST_DAMPING = 1e-8, 1e-12, 1e-3, 1e6
_MOST_PRODUCTS = 1000  # of conjugate gradients


class NewtonState(NamedTuple):
    """The iterate, the steps taken, the damping of the next, how much the last was to lower F, its size at w₀.

    Done: another step would change nothing but rounding. Stuck: no step of any length lowers F.
    """

    w: Vector
    t: int = 0
    damping: float = _FIRST_DAMPING
    promised: float = math.inf
    first: float = 0.0
    is_done: bool = False
    is_stuck: bool = False


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
        point = Point(problem, state.w, problem.inner.everything())
        first = state.first if state.t else point.size
        size = max(point.size, _NOTHING * first)
        accuracy = min(0.1, max(1e-6, math.sqrt(state.promised / size))) if size > 0.0 else 0.1
        direction = point.direction(state.damping, accuracy)
        promised = -float(point.slope @ direction)
        if not math.isfinite(promised):
            return state._replace(w=np.full_like(state.w, np.nan)), Info()  # numbers too large to go on
        w, halvings = point.search(direction, promised, matters=promised > _NEAR * size)
        is_near = promised <= _NEAR * size and state.damping <= _SMALL_DAMPING  # a damped step promises little
        is_done = promised <= _EXACT * size or (is_near and promised > 0.5 * state.promised)
        damping = state.damping * (0.1 if halvings == 0 else 2.0**halvings)
        is_stuck = halvings > _MOST_HALVINGS and damping > _MOST_DAMPING
        damping = min(max(damping, _LEAST_DAMPING), _MOST_DAMPING)
        return NewtonState(w, state.t + 1, damping, promised, first, is_done, is_stuck), Info()


class Point:
    """F and its first two derivatives at w, over all data."""

    def __init__(self, problem: Problem, w: Vector, data: Any) -> None:
        inner = problem.inner
        self.problem, self.w, self.data = problem, w, data
        u = inner.value(w, self.data)[0]
        self.u, self.q = u, problem.outer.gradient(u)
        self.value = problem.outer.value(u) + problem.regularizer.value(w)
        self.l1, self.l2, linear = cast("Terms", terms_of(problem.regularizer, w.size))
        smooth = inner.vjp(w, self.data, self.q) + self.l2 * w + linear
        self.slope = np.where(  # the one-sided derivatives of F, zero where both sides rise
            w != 0.0, smooth + self.l1 * np.sign(w), np.sign(smooth) * np.maximum(np.abs(smooth) - self.l1, 0.0)
        )
        self.orthant = np.where(w != 0.0, np.sign(w), -np.sign(self.slope))

    @cached_property
    def size(self) -> float:
        """The part of F that its slopes account for, or F itself where the inner part does not have it."""
        inner: Any = self.problem.inner
        if not hasattr(getattr(inner, "inner", inner), "steepness"):
            return abs(self.value)
        steepness = float(np.abs(self.q) @ inner.steepness(self.w, self.data))
        return min(abs(self.value), steepness + abs(self.problem.regularizer.value(self.w)))

    def direction(self, damping: float, accuracy: float) -> Vector:
        """Return the Newton direction on the coordinates that are free to move; 0 where w is to stay at zero."""
        free = (self.w != 0.0) | (self.slope != 0.0) | (self.l1 == 0.0)
        direction, product = np.zeros_like(self.w), self._product()
        flat = np.abs(self.slope) / max(1.0, float(np.linalg.norm(self.w)))  # curvature where there is none
        if free.any():
            if self.w.size <= _MOST_DENSE:
                direction[free] = -_solve_densely(product, self.slope, free, damping, flat)
            else:
                diagonal = np.maximum(self._diagonal(product), flat)
                direction[free] = -_solve_by_products(product, self.slope, free, damping, diagonal, accuracy)
        direction[(self.l1 > 0.0) & (self.w == 0.0) & (direction * self.slope > 0.0)] = 0.0
        return direction

    def _diagonal(self, product: Callable[[Vector], Vector]) -> Vector:
        """Return the diagonal of ∇²F, or the curvature along its slope where the inner part does not have it."""
        inner: Any = self.problem.inner
        if hasattr(getattr(inner, "inner", inner), "hessian_diagonal"):
            z, curved = self.z, inner.hessian_diagonal(self.w, self.data, self.q)
            return cast("Vector", curved + np.einsum("ik,ik->k", z, self._bent(z)) + self.l2)
        along = float(self.slope @ product(self.slope)) / max(float(self.slope @ self.slope), 1e-300)
        return np.full(self.w.shape, along)

    def _bent(self, v: Array) -> Array:
        """Return ∇²f(u) v; where p is large, the matrix is not formed."""
        outer: Any = self.problem.outer
        if self.u.size <= _MOST_SQUARE or not hasattr(outer, "hessian_product"):
            return np.asarray(self._outer_hessian @ v)
        return np.asarray(outer.hessian_product(self.u, v))

    @cached_property
    def _outer_hessian(self) -> Array:
        return np.asarray(cast("Any", self.problem.outer).hessian(self.u))

    @cached_property
    def z(self) -> Array:
        """The Jacobian of g."""
        return np.asarray(self.problem.inner.jacobian(self.w, self.data)[0])

    def _product(self) -> Callable[[Vector], Vector]:
        """Return the function v ↦ ∇²F v."""
        inner: Any = self.problem.inner
        z = self.z
        hessian = inner.hessian(self.w, self.data, self.q) if self.w.size <= _MOST_DENSE else None

        def product(v: Vector) -> Vector:
            curved = inner.hessian_product(self.w, self.data, self.q, v) if hessian is None else hessian @ v
            return cast("Vector", curved + z.T @ self._bent(z @ v) + (self.l2 * v.T).T)

        return product

    def search(self, direction: Vector, promised: float, *, matters: bool) -> tuple[Vector, int]:
        """Return the first point of w + p, w + p/2, … with a lower F, and how often the step was halved.

        Where rounding hides a decrease that matters, F must not climb there as steeply as it fell at w.
        """
        slack = _ROUNDING * abs(self.value)
        is_hidden = matters and promised <= _BLIND * abs(self.value)
        for halvings in range(_MOST_HALVINGS + 1):
            w = self.w + 0.5**halvings * direction
            w[(self.l1 > 0.0) & (w * self.orthant < 0.0)] = 0.0
            enough = _ARMIJO * 0.5**halvings * promised
            falls = self._objective(w) <= self.value - enough + slack
            if falls and not (is_hidden and self._climbs(w, direction, promised)):
                return w, halvings
        return self.w, _MOST_HALVINGS + 1

    def _climbs(self, w: Vector, direction: Vector, promised: float) -> bool:
        slope = Point(self.problem, w, self.data).slope
        return float(slope @ direction) > (1.0 - _ARMIJO) * promised

    def _objective(self, w: Vector) -> float:
        u = self.problem.inner.value(w, self.data)[0]
        return self.problem.outer.value(u) + self.problem.regularizer.value(w)


def _solve_densely(
    product: Callable[[Any], Any], slope: Vector, free: Mask, damping: float, flat: Vector
) -> Vector:
    """Solve with the diagonal scaled to one, so that no column's unit matters; NaN where the matrix overflows."""
    matrix = product(np.eye(len(slope))[:, free])[free]
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), np.nan)
    diagonal = np.maximum(np.diag(matrix), flat[free])
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    matrix, ridge = scale[:, None] * matrix * scale, damping
    while True:
        try:
            factor = cho_factor(matrix + ridge * np.eye(len(matrix)))
        except LinAlgError:  # singular but for rounding
            ridge = max(10.0 * ridge, _SINGULAR)
        else:
            return np.asarray(scale * cho_solve(factor, scale * slope[free]))


def _solve_by_products(
    product: Callable[[Vector], Vector],
    slope: Vector,
    free: Mask,
    damping: float,
    diagonal: Vector,
    accuracy: float,
) -> Vector:
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))[free]

    def times(v: Vector) -> Vector:
        whole = np.zeros_like(slope)
        whole[free] = scale * v
        return scale * product(whole)[free] + damping * v

    n_free = int(np.count_nonzero(free))
    system = LinearOperator((n_free, n_free), matvec=times, dtype=float)
    return np.asarray(scale * cg(system, scale * slope[free], rtol=accuracy, maxiter=_MOST_PRODUCTS)[0])
