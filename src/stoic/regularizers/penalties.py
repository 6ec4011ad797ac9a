"""Penalties: `Zero`, `L1`, `L2` and `ElasticNet`, their proximal maps and their convex conjugates."""

import math
from dataclasses import dataclass

import numpy as np

from stoic.checks import check_real
from stoic.codes import PenaltyCode
from stoic.protocols import Vector


class _Penalty:
    r"""Base of Zero, L1, L2 and ElasticNet: :math:`r(w) = a \|w\|_1 + (b/2) \|w\|^2`."""

    def __post_init__(self) -> None:
        for name, number in list(vars(self).items()):
            object.__setattr__(self, name, check_real(name, number, low=0.0, high=1e308))

    @property
    def weights(self) -> tuple[float, float]:
        """The weights (a, b)."""
        return 0.0, 0.0

    @property
    def code(self) -> PenaltyCode:
        """Its code in kernels."""
        a, b = self.weights
        return PenaltyCode(float(a), float(b))

    @property
    def strong_convexity(self) -> float:
        """The modulus b."""
        return self.weights[1]

    @property
    def is_isotropic(self) -> bool:
        """Whether r is a multiple of a squared distance, so that `prox_in_ball` is a projection."""
        return self.weights[0] == 0.0

    @np.errstate(over="ignore")
    def value(self, w: Vector) -> float:
        """Return r(w)."""
        a, b = self.weights
        return (a * float(np.abs(w).sum()) if a else 0.0) + (0.5 * b * float(np.square(w).sum()) if b else 0.0)

    def prox(self, v: Vector, step: float) -> Vector:
        """Return the minimizer of r(w) + ‖w − v‖² / (2 step)."""
        a, b = self.weights
        kept = v - np.minimum(np.maximum(v, -step * a), step * a) if a else v
        return kept / (1.0 + step * b)

    def conjugate_gap(self, w: Vector, v: Vector) -> float:
        """Return r(w) + r*(−v) + ⟨v, w⟩ = Σ (bw + e)²/(2b) + a|w| + (v − e)w, e the excess of v over ±a."""
        a, b = self.weights
        inside = np.minimum(np.maximum(v, -a), a)
        excess = v - inside
        if b == 0.0 and excess.any():
            return math.inf
        bent = np.square(b * w + excess).sum() / (2.0 * b) if b else 0.0
        return float(bent + (a * np.abs(w) + inside * w).sum())

    def feasible(self, v: Vector) -> Vector:
        """Return v, cut at ±a where b is 0."""
        a, b = self.weights
        return v if b else np.minimum(np.maximum(v, -a), a)


@dataclass(frozen=True)
class Zero(_Penalty):
    """No regularizer: r(w) = 0, and the prox leaves every point where it is.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> stoic.Zero().value(np.ones(3))
    0.0
    """


@dataclass(frozen=True)
class L1(_Penalty):
    r"""The lasso penalty :math:`r(w) = \alpha \|w\|_1` with α ≥ 0; its prox thresholds softly.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> stoic.L1(0.5).prox(np.array([2.0, 0.3]), step=1.0)
    array([1.5, 0. ])
    """

    alpha: float

    @property
    def weights(self) -> tuple[float, float]:
        """(α, 0)."""
        return self.alpha, 0.0


@dataclass(frozen=True)
class L2(_Penalty):
    r"""The ridge penalty :math:`r(w) = (\alpha / 2) \|w\|^2` with α ≥ 0, the modulus of strong convexity.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> stoic.L2(1.0).prox(np.array([2.0, -4.0]), step=1.0)
    array([ 1., -2.])
    """

    alpha: float

    @property
    def weights(self) -> tuple[float, float]:
        """(0, α)."""
        return 0.0, self.alpha


@dataclass(frozen=True)
class ElasticNet(_Penalty):
    r"""The sum :math:`r(w) = \alpha \rho \|w\|_1 + (\alpha (1 - \rho) / 2) \|w\|^2`, as in scikit-learn.

    α ≥ 0, and ρ = `l1_ratio` is in [0, 1]. The modulus of strong convexity is α(1 − ρ).

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> stoic.ElasticNet(2.0, l1_ratio=0.5).prox(np.array([3.0, 0.5]), step=1.0)
    array([1., 0.])
    """

    alpha: float
    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        check_real("l1_ratio", self.l1_ratio, low=0.0, high=1.0)
        super().__post_init__()

    @property
    def weights(self) -> tuple[float, float]:
        """(αρ, α(1 − ρ))."""
        return self.alpha * self.l1_ratio, self.alpha * (1.0 - self.l1_ratio)
