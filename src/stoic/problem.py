"""The problem (1): minimize f(E[g(w; ξ)]) + r(w)."""

import copy
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stoic.checks import refuse_masks
from stoic.errors import IncompatibleParts, InvalidProblem
from stoic.guards import GuardedOuter, GuardedRegularizer, InnerGuard, is_foreign
from stoic.protocols import AnyInner, Outer, Regularizer, Vector
from stoic.regularizers import LeavingLast, Zero


@dataclass(frozen=True)
class Problem:
    r"""Minimize :math:`F(w) = f(\mathrm E_\xi[g(w; \xi)]) + r(w)` over :math:`w \in \mathbb R^d`.

    Parameters
    ----------
    inner : Inner
        g, for example `GroupLoss` or `FunctionInner`.
    outer : Outer
        f, for example `LogSumExp`.
    regularizer : Regularizer, default Zero()
        r. Where the inner part has an intercept, r acts on the other coordinates only.

    Raises
    ------
    IncompatibleParts
        If f cannot take what g gives.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> X, y = np.eye(4, 2), np.arange(4.0)
    >>> problem = stoic.Problem(stoic.GroupLoss(X, y, [0, 0, 1, 1]), stoic.LogSumExp(10.0), stoic.L2(0.1))
    >>> round(problem.objective(np.zeros(2)), 4)
    3.9434
    """

    inner: AnyInner
    outer: Outer
    regularizer: Regularizer = field(default_factory=Zero)

    def __post_init__(self) -> None:
        if self.inner.n_unpenalized and not isinstance(self.regularizer, LeavingLast):
            object.__setattr__(self, "regularizer", LeavingLast(self.regularizer, self.inner.n_unpenalized))
        self._check_that_parts_fit()

    def _check_that_parts_fit(self) -> None:
        p, d = self.inner.shape
        try:
            gradient = np.asarray(self.outer.gradient(np.zeros(p)))
        except ValueError as error:
            raise IncompatibleParts(
                f"{self.outer} does not take the {p} outputs of the inner part: {error}"
            ) from error
        if gradient.shape != (p,):
            raise IncompatibleParts(
                f"{self.outer} has a gradient of shape {gradient.shape} where the inner part has {p} outputs; "
                f"the outer function must map R^{p} to R."
            )
        try:
            self.regularizer.prox(np.zeros(d), 1.0)
        except ValueError as error:
            raise IncompatibleParts(f"{self.regularizer} does not fit w in R^{d}: {error}") from error

    @property
    def dimension(self) -> int:
        """The number d of variables."""
        return self.inner.shape[1]

    @property
    def has_linear_outer(self) -> bool:
        """Whether f is declared linear: (1) is then a plain stochastic problem."""
        return getattr(self.outer, "smoothness", math.inf) == 0.0

    @property
    def strong_convexity(self) -> float:
        """The modulus that the regularizer gives F for certain."""
        return float(getattr(self.regularizer, "strong_convexity", 0.0))

    def with_inner(self, inner: AnyInner) -> "Problem":
        """Return the problem with another inner part of the same shape."""
        return self._with("inner", inner)

    def with_regularizer(self, regularizer: Regularizer) -> "Problem":
        """Return the problem with another regularizer, which acts on every coordinate."""
        return self._with("regularizer", regularizer)

    def _with(self, name: str, part: object) -> "Problem":
        other = copy.copy(self)
        other.__dict__.pop("_data", None)
        object.__setattr__(other, name, part)
        return other

    @cached_property
    def _data(self) -> Any:
        if self.inner.n_samples is None:
            raise InvalidProblem(
                f"{self.inner} is a stream, so the exact objective is not known; estimate it from a batch instead."
            )
        return self.inner.everything()

    def objective(self, w: Vector) -> float:
        """Return F(w), exact over the data."""
        return self.smooth(w) + self.watched().regularizer.value(w)

    def smooth(self, w: Vector) -> float:
        """Return f(g(w)), exact over the data."""
        w = self.check_point("w", w)
        with np.errstate(over="ignore"):
            return self.watched().outer.value(self._over_all_data("value", w)[0])

    def gradient(self, w: Vector) -> Vector:
        """Return ∇(f∘g)(w), the gradient of the smooth part, exact over the data."""
        w = self.check_point("w", w)
        with np.errstate(over="ignore"):
            q = self.watched().outer.gradient(self._over_all_data("value", w)[0])
            gradient: Vector = self._over_all_data("vjp", w, q)
        return gradient

    def _over_all_data(self, name: str, w: Vector, q: Vector | None = None) -> Any:
        """Return g or zᵀq over all data; raise `InvalidProblem` where a function of the user's is not finite."""
        returned = getattr(self.inner, name)(w, self._data, *(() if q is None else (q,)))
        if is_foreign(self.inner):
            InnerGuard(self.inner, self.start(None)).check(name, returned, w, self._data, q=q)
        return returned

    def watched(self) -> "Problem":
        """Return the problem with guards around f and r where they are the user's own: see `InnerGuard`."""
        other = self._with("outer", GuardedOuter(self.outer)) if is_foreign(self.outer) else self
        if is_foreign(self.regularizer):
            other = other.with_regularizer(GuardedRegularizer(self.regularizer))
        return other

    def batch_gradient(self, w: Vector, batch: Any) -> Vector:
        """Return ∇(f∘g)(w) with plain means over one batch for g and ∇g alike."""
        return self.inner.vjp(w, batch, self.outer.gradient(self.inner.value(w, batch)[0]))

    def start(self, w0: Vector | None) -> Vector:
        """Return a copy of `w0` after checks; by default the point of dom r nearest to zero."""
        if w0 is None:
            return self.watched().regularizer.prox(np.zeros(self.dimension), 1.0) * 1.0
        w0 = self.check_point("w0", w0).copy()
        if not math.isfinite(self.regularizer.value(w0)):
            raise InvalidProblem(
                f"w0 is outside the domain of {self.regularizer}; start from regularizer.prox(w0, 1.0) instead."
            )
        return w0

    def check_point(self, name: str, w: Vector) -> Vector:
        """Return `w` as a float vector of length d with finite entries, or raise."""
        refuse_masks(**{name: w})
        given = np.asarray(w)
        if given.dtype.kind not in "biuf":
            raise InvalidProblem(f"{name} has dtype {given.dtype}; give {self.dimension} real numbers.")
        w = given.astype(np.float64, copy=False)
        if w.shape != (self.dimension,):
            raise InvalidProblem(f"{name} has shape {w.shape}, but the problem has {self.dimension} variables.")
        if not np.isfinite(w).all():
            raise InvalidProblem(f"{name}[{int(np.argmin(np.isfinite(w)))}] is not finite.")
        return w
