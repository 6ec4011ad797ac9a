"""RCIVR, restarted CIVR with the rules for finite sums and for expectations."""

import math
from dataclasses import dataclass
from typing import Literal

from stoic.checks import Count, Positive
from stoic.errors import InvalidParameter
from stoic.pilot import Pilot
from stoic.solvers.base import AUTO, Recipe, either, method
from stoic.solvers.civr import CIVR, EVERYTHING
from stoic.solvers.restarted import Restarted


@method("rcivr")
@dataclass(frozen=True)
class RCIVR(Recipe):
    r"""Restarted composite incremental variance reduction, a baseline of the paper's experiment.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`, optimally strongly convex.

    **Algorithm.** `CIVR` again and again from its own output. Finite sum of n: B = n and τ = S = ⌈√n⌉ (of each
    group). Expectation: B doubles from epoch to epoch, as ε_k halves, with τ ≥ 5/(μη) and S = B/τ.

    **Guarantee.** In expectation: linear convergence on finite sums, O(log(1/ε)/(με)) samples on expectations.

    **When to use it.** Finite data that are passed over many times: it converges to the exact optimum of the data
    at hand, fast where the condition number is moderate. With wild labels that optimum is itself wild.

    Parameters
    ----------
    rule : {"finite-sum", "expectation"}
        By default "finite-sum" where the budget allows at least four epochs.
    step_size : float
        η; from the pilot by default.
    n_stages : int
        Number of epochs; as many as the budget allows by default.

    References
    ----------
    J. Zhang, L. Xiao: A stochastic composite gradient method with incremental variance reduction. NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2))
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ [1.0, 2.0]), stoic.LogSumExp(1.0), stoic.L2(0.1))
    >>> w = stoic.minimize(problem, "rcivr", budget=50_000, seed=0).w
    >>> bool(np.linalg.norm(problem.gradient(w) + 0.1 * w) < 1e-9)
    True
    """

    rule: Literal["finite-sum", "expectation"] = AUTO
    step_size: Positive = AUTO
    n_stages: Count = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule is not AUTO and self.rule not in {"finite-sum", "expectation"}:
            raise InvalidParameter(f"rule={self.rule!r} is not 'finite-sum' or 'expectation'.")

    def tuned(self, pilot: Pilot) -> Restarted:
        """Fill the budget with epochs of the rule that the data allow."""
        n = pilot.n_samples
        rule = either(self.rule, "finite-sum" if n is not None and 8 * n <= pilot.budget else "expectation")
        return self._finite_sum(pilot) if rule == "finite-sum" else self._expectation(pilot)

    def _finite_sum(self, pilot: Pilot) -> Restarted:
        n = pilot.n_samples or 1
        root = math.ceil(math.sqrt(n / pilot.cost))
        epoch = CIVR(
            step_size=either(self.step_size, pilot.step_size(root)),
            batch_size=root,
            n_steps=root,
            anchor_size=EVERYTHING,
        )
        affordable = math.ceil(pilot.budget / (n + (root - 1) * root * pilot.cost))
        return Restarted((epoch,) * either(self.n_stages, max(1, affordable)))

    def _expectation(self, pilot: Pilot) -> Restarted:
        eta = either(self.step_size, pilot.step_size(8))
        steps = math.ceil(5.0 / (pilot.mu * eta))
        most = math.floor(math.log2(pilot.draws() / (2.0 * steps) + 1.0))
        n_stages = either(self.n_stages, min(max(1, most), 12))
        first = pilot.draws() / (2.0 * (2**n_stages - 1))
        anchors = [max(1, math.floor(first * 2**k)) for k in range(n_stages)]
        return Restarted(tuple(self._epoch(anchor, steps, pilot) for anchor in anchors))

    def _epoch(self, anchor: int, steps: int, pilot: Pilot) -> CIVR:
        n_steps = max(2, min(anchor, max(steps, math.isqrt(anchor))))  # τ ~ √B, and at least 5/(μη)
        batch_size = max(1, anchor // n_steps)
        return CIVR(
            step_size=either(self.step_size, pilot.step_size(batch_size)),
            batch_size=batch_size,
            n_steps=n_steps,
            anchor_size=anchor,
        )
