"""The protocol of losses."""

from typing import Protocol

from stoic.protocols import Array


class Loss(Protocol):
    r"""A loss :math:`\ell(t, y)`, convex in the prediction t.

    Optional methods are called where a loss has them: ``check_target(y)`` raises `InvalidProblem` where a
    target is not of the kind that the loss needs; ``second_derivative(prediction, target)``, in the prediction and
    entry by entry, is what Newton's method needs, and ``bound_curvature(prediction, target)``, of a parabola that
    lies above the loss and touches it at t, what makes its steps safe. A certificate by duality needs two more:
    ``conjugate_gap(slope, prediction, target)`` is :math:`\ell(t, y) + \ell^*(\theta, y) - \theta t \ge 0` for the
    convex conjugate :math:`\ell^*` in the prediction, without cancellation where slopes are in their range; and
    ``slope_range(target)`` are the lowest and the highest θ at which :math:`\ell^*` is finite.
    """

    @property
    def curvature(self) -> float:
        """The least upper bound of the second derivative in the prediction."""
        ...

    def value(self, prediction: Array, target: Array) -> Array:
        """Return the losses, entry by entry."""
        ...

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return the derivatives in the prediction, entry by entry."""
        ...
