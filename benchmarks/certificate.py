"""How often does a certificate fail, and how loose is it? Runs on laws whose optimum is known in closed form.

For each law: independent solves with the defaults, each certified at δ = 0.05 from as many fresh samples again.
Shown are how often F(w) − F* was above the bound, with the exact (Clopper–Pearson) 95 % interval of that
probability, and the median of the bound over the true gap.
"""

import argparse

import joblib
import numpy as np
from scipy.stats import beta

import stoic
from stoic.experiments.tails.laws import GroupLaw

LAWS = [
    ("gaussian", "labels"),
    ("t4.5", "labels"),
    ("t2.5", "labels"),
    ("lognormal", "labels"),
    ("t4.5", "both"),
    ("t2.5", "features"),
    ("pareto2.5", "both"),
]
DELTA = 0.05


def certified(law, n, seed):
    """Return the true gap of a solve and the bound of its certificate."""
    rng = np.random.default_rng([seed, 2026])
    result = stoic.minimize(law.problem(n, rng), budget=n * law.p, seed=rng, engine="compiled")
    fresh = law.problem(n, rng)  # one row more than may be drawn: the bound is by samples, not over all data
    certificate = stoic.certify(fresh, result.w, delta=DELTA, samples=n * law.p - 1, seed=rng)
    return law.gap(result.w), certificate.bound


def interval(failures, runs):
    """Return the Clopper–Pearson interval of a probability."""
    low = beta.ppf(0.025, failures, runs - failures + 1) if failures else 0.0
    high = beta.ppf(0.975, failures + 1, runs - failures) if failures < runs else 1.0
    return float(low), float(high)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=10_000, help="of each group")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with joblib.Parallel(n_jobs=given.jobs) as pool:
        for names in LAWS:
            law = GroupLaw(*names)
            pairs = pool(joblib.delayed(certified)(law, given.samples, seed) for seed in range(given.runs))
            gaps, bounds = np.array(pairs).T
            failures = int((gaps > bounds).sum())
            low, high = interval(failures, given.runs)
            print(
                f"{names[0]:<10} in {names[1]:<9} {failures} of {given.runs} bounds fail [{low:.3f}, {high:.3f}], "
                f"median of bound / gap {np.median(bounds / gaps):.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
