"""Training of a model: first for the average, which gives the scales; then for the groups to protect."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from numpy.random import Generator

from stoic.estimators.drawing import minimize_by_draws
from stoic.estimators.newton_run import exact_solve
from stoic.estimators.protection import Levels, Protection, Yardstick
from stoic.estimators.rows import TrainingRows
from stoic.estimators.scale_search import SETTLED, exact_average
from stoic.estimators.scales import spread, weighted_quantile
from stoic.estimators.temperatures import MOST_COLUMNS, TemperaturePath, temperature_path
from stoic.estimators.watching import Watch, is_ended
from stoic.estimators.wild import is_reached
from stoic.inners.threads import one_blas_thread
from stoic.losses import Loss, Squared
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Regularizer, Vector
from stoic.solve.result import Record, Result
from stoic.solvers import Method
from stoic.solvers.newton import Newton

_log = logging.getLogger("stoic")

_FIRST_SHARE = 0.2  # of the budget, for the average
_PATIENCE = 10.0  # with square loss, whose slopes have no bound, and where nearly the worst group alone counts
_FEWEST_RECORDS, _MOST_RECORDS = 5, 50
_OF_MANY_COLUMNS = 1.0  # the temperature where a path would take minutes
_FEW, _OF_TOL = 1e-14, 0.1  # gaps that end Newton's method: of F, where data are few, and of tol
_EXACT_EPOCHS = 10_000  # which end no exact solve
_LEAST_SCALE = 1e-6  # of the targets' spread: where a model fits more than half of the rows exactly


@dataclass(frozen=True)
class Trained:
    """A model on scaled rows: its weights, the loss, the rows and the problem that they solve, and the solves."""

    w: Vector
    loss: Loss
    rows: TrainingRows
    problem: Problem
    temperature: float
    path: TemperaturePath | None
    levels: Levels
    results: tuple[Result, ...]
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
            phase = int(number > 0)
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
    protection : Protection
    temperature : float or "auto"
    max_cost : float
        What an automatic temperature may add to the mean error, as a share of it.
    method : str or Method
        "auto": see `is_exact`.
    budget : int or None
    rng, folds : Generator
        Of draws, and of folds.
    watch : Watch
    """

    rows: TrainingRows
    loss_at: Callable[[float], Loss]
    has_scale: bool
    regularizer: Regularizer
    protection: Protection
    temperature: float | Literal["auto"]
    max_cost: float
    method: str | Method
    budget: int | None
    rng: Generator
    folds: Generator
    watch: Watch = field(default_factory=Watch)

    def train(self, w: Vector) -> Trained:
        """Return the model, trained from w."""
        with one_blas_thread():
            return self._trained(w)

    def _trained(self, w: Vector) -> Trained:
        if _log.isEnabledFor(logging.INFO):
            _log.info(self._route)
        start, shares = w, self.protection.shares(self.rows)
        w, scale, result = self.average(w, shares)
        results = [replace(result, certifier=None)]  # it would hold on to vectors of length d
        loss, is_over = self.loss_at(scale), is_ended(result)
        last = replace(self, rows=self.rows.calmed(w, loss))
        yard = self.protection.yardstick(last.rows, loss, w, self.folds)
        temperature, path = last.temperature_from(loss, w, yard, shares)
        last, levels = replace(last, temperature=temperature), yard.at(temperature)
        problem = Problem(last.rows.inner(loss), levels.outer(shares), self.regularizer)
        if not is_over:
            result = last.solve(problem, w, start, share=1.0 - _FIRST_SHARE, is_last=True)
            w = result.w
            results.append(replace(result, certifier=None))
        found = w, loss, last.rows, problem, temperature, path, levels
        return Trained(*found, tuple(results), self.is_exact)

    def average(self, w: Vector, shares: Vector) -> tuple[Vector, float, Result]:
        """Return the average fit from w on, the scale of its residuals, and the solve."""
        if self.is_exact:
            return exact_average(self, w, shares)
        loss = self.loss_at(1.0)
        first = replace(self, rows=self.rows.within_reach(w, loss))
        problem = Problem(first.rows.inner(loss), Linear(shares), self.regularizer)
        result = first.solve(problem, w, w, share=_FIRST_SHARE, is_last=False)
        return result.w, self.scale_of(result.w) if self.has_scale else 1.0, result

    def temperature_from(
        self, loss: Loss, w: Vector, yard: Yardstick, shares: Vector
    ) -> tuple[float, TemperaturePath | None]:
        """Return the temperature, and the path it was chosen on; infinity where nothing is to be gained."""
        if self.temperature != "auto":
            return float(self.temperature), None
        if yard.unit <= 0.0:
            return math.inf, None
        if self.rows.X.shape[1] > MOST_COLUMNS:
            return _OF_MANY_COLUMNS, None
        path = temperature_path(self.rows, loss, self.regularizer, w, yard, shares, self.folds)
        return float(path.temperatures[path.chosen(self.max_cost)]), path

    @property
    def is_exact(self) -> bool:
        """Whether the optimum is found by Newton's method, from passes over all rows.

        It is so unless the user chose a method, or limits the rows to draw or stops early while the rows are many.
        """
        if self.method != "auto":
            return self.method == "newton" or isinstance(self.method, Newton)
        is_free = self.budget is None and self.watch.stopping is None
        return is_free or self.rows.are_few(_PATIENCE if self._is_squared else 1.0)

    @property
    def scale_tol(self) -> float:
        """The change of the scale, as a part of it, that ends the search for it."""
        return SETTLED if self.to_the_last_digit else max(float(self.watch.tol or 0.0), SETTLED)

    @property
    def to_the_last_digit(self) -> bool:
        """Whether the optimum is found but for rounding: where the data are few, or the user chose the method."""
        return self.method != "auto" or self.rows.are_few(1.0)

    @property
    def _is_squared(self) -> bool:
        return isinstance(self.loss_at(1.0), Squared)

    def solve(self, problem: Problem, w0: Vector, start: Vector, *, share: float, is_last: bool) -> Result:
        """Minimize from w0 on with a share of the budget; all of it for Newton's method, which stops by itself."""
        if self.is_exact:
            with one_blas_thread():
                return exact_solve(self, problem, w0, start, is_last=is_last)
        n = self.rows.X.shape[0]
        loss = getattr(problem.inner, "loss", self.loss_at(1.0))
        options: dict[str, Any] = self.watch.options(loss, is_last=is_last)
        on_sample = problem.with_inner(self.rows.for_history.inner(loss))
        options["observers"] = {"objective": on_sample.objective, **options["observers"]}
        with one_blas_thread():
            is_hard = self._is_squared or (self.temperature != "auto" and self.temperature < 1.0)
            default = self.rows.default_budget(_PATIENCE if is_hard else 1.0)
            budget = max(1, int((default if self.budget is None else self.budget) * share))
            every = math.ceil(budget / (_records(budget / n) if is_last else _FEWEST_RECORDS))
            more: dict[str, Any] = {"evaluate_every": every, "seed": self.rng, "tol": self.watch.tol}
            return minimize_by_draws(self.rows.for_kernels, problem, self.method, budget, w0=w0, **more, **options)

    @property
    def _route(self) -> str:
        """Which way was taken and why, in a line."""
        n, d = self.rows.X.shape
        of = f"{n} rows of {self.rows.row_length:.3g} non-zeros in {d} columns"
        if not self.is_exact:
            why = (
                "a budget or early stopping is given, and rows are many" if self.method == "auto" else "as it says"
            )
            return f"minimize with method={self.method!r} over {of}: {why}"
        end = "to the last digit" if self.to_the_last_digit else f"to a duality gap of tol={self.watch.tol:g}"
        why = "the data are in memory" if self.method == "auto" else "as method says"
        return f"exact, by passes over {of}, {end}: {why}"

    @property
    def exact_solver(self) -> Newton:
        """The exact solver, as the user gave it or by default."""
        if isinstance(self.method, Newton):
            return self.method
        return Newton(gap=_FEW if self.to_the_last_digit else _OF_TOL * float(self.watch.tol or 0.0))

    @property
    def exact_budget(self) -> int:
        """The rows that an exact solve may go through."""
        return _EXACT_EPOCHS * self.rows.X.shape[0] if self.budget is None else self.budget

    def reaches(self, moved: TrainingRows, w: Vector) -> bool:
        """Whether w fits a target where it was moved to, so that it is to be moved farther."""
        return moved is not self.rows and is_reached(self.rows.y, moved.y, self.rows.predict(w))

    def scale_of(self, w: Vector, prediction: Vector | None = None) -> float:
        """Return the scale of the residuals of w, which predicts that."""
        residuals = self.rows.y - (self.rows.predict(w) if prediction is None else prediction)
        weight = self.rows.weight
        if self.rows.intercept:  # which is not at the median where the loss is that of another quantile
            residuals = residuals - weighted_quantile(residuals, weight, 0.5)
        return max(spread(residuals, weight), _LEAST_SCALE)


def _records(epochs: float) -> int:
    """Return the number of records of the last solve: two an epoch, as each takes a pass over the rows."""
    return int(min(max(2.0 * epochs, 2 * _FEWEST_RECORDS), _MOST_RECORDS))
