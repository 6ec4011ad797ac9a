"""Certificates from fresh samples: for streams, and for data that are too many to go through."""

import math

import numpy as np
from numpy.random import Generator

from stoic.certificate.certificate import Certificate
from stoic.certificate.confidence import VARIANCE_CLAUSE, n_blocks
from stoic.certificate.gaps import least_gap
from stoic.certificate.linear_models import unknown_convexity
from stoic.certificate.local import MOST_VARIABLES, local_estimate
from stoic.certificate.tangents import Tangent, is_entropic, measured_tangent
from stoic.checks import check_count, check_positive, check_probability
from stoic.errors import InvalidParameter
from stoic.pilot.fixed_sample import draw_sample
from stoic.problem import Problem
from stoic.protocols import Vector

_PROBE_SHARE, _MOST_PROBED = 10, 1000  # a tenth of the draws, but no more than these, for the local estimate
_DRAWS, _DRAWS_ENTROPIC = 9, 13  # for each block, so that eight are left for it after probe and reference


def fresh_certificate(
    problem: Problem, w: Vector, *, delta: float, samples: int, modulus: float | None, rng: Generator
) -> Certificate:
    r"""Bound F(w) − F* with probability 1 − δ from samples that w does not depend on.

    Parameters
    ----------
    problem : Problem
        Over a stream, or over data, from which samples are drawn with replacement.
    w : array of shape (d,)
    delta : float
        The probability with which the bound may fail.
    samples : int
        Data points that may be drawn, at least `samples_needed`.
    modulus : float or None
        A number μ such that F is strongly convex with the modulus μ, where one is known.
    rng : Generator

    Returns
    -------
    Certificate
        Its `bound` is infinite, with `advice`, where F is not known to be strongly convex and its domain not known
        to be bounded, and where samples are not finite.

    Raises
    ------
    InvalidParameter
        If there are too few samples for δ.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100_000, 2))
    >>> y = X @ [1.0, 2.0] + rng.standard_t(5, 100_000)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, np.arange(100_000) % 3), stoic.LogSumExp(10.0))
    >>> seen = fresh_certificate(problem, np.array([1.0, 2.1]), delta=0.05, samples=60_000, modulus=None, rng=rng)
    >>> 0.01 < seen.bound < 0.1  # the gap is 0.01 or so
    True
    >>> seen.assumptions
    ('the samples show at least half of the variance there is, and at most 49 times as much',)
    """
    w, delta, k = problem.check_point("w", w), check_probability("delta", delta), n_blocks(delta)
    modulus = None if modulus is None else check_positive("modulus", modulus)
    cost, needed = problem.inner.cost(1), samples_needed(problem, delta)
    if check_count("samples", samples) < needed:
        raise InvalidParameter(
            f"samples={samples} are too few for delta={delta:g}, which needs {k} blocks and {needed} samples; "
            f"use samples >= {needed} or a larger delta."
        )
    n_probed = min(_MOST_PROBED, samples // cost // _PROBE_SHARE) if w.size <= MOST_VARIABLES else 0
    with np.errstate(all="ignore"):
        probe = draw_sample(problem, n_probed, rng) if n_probed else None
        seen = measured_tangent(problem, w, draws=samples // cost - n_probed, blocks=k, delta=delta, rng=rng)
        gap = least_gap(problem, w, seen, modulus)
        estimate = math.nan if probe is None else local_estimate(probe, w, seen.slope.mean)
    given = (f"F is strongly convex with modulus {modulus:g}",) if gap.uses_modulus else ()
    return Certificate(
        bound=gap.bound,
        delta=delta,
        estimate=estimate,
        assumptions=(*_convexity(problem), *given, *_sampling(problem)),
        route="fresh samples",
        samples=cost * (n_probed + seen.draws),
        advice="" if gap.bound < math.inf else _advice(problem, w, seen),
    )


def samples_needed(problem: Problem, delta: float) -> int:
    """Return the fewest samples that δ needs: blocks of eight draws, their number growing with log(1/δ).

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> problem = stoic.Problem(stoic.GroupLoss(np.eye(4), np.ones(4), [0, 0, 1, 1]), stoic.LogSumExp(1.0))
    >>> samples_needed(problem, 0.05), samples_needed(problem, 1e-6)
    (1664, 5772)
    """
    draws = _DRAWS_ENTROPIC if is_entropic(problem) else _DRAWS
    return problem.inner.cost(draws * n_blocks(check_probability("delta", delta)))


def _convexity(problem: Problem) -> tuple[str, ...]:
    """Return the assumptions under which the tangent lies below F; none where the parts make it so."""
    unknown = unknown_convexity(problem)
    if unknown and is_entropic(problem):
        return ("each g_i is convex",)
    return (unknown,) if unknown else ()


def _sampling(problem: Problem) -> tuple[str, ...]:
    if is_entropic(problem) or problem.has_linear_outer:
        return (VARIANCE_CLAUSE,)
    return VARIANCE_CLAUSE, "f is close to a quadratic over the noise of g"


def _advice(problem: Problem, w: Vector, seen: Tangent) -> str:
    """Return advice on how to get a finite bound."""
    if not math.isfinite(problem.regularizer.value(w)):
        return f"w is outside the domain of {problem.regularizer}; project it first, by regularizer.prox(w, 1.0)."
    if not seen.is_finite:
        return "samples of g or ∇g at w are not finite, or too large to be squared; look at the data, or at w."
    more = "more samples, " if seen.curvature is not None else ""
    alone = "the intercept has no penalty; " if problem.inner.n_unpenalized else ""
    return (
        f"F is not known to be strongly convex; {alone}{more}a penalty such as L2 on all variables, a bounded "
        f"domain (Box, Simplex), or a known modulus, certify(…, modulus=…), would help."
    )
