"""Losses of all rows at given predictions, and their derivatives: made by threads where there are many rows."""

from typing import Any, NamedTuple

import numpy as np

from stoic.inners.groups import GroupedRows
from stoic.inners.threads import added, filled
from stoic.losses import Loss
from stoic.protocols import Vector


class RowTerms(NamedTuple):
    """A loss, the targets of all rows, and the rows' groups and shares in the groups' means."""

    loss: Loss
    y: Vector
    rows: GroupedRows

    def means(self, t: Vector) -> Vector:
        """Return the mean loss of each group at predictions t, of shape (p,)."""
        return added(len(t), lambda part: self.rows.means(self.loss.value(t[part], self.y[part]), part))

    def slopes(self, t: Vector) -> Vector:
        """Return ℓ′ times the rows' shares."""
        return filled(len(t), lambda part: self.rows.weighed(self.loss.derivative(t[part], self.y[part]), part))

    def curvatures(self, t: Vector, blend: float) -> Vector:
        """Return ℓ″ times the rows' shares, or a blend with the curvature of parabolas above the losses."""
        loss: Any = self.loss

        def of(part: slice) -> Vector:
            second = loss.second_derivative(t[part], self.y[part])
            if blend > 0.0 and hasattr(loss, "bound_curvature"):
                second = second + blend * (loss.bound_curvature(t[part], self.y[part]) - second)
            return self.rows.weighed(second, part)

        return filled(len(t), of)

    def steepness(self, t: Vector) -> Vector:
        """Return the mean of ℓ′²/(2·curvature) in each group, of shape (p,)."""

        def of(part: slice) -> Vector:
            slopes = self.loss.derivative(t[part], self.y[part])
            return self.rows.means(np.square(slopes) / (2.0 * self.loss.curvature), part)

        return added(len(t), of)
