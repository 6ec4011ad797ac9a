"""Losses of the residual t − y: `Squared`, `Huber`, `Absolute` and `Quantile`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stoic.checks import check_positive, check_probability
from stoic.codes import ABSOLUTE, HUBER, QUANTILE, SQUARED, LossCode
from stoic.protocols import Array


@dataclass(frozen=True)
class Squared:
    r"""The squared loss :math:`(t - y)^2`, without a factor ½.

    Use it to estimate conditional means, and where the paper's experiments are to be repeated. Under
    heavy-tailed targets a single row may dominate both the loss and its derivative: `Huber` or `Absolute` is
    then more robust.

    Examples
    --------
    >>> from stoic.losses import Squared
    >>> float(Squared().value(3.0, 1.0)), float(Squared().derivative(3.0, 1.0))
    (4.0, 4.0)
    """

    curvature: ClassVar[float] = 2.0

    @property
    def code(self) -> LossCode:
        """Its code in kernels."""
        return LossCode(SQUARED)

    def value(self, prediction: Array, target: Array) -> Array:
        """Return (t − y)²."""
        return np.square(np.subtract(prediction, target))

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return 2 (t − y)."""
        return 2.0 * np.subtract(prediction, target)

    def second_derivative(self, prediction: Array, target: Array) -> Array:
        """Return 2."""
        return np.full(np.broadcast(prediction, target).shape, 2.0)

    def conjugate_gap(self, slope: Array, prediction: Array, target: Array) -> Array:
        """Return (t − y − θ/2)²."""
        return np.square(np.subtract(prediction, target) - 0.5 * slope)

    def slope_range(self, target: Array) -> tuple[Array, Array]:
        """Return −inf and inf."""
        return np.full_like(target, -np.inf), np.full_like(target, np.inf)


@dataclass(frozen=True)
class Huber:
    r"""Huber's loss: :math:`r^2` where :math:`|r| \le h`, else :math:`2h|r| - h^2`, with :math:`r = t - y`.

    Use it to estimate means when some targets are outliers: rows beyond the threshold have a bounded slope.
    It equals `Squared` within the threshold h, as in scikit-learn's ``HuberRegressor``; half of it is the
    form with :math:`r^2/2`.

    Parameters
    ----------
    threshold : float, default 1.0
        h, in the units of the target.

    Examples
    --------
    >>> from stoic.losses import Huber
    >>> Huber(threshold=1.0).value([0.5, 3.0], 0.0).tolist()
    [0.25, 5.0]
    """

    threshold: float = 1.0
    curvature: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)

    @property
    def code(self) -> LossCode:
        """Its code in kernels."""
        return LossCode(HUBER, float(self.threshold))

    def value(self, prediction: Array, target: Array) -> Array:
        """Return r² near zero, 2h|r| − h² far from it."""
        distance = np.abs(np.subtract(prediction, target))
        near = np.minimum(distance, self.threshold)
        return near * (2.0 * distance - near)

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return 2r, cut at ±2h."""
        return 2.0 * _cut(np.subtract(prediction, target), -self.threshold, self.threshold)

    def second_derivative(self, prediction: Array, target: Array) -> Array:
        """Return 2 near zero, 0 far from it."""
        return np.where(np.abs(np.subtract(prediction, target)) <= self.threshold, 2.0, 0.0)

    def bound_curvature(self, prediction: Array, target: Array) -> Array:
        """Return 2 near zero, 2h/|r| far from it: of the flattest parabola above the loss that touches it at t."""
        return (
            self.curvature * self.threshold / np.maximum(np.abs(np.subtract(prediction, target)), self.threshold)
        )

    def conjugate_gap(self, slope: Array, prediction: Array, target: Array) -> Array:
        """Return (c − θ/2)(c − θ/2 + 2(r − c)) with r cut to c at ±h."""
        residual = np.subtract(prediction, target)
        near = _cut(residual, -self.threshold, self.threshold)
        missing = near - 0.5 * slope
        return missing * (missing + 2.0 * (residual - near))

    def slope_range(self, target: Array) -> tuple[Array, Array]:
        """Return −2h and 2h."""
        return np.full_like(target, -2.0 * self.threshold), np.full_like(target, 2.0 * self.threshold)


@dataclass(frozen=True)
class Absolute:
    r"""The absolute loss |t − y|, smoothed: :math:`r^2/(2s)` where :math:`|r| \le s`, else :math:`|r| - s/2`.

    Use it to estimate conditional medians. It is the least sensitive to outliers.

    Parameters
    ----------
    smoothing : float, default 0.1
        s, in the units of the target. The loss is the Moreau envelope of :math:`|r|`: it lies below it, by
        s/2 at most. The curvature is 1/s, so that a smaller s needs smaller steps.

    Examples
    --------
    >>> from stoic.losses import Absolute
    >>> Absolute(smoothing=0.5).value([0.5, -3.0], 0.0).tolist()
    [0.25, 2.75]
    """

    smoothing: float = 0.1

    def __post_init__(self) -> None:
        check_positive("smoothing", self.smoothing)

    @property
    def curvature(self) -> float:
        """1/s."""
        return 1.0 / self.smoothing

    @property
    def code(self) -> LossCode:
        """Its code in kernels."""
        return LossCode(ABSOLUTE, float(self.smoothing))

    def value(self, prediction: Array, target: Array) -> Array:
        """Return r²/(2s) near zero, |r| − s/2 far from it."""
        distance = np.abs(np.subtract(prediction, target))
        near = np.minimum(distance, self.smoothing)
        return near * ((distance - 0.5 * near) / self.smoothing)

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return r/s, cut at ±1."""
        return _cut(np.subtract(prediction, target), -self.smoothing, self.smoothing) / self.smoothing

    def second_derivative(self, prediction: Array, target: Array) -> Array:
        """Return 1/s near zero, 0 far from it."""
        return np.where(np.abs(np.subtract(prediction, target)) <= self.smoothing, self.curvature, 0.0)

    def bound_curvature(self, prediction: Array, target: Array) -> Array:
        """Return 1/s near zero, 1/|r| far from it: of the flattest parabola above the loss, touching it at t."""
        return 1.0 / np.maximum(np.abs(np.subtract(prediction, target)), self.smoothing)

    def conjugate_gap(self, slope: Array, prediction: Array, target: Array) -> Array:
        """Return (c − sθ)((c − sθ)/2 + r − c)/s with r cut to c at ±s."""
        return _smoothed_gap(np.subtract(prediction, target), slope, (-1.0, 1.0), self.smoothing)

    def slope_range(self, target: Array) -> tuple[Array, Array]:
        """Return −1 and 1."""
        return np.full_like(target, -1.0), np.full_like(target, 1.0)


@dataclass(frozen=True)
class Quantile:
    r"""The pinball loss :math:`\max(\tau(y - t), (\tau - 1)(y - t))`, smoothed near zero.

    Use it to estimate a conditional quantile: with level τ = 0.9, nine in ten targets lie below the
    prediction.

    Parameters
    ----------
    level : float, default 0.5
        τ, strictly between 0 and 1.
    smoothing : float, default 0.1
        s, in the units of the target. The loss is the Moreau envelope :math:`\min_v \rho(v) + (v - r)^2/(2s)`
        of the pinball loss ρ at :math:`r = y - t`: a parabola of curvature 1/s for
        :math:`(\tau - 1)s \le r \le \tau s`, lines outside. It lies below ρ, by
        :math:`\max(\tau, 1 - \tau)^2 s/2` at most.

    Examples
    --------
    >>> from stoic.losses import Quantile
    >>> Quantile(level=0.75, smoothing=0.5).value(0.0, [4.0, -4.0]).tolist()
    [2.859375, 0.984375]
    """

    level: float = 0.5
    smoothing: float = 0.1

    def __post_init__(self) -> None:
        check_probability("level", self.level)
        check_positive("smoothing", self.smoothing)

    @property
    def curvature(self) -> float:
        """1/s."""
        return 1.0 / self.smoothing

    @property
    def code(self) -> LossCode:
        """Its code in kernels."""
        return LossCode(QUANTILE, float(self.smoothing), float(self.level))

    def value(self, prediction: Array, target: Array) -> Array:
        """Return the smoothed pinball loss."""
        residual = np.subtract(target, prediction)
        near = self._near(residual)
        return (near / self.smoothing) * (residual - 0.5 * near)

    def derivative(self, prediction: Array, target: Array) -> Array:
        """Return −r/s, cut at −τ and 1 − τ."""
        return self._near(np.subtract(target, prediction)) / -self.smoothing

    def second_derivative(self, prediction: Array, target: Array) -> Array:
        """Return 1/s on the parabola, 0 on the lines."""
        residual = np.subtract(target, prediction)
        return np.where(self._near(residual) == residual, self.curvature, 0.0)

    def bound_curvature(self, prediction: Array, target: Array) -> Array:
        """Return 1/max(s, 2|r − (τ − ½)s|): of the flattest parabola above the loss that touches it at t.

        But for a linear term the loss is an absolute one, of half the slope, around (τ − ½)s.
        """
        off_center = np.subtract(target, prediction) - (self.level - 0.5) * self.smoothing
        return 1.0 / np.maximum(2.0 * np.abs(off_center), self.smoothing)

    def conjugate_gap(self, slope: Array, prediction: Array, target: Array) -> Array:
        """Return (c + sθ)((c + sθ)/2 + r − c)/s with r = y − t cut to c at (τ − 1)s and τs."""
        ends = self.level - 1.0, self.level
        return _smoothed_gap(np.subtract(target, prediction), np.negative(slope), ends, self.smoothing)

    def slope_range(self, target: Array) -> tuple[Array, Array]:
        """Return −τ and 1 − τ."""
        return np.full_like(target, -self.level), np.full_like(target, 1.0 - self.level)

    def _near(self, residual: Array) -> Array:
        return _cut(residual, (self.level - 1.0) * self.smoothing, self.level * self.smoothing)


def _cut(x: Array, low: float, high: float) -> Array:
    """Return x cut to [low, high]; several times faster than numpy.clip on small arrays."""
    return np.minimum(np.maximum(x, low), high)


def _smoothed_gap(residual: Array, slope: Array, ends: tuple[float, float], s: float) -> Array:
    """Return ℓ + ℓ* − θr for the Moreau envelope ℓ, of parameter s, of max(θ₁r, θ₂r), ends θ₁ < 0 < θ₂."""
    near = _cut(residual, ends[0] * s, ends[1] * s)
    missing = near - s * slope
    return missing * (0.5 * missing + (residual - near)) / s
