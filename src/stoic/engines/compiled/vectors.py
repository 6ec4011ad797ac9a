"""A state's w and average as the vectors that kernels work on, and back."""

from typing import Any

import numpy as np

from stoic.engines.compiled.problem import Translated
from stoic.engines.kernels.rows import CSR, Standardized, read_only
from stoic.engines.kernels.vectors import explicit, scaled, thresholded
from stoic.engines.kernels.vectors.any import current, intercept, total
from stoic.engines.kernels.vectors.explicit import Explicit
from stoic.engines.kernels.vectors.scaled import Held, Scaled
from stoic.engines.kernels.vectors.thresholded import N_BUCKETS, N_LINES, Thresholded, measure
from stoic.protocols import Array, Vector

_SUM_TAIL = {Scaled: scaled.SUM_TAIL, Thresholded: thresholded.SUM_TAIL, Explicit: explicit.SUM_TAIL}
MOST_HELD, ENTRIES_PER_PRODUCT = 12, 8


class Form:
    """A vector in the form that suits a problem, and the average that it starts from.

    Parameters
    ----------
    problem : Translated
    state : any state with w, average and t
    center : ndarray, optional
        That of the ball, and of the distances; by default the anchor of the problem.
    Z : ndarray of shape (d, p), optional
        To be held, so that steps along it cost p; where the form or its cost does not allow that, it is not.
    """

    def __init__(
        self, problem: Translated, state: Any, center: Vector | None = None, Z: Array | None = None
    ) -> None:
        self.problem, self.has_tail = problem, problem.data.has_tail
        self.before, self.first, self.size = state.average, state.t, len(state.w) - self.has_tail
        anchor = problem.anchor.center
        center = anchor if center is None else center
        is_elsewhere = anchor is not None and center is not None and not np.array_equal(center, anchor)
        make: Any = _thresholded if problem.penalty.l1 > 0.0 or is_elsewhere else _scaled
        if problem.by_column is not None or (make is _thresholded and isinstance(problem.data.X, Standardized)):
            make = _explicit
        self.vector: Scaled | Thresholded | Explicit = make(problem, self.size, state.w, center, anchor, Z)

    @property
    def packs(self) -> bool:
        """Whether a step along Z is one along each of its rows that is not zero: Z is not held."""
        return not (isinstance(self.vector, Scaled) and self.vector.held.beta.size > 0)

    def w(self) -> Vector:
        """Return the value now."""
        out = np.empty(self.size + self.has_tail)
        current(self.vector, out[: self.size])
        if self.has_tail:
            out[-1] = intercept(self.vector)
        return out

    def average(self, t: int) -> Vector:
        """Return the average of all values up to step t."""
        out = np.empty(self.size + self.has_tail)
        total(self.problem.data.X, self.vector, out[: self.size])
        if self.has_tail:
            out[-1] = self.vector.scalars[_SUM_TAIL[type(self.vector)]]
        out /= max(1, t)
        if self.first > 0:
            out += (self.first / t) * self.before
        return out


def _scaled(
    problem: Translated, size: int, w: Vector, center: Vector | None, _anchor: Vector | None, Z: Array | None
) -> Scaled:
    n, has_tail = problem.inner.n_samples, problem.data.has_tail
    c = np.zeros(size) if center is None else center[:size]
    u = w[:size].copy() if center is None else w[:size] - c
    scalars = np.zeros(scaled.N_SCALARS)
    scalars[:5] = 1.0, 0.0 if center is None else 1.0, u @ u, u @ c, c @ c
    scalars[scaled.WEIGHT] = problem.anchor.weight
    if has_tail:
        scalars[scaled.TAIL] = w[-1]
        scalars[scaled.TAIL_C] = 0.0 if center is None else center[-1]
    along_c = np.full(n if scalars[scaled.CC] > 0.0 else 0, np.nan)
    held = _held(Z, n, problem.inner.X)
    return Scaled(u, read_only(c), np.zeros(size), np.zeros(n), along_c, scalars, held)


def _held(Z: Array | None, n: int, X: Any) -> Held:
    """Return Z to be held where the p products of a row, to be kept, are few beside its entries."""
    length = X.shape[1] if isinstance(X, np.ndarray) else X.nnz / n
    if Z is None or Z.shape[1] > min(MOST_HELD, length / ENTRIES_PER_PRODUCT):
        Z, n = np.zeros((0, 0)), 0
    p = Z.shape[1]
    beta, past, along_u, along_c = np.zeros((4, p))
    return Held(read_only(Z), beta, past, along_u, along_c, np.zeros((p, p)), np.full((n, p), np.nan))


def _thresholded(
    problem: Translated, size: int, w: Vector, center: Vector | None, anchor: Vector | None, _Z: Array | None
) -> Thresholded:
    has_tail, weight = problem.data.has_tail, problem.anchor.weight
    c = np.zeros(size) if center is None else center[:size]
    table, scalars = np.zeros((N_LINES + 1, 4)), np.zeros(thresholded.N_SCALARS)
    table[0, thresholded.P] = 1.0
    scalars[thresholded.NORM_C], scalars[thresholded.WEIGHT] = np.linalg.norm(c), weight
    scalars[thresholded.SIZE] = np.abs(w[:size]).max(initial=0.0)
    if has_tail:
        scalars[thresholded.TAIL] = w[-1]
        scalars[thresholded.TAIL_C] = 0.0 if center is None else center[-1]
        scalars[thresholded.TAIL_ANCHOR] = 0.0 if anchor is None else anchor[-1]
    form = Thresholded(
        v=w[:size].copy(),
        c=read_only(c),
        anchor=read_only(c if anchor is None else anchor[:size]),
        past=np.zeros(size),
        shares=np.zeros(problem.inner.n_samples),
        table=table,
        lines=np.full(N_BUCKETS, N_LINES, dtype=np.uint16),
        later=np.empty(_longest_row(problem), dtype=np.uint32),
        scalars=scalars,
    )
    measure(form)
    return form


def _explicit(
    problem: Translated, size: int, w: Vector, center: Vector | None, anchor: Vector | None, _Z: Array | None
) -> Explicit:
    c = np.zeros(size) if center is None else center[:size]
    l1, l2 = problem.by_column or (np.full(size, problem.penalty.l1), np.full(size, problem.penalty.l2))
    scalars = np.zeros(explicit.N_SCALARS)
    scalars[explicit.SIZE] = np.abs(w[:size]).max(initial=0.0)
    scalars[explicit.WEIGHT] = problem.anchor.weight
    if problem.data.has_tail:
        scalars[explicit.TAIL] = w[-1]
        scalars[explicit.TAIL_C] = 0.0 if center is None else center[-1]
        scalars[explicit.TAIL_ANCHOR] = 0.0 if anchor is None else anchor[-1]
    tail = scalars[explicit.TAIL] - scalars[explicit.TAIL_C]
    scalars[explicit.FAR] = np.hypot(np.linalg.norm(w[:size] - c), tail)
    pulled_to = c if anchor is None else anchor[:size]
    weights, none = (read_only(l1), read_only(l2)), np.zeros(0)
    return Explicit(w[:size].copy(), read_only(c), read_only(pulled_to), np.zeros(size), *weights, none, scalars)


def _longest_row(problem: Translated) -> int:
    """Return how many entries a row has at most, and one more: a place is written before it is needed."""
    X = problem.data.X
    return 1 + int(np.diff(X.indptr).max() if isinstance(X, CSR) else X.values.shape[1])
