"""`LogSumExp`: the smooth maximum of (7), for KL group DRO."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from stoic.checks import check_positive
from stoic.codes import LOGSUMEXP, OuterCode
from stoic.errors import InvalidParameter
from stoic.outers.shifted import (
    baseline_of,
    check_entries,
    finite_vector,
    keep_baseline,
    less_baseline,
    log_mean_exp,
    scaled,
)
from stoic.protocols import Array, Vector


@dataclass(frozen=True)
class LogSumExp:
    r"""The smooth maximum :math:`f(u) = \tau \log \sum_i \pi_i \exp(\frac{u_i - b_i}{s_i \tau})` of (7).

    It is what KL group DRO minimizes. With b = 0 and s = 1 it is the largest
    :math:`\langle q, u \rangle - \tau \, \mathrm{KL}(q \| \pi)` over the simplex, and the gradient is the q that
    attains it. Small τ: the maximum of (u − b)/s; large τ: its mean under π.

    Parameters
    ----------
    temperature : float
        :math:`\tau > 0`, in the units of u (λ in (7)).
    prior : array-like of shape (p,), optional
        :math:`\pi`: nonnegative, not all zero; scaled to sum to one. By default uniform, for any p.
    baseline : array-like of shape (p,), optional
        b: the level that each entry of u is compared with, such as the loss that a group cannot go below. By
        default 0.
    scale : array-like of shape (p,), optional
        s > 0: the unit in which each entry of u is measured. By default 1.

    Notes
    -----
    For s = 1, :math:`C_f = 1`. The Hessian :math:`(\mathrm{diag}(q) - qq^\top) / \tau` has norm at most
    :math:`L_f = 1 / (2\tau)`, attained where q has two entries 1/2, and is Lipschitz with
    :math:`M_f = \sqrt 6 / (9 \tau^2)` (numerical for p > 2). Losses may be as large as floats go; an infinite
    one gives the value inf and a gradient that follows π over the infinite entries; NaN stays NaN. Other s divide
    the three constants by the smallest s, its square and its cube.

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
    scale: ArrayLike | None = None
    is_convex: ClassVar[bool] = True
    _pi: Vector | None = field(init=False, repr=False, compare=False, default=None)
    _b: Vector | None = field(init=False, repr=False, compare=False, default=None)
    _s: Vector | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", check_positive("temperature", self.temperature))
        keep_baseline(self)
        if self.scale is not None:
            s = finite_vector("scale", self.scale)
            if s.min() <= 0.0:
                raise InvalidParameter(f"scale={self.scale!r} must have entries above 0.")
            object.__setattr__(self, "_s", s)
            object.__setattr__(self, "scale", tuple(s.tolist()))
        if self.prior is not None:
            pi = finite_vector("prior", self.prior)
            if pi.min() < 0.0 or pi.max() == 0.0:
                raise InvalidParameter(f"prior={self.prior!r} must be nonnegative, with an entry above 0.")
            pi = pi / pi.max() / (pi / pi.max()).sum()  # in two steps, as the sum may overflow
            object.__setattr__(self, "_pi", pi)
            object.__setattr__(self, "prior", tuple(pi.tolist()))

    @property
    def lipschitz(self) -> float:
        """C_f."""
        return 1.0 / self._least_scale

    @property
    def smoothness(self) -> float:
        """L_f."""
        return 1.0 / (2.0 * self.temperature) / self._least_scale**2

    @property
    def hessian_lipschitz(self) -> float:
        """M_f."""
        return math.sqrt(6.0) / 9.0 / self.temperature / self.temperature / self._least_scale**3

    @property
    def _least_scale(self) -> float:
        return 1.0 if self._s is None else float(self._s.min())

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        u = self._on_support(u)
        top = float(np.maximum.reduce(u))
        return top + self.temperature * log_mean_exp(scaled(u, top, self.temperature), self._pi)  # (7)

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u): a probability vector, divided by s."""
        q = self._weights(u)
        return q if self._s is None else q / self._s

    def _weights(self, u: Vector) -> Vector:
        u = self._on_support(u)
        q = np.exp(scaled(u, float(np.maximum.reduce(u)), self.temperature))
        if self._pi is not None:
            q *= self._pi
        q /= np.add.reduce(q)
        return q

    def code(self, p: int) -> OuterCode:
        """Return its code in kernels, for p entries."""
        prior = np.full(p, 1.0 / p) if self._pi is None else self._pi.copy()
        scale = np.ones(p) if self._s is None else self._s.copy()
        shift = baseline_of(self._b, p)
        return OuterCode(LOGSUMEXP, prior, shift, scale, float(self.temperature), 1.0, np.empty(0))

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = (diag(q) − qqᵀ)/τ, rows and columns divided by s."""
        q = self._weights(u)
        matrix = np.asarray((np.diag(q) - np.outer(q, q)) / self.temperature)
        return matrix if self._s is None else matrix / self._s / self._s[:, None]

    def hessian_product(self, u: Vector, v: Array) -> Array:
        """Return ∇²f(u) v for v of shape (p,) or (p, k), without forming the matrix."""
        q = self._weights(u)
        s = np.ones_like(q) if self._s is None else self._s
        x = v.T / s
        return np.asarray(((x - (x @ q)[..., None]) * (q / s)).T / self.temperature)

    def _on_support(self, u: Vector) -> Vector:
        """Return (u − b)/s, −inf where the prior is zero."""
        u = less_baseline(self._b, u)
        if self._s is not None:
            check_entries("scale", self._s, u)
            u = u / self._s
        if self._pi is None:
            return u
        check_entries("prior", self._pi, u)
        return u if self._pi.all() else np.where(self._pi > 0.0, u, -np.inf)
