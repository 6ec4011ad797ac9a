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
        keep_baseline(self)
        if self.prior is not None:
            pi = finite_vector("prior", self.prior)
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
        return top + self.temperature * log_mean_exp(scaled(u, top, self.temperature), self._pi)  # (7)

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u), a probability vector."""
        u = self._on_support(u)
        q = np.exp(scaled(u, float(np.maximum.reduce(u)), self.temperature))
        if self._pi is not None:
            q *= self._pi
        q /= np.add.reduce(q)
        return q

    def code(self, p: int) -> OuterCode:
        """Return its code in kernels, for p entries."""
        prior = np.full(p, 1.0 / p) if self._pi is None else self._pi.copy()
        return OuterCode(LOGSUMEXP, prior, baseline_of(self._b, p), float(self.temperature), 1.0, np.empty(0))

    def hessian(self, u: Vector) -> Array:
        """Return ∇²f(u) = (diag(q) − qqᵀ)/τ."""
        q = self.gradient(u)
        return np.asarray((np.diag(q) - np.outer(q, q)) / self.temperature)

    def _on_support(self, u: Vector) -> Vector:
        """Return u − b, −inf where the prior is zero."""
        u = less_baseline(self._b, u)
        if self._pi is None:
            return u
        check_entries("prior", self._pi, u)
        return u if self._pi.all() else np.where(self._pi > 0.0, u, -np.inf)
