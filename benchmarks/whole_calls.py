"""Whole calls of `minimize` on data in the shape of E2006, over averaged SGD on as many rows.

    python benchmarks/whole_calls.py [rounds]

Columns are numbered at random. A call is timed from its start: pilot, references, steps and answer. SGD is
scikit-learn's `SGDRegressor(average=True)` with the same penalty, whole epochs, its time scaled to the rows.
What was evaluated is shown in epochs: "auto" takes the exact solver here.
"""

import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import SGDRegressor

import stoic
from stoic.datasets.synthetic import e2006_like

_ROWS, _METHODS, _ALPHA, _GROUPS = (150_000, 600_000), ("auto", "rrosc-tracked"), 1e-4, 6


def main(rounds: int = 1) -> None:
    """Print a table."""
    warnings.simplefilter("ignore")
    data = e2006_like(seed=0, n_test=0)
    X, y = data.X_train, data.y_train
    inner = stoic.GroupLoss(X, y, np.arange(len(y)) % _GROUPS)
    columns = "".join(f"{method:>15} s  over SGD  epochs" for method in _METHODS)
    print(f"{'penalty':8} {'rows':>7} {'SGD s':>7}{columns}")
    for penalty, regularizer in {"l2": stoic.L2(_ALPHA), "l1": stoic.L1(_ALPHA)}.items():
        problem = stoic.Problem(inner, stoic.LogSumExp(0.1), regularizer)
        for method in _METHODS:
            stoic.minimize(problem, method, 60_000, seed=0)  # compiles
        for rows in _ROWS:
            epochs = math.ceil(rows / len(y))
            sgd = SGDRegressor(penalty=penalty, alpha=_ALPHA, average=True, tol=None, max_iter=epochs)
            theirs, ours = [], {method: [] for method in _METHODS}
            reads = {}
            for _ in range(rounds):
                theirs.append(_seconds(lambda sgd=sgd: sgd.fit(X, y))[0] * rows / (epochs * len(y)))
                for method in _METHODS:
                    taken, result = _seconds(lambda: stoic.minimize(problem, method, rows, seed=0))  # noqa: B023
                    ours[method].append(taken)
                    reads[method] = result.evaluations / len(y)
            base = statistics.median(theirs)
            medians = {method: statistics.median(taken) for method, taken in ours.items()}
            shown = "".join(f"{medians[m]:17.2f} {medians[m] / base:9.2f} {reads[m]:7.0f}" for m in _METHODS)
            print(f"{penalty:8} {rows:7d} {base:7.2f}{shown}", flush=True)


def _seconds(run: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
