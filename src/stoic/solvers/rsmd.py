"""RSMD, robust stochastic mirror descent of Nazin, Nemirovsky, Tsybakov and Juditsky."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from stoic.checks import Count, Positive, check_real
from stoic.errors import IncompatibleParts
from stoic.means import SmallestBall
from stoic.pilot import Pilot
from stoic.pilot.probes import median_distance
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector
from stoic.regularizers import prox_in_ball
from stoic.solvers.base import AUTO, Averaging, Info, Radius, Recipe, RobustMean, either, method, running_mean
from stoic.solvers.restarted import Restarted
from stoic.truncation import truncate


class RSMDState(NamedTuple):
    """The iterate, the average, t, the stage's center w̄, and the reference gradient with its scale."""

    w: Vector
    average: Vector
    t: int
    center: Vector
    reference: Vector
    slack: float


@dataclass(frozen=True)
class RSMDStage(Averaging):
    """One stage of `RSMD`: truncated gradient steps in a ball around its first point.

    Parameters
    ----------
    step_size, batch_size, n_steps, radius : float, int, int, float
        η, m, N and R.
    reference_size : int
        Samples of the reference gradient.
    reference_mean : MeanEstimator
        The robust mean of the reference gradient.
    smoothness : float
        L, the growth of the truncation level with the distance from the center.
    factor, least : float
        The slack is scale · max(least, factor · √N), with the scale measured on the reference batch.
    """

    step_size: Positive
    batch_size: Count
    n_steps: Count
    radius: Radius
    reference_size: Count
    reference_mean: RobustMean
    smoothness: float
    factor: float
    least: float

    def tuned(self, pilot: Pilot) -> "RSMDStage":  # noqa: ARG002
        """Return itself: a stage has no open settings."""
        return self

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` unless f is linear."""
        self.reference_mean.n_blocks(self.reference_size)
        require_linear_outer(problem)

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the reference and of all steps."""
        return inner.cost(self.reference_size) + self.n_steps * inner.cost(self.batch_size)

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> RSMDState:
        """Draw the reference gradient."""
        inner, b = problem.inner, self.reference_size
        q = problem.outer.gradient(np.zeros(inner.shape[0]))
        blocks = self.reference_mean.n_blocks(b)
        gradients = inner.jacobian(w0, inner.draw(b, rng), blocks).transpose(0, 2, 1) @ q
        reference = self.reference_mean.combine(gradients)
        scale = median_distance(gradients, reference)
        wide = max(self.least, self.factor * math.sqrt(self.n_steps))
        slack = wide * scale * math.sqrt(b / blocks / self.batch_size) if scale > 0.0 else math.inf
        return RSMDState(w0, w0, 0, w0, reference, slack)

    def step(self, problem: Problem, state: RSMDState, rng: Generator) -> tuple[RSMDState, Info]:
        """Replace an outlying gradient by the reference, then step inside the ball."""
        inner, w = problem.inner, state.w
        q = problem.outer.gradient(np.zeros(inner.shape[0]))
        gradient = inner.vjp(w, inner.draw(self.batch_size, rng), q)
        level = self.smoothness * float(np.linalg.norm(w - state.center)) + state.slack
        v, is_truncated = truncate(gradient, state.reference, level)
        w = prox_in_ball(problem.regularizer, w - self.step_size * v, self.step_size, state.center, self.radius)
        t = state.t + 1
        moved = state._replace(w=w, average=running_mean(state.average, w, t), t=t)
        return moved, Info(watched=1, truncated_z=int(is_truncated))


def require_linear_outer(problem: Problem) -> None:
    """Raise `IncompatibleParts` unless f is linear."""
    if not problem.has_linear_outer:
        raise IncompatibleParts(
            f"RSMD needs a linear outer function, but the problem has {problem.outer}; "
            "use RROSC, or Linear() as the outer function."
        )


@method("rsmd")
@dataclass(frozen=True)
class RSMD(Recipe):
    r"""Robust stochastic mirror descent with restarts, in the Euclidean setting.

    **Problem.** Plain stochastic problems: :math:`F(w) = \langle c, \mathrm E g(w; \xi) \rangle + r(w)`.

    **Algorithm.** Around the center w̄ of a stage, with G the gradient of a batch and g̃ a robust estimate of the
    gradient at w̄: use g̃ in place of G where :math:`\|G - \tilde g\| > L \|w - \bar w\| + \lambda + \nu\sigma`;
    prox steps in the ball of radius R around w̄; average. Restart from the average with R² halved, N doubled.

    **Guarantee.** Under quadratic growth, F(ŵ) − F* ≤ ε with probability 1 − δ and O(log(log(κ)/δ)/(με)) samples,
    for optima inside the domain.

    **When to use it.** Linear f and heavy tails: the paper's method descends from it.

    Parameters
    ----------
    n_stages, step_size, batch_size, radius : int, float, int, float
        Number of stages, η₁, m and R₁; from the pilot by default.
    factor, least : float, default 0.1 and 3.0
        Size of the truncation slack, as for `Calibrated`; smaller truncates more.

    References
    ----------
    A. V. Nazin, A. S. Nemirovsky, A. B. Tsybakov, A. B. Juditsky: Algorithms of robust stochastic optimization
    based on mirror descent method. Automation and Remote Control 80 (2019).

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ [1.0, 2.0] + rng.standard_t(2.1, 1000)), stoic.Linear())
    >>> stoic.minimize(problem, "rsmd", budget=50_000, seed=0).w.round(0)
    array([1., 2.])
    """

    n_stages: Count = AUTO
    step_size: Positive = AUTO
    batch_size: Count = AUTO
    radius: Radius = AUTO
    factor: float = 0.1
    least: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("factor", self.factor, low=0.0)
        check_real("least", self.least, low=0.0)

    def check(self, problem: Problem) -> None:
        """Raise `IncompatibleParts` unless f is linear."""
        require_linear_outer(problem)

    def tuned(self, pilot: Pilot) -> Restarted:
        """Take η₁ = 1/(2L) and as many stages of doubling length as the budget allows."""
        pilot = pilot.truncated
        m = either(self.batch_size, pilot.batch_size())
        step_size = either(self.step_size, pilot.step_size(m))
        total = pilot.n_steps(m)
        n_stages = either(self.n_stages, pilot.n_stages(total, step_size))
        radius = either(self.radius, pilot.reach(step_size, total))
        first = total / (2**n_stages - 1)
        return Restarted(
            tuple(
                RSMDStage(
                    step_size=step_size / 2**k,
                    batch_size=m,
                    radius=radius / 2.0 ** (k / 2.0),
                    smoothness=1.1 * pilot.L,  # an estimate: where noise is small, too low a level truncates all
                    factor=self.factor,
                    least=self.least,
                    **self._lengths(math.floor(first * 2**k), m, pilot.delta / n_stages),
                )
                for k in range(n_stages)
            )
        )

    @staticmethod
    def _lengths(total: int, m: int, delta: float) -> dict[str, Any]:
        """Spend a tenth of a stage on its reference, the rest on steps."""
        b = max(2, total * m // 10)
        return {
            "n_steps": max(1, total - math.ceil(b / m)),
            "reference_size": b,
            "reference_mean": SmallestBall(max(delta / 2.0, math.exp(-b / 18.0))),
        }
