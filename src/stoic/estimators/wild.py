"""Wild targets, far beyond ordinary outliers, are moved to the edge of these: no row then rules its group.

Losses that grow like |r| far out lose a constant when a target is moved from there to the edge, and keep every
slope as long as the prediction does not come near. So the fit is that of the plain loss, but for the levels of the
groups, which one target of 10²⁰ would rule alone; and sums keep their digits.
"""

import numpy as np

from stoic.estimators.scales import upper_quantile
from stoic.inners.blocks import IntArray
from stoic.losses import Absolute, Huber, Loss, Quantile
from stoic.protocols import Vector

_FAR = 10.0  # times an upper quantile of the distances: what no ordinary outlier exceeds
_REACH = 1e6  # times the size of targets: farther ones cost digits of every sum
_SMOOTHED = 10.0  # smoothings that make the scale of the residuals


def width_of(loss: Loss) -> float | None:
    """Return the residual at which a loss has become a line, or the scale of the residuals; None: it never does.

    Examples
    --------
    >>> width_of(Huber(2.0)), width_of(Absolute(0.1))
    (2.0, 1.0)
    """
    if isinstance(loss, Huber):
        return loss.threshold
    return _SMOOTHED * loss.smoothing if isinstance(loss, Absolute | Quantile) else None


def within_reach(y: Vector, center: Vector) -> Vector:
    """Return the targets, those beyond 10⁶·(1 + |center|) from their center moved to there."""
    return _moved_to_edge(y, center, _REACH * (1.0 + np.abs(center)))


def is_reached(y: Vector, moved: Vector, prediction: Vector) -> bool:
    """Whether a model predicts a target where `within_reach` moved it to, instead of where it is."""
    return bool(((moved != y) & (np.abs(moved - prediction) < 0.5 * _REACH)).any())


def calmed(y: Vector, center: Vector, codes: IntArray, weight: Vector | None, width: float) -> Vector:
    """Return the targets, those that are wild moved towards what a model predicts.

    A target is wild where it is farther from the prediction than ten times the 90 % quantile of these distances,
    of its group or of all rows, whichever is larger, and than ten times `width`. Of few rows the quantile is
    lower, so that three of them, or nearly half, may be wild; groups of one or two rows are judged by all rows.

    Parameters
    ----------
    y, center : array of shape (n,)
        Targets, and what the model predicts.
    codes : array of int of shape (n,)
        The groups of the rows.
    weight : array of shape (n,), optional
    width : float

    Returns
    -------
    array of shape (n,)
        y itself where no target is wild.

    Examples
    --------
    >>> y = np.array([0.1, -0.2, 0.3, 1e20])
    >>> calmed(y, np.zeros(4), np.zeros(4, dtype=int), None, width=1.0).tolist()
    [0.1, -0.2, 0.3, 10.0]
    """
    sizes = np.abs(y - center)
    edge = np.full(len(y), _FAR * max(upper_quantile(sizes, weight), width))
    order = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    for code in np.unique(codes[sizes > edge]):
        rows = order[starts[code] : starts[code + 1]]
        own = upper_quantile(sizes[rows], None if weight is None else weight[rows])
        edge[rows] = np.maximum(edge[rows], _FAR * own)
    return _moved_to_edge(y, center, np.minimum(edge, _REACH * (1.0 + np.abs(center))))


def _moved_to_edge(y: Vector, center: Vector, edge: Vector) -> Vector:
    away = y - center
    is_wild = np.abs(away) > edge
    return np.where(is_wild, center + np.copysign(edge, away), y) if is_wild.any() else y
