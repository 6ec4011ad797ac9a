"""One wild number in a table: how far the coefficients of a fit move from those at 10⁶.

Usage: python benchmarks/wild_values.py [--exponents 6 20 … 300] [--rows 200 20000]

Rows are y = 1 + x·(1, 2, 0, −1) + noise in three groups; one target, then one value of a column, is 10^k. Each
figure is the largest distance over k of (coefficients, intercept) to those at k = 6, in proportion to their norm;
"refused" is a `ValueError` that names the row. Fits are by Newton's method ("exact") and by draws ("drawn"), of
arrays and CSR matrices.
"""

import argparse
import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from stoic import GroupDRORegressor

LOSSES = ("huber", "absolute", "quantile")
PLACES = ("target", "negative target", "value")
METHODS = {"exact": "newton", "drawn": "rrosc-tracked"}
STORAGE = {"dense": np.asarray, "CSR": sp.csr_array}
ROW, COLUMN = 7, 1


def table(n: int, place: str, exponent: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return X, y and groups with 10^exponent at its place."""
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((n, 4)), np.arange(n) % 3
    y = 1.0 + X @ [1.0, 2.0, 0.0, -1.0] + (1 + groups) * 0.5 * rng.standard_t(3.0, n)
    if place == "value":
        X[ROW, COLUMN] = 10.0**exponent
    else:
        y[ROW] = -(10.0**exponent) if place.startswith("negative") else 10.0**exponent
    return X, y, groups


def model(n: int, loss: str, place: str, exponent: int, method: str, storage: str) -> NDArray | None:
    """Return the coefficients and the intercept, or None if the row was refused by its number."""
    X, y, groups = table(n, place, exponent)
    budget = None if method == "exact" else 20 * max(n, 2000)
    fit = GroupDRORegressor(loss, quantile=0.7, method=METHODS[method], budget=budget, random_state=0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit.fit(STORAGE[storage](X), y, groups=groups)
    except ValueError as refusal:
        if f"row {ROW}" not in str(refusal) and f"[{ROW}]" not in str(refusal):
            raise
        return None
    return np.append(fit.coef_, fit.intercept_)


def distances(n: int, loss: str, place: str, method: str, storage: str, exponents: list[int]) -> Iterator[float]:
    """Yield the distance of the fit at each exponent to that at 6; NaN where it is refused."""
    first = model(n, loss, place, 6, method, storage)
    for exponent in exponents:
        now = model(n, loss, place, exponent, method, storage)
        if first is None or now is None:
            yield np.nan
        else:
            yield float(np.linalg.norm(now - first) / np.linalg.norm(first))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exponents", type=int, nargs="+", default=[8, 12, 18, 20, 50, 100, 154, 155, 200, 300])
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 20_000])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--places", nargs="+", default=list(PLACES))
    options = parser.parse_args()
    print(f"{'wild':16}{'rows':>7} {'loss':10}{'fit':7}{'X':7}{'largest distance':>17}{'at':>6}  refused")
    for place, n, loss, method, storage in itertools.product(
        options.places, options.rows, LOSSES, options.methods, STORAGE
    ):
        far = np.array(list(distances(n, loss, place, method, storage, options.exponents)))
        refused = [f"1e{k}" for k, distance in zip(options.exponents, far, strict=True) if np.isnan(distance)]
        worst = int(np.argmax(np.nan_to_num(far)))
        print(
            f"{place:16}{n:7d} {loss:10}{method:7}{storage:7}{np.nan_to_num(far)[worst]:17.1e}"
            f"{options.exponents[worst]:6d}  {' '.join(refused)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
