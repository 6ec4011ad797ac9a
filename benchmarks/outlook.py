"""How often messages say rightly that an answer is not there yet: solves with a known optimum, far and near.

For each problem it prints how much of the way F(w₀) − F* is left, what the outlook says, and the status; then the
table of right and wrong words. A fifth of the way is worth saying; between a twentieth and two fifths it may
be said or not.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import stoic

N, LOSSES = 20_000, ("squared", "huber", "absolute", "logistic")
NOISES = {
    "normal": lambda rng: rng.standard_normal(N),
    "t(2.1)": lambda rng: rng.standard_t(2.1, N),
    "log-normal": lambda rng: np.exp(2.0 * rng.standard_normal(N)),
}


class Case(NamedTuple):
    """A problem, the method, the budget, and how far from the optimum a solve starts (None: at zero)."""

    name: str
    problem: stoic.Problem
    budget: int = 50_000
    method: Any = "auto"
    distance: float | None = None


def made(
    seed: int,
    d: int = 10,
    *,
    loss: str = "squared",
    noise: str = "normal",
    scales: Any = 1.0,
    mean: float = 0.0,
    n_groups: int = 4,
    outer: Any = None,
    regularizer: Any = None,
    signal: float = 1.0,
) -> stoic.Problem:
    """Return KL group DRO of a linear model whose weights are of size 1 in units of the columns."""
    rng = np.random.default_rng(seed)
    standard = rng.standard_normal((N, d)) + mean
    y = signal * (standard @ rng.standard_normal(d)) + NOISES[noise](rng)
    y = np.where(y > 0.0, 1.0, -1.0) if loss == "logistic" else y
    inner = stoic.GroupLoss(standard * scales, y, np.arange(N) % n_groups, loss=loss, intercept=mean != 0.0)
    return stoic.Problem(inner, outer or stoic.LogSumExp(1.0), regularizer or stoic.Zero())


def cases() -> Iterator[Case]:
    """Walk through the problems."""
    for loss in LOSSES:
        for noise in ("normal", "t(2.1)"):
            problem = made(1, loss=loss, noise=noise, regularizer=stoic.L2(1e-3))
            yield Case(f"{loss}, {noise}", problem)
            yield Case(f"{loss}, {noise}, 4,000 samples", problem, 4000)
        for distance in (10.0, 100.0, 1000.0):
            problem = made(2, loss=loss, regularizer=stoic.L2(1e-3))
            yield Case(f"{loss}, started {distance:g} away", problem, distance=distance)
        yield Case(f"{loss}, started at the optimum", made(3, loss=loss), 20_000, distance=0.0)
    for power in (1.0, 2.0, 3.0):
        scales = np.logspace(0.0, -power, 10)
        for loss in ("squared", "huber"):
            yield Case(f"{loss}, condition 1e{2 * power:g}", made(4, loss=loss, scales=scales))
    yield Case("scales 1e-3 … 1e3", made(5, scales=np.logspace(-3.0, 3.0, 10)))
    yield Case("scales 1e-1 … 1e1", made(5, scales=np.logspace(-1.0, 1.0, 10)))
    yield Case("200 groups", made(6, n_groups=200))
    yield Case("50 groups", made(6, n_groups=50, loss="huber"))
    yield Case("mean 20", made(7, mean=20.0))
    yield Case("mean 2", made(7, mean=2.0, loss="huber"))
    yield Case("d = 20, 2,000 samples", made(8, 20), 2000)
    yield Case("d = 50", made(9, 50), 20_000)
    yield Case("log-normal", made(10, noise="log-normal", mean=1.0, outer=stoic.LogSumExp(10.0)))
    yield Case("smooth CVaR", made(11, loss="huber", outer=stoic.SmoothCVaR(0.5, 0.1)))
    yield Case("linear outer", made(12, outer=stoic.Linear()), 20_000)
    yield Case("no signal", made(13, signal=0.0), 20_000)
    yield Case("no signal, t(2.1)", made(13, signal=0.0, noise="t(2.1)"), 20_000)
    for step in (1e-5, 1e-4, 1e-3, 1e-2):
        yield Case(f"mscg, step {step:g}", made(14), 20_000, stoic.MSCG(step_size=step, batch_size=4))
    for method in ("mscg", "scsc", "scgd", "rmscg", "rcivr", "clipped-sgd", "alexr", "asc-pg"):
        yield Case(method, made(14, regularizer=stoic.L2(1e-3)), 20_000, method)


def optimum(problem: stoic.Problem) -> Any:
    """Return the minimizer by L-BFGS in units of the columns."""
    inner: Any = problem.inner
    unit = 1.0 / np.append(np.abs(inner.X).mean(axis=0), np.ones(int(inner.intercept)))
    alpha = getattr(problem.regularizer, "alpha", 0.0)

    def both(v: Any) -> tuple[float, Any]:
        return problem.objective(v * unit), (problem.gradient(v * unit) + alpha * v * unit) * unit

    options = {"maxiter": 3000, "maxfun": 4000, "ftol": 1e-14, "gtol": 1e-10}
    return scipy_minimize(both, np.zeros(unit.size), jac=True, method="L-BFGS-B", options=options).x * unit


def main(words: list[str]) -> None:
    """Print a line a case, and the table."""
    said: dict[tuple[str, bool], int] = {}
    n_worse = 0
    for case in cases():
        if any(word not in case.name for word in words):
            continue
        best = optimum(case.problem)
        w0 = np.zeros(best.size)
        if case.distance is not None:
            w0 = best + case.distance / np.sqrt(best.size)
        result = stoic.minimize(case.problem, case.method, budget=case.budget, w0=w0, seed=0)
        least, start, end = (case.problem.objective(w) for w in (best, w0, result.w))
        share = (end - least) / (start - least) if start > least else 0.0
        is_said = "of the way" in result.message
        n_worse += result.status is stoic.Status.DIVERGED
        truth = "0.4 and more" if share >= 0.4 else "0.05 to 0.4" if share > 0.05 else "below 0.05"
        said[truth, is_said] = said.get((truth, is_said), 0) + 1
        print(
            f"{case.name:34s} left {share:8.2g}, said {result.outlook.share_left:5.2f}  {result.status.name}",
            flush=True,
        )
    print("left of the way    said  not said")
    for truth in ("0.4 and more", "0.05 to 0.4", "below 0.05"):
        print(f"{truth:16s} {said.get((truth, True), 0):6d} {said.get((truth, False), 0):9d}")
    print(f"called worse than the start: {n_worse}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only cases whose names have all of these")
    main(parser.parse_args().words)
