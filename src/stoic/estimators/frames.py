"""The coordinates in which a model is trained: columns and targets on one scale, and the way back."""

from dataclasses import dataclass

import numpy as np

from stoic.errors import InvalidProblem
from stoic.estimators.scaling import Scaling
from stoic.protocols import Array, Vector

_FARTHEST = 1e100  # units: farther targets would overflow; where losses are lines, all beyond are alike
_LARGEST_SQUARED = 1e70  # units: squares of squares stay finite


@dataclass(frozen=True)
class TargetScale:
    """Targets y as (y − location) / unit, and the power of the unit that a loss has."""

    location: float = 0.0
    unit: float = 1.0
    power: int = 0

    def apply(self, y: Vector) -> Vector:
        """Return the targets on their scale, at most 10¹⁰⁰ units from their location."""
        with np.errstate(over="ignore"):
            scaled = (y - self.location) / self.unit
        return np.clip(scaled, -_FARTHEST, _FARTHEST)

    def check_squares(self, y: Vector) -> None:
        """Raise `InvalidProblem` if a target is so far away that square loss cannot be computed with."""
        row = int(np.argmax(np.abs(self.apply(y))))
        if abs(self.apply(y[row : row + 1])[0]) > _LARGEST_SQUARED:
            raise InvalidProblem(
                f"y[{row}] = {y[row]:g} is too large for square loss, beside targets that spread by "
                f"{self.unit:g}; correct or remove it, or use loss='huber'."
            )

    @property
    def loss_unit(self) -> float:
        """The unit of the loss."""
        return float(self.unit**self.power)


@dataclass(frozen=True)
class Frame:
    """The scales of columns and targets, and whether there is an intercept.

    A model with K outputs has coefficients of shape (K, d) and K intercepts. Its variable w is a matrix with a row
    for each column and, where there is an intercept, one more; row by row.
    """

    scaling: Scaling
    target: TargetScale
    intercept: bool

    def model(self, w: Vector) -> tuple[Array, Vector]:
        """Return coefficients and intercepts for columns and targets as they are."""
        d = len(self.scaling.scale)
        W = w.reshape(d + self.intercept, -1) * self.target.unit
        coef, intercept = self.scaling.back(W[:d], W[d:].sum(axis=0) + self.target.location)
        return coef.T, intercept

    def variable(self, coef: Array, intercept: Vector) -> Vector:
        """Return the variable of a model for columns and targets as they are."""
        unit, location = self.target.unit, self.target.location
        W, b = self.scaling.forward(np.asarray(coef, dtype=float).T / unit, (intercept - location) / unit)
        return np.vstack([W, b[None]] if self.intercept else [W]).ravel()
