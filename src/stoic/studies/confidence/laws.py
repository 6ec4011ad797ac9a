r"""Group DRO problems whose samples are drawn fresh from a law, and whose optimum is known in closed form."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.checks import check_count, check_positive
from stoic.errors import InvalidParameter
from stoic.inners.blocks import IntArray
from stoic.inners.group_loss import GroupLoss
from stoic.inners.groups import GroupedRows
from stoic.outers import LogSumExp
from stoic.problem import Problem
from stoic.protocols import Array, Vector

Draw = Callable[[tuple[int, ...], Generator], Array]

_T5, _T45, _T25 = (math.sqrt(nu / (nu - 2.0)) for nu in (5.0, 4.5, 2.5))  # deviations of Student's t
_MEAN, _DEVIATION = 2.5 / 1.5, math.sqrt(2.5 / (1.5**2 * 0.5))  # of Pareto(a): a/(a − 1), √(a/((a − 1)²(a − 2)))
_LOG_MEAN, _LOG_DEVIATION = math.exp(0.5), math.sqrt((math.e - 1.0) * math.e)  # of exp(N), N standard normal

UNIT_NOISES: dict[str, Draw] = {
    "gaussian": lambda shape, rng: rng.standard_normal(shape),
    "t4.5": lambda shape, rng: rng.standard_t(4.5, shape) / _T45,
    "t2.5": lambda shape, rng: rng.standard_t(2.5, shape) / _T25,
    "pareto2.5": lambda shape, rng: (1.0 + rng.pareto(2.5, shape) - _MEAN) / _DEVIATION,
    "lognormal": lambda shape, rng: (np.exp(rng.standard_normal(shape)) - _LOG_MEAN) / _LOG_DEVIATION,
    "t5": lambda shape, rng: rng.standard_t(5.0, shape) / _T5,
}
"""Noises with mean 0 and variance 1."""

FOURTH_MOMENTS = {
    "gaussian": 3.0,
    "t5": 3.0 + 6.0 / (5.0 - 4.0),
    "t4.5": 3.0 + 6.0 / (4.5 - 4.0),
    "lognormal": math.exp(4.0) + 2.0 * math.exp(3.0) + 3.0 * math.exp(2.0) - 3.0,
}
"""Of the noises that have one."""

PLACES = ("labels", "features", "both")

MU = 2.0
"""The modulus of strong convexity of F: each g_i has it, and f is increasing and convex."""


@dataclass(frozen=True)
class GroupLaw:
    r"""Linear regression in p groups under KL group DRO, with an optimum in closed form.

    In group i a row has features x with independent entries of mean 0 and variance 1, and the label
    :math:`x^\top w_i + s_i \varepsilon`, so that with the squared loss, whatever the noise,

    .. math:: g_i(w) = \|w - w_i\|^2 + s_i^2, \qquad F(w) = \lambda \log \tfrac1p \sum_i e^{g_i(w) / \lambda} .

    The models w_i are placed around c such that :math:`\sum_i q_i (w_i - c) = 0` for
    :math:`q_i \propto e^{(r_i^2 + s_i^2) / \lambda}` and :math:`r_i = \|w_i - c\|`: then ∇F(c) = 0, and c is
    the optimum. (The vectors :math:`q_i (w_i - c)` are the sides of a polygon: p − 2 at right angles, and two that
    close it by the law of cosines.)

    Parameters
    ----------
    noise : str
        One of `UNIT_NOISES`; all have variance 1, so that F is the same for each.
    where : {"labels", "features", "both"}
        What has that noise; the rest is Gaussian.
    d : int
        Columns, at least p − 1.
    temperature : float
        λ.
    radii, deviations : tuple of p floats
        r_i and s_i.

    Examples
    --------
    >>> import numpy as np
    >>> law = GroupLaw("t2.5")
    >>> law.gap(law.optimum) < 1e-12 < law.gap(law.optimum + 0.01)
    True
    >>> problem = law.problem(100, np.random.default_rng(0))
    >>> problem.inner.n_samples
    400
    """

    noise: str = "gaussian"
    where: str = "labels"
    d: int = 10
    temperature: float = 0.8
    radii: tuple[float, ...] = (0.5, 0.7, 0.9, 1.0)
    deviations: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if self.noise not in UNIT_NOISES:
            raise InvalidParameter(f"noise={self.noise!r} is not one of {', '.join(UNIT_NOISES)}.")
        if self.where not in PLACES:
            raise InvalidParameter(f"where={self.where!r} is not one of {', '.join(PLACES)}.")
        check_count("d", self.d, low=self.p - 1)
        check_positive("temperature", self.temperature)
        for number in (*self.radii, *self.deviations):
            check_positive("radii and deviations", number)
        if not 3 <= self.p == len(self.deviations):
            raise InvalidParameter(
                f"{len(self.deviations)} deviations for {self.p} radii; give one of each, p >= 3."
            )
        _ = self.models

    @property
    def p(self) -> int:
        """The number of groups."""
        return len(self.radii)

    @cached_property
    def optimum(self) -> Vector:
        """The point c, of norm 2; solvers start at 0."""
        return np.full(self.d, 2.0 / math.sqrt(self.d))

    @cached_property
    def _risks(self) -> Vector:
        return np.square(self.radii) + np.square(self.deviations)

    @cached_property
    def models(self) -> Array:
        """The models w_i, of shape (p, d)."""
        sides = np.array(self.radii) * np.exp((self._risks - self._risks.max()) / self.temperature)
        directions = np.eye(self.p, self.d)
        along, open_side = sides[:-2] @ directions[: self.p - 2], float(np.linalg.norm(sides[:-2]))
        *_, a, b = (float(side) for side in sides)
        x = (open_side**2 + a * a - b * b) / (2.0 * open_side)  # the law of cosines
        if abs(x) > a:
            raise InvalidParameter(f"radii={self.radii} with deviations={self.deviations}: no models have them.")
        axis, across = -along / open_side, np.eye(1, self.d, self.p - 2)[0]
        height = math.sqrt(a * a - x * x)
        directions[-2] = (x * axis + height * across) / a
        directions[-1] = ((open_side - x) * axis - height * across) / b
        return np.asarray(self.optimum + np.array(self.radii)[:, None] * directions)

    def risks(self, w: Vector) -> Vector:
        """Return g(w)."""
        return np.asarray(np.square(w - self.models).sum(axis=1) + np.square(self.deviations))

    def gap(self, w: Vector) -> float:
        """Return F(w) − F*; infinite where w is not finite, or too large to tell."""
        outer, risks = LogSumExp(self.temperature), self.risks(w)
        if not np.isfinite(risks).all():
            return math.inf
        return max(0.0, outer.value(risks) - outer.value(self._risks))

    def limit(self, n: int) -> float:
        r"""Return :math:`\mathrm{tr}(H^{-1} \Sigma) / (2n)`, the least mean gap from n samples of each group.

        H is ∇²F(c), and Σ the covariance of :math:`\psi = \nabla g(c; \xi)^\top \nabla f(g) + \nabla g^\top
        \nabla^2 f (g(c; \xi) - g)`, g and ∇g at c: no method has a smaller mean gap in the limit (local minimax),
        and averages reach it. Infinite where ψ has no variance: it then says nothing.

        Examples
        --------
        >>> round(GroupLaw().limit(10_000), 6), GroupLaw("t2.5").limit(10_000)
        (0.000674, inf)
        """
        labels = FOURTH_MOMENTS.get(self.noise if self.where != "features" else "gaussian", math.inf)
        features = self.noise if self.where != "labels" else "gaussian"
        fourth = FOURTH_MOMENTS.get(features, math.inf)
        if math.isinf(labels + fourth):
            return math.inf
        outer, away = LogSumExp(self.temperature), self.optimum - self.models
        q, bent = outer.gradient(self._risks), 2.0 * outer.hessian(self._risks) @ away
        hessian = 2.0 * np.eye(self.d) + 2.0 * away.T @ bent
        covariance = np.zeros((self.d, self.d))
        for a, s, weight, c, g in zip(away, self.deviations, q, bent, self._risks, strict=True):
            squared = float(a @ a)  # residuals are aᵀx − sε
            rxrx = g * np.eye(self.d) + 2.0 * np.outer(a, a) + (fourth - 3.0) * np.diag(np.square(a))
            rrrx = 3.0 * g * a + (fourth - 3.0) * a**3
            rrrr = 3.0 * squared**2 + (fourth - 3.0) * float((a**4).sum()) + 6.0 * s * s * squared + s**4 * labels
            cross = np.outer(2.0 * weight * (rrrx - g * a), c)
            covariance += 4.0 * weight**2 * (rxrx - np.outer(a, a)) + cross + cross.T
            covariance += (rrrr - g * g) * np.outer(c, c)
        return float(np.trace(np.linalg.solve(hessian, covariance))) / (2.0 * n)

    def draw(self, n: int, rng: Generator) -> tuple[Array, Vector]:
        """Return n rows of each group and their labels: row p·k + i is the k-th of group i."""
        features = UNIT_NOISES[self.noise if self.where != "labels" else "gaussian"]
        labels = UNIT_NOISES[self.noise if self.where != "features" else "gaussian"]
        X = features((n, self.p, self.d), rng)
        y = np.einsum("npd,pd->np", X, self.models) + np.array(self.deviations) * labels((n, self.p), rng)
        return X.reshape(-1, self.d), y.ravel()

    def problem(self, n: int, rng: Generator) -> Problem:
        """Return the problem on n fresh rows of each group, each of which is drawn once."""
        X, y = self.draw(n, rng)
        inner = GroupLoss(X, y, np.tile(np.arange(self.p), n))
        inner.grouped_rows = InOrder(inner.grouped_rows)
        return Problem(inner, LogSumExp(self.temperature))


class InOrder(GroupedRows):
    """Rows of equally large groups that are handed out one after another, each once.

    Parameters
    ----------
    rows : GroupedRows
        Row p·k + i is the k-th of group i.
    """

    is_fresh = True

    def __init__(self, rows: GroupedRows) -> None:
        super().__init__(rows.codes, rows.n_groups)
        self._next = 0

    def batches(self, shape: tuple[int, ...], rng: Generator) -> IntArray:  # noqa: ARG002
        """Return the rows that come next, for batches of shape (..., p, size)."""
        *leading, p, size = shape
        taken = math.prod(leading) * size
        if self._next + taken > self.sizes[0]:
            raise InvalidParameter(
                f"{self._next + taken} rows of a group that has {self.sizes[0]}: draw more of them."
            )
        places = np.arange(self._next, self._next + taken).reshape(*leading, 1, size)
        self._next += taken
        return places * p + np.arange(p)[:, None]

    def mark(self, rng: Generator) -> Any:  # noqa: ARG002
        """Return how many rows were handed out."""
        return self._next

    def rewind(self, mark: Any, rng: Generator) -> None:  # noqa: ARG002
        """Hand out the rows since a mark again."""
        self._next = mark
