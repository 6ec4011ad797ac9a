"""What a kernel asks of a vector, whichever form it has: the function of the form is chosen when compiled."""

from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from stoic.engines.kernels.jit import inlined, kernel
from stoic.engines.kernels.rows import dot, push
from stoic.engines.kernels.vectors import scaled, thresholded
from stoic.engines.kernels.vectors.ball import settle_thresholded
from stoic.engines.kernels.vectors.scaled import (
    Scaled,
    add_scaled,
    add_scaled_columns,
    current_scaled,
    flush,
    hold,
    know_held,
    needs_flush,
    scaled_product,
    settle_scaled,
    squared_distance,
    total_scaled,
)
from stoic.engines.kernels.vectors.thresholded import (
    Thresholded,
    add_thresholded,
    add_thresholded_columns,
    current_thresholded,
    measure,
    needs_rebase,
    rebase,
    thresholded_product,
    total_thresholded,
)

Floats = NDArray[np.float64]

INLINED: Any = {"forceinline": True}
TOO_LARGE = 1e140  # for a coordinate: beyond, squares may overflow, and the plain engine takes the step


def product(X: Any, w: Any, row: int) -> float:
    """Return x·w for one row x, without the intercept."""
    return scaled_product(X, w, row) if isinstance(w, Scaled) else thresholded_product(X, w, row)


@overload(product, strict=False, jit_options=INLINED)
def _product(X: Any, w: Any, row: int) -> Any:
    if w.instance_class is Scaled:
        return lambda X, w, row: scaled_product(X, w, row)
    return lambda X, w, row: thresholded_product(X, w, row)


def add(X: Any, w: Any, row: int, factor: float, following: int = -1) -> None:
    """Add factor·x to w; the row that follows, if any, is fetched into the cache."""
    (add_scaled if isinstance(w, Scaled) else add_thresholded)(X, w, row, factor, following)


@overload(add, strict=False, jit_options=INLINED)
def _add(X: Any, w: Any, row: int, factor: float, following: int = -1) -> Any:
    if w.instance_class is Scaled:
        return lambda X, w, row, factor, following=-1: add_scaled(X, w, row, factor, following)
    return lambda X, w, row, factor, following=-1: add_thresholded(X, w, row, factor, following)


def add_columns(w: Any, columns: Any, packed: Floats, q: Floats, factor: float) -> None:
    """Add factor·Zq to w, Z given by its columns that are not zero, or held by the form."""
    if not isinstance(w, Scaled):
        add_thresholded_columns(w, columns, packed, q, factor)
    elif w.held.beta.size > 0:
        hold(w, q, factor)
    else:
        add_scaled_columns(w, columns, packed, q, factor)


@overload(add_columns, strict=False, jit_options=INLINED)
def _add_columns(w: Any, columns: Any, packed: Floats, q: Floats, factor: float) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(w: Any, columns: Any, packed: Floats, q: Floats, factor: float) -> None:
            if w.held.beta.size > 0:
                hold(w, q, factor)
            else:
                add_scaled_columns(w, columns, packed, q, factor)

        return of_scaled
    return lambda w, columns, packed, q, factor: add_thresholded_columns(w, columns, packed, q, factor)


def product_with_reference(X: Any, w: Any, Z: Floats, row: int, group: int, along: Floats) -> float:
    """Return x·z for a row and one column z of Z, computed on first use; `along` or the form keeps it."""
    if isinstance(w, Scaled) and w.held.beta.size > 0:
        know_held(X, w, row)
        return float(w.held.along_rows[row, group])
    return float(kept_product(X, Z, row, group, along))


@overload(product_with_reference, strict=False, jit_options=INLINED)
def _product_with_reference(X: Any, w: Any, Z: Floats, row: int, group: int, along: Floats) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(X: Any, w: Any, Z: Floats, row: int, group: int, along: Floats) -> float:
            if w.held.beta.size > 0:
                know_held(X, w, row)
                return w.held.along_rows[row, group]
            return kept_product(X, Z, row, group, along)

        return of_scaled
    return lambda X, w, Z, row, group, along: kept_product(X, Z, row, group, along)


@inlined
def kept_product(X: Any, Z: Floats, row: int, group: int, along: Floats) -> float:
    """Return x·z for a row and one column z of Z, computed on first use."""
    if np.isnan(along[row]):
        along[row] = dot(X, row, Z[:, group])
    return along[row]


def intercept(w: Any) -> float:
    """Return the intercept, 0 where there is none."""
    return float(w.scalars[scaled.TAIL if isinstance(w, Scaled) else thresholded.TAIL])


@overload(intercept, strict=False, jit_options=INLINED)
def _intercept(w: Any) -> Any:
    place = scaled.TAIL if w.instance_class is Scaled else thresholded.TAIL
    return lambda w: w.scalars[place]


def is_calm(w: Any, amount: float) -> bool:
    """Whether no coordinate gets too large when each may move by an amount; false for NaN."""
    s = w.scalars
    if isinstance(w, Scaled):
        return bool(amount / s[scaled.A] < TOO_LARGE and s[scaled.UU] < TOO_LARGE * TOO_LARGE)
    s[thresholded.SIZE] += amount / w.table[int(s[thresholded.NOW]), thresholded.P]
    return bool(s[thresholded.SIZE] < TOO_LARGE)


@overload(is_calm, strict=False, jit_options=INLINED)
def _is_calm(w: Any, amount: float) -> Any:
    if w.instance_class is Scaled:
        a, uu, limit = scaled.A, scaled.UU, TOO_LARGE
        return lambda w, amount: amount / w.scalars[a] < limit and w.scalars[uu] < limit * limit

    def of_thresholded(w: Any, amount: float) -> bool:
        w.scalars[thresholded.SIZE] += amount / thresholded.line_now(w).p
        return bool(w.scalars[thresholded.SIZE] < TOO_LARGE)

    return of_thresholded


def needs_refresh(w: Any, step: float, l1: float) -> bool:
    """Whether the form has to be made anew before a step."""
    return needs_flush(w) if isinstance(w, Scaled) else needs_rebase(w, step, l1)


@overload(needs_refresh, strict=False, jit_options=INLINED)
def _needs_refresh(w: Any, step: float, l1: float) -> Any:
    if w.instance_class is Scaled:
        return lambda w, step, l1: needs_flush(w)
    return lambda w, step, l1: needs_rebase(w, step, l1)


def refresh(w: Any) -> None:
    """Make the form anew; a pass over all coordinates."""
    (flush if isinstance(w, Scaled) else rebase)(w)


@overload(refresh, strict=False, jit_options=INLINED)
def _refresh(w: Any) -> Any:
    if w.instance_class is Scaled:
        return lambda w: flush(w)
    return lambda w: rebase(w)


def settle(w: Any, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool) -> None:
    """Finish a step: w is w − step·v but for the intercept; take the prox of l1‖·‖₁ + (l2/2)‖·‖² in the ball."""
    if isinstance(w, Scaled):
        settle_scaled(w, step, l2, tail_ahead, radius, has_tail)
    else:
        settle_thresholded(w, step, l1, l2, tail_ahead if has_tail else 0.0, radius)


@overload(settle, strict=False, jit_options=INLINED)
def _settle(w: Any, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(
            w: Any, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool
        ) -> None:
            settle_scaled(w, step, l2, tail_ahead, radius, has_tail)

        return of_scaled

    def of_thresholded(
        w: Any, step: float, l1: float, l2: float, tail_ahead: float, radius: float, has_tail: bool
    ) -> None:
        settle_thresholded(w, step, l1, l2, tail_ahead if has_tail else 0.0, radius)

    return of_thresholded


def exceeds(w: Any, far: float, growth: float, slack: float) -> bool:
    """Whether far > growth·‖w − c‖ + slack, or far is not finite."""
    if isinstance(w, Scaled):
        return bool(not far <= growth * np.sqrt(squared_distance(w)) + slack or not far < np.inf)
    return bool(exceeds_bracket(w, far, growth, slack))


@overload(exceeds, strict=False, jit_options=INLINED)
def _exceeds(w: Any, far: float, growth: float, slack: float) -> Any:
    if w.instance_class is Scaled:

        def of_scaled(w: Any, far: float, growth: float, slack: float) -> bool:
            return not far <= growth * np.sqrt(squared_distance(w)) + slack or not far < np.inf

        return of_scaled
    return lambda w, far, growth, slack: exceeds_bracket(w, far, growth, slack)


@inlined
def exceeds_bracket(w: Thresholded, far: float, growth: float, slack: float) -> bool:
    """Return what `exceeds` does; only where the bracket cannot tell, the distance is measured."""
    s = w.scalars
    if not far < np.inf:
        return True
    if far <= growth * s[thresholded.LOW] + slack:
        return False
    if far > growth * s[thresholded.HIGH] + slack:
        return True
    return far > growth * measure(w) + slack


def note_move(w: Any, length: float) -> None:
    """Take note that the step moves w by at most a length."""
    if not isinstance(w, Scaled):
        w.scalars[thresholded.MOVED] += length


@overload(note_move, strict=False, jit_options=INLINED)
def _note_move(w: Any, length: float) -> Any:
    if w.instance_class is Scaled:
        return lambda w, length: None

    def of_thresholded(w: Any, length: float) -> None:
        w.scalars[thresholded.MOVED] += length

    return of_thresholded


def current(w: Any, out: Floats) -> None:
    """Write w into out, without the intercept."""
    (current_scaled if isinstance(w, Scaled) else current_thresholded)(w, out)


def total(X: Any, w: Any, out: Floats) -> None:
    """Write the sum of all values into out, without the intercept."""
    (total_scaled if isinstance(w, Scaled) else total_thresholded)(w, out)
    subtract_shares(X, w.shares, out)


@kernel
def subtract_shares(X: Any, shares: Floats, out: Floats) -> None:
    """Subtract Σ shares_r·x_r."""
    for row in range(shares.size):
        if shares[row] != 0.0:
            push(X, row, -shares[row], out)
