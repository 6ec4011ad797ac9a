"""Training of a model: first for the average of the groups, which gives the scales; then for those at risk."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from stoic.engines.engine import Status
from stoic.estimators.scales import spread, tamed_mean, weighted_quantile
from stoic.estimators.watching import Watch
from stoic.estimators.wild import calmed, is_reached, width_of, within_reach
from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.groups import rows_by_group
from stoic.losses import Loss, Squared
from stoic.outers import Linear, LogSumExp
from stoic.problem import Problem
from stoic.protocols import Outer, Regularizer, Vector
from stoic.solve.driver import minimize
from stoic.solve.result import Record, Result
from stoic.solvers import Method
from stoic.solvers.newton import Newton

_FIRST_SHARE = 0.2  # of the budget, for the average
_MOST_ROUNDS, _SETTLED = 20, 1e-8  # of the search for a scale on small data
_SMALL, _SMALL_BY_PRODUCTS, _MOST_DENSE = 2e9, 1e6, 1000  # n·d² and, with more columns, n·d of small data
_ENTRIES, _MOST_EPOCHS, _LEAST_DRAWS = 1e8, 300, 1000  # entries of X that are read by default
_PATIENCE = 10.0  # with square loss, whose slopes have no bound, and where nearly the worst group alone counts
_FEWEST_RECORDS, _MOST_RECORDS = 5, 50
_WORST = 0.01  # of the mean loss: how far a temperature of 0 is from the maximum
_SAMPLE = 2000  # rows on which the history follows the objective
_NOISE = 3.0  # errors of the group losses that count as no difference
_EQUAL = 1e-3  # of the mean loss: a smaller spread between groups counts as this much
_LEAST_SCALE = 1e-6  # of the targets' spread: where a model fits more than half of the rows exactly


@dataclass(frozen=True)
class TrainingRows:
    """Checked rows: columns and targets on one scale, group numbers, and weights if there are any.

    With more than two classes, targets are their numbers, and a model has weights for each.
    """

    X: Any
    y: Vector
    codes: IntArray
    labels: NDArray[Any]
    weight: Vector | None
    intercept: bool
    n_classes: int = 0

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
        """Whether Newton's method is fast; it is used too for many classes, which have no kernels."""
        n, d = self.X.shape
        work = n * d * d / _SMALL if d <= _MOST_DENSE else n * d / _SMALL_BY_PRODUCTS
        return self.n_outputs > 1 or work <= patience

    @property
    def squares(self) -> Vector:
        """‖x‖² of each row."""
        if not sparse.issparse(self.X):
            return np.asarray(np.einsum("ij,ij->i", self.X, self.X, dtype=float))
        X: Any = self.X
        return np.ravel(X.astype(float, copy=False).power(2).sum(axis=1))

    @property
    def mean_square(self) -> float:
        """The mean of ‖x‖² over the rows, by their weights; wild rows count like ordinary outliers."""
        return tamed_mean(self.squares, self.weight)

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
            how: dict[str, Any] = {"sample_weight": self.weight, "intercept": self.intercept}
            return GroupSoftmax(self.X, self.y, self.codes, n_classes=self.n_classes, **how)
        return self._checked.with_loss(loss)

    @cached_property
    def _checked(self) -> GroupLoss:
        return GroupLoss(self.X, self.y, self.codes, sample_weight=self.weight, intercept=self.intercept)

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
        return rows

    def part(self, chosen: NDArray[Any]) -> "TrainingRows":
        """Return some of the rows, by number or by a mask."""
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, X=self.X[chosen], y=self.y[chosen], codes=self.codes[chosen], weight=weight)

    def sample(self, size: int) -> "TrainingRows":
        """Return up to `size` rows that count, as many of each group; which, is drawn once and for all."""
        counted = np.arange(len(self.y)) if self.weight is None else np.flatnonzero(self.weight)
        shuffled = np.random.default_rng(0).permutation(counted)
        parts = rows_by_group(self.codes[shuffled], self.n_groups)
        return self.part(shuffled[np.concatenate([part[: max(1, size // self.n_groups)] for part in parts])])

    def default_budget(self, patience: float) -> int:
        """Return the rows to draw, an epoch at least."""
        n = self.X.shape[0]
        drawn = min(max(float(n), patience * _ENTRIES / self.row_length), float(_MOST_EPOCHS * n))
        return max(int(drawn), _LEAST_DRAWS * self.n_groups)


@dataclass(frozen=True)
class Trained:
    """A model on scaled rows: its weights, the loss, the rows and the problem that they solve, and the solves."""

    w: Vector
    loss: Loss
    rows: TrainingRows
    problem: Problem
    results: tuple[Result, ...]
    n_average: int
    is_exact: bool

    @property
    def last(self) -> Result:
        """The last solve."""
        return self.results[-1]

    @property
    def history(self) -> list[Record]:
        """The records of all solves, samples and seconds counted on; phase 0 is for the average, 1 the last."""
        records: list[Record] = []
        samples = evaluations = seconds = 0.0
        for number, result in enumerate(self.results):
            phase = int(number >= self.n_average)
            for record in result.history:
                counts = {
                    "samples": samples + record["samples"],
                    "evaluations": evaluations + record["evaluations"],
                    "seconds": seconds + record["seconds"],
                }
                records.append({**record, **counts, "phase": phase})
            samples += result.samples
            evaluations += result.evaluations
            seconds += result.seconds
        return records


@dataclass(frozen=True)
class Trainer:
    """Train linear models on rows.

    Parameters
    ----------
    rows : TrainingRows
    loss_at : function of a scale
        The loss for residuals of that scale; where it does not depend on it, `has_scale` is False.
    regularizer : Regularizer
    temperature : float
        In units of the standard deviation of the group losses under the average fit, and of three errors of these
        losses where they differ by no more; 0: the worst group, inf: the average.
    method : str or Method
        "auto": Newton's method where the data are few, else the default of `minimize`.
    budget : int or None
    rng : Generator
    watch : Watch
    """

    rows: TrainingRows
    loss_at: Callable[[float], Loss]
    has_scale: bool
    regularizer: Regularizer
    temperature: float
    method: str | Method
    budget: int | None
    rng: Generator
    watch: Watch = field(default_factory=Watch)

    def train(self, w: Vector) -> Trained:
        """Return the model, trained from w."""
        results: list[Result] = []
        scale = 1.0
        while True:
            first = replace(self, rows=self.rows.within_reach(w, self.loss_at(scale)))
            average = Problem(first.rows.inner(self.loss_at(scale)), Linear(), self.regularizer)
            result = first.solve(average, w, share=_FIRST_SHARE, is_last=False)
            results.append(replace(result, certifier=None))  # it would hold on to vectors of length d
            w, before = result.w, scale
            scale = self._scale(w) if self.has_scale else scale
            is_settled = abs(scale - before) <= _SETTLED * before and not self._reaches(first.rows, w)
            if not self.is_exact or is_settled or len(results) == _MOST_ROUNDS or is_ended(result):
                break
        loss, n_average = self.loss_at(scale), len(results)
        last = replace(self, rows=self.rows.calmed(w, loss))
        problem = Problem(last.rows.inner(loss), last._outer(w, loss), self.regularizer)  # noqa: SLF001
        if not is_ended(result):
            result = last.solve(problem, w, share=1.0 - _FIRST_SHARE, is_last=True)
            results.append(replace(result, certifier=None))
        return Trained(result.w, loss, last.rows, problem, tuple(results), n_average, self.is_exact)

    @property
    def is_exact(self) -> bool:
        """Whether the exact optimum of the data is found."""
        by_name = self.method == "newton" or isinstance(self.method, Newton)
        return by_name or (self.method == "auto" and self.rows.are_few(_PATIENCE if self._is_squared else 1.0))

    @property
    def _is_squared(self) -> bool:
        return isinstance(self.loss_at(1.0), Squared)

    def solve(self, problem: Problem, w0: Vector, *, share: float, is_last: bool) -> Result:
        """Minimize with a share of the budget; all of it for Newton's method, which stops by itself."""
        n = self.rows.X.shape[0]
        loss = getattr(problem.inner, "loss", self.loss_at(1.0))
        options = self.watch.options(loss, is_last=is_last)
        on_sample = problem.with_inner(self.rows.sample(_SAMPLE).inner(loss))
        options["observers"] = {"objective": on_sample.objective, **options["observers"]}
        if self.is_exact:
            method: str | Method = "newton" if self.method == "auto" else self.method
            budget, more = 10_000 * n if self.budget is None else self.budget, {"evaluate_every": n}
        else:
            is_hard = self._is_squared or self.temperature < 1.0
            default = self.rows.default_budget(_PATIENCE if is_hard else 1.0)
            whole = default if self.budget is None else self.budget
            method, budget = self.method, max(1, int(whole * share))
            every = math.ceil(budget / (_records(budget / n) if is_last else _FEWEST_RECORDS))
            more = {"evaluate_every": every, "seed": self.rng, "tol": self.watch.tol}
        with threadpool_limits(limits=1, user_api="blas"):  # more would wait for each other
            return minimize(problem, method, budget, w0=w0, **more, **options)

    def _reaches(self, moved: TrainingRows, w: Vector) -> bool:
        """Whether w fits a target where it was moved to, so that it is to be moved farther."""
        return moved is not self.rows and is_reached(self.rows.y, moved.y, self.rows.predict(w))

    def _scale(self, w: Vector) -> float:
        residuals, weight = self.rows.y - self.rows.predict(w), self.rows.weight
        if self.rows.intercept:  # which is not at the median where the loss is that of another quantile
            residuals = residuals - weighted_quantile(residuals, weight, 0.5)
        return max(spread(residuals, weight), _LEAST_SCALE)

    def _outer(self, w: Vector, loss: Loss) -> Outer:
        """Return the outer function, with its temperature in the units of the loss."""
        inner = self.rows.inner(loss)
        means = inner.value(w, inner.everything())[0]
        tau = temperature_of(self.temperature, means, group_noise(self.rows, inner.losses(w), means))
        return Linear() if tau is None else LogSumExp(tau)


def temperature_of(temperature: float, losses: Vector, noise: float) -> float | None:
    """Return τ in the units of the loss, from the losses of the groups and their errors; None: the average."""
    if len(losses) == 1 or math.isinf(temperature):
        return None
    mean = float(losses.mean()) or 1.0
    if temperature == 0.0:
        return _WORST * mean / math.log(len(losses))
    return temperature * max(math.hypot(float(losses.std()), _NOISE * noise), _EQUAL * mean)


def group_noise(rows: TrainingRows, losses: Vector, means: Vector) -> float:
    """Return the typical error of the mean losses of the groups, from the losses of the rows."""
    weight = np.ones(len(losses)) if rows.weight is None else rows.weight
    shares = weight / sums_by(rows.codes, weight, rows.n_groups)[rows.codes]
    squares = np.square(shares * (losses - means[rows.codes]))
    return float(np.sqrt(np.mean(sums_by(rows.codes, squares, rows.n_groups))))


def _records(epochs: float) -> int:
    """Return the number of records of the last solve: two an epoch, as each takes a pass over the rows."""
    return int(min(max(2.0 * epochs, 2 * _FEWEST_RECORDS), _MOST_RECORDS))


def is_ended(result: Result) -> bool:
    """Whether the user, or infinite numbers, ended a solve for good."""
    return result.status in {Status.STOPPED, Status.INTERRUPTED, Status.DIVERGED}
