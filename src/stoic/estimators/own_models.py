r"""Own models of the groups: what each would gain over the shared model, by cross-fitted corrections of it.

The own model of group i is :math:`\bar w + \delta_i`, where :math:`\delta_i` minimizes
:math:`g_i(\bar w + \delta) + \tfrac\lambda2 \|\delta\|^2` on all folds of the group but one, which judges it.
The shared model :math:`\bar w` has seen all rows; but it stands on both sides of the comparison, and what is
measured is the gain of the correction, which has not seen the rows that judge it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.stats import t as student

from stoic.estimators.corrections import ClassCorrections, Corrections, LinearCorrections
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
_STEEPER = 4.0  # the most that the cost of an error may differ from that under the shared model
_UNKNOWN = 0.0, np.inf, np.nan  # the gain of a group without an own model, its error and its cost
_MOST_HESSIANS = 10_000_000  # numbers in those of the groups that are fitted together


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
