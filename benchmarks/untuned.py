"""How far are the untuned defaults from the best cell of a grid? Test errors on five data sets.

The grid has 11 weights of the L2 penalty and 11 step sizes, 10^-5 to 10^5, for the same method; its best cell is
that with the smallest error *on the test rows*, averaged over the trials: no selection could choose better. The
weight of the penalty is part of the problem: the untuned defaults are run with each of them, and the best counts.

    python benchmarks/untuned.py e2006-like tweets=X.npz,targets.npz flights=flights.parquet claims=claims.parquet
"""

import argparse
from dataclasses import dataclass

import joblib
import numpy as np
from data_sets import USAGE, load

import stoic
from stoic.datasets.noise import NOISES, add_noise, make_noises
from stoic.datasets.synthetic import e2006_like

DECADES = [float(f"1e{k}") for k in range(-5, 6)]
FINALISTS = 6


@dataclass
class Data:
    """Rows to fit, one set of labels for each trial, and rows to test on."""

    X: object
    labels: list
    groups: list
    X_test: object
    y_test: np.ndarray
    loss: object
    temperature: float
    intercept: bool

    def problem(self, trial, regularizer):
        y, groups = self.labels[trial], self.groups[trial]
        inner = stoic.GroupLoss(self.X, y, groups, loss=self.loss, intercept=self.intercept)
        return stoic.Problem(inner, stoic.LogSumExp(self.temperature), regularizer)

    def error(self, w):
        """Return the test MSE, or for the Huber loss the test MAE."""
        prediction = self.X_test @ w[: self.X_test.shape[1]] + (w[-1] if self.intercept else 0.0)
        residual = prediction - self.y_test
        with np.errstate(over="ignore"):
            error = np.mean(np.abs(residual)) if isinstance(self.loss, stoic.Huber) else np.mean(residual**2)
        return float(error) if np.isfinite(error) else np.inf


def noisy_text(trials):
    data, labels, groups = e2006_like(), [], []
    for trial in range(trials):
        y, kinds = add_noise(data.y_train, make_noises(tuple(NOISES), share=0.1), np.random.default_rng(trial))
        labels.append(y)
        groups.append(kinds)
    return Data(data.X_train, labels, groups, data.X_test, data.y_test, stoic.Squared(), 1000.0, False)


def real(rows, trials, *, robust):
    """Return a data set with an intercept; the temperature is a group's largest loss under the best constant."""
    X, y, groups, is_test = rows
    fit, spread = ~is_test, np.median(np.abs(y - np.median(y))) * 1.4826
    loss = stoic.Huber(1.345 * spread) if robust else stoic.Squared()
    center = np.median(y[fit]) if robust else y[fit].mean()
    losses = loss.value(center, y[fit])
    temperature = max(float(losses[groups[fit] == name].mean()) for name in np.unique(groups[fit]))
    repeated = [y[fit]] * trials, [groups[fit]] * trials
    return Data(X[fit], *repeated, X[is_test], y[is_test], loss, temperature, True)


def data_sets(given, trials):
    if "e2006-like" in given:
        yield "e2006-like, six noises (MSE)", noisy_text(trials)
    for name, rows in load(given):
        robust = name in {"tweets, counts", "claims"}
        yield f"{name} ({'MAE' if robust else 'MSE'})", real(rows, trials, robust=robust)


def error_of(data, alpha, step, trial, budget):
    """Return the test error of a cell; without a step size, of the untuned defaults."""
    method = "auto" if step is None else stoic.RROSCTracked(step_size=step)
    with np.errstate(all="ignore"):
        result = stoic.minimize(data.problem(trial, stoic.L2(alpha)), method, budget=budget, seed=trial)
    return data.error(result.w)


def best(data, cells, trials, budget, pool):
    """Return the cell with the smallest mean error, and that error: all in one trial, the best six in all."""
    once = pool(joblib.delayed(error_of)(data, *cell, 0, budget) for cell in cells)
    finalists = [cells[place] for place in np.argsort(once)[:FINALISTS]]
    tasks = [(*cell, trial) for cell in finalists for trial in range(trials)]
    errors = pool(joblib.delayed(error_of)(data, *task, budget) for task in tasks)
    means = np.reshape(errors, (-1, trials)).mean(axis=1)
    place = int(np.argmin(means))
    return finalists[place], float(means[place])


def compare(name, data, trials, budget, pool):
    (alpha, step), lowest = best(data, [(a, s) for a in DECADES for s in DECADES], trials, budget, pool)
    (alone, _), untuned = best(data, [(a, None) for a in DECADES], trials, budget, pool)
    cell, ours = f"{lowest:.4g} at α = {alpha:g}, η = {step:g}", f"{untuned:.4g} at α = {alone:g}"
    print(f"{name:<30}{cell:<36} untuned {ours:<24} ratio {untuned / lowest:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help=f"e2006-like {USAGE}")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--budget", type=int, default=400_000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with joblib.Parallel(n_jobs=given.jobs) as pool:
        for name, data in data_sets(given.data, given.trials):
            compare(name, data, given.trials, given.budget, pool)


if __name__ == "__main__":
    main()
