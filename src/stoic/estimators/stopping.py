"""Stop early, at the best loss on rows held out: a robust one, so that wild labels among them do not decide."""

import numpy as np
from numpy.random import Generator

from stoic.estimators.training import Rows
from stoic.losses import Loss
from stoic.means import median_of_means
from stoic.protocols import Vector
from stoic.result import Record

_BLOCKS = 9


def split_by_group(rows: Rows, share: float, rng: Generator) -> tuple[Rows, Rows]:
    """Return rows to train on and rows held out, about a share of each group; a group of one row stays."""
    held = np.zeros(len(rows.y), dtype=bool)
    for code in range(rows.n_groups):
        members = rng.permutation(np.flatnonzero(rows.codes == code))
        held[members[: min(len(members) - 1, round(share * len(members)))]] = True
    return rows.part(~held), rows.part(held)


class EarlyStopping:
    """Keep the best weights, and end a solve that no longer improves on them.

    The loss is the largest over the groups of the median of block means on the rows held out.

    Parameters
    ----------
    rows : Rows
        Those held out.
    loss : Loss
    patience : int
        Records without a better loss after which the solve ends.
    tol : float
        By which share a loss has to be lower to count as better.
    """

    def __init__(self, rows: Rows, loss: Loss, patience: int, tol: float) -> None:
        self.rows, self.inner, self.patience, self.tol = rows, rows.inner(loss), patience, tol
        self.best: Vector | None = None
        self.lowest, self.since, self.has_stopped = np.inf, 0, False

    def observe(self, w: Vector) -> float:
        """Return the validation loss, and keep w if it is the best so far."""
        losses, codes = self.inner.losses(w), self.rows.codes
        found = max(_robust_mean(losses[codes == code]) for code in np.unique(codes))
        self.since += 1
        if found < self.lowest * (1.0 - self.tol):
            self.lowest, self.since, self.best = found, 0, w.copy()
        return found

    def look(self, _record: Record) -> None:
        """End the solve when too many records have passed since the best one."""
        if self.since >= self.patience:
            self.has_stopped = True
            raise StopIteration


def _robust_mean(losses: Vector) -> float:
    return float(median_of_means(losses, n_blocks=min(_BLOCKS, max(1, len(losses) // 2))))
