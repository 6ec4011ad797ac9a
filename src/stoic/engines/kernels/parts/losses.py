"""Losses of one row: value and derivative by the prediction."""

import numpy as np

from stoic.codes import ABSOLUTE, HUBER, LOGISTIC, QUANTILE, SQUARED, LossCode
from stoic.engines.kernels.jit import inlined


@inlined
def loss_value(loss: LossCode, prediction: float, target: float) -> float:
    """Return ℓ(prediction, target)."""
    if loss.kind == LOGISTIC:
        margin = -target * prediction
        return max(margin, 0.0) + np.log1p(np.exp(-abs(margin)))
    residual = prediction - target
    if loss.kind == SQUARED:
        return residual * residual
    if loss.kind == QUANTILE:
        short = -residual
        near = min(max(short, (loss.level - 1.0) * loss.scale), loss.level * loss.scale)
        return (near / loss.scale) * (short - 0.5 * near)
    distance = abs(residual)
    near = min(distance, loss.scale)
    if loss.kind == HUBER:
        return near * (2.0 * distance - near)
    if loss.kind == ABSOLUTE:
        return near * ((distance - 0.5 * near) / loss.scale)
    return np.nan  # no such loss


@inlined
def loss_slope(loss: LossCode, prediction: float, target: float) -> float:
    """Return the derivative of ℓ by the prediction."""
    if loss.kind == LOGISTIC:
        margin = target * prediction
        if margin >= 0.0:
            tail = np.exp(-margin)
            return -target * tail / (1.0 + tail)
        return -target / (1.0 + np.exp(margin))
    residual = prediction - target
    if loss.kind == SQUARED:
        return 2.0 * residual
    if loss.kind == QUANTILE:
        near = min(max(-residual, (loss.level - 1.0) * loss.scale), loss.level * loss.scale)
        return near / -loss.scale
    near = min(max(residual, -loss.scale), loss.scale)
    if loss.kind == HUBER:
        return 2.0 * near
    if loss.kind == ABSOLUTE:
        return near / loss.scale
    return np.nan  # no such loss
