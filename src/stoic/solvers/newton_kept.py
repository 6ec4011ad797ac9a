"""Second derivatives of some rows, kept from step to step: mended, formed anew, or of more rows, as it takes."""

from typing import NamedTuple, cast

from stoic.losses import Squared
from stoic.protocols import Array
from stoic.solvers.newton_directions import Direction, by_kept_matrix, by_matrix
from stoic.solvers.newton_model import Bends, bends_at, by_model, corrected, has_model, hessian_of
from stoic.solvers.newton_point import Point
from stoic.solvers.newton_sum import Sum

_MORE = 4  # times as many rows, where those at hand tell too little
_CHEAP = 0.5  # products with all rows, in whose time second derivatives are formed anew at each step
_MANY_PRODUCTS = 8.0  # in whose time they are never formed of all rows, but lead conjugate gradients
_MOST_UPDATES, _MOST_POOR = 15, 2  # steps with the same, and `n_poor` before more rows are taken


class Kept(NamedTuple):
    """Second derivatives as they were formed of some rows at an earlier point, and mended since.

    Attributes
    ----------
    few : Sum
        F on those rows, or on all.
    bends, matrix : Bends or ndarray or None
        One of the two: Hessians of the groups, or ∇²F; none before they are formed.
    age : int
        The steps that were taken with them.
    was_fresh : bool
        Whether the last step was taken with new ones.
    n_poor : int
        How many steps with new ones have failed one after another: those that were cut, and twice those that
        have left much of what they promised.
    leads : bool
        Whether they lead conjugate gradients over all rows.
    """

    few: Sum
    bends: Bends | None = None
    matrix: Array | None = None
    age: int = 0
    was_fresh: bool = False
    n_poor: int = 0
    leads: bool = False

    @property
    def is_formed(self) -> bool:
        """Whether there are any."""
        return self.bends is not None or self.matrix is not None

    def moved_to(self, sum_: Sum) -> "Kept":
        """Return as many rows of another sum over the same rows, nothing formed yet; none are copied for all."""
        return Kept(sum_ if self.few.n >= sum_.n else sum_.of_size(self.few.n))

    def is_exact(self, sum_: Sum) -> bool:
        """Whether steps are those of Newton's method, but for rounding and what has changed since."""
        return self.leads or self.few is sum_

    def formed(self, point: Point, blend: float) -> "Kept":
        """Return them, formed at a point unless they are there."""
        if self.is_formed:
            return self
        here = point if self.few is point.sum else self.few.at(point.w)
        if has_model(self.few):
            return self._replace(bends=bends_at(here, blend)._replace(z=here.z))
        return self._replace(matrix=here.hessian(blend))

    def direction(self, point: Point, damping: float, accuracy: float, blend: float) -> Direction:
        """Return the direction from a point."""
        if self.leads:
            matrix = self.matrix if self.bends is None else hessian_of(point, self.bends)
            return by_kept_matrix(point, cast("Array", matrix), damping, accuracy, blend)
        if self.bends is not None:
            return by_model(point, self.bends, damping)
        return by_matrix(point, cast("Array", self.matrix), damping)

    def followed(
        self, direction: Direction, before: Point, new: Point, *, is_slow: bool, is_rough: bool
    ) -> "Kept":
        """Return what is kept for the step after this one.

        Slow means that the last step has left much of what it promised; rough, that this one was cut, or that
        the next is to take other curvatures.
        """
        if self.leads:
            return self
        is_poor = is_slow or is_rough
        n_poor = self.n_poor + (is_rough and self.age == 0) + _MOST_POOR * (is_slow and self.was_fresh)
        if n_poor >= _MOST_POOR and self.few is not new.sum:
            return self._of_more(new.sum)
        kept = self._replace(was_fresh=self.age == 0, n_poor=n_poor if is_poor else 0)
        is_cheap = self._cost(new.sum) <= _CHEAP and not isinstance(new.sum.rows.loss, Squared)
        if is_poor or is_cheap or self.age >= _MOST_UPDATES:
            return kept._replace(bends=None, matrix=None, age=0)
        step, bends, matrix = new.w - before.w, self.bends, self.matrix
        if bends is not None and direction.foreseen is not None and step.any():
            bends = corrected(bends, step, new.smooth, direction.foreseen(step))
            bends = bends._replace(z=None if bends.z is None else bends.z + bends.of_groups @ step)
        elif matrix is not None and step.any():
            matrix = corrected(Bends(matrix, matrix), step, new.smooth - before.smooth, matrix @ step).missing
        return kept._replace(bends=bends, matrix=matrix, age=self.age + 1)

    def _cost(self, sum_: Sum) -> float:
        """Return how many products with all rows take as long as forming them anew."""
        times = 1.0 if self.bends is None else 2.0
        return times * sum_.products_of_a_matrix * self.few.n / max(1, sum_.n)

    def _of_more(self, sum_: Sum) -> "Kept":
        size = _MORE * self.few.n
        if 2 * size <= sum_.n:
            return Kept(sum_.of_size(size))
        if sum_.has_l1 or sum_.products_of_a_matrix <= _MANY_PRODUCTS:
            return Kept(sum_)
        return self._replace(leads=True)
