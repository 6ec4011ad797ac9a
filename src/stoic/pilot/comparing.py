"""The comparison of two points on draws that neither was fitted to."""

import math

import numpy as np
from scipy.special import stdtrit

from stoic.pilot.fixed_sample import Sample
from stoic.protocols import Vector

_FEWEST = 3  # draws
_ROUNDING = 1e-9  # of F: differences that mean nothing
_HUGE = 1e300


def rise(sample: Sample, w: Vector, v: Vector, false_alarm: float) -> float:
    r"""Return F(v) − F(w) on a sample where its draws leave no doubt that it is positive, else 0.

    With u and ũ the means of g over the draws ξ_k at w and v, draw k tells

    .. math:: D_k = F(v) - F(w) + \langle \nabla f(\tilde u), g(v; \xi_k) - \tilde u \rangle
              - \langle \nabla f(u), g(w; \xi_k) - u \rangle ,

    whose mean is F(v) − F(w). Student's test is applied to arsinh(D_k/s), s being the range of the second
    products: to D_k as they are where differences have an ordinary size, and to their logarithms where the draws
    agree that v is far worse, but not by how much. A wild draw adds to the spread what it adds to the mean: it
    does not decide.
    """
    found, spread, least = _differences(sample, w, v)
    n = len(found)
    if n < _FEWEST or not found.mean() > least:
        return 0.0
    told = np.arcsinh(found / spread) if spread > 0.0 else np.sign(found)
    doubt = float(stdtrit(n - 1, 1.0 - false_alarm)) * float(told.std(ddof=1)) / math.sqrt(n)
    return float(found.mean()) if told.mean() > doubt else 0.0


def _differences(sample: Sample, w: Vector, v: Vector) -> tuple[Vector, float, float]:
    """Return D_k of the draws that are finite at w, the range of their terms at w, and what rounding may be."""
    outer, regularizer = sample.problem.outer, sample.problem.regularizer
    with np.errstate(all="ignore"):
        before, after = sample.values(w, sample.size), sample.values(v, sample.size)
        usable = np.isfinite(before).all(axis=1)
        before, after = before[usable], after[usable]
        is_lost = ~np.isfinite(after).all(axis=1)
        if is_lost.all():
            return np.full(len(after), _HUGE), 1.0, 0.0
        u, u_after = before[~is_lost].mean(axis=0), after[~is_lost].mean(axis=0)
        here, there = outer.value(u) + regularizer.value(w), outer.value(u_after) + regularizer.value(v)
        terms = (before - u) @ outer.gradient(u)
        found = there - here + (after - u_after) @ outer.gradient(u_after) - terms
        found = np.where(is_lost | np.isnan(found), _HUGE, np.clip(found, -_HUGE, _HUGE))
        spread = float(np.nan_to_num(np.ptp(terms), nan=_HUGE, posinf=_HUGE))
    return found, spread, _ROUNDING * max(abs(here), abs(there))
