"""Outer functions f of (1) over losses: `Linear`, `LogSumExp`, `SmoothCVaR`."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from stoic.errors import InvalidParameter, check_positive, check_real
from stoic.protocols import Array, Vector

_AT_THE_CAP = 1e-12  # of the cap: rounding of a share that has reached it


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
            c = _finite_vector("weights", self.weights)
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
        _check_length("weights", self._c, u)
        return self._c.copy()

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = 0."""
        return np.zeros((len(u), len(u)))


@dataclass(frozen=True)
class LogSumExp:
    r"""The smooth maximum :math:`f(u) = \tau \log \sum_i \pi_i \exp((u_i - b_i) / \tau)` of (7): KL group DRO.

    It is the largest :math:`\langle q, u - b \rangle - \tau \, \mathrm{KL}(q \| \pi)` over the simplex; the
    gradient is the q that attains it. Small τ: the maximum of u − b; large τ: its mean under π.

    Parameters
    ----------
    temperature : float
        :math:`\tau > 0`, in the units of u (λ in (7)).
    prior : array-like of shape (p,), optional
        :math:`\pi`: nonnegative, not all zero; scaled to sum to one. By default uniform, for any p.
    baseline : array-like of shape (p,), optional
        b: the level that each entry of u is compared with, such as the loss that a group cannot go below. By
        default 0.

    Notes
    -----
    :math:`C_f = 1`. The Hessian :math:`(\mathrm{diag}(q) - qq^\top) / \tau` has norm at most
    :math:`L_f = 1 / (2\tau)`, attained where q has two entries 1/2, and is Lipschitz with
    :math:`M_f = \sqrt 6 / (9 \tau^2)` (numerical for p > 2). Losses may be as large as floats go; an infinite
    one gives the value inf and a gradient that follows π over the infinite entries; NaN stays NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.outers import LogSumExp
    >>> f, u = LogSumExp(temperature=1.0), np.log([1.0, 3.0])
    >>> round(f.value(u), 6), f.gradient(u).round(3)
    (0.693147, array([0.25, 0.75]))
    >>> LogSumExp(temperature=1.0, baseline=u).gradient(u)
    array([0.5, 0.5])
    """

    temperature: float
    prior: ArrayLike | None = None
    baseline: ArrayLike | None = None
    lipschitz: ClassVar[float] = 1.0
    is_convex: ClassVar[bool] = True
    _pi: Vector | None = field(init=False, repr=False, compare=False, default=None)
    _b: Vector | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", check_positive("temperature", self.temperature))
        _keep_baseline(self)
        if self.prior is not None:
            pi = _finite_vector("prior", self.prior)
            if pi.min() < 0.0 or pi.max() == 0.0:
                raise InvalidParameter(f"prior={self.prior!r} must be nonnegative, with an entry above 0.")
            pi = pi / pi.max() / (pi / pi.max()).sum()  # in two steps, as the sum may overflow
            object.__setattr__(self, "_pi", pi)
            object.__setattr__(self, "prior", tuple(pi.tolist()))

    @property
    def smoothness(self) -> float:
        """L_f."""
        return 1.0 / (2.0 * self.temperature)

    @property
    def hessian_lipschitz(self) -> float:
        """M_f."""
        return math.sqrt(6.0) / 9.0 / self.temperature / self.temperature

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        u = self._on_support(u)
        top = float(np.maximum.reduce(u))
        return top + self.temperature * _log_mean_exp(_scaled(u, top, self.temperature), self._pi)  # (7)

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u), a probability vector."""
        u = self._on_support(u)
        q = np.exp(_scaled(u, float(np.maximum.reduce(u)), self.temperature))
        if self._pi is not None:
            q *= self._pi
        q /= np.add.reduce(q)
        return q

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = (diag(q) − qqᵀ)/τ."""
        q = self.gradient(u)
        return np.asarray((np.diag(q) - np.outer(q, q)) / self.temperature)

    def _on_support(self, u: Vector) -> Vector:
        """Return u − b, −inf where the prior is zero."""
        u = _above(self._b, u)
        if self._pi is None:
            return u
        _check_length("prior", self._pi, u)
        return u if self._pi.all() else np.where(self._pi > 0.0, u, -np.inf)


@dataclass(frozen=True)
class SmoothCVaR:
    r"""The smoothed mean of the worst `level` share of the entries of u − b.

    It is the largest :math:`\langle q, u - b \rangle - \tau \, \mathrm{KL}(q \| 1/p)` over the simplex with
    :math:`q_i \le \mathrm{cap} = 1/(\mathrm{level} \cdot p)`; the gradient is the q that attains it (Levy,
    Carmon, Duchi, Sidford 2020). Level 1 is the average; a level of at most 1/p is `LogSumExp`.

    Parameters
    ----------
    level : float
        Share of the entries, in (0, 1].
    temperature : float
        :math:`\tau > 0`, in the units of u.
    baseline : array-like of shape (p,), optional
        b: the level that each entry of u is compared with. By default 0.

    Notes
    -----
    For b = 0, :math:`q_i = \min(\mathrm{cap}, e^{(u_i - s)/\tau} / p)`. With u sorted downwards and n = level·p,
    the number k of entries at the cap is the smallest with
    :math:`n - k \le S_k = \sum_{i > k} e^{(u_i - u_{k+1})/\tau}`; once true this stays true, as
    :math:`S_k \le 1 + S_{k+1}`, so bisection over k finds it without a tolerance.

    :math:`C_f = 1`, as :math:`\|q\|_2 \le \|q\|_1`. :math:`L_f = 1/(2\tau)`, proven: with k entries capped
    the Hessian is :math:`(1 - k\,\mathrm{cap})(\mathrm{diag}(a) - aa^\top)/\tau`, a in the simplex; ∇f is
    continuous, and a segment meets finitely many such pieces. Tight for level·p ≤ 2. The Hessian jumps where an
    entry reaches the cap; `hessian` is the limit from above the cap there, which is what Newton's method needs to
    be semi-smooth.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.outers import SmoothCVaR
    >>> f, u = SmoothCVaR(level=0.5, temperature=1e-3), np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(f.value(u), 2), f.gradient(u).round(3)
    (3.5, array([0. , 0. , 0.5, 0.5]))
    """

    level: float
    temperature: float
    baseline: ArrayLike | None = None
    lipschitz: ClassVar[float] = 1.0
    is_convex: ClassVar[bool] = True
    _b: Vector | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", check_positive("temperature", self.temperature))
        object.__setattr__(self, "level", check_real("level", check_positive("level", self.level), high=1.0))
        _keep_baseline(self)

    @property
    def smoothness(self) -> float:
        """L_f; 0 for level 1, where f is the average."""
        return 0.0 if self.level == 1.0 else 1.0 / (2.0 * self.temperature)

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        n, k, ordered, x = self._split(_above(self._b, u))
        if k == 0 or ordered[0] == math.inf:
            return float(ordered[0]) + self.temperature * _log_mean_exp(x, None)
        s = float(ordered[k]) + self.temperature * math.log(self.level * float(np.exp(x).sum()) / (n - k))
        capped = float(np.add.reduce(ordered[:k] / n)) + k / n * self.temperature * math.log(self.level)
        return capped + (1.0 - k / n) * s

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u), a probability vector."""
        u = _above(self._b, u)
        n, k, ordered, x = self._split(u)
        top = float(ordered[k])
        below = np.exp(_scaled(np.minimum(u, top), top, self.temperature))
        q: Vector = np.where(u > top, 1.0, below * ((n - k) / np.exp(x).sum()))
        q /= np.add.reduce(q)
        return q

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = (1 − k·cap)(diag(a) − aaᵀ)/τ, a the shares of the entries below the cap."""
        q, n = self.gradient(u), max(1.0, self.level * len(u))
        below = np.where(n * q < 1.0 - _AT_THE_CAP, q, 0.0)
        mass = float(np.add.reduce(below)) or 1.0  # 1 − k·cap
        return np.asarray((np.diag(below) - np.outer(below, below / mass)) / self.temperature)

    def _split(self, u: Vector) -> tuple[float, int, Vector, Vector]:
        """Return n, k, u sorted downwards, and (u_i − u_{k+1}) / τ of the entries below the cap."""
        n, ordered = max(1.0, self.level * len(u)), np.sort(u)[::-1]

        def scaled(k: int) -> Vector:
            return _scaled(ordered[k:], float(ordered[k]), self.temperature)

        k = bisect_left(range(math.ceil(n) - 1), True, key=lambda k: n - k <= float(np.exp(scaled(k)).sum()))
        return n, k, ordered, scaled(k)


@np.errstate(over="ignore", invalid="ignore")
def _scaled(u: Vector, top: float, temperature: float) -> Vector:
    """Return (u − top) / temperature for a `top` that bounds u; the limit 0 where both are infinite."""
    x = u - top
    if math.isinf(top):
        x[u == top] = 0.0
    x /= temperature
    return x


def _log_mean_exp(x: Vector, weights: Vector | None) -> float:
    """Return log Σ weights_i exp(x_i) for max x = 0 and weights that sum to one (default: uniform)."""
    if weights is None:
        weights = np.full(x.size, 1.0 / x.size)
    shifted = float(weights.dot(np.expm1(x)))  # keeps all digits where τ is so large that exp(x) rounds to 1
    return math.log1p(shifted) if shifted > -0.5 else math.log(weights.dot(np.exp(x)))


def _keep_baseline(outer: LogSumExp | SmoothCVaR) -> None:
    """Check the baseline of a new outer function, and keep it as a tuple for equality and an array for use."""
    if outer.baseline is not None:
        b = _finite_vector("baseline", outer.baseline)
        object.__setattr__(outer, "_b", b)
        object.__setattr__(outer, "baseline", tuple(b.tolist()))


@np.errstate(over="ignore")
def _above(baseline: Vector | None, u: Vector) -> Vector:
    """Return u − b."""
    if baseline is None:
        return u
    _check_length("baseline", baseline, u)
    return np.asarray(u - baseline)


def _finite_vector(name: str, values: ArrayLike) -> Vector:
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.array(np.nan)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise InvalidParameter(f"{name}={values!r} is not a nonempty list of finite numbers.")
    return vector


def _check_length(name: str, expected: Vector, u: Vector) -> None:
    if len(u) != expected.size:
        raise InvalidParameter(f"{name} has {expected.size} entries for {len(u)} values; give one for each.")
