"""Regularizers r of (1), their proximal maps and their convex conjugates."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from stoic.errors import InvalidParameter, check_count, check_positive, check_real
from stoic.protocols import Regularizer, Vector

_DOMAIN_TOLERANCE = 1e-9  # averages of points of a domain leave it by rounding: what still counts as inside


class _Penalty:
    r"""What Zero, L1, L2 and ElasticNet share: :math:`r(w) = a \|w\|_1 + (b/2) \|w\|^2`."""

    def __post_init__(self) -> None:
        for name, number in list(vars(self).items()):
            object.__setattr__(self, name, check_real(name, number, low=0.0, high=1e308))

    @property
    def weights(self) -> tuple[float, float]:
        """The weights (a, b)."""
        return 0.0, 0.0

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
        return (a * float(np.abs(w).sum()) if a else 0.0) + (0.5 * b * float(w.dot(w)) if b else 0.0)

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
        low, high = _floats("low", self.low), _floats("high", self.high)
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
        """Return zeros in the last coordinates, and what r wants in the others."""
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
        center = _floats("center", self.center)
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
        """Return v, or what r wants where the weight is 0."""
        bare: Any = self.regularizer
        return v if self.weight else bare.feasible(v)


def _floats(name: str, values: ArrayLike) -> Vector:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"{name}={values!r} is not made of numbers.") from error
    array.flags.writeable = False
    return array
