"""RMSCG, restarted MSCG with batches that double: Algorithm 3, Theorems 1 and 2."""

import math
from dataclasses import dataclass

from stoic.checks import Count, Positive
from stoic.means import GeometricMedianOfMeans, Mean, SmallestBall
from stoic.pilot import Pilot
from stoic.solvers.base import AUTO, Recipe, RobustMean, either, method
from stoic.solvers.mscg import MSCG
from stoic.solvers.restarted import Restarted
from stoic.theory.plans import Plan, Stage


@method("rmscg")
@dataclass(frozen=True)
class RMSCG(Recipe):
    r"""Restarted mini-batch stochastic compositional gradient: Algorithm 3 of the paper.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, μ-optimally strongly convex, any smooth f.

    **Algorithm.** K stages of `MSCG` with the same η and T; the batch doubles from stage to stage.

    **Guarantee.** Plain means: E F(ŵ) − F* ≤ ε with Õ(1/(μ²ε)) samples (Theorem 1). ``mean=SmallestBall(δ)``
    in every step: F(ŵ) − F* ≤ ε with probability 1 − δ and O(log(κ/δ)/(μ²ε)) samples (Theorem 2).
    `RMSCG.from_plan` runs the theorems' own plans.

    **When to use it.** ``"rmscg"`` as the light-tailed baseline of the paper's experiment; ``"rmscg-robust"`` for
    heavy tails and a non-linear f, at the price of many samples a step.

    Parameters
    ----------
    n_stages, step_size, batch_size, n_steps : int, float, int, int
        K, η, m₁ and T; from the pilot by default.
    mean : MeanEstimator, default Mean()
        ``AUTO``, what ``"rmscg-robust"`` takes, is `GeometricMedianOfMeans` with the δ/(2TK) of Theorem 2, or the
        smallest δ that the batches can buy: its error bound is of the same form as that of the paper's
        `SmallestBall`, with a fifth of the blocks, and it does not live on one block alone.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ [1.0, 2.0]), stoic.LogSumExp(1.0))
    >>> stoic.minimize(problem, "rmscg", budget=50_000, seed=0).w.round(2)
    array([1., 2.])
    """

    n_stages: Count = AUTO
    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = AUTO
    mean: RobustMean = Mean()

    @staticmethod
    def from_plan(plan: Plan[Stage]) -> Restarted:
        """Return the solver of a plan of Theorem 1 or 2."""
        return Restarted(
            tuple(
                MSCG(
                    step_size=stage.step_size,
                    batch_size=stage.batch_size,
                    n_steps=stage.n_steps,
                    mean=Mean() if stage.delta is None else SmallestBall(stage.delta),
                )
                for stage in plan.stages
            )
        )

    def tuned(self, pilot: Pilot) -> Restarted:
        """Take η = 1/(2L) and as many stages of at least 5/(μη) steps as the budget allows."""
        m = either(self.batch_size, self._first_batch(pilot))
        step_size = either(self.step_size, pilot.step_size(m))
        total = pilot.n_steps(m, per_step=2)
        n_stages = either(self.n_stages, pilot.n_stages(total, step_size))
        n_steps = either(self.n_steps, max(1, total // (2**n_stages - 1)))
        events = 2 * n_steps * n_stages
        rate = GeometricMedianOfMeans.rate
        delta = max(pilot.delta / events, math.exp(-max(3, m // 4) / rate))  # blocks of four samples or more
        mean = either(self.mean, GeometricMedianOfMeans(delta))
        return Restarted(
            tuple(
                MSCG(step_size=step_size, batch_size=m * 2**k, n_steps=n_steps, mean=mean) for k in range(n_stages)
            )
        )

    def _first_batch(self, pilot: Pilot) -> int:
        if self.mean is not AUTO:
            return max(pilot.batch_size(per_step=2), self.mean.smallest_batch)
        fewest = math.ceil(20.0 * pilot.condition)  # robust batches are large: spend on them what κ allows
        return max(8, pilot.draws() // (2 * max(fewest, 600)))


@method("rmscg-robust")
def robust_rmscg() -> RMSCG:
    """Return RMSCG with a robust mean in every step."""
    return RMSCG(mean=AUTO)
