"""Convergence of a model: a small duality gap on the training rows."""

from dataclasses import dataclass

from stoic.certificate.duality import duality_gap
from stoic.problem import Problem
from stoic.protocols import Vector

_ADVICE = 'Set method="newton" for the exact optimum, or a larger max_epochs, budget or tol'
_EXACT_ADVICE = "Scale columns to like sizes, standardize=True, or set a larger temperature or penalty"


@dataclass(frozen=True)
class Convergence:
    r"""The distance of an answer from the optimum, for certain: :math:`F(w) - F^* \le` `gap`, by duality.

    Attributes
    ----------
    gap : float
    first : float
        The objective at the start.
    tol : float
        The fit has converged where the gap is at most this part of `first`.
    is_exact : bool
        Whether Newton's method gave the answer: there is no better method to advise.
    """

    gap: float
    first: float
    tol: float
    is_exact: bool

    @property
    def is_reached(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap <= self.tol * self.first

    @property
    def message(self) -> str:
        """By how much the gap is too large, and what to do."""
        part = self.gap / self.first if self.first > 0.0 else float("inf")
        advice = _EXACT_ADVICE if self.is_exact else _ADVICE
        return (
            f"the fit did not converge: its duality gap, a bound on how far the objective is above its minimum, "
            f"is {part:.2g} times the objective at the start, and tol={self.tol:g} allows {self.tol:g}. {advice}; "
            f"model.certificate_ has a tighter bound."
        )


def convergence(
    problem: Problem,
    w: Vector,
    start: Vector,
    tol: float | None,
    *,
    is_exact: bool = False,
    gap: float | None = None,
) -> Convergence:
    """Return how far w is from the optimum, by a duality gap that may be known, and F at the start."""
    gap = duality_gap(problem, w) if gap is None else gap
    return Convergence(gap, problem.objective(start), float(tol or 0.0), is_exact)
