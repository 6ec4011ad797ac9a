"""An inner part that counts what is drawn and evaluated, and never draws beyond the budget."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, cast
from weakref import ref

from numpy.random import Generator

from stoic.guards import InnerGuard, is_foreign
from stoic.inners.designs import RowBatch
from stoic.protocols import AnyInner, Array, DrawsGroups, IntArray, Vector, draws_groups

_ENOUGH_KEPT = 64  # draws of size 1
_LARGEST_KEPT = 4096


class BudgetSpent(Exception):  # noqa: N818 - a signal between meter and driver, not a failure
    """A draw was asked for that the budget does not allow; nothing was drawn."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


class Drawn(NamedTuple):
    """A batch, the number of data points in it, the points w at which it was evaluated, and the size drawn.

    None as the size drawn stands for all data.
    """

    batch: Any
    size: int
    points: list[ref[Vector]]
    drawn: int | None = None


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
    start : ndarray of shape (d,), optional
        Where the solve starts; with it, what a part of the user's own returns is checked (see `InnerGuard`).
    """

    def __init__(self, inner: AnyInner, budget: int, start: Vector | None = None) -> None:
        self._inner = inner
        self._guard = InnerGuard(inner, start) if start is not None and is_foreign(inner) else None
        self.budget = budget
        self.samples = 0
        self.evaluations = 0
        self.kept: list[Drawn] = []
        self.is_keeping = False
        self.deadline = math.inf  # by `time.perf_counter`, for steps that take long

    @property
    def inner(self) -> AnyInner:
        """The part that is counted."""
        return self._inner

    def around(self, inner: AnyInner) -> "Metered":
        """Return a meter around another form of the same inner part, which goes on from these counts."""
        other = copy.copy(self)
        other._inner = inner  # noqa: SLF001 - of its own kind
        return other

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

    @property
    def draws_groups(self) -> bool:
        """Whether some groups can be drawn without the others."""
        return draws_groups(self._inner)

    def cost(self, size: int, groups: IntArray | None = None) -> int:
        """Return the number of data points that ``draw(size, rng, groups)`` uses."""
        if groups is None:
            return self._inner.cost(size)
        return cast("DrawsGroups[Any]", self._inner).cost(size, groups)

    def require(self, samples: int) -> None:
        """Raise `BudgetSpent` unless `samples` more samples may be drawn."""
        if samples > self.left:
            raise BudgetSpent(self.samples + samples)

    def charge(self, samples: int, evaluations: int) -> None:
        """Count what a kernel has drawn and evaluated by itself, within the budget."""
        self._spend(samples)
        self.evaluations += evaluations

    def _spend(self, samples: int) -> None:
        self.require(samples)
        self.samples += samples

    def draw(self, size: int, rng: Generator, groups: IntArray | None = None) -> Drawn:
        """Draw and count, or raise `BudgetSpent` before anything is drawn.

        A batch of some groups, where the inner part can draw them, is not kept: it does not show the objective.
        """
        if groups is not None:
            cost = self.cost(size, groups)
            self._spend(cost)
            return Drawn(cast("DrawsGroups[Any]", self._inner).draw(size, rng, groups), cost, [], size)
        cost = self._inner.cost(size)
        self._spend(cost)
        drawn = Drawn(self._inner.draw(size, rng), cost, [], size)
        if self.is_keeping:
            self.keep(drawn.batch, size)
        return drawn

    def keep(self, batch: Any, size: int) -> None:
        """Keep one of the first batches for a look back at the end, until there are enough of them."""
        if size <= _LARGEST_KEPT:
            batch = (
                RowBatch(batch.rows) if isinstance(batch, RowBatch) else batch
            )  # without the rows it will gather
            self.kept.append(Drawn(batch, self.cost(size), [], size))
        self.is_keeping = len(self.kept) < 2 or sum(one.drawn or 0 for one in self.kept) < _ENOUGH_KEPT

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Let a part of the user's own be infinite or NaN at points that are only tried out, for a while."""
        with nullcontext() if self._guard is None else self._guard.trying():
            yield

    def everything(self) -> Drawn:
        """Return the whole finite sum, counted as drawn."""
        n_samples = self._inner.n_samples or 0
        self._spend(n_samples)
        return Drawn(self._inner.everything(), n_samples, [])

    def count(self, w: Vector, drawn: Drawn) -> None:
        """Count the evaluation of a batch at w, once for each point."""
        points = drawn.points
        if points and points[-1]() is w:  # as in most steps
            return
        alive = [point for point in points if point() is not None]
        if not any(w is point() for point in alive):
            alive.append(ref(w))
            self.evaluations += drawn.size
        points[:] = alive

    def value(self, w: Vector, batch: Drawn, blocks: int = 1) -> Array:
        """Return the block means of g(w; ξ)."""
        self.count(w, batch)
        returned = self._inner.value(w, batch.batch, blocks)
        if self._guard is not None:  # all data are evaluated in line searches, which may leave the point again
            self._guard.check("value", returned, w, batch.batch, batch.drawn, is_trial=batch.drawn is None)
        return returned

    def jacobian(self, w: Vector, batch: Drawn, blocks: int = 1) -> Array:
        """Return the block means of ∇g(w; ξ)."""
        self.count(w, batch)
        returned = self._inner.jacobian(w, batch.batch, blocks)
        if self._guard is not None:
            self._guard.check("jacobian", returned, w, batch.batch, batch.drawn)
        return returned

    def vjp(self, w: Vector, batch: Drawn, q: Vector) -> Vector:
        """Return zᵀq."""
        self.count(w, batch)
        returned = self._inner.vjp(w, batch.batch, q)
        if self._guard is not None:
            self._guard.check("vjp", returned, w, batch.batch, batch.drawn, q=q)
        return returned

    def hessian(self, w: Vector, batch: Drawn, q: Vector) -> Array:
        """Return Σ q_i ∇²g_i(w), where the inner part offers it."""
        self.count(w, batch)
        return cast("Array", self._inner.hessian(w, batch.batch, q))  # type: ignore[attr-defined]

    def hessian_diagonal(self, w: Vector, batch: Drawn, q: Vector) -> Vector:
        """Return the diagonal of `hessian`, without forming it, where the inner part offers it."""
        self.count(w, batch)
        return cast("Vector", self._inner.hessian_diagonal(w, batch.batch, q))  # type: ignore[attr-defined]

    def steepness(self, w: Vector, batch: Drawn) -> Vector:
        """Return the size that a change of g is to be compared with, where the inner part offers it."""
        self.count(w, batch)
        return cast("Vector", self._inner.steepness(w, batch.batch))  # type: ignore[attr-defined]

    def hessian_product(self, w: Vector, batch: Drawn, q: Vector, v: Vector) -> Vector:
        """Return `hessian` times v, without forming it, where the inner part offers it."""
        self.count(w, batch)
        return cast("Vector", self._inner.hessian_product(w, batch.batch, q, v))  # type: ignore[attr-defined]
