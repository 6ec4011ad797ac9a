"""A state's w and average as the vectors that kernels work on, and back."""

import copy
from typing import Any, ClassVar

import numpy as np

from stoic.engines.translation import read_only
from stoic.kernels import scaled, thresholded
from stoic.kernels.scaled import Scaled, current, total
from stoic.kernels.thresholded import N_LINES, Thresholded, current_thresholded, measure, total_thresholded
from stoic.protocols import Vector


class Form:
    """What both forms share: the intercept is apart, and sums start where the form does."""

    form: Any
    current: ClassVar[Any]
    total: ClassVar[Any]
    places: ClassVar[Any]

    def __init__(self, state: Any, *, has_tail: bool) -> None:
        self.before, self.first = state.average, state.t
        self.has_tail, self.size = has_tail, len(state.w) - has_tail

    def clone(self) -> "Form":
        """Return a copy that goes its own way."""
        other = copy.copy(self)
        other.form = type(self.form)(*(part.copy() if part.flags.writeable else part for part in self.form))
        return other

    def w(self) -> Vector:
        """Return the value now."""
        return self._read(type(self).current, self.form.scalars[self.places.TAIL])

    def average(self, t: int) -> Vector:
        """Return the average of all values up to step t."""
        gained = self._read(type(self).total, self.form.scalars[self.places.SUM_TAIL])
        gained += self.first * self.before
        gained /= max(1, t)
        return gained

    def _read(self, write: Any, tail: float) -> Vector:
        out = np.empty(self.size + self.has_tail)
        write(self.form, out[: self.size])
        if self.has_tail:
            out[-1] = tail
        return out


class ScaledForm(Form):
    """w = a·u + b·c, for Zero and L2, anchored at c with a weight or not; without a center c = 0 and b = 0."""

    current: ClassVar[Any] = current
    total: ClassVar[Any] = total
    places: ClassVar[Any] = scaled

    def __init__(self, state: Any, center: Vector | None, *, has_tail: bool, weight: float = 0.0) -> None:
        super().__init__(state, has_tail=has_tail)
        size = self.size
        c = np.zeros(size) if center is None else center[:size]
        u = state.w[:size].copy() if center is None else state.w[:size] - c
        scalars = np.zeros(scaled.N_SCALARS)
        scalars[:5] = 1.0, 0.0 if center is None else 1.0, u @ u, u @ c, c @ c
        scalars[scaled.WEIGHT] = weight
        if has_tail:
            scalars[scaled.TAIL] = state.w[-1]
            scalars[scaled.TAIL_C] = 0.0 if center is None else center[-1]
        self.form = Scaled(u, read_only(c), np.zeros(size), np.zeros(size), scalars)


class ThresholdedForm(Form):
    """Potentials under a common threshold, for L1 and elastic net."""

    current: ClassVar[Any] = current_thresholded
    total: ClassVar[Any] = total_thresholded
    places: ClassVar[Any] = thresholded

    def __init__(self, state: Any, center: Vector, *, has_tail: bool) -> None:
        super().__init__(state, has_tail=has_tail)
        size = self.size
        table, scalars = np.zeros((N_LINES, 4)), np.zeros(thresholded.N_SCALARS)
        table[0, thresholded.P] = 1.0
        scalars[thresholded.NORM_C] = np.linalg.norm(center[:size])
        if has_tail:
            scalars[thresholded.TAIL], scalars[thresholded.TAIL_C] = state.w[-1], center[-1]
        vectors = state.w[:size].copy(), read_only(center[:size]), np.zeros(size), np.zeros(size)
        self.form = Thresholded(*vectors, table, scalars)
        measure(self.form)
