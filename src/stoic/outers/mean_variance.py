"""The mean-variance risk of a return: the outer function of Markowitz' problem."""

import math
from dataclasses import dataclass

import numpy as np

from stoic.checks import check_real
from stoic.errors import InvalidParameter
from stoic.protocols import Array, Vector


@dataclass(frozen=True)
class MeanVariance:
    r"""The mean-variance risk :math:`f(u) = -u_1 + \mathrm{weight} \cdot (u_2 - u_1^2)` of a return.

    The inner part is :math:`g(w; x) = (x^\top w, (x^\top w)^2)`; f(g(w)) is convex in w, though f is not.

    Parameters
    ----------
    weight : float
        Price of variance, at least 0.

    Notes
    -----
    :math:`L_f = 2\,\mathrm{weight}`. f is Lipschitz on bounded sets only: C_f is inf (1 for weight 0).

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.outers import MeanVariance
    >>> MeanVariance(weight=2.0).value(np.array([1.0, 4.0]))
    5.0
    """

    weight: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", check_real("weight", self.weight, low=0.0, high=1e308))

    @property
    def lipschitz(self) -> float:
        """C_f."""
        return math.inf if self.weight else 1.0

    @property
    def smoothness(self) -> float:
        """L_f."""
        return 2.0 * self.weight

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        first, second = self._moments(u)
        return -first + self.weight * (second - first * first)

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u)."""
        return np.array([-1.0 - 2.0 * self.weight * self._moments(u)[0], self.weight])

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u): −2·weight in its first entry."""
        self._moments(u)
        return np.array([[-2.0 * self.weight, 0.0], [0.0, 0.0]])

    def _moments(self, u: Vector) -> tuple[float, float]:
        if len(u) != 2:
            raise InvalidParameter(f"{self} takes two values, E x and E x², not {len(u)}.")
        return float(u[0]), float(u[1])
