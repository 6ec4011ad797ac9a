"""An estimate of F(w) − F* from the curvature around w: good near the optimum, and never a bound."""

import math

import numpy as np

from stoic.pilot.fixed_sample import Sample, length
from stoic.protocols import Vector
from stoic.regularizers import terms_of

MOST_VARIABLES = 256


def local_estimate(sample: Sample, w: Vector, gradient: Vector) -> float:
    """Return half of ∇Fᵀ H⁻¹ ∇F, H being the Hessian of F on a sample, for a measured gradient of f∘g.

    The noise of the gradient counts, so that it is rather too large than too small. NaN where r is not smooth, or
    H not positive definite.
    """
    terms = terms_of(sample.problem.regularizer, w.size)
    if terms is None or terms.l1.any():
        return math.nan
    probe = 1e-4 * (length(w) or 1.0)
    hessian = np.stack([sample.change(w, probe * one) / (2.0 * probe) for one in np.eye(w.size)])
    hessian = 0.5 * (hessian + hessian.T) + np.diag(terms.l2)
    slope = gradient + terms.l2 * w + terms.linear
    if not (np.isfinite(hessian).all() and np.isfinite(slope).all()):
        return math.nan
    eigenvalues, vectors = np.linalg.eigh(hessian)
    if not eigenvalues[0] > 1e-9 * eigenvalues[-1]:
        return math.nan
    return 0.5 * float(np.square(slope @ vectors) @ (1.0 / eigenvalues))
