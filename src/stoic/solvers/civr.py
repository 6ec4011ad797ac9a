"""CIVR and RCIVR, composite incremental variance reduction of Zhang and Xiao: one epoch, and restarted."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

from numpy.random import Generator

from stoic.checks import Count, Positive, check_count
from stoic.errors import IncompatibleParts, InvalidParameter
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Array, Vector
from stoic.solvers.base import AUTO, UNBOUNDED, Info, Recipe, Stepwise, either, method, planned
from stoic.solvers.restarted import Restarted

EVERYTHING = 0
"""The anchor size that stands for the whole finite sum."""


class CIVRState(NamedTuple):
    """The iterates w_i and w_{i−1}, i, and the running estimates y and z at w_{i−1}."""

    w: Vector
    previous: Vector
    t: int
    y: Vector | None
    z: Array | None


@method("civr")
@dataclass(frozen=True)
class CIVR(Stepwise):
    r"""Composite incremental variance reduction, one epoch.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; each sample's g and ∇g must be Lipschitz.

    **Algorithm.** An anchor batch of B samples gives y, z at w₀; every later step draws S samples and evaluates
    them at w_i and w_{i−1}:

    .. math::
        y \leftarrow y + \mathrm{mean}[g(w_i; \xi) - g(w_{i-1}; \xi)], \quad
        z \leftarrow z + \mathrm{mean}[\nabla g(w_i; \xi) - \nabla g(w_{i-1}; \xi)], \quad
        w_{i+1} = \mathrm{prox}_{\eta r}(w_i - \eta z^\top \nabla f(y)).

    The output is the last iterate w_τ (its theory returns a random one). The anchor costs B samples, a step S
    samples and 2S evaluations (of each group). z is a dense p × d matrix by nature.

    **Guarantee.** In expectation; see `RCIVR`, which repeats it.

    **When to use it.** As the building block of `RCIVR`.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, S and τ; from the pilot by default.
    anchor_size : int
        B; ``stoic.EVERYTHING`` (0) for the whole finite sum.

    References
    ----------
    J. Zhang, L. Xiao: A stochastic composite gradient method with incremental variance reduction. NeurIPS 2019.

    Examples
    --------
    >>> import stoic
    >>> stoic.CIVR(step_size=0.1, batch_size=8, n_steps=8, anchor_size=stoic.EVERYTHING).needs_pilot
    False
    """

    kernel: ClassVar[str] = "civr"

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    anchor_size: Annotated[int, partial(check_count, low=0)] = AUTO

    def tuned(self, pilot: Pilot) -> "CIVR":
        """Spend half of the budget (or the whole data, if less) on the anchor, the rest on 5/(μη) steps."""
        fits = pilot.n_samples is not None and 2 * pilot.n_samples <= pilot.budget
        anchor = either(self.anchor_size, EVERYTHING if fits else max(1, pilot.draws() // 2))
        left = pilot.draws() - (anchor or (pilot.n_samples or 0) // pilot.cost)
        m = either(self.batch_size, max(1, math.floor(left * pilot.mu / (10.0 * pilot.L))))
        n_steps = planned(self.n_steps, max(2, left // m))
        return replace(
            self,
            step_size=either(self.step_size, pilot.step_size(m)),
            batch_size=m,
            n_steps=n_steps,
            anchor_size=anchor,
        )

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` if the anchor is everything and the data are a stream."""
        if self.anchor_size == EVERYTHING and problem.inner.n_samples is None:
            raise IncompatibleParts(
                "CIVR(anchor_size=EVERYTHING) needs a finite sum, but the inner part is a stream; "
                "give the number of samples of the anchor."
            )

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the anchor and of the later steps."""
        anchor = inner.cost(self.anchor_size) if self.anchor_size else inner.n_samples or 0
        return anchor + (self.n_steps - 1) * inner.cost(self.batch_size)

    def output(self, state: CIVRState) -> Vector:
        """Return the last iterate."""
        return state.w

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> CIVRState:  # noqa: ARG002
        """Start at w0; the anchor is drawn by the first step."""
        return CIVRState(w0, w0, 0, None, None)

    def step(self, problem: Problem, state: CIVRState, rng: Generator) -> tuple[CIVRState, Info]:
        """Anchor at the first step, correct y and z at the later ones; then move w."""
        is_first = state.y is None
        y, z = self._anchor(problem, state.w, rng) if is_first else self._correct(problem, state, rng)
        ahead = state.w - self.step_size * (z.T @ problem.outer.gradient(y))
        w = problem.regularizer.prox(ahead, self.step_size)
        return CIVRState(w, state.w, state.t + 1, y, z), Info()

    def _anchor(self, problem: Problem, w: Vector, rng: Generator) -> tuple[Vector, Array]:
        inner = problem.inner
        batch = inner.draw(self.anchor_size, rng) if self.anchor_size else inner.everything()
        return inner.value(w, batch)[0], inner.jacobian(w, batch)[0]

    def _correct(self, problem: Problem, state: CIVRState, rng: Generator) -> tuple[Vector, Array]:
        inner, w, before = problem.inner, state.w, state.previous
        batch = inner.draw(self.batch_size, rng)
        y = state.y + inner.value(w, batch)[0] - inner.value(before, batch)[0]
        z = state.z + inner.jacobian(w, batch)[0] - inner.jacobian(before, batch)[0]
        return y, z


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
