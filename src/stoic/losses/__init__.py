r"""Losses :math:`\ell(t, y)` of a prediction t = xᵀw and a target y: vectorized, convex and smooth in t."""

from stoic.losses.logistic import Logistic
from stoic.losses.loss import Loss
from stoic.losses.residuals import Absolute, Huber, Quantile, Squared

__all__ = ["LOSSES", "Absolute", "Huber", "Logistic", "Loss", "Quantile", "Squared"]

LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "huber": Huber,
    "absolute": Absolute,
    "quantile": Quantile,
    "logistic": Logistic,
}
"""The losses by their names."""
