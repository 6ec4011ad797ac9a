"""Outer functions f of (1): a weighted sum, smooth maxima of group losses, the mean-variance risk of a return."""

from stoic.outers.linear import Linear
from stoic.outers.log_sum_exp import LogSumExp
from stoic.outers.mean_variance import MeanVariance
from stoic.outers.smooth_cvar import SmoothCVaR

__all__ = ["Linear", "LogSumExp", "MeanVariance", "SmoothCVaR"]
