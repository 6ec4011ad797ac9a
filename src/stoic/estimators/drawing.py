"""Draws from standardized CSR rows: kernels take rows scaled in a copy, and the intercept takes what is left.

With an intercept b that nothing penalizes, the model wᵀ(x − c)/s + b is wᵀx/s + b′, where b′ = b − wᵀc/s: the same
problem in another variable.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from stoic.estimators.scales import Scaling, scaled_csr
from stoic.inners.group_loss import GroupLoss
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.regularizers import Anchored
from stoic.solve.driver import minimize
from stoic.solve.result import Result
from stoic.solvers import Method


class KernelRows:
    """A CSR matrix as kernels read it, and the way from a model of standardized rows to one of these, and back."""

    def __init__(self, X: Any, scaling: Scaling) -> None:
        self._given, self._scaling = X, scaling
        self._offset = scaling.center / scaling.scale

    @cached_property
    def matrix(self) -> Any:
        """The columns, scaled in a copy."""
        return scaled_csr(self._given, self._scaling.scale)

    def problem(self, problem: Problem) -> Problem:
        """Return the problem over these rows. The pull to a point is that of these models, which is another."""
        inner: Any = problem.inner
        moved = problem.with_inner(inner.with_matrix(self.matrix))
        regularizer = problem.regularizer
        if inner.intercept and isinstance(regularizer, Anchored):
            anchor = Anchored(regularizer.regularizer, self.forward(regularizer.center), regularizer.weight)
            return moved.with_regularizer(anchor)
        return moved

    def forward(self, w: Vector) -> Vector:
        """Return the model of these rows that predicts what w does of standardized ones."""
        return self._with_intercept(w, -1.0)

    def back(self, w: Vector) -> Vector:
        """Return the model of standardized rows that predicts what w does of these."""
        return self._with_intercept(w, 1.0)

    def _with_intercept(self, w: Vector, sign: float) -> Vector:
        d = len(self._offset)
        return np.append(w[:d], w[d:] + sign * (self._offset @ w[:d]))


def minimize_by_draws(
    rows: KernelRows | None,
    problem: Problem,
    method: str | Method,
    budget: int,
    *,
    w0: Vector,
    observers: dict[str, Callable[[Vector], float]],
    **options: Any,
) -> Result:
    """Return what `minimize` does, by way of these rows where there are some, of which kernels know the kind."""
    if rows is None or not isinstance(problem.inner, GroupLoss):
        return minimize(problem, method, budget, w0=w0, observers=observers, scale=None, **options)
    watched = {name: lambda w, look=look: look(rows.back(w)) for name, look in observers.items()}
    result = minimize(
        rows.problem(problem), method, budget, w0=rows.forward(w0), observers=watched, scale=None, **options
    )
    return replace(result, w=rows.back(result.w))
