"""Rows that a model is trained on: columns and targets on one scale, in groups, with weights."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.estimators.drawing import KernelRows
from stoic.estimators.moments import weighted_sum
from stoic.estimators.scales import Scaling, outlier_size, tamed_mean
from stoic.estimators.wild import calmed, width_of, within_reach
from stoic.inners.blocks import IntArray
from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.groups import rows_by_group
from stoic.inners.row_squares import row_squares
from stoic.losses import Loss
from stoic.protocols import Array, Vector

_SMALL, _SMALL_BY_PRODUCTS, _MOST_DENSE = 2e9, 1e6, 1000  # products of a Hessian, or of a vector with more columns
_MOST_TRIMMINGS = 3  # of rows that are far from the mean, which they move
_OF_HISTORY = 2000  # rows
_ENTRIES, _MOST_EPOCHS, _LEAST_DRAWS = 1e8, 300, 1000  # entries of X that are read by default


@dataclass(frozen=True)
class TrainingRows:
    """Checked rows: columns and targets on one scale, group numbers, and weights if there are any.

    With more than two classes, targets are their numbers, and a model has weights for each. Where there is a
    `scaling`, the columns are those of X centered and scaled by it, which are never formed.
    """

    X: Any
    y: Vector
    codes: IntArray
    labels: NDArray[Any]
    weight: Vector | None
    intercept: bool
    n_classes: int = 0
    scaling: Scaling | None = None

    @property
    def n_outputs(self) -> int:
        """Numbers that a model predicts for a row."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def n_groups(self) -> int:
        """The number p of groups."""
        return len(self.labels)

    @property
    def row_length(self) -> float:
        """Entries that a row has in memory, on average."""
        n_entries: int = getattr(self.X, "nnz", self.X.size)
        return max(1.0, n_entries / len(self.y))

    def are_few(self, patience: float) -> bool:
        """Whether Newton's method takes a moment, by non-zeros; it is used too where there are no kernels."""
        n, d = self.X.shape
        work = n * self.row_length / _SMALL_BY_PRODUCTS
        if d <= _MOST_DENSE:
            work = n * self.row_length**2 / _SMALL
        return self.n_outputs > 1 or work <= patience

    @cached_property
    def squares(self) -> Vector:
        """‖x − c‖² of each row, where c is the mean of ordinary rows; of ‖x‖² where there is no intercept."""
        if not self.intercept:
            return self._squares_about(np.zeros(self.X.shape[1]))
        counts = np.ones(len(self.y)) if self.weight is None else self.weight
        for _ in range(_MOST_TRIMMINGS):
            squares = self._squares_about(weighted_sum(self.X, counts / counts.sum()))
            is_wild = (squares > outlier_size(squares, counts)) & (counts > 0.0)
            if not is_wild.any():
                break
            counts = np.where(is_wild, 0.0, counts)
        return squares

    def _squares_about(self, center: Vector) -> Vector:
        """Return the squared distances of the rows to a point on the scale of X."""
        return row_squares(self.X, center, np.ones(len(center)) if self.scaling is None else self.scaling.scale)

    @property
    def mean_square(self) -> float:
        """The mean of `squares` over the rows, by their weights; wild rows count like ordinary outliers."""
        return tamed_mean(self.squares, self.weight)

    def columns(self) -> Array:
        """Return the columns as an array, on the scale of the model."""
        X: Any = self.X
        filled: Array = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=float)
        return filled if self.scaling is None else (filled - self.scaling.center) / self.scaling.scale

    @property
    def n_effective(self) -> float:
        """The number of rows that the weights stand for: their sum if they are counts, else Kish's number."""
        if self.weight is None:
            return float(len(self.y))
        total = float(self.weight.sum())
        are_counts = bool((self.weight == np.floor(self.weight)).all())
        return total if are_counts else total * total / float(self.weight @ self.weight)

    def inner(self, loss: Loss) -> GroupLoss | GroupSoftmax:
        """Return the mean losses of a linear model in each group."""
        if self.n_outputs > 1:
            return GroupSoftmax(self.X, self.y, self.codes, n_classes=self.n_classes, **self._how)
        return self._checked.with_loss(loss)

    @cached_property
    def _checked(self) -> GroupLoss:
        return GroupLoss(self.X, self.y, self.codes, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        how: dict[str, Any] = {"sample_weight": self.weight, "intercept": self.intercept}
        return how if self.scaling is None else how | {"center": self.scaling.center, "scale": self.scaling.scale}

    @cached_property
    def for_kernels(self) -> KernelRows | None:
        """X as kernels read it, scaled in a copy that is made when it is asked for; None: it is so already."""
        return None if self.scaling is None else KernelRows(self.X, self.scaling)

    def within_reach(self, w: Vector, loss: Loss) -> "TrainingRows":
        """Return the rows with no target so far from what w predicts that sums lose their digits to it."""
        return self if width_of(loss) is None else self._with_targets(within_reach(self.y, self.predict(w)))

    def calmed(self, w: Vector, loss: Loss) -> "TrainingRows":
        """Return the rows with wild targets at the edge of ordinary outliers about what w predicts."""
        width = width_of(loss)
        if width is None:
            return self
        return self._with_targets(calmed(self.y, self.predict(w), self.codes, self.weight, width))

    def predict(self, w: Vector) -> Vector:
        """Return the predictions of a model of one output."""
        return self._checked.predict(w, self._checked.everything())

    def _with_targets(self, y: Vector) -> "TrainingRows":
        if y is self.y:
            return self
        rows = replace(self, y=y)
        rows.__dict__["_checked"] = self._checked.with_target(y)  # columns are not checked again
        rows.__dict__["for_kernels"] = self.for_kernels  # nor copied
        if "squares" in self.__dict__:
            rows.__dict__["squares"] = self.squares
        return rows

    def part(self, chosen: NDArray[Any]) -> "TrainingRows":
        """Return some of the rows, by number or by a mask."""
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, X=self.X[chosen], y=self.y[chosen], codes=self.codes[chosen], weight=weight)

    @cached_property
    def for_history(self) -> "TrainingRows":
        """The rows on which the history of a fit follows the objective."""
        return self.sample(_OF_HISTORY)

    def sample(self, size: int) -> "TrainingRows":
        """Return up to `size` rows that count, as many of each group; which, is drawn once and for all."""
        most = max(1, size // self.n_groups)
        if (self.weight is None or self.weight.all()) and np.bincount(self.codes).max() <= most:
            return self
        counted = np.arange(len(self.y)) if self.weight is None else np.flatnonzero(self.weight)
        shuffled = np.random.default_rng(0).permutation(counted)
        parts = rows_by_group(self.codes[shuffled], self.n_groups)
        return self.part(shuffled[np.concatenate([part[:most] for part in parts])])

    def default_budget(self, patience: float) -> int:
        """Return the rows to draw, an epoch at least."""
        n = self.X.shape[0]
        drawn = min(max(float(n), patience * _ENTRIES / self.row_length), float(_MOST_EPOCHS * n))
        return max(int(drawn), _LEAST_DRAWS * self.n_groups)
