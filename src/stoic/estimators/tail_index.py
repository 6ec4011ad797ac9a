"""The tail index of targets, by Hill's estimate, and the loss that suits it."""

import math
from typing import NamedTuple

import numpy as np

from stoic.checks import check_probability
from stoic.errors import InvalidProblem
from stoic.protocols import Vector

_FEWEST = 20  # of distances from the median that are not zero
_TWO_ERRORS = 1.96


class TailIndex(NamedTuple):
    """Hill's estimate of the index a in P(|y − median| > t) ~ t^(−a), its 95 % interval, and the rows it is from.

    Moments of order below a are finite, those above are not.
    """

    value: float
    low: float
    high: float
    n_rows: int


def distances(y: Vector) -> Vector:
    """Return the distances from the median that are not zero, the largest first.

    Raises
    ------
    InvalidProblem
        If there are fewer than 20.
    """
    far = np.abs(y - np.median(y))
    far = np.sort(far[far > 0.0])[::-1]
    if len(far) < _FEWEST:
        raise InvalidProblem(
            f"{len(far)} of {len(y)} targets differ from their median; a tail needs {_FEWEST} at least."
        )
    return far


def hill(y: Vector) -> Vector:
    r"""Return Hill's estimates from the k largest distances to the median, k = 1, 2, …, up to half of them.

    .. math:: \hat a_k^{-1} = \frac1k \sum_{i \le k} \log x_{(i)} - \log x_{(k+1)}

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).standard_t(2.0, 100_000)
    >>> hill(y)[:1000].size, float(hill(y)[1000].round(1))
    (1000, 2.0)
    """
    logs = np.log(distances(y))
    k = np.arange(1, len(logs) // 2 + 1)
    gaps = np.cumsum(logs)[k - 1] / k - logs[k]
    with np.errstate(divide="ignore"):
        return 1.0 / gaps


def tail_index(y: Vector, share: float = 0.02) -> TailIndex:
    """Return Hill's estimate from the largest share of the distances to the median.

    Parameters
    ----------
    y : array of shape (n,)
    share : float, default 0.02

    Returns
    -------
    TailIndex

    Examples
    --------
    >>> import numpy as np
    >>> round(tail_index(np.random.default_rng(0).standard_t(2.5, 100_000)).value, 1)
    2.4
    """
    estimates = hill(y)
    k = min(len(estimates), max(_FEWEST // 2, round(check_probability("share", share) * 2 * len(estimates))))
    value, error = float(estimates[k - 1]), _TWO_ERRORS / math.sqrt(k)
    return TailIndex(value, value * (1.0 - error), value * (1.0 + error), k)


def advice(index: TailIndex) -> str:
    """Return advice on the choice of a loss for a tail index, in a sentence.

    Examples
    --------
    >>> advice(TailIndex(1.5, 1.3, 1.7, 500))
    'Infinite variance (index below 2): use loss="huber" or "absolute"; a few rows dominate squared errors.'
    """
    if index.high < 2.0:
        return (
            'Infinite variance (index below 2): use loss="huber" or "absolute"; '
            "a few rows dominate squared errors."
        )
    if index.low < 4.0:
        return (
            "Heavy tails (index below 4, or not surely above): squared errors have no variance, and their means "
            'settle slowly; use loss="huber".'
        )
    return 'Light tails (index above 4): loss="squared" estimates means well; "huber" loses little.'
