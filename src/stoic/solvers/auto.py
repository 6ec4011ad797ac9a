"""The default method: it looks at the problem and the budget, and takes the solver that serves them."""

import logging
from dataclasses import dataclass

from stoic.errors import IncompatibleParts
from stoic.pilot import Pilot
from stoic.problem import Problem
from stoic.solvers.base import AnySolver, Method, Recipe, method
from stoic.solvers.group_sampling import groups_drawn
from stoic.solvers.newton import Newton
from stoic.solvers.rrosc import RROSCTracked
from stoic.solvers.sample_average import SampleAverage, takes_rows
from stoic.solvers.tracked_sox import TrackedSOX

_log = logging.getLogger("stoic")

KERNELS = ("compiled", "renumbered")  # engines of kernels; the second is an old name of the first
_LARGEST_JACOBIAN = 1 << 19  # numbers p·d of one draw, beyond which draws are not kept
_WIDE = 1000  # columns, beyond which the minimum over fresh rows would be that of their noise


@method("auto")
@dataclass(frozen=True)
class Auto(Recipe):
    r"""The default: the solver that fits the problem and the budget, said in one log line.

    **Algorithm.** In this order:

    1. `Newton`, where the data are finite, the budget allows to draw all of them once, and the parts have second
       derivatives: the exact optimum of the data.
    2. `SampleAverage` otherwise: draws are kept, and evaluated as often as it takes. Its last sample is all data
       where the budget allows that.
    3. `RROSCTracked`, where draws are not kept: fresh rows of more than 1,000 columns; draws of other parts whose
       Jacobian has more than half a million entries; or where the compiled engine is asked for. A step costs what
       its rows cost. `TrackedSOX` takes its place with more than 64 groups that can be drawn without each other.

    ``result.solver`` is what was taken. Nothing is random in the choice.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, X @ [1.0, 2.0], [0, 0, 1, 1]), stoic.LogSumExp(1.0))
    >>> stoic.Auto().for_problem(problem, budget=100)
    Newton(n_steps=200, gap=None)
    >>> stoic.Auto().for_problem(problem, budget=3)
    SampleAverage(n_draws=1, everything=False)
    """

    def for_problem(self, problem: Problem, budget: int, engine: str = "auto") -> Method:
        """Return the solver that serves a problem at a budget, on an engine."""
        solver, reason = _choice(problem, budget, engine)
        _log.info("auto takes %s: %s", type(solver).__name__, reason)
        return solver

    def tuned(self, pilot: Pilot) -> AnySolver:
        """Return what `RROSCTracked` becomes; a pilot alone does not know the problem."""
        return RROSCTracked().tuned(pilot)


def _choice(problem: Problem, budget: int, engine: str) -> tuple[Method, str]:
    n = problem.inner.n_samples
    is_finite = n is not None and not getattr(problem.inner, "is_fresh", False)
    has_all = is_finite and n is not None and n <= budget
    if has_all and engine not in KERNELS and _takes_newton(problem):
        return Newton(), f"the budget of {budget} allows to draw all {n} samples"
    reason = "the compiled engine was asked for" if engine in KERNELS else _too_wide(problem, is_finite)
    if reason:
        return _by_steps(problem, reason)
    if has_all:
        return SampleAverage(everything=True), f"the budget of {budget} allows to draw all {n} samples"
    solver = SampleAverage().for_problem(problem, budget)
    if is_finite:
        return solver, f"the budget of {budget} allows to draw a part of the {n} samples"
    return solver, "samples are fresh; they are kept, and evaluated as often as it takes"


def _too_wide(problem: Problem, is_finite: bool) -> str:
    """Return why draws should not be kept, if so."""
    p, d = problem.inner.shape
    are_rows = takes_rows(problem)
    if are_rows and not is_finite and d > _WIDE:
        return f"fresh rows have {d} columns: the minimum over some would be that of their noise"
    if not are_rows and p * d > _LARGEST_JACOBIAN:
        return f"the Jacobian of a draw has {p} × {d} entries, too many to keep draws"
    return ""


def _by_steps(problem: Problem, reason: str) -> tuple[Method, str]:
    """Return a method that keeps no draws, which draws few of many groups a step where it can."""
    p = problem.inner.shape[0]
    if groups_drawn(problem.inner, None) < p:
        return TrackedSOX(), f"{reason}, and few of the {p} groups are drawn a step"
    return RROSCTracked(), reason


def _takes_newton(problem: Problem) -> bool:
    try:
        Newton().check(problem)
    except IncompatibleParts:
        return False
    return True
