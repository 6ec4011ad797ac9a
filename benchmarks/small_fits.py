"""How long a fit of a small table takes, beside scikit-learn's HuberRegressor on the same rows.

    python benchmarks/small_fits.py

Each time is the median of rounds in which all models take turns, in one process that has fitted each once before
and has one BLAS thread.
"""

import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import HuberRegressor, Ridge
from threadpoolctl import threadpool_limits

import stoic

_SIZES = ((1_000, 10, 4), (1_000, 10, 20), (200, 5, 3), (5_000, 30, 6))
_ROUNDS = 15


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1, user_api="blas"):  # rivals would wait for a second one on a busy machine
        _show()


def _show() -> None:
    names = ("Ridge", "HuberRegressor", "loss, 4.0", "loss, auto", "default")
    print(
        f"{'rows':>6} {'columns':>7} {'groups':>6}"
        + "".join(f"{name + ' ms':>20}" for name in names)
        + "   ratios"
    )
    for n, d, p in _SIZES:
        found = _times(_models(*_table(n, d, p)))
        shown = "".join(f"{1e3 * found[name]:20.1f}" for name in names)
        ratios = ", ".join(f"{found[name] / found['HuberRegressor']:.1f}" for name in names[2:])
        print(f"{n:6d} {d:7d} {p:6d}{shown}   {ratios}", flush=True)


def _table(n: int, d: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((n, d)), rng.integers(p, size=n)
    y = X @ rng.standard_normal(d) + 0.3 * X[:, 0] * groups + (1.0 + groups / p) * rng.standard_t(2.5, n)
    return X, y, groups


def _models(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> dict[str, Callable[[], object]]:
    loss = {"protect": "loss"}
    return {
        "Ridge": lambda: Ridge().fit(X, y),
        "HuberRegressor": lambda: HuberRegressor().fit(X, y),
        "loss, 4.0": lambda: stoic.GroupDRORegressor(temperature=4.0, **loss).fit(X, y, groups=groups),
        "loss, auto": lambda: stoic.GroupDRORegressor(**loss).fit(X, y, groups=groups),
        "default": lambda: stoic.GroupDRORegressor().fit(X, y, groups=groups),
    }


def _times(models: dict[str, Callable[[], object]]) -> dict[str, float]:
    for fit in models.values():
        fit()
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(_ROUNDS):
        for name, fit in models.items():
            began = time.perf_counter()
            fit()
            seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in seconds.items()}


if __name__ == "__main__":
    main()
