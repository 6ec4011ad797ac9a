"""Entries of ∇f(y) where only some groups are asked for, at the cost of what has changed in y."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stoic.codes import LINEAR, LOGSUMEXP, OuterCode
from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.parts.outers import outer_gradient, scaled_below
from stoic.engines.kernels.rows import Ints

Floats = NDArray[np.float64]

# Places in `scalars`: the entry that exponents are less, the sum of the terms, its peak since, and whether the
# terms are of use.
TOP, TOTAL, PEAK, HOLDS = range(4)
N_SCALARS = 4

_FAR = 30.0  # beyond it an exponent above `top` makes the terms anew
_LEAST = 1e-2  # of its peak: below, the running sum has lost digits


class Terms(NamedTuple):
    """π_i exp(((y_i − b_i)/s_i − top)/τ) of log-sum-exp by group, and ∇f(y) where it is computed as a whole."""

    each: Floats
    scalars: Floats
    whole: Floats


@kernel
def begin_terms(outer: OuterCode, y: Floats, terms: Terms) -> None:
    """Compute all terms anew."""
    s = terms.scalars
    s[HOLDS] = 0.0
    if outer.kind != LOGSUMEXP:
        return
    top, total = -np.inf, 0.0
    for i in range(y.size):
        value = (y[i] - outer.baseline[i]) / outer.scale[i]
        if outer.weights[i] > 0.0 and not value <= top:
            top = value
    s[TOP] = top
    for i in range(y.size):
        terms.each[i] = _term(outer, y, i, top)
        total += terms.each[i]
    s[TOTAL], s[PEAK] = total, total
    s[HOLDS] = 1.0 if 0.0 < total < np.inf else 0.0


@inlined
def _term(outer: OuterCode, y: Floats, i: int, top: float) -> float:
    if outer.weights[i] == 0.0:
        return 0.0
    value = (y[i] - outer.baseline[i]) / outer.scale[i]
    return outer.weights[i] * np.exp(scaled_below(value, top, outer.temperature))


@inlined
def note_change(outer: OuterCode, y: Floats, i: int, terms: Terms) -> None:
    """Take note that y_i has changed."""
    s = terms.scalars
    if s[HOLDS] == 0.0:
        return
    value = (y[i] - outer.baseline[i]) / outer.scale[i]
    if outer.weights[i] > 0.0 and not value - s[TOP] <= _FAR * outer.temperature:
        s[HOLDS] = 0.0
        return
    term = _term(outer, y, i, s[TOP])
    s[TOTAL] += term - terms.each[i]
    s[PEAK] = max(s[PEAK], s[TOTAL])
    terms.each[i] = term


@kernel
def some_weights(outer: OuterCode, y: Floats, groups: Ints, terms: Terms, q: Floats) -> None:
    """Write the entries of ∇f(y) of some groups into q."""
    s = terms.scalars
    if outer.kind == LOGSUMEXP and (s[HOLDS] == 0.0 or not s[TOTAL] >= _LEAST * s[PEAK]):
        begin_terms(outer, y, terms)
    if outer.kind == LINEAR:
        for j in range(groups.size):
            q[j] = outer.weights[groups[j]]
    elif s[HOLDS] != 0.0:
        for j in range(groups.size):
            q[j] = terms.each[groups[j]] / (s[TOTAL] * outer.scale[groups[j]])
    else:
        outer_gradient(outer, y, terms.whole)
        for j in range(groups.size):
            q[j] = terms.whole[groups[j]]
