"""Real data sets of the benchmarks, from files that are named on the command line: tweets, flights, claims."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

USAGE = "tweets=X.npz,targets.npz flights=flights.parquet claims=claims.parquet"


class Rows(NamedTuple):
    """Rows with groups, and which of them are for testing."""

    X: Any
    y: np.ndarray
    groups: np.ndarray
    is_test: np.ndarray


def load(given):
    """Yield the name and the rows of each data set of which a path was given."""
    paths = dict(name.split("=", 1) for name in given if "=" in name)
    if "tweets" in paths:
        yield "tweets, log counts", tweets(paths["tweets"].split(","), logarithms=True)
    if "flights" in paths:
        leaks = ["dep_delay", "air_time", "day"]
        yield "flights", table(paths["flights"], "y", "carrier", leaks)
    if "tweets" in paths:
        yield "tweets, counts", tweets(paths["tweets"].split(","), logarithms=False)
    if "claims" in paths:
        yield "claims", table(paths["claims"], "y", "group", ["IDpol"])


def tweets(paths, *, logarithms):
    X = sp.csr_array(sp.load_npz(paths[0]).astype(np.float64))
    with np.load(paths[1], allow_pickle=False) as targets:
        y, groups, is_test = targets["retweet_count"], targets["group"], targets["test"].astype(bool)
    return Rows(X, np.log1p(y) if logarithms else y.astype(float), groups, is_test)


def table(path, target, group, leave_out):
    frame = pd.read_parquet(path)
    y, groups, is_test = (frame[name].to_numpy() for name in (target, group, "test"))
    frame = frame.drop(columns=[target, "test", *leave_out])
    frame = frame.astype({name: "category" for name in ("month", "hour") if name in frame})
    features = pd.get_dummies(frame, dtype=float).to_numpy(float)
    center, scale = features.mean(axis=0), features.std(axis=0)
    features = (features - center)[:, scale > 0] / scale[scale > 0]
    return Rows(features, y.astype(float), groups, is_test.astype(bool))
