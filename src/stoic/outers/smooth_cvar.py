"""`SmoothCVaR`: the smoothed mean of the worst entries of u."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from stoic.checks import check_positive, check_real
from stoic.codes import SMOOTH_CVAR, OuterCode
from stoic.outers.shifted import baseline_of, keep_baseline, less_baseline, log_mean_exp, scaled
from stoic.protocols import Array, Vector

_AT_THE_CAP = 1e-12  # of the cap: rounding of a share that has reached it


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
        keep_baseline(self)

    @property
    def smoothness(self) -> float:
        """L_f; 0 for level 1, where f is the average."""
        return 0.0 if self.level == 1.0 else 1.0 / (2.0 * self.temperature)

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        n, k, ordered, x = self._split(less_baseline(self._b, u))
        if k == 0 or ordered[0] == math.inf:
            return float(ordered[0]) + self.temperature * log_mean_exp(x, None)
        s = float(ordered[k]) + self.temperature * math.log(self.level * float(np.exp(x).sum()) / (n - k))
        capped = float(np.add.reduce(ordered[:k] / n)) + k / n * self.temperature * math.log(self.level)
        return capped + (1.0 - k / n) * s

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u), a probability vector."""
        u = less_baseline(self._b, u)
        n, k, ordered, x = self._split(u)
        top = float(ordered[k])
        below = np.exp(scaled(np.minimum(u, top), top, self.temperature))
        q: Vector = np.where(u > top, 1.0, below * ((n - k) / np.exp(x).sum()))
        q /= np.add.reduce(q)
        return q

    def code(self, p: int) -> OuterCode:
        """Return its code in kernels, for p entries."""
        b, capacity = baseline_of(self._b, p), max(1.0, self.level * p)
        return OuterCode(SMOOTH_CVAR, np.ones(p), b, np.ones(p), float(self.temperature), capacity, np.empty(p))

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = (1 − k·cap)(diag(a) − aaᵀ)/τ, a the shares of the entries below the cap."""
        below, mass = self._below_the_cap(u)
        return np.asarray((np.diag(below) - np.outer(below, below / mass)) / self.temperature)

    def hessian_product(self, u: Vector, v: Array) -> Array:
        """Return ∇²f(u) v for v of shape (p,) or (p, k), without forming the matrix."""
        below, mass = self._below_the_cap(u)
        return np.asarray(((v.T - (below @ v)[..., None] / mass) * below).T / self.temperature)

    def _below_the_cap(self, u: Vector) -> tuple[Vector, float]:
        """Return the weights below the cap, 0 for others, and their sum 1 − k·cap."""
        q, n = self.gradient(u), max(1.0, self.level * len(u))
        below = np.where(n * q < 1.0 - _AT_THE_CAP, q, 0.0)
        return below, float(np.add.reduce(below)) or 1.0

    def _split(self, u: Vector) -> tuple[float, int, Vector, Vector]:
        """Return n, k, u sorted downwards, and (u_i − u_{k+1}) / τ of the entries below the cap."""
        n, ordered = max(1.0, self.level * len(u)), np.sort(u)[::-1]

        def below(k: int) -> Vector:
            return scaled(ordered[k:], float(ordered[k]), self.temperature)

        k = bisect_left(range(math.ceil(n) - 1), True, key=lambda k: n - k <= float(np.exp(below(k)).sum()))
        return n, k, ordered, below(k)
