"""Streams whose block means are drawn from their exact law, and problems on them with known constants.

The plans of the theorems ask for more samples than can be drawn one by one. A solver sees block means only, and
for the laws below the mean of n samples costs no more than one of them.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.random import Generator
from scipy.optimize import minimize as scipy_minimize

from stoic import L2, Linear, LogSumExp, Problem
from stoic.protocols import Array, Vector
from stoic.theory.theorems import Constants


class Law(Protocol):
    """The law of a number ξ with mean 0 and variance 1."""

    def means(self, n: int, shape: tuple[int, int], rng: Generator) -> Array:
        """Return independent means of n samples each."""
        ...


class Gaussian:
    def means(self, n, shape, rng):
        return rng.standard_normal(shape) / math.sqrt(n)


class Signs:
    """ξ = ±1: the sum of n is 2 Binomial(n, 1/2) − n."""

    def means(self, n, shape, rng):
        return 2.0 * rng.binomial(n, 0.5, shape) / n - 1.0


@dataclass(frozen=True)
class RarePareto:
    """ξ = (N + (B·P − E B·P)/sd(B·P))/√2, where N is normal, B is 1 at the rate q, else 0, and P is Pareto(3).

    P ≥ 1 has E P = 3/2 and E P² = 3, so that E B·P = 3q/2 and Var B·P = 3q − 9q²/4; its third moment is infinite.
    The sum of n takes one normal number, one binomial one, and as many P as the latter says.
    """

    rate: float

    def means(self, n, shape, rng):
        counts = rng.binomial(n, self.rate, shape)
        spikes = np.full(shape, -1.5 * self.rate * n)
        if counts.any():
            heights = 1.0 + rng.pareto(3.0, counts.sum())
            owners = np.repeat(np.arange(counts.size), counts.ravel())
            spikes += np.bincount(owners, heights, counts.size).reshape(shape)
        spread = math.sqrt(3.0 * self.rate - 2.25 * self.rate**2)
        return (math.sqrt(n) * rng.standard_normal(shape) + spikes / spread) / (math.sqrt(2.0) * n)


class Batch:
    """`size` samples, whose noise is drawn at the first evaluation, when the number of blocks is known."""

    def __init__(self, size: int, rng: Generator, planted: float) -> None:
        self._size, self._rng, self._planted = size, rng, planted
        self._noise: Array | None = None

    def noise(self, law: Law, blocks: int, p: int) -> Array:
        """Return the block means of ξ, of shape (blocks, p): the same ones whenever they are asked for."""
        if self._noise is None:
            n, rest = divmod(self._size, blocks)
            if rest:
                raise ValueError(f"{self._size} samples cannot be cut into {blocks} equal blocks.")
            self._noise = law.means(n, (blocks, p), self._rng)
            self._noise[0] += self._planted / n
        if len(self._noise) != blocks:
            raise ValueError(f"the batch was cut into {len(self._noise)} blocks, not {blocks}.")
        return self._noise


@dataclass(frozen=True, eq=False)
class Stream:
    r"""g_i(w; ξ) = b_i + a_iᵀw + ½ Σ_j h_ij w_j² + s_i ξ_i sin(c_iᵀw + φ_i), with independent ξ_i of one law.

    The mean is the quadratic part, the noise is bounded in w, and it shakes values and Jacobians at once:

    - σ₀² = Σ s_i² and σ₁² = Σ s_i²‖c_i‖², since sin² ≤ 1 and cos² ≤ 1;
    - ∇g(w) has rows a_i + h_i∘w, so that ‖∇g(w) − ∇g(v)‖_F² = Σ_j (Σ_i h_ij²)(w_j − v_j)² ≤ L_g²‖w − v‖² with
      L_g the largest norm of a column of h; L_g = 0 without h;
    - E‖∇g(w; ξ)‖_F² ≤ ‖∇g(w)‖_F² + σ₁².

    `planted` maps the number of a draw to what its first sample adds to every ξ_i: an event of the law that is
    too rare to be met by chance.
    """

    b: Vector
    A: Array
    h: Array
    scale: Vector
    waves: Array
    phases: Vector
    law: Law
    planted: dict[int, float] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    n_samples = None
    n_unpenalized = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape

    @property
    def sigma0(self) -> float:
        return float(np.linalg.norm(self.scale))

    @property
    def sigma1(self) -> float:
        return float(np.linalg.norm(self.scale[:, None] * self.waves))

    @property
    def L_g(self) -> float:  # noqa: N802
        return float(np.linalg.norm(self.h, axis=0).max())

    def expected(self, w: Vector) -> Vector:
        """Return g(w) = E g(w; ξ)."""
        return self.b + self.A @ w + 0.5 * self.h @ (w * w)

    def expected_jacobian(self, w: Vector) -> Array:
        """Return ∇g(w)."""
        return self.A + self.h * w

    def draw(self, size: int, rng: Generator) -> Batch:
        return Batch(size, rng, self.planted.get(next(self._numbers), 0.0))

    def everything(self) -> Batch:
        raise ValueError("a stream has no end.")

    def cost(self, size: int) -> int:
        return size

    def value(self, w: Vector, batch: Batch, blocks: int = 1) -> Array:
        noise = batch.noise(self.law, blocks, len(self.A))
        return self.expected(w) + noise * (self.scale * np.sin(self.waves @ w + self.phases))

    def jacobian(self, w: Vector, batch: Batch, blocks: int = 1) -> Array:
        noise = batch.noise(self.law, blocks, len(self.A))
        slopes = (self.scale * np.cos(self.waves @ w + self.phases))[:, None] * self.waves
        return self.expected_jacobian(w) + noise[:, :, None] * slopes

    def vjp(self, w: Vector, batch: Batch, q: Vector) -> Vector:
        return q @ self.jacobian(w, batch)[0]


@dataclass(frozen=True, eq=False)
class KnownProblem:
    """A problem with its constants, and with F − F* from an independent solver."""

    problem: Problem
    constants: Constants
    w0: Vector
    objective: Callable[[Vector], float]
    best: float

    def gap(self, w: Vector) -> float:
        """Return F(w) − F*."""
        return self.objective(w) - self.best

    @property
    def eps0(self) -> float:
        return self.gap(self.w0)

    def planted(self, planted: dict[int, float]) -> Problem:
        """Return the problem with a stream that is at its beginning and has planted samples."""
        inner = replace(self.problem.inner, planted=planted, _numbers=itertools.count())
        return replace(self.problem, inner=inner)


def smooth_maximum(law: Law) -> KnownProblem:
    """Linear models under LogSumExp(τ = 1) and L2(α = 1/2): a non-linear f, and constants that hold everywhere.

    C_f = 1 and L_f = 1/(2τ) = 1/2; L_g = 0; C_g² = ‖A‖_F² + σ₁², as the mean Jacobian is A; f∘g is convex, so that
    F is strongly convex with the modulus μ = α of the regularizer.
    """
    inner = Stream(
        b=np.array([0.3, -0.2]),
        A=np.array([[0.6, 0.3], [-0.4, 0.6]]),
        h=np.zeros((2, 2)),
        scale=np.array([1.5, 1.5]),
        waves=np.array([[0.3, 0.1], [-0.1, 0.3]]),
        phases=np.array([1.5, 1.0]),
        law=law,
    )
    C_g = math.hypot(float(np.linalg.norm(inner.A)), inner.sigma1)
    constants = Constants(C_f=1.0, L_f=0.5, C_g=C_g, L_g=0.0, sigma0=inner.sigma0, sigma1=inner.sigma1, mu=0.5)

    def objective(w):
        u = inner.expected(w)
        return float(np.logaddexp(u[0], u[1]) - math.log(2.0) + 0.25 * w @ w)

    found = scipy_minimize(objective, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15})
    problem = Problem(inner, LogSumExp(1.0), L2(0.5))
    return KnownProblem(problem, constants, np.array([2.0, 1.5]), objective, float(found.fun))


def mean_of_quadratics(law: Law) -> KnownProblem:
    """The mean of two quadratics under L2(α = 1/2): a linear f and a g with curvature.

    f(u) = (u_1 + u_2)/2 has C_f = 1/√2 and L_f = 0. F is quadratic with the Hessian diag(3/2, 1): μ = 1, and the
    optimum solves a linear system. L_g = √2 is the norm of the first column of h.

    C_g has to hold where the iterates are. With probability 1 − δ every stage starts within D₁ = √(2ε₀/μ) of w*
    and stays within D₁ of its start, hence within 2D₁ of w*, where ‖∇g(w)‖_F ≤ ‖∇g(w*)‖_F + 2L_g D₁.
    """
    inner = Stream(
        b=np.array([0.0, 1.0]),
        A=np.array([[0.5, -1.0], [0.7, 0.4]]),
        h=np.array([[1.0, 0.5], [1.0, 0.5]]),
        scale=np.array([1.0, 1.0]),
        waves=np.array([[0.6, 0.8], [-0.8, 0.6]]),
        phases=np.array([0.4, 0.8]),
        law=law,
    )

    def objective(w):
        return float(inner.expected(w).mean() + 0.25 * w @ w)

    hessian = np.array([1.5, 1.0])
    w_best = -inner.A.mean(axis=0) / hessian
    w0 = w_best + np.array([0.8, -math.sqrt(2.0 - 1.5 * 0.8**2)])  # ½ Σ hessian (w0 − w*)² = 1
    C_g = math.hypot(
        float(np.linalg.norm(inner.expected_jacobian(w_best))) + 2.0 * inner.L_g * math.sqrt(2.0), inner.sigma1
    )
    constants = Constants(
        C_f=math.sqrt(0.5), L_f=0.0, C_g=C_g, L_g=inner.L_g, sigma0=inner.sigma0, sigma1=inner.sigma1, mu=1.0
    )
    problem = Problem(inner, Linear([0.5, 0.5]), L2(0.5))
    return KnownProblem(problem, constants, w0, objective, objective(w_best))
