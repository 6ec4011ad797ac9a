"""Which groups a step draws: chances that follow the weights of the outer function, and stratified choices."""

import math
from typing import NamedTuple

import numpy as np

from stoic.pilot.row_scale import ALL_UP_TO
from stoic.protocols import AnyInner, Array, IntArray, Vector, draws_groups

_FEW, _FEWEST_BETWEEN = 32, 64
_BELOW_ONE = math.nextafter(1.0, 0.0)


def groups_drawn(inner: AnyInner, asked: int | None) -> int:
    """Return how many groups a step draws: by default all of up to 64, and 32 of more where they can be drawn."""
    p = inner.shape[0]
    if not draws_groups(inner):
        return p
    return default_groups(p) if asked is None else min(asked, p)


def default_groups(p: int) -> int:
    """Return how many of p groups a step draws: all of up to 64, else 32."""
    return p if p <= ALL_UP_TO else _FEW


def refresh_period(p: int, k: int) -> int:
    """Return after how many steps what costs p is computed anew: it is then little beside the rows."""
    return max(_FEWEST_BETWEEN, math.ceil(p / (8 * k)))


def until_refresh(t: int, period: int) -> int:
    """Return how many steps from step t on have the same chances: up to 1, 2, 4, …, and then each period."""
    if t < period:
        return min(1 << t.bit_length(), period) - t
    return period - t % period


def is_refresh(t: int, period: int) -> bool:
    """Whether chances are computed anew before step t."""
    return t % period == 0 or (t < period and t & (t - 1) == 0)


class Chances(NamedTuple):
    """The probability of each group to be drawn, their cumulative sums, the last of which is 1, and a bound.

    k·|q_i|/(k·chance_i) is at most half of `most` for the q that the chances are from.
    """

    each: Vector
    sums: Vector
    most: float


def chances_from(q: Vector, importance: float) -> Chances:
    r"""Return the probabilities :math:`(1 - a)/p + a |q_i| / \sum_j |q_j|`, a the importance of the weights.

    Weights of which nothing is known (all zero, or one not finite) give equal chances.

    Examples
    --------
    >>> chances_from(np.array([3.0, 1.0]), 0.5).each.tolist()
    [0.625, 0.375]
    """
    p, sizes = len(q), np.abs(q)
    total = float(np.add.reduce(sizes))
    each, most = np.full(p, 1.0 / p), math.inf
    if importance > 0.0 and 0.0 < total < math.inf:
        each, most = (1.0 - importance) / p + importance * (sizes / total), 2.0 * total / importance
    sums = np.cumsum(each)
    return Chances(each, sums / sums[-1], most)


def choose(chances: Chances, uniforms: Array) -> IntArray:
    r"""Return k groups for uniform numbers in [0, 1) of shape (..., k): the jth is from the jth k-th of chances.

    So group i is expected k·chance_i times, and comes at most once more than that.

    Examples
    --------
    >>> choose(chances_from(np.ones(4), 0.0), np.array([0.0, 0.9])).tolist()
    [0, 3]
    """
    k = uniforms.shape[-1]
    places = np.minimum((np.arange(k) + uniforms) / k, _BELOW_ONE)
    found: IntArray = np.searchsorted(chances.sums, places, side="right")
    return found


def shares(chances: Chances, groups: IntArray) -> Array:
    r"""Return :math:`1 / (k \cdot \text{chance}_i)` of groups (..., k): sums with these weights are unbiased."""
    found: Array = 1.0 / (groups.shape[-1] * chances.each.take(groups))
    return found


def bounded(weights: Vector, chances: Chances) -> Vector:
    """Return the weights q_i/(k·chance_i) of the k groups of a step, cut where q has outgrown the chances.

    They are cut at twice what they can be for the q that chances were computed from: of a group whose weight has
    since grown from nothing to all, few rows would make the whole step.
    """
    most = chances.most / len(weights)
    return np.clip(weights, -most, most)


def follow(y: Vector, groups: IntArray, fresh: Vector, weight: float) -> Vector:
    """Return y with entries moved to fresh values, one after the other, as a group may come twice."""
    y = y.copy()
    for group, value in zip(groups.tolist(), fresh.tolist(), strict=True):
        y[group] = (1.0 - weight) * y[group] + weight * value
    return y
