"""`certify`: a certificate for any answer, by duality over all data or by fresh samples."""

import hashlib
import math

import numpy as np
from numpy.random import Generator

from stoic.certificate.certificate import Certificate
from stoic.certificate.duality import duality_gap, has_conjugate, modulus_gap
from stoic.certificate.fresh import fresh_certificate, samples_needed
from stoic.certificate.improving import improving
from stoic.certificate.linear_models import unknown_convexity
from stoic.checks import check_count, check_positive, check_probability
from stoic.problem import Problem
from stoic.protocols import Vector

_TIGHT, _TINY = 0.1, 1e-13  # of the lead over w, and of F(w): a gap at the better point that needs no improvement


def certify(
    problem: Problem,
    w: Vector,
    *,
    delta: float = 0.05,
    samples: int = 100_000,
    modulus: float | None = None,
    seed: int | Generator | None = None,
) -> Certificate:
    r"""Bound F(w) − F* for any w, whatever method found it.

    **Over data.** Where the data are finite and no more than `samples`, the bound is a duality gap over all of
    them: it rests on convexity alone, and nothing is left to chance. A few steps of Newton's method from w, or of
    proximal gradients, give a better point w′, and

    .. math:: F(w) - F^* \le F(w) - F(w') + \mathrm{gap}(w') .

    **By fresh samples.** Otherwise the gradient is estimated robustly from fresh samples, and the bound holds with
    probability 1 − δ; it needs a modulus of strong convexity or a bounded domain.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d,)
        The answer.
    delta : float, default 0.05
        The probability with which a bound by fresh samples may fail.
    samples : int
        Data points that may be read or drawn.
    modulus : float, optional
        A modulus of strong convexity of F that is known; by default that of the regularizer.
    seed : int or Generator, optional
        Of fresh samples.

    Returns
    -------
    Certificate

    Raises
    ------
    InvalidParameter
        If `samples` is too small for δ; the message says how many are needed.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.5, 3000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(3000) % 3, loss="huber"), stoic.LogSumExp(10.0))
    >>> result = stoic.minimize(problem, budget=60_000, seed=0)
    >>> certificate = stoic.certify(problem, result.w)
    >>> certificate.bound < 0.02, certificate.delta, certificate.assumptions
    (True, 0.0, ())
    """
    w, delta = problem.check_point("w", w), check_probability("delta", delta)
    samples = check_count("samples", samples)
    modulus = None if modulus is None else check_positive("modulus", modulus)
    n_samples = problem.inner.n_samples
    if n_samples is not None and n_samples <= samples:
        return _by_duality(problem, w, modulus)
    rng = np.random.default_rng(seed)
    return fresh_certificate(problem, w, delta=delta, samples=samples, modulus=modulus, rng=rng)


def certify_answer(problem: Problem, w: Vector, delta: float, samples: int) -> Certificate:
    """Return the certificate of an answer from `samples` samples, or as many as δ needs; w itself is the seed."""
    seed = int.from_bytes(hashlib.sha256(w.tobytes()).digest()[:8], "big")
    return certify(problem, w, delta=delta, samples=max(samples, samples_needed(problem, delta)), seed=seed)


def _by_duality(problem: Problem, w: Vector, modulus: float | None) -> Certificate:
    value = problem.objective(w)
    bound, lead = math.inf, 0.0
    for better in improving(problem, w):
        ahead = value - problem.objective(better)
        gap = duality_gap(problem, better)
        if modulus is not None:
            gap = min(gap, modulus_gap(problem, better, modulus))
        bound, lead = min(bound, ahead + gap), max(lead, ahead)
        if gap <= max(_TIGHT * ahead, _TINY * abs(value)):
            break
    bound = max(bound, 0.0) if math.isfinite(bound) else math.inf
    return Certificate(
        bound=bound,
        delta=0.0,
        estimate=lead,
        assumptions=_assumptions(problem, modulus) if math.isfinite(bound) else (),
        route="duality",
        samples=problem.inner.n_samples or 0,
        advice="" if math.isfinite(bound) else _advice(value),
    )


def _assumptions(problem: Problem, modulus: float | None) -> tuple[str, ...]:
    """Return the assumptions that the parts do not declare themselves."""
    found = [unknown_convexity(problem)]
    if not has_conjugate(problem.regularizer):
        found.append("r is convex, with the modulus that it declares")
    if modulus is not None:
        found.append(f"F is strongly convex with modulus {modulus:g}")
    return tuple(filter(None, found))


def _advice(value: float) -> str:
    """Return advice on how to get a finite bound."""
    if not math.isfinite(value):
        return f"F(w) is {value}, not a finite number; scale the data, or choose another w."
    return (
        "convexity alone gives no bound here. A penalty with a square in it (L2, ElasticNet), a bounded domain "
        "(Simplex, Box) or a modulus of strong convexity that you know (certify(..., modulus=...)) would help."
    )
