r"""The average fit and the scale of its residuals, found together by Newton's method.

The loss has the scale s of the residuals of the fit, :math:`s = h(\hat w(s))`, a fixed point. A Newton step at s
leads next to :math:`\hat w(s)` soon, so the scale follows after each: by a secant through the last two pairs
(s, h), which is the fixed point's own Newton step where h is smooth. The search ends where a step changes neither.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stoic.estimators.newton_run import NewtonRun
from stoic.outers import Linear
from stoic.problem import Problem
from stoic.protocols import Vector
from stoic.solve.progress import progress_bar
from stoic.solve.result import Result

if TYPE_CHECKING:
    from stoic.estimators.training import Trainer

_MOST_ROUNDS, SETTLED = 40, 1e-8  # changes of the scale; the last one, as a part of it
_GAP = 1e-12  # of F: of an average that only tells the scale, and where the last solve starts
_STEEPEST = 0.5  # slope of h that a secant is trusted with


@dataclass
class Secant:
    """Steps to a fixed point s = h(s).

    Examples
    --------
    >>> secant, s = Secant(), 1.0
    >>> for _ in range(3):
    ...     s = secant.after(s, 1.0 + 0.1 * s)
    >>> round(s, 12)
    1.111111111111
    """

    before: tuple[float, float] | None = None

    def after(self, s: float, found: float) -> float:
        """Return the next s, given h(s)."""
        before, self.before = self.before, (s, found)
        if before is None or s == before[0] or abs(found - s) > abs(before[1] - before[0]):
            return found
        slope = (found - before[1]) / (s - before[0])
        step = (found - s) / (1.0 - min(max(slope, -_STEEPEST), _STEEPEST))
        return max(s + step, 0.5 * min(s, found))


def exact_average(trainer: "Trainer", w: Vector, shares: Vector) -> tuple[Vector, float, Result]:
    """Return the average fit from w on, the scale of its residuals, and the solve."""
    callback = trainer.watch.options(trainer.loss_at(1.0), is_last=False)["callback"]
    solver = trainer.exact_solver
    run = NewtonRun(replace(solver, gap=max(solver.gap or 0.0, _GAP)), trainer.exact_budget, callback)
    scale, secant, rounds = 1.0, Secant(), 0
    rows, problem = trainer.rows.within_reach(w, trainer.loss_at(scale)), None
    with progress_bar(run.budget, visible=trainer.watch.verbose) as show:
        while True:
            if problem is None:
                loss = trainer.loss_at(scale)
                problem = Problem(rows.inner(loss), Linear(shares), trainer.regularizer)
                observers = {"objective": run.objective(problem, rows)}
            w = run.step(problem, w)
            show(run.meter.samples, "average")
            run.record(w, observers)
            found = trainer.scale_of(w, run.predictions) if trainer.has_scale else scale
            if run.is_over:
                break
            if abs(found - scale) > trainer.scale_tol * scale and rounds < _MOST_ROUNDS:
                if run.is_close:
                    scale, rounds, problem = secant.after(scale, found), rounds + 1, None
            elif run.is_done:
                if not trainer.reaches(rows, w):
                    break
                rows, problem = trainer.rows.within_reach(w, loss), None
    return w, scale if rounds == _MOST_ROUNDS else found, run.result(w)
