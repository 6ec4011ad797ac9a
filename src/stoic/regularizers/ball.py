"""Proximal maps in a ball: line 7 of Algorithm 5, for any regularizer."""

import math

import numpy as np

from stoic.brackets import Bracket, is_wide, narrowed, next_point
from stoic.errors import InvalidParameter
from stoic.protocols import Regularizer, Vector


def prox_in_ball(regularizer: Regularizer, v: Vector, step: float, center: Vector, radius: float) -> Vector:
    r"""Minimize :math:`r(w) + \|w - v\|^2 / (2\,\mathrm{step})` over the ball ‖w − center‖ ≤ radius.

    `center` must lie in dom r; an infinite radius gives the prox. The result is in the ball up to rounding
    and within 1e-12 radius (and the spacing of floats) of the minimizer. Where v is not finite it may not be.

    Notes
    -----
    With the multiplier ν of the ball and θ = 1/(1 + step ν), the minimizer is w(θ), the prox of r with step
    θ step at center + θ(v − center): θ = 1 if that is inside, else the root of ‖w(θ) − center‖ = radius. The
    distance grows with θ, and ‖w(θ) − w(θ')‖ ≤ |1 − θ/θ'| ‖w(θ') − center‖: a tight bracket of θ is a tight
    bound on w. Where r is isotropic the answer is the projection of w(1); for L1, elastic net, box it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic.regularizers.ball import prox_in_ball
    >>> from stoic.regularizers import L1
    >>> prox_in_ball(L1(1.0), np.array([5.0, 0.5]), 1.0, center=np.zeros(2), radius=2.0).round(9)
    array([2., 0.])
    """
    if not (radius > 0.0 and step > 0.0):
        raise InvalidParameter(f"radius={radius!r} and step={step!r} must be above 0.")
    best = regularizer.prox(v, step)
    excess = _norm(best - center) - radius
    if not 0.0 < excess < math.inf:
        return best
    if getattr(regularizer, "is_isotropic", False):
        return center + (best - center) * (radius / (radius + excess))
    best, direction, bracket = center.copy(), v - center, Bracket(0.0, 1.0, -radius, excess, 0.0)
    while is_wide(bracket):
        theta = next_point(bracket)
        w = regularizer.prox(center + theta * direction, theta * step)  # Alg. 5, l. 7
        excess = _norm(w - center) - radius
        bracket = narrowed(bracket, theta, excess)
        if excess <= 0.0:
            best = w
    return best


@np.errstate(over="ignore")
def _norm(x: Vector) -> float:
    norm = math.sqrt(x.dot(x))
    return norm if norm < math.inf else math.hypot(*x)  # the square may overflow where the norm does not
