"""RROSC with a tracked estimate of g: the paper's method without its bias floor."""

from dataclasses import dataclass, replace
from typing import Any

from stoic.pilot import Pilot
from stoic.solvers.base import either, method
from stoic.solvers.restarted import Restarted
from stoic.solvers.rosc import ROSC
from stoic.solvers.rrosc import RROSC
from stoic.solvers.tracked_rosc import TrackedROSC
from stoic.theory.plans import Plan, TruncatedStage


@method("auto")
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
