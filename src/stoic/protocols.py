"""The protocols of the parts of a problem: `Outer` f, `Inner` g and `Regularizer` r of (1)."""

from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vector = NDArray[np.float64]
IntArray = NDArray[np.intp]

Batch = TypeVar("Batch")


class Outer(Protocol):
    r"""The outer function :math:`f : \mathbb R^p \to \mathbb R`.

    Optional attributes are read where a part has them: ``lipschitz`` (C_f), ``smoothness`` (L_f; 0 declares that
    f is linear) and ``is_convex``, which a certificate otherwise names as an assumption.
    """

    def value(self, u: Vector) -> float:
        """Return f(u)."""
        ...

    def gradient(self, u: Vector) -> Vector:
        """Return ∇f(u)."""
        ...


class Regularizer(Protocol):
    r"""The convex function :math:`r`; infinite outside its domain.

    Two optional attributes are read where a part has them: ``strong_convexity``, the modulus of r, and
    ``is_isotropic``, whether r is a multiple of a squared distance (its prox in a ball is then a projection). Two
    optional methods are what a certificate by duality needs, r* being the convex conjugate of r:
    ``conjugate_gap(w, v)`` is :math:`r(w) + r^*(-v) + \langle v, w \rangle \ge 0` for w in the domain, and
    ``feasible(v)`` is the vector nearest to v at which :math:`r^*(-v)` is finite.
    """

    def value(self, w: Vector) -> float:
        """Return r(w)."""
        ...

    def prox(self, v: Vector, step: float) -> Vector:
        """Return the minimizer of r(w) + ‖w − v‖² / (2 step)."""
        ...


class Inner(Protocol[Batch]):
    r"""The inner function :math:`g(w) = \mathrm E_\xi[g(w; \xi)]`, drawn apart from being evaluated.

    Evaluation gives the means over `blocks` consecutive parts of a batch (sizes differ by at most one):
    a robust mean needs no more, and per-sample Jacobians do not fit in memory.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """(p, d)."""
        ...

    @property
    def n_samples(self) -> int | None:
        """Number of data points of a finite sum; None for a stream."""
        ...

    @property
    def n_unpenalized(self) -> int:
        """Number of last coordinates of w that regularizers leave alone (an intercept)."""
        ...

    def draw(self, size: int, rng: Generator) -> Batch:
        """Draw `size` samples (for grouped data, of each group)."""
        ...

    def everything(self) -> Batch:
        """Return the whole finite sum as one batch."""
        ...

    def cost(self, size: int) -> int:
        """Return the number of data points that ``draw(size)`` uses."""
        ...

    def value(self, w: Vector, batch: Batch, blocks: int = 1) -> Array:
        """Return the block means of g(w; ξ), of shape (blocks, p)."""
        ...

    def jacobian(self, w: Vector, batch: Batch, blocks: int = 1) -> Array:
        """Return the block means of ∇g(w; ξ), of shape (blocks, p, d)."""
        ...

    def vjp(self, w: Vector, batch: Batch, q: Vector) -> Vector:
        """Return zᵀq for the mean Jacobian z of the batch, without forming z."""
        ...


class DrawsGroups(Inner[Batch], Protocol[Batch]):
    """An inner part whose outputs have samples of their own, so that some of them can be drawn without the others.

    The capability is optional: a part has it if it says ``draws_groups = True``. A batch of k groups is evaluated
    as any other, but stands for those outputs alone, in the order in which they were asked for: values have the
    shape (blocks, k), Jacobians (blocks, k, d), and q has k entries. A group may be asked for twice; its samples
    are then drawn twice.
    """

    draws_groups: ClassVar[bool] = True

    def draw(self, size: int, rng: Generator, groups: IntArray | None = None) -> Batch:
        """Draw `size` samples of each of some groups, given by their numbers; of each group by default."""
        ...

    def cost(self, size: int, groups: IntArray | None = None) -> int:
        """Return the number of data points that ``draw(size, rng, groups)`` uses."""
        ...


AnyInner = Inner[Any]


def draws_groups(inner: AnyInner) -> bool:
    """Whether an inner part can draw some of its outputs without the others (see `DrawsGroups`)."""
    return bool(getattr(inner, "draws_groups", False))
