"""Regularizers made of others: one that leaves the last coordinates alone, one that is pulled to a point."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stoic.checks import check_count, check_real
from stoic.errors import InvalidParameter
from stoic.protocols import Regularizer, Vector
from stoic.regularizers.constraints import floats
from stoic.regularizers.penalties import L2


@dataclass(frozen=True)
class LeavingLast:
    """A regularizer that leaves the last `count` coordinates alone; along these it is flat: modulus 0."""

    regularizer: Regularizer
    count: int
    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", check_count("count", self.count))

    def value(self, w: Vector) -> float:
        """Return r of the other coordinates."""
        return self.regularizer.value(w[: -self.count])

    def prox(self, v: Vector, step: float) -> Vector:
        """Return v with the prox of r in the other coordinates."""
        return np.concatenate([self.regularizer.prox(v[: -self.count], step), v[-self.count :]])

    def conjugate_gap(self, w: Vector, v: Vector) -> float:
        """Return the gap of r in the other coordinates; inf unless v is zero in the last ones."""
        rest: Any = self.regularizer
        return (
            math.inf if v[-self.count :].any() else float(rest.conjugate_gap(w[: -self.count], v[: -self.count]))
        )

    def feasible(self, v: Vector) -> Vector:
        """Return zeros in the last coordinates, and `feasible` of r in the others."""
        rest: Any = self.regularizer
        return np.concatenate([rest.feasible(v[: -self.count]), np.zeros(self.count)])


@dataclass(frozen=True, eq=False)
class Anchored:
    r"""A regularizer pulled to a point: :math:`r(w) + (\mathrm{weight} / 2) \|w - \mathrm{center}\|^2`.

    Completing the square, its prox is that of r with step s/(1 + s weight) at
    (v + s weight center)/(1 + s weight). proxBoost solves such problems.
    """

    regularizer: Regularizer
    center: Vector
    weight: float

    def __post_init__(self) -> None:
        center = floats("center", self.center)
        if center.ndim != 1 or not np.isfinite(center).all():
            raise InvalidParameter(f"center={self.center!r} is not a vector of finite numbers.")
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "weight", check_real("weight", self.weight, low=0.0, high=1e308))

    @property
    def strong_convexity(self) -> float:
        """The modulus of r plus the weight."""
        return float(getattr(self.regularizer, "strong_convexity", 0.0)) + self.weight

    @property
    def is_isotropic(self) -> bool:
        """Whether r is, see `prox_in_ball`."""
        return getattr(self.regularizer, "is_isotropic", False)

    def value(self, w: Vector) -> float:
        """Return r(w) + (weight/2)‖w − center‖²."""
        return self.regularizer.value(w) + L2(self.weight).value(w - self.center)

    def prox(self, v: Vector, step: float) -> Vector:
        """Return the minimizer of value(w) + ‖w − v‖² / (2 step)."""
        if v.shape != self.center.shape:
            raise InvalidParameter(f"center has {self.center.size} entries for {v.size} variables.")
        pull = step * self.weight
        return self.regularizer.prox((v + pull * self.center) / (1.0 + pull), step / (1.0 + pull))

    def conjugate_gap(self, w: Vector, v: Vector) -> float:
        """Return r(w) − r(u) − ⟨s, w − u⟩ + (weight/2)‖w − u‖², u minimizing value(u) + ⟨v, u⟩; s ∈ ∂r(u)."""
        bare: Any = self.regularizer
        if self.weight == 0.0:
            return float(bare.conjugate_gap(w, v))
        u = bare.prox(self.center - v / self.weight, 1.0 / self.weight)
        slope = self.weight * (self.center - u) - v
        linearized = float(bare.value(w) - bare.value(u) - slope @ (w - u))
        return max(0.0, linearized) + L2(self.weight).value(w - u)

    def feasible(self, v: Vector) -> Vector:
        """Return v, or `feasible` of r where the weight is 0."""
        bare: Any = self.regularizer
        return v if self.weight else bare.feasible(v)
