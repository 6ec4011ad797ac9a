"""`Weighted`: a penalty with weights for each variable, as penalties are in other units of the variables."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stoic.codes import PenaltyCode
from stoic.errors import InvalidParameter
from stoic.protocols import Vector
from stoic.regularizers.constraints import floats


@dataclass(frozen=True, eq=False)
class Weighted:
    r"""The penalty :math:`r(w) = \sum_k a_k |w_k| + \tfrac{b_k}{2} w_k^2`.

    In the variables v = w/s the elastic net a‖w‖₁ + (b/2)‖w‖² is this one, with weights a·s and b·s².

    Parameters
    ----------
    l1, l2 : ndarray of shape (d,)
        a and b, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> Weighted(np.array([1.0, 0.0]), np.array([0.0, 3.0])).prox(np.array([3.0, 4.0]), step=1.0)
    array([2., 1.])
    """

    l1: Vector
    l2: Vector

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            object.__setattr__(self, name, floats(name, getattr(self, name)))
        if self.l1.ndim != 1 or self.l1.shape != self.l2.shape:
            raise InvalidParameter(
                f"l1 and l2 have shapes {self.l1.shape} and {self.l2.shape}; give one of each a variable."
            )
        if not all(((part >= 0.0) & (part <= 1e308)).all() for part in (self.l1, self.l2)):
            raise InvalidParameter("l1 and l2 must be finite and not negative.")

    @property
    def weights_by_column(self) -> tuple[Vector, Vector]:
        """The weights (a, b)."""
        return self.l1, self.l2

    @property
    def code(self) -> PenaltyCode:
        """Its code in kernels: the largest weights; each variable's own are in the form of the vector."""
        return PenaltyCode(float(self.l1.max(initial=0.0)), float(self.l2.max(initial=0.0)))

    @cached_property
    def strong_convexity(self) -> float:
        """The least b."""
        return float(self.l2.min(initial=math.inf)) if self.l2.size else 0.0

    @np.errstate(over="ignore")
    def value(self, w: Vector) -> float:
        """Return r(w)."""
        return float(self.l1 @ np.abs(w) + 0.5 * (self.l2 * w) @ w)

    def prox(self, v: Vector, step: float) -> Vector:
        """Return the minimizer of r(w) + ‖w − v‖² / (2 step)."""
        if v.shape != self.l1.shape:
            raise InvalidParameter(f"Weighted has weights for {self.l1.size} variables, not {v.size}.")
        most = step * self.l1
        return np.asarray((v - np.minimum(np.maximum(v, -most), most)) / (1.0 + step * self.l2))

    def conjugate_gap(self, w: Vector, v: Vector) -> float:
        """Return r(w) + r*(−v) + ⟨v, w⟩, variable by variable as for the elastic net."""
        inside = np.minimum(np.maximum(v, -self.l1), self.l1)
        excess = v - inside
        bends = self.l2 > 0.0
        if excess[~bends].any():
            return math.inf
        bent = np.square((self.l2 * w + excess)[bends]) / (2.0 * self.l2[bends])
        return float(bent.sum() + (self.l1 * np.abs(w) + inside * w).sum())

    def feasible(self, v: Vector) -> Vector:
        """Return v, cut at ±a where b is 0."""
        return np.where(self.l2 > 0.0, v, np.minimum(np.maximum(v, -self.l1), self.l1))
