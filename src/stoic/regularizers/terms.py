"""The terms of a regularizer, coordinate by coordinate: in |w|, in w² and in w."""

from typing import NamedTuple

import numpy as np

from stoic.protocols import Regularizer, Vector
from stoic.regularizers.changed import Anchored, LeavingLast
from stoic.regularizers.penalties import L1, L2, ElasticNet, Zero
from stoic.regularizers.weighted import Weighted


class Terms(NamedTuple):
    """The weights of r(w) = Σ l1·|w| + l2·w²/2 + linear·w, but for a constant."""

    l1: Vector
    l2: Vector
    linear: Vector


def terms_of(regularizer: Regularizer, d: int) -> Terms | None:
    """Return the terms of a regularizer of d variables; None where it has others, such as constraints.

    Examples
    --------
    >>> terms_of(LeavingLast(ElasticNet(1.0, l1_ratio=0.25), 1), 3)._asdict()
    {'l1': array([0.25, 0.25, 0.  ]), 'l2': array([0.75, 0.75, 0.  ]), 'linear': array([0., 0., 0.])}
    """
    if isinstance(regularizer, Anchored):
        bare = terms_of(regularizer.regularizer, d)
        pull = regularizer.weight
        return bare and Terms(bare.l1, bare.l2 + pull, bare.linear - pull * regularizer.center)
    if isinstance(regularizer, LeavingLast):
        bare = terms_of(regularizer.regularizer, d)
        counts = np.arange(d) < d - regularizer.count
        return bare and Terms(*(np.where(counts, weights, 0.0) for weights in bare))
    if isinstance(regularizer, Weighted):
        return Terms(*regularizer.weights_by_column, np.zeros(d))
    if not isinstance(regularizer, Zero | L1 | L2 | ElasticNet):
        return None
    l1, l2 = (np.full(d, weight) for weight in regularizer.weights)
    return Terms(l1, l2, np.zeros(d))
