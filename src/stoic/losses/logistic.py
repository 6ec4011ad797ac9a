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
        return np.logaddexp(0.0, np.multiply(prediction, np.negative(target)))

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return −y / (1 + exp(y t)) without overflow."""
        return np.negative(target) * np.exp(-np.logaddexp(0.0, np.multiply(prediction, target)))

    def second_derivative(self, prediction: Array, target: Array) -> Array:
        """Return σ(t)(1 − σ(t)) of the logistic function σ, without overflow."""
        t = np.abs(np.multiply(prediction, target))
        return np.exp(-t - 2.0 * np.log1p(np.exp(-t)))

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
