"""Scores of a linear model on held-out rows: mean squared error, a robust one, the worst group's."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from stoic.means import median_of_means
from stoic.protocols import Vector
from stoic.studies.paper.data import Codes, DataRows

Score: TypeAlias = Callable[[Vector, Codes], float]

_BLOCKS = 15


def mean_squared(squares: Vector, groups: Codes) -> float:  # noqa: ARG001
    """Return the mean of the squared errors."""
    return float(squares.mean())


def robust_mean_squared(squares: Vector, groups: Codes) -> float:  # noqa: ARG001
    """Return the median of 15 means of the squared errors: a wild label spoils one of them."""
    return float(median_of_means(squares, n_blocks=min(_BLOCKS, len(squares))))


def worst_group(squares: Vector, groups: Codes) -> float:
    """Return the largest mean of a group."""
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=squares)
    return float((sums[counts > 0] / counts[counts > 0]).max())


class Scores:
    """Scores on fixed rows. At each w the rows are multiplied once, whatever is asked for.

    Parameters
    ----------
    rows : DataRows
    scores : mapping of names to scores
    """

    def __init__(self, rows: DataRows, scores: Mapping[str, Score]) -> None:
        self.rows, self.scores = rows, dict(scores)
        self._last: tuple[Vector | None, dict[str, float]] = None, {}

    def at(self, w: Vector) -> dict[str, float]:
        """Return all scores at w."""
        if self._last[0] is not w:
            squares = np.square(np.asarray(self.rows.X @ w) - self.rows.y)
            self._last = w, {name: score(squares, self.rows.groups) for name, score in self.scores.items()}
        return self._last[1]

    def observer(self, name: str) -> Callable[[Vector], float]:
        """Return the function of w that is one of the scores."""
        return lambda w: self.at(w)[name]
