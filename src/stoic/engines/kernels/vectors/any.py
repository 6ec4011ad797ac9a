"""Vectors of any form: the functions that kernels call, each the one of the form that it is given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.engines.kernels.dispatch import Body, by_types
from stoic.engines.kernels.jit import kernel
from stoic.engines.kernels.rows import push
from stoic.engines.kernels.vectors import ball, explicit, scaled, thresholded
from stoic.engines.kernels.vectors.explicit import Explicit
from stoic.engines.kernels.vectors.scaled import Scaled

Floats = NDArray[np.float64]


def by_form(of_scaled: Body, of_thresholded: Body, of_explicit: Body, place: int = 0) -> Body:
    """Return a function of a vector w, the argument at a place: one body for each form of w."""
    return by_types(place, {Scaled: of_scaled, Explicit: of_explicit}, of_thresholded)


product = by_form(scaled.scaled_product, thresholded.thresholded_product, explicit.explicit_product, place=1)
"""Return x·w for one row x, without the intercept: product(X, w, row)."""

add = by_form(scaled.add_scaled, thresholded.add_thresholded, explicit.add_explicit, place=1)
"""Add factor·x to w: add(X, w, row, factor, following=-1). The row that follows, if any, is fetched."""

add_columns = by_form(
    scaled.add_scaled_reference, thresholded.add_thresholded_columns, explicit.add_explicit_columns
)
"""Add factor·Zq to w, Z held or given by columns that are not zero: add_columns(w, columns, packed, q, factor)."""

product_with_reference = by_form(
    scaled.scaled_reference_product, scaled.kept_product, scaled.kept_product, place=1
)
"""Return x·z for a row and a column z of Z, computed once: product_with_reference(X, w, Z, row, group, along)."""

intercept = by_form(scaled.scaled_intercept, thresholded.thresholded_intercept, explicit.explicit_intercept)
"""Return the intercept, 0 where there is none: intercept(w)."""

reserve = by_form(scaled.reserve_scaled, thresholded.reserve_thresholded, explicit.reserve_explicit)
"""Make room for a move of each coordinate by an amount: reserve(w, amount).

False where a coordinate could get too large for squares, and for NaN; then w is as it was.
"""

needs_refresh = by_form(scaled.needs_flush, thresholded.needs_rebase, explicit.never_stale)
"""Return whether the form has to be made anew before a step: needs_refresh(w, step, l1)."""

refresh = by_form(scaled.flush, thresholded.rebase, explicit.keep_explicit)
"""Make the form anew, in a pass over all coordinates: refresh(w)."""

settle = by_form(scaled.settle_scaled, ball.settle_thresholded, explicit.settle_explicit)
"""Finish a step: w is w − step·v, but for the intercept; take the prox of l1‖·‖₁ + (l2/2)‖·‖² in the ball.

settle(w, step, l1, l2, tail_ahead, radius, has_tail)
"""

exceeds = by_form(scaled.exceeds_distance, thresholded.exceeds_bracket, explicit.exceeds_explicit)
"""Return whether far > growth·‖w − c‖ + slack, or far is not finite: exceeds(w, far, growth, slack)."""

note_move = by_form(scaled.note_scaled_move, thresholded.note_thresholded_move, explicit.note_explicit_move)
"""Take note that the step moves w by at most a length: note_move(w, length)."""

current = by_form(scaled.current_scaled, thresholded.current_thresholded, explicit.current_explicit)
"""Write w into out, without the intercept: current(w, out)."""

total_less_shares = by_form(scaled.total_scaled, thresholded.total_thresholded, explicit.total_explicit)
"""Write the sum of all values into out, without intercept and shares of rows: total_less_shares(w, out)."""


def total(X: Any, w: Any, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept."""
    total_less_shares(w, out)
    subtract_shares(X, w.shares, out)


@kernel
def subtract_shares(X: Any, shares: Floats, out: Floats) -> None:
    """Subtract Σ shares_r·x_r."""
    for row in range(shares.size):
        if shares[row] != 0.0:
            push(X, row, -shares[row], out)
