"""The robust sample average of a linear model: drawn rows, clipped by weights, and Newton's method on them."""

from typing import Any, cast

import numpy as np
from numpy.random import Generator

from stoic.errors import IncompatibleParts
from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.group_loss import GroupLoss
from stoic.inners.metered import Metered
from stoic.problem import Problem
from stoic.protocols import AnyInner, Vector
from stoic.solvers.newton import Newton
from stoic.solvers.sample_average.levels import group_deviations, widths

_MOST_STEPS, _MOST_PASSES = 60, 50  # and evaluations of all rows of a sample, which cannot tell more
_SETTLED = (
    0.02  # of the decrease that the first step on a sample promises, which is about what the sample can tell
)
_ROUGH = 0.01  # of F: a start, near which rows are to be clipped
_UNLIMITED = 2**62


def takes_rows(problem: Problem) -> bool:
    """Whether the parts are those of a linear model that Newton's method takes."""
    inner = inner_of(problem)
    if type(inner) is not GroupLoss:
        return False
    try:
        Newton().check(problem.with_inner(inner))
    except IncompatibleParts:
        return False
    return True


def row_length(problem: Problem) -> float:
    """Return the numbers of a sample that is kept, on average."""
    X: Any = getattr(inner_of(problem), "X", None)
    if X is None:
        return float(problem.dimension)
    return max(1.0, float(X.nnz if hasattr(X, "nnz") else X.size) / float(X.shape[0]))


def inner_of(problem: Problem) -> AnyInner:
    """Return the inner part, without the meter around it."""
    return problem.inner.inner if isinstance(problem.inner, Metered) else problem.inner


def minimum_on_rows(
    problem: Problem,
    kept: tuple[tuple[Any, int], ...],
    w: Vector,
    rng: Generator,
    *,
    is_first: bool,
    is_last: bool,
) -> tuple[Vector, float]:
    """Return the minimum of the truncated means of drawn rows, from w on, and the share of them that were clipped.

    The rows are clipped around w, which is the answer to fewer of them; and again around what was found where w
    is no such answer yet, or no more rows will come.
    """
    inner, meter = cast("GroupLoss", inner_of(problem)), problem.inner
    drawn = np.concatenate([getattr(batch, "batch", batch).rows.ravel() for batch, _ in kept])
    numbers, times = np.unique(drawn, return_counts=True)
    counts = times.astype(float)
    some = inner.taken(numbers).with_weight(counts)
    clipped = 0.0
    for k in range(2 if is_first or is_last else 1):
        is_start = is_first and k == 0
        weights = np.ones(len(numbers)) if is_start else clipping_weights(some, w, counts)
        clipped = float(np.average(weights < 1.0, weights=counts))
        part = Metered(some.with_weight(counts * weights) if clipped else some, _UNLIMITED)
        w = _minimum(problem.with_inner(part), w, rng, is_settled=not is_start)
        if isinstance(meter, Metered):
            meter.charge(0, part.evaluations)
    return w, clipped


def clipping_weights(inner: GroupLoss, w: Vector, counts: Vector) -> Vector:
    """Return the weights in (0, 1] that clip slopes and losses of rows at their levels around w.

    A row counts with its slope times its length, columns in units of their root mean square, and with the distance
    of its loss from a robust mean of its group.
    """
    codes, p, batch = inner.grouped_rows.codes, inner.n_groups, inner.everything()
    prediction = inner.predict(w, batch)
    losses, slopes = inner.loss.value(prediction, inner.y), inner.loss.derivative(prediction, inner.y)
    wide = widths(np.bincount(codes, minlength=p).astype(float))[codes]  # a row that was drawn twice is one
    lengths = np.abs(slopes) * inner.row_lengths()
    middle = _robust_means(losses, codes, counts, p)
    weights = np.ones(len(counts))
    for far in (lengths, np.abs(losses - middle[codes])):
        level = wide * group_deviations(far, codes, counts, p)[codes]
        with np.errstate(invalid="ignore", divide="ignore"):
            shrunk = np.where(far > level, level / far, 1.0)
        weights = np.minimum(weights, np.nan_to_num(shrunk, nan=0.0))
    return np.where(level_is_usable(weights, codes, p)[codes], weights, 1.0)


def level_is_usable(weights: Vector, codes: IntArray, p: int) -> Any:
    """Return for each group whether weights are left."""
    return sums_by(codes, weights, p) > 0.0


def _robust_means(losses: Vector, codes: IntArray, counts: Vector, p: int) -> Vector:
    """Return the means of groups without the part of a loss beyond ten robust deviations from zero."""
    edge = 10.0 * group_deviations(losses, codes, counts, p)[codes]
    kept = np.minimum(np.nan_to_num(losses, nan=0.0, posinf=np.finfo(float).max), edge)
    return sums_by(codes, counts * kept, p) / sums_by(codes, counts, p)


def _minimum(problem: Problem, w: Vector, rng: Generator, *, is_settled: bool) -> Vector:
    """Return the minimum to the accuracy that the rows can tell; not settled: roughly, from a start far away."""
    solver, meter = Newton(_MOST_STEPS), cast("Metered", problem.inner)
    state: Any = solver.init(problem, w, rng)
    first = None
    while not solver.finished(state):
        state, _ = solver.step(problem, state, rng)
        if state.point is None:  # numbers too large to go on
            break
        first = state.promised if first is None else first
        enough = _SETTLED * first if is_settled else _ROUGH * state.point.size
        is_long = meter.evaluations > _MOST_PASSES * (problem.inner.n_samples or 1)
        if state.promised <= enough or is_long:
            break
    return np.asarray(state.w)
