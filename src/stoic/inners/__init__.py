"""Inner functions g: grouped losses of linear and softmax models, moments of returns, functions of one's own."""

from stoic.inners.functions import FunctionInner
from stoic.inners.group_loss import GroupLoss
from stoic.inners.group_softmax import GroupSoftmax
from stoic.inners.moments import Moments

__all__ = ["FunctionInner", "GroupLoss", "GroupSoftmax", "Moments"]
