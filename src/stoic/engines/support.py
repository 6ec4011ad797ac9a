"""Parts of problems and solvers that the kernels lack, by what the parts declare. Imports no numba."""

from collections.abc import Iterator

from stoic.codes import own
from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.protocols import AnyInner
from stoic.regularizers import LeavingLast
from stoic.solvers.base import AnySolver
from stoic.solvers.composite import Composite


def missing(solver: AnySolver, problem: Problem, inner: AnyInner) -> list[str]:
    """Return the parts of a solver and a problem that the kernels lack; none if kernels can run them."""
    return missing_parts(problem, inner) or sorted(set(_reasons(solver)))


def missing_parts(problem: Problem, inner: AnyInner) -> list[str]:
    """Return the parts of a problem that the kernels lack."""
    if type(inner) is not GroupLoss:
        return [f"the inner part {inner!r} (only GroupLoss is compiled)"]
    if inner.is_standardized:
        return [f"the columns of {inner!r}, which are centered and scaled without being formed"]
    regularizer = problem.regularizer
    bare = regularizer.regularizer if isinstance(regularizer, LeavingLast) else regularizer
    parts = [("loss", inner.loss, inner.loss), ("outer function", problem.outer, problem.outer)]
    parts.append(("regularizer", bare, regularizer))
    return [f"the {kind} {shown!r}" for kind, part, shown in parts if own(part, "code") is None]


def _reasons(solver: AnySolver, *, is_anchored: bool = False) -> Iterator[str]:
    """Yield what the kernels lack of a solver, or of those that a composite one runs; they know one anchor."""
    if isinstance(solver, Composite):
        for part, anchors in solver.solvers():
            if anchors and is_anchored:
                yield "a proxBoost in proxBoost"
            else:
                yield from _reasons(part, is_anchored=is_anchored or anchors)
    elif "kernel" not in vars(type(solver)):  # a subclass may take other steps
        yield f"the solver {type(solver).__name__}"
    elif getattr(solver, "kernel", None) is None:
        yield f"the mean {getattr(solver, 'mean', None)!r} in {type(solver).__name__}"
