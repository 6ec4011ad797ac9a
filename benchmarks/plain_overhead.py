"""What the plain engine adds to a user's own two-level problem, over a bare NumPy loop of the same steps.

    python benchmarks/plain_overhead.py

Three problems f(E g(w; ξ)), their functions written for many samples as for `FunctionInner`: the squared residual
of Bellman's equation with linear values, mean and variance of a return, and its mean and downside risk. SCGD and
SCSC, from one sample a step to 64. Both sides call the same functions on as many samples, drawn alike; the time is
the median of rounds in which they take turns.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import stoic

_STEPS, _ROUNDS, _BATCHES = 3_000, 7, (1, 8, 64)
_D, _N = 10, 20_000
_POWER = 0.75


@dataclass(frozen=True)
class Own:
    """A problem of a user's own."""

    value: Callable[[Any, Any], Any]
    jacobian: Callable[[Any, Any], Any]
    p: int
    outer: Any
    data: Any


class SumOfSquares:
    """f(u) = ‖u‖²."""

    def value(self, u: Any) -> float:
        """Return f."""
        return float(u @ u)

    def gradient(self, u: Any) -> Any:
        """Return ∇f."""
        return 2.0 * u


class Variance:
    """f(u) = −u₁ + 2 (u₂ − u₁²)."""

    def value(self, u: Any) -> float:
        """Return f."""
        return float(-u[0] + 2.0 * (u[1] - u[0] ** 2))

    def gradient(self, u: Any) -> Any:
        """Return ∇f."""
        return np.array([-1.0 - 4.0 * u[0], 2.0])


class Downside:
    """f(u) = −u₁ + √(u₂ + 0.01)."""

    def value(self, u: Any) -> float:
        """Return f."""
        return float(-u[0] + np.sqrt(u[1] + 0.01))

    def gradient(self, u: Any) -> Any:
        """Return ∇f."""
        return np.array([-1.0, 0.5 / np.sqrt(u[1] + 0.01)])


def problems() -> dict[str, Own]:
    """Return the three."""
    rng = np.random.default_rng(0)
    here, there, reward = rng.random((_N, _D)), rng.random((_N, _D)), rng.random(_N)
    slope = 0.9 * there - here
    returns = 0.05 + 0.2 * rng.standard_normal((_N, _D))
    return {
        "Bellman residual": Own(
            lambda w, s: s[0] * (s[1] @ w + s[2])[:, None],
            lambda _w, s: s[0][:, :, None] * s[1][:, None, :],
            _D,
            SumOfSquares(),
            (here, slope, reward),
        ),
        "mean-variance": Own(
            lambda w, x: np.stack([x @ w, (x @ w) ** 2], axis=1),
            lambda w, x: np.stack([x, 2.0 * (x @ w)[:, None] * x], axis=1),
            2,
            Variance(),
            returns,
        ),
        "downside risk": Own(
            lambda w, x: np.stack([x @ w, np.minimum(x @ w, 0.0) ** 2], axis=1),
            lambda w, x: np.stack([x, 2.0 * np.minimum(x @ w, 0.0)[:, None] * x], axis=1),
            2,
            Downside(),
            returns,
        ),
    }


def by_stoic(own: Own, method: str, m: int) -> np.ndarray:
    """Return the answer of the plain engine."""
    inner = stoic.FunctionInner(own.value, own.jacobian, (own.p, _D), data=own.data)
    kind = stoic.SCGD if method == "SCGD" else stoic.SCSC
    steps, weights = stoic.PowerLaw(0.01, _POWER), stoic.PowerLaw(0.5, 0.5)
    solver = kind(steps=steps, weights=weights, batch_size=m, n_steps=_STEPS, answer="average")
    problem = stoic.Problem(inner, own.outer)
    return stoic.minimize(problem, solver, (1 + _STEPS) * m, w0=np.full(_D, 0.1), seed=0, engine="plain").w


def by_hand(own: Own, method: str, m: int) -> np.ndarray:
    """Return the answer of a bare loop."""
    rng, data = np.random.default_rng(0), own.data
    parts = data if isinstance(data, tuple) else None

    def draw() -> Any:
        rows = (rng.random(m) * _N).astype(np.intp)
        return data[rows] if parts is None else tuple(part[rows] for part in parts)

    w = before = average = np.full(_D, 0.1)
    y = own.value(w, draw()).mean(axis=0)
    for k in range(_STEPS):
        batch = draw()
        a, b = 0.01 / (1.0 + k) ** _POWER, 0.5 / (1.0 + k) ** 0.5
        here = own.value(w, batch).mean(axis=0)
        if method == "SCGD":
            y = (1.0 - b) * y + b * here
        else:
            y = (1.0 - b) * (y + here - own.value(before, batch).mean(axis=0)) + b * here
        before, w = w, w - a * (own.outer.gradient(y) @ own.jacobian(w, batch).mean(axis=0))
        average = average + (w - average) / (k + 1)
    return average


def main() -> None:
    """Print a table."""
    print(f"{'problem':18} {'method':6} {'batch':>5} {'bare µs':>9} {'plain µs':>9} {'ratio':>6}  apart by")
    for name, own in problems().items():
        for method in ("SCGD", "SCSC"):
            for m in _BATCHES:
                seconds: dict[str, list[float]] = {"bare": [], "plain": []}
                for _ in range(_ROUNDS):
                    answers = {}
                    for kind, run in {"bare": by_hand, "plain": by_stoic}.items():
                        began = time.perf_counter()
                        answers[kind] = run(own, method, m)
                        seconds[kind].append((time.perf_counter() - began) / _STEPS)
                bare, plain = (1e6 * statistics.median(seconds[kind]) for kind in ("bare", "plain"))
                apart = float(np.abs(answers["bare"] - answers["plain"]).max())
                print(
                    f"{name:18} {method:6} {m:5d} {bare:9.1f} {plain:9.1f} {plain / bare:6.2f}  {apart:.0e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
