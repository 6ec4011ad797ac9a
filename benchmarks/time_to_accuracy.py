"""Seconds to the exact optimum of data in memory: `newton` beside what people would write or install instead.

All minimize one objective, F = f(mean losses of the groups) + penalty, from w = 0: L-BFGS, Newton-CG, FISTA, SGD,
PyTorch, skglm. The clock is the whole call; looking at F is outside of it where a method does not compute F by
itself. Given are seconds to F(w) - F* <= 1e-3 and 1e-6 of F(0) - F*, medians of three where a run takes
less than a minute, and the ratio of ours to the best rival. F* is the least value that any of them reached in a
long run. SGD is tuned: its step is the best of seven, tried on the same data outside the clock, and it is compiled
before. PyTorch and skglm run where they are installed. A run that takes three times as long as the fastest before
it ends there: inf.

    python benchmarks/time_to_accuracy.py tweets=X.npz,targets.npz flights=flights.parquet claims=claims.parquet
    python benchmarks/time_to_accuracy.py --quick        # small versions of what needs no file
"""

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from data_sets import table, tweets
from exact_rivals import RIVALS, Objective, Trace

import stoic
from stoic.datasets.synthetic import e2006_like

LEVELS = (1e-3, 1e-6)
LIMIT = 20.0
"""Seconds that a run may take."""
SLOWER = 3.0
"""A run ends after as many times the seconds of the fastest before it: whatever comes then is no rival."""
REPEATS = 3


@dataclass(frozen=True)
class Cell:
    """A problem; `alpha` is the weight of the L2 term, or the share of the least L1 weight that makes w zero."""

    data: str
    loss: str
    penalty: str
    alpha: float
    outer: str = "kl"

    def __str__(self) -> str:
        return f"{self.data}, {self.loss}, {self.penalty} {self.alpha:g}, {self.outer}"


CELLS = [
    Cell("claims", "huber", "L2", 1e-3),
    Cell("claims", "huber", "L1", 0.02),
    Cell("flights", "huber", "L2", 1e-3),
    Cell("flights", "logistic", "L2", 1e-3),
    Cell("flights CSR", "huber", "L2", 1e-3),
    Cell("flights CSR", "squared", "L1", 0.02),
    Cell("tweets", "squared", "L2", 1e-4),
    Cell("tweets", "huber", "L2", 1e-5),
    Cell("tweets", "squared", "L1", 0.02),
    Cell("tweets", "squared", "L1", 0.02, "linear"),
    Cell("e2006", "squared", "L2", 1e-3),
    Cell("e2006", "huber", "L1", 0.02),
    Cell("dense", "logistic", "L2", 1e-4),
    Cell("dense", "squared", "L1", 0.02),
    Cell("tall", "squared", "L2", 1e-4),
    Cell("tall", "logistic", "L2", 1e-4),
    Cell("tall", "squared", "L1", 0.05),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="tweets=X.npz,targets.npz flights=….parquet claims=….parquet")
    parser.add_argument("--quick", action="store_true", help="small versions of the data that are made")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--rivals", default="", help="names of rivals, with commas between them; all by default")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    paths = dict(given.split("=", 1) for given in options.files)
    names = [name for name in RIVALS if not options.rivals or name in options.rivals.split(",")]
    print(f"{'':38}" + "".join(f"{name:>16}" for name in ["newton", *names]) + f"{'ratios':>16}")
    wins, made = {level: [] for level in LEVELS}, {}
    for cell in CELLS:
        if options.only not in str(cell):
            continue
        if cell.data not in made:
            made = {cell.data: load(cell.data, paths, options.quick)}
        if made[cell.data] is None:
            print(f"{cell!s:38} no file given")
            continue
        ratios = compare(cell, *made[cell.data], names, options.repeats)
        for level, ratio in ratios.items():
            wins[level].append(ratio)
    for level, ratios in wins.items():
        good, bad = sum(one <= 0.7 for one in ratios), sum(one > 1.0 for one in ratios)
        print(f"{level:g}: {len(ratios)} cells, ratio <= 0.7 in {good}, above 1 in {bad}")


def load(name, paths, quick):  # noqa: PLR0911
    """Return X, y, groups; None where a file is needed and not given."""
    rng = np.random.default_rng(0)
    if name == "tweets" and "tweets" in paths:
        rows = tweets(paths["tweets"].split(","), logarithms=True)
        return rows.X, rows.y, rows.groups
    if name == "claims" and "claims" in paths:
        rows = table(paths["claims"], "y", "group", ["IDpol"])
        return rows.X, rows.y, rows.groups
    if name == "flights" and "flights" in paths:
        rows = table(paths["flights"], "y", "carrier", ["dep_delay", "air_time", "day"])
        return rows.X, rows.y, rows.groups
    if name == "flights CSR" and "flights" in paths:
        return one_hot(paths["flights"], "y", "carrier", ["dep_delay", "air_time", "day"])
    if name == "e2006":
        data = e2006_like()
        n = data.X_train.shape[0] // (8 if quick else 1)
        return data.X_train[:n], data.y_train[:n], rng.integers(0, 6, n)
    if name == "dense":
        n, d = (20_000, 50) if quick else (1_000_000, 100)
        return linear_targets(rng.standard_normal((n, d)), rng, 8)
    if name == "tall":
        n, d, k = (50_000, 2_000, 20) if quick else (2_000_000, 100_000, 20)
        entries = rng.standard_normal(n * k), rng.integers(0, d, n * k), np.arange(0, n * k + 1, k)
        return linear_targets(sp.csr_array(entries, shape=(n, d)), rng, 8)
    return None


def one_hot(path, target, group, leave_out):
    """Return a table as CSR: numbers divided by their deviation, one column for each category."""
    frame = pd.read_parquet(path)
    y, groups = frame[target].to_numpy(float), frame[group].to_numpy()
    frame = frame.drop(columns=[target, "test", *leave_out])
    frame = frame.astype({name: "category" for name in ("month", "hour") if name in frame})
    numbers = frame.select_dtypes("number")
    scaled = (numbers / numbers.std()).to_numpy(float)
    codes = [frame[name].astype("category").cat.codes for name in frame.columns.difference(numbers.columns)]
    n = len(y)
    parts = [sp.csr_array((np.ones(n), (np.arange(n), one.to_numpy()))) for one in codes]
    return sp.csr_array(sp.hstack([sp.csr_array(scaled), *parts])), y, groups


def linear_targets(X, rng, p):
    """Return rows with targets of a linear model; each of p groups has slopes and noise of its own."""
    n, d = X.shape
    groups = rng.integers(0, p, n)
    y = X @ rng.standard_normal(d)
    y = y / y.std()
    for i in range(p):
        rows = groups == i
        own = X[rows] @ rng.standard_normal(d)
        y[rows] += 0.3 * own / own.std() + (0.5 + 0.2 * i) * rng.standard_t(3.0, int(rows.sum()))
    return X, y, groups


def make_problem(cell, X, y, groups):
    """Return the problem of a cell, targets in units of their spread."""
    y = y - np.median(y)
    y = y / (np.abs(y).mean() if cell.loss != "squared" else y.std())
    if cell.loss == "logistic":
        y = np.where(y > np.quantile(y, 0.7), 1.0, -1.0)
    inner = stoic.GroupLoss(X, y, groups if cell.outer == "kl" else None, loss=cell.loss)
    zero = np.zeros(inner.shape[1])
    losses = inner.value(zero, inner.everything())[0]
    outer = stoic.LogSumExp(0.1 * float(losses.mean())) if cell.outer == "kl" else stoic.Linear()
    if cell.penalty == "L2":
        return stoic.Problem(inner, outer, stoic.L2(cell.alpha))
    largest = float(np.abs(stoic.Problem(inner, outer).gradient(zero)).max())
    return stoic.Problem(inner, outer, stoic.L1(cell.alpha * largest))


def by_newton(problem, objective, target, limit):
    """Return the trace of `minimize(problem, "newton")`; looking at F is outside the clock."""
    trace, away = Trace(), [0.0, time.perf_counter()]

    def look(w):
        began = time.perf_counter()
        value = objective.value(w)
        trace.add(began - away[1] - away[0], value, w)
        away[0] += time.perf_counter() - began
        return value

    def stop(record):
        if record["F"] <= target:
            raise StopIteration

    stoic.minimize(
        problem, "newton", budget=problem.inner.n_samples, evaluate_every=1, observers={"F": look}, callback=stop,
        max_seconds=limit,
    )  # fmt: skip
    return trace


def compare(cell: Cell, X: Any, y: Any, groups: Any, names: list[str], repeats: int) -> dict[float, float]:
    """Print the row of a cell, and return the ratios of ours to the best rival."""
    problem = make_problem(cell, X, y, groups)
    objective = Objective(problem)
    solvers = {"newton": by_newton} | {name: RIVALS[name] for name in names if RIVALS[name].takes(problem)}
    traces, best = {}, np.inf
    for name in ("newton", "L-BFGS", "Newton-CG", "FISTA"):  # long runs, for F*
        if name in solvers and (name != "FISTA" or objective.l1):
            best = min(best, solvers[name](problem, objective, -np.inf, LIMIT).least)
    start = objective.value(np.zeros(problem.dimension))
    goal = best + LEVELS[-1] * (start - best)
    limit = LIMIT
    for name, solver in solvers.items():  # which tunes and compiles SGD
        traces[name] = [solver(problem, objective, goal, limit)]
        limit = min(limit, SLOWER * max(0.1, traces[name][0].seconds(goal)))
    for _ in range(repeats - 1):
        for name, solver in solvers.items():
            if traces[name][0].seconds(goal) < LIMIT:
                traces[name].append(solver(problem, objective, goal, limit))
    seconds = {
        name: [float(np.median([one.seconds(best + k * (start - best)) for one in runs])) for k in LEVELS]
        for name, runs in traces.items()
    }
    rivals = [seconds[name] for name in names if name in seconds]
    ratios = {level: seconds["newton"][k] / min(one[k] for one in rivals) for k, level in enumerate(LEVELS)}
    shown = [seconds.get(name) for name in ["newton", *names]]
    cells = ["-" if one is None else " / ".join(f"{x:.3g}" for x in one) for one in shown]
    print(
        f"{cell!s:38}"
        + "".join(f"{one:>16}" for one in cells)
        + f"{' / '.join(f'{x:.2f}' for x in ratios.values()):>16}"
    )
    sys.stdout.flush()
    return ratios


if __name__ == "__main__":
    main()
