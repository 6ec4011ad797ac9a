"""`Linear`: the weighted sum of the entries of u."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from stoic.codes import LINEAR, OuterCode
from stoic.outers.shifted import check_entries, finite_vector
from stoic.protocols import Array, Vector


@dataclass(frozen=True)
class Linear:
    r"""The weighted sum :math:`f(u) = \langle c, u \rangle`: (1) is then a plain stochastic problem.

    Parameters
    ----------
    weights : array-like of shape (p,), optional
        c. By default the average, :math:`c_i = 1/p`, for any p. A negative weight may cost convexity.

    Notes
    -----
    :math:`C_f = \|c\|`, :math:`L_f = 0`. The average does not know p: its `lipschitz` is 1, the most over p.

    Examples
    --------
    >>> from stoic.outers import Linear
    >>> Linear([3.0, 4.0]).lipschitz
    5.0
    """

    weights: ArrayLike | None = None
    smoothness: ClassVar[float] = 0.0
    is_convex: ClassVar[bool] = True
    _c: Vector | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.weights is not None:
            c = finite_vector("weights", self.weights)
            object.__setattr__(self, "_c", c)
            object.__setattr__(self, "weights", tuple(c.tolist()))

    @property
    def lipschitz(self) -> float:
        """C_f."""
        return 1.0 if self._c is None else math.hypot(*self._c)

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, u: Vector) -> float:
        """Return f(u)."""
        return float(self.gradient(u).dot(u))

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u) = c."""
        if self._c is None:
            return np.full(len(u), 1.0 / len(u))
        check_entries("weights", self._c, u)
        return self._c.copy()

    def code(self, p: int) -> OuterCode:
        """Return its code in kernels, for p entries."""
        return OuterCode(LINEAR, self.gradient(np.zeros(p)), np.zeros(p), np.ones(p), 1.0, 1.0, np.empty(0))

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = 0."""
        return np.zeros((len(u), len(u)))

    def hessian_product(self, u: Vector, v: Array) -> Array:  # noqa: ARG002
        """Return ∇²f(u) v = 0, for v of shape (p,) or (p, k)."""
        return np.zeros_like(v)
