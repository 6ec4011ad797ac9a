"""ROSC, robust stochastic compositional optimization with reference truncation: Algorithm 5."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.random import Generator

from stoic.checks import Count, Positive, check_real
from stoic.errors import InvalidParameter
from stoic.means import SmallestBall, n_vector_blocks
from stoic.pilot import Pilot
from stoic.pilot.probes import median_distance
from stoic.problem import Problem
from stoic.protocols import AnyInner, Array, Vector
from stoic.regularizers import prox_in_ball
from stoic.solvers.base import (
    AUTO,
    UNBOUNDED,
    Averaging,
    Info,
    Radius,
    RobustMean,
    either,
    method,
    planned,
    running_mean,
)
from stoic.theory.plans import TruncatedStage
from stoic.truncation import Levels, truncated_mean


@dataclass(frozen=True)
class Calibrated:
    r"""Truncation levels whose slacks are measured on each stage's own reference batch.

    Cut into blocks of the mini-batch's size m, the reference batch shows the very quantity that is truncated:
    the median distance of the block means to the robust mean is a robust scale, and

    .. math:: \text{slack} = \text{scale} \cdot \max(\text{least}, \text{factor} \cdot \sqrt T) .

    Where samples are truncated one by one, blocks have size 1, and mT takes the place of T. Where more than half
    of the blocks agree (rare events, targets that are mostly zero), the scale is the median distance of the others
    times the root of their share; where all agree, nothing is truncated.

    Theorem 3 asks for growth with √T, at a factor of order 1: then about one step a stage is truncated, and under
    heavy tails the outliers that pass make the bias floor of a shared batch worse. The default factor cuts
    some percent of heavy-tailed batches and hardly any light-tailed one; `least` keeps short stages from
    truncating ordinary batches.

    Parameters
    ----------
    C_g, L_g : float
        Growth of the levels with ‖w − w₀‖.
    factor : float, default 0.1
        1 is the theorem's order of size. Smaller truncates more: less noise, more bias.
    least : float, default 3.0
        The smallest slack, in scales.

    Examples
    --------
    >>> import stoic
    >>> faithful = stoic.Calibrated(C_g=1.0, L_g=1.0, factor=1.0, least=0.0)
    """

    C_g: float
    L_g: float
    factor: float = 0.1
    least: float = 3.0

    def __post_init__(self) -> None:
        for name in ("C_g", "L_g", "factor", "least"):
            check_real(name, getattr(self, name), low=0.0)


def _check_levels(name: str, value: object) -> None:
    if isinstance(value, int | float):
        raise InvalidParameter(f"{name}={value!r} is neither Levels nor Calibrated.")


LevelSettings = Annotated[Levels | Calibrated, _check_levels]
"""Truncation levels, given or measured."""


class Reference(NamedTuple):
    """The robust means at the start of a stage, and the levels around them."""

    w: Vector
    y: Vector
    z: Array
    levels: Levels


class ROSCState(NamedTuple):
    """The iterate w_t, the average of w_1 … w_t, t, the latest estimate of g, and the reference of the stage."""

    w: Vector
    average: Vector
    t: int
    y: Vector
    reference: Reference


@method("rosc")
@dataclass(frozen=True)
class ROSC(Averaging):
    r"""Robust stochastic compositional optimization with reference truncation: Algorithm 5 of the paper.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)`; samples of g and ∇g need second moments only.

    **Algorithm.** From b samples take robust means ỹ₀, z̃₀ of g(w₀), ∇g(w₀). For t = 0 … T−1 draw one batch of m
    samples with means y, z at w_t and replace outliers by the reference:

    .. math::
        \hat y &= y \text{ if } \|y - \tilde y_0\| \le C_g \|w_t - w_0\| + \text{slack}_y,
            \text{ else } \tilde y_0, \qquad (4) \\
        \hat z &= z \text{ if } \|z - \tilde z_0\|_F \le L_g \|w_t - w_0\| + \text{slack}_z,
            \text{ else } \tilde z_0, \qquad (5) \\
        w_{t+1} &= \arg\min_{\|w - w_0\| \le D} \langle \hat z^\top \nabla f(\hat y), w \rangle
            + \tfrac{1}{2\eta} \|w - w_t\|^2 + r(w).

    The output is the average of w_1 … w_T. The reference costs b samples, a step m (of each group).

    **Guarantee.** One stage of Theorem 3: for linear f, a gap of at most e/2 from one of at most e, with
    probability 1 − 6δ. For a non-linear f and constant m there is a bias floor of order 1/m² (see `RROSC`).

    **When to use it.** As the building block of `RROSC`.

    Parameters
    ----------
    step_size, batch_size, n_steps : float, int, int
        η, m and T; from the pilot by default.
    radius : float
        D; ``math.inf`` for no ball.
    reference_size : int
        b.
    reference_mean : MeanEstimator
        The robust mean for ỹ₀ and z̃₀; `SmallestBall` by default.
    levels : Levels or Calibrated
        Fixed truncation levels, or levels measured on the reference batch (the default).
    truncates : {"batches", "samples"}, default "batches"
        Whether a batch is truncated as a whole, as in the paper, or each of its m samples (one of each group) on
        its own before they are averaged: then one outlier costs one sample, not the batch. For m = 1 both
        are the same.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 2))
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ [1.0, 2.0] + rng.standard_t(2.1, 1000)), stoic.Linear())
    >>> stoic.minimize(problem, "rosc", budget=50_000, seed=0).w.round(0)
    array([1., 2.])
    """

    kernel: ClassVar[str] = "rosc"
    reference_share: ClassVar[int] = 10
    """Which part of its samples a stage spends on its reference, at most."""
    most_blocks: ClassVar[float] = math.inf
    """Blocks of the reference, at most, where its robust mean is chosen by the pilot."""

    step_size: Positive = AUTO
    batch_size: Count = AUTO
    n_steps: Count = UNBOUNDED
    radius: Radius = AUTO
    reference_size: Count = AUTO
    reference_mean: RobustMean = AUTO
    levels: LevelSettings = AUTO
    truncates: Literal["batches", "samples"] = "batches"

    @classmethod
    def of(cls, stage: TruncatedStage) -> Self:
        """Return the solver of one stage of a plan."""
        return cls(
            step_size=stage.step_size,
            batch_size=stage.batch_size,
            n_steps=stage.n_steps,
            radius=stage.radius,
            reference_size=stage.reference_size,
            reference_mean=SmallestBall(stage.delta),
            levels=stage.levels,
        )

    def tuned(self, pilot: Pilot) -> Self:
        """Take the step for averages, a ball that holds the optimum, a tenth of the samples as reference."""
        pilot, m = pilot.truncated, either(self.batch_size, pilot.batch_size())
        available = pilot.n_steps(m)
        enough = n_vector_blocks(pilot.delta / 6.0) * 10 * max(2, m)  # blocks far steadier than a batch
        b = either(self.reference_size, min(max(2, available * m // self.reference_share), enough))
        delta = max(pilot.delta / 6.0, math.exp(-min(b, self.most_blocks) / 18.0))
        n_steps = planned(self.n_steps, max(1, available - math.ceil(b / m)))
        step_size = either(self.step_size, pilot.averaging_step(m, n_steps))
        return replace(
            self,
            step_size=step_size,
            batch_size=m,
            n_steps=n_steps,
            radius=either(self.radius, pilot.reach(step_size, n_steps)),
            reference_size=b,
            reference_mean=either(self.reference_mean, SmallestBall(delta)),
            levels=either(self.levels, self.levels_for(pilot)),
        )

    def levels_for(self, pilot: Pilot, factor: float = 0.1) -> Calibrated:
        """Return levels to be measured; single samples are cut far out, as one of them does little harm."""
        least = 10.0 if self.truncates == "samples" else 3.0
        return Calibrated(1.1 * pilot.constants.C_g, 1.1 * pilot.constants.L_g, factor, least)

    def check(self, problem: Problem) -> None:  # noqa: ARG002
        """Raise `InvalidParameter` if the reference is too small, or calibration does not know T."""
        if self.needs_pilot:
            return
        self.reference_mean.n_blocks(self.reference_size)
        if isinstance(self.levels, Calibrated) and self.n_steps == UNBOUNDED:
            raise InvalidParameter("Calibrated levels grow with √n_steps; give n_steps to ROSC.")

    def planned_samples(self, inner: AnyInner) -> int:
        """Return the samples of the reference and of all steps."""
        return inner.cost(self.reference_size) + self.n_steps * inner.cost(self.batch_size)

    def init(self, problem: Problem, w0: Vector, rng: Generator) -> ROSCState:
        """Draw the reference batch and take its robust means."""
        inner, b = problem.inner, self.reference_size
        batch = inner.draw(b, rng)  # Alg. 5, l. 1
        blocks = self.reference_mean.n_blocks(b)
        y = self.reference_mean.combine(inner.value(w0, batch, blocks))  # Alg. 5, l. 2
        z = self.reference_mean.combine(inner.jacobian(w0, batch, blocks))
        return self.started(Reference(w0, y, z, self._levels_around(inner, w0, batch, y, z)))

    def started(self, reference: Reference) -> ROSCState:
        """Return the state before the first step around a reference."""
        return ROSCState(reference.w, reference.w, 0, reference.y, reference)

    @property
    def parts(self) -> int:
        """The number of parts of a batch that are truncated one by one."""
        return self.batch_size if self.truncates == "samples" else 1

    @property
    def calibration_blocks(self) -> int:
        """The number of blocks, of the size that is truncated, on which the reference batch measures slacks."""
        return min(self.reference_size, max(self.reference_size * self.parts // self.batch_size, 3))

    def _levels_around(self, inner: AnyInner, w0: Vector, batch: Any, y: Vector, z: Array) -> Levels:
        if isinstance(self.levels, Levels):
            return self.levels
        blocks = self.calibration_blocks
        far_y = median_distance(inner.value(w0, batch, blocks), y)
        return self.calibrated(far_y, median_distance(inner.jacobian(w0, batch, blocks), z))

    def calibrated(self, far_y: float, far_z: float) -> Levels:
        """Return levels from the median distances of the block means of the reference batch.

        Where all of them agree nothing is known of the noise, and nothing is truncated.
        """
        measured: Calibrated = self.levels  # type: ignore[assignment]
        wide = max(measured.least, measured.factor * math.sqrt(self.n_steps * self.parts))
        block_size, size = self.reference_size / self.calibration_blocks, self.batch_size / self.parts
        growth = wide * math.sqrt(block_size / size)
        slack_y, slack_z = (growth * far if far > 0.0 else math.inf for far in (far_y, far_z))
        return Levels(measured.C_g, measured.L_g, slack_y, slack_z)

    def step(self, problem: Problem, state: ROSCState, rng: Generator) -> tuple[ROSCState, Info]:
        """Take one step of Algorithm 5."""
        inner, reference, w = problem.inner, state.reference, state.w
        batch = inner.draw(self.batch_size, rng)  # Alg. 5, l. 4
        distance = float(np.linalg.norm(w - reference.w))
        y, truncated_y = truncated_mean(  # (4)
            inner.value(w, batch, self.parts), reference.y, reference.levels.radius_y(distance)
        )
        z, truncated_z = truncated_mean(  # (5)
            inner.jacobian(w, batch, self.parts), reference.z, reference.levels.radius_z(distance)
        )
        at, y = self.estimates(state.y, y)
        ahead = w - self.step_size * (z.T @ problem.outer.gradient(at))
        w = prox_in_ball(  # Alg. 5, l. 7
            problem.regularizer, ahead, self.step_size, reference.w, self.radius
        )
        t = state.t + 1
        average = running_mean(state.average, w, t)
        info = Info(watched=self.parts, truncated_y=truncated_y, truncated_z=truncated_z)
        return ROSCState(w, average, t, y, reference), info

    def estimates(self, before: Vector, fresh: Vector) -> tuple[Vector, Vector]:  # noqa: ARG002
        """Return the estimates of g that ∇f is taken at and that the state keeps."""
        return fresh, fresh
