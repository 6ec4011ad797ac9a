"""Workloads of a benchmark: data sets, problems and solvers, in two sizes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from stoic.datasets.synthetic import SparseRegression, e2006_like
from stoic.engines.engine import Status
from stoic.errors import SolveFailed
from stoic.inners.group_loss import GroupLoss
from stoic.means import SmallestBall
from stoic.outers import LogSumExp
from stoic.problem import Problem
from stoic.protocols import Regularizer, Vector
from stoic.regularizers import L2
from stoic.solve.driver import minimize
from stoic.solve.result import Result
from stoic.solvers import Method
from stoic.solvers.rosc import ROSC
from stoic.truncation import Levels

EngineName: TypeAlias = Literal["compiled", "plain"]

ALPHA, L1_RATIO = 1e-4, 0.5
N_GROUPS = 6
TRUNCATED_SHARE = 0.15
LOOSE = Levels(C_g=1.0, L_g=1.0, slack_y=1e3, slack_z=1e3)  # finite: both tests are made, and hold
SHORT_STEP = 1e-6
_STEP_SIZE, _RADIUS, _TEMPERATURE = 0.02, 100.0, 10.0
_REFERENCE_MEAN, _BLOCK = SmallestBall(0.05), 20  # blocks of 20 rows: a reference as a million rows would give
_RECORDS = 2
_BISECTIONS = 12


class BenchData(NamedTuple):
    """Rows and labels, and how many stored entries a row has on average."""

    X: Any
    y: Vector

    @property
    def row_length(self) -> float:
        """Entries that a row has in memory, on average."""
        return float(getattr(self.X, "nnz", self.X.size) / self.X.shape[0])


@dataclass(frozen=True)
class Workload:
    """The sizes of one run of the benchmark.

    Parameters
    ----------
    data_size : float
        Of `e2006_like`.
    entries : int
        Stored entries that a timing reads: rows drawn times entries per row. At 2 ns each, 0.3 s are 1.5e8.
    plain_steps : int
        Steps of the plain engine in a timing.
    dense_shape : pair of int
        Of the dense data.
    row_lengths, widths : tuple of float, tuple of int
        Non-zeros per row and columns d of the growth metrics.
    growth_entries : int
        Stored entries of each of their data sets: the same for all, so that none fits the cache by being small.
    group_counts : tuple of int
        Numbers of groups p; p·m is twice the largest.
    rrosc_rows : int
        Budget of the whole call.
    """

    data_size: float
    entries: int
    plain_steps: int
    dense_shape: tuple[int, int]
    row_lengths: tuple[float, ...]
    widths: tuple[int, ...]
    growth_entries: int
    group_counts: tuple[int, ...]
    rrosc_rows: int

    @cached_property
    def data(self) -> SparseRegression:
        """The data set in the shape of E2006."""
        return e2006_like(seed=0, size=self.data_size)

    @property
    def text(self) -> BenchData:
        """The training rows of `data`."""
        return BenchData(self.data.X_train, self.data.y_train)

    def dense(self) -> BenchData:
        """Return normal rows and a linear model."""
        rng = np.random.default_rng(0)
        n, d = self.dense_shape
        X = rng.standard_normal((n, d)) / math.sqrt(d)
        return BenchData(X, X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n))

    def by_row_length(self) -> Iterator[BenchData]:
        """Yield data sets whose rows have more and more non-zeros, d fixed."""
        for length in self.row_lengths:
            yield self._data_of_size(length, self.widths[len(self.widths) // 2])

    def by_width(self) -> Iterator[BenchData]:
        """Yield data sets with more and more columns, the non-zeros per row fixed."""
        for d in self.widths:
            yield self._data_of_size(self.row_lengths[0], d)

    def _data_of_size(self, length: float, d: int) -> BenchData:
        n = math.ceil(self.growth_entries / length)
        data = e2006_like(seed=0, n_train=n, n_test=0, d=d, mean_row_length=length)
        return BenchData(data.X_train, data.y_train)


SMALL = Workload(0.01, 40_000, 10, (500, 20), (10.0, 20.0, 40.0), (500, 1_000, 2_000), 4_000, (2, 4, 8), 4_000)
FULL = Workload(
    data_size=1.0,
    entries=300_000_000,
    plain_steps=60,
    dense_shape=(100_000, 100),
    row_lengths=(310.0, 620.0, 1_240.0, 2_480.0, 4_960.0),  # the middle one is E2006's
    widths=(10_000, 31_623, 100_000, 316_228, 1_000_000),
    growth_entries=6_000_000,
    group_counts=(2, 4, 8, 16, 32),
    rrosc_rows=1_000_000,
)
WORKLOADS = {"small": SMALL, "full": FULL}


def problem_of(data: BenchData, regularizer: Regularizer | None = None, *, p: int = N_GROUPS) -> Problem:
    """Return KL group DRO on some rows; groups are dealt round by round."""
    inner = GroupLoss(data.X, data.y, np.arange(data.X.shape[0]) % p)
    return Problem(inner, LogSumExp(_TEMPERATURE), L2(ALPHA) if regularizer is None else regularizer)


def rosc(
    n_rows: int, problem: Problem, *, m: int = 1, levels: Levels = LOOSE, step_size: float = _STEP_SIZE
) -> ROSC:
    """Return a ROSC of about `n_rows` rows: no setting for a pilot to choose, a ball that is tested and holds."""
    return ROSC(
        step_size=step_size,
        batch_size=m,
        n_steps=max(2, math.ceil(n_rows / problem.inner.cost(m))),
        radius=_RADIUS,
        reference_size=_BLOCK * _REFERENCE_MEAN.blocks,
        reference_mean=_REFERENCE_MEAN,
        levels=levels,
    )


def seconds_per_row(
    problem: Problem, solver: ROSC, *, engine: EngineName = "compiled", w0: Vector | None = None
) -> float:
    """Return the time of a step by rows drawn, from the first record of a solve to its last.

    Drawing the rows is in it. The reference batch, and what is compiled or computed before the first record,
    is not; records are few, since at each the engine has to give the average.
    """
    cost, reference = problem.inner.cost(solver.batch_size), problem.inner.cost(solver.reference_size)
    budget = reference + solver.n_steps * cost
    every = max(reference + cost, math.ceil(budget / _RECORDS))
    result = solve(problem, solver, budget, engine=engine, evaluate_every=every, chunk_size=solver.n_steps, w0=w0)
    first, last = result.history[0], result.history[-1]
    if first is last:
        raise SolveFailed(f"n_steps={solver.n_steps} is too few to time; use at least 2.")
    return float((last["seconds"] - first["seconds"]) / (last["samples"] - first["samples"]))


def solve(
    problem: Problem, method: str | Method, budget: int, *, engine: EngineName = "compiled", **options: Any
) -> Result:
    """Return a result that ran to its end; a half one would be timed as if it were whole."""
    result = minimize(problem, method, budget, seed=0, engine=engine, **options)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if result.status not in {Status.FINISHED, Status.BUDGET_SPENT}:
        raise SolveFailed(result.message)
    return result


def share_truncated(problem: Problem, solver: ROSC) -> float:
    """Return the share of the steps in which z is truncated."""
    budget = problem.inner.cost(solver.reference_size) + solver.n_steps * problem.inner.cost(solver.batch_size)
    return solve(problem, solver, budget, chunk_size=solver.n_steps).truncated_z


def truncating(problem: Problem, n_rows: int) -> ROSC:
    """Return a ROSC in which about `TRUNCATED_SHARE` of the steps have z truncated.

    Its steps are so short that w stays where it is, and with it the share.
    """
    low, high = 1e-3, LOOSE.slack_z
    for _ in range(_BISECTIONS):
        levels = Levels(C_g=0.0, L_g=0.0, slack_y=LOOSE.slack_y, slack_z=math.sqrt(low * high))
        solver = rosc(n_rows, problem, levels=levels, step_size=SHORT_STEP)
        too_many = share_truncated(problem, solver) > TRUNCATED_SHARE
        low, high = (levels.slack_z, high) if too_many else (low, levels.slack_z)
    return solver
