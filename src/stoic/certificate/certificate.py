"""What is known about an answer: a bound on F(w) − F*, where it comes from, and how far to trust it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple


class Constant(NamedTuple):
    """A constant of the problem, and whether it holds for certain or was estimated from samples."""

    value: float
    source: Literal["given", "estimated"]


class Promise(NamedTuple):
    """What a theorem promises for the samples of the solve.

    `gap` is its bound at that number of samples, infinite where it promises nothing yet; `samples` is what it asks
    for to halve the gap of the start.
    """

    theorem: str
    gap: float
    samples: float


@dataclass(frozen=True)
class Certificate:
    r"""A bound on the gap: :math:`F(w) - F^* \le` `bound` with probability at least 1 − `delta`.

    Attributes
    ----------
    bound : float
        Infinite where nothing can be said.
    delta : float
        The probability with which the bound may fail; 0 for one from all of the data.
    route : {"all data", "fresh samples"}
        What the bound is computed from, after the solve and independently of the method.
    samples : int
        Data points drawn for it; none of them counts for the solve.
    promise : Promise or None
        What a theorem of the paper, or ours, says beforehand; None where none applies to f.
    constants : dict
        Each constant with "given" or "estimated".

    Examples
    --------
    >>> constants = {"mu": Constant(0.5, "given")}
    >>> certificate = Certificate(0.01, 0.05, "fresh samples", 1000, None, constants)
    >>> print(certificate.statement)
    F(w) − F* ≤ 0.01 with probability at least 0.95, by 1000 fresh samples.
    """

    bound: float
    delta: float
    route: Literal["all data", "fresh samples"]
    samples: int
    promise: Promise | None
    constants: Mapping[str, Constant]

    @property
    def statement(self) -> str:
        """What is known, in a sentence."""
        if not math.isfinite(self.bound):
            return "Nothing is known about F(w) − F*: no strong convexity was found, or the samples are too few."
        if self.route == "all data":
            return f"F(w) − F* ≤ {self.bound:.3g}, by the gradient over all of the data."
        sure = f"with probability at least {1.0 - self.delta:g}"
        return f"F(w) − F* ≤ {self.bound:.3g} {sure}, by {self.samples} fresh samples."

    @property
    def caution(self) -> str:
        """What the statement rests on, in plain words."""
        parts = []
        mu = self.constants.get("mu")
        if mu is not None and mu.source == "estimated":
            parts.append(
                f"The curvature of F, at least μ = {mu.value:.3g}, was estimated at w, from a sample: if the true "
                f"one is half as large, the bound doubles."
            )
        if self.route == "fresh samples":
            parts.append(
                "The confidence is that of means of blocks, which are close to normal where g and ∇g have finite "
                "variances and blocks are long; under heavier tails it may be less."
            )
        if self.promise is not None:
            parts.append(_words(self.promise))
        return " ".join(parts)

    def __str__(self) -> str:
        lines = [self.statement, self.caution]
        lines += [f"  {name} = {value:.4g} ({source})" for name, (value, source) in self.constants.items()]
        return "\n".join(filter(None, lines))


def _words(promise: Promise) -> str:
    name = promise.theorem
    if math.isfinite(promise.gap):
        return f"Beforehand, {name} promises a gap of at most {promise.gap:.3g}, if the constants are right."
    return (
        f"Beforehand, {name} promises nothing for so few samples: with these constants it asks for "
        f"{promise.samples:.2g} to halve the gap of the start."
    )
