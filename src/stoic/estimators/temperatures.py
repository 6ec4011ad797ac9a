r"""The choice of a temperature: a path from the average to the worst group, judged on rows that are held out.

On each fold but one the average :math:`\bar w` is fitted, and from there on the models at lower and lower
temperatures, each from the one before. The level of group i at a temperature is its regret (or error) under the
average, plus the mean of :math:`e(w; \xi) - e(\bar w; \xi)` over its rows, each under the models that have not
seen it. The worst level falls along the path until it is noise; what that costs is the change of the mean error.
The error e of a row is the size of its residual where losses are lines far out, else its loss.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from stoic.estimators.protection import Yardstick
from stoic.estimators.rows import TrainingRows
from stoic.inners.blocks import IntArray, sums_by
from stoic.losses import Absolute, Huber, Logistic, Loss
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Array, Regularizer, Vector
from stoic.solvers.newton import Newton

MOST_COLUMNS = 1000
"""Of rows that have a path: with more, each step of it solves a system by conjugate gradients."""

TEMPERATURES = (math.inf, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.0)
_FOLDS, _FEWEST_ROWS = 5, 10  # rows of a group whose level counts
_ENTRIES, _WORK, _PER_COLUMN = 3e6, 2e8, 5  # numbers to read, products of a Hessian, rows for each column
_MOST_STEPS, _SETTLED = 30, 1e-6  # Newton steps of a fit, and the decrease that ends them


@dataclass(frozen=True)
class TemperaturePath:
    """Levels of the groups and changes of errors along a path of temperatures, on rows that were held out.

    Parameters
    ----------
    temperatures : array of shape (T,)
        From infinity, the average, down.
    levels : array of shape (T, p)
        Regrets, or errors, of the groups.
    means : array of shape (T,)
        Of the errors, the groups by their weights in the average.
    changes : array of shape (T, n)
        Of the errors of the rows, from the average on, in units of the levels.
    wrong : array of shape (T,), optional
        The mean share of wrong classes, where rows have classes.
    codes : array of int of shape (n,)
        The groups of these rows.
    counted : array of int
        The groups that have enough rows for their level to count.
    """

    temperatures: Vector
    levels: Array
    means: Vector
    changes: Array
    codes: IntArray
    counted: IntArray
    wrong: Vector | None = None

    @property
    def costs(self) -> Vector:
        """By how much the mean error is above that of the average, as a share of it.

        Of classes, the error or the share of wrong ones, whichever costs more.
        """
        costs: Vector = np.asarray((self.means - self.means[0]) / (abs(self.means[0]) or 1.0))
        if self.wrong is None:
            return costs
        return np.asarray(np.maximum(costs, (self.wrong - self.wrong[0]) / (self.wrong[0] or 1.0)))

    @cached_property
    def worst_groups(self) -> IntArray:
        """The group with the largest level at each temperature."""
        return np.asarray(self.counted[self.levels[:, self.counted].argmax(axis=1)])

    @property
    def worst(self) -> Vector:
        """The largest level at each temperature."""
        return np.asarray(self.levels[np.arange(len(self.levels)), self.worst_groups])

    def chosen(self, max_cost: float) -> int:
        """Return the number of the temperature to take.

        Among those whose cost is at most `max_cost` the worst level is lowest at one of them; the first one along
        the path, from the average on, that is within a standard error of it is taken.
        """
        allowed = np.flatnonzero(np.logical_and.accumulate(self.costs <= max_cost))
        best = int(allowed[self.worst[allowed].argmin()])
        return next(k for k in allowed.tolist() if self.worst[k] - self.worst[best] <= self._error(k, best))

    def records(self, chosen: float, labels: NDArray[Any], unit: float) -> list[dict[str, Any]]:
        """Return a record for each temperature, errors in units; deviations are from the one that was chosen."""
        best = int(np.flatnonzero(self.temperatures == chosen)[0])
        return [
            {
                "temperature": float(temperature),
                "mean_error": float(self.means[k] * unit),
                "cost": float(self.costs[k]),
                "worst": float(self.worst[k] * unit),
                "worst_deviation": self._error(k, best) * unit,
                "worst_group": labels.tolist()[self.worst_groups[k]],
                "chosen": k == best,
            }
            for k, temperature in enumerate(self.temperatures)
        ]

    def _error(self, k: int, best: int) -> float:
        """Return the standard error of the difference of two worst levels: over the rows of the first's group.

        It is infinite where fewer than two of them were held out.
        """
        rows = self.codes == self.worst_groups[k]
        difference = (self.changes[k] - self.changes[best])[rows]
        return float(difference.std() / math.sqrt(len(difference) - 1)) if len(difference) > 1 else math.inf


def temperature_path(
    rows: TrainingRows,
    loss: Loss,
    regularizer: Regularizer,
    w: Vector,
    yard: Yardstick,
    shares: Vector,
    rng: Generator,
) -> TemperaturePath:
    """Return the path of temperatures from the average w on, by cross-validation on the rows or some of them.

    Parameters
    ----------
    rows : TrainingRows
    loss : Loss
    regularizer : Regularizer
    w : array of shape (d,)
        The shared model.
    yard : Yardstick
        Of all rows at w.
    shares : array of shape (p,)
        The weights of the groups in the shared model.
    rng : Generator
        Draws the folds.
    """
    inner = rows.inner(loss)
    means = inner.value(w, inner.everything())[0]
    some = _some(rows)
    weight = np.ones(len(some.y)) if some.weight is None else some.weight
    folds = _folds(some, rng)
    held = np.zeros(len(some.y), dtype=bool)
    before = np.zeros(len(some.y))
    changes = np.zeros((len(TEMPERATURES), len(some.y)))
    wrong = np.zeros_like(changes) if is_of_classes(some, loss) else None
    for fold in range(_FOLDS if _work(some) <= _WORK else 1):
        models = _models(some.part(folds != fold), loss, regularizer, w, yard, means, shares)
        judged = folds == fold
        held |= judged
        for k, model in enumerate(models):
            errors = _errors(some, loss, model)[judged]
            before[judged] = errors if k == 0 else before[judged]
            changes[k, judged] = errors - before[judged]
            if wrong is not None:
                wrong[k, judged] = _are_wrong(some, model)[judged]
    codes, counts = some.codes[held], weight[held]
    sizes = sums_by(codes, counts, rows.n_groups)
    part = (counts / np.maximum(sizes, 1e-300)[codes])[None] * np.vstack([before[held], changes[:, held]])
    by_group = np.array([sums_by(codes, one, rows.n_groups) for one in part])
    weights = shares[codes] * counts / np.maximum(sizes, 1e-300)[codes]
    scales, start = np.ones(rows.n_groups), by_group[0]
    if yard.baselines is not None and yard.scales is not None:
        start = (means - yard.baselines) / yard.scales / (yard.slope if has_residuals(loss) else 1.0)
        scales = scales if has_residuals(loss) else yard.scales
    seen = np.bincount(codes, minlength=rows.n_groups)
    return TemperaturePath(
        np.array(TEMPERATURES),
        start + by_group[1:] / scales,
        (by_group[0] + by_group[1:]) @ shares,
        changes[:, held] / scales[codes],
        codes,
        np.flatnonzero(seen >= min(_FEWEST_ROWS, seen.max())),
        None if wrong is None else wrong[:, held] @ weights,
    )


def has_residuals(loss: Loss) -> bool:
    """Whether errors are the sizes of residuals, not losses."""
    return isinstance(loss, Huber | Absolute)


def is_of_classes(rows: TrainingRows, loss: Loss) -> bool:
    """Whether targets are classes."""
    return rows.n_outputs > 1 or isinstance(loss, Logistic)


def _are_wrong(rows: TrainingRows, w: Vector) -> Vector:
    """Return 1 for each row whose class is not the likeliest one."""
    if rows.n_outputs == 1:
        return np.asarray(rows.y * rows.predict(w) <= 0.0, dtype=float)
    inner = rows.inner(Logistic())
    return np.asarray(inner.predict(w, inner.everything()).argmax(axis=1) != rows.y, dtype=float)


def _errors(rows: TrainingRows, loss: Loss, w: Vector) -> Vector:
    """Return the error of each row."""
    return np.abs(rows.y - rows.predict(w)) if has_residuals(loss) else rows.inner(loss).losses(w)


def _work(rows: TrainingRows) -> float:
    """Return the products that a Hessian takes, or those of vectors where it is not formed."""
    n, d = rows.X.shape
    return float(n * min(float(d) ** 2, 100.0 * rows.row_length) * rows.n_outputs**2)


def _some(rows: TrainingRows) -> TrainingRows:
    """Return rows that count, as many of each group as the work allows."""
    if rows.weight is not None:
        rows = rows.part(rows.weight > 0.0)
    most = max(_ENTRIES / rows.row_length, _PER_COLUMN * rows.row_length)
    return rows if len(rows.y) <= most else rows.sample(int(most))


def _folds(rows: TrainingRows, rng: Generator) -> IntArray:
    """Return the fold of each row, as even as can be in each group; −1 for one that is always trained on."""
    shuffled = rng.permutation(len(rows.y))
    order = shuffled[np.argsort(rows.codes[shuffled], kind="stable")]
    folds = np.empty(len(rows.y), dtype=np.intp)
    folds[order] = np.arange(len(order)) % _FOLDS
    folds[np.bincount(rows.codes)[rows.codes] < 2] = -1
    return folds


def _models(
    rows: TrainingRows,
    loss: Loss,
    regularizer: Regularizer,
    w: Vector,
    yard: Yardstick,
    means: Vector,
    shares: Vector,
) -> Iterator[Vector]:
    """Yield the models along the path on some of the rows, from the average on."""
    problem: Problem = Problem(rows.inner(loss), Linear(shares), regularizer)
    w = _minimum(problem, w)
    yield w
    if yard.baselines is not None:  # as far below the average of these rows
        own = problem.inner.value(w, problem.inner.everything())[0]
        yard = yard._replace(baselines=own - (means - yard.baselines))
    for temperature in TEMPERATURES[1:]:
        w = _minimum(replace(problem, outer=yard.at(temperature).outer(shares)), w)
        yield w


def _minimum(problem: Problem, w: Vector) -> Vector:
    """Return the minimum by Newton steps from w on, to the accuracy that rows held out can tell."""
    solver, rng = Newton(_MOST_STEPS), np.random.default_rng(0)
    state: Any = solver.init(problem, w, rng)
    while not solver.finished(state) and state.promised > _SETTLED * max(state.first, 1e-300):
        state, _ = solver.step(problem, state, rng)
    return np.asarray(state.w)
