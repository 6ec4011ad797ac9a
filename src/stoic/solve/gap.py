"""The duality gap of an answer, as a record of the history has it."""

import math
from collections.abc import Callable

from stoic.certificate.duality import duality_gap
from stoic.certificate.linear_models import unknown_convexity
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.result import Record
from stoic.solvers import AnySolver
from stoic.solvers.base import Settings


def gap_record(problem: Problem, solver: AnySolver, answer: Callable[[], Vector], *, is_last: bool) -> Record:
    """Return the duality gap where each step uses all data and f∘g is convex.

    Where a pass takes long it is inf before the last record.
    """
    if not getattr(solver, "uses_all_data", False) or unknown_convexity(problem):
        return {}
    if not is_last and isinstance(solver, Settings) and not solver.looks_often(problem):
        return {"duality_gap": math.inf}
    return {"duality_gap": duality_gap(problem, answer())}
