"""A look back from the answer, on draws that were kept: whether F has risen, and how far it can still fall."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from stoic.guards import is_foreign
from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.metered import Drawn
from stoic.pilot import PilotRows
from stoic.pilot.comparing import rise
from stoic.pilot.fixed_sample import Pooled, Sample, make_sample
from stoic.pilot.probes import descend, first_smoothness
from stoic.problem import Problem
from stoic.protocols import Vector

_SMALL = 256  # data points of a draw
_TRIAL_STEPS = 20
_LONGEST_KEPT = 100_000  # coordinates of answers on the way; those of more are large beside the rows of a pilot
_STEADY = 0.9  # cosine of the ways in two parts of a run that has kept its direction
_CLEAR = 0.1  # of F at the start, counted from losses of zero: a rise over all data that means something
_SLOWEST = 0.8  # of what a doubling of the samples has gained, what the next is taken to gain at most

# Probabilities of a false alarm, where the truth is on the border.
_RISEN, _MOVED, _MOVED_STEADILY = 1e-4, 1e-3, 0.05


class Outlook(NamedTuple):
    """Changes of F up to the answer, and what is left, on draws that the method was not fitted to.

    Attributes
    ----------
    risen : float
        F at the answer less F at the start, where it is positive beyond doubt, else 0.
    fallen : float
        F at the start less F at the answer.
    moved : float
        How far F fell over the last half of the run, where that is beyond doubt, else 0.
    left : float
        An estimate of how far F can still fall; 0 where nothing is seen.
    """

    risen: float = 0.0
    fallen: float = 0.0
    moved: float = 0.0
    left: float = 0.0

    @property
    def share_left(self) -> float:
        """The part of the whole way down, as far as it is seen, that is left."""
        whole = max(self.fallen, 0.0) + self.left
        return self.left / whole if 0.0 < self.left < math.inf and 0.0 < whole < math.inf else 0.0


class Hindsight:
    """Keeps draws and answers of a run, and looks back from its end.

    Parameters
    ----------
    problem : Problem
        As it was given: what is evaluated for a look back is not counted.
    w0 : ndarray of shape (d,)
        The start.
    budget : int
        Of the run: data that are no more than this are looked at as a whole.
    """

    def __init__(self, problem: Problem, w0: Vector, budget: int = 0) -> None:
        self.problem, self.w0, self.budget = problem, w0, budget
        self.answers: list[Vector] = []

    def outlook(
        self,
        w: Vector,
        tried: Sequence[Drawn],
        others: Sequence[Drawn],
        judges: Sequence[Drawn],
        *,
        is_fitted: bool = False,
    ) -> Outlook:
        r"""Return the outlook of an answer, from draws.

        Whether it is above the start is judged by `judges`; over all data of group losses, where the budget is a
        pass or more, since a few rows may carry the rise. How far F can still fall is seen in two ways. A short
        descent from the answer on `tried` shows it on `others` and `judges`, if it is much. If it is not, the last
        two doublings of the samples may have gained a₁ and a₂ on all draws: at this pace the rest is

        .. math:: a_2 (\rho + \rho^2 + \dots) = a_2 \rho / (1 - \rho), \qquad \rho = \min(a_2 / a_1, 0.8) .

        From an answer that is fitted to the draws no descent is tried: it would tell nothing.
        """
        if not (tried and judges):
            return Outlook()
        risen = rise(self._pooled(judges), self.w0, w, _RISEN) or self._clear_rise(w)
        if risen > 0.0:
            return Outlook(risen, -risen)
        fit, rest = self._pooled(tried), self._pooled([*others, *judges])
        everything = Pooled([*fit.parts, *rest.parts])
        moved = self._moved(everything, w)
        with np.errstate(all="ignore"):
            fallen = rest.objective(self.w0) - rest.objective(w)
            lower = w if is_fitted else descend(fit, w, first_smoothness(fit, w), _TRIAL_STEPS)
        left = rise(rest, lower, w, _MOVED) or self._extrapolated(everything, moved)
        everything.forget()
        return Outlook(0.0, fallen, moved, left)

    def keep(self, w: Vector) -> None:
        """Keep an answer on the way, a quarter and then half of it; no more than vectors of a certain length."""
        if w.size <= _LONGEST_KEPT:
            self.answers.append(w)

    def _clear_rise(self, w: Vector) -> float:
        """Return by how much F has risen over all data of group losses, where it is much, else 0.

        Losses are not negative, so that f(0) is the least F could be. What a tenth of F(w₀) − f(0) does not reach
        may be the noise of a method that starts at the optimum, or what a robust one gives up for a few wild rows.
        """
        inner = self.problem.inner
        if not isinstance(inner, GroupLoss | GroupSoftmax) or is_foreign(inner) or inner.n_samples > self.budget:
            return 0.0
        with np.errstate(all="ignore"):
            start, end = self.problem.objective(self.w0), self.problem.objective(w)
            least = self.problem.outer.value(np.zeros(inner.shape[0]))
        return end - start if end - start > _CLEAR * (start - least) else 0.0

    def _moved(self, sample: Sample, w: Vector) -> float:
        """Return how far F fell over the last half of the run, where that is beyond doubt, else 0."""
        if len(self.answers) < 2:
            return 0.0
        quarter, half = self.answers
        last, before = w - half, half - quarter
        is_steady = float(last @ before) > _STEADY * float(np.linalg.norm(last) * np.linalg.norm(before))
        return rise(sample, w, half, _MOVED_STEADILY if is_steady else _MOVED)

    def _extrapolated(self, sample: Sample, moved: float) -> float:
        if moved == 0.0:
            return 0.0
        quarter, half = self.answers
        with np.errstate(all="ignore"):
            before = sample.objective(quarter) - sample.objective(half)
        rate = min(moved / before, _SLOWEST) if before > 0.0 else _SLOWEST
        return moved * rate / (1.0 - rate)

    def _pooled(self, drawn: Sequence[Drawn]) -> Pooled:
        """Return draws as one sample; small ones are joined first: each would be evaluated by itself."""
        inner: Any = self.problem.inner
        small = [one for one in drawn if one.size <= _SMALL]
        if len(small) > 1 and hasattr(inner, "joined"):
            batch = inner.joined([one.batch for one in small])
            sizes = sum(one.size for one in small), sum(one.drawn or 1 for one in small)
            drawn = [Drawn(batch, sizes[0], [], sizes[1]), *(one for one in drawn if one.size > _SMALL)]
        return Pooled([make_sample(self.problem, one.batch, one.drawn or 1) for one in drawn])


def split_draws(rows: PilotRows, kept: Sequence[Drawn]) -> tuple[list[Drawn], list[Drawn], list[Drawn]]:
    """Return draws to try a descent on, others, and judges: the pilot's, or without one the first of the run."""
    if not rows.singles:
        return list(kept[0::2]), [], list(kept[1::2])
    parts, singles = ([cast("Drawn", one.batch) for one in some] for some in rows)
    half = math.ceil(len(parts) / 2)
    return parts[:half], parts[half:], singles
