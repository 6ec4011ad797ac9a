"""Parts of problems and solvers that the kernels lack, by what the parts declare. Imports no numba."""

from collections.abc import Iterator

import numpy as np

from stoic.codes import own
from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.protocols import AnyInner
from stoic.regularizers import LeavingLast, Weighted
from stoic.solvers.base import AnySolver
from stoic.solvers.composite import Composite


def missing(solver: AnySolver, problem: Problem, inner: AnyInner) -> list[str]:
    """Return the parts of a solver and a problem that the kernels lack; none if kernels can run them."""
    bare = problem.regularizer.regularizer if isinstance(problem.regularizer, LeavingLast) else problem.regularizer
    return missing_parts(problem, inner) or sorted({*_reasons(solver, is_weighted=isinstance(bare, Weighted))})


def missing_parts(problem: Problem, inner: AnyInner) -> list[str]:
    """Return the parts of a problem that the kernels lack."""
    if type(inner) is not GroupLoss:
        return [f"the inner part {inner!r} (only GroupLoss is compiled)"]
    is_dense = isinstance(inner.X, np.ndarray)
    if inner.is_standardized and not is_dense:
        return [f"the columns of {inner!r}, which are centered and scaled without being formed"]
    regularizer = problem.regularizer
    bare = regularizer.regularizer if isinstance(regularizer, LeavingLast) else regularizer
    if isinstance(bare, Weighted) and not is_dense:
        return ["weights of a penalty for each column of a CSR matrix"]
    parts = [("loss", inner.loss, inner.loss), ("outer function", problem.outer, problem.outer)]
    parts.append(("regularizer", bare, regularizer))
    return [f"the {kind} {shown!r}" for kind, part, shown in parts if own(part, "code") is None]


def _reasons(solver: AnySolver, *, is_anchored: bool = False, is_weighted: bool = False) -> Iterator[str]:
    """Yield what the kernels lack of a solver, or of those that a composite one runs; they know one anchor."""
    if isinstance(solver, Composite):
        for part, anchors in solver.solvers():
            if anchors and is_anchored:
                yield "a proxBoost in proxBoost"
            else:
                yield from _reasons(part, is_anchored=is_anchored or anchors, is_weighted=is_weighted)
    elif "kernel" not in vars(type(solver)):  # a subclass may take other steps
        yield f"the solver {type(solver).__name__}"
    elif is_weighted and solver.kernel == "civr":  # type: ignore[attr-defined]
        yield "weights of a penalty for each column in CIVR"
    elif getattr(solver, "kernel", None) is None:
        yield f"the mean {getattr(solver, 'mean', None)!r} in {type(solver).__name__}"
