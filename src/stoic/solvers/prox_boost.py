"""proxBoost of Davis, Drusvyatskiy, Xiao and Zhang: high probability around any solver."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from stoic.checks import Count, Positive
from stoic.errors import IncompatibleParts
from stoic.means import SmallestBall
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.regularizers import Anchored
from stoic.solvers.base import AUTO, AnySolver, Method, Recipe, check_method, either, method
from stoic.solvers.composite import Begin, Composite, Running
from stoic.solvers.mscg import MSCG


class ProxStage(NamedTuple):
    """Minimize F(w) + (weight/2)‖w − center‖² `n_trials` times by a solver, and choose among the answers."""

    weight: float
    solver: AnySolver
    n_trials: int


class ProxBoostState(NamedTuple):
    """The number of the stage, its center, the answers of its trials so far, and the running trial's state."""

    stage: int
    center: Vector
    answers: tuple[Vector, ...]
    inner: Any


@dataclass(frozen=True)
class ProxBoosted(Composite):
    """The plan of `ProxBoost`: stages of trials, each stage around the answer chosen in the one before.

    Parameters
    ----------
    stages : sequence of ProxStage
        In the order in which they run.
    """

    stages: tuple[ProxStage, ...]

    @property
    def needs_pilot(self) -> bool:
        """Whether a stage's solver has a setting that is still to be chosen."""
        return any(stage.solver.needs_pilot for stage in self.stages)

    def tuned(self, pilot: Pilot) -> "ProxBoosted":
        """Let each trial choose its settings from an equal share of the budget."""
        share = pilot.within(pilot.budget // sum(stage.n_trials for stage in self.stages))
        tuned = [s._replace(solver=s.solver.tuned(share.anchored(s.weight))) for s in self.stages]
        return replace(self, stages=tuple(tuned))

    def check(self, problem: Problem) -> None:
        """Check every stage's solver."""
        for stage in self.stages:
            stage.solver.check(problem)

    def solvers(self) -> Iterator[tuple[AnySolver, bool]]:
        """Walk through the solvers of the stages."""
        yield from ((stage.solver, stage.weight > 0.0) for stage in self.stages)

    def running(self, problem: Problem, state: ProxBoostState) -> Running:
        """Return the running trial, on the problem of its stage."""
        stage = self.stages[state.stage]
        return Running(stage.solver, anchored(problem, state.center, stage.weight), state.inner)

    def started(self, problem: Problem, w0: Vector, rng: Generator, begin: Begin) -> ProxBoostState:
        """Start the first trial of the first stage."""
        return self._trial(problem, (0, w0, ()), rng, begin)

    def advanced(self, problem: Problem, state: ProxBoostState, rng: Generator, begin: Begin) -> ProxBoostState:
        """Start the next trial, or the next stage."""
        return self._trial(problem, self.after(state), rng, begin)

    def _trial(
        self, problem: Problem, plan: tuple[int, Vector, tuple[Vector, ...]], rng: Generator, begin: Begin
    ) -> ProxBoostState:
        k, center, answers = plan
        stage = self.stages[k]
        inner = begin(stage.solver, anchored(problem, center, stage.weight), center, rng)
        return ProxBoostState(k, center, answers, inner)

    def after(self, state: ProxBoostState) -> tuple[int, Vector, tuple[Vector, ...]]:
        """Return the stage, the center and the answers with which the trial after a finished one begins."""
        answers = (*state.answers, self.stages[state.stage].solver.output(state.inner))
        if len(answers) < self.stages[state.stage].n_trials:
            return state.stage, state.center, answers
        return state.stage + 1, _robust_choice(answers), ()

    def finished(self, state: ProxBoostState) -> bool:
        """Whether the last trial of the last stage has finished."""
        last = self.stages[-1]
        return (
            state.stage == len(self.stages) - 1
            and len(state.answers) == last.n_trials - 1
            and last.solver.finished(state.inner)
        )

    def output(self, state: ProxBoostState) -> Vector:
        """Return the choice among the stage's answers; before there are three, the stage's center."""
        answers = state.answers
        if self.stages[state.stage].solver.finished(state.inner):
            answers = (*answers, self.stages[state.stage].solver.output(state.inner))
        if len(answers) >= min(3, self.stages[state.stage].n_trials):
            return _robust_choice(answers)
        return state.center


def anchored(problem: Problem, center: Vector, weight: float) -> Problem:
    """Return the problem with (weight/2)‖w − center‖² added, all coordinates included."""
    if weight == 0.0:
        return problem
    return problem.with_regularizer(Anchored(problem.regularizer, center, weight))


def _robust_choice(answers: tuple[Vector, ...]) -> Vector:
    """Return the answer whose ball holding half of all answers is smallest: robust distance estimation."""
    return SmallestBall(0.5).combine(np.array(answers))


@method("prox-boost")
@dataclass(frozen=True)
class ProxBoost(Recipe):
    r"""proxBoost: the "lazy" way to high probability, around any solver.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, μ-strongly convex (not only optimally so).

    **Algorithm.** For j = 0, 1, …, ⌈log₂(L/μ)⌉ + 1 minimize F(w) + (λ_j/2)‖w − w_{j−1}‖² with λ_0 = 0,
    λ_j = μ2^{j−1}: run the solver k times and take as w_j the answer whose ball holding half of all k answers is
    smallest (robust distance estimation). The last stage repeats the largest λ: the clean-up.

    **Guarantee.** A solver that comes within e of its optimum with probability 2/3 comes within 3e with
    probability 1 − e^(−k/18); the stages turn distance into a gap at the price of a power of log κ.

    **When to use it.** When strong convexity is certain and a trusted solver is at hand. `RROSC` needs neither.

    Parameters
    ----------
    solver : Solver, default MSCG()
        Tuned for each stage; its own settings are kept where they are given.
    mu : float
        The modulus of strong convexity; that of the regularizer by default.
    n_trials : int, default 5
        k. The theorem's is ⌈18 ln(n_stages/δ)⌉.

    References
    ----------
    D. Davis, D. Drusvyatskiy, L. Xiao, J. Zhang: From low probability to high confidence in stochastic convex
    optimization. JMLR 22 (2021).

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ [1.0, 2.0]), stoic.Linear(), stoic.L2(0.01))
    >>> stoic.minimize(problem, "prox-boost", budget=100_000, seed=0).w.round(1)
    array([1., 2.])
    """

    solver: Annotated[Method, check_method] = MSCG()
    mu: Positive = AUTO
    n_trials: Count = 5

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` unless F is known to be strongly convex."""
        self.solver.check(problem)
        if self.mu is AUTO and problem.strong_convexity <= 0.0:
            raise IncompatibleParts(
                f"proxBoost needs a strongly convex objective, but {problem.regularizer} does not make it so; "
                "use L2 or ElasticNet without an intercept, or give mu if f(g(w)) itself is strongly convex."
            )

    def tuned(self, pilot: Pilot) -> ProxBoosted:
        """Share the budget among the stages in proportion to their condition numbers."""
        mu, pilot = either(self.mu, pilot.modulus), replace(pilot, fewest_steps=100)
        n_stages = max(1, math.ceil(math.log2(max(2.0, pilot.L / mu))))
        weights = [0.0, *(mu * 2.0**j for j in range(n_stages))]
        weights.append(weights[-1])
        needs = [(pilot.L + weight) / (max(mu, pilot.mu) + weight) + 2.0 for weight in weights]
        shares = [math.floor(pilot.budget * need / sum(needs) / self.n_trials) for need in needs]
        return ProxBoosted(
            tuple(
                ProxStage(weight, self.solver.tuned(pilot.within(share).anchored(weight)), self.n_trials)
                for weight, share in zip(weights, shares, strict=True)
            )
        )
