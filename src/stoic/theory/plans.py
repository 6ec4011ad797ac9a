"""The constants of Assumption 1, from which a theorem starts, and the plans of stages that it prescribes."""

import math
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from stoic.checks import check_positive, check_real
from stoic.errors import InvalidParameter
from stoic.means import n_vector_blocks
from stoic.truncation import Levels


@dataclass(frozen=True)
class Constants:
    r"""The constants of Assumption 1.

    Parameters
    ----------
    C_f, L_f : float
        Lipschitz constants of f and of ∇f; ``L_f=0`` says that f is linear.
    C_g : float
        :math:`\mathrm E\|\nabla g(w;\xi)\|^2 \le C_g^2`, which makes g itself C_g-Lipschitz.
    L_g : float
        Lipschitz constant of ∇g.
    sigma0, sigma1 : float
        :math:`\mathrm E\|g(w;\xi) - g(w)\|^2 \le \sigma_0^2` and
        :math:`\mathrm E\|\nabla g(w;\xi) - \nabla g(w)\|_F^2 \le \sigma_1^2`.
    mu : float
        Quadratic growth: :math:`F(w) - F_* \ge (\mu/2)\,\mathrm{dist}(w, W_*)^2`.

    Raises
    ------
    InvalidParameter
        If one is negative or not finite, or ``mu`` is 0.

    Examples
    --------
    >>> Constants(C_f=1.0, L_f=0.5, C_g=2.0, L_g=3.0, sigma0=1.0, sigma1=1.0, mu=0.1).L
    5.0
    """

    C_f: float
    L_f: float
    C_g: float
    L_g: float
    sigma0: float
    sigma1: float
    mu: float

    def __post_init__(self) -> None:
        for constant in fields(self):
            value = check_real(constant.name, getattr(self, constant.name), low=0.0)
            if math.isinf(value):
                raise InvalidParameter(f"{constant.name}={value!r} is not finite, as Assumption 1 requires.")
            object.__setattr__(self, constant.name, value)
        check_positive("mu", self.mu)

    @property
    def L(self) -> float:  # noqa: N802 - the letter of the paper
        """The smoothness constant C_f L_g + C_g² L_f of f∘g (Lemma 6; the paper prints C_g² L_g)."""
        return self.C_f * self.L_g + self.C_g * self.C_g * self.L_f


def check_hessian_lipschitz(value: float) -> float:
    """Return M_f, a Lipschitz constant of ∇²f, as a finite float, or raise `InvalidParameter`."""
    return check_real("hessian_lipschitz", value, low=0.0, high=1e300)


@dataclass(frozen=True)
class Stage:
    """One call of MSCG: `n_steps` steps, each with two batches of `batch_size`.

    `delta` is the failure probability of each robust mean (Theorem 2), None for plain means (Theorem 1).
    """

    step_size: float
    n_steps: int
    batch_size: int
    delta: float | None = None

    @property
    def samples(self) -> int:
        """Samples that the stage draws."""
        return 2 * self.n_steps * self.batch_size


@dataclass(frozen=True)
class TruncatedStage:
    """One call of ROSC: a reference batch, then `n_steps` steps with one batch of `batch_size`.

    `radius` is D, and `levels` holds what (4) and (5) compare with. `delta` is the failure probability of
    each of the events of a stage, and so of the two robust means of the reference. `weight` is that of a batch in
    a tracked y (`TrackedROSC`), None where y is the batch's own (`ROSC`).
    """

    step_size: float
    n_steps: int
    batch_size: int
    radius: float
    reference_size: int
    delta: float
    levels: Levels
    weight: float | None = None

    @property
    def n_blocks(self) -> int:
        """Blocks of the robust means of the reference (k of Algorithm 1)."""
        return n_vector_blocks(self.delta)

    @property
    def samples(self) -> int:
        """Samples that the stage draws, the reference included."""
        return self.reference_size + self.n_steps * self.batch_size


S = TypeVar("S", Stage, TruncatedStage)


@dataclass(frozen=True)
class Plan(Generic[S]):
    """The stages that a theorem prescribes to get from a gap `eps0` to a gap `eps`.

    `success_probability` is that of a final gap of at most `eps`; None where no such statement is proven.
    """

    stages: tuple[S, ...]
    eps0: float
    eps: float
    success_probability: float | None

    @property
    def n_stages(self) -> int:
        """The number K of stages."""
        return len(self.stages)

    @property
    def samples(self) -> int:
        """Samples of the whole plan, in the `size` of `Inner.draw` (for grouped data, of each group)."""
        return sum(stage.samples for stage in self.stages)

    @property
    def gaps(self) -> tuple[float, ...]:
        """ε₀, …, ε_K: bounds on the gap before stage 1 and after each stage."""
        return tuple(self.eps0 / 2.0**k for k in range(self.n_stages + 1))
