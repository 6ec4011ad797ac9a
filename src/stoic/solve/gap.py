"""The duality gap of an answer, as a record of the history has it."""

from collections.abc import Callable

from stoic.certificate.duality import duality_gap
from stoic.certificate.linear_models import unknown_convexity
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.result import Record
from stoic.solvers import AnySolver


def gap_record(problem: Problem, solver: AnySolver, answer: Callable[[], Vector]) -> Record:
    """Return the duality gap of the answer where each step goes through all data.

    It is a bound for certain only where f∘g is known to be convex; elsewhere it is left to certificates.
    """
    if not getattr(solver, "uses_all_data", False) or unknown_convexity(problem):
        return {}
    return {"duality_gap": duality_gap(problem, answer())}
