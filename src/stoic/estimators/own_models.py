r"""Own models of the groups: what each would gain over the shared model, by cross-fitted corrections of it.

The own model of group i is :math:`\bar w + \delta_i`, where :math:`\delta_i` minimizes
:math:`g_i(\bar w + \delta) + \tfrac\lambda2 \|\delta\|^2` on all folds of the group but one, which judges it.
The shared model :math:`\bar w` has seen all rows; but it stands on both sides of the comparison, and what is
measured is the gain of the correction, which has not seen the rows that judge it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp, softmax
from scipy.stats import norm

from stoic.estimators.rows import TrainingRows
from stoic.estimators.scales import outlier_size
from stoic.inners.blocks import IntArray
from stoic.losses import Loss
from stoic.protocols import Array, Vector

_FOLDS = 5
_SHRINKAGES = (0.1, 1.0, 10.0)  # times parameters over rows: how strongly a correction is held back
_LEVEL = 0.1  # at which all lower bounds on gains hold together
_FEWEST_ROWS = 2 * _FOLDS  # of a group that has an own model
_MOST_COLUMNS, _MOST_ENTRIES = 200, 1e7  # beyond, a correction has two parameters, and rows are drawn
_MOST_STEPS, _MOST_HALVINGS, _SETTLED = 8, 6, 1e-7
_CHUNK = 1 << 22  # numbers of outer products that are formed at a time


class OwnModels(NamedTuple):
    """The gains in mean loss of the groups' own models over the shared one, and the errors of these gains."""

    gains: Vector
    errors: Vector

    @property
    def certain_gains(self) -> Vector:
        """Lower bounds on the gains that hold together with probability 0.9; 0 where chance explains a gain."""
        z = float(norm.isf(_LEVEL / len(self.gains)))
        return np.maximum(0.0, self.gains - z * self.errors)


def own_models(rows: TrainingRows, loss: Loss, w: Vector, rng: Generator) -> OwnModels:
    """Return what the groups' own models gain over the shared model w on rows they have not seen."""
    counts = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    sizes = np.bincount(rows.codes[counts > 0.0], minlength=rows.n_groups)
    gains, errors = np.zeros(rows.n_groups), np.full(rows.n_groups, np.inf)
    able = np.flatnonzero(sizes >= _FEWEST_ROWS)
    if len(able) < 1 or rows.n_groups == 1:
        return OwnModels(gains, errors)
    chosen = _drawn(rows, counts, able, rng)
    numbers = np.zeros(rows.n_groups, dtype=np.intp)
    numbers[able] = np.arange(len(able))
    order = np.argsort(numbers[rows.codes[chosen]], kind="stable")
    part, weight = rows.part(chosen[order]), counts[chosen[order]]
    corrections = _corrections(part, loss, w, numbers[part.codes], len(able))
    gains[able], errors[able] = _cross_fitted(corrections, weight, rng)
    return OwnModels(gains, errors)


def _drawn(rows: TrainingRows, counts: Vector, able: IntArray, rng: Generator) -> IntArray:
    """Return the rows to use: those of groups that have an own model, as many as the work allows."""
    columns = min(rows.X.shape[1], _MOST_COLUMNS)
    most = max(20 * columns, int(_MOST_ENTRIES / columns / len(able)))  # of each group
    wanted = np.isin(rows.codes, able) & (counts > 0.0)
    shuffled = rng.permutation(np.flatnonzero(wanted))
    by_group = shuffled[np.argsort(rows.codes[shuffled], kind="stable")]
    codes = rows.codes[by_group]
    firsts = np.flatnonzero(np.r_[True, np.diff(codes) > 0])
    places = np.arange(len(codes)) - np.repeat(firsts, np.diff(np.r_[firsts, len(codes)]))
    return np.asarray(by_group[places < most], dtype=np.intp)


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

    def fitted(self, share: Vector, ridge: Vector) -> Array:
        """Return the correction of each group, by Newton's method on all groups at once."""
        theta = np.zeros((self.n_groups, self.n_parameters))
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

    def derivatives(self, theta: Array, share: Vector) -> tuple[Array, Array]:
        """Return gradients and Hessians."""
        chances = softmax(self.shared + theta[self.codes], axis=1)
        slopes = chances - (np.arange(self.n_parameters) == self.y[:, None])
        weighted = share[:, None] * chances
        hessians = -self.sums(weighted[:, :, None] * chances[:, None, :])
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


def _corrections(rows: TrainingRows, loss: Loss, w: Vector, codes: IntArray, n_groups: int) -> Corrections:
    """Return corrections in all columns; of level and slope where there are many; of levels for many classes."""
    if rows.n_outputs > 1:
        inner = rows.inner(loss)
        return ClassCorrections(inner.predict(w, inner.everything()), rows.y, codes, n_groups)
    X, shared = cast("Any", rows.X), rows.predict(w)
    if X.shape[1] > _MOST_COLUMNS:
        columns = ((shared - shared.mean()) / (shared.std() or 1.0))[:, None]
    else:
        dense = rows.columns()
        columns = dense - dense.mean(axis=0)
    return LinearCorrections(
        shared, rows.y, codes, n_groups, np.hstack([columns, np.ones((len(shared), 1))]), loss
    )


def _cross_fitted(corrections: Corrections, weight: Vector, rng: Generator) -> tuple[Vector, Vector]:
    """Return the gain of each group at the shrinkage that serves it best, and its error."""
    codes, p, starts = corrections.codes, corrections.n_groups, corrections.starts
    sizes = np.diff(np.append(starts, len(codes)))
    places = np.arange(len(codes)) - starts[codes]  # of rows in their groups, which are shuffled
    folds = (places + rng.integers(_FOLDS, size=p)[codes]) % _FOLDS
    scale = corrections.n_parameters / sizes
    before = corrections.losses(np.zeros((p, corrections.n_parameters)))
    after = np.empty((len(_SHRINKAGES), len(codes)))
    for fold in range(_FOLDS):
        training = np.where(folds != fold, weight, 0.0)
        share = training / np.add.reduceat(training, starts)[codes]
        for k, shrinkage in enumerate(_SHRINKAGES):
            theta = corrections.fitted(share, shrinkage * scale)
            judged = folds == fold
            after[k, judged] = corrections.losses(theta)[judged]
    share = weight / np.add.reduceat(weight, starts)[codes]
    best_gain, best_error = np.zeros(p), np.full(p, np.inf)
    for k in range(len(_SHRINKAGES)):
        difference = before - after[k]
        edge = outlier_size(np.abs(difference))
        difference = np.clip(difference, -edge, edge)
        gain = np.add.reduceat(share * difference, starts)
        squares = np.add.reduceat(np.square(share * (difference - gain[codes])), starts)
        error = np.sqrt(squares * sizes / np.maximum(sizes - 1, 1))
        better = gain - error > best_gain - best_error
        best_gain, best_error = np.where(better, gain, best_gain), np.where(better, error, best_error)
    return best_gain, best_error
