"""Theorem 3's counterexample at the methods' defaults: the gap of `rrosc` with m = 1 over that of `rrosc-tracked`.

The problem of docs/paper.md, "The bias floor": f(u) = log(1 + eᵘ) − u/5, g(w; ξ) = w + ξ, ξ = ±2, r(w) = w²/20.
Both methods start at 0, and pilots choose all settings but m. `python benchmarks/bias_floor.py 0 1 2` takes these
seeds, five by default: a line a seed, then medians. A run of 10⁶ samples takes some minutes.
"""

import sys

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


class Signs:
    """g(w; ξ) = w + ξ with ξ = ±2: `FunctionInner` would do, at twice the time a step."""

    shape, n_samples, n_unpenalized = (1, 1), None, 0

    def draw(self, size, rng):
        return 4.0 * rng.integers(0, 2, size) - 2.0

    def everything(self):
        raise ValueError("a stream has no end.")

    def cost(self, size):
        return size

    def value(self, w, batch, blocks=1):
        return w + np.array([[part.mean()] for part in np.array_split(batch, blocks)])

    def jacobian(self, w, batch, blocks=1):  # noqa: ARG002
        return np.ones((blocks, 1, 1))

    def vjp(self, w, batch, q):  # noqa: ARG002
        return q


def make_problem():
    return stoic.Problem(Signs(), TiltedSoftplus(), stoic.L2(0.1))


def gap_of_run(method, seed):
    best = objective(brentq(lambda w: expit(w) - 0.2 + 0.1 * w, -5.0, 5.0, xtol=1e-14))
    return objective(float(stoic.minimize(make_problem(), method, BUDGET, seed=seed).w[0])) - best


def main(seeds):
    print(f"gaps at {BUDGET} samples\n{'seed':>6}" + "".join(f"{name:>16}" for name in METHODS), flush=True)
    found = []
    for seed in seeds:
        found.append([gap_of_run(method, seed) for method in METHODS.values()])
        print(f"{seed:>6}" + "".join(f"{gap:>16.2e}" for gap in found[-1]), flush=True)
    floor, tracked = np.median(found, axis=0)
    print(f"median{floor:>16.2e}{tracked:>16.2e}\nratio of the medians: {floor / tracked:.0f}")


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or range(5))
