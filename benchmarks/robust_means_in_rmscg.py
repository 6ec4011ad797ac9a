"""What the robust mean costs RMSCG where tails are light: gap on a mean-variance problem over the simplex."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic

MEANS = {
    "Mean": stoic.Mean(),
    "GeometricMedianOfMeans, 35 blocks": stoic.GeometricMedianOfMeans(np.exp(-35 / 3.5)),
    "MedianOfMeans, 35 blocks": stoic.MedianOfMeans(np.exp(-35 / 8)),
    "SmallestBall, 3 blocks": stoic.SmallestBall(np.exp(-3 / 18)),
    "SmallestBall, 10 blocks": stoic.SmallestBall(np.exp(-10 / 18)),
    "SmallestBall, 35 blocks": stoic.SmallestBall(np.exp(-35 / 18)),
}


def make_problem():
    rng = np.random.default_rng(7)
    X = np.linspace(0.1, 0.5, 6) + rng.standard_normal((200, 6)) * np.linspace(0.2, 0.5, 6)
    return stoic.Problem(stoic.Moments(X), stoic.MeanVariance(1.0), stoic.Simplex())


def optimum(problem):
    d = problem.dimension
    return scipy_minimize(
        problem.objective,
        np.full(d, 1 / d),
        jac=problem.gradient,
        method="SLSQP",
        bounds=[(0, 1)] * d,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    ).x


def main(seeds=6, budget=200_000):
    problem = make_problem()
    best = problem.objective(problem.regularizer.prox(optimum(problem), 1.0))
    scale = problem.objective(problem.start(None)) - best
    stages = stoic.minimize(problem, "rmscg-robust", budget, seed=0).solver.stages
    print(f"{'mean':<36}{'worst relative gap':>20}")
    for name, mean in MEANS.items():
        solver = stoic.Restarted([replace(stage, mean=mean) for stage in stages])
        runs = [stoic.minimize(problem, solver, budget, seed=seed).w for seed in range(seeds)]
        print(f"{name:<36}{max(problem.objective(w) - best for w in runs) / scale:>20.1e}", flush=True)


if __name__ == "__main__":
    main()
