r"""Tangents of f∘g at w, measured on fresh samples, with a term for the curvature of f.

Let w° be the optimum and x = w − w°; neither depends on the samples. With probability 1 − δ, f(g(w)) − f(g(w°)) is
at most the largest value over Δ in :math:`\mathbb R^p` of

.. math:: \langle \mathrm{shift}, \Delta \rangle - \tfrac12 \textstyle\sum_i \Delta_i^2 / m_i
    + \langle \mathrm{slope}, x \rangle - \tfrac12 x^\top H x + \mathrm{width}(\Delta, x) .

- **f linear**, q = ∇f: a block has the mean zᵀq of its samples, without bias, and there is no Δ.
- **f entropic** (`LogSumExp`, `SmoothCVaR`), each :math:`g_i` convex. ∇f at an estimate of g(w) is biased, so it
  is not used. Whatever y is, with q = ∇f(y) ≥ 0,

  .. math:: f(g(w)) - f(g(w°)) \le \big[ f(g(w)) - f(y) - \langle q, g(w) - y \rangle \big]
      + \langle q, g(w) - g(w°) \rangle ,

  and y is the mean of samples apart, the *reference*. The last product is linear in g, as above. The bracket is at
  most ⟨Δ, g(w) − y⟩ − τ KL(q + Δ‖q) for one Δ, which is ∇f(g(w)) − q: so shifts g(w) − y and slopes are one sum
  along one direction, and one δ pays for both. The largest value over all Δ is no less, and does not fall if KL is
  replaced by a sum of squares: `_bends` has the m.
- **f of another kind**: a jackknife over the blocks (k times the gradient from all of them less k − 1 times that
  without one) takes the bias of first order away, all of it for a quadratic f such as `MeanVariance`; no Δ.

Square loss has the exact term H = Σ qᵢ∇²gᵢ, whatever w° is, measured in the same blocks; for others H = 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from stoic.certificate.confidence import Measured
from stoic.inners.group_loss import GroupLoss
from stoic.losses import Squared
from stoic.outers import LogSumExp, SmoothCVaR
from stoic.problem import Problem
from stoic.protocols import Array, Vector

_REFERENCE_SHARE = 4  # a quarter of the samples is for y: the widths shrink with the rest
_MOST_CURVED = 100  # variables for which H is measured: d² numbers a block
_FAR = 500.0  # in temperatures: beyond, weights q that have underflowed to zero might count


@dataclass(frozen=True)
class Tangent:
    """A measured upper bound on f(g(w)) − f(g(w°)).

    Attributes
    ----------
    draws : int
        Samples (of each group) that it took.
    slope : Measured
    curvature : Measured or None
        H; a row of its `wide` is a flattened matrix.
    shift : Measured or None
    bends : tuple of arrays of shape (p,)
        Several m, each of which will do.
    flat : float
        The largest ⟨shift, Δ⟩ + width(Δ), for whatever KL.
    """

    draws: int
    slope: Measured
    curvature: Measured | None = None
    shift: Measured | None = None
    bends: tuple[Vector, ...] = ()
    flat: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether all of it is finite, squares included."""
        return all(part is None or part.is_finite for part in (self.slope, self.curvature, self.shift))


def is_entropic(problem: Problem) -> bool:
    """Return whether f is the largest ⟨q, u⟩ − τ KL(q‖π) over a convex set of weights q, and curved."""
    outer = problem.outer
    is_scaled = getattr(outer, "scale", None) is not None
    return isinstance(outer, LogSumExp | SmoothCVaR) and not is_scaled and not problem.has_linear_outer


def measured_tangent(
    problem: Problem, w: Vector, *, draws: int, blocks: int, delta: float, rng: Generator
) -> Tangent:
    """Return a tangent from `draws` samples (of each group), in as many blocks.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> problem = stoic.Problem(stoic.GroupLoss(np.ones((9, 1)), np.zeros(9)), stoic.Linear())
    >>> seen = measured_tangent(problem, np.ones(1), draws=640, blocks=64, delta=0.05, rng=rng)
    >>> seen.slope.mean, seen.slope.widths, seen.curvature.mean
    (array([2.]), array([0.]), array([[2.]]))
    """
    inner, outer = problem.inner, problem.outer
    reference = draws // _REFERENCE_SHARE if is_entropic(problem) else 0
    size = (draws - reference) // blocks
    y = inner.value(w, inner.draw(reference, rng))[0] if reference else np.zeros(inner.shape[0])
    batches = [inner.draw(size, rng) for _ in range(blocks)]
    draws = reference + size * blocks
    if not (reference or problem.has_linear_outer):
        return Tangent(draws, Measured.of(_pseudo_values(problem, w, batches), delta))
    q = outer.gradient(y)
    slope = Measured.of(np.stack([inner.vjp(w, batch, q) for batch in batches]), delta)
    curvature = _curvature(problem, batches, q, delta)
    if not reference:
        return Tangent(draws, slope, curvature)
    shift = Measured.of(np.concatenate([inner.value(w, batch) for batch in batches]) - y, delta)
    flat = float((shift.mean + shift.widths).max() - q @ (shift.mean - shift.widths))
    centered = Measured(shift.mean - q @ shift.mean, shift.wide)  # Δ sums to zero: a constant does not count
    bends = _bends(outer.temperature, q, centered)  # type: ignore[attr-defined]
    return Tangent(draws, slope, curvature, centered, bends, flat)


def _bends(temperature: float, q: Vector, shift: Measured) -> tuple[Vector, ...]:
    r"""Return vectors m with τ log E_q exp((s − E_q s)/τ) ≤ ½ Σ m s² for all s within the widths of the shift.

    The left side is the largest ⟨s, Δ⟩ − τ KL(q + Δ‖q). With a = s/τ, it is at most τ E_q(eᵃ − 1 − a), and
    (eᵃ − 1 − a)/a² grows with a: m = (q/τ)·2(eᴿ − 1 − R)/R² where |a| ≤ R. By Pinsker's inequality m = 1/(2τ)
    will do for all s.
    """
    bends = [np.full(q.size, 0.5 / temperature)]
    far = np.maximum((np.abs(shift.mean) + shift.widths) / temperature, 1e-3)  # 0/0 is not wanted
    if far.max() <= _FAR:
        bends.append(q / temperature * 2.0 * (np.expm1(far) - far) / np.square(far))
    return tuple(bends)


def _curvature(problem: Problem, batches: list[Any], q: Vector, delta: float) -> Measured | None:
    inner, d = problem.inner, problem.dimension
    if not (type(inner) is GroupLoss and isinstance(inner.loss, Squared) and d <= _MOST_CURVED):
        return None
    curved = Measured.of(np.stack([_hessian(inner, batch, q).ravel() for batch in batches]), delta)
    return Measured(curved.mean.reshape(d, d), curved.wide)


def _hessian(inner: GroupLoss, batch: Any, q: Vector) -> Array:
    """Return Σ qᵢ∇²gᵢ of a batch under square loss: twice the weighted sum of the rows' outer products."""
    weights = 2.0 * q[:, None] / batch.rows.shape[1]
    directions = np.eye(inner.shape[1])
    return np.stack([inner.combine(weights * inner.predict(one, batch), batch) for one in directions])


def _pseudo_values(problem: Problem, w: Vector, batches: list[Any]) -> Array:
    """Return k times the gradient from all k blocks less k − 1 times that without one, for each block."""
    inner, gradient = problem.inner, problem.outer.gradient

    def sum_of_vjps(q: Vector) -> Vector:
        return np.asarray(np.sum([inner.vjp(w, batch, q) for batch in batches], axis=0))

    y = np.concatenate([inner.value(w, batch) for batch in batches])
    total = sum_of_vjps(gradient(y.mean(axis=0)))
    without = [gradient(np.delete(y, j, axis=0).mean(axis=0)) for j in range(len(batches))]
    pairs = zip(batches, without, strict=True)
    return np.stack([total - sum_of_vjps(q) + inner.vjp(w, batch, q) for batch, q in pairs])
