"""An inner part that counts what is drawn and evaluated, and never draws beyond the budget."""

from typing import Any, NamedTuple, cast
from weakref import ref

from numpy.random import Generator

from stoic.protocols import AnyInner, Array, Vector


class BudgetSpent(Exception):  # noqa: N818 - a signal between meter and driver, not a failure
    """A draw was asked for that the budget does not allow; nothing was drawn."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


class Drawn(NamedTuple):
    """A batch, the number of data points in it, and the points w at which it has been evaluated."""

    batch: Any
    size: int
    points: list[ref[Vector]]


class Metered:
    """Count samples and evaluations of an inner part, the one home of both counts.

    A data point costs one sample when it is drawn, and one evaluation for each point w at which g or ∇g
    (or both) is evaluated on it.

    Parameters
    ----------
    inner : Inner
        The part to count.
    budget : int
        Samples that may be drawn in all; a draw beyond raises `BudgetSpent` and draws nothing.
    """

    def __init__(self, inner: AnyInner, budget: int) -> None:
        self._inner = inner
        self.budget = budget
        self.samples = 0
        self.evaluations = 0

    @property
    def inner(self) -> AnyInner:
        """The part that is counted."""
        return self._inner

    @property
    def shape(self) -> tuple[int, int]:
        """(p, d)."""
        return self._inner.shape

    @property
    def n_samples(self) -> int | None:
        """Number of data points of a finite sum; None for a stream."""
        return self._inner.n_samples

    @property
    def n_unpenalized(self) -> int:
        """Number of last coordinates that regularizers leave alone."""
        return self._inner.n_unpenalized

    @property
    def left(self) -> int:
        """Samples that may still be drawn."""
        return self.budget - self.samples

    def cost(self, size: int) -> int:
        """Return the number of data points that ``draw(size)`` uses."""
        return self._inner.cost(size)

    def require(self, samples: int) -> None:
        """Raise `BudgetSpent` unless so many samples may still be drawn."""
        if samples > self.left:
            raise BudgetSpent(self.samples + samples)

    def charge(self, samples: int, evaluations: int) -> None:
        """Count what a kernel has drawn and evaluated by itself, within the budget."""
        self._spend(samples)
        self.evaluations += evaluations

    def _spend(self, samples: int) -> None:
        self.require(samples)
        self.samples += samples

    def draw(self, size: int, rng: Generator) -> Drawn:
        """Draw and count, or raise `BudgetSpent` before anything is drawn."""
        self._spend(self.cost(size))
        return Drawn(self._inner.draw(size, rng), self.cost(size), [])

    def everything(self) -> Drawn:
        """Return the whole finite sum, counted as drawn."""
        n_samples = self._inner.n_samples or 0
        self._spend(n_samples)
        return Drawn(self._inner.everything(), n_samples, [])

    def _count(self, w: Vector, drawn: Drawn) -> None:
        alive = [point for point in drawn.points if point() is not None]
        if not any(w is point() for point in alive):
            alive.append(ref(w))
            self.evaluations += drawn.size
        drawn.points[:] = alive

    def value(self, w: Vector, batch: Drawn, blocks: int = 1) -> Array:
        """Return the block means of g(w; ξ)."""
        self._count(w, batch)
        return self._inner.value(w, batch.batch, blocks)

    def jacobian(self, w: Vector, batch: Drawn, blocks: int = 1) -> Array:
        """Return the block means of ∇g(w; ξ)."""
        self._count(w, batch)
        return self._inner.jacobian(w, batch.batch, blocks)

    def vjp(self, w: Vector, batch: Drawn, q: Vector) -> Vector:
        """Return zᵀq."""
        self._count(w, batch)
        return self._inner.vjp(w, batch.batch, q)

    def hessian(self, w: Vector, batch: Drawn, q: Vector) -> Array:
        """Return Σ q_i ∇²g_i(w), where the inner part offers it."""
        self._count(w, batch)
        return cast("Array", self._inner.hessian(w, batch.batch, q))  # type: ignore[attr-defined]

    def hessian_diagonal(self, w: Vector, batch: Drawn, q: Vector) -> Vector:
        """Return its diagonal, without forming it."""
        self._count(w, batch)
        return cast("Vector", self._inner.hessian_diagonal(w, batch.batch, q))  # type: ignore[attr-defined]

    def steepness(self, w: Vector, batch: Drawn) -> Vector:
        """Return the size that a change of g is to be compared with, where the inner part offers it."""
        self._count(w, batch)
        return cast("Vector", self._inner.steepness(w, batch.batch))  # type: ignore[attr-defined]

    def hessian_product(self, w: Vector, batch: Drawn, q: Vector, v: Vector) -> Vector:
        """Return that times v, without forming it."""
        self._count(w, batch)
        return cast("Vector", self._inner.hessian_product(w, batch.batch, q, v))  # type: ignore[attr-defined]
