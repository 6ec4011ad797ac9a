"""`Certificate`: a bound on F(w) − F*, its source, and its assumptions."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Literal


@dataclass(frozen=True)
class Certificate:
    r"""A bound on the gap: :math:`F(w) - F^* \le` `bound` with probability at least 1 − `delta`.

    Attributes
    ----------
    bound : float
        Infinite where nothing rigorous can be said; `advice` then says what would help.
    delta : float
        The probability with which the bound may fail; 0 for one by duality, which leaves nothing to chance.
    estimate : float
        An estimate of the gap, from a better point that was found or from the curvature around w; NaN where there
        is none. It carries no probability.
    assumptions : tuple of str
        The assumptions of the bound, each as a clause: "f∘g is convex".
    route : {"duality", "fresh samples"}
        What the bound is computed from, after the solve and independently of the method.
    samples : int
        Data points that were read or drawn for it; none of them counts for the solve.
    advice : str
        What would help where the bound is infinite.

    Examples
    --------
    >>> certificate = Certificate(0.01, 0.05, 0.002, (), "fresh samples", 1000)
    >>> print(certificate.statement)
    F(w) − F* ≤ 0.01 with probability at least 0.95, by 1000 fresh samples.
    """

    bound: float
    delta: float
    estimate: float
    assumptions: tuple[str, ...]
    route: Literal["duality", "fresh samples"]
    samples: int
    advice: str = ""

    @property
    def statement(self) -> str:
        """The bound, its source and its assumptions, in a sentence."""
        if not math.isfinite(self.bound):
            return f"Nothing rigorous can be said about F(w) − F*: {self.advice}"
        if_so = f", if {' and '.join(self.assumptions)}" if self.assumptions else ""
        if self.route == "duality":
            return f"F(w) − F* ≤ {rounded_up(self.bound)}, by duality over all {self.samples} samples{if_so}."
        sure = f"with probability at least {1.0 - self.delta:g}"
        return f"F(w) − F* ≤ {rounded_up(self.bound)} {sure}, by {self.samples} fresh samples{if_so}."

    def __str__(self) -> str:
        if math.isnan(self.estimate):
            return self.statement
        return f"{self.statement}\nA guess without a guarantee: F(w) − F* is about {self.estimate:.2g}."


def rounded_up(bound: float, digits: int = 3) -> str:
    """Return a bound as text with a few digits, never smaller than it is.

    Examples
    --------
    >>> rounded_up(0.00612415), rounded_up(0.05)
    ('0.00613', '0.05')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(bound))
    return f"{float(rounded):.{digits}g}"
