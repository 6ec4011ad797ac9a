r"""Linear models in their dual form: weighted rows, slopes θ of the losses, and v = Σ c θ x + e.

Where f is convex with :math:`q = \nabla f(g(w)) \ge 0`, F lies above the function with f replaced by its tangent,
:math:`\sum_j c_j \ell(x_j^\top u, y_j) + \langle e, u \rangle + r(u)` but for a constant, and they meet at u = w.
Here :math:`c_j` is the weight of row j in its group times q of the group, and e = 0 but for moments of returns.
"""

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div, softmax

from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.metered import Metered
from stoic.inners.moments import Moments
from stoic.outers import MeanVariance
from stoic.problem import Problem
from stoic.protocols import AnyInner, Array, Vector

_ENTRIES = 1 << 20  # of rows and coordinates that are held at a time


class LinearModel(ABC):
    """The rows of a problem at w, with what its dual needs: weights, slopes, and products.

    Attributes
    ----------
    weights : array of shape (n,)
        c.
    slope : array of shape (d,) or 0
        e.
    prediction : array of shape (n,), or (n, K) with K classes
        What the model predicts at w.
    size : float
        Σ c |ℓ|, of which rounding errors are parts.
    """

    weights: Vector
    slope: Vector | float = 0.0
    prediction: Array
    size: float

    @abstractmethod
    def slopes(self) -> Array:
        """Return θ: the derivatives of the losses in the predictions."""

    @abstractmethod
    def bent(self, shift: Array, floor: float = 0.0) -> Array:
        """Return the second derivatives of the losses, with a part of the largest added, times a change of t."""

    @abstractmethod
    def gaps(self, slopes: Array) -> Vector:
        """Return ℓ + ℓ* − θt of each row, for slopes in their domain."""

    @abstractmethod
    def shrinkage(self, slopes: Array) -> float:
        """Return the largest s in [0, 1] with all sθ in the domain of ℓ*."""

    @abstractmethod
    def predict(self, direction: Vector) -> Array:
        """Return the predictions of another w; they are linear in it."""

    @abstractmethod
    def sums(self, terms: Array) -> Vector:
        """Return the sum of the rows times the terms."""

    @abstractmethod
    def squares(self) -> Vector:
        """Return Σ c x², column by column."""

    @abstractmethod
    def hessian(self, floor: float = 0.0) -> Array:
        """Return the sum of c times these second derivatives times outer products of rows, of shape (d, d)."""

    def hessian_block(self, chosen: NDArray[np.intp], floor: float = 0.0) -> Array:
        """Return the rows and columns of `hessian` for some coordinates."""
        return self.hessian(floor)[np.ix_(chosen, chosen)]

    def combine(self, slopes: Array) -> Vector:
        """Return Σ c θ x + e."""
        return self.sums((slopes.T * self.weights).T) + self.slope

    def total_gap(self, slopes: Array) -> float:
        """Return Σ c (ℓ + ℓ* − θt); a row that weighs nothing counts nothing."""
        counts = self.weights > 0.0
        return float(self.weights[counts] @ np.maximum(self.gaps(slopes)[counts], 0.0))


class GroupLossModel(LinearModel):
    """The rows of a `GroupLoss` whose loss has a conjugate."""

    def __init__(self, inner: GroupLoss, w: Vector, q: Vector) -> None:
        self.inner, self.loss, self.y, self.rows = inner, cast("Any", inner.loss), inner.y, inner.everything()
        self.weights = inner.grouped_rows.weighed(q.take(inner.grouped_rows.codes))
        self.prediction = inner.predict(w, self.rows)
        counted = self.weights > 0.0  # a loss that no weight counts may be infinite
        losses = self.loss.value(self.prediction[counted], self.y[counted])
        self.size = float(self.weights[counted] @ losses)

    def slopes(self) -> Array:
        """Return ℓ′."""
        return cast("Array", self.loss.derivative(self.prediction, self.y))

    def bent(self, shift: Array, floor: float = 0.0) -> Array:
        """Return ℓ″ times the change."""
        second = self.loss.second_derivative(self.prediction, self.y) + floor * self.loss.curvature
        return cast("Array", second * shift)

    def gaps(self, slopes: Array) -> Vector:
        """Return `conjugate_gap` of the loss."""
        return cast("Vector", self.loss.conjugate_gap(slopes, self.prediction, self.y))

    def shrinkage(self, slopes: Array) -> float:
        """Return the largest s in [0, 1] that keeps sθ in the range of slopes."""
        low, high = self.loss.slope_range(self.y)
        counts = (self.weights > 0.0) & (slopes != 0.0)
        theta = slopes[counts]
        ends = np.where(theta > 0.0, high[counts], low[counts])
        return float(np.minimum.reduce(np.maximum(ends / theta, 0.0), initial=1.0))

    def predict(self, direction: Vector) -> Array:
        """Return the predictions."""
        return self.inner.predict(direction, self.rows)

    def sums(self, terms: Array) -> Vector:
        """Return the combination of all rows."""
        return self.inner.combine(terms, self.rows)

    def squares(self) -> Vector:
        """Return Σ c x²."""
        return self.inner.gram_diagonal(self.weights)

    def hessian(self, floor: float = 0.0) -> Array:
        """Return Σ c ℓ″ x xᵀ."""
        return self.inner.gram(self.weights * self.bent(np.ones(len(self.y)), floor))


class SoftmaxModel(LinearModel):
    """The rows of a `GroupSoftmax`: a slope of a row is a probability vector less the one of its class."""

    def __init__(self, inner: GroupSoftmax, w: Vector, q: Vector) -> None:
        self.inner, self.rows = inner, inner.everything()
        self.weights = inner.one.grouped_rows.weighed(q.take(inner.one.grouped_rows.codes))
        self.prediction = inner.predict(w, self.rows)
        self.share: Array = softmax(self.prediction, axis=1)
        self.own = np.arange(inner.n_classes) == inner.y[:, None]
        self.q, self.w = q, w
        scores = np.abs(self.prediction).max(axis=1)  # log Σ exp(t) − t_y loses digits of t
        self.size = float(self.weights @ (inner.losses(w) + np.where(self.weights > 0.0, scores, 0.0)))

    def slopes(self) -> Array:
        """Return the probabilities less 1 for the class of the row."""
        return np.asarray(self.share - self.own)

    def bent(self, shift: Array, floor: float = 0.0) -> Array:  # noqa: ARG002 - slopes have to sum to zero
        """Return (diag p − ppᵀ) times the change."""
        return np.asarray(self.share * (shift - (self.share * shift).sum(axis=1, keepdims=True)))

    def gaps(self, slopes: Array) -> Vector:
        """Return the relative entropy of the slopes' probabilities to those at w."""
        gaps: Vector = kl_div(slopes + self.own, self.share).sum(axis=1)
        return gaps

    def shrinkage(self, slopes: Array) -> float:
        """Return the largest s that keeps probabilities >= 0; 0 where a slope to another class is negative."""
        theta = slopes[self.weights > 0.0]
        own = self.own[self.weights > 0.0]
        if (theta[~own] < 0.0).any():
            return 0.0
        return float(np.minimum.reduce(1.0 / np.maximum(-theta[own], 1.0), initial=1.0))

    def predict(self, direction: Vector) -> Array:
        """Return the scores."""
        return self.inner.predict(direction, self.rows)

    def sums(self, terms: Array) -> Vector:
        """Return the combination of all rows, class by class."""
        return self.inner.combine(terms, self.rows)

    def squares(self) -> Vector:
        """Return Σ c x², the same for all classes."""
        return np.repeat(self.inner.one.gram_diagonal(self.weights), self.inner.n_classes)

    def hessian(self, floor: float = 0.0) -> Array:  # noqa: ARG002
        """Return Σ q_i ∇²g_i."""
        return self.inner.hessian(self.w, self.rows, self.q)

    def hessian_block(self, chosen: NDArray[np.intp], floor: float = 0.0) -> Array:  # noqa: ARG002
        """Return some of Σ q_i ∇²g_i; the rest, which takes K² products where K is large, is not formed."""
        places, classes = np.divmod(chosen, self.inner.n_classes)
        used, which = np.unique(places, return_inverse=True)
        columns = np.stack([self._column(j) for j in used], axis=1)
        block = np.zeros((chosen.size, chosen.size))
        step = max(1, _ENTRIES // chosen.size)
        for first in range(0, len(columns), step):
            part = slice(first, first + step)
            x, p, c = columns[part][:, which], self.share[part][:, classes], self.weights[part, None]
            own = (x * p * c).T @ x
            block += np.where(classes[:, None] == classes, own, 0.0) - (x * p * c).T @ (x * p)
        return block

    def _column(self, j: int) -> Vector:
        """Return an entry of all rows."""
        one = np.zeros(self.inner.one.shape[1])
        one[j] = 1.0
        return self.inner.one.predict(one, self.rows)


class VarianceModel(LinearModel):
    """Returns about their mean: weight·E(xᵀw − E xᵀw)² − E xᵀw, which `MeanVariance` makes of `Moments`."""

    def __init__(self, inner: Moments, w: Vector, weight: float) -> None:
        self.inner, self.rows, n = inner, inner.everything(), inner.n_samples
        self.weights = np.full(n, weight / n)
        self.mean = inner.combine(np.full(n, 1.0 / n), self.rows)
        self.slope = -self.mean
        self.prediction = self.predict(w)
        returns = inner.predict(w, self.rows)
        self.size = float(self.weights @ np.square(returns)) + abs(float(self.mean @ w))

    def slopes(self) -> Array:
        """Return 2t."""
        return 2.0 * self.prediction

    def bent(self, shift: Array, floor: float = 0.0) -> Array:  # noqa: ARG002 - all rows have the largest
        """Return twice the change."""
        return 2.0 * shift

    def gaps(self, slopes: Array) -> Vector:
        """Return (t − θ/2)²."""
        return np.square(self.prediction - 0.5 * slopes)

    def shrinkage(self, slopes: Array) -> float:  # noqa: ARG002
        """Return 1: every slope is in the domain."""
        return 1.0

    def predict(self, direction: Vector) -> Array:
        """Return the returns about their mean."""
        return self.inner.predict(direction, self.rows) - float(self.mean @ direction)

    def sums(self, terms: Array) -> Vector:
        """Return the sum of the rows, less their mean, times the terms."""
        return self.inner.combine(terms, self.rows) - float(terms.sum()) * self.mean

    def squares(self) -> Vector:
        """Return weight·E x², an upper bound."""
        return self.inner.gram_diagonal(self.weights)

    def hessian(self, floor: float = 0.0) -> Array:  # noqa: ARG002
        """Return twice the weight times the covariance."""
        weight = float(self.weights.sum())
        return 2.0 * (self.inner.gram(self.weights) - weight * np.outer(self.mean, self.mean))


def inner_of(problem: Problem) -> AnyInner:
    """Return the inner part itself, without the meter that a solve has around it."""
    return problem.inner.inner if isinstance(problem.inner, Metered) else problem.inner


def linear_model(problem: Problem, w: Vector) -> LinearModel | None:
    """Return the rows of a problem at w; None where the parts are not known to be those of a linear model."""
    inner = inner_of(problem)
    if isinstance(inner, Moments) and isinstance(problem.outer, MeanVariance):
        return VarianceModel(inner, w, problem.outer.weight)
    q = problem.outer.gradient(inner.value(w, inner.everything())[0])
    if q.min() < 0.0:
        return None
    if isinstance(inner, GroupSoftmax):
        return SoftmaxModel(inner, w, q)
    if isinstance(inner, GroupLoss) and hasattr(inner.loss, "conjugate_gap"):
        return GroupLossModel(inner, w, q)
    return None


def unknown_convexity(problem: Problem) -> str:
    """Return the assumption under which f∘g is convex, as a clause; empty where the parts make it so.

    A linear model with convex losses is convex in each group, and f of it is where f is convex and does not fall.
    """
    inner = inner_of(problem)
    if isinstance(inner, Moments) and isinstance(problem.outer, MeanVariance):
        return ""
    is_known = isinstance(inner, GroupSoftmax) or hasattr(getattr(inner, "loss", None), "conjugate_gap")
    if not is_known or problem.outer.gradient(np.zeros(inner.shape[0])).min() < 0.0:
        return "f∘g is convex"
    return "" if getattr(problem.outer, "is_convex", False) else "f is convex and does not fall in any argument"
