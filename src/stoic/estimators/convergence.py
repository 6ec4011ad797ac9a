"""Convergence of a model: a small duality gap on the training rows, reached by Newton steps if need be."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoic.certificate.duality import duality_gap
from stoic.estimators.newton_run import exact_solve
from stoic.estimators.watching import is_ended
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.result import Result
from stoic.solvers.newton import Newton

if TYPE_CHECKING:
    from stoic.estimators.training import Trainer

_MOST_STEPS = 50
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
    problem: Problem, w: Vector, start: Vector, tol: float | None, *, is_exact: bool = False
) -> Convergence:
    """Return how far w is from the optimum, beside the objective at the start."""
    return Convergence(duality_gap(problem, w), problem.objective(start), float(tol or 0.0), is_exact)


def converge(
    trainer: "Trainer", problem: Problem, answer: Vector, start: Vector, last: Result
) -> tuple[Vector, Result | None, Convergence]:
    """Return the answer, improved if it has not converged; the solve that did so, or None; and its convergence.

    Where draws have left a gap that is too large, Newton's method goes on from them until it is not; but not where
    the user chose the method or the budget, stops early, or has ended the fit.
    """
    found = convergence(problem, answer, start, trainer.watch.tol, is_exact=trainer.is_exact)
    if found.is_reached or trainer.is_exact or not trainer.may_improve or is_ended(last):
        return answer, None, found

    goal = found.tol * found.first
    result = exact_solve(trainer, problem, answer, solver=Newton(_MOST_STEPS), goal=goal, is_last=True)
    return result.w, result, convergence(problem, result.w, start, found.tol, is_exact=True)
