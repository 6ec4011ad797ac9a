"""RROSC, restarted ROSC (Algorithm 4, Theorem 3), and its two variants without a bias floor."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from stoic.checks import Count, Positive
from stoic.errors import InvalidParameter
from stoic.pilot import MOST_STAGES, Pilot
from stoic.solvers.base import AUTO, Radius, Recipe, either, method
from stoic.solvers.restarted import Restarted
from stoic.solvers.rosc import ROSC, LevelSettings
from stoic.solvers.tracked_rosc import TrackedROSC
from stoic.theory.plans import Plan, TruncatedStage

_ENOUGH_STAGES = 4  # what the first ones leave of the way from the start is then little in the last one's average


@method("rrosc")
@dataclass(frozen=True)
class RROSC(Recipe):
    r"""Restarted robust stochastic compositional optimization: Algorithm 4 of the paper.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, μ-optimally strongly convex; samples of g and ∇g
    need second moments only.

    **Algorithm.** K stages of `ROSC`, each around a fresh robust reference; from stage to stage η halves, T
    doubles and the ball's radius shrinks by √2. The batch size m stays.

    **Guarantee.** Linear f: F(ŵ) − F* ≤ ε with probability 1 − δ and O(log²(1/δ)/(με)) samples (Theorem 3);
    `RROSC.from_plan` runs the theorem's own plan. For a non-linear f the theorem does not hold: with a
    constant batch E ∇f(ŷ) ≠ ∇f(g), and the gap stops at a floor of order 1/(μm²) when ∇²f is Lipschitz,
    1/(μm) at worst. The defaults take m as large as the number of steps allows, which keeps the floor low;
    `RROSCTracked` and `RROSCGrowing` have none.

    **When to use it.** To repeat the paper, or where f is linear.

    Parameters
    ----------
    n_stages, step_size, batch_size : int, float, int
        K, η₁ and m; from the pilot by default.
    n_steps : int
        T₁, the length of the first stage.
    radius : float
        D₁; the paper's experiments take 100.
    levels : Levels or Calibrated
        Truncation levels; measured anew on each stage's reference batch by default.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(3000) % 3), stoic.LogSumExp(10.0))
    >>> stoic.minimize(problem, "rrosc", budget=100_000, seed=0).w.round(0)
    array([1., 2.])
    """

    n_stages: Count = AUTO
    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = AUTO
    radius: Radius = AUTO
    levels: LevelSettings = AUTO

    growth: ClassVar[float] = 0.0
    """By which power of 2 the batch grows from stage to stage; η shrinks and T grows by what is left of 2."""

    @staticmethod
    def from_plan(plan: Plan[TruncatedStage]) -> Restarted:
        """Return the solver of a plan of `theorem_3` or `growing_plan`."""
        if any(stage.weight is not None for stage in plan.stages):
            raise InvalidParameter(
                "The plan has weights for a tracked y, which ROSC does not have; use RROSCTracked.from_plan."
            )
        return Restarted(tuple(ROSC.of(stage) for stage in plan.stages))

    def tuned(self, pilot: Pilot) -> Restarted:
        """Tune one stage on its own, then let η shrink, m and T grow, and D shrink by √2."""
        pilot = pilot.truncated
        m, n_stages = self.sizes(pilot)
        first_step = either(self.step_size, pilot.step_size(m))
        one = self.stage(step_size=first_step, batch_size=m, radius=self.radius).tuned(pilot)
        pilot = replace(pilot, delta=pilot.delta / n_stages)
        first = pilot.n_steps(m) / (2**n_stages - 1)
        return Restarted(tuple(self._stage(k, one, pilot, first) for k in range(n_stages)))

    def sizes(self, pilot: Pilot) -> tuple[int, int]:
        """Return m of the first stage, and the number of stages."""
        m = either(self.batch_size, pilot.batch_size())
        step = either(self.step_size, pilot.step_size(m))
        return m, either(self.n_stages, pilot.n_stages(pilot.n_steps(m), step))

    def stage(self, **settings: Any) -> ROSC:
        """Return a stage with these settings, the levels, and nothing else chosen."""
        return ROSC(**settings, levels=self.levels)

    def _stage(self, k: int, one: ROSC, pilot: Pilot, first: float) -> ROSC:
        share = pilot.within(math.floor(first * 2**k) * one.batch_size * pilot.cost)
        stage = self.stage(
            step_size=one.step_size / 2.0 ** (k * (1.0 - self.growth)),
            batch_size=round(one.batch_size * 2.0 ** (k * self.growth)),
            radius=one.radius / 2.0 ** (k / 2.0),
        ).tuned(share)
        if self.n_steps is AUTO:
            return stage
        return replace(stage, n_steps=round(self.n_steps * 2.0 ** (k * (1.0 - self.growth))))


@method("rrosc-growing")
@dataclass(frozen=True)
class RROSCGrowing(RROSC):
    r"""Restarted ROSC with batches that grow from stage to stage: no bias floor.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, μ-optimally strongly convex; samples of g and ∇g
    need second moments only, and ∇²f is Lipschitz.

    **Algorithm.** That of `RROSC`, but from stage to stage m and T grow by √2, and η shrinks by √2 like the ball's
    radius. By default the samples of a batch are truncated one by one (see `ROSC`).

    **Guarantee.** None is proven for these settings, which have measured levels and truncate samples.
    ``RROSC.from_plan(growing_plan(…))`` has one: batches that grow alike, whose means are truncated at the levels
    of the plan, reach F(ŵ) − F* ≤ ε with probability 1 − δ and O(log²(1/δ)/(με)) samples (``docs/growing.md``).

    **When to use it.** Where f is not linear. `RROSCTracked` is as good, and does without large batches.

    Parameters
    ----------
    n_stages, step_size, batch_size, n_steps, radius, levels
        As for `RROSC`; step_size, batch_size and n_steps are those of the first stage. By default the batch of the
        last stage is a third of the square root of the number of draws.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(3000) % 3), stoic.LogSumExp(1.0))
    >>> stoic.minimize(problem, "rrosc-growing", budget=100_000, seed=0).w.round(0)
    array([1., 2.])
    """

    growth: ClassVar[float] = 0.5

    def sizes(self, pilot: Pilot) -> tuple[int, int]:
        """Return m and the number of stages: the most whose first is long enough, or four with a smaller m."""
        n_draws = pilot.draws()
        for n_stages in range(MOST_STAGES, 0, -1) if self.n_stages is AUTO else (self.n_stages,):
            m = either(self.batch_size, max(1, round(math.sqrt(n_draws / 2 ** (n_stages - 1)) / 3.0)))
            shortest = pilot.shortest(either(self.step_size, pilot.step_size(m)))
            room = math.floor(n_draws / (2**n_stages - 1) / shortest)
            if room >= m or (room >= 1 and n_stages <= _ENOUGH_STAGES):
                break
        return either(self.batch_size, max(1, min(m, room))), n_stages

    def stage(self, **settings: Any) -> ROSC:
        """Return a stage with these settings."""
        return ROSC(**settings, levels=self.levels, truncates="samples")


@method("rrosc-tracked")
@dataclass(frozen=True)
class RROSCTracked(RROSC):
    r"""Restarted ROSC whose estimate of g is tracked: the paper's method without its bias floor.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, strongly convex around its optimum; samples of g
    and ∇g need second moments only, and f need not be linear.

    **Algorithm.** The restarts, the ball and the truncation of `RROSC`; stages of `TrackedROSC`: ∇f is taken at a
    moving average y of truncated estimates of g that starts at the robust reference. From stage to stage η and the
    weight of a sample in y halve, T doubles and the ball's radius shrinks by √2.

    **Guarantee.** If ∇²f is Lipschitz, ``RROSCTracked.from_plan(tracked_plan(…))`` ends with F(ŵ) − F* ≤ ε with
    probability 1 − δ, after O(1/(με)) samples up to logarithms (``docs/tracked_proof.md``). None is proven for the
    default settings, which are far less cautious. Measured, their gap falls like 1/samples, and its quantiles stay
    close together under heavy tails: ``docs/tracked.md`` has the reasons and the figures.

    **When to use it.** Whenever f is not linear, as in group DRO.

    Parameters
    ----------
    n_stages, step_size, batch_size, n_steps, radius, levels
        As for `RROSC`. The batch size is 1 by default: y does not need a larger one.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(3000) % 3), stoic.LogSumExp(1.0))
    >>> stoic.minimize(problem, "rrosc-tracked", budget=100_000, seed=0).w.round(0)
    array([1., 2.])
    """

    @staticmethod
    def from_plan(plan: Plan[TruncatedStage]) -> Restarted:
        """Return the solver of a plan of `tracked_plan`."""
        return Restarted(tuple(TrackedROSC.of(stage) for stage in plan.stages))

    def sizes(self, pilot: Pilot) -> tuple[int, int]:
        """Return a batch of 1, and the number of stages."""
        return RROSC.sizes(replace(self, batch_size=either(self.batch_size, 1)), pilot)

    def stage(self, **settings: Any) -> ROSC:
        """Return a stage with these settings."""
        return TrackedROSC(**settings, levels=self.levels)
