r"""Own models of the groups: what each would gain over the shared model, by cross-fitted corrections of it.

The own model of group i is :math:`\bar w + \delta_i`, where :math:`\delta_i` minimizes
:math:`g_i(\bar w + \delta) + \tfrac\lambda2 \|\delta\|^2` on all folds of the group but one, which judges it.
The shared model :math:`\bar w` has seen all rows; but it stands on both sides of the comparison, and what is
measured is the gain of the correction, which has not seen the rows that judge it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp, softmax
from scipy.stats import t as student

from stoic.estimators.rows import TrainingRows
from stoic.estimators.scales import outlier_size
from stoic.inners.blocks import IntArray
from stoic.losses import Loss
from stoic.protocols import Array, Vector

_FOLDS = 5
_SHRINKAGES = (0.1, 1.0, 10.0)  # times parameters over rows: how strongly a correction is held back
_LEVEL = 0.1  # the probability that chance shows a gain in one group at least
_MANY_ROWS = 100  # for each parameter: any shrinkage is the same
_FEWEST_ROWS = 2 * _FOLDS  # of a group that has an own model
_MOST_COLUMNS, _MOST_ENTRIES = 200, 1e7  # beyond, a correction has two parameters, and rows are drawn
_MOST_STEPS, _MOST_HALVINGS, _SETTLED = 8, 6, 1e-5
_STEEPER = 4.0  # the most that the cost of an error may differ from that under the shared model
_UNKNOWN = 0.0, np.inf, np.nan  # the gain of a group without an own model, its error and its cost
_MOST_HESSIANS = 10_000_000  # numbers in those of the groups that are fitted together
_CHUNK = 1 << 22  # numbers of outer products that are formed at a time


class OwnModels(NamedTuple):
    """The gains in mean loss of the groups' own models over the shared one, and the errors of these gains.

    `costs` is what a unit of error costs on the way: the gain in loss over that in error; NaN where there is none.
    `rows` are the numbers of rows of the groups.
    """

    gains: Vector
    errors: Vector
    costs: Vector
    rows: Vector

    @property
    def shown(self) -> Vector:
        r"""The share of a gain that chance does not explain, :math:`(1 - (z \, \text{error} / \text{gain})^2)_+`.

        It is 0 in all groups with probability 0.9 where no own model is better than the shared one, and close to 1
        where a gain is many times its error (Breiman's garrote).
        """
        z = student.isf(_LEVEL / len(self.gains), np.maximum(self.rows - 1.0, 1.0))
        allowed = z * self.errors
        ratio = np.divide(allowed, self.gains, out=np.full_like(allowed, np.inf), where=self.gains > 0.0)
        return np.maximum(0.0, 1.0 - np.square(ratio))

    @property
    def certain_gains(self) -> Vector:
        """The gains less what chance explains of them."""
        return np.maximum(self.gains, 0.0) * self.shown

    def unit_costs(self, tangents: Vector) -> Vector:
        """Return what a unit of error costs in each group; `tangents` are the costs under the shared model."""
        chords = np.where(np.isfinite(self.costs), self.costs, tangents)
        chords = np.clip(chords, tangents / _STEEPER, tangents * _STEEPER)
        return np.asarray(tangents + self.shown * (chords - tangents))


def own_models(rows: TrainingRows, loss: Loss, w: Vector, rng: Generator) -> OwnModels:
    """Return what the groups' own models gain over the shared model w on rows they have not seen."""
    counts = np.ones(len(rows.y)) if rows.weight is None else rows.weight
    sizes = np.bincount(rows.codes[counts > 0.0], minlength=rows.n_groups)
    found = OwnModels(*(np.full(rows.n_groups, value) for value in (*_UNKNOWN, 0.0)))
    able = np.flatnonzero(sizes >= _FEWEST_ROWS)
    if len(able) < 1 or rows.n_groups == 1:
        return found
    chosen = _drawn(rows, counts, able, rng)
    numbers = np.zeros(rows.n_groups, dtype=np.intp)
    numbers[able] = np.arange(len(able))
    order = np.argsort(numbers[rows.codes[chosen]], kind="stable")
    part, weight = rows.part(chosen[order]), counts[chosen[order]]
    codes, n_columns = numbers[part.codes], rows.X.shape[1]
    has_many = (n_columns <= _MOST_COLUMNS) & (sizes[able] > n_columns) & (rows.n_outputs == 1)
    for of_all_columns in (True, False):
        n_parameters = n_columns + 1 if of_all_columns else max(2, rows.n_outputs)
        for some in _batches(np.flatnonzero(has_many == of_all_columns), n_parameters):
            chosen = np.flatnonzero(np.isin(codes, some))
            here = np.searchsorted(some, codes[chosen])
            candidates = _corrections(part.part(chosen), loss, w, here, len(some), of_all_columns=of_all_columns)
            measured = _cross_fitted(candidates, weight[chosen], rng)
            for values, of_groups in zip(found, (*measured, sizes[able[some]]), strict=True):
                values[able[some]] = of_groups
    return found


def _batches(groups: IntArray, n_parameters: int) -> list[IntArray]:
    """Return the groups in batches whose Hessians fit in memory together."""
    n_batches = -(-len(groups) * n_parameters**2 // _MOST_HESSIANS)
    return np.array_split(groups, n_batches) if n_batches else []


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


def _corrections(
    rows: TrainingRows, loss: Loss, w: Vector, codes: IntArray, n_groups: int, *, of_all_columns: bool
) -> tuple[Corrections, ...]:
    """Return corrections of the level, and in all columns, or else of the slope.

    Of more than two classes, of the level of each.
    """
    if rows.n_outputs > 1:
        inner = rows.inner(loss)
        return (ClassCorrections(inner.predict(w, inner.everything()), rows.y, codes, n_groups),)
    shared = rows.predict(w)
    columns = rows.columns() if of_all_columns else shared[:, None]
    columns = columns - columns.mean(axis=0)
    if not of_all_columns:
        columns /= columns.std() or 1.0
    level = np.ones((len(shared), 1))
    of_rows = shared, rows.y, codes, n_groups
    return LinearCorrections(*of_rows, level, loss), LinearCorrections(*of_rows, np.hstack([columns, level]), loss)


def _cross_fitted(candidates: Sequence[Corrections], weight: Vector, rng: Generator) -> tuple[Vector, ...]:
    """Return the gains of the correction and shrinkage that serve each group best, their errors and costs."""
    codes, p, starts = candidates[0].codes, candidates[0].n_groups, candidates[0].starts
    sizes = np.diff(np.append(starts, len(codes)))
    places = np.arange(len(codes)) - starts[codes]  # of rows in their groups, which are shuffled
    folds = (places + rng.integers(_FOLDS, size=p)[codes]) % _FOLDS
    share = weight / np.add.reduceat(weight, starts)[codes]
    best = tuple(np.full(p, value) for value in _UNKNOWN)
    for corrections in candidates:
        nothing = np.zeros((p, corrections.n_parameters))
        losses, sizes_before = corrections.losses(nothing), corrections.sizes(nothing)
        theta = np.zeros((_FOLDS, *nothing.shape))
        are_many = sizes.min() >= _MANY_ROWS * corrections.n_parameters
        for shrinkage in (1.0,) if are_many else _SHRINKAGES:
            after, sizes_after = _judged(corrections, weight, folds, shrinkage / sizes, theta)
            gain, error = _mean_and_error(losses - after, share, starts, codes)
            gain_of_sizes, _ = _mean_and_error(sizes_before - sizes_after, share, starts, codes)
            is_gain = (gain > 0.0) & (gain_of_sizes > 0.0)
            cost = np.divide(gain, gain_of_sizes, out=np.full(p, np.nan), where=is_gain)
            better = gain - error > best[0] - best[1]
            found = gain, error, cost
            best = tuple(np.where(better, new, old) for new, old in zip(found, best, strict=True))
    return best


def _mean_and_error(difference: Vector, share: Vector, starts: IntArray, codes: IntArray) -> tuple[Vector, Vector]:
    """Return the mean of each group and its standard error; wild differences count like ordinary outliers."""
    edge = outlier_size(np.abs(difference))
    difference = np.clip(difference, -edge, edge)
    mean = np.add.reduceat(share * difference, starts)
    squares = np.add.reduceat(np.square(share * (difference - mean[codes])), starts)
    sizes = np.diff(np.append(starts, len(codes)))
    return mean, np.sqrt(squares * sizes / np.maximum(sizes - 1, 1))


def _judged(
    corrections: Corrections, weight: Vector, folds: IntArray, ridge: Vector, theta: Array
) -> tuple[Vector, Vector]:
    """Return loss and error of each row under the correction that was fitted without the fold of the row.

    The corrections of the folds begin at `theta`, of shape (folds, p, m), and are left there.
    """
    losses, sizes = np.empty(len(folds)), np.empty(len(folds))
    for fold in range(_FOLDS):
        training, judged = np.where(folds != fold, weight, 0.0), folds == fold
        share = training / np.add.reduceat(training, corrections.starts)[corrections.codes]
        theta[fold] = corrections.fitted(theta[fold], share, corrections.n_parameters * ridge)
        losses[judged], sizes[judged] = (
            corrections.losses(theta[fold])[judged],
            corrections.sizes(theta[fold])[judged],
        )
    return losses, sizes
