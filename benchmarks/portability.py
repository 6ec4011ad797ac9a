"""How far do answers differ from machine to machine? Each method on three problems, under other processors' code.

The same seed gives the same bits on one machine; elsewhere other instructions round otherwise. For each method and
for the estimators with each loss, this prints the largest |w − w'| / |w| over problems and seeds: w as found here,
w' in an environment that stands for another machine (`tests/processors.py`). The last column says whether steps,
samples and evaluations are as many everywhere.
"""

import argparse
import contextlib
import itertools
import os
import pickle
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import stoic

TESTS = Path(__file__).parents[1] / "tests"
N, SEEDS = 6000, 5
GROUPS = np.arange(N) % 3


def table():
    """Return rows and targets with heavy tails."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 10))
    return X, X @ np.ones(10) + rng.standard_t(2.5, N) * (1 + GROUPS)


def sparse_table():
    """Return sparse rows and labels -1 or 1."""
    rng = np.random.default_rng(1)
    X = sp.random_array((N, 40), density=0.1, format="csr", rng=rng)
    return X, np.where(X @ rng.standard_normal(40) + rng.standard_t(2.5, N) > 0.0, 1.0, -1.0)


def problems():
    """Return problems that differ in rows, loss, outer function and penalty."""
    huber, squared = (stoic.GroupLoss(*table(), GROUPS, loss=loss) for loss in ("huber", "squared"))
    logistic = stoic.GroupLoss(*sparse_table(), GROUPS, loss="logistic")
    return [
        stoic.Problem(huber, stoic.LogSumExp(10.0), stoic.ElasticNet(1e-3)),
        stoic.Problem(squared, stoic.Linear(), stoic.L2(0.1)),
        stoic.Problem(logistic, stoic.SmoothCVaR(0.5, 0.1), stoic.L2(1e-2)),
    ]


def solves(budget):
    """Yield method, answer and counts of each solve."""
    for method, problem, seed in itertools.product(stoic.METHODS, problems(), range(SEEDS)):
        with contextlib.suppress(stoic.IncompatibleParts):  # RSMD takes a linear f, Newton one with a Hessian
            result = stoic.minimize(problem, method, budget, seed=seed)
            yield method, result.w, (result.n_steps, result.samples, result.evaluations)


def fits():
    """Yield model, answer and counts of fits, which stop by themselves."""
    X, y = table()
    for loss in ("huber", "squared", "absolute", "quantile"):
        model = stoic.GroupDRORegressor(loss).fit(X, y, groups=GROUPS)
        yield f"fit {loss}", model.coef_, (model.n_iter_, model.n_samples_drawn_)
    model = stoic.GroupDROClassifier().fit(X, y > 0.0, groups=GROUPS)
    yield "fit logistic", model.coef_.ravel(), (model.n_iter_, model.n_samples_drawn_)


def solved_in(variables, budget):
    """Return the solves and fits of a process of its own."""
    command = [sys.executable, __file__, "--budget", str(budget), "--here"]
    ended = subprocess.run(command, env=os.environ | variables, stdout=subprocess.PIPE, check=True)  # noqa: S603
    return pickle.loads(ended.stdout)  # noqa: S301 - written by us


def differences(here, there):
    """Return the largest relative difference of each method, and whether its counts are alike."""
    found, alike = defaultdict(float), defaultdict(lambda: True)
    for (name, w, counts), (_, other, other_counts) in zip(here, there, strict=True):
        found[name] = max(found[name], np.linalg.norm(other - w) / np.linalg.norm(w))
        alike[name] &= counts == other_counts
    return found, alike


def compare(budget):
    """Print a line for each method and a column for each environment."""
    sys.path.insert(0, str(TESTS))
    from processors import environments

    here = solved_in({}, budget)
    columns = {name: differences(here, solved_in(variables, budget)) for name, variables in environments().items()}
    for number, name in enumerate(columns, 1):
        print(f"{number}: {name}")
    print(f"{'method':14}", *(f"{number:>8}" for number in range(1, len(columns) + 1)), "  counts")
    for name in dict.fromkeys(name for name, _, _ in here):
        alike = all(counts[name] for _, counts in columns.values())
        shown = [f"{found[name]:8.0e}" for found, _ in columns.values()]
        print(f"{name:14}", *shown, "   alike" if alike else "  differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--here", action="store_true", help="solve in this process; write a pickle")
    options = parser.parse_args()
    if options.here:
        sys.stdout.buffer.write(pickle.dumps([*solves(options.budget), *fits()]))
    else:
        compare(options.budget)


if __name__ == "__main__":
    main()
