"""The logistic loss of labels −1 and +1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, kl_div

from stoic.codes import LOGISTIC, LossCode
from stoic.errors import InvalidProblem
from stoic.protocols import Array, Vector


@dataclass(frozen=True)
class Logistic:
    r"""The logistic loss :math:`\log(1 + e^{-yt})` of labels y = −1 or +1.

    Use it to classify: :math:`1/(1 + e^{-t})` then estimates the probability of the label +1.

    Examples
    --------
    >>> from stoic.losses import Logistic
    >>> Logistic().value([0.0, -1e300], 1.0).round(4).tolist()
    [0.6931, 1e+300]
    """

    curvature: ClassVar[float] = 0.25

    @property
    def code(self) -> LossCode:
        """Its code in kernels."""
        return LossCode(LOGISTIC)

    def value(self, prediction: Array, target: Array) -> Array:
        """Return log(1 + exp(−y t)) without overflow."""
        against = np.multiply(prediction, np.negative(target))
        return np.asarray(np.maximum(against, 0.0) + _log1p(_decayed(against)))

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return −y / (1 + exp(y t)) without overflow."""
        margin = np.multiply(prediction, target)
        small = _decayed(margin)
        return np.asarray(np.negative(target) * np.where(margin > 0.0, small, 1.0) / (1.0 + small))

    def second_derivative(self, prediction: Array, target: Array) -> Array:
        """Return σ(t)(1 − σ(t)) of the logistic function σ, without overflow."""
        small = _decayed(np.multiply(prediction, target))
        return np.asarray(small / np.square(1.0 + small))

    def bound_curvature(self, prediction: Array, target: Array) -> Array:  # noqa: ARG002
        """Return tanh(t/2)/(2t): of the parabola that lies above the loss and touches it at t and −t."""
        half = 0.5 * np.abs(prediction)
        is_near = half < _NEAR_ZERO
        return np.asarray(np.where(is_near, 0.25, 0.25 * np.tanh(half) / np.where(is_near, 1.0, half)))

    def conjugate_gap(self, slope: Array, prediction: Array, target: Array) -> Array:
        """Return the relative entropy of the probabilities −yθ and 1 + yθ to those at t, of −y and of y."""
        margin, share = np.multiply(prediction, target), np.multiply(np.negative(target), slope)
        return np.asarray(kl_div(share, expit(-margin)) + kl_div(1.0 - share, expit(margin)))

    def slope_range(self, target: Array) -> tuple[Array, Array]:
        """Return 0 and −y, the lower first."""
        return np.minimum(np.negative(target), 0.0), np.maximum(np.negative(target), 0.0)

    def check_target(self, y: Vector) -> None:
        """Raise `InvalidProblem` unless every label is −1 or +1."""
        wrong = np.abs(y) != 1.0
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidProblem(
                f"y[{row}] = {y[row]:g}, but the logistic loss needs labels -1 and +1; "
                f"convert labels 0 and 1 with 2 * y - 1."
            )


_NEAR_ZERO = 1e-4  # where tanh(x)/x is 1 to rounding


def _decayed(margin: Array) -> Array:
    """Return exp(−|margin|)."""
    return np.asarray(np.exp(-np.abs(margin)))


def _log1p(small: Array) -> Array:
    """Return log(1 + small) for numbers in [0, 1] to the last digits: NumPy's own is several times slower."""
    more = 1.0 + small
    added = more - 1.0
    return np.where(added > 0.0, np.log(more) * (small / np.where(added > 0.0, added, 1.0)), small)
