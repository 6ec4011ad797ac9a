r"""How a certificate is made: from the gradient at w, over all data or by block means of fresh samples.

Where f∘g lies above its quadratic model at w with the Hessian H, so that for every u
F(u) ≥ f(g(w)) + ⟨∇, u − w⟩ + ½⟨u − w, H(u − w)⟩ + r(u), the gap is at most

.. math:: \max_u \; \langle \nabla, w - u \rangle - \tfrac12 \langle u - w, H (u - w) \rangle + r(w) - r(u) .

For r = (α/2)‖·‖² that is half the square of ‖∇F(w)‖ in the norm of (H + αI)⁻¹; for other r, with H = μI, a prox.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from stoic.certificate.certificate import Certificate, Constant, Promise
from stoic.errors import check_count, check_probability
from stoic.growing import growing_plan
from stoic.inners.metered import Metered
from stoic.means import GeometricMedianOfMeans
from stoic.pilot import Pilot, run_pilot
from stoic.plans import Constants, Plan
from stoic.probes import curvature
from stoic.problem import Problem
from stoic.protocols import Array, Vector
from stoic.samples import Sample, draw_sample, length
from stoic.schedules import theorem_3
from stoic.terms import terms_of

_BLOCKS, _SMALL, _MOST_HALVINGS = 32, 256, 60


class Estimate(NamedTuple):
    """An estimate of a gradient, and how far it may be from the truth."""

    gradient: Vector
    radius: float


class Curvature(NamedTuple):
    """What is known of the Hessian H of f∘g at w: its smallest eigenvalue, and H itself where d is small."""

    smallest: float
    hessian: Array | None


def certify(
    problem: Problem,
    w: Vector,
    *,
    delta: float = 0.05,
    samples: int = 100_000,
    w0: Vector | None = None,
    seed: int | Generator | None = None,
) -> Certificate:
    r"""Bound F(w) − F* for any w, whatever found it.

    Where the data are finite and no more than `samples`, the gradient over all of them gives a bound that holds
    for certain, given μ. Otherwise fresh samples are drawn, in 32 blocks: a jackknife over blocks has one
    value of the gradient for each, without the bias of a non-linear f, and their geometric median and its
    spread bound ‖∇F(w)‖ with probability 1 − δ. μ is the modulus of the regularizer, which is given, plus the
    smallest curvature of f∘g at w, which is estimated.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d,)
        The answer.
    delta : float, default 0.05
        The probability with which the bound may fail.
    samples : int
        Data points that may be drawn.
    w0 : ndarray, optional
        Where the solve started, for what a theorem says beforehand.
    seed : int or Generator, optional

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(3000) % 3), stoic.LogSumExp(10.0), stoic.L2(1.0))
    >>> result = stoic.minimize(problem, budget=60_000, seed=0)
    >>> stoic.certify(problem, result.w, seed=0).bound < 0.01
    True
    """
    w, delta = problem.check_point("w", w), check_probability("delta", delta)
    cost, rng = problem.inner.cost(1), np.random.default_rng(seed)
    n_draws = check_count("samples", samples, low=fewest_samples(problem)) // cost
    is_exact = problem.inner.n_samples is not None and problem.inner.n_samples <= samples
    meter = Metered(problem.inner, samples)
    metered = problem.with_inner(meter)
    with np.errstate(all="ignore"):
        pilot = run_pilot(metered, problem.start(w0), rng, size=max(3, min(200, n_draws // 20)))
        curved = _curvature_at(draw_sample(metered, min(1000, n_draws // 10), rng), w, rng)
        whitened = _whitening(problem, w, curved)
        if is_exact:
            estimate = Estimate(whitened(problem.gradient(w)), 0.0)
        else:
            size = meter.left // (_BLOCKS * cost)
            estimate = _jackknife(map(whitened, _pseudo_values(metered, w, size, rng)), delta)
        bound = _bound(problem, w, curved.smallest, estimate)
    return Certificate(
        bound=bound if math.isfinite(bound) else math.inf,
        delta=0.0 if is_exact else delta,
        route="all data" if is_exact else "fresh samples",
        samples=meter.samples,
        promise=_promise(problem, pilot, n_draws, delta),
        constants=_constants(problem, pilot.constants, curved.smallest),
    )


def fewest_samples(problem: Problem) -> int:
    """Return how many samples a certificate needs at least: two for each block."""
    return 4 * _BLOCKS * problem.inner.cost(1)


def _constants(problem: Problem, seen: Constants, curved: float) -> dict[str, Constant]:
    modulus = problem.strong_convexity
    declared = {"C_f": "lipschitz", "L_f": "smoothness"}
    found = {
        name: Constant(
            value, "given" if math.isfinite(_attribute(problem, declared.get(name, ""))) else "estimated"
        )
        for name, value in vars(seen).items()
        if name != "mu"
    }
    return {"mu": Constant(modulus + curved, "estimated" if curved > 0.0 else "given"), **found}


def _attribute(problem: Problem, name: str) -> float:
    return float(getattr(problem.outer, name, math.inf)) if name else math.inf


def _curvature_at(sample: Sample, w: Vector, rng: Generator) -> Curvature:
    """Return the curvature of f∘g at w on a sample; 0 where it is not found."""
    probe = 1e-4 * (length(w) or 1.0)

    def image(direction: Vector) -> Vector:
        size = length(direction)
        return sample.change(w, probe / size * direction) * (size / (2.0 * probe)) if size > 0.0 else direction

    if w.size <= _SMALL:
        hessian = np.stack([image(direction) for direction in np.eye(w.size)])
        if not np.isfinite(hessian).all():
            return Curvature(0.0, None)
        hessian = 0.5 * (hessian + hessian.T)
        return Curvature(max(0.0, float(np.linalg.eigvalsh(hessian)[0])), hessian)
    L = curvature(sample, w, probe, rng)
    shifted = LinearOperator((w.size, w.size), matvec=lambda v: L * v.ravel() - image(v.ravel()), dtype=float)
    try:
        largest = eigsh(shifted, k=1, which="LA", tol=1e-3, maxiter=50, v0=rng.standard_normal(w.size))[0][0]
    except ArpackError:
        return Curvature(0.0, None)
    return Curvature(max(0.0, L - float(largest) * (1.0 + 1e-3)), None)


def _whitening(problem: Problem, w: Vector, curved: Curvature) -> Callable[[Vector], Vector]:
    """Return what maps a gradient of f∘g to (H + αI)^−½ ∇F where r is (α/2)‖·‖²; for other r, to itself."""
    ridge = _ridge(problem, w)
    if ridge is None:
        return lambda gradient: gradient
    hessian = curved.smallest * np.eye(1) if curved.hessian is None else curved.hessian
    eigenvalues, vectors = np.linalg.eigh(hessian + np.diag(ridge[: len(hessian)]))
    root = vectors / np.sqrt(np.clip(eigenvalues, 0.0, None))  # infinite where there is no curvature
    if curved.hessian is None:
        return lambda gradient: (gradient + ridge * w) * root[0, 0]
    return lambda gradient: (gradient + ridge * w) @ root


def _ridge(problem: Problem, w: Vector) -> Vector | None:
    """Return the weights of w²/2 in r, coordinate by coordinate; None where r has other terms."""
    terms = terms_of(problem.regularizer, w.size)
    return None if terms is None or terms.l1.any() or terms.linear.any() else terms.l2


def _jackknife(values: Iterable[Vector], delta: float) -> Estimate:
    """Return the geometric median of some values, and how far it may be from the truth if they are near normal.

    A normal error of covariance S is longer than √trace S + √(2 λ_max(S) log(1/δ)) with probability δ at most. The
    trace is measured by the median distance, λ_max with distances cut off at twice that.
    """
    points = np.stack(list(values))
    center = GeometricMedianOfMeans(0.5).combine(points)
    far = np.linalg.norm(points - center, axis=1)
    typical = float(np.median(far))
    clipped = (points - center) * np.minimum(1.0, 2.0 * typical / np.maximum(far, 1e-300))[:, None]
    largest = float(np.linalg.eigvalsh(clipped @ clipped.T)[-1]) / len(points)
    spread = typical + math.sqrt(2.0 * largest * math.log(1.0 / delta))
    return Estimate(center, spread / math.sqrt(len(points)))


def _pseudo_values(problem: Problem, w: Vector, size: int, rng: Generator) -> Iterator[Vector]:
    """Yield n·(the gradient from all n blocks) − (n − 1)·(that without one block), for each block."""
    inner, n = problem.inner, _BLOCKS
    batches = [inner.draw(size, rng) for _ in range(n)]
    y = np.stack([inner.value(w, batch)[0] for batch in batches])
    total = _sum_of_vjps(problem, w, batches, problem.outer.gradient(y.mean(axis=0)))
    for k, batch in enumerate(batches):
        q = problem.outer.gradient(np.delete(y, k, axis=0).mean(axis=0))
        without = _sum_of_vjps(problem, w, batches, q) - inner.vjp(w, batch, q)
        yield total - without  # n·total/n − (n − 1)·without/(n − 1)


def _sum_of_vjps(problem: Problem, w: Vector, batches: list[Any], q: Vector) -> Vector:
    return np.asarray(sum(problem.inner.vjp(w, batch, q) for batch in batches))


def _bound(problem: Problem, w: Vector, smallest: float, estimate: Estimate) -> float:
    """Return the bound on the gap; infinite where nothing is known."""
    if _ridge(problem, w) is not None:
        return float(0.5 * (length(estimate.gradient) + estimate.radius) ** 2)
    if smallest <= 0.0:
        return math.inf
    if estimate.radius == 0.0:
        return _prox_gap(problem, w, estimate.gradient, smallest)
    shares = np.linspace(0.05, 0.95, 19) * smallest  # of the curvature that pay for the radius
    gaps = (estimate.radius**2 / (2 * k) + _prox_gap(problem, w, estimate.gradient, smallest - k) for k in shares)
    return float(min(gaps))


def _prox_gap(problem: Problem, w: Vector, gradient: Vector, modulus: float) -> float:
    """Return max over u of ⟨∇, w − u⟩ − (m/2)‖u − w‖² + r(w) − r(u)."""
    r = problem.regularizer
    u = r.prox(w - gradient / modulus, 1.0 / modulus)
    way = w - u
    return float(gradient @ way - 0.5 * modulus * (way @ way) + r.value(w) - r.value(u))


def _promise(problem: Problem, pilot: Pilot, n_draws: int, delta: float) -> Promise | None:
    """Return what Theorem 3, or its version with growing batches, says for so many draws."""
    lipschitz = float(getattr(problem.outer, "hessian_lipschitz", math.inf))
    constants, eps0 = pilot.constants, pilot.eps0
    if not (problem.has_linear_outer or math.isfinite(lipschitz)) or not eps0 > 0.0:
        return None

    def plan(eps: float) -> Plan[Any]:
        if problem.has_linear_outer:
            return theorem_3(constants, eps0=eps0, eps=eps, delta=delta)
        return growing_plan(constants, hessian_lipschitz=lipschitz, eps0=eps0, eps=eps, delta=delta)

    name = "Theorem 3" if problem.has_linear_outer else "Theorem 3 with growing batches"
    gap = math.inf
    for k in range(1, _MOST_HALVINGS):
        if plan(eps0 / 2.0**k).samples > n_draws:
            break
        gap = eps0 / 2.0**k
    return Promise(name, gap, float(plan(0.5 * eps0).samples * problem.inner.cost(1)))
