"""SOX with one batch a step, truncated rows and a late average: for many groups and heavy tails."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from stoic.checks import Count, Positive
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.protocols import AnyInner, Array, Vector
from stoic.solvers.base import AUTO, UNBOUNDED, Info, PowerLaw, Weight, Weights, either, method, planned
from stoic.solvers.group_sampling import (
    Chances,
    bounded,
    chances_from,
    choose,
    default_groups,
    follow,
    is_refresh,
    refresh_period,
    shares,
)
from stoic.solvers.group_tracking import GroupTracking

MEMORY = 4.0
"""The nth value of y_i has the weight 4/(4 + n): the first ones are forgotten like 1/n⁴, half of all count."""

PACE, CUT = 0.02, 3.0
"""Scales are means over some 50 steps of sizes that are cut at three times the scale."""

_BLOCKS = 32  # of steps; those of one have equal weights in the average
_LEAST, _GROWTH = 10.0, 0.1


class Limits(NamedTuple):
    """How many times its scale a deviation of a value, and the norm of a gradient, may be."""

    y: float
    z: float


class TrackedSOXState(NamedTuple):
    """w_t, the late average, t, the estimate y of g, the chances, and the scales of values and of gradients."""

    w: Vector
    average: Vector
    t: int
    y: Vector
    chances: Chances | None
    scale_y: float
    scale_z: float


@method("sox-tracked")
@dataclass(frozen=True)
class TrackedSOX(GroupTracking):
    r"""SOX made practical: one batch a step, weights that fall, truncated rows, a late average.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)` with very many groups, for any smooth f.

    **Algorithm.** Draw k of the p groups as `ALEXR` does, and one batch of m rows of each. With :math:`P_i` the
    chance of group i and :math:`\nabla g_i(w; \xi)` shortened to at most :math:`\lambda_z s_z`,

    .. math::
        w_{t+1} &= \mathrm{prox}_{\eta r}\Big(w_t - \eta \sum_{i\ \mathrm{drawn}} \frac{1}{k P_i}\,
            \frac{\partial f}{\partial u_i}(y)\, \nabla g_i(w_t; \xi)\Big), \\
        y_i &\leftarrow y_i + \gamma_t \cdot \mathrm{mean}\big[\mathrm{clip}(g_i(w_t; \xi) - y_i,
            \pm \lambda_y s_y)\big] .

    ∇f is taken at y as it was before the batch, so that one batch does for both, as in `TrackedROSC`. The scales
    :math:`s_y` and :math:`s_z` are moving averages of the sizes of deviations and of gradients, each cut at three
    times the scale; groups without weight do not count. :math:`\lambda_z = \max(10, \sqrt{kmT}/10)`, and
    :math:`\lambda_y` likewise with the kmT/p rows of a group. The output is an average of w_1 … w_T in 32 blocks,
    the bth with the weight b. A step costs km samples, the first batch, of all groups, pm.

    **Guarantee.** None is proven. Measured, the gap hardly depends on the number of groups (``docs/choosing.md``).

    **When to use it.** More than 64 groups, rows that are drawn and not kept, light tails or heavy ones.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, m and T; from the pilot by default. m is 1.
    weights : PowerLaw
        γ; by default 1/(1 + tk/(4p)), so that y_i forgets its first values.
    groups_per_step, importance
        As for `ALEXR`.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 4000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(4000) % 200), stoic.LogSumExp(20.0))
    >>> stoic.minimize(problem, "sox-tracked", budget=40_000, seed=0).w.round(0)
    array([1., 2.])
    """

    kernel: ClassVar[str] = "tracked_sox"
    batches_per_step: ClassVar[int] = 1

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    weights: Weights = AUTO
    groups_per_step: Count = AUTO
    importance: Weight = 0.5

    @property
    def needs_pilot(self) -> bool:
        """Whether a setting is still to be chosen."""
        return super().needs_pilot or self.weights is AUTO

    def tuned(self, pilot: Pilot) -> "TrackedSOX":
        """Take the step for averages, and rows one by one."""
        p = pilot.n_groups
        k = min(either(self.groups_per_step, default_groups(p)), p)
        m = either(self.batch_size, 1)
        a_step = m * (pilot.cost if k == p else k)
        n_steps = planned(self.n_steps, max(1, (pilot.budget - pilot.cost * m) // a_step))
        pilot = pilot.truncated if k == p else pilot.of_groups(k)
        return replace(
            self,
            step_size=either(self.step_size, pilot.averaging_step(m, n_steps)),
            batch_size=m,
            n_steps=n_steps,
            weights=either(self.weights, PowerLaw(1.0, 1.0, MEMORY * p / k)),
            groups_per_step=k if self.groups_per_step is AUTO and p > 1 else self.groups_per_step,
        )

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> TrackedSOXState:  # type: ignore[override]
        """Start y at the mean of a first batch of all groups; no scale is known."""
        start = super().init(problem, w0, rng)
        return TrackedSOXState(w0, w0, 0, start.y, start.chances, math.inf, math.inf)

    def limits(self, inner: AnyInner) -> Limits:
        """Return how many times their scales deviations and gradients may be."""
        p, m = inner.shape[0], self.batch_size
        n_rows = self.n_drawn(inner) * m * self.n_steps
        return Limits(*(max(_LEAST, _GROWTH * math.sqrt(n)) for n in (n_rows / p, n_rows)))

    def step(self, problem: Problem, state: TrackedSOXState, rng: Generator) -> tuple[TrackedSOXState, Info]:
        """Move w along truncated gradients, then y by truncated deviations."""
        inner: Any = problem.inner
        w, y, m, k = state.w, state.y, self.batch_size, self.n_drawn(inner)
        q, chances, groups = problem.outer.gradient(y), state.chances, np.arange(k)
        if chances is None:
            batch = inner.draw(m, rng)
        else:
            if is_refresh(state.t, refresh_period(len(y), k)):
                chances = chances_from(q, self.importance)
            groups = choose(chances, rng.random(k))
            batch, q = inner.draw(m, rng, groups), bounded(q.take(groups) * shares(chances, groups), chances)
        values, z, limits = inner.value(w, batch, m), inner.jacobian(w, batch, m), self.limits(inner)
        away, norms = values - y.take(groups), np.sqrt(np.einsum("ijk,ijk->ij", z, z))
        most_y, most_z = limits.y * state.scale_y, limits.z * state.scale_z
        share = np.where(norms > most_z, most_z / norms, 1.0)
        ahead = w - self.step_size * np.einsum("ij,ijk->k", share * (q / m), z)
        fresh = y.take(groups) + np.clip(away, -most_y, most_y).mean(axis=0)
        t, far = state.t + 1, np.abs(away)
        w = problem.regularizer.prox(ahead, self.step_size)
        after = TrackedSOXState(
            w=w,
            average=w
            if t == 1
            else state.average + self.weight_of(t) / self.total_weight(t) * (w - state.average),
            t=t,
            y=follow(y, groups, fresh, self.weights.at(state.t)),
            chances=chances,
            scale_y=_scale(state.scale_y, far[:, q != 0.0]),
            scale_z=_scale(state.scale_z, norms[:, q != 0.0]),
        )
        return after, Info(0, k * m, int((far > most_y).sum()), int((norms > most_z).sum()))

    @property
    def block(self) -> int:
        """The number of steps that have equal weights in the average."""
        return max(1, self.n_steps // _BLOCKS)

    def weight_of(self, t: int) -> int:
        """Return the weight of w_t in the average."""
        return (t - 1) // self.block + 1

    def total_weight(self, t: int) -> int:
        """Return the sum of the weights of w_1 … w_t."""
        before = self.weight_of(t) - 1
        return self.block * before * (before + 1) // 2 + (before + 1) * (t - self.block * before) if t else 0


def _scale(before: float, sizes: Array) -> float:
    """Return the scale after a step: the mean of its sizes at first, then a moving average of what is cut."""
    if sizes.size == 0:
        return before
    if before == math.inf:
        return float(sizes.mean())
    return before + PACE * (float(np.minimum(sizes, CUT * before).mean()) - before)
