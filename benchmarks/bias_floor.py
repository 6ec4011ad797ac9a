"""Theorem 3's counterexample at the methods' defaults: the gap of `rrosc` with m = 1 over that of `rrosc-tracked`.

The problem of docs/paper.md, "The bias floor": F(w) = log(1 + eʷ) − w/5 + w²/20, g(w; ξ) = w + ξ with ξ = ±2. Both
methods start at 0, and pilots choose all settings but m. It is run in two forms, with 10⁶ samples each:

- two coins: F is log(e^(0.8w) + e^(−0.2w)) + w²/20, so LogSumExp over two groups of linear losses, a coin each.
  The compiled engine takes seconds for 20 seeds.
- one coin: as it is printed, in the plain engine, where a run takes minutes; with `--one-coin`, 3 seeds.
"""

import argparse

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

import stoic

BUDGET = 1_000_000
METHODS = {"rrosc, m = 1": stoic.RROSC(batch_size=1), "rrosc-tracked": "rrosc-tracked"}


class TiltedSoftplus:
    def value(self, u):
        return float(np.logaddexp(0.0, u[0]) - 0.2 * u[0])

    def gradient(self, u):
        return expit(u) - 0.2


def objective(w):
    return float(np.logaddexp(0.0, w) - 0.2 * w + 0.05 * w * w)


def one_coin():
    inner = stoic.FunctionInner(
        value=lambda w, xi: w + xi,
        jacobian=lambda w, xi: np.ones((len(xi), 1, 1)),  # noqa: ARG005
        shape=(1, 1),
        draw=lambda size, rng: 4.0 * rng.integers(0, 2, (size, 1)) - 2.0,
    )
    return stoic.Problem(inner, TiltedSoftplus(), stoic.L2(0.1))


def two_coins():
    """|xw − y| = x(w + ξ) + 100, as y = −xξ − 100 is far below xw: both groups have the same constant too much."""
    x, xi = np.array([0.8, 0.8, -0.2, -0.2]), np.array([2.0, -2.0, 2.0, -2.0])
    inner = stoic.GroupLoss(x[:, None], -x * xi - 100.0, [0, 0, 1, 1], loss="absolute")
    return stoic.Problem(inner, stoic.LogSumExp(1.0), stoic.L2(0.1))


def gap_of_run(problem, method, seed):
    best = objective(brentq(lambda w: expit(w) - 0.2 + 0.1 * w, -5.0, 5.0, xtol=1e-14))
    return objective(float(stoic.minimize(problem, method, BUDGET, seed=seed).w[0])) - best


def main(make_problem, seeds):
    print(f"{make_problem.__name__}, {BUDGET} samples, {seeds} seeds")
    print(f"{'method':<14}{'median gap':>11}{'lowest':>9}{'highest':>9}")
    medians = []
    for name, method in METHODS.items():
        gaps = [gap_of_run(make_problem(), method, seed) for seed in range(seeds)]
        medians.append(np.median(gaps))
        print(f"{name:<14}{medians[-1]:>11.1e}{min(gaps):>9.0e}{max(gaps):>9.0e}", flush=True)
    print(f"ratio of the medians: {medians[0] / medians[1]:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one-coin", action="store_true", help="the counterexample as it is written down; slow")
    main(*((one_coin, 3) if parser.parse_args().one_coin else (two_coins, 20)))
