"""Corrections of the shared model, one for each group: linear in columns, or a number for each class."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, softmax

from stoic.inners.blocks import IntArray
from stoic.losses import Loss
from stoic.protocols import Array, Vector

_MOST_STEPS, _MOST_HALVINGS, _SETTLED = 8, 6, 1e-5
_WORTH_A_CALL = 1 << 11  # products of a group for which a call of BLAS pays
_CHUNK = 1 << 22  # numbers of outer products that are formed at a time


@dataclass(frozen=True)
class Corrections(ABC):
    """Corrections of the shared model, one for each group, on rows in the order of their groups."""

    shared: Array
    y: Vector
    codes: IntArray
    n_groups: int

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number m of parameters of a correction."""

    @abstractmethod
    def losses(self, theta: Array) -> Vector:
        """Return the loss of each row, with corrections θ of shape (p, m)."""

    @abstractmethod
    def sizes(self, theta: Array) -> Vector:
        """Return the error of each row, in units of the targets."""

    @abstractmethod
    def derivatives(self, theta: Array, share: Vector) -> tuple[Array, Array]:
        """Return gradients (p, m) and Hessians (p, m, m) of the groups' sums of share times loss."""

    @cached_property
    def starts(self) -> IntArray:
        """Where the rows of each group begin."""
        return np.searchsorted(self.codes, np.arange(self.n_groups))

    def sums(self, terms: Array) -> Array:
        """Return the sums of terms, one a row, over each group."""
        return np.asarray(np.add.reduceat(terms, self.starts))

    def objective(self, theta: Array, share: Vector, ridge: Vector) -> Vector:
        """Return the penalized mean loss of each group."""
        penalty = 0.5 * ridge * np.square(theta).sum(axis=1)
        return np.asarray(self.sums(share * self.losses(theta)) + penalty)

    def fitted(self, theta: Array, share: Vector, ridge: Vector) -> Array:
        """Return the correction of each group, by Newton's method on all groups at once from θ on."""
        value = self.objective(theta, share, ridge)
        first = np.abs(value)
        for _ in range(_MOST_STEPS):
            theta, after = self._stepped(theta, value, share, ridge)
            is_settled = (value - after <= _SETTLED * first).all()
            value = after
            if is_settled:
                break
        return theta

    def _stepped(self, theta: Array, value: Vector, share: Vector, ridge: Vector) -> tuple[Array, Vector]:
        """Return the corrections after a Newton step, halved in each group until its objective falls."""
        gradient, hessian = self.derivatives(theta, share)
        diagonal = np.arange(self.n_parameters)
        hessian[:, diagonal, diagonal] += ridge[:, None]
        step = -np.linalg.solve(hessian, (gradient + ridge[:, None] * theta)[..., None])[..., 0]
        best, lowest = theta, value
        for halvings in range(_MOST_HALVINGS):
            moved = theta + 0.5**halvings * step
            found = self.objective(moved, share, ridge)
            is_better = (found < lowest) & (lowest == value)  # the first that falls
            best, lowest = np.where(is_better[:, None], moved, best), np.where(is_better, found, lowest)
            if (lowest < value).all():
                break
        return np.asarray(best), np.asarray(lowest)


@dataclass(frozen=True)
class LinearCorrections(Corrections):
    """Corrections θᵀa of a prediction, for columns a."""

    A: Array
    loss: Loss

    @property
    def n_parameters(self) -> int:
        """The number of columns."""
        return int(self.A.shape[1])

    def losses(self, theta: Array) -> Vector:
        """Return the loss of each row."""
        return self.loss.value(self._predict(theta), self.y)

    def sizes(self, theta: Array) -> Vector:
        """Return the size of the residual of each row."""
        return np.abs(self._predict(theta) - self.y)

    def derivatives(self, theta: Array, share: Vector) -> tuple[Array, Array]:
        """Return gradients and Hessians."""
        prediction = self._predict(theta)
        slopes = share * self.loss.derivative(prediction, self.y)
        curvatures = share * self.loss.second_derivative(prediction, self.y)  # type: ignore[attr-defined]
        return self.sums(slopes[:, None] * self.A), self._grams(curvatures)

    def _predict(self, theta: Array) -> Vector:
        return np.asarray(self.shared + np.einsum("ij,ij->i", self.A, theta[self.codes]))

    def _grams(self, c: Vector) -> Array:
        """Return Σ c·a·aᵀ of each group, of shape (p, m, m)."""
        m, starts = self.n_parameters, np.append(self.starts, len(self.y))
        grams = np.empty((self.n_groups, m, m))
        for first, last in _chunks(starts, max(1, _CHUNK // (m * m))):
            rows = slice(starts[first], starts[last])
            a, weighted = self.A[rows], self.A[rows] * c[rows, None]
            if last == first + 1:
                grams[first] = weighted.T @ a
            elif len(a) * m * m > _WORTH_A_CALL * (last - first):
                for group in range(first, last):
                    own = slice(starts[group] - starts[first], starts[group + 1] - starts[first])
                    grams[group] = weighted[own].T @ a[own]
            else:
                outer = weighted[:, :, None] * a[:, None, :]
                grams[first:last] = np.add.reduceat(outer, starts[first:last] - starts[first])
        return grams


@dataclass(frozen=True)
class ClassCorrections(Corrections):
    """Corrections of the scores of more than two classes by a number for each class; y has their numbers."""

    @property
    def n_parameters(self) -> int:
        """The number of classes."""
        return int(self.shared.shape[1])

    def losses(self, theta: Array) -> Vector:
        """Return the cross-entropy of each row."""
        scores = self.shared + theta[self.codes]
        own = np.take_along_axis(scores, self.y.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.asarray(logsumexp(scores, axis=1) - own)

    def sizes(self, theta: Array) -> Vector:
        """Return the cross-entropies: losses of classes are in one unit already."""
        return self.losses(theta)

    def derivatives(self, theta: Array, share: Vector) -> tuple[Array, Array]:
        """Return gradients and Hessians."""
        chances = softmax(self.shared + theta[self.codes], axis=1)
        slopes = chances - (np.arange(self.n_parameters) == self.y[:, None])
        weighted = share[:, None] * chances
        parts = np.split(np.arange(len(self.y)), self.starts[1:])
        hessians = np.array([-weighted[rows].T @ chances[rows] for rows in parts])
        diagonal = np.arange(self.n_parameters)
        hessians[:, diagonal, diagonal] += self.sums(weighted)
        return self.sums(share[:, None] * slopes), hessians


def _chunks(starts: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups with at most so many rows together, one group at least."""
    first, p = 0, len(starts) - 1
    while first < p:
        last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
        last = min(max(last, first + 1), p)
        yield first, last
        first = last
