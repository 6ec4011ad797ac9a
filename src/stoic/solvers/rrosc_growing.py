"""RROSC with batches that grow: the repair of Theorem 3, in practice."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from stoic.pilot import MOST_STAGES, Pilot
from stoic.solvers.base import AUTO, either, method
from stoic.solvers.rosc import ROSC
from stoic.solvers.rrosc import RROSC

_ENOUGH_STAGES = 4  # what the first ones leave of the way from the start is then little in the last one's average


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
