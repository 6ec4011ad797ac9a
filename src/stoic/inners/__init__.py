"""Inner functions g: grouped losses of linear models, moments of returns, and functions of one's own."""

from stoic.inners.functions import FunctionInner
from stoic.inners.group_loss import GroupLoss
from stoic.inners.moments import Moments

__all__ = ["FunctionInner", "GroupLoss", "Moments"]
