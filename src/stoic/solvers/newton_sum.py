"""F over all data of a problem, or over some of its rows or coordinates."""

import math
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from stoic.guards import is_foreign
from stoic.inners.blocks import IntArray
from stoic.inners.designs import RowBatch
from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.metered import Metered
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.regularizers import Terms, Zero, terms_of
from stoic.solvers.newton_point import Point, RowsPoint
from stoic.solvers.newton_rows import Sampling

MOST_DENSE = 1000  # variables up to which the Hessian is formed
LARGE = 1 << 18  # stored numbers: a pass over more takes long
_STARTS = 1 << 20  # stored numbers from which on fewer rows come first, and second derivatives are those of some
_PER_VARIABLE, _FEWEST_ROWS = (8, 64, 256), 25  # rows for each variable on each level, of 25 variables at least
_PER_GROUP = 4  # rows of a level that tell a group's mean, at least
_LEAST_GAIN = 4  # times fewer rows than all, for a level to pay
_MOST_JACOBIAN = 1 << 20  # numbers of the Jacobian of g
_DENSE_ENTRY, _SPARSE_ENTRY = 25.0, 40.0  # products of two entries in the time of an entry of X @ v and Xᵀc
_THIN = 200.0  # such products in the time of one of a sparse Gram matrix
_DEAR, _SHORT = (
    8.0,
    1.0,
)  # products with all rows, in whose time a Hessian takes too long of all rows, and short of few


@dataclass(frozen=True)
class Sum:
    """F over all data of a problem, or over some rows and coordinates of a linear model.

    Attributes
    ----------
    problem : Problem
        Its inner part counts what is evaluated where it is `Metered`.
    data : object
        All data, as the inner part gives them.
    terms : Terms
        Of the regularizer.
    constant : float
        What the regularizer has beside its terms.
    deadline : float
        When to stop, by `time.perf_counter`.
    """

    problem: Problem
    data: Any
    terms: Terms
    deadline: float = math.inf
    most_dense: ClassVar[int] = MOST_DENSE

    @cached_property
    def rows(self) -> Any:
        """The rows of a linear model of the library; None where the inner part is another."""
        inner = getattr(self.problem.inner, "inner", self.problem.inner)
        is_own = type(inner) in {GroupLoss, GroupSoftmax} and not is_foreign(inner)
        return inner if is_own else None

    @cached_property
    def is_linear(self) -> bool:
        """Whether f has no curvature."""
        return isinstance(self.problem.outer, Linear)

    @cached_property
    def n(self) -> int:
        """The number of data points."""
        return int(self.problem.inner.n_samples or 0)

    @cached_property
    def has_l1(self) -> bool:
        """Whether there is an L1 term."""
        return bool(self.terms.l1.any())

    @cached_property
    def codes(self) -> IntArray:
        """The groups of the rows."""
        return cast("IntArray", getattr(self.rows, "one", self.rows).grouped_rows.codes)

    @cached_property
    def has_z(self) -> bool:
        """Whether the Jacobian of g is wanted anyhow, and the slopes are made of it."""
        p, d = self.problem.inner.shape
        is_small = d <= MOST_DENSE and p * d <= _MOST_JACOBIAN
        return type(self.rows) is GroupLoss and not self.is_linear and is_small and not self.takes_few

    @cached_property
    def entries(self) -> float:
        """The stored numbers of the rows."""
        return float(self.stored.size if isinstance(self.stored, np.ndarray) else self.stored.nnz)

    @property
    def stored(self) -> Any:
        """X as it is in memory."""
        design = getattr(self.rows, "one", self.rows)._design  # noqa: SLF001 - its size
        return getattr(design, "plain", design).X

    @property
    def products_of_a_matrix(self) -> float:
        """How many products with ∇²F take the time of forming it."""
        d, per_row = len(self.terms.l2), self.entries / max(1, self.n)
        if isinstance(self.stored, np.ndarray):
            return d / _DENSE_ENTRY
        return min(d * d, _THIN * per_row * per_row) / (_SPARSE_ENTRY * max(1.0, per_row))

    @cached_property
    def is_large(self) -> bool:
        """Whether a pass over the rows takes so long that fewer rows and threads pay."""
        return self.rows is not None and self.entries > LARGE

    @cached_property
    def levels(self) -> list[int]:
        """How many rows are to be solved before all, from level to level."""
        if not isinstance(self.rows, GroupLoss) or not self.is_large:
            return []
        d, n, fewest = len(self.terms.l2), self.n, _PER_GROUP * self.rows.n_groups
        if d > MOST_DENSE or self.entries <= _STARTS:
            return []
        sizes = [max(k * d, k * _FEWEST_ROWS, fewest) for k in _PER_VARIABLE]
        sizes = [k for k in sizes if k * self.products_of_a_matrix <= _SHORT * n]
        return [k for k in sorted(set(sizes)) if fewest <= k <= n // _LEAST_GAIN]

    @cached_property
    def takes_few(self) -> bool:
        """Whether second derivatives are those of some rows: enough of them, and yet few."""
        d = len(self.terms.l2)
        if not self.levels:
            return False
        return self.levels[-1] >= _PER_VARIABLE[-1] * d or self.products_of_a_matrix > _DEAR

    @cached_property
    def lengths(self) -> Vector:
        """The lengths of the columns, 1 where one is empty."""
        squares = self.rows.gram_diagonal(self.rows.grouped_rows.shares, roughly=True)
        return np.asarray(np.sqrt(np.where(squares > 0.0, squares, 1.0)))

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() > self.deadline

    def count(self) -> None:
        """Count an evaluation of all rows."""
        meter = self.problem.inner
        if isinstance(meter, Metered):
            meter.charge(0, self.n)

    def penalty(self, w: Vector) -> float:
        """Return the regularizer, but for a constant where coordinates were left out."""
        return self.problem.regularizer.value(w)

    def at(self, w: Vector) -> "Point":
        """Return the point w."""
        if self.rows is None:
            return Point(self, w)
        return RowsPoint(self, w, self.rows.predict(w, self.data))

    def of_rows(self, rows: IntArray, weight: Vector | None = None) -> "Few":
        """Return F over some rows, each group with at least one that counts; by weights of their own, if given."""
        inner = self.rows.taken(rows)
        inner = inner if weight is None else inner.with_weight(weight)
        return Few(self.problem.with_inner(inner), RowBatch(None), self.terms, self.deadline)

    @cached_property
    def sampling(self) -> Sampling:
        """How rows are chosen that stand for all."""
        return Sampling(self.rows)

    def of_size(self, size: int) -> "Few":
        """Return F over about as many rows, which stand for all."""
        return self.of_rows(*self.sampling.rows(size))

    def of_columns(self, columns: IntArray) -> "Sum":
        """Return F as a function of some coordinates, the others being zero."""
        terms = Terms(*(one[columns] for one in self.terms))
        problem = replace(self.problem.with_inner(self.rows.with_columns(columns)), regularizer=Zero())
        return Part(problem, RowBatch(None), terms, self.deadline)


class Few(Sum):
    """F over some rows."""

    @property
    def levels(self) -> list[int]:
        """None: they are one."""
        return []


class Part(Few):
    """F as a function of some coordinates."""

    most_dense = MOST_DENSE

    def penalty(self, w: Vector) -> float:
        """Return Σ l1·|w| + l2·w²/2 + linear·w."""
        l1, l2, linear = self.terms
        return float(l1 @ np.abs(w) + 0.5 * (l2 @ np.square(w)) + linear @ w)


def sum_of(problem: Problem, data: Any) -> Sum:
    """Return F over all data."""
    terms = cast("Terms", terms_of(problem.regularizer, problem.dimension))
    sum_ = Sum(problem, data, terms, float(getattr(problem.inner, "deadline", math.inf)))
    return sum_ if sum_.rows is None else replace(sum_, data=RowBatch(None))  # the meter is told by `count`
