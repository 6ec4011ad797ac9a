"""Constraints: `Box` and `Simplex`, whose proximal maps are projections."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from stoic.checks import check_positive, refuse_masks
from stoic.errors import InvalidParameter
from stoic.protocols import Vector

_DOMAIN_TOLERANCE = 1e-9  # averages of points of a domain leave it by rounding: what still counts as inside


@dataclass(frozen=True, eq=False)
class Box:
    r"""The constraint :math:`\mathrm{low} \le w \le \mathrm{high}`: r is 0 inside, inf outside.

    The bounds are numbers or vectors, low ≤ high; -inf and inf leave a side open. `value` allows errors of
    1e-9 of the larger finite bound.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> stoic.Box(-1.0, 1.0).prox(np.array([2.0, -0.5]), step=1.0)
    array([ 1. , -0.5])
    """

    low: ArrayLike
    high: ArrayLike
    strong_convexity: ClassVar[float] = 0.0
    _bounds: tuple[Vector, Vector, Vector] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        low, high = floats("low", self.low), floats("high", self.high)
        is_box = max(low.ndim, high.ndim) <= 1 and len({(), low.shape, high.shape}) <= 2
        if not is_box or not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
            raise InvalidParameter(f"{self} needs low <= high, as numbers or as vectors of one length.")
        low, high = np.broadcast_arrays(low, high)
        size = np.abs([low, high])
        slack = _DOMAIN_TOLERANCE * size.max(axis=0, where=size < np.inf, initial=0.0)
        object.__setattr__(self, "_bounds", (low, high, slack))

    def value(self, w: Vector) -> float:
        """Return 0 inside, inf outside."""
        low, high, slack = self._bounds
        return 0.0 if ((low - slack <= w) & (w <= high + slack)).all() else math.inf

    def prox(self, v: Vector, step: float) -> Vector:  # noqa: ARG002 - the protocol's signature
        """Return the point of the box nearest to v."""
        low, high, _ = self._bounds
        if low.ndim and low.shape != v.shape:
            raise InvalidParameter(f"Box has {low.size} bounds for {v.size} variables; give one for each.")
        return np.minimum(np.maximum(v, low), high)

    def conjugate_gap(self, w: Vector, v: Vector) -> float:
        """Return ⟨v, w⟩ less its minimum over the box; inf where that is −inf."""
        low, high, _ = self._bounds
        chosen, corner = v != 0.0, np.where(v > 0.0, low, high)
        return float(v[chosen] @ (w - corner)[chosen])

    def feasible(self, v: Vector) -> Vector:
        """Return v, not negative where the box is open above, not positive where it is open below."""
        low, high, _ = self._bounds
        lowest, highest = np.where(high < np.inf, -np.inf, 0.0), np.where(low > -np.inf, np.inf, 0.0)
        return np.minimum(np.maximum(v, lowest), highest)


@dataclass(frozen=True)
class Simplex:
    r"""The constraint :math:`w \ge 0, \sum_i w_i = \mathrm{total} > 0`: r is 0 inside, inf outside.

    The projection is exact, by sorting (Held, Wolfe, Crowder 1974). `value` allows errors of 1e-9 total.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.regularizers import Simplex
    >>> Simplex(total=1.0).prox(np.array([2.0, 1.5, -1.0]), step=1.0)
    array([0.75, 0.25, 0.  ])
    """

    total: float = 1.0
    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", check_positive("total", self.total))

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, w: Vector) -> float:
        """Return 0 inside, inf outside."""
        error = max(-float(w.min()), abs(float(w.sum()) - self.total))
        return 0.0 if error <= _DOMAIN_TOLERANCE * self.total else math.inf

    @np.errstate(over="ignore", invalid="ignore")
    def prox(self, v: Vector, step: float) -> Vector:  # noqa: ARG002
        """Return the point of the simplex nearest to v."""
        x = np.maximum(v - v.max(), -self.total)  # what is further down ends at 0, and would cost digits
        ordered = np.sort(x)[::-1]
        excess = np.cumsum(ordered) - self.total
        active = np.count_nonzero(ordered * np.arange(1, x.size + 1) > excess)
        w: Vector = np.maximum(x - max(excess[active - 1] / active, -self.total), 0.0)
        return w

    def conjugate_gap(self, w: Vector, v: Vector) -> float:
        """Return ⟨v, w⟩ − total·min v, the gap of Frank and Wolfe, for w in the simplex."""
        return float((w * (v - v.min())).sum())

    def feasible(self, v: Vector) -> Vector:
        """Return v: the domain is bounded."""
        return v


def floats(name: str, values: ArrayLike) -> Vector:
    """Return values as a read-only array; raise `InvalidParameter` where they are not numbers."""
    refuse_masks(**{name: values})
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"{name}={values!r} is not made of numbers.") from error
    array.flags.writeable = False
    return array
