"""Two laws where it is known what regret should do: groups that differ in noise only, and one with its own slopes.

Five groups of growing t(2.1) noise, and a sixth of little noise whose slopes differ by a factor from the others':
0, 0.3 and 1. Each fit sees 400 rows of each group; errors are on 4,000 fresh ones. The regret of a group is its
mean absolute error above that of the true slopes. Means over seeds.

    python benchmarks/regret_laws.py --seeds 5
"""

import argparse

import numpy as np

from stoic import GroupDRORegressor

SLOPES, OWN = np.array([1.0, -1.0, 0.5, 0.0]), np.array([-1.0, 1.0, 1.0, 1.0])
NOISE = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.3])
FITS = {
    "average": {"temperature": np.inf},
    "default": {},
    "any price": {"max_cost": np.inf},
    "by loss": {"protect": "loss"},
    "by loss, t=1": {"protect": "loss", "temperature": 1.0},
}


def drawn(seed, n, factor):
    """Return rows, targets, groups and what the true slopes predict."""
    rng, groups = np.random.default_rng(seed), np.repeat(np.arange(len(NOISE)), n)
    X = rng.standard_normal((len(groups), len(SLOPES)))
    truth = X @ SLOPES + factor * (groups == len(NOISE) - 1) * (X @ OWN)
    return X, truth + NOISE[groups] * rng.standard_t(2.1, len(groups)), groups, truth


def by_group(errors, groups):
    return np.array([errors[groups == group].mean() for group in range(len(NOISE))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    for factor in (0.0, 0.3, 1.0):
        print(f"\nslopes of its own, times {factor:g}")
        print(f"  {'fit':14} {'mean MAE':>9} {'worst MAE':>9} {'worst regret':>12}")
        for name, settings in FITS.items():
            found = []
            for seed in range(seeds):
                X, y, groups, _ = drawn(seed, 400, factor)
                model = GroupDRORegressor(random_state=0, **settings).fit(X, y, groups=groups)
                X, y, groups, truth = drawn(1000 + seed, 4000, factor)
                errors = by_group(np.abs(y - model.predict(X)), groups)
                regrets = errors - by_group(np.abs(y - truth), groups)
                found.append((errors.mean(), errors.max(), regrets.max()))
            mean, worst, regret = np.mean(found, axis=0)
            print(f"  {name:14} {mean:9.3f} {worst:9.3f} {regret:12.3f}")


if __name__ == "__main__":
    main()
