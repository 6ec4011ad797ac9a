"""Arguments u of outer functions: checks, baselines, and exponentials that cannot overflow."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stoic.checks import refuse_masks
from stoic.errors import InvalidParameter
from stoic.protocols import Vector


@np.errstate(over="ignore", invalid="ignore")
def scaled(u: Vector, top: float, temperature: float) -> Vector:
    """Return (u − top) / temperature for a `top` that bounds u; the limit 0 where both are infinite."""
    x = u - top
    if math.isinf(top):
        x[u == top] = 0.0
    x /= temperature
    return x


def log_mean_exp(x: Vector, weights: Vector | None) -> float:
    """Return log Σ weights_i exp(x_i) for max x = 0 and weights that sum to one (default: uniform)."""

    def mean(terms: Vector) -> float:  # no product of BLAS, which would share a long one among threads
        return float(np.add.reduce(terms) / x.size if weights is None else np.add.reduce(weights * terms))

    shifted = mean(np.expm1(x))  # keeps all digits where τ is so large that exp(x) rounds to 1
    return math.log1p(shifted) if shifted > -0.5 else math.log(mean(np.exp(x)))


def keep_baseline(outer: Any) -> None:
    """Check the baseline of a new outer function, and keep it as a tuple for equality and an array for use."""
    if outer.baseline is not None:
        b = finite_vector("baseline", outer.baseline)
        object.__setattr__(outer, "_b", b)
        object.__setattr__(outer, "baseline", tuple(b.tolist()))


def baseline_of(given: Vector | None, p: int) -> Vector:
    """Return a baseline of p entries, zeros where none was given."""
    return np.zeros(p) if given is None else given.copy()


@np.errstate(over="ignore")
def less_baseline(baseline: Vector | None, u: Vector) -> Vector:
    """Return u − b."""
    if baseline is None:
        return u
    check_entries("baseline", baseline, u)
    return np.asarray(u - baseline)


def finite_vector(name: str, values: ArrayLike) -> Vector:
    """Return values as a vector; raise `InvalidParameter` unless it is nonempty and finite."""
    refuse_masks(**{name: values})
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.array(np.nan)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise InvalidParameter(f"{name}={values!r} is not a nonempty list of finite numbers.")
    return vector


def check_entries(name: str, expected: Vector, u: Vector) -> None:
    """Raise `InvalidParameter` unless u has as many entries as a parameter."""
    if len(u) != expected.size:
        raise InvalidParameter(f"{name} has {expected.size} entries for {len(u)} values; give one for each.")
