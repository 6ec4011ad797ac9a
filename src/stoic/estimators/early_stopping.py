"""Early stopping at the best loss on held-out rows: a robust loss, which a few wild labels do not decide."""

import numpy as np
from numpy.random import Generator

from stoic.errors import InvalidProblem
from stoic.estimators.rows import TrainingRows
from stoic.estimators.scoring import largest_mean
from stoic.inners.groups import rows_by_group
from stoic.losses import Loss
from stoic.protocols import Vector
from stoic.solve.result import Record

_DELTA = 0.05  # of a median of means that is off


def split_by_group(rows: TrainingRows, share: float, rng: Generator) -> tuple[TrainingRows, TrainingRows]:
    """Return rows to train on and rows held out, about a share of each group that counts; one row stays."""
    held, counts = np.zeros(len(rows.y), dtype=bool), np.ones(len(rows.y)) if rows.weight is None else rows.weight
    for group in rows_by_group(rows.codes, rows.n_groups):
        members = rng.permutation(group[counts[group] > 0.0])
        held[members[: min(len(members) - 1, round(share * len(members)))]] = True
    if not held.any():
        raise InvalidProblem(
            f"early_stopping holds out validation_fraction={share:g} of each group, and no group has rows enough "
            f"for one; give a larger fraction, larger groups, or early_stopping=False."
        )
    return rows.part(~held), rows.part(held)


class EarlyStopping:
    """Keep the best weights, and end a solve that no longer improves on them.

    The loss is the largest over the groups of the median of block means on the rows held out.

    Parameters
    ----------
    rows : TrainingRows
        Those held out.
    patience : int
        Records without a better loss after which the solve ends.
    tol : float
        By which share a loss has to be lower to count as better.
    """

    def __init__(self, rows: TrainingRows, patience: int, tol: float) -> None:
        self.rows, self.patience, self.tol = rows, patience, tol
        self.best: Vector | None = None
        self.lowest, self.since, self.has_stopped = np.inf, 0, False

    def observe(self, w: Vector, loss: Loss) -> float:
        """Return the validation loss, and keep w if it is the best so far."""
        found = largest_mean(self.rows.inner(loss).losses(w), self.rows.codes, self.rows.weight, _DELTA)
        self.since += 1
        if found < self.lowest * (1.0 - self.tol):
            self.lowest, self.since, self.best = found, 0, w.copy()
        return found

    def look(self, _record: Record) -> None:
        """End the solve when too many records have passed since the best one."""
        if self.since >= self.patience:
            self.has_stopped = True
            raise StopIteration
