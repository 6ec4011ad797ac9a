"""How often do certificates by fresh samples fail, and how loose are they? Laws whose optimum is known.

First, F(w) = ⟨E ξ, w⟩ + ½‖w‖² with samples ξ of independent entries: its gap is ½‖∇F(w)‖², so that the bound has
no slack but that for the noise. w is a hundred standard errors from the optimum, on the side on which means of
skewed ξ fall short. Then KL group DRO (`GroupLaw`), solved with the defaults and certified from as many
samples again. Shown are the failures, bounds below F(w) − F*, with the exact (Clopper–Pearson) 95 % interval of
their probability; and the median of the bound over F(w) − F*.
"""

import argparse
import itertools
import math

import joblib
import numpy as np
from scipy.stats import beta

import stoic
from stoic.certificate.confidence import n_blocks
from stoic.certificate.fresh import fresh_certificate
from stoic.certificate.gaps import least_gap
from stoic.certificate.tangents import measured_tangent
from stoic.studies.confidence.laws import MU, UNIT_NOISES, GroupLaw

LAWS = ("gaussian", "t2.5", "pareto2.5")
DELTAS = (0.05, 0.01, 0.001)
DIMENSIONS = (1, 2, 10)
GROUP_LAWS = (
    ("gaussian", "labels"),
    ("t4.5", "labels"),
    ("t2.5", "labels"),
    ("lognormal", "labels"),
    ("t4.5", "both"),
    ("t2.5", "features"),
    ("pareto2.5", "both"),
)


class BlockMeans:
    """The inner part g(w; ξ) = ⟨ξ, w⟩; what is drawn are means of blocks of ξ that have been drawn before."""

    n_samples, n_unpenalized = None, 0

    def __init__(self, means):
        self._rows, self.shape = iter(means), (1, means.shape[1])

    def draw(self, size, rng):  # noqa: ARG002
        return next(self._rows)

    def vjp(self, w, batch, q):  # noqa: ARG002
        return q[0] * batch


def mean_gaps(noise, d, delta, n, runs, seed):
    """Return F(w) − F* and bounds on it, for F(w) = ⟨E ξ, w⟩ + ½‖w‖² and E ξ = (1, …, 1)."""
    rng, k = np.random.default_rng([seed, d, 2026]), n_blocks(delta)
    w = np.full(d, 100.0 / math.sqrt(n * d) - 1.0)  # ∇F(w) = 1 + w
    means = 1.0 + UNIT_NOISES[noise]((runs, k, n // k, d), rng).mean(axis=2)
    bounds = []
    for blocks in means:
        problem = stoic.Problem(BlockMeans(blocks), stoic.Linear([1.0]), stoic.L2(1.0))
        seen = measured_tangent(problem, w, draws=n, blocks=k, delta=delta, rng=rng)
        bounds.append(least_gap(problem, w, seen, None).bound)
    return np.full(runs, 5000.0 / n), np.array(bounds)


def group_gap(names, delta, n, seed):
    """Return F(w) − F* of a solve with n samples of each of four groups, and a bound from as many again."""
    law, rng = GroupLaw(*names), np.random.default_rng([seed, 2026])
    result = stoic.minimize(law.problem(n, rng), budget=n * law.p, seed=rng, engine="compiled")
    problem = law.problem(n, rng)
    seen = fresh_certificate(problem, result.w, delta=delta, samples=n * law.p, modulus=MU, rng=rng)
    return law.gap(result.w), seen.bound


def interval(failures, runs):
    """Return the Clopper–Pearson interval of a probability."""
    low = beta.ppf(0.025, failures, runs - failures + 1) if failures else 0.0
    high = beta.ppf(0.975, failures + 1, runs - failures) if failures < runs else 1.0
    return float(low), float(high)


def report(title, gaps, bounds):
    """Print a line on many runs of one setting."""
    failures = int((gaps > bounds).sum())
    low, high = interval(failures, len(gaps))
    print(
        f"{title:<32} {failures:>3} of {len(gaps)} fail [{low:.5f}, {high:.5f}], "
        f"median of bound / gap {np.median(bounds / gaps):.3g}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="with means, in hundreds; 0 for none")
    parser.add_argument("--samples", type=int, default=1000, help="of ξ")
    parser.add_argument("--group-runs", type=int, default=300)
    parser.add_argument("--group-samples", type=int, default=10_000, help="of each group")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with joblib.Parallel(n_jobs=given.jobs) as pool:
        for noise, d, delta in itertools.product(LAWS if given.runs else (), DIMENSIONS, DELTAS):
            parts = pool(
                joblib.delayed(mean_gaps)(noise, d, delta, given.samples, 100, seed)
                for seed in range(given.runs // 100)
            )
            report(f"{noise:<10} d = {d:<3} δ = {delta}", *np.hstack(parts))
        for names in GROUP_LAWS:
            parts = pool(
                joblib.delayed(group_gap)(names, 0.05, given.group_samples, seed)
                for seed in range(given.group_runs)
            )
            report(f"{names[0]:<10} in {names[1]:<9} δ = 0.05", *np.array(parts).T)


if __name__ == "__main__":
    main()
