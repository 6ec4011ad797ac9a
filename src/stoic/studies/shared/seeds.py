"""Random numbers seeded by names: a trial is the same alone, in any order, on any number of processes."""

import hashlib
import json

import numpy as np
from numpy.random import Generator


def generator(*names: str | float) -> Generator:
    """Return a generator whose seed is a hash of the names; other names, independent numbers.

    Examples
    --------
    >>> one, other = generator("noise", 0), generator("noise", 1)
    >>> one.random() == generator("noise", 0).random(), one.random() == other.random()
    (True, False)
    """
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
