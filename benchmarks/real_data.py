"""Our estimators beside what people would pick instead, on real data: errors, the worst group, and time.

Peers are tuned: each cell of a peer's grid is fitted to four fifths of the training rows, the one with the
smallest mean absolute error on the last fifth is fitted to all of them. Ours runs as it is. Targets of peers are
centered at their median and divided by their spread, which none of them does by itself; the columns of tables have
variance 1 for all. A fit is timed in a process that has fitted the same before, the best of up to three; the first
one in a new process, kernels cached on the disk, is given apart. A peer that fails or takes too long is a row with
the reason. Of sparse rows the memory is told that our fit takes beside them.

    python benchmarks/real_data.py tweets=X.npz,targets.npz flights=flights.parquet claims=claims.parquet
"""

import argparse
import importlib
import json
import multiprocessing
import resource
import sys
import time
import tracemalloc
import warnings
from itertools import product
from typing import ClassVar
from unittest.mock import MagicMock

import numpy as np
from data_sets import USAGE, load
from scipy import sparse
from sklearn.linear_model import HuberRegressor, QuantileRegressor, Ridge, SGDRegressor

from stoic import GroupDRORegressor

MEMORY = 16 * 2**30
"""Bytes that a model may take."""
SHORT = 20.0
"""Seconds of fits after which no third or fourth is timed."""


class Peer:
    """A model of targets about their median, in units of their spread."""

    takes_sparse: ClassVar = True

    def __init__(self, **settings):
        self.settings = settings

    def fit(self, X, y, groups):
        if sparse.issparse(X) and not self.takes_sparse:
            X = X.toarray()
        self.center = np.median(y)
        self.unit = 1.4826 * np.median(np.abs(y - self.center)) or 1.0
        self.learn(X, (y - self.center) / self.unit, groups)
        return self

    def predict(self, X, groups):
        return self.answer(X, groups) * self.unit + self.center

    def learn(self, X, y, groups):  # noqa: ARG002
        self.model = self.make().fit(X, y)

    def answer(self, X, groups):  # noqa: ARG002
        return self.model.predict(X)


class ByHuber(Peer):
    grid: ClassVar = {"epsilon": (1.05, 1.35, 2.0, 3.0), "alpha": (1e-4, 1e-2, 1.0)}

    def make(self):
        return HuberRegressor(**self.settings, max_iter=300)


class BySGD(Peer):
    grid: ClassVar = {"epsilon": (0.1, 0.5, 1.345), "alpha": (1e-6, 1e-5, 1e-4, 1e-3), "eta0": (0.01, 0.1)}

    def make(self):
        return SGDRegressor(loss="huber", **self.settings, average=True, max_iter=200, random_state=0)


class ByQuantile(Peer):
    grid: ClassVar = {"alpha": (0.0, 1e-4, 1e-3)}

    def make(self):
        return QuantileRegressor(**self.settings)


class BySkglm(Peer):
    grid: ClassVar = {"delta": (0.5, 1.345), "alpha": (1e-5, 1e-4, 1e-3, 1e-2)}

    def make(self):
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Huber
        from skglm.penalties import L1
        from skglm.solvers import AndersonCD

        parts = Huber(self.settings["delta"]), L1(self.settings["alpha"])
        return GeneralizedLinearEstimator(*parts, AndersonCD(fit_intercept=True))


class ByFairlearn(Peer):
    """BoundedGroupLoss by the reduction of Agarwal and others; its losses need targets within bounds.

    Sparse rows it refuses ("Sparse data was passed, but dense data is required"); they are filled in.
    """

    takes_sparse: ClassVar = False
    grid: ClassVar = {"bound": (0.5, 1.0, 2.0, 4.0)}

    def learn(self, X, y, groups):
        from fairlearn.reductions import BoundedGroupLoss, ExponentiatedGradient, SquareLoss

        low, high = np.quantile(y, [0.005, 0.995])
        constraint = BoundedGroupLoss(SquareLoss(low, high), upper_bound=self.settings["bound"])
        self.model = ExponentiatedGradient(Ridge(1.0), constraint)
        self.model.fit(X, np.clip(y, low, high), sensitive_features=groups)

    def answer(self, X, groups):  # noqa: ARG002
        return self.model.predict(X, random_state=0)


def without_vision(name):
    """Import a module of dro, whose package loads vision libraries that its linear models do not use.

    Those often do not fit the torch at hand ("operator torchvision::nms does not exist"); empty ones stand in.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError):
        for vision in ("torchvision", "torchvision.models", "torchvision.transforms", "torchattacks"):
            sys.modules[vision] = MagicMock()
        return importlib.import_module(name)


class ByDro(Peer):
    """GroupDRO of dro: the largest group loss, by a convex program; groups are a column of numbers.

    Sparse rows have no such column to be joined to; they are filled in.
    """

    takes_sparse: ClassVar = False
    grid: ClassVar = {"model_type": ("lad", "ols")}

    def learn(self, X, y, groups):
        GroupDRO = without_vision("dro.linear_model.group_dro").GroupDRO
        self.names = np.unique(groups)
        self.model = GroupDRO(X.shape[1] + 1, 0, **self.settings)
        self.model.fit(self.joined(X, groups), y)

    def answer(self, X, groups):
        return self.model.predict(self.joined(X, groups))

    def joined(self, X, groups):
        return np.c_[np.searchsorted(self.names, groups), X]


class Ours:
    """The default, as it comes."""

    grid: ClassVar = {}

    def __init__(self, **settings):
        self.settings = settings

    def fit(self, X, y, groups):
        self.model = GroupDRORegressor(random_state=0, **self.settings).fit(X, y, groups=groups)
        return self

    def predict(self, X, groups):  # noqa: ARG002
        return self.model.predict(X)


MODELS = {
    "GroupDRORegressor()": Ours,
    "HuberRegressor": ByHuber,
    "SGDRegressor(huber)": BySGD,
    "QuantileRegressor": ByQuantile,
    "skglm Huber + L1": BySkglm,
    "fairlearn BoundedGroupLoss": ByFairlearn,
    "dro GroupDRO": ByDro,
}


def cells(kind):
    return [dict(zip(kind.grid, values, strict=True)) for values in product(*kind.grid.values())]


def tuned(kind, X, y, groups):
    """Return the settings with the smallest mean absolute error on a fifth of the rows."""
    every = cells(kind)
    if len(every) == 1:
        return every[0]
    held = np.random.default_rng(0).random(len(y)) < 0.2
    fit = X[~held], y[~held], groups[~held]

    def error(cell):
        prediction = kind(**cell).fit(*fit).predict(X[held], groups[held])
        return np.nanmean(np.abs(prediction - y[held]))

    return min(every, key=error)


def measured(kind, rows, send):
    """Send the errors on the test rows and the times of a fit."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, y, groups, is_test = rows
            train, test = ~is_test, is_test
            settings = tuned(kind, X[train], y[train], groups[train])
            data, seconds = (X[train], y[train], groups[train]), []
            while len(seconds) < 2 or (len(seconds) < 4 and sum(seconds) < SHORT):
                began = time.perf_counter()
                model = kind(**settings).fit(*data)
                seconds.append(time.perf_counter() - began)
            residuals = model.predict(X[test], groups[test]) - y[test]
        by_group = {name: np.abs(residuals[groups[test] == name]).mean() for name in np.unique(groups)}
        errors = np.abs(residuals).mean(), np.square(residuals).mean(), max(by_group.values())
        send.send((settings, errors, max(by_group, key=by_group.get), (seconds[0], min(seconds[1:]))))
    except Exception as error:  # a row says why
        send.send(f"{type(error).__name__}: {' '.join(str(error).split())[:110]}")


def outcome(kind, rows, limit):
    """Return what `measured` sends, or that it took too long."""
    receive, send = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=measured, args=(kind, rows, send))
    process.start()
    try:
        return receive.recv() if receive.poll(limit) else f"not done in {limit:g} s, grid included"
    except EOFError:
        return "killed, perhaps for lack of memory"
    finally:
        process.kill()
        process.join()


def peak(rows):
    """Return the memory that a fit of ours takes beside its rows at most, in vectors of length d."""
    data = rows.X[~rows.is_test], rows.y[~rows.is_test], rows.groups[~rows.is_test]
    some = np.random.default_rng(0).permutation(len(data[1]))[:1000]
    Ours().fit(*(part[some] for part in data))  # kernels have a memory of their own
    tracemalloc.start()
    Ours().fit(*data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / (8 * rows.X.shape[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help=USAGE)
    parser.add_argument("--models", nargs="*", default=list(MODELS), help=f"some of: {', '.join(MODELS)}")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for a model with its grid (1800)")
    parser.add_argument("--settings", type=json.loads, default={}, help="of ours, as JSON (none)")
    given = parser.parse_args()
    Ours.grid = {name: (value,) for name, value in given.settings.items()}
    for name, rows in load(given.data):
        print(f"\n{name}: {(~rows.is_test).sum()} rows to fit, {rows.X.shape[1]} columns", flush=True)
        head = f"{'MAE':>9}{'MSE':>12}{'worst MAE':>11}  {'group':<10}{'fit/ours':>9}{'first':>8}  settings"
        print(f"{'model':<28}{head}")
        ours = None
        for label in given.models:
            found = outcome(MODELS[label], rows, given.limit)
            if isinstance(found, str):
                print(f"{label:<28}{found}", flush=True)
                continue
            settings, (mae, mse, worst), group, (first, again) = found
            ours = ours or again
            times = f"{again / ours:>9.3g}{first / ours:>8.3g}"
            numbers = f"{mae:>9.5g}{mse:>12.5g}{worst:>11.5g}  {group!s:<10}{times}"
            print(f"{label:<28}{numbers}  {settings}", flush=True)
        if sparse.issparse(rows.X):
            print(f"our peak memory beside the rows: {peak(rows):.1f} vectors of length {rows.X.shape[1]}")


if __name__ == "__main__":
    main()
