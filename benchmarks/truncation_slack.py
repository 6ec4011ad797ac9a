"""How tight should RROSC truncate? Gap and error for several slacks, with light and with heavy tails."""

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic

GROUPS, ROWS, FEATURES, ALPHA = 6, 1000, 20, 0.01
SLACKS = [(1.0, 0.0), (0.3, 0.0), (0.2, 4.0), (0.1, 5.0), (0.1, 3.0), (0.03, 3.0)]
NOISES = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "student 2.5": lambda rng, n: rng.standard_t(2.5, n),
    "pareto 2.1": lambda rng, n: rng.pareto(2.1, n) - 1.0 / 1.1,
    "lognormal 1.5": lambda rng, n: rng.lognormal(0.0, 1.5, n) - np.exp(1.125),
}


def make_problem(noise, seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(GROUPS), ROWS)
    X, model = rng.standard_normal((groups.size, FEATURES)), rng.standard_normal(FEATURES) / 2
    y = X @ model + NOISES[noise](rng, groups.size) * (1 + groups / GROUPS)
    return stoic.Problem(stoic.GroupLoss(X, y, groups), stoic.LogSumExp(10.0), stoic.L2(ALPHA)), model


def optimum(problem):
    gradient = lambda w: problem.gradient(w) + ALPHA * w  # noqa: E731
    return scipy_minimize(problem.objective, np.zeros(FEATURES), jac=gradient, method="BFGS").fun


def measure(problem, model, best, slack, budget, seed):
    constants = stoic.estimate_constants(problem, seed=seed)
    method = "rmscg"
    if slack is not None:
        method = stoic.RROSC(levels=stoic.Calibrated(constants.C_g, constants.L_g, *slack))
    result = stoic.minimize(problem, method, budget, seed=seed)
    error = float(((result.w - model) ** 2).sum())
    return problem.objective(result.w) - best, error, result.truncated_y, result.truncated_z


def main(seeds=5):
    print(f"{'noise':<14}{'budget':>8}  {'slack':<22}{'gap':>9}{'error':>9}{'% y':>7}{'% z':>7}")
    for noise in NOISES:
        problems = [make_problem(noise, seed) for seed in range(seeds)]
        best = [optimum(problem) for problem, _ in problems]
        for budget in (20_000, 200_000):
            for slack in [*SLACKS, None]:
                runs = [measure(*problems[seed], best[seed], slack, budget, seed) for seed in range(seeds)]
                gap, error, y, z = np.median(runs, axis=0)
                name = "rmscg" if slack is None else f"max({slack[1]:g}, {slack[0]:g}·√T)"
                print(
                    f"{noise:<14}{budget:>8}  {name:<22}{gap:>9.2g}{error:>9.2g}{100 * y:>7.1f}{100 * z:>7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
