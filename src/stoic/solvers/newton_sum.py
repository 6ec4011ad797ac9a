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

MOST_DENSE = 1000  # variables up to which the Hessian is formed
_MOST_JACOBIAN = 1 << 20  # numbers of the Jacobian of g
_DENSE_ENTRY, _SPARSE_ENTRY = 45.0, 250.0  # products of two entries in the time of an entry of X @ v


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
        return type(self.rows) is GroupLoss and not self.is_linear and d <= MOST_DENSE and p * d <= _MOST_JACOBIAN

    @cached_property
    def entries(self) -> float:
        """The stored numbers of the rows."""
        return float(self._stored.size if isinstance(self._stored, np.ndarray) else self._stored.nnz)

    @property
    def _stored(self) -> Any:
        design = getattr(self.rows, "one", self.rows)._design  # noqa: SLF001 - its size
        return getattr(design, "plain", design).X

    @property
    def products_of_a_matrix(self) -> float:
        """How many products with ∇²F take the time of forming it."""
        d, is_sparse = len(self.terms.l2), not isinstance(self._stored, np.ndarray)
        per_row = self.entries / max(1, self.n)
        return d * d / (_SPARSE_ENTRY * per_row if is_sparse else _DENSE_ENTRY * d)

    @cached_property
    def lengths(self) -> Vector:
        """The lengths of the columns, 1 where one is empty."""
        squares = self.rows.gram_diagonal(self.rows.grouped_rows.shares)
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

    def of_rows(self, rows: IntArray) -> "Sum":
        """Return F over some rows, each group with at least one that counts."""
        return Sum(self.problem.with_inner(self.rows.taken(rows)), RowBatch(None), self.terms, self.deadline)

    def of_columns(self, columns: IntArray) -> "Sum":
        """Return F as a function of some coordinates, the others being zero."""
        terms = Terms(*(one[columns] for one in self.terms))
        problem = replace(self.problem.with_inner(self.rows.with_columns(columns)), regularizer=Zero())
        return Part(problem, RowBatch(None), terms, self.deadline)


class Part(Sum):
    """F as a function of some coordinates."""

    most_dense = 3 * MOST_DENSE

    def penalty(self, w: Vector) -> float:
        """Return Σ l1·|w| + l2·w²/2 + linear·w."""
        l1, l2, linear = self.terms
        return float(l1 @ np.abs(w) + 0.5 * (l2 @ np.square(w)) + linear @ w)


def sum_of(problem: Problem, data: Any) -> Sum:
    """Return F over all data."""
    terms = cast("Terms", terms_of(problem.regularizer, problem.dimension))
    sum_ = Sum(problem, data, terms, float(getattr(problem.inner, "deadline", math.inf)))
    return sum_ if sum_.rows is None else replace(sum_, data=RowBatch(None))  # the meter is told by `count`
