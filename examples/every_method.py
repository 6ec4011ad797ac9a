"""Every method on one heavy-tailed group-DRO problem: a table, and a figure.

Six groups share a linear model; their labels carry six kinds of noise, most of them heavy-tailed, and every
repetition draws new data. Each method gets the same number of samples and no tuning. Two things are measured: the
objective of the data at hand above its exact optimum, and the squared distance to the true model.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic

mpl.use("Agg")
import matplotlib.pyplot as plt

GROUPS, ROWS, FEATURES = 6, 1000, 20
ALPHA, TEMPERATURE = 0.01, 10.0
HIGHLIGHTS = {
    "rrosc": "#0072b2",
    "rmscg-robust": "#56b4e9",
    "rmscg": "#d55e00",
    "asc-pg": "#009e73",
    "rcivr": "#cc79a7",
    "scgd": "#e69f00",
}


def make_problem(rng):
    """Return the problem, the planted model, and clean test features."""
    groups = np.repeat(np.arange(GROUPS), ROWS)
    X = rng.standard_normal((GROUPS * ROWS, FEATURES)) * (1.0 + 0.1 * groups[:, None])
    model = rng.standard_normal(FEATURES) / 2.0
    y = X @ model + np.concatenate([noise(kind, rng) for kind in range(GROUPS)])
    inner = stoic.GroupLoss(X, y, groups)
    problem = stoic.Problem(inner, stoic.LogSumExp(TEMPERATURE), stoic.L2(ALPHA))
    return problem, model


def noise(kind, rng):
    """Return labels' noise: two Pareto, two Student, one sparse, one Gaussian."""
    if kind < 2:
        sample = rng.pareto((2.01, 3.0)[kind], ROWS)
        return sample - sample.mean()
    if kind < 4:
        return rng.standard_t((2.5, 5.0)[kind - 2], ROWS)
    spikes = rng.uniform(-10, 10, ROWS) * (rng.random(ROWS) < 0.1) * (kind == 4)
    return spikes + rng.standard_normal(ROWS)


def exact_optimum(problem):
    """Return F* of the data at hand, found by SciPy."""
    found = scipy_minimize(
        problem.objective,
        np.zeros(problem.dimension),
        jac=lambda w: problem.gradient(w) + ALPHA * w,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    return found.fun


def run(method, repetitions, budget):
    """Return one result a repetition, or why there is none."""
    try:
        return [solve(method, *repetition, budget, seed) for seed, repetition in enumerate(repetitions)]
    except stoic.IncompatibleParts:
        return "needs a linear outer function"
    except stoic.InvalidParameter:
        return "needs a larger budget"


def solve(method, problem, model, best, budget, seed):
    """Solve one repetition, observing the gap and the error."""
    observers = {
        "gap": lambda w: problem.objective(w) - best,
        "error": lambda w: float(((w - model) ** 2).sum()),
    }
    return stoic.minimize(problem, method, budget, seed=seed, observers=observers, evaluate_every=budget // 40)


def row(method, results):
    """Return one line of the table."""
    if isinstance(results, str):
        return f"{method:<14}{results:>30}"
    last = [result.history[-1] for result in results]
    gaps = np.array([record["gap"] for record in last])
    errors = np.array([record["error"] for record in last])
    first = results[0]
    cost = 1e6 * np.median([result.seconds / result.samples for result in results])
    truncated = f"{100 * first.truncated_y:5.1f} {100 * first.truncated_z:5.1f}"
    return (
        f"{method:<14}{np.median(gaps):>10.1e}{gaps.max():>10.1e}{np.median(errors):>10.4f}{errors.max():>10.4f}"
        f"{first.n_steps:>8}{first.samples:>9}{first.evaluations:>9}{truncated:>13}{cost:>8.1f}"
    )


HEADER = (
    f"{'method':<14}{'gap':>10}{'worst':>10}{'error':>10}{'worst':>10}"
    f"{'steps':>8}{'samples':>9}{'evals':>9}{'% trunc. y z':>13}{'µs/ξ':>8}"
)


PANELS = (
    ("gap", np.median, "objective above its optimum, median"),
    ("error", np.max, "squared distance to the true model, worst"),
)


def draw(everything, out):
    """Draw the median gap and the worst error over the data sets against samples; other methods in gray."""
    fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for ax, (key, summary, title) in zip(axes, PANELS, strict=True):
        for method, results in everything.items():
            if not isinstance(results, str):
                draw_curve(ax, method, results, key, summary)
        ax.set(xscale="log", yscale="log", xlabel="samples drawn", title=title)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylim(bottom=3e-4)  # rcivr goes on to rounding error
    axes[0].legend(frameon=False, loc="upper right", fontsize=9)
    out.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(out, dpi=110)
    plt.close(fig)


def draw_curve(ax, method, results, key, summary):
    """Draw one method."""
    n_records = min(len(result.history) for result in results)
    samples = [record["samples"] for record in results[0].history[:n_records]]
    values = summary([[record[key] for record in result.history[:n_records]] for result in results], axis=0)
    if method in HIGHLIGHTS:
        ax.plot(samples, values, color=HIGHLIGHTS[method], lw=2, label=method, zorder=2)
    else:
        ax.plot(samples, values, color="0.8", lw=1, zorder=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--budget", type=int, default=200_000, help="samples for each solve (default: %(default)s)"
    )
    parser.add_argument("--repetitions", type=int, default=10, help="data sets (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("build/every_method.png"), help="figure (default: %(default)s)"
    )
    arguments = parser.parse_args()

    problems = [make_problem(np.random.default_rng(seed)) for seed in range(arguments.repetitions)]
    repetitions = [(problem, model, exact_optimum(problem)) for problem, model in problems]
    print(
        f"KL group DRO, {GROUPS} groups x {ROWS} rows, {FEATURES} features, heavy-tailed labels; "
        f"{arguments.budget} samples; median and worst of {arguments.repetitions} data sets\n{HEADER}"
    )
    everything = {}
    for method in sorted(stoic.METHODS):
        everything[method] = run(method, repetitions, arguments.budget)
        print(row(method, everything[method]), flush=True)
    draw(everything, arguments.out)
    print(f"figure: {arguments.out}")


if __name__ == "__main__":
    main()
