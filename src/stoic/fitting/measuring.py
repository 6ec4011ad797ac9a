"""Errors of rivals on the same test rows: means, differences row by row, and how far chance may move them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from stoic.estimators.base import GroupDROModel
from stoic.estimators.scoring import errors_of
from stoic.fitting.rivals import Predictor, level_of
from stoic.fitting.schemas import FileRows
from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.labels import encode_groups
from stoic.protocols import Array, Vector

FEWEST = 5
"""Test rows of a group that is judged by itself."""
_LEAST_CHANCE = 1e-12  # of a class, in the log loss: a class that the fit has not seen


class Measure(NamedTuple):
    """What is measured of each row."""

    name: str
    is_share: bool


ABSOLUTE = Measure("mean absolute error", is_share=False)
WRONG = Measure("share of wrong classes", is_share=True)
LOG_LOSS = Measure("log loss", is_share=False)


def half_width(error: Array | float, rows: IntArray | int, looks: int = 1) -> Array:
    """Return half the width of 95 % intervals by Student's t from standard errors, `looks` of them together."""
    return np.asarray(error * stdtrit(np.maximum(rows, 2) - 1, 1.0 - 0.025 / looks))


class Means(NamedTuple):
    """Of p parts of the rows: names and sizes; of k rivals the means, (k, p), with their standard errors.

    And how far the first rival's mean is above that of each, with the standard errors of these differences.
    """

    names: NDArray[Any]
    rows: IntArray
    means: Array
    errors: Array
    differences: Array
    difference_errors: Array

    def some(self, places: IntArray | list[int]) -> "Means":
        """Return some of the parts."""
        by_part = self.means, self.errors, self.differences, self.difference_errors
        return Means(self.names[places], self.rows[places], *(one[:, places] for one in by_part))


@dataclass(frozen=True)
class Errors:
    """The errors of each row under each rival, of shape (k, n), with the groups and weights of the rows."""

    measure: Measure
    rivals: tuple[str, ...]
    of_rows: Array
    labels: NDArray[Any]
    codes: IntArray
    weight: Vector

    @cached_property
    def whole(self) -> Means:
        """Of all rows."""
        return self.over(np.zeros(len(self.codes), dtype=np.intp), np.array(["all rows"], dtype=object))

    @cached_property
    def groups(self) -> Means:
        """Of each group with five rows or more, the one with the largest error of the first rival first."""
        found = self.over(self.codes, self.labels)
        judged = np.flatnonzero(found.rows >= FEWEST)
        return found.some(judged[np.argsort(-found.means[0, judged], kind="stable")])

    def others(self, named: NDArray[Any]) -> tuple[int, Means] | None:
        """Return how many groups are not among those named, and what they have together; None where all are."""
        is_named = np.isin(self.labels, named)
        if is_named.all():
            return None
        found = self.over(is_named[self.codes].astype(np.intp), np.array(["others", "named"], dtype=object))
        return int((~is_named).sum()), found.some([0])

    def over(self, codes: IntArray, names: NDArray[Any]) -> Means:
        """Return what each part of the rows has."""
        rows = np.bincount(codes, minlength=len(names))
        means, errors = self._means(self.of_rows, codes, rows)
        differences, difference_errors = self._means(self.of_rows[0] - self.of_rows, codes, rows)
        return Means(names, rows, means, errors, differences, difference_errors)

    def _means(self, values: Array, codes: IntArray, rows: IntArray) -> tuple[Array, Array]:
        """Return weighted means of the parts, and their standard errors; infinite where there is one row."""
        p = len(rows)
        totals = np.maximum(sums_by(codes, self.weight, p), np.finfo(float).tiny)
        means = np.stack([sums_by(codes, self.weight * one, p) for one in values]) / totals
        far = self.weight * (values - means[:, codes])
        squares = np.stack([sums_by(codes, one, p) for one in np.square(far)])
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.where(rows > 1, np.sqrt(squares * rows / (rows - 1)) / totals, np.inf)
        return means, errors


def measured(model: GroupDROModel, rivals: Mapping[str, Predictor], test: FileRows) -> list[Errors]:
    """Return the errors of rivals on test rows: of numbers one measure, of classes wrong ones and the log loss."""
    y: Any = test.y
    labels, codes = encode_groups(test.groups, len(y))
    weight = np.ones(len(y)) if test.weight is None else test.weight
    about = labels, codes, weight
    names = tuple(rivals)
    predicted = [rival.predict(test.X) for rival in rivals.values()]
    if not hasattr(model, "classes_"):
        far = np.stack([y - one for one in predicted])
        return [Errors(measure_of(model), names, _sizes(far, model), *about)]
    wrong = np.stack([errors_of(y, one, "zero-one") for one in predicted])
    surprise = np.stack([_log_losses(rival, test.X, y) for rival in rivals.values()])
    return [Errors(WRONG, names, wrong, *about), Errors(LOG_LOSS, names, surprise, *about)]


def measure_of(model: GroupDROModel) -> Measure:
    """Return the measure of a regression: the absolute error, or that of its quantile."""
    if model.loss != "quantile":
        return ABSOLUTE
    return Measure(f"mean quantile loss at {level_of(model):g}", is_share=False)


def _sizes(residuals: Array, model: GroupDROModel) -> Array:
    if measure_of(model) is ABSOLUTE:
        return np.abs(residuals)
    level = level_of(model)
    return np.asarray(np.maximum(level * residuals, (level - 1.0) * residuals))


def _log_losses(rival: Any, X: Any, y: NDArray[Any]) -> Vector:
    chances = rival.predict_proba(X)
    places = {name: k for k, name in enumerate(rival.classes_.tolist())}
    names, codes = np.unique(y, return_inverse=True)
    columns = np.array([places.get(name, -1) for name in names.tolist()])[codes]
    own = np.where(columns >= 0, chances[np.arange(len(y)), columns], 0.0)
    return np.asarray(-np.log(np.maximum(own, _LEAST_CHANCE)))
