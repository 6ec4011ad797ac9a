"""What decides who is ahead in the paper's experiment? One choice is changed at a time, on small data.

For each method every step size is run on the same trials, and the one with the smallest median error on clean test
labels is shown: no selection on noisy labels stands between a method and its result. The last columns are the
error at the step size that the grid of `stoic reproduce` would choose, by the mean error on noisy validation rows.
"""

import argparse
from dataclasses import replace

import joblib
import numpy as np

from stoic.inners.group_loss import GroupLoss
from stoic.outers import LogSumExp
from stoic.pilot import run_pilot
from stoic.problem import Problem
from stoic.regularizers import L2, Zero
from stoic.reports.palette import PAPER_METHODS
from stoic.solve.driver import minimize
from stoic.studies.paper.data import first_rows, last_rows, prepare_material, with_noise
from stoic.studies.paper.runs import solver_for
from stoic.studies.paper.spec import Spec
from stoic.studies.shared.seeds import generator

ALPHA = 1e-3
SMALL = {"size": 0.1, "budget": 40_000}
STEPS = tuple(float(f"1e{k}") for k in range(-4, 4))
WITHOUT_PARETO_1 = ("pareto-2.01", "student-2.5", "student-5", "sparse-5", "sparse-10")
CHANGES = {
    "nothing": {},
    "temperature 10": {"temperatures": (10.0,)},
    "temperature 100": {"temperatures": (100.0,)},
    "temperature 10^4": {"temperatures": (1e4,)},
    "batch size 1": {"batch_size": 1},
    "batch size 16": {"batch_size": 16},
    "1 stage": {"n_stages": 1},
    "8 stages": {"n_stages": 8},
    "no Pareto 1.01": {"noise": WITHOUT_PARETO_1},
    "no Pareto 1.01, t 10": {"noise": WITHOUT_PARETO_1, "temperatures": (10.0,)},
    "Huber loss": {"losses": ("huber",)},
}
SLACKS = {"slack / 3": (0.1 / 3, 1.0), "slack × 3": (0.3, 9.0), "no truncation": (1e12, 1e12)}


class Bench:
    """The trials of one spec: data, problems and pilots."""

    def __init__(self, spec, trials):
        self.spec, material = spec, prepare_material(spec)
        self.test = material.test
        grid = with_noise(material.train, spec, "grid")
        self.fit = [
            first_rows(grid, material.n_fit),
            *(with_noise(material.train, spec, "train", k) for k in range(trials)),
        ]
        self.validation = last_rows(grid, material.n_fit)
        self.problems = [self._problem(rows) for rows in self.fit]
        self.pilots = [self._pilot(problem, k) for k, problem in enumerate(self.problems)]

    def _problem(self, rows):
        inner = GroupLoss(rows.X, rows.y, rows.groups, loss=self.spec.losses[0])
        return Problem(inner, LogSumExp(self.spec.temperatures[0]), L2(ALPHA))

    def _pilot(self, problem, k):
        start, rng = np.zeros(problem.dimension), generator(self.spec.seed, "pilot", k)
        return run_pilot(replace(problem, regularizer=Zero()), start, rng, size=200)

    def error(self, method, step, k, slack):
        """Return the error on clean test labels of trial k ≥ 1, or on the noisy validation rows for k = 0."""
        solver = solver_for(method, step, self.spec, self.pilots[k])
        if slack is not None:
            solver = replace(solver, stages=tuple(_with_slack(stage, *slack) for stage in solver.stages))
        with np.errstate(all="ignore"):
            rng = generator(self.spec.seed, method, step, k)
            w = minimize(self.problems[k], solver, self.spec.budget, seed=rng).w
            rows = self.test if k else self.validation
            error = float(np.mean((rows.X @ w - rows.y) ** 2))
        return error if np.isfinite(error) else np.inf


def _with_slack(stage, factor, least):
    return replace(stage, levels=replace(stage.levels, factor=factor, least=least))


def rows_of(name, change, seeds, trials, methods, slack=None):
    """Return a line for each method: errors of all trials of all seeds at each step."""
    found = {method: [] for method in methods}
    chosen = {method: [] for method in methods}
    for seed in seeds:
        bench = Bench(Spec(**SMALL | {"trials": trials, "seed": seed} | change), trials)
        for method in methods:
            errors = np.array([[bench.error(method, step, k, slack) for k in range(trials + 1)] for step in STEPS])
            found[method].append(errors[:, 1:])
            chosen[method].append(errors[np.argmin(errors[:, 0]), 1:])
    lines = []
    for method in methods:
        errors = np.concatenate(found[method], axis=1)
        best = int(np.argmin(np.median(errors, axis=1)))
        lines.append((name, method, STEPS[best], errors[best], np.concatenate(chosen[method])))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3, help="data sets, each with its own trials")
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count())
    given = parser.parse_args()
    seeds = range(given.seeds)
    tasks = [(name, change, seeds, given.trials, PAPER_METHODS) for name, change in CHANGES.items()]
    tasks += [(name, {}, seeds, given.trials, ("rrosc",), slack) for name, slack in SLACKS.items()]
    head = f"{'changed':<22}{'method':<8}{'best step':>10}{'median':>8}{'mean':>9}{'sd':>9}"
    print(f"{head}{'chosen: median':>17}{'mean':>9}")
    pool = joblib.Parallel(n_jobs=given.jobs, return_as="generator")
    for lines in pool(joblib.delayed(rows_of)(*task) for task in tasks):
        for name, method, step, errors, chosen in lines:
            best = f"{np.median(errors):>8.3g}{np.mean(errors):>9.3g}{np.std(errors, ddof=1):>9.3g}"
            by_grid = f"{np.median(chosen):>17.3g}{np.mean(chosen):>9.3g}"
            print(f"{name:<22}{method:<8}{step:>10g}{best}{by_grid}", flush=True)


if __name__ == "__main__":
    main()
