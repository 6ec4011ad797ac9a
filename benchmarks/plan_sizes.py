"""How many samples do the plans ask for, what do the defaults reach, what does a pilot cost?

The numbers of decisions 003 and 007.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic

ALPHA, DELTA, BUDGET = 0.1, 0.05, 100_000


def make_problem(seed=0, rows=1000):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((3 * rows, 3)), np.arange(3 * rows) % 3
    y = X @ np.ones(3) + rng.standard_t(2.5, 3 * rows)
    return stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(10.0), stoic.L2(ALPHA))


def lowest(problem):
    gradient = lambda w: problem.gradient(w) + ALPHA * w  # noqa: E731
    return scipy_minimize(problem.objective, np.zeros(3), jac=gradient, method="BFGS", options={"gtol": 1e-8}).fun


def plans(constants, gap, factor):
    """Return the plans of Theorems 1, 2, 3, and 3 with the constants of a linear f."""
    ends = {"eps0": gap, "eps": gap / factor}
    linear = replace(constants, L_f=0.0)
    return [
        stoic.theorem_1(constants, **ends),
        stoic.theorem_2(constants, **ends, delta=DELTA),
        stoic.theorem_3(constants, **ends, delta=DELTA),
        stoic.theorem_3(linear, **ends, delta=DELTA),
    ]


def print_plans(problem, gap):
    print("Samples of each group that the plans ask for")
    print(f"{'gap divided by':<16}{'Theorem 1':>12}{'Theorem 2':>12}{'Theorem 3':>12}{'3, linear f':>14}")
    constants = stoic.estimate_constants(problem, seed=0)
    for factor in (10, 100):
        sizes = [plan.samples for plan in plans(constants, gap, factor)]
        print(f"{factor:<16}" + "".join(f"{size:>12.1e}" for size in sizes))


def factor_reached(problem, gap, best, seed):
    return gap / (problem.objective(stoic.minimize(problem, "rrosc", BUDGET, seed=seed).w) - best)


def print_defaults(problem, gap, best, seeds=10):
    factors = [factor_reached(problem, gap, best, seed) for seed in range(seeds)]
    print(f"\nDefaults of rrosc, {BUDGET} samples in all: the gap was divided in {seeds} runs")
    print(f"by at least {min(factors):.0f}, in the median by {np.median(factors):.0f}")


def print_pilots(problem):
    """Compare a run with the same plan run again, which needs no pilot."""
    print("\nThe pilot's part of a run of rrosc")
    print(f"{'budget':>8}{'samples':>9}{'share':>7}{'evaluations':>13}{'share':>7}")
    for budget in (1_000, 10_000, 100_000, 1_000_000):
        tuned = stoic.minimize(problem, "rrosc", budget, seed=0)
        again = stoic.minimize(problem, tuned.solver, budget, seed=0)
        samples, evaluations = tuned.samples - again.samples, tuned.evaluations - again.evaluations
        shares = f"{samples / budget:>7.1%}{evaluations:>13}{evaluations / tuned.evaluations:>7.0%}"
        print(f"{budget:>8}{samples:>9}{shares}", flush=True)


def main():
    problem = make_problem()
    best = lowest(problem)
    gap = problem.objective(np.zeros(3)) - best
    print_plans(problem, gap)
    print_defaults(problem, gap, best)
    print_pilots(problem)


if __name__ == "__main__":
    main()
