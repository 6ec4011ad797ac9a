"""The rows of a pilot, and the start that they speak for: w₀, or a robust optimum of their own."""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import bdtrc

from stoic.means import smallest_ball_index
from stoic.pilot.comparing import rise
from stoic.pilot.fixed_sample import Pooled, Sample, draw_sample, length
from stoic.pilot.probes import descend, first_smoothness, is_large
from stoic.problem import Problem
from stoic.protocols import Vector

_PARTS = 5
_SINGLE_DRAWS = 32
_LARGEST, _FEWEST = 200, 3  # draws that descents are fitted to
_FULL_SHARE, _SMALL_SHARE, _SMALL = 50, 20, 24  # of the budget, and of one that allows few draws only
_BETTER = 1e-3  # probability that a start that is no better is taken for one


class PilotRows(NamedTuple):
    """The samples of a pilot: parts that descents are fitted to, and single draws that none is fitted to."""

    parts: list[Sample]
    singles: list[Sample]


def pilot_size(n_draws: int) -> int:
    """Return the size of a pilot where the budget allows so many draws of size 1.

    It is a fiftieth, 200 at most; where that is less than 24 draws a twentieth, up to 24; and never less than 3.

    Examples
    --------
    >>> [pilot_size(n) for n in (20, 250, 1000, 5000, 10**6)]
    [3, 12, 24, 100, 200]
    """
    return max(_FEWEST, min(_LARGEST, n_draws // _FULL_SHARE), min(_SMALL, n_draws // _SMALL_SHARE))


def pilot_cost(size: int) -> int:
    """Return how many draws of size 1 a pilot of `size` amounts to."""
    return size + min(_SINGLE_DRAWS, size)


def draw_pilot(problem: Problem, rng: Generator, size: int) -> PilotRows:
    """Draw the rows of a pilot of `size`."""
    n_parts = min(_PARTS, size)
    sizes = [size // n_parts + (k < size % n_parts) for k in range(n_parts)]
    parts = [draw_sample(problem, n, rng) for n in sizes]
    return PilotRows(parts, [draw_sample(problem, 1, rng) for _ in range(min(_SINGLE_DRAWS, size))])


class Found(NamedTuple):
    """The start, and what it is measured against: one of the parts, and the optimum of that part."""

    start: Vector
    sample: Sample
    optimum: Vector


@np.errstate(all="ignore")
def find_start(rows: PilotRows, w0: Vector, *, moves: bool = True) -> Found:
    """Return the start that the rows of a pilot speak for.

    Each part is minimized. The optimum in the middle is the center of the smallest ball with half of them. There
    are two candidates: the mean of the optima in that ball, which a wild sample does not move, since it spoils one
    part; and the optimum of all parts together, which is better where there are few rows. The better one on the
    single draws, which nothing was fitted to, is the start where these leave no doubt that it is better than w₀;
    else w₀ is.
    """
    parts = rows.parts
    L, optima = first_smoothness(parts[0], w0), []
    for part in parts:
        optima.append(descend(part, w0, L))
        part.forget()
    far = np.array([[length(one - other) for one in optima] for other in optima])
    middle = smallest_ball_index(np.where(np.isnan(far), np.inf, far))
    if moves and rows.singles and length(optima[middle] - w0) > 0.0:
        near = np.argsort(far[middle], kind="stable")[: (len(parts) + 1) // 2]
        candidate = sum(optima[k] for k in near if k != middle) + optima[middle]
        candidate = _better_one(rows, candidate / len(near), L)
        if is_better(rows.singles, candidate, w0):
            order = sorted(range(len(parts)), key=lambda k: length(optima[k] - candidate))
            usual = order[len(order) // 2]
            return Found(candidate, parts[usual], optima[usual])
    return Found(w0, parts[middle], optima[middle])


def _better_one(rows: PilotRows, candidate: Vector, L: float) -> Vector:
    """Return a candidate, or the optimum of all parts, unless these are large, if single draws prefer it."""
    if is_large(rows.parts[0]):
        return candidate
    whole, judge = Pooled(rows.parts), Pooled(rows.singles)
    pooled = descend(whole, candidate, L)
    whole.forget()
    return pooled if judge.objective(pooled) < judge.objective(candidate) else candidate


def is_better(singles: list[Sample], w: Vector, v: Vector) -> bool:
    """Whether single draws leave no doubt that w is better than v.

    By their differences, see `rise`; or since w is better on nearly each of them alone, which tells where the
    worst of many groups makes differences wild.
    """
    if rise(Pooled(singles), w, v, _BETTER) > 0.0:
        return True
    n_better = sum(one.objective(w) < one.objective(v) for one in singles)
    return float(bdtrc(n_better - 1, len(singles), 0.5)) < _BETTER if n_better > 0 else False
