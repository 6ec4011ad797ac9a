"""Which loss, which method, which robust mean? The tables of docs/choosing.md."""

import argparse

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic
from stoic.means import block_means

DELTA, BUDGET = 0.01, 40_000
OBJECTIVES = {
    "Huber, groups pooled": ("huber", None),
    "KL, τ = 10, Huber": ("huber", 10.0),
    "KL, τ = 1, absolute": ("absolute", 1.0),
    "KL, τ = 1, Huber": ("huber", 1.0),
    "KL, τ = 10, square loss": ("squared", 10.0),
    "KL, τ = 1, square loss": ("squared", 1.0),
}
SETTINGS = {  # loss, outer function, degrees of freedom of the labels
    "linear, square": ("squared", stoic.Linear(), 2.1),
    "KL, square": ("squared", stoic.LogSumExp(2.0), 2.1),
    "KL, Huber": ("huber", stoic.LogSumExp(2.0), 2.1),
    "KL, square, light": ("squared", stoic.LogSumExp(2.0), 30.0),
}
METHODS = [
    "auto",
    "rrosc-growing",
    "rrosc",
    "rosc",
    "clipped-sgd",
    "rmscg-robust",
    "rmscg",
    "mscg",
    "alexr",
    "scsc",
    "scgd",
    "rcivr",
]
MEANS = [
    stoic.Mean(),
    stoic.GeometricMedianOfMeans(DELTA),
    stoic.MedianOfMeans(DELTA),
    stoic.SmallestBall(DELTA),
    stoic.TrimmedMean(share=0.1),
]


def noisy_groups(seed):
    """One model for six groups, of which the last is the noisiest."""
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((6000, 5)), np.arange(6000) % 6
    return X, X @ np.ones(5) + (1 + groups) * rng.standard_t(2.1, 6000), groups


def error_of_optimum(seed, loss, temperature):
    X, y, groups = noisy_groups(seed)
    if temperature is None:
        problem = stoic.Problem(stoic.GroupLoss(X, y, loss=loss), stoic.Linear())
    else:
        problem = stoic.Problem(stoic.GroupLoss(X, y, groups, loss=loss), stoic.LogSumExp(temperature))
    optimum = scipy_minimize(problem.objective, np.zeros(5), jac=problem.gradient, method="BFGS").x
    return np.linalg.norm(optimum - 1.0)


def print_objectives(seeds=5):
    print(f"Optima of {seeds} data sets, distance to the true model: mean ± standard deviation")
    for name, (loss, temperature) in OBJECTIVES.items():
        errors = [error_of_optimum(seed, loss, temperature) for seed in range(seeds)]
        print(f"{name:<26}{np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f}", flush=True)


def make_problem(seed, loss, outer, freedom):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((20_000, 10)), np.arange(20_000) % 4
    y = X @ np.ones(10) + rng.standard_t(freedom, 20_000)
    return stoic.Problem(stoic.GroupLoss(X, y, groups, loss=loss), outer)


def error_of_method(problem, method, seed):
    return np.linalg.norm(stoic.minimize(problem, method, BUDGET, seed=seed).w - 1.0)


def print_methods(seeds):
    print(f"\nDistance to the true model after {BUDGET} samples, {seeds} data sets: median / worst")
    print(" " * 14 + "".join(f"{name:>19}" for name in SETTINGS))
    problems = {name: [make_problem(seed, *parts) for seed in range(seeds)] for name, parts in SETTINGS.items()}
    for method in METHODS:
        print(f"{method:<14}", end="")
        for made in problems.values():
            errors = [error_of_method(problem, method, seed) for seed, problem in enumerate(made)]
            print(f"{np.median(errors):>12.2f} / {max(errors):.2f}", end="", flush=True)
        print()


def pareto(seed):
    return np.random.default_rng(seed).pareto(2.1, (1000, 5)) - 1.0 / 1.1


def error_of_mean(mean, x):
    return np.linalg.norm(mean.combine(block_means(x, n_blocks=mean.n_blocks(len(x)))))


def print_means(seeds=1000):
    print(f"\nErrors of {seeds} means of 1000 samples in R⁵, δ = {DELTA}: smallest batch, median, 99 %")
    for mean in MEANS:
        errors = [error_of_mean(mean, pareto(seed)) for seed in range(seeds)]
        name = type(mean).__name__
        print(f"{name:<26}{mean.smallest_batch:>3}{np.median(errors):>8.2f}{np.quantile(errors, 0.99):>8.2f}")


def main(seeds):
    print_objectives()
    print_methods(seeds)
    print_means()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="of each method (default 20)")
    main(parser.parse_args().seeds)
