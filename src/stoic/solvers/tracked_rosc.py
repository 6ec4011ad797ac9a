"""ROSC whose estimate of g is a moving average: no bias floor for a non-linear f."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from stoic.errors import InvalidParameter
from stoic.pilot import Pilot
from stoic.protocols import Vector
from stoic.solvers.base import AUTO, Weight, either
from stoic.solvers.rosc import ROSC, Calibrated
from stoic.theory.plans import TruncatedStage

MEMORIES = 40.0
"""How many times over y forgets in a stage; from 20 to 160 the gap hardly changes (benchmarks/tracking.py)."""

_SHORT, _FEWEST_MEMORIES = 0.1, 4.0  # a short stage has fewer: y is an average of ten draws or more, if it can be


@dataclass(frozen=True)
class TrackedROSC(ROSC):
    r"""One stage of `RROSCTracked`: ROSC with a moving average of truncated estimates in the place of ŷ.

    **Problem.** :math:`F(w) = f(\mathrm E g(w; \xi)) + r(w)` with any smooth f; samples of g and ∇g need second
    moments only.

    **Algorithm.** That of `ROSC`, but for two lines. From the robust reference, :math:`y_0 = \tilde y_0`,

    .. math::
        w_{t+1} &= \arg\min_{\|w - w_0\| \le D} \langle \hat z_t^\top \nabla f(y_t), w \rangle
            + \tfrac{1}{2\eta} \|w - w_t\|^2 + r(w), \\
        y_{t+1} &= (1 - b)\, y_t + b\, \hat y_t .

    y_t is made of earlier samples, so that it is independent of :math:`\hat z_t`, and of some 1/b of them, so
    that the bias of ∇f(y_t) is of order b, not of order 1/m. A step costs what one of ROSC does.

    **Guarantee.** With the settings of a stage of `tracked_plan`, a gap of at most e/2 from one of at most e, with
    probability 1 − 10δ (``docs/tracked_proof.md``). None is proven for other settings, the defaults among them.
    Measured, there is no floor: see ``docs/tracked.md``.

    **When to use it.** As the building block of `RROSCTracked`.

    Parameters
    ----------
    weight : float
        b, in [0, 1]; by default 40 / `n_steps`, in a short stage 0.1, or 4 / `n_steps` where that is more.
    levels : Levels or Calibrated
        By default measured on the reference batch, at twice the factor of `ROSC`: outliers that pass do little
        harm to an average.
    truncates : {"batches", "samples"}, default "samples"
        As for `ROSC`, like all the other settings.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(3000) % 3), stoic.LogSumExp(1.0))
    >>> stoic.minimize(problem, stoic.TrackedROSC(weight=0.01), budget=60_000, seed=0).w.round(0)
    array([1., 2.])
    """

    kernel: ClassVar[str] = "rosc"
    reference_share: ClassVar[int] = 20
    most_blocks: ClassVar[float] = 24

    truncates: Literal["batches", "samples"] = "samples"
    weight: Weight = AUTO

    @classmethod
    def of(cls, stage: TruncatedStage) -> Self:
        """Return the solver of one stage of a plan of `tracked_plan`, which truncates the means of batches."""
        if stage.weight is None:
            raise InvalidParameter("The plan has no weights for a tracked y; use tracked_plan or RROSC.from_plan.")
        return replace(super().of(stage), weight=stage.weight, truncates="batches")

    def tuned(self, pilot: Pilot) -> "TrackedROSC":
        """Tune as ROSC is, with one sample a step and a weight with which y renews itself forty times at most."""
        tuned = ROSC.tuned(replace(self, batch_size=either(self.batch_size, 1)), pilot)
        weight = max(min(_SHORT, MEMORIES / tuned.n_steps), _FEWEST_MEMORIES / tuned.n_steps)
        return replace(tuned, weight=either(self.weight, min(1.0, weight)))

    def levels_for(self, pilot: Pilot, factor: float = 0.2) -> Calibrated:
        """Return levels to be measured, at twice the factor of ROSC."""
        return super().levels_for(pilot, factor)

    def estimates(self, before: Vector, fresh: Vector) -> tuple[Vector, Vector]:
        """Return the moving average of earlier samples, and the one with the fresh estimate in it."""
        return before, (1.0 - self.weight) * before + self.weight * fresh
