"""An inner part in other variables: v, where w = s·v."""

from typing import Any
from weakref import ref

from numpy.random import Generator

from stoic.protocols import AnyInner, Array, Vector


class InMetric:
    """Any inner part as a function of v = w/s; what is drawn stays the same.

    Parameters
    ----------
    inner : Inner
    scale : ndarray of shape (d,)
        s.
    """

    def __init__(self, inner: AnyInner, scale: Vector) -> None:
        self.inner, self.scale = inner, scale
        self._last: tuple[ref[Vector], Vector] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(p, d)."""
        return self.inner.shape

    @property
    def n_samples(self) -> int | None:
        """Number of data points of a finite sum; None for a stream."""
        return self.inner.n_samples

    @property
    def n_unpenalized(self) -> int:
        """Number of last coordinates that regularizers leave alone."""
        return self.inner.n_unpenalized

    def draw(self, size: int, rng: Generator) -> Any:
        """Draw `size` samples."""
        return self.inner.draw(size, rng)

    def everything(self) -> Any:
        """Return the whole finite sum as one batch."""
        return self.inner.everything()

    def cost(self, size: int) -> int:
        """Return the number of data points that ``draw(size)`` uses."""
        return self.inner.cost(size)

    def value(self, v: Vector, batch: Any, blocks: int = 1) -> Array:
        """Return the block means of g(s·v; ξ)."""
        return self.inner.value(self._w(v), batch, blocks)

    def jacobian(self, v: Vector, batch: Any, blocks: int = 1) -> Array:
        """Return the block means of the derivatives in v."""
        return self.inner.jacobian(self._w(v), batch, blocks) * self.scale

    def vjp(self, v: Vector, batch: Any, q: Vector) -> Vector:
        """Return zᵀq in v."""
        return self.inner.vjp(self._w(v), batch, q) * self.scale

    def _w(self, v: Vector) -> Vector:
        """Return s·v, the same array for the same v, so that evaluations at one point count once."""
        if self._last is None or self._last[0]() is not v:
            self._last = ref(v), self.scale * v
        return self._last[1]
