"""ALEXR and SOX of Wang and Yang: few groups a step, and an estimate of g kept by group."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from stoic.checks import Count, Positive, check_real
from stoic.errors import IncompatibleParts
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector, draws_groups
from stoic.solvers.base import AUTO, UNBOUNDED, Info, Weight, either, method, planned
from stoic.solvers.group_sampling import (
    bounded,
    chances_from,
    choose,
    default_groups,
    follow,
    groups_drawn,
    is_refresh,
    refresh_period,
    shares,
)
from stoic.solvers.two_scale import TrackedState, Tracking


class GroupTracking(Tracking):
    """A solver that draws some groups a step, and whose y is kept by group."""

    groups_per_step: int
    importance: float
    extrapolation: Any
    step_size: float
    weight: float
    batches_per_step: ClassVar[int] = 2

    @property
    def needs_pilot(self) -> bool:
        """Whether a setting is still to be chosen, but for the number of groups, which follows from p."""
        return any(getattr(self, name) is AUTO for name in ("step_size", "batch_size"))

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` if some groups are to be drawn where only all of them can be."""
        p = problem.inner.shape[0]
        if self.groups_per_step is not AUTO and self.groups_per_step < p and not draws_groups(problem.inner):
            raise IncompatibleParts(
                f"groups_per_step={self.groups_per_step} needs an inner part that draws some of its {p} outputs "
                f"without the others, and {problem.inner!r} does not; leave groups_per_step out, or use GroupLoss "
                f"or GroupSoftmax (docs/add_a_part.md)."
            )

    def n_drawn(self, inner: AnyInner) -> int:
        """Return how many groups a step draws."""
        return groups_drawn(inner, None if self.groups_per_step is AUTO else self.groups_per_step)

    def tuned(self, pilot: Pilot) -> Self:
        """Take the step for averages, for the noise of the groups that a step draws."""
        p = pilot.n_groups
        k = min(either(self.groups_per_step, default_groups(p)), p)
        if k == p:
            m = either(self.batch_size, pilot.batch_size(per_step=2))
            n_steps = planned(self.n_steps, pilot.n_steps(m, per_step=2))
        else:
            m = either(self.batch_size, 1)
            n_steps = planned(self.n_steps, max(1, (pilot.budget - pilot.cost * m) // (2 * k * m)))
            pilot = pilot.of_groups(k)
        return replace(  # type: ignore[type-var]
            self,
            step_size=either(self.step_size, pilot.averaging_step(m, n_steps)),
            batch_size=m,
            n_steps=n_steps,
            groups_per_step=k if self.groups_per_step is AUTO and p > 1 else self.groups_per_step,
        )

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the first batch, which is of all groups, and of all steps."""
        m, k = self.batch_size, self.n_drawn(inner)
        if k == inner.shape[0]:
            return super().planned_samples(inner)
        some: Any = inner
        return inner.cost(m) + self.batches_per_step * self.n_steps * int(some.cost(m, np.arange(k)))

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> TrackedState:
        """Start y at the mean of a first batch of all groups."""
        state = super().init(problem, w0, rng)
        if self.n_drawn(problem.inner) == problem.inner.shape[0]:
            return state
        return state._replace(chances=chances_from(problem.outer.gradient(state.y), self.importance))

    def step(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        """Move y with one batch, w with another."""
        if state.chances is not None:
            return self._step_of_some(problem, state, rng)
        inner, w = problem.inner, state.w
        batch = inner.draw(self.batch_size, rng)
        y = (1.0 - self.weight) * state.y + self.weight * self._ahead(inner, state, batch)
        v = inner.vjp(w, inner.draw(self.batch_size, rng), problem.outer.gradient(y))
        w = problem.regularizer.prox(w - self.step_size * v, self.step_size)
        return state.moved(w, y)._replace(previous=state.w), Info()

    def _step_of_some(self, problem: Problem, state: TrackedState, rng: Generator) -> tuple[TrackedState, Info]:
        inner: Any = problem.inner
        w, k, m = state.w, self.n_drawn(inner), self.batch_size
        chances: Any = state.chances
        if is_refresh(state.t, refresh_period(len(state.y), k)):
            chances = chances_from(problem.outer.gradient(state.y), self.importance)
        groups = choose(chances, rng.random(k))
        y = follow(state.y, groups, self._ahead(inner, state, inner.draw(m, rng, groups)), self.weight)
        q = bounded(problem.outer.gradient(y).take(groups) * shares(chances, groups), chances)
        v = inner.vjp(w, inner.draw(m, rng, groups), q)
        w = problem.regularizer.prox(w - self.step_size * v, self.step_size)
        previous = state.previous if self.extrapolation == 0.0 else state.w
        return state.moved(w, y)._replace(previous=previous, chances=chances), Info()

    def _ahead(self, inner: AnyInner, state: TrackedState, batch: Any) -> Vector:
        """Return the values that y is to move to: those at w_t, extrapolated from w_{t−1}."""
        here: Vector = inner.value(state.w, batch)[0]
        if self.extrapolation == 0.0:
            return here
        theta = float(self.extrapolation)
        return here + theta * (here - inner.value(state.previous, batch)[0])


@method("alexr")
@dataclass(frozen=True)
class ALEXR(GroupTracking):
    r"""ALEXR: a single loop over few groups a step, with an extrapolated moving average by group.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; its theory is for separable f.

    **Algorithm.** Draw k of the p groups. Of each, one batch evaluated at w_t and w_{t−1} moves its entry of y,
    and an independent one its Jacobian; the entries of other groups stay as they are. With :math:`P_i` the chance of
    group i,

    .. math::
        y_i &\leftarrow (1 - \gamma) y_i
            + \gamma\,[\,g_i(w_t; \xi) + \theta\,(g_i(w_t; \xi) - g_i(w_{t-1}; \xi))\,], \\
        w_{t+1} &= \mathrm{prox}_{\eta r}\Big(w_t - \eta \sum_{i\ \mathrm{drawn}} \frac{1}{k P_i}\,
            \frac{\partial f}{\partial u_i}(y)\, \nabla g_i(w_t; \xi')\Big), \qquad
        P_i = \frac{1 - a}{p} + a\,\frac{|q_i|}{\sum_j |q_j|} .

    q = ∇f(y) as it was when chances were last computed, before steps 0, 1, 2, 4, … and then every max(64, p/(4k))
    steps. Choices are stratified: number j is made in the jth k-th of the cumulative chances. The output is the
    average of w_1 … w_T. A step costs 2km samples and 3km evaluations, the first batch, of all groups, pm. Where
    the inner part can only draw all groups, or there are no more than 64, k = p and :math:`k P_i = 1`.

    **For a coupled f,** such as log-sum-exp, where ∂f/∂u_i depends on all of y, it is taken at the whole y, in
    which groups that were not drawn for long are as old as that. Where such a weight has outgrown the chances, it
    is cut at twice what they would allow, so that few rows are not the whole step. Kernels keep the normalizer of
    log-sum-exp as a running sum, so that a step costs what its rows cost; the plain engine, and `SmoothCVaR` in
    both, compute ∇f anew, at a cost of p.

    **Guarantee.** In expectation, near-optimal for convex separable f and a prox-friendly r, drawn uniformly. For
    a coupled f, or chances that follow q, none is proven.

    **When to use it.** Light tails, very many groups.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, m and T; from the pilot by default.
    weight : float, default 0.1
        γ: each entry of y averages about 2/γ batches.
    extrapolation : float, default 1.0
        θ.
    groups_per_step : int
        k; by default p, or 32 of more than 64.
    importance : float, default 0.5
        a: which share of the choices follows q; 0 draws groups uniformly, 1 for a `Linear` f in proportion to its
        weights.

    References
    ----------
    B. Wang, T. Yang: A near-optimal single-loop stochastic algorithm for convex finite-sum coupled compositional
    optimization, ICML 2025.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 2))
    >>> inner = stoic.GroupLoss(X, X @ [1.0, 2.0] + rng.standard_normal(4000), np.arange(4000) % 200)
    >>> problem = stoic.Problem(inner, stoic.LogSumExp(2.0))
    >>> stoic.minimize(problem, stoic.ALEXR(groups_per_step=10), budget=40_000, seed=0).w.round(0)
    array([1., 2.])
    """

    kernel: ClassVar[str] = "two_scale"

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    weight: Weight = 0.1
    extrapolation: Annotated[float, partial(check_real, low=0.0)] = 1.0
    groups_per_step: Count = AUTO
    importance: Weight = 0.5


@method("sox")
@dataclass(frozen=True)
class SOX(GroupTracking):
    r"""SOX: few groups a step, and a moving average of g by group.

    `ALEXR` without extrapolation: :math:`y_i \leftarrow (1 - \gamma) y_i + \gamma\, g_i(w_t; \xi)` for the groups
    drawn. A step costs 2km samples and as many evaluations. The paper's moving average of gradients is left out
    (β = 1 there), as the answer is an average.

    **When to use it.** As `ALEXR`; beside it, to see what extrapolation is worth.

    Parameters
    ----------
    step_size, batch_size, n_steps, weight, groups_per_step, importance
        As for `ALEXR`.

    References
    ----------
    B. Wang, T. Yang: Finite-sum coupled compositional stochastic optimization: theory and applications, ICML 2022.

    Examples
    --------
    >>> import stoic
    >>> stoic.SOX(groups_per_step=8).extrapolation
    0.0
    """

    kernel: ClassVar[str] = "two_scale"

    @property
    def extrapolation(self) -> float:
        """0, where ALEXR has θ."""
        return 0.0

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    weight: Weight = 0.1
    groups_per_step: Count = AUTO
    importance: Weight = 0.5
